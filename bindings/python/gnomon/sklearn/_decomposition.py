"""Randomized factorisations."""
from __future__ import annotations

import math
from typing import Any, Optional, Union

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted

from .._arrays import seed_of
from .._factor import SVD, svd
from ._base import FLOATS, Base, choice, count, validate

# Up to so many rows or columns all components are computed and the first ones kept: that costs little, and the result
# is then that of an exact factorisation.
_SMALL = 500
_ARPACK = 50  # power iterations that stand for ARPACK's convergence
_NORMALIZERS = ("auto", "QR", "LU", "none")


def _iterations(value: Any, name: str) -> Union[int, str]:
    return "auto" if isinstance(value, str) and value == "auto" else count(value, name, 0)


class _Decomposition(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Base):  # type: ignore[misc]
    components_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _product(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.components_.T.astype(X.dtype, copy=False))

    def _back(self, X: Any) -> Any:
        X = check_array(X, dtype=FLOATS, accept_sparse="csr")  # type: ignore
        if X.shape[1] != self._n_features_out:
            raise ValueError(f"X has {X.shape[1]} columns; there are {self._n_features_out} components")
        return X

    def fit(self, X: Any, y: Any = None) -> Any:
        """Finds the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    def _fit(self, X: Any) -> tuple[Any, SVD]:
        raise NotImplementedError


class TruncatedSVD(_Decomposition):
    """The leading singular vectors, without centring; in place of scikit-learn's of the same name.

    Parameters
    ----------
    n_components : int
        At most n_features.
    algorithm : {"randomized", "arpack"}
        ``"arpack"``: 50 power iterations, but not that package. How accurate the values then are depends on how fast
        they fall: to many digits where those left out are well below the last one kept, to two or three where the
        spectrum falls slowly, as that of texts can.
    n_iter : int
        Power iterations.
    n_oversamples : int
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}
        Without effect: iterates are always made orthonormal where that is needed.
    random_state : int, numpy.random.RandomState or None
    tol : float
        Without effect, as scikit-learn's randomized solver has it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        In each row the entry of largest magnitude is not negative.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variances of the transformed columns, and their shares of the sum of all features' variances.
    singular_values_ : ndarray of shape (n_components,)
    n_features_in_ : int

    Examples
    --------
    >>> from gnomon.sklearn import TruncatedSVD
    >>> from scipy.sparse import random
    >>> X = random(100, 1000, density=0.01, format="csr", random_state=0)
    >>> TruncatedSVD(5, random_state=0).fit_transform(X).shape
    (100, 5)
    """

    def __init__(self, n_components: int = 2, *, algorithm: str = "randomized", n_iter: int = 5,
                 n_oversamples: int = 10, power_iteration_normalizer: str = "auto", random_state: Any = None, tol: float = 0.0):
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.tol = tol

    def _fit(self, X: Any) -> tuple[Any, SVD]:
        arpack = choice(self.algorithm, "algorithm", ("randomized", "arpack")) == "arpack"
        choice(self.power_iteration_normalizer, "power_iteration_normalizer", _NORMALIZERS)
        k = count(self.n_components, "n_components")
        X = validate(self, X, ensure_min_features=2)
        if k > X.shape[1]:
            raise ValueError(f"n_components({k}) must be <= n_features({X.shape[1]}).")
        k = min(k, X.shape[0])
        found = svd(X, k, n_oversamples=count(self.n_oversamples, "n_oversamples", 0),
                    n_iter=_ARPACK if arpack else _iterations(self.n_iter, "n_iter"), n_test_vectors=0,
                    random_state=seed_of(self.random_state))
        self.components_ = np.array(found.Vt)
        self.singular_values_ = found.s.astype(X.dtype)
        projected = self._product(X)
        self.explained_variance_ = np.var(projected, axis=0)
        if hasattr(X, "tocsr"):
            total = mean_variance_axis(X, axis=0)[1].sum()  # type: ignore
        else:
            total = np.var(X, axis=0).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            self.explained_variance_ratio_ = self.explained_variance_ / total
        return projected, found

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Finds the components and projects the same points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        found: np.ndarray = self._fit(X)[0]
        return found

    def transform(self, X: Any) -> np.ndarray:
        """Projects points on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._product(validate(self, X, reset=False))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Back to the space of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return np.asarray(self._back(X) @ self.components_)


class PCA(_Decomposition):
    """Principal components, of sparse points too, which are never made dense; in place of scikit-learn's.

    Parameters
    ----------
    n_components : int, float, "mle" or None
        How many; a float between 0 and 1: as many as explain more than this share of the variance; None: all,
        min(n_samples, n_features); ``"mle"``: by Minka's estimate.
    copy : bool
        Without effect: the points are never changed.
    whiten : bool
        Transformed columns have unit variance.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}
        One routine does all. ``"full"`` and ``"covariance_eigh"`` compute all components, whose result is exact, and
        keep the first; ``"auto"`` does where there are at most 500 rows or columns; ``"arpack"``: 50 power
        iterations, whose values are accurate to many digits where those left out are well below the last one kept,
        and to two or three where the spectrum falls slowly, as that of texts can.
    tol : float
        Without effect.
    iterated_power : int or "auto"
        Power iterations; ``"auto"``: as many as `gnomon.svd` makes.
    n_oversamples : int
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}
        Without effect.
    random_state : int, numpy.random.RandomState or None

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        In each row the entry of largest magnitude is not negative.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray of shape (n_components,)
    mean_ : ndarray of shape (n_features,)
    n_components_, n_samples_, n_features_in_ : int
    noise_variance_ : float
        The mean of the variances that the components leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import PCA
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> PCA(2).fit(X).explained_variance_ratio_.round(4).tolist()
    [0.9924, 0.0076]
    """

    def __init__(self, n_components: Union[int, float, str, None] = None, *, copy: bool = True, whiten: bool = False,
                 svd_solver: str = "auto", tol: float = 0.0, iterated_power: Union[int, str] = "auto",
                 n_oversamples: int = 10, power_iteration_normalizer: str = "auto", random_state: Any = None):
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state

    def _wanted(self, shape: tuple[int, int]) -> Union[int, float, str]:
        """How many components, or the share of the variance, or "mle"."""
        n_components, most = self.n_components, min(shape)
        if n_components is None:
            return most
        if isinstance(n_components, str):
            choice(n_components, "n_components", ("mle",))
            if shape[0] < shape[1]:
                raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
            return "mle"
        if isinstance(n_components, (float, np.floating)):
            if not 0 < n_components < 1:
                raise ValueError(f"n_components is {n_components!r}; a float must be above 0 and below 1")
            return float(n_components)
        k = count(n_components, "n_components")
        if k > most:
            raise ValueError(f"n_components={k} must be between 1 and min(n_samples, n_features)={most}")
        return k

    def _fit(self, X: Any) -> tuple[Any, SVD]:
        solver = choice(self.svd_solver, "svd_solver", ("auto", "full", "covariance_eigh", "arpack", "randomized"))
        choice(self.power_iteration_normalizer, "power_iteration_normalizer", _NORMALIZERS)
        X = validate(self, X, ensure_min_samples=2)
        n_samples, n_features = X.shape
        most = min(X.shape)
        wanted = self._wanted(X.shape)
        options: dict[str, Any] = dict(center=True, n_oversamples=count(self.n_oversamples, "n_oversamples", 0),
                                       n_test_vectors=0, random_state=seed_of(self.random_state),
                                       n_iter=_iterations(self.iterated_power, "iterated_power"))
        if solver == "arpack":
            options["n_iter"] = _ARPACK
        whole = solver in ("full", "covariance_eigh") or wanted == "mle" or (solver == "auto" and most <= _SMALL)
        if whole:
            found = svd(X, most, **options)
        elif isinstance(wanted, float):
            # The norm of what is left is at most the square root of the share of the variance that may be.
            found = svd(X, None, tol=math.sqrt(1 - wanted), **options)
        else:
            found = svd(X, int(wanted), **options)
        variance = found.s ** 2 / (n_samples - 1)
        total = found.total_variance
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = variance / total
        if wanted == "mle":
            from sklearn.decomposition._pca import _infer_dimension
            k = max(1, int(_infer_dimension(np.pad(variance, (0, n_features - len(variance))), n_samples)))
        elif isinstance(wanted, float):
            k = min(int(np.searchsorted(np.cumsum(ratio), wanted, side="right")) + 1, len(ratio))
        else:
            k = int(wanted)
        k = min(k, len(variance))
        self.n_components_, self.n_samples_ = k, n_samples
        self.components_ = np.array(found.Vt[:k])
        self.mean_ = np.asarray(found.mean).astype(X.dtype)
        self.singular_values_ = found.s[:k].astype(X.dtype)
        self.explained_variance_ = variance[:k].astype(X.dtype)
        self.explained_variance_ratio_ = ratio[:k].astype(X.dtype)
        left = max(0.0, float(total - variance[:k].sum()))
        if whole:
            left = float(variance[k:].sum())
        self.noise_variance_ = left / (most - k) if k < most else 0.0
        return X, found

    def _scale(self, dtype: Any) -> np.ndarray:
        """Standard deviations of the components; those of nothing count as the smallest number above 0."""
        found = np.sqrt(self.explained_variance_)
        least = np.finfo(found.dtype).eps
        return np.asarray(np.where(found < least, least, found), dtype)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Finds the components and projects the same points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        X, found = self._fit(X)
        k = self.n_components_
        projected: np.ndarray = found.U[:, :k] * found.s[:k].astype(X.dtype)
        return projected / self._scale(X.dtype) if self.whiten else projected

    def transform(self, X: Any) -> np.ndarray:
        """Projects points, less the mean, on the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate(self, X, reset=False)
        components, mean = self.components_.astype(X.dtype, copy=False), self.mean_.astype(X.dtype, copy=False)
        projected: np.ndarray
        if hasattr(X, "tocsr"):
            projected = np.asarray(X @ components.T) - mean @ components.T
        else:
            projected = (X - mean) @ components.T
        return projected / self._scale(X.dtype) if self.whiten else projected

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Back to the space of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = self._back(X)
        components = self.components_
        if self.whiten:
            components = self._scale(components.dtype)[:, None] * components
        return np.asarray(X @ components + self.mean_)

    def get_covariance(self) -> np.ndarray:
        """The covariance of the model: that of the components, and noise in all other directions.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        above = np.maximum(self.explained_variance_ - self.noise_variance_, 0)
        found: np.ndarray = (self.components_.T * above) @ self.components_
        found.flat[::len(found) + 1] += self.noise_variance_
        return found

    def get_precision(self) -> np.ndarray:
        """The inverse of the model's covariance.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        noise = float(self.noise_variance_)
        if noise == 0:
            return np.asarray(np.linalg.inv(self.get_covariance()))
        # Components are orthonormal, so that the inverse is known: 1 / variance along them, 1 / noise elsewhere.
        along = 1 / np.maximum(self.explained_variance_, noise) - 1 / noise
        found: np.ndarray = (self.components_.T * along) @ self.components_
        found.flat[::len(found) + 1] += 1 / noise
        return found

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-likelihood of each point under the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate(self, X, reset=False, accept_sparse=False)
        centred, precision = X - self.mean_, self.get_precision()
        constant = X.shape[1] * math.log(2 * math.pi) - np.linalg.slogdet(precision)[1]
        found: np.ndarray = -0.5 * (np.sum(centred * (centred @ precision), axis=1) + constant)
        return found

    def score(self, X: Any, y: Optional[Any] = None) -> float:
        """The mean log-likelihood of points under the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))
