# one file, byte for byte: any number of threads, in memory or piece by piece, from a pipe
. "$TESTS/lib.sh"
needs_svd
needs npz
make() { gnomon hosvd "$1" --ranks 4,5,6 --seed 5 --quiet -o "$2" "${@:3}" > /dev/null; }
for way in "" --sequential "--power 0"; do
    make video.npy one.npz --threads 1 $way
    make video.npy three.npz --threads 3 $way && cmp one.npz three.npz
    make video.npy pieces.npz --memory 65M --threads 2 $way && cmp one.npz pieces.npz
    gnomon hosvd - --ranks 4,5,6 --seed 5 --quiet $way -o - < video.npy | cmp one.npz
    GNOMON_ISA=portable make video.npy portable.npz $way && cmp one.npz portable.npz
done
gnomon hosvd video.npy --ranks 4,5,6 --memory 65M --json | grep '"held"'
echo "the same"
