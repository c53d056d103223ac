"""Makes the pages and plots of docs/results/ from the records in bench/records/.

usage: make.py [--check]      --check: writes nothing, fails when a page is not up to date

Needs Python alone, and gnuplot for the plots (not for --check).
"""
import math
import sys

import dedup
import gemm
import gpu
import gpus
import hosvd
import low_precision
import join
import lsh
import lstsq
import model
import peers
import projectors
import python
import rabitq
import roofline
import sparse
import guarantee
import search
import signs
import svd
import threads
from pages import PAGES, ROOT, draw, load, ms, pages, plot, plots, power, quantile, records, table, wrapped


# ---- the thesis ----

THESIS_BLOCKS = {  # r: norm difference and variance, distribution (3), then (4)
    4: (0.0311, 0.00019, 0.027, 0.0003), 8: (0.0332, 0.00031, 0.053, 0.0012), 16: (0.0531, 0.0015, 0.038, 0.0011),
    32: (0.0677, 0.00173, 0.078, 0.0031), 64: (0.1337, 0.0086, 0.083, 0.0042), 128: (0.1668, 0.01166, 0.134, 0.0142),
    256: (0.1962, 0.01155, 0.195, 0.0124)}
THESIS_SIZES = {16384: (0.02, 0.0135), 40960: (0.0276, 0.0146), 81920: (0.0308, 0.0154), 163840: (0.0247, 0.0149),
                245760: (0.0217, 0.0192), 409600: (0.02, 0.0177), 819200: (0.0282, 0.0178)}  # r = 4, r = 2
THESIS_MS = {  # per vector, with transfers: SGEMV, batch, block JL r = 32, batch block JL r = 32
    1 << 20: (451.149, 2.176, 1.013, 0.4434), 1 << 18: (111.072, 0.597, 0.428, 0.1117),
    1 << 16: (28.05, 0.144, 0.13, 0.0298), 1 << 14: (7.35, 0.038, 0.055, 0.0074),
    1 << 12: (1.625, 0.0099, 0.0347, 0.0026), 1 << 10: (0.488, 0.0035, 0.031, 0.0015)}


def chi_law(k):
    """The mean of | |Sx| / |x| - 1 | when k |Sx|^2 / |x|^2 is chi-square with k degrees of freedom."""
    width = 12 / math.sqrt(2 * k)
    low, steps = max(1e-9, 1 - width), 4000
    step = (1 + width - low) / steps
    constant = math.log(2) + k / 2 * math.log(k / 2) - math.lgamma(k / 2)
    total = 0.0
    for i in range(steps + 1):
        z = low + i * step
        density = math.exp(constant + (k - 1) * math.log(z) - k * z * z / 2)
        total += abs(z - 1) * density * (1 if i in (0, steps) else 4 if i % 2 else 2)
    return total * step / 3


def positive_law(m, r):
    """The same for coordinates uniform in [0, 1): 3/4 of the weight lies along one direction that all blocks share."""
    k, a = m / r, 0.75
    variance = a * a * 2 / k + (4 * a * (1 - a) + 2 * (1 - a) ** 2) / m
    return math.sqrt(2 / math.pi) * math.sqrt(variance) / 2


def thesis():
    quality = load("quality.json")
    if quality is None:
        return
    cells = {(c["table"], c["of"], c["input"], c["operator"], c.get("inner", ""), c["M"], c["N"], c.get("r", 1)): c
             for c in quality["results"]}
    full = 1 << 20

    def cell(kind, source, inner, m, n, r, of="norms"):
        c = cells.get((kind, of, source, "block" if r > 1 else inner, inner if r > 1 else "", m, n, r))
        return c["mean"] if c else float("nan")

    text = """# The quality tables of a thesis on JL transforms with tensor cores, again

The thesis multiplies unit vectors by block operators I_r ⊗ A, A of M/r rows and N/r columns, made of
Achlioptas' distribution (3), random signs (`rademacher` here), or (4), two thirds zeros
(`achlioptas`), and tabulates the norm difference, the mean of | |Sx| − 1 |. It does not say what its
random unit vectors are. `bench_quality` takes several kinds (`normal`: independent normal
coordinates; `positive`: independent uniform ones in [0, 1); `repeated`: one block of uniform
coordinates in [−1, 1), repeated), 16 vectors, and 24 or 32 operators a cell. Records:
`bench/records/quality.json`.

## What was found

- For vectors with mean zero the number of blocks does **not** matter: the norm difference is that
  of M rows (0.0176 at M = 1024), for every r from 4 to 256. The thesis' main quality result, that
  more blocks are worse, is a result about its vectors.
- Its figures are those of vectors whose blocks are alike. With coordinates uniform in [0, 1), as
  common generators give them, three quarters of a vector's squared length lie along (1, …, 1), the
  same direction in all blocks, and one matrix A distorts it the same way in all of them. Theory and our
  runs then give what the thesis measured, within the scatter of few draws: at r = 4 and 256 we
  find 0.027 and 0.18 to 0.20, the thesis 0.027 to 0.031 and 0.195. Which vectors it used is our
  inference; the thesis does not say.
- Whole batches share one A, so a cell measured with one operator is one draw, not 256. That would explain
  the thesis' unsteady columns (0.053 at r = 8 and 0.038 at r = 16, distribution (4)): the standard
  deviation of one operator's mean is about as large as 0.6 times the mean itself for such vectors.
- The worst case is blocks that are the same: then the law is that of M/r rows, and the bound must
  be applied to M/r, not M. The thesis holds M = 1024 against the bound for M; for any vectors it is
  M/r = 4 … 256 that counts.
- Distributions (3) and (4) do equally well: neither is better beyond the scatter.
- Pairwise distances, which the thesis leaves open: for independent points with a common mean the
  differences have mean zero, so distances are as with M rows for every r, even where norms do
  not. On real images blocks are alike in both.

"""
    rows = []
    for r, (d3, v3, d4, v4) in THESIS_BLOCKS.items():
        rows.append([r, 1024 // r, f"{d3:.3f}", f"{d4:.3f}"] +
                    [f"{cell('blocks', source, inner, 1024, full, r):.3f}"
                     for source in ("positive", "normal", "repeated") for inner in ("rademacher", "achlioptas")] +
                    [f"{positive_law(1024, r):.3f}", f"{chi_law(1024):.3f}", f"{chi_law(1024 // r):.3f}"])
    text += "## Against the number of blocks: M = 1024, N = 2^20\n\n" + table(
        ["r", "k = M/r", "thesis (3)", "thesis (4)", "positive (3)", "positive (4)", "normal (3)", "normal (4)",
         "repeated (3)", "repeated (4)", "law, positive", "law of M rows", "law of k rows"], rows)
    text += """
The laws: of M (k) rows, the mean of |χ/√k − 1| for the chi law; for positive vectors that of a normal
variable with the variance of ¾ of the weight on k rows and the rest on M.

"""
    text += plot("thesis-blocks", "Norm difference against the number of blocks, M = 1024, N = 2^{20}",
                 "blocks r", "mean | |Sx| - 1 |",
                 [("thesis, distribution (3)", "with linespoints pt 7", [(r, v[0]) for r, v in THESIS_BLOCKS.items()]),
                  ("thesis, distribution (4)", "with linespoints pt 5", [(r, v[2]) for r, v in THESIS_BLOCKS.items()])] +
                 [(f"{source}, signs", "with linespoints", [(r, cell("blocks", source, "rademacher", 1024, full, r))
                                                           for r in THESIS_BLOCKS]) for source in
                  ("positive", "normal", "repeated")] +
                 [("law of M rows", "with lines dt 2", [(r, chi_law(1024)) for r in THESIS_BLOCKS]),
                  ("law of M/r rows", "with lines dt 2", [(r, chi_law(1024 // r)) for r in THESIS_BLOCKS])])
    rows = [[f"{n:,}", f"{four:.4f}", f"{cell('size', 'positive', 'rademacher', 1024, n, 4):.4f}",
             f"{cell('size', 'normal', 'rademacher', 1024, n, 4):.4f}", f"{two:.4f}",
             f"{cell('size', 'positive', 'rademacher', 1024, n, 2):.4f}",
             f"{cell('size', 'normal', 'rademacher', 1024, n, 2):.4f}"] for n, (four, two) in THESIS_SIZES.items()]
    text += "\n## Against N: M = 1024\n\n" + table(
        ["N", "thesis, r = 4", "positive", "normal", "thesis, r = 2", "positive", "normal"], rows)
    text += f"""
N does not matter, as the thesis finds. Laws: positive {positive_law(1024, 4):.4f} (r = 4) and
{positive_law(1024, 2):.4f} (r = 2), normal {chi_law(1024):.4f}. Its r = 2 column lies below the law of M rows in
four of seven places, which chance explains if a cell holds few operators, and no law does.

"""
    rows = []
    for m in (1024, 2048, 4096, 8192):
        for r in (1, 16, 32, 64):
            rows.append([m, r if r > 1 else "1 (Achlioptas)"] +
                        [f"{cell('achlioptas', source, 'achlioptas', m, 65536, r, of):.4f}"
                         for source in ("positive", "normal") for of in ("norms", "distances")] +
                        [f"{chi_law(m):.4f}", f"{chi_law(m // r):.4f}"])
    text += "## Against Achlioptas' whole matrix: N = 65,536, distribution (4)\n\n" + table(
        ["M", "r", "positive, norms", "distances", "normal, norms", "distances", "law of M rows", "law of M/r rows"], rows)
    text += """
The thesis finds Achlioptas' matrix better "by an almost constant factor": so it is for norms of positive
vectors, not for those of mean zero, and not for distances.

"""
    text += plot("thesis-achlioptas", "Positive vectors, N = 65,536: norms and distances", "M", "mean difference",
                 [(f"{of}, r = {r}", "with linespoints", [(m, cell("achlioptas", "positive", "achlioptas", m, 65536, r, of))
                                                         for m in (1024, 2048, 4096, 8192)])
                  for of in ("norms", "distances") for r in (1, 16, 32, 64)] +
                 [("law of M rows", "with lines dt 2 lc black", [(m, chi_law(m)) for m in (1024, 2048, 4096, 8192)])])
    real = [c for c in quality["results"] if c["table"] == "real"]
    if real:
        first = real[0]
        text += (f"\n## Real data\n\n{first['points']:,} points of {first['N']} coordinates "
                 f"(`{quality.get('images', '')}`, Fashion-MNIST where it says t10k-images), {first['seeds']} operators. "
                 "Norm difference and the same of distances, 20,000 pairs.\n\n")
        sizes = sorted({c["M"] for c in real})
        kinds = []
        for c in real:
            if (c["operator"], c.get("r")) not in kinds:
                kinds.append((c["operator"], c.get("r")))
        rows = []
        for kind, r in kinds:
            row = [f"`{kind}`" + (f" of {r}" if r else "")]
            for m in sizes:
                for of in ("norms", "distances"):
                    found = [c["mean"] for c in real if (c["operator"], c.get("r"), c["M"], c["of"]) == (kind, r, m, of)]
                    row.append(f"{found[0]:.4f}" if found else "")
            rows.append(row)
        rows.append(["law of k rows"] + [f"{chi_law(m):.4f}" for m in sizes for _ in range(2)])
        text += table(["operator"] + [f"k = {m}, {of}" for m in sizes for of in ("norms", "distances")], rows)
        text += """
All simple kinds follow the law of k rows on these images, the sparse ones too. `block` does not: the
blocks of an image resemble each other, and of positive pixels the more; its distances suffer as well,
unlike those of independent points. `kronecker` pays for every level.
"""
    text += gpu.thesis_times(THESIS_MS)
    pages["thesis.md"] = text


# ---- the choice of an operator ----

def choice_page():
    text = ""
    for _, r in records("fitted", "choices"):
        text += f"\n## {r['model']}\n\n### Predictions\n\n"
        rows = []
        for key in dict.fromkeys((x["operator"], x.get("precision", ""), x["form"]) for x in r["fitted"]):
            off = [max(x["predicted"] / x["seconds"], x["seconds"] / x["predicted"]) for x in r["fitted"]
                   if (x["operator"], x.get("precision", ""), x["form"]) == key]
            rows.append([f"`{key[0]}`" + (f" {key[1]}" if key[1] else ""), key[2], len(off), f"{quantile(off, 0.5):.2f}",
                         f"{quantile(off, 0.9):.2f}", f"{max(off):.1f}"])
        text += "By what factor they are off on the shapes that the model was fitted to.\n\n" + table(
            ["operator", "points", "shapes", "median", "90 %", "worst"], rows)
        off = [max(c["predicted"] / c["seconds"], c["seconds"] / c["predicted"]) for q in r["choices"]
               for c in q["candidates"] if "seconds" in c and "predicted" in c]
        which = "all candidates, `block` and `kronecker` too" if r["device"] == "cpu" else "all candidates that are admitted"
        text += (f"\nOn shapes that it was not fitted to, {which} ({len(off)} sketches): "
                 f"median {quantile(off, 0.5):.2f}, 90 % {quantile(off, 0.9):.2f}, worst {max(off):.1f}.\n")
        asked = [q for q in r["choices"] if "regret" in q]
        regrets = [q["regret"] for q in asked]
        text += (f"\n### Choices\n\nThe time of the choice over that of the best admitted operator, {len(regrets)} questions: mean "
                 f"{sum(regrets) / len(regrets):.2f}, median {quantile(regrets, 0.5):.2f}, 90 % {quantile(regrets, 0.9):.2f}, worst "
                 f"{max(regrets):.2f}; the best itself in {sum(x < 1.005 for x in regrets)}.\n\n")
        text += table(["points", "n", "D", "asked", "assumed", "chosen", "k", "ms", "best, ms", "regret"],
                      [[q["form"], q["n"], f"{q['d']:,}", f"k = {q['k']}" if "k" in q else f"ε = {q['eps']:g}", q["assume"],
                        "`" + q["candidates"][q["chosen"]]["operator"] + "`" +
                        (" fp16" if q["candidates"][q["chosen"]].get("precision") == "fp16" else ""),
                        q["candidates"][q["chosen"]]["k"], ms(q["seconds"]), ms(q["best"]), f"{q['regret']:.2f}"] for q in asked])
    if text:
        pages["choice.md"] = """# How good the choices of `--operator auto` are

`bench_cost` measures the cost model of [choosing.md](../reference/choosing.md), then asks it for shapes that were not
in its grid, and times every candidate.
""" + text


def index():
    about = {"thesis.md": "distortion of norms and distances by block and other operators, as in the quality tables of a thesis",
             "gpu.md": "GPUs: times of all jobs, with lower bounds and peers",
             "gpus.md": "several GPUs of one host: times beside those of one, and links",
             "model.md": "the (m, τ) model of Ahle and Silvestri, compared with measurements",
             "low-precision.md": "Gaussian operators rounded to few bits, and sparse ones, as in Ootomo and Yokota",
             "signs.md": "one arithmetic for sketches of signs on every device: a trial, its errors and times, and why it is not taken",
             "gemm.md": "products of fp32 with fp16 matrices: errors and speed compared with SGEMM",
             "svd.md": "singular values on GPUs and CPUs: times compared with other libraries, residuals on Ootomo and Yokota's matrices",
             "lstsq.md": "least squares compared with LAPACK, LSQR and ridge regression: times, and errors by condition number",
             "join.md": "joins in the (m, τ) model of Ahle and Silvestri: products, buckets and hashes, predicted and measured",
             "lsh.md": "hashing and tables on GPUs, and the LSH pipelines of a report compared with ours",
             "dedup.md": "deduplication of texts: times beside rensa and datasketch, and corpora that are made to be hard",
             "python.md": "the Python package: calls, estimators beside scikit-learn's, searches beside FAISS and pynndescent",
             "projectors.md": "projectors of gradients on GPUs beside fast_jl and sjlt",
             "sparse.md": "sparse rows: joins, searches and factorisations of texts, beside SciPy, sparse-dot-topn and scikit-learn",
             "search.md": "exact search on CPUs beside FAISS, at every level of instructions from AVX2 to AMX, and beside graphs and RaBitQ codes",
             "rabitq.md": "codes of a few bits beside FAISS's RaBitQ indexes: recall at equal bytes, queries a second",
             "roofline.md": "what jobs reach of the machine's own rates of products and reads, by level of instructions",
             "threads.md": "what each job gains from more threads, beside SGEMM and a read of memory",
             "hosvd.md": "Tucker decompositions compared with Ootomo and Yokota's Algorithm 2 in NumPy and the full HOSVD by LAPACK",
             "guarantee.md": "search by hashing: recall guarantees with 30 seeds, speed compared with FAISS",
             "choice.md": "the accuracy of the cost model and of the choices of `--operator auto`"}
    pages["README.md"] = ("# Results\n\n`make results` (`scripts/results/make.py`) generates these pages from the records in `bench/records/`. "
                          "`make measure` measures again on a CPU, `scripts/gpu.sh` on a GPU, into `bench/records/gpu/` or another "
                          "folder there: records are recognised by their content.\n\n" +
                          "".join(f"- [{name}]({name}): {words}\n" for name, words in about.items() if name in pages) +
                          "- [accuracy](../reference/accuracy.md): errors of single-precision sketches\n")


thesis()
model.make()
choice_page()
low_precision.make()
signs.make()
svd.make()
gemm.make()
lstsq.make()
hosvd.make()
join.make()
lsh.make()
sparse.make()
threads.make()
roofline.make()
search.make()
rabitq.make()
dedup.make()
python.make()
projectors.make()
guarantee.make()
gpu.make()
gpus.make()
readme = peers.readme((ROOT / "README.md").read_text())
index()
for name in pages:
    pages[name] = wrapped(pages[name])
if "--check" in sys.argv[1:]:
    stale = [name for name, text in pages.items()
             if not (PAGES / name).exists() or (PAGES / name).read_text() != text]
    stale += [f"{name}.svg" for name, *_ in plots if not (PAGES / "figures" / f"{name}.svg").exists()]
    if readme != (ROOT / "README.md").read_text():
        stale.append("README.md")
    sys.exit("not up to date, run make results: " + ", ".join(stale) if stale else 0)
(PAGES / "figures").mkdir(parents=True, exist_ok=True)
for name, text in pages.items():
    (PAGES / name).write_text(text)
(ROOT / "README.md").write_text(readme)
draw()
