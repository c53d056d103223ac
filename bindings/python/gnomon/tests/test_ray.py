"""gnomon.ray on two local processes: the bytes of the plain calls."""
import os

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
pytest.importorskip("ray.data")

import pyarrow as pa  # noqa: E402

import gnomon  # noqa: E402
import gnomon.ray as on_ray  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(307, 41)).astype(np.float32)
X[200:250] = X[:50]  # ties
MIXED = RNG.permutation(307)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=200 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def table(x, parts=3, ids=None, name="features", order=None):
    """Rows that are not in their order."""
    ids = np.arange(len(x)) if ids is None else ids
    order = MIXED[MIXED < len(x)] if order is None else order
    tables = [{"id": ids[part], name: x[part]} for part in np.array_split(order, parts)]
    return ray.data.from_blocks([ray.data.block.BlockAccessor.batch_to_block(t) for t in tables])


def collected(data, *by):
    return data.to_pandas().sort_values(list(by))


def rows(column):
    return np.stack([np.asarray(row) for row in column])


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", ["gaussian", "sjlt"])
def test_sketch(kind):
    found = collected(on_ray.sketch(table(X, 5), 16, kind=kind, random_state=3), "id")
    assert list(found.columns) == ["id", "features", "sketch"]
    assert same(rows(found["sketch"]), gnomon.sketch(X, 16, kind=kind, random_state=3, device="cpu"))


def test_sketch_of_other_types():
    S = gnomon.operator(8, 41)
    for dtype in (np.float64, np.int64):
        x = (4 * X).astype(dtype)
        assert same(rows(collected(on_ray.sketch(table(x), S), "id")["sketch"]), gnomon.sketch(x, S, device="cpu"))
    lists = ray.data.from_items([{"id": i, "features": x.tolist()} for i, x in enumerate(X[:20].astype(float))])
    assert same(rows(collected(on_ray.sketch(lists, S, output="y"), "id")["y"]), gnomon.sketch(X[:20].astype(float), S, device="cpu"))


def test_what_does_not_fit(tmp_path):
    data = table(X)
    for call in (lambda x: on_ray.sketch(x, 8), on_ray.kneighbors, lambda x: on_ray.radius_join(x, radius=1),
                 lambda x: on_ray.svd(x, 3), lambda x: on_ray.dedup(x, tmp_path)):
        with pytest.raises(TypeError, match="Ray"):
            call(X)
    with pytest.raises(ValueError, match="no column 'text'; it has 'id', 'features'"):
        on_ray.dedup(data, tmp_path)
    with pytest.raises(ValueError, match="is given, but"):
        on_ray.sketch(data, gnomon.operator(8, 41), kind="sjlt")
    with pytest.raises(ValueError, match="n_neighbors is 307; there are 306"):
        on_ray.kneighbors(data, n_neighbors=307)
    with pytest.raises(ValueError, match="metric"):
        on_ray.kneighbors(data, metric="none")
    with pytest.raises(ValueError, match="radius"):
        on_ray.radius_join(data)
    with pytest.raises(TypeError, match="exact"):
        on_ray.dedup(data, tmp_path / "nowhere", column="features", exact=True)
    assert not os.path.exists(tmp_path / "nowhere")
    bad = X.copy()
    bad[250, 3] = np.nan
    for x, ids, says in ((bad, None, "NaN"), (X, np.minimum(np.arange(307), 305), "'id' has 305 twice"),
                         (X, np.arange(307) + 0.5, "must be a column of integers")):
        with pytest.raises(Exception, match=says):
            on_ray.kneighbors(table(x, ids=ids)).materialize()
    with pytest.raises(Exception, match="must be a column of integers"):
        on_ray.dedup(ray.data.from_items([{"id": 0.5, "text": "a"}]), tmp_path)
    with pytest.raises(Exception, match="list of numbers"):
        on_ray.sketch(ray.data.from_arrow(pa.table({"features": [[1.0], [1.0, 2.0]]})), gnomon.operator(1, 1)).materialize()


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_kneighbors(metric):
    Q = RNG.normal(size=(23, 41)).astype(np.float32)
    Q[:5] = X[:5]
    for queries, given in ((None, None), (Q, table(Q, 2))):
        expected = gnomon.neighbors(X, queries, 7, metric=metric, device="cpu")
        for parts in (1, 4):
            found = collected(on_ray.kneighbors(table(X, parts), given, 7, metric=metric), "id")
            assert found["id"].tolist() == list(range(len(expected.indices)))
            assert same(rows(found["neighbors"]), expected.indices) and same(rows(found["distances"]), expected.distances)


def test_numbers_with_gaps():
    ids = 10 * np.arange(307) - 1000
    found = collected(on_ray.kneighbors(table(X, ids=ids), n_neighbors=3), "id")
    assert same(rows(found["neighbors"]), ids[gnomon.neighbors(X, None, 3, device="cpu").indices])


def test_radius_join():
    for options in ({"radius": 7.0}, {"similarity": 0.3, "metric": "cosine"}):
        expected = gnomon.join(X, device="cpu", symmetric=False, **options)
        for parts in (1, 4):
            found = collected(on_ray.radius_join(table(X, parts), **options), "i", "j")
            assert expected.nnz >= 100 and same(found["distance"].to_numpy(), expected.data)
            assert (found["j"] == expected.indices).all()
            assert (found["i"] == np.repeat(np.arange(307), np.diff(expected.indptr))).all()


def test_svd():
    if gnomon.svd_missing() is not None:
        pytest.skip(gnomon.svd_missing())
    blocks = np.array_split(X, 3)
    for single in (False, True):
        found = on_ray.svd(table(X, 3, order=np.arange(307)), 5, random_state=2, single_pass=single, device="cpu")
        plain = gnomon.svd(iter(blocks) if single else (lambda: blocks), 5, random_state=2, single_pass=single, device="cpu", n_samples=307)
        assert same(found.s, plain.s) and same(found.U, plain.U) and same(found.Vt, plain.Vt)


def test_transform():
    pytest.importorskip("sklearn")
    from gnomon.sklearn import PCA, GaussianRandomProjection
    for estimator in (GaussianRandomProjection(6, random_state=1).fit(X), PCA(4, random_state=0).fit(X)):
        found = collected(on_ray.transform(estimator, table(X, 1, order=np.arange(307))), "id")
        assert same(rows(found["transformed"]), estimator.transform(X))


def test_dedup(tmp_path):
    words = [f"word{i}" for i in range(50)]
    texts = [" ".join(RNG.choice(words, 30)) for _ in range(60)]
    texts += [text + " more" for text in texts[::3]]
    for options in ({}, {"similarity": 0.6, "ngram": 2, "lower": True, "weighted": True}):
        expected = gnomon.dedup(texts, **options)
        for parts in (1, 7):
            marked, found = on_ray.dedup(table(np.array(texts, object), parts, ids=3 * np.arange(80), name="text"), tmp_path / "signed",
                                         **options)
            assert same(found.kept, 3 * expected.kept) and len(found.kept) < len(texts)
            assert same(found.representatives, 3 * expected.representatives)
            marked = collected(marked, "id")
            assert same(marked["representative"].to_numpy(), 3 * expected.representatives) and marked["text"].tolist() == texts
    for ids in (np.minimum(np.arange(80), 78), np.arange(80) % 40):  # in one block, and in two whose files would have one name
        with pytest.raises(ValueError, match="column 'id' has [0-9]+ twice"):
            on_ray.dedup(table(np.array(texts, object), 2, ids=ids, name="text"), tmp_path / "twice")


def test_a_lost_worker(tmp_path):
    """Ray starts another and does its task again."""
    died = str(tmp_path / "died")

    def die_once(batch):
        try:
            os.close(os.open(died, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return batch
        os._exit(1)

    found = collected(on_ray.kneighbors(table(X).map_batches(die_once), n_neighbors=3), "id")
    assert same(rows(found["neighbors"]), gnomon.neighbors(X, None, 3, device="cpu").indices) and os.path.exists(died)
