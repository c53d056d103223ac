# sketches of finite points that are beyond their type: refused with the row, whatever the chunks
# and the way points come; and numbers in text that only f8 holds
. "$TESTS/lib.sh"
"$PYTHON" -c '
import struct
def npy(name, rows, cols, values, code, descr, fortran=False):
    head = "{\"descr\": \"%s\", \"fortran_order\": %r, \"shape\": (%d, %d), }" % (descr, fortran, rows, cols)
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%d%s" % (len(values), code), *values))
def rows(n, d, huge, at):
    return [huge if i in at else 1.5 for i in range(n) for _ in range(d)]
npy("f4.npy", 40, 500, rows(40, 500, 3e38, (33, 35)), "f", "<f4")
npy("f8.npy", 40, 500, rows(40, 500, 1e308, (33, 35)), "d", "<f8")
npy("columns.npy", 3, 500, [v for _ in range(500) for v in (1, 2, 3e38)], "f", "<f4", True)
npy("half.npy", 3, 500, rows(3, 500, 1e5, (1,)), "f", "<f4")
open("points.svm", "w").write("1 1:1 3:2\n2 " + " ".join("%d:3e38" % (j + 1) for j in range(500)) + "\n")
open("numbers.csv", "w").write("1,2,1e300,4\n5,6,7,8\n")
open("numbers.svm", "w").write("1 1:1\n2 2:1e300 4:2\n")
open("large.csv", "w").write("1,2,1e400,4\n5,6,7,8\n")'
words() { sed 's/ in [0-9.]* s$//'; }
for file in f4.npy f8.npy columns.npy points.svm; do
    for kind in rademacher sjlt srht kronecker; do
        try gnomon project $file -k 4 --operator $kind -o y.npy | words
    done
    try gnomon project $file -k 4 --output-dtype f8 -o y.npy | words
done
try gnomon project half.npy -k 4 --output-dtype f2 -o y.npy
[ "$(echo y.*)" = y.npy ] || echo 'something was left behind'
for file in numbers.csv numbers.svm large.csv; do
    rm -f y.npy
    try gnomon project $file -k 2 -o y.npy
    try gnomon project $file -k 2 --output-dtype f8 -o y.npy | words
done
# the sums of f8 are those of the numbers as they stand in the text
printf '0.1,0.2,0.30000000000000004\n' > digits.csv
gnomon project digits.csv -k 1 --operator srht --output-dtype f8 --quiet -o digits.npy
gnomon operator --operator srht -k 1 -D 3 --output-dtype f8 --output-format csv -o s.csv --quiet
"$PYTHON" -c '
import struct
s = [float(v) for v in open("s.csv").read().split(",")]
y, = struct.unpack("<d", open("digits.npy", "rb").read()[-8:])
exact = sum(a * b for a, b in zip(s, (0.1, 0.2, 0.30000000000000004)))
print("in f8" if abs(y - exact) < 1e-15 else f"{y!r}, not {exact!r}")'
# let through
try gnomon project f4.npy -k 2 --allow-nonfinite -o y.npy | words
