"""What `--recall` loses by its choice: processor seconds of it over those of the faster of exact search and hashing
(with tuning and building), for searches and joins.

usage: regret.py LIBRARY --output FILE.json [--only NAME ...] [--rounds 3]

Needs NumPy, SciPy and, for the images, Debian's package dataset-fashion-mnist. One thread. Three sides of a case are run
in turns: exact, hashed at any price, and as --recall chooses; medians of processor seconds count, since the clock's
tell what else the machine does. With --only the other cases of FILE.json stay."""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import time

import numpy as np
import scipy.sparse

from binding import FASHION, METRICS, Library, images
from join import ours


def clusters(rng, n, dim):
    centres = rng.normal(0, 1, (200, dim))
    return (centres[rng.integers(0, 200, n)] + rng.normal(0, 0.7, (n, dim))).astype(np.float32)


def texts(rng, n, words):
    """Sets with the frequencies of words; every tenth is a copy with a fifth changed."""
    rows = []
    for i in range(n):
        if i % 10 == 9:
            old = rows[int(rng.integers(0, i))]
            row = np.concatenate([old[rng.random(len(old)) < 0.8], (50000 ** rng.random(words // 5)).astype(np.int64)])
        else:
            row = (50000 ** rng.random(words)).astype(np.int64)
        rows.append(np.unique(row))
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    columns = np.concatenate(rows)
    return scipy.sparse.csr_matrix((np.ones(len(columns), np.float32), columns, offsets), shape=(n, 50001))


def cases():
    """Kind, name, metric, points, queries or the threshold, recall."""
    def dense(make, n):
        def points(queries):
            x = make(np.random.default_rng(3), n + queries)
            return np.ascontiguousarray(x[:n]), np.ascontiguousarray(x[n:])
        return points

    tight = dense(lambda r, n: clusters(r, n, 64), 40000)
    wide = dense(lambda r, n: clusters(r, n, 256), 40000)
    noise = dense(lambda r, n: r.random((n, 16), np.float32), 40000)
    bits = dense(lambda r, n: np.packbits(clusters(r, n, 512) > 0, axis=1), 20000)
    sets = lambda queries: (lambda x: (x[:20000], x[20000:]))(texts(np.random.default_rng(4), 20000 + queries, 20))
    for name, metric, make, counts in (("clusters, 40,000 x 64", "l2", tight, (1000, 10000)),
                                       ("clusters, 40,000 x 256", "cosine", wide, (1000, 10000)),
                                       ("uniform, 40,000 x 16", "l2", noise, (1000, 10000)),
                                       ("bits, 20,000 x 512", "hamming", bits, (1000, 10000)),
                                       ("sets of words, 20,000", "jaccard", sets, (1000, 10000))):
        for count in counts:
            yield "search", name, metric, lambda make=make, count=count: make(count), count, 0.9
    if os.path.exists(FASHION):
        for count, recall in ((1000, 0.9), (10000, 0.9), (10000, 0.99)):
            yield ("search", "Fashion-MNIST, 60,000 x 784", "l2", lambda count=count: (
                images("train-images-idx3-ubyte.gz", 60000), images("t10k-images-idx3-ubyte.gz", count)), count, recall)
    for threshold in (0.2, 0.4, 0.6, 0.8):
        yield ("join", "sets of words, 20,000", "jaccard", lambda: (texts(np.random.default_rng(4), 20000, 20),), threshold, 0.9)
    for threshold in (4.0, 7.0):
        yield ("join", "clusters, 20,000 x 64", "l2", lambda: (clusters(np.random.default_rng(3), 20000, 64),), threshold, 0.9)
    yield "join", "bits, 20,000 x 512", "hamming", lambda: (np.packbits(clusters(np.random.default_rng(3), 20000, 512) > 0, axis=1),), 60.0, 0.9


def search(lib, metric, points, recall):
    (base, _b), (queries, _q) = (lib.view(p) for p in points)

    def tuned(**how):
        index, facts = lib.tune(metric, base, queries, 10, recall, **how)
        if index is None:
            lib.exact(metric, base, queries, 10)
        else:
            lib.query(index, metric, queries, 10)
            lib.drop(index)
        return {"hashed": index is not None, "why": facts["reason"]}

    # what keeps the arrays alive
    held = (_b, _q)
    return (lambda: (lib.exact(metric, base, queries, 10), held) and {}, lambda: tuned(slower=1), lambda: tuned(uses=queries.rows))


def join(lib, metric, points, threshold, recall):
    view, held = lib.view(points[0])

    def run(recall, method):
        result = ours(lib.lib, 1, METRICS[metric], threshold, view, metric == "jaccard", recall, method)[3]
        return {"hashed": result.method == 2, "why": result.why.decode(), "held": len(held) and None}

    return lambda: run(1.0, 0), lambda: run(recall, 2), lambda: run(recall, 0)


def measured(lib, case, rounds):
    kind, name, metric, make, given, recall = case
    points = make()
    sides = search(lib, metric, points, recall) if kind == "search" else join(lib, metric, points, given, recall)
    times, said = [[], [], []], [None] * 3
    for _ in range(rounds):
        for i, side in enumerate(sides):
            start = time.process_time()
            said[i] = side()
            times[i].append(time.process_time() - start)
    exact, hashed, chosen = (statistics.median(t) for t in times)
    none = not said[1]["hashed"]  # hashing at any price found no index that keeps the recall
    return {"kind": kind, "points": name, "metric": metric, "queries" if kind == "search" else "threshold": given, "recall": recall,
            "exact": exact, "hashed": None if none else hashed, "chosen": chosen, "hashes": said[2]["hashed"],
            "why": said[2]["why"], "regret": chosen / (exact if none else min(exact, hashed))}


def commit():
    said = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def processor():
    with open("/proc/cpuinfo") as file:
        return re.search(r"model name\s*: (.*)", file.read()).group(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--output", required=True)
    parser.add_argument("--only", nargs="*", help="parts of names, as 'Fashion' or 'join sets'")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    lib = Library(args.library, 1)
    whole = {"bench": "regret of --recall", "cases": []}
    if os.path.exists(args.output):
        with open(args.output) as file:
            whole = json.load(file)
    whole.update(version=lib.version, machine=processor(), system=platform.platform(), rounds=args.rounds, commit=commit(),
                 load="beside other work" if os.getloadavg()[0] > 0.5 + 1 else "quiet")
    for case in cases():
        if args.only and not any(o in f"{case[0]} {case[1]}" for o in args.only):
            continue
        key = [case[0], case[1], case[4], case[5]]
        row = measured(lib, case, args.rounds)
        print(row, flush=True)
        whole["cases"] = [c for c in whole["cases"]
                          if [c["kind"], c["points"], c.get("queries", c.get("threshold")), c["recall"]] != key] + [row]
        with open(args.output, "w") as file:
            json.dump(whole, file, indent=1)
            file.write("\n")
    lib.close()


if __name__ == "__main__":
    main()
