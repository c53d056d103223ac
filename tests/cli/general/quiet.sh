# a result that nothing would tell is refused before the work
. "$TESTS/lib.sh"
try gnomon join points.npy --threshold 1 --quiet
try gnomon lstsq features.npy targets.npy --quiet
try gnomon svd points.npy -k 2 --quiet
try gnomon hosvd tensor.npy --ranks 2,2,2 --quiet
gnomon join points.npy --threshold 1 --quiet -o pairs.npy && ls pairs.npy
gnomon join points.npy --threshold 1 --quiet --json | grep -c '"pairs"'
