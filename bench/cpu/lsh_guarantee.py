"""Whether recall guarantees are kept: every family of hash functions on images, noise, clusters and planted
neighbours, tuned with many seeds, then asked fresh queries.

usage: lsh_guarantee.py LIBRARY --output FILE.json [--only NAME] [--seeds 30] [--threads 2]
       lsh_guarantee.py LIBRARY --output FILE.json --graphs     adds what FAISS's graph index (HNSW) finds in l2

Needs NumPy, SciPy and Debian's package dataset-fashion-mnist, for --graphs FAISS. Base: 6,000 points (planted: 20,200;
hamming, jaccard: 10,000); 400 fresh queries, k = 10, guarantee: 0.9 with 95 % confidence.
Data, sample and index depend on the seed. An index is asked for even where exact search would be faster, so that
the guarantee is tested; the speeds, by processor time, stand beside it. With --only the other cases of FILE.json stay."""
import argparse
import json
import os
import re
import statistics
import time

import numpy as np
import scipy.sparse
import scipy.stats

from binding import Library, images

N, FRESH, GIVEN, K, TARGET = 6000, 400, 500, 10, 0.9
FAMILIES = [("l2", "k-means"), ("cosine", "spherical-k-means"), ("l2", "p-stable"), ("cosine", "simhash"),
            ("cosine", "cross-polytope"), ("l1", "p-stable-l1"), ("hamming", "bit-sampling"), ("jaccard", "minhash")]
KINDS = ["Fashion-MNIST", "noise", "clusters", "planted"]


def dense(rng, kind, pixels):
    """Base, fresh queries, and queries to tune by (None: the base)."""
    d = 64
    if kind == "Fashion-MNIST":
        chosen = pixels[rng.permutation(len(pixels))[:N + FRESH]].astype(np.float32)
        return chosen[:N], chosen[N:], None
    if kind == "noise":
        return *np.split(rng.random((N + FRESH, d)), [N]), None
    if kind == "clusters":
        centres = rng.normal(0, 1, (100, d))
        points = centres[rng.integers(0, 100, N + FRESH)] + rng.normal(0, 0.3, (N + FRESH, d))
        return points[:N], points[N:], None
    # Groups of ten, far from each other, around a few points in the middle: the middle is nearer to each group than
    # any other group is, so a graph that links a point to near ones in different directions leads from group to
    # group through the middle alone, whose points have links for some of them.
    centres = rng.normal(0, 4, (2000, d))
    near = np.repeat(centres, K, axis=0) + rng.normal(0, 0.4, (K * len(centres), d))
    base = rng.permutation(np.concatenate([near, rng.normal(0, 0.1, (200, d))]))
    return base, centres[:FRESH], centres[FRESH:FRESH + GIVEN]


def bits(rng, kind, pixels):
    if kind == "Fashion-MNIST":
        chosen = np.packbits(pixels[rng.permutation(len(pixels))[:N + FRESH]] > 127, axis=1)
        return chosen[:N], chosen[N:], None

    def flip(points, share):
        return points ^ np.packbits(rng.random((len(points), 256)) < share, axis=1)

    def random(n):
        return rng.integers(0, 256, (n, 32), dtype=np.uint8)
    if kind == "noise":
        return random(N), random(FRESH), None
    if kind == "clusters":
        points = flip(random(100)[rng.integers(0, 100, N + FRESH)], 0.1)
        return points[:N], points[N:], None
    queries = random(FRESH + GIVEN)
    base = rng.permutation(np.concatenate([flip(np.repeat(queries, K, axis=0), 0.1), random(1000)]))
    return base, queries[:FRESH], queries[FRESH:]


def sets(rng, kind, pixels):
    """Of 24 members out of 20,000; images: of every other pixel of every other row those that are lit."""
    def as_csr(rows, columns):
        rows = [np.unique(r) for r in rows]
        offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        members = np.concatenate(rows)
        return scipy.sparse.csr_matrix((np.ones(len(members), np.float32), members, offsets), (len(rows), columns))
    if kind == "Fashion-MNIST":
        few = pixels.reshape(-1, 28, 28)[:, ::2, ::2].reshape(len(pixels), -1)
        chosen = scipy.sparse.csr_matrix((few[rng.permutation(len(few))[:N + FRESH]] > 127).astype(np.float32))
        return chosen[:N], chosen[N:], None
    size, words = 24, 20000

    def random(n):
        return rng.integers(0, 300 if kind == "noise" else words, (n, size))

    def change(points):
        return np.where(rng.random(points.shape) < 0.15, rng.integers(0, words, points.shape), points)
    if kind == "noise":
        return as_csr(random(N), words), as_csr(random(FRESH), words), None
    if kind == "clusters":
        points = change(random(100)[rng.integers(0, 100, N + FRESH)])
        return as_csr(points[:N], words), as_csr(points[N:], words), None
    queries = random(FRESH + GIVEN)
    base = rng.permutation(np.concatenate([change(np.repeat(queries, K, axis=0)), random(1000)]))
    return as_csr(base, words), as_csr(queries[:FRESH], words), as_csr(queries[FRESH:], words)


def timed(call):
    start = time.process_time()
    out = call()
    return time.process_time() - start, out


def shares(ids, truth):
    return np.array([len(set(a) & set(b)) / K for a, b in zip(ids, truth)])


def ready(points):
    if isinstance(points, np.ndarray) and points.dtype != np.uint8:
        points = points.astype(np.float32)
    return np.ascontiguousarray(points) if isinstance(points, np.ndarray) else points


def add_graphs(lib, pixels, cases):
    """The recall of a graph index in l2, searched as far as is usual and much further; means of three seeds."""
    import faiss
    for case in cases:
        if case["metric"] != "l2":
            continue
        found = {64: [], 256: [], 1024: []}  # by efSearch
        for seed in range(3):
            rng = np.random.default_rng(1000 * seed + KINDS.index(case["data"]))
            base, fresh = (ready(p) for p in dense(rng, case["data"], pixels)[:2])
            index = faiss.IndexHNSWFlat(base.shape[1], 32)
            index.add(base)
            truth = lib.exact("l2", lib.view(base)[0], lib.view(fresh)[0], K)[0]
            for ef in found:
                index.hnsw.efSearch = ef
                found[ef].append(float(shares(index.search(fresh, K)[1], truth).mean()))
        case["graph_recall"] = {str(ef): statistics.mean(r) for ef, r in found.items()}
        print(case["data"], case["graph_recall"], flush=True)


def run_seed(lib, metric, family, kind, seed, pixels):
    rng = np.random.default_rng(1000 * seed + KINDS.index(kind))
    make = {"hamming": bits, "jaccard": sets}.get(metric, dense)
    arrays = [None if p is None else ready(p) for p in make(rng, kind, pixels)]
    views = [None if p is None else lib.view(p) for p in arrays]
    base, fresh, given = (v and v[0] for v in views)
    exact_seconds, (truth, _, _) = timed(lambda: lib.exact(metric, base, fresh, K))
    tune_seconds, (index, facts) = timed(
        lambda: lib.tune(metric, base, given, K, TARGET, seed=seed, slower=1, family=family))
    out = {"seed": seed, "exact": facts["exact"], "reason": facts["reason"], "tune_cpu_seconds": tune_seconds,
           "exact_cpu_seconds": exact_seconds}
    if index is None:
        return out
    seconds, (ids, _, work) = timed(lambda: lib.query(index, metric, fresh, K))
    lib.drop(index)
    share = shares(ids, truth)
    # one neighbour of each query, drawn at random: independent trials whose probability is the recall
    one = truth[np.arange(FRESH), rng.integers(0, K, FRESH)]
    out.update(recall=float(share.mean()), hits=int((ids == one[:, None]).any(axis=1).sum()),
               cpu_seconds=seconds, index_bytes=facts["index_bytes"], tables=facts["tables"],
               functions=facts["functions"], fine=facts["fine"], limit=facts["limit"], probes=facts["probes"], verified=facts["rerank"],
               bound=facts["bound"], tested=facts["tested"], answered_exactly=work["exact"])
    return out


def summary(metric, family, kind, runs, base_bytes):
    indexes = [r for r in runs if not r["exact"]]
    hits, trials = sum(r["hits"] for r in indexes), FRESH * len(indexes)
    out = {"metric": metric, "family": family, "data": kind, "seeds": len(runs), "indexes": len(indexes),
           "base_bytes": base_bytes, "runs": runs,
           "tune_cpu_seconds": statistics.median(r["tune_cpu_seconds"] for r in runs)}
    if indexes:
        out["two_levels"] = sum(r.get("fine", 0) > 0 for r in indexes)
        out["recall"] = statistics.mean(r["recall"] for r in indexes)
        out["least_recall"] = min(r["recall"] for r in indexes)
        # Clopper and Pearson's bounds: of all fresh queries, and how many indexes alone are refuted
        out["bound"] = float(scipy.stats.beta.ppf(0.05, hits, trials - hits + 1))
        out["refuted"] = sum(bool(scipy.stats.beta.ppf(0.95, r["hits"] + 1, FRESH - r["hits"]) < TARGET)
                             for r in indexes if r["hits"] < FRESH)
        out["faster"] = statistics.median(r["exact_cpu_seconds"] / r["cpu_seconds"] for r in indexes)
        out["index_bytes"] = statistics.median(r["index_bytes"] for r in indexes)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--output", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--graphs", action="store_true")
    args = parser.parse_args()
    lib = Library(args.library, args.threads)
    pixels = images("train-images-idx3-ubyte.gz", 60000)
    cpu = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    result = {"bench": "lsh guarantee", "cases": []}
    if os.path.exists(args.output):
        with open(args.output) as file:
            result = json.load(file)
    if args.graphs:
        add_graphs(lib, pixels, result["cases"])
        with open(args.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    for metric, family in FAMILIES if not args.graphs else []:
        for kind in KINDS:
            name = f"{metric} {family} {kind}"
            if args.only not in name:
                continue
            runs = [run_seed(lib, metric, family, kind, seed, pixels) for seed in range(args.seeds)]
            sample = {"hamming": 32, "jaccard": 24 * 8}.get(metric, 256)
            size = {"hamming": 98, "jaccard": 75 * 8}.get(metric, 3136) if kind == "Fashion-MNIST" else sample
            planted = {"hamming": 10000, "jaccard": 10000}.get(metric, 20200)
            case = summary(metric, family, kind, runs, size * (planted if kind == "planted" else N))
            print(name, json.dumps({k: v for k, v in case.items() if k != "runs"}), flush=True)
            result["cases"] = [c for c in result["cases"]
                               if (c["family"], c["data"]) != (family, kind)] + [case]
            result.update(version=lib.version, target=TARGET, confidence=0.95, k=K, base=N, queries=FRESH,
                          seeds=args.seeds, threads=args.threads, cpu=cpu.group(1).strip() if cpu else "")
            with open(args.output, "w") as file:
                json.dump(result, file, indent=1)
                file.write("\n")
    lib.close()


main()
