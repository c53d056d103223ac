"""SVD and PCA of sparse rows beside scikit-learn, in one run: seconds, residuals, memory; and rows larger than memory.

usage: sparse_svd.py POINTS.npz [--documents N] [--rank 100] [--rounds 3] [--threads 1 2] [--gnomon COMMAND]
                     [--memory 128M] [-o FILE.json] [--append]

The points are a SciPy matrix, or as many vectors like those of learned sparse models as --documents says (sparse.py).
Every side gets them in memory, factors them in their type and returns scores and components. gnomon runs by its defaults
and with as many iterations as reach the residual of the peer. Residuals are computed here in double precision:
sqrt(|A|^2 - |A V|^2) / |A| with V orthonormalised, A less its mean for PCA. Memory is the growth of the process's peak
beyond what it holds before the call, which has the points; the result is in it. With --gnomon the command factors a file of
the points in memory and piece by piece in --memory, stored and compressed. --append adds to a record of other points.
Needs the Python package, scikit-learn and threadpoolctl."""
import argparse
import filecmp
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import PCA, TruncatedSVD
from threadpoolctl import threadpool_info, threadpool_limits

import gnomon


def megabytes(field):
    """Of the process, by Linux."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 / 1e6 for line in file if line.startswith(field))


def peak(call, x):
    """By how many MB the process's memory grows during the call."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak is what there is now
    before = megabytes("VmRSS")
    kept = call(x)
    after = megabytes("VmHWM")
    del kept
    return after - before


# Of a process that is started from this one the peak would be at least this one's.
RUN = """import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([json.loads(done.stdout), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6]))"""


def pieces(command, x, rank, memory):
    """The command in memory and piece by piece: seconds, passes and the peak of its memory in MB."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for center in (False, True):
            for stored in (True, False):
                points = os.path.join(folder, f"{stored}.npz")
                if not os.path.exists(points):
                    sp.save_npz(points, x, compressed=not stored)
                for limit in ("4G", memory):
                    out = os.path.join(folder, f"{limit}.out.npz")
                    run = subprocess.run([sys.executable, "-c", RUN, command, "svd", points, "-k", str(rank), "--memory", limit, "--device",
                                          "cpu", "--json", "-o", out] + ["--center"] * center, stdout=subprocess.PIPE, check=True)
                    report, cpu, most = json.loads(run.stdout)
                    rows.append({"center": center, "stored": stored, "memory": limit, "held": report["held"], "passes": report["passes"],
                                 "threads": report["threads"], "read_seconds": report["read_seconds"], "svd_seconds": report["svd_seconds"],
                                 "cpu_seconds": cpu, "peak_mb": most,
                                 "file_mb": os.path.getsize(points) / 1e6})
                    print(json.dumps(rows[-1]), flush=True)
                rows[-1]["same_bytes"] = filecmp.cmp(os.path.join(folder, "4G.out.npz"), out, False)
    return rows


def residual(x, components, center):
    """Of the projection on the rows of components, relative to the norm of x."""
    v = np.linalg.qr(components.astype(np.float64).T)[0]
    mean = np.asarray(x.mean(0)).ravel() if center else np.zeros(x.shape[1])
    total = (x.data ** 2).sum() - x.shape[0] * (mean @ mean)
    y = x @ v - mean @ v
    return float(np.sqrt(max(0, 1 - (y * y).sum() / total)))


def jobs(rank, threads):
    """Name, whether centred, and the call, which returns the components."""
    def ours(center, **more):
        def call(x):
            found = gnomon.svd(x, rank, center=center, n_jobs=threads, device="cpu", **more)
            return found.Vt, found.U
        return call

    def peer(model):
        def call(x):
            scores = model.fit_transform(x)
            return model.components_, scores
        return call

    return [("gnomon", False, ours(False)),
            ("gnomon, 4 iterations", False, ours(False, n_iter=4)),
            ("gnomon, 10 iterations", False, ours(False, n_iter=10)),
            ("gnomon, 10 iterations, no certificate", False, ours(False, n_iter=10, n_test_vectors=0)),
            ("TruncatedSVD, randomized", False, peer(TruncatedSVD(rank, random_state=0))),
            ("TruncatedSVD, arpack", False, peer(TruncatedSVD(rank, algorithm="arpack", random_state=0))),
            ("gnomon", True, ours(True)),
            ("gnomon, 10 iterations", True, ours(True, n_iter=10)),
            ("gnomon, 10 iterations, no certificate", True, ours(True, n_iter=10, n_test_vectors=0)),
            ("PCA, arpack", True, peer(PCA(rank, svd_solver="arpack", random_state=0)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", nargs="?")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--gnomon")
    parser.add_argument("--memory", default="128M")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if args.documents:
        from sparse import documents
        x = documents(args.documents)
    else:
        x = sp.csr_matrix(sp.load_npz(args.points))
    x.sort_indices()
    exact = x.astype(np.float64)
    rows, memory = [], []
    with threadpool_limits(1):
        for name, center, call in jobs(args.rank, 1):
            if "iterations" not in name:
                memory.append({"who": name, "center": center, "peak_mb": peak(call, x)})
                print(json.dumps(memory[-1]), flush=True)
    for threads in args.threads:
        todo, times, found = jobs(args.rank, threads), {}, {}
        with threadpool_limits(threads):
            for _ in range(args.rounds):
                for name, center, call in todo:
                    cpu, wall = time.process_time(), time.perf_counter()
                    components = call(x)[0]
                    taken = (time.perf_counter() - wall, time.process_time() - cpu)
                    times.setdefault((name, center), []).append(taken)
                    found[name, center] = components
        for name, center, _ in todo:
            wall, cpu = (statistics.median(t) for t in zip(*times[name, center]))
            rows.append({"threads": threads, "who": name, "center": center, "seconds": wall, "cpu_seconds": cpu,
                         "least_cpu_seconds": min(t[1] for t in times[name, center]),
                         "residual": residual(exact, found[name, center], center)})
            print(json.dumps(rows[-1]), flush=True)
    nonzeros_mb = (x.data.nbytes + x.indices.nbytes + x.indptr.nbytes) / 1e6
    record = {"points": "documents" if args.documents else "texts", "version": gnomon.__version__, "blas": gnomon.svd_blas(),
              "peer_blas": sorted({f"{i['internal_api']} {i.get('version')} {i.get('architecture')}"
                                   for i in threadpool_info() if i["user_api"] == "blas"}),
              "sklearn": sklearn.__version__, "scipy": scipy.__version__, "numpy": np.__version__,
              "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(),
              "shape": x.shape, "nonzeros": int(x.nnz), "dtype": str(x.dtype), "rank": args.rank, "rounds": args.rounds,
              "points_mb": nonzeros_mb, "factors_mb": args.rank * sum(x.shape) * x.dtype.itemsize / 1e6,
              "rows": rows, "memory": memory, "pieces": pieces(args.gnomon, x, args.rank, args.memory) if args.gnomon else []}
    if args.output:
        sets = []
        if args.append:
            with open(args.output, encoding="utf-8") as file:
                sets = json.load(file)["sets"]
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump({"sets": sets + [record]}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
