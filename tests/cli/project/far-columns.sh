# sparse points of as many columns as an operator may have, within little memory; and an operator
# that needs more than the least, for which --memory is the remedy
. "$TESTS/lib.sh"
words() { sed 's/ in [0-9.]* s$//'; }
for columns in 1000000000 72057594037927936; do
    printf '1 1:1 %d:2\n2 5:1 700000:3\n' $columns > far.svm
    for kind in $kinds; do
        try gnomon project far.svm --features $columns -k 12 --operator $kind --memory 65M -o y.npy | words
    done
    for density in 0.00004 0.000000000931322574615478515625; do
        try gnomon project far.svm --features $columns -k 12 --operator very-sparse --density $density --memory 65M -o y.npy | words
    done
done
printf "1 1:1 1000000000000000:2\n" > wide.svm
for memory in 100M 1G; do
    try gnomon project wide.svm --features 1000000000000000 -k 1500 --operator kronecker --inner sjlt --nonzeros 1 \
        --zeta 64 --memory $memory -o y.npy | words
done
# the sketch of one point is more than there is
try gnomon project far.svm --features 72057594037927936 -k 40000000 --operator sjlt --memory 300M -o y.npy
