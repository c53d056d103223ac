"""Columns of fixed-size lists as arrays, by Arrow's PyCapsule interface and its C data interface. Arrow itself is not
needed."""
from __future__ import annotations

import ctypes
from typing import Any, Iterator, Optional

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


def _unshown(x: Any, name: str, error: Exception) -> None:
    """What shows no Arrow data after all may have another way: a Series of pandas' needs pyarrow for this one."""
    if not hasattr(x, "__array__"):
        raise ValueError(f"{name}: its Arrow data can't be read: {error}") from None


def _of_array(x: Any, name: str) -> Optional[np.ndarray]:
    """The capsules are not taken over: their own ends free what they hold, when the last array that shows it ends."""
    try:
        schema, array = x.__arrow_c_array__()
        shown, rows = _pointer_of(schema, b"arrow_schema"), _pointer_of(array, b"arrow_array")
    except Exception as error:
        _unshown(x, name, error)
        return None
    kind = _type(_Schema.from_address(shown), name)
    return kind and _rows(_Array.from_address(rows), array, *kind, name)


def _of_stream(x: Any, name: str) -> Optional[np.ndarray]:
    try:
        capsule = x.__arrow_c_stream__()
        address = _pointer_of(capsule, b"arrow_array_stream")
    except Exception as error:
        _unshown(x, name, error)
        return None
    stream, schema = _Stream.from_address(address), _Held(_Schema())
    if stream.get_schema(address, ctypes.byref(schema.struct)):
        raise _failed(stream, address, name)
    kind = _type(schema.struct, name)
    if kind is None:
        return None
    found, seen = [], 0
    for held in _pieces(stream, address, name):
        try:
            found.append(_rows(held.struct, held, *kind, name))
        except ValueError as error:
            raise ValueError(f"{error} (counted from row {seen}, where a chunk begins)" if seen else str(error)) from None
        seen += len(found[-1])
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.empty((0, kind[1]), kind[0])


def arrow(x: Any, name: str) -> Optional[np.ndarray]:
    """The array of a column of fixed-size lists; None for what is no such column.

    An array is not copied, nor is a stream of one chunk; the chunks of another are put together, which copies them once.
    Tables, and frames that look like matrices, are left to their own conversion.
    """
    of_array = hasattr(x, "__arrow_c_array__")
    if isinstance(x, type) or not (of_array or hasattr(x, "__arrow_c_stream__")) or len(getattr(x, "shape", ())) == 2:
        return None
    return _of_array(x, name) if of_array else _of_stream(x, name)
