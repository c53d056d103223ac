"""Every function and class beside plain NumPy."""
import pickle
import warnings

import numpy as np
import pytest

import gnomon

rng = np.random.default_rng(11)
needs_blas = pytest.mark.skipif(gnomon.svd_missing() is not None, reason="no OpenBLAS")


class TestOperator:
    @pytest.mark.parametrize("kind", gnomon.kinds())
    def test_products_are_those_of_the_entries(self, kind):
        S = gnomon.operator(8, 64, kind=kind, random_state=5)
        entries = S.toarray(np.float64)
        assert entries.shape == S.shape == (8, 64)
        X, Y = rng.normal(size=(5, 64)), rng.normal(size=(5, 8))
        assert np.allclose(X @ S.T, X @ entries.T)
        assert np.allclose(Y @ S, Y @ entries)
        assert np.allclose(S @ X.T, entries @ X.T)
        assert np.allclose(S.T @ Y.T, entries.T @ Y.T)
        assert np.allclose(S @ X[0], entries @ X[0])
        assert np.allclose(Y[0] @ S, Y[0] @ entries)
        assert np.allclose(gnomon.sketch(X, S), X @ entries.T)
        assert np.allclose(gnomon.adjoint(Y, S), Y @ entries)

    @pytest.mark.parametrize("key", [
        3, -1, (2, 5), (slice(None), 7), slice(1, 4), (slice(None, None, -1), slice(3, 60, 7)), (slice(6, 1, -2), -3),
        Ellipsis, (Ellipsis, 3), (3, Ellipsis), (slice(5, 5), slice(None)), (slice(3, 1), 0), np.int64(2)])
    def test_indexing(self, key):
        S = gnomon.operator(8, 64, kind="gaussian", random_state=5)
        entries = S.toarray()
        assert np.array_equal(S[key], entries[key])
        assert np.array_equal(np.asarray(S), entries)

    @pytest.mark.parametrize("key", [8, -9, (0, 64), (0, 0, 0), "a", None, [1, 2], 1.5, True])
    def test_wrong_index(self, key):
        with pytest.raises(IndexError):
            gnomon.operator(8, 64)[key]

    @pytest.mark.parametrize("kind, parameters", [
        ("gaussian", dict(precision="fp16")), ("very-sparse", dict(density=0.25)), ("sjlt", dict(nonzeros=3)),
        ("block", dict(blocks=2, inner="gaussian")), ("kronecker", dict(zeta=4, width=10)),
        ("blockperm-sjlt", dict(blocks=4, wiring=2, nonzeros=1)), ("srht", dict(scaling="none"))])
    def test_pickle_is_the_descriptor(self, kind, parameters):
        S = gnomon.operator(8, 64, kind=kind, random_state=2**64 - 1, **parameters)
        again = pickle.loads(pickle.dumps(S))
        assert again == S and hash(again) == hash(S) and np.array_equal(again.toarray(), S.toarray())
        assert S.to_json().encode() in pickle.dumps(S)
        assert S.descriptor["k"] == 8 and S.random_state == 2**64 - 1
        for name, value in parameters.items():
            assert S.descriptor[name] == value

    def test_cloudpickle(self):
        cloudpickle = pytest.importorskip("cloudpickle")
        S = gnomon.operator(8, 64)
        assert pickle.loads(cloudpickle.dumps(lambda: S))() == S

    def test_csr(self):
        pytest.importorskip("scipy.sparse")
        S = gnomon.operator(8, 64, kind="sjlt")
        assert np.array_equal(S.tocsr().toarray(), S.toarray())
        assert S.tocsr().nnz == round(S.fill * 8 * 64)

    def test_seeds(self):
        def first(random_state):
            return gnomon.operator(4, 40, random_state=random_state).random_state

        assert first(np.random.RandomState(1)) == first(np.random.RandomState(1)) != first(np.random.RandomState(2))
        assert first(np.random.default_rng(1)) == first(np.random.default_rng(1))
        assert first(None) != first(None)
        assert first(np.int32(7)) == 7

    def test_large(self):
        S = gnomon.operator(4, 1 << 50, kind="rademacher")
        assert set(np.abs(S[:, (1 << 50) - 3:]).ravel()) == {0.5}

    @pytest.mark.parametrize("arguments, parameters, name", [
        ((0, 10), {}, "n_components"), ((11, 10), {}, "n_components"), ((2, 0), {}, "n_features"),
        ((2, 1 << 60), {}, "n_features"), ((2, 10), dict(kind="none"), "kind"), ((2, 10), dict(random_state=-1),
                                                                                 "random_state"),
        ((2, 10), dict(random_state=1 << 64), "random_state"), ((2, 10), dict(random_state="a"), "random_state"),
        ((2, 10), dict(density=0.5), "density"), ((2, 10), dict(kind="very-sparse", density=2.0), "density"),
        ((2, 10), dict(kind="sjlt", nonzeros=3), "nonzeros"), ((2, 10), dict(scaling="some"), "scaling"),
        ((2, 10), dict(precision="fp8", kind="gaussian"), "precision"), ((2, 10), dict(inner="sjlt"), "inner")])
    def test_refused(self, arguments, parameters, name):
        with pytest.raises(ValueError, match=name):
            gnomon.operator(*arguments, **parameters)

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"gnomon":"operator"}', "\0", "\ud800", "nan" * 1000,
                                      '{"gnomon":"operator","version":99,"kind":"sjlt","k":1,"d":2,"seed":0}'])
    def test_hostile_descriptor(self, text):
        with pytest.raises(ValueError):
            gnomon.Operator.from_json(text)


class TestSketch:
    def test_auto(self):
        X = rng.normal(size=(50, 9000))
        assert gnomon.sketch(X, "auto", eps=0.5).shape[1] == gnomon.min_dim(50, 0.5)
        with pytest.raises(ValueError, match="n_components"):
            gnomon.sketch(X[:, :10], "auto", eps=0.5)

    def test_threads_and_memory_change_no_bit(self):
        X = rng.normal(size=(70, 3000)).astype(np.float32)
        whole = gnomon.sketch(X, 64, kind="gaussian")
        assert np.array_equal(whole, gnomon.sketch(X, 64, kind="gaussian", n_jobs=1))
        with gnomon.config_context(memory_limit=1 << 22, n_jobs=3):
            assert np.array_equal(whole, gnomon.sketch(X, 64, kind="gaussian"))

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("mergeable", [False, True])
    @pytest.mark.parametrize("kind", ["rademacher", "sjlt", "srht", "kronecker"])
    def test_sketcher(self, axis, mergeable, kind):
        X = rng.normal(size=(30, 200)).astype(np.float32)
        S = gnomon.operator(16, 200, kind=kind)
        sketcher = gnomon.Sketcher(S, axis=axis, mergeable=mergeable)
        for at in range(0, 200, 33):
            sketcher.push(X[:, at:at + 33] if axis else X.T[at:at + 33])
        found = sketcher.finish()
        expected = gnomon.sketch(X, S)
        expected = expected if axis else expected.T
        assert found.shape == expected.shape and found.dtype == np.float32
        assert np.allclose(found, expected, atol=1e-5) if mergeable else np.array_equal(found, expected)

    def test_merge(self):
        X = rng.normal(size=(30, 200))
        S = gnomon.operator(16, 200)
        a, b = gnomon.Sketcher(S, mergeable=True, dtype=np.float64), gnomon.Sketcher(S, mergeable=True)
        b.push(X[:, 150:], start=150)
        a.push(X[:, :100])
        b = pickle.loads(pickle.dumps(b))
        b.push(X[:, 100:150], start=100)
        assert np.allclose(a.merge(b).finish(), gnomon.sketch(X, S), atol=1e-12)

    def test_sketcher_refuses(self):
        S = gnomon.operator(4, 20)
        s = gnomon.Sketcher(S)
        with pytest.raises(ValueError, match="no piece"):
            s.finish()
        s.push(np.zeros((3, 10)))
        with pytest.raises(ValueError, match="beyond"):
            s.push(np.zeros((3, 11)))
        with pytest.raises(ValueError, match="piece"):
            s.push(np.zeros((4, 10)))
        with pytest.raises(ValueError, match="order"):
            s.push(np.zeros((3, 5)), start=15)
        with pytest.raises(ValueError):
            s.finish()
        with pytest.raises(TypeError, match="mergeable"):
            pickle.dumps(s)
        s.push(np.zeros((3, 10)))
        assert not s.finish().any()

    def test_distortion(self):
        X = rng.normal(size=(40, 300))
        Y = gnomon.sketch(X, 100)
        d = gnomon.distortion(X, Y, eps=0.2)
        norms = (Y**2).sum(1) / (X**2).sum(1) - 1
        assert d.norms.count == 40 and np.isclose(d.norms.mean, norms.mean())
        assert d.norms.worst_at == (int(np.argmax(np.abs(norms))),)
        assert np.isclose(d.norms.outside, (np.abs(norms) > 0.2).mean())
        i, j = d.pairs.worst_at
        ratio = ((Y[i] - Y[j])**2).sum() / ((X[i] - X[j])**2).sum() - 1
        assert np.isclose(abs(ratio), d.pairs.worst)
        assert d.pairs.histogram.sum() == d.pairs.count == 40 * 39 // 2

    def test_plots(self):
        matplotlib = pytest.importorskip("matplotlib")
        matplotlib.use("Agg")
        X = rng.normal(size=(40, 300))
        assert gnomon.distortion(X, gnomon.sketch(X, 100)).plot().get_xlabel()
        if gnomon.svd_missing() is None:
            assert gnomon.svd(X, 5).plot_spectrum().get_ylabel() == "singular value"

    def test_min_dim(self):
        assert gnomon.min_dim(10**6, 0.1) == 11842
        assert gnomon.min_dim(1000, 0.5, bound="achlioptas") > gnomon.min_dim(1000, 0.5, bound="gaussian-exact")
        for bad in ((1, 0.1), (10, 0.0), (10, 1.0), (10, np.nan)):
            with pytest.raises(ValueError):
                gnomon.min_dim(*bad)


def distances(metric, X, Q):
    if metric == "l2":
        return np.linalg.norm(Q[:, None] - X[None], axis=2)
    if metric == "l1":
        return np.abs(Q[:, None] - X[None]).sum(2)
    if metric == "cosine":
        return 1 - (Q / np.linalg.norm(Q, axis=1)[:, None]) @ (X / np.linalg.norm(X, axis=1)[:, None]).T
    return Q @ X.T


class TestSearch:
    @pytest.mark.parametrize("metric", ["l2", "l1", "cosine", "ip"])
    def test_dense(self, metric):
        X, Q = rng.normal(size=(200, 6)), rng.normal(size=(9, 6))
        D = distances(metric, X, Q)
        order = np.argsort(-D if metric == "ip" else D, axis=1)[:, :4]
        found = gnomon.neighbors(X, Q, 4, metric=metric)
        assert np.array_equal(found.indices, order)
        assert np.allclose(found.distances, np.take_along_axis(D, order, 1))
        limit = float(np.median(D))
        near = gnomon.neighbors(X, Q, radius=limit, metric=metric)
        for row, ids in enumerate(near.split()[1]):
            assert set(ids) == set(np.flatnonzero(D[row] >= limit if metric == "ip" else D[row] <= limit))

    def test_aliases(self):
        X = rng.normal(size=(20, 6))
        for name, alias in (("l2", "euclidean"), ("l1", "manhattan")):
            assert np.array_equal(gnomon.neighbors(X, metric=name).indices, gnomon.neighbors(X, metric=alias).indices)

    def test_itself_is_left_out(self):
        X = rng.normal(size=(30, 3))
        assert not (gnomon.neighbors(X, n_neighbors=3).indices == np.arange(30)[:, None]).any()

    def test_allowed(self):
        X = rng.normal(size=(50, 3))
        allowed = rng.random(50) < 0.5
        found = gnomon.neighbors(X, X, 3, allowed=allowed)
        assert allowed[found.indices].all()
        with pytest.raises(ValueError):
            gnomon.neighbors(X, X, 3, allowed=np.zeros(0, bool))
        with pytest.raises(ValueError, match="allowed"):
            gnomon.neighbors(X, X, 3, allowed=np.zeros(50))

    def test_bits_and_sets(self):
        X = rng.integers(0, 256, (60, 4), np.uint8)
        D = np.unpackbits(X[:, None] ^ X[None], axis=2).sum(2)
        assert np.array_equal(np.sort(D, 1)[:, 1:4], gnomon.neighbors(X, n_neighbors=3, metric="hamming").distances)
        sparse = pytest.importorskip("scipy.sparse")
        sets = (rng.random((40, 25)) < 0.3).astype(np.float32)
        both, either = sets @ sets.T, 25 - (1 - sets) @ (1 - sets).T
        J = 1 - both / np.maximum(either, 1)
        np.fill_diagonal(J, np.inf)
        found = gnomon.neighbors(sparse.csr_matrix(sets), n_neighbors=2, metric="jaccard")
        assert np.allclose(found.distances, np.sort(J, 1)[:, :2])
        with pytest.raises(TypeError, match="sparse"):
            gnomon.neighbors(sets, metric="jaccard")
        with pytest.raises(TypeError, match="sparse"):
            gnomon.neighbors(sparse.csr_matrix(sets), sets, metric="jaccard")
        with pytest.raises(TypeError, match="sparse"):
            gnomon.neighbors(sparse.csr_matrix(sets), metric="hamming")
        with pytest.raises(ValueError, match="X"):
            gnomon.neighbors(sets, metric="hamming")

    def test_empty(self):
        X = np.zeros((0, 3))
        assert gnomon.neighbors(X, X, radius=1).indices.shape == (0,)
        assert gnomon.neighbors(np.zeros((5, 3)), X, 2).indices.shape == (0, 2)
        with pytest.raises(ValueError, match="n_neighbors"):
            gnomon.neighbors(np.zeros((5, 3)), n_neighbors=5)

    def test_results_outlive_the_call(self):
        kept = [gnomon.neighbors(rng.normal(size=(500, 4)), n_neighbors=9) for _ in range(20)]
        sums = [k.distances.sum() for k in kept]
        for _ in range(50):
            gnomon.neighbors(rng.normal(size=(500, 4)), n_neighbors=9)
        assert sums == [k.distances.sum() for k in kept]
        base = kept[3].indices
        del kept
        assert base.max() < 500

    @pytest.mark.parametrize("metric", ["l2", "l1", "cosine"])
    def test_join(self, metric):
        X, Y = rng.normal(size=(70, 4)), rng.normal(size=(50, 4))
        radius = float(np.quantile(distances(metric, Y, X), 0.2))
        graph = gnomon.join(X, Y, radius=radius, metric=metric)
        if isinstance(graph, gnomon.Pairs):
            pytest.skip("no SciPy")
        D = distances(metric, Y, X)
        assert np.array_equal(graph.toarray() > 0, D <= radius)
        own, info = gnomon.join(X, radius=radius, metric=metric, return_info=True)
        E = distances(metric, X, X)
        np.fill_diagonal(E, np.inf)
        assert np.array_equal(own.toarray() > 0, E <= radius) and info.complete and info.recall == 1
        once = gnomon.join(X, radius=radius, metric=metric, symmetric=False)
        assert once.nnz * 2 == own.nnz == info.pairs * 2

    @pytest.mark.parametrize("metric", ["l2", "l1", "cosine", "ip", "weighted-jaccard"])
    def test_one_side_sparse(self, metric):
        sparse = pytest.importorskip("scipy.sparse")
        X, Y = (rng.random((n, 30)) * (rng.random((n, 30)) < 0.2) for n in (70, 50))
        X[3] = Y[4] = 0
        X[7] = Y[8] = 1
        both = gnomon.neighbors(X, Y, 6, metric=metric)
        radius = float(np.median(both.distances[np.isfinite(both.distances)]))
        within = gnomon.neighbors(X, Y, radius=radius, metric=metric)
        pairs = gnomon.join(X, Y, radius=radius, metric=metric)
        for x, y in ((sparse.csr_matrix(X), Y), (X, sparse.csc_matrix(Y)), (sparse.coo_matrix(X), sparse.csr_array(Y))):
            for found, wanted in ((gnomon.neighbors(x, y, 6, metric=metric), both),
                                  (gnomon.neighbors(x, y, radius=radius, metric=metric), within)):
                assert np.array_equal(found.indices, wanted.indices)
                assert np.array_equal(found.distances, wanted.distances)
                assert np.array_equal(found.indptr, wanted.indptr)
            some = gnomon.join(x, y, radius=radius, metric=metric)
            assert np.array_equal(some.indptr, pairs.indptr) and np.array_equal(some.indices, pairs.indices)
            assert np.array_equal(some.data, pairs.data)
        with pytest.raises(ValueError, match="dimensions"):
            gnomon.neighbors(sparse.csr_matrix(X), Y[:, :29], 6, metric=metric)
        with pytest.raises(ValueError, match="dimensions"):
            gnomon.join(X, sparse.csr_matrix(Y[:, :29]), radius=radius, metric=metric)
        with pytest.raises(ValueError, match="n_neighbors"):
            gnomon.neighbors(X, sparse.csr_matrix(Y), 71, metric=metric)
        bad = sparse.csr_matrix(Y)
        bad.data[5] = np.nan
        with pytest.raises(ValueError, match="NaN or infinity in row"):
            gnomon.neighbors(X, bad, 6, metric=metric)
        with pytest.raises(ValueError, match="NaN or infinity in row"):
            gnomon.join(bad, X, radius=radius, metric=metric)

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr"])
    def test_broken_sparse(self, layout):
        sparse = pytest.importorskip("scipy.sparse")
        good = sparse.csr_matrix(np.where(rng.random((12, 8)) < 0.4, 1.5, 0))
        calls = [lambda x: gnomon.neighbors(x, n_neighbors=2), lambda x: gnomon.join(x, radius=1),
                 lambda x: gnomon.sketch(x, 3), lambda x: gnomon.neighbors(np.zeros((9, 8)), x, 2)]
        if gnomon.svd_missing() is None:
            calls.append(lambda x: gnomon.svd(x, 2))
        members = ("row", "col") if layout == "coo" else ("indices", "indptr")
        for member in members:
            for at, value in ((3, -1), (3, 2**31 - 1), (3, 12), (0, 1), (-1, 10**6)):
                if (value == 12) if member == "indptr" else (at != 3):
                    continue
                if at == 0 and layout == "csr":
                    continue  # a view of rows may begin at any entry
                bad = sparse.bsr_matrix(good, blocksize=(2, 2)) if layout == "bsr" else good.asformat(layout, copy=True)
                getattr(bad, member)[at] = value
                for call in calls:
                    with pytest.raises(ValueError, match="X|queries"):
                        call(bad)
        for value in (np.nan, np.inf):
            bad = good.asformat(layout, copy=True)
            bad.data.reshape(-1)[np.flatnonzero(bad.data.reshape(-1))[2]] = value
            for call in calls:
                with pytest.raises(ValueError, match="NaN or infinit"):
                    call(bad)

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
    def test_odd_sparse_that_counts(self, layout):
        sparse = pytest.importorskip("scipy.sparse")
        dense = np.where(rng.random((15, 9)) < 0.4, rng.integers(1, 9, (15, 9)) / 2, 0)
        dense[4] = 0
        row, col = np.nonzero(dense)
        order = rng.permutation(len(row))
        values = dense[row, col][order]
        row, col = np.append(row[order], [2, 2, 2]), np.append(col[order], [1, 1, 3])
        values = np.append(values, [0.5, 0.25, 0.0])  # a column twice more, and a stored zero
        dense[2, 1] += 0.75
        x = sparse.coo_matrix((values, (row, col)), dense.shape)
        if layout != "coo":  # SciPy's conversions would add the repeated ones
            major, minor, lines = (row, col, 15) if layout == "csr" else (col, row, 9)
            by = np.argsort(major, kind="stable")
            ends = np.append(0, np.cumsum(np.bincount(major, minlength=lines)))
            x = getattr(sparse, layout + "_matrix")((values[by], minor[by], ends), dense.shape)
        assert x.nnz == len(values)
        for metric in ("l2", "l1", "cosine", "ip"):
            found, want = gnomon.neighbors(x, n_neighbors=4, metric=metric), gnomon.neighbors(dense, n_neighbors=4,
                                                                                          metric=metric)
            assert np.array_equal(found.indices, want.indices) and np.array_equal(found.distances, want.distances)
        assert (gnomon.join(x, radius=3) != gnomon.join(dense, radius=3)).nnz == 0
        assert np.allclose(gnomon.sketch(x, 4, kind="sjlt"), gnomon.sketch(dense, 4, kind="sjlt"))
        assert x.nnz == len(values)

    def test_join_is_what_dbscan_takes(self):
        cluster = pytest.importorskip("sklearn.cluster")
        X = np.vstack([rng.normal(c, 0.3, size=(40, 5)) for c in (0, 3, 6)])
        X[5] = X[6]  # a pair at distance 0
        graph = gnomon.join(X, radius=1.0)
        assert graph[5, 6] == 0 and graph[5].nnz == (np.linalg.norm(X - X[5], axis=1) <= 1.0).sum() - 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = cluster.DBSCAN(eps=1.0, min_samples=4, metric="precomputed").fit_predict(graph)
        assert np.array_equal(ours, cluster.DBSCAN(eps=1.0, min_samples=4).fit_predict(X))

    def test_join_refuses(self):
        X = np.zeros((3, 2))
        for arguments in (dict(), dict(radius=1, similarity=0.5), dict(similarity=0.5), dict(radius=-1.0),
                          dict(radius=np.nan), dict(radius=1, recall=0), dict(radius=1, recall=1.5),
                          dict(radius=1, method="quick"), dict(radius=1, max_pairs=0), dict(radius=1, metric="l3"),
                          dict(similarity=0.5, metric="l1")):
            with pytest.raises(ValueError):
                gnomon.join(X, **arguments)
        with pytest.raises(ValueError, match="^X|^Y|cols|coordinates|dimension"):
            gnomon.join(X, np.zeros((3, 3)), radius=1)

    def test_similarity(self):
        sparse = pytest.importorskip("scipy.sparse")
        sets = sparse.csr_matrix(np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 0, 0, 1, 1]], np.float32))
        assert gnomon.join(sets, similarity=0.8, metric="jaccard").nnz == 2


class TestIndex:
    X = np.vstack([rng.normal(c, 0.2, size=(60, 8)) for c in rng.normal(0, 5, size=(40, 8))]).astype(np.float32)

    def test_all_tables_find_what_is_there(self):
        index = gnomon.Index.build(self.X, tables=20, coarse=4, width=4.0)
        found, true = index.kneighbors(self.X[:50], 5), gnomon.neighbors(self.X, self.X[:50], 5)
        shared = [len(set(a) & set(b)) / 5 for a, b in zip(found.indices, true.indices)]
        assert np.mean(shared) > 0.9
        near = index.radius_neighbors(self.X[:5], 1.0)
        exact = gnomon.neighbors(self.X, self.X[:5], radius=1.0)
        for a, b in zip(near.split()[1], exact.split()[1]):
            assert set(a) <= set(b)

    def test_life(self, tmp_path):
        index = gnomon.Index.build(self.X[:1000], tables=8, coarse=4, width=4.0)
        index.add(self.X[1000:])
        assert len(index) == len(self.X)
        index.remove([0, 5])
        index.remove(7)
        assert len(index) == len(self.X) - 3 and index.info["removed"] == 3
        assert not set(index.kneighbors(self.X[:8], 1).indices.ravel()) & {0, 5, 7}
        index.compact()
        path = tmp_path / "index"
        index.save(path)
        opened = gnomon.Index.open(str(path))
        asked = self.X[::100]
        for other in (opened, pickle.loads(pickle.dumps(index))):
            assert np.array_equal(other.kneighbors(asked, 3).indices, index.kneighbors(asked, 3).indices)
            assert other.info["tables"] == 8 and other.metric == "l2"
        opened.add(self.X[:10])
        assert len(opened) == len(index) + 10
        opened.save(path)
        assert len(gnomon.Index.open(path)) == len(opened)

    @pytest.mark.parametrize("metric, make", [
        ("cosine", lambda x: x), ("l1", lambda x: x), ("hamming", lambda x: (x > 0).astype(np.uint8)),
        ("jaccard", lambda x: pytest.importorskip("scipy.sparse").csr_matrix(x > 0)),
        ("weighted-jaccard", lambda x: pytest.importorskip("scipy.sparse").csr_matrix(np.maximum(x, 0)))])
    def test_metrics(self, metric, make):
        x = make(self.X)
        index = gnomon.Index.build(x, metric=metric, tables=4, coarse=2, width=40.0 if metric == "l1" else None)
        found = index.kneighbors(x[:20], 1)
        assert np.allclose(found.distances, 0, atol=1e-6)
        for family in gnomon.families(metric):
            settings = {} if family.endswith("k-means") else dict(tables=2, coarse=2)
            assert gnomon.Index.build(x, metric=metric, family=family, width=40.0 if metric == "l1" else None,
                                      **settings).info["family"] == family

    @pytest.mark.parametrize("metric, family", [("l2", "k-means"), ("cosine", "spherical-k-means")])
    def test_lists(self, tmp_path, metric, family):
        index = gnomon.Index.build(self.X[:2000], metric=metric, family=family, probes=1, random_state=3)
        assert index.info["centres"] == 45 and index.info["tables"] == 1 and index.info["other_bytes"] >= 45 * 8 * 4
        index.add(self.X[2000:].astype(np.float64))
        index.remove([3, 4])
        all_lists = index.kneighbors(self.X[:50], 5, probes=44)
        allowed = ~np.isin(np.arange(len(self.X)), [3, 4])
        true = gnomon.neighbors(self.X, self.X[:50], 5, metric=metric, allowed=allowed)
        assert np.array_equal(all_lists.indices, true.indices) and np.array_equal(all_lists.distances, true.distances)
        found = index.kneighbors(self.X[:200], 5)
        assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.indices, true.indices)]) > 0.8
        for query in (0, 17, 199):  # many at once and one by one
            one = index.kneighbors(self.X[query:query + 1], 5)
            assert np.array_equal(one.indices[0], found.indices[query])
            assert np.array_equal(one.distances[0], found.distances[query])
        near = index.radius_neighbors(self.X[:5], 0.3, probes=44)
        assert np.array_equal(near.indices, gnomon.neighbors(self.X, self.X[:5], radius=0.3, metric=metric,
                                                             allowed=allowed).indices)
        index.save(tmp_path / "index")
        for other in (gnomon.Index.open(tmp_path / "index"), pickle.loads(pickle.dumps(index))):
            assert other.info == index.info
            again = other.kneighbors(self.X[:200], 5)
            assert np.array_equal(again.indices, found.indices) and np.array_equal(again.distances, found.distances)
        few = gnomon.Index.build(self.X, metric=metric, family=family, centres=7, random_state=np.random.default_rng(1))
        assert few.info["centres"] == 7 and few.info["buckets"] <= 7
        for wrong, words in ((dict(centres=1), "centres"), (dict(centres=len(self.X) + 1), "centres is 2401"),
                             (dict(tables=2), family), (dict(coarse=2), family), (dict(codes=8), family),
                             (dict(fine=1), family), (dict(width=2.0), "width"), (dict(sides=4), "sides")):
            with pytest.raises(ValueError, match=words):
                gnomon.Index.build(self.X, metric=metric, family=family, **wrong)
        with pytest.raises(ValueError, match="only k-means"):
            gnomon.Index.build(self.X, width=4.0, centres=4)
        with pytest.raises(ValueError, match="row 2, column 1"):
            gnomon.Index.build(np.where(np.arange(2400)[:, None] * 8 + np.arange(8) == 17, np.nan, self.X), metric=metric,
                               family=family)
        sparse = pytest.importorskip("scipy.sparse")
        with pytest.raises(ValueError, match="sparse"):
            gnomon.Index.build(sparse.csr_matrix(self.X), metric=metric, family=family)

    def test_tune(self):
        index = gnomon.Index.tune(self.X, 5, recall=0.9, always=True, n_queries=200)
        assert index.tuning.bound >= 0.9 or index.exact
        found, true = index.kneighbors(self.X[:200], 5), gnomon.neighbors(self.X, self.X[:200], 5)
        assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.indices, true.indices)]) > 0.85
        assert {"family", "recall", "cost"} <= set(index.tuning.trials[0])

    def test_tune_may_say_exact(self):
        X = rng.normal(size=(300, 30))
        index = gnomon.Index.tune(X, 3, recall=0.99)
        assert index.exact and index.tuning.reason and len(index) == 300
        assert np.array_equal(index.kneighbors(X[:5], 3).indices, gnomon.neighbors(X, X[:5], 3).indices)
        with pytest.raises(ValueError, match="exact"):
            index.add(X)
        assert index.info["exact"]

    def test_refused(self, tmp_path):
        with pytest.raises(TypeError):
            gnomon.Index()
        for arguments in (dict(tables=0), dict(coarse=300), dict(family="minhash"), dict(metric="ip"), dict(width=-1.0),
                          dict(width=np.nan), dict(metric="l3"), dict(fine=-1)):
            with pytest.raises(ValueError):
                gnomon.Index.build(self.X, **{"width": 4.0, **arguments})
        with pytest.raises(FileNotFoundError) as caught:
            gnomon.Index.open(tmp_path / "none")
        assert caught.value.filename == str(tmp_path / "none") and isinstance(caught.value, OSError)
        (tmp_path / "text").write_text("no index")
        with pytest.raises(gnomon.DataError, match="text"):
            gnomon.Index.open(tmp_path / "text")
        index = gnomon.Index.build(self.X, tables=2, coarse=4, width=4.0)
        for ids in ([len(self.X)], [-1]):
            with pytest.raises(ValueError, match="ids"):
                index.remove(ids)
        for bad in (self.X[:, :3], self.X[:2] * np.nan):
            with pytest.raises(ValueError):
                index.add(bad)
            with pytest.raises(ValueError):
                index.kneighbors(bad)
        with pytest.raises(ValueError, match="n_neighbors"):
            index.kneighbors(self.X, 0)
        with pytest.raises(OSError):
            index.save(tmp_path / "no" / "folder")


class TestRaBitQIndex:
    X = rng.normal(size=(60, 30)).repeat(10, 0) + 0.2 * rng.normal(size=(600, 30))
    Q = X[:50] + 0.1 * rng.normal(size=(50, 30))

    @staticmethod
    def same(found, true):
        assert np.array_equal(found.indices, true.indices)
        assert np.array_equal(found.distances.view(np.int64), true.distances.view(np.int64))

    @pytest.mark.parametrize("metric", ["l2", "cosine", "euclidean"])
    @pytest.mark.parametrize("bits", [1, 2, 5, 8])
    def test_answers_are_those_of_exact_search(self, metric, bits, tmp_path):
        for X, Q in ((self.X, self.Q), (self.X.astype(np.float32), self.Q[:, ::-1].astype(np.float32)[:, ::-1])):
            index = gnomon.RaBitQIndex.build(X, metric=metric, bits=bits, random_state=7)
            true = gnomon.neighbors(X, Q, 4, metric=metric)
            index.save(tmp_path / "index")
            for one in (index, gnomon.RaBitQIndex.open(str(tmp_path / "index")), pickle.loads(pickle.dumps(index))):
                assert one.metric == ("l2" if metric == "euclidean" else metric) and len(one) == 600
                assert one.info == index.info and one.info["seed"] == 7 and one.info["dim"] == 30
                self.same(one.kneighbors(Q, 4), true)
                self.same(one.kneighbors(Q, 4, recall=1.0, n_jobs=2), true)
                self.same(one.kneighbors(Q, 4, rerank=600), true)
            allowed = np.arange(600) % 3 == 0
            self.same(index.kneighbors(Q, 4, allowed=allowed), gnomon.neighbors(X, Q, 4, metric=metric, allowed=allowed))

    @pytest.mark.parametrize("bits", [1, 4])
    def test_recall(self, bits):
        true = gnomon.neighbors(self.X, self.Q, 10).indices
        for wanted in (0.5, 0.9, 0.99):
            shares = []
            for seed in range(5):
                index = gnomon.RaBitQIndex.build(self.X, bits=bits, random_state=seed)
                found = index.kneighbors(self.Q, 10, recall=wanted)
                shares += [len(set(a) & set(b)) / 10 for a, b in zip(found.indices, true)]
                assert (np.diff(found.distances) >= 0).all()
            assert np.mean(shares) >= wanted

    @pytest.mark.parametrize("metric", ["l2", "cosine"])
    def test_estimates(self, metric):
        unit = (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)) if metric == "cosine" else (lambda x: x)
        true = ((unit(self.Q)[:, None] - unit(self.X)) ** 2).sum(-1)
        errors = []
        for bits in (1, 3, 8):
            index = gnomon.RaBitQIndex.build(self.X, metric=metric, bits=bits)
            estimates, always = index.estimate(self.Q)
            assert estimates.shape == always.shape == (50, 600) and estimates.dtype == np.float64
            assert (abs(estimates - true) <= always).all()
            same, bounds = index.estimate(self.Q, failure=0.1)
            assert np.array_equal(same, estimates) and (bounds <= always).all()
            assert np.mean(abs(estimates - true) > bounds) < 0.16  # 1.6 times, as docs/reference/rabitq.md says
            errors.append(abs(estimates - true).mean())
        assert errors[0] > 2 * errors[1] > 4 * errors[2]

    def test_codes_only(self, tmp_path):
        X = self.X.copy()
        index = gnomon.RaBitQIndex.build(X, bits=8, codes_only=True)
        X[:] = 0
        assert index.info["codes_only"] and index.info["code_bytes"] == 600 * (32 + 12)
        found = index.kneighbors(self.Q, 10)
        true = gnomon.neighbors(self.X, self.Q, 10)
        assert np.mean([len(set(a) & set(b)) for a, b in zip(found.indices, true.indices)]) > 9
        assert np.allclose(found.distances, true.distances, rtol=0.05)
        index.save(tmp_path / "index")
        self.same(gnomon.RaBitQIndex.open(tmp_path / "index").kneighbors(self.Q, 10), found)
        for argument in ({"recall": 0.9}, {"rerank": 20}):
            with pytest.raises(ValueError, match="recall"):
                index.kneighbors(self.Q, 10, **argument)

    def test_a_configured_gpu_is_not_asked(self, tmp_path):
        true = gnomon.neighbors(self.X, self.Q, 4)
        with gnomon.config_context(device="cuda"):
            gnomon.RaBitQIndex.build(self.X).save(tmp_path / "index")
            self.same(gnomon.RaBitQIndex.open(tmp_path / "index").kneighbors(self.Q, 4), true)

    def test_bad(self, tmp_path):
        sparse = pytest.importorskip("scipy.sparse")
        with pytest.raises(TypeError, match="build or"):
            gnomon.RaBitQIndex()
        with pytest.raises(TypeError, match="sparse"):
            gnomon.RaBitQIndex.build(sparse.csr_matrix(self.X))
        for arguments, match in (({"bits": 9}, "bits"), ({"bits": 0}, "bits"), ({"metric": "ip"}, "metric"),
                                 ({"metric": "none"}, "metric")):
            with pytest.raises(ValueError, match=match):
                gnomon.RaBitQIndex.build(self.X, **arguments)
        with pytest.raises(ValueError, match="row 3"):
            gnomon.RaBitQIndex.build(np.where(np.arange(600)[:, None] == 3, np.nan, self.X))
        index = gnomon.RaBitQIndex.build(self.X)
        for arguments, match in (({"n_neighbors": 601}, "n_neighbors"), ({"n_neighbors": 0}, "n_neighbors"),
                                 ({"recall": 0}, "recall"), ({"recall": 1.1}, "recall"), ({"rerank": 4}, "rerank"),
                                 ({"recall": 0.9, "rerank": 9}, "both")):
            with pytest.raises(ValueError, match=match):
                index.kneighbors(self.Q, **arguments)
        with pytest.raises(ValueError, match="columns"):
            index.kneighbors(self.Q[:, :3])
        for failure in (1, -0.1, np.nan):
            with pytest.raises(ValueError, match="failure"):
                index.estimate(self.Q, failure=failure)
        (tmp_path / "text").write_text("no index")
        with pytest.raises(gnomon.DataError):
            gnomon.RaBitQIndex.open(tmp_path / "text")
        with pytest.raises(FileNotFoundError):
            gnomon.RaBitQIndex.open(tmp_path / "none")


class TestSparseIndex:
    @pytest.fixture
    def X(self):
        sparse = pytest.importorskip("scipy.sparse")
        dense = np.where(rng.random((300, 60)) < 2 / np.arange(2, 62), rng.normal(1, 1, size=(300, 60)), 0)
        dense[7], dense[250] = 0, dense[3]
        return sparse.csr_matrix(dense)

    @staticmethod
    def same(index, base, queries, metric, ids=None):
        """The answers are those of exact search among the base's rows of these ids."""
        ids = np.arange(base.shape[0]) if ids is None else ids
        for asked in ({"n_neighbors": 4}, {"radius": 0.8}):
            true = gnomon.neighbors(base[ids], queries, metric=metric, **asked)
            found = (index.kneighbors if "n_neighbors" in asked else index.radius_neighbors)(queries, *asked.values())
            assert np.array_equal(found.indices, ids[true.indices]) and np.array_equal(found.indptr, true.indptr)
            assert np.array_equal(found.distances.view(np.int64), true.distances.view(np.int64))

    @pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "l1"])
    def test_answers_are_those_of_exact_search(self, X, metric, tmp_path):
        index = gnomon.SparseIndex.build(X, metric=metric)
        self.same(index, X, X[:40], metric)
        index.save(tmp_path / "index")
        for other in (gnomon.SparseIndex.open(str(tmp_path / "index")), pickle.loads(pickle.dumps(index))):
            assert other.metric == metric and len(other) == 300 and other.info == index.info
            self.same(other, X, X[:40], metric)
        near = index.kneighbors(X[:9].toarray(), 2)
        assert np.array_equal(near.indices, index.kneighbors(X[:9], 2).indices)
        allowed = np.arange(300) % 3 == 0
        assert not (index.kneighbors(X[:9], 5, allowed=allowed).indices % 3).any()

    def test_life(self, X, tmp_path):
        sparse, path = pytest.importorskip("scipy.sparse"), tmp_path / "index"
        gnomon.SparseIndex.build(X[:200]).save(path)
        index = gnomon.SparseIndex.open(path)
        index.save(path, add=X[200:], remove=[0, 5, 299])
        assert len(index) == 200
        with pytest.raises(gnomon.BusyError):  # the file is another by now
            index.save(path, remove=1)
        gnomon.SparseIndex.open(path).save(path, remove=9, compact=True)
        index = gnomon.SparseIndex.open(path)
        assert len(index) == 296 and index.info["removed"] == 4 and index.info["nonzeros"] < X.nnz
        self.same(index, sparse.csr_matrix(X), X[:40], "cosine", np.setdiff1d(np.arange(300), [0, 5, 9, 299]))

    def test_bad(self, X, tmp_path):
        with pytest.raises(TypeError, match="build or"):
            gnomon.SparseIndex()
        with pytest.raises(TypeError, match="dense"):
            gnomon.SparseIndex.build(X.toarray())
        with pytest.raises(ValueError, match="metric"):
            gnomon.SparseIndex.build(X, metric="jaccard")
        index = gnomon.SparseIndex.build(X)
        with pytest.raises(ValueError, match="n_neighbors"):
            index.kneighbors(X, 301)
        with pytest.raises(ValueError):
            index.kneighbors(X[:, :3], 1)
        for change in ({"add": X[:, :3]}, {"remove": 300}, {"remove": -1}, {"remove": 1.5}):
            with pytest.raises(ValueError):
                index.save(tmp_path / "index", **change)
        assert not any(tmp_path.iterdir())
        (tmp_path / "text").write_text("no index")
        with pytest.raises(gnomon.DataError):
            gnomon.SparseIndex.open(tmp_path / "text")
        with pytest.raises(FileNotFoundError):
            gnomon.SparseIndex.open(tmp_path / "none")


@needs_blas
class TestFactors:
    A = rng.normal(size=(120, 6)) @ rng.normal(size=(6, 50)) + 0.01 * rng.normal(size=(120, 50))

    def test_svd(self):
        found = gnomon.svd(self.A, 6)
        U, s, Vt = found
        assert np.allclose(s, np.linalg.svd(self.A, compute_uv=False)[:6], rtol=1e-6)
        assert np.allclose(U.T @ U, np.eye(6)) and np.allclose(Vt @ Vt.T, np.eye(6))
        left = np.linalg.norm(self.A - U * s @ Vt)
        assert left <= found.certificate.residual_bound and found.certificate.failure == 1e-6
        assert np.isclose(gnomon.svd(self.A, 6, measure=True).certificate.residual, left)
        assert gnomon.svd(self.A.astype(np.float32), 3).U.dtype == np.float32

    def test_svd_of_pieces(self):
        def pieces():
            return (self.A[at:at + 17] for at in range(0, 120, 17))

        whole = gnomon.svd(self.A, 4)
        for again in (gnomon.svd(pieces, 4, n_samples=120), gnomon.svd(pieces, 4)):
            assert np.allclose(again.s, whole.s) and np.allclose(again.U, whole.U, atol=1e-6)
        assert np.allclose(gnomon.svd(pieces(), 4, single_pass=True).s, whole.s, rtol=1e-2)
        with pytest.raises(ValueError):
            gnomon.svd(pieces(), 4)

    def test_pieces_that_raise(self):
        def broken():
            yield self.A[:20]
            raise ZeroDivisionError("here")

        with pytest.raises(ZeroDivisionError, match="here"):
            gnomon.svd(broken, 4)
        with pytest.raises(ValueError, match="features"):
            gnomon.svd(lambda: iter([self.A[:20], self.A[:, :3]]), 4)
        with pytest.raises(ValueError, match="X"):
            gnomon.svd(lambda: iter([]), 4)
        with pytest.raises(ValueError):
            gnomon.svd(lambda: iter([self.A[:20], ["a"]]), 4)
        assert gnomon.svd(self.A, 4).converged

    def test_pca(self):
        found = gnomon.svd(self.A, 4, center=True)
        centred = self.A - self.A.mean(0)
        assert np.allclose(found.mean, self.A.mean(0))
        assert np.allclose(found.s, np.linalg.svd(centred, compute_uv=False)[:4])
        assert np.isclose(found.total_variance, centred.var(0, ddof=1).sum())
        assert np.isclose(found.explained_variance_ratio.sum() * found.norm**2, (found.s**2).sum())
        assert np.allclose(gnomon.svd(self.A, 4, standardize=True).scale, self.A.std(0, ddof=1))

    def test_tolerance(self):
        found = gnomon.svd(self.A, tol=0.05)
        assert found.converged and len(found.s) == 6

    def test_sparse(self):
        sparse = pytest.importorskip("scipy.sparse")
        A = self.A * (rng.random(self.A.shape) < 0.2)
        assert np.allclose(gnomon.svd(sparse.csr_matrix(A), 4).s, np.linalg.svd(A, compute_uv=False)[:4], rtol=1e-6)

    @pytest.mark.parametrize("arguments", [
        dict(), dict(n_components=0), dict(n_components=51), dict(n_components=3, n_iter=101),
        dict(n_components=3, n_iter="many"), dict(n_components=3, n_oversamples=-1), dict(tol=1.0), dict(tol=-0.1),
        dict(n_components=3, dtype=np.int32), dict(n_components=3, kind="none"),
        dict(n_components=3, single_pass=True, standardize=True)])
    def test_refused(self, arguments):
        with pytest.raises(ValueError):
            gnomon.svd(self.A, **arguments)

    def test_parameters_need_a_kind(self):
        with pytest.raises(TypeError, match="nonzeros"):
            gnomon.svd(self.A, 3, nonzeros=2)
        assert gnomon.svd(self.A, 3, kind="sjlt", nonzeros=2).s.shape == (3,)

    @pytest.mark.parametrize("order", ["C", "F", "strided"])
    def test_hosvd(self, order):
        X = np.einsum("ia,jb,kc,abc->ijk", *(rng.normal(size=(n, 2)) for n in (9, 8, 7)), rng.normal(size=(2, 2, 2)))
        shown = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, 1)[::-1, ::2][::-1]}[order]
        found = gnomon.hosvd(shown, 2)
        core, factors = found
        assert core.shape == (2, 2, 2) and np.allclose(found.reconstruct(), X)
        assert all(np.allclose(f.T @ f, np.eye(2)) for f in factors)
        assert gnomon.hosvd(shown, tol=1e-6).core.shape == (2, 2, 2)
        for bad in (dict(), dict(ranks=(1, 2)), dict(ranks=0), dict(ranks=(10, 2, 2))):
            with pytest.raises(ValueError):
                gnomon.hosvd(shown, **bad)
        with pytest.raises(ValueError, match="X"):
            gnomon.hosvd(np.zeros((1,) * 17), 1)

    def test_lstsq(self):
        A, b = rng.normal(size=(300, 12)), rng.normal(size=(300, 2))
        expected = np.linalg.lstsq(A, b, rcond=None)[0]
        found = gnomon.lstsq(A, b, keep_residual=True)
        assert found.converged and np.allclose(found.x, expected) and np.allclose(found.residual, b - A @ expected)
        assert np.linalg.norm(found.x[:, 0] - expected[:, 0]) <= found.targets[0]["forward_bound"]
        assert np.allclose(gnomon.lstsq(A, b[:, 0]).x, expected[:, 0])
        assert np.allclose(gnomon.lstsq(lambda: iter([A[:100], A[100:]]), b).x, expected)
        ridge = np.linalg.solve(A.T @ A + 4 * np.eye(12), A.T @ b)
        assert np.allclose(gnomon.lstsq(A, b, damp=2.0).x, ridge)
        for bad in (b[:5], b * np.nan, "x"):
            with pytest.raises((ValueError, TypeError), match="b"):
                gnomon.lstsq(A, bad)
        with pytest.raises(ValueError, match="iterator"):
            gnomon.lstsq(iter([A]), b)

    def test_lstsq_sparse(self):
        sparse = pytest.importorskip("scipy.sparse")
        A, b = rng.normal(size=(300, 12)) * (rng.random((300, 12)) < 0.4), rng.normal(size=300)
        assert np.allclose(gnomon.lstsq(sparse.csc_matrix(A), b).x, np.linalg.lstsq(A, b, rcond=None)[0])


class TestMatmul:
    @pytest.mark.parametrize("left", [np.float32, np.float16])
    @pytest.mark.parametrize("right", [np.float32, np.float16])
    def test_types(self, left, right):
        A, B = rng.normal(size=(7, 30)).astype(left), rng.normal(size=(30, 5)).astype(right)
        expected = A.astype(np.float64) @ B.astype(np.float64)
        assert np.allclose(gnomon.matmul(A, B), expected, atol=1e-5)
        assert np.array_equal(gnomon.matmul(np.asfortranarray(A), B[::-1].copy()[::-1]), gnomon.matmul(A, B))
        out = np.ones((7, 5))
        assert gnomon.matmul(A, B, alpha=2, beta=-1, out=out) is out
        assert np.allclose(out, 2 * expected - 1, atol=1e-5)

    def test_operators(self):
        S, X = gnomon.operator(4, 30), rng.normal(size=(6, 30))
        assert np.allclose(gnomon.matmul(X, S.T), X @ S.toarray().T)
        assert np.allclose(gnomon.matmul(S, X.T), S.toarray() @ X.T)
        assert np.allclose(gnomon.matmul(S.T, np.ones((4, 3))), S.toarray().T @ np.ones((4, 3)))

    def test_refused(self):
        one = np.ones((2, 3), np.float32)
        with pytest.raises(ValueError, match="fit"):
            gnomon.matmul(one, one)
        with pytest.raises(ValueError, match="A"):
            gnomon.matmul(one.astype(np.float64), one.T)
        with pytest.raises(ValueError, match="beta"):
            gnomon.matmul(one, one.T, beta=1.0)
        with pytest.raises(TypeError):
            gnomon.matmul(gnomon.operator(2, 3), gnomon.operator(2, 3))
        with pytest.raises(ValueError, match="fit"):
            gnomon.matmul(one, gnomon.operator(2, 4).T)
        with pytest.raises(ValueError, match="fit"):
            gnomon.operator(2, 4) @ one


def test_dedup_parts():
    import random
    draw = random.Random(4)
    some = ["Home", "a line of text", "ä", "x", "  ", ""]
    texts = ["\n".join(draw.choice(some) if draw.random() < 0.6 else f"line {draw.randrange(200)}" for _ in range(draw.randrange(8)))
             for _ in range(300)]
    seen, wanted, removed = set(), [], 0
    for text in texts:
        kept, cut = "", 0
        for line in text.splitlines(keepends=True):
            key = line.rstrip("\n")
            if key.strip() and key in seen:
                cut += 1
                continue
            seen.add(key)
            kept += line
        removed += cut
        wanted.append(None if cut and not kept.strip() else kept)
    for settings in ({}, {"n_jobs": 1}):
        found = gnomon.dedup_parts((text if i % 2 else text.encode() for i, text in enumerate(texts)), **settings)
        assert [text if i % 2 or text is None else text.decode() for i, text in enumerate(found.texts)] == wanted
        assert found.removed == removed > 100 and found.parts == removed + found.distinct and None in wanted
        assert found.changed == sum(w is not None and w != t for w, t in zip(wanted, texts))
    assert gnomon.dedup_parts(["a\n\nb\nc", "b\nc\n \nd", "b\nc"], parts="paragraphs").texts == ["a\n\nb\nc", "d", None]
    assert gnomon.dedup_parts(["ab\nc", "ab\nc"], min_bytes=2).texts == ["ab\nc", "c"]
    assert gnomon.dedup_parts(["", "", " "]).texts == ["", "", " "] and gnomon.dedup_parts([]).texts == []
    with pytest.raises(ValueError, match="parts is 'words'"):
        gnomon.dedup_parts(["a"], parts="words")
    with pytest.raises(ValueError, match="min_bytes"):
        gnomon.dedup_parts(["a"], min_bytes=0)
    with pytest.raises(TypeError, match="one text"):
        gnomon.dedup_parts("a")
    with pytest.raises(gnomon.DataError, match="UTF-8"):
        gnomon.dedup_parts([b"\xff"])


def test_dedup():
    import itertools
    import random
    draw = random.Random(3)
    texts = []
    for i in range(300):
        words = [str(draw.randrange(3000)) for _ in range(40)] if i % 3 == 0 else texts[draw.randrange(i)].split()
        words[draw.randrange(40)] = f"new{i}"
        texts.append(" ".join(words))
    sets = [frozenset(zip(words, words[1:], words[2:])) for words in map(str.split, texts)]
    near = {(i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in itertools.combinations(range(300), 2)}
    wanted = {pair: value for pair, value in near.items() if value >= 0.6}
    assert len(wanted) > 300 and 1 not in wanted.values()
    for settings in ({"recall": 1.0}, {}, {"random_state": 5, "n_jobs": 1}, {"bands": 60, "rows": 3}):
        found = gnomon.dedup((text if i % 2 else text.encode() for i, text in enumerate(texts)), similarity=0.6, **settings)
        pairs = dict(zip(map(tuple, found.pairs.tolist()), found.similarities.tolist()))
        assert pairs.items() <= wanted.items()
        assert len(pairs) >= (1 if "recall" in settings else 0.95) * len(wanted)
        assert (found.kept == np.flatnonzero(found.representatives == np.arange(300))).all()
        assert all(found.representatives[i] == found.representatives[j] for i, j in pairs)
        assert found.info.clusters == len({found.representatives[i] for i, _ in pairs})
    longest = gnomon.dedup(["a b c d", "a b c d!", "x"], keep="longest")
    assert longest.representatives.tolist() == [1, 1, 2]
    assert gnomon.dedup(["a b c d", "a b c d!", "x", "x"], exact=True).kept.tolist() == [0, 1, 2]
    assert gnomon.dedup([]).kept.tolist() == []
    with pytest.raises(TypeError, match="texts is one text"):
        gnomon.dedup("text")
    with pytest.raises(TypeError, match="number 1 is int"):
        gnomon.dedup(["a", 1])
    with pytest.raises(ValueError, match="similarity"):
        gnomon.dedup(["a"], similarity=2)
    with pytest.raises(gnomon.DataError, match="document 1 is not UTF-8"):
        gnomon.dedup([b"a", b"\xff"])
    with pytest.raises(ValueError, match="lower is 'all'; it must be one of False, True, 'fold'"):
        gnomon.dedup(["a"], lower="all")


def test_dedup_normalize():
    texts = ["Die Stra\u00dfe ist \ufb01n", "DIE STRASSE IST FIN", "die strasse\u2014ist fin"]
    try:
        found = gnomon.dedup(texts, lower="fold", normalize="nfkc", punctuation="drop-all")
    except gnomon.UnsupportedError as error:
        pytest.skip(str(error))
    assert found.representatives.tolist() == [0, 0, 0]
    assert gnomon.dedup(texts, lower="fold").representatives.tolist() == [0, 0, 2]  # the ligature is folded too
    assert gnomon.dedup(texts, lower=True, normalize="nfc").representatives.tolist() == [0, 1, 2]


def test_dedup_parts(tmp_path):
    import random
    draw = random.Random(4)
    texts = [" ".join(draw.choices("abcdefgh", k=12)) for _ in range(200)]
    names = [f"{draw.random():.9f}\u00e9" for _ in texts]
    order = sorted(range(200), key=lambda i: names[i].encode())
    expected = gnomon.dedup([texts[i] for i in order], similarity=0.3, ngram=2)
    assert expected.info.clusters > 0
    for cuts in ((0, 200), (0, 50, 51, 200), (0, 0, 100, 200)):
        paths = [tmp_path / f"{part}" for part in range(len(cuts) - 1)]
        for path, begin, end in zip(paths, cuts, cuts[1:]):
            gnomon.dedup_sign(texts[begin:end], path, names=iter(names[begin:end]), ngram=2)
        found, found_names = gnomon.dedup_merge(reversed(paths), similarity=0.3, sign=tmp_path / "all")
        assert found_names == [names[i] for i in order]
        assert all((mine == its).all() for mine, its in zip(found[:4], expected[:4]))
        again, _ = gnomon.dedup_merge([tmp_path / "all"], similarity=0.3)
        assert (again.representatives == expected.representatives).all()
    with pytest.raises(ValueError, match="names are 1; there are 2 texts"):
        gnomon.dedup_sign(["a", "b"], tmp_path / "none", names=["a"])
    with pytest.raises(TypeError, match="number 0 is int"):
        gnomon.dedup_sign(["a"], tmp_path / "none", names=[1])
    with pytest.raises(ValueError, match="NUL"):
        gnomon.dedup_sign(["a"], tmp_path / "none", names=["a\0"])
    with pytest.raises(TypeError, match="paths is one path"):
        gnomon.dedup_merge(tmp_path / "all")
    assert not (tmp_path / "none").exists()
    gnomon.dedup_sign(["a b c"], tmp_path / "other", names=["x"], ngram=3)
    with pytest.raises(gnomon.DataError, match="other"):
        gnomon.dedup_merge([tmp_path / "all", tmp_path / "other"])


def test_dedup_against(tmp_path):
    import ctypes

    from gnomon import _abi, _dedup
    from gnomon._context import lease
    from gnomon._library import lib
    old = ["old words that are in the corpus already", "another document of the old corpus, with more words"]
    path = tmp_path / "old.sig"
    options, handle = _abi.gnomon_dedup_options(), ctypes.c_void_p()
    lib.gnomon_dedup_options_init(ctypes.byref(options), ctypes.sizeof(options))
    with lease({}, 1, "cpu", None) as ctx:
        ctx.call(lib.gnomon_dedup_create, ctypes.byref(options), ctypes.byref(handle))
        _dedup._add(ctx, handle, [text.encode() for text in old])
        names = (ctypes.c_char_p * 2)(b"b", b"a")
        ctx.check(lib.gnomon_dedup_sign(handle, names, str(path).encode()))
        lib.gnomon_dedup_destroy(handle)
    new = ["a wholly new line of text", old[0] + " now", old[0] + " now too", "a wholly new line of texts", old[1]]
    for against in (path, [str(path)]):
        found = gnomon.dedup(new, similarity=0.5, against=against)
        assert found.kept.tolist() == [0] and found.representatives.tolist() == [0, 6, 6, 0, 5]
        assert found.old_names == {5: b"a", 6: b"b"} and (found.info.old, found.info.held) == (2, 3)
        assert {(1, 6), (4, 5)} <= set(map(tuple, found.pairs.tolist()))
    assert gnomon.dedup(new, similarity=0.5).old_names == {}
    with pytest.raises((FileNotFoundError, OSError)):
        gnomon.dedup(new, against=tmp_path / "none.sig")
    with pytest.raises(ValueError):
        gnomon.dedup(new, against=path, ngram=2)
    with pytest.raises(ValueError):
        gnomon.dedup(new, against=path, exact=True)
