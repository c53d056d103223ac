. "$TESTS/lib.sh"
# an index's life: built as told, looked at, asked, changed, compacted, held against its checksums
try gnomon index build base.npy --tables 6 --functions 4 --fine 1 --width 25 --codes 8 --probes 20 --rerank 90 -o a.lsh
try gnomon index info a.lsh
try gnomon index check a.lsh
gnomon neighbors base.npy queries.npy -k 4 -o exact.npy --quiet
try gnomon index query a.lsh queries.npy -k 4 --ground-truth exact.npy
try gnomon index query a.lsh queries.npy -k 4 --probes 4000 --rerank 0 --ground-truth exact.npy -o found.npy --distances found-distances.npy
cmp exact.npy found.npy && echo same
try gnomon index query a.lsh queries.npy -k 1 -o - --output-format csv
# the same bytes whatever the threads and the memory
gnomon index build base.npy --tables 6 --functions 4 --fine 1 --width 25 --codes 8 --probes 20 --rerank 90 -o b.lsh --threads 1 --memory 65M --quiet
cmp a.lsh b.lsh && echo same
gnomon operator --operator gaussian -k 20000 -D 20000 --cols 0:64 --scaling none -o many.fvecs --quiet
for memory in 1G 67M; do
    gnomon index build many.fvecs --tables 2 --functions 6 --width 8 --codes 16 -o $memory.lsh --memory $memory --quiet
done
cmp 1G.lsh 67M.lsh && echo same
# as a whole or in two parts
gnomon index build base.npy --tables 2 --functions 3 --metric cosine -o whole.lsh --quiet
"$PYTHON" - <<'END'
import shutil
def part(name, first, last, row=80):
    data = open("base.npy", "rb").read()
    head, body = data[:128], data[128:]
    head = head.replace(b"(300, 20)", b"(%d, 20)" % (last - first) + b" " * (3 - len(str(last - first))))
    open(name, "wb").write(head + body[first * row:last * row])
part("first.npy", 0, 170)
part("second.npy", 170, 300)
END
gnomon index build first.npy --tables 2 --functions 3 --metric cosine -o parts.lsh --quiet
try gnomon index add parts.lsh second.npy
cmp whole.lsh parts.lsh && echo same
# removed ones are found no more, and once compacted are gone
printf '0\n7\n7\n299\n' > ids.csv
try gnomon index remove whole.lsh ids.csv -o less.lsh
try gnomon index query less.lsh base.npy -k 1 -o near.csv
"$PYTHON" - <<'END'
near = {int(q): int(i) for q, i, _ in (line.split(",") for line in open("near.csv").read().splitlines()[1:])}
print(sorted(q for q, i in near.items() if q != i), {0, 7, 299} & set(near.values()))
row = open("base.npy", "rb").read()[128 + 299 * 80:128 + 300 * 80]
print(row in open("less.lsh", "rb").read())
END
printf '1\n' | try gnomon index remove less.lsh - --format csv
try gnomon index compact less.lsh
"$PYTHON" - <<'END'
row = open("base.npy", "rb").read()[128 + 299 * 80:128 + 300 * 80]
print(row in open("less.lsh", "rb").read())
END
try gnomon index check less.lsh
try gnomon index info less.lsh
# sets and bits
try gnomon index build sparse.mtx --metric jaccard --tables 4 --functions 1 -o sets.lsh
try gnomon index query sets.lsh sparse.mtx -k 1 --exclude-self -o - --output-format csv
try gnomon index build points-u1.npy --metric hamming --tables 3 --functions 6 -o bits.lsh
try gnomon index query bits.lsh points-u1.npy --radius 0 -o zero.csv
try gnomon index check sets.lsh
gnomon index query bits.lsh points-u1.npy -k 2 --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["verb"], r["metric"], r["k"], r["answers"], r["candidates"] >= r["verified"] > 0)'
gnomon index info bits.lsh --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["family"], r["tables"], r["functions"], r["seed"], r["index_bytes"] > 0)'
