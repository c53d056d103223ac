. "$TESTS/lib.sh"
# twelve copies of each of 400 points: neighbours are near, and everything else is far
gnomon operator --operator gaussian -k 400 -D 400 --scaling none --cols 0:48 -o once.fvecs --quiet
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat once.fvecs; done > base.fvecs
gnomon neighbors base.fvecs once.fvecs -k 8 -o exact.ivecs --quiet
gnomon index build base.fvecs -k 8 --recall 0.9 --queries once.fvecs --slower -o tuned.lsh 2> words
grep -c 'with 95 % confidence' words
gnomon index check tuned.lsh
gnomon index query tuned.lsh once.fvecs -k 8 --ground-truth exact.ivecs --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["recall"] >= 0.9, r["candidates"] < 400 * 4800)'
gnomon index tune base.fvecs -k 8 --recall 0.9 --slower -o other.lsh --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
p = r["guarantee"]
kept = [t for t in r["considered"] if t["tested"] == "kept"]
print(p["kept"], p["bound"] >= 0.9, len(kept), kept[0]["tables"] == r["tables"], kept[0]["functions"] == r["functions"], len(r["considered"]) >= 1)'
gnomon index check other.lsh
# so few are searched exactly, and nothing is written
try gnomon index build points.csv -k 1 --recall 0.9 -o none.lsh
[ -e none.lsh ] || echo 'nothing is written'
