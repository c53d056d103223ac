"""docs/results/svd.md: bench/gpu/svd.cu and bench/gpu/svd_torch.py, beside Figures 7 and 8 of Ootomo & Yokota (2023), and
bench/cpu/svd.py."""
import math

from pages import gpu_records, load, pages, plot, slug, table

PHASES = (("project_ms", "projection"), ("power_ms", "products"), ("orthonormalise_ms", "orthonormalising"),
          ("small_ms", "small problem"), ("certify_ms", "certificate"))
OVER = 10
GAIN = 3


def spectrum(matrix, n, rank):
    if matrix == "polynomial":
        return [1e6 if i < 20 else max(i - 18, 1) ** -3 for i in range(n)]
    if "s_p = " not in matrix:
        return None
    least = float(matrix.split("= ")[1])
    if matrix.startswith("linear"):
        return [max(1 - (1 - least) / rank * i, least) for i in range(n)]
    return [least ** (i / rank) for i in range(n)]


def percent(share):
    return f"{100 * share:+.2g} %" if abs(share) < 10 else f"{1 + share:.3g} times"


def times(gpu, timed):
    text, shown = "", []
    for n, power in sorted({(r["n"], r["power"]) for r in timed}):
        some = [r for r in timed if (r["n"], r["power"]) == (n, power)]
        peers = {r["who"]: r["ms"] for r in some if not r["who"].startswith("gnomon")}
        for r in some:
            name = r["who"] + (", certificate" if r.get("probes") else "")
            ours = r["who"].startswith("gnomon")
            gain = [f"{peers[p] / r['ms']:.2f}" if ours and p in peers else ""
                    for p in ("cuSOLVER gesvdr", "torch.svd_lowrank", "fp32 by libraries")]
            phases = [f"{r[key]:.2f}" if r.get("project_ms") else "" for key, _ in PHASES]
            shown.append([f"{n:,}", power, name, f"{r['ms']:.2f}"] + gain + phases + [f"{r['residual']:.4g}"])
    text += table(["n", "iterations", "who", "ms", "× gesvdr", "× torch", "× libraries"] + [name for _, name in PHASES] + ["residual"],
                  shown)
    bars, ticks = [], []
    for n, power in sorted({(r["n"], r["power"]) for r in timed}):
        for who, short in (("gnomon, fp16 entries", "gnomon"), ("fp32 by libraries", "fp32")):
            found = [r for r in timed if (r["n"], r["power"], r["who"]) == (n, power, who) and not r.get("probes")]
            if found:
                ticks.append(f"'{short} {n // 1024}Ki q={power}' {len(ticks)}")
                bars.append([found[0][key] for key, _ in PHASES[:4]])
    curves = [(PHASES[p][1], "with boxes fs solid 0.8", [(i, sum(bar[:p + 1])) for i, bar in enumerate(bars)]) for p in (3, 2, 1, 0)]
    name = f"svd-phases-{slug(gpu)}"
    text += "\n" + plot(name, f"Where the time goes, {gpu}", "", "ms", curves, key="top left",
                        more="set boxwidth 0.7\nset xtics rotate by -40 (" + ", ".join(ticks) + ")\nset xrange [-0.7:*]")
    return text


def gains(timed):
    rows = []
    for n, power in sorted({(r["n"], r["power"]) for r in timed}):
        some = {(r["who"], r.get("probes", 0)): r for r in timed if (r["n"], r["power"]) == (n, power)}
        mine = some.get(("gnomon, fp16 entries", 0))
        for peer in ("cuSOLVER gesvdr", "torch.svd_lowrank"):
            other = some.get((peer, 0))
            if mine and other:
                rows.append([f"{n:,}", power, peer, f"{other['ms'] / mine['ms']:.2f}",
                             "yes" if other["ms"] >= GAIN * mine["ms"] else "no"])
    return table(["n", "iterations", "beside", "times as fast", f"at least {GAIN}"], rows) if rows else ""


def accuracy(found):
    rows = []
    for r in found:
        s = spectrum(r["matrix"], r["n"], r["rank"])
        best = bound = ""
        if s:
            tail = math.sqrt(sum(x * x for x in s[r["rank"]:]) / sum(x * x for x in s))
            best, bound = f"{tail:.4g}", f"{tail * math.sqrt(1 + r['rank'] / (OVER - 1)):.4g}"
        rows.append([r["matrix"], f"{r['fp16']:.5g}", percent(r["fp16"] / r["plain16"] - 1), f"{r['fp32']:.5g}",
                     percent(r["fp32"] / r["plain32"] - 1), percent(r["tf32"] / r["plain32"] - 1), best, bound, f"{r['off']:.1e}"])
    return table(["matrix", "residual, fp16 entries", "beside plain", "fp32 entries", "beside plain", "plain with TF32", "best", "bound",
                  "‖I − QᵀQ‖_F / √p"], rows)


WAYS = (("wide", "Double precision", "The matrix and the vectors lie in the GPU's memory. The bound is 2 q + 2 products of this shape by DGEMM."),
        ("sparse", "Sparse rows", "Compressed rows in pageable memory of the host, whose copy to the GPU is within the time, on either side: ours with 64-bit "
         "indices, cuSPARSE's with 32-bit ones and the transpose made there; SpMM's dense sides lie by columns, as geqrf takes them. The bound is "
         "one read of the lists and of both dense sides a product, 2 q + 2 of them; but every nonzero takes a line of s numbers, out of the L2 cache "
         "where it holds them. The rest of the time is the host's check of the indices and the copy of U. The spectrum is flat: one pass "
         "loses much there, and the tolerance of 0.01 is not met."),
        ("streamed", "Larger than the GPU's memory", "The GPU may use 1 GiB; the matrix lies in page-locked memory. The bound is the copy over the link: once for the "
         "single pass, else 2 q + 3 times, one of them to scan the data."),
        ("single", "One pass or two", "The matrix lies in the GPU's memory. The bound is the products by cuBLAS in the same type: s, or for one "
         "pass 3 s + 1 columns."))


def ways(found):
    text = ""
    for part, title, words in WAYS:
        some = [r for r in found if r["part"] == part]
        if not some:
            continue
        rows = []
        for r in some:
            phases = [f"{r[key]:.2f}" if r["passes"] else "" for key, _ in PHASES[:4]]
            size = f"{r['rows']:,} × {r['cols']:,}" + (f", {r['nonzeros']:,} nonzeros" if part == "sparse" else "")
            rows.append([r["type"], size, r["rank"], r["power"], r["who"], f"{r['ms']:.1f}", f"{r['floor_ms']:.1f}",
                         f"{r['ms'] / r['floor_ms']:.2f}"] + phases + [f"{r['residual']:.5g}"])
        text += f"\n### {title}\n\n{words}\n\n" + table(
            ["type", "matrix", "rank", "iterations", "who", "ms", "bound, ms", "×"] + [name for _, name in PHASES[:4]] + ["residual"], rows)
    rows = [[r["type"], f"{r['ours_mean_ms']:.2f}", f"{r['cusparse_by_rows_ms']:.2f}", f"{r['cusparse_transpose_by_rows_ms']:.2f}",
             f"{r['cusparse_by_columns_ms']:.2f}", f"{r['read_ms']:.2f}"] for r in found if r["part"] == "sparse products"]
    if rows:
        text += ("\nOne product of these sparse rows with s columns, ms; ours is the mean over A and Aᵀ of all but the first.\n\n" + table(
            ["type", "ours", "cuSPARSE, by rows", "Aᵀ, by rows", "by columns", "one read"], rows))
    return text


CPU_RECORDS = (("svd-cpu-amx.json", "Intel Xeon with AMX"), ("svd-cpu.json", "AMD EPYC with AVX-512"))


def on_cpus():
    """bench/cpu/svd.py's records."""
    text = ""
    for name, machine in CPU_RECORDS:
        record = load(name)
        if not record:
            continue
        f = record["facts"]
        ways = [w for w in record["results"][0] if isinstance(record["results"][0][w], dict)]
        rows = [[r["matrix"], w, f"{1e3 * r[w]['seconds']:.0f}", f"{1e3 * r[w]['least_seconds']:.0f}",
                 f"{r[w]['times_faster']:.2f}", f"{r[w]['times_faster_than_qr']:.2f}", f"{r[w]['residual']:.5g}"] +
                [f"{1e3 * r[w]['phases'][p]:.0f}" if "phases" in r[w] else "" for p in
                 ("project_seconds", "power_seconds", "orthonormalise_seconds", "small_seconds", "certify_seconds")]
                for r in record["results"] for w in ways]
        text += (f"\n### {machine}\n\n{f['n']:,} × {f['n']:,} in single precision, rank {f['rank']}, {f['power']} power iterations, "
                 f"{f['threads']} threads, by turns, medians of {f['rounds']} rounds; ms. scikit-learn {f['scikit-learn']}'s "
                 "randomized_svd as it is by default and with its QR, and how many times as long each takes. Phases are of the last "
                 "round." + (f" Commit {f['commit']}." if "commit" in f else "") + "\n\n" +
                 table(["spectrum", "who", "ms", "least", "× scikit-learn", "× with QR", "residual", "projection", "products",
                        "orthonormalising", "small problem", "certificate"], rows))
    return f"\n## CPUs\n{text}" if text else ""


def make():
    text = ""
    for gpu, programs in sorted(gpu_records().items()):
        record = programs.get("svd")
        if record is None:
            continue
        timed = [r for r in record["results"] + programs.get("svd_torch", {}).get("results", []) if r["part"] == "times"]
        exact = [r for r in record["results"] if r["part"] == "accuracy"]
        found = programs.get("svd_ways", {}).get("results", [])
        text += f"\n## {gpu}\n"
        if timed:
            text += ("\n### Time\n\nn × n in single precision, rank 512, ten columns more; matrix and vectors in the GPU's memory; medians by the "
                     "host's clock, waiting for the GPU at both ends; ms. 'fp32 by libraries' is the same algorithm with cuBLAS's SGEMM and "
                     "cuSOLVER's geqrf, orgqr and gesvdj, its operator drawn beforehand; ours is drawn within the time. torch draws its own "
                     "matrix of the same law.\n\n" + times(gpu, timed) + "\n" + gains(timed))
        if exact:
            one = exact[0]
            text += (f"\n### Accuracy\n\nN = {one['n']}, p = {one['rank']}, s = {OVER}, no power iteration (Cauchy: one), means of "
                     f"{one['seeds']} seeds, residuals |A − U S Vᵀ|_F / |A|_F in double precision. 'Plain' is the same algorithm by the "
                     "libraries in fp32 with the same operator, 'with TF32' that with its products in TF32. The bound is the paper's "
                     "equation 4, of the mean.\n\n" + accuracy(exact))
        if found:
            text += ways(found)
    text += on_cpus()
    if text:
        pages["svd.md"] = ("# Singular values\n\nWhat `svd` and `svd_ways` of `bench/gpu/`, `bench/gpu/svd_torch.py` and `bench/cpu/svd.py` measured, after Figures 7 and 8 of "
                           "Ootomo & Yokota (2023). How it works: [svd.md](../reference/svd.md).\n" + text)
