# An inverted index of sparse points: the answers of exact search, through changes, kills and damage.
. "$TESTS/lib.sh"
try gnomon index build sparse.mtx --metric cosine -o s.gnx
try gnomon index info s.gnx
gnomon index info s.gnx --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["metric"], r["points"], r["nonzeros"], r["columns"], r["heavy_columns"], r["index_bytes"] > 0)'
try gnomon index check s.gnx
same() { # INDEX POINTS QUERIES METRIC OPTION...: whether the answers are those of exact search
    local index=$1 points=$2 queries=$3 metric=$4
    shift 4
    gnomon index query "$index" "$queries" "$@" -o by-index.csv --quiet &&
        gnomon neighbors "$points" "$queries" --metric "$metric" "$@" -o exact.csv --quiet &&
        cmp by-index.csv exact.csv && echo "the same: $metric $*"
}
for metric in l2 cosine ip l1; do
    gnomon index build sparse.mtx --metric $metric -o $metric.gnx --quiet
    same $metric.gnx sparse.mtx sparse.mtx $metric -k 3
    same $metric.gnx sparse.mtx sparse.mtx $metric --radius 0.9 --exclude-self
    gnomon index build sparse.mtx --metric $metric -o again.gnx --threads 1 --memory 65M --quiet
    cmp $metric.gnx again.gnx && echo "the same bytes"
    gnomon index build sparse.mtx --metric $metric -o - --quiet | cmp - $metric.gnx
done
gnomon convert sparse.mtx dense.npy --dense --quiet
same ip.gnx sparse.mtx dense.npy ip -k 3
try gnomon neighbors sparse.mtx --index s.gnx -k 2 -o found.csv
# changes: what was added is found, what was removed is not, and its coordinates are gone after compact
printf '3\n5\n5\n' >ids.csv
try gnomon index add s.gnx sparse.mtx -o twice.gnx
try gnomon index remove twice.gnx ids.csv
try gnomon index query twice.gnx sparse.mtx -k 1 -o near.csv
sed 1d near.csv | awk -F, '$2 == 3 || $2 == 5 || $2 % 40 != $1 { print "point", $2, "is found for", $1 }' | sort | head -n 3
try gnomon index compact twice.gnx
try gnomon index check twice.gnx
gnomon index query twice.gnx sparse.mtx -k 1 -o after.csv --quiet && cmp near.csv after.csv && echo "the same answers"
# refusals
try gnomon index build base.npy -o q.gnx
try gnomon index build sparse.mtx --metric jaccard -o q.gnx
try gnomon index build base.npy --metric ip --tables 2 --functions 2 -o q.gnx
try gnomon index query s.gnx sparse.mtx -k 2 --probes 3
try gnomon index query s.gnx sparse.mtx -k 41
try gnomon index query s.gnx queries.npy -k 2
try gnomon index add s.gnx base.npy
printf '80\n' | try gnomon index remove twice.gnx - --format csv
[ -e q.gnx ] || echo "no q.gnx"
cat >trials.py <<'P'
import os, random, signal, struct, subprocess, time

def run(*words):
    done = subprocess.run(["gnomon", "index", *words, "--quiet"], capture_output=True, text=True)
    return done.returncode, done.stderr

# killed at any moment, a change leaves the old file or the whole new one. A sanitizer that looks for leaks when it is
# killed says so; the same commands look for them where they are not killed.
unleaked = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
draw, old = random.Random(4), open("s.gnx", "rb").read()
wholes = {}
for words in (["add", "s.gnx", "sparse.mtx"], ["remove", "s.gnx", "ids.csv"], ["compact", "s.gnx"]):
    open("s.gnx", "wb").write(old)
    assert run(*words)[0] == 0
    wholes[words[0]] = open("s.gnx", "rb").read()
    for _ in range(6):
        open("s.gnx", "wb").write(old)
        change = subprocess.Popen(["gnomon", "index", *words, "--quiet"], env=unleaked)
        time.sleep(draw.random() * 0.03)
        change.send_signal(signal.SIGKILL)
        change.wait()
        assert open("s.gnx", "rb").read() in (old, wholes[words[0]]), words
open("s.gnx", "wb").write(old)
print(run("add", "s.gnx", "sparse.mtx")[0], open("s.gnx", "rb").read() == wholes["add"],
      [name for name in os.listdir(".") if name.endswith(".tmp")])
# one byte of each section is damaged in turn: nothing is written from it, and the messages name the file
run("remove", "s.gnx", "ids.csv")
data = open("s.gnx", "rb").read()
table, sections = struct.unpack_from("<qq", data, 40)
damaged = 0
for s in range(sections):
    offset, length = struct.unpack_from("<qq", data, table + 40 * s + 16)
    if length == 0:
        continue
    bad = bytearray(data)
    bad[offset + length // 2] ^= 0x10
    damaged += 1
    for words in (("add", "bad.gnx", "sparse.mtx"), ("remove", "bad.gnx", "ids.csv"), ("compact", "bad.gnx")):
        open("bad.gnx", "wb").write(bad)
        code, said = run(*words)
        assert code == 3 and "bad.gnx" in said, (words, code, said)
        assert open("bad.gnx", "rb").read() == bytes(bad), (words, "the file was changed")
    assert run("check", "bad.gnx")[0] == 1
    code, said = run("query", "bad.gnx", "sparse.mtx", "-k", "2", "-o", "x.csv")
    assert code == 0 or (code == 3 and "bad.gnx" in said), (s, code, said)
print(damaged, "sections damaged")
for length in (0, 7, 8, 127, 128, 1000, len(data) - 1):
    open("bad.gnx", "wb").write(data[:length])
    code, said = run("query", "bad.gnx", "sparse.mtx", "-k", "2")
    print(code, said.strip())
P
"$PYTHON" trials.py
