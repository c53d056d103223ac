"""The README's table of what others take for the same work on the same cores, from the records of bench/*.py."""
from pages import between, load, table


def seconds(x):
    return f"{1e3 * x:.0f} ms" if x < 1 else f"{x:.1f} s"


def versus(job, mine, peer, name, note=""):
    return [job, seconds(mine), name, seconds(peer) + note, f"{peer / mine:.1f}×"]


def search():
    record = load("search-cpu.json")
    for c in record["cases"] if record else []:
        if c["name"] in ("the claim", "one query"):
            queries = "1 query" if c["queries"] == 1 else f"{c['queries']:,} queries"
            yield versus(f"the {c['k']} nearest, exactly: {queries}, {c['base']:,} × {c['dimensions']}, l2", c["seconds"],
                         c["faiss_seconds"], f"{record['peer']}, IndexFlatL2")


def hashing():
    record = load("lsh-cpu.json")
    cases = {c["name"]: c for c in record["cases"]} if record else {}
    if "recall 0.9" in cases and "FAISS IndexFlatL2" in cases:
        mine, peer = cases["recall 0.9"], cases["FAISS IndexFlatL2"]
        yield versus(f"the {record['k']} nearest by hashing, 0.9 guaranteed, {mine['recall']:.3f} found: {mine['queries']:,} queries, "
                     f"Fashion-MNIST, {record['base']:,} × 784", mine["queries"] / mine["queries_per_second"],
                     mine["queries"] / peer["queries_per_second"], f"{record['peer']}, IndexFlatL2")


def joins():
    record = load("join-cpu.json")
    for c in record["cases"] if record else []:
        if c["case"] == "fashion":
            job = f"pairs within {c['threshold']:g}, exactly: Fashion-MNIST, {c['points']:,} × {c['dimensions']}, {c['pairs']:,} pairs"
            yield versus(job, c["seconds"], c["sgemm_seconds"], "OpenBLAS SGEMM, tiles and a threshold", " (scaled)")
            yield versus(job, c["seconds"], c["faiss_seconds"], f"FAISS {c['faiss_version']}, range_search", " (scaled)")
        if c["case"] == "sets":
            yield versus(f"pairs of sets, Jaccard ≥ {1 - c['threshold']:g}, exactly: {c['sets']:,} sets of about "
                         f"{c['members'] // c['sets']}", c["seconds"], c["datasketch_seconds"],
                         f"datasketch {c['datasketch_version']}, MinHash LSH", " (scaled)")


def svd():
    record = load("svd-cpu.json")
    for r in record["results"] if record else []:
        facts = record["facts"]
        for mine, peer in (("gnomon", "scikit-learn, QR"), ("gnomon, one iteration, sjlt", "scikit-learn")):
            how = "one power iteration, `sjlt`" if "one" in mine else f"{facts['power']} power iterations"
            yield versus(f"SVD of rank {facts['rank']}, {facts['n']:,}², {r['matrix']} spectrum, {how}: residual "
                         f"{r[mine]['residual']:.5g}", r[mine]["seconds"], r[peer]["seconds"],
                         f"scikit-learn {facts['scikit-learn']}, randomized_svd{' with QR' if 'QR' in peer else ''}, "
                         f"{facts['power']}: {r[peer]['residual']:.5g}")


def readme(text):
    rows = [row for rows in (search(), hashing(), joins(), svd()) for row in rows]
    if not rows:
        return text
    body = ("gnomon and other libraries with the same data on the same two cores of an AMD EPYC, medians; *scaled*: measured on\n"
            "a share of the rows. More cases, including those where gnomon is not faster: [search](docs/reference/search.md),\n"
            "[lsh](docs/reference/lsh.md), [join](docs/reference/join.md), [svd](docs/reference/svd.md),\n"
            "[lstsq](docs/results/lstsq.md), [hosvd](docs/results/hosvd.md).\n\n")
    return between(text, "peers", body + table(["job", "gnomon", "peer", "its time", "ratio"], rows))
