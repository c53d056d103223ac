"""What the estimators share: checks of their input, as every scikit-learn from 1.2 on makes them, and their pickles."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

try:
    from sklearn.utils.validation import validate_data as _validate_data  # type: ignore
except ImportError:  # scikit-learn before 1.6
    def _validate_data(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        if "ensure_all_finite" in checks:
            checks["force_all_finite"] = checks.pop("ensure_all_finite")
        return estimator._validate_data(X, y, **checks)

FLOATS = [np.float64, np.float32]
SPARSE = ["csr", "coo"]
PICKLE_VERSION = 1


def _plainly_good(estimator: Any, X: Any, reset: bool = True, ensure_all_finite: bool = True, ensure_min_samples: int = 1,
                  ensure_min_features: int = 1, **others: Any) -> bool:
    """Whether X is an array that scikit-learn's checks of an estimator's input would hand back as it is. With reset the
    estimator knows its features then."""
    if type(X) is not np.ndarray or X.dtype.char not in "fd" or not X.dtype.isnative or X.ndim != 2:
        return False
    if len(X) < ensure_min_samples or X.shape[1] < ensure_min_features:
        return False
    known = estimator.__dict__
    if "feature_names_in_" in known or (not reset and known.get("n_features_in_") != X.shape[1]):
        return False
    if ensure_all_finite:
        with np.errstate(all="ignore"):
            if not math.isfinite(X.sum()):  # it holds NaN or infinity, or its sum overflows
                return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return True


def validate(estimator: Any, X: Any, *y: Any, **checks: Any) -> Any:
    """X, and y when it is given, as float32 or float64, with what scikit-learn says of those that don't fit.

    scikit-learn's checks take 70 microseconds, more than the rest of a transform of a row, and 300 in fit.
    """
    if not y and _plainly_good(estimator, X, **checks):
        return X
    checks = {"accept_sparse": "csr", "dtype": FLOATS, "accept_large_sparse": True, **checks}
    return _validate_data(estimator, X, *y, **checks)


def count(value: Any, name: str, least: int = 1) -> int:
    """An int of a parameter that counts something."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__") or value < least:
        raise ValueError(f"{name} is {value!r}; it must be an int of at least {least}")
    return int(value)


def choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    return value


class Base(BaseEstimator):  # type: ignore[misc]
    """Pickles carry the version of their contents, so that an older package refuses what it can't know."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "_gnomon_pickle": PICKLE_VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_gnomon_pickle", 0)
        if version > PICKLE_VERSION:
            raise ValueError(f"the pickle of {type(self).__name__} has version {version}; this gnomon knows versions up "
                             f"to {PICKLE_VERSION}: a newer one is needed")
        super().__setstate__(state)

    def _more_tags(self) -> dict[str, Any]:  # scikit-learn before 1.6
        return {"preserves_dtype": FLOATS}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
