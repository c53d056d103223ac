"""docs/results/join.md: the (m, tau) model of Ahle and Silvestri against joins, from the record of bench_join_model, and on GPUs
from those of bench/gpu/join.cu and bench/papers/model.cu."""
import math

from pages import geometric, gpu_records, load, ms, pages, plot, slug, table

FOUND = """# Joins in the (m, τ) model of Ahle and Silvestri

Their machine multiplies two √m × √m matrices in time τ, and does everything else in single steps. A join of n points
with themselves by products takes n² d m^(-3/2) τ / 2 (section 4; half of it for the symmetry). One by hashes takes L
times the sum of the products in a table's buckets and the handling of n points. There K, the number of functions of a
table, is chosen so that a point meets m^(3/2) / τ far ones in its bucket, in steps of handling. The products then cost
no more than the handling, and fewer tables are needed: L = p₁^(-K). The paper leaves measurements to others.
`bench_join_model` measures this on one thread of the CPU, in processor seconds (`bench_join_model FILE.json`, then
`make results`).

"""
WORDS = """## What was found

- **The time of products is predicted well where d is at least 64.** With the τ of √m = {side} the products of exact
  joins there come within {off:.0f} % of n² d m^(-3/2) τ / 2 in the mean. At d = 16 a tile's products take {thin_factor:.1f} times as
  long, mostly for writing its sums. A τ of √m = 8 overestimates by a factor of {small:.2g}: the cost of a call, not of arithmetic.
- **There is a gain, but it is less than √m.** A pair in a bucket of {wide} points costs {gain_additions:.0f} times less by one product
  than by one addition after the other (d = 128), and {gain_dots:.1f} times less than by dot products in vector units. Up to
  b = 8 the gain is about b, as for τ = O(m). From b = 32 on it grows little, since τ grows as m^(3/2) there, as in a
  machine without units.
- **Memory and output reduce it** at few dimensions and at many pairs. At d = {thin} the scan of the sums, which the model
  does not count, takes {thin_share:.0f} % of the join by tiles. With {many} neighbours a point, d = {many_d}, writing the pairs takes
  {many_share:.0f} %. An exact join has more work for each pair: it verifies it in fp64 and sorts it.
- **Fewer, larger buckets pay, and the model finds K** among those tried (predictions in brackets):
{best}
  Where the far points are farther than twice the threshold a table has few candidates, and there is nothing to gain.
- **The theorem leaves out** the cost of handling a point: K functions of d products each, a sort, and the copy of the
  point's coordinates into its bucket, which costs as much as the rest. The number of far points that cost as much as
  handling one, m^(3/2) / τ in the paper, is {budget} here.
- gnomon's own join by hashes compares pair by pair, after a comparison of keys that skips pairs already met, and
  guarantees more than one meeting in the mean. Its model chooses the exact join for all three c here, and the hashes for
  a million points ([join.md](../reference/join.md#speed)).

"""


def seconds_a_term(record):
    """{side: tau / m^(3/2)}"""
    return {t["side"]: t["seconds"] / t["side"] ** 3 for t in record["tau"]}


def tau_part(record):
    rows = [[t["side"], f"{1e6 * t['seconds']:.3g}", f"{1e12 * t['seconds'] / t['side'] ** 3:.3g}",
             f"{2e-9 * t['side'] ** 3 / t['seconds']:.3g}"] for t in record["tau"]]
    return "### τ\n\nOpenBLAS SGEMM, one thread.\n\n" + table(["√m", "τ, µs", "τ / m^(3/2), ps", "GFLOP/s"], rows) + "\n"


def terms(e):
    return e["n"] ** 2 / 2 * e["d"]


def best_side(record):
    """The side whose prediction of products is off least."""
    def off(unit):
        return geometric([max(p, 1 / p) for p in (terms(e) * unit / e["product"] for e in record["exact"])])
    units = seconds_a_term(record)
    return min(units, key=lambda side: off(units[side]))


def exact_part(record):
    units, side = seconds_a_term(record), best_side(record)
    rows = []
    for e in record["exact"]:
        predicted = terms(e) * units[side]
        rows.append([f"{e['n']:,}", e["d"], f"{2 * e['pairs'] / e['n']:.3g}", ms(predicted), ms(e["product"]),
                     f"{predicted / e['product']:.2f}", ms(e["look"]), ms(e["write"]), ms(e["tiles"]), f"{predicted / e['tiles']:.2f}",
                     ms(e["gnomon"]), f"{predicted / e['gnomon']:.2f}", f"{e['verified'] / max(1, e['gnomon_pairs']):.3g}"])
    text = (f"### Exact joins, ms\n\nPoints with independent normal coordinates, in which no sketch helps. Predicted is n² d m^(-3/2) τ / 2 "
            f"with √m = {side}, the closest one; *tiles* is a join by SGEMM of 256 × 256 pairs in fp32, the upper half, whose steps are the products, the scan "
            "of them and the writing of pairs; *gnomon* is the exact join of fp64's pairs, whose filter must be proven right and whose pairs are "
            "computed again: *verified* is the number of pairs it computed in fp64 for each pair found.\n\n")
    text += table(["n", "d", "neighbours a point", "predicted", "products", "predicted / products", "scan", "pairs", "tiles", "predicted / tiles",
                   "gnomon", "predicted / gnomon", "verified a pair"], rows)
    text += "\nPrediction / measurement of the products, by √m: geometric mean, and the mean factor about it.\n\n"
    ratios = {s: [terms(e) * unit / e["product"] for e in record["exact"]] for s, unit in units.items()}
    text += table(["√m"] + [str(s) for s in ratios],
                  [["mean"] + [f"{geometric(v):.3g}" for v in ratios.values()],
                   ["spread"] + [f"{geometric([max(x / geometric(v), geometric(v) / x) for x in v]):.2f}" for v in ratios.values()]])
    curve = [e for e in record["exact"] if e["n"] == 8192 and 30000 < e["pairs"] < 60000]
    text += "\n" + plot("join-exact-cpu", "Exact joins of 8,192 points, 10 neighbours a point", "d", "ms", [
        (name, style, [(e["d"], 1e3 * value(e)) for e in sorted(curve, key=lambda e: e["d"])])
        for name, style, value in (("predicted", "with lines lc black", lambda e: terms(e) * units[side]),
                                   ("products", "with linespoints", lambda e: e["product"]),
                                   ("tiles, all steps", "with linespoints", lambda e: e["tiles"]),
                                   ("gnomon, exact in fp64", "with linespoints", lambda e: e["gnomon"]))])
    return text + "\n"


def bucket_part(record):
    ds = sorted({b["d"] for b in record["buckets"]})
    by = {(b["d"], b["b"]): b for b in record["buckets"]}
    rows = []
    for size in sorted({b["b"] for b in record["buckets"]}):
        row = [size]
        for d in ds:
            b = by[d, size]
            row += [f"{1e9 * b['product']:.3g}", f"{1e9 * b['dots']:.3g}", f"{1e9 * b['additions']:.3g}", f"{b['additions'] / b['product']:.3g}"]
        rows.append(row)
    text = ("### A pair in a bucket of b points, ns\n\nBy one product of the bucket with itself, by a dot product (`sdot`) a pair, and by one addition "
            "after the other, the step of a machine without units; the gain is the last over the first.\n\n")
    text += table(["b"] + [f"d = {d}: {x}" for d in ds for x in ("product", "dot product", "additions", "gain")], rows)
    curves = [(f"d = {d}", "with linespoints", [(b["b"], b["additions"] / b["product"]) for b in record["buckets"] if b["d"] == d]) for d in ds]
    curves.append(("sqrt(m) = b", "with lines lc black", [(2, 2), (1024, 1024)]))
    return text + "\n" + plot("join-buckets-cpu", "A pair by product of its bucket: times faster than by additions", "points in the bucket", "times",
                              curves) + "\n"


class Hashed:
    """One c: what K costs, measured and predicted."""

    def __init__(self, record, h):
        self.c, self.h, self.rows = h["c"], h, []
        n, d = h["n"], h["d"]
        unit = seconds_a_term(record)[best_side(record)]
        dots = next(b["dots"] for b in record["buckets"] if b["d"] == d and b["b"] == 64)
        hash_one = geometric([t["hash"] / t["K"] for t in h["tables"]])
        sort, gather = (geometric([t[step] for t in h["tables"]]) for step in ("sort", "gather"))
        self.rho = math.log(h["p1"]) / math.log(h["p2"])
        for t in h["tables"]:
            candidates = n * n / 2 * t["far"] + n / 2 * h["p1"] ** t["K"]
            handling = t["K"] * hash_one + sort
            tables = h["p1"] ** -t["K"]
            own = t["hash"] + t["sort"]
            self.rows.append({"K": t["K"], "L": tables, "candidates": (candidates, t["candidates"]),
                              "met": (n / 2 * h["p1"] ** t["K"], t["met"]),
                              "products": (tables * (handling + gather + candidates * d * unit), tables * (own + t["products"])),
                              "one": (tables * (handling + candidates * dots), tables * (own + t["one_by_one"])),
                              "budget": (handling + gather) / n / (d * unit), "far": n * t["far"]})

    def best(self, way, which):
        return min(self.rows, key=lambda r: r[way][which])


def hashed_part(record):
    one = record["hashed"][0]
    text = (f"### The join by hashes, s\n\n{one['n']:,} points of {one['d']} dimensions, in pairs at the threshold from each other, all others about c thresholds apart; p-stable "
            "functions of width 4 thresholds; L = p₁^(-K) tables of K functions, so that a pair at the threshold meets once in the mean. Six tables "
            "of each K were measured, and times are for L of them. Predicted with the τ above, the mean cost of a function, of a sort and (for products) of "
            "gathering points, and the far pairs' distances; *far points* is the number that a point meets in a table, *break-even* the number that cost as much as handling it, m^(3/2) / τ in its own unit.\n\n")
    rows, summary = [], []
    for h in record["hashed"]:
        x = Hashed(record, h)
        for r in x.rows:
            rows.append([f"{x.c:g}", r["K"], f"{r['L']:.3g}", f"{r['far']:.3g}", f"{r['budget']:.3g}", f"{r['candidates'][0]:.3g}", f"{r['candidates'][1]:.3g}",
                         f"{r['met'][0]:.0f}", f"{r['met'][1]:.0f}"] + [f"{r[way][i]:.3g}" for way in ("products", "one") for i in (0, 1)])
        best = {(way, i): x.best(way, i) for way in ("products", "one") for i in (0, 1)}
        summary.append([f"{x.c:g}", f"{h['p1']:.3f}", f"{h['p2']:.3f}", f"{x.rho:.2f}"] +
                       [best[way, i]["K"] for way in ("products", "one") for i in (0, 1)] +
                       [f"{best['products', i]['products'][i]:.3g}" for i in (0, 1)] + [f"{best['one', i]['one'][i]:.3g}" for i in (0, 1)] +
                       [f"{best['one', i]['one'][i] / best['products', i]['products'][i]:.2f}" for i in (0, 1)] +
                       [f"{h['recall']:.3g}, {h['recall_method']}", f"{h['recall_pairs'] / h['pairs']:.4f}", f"{h['exact']:.3g}"])
        curves = [(f"{name}, {kind}", style, [(r["K"], r[way][i]) for r in x.rows])
                  for way, name in (("products", "by products"), ("one", "pair by pair"))
                  for i, kind, style in ((0, "predicted", f"with lines lc {1 if way == 'products' else 2}"),
                                         (1, "measured", f"with points pt 7 lc {1 if way == 'products' else 2}"))]
        text += plot(f"join-hashed-cpu-{slug(format(x.c, 'g'))}", f"The join by hashes, c = {x.c:g}: seconds for L tables", "K, functions a table", "s", curves,
                     more="set logscale y")
    head = ["c", "K", "L", "far points", "break-even", "candidates predicted", "measured", "pairs met predicted", "measured", "by products predicted", "measured",
            "pair by pair predicted", "measured"]
    text += "\n" + table(head, rows) + ("\nThe best of them; the gain is that of products over pair by pair, each at its own best K. gnomon guarantees a "
                                        "recall of 0.95 for every pair at the threshold, which takes six times as many tables (ln 400), compares pair "
                                        "by pair after a comparison of keys, and chooses K, or an exact join, by its own model.\n\n")
    head = ["c", "p₁", "p₂", "ρ", "best K by products, predicted", "measured", "pair by pair, predicted", "measured", "s by products, predicted", "measured",
            "pair by pair, predicted", "measured", "gain predicted", "measured", "gnomon, recall 0.95, s", "found", "gnomon exactly, s"]
    return text + table(head, summary) + "\n"


def words(record):
    units, side = seconds_a_term(record), best_side(record)
    wide_jobs = [e for e in record["exact"] if e["d"] >= 64]
    ratios = [terms(e) * units[side] / e["product"] for e in wide_jobs]
    by = {(b["d"], b["b"]): b for b in record["buckets"]}
    wide = max(b["b"] for b in record["buckets"])
    usual = [e for e in record["exact"] if e["pairs"] < 100 * e["n"]]
    thin = max(usual, key=lambda e: e["look"] / e["tiles"])
    least = min(usual, key=lambda e: e["d"])
    many = max(record["exact"], key=lambda e: e["write"] / e["tiles"])
    hashed = [Hashed(record, h) for h in record["hashed"]]
    said = []
    for x in hashed:  # a line each, in the list's item
        p, o = x.best("products", 1), x.best("one", 1)
        said.append(f"  at c = {x.c:g} products are best at K = {p['K']} ({x.best('products', 0)['K']}), with {p['far']:.3g} far points in a point's bucket, "
                    f"one by one at {o['K']} ({x.best('one', 0)['K']}), with {o['far']:.3g}, and the gain is {o['one'][1] / p['products'][1]:.2f} "
                    f"({x.best('one', 0)['one'][0] / x.best('products', 0)['products'][0]:.2f})")
    budgets = [r["budget"] for x in hashed for r in x.rows]
    return WORDS.format(side=side, off=100 * (geometric([max(v, 1 / v) for v in ratios]) - 1), thin_factor=least["product"] / (terms(least) * units[side]),
                        small=geometric([terms(e) * units[8] / e["product"] for e in wide_jobs]), wide=f"{wide:,}",
                        gain_additions=by[128, wide]["additions"] / by[128, wide]["product"], gain_dots=by[128, wide]["dots"] / by[128, wide]["product"],
                        thin=thin["d"], thin_share=100 * thin["look"] / thin["tiles"], many=f"{2 * many['pairs'] / many['n']:,.0f}",
                        many_d=many["d"], many_share=100 * many["write"] / many["tiles"], best=";\n".join(said) + ".",
                        budget=f"{min(budgets):.0f} to {max(budgets):.0f}")


def on_gpu(gpu, programs):
    tau = {s: {r["side"]: 1e-6 * r["among_us"] / r["side"] ** 3 for r in programs["model"]["results"] if r["table"] == "tau" and r["system"] == s}
           for s in ("sgemm", "fp16")}
    side = min(tau["fp16"], key=tau["fp16"].get)
    plain = min(tau["sgemm"].values())
    kernels = {r["d"]: r for r in programs["join"]["results"] if r["what"] == "kernel"}
    calls = {r["d"]: r for r in programs["join"]["results"] if r["what"] == "call"}
    rows, data = [], []
    for d, k in sorted(kernels.items()):
        predicted = 1e3 * k["n"] ** 2 / 2 * d * tau["fp16"][side]
        simple = 1e3 * k["n"] ** 2 / 2 * d * plain
        call = calls.get(d, {})
        data.append((d, predicted, simple, k["sieve_ms"], k["ms"], call.get("ms", math.nan)))
        rows.append([d, f"{2 * k['pairs'] / k['n']:.3g}", f"{simple:.3g}", f"{predicted:.3g}", f"{k['sieve_ms']:.3g}", f"{predicted / k['sieve_ms']:.2f}",
                     f"{k['pack_ms']:.2g}", f"{k['settle_ms']:.3g}", f"{k['ms']:.3g}"] +
                    ([f"{call['count_ms']:.3g}", f"{call['ms']:.3g}", f"{predicted / call['ms']:.2f}"] if call else [""] * 3))
    text = f"""## {gpu}: exact joins of {next(iter(kernels.values()))['n']:,} points, ms

Predicted is n² d m^(-3/2) τ / 2 with the τ of one fp16 product among many, √m = {side} ([model.md](model.md)); *fp32* the same with SGEMM's best, the machine
without tensor cores: {plain / tau['fp16'][side]:.3g} times as much, which is the gain of the units here. *Filter* is the tiles of products fused with the scan
of their sums, *all* with packing and verification in fp64; *counted* is a call that hands no pairs out, *call* one from points to pairs on the host.

"""
    text += table(["d", "neighbours a point", "fp32", "predicted", "filter", "predicted / filter", "packing", "verification", "all", "counted", "call", "predicted / call"], rows)
    names = ("predicted", "without tensor cores", "filter", "all on the GPU", "host to host")
    curves = [(name, "with lines lc black" if i == 0 else "with linespoints", [(x[0], x[i + 1]) for x in data if x[i + 1] == x[i + 1]])
              for i, name in enumerate(names)]
    text += "\n" + plot(f"join-exact-{slug(gpu)}", f"Exact joins of 100,000 points ({gpu})", "d", "ms", curves)
    few, wide = data[0], data[-1]
    text += f"""
The filter comes within {100 * max(abs(x[1] / x[3] - 1) for x in data if x[0] >= 512):.0f} % of the prediction from d = 512 on. At d = {few[0]} the model's products would take {few[1]:.2g} ms. The scan of as many sums
as at any other d makes it {few[3]:.2g}, verification and sorting {few[4]:.2g}, and the copy of the pairs to the host {few[5]:.3g}. So output hides a gain that is visible at
d = {wide[0]} ({wide[1]:.3g} of {wide[5]:.3g} ms).
"""
    return text


def make():
    record = load("join-model-cpu.json")
    gpus = [on_gpu(gpu, programs) for gpu, programs in sorted(gpu_records().items()) if "join" in programs and "model" in programs]
    if record is None:
        return
    pages["join.md"] = (FOUND + words(record) + f"## CPU, {record['isa']}, one thread\n\n" + tau_part(record) + exact_part(record) + bucket_part(record) +
                        hashed_part(record) + "\n".join(gpus)).rstrip("\n") + "\n"
