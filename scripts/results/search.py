"""docs/results/search.md: exact search beside FAISS's flat indexes at every level of instructions, from bench/cpu/search.py, and
beside approximate indexes, from bench/cpu/peers/index.py."""
from pages import load, pages, table

RECORDS = (("search-cpu-amx.json", "AMX"), ("search-cpu-avx512.json", "AVX-512 and VNNI, without AMX"))


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


PEERS = (("peers-index-amx.json", "AMX"), ("peers-index-avx512.json", "AVX-512 and VNNI, without AMX"))


def way(data, who, wanted):
    for w in data["ways"]:
        if w["who"] == who and w["wanted"] == wanted:
            return (f"{w['rate']:,.0f} ({w['recall']:.3f})" + (", exact" if w.get("exact") else ""))
    return "–"


def builds(data, who):
    found = [w["build"] for w in data["ways"] if w["who"] == who]
    if not found:
        return "–"
    low, high = f"{min(found):.2g}", f"{max(found):.2g}"
    return low if low == high else f"{low} to {high}"


def outcome(record):
    """In how many rows ours is no slower."""
    def rate(data, who, wanted):
        return max((w["rate"] for w in data["ways"] if w["who"] == who and w["wanted"] == wanted), default=0)

    def lead(peer):
        return sum(max(rate(d, "gnomon, tuned", w), rate(d, "gnomon, exact", 1.0)) >= rate(d, peer, w) for d, w in rows)
    rows = [(d, wanted) for d in record["results"] for wanted in (0.9, 0.95, 0.99)]
    slower = sum(not way.get("exact") and way["rate"] < rate(d, "gnomon, exact", 1.0)
                 for d in record["results"] for way in d["ways"] if way["who"] == "gnomon, tuned")
    return (f"The quicker of tuned and exact search is no slower than HNSW in {lead('HNSW')} of {len(rows)} rows, than RaBitQ in "
            f"{lead('RaBitQ, re-ranked')}; a tuned index is slower than exact search in {slower}.\n")


def peers():
    text = ""
    for name, title in PEERS:
        record = load(name)
        if not record:
            continue
        f = record["facts"]
        rows = []
        for d in record["results"]:
            for wanted in (0.9, 0.95, 0.99):
                rows.append([f"{d['data']}, {d['points']:,} × {d['dimensions']}", f"{wanted:g}", way(d, "gnomon, exact", 1.0)] +
                            [way(d, who, wanted) for who in ("gnomon, tuned", "HNSW", "RaBitQ, re-ranked")] +
                            [builds(d, who) for who in ("gnomon, tuned", "HNSW", "RaBitQ, re-ranked")])
        text += (f"\n### {title}\n\n{f['processor']}, level `{f['isa']}`, {f['threads']} threads; FAISS {f['faiss']}; commit "
                 f"{f['commit']}. {f['note']}\n\n" +
                 table(["points", "recall", "exact", "tuned", "HNSW", "RaBitQ, re-ranked", "tuned, s", "HNSW, s", "RaBitQ, s"], rows) + "\n" + outcome(record))
    if text:
        text = ("\n## Beside approximate indexes\n\nThe ten nearest: queries a second, all asked at once, and in brackets the recall "
                "found. 'Tuned' is `Index.tune` with that recall guaranteed by base points alone; 'exact' there means that it chose "
                "exact search, by a model whose costs are the same on every machine. HNSW (32 links, efConstruction 200) and RaBitQ "
                "codes in lists (`RaBitQfs`, re-ranked) are FAISS's, with the fewest candidates of a row of settings that find the "
                "recall on 2,000 of these very queries, which nobody promises for others. The last columns are seconds to build, with tuning "
                "and its test. The program is `bench/cpu/peers/index.py`.\n" + text)
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
        pages["search.md"] = text + peers()
