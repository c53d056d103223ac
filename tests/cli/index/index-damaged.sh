# A damaged index is never written anew: add, remove and compact refuse it, the file stays as it is, and check goes on
# to tell. One byte in every section is damaged in turn.
. "$TESTS/lib.sh"
gnomon index build base.npy --tables 2 --functions 4 --width 25 --codes 8 -o dense.lsh --quiet
printf '3\n5\n' >ids.csv
gnomon index remove dense.lsh ids.csv --quiet
gnomon index build sparse.mtx --metric jaccard --tables 2 --functions 2 -o sets.lsh --quiet
gnomon convert sparse.mtx signed.csv --dense --quiet
tr -d - <signed.csv >weights.csv
gnomon index build weights.csv --metric weighted-jaccard --tables 2 --functions 2 -o weights.lsh --quiet
gnomon index remove weights.lsh ids.csv --quiet
cat >damage.py <<'P'
import os, shutil, struct, subprocess

def run(*words):
    done = subprocess.run(["gnomon", "index", *words, "--quiet"], capture_output=True, text=True)
    return done.returncode, done.stderr

names = {1: "points", 2: "set members", 3: "set offsets", 4: "codes' scale", 5: "codes", 6: "removed", 7: "ids",
         8: "keys", 9: "starts", 10: "directory", 11: "settings", 12: "weights"}
for index, points in (("dense.lsh", "queries.npy"), ("sets.lsh", "sparse.mtx"), ("weights.lsh", "weights.csv")):
    data = open(index, "rb").read()
    sections, = struct.unpack_from("<q", data, 48)
    table, = struct.unpack_from("<q", data, 40)
    seen = set()
    for s in range(sections):
        kind, = struct.unpack_from("<I", data, table + 40 * s)
        offset, length = struct.unpack_from("<qq", data, table + 40 * s + 16)
        if kind in seen or length == 0:
            continue
        seen.add(kind)
        bad = bytearray(data)
        bad[offset + length // 2] ^= 0x10
        codes = []
        for words in (("add", points), ("remove", "ids.csv"), ("compact",)):
            open("bad.lsh", "wb").write(bad)
            code, said = run(words[0], "bad.lsh", *words[1:])
            codes.append(code)
            assert open("bad.lsh", "rb").read() == bytes(bad), (words, "the file was changed")
            assert "bad.lsh" in said, said
            code, said = run(words[0], "bad.lsh", *words[1:], "-o", "out.lsh")
            codes.append(code)
            assert not os.path.exists("out.lsh")
        print(index, names[kind], "add, remove, compact:", *codes, "check:", run("check", "bad.lsh")[0])
P
"$PYTHON" damage.py
