#!/usr/bin/env bash
# Runs the tests of a build folder and ends with 'N passed, N failed'; further arguments
# go to ctest.
# usage: check.sh BUILD_FOLDER [CTEST_ARGUMENT...]
set -euo pipefail
build=$(cd "${1:?usage: check.sh BUILD_FOLDER}" && pwd)
shift
report=$build/Testing/report.xml
rm -f "$report"
# In a sanitized build a refused allocation must be an answer, as it is otherwise.
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1:detect_stack_use_after_return=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
status=0
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --timeout 600 --no-tests=error \
    --output-junit "$report" "$@" || status=$?

count() {
    sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -n 1
}
if [ ! -s "$report" ]; then
    echo "0 passed, 1 failed"
    exit 1
fi
tests=$(count tests) failed=$(count failures) skipped=$(count skipped) disabled=$(count disabled)
passed=$((tests - failed - skipped - disabled))
[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$status" -eq 0 ]
