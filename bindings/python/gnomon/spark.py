"""The package on Spark 4: data frames with a column of vectors or texts, on one machine or many.

Nothing here computes: each function cuts a job into calls of the package, one a batch of rows or a pair of blocks, and puts the
parts together. The results have the bytes of the plain call on the whole, however the rows are divided, and a task that Spark
does again has the same result. Calls run on one thread each (``n_jobs``), as Spark runs many at a time, and on the CPU unless
``device`` says otherwise: executors with GPUs and executors without have other last bits.

Columns of vectors are arrays of numbers, one length for all rows, or vectors of ``pyspark.ml``, sparse ones made dense. Where rows
are told by number, a column of integers holds it, each once: ties are decided by it, as by a row's place in the plain call.
"""
from __future__ import annotations

import io
import os
from typing import Any, Iterator, Optional, Union

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from . import _blocks, _factor, _search, _sketch
from ._arrays import integer
from ._operator import Operator

__all__ = ["dedup", "kneighbors", "radius_join", "sketch", "svd", "transform"]

_MOST_TASKS = 1000  # of one step over pairs of blocks


# ---- columns ----

def _column(frame: Any, column: str, name: str) -> Any:
    if not hasattr(frame, "mapInArrow"):
        raise TypeError(f"{name} must be a data frame of Spark's, not {type(frame).__name__}")
    if column not in frame.columns:
        raise ValueError(f"{name} has no column {column!r}; it has {', '.join(map(repr, frame.columns))}")
    return frame[f"`{column}`"]


def _vectors(frame: Any, column: str, name: str = "frame") -> tuple[Any, np.dtype]:
    """The column as arrays of numbers, and their type."""
    values, kind = _column(frame, column, name), frame.schema[column].dataType
    if kind.typeName() == "vectorudt":
        from pyspark.ml.functions import vector_to_array
        return vector_to_array(values), np.dtype(np.float64)
    types = {"float": np.float32, "double": np.float64, "byte": np.int8, "short": np.int16, "integer": np.int32, "long": np.int64}
    dtype = types.get(kind.elementType.typeName()) if isinstance(kind, T.ArrayType) else None
    if dtype is None:
        raise TypeError(f"{name}'s column {column!r} is of {kind.simpleString()}; it must be one of arrays of numbers or of vectors")
    return values, np.dtype(dtype)


def _number(frame: Any, id: str, name: str) -> Any:
    """The column of rows' numbers."""
    number, kind = _column(frame, id, name), frame.schema[id].dataType
    if not isinstance(kind, (T.ByteType, T.ShortType, T.IntegerType, T.LongType)):
        raise TypeError(f"{name}'s column {id!r} is of {kind.simpleString()}; it must be one of integers")
    return number.cast("long")


def _width(frame: Any, values: Any, column: str) -> int:
    first = frame.select(F.size(values)).first()
    if first is None:
        raise ValueError("frame has no rows; n_components must be an operator then")
    if first[0] is None or first[0] < 1:
        raise ValueError(f"frame's column {column!r} has no numbers in its first row")
    return int(first[0])


def _rows(lists: Any, column: str) -> np.ndarray:
    """The rows of a column of lists, which are as long as one another."""
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    if lists.null_count:
        raise ValueError(f"column {column!r} has a null; every row must have its numbers")
    lengths = np.diff(lists.offsets.to_numpy())
    if len(lengths) and (lengths != lengths[0]).any():
        raise ValueError(f"column {column!r} has rows of {lengths.min()} and of {lengths.max()} numbers; all must have as many")
    numbers = lists.flatten()
    if numbers.null_count:
        raise ValueError(f"column {column!r} has a null in a row; every element must be a number")
    return numbers.to_numpy(zero_copy_only=False).reshape(len(lists), int(lengths[0]) if len(lengths) else 0)


def _lists(rows: np.ndarray) -> Any:
    """The column of lists of rows."""
    ends = np.arange(rows.shape[0] + 1, dtype=np.int64) * rows.shape[1]
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"a batch of rows has {ends[-1]} numbers, and Spark's columns at most 2147483647: set "
                         "spark.sql.execution.arrow.maxRecordsPerBatch lower")
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(rows.ravel()))


def _list_type(dtype: np.dtype) -> Any:
    return T.ArrayType(T.FloatType() if dtype == np.float32 else T.DoubleType())


def _with(frame: Any, values: Any, column: str, output: str, kind: Any, function: Any) -> Any:
    """The frame with a column more, made of batches of rows."""
    names = [name for name in frame.columns if name != output]
    schema = T.StructType([frame.schema[name] for name in names] + [T.StructField(output, kind, False)])

    def made(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                arrays = [batch.column(i) for i in range(len(names))]
                yield pa.RecordBatch.from_arrays([*arrays, _lists(function(_rows(batch.column(len(names)), column)))], names=[*names, output])

    return frame.select(*(frame[f"`{name}`"] for name in names), values.alias("gnomon_values")).mapInArrow(made, schema)


# ---- blocks ----

def _dumped(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _loaded(value: Any) -> np.ndarray:
    return np.load(io.BytesIO(value.as_py()), allow_pickle=False)


_BLOCK = "block long, numbers binary, rows binary"


def _blocked(frame: Any, column: str, id: str, block_rows: int, name: str) -> tuple[Any, int, int]:
    """The rows in blocks, one a row, in the order of their numbers; how many blocks and rows there are.

    A row's block is chosen by its number alone, so that a task that is done again finds the same blocks."""
    values, _ = _vectors(frame, column, name)
    number = _number(frame, id, name)
    count = frame.count()
    blocks = max(1, -(-count // block_rows))

    def packed(table: Any) -> Any:
        ids, X = _blocks.in_order(_blocks.numbers_of(table["number"], f"column {id!r}"), _rows(table["row"], column), f"column {id!r}")
        return pa.table({"block": [table["block"][0].as_py()], "numbers": [_dumped(ids)], "rows": [_dumped(X)]})

    rows = frame.select(F.pmod(F.xxhash64(number), F.lit(blocks)).alias("block"), number.alias("number"), values.alias("row"))
    return rows.groupBy("block").applyInArrow(packed, _BLOCK), blocks, count


def _tiles(left: Any, right: Any, lefts: int, rights: int, diagonal: Any, function: Any, schema: str) -> Any:
    """What a function makes of each pair of a block of one side and one of the other; either may be None, having no rows."""
    def every(blocks: Any, side: int, count: int, own: str, other: str) -> Any:
        many = F.explode(F.sequence(F.lit(0), F.lit(count - 1)).cast("array<bigint>"))
        return blocks.select(F.lit(side).alias("side"), F.col("block").alias(own), many.alias(other), "numbers", "rows")

    both = every(left, 0, rights, "first", "second").unionByName(every(right, 1, lefts, "second", "first"))
    if diagonal is not None:
        both = both.where(diagonal)

    def tile(key: Any, table: Any) -> Any:
        sides: list[Any] = [None, None]
        for i, side in enumerate(table["side"].to_pylist()):
            sides[side] = _loaded(table["numbers"][i]), _loaded(table["rows"][i])
        return function(key[0].as_py(), key[1].as_py(), *sides)

    tasks = min(lefts * rights, _MOST_TASKS)
    return both.repartition(tasks, "first", "second").groupBy("first", "second").applyInArrow(tile, schema)


# ---- jobs ----

def sketch(frame: DataFrame, n_components: Union[int, str, Operator], *, column: str = "features", output: str = "sketch",
           n_jobs: int = 1, device: str = "cpu", dtype: Any = None, allow_nonfinite: bool = False, **operator: Any) -> DataFrame:
    """`gnomon.sketch` of each row's vector, as a column more.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    n_components : int, "auto" or Operator
        As for `gnomon.sketch`; with ``"auto"`` the rows are counted, and unless it is an operator the first row is read.
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
    pyspark.sql.DataFrame
        The output is an array of floats, or of doubles where `gnomon.sketch` gives float64. Nothing is computed yet.
    """
    values, given = _vectors(frame, column)
    width = n_components.shape[1] if isinstance(n_components, Operator) else _width(frame, values, column)
    op, made = _blocks.operator((frame.count() if n_components == "auto" else 1, width), given, dtype, n_components, operator)
    options: dict[str, Any] = {"dtype": made, "allow_nonfinite": allow_nonfinite, "n_jobs": n_jobs, "device": device}
    return _with(frame, values, column, output, _list_type(made), lambda X: _sketch.sketch(X, op, **options))


def transform(estimator: Any, frame: DataFrame, *, column: str = "features", output: str = "transformed") -> DataFrame:
    """What a fitted estimator of `gnomon.sklearn` makes of each batch of rows, as a column more.

    Parameters
    ----------
    estimator
        Fitted, here or elsewhere; projections travel as their descriptors.
    frame, column, output
        As for `sketch`.

    Returns
    -------
    pyspark.sql.DataFrame
        Nothing is computed yet.
    """
    values, given = _vectors(frame, column)
    made = _blocks.transformed(estimator, np.zeros((1, int(estimator.n_features_in_)), given)).dtype
    return _with(frame, values, column, output, _list_type(made), lambda X: _blocks.transformed(estimator, X))


def kneighbors(frame: DataFrame, queries: Optional[DataFrame] = None, n_neighbors: int = 5, *, column: str = "features",
               id: str = "id", metric: str = "l2", n_jobs: int = 1, device: str = "cpu", block_rows: int = 20000) -> DataFrame:
    """`gnomon.neighbors` of each block of queries in each block of rows, and the nearest of all.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The points; they are counted.
    queries : pyspark.sql.DataFrame, optional
        With columns of the same names. Default: the points themselves, each without itself.
    n_neighbors : int
    column, id : str
        The columns of vectors and of the rows' numbers.
    metric : str
        One of `gnomon.metrics`.
    n_jobs, device
        As for `sketch`.
    block_rows : int
        Rows of a block, about; a task holds two blocks, and each block is sent as often as there are blocks.

    Returns
    -------
    pyspark.sql.DataFrame
        Of a query's number, named as it is there, ``neighbors``, an array of numbers, and ``distances``, one of doubles.
        But for the count nothing is computed yet.
    """
    k, block_rows = integer(n_neighbors, "n_neighbors", 1), integer(block_rows, "block_rows", 1)
    _search.metric_info(metric)  # what isn't one is told here
    own = queries is None
    base, bases, count = _blocked(frame, column, id, block_rows, "frame")
    _blocks.neighbors_count(k, count - own)
    asked, askeds, _ = (base, bases, count) if own else _blocked(queries, column, id, block_rows, "queries")

    def tile(first: int, second: int, q: Any, b: Any) -> Any:
        rows: dict[str, list[Any]] = {name: [] for name in ("block", "numbers", "distances", "indices")}
        if q is not None and b is not None:
            found = _blocks.nearest(b[1], b[0], None if own and first == second else q[1], k, metric, n_jobs, device)
            for name, value in zip(rows, (first, *map(_dumped, (q[0], *found)))):
                rows[name].append(value)
        return pa.table(rows, schema=pa.schema([("block", pa.int64()), *((name, pa.binary()) for name in list(rows)[1:])]))

    def merge(table: Any) -> Any:
        parts = [(_loaded(d), _loaded(i)) for d, i in zip(table["distances"], table["indices"])]
        distances, indices = _blocks.merged(parts, k, metric)
        return pa.table([_loaded(table["numbers"][0]), _lists(indices), _lists(distances)], names=[id, "neighbors", "distances"])

    found = _tiles(asked, base, askeds, bases, None, tile, "block long, numbers binary, distances binary, indices binary")
    return found.groupBy("block").applyInArrow(merge, f"`{id}` long, neighbors array<long>, distances array<double>")


def radius_join(frame: DataFrame, *, radius: Optional[float] = None, similarity: Optional[float] = None, column: str = "features",
                id: str = "id", metric: str = "l2", n_jobs: int = 1, device: str = "cpu", block_rows: int = 20000) -> DataFrame:
    """`gnomon.join` of each pair of blocks: every pair of rows within a radius.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The points; they are counted.
    radius, similarity, metric
        As for `gnomon.join`.
    column, id, n_jobs, device, block_rows
        As for `kneighbors`.

    Returns
    -------
    pyspark.sql.DataFrame
        A row for each pair: the numbers ``i`` and ``j``, i < j, and ``distance``. But for the count nothing is computed yet.
    """
    block_rows = integer(block_rows, "block_rows", 1)
    options = _blocks.join_options(radius, similarity, metric, n_jobs, device)
    blocks, count, _ = _blocked(frame, column, id, block_rows, "frame")

    def tile(first: int, second: int, x: Any, y: Any) -> Any:
        found = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        if x is not None and (first == second or y is not None):
            found = _blocks.pairs(x, None if first == second else y, options)
        return pa.table(list(found), names=["i", "j", "distance"])

    below = (F.col("first") < F.col("second")) | ((F.col("first") == F.col("second")) & (F.col("side") == 0))
    return _tiles(blocks, blocks, count, count, below, tile, "i long, j long, distance double")


def svd(frame: DataFrame, n_components: Optional[int] = None, *, column: str = "features", **options: Any) -> Any:
    """`gnomon.svd` of rows that come batch by batch: the cluster makes the batches, the factorisation is here.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Its rows are counted, and made anew for each pass, in the frame's order: ``frame.persist()`` first where the cluster has
        the room; ``single_pass=True`` makes them once.
    column : str
        The column of vectors.
    n_components, **options
        As for `gnomon.svd`.

    Returns
    -------
    SVD
        U's rows are in the order of the frame's.
    """
    values, _ = _vectors(frame, column)

    def packed(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([pa.array([_dumped(_rows(batch.column(0), column))])], names=["rows"])

    made = frame.select(values.alias("gnomon_values")).mapInArrow(packed, "rows binary")

    def pieces() -> Iterator[Any]:
        for row in made.toLocalIterator():
            yield np.load(io.BytesIO(row[0]), allow_pickle=False)

    return _factor.svd(pieces() if options.get("single_pass") else pieces, n_components, n_samples=frame.count(), **options)


def dedup(frame: DataFrame, folder: Any, *, column: str = "text", id: str = "id", output: str = "representative", n_jobs: int = 1,
          **options: Any) -> tuple[DataFrame, Any]:
    """`gnomon.dedup` of texts: each partition is signed where it is, and the signature files are merged here.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    folder : str or path-like
        Where the signature files are written: a folder that the executors and this process see. They stay there; those of an
        earlier call are replaced.
    column, id : str
        The columns of texts, strings or binary, and of the documents' numbers, 0 or more.
    output : str
        The column that is made.
    n_jobs : int
        Threads of an executor's call.
    **options
        As for `gnomon.dedup`, without ``exact`` and ``against``.

    Returns
    -------
    marked : pyspark.sql.DataFrame
        The frame with the number of the document that is kept for each; kept are the rows where it is their own.
    found : Dedup
        Its documents are told by their numbers; ``representatives`` has one for each, in the order of their numbers.
    """
    texts, number = _column(frame, column, "frame"), _number(frame, id, "frame")
    folder, counted, merging = _blocks.signing(folder, n_jobs, options)

    def signed(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext
        task: Any = TaskContext.get()
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held)
        path = os.path.join(folder, f"part-{task.partitionId():09d}.sig")
        _blocks.sign(table["text"], _blocks.numbers_of(table["number"], f"column {id!r}"), path, counted, f"column {id!r}")
        yield pa.RecordBatch.from_arrays([pa.array([path])], names=["path"])

    made = frame.select(texts.alias("text"), number.alias("number")).mapInArrow(signed, "path string")
    found, ids = _blocks.merge_signed([row[0] for row in made.collect()], merging, f"column {id!r}")
    marks = frame.sparkSession.createDataFrame(pa.table({id: ids, output: found.representatives}))
    return frame.drop(output).join(marks, id), found
