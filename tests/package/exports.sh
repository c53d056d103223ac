#!/usr/bin/env bash
# The shared library exports just what the public headers declare.
# usage: exports.sh LIBRARY INCLUDE_FOLDER
set -euo pipefail
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort)
[ -n "$exported" ] || { echo "$1 exports nothing"; exit 1; }
if strangers=$(grep -v '^gnomon_' <<<"$exported"); then
    echo "exported without the prefix gnomon_: $strangers"
    exit 1
fi
# Declarations begin with GNOMON_API; the function's name is the last word before the '('.
declared=$(cat "$2"/gnomon/*.h | grep -v '^#' | tr '\n' ' ' | grep -o 'GNOMON_API [^(;]*(' |
    sed 's/.*[ *]\([a-z0-9_]*\)($/\1/' | sort -u)
if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
    echo "declared (<) and exported (>) differ:"
    echo "$difference"
    exit 1
fi
