. "$TESTS/lib.sh"
needs_svd
needs npz
# In double precision six digits are the same wherever they are computed.
try gnomon svd points-f8.npy -k 12 -o f.npz --measure
gnomon info f.npz | sed 1d
try gnomon svd points-f8.npy --tolerance 0.3
try gnomon svd points-f8.npy --tolerance 0.3 -k 20 --operator sjlt --nonzeros 2 | sed 2d
try gnomon svd small.npy -k 5 --output-dtype f8 --test-vectors 0
gnomon svd small.npy -k 2 --power 1 --oversample 1 --seed 3 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("verb", "points", "dimensions", "dtype", "held", "rank", "columns", "power",
                         "single_pass", "passes", "numerical_rank", "residual", "converged")})
print(r["descriptor"])
assert len(r["singular_values"]) == 2 and r["residual_estimate"] <= r["residual_bound"]'
try gnomon svd sparse.mtx -k 6 --power 4 --json | grep -E '"(held|rank|format)"'
# sparse and dense, the same but for rounding
"$PYTHON" - <(gnomon svd sparse.mtx -k 6 --json) <(gnomon svd sparse-dense.npy -k 6 --json) << 'END'
import json, sys
a, b = (json.load(open(f))["singular_values"] for f in sys.argv[1:])
assert all(abs(x - y) < 1e-4 * b[0] for x, y in zip(a, b)), (a, b)
print("sparse and dense agree")
END
try gnomon svd points.npy -k 4 --single-pass | sed -n 2p
if command -v gnuplot > /dev/null; then gnomon svd points.npy -k 9 --plot p.svg --quiet; grep -c '</svg>' p.svg; else echo 1; fi
