. "$TESTS/lib.sh"
# sums of differences, by hand
printf '0,0\n1,1\n3,0\n-2,2\n' > four.csv
printf '1,0\n' > one.csv
try gnomon neighbors four.csv one.csv -k 4 --metric l1 -o - --output-format csv
try gnomon neighbors four.csv one.csv --radius 2 --metric l1 -o - --output-format csv
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o a.csv --threads 1 --quiet
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o b.csv --memory 65M --quiet
cmp a.csv b.csv && echo same
# an index verifies by it
gnomon neighbors base.npy queries.npy -k 6 --metric l1 -o exact.npy --quiet
try gnomon index build base.npy --metric l1 --tables 8 --functions 3 --width 60 --probes 30 -o l1.lsh
try gnomon index query l1.lsh queries.npy -k 6 --ground-truth exact.npy
try gnomon index query l1.lsh queries.npy -k 6 --probes 9999 -o found.npy --ground-truth exact.npy
try gnomon index check l1.lsh
try gnomon index build base.npy --metric l1 --tables 8 --functions 3 -o none.lsh
# a guarantee: twelve copies of each of 400 points, near each other and far from everything else
gnomon operator --operator gaussian -k 400 -D 400 --scaling none --cols 0:48 -o once.fvecs --quiet
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat once.fvecs; done > copies.fvecs
gnomon neighbors copies.fvecs once.fvecs -k 8 --metric l1 -o exact.ivecs --quiet
try gnomon neighbors copies.fvecs once.fvecs -k 8 --metric l1 --recall 0.9 --ground-truth exact.ivecs -o found.csv
gnomon index build copies.fvecs --metric l1 --recall 0.9 -k 8 -o tuned.lsh 2> words
grep -c 'with 95 % confidence' words
gnomon index query tuned.lsh once.fvecs -k 8 --ground-truth exact.ivecs --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["recall"] >= 0.9, r["candidates"] < 400 * 4800)'
gnomon index tune copies.fvecs --metric l1 -k 8 | awk '{print $1, $2}' | grep -c p-stable-l1 > shown
[ "$(cat shown)" -gt 3 ] && echo 'a table'
try gnomon join base.npy -t 3 --metric l1
try gnomon neighbors base-nan.npy queries.npy -k 3 --metric l1
