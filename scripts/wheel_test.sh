#!/usr/bin/env bash
# Tests the wheel in a fresh virtual environment, which has the wheel, what it requires and pytest: no OpenBLAS but the
# wheel's own, and nothing of this checkout. Ends with 'N passed, N failed'.
# usage: wheel_test.sh [PYTHON...]      default: python3
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=("$PWD"/dist/gnomon-*.whl)
if [ "${#wheels[@]}" -ne 1 ] || [ ! -f "${wheels[0]}" ]; then
    echo "wheel_test.sh: dist must hold one wheel of gnomon"
    exit 1
fi
unset GNOMON_LIBRARY GNOMON_BLAS PYTHONPATH # the wheel's own are to be found
most=15000000
size=$(stat -c %s "${wheels[0]}")
[ "$size" -le "$most" ] || { echo "wheel_test.sh: the wheel has $size bytes, more than $most"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- python3
passed=0
failed=0
for python; do
    rm -rf "$work/venv"
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" install -q "${wheels[0]}" pytest
    # The example of tocsr needs SciPy, which this environment lacks on purpose.
    status=0
    (cd "$work" && GNOMON_COMMAND="$work/venv/bin/gnomon" "$work/venv/bin/python" -m pytest -q \
        -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors -k 'not tocsr' --pyargs gnomon) > "$work/log" 2>&1 || status=$?
    tail -n 40 "$work/log"
    "$work/venv/bin/python" -c 'import gnomon; print("BLAS:", gnomon.svd_blas(), "; library:", gnomon.library_path)' |
        tee "$work/blas"
    grep -q 'BLAS: .*scipy_openblas' "$work/blas" || status=1
    grep -q "library: $work/venv" "$work/blas" || status=1
    "$work/venv/bin/gnomon" info > /dev/null || status=1
    p=$(sed -n 's/^\([0-9]*\) passed.*/\1/p; s/.* \([0-9]*\) passed.*/\1/p' "$work/log" | tail -n 1)
    passed=$((passed + ${p:-0}))
    [ "$status" -eq 0 ] || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
