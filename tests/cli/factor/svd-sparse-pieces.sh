# sparse rows that don't fit in --memory: piece by piece, the same file byte for byte, new points too
. "$TESTS/lib.sh"
needs_svd
needs npz
make_rows 20000 2 > many.svm
gnomon convert many.svm many.npz --output-dtype f4 --quiet
gnomon convert many.svm plain.npz --output-dtype f4 --no-compress --quiet
for options in "" "--standardize" "--tolerance 0.6" "--center --output-dtype f8"; do
    # shellcheck disable=SC2086
    gnomon svd many.npz -k 7 --device cpu $options -o whole.npz --json > whole.json
    for name in plain.npz many.npz many.svm; do
        [[ $name != *.svm || $options == *f8* ]] || continue # text is read in single precision
        # shellcheck disable=SC2086
        gnomon svd $name -k 7 --device cpu --memory 66M --threads 3 $options -o pieces.npz --json > pieces.json
        cmp whole.npz pieces.npz && "$PYTHON" -c '
import json, sys
whole, pieces = (json.load(open(name + ".json")) for name in ("whole", "pieces"))
assert (whole["held"], pieces["held"]) == ("sparse", "pieces"), (whole["held"], pieces["held"])
same = [k for k in whole if not k.endswith("seconds") and k not in ("input", "output", "held", "threads", "format")]
assert all(whole[k] == pieces[k] for k in same), [k for k in same if whole[k] != pieces[k]]
print(*sys.argv[1:])' "$name" $options
    done
done
gnomon transform whole.npz many.npz --quiet -o scores.npy
gnomon transform whole.npz plain.npz --memory 66M --quiet -o again.npy && cmp scores.npy again.npy && echo "the same scores"
# too little for the factors; nothing is written
make_rows 60000 40 > tall.svm
try gnomon svd tall.svm -k 60 --device cpu --output-dtype f8 --memory 65M -o none.npz
[ ! -e none.npz ] || echo "a file"
