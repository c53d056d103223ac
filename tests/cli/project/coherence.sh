# what a sample of the points says of very-sparse and of --assume incoherent
. "$TESTS/lib.sh"
"$PYTHON" -c '
import random, struct
def npy(name, rows, fortran=False):
    n, d = len(rows), len(rows[0])
    head = "{\"descr\": \"<f4\", \"fortran_order\": %r, \"shape\": (%d, %d), }" % (fortran, n, d)
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    values = [v for c in zip(*rows) for v in c] if fortran else [v for r in rows for v in r]
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%df" % len(values), *values))
rng = random.Random(1)
n, d = 60, 1600
spread = [[rng.choice((-2.0, -1.0, 1.0, 2.0)) for _ in range(d)] for _ in range(n)]
npy("spread.npy", spread)
npy("simplex.npy", [[float(i == j) for j in range(d)] for i in range(n)])
npy("simplex-columns.npy", [[float(i == j) for j in range(d)] for i in range(n)], True)
npy("heavy.npy", [[v * (100 if j in (3, 77) else 1) for j, v in enumerate(r)] for r in spread])
npy("column.npy", [[1000.0 if j == 5 else v for j, v in enumerate(r)] for r in spread])
npy("equal.npy", spread[:1] * n)
with open("words.svm", "w") as file:  # each point few words, of very unlike weights
    for i in range(n):
        words = sorted(rng.sample(range(1, d + 1), 12))
        file.write("0 " + " ".join("%d:%d" % (w, 4 ** (t % 4)) for t, w in enumerate(words)) + "\n")'
auto="--operator auto --assume incoherent --device cpu --threads 1 -o y.npy"
words() { sed 's/ in [0-9.]* s$//' | grep -v -e '^  ' -e 'auto chooses'; }
for file in spread simplex simplex-columns heavy column equal; do
    try gnomon project $file.npy -k 20 --operator very-sparse -o y.npy | words
    try gnomon project $file.npy --eps 0.5 $auto | words
done
try gnomon project words.svm -k 20 --operator very-sparse --features 1600 -o y.npy | words
try gnomon project words.svm --eps 0.5 $auto --points 60 --features 1600 | words
# density from 1/3 on is as good as dense kinds, and so are dense kinds
try gnomon project simplex.npy -k 20 --operator very-sparse --density 0.34 -o y.npy | words
try gnomon project simplex.npy -k 20 --operator rademacher -o y.npy | words
# from a pipe; and what was seen as JSON
try gnomon project - --eps 0.5 $auto < simplex.npy | words
gnomon project heavy.npy -k 20 --operator very-sparse --quiet --json -o y.npy | "$PYTHON" -c '
import json, sys
seen = json.load(sys.stdin)["coherence"]
print(seen["points"], seen["pairs"], *("%.3f" % seen[key] for key in sorted(seen) if "_" in key))'
gnomon project heavy.npy -k 20 --quiet --json -o y.npy | grep coherence || echo 'not of rademacher'
# what is sampled does not depend on threads: the last of these points are coherent
"$PYTHON" -c '
import random, struct
n, d = 8000, 1024
values = bytearray(random.Random(2).randbytes(n * d))
for i in range(7500, n):
    values[i * d : (i + 1) * d] = bytes(d)
    values[i * d + i - 7500] = 255
head = "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (%d, %d), }" % (n, d)
head += " " * (-(10 + len(head) + 1) % 64) + "\n"
with open("late.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)'
for threads in 1 16; do
    try gnomon project late.npy -k 20 --operator very-sparse --device cpu --threads $threads -o y.npy | words
done
