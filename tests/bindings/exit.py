"""The end of an interpreter with objects of every class alive, some in a cycle, threads in calls, a call that a callback
has left half-way and an iterator that nobody finished; calls in atexit too.

In a build with AddressSanitizer, whose runtime the test loads first, what is used after its end is found.
"""
import atexit
import os
import tempfile
import threading
import time
import traceback

import numpy as np


@atexit.register
def after_all():  # registered before the package is imported: it runs after all that the package and weakref have there
    use_them()


import gnomon

try:
    import scipy.sparse
except ImportError:
    scipy = None


class Cycle:
    pass


X = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
S = gnomon.operator(8, 40)
index = gnomon.Index.build(X, tables=2, coarse=3, width=9.0)
texts = [f"text number {i % 40} of the words that a text has, some of them more than once" for i in range(80)]
kept = {"neighbors": gnomon.neighbors(X, X, 3), "radius": gnomon.neighbors(X, radius=6.0), "join": gnomon.join(X, radius=6.0),
        "distortion": gnomon.distortion(X, gnomon.sketch(X, S)), "dedup": gnomon.dedup(texts),
        "parts": gnomon.dedup_parts(texts),
        "codes": gnomon.RaBitQIndex.build(X, bits=3), "transposed": S.T, "entries": S.block(0, 0, 4, 4), "tuned": gnomon.Index.tune(X, 3, recall=0.5),
        "product": gnomon.matmul(X, X.T.astype(np.float16))}
if gnomon.svd_missing() is None:
    kept.update(svd=gnomon.svd(X, 3), hosvd=gnomon.hosvd(X.reshape(30, 10, 40), (3, 3, 3)), lstsq=gnomon.lstsq(X, X[:, 0]))
if scipy:
    sparse = scipy.sparse.random(200, 300, 0.05, format="csr", random_state=0)
    kept.update(inverted=gnomon.SparseIndex.build(sparse, metric="cosine"), rows=gnomon.sketch(sparse, 8),
                pairs=gnomon.join(sparse, radius=0.5, metric="cosine"))
with tempfile.TemporaryDirectory() as folder:  # files that are mapped, and gone
    index.save(os.path.join(folder, "points.gnx"))
    kept["mapped"] = gnomon.Index.open(os.path.join(folder, "points.gnx"))
    if scipy:
        kept["inverted"].save(os.path.join(folder, "sparse.gnx"))
        kept["inverted, mapped"] = gnomon.SparseIndex.open(os.path.join(folder, "sparse.gnx"))
stream = gnomon.Sketcher(S)
stream.push(X[:, :20])
pieces = gnomon.sketch(iter([X, X]), S)
next(pieces)
try:
    gnomon.sketch(X, S, progress=lambda *told: 1 / 0, device="cpu")
except ZeroDivisionError as error:  # its traceback holds the call's frames
    kept["left"] = error
cycle = Cycle()
cycle.itself = cycle
cycle.held = [gnomon.Index.build(X[:50], tables=1, coarse=2, width=9.0), gnomon.neighbors(X[:50], n_neighbors=1), S, stream, pieces,
              {name: kept[name] for name in list(kept)[::2]}]
del stream, pieces


def late(call):
    while True:
        call()


for call in (lambda: gnomon.sketch(X, S), lambda: gnomon.neighbors(X, n_neighbors=2), lambda: kept["mapped"].kneighbors(X[:9], 2)):
    threading.Thread(target=late, args=(call,), daemon=True).start()
time.sleep(0.1)


def use_them():
    try:
        assert index.kneighbors(X[:2], 1).indices.shape == (2, 1) and gnomon.sketch(X[:1], S).shape == (1, 8)
        assert gnomon.Index.build(X[:50], tables=1, coarse=2, width=9.0).kneighbors(X[:2], 1).indices.shape == (2, 1)
        assert (kept["neighbors"].indices[:, 0] == np.arange(300)).all()
    except BaseException:  # would not change the status
        traceback.print_exc()
        os._exit(1)


atexit.register(use_them)
