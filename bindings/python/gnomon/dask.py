"""The package on dask: arrays, bags and data frames in blocks of rows, on one machine or many.

Nothing here computes: each function cuts a job into calls of the package, one a block or a pair of blocks, and puts the parts
together. The results have the bytes of the plain call on the whole, however the rows are divided. Calls run on one thread
each (``n_jobs``), as dask runs many at a time, and on the CPU unless ``device`` says otherwise: workers with GPUs and workers
without have other last bits.
"""
from __future__ import annotations

import os
from typing import Any, Iterator, Optional, Union

import dask
import dask.array as da
import numpy as np

from . import _blocks, _dedup, _factor, _search, _sketch
from ._arrays import integer, is_sparse
from ._operator import Operator

__all__ = ["dedup", "kneighbors", "radius_join", "sketch", "svd", "transform"]


def _rows(X: Any, name: str, known: bool) -> Any:
    """A dask array whose blocks are whole rows; known: with as many rows each as it says."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True if known else None)
    if not isinstance(X, da.Array):
        raise TypeError(f"{name} must be an array or data frame of dask's, not {type(X).__name__}")
    if X.ndim != 2:
        raise ValueError(f"{name}: Expected 2D array, got {X.ndim}D array instead")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if known and any(np.isnan(X.chunks[0])):
        X = X.compute_chunk_sizes()
    return X


def _tasks(X: Any) -> tuple[list[Any], list[int]]:
    """The blocks as tasks, and the number of the first row of each and of none; blocks without rows are left out."""
    tasks = [task for task, rows in zip(X.to_delayed().ravel(), X.chunks[0]) if rows]
    rows = [n for n in X.chunks[0] if n]
    return tasks, [0, *(int(n) for n in np.cumsum(rows))]


def sketch(X: Any, n_components: Union[int, str, Operator], *, n_jobs: int = 1, device: str = "cpu", dtype: Any = None,
           allow_nonfinite: bool = False, **operator: Any) -> Any:
    """`gnomon.sketch` of each block of rows.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        Of dense or SciPy's sparse blocks.
    n_components : int, "auto" or Operator
        As for `gnomon.sketch`; with ``"auto"`` the number of rows must be known, or is computed.
    n_jobs : int
        Threads of a call, default 1.
    device : str
        Default ``"cpu"``.
    dtype, allow_nonfinite, **operator
        As for `gnomon.sketch`.

    Returns
    -------
    dask.array.Array of shape (n_samples, n_components)
        Nothing is computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> from gnomon.dask import sketch
    >>> X = da.random.random((1000, 300), chunks=(250, 300))
    >>> sketch(X, 16, kind="sjlt", random_state=1).compute().shape
    (1000, 16)
    """
    X = _rows(X, "X", known=n_components == "auto")
    op, made = _blocks.operator(X.shape, X.dtype, dtype, n_components, operator)
    options: dict[str, Any] = {"dtype": made, "allow_nonfinite": allow_nonfinite, "n_jobs": n_jobs, "device": device}
    return X.map_blocks(_sketched, op, options, dtype=made, meta=np.empty((0, 0), made), chunks=(X.chunks[0], (op.shape[0],)))


def _sketched(x: Any, op: Operator, options: dict[str, Any]) -> Any:
    return _sketch.sketch(x, op, **options)


def transform(estimator: Any, X: Any) -> Any:
    """What a fitted estimator of `gnomon.sklearn` makes of each block of rows.

    Parameters
    ----------
    estimator
        Fitted, here or elsewhere; projections travel as their descriptors.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array
        Nothing is computed yet.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from gnomon.dask import transform
    >>> from gnomon.sklearn import GaussianRandomProjection
    >>> X = da.random.random((1000, 300), chunks=(250, 300))
    >>> fitted = GaussianRandomProjection(16, random_state=0).fit(np.empty((2, 300)))
    >>> transform(fitted, X).compute().shape
    (1000, 16)
    """
    X = _rows(X, "X", known=False)
    made = _blocks.transformed(estimator, np.zeros((1, X.shape[1]), X.dtype))
    return X.map_blocks(_transform, estimator, dtype=made.dtype, meta=np.empty((0, 0), made.dtype),
                        chunks=(X.chunks[0], (made.shape[1],)))


def _transform(X: Any, estimator: Any) -> Any:
    return estimator.transform(X) if X.shape[0] else np.empty((0, estimator.transform(np.zeros((1, X.shape[1]), X.dtype)).shape[1]))


def _nearest(base: Any, first: int, *options: Any) -> tuple[np.ndarray, np.ndarray]:
    return _blocks.nearest(base, np.arange(first, first + base.shape[0]), *options)


def kneighbors(X: Any, queries: Any = None, n_neighbors: int = 5, *, metric: str = "l2", n_jobs: int = 1,
               device: str = "cpu") -> tuple[Any, Any]:
    """`gnomon.neighbors` of each block of queries in each block of the base, and the nearest of all.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        The points.
    queries : the same, or an array of NumPy's or SciPy's, of shape (n_queries, n_features), optional
        Default: the points themselves, each without itself.
    n_neighbors : int
    metric : str
        One of `gnomon.metrics`.
    n_jobs, device
        As for `sketch`.

    Returns
    -------
    distances, indices : dask.array.Array of shape (n_queries, n_neighbors)
        Of float64 and int64. Nothing is computed yet; compute both at once: ``dask.compute(distances, indices)``.

    Examples
    --------
    >>> import dask, dask.array as da
    >>> from gnomon.dask import kneighbors
    >>> X = da.from_array([[0.0], [1.0], [5.0], [6.5]], chunks=(2, 1))
    >>> distances, indices = dask.compute(*kneighbors(X, n_neighbors=2))
    >>> indices.tolist()
    [[1, 2], [0, 2], [3, 1], [2, 1]]
    """
    X = _rows(X, "X", known=True)
    base, firsts = _tasks(X)
    k, own = integer(n_neighbors, "n_neighbors", 1), queries is None
    _blocks.neighbors_count(k, firsts[-1] - own)
    if own:
        asked, starts = base, firsts
    elif hasattr(queries, "to_dask_array") or isinstance(queries, da.Array):
        asked, starts = _tasks(_rows(queries, "queries", known=True))
    else:
        queries = queries if is_sparse(queries) else np.asarray(queries)
        asked, starts = [dask.delayed(queries)], [0, queries.shape[0]]
    _search.metric_info(metric)  # what isn't one is told here
    nearest, merged = dask.delayed(_nearest, nout=2), dask.delayed(_blocks.merged, nout=2)
    sides: tuple[list[Any], list[Any]] = ([], [])
    for i, q in enumerate(asked):
        parts = [nearest(b, firsts[j], None if own and i == j else q, k, metric, n_jobs, device) for j, b in enumerate(base)]
        for side, part, dtype in zip(sides, merged(parts, k, metric), (np.float64, np.int64)):
            side.append(da.from_delayed(part, (starts[i + 1] - starts[i], k), dtype=dtype))
    if not asked:
        return da.zeros((0, k)), da.zeros((0, k), dtype=np.int64)
    return da.concatenate(sides[0]), da.concatenate(sides[1])


def _tile(x: Any, y: Any, options: dict[str, Any]) -> Any:
    return _search.join(x, y, **options)


def _beside(tiles: list[Any]) -> Any:
    """Tiles of one block of rows, of which those left of the diagonal are given transposed."""
    from scipy.sparse import hstack
    return hstack([tile.T if turned else tile for tile, turned in tiles], format="csr")


def _below(rows: list[Any]) -> Any:
    from scipy.sparse import vstack
    return vstack(rows, format="csr")


def radius_join(X: Any, *, radius: Optional[float] = None, similarity: Optional[float] = None, metric: str = "l2", n_jobs: int = 1,
                device: str = "cpu") -> Any:
    """`gnomon.join` of each pair of blocks: every pair of points within a radius; needs SciPy.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
    radius, similarity, metric
        As for `gnomon.join`.
    n_jobs, device
        As for `sketch`.

    Returns
    -------
    dask.delayed.Delayed of scipy.sparse.csr_matrix of shape (n_samples, n_samples)
        Symmetric. Nothing is computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> from gnomon.dask import radius_join
    >>> X = da.from_array([[0.0, 0.0], [5.0, 5.0], [1.0, 0.0]], chunks=(1, 2))
    >>> radius_join(X, radius=2).compute().toarray().tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    X = _rows(X, "X", known=True)
    blocks, _ = _tasks(X)
    options = _blocks.join_options(radius, similarity, metric, n_jobs, device)
    tile, beside, below = (dask.delayed(f) for f in (_tile, _beside, _below))
    count = len(blocks)
    tiles = {(i, j): tile(blocks[i], None if i == j else blocks[j], options) for i in range(count) for j in range(i, count)}
    rows = [beside([(tiles[min(i, j), max(i, j)], j < i) for j in range(count)]) for i in range(count)]
    return below(rows) if rows else tile(np.zeros((0, max(1, X.shape[1])), np.float32), None, options)


def svd(X: Any, n_components: Optional[int] = None, **options: Any) -> Any:
    """`gnomon.svd` of rows that come block by block: the cluster makes the blocks, the factorisation is here.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        Blocks are computed anew for each pass, one at a time: ``X.persist()`` first where the cluster has the room;
        ``single_pass=True`` reads them once.
    n_components, **options
        As for `gnomon.svd`.

    Returns
    -------
    SVD
        With the bits of `gnomon.svd` of the same blocks as pieces.

    Examples
    --------
    >>> import dask.array as da
    >>> from gnomon.dask import svd
    >>> X = da.random.random((1000, 30), chunks=(250, 30))
    >>> svd(X, 5).s.shape
    (5,)
    """
    X = _rows(X, "X", known=True)
    blocks, firsts = _tasks(X)

    def pieces() -> Iterator[Any]:
        for block in blocks:
            yield block.compute()

    return _factor.svd(pieces() if options.get("single_pass") else pieces, n_components, n_samples=firsts[-1], **options)


def _sign(texts: Any, path: str, part: int, options: dict[str, Any]) -> str:
    texts = list(texts)
    _dedup.dedup_sign(texts, path, names=[f"{part:09d}-{i:012d}" for i in range(len(texts))], **options)
    return path


def dedup(texts: Any, folder: Any, *, n_jobs: int = 1, **options: Any) -> Any:
    """`gnomon.dedup` of texts in partitions: each is signed where it is, and the signature files are merged here.

    Parameters
    ----------
    texts : dask.bag.Bag of str or bytes, or dask.dataframe.Series
    folder : str or path-like
        Where the signature files are written: a folder that the workers and this process see. They stay there; those of an
        earlier call are replaced.
    n_jobs : int
        Threads of a worker's call.
    **options
        As for `gnomon.dedup`, without ``exact`` and ``against``.

    Returns
    -------
    Dedup
        Documents are numbered in the order of the partitions, as in the plain call on all texts.

    Examples
    --------
    >>> import dask.bag, tempfile
    >>> from gnomon.dask import dedup
    >>> texts = dask.bag.from_sequence(["one line of text", "quite another one", "one line of text"], npartitions=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dedup(texts, folder).kept.tolist()
    [0, 1]
    """
    if not hasattr(texts, "to_delayed"):
        raise TypeError(f"texts must be a bag or series of dask's, not {type(texts).__name__}")
    folder, counted, merging = _blocks.signing(folder, n_jobs, options)
    sign = dask.delayed(_sign)
    paths = dask.compute(*(sign(part, os.path.join(folder, f"part-{i:09d}.sig"), i, counted)
                           for i, part in enumerate(texts.to_delayed())))
    return _dedup.dedup_merge(paths, **merging)[0]
