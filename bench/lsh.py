"""Search by hashing with a promise of recall on Fashion-MNIST, beside FAISS's flat index and its IndexLSH and
our exact search: in one run, turn by turn.

usage: lsh.py LIBRARY [--rounds 3] [--threads 2] [--queries 10000] [--output FILE.json]

Needs NumPy, FAISS (Debian's python3-faiss or the wheel faiss-cpu) and Debian's package
dataset-fashion-mnist. Base: the 60,000 training images; queries: the 10,000 test images; k = 10, l2. The
index is tuned on the base alone, so that recall on the queries is a fresh figure. Wall time is the
median; processor time, which other work on the machine moves less, stands beside it."""
import argparse
import ctypes as c
import gzip
import json
import os
import platform
import statistics
import time

import faiss
import numpy as np

FOLDER = "/usr/share/datasets/fashion-mnist/"
K = 10


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


class Promise(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("recall", c.c_double),
                ("confidence", c.c_double), ("k", c.c_int64), ("radius", c.c_double),
                ("memory", c.c_int64), ("queries", c.c_int64), ("seed", c.c_uint64),
                ("descriptor", c.c_void_p), ("slower", c.c_int)]


class Trial(c.Structure):
    _fields_ = [("family", c.c_int), ("width", c.c_double), ("sides", c.c_int64),
                ("tables", c.c_int64), ("functions", c.c_int64), ("probes", c.c_int64),
                ("verified", c.c_int64), ("recall", c.c_double), ("candidates", c.c_double),
                ("cost", c.c_double), ("bytes", c.c_int64), ("chosen", c.c_int)]


class Tuning(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("exact", c.c_int), ("reason", c.c_char_p),
                ("recall", c.c_double), ("bound", c.c_double), ("tested", c.c_int64),
                ("asked", c.c_int64), ("exact_cost", c.c_double), ("trials", c.POINTER(Trial)),
                ("trial_count", c.c_int64)]


def images(name, count):
    with gzip.open(FOLDER + name) as file:
        data = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    return np.ascontiguousarray(data[:count].astype(np.float32))


def view(a):
    return Matrix(a.ctypes.data, 1, 0, a.shape[0], a.shape[1], a.shape[1], 1)


def check(lib, ctx, status):
    if status != 0:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    out = call()
    return time.perf_counter() - wall, time.process_time() - cpu, out


def search(lib, ctx, call):
    options = Options(struct_size=c.sizeof(Options), metric=1, k=K, exclude=-1)
    found = Neighbors(struct_size=c.sizeof(Neighbors))
    check(lib, ctx, call(options, found))
    ids = np.ctypeslib.as_array(found.ids, (found.queries, K)).copy()
    lib.gnomon_neighbors_free(ctx, c.byref(found))
    return ids


def recall(ids, truth):
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, truth)]))


def tune(lib, ctx, base, target):
    promise = Promise(struct_size=c.sizeof(Promise), metric=1, recall=target, confidence=0.95, k=K,
                      queries=1000)
    tuning, index = Tuning(struct_size=c.sizeof(Tuning)), c.c_void_p()
    wall, cpu, status = timed(lambda: lib.gnomon_lsh_tune(
        ctx, c.byref(promise), c.byref(view(base)), None, c.byref(index), c.byref(tuning)))
    check(lib, ctx, status)
    if tuning.exact:
        raise SystemExit("exact: " + tuning.reason.decode())
    way = next(t for t in tuning.trials[:tuning.trial_count] if t.chosen == 2)
    facts = {"promised": target, "tested_recall": tuning.recall, "bound": tuning.bound,
             "tested": tuning.tested, "tune_seconds": wall, "tune_cpu_seconds": cpu,
             "tables": way.tables, "functions": way.functions, "width": way.width,
             "probes": way.probes, "verified": way.verified, "candidates": way.candidates,
             "index_bytes": way.bytes, "data_bytes": base.nbytes}
    lib.gnomon_lsh_tuning_free(ctx, c.byref(tuning))
    return index, facts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", type=int, default=10000)
    parser.add_argument("--recall", type=float, nargs="*", default=[0.8, 0.9, 0.95, 0.98])
    parser.add_argument("--bits", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--output")
    args = parser.parse_args()
    lib = c.CDLL(os.path.abspath(args.library))
    lib.gnomon_last_error.restype = lib.gnomon_version.restype = c.c_char_p
    base = images("train-images-idx3-ubyte.gz", 60000)
    queries = images("t10k-images-idx3-ubyte.gz", args.queries)
    ctx = c.c_void_p()
    options = ContextOptions(struct_size=c.sizeof(ContextOptions), device=1, threads=args.threads,
                             cuda_device=-1)
    assert lib.gnomon_context_create(c.byref(options), c.byref(ctx)) == 0
    faiss.omp_set_num_threads(args.threads)
    before = os.getloadavg()
    b, q = view(base), view(queries)

    sides = {"exact": lambda: search(lib, ctx, lambda o, n: lib.gnomon_neighbors_exact(
        ctx, c.byref(b), c.byref(q), c.byref(o), c.byref(n)))}
    flat = faiss.IndexFlatL2(784)
    flat.add(base)
    sides["FAISS IndexFlatL2"] = lambda: flat.search(queries, K)[1]
    for bits in args.bits:
        lsh = faiss.IndexLSH(784, bits)
        lsh.train(base)
        lsh.add(base)
        sides[f"FAISS IndexLSH {bits}"] = lambda lsh=lsh: lsh.search(queries, K)[1]
    facts = {}
    for target in args.recall:
        index, facts[f"recall {target}"] = tune(lib, ctx, base, target)
        sides[f"recall {target}"] = lambda index=index: search(
            lib, ctx, lambda o, n: lib.gnomon_lsh_query(ctx, index, c.byref(q), c.byref(o), None,
                                                        c.byref(n), None))
    times, answers = {name: [] for name in sides}, {}
    for _ in range(args.rounds):
        for name, call in sides.items():
            wall, cpu, answers[name] = timed(call)
            times[name].append((wall, cpu))
    cases = []
    for name in sides:
        wall, cpu = (statistics.median(t[i] for t in times[name]) for i in range(2))
        cases.append({"name": name, "recall": recall(answers[name], answers["exact"]),
                      "queries_per_second": args.queries / wall,
                      "queries_per_cpu_second": args.queries / cpu, **facts.get(name, {})})
        print(json.dumps(cases[-1]), flush=True)
    result = {"bench": "lsh", "version": lib.gnomon_version().decode(),
              "peer": "FAISS " + faiss.__version__, "machine": platform.machine(),
              "threads": args.threads, "queries": args.queries, "base": len(base), "k": K,
              "load_before": before, "load_after": os.getloadavg(), "rounds": args.rounds,
              "cases": cases}
    if args.output:
        with open(args.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
