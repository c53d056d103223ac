. "$TESTS/lib.sh"
for kind in $kinds; do
    gnomon operator --operator $kind -k 12 -D 40 --seed 7 --describe > $kind.json
    cat $kind.json
    gnomon operator --load-operator $kind.json -o a.npy
    gnomon operator --operator $kind -k 12 -D 40 --seed 7 -o b.npy --save-operator again.json
    cmp a.npy b.npy && cmp $kind.json again.json
    gnomon operator --load-operator - --describe < $kind.json | cmp - $kind.json
done
gnomon operator --operator very-sparse -k 2 -D 3 --json | "$PYTHON" -c '
import json, sys
report = json.load(sys.stdin)
assert report["descriptor"]["density"] == 1 / 3**0.5 and report["descriptor"]["kind"] == "very-sparse"
assert abs(report["fill"] - 3**-0.5) < 1e-12 and report["granule"] >= 1 and report["isa"]'
