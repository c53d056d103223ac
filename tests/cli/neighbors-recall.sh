. "$TESTS/lib.sh"
# sixteen copies of each of 600 points: neighbours are near, and everything else is far
gnomon operator --operator gaussian -k 600 -D 600 --scaling none --cols 0:64 -o once.fvecs --quiet
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat once.fvecs; done > base.fvecs
gnomon neighbors base.fvecs once.fvecs -k 10 -o exact.ivecs --quiet
try gnomon neighbors base.fvecs once.fvecs -k 10 --recall 0.9 --ground-truth exact.ivecs -o found.csv
gnomon neighbors base.fvecs once.fvecs -k 10 --recall 0.9 -o again.csv --threads 1 --quiet
cmp found.csv again.csv && echo same
gnomon neighbors base.fvecs once.fvecs -k 5 --recall 0.8 --seed 3 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
p = r["promise"]
print(r["exact"], p["recall"], p["family"], p["bound"] >= 0.8, p["tested"], p["index_bytes"] < 9600 * 256)'
# so few points are searched exactly
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 -o few.csv
gnomon neighbors base.npy queries.npy -k 3 -o few-exact.csv --quiet
cmp few.csv few-exact.csv && echo same
try gnomon neighbors sparse.mtx sparse.mtx -k 1 --recall 0.9 --metric jaccard --exclude-self -o sets.csv
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --exact
try gnomon neighbors base.npy queries.npy -k 3 --recall 1
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --metric ip
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --allowed allowed.csv
try gnomon neighbors base.npy queries.npy -k 3 --seed 2
try gnomon neighbors base.npy points.npy -k 3 --recall 0.9
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --metric jaccard
try gnomon neighbors base-nan.npy queries.npy -k 3 --recall 0.9
try gnomon neighbors base.npy queries.npy -k 301 --recall 0.9
