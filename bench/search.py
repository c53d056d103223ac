"""Exact search beside FAISS's flat indexes: seconds and answers, in one run, turn by turn.

usage: search.py LIBRARY [--rounds 5] [--threads 2] [--only TEXT] [--output FILE.json]

Needs NumPy and FAISS (Debian's python3-faiss or the wheel faiss-cpu). Points are uniform in the
unit cube (bits and bytes: uniform). Each case tells the median wall time of both sides, the rate of
multiply-adds beside SGEMM's in the same process, how many answers differ, and FAISS's largest error of a distance relative
to ours. With one thread the processor time is told too, which other work on the machine moves
less."""
import argparse
import ctypes as c
import json
import os
import platform
import statistics
import time

import numpy as np

try:
    import faiss
except ImportError:
    faiss = None


class Matrix(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("memory", c.c_int), ("rows", c.c_int64),
                ("cols", c.c_int64), ("row_stride", c.c_int64), ("col_stride", c.c_int64)]


class ContextOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_int), ("threads", c.c_int),
                ("allocator", c.c_void_p), ("progress", c.c_void_p), ("progress_user", c.c_void_p),
                ("memory_limit", c.c_int64), ("seed", c.c_uint64), ("cuda_device", c.c_int)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("k", c.c_int64),
                ("radius", c.c_double), ("allowed", c.c_void_p), ("allowed_bits", c.c_int64),
                ("exclude", c.c_int64)]


class Neighbors(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("queries", c.c_int64), ("k", c.c_int64),
                ("base", c.c_int64), ("offsets", c.POINTER(c.c_int64)),
                ("ids", c.POINTER(c.c_int64)), ("distances", c.POINTER(c.c_double)),
                ("compared", c.c_int64), ("verified", c.c_int64)]


METRICS = {"l2": 1, "cosine": 2, "ip": 3, "hamming": 4}
# name, metric, queries, base, dimensions (bytes for hamming), k
CASES = [
    ("the claim", "l2", 1000, 200000, 128, 10),
    ("k = 100", "l2", 1000, 200000, 128, 100),
    ("k = 1000", "l2", 1000, 100000, 128, 1000),
    ("960 dimensions", "l2", 1000, 50000, 960, 10),
    ("one query", "l2", 1, 200000, 128, 10),
    ("inner product", "ip", 1000, 200000, 128, 10),
    ("bytes", "l2 of bytes", 1000, 200000, 128, 10),
    ("256 bits", "hamming", 1000, 200000, 32, 10),
]


def context(lib, threads):
    ctx = c.c_void_p()
    options = ContextOptions(struct_size=c.sizeof(ContextOptions), device=1, threads=threads,
                             cuda_device=-1)
    assert lib.gnomon_context_create(c.byref(options), c.byref(ctx)) == 0
    return ctx


def view(a):
    return Matrix(a.ctypes.data, 6 if a.dtype == np.uint8 else 1, 0, a.shape[0], a.shape[1],
                  a.shape[1], 1)


def ours(lib, ctx, metric, base, queries, k):
    options = Options(struct_size=c.sizeof(Options), metric=METRICS[metric.split()[0]], k=k,
                      exclude=-1)
    found = Neighbors(struct_size=c.sizeof(Neighbors))
    b, q = view(base), view(queries)
    wall, cpu = time.perf_counter(), time.process_time()
    status = lib.gnomon_neighbors_exact(ctx, c.byref(b), c.byref(q), c.byref(options),
                                        c.byref(found))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if status != 0:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    shape = (len(queries), k)
    ids = np.ctypeslib.as_array(found.ids, shape).copy()
    distances = np.ctypeslib.as_array(found.distances, shape).copy()
    verified = found.verified
    lib.gnomon_neighbors_free(ctx, c.byref(found))
    return wall, cpu, ids, distances, verified


def peer_index(metric, base):
    if metric == "hamming":
        index = faiss.IndexBinaryFlat(8 * base.shape[1])
        index.add(base)
        return index
    index = (faiss.IndexFlatIP if metric == "ip" else faiss.IndexFlatL2)(base.shape[1])
    index.add(base.astype(np.float32))
    return index


def peer(index, queries, k):
    if not isinstance(index, faiss.IndexBinaryFlat):
        queries = queries.astype(np.float32)
    wall, cpu = time.perf_counter(), time.process_time()
    distances, ids = index.search(queries, k)
    return time.perf_counter() - wall, time.process_time() - cpu, ids, distances


def sgemm(queries, base):
    """Multiply-adds a second of the product of these points, by the BLAS of NumPy."""
    base = np.ascontiguousarray(base[:8192], dtype=np.float32)
    queries = queries.astype(np.float32)
    wall, cpu = time.perf_counter(), time.process_time()
    queries @ base.T
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return queries.shape[0] * base.shape[0] * base.shape[1] / np.array([wall, cpu])


def run_case(lib, threads, rounds, case):
    name, metric, q, n, d, k = case
    rng = np.random.default_rng(1)
    if metric in ("hamming", "l2 of bytes"):
        base, queries = (rng.integers(0, 256, (m, d), dtype=np.uint8) for m in (n, q))
    else:
        base, queries = (rng.random((m, d), dtype=np.float32) for m in (n, q))
    ctx = context(lib, threads)
    index = peer_index(metric, base) if faiss else None
    times, theirs, rates = [], [], []
    for i in range(rounds + 1):
        wall, cpu, ids, distances, verified = ours(lib, ctx, metric, base, queries, k)
        if i:
            times.append((wall, cpu))
        if metric != "hamming" and q > 1:
            rates.append(sgemm(queries, base))
        if faiss:
            wall, cpu, other, values = peer(index, queries, k)
            if i:
                theirs.append((wall, cpu))
    lib.gnomon_context_destroy(ctx)
    median = [statistics.median(t[i] for t in times) for i in range(2)]
    record = {"name": name, "metric": metric, "queries": q, "base": n, "dimensions": d, "k": k,
              "threads": threads, "seconds": median[0], "cpu_seconds": median[1],
              "verified_a_query": verified / q}
    pairs = q * n
    record["pairs_a_second"] = pairs / median[0]
    if rates:
        best = np.median(np.array(rates), axis=0)
        record["share_of_sgemm"] = pairs * d / median[0] / best[0]
        record["cpu_share_of_sgemm"] = pairs * d / median[1] / best[1]
    if faiss:
        values = values.astype(np.float64)
        if metric.startswith("l2"):
            values = np.sqrt(np.maximum(values, 0))
        record["faiss_seconds"] = statistics.median(t[0] for t in theirs)
        record["faiss_cpu_seconds"] = statistics.median(t[1] for t in theirs)
        record["faster"] = record["faiss_seconds"] / record["seconds"]
        record["cpu_faster"] = record["faiss_cpu_seconds"] / record["cpu_seconds"]
        record["faiss_other_ids"] = int((ids != other).sum())
        record["faiss_other_sets"] = int(sum(len(set(a) - set(b)) for a, b in zip(ids, other)))
        record["faiss_distance_error"] = float(np.max(np.abs(values - distances) /
                                                      np.maximum(np.abs(distances), 1e-30)))
    print(json.dumps(record), flush=True)
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 1])
    parser.add_argument("--only", default="")
    parser.add_argument("--output")
    args = parser.parse_args()
    lib = c.CDLL(os.path.abspath(args.library))
    lib.gnomon_last_error.restype = c.c_char_p
    lib.gnomon_version.restype = c.c_char_p
    before = os.getloadavg()
    records = []
    for threads in args.threads:
        if faiss:
            faiss.omp_set_num_threads(threads)
        for case in CASES:
            if args.only in case[0]:
                records.append(run_case(lib, threads, args.rounds, case))
    result = {"bench": "search", "version": lib.gnomon_version().decode(),
              "peer": "FAISS " + faiss.__version__ if faiss else None, "machine": platform.machine(),
              "cores": os.cpu_count(), "load_before": before, "load_after": os.getloadavg(),
              "rounds": args.rounds, "cases": records}
    if args.output:
        with open(args.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
