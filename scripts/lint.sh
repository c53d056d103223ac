#!/usr/bin/env bash
# Formatting, static analysis and shell scripts. Needs a configured build folder.
# usage: lint.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "${1:?usage: lint.sh BUILD_FOLDER}" && pwd)
cd "$(dirname "$0")/.."
failed=0

scripts/sources.sh | xargs clang-format-14 --style=file --dry-run --Werror || failed=1

# a suppression of a file that has moved would say nothing, until the finding comes back
sed -n 's|^[a-zA-Z]*:\*/||p' scripts/cppcheck.txt | grep -v '^\*/' | while read -r path; do
    git ls-files --error-unmatch "src/$path" >/dev/null 2>&1 || { echo "scripts/cppcheck.txt: no file src/$path"; exit 1; }
done || failed=1

cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning,performance \
    --std=c11 --library=posix --suppressions-list=scripts/cppcheck.txt \
    --file-filter="$PWD/src/*" --file-filter="$PWD/cli/*" \
    -j "$(nproc)" --project="$build/compile_commands.json" || failed=1

git ls-files -- '*.sh' .ci/run | xargs shellcheck || failed=1

[ "$failed" -eq 0 ] && echo "lint: clean"
exit "$failed"
