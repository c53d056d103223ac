"""docs/results/lsh.md: hashing and tables on GPUs, from the records of bench/gpu/lsh.cu, and a report's pipelines beside
ours, from those of bench/report and bench/papers/report.cu."""
from pages import gpu_records, load, pages, table


def figure(x):
    return f"{x:.3g}" if x < 1000 else f"{x:,.0f}"


def pair(theirs, mine):
    times = f"{theirs / mine:.3g}" if mine > 0 else ""
    return [figure(theirs), figure(mine), times]


def hashing(records):
    rows = [[r["name"], f"{r['n']:,}", r["d"], f"{r['tables']} × {r['broad'] + r['fine']}", figure(r["read_ms"]),
             figure(r["parameters_ms"]), figure(r["product_ms"]), figure(r["sketch_ms"]), figure(r["values_ms"]), figure(r["keys_ms"]),
             f"{r['keys_ms'] / r['product_ms']:.2f}", f"{r['keys_ms'] / r['sketch_ms']:.2f}"] for r in records]
    return table(["", "n", "d", "L × K", "one read", "directions", "the product", "the sketch", "values", "keys",
                  "keys / product", "keys / sketch"], rows)


def tables(records):
    return table(["", "n", "d", "L × K", "keys", "tables", "both, in reads of the points", "tables a table", "keys sorted a second"],
                 [[r["name"], f"{r['n']:,}", r["d"], f"{r['tables']} × {r['broad'] + r['fine']}", figure(r["keys_ms"]),
                   figure(r["tables_ms"]), f"{(r['keys_ms'] + r['tables_ms']) / r['read_ms']:.1f}",
                   figure(r["tables_ms"] / r["tables"]), f"{r['n'] * r['tables'] / r['tables_ms'] / 1e6:.2f}·10⁹"] for r in records])


def build(records):
    return table(["", "n", "d", "L × K", "gnomon_lsh_add", "points, up", "tables, down", "add / up and down"],
                 [[r["name"], f"{r['n']:,}", r["d"], f"{r['tables']} × {r['broad'] + r['fine']}", figure(r["add_ms"]),
                   f"{figure(r['up_ms'])} ({r['bytes_up'] / 1e9:.2f} GB)", f"{figure(r['down_ms'])} ({r['bytes_down'] / 1e9:.2f} GB)",
                   f"{r['add_ms'] / (r['up_ms'] + r['down_ms']):.2f}"] for r in records])


def on_gpu(content):
    hashed = [r for r in content["results"] if r["what"] == "hash"]
    built = [r for r in content["results"] if r["what"] == "build"]
    return f"""
## {content['gpu']}: hashing

Milliseconds, medians, points in the GPU's memory. 'Product' is the same product of points and stored directions, written
and not hashed ([gemm.h](../../src/cuda/gemm/gemm.h)); 'sketch' what `gnomon_sketch` does with the operator, measured on 2¹⁸ of the
points. Values and keys include the scan for NaN and infinity, one read of the points, and the keys that are computed again for the CPU's bits.

{hashing(hashed)}
## {content['gpu']}: tables

Sorting the keys of all tables, one after the other, buckets and directory, in the GPU's memory.

{tables(hashed)}
## {content['gpu']}: an index of points on the host

`gnomon_lsh_add` from page-locked points to tables in the host's memory, which is taken new, beside the transfers alone,
page-locked.

{build(built)}"""


def index_queries(record, searched):
    """What a query of an index must read, beside exact search: 'searched' is what bench/gpu/search.cu recorded."""
    plain = [r for r in searched["results"] if (r["base"], r["cols"], r["k"], r["metric"], r["from"]) ==
             (record["n"], record["d"], record["k"], "l2", "device")]
    exact = {r["queries"]: r for r in plain if r["data"] == "normal"}
    one = exact[1]
    row = 4 * record["d"]
    rate = record["n"] * row / one["read_ms"] / 1e3  # bytes a microsecond
    call = one["ms"] - one["read_ms"]
    rows = []
    for c in record["cases"]:
        whole = c["candidates"] * (4 + row)
        coded = c["candidates"] * (4 + record["code_bytes"]) + c["rerank"] * row if c["rerank"] else whole
        cells = [c["data"], "yes" if c["kept"] else "no", f"{c['tables']} × {c['functions']}", f"{c['recall']:.3f}", f"{c['candidates']:,.0f}",
                 f"{min(whole, coded) / 1e6:.3g}", figure(min(whole, coded) / rate)]
        for queries in (1, 100, 1000, 10000):
            least = call * 1e3 / queries + min(whole, coded) / rate
            cells.append(f"{1e3 * exact[queries]['ms'] / queries / least:.2g}")
        rows.append(cells)
    head = ["data", "index", "L × K", "recall", "candidates", "MB a query", "µs a query, at least"]
    times = ", ".join(f"{1e3 * exact[q]['ms'] / q:.3g}" for q in (1, 100, 1000, 10000))
    return f"""
## {searched['gpu']}: what hashing could gain there

Queries of an index run on the CPU. This is the most that the GPU could gain with tables and points in its memory over our exact
search there ([gpu.md](gpu.md)), which takes {times} µs a query with 1, 100, 1,000, 10,000 queries (points without clusters; with
them it takes as long). {record['n']:,} fp32 points of {record['d']} coordinates, l2, k = {record['k']}, recall {record['recall']}; settings, recall and candidates are those of
`gnomon index tune` (`bench/gpu/index/lsh_bytes.py`). 'Index': whether tuning found one that meets the guarantee in less time than exact
search on the CPU; else the settings with the fewest candidates at that recall. A query reads an id of each candidate and its
coordinates or, with codes, {record['code_bytes']} bytes of each and the coordinates of those it ranks again; the time is that of these bytes at the rate of
one read of the base. 'At most' is exact search's time over that and the {1e3 * call:.0f} µs that a call of one query takes beside its read.

{table(head + [f"{q:,} {'query' if q == 1 else 'queries'}, at most" for q in (1, 100, 1000, 10000)], rows)}
With fewer than about a hundred queries, hashing by these settings can't be five times as fast: the call itself takes too long. Of
points in small groups, it takes longer to read a query's candidates than the tensor cores need to compare it with all points, but
for one query. From 1,000 queries on, of points in large clusters, the bytes leave room for it. Random reads, buckets and the ranking,
which are not counted, take some of that.
"""


def report_cpu(record):
    rows = []
    for c in record["cases"]:
        a, b = c["report"]["seconds"], c["gnomon"]["seconds"]
        cells = [f"{c['n']:,}", c["d"], c["l1"], c["l2"]]
        for step in ("parameters", "hashing", "build", "query"):
            cells += pair(1e3 * a[step], 1e3 * b[step])
        rows.append(cells + [figure(c["report"]["candidates"]), figure(c["gnomon"]["candidates"])])
    head = ["n", "d", "L1", "L2"]
    for step in ("parameters", "hashing", "build", f"{record['cases'][0]['queries']} queries"):
        head += [f"{step}: report", "ours", "times"]
    return table(head + ["candidates: report", "ours"], rows)


def report_gpu(content):
    rows = []
    for c in content["results"]:
        a, b = c["report"], c["gnomon"]
        rows.append([f"{c['n']:,}", c["d"], c["l1"], c["l2"]] + pair(a["parameters_ms"], b["parameters_ms"]) +
                    pair(a["hashing_ms"], b["hashing_ms"]) + pair(a["hashing_moved_ms"], b["hashing_moved_ms"]) +
                    pair(a["hashing_moved_ms"] + a["table_ms"], b["table_ms"]) + pair(a["query_ms"], b["query_ms"]))
    head = ["n", "d", "L1", "L2"]
    for step in ("parameters", "hashing there", "with transfers", "build", "1000 queries"):
        head += [f"{step}: report", "ours", "times"]
    return table(head, rows)


def make():
    cpu, gpus = load("report-cpu.json"), gpu_records()
    if cpu is None and not any("lsh" in programs or "report" in programs for programs in gpus.values()):
        return
    text = """# Hashing

Hashing and tables on GPUs ([lsh.md](../reference/lsh.md)), and the two pipelines of a report on LSH for nearest neighbours (El Kazdam &
Faraj 2025) again, beside ours.
"""
    for programs in gpus.values():
        if "lsh" in programs:
            text += on_gpu(programs["lsh"])
        record = load("lsh-bytes.json")
        if record and "search" in programs and "H200" in programs["search"]["gpu"]:
            text += index_queries(record, programs["search"])
    text += """
## The report's pipelines

They are written from its description, in its plain form, in `bench/report/` and `bench/papers/report.cu`: fp64 throughout, hash
functions ⌊(a·x + b)/w⌋ with a stored, a first level of buckets by the values of L1 functions and inside it a second by those of
L2, in nested ordered maps; on the GPU a kernel and a wait a function for the parameters and a thread a point for all of its
hashes, the maps on the host. Ours is an index of one table with L1 broad and L2 fine functions. 'Build' is points to table, hashing
and all. Ours stores no directions: its parameters are checked settings and offsets, and the directions are made while points
are hashed. Queries are of a radius, in the query's own fine bucket, with the distances of what is found there.
"""
    if cpu is not None:
        text += (f"\n### One thread of a CPU\n\nMilliseconds, medians of {cpu['rounds']} rounds in turn, {cpu['isa']}, load average "
                 f"{cpu['load']:.1f}. `bench_report --json bench/records/report-cpu.json`.\n\n" + report_cpu(cpu))
    for gpu, programs in gpus.items():
        if "report" in programs:
            text += f"\n### {gpu}\n\nMilliseconds; our queries run on the CPU, on all its threads.\n\n" + report_gpu(programs["report"])
    pages["lsh.md"] = text
