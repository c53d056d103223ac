. "$TESTS/lib.sh"
needs_svd
try gnomon lstsq features.npy
try gnomon lstsq features.npy small.npy
try gnomon lstsq points.npy small.npy
try gnomon lstsq points.npy points.npy -k 99
try gnomon lstsq no-points.npy targets.npy
try gnomon lstsq no-columns.npy small.npy
try gnomon lstsq features.npy no-columns.npy
try gnomon lstsq nan.npy small.npy
try gnomon lstsq nan-late.npy long-targets.npy --memory 65M
try gnomon lstsq nan.mtx small.npy
try gnomon lstsq features.npy targets-nan.npy
try gnomon lstsq features.npy ragged.csv
try gnomon lstsq features.npy targets.npy -k 11
try gnomon lstsq features.npy targets.npy --damp=-1
try gnomon lstsq features.npy targets.npy --tolerance 1
try gnomon lstsq features.npy targets.npy --density 0.5
try gnomon lstsq features.npy targets.npy --nonzeros 2 --operator srht
try gnomon lstsq features.npy targets.npy -k 100 --nonzeros 101
try gnomon lstsq features.npy targets.npy -o features.npy
try gnomon lstsq features.npy targets.npy -o x.npy --residual x.npy
try gnomon lstsq features.npy targets.npy -o - --json
try gnomon lstsq - - < features.npy
try gnomon lstsq features.npy targets.npy --device cuda | sed 's/:.*//'
ls x.npy 2> /dev/null
# the best that two steps find, and that it is not good enough
try gnomon lstsq features.npy targets.npy -k 100 --iterations 2 -o x.npy | sed -n '1p;/tolerance/p;/exit/p'
ls x.npy
try gnomon lstsq features.npy targets.npy -k 100 --iterations 2 --test-vectors 0 | sed '1d;/estimate/d;/A^T r/d'
