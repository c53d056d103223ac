"""Arrays in a GPU's memory as the library's views: of PyTorch, of CuPy, of ``__cuda_array_interface__``, of DLPack. None is
copied but 32-bit indices of sparse rows, there."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _abi
from ._errors import DeviceError

_CUDA_KINDS = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged
_LEGACY = 1            # cudaStreamLegacy: PyTorch and CuPy call this stream 0
_DLPACK: dict[tuple[int, int], int] = {  # (DLPack's type code, bits)
    (2, 32): _abi.GNOMON_F32, (2, 64): _abi.GNOMON_F64, (2, 16): _abi.GNOMON_F16, (4, 16): _abi.GNOMON_BF16,
    (0, 8): _abi.GNOMON_I8, (1, 8): _abi.GNOMON_U8, (0, 16): _abi.GNOMON_I16, (1, 16): _abi.GNOMON_U16,
    (0, 32): _abi.GNOMON_I32, (1, 32): _abi.GNOMON_U32, (0, 64): _abi.GNOMON_I64, (1, 64): _abi.GNOMON_U64,
    (6, 8): _abi.GNOMON_U8,
}
_TYPESTR: dict[str, int] = {
    "f4": _abi.GNOMON_F32, "f8": _abi.GNOMON_F64, "f2": _abi.GNOMON_F16, "i1": _abi.GNOMON_I8, "u1": _abi.GNOMON_U8,
    "b1": _abi.GNOMON_U8, "i2": _abi.GNOMON_I16, "u2": _abi.GNOMON_U16, "i4": _abi.GNOMON_I32, "u4": _abi.GNOMON_U32,
    "i8": _abi.GNOMON_I64, "u8": _abi.GNOMON_U64,
}
_DOUBLE = frozenset((_abi.GNOMON_F64, _abi.GNOMON_I32, _abi.GNOMON_U32, _abi.GNOMON_I64, _abi.GNOMON_U64))
_TORCH_NAMES = {
    "float32": _abi.GNOMON_F32, "float64": _abi.GNOMON_F64, "float16": _abi.GNOMON_F16, "bfloat16": _abi.GNOMON_BF16,
    "int8": _abi.GNOMON_I8, "uint8": _abi.GNOMON_U8, "bool": _abi.GNOMON_U8, "int16": _abi.GNOMON_I16,
    "int32": _abi.GNOMON_I32, "int64": _abi.GNOMON_I64,
}


class _Torch:
    """What a call asks of PyTorch for every tensor, looked up once: each look-up in its modules takes a microsecond."""

    def __init__(self, torch: Any):
        self.module, self.strided = torch, torch.strided
        self.codes: dict[Any, int] = {getattr(torch, theirs): code for theirs, code in _TORCH_NAMES.items()}
        self.floats = {_abi.GNOMON_F32: torch.float32, _abi.GNOMON_F64: torch.float64}
        # PyTorch's compiled code uses it too; current_stream makes a Stream, which takes many times as long.
        self.stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None) or self._stream
        # This is how that code makes its outputs too, on the current GPU: new_empty takes twice as long.
        guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        self.quick: Any = getattr(guards, "_empty_strided_cuda", None)
        self.current: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: -1)

    def _stream(self, index: int) -> int:
        stream: int = self.module.cuda.current_stream(index).cuda_stream
        return stream

    def empty(self, x: Placed, shape: tuple[int, int], code: int) -> Placed:
        """A tensor on the GPU of x."""
        dtype = self.floats[code]
        if self.quick is not None and self.current() == x.device:
            made = self.quick(shape, (shape[1] or 1, 1), dtype)
        else:
            made = (x.values if isinstance(x, PlacedRows) else x.array).new_empty(shape, dtype=dtype)
        return Placed(made, "out", made.data_ptr(), code, shape, (shape[1], 1), x.device, x.stream, self)

    def bring(self, x: Placed, host: np.ndarray) -> Any:
        """A copy of an array of the host's on the GPU of x."""
        return self.module.from_numpy(host).to(x.array.device)


_known: Optional[_Torch] = None
_matrix = _abi.gnomon_matrix
_DEVICE_MEMORY = _abi.GNOMON_DEVICE_MEMORY


class Placed:
    """A dense array of two dimensions in a GPU's memory, and its view, ``numbers`` as a tuple.

    ``device`` is the GPU's number among the visible ones, ``stream`` the stream that its library works on (an address as
    CUDA's calls take it; None: any), ``maker`` what makes others of that library's arrays on the same GPU (None: nothing
    does).
    """

    __slots__ = ("array", "numbers", "code", "shape", "device", "stream", "maker", "writable")
    sparse = False

    def __init__(self, array: Any, name: str, address: int, code: int, shape: Any, strides: Any, device: int,
                 stream: Optional[int], maker: Union[_Torch, _CuPy, None], writable: bool = True):
        if len(shape) != 2:
            raise ValueError(f"{name}: Expected 2D array, got {len(shape)}D array instead")
        rows, cols = shape
        first, second = strides
        if not (rows and cols):
            first, second = cols or 1, 1
        self.array, self.code, self.device, self.stream, self.maker = array, code, device, stream, maker
        self.writable = writable
        self.shape: tuple[int, int] = (rows, cols)
        self.numbers = (address, code, _DEVICE_MEMORY, rows, cols, first, second)

    @property
    def view(self) -> Any:
        """A struct of the library's."""
        return _matrix(*self.numbers)

    @property
    def double(self) -> bool:
        return self.code in _DOUBLE


class PlacedRows(Placed):
    """Sparse rows in a GPU's memory, a CSR tensor of PyTorch's or CuPy's CSR matrix, and their view.

    ``parts`` are its row pointers, column indices and values, contiguous, the first two of 64 bits; ``addresses`` where they
    lie.
    """

    __slots__ = ("values", "_kept", "_view")
    sparse = True

    def __init__(self, array: Any, name: str, code: Optional[int], shape: Any, parts: tuple[Any, Any, Any],
                 addresses: tuple[int, int, int], device: int, stream: int, maker: Union[_Torch, _CuPy]):
        offsets, indices, values = parts
        if code is None:
            raise ValueError(f"{name} has dtype {values.dtype}; it must be a real floating point or integer type")
        rows, cols = (int(n) for n in shape)
        if len(offsets) != rows + 1 or len(indices) != len(values):
            raise ValueError(f"{name}: {len(offsets)} row pointers, {len(indices)} column indices and {len(values)} values "
                             f"do not make {rows} rows")
        self.array, self.code, self.device, self.shape = array, code, device, (rows, cols)
        self.stream, self.maker, self.writable = stream, maker, False
        self.values, self._kept = values, parts
        index = ctypes.POINTER(ctypes.c_int64)
        self._view = _abi.gnomon_csr(rows, cols, ctypes.cast(addresses[0], index), ctypes.cast(addresses[1], index),
                                         addresses[2] or None, code)

    @property
    def view(self) -> Any:
        return self._view


def _torch_rows(x: Any, name: str, known: _Torch) -> PlacedRows:
    if x.dim() != 2:
        raise ValueError(f"{name}: Expected 2D array, got {x.dim()}D array instead")
    offsets, indices = (part.to(known.module.int64).contiguous() for part in (x.crow_indices(), x.col_indices()))
    values = x.values().contiguous()
    device = x.get_device()
    return PlacedRows(x, name, known.codes.get(values.dtype), x.shape, (offsets, indices, values),
                      (offsets.data_ptr(), indices.data_ptr(), values.data_ptr()), device, known.stream(device) or _LEGACY,
                      known)


class _CuPy:
    """What a call asks of CuPy for arrays of one GPU."""

    def __init__(self, cupy: Any, device: int):
        self.module, self.device = cupy, device
        self.stream: int = cupy.cuda.get_current_stream(device).ptr or _LEGACY

    def empty(self, x: Placed, shape: tuple[int, int], code: int) -> Placed:
        cupy, dtype = self.module, np.float64 if code == _abi.GNOMON_F64 else np.float32
        if cupy.cuda.runtime.getDevice() == self.device:  # to enter and leave it takes microseconds
            made = cupy.empty(shape, dtype)
        else:
            with cupy.cuda.Device(self.device):
                made = cupy.empty(shape, dtype)
        return Placed(made, "out", made.data.ptr, code, shape, (shape[1], 1), self.device, self.stream, self)

    def bring(self, x: Placed, host: np.ndarray) -> Any:
        with self.module.cuda.Device(self.device):
            return self.module.asarray(host)


def _cupy(x: Any, name: str, cupy: Any) -> Placed:
    """Of CuPy's own array, whose members tell in a third of the time what its __cuda_array_interface__ does."""
    data, size, typestr = x.data, x.itemsize, x.dtype.str
    code = _TYPESTR.get(typestr[1:])
    if code is None or typestr[0] == ">":
        raise _wrong_type(name, typestr)
    strides = x.strides
    if any(one % size for one in strides) or data.ptr % size:
        raise ValueError(f"{name} is not aligned to its elements")
    known = _CuPy(cupy, data.device_id)
    return Placed(x, name, data.ptr, code, x.shape, [one // size for one in strides], known.device, known.stream, known)


def _cupy_rows(x: Any, name: str) -> PlacedRows:
    if getattr(x, "format", None) != "csr":
        raise TypeError(f"{name} is sparse, of CuPy's format {getattr(x, 'format', '?')}; on a GPU it must be csr: give "
                        f"{name}.tocsr()")
    known = _CuPy(sys.modules["cupy"], x.data.data.device_id)
    with known.module.cuda.Device(known.device):
        offsets, indices = (known.module.ascontiguousarray(part, np.int64) for part in (x.indptr, x.indices))
        values = known.module.ascontiguousarray(x.data)
    return PlacedRows(x, name, _TYPESTR.get(values.dtype.str[1:]), x.shape, (offsets, indices, values),
                      (offsets.data.ptr, indices.data.ptr, values.data.ptr), known.device, known.stream, known)


def _torch(x: Any, name: str, torch: Any, rows: bool) -> Placed:
    global _known
    known = _known
    if known is None or known.module is not torch:
        known = _known = _Torch(torch)
    if x.requires_grad:
        raise ValueError(f"{name} requires a gradient, which no call here passes on: give {name}.detach()")
    if rows and x.layout is torch.sparse_csr:
        return _torch_rows(x, name, known)
    if x.layout is not known.strided:
        raise TypeError(f"{name} is a tensor of layout {x.layout}; on a GPU it must be dense")
    code = known.codes.get(x.dtype)
    if code is None:
        raise ValueError(f"{name} has dtype {x.dtype}; it must be a real floating point or integer type")
    device = x.get_device()
    return Placed(x, name, x.data_ptr(), code, x.shape, x.stride(), device, known.stream(device) or _LEGACY, known)


def _wrong_type(name: str, typestr: str) -> ValueError:
    return ValueError(f"{name} has dtype {typestr!r}; it must be a real floating point or integer type of this machine's "
                      "byte order")


def _interface(x: Any, name: str) -> Placed:
    described = x.__cuda_array_interface__
    try:
        shape, typestr, (address, readonly) = described["shape"], described["typestr"], described["data"]
        strides, stream = described.get("strides"), described.get("stream")
        shape = tuple(int(n) for n in shape)
        size = int(typestr[2:])
        if strides is None:
            strides, step = [0] * len(shape), size
            for axis in range(len(shape) - 1, -1, -1):
                strides[axis] = step
                step *= shape[axis]
        if described.get("mask") is not None:
            raise ValueError("masked arrays are not taken")
        strides = [int(one) for one in strides]
        address = int(address or 0)
        stream = None if stream is None else int(stream)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: its __cuda_array_interface__ can't be read: {error}") from None
    if typestr[0] == ">" or typestr[1:] not in _TYPESTR:
        raise _wrong_type(name, typestr)
    if any(one % size for one in strides) or address % size:
        raise ValueError(f"{name} is not aligned to its elements")
    device = int(getattr(getattr(x, "device", None), "id", None) or 0)
    return Placed(x, name, address, _TYPESTR[typestr[1:]], shape, [one // size for one in strides], device, stream, None,
                  not readonly)


class _DLTensor(ctypes.Structure):
    """As dlpack.h has it since its first version."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _dlpack(x: Any, name: str, device: int) -> Placed:
    """The capsule stays with the view: while nobody has taken it, its own end frees what it holds.

    Without a stream the library's is in turn with the legacy default stream, and a call ends when its work is done: the
    capsule may go then.
    """
    try:
        capsule = x.__dlpack__(stream=_LEGACY)  # the producer makes that stream wait for its work
        tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DeviceError(f"{name} lies in the memory of cuda:{device}, and its library does not show it: {error}") from None
    code = _DLPACK.get((tensor.code, tensor.bits))
    if code is None or tensor.lanes != 1:
        raise ValueError(f"{name} has DLPack's type {tensor.code} of {tensor.bits} bits; it must be a real floating point "
                         "or integer type")
    shape = tensor.shape[:tensor.ndim]
    if tensor.strides:
        strides = tensor.strides[:tensor.ndim]
    else:
        strides = [1] * tensor.ndim
        for axis in range(tensor.ndim - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    return Placed((x, capsule), name, (tensor.data or 0) + tensor.byte_offset, code, shape, strides, device, None, None)


def placed(x: Any, name: str, rows: bool = False) -> Optional[Placed]:
    """The view of an array in a GPU's memory, with ``rows`` also of sparse rows there; None for anything else."""
    torch: Any = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())  # absent while PyTorch is being imported
    if isinstance(x, tensor):
        return _torch(x, name, torch, rows) if x.is_cuda else None
    if isinstance(x, type) or isinstance(x, np.ndarray):
        return None
    cupy: Any = sys.modules.get("cupy")
    theirs: Any = getattr(cupy, "ndarray", ())
    if isinstance(x, theirs):
        return _cupy(x, name, cupy)
    if hasattr(x, "__cuda_array_interface__"):
        return _interface(x, name)
    if type(x).__module__.startswith("cupyx.scipy.sparse"):
        if rows:
            return _cupy_rows(x, name)
        raise TypeError(f"{name} is sparse; on a GPU it must be dense")
    kind, device = dlpack_device(x)
    return _dlpack(x, name, device) if kind in _CUDA_KINDS else None


def dlpack_device(x: Any) -> tuple[Optional[int], int]:
    """DLPack's kind of memory that x lies in and the number there; None for the kind where x does not tell.

    pyarrow's arrays have the method and raise for all but plain numbers.
    """
    ask = getattr(x, "__dlpack_device__", None)
    if ask is None:
        return None, 0
    try:
        kind, device = ask()
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None, 0
    return kind, device


def place(device: Optional[str], configured: str, *arrays: Any) -> tuple[Optional[str], Optional[int]]:
    """The device of a call on these arrays, and the stream that it works on.

    Where an array lies in a GPU's memory the call runs there, or on several GPUs of which that is the first; a call that
    was to run elsewhere, and arrays of two GPUs, are errors.
    """
    index: Optional[int] = None
    stream: Optional[int] = None
    two = False
    for x in arrays:
        if not isinstance(x, Placed):
            continue
        if index is None:
            index = x.device
        elif x.device != index:
            raise DeviceError(f"arrays lie on two GPUs, cuda:{index} and cuda:{x.device}; they must lie on one")
        if stream is None:
            stream = x.stream
        elif x.stream is not None and x.stream != stream:
            two = True
    if index is None:
        return device, None
    there = f"cuda:{index}"
    wanted = device if device is not None else configured
    several = wanted if wanted == "auto:all" or wanted == "cuda:all" or wanted.startswith("cuda:") and "," in wanted else None
    if several is not None:
        first = 0 if several.endswith(":all") else several[5:].split(",")[0]
        if first != index and first != str(index):
            raise DeviceError(f"an array lies in the memory of {there}, but the first GPU of {wanted} is cuda:{first}")
        there = several
    elif wanted != "auto" and wanted != "cuda" and wanted != there:
        raise DeviceError(f"an array lies in the memory of {there}, but the call was to run on {wanted}")
    if two:
        raise DeviceError(f"arrays belong to different streams of {there}: make one of them wait for the other, and "
                          "give arrays of one library")
    return there, stream
