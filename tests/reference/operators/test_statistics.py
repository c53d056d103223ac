"""Are the entries distributed as their kinds promise, and is distortion as the exact laws say?

usage: test_statistics.py DUMP_BLOCK [SEED]

Every check is a hypothesis test on fresh seeds that fails with probability below LEVEL when
the operators are right; there are under 200, so a sound library fails once in some million
runs. The seed that is printed repeats a run."""

import random
import sys

import numpy as np
from library import Library
from scipy import stats

LEVEL = 1e-9


class Checks:
    def __init__(self, library, seed):
        self.served, self.rng = library, random.Random(seed)
        self.count = self.failed = 0

    def seed(self):
        return self.rng.getrandbits(53)

    def block(self, row, rows, col, cols, dtype="f32", **descriptor):
        descriptor.setdefault("scaling", "none")
        descriptor.setdefault("seed", self.seed())
        return self.served.block(descriptor, row, rows, col, cols, dtype).astype(np.float64)

    def p(self, name, value):
        """A p-value."""
        self.count += 1
        if not value > LEVEL:
            self.failed += 1
            print(f"FAIL {name}: p = {value:.3g}")

    def exact(self, name, condition):
        self.count += 1
        if not condition:
            self.failed += 1
            print(f"FAIL {name}")

    def z(self, name, value, mean, deviation):
        self.p(name, 2 * stats.norm.sf(abs(value - mean) / deviation))

    def cells(self, name, seen, probability):
        seen, expected = np.asarray(seen), np.asarray(probability) * np.sum(seen)
        assert expected.min() >= 5, name
        self.p(name, stats.chisquare(seen, expected).pvalue)

    def binomial(self, name, hits, trials, probability):
        self.p(name, stats.binomtest(int(hits), int(trials), probability).pvalue)


def moments(c, name, x, fourth):
    n = x.size
    c.z(f"{name} mean", x.mean(), 0, 1 / np.sqrt(n))
    c.z(f"{name} second moment", (x**2).mean(), 1, np.sqrt(max(fourth - 1, 1e-12) / n) + 1e-6)


def neighbours(c, name, x):
    """Entries next to each other, along both sides, and across calls, are uncorrelated."""
    for what, a, b in [
        ("row", x[1:], x[:-1]),
        ("column", x[:, 1:], x[:, :-1]),
        ("diagonal", x[1:, 1:], x[:-1, :-1]),
        ("4 rows", x[4:], x[:-4]),
        ("32 columns", x[:, 32:], x[:, :-32]),
        ("squares by row", x[1:] ** 2 - 1, x[:-1] ** 2 - 1),
    ]:
        product = a * b
        spread = product.std()
        if spread > 0:
            c.z(f"{name} next {what}", product.mean(), 0, spread / np.sqrt(product.size))


def gaussian(c):
    for precision in ("fp32", "fp16"):
        name = f"gaussian {precision}"
        x = c.block(0, 1000, 10**12, 1500, kind="gaussian", k=1000, d=2 * 10**12, precision=precision)
        moments(c, name, x, 3)
        neighbours(c, name, x)
        c.z(f"{name} third", (x**3).mean(), 0, np.sqrt(15 / x.size))
        c.z(f"{name} fourth", (x**4).mean(), 3, np.sqrt(96 / x.size) + 1e-4)
        for t in (3.0, 4.0, 4.5):
            c.binomial(f"{name} beyond {t}", (abs(x) > t).sum(), x.size, 2 * stats.norm.sf(t))
        if precision == "fp32":
            c.p(f"{name} Kolmogorov-Smirnov", stats.kstest(x.ravel(), "norm").pvalue)
        # cells far wider than fp16's steps, equal chances
        edges = stats.norm.ppf(np.arange(1, 64) / 64)
        c.cells(f"{name} cells", np.bincount(np.searchsorted(edges, x.ravel()), minlength=64), np.full(64, 1 / 64))


def patterns(bits):
    return bits.reshape(-1, 8) @ (1 << np.arange(8))


def rademacher(c):
    x = c.block(0, 1024, 64, 1024, kind="rademacher", k=1024, d=4000)
    c.exact("rademacher values", np.array_equal(np.unique(x), [-1, 1]))
    moments(c, "rademacher", x, 1)
    neighbours(c, "rademacher", x)
    bits = (x < 0).astype(int)
    for what, b in [("along columns", bits), ("along rows", bits.T)]:
        c.cells(f"rademacher bytes {what}", np.bincount(patterns(np.ascontiguousarray(b)), minlength=256), np.full(256, 1 / 256))


def achlioptas(c):
    x = c.block(0, 1024, 0, 1024, kind="achlioptas", k=1024, d=4000) / np.sqrt(3)
    x = np.rint(x)
    c.exact("achlioptas values", np.array_equal(np.unique(x), [-1, 0, 1]))
    moments(c, "achlioptas", x * np.sqrt(3), 3)
    neighbours(c, "achlioptas", x * np.sqrt(3))
    p = np.array([1 / 6, 2 / 3, 1 / 6])
    for u in range(8):
        c.cells(f"achlioptas digit {u}", np.bincount((x[:, u::8] + 1).astype(int).ravel(), minlength=3), p)
    pair = ((x[:, ::2] + 1) * 3 + x[:, 1::2] + 1).astype(int)
    c.cells("achlioptas pairs", np.bincount(pair.ravel(), minlength=9), np.outer(p, p).ravel())


def very_sparse(c):
    for p, rows, cols in [(1 / 3, 300, 3000), (0.05, 500, 5000), (1 / 200, 700, 40000)]:
        name = f"very-sparse {p:.3g}"
        x = c.block(0, rows, 0, cols, "csr", kind="very-sparse", k=rows, d=cols, density=p)
        c.exact(f"{name} values", np.array_equal(np.unique(x), [-1, 0, 1]))
        nonzero = x != 0
        c.binomial(f"{name} density", nonzero.sum(), x.size, p)
        c.binomial(f"{name} signs", (x > 0).sum(), nonzero.sum(), 0.5)
        rows_sum = nonzero.sum(1)
        c.p(f"{name} rows", stats.chi2.sf(((rows_sum - cols * p) ** 2).sum() / (cols * p * (1 - p)), rows))
        c.p(f"{name} rows low", stats.chi2.cdf(((rows_sum - cols * p) ** 2).sum() / (cols * p * (1 - p)), rows))
        neighbours(c, name, x / np.sqrt(p))
        place = np.nonzero(nonzero)[1]
        for m in (16, 256):
            used = cols // m * m
            c.cells(f"{name} columns mod {m}", np.bincount(place[place < used] % m, minlength=m), np.full(m, 1 / m))
        gaps = np.concatenate([np.diff(np.nonzero(r)[0]) for r in nonzero]) - 1
        limit = max(2, int(1 / p))
        chance = p * (1 - p) ** np.arange(limit)
        chance = np.append(chance, 1 - chance.sum())
        seen = np.bincount(np.minimum(gaps, limit), minlength=limit + 1)
        # long gaps are cut short by the row's end: compare the short ones among themselves
        c.cells(f"{name} gaps", seen[:limit], chance[:limit] / chance[:limit].sum())
    # far out and very thin: the walk's rounding must not favour columns
    d = 5 * 2**22
    hits = []
    for _ in range(6):
        for q in range(5):
            x = c.block(0, 60, q * 2**22, 2**16, "csr", kind="very-sparse", k=60, d=d, density=2e-6)
            hits.append((x != 0).sum())
    c.binomial("very-sparse thin density", sum(hits), 60 * 30 * 2**16, 2e-6)


def sjlt(c):
    k, s, d = 60, 3, 8000
    x = c.block(0, k, 0, d, kind="sjlt", k=k, d=d, nonzeros=s)
    bands = np.abs(x).reshape(s, k // s, d)
    c.exact("sjlt one nonzero a band", (bands.sum(1) == 1).all())
    c.binomial("sjlt signs", (x > 0).sum(), s * d, 0.5)
    rows = bands.argmax(1)
    # balanced, not independent: within a chunk of 4096 every row has 204 or 205
    per_chunk = np.array([np.bincount(r[:4096], minlength=20) for r in rows])
    c.exact("sjlt balance", per_chunk.min() >= 204 and per_chunk.max() <= 205)
    for a in range(s):
        for b in range(a):
            c.cells(f"sjlt bands {a} and {b}", np.bincount(rows[a] * 20 + rows[b], minlength=400), np.full(400, 1 / 400))
    same, trials = 0, 0
    wanted = (4096 / 20 - 1) / 4095
    for _ in range(40):
        y = c.block(0, 20, 0, 400, kind="sjlt", k=20, d=5000, nonzeros=1)
        r = np.abs(y).argmax(0)
        same += (r[0::2] == r[1::2]).sum()
        trials += 200
        signs = y.sum(0)
        neighbours_sign = (signs[1:] * signs[:-1]).sum()
        c.z("sjlt neighbouring signs", neighbours_sign, 0, np.sqrt(399))
    c.binomial("sjlt collisions of neighbours", same, trials, wanted)


def blockperm_sjlt(c):
    k, d, m, s, kappa = 64, 8000, 8, 2, 3
    shape = dict(kind="blockperm-sjlt", k=k, d=d, blocks=m, nonzeros=s, wiring=kappa)
    edges = np.zeros((m, m), dtype=int)
    sign_sum = signs = 0
    place, trials = np.zeros(k // m // s, dtype=int), 120
    for _ in range(trials):
        x = c.block(0, k, 0, d, **shape)
        here = np.abs(x).reshape(m, k // m, m, d // m).sum(axis=(1, 3)) > 0  # row block, column block
        if (here.sum(0) != kappa).any() or (here.sum(1) != kappa).any():
            c.exact("blockperm-sjlt wires each block of rows and of columns to kappa", False)
        bands = np.abs(x).reshape(m * s, k // m // s, d)
        if (np.abs(x).sum(0) != kappa * s).any() or bands.sum(1).max() > 1:
            c.exact("blockperm-sjlt one nonzero a wired band", False)
        edges += here
        sign_sum, signs = sign_sum + (x > 0).sum(), signs + np.count_nonzero(x)
        place += bands[:, :, 11].sum(0).astype(int)
    c.exact("blockperm-sjlt wiring and bands", True)
    for g in range(m):
        c.cells(f"blockperm-sjlt edges of row block {g}", edges[g], np.full(m, 1 / m))
    c.binomial("blockperm-sjlt signs", sign_sum, signs, 0.5)
    c.cells("blockperm-sjlt rows of a column", place, np.full(len(place), 1 / len(place)))
    # |Sx|^2: the mean is |x|^2, and with coordinates of one column block the variance is that of an sjlt of
    # kappa s bands of k / (m s) rows: two columns meet in a band with chance (C / rows - 1) / (C - 1)
    one = np.zeros(d)
    one[:2] = np.sqrt(0.5)
    v = np.array([((c.block(0, k, 0, 2, scaling="isometric", **shape) @ one[:2]) ** 2).sum() for _ in range(2000)])
    rows = k // (m * s)
    meet = (1024 / rows - 1) / 1023
    variance = meet / (kappa * s)
    c.z("blockperm-sjlt two coordinates, mean", v.mean(), 1, np.sqrt(variance / len(v)))
    fourth = ((v - 1) ** 2).std() / np.sqrt(len(v))
    c.z("blockperm-sjlt two coordinates, variance", ((v - 1) ** 2).mean(), variance, fourth)
    dense = np.random.default_rng(self_seed(c)).normal(size=d)
    dense /= np.linalg.norm(dense)
    v = np.array([((c.block(0, k, 0, d, scaling="isometric", **shape) @ dense) ** 2).sum() for _ in range(200)])
    c.p(f"blockperm-sjlt random point, mean {v.mean():.4f}", stats.ttest_1samp(v, 1).pvalue)


def srht(c):
    x = c.block(0, 256, 0, 1024, kind="srht", k=256, d=1024)
    c.exact("srht values", np.array_equal(np.unique(x), [-1, 1]))
    c.exact("srht rows orthogonal", np.array_equal(x @ x.T, 1024 * np.eye(256)))
    differences = []
    for _ in range(1400):
        y = c.block(0, 2, 0, 8, kind="srht", k=2, d=8)
        parity = (y[0] * y[1])[[1, 2, 4]] * (y[0] * y[1])[0]
        differences.append(int((parity < 0) @ [1, 2, 4]))
    c.cells("srht pairs of sampled rows", np.bincount(differences, minlength=8)[1:], np.full(7, 1 / 7))
    c.exact("srht rows distinct", 0 not in differences)
    signs = np.concatenate([c.block(0, 1, 0, 512, kind="srht", k=1, d=512)[0] for _ in range(40)])
    c.binomial("srht signs", (signs > 0).sum(), signs.size, 0.5)


def law_of_gaussian(c):
    """|Sx|^2 is chi-square with k degrees over k for any unit x, coherent ones first."""
    k, d, trials = 40, 60, 300
    points = {
        "a basis vector": np.eye(d)[17],
        "one hot coordinate": np.r_[100.0, np.ones(d - 1)],
        "equal coordinates": np.ones(d),
        "random": np.random.default_rng(self_seed(c)).normal(size=d),
    }
    for precision in ("fp32", "fp16"):
        norms = {n: [] for n in points}
        for _ in range(trials):
            s = c.block(0, k, 0, d, kind="gaussian", k=k, d=d, precision=precision, scaling="isometric")
            for n, x in points.items():
                norms[n].append(((s @ x) ** 2).sum() / (x @ x))
        for n, v in norms.items():
            v = np.array(v)
            c.p(f"law of gaussian {precision}, {n}", stats.kstest(v * k, "chi2", args=(k,)).pvalue)
            for eps in (0.2, 0.5):
                q = stats.chi2.cdf(k * (1 - eps), k) + stats.chi2.sf(k * (1 + eps), k)
                c.binomial(f"gaussian {precision} outside {eps}, {n}", (abs(v - 1) > eps).sum(), trials, q)


def self_seed(c):
    return c.rng.getrandbits(32)


def coherent(c):
    """Basis vectors and two-coordinate points, where sparse and sign operators are weakest:
    the laws are binomial."""
    k, d, trials = 50, 400, 300
    two = {"rademacher": [], "srht": [], "sjlt": []}
    basis = {"achlioptas": [], "very-sparse": []}
    for _ in range(trials):
        for kind in two:
            extra = dict(nonzeros=2) if kind == "sjlt" else {}
            s = c.block(0, k, 0, 2, kind=kind, k=k, d=d, scaling="isometric", **extra)
            c_norm = (s[:, 0] ** 2).sum()
            if abs(c_norm - 1) > 1e-6:
                c.exact(f"{kind} keeps a basis vector's norm", False)
            two[kind].append(((s.sum(1)) ** 2).sum() / 2)
        for kind in basis:
            s = c.block(0, k, 5, 1, kind=kind, k=k, d=d, scaling="isometric")
            basis[kind].append((s**2).sum())
    # (+-1 +-1)^2 / 2 is 0 or 2: the number of rows with 2 is binomial
    hits = np.rint(np.array(two["rademacher"]) * k / 2)
    c.binomial("rademacher two coordinates", hits.sum(), k * trials, 0.5)
    c.p("rademacher two coordinates, spread", 2 * min(stats.chi2.sf(((hits - k / 2) ** 2).sum() / (k / 4), trials), 0.5))
    for kind, p in [("achlioptas", 1 / 3), ("very-sparse", 1 / 20)]:
        hits = np.rint(np.array(basis[kind]) * k * p)
        c.binomial(f"{kind} basis vector", hits.sum(), k * trials, p)
        spread = ((hits - k * p) ** 2).sum() / (k * p * (1 - p))
        c.z(f"{kind} basis vector, spread", spread, trials, np.sqrt(trials * (2 + (1 - 6 * p * (1 - p)) / (k * p * (1 - p)))))
    # sjlt: the two columns meet in each band with the chance of section 4.6, sign at random
    meet = np.rint((np.array(two["sjlt"]) - 1) * 2)  # sum of +-1 over the bands in which they meet
    chance = 2 * (4096 / 25 - 1) / 4095
    c.z("sjlt two coordinates mean", meet.mean(), 0, np.sqrt(chance / trials) + 1e-9)


def composed(c):
    """E |Sx|^2 = |x|^2 for block and kronecker, whatever divides what."""
    rng = np.random.default_rng(self_seed(c))
    for extra in [
        dict(kind="block", k=20, d=333, blocks=6),
        dict(kind="block", k=20, d=333, blocks=6, inner="gaussian"),
        dict(kind="block", k=20, d=333, blocks=7, inner="very-sparse"),
        dict(kind="block", k=20, d=333, blocks=4, inner="sjlt"),
        dict(kind="kronecker", k=20, d=333),
        dict(kind="kronecker", k=17, d=333, zeta=3, width=20, inner="achlioptas"),
        dict(kind="kronecker", k=20, d=333, inner="gaussian"),
    ]:
        for what, x in [("random", rng.normal(size=333)), ("last coordinate", np.eye(333)[332]), ("ones", np.ones(333))]:
            v = np.array([
                ((c.block(0, extra["k"], 0, 333, "f64", scaling="isometric", **extra) @ x) ** 2).sum()
                for _ in range(120)
            ]) / (x @ x)
            if v.std() < 1e-6:
                c.exact(f"{extra}, {what}", abs(v.mean() - 1) < 1e-6)
            else:
                c.p(f"{extra}, {what}: mean {v.mean():.4f}", stats.ttest_1samp(v, 1).pvalue)


def main():
    library = Library(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32)
    c = Checks(library, seed)
    for group in (gaussian, rademacher, achlioptas, very_sparse, sjlt, blockperm_sjlt, srht, law_of_gaussian, coherent, composed):
        group(c)
    library.close()
    print(f"{c.count} checks, {c.failed} failed (seed {seed})")
    return c.failed > 0


if __name__ == "__main__":
    sys.exit(main())
