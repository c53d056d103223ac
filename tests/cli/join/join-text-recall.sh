# A guaranteed share of the pairs of texts: by MinHash of n-grams, whose numbers have 62 bits. Real
# text, each line also with a word dropped and with two words changed; held against the exact join.
. "$TESTS/lib.sh"
"$PYTHON" - "$TESTS"/../../LICENSE "$TESTS"/../../docs/reference/*.md > lines.txt <<'END'
import random, sys
random.seed(5)
lines = [line.split() for name in sys.argv[1:] for line in open(name, encoding="utf-8")]
lines = [words for words in lines if len(words) >= 8][:1500]
for words in lines:
    dropped = list(words)
    del dropped[random.randrange(len(words))]
    changed = list(words)
    for _ in range(2):
        changed[random.randrange(len(words))] = "other"
    for some in (words, dropped, changed):
        print(*some)
END
for threshold in 0 0.2 0.4 0.7; do
    gnomon join lines.txt --text lines --ngram 2 --threshold $threshold -o exact.tsv --quiet
    for recall in 0.5 0.95; do
        gnomon join lines.txt --text lines --ngram 2 --threshold $threshold --recall $recall --method lsh -o found.tsv --quiet || exit
        "$PYTHON" -c '
import sys
every, found = (open(name).read().splitlines() for name in ("exact.tsv", "found.tsv"))
assert set(found) <= set(every) and len(set(found)) == len(found), "pairs that the exact join has not"
assert len(found) >= float(sys.argv[1]) * len(every), (len(found), len(every))
print("threshold", sys.argv[2], "recall", sys.argv[1], "kept")' $recall $threshold
    done
done
gnomon join lines.txt --text lines --threshold 0.2 --recall 0.95 -o auto.tsv --quiet; echo "exit $?"
# members beyond the columns of any other hash function
printf '1 9223372036854775807:1 5:1\n1 9223372036854775807:2 5:1\n1 7:1\n' > far.svm
try gnomon join far.svm --metric jaccard --threshold 0.1 --recall 0.9 --method lsh -o - --output-format csv
try gnomon index build far.svm --metric jaccard --tables 3 --functions 1 -o far.lsh
try gnomon index query far.lsh far.svm -k 1 --exclude-self -o - --output-format csv
try gnomon index check far.lsh
