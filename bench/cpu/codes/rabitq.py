"""Searches by codes of a few bits a coordinate beside FAISS's RaBitQ indexes: recall at equal bytes and numbers of points
re-ranked, and queries a second at a recall, in one run, turn by turn.

usage: rabitq.py LIBRARY [--data fashion|clusters|bytes] [--part recall|speed|ivf ...] [--bits 1 2 4] [--seeds 10]
                 [--threads 2] [--queries N] [--rounds 3] [--patience 10] [--output FILE.json] [--commit TEXT]

Needs NumPy and the wheel faiss-cpu 1.15; fashion also Debian's package dataset-fashion-mnist. k = 10, l2. Data: fashion,
60,000 x 784; clusters, 1,000,000 x 128 in 1,000 bell-shaped clusters of unequal sizes and widths; bytes, as many
clusters of non-negative whole numbers up to 255, half of them 0 or near it, as descriptors of images are. Queries are fresh
points of the same law. FAISS's codes are made behind a RandomRotationMatrix, as its documents advise, and their
answers re-ranked by IndexRefineFlat; ours turn the points themselves and re-rank with the same number of points.

Parts: recall, for each number of re-ranked points the mean over --seeds rotations and the deviation of that mean, of
both sides; speed, of each side the queries a second with the fewest re-ranked points that reach a recall of 0.9 and
0.99, and of ours with that recall asked for; ivf, the fastest of IndexIVFRaBitQFastScan's
settings that reach it. Data and parts are separate so that a record can be taken in short turns: what FILE.json holds
of others stays."""
import argparse
import json
import os
import platform
import re
import sys

import faiss
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from binding import Library, images, in_turns

K = 10
RERANKED = [10, 20, 50, 100, 200, 500, 1000]
TARGETS = [0.9, 0.99]


def clusters(rng, n, d, count):
    """Centres, and numbers of points of each."""
    shares = rng.dirichlet(np.full(count, 0.5))
    return rng.standard_normal((count, d)), rng.exponential(0.5, count) + 0.3, rng.choice(count, n, p=shares)


def make(name, queries):
    """Base and queries, in fp32."""
    if name == "fashion":
        return [np.ascontiguousarray(images(file, count).astype(np.float32))
                for file, count in (("train-images-idx3-ubyte.gz", 60000), ("t10k-images-idx3-ubyte.gz", queries))]
    rng = np.random.default_rng(1)
    n, d, count = 1000000, 128, 1000
    centres, widths, which = clusters(rng, n + queries, d, count)
    points = rng.standard_normal((n + queries, d), dtype=np.float32)
    points *= widths[which, None].astype(np.float32)
    points += centres[which].astype(np.float32)
    if name == "bytes":
        points = np.clip(np.rint(40 * points), 0, 255)
    return [np.ascontiguousarray(part, dtype=np.float32) for part in (points[:n], points[n:])]


def recall(ids, truth):
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(ids, truth)]))


class Ours:
    def __init__(self, lib, base, queries, bits, seed):
        self.lib, self.asked = lib, lib.view(queries)[0]
        self.name, self.bits, self.view = "gnomon", bits, lib.view(base)[0]
        self.index, self.bytes = lib.codes("l2", self.view, bits, seed)

    def search(self, rerank):
        return lambda: self.lib.query_codes(self.index, "l2", self.asked, K, rerank=rerank)[0]

    def by_recall(self, share):
        return lambda: self.lib.query_codes(self.index, "l2", self.asked, K, recall=share)

    def close(self):
        self.lib.drop_codes(self.index)


class Theirs:
    """One of FAISS's flat indexes: codes of rotated points, re-ranked."""

    def __init__(self, kind, base, queries, bits, seed, query_bits=None):
        d = base.shape[1]
        turn = faiss.RandomRotationMatrix(d, d)
        turn.init(seed + 1)
        if kind == "IndexRaBitQ":
            self.inner = faiss.IndexRaBitQ(d, faiss.METRIC_L2, bits)
        else:
            self.inner = faiss.IndexRaBitQFastScan(d, faiss.METRIC_L2, 32, bits)
        if query_bits is not None:
            self.inner.qb = query_bits
        self.codes = faiss.IndexPreTransform(turn, self.inner)
        self.index = faiss.IndexRefineFlat(self.codes)
        self.index.train(base)
        self.index.add(base)
        self.name, self.bits, self.queries, self.bytes = kind, bits, queries, self.inner.code_size

    def search(self, rerank):
        parameters = faiss.IndexRefineSearchParameters(k_factor=rerank / K)
        return lambda: self.index.search(self.queries, K, params=parameters)[1]

    def close(self):
        del self.index, self.codes, self.inner


def sides(args, lib, base, queries, bits, seed):
    yield lambda: Ours(lib, base, queries, bits, seed)
    yield lambda: Theirs("IndexRaBitQFastScan", base, queries, bits, seed)
    yield lambda: Theirs("IndexRaBitQ", base, queries, bits, seed, 8)


def recalls(args, lib, base, queries, truth):
    """Of all sides but IndexRaBitQ, whose codes are IndexRaBitQFastScan's, but for one rotation."""
    for bits in args.bits:
        found = {}
        for seed in range(args.seeds):
            for side in list(sides(args, lib, base, queries, bits, seed))[:3 if seed == 0 else 2]:
                side = side()
                entry = found.setdefault(side.name, {"bytes": side.bytes, "recall": []})
                entry["recall"].append([recall(side.search(r)(), truth) for r in RERANKED])
                side.close()
        for name, entry in found.items():
            values = np.array(entry.pop("recall"))
            yield {"bits": bits, "side": name, "rotations": len(values), **entry, "reranked": RERANKED,
                   "recall": values.mean(0).tolist(),
                   "deviation": (values.std(0, ddof=1) / len(values) ** 0.5).tolist() if len(values) > 1 else None}


def fewest(side, truth, target):
    """The fewest points to re-rank, up to a twentieth, and the recall; None where 5,120 are not enough."""
    def at(rerank):
        return recall(side.search(rerank)(), truth)

    high = K
    while at(high) < target:
        high *= 2
        if high > 5120:
            return None
    low = high // 2
    while high - low > max(1, high // 20) and high > K:
        middle = (low + high) // 2
        if at(middle) >= target:
            high = middle
        else:
            low = middle
    return high, at(high)


def speeds(args, lib, base, queries, truth):
    for bits in args.bits:
        here = [side() for side in sides(args, lib, base, queries, bits, 0)]
        for target in TARGETS:
            calls, records = [], []
            found = None
            for side in here:
                if side.name == "IndexRaBitQ":  # the codes of the one before: its number
                    found = found and (found[0], recall(side.search(found[0])(), truth))
                else:
                    found = fewest(side, truth, target)
                if found is None:
                    continue
                calls.append(side.search(found[0]))
                records.append({"side": side.name, "bytes": side.bytes, "reranked": found[0], "recall": found[1]})
            calls.append(here[0].by_recall(target))
            ids, _, facts = calls[-1]()
            records.append({"side": "gnomon, by recall", "bytes": here[0].bytes, "recall": recall(ids, truth),
                            "reranked": facts["verified"] / len(queries)})
            for record, (wall, cpu, others, _) in zip(records, in_turns(calls, args.rounds, args.patience)):
                yield {"bits": bits, "target": target, **record, "queries_per_second": len(queries) / wall,
                       "queries_per_cpu_second": len(queries) / cpu, "others": others}
        for side in here:
            side.close()
    view, asked = lib.view(base)[0], lib.view(queries)[0]
    flat = faiss.IndexFlatL2(base.shape[1])
    flat.add(base)
    calls = [lambda: lib.exact("l2", view, asked, K)[0], lambda: flat.search(queries, K)[1]]
    for name, (wall, cpu, others, ids) in zip(("gnomon, exact", "IndexFlatL2"),
                                              in_turns(calls, args.rounds, args.patience)):
        yield {"bits": 0, "target": 1.0, "side": name, "bytes": 4 * base.shape[1], "reranked": 0,
               "recall": recall(ids, truth), "queries_per_second": len(queries) / wall,
               "queries_per_cpu_second": len(queries) / cpu, "others": others}


def inverted(args, lib, base, queries, truth):
    """Cells by k-means, of which a query visits the nearest: as users run it."""
    n, d = base.shape
    cells = 1024 if n >= 500000 else 256
    for bits in args.bits:
        turn, quantizer = faiss.RandomRotationMatrix(d, d), faiss.IndexFlatL2(d)
        turn.init(1)
        inner = faiss.IndexIVFRaBitQFastScan(quantizer, d, cells, faiss.METRIC_L2, 32, True, bits)
        index = faiss.IndexRefineFlat(faiss.IndexPreTransform(turn, inner))
        index.train(base[:: max(1, n // (64 * cells))])
        index.add(base)
        ways = []
        for probes in (2, 4, 8, 16, 32, 64):
            for rerank in (20, 50, 100, 200, 500):
                inner.nprobe = probes
                index.k_factor = rerank / K
                wall, _, _, (_, ids) = in_turns([lambda: index.search(queries, K)], 1, 0)[0]
                ways.append((wall, probes, rerank, recall(ids, truth)))
        for target in TARGETS:
            good = [way for way in ways if way[3] >= target]
            if not good:
                continue
            _, inner.nprobe, rerank, reached = min(good)
            index.k_factor = rerank / K
            wall, cpu, others, _ = in_turns([lambda: index.search(queries, K)], args.rounds, args.patience)[0]
            yield {"bits": bits, "target": target, "side": "IndexIVFRaBitQFastScan", "cells": cells,
                   "probes": inner.nprobe, "bytes": inner.code_size, "reranked": rerank, "recall": reached,
                   "queries_per_second": len(queries) / wall, "queries_per_cpu_second": len(queries) / cpu,
                   "others": others}


PARTS = {"recall": recalls, "speed": speeds, "ivf": inverted}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--data", nargs="*", default=["fashion"], choices=["fashion", "clusters", "bytes"])
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--bits", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=10)
    parser.add_argument("--output")
    parser.add_argument("--commit")
    args = parser.parse_args()
    lib = Library(args.library, args.threads)
    faiss.omp_set_num_threads(args.threads)
    result = {"bench": "rabitq", "runs": []}
    if args.output and os.path.exists(args.output):
        with open(args.output) as file:
            result = json.load(file)
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    result.update(version=lib.version, peer="FAISS " + faiss.__version__, machine=platform.machine(),
                  cpu=cpu.group(1).strip() if cpu else "", threads=args.threads, k=K,
                  commit=args.commit or result.get("commit"))
    for data in args.data:
        base, queries = make(data, args.queries)
        truth = lib.exact("l2", lib.view(base)[0], lib.view(queries)[0], K)[0]
        for part in args.part:
            old = [r for r in result["runs"] if (r["data"], r["part"]) == (data, part)]
            run = {"data": data, "part": part, "base": len(base), "dimensions": base.shape[1], "queries": len(queries),
                   "cases": [x for r in old for x in r["cases"] if x["bits"] not in args.bits + [0]]}
            result["runs"] = [r for r in result["runs"] if r not in old] + [run]
            for case in PARTS[part](args, lib, base, queries, truth):
                print(json.dumps({"data": data, "part": part, **case}), flush=True)
                run["cases"].append(case)
                if args.output:
                    with open(args.output, "w") as file:
                        json.dump(result, file, indent=1)
                        file.write("\n")


main()
