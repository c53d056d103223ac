. "$TESTS/lib.sh"
try gnomon project small.npy -k 0 -o y.npy
try gnomon project small.npy -k 6 -o y.npy
try gnomon project small.npy -k 3 --operator very-sparse --density 0 -o y.npy
try gnomon project small.npy -k 3 --operator very-sparse --density 1.5 -o y.npy
try gnomon project small.npy -k 3 --operator gaussian --density 0.5 -o y.npy
try gnomon project small.npy -k 3 --operator sjlt --nonzeros 4 -o y.npy
try gnomon project small.npy -k 3 --operator block --blocks 4 -o y.npy
try gnomon project small.npy -k 3 --operator kronecker --width 2 -o y.npy
try gnomon project points.npy --load-operator descriptor.json -o y.npy
try gnomon project small.npy --eps 0.1 -o y.npy
try gnomon project small.csv --eps 0.1 -o y.npy
try gnomon project no-columns.npy -k 1 -o y.npy
try gnomon distortion small.npy points.npy
[ ! -e y.npy ] || echo 'y.npy is there'
try gnomon project no-points.npy -k 2 -o y.npy --quiet
try gnomon info y.npy
