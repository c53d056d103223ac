. "$TESTS/lib.sh"
needs_svd
# What depends on the last places is left out: they differ between processors, and so does the number of steps.
lasting() {
    sed -E 's/[0-9]+ steps?, A itself/A itself/; s/[0-9]+ steps?, by/steps, by/
        /by a sketch/,/^condition/ s/, bound .*/, and a bound/
        /error, estimate|\|A\^T r\||above the least|\|x - x\*/d'
}
try gnomon lstsq features.npy targets.npy -o x.csv | lasting
try gnomon lstsq features.npy targets.npy -k 200 -o y.csv | lasting
try gnomon lstsq features.npy two-targets.npy -k 100 --operator gaussian --seed 3 --residual r.csv -o z.csv | lasting
try gnomon lstsq features.mtx two-targets.npy -k 150 --operator srht --damp 2 -o ridge.csv | lasting
try gnomon lstsq features-f4.npy two-targets.npy -k 150 --output-dtype f4 -o f.npy | lasting
gnomon info f.npy | sed 1d | head -4
try gnomon lstsq long.npy long-targets.npy | lasting
# The normal equations hold, of text as of binary, of either sketch and of ridge.
gnomon lstsq features.csv targets.csv -o - --output-format csv --quiet > text.csv
"$PYTHON" - << 'END'
def read(name):
    return [[float(v) for v in line.split(",")] for line in open(name)]
a, b = read("features.csv"), [row[0] for row in read("targets.csv")]
def gradient(x, b, squared):
    r = [bi - sum(p * q for p, q in zip(row, x)) for row, bi in zip(a, b)]
    return max(abs(sum(row[j] * ri for row, ri in zip(a, r)) - squared * x[j]) for j in range(12)), r
x, y, z, ridge = read("x.csv"), read("y.csv"), read("z.csv"), read("ridge.csv")
assert read("text.csv") == x
for solution in (x, y):
    assert gradient([v[0] for v in solution], b, 0)[0] < 1e-11
residual = read("r.csv")
# the first right-hand side of b2 is every other number
import struct
b2 = struct.unpack("<1000d", open("two-targets.npy", "rb").read()[128:])
for j in range(2):
    g, r = gradient([row[j] for row in z], b2[j::2], 0)
    assert g < 1e-11 and max(abs(p[j] - q) for p, q in zip(residual, r)) < 1e-12
    assert gradient([row[j] for row in ridge], b2[j::2], 4)[0] < 1e-11
print("the normal equations hold")
END
gnomon lstsq features.npy two-targets.npy -k 200 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("verb", "points", "dimensions", "right_hand_sides", "dtype", "held", "rank", "sketch_size", "sketched",
                         "damp", "tolerance", "converged")})
print(r["descriptor"])
assert len(r["solutions"]) == 2 and r["low"] < 1 < r["high"]
assert all(s["converged"] and s["backward_error"] <= 1e-15 and s["fit_bound"] < 1e-9 * s["norm_b"] for s in r["solutions"])
assert 1 <= r["refinements"] <= 3 and r["passes"] == r["iterations"] + r["refinements"] + 3'
# More columns than rows: the shortest solution, sketched or not, dense or sparse.
"$PYTHON" - << 'END'
import csv
rows = [list(map(float, row)) for row in csv.reader(open("features.csv"))]
with open("wide.csv", "w") as out:
    csv.writer(out).writerows(zip(*rows))
with open("wide.mtx", "w") as out:
    print("%%MatrixMarket matrix coordinate real general\n12 500 6000", file=out)
    for i, row in enumerate(rows):
        for j, v in enumerate(row):
            print(j + 1, i + 1, repr(v), file=out)
with open("twelve.csv", "w") as out:
    out.writelines(f"{j * j - 30}\n" for j in range(12))
END
try gnomon lstsq wide.csv twelve.csv -o short.csv | sed '/b - A x/d' | lasting
try gnomon lstsq wide.csv twelve.csv -k 100 -o sketched.csv | sed '/b - A x/d' | lasting
try gnomon lstsq wide.mtx twelve.csv -k 100 --residual r.csv -o sparse.csv | sed '1!d'
gnomon lstsq wide.csv twelve.csv -k 100 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("points", "dimensions", "rank", "sketch_size", "sketched", "converged")})
s = r["solutions"][0]
assert s["gradient"] is None and s["suboptimality"] is None and s["backward_bound"] < 1e-12 and s["residual"] < 1e-12'
"$PYTHON" - << 'END'
def read(name):
    return [float(line.split(",")[0]) for line in open(name)]
rows = [list(map(float, row.split(","))) for row in open("features.csv")]
x = read("short.csv")
for name in ("sketched.csv", "sparse.csv"):
    assert max(abs(p - q) for p, q in zip(x, read(name))) < 1e-12
left = [sum(row[j] * v for row, v in zip(rows, x)) - (j * j - 30) for j in range(12)]
assert max(map(abs, left)) < 1e-11 and max(map(abs, read("r.csv"))) < 1e-11 and len(x) == 500
# no part of x is orthogonal to A's rows: least squares of x by them leave nothing
with open("x500.csv", "w") as out:
    out.writelines(f"{v!r}\n" for v in x)
END
gnomon lstsq features.csv x500.csv --json | "$PYTHON" -c '
import json, sys
s = json.load(sys.stdin)["solutions"][0]
assert s["residual"] < 1e-13 * s["norm_x"] + 1e-13 * s["norm_b"]
print("shortest")'
