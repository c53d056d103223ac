. "$TESTS/lib.sh"
try gnomon neighbors base.npy queries.npy -k 4 -o - --output-format csv | sed -n '1,2p;22,41p'
try gnomon neighbors base.npy queries.npy -k 2 --metric cosine -o - --output-format csv | sed -n '3,4p;17,18p'
try gnomon neighbors base.npy queries.npy -k 2 --metric ip -o ip.csv
head -3 ip.csv
# bits, and sets given as a sparse matrix
try gnomon neighbors points-u1.npy points-u1.npy -k 1 --metric hamming --exclude-self -o - --output-format csv | sed -n '2,4p'
try gnomon neighbors sparse.mtx sparse.mtx -k 1 --metric jaccard --exclude-self -o - --output-format csv | sed -n '2,4p'
# a radius is inclusive
r=$(gnomon neighbors base.npy queries.npy -k 3 -o - --output-format csv --quiet | sed -n 4p | cut -d, -f3)
gnomon neighbors base.npy queries.npy --radius "$r" -o - --output-format csv --quiet | grep -c ^0,
try gnomon neighbors base.npy queries.npy -k 3 --filter allowed.csv -o - --output-format csv | sed -n '3,5p'
# ids alone
try gnomon neighbors base.npy queries.npy -k 3 -o ids.ivecs --distances distances.npy
gnomon info ids.ivecs | sed 1d
gnomon info distances.npy | sed 1d
try gnomon neighbors base.npy queries.npy -k 2 --ground-truth ids.ivecs
try gnomon neighbors base.npy queries.npy -k 2 --ground-truth ids.ivecs --metric ip | sed -n 3p
gnomon neighbors base.npy queries.npy -k 2 --json --exclude-self | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("verb", "metric", "exact", "k", "base_points", "query_points", "dimensions",
                         "dtype", "answers", "compared", "query_groups")})
assert r["verified"] >= 16 and r["queries_per_second"] > 0'
