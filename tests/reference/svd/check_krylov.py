#!/usr/bin/env python3
"""gnomon svd of sparse rows by a Krylov space beside a dense SVD in double precision: values, residual and
orthogonality in both types, of centred and standardized rows, more equal values than a block holds, values that span
more than their squares can, few distinct rows; the same bytes for any number of threads.

usage: check_krylov.py GNOMON DIGITS TEXT..."""
import json, os, subprocess, sys, tempfile

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads of both sides that wait for one another take turns of whole milliseconds
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

command = os.path.abspath(sys.argv[1])
if not json.loads(subprocess.run([command, "info", "--json"], capture_output=True, text=True).stdout)["svd"]:
    print("no OpenBLAS")
    sys.exit(77)
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
rng = np.random.default_rng(5)
RANK, M, N = 60, 1220, 1180

def gnomon(*options):
    run = subprocess.run([command, "svd", "a.npz", "-k", str(RANK), "--device", "cpu", "--json", "-o", "f.npz", *options],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)

def zipf(dtype, scale=1):
    """Rows of up to 40 words by Zipf's law, one of them with all words, some empty."""
    law = 1 / np.arange(1, N + 1)
    a = sp.lil_matrix((M, N))
    for i in range(10, M):
        words = np.unique(rng.choice(N, 40, p=law / law.sum()))
        a[i, words] = scale * rng.lognormal(size=len(words))
    a[5] = rng.lognormal(size=N)
    return sp.csr_matrix(a).astype(dtype)

def blocks(sizes, values, tail):
    """Orthogonal columns: as many of each length as sizes say, of two entries each; and a random tail below."""
    total = sum(sizes)
    lengths = np.repeat(values, sizes)
    top = sp.vstack([sp.diags(lengths * 0.6), sp.diags(lengths * 0.8)])
    rest = sp.random(M - 2 * total, N - total, 0.01, random_state=1)
    return sp.csr_matrix(sp.block_diag([top, rest * (tail / sp.linalg.norm(rest, 2))]))

matrices = {
    "words, single": (zipf(np.float32), 3e-6),
    "words, double": (zipf(np.float64), 1e-12),
    "one long row": (zipf(np.float32, 2.0**-20), 3e-6),
    "8 digits of span": (blocks([20, 20, 40], [1e8, 1e3, 1], 0.1), 1e-9),
    "equal rows": (sp.csr_matrix(np.tile(zipf(np.float64)[20].toarray(), (M, 1))), 1e-9),
}
krylov = ("single", "double")
for name, (a, accuracy) in matrices.items():
    sp.save_npz("a.npz", a)
    for options in ((), ("--center",), ("--standardize",)):
        if options and not name.startswith("words"):
            continue
        dense = a.toarray().astype(np.float64)
        if options:
            dense -= dense.mean(0)
        if "--standardize" in options:
            scale = dense.std(0, ddof=1)
            dense /= np.where(scale > 1e-300, scale, 1)
        s = np.linalg.svd(dense, compute_uv=False)
        what = (name, *options)
        for power in (6,) if options else (2, 6):
            r = gnomon("--power", str(power), "--threads", "1", *options)
            # one a block, one a start, the last product, three of the certificate; other matrices go on by iterations
            passes = -(-(RANK + 10) * (10 + 3 * power) // 320) + 2 + 2 + 1 + 3
            assert (r["passes"] == passes) == name.endswith(krylov), (what, power, r["passes"], passes)
            f = {key: value.astype(np.float64) for key, value in np.load("f.npz").items()}
            first = open("f.npz", "rb").read()
            u, v = f["U"], f["Vt"]
            norm = np.linalg.norm(s)
            found = len(f["S"])
            left = np.linalg.norm(dense - u * f["S"] @ v)
            best = np.sqrt(np.sum(s[found:] ** 2))
            limit = {2: 0.1, 6: 0.02}[power]
            assert np.all(f["S"] <= s[:found] * (1 + accuracy) + accuracy * s[0] * 1e-3), what
            assert np.all(f["S"] >= s[:found] * (1 - 2 * limit) - accuracy * s[0]), (what, power, np.min(f["S"] / s[:found]))
            assert left <= best * (1 + limit) + accuracy * norm, (what, power, left / norm, best / norm)
            rows = r["numerical_rank"]
            off = max(np.abs(x - np.eye(rows)).max() for x in (v[:rows] @ v[:rows].T, u[:, :rows].T @ u[:, :rows]))
            assert off <= (2e-5 if a.dtype == np.float32 else 1e-11), (what, off)
            assert r["residual_bound"] >= left - 1e-6 * norm, what
        gnomon("--power", "6", "--threads", "3", *options)
        assert open("f.npz", "rb").read() == first, what
    print(f"{name}: as by a dense SVD")

def one_hot(counts):
    """A row a count, all in one column of the table: its singular values are the roots of the counts."""
    a = sp.csr_matrix((np.ones(sum(counts)), (np.arange(sum(counts)), np.repeat(np.arange(len(counts)), counts))))
    return a[rng.permutation(a.shape[0])]

# Wanted among equal values are more than a block of 32, more than one start's and the second's, or all; none is missed.
for equal, rank in ((40, 60), (100, 120), (200, 120)):
    counts = np.array([40] * equal + [15 - i % 8 for i in range(120)] + [1 + i % 5 for i in range(1900 - equal)])
    sp.save_npz("a.npz", one_hot(counts))
    true = np.sqrt(-np.sort(-counts)[:rank])
    for power in (2, 6):
        r = gnomon("--power", str(power), "-k", str(rank))
        f = np.load("f.npz")
        off = np.max(np.abs(f["S"] - true)[:equal]) / true[0]
        assert off <= (0.1 if power == 2 else 1e-3), (equal, power, off)
        assert np.all(f["S"] <= true * (1 + 1e-6)), (equal, power)
        assert np.all(f["S"] >= true * (0.85 if power == 2 else 0.97)), (equal, power, np.min(f["S"] / true))
        left = np.sqrt(counts.sum() - np.sum(f["S"].astype(np.float64) ** 2))
        assert r["residual_bound"] >= left * (1 - 1e-6), (equal, power)
    print(f"{equal} equal values, {rank} wanted: none missed")
