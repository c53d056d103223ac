"""Random projections, factorisations, neighbours and least squares as scikit-learn's estimators."""
from __future__ import annotations

from ._decomposition import PCA, TruncatedSVD
from ._linear import SketchedLinearRegression, SketchedRidge
from ._neighbors import KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer
from ._projection import GaussianRandomProjection, RandomProjection, SparseRandomProjection

__all__ = ["GaussianRandomProjection", "KNeighborsTransformer", "NearestNeighbors", "PCA", "RadiusNeighborsTransformer",
           "RandomProjection", "SketchedLinearRegression", "SketchedRidge", "SparseRandomProjection", "TruncatedSVD"]
