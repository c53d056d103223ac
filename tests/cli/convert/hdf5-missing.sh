# without HDF5's library everything else works, and what needs it says so
. "$TESTS/lib.sh"
needs hdf5
gnomon convert points.npy there.h5 --quiet || exit
mkdir none
: > "none/$HDF5_LIBRARY"
without() {
    LD_LIBRARY_PATH=$PWD/none try "$@" | sed "s/$HDF5_LIBRARY/LIBRARY/g; s|$PWD/||g"
}
without gnomon info there.h5
without gnomon convert points.npy there.h5
without gnomon convert points.npy new.h5:/a
ls new.h5 2>/dev/null
without gnomon convert points.npy new.fbin --quiet
LD_LIBRARY_PATH=$PWD/none gnomon info --json | "$PYTHON" -c '
import json, sys
for one in json.load(sys.stdin)["formats"]:
    if "missing" in one: print(one["format"], "is missing")'
LD_LIBRARY_PATH=$PWD/none gnomon info | grep -A1 '  hdf5  ' | sed "s/: [^ ]*: file/: LIBRARY: file/"
# the file is as it was
gnomon convert there.h5 back.npy --quiet && cmp back.npy points.npy
