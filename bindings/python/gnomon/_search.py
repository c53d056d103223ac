"""Nearest neighbours, exactly, and similarity joins."""
from __future__ import annotations

import ctypes
from typing import Any, Iterator, NamedTuple, Optional, Union

import numpy as np

from . import _abi
from ._arrays import ArrayLike, Points, Result, anywhere, integer, points, real, seed_of
from ._context import Progress, configured_device, lease
from ._device import Placed, place
from ._library import lib

_NAMES = {"options.k": "n_neighbors", "k": "n_neighbors", "base": "X", "options.threshold": "radius",
          "threshold": "radius", "options.seed": "random_state", "p": "X", "q": "Y"}


def metrics() -> list[str]:
    """The names of the metrics. Other libraries' names for them (``"euclidean"``, ``"manhattan"``, ...) are taken too.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import gnomon
    >>> gnomon.metrics()
    ['l2', 'cosine', 'ip', 'hamming', 'jaccard', 'l1', 'weighted-jaccard']
    """
    return [info.name.decode() for info in _infos()]


def _infos() -> Iterator[Any]:
    index = 0
    while lib.gnomon_metric_at(index):
        yield lib.gnomon_metric_at(index).contents
        index += 1


def _table() -> dict[str, Any]:
    found = {}
    for info in _infos():
        found[info.name.decode()] = info
    for info in _infos():
        for alias in info.aliases.decode().split():
            found.setdefault(alias, info)
    return found


_METRICS = _table()


def metric_info(metric: Any) -> Any:
    """What the library knows of a metric of that name."""
    if not isinstance(metric, str):
        raise TypeError(f"metric must be a str, not {type(metric).__name__}")
    info = _METRICS.get(metric)
    if info is None:
        raise ValueError(f"metric is {metric!r}; it must be one of {', '.join(metrics())}")
    return info


def metric_points(x: ArrayLike, name: str, info: Any) -> Points:
    """Points in the host's memory that the metric takes."""
    checked = points(x, name)
    _check_layout(checked, name, info)
    return checked


def _metric_points_anywhere(x: ArrayLike, name: str, info: Any) -> Union[Points, Placed]:
    """The same where dense ones may lie in a GPU's memory too."""
    checked = anywhere(x, name)
    _check_layout(checked, name, info)
    return checked


def _check_layout(checked: Union[Points, Placed], name: str, info: Any) -> None:
    if checked.sparse and not info.points & _abi.GNOMON_POINTS_SPARSE:
        raise TypeError(f"{name} is sparse; the metric {info.name.decode()} takes dense arrays: use {name}.toarray()")
    if not checked.sparse and not info.points & (_abi.GNOMON_POINTS_DENSE | _abi.GNOMON_POINTS_BITS):
        raise TypeError(f"{name} is dense; the metric {info.name.decode()} takes sparse rows: "
                        "scipy.sparse.csr_matrix makes them")


class Neighbors(NamedTuple):
    """Neighbours of queries: ``distances, indices = neighbors(...)``.

    Of a number of neighbours both are arrays of shape (n_queries, n_neighbors). Of a radius both are one array of all,
    query i's at ``indptr[i]`` to ``indptr[i + 1]``. Each query's are in the order of (distance, index).

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> found = gnomon.neighbors(np.array([[0.0], [1.0], [5.0]]), np.array([[0.9], [4.0]]), radius=1.5)
    >>> found.indices.tolist(), found.indptr.tolist()
    ([1, 0, 2], [0, 2, 3])
    """

    distances: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_samples: int

    def split(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Distances and indices as lists with an array for each query."""
        at = self.indptr[1:-1]
        return np.split(self.distances.reshape(-1), at), np.split(self.indices.reshape(-1), at)

    def tocsr(self) -> Any:
        """A graph with the distances as weights; needs SciPy.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples)
        """
        from scipy.sparse import csr_matrix
        return csr_matrix((self.distances.reshape(-1), self.indices.reshape(-1), self.indptr),
                          shape=(len(self.indptr) - 1, self.n_samples))


def take_neighbors(ctx: lease, found: Any) -> Neighbors:
    """What a search allocated, as arrays."""
    result = Result(ctx.context, lib.gnomon_neighbors_free, found)
    offsets = result.array(found.offsets, (found.queries + 1,), np.int64)
    if found.offsets:
        total = int(offsets[-1])
    else:
        offsets, total = np.zeros(1, np.int64), 0
    shape = (found.queries, found.k) if found.k else (total,)
    return Neighbors(result.array(found.distances, shape, np.float64), result.array(found.ids, shape, np.int64),
                     offsets, found.base)


def search_options(info: Any, n_neighbors: Optional[int], radius: Optional[float], exclude: int = -1,
                   allowed: Optional[ArrayLike] = None) -> tuple[Any, Any]:
    """Options of a search, and what must live as long."""
    options = _abi.gnomon_search_options()
    lib.gnomon_search_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.metric, options.exclude = info.metric, exclude
    if (n_neighbors is None) == (radius is None):
        raise ValueError("n_neighbors and radius: one of them must be given" if radius is None else
                         "n_neighbors and radius are both given; one of them must be")
    if radius is not None:
        options.radius = real(radius, "radius")
    else:
        options.k = integer(n_neighbors, "n_neighbors", 1)
    bits = None
    if allowed is not None:
        mask = np.asarray(allowed)
        if mask.ndim != 1 or mask.dtype != np.bool_:
            raise ValueError(f"allowed must be a boolean array of one dimension, not of {mask.dtype} and {mask.ndim}")
        bits = np.packbits(mask, bitorder="little")
        options.filter = bits.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        options.filter_bits = len(mask)
        if not len(mask):  # NULL would allow all
            bits = np.zeros(1, np.uint8)
            options.filter = bits.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
    return options, bits


def neighbors(X: ArrayLike, queries: Optional[ArrayLike] = None, n_neighbors: Optional[int] = None, *,
              radius: Optional[float] = None, metric: str = "l2", allowed: Optional[ArrayLike] = None,
              n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None) -> Neighbors:
    """For each query the nearest points, or all within a radius; exactly.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The points. Dense or sparse for l2, cosine, ip, l1 and weighted-jaccard; of uint8, eight bits an element, for
        hamming; sparse for jaccard. Dense ones may lie in a GPU's memory, by PyTorch, ``__cuda_array_interface__`` or
        DLPack: the search then runs there, behind what their stream has to do, and copies none of them.
    queries : array-like or sparse matrix of shape (n_queries, n_features), optional
        Default: the points themselves, each without itself. With a metric that takes both layouts one of X and queries
        may be dense and the other sparse, both in the host's memory.
    n_neighbors : int, optional
        So many for each query; default 5 when no radius is given.
    radius : float, optional
        All within it, inclusive; for ip all of at least this product.
    metric : str
        One of `metrics`. Distances are not squared; cosine's is 1 - cos; ip's are the products, the largest first.
    allowed : array-like of bool, shape (n_samples,), optional
        Only these points may be answers.
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    Neighbors
        ``distances`` (float64) and ``indices`` (int64): both of shape (n_queries, n_neighbors), or with a radius flat
        with ``indptr``. NumPy's arrays, wherever the points lie.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    >>> distances, indices, *_ = gnomon.neighbors(X, [[0.9, 0.0]], 2)
    >>> indices
    array([[1, 0]])
    >>> gnomon.neighbors(X, radius=2).split()[1]
    [array([1]), array([0]), array([], dtype=int64)]
    """
    info = metric_info(metric)
    if n_neighbors is None and radius is None:
        n_neighbors = 5
    base = _metric_points_anywhere(X, "X", info)
    asked = base if queries is None else _metric_points_anywhere(queries, "queries", info)
    options, kept = search_options(info, n_neighbors, radius, 0 if queries is None else -1, allowed)
    found = _abi.gnomon_neighbors(struct_size=ctypes.sizeof(_abi.gnomon_neighbors))
    device, options.device_stream = place(device, configured_device(), base, asked)
    names = _NAMES if queries is not None else {**_NAMES, "queries": "X"}
    with lease(names, n_jobs, device, progress) as ctx:
        if base.sparse == asked.sparse:
            function = lib.gnomon_neighbors_exact_csr if base.sparse else lib.gnomon_neighbors_exact
            ctx.call(function, ctypes.byref(base.view), ctypes.byref(asked.view), ctypes.byref(options),
                     ctypes.byref(found))
        else:
            _search_sides(ctx, base, asked, options, found)
        return take_neighbors(ctx, found)


def _search_sides(ctx: lease, base: Any, asked: Any, options: Any, found: Any) -> None:
    """A search with one side dense and one sparse."""
    handle = ctypes.c_void_p()
    ctx.call(lib.gnomon_search_create_csr if asked.sparse else lib.gnomon_search_create, ctypes.byref(asked.view),
             ctypes.byref(options), ctypes.byref(handle))
    try:
        add = lib.gnomon_search_add_csr if base.sparse else lib.gnomon_search_add
        ctx.check(add(handle, ctypes.byref(base.view)))
        ctx.check(lib.gnomon_search_finish(handle, ctypes.byref(found)))
    finally:
        lib.gnomon_search_destroy(handle)


def _side(points: Any) -> Any:
    """Points as a side of a join."""
    view = ctypes.pointer(points.view)
    return _abi.gnomon_join_side(sparse=view) if points.sparse else _abi.gnomon_join_side(dense=view)


class Pairs(NamedTuple):
    """Pairs of a join in compressed rows: row i's are at ``indptr[i]`` to ``indptr[i + 1]`` of ``indices`` and
    ``distances``. What `join` returns where SciPy is not there.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> near = gnomon.Pairs(np.array([1.0, 1.0]), np.array([1, 0]), np.array([0, 1, 2]), (2, 2))
    >>> near.indices[near.indptr[1]:near.indptr[2]].tolist()
    [0]
    """

    distances: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]


class JoinInfo(NamedTuple):
    """What came of a join.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> graph, info = gnomon.join(np.array([[0.0], [1.0], [5.0]]), radius=2, return_info=True)
    >>> info.pairs, info.complete, info.method
    (1, True, 'exact')
    """

    pairs: int
    complete: bool
    method: str
    recall: float
    compared: int
    verified: int
    why: str


_METHODS = {"auto": _abi.GNOMON_JOIN_AUTO, "exact": _abi.GNOMON_JOIN_EXACT, "lsh": _abi.GNOMON_JOIN_LSH}


def join(X: ArrayLike, Y: Optional[ArrayLike] = None, *, radius: Optional[float] = None,
         similarity: Optional[float] = None, metric: str = "l2", recall: float = 1.0, method: str = "auto",
         symmetric: bool = True, max_pairs: Optional[int] = None, random_state: Any = 0, return_info: bool = False,
         n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None) -> Any:
    """Every pair of points within a radius, or a guaranteed share of these pairs.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples_x, n_features)
        As for `neighbors`.
    Y : array-like or sparse matrix of shape (n_samples_y, n_features), optional
        Pairs of a point of X with one of Y. Default: of two different points of X. One of X and Y may be dense and the
        other sparse, as for `neighbors`.
    radius : float
        The largest distance of a pair, inclusive; for ip the least product.
    similarity : float, optional
        Instead of radius, for cosine, jaccard and weighted-jaccard: the least similarity, inclusive.
    metric : str
        One of `metrics`.
    recall : float
        The share of the pairs that must be found, in (0, 1]. Default 1: all. Below, locality-sensitive hashing may be
        used, by which less than this share is found with probability 0.05 at most; no wrong pair is.
    method : {"auto", "exact", "lsh"}
    symmetric : bool
        Without Y: each pair is there twice, as (i, j) and (j, i), as ``DBSCAN(metric="precomputed")`` takes it. False:
        once, with i < j.
    max_pairs : int, optional
        End after so many pairs.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Of the hash functions.
    return_info : bool
        Also return a `JoinInfo`.
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n_samples_x, n_samples_y), or Pairs where SciPy is not there
        Distances in float64. Pairs at distance 0 are stored entries.
    info : JoinInfo
        With return_info.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    >>> graph, info = gnomon.join(X, radius=2, return_info=True)
    >>> graph.shape, info.pairs, info.method
    ((3, 3), 1, 'exact')
    """
    info = metric_info(metric)
    p = _metric_points_anywhere(X, "X", info)
    q = None if Y is None else _metric_points_anywhere(Y, "Y", info)
    options = _abi.gnomon_join_options()
    lib.gnomon_join_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.metric = info.metric
    if (radius is None) == (similarity is None):
        raise ValueError("radius and similarity: one of them must be given" if radius is None else
                         "radius and similarity are both given; one of them must be")
    if radius is not None:
        options.threshold = real(radius, "radius")
    else:
        if not info.flags & _abi.GNOMON_METRIC_SIMILARITY:
            raise ValueError(f"similarity is given, but the metric {info.name.decode()} has none: use radius")
        options.threshold = lib.gnomon_similarity_threshold(real(similarity, "similarity"))
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(map(repr, _METHODS))}")
    options.method = _METHODS[method]
    options.recall, options.seed = real(recall, "recall"), seed_of(random_state)
    if max_pairs is not None:
        options.max_pairs = integer(max_pairs, "max_pairs", 1)
    device, options.device_stream = place(device, configured_device(), p, q)
    pairs = _abi.gnomon_pairs(struct_size=ctypes.sizeof(_abi.gnomon_pairs))
    told = _abi.gnomon_join_result(struct_size=ctypes.sizeof(_abi.gnomon_join_result))
    with lease(_NAMES, n_jobs, device, progress) as ctx:
        ctx.call(lib.gnomon_join_collect_sides, ctypes.byref(_side(p)), None if q is None else ctypes.byref(_side(q)),
                 ctypes.byref(options), int(bool(symmetric)) if q is None else 0, ctypes.byref(pairs),
                 ctypes.byref(told))
        result = Result(ctx.context, lib.gnomon_pairs_free, pairs)
    found = Pairs(result.array(pairs.distances, (pairs.count,), np.float64),
                  result.array(pairs.columns, (pairs.count,), np.int64),
                  result.array(pairs.offsets, (pairs.rows + 1,), np.int64) if pairs.offsets
                  else np.zeros(pairs.rows + 1, np.int64), (pairs.rows, pairs.cols))
    graph: Union[Pairs, Any] = found
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        pass
    else:
        graph = csr_matrix((found.distances, found.indices, found.indptr), shape=found.shape)
    if not return_info:
        return graph
    return graph, JoinInfo(told.pairs, bool(told.complete), lib.gnomon_join_method_name(told.method).decode(),
                           told.recall, told.compared, told.verified, told.why.decode())
