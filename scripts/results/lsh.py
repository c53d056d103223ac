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
