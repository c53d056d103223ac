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
    _fields_ = [("struct_size", c.c_size_t), ("ridge", c.c_double), ("tolerance", c.c_double),
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
    options = Options(struct_size=c.sizeof(Options), tolerance=1e-15, iterations=200, k=k, probes=2)
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
    facts = {name: getattr(result, name) for name in ("iterations", "refinements", "passes", "k", "rank", "condition",
                                                      "low", "high", "converged")}
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


PEERS = {"numpy.linalg.lstsq (gelsd)": lambda a, b: np.linalg.lstsq(a, b, rcond=2.0 ** -52)[0],
         "scipy.linalg.lstsq, gelsy": lambda a, b: scipy.linalg.lstsq(a, b, lapack_driver="gelsy", cond=2.0 ** -52)[0],
         "scipy.sparse.linalg.lsqr": lsqr,
         "sklearn Ridge, cholesky": ridge}
SPARSE_PEERS = {"scipy.sparse.linalg.lsqr": lsqr, "sklearn Ridge, sparse_cg": ridge}
CASES = {"1,000,000 x 100": lambda: dense(1000000, 100, 1, 1, 1),
         "200,000 x 500": lambda: dense(200000, 500, 1, 1, 2),
         "100,000 x 300, condition 1e10": lambda: dense(100000, 300, 1e10, 1e-3, 3),
         "500,000 x 200 sparse, 10 a row, columns of 1 to 1e-4": lambda: sparse(500000, 200, 10, 4)}


def errors(a, x, truth, left):
    fit = np.linalg.norm(a @ (x - truth)) / np.linalg.norm(left)
    return {"forward_error": float(np.linalg.norm(x - truth) / np.linalg.norm(truth)),
            "suboptimality": float(np.expm1(0.5 * np.log1p(fit * fit)))}


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
    parser.add_argument("--case", action="append", choices=[*CASES, "conditions"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output")
    given = parser.parse_args()
    lib, ctx = open_library(given.library)
    record = {"facts": {}, "cases": {}, "conditions": []}
    if given.output and os.path.exists(given.output):
        with open(given.output, encoding="utf-8") as file:
            record = json.load(file)
    for name in given.case or [*CASES, "conditions"]:
        print(name, flush=True)
        if name == "conditions":
            record["conditions"] = conditions(lib, ctx)
        else:
            record["cases"][name] = run_case(lib, ctx, name, given.rounds)
    record["facts"] = {"threads": lib.gnomon_context_threads(ctx), "machine": platform.machine(),
                       "numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    if given.output:
        with open(given.output, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
