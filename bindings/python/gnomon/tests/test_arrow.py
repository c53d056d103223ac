"""Columns of Arrow's fixed-size lists are points where they lie."""
import ctypes
import errno
import gc

import numpy as np
import pytest

import gnomon
from gnomon import _arrow
from gnomon._arrays import as_array

S = gnomon.operator(8, 40, kind="sjlt", random_state=3)


def plain(dtype=np.float32, rows=12):
    return np.random.default_rng(0).integers(0, 9, (rows, 40)).astype(dtype)


try:
    import pyarrow
    import pyarrow.compute
except ImportError:
    pyarrow = None


@pytest.mark.skipif(pyarrow is None, reason="no pyarrow")
class TestColumns:
    pa = pyarrow

    def column(self, x):
        return self.pa.FixedSizeListArray.from_arrays(self.pa.array(x.ravel()), x.shape[1])

    def padded(self, x):
        """The same column within longer buffers, list and element both with an offset."""
        values = self.pa.array(np.concatenate([np.full(3, 7, x.dtype), np.full(40, 5, x.dtype), x.ravel()]))[3:]
        return self.pa.FixedSizeListArray.from_arrays(values, x.shape[1])[1:]

    @pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
    def test_types(self, dtype):
        x = plain(dtype)
        for column in (self.column(x), self.padded(x), self.pa.chunked_array([self.column(x)])):
            found = as_array(column, "X")
            assert found.dtype == x.dtype and np.array_equal(found, x)
            assert gnomon.sketch(column, S).tobytes() == gnomon.sketch(x, S).tobytes()

    def test_no_copy(self):
        x = plain()
        column = self.column(x)
        where = column.values.buffers()[1].address
        assert as_array(column, "X").ctypes.data == where
        assert as_array(column[3:5], "X").ctypes.data == where + 3 * 160
        assert as_array(self.pa.chunked_array([column[2:]]), "X").ctypes.data == where + 2 * 160
        assert not as_array(column, "X").flags.writeable

    def test_the_array_keeps_the_memory(self):
        gc.collect()
        before = self.pa.total_allocated_bytes()
        shown = []
        for wrap in (lambda column: column, lambda column: self.pa.chunked_array([column])):
            values = self.pa.compute.add(self.pa.array(np.arange(400000.0)), 1)  # in memory of Arrow's own
            shown.append(as_array(wrap(self.pa.FixedSizeListArray.from_arrays(values, 40)), "X"))
            del values
        gc.collect()
        assert self.pa.total_allocated_bytes() - before >= 2 * 3200000
        for found in shown:
            assert np.array_equal(found.ravel(), np.arange(400000.0) + 1)
        del shown, found
        gc.collect()
        assert self.pa.total_allocated_bytes() - before < 3200000

    def test_chunks(self):
        x = plain()
        column = self.column(x)
        chunked = self.pa.chunked_array([column[:5], column[5:5], column[5:]])
        whole = gnomon.sketch(x, S)
        assert gnomon.sketch(chunked, S).tobytes() == whole.tobytes()
        pieces = gnomon.sketch(chunked.iterchunks(), S)
        assert np.concatenate(list(pieces)).tobytes() == whole.tobytes()
        none = self.pa.chunked_array([], type=column.type)
        assert gnomon.sketch(none, S).shape == (0, 8) and gnomon.sketch(column[:0], S).shape == (0, 8)

    def test_everywhere(self):
        x = plain()
        column, table = self.column(x), self.pa.table({"at": self.column(x)})
        assert np.array_equal(gnomon.neighbors(table["at"], n_neighbors=3).indices,
                              gnomon.neighbors(x, n_neighbors=3).indices)
        assert np.array_equal(gnomon.matmul(column, x.T.copy()), gnomon.matmul(x, x.T.copy()))
        pieces = gnomon.Sketcher(gnomon.operator(4, 12), axis=0)
        pieces.push(column[:7])
        pieces.push(column[7:])
        assert np.allclose(pieces.finish(), gnomon.operator(4, 12) @ x, atol=1e-4)

    def test_nulls(self):
        kind = self.pa.list_(self.pa.float64(), 2)
        rows = self.pa.array([[1.0, 2.0]] * 20 + [None, [3.0, 4.0]], kind)
        with pytest.raises(ValueError, match="X has a null for row 17"):
            gnomon.sketch(rows[3:], 1)
        element = self.pa.array([[1.0, 2.0]] * 20 + [[1.0, None], [3.0, 4.0]], kind)
        with pytest.raises(ValueError, match="X has a null in row 17, column 1"):
            gnomon.sketch(element[3:], 1)
        for column in (rows, element):  # only what the slice holds counts
            assert np.array_equal(as_array(column[:20], "X"), [[1.0, 2.0]] * 20)
            assert np.array_equal(as_array(column[21:], "X"), [[3.0, 4.0]])
        with pytest.raises(ValueError, match="null for row 0.*row 20"):
            gnomon.sketch(self.pa.chunked_array([rows[:20], rows[20:]]), 1)

    def test_refused(self):
        pa = self.pa
        for column, words in ((pa.array(["a"]), "texts"), (pa.array([[1.0], [2.0, 3.0]]), "lists"),
                              (pa.array([[True]], pa.list_(pa.bool_(), 1)), "format 'b'"),
                              (pa.array([["a"]], pa.list_(pa.string(), 1)), "format 'u'"),
                              (pa.array([{"a": 1}]), "structures"), (pa.array([1.0]), "Expected 2D array"),
                              (pa.chunked_array([["a"]]), "texts")):
            with pytest.raises(ValueError, match=f"X.*{words}"):
                gnomon.sketch(column, 1)

    def test_tables_of_numbers_are_matrices_still(self):
        table = self.pa.table({"a": [1.0, 2.0], "b": [3.0, 5.0]})
        assert np.array_equal(as_array(table, "X"), [[1.0, 3.0], [2.0, 5.0]])


class Shows:
    """Has Arrow's methods, which do what they are told."""

    def __init__(self, array=None, stream=None):
        if array:
            self.__arrow_c_array__ = array
        if stream:
            self.__arrow_c_stream__ = stream


def raise_():
    raise RuntimeError("no pyarrow")


@pytest.mark.parametrize("given", [raise_, lambda: None, lambda: (1, 2), lambda: ()])
def test_methods_that_fail(given):
    for x in (Shows(array=given), Shows(stream=given)):
        with pytest.raises(ValueError, match="X: its Arrow data can't be read"):
            gnomon.sketch(x, S)
        x.__class__ = WithArray  # that has another way
        assert gnomon.sketch(x, S).tobytes() == gnomon.sketch(plain(), S).tobytes()


class WithArray(Shows):
    def __array__(self, dtype=None, copy=None):
        return plain()


class Failing:
    """A stream of lists of two numbers that fails when it is asked for its schema, or for its first piece."""

    def __init__(self, where, text):
        element = _arrow._Schema(format=b"f")
        children = (ctypes.POINTER(_arrow._Schema) * 1)(ctypes.pointer(element))
        kinds = dict(_arrow._Stream._fields_)

        def schema(stream, out):
            out[0] = _arrow._Schema(format=b"+w:2", n_children=1, children=children)
            return errno.EIO if where == "schema" else 0

        self.stream = _arrow._Stream(kinds["get_schema"](schema), kinds["get_next"](lambda stream, out: errno.EIO))
        self.told = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda stream: ctypes.addressof(self.text))
        self.stream.get_last_error = ctypes.cast(self.told, kinds["get_last_error"])
        self.text = ctypes.create_string_buffer(text)
        self.kept = element, children

    def __arrow_c_stream__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.stream), b"arrow_array_stream", None)


@pytest.mark.parametrize("where", ["schema", "piece"])
def test_streams_that_fail(where):
    with pytest.raises(ValueError, match="X: its Arrow stream failed: the disk is gone"):
        gnomon.sketch(Failing(where, b"the disk is gone"), S)
