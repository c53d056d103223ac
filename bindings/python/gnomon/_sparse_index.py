"""Inverted indexes of sparse points, whose answers are exact."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Optional

import numpy as np

from . import _abi
from ._arrays import ArrayLike, Points
from ._context import Context, Progress, at_death, destroy, lease, open_file, owned_context
from ._library import lib
from ._pickle import opened, saved
from ._search import Neighbors, metric_info, metric_points, search_options, take_neighbors

_NAMES = {"options.k": "n_neighbors", "k": "n_neighbors", "points": "X", "queries": "X"}


def _rows(X: ArrayLike, metric: str) -> Points:
    """Sparse points."""
    x = metric_points(X, "X", metric_info(metric))
    if not x.sparse:
        raise TypeError("X is dense; a SparseIndex takes sparse rows: scipy.sparse.csr_matrix makes them")
    return x


class SparseIndex:
    """An inverted index of sparse points, in memory or in a mapped file: the answers of exact search.

    Made by `SparseIndex.build` (points) or `SparseIndex.open` (a file, also one of ``gnomon index build``). It never changes:
    `save` writes a changed copy. Any number of threads may query one index. Points have ids from 0 in their order.

    Attributes
    ----------
    metric : str

    Examples
    --------
    >>> import gnomon, scipy.sparse
    >>> X = scipy.sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    >>> index = gnomon.SparseIndex.build(X, metric="cosine")
    >>> index.kneighbors(X[:1], 2).indices.tolist()
    [[0, 1]]
    """

    metric: str
    _context: Context
    _handle: ctypes.c_void_p

    def __init__(self) -> None:
        raise TypeError("a SparseIndex is made by SparseIndex.build or SparseIndex.open")

    @classmethod
    def _new(cls, context: Context, handle: ctypes.c_void_p) -> "SparseIndex":
        self = cls.__new__(cls)
        self._context, self._handle = context, handle
        at_death(self, destroy, lib.gnomon_sparse_index_destroy, handle, context)
        self.metric = lib.gnomon_metric_name(self._info().metric).decode()
        return self

    @classmethod
    def build(cls, X: ArrayLike, *, metric: str = "cosine", n_jobs: Optional[int] = None) -> "SparseIndex":
        """Makes an index in memory, which copies the points.

        Parameters
        ----------
        X : sparse matrix of shape (n_samples, n_features)
        metric : {"cosine", "ip", "l2", "l1"}
        n_jobs
            As for `set_config`.

        Returns
        -------
        SparseIndex
        """
        x = _rows(X, metric)
        context, handle = owned_context(n_jobs), ctypes.c_void_p()
        status = lib.gnomon_sparse_index_create(context.handle, metric_info(metric).metric, ctypes.byref(x.view),
                                                ctypes.byref(handle))
        if status:
            context.fail(status, _NAMES)
        return cls._new(context, handle)

    @classmethod
    def open(cls, path: Any, *, n_jobs: Optional[int] = None) -> "SparseIndex":
        """Opens an index's file. It is mapped: queries read what they need, and processes share one copy.

        Parameters
        ----------
        path : str or os.PathLike
        n_jobs
            As for `set_config`.

        Returns
        -------
        SparseIndex
        """
        context, handle = open_file(lib.gnomon_sparse_index_open, path, n_jobs)
        return cls._new(context, handle)

    def _info(self) -> Any:
        found = _abi.gnomon_sparse_index_info(struct_size=ctypes.sizeof(_abi.gnomon_sparse_index_info))
        lib.gnomon_sparse_index_describe(self._handle, ctypes.byref(found))
        return found

    @property
    def info(self) -> dict[str, Any]:
        """What the index is: metric, points, removed points, nonzeros, columns and bytes.

        Returns
        -------
        dict
        """
        found = self._info()
        names = [field[0] for field in found._fields_ if field[0] not in ("struct_size", "metric")]
        return {"metric": self.metric, **{name: getattr(found, name) for name in names}}

    def __len__(self) -> int:
        found = self._info()
        size: int = found.points - found.removed
        return size

    def __repr__(self) -> str:
        return f"<gnomon.SparseIndex of {len(self)} points, {self.metric}>"

    def kneighbors(self, X: ArrayLike, n_neighbors: int = 5, *, allowed: Optional[ArrayLike] = None,
                   n_jobs: Optional[int] = None, progress: Progress = None) -> Neighbors:
        """For each query the nearest points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
        n_neighbors : int
        allowed : array-like of bool, optional
            Only these points may be answers.
        n_jobs, progress
            As for `set_config`.

        Returns
        -------
        Neighbors
            Of shape (n_queries, n_neighbors).
        """
        return self._query(X, n_neighbors, None, allowed, n_jobs, progress)

    def radius_neighbors(self, X: ArrayLike, radius: float, *, allowed: Optional[ArrayLike] = None,
                         n_jobs: Optional[int] = None, progress: Progress = None) -> Neighbors:
        """For each query all points within the radius; for ip all of at least this product.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
        radius : float
            Inclusive.
        allowed, n_jobs, progress
            As for `kneighbors`.

        Returns
        -------
        Neighbors
            Flat, with ``indptr``.
        """
        return self._query(X, None, radius, allowed, n_jobs, progress)

    def _query(self, X: ArrayLike, n_neighbors: Optional[int], radius: Optional[float], allowed: Optional[ArrayLike],
               n_jobs: Optional[int], progress: Progress) -> Neighbors:
        info = metric_info(self.metric)
        x = metric_points(X, "X", info)
        options, kept = search_options(info, n_neighbors, radius, -1, allowed)
        found = _abi.gnomon_neighbors(struct_size=ctypes.sizeof(_abi.gnomon_neighbors))
        function = lib.gnomon_sparse_index_query_csr if x.sparse else lib.gnomon_sparse_index_query
        with lease(_NAMES, n_jobs, None, progress) as ctx:
            ctx.call(function, self._handle, ctypes.byref(x.view), ctypes.byref(options), ctypes.byref(found))
            return take_neighbors(ctx, found)

    def save(self, path: Any, *, add: Optional[ArrayLike] = None, remove: Optional[ArrayLike] = None,
             compact: bool = False, progress: Progress = None) -> None:
        """Writes the index, or a changed copy, to a file; the file is the old one or the whole new one.

        Parameters
        ----------
        path : str or os.PathLike
            May be the file that the index was opened from: this index goes on with the old points.
        add : sparse matrix of shape (n_samples, n_features), optional
            More points, whose ids go on from those before.
        remove : int or array-like of int, optional
            Ids of points that queries no longer find; the other ids stay as they are.
        compact : bool
            The file no longer contains the coordinates of points that were removed before.
        progress
            As for `set_config`.

        Examples
        --------
        >>> import gnomon, os, scipy.sparse, tempfile
        >>> X = scipy.sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
        >>> index = gnomon.SparseIndex.build(X, metric="ip")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "points.gnx")
        ...     index.save(path, add=X[:1], remove=0)
        ...     found = gnomon.SparseIndex.open(path).kneighbors(X[:1], 1)
        >>> found.indices.ravel().tolist()
        [3]
        """
        x = None if add is None else _rows(add, self.metric)
        ids = np.atleast_1d(np.asarray([] if remove is None else remove))
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ValueError("remove must be integers in one dimension")
        exact, builder = np.ascontiguousarray(ids, dtype=np.int64), ctypes.c_void_p()
        with lease({**_NAMES, "points": "add", "ids": "remove"}, None, None, progress) as ctx:
            ctx.call(lib.gnomon_sparse_builder_extend, self._handle, os.fsencode(path), int(bool(compact)),
                     ctypes.byref(builder))
            status = 0
            if x is not None:
                status = lib.gnomon_sparse_builder_add_csr(builder, ctypes.byref(x.view))
            if not status and len(exact):
                status = lib.gnomon_sparse_builder_remove(
                    builder, exact.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)), len(exact))
            if not status:
                status = lib.gnomon_sparse_builder_finish(builder)
                builder.value = None
            if status:
                try:
                    ctx.context.fail(status, ctx.names)
                finally:
                    lib.gnomon_sparse_builder_abort(builder)

    def __reduce__(self) -> Any:
        return _restore, (saved(self.save),)


def _restore(data: bytes) -> SparseIndex:
    return opened(data, SparseIndex.open)
