#!/usr/bin/env python3
"""The Python package: what a call costs beside the C function's, how long the import takes, and fit_transform beside
scikit-learn's on the same cores, in turns.

usage: python.py [--rounds 5] [--case NAME]... [-o RECORD.json]
"""
import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy
import scipy.sparse
import sklearn
from binding import in_turns
from sklearn import decomposition, linear_model, neighbors, random_projection

import gnomon
from gnomon import _abi
from gnomon import sklearn as ours
from gnomon._arrays import dense
from gnomon._context import lease
from gnomon._library import lib


def overhead(rounds):
    """Seconds of one small call, by the package and of the C function with arguments that are ready: medians."""
    X, out = np.ones((1, 16), np.float32), np.zeros((1, 4), np.float32)
    S = gnomon.operator(4, 16)
    x, y = dense(X, "X"), dense(out, "out")
    options = _abi.gnomon_sketch_options()
    lib.gnomon_sketch_options_init(ctypes.byref(options), ctypes.sizeof(options))
    a, b, o = ctypes.byref(x.view), ctypes.byref(y.view), ctypes.byref(options)
    with lease() as ctx:
        handle, op, function = ctx.handle, S.handle, lib.gnomon_sketch

        def raw():
            function(handle, op, a, b, o)

        def whole():
            gnomon.sketch(X, S, out=out)

        found = {"package": [], "c": []}
        for _ in range(rounds):
            for name, call in (("package", whole), ("c", raw)):
                call()
                begin = time.perf_counter()
                for _ in range(3000):
                    call()
                found[name].append((time.perf_counter() - begin) / 3000)
    return {name: statistics.median(times) for name, times in found.items()}


def imports(rounds):
    """Seconds from the start of Python to the end of it, with the import of the package and with NumPy's alone."""
    found = {}
    for module in ("numpy", "gnomon"):
        times = []
        for _ in range(rounds + 1):
            out = subprocess.run([sys.executable, "-c", "import time; t = time.perf_counter(); "
                                  f"import {module}; print(time.perf_counter() - t)"], capture_output=True, text=True,
                                 check=True)
            times.append(float(out.stdout))
        found[module] = statistics.median(times[1:])
    return found


def texts(rows, words, each):
    rng = np.random.default_rng(0)
    columns = np.minimum(rng.zipf(1.2, rows * each) - 1, words - 1)
    found = scipy.sparse.csr_matrix((np.ones(rows * each), columns, np.arange(0, rows * each + 1, each)), (rows, words))
    found.sum_duplicates()
    return found


def cases():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(4000, 8000)).astype(np.float32)
    sparse = texts(20000, 30000, 60)
    tall = rng.normal(size=(100000, 100))
    points = rng.normal(size=(4000, 64)).astype(np.float32)
    y = rng.normal(size=len(tall))
    yield ("gaussian", "4,000 x 8,000 float32, k = 256", wide, None,
           ours.GaussianRandomProjection(256, random_state=0),
           random_projection.GaussianRandomProjection(256, random_state=0))
    yield ("sparse", "4,000 x 8,000 float32, k = 256", wide, None,
           ours.SparseRandomProjection(256, random_state=0),
           random_projection.SparseRandomProjection(256, random_state=0))
    yield ("svd", "20,000 x 30,000 sparse, 60 words a row, k = 50", sparse, None,
           ours.TruncatedSVD(50, random_state=0), decomposition.TruncatedSVD(50, random_state=0))
    yield ("pca", "4,000 x 8,000 float32, k = 20", wide, None, ours.PCA(20, iterated_power=4, random_state=0),
           decomposition.PCA(20, svd_solver="randomized", iterated_power=4, random_state=0))
    yield ("kneighbors", "4,000 x 64 float32, 10 neighbours", points, None, ours.KNeighborsTransformer(n_neighbors=10),
           neighbors.KNeighborsTransformer(n_neighbors=10, algorithm="brute", n_jobs=-1))
    yield ("ridge", "100,000 x 100 float64", tall, y, ours.SketchedRidge(random_state=0),
           linear_model.Ridge(solver="cholesky"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    record = {"facts": {"threads": len(os.sched_getaffinity(0)), "machine": platform.machine(),
                        "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
                        "scikit-learn": sklearn.__version__, "blas": gnomon.svd_blas()},
              "load_average": os.getloadavg()[0], "call_seconds": overhead(options.rounds),
              "import_seconds": imports(options.rounds), "cases": {}}
    print(json.dumps({k: record[k] for k in ("call_seconds", "import_seconds")}))
    for name, what, X, y, mine, theirs in cases():
        if options.case and name not in options.case:
            continue

        def run(estimator):
            return estimator.fit(X, y) if y is not None else estimator.fit_transform(X)

        sides = in_turns([lambda: run(mine), lambda: run(theirs)], options.rounds)
        record["cases"][name] = {"what": what, "who": {
            who: {"seconds": side[0], "processor_seconds": side[1], "others": side[2]}
            for who, side in zip(("gnomon", "scikit-learn"), sides)}}
        print(name, what, *(f"{side[0]:.3f} s ({side[1]:.3f} s of processors)" for side in sides))
    if options.output:
        with open(options.output, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
