#!/usr/bin/env bash
# Builds the core for 64-bit ARM and runs its unit tests under qemu, at the NEON level
# and forced down to the portable one.
# usage: run_neon.sh BUILD_FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?usage: run_neon.sh BUILD_FOLDER}
cmake --preset neon -S "$root" -B "$build" >/dev/null
cmake --build "$build"
# Failing allocations are the same on every processor, and dear under emulation.
"$root/scripts/check.sh" "$build" -E 'project_faults|lsh_(hash|tune|index)'
# The tests of kernels, digests and bits go through the levels themselves.
GNOMON_ISA=portable "$root/scripts/check.sh" "$build" -E 'kernels|digests|lsh|hosvd|project_(bits|faults|adjoint)'
