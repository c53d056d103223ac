# every time that a report tells is one: not negative, and not a time of day
. "$TESTS/lib.sh"
needs_svd
cat > times.py <<'END'
import json, sys, time
def walk(at, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(f"{at}.{key}", inner)
    elif "seconds" in at.rsplit(".", 2)[-1] or ".seconds." in at:
        yield at, value
found = dict(walk("", json.load(open(sys.argv[2]))))
bad = {at: v for at, v in found.items() if not (isinstance(v, (int, float)) and 0 <= v < 3600)}
print(sys.argv[1], "no times" if not found else "times" if not bad else bad)
END
report() {
    "$@" --json --quiet > report.json 2> errors.txt || cat errors.txt
    "$PYTHON" times.py "$2" report.json
}
report gnomon project long.npy -k 5 -o a.npy
report gnomon distortion long.npy a.npy
report gnomon neighbors base.npy queries.npy -k 2 -o b.npy
report gnomon join base.npy --threshold 3 -o c.csv
awk 'BEGIN { for (i = 0; i < 3000; i++) { for (j = 0; j < 199; j++) printf "%d,", (i * 200 + j) % 97; print i % 89 } }' > many.csv
gnomon convert many.csv many.npy --quiet
report gnomon join many.npy --threshold 3 --memory 66M -o c.csv
report gnomon svd long.npy -k 3 -o d.npz
report gnomon svd long.npy -k 3 --memory 65M -o d.npz
report gnomon svd long.npy --tolerance 0.3 -o d.npz
report gnomon transform d.npz long.npy -o f.npy
report gnomon hosvd tensor.npy --ranks 2,2,2 -o e.npz
report gnomon lstsq features.npy targets.npy -o f.npy
report gnomon lstsq long.npy long-targets.npy --memory 65M -o f.npy
report gnomon convert long.npy g.csv
report gnomon index build base.npy --tables 3 --functions 2 --width 4 -o h.lsh
report gnomon index query h.lsh queries.npy -k 2 -o i.npy
