# --filter: a mask of truth values as NumPy writes them, or ids; answers that have no file to go to
. "$TESTS/lib.sh"
"$PYTHON" - <<'END'
import struct
def npy(name, descr, shape, data):
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(11 + len(header)) % 64) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
ids = {7, 40, 50, 200}
npy("mask.npy", "|b1", (300,), bytes(i in ids for i in range(300)))
npy("column.npy", "|b1", (300, 1), bytes(i in ids for i in range(300)))
npy("short.npy", "|b1", (299,), b"\1" * 299)
npy("none.npy", "|b1", (300,), bytes(300))
npy("zeros-and-ones.npy", "|u1", (300,), bytes(i in ids for i in range(300)))
END
gnomon neighbors base.npy queries.npy -k 4 --filter allowed.csv -o by-ids.csv --quiet
for mask in mask.npy column.npy; do
    gnomon neighbors base.npy queries.npy -k 4 --filter $mask -o by-mask.csv --quiet; cmp by-ids.csv by-mask.csv && echo "the same by $mask"
done
gnomon convert base.npy base.csv --quiet
gnomon neighbors base.csv queries.npy -k 4 --filter mask.npy --output-format csv --quiet | cut -d, -f1,2 | cmp - <(cut -d, -f1,2 by-ids.csv) && echo "the same of text"
gnomon index build base.npy --tables 2 --functions 3 --metric cosine -o a.lsh --quiet
gnomon neighbors queries.npy --index a.lsh -k 4 --filter mask.npy --quiet | sed 1d | cut -d, -f2 | sort -un | tr '\n' ' '; echo
try gnomon neighbors base.npy queries.npy -k 4 --filter short.npy
try gnomon neighbors base.csv queries.npy -k 4 --filter short.npy
try gnomon neighbors base.npy queries.npy -k 1 --filter none.npy
# numbers stay ids
gnomon neighbors base.npy queries.npy -k 1 --filter zeros-and-ones.npy --quiet | sed 1d | cut -d, -f2 | sort -un | tr '\n' ' '; echo
# without -o answers are printed; recall and figures alone are not
try gnomon neighbors base.npy queries.npy -k 1
gnomon neighbors base.npy queries.npy -k 1 --output-format tsv --quiet | head -3
gnomon neighbors base.npy queries.npy --radius 4 --quiet | head -3
gnomon neighbors base.npy queries.npy -k 1 -o ids.npy --quiet
try gnomon neighbors base.npy queries.npy -k 1 --ground-truth ids.npy
gnomon index query a.lsh queries.npy -k 1 --quiet | sed 1d | wc -l
# what other libraries call them
for name in euclidean manhattan dot inner_product; do
    gnomon neighbors base.npy queries.npy -k 1 --metric $name --json | grep '"metric"'
done
try gnomon join base.npy --top 1 --metric euclidean -o - --output-format csv
gnomon join base.npy --top 1 --metric dot --quiet -o - --output-format csv
gnomon index build base.npy --metric manhattan --width 40 --tables 2 --functions 2 -o l1.lsh --quiet
try gnomon join base.npy --top 1 --metric minkowski
