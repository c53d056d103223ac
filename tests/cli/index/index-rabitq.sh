# Codes of points: exact answers, those to a recall, and what is refused.
. "$TESTS/lib.sh"
gnomon index build base.npy --rabitq 2 -o base.rbq --quiet
gnomon index info base.rbq
gnomon index info base.rbq --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["metric"], r["points"], r["dimensions"], r["bits"], r["seed"], r["codes_only"], r["index_bytes"])'
gnomon index check base.rbq
# without --recall and --rerank the answers are exact
gnomon neighbors base.npy queries.npy -k 5 -o exact.npy --quiet
gnomon index query base.rbq queries.npy -k 5 -o found.npy --quiet
cmp exact.npy found.npy && echo exact
gnomon neighbors queries.npy --index base.rbq -k 5 -o found.npy --quiet
cmp exact.npy found.npy && echo exact
gnomon index query base.rbq queries.npy -k 5 --rerank 1000000 -o found.npy --quiet
cmp exact.npy found.npy && echo exact
gnomon index query base.rbq queries.npy -k 5 --recall 0.9 --ground-truth exact.npy --json --quiet |
    "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["recall"] >= 0.9)'
gnomon index build base.npy --rabitq 1 --metric cosine --seed 7 -o - --quiet | cat > piped.rbq
gnomon index info piped.rbq
gnomon index build base.npy --rabitq 1 --metric cosine --seed 7 -o named.rbq --quiet
cmp piped.rbq named.rbq && echo the same
refuse() { "$@"; echo "exit $?"; }
exec 2>&1
refuse gnomon index build base.npy --rabitq 9 -o no.rbq
refuse gnomon index build base.npy --rabitq 2 --tables 3 -o no.rbq
refuse gnomon index build base.npy --rabitq 2 --recall 0.9 -k 5 -o no.rbq
refuse gnomon index build base.npy --rabitq 2 --metric ip -o no.rbq
refuse gnomon index query base.rbq queries.npy -k 5 --tables 2
refuse gnomon index query base.rbq queries.npy --radius 2
refuse gnomon index query base.rbq queries.npy -k 5 --recall 0.5 --rerank 9
refuse gnomon index query base.rbq queries.npy -k 5 --rerank 4
refuse gnomon index add base.rbq queries.npy
refuse gnomon index compact base.rbq
head -c 3000 base.rbq > cut.rbq
refuse gnomon index query cut.rbq queries.npy -k 5
"$PYTHON" -c 'data = bytearray(open("base.rbq", "rb").read()); data[-400] ^= 1; open("bad.rbq", "wb").write(data)'
refuse gnomon index check bad.rbq
test ! -e no.rbq
