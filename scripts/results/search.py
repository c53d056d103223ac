"""docs/results/search.md: exact search beside FAISS's flat indexes at every level of instructions, from bench/cpu/search.py."""
from pages import load, pages, table

RECORDS = (("search-cpu-amx.json", "AMX"), ("search-cpu-amx-many.json", "AMX, many neighbours and dimensions, later"),
           ("search-cpu-avx512.json", "AVX-512 and VNNI, without AMX"))


def job(c):
    size = f"{c['dimensions'] * 8} bits" if c["metric"] == "hamming" else str(c["dimensions"])
    queries = "1" if c["queries"] == 1 else f"{c['queries']:,}"
    return [c["metric"], f"{queries} × {c['base']:,} × {size}", str(c["k"])]


def ms(seconds):
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def cell(c, level):
    if level not in c["levels"]:
        return "–"
    seconds = c["levels"][level]["seconds"]
    return f"{ms(seconds)} ({c['faiss_seconds'] / seconds:.2g})"


def of_threads(record, threads):
    cases = [c for c in record["cases"] if c["threads"] == threads]
    levels = [x for x in ("portable", "avx2", "avx512", "avx512_vnni", "amx") if any(x in c["levels"] for c in cases)]
    rows = [job(c) + [ms(c["faiss_seconds"])] + [cell(c, x) for x in levels] +
            [f"{c['verified_a_query']:.0f}"] for c in cases]
    name = "One thread" if threads == 1 else f"{threads} threads"
    return f"\n{name}:\n\n" + table(["metric", "queries × base × dimensions", "k", "FAISS, ms", *[f"`{x}`" for x in levels],
                                  "verified"], rows)


def words(record):
    cases = record["cases"]
    differ = sum(level["differ"] for c in cases for level in c["levels"].values())
    busy = [c for c in cases if c["others"] > 0.2]
    text = (f"{record['cpu']}, {record['cores']} cores; {record['peer']}, whose OpenBLAS ran its {record['blas']} "
            f"kernels; commit {record['commit']}. Answers in which levels differ: {differ}. ")
    one = [c for c in cases if c["queries"] == 1]
    if one:
        text += ("One query reads the base at " +
                 ", ".join(f"{c['base'] * c['dimensions'] * 4e-9 / c['seconds']:.3g} GB/s" for c in one) + " with " +
                 ", ".join(str(c["threads"]) for c in one) + " threads. ")
    if busy:
        text += ("Other work took more than a fifth of a processor in " +
                 "; ".join(f"{c['name']}, {c['threads']} threads" for c in busy) + ". ")
    return text


def make():
    text = ("# Exact search on CPUs\n\nMilliseconds of a search of random points, with their packing, at each level of instructions "
            "(`GNOMON_ISA`), and in brackets how many times as long FAISS's flat index of the same metric takes, whose points were added "
            "before. Both in turn in one process, medians of three rounds; '–' was not measured. 'Verified' is how many "
            "distances a query had computed in fp64 at the best level. FAISS's distances are of fp32, ours of fp64. The program is "
            "`bench/cpu/search.py`. The method: "
            "[search.md](../reference/search.md#method).\n")
    found = False
    for name, title in RECORDS:
        record = load(name)
        if not record:
            continue
        found = True
        text += f"\n## {title}\n\n{words(record)}\n"
        for threads in sorted({c["threads"] for c in record["cases"]}):
            text += of_threads(record, threads)
    if found:
        pages["search.md"] = text
