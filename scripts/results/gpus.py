"""docs/results/gpus.md: several GPUs of one host beside one, from the record of bench/gpu/several/several.py."""
from statistics import median

from pages import load, pages, table

BARS = {"join": 1.9, "search": 1.9, "project": 1.9, "gemm": 1.9, "svd": 1.7, "sparse": 1.7, "fp64": 1.7, "hosvd": 1.7}
PLACES = {"host": "pageable host memory", "page-locked": "page-locked host memory", "GPU 0": "memory of GPU 0",
          "spread": "spread over both GPUs' memories"}
JOBS = {"join": "self-join, {n:,} × {d}, L2, pairs {pairs_are}",
        "search": "{queries:,} queries in {n:,} × {d}, k = {k}",
        "project": "`{kind}`, {n:,} × {d:,}, k = {k:,}",
        "gemm": "product, {m:,} × {k:,} by {k:,} × {n:,}",
        "svd": "SVD, {n:,} × {n:,}, rank {rank}, {power} iterations",
        "sparse": "SVD, {m:,} × {n:,}, {millions:.1f} million nonzeros, rank {rank}, {power} iterations",
        "fp64": "SVD in double precision, {n:,} × {n:,}, rank {rank}, {power} iterations",
        "hosvd": "HOSVD, {size:,}³, ranks {rank}, {power} iterations"}


def job(r):
    return JOBS[r["name"]].format(**r, pairs_are="counted" if r.get("counted") else "collected", millions=r.get("nonzeros", 0) / 1e6)


def rows(record):
    for r in record["results"]:
        if "failed" in r:
            yield [job(r), PLACES[r["place"]], "failed: " + r["failed"], "", "", "", ""]
            continue
        one, both = median(r["one"]) * 1e3, median(r["all"]) * 1e3
        shares = " and ".join(f"{share:.2f}" for share in r["shares"]) if r["shares"] else ""
        yield [job(r), PLACES[r["place"]], f"{one:.3g}", f"{both:.3g}", f"{one / both:.2f}", shares,
               "the same" if r["same_bytes"] else "OTHERS"]


def head(record):
    return [["job", "points and output in", "one GPU, ms", f"{record['gpus']} GPUs, ms", "ratio", "share of each GPU", "bytes"], list(rows(record))]


def later():
    """Factorisations that were divided later, by a record of their own."""
    record = load("gpu/several-factorisations.json")
    good = [r for r in record["results"] if "failed" not in r]
    same = all(r["same_bytes"] for r in good)
    slower = [s["parts"] / s["whole"] - 1 for s in record["segments"]]
    long = {name: next(r for r in record["results"] if r["name"] == name and r["power"] == 6 and r["place"] == "page-locked") for name in ("sparse", "fp64")}

    def ms(name, gpus, *phases):
        return f"{sum(long[name]['phases'][gpus][i] for i in phases) * 1e3:.0f}"

    tensor = next(r for r in record["results"] if r["name"] == "hosvd" and r["power"] == 0 and r["place"] == "page-locked")
    moved = 4 * tensor["size"] ** 3 / record["links"]["up_alone"][0] / 1e6
    return (
        "\n## Sparse rows, double precision, tensors\n\n"
        f"{record['gpus']} × {record['gpu']} of one host with {record['cores']} cores, commit {record['commit'][:12]}, measured as above. The bytes of "
        f"{'every result are those of one GPU' if same else 'some results DIFFER'}.\n\n"
        f"By the device's events the products of six iterations with {long['sparse']['nonzeros'] / 1e6:.0f} million nonzeros take {ms('sparse', 0, 1)} ms on one "
        f"GPU and {ms('sparse', 1, 1)} on both, those in double precision {ms('fp64', 0, 1)} and {ms('fp64', 1, 1)}. Orthonormalising, small problem and "
        f"certificate are the first GPU's alone but for the certificate's products: {ms('sparse', 1, 2, 3, 4)} and {ms('fp64', 1, 2, 3, 4)} ms. cuBLAS's product of "
        "doubles is eight products of an eighth of the rows each, for one GPU as well, since "
        f"{'the bits of the whole are others' if not any(s['same_bits'] for s in record['segments']) else 'the bits of the whole may be others'}; "
        f"called by themselves, six such products take {100 * min(slower):.0f} to {100 * max(slower):.0f} % longer in eight parts than in one.\n\n"
        "Of a HOSVD only the tensor's way from the host is divided. "
        f"Over one link that is {moved:.0f} of {median(tensor['one']) * 1e3:.0f} ms; and to divide its products each GPU would need parts of every unfolding. "
        "Tables of an index are one GPU's, least squares and sparse rows that come piece by piece the CPU's.\n\n" + table(*head(record)))


def make():
    record = load("gpu/several.json")
    links = record["links"]
    good = [r for r in record["results"] if "failed" not in r]
    reached = [r for r in good if median(r["one"]) >= BARS[r["name"]] * median(r["all"])]
    same = all(r["same_bytes"] for r in good)
    pages["gpus.md"] = (
        "# Several GPUs of one host\n\n"
        f"{record['gpus']} × {record['gpu']} of one host with {record['cores']} cores, commit {record['commit'][:12]}"
        f"{', ' + record['note'] if record.get('note') else ''} (`bench/gpu/several/several.py`). Each job on `cuda:0` and on `cuda:all`, in turns, by "
        "the host's clock from call to return; medians. Share: how long each GPU was at work, by NVML's sampling, while the job was "
        "repeated on both. Of points that are spread, the rows of each half lie on one GPU, in one range of addresses "
        "(`cuMemMap`); the one GPU has all of them in its own memory. How jobs are divided: "
        "[architecture.md](../internals/architecture.md), Several devices.\n\n"
        f"The bytes of {'every result are those of one GPU' if same else 'some results DIFFER'}. The aim is 1.9 times one GPU's speed, and 1.7 for SVD; "
        f"{len(reached)} of {len(good)} cases reach it.\n\n"
        "Why the others do not, as far as it was measured: A search of 10,000 queries takes, on each GPU and for any base, about a millisecond for "
        "the distances of a first sample, and 0.1 ms beside the products for each of ten parts of the base (by the host's clock, in a build that "
        "waits after each step). Of an SVD the first GPU makes columns orthonormal and solves the small problems alone. The host's threads copy "
        "pageable memory: 32 of them copy 94 to 160 GB/s where they have nothing else to do, but less of it arrives; why was not found. Points on "
        "GPU 0 cross the link between the GPUs twice, to be checked and to be projected; so the cheap kinds are not divided there (share 0).\n\n" +
        table(*head(record)) + later() +
        "\n## Links\n\nGB/s of copies of 512 MiB between page-locked memory and each GPU, and from GPU 0 to the others.\n\n" +
        table(["direction", "each alone", "all at once"],
              [["to the GPU", ", ".join(f"{x:.1f}" for x in links["up_alone"]), f"{links['up_together']:.1f}"],
               ["from the GPU", ", ".join(f"{x:.1f}" for x in links["down_alone"]), f"{links['down_together']:.1f}"],
               ["GPU 0 to another", ", ".join(f"{x:.0f}" for x in links["peer"]), ""]]))
