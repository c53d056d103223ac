# factorisations refuse a number of a text that single precision can't hold, by its text and place; least squares
# read double precision
. "$TESTS/lib.sh"
needs_svd
printf '1,2\n3,1e300\n5,7\n' > far.csv
printf '1 1:1 2:1\n0 1:1 2:-1e39\n1 2:3\n' > far.svm
printf '1\n2\n3\n' > right.csv
for file in far.csv far.svm; do
    try gnomon svd $file -k 1 -o x.npz
    try gnomon svd $file -k 1 --single-pass -o x.npz
    try gnomon hosvd $file --ranks 1,1 -o x.npz
done
try gnomon svd far.csv -k 1 --center -o y.npz --quiet
try gnomon lstsq far.csv right.csv -o y.npy --quiet
ls x.* 2> /dev/null || echo "nothing was written"
