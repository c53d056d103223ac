# a join of more pairs than the library hands over at once, rows split between batches, stopped in
# every batch and resumed: the bytes of one that was never stopped
. "$TESTS/lib.sh"
$PYTHON - << 'END'
import random, struct
random.seed(5)
n, d = 600, 2
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (n, d)
header += " " * (-(10 + len(header) + 1) % 64) + "\n"
points = [random.random() for _ in range(n * d)]
open("points.npy.own", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                                   + struct.pack("<%df" % len(points), *points))
END
join="gnomon join points.npy.own --threshold 2 --counts counts.csv --clusters clusters.csv"
$join -o want.csv 2>&1 | sed 's/, exactly//'
mv counts.csv want-counts.csv
mv clusters.csv want-clusters.csv
# KiB that FILE.pairs may take: each run ends in the batch after the one where the last run ended
limit=800 runs=1
until (ulimit -f $limit; trap '' XFSZ; $join -o pairs.npy --checkpoint state --quiet 2> why); do
    [ $runs -gt 9 ] && { cat why; break; }
    $PYTHON -c 'import json; s = json.load(open("state")); print(s["rows_done"], "rows,", s["pairs"], "pairs kept")'
    limit=$((limit + 1536)) runs=$((runs + 1))
done > ends
cat ends
$PYTHON - << 'END'
# what is kept is complete rows
for line in open("ends"):
    rows, _, pairs, *_ = line.split()
    rows = int(rows)
    assert int(pairs) == sum(599 - i for i in range(rows)), line
END
$join -o want.npy --quiet
cmp pairs.npy want.npy && cmp counts.csv want-counts.csv && cmp clusters.csv want-clusters.csv && echo "the same"
