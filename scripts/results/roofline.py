"""docs/results/roofline.md: what jobs reach of what the machine itself does, from bench/cpu/roofline.py."""
from pages import load, pages, plot, table

RECORDS = (("roofline-amx.json", "amx", "AMX"), ("roofline-avx512.json", "avx512", "AVX-512 and VNNI, without AMX"))
PRODUCTS = {"avx2": "fma fp32 avx2", "avx512": "fma fp32 avx512", "avx512_vnni": "int8 vnni", "amx": "int8 amx"}
MEMORY = "read 256 MiB in all"


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def ceiling(record, what, threads):
    rates = [c["rate"] for c in record["ceilings"] if c["what"] == what and c["threads"] == threads]
    return max(rates) if rates else None


def products_ceiling(record, case):
    """Multiply-adds a second: of 8-bit products what the level has for them, of fp32 ones SGEMM's or those of registers."""
    if case["bound"] == "int8":
        return ceiling(record, PRODUCTS[case["level"]], case["threads"])
    return max(filter(None, (ceiling(record, what, case["threads"]) for what in
                             ("SGEMM", "fma fp32 avx2", "fma fp32 avx512"))))


def share(record, case):
    """Of the roof: the least time by products and by memory, beside the measured one."""
    by_products = case["products"] / products_ceiling(record, case)
    by_memory = case["bytes"] / ceiling(record, MEMORY, case["threads"])
    return max(by_products, by_memory) / case["seconds"]


def ceilings(record, threads):
    names = list(dict.fromkeys(c["what"] for c in record["ceilings"]))
    rows = []
    for name in names:
        unit = "GB/s" if name.startswith("read") else "10⁹ multiply-adds/s"
        rates = [ceiling(record, name, t) for t in threads]
        rows.append([name, unit] + [number(r / 1e9) if r else "–" for r in rates])
    return table(["ceiling", "unit", *[f"{t} thread" + "s" * (t > 1) for t in threads]], rows)


def of_jobs(record, threads):
    cells = {(c["job"], c["level"], c["threads"]): c for c in record["cases"]}
    levels = [x for x in PRODUCTS if any(c["level"] == x for c in record["cases"])]
    rows = []
    for job in dict.fromkeys(c["job"] for c in record["cases"]):
        for level in levels:
            found = [cells.get((job, level, t)) for t in threads]
            if not any(found):
                continue
            c = next(filter(None, found))
            rows.append([job, f"`{level}`", number(c["products"] / 1e9), number(c["bytes"] / 1e6)] +
                        [f"{number(1e3 * c['seconds'])} ({share(record, c):.0%})" if c else "–" for c in found])
    return table(["job", "level", "10⁹ multiply-adds", "MB", *[f"{t} thread" + "s" * (t > 1) for t in threads]], rows)


def curves(record, threads):
    """Roofs of levels, and the jobs of the best level, at so many threads."""
    memory = ceiling(record, MEMORY, threads)
    found = []
    for level, what in PRODUCTS.items():
        most = ceiling(record, what, threads)
        if most:
            found.append((f"{what}, memory", "with lines",
                          [(x, min(x * memory, most) / 1e9) for x in (0.1 * 2 ** i for i in range(18))]))
    best = {c["job"]: c for level in PRODUCTS for c in record["cases"]
            if c["level"] == level and c["threads"] == threads}
    for c in best.values():
        if c["products"]:
            found.append((c["job"], "with points pt 7", [(c["products"] / c["bytes"], c["products"] / c["seconds"] / 1e9)]))
    return found


def later(record):
    """What was measured in a run of its own."""
    commits = sorted({c["commit"] for c in record["cases"] if "commit" in c})
    cases = [c for c in record["cases"] if "commit" in c]
    return "".join(f"; {', '.join(f'`{level}`' for level in sorted({c['level'] for c in cases}))} with "
                   f"{', '.join(map(str, sorted({c['threads'] for c in cases})))} threads: one round of commit {c}" for c in commits)


def make():
    text = ("# What jobs reach of what the machine does\n\nFor each job its multiply-adds and bytes by definition: an exact search "
            "of q queries among n points of d dimensions has q n d multiply-adds (of bits: one a byte) and reads points and "
            "queries once; a self-join has half of n² d; passes of a factorisation count each. Its roof is "
            "the longer of two times: the multiply-adds at the machine's own rate, and the bytes at its rate of reads from memory. Cells "
            "are milliseconds of the quickest of a few rounds, and the roof's share of them in brackets. The machine's rates are "
            "measured by `bench/cpu/ceilings.c`, the best of a few rounds (on the Xeon of three runs; '–' was not measured): chains of independent instructions on registers, reads of memory "
            "that fits into the first cache, the second, and none; SGEMM is NumPy's BLAS. Jobs that 8-bit products "
            "may filter are held against those of their level, "
            "`avx2` and `avx512` against fp32's (their filter has 8- and 16-bit products too, so that more than all can be "
            "reached); other jobs against the quickest fp32 rate. A join "
            "that drops pairs by a sketch, and signs that are summed by tables, do less than the definition's work and pass its roof; "
            "a search that selects and verifies does more. One query, which reads ahead of itself, passes a plain read. The program is `bench/cpu/roofline.py`.\n")
    found = False
    for name, short, title in RECORDS:
        record = load(name)
        if not record:
            continue
        found = True
        threads = sorted({c["threads"] for c in record["cases"]})
        text += (f"\n## {title}\n\n{record['cpu']}, {record['cores']} cores, commit {record['commit']}, the quickest of "
                 f"{record['rounds']} rounds{later(record)}.\n\n{ceilings(record, sorted({c['threads'] for c in record['ceilings']}))}\n{of_jobs(record, threads)}\n")
        for t in (threads[0], threads[-1]):
            text += plot(f"roofline-{short}-{t}", f"Roofs and jobs, {t} thread" + "s" * (t > 1), "multiply-adds a byte",
                         "10^9 multiply-adds/s", curves(record, t), key="outside right font ',9'") + "\n"
    if found:
        pages["roofline.md"] = text.rstrip("\n") + "\n"
