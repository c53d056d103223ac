# points of which one alone is larger than the chunk that --memory leaves: pieces of columns
. "$TESTS/lib.sh"
gnomon operator --operator gaussian -k 3 -D 400000 --seed 9 -o wide.npy
for kind in gaussian rademacher achlioptas very-sparse sjlt block; do
    gnomon project wide.npy -k 16 --operator $kind -o whole.npy --quiet
    gnomon project wide.npy -k 16 --operator $kind -o pieces.npy --quiet --memory 65M --json > /dev/null
    cmp whole.npy pieces.npy && echo "$kind: the same"
done
gnomon project wide.npy -k 16 -o pieces.npy --quiet --memory 65M --json |
    "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["chunk_dimensions"] < 400000)'
gnomon convert wide.npy wide.fbin --quiet
cat wide.npy | try gnomon project - -k 16 -o y.npy --memory 65M
