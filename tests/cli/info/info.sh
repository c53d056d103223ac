. "$TESTS/lib.sh"
for file in points.npy points-fortran.npy points.csv points.idx.gz sparse.mtx; do try gnomon info $file; done | sed '/gz$/,/^file/s/^file size.*/file size/'
try gnomon info points.raw --shape '?,784' --dtype f4
GNOMON_ISA=portable gnomon info --threads 2 --device cpu | grep -Ev '^(plugins|devices|svd)| missing: '
gnomon info --json | "$PYTHON" -c '
import json, sys
report = json.load(sys.stdin)
assert report["device_reason"] and report["devices"][0] == "cpu" and report["operator_version"] == 1
formats = {f["format"]: f["writes"] for f in report["formats"]}
assert formats["npy"] and len(formats) == len(report["formats"]), formats
print("good")'
GNOMON_PLUGIN_DIR=/nonexistent gnomon info --device cuda > /dev/null 2> error
echo "exit $?"
cat error
gnomon project points.npy -k 4 -o y.npy --device cuda 2> error
echo "exit $?: $(cat error)"; test ! -e y.npy || echo "an output was left"
gnomon project points.npy -k 4 -o y.npy --json --quiet | "$PYTHON" -c '
import json, sys
report = json.load(sys.stdin)
assert report["device"] == "cpu" and "gpu" not in report, report
print("good")'
