"""What a task computes for an engine that moves blocks of rows: `dask`, `spark`, `ray`.

A block is an array and the numbers of its rows in the whole. The results have the bytes of the plain call on the whole, however
the rows are divided.
"""
from __future__ import annotations

import inspect
import os
from typing import Any, Iterable, Optional

import numpy as np

from . import _dedup, _search, _sketch
from ._arrays import is_sparse
from ._operator import Operator

# the options of `gnomon.dedup` that a signature file is made with; the others are for those who merge
_SIGNED = ("ngram", "characters", "lower", "punctuation", "normalize", "weighted")


class _Shape:
    """What is asked of points for which an operator is made."""

    def __init__(self, shape: tuple[int, int]):
        self.shape = shape


def operator(shape: tuple[int, int], given: Any, dtype: Any, n_components: Any, options: dict[str, Any]) -> tuple[Operator, np.dtype]:
    """The operator for points of a shape, and the type of the sketch of points of type `given`."""
    if isinstance(n_components, Operator):
        if options:
            raise ValueError(f"{next(iter(options))} is given, but n_components is an operator")
        op = n_components
    else:
        options = dict(options)
        like: Any = _Shape(shape)
        op = _sketch._operator_for(like, n_components, options.pop("kind", "rademacher"), options.pop("random_state", 0),
                                   options.pop("eps", 0.1), options)
    return op, _sketch.sketch(np.zeros((0, op.shape[1]), given), op, dtype=dtype, device="cpu").dtype


def neighbors_count(n_neighbors: int, points: int) -> None:
    """Refuses more neighbours than there are points to choose from."""
    if n_neighbors > points:
        raise ValueError(f"n_neighbors is {n_neighbors}; there are {points} points")


def nearest(base: Any, numbers: np.ndarray, queries: Any, k: int, metric: str, n_jobs: int,
            device: str) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of a block of the base, by their numbers in the whole, which ascend; of a block's own points without
    themselves where queries is None."""
    most = min(k, base.shape[0] - (queries is None))
    rows = base.shape[0] if queries is None else queries.shape[0]
    if most <= 0:
        return np.empty((rows, 0)), np.empty((rows, 0), np.int64)
    found = _search.neighbors(base, queries, most, metric=metric, n_jobs=n_jobs, device=device)
    return np.array(found.distances), numbers[found.indices]


def merged(parts: list[tuple[np.ndarray, np.ndarray]], k: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of all, in the order of distance and then number."""
    distances, indices = (np.concatenate(side, axis=1) for side in zip(*parts))
    largest = _search.metric_info(metric).name == b"ip"
    order = np.lexsort((indices, -distances if largest else distances), axis=-1)[:, :k]
    return np.take_along_axis(distances, order, 1), np.take_along_axis(indices, order, 1)


def join_options(radius: Optional[float], similarity: Optional[float], metric: str, n_jobs: int, device: str) -> dict[str, Any]:
    """The options of a tile's join; what doesn't fit is told here and not by a task."""
    options: dict[str, Any] = {"radius": radius, "similarity": similarity, "metric": metric, "n_jobs": n_jobs, "device": device,
                               "method": "exact"}
    _search.join(np.zeros((0, 8), np.uint8 if metric == "hamming" else np.float32), **options)
    return options


def pairs(x: tuple[np.ndarray, Any], y: Optional[tuple[np.ndarray, Any]],
          options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of a block, or of two, by the numbers in the whole, i < j, sorted; and their distances."""
    found = _search.join(x[1], None if y is None else y[1], symmetric=False, **options)
    distances = found.data if hasattr(found, "data") else found.distances
    i, j = np.repeat(x[0], np.diff(found.indptr)), (x if y is None else y)[0][found.indices]
    i, j = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((j, i))
    return i[order], j[order], distances[order]


def in_order(numbers: np.ndarray, X: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the order of their numbers, none of which may stand twice."""
    numbers = _integers(numbers, name)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    _once(numbers, name)
    return numbers, X[order]


def _integers(numbers: np.ndarray, name: str) -> np.ndarray:
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a column of integers, not of {numbers.dtype}")
    if len(numbers) and numbers.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has {numbers.max()}; it must be below 2^63")
    return numbers.astype(np.int64)


def _once(numbers: np.ndarray, name: str) -> None:
    """Refuses ascending numbers of which one stands twice."""
    twice = np.flatnonzero(numbers[1:] == numbers[:-1])
    if len(twice):
        raise ValueError(f"{name} has {numbers[twice[0]]} twice; every row must have a number of its own")


def transformed(estimator: Any, X: np.ndarray) -> np.ndarray:
    """What a fitted estimator makes of rows, which must be dense."""
    made = estimator.transform(X)
    if getattr(made, "ndim", 0) != 2 or is_sparse(made):
        raise TypeError(f"{type(estimator).__name__} gives {type(made).__name__}; transform takes estimators that give dense arrays")
    return np.asarray(made)


def signing(folder: Any, n_jobs: int, options: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The folder of signature files, which is made, and the options of signing and of merging; what neither takes is told before."""
    counted = {"n_jobs": n_jobs, **{name: options[name] for name in _SIGNED if name in options}}
    merging = {name: value for name, value in options.items() if name not in _SIGNED}
    inspect.signature(_dedup.dedup_merge).bind([], **merging)
    folder = os.path.abspath(os.fspath(folder))
    os.makedirs(folder, exist_ok=True)
    return folder, counted, merging


def numbers_of(column: Any, name: str) -> np.ndarray:
    """The rows' numbers of an Arrow column; none may be null."""
    if column.null_count:
        raise ValueError(f"{name} has a null; every row must have a number")
    numbers: np.ndarray = column.to_numpy()
    return numbers


def sign(texts: Any, numbers: np.ndarray, path: str, options: dict[str, Any], name: str) -> None:
    """Signs texts that have numbers, in whose order `merge_signed` has them."""
    numbers = _integers(numbers, name)
    if len(numbers) and numbers.min() < 0:
        raise ValueError(f"{name} has {numbers.min()}; it must be 0 or more")
    _dedup.dedup_sign(texts, path, names=[f"{number:019d}" for number in numbers.tolist()], **options)


def merge_signed(paths: Iterable[str], options: dict[str, Any], name: str) -> tuple[_dedup.Dedup, np.ndarray]:
    """The near-duplicates of all signed texts, told by their numbers, none of which may stand twice, and the numbers of all."""
    found, names = _dedup.dedup_merge(paths, **options)
    numbers = np.array([int(number) for number in names], np.int64)
    _once(numbers, name)
    return found._replace(kept=numbers[found.kept], representatives=numbers[found.representatives], pairs=numbers[found.pairs]), numbers
