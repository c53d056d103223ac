"""Indexes for approximate nearest neighbours by locality-sensitive hashing."""
from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _abi
from ._arrays import ArrayLike, Points, integer, real, seed_of
from ._context import Context, Progress, at_death, destroy, lease, open_file, owned_context
from ._library import lib
from ._operator import make_descriptor
from ._pickle import opened, saved
from ._search import Neighbors, metric_info, metric_points, neighbors, search_options, take_neighbors

_NAMES = {"options.functions.seed": "random_state", "guarantee.k": "n_neighbors", "guarantee.seed": "random_state",
          "guarantee.queries": "n_queries", "options.k": "n_neighbors", "k": "n_neighbors", "points": "X"}


class Tuning(NamedTuple):
    """What `Index.tune` found.

    ``recall`` was measured by ``tested`` queries; the true mean is above ``bound`` with the confidence asked for.
    ``reason`` tells why the search is exact, ``""`` where it is not.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> found = gnomon.Index.tune(X, 5).tuning
    >>> found.exact, found.tested
    (True, 0)
    """

    exact: bool
    reason: str
    recall: float
    bound: float
    tested: int
    trials: list[dict[str, Any]]


def families(metric: str) -> list[str]:
    """The families of hash functions for a metric, the usual one first.

    Parameters
    ----------
    metric : str

    Returns
    -------
    list of str

    Examples
    --------
    >>> import gnomon
    >>> gnomon.families("cosine")
    ['simhash', 'cross-polytope', 'spherical-k-means']
    """
    info, found = metric_info(metric), []
    for index in range(_abi.GNOMON_METRIC_FAMILIES):
        family = lib.gnomon_metric_family(info.metric, index)
        if family == 0:
            break
        found.append(lib.gnomon_lsh_family_name(family).decode())
    return found


def _family(name: Optional[str], metric: str) -> int:
    known = families(metric)
    if name is None:
        if not known:
            raise ValueError(f"metric is {metric!r}, for which there are no hash functions")
        name = known[0]
    if name not in known:
        raise ValueError(f"family is {name!r}; for the metric {metric} it must be one of "
                         f"{', '.join(map(repr, known)) or 'none: there are no hash functions for it'}")
    number: int = lib.gnomon_lsh_family_from_name(name.encode())
    return number


_TRAINED = (_abi.GNOMON_LSH_KMEANS, _abi.GNOMON_LSH_SPHERICAL_KMEANS)


def _train(context: Context, functions: Any, x: Points, seed: int, centres: Optional[int]) -> np.ndarray:
    """Trains centres, which the functions then point at: they live as long as what is returned."""
    if x.sparse:
        raise ValueError("X is sparse; k-means takes dense points")
    count = max(2, round(x.shape[0] ** 0.5)) if centres is None else integer(centres, "centres", 2)
    numbers = np.empty((count, x.shape[1]), np.float32)
    where = numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    status = lib.gnomon_lsh_train(context.handle, functions.family, ctypes.byref(x.view), count, seed, where)
    if status:
        context.fail(status, {**_NAMES, "count": "centres"})
    functions.centre_count, functions.centres = count, where
    return numbers


class Index:
    """Tables of hashed points, or inverted lists (IVF), for approximate nearest neighbours.

    Made by `Index.tune` (a recall that is guaranteed), `Index.build` (parameters that are given) or `Index.open` (a file).
    The index keeps views of dense points, not copies: the arrays must not be changed while it lives. Any number of
    threads may query one index. Points have ids from 0 in the order in which they were added.

    Attributes
    ----------
    metric : str
    exact : bool
        True where `tune` found that exact search is faster or that no index meets the guarantee: queries are then
        answered exactly.
    tuning : Tuning or None
        What `tune` found.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
    >>> index = gnomon.Index.build(X, tables=8, coarse=6, width=4.0)
    >>> len(index)
    2000
    >>> distances, indices, *_ = index.kneighbors(X[:3], 1)
    >>> indices.ravel().tolist()
    [0, 1, 2]
    """

    metric: str
    tuning: Optional[Tuning]
    _context: Context
    _handle: Optional[ctypes.c_void_p]
    _kept: list[Points]
    _exact: ArrayLike

    def __init__(self) -> None:
        raise TypeError("an Index is made by Index.build, Index.tune or Index.open")

    @classmethod
    def _new(cls, metric: str, context: Context, handle: Optional[ctypes.c_void_p]) -> "Index":
        self = cls.__new__(cls)
        self.metric, self._context, self._handle = metric, context, handle
        if handle is not None:
            at_death(self, destroy, lib.gnomon_lsh_destroy, handle, context)
        self._kept, self._exact, self.tuning = [], None, None
        return self

    @classmethod
    def build(cls, X: ArrayLike, *, metric: str = "l2", family: Optional[str] = None, tables: Optional[int] = None,
              coarse: Optional[int] = None, fine: int = 0, width: Optional[float] = None, sides: Optional[int] = None,
              centres: Optional[int] = None, codes: int = 0, probes: int = 0, rerank: int = 0, random_state: Any = 0,
              n_jobs: Optional[int] = None, device: Optional[str] = None, **parameters: Any) -> "Index":
        """Makes an index with given parameters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        metric : {"l2", "cosine", "hamming", "jaccard", "l1", "weighted-jaccard"}
        family : str, optional
            One of `families` of the metric.
        tables : int, optional
            From 1 to 4096, default 16.
        coarse, fine : int, optional
            Functions that a table's buckets are made by, from 1 to 256, default 12, and by which they are cut further.
        width : float
            For l2 and l1: of a bucket, in units of the points.
        sides : int, optional
            Cross-polytope: directions, default 16.
        centres : int, optional
            K-means and spherical-k-means (IVF): how many lists the points are cut into, by the nearest of so many centres
            that are trained on them; default the root of the number of points. Such an index has one table, and no codes.
        codes : int
            L2 and cosine: bytes of a point's code, by which candidates are ordered; 0: none.
        probes, rerank : int
            What queries do that say nothing: buckets beside each table's own, over all tables (of k-means: lists beside
            the nearest, one less than nprobe); and of how many candidates distances are computed (0: all; needs codes).
        random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        n_jobs, device
            As for `set_config`.
        **parameters
            ``kind`` of the operator that makes the directions, and its parameters: see `Operator`.

        Returns
        -------
        Index
        """
        info = metric_info(metric)
        metric = info.name.decode()
        x = metric_points(X, "X", info)
        options = _abi.gnomon_lsh_options()
        lib.gnomon_lsh_options_init(ctypes.byref(options), ctypes.sizeof(options))
        lib.gnomon_lsh_functions_init(ctypes.byref(options.functions), ctypes.sizeof(options.functions))
        lib.gnomon_lsh_search_params_init(ctypes.byref(options.search_params), ctypes.sizeof(options.search_params))
        seed = seed_of(random_state)
        options.metric, options.functions.family = info.metric, _family(family, metric)
        options.functions.dim, options.functions.seed = x.shape[1], seed
        if width is not None:
            options.functions.width = real(width, "width")
        if sides is not None:
            options.functions.sides = integer(sides, "sides", 1)
        if parameters:
            kind = parameters.pop("kind", "gaussian")
            descriptor = make_descriptor(kind, seed, **parameters)
            options.functions.descriptor = ctypes.pointer(descriptor)
        context, handle = owned_context(n_jobs, device), ctypes.c_void_p()
        trained = options.functions.family in _TRAINED
        if trained:
            numbers = _train(context, options.functions, x, seed, centres)
        elif centres is not None:
            raise ValueError(f"centres is {centres!r}; only k-means and spherical-k-means have any")
        options.tables = integer((1 if trained else 16) if tables is None else tables, "tables", 1)
        options.coarse = integer((1 if trained else 12) if coarse is None else coarse, "coarse", 1)
        options.fine, options.codes = integer(fine, "fine"), integer(codes, "codes")
        options.search_params.probes = integer(probes, "probes")
        options.search_params.rerank = integer(rerank, "rerank")
        status = lib.gnomon_lsh_create(context.handle, ctypes.byref(options), ctypes.byref(handle))
        if status:
            context.fail(status, _NAMES)
        self = cls._new(metric, context, handle)
        self._add(x)
        return self

    @classmethod
    def tune(cls, X: ArrayLike, n_neighbors: Optional[int] = None, *, radius: Optional[float] = None,
             recall: float = 0.9, confidence: float = 0.95, metric: str = "l2", queries: Optional[ArrayLike] = None,
             family: Optional[str] = None, memory: int = 0, n_queries: int = 1000, uses: int = 0, always: bool = False,
             random_state: Any = 0, n_jobs: Optional[int] = None, progress: Progress = None) -> "Index":
        """Chooses the parameters so that queries find a share of their true neighbours that is guaranteed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        n_neighbors : int, optional
            The neighbours that queries will ask for; default 10 when no radius is given.
        radius : float, optional
            The radius that they will ask for.
        recall : float
            The share of the true neighbours that is found, averaged over queries, above 0 and below 1.
        confidence : float
            Of the guarantee, above 0.5 and below 1.
        metric : str
        queries : array-like or sparse matrix of shape (n_queries, n_features), optional
            Of the kind that will be asked. Default: points themselves, each without itself.
        family : str, optional
            Only this one of `families`.
        memory : int
            Bytes that the index may take beside the points; 0: as many as the points take.
        n_queries : int
            That the guarantee is tested by, at most.
        uses : int
            Queries that the index will answer: tuning and building are then part of its cost. 0: an index that stays.
        always : bool
            Make an index also where exact search is expected to be faster.
        random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        n_jobs, progress
            As for `set_config`.

        Returns
        -------
        Index
            With ``tuning``. ``exact`` is True where no index meets the guarantee, or exact search is faster.

        Examples
        --------
        >>> import gnomon, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(50, 16)).repeat(100, 0) + 0.1 * rng.normal(size=(5000, 16))
        >>> index = gnomon.Index.tune(X, 5, recall=0.9, always=True)
        >>> index.exact, index.tuning.bound >= 0.9
        (False, True)
        """
        info = metric_info(metric)
        metric = info.name.decode()
        if n_neighbors is None and radius is None:
            n_neighbors = 10
        if n_neighbors is not None and radius is not None:
            raise ValueError("n_neighbors and radius are both given; one of them must be")
        x = metric_points(X, "X", info)
        asked = None if queries is None else metric_points(queries, "queries", info)
        wanted = _abi.gnomon_lsh_guarantee()
        lib.gnomon_lsh_guarantee_init(ctypes.byref(wanted), ctypes.sizeof(wanted))
        wanted.metric, wanted.recall, wanted.confidence = info.metric, real(recall, "recall"), real(confidence,
                                                                                                   "confidence")
        if radius is not None:
            wanted.radius = real(radius, "radius")
        else:
            wanted.k = integer(n_neighbors, "n_neighbors", 1)
        wanted.memory, wanted.queries = integer(memory, "memory"), integer(n_queries, "n_queries")
        wanted.seed, wanted.slower, wanted.uses = seed_of(random_state), int(bool(always)), integer(uses, "uses")
        if family is not None:
            wanted.family = _family(family, metric)
        context, handle = owned_context(n_jobs), ctypes.c_void_p()
        tuning = _abi.gnomon_lsh_tuning(struct_size=ctypes.sizeof(_abi.gnomon_lsh_tuning))
        function = lib.gnomon_lsh_tune_csr if x.sparse else lib.gnomon_lsh_tune
        with lease.of(context, _NAMES, progress) as ctx:
            ctx.call(function, ctypes.byref(wanted), ctypes.byref(x.view),
                     None if asked is None else ctypes.byref(asked.view), ctypes.byref(handle), ctypes.byref(tuning))
        self = cls._new(metric, context, handle if handle.value else None)
        self._kept.append(x)
        self.tuning = Tuning(bool(tuning.exact), tuning.reason.decode(), tuning.recall, tuning.bound, tuning.tested,
                             [_trial(tuning.trials[i]) for i in range(tuning.trial_count)])
        lib.gnomon_lsh_tuning_free(context.handle, ctypes.byref(tuning))
        if self._handle is None:
            self._exact = X
        return self

    @classmethod
    def open(cls, path: Any, *, n_jobs: Optional[int] = None) -> "Index":
        """Opens an index's file. It is mapped, so that opening reads the tables alone and processes share one copy.

        Parameters
        ----------
        path : str or os.PathLike
        n_jobs
            As for `set_config`.

        Returns
        -------
        Index
            Like any other: it may be queried, added to, thinned and saved. What changes is held in memory.
        """
        context, handle = open_file(lib.gnomon_lsh_open, path, n_jobs)
        self = cls._new("", context, handle)
        self.metric = lib.gnomon_metric_name(self._info().options.metric).decode()
        return self

    @property
    def exact(self) -> bool:
        return self._handle is None

    def _live(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ValueError("the search is exact: there is no index (Index.tune(..., always=True) makes one)")
        return self._handle

    def _info(self) -> Any:
        found = _abi.gnomon_lsh_info(struct_size=ctypes.sizeof(_abi.gnomon_lsh_info))
        lib.gnomon_lsh_describe(self._live(), ctypes.byref(found))
        return found

    @property
    def info(self) -> dict[str, Any]:
        """What the index is: its parameters, points, removed points, buckets and bytes.

        Returns
        -------
        dict
        """
        if self._handle is None:
            return {"metric": self.metric, "exact": True, "points": len(self), "removed": 0}
        found = self._info()
        options = found.options
        functions = options.functions
        return {"metric": self.metric, "exact": False,
                "family": lib.gnomon_lsh_family_name(functions.family).decode(), "dim": functions.dim,
                "tables": options.tables, "coarse": options.coarse, "fine": options.fine, "width": functions.width,
                "sides": functions.sides, "centres": functions.centre_count, "codes": options.codes, "seed": functions.seed,
                "probes": options.search_params.probes, "points": found.points, "removed": found.removed,
                "buckets": found.buckets, "largest": found.largest, "table_bytes": found.table_bytes,
                "code_bytes": found.code_bytes, "other_bytes": found.other_bytes}

    def __len__(self) -> int:
        if self._handle is None:
            return self._kept[0].shape[0]
        found = self._info()
        size: int = found.points - found.removed
        return size

    def __repr__(self) -> str:
        return f"<gnomon.Index of {len(self)} points, {self.metric}{', exact' if self.exact else ''}>"

    def _change(self, status: int) -> None:
        watch = self._context.watch
        if status == _abi.GNOMON_ERROR_BUSY:
            from ._errors import BusyError
            raise BusyError((lib.gnomon_last_error(None) or b"another call changes the index").decode())
        if status or watch.error is not None:
            self._context.fail(status, _NAMES)

    def _add(self, x: Points) -> None:
        function = lib.gnomon_lsh_add_csr if x.sparse else lib.gnomon_lsh_add
        self._change(function(self._live(), ctypes.byref(x.view)))
        self._kept.append(x)

    def add(self, X: ArrayLike) -> None:
        """Adds points, whose ids go on from those before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        self._live()
        self._add(metric_points(X, "X", metric_info(self.metric)))

    def remove(self, ids: ArrayLike) -> None:
        """Removes points by id; the other ids stay as they are.

        Parameters
        ----------
        ids : int or array-like of int
        """
        given = np.atleast_1d(np.asarray(ids))
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError("ids must be integers in one dimension")
        exact = np.ascontiguousarray(given, dtype=np.int64)
        self._change(lib.gnomon_lsh_remove(self._live(), exact.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
                                           len(exact)))

    def compact(self) -> None:
        """Drops removed points from the tables, so that queries no longer pass over them."""
        self._change(lib.gnomon_lsh_compact(self._live()))

    def kneighbors(self, X: ArrayLike, n_neighbors: int = 5, *, probes: Optional[int] = None,
                   candidates: Optional[int] = None, rerank: Optional[int] = None, allowed: Optional[ArrayLike] = None,
                   n_jobs: Optional[int] = None, progress: Progress = None) -> Neighbors:
        """For each query the nearest of its candidates, by exact distances.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
        n_neighbors : int
        probes, candidates, rerank : int, optional
            How far to look, in place of what the index has: buckets beside each table's own; candidates at most; of how
            many of them distances are computed.
        allowed : array-like of bool, optional
            Only these points may be answers.
        n_jobs, progress
            As for `set_config`.

        Returns
        -------
        Neighbors
            Of shape (n_queries, n_neighbors).
        """
        return self._query(X, n_neighbors, None, probes, candidates, rerank, allowed, n_jobs, progress)

    def radius_neighbors(self, X: ArrayLike, radius: float, *, probes: Optional[int] = None,
                         candidates: Optional[int] = None, allowed: Optional[ArrayLike] = None,
                         n_jobs: Optional[int] = None, progress: Progress = None) -> Neighbors:
        """For each query those of its candidates that are within the radius.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)
        radius : float
            Inclusive.
        probes, candidates, allowed, n_jobs, progress
            As for `kneighbors`.

        Returns
        -------
        Neighbors
            Flat, with ``indptr``.
        """
        return self._query(X, None, radius, probes, candidates, None, allowed, n_jobs, progress)

    def _query(self, X: ArrayLike, n_neighbors: Optional[int], radius: Optional[float], probes: Optional[int],
               candidates: Optional[int], rerank: Optional[int], allowed: Optional[ArrayLike], n_jobs: Optional[int],
               progress: Progress) -> Neighbors:
        if self._handle is None:
            return neighbors(self._exact, X, n_neighbors, radius=radius, metric=self.metric, allowed=allowed,
                             n_jobs=n_jobs, progress=progress)
        info = metric_info(self.metric)
        x = metric_points(X, "X", info)
        options, kept = search_options(info, n_neighbors, radius, -1, allowed)
        params = None
        if probes is not None or candidates is not None or rerank is not None:
            params = _abi.gnomon_lsh_search_params.from_buffer_copy(self._info().options.search_params)
            params.struct_size = ctypes.sizeof(params)
            for name, value in (("probes", probes), ("candidates", candidates), ("rerank", rerank)):
                if value is not None:
                    setattr(params, name, integer(value, name))
        found = _abi.gnomon_neighbors(struct_size=ctypes.sizeof(_abi.gnomon_neighbors))
        function = lib.gnomon_lsh_query_csr if x.sparse else lib.gnomon_lsh_query
        with lease({**_NAMES, "queries": "X"}, n_jobs, None, progress) as ctx:
            ctx.call(function, self._handle, ctypes.byref(x.view), ctypes.byref(options),
                     None if params is None else ctypes.byref(params), ctypes.byref(found), None)
            return take_neighbors(ctx, found)

    def save(self, path: Any, *, progress: Progress = None) -> None:
        """Writes the index with its points to one file; the file is the old one or the whole new one.

        Parameters
        ----------
        path : str or os.PathLike
        progress
            As for `set_config`.

        Examples
        --------
        >>> import gnomon, numpy as np, os, tempfile
        >>> X = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
        >>> index = gnomon.Index.build(X, tables=4, coarse=4, width=4.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "points.gnomon")
        ...     index.save(path)
        ...     found = gnomon.Index.open(path).kneighbors(X[:2], 1)
        >>> found.indices.ravel().tolist()
        [0, 1]
        """
        with lease({}, None, None, progress) as ctx:
            ctx.call(lib.gnomon_lsh_save, self._live(), os.fsencode(path))

    def __reduce__(self) -> Any:
        return _restore, (saved(self.save),)


def _restore(data: bytes) -> Index:
    return opened(data, Index.open)


def _trial(trial: Any) -> dict[str, Any]:
    found = {field[0]: getattr(trial, field[0]) for field in _abi.gnomon_lsh_trial._fields_}
    found["family"] = lib.gnomon_lsh_family_name(trial.family).decode()
    return found
