. "$TESTS/lib.sh"
# by an index's file: the answers of gnomon index query, in every form, and what the index settles is refused
gnomon index build base.npy --tables 2 --functions 6 --width 12 --probes 1 -o a.lsh --quiet
gnomon neighbors base.npy queries.npy -k 4 -o exact.npy --quiet
try gnomon neighbors queries.npy --index a.lsh -k 4 --ground-truth exact.npy -o found.npy --distances found.fvecs
gnomon index query a.lsh queries.npy -k 4 -o same.npy --distances same.fvecs --quiet
cmp found.npy same.npy && cmp found.fvecs same.fvecs && echo same
try gnomon neighbors queries.npy --index a.lsh --radius 4 -o near.csv
gnomon index query a.lsh queries.npy --radius 4 -o same.csv --quiet
cmp near.csv same.csv && echo same
try gnomon neighbors base.npy --index a.lsh -k 1 --exclude-self -o near.csv
gnomon index query a.lsh base.npy -k 1 --exclude-self -o same.csv --quiet
cmp near.csv same.csv && echo same
cat queries.npy | try gnomon neighbors - --index a.lsh -k 2 -o piped.npy
gnomon neighbors queries.npy --index a.lsh -k 1 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["verb"], r["index"], r["metric"], r["k"], r["answers"], r["candidates"] >= r["verified"] > 0)'
# some points alone: where the index finds too few of them, exactly
printf '3\n7\n11\n200\n' > few.csv
try gnomon neighbors queries.npy --index a.lsh -k 4 --filter few.csv -o some.npy
gnomon neighbors base.npy queries.npy -k 4 --filter few.csv -o same.npy --quiet
cmp some.npy same.npy && echo same
try gnomon neighbors queries.npy --index a.lsh -k 5 --filter few.csv
printf '300\n' > beyond.csv
try gnomon neighbors queries.npy --index a.lsh -k 1 --filter beyond.csv
# refused
try gnomon neighbors queries.npy -k 4
try gnomon neighbors base.npy queries.npy --index a.lsh -k 4
try gnomon neighbors queries.npy --index a.lsh -k 4 --metric l2
try gnomon neighbors queries.npy --index a.lsh -k 4 --exact
try gnomon neighbors queries.npy --index a.lsh -k 4 --recall 0.9
try gnomon neighbors queries.npy --index a.lsh -k 4 --seed 3
try gnomon neighbors queries.npy --index a.lsh
try gnomon neighbors queries.npy --index a.lsh --radius -1
try gnomon neighbors queries.npy --index a.lsh -k 301
try gnomon neighbors queries.npy --index a.lsh -k 4 -o a.lsh
try gnomon neighbors points.npy --index a.lsh -k 4
try gnomon neighbors base-nan.npy --index a.lsh -k 4
try gnomon neighbors queries.npy --index base.npy -k 4
try gnomon neighbors queries.npy --index missing.lsh -k 4
