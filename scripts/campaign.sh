#!/usr/bin/env bash
# The campaign: hostile files, signals, failing calls, races and fuzzing against the command, for as long as told.
# CONTRIBUTING.md tells how; tests/campaign/ is the machinery.
#   scripts/campaign.sh [--seconds S] [--seed N] [--class NAME]... [--json FILE] ...   (--help tells all)
# BUILD names the folder of a build (default build-no-cuda), FUZZ that of the preset fuzz (default build-fuzz).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-no-cuda} fuzz=${FUZZ:-build-fuzz}
if [ ! -x "$build/bin/gnomon" ] || [ ! -f "$build/tests/campaign/faults.so" ]; then
    echo "$build holds no build: cmake --preset no-cuda && cmake --build --preset no-cuda" >&2
    exit 2
fi
python=python3
/usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null && python=/usr/bin/python3
exec "$python" tests/campaign/campaign.py --command "$build/bin/gnomon" --faults "$build/tests/campaign/faults.so" \
    --fuzzers "$fuzz/tests/fuzz" --work "${TMPDIR:-/tmp}/gnomon-campaign" "$@"
