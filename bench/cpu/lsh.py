"""Search by hashing with a recall guarantee on Fashion-MNIST, beside FAISS's flat index and its IndexLSH and
our exact search: batches, and one query at a time on one thread.

usage: lsh.py LIBRARY [--rounds 3] [--patience 20] [--threads 2] [--queries 10000] [--only SIDE ...] [--recall R ...] [--bits B ...]
              [--single 300] [--output FILE.json]

Needs NumPy, FAISS (Debian's python3-faiss or the wheel faiss-cpu) and Debian's package
dataset-fashion-mnist. Base: the 60,000 training images; queries: the 10,000 test images; k = 10, l2. The
index is tuned on the base alone, so that recall on the queries is a fresh figure. Times are medians of rounds in
which the machine did nothing else, as far as there were such ('others': the largest share of a processor that others
had); processor time stands beside them. Latency is that of --single queries, one a call. Sides: exact, flat, lsh, recall; with --only the others of FILE.json stay, so that a record can be
taken in short turns."""
import argparse
import json
import os
import platform
import re
import time

import faiss
import numpy as np

from binding import Library, images, in_turns, others

K = 10


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    out = call()
    return time.perf_counter() - wall, time.process_time() - cpu, out


def recall(ids, truth):
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, truth)]))


def peer(index, queries):
    return {"batch": lambda: index.search(queries, K)[1], "one": lambda i: index.search(queries[i:i + 1], K)}


def sides(args, lib, single, base, queries):
    """Name, what it is, and how to call it."""
    view, asked = lib.view(base)[0], lib.view(queries)[0]
    rows = [lib.view(queries[i:i + 1])[0] for i in range(args.single)]
    if "exact" in args.only:
        yield "exact", {}, {"batch": lambda: lib.exact("l2", view, asked, K)[0],
                            "one": lambda i: single.exact("l2", view, rows[i], K)}
    if "flat" in args.only:
        flat = faiss.IndexFlatL2(784)
        flat.add(base)
        yield "FAISS IndexFlatL2", {}, peer(flat, queries)
    for bits in args.bits if "lsh" in args.only else []:
        lsh = faiss.IndexLSH(784, bits)
        lsh.train(base)
        lsh.add(base)
        yield f"FAISS IndexLSH {bits}", {"index_bytes": bits // 8 * len(base)}, peer(lsh, queries)
    for target in args.recall if "recall" in args.only else []:
        wall, cpu, (index, facts) = timed(lambda: lib.tune("l2", view, None, K, target, family="p-stable"))
        if index is None:
            raise SystemExit("exact: " + facts["reason"])
        facts.update(tune_seconds=wall, tune_cpu_seconds=cpu, data_bytes=base.nbytes)
        yield f"recall {target}", facts, {"batch": lambda: lib.query(index, "l2", asked, K)[0],
                                          "one": lambda i: single.query(index, "l2", rows[i], K)}
        lib.drop(index)


def latency(args, call):
    """Milliseconds of one query, one thread: half of them take no longer, and all but one in a hundred. Of three runs
    the one that others disturbed least."""
    call(0)
    runs = []
    for _ in range(3):
        times, before, begin = [], others(), time.perf_counter()
        for i in range(args.single):
            start = time.perf_counter()
            call(i)
            times.append(1e3 * (time.perf_counter() - start))
        runs.append(((others() - before) / (time.perf_counter() - begin), times))
    share, times = min(runs)
    return {"p50_ms": float(np.quantile(times, 0.5)), "p99_ms": float(np.quantile(times, 0.99)),
            "others_single": max(0.0, share)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", type=int, default=10000)
    parser.add_argument("--single", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=["exact", "flat", "lsh", "recall"])
    parser.add_argument("--recall", type=float, nargs="*", default=[0.5, 0.7, 0.8, 0.9, 0.95, 0.98])
    parser.add_argument("--bits", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--output")
    args = parser.parse_args()
    lib, single = Library(args.library, args.threads), Library(args.library, 1)
    base = np.ascontiguousarray(images("train-images-idx3-ubyte.gz", 60000).astype(np.float32))
    queries = np.ascontiguousarray(images("t10k-images-idx3-ubyte.gz", args.queries).astype(np.float32))
    truth = lib.exact("l2", lib.view(base)[0], lib.view(queries)[0], K)[0]
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    result = {"bench": "lsh", "cases": []}
    if args.output and os.path.exists(args.output):
        with open(args.output) as file:
            result = json.load(file)
    result.update(version=lib.version, peer="FAISS " + faiss.__version__, machine=platform.machine(),
                  cpu=cpu.group(1).strip() if cpu else "", threads=args.threads, base=len(base), k=K)
    for name, facts, calls in sides(args, lib, single, base, queries):
        faiss.omp_set_num_threads(args.threads)
        wall, cpu_time, share, ids = in_turns([calls["batch"]], args.rounds, args.patience)[0]
        faiss.omp_set_num_threads(1)
        case = {"name": name, "recall": recall(ids, truth), "queries": args.queries, "rounds": args.rounds,
                "queries_per_second": args.queries / wall, "queries_per_cpu_second": args.queries / cpu_time,
                "others": share, **latency(args, calls["one"]), **facts}
        print(json.dumps(case), flush=True)
        result["cases"] = [c for c in result["cases"] if c["name"] != name] + [case]
        if args.output:
            with open(args.output, "w") as file:
                json.dump(result, file, indent=1)
                file.write("\n")


main()
