"""HOSVD of the tensors of Ootomo & Yokota (2023, algorithm 3), beside their Algorithm 2 in plain single precision
by NumPy (stored Gaussian matrices, SGEMM, Householder QR) and beside the full HOSVD by LAPACK's singular
vectors: seconds by phase and residuals, in one run, turn by turn.

usage: hosvd.py LIBRARY [--rounds 3] [--only CASE] [--output FILE.json]

Residuals |X - X'|_F / |X|_F are computed from the factors in double precision; their time is in no figure. Ours
holds the pass that looks for NaN. Beside the seconds of the clock stand those of the processors, which hang less on what
else the machine does; the record holds the load average."""
import argparse
import ctypes as c
import json
import os
import platform
import re
import statistics
import time

import numpy as np
import scipy

from svd import Descriptor, Matrix

MODES = 16
CASES = [("3 modes", (320, 320, 320), (32, 32, 32), 2, 0.0, False), ("3 modes, uneven", (1200, 160, 160), (48, 24, 24), 2, 0.0, False),
         ("4 modes", (72, 72, 72, 72), (12, 12, 12, 12), 2, 0.0, False),
         ("5 modes", (28, 28, 28, 28, 28), (6, 6, 6, 6, 6), 2, 0.0, False),
         ("3 modes, beside LAPACK", (160, 160, 160), (16, 16, 16), 2, 0.0, True),
         ("the same with noise of 1 %", (160, 160, 160), (16, 16, 16), 2, 0.01, True)]
GAUSSIAN, RADEMACHER = 1, 2
PHASES = ("look", "project", "power", "orthonormalise", "shrink", "small", "measure")


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("memory", c.c_int), ("modes", c.c_int),
                ("size", c.c_int64 * MODES), ("stride", c.c_int64 * MODES)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("ranks", c.POINTER(c.c_int64)), ("rank_count", c.c_int),
                ("tolerance", c.c_double), ("sequential", c.c_int), ("oversample", c.c_int64), ("power", c.c_int),
                ("measure", c.c_int), ("dtype", c.c_int), ("descriptor", c.c_void_p), ("seed", c.c_uint64),
                ("memory", c.c_int64)]


class Hosvd(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("modes", c.c_int), ("size", c.c_int64 * MODES), ("rank", c.c_int64 * MODES),
                ("core", Tensor), ("factor", Matrix * MODES), ("values", c.c_void_p * MODES), ("norm", c.c_double),
                ("residual", c.c_double), ("residual_by", c.c_int), ("converged", c.c_int), ("order", c.c_int * MODES),
                ("columns", c.c_int64 * MODES), ("passes", c.c_int64), ("cholesky", c.c_int64), ("householder", c.c_int64),
                ("power", c.c_int), ("sequential", c.c_int), ("descriptor", Descriptor)] + \
        [(name + "_seconds", c.c_double) for name in PHASES]


def floats(data, shape):
    return np.ctypeslib.as_array(c.cast(data, c.POINTER(c.c_float)), shape).copy()


def ours(lib, ctx, x, ranks, oversample, power, sequential, kind, seed):
    view = Tensor(x.ctypes.data, 1, 0, x.ndim)
    for n in range(x.ndim):
        view.size[n], view.stride[n] = x.shape[n], x.strides[n] // 4
    descriptor = Descriptor(struct_size=c.sizeof(Descriptor), kind=kind, seed=seed)
    options = Options(struct_size=c.sizeof(Options), ranks=(c.c_int64 * len(ranks))(*ranks), rank_count=len(ranks),
                      oversample=oversample, power=power, sequential=sequential,
                      descriptor=c.addressof(descriptor))
    out = Hosvd(struct_size=c.sizeof(Hosvd))
    begin, cpu = time.perf_counter(), time.process_time()
    status = lib.gnomon_hosvd_dense(ctx, c.byref(view), c.byref(options), c.byref(out))
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    if status != 0:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    core = floats(out.core.data, ranks)
    factors = [floats(out.factor[n].data, (x.shape[n], ranks[n])) for n in range(x.ndim)]
    phases = {name: getattr(out, name + "_seconds") for name in PHASES}
    share = 1 - phases.pop("measure") / seconds
    phases["told"] = out.residual / out.norm
    lib.gnomon_hosvd_free(ctx, c.byref(out))
    return seconds * share, cpu * share, phases, core, factors


def unfold(x, mode):
    return np.ascontiguousarray(np.moveaxis(x, mode, 0)).reshape(x.shape[mode], -1)


def contract(x, factors):
    for n, q in enumerate(factors):
        x = np.moveaxis(np.tensordot(q.T, x, (1, n)), 0, n)
    return x


def plain(x, ranks, seed):
    """Algorithm 2 as it stands."""
    rng, factors = np.random.default_rng(seed), []
    phases = {"generate": 0.0, "project": 0.0, "orthonormalise": 0.0, "shrink": 0.0}
    begin, cpu = time.perf_counter(), time.process_time()

    def lap(name):
        nonlocal last
        now = time.perf_counter()
        phases[name] += now - last
        last = now

    last = begin
    for mode, rank in enumerate(ranks):
        omega = rng.standard_normal((x.size // x.shape[mode], rank), dtype=np.float32)
        lap("generate")
        w = unfold(x, mode) @ omega
        lap("project")
        factors.append(np.linalg.qr(w)[0])
        lap("orthonormalise")
    core = contract(x, factors)
    lap("shrink")
    return time.perf_counter() - begin, time.process_time() - cpu, phases, core, factors


def full(x, ranks, _):
    """De Lathauwer, De Moor & Vandewalle's, by the singular vectors of the unfoldings, in single precision."""
    begin, cpu = time.perf_counter(), time.process_time()
    factors = [scipy.linalg.svd(unfold(x, n), full_matrices=False, check_finite=False)[0][:, :rank] for n, rank in enumerate(ranks)]
    core = contract(x, factors)
    return time.perf_counter() - begin, time.process_time() - cpu, {}, core, factors


def algorithm_3(sizes, ranks, padding, noise, rng):
    g = rng.uniform(-1, 1, ranks).astype(np.float32)
    for n, (size, rank) in enumerate(zip(sizes, ranks)):
        omega = rng.uniform(-1, 1, (rank, rank - padding)) @ rng.uniform(-1, 1, (rank - padding, size))
        g = np.moveaxis(np.tensordot(omega.astype(np.float32).T, g, (1, n)), 0, n)
    g = np.ascontiguousarray(g)
    if noise:
        e = rng.standard_normal(g.shape, dtype=np.float32)
        g += e * np.float32(noise * np.linalg.norm(g) / np.linalg.norm(e))
    return g


def residual(x, core, factors):
    y = core.astype(np.float64)
    for n in range(x.ndim - 1, 0, -1):
        y = np.moveaxis(np.tensordot(factors[n].astype(np.float64), y, (1, n)), 0, n)
    total, step = 0.0, max(1, (1 << 22) * x.shape[0] // x.size)
    for row in range(0, x.shape[0], step):
        part = x[row:row + step].astype(np.float64)
        part -= np.tensordot(factors[0][row:row + step].astype(np.float64), y, (1, 0))
        total += np.sum(part * part)
    return float(np.sqrt(total) / np.linalg.norm(x.astype(np.float64)))


def off(factors):
    return max(float(np.linalg.norm(q.astype(np.float64).T @ q.astype(np.float64) - np.eye(q.shape[1]), 2)) for q in factors)


def run(case, who, rounds):
    name, sizes, ranks, padding, noise, beside_lapack = case
    x = algorithm_3(sizes, ranks, padding, noise, np.random.default_rng(7))
    taken = {w: [] for w in who}
    for turn in range(rounds):
        for w, (call, every) in who.items():
            if every or (turn == 0 and beside_lapack):
                taken[w].append(call(x, ranks, turn))
    rows = []
    for w, results in taken.items():
        if not results:
            continue
        results.sort(key=lambda r: r[0])
        seconds, _, phases, core, factors = results[len(results) // 2]
        row = {"who": w, "seconds": seconds, "cpu_seconds": statistics.median(r[1] for r in results), "runs": len(results),
               "phases": phases, "residual": statistics.mean(residual(x, r[3], r[4]) for r in results),
               "off_orthonormal": max(off(r[4]) for r in results)}
        rows.append(row)
        print(f"{name}: {w}: {seconds:.3f} s, {row['cpu_seconds']:.3f} s of processors, residual {row['residual']:.3g}", flush=True)
    return {"name": name, "load_average": os.getloadavg()[0], "size": sizes, "ranks": ranks, "padding": padding, "noise": noise, "results": rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="a case's name: the others are kept in FILE.json")
    parser.add_argument("--output")
    given = parser.parse_args()
    lib, ctx = c.CDLL(os.path.abspath(given.library)), c.c_void_p()
    lib.gnomon_last_error.restype = c.c_char_p
    assert lib.gnomon_context_create(None, c.byref(ctx)) == 0

    def mine(oversample, power, sequential, kind):
        return lambda x, ranks, seed: ours(lib, ctx, x, ranks, oversample, power, sequential, kind, seed)

    who = {"NumPy, Algorithm 2": (plain, True), "gnomon, as Algorithm 2": (mine(0, 0, 0, GAUSSIAN), True),
           "gnomon, no power iteration": (mine(10, 0, 0, GAUSSIAN), True), "gnomon": (mine(10, 1, 0, GAUSSIAN), True),
           "gnomon, sequential, no power iteration": (mine(10, 0, 1, GAUSSIAN), True),
           "the same, rademacher": (mine(10, 0, 1, RADEMACHER), True),
           "gnomon, sequential": (mine(10, 1, 1, GAUSSIAN), True), "LAPACK, full HOSVD": (full, False)}
    cases = [run(case, who, given.rounds) for case in CASES if given.only in (None, case[0])]
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo", encoding="utf-8").read())
    record = {"record": "hosvd", "oversample": 10, "cpu": cpu.group(1).strip() if cpu else platform.machine(), "threads": os.cpu_count(),
              "numpy": np.__version__, "scipy": scipy.__version__, "cases": cases}
    if given.output and given.only and os.path.exists(given.output):
        with open(given.output, encoding="utf-8") as old:
            kept = [case for case in json.load(old)["cases"] if case["name"] != given.only]
        record["cases"] = sorted(kept + cases, key=lambda case: [k[0] for k in CASES].index(case["name"]))
    if given.output:
        with open(given.output, "w", encoding="utf-8") as out:
            json.dump(record, out, indent=1)
            out.write("\n")


main()
