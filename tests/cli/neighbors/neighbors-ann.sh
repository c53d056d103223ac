. "$TESTS/lib.sh"
needs hdf5
# A file as ann-benchmarks has them: the base is /train, the queries are /test, also where one file is given twice.
for with in /usr/bin/python3 "$PYTHON"; do
    "$with" -c 'import h5py' 2>/dev/null && break
    with=
done
[ -n "$with" ] || { echo "no Python with h5py"; exit 77; }
"$with" - <<'P'
import h5py
import numpy as np
with h5py.File("ann.h5", "w") as file:
    file["train"], file["test"] = np.load("base.npy"), np.load("queries.npy")
    file["neighbors"], file["distances"] = np.zeros((8, 10), "i4"), np.zeros((8, 10), "f4")
P
gnomon neighbors base.npy queries.npy -k 3 -o want.csv --quiet
gnomon neighbors ann.h5 ann.h5 -k 3 -o got.csv --quiet && cmp want.csv got.csv && echo "the queries are /test"
gnomon neighbors ann.h5 queries.npy -k 3 -o got.csv --quiet && cmp want.csv got.csv && echo "the base is /train"
gnomon neighbors base.npy ann.h5 -k 3 -o got.csv --quiet && cmp want.csv got.csv && echo "the queries are /test"
gnomon neighbors ann.h5:/test ann.h5:/train -k 1 -o got.csv --quiet && sed 1d got.csv | wc -l
