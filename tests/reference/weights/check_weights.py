"""Neighbours, joins and indexes by weighted-jaccard beside NumPy, which compares every pair, on TF-IDF of text with a
Zipf law of words, heavy tails, one-hot rows, equal rows and rows that are nearly full.

An index by icws must find pairs of similarity s as often as 1 - (1 - s^M)^L says: the number found among all pairs within
a radius lies within six standard deviations, for a fixed seed.

usage: check_weights.py GNOMON WORK
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("NumPy is missing")
    sys.exit(77)

gnomon = os.path.abspath(sys.argv[1])
N, K, TABLES, FUNCTIONS = 260, 7, 6, 2


def tfidf(rng):
    """Documents of words by a Zipf law, some of them edited copies."""
    words = 1 / np.arange(1, 900) ** 1.1
    words /= words.sum()
    counts = np.zeros((N, len(words)))
    for i in range(N):
        if i % 3 == 2:
            counts[i] = counts[i - 1]
            for c in rng.choice(len(words), 6, p=words):
                counts[i, c] = 0 if counts[i, c] else 1
        else:
            np.add.at(counts[i], rng.choice(len(words), rng.integers(4, 60), p=words), 1)
    idf = np.log((1 + N) / (1 + (counts > 0).sum(0))) + 1
    x = counts * idf
    return x / np.maximum(np.sqrt((x * x).sum(1, keepdims=True)), 1e-300)


def zipf(rng):
    x = rng.pareto(0.8, (N, 120)) * (rng.random((N, 120)) < 0.2)
    x[1::2] = x[::2] * (rng.random((N // 2, 120)) < 0.9)
    x[7] = 0
    return x


def one_hot(rng):
    x = np.zeros((N, 40))
    for first, size in ((0, 5), (5, 20), (25, 15)):
        x[np.arange(N), first + rng.integers(0, size, N)] = 1 + first
    return x


def equal(rng):
    return np.tile(rng.random(50) * (rng.random(50) < 0.6), (N, 1))


def near_dense(rng):
    return (rng.random((N, 64)) + 0.2) * (rng.random((N, 64)) < 0.97)


def distances(x, y):
    """By the definition, in blocks."""
    out = np.empty((len(x), len(y)))
    for i, row in enumerate(x):
        least, most = np.minimum(row, y).sum(1), np.maximum(row, y).sum(1)
        out[i] = np.where(most > 0, 1 - least / np.where(most > 0, most, 1), 0)
    return out


def save(path, x):
    rows, cols = np.nonzero(x)
    indptr = np.concatenate([[0], np.cumsum((x != 0).sum(1))])
    np.savez(path, format=np.bytes_("csr"), shape=np.array(x.shape), data=x[rows, cols], indices=cols, indptr=indptr)


def run(*words):
    done = subprocess.run([gnomon, *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout


def close(a, b, what):
    assert np.allclose(a, b, rtol=0, atol=1e-13), (what, np.abs(a - b).max())


def check_neighbors(name, truth):
    """Each query's distances are the smallest, and those of the ids; equal ones come by id, as far as they are equal
    in both."""
    run("neighbors", "p.npz", "q.npz", "-k", str(K), "--metric", "weighted-jaccard", "-o", "found.npz", "--quiet")
    found = np.load("found.npz")
    close(found["distances"], np.sort(truth, 1)[:, :K], (name, "the nearest"))
    close(found["distances"], np.take_along_axis(truth, found["ids"], 1), (name, "neighbours"))
    same = found["distances"][:, 1:] == found["distances"][:, :-1]
    assert (found["ids"][:, 1:] > found["ids"][:, :-1])[same].all(), name
    run("neighbors", "p.npz", "q.npz", "--radius", "0.6", "--metric", "weighted-jaccard", "-o", "found.npz", "--quiet")
    found = np.load("found.npz")
    query = np.repeat(np.arange(len(truth)), np.diff(found["offsets"]))
    close(found["distances"], truth[query, found["ids"]], (name, "within a radius"))
    assert (truth <= 0.6 - 1e-12).sum() <= len(query) <= (truth <= 0.6 + 1e-12).sum(), name


def check_join(name, truth, threshold, *other):
    run("join", "p.npz", *other, "--threshold", str(threshold), "--metric", "weighted-jaccard", "-o", "pairs.csv", "--quiet")
    lines = open("pairs.csv").read().split("\n")[1:-1]
    pairs = np.array([line.split(",") for line in lines], float).reshape(-1, 3)
    if not other:
        truth = np.where(np.triu(np.ones(truth.shape, bool), 1), truth, np.inf)
    i, j = pairs[:, 0].astype(int), pairs[:, 1].astype(int)
    assert len(set(zip(i, j))) == len(i) and np.all(np.diff(i * truth.shape[1] + j) > 0), name
    close(pairs[:, 2], truth[i, j], (name, "pairs"))
    sure, may = (truth <= threshold - 1e-12), (truth <= threshold + 1e-12)
    got = np.zeros(truth.shape, bool)
    got[i, j] = True
    assert np.all(got[sure]) and not np.any(got & ~may), (name, threshold, sure.sum(), got.sum())


def check_index(name, truth, radius=0.7):
    run("index", "build", "p.npz", "--metric", "weighted-jaccard", "--tables", str(TABLES), "--functions", str(FUNCTIONS),
        "--seed", "5", "-o", "p.lsh", "--quiet")
    run("index", "query", "p.lsh", "q.npz", "--radius", str(radius), "-o", "found.npz", "--quiet")
    found = np.load("found.npz")
    query = np.repeat(np.arange(len(truth)), np.diff(found["offsets"]))
    close(found["distances"], truth[query, found["ids"]], (name, "by an index"))
    s = 1 - truth[truth <= radius]
    chance = 1 - (1 - s**FUNCTIONS) ** TABLES
    sure = (s > 1 - 1e-12).sum()
    assert sure <= len(query) <= len(s), (name, sure, len(query), len(s))
    if name in ("one-hot", "equal", "near-dense"):
        return  # all rows are alike: what a function draws, all pairs have in common
    # pairs of a row are not independent: twice the deviation of as many independent ones
    spread = 6 * 2 * np.sqrt((chance * (1 - chance)).sum()) + 1
    assert abs(len(query) - chance.sum()) <= spread, (name, len(query), chance.sum(), spread)


with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
    os.chdir(folder)
    for name, make in (("tf-idf", tfidf), ("zipf", zipf), ("one-hot", one_hot), ("equal", equal), ("near-dense", near_dense)):
        x = make(np.random.default_rng(8))
        p, q = x, x[::4] * (np.random.default_rng(9).random(x[::4].shape) < 0.95)
        save("p.npz", p)
        save("q.npz", q)
        across, itself = distances(q, p), distances(p, p)
        check_neighbors(name, across)
        for threshold in (0, 0.05, 0.3, 0.62, 0.9, 0.9995):
            check_join(name, itself, threshold)
            check_join(name, across.T, threshold, "q.npz")
        check_index(name, across)
        # a file that is made in another way: added to, less some rows, compacted
        save("some.npz", p[:200])
        save("more.npz", p[200:])
        run("index", "build", "some.npz", "--metric", "weighted-jaccard", "--tables", "6", "--functions", "2", "--seed", "5",
            "-o", "made.lsh", "--quiet")
        run("index", "add", "made.lsh", "more.npz", "--quiet")
        np.savetxt("gone.csv", np.arange(0, N, 7), fmt="%d")
        for _ in range(2):
            run("index", "query", "made.lsh", "q.npz", "--radius", "0.7", "-o", "again.npz", "--quiet")
            again, whole = np.load("again.npz"), np.load("found.npz")
            kept = ~np.isin(whole["ids"], [] if _ == 0 else np.arange(0, N, 7))
            assert np.array_equal(again["ids"], whole["ids"][kept]), name
            assert np.array_equal(again["distances"], whole["distances"][kept]), name
            if _ == 0:
                run("index", "remove", "made.lsh", "gone.csv", "--quiet")
                run("index", "check", "made.lsh", "--quiet")
                run("index", "compact", "made.lsh", "--quiet")
                run("index", "check", "made.lsh", "--quiet")
        assert json.loads(run("index", "info", "made.lsh", "--json"))["metric"] == "weighted-jaccard"
print("all answers are NumPy's")
