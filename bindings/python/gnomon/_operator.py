"""Random linear operators, each defined by a small descriptor."""
from __future__ import annotations

import ctypes
import json
from typing import Any, Optional, Union

import numpy as np

from . import _abi
from ._arrays import ArrayLike, Dense, Result, dense, float_dtype, integer, output, points, real, seed_of, view
from ._context import lease
from ._library import free_text, lib

_NAMES = {"k": "n_components", "d": "n_features", "seed": "random_state", "a": "the factor", "c": "the product",
          "descriptor.k": "n_components", "descriptor.d": "n_features"}
_SCALINGS = {"isometric": _abi.GNOMON_ISOMETRIC, "none": _abi.GNOMON_UNSCALED}
_PRECISIONS = {"fp32": _abi.GNOMON_F32, "float32": _abi.GNOMON_F32, "fp16": _abi.GNOMON_F16,
               "float16": _abi.GNOMON_F16}


def kinds() -> list[str]:
    """The names of the kinds of operator.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import gnomon
    >>> gnomon.kinds()[:2]
    ['gaussian', 'rademacher']
    """
    found, index = [], 0
    while lib.gnomon_kind_at(index):
        found.append(lib.gnomon_kind_at(index).contents.name.decode())
        index += 1
    return found


def _kind(name: Any, argument: str) -> int:
    if not isinstance(name, str):
        raise TypeError(f"{argument} must be a str, not {type(name).__name__}")
    number: int = lib.gnomon_kind_from_name(name.encode("utf-8", "replace"))
    if number == 0:
        raise ValueError(f"{argument} is {name!r}; it must be one of {', '.join(kinds())}")
    return number


def _choice(value: Any, argument: str, choices: dict[str, int]) -> int:
    if value not in choices:
        raise ValueError(f"{argument} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    return choices[value]


class Operator:
    """A random linear operator S of shape (n_components, n_features), which is never stored.

    An entry is a pure function of the parameters and its place: the same bits on every machine, in every version of the
    library. An operator can be indexed like an array, multiplied with ``@``, compared, hashed and pickled; its pickle is
    its descriptor, a small JSON text that the command reads and writes too (``--load-operator``).

    Parameters
    ----------
    n_components : int
        Rows k, from 1 to n_features.
    n_features : int
        Columns D, at most 2**56.
    kind : str
        One of `kinds`. Default ``"rademacher"``: random signs, for any points.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        The seed, from 0 to 2**64 - 1, default 0; None: a fresh one.
    inner : str, optional
        Block and kronecker: the kind that they are made of. Default ``"rademacher"``.
    precision : {"fp32", "fp16"}, optional
        Gaussian: of the entries. Default ``"fp32"``.
    scaling : {"isometric", "none"}, optional
        ``"isometric"`` (default): squared lengths are kept on average.
    density : float, optional
        Very-sparse: the probability of a nonzero, from 2**-30 to 1. Default 1 / sqrt(n_features).
    nonzeros : int, optional
        Sjlt and blockperm-sjlt: nonzeros in a column, or in each block's column.
    blocks, wiring : int, optional
        Block: the number of diagonal blocks. Blockperm-sjlt: blocks along each side, and how many blocks of rows each
        block of columns meets.
    zeta, width : int, optional
        Kronecker: by how much each level narrows, and the cascade's width.

    Attributes
    ----------
    shape : tuple of int
        (n_components, n_features).

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> S = gnomon.Operator(4, 1000, kind="sjlt", random_state=7)
    >>> S.shape
    (4, 1000)
    >>> S[2, 10:14].shape
    (4,)
    >>> Y = np.ones((3, 1000), np.float32) @ S.T
    >>> Y.shape, Y.dtype
    ((3, 4), dtype('float32'))
    """

    ndim = 2
    dtype = np.dtype(np.float32)
    __array_ufunc__ = None  # so that array @ operator comes here

    def __init__(self, n_components: int, n_features: int, *, kind: str = "rademacher", random_state: Any = 0,
                 inner: Optional[str] = None, precision: Optional[str] = None, scaling: Optional[str] = None,
                 density: Optional[float] = None, nonzeros: Optional[int] = None, blocks: Optional[int] = None,
                 zeta: Optional[int] = None, width: Optional[int] = None, wiring: Optional[int] = None):
        descriptor = make_descriptor(kind, random_state, inner=inner, precision=precision, scaling=scaling,
                                     density=density, nonzeros=nonzeros, blocks=blocks, zeta=zeta, width=width,
                                     wiring=wiring)
        descriptor.k = integer(n_components, "n_components", 1)
        descriptor.d = integer(n_features, "n_features", 1)
        self.handle = ctypes.c_void_p()
        with lease(_NAMES) as ctx:
            ctx.call(lib.gnomon_operator_create, ctypes.byref(descriptor), ctypes.byref(self.handle))
        self._describe()

    def _describe(self) -> None:
        self._descriptor = _abi.gnomon_descriptor(struct_size=ctypes.sizeof(_abi.gnomon_descriptor))
        lib.gnomon_operator_describe(self.handle, ctypes.byref(self._descriptor))
        self.shape: tuple[int, int] = (self._descriptor.k, self._descriptor.d)

    @classmethod
    def _adopt(cls, handle: ctypes.c_void_p) -> "Operator":
        self = cls.__new__(cls)
        self.handle = handle
        self._describe()
        return self

    @classmethod
    def from_json(cls, text: str) -> "Operator":
        """The operator of a descriptor, as `to_json` and ``gnomon project --save-operator`` write it.

        Parameters
        ----------
        text : str

        Returns
        -------
        Operator

        Examples
        --------
        >>> import gnomon
        >>> S = gnomon.Operator(4, 1000)
        >>> gnomon.Operator.from_json(S.to_json()) == S
        True
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, not {type(text).__name__}")
        data, handle = text.encode("utf-8", "surrogatepass"), ctypes.c_void_p()
        with lease(_NAMES) as ctx:
            ctx.call(lib.gnomon_operator_from_json, data, len(data), ctypes.byref(handle))
        return cls._adopt(handle)

    def to_json(self) -> str:
        """The descriptor as JSON, defaults filled in.

        Returns
        -------
        str
        """
        text = ctypes.c_void_p()
        with lease() as ctx:
            ctx.call(lib.gnomon_operator_to_json, self.handle, ctypes.byref(text))
        return free_text(text)

    @property
    def descriptor(self) -> dict[str, Any]:
        """The descriptor as a dict."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    @property
    def kind(self) -> str:
        """The kind's name."""
        name: bytes = lib.gnomon_kind_name(self._descriptor.kind)
        return name.decode()

    @property
    def random_state(self) -> int:
        """The seed."""
        seed: int = self._descriptor.seed
        return seed

    @property
    def fill(self) -> float:
        """Expected share of entries that are not zero."""
        fill: float = lib.gnomon_operator_fill(self.handle)
        return fill

    @property
    def T(self) -> "TransposedOperator":
        """The transpose, for products alone."""
        return TransposedOperator(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return (f"Operator({self.shape[0]}, {self.shape[1]}, kind={self.kind!r}, "
                f"random_state={self.random_state})")

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Operator) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _restore, (self.to_json(),)

    def __del__(self, destroy: Any = lib.gnomon_operator_destroy) -> None:
        handle = getattr(self, "handle", None)
        if handle is not None and handle.value:
            destroy(handle)

    def block(self, row: int, col: int, rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray:
        """The entries [row, row + rows) x [col, col + cols).

        Parameters
        ----------
        row, col, rows, cols : int
        dtype : {float32, float64}

        Returns
        -------
        ndarray of shape (rows, cols)
        """
        k, d = self.shape
        row, col = integer(row, "row", 0, k), integer(col, "col", 0, d)
        rows, cols = integer(rows, "rows", 0, k - row), integer(cols, "cols", 0, d - col)
        out = output(None, (rows, cols), float_dtype(dtype, False))
        with lease(_NAMES) as ctx:
            ctx.call(lib.gnomon_operator_block, self.handle, row, col, ctypes.byref(out.view))
        return out.array

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = keys[:at] + (slice(None),) * (3 - len(keys)) + keys[at + 1:]
        if len(keys) > 2:
            raise IndexError(f"too many indices: an operator has 2 dimensions, but {len(keys)} were given")
        keys += (slice(None),) * (2 - len(keys))
        spans: list[tuple[int, int]] = []
        inside: list[Any] = []
        for one, size in zip(keys, self.shape):
            if isinstance(one, slice):
                span = range(*one.indices(size))
                low, high = (min(span[0], span[-1]), max(span[0], span[-1]) + 1) if span else (0, 0)
                spans.append((low, high - low))
                inside.append(slice(None, None, span.step))
            elif hasattr(one, "__index__") and not isinstance(one, (bool, np.bool_)):
                number = one.__index__()
                if not -size <= number < size:
                    raise IndexError(f"index {number} is out of bounds for an axis of size {size}")
                spans.append((number % size, 1))
                inside.append(0)
            else:
                raise IndexError("an operator is indexed by integers and slices")
        return self.block(spans[0][0], spans[1][0], spans[0][1], spans[1][1])[inside[0], inside[1]]

    def toarray(self, dtype: Any = np.float32) -> np.ndarray:
        """All entries.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        ndarray of shape (n_components, n_features)
        """
        return self.block(0, 0, *self.shape, dtype=dtype)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an operator is not stored: it can't be an array without a copy")
        whole = self.toarray(np.float64 if dtype == np.float64 else np.float32)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def tocsr(self, dtype: Any = np.float32) -> Any:
        """The nonzero entries; needs SciPy.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_components, n_features)

        Examples
        --------
        >>> import gnomon
        >>> gnomon.Operator(8, 100, kind="sjlt", nonzeros=2).tocsr().nnz
        200
        """
        from scipy.sparse import csr_matrix
        code = _abi.GNOMON_F64 if float_dtype(dtype, False) == np.float64 else _abi.GNOMON_F32
        found = _abi.gnomon_csr()
        with lease(_NAMES) as ctx:
            ctx.call(lib.gnomon_operator_block_csr, self.handle, 0, 0, *self.shape, code, ctypes.byref(found))
            result = Result(ctx.context, lib.gnomon_csr_free, found)
        offsets = result.array(found.offsets, (found.rows + 1,), np.int64)
        entries = int(offsets[-1])
        return csr_matrix((result.array(found.values, (entries,), dtype),
                           result.array(found.indices, (entries,), np.int64), offsets), shape=self.shape)

    def _product(self, other: ArrayLike, side: int) -> np.ndarray:
        a = dense(other, "the factor")
        k, d = self.shape
        from_left = side in (_abi.GNOMON_GEMM_S_LEFT, _abi.GNOMON_GEMM_ST_LEFT)
        inner, outer = (d, k) if side in (_abi.GNOMON_GEMM_S_LEFT, _abi.GNOMON_GEMM_ST_RIGHT) else (k, d)
        if a.shape[0 if from_left else 1] != inner:
            raise ValueError(f"matmul: the factor has shape {a.shape}, which does not fit an operator of shape "
                             f"{self.shape}")
        shape = (outer, a.shape[1]) if from_left else (a.shape[0], outer)
        out = output(None, shape, float_dtype(None, a.double))
        with lease(_NAMES) as ctx:
            ctx.call(lib.gnomon_gemm_operator, self.handle, side, ctypes.byref(a.view), ctypes.byref(out.view), None)
        return out.array

    def _operand(self, other: Any, side: int) -> np.ndarray:
        x = np.asarray(other)
        if x.ndim != 1:
            return self._product(other, side)
        from_left = side in (_abi.GNOMON_GEMM_S_LEFT, _abi.GNOMON_GEMM_ST_LEFT)
        return self._product(x[:, None] if from_left else x[None, :], side).reshape(-1)

    def __matmul__(self, other: ArrayLike) -> np.ndarray:
        return self._operand(other, _abi.GNOMON_GEMM_S_LEFT)

    def __rmatmul__(self, other: ArrayLike) -> np.ndarray:
        return self._operand(other, _abi.GNOMON_GEMM_S_RIGHT)


def _restore(descriptor: str) -> Operator:
    """Of the module and not of the class: of a class's method cloudpickle takes apart the function and all that it names."""
    return Operator.from_json(descriptor)


class TransposedOperator:
    """The transpose of an operator, of shape (n_features, n_components), for products with ``@``."""

    ndim = 2
    __array_ufunc__ = None

    def __init__(self, operator: Operator):
        self.T = operator
        self.shape: tuple[int, int] = (operator.shape[1], operator.shape[0])

    def __repr__(self) -> str:
        return f"{self.T!r}.T"

    def __matmul__(self, other: ArrayLike) -> np.ndarray:
        return self.T._operand(other, _abi.GNOMON_GEMM_ST_LEFT)

    def __rmatmul__(self, other: ArrayLike) -> np.ndarray:
        return self.T._operand(other, _abi.GNOMON_GEMM_ST_RIGHT)


def make_descriptor(kind: str, random_state: Any, *, inner: Optional[str] = None, precision: Optional[str] = None,
                    scaling: Optional[str] = None, density: Optional[float] = None, nonzeros: Optional[int] = None,
                    blocks: Optional[int] = None, zeta: Optional[int] = None, width: Optional[int] = None,
                    wiring: Optional[int] = None) -> _abi.gnomon_descriptor:
    """A descriptor without k and d."""
    d = _abi.gnomon_descriptor()
    lib.gnomon_descriptor_init(ctypes.byref(d), ctypes.sizeof(d))
    d.kind = _kind(kind, "kind")
    d.seed = seed_of(random_state)
    if inner is not None:
        d.inner = _kind(inner, "inner")
    if precision is not None:
        d.precision = _choice(precision, "precision", _PRECISIONS)
    if scaling is not None:
        d.scaling = _choice(scaling, "scaling", _SCALINGS)
    if density is not None:
        d.density = real(density, "density")
    for name, value in (("nonzeros", nonzeros), ("blocks", blocks), ("zeta", zeta), ("width", width),
                        ("wiring", wiring)):
        if value is not None:
            setattr(d, name, integer(value, name, 1))
    return d


def operator(n_components: int, n_features: int, *, kind: str = "rademacher", random_state: Any = 0,
             **parameters: Any) -> Operator:
    """Makes an operator: see `Operator` for the parameters.

    Parameters
    ----------
    n_components, n_features : int
        Its shape.
    kind : str
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
    **parameters
        ``inner``, ``precision``, ``scaling``, ``density``, ``nonzeros``, ``blocks``, ``zeta``, ``width``, ``wiring``.

    Returns
    -------
    Operator

    Examples
    --------
    >>> import gnomon
    >>> gnomon.operator(16, 1000, kind="sjlt").fill
    0.25
    """
    return Operator(n_components, n_features, kind=kind, random_state=random_state, **parameters)
