"""Arguments of every wrong kind: an exception or an answer, never a crash. And what that leaves behind is usable."""
import itertools

import numpy as np
import pytest

import gnomon

X = np.random.default_rng(0).normal(size=(30, 8))


class Odd:
    """Has all the members of an array that lie about it."""

    shape = (3, 8)
    format = "csr"
    data = indices = indptr = None

    def tocsr(self):
        return self


class Lying:
    def __init__(self, **interface):
        self.__array_interface__ = {"version": 3, "shape": (3, 8), "typestr": "<f4", **interface}


VALUES = [
    None, True, -1, 0, 1, 2, 2**31, 2**63 - 1, 2**63, 2**64, -2**63, 10**30, 0.5, -0.5, 1e308, np.nan, np.inf, -np.inf, 1j, "",
    "auto", "\0", "\ud800", "l2", b"x", [], [[]], [1.0], [[1.0] * 8] * 3, {}, object(), int, np.float32(3), np.int8(-3),
    np.zeros((0, 0)), np.zeros((0, 8)), np.zeros((3, 0)), np.zeros((3, 8)), np.zeros((3, 8))[:, ::-1],
    np.full((3, 8), np.nan), np.full((3, 8), 1e300), np.zeros((3, 8), object), np.zeros((3, 8), "S1"), np.zeros((3, 8), bool),
    np.zeros((3, 8), np.uint8), np.broadcast_to(np.float32(1), (3, 8)), np.zeros((2,) * 20), Odd(), Lying(), Lying(data=None),
    iter([]), iter([X]), iter([X, None]), (lambda: [X]), lambda: 3, range(3), slice(3),
    gnomon.operator(2, 8), gnomon.operator(2, 8).T,
]

CALLS = {
    "sketch": lambda a, b, **k: gnomon.sketch(a, b, **k),
    "adjoint": lambda a, b, **k: gnomon.adjoint(a, b, **k),
    "operator": lambda a, b, **k: gnomon.operator(a, b, **k)[0, :3],
    "distortion": lambda a, b, **k: gnomon.distortion(a, b, **k),
    "min_dim": lambda a, b, **k: gnomon.min_dim(a, b, **k),
    "neighbors": lambda a, b, **k: gnomon.neighbors(X, a, b, **k),
    "join": lambda a, b, **k: gnomon.join(a, radius=b, max_pairs=1000, **k),
    "matmul": lambda a, b, **k: gnomon.matmul(a, b, **k),
    "build": lambda a, b, **k: gnomon.Index.build(a, width=b, tables=2, coarse=2, **k),
    "rabitq": lambda a, b, **k: gnomon.RaBitQIndex.build(a, bits=b, **k),
    "rabitq query": lambda a, b, **k: gnomon.RaBitQIndex.build(X, bits=2).kneighbors(a, b, **k),
    "rabitq estimate": lambda a, b, **k: gnomon.RaBitQIndex.build(X, bits=2).estimate(a, failure=b, **k),
    "sketcher": lambda a, b, **k: gnomon.Sketcher(gnomon.operator(2, 8), mergeable=True, **k).push(a, b),
    "block": lambda a, b, **k: gnomon.operator(4, 8)[a, b],
}
if gnomon.svd_missing() is None:
    CALLS["svd"] = lambda a, b, **k: gnomon.svd(a, b, **k)
    CALLS["hosvd"] = lambda a, b, **k: gnomon.hosvd(a, b, **k)
    CALLS["lstsq"] = lambda a, b, **k: gnomon.lstsq(a, b, **k)

ALLOWED = (ValueError, TypeError, IndexError, MemoryError, OverflowError, gnomon.DeviceError, AttributeError)

KEYWORDS = {
    "sketch": ["kind", "random_state", "out", "dtype", "n_jobs", "device", "density"],
    "adjoint": ["out", "dtype", "n_jobs"],
    "operator": ["kind", "random_state", "inner", "precision", "scaling", "density", "nonzeros", "blocks", "zeta", "width"],
    "distortion": ["eps", "max_pairs", "random_state"],
    "min_dim": ["bound", "delta"],
    "neighbors": ["radius", "metric", "allowed"],
    "join": ["metric", "recall", "method", "random_state", "Y"],
    "matmul": ["alpha", "beta", "out"],
    "build": ["metric", "family", "fine", "sides", "centres", "codes", "probes", "kind"],
    "rabitq": ["metric", "codes_only", "random_state", "n_jobs"],
    "rabitq query": ["recall", "rerank", "allowed"],
    "sketcher": ["axis", "dtype"],
    "svd": ["n_oversamples", "n_iter", "tol", "dtype", "n_test_vectors", "test_power", "kind"],
    "hosvd": ["tol", "n_oversamples", "n_iter", "dtype", "kind"],
    "lstsq": ["damp", "tol", "max_iter", "rcond", "sketch_size", "dtype", "n_test_vectors"],
}
FITTING = {"sketch": (X, 4), "adjoint": (X[:, :2], gnomon.operator(2, 8)), "operator": (4, 8), "distortion": (X, X),
           "min_dim": (100, 0.1), "neighbors": (X, 3), "join": (X, 1.0), "matmul": (X.astype("f4"), X.astype("f4").T),
           "build": (X, 4.0), "rabitq": (X, 3), "rabitq query": (X, 3), "rabitq estimate": (X, 0.1), "sketcher": (X, 0), "svd": (X, 3), "hosvd": (X, 2), "lstsq": (X, X[:, 0]), "block": (0, 0)}


def attempt(call, *arguments, **keywords):
    """True when it was refused."""
    try:
        call(*arguments, **keywords)
    except ALLOWED as error:
        assert str(error) or isinstance(error, (TypeError, MemoryError)), type(error)
        return True
    return False


def sized(value):
    """What would be an answer of that size, which this test does not wait for."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 << 20 < value < 1 << 63


@pytest.mark.parametrize("name", CALLS)
def test_positional(name):
    first, second = FITTING[name]
    refused = 0
    with gnomon.config_context(memory_limit=1 << 24, n_jobs=2):
        for value in VALUES:
            if not (name == "lstsq" and callable(value)):
                refused += attempt(CALLS[name], value, second)
            if not sized(value):
                refused += attempt(CALLS[name], first, value)
        for a, b in itertools.product(VALUES[::3], VALUES[::4]):
            if not sized(b):
                refused += attempt(CALLS[name], a, b)
    assert refused > 100
    CALLS[name](first, second)


@pytest.mark.parametrize("name, keyword", [(name, keyword) for name, keywords in KEYWORDS.items() if name in CALLS
                                           for keyword in keywords])
def test_keywords(name, keyword):
    first, second = FITTING[name]
    refused = 0
    for value in VALUES:
        if sized(value) and keyword not in ("random_state", "max_pairs"):
            continue
        refused += attempt(CALLS[name], first, second, **{keyword: value})
    assert refused > 0
    CALLS[name](first, second)


def test_exceptions_in_the_middle_of_nothing():
    class Breaks:
        @property
        def __array_interface__(self):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError):
        gnomon.sketch(Breaks(), 4)
    assert gnomon.sketch(X, 4).shape == (30, 4)
