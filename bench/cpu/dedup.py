"""gnomon dedup beside rensa, datasketch, text-dedup and datatrove on real texts, and its work on corpora that are made to be hard.

usage: dedup.py make FOLDER [--documents 1000000]
       dedup.py texts GNOMON TEXTS FOLDER RECORD.json [--rounds 5] [--peers rensa datasketch text-dedup datatrove]
       dedup.py judge GNOMON TEXTS FOLDER RECORD.json [--documents 50000]
       dedup.py steps BENCH_NGRAMS TEXTS RECORD.json
       dedup.py corpora GNOMON FOLDER RECORD.json [--rounds 3]
       dedup.py memory GNOMON FOLDER RECORD.json
       dedup.py large GNOMON FOLDER RECORD.json [--documents 1000000 10000000] [--memory 2G] [--note TEXT]

TEXTS holds a text a line: Debian's package descriptions come from the lists that 'apt-get -o Acquire::Languages=en update'
leaves (*Translation-en*). All count trigrams of words, a word being a run of ASCII letters, digits and other characters
above 127, and look for Jaccard similarity 0.8. Ours is the command from the files to the kept lines, with two threads.
rensa and datasketch are timed from the file to their pairs, each verified with Python's sets, in one process, with 128
permutations (rensa: 16 bands). text-dedup and datatrove, which verify nothing, are timed as commands from JSON lines to the kept
ones, with two processes and trigrams of their own words, text-dedup with 128 permutations, datatrove with its 14 bands of 8 rows;
the pairs that they join are judged afterwards. *of_exact* is the share of our pairs by the exact join that a peer lists or, of
the last two, has in one cluster. RECORD.json is begun, or continued: 'runs' keeps the times of every run. The corpora in FOLDER, which 'make' fills, have --documents texts
of 60 words, drawn from 50,000, and a quarter of them:
  plain     no two alike
  planted   every tenth is an earlier one with one word changed
  template  every tenth is one text of 200 words and six others
  below     every tenth is one text of 150 words with eleven changed: of similarity 0.65 or so to one another
  copies    all the same
  one word  of one word, of a thousand
'judge' compares all pairs of the first documents by products of SciPy's sparse matrices, of sets, of counts and by
containment, and the command's pairs of 20 seeds with them; and each pair of the whole text is computed again from Python's sets.
'steps' keeps what bench_ngrams (bench/cpu/ngrams.c) prints. 'memory' works on the larger planted corpus within several limits and compares the bytes of all outputs.
'large' tells what a document costs within a memory limit. Texts have 200 words, drawn from 50,000 (7 bytes each with the
space), in blocks of 20,000: of each block every tenth text, from the tenth on, is the one five before it with one word replaced,
which gives a similarity of 0.97 or more. A block's numbers come from NumPy's generator with the number of its first text as the
seed. For each size the file is made in FOLDER, which needs room for it and 1.2 times as much, and read once, so that as much
of it as there is room for is in the page cache; then the command runs with --ids and -o into a pipe, of which SHA-256 is
taken. Recorded are seconds, processor seconds, the most memory and temporary bytes (files without a name that the process holds),
and the machine's mean load. Then the texts are made again: the ids may lack texts with a replaced word alone, and the output
must be the texts of the ids.
Needs NumPy, 'judge' SciPy, and 'texts' the peers."""
import argparse
import collections
import glob
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
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


def near(a, b):
    shared = len(a & b)
    return shared > 0 and shared / (len(a) + len(b) - shared) >= SIMILARITY


def verified(sets, pairs):
    return sum(near(sets[i], sets[j]) for i, j in pairs)


def share(exact, found):
    return sum(pair in found for pair in exact) / len(exact)


def listed(gnomon, work, path):
    """Our pairs by the exact join."""
    table = os.path.join(work, "exact.tsv")
    ours(gnomon, work, path, "--recall", "1", "--pairs", table)
    with open(table, encoding="utf-8") as file:
        return [tuple(int(number) for number in line.split("\t")[:2]) for line in file if line[0].isdigit()]


def by_rensa(path, exact):
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
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "unverified_seconds": unverified, "reported": len(pairs), "true": good,
            "of_exact": share(exact, {(min(pair), max(pair)) for pair in pairs})}


def by_datasketch(path, exact):
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
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "unverified_seconds": unverified, "reported": len(pairs), "true": good,
            "of_exact": share(exact, {(min(pair), max(pair)) for pair in pairs})}


def text_dedup(source, out):
    """In a process of its own: the command, which also tells which pairs it joins."""
    from text_dedup import minhash
    pairs, union = set(), minhash.uf.union

    def joined(x, y):
        pairs.add((y, x))
        union(x, y)
    minhash.uf.union = joined
    minhash.main(["--path", "json", "--data_files", source, "--split", "train", "--column", "text", "--output", os.path.join(out, "kept"),
                  "--cache_dir", os.path.join(out, "cache"), "--ngram", "3", "--min_length", "1", "--threshold", str(SIMILARITY),
                  "--num_perm", "128", "--num_proc", "2"], standalone_mode=False)
    with open(os.path.join(out, "pairs"), "wb") as file:
        for i, j in pairs:
            file.write(struct.pack("<2I", i, j))


def datatrove(source, out):
    """In a process of its own: the four steps of its pipeline, on two files."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.dedup import minhash
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    config = minhash.MinhashConfig(n_grams=3)
    signatures, buckets, remove = (os.path.join(out, name) for name in ("signatures", "buckets", "remove"))
    for number, (tasks, steps) in enumerate((
            (2, [JsonlReader(source), minhash.MinhashDedupSignature(signatures, config)]),
            (config.num_buckets, [minhash.MinhashDedupBuckets(signatures, buckets, config=config)]),
            (1, [minhash.MinhashDedupCluster(buckets, remove, config=config)]),
            (2, [JsonlReader(source), minhash.MinhashDedupFilter(remove), JsonlWriter(os.path.join(out, "kept"), compression=None)]))):
        LocalPipelineExecutor(steps, tasks=tasks, workers=min(2, tasks), logging_dir=os.path.join(out, f"log-{number}")).run()


def by_command(name, source, work, texts, exact, pairs_of):
    """One of the two above from its start to its end, and the pairs that it joined."""
    out = os.path.join(work, name)
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    begin = time.perf_counter()
    with open(os.path.join(out, "told"), "w") as told:
        subprocess.run([sys.executable, os.path.abspath(__file__), name, source, out], stdout=told, stderr=told, check=True)
    seconds = time.perf_counter() - begin
    pairs = pairs_of(out)
    parents = list(range(len(texts)))

    def root(i):
        while parents[i] != i:
            parents[i] = parents[parents[i]]
            i = parents[i]
        return i
    for i, j in pairs:
        parents[root(j)] = root(i)
    good = sum(near(frozenset(ngrams(texts[i])), frozenset(ngrams(texts[j]))) for i, j in pairs)
    return {"seconds": seconds, "reported": len(pairs), "true": good, "of_exact": sum(root(i) == root(j) for i, j in exact) / len(exact)}


def pairs_of_text_dedup(out):
    with open(os.path.join(out, "pairs"), "rb") as file:
        return {pair for pair in struct.iter_unpack("<2I", file.read()) if pair[0] != pair[1]}


def pairs_of_datatrove(out, half):
    pairs = set()
    for name in glob.glob(os.path.join(out, "buckets", "*.dups")):
        with open(name, "rb") as file:
            for file_1, document_1, file_2, document_2 in struct.iter_unpack("<4I", file.read()):
                pairs.add((file_1 * half + document_1, file_2 * half + document_2))
    return pairs


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
    record["peers"] = {name: importlib.metadata.version(name) for name in ("rensa", "datasketch", "text-dedup", "datatrove")}
    lines, halves = os.path.join(a.folder, "texts.jsonl"), os.path.join(a.folder, "halves")
    with open(a.texts, encoding="utf-8", newline="\n") as file:
        documents = [line.rstrip("\n") for line in file]
    half = (len(documents) + 1) // 2
    os.makedirs(halves, exist_ok=True)
    with open(lines, "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"id": i, "text": text}, ensure_ascii=False) + "\n" for i, text in enumerate(documents))
    for part in range(2):
        with open(os.path.join(halves, f"{part}.jsonl"), "w", encoding="utf-8") as out:
            out.writelines(json.dumps({"id": i, "text": documents[i]}, ensure_ascii=False) + "\n"
                           for i in range(part * half, min((part + 1) * half, len(documents))))
    exact = listed(a.gnomon, a.folder, a.texts)

    def once(name):
        if name in ("lines", "json", "exact"):
            return median(a.gnomon, a.folder, lines if name == "json" else a.texts, a.rounds, *(["--recall", "1"] if name == "exact" else []))
        if name in ("rensa", "datasketch"):
            return (by_rensa if name == "rensa" else by_datasketch)(a.texts, exact)
        if name == "text-dedup":
            return by_command(name, lines, a.folder, documents, exact, pairs_of_text_dedup)
        return by_command(name, halves, a.folder, documents, exact, lambda out: pairs_of_datatrove(out, half))
    found = {name: once(name) for name in ["lines", "json", "exact"] + a.peers}
    # before and after the peers: the slower one
    again = once("lines")
    found["lines"] = max(found["lines"], again, key=lambda run: run["seconds"])
    record.setdefault("texts", {}).update(found)
    record.setdefault("runs", []).append({name: {key: one[key] for key in ("seconds", "cpu_seconds") if key in one}
                                          for name, one in found.items()})
    record["seeds"] = [ours(a.gnomon, a.folder, a.texts, "--seed", str(seed))["pairs"] for seed in range(20)]


def members_of(text, weighted):
    """The n-grams; weighted: the k-th occurrence of one is another."""
    grams = ngrams(text)
    if not weighted:
        return frozenset(grams)
    return frozenset((gram, k) for gram, count in collections.Counter(grams).items() for k in range(count))


def all_near(sets, contained):
    """Near pairs of distinct sets i < j, numbers of their first documents, and the similarity; equal ones with the first."""
    import numpy
    import scipy.sparse
    near, first, places, columns, ends, rows = {}, {}, {}, [], [0], []
    for i, one in enumerate(sets):
        if first.setdefault(one, i) < i:
            near[first[one], i] = 1.0
            continue
        rows.append(i)
        columns += [places.setdefault(member, len(places)) for member in one]
        ends.append(len(columns))
    matrix = scipy.sparse.csr_array((numpy.ones(len(columns), numpy.int32), columns, ends), shape=(len(rows), len(places)))
    sizes, rows, turned = numpy.diff(ends), numpy.array(rows), matrix.T.tocsr()
    for begin in range(0, len(rows), 500):
        shared = (matrix[begin:begin + 500] @ turned).tocoo()
        i, j, count = shared.row + begin, shared.col, shared.data
        due = numpy.minimum(sizes[i], sizes[j]) if contained else sizes[i] + sizes[j] - count
        for at in numpy.flatnonzero((i < j) & (count / due >= SIMILARITY)):
            near[int(rows[i[at]]), int(rows[j[at]])] = float(count[at] / due[at])
    return near


def table_of(gnomon, work, path, *options):
    table = os.path.join(work, "judged.tsv")
    ours(gnomon, work, path, "--pairs", table, *options)
    with open(table, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file][1:]
    return {(int(row[0]), int(row[1])): float(row[2]) for row in rows}


def judge(a, record):
    with open(a.texts, encoding="utf-8", newline="\n") as file:
        texts = [line.rstrip("\n") for line in file]
    some = os.path.join(a.folder, "some.txt")
    with open(some, "w", encoding="utf-8") as file:
        file.writelines(text + "\n" for text in texts[:a.documents])
    record["judged"] = {}
    for name, options, seeds, weighted, contained in (("sets", [], 20, False, False), ("counts", ["--weighted"], 20, True, False),
                                                      ("containment", ["--containment"], 0, False, True),
                                                      ("containment of counts", ["--containment", "--weighted"], 0, True, True)):
        sets = [members_of(text, weighted) for text in texts]
        near = all_near(sets[:a.documents], contained)
        runs = [table_of(a.gnomon, a.folder, some, *options, *(["--seed", str(seed)] if seeds > 0 else [])) for seed in range(max(seeds, 1))]
        wrong = sum(near.get(pair) != value for pairs in runs for pair, value in pairs.items())
        whole = table_of(a.gnomon, a.folder, a.texts, *options)
        for (i, j), value in whole.items():
            shared = len(sets[i] & sets[j])
            wrong += value != shared / (min(len(sets[i]), len(sets[j])) if contained else len(sets[i]) + len(sets[j]) - shared) or \
                value < SIMILARITY
        record["judged"][name] = {"documents": min(a.documents, len(texts)), "near": len(near), "wrong": wrong, "checked": len(whole),
                                  "seeds": seeds, "found": [len(pairs) for pairs in runs]}
        print(name, record["judged"][name])


def steps(a, record):
    record["steps"] = json.loads(subprocess.run([a.gnomon, a.texts], stdout=subprocess.PIPE, check=True).stdout)


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


LARGE_BLOCK, LARGE_WORDS, LARGE_VOCABULARY, LARGE_EACH, LARGE_BACK = 20_000, 200, 50_000, 10, 5


def large_block(first, count, names):
    """Texts as rows of bytes, and which of them have a replaced word."""
    import numpy
    draw = numpy.random.default_rng(first)
    words = draw.integers(0, LARGE_VOCABULARY, (count, LARGE_WORDS))
    planted = numpy.arange(LARGE_EACH - 1, count, LARGE_EACH)
    words[planted] = words[planted - LARGE_BACK]
    words[planted, draw.integers(0, LARGE_WORDS, len(planted))] = draw.integers(0, LARGE_VOCABULARY, len(planted))
    texts = names[words].view("u1").reshape(count, LARGE_WORDS * 7)
    texts[:, -1] = ord("\n")
    return texts, planted


def large_blocks(documents):
    import numpy
    names = numpy.array([b"w%05d " % i for i in range(LARGE_VOCABULARY)], dtype="S7")
    for first in range(0, documents, LARGE_BLOCK):
        yield first, *large_block(first, min(LARGE_BLOCK, documents - first), names)


class Watch(threading.Thread):
    """The most bytes in files without a name that a process holds, and the load of the machine."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.most, self.loads, self.done = pid, 0, [], threading.Event()

    def run(self):
        while not self.done.wait(0.2):
            held = 0
            try:
                for name in os.listdir(f"/proc/{self.pid}/fd"):
                    file = os.stat(f"/proc/{self.pid}/fd/{name}")
                    if stat.S_ISREG(file.st_mode) and file.st_nlink == 0:
                        held += file.st_blocks * 512
            except OSError:
                continue
            self.most = max(self.most, held)
            self.loads.append(os.getloadavg()[0])


def large_run(gnomon, path, ids, memory, work):
    words = [gnomon, "dedup", path, "-o", "-", "--ids", ids, "--memory", memory, "--work", work, "--threads", "2"]
    begin, output, size = time.perf_counter(), hashlib.sha256(), 0
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        watch = Watch(process.pid)
        watch.start()
        while piece := process.stdout.read(1 << 20):
            output.update(piece)
            size += len(piece)
        told = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        watch.done.set()
        watch.join()
    if process.returncode != 0:
        raise RuntimeError(told)
    return {"seconds": seconds, "user_seconds": used.ru_utime, "system_seconds": used.ru_stime, "peak_bytes": used.ru_maxrss * 1024,
            "temporary_bytes": watch.most, "load": sum(watch.loads) / max(1, len(watch.loads)), "kept_bytes": size}, output.hexdigest()


def large_judge(documents, ids, digest):
    """How many texts were planted, kept, and kept though planted; whether the output is what the ids say."""
    import numpy
    kept = numpy.zeros(documents, dtype=bool)
    with open(ids, "rb") as file:
        next(file)
        for line in file:
            kept[int(line[:line.index(b"\t")])] = True
    output, planted, missed, wrong = hashlib.sha256(), 0, 0, 0
    for first, texts, these in large_blocks(documents):
        here = kept[first:first + len(texts)]
        planted += len(these)
        missed += int(here[these].sum())
        wrong += int((~here).sum()) - int((~here[these]).sum())
        output.update(texts[here].tobytes())
    return {"planted": planted, "kept": int(kept.sum()), "missed": missed, "wrong": wrong, "output_as_ids": output.hexdigest() == digest}


def large(a, record):
    path, ids = (os.path.join(a.folder, name) for name in ("large.txt", "large-ids.tsv"))
    results = []
    for documents in a.documents:
        try:
            with open(path, "wb") as file:
                for _, texts, _ in large_blocks(documents):
                    file.write(texts.tobytes())
            subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
            found, digest = large_run(a.gnomon, path, ids, a.memory, a.folder)
            size = os.path.getsize(path)
            os.remove(path)
            results.append({"documents": documents, "bytes": size, **found, **large_judge(documents, ids, digest)})
        finally:
            for name in (path, ids):
                if os.path.exists(name):
                    os.remove(name)
    record["large"] = {"words": LARGE_WORDS, "memory": a.memory, "note": a.note, "results": results}


def main():
    if len(sys.argv) == 4 and sys.argv[1] in ("text-dedup", "datatrove"):
        (text_dedup if sys.argv[1] == "text-dedup" else datatrove)(*sys.argv[2:])
        return
    p = argparse.ArgumentParser()
    jobs = p.add_subparsers(dest="job", required=True)
    one = jobs.add_parser("make")
    one.add_argument("folder")
    one.add_argument("--documents", type=int, default=1_000_000)
    for name, rounds in (("texts", 5), ("judge", 0), ("steps", 0), ("corpora", 3), ("memory", 1), ("large", 0)):
        one = jobs.add_parser(name)
        one.add_argument("gnomon")
        if name in ("texts", "judge", "steps"):
            one.add_argument("texts")
        if name != "steps":
            one.add_argument("folder")
        one.add_argument("record")
        if name == "judge":
            one.add_argument("--documents", type=int, default=50_000)
        elif name == "large":
            one.add_argument("--documents", type=int, nargs="*", default=[1_000_000, 10_000_000])
            one.add_argument("--memory", default="2G")
            one.add_argument("--note", default="")
        elif name not in ("memory", "steps"):
            one.add_argument("--rounds", type=int, default=rounds)
        if name == "texts":
            one.add_argument("--peers", nargs="*", default=["rensa", "datasketch", "text-dedup", "datatrove"])
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
    {"texts": texts, "judge": judge, "steps": steps, "corpora": corpora, "memory": memory, "large": large}[a.job](a, record)
    with open(a.record, "w") as file:
        file.write(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
