. "$TESTS/lib.sh"
# inverted lists by trained centres: built, looked at, asked, changed, compacted, checked
try gnomon index build base.npy --family k-means --centres 12 --probes 2 -o a.lsh
try gnomon index info a.lsh
try gnomon index check a.lsh
gnomon neighbors base.npy queries.npy -k 4 -o exact.npy --quiet
try gnomon index query a.lsh queries.npy -k 4 --ground-truth exact.npy
try gnomon index query a.lsh queries.npy -k 4 --probes 11 --ground-truth exact.npy -o found.npy
cmp exact.npy found.npy && echo same
gnomon index info a.lsh --json | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print(r["family"], r["centres"], r["tables"], r["functions"], r["probes"])'
# the same bytes whatever the threads, the memory and the format
gnomon index build base.npy --family k-means --centres 12 --probes 2 -o b.lsh --threads 1 --memory 65M --quiet
cmp a.lsh b.lsh && echo same
gnomon convert base.npy base.csv --quiet
gnomon index build base.csv --family k-means --centres 12 --probes 2 -o b.lsh --quiet
cmp a.lsh b.lsh && echo same
gnomon operator --operator gaussian -k 20000 -D 20000 --cols 0:64 --scaling none -o many.fvecs --quiet
for memory in 1G 67M; do
    gnomon index build many.fvecs --family k-means --centres 50 -o $memory.lsh --memory $memory --quiet
done
cmp 1G.lsh 67M.lsh && echo same
try gnomon index build many.fvecs --family k-means --centres 500 -o none.lsh --memory 67M
# the root of the number of points
try gnomon index build base.npy --metric cosine --family spherical-k-means --seed 3 -o root.lsh
# points are added and removed; the centres stay
try gnomon index add a.lsh queries.npy
printf '0\n7\n299\n' > ids.csv
try gnomon index remove a.lsh ids.csv
try gnomon index compact a.lsh
try gnomon index info a.lsh
try gnomon index check a.lsh
try gnomon neighbors queries.npy --index a.lsh -k 1 -o - --output-format csv
# what is refused
try gnomon index build base.npy --family k-means --centres 301 -o none.lsh
try gnomon index build base.npy --family k-means --metric cosine -o none.lsh
try gnomon index build base.npy --family spherical-k-means -o none.lsh
try gnomon index build base.npy --family k-means --metric hamming -o none.lsh
for option in "--tables 2" "--functions 1" "--fine 1" "--width 2" "--sides 4" "--codes 8" "--rerank 5" "--recall 0.9 -k 1"; do
    try gnomon index build base.npy --family k-means -o none.lsh $option
done
try gnomon index build base.npy --centres 5 -o none.lsh
try gnomon index build base.npy --tables 2 --functions 2 --width 4 --centres 5 -o none.lsh
try gnomon index build base.npy --family k-means --centres 1 -o none.lsh
try gnomon index build - --family k-means -o none.lsh < base.npy
mkfifo pipe
try gnomon index build pipe --family k-means -o none.lsh
printf '1,2\n3,nan\n4,5\n' > bad.csv
try gnomon index build bad.csv --family k-means --centres 2 -o none.lsh
[ -e none.lsh ] || echo none
