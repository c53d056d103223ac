"""The estimators beside scikit-learn's rules and scikit-learn's own."""
import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")
scipy_sparse = pytest.importorskip("scipy.sparse")

from sklearn import random_projection  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import gnomon  # noqa: E402
from gnomon.sklearn import (  # noqa: E402
    PCA, GaussianRandomProjection, KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer,
    RandomProjection, SketchedLinearRegression, SketchedRidge, SparseRandomProjection, TruncatedSVD)

X = np.random.default_rng(0).normal(size=(30, 400))


@parametrize_with_checks(
    [GaussianRandomProjection(n_components=2), SparseRandomProjection(n_components=2), RandomProjection(n_components=2)]
    + [RandomProjection(n_components=2, kind=kind) for kind in ("sjlt", "srht", "kronecker")]
    + [TruncatedSVD(), PCA(), PCA(1, whiten=True), PCA(1, svd_solver="randomized"), NearestNeighbors(),
       NearestNeighbors(recall=0.9), KNeighborsTransformer(), RadiusNeighborsTransformer(), SketchedLinearRegression(),
       SketchedRidge(), SketchedRidge(fit_intercept=False)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ours, theirs", [
    (GaussianRandomProjection, random_projection.GaussianRandomProjection),
    (SparseRandomProjection, random_projection.SparseRandomProjection)])
class TestDropIn:
    def test_signature(self, ours, theirs):
        assert ours().get_params() == theirs().get_params()

    def test_shapes_and_kinds_of_results(self, ours, theirs):
        sparse = pytest.importorskip("scipy.sparse")
        for points in (X, X.astype(np.float32), sparse.csr_matrix(X)):
            for arguments in (dict(n_components=20), dict(n_components="auto", eps=0.5),
                              dict(n_components=20, compute_inverse_components=True)):
                a, b = (one(random_state=0, **arguments).fit(points) for one in (ours, theirs))
                found, expected = a.transform(points), b.transform(points)
                assert found.shape == expected.shape and found.dtype == expected.dtype
                assert sparse.issparse(found) == sparse.issparse(expected)
                assert a.components_.shape == b.components_.shape
                assert sparse.issparse(a.components_) == sparse.issparse(b.components_)
                assert a.inverse_transform(found).shape == X.shape
                assert list(a.get_feature_names_out()) == [f"{ours.__name__.lower()}{i}" for i in range(found.shape[1])]

    def test_transform_is_the_product_with_components(self, ours, theirs):
        a = ours(20, random_state=3).fit(X)
        assert np.allclose(a.transform(X), X @ a.components_.T)
        back = a.inverse_transform(a.transform(X))
        assert np.allclose(a.transform(back), a.transform(X))

    def test_pickle_holds_the_descriptor_alone(self, ours, theirs):
        wide = np.broadcast_to(np.float32(1), (2, 100000))
        a = ours(500, random_state=3).fit(wide)
        data = pickle.dumps(a)
        assert len(data) < 4000
        assert np.array_equal(pickle.loads(data).transform(wide), a.transform(wide)) or ours is SparseRandomProjection
        assert pickle.loads(data).operator_ == a.operator_ and clone(a).get_params() == a.get_params()


def test_set_output():
    pandas = pytest.importorskip("pandas")
    found = RandomProjection(3, random_state=0).set_output(transform="pandas").fit_transform(X)
    assert isinstance(found, pandas.DataFrame) and list(found.columns) == ["randomprojection0", "randomprojection1",
                                                                           "randomprojection2"]


@pytest.mark.parametrize("kind", gnomon.kinds())
def test_every_kind_is_the_functions(kind):
    found = RandomProjection(16, kind=kind, random_state=7).fit_transform(X)
    assert np.array_equal(found, gnomon.sketch(X, 16, kind=kind, random_state=7))


@pytest.mark.parametrize("arguments", [dict(kind="none"), dict(n_components=0), dict(n_components="some"),
                                       dict(n_components="auto", eps=0.0), dict(n_components="auto", eps=0.01),
                                       dict(parameters=dict(density=2.0))])
def test_refused(arguments):
    with pytest.raises(ValueError):
        RandomProjection(**{"n_components": 4, **arguments}).fit(X)


@pytest.mark.parametrize("make", [lambda: GaussianRandomProjection(4, random_state=0), lambda: SparseRandomProjection(4, random_state=0),
                                  lambda: RandomProjection(4, kind="sjlt", random_state=0)])
@pytest.mark.parametrize("form", [np.asarray, scipy_sparse.csr_matrix, scipy_sparse.coo_matrix])
def test_the_library_looks_for_nan_and_scikit_learn_says_it(make, form):
    X = np.random.default_rng(0).normal(size=(30, 20))

    def bytes_of(found):
        return (found.toarray() if hasattr(found, "toarray") else found).tobytes()

    for dtype in (np.float32, np.float64):
        fitted = make().fit(form(X.astype(dtype)))
        whole = make().fit_transform(form(X.astype(dtype)))
        assert bytes_of(whole) == bytes_of(fitted.transform(form(X.astype(dtype)))) and whole.dtype == dtype
        for bad, word in ((np.nan, "NaN"), (np.inf, "infinity")):
            wrong = X.astype(dtype)
            wrong[3, 7] = bad
            for call in (lambda: make().fit(form(wrong)), lambda: make().fit_transform(form(wrong)), lambda: fitted.transform(form(wrong))):
                with pytest.raises(ValueError, match=f"Input X contains {word}"):
                    call()
    few = X[:, :2].copy()  # more components than features: NumPy makes the product
    with pytest.warns(UserWarning, match="n_features < n_components"):
        assert make().fit_transform(form(few)).shape == (30, 4)
    few[1, 1] = np.nan
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="Input X contains NaN"):
        make().fit_transform(form(few))
    named = make().set_output(transform="default").fit(X)
    with pytest.raises(ValueError, match="30 features"):
        named.transform(np.zeros((2, 30)))


@pytest.mark.parametrize("columns", [20, 5])
def test_points_that_are_refused_fit_nothing(columns):
    X = np.random.default_rng(0).normal(size=(30, 20))
    wrong = np.random.default_rng(1).normal(size=(30, columns))
    wrong[3, 4] = np.nan
    fitted, fresh = GaussianRandomProjection(4, random_state=0).fit(X), GaussianRandomProjection(4, random_state=0)
    before = fitted.transform(X).tobytes()
    for estimator in (fitted, fresh):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            estimator.fit_transform(wrong)
    assert fitted.n_features_in_ == 20 and fitted.transform(X).tobytes() == before
    assert not hasattr(fresh, "operator_") and not hasattr(fresh, "n_features_in_")
    with pytest.raises(NotFittedError):
        fresh.transform(X)
