. "$TESTS/lib.sh"
needs_svd
try gnomon svd small.npy
try gnomon svd small.npy -k 6
try gnomon svd small.npy -k 0
try gnomon svd small.npy --tolerance 1
try gnomon svd nan.npy -k 2
try gnomon svd nan-late.npy -k 2 --memory 65M
try gnomon svd nan-late.npy -k 2 --single-pass
try gnomon svd nan.mtx -k 2
try gnomon svd no-points.npy -k 2
try gnomon svd no-columns.npy -k 2
try gnomon svd small.npy -k 2 -o f.npy
try gnomon svd small.npy -k 2 --density 0.5
try gnomon svd small.npy -k 2 --single-pass --power 1
try gnomon svd small.npy -k 2 --device cuda | sed 's/:.*//'
try gnomon svd sparse.mtx -k 2 --measure
try gnomon svd points-u1.npy --tolerance 1e-9 -o f.npz | sed -n '/tolerance/p; /exit/p'
ls f.npz
try gnomon svd small.npy --tolerance 0.01 -k 2 | sed '1d;3,$d'
try gnomon svd small.npy -k 5 --single-pass | sed -n 2p
