"""Similarity join beside its peers, in one run: seconds, rates and pairs.

usage: join.py LIBRARY [--case TEXT] [--points FILE.npy] [--threads 2] [--rounds 3] [--output FILE.json]

Cases:
  fashion   self-join of 60,000 x 784 bytes by l2, about 10 pairs a point, beside SGEMM tiles with a threshold (NumPy's
            BLAS, upper half alone) and FAISS's range_search. Peers do a share of the rows (--share); their
            seconds are scaled to all.
  sets      self-join of 1,000,000 sets of about 50 members by jaccard distance 0.2, a tenth of them changed
            copies, beside datasketch's MinHashLSH (128 permutations) on --peer-sets of them, scaled.

  recall    self-join of --rows clustered points of 128 dimensions, --near near ones a point, with a guarantee of --recall, beside
            the exact join, of the first --exact-rows points with all where that is given; and of --points, where
            given, at --threshold.
  levels    fashion's join at each of --levels (values of GNOMON_ISA), of an earlier library too (--before), in turn; the
            pairs and bits must be the same. Written to a record of its own.

Needs NumPy; peers that are not installed are left out. --points is Fashion-MNIST's training images, or any points.
Records of the same --output are joined by case."""
import argparse
import ctypes as c
import json
import os
import platform
import statistics
import time

import numpy as np
from binding import ContextOptions, Csr, Matrix


class Pair(c.Structure):
    _fields_ = [("i", c.c_int64), ("j", c.c_int64), ("distance", c.c_double)]


class Batch(c.Structure):
    _fields_ = [("pairs", c.POINTER(Pair)), ("count", c.c_int64), ("rows_done", c.c_int64)]


SINK = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Batch))


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int), ("threshold", c.c_double),
                ("top", c.c_int64), ("max_pairs", c.c_int64), ("first_row", c.c_int64),
                ("recall", c.c_double), ("seed", c.c_uint64), ("method", c.c_int),
                ("p_counts", c.c_void_p), ("q_counts", c.c_void_p), ("sink", SINK),
                ("user", c.c_void_p)]


class Result(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("pairs", c.c_int64), ("rows_done", c.c_int64),
                ("complete", c.c_int), ("method", c.c_int), ("recall", c.c_double),
                ("compared", c.c_int64), ("verified", c.c_int64), ("bands", c.c_int64),
                ("why", c.c_char * 256)]


def ours(lib, threads, metric, threshold, points, csr, recall=1.0, method=0, seed=0, first=None):
    """Pairs of points with themselves, or of 'first' with points, as an array, and wall and processor time."""
    ctx, found = c.c_void_p(), []
    options = ContextOptions(struct_size=c.sizeof(ContextOptions), device=b"cpu", threads=threads,
                             memory_limit=4 << 30)
    assert lib.gnomon_context_create(c.byref(options), c.byref(ctx)) == 0

    def take(_, batch):
        b = batch.contents
        if b.count:
            raw = c.string_at(b.pairs, 24 * b.count)
            found.append(np.frombuffer(raw, dtype=[("i", "<i8"), ("j", "<i8"), ("d", "<f8")]))
        return 0

    sink = SINK(take)
    o = Options(struct_size=c.sizeof(Options), metric=metric, threshold=threshold, recall=recall,
                method=method, seed=seed, sink=sink)
    result = Result(struct_size=c.sizeof(Result))
    call = lib.gnomon_join_csr if csr else lib.gnomon_join
    wall, cpu = time.perf_counter(), time.process_time()
    sides = (c.byref(points), None) if first is None else (c.byref(first), c.byref(points))
    status = call(ctx, *sides, c.byref(o), c.byref(result))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if status:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    lib.gnomon_context_destroy(ctx)
    pairs = np.concatenate(found) if found else np.zeros(0, dtype=[("i", "<i8")])
    return pairs, wall, cpu, result


def median(times):
    return [statistics.median(t[i] for t in times) for i in range(2)]


def tiles(x, norms, limit, rows, tile=2048):
    """The upper half of the first rows, by products of tiles: how many pairs pass."""
    count = 0
    for i in range(0, rows, tile):
        a = x[i:min(i + tile, rows)]
        for j in range(i, len(x), tile):
            d = a @ x[j:j + tile].T
            d *= -2
            d += norms[j:j + tile]
            d += norms[i:i + len(a), None]
            p, q = np.nonzero(d <= limit)
            count += int((q + j > p + i).sum())
    return count


def work_share(n, rows):
    """The share of the upper half's pairs that the first rows have."""
    return 1 - ((n - rows) / n) ** 2


def fashion(lib, args, record):
    x = np.load(args.points).reshape(-1, 784) if args.points.endswith(".npy") else None
    n, d = x.shape
    threshold = args.threshold
    view = Matrix(x.ctypes.data, 6, 0, n, d, d, 1)
    times = []
    for _ in range(args.rounds):
        pairs, wall, cpu, result = ours(lib, args.threads, 1, threshold, view, False)
        times.append((wall, cpu))
    wall, cpu = median(times)
    record.update(points=n, dimensions=d, threshold=threshold, pairs=len(pairs), seconds=wall,
                  cpu_seconds=cpu, pairs_a_point=2 * len(pairs) / n, verified=result.verified,
                  why=result.why.decode(), effective_gflops=2 * n * n * d / wall / 1e9)
    if args.no_peers:
        return
    f = x.astype(np.float32)
    norms = (f * f).sum(1)
    rows = max(2048, int(n * args.share)) // 2048 * 2048
    wall, cpu = time.perf_counter(), time.process_time()
    theirs = tiles(f, norms, np.float32(threshold) ** 2, rows)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    scale = work_share(n, rows)
    record.update(sgemm_seconds=wall / scale, sgemm_cpu_seconds=cpu / scale, sgemm_rows=rows,
                  sgemm_pairs=theirs, our_pairs_of_rows=int((pairs["i"] < rows).sum()))
    try:
        import faiss
    except ImportError:
        return
    faiss.omp_set_num_threads(args.threads)
    index = faiss.IndexFlatL2(d)
    index.add(f)
    rows = max(512, int(n * args.share / 4))
    wall, cpu = time.perf_counter(), time.process_time()
    limits, _, _ = index.range_search(f[:rows], float(np.float32(threshold)) ** 2)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    record.update(faiss_seconds=wall * n / rows, faiss_cpu_seconds=cpu * n / rows, faiss_rows=rows,
                  faiss_version=faiss.__version__)


def make_sets(n, rng):
    """About 50 members each, some common and most rare; a tenth are copies with a few changed."""
    size = rng.integers(40, 61, n)
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(size, out=offsets[1:])
    rank = rng.random(offsets[-1])
    members = (2e6 ** rank * rng.random(offsets[-1])).astype(np.int64)
    members = np.where(rng.random(offsets[-1]) < 0.7, rng.integers(0, 2_000_000, offsets[-1]), members)
    for i in np.nonzero(rng.random(n) < 0.1)[0]:
        j = int(rng.integers(0, n))
        k = min(size[i], size[j])
        members[offsets[i]:offsets[i] + k] = members[offsets[j]:offsets[j] + k]
        change = rng.integers(0, k, int(rng.integers(0, 8)))
        members[offsets[i] + change] = rng.integers(0, 2_000_000, len(change))
    return offsets, members


def sets(lib, args, record):
    n = args.sets
    offsets, members = make_sets(n, np.random.default_rng(5))
    values = np.ones(len(members), np.uint8)
    view = Csr(n, 2_000_001, offsets.ctypes.data, members.ctypes.data, values.ctypes.data, 6)
    times = []
    for _ in range(args.rounds):
        pairs, wall, cpu, result = ours(lib, args.threads, 5, 0.2, view, True)
        times.append((wall, cpu))
    wall, cpu = median(times)
    sample = pairs[:: max(1, len(pairs) // 2000)] if len(pairs) else pairs
    wrong = 0
    for pair in sample:
        a = set(members[offsets[pair["i"]]:offsets[pair["i"] + 1]].tolist())
        b = set(members[offsets[pair["j"]]:offsets[pair["j"] + 1]].tolist())
        wrong += abs(1 - len(a & b) / len(a | b) - pair["d"]) > 1e-12
    record.update(sets=n, members=int(len(members)), threshold=0.2, pairs=len(pairs), seconds=wall,
                  cpu_seconds=cpu, compared=result.compared, checked=len(sample), wrong=int(wrong))
    if args.no_peers:
        return
    try:
        import datasketch
    except ImportError:
        return
    m = args.peer_sets
    wall, cpu = time.perf_counter(), time.process_time()
    lsh = datasketch.MinHashLSH(threshold=0.8, num_perm=128)
    found = 0
    hashes = datasketch.MinHash.bulk([[b"%d" % v for v in members[offsets[i]:offsets[i + 1]]]
                                      for i in range(m)], num_perm=128)
    for i, h in enumerate(hashes):
        found += len(lsh.query(h))
        lsh.insert(i, h, check_duplication=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    record.update(datasketch_seconds=wall * n / m, datasketch_cpu_seconds=cpu * n / m,
                  datasketch_sets=m, datasketch_version=datasketch.__version__)


def guaranteed(lib, args, x, dtype, threshold):
    """An LSH join of x beside an exact one."""
    EXACT, LSH = 1, 2
    n, d = x.shape
    view = Matrix(x.ctypes.data, dtype, 0, n, d, d, 1)
    rows = args.exact_rows if 0 < args.exact_rows < n else n
    first = Matrix(x.ctypes.data, dtype, 0, rows, d, d, 1) if rows < n else None
    every, wall, cpu, result = ours(lib, args.threads, 1, threshold, view, False, 1.0, EXACT, 0, first)
    every = every[every["i"] < every["j"]]
    facts = {"points": n, "dimensions": d, "threshold": threshold, "recall_guaranteed": args.recall,
             "exact_rows": rows, "exact_pairs": len(every), "exact_seconds": wall, "exact_cpu_seconds": cpu,
             "exact_why": result.why.decode()}
    times, shares, counts = [], [], []
    for seed in range(args.rounds):
        pairs, wall, cpu, result = ours(lib, args.threads, 1, threshold, view, False, args.recall, LSH,
                                        seed)
        times.append((wall, cpu))
        counts.append(len(pairs))
        pairs = pairs[pairs["i"] < rows]
        keys, found = every["i"] * n + every["j"], pairs["i"] * n + pairs["j"]
        at = np.searchsorted(keys, found)
        wrong = int((keys[np.minimum(at, len(keys) - 1)] != found).sum()) + len(found) - len(np.unique(found))
        if wrong:
            raise SystemExit(f"{wrong} pairs are wrong or told twice")
        shares.append(len(found) / len(every))
    wall, cpu = median(times)
    # the exact join of all points looks at n (n - 1) / 2 pairs, that of some with all at rows x n
    scale = 1 if first is None else (n - 1) / 2 / rows
    facts.update(pairs=int(statistics.median(counts)), seconds=wall, cpu_seconds=cpu, recall_least=min(shares), recall_mean=float(np.mean(shares)),
                 compared=result.compared, verified=result.verified, why=result.why.decode(),
                 exact_times=facts["exact_seconds"] / wall, exact_cpu_times=facts["exact_cpu_seconds"] / cpu,
                 scaled_exact_times=scale * facts["exact_seconds"] / wall,
                 scaled_exact_cpu_times=scale * facts["exact_cpu_seconds"] / cpu)
    return facts


def recall(lib, args, record):
    rng = np.random.default_rng(3)
    n, size = args.rows, args.near + 1
    centres = rng.standard_normal((-(-n // size), 128), dtype=np.float32)
    x = np.repeat(centres, size, axis=0)[:n] + np.float32(0.1) * rng.standard_normal((n, 128), dtype=np.float32)
    record["clustered"] = guaranteed(lib, args, np.ascontiguousarray(x[rng.permutation(n)]), 1, 1.8)
    if args.points:
        images = np.ascontiguousarray(np.load(args.points))
        record["images"] = guaranteed(lib, args, images, 6 if images.dtype == np.uint8 else 1, args.threshold)


def levels(lib, args, record):
    """Each level, and the earlier library's, in turn: seconds of the quickest round and whether pairs and bits are equal."""
    x = np.load(args.points).reshape(-1, 784)
    n, d = x.shape
    libraries = {"now": lib}
    if args.before:
        libraries["before"] = c.CDLL(args.before)
        libraries["before"].gnomon_last_error.restype = c.c_char_p
        libraries["before"].gnomon_last_error.argtypes = [c.c_void_p]
    first, found = None, {}
    for dtype, code in (("u8", 6), ("f32", 1)):
        points = x if dtype == "u8" else x.astype(np.float32)
        view = Matrix(points.ctypes.data, code, 0, n, d, d, 1)
        for threads in args.level_threads:
            for _ in range(args.rounds):
                for level in args.levels:
                    for when, library in libraries.items():
                        os.environ["GNOMON_ISA"] = level
                        pairs, wall, cpu, result = ours(library, threads, 1, args.threshold, view, False)
                        pairs = np.sort(pairs, order=["i", "j"])
                        first = pairs if first is None else first
                        same = pairs.tobytes() == first.tobytes()
                        row = found.setdefault((dtype, threads, level, when), {
                            "dtype": dtype, "threads": threads, "level": level, "when": when, "same": True,
                            "seconds": wall, "cpu_seconds": cpu, "verified": result.verified, "why": result.why.decode()})
                        row.update(same=row["same"] and same, seconds=min(row["seconds"], wall),
                                   cpu_seconds=min(row["cpu_seconds"], cpu))
    record.update(points=n, dimensions=d, threshold=args.threshold, pairs=len(first), runs=list(found.values()))
    for row in found.values():
        print(json.dumps(row))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--case", default="fashion", choices=["fashion", "sets", "recall", "levels"])
    parser.add_argument("--points")
    parser.add_argument("--threshold", type=float, default=870.0)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--near", type=int, default=10)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--exact-rows", type=int, default=0)
    parser.add_argument("--sets", type=int, default=1_000_000)
    parser.add_argument("--peer-sets", type=int, default=20_000)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--levels", nargs="*", default=["avx2", "avx512_vnni"])
    parser.add_argument("--level-threads", type=int, nargs="*", default=[2, 1])
    parser.add_argument("--before", help="an earlier library, for levels")
    parser.add_argument("--commit", default="")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--output")
    args = parser.parse_args()
    lib = c.CDLL(os.path.abspath(args.library))
    lib.gnomon_last_error.restype = c.c_char_p
    lib.gnomon_version.restype = c.c_char_p
    cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    record = {"case": args.case, "cpu": cpu[0] if cpu else "", "commit": args.commit, "threads": args.threads, "rounds": args.rounds,
              "load_before": os.getloadavg()}
    {"fashion": fashion, "sets": sets, "recall": recall, "levels": levels}[args.case](lib, args, record)
    record["load_after"] = os.getloadavg()
    for peer in ("sgemm", "faiss", "datasketch"):
        if peer + "_seconds" in record:
            record[peer + "_times"] = record[peer + "_seconds"] / record["seconds"]
            record[peer + "_cpu_times"] = record[peer + "_cpu_seconds"] / record["cpu_seconds"]
    print(json.dumps(record, indent=1), flush=True)
    if not args.output:
        return
    whole = {"bench": "join", "version": lib.gnomon_version().decode(), "machine": platform.machine(),
             "cores": os.cpu_count(), "cases": []}
    if os.path.exists(args.output):
        with open(args.output) as file:
            whole = json.load(file)
    whole["cases"] = [r for r in whole["cases"] if r["case"] != args.case] + [record]
    with open(args.output, "w") as file:
        json.dump(whole, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
