. "$TESTS/lib.sh"
needs npz hdf5
try gnomon neighbors base.npy queries.npy -k 3 -o n.npz
gnomon info n.npz:ids | sed "1d;/file size/d"
gnomon info n.npz:distances | sed "1d;/file size/d"
try gnomon neighbors base.npy queries.npy -k 3 -o n.h5
gnomon info n.h5:neighbors | sed "1d;/file size/d"
try gnomon neighbors base.npy queries.npy -k 3 --ground-truth n.npz
try gnomon neighbors base.npy queries.npy -k 3 --ground-truth n.h5
try gnomon neighbors base.npy queries.npy --radius 5.5 -o r.npz
gnomon convert r.npz:offsets - --output-format csv
gnomon convert r.npz:ids - --output-format csv
