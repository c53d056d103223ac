"""Exact search and joins of sparse rows in either form, and what the library chooses: regret of the choice.

usage: sparse_form.py LIBRARY --points TFIDF.npz --output RECORD.json [--metrics cosine,l2,ip,l1] [--data NAME] [--append]

Each case is timed two or three times, on one thread, the least of the processor seconds: as the library chooses, as sparse rows (their
columns are said to be so many that dense copies are ruled out by the memory limit) and as dense rows, with the time of
copying them. Regret is the time of the call that chose over the least of the three. Times below 20 us are not told
apart. The radius is the median distance of the tenth nearest. --data takes data whose name has these letters; --append keeps
what the record has of others. Needs NumPy and SciPy."""
import argparse
import ctypes as c
import json
import os
import platform
import time

import numpy as np
import scipy.sparse as sp
from binding import METRICS, ContextOptions, Matrix, Neighbors, Options
from join import Options as JoinOptions
from join import Result
from sparse import Rows, documents

LIMIT, WIDE, LEAST = 64 << 20, (64 << 20) // 512 + 1, 2e-5
HEAVY_SHARE, HEAVY_MOST = 128, 32  # as src/search/inverted.h has them
N, SELF = 3000, 2500
random = np.random.default_rng(5)


class Found(Neighbors):
    _fields_ = [("why", c.c_char * 256)]


def zipf(n, d, nonzeros):
    """Rows of about so many nonzeros, columns by Zipf's law."""
    share = 1 / np.arange(1, d + 1)
    columns = np.searchsorted(np.cumsum(share / share.sum()), random.random(n * nonzeros))
    m = sp.csr_matrix((random.random(n * nonzeros), (np.repeat(np.arange(n), nonzeros), columns.clip(0, d - 1))), (n, d))
    m.sum_duplicates()
    return m


def uniform(n, d, share):
    return sp.random(n, d, share, format="csr", random_state=random)


def one_hot(n, d, groups):
    columns = random.integers(0, d // groups, (n, groups)) + np.arange(groups) * (d // groups)
    return sp.csr_matrix((np.ones(n * groups), columns.ravel(), np.arange(n + 1) * groups), (n, d))


def one_heavy(n, d, nonzeros):
    m = sp.lil_matrix(uniform(n, d, nonzeros / d))
    m[:, d // 2] = random.random((n, 1)) + 0.5
    return m.tocsr()


def equal(n, d, nonzeros):
    return sp.csr_matrix(sp.vstack([uniform(1, d, nonzeros / d)] * n))


def data(text):
    yield "TF-IDF", text[random.permutation(text.shape[0])[:N]].tocsr()
    yield "TF-IDF, its 500 commonest columns", text[:, np.argsort(-np.bincount(text.indices))[:500]].tocsr()[:N]
    yield "learned-like", documents(N)
    yield "learned-like, D 2000", documents(N, 2000, 60)
    for d, z in ((1000, 20), (1000, 100), (300, 60), (10000, 100)):
        yield f"Zipf, D {d:,}, {z} drawn", zipf(N, d, z)
    yield "one-hot, D 60", one_hot(N, 60, 6)
    yield "one-hot, D 1000", one_hot(N, 1000, 10)
    yield "one heavy column, D 500", one_heavy(N, 500, 5)
    yield "all rows equal, D 200", equal(N, 200, 10)
    for d, s in ((64, 0.03), (64, 0.2), (64, 0.95), (512, 0.01), (512, 0.1), (512, 0.5)):
        yield f"{100 * s:g} % nonzero, D {d}", uniform(N if s < 0.5 or d < 100 else 1500, d, s)


def shape(p, q):
    """What the cost model sees, of all rows: columns of the lists that two rows share; heavy columns of a row of p."""
    a, b = (np.bincount(m.indices, minlength=m.shape[1]) / m.shape[0] for m in (p, q))
    order = np.lexsort((np.arange(len(b)), b))[-HEAVY_MOST:]
    heavy = np.zeros(len(b), bool)
    heavy[order] = b[order] > 1 / HEAVY_SHARE
    return {"listed": float((a * b)[~heavy].sum()), "heavy": float(a[heavy].sum()), "nonzeros": q.nnz / q.shape[0]}


class Caller:
    def __init__(self, lib):
        self.lib, self.ctx = lib, c.c_void_p()
        made = ContextOptions(struct_size=c.sizeof(ContextOptions), device=b"cpu", threads=1, memory_limit=LIMIT)
        assert lib.gnomon_context_create(c.byref(made), c.byref(self.ctx)) == 0

    def check(self, status):
        if status:
            raise SystemExit(self.lib.gnomon_last_error(self.ctx).decode())

    def view(self, m, dense):
        if not dense:
            return Rows(m)
        held = Rows.__new__(Rows)
        held.held = m.toarray()
        held.view = Matrix(held.held.ctypes.data, 2, 0, *m.shape, m.shape[1], 1)
        return held

    def nearest(self, base, queries, metric, k, radius, dense):
        b, q = self.view(base, dense), self.view(queries, dense)
        o = Options(struct_size=c.sizeof(Options), metric=METRICS[metric], k=k, radius=radius, exclude=-1)
        found = Found(struct_size=c.sizeof(Found))
        call = self.lib.gnomon_neighbors_exact if dense else self.lib.gnomon_neighbors_exact_csr
        self.check(call(self.ctx, c.byref(b.view), c.byref(q.view), c.byref(o), c.byref(found)))
        distances = np.ctypeslib.as_array(found.distances, (max(found.offsets[found.queries], 1),)).copy()
        why = found.why.decode()
        self.lib.gnomon_neighbors_free(self.ctx, c.byref(found))
        return distances, why

    def join(self, points, metric, threshold, dense):
        x = self.view(points, dense)
        o = JoinOptions(struct_size=c.sizeof(JoinOptions), metric=METRICS[metric], threshold=threshold, recall=1.0)
        result = Result(struct_size=c.sizeof(Result))
        self.check((self.lib.gnomon_join if dense else self.lib.gnomon_join_csr)(self.ctx, c.byref(x.view), None, c.byref(o), c.byref(result)))
        return result.pairs, result.why.decode()


def timed(call, rounds):
    least, end = float("inf"), time.perf_counter() + 0.4
    for n in range(rounds):
        begin = time.process_time()
        result = call()
        least = min(least, time.process_time() - begin)
        if time.perf_counter() > end:
            break
    return least, result


def wide(m):
    return sp.csr_matrix((m.data, m.indices, m.indptr), (m.shape[0], WIDE))


def run(caller, name, m, metrics):
    few = m[:SELF]
    for metric in metrics:
        tenth, _ = caller.nearest(m, m[:100], metric, 10, 0, False)
        radius = float(np.median(tenth[9::10]))
        jobs = [(f"{n} nearest", n, lambda b, dense, n=n: caller.nearest(b, b[:n], metric, 10, 0, dense)) for n in (1, 30, 500)]
        jobs += [("500 within", 500, lambda b, dense: caller.nearest(b, b[:500], metric, 0, radius, dense)),
                 ("self-join", SELF, lambda b, dense: caller.join(b, metric, radius, dense))]
        for job, count, call in jobs:
            x = few if job == "self-join" else m
            w = wide(x)
            chosen, (_, why) = timed(lambda: call(x, False), 3)
            sparse, _ = timed(lambda: call(w, False), 3)
            dense = timed(lambda: call(x, True), 2)[0] if m.shape[1] <= 2000 else None
            known = [t for t in (chosen, sparse, dense) if t is not None]
            yield {"data": name, "job": job, "metric": metric, "rows": x.shape[0], "columns": x.shape[1], "queries": min(count, x.shape[0]),
                   **shape(x[:count], x), "form": "dense" if "dense rows:" in why or "dense copies:" in why else "sparse", "why": why,
                   "chosen": chosen, "sparse": sparse, "dense": dense, "regret": max(chosen, LEAST) / max(min(known), LEAST)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("--points", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--metrics", default="cosine,l2,ip,l1")
    parser.add_argument("--data", default="")
    parser.add_argument("--append", action="store_true")
    args = parser.parse_args()
    lib = c.CDLL(os.path.abspath(args.library))
    lib.gnomon_last_error.restype = lib.gnomon_version.restype = c.c_char_p
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    record = {"benchmark": "sparse-form", "gnomon": lib.gnomon_version().decode(), "cpu": cpu, "rows": []}
    caller = Caller(lib)
    metrics = args.metrics.split(",")
    if args.append and os.path.exists(args.output):
        with open(args.output, encoding="utf-8") as file:
            record["rows"] = json.load(file)["rows"]
    for name, m in data(sp.load_npz(args.points).tocsr().astype(np.float64)):
        if args.data not in name:
            continue
        new = list(run(caller, name, m.astype(np.float64), metrics))
        record["rows"] = [r for r in record["rows"] if r["data"] != name or r["metric"] not in metrics] + new
        print(name, f"{max(r['regret'] for r in new):.2f}", flush=True)
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
