#!/usr/bin/env bash
# Names every C source of the project, one a line.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cu' '*.cuh'
