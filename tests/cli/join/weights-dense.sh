. "$TESTS/lib.sh"
needs npz
# dense rows of weights: the answers of the same rows as sparse ones, from search, join, hashing and index
"$PYTHON" -c '
import random
random.seed(4)
rows = [[random.choice((0, 0, 1, 2.5)) + (random.random() < 0.1) for _ in range(30)] for _ in range(60)]
rows += [[x if random.random() < 0.9 else x / 2 for x in row] for row in rows] + [[0] * 30]
with open("dense.csv", "w") as f:
    f.writelines(",".join(map(repr, row)) + "\n" for row in rows)'
gnomon convert dense.csv dense.npy --quiet
gnomon convert dense.csv sparse.npz --sparse --quiet
for x in dense.csv dense.npy sparse.npz; do
    gnomon neighbors $x $x --metric weighted-jaccard -k 4 --exclude-self -o near.csv --quiet
    gnomon neighbors sparse.npz $x --metric weighted-jaccard --radius 0.5 -o within.csv --quiet
    gnomon neighbors $x $x --metric weighted-jaccard -k 4 --recall 0.9 -o tuned.csv --quiet
    gnomon join $x --metric weighted-jaccard --threshold 0.6 -o pairs.csv --quiet
    gnomon join $x dense.npy --metric weighted-jaccard --threshold 0.6 -o across.csv --quiet
    gnomon join $x --metric weighted-jaccard --similarity 0.6 --method lsh --recall 0.9 -o hashed.csv --quiet
    gnomon index build $x --metric weighted-jaccard --tables 6 --functions 1 -o x.lsh --quiet
    gnomon index add x.lsh $x --quiet
    gnomon index query x.lsh $x -k 3 -o asked.csv --quiet
    cat near.csv within.csv tuned.csv pairs.csv across.csv hashed.csv asked.csv | cksum
    wc -l < pairs.csv
done | uniq -c | "$PYTHON" -c '
import sys
lines = [line.split() for line in sys.stdin]
print(len(lines), len({tuple(line[1:]) for line in lines}), int(lines[1][1]) > 60)'
# what is no weight is refused by file, row and column
printf '1,2\n3,-4\n' > negative.csv
printf '1,2\nnan,4\n' > hole-w.csv
try gnomon neighbors negative.csv negative.csv --metric weighted-jaccard -k 1
try gnomon join negative.csv --metric weighted-jaccard -t 0.5
try gnomon join hole-w.csv --metric weighted-jaccard -t 0.5
try gnomon index build negative.csv --metric weighted-jaccard --tables 2 --functions 1 -o y.lsh
# sets are sparse
try gnomon join dense.npy --metric jaccard -t 0.5
