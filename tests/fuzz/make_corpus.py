"""Writes the seeds of the fuzz targets' corpora: small sound files and small lies of each format.
Files whose names begin with 'found-' are what fuzzing turned up; they are kept as they are. So are the
corpora 'index', which gnomon index build wrote, 'signatures', of gnomon dedup --sign and cut, and 'model', a record of
bench_cost and lies of it. Needs zstd.

    make_corpus.py FOLDER
"""
import gzip
import io
import os
import struct
import subprocess
import sys
import zipfile

import h5py
import numpy as np

FOLDER = sys.argv[1]


def put(kind, name, data):
    os.makedirs(f"{FOLDER}/{kind}", exist_ok=True)
    with open(f"{FOLDER}/{kind}/{name}", "wb") as f:
        f.write(data)


def npy_bytes(x, **how):
    out = io.BytesIO()
    np.lib.format.write_array(out, x, **how)
    return out.getvalue()


def npy_text(text, data=b""):
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


x = np.arange(12, dtype="<f4").reshape(3, 4)
put("npy", "c", npy_bytes(x))
put("npy", "f", npy_bytes(np.asfortranarray(x)))
put("npy", "big-endian", npy_bytes(x.astype(">f8")))
put("npy", "v2", npy_bytes(x.astype("i2"), version=(2, 0)))
put("npy", "v3", npy_bytes(x.astype("f2"), version=(3, 0)))
put("npy", "vector", npy_bytes(x[0]))
put("npy", "cube", npy_bytes(x.reshape(3, 2, 2)))
put("npy", "cube-fortran", npy_bytes(np.asfortranarray(x.reshape(3, 2, 2))))
put("npy", "empty", npy_bytes(x[:0]))
put("npy", "zero", b"")
for name, text in {
        "overflow": "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
        "cube-overflow": "{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 16), }",
        "cube-lying": "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 1000000, 2), }",
        "too-large": "{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999, 4), }",
        "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }",
        "lying": "{'descr': '<f4', 'fortran_order': True, 'shape': (1000000, 1000000), }",
        "object": "{'descr': '|O', 'fortran_order': False, 'shape': (3, 4), }",
        "structured": "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
        "code": "{'descr': __import__('os').system('x'), 'fortran_order': False, 'shape': (3,), }",
        "twice": "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
        "open": "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4",
        "no-tuple": "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }",
        "deep": "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 40 + "), }",
        "quoted": "{'descr': '<f4\\'', 'fortran_order': False, 'shape': (3,), }"}.items():
    put("npy", name, npy_text(text, bytes(48)))

for name, how in {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED,
                  "bzip2": zipfile.ZIP_BZIP2}.items():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as f:
        info = zipfile.ZipInfo("x.npy", (1980, 1, 1, 0, 0, 0))
        info.compress_type = how
        f.writestr(info, npy_bytes(x))
    put("npz", name, out.getvalue())
    put("npz", name + "-cut", out.getvalue()[:-30])
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as f:
    for key in ("a", "b", "readme"):
        info = zipfile.ZipInfo(key + (".npy" if key != "readme" else ".txt"), (1980, 1, 1, 0, 0, 0))
        f.writestr(info, npy_bytes(x) if key == "a" else npy_bytes(x[0]))
put("npz", "several", out.getvalue())
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as f:
    for key, value in {"format": np.array(b"csr"), "shape": np.array([2, 3]),
                       "indptr": np.array([0, 1, 3], "i4"), "indices": np.array([2, 0, 1], "i4"),
                       "data": np.array([1, 2, 3], "f4")}.items():
        f.writestr(zipfile.ZipInfo(key + ".npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(value))
put("npz", "csr", out.getvalue())

for kind, dtype in (("fvecs", "<f4"), ("bvecs", "u1"), ("ivecs", "<i4")):
    rows = [struct.pack("<i", 4) + row.astype(dtype).tobytes() for row in x]
    put(kind, "sound", b"".join(rows))
    put(kind, "ragged", rows[0] + struct.pack("<i", 3) + rows[1][4:] + rows[2])
    put(kind, "cut", b"".join(rows)[:-1])
    put(kind, "negative", struct.pack("<i", -1) + rows[0])
    put(kind, "huge", struct.pack("<i", 2**31 - 1) + rows[0])
    put(kind, "zero", b"\0\0\0\0")
put("fbin", "sound", struct.pack("<II", 3, 4) + x.tobytes())
put("fbin", "cut", struct.pack("<II", 3, 4) + x.tobytes()[:-1])
put("fbin", "huge", struct.pack("<II", 2**32 - 1, 2**32 - 1) + x.tobytes())
put("fbin", "no-columns", struct.pack("<II", 2**32 - 1, 0))
put("u8bin", "sound", struct.pack("<II", 3, 4) + x.astype("u1").tobytes())
put("u8bin", "halves", struct.pack("<II", 3, 4) + x.astype("<f2").tobytes())
put("u8bin", "huge", struct.pack("<II", 2**32 - 1, 2**32 - 1) + x.astype("u1").tobytes())
put("tsv", "sound", b"1\t2\n3\t4\n")
put("tsv", "named", b"a\tb\n3\t-4e5\n")
put("tsv", "ragged", b"1\t2\n3\n\t\t\n")
for name, text in {"csv": b"1,2\n3,4\n", "npy": npy_bytes(x), "svmlight": b"1 1:2 3:4\n-1 2:5\n",
                   "mtx": b"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 5\n"}.items():
    packed = gzip.compress(text, mtime=0)
    put("gzip", name, packed)
    put("gzip", name + "-twice", packed + packed)
    put("gzip", name + "-padded", packed + bytes(64))
    put("gzip", name + "-cut", packed[:-5])
for code, dtype in ((8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
    put("idx", f"type-{code}", bytes([0, 0, code, 2]) + struct.pack(">II", 3, 4) +
        x.astype(dtype).tobytes())
cube = bytes([0, 0, 8, 3]) + struct.pack(">III", 3, 2, 2) + x.astype("u1").tobytes()
put("idx", "cube", cube)
put("idx", "gzipped", gzip.compress(cube, mtime=0))
put("idx", "gzipped-cut", gzip.compress(cube, mtime=0)[:-5])
put("idx", "huge", bytes([0, 0, 14, 3]) + b"\xff" * 12)
put("idx", "many", bytes([0, 0, 8, 255]) + b"\0\0\0\1" * 255 + b"x")
put("raw", "f32", b"\x04\x01" + x.tobytes())
put("raw", "f32-told", b"\x04\x41" + x.tobytes())
put("raw", "cut", b"\x05\x02" + x.tobytes())
put("raw", "bf16", b"\x03\x04" + x.tobytes())


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(name, dtype, shape, begin, end):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'


one = tensor("a", "F32", [3, 4], 0, 48)
put("safetensors", "one", safetensors("{" + one + "}    ", x.tobytes()))
put("safetensors", "several", safetensors(
    '{"__metadata__":{"format":"pt"},' + tensor("v", "BF16", [3], 0, 6) + "," + tensor("m", "I16", [3, 2, 1], 6, 18) + "," +
    tensor("f", "F8_E4M3", [2], 18, 20) + "," + tensor("b\\u00e4", "BOOL", [], 20, 21) + "}", bytes(range(21))))
put("safetensors", "empty", safetensors("{}"))
put("safetensors", "none", safetensors("{" + tensor("a", "F64", [0, 5], 0, 0) + "}"))
put("safetensors", "lying", safetensors("{" + one + "}", x.tobytes(), 1 << 40))
put("safetensors", "long", safetensors("{" + one + "}", x.tobytes(), 99999999))
put("safetensors", "gzipped", gzip.compress(safetensors("{" + one + "}", x.tobytes()), mtime=0))
put("safetensors", "cut", safetensors("{" + one + "}", x.tobytes()[:-1]))
put("safetensors", "gap", safetensors("{" + tensor("a", "U8", [2, 1], 0, 2) + "," + tensor("b", "U8", [2, 1], 3, 5) + "}", bytes(5)))
put("safetensors", "overlap", safetensors("{" + tensor("a", "U8", [2, 1], 0, 2) + "," + tensor("b", "U8", [2, 1], 1, 3) + "}", bytes(3)))
put("safetensors", "twice", safetensors("{" + tensor("a", "U8", [1], 0, 1) + "," + tensor("\\u0061", "U8", [1], 1, 2) + "}", bytes(2)))
put("safetensors", "huge", safetensors("{" + tensor("a", "U8", [2**62, 4], 0, 2**63 - 1) + "}", bytes(5)))
put("safetensors", "deep", safetensors('{"a":{"dtype":"U8","shape":' + "[" * 40 + "]" * 40 + ',"data_offsets":[0,1]}}', b"x"))
put("safetensors", "latin", safetensors(b'{"\xe4":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"))


def hdf5(make):
    out = io.BytesIO()
    with h5py.File(out, "w", libver="earliest") as f:
        make(f)
    return out.getvalue()


put("hdf5", "contiguous", hdf5(lambda f: f.create_dataset("a", data=x, track_times=False)))
put("hdf5", "gzip", hdf5(lambda f: f.create_dataset(
    "train", data=x, chunks=(2, 3), compression="gzip", track_times=False)))
for kind in ("npy", "npz", "idx", "hdf5"):
    name = {"npy": "c", "npz": "several", "idx": "gzipped", "hdf5": "contiguous"}[kind]
    with open(f"{FOLDER}/{kind}/{name}", "rb") as f:
        put("any", kind, f.read())
put("any", "csv", b"1,2\n3,4\n")
put("any", "mtx", b"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 5\n")
put("any", "svmlight", b"1 1:2 3:4\n-1 2:5\n")
put("any", "npy-gzipped", gzip.compress(npy_bytes(np.asfortranarray(x)), mtime=0))

LINES = "one two three four\none two three five\r\n\u00c4 \ufb01\u0301 \u1100\u1161 \ufdfa\n\n no end".encode()
JSON = b"""{"id": 1, "text": "one two three"}
{"text": "a \\u00e9\\ud83d\\ude00 \\"b\\"\\n", "id": "x", "more": [1, {"text": null}, -2.5e3]}
{"te\\u0078t": "key", "id": 2, "text": "last", "text": 5}
{"id": 1.5, "text": "no id"}
{"text": "open
[1]
"""
for name, how, text in (("lines", 0x04, LINES), ("lines-bad", 0x00, LINES), ("characters", 0x7c, LINES), ("json", 0x07, JSON),
                        ("json-first", 0x03, JSON.splitlines(True)[0]), ("json-fold", 0x75, JSON), ("long", 0x04, b"x" * 9000 + b"\ny")):
    head = bytes([how])
    packed = subprocess.run(["zstd", "-q", "-c"], input=text, stdout=subprocess.PIPE, check=True).stdout
    put("dedup", name, head + text)
    put("dedup", name + "-gzip", head + gzip.compress(text, mtime=0))
    put("dedup", name + "-zstd", head + packed)
put("dedup", "zstd-twice", b"\x04" + packed + b"\x50\x2a\x4d\x18\x01\0\0\0x" + packed)
put("dedup", "zstd-cut", b"\x04" + packed[:-3])
put("dedup", "zstd-behind", b"\x04" + packed + b"text")
