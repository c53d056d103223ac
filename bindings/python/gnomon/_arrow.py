"""Columns of fixed-size lists as arrays, and columns of texts, by Arrow's PyCapsule interface and its C data interface.
Arrow itself is not needed."""
from __future__ import annotations

import ctypes
from typing import Any, Iterator, NamedTuple, Optional

import numpy as np


class _Schema(ctypes.Structure):
    """struct ArrowSchema."""


_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
                    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.c_void_p),
                    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class _Array(ctypes.Structure):
    """struct ArrowArray."""


_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                   ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
                   ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Schema))),
                ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
                ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

_TYPES = {b"e": "f2", b"f": "f4", b"g": "f8", b"c": "i1", b"C": "u1", b"s": "i2", b"S": "u2", b"i": "i4", b"I": "u4",
          b"l": "i8", b"L": "u8"}
_REFUSED = {b"+l": "lists", b"+L": "lists", b"+vl": "lists", b"+vL": "lists", b"u": "texts", b"U": "texts",
            b"vu": "texts", b"z": "bytes", b"Z": "bytes", b"vz": "bytes", b"+s": "structures"}


class _Held:
    """A structure that a stream filled, given back with the last array that shows it."""

    __slots__ = ("struct",)

    def __init__(self, struct: Any):
        self.struct = struct

    def __del__(self, release: Any = _RELEASE, address: Any = ctypes.addressof) -> None:
        if self.struct.release:
            release(self.struct.release)(address(self.struct))


class _Shown:
    """What NumPy makes an array of, and keeps as its base."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: Any, address: int, shape: tuple[int, int], typestr: str):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": shape, "typestr": typestr}


def _null(array: Any, begin: int, count: int) -> int:
    """The first of so many elements that is null; -1 for none."""
    if array.null_count == 0 or array.n_buffers < 1 or not array.buffers[0] or not count:
        return -1
    first, last = begin // 8, (begin + count + 7) // 8
    packed = np.ctypeslib.as_array((ctypes.c_uint8 * (last - first)).from_address(array.buffers[0] + first))
    bits = np.unpackbits(packed, count=begin - first * 8 + count, bitorder="little")[begin - first * 8:]
    at = int(bits.argmin())
    return at if not bits[at] else -1


def _type(schema: Any, name: str) -> Optional[tuple[str, int]]:
    """The type of a column's elements, and how many a list has; None for a column of numbers, say, for other code."""
    form = schema.format or b""
    if not form.startswith(b"+w:"):
        if form in _REFUSED:
            raise ValueError(f"{name} is an Arrow column of {_REFUSED[form]}; it must be one of fixed-size lists of numbers")
        return None
    element = schema.children[0].contents
    typestr = _TYPES.get(element.format)
    if typestr is None or element.dictionary:
        raise ValueError(f"{name} is an Arrow column of lists of elements of format {(element.format or b'').decode()!r}; "
                         "they must be floating point numbers or integers")
    return typestr, int(form[3:])


def _rows(array: Any, owner: Any, typestr: str, width: int, name: str) -> np.ndarray:
    """The rows of a column's piece, where they lie."""
    rows, element = array.length, array.children[0].contents
    at = _null(array, array.offset, rows)
    if at >= 0:
        raise ValueError(f"{name} has a null for row {at}; every row must have its {width} numbers")
    begin = element.offset + array.offset * width
    at = _null(element, begin, rows * width)
    if at >= 0:
        raise ValueError(f"{name} has a null in row {at // width}, column {at % width}; every element must be a number")
    if not (rows and width):
        return np.empty((rows, width), typestr)
    address = element.buffers[1] + begin * int(typestr[1:])
    return np.asarray(_Shown(owner, address, (rows, width), typestr))


def _failed(stream: Any, address: int, name: str) -> ValueError:
    text = stream.get_last_error(address) or b"it gives no reason"
    return ValueError(f"{name}: its Arrow stream failed: {text.decode('utf-8', 'replace')}")


def _pieces(stream: Any, address: int, name: str) -> Iterator[_Held]:
    while True:
        held = _Held(_Array())
        if stream.get_next(address, ctypes.byref(held.struct)):
            raise _failed(stream, address, name)
        if not held.struct.release:  # the end
            return
        yield held


def _unshown(x: Any, name: str, error: Exception, other: str) -> None:
    """What shows no Arrow data after all may have another way: a Series of pandas' needs pyarrow for this one."""
    if not hasattr(x, other):
        raise ValueError(f"{name}: its Arrow data can't be read: {error}") from None


def _is_shown(x: Any) -> bool:
    return not isinstance(x, type) and (hasattr(x, "__arrow_c_array__") or hasattr(x, "__arrow_c_stream__"))


def _opened(x: Any, name: str, other: str) -> Optional[tuple[Any, Iterator[tuple[Any, Any]]]]:
    """A column's schema and its pieces, each with what keeps it; None for what has but the method 'other'.

    An array's capsules are not taken over: their own ends free what they hold, when the last array that shows it ends.
    """
    try:
        if hasattr(x, "__arrow_c_array__"):
            kept = x.__arrow_c_array__()
            schema, array = (_pointer_of(one, of) for one, of in zip(kept, (b"arrow_schema", b"arrow_array"), strict=True))
            return _Schema.from_address(schema), iter([(_Array.from_address(array), kept)])
        capsule = x.__arrow_c_stream__()
        address = _pointer_of(capsule, b"arrow_array_stream")
    except Exception as error:
        _unshown(x, name, error, other)
        return None
    stream, held = _Stream.from_address(address), _Held(_Schema())
    if stream.get_schema(address, ctypes.byref(held.struct)):
        raise _failed(stream, address, name)

    def pieces() -> Iterator[tuple[Any, Any]]:
        for one in _pieces(stream, address, name):
            yield one.struct, one
        del kept[:]  # until here the stream and its schema stay

    kept = [capsule, held]
    return held.struct, pieces()


def arrow(x: Any, name: str) -> Optional[np.ndarray]:
    """The array of a column of fixed-size lists; None for what is no such column.

    An array is not copied, nor is a stream of one chunk; the chunks of another are put together, which copies them once.
    Tables, and frames that look like matrices, are left to their own conversion.
    """
    if not _is_shown(x) or len(getattr(x, "shape", ())) == 2:
        return None
    opened = _opened(x, name, "__array__")
    kind = opened and _type(opened[0], name)
    if not opened or not kind:
        return None
    found, seen = [], 0
    for piece, owner in opened[1]:
        try:
            found.append(_rows(piece, owner, *kind, name))
        except ValueError as error:
            raise ValueError(f"{error} (counted from row {seen}, where a chunk begins)" if seen else str(error)) from None
        seen += len(found[-1])
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.empty((0, kind[1]), kind[0])


# ---- texts ----

_OFFSETS = {b"u": np.int32, b"z": np.int32, b"U": np.int64, b"Z": np.int64}
_VIEWS = (b"vu", b"vz")
_INLINE = 12  # bytes of a text that its view itself holds


class Texts(NamedTuple):
    """Texts where they lie: text i is the bytes from address + begins[i] to address + ends[i]; owner keeps them."""

    address: int
    begins: np.ndarray
    ends: np.ndarray
    owner: Any


def _shown(address: int, count: int, dtype: Any) -> np.ndarray:
    """So many numbers at an address; for none it may be 0."""
    if not count:
        return np.empty(0, dtype)
    memory: Any = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def _of_offsets(array: Any, owner: Any, dtype: Any, name: str) -> Texts:
    size = np.dtype(dtype).itemsize
    offsets = _shown((array.buffers[1] or 0) + array.offset * size, array.length + 1, dtype).astype(np.int64)
    if (offsets < 0).any() or (np.diff(offsets) < 0).any():
        raise ValueError(f"{name}: the column's offsets don't ascend")
    return Texts(array.buffers[2] or 0, offsets[:-1], offsets[1:], owner)


_VIEW = np.dtype([("length", "i4"), ("begin", "i4"), ("buffer", "i4"), ("offset", "i4")])


def _of_views(array: Any, owner: Any, name: str) -> Texts:
    """Texts of up to 12 bytes lie in the views, longer ones in any of several buffers."""
    where = (array.buffers[1] or 0) + array.offset * _VIEW.itemsize
    views, buffers = _shown(where, array.length, _VIEW), array.n_buffers - 3
    length = views["length"].astype(np.int64)
    address = where + 4 + _VIEW.itemsize * np.arange(array.length, dtype=np.int64)
    far = np.flatnonzero(length > _INLINE)
    if len(far):
        number, offset = views["buffer"][far], views["offset"][far].astype(np.int64)
        sizes = _shown(array.buffers[2 + buffers], buffers, np.int64)
        inside = (number >= 0) & (number < buffers) & (offset >= 0)
        inside[inside] = offset[inside] + length[far][inside] <= sizes[number[inside]]
        if not inside.all():
            raise ValueError(f"{name}: the column's view {far[int(inside.argmin())]} lies outside its buffers")
        address[far] = np.array([array.buffers[2 + i] or 0 for i in range(buffers)], np.int64)[number] + offset
    if (length < 0).any():
        raise ValueError(f"{name}: the column's view {int((length < 0).argmax())} has a negative length")
    first = int(address.min()) if len(address) else 0
    return Texts(first, address - first, address - first + length, owner)


def texts(x: Any, name: str) -> Optional[Iterator[Texts]]:
    """The texts of an Arrow column of strings or bytes, chunk by chunk and without copies; None for what is no column."""
    opened = _opened(x, name, "__iter__") if _is_shown(x) else None
    if opened is None:
        return None
    schema, pieces = opened
    form = schema.format or b""
    if form == b"+s":
        raise ValueError(f"{name} is an Arrow table or column of structures; give one column of texts")
    if schema.dictionary or not (form in _OFFSETS or form in _VIEWS):
        kind = "a dictionary" if schema.dictionary else f"format {form.decode('ascii', 'replace')!r}"
        raise ValueError(f"{name} is an Arrow column of {kind}; it must be one of strings or bytes")
    return _all_texts(pieces, form, name)


def _all_texts(pieces: Iterator[tuple[Any, Any]], form: bytes, name: str) -> Iterator[Texts]:
    seen = 0
    for array, owner in pieces:
        at = _null(array, array.offset, array.length)
        if at >= 0:
            raise ValueError(f"{name} has a null for text {seen + at}; every element must be a text")
        if array.length:
            yield _of_views(array, owner, name) if form in _VIEWS else _of_offsets(array, owner, _OFFSETS[form], name)
        seen += array.length
