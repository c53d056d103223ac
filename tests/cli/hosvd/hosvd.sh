. "$TESTS/lib.sh"
needs_svd
needs npz
# In double precision six digits are the same wherever they are computed.
try gnomon hosvd tensor.npy --ranks 4,5,3 --oversample 2 -o t.npz
for name in core factor_0 factor_2; do gnomon info t.npz:$name | sed -n '/shape/p; /points/p; /dimensions/p'; done
try gnomon hosvd tensor.npy --ranks 4,5,3 --oversample 2 --sequential --power 1 --operator sjlt --nonzeros 2 --measure
try gnomon hosvd tensor.npy --tolerance 0.2 | sed '/^mode/d'
# modes that are not projected, so that the order in the file does not matter
gnomon hosvd tensor.npy --ranks 3,3,3 --oversample 20 2>&1 | sed '/^mode/d' | tee whole
gnomon hosvd tensor-fortran.npy --ranks 3,3,3 --oversample 20 2>&1 | sed '/^mode/d' | diff whole - && echo "the same"
gnomon hosvd tensor-f2.npy --ranks 3,3,3 --json | grep -E '"(dtype|format|held)"'
try gnomon hosvd tensor-vector.npy --ranks 1 | sed '/X.*X.*measured/d'
try gnomon hosvd points.npy --ranks 3,3 | sed -n 2p
gnomon hosvd points.idx.gz --ranks 5,6,7 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("verb", "size", "ranks", "columns", "order", "operator", "power", "sequential",
                         "residual_by", "converged", "passes", "dtype")})
assert [len(v) for v in r["mode_values"]] == [5, 6, 7]'
gnomon info tensor.npy | grep shape
gnomon info tensor.npy --json | tr -d '\n ' | grep -o '"shape":[^]]*]'
