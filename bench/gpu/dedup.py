"""gnomon dedup on a GPU beside the CPU with all of its threads, from files in the page cache to what is written.

usage: dedup.py GNOMON FOLDER RECORD.json [--documents 4000000] [--words 60] [--threads 16] [--rounds 3]

The corpora, made in FOLDER: texts of --words words drawn from 50,000, every tenth an earlier one with one word changed
(planted); the same with each line a JSON object (JSON). Cases have the default options, or n-grams, bands and rows of what
they are named after (datatrove, NeMo Curator). Each run writes the kept lines, or the list of the kept documents' names
alone (ids); the bytes of both devices' outputs are compared. GNOMON_PLUGIN_DIR says where the plugin is. RECORD.json gets
every run's times. Needs NumPy."""
import argparse
import filecmp
import json
import multiprocessing
import os
import subprocess
import time


KEPT, IDS = ("-o", "kept"), ("--ids", "ids.tsv")
CASES = (  # name, corpus, its ending, options, what is written
    ("default", "planted", ".txt", [], KEPT),
    ("default, ids", "planted", ".txt", [], IDS),
    ("JSON", "JSON", ".jsonl", [], KEPT),
    ("datatrove", "planted", ".txt", ["--ngram", "5", "--bands", "14", "--rows", "8"], KEPT),
    ("Curator", "planted", ".txt", ["--char-ngram", "24", "--punctuation", "keep", "--bands", "20", "--rows", "13"], KEPT),
)


def part(task):
    import numpy
    path, number, count, words = task
    draw = numpy.random.default_rng(number)
    names = numpy.array([f"w{i}" for i in range(50000)], dtype=object)
    earlier = []
    with open(f"{path}.{number}", "w") as file, open(f"{path}.json.{number}", "w") as objects:
        for first in range(0, count, 10000):
            for at, one in enumerate(names[draw.integers(50000, size=(min(10000, count - first), words))].tolist()):
                if at % 10 == 0:
                    earlier.append(one)
                if at % 10 == 9:
                    one = list(earlier[draw.integers(len(earlier))])
                    one[draw.integers(words)] = names[draw.integers(50000)]
                line = " ".join(one)
                file.write(line + "\n")
                objects.write('{"text": "' + line + '"}\n')


def make(folder, count, words):
    path = os.path.join(folder, f"planted-{count}-{words}")
    if not os.path.exists(path + ".txt"):
        parts = os.cpu_count()
        with multiprocessing.Pool(parts) as pool:
            pool.map(part, [(path, i, count // parts, words) for i in range(parts)])
        for infix, ending in (("", ".txt"), (".json", ".jsonl")):
            with open(path + ending, "wb") as out:
                for i in range(parts):
                    name = f"{path}{infix}.{i}"
                    with open(name, "rb") as file:
                        while block := file.read(1 << 24):
                            out.write(block)
                    os.remove(name)
    return path


def run(gnomon, path, device, threads, options, output):
    words = [gnomon, "dedup", path, *options, output, "--device", device, "--threads", str(threads), "--memory", "64G", "--json"]
    begin = time.perf_counter()
    report = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, **{key: value for key, value in report.items() if key not in ("inputs", "output", "seconds")}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gnomon")
    parser.add_argument("folder")
    parser.add_argument("record")
    parser.add_argument("--documents", type=int, default=4000000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of cases")
    o = parser.parse_args()
    path = make(o.folder, o.documents, o.words)
    record = {"program": "dedup", "gpu": "", "documents": o.documents, "words": o.words, "threads": o.threads,
              "commit": os.environ.get("GNOMON_COMMIT", "unknown"), "bytes": os.path.getsize(path + ".txt"), "results": []}
    for name, corpus, ending, options, output in CASES:
        if o.only and name not in o.only:
            continue
        middle = {}
        for device in ("cpu", "cuda"):
            written = os.path.join(o.folder, f"{device}-{output[1]}")
            runs = [run(o.gnomon, path + ending, device, o.threads, [*options, output[0]], written) for _ in range(o.rounds)]
            record["results"] += [{"case": name, "corpus": corpus, "options": options, "written": output[0], **one} for one in runs]
            record["gpu"] = runs[0].get("gpu", record["gpu"]).split(",")[0]
            middle[device] = sorted(runs, key=lambda one: one["seconds"])[len(runs) // 2]
        same = filecmp.cmp(os.path.join(o.folder, f"cpu-{output[1]}"), os.path.join(o.folder, f"cuda-{output[1]}"), shallow=False)
        print(f"{name}: {middle['cpu']['seconds']:.3f} s and {middle['cuda']['seconds']:.3f} s:"
              f" {middle['cpu']['seconds'] / middle['cuda']['seconds']:.2f} times; the same bytes: {same}")
        for device, one in middle.items():
            print("  ", device, {key: round(value, 3) for key, value in one.items() if key.endswith("_seconds")}, flush=True)
        if not same:
            raise SystemExit("the outputs differ")
    with open(o.record, "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


main()
