# sparse files: the same sketch whatever their format, and as their dense form
. "$TESTS/lib.sh"
needs npz
gnomon convert sparse.mtx a.npz --output-dtype f4 --quiet && gnomon convert sparse.mtx a.svm --quiet
gnomon convert a.npz b.mtx --quiet && gnomon convert b.mtx c.npy --dense --output-dtype f4 --quiet && cmp c.npy sparse-dense.npy && echo dense
(gnomon info a.npz; gnomon info a.svm) | sed "s,^file size.*,file size,"
gnomon project sparse.mtx -k 8 -o y.npy --quiet
gnomon project a.npz -k 8 -o z.npy --quiet && cmp y.npy z.npy && echo npz
gnomon project a.svm --features 300 -k 8 -o z.npy --quiet && cmp y.npy z.npy && echo svmlight
gnomon project sparse.mtx -k 8 -o z.npy --quiet --memory 65M --threads 1 && cmp y.npy z.npy && echo memory
gnomon distortion sparse.mtx y.npy --json > a.json
gnomon distortion sparse-dense.npy y.npy --json > b.json
"$PYTHON" -c '
import json
a, b = (json.load(open(name)) for name in ("a.json", "b.json"))
for part in ("norms", "distances"):
    for figure in ("count", "skipped", "mean", "variance", "min", "max", "outside"):
        assert abs(a[part][figure] - b[part][figure]) <= 1e-9 * abs(b[part][figure]), (part, figure)
print("the same distortion")'
