. "$TESTS/lib.sh"
# sixteen copies of each of 600 points of 4,096 bits: neighbours are near, and everything else is far
"$PYTHON" -c '
import random
r = random.Random(5)
with open("once.bvecs", "wb") as f:
    for i in range(600):
        f.write((512).to_bytes(4, "little") + r.randbytes(512))'
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat once.bvecs; done > base.bvecs
cat once.bvecs once.bvecs once.bvecs once.bvecs once.bvecs once.bvecs > many.bvecs
bits="--metric hamming -k 10 --recall 0.9"
gnomon neighbors base.bvecs many.bvecs --metric hamming -k 10 -o exact.ivecs --quiet
try gnomon neighbors base.bvecs many.bvecs $bits --ground-truth exact.ivecs -o found.csv
gnomon neighbors base.bvecs many.bvecs $bits -o again.csv --threads 1 --quiet
cmp found.csv again.csv && echo same
gnomon neighbors base.bvecs many.bvecs --metric hamming -k 5 --recall 0.8 --seed 3 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
p = r["guarantee"]
print(r["exact"], p["recall"], p["family"], p["bound"] >= 0.8, p["tested"], p["index_bytes"] < 9600 * 256)'
# few queries are answered exactly, before any of them is tried
try gnomon neighbors base.bvecs once.bvecs $bits -o few.csv
gnomon neighbors base.bvecs once.bvecs --metric hamming -k 10 -o few-exact.csv --quiet
cmp few.csv few-exact.csv && echo same
# so few points are searched exactly
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 -o few.csv
gnomon neighbors base.npy queries.npy -k 3 -o few-exact.csv --quiet
cmp few.csv few-exact.csv && echo same
try gnomon neighbors sparse.mtx sparse.mtx -k 1 --recall 0.9 --metric jaccard --exclude-self -o sets.csv
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --exact
try gnomon neighbors base.npy queries.npy -k 3 --recall 1
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --metric ip
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --filter allowed.csv
try gnomon neighbors base.npy queries.npy -k 3 --seed 2
try gnomon neighbors base.npy points.npy -k 3 --recall 0.9
try gnomon neighbors base.npy queries.npy -k 3 --recall 0.9 --metric jaccard
try gnomon neighbors base-nan.npy queries.npy -k 3 --recall 0.9
try gnomon neighbors base.npy queries.npy -k 301 --recall 0.9
