"""What the estimators find beside scikit-learn's, on the data that people have and on data that nobody wants."""
import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")
sparse = pytest.importorskip("scipy.sparse")

from sklearn import decomposition, linear_model, neighbors  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.cluster import DBSCAN  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

import gnomon  # noqa: E402
from gnomon import sklearn as ours  # noqa: E402

DIGITS, LABELS = load_digits(return_X_y=True)
CLASSES = [getattr(ours, name) for name in ours.__all__]


def texts(rows=300, words=900, dtype=np.float64, seed=0):
    """Rows like TF-IDF's: few words each, frequent ones first, of length 1."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((rows, words))
    for row in counts:
        np.add.at(row, np.minimum(rng.zipf(1.3, 40) - 1, words - 1), 1)
    weights = counts * np.log(rows / (1 + (counts > 0).sum(0)))
    return sparse.csr_matrix(weights / np.linalg.norm(weights, axis=1)[:, None], dtype=dtype)


TEXTS = texts()


def made(cls, **arguments):
    known = cls().get_params()
    defaults = {"n_components": 3, "random_state": 0, "radius": 20.0}
    return cls(**{**{name: value for name, value in defaults.items() if name in known}, **arguments})


def answer(estimator, X):
    """What a fitted estimator says of points, as one array."""
    if hasattr(estimator, "predict"):
        return estimator.predict(X)
    if hasattr(estimator, "kneighbors"):
        return estimator.kneighbors(X)[0]
    found = estimator.transform(X)
    return found.toarray() if sparse.issparse(found) else found


def fitted(cls, X, **arguments):
    return made(cls, **arguments).fit(X, LABELS[:X.shape[0]].astype(float))


@pytest.mark.parametrize("cls, theirs", [
    (ours.TruncatedSVD, decomposition.TruncatedSVD), (ours.PCA, decomposition.PCA),
    (ours.NearestNeighbors, neighbors.NearestNeighbors), (ours.KNeighborsTransformer, neighbors.KNeighborsTransformer),
    (ours.RadiusNeighborsTransformer, neighbors.RadiusNeighborsTransformer),
    (ours.SketchedRidge, linear_model.Ridge), (ours.SketchedLinearRegression, linear_model.LinearRegression)])
def test_arguments_are_theirs(cls, theirs):
    added = {"recall", "random_state", "max_iter", "tol"}
    mine, other = cls().get_params(), theirs().get_params()
    assert set(other) <= set(mine) and set(mine) - set(other) <= added
    assert {k: v for k, v in mine.items() if k not in added} == {k: v for k, v in other.items() if k not in added}


class TestPCA:
    @pytest.mark.parametrize("whiten", [False, True])
    @pytest.mark.parametrize("n_components", [None, 10, 0.9, "mle"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_digits(self, n_components, whiten, dtype):
        X = DIGITS.astype(dtype)
        if n_components == "mle" and dtype == np.float32:
            pytest.skip("scikit-learn's fails in float32: equal variances")
        a = ours.PCA(n_components, whiten=whiten, random_state=0).fit(X)
        b = decomposition.PCA(n_components, whiten=whiten, svd_solver="full").fit(X)
        assert a.n_components_ == b.n_components_ and a.components_.dtype == dtype == a.transform(X).dtype
        tol = 1e-9 if dtype == np.float64 else 2e-3
        for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "noise_variance_"):
            assert np.allclose(getattr(a, name), getattr(b, name), rtol=tol, atol=tol), name
        k = min(a.n_components_, 8)  # further ones may turn within the rounding, those of no variance freely
        signs = np.sign(np.sum(a.components_[:k] * b.components_[:k], axis=1))
        assert np.allclose(a.components_[:k], signs[:, None] * b.components_[:k], atol=30 * tol)
        assert (a.components_[np.arange(k), np.abs(a.components_[:k]).argmax(1)] > 0).all()
        ratio = np.sqrt(b.explained_variance_[0]) if not whiten else 1
        assert np.allclose(a.transform(X)[:, :k], b.transform(X)[:, :k] * signs, atol=100 * tol * ratio)
        if not whiten or n_components in (10, 0.9):
            assert np.allclose(a.inverse_transform(a.transform(X)), b.inverse_transform(b.transform(X)), atol=300 * tol)

    def test_model(self):
        a, b = (cls(10, svd_solver="full").fit(DIGITS) for cls in (ours.PCA, decomposition.PCA))
        assert np.allclose(a.get_covariance(), b.get_covariance())
        assert np.allclose(a.get_precision(), b.get_precision())
        assert np.allclose(a.score_samples(DIGITS), b.score_samples(DIGITS))
        assert np.isclose(a.score(DIGITS), b.score(DIGITS))

    @pytest.mark.parametrize("solver", ["auto", "randomized", "arpack", "full"])
    def test_sparse_is_as_dense(self, solver):
        a = ours.PCA(5, svd_solver=solver, random_state=0).fit(TEXTS)
        b = decomposition.PCA(5, svd_solver="full").fit(TEXTS.toarray())
        tol = 1e-9 if solver in ("full", "auto") else 2e-3
        assert np.allclose(a.explained_variance_, b.explained_variance_, rtol=tol)
        assert np.allclose(a.noise_variance_, b.noise_variance_, rtol=1e-4) and np.allclose(a.mean_, b.mean_)
        assert np.allclose(a.transform(TEXTS), a.transform(TEXTS.toarray()))
        assert np.allclose(a.fit_transform(TEXTS), a.transform(TEXTS), atol=1e-2)

    def test_sparse_is_never_made_dense(self):
        rng = np.random.default_rng(0)
        wide = sparse.csr_matrix((rng.random(80000), rng.integers(0, 400_000, 80000), np.arange(0, 80001, 4)),
                                 (20000, 400_000))  # dense: 64 GB
        assert ours.PCA(3, random_state=0).fit_transform(wide).shape == (20000, 3)

    def test_a_share_of_the_variance_of_many_features(self):
        rng = np.random.default_rng(0)
        X = (rng.normal(size=(900, 40)) * 0.8 ** np.arange(40)) @ rng.normal(size=(40, 700)) / 25
        X += 1e-3 * rng.normal(size=X.shape)
        a = ours.PCA(0.95, random_state=0).fit(X)
        assert a.n_components_ == decomposition.PCA(0.95, svd_solver="full").fit(X).n_components_
        assert a.explained_variance_ratio_.sum() > 0.95 > a.explained_variance_ratio_[:-1].sum()

    def test_the_same_seed_is_the_same(self):
        X = np.random.default_rng(0).normal(size=(700, 600))
        a, b = (ours.PCA(4, random_state=5).fit(X) for _ in range(2))
        assert np.array_equal(a.components_, b.components_)

    @pytest.mark.parametrize("arguments", [dict(n_components=0), dict(n_components=65), dict(n_components=1.5),
                                           dict(n_components="all"), dict(svd_solver="lapack"), dict(iterated_power=-1),
                                           dict(n_components=True), dict(random_state="x")])
    def test_refused(self, arguments):
        with pytest.raises(ValueError):
            ours.PCA(**arguments).fit(DIGITS)


class TestTruncatedSVD:
    @pytest.mark.parametrize("points", [DIGITS, TEXTS], ids=["digits", "texts"])
    def test_theirs(self, points):
        a = ours.TruncatedSVD(6, algorithm="arpack", random_state=0)
        b = decomposition.TruncatedSVD(6, algorithm="arpack", random_state=0)
        x, y = a.fit_transform(points), b.fit_transform(points)
        assert np.allclose(a.singular_values_, b.singular_values_)
        assert np.allclose(a.explained_variance_ratio_, b.explained_variance_ratio_, rtol=1e-6)
        assert np.allclose(a.explained_variance_, b.explained_variance_, rtol=1e-6)
        assert np.allclose(np.abs(x), np.abs(y), atol=1e-6 * a.singular_values_[0])
        assert np.allclose(a.inverse_transform(x), b.inverse_transform(y), atol=1e-6 * a.singular_values_[0])
        assert np.allclose(a.transform(points), x)

    def test_randomized_is_close(self):
        found = ours.TruncatedSVD(6, random_state=0).fit(TEXTS).singular_values_
        true = np.linalg.svd(TEXTS.toarray(), compute_uv=False)[:6]
        assert (found <= true * (1 + 1e-12)).all() and (found >= 0.99 * true).all()

    def test_too_many(self):
        with pytest.raises(ValueError, match="n_components"):
            ours.TruncatedSVD(65).fit(DIGITS)
        assert ours.TruncatedSVD(40).fit_transform(DIGITS[:9]).shape == (9, 9)

    def test_is_the_functions(self):
        a = ours.TruncatedSVD(5, random_state=11).fit(DIGITS)
        assert a.components_.tobytes() == gnomon.svd(DIGITS, 5, n_iter=5, random_state=11).Vt.tobytes()


METRICS = ["euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock", "cosine", "minkowski"]


class TestNearestNeighbors:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("points", [DIGITS[:200], TEXTS[:200]], ids=["digits", "texts"])
    def test_theirs(self, points, metric):
        if metric == "sqeuclidean" and sparse.issparse(points):
            pytest.skip("not among scikit-learn's for sparse points")
        a = ours.NearestNeighbors(n_neighbors=4, metric=metric).fit(points)
        b = neighbors.NearestNeighbors(n_neighbors=4, metric=metric, algorithm="brute").fit(points)
        for queries in (None, points[:30]):
            x, y = a.kneighbors(queries), b.kneighbors(queries)
            # their distances are differences of products: near 0 the root of the rounding is left
            assert x[1].shape == y[1].shape and np.allclose(x[0], y[0], atol=2e-6)
            radius = float(np.median(y[0])) * 1.001
            x, y = (e.radius_neighbors_graph(queries, radius, mode="distance").toarray() for e in (a, b))
            assert np.allclose(x, y, atol=2e-6)
            x, y = (e.radius_neighbors(queries, radius, return_distance=False) for e in (a, b))
            assert [sorted(row) for row in x] == [sorted(row) for row in y]

    def test_graphs(self):
        a, b = (module.NearestNeighbors(n_neighbors=3).fit(DIGITS) for module in (ours, neighbors))
        for mode in ("connectivity", "distance"):
            for queries in (None, DIGITS[:20]):
                x, y = (e.kneighbors_graph(queries, mode=mode) for e in (a, b))
                assert x.shape == y.shape and np.allclose(x.data.sum(), y.data.sum())
                assert np.array_equal(np.diff(x.indptr), np.diff(y.indptr))

    @pytest.mark.parametrize("metric", ["hamming", "jaccard"])
    def test_bits_and_sets(self, metric):
        X = np.random.default_rng(0).random((80, 37)) < 0.3
        a, b = (module.NearestNeighbors(n_neighbors=4, metric=metric).fit(X) for module in (ours, neighbors))
        assert np.allclose(a.kneighbors(X[:9])[0], b.kneighbors(X[:9])[0])
        assert np.allclose(a.kneighbors(sparse.csr_matrix(X[:9]))[0], b.kneighbors(X[:9])[0])
        for radius in (0.2, 10 / 37, 0.5, 1.0):
            x, y = (e.radius_neighbors(X[:9], radius, return_distance=False) for e in (a, b))
            assert [sorted(row) for row in x] == [sorted(row) for row in y]

    @pytest.mark.parametrize("rows", [400, 3000])
    def test_recall(self, rows):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(rows // 20, 16)).repeat(20, 0) + 0.1 * rng.normal(size=(rows, 16))
        exact = ours.NearestNeighbors(n_neighbors=5).fit(X)
        hashed = ours.NearestNeighbors(n_neighbors=5, recall=0.9, random_state=0).fit(X)
        for queries in (None, X[:200] + 0.01):
            x = exact.kneighbors(queries, return_distance=False)
            distances, y = hashed.kneighbors(queries)
            assert y.shape == x.shape and (np.diff(distances, axis=1) >= 0).all()
            assert np.mean([len(set(p) & set(q)) / 5 for p, q in zip(x, y)]) >= 0.9
            if queries is None:
                assert not (y == np.arange(rows)[:, None]).any()
        x, y = (e.radius_neighbors_graph(None, 0.5) for e in (exact, hashed))
        assert x.multiply(y).nnz == y.nnz >= 0.9 * x.nnz
        again = pickle.loads(pickle.dumps(hashed))
        assert np.array_equal(again.kneighbors()[1], hashed.kneighbors()[1])

    def test_points_of_the_hashing_without_themselves(self):
        from gnomon._search import Neighbors
        from gnomon.sklearn._neighbors import _without_themselves
        found = _without_themselves(Neighbors(np.array([[0., 1, 2], [1, 2, 3]]), np.array([[0, 1, 2], [2, 3, 4]]),
                                              np.array([0, 3, 6]), 5))
        assert found.indices.tolist() == [[1, 2], [2, 3]] and found.distances.tolist() == [[1, 2], [1, 2]]
        found = _without_themselves(Neighbors(np.array([0., 1, 2]), np.array([0, 1, 0]), np.array([0, 2, 3]), 5))
        assert found.indices.tolist() == [1, 0] and found.indptr.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("arguments", [
        dict(metric="euclid"), dict(metric=len), dict(p=3), dict(metric_params={"w": 1}), dict(algorithm="tree"),
        dict(recall=0.0), dict(recall=1.5), dict(recall="all"), dict(n_neighbors=0), dict(n_neighbors=1798),
        dict(n_neighbors="x"), dict(metric="hamming")])
    def test_refused(self, arguments):
        with pytest.raises(ValueError):
            ours.NearestNeighbors(**arguments).fit(DIGITS).kneighbors(DIGITS[:1])

    @pytest.mark.parametrize("radius", [-1, np.nan, "x"])
    def test_radius_refused(self, radius):
        with pytest.raises(ValueError, match="radius"):
            ours.NearestNeighbors(radius=radius).fit(DIGITS).radius_neighbors(DIGITS[:1])

    def test_transformers(self):
        for mode in ("distance", "connectivity"):
            x, y = (module.KNeighborsTransformer(mode=mode, n_neighbors=4).fit_transform(DIGITS[:300])
                    for module in (ours, neighbors))
            assert x.nnz == y.nnz and np.allclose(x.data.sum(), y.data.sum())
            x, y = (module.RadiusNeighborsTransformer(mode=mode, radius=25.0).fit_transform(DIGITS[:300])
                    for module in (ours, neighbors))
            assert np.allclose(x.toarray(), y.toarray())

    def test_in_a_pipeline(self):
        x, y = (make_pipeline(module.KNeighborsTransformer(n_neighbors=10, mode="distance"),
                              neighbors.KNeighborsClassifier(n_neighbors=5, metric="precomputed"))
                .fit(DIGITS[:900], LABELS[:900]).predict(DIGITS[900:]) for module in (ours, neighbors))
        assert np.mean(x == y) > 0.995


def test_clusters_of_a_join():
    X = gnomon.sketch(DIGITS, 32, random_state=0)
    graph = gnomon.join(X, radius=18.0)
    found = DBSCAN(eps=18.0, metric="precomputed", min_samples=4).fit_predict(graph)
    assert np.array_equal(found, DBSCAN(eps=18.0, min_samples=4).fit_predict(X)) and found.max() > 3


class TestLinear:
    @pytest.mark.parametrize("points", [DIGITS, texts(200, 150, np.float32), texts(100, 300)],
                             ids=["digits", "texts in float32", "wide"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("targets", [None, 3])
    @pytest.mark.parametrize("weights", [False, True])
    def test_ridge(self, points, fit_intercept, targets, weights):
        rng = np.random.default_rng(1)
        y = rng.normal(size=points.shape[0] if targets is None else (points.shape[0], targets)) + 5
        weight = rng.random(points.shape[0]) if weights else None
        alpha = 0.7 if targets is None else np.array([0.7, 0.1, 3.0])
        a = ours.SketchedRidge(alpha, fit_intercept=fit_intercept, random_state=0).fit(points, y, weight)
        dense = points.toarray() if sparse.issparse(points) else points
        b = linear_model.Ridge(alpha, fit_intercept=fit_intercept, solver="cholesky").fit(dense.astype(float), y, weight)
        assert a.coef_.shape == b.coef_.shape and np.shape(a.intercept_) == np.shape(b.intercept_)
        assert np.allclose(a.coef_, b.coef_, atol=1e-6) and np.allclose(a.intercept_, b.intercept_, atol=1e-6)
        assert np.allclose(a.predict(points), b.predict(dense), atol=1e-5)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_ordinary(self, fit_intercept):
        y = np.random.default_rng(1).normal(size=len(DIGITS)) + LABELS
        a = ours.SketchedLinearRegression(fit_intercept=fit_intercept, random_state=0).fit(DIGITS, y)
        b = linear_model.LinearRegression(fit_intercept=fit_intercept).fit(DIGITS, y)  # constant columns: rank 61
        assert np.allclose(a.coef_, b.coef_) and np.allclose(a.intercept_, b.intercept_)
        s = ours.SketchedLinearRegression(fit_intercept=fit_intercept, random_state=0).fit(sparse.csr_matrix(DIGITS), y)
        assert np.allclose(s.predict(DIGITS), b.predict(DIGITS)) and np.isclose(s.score(DIGITS, y), b.score(DIGITS, y))

    @pytest.mark.parametrize("arguments", [dict(positive=True), dict(alpha=-1.0), dict(alpha=np.nan),
                                           dict(alpha=[1.0, 2.0]), dict(solver="best"), dict(max_iter=0)])
    def test_refused(self, arguments):
        with pytest.raises(ValueError):
            ours.SketchedRidge(**arguments).fit(DIGITS, LABELS)

    def test_weights_refused(self):
        with pytest.raises(ValueError):
            ours.SketchedRidge().fit(DIGITS, LABELS, np.full(len(DIGITS), -1.0))

    def test_too_few_iterations_are_told(self):
        X = sparse.random(6000, 800, density=0.01, format="csr", random_state=0)
        y = np.random.default_rng(0).normal(size=6000)
        with pytest.warns(sklearn.exceptions.ConvergenceWarning):
            found = ours.SketchedLinearRegression(max_iter=1, random_state=0).fit(X, y)
        assert found.n_iter_ == 2


@pytest.mark.parametrize("cls", CLASSES)
class TestEveryEstimator:
    def test_layouts(self, cls):
        X = np.ascontiguousarray(DIGITS[:120])
        expected = answer(fitted(cls, X), X)
        read_only = X.copy()
        read_only.flags.writeable = False
        wide = np.zeros((240, 128))
        wide[::2, ::2] = X
        for points in (read_only, np.asfortranarray(X), wide[::2, ::2], X[::-1].copy()[::-1], X.tolist(),
                       X.astype(np.int64), X.astype(np.uint8)):
            model = made(cls).fit(points, LABELS[:120].astype(float))
            assert np.allclose(answer(model, points), expected, atol=1e-7)

    def test_sparse_indices(self, cls):
        X = sparse.csr_matrix(DIGITS[:120])
        expected = answer(fitted(cls, X), X)
        long = X.copy()
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        backwards = X.copy()
        for i in range(X.shape[0]):
            a, b = X.indptr[i:i + 2]
            backwards.indices[a:b], backwards.data[a:b] = X.indices[a:b][::-1], X.data[a:b][::-1]
        backwards.has_sorted_indices = False
        twice = sparse.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
        twice.has_canonical_format = False
        for points in (long, backwards, twice, X.tocsc(), X.tocoo()):
            before = points.copy()
            assert np.allclose(answer(fitted(cls, points), points), expected, atol=1e-6)
            assert (before != points).nnz == 0 and np.array_equal(before.data, points.data)

    def test_dense_and_sparse_agree(self, cls):
        X = DIGITS[:120]
        dense, rows = answer(fitted(cls, X), X), answer(fitted(cls, sparse.csr_matrix(X)), sparse.csr_matrix(X))
        if cls is ours.SketchedLinearRegression:  # of several solutions another one
            X = X[:, 20:30]
            dense, rows = answer(fitted(cls, X), X), answer(fitted(cls, sparse.csr_matrix(X)), X)
        assert np.allclose(dense, rows, atol=1e-6 * np.abs(dense).max())

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, cls, value):
        X = DIGITS[:50].copy()
        model = fitted(cls, X)
        X[3, 4] = value
        for points in (X, sparse.csr_matrix(X)):
            with pytest.raises(ValueError, match="NaN|infinity"):
                fitted(cls, points)
            with pytest.raises(ValueError, match="NaN|infinity"):
                answer(model, points)

    def test_equal_rows_and_constant_columns(self, cls):
        for X in (np.ones((30, 40)), np.zeros((30, 40)), np.repeat(DIGITS[:6], 5, 0)):
            found = answer(fitted(cls, X), X)
            assert np.isfinite(found).all() and found.shape[0] == 30

    def test_names_clones_and_pickles(self, cls):
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(DIGITS[:60], columns=[f"pixel{i}" for i in range(64)])
        model = fitted(cls, X)
        assert list(model.feature_names_in_) == list(X.columns)
        assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "n_features_in_")
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(answer(again, X), answer(model, X)) and not hasattr(again, "_gnomon_pickle")
        if hasattr(model, "get_feature_names_out"):
            names = model.get_feature_names_out()
            assert len(names) == answer(model, X).shape[1] and names[1] == cls.__name__.lower() + "1"
        if hasattr(model, "transform") and not sparse.issparse(model.transform(X)):
            shown = made(cls).set_output(transform="pandas").fit_transform(X)
            assert isinstance(shown, pandas.DataFrame) and list(shown.columns) == list(names)

    def test_pickles_of_a_newer_version_are_refused(self, cls):
        model = fitted(cls, DIGITS[:20])
        state = model.__getstate__()
        with pytest.raises(ValueError, match="newer"):
            cls.__new__(cls).__setstate__({**state, "_gnomon_pickle": state["_gnomon_pickle"] + 1})
        cls.__new__(cls).__setstate__(state)
        assert "_gnomon_pickle" in state

    def test_the_same_seed(self, cls):
        X = DIGITS[:100]
        assert answer(fitted(cls, X), X).tobytes() == answer(fitted(cls, X), X).tobytes()


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_processes(how):
    models = [fitted(cls, DIGITS[:100]) for cls in CLASSES]
    expected = [answer(model, DIGITS[:100]) for model in models]
    with multiprocessing.get_context(how).Pool(1) as pool:
        found = pool.starmap_async(answer, [(model, DIGITS[:100]) for model in models]).get(60)
    assert all(np.array_equal(x, y) for x, y in zip(found, expected))


def test_loky():
    joblib = pytest.importorskip("joblib")
    models = [fitted(cls, DIGITS[:100]) for cls in CLASSES]
    folder = os.path.dirname(os.path.dirname(gnomon.__file__))
    script = ("import sys, joblib, pickle\n"
              "from gnomon.tests.test_sklearn_results import CLASSES, DIGITS, answer, fitted\n"
              "models = [fitted(cls, DIGITS[:100]) for cls in CLASSES]\n"
              "found = joblib.Parallel(2, backend='loky')(joblib.delayed(answer)(m, DIGITS[:100]) for m in models)\n"
              "sys.stdout.buffer.write(pickle.dumps(found))\n")
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env={**os.environ, "PYTHONPATH": path},
                          check=True, timeout=120)
    assert joblib and all(np.array_equal(x, answer(m, DIGITS[:100])) for x, m in zip(pickle.loads(done.stdout), models))
