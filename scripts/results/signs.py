"""docs/results/signs.md: the trial of one arithmetic for sketches of signs on every device, from the records of
bench_signs_errors, bench_signs_speed and the GPU's program signs."""
from pages import load, pages, table

SHOWN = ("centred", "positive", "normal", "mean 1000", "log-normal, sigma 3", "Cauchy", "1 of 256 nonzero", "one 2^30", "two 2^30",
         "subnormal", "near FLT_MAX")
SIZES = (64, 4096, 1048576)
WAYS = ("today", "sgemm", "plain", "narrow", "wide")
GOAL_AMX = 5  # times SGEMM


def small(value):
    return "–" if value is None else f"{1e7 * value:.3g}"


def ratio(value):
    return "–" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.3f}"


def errors(record):
    of = {(r["kind"], r["law"], r["d"]): r for r in record["results"]}
    rows = []
    for law in SHOWN:
        for d in SIZES:
            r = of["rademacher", law, d]["errors"]
            rows.append([law if d == SIZES[0] else "", f"{d:,}"] + [small(r.get(way)) for way in WAYS])
    long = [[r["law"], r["kind"], f"{r['d']:,}"] + [small(r["errors"].get(way)) for way in ("today", "plain", "narrow", "wide")]
            for r in record["results"] if r["d"] > 1048576]
    bounds = []
    for kind in ("rademacher", "achlioptas"):
        for way in WAYS:
            worst = max((r["ratios"][way], r["law"], r["d"]) for r in record["results"]
                        if r["kind"] == kind and r["d"] <= 1048576 and r["ratios"].get(way) is not None)
            bounds.append([f"`{kind}`", way, ratio(worst[0]), worst[1], f"{worst[2]:,}"])
    return of, table(["points", "D", "today", "SGEMM", "plain", "narrow", "wide"], rows), \
        table(["points", "kind", "D", "today", "plain", "narrow", "wide"], long), \
        table(["kind", "arithmetic", "largest error / bound", "points", "D"], bounds)


def speeds(record):
    rows = []
    for r in record["results"]:
        for level in ("avx2", "avx512", "amx"):
            trial, today = r["times"].get(f"trial {level}"), r["times"].get(f"today {level}")
            if not trial:
                continue
            today = today or r["times"]["today avx512"]
            rows.append([f"`{r['kind']}`", f"{r['k']:,}", level, f"{today['ms']:.1f}", f"{trial['ms']:.1f}", f"{trial['ms'] / today['ms']:.2f}",
                         f"{r['sgemm_ms'] / today['ms']:.2f}", f"{r['sgemm_ms'] / trial['ms']:.2f}"])
    return table(["kind", "k", "level", "today, ms", "trial, ms", "trial / today", "today × SGEMM", "trial × SGEMM"], rows)


def wrong_cpu(*records):
    return sum(t["wrong"] for record in records for r in record["results"] for t in r["times"].values())


def make():
    e, zen, amx, gpu = (load(name) for name in ("signs-errors.json", "signs-speed-cpu.json", "signs-speed-amx.json", "gpu/signs.json"))
    if not (e and zen and amx and gpu):
        return
    of, shown, long, bounds = errors(e)

    def slower(record, level, kind, k):
        t = next(r["times"] for r in record["results"] if r["kind"] == kind and r["k"] == k)
        return t[f"trial {level}"]["ms"] / t[f"today {level}"]["ms"]

    def over_sgemm(k):
        r = next(r for r in amx["results"] if r["kind"] == "rademacher" and r["k"] == k)
        return r["sgemm_ms"] / r["times"]["trial amx"]["ms"]

    def worst(kind, way):
        return max(r["ratios"][way] for r in e["results"] if r["kind"] == kind and r["d"] <= 1048576 and r["ratios"].get(way) is not None)

    def error(law, d, way):
        return of["rademacher", law, d]["errors"][way]

    plain = [r for r in gpu["results"] if r["tail"] == 1 and r["law"] != "huge range"]
    many = [r["narrow_ms"] / r["today_ms"] for r in plain if r["rows"] >= 128]
    few = [r["narrow_ms"] / r["today_ms"] for r in plain if r["rows"] < 128]
    rows = [[f"{r['n']:,}", f"{r['cols']:,}", f"{r['rows']:,}", r["law"] + (", one 2^30 a block" if r["tail"] > 1 else ""), f"{r['today_ms']:.3f}",
             f"{r['narrow_ms']:.3f}", f"{r['narrow_ms'] / r['today_ms']:.2f}", f"{r['wide_ms']:.3f}", f"{r['wide_ms'] / r['today_ms']:.2f}",
             f"{r['cuts_ms']:.3f}", f"{r['finite_ms']:.3f}", small(r["today_error"]), small(r["narrow_error"])] for r in gpu["results"]]
    wrong = sum(r["narrow_wrong"] + r["wide_wrong"] for r in gpu["results"])
    avx2 = [sorted(slower(record, "avx2", kind, k) for kind in ("rademacher", "achlioptas") for k in (256, 1024)) for record in (zen, amx)]
    gain = over_sgemm(1024)
    pages["signs.md"] = f"""# One arithmetic for sketches of signs on every device: a trial

A dense sketch has the same bits at every instruction set level of a CPU, but not on a GPU, and not if the sums are cut elsewhere.
For random signs there is an arithmetic whose sums do not depend on their order: the coordinates of a point in a block of
4096 columns become 24-bit integers under one exponent, whose sums of ± are exact; blocks are added in ascending order. It was
tried on all devices and **is not taken**: it works, and no bit differs, but it does not keep the bound of
[accuracy.md](../reference/accuracy.md) for `achlioptas`, loses digits of data with long tails, and is slower than today's sums
where it was to be no slower.

| asked | found | |
|---|---|---|
| the same bits everywhere | {wrong_cpu(zen, amx)} of the compared numbers wrong on CPUs (AVX2, AVX-512, AMX), {wrong} on the GPU | yes |
| the documented bound, `rademacher` | largest error / bound {ratio(worst('rademacher', 'plain'))} under one exponent; {ratio(worst('rademacher', 'wide'))} with the largest coordinate left out where needed | yes, refined |
| the documented bound, `achlioptas` | {ratio(worst('achlioptas', 'wide'))} times the bound, refined too | **no** |
| AVX2 no slower than today | EPYC {avx2[0][0]:.2f} to {avx2[0][-1]:.2f}, Xeon {avx2[1][0]:.2f} to {avx2[1][-1]:.2f} times today's time; `rademacher`, k = 1024: {slower(zen, 'avx2', 'rademacher', 1024):.2f} and {slower(amx, 'avx2', 'rademacher', 1024):.2f} | **no** |
| `rademacher`, k = 1024, AMX: {GOAL_AMX} × SGEMM | {gain:.1f} × | {'yes' if gain >= GOAL_AMX else '**no**'} |
| one H200 no slower than today | {min(many):.2f} to {max(many):.2f} times today's time from k = 128 on, {min(few):.2f} to {max(few):.2f} below; blocks added in fp32 | **no** |

The programs: `bench/papers/signs/` (`bench_signs_errors`, `bench_signs_speed`) and `bench/papers/signs.cu`. `signs.h` there
defines the arithmetic to the last bit, in plain C; all kernels are held to it.

## The arithmetic

A block of a point has the exponent e: the least for which all coordinates round to integers q of at most 2²³ − 1, x / 2^(e − 23)
to nearest. So a term is rounded by up to 2^(e − 24), and a block's sum of ± q stays below 2³⁵, an exact integer. 256 columns fit 32 bits,
for tables; three bytes, the highest signed, are for AMX; two halves of 12 bits are exact in fp16, and their sums over 4096
columns stay below 2²⁴, exact in the tensor cores' fp32 sums.

With one exponent alone the bound fails even for `rademacher`: of one large coordinate and many just below half a unit all but the
one are lost. *Refined*: the first of the largest coordinates is left out and added as it is, if the integers |x| div 2^(e − 2)
add up to less than 8; e is then that of the others. What is rounded off stays within (N − 1) 2⁻²⁴ Σ|x|: either Σ|x| ≥ 2^(e + 1)
and N terms lose 2^(e − 24) each, or N − 1 terms do, 2^(e − 1) is at most the second largest coordinate and so 2^e at most the sum of the
two. NaN and infinity are left out and added likewise; {sum(e['nonfinite_differ'])} numbers of points with such differ in kind from today's.

**Why `achlioptas` can't have it.** Its rows leave out two columns of three, and the bound of a row counts only the columns that it
has. A row that misses a point's two large coordinates still gets its small ones rounded by the large ones' unit. No number of
coordinates left out, and no second exponent, mends that for all points; sums without any rounding would.

## Errors

`rademacher`, 8 points, k = 32, the largest |y − exact| / |exact| times 10⁷ (Euclidean, a point's 32 numbers). *Today*: the
library's fp32 sums; *plain*: one exponent, blocks added in fp64; *narrow*: refined, blocks added in fp32; *wide*: refined, in fp64.

{shown}
- Coordinates of similar size lose nothing: at D = 2²⁰ 'wide' has {small(error('centred', 1048576, 'wide'))} where today's sums have {small(error('centred', 1048576, 'today'))} and SGEMM
  {small(error('centred', 1048576, 'sgemm'))}, since a block's sum has no rounding of its own.
- Long tails do: all are rounded by the largest's unit. Log-normal points at D = 4096 have {error('log-normal, sigma 3', 4096, 'wide') / error('log-normal, sigma 3', 4096, 'today'):.0f} times
  today's error, Cauchy ones {error('Cauchy', 4096, 'wide') / error('Cauchy', 4096, 'today'):.0f} times, normal ones {error('normal', 4096, 'wide') / error('normal', 4096, 'today'):.1f} times.

Longer points, one each:

{long}
The largest error of a single number over its bound, c = N − 1, over all {len({r['law'] for r in e['results']})} laws of `bench_signs_errors` and D from 64 to 2²⁰ ('adverse'
ones are made to be rounded in one direction):

{bounds}
## Speed on CPUs

X is {zen['results'][0]['n']:,} × {zen['results'][0]['d']:,} fp32; one thread; medians of {zen['rounds']} and {amx['rounds']} rounds, all ways in turn; the making of signs is in each time. Tables of
signed sums as today's, here of 32-bit integers that go to fp64 every 256 (240) columns. Today's level for AMX is AVX-512, as AMX has no
kernel for it. VNNI was not tried: three products of 8-bit slices leave it 1.3 times the products of an FMA, and tables have 3 to 4.

{zen['cpu']}, commit {zen['commit']}:

{speeds(zen)}
Xeon with AMX ({amx['cpu']}; OpenBLAS with its SkylakeX kernels), commit {amx['commit']}:

{speeds(amx)}
The integers cost a point's coordinates three passes before the sums, which few rows have to pay for, and sums leave their 32 bits
every fourth pass. AMX reaches {1e-12 * 3 * amx['results'][1]['n'] * amx['results'][1]['k'] * amx['results'][1]['d'] / (1e-3 * amx['results'][1]['times']['trial amx']['ms']):.2f} · 10¹² products of bytes a second at k = 1024,
a quarter of what [roofline.md](roofline.md) has for one thread: the kernel of the trial can be improved, and {GOAL_AMX} × SGEMM is not
out of reach.

## Speed on a GPU

{gpu['gpu']}, commit {gpu['commit']}, points in its memory; the library's kernel for many points and the same with other fragments and
sums (medians of three rounds in turn, ms). *Cuts* is the pass that finds exponents; it takes the place of the *search* for NaN and
infinity, which a call makes anyway, and is left out of the ratios (with `allow_nonfinite` a call would pay for all of it). *Wide* adds blocks in fp64. Errors are those of five points, times 10⁷.

{table(["points", "D", "k", "law", "today", "narrow", "/ today", "wide", "/ today", "cuts", "search", "error, today", "error, narrow"], rows)}
Exponents for 64 columns, as today's kernel has them, leave one sum beside the total; those for 4096 need two in the tensor cores'
registers, high and low, while the next fragments are made, and these registers are what the kernel lacks from k = 128 on.

## What would change the decision

- A promise for `rademacher` alone, whose bound holds, if data with long tails may lose digits and GPUs some of their speed.
- On AMX the sums are {over_sgemm(1024) / next(r['sgemm_ms'] / r['times']['today avx512']['ms'] for r in amx['results'] if r['kind'] == 'rademacher' and r['k'] == 1024):.1f} times as fast as today's at k = 1024. As an option that gives up equal bits, like
  `GNOMON_GEMM_BF16` for products, they would need neither the exponent of a whole block nor the refinement; the gain is too small for one more option.
"""
