"""Applying operators to points: all at once, or in pieces; and what that does to distances."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator as AnyIterator
from typing import Any, Iterator, NamedTuple, Optional, Union

import numpy as np

from . import _abi
from ._arrays import (ArrayLike, Dense, Points, Sparse, as_array, dense, float_dtype, integer, is_sparse, matrix, output,
                      output_beside, points, real)
from ._context import Context, Progress, at_death, call, call_on_two, configured_device, destroy, lease, owned_context
from ._device import Placed, PlacedRows, place, placed
from ._errors import DeviceError
from ._library import lib
from ._operator import Operator

_NAMES = {"x": "X", "y": "out", "op": "operator"}
_ADJOINT_NAMES = {"y": "Y", "x": "out"}
_BOUNDS = {"achlioptas": _abi.GNOMON_BOUND_ACHLIOPTAS, "gaussian-exact": _abi.GNOMON_BOUND_GAUSSIAN_EXACT,
           "dasgupta-gupta": _abi.GNOMON_BOUND_DASGUPTA_GUPTA}


def min_dim(n_samples: int, eps: float = 0.1, *, bound: str = "dasgupta-gupta", delta: Optional[float] = None) -> int:
    """The smallest number of components that a bound requires for every pair's squared distance to stay within
    1 - eps and 1 + eps.

    Parameters
    ----------
    n_samples : int
        Points, at least 2.
    eps : float
        Above 0 and below 1.
    bound : {"dasgupta-gupta", "achlioptas", "gaussian-exact"}
        ``"dasgupta-gupta"`` (default) is scikit-learn's ``johnson_lindenstrauss_min_dim``, here rounded up.
        ``"gaussian-exact"`` is the smallest number for Gaussian operators by the chi-square law.
    delta : float, optional
        The probability of failure that is allowed, default 0.05; not for ``"dasgupta-gupta"``.

    Returns
    -------
    int

    Examples
    --------
    >>> import gnomon
    >>> gnomon.min_dim(1000, 0.1)
    5921
    >>> gnomon.min_dim(1000, 0.1, bound="gaussian-exact")
    5806
    """
    if bound not in _BOUNDS:
        raise ValueError(f"bound is {bound!r}; it must be one of {', '.join(map(repr, _BOUNDS))}")
    k = ctypes.c_int64()
    with lease({"points": "n_samples"}) as ctx:
        ctx.call(lib.gnomon_dim, _BOUNDS[bound], integer(n_samples, "n_samples"), real(eps, "eps"), 0.0,
                 0.0 if delta is None else real(delta, "delta"), None, ctypes.byref(k))
    return k.value


def _options(**members: Any) -> _abi.gnomon_sketch_options:
    options = _abi.gnomon_sketch_options()
    lib.gnomon_sketch_options_init(ctypes.byref(options), ctypes.sizeof(options))
    for name, value in members.items():
        setattr(options, name, value)
    return options


_FINITE = _options()
_ANY = _options(allow_nonfinite=1)
_placed_options: dict[tuple[bool, Optional[int], bool], Any] = {}


def _options_on(stream: Optional[int], allow_nonfinite: bool, rows: bool = False) -> Any:
    """Options of a call on this stream, made once: calls only read them, so that several may at a time."""
    known = _placed_options.get((allow_nonfinite, stream, rows))
    if known is None:
        if len(_placed_options) >= 64:  # of a program that makes ever new streams
            _placed_options.clear()
        known = ctypes.byref(_options(allow_nonfinite=int(allow_nonfinite), device_stream=stream,
                                      csr_memory=_abi.GNOMON_DEVICE_MEMORY if rows else _abi.GNOMON_HOST))
        _placed_options[allow_nonfinite, stream, rows] = known
    return known


def apply(op: Operator, x: Union[Points, Placed], out: Any, dtype: Any, allow_nonfinite: bool = False,
          n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None) -> Any:
    """X S^T of checked points."""
    if isinstance(x, Placed) or (out is not None and not isinstance(out, np.ndarray)):
        return _apply_there(op, x, out, dtype, allow_nonfinite, n_jobs, device, progress)
    y = output(out, (x.shape[0], op.shape[0]), float_dtype(dtype, x.double), (x,))
    function = lib.gnomon_sketch
    if isinstance(x, Sparse):
        function = lib.gnomon_sketch_coo if x.coo else lib.gnomon_sketch_csr
    call(_NAMES, n_jobs, device, progress, function, op.handle, ctypes.byref(x.view), ctypes.byref(y.view),
         ctypes.byref(_ANY if allow_nonfinite else _FINITE))
    return y.array if out is None else out


def _apply_there(op: Operator, x: Union[Points, Placed], out: Any, dtype: Any, allow_nonfinite: bool,
                 n_jobs: Optional[int], device: Optional[str], progress: Progress) -> Any:
    """The same where points or output lie in a GPU's memory: there, on the stream that the caller works on."""
    if isinstance(x, Sparse) and x.coo:
        raise DeviceError("X has the format coo, which is projected on the CPU, and out lies elsewhere: give X.tocsr()")
    y = output_beside(out, (x.shape[0], op.shape[0]), float_dtype(dtype, x.double), (x,))
    device, stream = place(device, configured_device(), x, y)
    if isinstance(x, Placed) and isinstance(y, Placed) and not x.sparse:
        call_on_two(_NAMES, n_jobs, device, progress, lib.gnomon_sketch, op.handle, x.numbers, y.numbers,
                    _options_on(stream, bool(allow_nonfinite)))
    else:
        call(_NAMES, n_jobs, device, progress, lib.gnomon_sketch_csr if x.sparse else lib.gnomon_sketch, op.handle,
             ctypes.byref(x.view), ctypes.byref(y.view), _options_on(stream, bool(allow_nonfinite), isinstance(x, PlacedRows)))
    return y.array if out is None else out


def sketch(X: ArrayLike, n_components: Union[int, str, Operator], *, kind: str = "rademacher", random_state: Any = 0,
           eps: float = 0.1, out: Any = None, dtype: Any = None, allow_nonfinite: bool = False,
           n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None,
           **parameters: Any) -> Any:
    """Projects points by a random operator: ``Y = X @ S.T``. The operator is never stored.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or iterator of them
        Points of any numeric type and any strides; they are not copied. Of an iterator of pieces (rows, all of as many
        features) the result is an iterator of their sketches, with the bits of one call. Arrays in a GPU's memory
        (PyTorch's, also sparse ones of its layout ``sparse_csr``; CuPy's, also its CSR matrices; those of
        ``__cuda_array_interface__`` and DLPack) stay there, and so does the sketch, an array of the same library; the work
        is done on that library's current stream.
    n_components : int, "auto" or Operator
        ``"auto"``: as many as `min_dim` asks for at ``eps``. An operator is applied as it is.
    kind : str
        Of operator, one of `kinds`.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        The operator's seed, default 0; None: a fresh one.
    eps : float
        For ``"auto"``.
    out : ndarray of shape (n_samples, n_components), optional
        Where the sketch goes: float32 or float64, of any strides. It may lie in a GPU's memory.
    dtype : {float32, float64}, optional
        Of the sketch. Default: float64 for float64 and for integers of 32 and 64 bits, else float32.
    allow_nonfinite : bool
        NaN and infinity pass; otherwise they are an error that names row and column. For arrays in a GPU's memory the call
        then returns once the work is enqueued.
    n_jobs, device, progress
        As for `set_config`.
    **parameters
        Of the operator: see `Operator`.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        The same bits for any number of threads, memory limit, layout and instruction set.

    Raises
    ------
    ValueError
        For shapes, types and parameters that don't fit, NaN and infinity.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5000))
    >>> Y = gnomon.sketch(X, 256, kind="sjlt", random_state=1)
    >>> Y.shape
    (100, 256)
    >>> ratio = (Y ** 2).sum(1) / (X ** 2).sum(1)
    >>> bool(abs(ratio.mean() - 1) < 0.05)
    True
    """
    x: Union[Points, Placed, None]
    if type(X) is np.ndarray:
        x = Dense(X, "X")
    else:
        x = placed(X, "X", rows=True)  # first, because a tensor takes a microsecond to say that it lacks an attribute
        if x is None and isinstance(X, AnyIterator):
            if out is not None:
                raise ValueError("out is given, but X is an iterator of pieces")
            return _sketch_pieces(X, n_components, kind, random_state, eps, dtype, allow_nonfinite, n_jobs, device,
                                  progress, parameters)
        if x is None:
            x = Sparse(X, "X", coo=True) if is_sparse(X) else points(X, "X")
    op = _operator_for(x, n_components, kind, random_state, eps, parameters)
    return apply(op, x, out, dtype, allow_nonfinite, n_jobs, device, progress)


def _operator_for(x: Union[Points, Placed], n_components: Any, kind: str, random_state: Any, eps: float,
                  parameters: dict[str, Any]) -> Operator:
    if isinstance(n_components, Operator):
        if parameters:
            raise ValueError(f"{next(iter(parameters))} is given, but n_components is an operator")
        return n_components
    if isinstance(n_components, str):
        if n_components != "auto":
            raise ValueError(f"n_components is {n_components!r}; it must be an int, 'auto' or an Operator")
        n_components = min_dim(x.shape[0], eps)
        if n_components > x.shape[1]:
            raise ValueError(f"n_components: eps={eps} and n_samples={x.shape[0]} ask for {n_components} components, "
                             f"more than n_features={x.shape[1]}")
    return Operator(n_components, x.shape[1], kind=kind, random_state=random_state, **parameters)


def _sketch_pieces(pieces: Iterator[Any], n_components: Any, kind: str, random_state: Any, eps: float, dtype: Any,
                   allow_nonfinite: bool, n_jobs: Optional[int], device: Optional[str], progress: Progress,
                   parameters: dict[str, Any]) -> Iterator[np.ndarray]:
    op: Optional[Operator] = n_components if isinstance(n_components, Operator) else None
    if isinstance(n_components, str):
        raise ValueError(f"n_components is {n_components!r}; for an iterator of pieces, whose number of points is not "
                         "known, it must be an int or an Operator")
    for piece in pieces:
        x = points(piece, "X")
        if op is None:
            op = _operator_for(x, n_components, kind, random_state, eps, parameters)
        yield apply(op, x, None, dtype, allow_nonfinite, n_jobs, device, progress)


def adjoint(Y: ArrayLike, operator: Operator, *, out: Any = None, dtype: Any = None,
            n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None) -> Any:
    """The transpose applied to sketches: ``X = Y @ S``.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        As for `sketch`, also in a GPU's memory.
    operator : Operator of shape (n_components, n_features)
    out : ndarray of shape (n_samples, n_features), optional
    dtype : {float32, float64}, optional
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> S = gnomon.operator(8, 50)
    >>> gnomon.adjoint(np.eye(8, dtype=np.float32), S).shape
    (8, 50)
    """
    if not isinstance(operator, Operator):
        raise TypeError(f"operator must be an Operator, not {type(operator).__name__}")
    y = matrix(Y, "Y")
    x = output_beside(out, (y.shape[0], operator.shape[1]), float_dtype(dtype, y.double), (y,))
    device, stream = place(device, configured_device(), y, x)
    options = ctypes.byref(_FINITE) if stream is None else _options_on(stream, False)
    call(_ADJOINT_NAMES, n_jobs, device, progress, lib.gnomon_adjoint, operator.handle, ctypes.byref(y.view),
         ctypes.byref(x.view), options)
    return x.array if out is None else out


class Sketcher:
    """A sketch of data that come in pieces.

    With ``axis=1`` the pieces are columns of the points, X = [X_1, X_2, ...], and the sketch is ``X @ S.T``; with
    ``axis=0`` they are rows of a matrix A, and the sketch is ``S @ A``, whose operator has as many columns as A has rows.

    Parameters
    ----------
    operator : Operator
    axis : {1, 0}
    dtype : {float32, float64}, optional
        Of the arithmetic and the result. Default: that of `sketch` for the first piece.
    mergeable : bool
        False (default): pieces come in order and without gaps, and the result has the bits of one call on the whole.
        True: partial sketches add up in float64. Pieces may come in any order (``start``), and sketchers of different
        pieces, in other processes say, are put together by `merge`; the rounding depends on the pieces.
    allow_nonfinite : bool
        NaN and infinity pass.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20, 300)).astype(np.float32)
    >>> S = gnomon.operator(16, 300)
    >>> pieces = gnomon.Sketcher(S)
    >>> for at in range(0, 300, 100):
    ...     pieces.push(X[:, at:at + 100])
    >>> bool((pieces.finish() == gnomon.sketch(X, S)).all())
    True
    """

    def __init__(self, operator: Operator, *, axis: int = 1, dtype: Any = None, mergeable: bool = False,
                 allow_nonfinite: bool = False):
        if not isinstance(operator, Operator):
            raise TypeError(f"operator must be an Operator, not {type(operator).__name__}")
        if axis not in (0, 1):
            raise ValueError(f"axis is {axis!r}; it must be 0 or 1")
        self.operator, self.axis, self.mergeable = operator, axis, bool(mergeable)
        self.allow_nonfinite = bool(allow_nonfinite)
        self.dtype: Optional[np.dtype] = None if dtype is None else float_dtype(dtype, False)
        self.seen = 0
        self._partial: Optional[np.ndarray] = None
        self._stream: Optional[ctypes.c_void_p] = None
        self._finished = False

    def push(self, piece: ArrayLike, start: Optional[int] = None) -> None:
        """Takes the next piece.

        Parameters
        ----------
        piece : array-like of shape (n_samples, w), or (w, n_columns) with axis=0
        start : int, optional
            Mergeable: the first of the operator's columns that the piece meets. Default: where the last piece ended.
        """
        if self._finished:
            raise ValueError("the sketch is finished")
        x = dense(as_array(piece, "piece").T if self.axis == 0 and not isinstance(piece, np.ndarray)
                  else (piece.T if self.axis == 0 else piece), "piece")
        begin = self.seen if start is None else integer(start, "start", 0, self.operator.shape[1])
        if begin + x.shape[1] > self.operator.shape[1]:
            raise ValueError(f"piece: it ends at {begin + x.shape[1]}, beyond the operator's {self.operator.shape[1]} "
                             "columns")
        if self.dtype is None:
            self.dtype = float_dtype(None, x.double)
        if self.mergeable:
            self._add(x, begin)
        elif start is not None and start != self.seen:
            raise ValueError(f"start is {start}; pieces must come in order, the next at {self.seen}, unless the sketcher "
                             "is mergeable")
        else:
            self._push(x)
        self.seen = begin + x.shape[1]

    def _add(self, x: Dense, begin: int) -> None:
        shape = (x.shape[0], self.operator.shape[0])
        if self._partial is None:
            self._partial = np.zeros(shape)
        elif self._partial.shape != shape:
            raise ValueError(f"piece has {x.shape[0]} points; those before have {self._partial.shape[0]}")
        options = _options(col=begin, beta=1.0, allow_nonfinite=int(self.allow_nonfinite))
        total = self._partial.copy()
        y = Dense(total, "out")
        with lease({"x": "piece"}) as ctx:
            ctx.call(lib.gnomon_sketch, self.operator.handle, ctypes.byref(x.view), ctypes.byref(y.view),
                     ctypes.byref(options))
        self._partial = total

    def _push(self, x: Dense) -> None:
        if self._stream is None:
            self._context = owned_context()
            self._rows = x.shape[0]
            stream = ctypes.c_void_p()
            status = lib.gnomon_stream_create(
                self._context.handle, self.operator.handle, x.shape[0],
                _abi.GNOMON_F64 if self.dtype == np.float64 else _abi.GNOMON_F32,
                ctypes.byref(_ANY if self.allow_nonfinite else _FINITE), ctypes.byref(stream))
            if status:
                self._context.fail(status, {})
            self._stream = stream
            at_death(self, destroy, lib.gnomon_stream_destroy, stream, self._context, self.operator)
        self._check(lib.gnomon_stream_push(self._stream, ctypes.byref(x.view)))

    def _check(self, status: int) -> None:
        if status or self._context.watch.error is not None:
            self._context.fail(status, {"piece": "piece"})

    def merge(self, other: "Sketcher") -> "Sketcher":
        """Adds another sketcher's pieces to this one's.

        Parameters
        ----------
        other : Sketcher
            Mergeable, of the same operator and axis, with other pieces.

        Returns
        -------
        Sketcher
            This one.
        """
        if not isinstance(other, Sketcher):
            raise TypeError(f"other must be a Sketcher, not {type(other).__name__}")
        if not (self.mergeable and other.mergeable):
            raise ValueError("other: both sketchers must have been made with mergeable=True")
        if self.operator != other.operator or self.axis != other.axis:
            raise ValueError("other is of another operator or axis")
        if other._partial is not None:
            if self._partial is None:
                self._partial, self.dtype = other._partial.copy(), self.dtype or other.dtype
            elif self._partial.shape != other._partial.shape:
                raise ValueError(f"other has {other._partial.shape[0]} points; this one has {self._partial.shape[0]}")
            else:
                self._partial = self._partial + other._partial
        self.seen = max(self.seen, other.seen)
        return self

    def finish(self) -> np.ndarray:
        """The sketch of all pieces.

        Returns
        -------
        ndarray of shape (n_samples, n_components), or (n_components, n_columns) with axis=0
        """
        if self._finished:
            raise ValueError("the sketch is finished")
        if self.mergeable:
            if self._partial is None:
                raise ValueError("there has been no piece")
            found = self._partial.astype(self.dtype)
        else:
            if self._stream is None:
                raise ValueError("there has been no piece")
            y = output(None, (self._rows, self.operator.shape[0]), self.dtype)
            self._check(lib.gnomon_stream_finish(self._stream, ctypes.byref(y.view)))
            found = y.array
            self._finished = True
        return found.T if self.axis == 0 else found

    def __getstate__(self) -> dict[str, Any]:
        if not self.mergeable:
            raise TypeError("a Sketcher can be pickled when it is made with mergeable=True")
        return self.__dict__.copy()


class Summary(NamedTuple):
    """Distortions of norms or of pairwise distances: ``|Sx|^2 / |x|^2 - 1``.

    ``quantiles`` maps percent to distortion; ``worst`` is the largest magnitude and ``worst_at`` where it is.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20, 400))
    >>> found = gnomon.distortion(X, 2 * X).norms
    >>> found.count, found.min, found.max
    (20, 3.0, 3.0)
    """

    count: int  # type: ignore[assignment]
    skipped: int
    mean: float
    variance: float
    min: float
    max: float
    worst: float
    mean_abs: float
    quantiles: dict[float, float]
    outside: float
    worst_at: tuple[int, ...]
    histogram: np.ndarray
    histogram_range: tuple[float, float]


_PERCENT = (0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9)


def _summary(d: _abi.gnomon_distortion) -> Summary:
    where = (d.worst_i,) if d.worst_j < 0 else (d.worst_i, d.worst_j)
    return Summary(d.count, d.skipped, d.mean, d.variance, d.min, d.max, d.worst, d.mean_abs,
                   dict(zip(_PERCENT, d.quantile)), d.outside, where, np.array(d.histogram[:], np.int64),
                   (d.histogram_low, d.histogram_high))


class Distortion(NamedTuple):
    """What a sketch did to norms and to pairwise distances.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20, 400))
    >>> found = gnomon.distortion(X, gnomon.sketch(X, 100))
    >>> found.norms.count, found.pairs.count, found.all_pairs
    (20, 190, True)
    """

    norms: Summary
    pairs: Summary
    all_pairs: bool
    eps: float

    def plot(self, ax: Any = None) -> Any:
        """Draws the histograms of both; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            import matplotlib.pyplot as plt
            ax = plt.gca()
        for name, one in (("norms", self.norms), ("pairs", self.pairs)):
            if one.count:
                edges = np.linspace(*one.histogram_range, len(one.histogram) + 1)
                ax.stairs(one.histogram / one.count, edges, label=name, fill=True, alpha=0.5)
        for edge in (-self.eps, self.eps):
            ax.axvline(edge, color="grey", linestyle=":")
        ax.set_xlabel("squared length of the sketch over the original's, less 1")
        ax.set_ylabel("share")
        ax.legend()
        return ax


def distortion(X: ArrayLike, Y: ArrayLike, *, eps: float = 0.1, max_pairs: int = 1000000, random_state: Any = 0,
               n_jobs: Optional[int] = None, progress: Progress = None) -> Distortion:
    """Compares points with their sketch: norms, and distances of all pairs or of a sample.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    Y : array-like of shape (n_samples, n_components)
    eps : float
        ``outside`` is the share of distortions above it in magnitude.
    max_pairs : int
        All pairs are measured when they are at most so many, else a sample of so many.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Of the sample.
    n_jobs, progress
        As for `set_config`.

    Returns
    -------
    Distortion

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 2000))
    >>> d = gnomon.distortion(X, gnomon.sketch(X, 500))
    >>> d.pairs.count, d.all_pairs
    (1225, True)
    >>> d.pairs.worst < 0.5
    True
    """
    from ._arrays import seed_of
    x, y = points(X, "X"), dense(Y, "Y")
    options = _abi.gnomon_distortion_options()
    lib.gnomon_distortion_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.eps, options.max_pairs = real(eps, "eps"), integer(max_pairs, "max_pairs")
    options.seed = seed_of(random_state)
    norms, pairs, whole = _abi.gnomon_distortion(), _abi.gnomon_distortion(), ctypes.c_int()
    function = lib.gnomon_measure_distortion_csr if x.sparse else lib.gnomon_measure_distortion
    with lease({"original": "X", "sketch": "Y"}, n_jobs, None, progress) as ctx:
        ctx.call(function, ctypes.byref(x.view), ctypes.byref(y.view), ctypes.byref(options), ctypes.byref(norms),
                 ctypes.byref(pairs), ctypes.byref(whole))
    return Distortion(_summary(norms), _summary(pairs), bool(whole.value), options.eps)
