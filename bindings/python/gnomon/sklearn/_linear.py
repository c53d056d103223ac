"""Least squares, preconditioned by a random sketch."""
from __future__ import annotations

import math
import warnings
from typing import Any, Optional, Union

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._arrays import seed_of
from .._factor import lstsq
from ._base import Base, choice, count, validate


def _weighted(X: Any, root: np.ndarray) -> Any:
    """X with each row times its weight's square root."""
    if hasattr(X, "tocsr"):
        from scipy.sparse import diags
        return (diags(root) @ X).tocsr()
    return X * root[:, None]


class _Linear(MultiOutputMixin, RegressorMixin, Base):  # type: ignore[misc]
    fit_intercept: bool
    max_iter: Optional[int]
    n_iter_: int
    positive: bool
    random_state: Any
    tol: float

    def _alphas(self, targets: int) -> np.ndarray:
        return np.zeros(targets)

    def _solve(self, X: Any, y: np.ndarray, alpha: float) -> np.ndarray:
        """Coefficients, one column a target; the last row the intercepts' where X is sparse and has them."""
        sparse = hasattr(X, "tocsr")
        intercept = sparse and self.fit_intercept
        damp = math.sqrt(alpha)
        if intercept and damp:
            # What is penalised is not the whole solution: the penalty goes into rows of the matrix.
            from scipy.sparse import csr_matrix, hstack, identity, vstack
            width = X.shape[1] - 1
            rows = hstack([damp * identity(width, format="csr", dtype=X.dtype), csr_matrix((width, 1), dtype=X.dtype)])
            X = vstack([X, rows], format="csr")
            y = np.vstack([y, np.zeros((width, y.shape[1]), y.dtype)])
            damp = 0.0
        found = lstsq(X, y, damp=damp, tol=self.tol, n_test_vectors=0, random_state=self._seed,
                      max_iter=200 if self.max_iter is None else count(self.max_iter, "max_iter"),
                      n_jobs=getattr(self, "n_jobs", None))
        if not found.converged:
            warnings.warn(f"{found.n_iter} iterations did not reach a backward error of {self.tol}: more (max_iter) or "
                          "a larger tol are needed", ConvergenceWarning)
        self.n_iter_ = max(self.n_iter_, 1 + found.n_iter)  # the sketch's own solution is the first
        x: np.ndarray = found.x
        return x

    def fit(self, X: Any, y: Any, sample_weight: Optional[Any] = None) -> Any:
        """Finds the coefficients.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if self.positive:
            raise ValueError("positive=True: coefficients that may not be negative are not implemented")
        X, y = validate(self, X, y, multi_output=True, y_numeric=True)
        sparse = hasattr(X, "tocsr")
        self._seed = seed_of(self.random_state)
        self.n_iter_ = 0
        flat = y.ndim == 1
        right = np.array(y.reshape(len(y), -1), np.float64)
        alphas = self._alphas(right.shape[1])
        root: Optional[np.ndarray] = None
        weights: Optional[np.ndarray] = None
        if sample_weight is not None:
            weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
            if (weights < 0).any():
                raise ValueError("sample_weight has negative weights")
            root = np.sqrt(weights)
        x_mean, y_mean = np.zeros(X.shape[1]), np.zeros(right.shape[1])
        if self.fit_intercept:
            if sparse:
                from scipy.sparse import csr_matrix, hstack
                X = hstack([X, csr_matrix(np.ones((X.shape[0], 1), X.dtype))], format="csr")
            else:
                if weights is not None and not weights.any():
                    raise ValueError("sample_weight: all weights are 0")
                x_mean = np.average(X, axis=0, weights=weights).astype(np.float64)
                X = X - x_mean
            y_mean = np.average(right, axis=0, weights=weights)
            right -= y_mean
        if root is not None:
            X, right = _weighted(X, root), right * root[:, None]
        solved = np.empty((X.shape[1], right.shape[1]))
        for alpha in np.unique(alphas):
            those = np.flatnonzero(alphas == alpha)
            solved[:, those] = self._solve(X, np.ascontiguousarray(right[:, those]), float(alpha))
        offset = y_mean
        if self.fit_intercept and sparse:
            solved, offset = solved[:-1], y_mean + solved[-1]
        coefficients = solved.T
        offset = offset - coefficients @ x_mean
        self.coef_ = coefficients[0].copy() if flat else coefficients.copy()
        self.intercept_: Any = 0.0
        if self.fit_intercept:
            self.intercept_ = float(offset[0]) if flat else offset
        return self

    def predict(self, X: Any) -> np.ndarray:
        """What the model gives for points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        X = validate(self, X, reset=False)
        found: np.ndarray = np.asarray(X @ self.coef_.T) + self.intercept_
        return found


class SketchedLinearRegression(_Linear):
    """Ordinary least squares; in place of scikit-learn's ``LinearRegression``.

    The solution is that of all the data, to rounding: the sketch makes the iterations few. Of several solutions the
    shortest is found; for sparse points with an intercept, the shortest together with the intercept.

    Parameters
    ----------
    fit_intercept : bool
    copy_X : bool
        Without effect: the points are never changed.
    tol : float
        The backward error to be reached, relative to the Frobenius norm of X.
    n_jobs : int, optional
        Threads; default one per core.
    positive : bool
        Only False.
    max_iter : int, optional
        Default 200.
    random_state : int, numpy.random.RandomState or None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    n_iter_ : int
        Steps; the first is the sketch's own solution.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import SketchedLinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0]])
    >>> model = SketchedLinearRegression(random_state=0).fit(X, X @ [1, 2] + 3)
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6)
    ([1.0, 2.0], 3.0)
    """

    def __init__(self, *, fit_intercept: bool = True, copy_X: bool = True, tol: float = 1e-15,
                 n_jobs: Optional[int] = None, positive: bool = False, max_iter: Optional[int] = None,
                 random_state: Any = None):
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.max_iter = max_iter
        self.random_state = random_state


class SketchedRidge(_Linear):
    """Least squares with a penalty on the coefficients' squares; in place of scikit-learn's ``Ridge``.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,)
        The penalty's weight, at least 0.
    fit_intercept : bool
        The intercept is not penalised.
    copy_X : bool
        Without effect: the points are never changed.
    max_iter : int, optional
        Default 200.
    tol : float
        The backward error to be reached, relative to the Frobenius norm of X.
    solver : str
        Any of scikit-learn's names; without effect.
    positive : bool
        Only False.
    random_state : int, numpy.random.RandomState or None

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    n_iter_ : int
        Steps; the first is the sketch's own solution.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.sklearn import SketchedRidge
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> SketchedRidge(alpha=2.0, random_state=0).fit(X, [0.0, 1.0, 2.0]).coef_.round(6).tolist()
    [0.5]
    """

    def __init__(self, alpha: Union[float, Any] = 1.0, *, fit_intercept: bool = True, copy_X: bool = True,
                 max_iter: Optional[int] = None, tol: float = 1e-15, solver: str = "auto", positive: bool = False,
                 random_state: Any = None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def _alphas(self, targets: int) -> np.ndarray:
        choice(self.solver, "solver", ("auto", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"))
        alphas = np.asarray(self.alpha, np.float64).reshape(-1)
        if len(alphas) not in (1, targets):
            raise ValueError(f"alpha has {len(alphas)} elements; there are {targets} targets")
        if not (np.isfinite(alphas).all() and (alphas >= 0).all()):
            raise ValueError(f"alpha is {self.alpha!r}; it must be at least 0")
        return np.broadcast_to(alphas, (targets,)).copy()
