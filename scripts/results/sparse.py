"""docs/results/sparse.md: joins, searches and factorisations of sparse rows beside SciPy, sparse-dot-topn and scikit-learn, from the
records of bench/cpu/sparse.py and sparse_svd.py."""
from pages import load, pages, plot, table

WORDS = """# Sparse rows beside SciPy, sparse-dot-topn and scikit-learn

TF-IDF of {points:,} texts, Debian's package descriptions (`TfidfVectorizer(min_df=2)`): {columns:,} columns, {nonzeros:,} nonzeros, and
{products:.3g} products of nonzeros that share a column, over all pairs. {cpu}, two cores, nothing else was built or measured
meanwhile, commit {commit}, `bench/cpu/sparse.py`. gnomon does all rows and answers in double precision. The peers
multiply in single precision, do {share:.0f} % of the rows, drawn at random (over the number of points a quarter of that), and are scaled to all.
SciPy's product and scikit-learn's search have one thread. *Wall* and *cpu* are seconds by the clock and of processors. SciPy {scipy}, scikit-learn {sklearn},
sparse-dot-topn {topn}. How it works: [search.md](../reference/search.md#method).

"""

HEAD = ["threads", "gnomon, wall", "cpu", "sparse-dot-topn, wall", "cpu", "SciPy, wall", "cpu", "times sparse-dot-topn", "times SciPy"]


def figure(seconds):
    return f"{seconds:.3g}" if seconds < 1000 else f"{seconds:.0f}"


def both(of):
    return [figure(of["wall_seconds"]), figure(of["cpu_seconds"])] if of else ["", ""]


def by_threads(e, *peers):
    """A row for each number of threads; at the end how many times as long peers with as many take, by the clock."""
    for threads, ours in e["ours"].items():
        theirs = [e[p].get(threads) for p in peers]
        times = [f"{t['wall_seconds'] / ours['wall_seconds']:.1f}" if t else "" for t in theirs]
        yield [threads] + both(ours) + [cell for t in theirs for cell in both(t)] + times


def joins_part(record):
    rows, found = [], []
    for e in record["joins"]:
        rows += [[f"{e['threshold']:g}", f"{e['pairs']:,}"] + row for row in by_threads(e, "topn", "scipy")]
        found.append([f"{e['threshold']:g}", f"{e['pairs']:,}", f"{e['verified'] / max(1, e['pairs']):.4f}", f"{e['compared_pairs']:,}", e["differing_pairs"]])
    return ("## All pairs within a cosine distance\n\nSciPy: the product with the transpose, a thousand rows at a time, then a threshold; "
            "sparse-dot-topn: `sp_matmul_topn` with the threshold and room for as many as the row with the most pairs has. Both find each pair twice and every row with "
            "itself.\n\n" + table(["distance", "pairs"] + HEAD, rows) +
            "\n*Verified* is the number of pairs computed in fp64 for each pair found. Pairs of some rows are compared with SciPy's product in fp64.\n\n" +
            table(["distance", "pairs", "verified", "pairs compared", "differing"], found))


def scaling_part(record):
    some, halves = record["scaling"], record["halves"]
    text = ("\n## Time over the number of points\n\n"
            f"The first and the second half of each text's words: {halves['points']:,} points, {halves['columns']:,} columns, {halves['nonzeros']:,} nonzeros; "
            "so many drawn at random, distance 0.5. The products grow with the square of the number of points, and so do the pairs. "
            f"Of {sum(e['compared_pairs'] for e in some):,} pairs of some rows, {sum(e['differing_pairs'] for e in some)} differ from SciPy's in fp64.\n\n")
    rows = [[f"{e['points']:,}", f"{e['pairs']:,}"] + row for e in some for row in by_threads(e, "topn", "scipy")]
    curves = [(f"{name}, {threads} thread{'s' * (threads > '1')}", "with linespoints", [(e["points"], e[key][threads]["wall_seconds"]) for e in some])
              for name, key, threads in (("gnomon", "ours", "1"), ("gnomon", "ours", "2"), ("sparse-dot-topn", "topn", "1"), ("sparse-dot-topn", "topn", "2"),
                                         ("SciPy", "scipy", "1"))]
    curves.append(("million pairs", "with linespoints", [(e["points"], e["pairs"] * 1e-6) for e in some]))
    return (text + table(["points", "pairs"] + HEAD, rows) + "\n" +
            plot("sparse-join-cpu", "Pairs of half texts within cosine distance 0.5", "points", "s by the clock; million pairs", curves))


def searches_part(record):
    n, one, learned = record["nearest"], record["one_query"], record["learned"]
    text = ("\n## Nearest neighbours\n\nEach call begins with the rows as SciPy has them: gnomon makes its index within the time; for one "
            "query it makes none. scikit-learn: `NearestNeighbors(metric='cosine', algorithm='brute')`. The ten nearest by cosine of every text:\n\n")
    text += table(["threads", "gnomon, wall", "cpu", "sparse-dot-topn, wall", "cpu", "scikit-learn, wall", "cpu", "times sparse-dot-topn", "times scikit-learn"],
                  list(by_threads(n, "topn", "sklearn")))
    rows = [["10 nearest by cosine of one text", f"{one['cpu_seconds']:.3g}", "", f"{one['sklearn_cpu_seconds']:.3g}",
             f"{one['sklearn_cpu_seconds'] / one['cpu_seconds']:.2g}"],
            [f"10 largest products of 1,000 vectors with {learned['points']:,}", f"{learned['cpu_seconds']:.3g}",
             f"{learned['scipy_cpu_seconds']:.3g}", "", f"{learned['scipy_cpu_seconds'] / learned['cpu_seconds']:.1f}"],
            [f"10 largest products of one vector with {learned['points']:,}", f"{learned['one_cpu_seconds']:.3g}", "", "", ""]]
    return (text + "\nProcessor seconds of one thread; the vectors are like those of "
            "learned sparse models, made by a law: 120 of 30,000 columns a row by Zipf's law with exponent 0.7, values exp(N(0, ¼)); SciPy takes "
            "the product and `argpartition`, in single precision: "
            f"{100 * learned['same_answers']:.2f} % of its answers stand where ours do, and of our products in 100 queries none is off "
            f"by more than {learned['largest_difference']:.0e} from SciPy's in double precision.\n\n" +
            table(["job", "gnomon, s", "SciPy, s", "scikit-learn, s", "times as fast"], rows))


def form_part(record):
    """Of bench/cpu/sparse_form.py."""
    rows, asked = [], [r for r in record["rows"] if r["dense"] is not None]
    jobs = list(dict.fromkeys(r["job"] for r in record["rows"]))
    for name in dict.fromkeys(r["data"] for r in record["rows"]):
        row = [name]
        for job in jobs:
            some = [r for r in asked if (r["data"], r["job"]) == (name, job)]
            worst = max(some, key=lambda r: r["regret"], default=None)
            row.append(f"{worst['regret']:.2f}, {worst['metric']}, {1e3 * worst['chosen']:.3g}" if worst else "no dense form")
        rows.append(row)
    regrets = sorted(r["regret"] for r in asked)
    worst = max(asked, key=lambda r: r["regret"])
    return ("\n## Regret of the form\n\nThe cost model of [search.md](../reference/search.md#sparse-points) has sparse rows compared through an inverted index or as dense "
            f"rows. {asked[0]['rows']:,} rows, on one thread, {record['cpu']}, commit {record['commit']}, nothing else was built or measured meanwhile; k = 10, or the "
            "median distance of the tenth nearest; `bench/cpu/sparse_form.py`. Each cell is the worst of cosine, l2, ip and l1: processor time of the "
            "library's choice over the least of both forms and the choice, the metric, and the milliseconds of the choice. Dense rows are timed with NumPy's copy of the sparse ones, "
            "which is quicker than the library's, where entries are checked: that is most of the regret of a single query. "
            "The model's constants were fitted to these data. "
            f"Of {len(asked)} questions the regret is {sum(regrets) / len(regrets):.3f} in the mean, {regrets[int(0.9 * len(regrets))]:.2f} at 90 %, and at worst "
            f"{worst['regret']:.2f} ({worst['data']}, {worst['job']}, {worst['metric']}: {1e3 * worst['chosen']:.3g} ms).\n\n" + table(["points"] + jobs, rows))


def million_part(record):
    """Of bench/cpu/sparse_recall.py."""
    text = "\n## A million learned-like vectors, and Seismic\n\nThe same law, 1,000 queries, the ten largest products; `bench/cpu/sparse_recall.py`.\n\n"
    if "exact" in record:
        e = record["exact"]
        ours = e["cpu_seconds"]
        text += (f"{e['points']:,} documents: gnomon finds the answers exactly in {ours:.3g} processor seconds of one thread, of which {e['setup_cpu_seconds']:.2g} make the "
                 f"inverted index; SciPy's product and `argpartition`, a hundred queries at a time, in {e['scipy_cpu_seconds']:.3g}: {e['scipy_cpu_seconds'] / ours:.1f} "
                 f"times as long. {100 * e['same_answers']:.2f} % of SciPy's answers, in single precision, stand where ours do.\n")
    for e in record.get("seismic", []):
        search = e["exact_cpu_seconds"] - e["exact_setup_cpu_seconds"]
        text += (f"\nSeismic (pyseismic-lsr {e['version']}, {e['postings']:,} postings a list, {e['centroids']:g} of a list centroids, the rest by default) of {e['points']:,} "
                 "documents, in the same run:\n\n")
        rows = [["gnomon, exact", "", "1.000", f"{e['exact_setup_cpu_seconds']:.3g}", f"{1000 / search:.0f}"]]
        for s in e["searches"]:
            rows.append(["Seismic", f"{s['query_cut']}, {s['heap_factor']:g}", f"{s['recall']:.3f}", f"{e['build_cpu_seconds']:.3g}", f"{1000 / s['cpu_seconds']:.0f}"])
        text += table(["", "query cut, heap factor", "recall", "making the index, s", "queries a second"], rows)
        faster = [s["recall"] for s in e["searches"] if s["cpu_seconds"] < search]
        text += ("\nSeconds of processors; queries a second of one thread without making the index. Seismic's answers a second exceed those of exact search " +
                 (f"up to a recall of {max(faster):.2f}" if faster else "at no setting tried") +
                 ". The settings of its index were not tuned, and learned vectors of real texts may have clusters, for which its blocks are made and which "
                 "these lack. Its index of a million was not made: at the rate of this one it would take twenty minutes.\n")
    return text


def index_part(record):
    """Of bench/cpu/sparse_index.py."""
    rows = []
    for e in record["searches"]:
        rows.append([f"{e['count']:,} {e['points']}, {e['metric']}", f"{e['build_seconds']:.2g}", f"{e['file_bytes'] / 2**20:.0f}",
                     f"{1e3 * e['open_seconds']:.2g}"] +
                    [f"{1e3 * e[k]:.3g}" for k in ("first_largest_seconds", "median_seconds", "p99_seconds", "largest_seconds", "without_index_seconds")] +
                    [e["differing_queries"]])
    return ("\n## One query at a time by an index in a file\n\nThe inverted index was written by `gnomon_sparse_builder_*` and mapped; "
            f"{record['searches'][0]['queries']:,} queries are asked one by one, k = {record['k']}, on one thread of the same machine, which did nothing else: texts by rows "
            "of themselves, learned-like vectors by others of the same law. Wall time, the queries' second turn; *first* is the slowest query of the first turn, which checks "
            "each list that it reads; the file was in the page cache. *No index* is the median of exact search from the rows as SciPy has them. "
            "*Differing* are queries whose ids or distances are not, bit for bit, those of exact search. `bench/cpu/sparse_index.py`.\n\n" +
            table(["points", "making the file, s", "MiB", "opening, ms", "first, ms", "median, ms", "99 %, ms", "slowest, ms", "no index, ms", "differing"], rows))


def svd_rows(record):
    rows = []
    for e in record["rows"]:
        same = {o["who"]: o["seconds"] for o in record["rows"] if (o["threads"], o["center"]) == (e["threads"], e["center"])}
        peers = [seconds for who, seconds in same.items() if not who.startswith("gnomon")]
        times = ", ".join(f"{seconds / e['seconds']:.2f}" for seconds in peers) if e["who"].startswith("gnomon") else ""
        rows.append([e["threads"], "PCA" if e["center"] else "SVD", e["who"], f"{e['cpu_seconds']:.2f}", f"{e['seconds']:.2f}", times, f"{e['residual']:.8f}"])
    return table(["threads", "job", "who", "processor, s", "clock, s", "times as fast", "residual"], rows)


def svd_name(record):
    name = "TF-IDF of the texts" if record["points"] == "texts" else "vectors like those of learned sparse models, by the law above"
    return f"{name}, {record['shape'][0]:,} × {record['shape'][1]:,}, {record['nonzeros']:,} nonzeros"


def svd_memory(sets):
    if not any(record["memory"] or record["pieces"] for record in sets):
        return ""
    rows = []
    for record in sets:
        for e in record["memory"]:
            rows.append([record["points"], "PCA" if e["center"] else "SVD", e["who"], f"{record['points_mb']:.0f}", f"{record['factors_mb']:.0f}",
                         f"{e['peak_mb']:.0f}", f"{(record['points_mb'] + e['peak_mb'] - record['factors_mb']) / record['points_mb']:.1f}"])
    text = ("\n### Memory, and rows piece by piece\n\nMegabytes by which the peak of the process grows during one call from Python, one thread, beyond "
            "the points, which SciPy holds (values, 32-bit indices and offsets). gnomon's has a copy of the indices with 64 bits, and the result. "
            "*Times the points*: the points and the growth, less the factors.\n\n" +
            table(["points", "job", "who", "points, MB", "factors, MB", "growth, MB", "times the points"], rows))
    rows = []
    for record in sets:
        for e in record["pieces"]:
            rows.append([record["points"], "PCA" if e["center"] else "SVD", "stored" if e["stored"] else "compressed", f"{e['file_mb']:.0f}", e["memory"],
                         e["held"], e["passes"], f"{e['peak_mb']:.0f}", f"{e['read_seconds']:.2f}", f"{e['svd_seconds']:.2f}",
                         {True: "yes", False: "no"}.get(e.get("same_bytes"), "")])
    if rows:
        text += ("\nThe command, `gnomon svd POINTS.npz -k 100 --memory M`, on 2 threads: what `--memory` does not hold comes piece by piece in every "
                 "pass. The peak is that of the whole process; *same* compares the file of factors with that of the line above. The rows were in the "
                 "page cache.\n\n" +
                 table(["points", "job", "file", "file, MB", "--memory", "held", "passes", "peak, MB", "reading, s", "the rest, s", "same"], rows))
    return text


def svd_part(sets):
    record = sets[0]
    spread = max(e["cpu_seconds"] / e["least_cpu_seconds"] - 1 for some in sets for e in some["rows"])
    text = ("\n## Singular values and principal components\n\n"
            f"Float32, rank {record['rank']}, all of a table in one run of `bench/cpu/sparse_svd.py`, medians of "
            f"{' and '.join(str(n) for n in sorted({some['rounds'] for some in sets}, reverse=True))} rounds in turns, while nothing was built or tested on the machine. "
            "Six iterations are gnomon's default; ten are as near to the best as "
            "ARPACK. gnomon's time is with its certificate unless it says none, scikit-learn's that of `fit_transform`. *Times as fast* compares "
            "seconds by the clock, for the SVD with `randomized` and with `arpack`. Of one job's processor seconds the median is up to "
            f"{100 * spread:.0f} % above the least. Residuals |A − A V Vᵀ| / |A| are computed from the components in double "
            f"precision. gnomon: {record['blas']}; peers: {', '.join(record['peer_blas'])}; scikit-learn {record['sklearn']}. "
            "How it works: [svd.md](../reference/svd.md#the-steps).\n")
    for some in sets:
        text += f"\n{svd_name(some)}:\n\n".replace("\nvectors", "\nVectors") + svd_rows(some)
    return text + svd_memory(sets)


def make():
    record = load("sparse-cpu.json")
    if record is None:
        return
    peers = record["peers"]
    pages["sparse.md"] = WORDS.format(cpu=record["cpu"], share=100 * record["share"], scipy=peers["scipy"], sklearn=peers["scikit-learn"],
                                      topn=peers["sparse-dot-topn"], commit=record["commit"], **record["texts"]) + joins_part(record) + scaling_part(record) + searches_part(record)
    more = load("sparse-recall.json")
    if more and ("exact" in more or "seismic" in more):
        pages["sparse.md"] += million_part(more)
    form = load("sparse-form-cpu.json")
    if form:
        pages["sparse.md"] += form_part(form)
    queried = load("sparse-index-cpu.json")
    if queried:
        pages["sparse.md"] += index_part(queried)
    factors = load("sparse-svd-cpu.json")
    if factors is not None:
        pages["sparse.md"] += svd_part(factors["sets"])
