"""Holds bench/papers/law.c and the record of bench_low_precision to SciPy: the normal law rounded to small formats, with
every number of a format written out and the probabilities of the intervals between their midpoints.

usage: low_precision.py LAW RECORD
"""
import json
import subprocess
import sys

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

# P(|N| < x) and so on by other means, so that a slip of the reference shows as well.
assert abs(2 * ndtr(-1.0) - 0.31731050786291415) < 1e-15


def numbers(x, y, finite):
    """All numbers >= 0 of eXmY from their bits, ascending, and what rounds to infinity."""
    bias = 2 ** (x - 1) - 1
    codes = np.arange((2 ** x - (0 if finite else 1)) << y, dtype=np.int64)
    if finite:
        codes = codes[:-1]
    exponent, mantissa = codes >> y, codes & (2 ** y - 1)
    values = np.where(exponent == 0, np.ldexp(mantissa / 2 ** y, 1 - bias),
                      np.ldexp(1 + mantissa / 2 ** y, (exponent - bias).astype(int)))
    return values, bias


def near(found, wanted, relative, what):
    assert abs(found - wanted) <= relative * abs(wanted), (what, found, wanted)


def check(found, x, y, finite, full):
    what = (x, y, finite)
    values, bias = numbers(x, y, finite)
    near(found["largest"], values[-1], 1e-11, what)
    beyond = values[-1] + 2.0 ** (np.floor(np.log2(values[-1])) - y - 1)
    near(found["log10_overflow"], (log_ndtr(-beyond) + np.log(2)) / np.log(10), 1e-9, what)
    # P(|N| < t) = 2 t phi(0) (1 - t^2 / 6 + t^4 / 40) for small t
    within = lambda t: 2 * t * norm.pdf(0) * (1 - t ** 2 / 6 + t ** 4 / 40 - t ** 6 / 336) if t < 0.1 else 1 - 2 * norm.sf(t)
    least, normal = values[1], 2.0 ** (1 - bias)
    near(found["underflow"], within(least / 2), 1e-9, what)
    near(found["subnormal"], within(normal - least / 2), 1e-9, what)
    near(found["paper_underflow"], within(least), 1e-9, what)
    near(found["paper_not_normal"], within(normal), 1e-9, what)
    for s in range(3):
        inside = int(np.searchsorted(values, 2.0 ** s))
        assert found["values"][s] == 2 * inside - 1, what
    if full:
        middle = np.concatenate([[0], (values[1:] + values[:-1]) / 2, [beyond]])
        p = 2 * (norm.sf(middle[:-1]) - norm.sf(middle[1:]))
        excess = np.sum(values ** 2 * p) - (1 - 2 * beyond * norm.pdf(beyond) - 2 * norm.sf(beyond))
        assert abs(found["variance_excess"] - excess) < 1e-12 + 1e-11 * abs(excess), (what, found["variance_excess"], excess)
        one = np.concatenate([p[1:], p[1:], [2 * p[0]]]) / 2
        one = one[one > 0]
        near(found.get("entropy", found.get("entropy_bits")), -np.sum(one * np.log2(one)), 1e-9, what)
    if "rounded" in found:
        for i, rounded in enumerate(found["rounded"]):
            g = (i - 32 + 0.37) * (1e-5, 0.0625, 0.1)[i % 3]
            nearest = values[np.argmin(abs(values - abs(g)))]
            assert abs(rounded) == nearest and rounded * g >= 0, (what, g, rounded, nearest)


# Known values: FP16, from tables of erf: erf(2^-25 / sqrt 2) and erf((2^-14 - 2^-25) / sqrt 2).
law = lambda *args: json.loads(subprocess.run([sys.argv[1], *map(str, args)], check=True, capture_output=True, text=True).stdout)
half = law(5, 10)
assert half["largest"] == 65504
near(half["underflow"], 2.37788129e-8, 1e-8, "FP16")
near(half["subnormal"], 4.867522999e-5, 1e-8, "FP16")
near(half["log10_overflow"], -65520 ** 2 / 2 / np.log(10) - np.log10(65520 * np.sqrt(np.pi / 2)), 1e-12, "FP16")
# numpy's own FP16 rounds as well
g = np.array([(i - 32 + 0.37) * (1e-5, 0.0625, 0.1)[i % 3] for i in range(64)])
assert np.array_equal(g.astype(np.float16).astype(float), half["rounded"])

for x, y, finite in ((2, 1, False), (3, 0, False), (3, 4, False), (4, 3, False), (4, 3, True), (5, 2, False), (5, 10, False),
                     (8, 7, False), (8, 0, False), (8, 10, False)):
    check(law(x, y, *(["finite"] if finite else [])), x, y, finite, True)

with open(sys.argv[2], encoding="utf-8") as file:
    record = json.load(file)
assert len(record["formats"]) >= 7
for f in record["formats"]:
    if f["mantissa"] <= 10:
        check(f, f["exponent"], f["mantissa"], f["finite"], True)
    # the library's generator gives as many as the law wants, within five deviations
    for what in ("underflow", "subnormal"):
        wanted = f[what] * f["counted"]["of"]
        assert abs(f["counted"][what] - wanted) <= 5 * np.sqrt(wanted) + 1, (f["name"], what, f["counted"][what], wanted)
for v in record["variance"]:
    assert abs(v["sampled"] - v["excess"]) <= 5 * v["deviation"], v
for e in record["errors"]:  # no row is without its figures
    assert len(e["errors"]) == record["seeds"] and 0 < e["mean"] < 1e7, e
print("good")
