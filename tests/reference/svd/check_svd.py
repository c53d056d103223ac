#!/usr/bin/env python3
"""gnomon svd beside a dense SVD in double precision: the smallest rank that meets a tolerance, sparse and dense, a rank
that can't meet it, how many values have converged, bounds and estimates beside what is left. On a random sparse matrix with a
flat spectrum, on the words of text, on digits, on heavy tails, on equal rows and on one column that is full.

usage: check_svd.py GNOMON DIGITS TEXT..."""
import json, os, subprocess, sys, tempfile

import numpy as np
import scipy.sparse as sp

sys.dont_write_bytecode = True
import cases

command, digits, *texts = [os.path.abspath(path) for path in sys.argv[1:]]
if not json.loads(subprocess.run([command, "info", "--json"], capture_output=True, text=True).stdout)["svd"]:
    print("no OpenBLAS")
    sys.exit(77)
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)

def gnomon(name, *options):
    run = subprocess.run([command, "svd", name, "--json", "-o", "f.npz", *options], capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)

for name, a in cases.of(digits, texts).items():
    a = sp.csr_matrix(a)
    dense = a.toarray()
    s = np.linalg.svd(dense, compute_uv=False)
    norm = np.linalg.norm(s)
    tail = np.sqrt(np.append(np.cumsum((s**2)[::-1])[::-1], 0)) / norm
    sp.save_npz("a.npz", a)
    np.save("a.npy", dense)
    def check(r, what):
        f = np.load("f.npz")
        e = dense - f["U"] * f["S"] @ f["Vt"]
        left, longest, k = np.linalg.norm(e), np.linalg.norm(e, 2), len(f["S"])
        # so far rounding reaches
        u = 1e-13 * norm
        assert r["converged_values"] is not None and np.all(np.abs(f["S"] - s[:k])[:r["converged_values"]] <= 0.01 * f["S"][:r["converged_values"]]), what
        assert r["residual_bound"] >= left - u and r["spectral_bound"] >= longest - u, what
        assert max(r["residual_bound"], r["spectral_bound"]) <= norm * (1 + 1e-12), what
        assert r["residual_estimate"] <= r["residual_bound"] and r["spectral_estimate"] <= longest + u, what
        assert r["residual"] is None or abs(r["residual"] - left) <= 0.01 * left + u, what
        return left / norm
    for tolerance in (0.9, 0.5, 0.1, 1e-9):
        smallest = max(1, int(np.argmax(tail <= tolerance)))
        for path in ("a.npz", "a.npy") if tolerance != 0.9 else ("a.npz",):
            r = gnomon(path, "--tolerance", str(tolerance))
            left = check(r, (name, path, tolerance))
            assert left <= tolerance and r["converged"], (name, path, tolerance, left)
            # near rounding sparse rows go by a bound of what is left, which asks for more
            if path == "a.npy" or tolerance >= 1e-3:
                assert r["rank"] == smallest, (name, path, tolerance, r["rank"], smallest)
            assert r["passes"] <= 60 or tolerance < 1e-3, (name, path, tolerance, r["passes"])
    print(f"{name}: the smallest rank")
    # a tolerance out of reach: as many as are allowed, as good as without the tolerance
    k = min(8, np.count_nonzero(s > 1e-12 * s[0]))
    if tail[8] > 1e-3:
        r = gnomon("a.npz", "--tolerance", str(0.9 * tail[8]), "-k", "8")
        left = check(r, name)
        assert not r["converged"] and r["rank"] == 8 and left <= 1.01 * tail[8], (name, r["rank"], left, tail[8])
        print(f"{name}: out of reach, the full rank")
    r = gnomon("a.npz", "-k", "20")
    check(r, name)
    r = gnomon("a.npz", "-k", "20", "--power", "30")
    check(r, name)
    assert r["converged_values"] >= min(20, np.count_nonzero(s > 1e-12 * s[0])) - 2, (name, r["converged_values"])
    print(f"{name}: converged")
