"""docs/results/gemm.md: products of fp32 with fp16 matrices, their errors as Figure 5 of Ootomo & Yokota (2023) and their
speed, from the records of bench_gemm on the CPU and of bench/gpu/gemm.cu on GPUs."""
from pages import gpu_records, load, pages, plot, power, slug, table

WAYS = {"scaled": "scaled", "fp16": "fp16", "tf32": "tf32", "three": "fp32 × fp32", "SGEMM": "cuBLAS SGEMM",
        "cuBLAS TF32": "cuBLAS TF32", "cuBLAS FP16": "cuBLAS FP16"}


def curves(rows, ways):
    return [(words, "with linespoints", [(r["k"], r[key]) for r in rows if r.get(key)]) for key, words in ways]


def figure(name, title, rows, ways):
    return plot(name, title, "inner size k", "relative error", curves(rows, ways),
                more="set logscale xy\nset format y '%.0e'\nset format x '2^{%L}'\nset logscale x 2", key="top left")


def cpu(record):
    names = list(dict.fromkeys(r["data"] for r in record["accuracy"]))
    sizes = sorted({r["k"] for r in record["accuracy"]})
    cells = {(r["data"], r["k"]): r for r in record["accuracy"]}
    text = (f"## CPU\n\nOne machine with {record['threads']} threads, {record['isa']}, load average {record['load']:.1f}, OpenBLAS "
            f"{record['openblas'].split()[1]}; A of {record['rows']} rows, B of {record['cols']} columns, normal and rounded to fp16, "
            f"means of {record['seeds']} runs.\n\n### Error\n\n‖C − exact‖_F / ‖exact‖_F × 10⁷, as 'gnomon / SGEMM with B in fp32':\n\n")
    text += table(["A", *map(power, sizes)],
                  [[name] + [f"{1e7 * cells[name, k]['error']:.2f} / {1e7 * cells[name, k]['sgemm_error']:.2f}" for k in sizes]
                   for name in names])
    text += "\nThe largest |C − exact| / (|A||B|) of an entry, in units of u = 2⁻²⁴, where the header guarantees 64:\n\n"
    text += table(["A", *map(power, sizes)],
                  [[name] + [f"{cells[name, k]['entry_u']:.2g} / {cells[name, k]['sgemm_entry_u']:.2g}" for k in sizes] for name in names])
    ratios = [r["error"] / r["sgemm_error"] for r in record["accuracy"]]
    last = [r["sgemm_error"] / r["error"] for r in record["accuracy"] if r["k"] == sizes[-1]]
    text += (f"\nOf {len(ratios)} cells the error is above SGEMM's in {sum(r > 1 for r in ratios)} (the worst: {max(ratios):.2f} times); "
             f"at k = {power(sizes[-1])} SGEMM's is {min(last):.0f} to {max(last):.0f} times ours.\n\n")
    for at, name in enumerate(names):
        if name in ("uniform(0, 1)", "normal", "uniform(0, 1), B not negative"):
            text += figure(f"gemm-cpu-{at + 1}", f"A {name}, on the CPU", [r for r in record["accuracy"] if r["data"] == name],
                           [("error", "gnomon"), ("sgemm_error", "OpenBLAS SGEMM")])
    text += (f"\n### Speed\n\nGFLOP/s by the median of {record['rounds']} interleaved runs, and how many times as long as SGEMM "
             "takes, by medians and by the least times; with one thread by its processor time, which other work on the machine "
             "disturbs less. SGEMM has B in fp32; its conversion is not in the time.\n\n")
    rows = []
    for s in record["speed"]:
        flops = 2e-6 * s["m"] * s["n"] * s["k"]
        rows.append([s["threads"], f"{s['m']} × {s['n']} × {s['k']}"] +
                    [f"{flops / s[way + '_ms']:.0f}" for way in ("mixed", "single", "sgemm")] +
                    [f"{s[way + '_ms'] / s['sgemm_ms']:.2f}, {s[way + '_least_ms'] / s['sgemm_least_ms']:.2f}"
                     for way in ("mixed", "single")])
    return text + table(["threads", "m × n × k", "fp32 × fp16", "fp32 × fp32", "SGEMM", "fp32 × fp16 / SGEMM", "fp32 × fp32 / SGEMM"], rows)


def units(record):
    """The form BF16 on a CPU with AMX."""
    sizes = sorted({r["k"] for r in record["accuracy"]})
    names = list(dict.fromkeys(r["data"] for r in record["accuracy"]))
    cells = {(r["data"], r["k"]): r for r in record["accuracy"]}
    both = (("bf16_error", "sgemm_error"), ("single_bf16_error", "single_sgemm_error"))
    ratios = [r[ours] / r[theirs] for r in record["accuracy"] for ours, theirs in both]
    entry = max(max(r["bf16_entry_u"], r["single_bf16_entry_u"]) for r in record["accuracy"])
    text = (f"\n## CPU with AMX, the form BF16\n\n{record['cpu']}; commit {record['commit']}; {record['settings']}. "
            f"OpenBLAS {record['openblas'].split()[1]}.\n\n### Error\n\n‖C − exact‖_F / ‖exact‖_F beside SGEMM's, of fp32 × fp16 / "
            "fp32 × fp32 (B normal, not rounded):\n\n")
    text += table(["A", *map(power, sizes)],
                  [[name] + [" / ".join(f"{cells[name, k][ours] / cells[name, k][theirs]:.2f}" for ours, theirs in both) for k in sizes]
                   for name in names])
    text += (f"\nOf {len(ratios)} cases the error is above SGEMM's in {sum(r > 1 for r in ratios)}, at most {max(ratios):.2f} times as "
             f"large. The largest |C − exact| / (|A||B|) of an entry is {entry:.1f} u, where the header guarantees 68.\n\n### Speed\n\n"
             f"GFLOP/s by the median of {record['rounds']} interleaved runs, `AUTO` / `BF16` and SGEMM, and how many times as fast as "
             "SGEMM `BF16` is, by medians and by the least times; with one thread by its processor time.\n\n")
    rows = []
    for s in record["speed"]:
        flops = 2e-6 * s["m"] * s["n"] * s["k"]
        rows.append([s["threads"], f"{s['m']} × {s['n']} × {s['k']}"] +
                    [f"{flops / s[way + '_ms']:.0f} / {flops / s[way + '_bf16_ms']:.0f}" for way in ("mixed", "single")] +
                    [f"{flops / s['sgemm_ms']:.0f}"] +
                    [f"{s['sgemm_ms'] / s[way + '_bf16_ms']:.2f}, {s['sgemm_least_ms'] / s[way + '_bf16_least_ms']:.2f}"
                     for way in ("mixed", "single")])
    text += table(["threads", "m × n × k", "fp32 × fp16", "fp32 × fp32", "SGEMM", "fp32 × fp16 beside SGEMM", "fp32 × fp32 beside SGEMM"], rows)
    roofs = load("roofline-amx.json")
    if roofs:
        ceiling = max(2e-9 * c["rate"] for c in roofs["ceilings"] if c["what"] == "bf16 amx" and c["threads"] == 1)
        sgemm = max(2e-6 * s["m"] * s["n"] * s["k"] / s["sgemm_ms"] for s in record["speed"] if s["threads"] == 1)
        text += (f"\nThe matrix unit of a core reached {ceiling:,.0f} GFLOP/s there with products alone ([roofline.md](roofline.md)), so "
                 f"five products have a ceiling of {ceiling / 5:.0f} GFLOP/s and six of {ceiling / 6:.0f}, {ceiling / 5 / sgemm:.1f} and "
                 f"{ceiling / 6 / sgemm:.1f} times SGEMM's best, packing not counted. Two threads had times that varied by a factor of two "
                 "from call to call.\n")
    return text


def gpu(name, results):
    text = f"\n## {name}\n"
    errors = [r for r in results if r["what"] == "error"]
    laws = list(dict.fromkeys(r["law"] for r in errors))
    for law in laws:
        mine = [r for r in errors if r["law"] == law]
        first = (mine[0]["m"], mine[0]["n"])
        mine = [r for r in mine if (r["m"], r["n"]) == first]
        ways = [w for w in WAYS if any(r["way"] == w for r in mine)]
        by_size = [dict({"k": k}, **{r["way"]: r["error"] for r in mine if r["k"] == k}) for k in sorted({r["k"] for r in mine})]
        text += f"\n### Error, A {law}: {first[0]} × k times k × {first[1]}\n\n" + table(
            ["k", *(WAYS[w] for w in ways)],
            [[power(row["k"]), *(f"{row[w]:.1e}" if row.get(w) else "" for w in ways)] for row in by_size]) + "\n"
        if law in ("uniform", "normal", "positive"):
            text += figure(f"gemm-{slug(name)}-{slug(law)}", f"A {law}, on {name}", by_size, [(w, WAYS[w]) for w in ways])
    rows = []
    for r in results:
        if r["what"] != "speed":
            continue
        sgemm = [x["ms"] for x in results if x["what"] == "speed" and x["way"] == "SGEMM" and
                 (x["m"], x["n"], x["k"]) == (r["m"], r["n"], r["k"])]
        rows.append([f"{r['m']} × {r['n']} × {r['k']}", WAYS.get(r["way"], r["way"]), f"{r['ms']:.3g}", f"{r['tflops']:.0f}",
                     f"{sgemm[0] / r['ms']:.2f}" if sgemm else "", f"{r['read_ms'] / r['ms']:.2f}", f"{r['error']:.1e}"])
    return text + "\n### Speed\n\n" + table(
        ["m × n × k", "form", "ms", "TFLOP/s", "times SGEMM's speed", "one read of A / time", "error"], rows)


def make():
    record = load("gemm-cpu.json")
    if record is None:
        return
    text = """# Products of fp32 with fp16 matrices

`gnomon_gemm` ([gemm.md](../reference/gemm.md)) beside SGEMM: Figures 5 and 6 of Ootomo and Yokota (2023) again, for more laws of A
and longer sums. Exact is a sum in fp64. `uniform(0, 1)` and `normal` are theirs; (u − ½) exp(φ N), u uniform and N
normal, is what the exponent range is tried by. Where B is not negative (or A "positive") all terms of a sum have one sign.
The last is their Cauchy matrix without the bars around the difference,
whose entries then leave fp16's range (with them, and γ = 0.001 as printed, no entry is above 1000).

"""
    text += cpu(record)
    amx = load("gemm-cpu-amx.json")
    if amx:
        text += units(amx)
    for name, programs in sorted(gpu_records().items()):
        if "gemm" in programs:
            text += gpu(name, programs["gemm"]["results"])
    pages["gemm.md"] = text
