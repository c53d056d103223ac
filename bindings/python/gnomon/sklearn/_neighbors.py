"""Nearest neighbours: exactly, or by hashing with a recall that is guaranteed."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._arrays import seed_of
from .._index import Index
from .._search import Neighbors, neighbors
from ._base import Base, choice, count, validate


class _Metric(NamedTuple):
    """One of scikit-learn's metrics by one of the library's."""

    name: str
    prepare: Optional[Callable[[Any], Any]] = None  # points as the library's metric takes them
    to_ours: Optional[Callable[[float, int], float]] = None  # a radius; of so many features
    from_ours: Optional[Callable[[np.ndarray, int], np.ndarray]] = None  # distances


def _bits(X: Any) -> np.ndarray:
    dense = X.toarray() if hasattr(X, "tocsr") else X
    if not ((dense == 0) | (dense == 1)).all():
        raise ValueError("metric is 'hamming': X must hold 0 and 1 alone")
    return np.packbits(dense.astype(bool), axis=1)


def _sets(X: Any) -> Any:
    from scipy.sparse import csr_matrix
    found = csr_matrix(X)
    if found is X:
        found = found.copy()
    found.sum_duplicates()
    found.eliminate_zeros()
    found.data = np.ones_like(found.data)
    return found


_L2, _L1 = _Metric("l2"), _Metric("l1")
_SQUARED = _Metric("l2", to_ours=lambda radius, features: float(np.sqrt(radius)), from_ours=lambda d, features: d ** 2)
_HAMMING = _Metric("hamming", _bits, lambda radius, features: float(np.floor(radius * features * (1 + 1e-15))),
                   lambda d, features: d / features)
_METRICS = {"euclidean": _L2, "l2": _L2, "sqeuclidean": _SQUARED, "manhattan": _L1, "l1": _L1, "cityblock": _L1,
            "cosine": _Metric("cosine"), "hamming": _HAMMING, "jaccard": _Metric("jaccard", _sets)}


def _objects(flat: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """An array whose elements are arrays, one a query."""
    found = np.empty(len(indptr) - 1, dtype=object)
    for i in range(len(found)):
        found[i] = flat[indptr[i]:indptr[i + 1]]
    return found


class _Search(Base):
    """What the search and the transformers share. Indexes are made when the first query of their kind comes, and are not
    pickled: the points and the seed make them again."""

    algorithm: str
    metric: str
    metric_params: Any
    n_features_in_: int
    n_jobs: Optional[int]
    p: float
    random_state: Any
    recall: Optional[float]

    def _resolve(self) -> _Metric:
        choice(self.algorithm, "algorithm", ("auto", "ball_tree", "kd_tree", "brute"))
        metric = self.metric
        if self.metric_params:
            raise ValueError(f"metric_params is {self.metric_params!r}; the metrics here have no parameters")
        if isinstance(metric, str) and metric in ("minkowski", "p"):
            if self.p not in (1, 2):
                raise ValueError(f"p is {self.p!r}; it must be 1 or 2")
            return _L1 if self.p == 1 else _L2
        return _METRICS[choice(metric, "metric", ("minkowski", *_METRICS))]

    def fit(self, X: Any, y: Any = None) -> Any:
        """Takes the points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        metric = self._resolve()
        recall = self._recall()
        X = validate(self, X)
        self._fit_X = X
        self._points = X if metric.prepare is None else metric.prepare(X)
        self.n_samples_fit_ = X.shape[0]
        self.effective_metric_ = "euclidean" if metric is _L2 else "manhattan" if metric is _L1 else self.metric
        self.effective_metric_params_: dict[str, Any] = {}
        self._seed = seed_of(self.random_state) if recall < 1 else 0
        self._indexes: dict[tuple[Optional[int], Optional[float]], Index] = {}
        return self

    def _recall(self) -> float:
        recall = self.recall
        if recall is None:
            return 1.0
        if isinstance(recall, (bool, str)) or not 0 < recall <= 1:
            raise ValueError(f"recall is {recall!r}; it must be above 0 and at most 1, or None")
        return float(recall)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_indexes" in state:
            state["_indexes"] = {}
        return state

    def _find(self, X: Any, k: Optional[int], radius: Optional[float]) -> tuple[Neighbors, bool]:
        """Neighbours of X, or of the fitted points where X is None, each without itself. Distances are scikit-learn's."""
        check_is_fitted(self, "_points")
        metric = self._resolve()
        base, features = self._points, self.n_features_in_
        if X is None:
            queries = None
        else:
            queries = validate(self, X, reset=False)
            if metric.prepare is not None:
                queries = metric.prepare(queries)
            elif hasattr(queries, "tocsr") != hasattr(base, "tocsr"):  # as sparse as the fitted points
                from scipy.sparse import csr_matrix
                queries = csr_matrix(queries) if hasattr(base, "tocsr") else queries.toarray()
        ours = None
        if radius is not None:
            if isinstance(radius, (bool, str)) or not hasattr(radius, "__float__") or not radius >= 0:
                raise ValueError(f"radius is {radius!r}; it must be at least 0")
            ours = float(radius) if metric.to_ours is None else metric.to_ours(float(radius), features)
        if k is not None:
            k = count(k, "n_neighbors")
            if k > self.n_samples_fit_ - (queries is None):
                if queries is None:
                    raise ValueError(f"Expected n_neighbors < n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                                     f"{self.n_samples_fit_}, n_samples = {self.n_samples_fit_}")
                raise ValueError(f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                                 f"{self.n_samples_fit_}, n_samples = {queries.shape[0]}")
        if self._recall() < 1:
            found = self._hashed(base, queries, k, ours, metric.name)
        else:
            found = neighbors(base, queries, k, radius=ours, metric=metric.name, n_jobs=self.n_jobs)
        if metric.from_ours is not None:
            found = found._replace(distances=metric.from_ours(found.distances, features))
        return found, queries is None

    def _hashed(self, base: Any, queries: Any, k: Optional[int], radius: Optional[float], metric: str) -> Neighbors:
        index = self._indexes.get((k, radius))
        if index is None:
            index = Index.tune(base, k, radius=radius, recall=self._recall(), metric=metric, random_state=self._seed,
                               n_jobs=self.n_jobs)
            self._indexes[k, radius] = index
        if index.exact:
            return neighbors(base, queries, k, radius=radius, metric=metric, n_jobs=self.n_jobs)
        asked = base if queries is None else queries
        if k is not None:
            found = index.kneighbors(asked, k + (queries is None), n_jobs=self.n_jobs)
        else:
            assert radius is not None
            found = index.radius_neighbors(asked, radius, n_jobs=self.n_jobs)
        return found if queries is not None else _without_themselves(found)

    def _kneighbors(self, X: Any, n_neighbors: int) -> Neighbors:
        return self._find(X, n_neighbors, None)[0]

    def _within(self, X: Any, radius: float) -> Neighbors:
        return self._find(X, None, radius)[0]

    def _graph(self, found: Neighbors, mode: str) -> Any:
        from scipy.sparse import csr_matrix
        data = found.distances.reshape(-1) if mode == "distance" else np.ones(found.indices.size)
        indices, indptr = found.indices.reshape(-1), found.indptr
        return csr_matrix((np.array(data), np.array(indices), np.array(indptr)),
                          shape=(len(indptr) - 1, self.n_samples_fit_))


def _without_themselves(found: Neighbors) -> Neighbors:
    """Each point's neighbours less the point; of a number, one less."""
    rows = len(found.indptr) - 1
    flat_d, flat_i = found.distances.reshape(-1), found.indices.reshape(-1)
    owner = np.repeat(np.arange(rows), np.diff(found.indptr))
    keep = flat_i != owner
    if found.indices.ndim == 2:
        k = found.indices.shape[1]
        table = keep.reshape(rows, k)
        table[table.all(axis=1), -1] = False
        return Neighbors(flat_d[keep].reshape(rows, k - 1), flat_i[keep].reshape(rows, k - 1),
                         np.arange(rows + 1) * (k - 1), found.n_samples)
    counts = np.bincount(owner[keep], minlength=rows)
    return Neighbors(flat_d[keep], flat_i[keep], np.concatenate([[0], np.cumsum(counts)]), found.n_samples)


class NearestNeighbors(_Search):
    """Nearest neighbours of queries; in place of scikit-learn's of the same name.

    Parameters
    ----------
    n_neighbors : int
    radius : float
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}
        Without effect: the answers are the same.
    leaf_size : int
        Without effect.
    metric : str
        ``"minkowski"``, ``"euclidean"``, ``"l2"``, ``"sqeuclidean"``, ``"manhattan"``, ``"l1"``, ``"cityblock"``,
        ``"cosine"``, ``"hamming"`` (of 0 and 1 alone) or ``"jaccard"`` (of what is not 0).
    p : {1, 2}
        Of minkowski.
    metric_params : None
    n_jobs : int, optional
        Threads; default one per core.
    recall : float, optional
        Below 1: search by locality-sensitive hashing, tuned so that this share of the true neighbours is found on
        average, with confidence 0.95; exact where that is faster. Default: all are found.
    random_state : int, numpy.random.RandomState or None
        Of the hash functions.

    Attributes
    ----------
    n_samples_fit_, n_features_in_ : int
    effective_metric_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import NearestNeighbors
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]])
    >>> distances, indices = NearestNeighbors(n_neighbors=2).fit(X).kneighbors([[0.9, 0.0]])
    >>> indices
    array([[1, 0]])
    """

    def __init__(self, *, n_neighbors: int = 5, radius: float = 1.0, algorithm: str = "auto", leaf_size: int = 30,
                 metric: str = "minkowski", p: float = 2, metric_params: Optional[dict[str, Any]] = None,
                 n_jobs: Optional[int] = None, recall: Optional[float] = None, random_state: Any = None):
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.recall = recall
        self.random_state = random_state

    def kneighbors(self, X: Any = None, n_neighbors: Optional[int] = None, return_distance: bool = True) -> Any:
        """For each query its nearest points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            Default: the fitted points, each without itself.
        n_neighbors : int, optional
            Default: the estimator's.
        return_distance : bool

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            With return_distance.
        indices : ndarray of shape (n_queries, n_neighbors)
            In the order of (distance, index).
        """
        found = self._kneighbors(X, self.n_neighbors if n_neighbors is None else n_neighbors)
        return (found.distances, found.indices) if return_distance else found.indices

    def radius_neighbors(self, X: Any = None, radius: Optional[float] = None, return_distance: bool = True,
                         sort_results: bool = False) -> Any:
        """For each query all points within a radius, inclusive.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            Default: the fitted points, each without itself.
        radius : float, optional
            Default: the estimator's.
        return_distance : bool
        sort_results : bool
            Without effect: they always are, by (distance, index).

        Returns
        -------
        distances : ndarray of shape (n_queries,) of arrays
            With return_distance.
        indices : ndarray of shape (n_queries,) of arrays
        """
        found = self._within(X, self.radius if radius is None else radius)
        indices = _objects(found.indices, found.indptr)
        return (_objects(found.distances, found.indptr), indices) if return_distance else indices

    def kneighbors_graph(self, X: Any = None, n_neighbors: Optional[int] = None, mode: str = "connectivity") -> Any:
        """The graph of the nearest points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            Default: the fitted points, each without itself.
        n_neighbors : int, optional
        mode : {"connectivity", "distance"}
            Ones or distances.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
        """
        choice(mode, "mode", ("connectivity", "distance"))
        return self._graph(self._kneighbors(X, self.n_neighbors if n_neighbors is None else n_neighbors), mode)

    def radius_neighbors_graph(self, X: Any = None, radius: Optional[float] = None, mode: str = "connectivity",
                               sort_results: bool = False) -> Any:
        """The graph of all points within a radius.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features), optional
            Default: the fitted points, each without itself.
        radius : float, optional
        mode : {"connectivity", "distance"}
        sort_results : bool
            Without effect: each row's are in the order of (distance, index).

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
        """
        choice(mode, "mode", ("connectivity", "distance"))
        return self._graph(self._within(X, self.radius if radius is None else radius), mode)


class _NeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Search):  # type: ignore[misc]

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)

    def _more_tags(self) -> dict[str, Any]:
        return {"preserves_dtype": []}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # distances are in float64
        return tags

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """The graph of the points among themselves, each with itself.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_samples)
        """
        return self.fit(X).transform(X)


class KNeighborsTransformer(_NeighborsTransformer):
    """Points as the graph of their nearest neighbours; in place of scikit-learn's of the same name.

    Parameters
    ----------
    mode : {"distance", "connectivity"}
        Distances, with one neighbour more than n_neighbors, since a fitted point is its own; or ones.
    n_neighbors : int
    algorithm, leaf_size, metric, p, metric_params, n_jobs, recall, random_state
        As for `NearestNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import KNeighborsTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> KNeighborsTransformer(n_neighbors=4).fit_transform(X).nnz
    100
    """

    def __init__(self, *, mode: str = "distance", n_neighbors: int = 5, algorithm: str = "auto", leaf_size: int = 30,
                 metric: str = "minkowski", p: float = 2, metric_params: Optional[dict[str, Any]] = None,
                 n_jobs: Optional[int] = None, recall: Optional[float] = None, random_state: Any = None):
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.recall = recall
        self.random_state = random_state

    def transform(self, X: Any) -> Any:
        """The graph from points to fitted points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
        """
        mode = choice(self.mode, "mode", ("connectivity", "distance"))
        return self._graph(self._kneighbors(X, count(self.n_neighbors, "n_neighbors") + (mode == "distance")), mode)


class RadiusNeighborsTransformer(_NeighborsTransformer):
    """Points as the graph of their neighbours within a radius; in place of scikit-learn's of the same name.

    Parameters
    ----------
    mode : {"distance", "connectivity"}
    radius : float
    algorithm, leaf_size, metric, p, metric_params, n_jobs, recall, random_state
        As for `NearestNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import RadiusNeighborsTransformer
    >>> X = np.array([[0.0], [0.5], [3.0]])
    >>> RadiusNeighborsTransformer(radius=1.0).fit_transform(X).toarray().tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, *, mode: str = "distance", radius: float = 1.0, algorithm: str = "auto", leaf_size: int = 30,
                 metric: str = "minkowski", p: float = 2, metric_params: Optional[dict[str, Any]] = None,
                 n_jobs: Optional[int] = None, recall: Optional[float] = None, random_state: Any = None):
        self.mode = mode
        self.radius = radius
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.recall = recall
        self.random_state = random_state

    def transform(self, X: Any) -> Any:
        """The graph from points to fitted points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_queries, n_features)

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
        """
        return self._graph(self._within(X, self.radius), choice(self.mode, "mode", ("connectivity", "distance")))
