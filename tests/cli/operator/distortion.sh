. "$TESTS/lib.sh"
gnomon project points.npy -k 64 --operator gaussian --seed 1 -o y.npy --quiet
try gnomon distortion points.npy y.npy --histogram
try gnomon distortion points.npy y.npy --pairs 1000 --seed 3 --eps 0.3 --max-outside 0.5 | tail -3
try gnomon distortion points.npy y.npy --eps 0.05 --max-outside 0.5 --json | tail -2
try gnomon distortion points.npy points.npy | sed -n 2,8p
try gnomon distortion points.npy y.npy --memory 65M --quiet | sed -n 2p
gnomon operator --operator gaussian -k 784 -D 784 -o big.npy
try gnomon distortion big.npy y.npy --memory 65M
try gnomon distortion big.npy y.npy --memory 67M
cat points.npy | gnomon distortion - y.npy | sed -n 1p
gnomon distortion points.csv y.npy > a; gnomon distortion points.npy y.npy | cmp - a && echo "csv: the same"
