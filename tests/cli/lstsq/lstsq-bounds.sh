# Bounds that are printed hold, rounding included: beside exact solutions in rational numbers.
. "$TESTS/lib.sh"
needs_svd
"$PYTHON" - << 'END'
import json, math, random, struct, subprocess
from fractions import Fraction

random.seed(7)

def write(name, rows):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(name, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for row in rows:
            out.write(struct.pack(f"<{len(row)}d", *row))

def read(name):
    data = open(name, "rb").read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 8}d", data[start:])

def dot(u, v):
    return sum(p * q for p, q in zip(u, v))

def solve(a, b, squared):
    """The exact solution of the normal equations, by elimination."""
    d, columns = len(a[0]), list(zip(*a))
    m = [[dot(columns[i], columns[j]) + (squared if i == j else 0) for j in range(d)] + [dot(columns[i], b)]
         for i in range(d)]
    for i in range(d):
        pivot = next(r for r in range(i, d) if m[r][i] != 0)
        m[i], m[pivot] = m[pivot], m[i]
        for r in range(d):
            if r != i and m[r][i] != 0:
                f = m[r][i] / m[i][i]
                m[r] = [p - f * q for p, q in zip(m[r], m[i])]
    return [m[i][d] / m[i][i] for i in range(d)]

def length(v):
    return math.sqrt(sum(p * p for p in v))

def normal(n, d, scale=0.0, shift=0.0):
    return [[random.gauss(shift, 1) * 10 ** (-scale * j) for j in range(d)] for i in range(n)]

grid = [i / 60 for i in range(60)]
cases = {
    "normal": (normal(80, 5), 1.0, 0),
    "consistent": (normal(80, 5), 0.0, 0),
    "shifted": (normal(80, 5, shift=100), 1.0, 0),
    "scaled": (normal(80, 5, scale=2), 1.0, 0),
    "polynomial": ([[t ** j for j in range(7)] for t in grid], 1.0, 0),
    "close fit": ([[t ** j for j in range(7)] for t in grid], 1e-9, 0),
    "two alike": ([row + [row[0] + 1e-7 * random.random()] for row in normal(80, 4)], 1.0, 0),
    "ridge": (normal(80, 5, shift=3), 1.0, 0.5),
    "ridge of two alike": ([row + [row[0]] for row in normal(80, 4)], 1.0, 0.0078125),
}
for name, (a, noise, lam) in cases.items():
    b = [sum(row) + noise * random.random() for row in a]
    write("a.npy", a)
    write("b.npy", [[v] for v in b])
    exact = [[Fraction(v) for v in row] for row in a]
    right = [Fraction(v) for v in b]
    best = solve(exact, right, Fraction(lam) ** 2)
    for way in ([], ["-k", "40"], ["-k", "40", "--operator", "gaussian", "--seed", "5"]):
        command = ["gnomon", "lstsq", "a.npy", "b.npy", "-o", "x.npy", "--json"] + way
        if lam:
            command += ["--damp", str(lam)]
        t = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["solutions"][0]
        x = [Fraction(v) for v in read("x.npy")]
        off = [p - q for p, q in zip(x, best)]
        fit = [dot(row, off) for row in exact] + [Fraction(lam) * v for v in off]
        left = [[p - dot(row, y) for p, row in zip(right, exact)] + [Fraction(lam) * v for v in y] for y in (x, best)]
        most = {k: math.inf if t[k] is None else t[k] for k in ("forward_bound", "fit_bound", "suboptimality")}
        held = {"forward": length(off) <= most["forward_bound"], "fit": length(fit) <= most["fit_bound"],
                "suboptimality": length(left[0]) <= (1 + most["suboptimality"]) * length(left[1]) * (1 + 1e-15)
                or most["suboptimality"] == math.inf}
        if not way:  # A itself is factored, so there is a bound
            assert most["forward_bound"] < math.inf and most["fit_bound"] <= length(left[0]) * (1 + 1e-9) + 1e-12 * length(b)
        print(name, *way[:4:3], *(f"{k} DOES NOT HOLD" for k, v in held.items() if not v))
END
