"""docs/results/gpu.md, and the table of GPUs in README.md: what the programs of bench/gpu/ measured, beside lower
bounds of the time and peers.

A program's records become jobs: what was done, milliseconds, a lower bound (one read of the points; flops at cuBLAS's
FP16 rate; the link), a limit as a multiple of the bound (or milliseconds, or of a peer), and what peers take.
"""
import math

from pages import gpu_records, pages, plot, power, slug, table
from model import levels

MEASURES = {"ms", "least_ms", "most_ms", "mean_ms", "median_ms", "variance_ms2", "runs", "read_ms", "floor_ms", "reads",
            "worst_error", "error", "sgemm_error", "sgemm_ms", "fp16_gemm_ms", "ratio", "work_bytes", "pinned_ms", "pageable_ms"}
LAYOUTS = {"Dxb": "coordinates", "nxD": "points", "columns": "coordinates", "rows": "points"}


class Job:
    def __init__(self, what, ms, bound, bound_is, limit=None, limit_ms=None, limit_peer=None, peers=()):
        self.what, self.ms, self.bound, self.bound_is = what, ms, bound, bound_is
        self.limit, self.limit_ms, self.limit_peer, self.peers = limit, limit_ms, limit_peer, list(peers)

    def limits(self):
        """(words, whether the time is within it) of each limit."""
        if self.limit is not None and self.bound:
            yield f"≤ {self.limit:.3g}× the bound", self.ms <= self.limit * self.bound
        if self.limit_ms is not None:
            yield f"≤ {self.limit_ms:g} ms", self.ms <= self.limit_ms
        if self.limit_peer is not None:
            name, times, peer_ms = self.limit_peer
            yield f"{times:g}× as fast as '{name}'", times * self.ms <= peer_ms


def figure(ms):
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def row(job, limits=True):
    told = list(job.limits())
    cells = [job.what, figure(job.ms), figure(job.bound) if job.bound else "", job.bound_is if job.bound else "",
             f"{job.ms / job.bound:.2f}" if job.bound else ""]
    if limits:
        cells += ["; ".join(words for words, _ in told), "; ".join("yes" if done else "no" for _, done in told)]
    return cells + ["; ".join(f"{name} {figure(ms)}" for name, ms in job.peers if ms and ms > 0)]


HEAD = ["job", "ms", "bound, ms", "set by", "× bound", "limit", "within", "peers, ms"]
# the kernels of the article's very sparse projection, by the names in the records
ARTICLE = {"v1": "thread a row", "v2": "warp a row, one lane draws", "v3": "warp a row, all lanes draw"}


def contiguous(layout):
    return f"{LAYOUTS.get(layout, layout).removesuffix(' contiguous')} contiguous"


def dense(content):
    """fast_jl (fp16 accuracy alone): taken apart, on an H200."""
    apart = {("rademacher", 8): 60.6, ("rademacher", 32): 90.9, ("gaussian fp16", 8): 226, ("gaussian fp16", 32): 280}
    for r in content["results"]:
        if r.get("what") != "time":
            continue
        limit = limit_ms = None
        large = (r["d"], r["k"]) == (10 ** 7, 16384)
        if large and r["b"] == 32 and r["layout"] == "Dxb":
            limit = 1.6 if r["kind"] == "rademacher" else None
            limit_ms = 110 if (r["kind"], r["input"]) == ("gaussian fp16", "f32") else None
        peer = apart.get((r["kind"], r["b"])) if large and "H200" in content["gpu"] else None
        yield Job(f"`{r['kind']}` of {r['b']} {r['input']} points, D = {power(r['d'])}, k = {r['k']:,}, {contiguous(r['layout'])}",
                  r["ms"], r["floor_ms"], "flops" if r["input"] == "f16" else "flops, fp32 as two fp16", limit, limit_ms,
                  peers=[("fast_jl, fp16 accuracy, taken apart:", peer), ("before, in the same run:", r.get("before_ms"))])


DENSE_LIMITS = """
### What dense operators with few points wait for

Counters of one NVIDIA H100 (signs) and one H200 (the others; `ncu`, D = 1,000,000, k = 16,384, 32 points), and a small
program that times one instruction. Clocks are those of a quarter of a multiprocessor, for one call of the generator in
each lane of a warp: 128 signs, 32 entries of `achlioptas`, 8 or 4 Gaussian ones.

A call costs 18 wide products of 4 clocks and 20 logical operations of 2 (both run at half or a quarter of the rate of
fused multiply-adds). The matrix unit with its left operand in registers needs at least 13 clocks for 64 rows × 16
columns however few points there are, 16 for 32 rows of points, 32 for 64; in the form for sparse operands 16, 19 and
33 for twice the columns. While it works it takes so much of the registers' bandwidth that few other instructions are
issued (stalls at dispatch): the clocks of a kernel are about the sum of both, whatever the order of the instructions.

| job | instructions issued | matrix unit | sum | measured | before |
|---|---|---|---|---|---|
| `rademacher`, 8 f32 points, signs two at a time | 220 | 144 | 364 | 351 | 444 |
| `rademacher`, 32 f32 points, signs two at a time | 277 | 263 | 540 | 603 | 907 |
| `rademacher`, 32 f16 points | 289 | 256 | 545 | 578 | 619 |
| `achlioptas`, 32 f32 points | 137 | 128 | 265 | 339 | 373 |
| `gaussian fp16`, 32 f32 points | 97 | 32 | 129 | 209 | 222 |
| `gaussian fp32`, 32 f32 points | 159 | 24 | 183 | 240 | 269 |

By the machine code of the loops, what a call issues to each unit, in clocks of that unit. The unit for multiply-adds of
integers takes 4 for a wide product and 2 for another one, the one for logic 2. A load takes 4, as the quarters share its
unit, times the banks met:

| job | integer products | logic | loads, with the matrix unit's | square roots | fp32 | the largest, ms |
|---|---|---|---|---|---|---|
| `achlioptas`, 32 f32 points | 120 | 73 | 96 | – | – | 20 |
| `gaussian fp16`, 32 f32 points | 82 | 76 | 129 | – | – | 87 |
| `gaussian fp32`, 32 f32 points | 72 | 100 | 12 | 16 | 76 | 214 (all 159 issues) |

- *Signs two at a time*: s x + t y is s (x + y) or s (x - y). The points are packed as sums and differences, and a row of
  the operator has one number for two columns; the matrix unit's form for sparse operands takes that at twice the rate.
  For f16 points a sum is not an fp16 number, and two halves of it take the time that was gained.
- With nothing made the product of 8 f32 points took 10.0 ms of 18.6, with nothing multiplied the rest 8.5: so they
  did not overlap. 26.0 of 32 f16 points were 16.8 and 11.4. Making the next fragments while the matrix unit works gained 0 to 8
  percent, for registers limit both.
- `gaussian fp16` looks up each entry in shared memory: 32 lanes meet a bank 3.5 times, 8 loads take 113 clocks a call, and
  the matrix unit reads points for 16. That is 87 ms, so 80 asks for something else than these look-ups. A
  formula of 10 to 14 instructions for each entry takes longer by count; for two of eight entries it would leave both below
  80, which was not tried. The memory is busy for 65 percent of the time, as it was for 62.
- `gaussian fp32` issues 159 instructions a call, which at one a clock are 214 ms; 180 are 134 of them. They are
  38 of the generator, 92 of logarithm, root, sine and cosine, 16 that cut entries in two.
- One entry in 2^15 is of the tail, whose ten loads wait for each other; when they were of global memory a warp of makers
  stood still for thousands of clocks, and four wait together. With them in shared memory `gaussian fp16` takes 3 percent less.
- Makers apart: five or six warpgroups that make entries and leave them in shared memory, one that multiplies (D =
  1,000,000). Twice as many warps hid latency, and what depends on the column alone was made once a warp; but entries are written
  once and read once more. `gaussian fp16` took 17.2 ms instead of 14.3 (15.2 without the tail, 14.2 with nothing multiplied,
  12.6 without look-ups or tail, 9.4 with neither). `achlioptas` took 8.0 instead of 5.9, `gaussian fp32` 30.9 to 31.3 instead
  of 32.7 (25.4 with nothing multiplied). Not kept.
- The clock that the driver tells was 1980 MHz, and cycles counted by time were 1.80 GHz, at 540 to 570 W. The same machine
  code of `gaussian fp16` took 144.3 ms in a process of its own and 149.0 after other kernels. So times of one program
  before and after a change differ by 3 percent where the kernels between have changed. That is most of what the `gaussian
  fp16` rows had lost when signs were taken two at a time; its inner loop had the same instructions, in another order.
"""


ADJOINT_LIMITS = """
`rademacher`, `achlioptas` and `gaussian` make each entry once for 256 points, in the register operand of the matrix unit.
The vectors' halves come from L2 meanwhile: 128 columns of S a block of threads, 4 MB a block at k = 4,096. To one point,
where nothing but entries costs time, k = 4,096 takes 0.39, 0.54, 2.2 and 1.3 ms (the last two `gaussian` in fp32 and fp16).
Of `gaussian` that and the products nearly add up, for while the matrix unit works few other instructions are issued (see
"What dense operators with few points wait for"). One warpgroup made entries while the other multiplied, by turns of a unit
of rows or of half a unit: to 256 points this took 1.70 to 1.83, 1.90 to 1.93, 4.45 to 4.51 and 2.86 to 2.95 ms. That is no
quicker, and was not kept. At k = 256 the write was slow at first (0.34 to 0.65 ms): each pair of numbers asked where it
goes; now a tile that is whole is written without asking.

`srht` reads Z from L2 for each block of 4,096 coordinates. Points contiguous, a block of threads has eight points of its
own, whose threads wait for each other alone. Coordinates contiguous, eight adjacent points fill a sector of memory, and
1,024 threads wait for all others about ten times a block of coordinates: of the samples of such a kernel 31 % waited for Z, 24 %
for room to store, 16 % for other warps. Four adjacent points, of which two blocks of threads fit, took 0.69 ms instead of
0.28: half a sector is written at a time.
"""


CASCADE_LIMITS = """
### What `kronecker` waits for

ζ = 4, D = 2^20, k = 64, 256 points: seven levels of 34.4, 17.2, 12.9, 6.4, 2.7, 1.0 and 0.05 GFLOP, 74.6 in all, which as
two halves take 0.21 ms at cuBLAS's rate; 1.07 GB are read (0.24 ms), and 268, 134, 50, 17, 5 and 2 MB lie between levels.
With the first two levels in one kernel the 268 MB stay in registers. Times of the levels under `ncu`, which holds the
clock at 1.35 GHz, in microseconds:

| levels | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
|---|---|---|---|---|---|---|---|
| one after the other | 619 | 213 | 195 | 62 | 43 | 51 | 43 |
| the first two as one | 463 | | 191 | 61 | 42 | 49 | 44 |

Two reads, 0.48 ms, are not reached. In the kernel of two levels a warp issues about 600 instructions for 16 points × 64
coordinates, 10 of them products: 240 make halves of fp32 numbers, the rest are addresses, sums and their scales. Its sums
take all 255 registers, so a quarter of a multiprocessor has two warps, of which each issues an instruction every four
clocks: of the samples 4 % wait for memory, 27 % for the instruction before, 25 % are issues. The later levels are bound
alike: a step of 64 coordinates takes about 2,400 clocks even where, as in the last level, two blocks of threads
have the GPU to themselves. Asking for points after the products are begun instead of before, fewer instructions to write
sums and to address what is read changed less than 1 %.
"""


LINES_LIMITS = """
Points contiguous, `very-sparse` turns points into lines of 32 and gathers from these: 0.65 ms for the lines, which is a read
and a write at the memory's rate, and 0.33 for the gathering. Lines that stay in L2 would save a write and a read. The
program of this table does all that has to pass through L2 then, at random places and with nothing waiting for anything
else: 0.74 ms at best, beside the 0.63 that were asked for. Gathering alone takes 0.25, a read and the lines alone 0.53: L2
does one at the expense of the other.
"""


SEARCH_LIMITS = """
### What searches wait for

Counters of NVIDIA H200s (`ncu`), 1,000 queries × 1,000,000 × 128, k = 1,000, microseconds a kernel, before at commit
49a40a3b:

| kernel | before | after |
|---|---|---|
| packing the base: 512 MB read, 256 MB written | 418 | 186 |
| the filter's products with all rows: 0.256 TFLOP | 600 | 607 |
| verifying 1.83 million of their pairs in fp64 | 409 | 329 |
| verifying 0.85 million pairs of a sample | 198 | 146 |
| pairs into the order of the queries, twice | 126 | 67 |
| medians that the filter's limits need, twice | 58 | 14 |
| sorting the answers | 136 | 93 |

Packing moves 4.1 TB/s and waits for memory. Verification takes 2.7 GB through L2 in 329 µs, 8.2 TB/s. Ids and distances
are 8 MB each and take 0.15 ms each on the link, the distances while the host takes the ids.

What was tried and is slower, in microseconds:

- Candidates in the order of queries before they are verified, so that a query's coordinates are read and made fp64
  once for sixteen pairs. The main pass takes 375 in place of 329, and counting and placing them 87 in
  place of 51. Rows of the base are then met at random: 670 MB come from memory in place of 353.
- Four blocks of the verification on a multiprocessor in place of three: 380 in place of 329; hits of L1 fall from 44 to
  40 percent, and 581 MB come from memory in place of 353.
- Answers from the GPU in quarters, a quarter on its way while the host takes the one before. Together with the order by
  queries k = 1,000 took 2.96 and 3.00 ms. Without either, and with slower packing, which alone took 200 more, it took 3.03
  and 3.12.

"""


GEMM_LIMITS = """
### What products wait for

By the counters of one NVIDIA H200 (`ncu`), the product of 8192³ with one factor split beforehand keeps the tensor cores busy for 93 percent of its 2.98 ms at the
1,570 MHz it had then, before 73 percent of 3.5; splitting takes 0.20 ms. Both, and cuBLAS's products, draw 690
of 700 W, and the clock goes down to 1,350 to 1,850 MHz within a second. With 2,048 columns splitting costs what it
gains, with 512 half as much again as the product. What was before is from the record of products, another run.

The product of 1,048,576 × 128 with an inner size of 1,024 takes 1.38 ms, 0.69 to 0.72 of one read's speed; C's 0.54 GB
are not in that read, so 0.89 is the most there can be. Memory is at 75 percent of its peak, the tensor cores are busy 48
percent of the time, 39 percent of the issue slots are taken: 64 of the inner size take about 2,200 cycles, as many as with an inner
size of 16,384. So what sets the pace is one warp's chain of reading, scaling, splitting, multiplying and adding, of
which a multiprocessor quarter has two.
"""


def very_sparse(content):
    seeds = {}
    for r in content["results"]:
        seeds.setdefault((r["d"], r["b"], r["density"]), {})[r["system"]] = r
    for r in content["results"]:
        if r["system"] != "gnomon":
            continue
        beside = seeds[r["d"], r["b"], r["density"]]
        v3, limit = beside.get("v3", {}).get("ms"), None
        thin, points = abs(r["density"] - 1e-4) < 1e-6, contiguous(r["layout"]).startswith("points")
        if r["b"] == 32 and thin:
            limit = 2.2 if points else 1.4 if r["d"] == 10 ** 8 else None
        yield Job(f"`very-sparse`, density {r['density']:.3g}, of {r['b']} points, D = {power(r['d'])}, k = {r['k']:,}, "
                  f"{contiguous(r['layout'])}", r["ms"], r["read_ms"], "one read", limit,
                  limit_peer=(ARTICLE["v3"], 4.5, v3) if v3 and r["b"] == 32 and r["d"] == 10 ** 7 and not points else None,
                  peers=[(f"{name}:", beside.get(v, {}).get("ms")) for v, name in ARTICLE.items()])


def many_points(content):
    for r in content["results"]:
        whole = r["blocks"] * r["cols"]
        block = r["blocks"] > 1
        name = f"`block` of {r['blocks']}, {r['kind']}," if block else f"`{r['kind']}`"
        yield Job(f"{name} of {r['n']:,} {r['dtype']} points, D = {power(whole)}, k = {r['rows'] * r['blocks']:,}, "
                  f"{contiguous(r['contiguous'])}", r["ms"], r["read_ms"], "one read",
                  1.5 if block and r["n"] == 256 and whole == 1 << 20 and r["dtype"] == "f32" else None,
                  peers=[("SGEMM, stored:", r.get("sgemm_ms")), ("FP16 GEMM, stored:", r.get("fp16_gemm_ms"))])


def first_of(r, *keys):
    return next((r[key] for key in keys if key in r), None)


def sjlt(content):
    """FlashSketch (block-local) and the sjlt package: taken apart, on an H200."""
    apart = {1: [("sjlt package, c = 2, taken apart:", 5.6)], 2: [("FlashSketch κ = 1, taken apart:", 0.79), ("sjlt package:", 5.6)],
             4: [("FlashSketch κ = 1, taken apart:", 1.29), ("κ = 4:", 5.1), ("sjlt package:", 11.0)]}
    for r in content["results"]:
        s, n, d = first_of(r, "s", "nonzeros"), first_of(r, "n", "b", "points"), first_of(r, "d", "D")
        bound, ms = first_of(r, "read_ms", "floor_ms"), first_of(r, "ms", "median_ms")
        if None in (s, n, d, ms, bound):
            continue
        known = r["k"] == 4096 and d == 1 << 23
        layout = first_of(r, "layout", "contiguous")
        yield Job(f"`sjlt`, s = {s}, of {n:,} points, D = {power(d)}, k = {r['k']:,}" +
                  (f", {contiguous(layout)}" if layout else ""), ms, bound, "one read",
                  {1: 1.5, 2: 1.5, 4: 2.7}.get(s) if known and n in (32, 256) else None,
                  peers=apart.get(s, []) if known and n == 32 and "H200" in content["gpu"] else [])


def srht(content):
    for r in content["results"]:
        yield Job(f"`srht` of {r['n']:,} points, D = {power(r['d'])}, k = {r['k']:,}, {contiguous(r['layout'])}", r["ms"],
                  r["read_ms"], "one read", 2.0 if r["d"] <= 32768 else 3.5)


def adjoint(content):
    """Of dense operators the flops of fp32 as two fp16 may take longer than X's write; of gaussian entries in fp32 both are two."""
    rate = fp16_rate(content["model"])
    for r in content["results"]:
        parts = {"rademacher": 2, "achlioptas": 2, "gaussian": 3, "gaussian fp16": 2}.get(r["kind"], 0)
        flops = 2 * parts * r["n"] * r["d"] * r["k"] / rate if rate else 0
        yield Job(f"adjoint of `{r['kind']}` to {r['n']:,} point{'s' if r['n'] > 1 else ''}, D = {power(r['d'])}, k = {r['k']:,}, {contiguous(r['layout'])}",
                  r["ms"], *((flops, "flops, fp32 as two fp16") if flops > r["read_ms"] else (r["read_ms"], "one write of X")))


def cascade_kernels(content):
    """The bound as in 'cascades', whose program has measured the rate."""
    rate = fp16_rate(content["model"])
    for r in content["results"]:
        flops = 2 * r["flops"] / rate if rate else 0
        yield Job(f"`kronecker`, ζ = {r['zeta']}, {r['inner']}, of {r['n']} f32 points, D = {power(r['d'])}, k = {r['k']:,}, {contiguous(r['layout'])}",
                  r["ms"], *longer(r["read_ms"], flops))


def lines(content):
    for r in content["results"]:
        yield Job(f"32 points of 10^7 columns {r['what']}, lines in {r['ring_mb']:,} MB", r["ms"], r["read_ms"], "one read")


def transfer(content):
    for r in content["results"]:
        if "pinned_ms" in r:
            yield Job(f"{r['what']}, host to host: n = {r['n']:,}, D = {power(r['d'])}, k = {r['k']:,}", r["pinned_ms"],
                      r["pinned_of_link"] * r["pinned_ms"], "a plain copy, pinned", 1 / 0.9,
                      peers=[("from pageable memory:", r.get("pageable_ms"))])


def fp16_rate(model):
    """Flops a millisecond of the best fp16 products that 'model' found."""
    return max((2e3 * r["side"] ** 3 / r["among_us"] for r in model if r["table"] == "tau" and r["system"] == "fp16"), default=0)


def longer(read, flops):
    """Bound and its name."""
    return max(read, flops), "one read" if read > flops else "flops, fp32 as two fp16"


def cascades(content):
    """Where its flops take longer than one read, at the best rate of fp16 products that was found, they are the bound."""
    read = next((r["ms"] for r in content["results"] if r["table"] == "read"), None)
    rate = fp16_rate(content["results"])
    times = {(r["k"], r["zeta"], r["system"]): r for r in content["results"] if r["table"] == "cascade" and r["d"] == 1 << 20}
    for (k, zeta, system), r in times.items():
        if system != "gnomon" or not read or not rate:
            continue
        flops = 2 * sum(2 * math.prod(p) for p in levels(k, r["d"], zeta, r["points"])) / rate
        yield Job(f"`kronecker`, ζ = {zeta}, of {r['points']} f32 points, D = 2^20, k = {k:,}, points contiguous", r["ms"],
                  *longer(read, flops), 1.5 if read > flops else None,
                  peers=[(f"by {name}:", times.get((k, zeta, key), {}).get("ms"))
                         for key, name in (("sgemm", "SGEMMs"), ("fp16", "fp16 GEMMs"))])


def products(content):
    """Forms of gnomon_gemm's products beside cuBLAS; two or three products of halves, two of TF32 numbers, or one read of the
    long matrix. Their errors: gemm.py."""
    by = {}
    for r in content["results"]:
        if r["what"] == "speed":
            by.setdefault((r["m"], r["n"], r["k"]), {})[r["way"]] = r
    for (m, n, k), ways in by.items():
        time = {way: r["ms"] for way, r in ways.items()}
        half, sgemm = time.get("cuBLAS FP16"), time.get("SGEMM")
        for way in ("scaled", "fp16", "three", "tf32"):
            r = ways.get(way)
            if not r or not half or not sgemm:
                continue
            tf32 = way == "tf32" and time.get("cuBLAS TF32")
            flops, main = 2 * tf32 if tf32 else (3 if way == "three" else 2) * half, way == "scaled"
            thin = main and n <= 128 and m == k
            wide = (main or tf32) and (m, n, k) in ((8192, 8192, 8192), (16384, 512, 16384), (32768, 512, 32768))
            rate, times = (150, 2.5) if tf32 else (250, 4.8)
            read = r["read_ms"] > flops
            types = "fp32 × fp32" if way == "three" else f"fp32 × fp16, {way}"
            yield Job(f"{types}, {m:,} × {n:,}, inner size {k:,}: {r['tflops']:.0f} TFLOP/s", r["ms"],
                      r["read_ms"] if read or thin else flops, "one read of A" if read or thin else f"flops at cuBLAS's {'TF32' if tf32 else 'FP16'}",
                      1.25 if thin else None, float(f"{2e-9 * m * n * k / rate:.3g}") if wide else None, ("SGEMM", times, sgemm) if wide else None,
                      peers=[("SGEMM", sgemm), ("cuBLAS TF32", time.get("cuBLAS TF32")), ("FP16", half)] if main else [])


def joins(content):
    """Exact self-joins, 64 neighbours a point. FaSTED (symmetry unused, not certified), taken apart, on an H200: TFLOP/s by kernel
    time, counting 2 n^2 d, and ms from end to end; half of those 2 n^2 d at cuBLAS's best rate are the bound."""
    apart = {64: (73, 68), 128: (113, 58), 256: (166, 71), 512: (209, 104), 1024: (253, 161), 2048: (269, 279), 4096: (267, 515)}
    best = max(r.get("cublas_tflops", 0) for r in content["results"])
    for r in content["results"]:
        n, d = r["n"], r["d"]
        flops = 2e-9 * n * n * d
        rate, whole = apart.get(d, (None, None)) if n == 100000 and "H200" in content["gpu"] else (None, None)
        name = f"join of {n:,} points with themselves, D = {d}, l2, {r['pairs']:,} pairs"
        if r["what"] == "kernel":
            bound = flops / 2 / best if best else None
            yield Job(f"{name}, on the GPU: {flops / r['ms']:.0f} TFLOP/s of 2 n² D; the filter alone {r['sieve_tflops']:.0f}", r["ms"], bound,
                      "n² D flops at cuBLAS's best FP16", limit_ms=float(f"{flops / rate / 2:.3g}") if rate else None,
                      peers=[("FaSTED, taken apart:", flops / rate if rate else None)])
        else:
            yield Job(f"{name}, from host to host", r["ms"], None, "", limit_ms=whole / 2 if whole else None,
                      peers=[("FaSTED, taken apart:", whole), ("from page-locked memory:", r["pinned_ms"]), ("counted only:", r["count_ms"])])


def hashed_joins(content):
    """Joins with a guaranteed recall by hashing; the exact join of the same run is to take five times as long on easy clusters."""
    for r in content["results"]:
        points = f"join of {r['n']:,} points with themselves, D = {r['d']}, l2, {r['kind']} clusters, recall {r['recall']:g}"
        ways = [("on the GPU", "ms", r["exact_ms"]), ("page-locked", "pinned_ms", r["exact_pinned_ms"]),
                ("on the GPU, counted only", "count_ms", r["exact_count_ms"])]
        for prefix, reached, how in (("by_cost_", "by_cost_reached", ""), ("", "reached", ", the CPU's tables")):
            for where, key, exact in ways:
                if prefix + key not in r:
                    continue
                aimed = r["kind"] == "easy" and prefix != ""
                yield Job(f"{points} (recall {r[reached]:.4f}){how}, {where}", r[prefix + key],
                          r["read_ms"] if where != "page-locked" else None, "one read of the points",
                          limit_ms=float(f"{exact / 5:.3g}") if aimed else None, peers=[("our exact join:", exact)])
        if r.get("pieces_ms"):
            yield Job(f"{points} (recall {r['reached']:.4f}), page-locked, in pieces of {r['pieces_mib']} MiB of the GPU's memory in all", r["pieces_ms"],
                      None, "", peers=[("our exact join at once:", r["exact_pinned_ms"])])


def set_joins(content):
    """Exact self-joins of sets from host to host, beside the CPU's of the same run."""
    for r in content["results"]:
        name = (f"join of {r['sets']:,} sets of {r['members'] / r['sets']:.0f} members with themselves, jaccard {r['threshold']:g}, "
                f"{r['pairs']:,} pairs")
        yield Job(f"{name}, from host to host", r["ms"], r["link_ms"], "the rows over the link",
                  peers=[("from page-locked memory:", r["pinned_ms"]), ("counted only:", r["count_ms"]),
                         (f"our CPU join, {r['cpu_threads']} threads:", r["cpu_ms"])])


def searches(content):
    """Whole calls of gnomon_neighbors_exact; peers: what PyTorch's half precision takes, whose answers are not exact."""
    torch = {(r["queries"], r["cols"], r["k"]): r["ms"] for r in content.get("peers", [])}
    for r in content["results"]:
        plain = r["metric"] == "l2" and r["data"] == "normal"
        plain = plain and r["from"] == "device"
        beside = torch.get((r["queries"], r["cols"], r["k"])) if plain else None
        main = plain and (r["queries"], r["cols"], r["k"]) == (10000, 128, 10)
        bound = max(r["read_ms"], r["flops_ms"]) if r["from"] == "device" else None  # else it is the link's
        data = "" if r["data"] == "normal" else ", clusters" if r["data"] == "clustered" else ", all points equal"
        where = "" if r["from"] == "device" else f", base in {r['from']} host memory"
        yield Job(f"{r['queries']:,} {'query' if r['queries'] == 1 else 'queries'} × {r['base']:,} × {r['cols']}, k = {r['k']:,}, {r['metric']}{data}{where}", r["ms"],
                  bound, "one read of the base" if r["read_ms"] > r["flops_ms"] else "flops",
                  limit_peer=("PyTorch", 5, beside) if main and beside else None,
                  peers=[("PyTorch, fp16, matmul and topk:", beside), ("the FP16 product alone:", r["fp16_gemm_ms"] if plain else None)])


def set_searches(content):
    """Nearest sets from host to host, beside the CPU's of the same run."""
    for r in content["results"]:
        few = "1 query" if r["queries"] == 1 else f"{r['queries']:,} queries"
        kept = f"k = {r['k']:,}" if r["k"] else f"jaccard ≤ {r['radius']:g}"
        yield Job(f"{few} × {r['base']:,} sets of {r['members'] / r['base']:.0f} members, {kept}, from host to host", r["ms"], r["link_ms"],
                  "the rows over the link",
                  peers=[(f"our CPU search, {r['cpu_threads']} threads, {r['cpu_queries']:,} of the queries:", r["cpu_ms"])])


def sparse_rows(content):
    """Whole calls from Python, rows and sketch in the GPU's memory."""
    for r in content["results"]:
        kind = r["kind"] + (f", s = {r['nonzeros']}" if "nonzeros" in r else "") + (f" {r['precision']}" if "precision" in r else "")
        name = "TF-IDF" if r["rows"] == "tfidf" else "Zipf's law"
        yield Job(f"`{kind}`, {name}, {r['n']:,} × {r['d']:,}, {r['stored']:,} nonzeros, k = {r['k']:,}", r["there_ms"], r["floor_ms"],
                  "one read, one write",
                  peers=[("cuSPARSE, dense operator made before:", r.get("spmm_ms")),
                         ("cuSPARSE, sparse operator made before, sparse result:", r.get("spgemm_ms")),
                         ("ours from host to host:", r.get("moved_ms")), (f"our CPU, {content['cores']} cores:", r.get("cpu_ms"))])


def sparse_factors(content):
    """From sparse rows on the host to factors there, beside a subspace iteration by cuSPARSE and cuSOLVER on the GPU."""
    peers = {r["center"]: r.get("ms") for r in content["results"] if r["who"] != "gnomon"}
    for r in content["results"]:
        if r["who"] == "gnomon":
            yield Job(f"{content['rows']:,} × {content['cols']:,}, {content['nonzeros']:,} nonzeros, rank {content['rank']}, "
                      f"{content['iterations']} iterations{', centred' if r['center'] else ''}, within {r['limit_bytes'] / 2 ** 30:.0f} GiB of the GPU's memory" +
                      (f" ({r['peak_bytes'] / 2 ** 30:.1f} in use)" if "peak_bytes" in r else ""), r["ms"], None, "", peers=[("cuSPARSE and cuSOLVER, rows and their transpose there before:", peers.get(r["center"]))])


def anything(content):
    """A program that is not known here: what it says, and the bound if it names one."""
    for r in content["results"]:
        ms = first_of(r, "ms", "median_ms", "mean_ms")
        if ms is None:
            continue
        what = ", ".join(f"{key} {value}" for key, value in r.items() if key not in MEASURES)
        yield Job(what, ms, first_of(r, "read_ms", "floor_ms"), "one read" if "read_ms" in r else "bound")


def before_and_after(content):
    """Kernels that were made quicker, some jobs slower by it: the plugin's time before in the same run, and a peer's if there is one."""
    for r in content["results"]:
        before = "before:" if r["ms"] <= r["before_ms"] else "quicker before:"
        peers = [(before, r["before_ms"])] + ([(f"{r['peer']}:", r["peer_ms"])] if "peer" in r else [])
        yield Job(r["what"], r["ms"], r["floor_ms"], r["floor"], peers=peers)


PROGRAMS = {"dense": ("Dense operators, few points", dense), "very_sparse": ("Very sparse operators", very_sparse),
            "points": ("Dense operators and `block`, many points", many_points), "sjlt": ("`sjlt`", sjlt),
            "srht": ("`srht`", srht), "model": ("`kronecker`", cascades), "kronecker": ("`kronecker`, its kernels alone", cascade_kernels),
            "lines": ("Lines of points in L2", lines),
            "gemm": ("Products of matrices", products), "join": ("Similarity join", joins), "join_hashes": ("Similarity join by hashing", hashed_joins),
            "join_sets": ("Similarity join of sets", set_joins), "adjoint": ("Adjoints", adjoint), "transfer": ("From host memory to host memory", transfer),
            "csr": ("Sparse points", sparse_rows), "svd_sparse": ("Factorisation of sparse rows", sparse_factors),
            "kernels": ("What became quicker", before_and_after),
            "search": ("Exact nearest neighbours", searches), "search_sets": ("Exact nearest sets", set_searches)}
ELSEWHERE = {"thesis", "svd", "svd_torch", "svd_ways", "search_torch", "lsh", "report", "hosvd", "dedup", "projectors"}  # pages of their own
# what is said of a program's jobs on one GPU, after their table
AFTER = {("NVIDIA H100 80GB HBM3", "dense"): DENSE_LIMITS, ("NVIDIA H200", "adjoint"): ADJOINT_LIMITS,
         ("NVIDIA H200", "kronecker"): CASCADE_LIMITS, ("NVIDIA H200", "lines"): LINES_LIMITS,
         ("NVIDIA H200", "kernels"): SEARCH_LIMITS.rstrip() + "\n" + GEMM_LIMITS}


def one_gpu(gpu, programs):
    text, told = "", []
    order = [p for p in PROGRAMS if p in programs] + [p for p in sorted(programs) if p not in PROGRAMS and p not in ELSEWHERE]
    for program in order:
        title, jobs_of = PROGRAMS.get(program, (f"`{program}`", anything))
        peers = programs.get(program + "_torch", {}).get("results", [])
        model = programs.get("model", {}).get("results", [])
        jobs = list(jobs_of(dict(programs[program], peers=peers, model=model)))
        if not jobs:
            continue
        told += [done for job in jobs for _, done in job.limits()]
        plain = not any(list(job.limits()) for job in jobs)
        note = programs[program].get("note")
        text += f"\n### {title}\n\n" + (f"The record was {note}.\n\n" if note else "") + table([h for h in HEAD if not (plain and h in ("limit", "within"))],
                                            [row(job, not plain) for job in jobs]) + AFTER.get((gpu, program), "")
    if not text:
        return ""
    rates = [r for p in programs.values() for r in p["results"] if r.get("what") in ("rate", "plain copy")]
    facts = []
    for r in rates:
        if "fp16" in r:
            facts.append(f"cuBLAS, 8192³: FP16 {1e-12 * r['fp16']:.0f} TFLOP/s, SGEMM {1e-12 * r['sgemm']:.1f}")
        if "pinned_GBps" in r:
            facts.append(f"a plain copy to the GPU: {r['pinned_GBps']:.1f} GB/s pinned, {r['pageable_GBps']:.1f} pageable")
    one = next((p for p in programs.values() if "cuda_driver" in p), None) or next(p for p in programs.values() if "multiprocessors" in p)
    made_with = f", CUDA runtime {one['cuda_runtime']}, driver {one['cuda_driver']}" if "cuda_driver" in one else f", PyTorch {one['torch']}"
    commits = sorted({p["commit"][:12] for p in programs.values() if p.get("commit")})
    head = (f"\n## {gpu}\n\n{one['multiprocessors']} multiprocessors{made_with}"
            f"{', commit ' + ', '.join(commits) if commits else ''}. " + ". ".join(facts) + ("." if facts else "") + "\n")
    if told:
        head += f"\n{sum(told)} of {len(told)} times are within their limits.\n"
    return head + text


def make():
    """The page."""
    jobs = ""
    for gpu, programs in sorted(gpu_records().items()):
        jobs += one_gpu(gpu, programs)
    if jobs:
        pages["gpu.md"] = ("# On GPUs\n\nWhat `scripts/gpu.sh` measured: medians of runs timed by events, points bigger than the caches. "
                           "A lower bound of the time comes from the same run: one read of the points at the bandwidth measured, the flops at cuBLAS's "
                           "FP16 rate (single precision counted as two fp16 products), or a plain copy over the link. The limit is the longest "
                           "time that a job may take. 'Thread a row', 'warp a row, one lane draws' and 'warp a row, all lanes draw' are the very "
                           "sparse kernels of 'Fast Random Projections in CUDA', ported. Peers taken apart ran on the same kind of GPU, not in the same "
                           "run.\n" + jobs)


# ---- the thesis' times ----

def thesis_times(v100):
    """Its four algorithms and ours, N and M sweeps, with and without transfers."""
    text = "\n## Times\n"
    found = [(gpu, p["thesis"]) for gpu, p in sorted(gpu_records().items()) if "thesis" in p]
    if found:
        text += ("\nMilliseconds of one call, a whole batch where there is one: the mean, and the variance (ms²) in brackets, of 100 "
                 "runs; [n]: of n, where 100 would have taken long. "
                 "`matrix-vector`, `batch`, `block` and `batch-block` are the thesis' algorithms with the matrix stored, by cuBLAS as in the "
                 "thesis; -fp16: the operands stored in fp16; ours store no matrix.\n")
    for gpu, content in found:
        results = content["results"]
        for sweep, fixed, over in (("N", "M", "N"), ("M", "N", "M")):
            value = min(r["M"] for r in results) if fixed == "M" else max(r["N"] for r in results)
            for transfers in (False, True):
                chosen = [r for r in results if r[fixed] == value and r["transfers"] == transfers]
                steps = sorted({r[over] for r in chosen})
                if len(steps) < 2:
                    continue
                rows = {}
                for r in chosen:
                    rows.setdefault((r["algorithm"], r["r"], r["batch"]), {})[r[over]] = r
                rows = {key: by for key, by in rows.items() if len(by) > 1}
                text += (f"\n### {gpu}, {fixed} = {power(value)}, {'with' if transfers else 'without'} transfers\n\n" + table(
                    ["algorithm", "r", "batch"] + [f"{over} = {power(x)}" for x in steps],
                    [[name, r, batch] + [timing(by[x]) if x in by else "" for x in steps]
                     for (name, r, batch), by in rows.items()]))
        text += "\n" + batch_plot(gpu, results)
    return text + "\n### In the thesis, on a V100\n\nMilliseconds a vector, with transfers (M = 1024; r = 32; batch 256).\n\n" + table(
        ["N", "SGEMV", "batch", "block JL", "batch block JL"], [[power(n)] + list(row) for n, row in v100.items()])


def timing(r):
    few = f" [{r['runs']}]" if r["runs"] < 100 else ""
    return f"{r['mean_ms']:.3g} ({r['variance_ms2']:.1g}){few}"


def batch_plot(gpu, results):
    m = min(r["M"] for r in results)
    curves = []
    for name, r in dict.fromkeys((x["algorithm"], x["r"]) for x in results if x["r"] in (1, 32)):
        for batch in sorted({x["batch"] for x in results if (x["algorithm"], x["r"]) == (name, r)})[-1:]:
            data = sorted((x["N"], x["mean_ms"] / batch) for x in results
                          if (x["algorithm"], x["r"], x["batch"], x["M"], x["transfers"]) == (name, r, batch, m, False))
            curves.append((name + (f", r = {r}" if r > 1 else ""), "with linespoints", data))
    n = max(r["N"] for r in results)
    rows = [(name + f", r = {r}, with{'' if transfers else 'out'} transfers", "with linespoints",
             sorted((x["M"], x["mean_ms"]) for x in results
                    if (x["algorithm"], x["r"], x["N"], x["transfers"], x["batch"] > 1) == (name, r, n, transfers, True)))
            for name in ("batch-block", "ours-block") for r in (32, 128) for transfers in (False, True)]
    text = plot(f"thesis-times-{slug(gpu)}", f"Milliseconds a vector, M = {m}, without transfers ({gpu})", "N", "ms a vector", curves)
    if any(len(data) > 1 for *_, data in rows):
        text += plot(f"thesis-rows-{slug(gpu)}", f"Milliseconds of a batch, N = 2^{{{n.bit_length() - 1}}} ({gpu})", "M", "ms", rows)
    return text
