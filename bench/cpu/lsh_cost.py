"""What the parts of a query take: the constants of src/lsh/tune/cost.c, fitted to the processor time of
queries with many settings of indexes, on one thread.

usage: lsh_cost.py LIBRARY [--part hashing|verifying|exact] [--metric l1] [--rounds 3]

Needs NumPy and SciPy. Prints the constants with how far the fit is from what was measured. They are
written into src/lsh/tune/cost.c by hand: a choice must not depend on the machine that it is made on."""
import argparse
import time

import numpy as np
import scipy.optimize
import scipy.sparse

from binding import Library

N, QUERIES, K = 60000, 400, 10


def clustered(rng, n, dim):
    """Points around 200 centres, so that buckets differ in size."""
    centres = rng.normal(0, 1, (200, dim))
    return (centres[rng.integers(0, 200, n)] + rng.normal(0, 0.7, (n, dim))).astype(np.float32)


def sets(rng, n, members):
    """Each mostly from one of 300 pools."""
    pools = rng.integers(0, 100000, (300, 2 * members))
    rows = [np.unique(np.concatenate([rng.choice(pools[p], members - members // 5),
                                      rng.integers(0, 100000, members // 5)]))
            for p in rng.integers(0, 300, n)]
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    columns = np.concatenate(rows)
    return scipy.sparse.csr_matrix((np.ones(len(columns), np.float32), columns, offsets), shape=(n, 100000))


def timed(call, rounds):
    times = []
    for _ in range(rounds):
        start = time.process_time()
        out = call()
        times.append(time.process_time() - start)
    return min(times), out


def fit(names, rows, times):
    """Not negative, by relative errors: for each row features and nanoseconds."""
    a, b = np.array(rows, float), np.array(times, float)
    x, _ = scipy.optimize.nnls(a / b[:, None], np.ones(len(b)))
    errors = a @ x / b - 1
    for name, value in zip(names, x):
        print(f"  {name:28s} {value:.4g}")
    print(f"  errors of the fit: {100 * np.sqrt(np.mean(errors ** 2)):.0f} % (rms), "
          f"{100 * errors.min():+.0f} to {100 * errors.max():+.0f} %", flush=True)


def hashing(lib, rounds, only):
    """Products, values, buckets, candidates and codes."""
    rng, rows, times = np.random.default_rng(1), [], []
    for dim in (32, 128, 784):
        points = clustered(rng, N + QUERIES, dim)
        base, queries = (lib.view(np.ascontiguousarray(p)) for p in (points[:N], points[N:]))
        near = np.sqrt(2 * dim) * 0.7
        for tables, depth, width in ((4, 6, 2), (16, 10, 2), (16, 4, 1)):
            index = lib.build("l2", "p-stable", base[0], tables, depth, width * near, codes=64)
            for probes in (0, 4 * tables, 32 * tables):
                seconds, (_, _, facts) = timed(
                    lambda: lib.query(index, "l2", queries[0], K, probes, 64), rounds)
                if facts["exact"] == 0:
                    c = facts["candidates"] / QUERIES
                    rows.append([1, dim * tables * depth, tables * depth, tables + probes, c,
                                 facts["verified"] / QUERIES * dim, facts["verified"] / QUERIES])
                    times.append(1e9 * seconds / QUERIES)
            lib.drop(index)
    print("l2, fp32, codes of 64 bytes: nanoseconds")
    fit(["a query", "a coordinate and function", "a function", "a bucket", "a candidate with its code",
         "a verified coordinate", "a verified point"], rows, times)


def verifying(lib, rounds, only):
    """Candidates verified without codes, in every metric."""
    rng = np.random.default_rng(2)
    cases = {"l2": [], "l1": [], "cosine": [], "hamming": [], "jaccard": []}
    for dim in (32, 128, 784):
        points = clustered(rng, N + QUERIES, dim)
        for metric in ("l2", "l1", "cosine", "hamming"):
            p = (points > 0).astype(np.uint8) * 255 if metric == "hamming" else points
            cases[metric].append((dim, np.ascontiguousarray(p[:N]), np.ascontiguousarray(p[N:])))
    for members in (10, 50, 200):
        p = sets(rng, 20000 + QUERIES, members)
        cases["jaccard"].append((members, p[:20000], p[20000:]))
    families = {"l2": ("p-stable", 6), "l1": ("p-stable-l1", 6), "cosine": ("simhash", 10), "hamming": ("bit-sampling", 12),
                "jaccard": ("minhash", 2)}
    for metric, kinds in cases.items():
        if only not in (None, metric):
            continue
        rows, times = [], []
        for size, b, q in kinds:
            base, queries = lib.view(b), lib.view(q)
            for tables in (4, 16):
                width = {"l2": np.sqrt(2 * size), "l1": 4.0 * size}.get(metric, 0.0)
                depth = families[metric][1]
                index = lib.build(metric, families[metric][0], base[0], tables, depth, float(width))
                for probes in (0, 4 * tables):
                    seconds, (_, _, facts) = timed(
                        lambda: lib.query(index, metric, queries[0], K, probes), rounds)
                    if facts["exact"] > QUERIES // 20:
                        continue
                    verified = facts["verified"] / QUERIES
                    hashed = {"hamming": 1, "jaccard": size}.get(metric, size) * tables * depth
                    rows.append([tables + probes, hashed, verified, verified * size])
                    times.append(1e9 * seconds / QUERIES)
                lib.drop(index)
        print(f"{metric}: nanoseconds")
        fit(["a bucket", "a function, by coordinate", "a verified point", "its coordinate or byte or member"],
            rows, times)


def exact(lib, rounds, only):
    rng = np.random.default_rng(3)
    for metric in ("l2", "l1", "cosine", "hamming", "jaccard"):
        if only not in (None, metric):
            continue
        rows, times = [], []
        for size in (10, 50, 200) if metric == "jaccard" else (32, 128, 784):
            if metric == "jaccard":
                p, n = sets(rng, 20000 + QUERIES, size), 20000
            else:
                p, n = clustered(rng, N + QUERIES, size), N
                if metric == "hamming":
                    p = (p > 0).astype(np.uint8) * 255
            base, queries = (lib.view(x if metric == "jaccard" else np.ascontiguousarray(x)) for x in (p[:n], p[n:]))
            seconds, _ = timed(lambda: lib.exact(metric, base[0], queries[0], K), rounds)
            rows.append([n, n * size])
            times.append(1e9 * seconds / QUERIES)
        print(f"exact, {metric}: nanoseconds")
        fit(["a point", "its coordinate or byte or member"], rows, times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--part", choices=["hashing", "verifying", "exact"])
    parser.add_argument("--metric", help="of verifying and exact")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    lib = Library(args.library, 1)
    for part in (hashing, verifying, exact):
        if args.part in (None, part.__name__):
            part(lib, args.rounds, args.metric)
    lib.close()


main()
