"""gnomon dedup on a GPU beside the CPU: the same bytes, on corpora that are made to be hard.

usage: dedup.py GNOMON WORK [--small]      --small: few documents, for a checker of memory accesses.
Signature files, whose bytes are those of all sets, kept lines, pairs and clusters are compared. GNOMON_PLUGIN_DIR and the
like are for the caller to set. Exits with 77 where there is no GPU."""
import json
import os
import random
import subprocess
import sys

gnomon, work = os.path.abspath(sys.argv[1]), sys.argv[2]
small = "--small" in sys.argv
os.makedirs(work, exist_ok=True)
os.chdir(work)
seed = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
draw = random.Random(seed)
scale = 1 if small else 20
wrong, compared = [], 0
WORDS = [f"w{i}" for i in range(3000)] + ["A", "Zz", "x" * 7, "y" * 8, "z" * 9, "q" * 63, "it's", "--", "B.C", "\x01", "a\x00b"]
LETTERS = ["é", "ß", "ﬁ", "漢字", "Ａ", "e\u0301", "\u00a0", "…", "\ufdfa", "😀", "ǅ"]


def text(count, words=WORDS):
    return " ".join(draw.choice(words) for _ in range(count))


def corpora():
    """Names, and lines or bytes of a file."""
    same, template = text(60), text(150)
    plain = [text(draw.choice([1, 2, 3, 4, 30, 64, 65, 66, 200])) for _ in range(300 * scale)]
    yield "planted", [plain[draw.randrange(i)] + " more" if i % 7 == 6 else line for i, line in enumerate(plain)]
    yield "template", [template + " " + text(6) if draw.random() < 0.3 else text(40) for _ in range(200 * scale)]
    yield "copies", [same] * (300 * scale)
    yield "one word", [draw.choice(WORDS[:500]) for _ in range(300 * scale)]
    yield "white space", ["\t a  b\x0bc \x0c d\r e " + " " * draw.randrange(70) + text(2) + " " * draw.randrange(70)
                          for _ in range(50 * scale)]
    mixed = WORDS + LETTERS + ["é" * 5 + "x", "x" + "é", "Ünï"]
    yield "not ASCII", [text(draw.choice([1, 5, 50]), mixed if i % 3 else WORDS) for i in range(200 * scale)]
    # about the bounds of what a warp, a block and the GPU take
    yield "long", [text(words) for words in (511, 512, 513, 514, 515, 1000, 8191, 8194, 8195, 9000)] + \
        ["a" * n for n in (1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 65535, 65536, 65537)] + \
        ["a b " * (n // 4) for n in (65532, 65536, 70000)] + \
        [" ".join(str(i) for i in range(n)) for n in (11000, 13000)] + [text(60000)] + \
        ["".join(chr(97 + draw.randrange(26)) for _ in range(n)) for n in (511, 513, 8193, 8194, 20000, 65536)]
    yield "CRLF", b"".join(line.encode() + draw.choice([b"\n", b"\r\n"]) for line in plain[:50 * scale])
    yield "no last line end", b"a b c d\n\na b c e"
    yield "nothing", b""
    if not small:
        yield "many", [text(3) for _ in range(150000)]


OPTIONS = [[], ["--ngram", "1"], ["--ngram", "5", "--lower"], ["--ngram", "64"], ["--char-ngram", "5"],
           ["--char-ngram", "1", "--lower"], ["--char-ngram", "64"], ["--punctuation", "keep"],
           ["--punctuation", "keep", "--char-ngram", "4"]]
UNICODE = [["--punctuation", "drop-all"], ["--fold-case", "--normalize", "nfkc"], ["--normalize", "nfc", "--char-ngram", "3"]]


def run(*words, **environment):
    done = subprocess.run([gnomon, *words], capture_output=True, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr.decode()


def outputs(device, path, options, environment):
    """The bytes of all that it writes."""
    names = ["signed", "kept", "ids.tsv", "pairs.tsv", "clusters.tsv"]
    for name in names:
        if os.path.exists(name):
            os.remove(name)
    code, _, err = run("dedup", path, "--sign", "signed", "-o", "kept", "--ids", "ids.tsv", "--pairs", "pairs.tsv", "--clusters",
                       "clusters.tsv", "--device", device, "--skip-bad", "--quiet", "--seed", "3", *options, **environment)
    if code != 0:
        return code, err
    return 0, [open(name, "rb").read() for name in names]


def compare(name, path, options, **environment):
    global compared
    got, expected = outputs("cuda", path, options, environment), outputs("cpu", path, options, environment)
    compared += 1
    if got != expected or got[0] != 0:  # a command that can't run fails alike
        which = [a == b for a, b in zip(got[1], expected[1])] if got[0] == expected[0] == 0 else (got, expected)
        wrong.append(f"{name} {options} {environment}: {str(which)[:300]}")


def main():
    open("one.txt", "w").write("a b c d\n")
    code, out, err = run("dedup", "one.txt", "--json", "--device", "cuda")
    if code == 6:
        print("no GPU:", err.strip())
        sys.exit(77)
    if code != 0 or json.loads(out)["device"] != "cuda":
        wrong.append(f"the report: {code} {out} {err}")
    for name, lines in corpora():
        path = name.replace(" ", "-") + ".txt"
        with open(path, "wb") as file:
            file.write(lines if isinstance(lines, bytes) else b"".join(line.encode() + b"\n" for line in lines))
        for options in OPTIONS[:4 if name == "many" else None] + (UNICODE if name in ("not ASCII", "planted", "long") else []):
            compare(name, path, options)
        compare(name, path, ["--threads", "1"])
        compare(name, path, ["--memory", "96M"], GNOMON_CUDA_MEMORY="16")
    compare("planted", "planted.txt", ["--bands", "20", "--rows", "3", "--unverified", "--threads", "3"])
    compare("planted", "planted.txt", ["--similarity", "0.5", "--keep", "longest"])
    # so many functions that the GPU makes the keys
    for name in ("planted", "template", "long", "not-ASCII", "one-word"):
        compare(name, f"{name}.txt", ["--bands", "200", "--rows", "5", "--threads", "1"])
        compare(name, f"{name}.txt", ["--bands", "333", "--rows", "7", "--threads", "1", "--memory", "96M"],
                GNOMON_CUDA_MEMORY="16")
    if not small:
        compare("planted", "planted.txt", ["--bands", "1000", "--rows", "33"])
        compare("many", "many.txt", ["--bands", "100", "--rows", "1", "--threads", "1"])
    # JSON lines with escapes and names
    with open("some.jsonl", "w") as file:
        for i in range(100 * scale):
            json.dump({"id": f"n{i}", "text": text(20, WORDS + LETTERS)}, file, ensure_ascii=i % 2 == 0)
            file.write("\n")
    compare("JSON", "some.jsonl", ["--id", "id"])
    # what can't be had says so
    for options in (["--exact"], ["--recall", "1"]):
        code, _, err = run("dedup", "one.txt", "-o", "kept", "--device", "cuda", *options)
        if code != 6 or "CPU" not in err:
            wrong.append(f"{options}: {code} {err}")
    code, _, err = run("dedup", "one.txt", "-o", "kept", "--device", "cuda", GNOMON_CUDA_MEMORY="1")
    if code != 5 or "GPU's memory" not in err:
        wrong.append(f"1 MiB: {code} {err}")
    for device in ("cpu", "cuda"):
        with open("bad.txt", "wb") as file:
            file.write(b"good one here\n" * 500 + b"bad \xff\n")
        code, _, err = run("dedup", "bad.txt", "-o", "kept", "--device", device)
        if code != 3 or "line 501" not in err:
            wrong.append(f"not UTF-8, {device}: {code} {err}")
    for line in wrong:
        print("WRONG:", line)
    print(f"{compared} comparisons, {len(wrong)} wrong, seed {seed}")
    sys.exit(1 if wrong else 0)


main()
