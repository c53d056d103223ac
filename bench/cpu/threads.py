#!/usr/bin/env python3
"""Every job at 1, 2, 4, ... threads, beside what the machine itself gains: SGEMM by NumPy's BLAS and a read of 1 GiB.

usage: threads.py [--threads 1 2 4 8 16] [--rounds 3] [--job TEXT]... [--commit TEXT] [-o RECORD.json]

Needs the Python package (PYTHONPATH, GNOMON_LIBRARY) and NumPy; SciPy for sparse points. Each number of threads has a
process of its own, since OpenBLAS reads its number once. A job's time is the least of the rounds, after one that
isn't counted. 'busy' is processor seconds by wall seconds: what lies between it and the
threads has waited.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import numpy as np


def clusters(rng, n, d, count=64):
    """Points around centers, as data has them: uniform points have no near neighbours to speak of."""
    centers = rng.normal(size=(count, d)).astype(np.float32)
    return centers[rng.integers(0, count, n)] + 0.3 * rng.normal(size=(n, d)).astype(np.float32)


def zipf(rng, n, d, length, tail=0.7):
    """Sparse rows whose columns follow Zipf's law, and values uniform in [0, 1)."""
    import scipy.sparse
    columns = np.minimum(rng.pareto(tail, size=n * length) * 3, d - 1).astype(np.int64)
    x = scipy.sparse.csr_matrix((rng.random(n * length), columns, np.arange(0, n * length + 1, length)), (n, d))
    x.sum_duplicates()
    return x


def jobs():
    """Name, what bounds it ('products' or 'reads'), and a function that makes the call."""
    def sgemm():
        a = np.ones((4096, 4096), np.float32)
        b = np.ones((4096, 2048), np.float32)
        return lambda threads: a @ b

    def read():
        x = np.ones(1 << 28, np.float32)

        def run(threads):
            cuts = np.linspace(0, x.size, threads + 1).astype(int)
            with concurrent.futures.ThreadPoolExecutor(threads) as pool:
                return sum(pool.map(lambda i: float(x[cuts[i]:cuts[i + 1]].max()), range(threads)))
        return run

    def project(kind, n, d, k, **parameters):
        def make():
            import gnomon
            x = rng.normal(size=(n, d)).astype(np.float32)
            s = gnomon.operator(k, d, kind=kind, **parameters)
            out = np.empty((n, k), np.float32)
            return lambda threads: gnomon.sketch(x, s, out=out, n_jobs=threads)
        return make

    def search(q, n, d, k=10, repeat=1):
        def make():
            import gnomon
            x = clusters(rng, n + q, d)
            return lambda threads: [gnomon.neighbors(x[q:], x[:q], k, n_jobs=threads) for _ in range(repeat)]
        return make

    def uniform_search():
        import gnomon
        x = rng.random((201000, 128), dtype=np.float32)
        return lambda threads: gnomon.neighbors(x[1000:], x[:1000], 10, n_jobs=threads)

    def hashed(building):
        def make():
            import gnomon
            x = clusters(rng, 110000, 128, 1000)
            if building:
                return lambda threads: gnomon.Index.build(x[10000:], tables=16, coarse=12, width=6.0, n_jobs=threads)
            index = gnomon.Index.tune(x[10000:], 10, recall=0.9, n_queries=200, always=True)
            return lambda threads: index.kneighbors(x[:10000], 10, n_jobs=threads)
        return make

    def join(recall):
        def make():
            import gnomon
            x = clusters(rng, 40000, 128, 4000)
            return lambda threads: gnomon.join(x, radius=4.0, recall=recall, n_jobs=threads)
        return make

    def sparse_join():
        import gnomon
        x = zipf(rng, 20000, 30000, 60, 0.3)
        return lambda threads: gnomon.join(x, radius=0.3, metric="cosine", n_jobs=threads)

    def sparse_search():
        import gnomon
        x = zipf(rng, 20000, 30000, 60, 0.3)
        return lambda threads: gnomon.neighbors(x[:18000], x[18000:], 10, metric="cosine", n_jobs=threads)

    def sets():
        import gnomon
        x = zipf(rng, 20000, 200000, 40, 0.3)
        return lambda threads: gnomon.join(x, radius=0.5, metric="jaccard", n_jobs=threads)

    def svd():
        import gnomon
        x = rng.normal(size=(4096, 512)).astype(np.float32) @ rng.normal(size=(512, 4096)).astype(np.float32)
        return lambda threads: gnomon.svd(x, 256, n_iter=2, n_jobs=threads)

    def sparse_svd():
        import gnomon
        x = zipf(rng, 60000, 30000, 60, 0.3)
        return lambda threads: gnomon.svd(x, 50, n_iter=2, n_jobs=threads)

    def hosvd():
        import gnomon
        x = rng.normal(size=(256, 256, 256)).astype(np.float32)
        return lambda threads: gnomon.hosvd(x, (32, 32, 32), n_jobs=threads)

    def lstsq():
        import gnomon
        a = rng.normal(size=(200000, 200))
        b = rng.normal(size=200000)
        return lambda threads: gnomon.lstsq(a, b, n_jobs=threads)

    def matmul():
        import gnomon
        a = rng.normal(size=(4096, 4096)).astype(np.float32)
        b = rng.normal(size=(4096, 512)).astype(np.float16)
        return lambda threads: gnomon.matmul(a, b, n_jobs=threads)

    rng = np.random.default_rng(7)
    return [
        ("SGEMM", "", sgemm),
        ("read of 1 GiB", "", read),
        ("project, rademacher, k = 1024", "products", project("rademacher", 1024, 1 << 16, 1024)),
        ("project, gaussian, k = 256", "products", project("gaussian", 256, 1 << 16, 256)),
        ("project, sjlt", "reads", project("sjlt", 4096, 1 << 16, 1024)),
        ("project, srht", "reads", project("srht", 4096, 1 << 16, 1024)),
        ("project, very-sparse", "reads", project("very-sparse", 4096, 1 << 16, 1024)),
        ("search, 1 query", "reads", search(1, 400000, 128, repeat=10)),
        ("search, 100 queries", "products", search(100, 400000, 128, repeat=3)),
        ("search, 1,000 uniform queries", "products", uniform_search),
        ("search, 10,000 queries", "products", search(10000, 100000, 128)),
        ("index build", "products", hashed(True)),
        ("index query, 10,000 queries", "reads", hashed(False)),
        ("join, exact", "products", join(1.0)),
        ("join, recall 0.95", "products", join(0.95)),
        ("join of sets", "reads", sets),
        ("join of sparse rows", "reads", sparse_join),
        ("search of sparse rows", "reads", sparse_search),
        ("svd 4096 x 4096, rank 256", "products", svd),
        ("svd of sparse rows", "reads", sparse_svd),
        ("hosvd 256 x 256 x 256", "products", hosvd),
        ("lstsq 200,000 x 200", "products", lstsq),
        ("matmul fp32 x fp16", "products", matmul),
    ]


def measure(threads, rounds, names):
    """In a process of its own: a line of JSON a job."""
    for name, bound, make in jobs():
        if names and not any(text in name for text in names):
            continue
        try:
            call = make()
            call(threads)
            taken = []
            for _ in range(rounds):
                wall, cpu = time.perf_counter(), time.process_time()
                call(threads)
                taken.append((time.perf_counter() - wall, time.process_time() - cpu))
            wall, cpu = min(taken)
            print(json.dumps({"job": name, "bound": bound, "threads": threads, "seconds": wall, "cpu_seconds": cpu,
                              "busy": cpu / wall}), flush=True)
        except Exception as error:  # a job that can't run here is named, the others go on
            print(json.dumps({"job": name, "bound": bound, "threads": threads, "error": str(error)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", action="append", default=[])
    parser.add_argument("--commit", default="", help="of the library, for the record")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.rounds, args.job)
        return
    import gnomon
    from gnomon._context import owned_context
    from gnomon._factor import svd_blas
    from gnomon._library import lib
    context = owned_context()
    isa = lib.gnomon_context_isa(context.handle).decode()
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    found = []
    result = {"bench": "threads", "version": gnomon.__version__, "cpu": cpu.group(1).strip() if cpu else "",
              "cores": os.cpu_count(), "isa": isa, "blas": svd_blas().split(" (")[0], "commit": args.commit, "rounds": args.rounds,
              "cases": found}
    for threads in args.threads:
        if threads > os.cpu_count():
            continue
        command = [sys.executable, __file__, "--measure", str(threads), "--rounds", str(args.rounds)]
        for name in args.job:
            command += ["--job", name]
        environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            for line in process.stdout:
                found.append(json.loads(line))
                print(line, end="", flush=True)
                if args.output:  # after each job: a run that is cut off leaves what it has
                    with open(args.output, "w") as file:
                        json.dump(result, file, indent=1)
                        file.write("\n")
        if process.returncode:
            sys.exit(f"threads.py: the process of {threads} threads ended with {process.returncode}")
    least = min(args.threads)
    print(f"\n{'job':34}" + "".join(f"{t:>9}" for t in args.threads) + "   gain")
    for name in dict.fromkeys(r["job"] for r in found):
        times = {r["threads"]: r["seconds"] for r in found if r["job"] == name and "seconds" in r}
        print(f"{name:34}" + "".join(f"{times[t]:9.3f}" if t in times else "        -" for t in args.threads)
              + (f"{times[least] / times[max(times)]:7.2f}" if least in times else ""))


main()
