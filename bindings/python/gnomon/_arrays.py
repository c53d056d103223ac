"""Arrays as the library's views, without copies where it can use them as they lie, and its results as arrays."""
from __future__ import annotations

import ctypes
import numbers
import sys
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from . import _abi
from ._arrow import arrow
from ._context import Context, at_death
from ._device import Placed, dlpack_device, placed
from ._errors import DeviceError

ArrayLike = Any  # what numpy.asarray, numpy.from_dlpack or sparse() below takes

_CODES: dict[Any, int] = {
    np.dtype(np.float32): _abi.GNOMON_F32, np.dtype(np.float64): _abi.GNOMON_F64,
    np.dtype(np.float16): _abi.GNOMON_F16, np.dtype(np.int8): _abi.GNOMON_I8, np.dtype(np.uint8): _abi.GNOMON_U8,
    np.dtype(np.bool_): _abi.GNOMON_U8, np.dtype(np.int16): _abi.GNOMON_I16, np.dtype(np.uint16): _abi.GNOMON_U16,
    np.dtype(np.int32): _abi.GNOMON_I32, np.dtype(np.uint32): _abi.GNOMON_U32, np.dtype(np.int64): _abi.GNOMON_I64,
    np.dtype(np.uint64): _abi.GNOMON_U64,
}
_TYPES = {code: dtype for dtype, code in _CODES.items() if dtype != np.dtype(np.bool_)}
_DOUBLE = frozenset((_abi.GNOMON_F64, _abi.GNOMON_I32, _abi.GNOMON_U32, _abi.GNOMON_I64, _abi.GNOMON_U64))
_CPU = (1, 3, 11)  # DLPack's kinds of memory that a CPU reads: its own, page-locked for CUDA or ROCm


def as_array(x: ArrayLike, name: str) -> np.ndarray:
    """An array of anything that has one to show: NumPy's, a buffer, ``__array_interface__``, DLPack, a column
    of fixed-size lists by Arrow's PyCapsule interface, nested lists."""
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):  # type: ignore[no-untyped-call]
            raise ValueError(f"{name} is a masked array with masked elements, which have no value here")
        return np.asarray(x)
    if isinstance(x, (str, bytes, dict, set, frozenset)) or x is None:
        raise TypeError(f"{name} must be an array, not {type(x).__name__}")
    column = arrow(x, name)
    if column is not None:
        return column
    device = dlpack_device(x)
    if device[0] is not None and device[0] not in _CPU:
        raise DeviceError(f"{name} lies in a device's memory (DLPack's device {device}); this call takes arrays of the "
                          "CPU's memory")
    if hasattr(x, "__cuda_array_interface__") and device[0] is None:
        raise DeviceError(f"{name} lies in a GPU's memory; this call takes arrays of the CPU's memory")
    try:
        if device[0] is not None and not hasattr(x, "__array_interface__"):
            return np.from_dlpack(x)
        return np.asarray(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, (BufferError, RuntimeError)) and hasattr(x, "__array__"):
            reason: Optional[Exception] = error
            if not getattr(x, "requires_grad", False):
                try:
                    return np.asarray(x)
                except Exception as other:
                    reason = other
            raise ValueError(f"{name}: {reason}") from None
        raise ValueError(f"{name}: {error}") from None


def _convert(x: np.ndarray, name: str) -> np.ndarray:
    """A native, aligned array of a type that the library knows: of what it can't use as it lies."""
    kind = x.dtype.kind
    if kind == "c":
        raise ValueError(f"{name} has dtype {x.dtype}: complex data not supported")
    if kind in "SUV":
        raise ValueError(f"{name} has dtype {x.dtype}; it must hold numbers")
    if kind == "O":
        try:
            return x.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} has dtype object, whose elements are not all numbers: {error}") from None
    if kind == "f" and x.dtype.itemsize > 8:
        return x.astype(np.float64)
    if kind in "fiu" and x.dtype.newbyteorder("=") in _CODES:
        return x.astype(x.dtype.newbyteorder("="))
    raise ValueError(f"{name} has dtype {x.dtype}; it must be a real floating point or integer type")


def _fit(x: np.ndarray, name: str) -> tuple[np.ndarray, int]:
    """The array, or a copy that the library can use, and its element type's number."""
    code = _CODES.get(x.dtype)
    if code is None:
        if x.dtype.name == "bfloat16" and x.dtype.itemsize == 2:
            code = _abi.GNOMON_BF16
        else:
            x = _convert(x, name)
            code = _CODES[x.dtype]
    size = x.itemsize
    for stride in x.strides:
        if stride % size:
            return x.copy(), code
    return (x if x.flags.aligned else x.copy()), code


_DATA = object.__basicsize__  # of an array's first own member, the address of its data


def _address_read(x: np.ndarray) -> int:
    """The address of an array's data, eight times as fast as ``x.ctypes.data``."""
    return ctypes.c_void_p.from_address(id(x) + _DATA).value or 0


def _address_asked(x: np.ndarray) -> int:
    address: int = x.ctypes.data
    return address


def _reads_right() -> bool:
    """Whether this Python and this NumPy lay out arrays as _address_read believes."""
    if sys.implementation.name != "cpython" or np.ndarray.__basicsize__ < _DATA + ctypes.sizeof(ctypes.c_void_p):
        return False
    sample = np.zeros(16)
    tries = [sample, sample[3:], sample[::-1], np.zeros((2, 0))]
    return all(_address_read(x) == x.ctypes.data for x in tries)


address = _address_read if _reads_right() else _address_asked


def view(x: np.ndarray, code: int) -> _abi.gnomon_matrix:
    """Of an array of two dimensions that _fit gave."""
    size = x.itemsize
    rows, cols = x.shape
    first, second = x.strides
    if not (rows and cols):  # NumPy's strides of an empty array may be 0
        return _matrix(address(x), code, 0, rows, cols, cols or 1, 1)
    return _matrix(address(x), code, 0, rows, cols, first // size, second // size)


_matrix = _abi.gnomon_matrix
class Dense:
    """A dense array of two dimensions and its view."""

    __slots__ = ("array", "view", "code", "shape")

    def __init__(self, x: np.ndarray, name: str):
        if x.ndim != 2:
            hint = ": reshape(-1, 1) makes it one column, reshape(1, -1) one row" if x.ndim == 1 else ""
            raise ValueError(f"{name}: Expected 2D array, got {x.ndim}D array instead{hint}")
        self.array, self.code = x, code = _fit(x, name)
        self.view = view(x, code)
        self.shape: tuple[int, int] = x.shape

    @property
    def double(self) -> bool:
        """Whether the library's arithmetic on it is in double precision."""
        return self.code in _DOUBLE

    sparse = False


def _bfloat16(x: Any) -> bool:
    """Whether x is a tensor of PyTorch's on the CPU of the type that NumPy lacks."""
    torch: Any = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())  # absent while PyTorch is being imported
    return isinstance(x, tensor) and x.dtype == torch.bfloat16 and x.device.type == "cpu"


def _dense_bfloat16(x: Any, name: str) -> Dense:
    if x.requires_grad:
        raise ValueError(f"{name} requires a gradient, which no call here passes on: give {name}.detach()")
    found = Dense(x.view(sys.modules["torch"].int16).numpy(), name)
    found.code = found.view.dtype = _abi.GNOMON_BF16
    return found


class Sparse:
    """Sparse rows and their view; of SciPy's formats, or of three arrays."""

    __slots__ = ("shape", "view", "code", "_kept", "coo")

    def __init__(self, x: Any, name: str, coo: bool = False):
        rows, cols = (int(n) for n in x.shape)
        self.shape = (rows, cols)
        self.coo = coo and x.format == "coo"
        if x.format not in ("csr", "coo") or (x.format == "coo" and not coo):
            _check_before_conversion(x, name, rows, cols)
            x = x.tocsr()
        values, self.code = _fit(_flat(x.data, name, "data"), name)
        values = np.ascontiguousarray(values)
        if self.coo:
            row, col = _index(x.row, name, "row"), _index(x.col, name, "col")
            if not len(row) == len(col) == len(values):
                raise ValueError(f"{name}: row, col and data have {len(row)}, {len(col)} and {len(values)} elements; "
                                 "they must have as many")
            self.view: Any = _abi.gnomon_coo(rows, cols, len(values), _pointer(row), _pointer(col),
                                             values.ctypes.data, self.code)
            self._kept = (row, col, values)
            return
        offsets, indices = _index(x.indptr, name, "indptr"), _index(x.indices, name, "indices")
        if len(offsets) != rows + 1:
            raise ValueError(f"{name}: indptr has {len(offsets)} elements; with {rows} rows it must have {rows + 1}")
        stored = int(offsets[-1]) - int(offsets[0])
        if stored > min(len(indices), len(values)):
            raise ValueError(f"{name}: indptr tells of {stored} entries, indices has {len(indices)} and data "
                             f"{len(values)}")
        if offsets[0] != 0:  # the library counts entries from the first offset
            start = int(offsets[0])
            if start < 0 or start + stored > min(len(indices), len(values)):
                raise ValueError(f"{name}: indptr begins at {start}; it must begin at 0")
            indices, values = indices[start:], values[start:]
        self.view = _abi.gnomon_csr(rows, cols, _pointer(offsets), _pointer(indices), values.ctypes.data, self.code)
        self._kept = (offsets, indices, values)

    @property
    def double(self) -> bool:
        return self.code in _DOUBLE

    sparse = True


Points = Union[Dense, Sparse]
Matrix = Union[Dense, Placed]  # a dense array, wherever it lies


def is_sparse(x: Any) -> bool:
    """Whether x is a sparse matrix or array of SciPy's, or has the same members."""
    return hasattr(x, "format") and hasattr(x, "shape") and (hasattr(x, "tocsr") or hasattr(x, "indptr"))


def _check_before_conversion(x: Any, name: str, rows: int, cols: int) -> None:
    """Refuses what SciPy's conversions to rows follow out of their arrays."""
    if x.format == "coo":
        row, col = _index(x.row, name, "row"), _index(x.col, name, "col")
        if not len(row) == len(col) == len(x.data):
            raise ValueError(f"{name}: row, col and data have {len(row)}, {len(col)} and {len(x.data)} elements; "
                             "they must have as many")
        _check_range(row, rows, name, "row")
        _check_range(col, cols, name, "col")
    elif x.format in ("csc", "bsr"):
        down, across = x.blocksize if x.format == "bsr" else (1, 1)
        lines, limit = (cols, rows) if x.format == "csc" else (rows // down, cols // across)
        offsets, indices = _index(x.indptr, name, "indptr"), _index(x.indices, name, "indices")
        if len(offsets) != lines + 1 or offsets[0] != 0:
            raise ValueError(f"{name}: indptr must have {lines + 1} elements, of which the first is 0")
        if (np.diff(offsets) < 0).any():
            raise ValueError(f"{name}: indptr must not decrease")
        if offsets[-1] > min(len(indices), len(x.data)):
            raise ValueError(f"{name}: indptr tells of {offsets[-1]} entries, indices has {len(indices)} and data "
                             f"{len(x.data)}")
        _check_range(indices[:offsets[-1]], limit, name, "indices")


def _check_range(indices: np.ndarray, limit: int, name: str, member: str) -> None:
    outside = np.flatnonzero((indices < 0) | (indices >= limit))
    if len(outside):
        raise ValueError(f"{name}: element {outside[0]} of {member} is {indices[outside[0]]}; it must be in [0, {limit})")


def _flat(x: Any, name: str, member: str) -> np.ndarray:
    flat: np.ndarray = np.asarray(x)
    if flat.ndim != 1:
        raise ValueError(f"{name}: {member} has {flat.ndim} dimensions; it must have one")
    return flat


def _index(x: Any, name: str, member: str) -> np.ndarray:
    x = _flat(x, name, member)
    if x.dtype.kind not in "iu":
        raise ValueError(f"{name}: {member} has dtype {x.dtype}; it must be an integer type")
    return np.ascontiguousarray(x, dtype=np.int64)


_int64_p = ctypes.POINTER(ctypes.c_int64)


def _pointer(x: np.ndarray) -> Any:
    return ctypes.cast(x.ctypes.data, _int64_p)


def points(x: ArrayLike, name: str, sparse: bool = True) -> Points:
    """What was given as points: n rows of d coordinates."""
    if type(x) is np.ndarray:
        return Dense(x, name)
    if is_sparse(x):
        if not sparse:
            raise TypeError(f"{name} is sparse; this call takes dense arrays: use {name}.toarray()")
        return Sparse(x, name)
    if _bfloat16(x):
        return _dense_bfloat16(x, name)
    return Dense(as_array(x, name), name)


def dense(x: ArrayLike, name: str) -> Dense:
    """The same where only a dense array will do."""
    checked = points(x, name, sparse=False)
    assert isinstance(checked, Dense)
    return checked


def matrix(x: ArrayLike, name: str) -> Matrix:
    """The same where it may lie in a GPU's memory too."""
    if type(x) is np.ndarray:
        return Dense(x, name)
    there = placed(x, name)
    return dense(x, name) if there is None else there


def anywhere(x: ArrayLike, name: str) -> Union[Points, Placed]:
    """Points, dense ones in a GPU's memory too."""
    if type(x) is np.ndarray:
        return Dense(x, name)
    there = placed(x, name)
    return points(x, name) if there is None else there


def output_beside(out: Any, shape: tuple[int, int], dtype: Any, inputs: Sequence[Any], name: str = "out") -> Matrix:
    """An array to write to where the inputs lie, or the caller's wherever that lies."""
    if out is None:
        for there in inputs:
            if isinstance(there, Placed):
                if there.maker is None:
                    raise TypeError(f"{name} must be given: the input lies in a GPU's memory, and its library has no way "
                                    "to make an array there")
                return there.maker.empty(there, shape, _CODES[np.dtype(dtype)])
        return Dense(np.empty(shape, dtype), name)
    target = None if isinstance(out, np.ndarray) else placed(out, name)
    if target is None:
        return output(out, shape, dtype, [x for x in inputs if not isinstance(x, Placed)], name)
    if target.shape != shape:
        raise ValueError(f"{name} has shape {target.shape}; it must have {shape}")
    if target.code not in (_abi.GNOMON_F32, _abi.GNOMON_F64):
        raise ValueError(f"{name} has another type than float32 and float64")
    if not target.writable:
        raise ValueError(f"{name} is read-only")
    return target


def output(out: Optional[np.ndarray], shape: tuple[int, int], dtype: Any, inputs: Sequence[Points] = (),
           name: str = "out") -> Dense:
    """An array to write to: a new one, or the caller's once it has been checked."""
    if out is None:
        return Dense(np.empty(shape, dtype), name)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{name} must be a numpy.ndarray, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"{name} has shape {out.shape}; it must have {shape}")
    if out.dtype not in _FLOATS:
        raise ValueError(f"{name} has dtype {out.dtype}; it must be float32 or float64")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    for x in inputs:
        if isinstance(x, Dense) and np.may_share_memory(out, x.array):
            raise ValueError(f"{name} shares memory with an input")
    checked = Dense(out, name)
    if checked.array is not out and not np.shares_memory(checked.array, out):
        raise ValueError(f"{name} is not aligned to its elements")
    return checked


_SINGLE, _WIDE = np.dtype(np.float32), np.dtype(np.float64)
_FLOATS = frozenset((_SINGLE, _WIDE))


def float_dtype(dtype: Any, double: bool, name: str = "dtype") -> np.dtype:
    """float32 or float64: what was asked for, else what fits the input."""
    if dtype is None:
        return _WIDE if double else _SINGLE
    found: np.dtype = np.dtype(dtype)
    if found not in _FLOATS:
        raise ValueError(f"{name} is {found}; it must be float32 or float64")
    return found


class _Owner:
    """Lives as long as an array shows what a call allocated."""

    __slots__ = ("__weakref__",)


class Result:
    """The arrays of a result of the library. They keep its memory; it is freed with the last of them."""

    def __init__(self, context: Context, free: Callable[..., Any], struct: Any):
        self._owner = _Owner()
        # Not __del__: of objects that die together the collector may finalize the context first.
        at_death(self._owner, context.release, free, struct)

    def array(self, address: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        dtype = np.dtype(dtype)
        number = ctypes.cast(address, ctypes.c_void_p).value if not isinstance(address, int) else address
        if not number or 0 in shape:
            return np.empty(shape, dtype)
        return np.asarray(_Shown(self._owner, number, shape, dtype))

    def matrix(self, m: _abi.gnomon_matrix) -> np.ndarray:
        """Row-major."""
        return self.array(m.data, (m.rows, m.cols), _TYPES[m.dtype])


class _Shown:
    """What NumPy makes an array of, and keeps as its base."""

    __slots__ = ("owner", "__array_interface__")

    def __init__(self, owner: _Owner, address: int, shape: tuple[int, ...], dtype: np.dtype):
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": dtype.str}


def integer(value: Any, name: str, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """A Python int of an argument that counts something."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        if not hasattr(value, "__index__") or isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    number = int(value.__index__())
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}; it must be from {least} to {most}")
    return number


def real(value: Any, name: str) -> float:
    """A Python float of an argument that is a real number."""
    if isinstance(value, (str, bytes, complex)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}")
    return float(value)


def seed_of(random_state: Any) -> int:
    """A seed: the int itself; a fresh one for None, as scikit-learn has it; else drawn from the generator."""
    if random_state is None:
        return int(np.random.randint(0, (1 << 63) - 1, dtype=np.int64))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, (1 << 63) - 1, dtype=np.int64))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, (1 << 63) - 1))
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(random_state, numbers.Integral):
        raise ValueError(f"random_state must be None, an int, a numpy.random.RandomState or Generator, not "
                         f"{type(random_state).__name__}")
    if not 0 <= int(random_state) < 1 << 64:
        raise ValueError(f"random_state is {random_state}; it must be from 0 to 2**64 - 1")
    return int(random_state)
