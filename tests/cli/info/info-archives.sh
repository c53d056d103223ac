. "$TESTS/lib.sh"
needs npz hdf5
gnomon convert points.npy a.npz:x --quiet && try gnomon info a.npz | sed 's/^file size.*/file size/' && gnomon info a.npz --json | grep -A1 '"member'
gnomon convert points.npy a.h5:/x --quiet && try gnomon info a.h5:/x | sed 's/^file size.*/file size/'
[ -e a.npz ] && "$PYTHON" -c '
import zipfile
with zipfile.ZipFile("two.npz", "w") as archive:
    archive.write("small.npy", "few.npy")
    archive.write("points.npy", "many.npy")
    archive.write("points.csv", "other.txt")'
try gnomon info two.npz
try gnomon project two.npz -k 2 -o y.npy
try gnomon project two.npz:none -k 2 -o y.npy
try gnomon project two.npz:few -k 2 -o y.npy | sed 's/ in [0-9.]* s$//'
try gnomon info empty.npz
