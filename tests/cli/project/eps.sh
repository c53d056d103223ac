. "$TESTS/lib.sh"
try gnomon project points.npy --eps 0.5 -o y.npy | sed 's/ in [0-9.]* s$//'
try gnomon project points.npy --eps 0.5 --operator gaussian -o y.npy | sed 's/ in [0-9.]* s$//'
try gnomon project points.csv --eps 0.5 --points 100 --bound dasgupta-gupta -o y.npy | sed 's/ in [0-9.]* s$//'
gnomon project points.npy --eps 0.5 -o y.npy --json --quiet | "$PYTHON" -c '
import json, sys
report = json.load(sys.stdin)
assert report["bound"]["bound"] == "achlioptas" and report["bound"]["k"] == report["k"] == report["descriptor"]["k"]
assert report["k"] - 1 < report["bound"]["real"] <= report["k"]
for fact in ("gnomon", "verb", "device", "isa", "threads", "seconds", "points", "dimensions", "memory"):
    assert fact in report, fact
print("good")'
