. "$TESTS/lib.sh"
try gnomon index
try gnomon index biuld
try gnomon help index build extra
try gnomon index build base.npy
try gnomon index build base.npy -o a.lsh
for alone in '--tables 3' '--bands 3' '--functions 2' '--rows 2'; do
    # shellcheck disable=SC2086
    try gnomon index build base.npy -o a.lsh --metric cosine $alone
done
try gnomon index build base.npy -o a.lsh --tables 3 --functions 2
try gnomon index build base.npy -o a.lsh --tables 3 --functions 2 --width 0
try gnomon index build base.npy -o a.lsh --tables 3 --functions 2 --width -2
try gnomon index build base.npy -o a.lsh --tables 3 --functions 2 --width 2 -k 3
try gnomon index build base.npy -o a.lsh --recall 0.9
try gnomon index build base.npy -o a.lsh --recall 0.9 -k 0
try gnomon index build base.npy -o a.lsh --recall 0.9 -k 3 --tables 2
try gnomon index build base.npy -o a.lsh --metric ip --tables 2 --functions 2
try gnomon index build base.npy -o a.lsh --metric cosine --family minhash --tables 2 --functions 2
try gnomon index build base.npy -o a.lsh --metric hamming --tables 2 --functions 2
try gnomon index build base.npy -o a.lsh --metric jaccard --tables 2 --functions 2
try gnomon index build base.npy -o base.npy --metric cosine --tables 2 --functions 2
try gnomon index build base-nan.npy -o a.lsh --metric cosine --tables 2 --functions 2
try gnomon index build base-nan.npy -o a.lsh -k 3 --recall 0.9
try gnomon index build none.npy -o a.lsh --metric cosine --tables 2 --functions 2
try gnomon index build base.npy -o none/a.lsh --metric cosine --tables 2 --functions 2
[ -e a.lsh ] || echo 'nothing is written'
gnomon index build base.npy -o a.lsh --metric cosine --tables 2 --functions 2 --quiet > words
cp a.lsh before.lsh
try gnomon index query a.lsh queries.npy
try gnomon index query a.lsh queries.npy -k 0
try gnomon index query a.lsh queries.npy -k 301
try gnomon index query a.lsh queries.npy --radius -1
try gnomon index query a.lsh queries.npy --radius nan
try gnomon index query a.lsh points.npy -k 1
try gnomon index query a.lsh base-nan.npy -k 1
try gnomon index query a.lsh queries.npy -k 1 --coarse-probes 3
try gnomon index query a.lsh queries.npy -k 1 --rerank 3
try gnomon index query a.lsh queries.npy -k 1 --tables 3
try gnomon index query base.npy queries.npy -k 1
try gnomon index query none.lsh queries.npy -k 1
try gnomon index add a.lsh points.npy
try gnomon index add a.lsh base-nan.npy
try gnomon index add a.lsh none.npy
printf '300\n' > far.csv
printf '1.5\n' > half.csv
try gnomon index remove a.lsh far.csv
try gnomon index remove a.lsh half.csv
cmp a.lsh before.lsh && echo unchanged
# damaged, cut, newer
"$PYTHON" - <<'END'
data = bytearray(open("a.lsh", "rb").read())
def write(name, at, value):
    changed = bytearray(data)
    changed[at] = value
    open(name, "wb").write(changed)
write("points.lsh", 200, data[200] ^ 1)
write("newer.lsh", 8, 2)
write("header.lsh", 64, data[64] ^ 1)
write("table.lsh", len(data) - 5, data[-5] ^ 1)
open("cut.lsh", "wb").write(data[:-100])
open("short.lsh", "wb").write(data[:50])
open("none-there.lsh", "wb").write(b"")
END
for file in points newer header table cut short none-there; do
    try gnomon index check $file.lsh
done
try gnomon index query newer.lsh queries.npy -k 1
try gnomon index query cut.lsh queries.npy -k 1
try gnomon index info header.lsh
try gnomon index compact table.lsh
gnomon index check points.lsh --json > report
echo "exit $?"
"$PYTHON" -c 'import json; r = json.load(open("report")); print(r["sound"], r["faults"])'
