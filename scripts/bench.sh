#!/usr/bin/env bash
# Times the sketches beside their peers and takes the peak memory under limits; writes
# bench/records/project-cpu.json, memory-cpu.json, svd-cpu.json, lstsq-cpu.json and hosvd-cpu.json.
# usage: bench.sh BUILD_FOLDER      the environment: THREADS (all cores), ROUNDS (7), PYTHON
set -euo pipefail
build=$(cd "${1:?usage: bench.sh BUILD_FOLDER}" && pwd)
cd "$(dirname "$0")/.."
python=${PYTHON:-}
for candidate in /usr/bin/python3 python3; do
    [ -n "$python" ] && break
    if "$candidate" -c 'import sklearn' 2>/dev/null; then python=$candidate; fi
done
threads=${THREADS:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bench/bench_project" --threads "$threads" --rounds "${ROUNDS:-7}" --json "$work/gnomon.json"
if [ -n "$python" ]; then
    "$python" bench/cpu/project_sklearn.py --threads "$threads" --json "$work/sklearn.json"
else
    echo "no Python with scikit-learn: its projections are left out" >&2
    python=python3
fi

mkdir -p bench/records
"$python" - "$work" "$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
    "$(git diff --quiet HEAD 2>/dev/null && echo clean || echo changed)" <<'PY'
import datetime, json, pathlib, platform, re, sys

work, commit, state = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
result = {
    "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    "commit": commit,
    "tree": state,
    "cpu": cpu.group(1).strip() if cpu else platform.machine(),
    "gnomon": json.loads((work / "gnomon.json").read_text()),
}
peer = work / "sklearn.json"
if peer.exists():
    result["sklearn"] = json.loads(peer.read_text())
    ours = {(r["k"], s["operator"]): s["ms"]
            for r in result["gnomon"]["results"] for s in r["sketches"]}
    pairs = {"GaussianRandomProjection": "gaussian", "SparseRandomProjection": "very-sparse"}
    print("\nbeside scikit-learn:")
    for r in result["sklearn"]["results"]:
        kind = pairs[r["projection"]]
        ms = ours.get((r["k"], kind))
        if ms:
            r["transform_over_gnomon"] = round(r["transform_ms"] / ms, 2)
            r["fit_transform_over_gnomon"] = round((r["fit_ms"] + r["transform_ms"]) / ms, 2)
            print(f"  {kind}, k = {r['k']}: its transform takes {r['transform_over_gnomon']:.1f} times "
                  f"as long, fit and transform {r['fit_transform_over_gnomon']:.1f} times")
pathlib.Path("bench/records/project-cpu.json").write_text(json.dumps(result, indent=1) + "\n")
print("written to bench/records/project-cpu.json")
PY

# Peak memory under a limit, on files larger than it.
"$python" bench/cpu/memory.py "$build/bin/gnomon" --out bench/records/memory-cpu.json

"$python" bench/cpu/svd.py "$build/libgnomon.so" --output bench/records/svd-cpu.json
"$python" bench/cpu/lstsq.py "$build/libgnomon.so" --output bench/records/lstsq-cpu.json
"$python" bench/cpu/hosvd.py "$build/libgnomon.so" --output bench/records/hosvd-cpu.json

# The Python package's estimators beside scikit-learn's.
GNOMON_LIBRARY=$build/libgnomon.so PYTHONPATH=bindings/python "$python" bench/cpu/python.py -o bench/records/python-cpu.json
