. "$TESTS/lib.sh"
for file in truncated.npy lying.npy huge.npy negative.npy object.npy no-header.npy ragged.csv words.csv \
    ragged.fvecs truncated.fvecs empty.npy empty.csv empty.fvecs empty.mtx empty.unknown \
    noise.unknown nothing.npy .; do
    try gnomon project $file -k 2 -o y.npy --quiet
done
try gnomon project small.npy:key -k 2 -o y.npy
try gnomon info truncated.npy
try gnomon convert points.raw y.npy --shape 101,784 --dtype f4
[ ! -e y.npy ] || echo 'y.npy is there'
