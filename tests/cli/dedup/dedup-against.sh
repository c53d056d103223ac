# New documents against an old corpus, held against Python's sets: pairs, the old document that each is removed for, and
# what is kept, for any threads and memory, from texts and from signature files.
. "$TESTS/lib.sh"
cat > make.py <<'END'
import json, random
random.seed(9)
def changed(words, count):
    words = list(words)
    for _ in range(count):
        words[random.randrange(len(words))] = f"x{random.randrange(1000)}"
    return words
old, new = [], []
for n in range(400):
    old.append([f"w{random.randrange(900)}" for _ in range(40)] if n % 5 else changed(old[random.randrange(len(old))], 1) if old else ["a"] * 9)
    kind = n % 8
    if kind < 3:
        new.append([f"w{random.randrange(900)}" for _ in range(40)])
    elif kind == 3:
        new.append(list(random.choice(old)))
    elif kind < 6:
        new.append(changed(random.choice(old), kind - 2))
    else:
        new.append(changed(random.choice(new), kind - 6))
old += [list(old[7]), list(old[7])]
new += [["one"], []]
for name, texts in ("old", old), ("new", new):
    names = random.sample(range(10**6), len(texts))
    texts = [{"id": f"{name}-{number}", "text": " ".join(words) + "."} for number, words in zip(names, texts)]
    open(f"{name}.jsonl", "w").writelines(json.dumps(text) + "\n" for text in texts)
    for part in range(3):
        open(f"{name}-{part}.jsonl", "w").writelines(json.dumps(text) + "\n" for text in texts[part::3])
END
cat > check.py <<'END'
import csv, json, sys
keep, ordered = sys.argv[1], sys.argv[2] == "merged"
def read(name):
    return [json.loads(line) for line in open(name)]
new, old = read("new.jsonl"), sorted(read("old.jsonl"), key=lambda text: text["id"].encode())
if ordered:
    new.sort(key=lambda text: text["id"].encode())
def ngrams(text):
    words = text.rstrip(".").split()
    return frozenset(tuple(words[i:i + 3]) for i in range(max(1, len(words) - 2))) if words else frozenset()
both = new + old
sets = [ngrams(text["text"]) for text in both]
first = {}
for i, s in enumerate(sets):
    first.setdefault(s, i)
pairs = {}
for i in range(len(new)):
    for j in range(i + 1, len(both)):
        if sets[i] and sets[i] == sets[j]:
            if first[sets[i]] == i:
                pairs[i, j] = 1.0
        elif first[sets[i]] == i and first[sets[j]] == j and sets[i] and sets[j]:
            shared = len(sets[i] & sets[j])
            value = shared / (len(sets[i]) + len(sets[j]) - shared)
            if value >= 0.6:
                pairs[i, j] = value
label = list(range(len(both)))
def root(i):
    while label[i] != i:
        i = label[i]
    return i
for i, j in pairs:
    a, b = sorted((root(i), root(j)))
    label[b] = a
clusters = {}
for i in range(len(both)):
    clusters.setdefault(root(i), []).append(i)
best = {}
for members in clusters.values():
    olds = [i for i in members if i >= len(new)]
    length = lambda i: len(both[i]["text"].encode())
    chosen = olds[0] if olds else members[0] if keep == "first" else max(members, key=lambda i: (length(i), -i))
    best.update({i: chosen for i in members})
def table(name):
    return list(csv.DictReader(open(name), delimiter="\t", quoting=csv.QUOTE_NONE))
rows = table("pairs.tsv")
got = {(int(r["i"]), int(r["j"])): float(r["similarity"]) for r in rows}
assert got == pairs and list(got) == sorted(got), (len(got), len(pairs))
assert all(r["i_name"] == one["id"] and r["j_name"] == other["id"] for r in rows
           for one, other in [(both[int(r["i"])], both[int(r["j"])])])
rows = table("clusters.tsv")
assert [int(r["representative"]) for r in rows] == [best[i] for i in range(len(new))]
assert all(r["representative_name"] == both[int(r["representative"])]["id"] and r["name"] == text["id"] for r, text in zip(rows, new))
kept = [i for i in range(len(new)) if best[i] == i]
assert [int(r["document"]) for r in table("ids.tsv")] == kept
if not ordered:
    lines = open("new.jsonl").read().split("\n")
    assert open("kept.jsonl").read() == "".join(lines[i] + "\n" for i in kept)
report = json.load(open("report.json"))
removed = [i for i in range(len(new)) if best[i] >= len(new)]
assert (report["documents"], report["old_documents"], report["removed_for_old"]) == (len(new), len(old), len(removed))
assert [(r["name"], r["old_name"]) for r in report["first_removed"]] == [(both[i]["id"], both[best[i]]["id"]) for i in removed[:10]]
assert report["kept"] == len(kept) and report["uncompared"] == 0 and len(removed) > 100 and len(kept) > 100
END
"$PYTHON" make.py
gnomon dedup old.jsonl --id id --sign old.sig --quiet --skip-bad
# bad documents are not in the corpus
"$PYTHON" -c '
for name in "new.jsonl", "new-0.jsonl", "new-1.jsonl", "new-2.jsonl":
    lines = [line for line in open(name) if line.count(" ") > 2 or "one" in line]
    open(name, "w").writelines(lines)'
tables="--similarity 0.6 --against old.sig --pairs pairs.tsv --clusters clusters.tsv --ids ids.tsv --json"
sums() { cat pairs.tsv clusters.tsv ids.tsv "$@" | cksum; }
for keep in first longest; do
    gnomon dedup new.jsonl --id id --keep $keep --recall 1 -o kept.jsonl $tables > report.json
    "$PYTHON" check.py $keep texts || exit
    want=$(sums kept.jsonl)
    # so many bands miss no pair of these
    for way in "--threads 1 --memory 64M" "--threads 2" "--threads 5 --memory 8G --seed 7"; do
        gnomon dedup new.jsonl --id id --keep $keep --bands 200 --rows 3 -o kept.jsonl $tables $way > report.json
        [ "$(sums kept.jsonl)" = "$want" ] || echo "$keep, $way differs"
    done
    "$PYTHON" check.py $keep texts || exit
done
# parts of both, in any order
for part in 0 1 2; do
    gnomon dedup new-$part.jsonl --id id --sign new-$part.sig --quiet
    gnomon dedup old-$part.jsonl --id id --sign old-$part.sig --quiet
done
gnomon dedup old-2.sig old-0.sig old-1.sig --merge --sign again.sig --quiet && cmp old.sig again.sig
gnomon dedup new-1.sig new-2.sig new-0.sig --merge --recall 1 $tables --sign new.sig > report.json && "$PYTHON" check.py first merged
gnomon dedup new.jsonl --id id --sign whole.sig --quiet && cmp new.sig whole.sig
# what is new is in the corpus the next time
gnomon dedup new.sig old.sig --merge --sign all.sig --quiet
gnomon dedup new.jsonl --id id --against all.sig --json -o kept.jsonl | grep -E '"(kept|removed_for_old)"'
[ "$(wc -l < kept.jsonl)" = 1 ] || echo "more is kept than the document without a word"
gnomon dedup new.jsonl --id id --against all.sig -o kept.jsonl 2>&1 | head -n 2
rm kept.jsonl
try gnomon dedup new.jsonl --against old.sig
try gnomon dedup new.jsonl --against old.sig --exact -o kept.jsonl
try gnomon dedup new.jsonl --against old.sig --ngram 2 -o kept.jsonl
try gnomon dedup new.jsonl --against new.jsonl -o kept.jsonl
try gnomon dedup new.jsonl --against . -o kept.jsonl
try gnomon dedup new.jsonl --against none.sig -o kept.jsonl
try gnomon dedup new.jsonl --against old.sig -o old.sig
[ ! -e kept.jsonl ] || echo "kept.jsonl is there"
