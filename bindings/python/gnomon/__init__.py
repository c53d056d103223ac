"""Random projection, nearest neighbours, similarity joins and randomized factorisation.

Functions: `sketch`, `adjoint`, `operator`, `distortion`, `min_dim`, `neighbors`, `join`, `dedup`, `dedup_sign`, `dedup_merge`, `svd`, `hosvd`, `lstsq`, `matmul`.
Classes: `Operator`, `Sketcher`, `Index`, `SparseIndex`.
"""
from __future__ import annotations

from ._context import config_context, get_config, set_config
from ._dedup import Dedup, DedupInfo, dedup, dedup_merge, dedup_sign
from ._errors import (ArgumentError, BusyError, Cancelled, DataError, DeviceError, FileError, GnomonError, InternalError,
                      MissingFileError, OutOfMemoryError, UnsupportedError)
from ._factor import SVD, Certificate, LeastSquares, Tucker, hosvd, lstsq, matmul, svd, svd_blas, svd_missing
from ._index import Index, Tuning, families
from ._library import path as library_path
from ._library import version as __version__
from ._operator import Operator, kinds, operator
from ._search import JoinInfo, Neighbors, Pairs, join, metrics, neighbors
from ._sketch import Distortion, Sketcher, Summary, adjoint, distortion, min_dim, sketch
from ._sparse_index import SparseIndex

__all__ = [
    "ArgumentError", "BusyError", "Cancelled", "Certificate", "DataError", "Dedup", "DedupInfo", "DeviceError", "Distortion",
    "FileError", "GnomonError", "Index", "InternalError", "JoinInfo", "LeastSquares", "MissingFileError", "Neighbors",
    "Operator", "OutOfMemoryError", "Pairs", "SVD", "Sketcher", "SparseIndex", "Summary", "Tucker", "Tuning", "UnsupportedError",
    "__version__", "adjoint", "config_context", "dedup", "dedup_merge", "dedup_sign", "distortion", "families", "get_config", "hosvd", "join",
    "kinds", "library_path", "lstsq", "matmul", "metrics", "min_dim", "neighbors", "operator", "set_config", "sketch", "svd",
    "svd_blas", "svd_missing",
]
