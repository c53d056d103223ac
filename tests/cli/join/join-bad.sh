. "$TESTS/lib.sh"
try gnomon join base.npy
try gnomon join base.npy --threshold -1
try gnomon join base.npy --threshold nan
try gnomon join base.npy --threshold inf
try gnomon join base.npy --top 0
try gnomon join base.npy --top 3 --count
try gnomon join base.npy --top 3 -o x.npz
try gnomon join base.npy --threshold 1 --count -o x.csv
try gnomon join base.npy queries.npy --threshold 1 --clusters x.csv
try gnomon join base.npy points.npy --threshold 1
try gnomon join base-nan.npy --threshold 1 -o x.csv
try gnomon join base.npy base-nan.npy --threshold 1 -o x.csv
try gnomon join base.npy --metric jaccard --threshold 1
try gnomon join base.npy --metric hamming --threshold 1
try gnomon join base.npy --threshold 1 -o x.csv --distances y.npy
try gnomon join base.npy --threshold 1 --distances y.npy
try gnomon join base.npy --threshold 1 -o base.npy
try gnomon join base.npy --threshold 1 -o x.csv --counts x.csv
try gnomon join base.npy --threshold 1 --from-row 301
try gnomon join - - --threshold 1
try gnomon join missing.npy --threshold 1
try gnomon join missing --text files --threshold 1
try gnomon join base.npy queries.npy --text lines --threshold 1
try gnomon join base.npy --ngram 2 --threshold 1
try gnomon join base.npy --text lines --metric l2 --threshold 1
try gnomon join base.npy --top 2 --checkpoint x.state
try gnomon join base.npy --threshold 1 --checkpoint points.csv
ls x.* y.* 2>/dev/null || echo "nothing was written"
# a limit on the size of files stands for a full disk
echo old > z.csv
(ulimit -f 4; trap '' XFSZ; gnomon join base.npy --threshold 9 -o z.csv 2>&1; echo "exit $?")
cat z.csv
