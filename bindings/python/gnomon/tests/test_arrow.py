"""Columns of Arrow's fixed-size lists are points where they lie, and columns of strings are texts."""
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


# ---- texts ----

TEXTS = ["the cat sat on the mat today", "short", "", "the cat sat on the mat again", "a wholly different line of text",
         "dog", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich", "the cat sat on the mat today"]


class Column:
    """A column of these buffers, by __arrow_c_array__."""

    def __init__(self, form, buffers, length, offset=0, nulls=0, dictionary=False):
        self.kept = [None if one is None else np.frombuffer(bytes(one) + b"\0", np.uint8).copy() for one in buffers]
        self.pointers = (ctypes.c_void_p * len(buffers))(*(None if one is None else one.ctypes.data for one in self.kept))
        self.schema = _arrow._Schema(format=form)
        if dictionary:
            self.schema.dictionary = ctypes.addressof(self.schema)
        self.array = _arrow._Array(length=length, null_count=nulls, offset=offset, n_buffers=len(buffers),
                                   buffers=self.pointers)

    def __arrow_c_array__(self, requested_schema=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return (new(ctypes.addressof(self.schema), b"arrow_schema", None),
                new(ctypes.addressof(self.array), b"arrow_array", None))


def column(form, texts, **how):
    data = [text.encode() for text in texts]
    if form in (b"vu", b"vz"):
        buffers, views = [b"", b""], b""
        for i, text in enumerate(data):
            views += len(text).to_bytes(4, "little")
            if len(text) <= 12:
                views += text.ljust(12, b"\0")
            else:
                views += text[:4] + (i % 2).to_bytes(4, "little") + len(buffers[i % 2]).to_bytes(4, "little")
                buffers[i % 2] += text
        return Column(form, [None, views, *buffers, np.array([len(one) for one in buffers], np.int64)], len(texts), **how)
    offsets = np.cumsum([0] + [len(text) for text in data], dtype=np.int64 if form in (b"U", b"Z") else np.int32)
    return Column(form, [None, offsets, b"".join(data)], len(texts), **how)


def same(a, b):
    return (np.array_equal(a.representatives, b.representatives) and np.array_equal(a.pairs, b.pairs)
            and np.array_equal(a.similarities, b.similarities))


@pytest.mark.parametrize("form", [b"u", b"U", b"z", b"Z", b"vu", b"vz"])
def test_texts(form):
    expected = gnomon.dedup(TEXTS, similarity=0.6)
    assert len(expected.pairs) == 2
    assert same(gnomon.dedup(column(form, TEXTS), similarity=0.6), expected)
    sliced = column(form, ["before", "another longer one before"] + TEXTS + ["a text that lies behind them"], offset=2)
    sliced.array.length = len(TEXTS)
    assert same(gnomon.dedup(sliced, similarity=0.6), expected)
    assert len(gnomon.dedup(column(form, [])).kept) == 0 and len(gnomon.dedup(column(form, ["", ""])).representatives) == 2
    with pytest.raises(ValueError, match="texts.*UTF-8"):
        broken = column(form, ["fine", "not"])
        broken.kept[1 if form[:1] == b"v" else 2][4] = 0xff
        gnomon.dedup(broken)


def test_texts_of_many_batches(monkeypatch):
    from gnomon import _dedup
    many = [f"{i % 7} a line of some words {i % 13} and more" for i in range(400)]
    expected = gnomon.dedup(many)
    for size in (1, 100, 5000):
        monkeypatch.setattr(_dedup, "_BATCH", size)
        assert same(gnomon.dedup(column(b"u", many)), expected) and same(gnomon.dedup(many), expected)


@pytest.mark.parametrize("form", [b"u", b"vu"])
def test_texts_with_nulls(form):
    for bits, told in ((0b11110111, "null for text 3"), (0b01111111, "null for text 7")):
        nulls = column(form, TEXTS, nulls=-1)
        nulls.kept[0] = np.array([bits], np.uint8)
        nulls.pointers[0] = nulls.kept[0].ctypes.data
        with pytest.raises(ValueError, match=f"texts has a {told}"):
            gnomon.dedup(nulls)
        nulls.array.length = 3  # only what the slice holds counts
        assert len(gnomon.dedup(nulls).representatives) == 3


def test_columns_that_hold_no_texts():
    for shown, told in ((Column(b"i", [None, b""], 0), "column of format 'i'"), (Column(b"+s", [None], 0), "table or column"),
                        (column(b"u", TEXTS, dictionary=True), "column of a dictionary"),
                        (Column(b"+w:2", [None], 0), "column of format"), (Column(None, [None], 0), "column of format ''")):
        with pytest.raises(ValueError, match=f"texts is an Arrow {told}"):
            gnomon.dedup(shown)
    for offsets in ([0, 5, 3], [-1, 5, 6]):
        with pytest.raises(ValueError, match="texts: the column's offsets don't ascend"):
            gnomon.dedup(Column(b"u", [None, np.array(offsets, np.int32), b"abcdefgh"], 2))
    for length, number, begin in ((13, 2, 0), (13, -1, 0), (13, 0, -1), (40, 0, 0), (13, 0, 2 ** 31 - 1)):
        view = np.array([length, 0, number, begin], np.int32)
        with pytest.raises(ValueError, match="texts: the column's view 0 lies outside its buffers"):
            gnomon.dedup(Column(b"vu", [None, view, b"x" * 20, b"", np.array([20, 0])], 1))
    with pytest.raises(ValueError, match="texts: the column's view 0 has a negative length"):
        gnomon.dedup(Column(b"vu", [None, np.array([-4, 0, 0, 0], np.int32), np.array([], np.int64)], 1))
    for given in (raise_, lambda: None, lambda: (1, 2)):
        with pytest.raises(ValueError, match="texts: its Arrow data can't be read"):
            gnomon.dedup(Shows(array=given))
    with pytest.raises(ValueError, match="texts: its Arrow stream failed: the disk is gone"):
        gnomon.dedup(Failing("schema", b"the disk is gone"))


@pytest.mark.skipif(pyarrow is None, reason="no pyarrow")
def test_texts_of_pyarrow():
    pa, expected = pyarrow, gnomon.dedup(TEXTS, similarity=0.6)
    kinds = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
    kinds += [pa.string_view()] if hasattr(pa, "string_view") else []
    for kind in kinds:
        whole = pa.array(["before"] + TEXTS, kind)
        for shown in (whole[1:], pa.chunked_array([whole[1:4], whole[4:4], whole[4:]]), pa.table({"text": whole[1:]})["text"]):
            assert same(gnomon.dedup(shown, similarity=0.6), expected), kind
    with pytest.raises(ValueError, match="texts has a null for text 5"):
        gnomon.dedup(pa.chunked_array([["a", "b", "c"], ["d", "e", None]]))
    with pytest.raises(ValueError, match="give one column"):
        gnomon.dedup(pa.table({"text": ["a"]}))
    with pytest.raises(ValueError, match="dictionary"):
        gnomon.dedup(pa.array(["a", "a"]).dictionary_encode())


def test_texts_of_pandas():
    pandas = pytest.importorskip("pandas")
    assert same(gnomon.dedup(pandas.Series(TEXTS), similarity=0.6), gnomon.dedup(TEXTS, similarity=0.6))
