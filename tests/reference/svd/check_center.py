#!/usr/bin/env python3
"""gnomon svd --center beside a dense SVD of the centred matrix in double precision and, where it is installed, beside
scikit-learn's PCA: values, components up to their sign, scores, variances, means; the smallest rank that meets a tolerance;
bounds and estimates beside what is left. On dense and sparse rows of the matrices of cases.py, of one row, and on means that are
large beside the spread.

usage: check_center.py GNOMON DIGITS TEXT..."""
import json, os, subprocess, sys, tempfile

import numpy as np
import scipy.sparse as sp

sys.dont_write_bytecode = True
import cases

try:
    from sklearn.decomposition import PCA
except ImportError:
    PCA = None

command, digits, *texts = [os.path.abspath(path) for path in sys.argv[1:]]
if not json.loads(subprocess.run([command, "info", "--json"], capture_output=True, text=True).stdout)["svd"]:
    print("no OpenBLAS")
    sys.exit(77)
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

def gnomon(name, *options):
    run = subprocess.run([command, "svd", name, "--center", "--json", "-o", "f.npz", *options], capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout), np.load("f.npz")

rng = np.random.default_rng(0)
matrices = {name: np.asarray(sp.csr_matrix(a).todense()) for name, a in cases.of(digits, texts).items()}
matrices["one row"] = rng.standard_normal((1, 40))
matrices["mean 1e6"] = 1e6 + rng.standard_normal((300, 60)) * 0.8 ** np.arange(60)
for name, a in matrices.items():
    exact = a.astype(np.longdouble)
    mean = exact.mean(0)
    centred = (exact - mean).astype(float)
    s = np.linalg.svd(centred, compute_uv=False)
    norm = np.linalg.norm(centred)
    tail = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0))
    # so far rounding reaches: products of sparse rows are sums of what is not centred
    u = 1e-13 * norm + 1e-16 * len(a) * np.linalg.norm(a)
    sp.save_npz("a.npz", sp.csr_matrix(a))
    np.save("a.npy", a)
    for path in ("a.npy", "a.npz"):
        what = (name, path)
        rank = min(8, *a.shape)
        def check(r, f):
            left = centred - f["U"] * f["S"] @ f["Vt"]
            assert r["centered"] is True and np.abs(f["mean"] - mean.astype(float)).max() <= 2e-16 * np.abs(mean).max(), what
            assert abs(r["norm"] - norm) <= u, what
            assert r["residual_bound"] >= np.linalg.norm(left) - u and r["spectral_bound"] >= np.linalg.norm(left, 2) - u, what
            assert r["single_pass"] or r["residual_bound"] <= norm + u, what
            assert r["residual_estimate"] <= r["residual_bound"], what
            return np.linalg.norm(left)
        r, f = gnomon(path, "-k", str(rank), "--power", "40")
        check(r, f)
        assert np.abs(f["S"] - s[:rank]).max() <= 1e-6 * s[0] + u, what
        assert r["converged_values"] == np.count_nonzero(f["S"] > 0), (what, r["converged_values"])
        if PCA is not None and len(a) > 1 and norm > 0:
            pca = PCA(rank, svd_solver="full").fit(a)
            v = pca.explained_variance_
            assert np.abs(np.array(r["explained_variance"]) - v).max() <= 1e-6 * v[0] + 1e-9 * v[0], what
            assert np.abs(np.array(r["explained_variance_ratio"]) - pca.explained_variance_ratio_).max() <= 1e-6, what
            assert np.allclose(f["mean"], pca.mean_, rtol=1e-12, atol=1e-12 * np.abs(a).max()), what
            # components of values that are alone: their sign is free
            gap = np.append(np.inf, -np.diff(s))
            alone = [i for i in range(rank) if min(gap[i], gap[i + 1]) > 0.05 * s[0]] if len(s) > rank else []
            cosines = np.abs(np.sum(f["Vt"] * pca.components_, axis=1))
            assert all(cosines[i] > 1 - 1e-9 for i in alone), (what, cosines, alone)
            scores = pca.transform(a)
            signs = np.sign(np.sum(f["Vt"] * pca.components_, axis=1))
            assert all(np.abs(f["U"][:, i] * f["S"][i] - signs[i] * scores[:, i]).max() <= 1e-5 * s[0] for i in alone), what
        elif norm == 0:
            assert r["norm"] == 0 and np.all(f["S"] == 0), what
            assert r["total_variance"] == (None if len(a) == 1 else 0), what
        r, f = gnomon(path, "-k", str(min(rank, max(1, len(s) - 1))), "--single-pass")
        check(r, f)
        if norm == 0:
            continue
        for tolerance in (0.9, 0.3, 1e-3):
            r, f = gnomon(path, "--tolerance", str(tolerance))
            left = check(r, f)
            smallest = max(1, int(np.argmax(tail <= tolerance * norm)))
            # what is met exactly is for rounding to decide
            assert r["converged"] and left <= tolerance * norm + u and r["rank"] == smallest, (what, tolerance, r["rank"], smallest)
    print(f"{name}: centred")
# in single precision, of numbers that are stored in either
for dtype in ("f4", "f8"):
    a = (1e6 + rng.standard_normal((300, 60)) * 0.6 ** np.arange(60)).astype(dtype)
    np.save("a.npy", a)
    sp.save_npz("a.npz", sp.csr_matrix(a))
    centred = a - a.astype(float).mean(0)
    s = np.linalg.svd(centred, compute_uv=False)
    for options in (["a.npy"], ["a.npz"], ["a.npy", "--single-pass", "--oversample", "25"]):
        r, f = gnomon(*options, "-k", "6", "--output-dtype", "f4")
        left = np.linalg.norm(centred - f["U"].astype(float) * f["S"] @ f["Vt"])
        assert r["dtype"] == "float32" and abs(r["norm"] - np.linalg.norm(s)) <= 1e-7 * s[0], options
        assert np.abs(f["S"] - s[:6]).max() <= (1e-2 if r["single_pass"] else 2e-6) * s[0], (options, f["S"], s[:6])
        assert left <= r["residual_bound"], (options, left, r["residual_bound"])
    print(f"{dtype} in single precision: centred")
if PCA is None:
    print("scikit-learn is not here: its PCA was left out")
