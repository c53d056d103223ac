"""Files written by NumPy, SciPy and scikit-learn must be read back exactly, and files that
the library writes must be what those read.

usage: check_io_text.py PATH_OF_io_text_dump [npz]
"""
import gzip
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io
import scipy.sparse as sp

try:
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file
except ImportError:
    dump_svmlight_file = None

DUMP = sys.argv[1]
rng = np.random.default_rng(20260101)
checks = 0


def run(*arguments, input=None):
    done = subprocess.run([DUMP, *map(str, arguments)], capture_output=True, input=input)
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: {done.stderr.decode()}")
    return done.stdout, done.stderr.decode().split("\n")[0].split()


def same(found, expected, what):
    global checks
    checks += 1
    expected = np.asarray(expected, dtype=np.float64)
    if found.shape != expected.shape or not np.array_equal(found, expected, equal_nan=True):
        raise SystemExit(f"{what}: differs\n{found}\n{expected}")


def dense(path, *keys, **options):
    out, facts = run("dense", path, *keys, **options)
    cols = int(facts[2])
    return np.frombuffer(out).reshape(-1, cols) if cols else np.zeros((0, 0)), facts


def csr(path, shape, *keys):
    out, facts = run("csr", path, *keys)
    entries = np.frombuffer(out).reshape(-1, 3)
    assert int(facts[2]) == shape[1], (path, facts, shape)
    matrix = sp.coo_matrix(
        (entries[:, 2], (entries[:, 0].astype(int), entries[:, 1].astype(int))), shape=shape
    )
    return matrix.toarray(), facts


def awkward(rows, cols):
    """Doubles of every magnitude, with zeros of both signs and the extremes."""
    bits = rng.integers(0, 2**64, size=(rows, cols), dtype=np.uint64)
    values = bits.view(np.float64).copy()
    values[~np.isfinite(values)] = 0.1
    flat = values.reshape(-1)
    special = [0.0, -0.0, 5e-324, 1.7976931348623157e308, 2.2250738585072014e-308, 1 / 3]
    flat[: len(special)] = special[: flat.size]
    return values


def check_csv(folder):
    for rows, cols in ((40, 7), (3, 1), (1, 300)):
        for delimiter, name in ((",", "a.csv"), (";", "a.csv"), ("\t", "a.tsv"), (" ", "a.csv")):
            path = os.path.join(folder, name)
            values = awkward(rows, cols)
            header = delimiter.join(f"name{j}" for j in range(cols))
            for fmt, comments in (("%.18e", "# "), ("%.17g", ""), ("%s", "# ")):
                np.savetxt(path, values, fmt=fmt, delimiter=delimiter, header=header,
                           comments=comments)
                found, facts = dense(path)
                same(found, values, (name, delimiter, fmt))
                assert facts[0] == name[2:] and facts[1] == "-1" and facts[3] == "f32", facts
            with open(path, "rb") as file:
                found, _ = dense("-", "format=" + name[2:], input=file.read())
            same(found, values, "standard input")
            with open(path, "rb") as file, gzip.open(path + ".gz", "wb") as packed:
                packed.write(file.read())
            for which in (path, path + ".gz"):
                found, _ = dense(which, f"seek={rows - 1}", "points=1")
                same(found, values[-1:], "seek")
            os.unlink(path + ".gz")
            target = os.path.join(folder, "b" + name[1:])
            run("copy", path, target, "to=f64", "points=5")
            same(np.loadtxt(target, delimiter="\t" if name == "a.tsv" else ",", ndmin=2), values,
                 "copy")
            with np.errstate(over="ignore"):
                single = values.astype(np.float32)
            run("copy", path, target, "to=f32")
            back = np.loadtxt(target, delimiter="\t" if name == "a.tsv" else ",", ndmin=2)
            with np.errstate(over="ignore"):
                same(back.astype(np.float32), single, "copy as f32")
            run("copy", path, target, "to=f64", "digits=5")
            back = np.loadtxt(target, delimiter="\t" if name == "a.tsv" else ",", ndmin=2)
            same(back, [[float("%.4e" % v) for v in row] for row in values], "digits")
            os.unlink(target)
            os.unlink(path)


def check_shortest(folder):
    """Every digit that Python's own repr needs, and none beside them."""
    values = awkward(2000, 1)
    path, target = os.path.join(folder, "a.npy"), os.path.join(folder, "a.csv")
    np.save(path, values)
    run("copy", path, target, "to=f64")
    with open(target) as file:
        for line, value in zip(file, values[:, 0]):
            digits = lambda text: text.split("e")[0].replace(".", "").strip("-0")
            text = np.format_float_scientific(value, trim="-")
            if float(line) != value or digits(line.strip()) != digits(text):
                raise SystemExit(f"{line.strip()} is not the shortest of {text}")
    with np.errstate(over="ignore"):
        single = (rng.standard_normal(3000) * 10.0 ** rng.integers(-44, 38, 3000)).astype("f4")
    np.save(path, single.reshape(-1, 1))
    run("copy", path, target, "to=f32")
    with open(target) as file:
        for line, value in zip(file, single):
            text = np.format_float_scientific(value, trim="-")
            if np.float32(line) != value or digits(line.strip()) != digits(text):
                raise SystemExit(f"{line.strip()} is not the shortest of {text}")
    os.unlink(path)
    os.unlink(target)


def check_mtx(folder):
    path, target = os.path.join(folder, "a.mtx"), os.path.join(folder, "b.mtx")
    square = awkward(6, 6)
    square = np.where(rng.random((6, 6)) < 0.5, square, 0)
    symmetric = np.tril(square) + np.tril(square, -1).T
    skew = np.tril(square, -1) - np.tril(square, -1).T
    whole = rng.integers(-9, 9, (5, 8))
    for values, symmetry in ((square, "general"), (symmetric, "symmetric"),
                             (skew, "skew-symmetric"), (whole, "general"), (square[:3], "general")):
        field = "integer" if values.dtype.kind == "i" else "real"
        for make in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
            scipy.io.mmwrite(path, make(values), field=field, precision=17, symmetry=symmetry,
                             comment="a comment\nof two lines")
            found, facts = dense(path)
            same(found, values, ("mtx", symmetry))
            assert facts[0] == "mtx" and facts[1:3] == [str(n) for n in values.shape], facts
            for batch in (("points=1",), ("points=4", "entries=3"), ()):
                found, _ = csr(path, values.shape, "text=f64", *batch)
                same(found, values, ("csr", symmetry, batch))
            run("copy", path, target, "sparse=1", "text=f64", "to=f64")
            same(scipy.io.mmread(target).toarray(), values, "copy of sparse")
        scipy.io.mmwrite(path, values, field=field, precision=17, symmetry=symmetry)
        found, facts = dense(path, "points=2")
        same(found, values, ("array", symmetry))
        found, _ = dense(path, "seek=2")
        same(found, values[2:], "seek")
        run("copy", path, target, "to=f64", "points=2")
        same(scipy.io.mmread(target), values, "copy of dense")
    pattern = sp.random(30, 20, 0.1, random_state=1, format="csc")
    scipy.io.mmwrite(path, pattern, field="pattern")
    found, _ = csr(path, pattern.shape)
    same(found, (pattern.toarray() != 0), "pattern")
    os.unlink(path)
    os.unlink(target)


def check_svmlight(folder):
    if dump_svmlight_file is None:
        print("scikit-learn is not there: svmlight is not checked against it")
        return
    path, target = os.path.join(folder, "a.svm"), os.path.join(folder, "b.svm")
    for rows, cols in ((50, 30), (1, 1), (4, 200)):
        values = np.where(rng.random((rows, cols)) < 0.2, rng.standard_normal((rows, cols)), 0)
        values[0, 0], values[-1, -1] = 1 / 3, 1e-300
        labels = rng.integers(0, 3, rows)
        for zero_based, comment, qid in ((True, None, 0), (False, "words", 0), (True, "words", 1)):
            dump_svmlight_file(values, labels, path, zero_based=zero_based, comment=comment,
                               query_id=np.arange(rows) if qid else None)
            expected = load_svmlight_file(path, zero_based="auto")[0].toarray()
            found, facts = dense(path)
            same(found, expected, "svmlight")
            assert facts[0] == "svmlight" and int(facts[4]) == np.count_nonzero(expected), facts
            for batch in (("points=1",), ("points=7", "entries=9"), (f"cols={cols + 3}",),
                          (f"cols={cols}", f"zero={int(zero_based)}")):
                wide = cols + 3 if batch == (f"cols={cols + 3}",) else cols
                found, _ = csr(path, (rows, wide), "text=f64", *batch)
                same(found[:, :cols], expected, ("csr", batch))
            run("copy", path, target, "sparse=1", "text=f64")
            same(load_svmlight_file(target, n_features=cols)[0].toarray(), expected, "copy")
            run("copy", path, target, "to=f64")
            same(load_svmlight_file(target, n_features=cols)[0].toarray(), expected, "copy")
            with open(path, "rb") as file:
                text = file.read()
            for piped in (text, gzip.compress(text)):
                found, _ = dense("-", input=piped)
                same(found, expected, "standard input")
    os.unlink(path)
    os.unlink(target)


def check_npz(folder):
    path, target = os.path.join(folder, "a.npz"), os.path.join(folder, "b.npz")
    for rows, cols, density in ((40, 25, 0.2), (3000, 700, 0.01), (1, 1, 1), (5, 4, 0)):
        matrix = sp.random(rows, cols, density, random_state=2, format="csr")
        kinds = ("f8", "f4", ">f8", "i4", "u1", "?") if rows == 40 else ("f8", ">f4")
        for (layout, kind), compressed in zip(
            itertools.product(("csr", "csc", "coo"), kinds), itertools.cycle((True, False, False))
        ):
            scaled = matrix * (100 if np.dtype(kind).kind in "iu" else 1)
            try:
                stored = scaled.asformat(layout).astype(kind)
            except ValueError:  # newer SciPy has matrices of the machine's byte order alone
                continue
            sp.save_npz(path, stored, compressed=compressed)
            expected = sp.load_npz(path).toarray()
            if rows < 100:
                found, _ = dense(path)
                same(found, expected, ("npz", layout, kind))
            for batch in (("points=3", "entries=5"), ()):
                if batch and rows > 100:
                    batch = ("points=700", "entries=3000")
                found, facts = csr(path, (rows, cols), *batch)
                same(found, expected, ("csr", layout, kind, batch))
                assert int(facts[4]) == scaled.nnz, facts
            if rows > 2:
                found, _ = csr(path, (rows, cols), f"seek={rows - 2}", "points=1")
                same(found[-2:], expected[-2:], "seek")
                assert not found[:-2].any()
            run("copy", path, target, "sparse=1", "to=f64", "points=11")
            back = sp.load_npz(target)
            assert back.format == "csr" and back.shape == (rows, cols)
            same(back.toarray(), expected, "copy")
    # indices beyond 32 bits, and from one sparse format to all others
    wide = sp.coo_matrix(([1.5, 2.5], ([0, 2], [10**12, 5])), shape=(3, 2 * 10**12))
    sp.save_npz(path, wide)
    svm, mtx = os.path.join(folder, "b.svm"), os.path.join(folder, "b.mtx")
    for target in (target, mtx, svm):
        run("copy", path, target, "sparse=1")
        out, facts = run("csr", target, f"cols={2 * 10**12}")
        same(np.frombuffer(out).reshape(-1, 3), [[0, 10**12, 1.5], [2, 5, 2.5]], target)
        assert int(facts[2]) == 2 * 10**12, facts
        os.unlink(target)
    os.unlink(path)


with tempfile.TemporaryDirectory() as folder:
    check_csv(folder)
    check_shortest(folder)
    check_mtx(folder)
    check_svmlight(folder)
    if "npz" in sys.argv[2:]:
        check_npz(folder)
print(checks, "comparisons")
