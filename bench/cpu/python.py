#!/usr/bin/env python3
"""The Python package: what a call costs beside the C function's, what a row costs a fitted estimator, how long the import
takes, fit_transform beside scikit-learn's on the same cores, in turns, and searches beside FAISS and pynndescent where
they are installed.

usage: python.py [--rounds 5] [--case NAME]... [--part calls|cases|searches]... [-o RECORD.json]

A part's figures replace those of the record, if there is one.
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
import types

import numpy as np
import scipy
import scipy.sparse
import sklearn
from binding import images, in_turns
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


def rows(rounds):
    """Seconds that a fitted projection takes for one row: ours, scikit-learn's, and the bare sketch; medians."""
    X = np.random.default_rng(0).normal(size=(100, 1000)).astype(np.float32)
    mine = ours.GaussianRandomProjection(64, random_state=0).fit(X)
    theirs = random_projection.GaussianRandomProjection(64, random_state=0).fit(X)
    calls = {"gnomon": lambda: mine.transform(X[:1]), "scikit-learn": lambda: theirs.transform(X[:1]),
             "sketch": lambda: gnomon.sketch(X[:1], mine.operator_)}
    found = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            begin = time.perf_counter()
            for _ in range(1000):
                call()
            found[name].append((time.perf_counter() - begin) / 1000)
    return {name: statistics.median(times) for name, times in found.items()}


def imports(rounds):
    """Seconds of imports, compiled before, as pip does it: NumPy alone; the package, which imports nothing more; with its first
    function, which imports NumPy and opens the library; and that where NumPy is imported already."""
    ways = {"numpy": ("", "import numpy"), "gnomon": ("", "import gnomon"), "first": ("", "import gnomon; gnomon.sketch"),
            "beside numpy": ("import numpy; ", "import gnomon; gnomon.sketch")}
    found = {}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for name, (before, code) in ways.items():
        times = []
        for _ in range(rounds + 1):
            out = subprocess.run([sys.executable, "-c", f"import time; {before}t = time.perf_counter(); "
                                  f"{code}; print(time.perf_counter() - t)"], capture_output=True, text=True,
                                 check=True, env=environment)
            times.append(float(out.stdout))
        found[name] = statistics.median(times[1:])
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


OURS = [(lib, name) for name in _abi.FUNCTIONS]
# What scikit-learn's estimators call to do the same as the library's functions.
THEIRS = {
    "gaussian": [(random_projection.GaussianRandomProjection, name) for name in ("_make_random_matrix", "transform")],
    "sparse": [(random_projection.SparseRandomProjection, "_make_random_matrix"), (random_projection, "safe_sparse_dot")],
    "svd": [(decomposition._truncated_svd, "_randomized_svd")],
    "pca": [(decomposition._pca, "_randomized_svd")],
    "kneighbors": [(neighbors._base, "ArgKmin")],
    "ridge": [(linear_model._ridge, "_solve_cholesky")],
}


class Inside:
    """Seconds that calls of these functions take, while it is in force: of functions by object and name, and of the methods of
    a class that is looked up by its name."""

    def __init__(self, functions):
        self.functions = functions

    def __enter__(self):
        self.seconds, self.before = 0.0, []
        for owner, name in self.functions:
            here = vars(owner).get(name)
            self.before.append((owner, name, here))
            function = getattr(owner, name)
            setattr(owner, name, self.methods(function) if isinstance(function, type) else self.timed(function))
        return self

    def methods(self, kind):
        return types.SimpleNamespace(**{name: self.timed(getattr(kind, name)) for name in ("is_usable_for", "compute")})

    def timed(self, function):
        def call(*arguments, **named):
            begin = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - begin
        return call

    def __exit__(self, *error):
        for owner, name, here in self.before:
            if here is None:
                delattr(owner, name)
            else:
                setattr(owner, name, here)


def beside(run, functions, rounds):
    """Medians of an estimator's seconds, and of those of them that pass in the functions."""
    found = []
    for _ in range(rounds + 1):
        with Inside(functions) as inside:
            begin = time.perf_counter()
            run()
            found.append((time.perf_counter() - begin, inside.seconds))
    return dict(zip(("seconds", "function_seconds"), (statistics.median(column) for column in zip(*found[1:]))))


K, RECALL = 10, 0.9


def searches(rounds):
    """Ten neighbours of 1,000 test images among 60,000 of Fashion-MNIST, by exact search and by indexes: seconds to make
    the index, seconds for all queries, and the share of the true neighbours found."""
    X = images("train-images-idx3-ubyte.gz", 60000).astype(np.float32)
    Q = images("t10k-images-idx3-ubyte.gz", 1000).astype(np.float32)
    X, Q = X.reshape(len(X), -1), Q.reshape(len(Q), -1)
    truth = gnomon.neighbors(X, Q, K)
    limit = truth.distances[:, -1:] * (1 + 1e-6)  # of equal distances any will do

    def share(indices):
        distances = np.sqrt(((X[indices] - Q[:, None]).astype(np.float64) ** 2).sum(2))
        return float((distances <= limit).mean())

    def entry(made, exact, ask):
        found = in_turns([ask], rounds, patience=10)[0]
        return {"make_seconds": made, "exact": exact, "seconds": found[0], "processor_seconds": found[1],
                "others": found[2], "recall": share(found[3])}

    def timed(make):
        begin = time.perf_counter()
        found = make()
        return time.perf_counter() - begin, found

    out = {"gnomon": entry(0.0, True, lambda: gnomon.neighbors(X, Q, K).indices)}
    made, index = timed(lambda: gnomon.Index.tune(X, K, recall=RECALL, always=True))
    out[f"gnomon, Index.tune(recall={RECALL})"] = entry(made, False, lambda: index.kneighbors(Q, K).indices)
    versions = {}
    try:
        import faiss
    except ImportError:
        print("no FAISS: left out", file=sys.stderr)
    else:
        versions["faiss"] = faiss.__version__
        flat = faiss.IndexFlatL2(X.shape[1])
        flat.add(X)
        out["FAISS, IndexFlatL2"] = entry(0.0, True, lambda: flat.search(Q, K)[1])
        made, ivf = timed(lambda: faiss.index_factory(X.shape[1], "IVF256,Flat"))
        more, _ = timed(lambda: (ivf.train(X), ivf.add(X)))
        for ivf.nprobe in (1, 2, 4, 8, 16, 32, 64):  # the least that finds so much
            if share(ivf.search(Q, K)[1]) >= RECALL:
                break
        out[f"FAISS, IVF256, nprobe {ivf.nprobe}"] = entry(made + more, False, lambda: ivf.search(Q, K)[1])
        graph = faiss.IndexHNSWFlat(X.shape[1], 16)
        made, _ = timed(lambda: graph.add(X))
        for graph.hnsw.efSearch in (10, 16, 32, 64, 128, 256):
            if share(graph.search(Q, K)[1]) >= RECALL:
                break
        out[f"FAISS, HNSW16, efSearch {graph.hnsw.efSearch}"] = entry(made, False, lambda: graph.search(Q, K)[1])
    try:
        import pynndescent
    except ImportError:
        print("no pynndescent: left out", file=sys.stderr)
    else:
        versions["pynndescent"] = pynndescent.__version__
        pynndescent.NNDescent(X[:2000], random_state=0).query(Q[:10], k=K)  # it compiles itself
        made, nn = timed(lambda: pynndescent.NNDescent(X, random_state=0, n_jobs=-1))
        more, _ = timed(nn.prepare)
        out["pynndescent"] = entry(made + more, False, lambda: nn.query(Q, k=K)[0])
    return {"what": "10 neighbours of 1,000 among 60,000 x 784, Fashion-MNIST, float32", "versions": versions, "who": out}


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", action="append")
    parser.add_argument("--part", action="append", choices=["calls", "cases", "searches"])
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    parts = options.part or ["calls", "cases", "searches"]
    record = {"cases": {}}
    if options.output and os.path.exists(options.output):
        with open(options.output) as file:
            record = json.load(file)
    record["cpu"] = processor()
    facts = {"threads": len(os.sched_getaffinity(0)), "python": platform.python_version(), "numpy": np.__version__,
             "scipy": scipy.__version__, "scikit-learn": sklearn.__version__, "blas": gnomon.svd_blas().split(" (")[0],
             "commit": os.environ.get("GNOMON_COMMIT", "")}
    record.setdefault("facts", {}).update({part: facts for part in parts})
    if "calls" in parts:
        record.update(call_seconds=overhead(options.rounds), row_seconds=rows(options.rounds),
                      import_seconds=imports(options.rounds))
        print(json.dumps({name: record[name] for name in ("call_seconds", "row_seconds", "import_seconds")}))
    for name, what, X, y, mine, theirs in cases() if "cases" in parts else ():
        if options.case and name not in options.case:
            continue

        def run(estimator):
            return estimator.fit(X, y) if y is not None else estimator.fit_transform(X)

        sides = in_turns([lambda: run(mine), lambda: run(theirs)], options.rounds)
        record["cases"][name] = {"what": what, "who": {
            who: {"seconds": side[0], "processor_seconds": side[1], "others": side[2]}
            for who, side in zip(("gnomon", "scikit-learn"), sides)}}
        for who, estimator, functions in (("gnomon", mine, OURS), ("scikit-learn", theirs, THEIRS[name])):
            record["cases"][name]["who"][who]["inside"] = beside(lambda: run(estimator), functions, options.rounds)
        print(name, what, *(f"{side[0]:.3f} s ({side[1]:.3f} s of processors)" for side in sides))
    if "searches" in parts:
        record["searches"] = searches(options.rounds)
        for name, e in record["searches"]["who"].items():
            print(f"{name}: made in {e['make_seconds']:.2f} s, {e['seconds']:.3f} s, recall {e['recall']:.4f}")
    if options.output:
        with open(options.output, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
