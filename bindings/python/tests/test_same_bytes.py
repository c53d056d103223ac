"""The same seed gives the same bytes in Python, by the command and in C."""
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gnomon

SOURCE = Path(__file__).resolve().parents[3]
LIBRARY = Path(gnomon.library_path).resolve()
COMMAND = Path(os.environ.get("GNOMON_COMMAND", LIBRARY.parent / "bin" / "gnomon"))
KINDS = gnomon.kinds()
POINTS = np.random.default_rng(5).normal(size=(37, 200)).astype(np.float32)

PROGRAM = r"""
#include <gnomon.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    static float x[37 * 200], y[37 * 16];
    gnomon_context *ctx = NULL;
    gnomon_operator *op = NULL;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    const gnomon_matrix in = gnomon_matrix_rowmajor(x, GNOMON_F32, 37, 200);
    const gnomon_matrix out = gnomon_matrix_rowmajor(y, GNOMON_F32, 37, 16);
    if (argc != 3 || fread(x, sizeof x, 1, stdin) != 1) return 1;
    d.kind = gnomon_kind_from_name(argv[1]);
    d.seed = strtoull(argv[2], NULL, 10);
    d.k = 16;
    d.d = 200;
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return 2;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK) return 3;
    if (gnomon_sketch(ctx, op, &in, &out, NULL) != GNOMON_OK) return 4;
    return fwrite(y, sizeof y, 1, stdout) != 1;
}
"""


def sketch(kind):
    return gnomon.sketch(POINTS, 16, kind=kind, random_state=2**63 + 5)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "sketch.c").write_text(PROGRAM)
    try:
        subprocess.run([os.environ.get("CC", "cc"), "-I", SOURCE / "include", folder / "sketch.c", LIBRARY, "-o",
                        folder / "sketch", f"-Wl,-rpath,{LIBRARY.parent}"], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    return folder / "sketch"


@pytest.mark.parametrize("kind", KINDS)
def test_c(program, kind):
    out = subprocess.run([program, kind, str(2**63 + 5)], input=POINTS.tobytes(), capture_output=True, check=True).stdout
    assert out == sketch(kind).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_estimators(program, kind):
    estimators = pytest.importorskip("gnomon.sklearn")
    found = estimators.RandomProjection(16, kind=kind, random_state=2**63 + 5).fit_transform(POINTS)
    out = subprocess.run([program, kind, str(2**63 + 5)], input=POINTS.tobytes(), capture_output=True, check=True).stdout
    assert out == found.tobytes()
    if kind == "gaussian":
        found = estimators.GaussianRandomProjection(16, random_state=2**63 + 5).fit_transform(POINTS)
        assert out == found.tobytes()


@pytest.mark.skipif(not COMMAND.exists(), reason="no command: GNOMON_COMMAND names it")
class TestCommand:
    def run(self, folder, *arguments):
        subprocess.run([COMMAND, *arguments], cwd=folder, check=True, capture_output=True)

    @pytest.mark.parametrize("kind", KINDS)
    def test_sketch(self, tmp_path, kind):
        np.save(tmp_path / "x.npy", POINTS)
        self.run(tmp_path, "project", "x.npy", "-o", "y.npy", "-k", "16", "--operator", kind, "--seed", str(2**63 + 5),
                 "--save-operator", "s.json")
        assert np.load(tmp_path / "y.npy").tobytes() == sketch(kind).tobytes()
        S = gnomon.operator(16, 200, kind=kind, random_state=2**63 + 5)
        assert gnomon.Operator.from_json((tmp_path / "s.json").read_text()) == S
        (tmp_path / "ours.json").write_text(S.to_json())
        self.run(tmp_path, "project", "x.npy", "-o", "z.npy", "--load-operator", "ours.json")
        assert np.load(tmp_path / "z.npy").tobytes() == sketch(kind).tobytes()

    @pytest.mark.skipif(gnomon.svd_missing() is not None, reason="no OpenBLAS")
    def test_svd(self, tmp_path):
        np.save(tmp_path / "x.npy", POINTS)
        self.run(tmp_path, "svd", "x.npy", "-o", "f.npz", "--rank", "5", "--seed", "3")
        found = np.load(tmp_path / "f.npz")
        U, s, Vt = gnomon.svd(POINTS, 5, random_state=3)
        assert {name.lower() for name in found.files} >= {"u", "s", "vt"}
        for name in found.files:
            ours = {"u": U, "s": s, "vt": Vt}.get(name.lower())
            assert ours is None or found[name].ravel().tobytes() == np.ascontiguousarray(ours).tobytes(), name

    @pytest.mark.skipif(gnomon.svd_missing() is not None, reason="no OpenBLAS")
    def test_estimators(self, tmp_path):
        estimators = pytest.importorskip("gnomon.sklearn")
        np.save(tmp_path / "x.npy", POINTS)
        self.run(tmp_path, "svd", "x.npy", "-o", "f.npz", "--rank", "5", "--seed", "3", "--power", "5")
        model = estimators.TruncatedSVD(5, random_state=3).fit(POINTS)
        found = np.load(tmp_path / "f.npz")
        assert found["Vt"].tobytes() == model.components_.tobytes()
        self.run(tmp_path, "svd", "x.npy", "-o", "p.npz", "--rank", "5", "--seed", "3", "--center", "--power", "5")
        pca = estimators.PCA(5, svd_solver="randomized", iterated_power=5, random_state=3).fit(POINTS)
        assert np.load(tmp_path / "p.npz")["Vt"].tobytes() == pca.components_.tobytes()
        self.run(tmp_path, "neighbors", "x.npy", "x.npy", "--exclude-self", "-o", "n.npz", "-k", "4")
        nearest = estimators.NearestNeighbors(n_neighbors=4).fit(POINTS).kneighbors()[1]
        assert np.array_equal(np.load(tmp_path / "n.npz")["ids"], nearest)
