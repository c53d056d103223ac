#!/usr/bin/env python3
"""Searches of the ten nearest beside what users pick instead: exact search and tuned indexes of this library, graphs
of FAISS (HNSW, 32 links, efConstruction 200) and its RaBitQ codes in lists that are re-ranked (IVF, fast scan).

usage: index.py [--threads 2] [--rounds 3] [--only TEXT]... [--embeddings POINTS.npy] [--images IMAGES.npy]
                [--commit TEXT] [--note TEXT] [-o RECORD.json]

Needs the Python package (PYTHONPATH, GNOMON_LIBRARY) and FAISS, and Debian's package dataset-fashion-mnist or images as
rows of 784 bytes in a file (--images), of which the last 10,000 are the queries. Queries are other points than the
base's, asked at once. A tuned index is chosen by base points alone, once for each recall; of a peer, whose recall
nobody promises, the fewest candidates of a row of settings that find the recall on 2,000 of the very queries. A rate is
that of the median round, the ways by turns. Build times include tuning and its test. Without --embeddings points of
unit norm with a falling spectrum stand for sentences. Each set of points can have a process of its own (--only); the
record that the page is made of holds the results of all.
"""
import argparse
import json
import os
import platform
import statistics
import sys
import time

import faiss
import numpy as np

import gnomon
from gnomon._context import lease
from gnomon._library import lib

K, RECALLS = 10, (0.9, 0.95, 0.99)
EFS = (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640)
PROBES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def unit(x):
    return np.ascontiguousarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def images(path):
    if path:
        x = np.load(path)
    else:
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        from binding import images as read
        x = np.concatenate([read("train-images-idx3-ubyte.gz", 60000), read("t10k-images-idx3-ubyte.gz", 10000)])
    x = x.reshape(len(x), -1).astype(np.float32)
    return x[:-10000], x[-10000:]


def clusters():
    rng = np.random.default_rng(4)
    centres = rng.standard_normal((1000, 128), np.float32)
    x = centres[rng.integers(0, 1000, 210000)] + np.float32(0.3) * rng.standard_normal((210000, 128), np.float32)
    return x[:200000], x[200000:]


def embeddings(path):
    if path:
        x = np.load(path).astype(np.float32)
    else:
        rng = np.random.default_rng(5)
        centres = rng.standard_normal((300, 384), np.float32)
        x = centres[rng.integers(0, 300, 10000)] + rng.standard_normal((10000, 384), np.float32)
        x = x * np.arange(1, 385, dtype=np.float32) ** np.float32(-0.5)
    return np.split(unit(x), [len(x) - 1000])


def share(found, truth):
    return float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, truth)]) / K)


def seconds(call):
    begin = time.perf_counter()
    out = call()
    return time.perf_counter() - begin, out


def least(settings, ask, queries, truth, wanted):
    """The first setting by which the recall is found, else None."""
    for setting in settings:
        if share(ask(setting, queries)[1], truth) >= wanted:
            return setting
    return None


def level():
    with lease() as context:
        return lib.gnomon_context_isa(context.handle).decode()


def measure(name, base, queries, threads, rounds):
    faiss.omp_set_num_threads(threads)
    _, truth = gnomon.neighbors(base, queries, K, n_jobs=threads)[:2]
    truth = np.asarray(truth)
    ways = [{"who": "gnomon, exact", "wanted": 1.0, "build": 0.0,
             "ask": lambda: np.asarray(gnomon.neighbors(base, queries, K, n_jobs=threads)[1])}]
    for wanted in RECALLS:
        build, index = seconds(lambda: gnomon.Index.tune(base, K, recall=wanted, n_jobs=threads))
        ways.append({"who": "gnomon, tuned", "wanted": wanted, "build": build, "exact": index.exact,
                     "reason": index.tuning.reason,
                     "ask": lambda index=index: np.asarray(index.kneighbors(queries, K)[1])})
    graph = faiss.IndexHNSWFlat(base.shape[1], 32)
    graph.hnsw.efConstruction = 200
    graph_build, _ = seconds(lambda: graph.add(base))
    lists = 1 << int(np.log2(4 * np.sqrt(len(base))) + 0.5)
    codes = faiss.index_factory(base.shape[1], f"IVF{lists},RaBitQfs,RFlat")
    codes.k_factor = 20

    def make_codes():
        codes.train(base)
        codes.add(base)
    codes_build, _ = seconds(make_codes)
    inner = faiss.downcast_index(codes.base_index)

    def by_graph(ef, x):
        graph.hnsw.efSearch = ef
        return graph.search(x, K)

    def by_codes(probes, x):
        inner.nprobe = probes
        return codes.search(x, K)
    some = slice(0, 2000)
    for who, build, settings, ask in (("HNSW", graph_build, EFS, by_graph),
                                      ("RaBitQ, re-ranked", codes_build, PROBES, by_codes)):
        for wanted in RECALLS:
            chosen = least(settings, ask, queries[some], truth[some], wanted)
            if chosen is not None:
                ways.append({"who": who, "wanted": wanted, "build": build, "setting": chosen,
                             "ask": lambda ask=ask, chosen=chosen: ask(chosen, queries)[1]})
    times = [[] for _ in ways]
    for _ in range(rounds):
        for i, way in enumerate(ways):
            taken, found = seconds(way["ask"])
            times[i].append(taken)
            way["recall"] = share(found, truth)
    rows = []
    for way, taken in zip(ways, times):
        row = {key: way[key] for key in way if key != "ask"}
        row["rate"] = len(queries) / statistics.median(taken)
        rows.append(row)
        print(f"{name:24} {row['who']:18} {row['wanted']:4} rate {row['rate']:9.0f} recall {row['recall']:.4f} "
              f"build {row['build']:6.2f} {'exact: ' + row['reason'] if row.get('exact') else ''}", flush=True)
    return {"data": name, "points": len(base), "dimensions": base.shape[1], "queries": len(queries), "lists": lists,
            "ways": rows}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--embeddings")
    parser.add_argument("--images")
    parser.add_argument("--commit", default="")
    parser.add_argument("--note", default="", help="what else was at work, for the page")
    parser.add_argument("-o", "--output")
    given = parser.parse_args()
    x, y = images(given.images)
    kinds = {"Fashion-MNIST": lambda: (x, y), "the same, unit norm": lambda: (unit(x), unit(y)), "clusters": clusters,
             "sentences" if given.embeddings else "like sentences": lambda: embeddings(given.embeddings)}
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    record = {"facts": {"processor": processor, "machine": platform.machine(), "cores": os.cpu_count(),
                        "threads": given.threads, "rounds": given.rounds, "faiss": faiss.__version__,
                        "commit": given.commit, "note": given.note, "isa": level()}, "results": []}
    for name, make in kinds.items():
        if given.only and not any(text in name for text in given.only):
            continue
        record["results"].append(measure(name, *make(), given.threads, given.rounds))
        if given.output:
            with open(given.output, "w", encoding="utf-8") as out:
                json.dump(record, out, indent=1)
                out.write("\n")


if __name__ == "__main__":
    main()
