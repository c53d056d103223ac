#!/usr/bin/env python3
"""gnomon svd --standardize, what svd explains, and gnomon transform beside NumPy in double precision and, where it is installed,
beside scikit-learn's PCA, StandardScaler and TruncatedSVD. On dense and sparse rows, in memory and in pieces, of the matrices of
cases.py, counts, one constant column, equal rows, one row, columns of sizes from 1e-300 to 1e300.

usage: check_transform.py GNOMON DIGITS TEXT..."""
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


def gnomon(*words):
    run = subprocess.run([command, *words, "--json"], capture_output=True, text=True)
    assert run.returncode in (0, 1), (words, run.stderr)
    return json.loads(run.stdout)


def exactly(a):
    """Mean, standard deviation, and the standardized matrix: differences and sums in extended precision."""
    wide = a.astype(np.longdouble)
    mean = wide.mean(0)
    constant = (a == a[0]).all(0)
    mean[constant] = wide[0][constant]
    size = np.abs(wide - mean).max(0)
    size[constant] = 1
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = size * np.sqrt((((wide - mean) / size) ** 2).sum(0) / max(len(a) - 1, 1))
    scale[constant] = 1
    return mean, scale, constant, ((wide - mean) / scale).astype(float)


rng = np.random.default_rng(3)
matrices = {name: np.asarray(sp.csr_matrix(a).todense()) for name, a in cases.of(digits, texts).items()}
matrices["counts"] = rng.poisson(rng.gamma(0.3, 2, 80), (250, 80)).astype(float)
matrices["constant column"] = np.hstack([rng.standard_normal((90, 20)), np.full((90, 1), 0.1)])
matrices["one row"] = rng.standard_normal((1, 30))
matrices["two rows"] = rng.standard_normal((2, 30))
matrices["mean 1e6"] = 1e6 + rng.standard_normal((200, 40)) * 0.8 ** np.arange(40)
matrices["sizes"] = rng.standard_normal((120, 61)) * 10.0 ** np.arange(-300, 310, 10)
for name, a in matrices.items():
    mean, scale, constant, z = exactly(a)
    n, d = a.shape
    s = np.linalg.svd(z, compute_uv=False)
    rank = min(6, n, d)
    # what the mean over the scale takes part in is rounded with it
    magnitude = np.linalg.norm(z) + np.sqrt(n) * np.linalg.norm(np.where(constant, 0, mean / scale).astype(float))
    u = 1e-13 * np.linalg.norm(z) + 1e-15 * (n + d) * magnitude
    sp.save_npz("a.npz", sp.csr_matrix(a))
    np.save("a.npy", a)
    for path, more in (("a.npy", []), ("a.npy", ["--memory", "65M"]), ("a.npz", [])):
        what = f"{name}, {path} {more}"
        r = gnomon("svd", path, "-k", str(rank), "--power", "40", "--standardize", "-o", "f.npz", *more)
        f = np.load("f.npz")
        assert r["centered"] and r["standardized"], what
        assert np.abs(f["mean"] - mean.astype(float)).max() <= 4e-16 * np.abs(mean).max(), what
        assert (np.abs(f["scale"] - scale) <= 1e-12 * scale).all() and (f["scale"][constant] == 1).all(), what
        assert (f["Vt"][:, constant] == 0).all() or np.linalg.norm(z) == 0, what
        got = np.array(r["singular_values"])
        assert np.abs(got - s[:rank]).max() <= 1e-3 * s[0] + u and (got <= s[:rank] + u).all(), (what, got, s[:rank])
        if n > 1 and s[0] > 0:
            varied = (~constant).sum()
            assert abs(r["total_variance"] - varied) <= 1e-9 * varied, (what, r["total_variance"], varied)
            assert np.allclose(r["explained_variance"], got**2 / (n - 1), rtol=1e-12, atol=0), what
            assert np.allclose(r["explained_variance_ratio"], got**2 / (n - 1) / varied, rtol=1e-9, atol=1e-300), what
        left = np.linalg.norm(z - f["U"] * f["S"] @ f["Vt"])
        assert left <= r["residual_bound"] * (1 + 1e-12) + u, (what, left, r["residual_bound"])

        # scores, of the rows that were factored and of new ones, and back
        gnomon("transform", "f.npz", path, "-o", "scores.npy", *more)
        scores = np.load("scores.npy")
        assert np.abs(scores - f["U"] * f["S"]).max() <= u, (what, np.abs(scores - f["U"] * f["S"]).max(), u)
        new = a[rng.permutation(n)[:7]] * 1.5
        np.save("new.npy", new)
        sp.save_npz("new.npz", sp.csr_matrix(new))
        zn = ((new.astype(np.longdouble) - f["mean"]) / f["scale"]).astype(float)
        un = u + 1e-14 * (np.linalg.norm(zn) + np.linalg.norm((new / f["scale"])) + np.linalg.norm(f["mean"] / f["scale"]))
        for new_path in ("new.npy", "new.npz"):
            gnomon("transform", "f.npz", new_path, "-o", "new-scores.npy")
            got = np.load("new-scores.npy")
            assert np.abs(got - zn @ f["Vt"].T).max() <= un, (what, new_path)
        if f["S"][-1] > 1e-6 * f["S"][0] > 0 and n > 1:
            gnomon("transform", "f.npz", path, "-o", "white.npy", "--whiten")
            white = np.load("white.npy")
            assert np.allclose(white * f["S"] / np.sqrt(n - 1), scores, atol=1e-12 * np.abs(scores).max()), what
            gnomon("transform", "f.npz", "white.npy", "-o", "back.npy", "--whiten", "--inverse")
            back = scores @ f["Vt"] * f["scale"] + f["mean"]
            assert (np.abs(np.load("back.npy") - back) <= 1e-11 * (np.abs(back).max(0) + f["scale"])).all(), what

    # without a mean: shares of the squared norm
    if name != "sizes":
        r = gnomon("svd", "a.npz", "-k", str(rank), "-o", "f.npz")
        squares = np.array(r["singular_values"]) ** 2 / (a**2).sum()
        assert np.allclose(r["explained_norm_ratio"], squares, rtol=1e-12) and "explained_variance" not in r, name
        gnomon("transform", "f.npz", "a.npz", "-o", "scores.npy")
        f = np.load("f.npz")
        assert np.abs(np.load("scores.npy") - a @ f["Vt"].T).max() <= 1e-12 * np.linalg.norm(a), name
    print(name, "agrees")

if PCA is not None:
    from sklearn.preprocessing import StandardScaler

    x = np.load(digits)[:500].astype(float)
    np.save("a.npy", x)
    new = np.load(digits)[500:520].astype(float)
    np.save("new.npy", new)
    for standardize in (False, True):
        # scikit-learn divides by n, gnomon by n - 1: a factor sqrt((n - 1) / n) of every score
        scaler = StandardScaler().fit(x)
        factor = np.sqrt((len(x) - 1) / len(x)) if standardize else 1
        pca = PCA(5, svd_solver="full").fit(scaler.transform(x) if standardize else x)
        r = gnomon("svd", "a.npy", "-k", "5", "--power", "30", "--standardize" if standardize else "--center", "-o", "f.npz")
        assert np.allclose(r["explained_variance_ratio"], pca.explained_variance_ratio_, rtol=1e-6), r
        assert np.allclose(r["explained_variance"], pca.explained_variance_ * factor**2, rtol=1e-6), r
        gnomon("transform", "f.npz", "new.npy", "-o", "scores.npy")
        due = pca.transform(scaler.transform(new) if standardize else new) * factor
        assert np.allclose(np.abs(np.load("scores.npy")), np.abs(due), atol=1e-5 * np.abs(due).max()), standardize
        pca.set_params(whiten=True)
        gnomon("transform", "f.npz", "new.npy", "-o", "white.npy", "--whiten")
        due = pca.transform(scaler.transform(new) if standardize else new)
        assert np.allclose(np.abs(np.load("white.npy")), np.abs(due), atol=1e-5 * np.abs(due).max()), standardize
    print("scikit-learn's PCA agrees")
