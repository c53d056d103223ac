"""Sound files of every kind that the command reads, small, made by a seed; and the jobs that write every kind of output."""
import gzip
import io
import json
import os
import struct

import numpy
import scipy.sparse


def points(n, d, seed):
    return numpy.random.default_rng(seed).normal(size=(n, d)).astype("<f4")


# Beside what a run was asked for, what an interrupted one with --checkpoint kept may leave.
KEPT = {"kept"} | {f"kept.{ending}" for ending in ("pairs", "lock", "documents", "sets", "texts", "names", "new")}


def packed(data):
    """Bytes as a gzip stream and as a zstd stream: one frame of one stored block, since Python has no zstd."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        file.write(data)
    block = struct.pack("<I", len(data) << 3 | 1)[:3]
    return out.getvalue(), struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data)) + block + data


MEMBERS = ["--field", "body", "--id", "id"]


def documents(count, first=0):
    """Texts of which many are near others: a sentence of a number's words, with a word or none exchanged."""
    words = "the quick brown fox jumps over a lazy dog while seven wizards brew strong potions under dim light".split()
    texts = []
    for i in range(first, first + count):
        rng = numpy.random.default_rng(i // 3)
        text = list(rng.choice(words, 24))
        if i % 3:
            text[i * 7 % 24] = f"other{i % 5}"
        texts.append(" ".join(text))
    return texts


def json_lines(texts, first=0):
    """Each text as an object of a line, with a name and members that are not its text; some with escapes."""
    return "".join(json.dumps({"id": f"n{first + i:05d}", "body": text + " \u00e9\n" if i % 4 == 0 else text,
                               "of": [i, {"body": "none"}]}) + "\n" for i, text in enumerate(texts)).encode()


def corpora(campaign, folder, count):
    """Files of documents in every packing, and signature files of two parts."""
    lines = json_lines(documents(count))
    for ending, data in zip(("", ".gz", ".zst"), (lines, *packed(lines[:100000]))):
        with open(f"{folder}/docs.jsonl{ending}", "wb") as file:
            file.write(data)
    with open(f"{folder}/more.jsonl", "wb") as file:
        file.write(json_lines(documents(count, count - 10), count))
    with open(f"{folder}/docs.txt", "w") as file:
        file.writelines(text + "\n" for text in documents(count))
    for name, ending in (("docs", "sig"), ("more", "sig")):
        campaign.run(["dedup", f"{name}.jsonl", *MEMBERS, "--sign", f"{name}.{ending}", "--quiet"],
                     folder)


def make(campaign, folder):
    """Fills the folder; returns {kind: (name, options that read it)} of the files to damage."""
    x = points(24, 12, 1)
    numpy.save(f"{folder}/x.npy", x)
    numpy.save(f"{folder}/x8.npy", x.astype("<f8"))
    numpy.save(f"{folder}/fortran.npy", numpy.asfortranarray(x))
    numpy.save(f"{folder}/cube.npy", points(24, 12, 2).reshape(6, 4, 12))
    numpy.savez(f"{folder}/x.npz", x=x)
    numpy.savez_compressed(f"{folder}/deflated.npz", x=x)
    bytes_ = (numpy.abs(x) * 40).astype("u1")
    numpy.save(f"{folder}/bytes.npy", bytes_)
    sparse = scipy.sparse.random(24, 40, 0.2, format="csr", dtype="f4", random_state=3)
    scipy.sparse.save_npz(f"{folder}/sparse.npz", sparse)
    scipy.sparse.save_npz(f"{folder}/coo.npz", sparse.tocoo())
    with open(f"{folder}/x.idx", "wb") as file:
        file.write(bytes([0, 0, 13, 2]) + struct.pack(">II", *x.shape) + x.astype(">f4").tobytes())
    with open(f"{folder}/x.raw", "wb") as file:
        file.write(x.tobytes())
    with open(f"{folder}/lines.txt", "w") as file:
        for i in range(40):
            file.write(f"the {i % 7} brown fox jumps over the lazy dog number {i // 3} of them all\n")
    kinds = {"npy": ("x.npy", []), "npy-fortran": ("fortran.npy", []), "npy-cube": ("cube.npy", []),
             "npz": ("x.npz", []), "npz-deflated": ("deflated.npz", []), "npz-sparse": ("sparse.npz", []),
             "npz-coo": ("coo.npz", []), "idx": ("x.idx", []),
             "raw": ("x.raw", ["--format", "raw", "--shape", "?,12", "--dtype", "f4"])}

    def converted(kind, source, name, *options, read=()):
        result = campaign.run(["convert", source, name, "--quiet", *options], folder)
        if result.code == 0:
            kinds[kind] = (name, list(read))

    converted("csv", "x.npy", "x.csv", read=["--format", "csv"])
    converted("tsv", "x.npy", "x.tsv", read=["--format", "tsv"])
    converted("fvecs", "x.npy", "x.fvecs")
    converted("bvecs", "bytes.npy", "x.bvecs")
    converted("ivecs", "bytes.npy", "x.ivecs", "--output-dtype", "i4")
    converted("fbin", "x.npy", "x.fbin")
    converted("u8bin", "bytes.npy", "x.u8bin")
    converted("i8bin", "bytes.npy", "x.i8bin", "--output-dtype", "i1")
    converted("f16bin", "x.npy", "x.f16bin", "--output-dtype", "f2")
    converted("hdf5", "x.npy", "x.h5")
    converted("safetensors", "x.npy", "x.safetensors")
    converted("mtx", "sparse.npz", "x.mtx")
    converted("svmlight", "sparse.npz", "x.svm", "--output-format", "svmlight", read=["--format", "svmlight"])
    for kind in ("npy", "csv", "fvecs", "idx", "svmlight", "mtx"):
        if kind not in kinds:
            continue
        name, read = kinds[kind]
        with open(f"{folder}/{name}", "rb") as file:
            data = file.read()
        with open(f"{folder}/{name}.gz", "wb") as file:
            file.write(packed(data)[0])
        kinds[f"{kind}-gz"] = (f"{name}.gz", read)
    campaign.run(["index", "build", "x.npy", "-o", "x.lsh", "--metric", "l2", "--tables", "3", "--functions", "3",
                  "--width", "2", "--quiet"], folder)
    campaign.run(["index", "build", "x.npy", "-o", "c.lsh", "--family", "k-means", "--centres", "4", "--quiet"], folder)
    campaign.run(["index", "build", "sparse.npz", "-o", "w.lsh", "--metric", "weighted-jaccard", "--tables", "3",
                  "--functions", "2", "--quiet"], folder)
    campaign.run(["index", "build", "sparse.npz", "-o", "s.gnx", "--metric", "cosine", "--quiet"], folder)
    campaign.run(["index", "build", "x.npy", "-o", "x.rbq", "--rabitq", "3", "--quiet"], folder)
    campaign.run(["svd", "x.npy", "-k", "3", "--center", "-o", "factors.npz", "--quiet"], folder)
    campaign.run(["transform", "factors.npz", "x.npy", "-o", "scores.npy", "--quiet"], folder)
    numpy.save(f"{folder}/one.npy", numpy.ones((1, 12), "<f4"))
    numpy.save(f"{folder}/ids.npy", numpy.array([[1], [5]], "<i8"))
    campaign.run(["operator", "-k", "4", "-D", "12", "--operator", "sjlt", "--save-operator", "operator.json", "-o",
                  "s.npy", "--quiet"], folder)
    with open(f"{folder}/model.json", "w") as file:
        file.write(model(campaign, folder))
    corpora(campaign, folder, 30)
    with open(f"{folder}/names.txt", "w") as file:
        file.writelines(f"point {i} \u00e9\n" for i in range(24))
    return kinds


def model(campaign, folder):
    """A cost model: the record of the project's own, when the checkout is there."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = f"{top}/bench/records/model-cpu-avx2.json"
    if os.path.exists(path):
        with open(path) as file:
            return file.read()
    return json.dumps({})


MANNERS = {"": ["--quiet"], ", words": [], ", json": ["--json"]}  # how a job reports


def jobs(campaign, folder, large, manners=("",)):
    """Everything that writes, in each manner: (name, arguments, [outputs]). Inputs lie in the folder."""
    n, d = (6000, 120) if large else (60, 20)
    x = points(n, d, 11)
    numpy.save(f"{folder}/a.npy", x)
    numpy.save(f"{folder}/few.npy", x[:7])
    numpy.save(f"{folder}/b.npy", points(n, 1, 12).astype("<f8"))
    numpy.save(f"{folder}/cube.npy", points(n, d, 13).reshape(n // 10, 10, d))
    sparse = scipy.sparse.random(n, 4 * d, 0.05, format="csr", dtype="f4", random_state=4)
    scipy.sparse.save_npz(f"{folder}/s.npz", sparse)
    numpy.save(f"{folder}/ids.npy", numpy.arange(5, dtype="<i8").reshape(5, 1))
    campaign.run(["svd", "a.npy", "-k", "4", "--center", "-o", "factors.npz", "--quiet"], folder)
    campaign.run(["transform", "factors.npz", "few.npy", "-o", "scores.npy", "--quiet"], folder)
    build = ["--metric", "l2", "--tables", "4", "--functions", "4", "--width", "4"]
    campaign.run(["index", "build", "a.npy", "-o", "base.lsh", *build, "--quiet"], folder)
    campaign.run(["index", "remove", "base.lsh", "ids.npy", "-o", "thin.lsh", "--quiet"], folder)
    campaign.run(["index", "build", "s.npz", "-o", "base.gnx", "--metric", "cosine", "--quiet"], folder)
    campaign.run(["index", "build", "a.npy", "-o", "base.rbq", "--rabitq", "3", "--quiet"], folder)
    campaign.run(["index", "remove", "base.gnx", "ids.npy", "-o", "thin.gnx", "--quiet"], folder)
    with open(f"{folder}/lines.txt", "w") as file:
        for i in range(3000 if large else 60):
            file.write(f"the {i % 7} brown fox jumps over the lazy dog number {i // 3} of {i % 11} all\n")
    with open(f"{folder}/names.txt", "w") as file:
        file.writelines(f"point {i} \u00e9\n" for i in range(n))
    corpora(campaign, folder, 3000 if large else 60)
    texts = [*MEMBERS, "--similarity", "0.5"]
    found = numpy.sort(numpy.linalg.norm(x[:50, None] - x[None, :50], axis=2)[numpy.triu_indices(50, 1)])
    near = repr(round(float(found[len(found) // (40 if large else 3)]), 3))
    result = [
        ("convert-npy", ["convert", "a.npy", "out.npy", "--order", "F"], ["out.npy"]),
        ("convert-csv", ["convert", "a.npy", "out.csv"], ["out.csv"]),
        ("convert-npz", ["convert", "a.npy", "out.npz"], ["out.npz"]),
        ("convert-hdf5", ["convert", "a.npy", "out.h5"], ["out.h5"]),
        ("convert-safetensors", ["convert", "a.npy", "out.safetensors"], ["out.safetensors"]),
        ("convert-mtx", ["convert", "s.npz", "out.mtx"], ["out.mtx"]),
        ("convert-svmlight", ["convert", "s.npz", "out.svm", "--output-format", "svmlight"], ["out.svm"]),
        ("convert-sparse", ["convert", "a.npy", "out.npz", "--sparse"], ["out.npz"]),
        ("convert-fvecs", ["convert", "a.npy", "out.fvecs"], ["out.fvecs"]),
        ("project", ["project", "a.npy", "-k", "8", "-o", "out.npy", "--save-operator", "op.json"], ["out.npy", "op.json"]),
        ("project-sparse", ["project", "s.npz", "-k", "8", "--operator", "sjlt", "-o", "out.npy"], ["out.npy"]),
        ("operator", ["operator", "-k", "64", "-D", "4000" if large else "80", "-o", "out.npy"], ["out.npy"]),
        ("neighbors", ["neighbors", "a.npy", "few.npy", "-k", "3", "-o", "out.npz"], ["out.npz"]),
        ("neighbors-ids", ["neighbors", "a.npy", "few.npy", "-k", "3", "-o", "out.npy", "--distances", "far.npy"],
         ["out.npy", "far.npy"]),
        ("join", ["join", "a.npy", "-t", near, "-o", "out.csv", "--counts", "counts.npy", "--clusters", "clusters.npy"],
         ["out.csv", "counts.npy", "clusters.npy"]),
        ("join-npz", ["join", "a.npy", "-t", near, "-o", "out.npz"], ["out.npz"]),
        ("join-text", ["join", "lines.txt", "--text", "lines", "-t", "0.2", "-o", "out.csv"], ["out.csv"]),
        ("join-checkpoint", ["join", "a.npy", "-t", near, "-o", "out.csv", "--checkpoint", "kept"], ["out.csv"]),
        ("svd", ["svd", "a.npy", "-k", "4", "-o", "out.npz"], ["out.npz"]),
        ("transform", ["transform", "factors.npz", "a.npy", "-o", "out.npy"], ["out.npy"]),
        ("transform-inverse", ["transform", "factors.npz", "scores.npy", "--inverse", "-o", "out.npy"], ["out.npy"]),
        ("lstsq", ["lstsq", "a.npy", "b.npy", "-o", "out.npy"], ["out.npy"]),
        ("hosvd", ["hosvd", "cube.npy", "--ranks", "2,2,2", "-o", "out.npz"], ["out.npz"]),
        ("index-build", ["index", "build", "a.npy", "-o", "out.lsh", *build], ["out.lsh"]),
        ("index-build-centres", ["index", "build", "a.npy", "-o", "out.lsh", "--family", "k-means"], ["out.lsh"]),
        ("index-add", ["index", "add", "base.lsh", "few.npy", "-o", "out.lsh"], ["out.lsh"]),
        ("index-remove", ["index", "remove", "base.lsh", "ids.npy", "-o", "out.lsh"], ["out.lsh"]),
        ("index-compact", ["index", "compact", "thin.lsh", "-o", "out.lsh"], ["out.lsh"]),
        ("index-query", ["index", "query", "base.lsh", "few.npy", "-k", "3", "-o", "out.npz"], ["out.npz"]),
        ("index-add-self", ["index", "add", "self.lsh", "few.npy"], ["self.lsh"]),
        ("coded-build", ["index", "build", "a.npy", "--rabitq", "3", "-o", "out.rbq"], ["out.rbq"]),
        ("coded-query", ["index", "query", "base.rbq", "few.npy", "-k", "3", "-o", "out.npz"], ["out.npz"]),
        ("inverted-build", ["index", "build", "s.npz", "--metric", "cosine", "-o", "out.gnx"], ["out.gnx"]),
        ("inverted-add", ["index", "add", "base.gnx", "s.npz", "-o", "out.gnx"], ["out.gnx"]),
        ("inverted-remove", ["index", "remove", "base.gnx", "ids.npy", "-o", "out.gnx"], ["out.gnx"]),
        ("inverted-compact", ["index", "compact", "thin.gnx", "-o", "out.gnx"], ["out.gnx"]),
        ("inverted-query", ["index", "query", "base.gnx", "s.npz", "-k", "3", "-o", "out.npz"], ["out.npz"]),
    ]
    tables = ["--ids", "ids.tsv", "--pairs", "pairs.csv", "--clusters", "clusters.tsv"]
    result += [
        ("neighbors-names", ["neighbors", "a.npy", "few.npy", "-k", "3", "--names", "names.txt", "-o", "out.csv"], ["out.csv"]),
        ("dedup-lines", ["dedup", "docs.txt", "-o", "out.txt", *tables], ["out.txt", *tables[1::2]]),
        ("dedup-json", ["dedup", "docs.jsonl", "more.jsonl", *texts, "-o", "out.jsonl", *tables], ["out.jsonl", *tables[1::2]]),
        ("dedup-gz", ["dedup", "docs.jsonl.gz", *texts, "-o", "out.jsonl", "--skip-bad"], ["out.jsonl"]),
        ("dedup-zst", ["dedup", "docs.jsonl.zst", *texts, "-o", "out.jsonl", "--skip-bad"], ["out.jsonl"]),
        ("dedup-exact", ["dedup", "docs.txt", "docs.txt", "--exact", "-o", "out.txt"], ["out.txt"]),
        ("dedup-parts", ["dedup", "docs.jsonl", "docs.jsonl", *MEMBERS, "--exact", "--parts", "lines", "--checkpoint", "kept", "-o",
                         "out.jsonl"], ["out.jsonl"]),
        ("dedup-join", ["dedup", "docs.txt", "--recall", "1", "-o", "out.txt"], ["out.txt"]),
        ("dedup-contained", ["dedup", "docs.txt", "--containment", "--weighted", "-o", "out.txt", *tables], ["out.txt", *tables[1::2]]),
        ("dedup-checkpoint", ["dedup", "docs.jsonl", *texts, "-o", "out.jsonl", "--pairs", "pairs.csv", "--checkpoint", "kept"],
         ["out.jsonl", "pairs.csv"]),
        ("dedup-sign", ["dedup", "docs.jsonl", *texts, "--sign", "out.sig"], ["out.sig"]),
        ("dedup-merge", ["dedup", "more.sig", "docs.sig", "--merge", "--sign", "out.sig", *tables], ["out.sig", *tables[1::2]]),
        ("dedup-merge-checkpoint", ["dedup", "more.sig", "docs.sig", "--merge", *tables, "--checkpoint", "kept"], tables[1::2]),
        ("dedup-against", ["dedup", "more.jsonl", *texts, "--against", "docs.sig", "-o", "out.jsonl", *tables],
         ["out.jsonl", *tables[1::2]]),
    ]
    threads = ["--threads", "2" if large else "1"]
    return [(name + manner, arguments + MANNERS[manner] + threads, outputs)
            for name, arguments, outputs in result for manner in manners]


def interrupted(campaign, place, arguments, most, leaves):
    """The arguments, when one of the first calls that fail leaves in the place what it should; else None."""
    os.makedirs(place)
    for kind in ("rename", "write", "fsync", "close"):
        for at in range(1, most):
            for name in os.listdir(place):
                os.remove(f"{place}/{name}")
            campaign.run(arguments, place, environment={
                "LD_PRELOAD": campaign.faults, "FAULT_KIND": kind, "FAULT_AT": str(at), "FAULT_EVER": "1",
                "FAULT_ERRNO": "28"}, memory=0)
            if leaves():
                return arguments
    return None


def checkpoint(campaign, folder):
    """What an interrupted join of x.npy leaves: kept and kept.pairs. None when no failing call leaves both."""
    join = ["join", f"{folder}/x.npy", "-t", "3", "-o", "out.csv", "--counts", "counts.csv", "--checkpoint", "kept",
            "--quiet", "--threads", "1"]
    place = f"{folder}/interrupted"

    def leaves():
        both = os.path.exists(f"{place}/kept") and os.path.exists(f"{place}/kept.pairs")
        return both and os.path.getsize(f"{place}/kept.pairs") > 100

    return interrupted(campaign, place, join, 30, leaves)


def dedup_checkpoint(campaign, folder):
    """What an interrupted deduplication of docs.jsonl leaves: kept and the files named as it. None when no failing call does."""
    dedup = ["dedup", f"{folder}/docs.jsonl", *MEMBERS, "--similarity", "0.5", "-o", "out.jsonl", "--pairs", "pairs.csv",
             "--checkpoint", "kept", "--quiet", "--threads", "1"]
    place = f"{folder}/stopped"

    def leaves():
        if not os.path.exists(f"{place}/kept"):
            return False
        with open(f"{place}/kept") as file:
            return bool(json.load(file).get("paired"))

    return interrupted(campaign, place, dedup, 40, leaves)
