# --operator auto, by a model in which work costs what it says and nothing else
. "$TESTS/lib.sh"
"$PYTHON" -c '
import json
kinds = ["rademacher", "gaussian", "gaussian", "achlioptas", "very-sparse", "sjlt", "srht"]
costs = []
for i, kind in enumerate(kinds):
    for form in ("points", "coordinates", "sparse"):
        cost = {"operator": kind, "form": form, "point_tile": 1, "row_tile": 1, "start": 1e-6 * (1 + i), "make": 0,
                "multiply": 1e-10, "read": 1e-12, "write": 0, "step": 0, "half": 1, "wide": 2}
        if kind == "gaussian":
            cost["precision"] = ["fp32", "fp16"][i - 1]
        costs.append(cost)
model = {"gnomon": "model", "version": 1, "name": "test", "device": "cpu", "threads": 1, "upload": 0,
         "download": 0, "costs": costs}
json.dump(model, open("model.json", "w"))
costs[0]["start"] = -1
json.dump(model, open("bad.json", "w"))'
auto="--operator auto --device cpu --threads 1 -o y.npy"
words() { sed 's/ in [0-9.]* s$//'; }
try gnomon project points.npy -k 20 $auto --model model.json | words
try gnomon project points.npy -k 20 $auto --model model.json --assume incoherent --save-operator s.json | words
# the descriptor that was chosen gives the same sketch
cp y.npy first.npy
gnomon project points.npy --quiet --load-operator s.json -o y.npy && cmp y.npy first.npy && echo same
try gnomon project points.npy --eps 0.5 $auto --model model.json | words
try gnomon project points.npy --eps 0.5 $auto --model model.json --assume incoherent --beta 1 | words
GNOMON_MODEL=model.json try gnomon project points.npy -k 20 $auto | words
try gnomon project points.npy -k 20 $auto --quiet
gnomon project points.npy -k 20 $auto --model model.json --quiet --json | "$PYTHON" -c '
import json, sys
report = json.load(sys.stdin)
choice = report["choice"]
chosen = choice["candidates"][choice["chosen"]]
assert chosen["operator"] == report["descriptor"]["kind"] == "rademacher" and chosen["admitted"], chosen
assert choice["model"] == "test" and choice["device"] == "cpu" and choice["assume"] == "nothing"
assert len(choice["candidates"]) == 12 and all(c["reason"] for c in choice["candidates"])
admitted = [c["predicted_seconds"] for c in choice["candidates"] if c["admitted"]]
assert chosen["predicted_seconds"] == min(admitted) < max(admitted)
print("good")'
# what does not go together
try gnomon project points.npy -k 785 $auto
try gnomon project points.npy --eps 0.05 $auto
try gnomon project points.csv -k 5 $auto
try gnomon project points.csv -k 5 $auto --points 100 --model model.json | words
try gnomon project points.npy -k 20 $auto --density 0.5
try gnomon project points.npy --eps 0.5 $auto --bound achlioptas
try gnomon project points.npy -k 20 -o y.npy --assume incoherent
try gnomon project points.npy -k 20 -o y.npy --model model.json
try gnomon project points.npy -k 20 $auto --model bad.json
try gnomon project points.npy -k 20 $auto --model none.json
try gnomon project points.npy -k 20 $auto --model s.json
try gnomon operator --operator auto -k 2 -D 3
