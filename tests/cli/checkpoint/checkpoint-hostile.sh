# checkpoints that were damaged or made up: refused, whatever they say
. "$TESTS/lib.sh"
cp -L base.npy own.npy
keep() {
    rm -f cp cp.*
    (ulimit -f 200; trap '' XFSZ; gnomon join own.npy --threshold 7 --recall 0.9 --method lsh --checkpoint cp --quiet 2> /dev/null)
    cp cp cp.good
    cp cp.pairs cp.pairs.good
}
again() {
    gnomon join own.npy --threshold 7 --recall 0.9 --method lsh --counts counts.csv -o pairs.csv --checkpoint cp --quiet 2>&1
    echo "exit $?"
    ls counts.csv pairs.csv 2> /dev/null
    cp --remove-destination cp.good cp
    cp --remove-destination cp.pairs.good cp.pairs
}
keep
# $1: Python that changes s (the state) and pairs (a list of [i, j, distance]); $2: with its checksum
cat > forge.py << 'END'
import json, struct, sys
M = 2**64 - 1
def mix(h, w):
    h = ((h ^ w) + 0x9e3779b97f4a7c15) & M
    h = ((h ^ h >> 30) * 0xbf58476d1ce4e5b9) & M
    return h ^ h >> 31
s = json.load(open("cp"))
data = open("cp.pairs", "rb").read()
head, pairs = data[:32], [list(p) for p in struct.iter_unpack("<qqd", data[32:])]
def checksum():
    h = 0
    for c in json.dumps(s["identity"], sort_keys=True, separators=(",", ":")).encode():
        h = mix(h, c)
    for p in pairs[:s["pairs"]]:
        for w in struct.unpack("<QQQ", struct.pack("<qqd", *p)):
            h = mix(h, w)
    return "%016x" % mix(mix(h, s["pairs"] & M), s["rows_done"] & M)
assert checksum() == s["checksum"]
exec(sys.argv[1])
if len(sys.argv) > 2:
    s["checksum"] = checksum()
json.dump(s, open("cp", "w"))
open("cp.pairs", "wb").write(head + b"".join(struct.pack("<qqd", *p) for p in pairs))
END
for change in 'pairs[5][1] = 2**40' 'pairs[5][2] = float("nan")' 'pairs[5][2] = 7.5' 'pairs[5][0] = -1' \
    'pairs[5][1] = 300' 'pairs[5][0], pairs[5][1] = pairs[5][1], pairs[5][0]' 'pairs[6] = pairs[5]' \
    's["pairs"] += 1' 's["pairs"] = 2**60' 's["pairs"] = -1' 's["rows_done"] = 301' 's["rows_done"] = -1' \
    's["rows_done"] = 1' 's["pairs"] = 2.5' 's["identity"] = 3' 's["gnomon join"] = 1' \
    's["gnomon join"] = "base.npy with itself by l2 7"' 's.clear()' 'head = b"x" * 32' 'head = b""; pairs = []'; do
    echo "# $change, with a new checksum"
    $PYTHON forge.py "$change" with 2> /dev/null || $PYTHON forge.py "$change"
    again
done
# what could be true is told by the checksum alone
for change in 'pairs[5][2] *= 0.5' 's["pairs"] = 0' 's["rows_done"] += 1' 'pairs.clear(); s["pairs"] = 0; s["rows_done"] = 300'; do
    echo "# $change"
    $PYTHON forge.py "$change"
    again
done
echo "# not JSON, nothing, too long"
echo '{"gnomon join"' > ./cp; again
: > ./cp; again
head -c 2000000 /dev/zero | tr '\0' ' ' > ./cp; again
# no link is followed, and nothing but a plain file is read
echo "# links"
echo untouched > theirs
ln -sf theirs cp; again
ln -sf theirs cp.pairs; again
ln -sf theirs cp.new; again
rm cp.new; mkfifo fifo; mv fifo cp.new; again; rm cp.new
rm cp.pairs; ln -sf nowhere cp; again
ls nowhere 2> /dev/null
cat theirs
# the good one goes on
$PYTHON forge.py pass
gnomon join own.npy --threshold 7 --recall 0.9 --method lsh -o want.csv --quiet
gnomon join own.npy --threshold 7 --recall 0.9 --method lsh -o pairs.csv --checkpoint cp --quiet; cmp pairs.csv want.csv && echo "the same"
