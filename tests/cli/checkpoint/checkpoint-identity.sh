# whatever the pairs depend on makes another join
. "$TESTS/lib.sh"
needs npz
$PYTHON - << 'END'
import os, random, struct, zipfile
random.seed(3)
def npy(n, d):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (n, d)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack("<%df" % (n * d), *[random.random() for _ in range(n * d)]))
with zipfile.ZipFile("two.npz", "w") as z:
    z.writestr("a.npy", npy(60, 4))
    z.writestr("b.npy", npy(60, 4))
open("raw", "wb").write(struct.pack("<480f", *[random.random() for _ in range(480)]))
open("text", "w").write("".join("%g,%g\n" % (random.random(), random.random()) for _ in range(60)))
deep = "/".join(["a" * 200] * 6)
os.makedirs(deep)
for name in "x", "y":
    open(deep + "/" + name + ".npy", "wb").write(npy(60, 4))
END
# keeps a join, then tries another with its checkpoint: $1, which is not $2
other() {
    rm -f cp cp.*
    (ulimit -f 20; trap '' XFSZ; gnomon join $1 --checkpoint cp --quiet 2> /dev/null) # KiB: the state, and not the pairs
    [ -e cp ] || echo "nothing kept"
    gnomon join $2 --checkpoint cp -o out.csv 2>&1 | sed "s|[0-9]\{9,\}\.[0-9]*|TIME|g; s|$PWD|.|g; s|a\{200\}|aaa|g"
    echo "exit ${PIPESTATUS[0]}"
}
other "two.npz:a --threshold 9" "two.npz:b --threshold 9"
other "raw --shape 120,4 --dtype f4 --threshold 9" "raw --shape 60,8 --dtype f4 --threshold 9"
other "raw --shape 120,4 --dtype f4 --threshold 9" "raw --shape 120,4 --dtype i4 --threshold 9"
other "text --format csv --threshold 9" "text --format csv --header --threshold 9"
deep=$(printf "a%.0s" {1..200}); deep=$deep/$deep/$deep/$deep/$deep/$deep
other "$deep/x.npy --threshold 9" "$deep/y.npy --threshold 9"
other "$deep/x.npy --threshold 9" "$deep/x.npy $deep/y.npy --threshold 9"
other "$deep/x.npy --threshold 9" "$deep/x.npy --threshold 9 --metric cosine"
# the same file, changed in place with its time set back, then replaced by one of the same time
raw="raw --shape 120,4 --dtype f4 --threshold 9"
rm cp cp.pairs
(ulimit -f 20; trap '' XFSZ; gnomon join $raw --checkpoint cp --quiet 2> /dev/null)
touch -r raw stamp
printf 'x' | dd of=raw bs=1 seek=150 conv=notrunc status=none
touch -r stamp raw
gnomon join $raw --checkpoint cp 2>&1 | sed "s|[0-9]\{9,\}\.[0-9]*|TIME|g"
cp -p raw new; mv new raw
gnomon join $raw --checkpoint cp 2>&1 | sed "s|[0-9]\{9,\}\.[0-9]*|TIME|g"
# the same file by another name is the same
rm cp cp.pairs
(ulimit -f 20; trap '' XFSZ; gnomon join raw --shape 120,4 --dtype f4 --threshold 9 --checkpoint cp --quiet 2> /dev/null)
ln -s raw link
try gnomon join ./link --shape 120,4 --dtype f4 --threshold 9 --checkpoint cp --count
