. "$TESTS/lib.sh"
try gnomon neighbors base.npy queries.npy
try gnomon neighbors base.npy queries.npy -k 3 --radius 1
try gnomon neighbors base.npy queries.npy -k 0
try gnomon neighbors base.npy queries.npy -k 301
try gnomon neighbors base.npy base.npy -k 300 --exclude-self
try gnomon neighbors base.npy queries.npy -k 5 --filter allowed.csv
try gnomon neighbors base.npy queries.npy -k 5 --filter points.csv
try gnomon neighbors base.npy queries.npy --radius -1
try gnomon neighbors base.npy points.npy -k 3
try gnomon neighbors base-nan.npy queries.npy -k 3 -o x.csv
try gnomon neighbors base.npy base-nan.npy -k 3 -o x.csv
try gnomon neighbors base.npy queries.npy -k 3 --metric jaccard
try gnomon neighbors base.npy queries.npy -k 3 --metric hamming
try gnomon neighbors base.npy queries.npy --radius 1 -o x.npy
try gnomon neighbors base.npy queries.npy -k 3 -o x.csv --distances y.npy
try gnomon neighbors base.npy queries.npy -k 3 --distances y.npy
try gnomon neighbors base.npy queries.npy -k 3 -o base.npy
try gnomon neighbors base.npy queries.npy -k 3 --ground-truth small.npy
try gnomon neighbors - - -k 3
try gnomon neighbors base.npy missing.npy -k 3
# what is wrong with a row is told of its file, whichever fault it is
printf '1 2:3\n1 1:-2\n' > negative.svm
try gnomon neighbors sparse.mtx negative.svm -k 1 --metric weighted-jaccard --features 300
ls x.* y.* 2>/dev/null || echo "nothing was written"
