. "$TESTS/lib.sh"
needs_svd
try gnomon hosvd tensor.npy
try gnomon hosvd tensor.npy --ranks 4,5
try gnomon hosvd tensor.npy --ranks 4,5,16
try gnomon hosvd tensor.npy --ranks 4,0,3
try gnomon hosvd tensor.npy --ranks 4,,3
try gnomon hosvd tensor.npy --ranks 4,5,3,
try gnomon hosvd points.npy --ranks 3,101
try gnomon hosvd tensor-vector.npy --ranks 2
try gnomon hosvd tensor.npy --tolerance 0
try gnomon hosvd tensor-nan.npy --ranks 4,5,3
try gnomon hosvd tensor-huge.npy --ranks 4,5,3
try gnomon hosvd tensor-lying.npy --ranks 4,5,3
try gnomon hosvd tensor-empty.npy --ranks 1,1,1
try gnomon hosvd tensor-17.npy --tolerance 0.1
try gnomon hosvd tensor-scalar.npy --ranks 1
try gnomon hosvd tensor.npy --ranks 4,5,3 -o t.npy
try gnomon hosvd tensor.npy --ranks 4,5,3 --density 0.5
try gnomon hosvd tensor.npy --ranks 4,5,3 --nonzeros 2
try gnomon hosvd tensor.npy --ranks 4,5,3 --device cuda | sed 's/:.*//'
try gnomon hosvd video.npy --ranks 59,49,59 --oversample 0 --sequential --output-dtype f8 --memory 65M
try gnomon hosvd tensor.npy --tolerance 1e-17 -o t.npz --quiet | sed 1d | sed -n '/exit/p'
ls t.npz
try gnomon hosvd tensor.npy --tolerance 0.001 --ranks 2,2,2 | sed -n '/tolerance/p; /exit/p'
