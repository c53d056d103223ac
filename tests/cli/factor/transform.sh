# New points in the space of a factorisation. A space written by hand, whose scores are short decimals: Vt is two rows of a rotation
# by 3/5 and 4/5, the mean and the scale are halves and quarters.
. "$TESTS/lib.sh"
needs npz
cat > make.py <<'END'
import io, struct, sys, zipfile
def npy(values, shape, descr="<f8"):
    header = "{'descr': %r, 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    code = {"<f8": "d", "<f4": "f", "<i4": "i"}[descr]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), code), *values)
good = {
    "U": npy([0.0] * 10, (5, 2)),
    "S": npy([4.0, 1.0], (2,)),
    "Vt": npy([0.6, 0.8, 0, -0.8, 0.6, 0], (2, 3)),
    "mean": npy([1.0, 2.0, 3.0], (3,)),
    "scale": npy([0.5, 0.25, 1.0], (3,)),
}
def write(name, **changes):
    with zipfile.ZipFile(name, "w") as file:
        for key, data in {**good, **changes}.items():
            if data is not None:
                file.writestr(zipfile.ZipInfo(key + ".npy"), data)
nan, inf = float("nan"), float("inf")
write("good.npz")
write("plain.npz", mean=None, scale=None)
write("no-vt.npz", Vt=None)
write("no-s.npz", S=None)
write("no-u.npz", U=None)
write("one-row.npz", U=npy([0.0] * 2, (1, 2)))
write("int.npz", Vt=npy([1, 2, 3, 4, 5, 6], (2, 3), "<i4"))
write("nan.npz", Vt=npy([0.6, nan, 0, -0.8, 0.6, 0], (2, 3)))
write("short-mean.npz", mean=npy([1.0, 2.0], (2,)))
write("inf-mean.npz", mean=npy([1.0, inf, 2.0], (3,)))
write("zero-scale.npz", scale=npy([1.0, 0.0, 2.0], (3,)))
write("f4-scale.npz", scale=npy([1.0, 1.0, 2.0], (3,), "<f4"))
write("flat-s.npz", S=npy([4.0, 1.0], (2, 1)))
write("zero-s.npz", S=npy([4.0, 1e-20], (2,)))
write("wide-u.npz", U=npy([0.0] * 15, (5, 3)))
write("none.npz", Vt=npy([], (0, 3)), S=npy([], (0,)), U=npy([], (5, 0)))
with open("cut.npz", "wb") as cut, open("good.npz", "rb") as whole:
    data = whole.read()
    cut.write(data[:len(data) // 2])
END
"$PYTHON" make.py
printf '1,2,3\n1.5,2,3\n2,3,9\n0,0,0\n' > x.csv
printf '0 1:1 2:2 3:3\n0 1:1.5 2:2 3:3\n0 1:2 2:3 3:9\n0\n' > x.svm
try gnomon transform good.npz x.csv -o - --output-format csv --quiet
echo "sparse rows:"
gnomon transform good.npz x.svm -o - --output-format csv --quiet
echo "without a mean:"
gnomon transform plain.npz x.csv -o - --output-format csv --quiet
echo "whitened, and back:"
gnomon transform good.npz x.csv --whiten -o w.npy --quiet
gnomon convert w.npy - --output-format csv --quiet
gnomon transform good.npz w.npy --inverse --whiten -o - --output-format csv --quiet
gnomon transform good.npz x.csv -o y.npy --json --quiet | "$PYTHON" -c '
import json, sys
r = json.load(sys.stdin)
print({k: v for k, v in r.items() if not k.endswith("seconds") and k not in ("gnomon", "device", "isa", "threads", "gpu")})'
gnomon info y.npy | grep -v path
# what is no factorisation
for file in no-vt no-s no-u one-row int nan short-mean inf-mean zero-scale f4-scale flat-s zero-s wide-u none cut absent; do
    try gnomon transform $file.npz x.csv --whiten -o bad.npy
done
try gnomon transform x.csv x.csv -o bad.npy
gnomon convert x.csv other.npz --quiet
try gnomon transform other.npz x.csv -o bad.npy
# points that don't fit
printf '1,2\n3,4\n' > narrow.csv
try gnomon transform good.npz narrow.csv -o bad.npy
try gnomon transform good.npz x.csv --inverse -o bad.npy
printf '1,2,3\n1,nan,3\n' > hole.csv
try gnomon transform good.npz hole.csv -o bad.npy
printf '1,2,3\n1,1e300,3\n' > huge.csv
try gnomon transform good.npz huge.csv --output-dtype f4 -o bad.npy
try gnomon transform - x.csv -o bad.npy
try gnomon transform good.npz x.csv -o good.npz
try gnomon transform good.npz x.csv -o bad.xyz
try gnomon transform good.npz -o bad.npy
try gnomon transform good.npz x.csv --device cuda -o bad.npy 2>&1 | sed 's/;.*//'
[ -e bad.npy ] || echo 'no output of a failure'
# the same bits on any number of threads, from memory and in pieces, in a pipe
"$PYTHON" -c '
import random, struct
random.seed(2)
with open("big.f8", "wb") as f:
    f.write(struct.pack("<1500000d", *(random.gauss(3, 1) for _ in range(1500000))))'
for how in '--threads 1' '--threads 3' '--memory 65M' '--memory 65M --threads 2'; do
    # shellcheck disable=SC2086
    gnomon transform good.npz big.f8 --format raw --dtype f8 --shape '?,3' --quiet $how -o - | cksum
done | uniq | wc -l
cat x.csv | gnomon transform good.npz - --quiet -o - --output-format csv | sed -n 3p
