# NaN and infinity: refused with their place in the file, whatever the chunks; no output
. "$TESTS/lib.sh"
try gnomon project nan.npy -k 2 -o y.npy
try gnomon project inf-fortran.npy -k 2 -o y.npy
try gnomon project nan.csv -k 2 -o y.npy
try gnomon project nan.mtx -k 2 -o y.npy
for memory in 65M 1G; do
    try gnomon project nan-late.npy -k 2 -o y.npy --memory $memory
    try gnomon project nan-late-fortran.npy -k 2 -o y.npy --memory $memory
    try gnomon project nan-late.npy -k 2 -o y.npy --memory $memory --operator srht
done
try gnomon distortion nan.npy nan.npy
[ ! -e y.npy ] || echo 'y.npy is there'
try gnomon project nan.npy -k 2 -o y.csv --allow-nonfinite --quiet
cut -d, -f1 y.csv | sed 's/-nan/nan/' | grep -n nan
