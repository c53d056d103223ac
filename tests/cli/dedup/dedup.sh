# Real text, each line also with a word dropped and with two words changed, and some copies. Pairs, clusters
# and kept lines are held against Python's sets; the recall is that of 20 seeds.
. "$TESTS/lib.sh"
"$PYTHON" - "$TESTS"/../../LICENSE "$TESTS"/../../docs/reference/*.md > lines.txt <<'END'
import random, sys
random.seed(5)
lines = [line.split() for name in sys.argv[1:] for line in open(name, encoding="utf-8")]
lines = [words for words in lines if len(words) >= 10][:400]
out = []
for words in lines:
    dropped = list(words)
    del dropped[random.randrange(len(words))]
    changed = list(words)
    for _ in range(2):
        changed[random.randrange(len(words))] = "other"
    out += [" ".join(some) for some in (words, dropped, changed)]
out += random.sample(out, 100)
random.shuffle(out)
print("\n".join(out))
END
cat > check.py <<'END'
import collections, csv, re, subprocess, sys
options = dict(a.split("=") for a in sys.argv[1:])
size, similarity = int(options["size"]), float(options["similarity"])
words = re.compile("[0-9A-Za-z\u0080-\U0010ffff]+")
lines = open("lines.txt", encoding="utf-8").read().split("\n")[:-1]

def ngrams(text):
    if options["unit"] == "words":
        tokens = words.findall(text.lower() if "lower" in options else text)
    else:
        tokens = " ".join(words.findall(text))
    if not tokens:
        return frozenset()
    grams = [tuple(tokens[i:i + size]) for i in range(max(1, len(tokens) - size + 1))]
    if "weighted" not in options:
        return frozenset(grams)
    return frozenset((gram, k) for gram, count in collections.Counter(grams).items() for k in range(count))

sets = [ngrams(line) for line in lines]
first = {}
for i, s in enumerate(sets):
    first.setdefault(s, i)
# all near pairs of distinct sets, by counting shared members
where = collections.defaultdict(list)
near = {}
for s, i in first.items():
    shared = collections.Counter(j for member in s for j in where[member])
    for j, count in shared.items():
        value = count / (min(len(s), len(sets[j])) if "contained" in options else len(s) + len(sets[j]) - count)
        if value >= similarity:
            near[j, i] = value
    for member in s:
        where[member].append(i)
copies = {(first[s], i): 1.0 for i, s in enumerate(sets) if first[s] != i and s}
assert len(near) > 200 and len(copies) >= 95, (len(near), len(copies))
command = ["gnomon", "dedup", "lines.txt", "--similarity", options["similarity"], "--quiet", "--pairs", "pairs.tsv",
           "--clusters", "clusters.tsv", "--ids", "ids.tsv", "-o", "kept.txt", "--keep", options.get("keep", "first"),
           "--ngram" if options["unit"] == "words" else "--char-ngram", options["size"]]
command += ["--lower"] * ("lower" in options) + ["--weighted"] * ("weighted" in options)
found = 0
for seed in range(1 if "contained" in options else int(options.get("seeds", 3)) + 1):
    recall = ["--containment"] if "contained" in options else ["--recall", "1"] if seed == 0 else ["--seed", str(seed)]
    subprocess.run(command + recall, check=True)
    rows = list(csv.DictReader(open("pairs.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = {(int(r["i"]), int(r["j"])): float(r["similarity"]) for r in rows}
    assert len(pairs) == len(rows) and list(pairs) == sorted(pairs)
    assert all(r["i_name"] == f"lines.txt:{int(r['i']) + 1}" for r in rows)
    assert copies.items() <= pairs.items(), "a copy is missing"
    some = {pair: value for pair, value in pairs.items() if pair not in copies}
    assert some.items() <= near.items(), "a pair is wrong"
    share = len(some) / len(near)
    assert share >= (0.95 if seed else 1), (seed, share)
    # clusters by another method: the least document that can be reached
    label = list(range(len(lines)))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            least = min(label[i], label[j])
            changed |= label[i] != least or label[j] != least
            label[i] = label[j] = least
    best = {}
    for i, root in enumerate(label):
        if root not in best or options.get("keep") == "longest" and len(lines[i].encode()) > len(lines[best[root]].encode()):
            best[root] = i
    clusters = list(csv.DictReader(open("clusters.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [int(r["representative"]) for r in clusters] == [best[root] for root in label]
    keep = sorted(best.values())
    assert [int(r["document"]) for r in clusters if r["kept"] == "1"] == keep
    assert [int(line.split("\t")[0]) for line in open("ids.tsv").read().split("\n")[1:-1]] == keep
    assert open("kept.txt", encoding="utf-8").read() == "".join(lines[i] + "\n" for i in keep), "kept lines"
print(" ".join(sys.argv[1:]), "holds")
END
"$PYTHON" check.py unit=words size=3 similarity=0.6 seeds=20 || exit
"$PYTHON" check.py unit=characters size=5 similarity=0.8 keep=longest || exit
"$PYTHON" check.py unit=words size=2 similarity=0.7 lower=1 || exit
"$PYTHON" check.py unit=words size=1 similarity=0.7 weighted=1 || exit
"$PYTHON" check.py unit=characters size=2 similarity=0.7 weighted=1 keep=longest || exit
"$PYTHON" check.py unit=words size=3 similarity=0.7 contained=1 keep=longest || exit
"$PYTHON" check.py unit=characters size=2 similarity=0.9 contained=1 weighted=1 || exit
# The same pairs for any threads and memory, through signature files and their merge.
"$PYTHON" - <<'END'
import json
lines = open("lines.txt", encoding="utf-8").read().split("\n")[:-1]
for name, first, end in (("whole", 0, len(lines)), ("one", 0, 500), ("two", 500, len(lines))):
    with open(f"{name}.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps({"id": f"{i:05}", "text": lines[i]}) + "\n" for i in range(first, end))
END
for how in "--containment" "--weighted --recall 1" "--weighted --containment"; do
    counts=${how%% *} && [ "$counts" = --weighted ] || counts=
    gnomon dedup whole.jsonl --id id --ngram 1 $how --similarity 0.75 --threads 1 --quiet --pairs whole.tsv || exit
    gnomon dedup whole.jsonl --id id --ngram 1 $how --similarity 0.75 --threads 2 --memory 64M --quiet --pairs again.tsv || exit
    cmp whole.tsv again.tsv || exit
    for part in one two; do
        gnomon dedup $part.jsonl --id id --ngram 1 $counts --sign $part.sig --quiet || exit
    done
    gnomon dedup two.sig one.sig --merge ${how#--weighted} --similarity 0.75 --quiet --pairs again.tsv || exit
    cmp whole.tsv again.tsv && echo "$how: the same pairs"
done
try gnomon dedup one.sig two.sig --merge --weighted --ids -
gnomon dedup two.jsonl --id id --ngram 1 --sign two.sig --quiet
try gnomon dedup one.sig two.sig --merge --ids -
try gnomon dedup lines.txt --containment --recall 0.9 --ids -
try gnomon dedup lines.txt --exact --weighted --ids -

# the same bytes for any threads and memory, and from standard input and gzip
all() { gnomon dedup "$@" --similarity 0.6 --quiet --pairs pairs.tsv --clusters clusters.tsv -o kept.txt && cut -f 1,3 clusters.tsv | cat - kept.txt | cksum && cut -f 1-3 pairs.tsv | cksum; }
one=$(all lines.txt --threads 1)
for way in "--threads 2" "--threads 5 --memory 65M" "--memory 8G"; do
    [ "$(all lines.txt $way)" = "$one" ] || echo "$way differs"
done
gzip -k lines.txt
[ "$(all lines.txt.gz)" = "$one" ] || echo "gzip differs"
[ "$(all - < lines.txt)" = "$one" ] || echo "standard input differs"
split -l 400 lines.txt piece-
[ "$(all piece-*)" = "$one" ] || echo "parts differ"
"$PYTHON" -c '
import json
for n, line in enumerate(open("lines.txt", encoding="utf-8")):
    print(json.dumps({"key": n if n % 2 else f"k{n}", "body": line.rstrip("\n"), "more": [1, {"text": None}]}, ensure_ascii=n % 3 == 0))' > lines.jsonl
[ "$(all lines.jsonl --field body --id key | tail -n 1)" = "$(echo "$one" | tail -n 1)" ] || echo "JSON differs"
"$PYTHON" -c '
import json
kept = [json.loads(line)["key"] for line in open("kept.txt")]
rows = [line.rstrip("\n").split("\t") for line in open("clusters.tsv")][1:]
assert [str(k) for k in kept] == [r[1] for r in rows if r[3] == "1"]
assert set(open("kept.txt")) <= set(open("lines.jsonl"))
assert rows[4][1] == "k4" and rows[5][1] == "5"'
mkdir -p folder/deeper
printf 'one file of some words that are here\n' > folder/b
printf 'One file\nof some words that are here' | gzip > folder/deeper/c.gz
printf 'another thing altogether, is it not\n' > folder/a
try gnomon dedup folder --lower --clusters - --quiet

# many copies, one template, and documents of one word
"$PYTHON" -c '
for i in range(5000):
    print("the same words again and again and again")
for i in range(1000):
    print("a page of the site was not found , please go back to the start and try another link there", "page%d" % i)
for i in range(2000):
    print("word%d" % (i % 500))' > hostile.txt
gnomon dedup hostile.txt --json | grep -E '"(documents|kept|distinct|pairs|largest_clusters|clusters)"'
gnomon dedup hostile.txt --unverified --bands 3 --rows 1 --json | grep -E '"(kept|bands|rows)"'
gnomon dedup hostile.txt --exact -o exact.txt --quiet; awk '!seen[$0]++' hostile.txt | cmp - exact.txt
