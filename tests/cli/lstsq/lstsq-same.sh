# one file, byte for byte: any number of threads, in memory or piece by piece, from a pipe
. "$TESTS/lib.sh"
needs_svd
make() { gnomon lstsq "$1" long-targets.npy -k 300 --damp 0.1 --seed 5 --quiet -o "$2" "${@:3}" > /dev/null; }
make long.npy one.npy --threads 1
make long.npy three.npy --threads 3 && cmp one.npy three.npy
make long.npy pieces.npy --memory 65M --threads 2 && cmp one.npy pieces.npy
gnomon lstsq long.npy long-targets.npy --memory 65M --json | grep '"held"'
gnomon lstsq - long-targets.npy -k 300 --damp 0.1 --seed 5 --quiet -o - < long.npy | cmp one.npy
gnomon lstsq long.npy - -k 300 --damp 0.1 --seed 5 --quiet -o - < long-targets.npy | cmp one.npy
GNOMON_ISA=portable make long.npy portable.npy && cmp one.npy portable.npy
echo "the same"
