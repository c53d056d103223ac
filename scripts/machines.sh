#!/usr/bin/env bash
# Runs tests as other machines would: what calls BLAS with OpenBLAS's kernels of other processors, what has
# kernels of its own at every instruction set level of this processor but the best, which 'make check' runs, and the
# command's tests with one processor, another terminal and another home folder. Ends with 'N passed, N failed'.
# usage: machines.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "${1:?usage: machines.sh BUILD_FOLDER}" && pwd)
cd "$(dirname "$0")/.."
passed=0
failed=0
log=$(mktemp)
home=$(mktemp -d)
trap 'rm -rf "$log" "$home"' EXIT

# run WHAT COMMAND...: adds up the summary of scripts/check.sh
run() {
    local what=$1 status=0 f started=$SECONDS
    shift
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || sed 's/^/    /' "$log"
    passed=$((passed + $(sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p' "$log" | tail -n 1)))
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p' "$log" | tail -n 1)
    [ "$status" -eq 0 ] || [ "${f:-0}" -gt 0 ] || f=1
    failed=$((failed + f))
    echo "--- $what: $((SECONDS - started)) s"
}

blas='svd|lstsq|examples'
kernels='project|finite|gemm|distortion|search|neighbors|join|lsh|index'
# These go through the levels themselves, fail every allocation in turn, count what hashing found in many joins, write
# files or send messages: no level changes that.
levels='isa|kernels|digests|levels|project_(bits|adjoint)|faults|choose|join_lsh'
levels+='|join_out|stream_csr|gemm_memory|lsh_(charge|tune|file)|comm_'

cores="Nehalem Haswell" # Zen's are Haswell's
grep -qw avx512dq /proc/cpuinfo && cores="$cores SkylakeX"
slow='^$'
for core in $cores; do
    run "OPENBLAS_CORETYPE=$core" env "OPENBLAS_CORETYPE=$core" \
        scripts/check.sh "$build" -R "^(unit|cli)\\..*($blas)" -E "$slow"
    slow='test_hosvd' # more than a minute of small factorisations: with the kernels that differ most from the best
done

# The command names the levels that this processor has; the last is the one it takes by itself.
names=$(GNOMON_ISA=none "$build/bin/gnomon" info 2>&1 | sed -n 's/.*available here: //p' | tr -d , || true)
[ -n "$names" ] || {
    echo "machines.sh: the command does not name its instruction set levels" >&2
    exit 1
}
for level in ${names% *}; do
    [ "$level" != "$names" ] || continue
    case $level in avx512*) kernels='gemm|search|neighbors|join|index' ;; esac # what the levels above have kernels of their own for
    run "GNOMON_ISA=$level" env "GNOMON_ISA=$level" scripts/check.sh "$build" -R "^(unit|cli)\\..*($kernels)" -E "$levels"
done

# What takes long there: large texts, many files, kills.
run "one processor, another terminal, another home" env TERM=dumb COLUMNS=40 HOME="$home" TZ=Asia/Tokyo \
    OPENBLAS_NUM_THREADS=1 taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" \
    scripts/check.sh "$build" -R '^cli\.' -E 'checkpoint|dedup|pieces|many-members|interrupt|product'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
