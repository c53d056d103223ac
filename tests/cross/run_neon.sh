#!/usr/bin/env bash
# Builds the core for 64-bit ARM and runs its unit tests under qemu, at the NEON level
# and forced down to the portable one; or only the tests named, which go through both themselves.
# usage: run_neon.sh BUILD_FOLDER [TEST...]      as in run_neon.sh build-neon test_digests
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?usage: run_neon.sh BUILD_FOLDER [TEST...]}
shift
cmake --preset neon -S "$root" -B "$build" >/dev/null
if [ $# -gt 0 ]; then
    cmake --build "$build" --target "$@"
    "$root/scripts/check.sh" "$build" -R "^unit\\.($(IFS='|' && echo "$*"))\$"
    exit
fi
cmake --build "$build"
# Failing allocations are the same on every processor, and dear under emulation.
"$root/scripts/check.sh" "$build" -E 'project_faults|lsh_(hash|tune|index)'
# The tests of kernels, digests and bits go through the levels themselves.
GNOMON_ISA=portable "$root/scripts/check.sh" "$build" -E 'kernels|digests|lsh|hosvd|project_(bits|faults|adjoint)'
