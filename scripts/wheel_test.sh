#!/usr/bin/env bash
# Tests the wheel in a fresh virtual environment, which has the wheel, what it requires and pytest: no OpenBLAS but the
# wheel's own, and nothing of this checkout. Where the wheel of gnomon-cuda13 lies beside it, that one's plugin must be
# found once it is installed, and no longer when it is not. Ends with 'N passed, N failed'.
# usage: wheel_test.sh [PYTHON...]      default: python3
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=("$PWD"/dist/gnomon-*.whl)
if [ "${#wheels[@]}" -ne 1 ] || [ ! -f "${wheels[0]}" ]; then
    echo "wheel_test.sh: dist must hold one wheel of gnomon"
    exit 1
fi
plugins=("$PWD"/dist/gnomon_cuda13-*.whl)
unset GNOMON_LIBRARY GNOMON_BLAS GNOMON_PLUGIN_DIR PYTHONPATH # the wheel's own are to be found
most=15000000
size=$(stat -c %s "${wheels[0]}")
[ "$size" -le "$most" ] || { echo "wheel_test.sh: the wheel has $size bytes, more than $most"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- python3
passed=0
failed=0

# The loader takes an empty entry of a run path for the current folder.
run_paths() {
    local file paths
    while read -r file; do
        paths=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/\2/p')
        case ":$paths:" in
        "::") ;; # none
        *::*) echo "wheel_test.sh: $file has the run path '$paths' with an empty entry"; return 1 ;;
        *) echo "$file: run path $paths" ;;
        esac
    done < <(find "$work/venv" -path '*gnomon*' -type f \( -perm -u+x -o -name '*.so*' \))
}

# What Python and the command say of the GPU must hold the text. Where there is a GPU and the plugin, the work is done and
# the path is looked at.
says() {
    local python command said
    python=$("$work/venv/bin/python" -c '
import os
import gnomon
try:
    gnomon.sketch([[1.0, 2.0]], 2, device="cuda")
    print("worked by", os.environ["GNOMON_PLUGIN_DIR"] + "/libgnomon_cuda.so")
except gnomon.DeviceError as error:
    print("DeviceError:", error)
') || return 1
    command=$("$work/venv/bin/gnomon" info | grep '^plugins') || return 1
    for said in "$python" "$command"; do
        echo "$said"
        grep -q -F -e "$1" <<< "$said" || { echo "wheel_test.sh: that should hold '$1'"; return 1; }
    done
}

# The plugin in its package: absent, installed, overruled by a folder of the user's, absent again.
plugin() {
    says "no libgnomon_" || return 1
    "$work/venv/bin/pip" install -q "${plugins[0]}" || return 1
    says "gnomon_cuda13/libgnomon_cuda.so" || return 1
    mkdir -p "$work/empty"
    GNOMON_PLUGIN_DIR=$work/empty says "$work/empty (GNOMON_PLUGIN_DIR)" || return 1
    "$work/venv/bin/pip" uninstall -q -y gnomon-cuda13 || return 1
    says "no libgnomon_"
}

# The package's types, as a user's checker finds them in the wheel.
types() {
    "$work/venv/bin/pip" install -q mypy || return 1
    local generics=--disallow-any-generics
    # Before NumPy 2.3, the last for Python 3.10, an ndarray without arguments is no complete type.
    "$work/venv/bin/python" -c 'import numpy; raise SystemExit(tuple(map(int, numpy.__version__.split(".")[:2])) < (2, 3))' ||
        generics=--allow-any-generics
    (cd "$work" && "$work/venv/bin/mypy" --config-file "$OLDPWD/bindings/python/mypy.ini" "$generics" -p gnomon)
}

for python; do
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" install -q "${wheels[0]}" pytest
    # The examples of tocsr and SparseIndex need SciPy, which this environment lacks on purpose.
    status=0
    (cd "$work" && GNOMON_COMMAND="$work/venv/bin/gnomon" "$work/venv/bin/python" -m pytest -q \
        -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors -k 'not tocsr and not SparseIndex' --pyargs gnomon) > "$work/log" 2>&1 || status=$?
    tail -n 40 "$work/log"
    "$work/venv/bin/python" -c 'import gnomon; print("BLAS:", gnomon.svd_blas(), "; library:", gnomon.library_path)' |
        tee "$work/blas"
    grep -q 'BLAS: .*scipy_openblas' "$work/blas" || status=1
    grep -q "library: $work/venv" "$work/blas" || status=1
    "$work/venv/bin/gnomon" info > /dev/null || status=1
    run_paths || status=1
    extra=0
    if types; then extra=1; else status=1; fi
    if [ -f "${plugins[0]}" ]; then
        if plugin; then extra=$((extra + 1)); else status=1; fi
    fi
    p=$(sed -n 's/^\([0-9]*\) passed.*/\1/p; s/.* \([0-9]*\) passed.*/\1/p' "$work/log" | tail -n 1)
    passed=$((passed + ${p:-0} + extra))
    [ "$status" -eq 0 ] || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
