"""What sparse input gives, by the table of docs/reference/sparse-input.md: csr, csc and coo of npz, mtx and svmlight, in
search, join, projection and SVD. What is accepted is held against NumPy on dense rows; what is refused must end with the
exit code and the words of the table, without an output.

usage: check_input.py GNOMON WORK
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("NumPy is missing")
    sys.exit(77)

gnomon, work = os.path.abspath(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(16)
N, D, K = 14, 10, 4
failures, tried = [], {"accepted": 0, "refused": 0}


def run(*words):
    done = subprocess.run([gnomon, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr.strip()


has_svd = json.loads(run("info", "--json")[1])["svd"]


# ---- entries and files ----

class Entries:
    """Triplets in the order of a file, and the shape."""

    def __init__(self, rows, cols, values, shape):
        self.rows, self.cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        self.values, self.shape = np.asarray(values, float), shape

    def dense(self):
        """Without the columns that nobody uses: distances do not depend on them."""
        used = np.unique(self.cols)
        dense = np.zeros((self.shape[0], max(len(used), 1)))
        np.add.at(dense, (self.rows, np.searchsorted(used, self.cols)), self.values)
        return dense


def full(dense):
    rows, cols = np.nonzero(dense)
    return Entries(rows, cols, dense[rows, cols], dense.shape)


def arrays(entries, kind, index=np.int32):
    """The arrays of an npz. Entries of csr stay in their order within a row, those of csc within a column."""
    shape = np.array(entries.shape, np.int64)
    if kind == "coo":
        return {"format": np.array(b"coo"), "shape": shape, "data": entries.values, "row": entries.rows.astype(index),
                "col": entries.cols.astype(index)}
    major, minor, lines = ((entries.rows, entries.cols, shape[0]) if kind == "csr"
                           else (entries.cols, entries.rows, shape[1]))
    order = np.argsort(major, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=lines))])
    return {"format": np.array(kind.encode()), "shape": shape, "data": entries.values[order],
            "indices": minor[order].astype(index), "indptr": ends.astype(index)}


def write_mtx(entries, path):
    with open(path, "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{entries.shape[0]} {entries.shape[1]} "
                   f"{len(entries.rows)}\n")
        for i, j, value in zip(entries.rows, entries.cols, entries.values):
            file.write(f"{i + 1} {j + 1} {value!r}\n")


def write_svm(entries, path):
    with open(path, "w") as file:
        for i in range(entries.shape[0]):
            file.write("0" + "".join(f" {j + 1}:{value!r}" for k, j, value in
                                     zip(entries.rows, entries.cols, entries.values) if k == i) + "\n")


# ---- the slow reference ----

def distances(metric, a, b):
    if metric == "cosine":
        norms = [np.sqrt((x * x).sum(1)) for x in (a, b)]
        unit = [x / np.where(n == 0, 1, n)[:, None] for x, n in zip((a, b), norms)]
        return 1 - unit[0] @ unit[1].T
    if metric == "ip":
        return a @ b.T
    parts = np.abs(a[:, None] - b[None])
    return parts.sum(2) if metric == "l1" else np.sqrt((parts * parts).sum(2))


def near(path, name):
    """Of each metric the K nearest and the pairs within a threshold, of one file with itself."""
    entries = CASES[name]
    dense = entries.dense()
    for metric in ("l2", "cosine", "ip", "l1"):
        all_of = distances(metric, dense, dense)
        np.fill_diagonal(all_of, np.nan)
        best = np.sort(-all_of if metric == "ip" else all_of, 1)[:, :K]  # NaN comes last
        best = -best if metric == "ip" else best
        code, _, error = run("neighbors", path, path, "-k", str(K), "--metric", metric, "--exclude-self", "-o", "ids.npy",
                             "--distances", "near.npy", "--quiet")
        if code == 0:
            ids, found = np.load("ids.npy"), np.load("near.npy")
            ok = np.allclose(found, best, 1e-6, 1e-6) and np.allclose(
                np.take_along_axis(all_of, ids, 1), best, 1e-6, 1e-6) and all(len(set(row)) == K for row in ids)
        expect(code == 0 and ok, f"{path} of {name}: neighbors by {metric}", error)
        threshold = float(np.nanquantile(all_of, 0.3)) + 1e-9
        code, _, error = run("join", path, "--metric", metric, "--threshold", repr(threshold), "-o", "pairs.npy", "--quiet")
        if code == 0:
            pairs = [tuple(pair)[:2] for pair in np.load("pairs.npy").tolist()]
            with np.errstate(invalid="ignore"):
                rows, cols = np.nonzero(all_of >= threshold if metric == "ip" else all_of <= threshold)
            want = [(i, j) for i, j in zip(rows.tolist(), cols.tolist()) if i < j]
        expect(code == 0 and [(int(i), int(j)) for i, j in pairs] == want, f"{path} of {name}: join by {metric}", error)


def factors(path, name):
    """The sketch is that of the dense rows; singular values are NumPy's."""
    entries = CASES[name]
    if entries.shape[1] > 1000:
        return
    dense = np.zeros(entries.shape)
    np.add.at(dense, (entries.rows, entries.cols), entries.values)
    np.save("dense.npy", dense)
    sketches = []
    for file in (path, "dense.npy"):
        code, _, error = run("project", file, "-o", "sketch.npy", "-k", "3", "--operator", "sjlt", "--output-dtype", "f8",
                             "--features" if file.endswith(".svm") else "--quiet",
                             *([str(D), "--quiet"] if file.endswith(".svm") else []))
        sketches.append(np.load("sketch.npy") if code == 0 else np.full((1, 1), np.nan))
        expect(code == 0, f"{file} of {name}: project", error)
    expect(sketches[0].shape == sketches[1].shape and np.allclose(sketches[0], sketches[1], 1e-5, 1e-5),
           f"{path} of {name}: the sketch", "")
    if not has_svd or not dense.any():
        return
    code, _, error = run("svd", path, "-k", "2", "-o", "factors.npz", "--quiet")
    values = np.load("factors.npz")["S"] if code == 0 else np.zeros(2)
    expect(code == 0 and np.allclose(values, np.linalg.svd(dense)[1][:2], 1e-4, 1e-4), f"{path} of {name}: svd", error)


def expect(ok, what, error):
    if not ok:
        failures.append(f"{what}: {error}")


# ---- what is accepted ----

A = np.where(rng.random((N, D)) < 0.4, rng.integers(-8, 9, (N, D)) / 2, 0)
A[0] = rng.integers(1, 9, D)  # one row with all columns, of which the last one
A[:, 0] = rng.integers(1, 5, N)  # a column that all rows have
plain = full(A)
shuffled = rng.permutation(len(plain.rows))
twice = [np.concatenate([part, part[:9]]) for part in (plain.rows, plain.cols)]
cancel = [np.concatenate([part, part[-6:]]) for part in (plain.rows, plain.cols)]
holes = np.where(np.isin(np.arange(N), (2, 7, N - 1))[:, None], 0, A)
holes[3, 4], holes[0, D - 1] = 0, 1
spread, widest = (np.append(np.arange(D - 1) * (most // D), most - 1) for most in (2 ** 56, 2 ** 63 - 1))
single = np.zeros((N, D))
single[:, 3] = rng.integers(-4, 5, N) + 0.25
CASES = {
    "plain rows": plain,
    "columns in any order": Entries(plain.rows[shuffled], plain.cols[shuffled], plain.values[shuffled], (N, D)),
    "a column several times": Entries(*twice, np.concatenate([plain.values, plain.values[:9] / 4]), (N, D)),
    "a column's values that cancel": Entries(*cancel, np.concatenate([plain.values, -plain.values[-6:]]), (N, D)),
    "stored zeros": Entries(plain.rows, plain.cols, np.where(plain.cols % 3 == 1, 0, plain.values), (N, D)),
    "rows without entries": full(holes),
    "rows all equal": full(np.tile(A[1], (N, 1))),
    "one column alone": full(single),
    "2^56 columns": Entries(plain.rows, spread[plain.cols], plain.values, (N, 2 ** 56)),
    "2^63 - 1 columns": Entries(plain.rows, widest[plain.cols], plain.values, (N, 2 ** 63 - 1)),
}


def accepted():
    for name, entries in CASES.items():
        wide = entries.shape[1] > 1000
        for kind in ("csr", "coo") if wide else ("csr", "csc", "coo"):
            path = f"{kind}.npz"
            np.savez_compressed(path, **arrays(entries, kind, np.int64 if wide else np.int32))
            near(path, name)
            factors(path, name)
            tried["accepted"] += 1
        for path, write in (("file.mtx", write_mtx), ("file.svm", write_svm)):
            if path == "file.svm" and (wide or entries.cols.max(initial=0) < D - 1):
                continue  # its columns end with the last one in use
            write(entries, path)
            near(path, name)
            factors(path, name)
            tried["accepted"] += 1
    for index in (np.int8, np.uint16, np.int64, np.uint64, ">i8"):
        for kind in ("csr", "csc", "coo"):
            np.savez("index.npz", **arrays(plain, kind, index))
            near("index.npz", "plain rows")
            tried["accepted"] += 1
    for kind in ("csr", "csc"):  # SciPy reads it so, too
        longer = arrays(plain, kind)
        longer["data"], longer["indices"] = (np.append(longer[key], 99) for key in ("data", "indices"))
        np.savez("longer.npz", **longer)
        near("longer.npz", "plain rows")
        tried["accepted"] += 1


def empty():
    np.savez("none.npz", **arrays(full(np.zeros((0, D))), "csr"))
    np.savez("some.npz", **arrays(plain, "csr"))
    for words, want, text in (
            (("neighbors", "some.npz", "none.npz", "-k", "2", "-o", "out.npy"), 0, ""),
            (("neighbors", "none.npz", "some.npz", "--radius", "2", "-o", "out.npz"), 0, ""),
            (("join", "none.npz", "--threshold", "1", "-o", "out.npy"), 0, ""),
            (("join", "none.npz", "some.npz", "--threshold", "1", "-o", "out.npy"), 0, ""),
            (("project", "none.npz", "-k", "3", "-o", "out.npy"), 0, ""),
            (("neighbors", "none.npz", "some.npz", "-k", "2", "-o", "out.npy"), 2, "-k 2: none.npz has 0 points"),
            (("svd", "none.npz", "-k", "2", "-o", "out.npz"), 3, f"none.npz is 0 x {D}")):
        if words[0] == "svd" and not has_svd:
            continue
        code, _, error = run(*words, "--quiet")
        expect(code == want and text in error and (code != 0 or words[-1].endswith(".npz") or np.load(words[-1]).shape[0] == 0), words, f"{code} {error}")


# ---- what is refused ----

def changed(made, key, at, value, dtype=None):
    copy = dict(made)
    copy[key] = made[key].astype(dtype or made[key].dtype)
    copy[key][at] = value
    return copy


def refuse(path, text, verbs=None, code=3):
    calls = {"neighbors": ("neighbors", path, path, "-k", "2", "-o", "out.npy"),
             "join": ("join", path, "--threshold", "1", "-o", "out.npy"),
             "project": ("project", path, "-k", "3", "--operator", "sjlt", "-o", "out.npy")}
    if has_svd:
        calls["svd"] = ("svd", path, "-k", "2", "-o", "out.npz")
    for verb, words in calls.items():
        if verbs is not None and verb not in verbs:
            continue
        if os.path.exists(words[-1]):
            os.remove(words[-1])
        got, _, error = run(*words, "--quiet")
        expect(got == code and re.search(text, error) is not None and not os.path.exists(words[-1]),
               f"{path}: {verb} ended with {got}, not {code} and '{text}'", error)
        tried["refused"] += 1


def refused_npz(kind):
    made = arrays(plain, kind)
    minor, what, limit = {"csr": ("indices", "column", D), "csc": ("indices", "row", N), "coo": ("col", "column", D)}[kind]
    cases = {
        f"the {what} {limit} is outside 0 to {limit - 1} .element 5 of {minor}.": changed(made, minor, 5, limit),
        f"the {what} -1 is outside 0 to {limit - 1} .element 5 of {minor}.": changed(made, minor, 5, -1),
        f"the {what} {2 ** 62} is outside": changed(made, minor, 5, 2 ** 62, np.int64),
        f"the {what} {2 ** 63 + 1} is outside": changed(made, minor, 5, 2 ** 63 + 1, np.uint64),
        f"the array {minor} is of type f64, allowed are integers": {**made, minor: made[minor].astype(float)},
        f"the array {minor} has 2 dimensions": {**made, minor: made[minor][None]},
        "its shape has 3 sizes, not 2": {**made, "shape": np.array([N, D, 1])},
        f"its shape is {N} x -1": {**made, "shape": np.array([N, -1])},
        "a sparse matrix of format 'bsr'": {**made, "format": np.array(b"bsr")},
        f"without its array '{minor}'": {key: value for key, value in made.items() if key != minor},
    }
    if kind == "coo":
        cases.update({
            f"the row {N} is outside 0 to {N - 1} .element 5 of row.": changed(made, "row", 5, N),
            f"the row -1 is outside 0 to {N - 1} .element 5 of row.": changed(made, "row", 5, -1),
            "row, col and data have": {**made, "row": made["row"][:-1]},
        })
    else:
        entries, last = len(plain.rows), made["indptr"][-1]
        cases.update({
            "indptr goes from [0-9]* to 0 at": changed(made, "indptr", 3, 0),
            "indptr begins with 1, not 0": changed(made, "indptr", 0, 1),
            "indptr begins with -1, not 0": changed(made, "indptr", 0, -1),
            f"indptr ends with {last + 1}, with {entries} indices and {entries} values": changed(made, "indptr", -1, last + 1),
            f"indptr ends with {last}, with {entries} indices and {entries - 2} values": {**made, "data": made["data"][:-2]},
            f"indptr has {len(made['indptr']) - 1} elements": {**made, "indptr": made["indptr"][:-1]},
        })
    for text, bad in cases.items():
        np.savez("bad.npz", **bad)
        refuse("bad.npz", f"bad.npz: .*{text}", None if "element 5" in text else ("neighbors",))
    row, col = {"csc": lambda at: (made["indices"][at], np.searchsorted(made["indptr"], at, "right") - 1),
                "csr": lambda at: (np.searchsorted(made["indptr"], at, "right") - 1, made["indices"][at]),
                "coo": lambda at: (made["row"][at], made["col"][at])}[kind](5)
    for value in (np.nan, np.inf, -np.inf):
        np.savez("bad.npz", **changed(made, "data", 5, value))
        refuse("bad.npz", f"NaN or infinity in row {row}, column {col}")
    np.savez("bad.npz", **changed(made, "data", 5, 1e200))
    refuse("bad.npz", f"bad.npz.* has a magnitude above 2\\^500 in row {row}, column {col}", ("neighbors", "join"))
    for save in (np.savez, np.savez_compressed):
        save("whole.npz", **made)
        with open("whole.npz", "rb") as file:
            whole = file.read()
        for length in (1, len(whole) // 3, len(whole) // 2, len(whole) - 22, len(whole) - 1):
            with open("cut.npz", "wb") as file:
                file.write(whole[:length])
            refuse("cut.npz", "cut.npz: ", ("neighbors",))
        # a byte of the numbers: what the archive's checksum covers
        at = whole.index(made["data"].tobytes()[:64]) if save is np.savez else None
        if at is not None:
            with open("cut.npz", "wb") as file:
                file.write(whole[:at + 9] + bytes([whole[at + 9] ^ 1]) + whole[at + 10:])
            refuse("cut.npz", "cut.npz:data.npy", ("neighbors", "join"))


def refused_text():
    head = "%%MatrixMarket matrix coordinate real general\n2 3 2\n"
    for lines, text in (("1 1 5\n2 4 1\n", "line 4: column 4 is outside 1 to 3"), ("1 1 5\n3 1 1\n", "line 4: row 3 is out"),
                        ("1 1 5\n2 0 1\n", "line 4: column 0 is outside 1 to 3"), ("1 1 5\n", "1 of 2|2 entries|end"),
                        ("1 1 5\n2 -1 1\n", "line 4"), ("1 1 5\n2 99999999999999999999 1\n", "line 4")):
        with open("bad.mtx", "w") as file:
            file.write(head + lines)
        refuse("bad.mtx", f"bad.mtx: .*({text})", ("neighbors", "join"))
    for lines, text in (("1 1:2 4:3\n1 2:nan\n", "NaN or infinity in row 1, column 1"), ("1 -1:2\n", "line 1"),
                        ("1 1:x\n", "line 1")):
        with open("bad.svm", "w") as file:
            file.write(lines)
        refuse("bad.svm", f"bad.svm.*({text})", ("neighbors", "join"))


def refused_sides():
    np.savez("few.npz", **arrays(plain, "csr"))
    np.savez("less.npz", **arrays(full(A[:, :-1]), "csr"))
    np.save("less.npy", A[:, :-1])
    for other in ("less.npz", "less.npy"):
        for words in (("neighbors", "few.npz", other, "-k", "2"), ("join", "few.npz", other, "--threshold", "1")):
            code, _, error = run(*words, "-o", "out.npy", "--quiet")
            expect(code == 3 and f"few.npz has {D} dimensions and {other} {D - 1}: they must be the same" in error,
                   f"{words}", f"{code} {error}")
            tried["refused"] += 1
    np.savez("wide.npz", **arrays(CASES["2^56 columns"], "csr", np.int64))
    refuse("wide.npz", "wide.npz has 72057594037927936 columns; at most 2147483647 are taken", ("svd",))
    code, _, error = run("project", "wide.npz", "-k", "3", "--operator", "sjlt", "-o", "out.npy", "--quiet")
    expect(code == 0 and np.load("out.npy").shape == (N, 3), "wide.npz: project", error)
    np.savez("wider.npz", **arrays(CASES["2^63 - 1 columns"], "csr", np.int64))
    refuse("wider.npz", "d is 9223372036854775807; it must be at least 1 and at most 2^56".replace("^", "\\^"),
           ("project",), 2)


with tempfile.TemporaryDirectory(dir=work) as folder:
    os.chdir(folder)
    accepted()
    empty()
    for kind in ("csr", "csc", "coo"):
        refused_npz(kind)
    refused_text()
    refused_sides()
    os.chdir("/")

print(f"{tried['accepted']} files accepted, {tried['refused']} calls refused")
for failure in failures[:40]:
    print("wrong:", failure)
sys.exit(1 if failures else 0)
