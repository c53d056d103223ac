#!/usr/bin/env bash
# Builds the core for 64-bit ARM and runs its unit tests under qemu, at the NEON level
# and forced down to the portable one.
# usage: run_neon.sh BUILD_FOLDER
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?usage: run_neon.sh BUILD_FOLDER}
cmake -S "$source_dir" -B "$build" -G Ninja -DGNOMON_CORE_ONLY=ON \
    -DCMAKE_TOOLCHAIN_FILE="$source_dir/cmake/toolchain-aarch64.cmake" >/dev/null
cmake --build "$build"
jobs=$(nproc)
ctest --test-dir "$build" --output-on-failure -j "$jobs"
GNOMON_ISA=portable ctest --test-dir "$build" --output-on-failure -j "$jobs"
