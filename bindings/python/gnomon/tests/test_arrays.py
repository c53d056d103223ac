"""Arrays of every kind give what their plain copies give, and what can't be taken is refused by name."""
import array

import numpy as np
import pytest

import gnomon
from gnomon import _arrays

S = gnomon.operator(8, 40, kind="sjlt", random_state=3)


def plain(shape=(12, 40), seed=0):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)


class Interface:
    """Shows an array by the array interface alone."""

    def __init__(self, x):
        self.kept = x
        self.__array_interface__ = x.__array_interface__


class Dlpack:
    """Shows an array by DLPack alone."""

    def __init__(self, x, device=(1, 0)):
        self.kept, self.device = x, device

    def __dlpack__(self, **kwargs):
        return self.kept.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device


def unaligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)
    view = room[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def overlapping_field(x):
    """A field of records whose stride is no multiple of the element's size."""
    records = np.zeros(x.shape, np.dtype([("x", np.float32), ("y", np.int16)]))
    records["x"] = x
    return records["x"]


SHOWN = {
    "fortran order": np.asfortranarray,
    "reversed rows": lambda x: x[::-1].copy()[::-1],
    "reversed columns": lambda x: x[:, ::-1].copy()[:, ::-1],
    "every second": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "read-only": read_only,
    "unaligned": unaligned,
    "a field of records": overlapping_field,
    "big-endian": lambda x: x.astype(">f4"),
    "little-endian": lambda x: x.astype("<f4"),
    "long double": lambda x: x.astype(np.longdouble),
    "lists": lambda x: x.tolist(),
    "objects": lambda x: x.astype(object),
    "the array interface": Interface,
    "DLPack": Dlpack,
    "a buffer": lambda x: memoryview(x),
    "float64": lambda x: x.astype(np.float64),
    "float16": lambda x: x.astype(np.float16),
    "int8": lambda x: x.astype(np.int8),
    "int16": lambda x: x.astype(np.int16),
    "int32": lambda x: x.astype(np.int32),
    "int64": lambda x: x.astype(np.int64),
}


@pytest.mark.parametrize("how", SHOWN)
def test_shown_as(how):
    x = plain()
    assert np.array_equal(gnomon.sketch(SHOWN[how](x), S, dtype=np.float64), gnomon.sketch(x, S, dtype=np.float64)), how


def test_bool_and_unsigned():
    x = plain() > 0
    for dtype in (np.bool_, np.uint8, np.uint16, np.uint32, np.uint64):
        assert np.array_equal(gnomon.sketch(x.astype(dtype), S), gnomon.sketch(x.astype(np.float32), S))


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = plain()
    assert np.array_equal(gnomon.sketch(x.astype(ml_dtypes.bfloat16), S), gnomon.sketch(x, S))


def test_broadcast_rows():
    x = np.broadcast_to(plain((1, 40)), (5, 40))
    assert x.strides[0] == 0
    assert np.array_equal(gnomon.sketch(x, S), gnomon.sketch(x.copy(), S))


def test_no_copy():
    for x in (plain(), np.asfortranarray(plain()), plain()[::-1, ::2], read_only(plain()), Interface(plain()).kept):
        assert np.shares_memory(_arrays.dense(x, "X").array, x)
    x = plain()
    assert np.shares_memory(_arrays.dense(Dlpack(x), "X").array, x)
    assert np.shares_memory(_arrays.dense(Interface(x), "X").array, x)


def test_memory_map(tmp_path):
    x = plain()
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(_arrays.dense(mapped, "X").array, mapped)
    assert np.array_equal(gnomon.sketch(mapped, S), gnomon.sketch(x, S))


def test_pieces_of_an_iterator():
    x = plain((50, 40))
    pieces = gnomon.sketch((x[at:at + 7] for at in range(0, 50, 7)), S)
    assert np.array_equal(np.vstack(list(pieces)), gnomon.sketch(x, S))


@pytest.mark.parametrize("shape", [(0, 40), (1, 40)])
def test_few_rows(shape):
    assert gnomon.sketch(np.zeros(shape, np.float32), S).shape == (shape[0], 8)


def test_address_is_what_numpy_says():
    for x in (plain(), plain()[3:, 5:], plain()[::-1], np.zeros((0, 4))):
        assert _arrays.address(x) == x.ctypes.data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["c", "f", "reversed", "spread"])
def test_out(dtype, layout):
    x = plain()
    room = {"c": np.empty((12, 8), dtype), "f": np.empty((12, 8), dtype, "F"), "reversed": np.empty((12, 8), dtype)[::-1],
            "spread": np.empty((24, 16), dtype)[::2, ::2]}[layout]
    assert gnomon.sketch(x, S, out=room) is room
    assert np.array_equal(room, gnomon.sketch(x, S, dtype=dtype))


@pytest.mark.parametrize("out", [
    np.empty((12, 9), np.float32), np.empty((12, 8), np.int32), np.empty((12, 8), ">f4"),
    read_only(np.empty((12, 8), np.float32)), unaligned(np.empty((12, 8), np.float32)),
    np.broadcast_to(np.empty(8, np.float32), (12, 8))])
def test_out_refused(out):
    with pytest.raises(ValueError, match="^out"):
        gnomon.sketch(plain(), S, out=out)


def test_out_of_another_type():
    with pytest.raises(TypeError, match="out"):
        gnomon.sketch(plain(), S, out=[[0.0] * 8] * 12)


def test_out_shares_memory():
    x = np.zeros((12, 40), np.float32)
    with pytest.raises(ValueError, match="out shares memory"):
        gnomon.sketch(x, S, out=x[:, :8])


@pytest.mark.parametrize("x, text", [
    (plain().astype(np.complex64), "complex data not supported"),
    (np.full((3, 40), "a"), "must hold numbers"),
    (np.full((3, 40), b"a"), "must hold numbers"),
    (np.array([[object()] * 40]), "not all numbers"),
    (np.zeros((3, 40), "M8[s]"), "dtype"),
    (np.zeros((3, 40), [("a", "f4")]), "must hold numbers"),
    (np.zeros(40), "Expected 2D array, got 1D array"),
    (np.zeros((1, 2, 40)), "Expected 2D array, got 3D array"),
    (np.float32(1), "Expected 2D array, got 0D array"),
    (np.ma.masked_array(plain(), plain() > 0), "masked"),
    ([[1.0, 2.0], [3.0]], "X"),
    (array.array("f", [1.0] * 40), "Expected 2D array"),
    (np.zeros((3, 41), np.float32), "X"),
    (np.zeros((3, 0), np.float32), "X"),
])
def test_refused(x, text):
    with pytest.raises(ValueError, match=text) as caught:
        gnomon.sketch(x, S)
    assert "X" in str(caught.value)


@pytest.mark.parametrize("x", [None, "points.npy", b"points", {}, {1, 2}])
def test_no_array(x):
    with pytest.raises(TypeError, match="X must be an array"):
        gnomon.sketch(x, S)


def test_another_device():
    with pytest.raises(gnomon.DeviceError, match="X lies in a device's memory"):
        gnomon.sketch(Dlpack(plain(), device=(10, 0)), S)  # ROCm's
    with pytest.raises(gnomon.DeviceError, match="X lies in the memory of cuda:0, and its library does not show it"):
        gnomon.sketch(Dlpack(plain(), device=(2, 0)), S)
    for call in (lambda x: gnomon.svd(x, 2), lambda x: gnomon.neighbors(x, n_neighbors=1), lambda x: gnomon.join(x, radius=1)):
        with pytest.raises(gnomon.DeviceError, match="X lies in the memory of cuda:0, and its library does not show it"):
            call(Dlpack(plain(), device=(2, 0)))
    with pytest.raises(gnomon.DeviceError, match="lies in a device's memory"):
        gnomon.hosvd(Dlpack(plain(), device=(2, 0)), 2)  # a call that takes arrays of the CPU alone


@pytest.mark.parametrize("changed, message", [
    ({"typestr": "<c8"}, "dtype '<c8'"), ({"typestr": ">f4"}, "dtype '>f4'"), ({"shape": (3,)}, "got 1D"),
    ({"strides": (5, 4)}, "not aligned"), ({"data": None}, "can't be read"), ({"shape": None}, "can't be read"),
    ({"mask": 3}, "can't be read"), ({"typestr": 3}, "can't be read"), ({"stream": "x"}, "can't be read"),
])
def test_cuda_array_interface_is_checked(changed, message):
    class Shown:
        __cuda_array_interface__ = {"version": 3, "shape": (3, 8), "typestr": "<f4", "data": (4096, False), **changed}

    with pytest.raises(ValueError, match=message):
        gnomon.sketch(Shown(), S)


def test_an_array_on_a_gpu_needs_it():
    class Shown:
        __cuda_array_interface__ = {"version": 3, "shape": (3, 8), "typestr": "<f4", "data": (4096, False)}

    with pytest.raises(TypeError, match="out must be given"):
        gnomon.sketch(Shown(), gnomon.operator(2, 8))
    with pytest.raises(gnomon.DeviceError, match="lies in the memory of cuda:0, but the call was to run on cpu"):
        gnomon.sketch(Shown(), gnomon.operator(2, 8), out=np.zeros((3, 2), np.float32), device="cpu")


def test_export_refused():
    class Gradient(Dlpack):
        def __dlpack__(self, **kwargs):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(ValueError, match="X: Can't export tensors that require gradient"):
        gnomon.sketch(Gradient(plain()), S)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite(bad):
    x = plain()
    x[3, 7] = bad
    with pytest.raises(ValueError, match="^X") as caught:
        gnomon.sketch(x, S)
    assert (caught.value.argument, caught.value.row, caught.value.col) == ("X", 3, 7)
    assert caught.value.status == "GNOMON_ERROR_NONFINITE"
    gnomon.sketch(x, S, allow_nonfinite=True)


class TestSparse:
    @pytest.fixture(autouse=True)
    def _scipy(self):
        self.sparse = pytest.importorskip("scipy.sparse")
        x = plain()
        x[np.random.default_rng(1).random(x.shape) < 0.8] = 0
        self.x = x

    @pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
    @pytest.mark.parametrize("array", [True, False])
    def test_formats(self, form, array):
        make = getattr(self.sparse, form + ("_array" if array else "_matrix"), None)
        if make is None:
            pytest.skip("not in this SciPy")
        assert np.array_equal(gnomon.sketch(make(self.x), S), gnomon.sketch(self.sparse.csr_matrix(self.x), S))
        assert np.allclose(gnomon.sketch(make(self.x), S), gnomon.sketch(self.x, S))

    @pytest.mark.parametrize("index", [np.int32, np.int64, np.uint32])
    @pytest.mark.parametrize("form", ["csr", "csc", "coo"])
    def test_index_types(self, form, index):
        x = getattr(self.sparse, form + "_matrix")(self.x)
        for name in ("indptr", "indices", "row", "col"):
            if hasattr(x, name):
                try:
                    setattr(x, name, getattr(x, name).astype(index))
                except AttributeError:
                    pytest.skip("not to be set in this SciPy")
        if form == "csc" and index == np.uint32:
            pytest.skip("SciPy itself converts, and takes no unsigned indices")
        assert np.array_equal(gnomon.sketch(x, S), gnomon.sketch(self.sparse.csr_matrix(self.x), S))

    @pytest.mark.parametrize("dtype", [np.float64, np.int8, np.bool_, np.float16, ">f4"])
    def test_value_types(self, dtype):
        x = self.sparse.csr_matrix(self.x)
        x.data = x.data.astype(dtype)
        expected = gnomon.sketch(np.asarray(x.toarray() if dtype not in (np.float16, ">f4") else self.x), S,
                                 dtype=np.float64)
        assert np.allclose(gnomon.sketch(x, S, dtype=np.float64), expected, atol=1e-5)

    def test_unsorted_and_duplicates(self):
        x = self.sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([5, 1, 5]), np.array([0, 3])), shape=(1, 40))
        dense = np.zeros((1, 40))
        dense[0, 5], dense[0, 1] = 5, 2
        assert np.allclose(gnomon.sketch(x, S), gnomon.sketch(dense, S))

    @pytest.mark.parametrize("change", [
        lambda x: x.indptr.__setitem__(2, -5), lambda x: x.indptr.__setitem__(3, 1 << 30),
        lambda x: x.indptr.__setitem__(-1, 1 << 30), lambda x: x.indices.__setitem__(0, 40),
        lambda x: x.indices.__setitem__(0, -1), lambda x: setattr(x, "indices", x.indices[:3]),
        lambda x: setattr(x, "data", x.data[:3]), lambda x: setattr(x, "indptr", x.indptr[:-2]),
        lambda x: setattr(x, "indices", x.indices.astype(float)), lambda x: setattr(x, "data", x.data.astype("S3")),
        lambda x: setattr(x, "data", x.data.reshape(-1, 1)), lambda x: x.data.__setitem__(0, np.nan),
        lambda x: x.indptr.__setitem__(0, 7), lambda x: x.indptr.__setitem__(0, -7)])
    def test_broken(self, change):
        x = self.sparse.csr_matrix(self.x).copy()
        change(x)
        with pytest.raises(ValueError, match="X"):
            gnomon.sketch(x, S)

    def test_not_taken(self):
        with pytest.raises(TypeError, match="Y is sparse"):
            gnomon.adjoint(np.zeros((2, 8)), S) if False else gnomon.distortion(self.x, self.sparse.csr_matrix(self.x))
