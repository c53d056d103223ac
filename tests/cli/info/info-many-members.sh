# an archive of very many arrays is told about in one pass; each as a reader of it alone tells
. "$TESTS/lib.sh"
needs npz
$PYTHON - << 'END'
import struct, zipfile
def npy(shape, descr="<f4", code="f"):
    n = 1
    for s in shape:
        n *= s
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (n, code), *range(n))
with zipfile.ZipFile("many.npz", "w") as z:
    for i in range(20000):
        z.writestr("a%05d.npy" % i, npy((2, 3)))
with zipfile.ZipFile("some.npz", "w") as z:
    z.writestr("a.npy", npy((2, 3)))
    z.writestr("b.npy", npy((4, 5), "<i8", "q"))
    z.writestr("line.npy", npy((7,)))
    z.writestr("cube.npy", npy((2, 3, 4)))
    z.writestr("cut.npy", npy((2, 3))[:-4])
    z.writestr("words.txt", "no array")
END
gnomon info many.npz | tail -1
gnomon info many.npz | wc -l
gnomon info many.npz --json | grep -c '"points": 2'
try gnomon info some.npz
for member in a b line cube; do
    gnomon info some.npz:$member | grep -E 'points|dimensions'
done
try gnomon info some.npz:cut
