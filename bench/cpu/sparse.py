"""Joins and searches of sparse rows beside SciPy, sparse-dot-topn and scikit-learn, in one run: wall and processor seconds, threads 1 and 2.

usage: sparse.py LIBRARY --texts FILE --output FILE.json [--only joins,searches,scaling,learned] [--share 0.05] [--documents 200000]

The points are the TF-IDF of texts, a line each (scikit-learn's TfidfVectorizer, min_df=2, as it comes, its columns in
no order); halves of these texts for joins over their number; and vectors like those of learned sparse models, by a law: 120 of 30,000 columns a row, drawn by
Zipf's law with exponent 0.7, values exp(N(0, 1/4)). Debian's package descriptions come from the lists that
'apt-get -o Acquire::Languages=en update' leaves (*Translation-en*).

Peers do a share of the rows, drawn at random, and their seconds are scaled to all; ours does all. SciPy's product has one
thread, and so has scikit-learn's search here. FILE.json keeps what --only leaves out. Pairs of the share are compared with SciPy's, in fp64. Needs NumPy, SciPy and the peers."""
import argparse
import ctypes as c
import importlib.metadata
import json
import os
import platform
import statistics
import time

import numpy as np
import scipy.sparse as sp
from binding import ContextOptions, Csr, Neighbors, Options
from join import ours as join

COSINE, IP, DTYPES = 2, 3, {np.dtype(np.float32): 1, np.dtype(np.float64): 2}


def tfidf(texts):
    from sklearn.feature_extraction.text import TfidfVectorizer
    return TfidfVectorizer(min_df=2, dtype=np.float32).fit_transform(texts)


def halves(texts):
    """The first and the second half of each text's words."""
    for text in texts:
        words = text.split()
        yield " ".join(words[:len(words) // 2])
        yield " ".join(words[len(words) // 2:])


def documents(n, columns=30_000, nonzeros=120, exponent=0.7):
    rng = np.random.default_rng(7)
    law = 1 / np.arange(1, columns + 1) ** exponent
    law = np.cumsum(law / law.sum())
    names = rng.permutation(columns)
    indices = np.empty((n, nonzeros), np.int32)
    for i in range(n):
        drawn = np.empty(0, np.int64)
        while len(drawn) < nonzeros:
            drawn = np.append(drawn, np.minimum(np.searchsorted(law, rng.random(2 * nonzeros)), columns - 1))
            drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        indices[i] = np.sort(names[drawn[:nonzeros]])
    values = np.exp(rng.normal(0, 0.5, n * nonzeros)).astype(np.float32)
    return sp.csr_matrix((values, indices.ravel(), np.arange(0, n * nonzeros + 1, nonzeros)), (n, columns))


class Rows:
    """A view of a SciPy matrix for the library."""

    def __init__(self, x):
        self.held = (x.indptr.astype(np.int64), x.indices.astype(np.int64), x.data)
        offsets, indices, values = (a.ctypes.data for a in self.held)
        self.view = Csr(*x.shape, offsets, indices, values, DTYPES[x.dtype])


def timed(call):
    cpu = time.process_time()
    result = call()
    return time.process_time() - cpu, result


def both(call):
    """Wall and processor seconds, and what the call gave back."""
    wall = time.perf_counter()
    cpu, result = timed(call)
    return time.perf_counter() - wall, cpu, result


def nearest(lib, base, queries, metric, k, exclude, threads=1):
    ctx = c.c_void_p()
    made = ContextOptions(struct_size=c.sizeof(ContextOptions), device=b"cpu", threads=threads, memory_limit=16 << 30)
    assert lib.gnomon_context_create(c.byref(made), c.byref(ctx)) == 0
    o = Options(struct_size=c.sizeof(Options), metric=metric, k=k, exclude=0 if exclude else -1)
    found = Neighbors(struct_size=c.sizeof(Neighbors))
    seconds, status = timed(lambda: lib.gnomon_neighbors_exact_csr(ctx, c.byref(base.view), c.byref(queries.view), c.byref(o),
                                                                   c.byref(found)))
    if status:
        raise SystemExit(lib.gnomon_last_error(ctx).decode())
    shape = (queries.view.rows, k)
    ids = np.ctypeslib.as_array(c.cast(found.ids, c.POINTER(c.c_int64)), shape).copy()
    distances = np.ctypeslib.as_array(c.cast(found.distances, c.POINTER(c.c_double)), shape).copy()
    lib.gnomon_neighbors_free(ctx, c.byref(found))
    lib.gnomon_context_destroy(ctx)
    return seconds, ids, distances


def product(x, xt, rows, least):
    """Pairs of these rows with all whose product is at least so much, by SciPy, a thousand rows at a time."""
    i, j = [], []
    for at in range(0, len(rows), 1000):
        p = x[rows[at:at + 1000]] @ xt
        p.data[p.data < least] = 0
        p.eliminate_zeros()
        p = p.tocoo()
        i.append(rows[at:at + 1000][p.row])
        j.append(p.col)
    return np.concatenate(i), np.concatenate(j)


def by_argpartition(queries, xt, k):
    """The k largest products of each query, by SciPy's product."""
    out = np.empty((queries.shape[0], k), np.int64)
    p = (queries @ xt).tocsr()
    for q in range(queries.shape[0]):
        part = slice(p.indptr[q], p.indptr[q + 1])
        values = p.data[part]
        best = np.argpartition(values, len(values) - k)[-k:]
        out[q] = p.indices[part][best[np.argsort(-values[best], kind="stable")]]
    return out


def normalised(x):
    norms = np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())
    return (sp.diags(1 / np.where(norms > 0, norms, 1)) @ x).tocsr()


def by_threads(call, scale=1.0):
    """For 1 and 2 threads the wall and processor seconds of 'call', which takes their number; and its last result."""
    out, result = {}, None
    for threads in (1, 2):
        wall, cpu, result = both(lambda: call(threads))
        out[str(threads)] = {"wall_seconds": wall * scale, "cpu_seconds": cpu * scale}
    return out, result


def one_join(lib, x, rows, threshold):
    """Ours of all pairs; the peers' of the rows with all, which are two of ours and the rows themselves."""
    from sparse_dot_topn import sp_matmul_topn
    n, scale = x.shape[0], x.shape[0] / len(rows)
    view = Rows(x)
    ours, (pairs, _, _, result) = by_threads(lambda threads: join(lib, threads, COSINE, threshold, view.view, True))
    xt = x.T.tocsr()
    wall, cpu, (i, j) = both(lambda: product(x, xt, rows, 1 - threshold))
    # no more room than a row needs, which a user would have to know
    room = int(np.bincount(np.concatenate([pairs["i"], pairs["j"]]), minlength=n).max()) + 1
    topn, found = by_threads(lambda threads: sp_matmul_topn(x[rows], xt, top_n=room, threshold=1 - threshold, sort=False,
                                                            n_threads=threads), scale)
    # SciPy's pairs once more, in fp64, of a tenth of the rows
    some = rows[:max(1, len(rows) // 10)]
    exact = normalised(x.astype(np.float64))
    i, j = product(exact, exact.T.tocsr(), some, 1 - threshold)
    keep = i != j
    wanted = set((np.minimum(i, j)[keep] * n + np.maximum(i, j)[keep]).tolist())
    mine = pairs[np.isin(pairs["i"], some) | np.isin(pairs["j"], some)]
    differing = len(wanted ^ set((mine["i"] * n + mine["j"]).tolist()))
    return {"points": n, "nonzeros": int(x.nnz), "threshold": threshold, "pairs": len(pairs), "ours": ours, "verified": result.verified,
            "most_pairs_of_a_row": room - 1, "scipy": {"1": {"wall_seconds": wall * scale, "cpu_seconds": cpu * scale}}, "topn": topn,
            "topn_entries": int(found.nnz), "compared_pairs": len(wanted), "differing_pairs": differing}


def sizes_of(x):
    return {"points": x.shape[0], "columns": x.shape[1], "nonzeros": int(x.nnz),
            "products": int((np.bincount(x.indices).astype(np.int64) ** 2).sum())}


def drawn(rng, x, share):
    return np.sort(rng.choice(x.shape[0], max(1, int(share * x.shape[0])), replace=False))


def joins(lib, lines, args, record):
    x = tfidf(lines)
    record["texts"] = sizes_of(x)
    rows = drawn(np.random.default_rng(1), x, args.share)
    record["joins"] = [one_join(lib, x, rows, t) for t in (0.2, 0.5, 0.8)]


def scaling(lib, lines, args, record):
    x = tfidf(halves(lines))
    record["halves"] = sizes_of(x)
    record["scaling"] = []
    rng = np.random.default_rng(1)
    order = rng.permutation(x.shape[0])
    for size in (16384, 32768, 65536, 131072):
        if size <= x.shape[0]:
            part = x[np.sort(order[:size])].tocsr()
            record["scaling"].append(one_join(lib, part, drawn(rng, part, args.share / 4), 0.5))


def searches(lib, lines, args, record):
    from sklearn.neighbors import NearestNeighbors
    from sparse_dot_topn import sp_matmul_topn
    x = tfidf(lines)
    n, rows = x.shape[0], drawn(np.random.default_rng(1), x, args.share)
    view, xt, scale = Rows(x), x.T.tocsr(), x.shape[0] / len(rows)
    ours, _ = by_threads(lambda threads: nearest(lib, view, view, COSINE, 10, True, threads))
    topn, _ = by_threads(lambda threads: sp_matmul_topn(x[rows], xt, top_n=11, sort=True, n_threads=threads), scale)
    fitted = NearestNeighbors(n_neighbors=11, metric="cosine", algorithm="brute", n_jobs=1).fit(x)
    wall, cpu, _ = both(lambda: fitted.kneighbors(x[rows]))
    record["nearest"] = {"k": 10, "points": n, "ours": ours, "topn": topn,
                         "sklearn": {"1": {"wall_seconds": wall * scale, "cpu_seconds": cpu * scale}}}
    one = Rows(x[rows[0]])
    record["one_query"] = {
        "cpu_seconds": statistics.median(nearest(lib, view, one, COSINE, 10, False)[0] for _ in range(5)),
        "sklearn_cpu_seconds": statistics.median(timed(lambda: fitted.kneighbors(x[rows[0]]))[0] for _ in range(5))}


def learned(lib, _, args, record):
    if args.keep and os.path.exists(args.keep):
        x = sp.load_npz(args.keep).tocsr()
    else:
        x = documents(args.documents + 1000)
    base, queries = x[:args.documents], x[args.documents:]
    cpu, ids, distances = nearest(lib, Rows(base), Rows(queries), IP, 10, False)
    one = statistics.median(nearest(lib, Rows(base), Rows(queries[:1]), IP, 10, False)[0] for _ in range(3))
    bt = base.T.tocsr()
    theirs, found = timed(lambda: by_argpartition(queries, bt, 10))
    some = (queries[:100].astype(np.float64) @ bt.astype(np.float64)).toarray()
    largest = -np.sort(-some, axis=1)[:, :10]
    record["learned"] = {"points": args.documents, "queries": 1000, "k": 10, "cpu_seconds": cpu, "one_cpu_seconds": one,
                         "scipy_cpu_seconds": theirs, "same_answers": float((ids == found).mean()),
                         "largest_difference": float(np.abs(distances[:100] / largest - 1).max())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--texts", required=True)
    parser.add_argument("--only", default="joins,searches,scaling,learned")
    parser.add_argument("--keep", help="an npz of the learned-like vectors, if it is there")
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    lib = c.CDLL(args.library)
    lib.gnomon_last_error.restype = lib.gnomon_version.restype = c.c_char_p
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    record = {"benchmark": "sparse"}
    if os.path.exists(args.output):
        with open(args.output, encoding="utf-8") as file:
            record = json.load(file)
    record.update(gnomon=lib.gnomon_version().decode(), cpu=cpu, share=args.share,
                  peers={name: importlib.metadata.version(name) for name in ("scipy", "scikit-learn", "sparse-dot-topn")})
    with open(args.texts, encoding="utf-8") as file:
        lines = file.readlines()
    for part in args.only.split(","):
        begin = time.perf_counter()
        {"joins": joins, "searches": searches, "scaling": scaling, "learned": learned}[part](lib, lines, args, record)
        print(part, f"{time.perf_counter() - begin:.0f} s", flush=True)
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
