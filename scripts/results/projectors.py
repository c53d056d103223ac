"""docs/results/projectors.md: gnomon.torch's projectors beside fast_jl and the package sjlt on one GPU, from the records of
bench/gpu/projectors.py."""
from pages import pages, power, records, table

FAMILIES = {"rademacher": ("`rademacher`", "Random signs"), "normal": ("`gaussian`, entries of fp16", "Normal entries"),
            "sjlt 1": ("`sjlt`, 1 nonzero a column", "Sparse: 1 nonzero a column"),
            "sjlt 4": ("`sjlt`, 4 nonzeros a column", "Sparse: 4 nonzeros a column")}
TYPES = {"f32": "fp32", "f16": "fp16"}


def figure(ms):
    return f"{ms:.3g}" if ms < 1000 else f"{ms:,.0f}"


def told(r):
    """A time, or why there is none."""
    if "ms" in r:
        return figure(r["ms"])
    if "failed" in r:
        return "fails: " + r["failed"].removeprefix("CUDA error: ").split(". ")[0]
    return "left out: " + r["left_out"]


def digits(n):
    """10^7 for 10000000."""
    return f"10^{len(str(n)) - 1}" if n == 10 ** (len(str(n)) - 1) else power(n)


def best(cases):
    """The quickest of a peer's settings that gave a figure; else any."""
    timed = [r for r in cases if "ms" in r]
    return min(timed, key=lambda r: r["ms"]) if timed else cases[0]


def family(name, results):
    ours, peers = {}, {}
    for r in results:
        if r.get("family") == name:
            where = (r["d"], r["n"], r["dtype"], r["k"])
            if r["library"] == "gnomon":
                ours[where] = r
            else:
                peers.setdefault(where, []).append(r)
    rows, ratios = [], []
    for where, mine in sorted(ours.items(), key=lambda item: (item[0][0], item[0][2] == "f16", item[0][1], item[0][3])):
        d, n, dtype, k = where
        theirs = best(peers[where]) if where in peers else None
        ratio = ""
        if theirs and "ms" in theirs and "ms" in mine:
            ratios.append((theirs["ms"] / mine["ms"], where))
            ratio = f"{ratios[-1][0]:.1f}"
        wrong = theirs is not None and (theirs.get("right") is False or theirs["library"] == "fast_jl" and d * n > 2 ** 32)
        rows.append([digits(d), n, TYPES[dtype], f"{k:,}", told(mine), told(theirs) + (", wrong" if wrong and "ms" in theirs else "")
                     if theirs else "", ratio])
    return rows, ratios


def one(record):
    results = record["results"]
    versions = record["versions"]
    text = (f"\n## {record['gpu']}, {record['memory_bytes'] / 2 ** 30:.0f} GiB\n\nPyTorch {versions['torch']}, fast_jl {versions['fast_jl']}, "
            f"sjlt {versions['sjlt']}; commit {record['commit'][:9]}, {record['date']}.\n")
    for name, (ours, title) in FAMILIES.items():
        rows, ratios = family(name, results)
        if not rows:
            continue
        peer = "fast_jl" if name in ("rademacher", "normal") else "sjlt"
        text += f"\n### {title}\n\n" + table(["D", "gradients", "of", "k", f"{ours}, ms", f"{peer}, ms", "times as fast"], rows)
        if ratios:
            least, most = min(ratios), max(ratios)
            text += f"\n{least[0]:.1f} to {most[0]:.1f} times as fast as {peer}"
            slower = [where for ratio, where in ratios if ratio < 1]
            if slower:
                text += (f"; slower in {len(slower)} of {len(ratios)} cases: " +
                         ", ".join(f"{n} of D = {digits(d)} in {TYPES[dtype]} with k = {k:,}" for d, n, dtype, k in slower))
            text += ".\n"
    return text + factored(results)


def factored(results):
    text = ""
    jobs = [r for r in results if r.get("job") == "linear layer" and "ms" in r]
    if jobs:
        rows = []
        for d, n in dict.fromkeys((r["d"], r["n"]) for r in jobs):
            for k in dict.fromkeys(r["k"] for r in jobs):
                found = {r["way"]: r for r in jobs if (r["d"], r["n"], r["k"]) == (d, n, k)}
                sides = next((f"{r['k_out']} x {r['k_in']}" for r in found.values() if "k_in" in r), "")
                width = int(d ** 0.5)
                rows.append([f"{width:,} x {width:,}", n, f"{k:,} = {sides}"] +
                            [figure(found[way]["ms"]) if way in found else "" for way in
                             ("rademacher", "sjlt", "torch.bmm, fast_jl rademacher")])
        text += (f"\n### Factored gradients of a linear layer\n\nInputs and output gradients in fp16, {jobs[0]['positions']} positions a sample. "
                 "`LinearProjector` projects both sides and adds the products up; the outer product is never formed. A peer needs it "
                 "formed, by `torch.bmm`; of the larger layer it takes 2 GiB a sample and was not tried.\n\n" +
                 table(["layer", "samples", "k", "`rademacher` twice, ms", "`sjlt` twice, ms", "torch.bmm and fast_jl, ms"], rows))
    pieces = {r["library"]: r for r in results if r.get("job") == "48 tensors" and "ms" in r}
    if len(pieces) == 2:
        mine, theirs = pieces["gnomon"], pieces["fast_jl"]
        text += (f"\n### A dict of 48 tensors\n\n{mine['n']} gradients of D = {digits(mine['d'])} in fp32, k = {mine['k']:,}: `Projector` takes "
                 f"the dict as it is in {figure(mine['ms'])} ms, `torch.cat` and fast_jl take {figure(theirs['ms'])} ms.\n")
    return text


def make():
    found = [content for _, content in records("program", "gpu", "results") if content["program"] == "projectors"]
    if not found:
        return
    pages["projectors.md"] = """# Projectors of gradients beside fast_jl and sjlt

`gnomon.torch.Projector` beside fast_jl, the kernels of TRAK, and the package sjlt, on one GPU: gradients lie in its memory
as tensors of PyTorch's, and so do results. `bench/gpu/projectors.py`; medians of calls that end when the work is done. How
it is used: [python.md](../reference/python.md).

- The projections of one kind have the same distribution, not the same entries.
- fast_jl rounds gradients to fp16: its results for fp32 ones have the bits of those for rounded ones. Ours are of
  single-precision accuracy. fast_jl adds up as many partial results as the GPU has multiprocessors, in memory.
- sjlt stores the operator, 9 bytes a nonzero, so 9 GB for D = 10^9 with one a column; making it is not in the times. The
  quicker of its default of 84 blocks and of 264, twice the multiprocessors, counts. Ours stores nothing.
- *Wrong*: the projection of the batch's last gradient is not that of this gradient alone. fast_jl's index has 32 bits
  without a sign, enough for four gradients of 10^9 a call by its source; with more it reads others' coordinates, and its
  times are those of wrong results. sjlt's index has 31 bits: more than two gradients of 10^9 end with an illegal memory access, so
  it gets two a call.
- 32 gradients of 10^9 in fp32 take 119 GiB; they are of fp16.
- fast_jl and sjlt were compiled from their sources as they are, for compute capability 9.0 with CUDA 13.0.
""" + "".join(one(record) for record in found)
