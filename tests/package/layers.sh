#!/usr/bin/env bash
# The arrows of docs/internals/architecture.md point one way: each room includes only what it may. No folder is
# without a rule, and none is too full.
# usage: layers.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"
bad=0
rooms=

# room FOLDER ALLOWED: the quoted includes of a folder begin with one of ALLOWED
room() {
    local found
    rooms+=$1$'\n'
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
room src/points 'points/|base/'
room src/operator 'operator/|points/|base/'
room src/cpu 'cpu/|operator/|base/|kernels\.h'
room src/project 'project/|operator/|points/|base/|kernels\.h|backend\.h'
room src/gemm 'gemm/|project/|operator/|points/|base/|kernels\.h|backend\.h'
room src/quality 'quality/|operator/|points/|base/'
room src/metric 'metric/|points/|base/|search_kernels\.h|kernels\.h'
room src/search 'search/|metric/|project/|points/|base/|kernels\.h|backend\.h'
room src/join 'join/|comm/|metric/|search/|lsh/|project/|operator/|points/|base/|kernels\.h|backend\.h'
room src/comm 'comm/|search/|base/'
room src/mpi 'comm/plugin\.h'
room src/choose 'choose/|operator/|base/'
room src/linalg 'linalg/|base/|kernels\.h'
room src/svd 'svd/|comm/|linalg/|gemm/|project/|operator/|points/|base/|kernels\.h|backend\.h'
room src/lsh 'lsh/|comm/|metric/|search/|gemm/|project/|operator/|points/|io/|base/|kernels\.h|backend\.h'
room src/inverted 'inverted/|lsh/|metric/|search/|points/|io/|base/|kernels\.h'
room src/rabitq 'rabitq/|lsh/|metric/|search/|operator/|points/|io/|base/|kernels\.h'
room src/lstsq 'lstsq/|svd/|linalg/|project/|operator/|points/|base/'
room src/hosvd 'hosvd/|svd/|linalg/|gemm/|project/|operator/|points/|base/|backend\.h'
room src/io 'io/|points/|base/'
room src/dedup 'dedup/|comm/|io/|base/|backend\.h'
room src/devices 'devices/|(gemm|hosvd|join|lsh|project|search|svd)/job\.h|dedup/device/job\.h|points/view\.h|base/'
# Inside the plugin, beside what it takes of the core: the jobs of the same domain, operators, base.
core='operator/|project/job\.h|base/|backend\.h'
room src/cuda/runtime "cuda/runtime/|$core"
room src/cuda/linalg "cuda/(linalg|runtime)/|$core"
room src/cuda/sets "cuda/(sets|runtime)/|$core"
room src/cuda/dedup "cuda/(dedup|runtime)/|dedup/device/job\.h|$core"
room src/cuda/filter "cuda/(filter|runtime)/|$core"
room src/cuda/project "cuda/(project|runtime)/|$core"
room src/cuda/gemm "cuda/(gemm|project|runtime)/|gemm/job\.h|$core"
room src/cuda/svd "cuda/(svd|gemm|linalg|project|runtime)/|svd/job\.h|$core"
room src/cuda/hosvd "cuda/(hosvd|svd|gemm|linalg|project|runtime)/|hosvd/job\.h|$core"
room src/cuda/lsh "cuda/(lsh|gemm|project|runtime)/|lsh/job\.h|$core"
room src/cuda/search "cuda/(search|filter|sets|runtime)/|search/job\.h|$core"
room src/cuda/join "cuda/(join|search|lsh|filter|sets|runtime)/|join/job\.h|metric/jaccard\.h|$core"
# The command: what its verbs share lies at the top, and no verb includes another's.
room cli 'cli\.h|options\.h|verbs/|base/utf8\.h'
for verb in project factor join neighbors dedup; do
    room "cli/verbs/$verb" "cli\.h|verbs/$verb/"
done
room cli/verbs/index 'cli\.h|verbs/(index|neighbors)/'
# Nothing lies outside the rooms above.
for folder in src/*/ src/cuda/*/ cli/verbs/*/; do
    [ "$folder" = src/cuda/ ] || grep -qxF "${folder%/}" <<<"$rooms" || {
        echo "$folder: no rule says what it may include"
        bad=1
    }
done
# A folder that holds more than some 25 files is to be split.
found=$(find src cli include examples tests bench/cpu bench/gpu bench/papers -type f ! -path '*/corpus/*' ! -name '*.pyc' -printf '%h\n' |
    sort | uniq -c | awk '$1 > 28 {print $2 ": " $1 " files; at most 28"}')
if [ -n "$found" ]; then
    echo "$found"
    bad=1
fi
# Where a step runs is an argument (base/device.h): no job changes what the context asks for.
found=$(grep -rnE --include='*.[ch]' 'ctx->(device|plugin)\b' src | grep -vE '^src/base/') || true
if [ -n "$found" ]; then
    echo "a context's device is src/base's alone:"
    echo "$found"
    bad=1
fi
# What a struct_size means is src/base/options.c's alone: elsewhere one is set, to a sizeof, and no more.
found=$(grep -rn --include='*.[ch]' --include='*.cu' --include='*.cuh' 'struct_size' src |
    grep -vE '^src/base/options\.[ch]:|\.struct_size = sizeof') || true
if [ -n "$found" ]; then
    echo "a struct_size is read outside src/base/options.c:"
    echo "$found"
    bad=1
fi
exit "$bad"
