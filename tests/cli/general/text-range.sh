# a number of a text beyond what f32 holds is refused with its text and place by every verb that reads single
# precision, and read by those that read double
. "$TESTS/lib.sh"
printf '1,2\n3,1e300\n5,7\n' > far.csv
printf '1 1:1 2:1\n0 1:1 2:-1e39\n1 2:3\n' > far.svm
printf '%%%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 1\n2 2 4e38\n3 1 2\n' > far.mtx
printf '1\n2\n3\n' > right.csv
for file in far.csv far.svm far.mtx; do
    try gnomon join $file -t 1 --count
    try gnomon neighbors $file $file -k 1 -o x.csv
    try gnomon neighbors $file $file -k 1 --recall 0.9 -o x.csv
    try gnomon index build $file -o x.lsh --tables 2 --functions 2 --width 1
    try gnomon project $file -k 2 -o x.npy
    try gnomon project $file -k 2 -o x.npy --allow-nonfinite
    try gnomon distortion $file right.csv
done
for metric in jaccard weighted-jaccard; do
    try gnomon join far.svm --metric $metric -t 0.5 --count
    try gnomon neighbors far.svm far.svm --metric $metric -k 1 -o x.csv
    try gnomon index build far.svm -o x.lsh --metric $metric --tables 2 --functions 2
done
ls x.* 2> /dev/null || echo "nothing was written"
try gnomon project far.csv -k 2 --output-dtype f8 -o y.npy --quiet
try gnomon convert far.csv y.npy --quiet
try gnomon convert y.npy - --output-format csv --quiet
try gnomon convert far.svm y.npz --quiet
try gnomon join y.npz -t 1 --count
