# a full disk, a missing folder, a closed pipe: told, and nothing left
. "$TESTS/lib.sh"
try gnomon project small.npy -k 2 -o /dev/full
try gnomon convert small.npy /dev/full
gnomon project small.npy -k 2 > /dev/full; echo "exit $?"
gnomon dim --points 9 --eps 0.5 > /dev/full; echo "exit $?"
gnomon info --json > /dev/full; echo "exit $?"
gnomon --help > /dev/full; echo "exit $?"
try gnomon convert small.npy nowhere/y.npy
mkdir folder
try gnomon convert small.npy folder
# a limit on the size of files stands for a full disk in the middle of a write
echo old > y.npy
(ulimit -f 100; trap '' XFSZ; gnomon convert points.npy y.npy; echo "exit $?")
(ulimit -f 100; trap '' XFSZ; gnomon project points.npy -k 700 -o y.npy --quiet; echo "exit $?")
cat y.npy
