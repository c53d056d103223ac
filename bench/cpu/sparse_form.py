"""Exact search of sparse rows in either form, and what the library chooses: regret of the choice.

    bench/cpu/sparse_form.py LIBRARY TFIDF.npz RECORD.json

Needs NumPy and SciPy. LIBRARY is libgnomon.so, TFIDF.npz a sparse matrix (scipy.sparse.save_npz).
Each case is timed three times in each form, on one thread, by the least: as the library chooses, as sparse
rows (their columns are said to be 2^40, of which no dense copies are made) and as dense rows, with the
time of copying them. Regret is the time of the choice over the least of the three.
"""
import json
import os
import sys
import time

import numpy as np
import scipy.sparse as sp

os.environ["GNOMON_LIBRARY"] = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bindings/python"))
import gnomon  # noqa: E402

random = np.random.default_rng(5)


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


def timed(base, queries, metric):
    least = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        b, q = (x() for x in (base, queries))
        gnomon.neighbors(b, q, n_neighbors=10, metric=metric, n_jobs=1)
        least = min(least, time.perf_counter() - begin)
    return least


def wide(m):
    return sp.csr_matrix((m.data, m.indices.astype(np.int64), m.indptr.astype(np.int64)), (m.shape[0], 2**40))


def main():
    text = sp.load_npz(sys.argv[2]).tocsr()
    n = 8000
    cases = [("TF-IDF", text[:n])]
    cases += [(f"Zipf, D {d}, {z} drawn", zipf(n, d, z)) for d, z in ((1000, 20), (1000, 100), (300, 60), (10000, 100))]
    cases += [("one-hot, D 60", one_hot(n, 60, 6)), ("one-hot, D 1000", one_hot(n, 1000, 10))]
    cases += [(f"{100 * s:g} % nonzero, D {d}", uniform(n, d, s))
              for d in (64, 512) for s in (0.01, 0.03, 0.1, 0.2, 0.5)]
    rows = []
    for name, m in cases:
        for queries in (1, 30, 2000):
            for metric in ("cosine", "l2", "ip", "l1"):
                if len(sys.argv) > 4 and metric not in sys.argv[4].split(","):
                    continue
                q = m[:queries]
                times = {"chosen": timed(lambda: m, lambda: q, metric)}
                m_wide, q_wide = wide(m), wide(q)
                times["sparse"] = timed(lambda: m_wide, lambda: q_wide, metric)
                times["dense"] = timed(m.toarray, q.toarray, metric) if m.shape[1] <= 2000 else None
                known = [t for t in times.values() if t is not None]
                rows.append({"data": name, "queries": queries, "metric": metric,
                             **{k: t and round(t, 6) for k, t in times.items()},
                             "regret": round(times["chosen"] / min(known), 3)})
                print(json.dumps(rows[-1]), flush=True)
    with open(sys.argv[3], "w") as f:
        json.dump({"rows": rows, "version": gnomon.__version__}, f, indent=1)


main()
