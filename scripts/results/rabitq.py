"""docs/results/rabitq.md: searches by codes of a few bits beside FAISS's RaBitQ indexes, from bench/cpu/codes/rabitq.py."""
from pages import load, pages, table

RECORDS = (("rabitq-cpu-amx.json", "AMX"), ("rabitq-cpu-vnni.json", "The same machine, GNOMON_ISA=avx512_vnni"),
           ("rabitq-cpu.json", "AVX-512 with VNNI and VBMI, without AMX"))
DATA = {"fashion": "Fashion-MNIST, 60,000 × 784", "clusters": "1,000,000 × 128 in clusters",
        "bytes": "1,000,000 × 128, bytes in clusters"}


def run_of(record, data, part):
    return next((r for r in record["runs"] if (r["data"], r["part"]) == (data, part) and r["cases"]), None)


def recalls(run):
    rows = []
    for c in run["cases"]:
        spread = c["deviation"] or [None] * len(c["recall"])
        rows.append([c["bits"], c["side"], f"{c['bytes']:.0f}", c["rotations"]] +
                    [f"{r:.4f}" + ("" if d is None else f" ± {d:.4f}") for r, d in zip(c["recall"], spread)])
    return table(["bits", "", "bytes", "rotations"] + [f"{r:,} re-ranked" for r in run["cases"][0]["reranked"]], rows)


def speeds(run, inverted):
    rows = []
    for bits in sorted({c["bits"] for c in run["cases"]} - {0}):
        for target in (0.9, 0.99):
            cases = [c for r in (run, inverted) if r for c in r["cases"] if (c["bits"], c["target"]) == (bits, target)]
            rate = {c["side"]: c["queries_per_second"] for c in cases}
            for c in cases:
                name = c["side"]
                if "probes" in c:
                    name += f", {c['probes']} of {c['cells']} cells"
                times = [f"{c['queries_per_second'] / rate[x]:.2f}" if x in rate and c["side"].startswith("gnomon") else ""
                         for x in ("IndexRaBitQFastScan", "IndexRaBitQ")]
                rows.append([bits, f"{target:g}", name, f"{c['bytes']:.0f}", f"{c['reranked']:,.0f}", f"{c['recall']:.4f}",
                             f"{c['queries_per_second']:,.0f}", *times])
    for c in run["cases"]:
        if c["bits"] == 0:
            rows.append(["", "1", c["side"], f"{c['bytes']:.0f}", "", f"{c['recall']:.4f}",
                         f"{c['queries_per_second']:,.0f}", "", ""])
    return table(["bits", "asked", "", "bytes", "re-ranked", "recall", "queries a second", "times FastScan",
                  "times IndexRaBitQ"], rows)


def machine(record):
    text = f"{record['cpu']}, {record['threads']} threads, {record['peer']}, commit {record['commit']}."
    busy = max((c["others"] for r in record["runs"] for c in r["cases"] if "others" in c), default=0)
    if busy > 0.2:
        text += f" Other work took up to {busy:.1f} of a processor in the quietest rounds."
    return text + "\n"


def make():
    text = ""
    for name, title in RECORDS:
        record = load(name)
        if record is None:
            continue
        text += f"\n## {title}\n\n{machine(record)}"
        for data, words in DATA.items():
            speed, inverted, recall = (run_of(record, data, part) for part in ("speed", "ivf", "recall"))
            if speed:
                text += f"\n### {words}: queries a second\n\n{speed['queries']:,} queries.\n\n{speeds(speed, inverted)}"
            if recall:
                text += (f"\n### {words}: recall at equal bytes\n\n{recall['queries']:,} queries; mean and, of several "
                         f"rotations, the deviation of the mean.\n\n{recalls(recall)}")
    if text:
        pages["rabitq.md"] = ("""# Codes of a few bits beside FAISS's

Searches by RaBitQ codes ([rabitq.md](../reference/rabitq.md)) beside FAISS's `IndexRaBitQFastScan` and `IndexRaBitQ` (its
queries in 8 bits) behind a `RandomRotationMatrix`, and `IndexIVFRaBitQFastScan`, all re-ranked by `IndexRefineFlat`; k = 10,
l2. 'Re-ranked' is the number of points whose distances are computed: the fewest, up to a twentieth, that reach the recall
asked for; of searches 'by recall', which are told a recall alone and keep it by the law of uniform rotations, what they
computed. FAISS's codes of several bits have other factors, so that bytes differ there. Sides take turns in one process, but
for IndexIVFRaBitQFastScan, which runs alone; medians of the quietest rounds. IndexIVFRaBitQFastScan visits a few cells where the others scan all codes: it is what users run where cells are
learnt before; its settings are the fastest of 30 that were tried. Where exact search is faster than a scan of codes, codes
save memory alone: exact search reads the points, a scan of codes a few of them. `bench/cpu/codes/rabitq.py` makes data and records.
""" + text)
