"""Random projection, nearest neighbours, similarity joins and randomized factorisation.

Functions: `sketch`, `adjoint`, `operator`, `distortion`, `min_dim`, `neighbors`, `join`, `dedup`, `dedup_parts`, `dedup_sign`, `dedup_merge`, `svd`, `hosvd`, `lstsq`, `matmul`.
Classes: `Operator`, `Sketcher`, `Index`, `RaBitQIndex`, `SparseIndex`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Nothing is imported until it is asked for: neither NumPy nor the library. For checkers of types all is as if it were.
if TYPE_CHECKING:
    from ._context import config_context, get_config, set_config
    from ._dedup import Dedup, DedupInfo, DedupParts, dedup, dedup_merge, dedup_parts, dedup_sign
    from ._errors import (ArgumentError, BusyError, Cancelled, DataError, DeviceError, FileError, GnomonError, InternalError,
                          MissingFileError, OutOfMemoryError, UnsupportedError)
    from ._factor import SVD, Certificate, LeastSquares, Tucker, hosvd, lstsq, matmul, svd, svd_blas, svd_missing
    from ._index import Index, Tuning, families
    from ._library import path as library_path
    from ._library import version as __version__
    from ._operator import Operator, kinds, operator
    from ._rabitq import RaBitQIndex
    from ._search import JoinInfo, Neighbors, Pairs, join, metrics, neighbors
    from ._sketch import Distortion, Sketcher, Summary, adjoint, distortion, min_dim, sketch
    from ._sparse_index import SparseIndex

__all__ = [
    "ArgumentError", "BusyError", "Cancelled", "Certificate", "DataError", "Dedup", "DedupInfo", "DedupParts", "DeviceError", "Distortion",
    "FileError", "GnomonError", "Index", "InternalError", "JoinInfo", "LeastSquares", "MissingFileError", "Neighbors",
    "Operator", "OutOfMemoryError", "Pairs", "RaBitQIndex", "SVD", "Sketcher", "SparseIndex", "Summary", "Tucker", "Tuning",
    "UnsupportedError",
    "__version__", "adjoint", "config_context", "dedup", "dedup_merge", "dedup_parts", "dedup_sign", "distortion", "families", "get_config", "hosvd", "join",
    "kinds", "library_path", "lstsq", "matmul", "metrics", "min_dim", "neighbors", "operator", "set_config", "sketch", "svd",
    "svd_blas", "svd_missing",
]

_HOMES = {
    "_context": "config_context get_config set_config",
    "_dedup": "Dedup DedupInfo DedupParts dedup dedup_merge dedup_parts dedup_sign",
    "_errors": (
        "ArgumentError BusyError Cancelled DataError DeviceError FileError GnomonError InternalError "
        "MissingFileError OutOfMemoryError UnsupportedError"
    ),
    "_factor": "SVD Certificate LeastSquares Tucker hosvd lstsq matmul svd svd_blas svd_missing",
    "_index": "Index Tuning families",
    "_operator": "Operator kinds operator",
    "_rabitq": "RaBitQIndex",
    "_search": "JoinInfo Neighbors Pairs join metrics neighbors",
    "_sketch": "Distortion Sketcher Summary adjoint distortion min_dim sketch",
    "_sparse_index": "SparseIndex",
}
_HOME = {name: (home, name) for home, names in _HOMES.items() for name in names.split()}
_HOME["library_path"], _HOME["__version__"] = ("_library", "path"), ("_library", "version")


if not TYPE_CHECKING:  # a checker that sees it takes any name for one of the package's
    def __getattr__(name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module 'gnomon' has no attribute {name!r}")
        from importlib import import_module
        value = globals()[name] = getattr(import_module("." + home[0], __name__), home[1])
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
