# --similarity: as the tools of deduplication take it; a pair of exactly S is in, whatever 1 - S rounds to
. "$TESTS/lib.sh"
"$PYTHON" - <<'END'
import random
random.seed(11)
with open("sets.svm", "w") as file:
    for _ in range(120):
        members = sorted(random.sample(range(1, 14), random.randrange(1, 12)))
        file.write("1 " + " ".join(f"{m}:1" for m in members) + "\n")
END
for s in 0 0.1 0.2 0.25 0.3 0.4 0.5 0.6 0.7 0.75 0.8 0.9 1; do
    for metric in jaccard weighted-jaccard; do
        gnomon join sets.svm --metric $metric --similarity $s -o $metric-$s.csv --values similarity --quiet
    done
    cmp jaccard-$s.csv weighted-jaccard-$s.csv
done
"$PYTHON" - <<'END'
from fractions import Fraction
sets = [frozenset(int(m.split(":")[0]) for m in line.split()[1:]) for line in open("sets.svm")]
on = 0
for text in "0 0.1 0.2 0.25 0.3 0.4 0.5 0.6 0.7 0.75 0.8 0.9 1".split():
    want = {(i, j) for i in range(len(sets)) for j in range(i + 1, len(sets))
            if Fraction(len(sets[i] & sets[j]), len(sets[i] | sets[j])) >= Fraction(text)}
    on += sum(Fraction(len(sets[i] & sets[j]), len(sets[i] | sets[j])) == Fraction(text) for i, j in want)
    got = {tuple(map(int, line.split(",")[:2])) for line in open(f"jaccard-{text}.csv").read().splitlines()[1:]}
    assert got == want, (text, len(got), len(want), sorted(got ^ want)[:3])
assert on > 1000, on
print("all pairs as by exact fractions")
END
try gnomon join sets.svm --metric jaccard --similarity 0.8 --count
gnomon join sets.svm --metric jaccard --similarity 0.8 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["similarity"], round(r["threshold"], 12), r["pairs"])'
gnomon join sets.svm --metric jaccard --threshold 0.25 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["similarity"], r["threshold"], r["pairs"])'
try gnomon join sets.svm --metric jaccard --similarity 0.8 --threshold 0.2
try gnomon join sets.svm --metric jaccard --similarity 1.5
try gnomon join sets.svm --metric l1 --similarity 0.5
try gnomon join sets.svm --similarity 0.5
