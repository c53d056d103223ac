# a few bytes that declare a huge matrix: a word is asked for before anything is written
. "$TESTS/lib.sh"
printf '%%%%MatrixMarket matrix coordinate real general\n1000000000000 1000 1\n1 1 1\n' > huge.mtx
printf '%%%%MatrixMarket matrix coordinate real general\n2000000 1000 1\n1 1 1\n' > big.mtx
try gnomon convert huge.mtx x.npy
try gnomon convert huge.mtx x.csv
try gnomon convert huge.mtx x.npz --dense
try gnomon project huge.mtx -k 100 -o x.npy
try gnomon convert big.mtx x.npy
try gnomon project big.mtx -k 999 -o x.npy --quiet
ls x.* 2> /dev/null || echo "nothing was written"
# a pipe is nobody's disk, nonzeros alone are few, and 1 GiB is allowed
gnomon convert huge.mtx - --output-format csv 2> /dev/null | head -c 8; echo
try gnomon convert big.mtx x.mtx
try gnomon project big.mtx -k 2 -o x.npy --quiet
# with the word it is begun: a limit on files ends it
(ulimit -f 1000; gnomon convert big.mtx x.npy --large 2>&1; echo "exit $?")
# an offset or a line of each row beside the nonzeros
try gnomon convert huge.mtx z.npz
try gnomon convert huge.mtx z.svm
ls z.* 2> /dev/null || echo "nothing was written"
