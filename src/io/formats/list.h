/* io/formats/list.h: the formats, in the order in which they are listed and tried. Read several
 * times, so it has no guard: GNOMON_FORMAT(name) is what becomes of each line, and
 * gnomon_format_name is the row, in the format's own file. */
GNOMON_FORMAT(npy)
GNOMON_FORMAT(npz)
GNOMON_FORMAT(csv)
GNOMON_FORMAT(tsv)
GNOMON_FORMAT(fvecs)
GNOMON_FORMAT(bvecs)
GNOMON_FORMAT(ivecs)
GNOMON_FORMAT(fbin)
GNOMON_FORMAT(u8bin)
GNOMON_FORMAT(i8bin)
GNOMON_FORMAT(f16bin)
GNOMON_FORMAT(idx)
GNOMON_FORMAT(hdf5)
GNOMON_FORMAT(mtx)
GNOMON_FORMAT(svmlight)
GNOMON_FORMAT(raw)
