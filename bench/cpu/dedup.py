"""gnomon dedup beside rensa and datasketch on real texts, and its work on corpora that are made to be hard.

usage: dedup.py make FOLDER [--documents 1000000]
       dedup.py texts GNOMON TEXTS FOLDER RECORD.json [--rounds 5]
       dedup.py corpora GNOMON FOLDER RECORD.json [--rounds 3]
       dedup.py memory GNOMON FOLDER RECORD.json

TEXTS holds a text a line: Debian's package descriptions come from the lists that 'apt-get -o Acquire::Languages=en update'
leaves (*Translation-en*). All count trigrams of words, a word being a run of ASCII letters, digits and other characters
above 127, and look for Jaccard similarity 0.8. Ours is the command from the files to the kept lines, with two threads.
Peers are timed from the file to their pairs, each verified with Python's sets, in one process, with 128 permutations
(rensa: 16 bands). RECORD.json is begun, or continued: 'runs' keeps the times of every run. The corpora in FOLDER, which 'make' fills, have --documents texts
of 60 words, drawn from 50,000, and a quarter of them:
  plain     no two alike
  planted   every tenth is an earlier one with one word changed
  template  every tenth is one text of 200 words and six others
  below     every tenth is one text of 150 words with eleven changed: of similarity 0.65 or so to one another
  copies    all the same
  one word  of one word, of a thousand
'memory' works on the larger planted corpus within several limits and compares the bytes of all outputs.
Needs NumPy, and 'texts' the peers."""
import argparse
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import tempfile
import time

SIMILARITY = 0.8
WORD = re.compile("[0-9A-Za-z\u0080-\U0010ffff]+")


def ngrams(text):
    words = WORD.findall(text)
    return [" ".join(words[i:i + 3]) for i in range(max(1, len(words) - 2))]


def ours(gnomon, work, path, *options):
    """The report, with the times and the greatest memory that the kernel counts of the process: its own, and pages of its
    temporary files that it has mapped."""
    words = [gnomon, "dedup", path, "-o", os.path.join(work, "kept"), "--similarity", str(SIMILARITY), "--threads", "2", "--json",
             *options]
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as told:
        run = subprocess.Popen(words, stdout=told)
        _, status, used = os.wait4(run.pid, 0)
        seconds = time.perf_counter() - begin
        run.returncode = os.waitstatus_to_exitcode(status)
        if run.returncode != 0:
            raise subprocess.CalledProcessError(run.returncode, words)
        told.seek(0)
        report = json.load(told)
    return {"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss * 1024,
            **{key: value for key, value in report.items() if key not in ("inputs", "output", "seconds", "gnomon", "verb")}}


def median(gnomon, work, path, rounds, *options):
    runs = sorted((ours(gnomon, work, path, *options) for _ in range(rounds)), key=lambda run: run["seconds"])
    return runs[len(runs) // 2]


def verified(sets, pairs):
    good = 0
    for i, j in pairs:
        shared = len(sets[i] & sets[j])
        good += shared >= SIMILARITY * (len(sets[i]) + len(sets[j]) - shared)
    return good


def by_rensa(path):
    from rensa import RMinHash, RMinHashLSH
    begin = time.perf_counter()
    lsh, sketches, sets = RMinHashLSH(threshold=SIMILARITY, num_perm=128, num_bands=16), [], []
    with open(path, encoding="utf-8", newline="\n") as file:
        for i, text in enumerate(file):
            grams = ngrams(text)
            sketch = RMinHash(num_perm=128, seed=42)
            sketch.update(grams)
            lsh.insert(i, sketch)
            sketches.append(sketch)
            sets.append(frozenset(grams))
    pairs = [(i, j) for i, sketch in enumerate(sketches) for j in lsh.query(sketch) if j > i]
    unverified = time.perf_counter() - begin
    good = verified(sets, pairs)
    return {"seconds": time.perf_counter() - begin, "unverified_seconds": unverified, "reported": len(pairs), "true": good}


def by_datasketch(path):
    from datasketch import MinHash, MinHashLSH
    begin = time.perf_counter()
    lsh, sets, pairs = MinHashLSH(threshold=SIMILARITY, num_perm=128), [], []
    with open(path, encoding="utf-8", newline="\n") as file:
        for i, text in enumerate(file):
            grams = ngrams(text)
            sketch = MinHash(num_perm=128)
            sketch.update_batch([gram.encode() for gram in grams])
            pairs += [(j, i) for j in lsh.query(sketch)]
            lsh.insert(i, sketch)
            sets.append(frozenset(grams))
    unverified = time.perf_counter() - begin
    good = verified(sets, pairs)
    return {"seconds": time.perf_counter() - begin, "unverified_seconds": unverified, "reported": len(pairs), "true": good}


KINDS = ("plain", "planted", "template", "below", "copies", "one word")


def corpus(work, kind, count):
    return os.path.join(work, f"{kind.replace(' ', '-')}-{count}.txt")


def make(kind, count, path):
    import numpy
    draw = numpy.random.default_rng(1)
    names = numpy.array([f"w{i}" for i in range(50000)], dtype=object)
    long, middle, same = (names[draw.integers(50000, size=size)].tolist() for size in (200, 150, 60))
    earlier = []
    with open(path, "w", encoding="utf-8") as file:
        for first in range(0, count, 10000):
            size = min(10000, count - first)
            many = names[draw.integers(50000, size=(size, 60))].tolist() if kind not in ("copies", "one word") else [same] * size
            if kind == "one word":
                many = [[word] for word in names[draw.integers(1000, size=size)]]
            for at, words in enumerate(many):
                if at % 10 == 0 and kind == "planted":
                    earlier.append(words)
                if at % 10 == 9 and kind == "planted":
                    words = list(earlier[draw.integers(len(earlier))])
                    words[draw.integers(60)] = names[draw.integers(50000)]
                if at % 10 == 9 and kind == "template":
                    words = long + words[:6]
                if at % 10 == 9 and kind == "below":
                    changed = words
                    words = list(middle)
                    for place, word in zip(draw.choice(150, 11, replace=False), changed):
                        words[place] = word
                file.write(" ".join(words) + "\n")


def texts(a, record):
    record["peers"] = {name: importlib.metadata.version(name) for name in ("rensa", "datasketch")}
    lines = os.path.join(a.folder, "texts.jsonl")
    with open(a.texts, encoding="utf-8", newline="\n") as file, open(lines, "w", encoding="utf-8") as out:
        for i, line in enumerate(file):
            out.write(json.dumps({"id": i, "text": line.rstrip("\n")}, ensure_ascii=False) + "\n")
    record["texts"] = {"lines": median(a.gnomon, a.folder, a.texts, a.rounds), "json": median(a.gnomon, a.folder, lines, a.rounds),
                       "exact": median(a.gnomon, a.folder, a.texts, a.rounds, "--recall", "1"),
                       "rensa": by_rensa(a.texts), "datasketch": by_datasketch(a.texts)}
    record.setdefault("runs", []).append({name: {key: found[key] for key in ("seconds", "cpu_seconds") if key in found}
                                          for name, found in record["texts"].items()})
    record["seeds"] = [ours(a.gnomon, a.folder, a.texts, "--seed", str(seed))["pairs"] for seed in range(20)]


def corpora(a, record):
    record["corpora"] = {}
    for kind in KINDS:
        for count in sorted(int(name[len(kind) + 1:-4]) for name in os.listdir(a.folder)
                            if name.startswith(kind.replace(" ", "-") + "-") and name.endswith(".txt")):
            found = median(a.gnomon, a.folder, corpus(a.folder, kind, count), a.rounds)
            record["corpora"][f"{kind} {count}"] = {"kind": kind, **found}


def memory(a, record):
    """The larger planted corpus within limits: all outputs have the same bytes."""
    record["memory"], first = {}, None
    path = max((corpus(a.folder, "planted", int(name[8:-4])) for name in os.listdir(a.folder) if name.startswith("planted-")),
               key=os.path.getsize)
    outputs = [os.path.join(a.folder, name) for name in ("kept", "pairs.tsv", "clusters.tsv", "ids.tsv")]
    for limit in ("64M", "256M", "1G", "8G"):
        found = ours(a.gnomon, a.folder, path, "--memory", limit, "--work", a.folder, "--pairs", outputs[1], "--clusters", outputs[2],
                     "--ids", outputs[3])
        sums = []
        for name in outputs:
            with open(name, "rb") as file:
                sums.append(hashlib.file_digest(file, "sha256").hexdigest())
        first = first or sums
        record["memory"][limit] = {**found, "same_bytes": sums == first}


def main():
    p = argparse.ArgumentParser()
    jobs = p.add_subparsers(dest="job", required=True)
    one = jobs.add_parser("make")
    one.add_argument("folder")
    one.add_argument("--documents", type=int, default=1_000_000)
    for name, rounds in (("texts", 5), ("corpora", 3), ("memory", 1)):
        one = jobs.add_parser(name)
        one.add_argument("gnomon")
        if name == "texts":
            one.add_argument("texts")
        one.add_argument("folder")
        one.add_argument("record")
        if name != "memory":
            one.add_argument("--rounds", type=int, default=rounds)
    a = p.parse_args()
    if a.job == "make":
        for kind in KINDS:
            for count in (a.documents // 4, a.documents):
                make(kind, count, corpus(a.folder, kind, count))
        return
    record = {"benchmark": "dedup", "gnomon": "0.1.0"}
    if os.path.exists(a.record):
        with open(a.record) as file:
            record = json.load(file)
    with open("/proc/cpuinfo") as file:
        record["cpu"] = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    {"texts": texts, "corpora": corpora, "memory": memory}[a.job](a, record)
    with open(a.record, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")


main()
