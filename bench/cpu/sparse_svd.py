"""SVD and PCA of sparse rows beside scikit-learn, in one run: processor seconds and residuals.

usage: sparse_svd.py POINTS.npz [--rank 100] [--rounds 3] [--threads 1 2] [-o FILE.json]

The points are a SciPy matrix. Every side gets it in memory, factors it in its type and returns scores and components.
gnomon runs by its defaults and with as many iterations as reach the residual of the peer. Residuals are computed here
in double precision: sqrt(|A|^2 - |A V|^2) / |A| with V orthonormalised, A less its mean for PCA. Needs the Python
package, scikit-learn and threadpoolctl."""
import argparse
import json
import os
import platform
import statistics
import time

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import PCA, TruncatedSVD
from threadpoolctl import threadpool_info, threadpool_limits

import gnomon


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
            return gnomon.svd(x, rank, center=center, n_jobs=threads, device="cpu", **more).Vt
        return call

    def peer(model):
        def call(x):
            model.fit_transform(x)
            return model.components_
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
    parser.add_argument("points")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    x = sp.csr_matrix(sp.load_npz(args.points))
    x.sort_indices()
    exact = x.astype(np.float64)
    rows = []
    for threads in args.threads:
        todo, times, found = jobs(args.rank, threads), {}, {}
        with threadpool_limits(threads):
            for _ in range(args.rounds):
                for name, center, call in todo:
                    cpu, wall = time.process_time(), time.perf_counter()
                    components = call(x)
                    taken = (time.perf_counter() - wall, time.process_time() - cpu)
                    times.setdefault((name, center), []).append(taken)
                    found[name, center] = components
        for name, center, _ in todo:
            wall, cpu = (statistics.median(t) for t in zip(*times[name, center]))
            rows.append({"threads": threads, "who": name, "center": center, "seconds": wall, "cpu_seconds": cpu,
                         "least_cpu_seconds": min(t[1] for t in times[name, center]),
                         "residual": residual(exact, found[name, center], center)})
            print(json.dumps(rows[-1]), flush=True)
    record = {"version": gnomon.__version__, "blas": gnomon.svd_blas(),
              "peer_blas": sorted({f"{i['internal_api']} {i.get('version')} {i.get('architecture')}"
                                   for i in threadpool_info() if i["user_api"] == "blas"}),
              "sklearn": sklearn.__version__, "scipy": scipy.__version__, "numpy": np.__version__,
              "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(),
              "shape": x.shape, "nonzeros": int(x.nnz), "dtype": str(x.dtype), "rank": args.rank, "rounds": args.rounds,
              "rows": rows}
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
