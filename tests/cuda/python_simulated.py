"""The Python package's views of a GPU's memory, on the simulated one.

usage: python_simulated.py PACKAGE_FOLDER      GNOMON_LIBRARY and GNOMON_PLUGIN_DIR say where library and plugin are.
The simulation aborts where an address is no memory of its own, and fills that memory with NaN when it is taken.
"""
import contextlib
import ctypes
import os
import sys
import types

import numpy as np

sys.path.insert(0, sys.argv[1])
import gnomon

passed, failed = 0, 0


def check(good, *words):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("WRONG:", *words)


gnomon.sketch(np.ones((2, 100), np.float32), 4, device="cuda")  # opens the plugin
plugin = ctypes.CDLL(os.path.join(os.environ["GNOMON_PLUGIN_DIR"], "libgnomon_cuda.so"), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
plugin.simulated_take.restype, plugin.simulated_take.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_int]
plugin.simulated_give.argtypes = [ctypes.c_void_p]


class There:
    """An array in the simulated GPU's memory; NumPy sees the same bytes as 'host'."""

    def __init__(self, shape, dtype=np.float32, fill=None):
        size = max(1, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        self.address = plugin.simulated_take(size, 1)
        self.host = np.frombuffer((ctypes.c_char * size).from_address(self.address), dtype,
                                  int(np.prod(shape))).reshape(shape)
        if fill is not None:
            self.host[...] = fill

    def __del__(self):
        plugin.simulated_give(self.address)


class Interface:
    def __init__(self, there, host=None, **changed):
        x = there.host if host is None else host
        self.there = there
        self.__cuda_array_interface__ = {"version": 3, "shape": x.shape, "typestr": x.dtype.str, "strides": x.strides,
                                         "data": (x.ctypes.data, False), **changed}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("type", ctypes.c_uint8 * 2), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class DLPack:
    def __init__(self, there, packed):
        x = self.x = there.host
        self.there, self.asked = there, []
        self.shape = (ctypes.c_int64 * 2)(*x.shape)
        self.strides = None if packed else (ctypes.c_int64 * 2)(*(one // x.itemsize for one in x.strides))
        self.tensor = _Tensor(x.ctypes.data - 64, (2, 0), 2, (2, 32), 1, self.shape, self.strides, 64)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


X = np.random.default_rng(0).normal(size=(20, 300)).astype(np.float32)
S = gnomon.operator(16, 300, kind="rademacher", random_state=3)
expected = gnomon.sketch(X, S, device="cuda")
check(np.allclose(expected, gnomon.sketch(X, S, device="cpu"), rtol=1e-4, atol=1e-4), "the simulation itself")

there, out = There(X.shape, fill=X), There((20, 16))
given = Interface(out)
check(gnomon.sketch(Interface(there), S, out=given) is given, "out comes back")
check((out.host == expected).all(), "from there to there")
host = np.zeros((20, 16), np.float32)
gnomon.sketch(Interface(there), S, out=host)
check((host == expected).all(), "from there to the host")
out.host[...] = 0
gnomon.sketch(X, S, out=Interface(out))
check((out.host == expected).all(), "from the host to there")

# several GPUs: the first is that of the arrays, and the others have parts of the rows
many = np.random.default_rng(1).normal(size=(200, 300)).astype(np.float32)
whole, many_there, many_out = gnomon.sketch(many, S, device="cuda"), There(many.shape, fill=many), There((200, 16))
for device in ("cuda:all", "cuda:0,2", "auto:all"):
    check((gnomon.sketch(many, S, device=device) == whole).all(), device, "from the host")
    many_out.host[...] = 0
    gnomon.sketch(Interface(many_there), S, out=Interface(many_out), device=device)
    check((many_out.host == whole).all(), device, "from there to there")
for device, part in (("cuda:1,0", "the first GPU of cuda:1,0 is cuda:1"), ("cuda:1", "was to run on cuda:1")):
    try:
        gnomon.sketch(Interface(many_there), S, out=Interface(many_out), device=device)
        check(False, device, "takes arrays of GPU 0")
    except gnomon.DeviceError as error:
        check(part in str(error), error)

wide = There((300, 40), fill=0)
wide.host[:, ::2] = X.T
out.host[...] = 0
gnomon.sketch(Interface(wide, wide.host[:, ::2].T), S, out=Interface(out))
check((out.host == expected).all(), "strides")
packed = Interface(there)
packed.__cuda_array_interface__["strides"] = None
out.host[...] = 0
gnomon.sketch(packed, S, out=Interface(out), allow_nonfinite=True)
check((out.host == expected).all(), "no strides: packed")

for kept in (True, False):
    shown = DLPack(there, kept)
    out.host[...] = 0
    gnomon.sketch(shown, S, out=Interface(out))
    check((out.host == expected).all() and shown.asked == [1], "DLPack", kept, shown.asked)

double = There(X.shape, np.float64, X)
found = np.zeros((20, 16))
gnomon.sketch(Interface(double), S, out=found)
check(np.allclose(found, X.astype(float) @ S.toarray(np.float64).T), "fp64")

back, there_back = gnomon.adjoint(expected, S, device="cuda"), There((20, 300))
gnomon.adjoint(Interface(There(expected.shape, fill=expected)), S, out=Interface(there_back))
check((there_back.host == back).all(), "adjoint")

for streams in ((1, 2), (2, 1)):
    try:
        gnomon.sketch(Interface(there, stream=streams[0]), S, out=Interface(out, stream=streams[1]))
        check(False, "two streams pass")
    except gnomon.DeviceError as error:
        check("different streams of cuda:0" in str(error), error)

for call in (lambda x: gnomon.svd(x, 3), lambda x: gnomon.neighbors(x, n_neighbors=3), lambda x: gnomon.neighbors(X, x, 3)):
    try:
        call(Interface(there))
        check(False, "a job without kernels passes")
    except gnomon.DeviceError as error:
        check("cuda declined: the simulated GPU has no" in str(error), error)


class Array:
    """What the package asks of an array of CuPy's."""

    def __init__(self, shape, dtype=np.float32, fill=None):
        self.there = There(shape, dtype, fill)
        self.dtype, self.shape, self.host = np.dtype(dtype), shape, self.there.host
        self.strides, self.itemsize = self.host.strides, self.dtype.itemsize
        self.data = types.SimpleNamespace(ptr=self.there.address, device_id=0)

    def __len__(self):
        return self.shape[0]


class Rows:
    """A sparse matrix of CuPy's, in CSR."""

    format = "csr"

    def __init__(self, dense, index=np.int32):
        kept = dense != 0
        self.shape = dense.shape
        self.indptr, self.indices, self.data = (Array(x.shape, x.dtype, x) for x in (
            np.concatenate([[0], np.cumsum(kept.sum(1))]).astype(index), np.nonzero(kept)[1].astype(index), dense[kept]))


asked, entered = [], []
cupy = types.ModuleType("cupy")
cupy.empty = cupy.ndarray = Array
cupy.ascontiguousarray = lambda x, dtype=None: x if dtype in (None, x.dtype) else Array(x.shape, dtype, x.host)
current = 0
cupy.cuda = types.SimpleNamespace(get_current_stream=lambda device: asked.append(device) or types.SimpleNamespace(ptr=0),
                                  runtime=types.SimpleNamespace(getDevice=lambda: current),
                                  Device=lambda device: entered.append(device) or contextlib.nullcontext(device))
sys.modules["cupy"] = cupy
Array.__module__, Rows.__module__ = "cupy", "cupyx.scipy.sparse._csr"
found = gnomon.sketch(Array(X.shape, fill=X), S)
check(isinstance(found, Array) and (found.host == expected).all() and asked and set(asked) == {0}, "CuPy's array, in and out")
check(not entered, "the current device is entered")
current = 1
found = gnomon.sketch(Array(X.shape, fill=X), S)
check((found.host == expected).all() and set(entered) == {0}, "another device is current")
current = 0
given = Array((20, 16))
check(gnomon.sketch(Array(X.shape, fill=X), S, out=given) is given and (given.host == expected).all(), "CuPy's output")
few = np.where(np.abs(X) > 1, X, np.float32(0))
few[4] = 0
for index in (np.int32, np.int64):
    try:
        found = gnomon.sketch(Rows(few, index), S)
        check(np.allclose(found.host, gnomon.sketch(few, S, device="cpu"), rtol=1e-4, atol=1e-4), "CuPy's sparse rows", index)
    except gnomon.DeviceError as error:
        check("the simulated GPU" in str(error), error)
wrong = Rows(few)
wrong.format = "csc"
for call, word in ((lambda: gnomon.sketch(wrong, S), "tocsr"), (lambda: gnomon.neighbors(Rows(few), n_neighbors=3), "dense")):
    try:
        call()
        check(False, "sparse rows pass")
    except TypeError as error:
        check(word in str(error), error)
torn = Rows(few)
torn.indices = Array((5,), np.int32, 0)
try:
    gnomon.sketch(torn, S)
    check(False, "torn rows pass")
except ValueError as error:
    check("column indices" in str(error), error)

there.host[3, 17] = np.nan
try:
    gnomon.sketch(Interface(there), S, out=Interface(out))
    check(False, "NaN passes")
except ValueError as error:
    check((error.row, error.col) == (3, 17) and error.argument == "X", "the place of NaN", error)

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
