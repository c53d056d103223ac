"""Queries one by one by an inverted index in a mapped file, and the same queries by exact search without one: wall seconds.

usage: sparse_index.py LIBRARY [--points FILE.npz] [--documents 200000] [--queries 1000] [--output FILE.json]

The points are a SciPy matrix (TF-IDF of texts, as bench/cpu/sparse.py describes), queried by rows of it drawn at random, by
cosine and by ip; and vectors like those of learned sparse models, by the law of bench/cpu/sparse.py, queried by others of
that law, by ip. One thread, k = 10. Each index is written to a temporary folder, opened and queried once through before
the queries are timed. Answers are compared with exact search bit for bit. Needs NumPy and SciPy."""
import argparse
import ctypes as c
import json
import os
import platform
import tempfile
import time

import numpy as np
import scipy.sparse as sp
from binding import ContextOptions, Neighbors, Options
from sparse import COSINE, IP, Rows, documents

K = 10


class Info(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("metric", c.c_int)] + [
        (name, c.c_int64) for name in ("points", "removed", "dim", "nonzeros", "columns", "heavy_columns", "point_bytes", "index_bytes")]


def one_by_one(lib, name, x, queries, metric):
    ctx, builder, index = c.c_void_p(), c.c_void_p(), c.c_void_p()
    made = ContextOptions(struct_size=c.sizeof(ContextOptions), device=b"cpu", threads=1, memory_limit=8 << 30)

    def check(status):
        if status:
            raise SystemExit(lib.gnomon_last_error(ctx).decode())

    def timed(call, *arguments):
        begin = time.perf_counter()
        check(call(*arguments))
        return time.perf_counter() - begin

    def answers(found, count):
        ids = np.ctypeslib.as_array(c.cast(found.ids, c.POINTER(c.c_int64)), (count, K)).copy()
        distances = np.ctypeslib.as_array(c.cast(found.distances, c.POINTER(c.c_double)), (count, K)).copy()
        lib.gnomon_neighbors_free(ctx, c.byref(found))
        return ids, distances

    check(lib.gnomon_context_create(c.byref(made), c.byref(ctx)))
    options = Options(struct_size=c.sizeof(Options), metric=metric, k=K, exclude=-1)
    base, every = Rows(x), Rows(queries)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index").encode()
        begin = time.perf_counter()
        check(lib.gnomon_sparse_builder_create(ctx, metric, c.c_int64(x.shape[1]), path, c.byref(builder)))
        check(lib.gnomon_sparse_builder_add_csr(builder, c.byref(base.view)))
        check(lib.gnomon_sparse_builder_finish(builder))
        build = time.perf_counter() - begin
        size = os.path.getsize(path)
        opened = timed(lib.gnomon_sparse_index_open, ctx, path, c.byref(index))
        info = Info(struct_size=c.sizeof(Info))
        lib.gnomon_sparse_index_describe(index, c.byref(info))
        rows = [Rows(queries[i]) for i in range(queries.shape[0])]
        for turn in range(2):  # the first reads the file's pages and checks lists
            seconds, ids, distances = [], [], []
            for row in rows:
                found = Neighbors(struct_size=c.sizeof(Neighbors))
                seconds.append(timed(lib.gnomon_sparse_index_query_csr, ctx, index, c.byref(row.view), c.byref(options), c.byref(found)))
                some = answers(found, 1)
                ids.append(some[0])
                distances.append(some[1])
            if turn == 0:
                first = seconds
        ids, distances = np.concatenate(ids), np.concatenate(distances)
        without = []
        for row in rows[:20]:
            found = Neighbors(struct_size=c.sizeof(Neighbors))
            without.append(timed(lib.gnomon_neighbors_exact_csr, ctx, c.byref(base.view), c.byref(row.view), c.byref(options), c.byref(found)))
            lib.gnomon_neighbors_free(ctx, c.byref(found))
        found = Neighbors(struct_size=c.sizeof(Neighbors))
        check(lib.gnomon_neighbors_exact_csr(ctx, c.byref(base.view), c.byref(every.view), c.byref(options), c.byref(found)))
        exact = answers(found, queries.shape[0])
        lib.gnomon_sparse_index_destroy(index)
    lib.gnomon_context_destroy(ctx)
    same = (ids == exact[0]).all(1) & (distances.view(np.int64) == exact[1].view(np.int64)).all(1)
    return {"points": name, "metric": {COSINE: "cosine", IP: "ip"}[metric], "count": x.shape[0], "columns": x.shape[1],
            "nonzeros": int(x.nnz), "queries": queries.shape[0], "build_seconds": build, "file_bytes": size,
            "index_bytes": info.index_bytes, "open_seconds": opened, "median_seconds": float(np.median(seconds)),
            "p99_seconds": float(np.quantile(seconds, 0.99)), "largest_seconds": max(seconds),
            "first_median_seconds": float(np.median(first)), "first_largest_seconds": max(first),
            "without_index_seconds": float(np.median(without)), "differing_queries": int((~same).sum())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--points")
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--output")
    args = parser.parse_args()
    lib = c.CDLL(args.library)
    lib.gnomon_last_error.restype = lib.gnomon_version.restype = c.c_char_p
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    record = {"benchmark": "sparse-index", "gnomon": lib.gnomon_version().decode(), "cpu": cpu, "k": K, "searches": []}
    if args.points:
        x = sp.load_npz(args.points).tocsr()
        drawn = np.sort(np.random.default_rng(3).choice(x.shape[0], min(args.queries, x.shape[0]), replace=False))
        record["searches"] += [one_by_one(lib, "texts", x, x[drawn], metric) for metric in (COSINE, IP)]
    if args.documents > 0:
        x = documents(args.documents + args.queries)
        record["searches"].append(one_by_one(lib, "learned", x[:args.documents], x[args.documents:], IP))
    text = json.dumps(record, indent=1) + "\n"
    if args.output:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
