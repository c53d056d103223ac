"""The SVD beside scikit-learn's randomized_svd: seconds and residuals, in one run, turn by turn.

usage: svd.py LIBRARY [--n 4096] [--rank 256] [--power 2] [--rounds 5] [--matrices linear,exponential]
              [--output FILE.json [--add]]

A is n x n in single precision with singular values that fall as Ootomo & Yokota's (2023) A_linear
and A_exp do. Both sides get the same matrix in memory, as many power iterations and columns;
scikit-learn's runs as it would by default, which for two iterations does not normalise between them,
and with its QR. The record holds the load averages, since both sides want all cores. The residual is |A - U S Vt|_F / |A|_F, in double precision, beside the best that any matrix of that
rank leaves."""
import argparse
import ctypes as c
import json
import os
import platform
import statistics
import time

import numpy as np
import scipy
import scipy.fft
import sklearn
from sklearn.utils.extmath import randomized_svd


class Matrix(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("memory", c.c_int), ("rows", c.c_int64),
                ("cols", c.c_int64), ("row_stride", c.c_int64), ("col_stride", c.c_int64)]


class Descriptor(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("version", c.c_uint32), ("kind", c.c_int),
                ("inner", c.c_int), ("precision", c.c_int), ("scaling", c.c_int),
                ("seed", c.c_uint64), ("k", c.c_int64), ("d", c.c_int64), ("density", c.c_double),
                ("nonzeros", c.c_int64), ("blocks", c.c_int64), ("zeta", c.c_int64),
                ("width", c.c_int64), ("wiring", c.c_int64)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("rank", c.c_int64), ("tolerance", c.c_double),
                ("oversample", c.c_int64), ("power", c.c_int), ("block", c.c_int64),
                ("single_pass", c.c_int), ("dtype", c.c_int), ("descriptor", c.c_void_p),
                ("seed", c.c_uint64), ("test_vectors", c.c_int64), ("test_power", c.c_int),
                ("measure", c.c_int), ("u", c.c_void_p), ("vt", c.c_void_p)]


class Svd(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("given_u", c.c_int), ("given_vt", c.c_int),
                ("rank", c.c_int64), ("u", Matrix),
                ("s", c.POINTER(c.c_double)), ("vt", Matrix), ("rows", c.c_int64),
                ("cols", c.c_int64)] + \
        [(name, c.c_double) for name in ("norm", "residual_estimate", "residual_bound",
                                         "spectral_estimate", "spectral_bound", "failure",
                                         "residual")] + \
        [("converged", c.c_int)] + \
        [(name, c.c_int64) for name in ("columns", "numerical_rank", "passes", "cholesky",
                                        "householder")] + \
        [("power", c.c_int), ("single_pass", c.c_int), ("descriptor", Descriptor)] + \
        [(name, c.c_double) for name in ("project_seconds", "power_seconds",
                                         "orthonormalise_seconds", "small_seconds",
                                         "certify_seconds")] + \
        [("converged_values", c.c_int64)]


GAUSSIAN, SJLT = 1, 5
PHASES = ("project_seconds", "power_seconds", "orthonormalise_seconds", "small_seconds",
          "certify_seconds")


def open_library(path):
    lib = c.CDLL(os.path.abspath(path))
    lib.gnomon_last_error.restype = c.c_char_p
    ctx = c.c_void_p()
    assert lib.gnomon_context_create(None, c.byref(ctx)) == 0
    return lib, ctx


def array(m):
    pointer = c.cast(m.data, c.POINTER(c.c_float))
    return np.ctypeslib.as_array(pointer, (m.rows, m.cols)).copy()


def ours(lib, ctx, a, rank, power, kind, certificate, seed=0):
    descriptor = Descriptor(struct_size=c.sizeof(Descriptor), kind=kind or GAUSSIAN, seed=seed)
    view = Matrix(a.ctypes.data, 1, 0, a.shape[0], a.shape[1], a.shape[1], 1)
    options = Options(struct_size=c.sizeof(Options), rank=rank, oversample=10, power=power,
                      descriptor=c.addressof(descriptor) if kind else None, seed=seed, test_vectors=10 if certificate else 0,
                      test_power=1)
    svd = Svd(struct_size=c.sizeof(Svd))
    begin = time.perf_counter()
    status = lib.gnomon_svd_dense(ctx, c.byref(view), c.byref(options), c.byref(svd))
    seconds = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    factors = array(svd.u), np.ctypeslib.as_array(svd.s, (svd.rank,)).copy(), array(svd.vt)
    phases = {name: getattr(svd, name) for name in PHASES}
    lib.gnomon_svd_free(ctx, c.byref(svd))
    return seconds, factors, phases


def rotate(s, rng):
    """U diag(s) V^T with orthogonal factors that are quick to apply: signs and cosine transforms,
    twice from each side."""
    a = np.diag(s.astype(np.float32))
    for axis in (0, 1):
        for _ in range(2):
            signs = np.where(rng.random(len(s)) < 0.5, np.float32(-1), np.float32(1))
            a = scipy.fft.dct(a * (signs[:, None] if axis == 0 else signs), axis=axis, norm="ortho")
    return np.ascontiguousarray(a, dtype=np.float32)


def matrix(name, n, rank, rng):
    sp = 1e-2 if name == "linear" else 1e-4
    i = np.arange(n)
    s = np.maximum(1 - (1 - sp) / rank * i, sp) if name == "linear" else sp ** (i / rank)
    best = np.sqrt(np.sum(s[rank:] ** 2) / np.sum(s ** 2))
    return rotate(s, rng), best


def residual(a, factors):
    u, s, vt = factors
    total = 0.0
    for row in range(0, a.shape[0], 1024):
        part = a[row:row + 1024].astype(np.float64)
        part -= (u[row:row + 1024].astype(np.float64) * s) @ vt.astype(np.float64)
        total += np.sum(part * part)
    return float(np.sqrt(total) / np.linalg.norm(a.astype(np.float64)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--power", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--matrices", default="linear,exponential")
    parser.add_argument("--output")
    parser.add_argument("--add", action="store_true", help="to what the output holds")
    given = parser.parse_args()
    lib, ctx = open_library(given.library)
    rng = np.random.default_rng(1)
    results = []
    for name in given.matrices.split(","):
        a, best = matrix(name, given.n, given.rank, rng)
        # power iterations, operator, certificate
        ways = {"gnomon": (given.power, None, True),
                "gnomon, no certificate": (given.power, None, False),
                "gnomon, gaussian": (given.power, GAUSSIAN, True),
                "gnomon, gaussian, no certificate": (given.power, GAUSSIAN, False),
                "gnomon, one iteration": (1, GAUSSIAN, True),
                "gnomon, one iteration, sjlt": (1, SJLT, True),
                "scikit-learn": "auto",
                "scikit-learn, QR": "QR"}
        times = {who: [] for who in ways}
        processor = {who: [] for who in ways}
        kept = {}
        for _ in range(given.rounds + 1):
            for who, way in ways.items():
                time.sleep(0.2)  # the threads of NumPy's BLAS spin for a while after a product
                used = time.process_time()
                if isinstance(way, str):
                    begin = time.perf_counter()
                    factors = randomized_svd(a, given.rank, n_oversamples=10, n_iter=given.power,
                                             power_iteration_normalizer=way, random_state=0)
                    seconds = time.perf_counter() - begin
                else:
                    seconds, factors, phases = ours(lib, ctx, a, given.rank, *way)
                    kept[who, "phases"] = phases
                processor[who].append(time.process_time() - used)
                times[who].append(seconds)
                kept[who] = factors
        row = {"matrix": name, "best_residual": float(best), "load_average": os.getloadavg()[0]}
        for who, seconds in times.items():
            u, _, vt = kept[who]
            row[who] = {"seconds": statistics.median(seconds[1:]), "least_seconds": min(seconds[1:]),
                        "processor_seconds": statistics.median(processor[who][1:]),
                        "least_processor_seconds": min(processor[who][1:]),
                        "residual": residual(a, kept[who]),
                        "orthogonality": float(max(
                            np.abs(u.T.astype(np.float64) @ u - np.eye(u.shape[1])).max(),
                            np.abs(vt.astype(np.float64) @ vt.T - np.eye(u.shape[1])).max()))}
            if (who, "phases") in kept:
                row[who]["phases"] = kept[who, "phases"]
            row[who]["times_faster"] = statistics.median(times["scikit-learn"][1:]) / row[who]["seconds"]
            row[who]["times_faster_than_qr"] = statistics.median(times["scikit-learn, QR"][1:]) / row[who]["seconds"]
        print(f"{name:12} best {best:.6g}", flush=True)
        for who in times:
            print(f"  {who:28} {row[who]['seconds']:8.3f} s (least {row[who]['least_seconds']:.3f}, processor {row[who]['processor_seconds']:.3f}, "
                  f"{row[who]['times_faster']:.2f} times as fast)  residual {row[who]['residual']:.6g}  off orthonormal "
                  f"{row[who]['orthogonality']:.1e}", flush=True)
        print("  phases", {k[:-8]: round(v, 4) for k, v in row["gnomon"]["phases"].items()})
        results.append(row)
    if given.output:
        facts = {"n": given.n, "rank": given.rank, "power": given.power, "rounds": given.rounds,
                 "threads": lib.gnomon_context_threads(ctx), "machine": platform.machine(),
                 "numpy": np.__version__, "scipy": scipy.__version__,
                 "scikit-learn": sklearn.__version__}
        if given.add:
            with open(given.output, encoding="utf-8") as before:
                record = json.load(before)
            assert record["facts"] == facts, "the record is of another setting"
            results = record["results"] + results
        with open(given.output, "w", encoding="utf-8") as out:
            json.dump({"facts": facts, "results": results}, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
