"""gnomon.spark on two local executors: the bytes of the plain calls."""
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")  # Spark's functions of Arrow tables ask for it
pyspark = pytest.importorskip("pyspark", minversion="4.0")

import pyarrow as pa  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import gnomon  # noqa: E402

try:
    subprocess.run(["java", "-version"], check=True, capture_output=True)
except (OSError, subprocess.CalledProcessError):
    pytest.skip("Spark needs Java", allow_module_level=True)

import gnomon.spark as on_spark  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(307, 41)).astype(np.float32)
X[200:250] = X[:50]  # ties


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (SparkSession.builder.master("local[2, 4]")  # a task may fail three times
               .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
               .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
    yield session
    session.stop()


def table(spark, x, parts=3, ids=None, **columns):
    rows = pa.array(x) if isinstance(x[0], str) else pa.array(list(x))
    made = pa.table({"id": np.arange(len(x)) if ids is None else ids, "features": rows, **columns})
    return spark.createDataFrame(made).repartition(parts)  # the rows are no longer in their order


def collected(frame, *by):
    return frame.toArrow().sort_by([(name, "ascending") for name in by])


def rows(column, dtype):
    return np.array(column.to_pylist(), dtype)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("kind", ["gaussian", "sjlt"])
def test_sketch(spark, kind):
    found = collected(on_spark.sketch(table(spark, X, 5), 16, kind=kind, random_state=3), "id")
    assert found.column_names == ["id", "features", "sketch"]
    assert same(rows(found["sketch"], np.float32), gnomon.sketch(X, 16, kind=kind, random_state=3, device="cpu"))


def test_sketch_of_other_types(spark):
    S = gnomon.operator(8, 41)
    for dtype in (np.float64, np.int64):
        x = (4 * X).astype(dtype)
        found = collected(on_spark.sketch(table(spark, x), S, output="features"), "id")
        expected = gnomon.sketch(x, S, device="cpu")
        assert found.column_names == ["id", "features"] and same(rows(found["features"], expected.dtype), expected)
    found = collected(on_spark.sketch(table(spark, X), S, dtype=np.float64), "id")
    assert same(rows(found["sketch"], np.float64), gnomon.sketch(X, S, dtype=np.float64, device="cpu"))
    empty = on_spark.sketch(table(spark, X).where("id < 0"), S)
    assert empty.count() == 0


def test_ml_vectors(spark):
    from pyspark.ml.linalg import Vectors
    frame = spark.createDataFrame([(0, Vectors.dense([1.0, 2.0, 0.0])), (1, Vectors.sparse(3, {1: 4.0}))], ["id", "features"])
    found = collected(on_spark.sketch(frame, 2, output="y").drop("features"), "id")
    assert same(rows(found["y"], np.float64), gnomon.sketch(np.array([[1.0, 2, 0], [0, 4, 0]]), 2, device="cpu"))


def test_what_does_not_fit(spark, tmp_path):
    frame = table(spark, X)
    for call in (lambda x: on_spark.sketch(x, 8), on_spark.kneighbors, lambda x: on_spark.radius_join(x, radius=1),
                 lambda x: on_spark.svd(x, 3), lambda x: on_spark.dedup(x, tmp_path)):
        with pytest.raises(TypeError, match="Spark"):
            call(X)
    with pytest.raises(ValueError, match="no column 'text'; it has 'id', 'features'"):
        on_spark.dedup(frame, tmp_path)
    with pytest.raises(TypeError, match="'id' is of bigint; it must be one of arrays"):
        on_spark.sketch(frame, 8, column="id")
    with pytest.raises(TypeError, match="'features' is of array<float>; it must be one of integers"):
        on_spark.kneighbors(frame, id="features")
    with pytest.raises(TypeError, match="'features' is of array<float>; it must be one of integers"):
        on_spark.dedup(frame, tmp_path, column="id", id="features")
    with pytest.raises(ValueError, match="is given, but"):
        on_spark.sketch(frame, gnomon.operator(8, 41), kind="sjlt")
    with pytest.raises(ValueError, match="n_neighbors is 307; there are 306"):
        on_spark.kneighbors(frame, n_neighbors=307)
    with pytest.raises(ValueError, match="metric"):
        on_spark.kneighbors(frame, metric="none")
    with pytest.raises(ValueError, match="radius"):
        on_spark.radius_join(frame)
    with pytest.raises(ValueError, match="no rows"):
        on_spark.sketch(frame.where("id < 0"), 8)
    with pytest.raises(TypeError, match="exact"):
        on_spark.dedup(table(spark, ["a"]), tmp_path / "nowhere", column="features", exact=True)
    assert not os.path.exists(tmp_path / "nowhere")
    bad = X.copy()
    bad[250, 3] = np.nan
    ragged = [x[:40] if i == 7 else x for i, x in enumerate(X)]
    null = [None if i == 7 else x for i, x in enumerate(X)]
    for x, ids, says in ((bad, None, "NaN"), (ragged, None, "has rows of 40 and of 41 numbers"), (null, None, "has a null"),
                         (X, np.minimum(np.arange(307), 305), "'id' has 305 twice")):
        with pytest.raises(Exception, match=says):
            on_spark.kneighbors(table(spark, x, ids=ids)).toArrow()


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_kneighbors(spark, metric):
    Q = RNG.normal(size=(23, 41)).astype(np.float32)
    Q[:5] = X[:5]
    for queries, given in ((None, None), (Q, table(spark, Q))):
        expected = gnomon.neighbors(X, queries, 7, metric=metric, device="cpu")
        for most in (20000, 160):
            found = collected(on_spark.kneighbors(table(spark, X), given, 7, metric=metric, block_rows=most), "id")
            assert found["id"].to_pylist() == list(range(len(expected.indices)))
            assert same(rows(found["neighbors"], np.int64), expected.indices)
            assert same(rows(found["distances"], np.float64), expected.distances)


def test_numbers_with_gaps(spark):
    ids = 10 * np.arange(307) - 1000
    found = collected(on_spark.kneighbors(table(spark, X, ids=ids), n_neighbors=3, block_rows=160), "id")
    assert same(rows(found["neighbors"], np.int64), ids[gnomon.neighbors(X, None, 3, device="cpu").indices])


def test_radius_join(spark):
    for options in ({"radius": 7.0}, {"similarity": 0.3, "metric": "cosine"}):
        expected = gnomon.join(X, device="cpu", symmetric=False, **options)
        for most in (20000, 160):
            found = collected(on_spark.radius_join(table(spark, X), block_rows=most, **options), "i", "j")
            assert expected.nnz >= 100 and same(found["distance"].to_numpy(), expected.data)
            assert (found["j"].to_numpy() == expected.indices).all()
            assert (found["i"].to_numpy() == np.repeat(np.arange(307), np.diff(expected.indptr))).all()


def test_svd(spark):
    if gnomon.svd_missing() is not None:
        pytest.skip(gnomon.svd_missing())
    frame = table(spark, X, 1).sortWithinPartitions("id")
    for single in (False, True):
        found = on_spark.svd(frame, 5, random_state=2, single_pass=single, device="cpu")
        plain = gnomon.svd(iter([X]) if single else (lambda: [X]), 5, random_state=2, single_pass=single, device="cpu", n_samples=307)
        assert same(found.s, plain.s) and same(found.U, plain.U) and same(found.Vt, plain.Vt)


def test_transform(spark):
    pytest.importorskip("sklearn")
    from gnomon.sklearn import PCA, GaussianRandomProjection
    for estimator in (GaussianRandomProjection(6, random_state=1).fit(X), PCA(4, random_state=0).fit(X)):
        found = collected(on_spark.transform(estimator, table(spark, X, 1).sortWithinPartitions("id")), "id")
        assert same(rows(found["transformed"], np.float32), estimator.transform(X))


def test_dedup(spark, tmp_path):
    words = [f"word{i}" for i in range(50)]
    texts = [" ".join(RNG.choice(words, 30)) for _ in range(60)]
    texts += [text + " more" for text in texts[::3]]
    for options in ({}, {"similarity": 0.6, "ngram": 2, "lower": True, "weighted": True}):
        expected = gnomon.dedup(texts, **options)
        for parts in (1, 7):
            frame = table(spark, texts, parts, ids=3 * np.arange(80)).withColumnRenamed("features", "text")
            marked, found = on_spark.dedup(frame, tmp_path / "signed", **options)
            assert same(found.kept, 3 * expected.kept) and len(found.kept) < len(texts)
            assert same(found.representatives, 3 * expected.representatives)
            marked = collected(marked, "id")
            assert same(marked["representative"].to_numpy(), 3 * expected.representatives)
            assert marked["text"].to_pylist() == texts
    with pytest.raises(ValueError, match="column 'id' has 7 twice"):
        on_spark.dedup(table(spark, texts, ids=np.where(np.arange(80) == 70, 7, np.arange(80))), tmp_path / "twice", column="features")


def test_a_lost_worker(spark, tmp_path):
    """Spark starts another and does its task again."""
    died = str(tmp_path / "died")

    def die_once(batches):
        for batch in batches:
            try:
                os.close(os.open(died, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
            else:
                os._exit(1)

    frame = table(spark, X)
    found = collected(on_spark.kneighbors(frame.mapInArrow(die_once, frame.schema), n_neighbors=3, block_rows=160), "id")
    assert same(rows(found["neighbors"], np.int64), gnomon.neighbors(X, None, 3, device="cpu").indices) and os.path.exists(died)
