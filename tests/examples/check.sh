#!/usr/bin/env bash
# Runs the examples on a few points, through one format after the other.
# usage: check.sh CONVERT NORMS NEIGHBORS INDEX JOIN
set -euo pipefail
convert=$1 norms=$2 neighbors=$3 index=$4 join=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

printf 'x,y,z\n3,4,0\n0,0,0\n1.5,0,2\n' > a.csv
printf '5\n0\n2.5\n' > expected
from=a.csv
for to in b.npy b.mtx b.tsv b.svm c.mtx b.csv; do
    "$convert" $from $to
    "$norms" $to | diff - expected
    from=$to
done
diff <(tail -n +2 a.csv) b.csv
"$norms" - < b.tsv | diff - expected

printf '1,2\n3,x\n' > bad.csv
if "$convert" bad.csv b.npy 2> words; then
    echo "a bad file was taken" >&2
    exit 1
fi
grep -q "line 2, column 2: 'x' is not a number" words
"$norms" b.npy | diff - expected # the target is as it was

seq 0 9 | sed 's/.*/&,0/' > line.csv
printf '2,0\n' > query.csv
"$neighbors" line.csv query.csv | diff - <(printf '0 2 0\n0 1 1\n0 3 1\n0 0 2\n0 4 2\n')
if "$neighbors" line.csv a.csv 2> words; then exit 1; fi
grep -q 'base has 2 dimensions and queries 3' words

printf '0,0\n9,9\n0,1\n0,2\n' > near.csv
"$join" near.csv 1 | diff - <(printf '0 2 1\n2 3 1\n0 is like 2\n3 is like 2\n')
if "$join" near.csv -1 2> words; then exit 1; fi
grep -q 'threshold is -1' words

"$index" line.csv query.csv line.lsh | diff - <(printf '0 2 0\n0 1 1\n')
if "$index" line.csv a.csv line.lsh 2> words; then exit 1; fi
grep -q 'queries has 3 columns; the hash functions are for 2' words
