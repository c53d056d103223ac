"""The package on Ray: datasets with a column of vectors or texts, on one machine or many.

Nothing here computes: each function cuts a job into calls of the package, one a batch of rows or a pair of blocks, and puts the
parts together. The results have the bytes of the plain call on the whole, however the rows are divided, and a task that Ray
does again has the same result. Calls run on one thread each (``n_jobs``), as Ray runs many at a time, and on the CPU unless
``device`` says otherwise: nodes with GPUs and nodes without have other last bits.

Columns of vectors are Ray's tensors or lists of numbers, one length for all rows. Where rows are told by number, a column of
integers holds it, each once: ties are decided by it, as by a row's place in the plain call.
"""
from __future__ import annotations

import os
from typing import Any, Iterator, Optional, Union

import numpy as np
import ray
import ray.data

from . import _blocks, _factor, _search, _sketch
from ._arrays import integer
from ._operator import Operator

__all__ = ["dedup", "kneighbors", "radius_join", "sketch", "svd", "transform"]


def _check(data: Any, name: str, *columns: str) -> None:
    if not hasattr(data, "map_batches"):
        raise TypeError(f"{name} must be a dataset of Ray's, not {type(data).__name__}")
    there = data.columns()
    for column in columns:
        if there is not None and column not in there:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(map(repr, there))}")


def _rows(values: Any, column: str) -> np.ndarray:
    """The rows of a column of tensors or lists, which are as long as one another."""
    if values.dtype == object:
        lengths = {len(row) if hasattr(row, "__len__") else -1 for row in values}
        if len(lengths) != 1 or -1 in lengths:
            raise ValueError(f"column {column!r} must have in each row a list of numbers, all as long as one another")
        values = np.stack(list(values))
    if values.ndim != 2:
        raise ValueError(f"column {column!r} must have in each row a list of numbers")
    return values


def _first(data: Any, column: str) -> np.ndarray:
    for batch in data.select_columns([column]).iter_batches(batch_size=1, batch_format="numpy", prefetch_batches=0):
        return _rows(batch[column], column)
    raise ValueError("data has no rows: the type of its vectors is not known")


def _with(data: Any, column: str, output: str, function: Any) -> Any:
    """The dataset with a column more, made of batches of rows."""

    def made(batch: Any) -> Any:
        return {**batch, output: function(_rows(batch[column], column))} if len(batch[column]) else batch

    return data.map_batches(made, batch_format="numpy", zero_copy_batch=True)


def sketch(data: ray.data.Dataset, n_components: Union[int, str, Operator], *, column: str = "features", output: str = "sketch",
           n_jobs: int = 1, device: str = "cpu", dtype: Any = None, allow_nonfinite: bool = False, **operator: Any) -> ray.data.Dataset:
    """`gnomon.sketch` of each row's vector, as a column more.

    Parameters
    ----------
    data : ray.data.Dataset
    n_components : int, "auto" or Operator
        As for `gnomon.sketch`; with ``"auto"`` the rows are counted, and the first row is read for its length and type.
    column, output : str
        The columns of vectors and of sketches. A column that has the output's name is replaced.
    n_jobs : int
        Threads of a call, default 1.
    device : str
        Default ``"cpu"``.
    dtype, allow_nonfinite, **operator
        As for `gnomon.sketch`.

    Returns
    -------
    ray.data.Dataset
        The output is a tensor a row. But for the first row nothing is computed yet.
    """
    _check(data, "data", column)
    first = _first(data, column)
    op, made = _blocks.operator((data.count() if n_components == "auto" else 1, first.shape[1]), first.dtype, dtype, n_components,
                                operator)
    options: dict[str, Any] = {"dtype": made, "allow_nonfinite": allow_nonfinite, "n_jobs": n_jobs, "device": device}
    return _with(data, column, output, lambda X: _sketch.sketch(X, op, **options))


def transform(estimator: Any, data: ray.data.Dataset, *, column: str = "features", output: str = "transformed") -> ray.data.Dataset:
    """What a fitted estimator of `gnomon.sklearn` makes of each batch of rows, as a column more.

    Parameters
    ----------
    estimator
        Fitted, here or elsewhere; projections travel as their descriptors.
    data, column, output
        As for `sketch`.

    Returns
    -------
    ray.data.Dataset
        Nothing is computed yet.
    """
    _check(data, "data", column)
    return _with(data, column, output, lambda X: _blocks.transformed(estimator, X))


# ---- blocks ----

def _packed(block: dict[str, np.ndarray], column: str, id: str) -> tuple[np.ndarray, np.ndarray]:
    return _blocks.in_order(block[id], _rows(block[column], column), f"column {id!r}")


def _numbers(block: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    return block[0]


def _once(name: str, *numbers: np.ndarray) -> None:
    every = np.concatenate(numbers)
    _blocks.in_order(every, every, name)


def _blocked(data: Any, column: str, id: str, name: str) -> tuple[list[Any], int]:
    """References to the blocks, the rows of each in the order of their numbers; how many rows there are."""
    _check(data, name, column, id)
    picked = data.select_columns([id, column]).materialize()
    packed, numbers = ray.remote(_packed), ray.remote(_numbers)
    count = picked.count()
    blocks = [packed.remote(block, column, id) for block in picked.to_numpy_refs()] if count else []
    if blocks:
        ray.get(ray.remote(_once).remote(f"{name}'s column {id!r}", *(numbers.remote(block) for block in blocks)))
    return blocks, count


def _nearest(base: Any, queries: Any, *options: Any) -> Any:
    return _blocks.nearest(base[1], base[0], None if queries is None else queries[1], *options)


def _merged(queries: Any, k: int, metric: str, id: str, *parts: Any) -> Any:
    import pyarrow as pa
    distances, indices = _blocks.merged(list(parts), k, metric)
    return pa.table({id: queries[0], "neighbors": list(indices), "distances": list(distances)},
                    schema=pa.schema([(id, pa.int64()), ("neighbors", pa.list_(pa.int64())), ("distances", pa.list_(pa.float64()))]))


def kneighbors(data: ray.data.Dataset, queries: Optional[ray.data.Dataset] = None, n_neighbors: int = 5, *, column: str = "features",
               id: str = "id", metric: str = "l2", n_jobs: int = 1, device: str = "cpu") -> ray.data.Dataset:
    """`gnomon.neighbors` of each block of queries in each block of rows, and the nearest of all.

    Parameters
    ----------
    data : ray.data.Dataset
        The points. They are computed and stay in Ray's memory while the result is made; ``data.repartition(n)`` cuts them into
        other blocks: a task holds two.
    queries : ray.data.Dataset, optional
        With columns of the same names. Default: the points themselves, each without itself.
    n_neighbors : int
    column, id : str
        The columns of vectors and of the rows' numbers.
    metric : str
        One of `gnomon.metrics`.
    n_jobs, device
        As for `sketch`.

    Returns
    -------
    ray.data.Dataset
        Of a query's number, named as it is there, ``neighbors``, a list of numbers, and ``distances``, one of float64. Its tasks
        have begun.
    """
    k, own = integer(n_neighbors, "n_neighbors", 1), queries is None
    _search.metric_info(metric)  # what isn't one is told here
    base, count = _blocked(data, column, id, "data")
    _blocks.neighbors_count(k, count - own)
    asked = base if own else _blocked(queries, column, id, "queries")[0]
    nearest, merged = ray.remote(_nearest), ray.remote(_merged)
    made = [merged.remote(q, k, metric, id, *(nearest.remote(b, None if own and i == j else q, k, metric, n_jobs, device)
                                              for j, b in enumerate(base))) for i, q in enumerate(asked)]
    return _data(made, lambda: _merged((np.empty(0, np.int64),), k, metric, id, (np.empty((0, k)), np.empty((0, k), np.int64))))


def _data(tables: list[Any], none: Any) -> ray.data.Dataset:
    return ray.data.from_arrow_refs(tables) if tables else ray.data.from_arrow(none())


def _pairs(x: Any, y: Any, options: dict[str, Any]) -> Any:
    import pyarrow as pa
    return pa.table(list(_blocks.pairs(x, y, options)), names=["i", "j", "distance"])


def radius_join(data: ray.data.Dataset, *, radius: Optional[float] = None, similarity: Optional[float] = None,
                column: str = "features", id: str = "id", metric: str = "l2", n_jobs: int = 1, device: str = "cpu") -> ray.data.Dataset:
    """`gnomon.join` of each pair of blocks: every pair of rows within a radius.

    Parameters
    ----------
    data : ray.data.Dataset
        As for `kneighbors`.
    radius, similarity, metric
        As for `gnomon.join`.
    column, id, n_jobs, device
        As for `kneighbors`.

    Returns
    -------
    ray.data.Dataset
        A row for each pair: the numbers ``i`` and ``j``, i < j, and ``distance``. Its tasks have begun.
    """
    options = _blocks.join_options(radius, similarity, metric, n_jobs, device)
    blocks, _ = _blocked(data, column, id, "data")
    pairs = ray.remote(_pairs)
    made = [pairs.remote(x, y if i < j else None, options) for i, x in enumerate(blocks) for j, y in enumerate(blocks) if i <= j]
    return _data(made, lambda: _pairs((np.empty(0, np.int64), np.zeros((0, 8), np.uint8 if metric == "hamming" else np.float32)), None, options))


def svd(data: ray.data.Dataset, n_components: Optional[int] = None, *, column: str = "features", **options: Any) -> Any:
    """`gnomon.svd` of rows that come block by block: the cluster makes the blocks, the factorisation is here.

    Parameters
    ----------
    data : ray.data.Dataset
        Computed once, and held in Ray's memory.
    column : str
        The column of vectors.
    n_components, **options
        As for `gnomon.svd`.

    Returns
    -------
    SVD
        U's rows are in the order of the dataset's blocks.
    """
    _check(data, "data", column)
    held = data.select_columns([column]).materialize()
    blocks = held.to_numpy_refs()

    def pieces() -> Iterator[Any]:
        for block in blocks:
            values = ray.get(block)[column]
            if len(values):
                yield _rows(values, column)

    return _factor.svd(pieces() if options.get("single_pass") else pieces, n_components, n_samples=held.count(), **options)


def _signed(batch: Any, folder: str, column: str, id: str, options: dict[str, Any]) -> Any:
    if not batch.num_rows:
        return {"path": np.empty(0, object)}
    numbers = _blocks.numbers_of(batch[id], f"column {id!r}")
    path = os.path.join(folder, f"part-{int(numbers.min()):019d}.sig")
    _blocks.sign(batch[column], numbers, path, options, f"column {id!r}")
    return {"path": np.array([path], object)}


def dedup(data: ray.data.Dataset, folder: Any, *, column: str = "text", id: str = "id", output: str = "representative", n_jobs: int = 1,
          **options: Any) -> tuple[ray.data.Dataset, Any]:
    """`gnomon.dedup` of texts: each block is signed where it is, and the signature files are merged here.

    Parameters
    ----------
    data : ray.data.Dataset
    folder : str or path-like
        Where the signature files are written: a folder that the nodes and this process see. They stay there; those of an
        earlier call are replaced.
    column, id : str
        The columns of texts and of the documents' numbers, 0 or more.
    output : str
        The column that is made.
    n_jobs : int
        Threads of a task's call.
    **options
        As for `gnomon.dedup`, without ``exact`` and ``against``.

    Returns
    -------
    marked : ray.data.Dataset
        The dataset with the number of the document that is kept for each; kept are the rows where it is their own.
    found : Dedup
        Its documents are told by their numbers; ``representatives`` has one for each, in the order of their numbers.
    """
    _check(data, "data", column, id)
    folder, counted, merging = _blocks.signing(folder, n_jobs, options)
    signed = data.select_columns([id, column]).map_batches(_signed, batch_format="pyarrow", batch_size=None,
                                                           fn_args=(folder, column, id, counted))
    found, ids = _blocks.merge_signed([row["path"] for row in signed.iter_rows()], merging, f"column {id!r}")
    held, kept = ray.put(ids), ray.put(found.representatives)

    def mark(batch: Any) -> Any:
        return {**batch, output: ray.get(kept)[np.searchsorted(ray.get(held), batch[id])]}

    return data.map_batches(mark, batch_format="numpy", zero_copy_batch=True), found
