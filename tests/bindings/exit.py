"""The end of an interpreter with objects of every kind alive, some in a cycle, and a thread in a call; calls in atexit too.

In a build with AddressSanitizer, whose runtime the test loads first, what is used after its end is found.
"""
import atexit
import os
import threading
import time
import traceback

import numpy as np

import gnomon


class Cycle:
    pass


X = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
S = gnomon.operator(8, 40)
index = gnomon.Index.build(X, tables=2, coarse=3, width=9.0)
found, graph = gnomon.neighbors(X, n_neighbors=3), gnomon.join(X, radius=6.0)
factors = gnomon.svd(X, 3) if gnomon.svd_missing() is None else None
stream = gnomon.Sketcher(S)
stream.push(X[:, :20])
cycle = Cycle()
cycle.itself = cycle
cycle.held = [gnomon.Index.build(X[:50], tables=1, coarse=2, width=9.0), gnomon.neighbors(X[:50], n_neighbors=1), S, stream]
del found, stream


def late():
    while True:
        gnomon.sketch(X, S)


threading.Thread(target=late, daemon=True).start()
time.sleep(0.1)


@atexit.register
def last():
    try:
        assert index.kneighbors(X[:2], 1).indices.shape == (2, 1) and gnomon.sketch(X[:1], S).shape == (1, 8)
    except BaseException:  # would not change the status
        traceback.print_exc()
        os._exit(1)
