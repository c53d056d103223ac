. "$TESTS/lib.sh"
try gnomon join base.npy --top 3 -o - --output-format csv
try gnomon join base.npy queries.npy --threshold 5 -o - --output-format csv | head -4
try gnomon join base.npy --metric cosine --threshold 0.1 -o - --output-format csv | head -4
try gnomon join base.npy --metric ip --threshold 20 -o ip.csv
head -3 ip.csv
# bits, and sets given as a sparse matrix
try gnomon join points-u1.npy --metric hamming --top 2 -o - --output-format csv
try gnomon join sparse.mtx --metric jaccard --threshold 0.8 -o - --output-format csv | head -4
# the threshold is inclusive
r=$(gnomon join base.npy --top 3 -o - --output-format csv --quiet | sed -n 4p | cut -d, -f3)
gnomon join base.npy --threshold "$r" --count 2>&1
# duplicates alone
try gnomon join queries.npy base.npy --threshold 0
# pairs as numbers, as a sparse matrix; how many each point is in; clusters
try gnomon join base.npy --threshold 4 -o ids.npy --distances distances.npy
gnomon info ids.npy | sed 1d
gnomon info distances.npy | sed 1d
try gnomon join base.npy --threshold 4 -o near.mtx --counts counts.csv --clusters clusters.csv
head -4 near.mtx
sed 1d counts.csv | cut -d, -f2 | sort | uniq -c | sort -k2n | head -3
sed -n '1,4p' clusters.csv
# in parts
try gnomon join base.npy --threshold 4 --max-pairs 5 -o - --output-format csv
gnomon join base.npy --threshold 4 --max-pairs 5 2>&1
gnomon join base.npy --threshold 4 --json --counts counts.csv | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: r[k] for k in ("verb", "metric", "method", "recall", "threshold", "p_points", "q_points",
                         "dimensions", "dtype", "pairs", "complete", "rows_done")})
assert r["verified"] >= r["pairs"]'
# texts: lines of a file or of standard input, files of a folder
printf 'The same, and more.\nother words\nthe same and MORE\n\nother  words!\n' > words.txt
try gnomon join words.txt --text lines --threshold 0.5
gnomon join - --text lines --threshold 0.5 --ngram 1 --clusters groups.tsv --count < words.txt 2>&1
cat groups.tsv
mkdir -p texts/deeper
cp words.txt texts/a.txt
sed 2d words.txt > texts/deeper/b.txt
try gnomon join texts --text files --ngram 1 --threshold 0.3 -o -
try gnomon join texts --text files --threshold 1 -o texts.tsv
cat texts.tsv
# a guaranteed share
"$PYTHON" -c '
import random
random.seed(7)
for _ in range(200):
    centre = [random.gauss(0, 1) for _ in range(16)]
    for _ in range(5):
        print(*("%.4f" % (c + random.gauss(0, 0.01)) for c in centre), sep=",")' > many.csv
gnomon join many.csv --threshold 0.2 -o all.csv --quiet
try gnomon join many.csv --threshold 0.2 --recall 0.9 --method lsh -o found.csv
"$PYTHON" -c '
every, found = (open(name).read().splitlines() for name in ("all.csv", "found.csv"))
assert set(found) <= set(every) and len(set(found)) == len(found) >= 0.9 * len(every) > 1500'
gnomon join many.csv --threshold 0.2 --recall 0.9 --method lsh --threads 1 -o - --output-format csv --quiet | cmp - found.csv
try gnomon join many.csv --threshold 0.2 --method lsh
try gnomon join many.csv --threshold 0.2 --recall 1.5
try gnomon join many.csv --threshold 0.2 --metric ip --recall 0.9 --method lsh
