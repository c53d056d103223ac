# a full disk, then the same command again
. "$TESTS/lib.sh"
# of its own: a checkpoint knows its file's times
cp -L base.npy own.npy && mv own.npy base.npy
gnomon join base.npy --threshold 7 -o want.csv --counts want-counts.csv --clusters want-clusters.csv --quiet
# a limit on the size of files stands for a full disk
(ulimit -f 4; trap '' XFSZ; gnomon join base.npy --threshold 7 -o pairs.csv --checkpoint state 2>&1; echo "exit $?")
ls pairs.csv 2> /dev/null || echo "no output yet"
try gnomon join base.npy --threshold 6 -o pairs.csv --checkpoint state
try gnomon join base.npy --threshold 7 -o pairs.csv --counts counts.csv --clusters clusters.csv --checkpoint state
cmp pairs.csv want.csv && cmp counts.csv want-counts.csv && cmp clusters.csv want-clusters.csv && echo "the same"
ls state* 2> /dev/null || echo "no checkpoint left"
# by hashing, in bands of rows: stopped in the middle, by another seed refused, and taken up
hashed="gnomon join base.npy --threshold 7 --recall 0.9 --method lsh --seed 3"
$hashed -o want.csv --quiet
(ulimit -f 200; trap '' XFSZ; $hashed -o hashed.csv --checkpoint state 2>&1; echo "exit $?")
try $hashed --seed 4 -o hashed.csv --checkpoint state
try $hashed -o hashed.csv --checkpoint state
cmp hashed.csv want.csv && echo "the same"
# nothing is written over
echo mine > other.pairs
try gnomon join base.npy --threshold 7 --checkpoint other
cat other.pairs
