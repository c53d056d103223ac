"""Sparse rows with a guaranteed recall, and a million learned-like vectors beside SciPy and Seismic.

usage: sparse_recall.py LIBRARY --output FILE.json --only guarantees --points TFIDF.npz [--seeds 20] [--kind KIND]
       sparse_recall.py LIBRARY --output FILE.json --only exact|seismic [--documents 1000000] [--keep DOCUMENTS.npz]

guarantees  indexes are tuned to a recall of 0.9 and joins told to keep 0.95, with hashing even where exact search is faster;
            fresh queries and exact joins tell what is found. Data, sample and functions depend on the seed. The points are rows
            of a SciPy matrix (TF-IDF), learned-like vectors by the law of sparse.py, three ones in three of three groups of
            columns (one-hot), and rows of one to three entries.
exact       the ten largest products of 1,000 queries with all documents by exact search, beside SciPy's product and argpartition
seismic     the same by pyseismic-lsr, on a part of the documents too (--part), with exact search beside it

--keep: the documents are written there, or read if they are there. Parts of FILE.json that are not run stay. Processor seconds
of one thread; Seismic's index is made by all processors. Needs NumPy, SciPy and, for seismic, pyseismic-lsr."""
import argparse
import ctypes as c
import importlib.metadata
import json
import os
import platform
import tempfile

import numpy as np
import scipy.sparse as sp
from binding import Library
from join import ours as join
from sparse import COSINE, IP, Rows, by_argpartition, documents, nearest, timed

BASE, FRESH, K = 6000, 400, 10
KINDS = ["TF-IDF", "learned-like", "one-hot", "few entries"]


def rows_of(kind, rng, held):
    n = BASE + FRESH
    if kind in held:
        x = held[kind]
        return x[rng.permutation(x.shape[0])[:n]].astype(np.float32)
    if kind == "one-hot":
        columns, size = np.stack([g * 50 + np.minimum(rng.zipf(1.5, n), 50) - 1 for g in range(3)], axis=1), 3
        return sp.csr_matrix((np.ones(3 * n, np.float32), columns.ravel(), np.arange(0, 3 * n + 1, size)), (n, 150))
    counts = rng.integers(1, 4, n)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    x = sp.csr_matrix((rng.random(offsets[-1], np.float32) + 0.1, rng.integers(0, 2000, offsets[-1]), offsets), (n, 2000))
    x.sum_duplicates()
    return x


def within(distances, truth):
    """The share of answers that are as near as the last true one: of ties any counts."""
    return float((distances <= truth[:, -1:]).mean())


def join_rows(lib, rows, seed, run, threshold=0.3):
    pairs, _, cpu, _ = join(lib.lib, 1, COSINE, threshold, rows, True)
    hashed, _, hashed_cpu, _ = join(lib.lib, 1, COSINE, threshold, rows, True, recall=0.95, method=2, seed=seed)
    n = np.int64(BASE)
    assert np.isin(hashed["i"] * n + hashed["j"], pairs["i"] * n + pairs["j"]).all()
    chosen = join(lib.lib, 1, COSINE, threshold, rows, True, recall=0.95, seed=seed)[3]
    run.update(pairs=len(pairs), join_recall=len(hashed) / len(pairs), join_times_exact=cpu / hashed_cpu, join_chosen="lsh" if chosen.method == 2 else "exact")


def guarantees(path, args, record):
    x = sp.load_npz(args.points).tocsr()
    held = {"TF-IDF": x, "learned-like": documents(5 * BASE)}
    lib = Library(path, 1)
    out = record.setdefault("guarantees", {"cases": []})
    out.update(base=BASE, fresh=FRESH, k=K, seeds=args.seeds, recall=0.9, join_recall=0.95)
    for kind in KINDS:
        if args.kind not in kind:
            continue
        runs = []
        for seed in range(args.seeds):
            rows = rows_of(kind, np.random.default_rng(1000 * seed + KINDS.index(kind)), held)
            base, fresh = rows[:BASE], rows[BASE:]
            (b, _b), (f, _f) = lib.view(base), lib.view(fresh)
            exact, (_, truth, _) = timed(lambda: lib.exact("cosine", b, f, K))
            index, facts = lib.tune("cosine", b, None, K, 0.9, seed=seed, slower=1)
            run = {"seed": seed, "reason": facts["reason"], "family": facts.get("family")}
            if index is not None:
                seconds, (_, found, _) = timed(lambda: lib.query(index, "cosine", f, K))
                run.update(recall=within(found, truth), bound=facts["bound"], times_exact=exact / seconds)
                lib.drop(index)
            if kind != "learned-like":  # no two of these are near
                join_rows(lib, b, seed, run)
            runs.append(run)
        made = [r for r in runs if "recall" in r]
        case = {"data": kind, "indexes": len(made), "runs": runs}
        joined = [r for r in runs if "pairs" in r]
        if joined:
            case.update(pairs=int(np.median([r["pairs"] for r in joined])), join_recall=float(np.mean([r["join_recall"] for r in joined])),
                        least_join_recall=min(r["join_recall"] for r in joined), join_below=sum(r["join_recall"] < 0.95 for r in joined),
                        join_chosen_lsh=sum(r["join_chosen"] == "lsh" for r in joined),
                        join_times_exact=float(np.median([r["join_times_exact"] for r in joined])))
        if made:
            case.update(recall=float(np.mean([r["recall"] for r in made])), least_recall=min(r["recall"] for r in made),
                        below=sum(r["recall"] < 0.9 for r in made), times_exact=float(np.median([r["times_exact"] for r in made])))
        print({k: v for k, v in case.items() if k != "runs"}, flush=True)
        out["cases"] = sorted([r for r in out["cases"] if r["data"] != kind] + [case], key=lambda r: KINDS.index(r["data"]))
    lib.close()


def all_documents(args):
    if args.keep and os.path.exists(args.keep):
        x = sp.load_npz(args.keep).tocsr()
    else:
        x = documents(args.documents + 1000)
        if args.keep:
            sp.save_npz(args.keep, x, compressed=False)
    return x[:args.documents], x[-1000:]


def exact(lib, args, record):
    base, queries = all_documents(args)
    cpu, ids, _ = nearest(lib, Rows(base), Rows(queries), IP, K, False)
    few, _, _ = nearest(lib, Rows(base), Rows(queries[:100]), IP, K, False)
    bt = base.T.tocsr()
    seconds, same = 0, 0
    for at in range(0, 1000, 100):  # the product of all would take 12 GB
        part, found = timed(lambda: by_argpartition(queries[at:at + 100], bt, K))
        seconds += part
        same += int((found == ids[at:at + 100]).sum())
    record["exact"] = {"points": base.shape[0], "queries": 1000, "cpu_seconds": cpu, "setup_cpu_seconds": few - (cpu - few) / 9,
                       "scipy_cpu_seconds": seconds, "same_answers": same / ids.size}


def write_inner(x, path):
    """Seismic's own format: a count; for each row how many entries, their columns, their values."""
    k = x.indptr[1] - x.indptr[0]
    out = np.empty((x.shape[0], 1 + 2 * k), np.uint32)
    out[:, 0] = k
    out[:, 1:1 + k] = x.indices.reshape(-1, k)
    out[:, 1 + k:] = x.data.view(np.uint32).reshape(-1, k)
    with open(path, "wb") as file:
        file.write(np.uint32(x.shape[0]).tobytes())
        out.tofile(file)


def seismic(lib, args, record):
    import seismic as peer
    base, queries = all_documents(args)
    base = base[:args.part]
    cpu, ids, _ = nearest(lib, Rows(base), Rows(queries), IP, K, False)
    few, _, _ = nearest(lib, Rows(base), Rows(queries[:100]), IP, K, False)
    out = {"points": base.shape[0], "version": importlib.metadata.version("pyseismic-lsr"), "postings": args.postings, "centroids": args.centroids,
           "exact_cpu_seconds": cpu, "exact_setup_cpu_seconds": few - (cpu - few) / 9, "searches": []}
    with tempfile.TemporaryDirectory() as folder:
        write_inner(base, folder + "/base.bin")
        write_inner(queries, folder + "/queries.bin")
        build, index = timed(lambda: peer.SeismicIndexRaw.build(folder + "/base.bin", n_postings=args.postings, centroid_fraction=args.centroids))
        out["build_cpu_seconds"] = build
        for cut, factor in ((5, 0.9), (10, 0.9), (10, 1.0), (20, 0.9), (20, 1.0), (40, 0.9), (120, 0.9)):
            seconds, found = timed(lambda: index.batch_search(folder + "/queries.bin", K, cut, factor, 0, True, 1))
            recall = np.mean([len({d for _, d in answers} & set(truth)) / K for answers, truth in zip(found, ids.tolist())])
            out["searches"].append({"query_cut": cut, "heap_factor": factor, "recall": float(recall), "cpu_seconds": seconds})
            print(out["searches"][-1], flush=True)
    record.setdefault("seismic", [])
    record["seismic"] = sorted([r for r in record["seismic"] if r["points"] != out["points"]] + [out], key=lambda r: r["points"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--output", required=True)
    parser.add_argument("--only", required=True, choices=["guarantees", "exact", "seismic"])
    parser.add_argument("--points")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kind", default="", help="one of the kinds of rows")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--keep")
    parser.add_argument("--part", type=int, default=1_000_000)
    parser.add_argument("--postings", type=int, default=3500)
    parser.add_argument("--centroids", type=float, default=0.1)
    args = parser.parse_args()
    lib = c.CDLL(os.path.abspath(args.library))
    lib.gnomon_last_error.restype = lib.gnomon_version.restype = c.c_char_p
    record = {"benchmark": "sparse recall"}
    if os.path.exists(args.output):
        with open(args.output, encoding="utf-8") as file:
            record = json.load(file)
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    record.update(gnomon=lib.gnomon_version().decode(), cpu=cpu, scipy=importlib.metadata.version("scipy"))
    if args.only == "guarantees":
        guarantees(args.library, args, record)
    else:
        {"exact": exact, "seismic": seismic}[args.only](lib, args, record)
    with open(args.output, "w", encoding="utf-8") as file:
        file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
