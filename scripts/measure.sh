#!/usr/bin/env bash
# Takes the records of the CPU that docs/results/ is made of: the cost model, its choices, the (m, tau)
# model and joins in it, what --recall loses by its choices, the quality tables, Gaussian operators in low
# precision, a report's LSH pipeline, products of matrices. On a quiet machine: about twenty minutes on two cores.
# usage: measure.sh BUILD_FOLDER      the environment: THREADS (all cores), NAME (of the cost model)
set -euo pipefail
build=$(cd "${1:?usage: measure.sh BUILD_FOLDER}" && pwd)
cd "$(dirname "$0")/.."
threads=${THREADS:-$(nproc)}
results=bench/records
images=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz
python=python3 # that of Debian's NumPy, where it is
/usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null && python=/usr/bin/python3
points=2000
[ -e "$images" ] || { images=data/digits.npy; points=1797; }

"$build/bench/bench_cost" --threads "$threads" --name "${NAME:-cpu, AVX2 (Zen 3)}" \
    --model "$results/model-cpu-avx2.json" --records "$results/choice-cpu-avx2.json"
"$build/bench/bench_model" "$results/mtau-cpu.json" "$threads"
"$build/bench/bench_join_model" "$results/join-model-cpu.json"
"$python" bench/cpu/regret.py "$build/libgnomon.so" --output "$results/regret-cpu.json"
"$build/bench/bench_quality" "$results/quality.json" "$images" "$points"
"$build/bench/bench_low_precision" --json "$results/low-precision.json"
"$build/bench/bench_report" --json "$results/report-cpu.json"
"$build/bench/bench_gemm" --threads "$threads" --json "$results/gemm-cpu.json"
python3 scripts/results/ship_models.py
python3 scripts/results/make.py
