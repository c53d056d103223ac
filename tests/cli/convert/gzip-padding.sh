# after a gzip stream: another one, or zeros up to the end; junk behind any number of zeros is told
. "$TESTS/lib.sh"
$PYTHON - << 'END'
import gzip
one, two = gzip.compress(b"1,2\n", mtime=0), gzip.compress(b"3,4\n", mtime=0)
open("two.csv.gz", "wb").write(one + two)
for zeros in 1, 9, 10, 11, 511, 65536, 300000:
    open("padded-%d.csv.gz" % zeros, "wb").write(one + two + bytes(zeros))
    open("junk-%d.csv.gz" % zeros, "wb").write(one + bytes(zeros) + b"x")
    open("stream-%d.csv.gz" % zeros, "wb").write(one + bytes(zeros) + two)
open("junk-0.csv.gz", "wb").write(one + b"x")
END
try gnomon convert two.csv.gz - --output-format csv
for zeros in 1 10 511 300000; do
    try gnomon convert padded-$zeros.csv.gz - --output-format csv --quiet
    try gnomon convert stream-$zeros.csv.gz - --output-format csv --quiet
done
for zeros in 0 1 9 10 11 65536 300000; do
    try gnomon convert junk-$zeros.csv.gz - --output-format csv
    gnomon convert - - --format csv --output-format csv < junk-$zeros.csv.gz 2>&1 | tail -1
done
