"""docs/results/dedup.md: deduplication of texts beside rensa, datasketch, text-dedup and datatrove, and of corpora that are made to be hard, from the
record of bench/cpu/dedup.py."""
from pages import load, pages, table

STEPS = [("read", "reading"), ("ngram", "n-grams"), ("group", "equal sets"), ("plan", "choice of bands"), ("hash", "MinHash, sorting"),
         ("verify", "verification"), ("cluster", "clusters"), ("write", "writing")]
AIMS = [("rensa", 10), ("datasketch", 30), ("text-dedup", 30), ("datatrove", 80)]
AIM_STEP = 500
AIM_RATE = 250_000
AIM_GPU = 5
AIM_HOUR, AIM_GROWTH = 3600, 1.3


def verdict(figure, aim, words):
    return f"{words} (the aim: {aim:,}; {'met' if figure >= aim else 'missed'})"


def texts_part(record):
    texts = record["texts"]
    exact, lines = texts["exact"], texts["lines"]
    rows = []
    for name, key in (("gnomon, a text a line", "lines"), ("gnomon, JSON lines", "json"), ("gnomon, `--recall 1`", "exact")):
        e = texts[key]
        rows.append([name, f"{e['seconds']:.3g}", f"{e['cpu_seconds']:.3g}", f"{e['documents'] / e['seconds']:,.0f}", f"{e['pairs']:,}", "1",
                     f"{e['pairs'] / exact['pairs']:.4f}"])
    for name, _ in AIMS:
        e = texts[name]
        how = "verified by Python's sets" if "unverified_seconds" in e else "unverified, kept lines"
        rows.append([f"{name} {record['peers'][name]}, {how}", f"{e['seconds']:.3g}", "",
                     f"{lines['documents'] / e['seconds']:,.0f}", f"{e['reported']:,}", f"{e['true'] / e['reported']:.2f}", f"{e['of_exact']:.4f}"])
    told = [verdict(texts[name]["seconds"] / lines["seconds"], aim, f"{texts[name]['seconds'] / lines['seconds']:.1f} times as fast as {name}")
            for name, aim in AIMS]
    runs = sorted(run["lines"]["seconds"] for run in record["runs"])
    rate = lines["documents"] / lines["seconds"]
    told.append(verdict(rate, AIM_RATE, f"{rate:,.0f} documents a second"))
    return (f"## Package descriptions\n\n{lines['documents']:,} descriptions of Debian's packages, {lines['text_bytes'] / 1e6:.0f} MB, "
            f"{lines['ngrams']:,} distinct trigrams of words in {lines['distinct']:,} distinct sets, similarity 0.8. Seconds from the file to "
            "the kept lines, with two threads, medians of 5, the slower of two such before and after the peers. rensa and datasketch: from "
            "the file to verified pairs, in one process, with 128 permutations. text-dedup and datatrove: the commands, from JSON lines to "
            "the kept ones, in two processes, with trigrams of their own words. *True* is the share of the pairs that a peer reports or "
            "joins, or we list, that reach the similarity. *Of all pairs*: the share of the pairs by `--recall 1` that are listed or, of "
            "the two commands, in one cluster. rensa and datasketch list the pairs of equal texts too, of which we list those with the "
            "first: their counts are not comparable with ours.\n\n" +
            table(["", "s", "processor s", "documents/s", "pairs", "true", "of all pairs"], rows) +
            "\n" + "; ".join(told) + f". In {len(runs)} runs a text a line took {runs[0]:.3g} to {runs[-1]:.3g} s.\n\nWith seeds 0 to 19 the command lists {min(record['seeds']):,} to {max(record['seeds']):,} of "
            f"{exact['pairs']:,} pairs, at least {min(record['seeds']) / exact['pairs']:.4f}; {lines['recall_bound']:.3f} is guaranteed, but for "
            f"{lines['uncompared']:,} pairs of {lines['large_buckets']} large buckets.\n\n" +
            table(["step"] + [words for _, words in STEPS],
                  [[name] + [f"{texts[key][f'{step}_seconds']:.3f}" for step, _ in STEPS]
                   for name, key in (("lines, s", "lines"), ("JSON lines, s", "json"))]) + steps_part(record))


def steps_part(record):
    """One thread from texts to sets."""
    rows = [[e["isa"], f"{e['ngram']} {'characters' if e['characters'] else 'words'}"] +
            [f"{e['bytes'] / e[key] / 1e6:,.0f}" for key in ("check_seconds", "sets_seconds", "seconds")] for e in record["steps"]]
    best = max((e for e in record["steps"] if not e["characters"]), key=lambda e: e["bytes"] / e["seconds"])
    rate = best["bytes"] / best["seconds"] / 1e6
    return ("\nOne thread, MB of text a second, from texts in memory to sets (`bench/cpu/ngrams.c`); each column has the work of those "
            "before it:\n\n" + table(["instructions", "n-grams of", "is it UTF-8?", "and sets in order", "and their hashes"], rows) + "\n" +
            verdict(rate, AIM_STEP, f"{rate:,.0f} MB a second for n-grams of words") +
            ". What the report calls *n-grams* is this on all threads, and that sets and texts are kept: fresh pages of memory.\n\n" +
            judged_part(record))


def judged_part(record):
    rows = []
    for name, e in record["judged"].items():
        found = f"{min(e['found']) / e['near']:.4f}" if e["near"] else "1"
        rows.append([name, f"{e['documents']:,}", f"{e['near']:,}", f"{max(1, e['seeds'])}", found, f"{e['checked']:,}", f"{e['wrong']:,}"])
    return ("### Judged by other programs\n\nAll near pairs of the first documents by products of SciPy's sparse matrices, of *sets*, with "
            "repeated n-grams as *counts* (`--weighted`) and by *containment*; the least share of them that the command lists with any of "
            "the seeds; and the pairs of all documents, each computed again from Python's sets. *Wrong*: listed by the command and "
            "false, or of another similarity.\n\n" +
            table(["similarity of", "documents", "near pairs", "seeds", "least share found", "pairs computed again", "wrong"], rows))


def corpora_part(record):
    by_kind, rows = {}, []
    for e in record["corpora"].values():
        by_kind.setdefault(e["kind"], []).append(e)
        rows.append([e["kind"], f"{e['documents']:,}", f"{e['seconds']:.3g}", f"{e['cpu_seconds']:.3g}", f"{e['peak_bytes'] / 1e6:,.0f}",
                     f"{e['bands']} × {e['rows']}", f"{e['candidates']:,}", f"{e['pairs']:,}", f"{e['uncompared']:,}", f"{e['kept']:,}"])
    plain = by_kind["plain"]
    growth = sorted(many["seconds"] / few["seconds"] for few, many in by_kind.values())
    compared = max(many["candidates"] / few["candidates"] for few, many in by_kind.values() if few["candidates"] >= 10_000)
    return ("\n## Corpora that are made to be hard\n\nTexts of 60 words, drawn from 50,000, no two alike (*plain*); every tenth text is an "
            "earlier one with one word changed (*planted*); one text of 200 words with six others behind (*template*); one of 150 words "
            "with eleven changed, so that these are about 0.65 similar to one another, below the 0.8 that is looked for (*below*); all texts the same "
            "(*copies*); texts of one of a thousand words (*one word*). One run each, with two threads and the default `--memory` of 1 GiB. "
            "*MB*: the most that the kernel counts of the process. *Uncompared*: pairs "
            "in large buckets.\n\n" +
            table(["corpus", "documents", "s", "processor s", "MB", "bands × rows", "compared", "pairs", "uncompared", "kept"], rows) +
            f"\nFour times the documents take {growth[0]:.1f} to {growth[-1]:.1f} times as long. Comparisons grow at most {compared:.1f} "
            f"times where there are 10,000 or more. Of *plain* the sets take more than their quarter of the memory limit at "
            f"{plain[1]['documents']:,} documents: they are in a temporary file, and to find equal sets takes {plain[1]['group_seconds']:.2f} s "
            f"instead of {plain[0]['group_seconds']:.3f} s. Of *below* the model chooses more bands for more documents, as the pairs that "
            "meet by chance grow with the square.\n")


def memory_part(record):
    rows = [[limit, f"{e['seconds']:.3g}", f"{e['cpu_seconds']:.3g}", f"{e['peak_bytes'] / 1e6:,.0f}"] for limit, e in record["memory"].items()]
    same = all(e["same_bytes"] for e in record["memory"].values())
    documents = next(iter(record["memory"].values()))["documents"]
    return (f"\n## Memory\n\nThe *planted* corpus of {documents:,} documents within limits, with two threads, one run each; kept documents, pairs, "
            f"clusters and ids {'have the same bytes in all' if same else 'DIFFER'}.\n\n" +
            table(["`--memory`", "s", "processor s", "MB"], rows))


def large_part(record):
    rows, costs = [], []
    for e in record["results"]:
        processor = e["user_seconds"] + e["system_seconds"]
        costs.append(processor / e["documents"])
        rows.append([f"{e['documents']:,}", f"{e['bytes'] / 1e9:.1f}", f"{e['seconds']:.0f}", f"{e['user_seconds']:.1f}", f"{e['system_seconds']:.1f}",
                     f"{costs[-1] * 1e6:.2f}", f"{e['peak_bytes'] / 1e6:,.0f}", f"{e['temporary_bytes'] / 1e9:.2f}",
                     f"{e['planted'] - e['missed']:,} of {e['planted']:,}", f"{e['load']:.0f}"])
    right = all(e["wrong"] == 0 and e["output_as_ids"] for e in record["results"])
    few, many = record["results"][0], record["results"][-1]
    growth, wall = costs[-1] / costs[0], many["seconds"] / few["seconds"] * few["documents"] / many["documents"]
    return (f"\n## Ten million documents\n\nTexts of {record['words']} words, every tenth the one five before it with one word replaced, from a file to the kept "
            f"lines and ids, within `--memory {record['memory']}`, with two threads, one run each (`bench/cpu/dedup.py large`"
            f"{'; ' + record['note'] if record['note'] else ''}: *load* is the mean number of threads that ran or waited). "
            f"*GB of files*: the most in temporary files. {'No other document was removed, and the output is the kept texts.' if right else 'THE OUTPUT IS WRONG.'}\n\n" +
            table(["documents", "GB", "s", "user s", "system s", "processor µs a document", "MB", "GB of files", "planted and removed", "load"], rows) +
            f"\n{many['documents']:,} documents take {many['seconds'] / 60:.1f} minutes (the aim: at most {AIM_HOUR // 60}; "
            f"{'met' if many['seconds'] <= AIM_HOUR else 'missed'}), and one of them {growth:.2f} times the processor time of one of {few['documents']:,}, "
            f"{wall:.2f} times the time (the aim: at most {AIM_GROWTH}; {'met' if max(growth, wall) <= AIM_GROWTH else 'missed'}). Temporary files take "
            f"{many['temporary_bytes'] / many['bytes']:.2f} times the corpus: the sets. Most of the system's time copies them and the output to the page cache.\n")


def gpu_part(record):
    def middle(case, device, key="seconds"):
        values = sorted(run[key] for run in record["results"] if run["case"] == case and run["device"] == device)
        return values[len(values) // 2]

    starts = sorted(run["seconds"] - sum(run[step + "_seconds"] for step, _ in STEPS) for run in record["results"] if run["device"] == "cuda")
    start = starts[len(starts) // 2]
    rows = []
    for case in dict.fromkeys(run["case"] for run in record["results"]):
        first = next(run for run in record["results"] if run["case"] == case)
        options = f"`{' '.join(first['options'])}`" if first["options"] else "defaults"
        rows.append([f"{first['corpus']}, `{first['written']}`", options, f"{middle(case, 'cpu'):.2f}", f"{middle(case, 'cuda'):.2f}",
                     f"{middle(case, 'cpu') / middle(case, 'cuda'):.2f}",
                     f"{middle(case, 'cpu') / (middle(case, 'cuda', 'read_seconds') + middle(case, 'cuda', 'write_seconds') + start):.1f}"] +
                    [f"{middle(case, device, step + '_seconds'):.2f}" for step in ("ngram", "hash") for device in ("cpu", "cuda")])
    most = max(float(row[4]) for row in rows)
    return (f"## On a GPU\n\n{record['documents']:,} documents of {record['words']} words, {record['bytes'] / 1e6:,.0f} MB, every tenth an earlier one with "
            f"one word changed, in the page cache; {record['gpu']} beside {record['threads']} threads of its host (`bench/gpu/dedup.py`, commit "
            f"{record['commit'][:12]}{', ' + record['note'] if record.get('note') else ''}). Whole runs of the command, from the start of the process to its end, medians of "
            f"{len(record['results']) // len(rows) // 2}; kept lines or ids have the same bytes. " + verdict(most, AIM_GPU, f"At most {most:.1f} times the CPU's speed") +
            ".\n\n" + table(["corpus, output", "options", "CPU s", "GPU s", "times", "at most", "n-grams: CPU s", "GPU s", "keys: CPU s", "GPU s"], rows) +
            "\nThe other steps are the same on both: reading, grouping, comparing, clusters, writing. With the GPU "
            f"{start:.2f} s of a run (median) are none of the steps': most of it is CUDA's start. *At most*: the ratio if all but that start, "
            "reading and writing, which one host does, took no time. Five times is therefore out of reach by defaults: with AVX-512 the CPU "
            "hashes words eight at a time, and is done before a GPU has made up for its start. `--device auto` leaves words to it and gives "
            "the GPU what the last row asks for.\n\n")


def make():
    record = load("dedup-cpu.json")
    pages["dedup.md"] = (f"# Deduplication of texts\n\n{record['cpu']}, two cores; `bench/cpu/dedup.py`. How it works: "
                         "[dedup.md](../reference/dedup.md).\n\n" + texts_part(record) + corpora_part(record) + memory_part(record) + large_part(record["large"]) + "\n" + gpu_part(load("gpu/dedup.json")).rstrip("\n") + "\n")
