#!/usr/bin/env bash
# Builds what runs on a GPU, tests it there, and runs every GPU benchmark: tables on standard
# output, one JSON file a program in the results folder.
# usage: gpu.sh [RESULTS_FOLDER]      the environment:
#   PREBUILT  a folder with the programs and libgnomon_cuda.so, for machines without a compiler
#   SKIP      'tests' or 'bench' leaves those out
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
results=${1:-$root/bench/records/gpu}
mkdir -p "$results"
results=$(cd "$results" && pwd)
failed=0

if [ -n "${PREBUILT:-}" ]; then
    programs=$(cd "$PREBUILT" && pwd)
else
    cmake --preset gpu -S "$root" >/dev/null || exit 1
    cmake --build "$root/build-gpu" || exit 1
    programs=$root/build-gpu/gpu
fi
GNOMON_COMMIT=${GNOMON_COMMIT:-$(git -C "$root" describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)}
export GNOMON_COMMIT GNOMON_PLUGIN_DIR=$programs

# run NAME COMMAND...: with its time, and no end to the others when it fails
run() {
    local name=$1 started=$SECONDS status=0
    shift
    echo "=== $name"
    timeout "${LIMIT:-600}" "$@" || status=$?
    echo "=== $name: status $status in $((SECONDS - started)) s"
    [ "$status" -eq 0 ] || failed=$((failed + 1))
}

if [ "${SKIP:-}" != tests ]; then
    run 'GPU beside CPU' "$programs/test_cuda"
    if [ -x "$programs/gnomon" ] && python3 -c 'import numpy' 2>/dev/null; then
        work=$(mktemp -d)
        run 'the command' python3 "$root/tests/cuda/command.py" "$programs/gnomon" "$work" \
            rademacher gaussian 'gaussian fp16' achlioptas very-sparse sjlt srht block kronecker
        run 'texts on GPU and CPU' python3 "$root/tests/cuda/dedup/dedup.py" "$programs/gnomon" "$work"
        rm -rf "$work"
    else
        echo 'the command, or a Python with NumPy, is not here: left out'
    fi
    if [ -e "$programs/libgnomon.so.0" ] && python3 -c 'import numpy, torch' 2>/dev/null; then
        run 'the Python package' env GNOMON_LIBRARY="$programs/libgnomon.so.0" python3 "$root/tests/cuda/python_gpu.py"
    else
        echo 'libgnomon as a shared library, or a Python with NumPy and PyTorch, is not here: left out'
    fi
    for family in condition dense factor gemm kronecker filter; do
        run "family $family" "$programs/test_$family"
        GNOMON_CUDA_ARCH=80 run "family $family by mma.sync" "$programs/test_$family"
    done
    for family in adjoint generic sjlt srht very_sparse; do
        run "family $family" "$programs/test_$family"
    done
    run 'sparse rows' "$programs/test_csr"
    run 'singular values' "$programs/test_svd"
    GNOMON_CUDA_ARCH=80 run 'singular values by mma.sync' "$programs/test_svd"
    run 'tensors' "$programs/test_hosvd"
    GNOMON_CUDA_ARCH=80 run 'tensors by mma.sync' "$programs/test_hosvd"
    run 'joins' "$programs/test_join"
    GNOMON_CUDA_ARCH=80 run 'joins by mma.sync' "$programs/test_join"
    run 'searches' "$programs/test_search"
    GNOMON_CUDA_ARCH=80 run 'searches by mma.sync' "$programs/test_search"
    run 'hashing' "$programs/test_lsh"
    GNOMON_CUDA_ARCH=80 run 'hashing by chains' "$programs/test_lsh"
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck initcheck; do
            GNOMON_TEST_REDUCED=1 run "compute-sanitizer $tool, reduced" compute-sanitizer \
                --tool "$tool" --error-exitcode 99 --print-limit 20 "$programs/test_cuda"
            for family in generic sjlt very_sparse; do
                [ "$tool $family" != 'racecheck very_sparse' ] || continue # too slow
                GNOMON_TEST_REDUCED=1 run "compute-sanitizer $tool, $family" compute-sanitizer \
                    --tool "$tool" --error-exitcode 99 --print-limit 20 "$programs/test_$family"
            done
        done
        for tool in memcheck racecheck; do
            GNOMON_TEST_REDUCED=1 run "compute-sanitizer $tool, sparse rows" compute-sanitizer \
                --tool "$tool" --error-exitcode 99 --print-limit 20 "$programs/test_csr"
        done
        for family in dense gemm kronecker; do # the other tools don't follow asynchronous copies
            GNOMON_TEST_REDUCED=1 run "compute-sanitizer memcheck, $family" compute-sanitizer \
                --error-exitcode 99 --print-limit 20 "$programs/test_$family"
        done
    else
        echo 'compute-sanitizer is not here: left out'
    fi
fi
if [ "${SKIP:-}" != bench ]; then
    for program in "$programs"/*; do
        name=$(basename "$program")
        case $name in test_* | gnomon | *.so) continue ;; esac
        if ! [ -x "$program" ] || ! [ -f "$program" ]; then continue; fi
        if [ "$name" = cost ]; then # two files: the model, and how good its choices are
            run cost "$program" --device cuda --model "$results/cost.json" --records "$results/choice.json"
        else
            run "$name" "$program" --json "$results/$name.json"
        fi
    done
fi
if [ "${SKIP:-}" != bench ]; then
    if python3 -c 'import torch' 2>/dev/null; then
        run svd_torch python3 "$root/bench/gpu/svd_torch.py" --json "$results/svd_torch.json"
        run search_torch python3 "$root/bench/gpu/search_torch.py" --json "$results/search_torch.json"
        if [ -e "$programs/libgnomon.so.0" ] && python3 -c 'import scipy' 2>/dev/null; then
            run csr env GNOMON_LIBRARY="$programs/libgnomon.so.0" PYTHONPATH="$root/bindings/python" \
                python3 "$root/bench/gpu/csr.py" --json "$results/csr.json"
        fi
    else
        echo 'no Python with PyTorch: its SVD and search are left out'
    fi
fi
echo "$failed failed; results in $results"
[ "$failed" -eq 0 ]
