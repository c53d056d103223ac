# one file, byte for byte: any number of threads, in memory or piece by piece, from a pipe
. "$TESTS/lib.sh"
needs_svd
make() { gnomon svd "$1" -k 7 --seed 5 --quiet -o "$2" "${@:3}"; }
make long.npy one.npz --threads 1
make long.npy three.npz --threads 3 && cmp one.npz three.npz
make long.npy pieces.npz --memory 65M --threads 2 && cmp one.npz pieces.npz
gnomon svd long.npy -k 7 --memory 65M --json | grep '"held"'
gnomon svd - -k 7 --seed 5 --quiet -o - < long.npy | cmp one.npz
gnomon svd long.npy -k 7 --seed 5 --single-pass -o a.npz --quiet
gnomon svd - -k 7 --seed 5 --single-pass -o - --threads 1 --quiet < long.npy | cmp a.npz
GNOMON_ISA=portable make long.npy portable.npz && cmp one.npz portable.npz
echo "the same"
