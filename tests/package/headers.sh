#!/usr/bin/env bash
# Each public header compiles alone, as strict C11, C17 and C++17, and twice over; as C++17 by g++ and clang++, where they are.
# Errors of a call begin a line.
# usage: headers.sh INCLUDE_FOLDER [FLAG...]      further flags for the compilers: -Werror in our presets
set -euo pipefail
cd "$1"
shift
# what can go wrong is found at a glance: a list, or a line of its own
if grep -nE '[^ */].* Errors:' gnomon/*.h; then
    echo "Errors: begins a line"
    exit 1
fi
mapfile -t compilers < <(for compiler in c++ g++ clang++ clang++-14; do
    command -v "$compiler" >/dev/null && readlink -f "$(command -v "$compiler")"
done | sort -u)
[ "${#compilers[@]}" -gt 0 ] || { echo "headers.sh: no C++ compiler"; exit 1; }
for header in gnomon.h gnomon/*.h; do
    text=$(printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header")
    for standard in c11 c17; do
        cc -std=$standard -pedantic -Wall -Wextra "$@" -I. -fsyntax-only -x c - <<<"$text"
    done
    for compiler in "${compilers[@]}"; do
        "$compiler" -std=c++17 -pedantic -Wall -Wextra "$@" -I. -fsyntax-only -x c++ - <<<"$text"
    done
done
