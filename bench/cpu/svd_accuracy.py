"""The SVD on the matrices of Ootomo & Yokota (2023, section 5.1.1), beside the plain algorithm in
single precision (their Algorithm 1 by NumPy with the same operator: SGEMM, Householder QR, LAPACK's SVD).

usage: svd_accuracy.py LIBRARY [--n 4096] [--rank 256] [--seeds 10] [--output FILE.json]

No power iterations but one for the Cauchy matrix, oversampling 10. Residuals |A - U S Vt|_F / |A|_F
in double precision, the mean over the seeds; the bound is that of their equation 4 (Halko,
Martinsson & Tropp 2011, theorem 10.5), where the singular values are known."""
import argparse
import ctypes as c
import json
import os

import numpy as np

from svd import GAUSSIAN, Descriptor, Matrix, open_library, ours, residual, rotate

OVER = 10


def cases(n, rank):
    i = np.arange(n)
    for sp in (1e-2, 1e-4):
        yield f"linear, s_p = {sp:g}", np.maximum(1 - (1 - sp) / rank * i, sp)
        yield f"exponential, s_p = {sp:g}", sp ** (i / rank)
    yield "polynomial", np.where(i < 20, 1e6, np.maximum(i - 18.0, 1) ** -3)
    yield "Cauchy", None


def cauchy(n, rng):
    x, y = (rng.uniform(-1e-3, 1e-3, n).astype(np.float32) for _ in range(2))
    return 1 / (np.abs(x[:, None] - y) + np.float32(1e-3))


def plain(a, rank, power, s):
    y = a @ s.T
    for _ in range(power):
        y = a @ np.linalg.qr(a.T @ np.linalg.qr(y)[0])[0]
    q = np.linalg.qr(y)[0]
    u, s, vt = np.linalg.svd(q.T @ a, full_matrices=False)
    return q @ u[:, :rank], s[:rank], vt[:rank]


def operator(lib, ctx, k, d, seed):
    """The same operator as ours, so that only the arithmetic differs."""
    descriptor = Descriptor(struct_size=c.sizeof(Descriptor), kind=GAUSSIAN, seed=seed, k=k, d=d)
    op, out = c.c_void_p(), np.empty((k, d), np.float32)
    view = Matrix(out.ctypes.data, 1, 0, k, d, d, 1)
    assert lib.gnomon_operator_create(ctx, c.byref(descriptor), c.byref(op)) == 0
    assert lib.gnomon_operator_block(ctx, op, c.c_int64(0), c.c_int64(0), c.byref(view)) == 0
    lib.gnomon_operator_destroy(op)
    return out


def off(m):
    m = m.astype(np.float64)
    return float(np.linalg.norm(m.T @ m - np.eye(m.shape[1]), 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output")
    given = parser.parse_args()
    lib, ctx = open_library(given.library)
    rows = []
    for name, s in cases(given.n, given.rank):
        power = 1 if s is None else 0
        figures = {"ours": [], "plain": [], "off": []}
        for seed in range(given.seeds):
            rng = np.random.default_rng(seed)
            a = cauchy(given.n, rng) if s is None else rotate(s, rng)
            omega = operator(lib, ctx, given.rank + OVER, given.n, seed)
            mine = ours(lib, ctx, a, given.rank, power, GAUSSIAN, False, seed)[1]
            figures["ours"].append(residual(a, mine))
            figures["plain"].append(residual(a, plain(a, given.rank, power, omega)))
            figures["off"].append(max(off(mine[0]), off(mine[2].T)))
        row = {"matrix": name, "residual": float(np.mean(figures["ours"])),
               "plain_residual": float(np.mean(figures["plain"])),
               "off_orthonormal": max(figures["off"])}
        row["over_plain"] = row["residual"] / row["plain_residual"] - 1
        if s is not None:
            tail = float(np.sqrt(np.sum(s[given.rank:] ** 2) / np.sum(s ** 2)))
            row["best"] = tail
            row["bound"] = tail * float(np.sqrt(1 + given.rank / (OVER - 1)))
        print(json.dumps(row), flush=True)
        rows.append(row)
    if given.output:
        with open(given.output, "w", encoding="utf-8") as out:
            json.dump({"n": given.n, "rank": given.rank, "oversample": OVER, "seeds": given.seeds,
                       "load_average": os.getloadavg()[0], "results": rows}, out, indent=1)
            out.write("\n")


main()
