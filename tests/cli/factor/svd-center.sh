. "$TESTS/lib.sh"
needs_svd
needs npz
# In double precision six digits are the same wherever they are computed.
try gnomon svd points-f8.npy -k 12 --center -o c.npz --measure
gnomon info c.npz | sed 1d
# a mean of 1e6 beside a spread of 1: the same in single precision, in pieces, by sparse rows, and less a mean taken off before
"$PYTHON" -c '
import random
random.seed(1)
rows = [[random.gauss(0, 1) * 0.5**j for j in range(12)] for _ in range(300)]
rows = [[round(x * 2**16) / 2**16 for x in row] for row in rows]
means = [sum(column) / len(rows) for column in zip(*rows)]
def write(name, rows):
    with open(name, "w") as f:
        f.writelines(",".join(repr(x) for x in row) + "\n" for row in rows)
write("far.csv", [[x + 1e6 for x in row] for row in rows])
write("near.csv", [[x - m for x, m in zip(row, means)] for row in rows])
with open("far.svm", "w") as f:
    f.writelines("0 " + " ".join(f"{j + 1}:{x + 1e6!r}" for j, x in enumerate(row)) + "\n" for row in rows)'
for options in "far.csv" "far.csv --memory 66M" "far.svm" "far.csv --tolerance 0.01" "far.svm --tolerance 0.01"; do
    # shellcheck disable=SC2086
    gnomon svd $options -k 8 --center --output-dtype f8 --json > far.json
    gnomon svd near.csv -k 8 --output-dtype f8 --json > near.json
    "$PYTHON" - "$options" << 'END'
import json, sys
far, near = (json.load(open(name + ".json")) for name in ("far", "near"))
rank = far["rank"]
assert rank == (8 if "tolerance" not in sys.argv[1] else 7), rank
assert all(abs(a - b) < 1e-7 * near["norm"] for a, b in zip(far["singular_values"], near["singular_values"])), (far, near)
assert abs(far["total_variance"] - near["norm"] ** 2 / 299) < 1e-7 * near["norm"] ** 2
assert abs(sum(far["explained_variance_ratio"]) - sum(s**2 for s in near["singular_values"][:rank]) / near["norm"] ** 2) < 1e-7
print(sys.argv[1], "agrees")
END
done
# nothing is left of equal rows, and of one there is no variance
printf '1.1,2,3\n1.1,2,3\n1.1,2,3\n' > equal.csv
try gnomon svd equal.csv -k 2 --center
printf '1.1,2,3\n' > one.csv
gnomon svd one.csv -k 1 --center --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("norm", "centered", "total_variance", "explained_variance", "explained_variance_ratio")})'
try gnomon svd points-f8.npy -k 3 --json | grep '"centered"'
# the mean has the same bits on any number of threads, from memory and in pieces
"$PYTHON" -c '
import random, struct
random.seed(2)
with open("big.f8", "wb") as f:
    f.write(struct.pack("<640000d", *(random.gauss(3, 1) for _ in range(640000))))'
for how in '--threads 1' '--threads 3' '--memory 66M' '--memory 66M --threads 2'; do
    # shellcheck disable=SC2086
    gnomon svd big.f8 --format raw --dtype f8 --shape 20000,32 -k 2 --power 1 --center --quiet $how -o - | cksum
done | uniq | wc -l
if command -v gnuplot > /dev/null; then gnomon svd points.npy -k 9 --center --plot p.svg --quiet; grep -c 'centred' p.svg; else echo 1; fi
# all of a zero matrix's values are 0, and that is no rounding
printf '0,0,0\n0,0,0\n' > zero.csv
try gnomon svd zero.csv -k 2
