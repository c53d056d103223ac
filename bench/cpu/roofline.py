#!/usr/bin/env python3
"""What jobs reach of what the machine itself does, at each level of instructions and number of threads.

usage: roofline.py CEILINGS [--threads 1 2 4 8 16] [--levels LEVEL ...] [--rounds 3] [--job TEXT]... [--commit TEXT]
                   [-o RECORD.json]

CEILINGS is the program of bench/cpu/ceilings.c. Needs the Python package (PYTHONPATH, GNOMON_LIBRARY) and NumPy, SciPy for
sparse points. Each job tells its multiply-adds, those that its definition asks for (an exact search of q queries among
n points of d dimensions: q n d), the bytes that it must read and write once, and the seconds of its quickest round. Levels
are values of GNOMON_ISA; a job's level decides which ceiling of multiply-adds it is held against. Levels that add 8-bit
products to avx512 are measured in jobs that use them. SGEMM is NumPy's BLAS.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

LEVELS = ["avx2", "avx512", "avx512_vnni", "amx"]


def searches(gnomon, rng):
    def dense(q, n, d, k):
        x, y = rng.random((n, d), dtype=np.float32), rng.random((q, d), dtype=np.float32)
        repeat = 10 if q == 1 else 1  # one query is short

        def run(threads):
            for _ in range(repeat):
                gnomon.neighbors(x, y, k, n_jobs=threads)
        return run, repeat * q * n * d, repeat * 4 * (n + q) * d

    def bits():
        x, y = (rng.integers(0, 256, (n, 32), dtype=np.uint8) for n in (200000, 1000))
        # a multiply-add of bits is an exclusive or and a count: of 8-bit products a byte has 8 times fewer
        return (lambda threads: gnomon.neighbors(x, y, 10, metric="hamming", n_jobs=threads)), 1000 * 200000 * 32, 201000 * 32

    yield "search, k = 10", "int8", lambda: dense(1000, 200000, 128, 10)
    yield "search, k = 100", "int8", lambda: dense(1000, 200000, 128, 100)
    yield "search, k = 1000", "int8", lambda: dense(1000, 100000, 128, 1000)
    yield "search, 960 dimensions", "int8", lambda: dense(1000, 50000, 960, 10)
    yield "search, 1 query", "read", lambda: dense(1, 200000, 128, 10)
    yield "search, 256 bits", "int8", bits


def clusters(rng, n, d, count):
    """Points around centres near a subspace, as images are: leading directions tell them apart."""
    basis = rng.normal(size=(24, d)).astype(np.float32)
    centres = rng.normal(size=(count, 24)).astype(np.float32)
    return centres[rng.integers(0, count, n)] @ basis + 0.5 * rng.normal(size=(n, d)).astype(np.float32)


def jobs():
    """Name, what bounds it ('int8': products in 8 bits, 'fp32', 'read'), and a function that makes the call, its
    multiply-adds and its bytes."""
    import gnomon
    rng = np.random.default_rng(7)

    def join():
        n, d = 30000, 256
        x = clusters(rng, n, d, 3000)
        return (lambda threads: gnomon.join(x, radius=14.0, n_jobs=threads)), n * (n - 1) // 2 * d, 4 * n * d

    def sketch(kind, n, d, k):
        x = rng.random((n, d), dtype=np.float32)
        s = gnomon.operator(k, d, kind=kind)
        out = np.empty((n, k), np.float32)
        products = n * d * k if kind in ("gaussian", "rademacher") else n * d
        return (lambda threads: gnomon.sketch(x, s, out=out, n_jobs=threads)), products, 4 * n * (d + k)

    def sparse_sketch():
        import scipy.sparse
        n, d, k, length = 100000, 100000, 256, 100
        x = scipy.sparse.csr_matrix((rng.random(n * length).astype(np.float32), rng.integers(0, d, n * length),
                                     np.arange(0, n * length + 1, length)), (n, d))
        s = gnomon.operator(k, d, kind="sjlt")
        per_column = 8
        return (lambda threads: gnomon.sketch(x, s, n_jobs=threads)), n * length * per_column, 12 * n * length + 4 * n * k

    def gemm():
        m, n, k = 4096, 512, 4096
        a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float16)
        return (lambda threads: gnomon.matmul(a, b, n_jobs=threads)), m * n * k, 4 * m * k + 2 * k * n + 4 * m * n

    def svd():
        n, rank, rounds = 4096, 256, 2
        x = rng.normal(size=(n, 512)).astype(np.float32) @ rng.normal(size=(512, n)).astype(np.float32)
        passes = 2 * rounds + 2
        return ((lambda threads: gnomon.svd(x, rank, n_iter=rounds, n_jobs=threads)), passes * n * n * rank,
                passes * 4 * n * n)

    yield from searches(gnomon, rng)
    yield "join, 30,000 x 256", "int8", join
    yield "sketch, rademacher, k = 1024", "fp32", lambda: sketch("rademacher", 1024, 1 << 16, 1024)
    yield "sketch, gaussian, k = 256", "fp32", lambda: sketch("gaussian", 256, 1 << 16, 256)
    yield "sketch, sjlt", "read", lambda: sketch("sjlt", 2048, 1 << 16, 1024)
    yield "sketch, sjlt, of sparse rows", "read", sparse_sketch
    yield "gemm, fp32 x fp16", "fp32", gemm
    yield "svd, 4096 x 4096, rank 256", "fp32", svd


def seconds_of(call, threads, rounds):
    call(threads)
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call(threads)
        taken.append(time.perf_counter() - start)
    return min(taken)


def sgemm(rounds):
    a, b = np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)
    return 2048 ** 3 / seconds_of(lambda threads: a @ b, 0, rounds)


def measure(threads, level, rounds, names, with_sgemm):
    """In a process of its own: a line of JSON a job."""
    if with_sgemm:
        print(json.dumps({"what": "SGEMM", "threads": threads, "rate": sgemm(rounds)}), flush=True)
    for name, bound, make in jobs():
        if names and not any(text in name for text in names):
            continue
        if bound != "int8" and level in ("avx512_vnni", "amx"):  # these levels add 8-bit products to avx512 alone
            continue
        call, products, size = make()
        print(json.dumps({"job": name, "bound": bound, "threads": threads, "level": level, "products": products,
                          "bytes": size, "seconds": seconds_of(call, threads, rounds)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ceilings")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--levels", nargs="*", default=LEVELS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", action="append", default=[])
    parser.add_argument("--commit", default="", help="of the library, for the record")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--sgemm", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    if args.measure:
        measure(int(args.measure[0]), args.measure[1], args.rounds, args.job, args.sgemm)
        return
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    result = {"bench": "roofline", "cpu": cpu.group(1).strip() if cpu else "", "cores": os.cpu_count(),
              "commit": args.commit, "rounds": args.rounds, "blas": os.environ.get("OPENBLAS_CORETYPE", ""),
              "ceilings": [], "cases": []}
    threads = [t for t in args.threads if t <= os.cpu_count()]
    out = subprocess.run([args.ceilings, *map(str, threads)], check=True, capture_output=True, text=True).stdout
    result["ceilings"] = [json.loads(line) for line in out.splitlines()]

    def keep():
        if args.output:  # after each process: a run that is cut off leaves what it has
            with open(args.output, "w") as file:
                json.dump(result, file, indent=1)
                file.write("\n")

    for t in threads:
        for i, level in enumerate(args.levels):
            command = [sys.executable, __file__, args.ceilings, "--measure", str(t), level, "--rounds", str(args.rounds)]
            for name in args.job:
                command += ["--job", name]
            if i == 0:
                command.append("--sgemm")
            environment = dict(os.environ, GNOMON_ISA=level, OPENBLAS_NUM_THREADS=str(t), OMP_NUM_THREADS=str(t))
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
            for line in done.stdout.splitlines():
                case = json.loads(line)
                result["ceilings" if "what" in case else "cases"].append(case)
                print(line, flush=True)
            keep()
            if done.returncode:
                print(f"roofline.py: {level} at {t} threads ended with {done.returncode}", file=sys.stderr, flush=True)


main()
