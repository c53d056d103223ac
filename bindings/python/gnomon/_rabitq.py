"""Codes of a few bits a coordinate, and nearest neighbours by them."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

import numpy as np

from . import _abi
from ._arrays import ArrayLike, Dense, Points, integer, real, seed_of
from ._context import Context, Progress, at_death, destroy, lease, open_file, owned_context
from ._library import lib
from ._pickle import opened, saved
from ._search import Neighbors, metric_info, metric_points, search_options, take_neighbors

_NAMES = {"options.k": "n_neighbors", "k": "n_neighbors", "points": "X", "queries": "X", "options.bits": "bits",
          "params.recall": "recall", "params.rerank": "rerank", "params": "recall", "options.metric": "metric"}


def _rows(X: ArrayLike, metric: str) -> Points:
    """Dense points."""
    x = metric_points(X, "X", metric_info(metric))
    if x.sparse:
        raise TypeError("X is sparse; a RaBitQIndex takes dense arrays: use X.toarray()")
    return x


class RaBitQIndex:
    """RaBitQ codes of 1 to 8 bits a coordinate: all are scanned, and the distances of the nearest are computed.

    Made by `RaBitQIndex.build` (points) or `RaBitQIndex.open` (a file, also one of ``gnomon index build --rabitq``). It
    keeps a view of the points, not a copy, unless ``codes_only``: the array must not be changed while it lives. It never
    changes; any number of threads may query one index. Points have ids from 0 in their order.

    Attributes
    ----------
    metric : str

    References
    ----------
    J. Gao and C. Long, RaBitQ: quantizing high-dimensional vectors with a theoretical error bound for approximate nearest
    neighbor search, SIGMOD 2024. Codes, estimates and bounds: docs/reference/rabitq.md.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    >>> index = gnomon.RaBitQIndex.build(X, bits=4)
    >>> len(index), index.info["code_bytes"]
    (2000, 88000)
    >>> exact = index.kneighbors(X[:3], 10)
    >>> np.array_equal(exact.indices, gnomon.neighbors(X, X[:3], 10).indices)
    True
    >>> index.kneighbors(X[:3], 10, recall=0.9).indices.shape
    (3, 10)
    """

    metric: str
    _context: Context
    _handle: ctypes.c_void_p
    _kept: Optional[Points]

    def __init__(self) -> None:
        raise TypeError("a RaBitQIndex is made by RaBitQIndex.build or RaBitQIndex.open")

    @classmethod
    def _new(cls, context: Context, handle: ctypes.c_void_p, kept: Optional[Points]) -> "RaBitQIndex":
        self = cls.__new__(cls)
        self._context, self._handle, self._kept = context, handle, kept
        at_death(self, destroy, lib.gnomon_rabitq_destroy, handle, context)
        self.metric = lib.gnomon_metric_name(self._info().options.metric).decode()
        return self

    @classmethod
    def build(cls, X: ArrayLike, *, metric: str = "l2", bits: int = 4, codes_only: bool = False, random_state: Any = 0,
              n_jobs: Optional[int] = None) -> "RaBitQIndex":
        """Makes codes of points, on the CPU. They do not depend on the number of threads.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            From 1 to 2^32 - 2 points of at most 65,536 features.
        metric : {"l2", "cosine"}
        bits : int
            Of a coordinate's code, from 1 to 8. A point takes ``ceil(n_features / 16) * 2 * bits`` bytes and 12 more (8
            for one bit), with at least 32 features counted.
        codes_only : bool
            The points are not kept: queries are answered by estimates alone.
        random_state : int, numpy.random.Generator, numpy.random.RandomState or None
            Of the rotation.
        n_jobs
            As for `set_config`.

        Returns
        -------
        RaBitQIndex

        Raises
        ------
        ValueError
            For NaN or infinity, no points, or another metric.
        """
        x = _rows(X, metric)
        options = _abi.gnomon_rabitq_options()
        lib.gnomon_rabitq_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.metric, options.bits = metric_info(metric).metric, integer(bits, "bits", 1)
        options.seed, options.codes_only = seed_of(random_state), int(bool(codes_only))
        context, handle = owned_context(n_jobs, "cpu"), ctypes.c_void_p()
        status = lib.gnomon_rabitq_create(context.handle, ctypes.byref(options), ctypes.byref(x.view),
                                          ctypes.byref(handle))
        if status or context.watch.error is not None:
            context.fail(status, _NAMES)
        return cls._new(context, handle, None if codes_only else x)

    @classmethod
    def open(cls, path: Any, *, n_jobs: Optional[int] = None) -> "RaBitQIndex":
        """Opens a file. It is mapped: queries read what they need, and processes share one copy.

        Parameters
        ----------
        path : str or os.PathLike
        n_jobs
            As for `set_config`.

        Returns
        -------
        RaBitQIndex
        """
        context, handle = open_file(lib.gnomon_rabitq_open, path, n_jobs, "cpu")
        return cls._new(context, handle, None)

    def _info(self) -> Any:
        found = _abi.gnomon_rabitq_info(struct_size=ctypes.sizeof(_abi.gnomon_rabitq_info))
        lib.gnomon_rabitq_describe(self._handle, ctypes.byref(found))
        return found

    @property
    def info(self) -> dict[str, Any]:
        """What the index is: metric, bits, seed, whether it has codes alone, points, dim, and the bytes of all codes.

        Returns
        -------
        dict
        """
        found = self._info()
        options = found.options
        return {"metric": self.metric, "bits": options.bits, "seed": options.seed, "codes_only": bool(options.codes_only),
                "points": found.points, "dim": found.dim, "code_bytes": found.code_bytes}

    def __len__(self) -> int:
        size: int = self._info().points
        return size

    def __repr__(self) -> str:
        return f"<gnomon.RaBitQIndex of {len(self)} points, {self.metric}, {self._info().options.bits} bits>"

    def kneighbors(self, X: ArrayLike, n_neighbors: int = 5, *, recall: Optional[float] = None,
                   rerank: Optional[int] = None, allowed: Optional[ArrayLike] = None, n_jobs: Optional[int] = None,
                   progress: Progress = None) -> Neighbors:
        """For each query the nearest points.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        n_neighbors : int
        recall : float, optional
            Above 0, at most 1. 1, the default: the answers are those of `neighbors`, by a bound that always holds. Less:
            each neighbour is found with at least this probability by the law of uniformly drawn rotations, which the
            index's come near; it usually is more.
        rerank : int, optional
            In place of recall: the distances of so many points are computed, at least n_neighbors, the nearest by
            estimate, without a guarantee.
        allowed : array-like of bool, optional
            Only these points may be answers.
        n_jobs, progress
            As for `set_config`.

        Returns
        -------
        Neighbors
            Of shape (n_queries, n_neighbors). Of an index with ``codes_only``, which takes neither recall nor rerank,
            distances and their order are by estimates.
        """
        if recall is not None and rerank is not None:
            raise ValueError("recall and rerank are both given; one of them may be")
        x, params = _rows(X, self.metric), None
        options, kept = search_options(metric_info(self.metric), n_neighbors, None, -1, allowed)
        if recall is not None or rerank is not None:
            params = _abi.gnomon_rabitq_params()
            lib.gnomon_rabitq_params_init(ctypes.byref(params), ctypes.sizeof(params))
            if recall is not None:
                params.recall = real(recall, "recall")
            else:
                params.rerank = integer(rerank, "rerank", 1)
        found = _abi.gnomon_neighbors(struct_size=ctypes.sizeof(_abi.gnomon_neighbors))
        with lease(_NAMES, n_jobs, "cpu", progress) as ctx:
            ctx.call(lib.gnomon_rabitq_query, self._handle, ctypes.byref(x.view), ctypes.byref(options),
                     None if params is None else ctypes.byref(params), ctypes.byref(found))
            return take_neighbors(ctx, found)

    def estimate(self, X: ArrayLike, *, failure: float = 0.0, n_jobs: Optional[int] = None,
                 progress: Progress = None) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances of queries and all points from the codes, without bias over uniform rotations, and bounds.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        failure : float
            From 0 to below 1: each bound fails with at most this probability by the law of uniform rotations; 0: never.
        n_jobs, progress
            As for `set_config`.

        Returns
        -------
        estimates : ndarray of shape (n_queries, n_samples), float64
            Of ``|q - x|^2``; with cosine of points divided by their norms, which is ``2 (1 - cos)``.
        bounds : ndarray of the same shape
            On the difference between estimate and squared distance.

        Examples
        --------
        >>> import gnomon, numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 40))
        >>> estimates, bounds = gnomon.RaBitQIndex.build(X, bits=2).estimate(X[:2])
        >>> true = ((X[:2, None] - X) ** 2).sum(-1)
        >>> bool((abs(estimates - true) <= bounds).all())
        True
        """
        x = _rows(X, self.metric)
        shape = (x.shape[0], len(self))
        estimates, bounds = Dense(np.empty(shape), "estimates"), Dense(np.empty(shape), "bounds")
        with lease(_NAMES, n_jobs, "cpu", progress) as ctx:
            ctx.call(lib.gnomon_rabitq_estimate, self._handle, ctypes.byref(x.view), real(failure, "failure"),
                     ctypes.byref(estimates.view), ctypes.byref(bounds.view))
        return estimates.array, bounds.array

    def save(self, path: Any, *, progress: Progress = None) -> None:
        """Writes codes, and the points unless ``codes_only``, to one file; it is the old one or the whole new one.

        Parameters
        ----------
        path : str or os.PathLike
        progress
            As for `set_config`.

        Examples
        --------
        >>> import gnomon, numpy as np, os, tempfile
        >>> X = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "points.gnx")
        ...     gnomon.RaBitQIndex.build(X, bits=3).save(path)
        ...     found = gnomon.RaBitQIndex.open(path).kneighbors(X[:2], 1)
        >>> found.indices.ravel().tolist()
        [0, 1]
        """
        with lease({}, None, "cpu", progress) as ctx:
            ctx.call(lib.gnomon_rabitq_save, self._handle, os.fsencode(path))

    def __reduce__(self) -> Any:
        return _restore, (saved(self.save),)


def _restore(data: bytes) -> RaBitQIndex:
    return opened(data, RaBitQIndex.open)
