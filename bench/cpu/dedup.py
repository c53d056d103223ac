"""gnomon dedup beside rensa and datasketch on real texts, and its work on corpora that are made to be hard.

usage: dedup.py GNOMON TEXTS [--documents 1000000] [--rounds 5] [--work FOLDER] [--output FILE.json]

TEXTS holds a text a line: Debian's package descriptions come from the lists that 'apt-get -o Acquire::Languages=en update'
leaves (*Translation-en*). All count trigrams of words, a word being a run of ASCII letters, digits and other characters
above 127, and look for Jaccard similarity 0.8. Ours is the command from the files to the kept lines, with two threads.
Peers are timed from the file to their pairs, each verified with Python's sets, in one process, with 128 permutations
(rensa: 16 bands). The other corpora have --documents texts of 60 words, drawn from 50,000:
  plain     no two alike
  planted   every tenth is an earlier one with one word changed
  template  every tenth is one text of 200 words and six others
  below     every tenth is one text of 150 words with eleven changed: of similarity 0.65 or so to one another
  copies    all the same
  one word  of one word, of a thousand
Needs the peers."""
import argparse
import importlib.metadata
import json
import os
import platform
import random
import re
import statistics
import subprocess
import time

SIMILARITY = 0.8
WORD = re.compile("[0-9A-Za-z\u0080-\U0010ffff]+")


def ngrams(text):
    words = WORD.findall(text)
    return [" ".join(words[i:i + 3]) for i in range(max(1, len(words) - 2))]


def ours(gnomon, work, path, *options):
    words = [gnomon, "dedup", path, "-o", os.path.join(work, "kept"), "--similarity", str(SIMILARITY), "--threads", "2", "--json",
             *options]
    begin, spent = time.perf_counter(), os.times().children_user + os.times().children_system
    report = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": os.times().children_user + os.times().children_system - spent,
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


def make(kind, count, path):
    draw = random.Random(1)
    names = [f"w{i}" for i in range(50000)]
    if kind == "copies":
        texts = (line for line in [" ".join(draw.choices(names, k=60))] * count)
    elif kind == "one word":
        texts = (draw.choice(names[:1000]) for _ in range(count))
    else:
        long, middle, earlier = draw.choices(names, k=200), draw.choices(names, k=150), []

        def text(i):
            words = draw.choices(names, k=60)
            if i % 10 == 9 and kind == "planted":
                words = earlier[draw.randrange(len(earlier))].split()
                words[draw.randrange(60)] = draw.choice(names)
            if i % 10 == 9 and kind == "template":
                words = long + words[:6]
            if i % 10 == 9 and kind == "below":
                words = list(middle)
                for at in draw.sample(range(150), 11):
                    words[at] = draw.choice(names)
            if kind == "planted" and i % 10 == 0:
                earlier.append(" ".join(words))
            return " ".join(words)
        texts = (text(i) for i in range(count))
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in texts)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("gnomon")
    p.add_argument("texts")
    p.add_argument("--documents", type=int, default=1_000_000)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--work", default=".")
    p.add_argument("--output")
    a = p.parse_args()
    record = {"benchmark": "dedup", "gnomon": "0.1.0", "cpu": platform.processor() or platform.machine(),
              "peers": {name: importlib.metadata.version(name) for name in ("rensa", "datasketch")}}
    with open("/proc/cpuinfo") as file:
        record["cpu"] = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    with open(a.texts, encoding="utf-8", newline="\n") as file, open(os.path.join(a.work, "texts.jsonl"), "w") as out:
        for i, line in enumerate(file):
            out.write(json.dumps({"id": i, "text": line.rstrip("\n")}, ensure_ascii=False) + "\n")
    lines = os.path.join(a.work, "texts.jsonl")
    record["texts"] = {"lines": median(a.gnomon, a.work, a.texts, a.rounds), "json": median(a.gnomon, a.work, lines, a.rounds),
                       "exact": median(a.gnomon, a.work, a.texts, a.rounds, "--recall", "1"),
                       "rensa": by_rensa(a.texts), "datasketch": by_datasketch(a.texts)}
    record["seeds"] = [ours(a.gnomon, a.work, a.texts, "--seed", str(seed))["pairs"] for seed in range(20)]
    record["corpora"] = {}
    for kind in ("plain", "planted", "template", "below", "copies", "one word") if a.documents else ():
        path = os.path.join(a.work, "corpus.txt")
        for count in (a.documents // 4, a.documents):
            make(kind, count, path)
            record["corpora"][f"{kind} {count}"] = {"kind": kind, **ours(a.gnomon, a.work, path, "--memory", "4G")}
            os.remove(path)
    text = json.dumps(record, indent=1)
    if a.output:
        with open(a.output, "w") as file:
            file.write(text + "\n")
    else:
        print(text)
    print({key: round(value["seconds"], 3) for key, value in record["texts"].items()}, "median of seeds",
          statistics.median(record["seeds"]))


main()
