"""Least squares beside LAPACK's by NumPy and SciPy, SciPy's LSQR and scikit-learn's Ridge: seconds, and errors
against solutions that are known, in one run, turn by turn.

usage: lstsq.py LIBRARY [--case NAME]... [--rounds 3] [--output FILE.json]

A = G diag(s) V^T with G normal and s falling from 1 to 1 / condition, b = A x + r with r orthogonal to A, so that x is
the exact solution but for the rounding of A and b. Cases are kept in FILE.json, so that they can be run one by one."""
import argparse
import ctypes as c
import json
import os
import platform
import statistics
import subprocess
import time

import numpy as np
import scipy
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import sklearn
from sklearn.linear_model import Ridge

from svd import Descriptor, Matrix, open_library


class Csr(c.Structure):
    _fields_ = [("rows", c.c_int64), ("cols", c.c_int64), ("offsets", c.c_void_p), ("indices", c.c_void_p),
                ("values", c.c_void_p), ("dtype", c.c_int)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("damp", c.c_double), ("tolerance", c.c_double),
                ("iterations", c.c_int64), ("rcond", c.c_double), ("sketch_size", c.c_int64),
                ("descriptor", c.c_void_p), ("seed", c.c_uint64), ("test_vectors", c.c_int64), ("dtype", c.c_int),
                ("keep_residual", c.c_int)]


FIGURES = ("norm_b", "norm_x", "residual", "gradient", "backward_bound", "backward_error", "fit_bound",
           "suboptimality", "forward_bound", "sensitivity")
PHASES = ("check_seconds", "sketch_seconds", "factor_seconds", "iterate_seconds", "certify_seconds")


class Target(c.Structure):
    _fields_ = [(name, c.c_double) for name in FIGURES] + [("converged", c.c_int)]


class Result(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("x", Matrix), ("residual", Matrix), ("target", c.POINTER(Target)),
                ("rows", c.c_int64), ("cols", c.c_int64), ("targets", c.c_int64), ("norm", c.c_double),
                ("rank", c.c_int64)] + \
        [(name, c.c_double) for name in ("largest", "least", "condition", "low", "high", "failure")] + \
        [("converged", c.c_int)] + \
        [(name, c.c_int64) for name in ("iterations", "refinements", "passes", "k")] + \
        [("sketched", c.c_int), ("descriptor", Descriptor)] + [(name, c.c_double) for name in PHASES]


def ours(lib, ctx, a, b, k=0):
    """x, and what the call tells of itself."""
    options = Options(struct_size=c.sizeof(Options), tolerance=1e-15, iterations=200, sketch_size=k, test_vectors=2)
    result = Result(struct_size=c.sizeof(Result))
    right = Matrix(b.ctypes.data, 2, 0, len(b), 1, 1, 1)
    if scipy.sparse.issparse(a):
        offsets, indices = a.indptr.astype(np.int64), a.indices.astype(np.int64)
        view = Csr(*a.shape, offsets.ctypes.data, indices.ctypes.data, a.data.ctypes.data, 2)
        call = lib.gnomon_lstsq_csr
    else:
        view = Matrix(a.ctypes.data, 2, 0, *a.shape, a.strides[0] // 8, a.strides[1] // 8)
        call = lib.gnomon_lstsq_dense
    if call(ctx, c.byref(view), c.byref(right), c.byref(options), c.byref(result)) != 0:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    pointer = c.cast(result.x.data, c.POINTER(c.c_double))
    x = np.ctypeslib.as_array(pointer, (result.cols,)).copy()
    facts = {name: getattr(result, name) for name in ("iterations", "refinements", "passes", "k", "sketched", "rank",
                                                      "condition", "low", "high", "converged")}
    facts.update({name: getattr(result.target[0], name) for name in FIGURES})
    facts["phases"] = {name: getattr(result, name) for name in PHASES}
    lib.gnomon_lstsq_free(ctx, c.byref(result))
    return x, facts


def dense(n, d, condition, residual, seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, d)) / np.sqrt(n)
    left = rng.standard_normal(n)
    gram = scipy.linalg.cho_factor(a.T @ a)
    for _ in range(2):
        left -= a @ scipy.linalg.cho_solve(gram, a.T @ left)
    left *= residual / np.linalg.norm(left)
    if condition > 1:
        v = np.linalg.qr(rng.standard_normal((d, d)))[0]
        a = np.ascontiguousarray(a @ (np.logspace(0, -np.log10(condition), d)[:, None] * v.T))
    x = rng.standard_normal(d)
    return a, a @ x + left, x, left


def sparse(n, d, per_row, seed):
    """Nonzeros at random places, columns of lengths 1 to 1e-4."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, d, n * per_row)
    values = rng.standard_normal(n * per_row) * np.logspace(0, -4, d)[indices]
    a = scipy.sparse.csr_matrix((values, indices, np.arange(0, n * per_row + 1, per_row)), (n, d))
    a.sum_duplicates()
    left = rng.standard_normal(n)
    gram = scipy.linalg.cho_factor((a.T @ a).toarray())
    for _ in range(3):
        left -= a @ scipy.linalg.cho_solve(gram, a.T @ left)
    left /= np.linalg.norm(left)
    x = rng.standard_normal(d)
    return a, a @ x + left, x, left


STEPS = 300  # of a peer that goes on and on


def lsqr(a, b):
    return scipy.sparse.linalg.lsqr(a, b, atol=1e-15, btol=1e-15, conlim=0, iter_lim=STEPS)[0]


def ridge(a, b):
    """As near to least squares as it gets: its Cholesky factorisation of A^T A."""
    solver = "sparse_cg" if scipy.sparse.issparse(a) else "cholesky"
    return Ridge(alpha=1e-30, fit_intercept=False, solver=solver, tol=1e-15, max_iter=STEPS).fit(a, b).coef_


def qr(a, b):
    """By Householder reflections, columns in their order."""
    q, r = scipy.linalg.qr(a, mode="economic")
    return scipy.linalg.solve_triangular(r, q.T @ b)


def one_round(a, b):
    """A sketch's QR factor as the preconditioner of LSQR from 0, as Blendenpik does; 8 nonzeros a column."""
    rng = np.random.default_rng(0)
    n, d = a.shape
    rows = rng.integers(0, 16 * d, (n, 8))
    values = rng.choice([-1.0, 1.0], n * 8) / np.sqrt(8)
    s = scipy.sparse.csr_matrix((values, (rows.ravel(), np.repeat(np.arange(n), 8))), (16 * d, n))
    r = np.linalg.qr(s @ a, mode="r")

    def solve(y, transposed=False):
        return scipy.linalg.solve_triangular(r, y, trans="T" if transposed else "N", check_finite=False)

    product = scipy.sparse.linalg.LinearOperator(
        (n, d), matvec=lambda y: a @ solve(y.ravel()), rmatvec=lambda y: solve(a.T @ y.ravel(), True), dtype=np.float64)
    return solve(scipy.sparse.linalg.lsqr(product, b, atol=1e-15, btol=1e-15, conlim=0, iter_lim=STEPS)[0])


PEERS = {"numpy.linalg.lstsq (gelsd)": lambda a, b: np.linalg.lstsq(a, b, rcond=2.0 ** -52)[0],
         "scipy.linalg.lstsq, gelsy": lambda a, b: scipy.linalg.lstsq(a, b, lapack_driver="gelsy", cond=2.0 ** -52)[0],
         "scipy.sparse.linalg.lsqr": lsqr,
         "sklearn Ridge, cholesky": ridge}
SPARSE_PEERS = {"scipy.sparse.linalg.lsqr": lsqr, "sklearn Ridge, sparse_cg": ridge}
CASES = {"1,000,000 x 100": lambda: dense(1000000, 100, 1, 1, 1),
         "100,000 x 100": lambda: dense(100000, 100, 1, 1, 5),
         "200,000 x 500": lambda: dense(200000, 500, 1, 1, 2),
         "100,000 x 300, condition 1e10": lambda: dense(100000, 300, 1e10, 1e-3, 3),
         "500,000 x 200 sparse, 10 a row, columns of 1 to 1e-4": lambda: sparse(500000, 200, 10, 4)}


def errors(a, x, truth, left):
    fit = np.linalg.norm(a @ (x - truth)) / np.linalg.norm(left)
    return {"forward_error": float(np.linalg.norm(x - truth) / np.linalg.norm(truth)),
            "suboptimality": float(np.expm1(0.5 * np.log1p(fit * fit)))}


def triangle(a):
    """R of a = Q R in extended precision."""
    a = a.astype(np.longdouble)
    for k in range(a.shape[1]):
        v = a[k:, k].copy()
        length = np.sqrt(v @ v)
        if length == 0:
            continue
        v[0] += length if v[0] >= 0 else -length
        v /= np.sqrt(v @ v)
        a[k:, k:] -= np.outer(2 * v, v @ a[k:, k:])
    return np.triu(a[:a.shape[1]])


class Backward:
    """The least change of A alone for which x is the solution, relative to |A|_F: Karlson and Walden's estimate, in
    extended precision."""
    def __init__(self, a, b):
        self.a, self.b, self.r = a.astype(np.longdouble), b.astype(np.longdouble), triangle(a)

    def __call__(self, x):
        x = x.astype(np.longdouble)
        left = self.b - self.a @ x
        length = np.sqrt(left @ left)
        if length == 0:
            return 0.0
        omega = length / np.sqrt(x @ x)
        r = triangle(np.vstack([self.r, omega * np.eye(len(x))]))
        y = self.a.T @ left
        for i in range(len(y)):
            y[i] = (y[i] - r[:i, i] @ y[:i]) / r[i, i]
        return float(omega / length * np.sqrt(y @ y) / np.sqrt((self.a ** 2).sum()))


STABLE = {"Householder QR": qr, "gelsy": PEERS["scipy.linalg.lstsq, gelsy"], "gelsd": PEERS["numpy.linalg.lstsq (gelsd)"],
          "a sketch and LSQR once": one_round, "LSQR": lsqr}
COLUMNS = ("one column of norm 10¹⁴", "columns of norms 10⁻²⁰ to 10²⁰", "t⁰ to t¹⁴, t from 0 to 10",
           "Gaussian kernel, 60 centres")


def columns(name):
    rng = np.random.default_rng(8)
    t = np.linspace(0, 10, 4000)
    a = rng.standard_normal((4000, 50))
    if name == COLUMNS[0]:
        a[:, 7] *= 1e14
    elif name == COLUMNS[1]:
        a *= np.logspace(-20, 20, 50)
    elif name == COLUMNS[2]:
        a = t[:, None] ** np.arange(15)
    else:
        x = rng.standard_normal((4000, 3))
        a = np.exp(-((x[:, None] - x[None, :60]) ** 2).sum(-1) / 8)
    return a, np.sin(t) + 1e-6 * rng.standard_normal(4000)


def prescribed(exponent, residual):
    """4,000 x 50 with singular values from 1 to 10^-exponent and |x| = 1, as Epperly, Meier and Nakatsukasa take it."""
    rng = np.random.default_rng(40 + exponent)
    u = np.linalg.qr(rng.standard_normal((4000, 51)))[0]
    v = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    a = np.ascontiguousarray((u[:, :50] * np.logspace(0, -exponent, 50)) @ v.T)
    x = rng.standard_normal(50)
    return a, a @ (x / np.linalg.norm(x)) + residual * u[:, 50]


def stability(lib, ctx):
    """Backward errors alone."""
    tried = [(f"condition 1e{e}, residual {r:.0e}", lambda e=e, r=r: prescribed(e, r))
             for e in (0, 3, 6, 9, 12, 15) for r in (1e-12, 1e-6, 1.0)]
    out = []
    for name, make in tried + [(name, lambda name=name: columns(name)) for name in COLUMNS]:
        a, b = make()
        error = Backward(a, b)
        x, facts = ours(lib, ctx, a, b, k=12 * a.shape[1])
        row = {"name": name, "told": facts, "who": {"gnomon": error(x)}}
        for who, way in STABLE.items():
            try:
                row["who"][who] = error(way(a, b))
            except (np.linalg.LinAlgError, ValueError):  # a triangle with a zero, numbers that overflow
                row["who"][who] = None
        print(f"  {name}:", ", ".join(f"{who} {e:.1e}" if e is not None else f"{who} fails"
                                     for who, e in row["who"].items()), flush=True)
        out.append(row)
    return out


def run_case(lib, ctx, name, rounds):
    a, b, truth, left = CASES[name]()
    ways = {"gnomon": lambda a, b: ours(lib, ctx, a, b)}
    ways.update(SPARSE_PEERS if scipy.sparse.issparse(a) else PEERS)
    if not scipy.sparse.issparse(a) and a.size > 5e7:  # gelsy pivots column by column: three times gelsd's time
        ways = {who: way for who, way in ways.items() if "gelsy" not in who}
    seconds, cpu, rows = {who: [] for who in ways}, {who: [] for who in ways}, {}
    ours(lib, ctx, a, b)
    for turn in range(rounds):
        for who, way in ways.items():
            if turn > 0 and seconds[who][-1] > 8:  # as slow as that, once will do
                continue
            begin, used = time.perf_counter(), time.process_time()
            x = way(a, b)
            seconds[who].append(time.perf_counter() - begin)
            cpu[who].append(time.process_time() - used)
            if who == "gnomon":
                x, facts = x
            rows[who] = errors(a, x, truth, left)
    rows["gnomon"].update(told=facts)
    for who, row in rows.items():
        row.update(turns=len(seconds[who]), seconds=statistics.median(seconds[who]), cpu_seconds=statistics.median(cpu[who]))
    for who, row in rows.items():
        print(f"  {who:28} {row['seconds']:8.3f} s, {row['cpu_seconds']:7.3f} s of processors, x off by "
              f"{row['forward_error']:.1e}, |r| above the least by {row['suboptimality']:.1e}", flush=True)
    print("   ", {k: round(v, 3) for k, v in facts["phases"].items()}, facts["iterations"], "steps")
    return {"rows": a.shape[0], "cols": a.shape[1], "load_average": os.getloadavg()[0], "rounds": rounds, "who": rows}


def conditions(lib, ctx):
    """Errors alone, of 20,000 x 100, against the condition."""
    out = []
    for residual in (1e-10, 1.0):
        for exponent in (1, 4, 7, 10, 13):
            a, b, truth, left = dense(20000, 100, 10.0 ** exponent, residual, 10 + exponent)
            row = {"condition": 10.0 ** exponent, "residual": residual, "who": {}}
            x, facts = ours(lib, ctx, a, b, k=1600)
            row["who"]["gnomon"] = errors(a, x, truth, left)
            row["told"] = facts
            for who, way in PEERS.items():
                try:
                    row["who"][who] = errors(a, way(a, b), truth, left)
                except np.linalg.LinAlgError:  # A^T A is not positive definite
                    row["who"][who] = None
            print(f"  condition 1e{exponent}, |r| {residual:g}:", ", ".join(
                f"{who} {e['forward_error']:.1e}" if e else f"{who} fails" for who, e in row["who"].items()), flush=True)
            out.append(row)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--case", action="append", choices=[*CASES, "conditions", "stability"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output")
    given = parser.parse_args()
    lib, ctx = open_library(given.library)
    record = {"facts": {}, "cases": {}, "conditions": []}
    if given.output and os.path.exists(given.output):
        with open(given.output, encoding="utf-8") as file:
            record = json.load(file)
    for name in given.case or [*CASES, "conditions", "stability"]:
        print(name, flush=True)
        if name == "stability":
            record["stability"] = stability(lib, ctx)
        elif name == "conditions":
            record["conditions"] = conditions(lib, ctx)
        else:
            record["cases"][name] = run_case(lib, ctx, name, given.rounds)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    record["facts"] = {"threads": lib.gnomon_context_threads(ctx), "machine": platform.machine(), "commit": commit,
                       "numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    if given.output:
        with open(given.output, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
