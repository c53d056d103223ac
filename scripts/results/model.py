"""docs/results/model.md: the (m, tau) model of Ahle and Silvestri against measurements, on every device."""
import json
import math

from pages import RECORDS, geometric, gpu_records, ms, pages, plot, power, slug, table

FOUND = """# The (m, τ) model of Ahle and Silvestri, held against machines

Their machine multiplies two √m × √m matrices in time τ; a p × q by q × r product then takes pqr m^(-3/2) τ
(Theorem 1), and their cascade (Lemma 3: level t multiplies t k × ζ(t−1)k by ζ^(ℓ−t) blocks) the sum
of such products (Theorem 2). Measuring τ and holding the prediction against a running cascade is the
experiment that their paper names as future work. Here every product is counted in whole √m × √m
blocks, for each √m that was measured.

What was found on the CPU:

- With one τ, of the right √m, the model predicts a cascade of SGEMMs over three orders of magnitude
  to within some tens of a percent. The right √m is that of a product which just fills the arithmetic
  units (the spread below is least for small √m, where the sum is nearly the count of flops; the mean
  is nearest to 1 where τ / m^(3/2) has levelled off). A √m above the cascade's narrowest side is
  useless: the last levels have as few columns as there are points, and are padded.
- The paper's τ = O(m) holds only for small products, up to √m = 32 or 64 on this CPU, where the cost of
  a call and of moving the numbers rules; above, τ grows as m^(3/2), and the gain over a dense product
  is no factor √m: it is that the cascade's matrices are small enough to be kept.
- The paper's ζ = 2 is the worst choice. Its levels together do Σ t·max(1, t−1)·ζ^(1−t) times the work
  of the first, which is that of a dense product: 9 for ζ = 2, 2.2 for ζ = 4, 1.15 for ζ = 16. The
  asymptotic bound hides it in ζ(ζ+1)/(ζ−1)³.
- `srht` and `very-sparse` need no products of matrices and beat every cascade measured here.

"""
FOUND_ON_GPU = """What was found on a GPU:

- The τ of one product alone is that of a launch: constant up to √m = 256 (SGEMM) or 1024 (fp16), better
  than the paper's O(m), but only for most of the machine stands idle. Among many products τ goes as m for
  small ones, where moving the numbers rules, and as m^(3/2) from √m = 128 (SGEMM) or 1024 (fp16) on.
- So the paper's model with one unit is far off for every √m. With the τ of one product among many it predicts
  cascades of SGEMMs from 0.04 to 90 ms within some tens of a percent (√m = 64 to 256). In fp16 it does worse:
  there a cascade's narrow levels are ruled by their points' reading and writing, which products of square
  matrices do not show.
- ζ = 2 is the worst choice here too, and a dense product on tensor cores with the matrix stored is faster than
  most cascades: with an arithmetic so quick there is little that fewer products could save.
- gnomon's own cascade, at single precision and with its matrices made on the way, beats its dense signs by up to
  a factor of two where ζ = 16 fits, and its `srht` never: `srht` takes little more than one read of the points.

"""
ON_GPU = """On a GPU the machine is not one unit but many, fed by launches, so that there are two τ: that of one product
alone, and that of one among many which run at once (its time over their number). Three predictions are
held against the measurements: *one unit*, blocks times τ alone, as the paper has it; *many units*, blocks
times τ among many; and *with a start*, the same plus τ alone for every level, for a level can't begin
before the one above has ended.

"""


class Model:
    """One device's figures. tau: {system: {side: (alone, among many or None)}}, seconds; sizes: k, d, rivals {name:
    seconds} and cascades [(zeta, {system: seconds})]."""

    def __init__(self, key, device, points, tau, sizes):
        self.key, self.device, self.points, self.tau, self.sizes = key, device, points, tau, sizes


SYSTEMS = {"sgemm": "SGEMMs", "fp16": "fp16 GEMMs", "gnomon": "`kronecker`"}
RIVALS = {"sgemm": "the dense product by SGEMM, matrix stored", "fp16": "the dense product in fp16, matrix stored",
          "rademacher": "`rademacher`", "srht": "`srht`", "very-sparse": "`very-sparse`", "sjlt": "`sjlt`"}


def on_cpu(path):
    r = json.loads(path.read_text())
    tau = {"sgemm": {t["side"]: (t["sgemm"], None) for t in r["tau"]},
           "gnomon": {t["side"]: (t["rademacher"], None) for t in r["tau"]}}
    sizes = [{"k": s["k"], "d": s["d"],
              "rivals": {"sgemm": s["dense_sgemm"], "rademacher": s["rademacher"], "srht": s["srht"],
                         "very-sparse": s["very_sparse"]},
              "cascades": [(c["zeta"], {"sgemm": c["sgemm"], "gnomon": c["kronecker"]}) for c in s["cascades"]]}
             for s in r["sizes"]]
    return Model(path.stem.removeprefix("mtau-"), f"{r['device']}, {r['isa']}, {r['threads']} threads",
                 r["sizes"][0]["points"], tau, sizes)


def on_gpu(gpu, content):
    tau, sizes, points = {}, {}, 0
    for r in content["results"]:
        if r["table"] == "tau":
            tau.setdefault(r["system"], {})[r["side"]] = (1e-6 * r["alone_us"], 1e-6 * r["among_us"])
        if r["table"] in ("rival", "cascade"):
            points = r["points"]
            size = sizes.setdefault((r["k"], r["d"]), {"k": r["k"], "d": r["d"], "rivals": {}, "by_zeta": {}})
            if r["table"] == "rival":
                size["rivals"][r["system"]] = 1e-3 * r["ms"]
            else:
                size["by_zeta"].setdefault(r["zeta"], {})[r["system"]] = 1e-3 * r["ms"]
    for size in sizes.values():
        size["cascades"] = sorted(size.pop("by_zeta").items())
    return Model(slug(gpu), gpu, points, tau, [s for _, s in sorted(sizes.items())])


def levels(k, d, zeta, points):
    """Lemma 3, d = k zeta^l: rows, columns and points of each level's product."""
    products, blocks, before, t = [], d // k, k, 1
    while blocks > 1:
        blocks //= zeta
        rows = t * k if blocks > 1 else k
        products.append((rows, zeta * before, points * blocks))
        before, t = rows, t + 1
    return products


def blocks_of(products, side):
    """Theorem 1 for each product: blocks of side x side, whole ones."""
    return sum(math.prod(math.ceil(x / side) for x in p) for p in products)


def predictions(products, side, tau):
    """By name: seconds. One machine: the paper's alone."""
    alone, among = tau
    count = blocks_of(products, side)
    if among is None:
        return {"": count * alone}
    return {"one unit": count * alone, "many units": count * among,
            "with a start": count * among + len(products) * alone}


def spread(values):
    m = geometric(values)
    return geometric([max(v / m, m / v) for v in values])


def one_model(m):
    systems = [s for s in SYSTEMS if any(s in c for size in m.sizes for _, c in size["cascades"]) and s in m.tau]
    if not systems:
        return ""
    gpu = any(among is not None for t in m.tau.values() for _, among in t.values())
    text = f"## {m.device}, {m.points} points\n\n" + (ON_GPU if gpu else "") + "### τ\n\n"
    head, rows = ["√m"], []
    sides = sorted({side for s in systems for side in m.tau[s]})
    for s in systems:
        name = {"sgemm": "SGEMM", "fp16": "fp16 GEMM", "gnomon": "`rademacher`"}[s]
        head += [f"{name}{' alone' if gpu else ''}, µs", "/ m^(3/2), ps"] + (["among many, µs", "/ m^(3/2), ps"] if gpu else [])
    for side in sides:
        row = [side]
        for s in systems:
            for value in m.tau[s].get(side, (None, None))[:2 if gpu else 1]:
                row += [f"{1e6 * value:.3g}", f"{1e12 * value / side ** 3:.3g}"] if value else ["", ""]
        rows.append(row)
    text += table(head, rows)

    ratios = {}  # (system, way) -> {side: [prediction / measurement]}
    for size in m.sizes:
        for zeta, measured in size["cascades"]:
            products = levels(size["k"], size["d"], zeta, m.points)
            for s in systems:
                for side, tau in m.tau[s].items():
                    if s not in measured:
                        continue
                    for way, seconds in predictions(products, side, tau).items():
                        ratios.setdefault((s, way), {}).setdefault(side, []).append(seconds / measured[s])
    best = {key: min(by, key=lambda side: geometric([max(v, 1 / v) for v in by[side]])) for key, by in ratios.items()}
    text += ("\n### Prediction / measurement of the cascade\n\nGeometric means over all d, k and ζ; the spread is the mean factor "
             "about it.\n\n")
    by_system = [[key for key in ratios if key[0] == s] for s in systems] if gpu else [list(ratios)]
    for keys in by_system:
        text += table(["√m"] + [x for s, way in keys for x in (f"{SYSTEMS[s]}{', ' + way if way else ''}: mean", "spread")],
                      [[side] + [x for key in keys for x in
                                 ((f"{geometric(ratios[key][side]):.3g}", f"{spread(ratios[key][side]):.2f}")
                                  if side in ratios[key] else ("", ""))] for side in sides]) + "\n"
    text = text.rstrip("\n") + "\n"

    def predicted(s, way, k, d, zeta):
        side = best[s, way]
        return predictions(levels(k, d, zeta, m.points), side, m.tau[s][side])[way]

    shown = {s: min((w for x, w in best if x == s), key=lambda w: geometric(
        [max(v, 1 / v) for v in ratios[s, w][best[s, w]]])) for s in systems}
    rivals = [r for r in RIVALS if any(r in size["rivals"] for size in m.sizes)]
    rows = []
    for size in m.sizes:
        for zeta, measured in size["cascades"]:
            k, d = size["k"], size["d"]
            row = [k, power(d), zeta, len(levels(k, d, zeta, m.points))]
            for s in systems:
                row += [ms(predicted(s, shown[s], k, d, zeta)), ms(measured[s]) if s in measured else ""]
            rows.append(row + [ms(size["rivals"][r]) if r in size["rivals"] else "" for r in rivals])
    text += ("\n### Every cascade, and its rivals, ms\n\nPredicted with " +
             ", ".join(f"√m = {best[s, shown[s]]}{' (' + shown[s] + ')' if shown[s] else ''} for {SYSTEMS[s]}" for s in systems) + ".\n\n")
    text += table(["k", "d", "ζ", "levels"] + [x for s in systems for x in (f"{SYSTEMS[s]} predicted", "measured")] +
                  [{"sgemm": "dense SGEMM", "fp16": "dense fp16"}.get(r, f"`{r}`") for r in rivals], rows)

    def plain(words):
        return words.replace("`", "")

    points = {s: [(1e3 * c[s], 1e3 * predicted(s, shown[s], size["k"], size["d"], zeta))
                  for size in m.sizes for zeta, c in size["cascades"] if s in c] for s in systems}
    numbers = [x for data in points.values() for p in data for x in p]
    text += "\n" + plot(f"model-{m.key}", f"Cascades: prediction against measurement ({m.key})", "measured, ms", "predicted, ms",
                        [(plain(SYSTEMS[s]), "with points pt 7", points[s]) for s in systems] +
                        [("equal", "with lines lc black", [(min(numbers), min(numbers)), (max(numbers), max(numbers))])])
    for k in sorted({size["k"] for size in m.sizes}):
        sizes = [size for size in m.sizes if size["k"] == k]
        curves = [(f"cascade: {plain(SYSTEMS[s])}", "with linespoints",
                   [(size["d"], 1e3 * fastest(size, s)) for size in sizes if fastest(size, s) < math.inf]) for s in systems]
        curves += [({"sgemm": "dense SGEMM, stored", "fp16": "dense fp16, stored"}.get(r, r), "with linespoints",
                    [(size["d"], 1e3 * size["rivals"][r]) for size in sizes if r in size["rivals"]]) for r in rivals]
        text += plot(f"crossover-{m.key}-{k}", f"k = {k}: the best cascade and its rivals ({m.key})", "d", "ms", curves)
    return text + "\n" + crossovers(m, systems, rivals)


def fastest(size, system):
    return min((c[system] for _, c in size["cascades"] if system in c), default=math.inf)


def crossovers(m, systems, rivals):
    """What the figures say, in words that follow from them."""
    lines = []
    for r in rivals:
        for s in systems:
            sizes = [size for size in m.sizes if r in size["rivals"] and fastest(size, s) < math.inf]
            wins = {}
            for size in sizes:
                if fastest(size, s) < size["rivals"][r]:
                    wins.setdefault(size["k"], []).append(power(size["d"]))
            said = "at " + "; ".join(f"k = {k}, d = {', '.join(ds)}" for k, ds in wins.items())
            said = "never" if not wins else "always" if sum(map(len, wins.values())) == len(sizes) else said
            lines.append([SYSTEMS[s], RIVALS[r], said])
    text = "### Crossovers\n\nWhere the best ζ of a cascade is faster than\n\n" + table(["cascade", "rival", ""], lines) + "\n"
    for s in systems:
        zetas = {}
        for size in m.sizes:
            for zeta, c in size["cascades"]:
                if s in c:
                    zetas.setdefault(zeta, []).append(c[s] / fastest(size, s))
        text += (f"Time beside the best ζ that was tried, {SYSTEMS[s]}, geometric mean: " +
                 "; ".join(f"ζ = {z}: {geometric(v):.2f}" for z, v in sorted(zetas.items())) + ".\n\n")
    return text


def make():
    cpus = [on_cpu(path) for path in sorted(RECORDS.glob("mtau-*.json"))]
    models = cpus + [on_gpu(gpu, programs["model"]) for gpu, programs in sorted(gpu_records().items()) if "model" in programs]
    parts = [part for part in map(one_model, models) if part]
    if parts:
        found = FOUND + (FOUND_ON_GPU if len(models) > len(cpus) else "")
        pages["model.md"] = found + "\n".join(parts).rstrip("\n") + "\n"
