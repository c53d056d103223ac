"""gnomon.dask on a cluster of two processes: the bytes of the plain calls."""
import os

import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.bag  # noqa: E402

import gnomon  # noqa: E402
import gnomon.dask as on_dask  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(307, 41)).astype(np.float32)
X[200:250] = X[:50]  # ties
CHUNKS = [(307,), (100, 100, 107), (1, 0, 6, 150, 150)]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local, Client(local):
        yield local


def cut(x, rows, columns=None):
    return da.from_array(x, chunks=(rows, columns or x.shape[1]))


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("rows", CHUNKS)
def test_sketch(rows):
    for kind in ("gaussian", "sjlt", "srht"):
        expected = gnomon.sketch(X, 16, kind=kind, random_state=3, device="cpu")
        found = on_dask.sketch(cut(X, rows, 17), 16, kind=kind, random_state=3)
        assert found.shape == (307, 16) and found.dtype == np.float32 and same(found.compute(), expected)
    S = gnomon.operator(8, 41)
    for dtype in (np.float64, np.int8, np.int64):
        x = (4 * X).astype(dtype)
        assert same(on_dask.sketch(cut(x, rows), S).compute(), gnomon.sketch(x, S, device="cpu"))
    assert same(on_dask.sketch(cut(X, rows), S, dtype=np.float64).compute(), gnomon.sketch(X, S, dtype=np.float64, device="cpu"))
    wide = np.zeros((307, 9000), np.float32)
    assert on_dask.sketch(cut(wide, rows), "auto", eps=0.5).shape == gnomon.sketch(wide, "auto", eps=0.5).shape


def test_what_does_not_fit():
    bad = X.copy()
    bad[250, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        on_dask.sketch(cut(bad, (100, 100, 107)), 8).compute()
    with pytest.raises(ValueError, match="is given, but"):
        on_dask.sketch(cut(X, 100), gnomon.operator(8, 41), kind="sjlt")
    for call in (lambda x: on_dask.sketch(x, 8), lambda x: on_dask.kneighbors(x), lambda x: on_dask.radius_join(x, radius=1),
                 lambda x: on_dask.svd(x, 3)):
        with pytest.raises(TypeError, match="dask"):
            call(X)
        with pytest.raises(ValueError, match="2D"):
            call(da.zeros(5))
    with pytest.raises(TypeError, match="bag"):
        on_dask.dedup(["a"], "nowhere")
    with pytest.raises(TypeError, match="exact"):
        on_dask.dedup(dask.bag.from_sequence(["a"]), "nowhere", exact=True)
    assert not os.path.exists("nowhere")
    with pytest.raises(ValueError, match="n_neighbors is 307; there are 306"):
        on_dask.kneighbors(cut(X, 100), n_neighbors=307)
    with pytest.raises(ValueError, match="metric"):
        on_dask.kneighbors(cut(X, 100), metric="none")
    with pytest.raises(ValueError, match="radius"):
        on_dask.radius_join(cut(X, 100))


@pytest.mark.parametrize("rows", CHUNKS)
@pytest.mark.parametrize("metric", ["l2", "cosine", "ip", "l1"])
def test_kneighbors(rows, metric):
    Q = RNG.normal(size=(23, 41)).astype(np.float32)
    Q[:5] = X[:5]
    for queries, given in ((None, None), (Q, Q), (Q, cut(Q, (20, 3)))):
        expected = gnomon.neighbors(X, queries, 7, metric=metric, device="cpu")
        distances, indices = dask.compute(*on_dask.kneighbors(cut(X, rows), given, 7, metric=metric))
        assert same(distances, expected.distances) and same(indices, expected.indices)
    every = dask.compute(*on_dask.kneighbors(cut(X[:9], (4, 5)), n_neighbors=8, metric=metric))
    assert same(every[1], gnomon.neighbors(X[:9], None, 8, metric=metric, device="cpu").indices)


@pytest.mark.parametrize("rows", CHUNKS)
def test_radius_join(rows):
    pytest.importorskip("scipy")
    for options in ({"radius": 7.0}, {"similarity": 0.3, "metric": "cosine"}, {"radius": 40.0, "metric": "l1"}, {"radius": 0.0}):
        expected = gnomon.join(X, device="cpu", **options)
        found = on_dask.radius_join(cut(X, rows), **options).compute()
        assert found.shape == expected.shape and expected.nnz >= 100
        assert same(found.data, expected.data) and (found.indices == expected.indices).all() and (found.indptr == expected.indptr).all()


def test_sparse_blocks():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    dense = np.where(RNG.random((307, 300)) < 0.03, RNG.normal(size=(307, 300)), 0)
    whole = scipy_sparse.csr_matrix(dense)
    blocks = cut(dense, (100, 100, 107)).map_blocks(scipy_sparse.csr_matrix)
    assert same(on_dask.sketch(blocks, 16, random_state=1).compute(), gnomon.sketch(whole, 16, random_state=1, device="cpu"))
    expected = gnomon.neighbors(whole, None, 4, metric="cosine", device="cpu")
    distances, indices = dask.compute(*on_dask.kneighbors(blocks, n_neighbors=4, metric="cosine"))
    assert same(distances, expected.distances) and same(indices, expected.indices)


def test_svd():
    if gnomon.svd_missing() is not None:
        pytest.skip(gnomon.svd_missing())
    blocks = np.split(X, [100, 200])
    for single in (False, True):
        found = on_dask.svd(cut(X, (100, 100, 107)), 5, random_state=2, single_pass=single, device="cpu")
        plain = gnomon.svd(iter(blocks) if single else (lambda: blocks), 5, random_state=2, single_pass=single, device="cpu", n_samples=307)
        assert same(found.s, plain.s) and same(found.U, plain.U) and same(found.Vt, plain.Vt)
    whole = gnomon.svd(X, 5, random_state=2, device="cpu")
    assert same(on_dask.svd(cut(X, (100, 100, 107)), 5, random_state=2, device="cpu").Vt, whole.Vt)


def test_transform():
    pytest.importorskip("sklearn")
    from gnomon.sklearn import PCA, GaussianRandomProjection
    for estimator in (GaussianRandomProjection(6, random_state=1).fit(X), PCA(4, random_state=0).fit(X)):
        found = on_dask.transform(estimator, cut(X, (1, 0, 6, 150, 150)))
        expected = np.concatenate([estimator.transform(X[a:b]) for a, b in ((0, 1), (1, 7), (7, 157), (157, 307))])
        assert found.dtype == np.float32 and same(found.compute(), expected)


def test_dedup(tmp_path):
    words = [f"word{i}" for i in range(50)]
    texts = [" ".join(RNG.choice(words, 30)) for _ in range(60)]
    texts += [text + " more" for text in texts[::3]]
    for options in ({}, {"similarity": 0.6, "ngram": 2, "lower": True, "weighted": True}, {"keep": "longest", "containment": True}):
        expected = gnomon.dedup(texts, **options)
        for parts in (1, 3, 7):
            found = on_dask.dedup(dask.bag.from_sequence(texts, npartitions=parts), tmp_path / "signed", **options)
            assert same(found.kept, expected.kept) and len(found.kept) < len(texts)
            assert same(found.representatives, expected.representatives)
    assert sorted(os.listdir(tmp_path / "signed"))[0] == "part-000000000.sig"


def test_data_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pandas.DataFrame(X), npartitions=3)
    assert same(on_dask.sketch(frame, 8).compute(), gnomon.sketch(X, 8, device="cpu"))
    assert same(on_dask.kneighbors(frame, X[:3], 2)[1].compute(), gnomon.neighbors(X, X[:3], 2, device="cpu").indices)
    texts = pandas.Series(["one line of text here", "quite another one than that", "one line of text here"])
    assert on_dask.dedup(dd.from_pandas(texts, npartitions=2), tmp_path).kept.tolist() == [0, 1]


def _die_once(block, folder):
    try:
        os.close(os.open(os.path.join(folder, "died"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return block
    os._exit(1)


def test_a_lost_worker(tmp_path):
    """dask starts another and does its tasks again."""
    found = on_dask.sketch(cut(X, (100, 100, 107)).map_blocks(_die_once, str(tmp_path), dtype=X.dtype, meta=X[:0]), 8)
    assert same(found.compute(), gnomon.sketch(X, 8, device="cpu")) and os.path.exists(tmp_path / "died")
