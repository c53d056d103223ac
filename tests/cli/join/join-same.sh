# the same bytes whatever the threads, the instruction set and the memory; points in memory or read
. "$TESTS/lib.sh"
"$PYTHON" - <<'END'
import random, struct
random.seed(3)
n, d = 6000, 100
latent = [[random.gauss(0, 1) for _ in range(3)] for _ in range(40)]
basis = [[random.gauss(0, 1) for _ in range(d)] for _ in range(3)]
shape = [[sum(l[k] * basis[k][j] for k in range(3)) for j in range(d)] for l in latent]
with open("many.npy", "wb") as f:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }" % (n, d)
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n")
    for i in range(n):
        s = shape[i % 40]
        noise = random.getrandbits(8 * d).to_bytes(d, "little")
        f.write(bytes(max(0, min(255, int(128 + 25 * s[j]) + noise[j] % 8)) for j in range(d)))
END
join() { gnomon join "$@" --quiet -o pairs.csv; sha1sum < pairs.csv; }
set -- many.npy --threshold 25
join "$@" > first
sed -n 2p pairs.csv | cut -d, -f3 | cut -c1-4
for variant in "--threads 1" "--threads 3" "--memory 66M" "--memory 65M"; do
    join "$@" $variant | cmp - first && echo "the same with $variant"
done
GNOMON_ISA=portable gnomon join base.npy --threshold 5 -o a.csv --quiet
gnomon join base.npy --threshold 5 -o b.csv --quiet
cmp a.csv b.csv && echo "the same at the portable level"
