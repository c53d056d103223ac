"""Exact search beside FAISS's flat indexes, at every level of instructions: seconds and answers, in one run, turn by turn.

usage: search.py LIBRARY [--rounds 5] [--patience 20] [--threads 2 1] [--levels LEVEL ...] [--case TEXT ...]
                 [--output FILE.json] [--commit TEXT]

Needs NumPy and FAISS (Debian's python3-faiss or the wheel faiss-cpu). Points are uniform in the unit cube (bits and
bytes: uniform). --levels are values of GNOMON_ISA; without it all that the processor has. Each case tells the median
time of each level and of the peer over rounds in which the machine did nothing else (as far as there were such:
'others' is the largest share of a processor that others had), the rate of multiply-adds beside SGEMM's in the same
process, how many answers of other levels than the best differ from its (none may), how many of FAISS's do, and FAISS's
largest error of a distance relative to ours. 'blas' is the kernel that FAISS's OpenBLAS runs: OPENBLAS_CORETYPE sets
it. With --case the other cases of FILE.json stay, so that a record can be taken in short turns."""
import argparse
import ctypes
import json
import os
import platform
import re

import numpy as np
from binding import Library, in_turns

try:
    import faiss
except ImportError:
    faiss = None

LEVELS = ["portable", "avx2", "avx512", "avx512_vnni", "amx", "neon"]  # each better than those before

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


def points(case):
    _, metric, q, n, d, _ = case
    rng = np.random.default_rng(1)
    if metric in ("hamming", "l2 of bytes"):
        return [rng.integers(0, 256, (m, d), dtype=np.uint8) for m in (n, q)]
    return [rng.random((m, d), dtype=np.float32) for m in (n, q)]


def peer(metric, base, queries, k):
    """A search of FAISS's; it takes bytes as floats."""
    if metric == "hamming":
        index = faiss.IndexBinaryFlat(8 * base.shape[1])
        index.add(base)
    else:
        index = (faiss.IndexFlatIP if metric == "ip" else faiss.IndexFlatL2)(base.shape[1])
        index.add(base.astype(np.float32))
        queries = queries.astype(np.float32)
    return lambda: index.search(queries, k)


def product(base, queries):
    """The product of these queries with a share of the points, by the BLAS of NumPy, and its multiply-adds."""
    some = np.ascontiguousarray(base[:32768], dtype=np.float32)
    asked = queries.astype(np.float32)
    return lambda: asked @ some.T, len(asked) * some.size


def repeated(call, q):
    """One query is too short for the clock of processes: a round is twenty."""
    if q > 1:
        return call
    return lambda: [call() for _ in range(20)][-1]


def peer_blas():
    """The kernel that FAISS's OpenBLAS chose."""
    for line in open("/proc/self/maps"):
        if "faiss_cpu.libs" in line and "openblas" in line:
            lib = ctypes.CDLL(line.split()[-1])
            lib.openblas_get_corename.restype = ctypes.c_char_p
            return lib.openblas_get_corename().decode()
    return None


def search_at(libs, level, metric, views, k, q):
    return repeated(lambda: libs[level].exact(metric.split()[0], *views, k), q)


def run_case(libs, args, threads, case):
    name, metric, q, n, d, k = case
    base, queries = points(case)
    best = list(libs)[-1]
    views = [libs[best].view(x)[0] for x in (base, queries)]
    calls = {level: search_at(libs, level, metric, views, k, q) for level in libs}
    if faiss:
        calls["faiss"] = repeated(peer(metric, base, queries, k), q)
    products = 0
    if metric != "hamming" and q > 1 and threads == os.cpu_count():  # what NumPy's BLAS takes
        calls["sgemm"], products = product(base, queries)
    for call in calls.values():
        call()
    times = dict(zip(calls, in_turns(list(calls.values()), args.rounds, args.patience)))
    scale = 1 if q > 1 else 20
    ids, distances, _ = times[best][3]
    record = {"name": name, "metric": metric, "queries": q, "base": n, "dimensions": d, "k": k,
              "threads": threads, "rounds": args.rounds, "level": best, "levels": {}}
    for level in libs:
        wall, cpu, others, (its, theirs, facts) = times[level]
        record["levels"][level] = {"seconds": wall / scale, "cpu_seconds": cpu / scale, "others": others,
                                   "verified_a_query": facts["verified"] / q,
                                   "differ": int((its != ids).sum() + (theirs.view(np.int64) != distances.view(np.int64)).sum())}
    mine = record["levels"][best]
    wall, cpu = mine["seconds"], mine["cpu_seconds"]
    record.update(seconds=wall, cpu_seconds=cpu, others=mine["others"], verified_a_query=mine["verified_a_query"],
                  pairs_a_second=q * n / wall)
    if faiss:
        their_wall, their_cpu, their_others, (values, other) = times["faiss"]
        values = values.astype(np.float64)
        if metric.startswith("l2"):
            values = np.sqrt(np.maximum(values, 0))
        record["faiss_seconds"], record["faiss_cpu_seconds"] = their_wall / scale, their_cpu / scale
        record["faiss_others"] = their_others
        record["faster"] = record["faiss_seconds"] / wall
        record["cpu_faster"] = record["faiss_cpu_seconds"] / cpu
        record["faiss_other_ids"] = int((ids != other).sum())
        record["faiss_other_sets"] = int(sum(len(set(a) - set(b)) for a, b in zip(ids, other)))
        record["faiss_distance_error"] = float(np.max(np.abs(values - distances) /
                                                      np.maximum(np.abs(distances), 1e-30)))
    if products:
        record["sgemm_rate"] = products / times["sgemm"][0]
        record["share_of_sgemm"] = q * n * d / wall / record["sgemm_rate"]
    print(json.dumps(record), flush=True)
    return record


def libraries(path, threads, levels):
    """A context a level, of those that are asked for and there."""
    libs, before = {}, os.environ.get("GNOMON_ISA")
    for level in LEVELS:
        if levels and level not in levels:
            continue
        os.environ["GNOMON_ISA"] = level
        try:
            libs[level] = Library(path, threads)
        except AssertionError:  # the processor lacks it
            if levels:
                raise SystemExit(f"{level} is not available here")
    os.environ.pop("GNOMON_ISA")
    if before is not None:
        os.environ["GNOMON_ISA"] = before
    return libs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 1])
    parser.add_argument("--levels", nargs="*")
    parser.add_argument("--case", nargs="*", default=[""])
    parser.add_argument("--output")
    parser.add_argument("--commit")
    args = parser.parse_args()
    result = {"bench": "search", "cases": []}
    if args.output and os.path.exists(args.output):
        with open(args.output) as file:
            result = json.load(file)
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    for threads in args.threads:
        libs = libraries(args.library, threads, args.levels)
        result.update(version=list(libs.values())[0].version, peer="FAISS " + faiss.__version__ if faiss else None,
                      machine=platform.machine(), cpu=cpu.group(1).strip() if cpu else "", cores=os.cpu_count(),
                      blas=peer_blas() if faiss else None, commit=args.commit or result.get("commit"))
        if faiss:
            faiss.omp_set_num_threads(threads)
        for case in (x for x in CASES if any(text in x[0] for text in args.case)):
            record = run_case(libs, args, threads, case)
            result["cases"] = [r for r in result["cases"]
                               if (r["name"], r["threads"]) != (record["name"], threads)] + [record]
            if args.output:
                with open(args.output, "w") as file:
                    json.dump(result, file, indent=1)
                    file.write("\n")
        for lib in libs.values():
            lib.close()


main()
