# arrays of a sparse matrix in the other byte order, longer than any buffer: the same values
. "$TESTS/lib.sh"
needs npz
$PYTHON - << 'END'
import random, struct, zipfile
random.seed(2)
rows, cols, each = 700, 90, 30
indices = [c for _ in range(rows) for c in sorted(random.sample(range(cols), each))]
indptr = [each * i for i in range(rows + 1)]
values = [random.random() for _ in indices]
def npy(descr, code, numbers):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (descr, len(numbers))
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("%s%d%s" % (order, len(numbers), code), *numbers)
def put(name, order, ints, real, code):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("format.npy", npy("|S3", "3s", [b"csr"])[:-3].replace(b"(1,)", b"()  ") + b"csr")
        z.writestr("shape.npy", npy(order + "i8", "q", [rows, cols]))
        z.writestr("indptr.npy", npy(order + ints, "q" if ints == "i8" else "i", indptr))
        z.writestr("indices.npy", npy(order + ints, "q" if ints == "i8" else "i", indices))
        z.writestr("data.npy", npy(order + real, code, values))
for ints in "i4", "i8":
    for real, code in ("f4", "f"), ("f8", "d"):
        put("little-%s-%s.npz" % (ints, real), "<", ints, real, code)
        put("big-%s-%s.npz" % (ints, real), ">", ints, real, code)
END
for kind in i4-f4 i4-f8 i8-f4 i8-f8; do
    for order in little big; do
        gnomon convert $order-$kind.npz $order.npy --quiet
        gnomon convert $order-$kind.npz $order.mtx --quiet
    done
    cmp little.npy big.npy && cmp little.mtx big.mtx && wc -l < big.mtx
done
