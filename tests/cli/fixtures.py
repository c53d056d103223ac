"""Writes the files that the command's tests read. Needs no package beside Python itself.

usage: fixtures.py FOLDER
"""
import gzip
import os
import struct
import sys

NAN = float("nan")
INF = float("inf")


def numbers(count, seed=1):
    """Multiples of 1/64 in [-2, 2): exact in every type and short as text."""
    state = seed
    out = []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(((state >> 33) % 256 - 128) / 64)
    return out


def npy(rows, cols, values, code="f", descr="<f4", fortran=False, shape=None):
    if fortran:
        values = [values[i * cols + j] for j in range(cols) for i in range(rows)]
    header = "{'descr': %r, 'fortran_order': %r, 'shape': %s, }" % (
        descr, fortran, shape or "(%d, %d)" % (rows, cols))
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack("<%d%s" % (len(values), code), *values))


def csv(rows, cols, values):
    return "".join(",".join(repr(v) for v in values[i * cols:(i + 1) * cols]) + "\n"
                   for i in range(rows)).encode()


def mtx(rows, cols, entries):
    lines = ["%%MatrixMarket matrix coordinate real general", "%d %d %d" % (rows, cols, len(entries))]
    lines += ["%d %d %r" % (i + 1, j + 1, v) for i, j, v in entries]
    return ("\n".join(lines) + "\n").encode()


def fvecs(rows):
    return b"".join(struct.pack("<i%df" % len(row), len(row), *row) for row in rows)


def main(folder):
    os.makedirs(folder, exist_ok=True)

    def put(name, data):
        temporary = os.path.join(folder, "." + name)
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, os.path.join(folder, name))

    n, d = 100, 784
    x = numbers(n * d)
    put("points.npy", npy(n, d, x))
    put("points-f8.npy", npy(n, d, x, "d", "<f8"))
    put("points-fortran.npy", npy(n, d, x, fortran=True))
    put("points.csv", csv(n, d, x))
    put("points.raw", struct.pack("<%df" % (n * d), *x))
    put("more.csv", csv(10, d, numbers(10 * d, 2)))
    bytes_ = [int(64 * v) + 128 for v in x]
    put("points-u1.npy", npy(n, d, bytes_, "B", "|u1"))
    put("points.idx.gz", gzip.compress(
        struct.pack(">HBBIII", 0, 8, 3, n, 28, 28) + bytes(bytes_), mtime=0))
    entries = [(t % 40, (t * t * 7 + t) % 300, v) for t, v in enumerate(numbers(400, 3)) if v != 0]
    # one value a place, so that readers that add duplicates and those that refuse them agree
    entries = sorted({(i, j): v for i, j, v in entries}.items())
    entries = [(i, j, v) for (i, j), v in entries]
    put("sparse.mtx", mtx(40, 300, entries))
    dense = [0.0] * (40 * 300)
    for i, j, v in entries:
        dense[i * 300 + j] = v
    put("sparse-dense.npy", npy(40, 300, dense))
    # several chunks under the least --memory
    long = numbers(256) * 2500
    put("long.npy", npy(20000, 32, long))
    put("long-fortran.npy", npy(20000, 32, long, fortran=True))

    # least squares: a tall matrix, two right-hand sides, one of them a vector
    tall, right = numbers(500 * 12, 5), numbers(1000, 6)
    put("features.npy", npy(500, 12, tall, "d", "<f8"))
    put("features-f4.npy", npy(500, 12, tall))
    put("features.csv", csv(500, 12, tall))
    put("features.mtx", mtx(500, 12, [(t // 12, t % 12, v) for t, v in enumerate(tall) if v != 0]))
    put("targets.npy", npy(500, 1, right[:500], "d", "<f8", shape="(500,)"))
    put("targets.csv", csv(500, 1, right[:500]))
    put("two-targets.npy", npy(500, 2, right, "d", "<f8"))
    put("long-targets.npy", npy(20000, 1, numbers(20000, 7), "d", "<f8"))
    put("targets-nan.npy", npy(500, 1, right[:499] + [NAN], "d", "<f8"))

    # search: some points twice, one of them zero
    base = numbers(300 * 20, 8)
    base[20 * 40:20 * 41] = base[20 * 7:20 * 8]
    base[20 * 50:20 * 51] = [0.0] * 20
    put("base.npy", npy(300, 20, base))
    put("queries.npy", npy(8, 20, numbers(6 * 20, 9) + base[20 * 7:20 * 8] + [0.0] * 20))
    put("queries-32.npy", npy(8, 32, numbers(8 * 32, 10)))
    put("base-nan.npy", npy(300, 20, base[:20 * 70 + 3] + [NAN] + base[20 * 70 + 4:]))
    put("notes.txt", b"Points are joined\nother words\npoints, are joined.\n\n")
    put("part-1.jsonl.gz", gzip.compress(b'{"id": 1, "text": "points are joined"}\n{"id": "b", "text": "Points are joined"}\n', mtime=0))
    put("part-2.jsonl.gz", gzip.compress(b'{"id": "c", "text": "points are joined"}\n', mtime=0))
    put("allowed.csv", b"7\n40\n50\n200\n")

    small = numbers(30)
    put("small.npy", npy(6, 5, small))
    put("small.csv", csv(6, 5, small))

    # tensors: three parts of rank one, and noise of an eighth
    def tensor(a, b, c):
        noise = iter(numbers(a * b * c, 5))
        u, v, w = ([numbers(size, seed + t) for t in range(3)] for size, seed in ((a, 11), (b, 21), (c, 31)))
        return [sum(u[t][i] * v[t][j] * w[t][k] for t in range(3)) + next(noise) / 8
                for i in range(a) for j in range(b) for k in range(c)]

    def in_fortran_order(a, b, c, values):
        return [values[(i * b + j) * c + k] for k in range(c) for j in range(b) for i in range(a)]

    t = tensor(12, 20, 15)
    put("tensor.npy", npy(12 * 20, 15, t, "d", "<f8", shape="(12, 20, 15)"))
    header = npy(1, 1, [0], "d", "<f8", shape="(12, 20, 15)").replace(
        b"'fortran_order': False", b"'fortran_order': True ")[:-8]
    put("tensor-fortran.npy", header + struct.pack("<3600d", *in_fortran_order(12, 20, 15, t)))
    put("tensor-f2.npy", npy(12 * 20, 15, [round(64 * x) / 64 for x in t], "e", "<f2", shape="(12, 20, 15)"))
    put("video.npy", npy(60 * 50, 60, tensor(60, 50, 60), shape="(60, 50, 60)"))
    put("tensor-vector.npy", npy(1, 15, t[:15], "d", "<f8", shape="(15,)"))

    # bad ones
    def with_value(values, at, value):
        return values[:at] + [value] + values[at + 1:]

    put("nan.npy", npy(6, 5, with_value(small, 3 * 5 + 2, NAN)))
    put("inf-fortran.npy", npy(6, 5, with_value(small, 4 * 5 + 1, -INF), fortran=True))
    put("nan-late.npy", npy(20000, 32, with_value(long, 15000 * 32 + 7, NAN)))
    put("nan-late-fortran.npy", npy(20000, 32, with_value(long, 15000 * 32 + 7, NAN), fortran=True))
    put("nan.csv", b"1,2\n3,nan\n")
    put("nan.mtx", mtx(6, 5, [(0, 0, 1.0), (4, 3, INF)]))
    put("truncated.npy", npy(6, 5, small)[:-8])
    put("tensor-nan.npy", npy(12 * 20, 15, with_value(t, (7 * 20 + 3) * 15 + 11, NAN), "d", "<f8",
                              shape="(12, 20, 15)"))
    put("tensor-huge.npy", npy(6, 5, small, shape="(4294967296, 4294967296, 16)"))
    put("tensor-lying.npy", npy(6, 5, small, shape="(6, 5, 70000)"))
    put("tensor-empty.npy", npy(0, 5, [], shape="(4, 0, 3)"))
    put("tensor-17.npy", npy(1, 1, [1.0], shape="(" + "1, " * 17 + ")"))
    put("tensor-scalar.npy", npy(1, 1, [1.0], shape="()"))
    put("lying.npy", npy(6, 5, small, shape="(6000, 5)"))
    put("huge.npy", npy(6, 5, small, shape="(4611686018427387904, 4611686018427387904)"))
    put("negative.npy", npy(6, 5, small, shape="(-6, 5)"))
    put("object.npy", npy(6, 5, small, descr="|O"))
    put("no-header.npy", b"\x93NUMPY\x01\x00")
    put("no-columns.npy", npy(6, 0, []))
    put("no-points.npy", npy(0, 5, []))
    put("ragged.csv", b"1,2,3\n4,5,6\n7,8\n")
    put("words.csv", b"1,2,3\n4,five,6\n")
    put("ragged.fvecs", fvecs([small[:5], small[:4]]))
    put("truncated.fvecs", fvecs([small[:5], small[:5]])[:-3])
    for ending in ("npy", "csv", "fvecs", "mtx", "npz", "unknown"):
        put("empty." + ending, b"")
    put("noise.unknown", bytes(range(128, 256)) * 4)
    put("descriptor.json", b'{"gnomon": "operator", "version": 1, "kind": "rademacher", "k": 3, "d": 5, "seed": 7}\n')
    put("descriptor-future.json", b'{"gnomon": "operator", "version": 2, "kind": "rademacher", "k": 3, "d": 5, "seed": 7}\n')
    put("descriptor-wrong.json", b'{"gnomon": "operator", "version": 1, "kind": "rademacher", "k": 9, "d": 5, "seed": 7}\n')
    put("descriptor-cut.json", b'{"gnomon": "operator", "version": 1, "ki')


main(sys.argv[1])
