"""Every pair of options that a verb takes, as --help lists them, on tiny inputs: a pair works, or is
refused with exit code 2 or 3 and a message that names an option of the command. None crashes or
hangs, and no message speaks of an argument of the library's.

A message that is not as it should be fails like a crash, a hang or an unknown exit code, and so does
an option that has no values here.

usage: option-pairs.py GNOMON - WORK [SEED COUNT [JOBS] | all]

By a seed so many of the verbs with one option and so many pairs are tried, JOBS at a time.
"""
import concurrent.futures
import itertools
import os
import random
import re
import shutil
import subprocess
import sys

gnomon, _, work = map(os.path.abspath, sys.argv[1:4])
everything = sys.argv[4:] == ["all"]
seed, count = (1, 150) if everything or len(sys.argv) < 6 else map(int, sys.argv[4:6])
jobs_at_a_time = int(sys.argv[6]) if len(sys.argv) > 6 else max(2, os.cpu_count() or 2)

# a value or several for each option; an option of --help that is not here fails the test
VALUES = {
    "operator": ["sjlt", "kronecker", "block"], "k": ["3"], "rank": ["2"], "seed": ["7"], "density": ["0.5"],
    "nonzeros": ["2"], "blocks": ["2"], "wiring": ["2"], "zeta": ["2"], "width": ["4"], "inner": ["rademacher"], "precision": ["fp64"],
    "scaling": ["none"], "save-operator": ["saved.json"], "load-operator": ["given.json"], "eps": ["0.9"],
    "delta": ["0.1"], "beta": ["1"], "bound": ["achlioptas"], "points": ["12"], "assume": ["incoherent"],
    "model": ["model.json"], "output": ["out.npy", "out.csv", "out.npz", "-"], "output-format": ["csv", "npz"],
    "output-dtype": ["f8"], "format": ["npy", "svmlight"], "shape": ["3,4"], "dtype": ["f4"], "delimiter": ["comma"],
    "header": [None], "no-header": [None], "features": ["40"], "zero-based": [None], "one-based": [None],
    "allow-nonfinite": [None], "device": ["cpu"], "comm": ["pigeons"], "threads": ["1"], "memory": ["66M"], "json": [None],
    "progress": ["never"], "quiet": [None], "rows": ["0:2"], "cols": ["0:3"], "sparse": [None], "describe": [None],
    "pairs": ["5"], "max-outside": ["0.5"], "plot": ["plot.svg"], "histogram": [None], "radius": ["2"],
    "metric": ["cosine", "jaccard", "hamming", "ip", "l1"], "exact": [None], "recall": ["0.9"], "index": ["given.lsh"],
    "exclude-self": [None], "filter": ["ids.csv"], "distances": ["distances.npy"], "ground-truth": ["truth.npy"],
    "threshold": ["0.8"], "top": ["3"], "max-pairs": ["4"], "from-row": ["2"], "method": ["lsh", "exact"],
    "text": ["lines", "files"], "ngram": ["2"], "char-ngram": ["3"], "similarity": ["0.4"], "count": [None], "counts": ["counts.csv"],
    "clusters": ["clusters.csv"], "checkpoint": ["state"], "tolerance": ["0.5"], "single-pass": [None], "center": [None], "standardize": [None], "inverse": [None], "whiten": [None],
    "measure": [None], "power": ["1"], "oversample": ["1"], "block": ["2"], "probes": ["3"], "test-vectors": ["3"], "test-power": ["1"],
    "damp": ["0.5"], "sketch-size": ["8"], "rcond": ["0.001"], "iterations": ["2"], "residual": ["residual.npy"],
    "ranks": ["2,2"], "sequential": [None], "order": ["F"], "dense": [None], "digits": ["5"], "no-compress": [None],
    "queries": ["queries.npy"], "slower": [None], "family": ["simhash"], "centres": ["5"], "tables": ["2"], "bands": ["2"], "functions": ["3"],
    "fine": ["1"], "sides": ["4"], "codes": ["2"], "rabitq": ["2"], "rerank": ["5"], "coarse-probes": ["1"], "candidates": ["6"],
    "field": ["text"], "id": ["id"], "skip-bad": [None], "max-document": ["1K"], "parts": ["lines"], "min-part": ["2"], "lower": [None], "fold-case": [None], "normalize": ["nfkc"], "punctuation": ["keep"],
    "weighted": [None], "containment": [None],
    "unverified": [None], "bucket": ["4"], "work": ["."], "keep": ["longest"], "ids": ["ids.csv"], "sign": ["out.sig"], "merge": [None],
    "against": ["given.sig"], "names": ["names.txt"], "q-names": ["names.txt"], "query-names": ["four.txt"], "values": ["similarity"], "large": [None], "force": [None],
}

if shutil.which("gnuplot") is None:
    VALUES["plot"] = []

# what each verb is asked to do, in several ways
VERBS = {
    "project": [["points.npy", "-k", "3", "-o", "out.npy"], ["sets.svm", "--eps", "0.9", "-o", "out.csv"],
                ["points.npy", "--operator", "auto", "-k", "3", "-o", "out.npy"]],
    "dim": [["--points", "50", "--eps", "0.5"]],
    "operator": [["-k", "3", "-D", "6", "-o", "out.npy"], ["-k", "3", "-D", "6", "--describe"]],
    "distortion": [["points.npy", "sketch.npy"]],
    "neighbors": [["points.npy", "queries.npy", "-k", "3"], ["sets.svm", "sets.svm", "--metric", "jaccard", "-k", "2"],
                  ["queries.npy", "--index", "given.lsh", "-k", "3"]],
    "join": [["points.npy", "--threshold", "3"], ["points.npy", "queries.npy", "--threshold", "3"],
             ["lines.txt", "--text", "lines", "--threshold", "0.5"], ["folder", "--text", "files", "--threshold", "0.5"],
             ["sets.svm", "--metric", "jaccard", "--threshold", "0.8", "--recall", "0.9", "--method", "lsh"]],
    "dedup": [["lines.txt", "-o", "out.txt"], ["folder", "--ids", "out.csv"], ["lines.txt", "--exact", "--pairs", "out.csv"],
              ["given.sig", "--merge", "--ids", "out.csv"], ["docs.jsonl", "--exact", "--parts", "lines", "-o", "out.jsonl"]],
    "svd": [["points.npy", "-k", "2"], ["sets.svm", "--tolerance", "0.5"]],
    "transform": [["factors.npz", "points.npy", "-o", "out.npy"], ["factors.npz", "scores.npy", "--inverse", "-o", "out.npy"]],
    "lstsq": [["points.npy", "target.npy", "-o", "out.npy"], ["sets.svm", "target.npy"]],
    "hosvd": [["points.npy", "--ranks", "2,2"], ["points.npy", "--tolerance", "0.3"]],
    "convert": [["points.npy", "out.npy"], ["sets.svm", "out.mtx"]],
    "info": [["points.npy"], []],
    "index build": [["points.npy", "--tables", "2", "--functions", "3", "--metric", "cosine", "-o", "made.lsh"],
                    ["points.npy", "-k", "2", "--recall", "0.5", "-o", "made.lsh"],
                    ["points.npy", "--rabitq", "3", "-o", "made.lsh"]],
    "index tune": [["points.npy", "-k", "2"]],
    "index query": [["given.lsh", "queries.npy", "-k", "3"], ["given.rbq", "queries.npy", "-k", "3"]],
    "index add": [["given.lsh", "queries.npy", "-o", "made.lsh"]],
    "index remove": [["given.lsh", "ids.csv", "-o", "made.lsh"]],
    "index compact": [["given.lsh", "-o", "made.lsh"]],
    "index info": [["given.lsh"]],
    "index check": [["given.lsh"]],
}
# what only a caller of the library can know
INSIDE = re.compile(r"\b(functions|options|descriptor|search_params|guarantee|points|queries)\.(?!npy|csv)[a-z]|\bis NULL\b|struct_size|"
                    r"\b(first_row|max_pairs|band_rows|memory_limit|rank_count|test_power|raw_cols|csv_header|"
                    r"svmlight_cols|GNOMON_[A-Z]\w*)\b|\b[a-z] is \d|defect of gnomon|AddressSanitizer|runtime error")
LETTERS = {"k": "k", "output": "o", "threshold": "t", "rank": "k"}


def prepare(folder):
    os.makedirs(os.path.join(folder, "folder"))

    def run(*words):
        subprocess.run([gnomon, *words], cwd=folder, env=environment, check=True, capture_output=True)

    def write(name, text):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)

    random.seed(3)
    rows = [[random.randrange(-128, 128) / 64 for _ in range(6)] for _ in range(12)]
    write("points.csv", "".join(",".join(map(str, row)) + "\n" for row in rows))
    write("queries.csv", "".join(",".join(map(str, row)) + "\n" for row in rows[:4]))
    write("target.csv", "".join(f"{sum(row)}\n" for row in rows))
    for name in ("points", "queries", "target"):
        run("convert", f"{name}.csv", f"{name}.npy", "--output-dtype", "f4")
    write("sets.svm", "".join("1 " + " ".join(f"{j}:1" for j in sorted(random.sample(range(1, 41), 6))) + "\n"
                              for _ in range(12)))
    write("ids.csv", "1\n3\n5\n7\n")
    write("lines.txt", "".join(f"the line number {i // 2} of a short text\n" for i in range(10)))
    write("four.txt", "a\nb\nc\nd\n")
    write("names.txt", "".join(f"point {i}\n" for i in range(12)))
    for i in range(4):
        write(f"folder/{i}.txt", f"some words and then {i // 2} more of them\n")
    run("project", "points.npy", "-k", "3", "-o", "sketch.npy", "--save-operator", "given.json")
    run("neighbors", "points.npy", "queries.npy", "-k", "5", "-o", "truth.npy")
    if has_svd:
        run("svd", "points.npy", "-k", "2", "--center", "-o", "factors.npz")
        run("transform", "factors.npz", "points.npy", "-o", "scores.npy")
    run("index", "build", "points.npy", "--tables", "2", "--functions", "3", "--metric", "cosine", "-o", "given.lsh")
    run("index", "build", "points.npy", "--rabitq", "2", "-o", "given.rbq")
    run("dedup", "lines.txt", "--sign", "given.sig")
    write("docs.jsonl", '{"id": 1, "text": "a line\\nof two"}\n{"id": 2, "text": "a line"}\n')
    write("model.json", "{}\n")


def options_of(verb):
    text = subprocess.run([gnomon, *verb.split(), "--help"], capture_output=True, text=True, check=True).stdout
    text = text.split("\nExamples:\n")[0]
    names = [name for names in re.findall(r"^(?:  -\w, |      )(--[a-z-]+(?:, --[a-z-]+)*)", text, re.M)
             for name in names.replace("--", "").split(", ")]
    names += re.findall(r"^  -(\w) ", text, re.M)
    # where the number of columns goes is settled by every base
    return [name for name in names if name not in ("help", "D")]


def words_of(name, value):
    dashed = f"--{name}" if len(name) > 1 else f"-{name}"
    return [dashed] if value is None else [dashed, value]


def commands(verb):
    """All of a verb: its bases alone, with one option, with two."""
    options = options_of(verb)
    unknown = [name for name in options if name not in VALUES]
    if unknown:
        print(f"gnomon {verb}: no values here for {unknown}")
        sys.exit(1)
    single, double = [], []
    for base in VERBS[verb]:
        single.append((verb, base, []))
        for name in options:
            single += [(verb, base, words_of(name, value)) for value in VALUES[name]]
        for a, b in itertools.combinations(options, 2):
            double += [(verb, base, words_of(a, x) + words_of(b, y)) for x in VALUES[a] for y in VALUES[b]]
    return single, double


def named(words, text):
    """Whether the message names an option of the command."""
    for word in words:
        if word.startswith("-") and len(word) > 1 and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text):
            return True
        if word.startswith("--") and word[2:] in LETTERS and f"-{LETTERS[word[2:]]} " in text:
            return True
    return False


def names_file(words, text):
    """Whether the message names an input of the command."""
    return any(os.path.exists(os.path.join(work, "inputs", word)) and word in text for word in words)


def judge(job):
    number, (verb, base, more) = job
    folder = os.path.join(work, f"run-{number}")
    shutil.copytree(os.path.join(work, "inputs"), folder)
    words = [gnomon, *verb.split(), *base, *more]
    try:
        done = subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=60)
        code, text = done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        code, text = "none in 60 s", ""
    shutil.rmtree(folder)
    # 1 is a negative answer: a tolerance that is not reached, no index that pays
    fault = ""
    if code not in (0, 1, 2, 3) and not (code == 5 and "--memory" in text):
        fault = f"exit code {code}"
    elif INSIDE.search(text):
        fault = "speaks of what nobody can know"
    elif code in (2, 3) and not named(base + more, text) and not (code == 3 and names_file(base + more, text)):
        fault = "names no option"
    return fault and f"{fault}: gnomon {verb} {' '.join(base + more)}\n    {text.strip()}"


shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
environment = {key: value for key, value in os.environ.items() if not key.startswith(("GNOMON_", "LC_", "LANG"))}
environment.update(GNOMON_PLUGIN_DIR="/nonexistent", OPENBLAS_NUM_THREADS="1")
has_svd = b'"svd": true' in subprocess.run([gnomon, "info", "--json"], capture_output=True, check=True).stdout
prepare(os.path.join(work, "inputs"))
singles, pairs = [], []
for verb in VERBS:
    if verb in ("svd", "transform", "lstsq", "hosvd") and not has_svd:
        continue
    one, two = commands(verb)
    singles += one
    pairs += two
random.seed(seed)
jobs = singles + pairs if everything else random.sample(singles, min(count, len(singles))) + random.sample(pairs, count)
with concurrent.futures.ThreadPoolExecutor(jobs_at_a_time) as pool:
    faults = [fault for fault in pool.map(judge, enumerate(jobs)) if fault]
print(f"{len(jobs)} commands of {len(singles) + len(pairs)}, {len(faults)} at fault")
print(*faults, sep="\n")
shutil.rmtree(work)
sys.exit(len(faults) > 0)
