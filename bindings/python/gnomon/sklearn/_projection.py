"""Random projections as scikit-learn's estimators."""
from __future__ import annotations

import warnings
from typing import Any, Optional, Union

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.utils.validation import check_is_fitted

from .._arrays import seed_of
from .._errors import ArgumentError
from .._operator import Operator
from .._sketch import sketch
from ._base import SPARSE, Base, validate


class _Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Base):  # type: ignore[misc]
    """What all of them share. The operator is never stored: a fitted estimator holds, and is pickled with, its descriptor
    alone. ``components_`` is made when it is asked for."""

    compute_inverse_components: bool
    eps: float
    n_components: Any
    n_features_in_: int
    random_state: Any

    def _kind(self) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def _checked(self, X: Any, reset: bool, finite: bool = True) -> Any:
        return validate(self, X, accept_sparse=SPARSE, reset=reset, ensure_all_finite=finite)

    def _projected(self, given: Any, X: Any, reset: bool) -> Any:
        """Projects checked points of which nobody has looked whether they are finite: the library does. scikit-learn says it
        where they are not."""
        try:
            if self.operator_.shape[1] > self.n_features_in_:
                X = self._checked(given, reset=reset)
                found = X @ self._dense().T.astype(X.dtype)
            else:
                found = sketch(X, self.operator_, dtype=X.dtype, n_jobs=getattr(self, "n_jobs", None))
        except ArgumentError as error:
            if error.status == "GNOMON_ERROR_NONFINITE":
                self._checked(given, reset=reset)
            raise
        if not getattr(self, "dense_output", True) and hasattr(X, "tocsr"):
            from scipy.sparse import csr_matrix
            return csr_matrix(found)
        return found

    def fit(self, X: Any, y: Any = None) -> Any:
        """Draws the operator for so many features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Its shape and type alone count.
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(self._checked(X, reset=True))

    def _fit(self, X: Any) -> Any:
        n_samples, n_features = X.shape
        n_components = self.n_components
        if isinstance(n_components, str):
            if n_components != "auto":
                raise ValueError(f"n_components is {n_components!r}; it must be an int or 'auto'")
            eps = self.eps
            if not 0 < eps < 1:
                raise ValueError(f"eps is {eps}; it must be above 0 and below 1")
            # johnson_lindenstrauss_min_dim rounds down; so does its drop-in
            k = int(4 * np.log(n_samples) / (eps ** 2 / 2 - eps ** 3 / 3))
            if k <= 0:
                raise ValueError(f"eps={eps} and n_samples={n_samples} lead to a target dimension of {k} which is invalid")
            if k > n_features:
                raise ValueError(f"eps={eps} and n_samples={n_samples} lead to a target dimension of {k} which is larger "
                                 f"than the original space with n_features={n_features}")
        else:
            k = n_components
            if isinstance(k, bool) or not hasattr(k, "__index__") or k < 1:
                raise ValueError(f"n_components is {k!r}; it must be a positive int or 'auto'")
            if k > n_features:
                warnings.warn(f"The number of components is higher than the number of features: n_features < n_components "
                              f"({n_features} < {k}). The dimensionality of the problem will not be reduced.",
                              DataDimensionalityWarning)
        kind, parameters = self._kind()
        # An operator has at most as many rows as columns: features beyond X's own stand for none.
        self.operator_ = Operator(int(k), max(int(k), n_features), kind=kind, random_state=seed_of(self.random_state),
                                  **parameters)
        self.n_components_ = int(k)
        self._n_features_out = self.n_components_
        self._dtype = np.dtype(X.dtype)
        self._inverse: Optional[np.ndarray] = None
        if self.compute_inverse_components:
            self.inverse_components_ = np.linalg.pinv(self._dense())
        return self

    def _dense(self) -> np.ndarray:
        found: np.ndarray = self.operator_.block(0, 0, self.n_components_, self.n_features_in_, dtype=self._dtype)
        return found

    @property
    def components_(self) -> Any:
        """The operator's entries, made anew each time; sparse for sparse kinds."""
        check_is_fitted(self, "operator_")
        whole = self._dense()
        if self.operator_.fill < 0.5:
            from scipy.sparse import csr_matrix
            return csr_matrix(whole)
        return whole

    def transform(self, X: Any) -> Any:
        """Projects points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 for float32, else float64.
        """
        check_is_fitted(self, "operator_")
        return self._projected(X, self._checked(X, reset=False, finite=False), reset=False)

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]
        """Takes the points' shape and type, and projects them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 for float32, else float64.
        """
        before = dict(self.__dict__)
        try:
            checked = self._checked(X, reset=True, finite=False)
            return self._fit(checked)._projected(X, checked, reset=True)
        except BaseException:  # points that are refused fit nothing
            self.__dict__ = before
            raise

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Back to the space of the features, by the pseudo-inverse of the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "operator_")
        from sklearn.utils import check_array
        X = check_array(X, dtype=[np.float64, np.float32], accept_sparse=["csr", "csc"])  # type: ignore
        if self.compute_inverse_components:
            inverse: Any = self.inverse_components_
        else:
            if getattr(self, "_inverse", None) is None:
                self._inverse = np.linalg.pinv(self._dense())
            inverse = self._inverse
        return np.asarray(X @ inverse.T)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_inverse", None)
        return state


class GaussianRandomProjection(_Projection):
    """Projection by an operator of normal entries; in place of scikit-learn's of the same name.

    Parameters
    ----------
    n_components : int or "auto"
        ``"auto"``: by the Johnson-Lindenstrauss bound at eps.
    eps : float
    compute_inverse_components : bool
        Make the pseudo-inverse for `inverse_transform` in `fit`.
    random_state : int, numpy.random.RandomState or None

    Attributes
    ----------
    operator_ : gnomon.Operator
    n_components_ : int
    components_ : ndarray of shape (n_components, n_features)
        Made when asked for.
    inverse_components_ : ndarray of shape (n_features, n_components)
        With compute_inverse_components.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import GaussianRandomProjection
    >>> X = np.random.default_rng(0).normal(size=(25, 3000))
    >>> GaussianRandomProjection(random_state=0).fit_transform(X).shape
    (25, 2759)
    """

    def __init__(self, n_components: Union[int, str] = "auto", *, eps: float = 0.1,
                 compute_inverse_components: bool = False, random_state: Any = None):
        self.n_components = n_components
        self.eps = eps
        self.compute_inverse_components = compute_inverse_components
        self.random_state = random_state

    def _kind(self) -> tuple[str, dict[str, Any]]:
        return "gaussian", {}


class SparseRandomProjection(_Projection):
    """Projection by a sparse operator; in place of scikit-learn's of the same name.

    Parameters
    ----------
    n_components : int or "auto"
    density : float or "auto"
        The probability of a nonzero; ``"auto"``: 1 / sqrt(n_features).
    eps : float
    dense_output : bool
        Dense sketches of sparse points too.
    compute_inverse_components : bool
    random_state : int, numpy.random.RandomState or None

    Attributes
    ----------
    operator_ : gnomon.Operator
    n_components_ : int
    density_ : float
    components_ : sparse matrix of shape (n_components, n_features)
        Made when asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import SparseRandomProjection
    >>> X = np.random.default_rng(0).normal(size=(25, 3000))
    >>> SparseRandomProjection(random_state=0).fit_transform(X).shape
    (25, 2759)
    """

    def __init__(self, n_components: Union[int, str] = "auto", *, density: Union[float, str] = "auto", eps: float = 0.1,
                 dense_output: bool = False, compute_inverse_components: bool = False, random_state: Any = None):
        self.n_components = n_components
        self.density = density
        self.eps = eps
        self.dense_output = dense_output
        self.compute_inverse_components = compute_inverse_components
        self.random_state = random_state

    def _kind(self) -> tuple[str, dict[str, Any]]:
        density = 1 / np.sqrt(self.n_features_in_) if isinstance(self.density, str) else self.density
        if isinstance(self.density, str) and self.density != "auto" or not 0 < density <= 1:
            raise ValueError(f"density is {self.density!r}; it must be 'auto', or above 0 and at most 1")
        self.density_ = float(density)
        return "very-sparse", {"density": self.density_}


class RandomProjection(_Projection):
    """Projection by an operator of any kind.

    Parameters
    ----------
    n_components : int or "auto"
    kind : str
        One of `gnomon.kinds`.
    eps : float
    parameters : dict, optional
        Of the operator: see `gnomon.Operator`.
    compute_inverse_components : bool
    random_state : int, numpy.random.RandomState or None
    n_jobs : int, optional
        Threads; default one per core.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import RandomProjection
    >>> X = np.random.default_rng(0).normal(size=(25, 3000))
    >>> RandomProjection(100, kind="sjlt", random_state=0).fit_transform(X).shape
    (25, 100)
    """

    def __init__(self, n_components: Union[int, str] = "auto", *, kind: str = "rademacher", eps: float = 0.1,
                 parameters: Optional[dict[str, Any]] = None, compute_inverse_components: bool = False,
                 random_state: Any = None, n_jobs: Optional[int] = None):
        self.n_components = n_components
        self.kind = kind
        self.eps = eps
        self.parameters = parameters
        self.compute_inverse_components = compute_inverse_components
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _kind(self) -> tuple[str, dict[str, Any]]:
        return self.kind, dict(self.parameters or {})
