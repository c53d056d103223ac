"""docs/results/low-precision.md: section 3 of Ootomo & Yokota (2023), from the record of bench_low_precision."""
from pages import load, pages, plot, table

PAPER = {  # of Table 1: not normal, underflow; values within 1, 2 and 4 sigma
    "FP8 e4m3": ("6e-3", "8e-4", (111, 127, 143)), "FP8 e5m2": ("2e-5", "6e-6", (119, 127, 135)),
    "FP16": ("2e-5", "2e-8", (30719, 32767, 34815)), "bfloat16": ("< 2e-12", "< 2e-12", (32511, 32767, 33023)),
    "TF32": ("< 2e-12", "< 2e-12", (260095, 262143, 264191)),
    "FP32": ("< 2e-12", "< 2e-12", (2130706431, 2147483647, 2164260863))}
SAMPLE = 1e8  # elements of a random matrix, the paper's size of it


def tiny(log10):
    """A power of ten, given by its logarithm."""
    return f"{10 ** log10:.2g}" if log10 > -100 else f"10^−{-log10:.3g}"


def some(count):
    return count if count >= 1e-9 else 0


def formats(record):
    rows, expected = [], []
    for f in record["formats"]:
        paper = PAPER.get(f["name"])
        name = f["name"] if f["name"].startswith("e") or " e" in f["name"] else f"{f['name']} (e{f['exponent']}m{f['mantissa']})"
        rows.append([name, tiny(f["log10_overflow"]), f"{f['subnormal']:.3g}", f"{f['paper_not_normal']:.3g}", paper[0] if paper else "",
                     f"{f['underflow']:.3g}", f"{f['paper_underflow']:.3g}", paper[1] if paper else ""])
        counted, rows_of = f["counted"], []
        for what, chance in (("overflow", 10 ** max(f["log10_overflow"], -300)), ("subnormal", f["subnormal"]),
                             ("underflow", f["underflow"])):
            rows_of.append([f"{some(chance * size):.4g}" for size in (SAMPLE, counted["of"])] + [f"{counted[what]:,}"])
        expected.append([name] + [x[0] for x in rows_of] + [f"{x[1]} / {x[2]}" for x in rows_of])
    counts = []
    for f in record["formats"]:
        paper = PAPER.get(f["name"])
        same = "" if not paper else "yes" if list(paper[2]) == f["values"] else "no"
        counts.append([f["name"]] + [f"{v:,.0f}" for v in f["values"]] + [same, f"{2 ** f['entropy_bits']:,.0f}" if "entropy_bits" in f else ""])
    return rows, expected, counts


def variance(record):
    e8 = [v for v in record["variance"] if v["exponent"] == 8]
    text = table(["Y", "1 − variance, exact", "times 4^Y", "1 − variance, sampled", "the paper's sum − 1"],
                 [[v["mantissa"], f"{-v['excess']:.4g}", f"{-v['excess'] * 4 ** v['mantissa']:.4f}",
                   f"{-v['sampled']:.3g} ± {v['deviation']:.1g}", f"{v['paper_excess']:.3g}"] for v in e8])
    curves = [("e8mY, exact", "with linespoints", [(v["mantissa"], -v["excess"]) for v in e8]),
              ("sampled, where above 3 deviations", "with yerrorbars pt 7",
               [(v["mantissa"], -v["sampled"], v["deviation"]) for v in e8 if -v["sampled"] > 3 * v["deviation"]]),
              ("e3mY, exact", "with points pt 4", [(v["mantissa"], -v["excess"]) for v in record["variance"] if v["exponent"] == 3]),
              ("the sum as printed, minus 1", "with linespoints", [(v["mantissa"], v["paper_excess"]) for v in e8])]
    return text + "\n" + plot("low-precision-variance", "Distance from 1 of the variance of a rounded normal variable", "mantissa length Y",
                              "1 - variance", curves, more="set logscale y\nset format y '%.0e'", key="top right")


def errors(record):
    text = ""
    for m in record["matrices"]:
        mine = [e for e in record["errors"] if e["type"] == m["type"]]
        text += (f"\n### Type {m['type']}\n\nBest error of rank {record['rank']}: {m['best']:.4g}; equation 4 bounds the mean by "
                 f"{m['bound']:.4g}; rounding A to fp32 alone changed it by {m['fp32_rounding']:.2g}; ‖A‖_F = {m['norm']:.3g}.\n\n")
        full = mine[0]["mean"]
        text += table(["entries of S", "mean error", "standard deviation", "mean over fp32's", "farthest from fp32, one S"],
                      [[f"`{e['operator']}`" + (f", e{e['exponent']}m{e['mantissa']}" if e["operator"] == "gaussian" else ""),
                        f"{e['mean']:.4g}", f"{e['deviation']:.2g}", f"{e['mean'] / full:.3g}",
                        f"{100 * e['farthest_from_fp32']:.2g} %" if e["operator"] == "gaussian" and "farthest_from_fp32" in e else ""]
                       for e in mine])
        gaussian = [e for e in mine if e["operator"] == "gaussian" and e["exponent"] == 8]
        span = [(e["mantissa"], e["mean"]) for e in gaussian]
        ends = [(0, 1), (23, 1)]
        text += "\n" + plot(
            f"low-precision-errors-{m['type']}", f"Type {m['type']}, n = {record['n']:,}, r = {record['rank']}: error of the projection",
            "mantissa length Y", "error, Frobenius norm",
            [("gaussian, rounded", "with yerrorbars pt 7", [(e["mantissa"], e["mean"], e["deviation"]) for e in gaussian]),
             ("", "with lines lc 1", sorted(span))] +
            [(f"{e['operator']}", f"with lines dt {i + 2}", [(x, e["mean"]) for x, _ in ends])
             for i, e in enumerate(mine) if e["operator"] in ("rademacher", "very-sparse, 1/sqrt(n)", "very-sparse, ln(n)/n")] +
            [(f"best of rank {record['rank']}", "with lines lc 'black' dt 3", [(x, m["best"]) for x, _ in ends]),
             ("bound of the mean (equation 4)", "with lines lc 'grey40' dt 4", [(x, m["bound"]) for x, _ in ends])],
            more="set xrange [-1:24]\n" + ("set logscale y" if m["type"] == 1 else "set yrange [0.15:0.35]"), key="outside below")
    return text


def make():
    record = load("low-precision.json")
    if not record:
        return
    rows, expected, counts = formats(record)
    of = {(e["type"], e["operator"], e["mantissa"]): e for e in record["errors"] if e["exponent"] == 8}
    m1, m2 = record["matrices"]
    worst = max(e["farthest_from_fp32"] for e in record["errors"]
                if e["operator"] == "gaussian" and e["exponent"] == 8 and 2 <= e["mantissa"] < 23)
    least = max(abs(of[t, "gaussian", y]["mean"] / of[t, "gaussian", 23]["mean"] - 1) for t in (1, 2) for y in (0, 1, 2, 3, 4, 5, 7, 10))
    sparse, sparser = of[1, "very-sparse, 1/sqrt(n)", 23]["mean"], of[1, "very-sparse, ln(n)/n", 23]["mean"]
    pages["low-precision.md"] = f"""# Gaussian operators in low precision, after Ootomo & Yokota (2023), section 3

eXmY has X bits of exponent and Y of mantissa, subnormal numbers, and rounds to nearest. `bench_low_precision`
(`bench/papers/low_precision.c`) makes everything here: {record['cpu_seconds']:.0f} seconds of one core, {record['seeds']} operators a figure.
Record: `bench/records/low-precision.json`. The probabilities are exact, not sampled; a test holds them to SciPy.

## What was found

- **Their conclusion stands**: for both matrices the error does not depend on the mantissa. Down to no stored
  bit at all the mean over {record['seeds']} operators stays within {100 * least:.1f} % of fp32's, inside the scatter of
  operators; a single operator's error moves by at most {100 * worst:.1f} % for Y ≥ 2. FP8 of either kind does as well.
- **Their Table 1 of probabilities is half of what their equations say**: the figures for e4m3, e5m2 and FP16 are
  one-sided (Φ(min) − ½), the equations two-sided (twice that). For underflow the table is right nevertheless, since
  rounding to nearest gives 0 only below *half* the least number, which the equations overlook; the shares that are not normal
  are twice what the table says.
- **Their overflow bound** is half the largest number: equation 15 should read 2^(2^(X−1)) (1 − 2^−(Y+1)) (65,504 for FP16, not
  32,752). The conclusion gets stronger: 3 bits of exponent overflow with probability 1e-55 as well, where
  they ask for more than 3; only 2 bits are too few.
- **Their counts of values are right, equation 18 is not**: the table counts all numbers with |v| < 2^s, subnormal ones and one
  zero, 2 (s + bias) 2^Y − 1. The equation says 2 (s + bias + 1) 2^Y + 1, and its text normal numbers only, which would be
  2 (s + bias − 1) 2^Y + 1.
- **The variance** approaches 1 from below, 1 − variance = 0.0464 · 4^−Y from Y = 3 on, by a factor of 4 a bit. Their sum for
  it, with intervals of half a step to both sides of every number, counts some stretches twice, since below a power of two the
  step is half as wide; it errs by 0.37 · 2^−Y, *above* 1. (Its right bracket is misplaced as well.) Their Figure 2
  gives no numbers to compare with.
- **What their proof covers**: that a variance α cancels. But rounded values are not normal with variance α; they are a
  discrete law, for which the means of inverses do not exist, as G₁ is singular with positive probability. What carries
  over to rounded entries is measured here, not proved.
- **Very sparse operators (their 3.4) are not as accurate in general.** Rounding changes none of their entries, so 'the same
  accuracy' as unrounded holds. But type 1 has its {record['rank']} leading vectors along coordinates, and of those
  coordinates most meet no nonzero among {record['columns']} rows: the error is {sparse:.2g} at density 1/√n and {sparser:.2g} at ln(n)/n, where
  Gaussian entries leave {of[1, 'gaussian', 23]['mean']:.2g}, {sparse / of[1, 'gaussian', 23]['mean']:.0f} and {sparser / of[1, 'gaussian', 23]['mean']:.0f} times more. On type 2, whose vectors have
  no preferred direction, they do as well as any. Random signs and Achlioptas' third are safe on both, and so is `sjlt`, which has
  nonzeros in every column. `srht` fails on type 1 too: {record['columns']} rows of a Hadamard matrix, restricted to
  {record['rank']} adjacent columns, repeat each other, and its bounds ask for more rows.

## Table 1: overflow, subnormal numbers, underflow

Probabilities for one standard normal variable. 'Rounded': what rounding to nearest does. 'Equation': theirs, two-sided. Of
overflow their table says only that it is below 1e-12 (2e-12), which is true.

{table(["format", "overflow", "subnormal or 0, rounded", "equation", "their table", "0, rounded", "equation", "their table"], rows)}
`OCP` is the format that GPUs have: its highest exponent holds numbers too. e3m4 and e2m3 are here to show where range ends.

Expected numbers of elements, and beside them those counted in {record['sample']:,} entries of `gaussian` (expected / counted):

{table(["format", "overflow, of 10^8", "subnormal or 0, of 10^8", "0, of 10^8", "overflow, sample", "subnormal or 0, sample", "0, sample"], expected)}
The library's own generator ends at |g| ≤ 6.67 (sqrt(2 ln 2³²)), so its entries never overflow a format of 3 or more bits of exponent.

Different values with |v| < σ, 2σ, 4σ; and how many equally likely values would have the same entropy, which tells more, as most
values of a wide exponent lie where no entry ever comes:

{table(["format", "1σ", "2σ", "4σ", "their table the same", "2^entropy"], counts)}
## Figure 2: the variance of a rounded variable

e8mY; samples are means of round(g)² − g² over {record['sample']:,} entries of `gaussian`, ± one deviation.

{variance(record)}
## Figure 3: the error of the projection

‖A − Q Qᵀ A‖_F, Q = orth(A Sᵀ), n = {record['n']:,}, {record['columns']} rows of S (rank {record['rank']} and 10 more: they do not say how many), the same
{record['seeds']} seeds in every line. A is rounded to fp32 and S made in fp32 and rounded, all else is fp64, as theirs.

- Type 1: D + (ξ/n) G Gᵀ, D = diag(1 … 1, 0 … 0) of rank 20, ξ = 1e-4. They print (ξ/ε); with n it is the matrix of Tropp,
  Yurtsever, Udell & Cevher (2017), with a noise of the size that the figure is about.
- Type 2: U diag(1e6 … 1e6, 2^−3, 3^−3, …) Vᵀ, U and V Haar; singular values from the {record['kept']}th on are left out, 1e-6 of the
  rounding to fp32. That rounding is no small matter here: with {m2['fp32_rounding']:.2g} it is about as large as the tail of
  the exact spectrum (0.13), so {m2['best']:.2g} is the best that rank 20 can do with the matrix as stored.

`gaussian fp16` is the library's own kind, made in FP16 at once (other draws); the sparse kinds' values are taken unscaled.
{errors(record)}"""
