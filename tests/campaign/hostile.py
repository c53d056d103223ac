"""Class 'files': damaged files of every format. The command ends with a documented code, in bounded memory and time; an
output is there after success alone; what checksums cover is accepted as it was or not at all; numbers are those that an
independent reader finds."""
import io
import json
import os
import shutil
import struct
import warnings

import numpy
import scipy.sparse

import seeds
from kit import digest, emptied, stream

NASTY = [0, 1, 2, 3, 7, 8, 12, 24, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
         2**53, 2**60, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [b"9223372036854775807", b"9223372036854775808", b"-1", b"0", b"1e999", b"nan", b"inf", b"1e308", b"3e38",
         b"4611686018427387904", b"99999999999999999999", b",", b"\n", b"\r\n", b"\t", b" ", b"\0", b":", b"%", b"{", b"}",
         b"[", b'"', b"1e-400", b"0x10", b"\xef\xbb\xbf", b"\xff\xfe", b"#", b"-", b"+", b".", b"1_0"]


def damage(data, rng, others):
    """One to four faults of the kinds that writers, disks and people make."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        size = len(data)
        way = rng.randrange(12)
        # headers matter more than the payload
        at = rng.randrange(min(size, 256)) if size and rng.random() < 0.5 else rng.randrange(size) if size else 0
        if way == 0 and size:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and size:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif way == 2:
            del data[at:]
        elif way == 3:
            del data[at:at + rng.choice((1, 2, 4, 8, 16, 100))]
        elif way == 4:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 4, 8, 33))))
        elif way == 5:
            length = rng.choice((1, 4, 16, 64))
            data[at:at] = data[at:at + length]
        elif way == 6:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(NASTY) % 256**width
            data[at:at + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif way == 7:
            data[at:at + rng.choice((0, 1, 2, 8))] = rng.choice(WORDS)
        elif way == 8:
            data[at:at + rng.choice((4, 16, 64))] = bytes(rng.choice((4, 16, 64)))
        elif way == 9:
            data += rng.choice((b"\0", b"\n", b"x", bytes(64), bytes(data[:64])))
        elif way == 10:
            other = rng.choice(others)
            data[at:] = other[min(at, len(other)):]
        else:  # a number in text
            digits = [i for i in range(min(size, 4096)) if 48 <= data[i] <= 57]
            if digits:
                i = rng.choice(digits)
                j = i
                while j < len(data) and 48 <= data[j] <= 57:
                    j += 1
                data[i:j] = rng.choice(WORDS[:10] + [str(rng.randrange(100)).encode()])
    return bytes(data)


def load_npy(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with numpy.errstate(all="ignore"):
            return numpy.load(io.BytesIO(data), allow_pickle=False)


def expected(kind, data):
    """The numbers that a file holds by an independent reader, or None where there is none or it refuses."""
    try:
        if kind.startswith("npy") and not kind.endswith("-gz"):
            if len(data) > 10 and data[:6] != b"\x93NUMPY":
                return None
            return load_npy(data)
        if kind == "raw":
            return numpy.frombuffer(data, "<f4").reshape(-1, 12)
        if kind in ("fvecs", "bvecs", "ivecs"):
            d = struct.unpack_from("<i", data)[0]
            width = {"fvecs": 4, "ivecs": 4, "bvecs": 1}[kind]
            step = 4 + d * width
            if d <= 0 or len(data) % step:
                return None
            rows = [data[i:i + step] for i in range(0, len(data), step)]
            if any(row[:4] != data[:4] for row in rows):
                return None
            return numpy.array([numpy.frombuffer(row[4:], {"fvecs": "<f4", "ivecs": "<i4", "bvecs": "u1"}[kind])
                                for row in rows])
        if kind in ("fbin", "u8bin", "i8bin", "f16bin"):
            n, d = struct.unpack_from("<II", data)
            values = numpy.frombuffer(data[8:], {"fbin": "<f4", "u8bin": "u1", "i8bin": "i1", "f16bin": "<f2"}[kind])
            return values.reshape(n, d)
        if kind == "idx" and data[:2] == b"\0\0":
            shape = struct.unpack_from(f">{data[3]}I", data, 4)
            types = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
            return numpy.frombuffer(data[4 + 4 * data[3]:], types[data[2]]).reshape(shape)
        if kind == "safetensors":
            start = 8 + struct.unpack_from("<Q", data)[0]
            tensors = [entry for name, entry in json.loads(data[8:start]).items() if name != "__metadata__"]
            types = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "i1", "U8": "u1", "BOOL": "u1"}
            begin, end = tensors[0]["data_offsets"]
            values = numpy.frombuffer(data[start + begin:start + end], types[tensors[0]["dtype"]])
            return values.reshape(tensors[0]["shape"]) if len(tensors) == 1 else None
        if kind in ("npz-sparse", "npz-coo"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                matrix = scipy.sparse.load_npz(io.BytesIO(data)).tocsr()
                matrix.check_format(True)
                return matrix.toarray() if matrix.shape[0] * matrix.shape[1] < 10**6 else None
    except Exception:  # whatever it does not read is not compared
        return None
    return None


def same_numbers(wanted, path):
    try:
        found = numpy.load(path)
    except Exception as error:
        return f"the output can't be read: {error}"
    if isinstance(found, numpy.lib.npyio.NpzFile):
        return None
    wanted = numpy.asarray(wanted)
    if wanted.ndim == 0 or wanted.dtype.kind not in "fiub" or wanted.size == 0:
        return None
    if wanted.ndim == 1 or wanted.ndim > 2:
        wanted = wanted.reshape(found.shape) if wanted.size == found.size else wanted
    if wanted.shape != found.shape:
        return f"shape {found.shape}, an independent reader finds {wanted.shape}"
    with numpy.errstate(all="ignore"):
        if not numpy.array_equal(wanted.astype(found.dtype), found, equal_nan=True):
            return "the numbers are not those that an independent reader finds"
    return None


def case(campaign, files, kinds, number, folder):
    """One damaged file and one run."""
    seed = f"files/{campaign.seed}/{number}"
    rng = stream(seed)
    kind = sorted(kinds)[number % len(kinds)]
    name, read = kinds[kind]
    others = [files[rng.choice(sorted(files))]]
    data = damage(files[name], rng, others)
    emptied(folder)
    if kind in STOPPED.values():
        shutil.copytree(f"{campaign.work}/seeds/stopped", folder, dirs_exist_ok=True)
        name = os.path.basename(name)
    with open(f"{folder}/{name}", "wb") as file:
        file.write(data)
    common = ["--memory", "64M", "--threads", "1", "--device", "cpu"]
    if kind in SPECIAL:
        for other in SPECIAL[kind][1]:
            shutil.copy(f"{campaign.work}/seeds/{other}", folder)
        arguments = rng.choice(SPECIAL[kind][0])
        made = {"JOIN": campaign.join, "DEDUP": campaign.dedup}.get(arguments[0])
        arguments = made if made else [a.replace("FILE", name) for a in arguments] + common
        verb = "special"
    else:
        verb = rng.choice(("convert",) * 6 + ("info", "project", "neighbors", "join", "svd", "members"))
        arguments = {"convert": ["convert", name, "out.npy", "--dense", *read],
                     "info": ["info", name, "--json", *read],
                     "members": ["convert", name, "out.csv", "--dense", *read],
                     "project": ["project", name, "-k", "1", "-o", "out.npy", *read],
                     "neighbors": ["neighbors", name, name, "-k", "1", "-o", "out.npy", *read],
                     "join": ["join", name, "--threshold", "1", "-o", "out.npy", *read],
                     "svd": ["svd", name, "-k", "1", "-o", "out.npz", *read]}[verb] + common
    result = campaign.run(arguments, folder)
    campaign.count("files", kind)
    why = campaign.verdict(result)
    left = [n for n in os.listdir(folder) if n.startswith(".") or n.endswith(".tmp")]
    output = next((f"{folder}/{n}" for n in OUTPUTS if os.path.exists(f"{folder}/{n}")), None)
    if why is None and left:
        why = f"leftovers: {left}"
    if why is None and result.code not in (0, 1) and output is not None and not kind.startswith("checkpoint"):
        why = f"exit code {result.code} and an output"
    if why is None and result.code == 0 and verb == "convert":
        if output is None:
            why = "exit code 0 and no output"
        elif kind in campaign.sound and digest(output) != campaign.sound[kind] and data.startswith(CHECKED[kind]):
            why = "accepted, though its checksums can't hold, with other numbers"
        else:
            wanted = expected(kind, data)
            why = None if wanted is None else same_numbers(wanted, output)
    if why is None and kind.startswith("checkpoint") and result.code == 0 and digest(f"{folder}/out.csv") != campaign.sound["checkpoint"]:
        why = "a damaged checkpoint was taken, and the pairs are others"
    if why is None and kind in STOPPED.values() and result.code == 0 and digest(f"{folder}/out.jsonl") != campaign.sound["stopped"]:
        why = "a damaged checkpoint was taken, and the documents are others"
    if why is None and kind in ("index", "index-centres", "index-weights", "index-sparse") and verb == "special" and arguments[1] in ("add", "remove", "compact") and result.code == 0:
        check = campaign.run(["index", "check", "out.lsh"], folder)
        was = campaign.run(["index", "check", name], folder)
        if was.code != 0 and check.code == 0:
            why = "a damaged index was written anew as a sound one"
    if why is not None:
        campaign.violate("files", f"{kind} {verb}", why, arguments, folder, seed, result)


# A gzip member's CRC covers its content alone, so that these begin as one: what follows is not free to be another format.
OUTPUTS = ("out.npy", "out.npz", "out.csv", "out.lsh", "out.jsonl", "out.txt", "out.sig")
CHECKED = {"npy-gz": b"\x1f\x8b", "csv-gz": b"\x1f\x8b", "fvecs-gz": b"\x1f\x8b", "idx-gz": b"\x1f\x8b"}

DEDUP = [["dedup", "FILE", "--field", "body", "--id", "id", "-o", "out.jsonl"],
         ["dedup", "FILE", "--field", "body", "--skip-bad", "--fold-case", "--punctuation", "drop-all", "-o", "out.jsonl"],
         ["dedup", "FILE", "--field", "body", "--skip-bad", "--text", "json", "--exact", "-o", "out.jsonl"],
         ["dedup", "FILE", "--field", "body", "--id", "id", "--skip-bad", "--against", "docs.sig", "-o", "out.jsonl"],
         ["dedup", "FILE", "--field", "body", "--skip-bad", "--text", "json", "--exact", "--parts", "lines", "-o", "out.jsonl"],
         ["dedup", "FILE", "--field", "body", "--id", "id", "--skip-bad", "--sign", "out.sig"]]
STOPPED = {"": "stopped", ".documents": "stopped-documents", ".pairs": "stopped-pairs"}
SPECIAL = {  # kind: command lines, files that must lie beside
    "index": ([["index", "query", "FILE", "one.npy", "-k", "2", "-o", "out.npz"], ["index", "check", "FILE"],
               ["index", "info", "FILE"], ["index", "add", "FILE", "one.npy", "-o", "out.lsh"],
               ["index", "remove", "FILE", "ids.npy", "-o", "out.lsh"], ["index", "compact", "FILE", "-o", "out.lsh"],
               ["neighbors", "one.npy", "--index", "FILE", "-k", "2", "-o", "out.npz"]], ["one.npy", "ids.npy"]),
    "index-centres": ([["index", "query", "FILE", "x.npy", "-k", "2", "--probes", "3", "-o", "out.npz"], ["index", "check", "FILE"],
                       ["index", "info", "FILE"], ["index", "add", "FILE", "one.npy", "-o", "out.lsh"],
                       ["index", "remove", "FILE", "ids.npy", "-o", "out.lsh"], ["index", "compact", "FILE", "-o", "out.lsh"],
                       ["neighbors", "one.npy", "--index", "FILE", "-k", "2", "-o", "out.npz"]], ["x.npy", "one.npy", "ids.npy"]),
    "index-coded": ([["index", "query", "FILE", "one.npy", "-k", "2", "-o", "out.npz"], ["index", "check", "FILE"],
                     ["index", "query", "FILE", "one.npy", "-k", "2", "--recall", "0.5", "-o", "out.npz"], ["index", "info", "FILE"],
                     ["neighbors", "one.npy", "--index", "FILE", "-k", "2", "-o", "out.npz"]], ["one.npy"]),
    "index-weights": ([["index", "query", "FILE", "sparse.npz", "-k", "2", "-o", "out.npz"], ["index", "check", "FILE"],
                       ["index", "add", "FILE", "sparse.npz", "-o", "out.lsh"],
                       ["index", "remove", "FILE", "ids.npy", "-o", "out.lsh"], ["index", "compact", "FILE", "-o", "out.lsh"],
                       ["neighbors", "sparse.npz", "--index", "FILE", "-k", "2", "-o", "out.npz"]], ["sparse.npz", "ids.npy"]),
    "index-sparse": ([["index", "query", "FILE", "sparse.npz", "-k", "2", "-o", "out.npz"], ["index", "check", "FILE"],
                      ["index", "info", "FILE"], ["index", "add", "FILE", "sparse.npz", "-o", "out.lsh"],
                      ["index", "remove", "FILE", "ids.npy", "-o", "out.lsh"], ["index", "compact", "FILE", "-o", "out.lsh"],
                      ["neighbors", "sparse.npz", "--index", "FILE", "-k", "2", "-o", "out.npz"]], ["sparse.npz", "ids.npy"]),
    "factors": ([["transform", "FILE", "x.npy", "-o", "out.npy"], ["transform", "FILE", "scores.npy", "--inverse", "-o", "out.npy"],
                 ["transform", "FILE", "x.npy", "--whiten", "-o", "out.npy"]], ["x.npy", "scores.npy"]),
    "descriptor": ([["operator", "--load-operator", "FILE", "--rows", "0:1", "--cols", "0:2", "-o", "out.npy"],
                    ["project", "x.npy", "--load-operator", "FILE", "-o", "out.npy"],
                    ["operator", "--load-operator", "FILE", "--describe"]], ["x.npy"]),
    "model": ([["project", "x.npy", "-k", "3", "--operator", "auto", "--model", "FILE", "-o", "out.npy"]], ["x.npy"]),
    "checkpoint": ([["JOIN"]], ["kept.pairs"]),  # of the same file, whose place and time it knows
    "checkpoint-pairs": ([["JOIN"]], ["kept"]),
    "stopped": ([["DEDUP"]], []), "stopped-documents": ([["DEDUP"]], []), "stopped-pairs": ([["DEDUP"]], []),
    "documents": (DEDUP, ["docs.sig"]), "documents-gz": (DEDUP, ["docs.sig"]), "documents-zst": (DEDUP, ["docs.sig"]),
    "lines": ([["dedup", "FILE", "-o", "out.txt"], ["dedup", "FILE", "--exact", "--skip-bad", "-o", "out.txt"],
               ["dedup", "FILE", "--skip-bad", "--containment", "--weighted", "-o", "out.txt"],
               ["dedup", "FILE", "--skip-bad", "--char-ngram", "5", "--normalize", "nfkc", "-o", "out.txt"]], []),
    "signatures": ([["dedup", "FILE", "docs.sig", "--merge", "--ids", "out.csv"], ["dedup", "FILE", "--merge", "--sign", "out.sig"],
                    ["dedup", "docs.jsonl", "--field", "body", "--against", "FILE", "-o", "out.jsonl"]], ["docs.sig", "docs.jsonl"]),
    "names": ([["neighbors", "x.npy", "one.npy", "-k", "2", "--names", "FILE", "-o", "out.csv"]], ["x.npy", "one.npy"]),
    "text": ([["join", "FILE", "--text", "lines", "-t", "0.3", "-o", "out.csv"]], []),
}


def prepare(campaign):
    """Makes the sound files; returns {name: bytes}, {kind: (name, options)}."""
    folder = emptied(f"{campaign.work}/seeds")
    kinds = seeds.make(campaign, folder)
    campaign.sound = {}
    for kind in CHECKED:
        if kind in kinds:
            name, read = kinds[kind]
            result = campaign.run(["convert", name, "sound.npy", "--dense", "--quiet", *read], folder)
            if result.code == 0:
                campaign.sound[kind] = digest(f"{folder}/sound.npy")
                os.remove(f"{folder}/sound.npy")
    for kind, name in (("index", "x.lsh"), ("index-centres", "c.lsh"), ("index-weights", "w.lsh"), ("index-sparse", "s.gnx"), ("index-coded", "x.rbq"), ("factors", "factors.npz"),
                       ("descriptor", "operator.json"), ("model", "model.json"), ("text", "lines.txt"),
                       ("documents", "docs.jsonl"), ("documents-gz", "docs.jsonl.gz"), ("documents-zst", "docs.jsonl.zst"),
                       ("lines", "docs.txt"), ("signatures", "more.sig"), ("names", "names.txt")):
        if os.path.exists(f"{folder}/{name}"):
            kinds[kind] = (name, [])
    campaign.join = seeds.checkpoint(campaign, folder) if campaign.faults else None
    if campaign.join:
        for name in ("kept", "kept.pairs"):
            shutil.copy(f"{folder}/interrupted/{name}", folder)
        kinds["checkpoint"], kinds["checkpoint-pairs"] = ("kept", []), ("kept.pairs", [])
        result = campaign.run([a for a in campaign.join if a not in ("--checkpoint", "kept")], folder)
        campaign.sound["checkpoint"] = digest(f"{folder}/out.csv") if result.code == 0 else None
    campaign.dedup = seeds.dedup_checkpoint(campaign, folder) if campaign.faults else None
    if campaign.dedup:
        result = campaign.run([a for a in campaign.dedup if a not in ("--checkpoint", "kept")], folder)
        campaign.sound["stopped"] = digest(f"{folder}/out.jsonl") if result.code == 0 else None
        for ending, kind in STOPPED.items():
            kinds[kind] = (f"stopped/kept{ending}", [])
    files = {}
    for name, _ in kinds.values():
        with open(f"{folder}/{name}", "rb") as file:
            files[name] = file.read()
    return files, kinds


def run(campaign, workers):
    files, kinds = prepare(campaign)
    workers(lambda number, folder: case(campaign, files, kinds, number, folder))
