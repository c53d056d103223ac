"""A process that works with NumPy and scikit-learn too gets the same bytes, and so do they."""
import subprocess
import sys

PROGRAM = """
import hashlib, sys, threading
import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 300)).astype(np.float32)
A = rng.normal(size=(700, 700))

def numpy():
    found = [np.dot(A, A).tobytes(), np.linalg.svd(A[:90, :90])[1].tobytes()]
    try:
        from sklearn.neighbors import NearestNeighbors  # by OpenMP and BLAS
    except ImportError:
        pass
    else:
        found.append(NearestNeighbors(algorithm="brute").fit(X).kneighbors()[1].tobytes())
    return hashlib.sha256(b"".join(found)).hexdigest()

def pools():
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    return sorted((one["filepath"], one["num_threads"]) for one in threadpool_info() if "numpy" in one["filepath"])

def ours():
    import gnomon
    found = [gnomon.sketch(X, 64, kind=kind) for kind in ("gaussian", "sjlt", "srht")]
    found += gnomon.neighbors(X, n_neighbors=4)[:2]
    if gnomon.svd_missing() is None:
        found += [*gnomon.svd(X, 5), gnomon.lstsq(X, X[:, 0] + 1, n_test_vectors=0).x]
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in found)).hexdigest()

told = []
for step in sys.argv[1].split():
    if step == "both":
        there = threading.Thread(target=lambda: told.append(("beside", numpy())))
        there.start()
        told.append(("ours", ours()))
        there.join()
    else:
        told.append((step, {"numpy": numpy, "ours": ours, "pools": pools}[step]()))
for what in told:
    print(*what, sep=": ")
"""


def run(*steps):
    """What each of the steps told, by its name."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, " ".join(steps)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        name, value = line.split(": ", 1)
        found.setdefault(name, []).append(value)
    return found


def test_same_bytes_beside_numpy_and_scikit_learn():
    alone, theirs = run("ours")["ours"], run("numpy")["numpy"]
    first = run("numpy", "pools", "ours", "pools", "numpy", "ours", "both", "both")
    after = run("ours", "numpy", "pools", "ours", "pools", "numpy", "both", "numpy")
    assert set(first["ours"] + after["ours"]) == set(alone) and len(first["ours"]) == 4 and len(after["ours"]) == 3
    assert set(first["numpy"] + after["numpy"][:2]) == set(theirs) and len(first["numpy"]) == 2
    for told in (first, after):  # NumPy keeps as many threads as it had
        assert told["pools"][0] == told["pools"][1]
        # NumPy has an OpenBLAS of its own: gnomon's calls don't reach it. Of one that both use scikit-learn, in another
        # thread, puts back the number of threads that it saw, which may be that of gnomon's calls.
        if told["pools"][0] not in ("None", "[]"):
            assert set(told["beside"] + told["numpy"]) == set(theirs)
