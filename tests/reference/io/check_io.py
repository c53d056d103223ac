"""Files written by NumPy, h5py and struct against what our reader makes of them, and files
written by us against what NumPy and h5py make of those.

    check_io.py IO_DUMP
"""
import gzip
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

try:
    import safetensors.numpy
except ImportError:
    safetensors = None

DUMP = sys.argv[1]
WITH_HDF5 = "nohdf5" not in sys.argv and h5py is not None
WITH_ZIP = "nozip" not in sys.argv
failures = []
checks = 0


def run(*args, stdin=None):
    done = subprocess.run([DUMP, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr.decode()


def expect(what, good, detail=""):
    global checks
    checks += 1
    if not good:
        failures.append(f"{what}: {detail}")


def same(what, out, want):
    want = np.ascontiguousarray(want, dtype="<f8")
    got = np.frombuffer(out, "<f8")
    ok = got.size == want.size and np.array_equal(got.view("<u8"), want.ravel().view("<u8"))
    expect(what, ok, f"{got.size} values for {want.shape}: {got[:6]} for {want.ravel()[:6]}")


def reads(what, path, want, *options, facts=None, blocks=True):
    """In order, at two chunk sizes, by blocks, and from a pipe."""
    want = np.asarray(want)
    for chunk in (1, 7, 1000):
        code, out, err = run("read", path, f"chunk={chunk}", *options)
        expect(what, code == 0, err)
        if code:
            return
        same(f"{what} chunk={chunk}", out, want)
    if facts:
        expect(what, facts in err, f"{facts!r} is not in {err!r}")
    n, d = want.shape
    if blocks:
        for r0, r1, c0, c1 in {(0, n, 0, d), (n // 3, n, d // 2, d), (n // 2, n // 2 + 1, 0, 1),
                               (0, n, d - 1, d)}:
            code, out, err = run("read", path, f"block={r0},{r1},{c0},{c1}", *options)
            expect(f"{what} block", code == 0, err)
            if code == 0:
                same(f"{what} block {r0}:{r1},{c0}:{c1}", out, want[r0:r1, c0:c1])


def reads_piped(what, path, want, *options):
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        code, out, err = run("read", "-", *options, stdin=cat.stdout)
    expect(f"{what} piped", code == 0, err)
    if code == 0:
        same(f"{what} piped", out, want)
    with open(path, "rb") as f:
        code, out, err = run("read", "-", *options, stdin=f)
    expect(f"{what} redirected", code == 0, err)
    if code == 0:
        same(f"{what} redirected", out, want)


def refuses(what, path, status, *options, text=""):
    code, _, err = run("read", path, *options)
    expect(what, code == 1 and status in err and text in err, f"{code} {err}")


def sample(rng, dtype, n=23, d=17):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.standard_normal((n, d)) * 100).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, (n, d)).astype(dtype)
    info = np.iinfo(dtype)
    lo, hi = max(info.min, -(2**53)), min(info.max, 2**53)
    x = rng.integers(lo, hi, (n, d), dtype=np.int64, endpoint=True).astype(dtype)
    x[0, 0], x[0, 1] = lo, hi
    return x


def npy(tmp, rng):
    for kind, order, layout in itertools.product(
            "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split(), "<>", "CF"):
        x = np.asarray(sample(rng, order + kind), order=layout)
        path = f"{tmp}/a.npy"
        np.save(path, x)
        reads(f"npy {order}{kind} {layout}", path, x.astype("f8"),
              facts=f"npy 23 17 {'u8' if kind == 'b1' else kind[0] + str(8 * int(kind[1]))} ")
        if kind in ("f4", "i1"):
            reads_piped(f"npy {order}{kind} {layout}", path, x.astype("f8"))
    for version in ((1, 0), (2, 0), (3, 0)):
        x = sample(rng, "f4")
        with open(path, "wb") as f:
            np.lib.format.write_array(f, x, version=version)
        reads(f"npy version {version}", path, x)
    # shapes
    x = rng.standard_normal(31)
    np.save(path, x)
    reads("npy of one dimension is one point", path, x.reshape(1, -1))
    x = rng.standard_normal((5, 4, 3))
    np.save(path, x)
    reads("npy of three dimensions", path, x.reshape(5, -1))
    np.save(path, np.asarray(x, order="F"))
    refuses("npy of three dimensions in Fortran order", path, "GNOMON_ERROR_UNSUPPORTED")
    for shape in ((0, 5), (5, 0), (0, 0)):
        np.save(path, np.zeros(shape))
        code, out, err = run("read", path)
        expect(f"npy {shape}", code == 0 and out == b"" and f"npy {shape[0]} {shape[1]} " in err, err)
    wide = rng.standard_normal((3, 200001)).astype("f4")
    for layout in "CF":
        np.save(path, np.asarray(wide, order=layout))
        reads(f"npy wide {layout}", path, wide)
    tall = np.asarray(rng.standard_normal((200001, 3)), order="F")
    np.save(path, tall)
    code, out, err = run("read", path, "chunk=5000")
    same("npy tall F", out, tall)
    # special values survive
    x = np.array([[0.0, -0.0, np.inf, -np.inf, 5e-324, 1.7e308]])
    np.save(path, x)
    reads("npy special values", path, x)
    every = np.arange(65536, dtype="u2").view("f2").reshape(256, 256)
    every = np.where(np.isnan(every), np.float16(1), every)
    np.save(path, every)
    reads("npy every finite half", path, every.astype("f8"))
    # what is not points
    for bad, status in ((np.array([[None]]), "GNOMON_ERROR_UNSUPPORTED"),
                        (np.array([["a"]]), "GNOMON_ERROR_UNSUPPORTED"),
                        (np.zeros((2, 2), "c16"), "GNOMON_ERROR_UNSUPPORTED"),
                        (np.zeros(3, [("a", "f4"), ("b", "i4")]), "GNOMON_ERROR_UNSUPPORTED"),
                        (np.zeros((2, 2), "M8[s]"), "GNOMON_ERROR_UNSUPPORTED"),
                        (np.array(3.0), "GNOMON_ERROR_DATA")):
        np.save(path, bad, allow_pickle=True)
        refuses(f"npy {bad.dtype}", path, status)
    x = sample(rng, "f4")
    np.save(path, x)
    with gzip.open(f"{tmp}/a.npy.gz", "wb") as f:
        f.write(open(path, "rb").read())
    reads("npy.gz", f"{tmp}/a.npy.gz", x, blocks=False)
    reads_piped("npy.gz", f"{tmp}/a.npy.gz", x)


def npz(tmp, rng):
    path = f"{tmp}/a.npz"
    x, y, z = sample(rng, "f4"), sample(rng, ">i2", 4, 9), rng.standard_normal(7)
    for save, layout in itertools.product((np.savez, np.savez_compressed), "CF"):
        what = f"npz {save.__name__} {layout}"
        xs = np.asarray(x, order=layout)
        random = save is np.savez or layout == "F"
        save(path, x=xs, z=z)
        reads(f"{what}, the only one of two dimensions", path, x, facts="member=x", blocks=random)
        reads_piped(what, path, x)
        reads(f"{what}, named", f"{path}:z", z.reshape(1, -1), facts="member=z",
              blocks=save is np.savez)
        save(path, x=xs, y=y)
        refuses(f"{what}, not named", path, "GNOMON_ERROR_ARGUMENT", text="x, y")
        refuses(f"{what}, none of the name", f"{path}:nope", "GNOMON_ERROR_DATA", text="x, y")
        reads(f"{what}, named", f"{path}:y", y.astype("f8"), facts="member=y",
              blocks=save is np.savez)
        reads(f"{what}, named in full", f"{path}:y.npy", y.astype("f8"), blocks=False)
    with zipfile.ZipFile(path, "w") as f:
        f.writestr("readme.txt", "no arrays")
    refuses("npz without arrays", path, "GNOMON_ERROR_DATA")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as f:
        with f.open("x.npy", "w") as g:
            np.save(g, x)
    refuses("npz by bzip2", path, "GNOMON_ERROR_UNSUPPORTED")
    # zip64 in every place that allows it
    with zipfile.ZipFile(path, "w", allowZip64=True) as f:
        with f.open("x.npy", "w", force_zip64=True) as g:
            np.save(g, x)
    reads("npz zip64", path, x)
    # a wrong checksum is seen
    for save in (np.savez, np.savez_compressed):
        save(path, x=x)
        data = bytearray(open(path, "rb").read())
        with zipfile.ZipFile(path) as f:
            info = f.infolist()[0]
        at = data.rindex(b"PK\1\2") + 16
        data[at] ^= 255
        open(path, "wb").write(data)
        code, _, err = run("read", path)
        expect(f"npz {save.__name__} with a wrong sum", code == 1 and "GNOMON_ERROR_DATA" in err, err)
        expect("the sum was that of the member", info.CRC != 0)


def vecs(tmp, rng):
    for name, kind in (("fvecs", "<f4"), ("ivecs", "<i4"), ("bvecs", "u1")):
        for d in (1, 17, 200001):
            x = sample(rng, kind, 3 if d > 1000 else 23, d) if d > 1 else sample(rng, kind)[:, :1]
            path = f"{tmp}/a.{name}"
            with open(path, "wb") as f:
                for row in x:
                    f.write(struct.pack("<i", d) + row.tobytes())
            reads(f"{name} d={d}", path, x.astype("f8"), facts=f"{name} {len(x)} {d} ")
            reads_piped(f"{name} d={d}", path, x.astype("f8"), f"format={name}")
        data = open(path, "rb").read()
        with gzip.open(path + ".gz", "wb") as f:
            f.write(data)
        reads(f"{name}.gz", path + ".gz", x.astype("f8"), blocks=False)
        open(path, "wb").write(data[:-1])
        refuses(f"{name} cut short", path, "GNOMON_ERROR_TRUNCATED")
        row = struct.pack("<i", 4) + np.zeros(4, kind).tobytes()
        open(path, "wb").write(row + struct.pack("<i", 5) + row[4:] + row)
        refuses(f"{name} ragged", path, "GNOMON_ERROR_DATA", text="row 1")
        for d in (0, -1, 2**31 - 1):
            open(path, "wb").write(struct.pack("<i", d) + row)
            refuses(f"{name} d={d}", path,
                    "GNOMON_ERROR_DATA" if d <= 0 else "GNOMON_ERROR_TRUNCATED")
        open(path, "wb").write(b"")
        refuses(f"{name} empty", path, "GNOMON_ERROR_DATA")


def bins(tmp, rng):
    for name, kind in (("fbin", "<f4"), ("u8bin", "u1"), ("i8bin", "i1"), ("f16bin", "<f2")):
        x = sample(rng, kind)
        path = f"{tmp}/a.{name}"
        data = struct.pack("<II", *x.shape) + x.tobytes()
        open(path, "wb").write(data)
        reads(name, path, x.astype("f8"), facts=f"{name} 23 17 ")
        reads_piped(name, path, x.astype("f8"), f"format={name}")
        open(path, "wb").write(data[:-1])
        refuses(f"{name} cut short", path, "GNOMON_ERROR_TRUNCATED")
        open(path, "wb").write(data + b"x")
        refuses(f"{name} with more", path, "GNOMON_ERROR_DATA")
        open(path, "wb").write(struct.pack("<II", 2**32 - 1, 2**32 - 1) + bytes(64))
        refuses(f"{name} lying", path, "GNOMON_ERROR_")
        open(path, "wb").write(struct.pack("<II", 2**32 - 1, 1) + bytes(64))
        refuses(f"{name} lying about its rows", path, "GNOMON_ERROR_TRUNCATED")


def idx(tmp, rng):
    types = ((8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8"))
    for (code, kind), shape in itertools.product(types, ((23, 17), (9,), (5, 4, 3), (3, 2, 2, 2))):
        x = sample(rng, kind, shape[0], int(np.prod(shape[1:], dtype=int))) if len(shape) > 1 \
            else sample(rng, kind, 9, 2)[:, :1]
        data = bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
        data += x.tobytes()
        path = f"{tmp}/data"  # no extension: by content
        open(path, "wb").write(data)
        reads(f"idx {kind} {shape}", path, x.astype("f8"), facts=f"idx {x.shape[0]} {x.shape[1]} ")
        reads_piped(f"idx {kind} {shape}", path, x.astype("f8"))
        with gzip.open(f"{tmp}/train-images-idx3-ubyte.gz", "wb") as f:
            f.write(data)
        reads(f"idx.gz {kind} {shape}", f.name, x.astype("f8"), blocks=False)
        reads_piped(f"idx.gz {kind} {shape}", f.name, x.astype("f8"))
    folded = gzip.compress(data)
    for what, bad, status in (("cut short", folded[:-9], "GNOMON_ERROR_"),
                              ("followed by others", folded + b"abc", "GNOMON_ERROR_DATA"),
                              ("of a wrong sum", folded[:-8] + bytes(4) + folded[-4:],
                               "GNOMON_ERROR_DATA")):
        open(f.name, "wb").write(bad)
        code, _, err = run("read", f.name)
        expect(f"gzip {what}", code == 1 and status in err, err)
    open(f.name, "wb").write(gzip.compress(data[:30]) + gzip.compress(data[30:]) + bytes(512))
    reads("gzip in two members, padded", f.name, x.astype("f8"), blocks=False)
    open(f.name, "wb").write(gzip.compress(data + b"x"))
    code, _, err = run("read", f.name)
    expect("idx.gz with more", code == 1 and "GNOMON_ERROR_DATA" in err, err)


def raw(tmp, rng):
    path = f"{tmp}/a.raw"
    for name, kind in (("f32", "<f4"), ("f64", "<f8"), ("f16", "<f2"), ("i8", "i1"), ("u8", "u1"),
                       ("i16", "<i2"), ("u16", "<u2"), ("i32", "<i4"), ("u32", "<u4"),
                       ("i64", "<i8"), ("u64", "<u8")):
        x = sample(rng, kind)
        open(path, "wb").write(x.tobytes())
        reads(f"raw {name}", path, x.astype("f8"), "cols=17", f"dtype={name}")
        reads(f"raw {name}, shape told", path, x.astype("f8"), "rows=23", "cols=17", f"dtype={name}")
        reads_piped(f"raw {name}", path, x.astype("f8"), "format=raw", "cols=17", f"dtype={name}")
        refuses(f"raw {name}, more told", path, "GNOMON_ERROR_TRUNCATED", "rows=24", "cols=17",
                f"dtype={name}")
        refuses(f"raw {name}, less told", path, "GNOMON_ERROR_DATA", "rows=22", "cols=17",
                f"dtype={name}")
    bits = rng.integers(0, 0x7f80, (8, 8)).astype("<u2")
    open(path, "wb").write(bits.tobytes())
    want = (bits.astype("<u4") << 16).view("<f4").astype("f8")
    reads("raw bf16", path, want, "cols=8", "dtype=bf16")
    refuses("raw without a shape", path, "GNOMON_ERROR_ARGUMENT")


def hdf5(tmp, rng):
    path = f"{tmp}/a.hdf5"
    x, y = sample(rng, "f4", 40, 17), sample(rng, "i4", 9, 5)
    hows = ({}, {"chunks": (5, 4)}, {"chunks": (7, 17), "compression": "gzip"},
            {"chunks": (7, 17), "shuffle": True, "fletcher32": True}, {})
    kinds = itertools.product("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split(), "<>")
    for i, (kind, order) in enumerate(kinds):
        a, how = sample(rng, order + kind), hows[i % len(hows)]
        with h5py.File(path, "w") as f:
            f.create_dataset("a", data=a, **how)
        reads(f"hdf5 {order}{kind} {how}", path, a.astype("f8"),
              facts=f"hdf5 23 17 {kind[0]}{8 * int(kind[1])} ")
    with h5py.File(path, "w") as f:  # ann-benchmarks
        f["train"], f["test"] = x, x[:4]
        f["neighbors"], f["distances"] = y, x[:9, :5]
        f.create_group("more/deep")["z"] = y
    reads("hdf5 train", path, x, facts="member=/train")
    reads_piped("hdf5 train", path, x)
    reads("hdf5 named", f"{path}:/neighbors", y, facts="member=/neighbors")
    reads("hdf5 named without slash", f"{path}:test", x[:4])
    reads("hdf5 in a group", f"{path}:/more/deep/z", y)
    refuses("hdf5 no such", f"{path}:/nope", "GNOMON_ERROR_DATA", text="/neighbors")
    refuses("hdf5 a group", f"{path}:/more", "GNOMON_ERROR_DATA")
    with h5py.File(path, "w") as f:
        f["a"], f["b"] = x, y
    refuses("hdf5 several", path, "GNOMON_ERROR_ARGUMENT", text="/a, /b")
    with h5py.File(path, "w") as f:
        f["a"], f["v"], f["s"] = x, x[0], 3.0
    reads("hdf5 the only one of two dimensions", path, x, facts="member=/a")
    reads("hdf5 of one dimension is one point", f"{path}:/v", x[:1])
    refuses("hdf5 scalar", f"{path}:/s", "GNOMON_ERROR_DATA")
    with h5py.File(path, "w") as f:
        f["cube"] = x.reshape(40, 17, 1)[:, :16].reshape(40, 4, 4)
    reads("hdf5 cube", path, x[:, :16].reshape(40, 16), blocks=False)
    with h5py.File(path, "w", userblock_size=512) as f:
        f["a"] = x
    reads("hdf5 after a user block", path, x)
    with h5py.File(path, "w") as f:
        f["a"] = np.zeros(3, [("a", "f4"), ("b", "i4")])
        f["t"] = np.array([[b"abc"]])
        f["c"] = np.zeros((2, 2), "c16")
    for key in "atc":
        refuses(f"hdf5 {key}", f"{path}:/{key}", "GNOMON_ERROR_UNSUPPORTED")
    with h5py.File(f"{tmp}/other.h5", "w") as f:
        f["a"] = x
    with h5py.File(path, "w") as f:
        f["link"] = h5py.ExternalLink(f"{tmp}/other.h5", "/a")
        f["soft"] = h5py.SoftLink("/real")
        f["real"] = x
        f.create_dataset("ext", (2, 2), "u1", external=[("/etc/hostname", 0, 4)])
        layout = h5py.VirtualLayout((40, 17), "f4")
        layout[:] = h5py.VirtualSource(f"{tmp}/other.h5", "a", (40, 17))
        f.create_virtual_dataset("virtual", layout)
    refuses("hdf5 external link", f"{path}:/link", "GNOMON_ERROR_")
    reads("hdf5 soft link", f"{path}:/soft", x)
    refuses("hdf5 external data", f"{path}:/ext", "GNOMON_ERROR_UNSUPPORTED")
    refuses("hdf5 virtual data", f"{path}:/virtual", "GNOMON_ERROR_UNSUPPORTED")
    with h5py.File(path, "w") as f:
        f["a"] = x
    data = open(path, "rb").read()
    open(path, "wb").write(data[:-100])
    refuses("hdf5 cut short", path, "GNOMON_ERROR_")
    with h5py.File(path, "w") as f:  # never written: reads as zeros, as h5py does
        f.create_dataset("a", (6, 5), "f4", chunks=(2, 2))
    reads("hdf5 never written", path, np.zeros((6, 5)))
    with h5py.File(path, "w") as f:
        f.create_dataset("a", (2**40, 2**20), "f4", chunks=(16, 16))
    code, out, err = run("read", path, "block=1000000000000,1000000000002,1000000,1000003")
    same("hdf5 sparse and huge", out, np.zeros((2, 3)))


def reads_back(path, what, x, load, *options):
    code, _, err = run("copy", f"{os.path.dirname(path)}/in.npy", path, *options)
    expect(what, code == 0, err)
    if code == 0:
        got = load(path)
        expect(what, got.dtype == x.dtype and got.shape == x.shape and np.array_equal(got, x),
               f"{got.dtype} {got.shape} {got.ravel()[:4]} for {x.dtype} {x.shape} {x.ravel()[:4]}")


def load_vecs(kind):
    def load(path):
        data = np.fromfile(path, "u1")
        d = int(data[:4].view("<i4")[0])
        rows = data.reshape(-1, 4 + d * np.dtype(kind).itemsize)
        assert (rows[:, :4].copy().view("<i4") == d).all()
        return rows[:, 4:].copy().view(kind)
    return load


def load_bin(kind):
    def load(path):
        data = open(path, "rb").read()
        n, d = struct.unpack("<II", data[:8])
        return np.frombuffer(data, kind, offset=8).reshape(n, d)
    return load


def load_idx(path):
    data = open(path, "rb").read()
    n, d = struct.unpack(">II", data[4:12])
    kind = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}[data[2]]
    return np.frombuffer(data, kind, offset=12).reshape(n, d).astype(np.dtype(kind).newbyteorder("="))


def load_npz(path):
    with zipfile.ZipFile(path) as f:
        assert f.testzip() is None
    with np.load(path) as f:
        return f["data"]


SAFETENSORS = {"f16": "F16", "f32": "F32", "f64": "F64", "bf16": "BF16", "i8": "I8", "u8": "U8", "i16": "I16",
               "u16": "U16", "i32": "I32", "u32": "U32", "i64": "I64", "u64": "U64"}
KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "i1", "U8": "u1", "I16": "<i2", "U16": "<u2",
         "I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8", "BOOL": "?", "BF16": "<u2"}


def load_safetensors(path, name="data"):
    """By the format's text; and by the Python package, where it is there. bf16 becomes f4."""
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack_from("<Q", data)[0]
    assert length <= 100_000_000 and data[8:9] == b"{" and length % 8 == 0
    header = json.loads(data[8:8 + length].decode("utf-8"))
    assert "__metadata__" not in header
    at = 0
    for entry in sorted(header.values(), key=lambda entry: entry["data_offsets"]):
        assert entry["data_offsets"][0] == at
        at = entry["data_offsets"][1]
    assert at == len(data) - 8 - length
    begin, end = header[name]["data_offsets"]
    x = np.frombuffer(data[8 + length + begin:8 + length + end], KINDS[header[name]["dtype"]])
    x = x.reshape(header[name]["shape"])
    if header[name]["dtype"] == "BF16":
        return (x.astype("<u4") << 16).view("<f4")
    if safetensors is not None:
        other = safetensors.numpy.load(data)[name]
        assert other.dtype == x.dtype and np.array_equal(other.view("u1"), x.view("u1"))
    return x


def save_safetensors(path, tensors, metadata=None):
    """By the Python package, where it is there; else by hand."""
    if safetensors is not None:
        safetensors.numpy.save_file(tensors, path, metadata=metadata)
        return
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, x in tensors.items():
        kind = next(k for k, v in KINDS.items() if np.dtype(v) == x.dtype)
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def tensors(tmp, rng):
    path = f"{tmp}/a.safetensors"
    kinds = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()
    every = {f"layer.{kind}/w": sample(rng, kind) for kind in kinds}
    every["vector"] = rng.standard_normal(31).astype("f4")
    every["cube ü\n"] = rng.standard_normal((5, 4, 3)).astype("f4")
    every["none"] = np.zeros((0, 4), "f4")
    every["scalar"] = np.array(3.5, "f4")
    save_safetensors(path, every, {"format": "np", "note": 'a "b" {'})
    for kind in kinds:
        name = {"?": "u8"}.get(kind, kind[0] + str(8 * int(kind[-1])) if kind != "?" else "")
        reads(f"safetensors {kind}", f"{path}:layer.{kind}/w", every[f"layer.{kind}/w"].astype("f8"),
              facts=f"safetensors 23 17 {name} ")
    reads("safetensors of one dimension", f"{path}:vector", every["vector"].reshape(1, -1))
    reads("safetensors of three dimensions", f"{path}:cube ü\n", every["cube ü\n"].reshape(5, -1))
    code, out, err = run("read", f"{path}:none")
    expect("safetensors without points", code == 0 and out == b"" and "safetensors 0 4 f32" in err, err)
    refuses("safetensors of a number", f"{path}:scalar", "GNOMON_ERROR_DATA")
    refuses("safetensors without a name", path, "GNOMON_ERROR_ARGUMENT", text="name one as")
    refuses("safetensors with a wrong name", f"{path}:layer", "GNOMON_ERROR_DATA", text="has no tensor 'layer'")
    x = sample(rng, "f4", 200, 30)
    save_safetensors(path, {"only": x})
    reads("safetensors of one tensor", path, x, facts="member=only")
    reads_piped("safetensors", path, x)
    with open(path, "rb") as f:
        data = f.read()
    with gzip.open(f"{path}.gz", "wb") as f:
        f.write(data)
    reads("safetensors by gzip", f"{path}.gz", x, blocks=False)
    for cut in (0, 7, 8, 40, len(data) - 1):
        with open(path, "wb") as f:
            f.write(data[:cut])
        refuses(f"safetensors cut at {cut}", path, "GNOMON_ERROR_TRUNCATED", "format=safetensors")
    for text in (b"", b"x"):
        with open(path, "wb") as f:
            f.write(data + text)
        code, _, err = run("read", path)
        expect(f"safetensors with {len(text)} bytes more", code == len(text), err)
    # bf16, which NumPy has not
    bits = rng.integers(0, 2**16, (20, 9)).astype("<u2")
    bits[(bits & 0x7f80) == 0x7f80] = 0
    header = b'{"b":{"dtype":"BF16","shape":[20,9],"data_offsets":[0,360]}} '
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + bits.tobytes())
    reads("safetensors bf16", path, (bits.astype("<u4") << 16).view("<f4"), facts="safetensors 20 9 bf16")


def writes(tmp, rng):
    names = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "u8": "u1", "i16": "i2",
             "u16": "u2", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"}
    for name, kind in names.items():
        x = sample(rng, kind, 23, 17)
        np.save(f"{tmp}/in.npy", x)
        for how in ((), ("order=f",), ("chunk=5", "order=f"), ("chunk=5", "unknown=1")):
            what = f"{name} {how}"
            reads_back(f"{tmp}/out.npy", f"write npy {what}", x, np.load, name, *how)
            order = "F" if "order=f" in how else "C"
            reads_back(f"{tmp}/out.raw", f"write raw {what}", x,
                       lambda p: np.fromfile(p, kind).reshape(x.shape, order=order), name, *how)
            if WITH_ZIP:
                for c in (0, 1):
                    reads_back(f"{tmp}/out.npz", f"write npz {what} {c}", x, load_npz, name,
                               f"compress={c}", *how)
            if "order=f" in how:
                with open(f"{tmp}/out.npy", "rb") as f:
                    np.lib.format.read_magic(f)
                    expect(f"order of {what}", np.lib.format.read_array_header_1_0(f)[1])
                continue
            if WITH_HDF5:
                for c in (0, 1):
                    reads_back(f"{tmp}/out.h5", f"write hdf5 {what} {c}", x,
                               lambda p: h5py.File(p)["data"][()], name, f"compress={c}", *how)
            for suffix, takes, load in (("fvecs", "f32", load_vecs("<f4")),
                                        ("ivecs", "i32", load_vecs("<i4")),
                                        ("bvecs", "u8", load_vecs("u1")),
                                        ("fbin", "f32", load_bin("<f4")),
                                        ("u8bin", "u8", load_bin("u1")),
                                        ("i8bin", "i8", load_bin("i1")),
                                        ("f16bin", "f16", load_bin("<f2"))):
                if takes == name:
                    reads_back(f"{tmp}/out.{suffix}", f"write {suffix} {what}", x, load, name, *how)
                else:
                    code, _, err = run("copy", f"{tmp}/in.npy", f"{tmp}/out.{suffix}", name)
                    expect(f"{suffix} does not hold {name}",
                           code == 1 and err.splitlines()[-1].startswith("GNOMON_ERROR_ARGUMENT"), err)
            reads_back(f"{tmp}/out.safetensors", f"write safetensors {what}", x, load_safetensors, name, *how)
            if name in ("u8", "i8", "i16", "i32", "f32", "f64"):
                reads_back(f"{tmp}/out.idx", f"write idx {what}", x, load_idx, name, *how)
    x = (rng.integers(0, 2**15 - 2**7, (23, 17)).astype("<u4") << 16).view("<f4")  # bf16's values
    np.save(f"{tmp}/in.npy", x)
    reads_back(f"{tmp}/out.safetensors", "write safetensors bf16", x, load_safetensors, "bf16")
    # conversions are NumPy's: one rounding, to nearest even
    x = np.concatenate([rng.standard_normal(4000) * 10.0 ** rng.integers(-9, 6, 4000),
                        (np.arange(2048) + 0.5) * 2.0**-24, [65519.99, 65520, 1e300, 0, -0.0]])
    x = x.reshape(1, -1)
    np.save(f"{tmp}/in.npy", x)
    with np.errstate(over="ignore"):
        reads_back(f"{tmp}/out.npy", "f64 to f16", x.astype("f2"), np.load, "f16")
        reads_back(f"{tmp}/out.npy", "f64 to f32", x.astype("f4"), np.load, "f32")
    halves = np.array([[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 126.5, -128.5, 127.49]])
    np.save(f"{tmp}/in.npy", halves)
    reads_back(f"{tmp}/out.npy", "f64 to i8", np.rint(halves).astype("i1"), np.load, "i8")
    for value, name in ((127.5, "i8"), (-129, "i8"), (256, "u8"), (-1, "u8"), (np.nan, "i32"),
                        (np.inf, "u64"), (2.0**63, "i64"), (2.0**64, "u64"), (-0.6, "u16")):
        bad = np.zeros((3, 4))
        bad[1, 2] = value
        np.save(f"{tmp}/in.npy", bad)
        open(f"{tmp}/out.npy", "wb").write(b"before")
        code, _, err = run("copy", f"{tmp}/in.npy", f"{tmp}/out.npy", name)
        expect(f"{value} to {name}", code == 1 and "GNOMON_ERROR_DATA" in err and
               "row 1, column 2" in err, err)
        expect("the target is as before", open(f"{tmp}/out.npy", "rb").read() == b"before")
    # to standard output, through a held file where the header is patched
    x = sample(rng, "f4")
    np.save(f"{tmp}/in.npy", x)
    kinds = [("npy", np.load), ("fbin", load_bin("<f4"))]
    if WITH_ZIP:
        kinds.append(("npz", load_npz))
    if WITH_HDF5:
        kinds.append(("hdf5", lambda p: h5py.File(p)["data"][()]))
    for kind, load in kinds:
        for target in ("-", "/dev/stdout"):
            code, out, err = run("copy", f"{tmp}/in.npy", target, "f32", f"to={kind}", "unknown=1")
            open(f"{tmp}/out", "wb").write(out)
            expect(f"{kind} to {target}", code == 0 and np.array_equal(load(f"{tmp}/out"), x), err)
    left = [name for name in os.listdir(tmp) if ".tmp" in name]
    expect("no temporary file is left", not left, left)


def big_members(tmp, rng):
    """Members by name are written where they were asked for."""
    x = sample(rng, "f4")
    np.save(f"{tmp}/in.npy", x)
    code, _, err = run("copy", f"{tmp}/in.npy", f"{tmp}/out.safetensors:a/b.ü", "f32")
    expect("safetensors member", code == 0 and np.array_equal(load_safetensors(f"{tmp}/out.safetensors", "a/b.ü"), x), err)
    if WITH_ZIP:
        code, _, err = run("copy", f"{tmp}/in.npy", f"{tmp}/out.npz:weights", "f32")
        expect("npz member", code == 0 and np.array_equal(np.load(f"{tmp}/out.npz")["weights"], x), err)
    if WITH_HDF5:
        code, _, err = run("copy", f"{tmp}/in.npy", f"{tmp}/out.h5:/deep/er/train", "f32")
        expect("hdf5 member",
               code == 0 and np.array_equal(h5py.File(f"{tmp}/out.h5")["/deep/er/train"], x), err)


groups = [npy, vecs, bins, idx, raw, tensors, writes, big_members]
groups += [npz] if WITH_ZIP else []
groups += [hdf5] if WITH_HDF5 else []
wanted = [a for a in sys.argv[2:] if a and not a.startswith("no")]
assert all(any(a == g.__name__ for g in groups) for a in wanted), wanted
for group in groups:
    if wanted and group.__name__ not in wanted:
        continue
    with tempfile.TemporaryDirectory() as folder:
        group(folder, np.random.default_rng(7))
print(f"{checks} checks, {len(failures)} failed")
for failure in failures[:40]:
    print("  " + failure)
sys.exit(1 if failures or checks < (1 if wanted else 2000) else 0)
