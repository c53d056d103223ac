#!/usr/bin/env bash
# The arrows of docs/architecture.md point one way: each room includes only what it may.
# usage: layers.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"
bad=0

# room FOLDER ALLOWED: the quoted includes of a folder begin with one of ALLOWED
room() {
    local found
    [ -d "$1" ] || return 0
    found=$(grep -rnE --include='*.[ch]' --include='*.inc' --include='*.cu' --include='*.cuh' \
        '^ *# *include "' "$1" | grep -vE "include \"($2)") || true
    if [ -n "$found" ]; then
        echo "$1 may include only: ${2//|/, }"
        echo "$found"
        bad=1
    fi
}

room src/base 'base/|backend\.h'
room src/operator 'operator/|base/'
room src/cpu 'cpu/|operator/|base/|kernels\.h'
room src/project 'project/|operator/|base/|kernels\.h|backend\.h'
room src/gemm 'gemm/|project/|operator/|base/|kernels\.h|backend\.h'
room src/quality 'quality/|operator/|base/'
room src/search 'search/|project/|quality/|base/|kernels\.h|backend\.h'
room src/join 'join/|search/|lsh/|svd/|project/|operator/|quality/|base/|kernels\.h|backend\.h'
room src/choose 'choose/|operator/|base/'
room src/svd 'svd/|project/|operator/|quality/|base/|backend\.h'
room src/lsh 'lsh/|search/|project/|operator/|quality/|io/|base/|kernels\.h|backend\.h'
room src/lstsq 'lstsq/|svd/|project/|operator/|quality/|base/'
room src/hosvd 'hosvd/|svd/|gemm/|project/|operator/|quality/|base/|backend\.h'
room src/io 'io/|base/'
room src/cuda 'cuda/|project/|gemm/|svd/|hosvd/|lsh/|search/|join/|operator/|base/|backend\.h'
room cli '[a-z_]+\.(h|inc)"'
exit "$bad"
