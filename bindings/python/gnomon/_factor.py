"""Randomized factorisations, least squares and products of matrices."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator as AnyIterator
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _abi
from ._arrays import (ArrayLike, Dense, Result, _fit, _TYPES, address, anywhere, as_array, dense, float_dtype, integer,
                      is_sparse, matrix, output_beside, points, real, seed_of)
from ._context import Context, Progress, configured_device, guard, lease
from ._device import Placed, place
from ._library import lib
from ._operator import Operator, TransposedOperator, make_descriptor

_NAMES = {"a": "X", "options.rank": "n_components", "rank": "n_components", "options.oversample": "n_oversamples",
          "oversample": "n_oversamples", "options.power": "n_iter", "power": "n_iter", "x": "X",
          "options.tolerance": "tol", "tolerance": "tol", "options.seed": "random_state", "rows": "X"}


def svd_missing() -> Optional[str]:
    """Why factorisations and least squares can't be had; None when they can.

    Returns
    -------
    str or None

    Examples
    --------
    >>> import gnomon
    >>> gnomon.svd_missing()
    """
    reason = lib.gnomon_svd_missing()
    return None if reason is None else reason.decode()


def svd_blas() -> str:
    """Which BLAS factorisations use: its version, build, kernels and file.

    Returns
    -------
    str
        ``""`` when none was found.

    Examples
    --------
    >>> import gnomon
    >>> gnomon.svd_blas().startswith("OpenBLAS")
    True
    """
    about: bytes = lib.gnomon_svd_blas()
    return about.decode("utf-8", "replace")


def _dtype_code(dtype: Any) -> int:
    if dtype is None:
        return 0
    return _abi.GNOMON_F64 if float_dtype(dtype, False) == np.float64 else _abi.GNOMON_F32


def _descriptor(kind: Optional[str], random_state: int, parameters: dict[str, Any]) -> Any:
    if kind is None:
        if parameters:
            raise TypeError(f"unexpected argument {next(iter(parameters))!r}: kind must be given with an operator's "
                            "parameters")
        return None
    return ctypes.pointer(make_descriptor(kind, random_state, **parameters))


class Rows:
    """Rows that come in pieces, as the library reads them: from an iterable, or a callable that returns one.

    What can be gone through again, a list or a callable, can be gone back in; an iterator can't.
    """

    def __init__(self, pieces: Union[Iterable[Any], Callable[[], Iterable[Any]]], context: Context,
                 n_samples: Optional[int]):
        self._again = None if isinstance(pieces, AnyIterator) else (pieces if callable(pieces) else lambda: pieces)
        self._pieces: Iterator[Any] = iter(pieces() if callable(pieces) else pieces)
        self._piece: Optional[np.ndarray] = None
        first = self._next_piece()
        if first is None:
            raise ValueError("X is an iterable without pieces")
        self.cols, self.dtype = first.shape[1], first.dtype
        code = _fit(first[:0], "X")[1]
        self._callbacks = (guard(context.watch, _abi.gnomon_svd_rows_next_fn, self._next, 3,
                                 _abi.GNOMON_ERROR_CANCELLED),
                           guard(context.watch, _abi.gnomon_svd_rows_rewind_fn, self._rewind, 1,
                                 _abi.GNOMON_ERROR_CANCELLED))
        self.struct = _abi.gnomon_svd_rows(user=None, rows=-1 if n_samples is None else n_samples, cols=self.cols,
                                           dtype=code, next=self._callbacks[0])
        if self._again is not None:
            self.struct.rewind = self._callbacks[1]

    def _next_piece(self) -> Optional[np.ndarray]:
        """The rows that are left of the piece, or the next one."""
        while self._piece is None or len(self._piece) == 0:
            try:
                given = next(self._pieces)
            except StopIteration:
                return None
            if is_sparse(given):
                given = given.toarray()
            piece = dense(given, "X").array
            if hasattr(self, "cols") and piece.shape[1] != self.cols:
                raise ValueError(f"X: a piece has {piece.shape[1]} features; the first has {self.cols}")
            self._piece = piece
        return self._piece

    def _next(self, user: Any, dst: Any, got: Any) -> None:
        got[0] = 0
        view = dst.contents
        dtype = _TYPES[view.dtype]
        out = np.asarray(_Room(view.data, (view.rows, view.cols), dtype, view.row_stride))
        done = 0
        while done < view.rows:
            piece = self._next_piece()
            if piece is None:
                break
            count = min(view.rows - done, len(piece))
            out[done:done + count] = piece[:count]
            self._piece = piece[count:]
            done += count
        got[0] = done

    def _rewind(self, user: Any) -> None:
        assert self._again is not None
        self._pieces, self._piece = iter(self._again()), None


class _Room:
    def __init__(self, data: int, shape: tuple[int, int], dtype: np.dtype, row_stride: int):
        self.__array_interface__ = {"version": 3, "data": (data, False), "shape": shape, "typestr": dtype.str,
                                    "strides": (row_stride * dtype.itemsize, dtype.itemsize)}


def _comes_in_pieces(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and not is_sparse(X) and (callable(X) or isinstance(X, AnyIterator))


class Certificate(NamedTuple):
    """Bounds on E = X - U diag(s) Vt by fresh random vectors, none of which the factors depend on.

    ``residual_estimate`` estimates the Frobenius norm of E; it is below ``residual_bound``, and its spectral norm below
    ``spectral_bound``, but with probability ``failure`` each, for any X. The spectral norm is at least
    ``spectral_estimate``. ``residual`` is the measured Frobenius norm, NaN when it was not measured.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 40))
    >>> found = gnomon.svd(X, 10)
    >>> error = np.linalg.norm(X - found.U * found.s @ found.Vt)
    >>> bool(error <= found.certificate.residual_bound)
    True
    """

    residual_estimate: float
    residual_bound: float
    spectral_estimate: float
    spectral_bound: float
    failure: float
    residual: float


class SVD:
    """A factorisation ``X = U @ diag(s) @ Vt``: ``U, s, Vt = svd(...)``.

    Attributes
    ----------
    U : ndarray of shape (n_samples, n_components), or such an array on the GPU that X lies on
    s : ndarray of shape (n_components,), float64
        Singular values, falling.
    Vt : ndarray of shape (n_components, n_features), or such an array on the GPU that X lies on
        In each row the entry of largest magnitude is not negative.
    norm : float
        Frobenius norm of X (centred: of the centred X).
    certificate : Certificate
        Bounds on the error.
    converged : bool
        With a tolerance: whether it was met.
    converged_values : int or None
        How many leading singular values have converged to 1 %; None where that was not examined.
    passes : int
        How often all rows were gone through.
    mean, scale : ndarray of shape (n_features,) or None
        What was subtracted from each column, and what it was divided by.
    explained_variance : ndarray or None
        Centred: s**2 / (n_samples - 1).
    explained_variance_ratio : ndarray
        Of component i: s[i]**2 / norm**2.
    total_variance : float
    seconds : dict
        Where the time went.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> found = gnomon.svd(np.diag([3.0, 2.0, 1.0]), 2)
    >>> found.U.shape, np.round(found.s, 6).tolist(), found.Vt.shape
    ((3, 2), [3.0, 2.0], (2, 3))
    >>> np.round(found.explained_variance_ratio, 3).tolist()
    [0.643, 0.286]
    """

    def __init__(self, found: Any, result: Result, factors: Optional["_Factors"] = None):
        rank, cols = found.rank, found.cols
        self.U: Any
        self.Vt: Any
        self.U, self.Vt = factors.take(found, result) if factors is not None else (result.matrix(found.u),
                                                                                 result.matrix(found.vt))
        self.s = result.array(found.s, (rank,), np.float64)
        self.norm: float = found.norm
        self.certificate = Certificate(found.residual_estimate, found.residual_bound, found.spectral_estimate,
                                       found.spectral_bound, found.failure, found.residual)
        self.converged = bool(found.converged)
        self.converged_values: Optional[int] = None if found.converged_values < 0 else found.converged_values
        self.numerical_rank: int = found.numerical_rank
        self.passes: int = found.passes
        self.n_iter: int = found.power
        self.mean = result.array(found.mean, (cols,), np.float64) if found.mean else None
        self.scale = result.array(found.scale, (cols,), np.float64) if found.scale else None
        self.explained_variance = (result.array(found.explained_variance, (rank,), np.float64)
                                   if found.explained_variance else None)
        self.explained_variance_ratio = result.array(found.explained_ratio, (rank,), np.float64)
        self.total_variance: float = found.total_variance
        self.shape: tuple[int, int] = (found.rows, found.cols)
        self.seconds = {name: getattr(found, name + "_seconds")
                        for name in ("project", "power", "orthonormalise", "small", "certify")}

    def __iter__(self) -> Iterator[Any]:
        return iter((self.U, self.s, self.Vt))

    def __repr__(self) -> str:
        return f"<gnomon.SVD of rank {len(self.s)} of {self.shape[0]} x {self.shape[1]}>"

    def plot_spectrum(self, ax: Any = None) -> Any:
        """Draws the singular values over their numbers, with the bound on what is left; needs matplotlib.

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
        ax.semilogy(np.arange(1, len(self.s) + 1), self.s, marker=".", label="singular values")
        bound = self.certificate.spectral_bound
        if np.isfinite(bound) and bound > 0:
            ax.axhline(bound, color="grey", linestyle=":", label="the spectral norm of what is left is below")
        ax.set_xlabel("number")
        ax.set_ylabel("singular value")
        ax.legend()
        return ax


class _Factors:
    """U and Vt on the GPU that X lies on: written there where a largest rank is known, else brought there."""

    def __init__(self, x: Placed, options: Any):
        rank = options.rank
        self._x, self._room = x, None
        if x.maker is None or not 0 < rank <= min(x.shape):
            return
        code = options.dtype or (_abi.GNOMON_F64 if x.double else _abi.GNOMON_F32)
        self._room = [x.maker.empty(x, shape, code) for shape in ((x.shape[0], rank), (rank, x.shape[1]))]
        options.u, options.vt = (ctypes.pointer(one.view) for one in self._room)

    def take(self, found: Any, result: Result) -> tuple[Any, Any]:
        if self._room is not None:
            u, vt = (one.array for one in self._room)
            rank = found.rank
            return (u, vt) if rank == len(vt) else (u[:, :rank], vt[:rank])
        u, vt = result.matrix(found.u), result.matrix(found.vt)
        maker = self._x.maker
        return (u, vt) if maker is None else (maker.bring(self._x, u), maker.bring(self._x, vt))


def svd(X: Any, n_components: Optional[int] = None, *, n_oversamples: int = 10, n_iter: Union[int, str] = "auto",
        tol: float = 0.0, center: bool = False, standardize: bool = False, single_pass: bool = False,
        random_state: Any = 0, kind: Optional[str] = None, dtype: Any = None, n_test_vectors: int = 10,
        test_power: int = 1, measure: bool = False, n_samples: Optional[int] = None, n_jobs: Optional[int] = None,
        device: Optional[str] = None, progress: Progress = None, **parameters: Any) -> SVD:
    """The leading singular values and vectors of a dense, sparse or streamed matrix, with a certificate of the error.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or pieces of rows
        Pieces: a callable that returns an iterable of them each time it is called, or an iterator, which can be gone
        through once (``single_pass=True``). A dense matrix may lie in a GPU's memory, by PyTorch,
        ``__cuda_array_interface__`` or DLPack: it is factored there as it lies, behind what its stream has to do.
    n_components : int, optional
        How many. With ``tol`` at most so many, default no limit.
    n_oversamples : int
        Columns of the projection beyond n_components.
    n_iter : int or "auto"
        Power iterations, 0 to 100. ``"auto"``: 6, with ``tol`` 2.
    tol : float
        Above 0: the smallest rank found for which the Frobenius norm of what is left is at most tol times that of X.
    center, standardize : bool
        Factor X less the mean of each column; also divide each column by its standard deviation. No centred copy is
        made, and sparse X stays sparse.
    single_pass : bool
        Read every row once.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Of the operator and of the test vectors.
    kind : str, optional
        Of operator; default: gaussian, or sjlt where iterations do the work. ``**parameters`` are its.
    dtype : {float32, float64}, optional
        Of the work. Default: float64 for float64 and for integers of 32 and 64 bits, else float32.
    n_test_vectors, test_power : int
        Of the certificate: vectors (0: none), and pairs of passes beyond the first.
    measure : bool
        Also measure the residual, by one more pass.
    n_samples : int, optional
        Of pieces: how many rows there are in all, when that is known.
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    SVD
        Unpacks into U, s, Vt. U and Vt of a tensor of PyTorch or an array of CuPy on a GPU are such arrays there.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 80))
    >>> U, s, Vt = gnomon.svd(X, 5)
    >>> bool(np.allclose(U * s @ Vt, X))
    True
    """
    options = _abi.gnomon_svd_options()
    lib.gnomon_svd_options_init(ctypes.byref(options), ctypes.sizeof(options))
    if n_components is None and tol == 0:
        raise ValueError("n_components and tol: one of them must be given")
    seed = seed_of(random_state)
    options.rank = 0 if n_components is None else integer(n_components, "n_components", 1)
    options.oversample = integer(n_oversamples, "n_oversamples")
    if isinstance(n_iter, str):
        if n_iter != "auto":
            raise ValueError(f"n_iter is {n_iter!r}; it must be an int or 'auto'")
    else:
        options.power = integer(n_iter, "n_iter", 0, 100)
    options.tolerance = real(tol, "tol")
    options.center, options.standardize = int(bool(center)), int(bool(standardize))
    options.single_pass, options.measure = int(bool(single_pass)), int(bool(measure))
    options.dtype, options.seed = _dtype_code(dtype), seed
    options.test_vectors = integer(n_test_vectors, "n_test_vectors")
    options.test_power = integer(test_power, "test_power", 0, 100)
    descriptor = _descriptor(kind, seed, parameters)
    if descriptor is not None:
        options.descriptor = descriptor
    found = _abi.gnomon_svd(struct_size=ctypes.sizeof(_abi.gnomon_svd))
    x, factors = None if _comes_in_pieces(X) else anywhere(X, "X"), None
    if x is not None:
        device, options.device_stream = place(device, configured_device(), x)
        factors = _Factors(x, options) if isinstance(x, Placed) else None
    with lease(_NAMES, n_jobs, device, progress) as ctx:
        if x is None:
            rows = Rows(X, ctx.context, None if n_samples is None else integer(n_samples, "n_samples"))
            ctx.call(lib.gnomon_svd_stream, ctypes.byref(rows.struct), ctypes.byref(options), ctypes.byref(found))
        else:
            ctx.call(lib.gnomon_svd_csr if x.sparse else lib.gnomon_svd_dense, ctypes.byref(x.view),
                     ctypes.byref(options), ctypes.byref(found))
        return SVD(found, Result(ctx.context, lib.gnomon_svd_free, found), factors)


class Tucker:
    """A Tucker decomposition: ``core, factors = hosvd(...)``.

    Attributes
    ----------
    core : ndarray of shape ranks
    factors : list of ndarray, of shapes (size, rank)
        With orthonormal columns, one for each mode.
    values : list of ndarray
        For each mode the lengths of the core's slices, falling.
    norm, residual : float
        Frobenius norms of X and of X less its approximation.
    converged : bool
        With a tolerance: whether it was met.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> found = gnomon.hosvd(np.ones((2, 3, 4)), 1)
    >>> found.core.shape, round(found.norm, 3), found.residual < 1e-6
    ((1, 1, 1), 4.899, True)
    """

    def __init__(self, found: Any, result: Result):
        modes = found.modes
        core = found.core
        self.core = result.array(core.data, tuple(core.size[:modes]), _TYPES[core.dtype])
        self.factors = [result.matrix(found.factor[n]) for n in range(modes)]
        self.values = [result.array(found.values[n], (found.rank[n],), np.float64) for n in range(modes)]
        self.norm: float = found.norm
        self.residual: float = found.residual
        self.converged = bool(found.converged)
        self.passes: int = found.passes

    def __iter__(self) -> Iterator[Any]:
        return iter((self.core, self.factors))

    def reconstruct(self) -> np.ndarray:
        """The approximation of X.

        Returns
        -------
        ndarray
        """
        found = self.core
        for mode, factor in enumerate(self.factors):
            found = np.moveaxis(np.tensordot(factor, found, (1, mode)), 0, mode)
        return found

    def __repr__(self) -> str:
        return f"<gnomon.Tucker of ranks {' x '.join(map(str, self.core.shape))}>"


def hosvd(X: ArrayLike, ranks: Union[int, Sequence[int], None] = None, *, tol: float = 0.0, sequential: bool = False,
          n_oversamples: int = 10, n_iter: int = 1, random_state: Any = 0, kind: Optional[str] = None,
          dtype: Any = None, measure: bool = False, n_jobs: Optional[int] = None, device: Optional[str] = None,
          progress: Progress = None, **parameters: Any) -> Tucker:
    """Tucker decomposition of a tensor by randomized HOSVD: a core and one factor for each mode.

    Parameters
    ----------
    X : array-like of 1 to 16 dimensions
        Used where it lies when it has no gaps.
    ranks : int or sequence of int, optional
        One for each mode, or the same for all. With ``tol`` at most so many, default no limit.
    tol : float
        Above 0: ranks for which the Frobenius norm of what is left is at most tol times that of X.
    sequential : bool
        Project each mode of what the modes before it have left.
    n_oversamples, n_iter : int
        Columns of each mode's projection beyond its rank, and power iterations.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
    kind : str, optional
        Of operator, default gaussian; ``**parameters`` are its.
    dtype : {float32, float64}, optional
        Of the work.
    measure : bool
        Measure the residual even where the norms tell it.
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    Tucker
        Unpacks into core and factors.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> X = np.einsum("i,j,k->ijk", np.arange(4.0), np.arange(5.0), np.arange(6.0))
    >>> core, factors = gnomon.hosvd(X, 1)
    >>> core.shape, [f.shape for f in factors]
    ((1, 1, 1), [(4, 1), (5, 1), (6, 1)])
    """
    x, code = _fit(as_array(X, "X"), "X")
    if not 1 <= x.ndim <= _abi.GNOMON_TENSOR_MODES:
        raise ValueError(f"X has {x.ndim} dimensions; it must have 1 to {_abi.GNOMON_TENSOR_MODES}")
    tensor = _abi.gnomon_tensor(address(x), code, 0, x.ndim)
    tensor.size[:x.ndim] = x.shape
    tensor.stride[:x.ndim] = [stride // x.itemsize for stride in x.strides]
    options = _abi.gnomon_hosvd_options()
    lib.gnomon_hosvd_options_init(ctypes.byref(options), ctypes.sizeof(options))
    if ranks is None and tol == 0:
        raise ValueError("ranks and tol: one of them must be given")
    if ranks is not None:
        each: list[Any] = [ranks] * x.ndim if hasattr(ranks, "__index__") else list(ranks)  # type: ignore[arg-type]
        if len(each) != x.ndim:
            raise ValueError(f"ranks has {len(each)} elements; X has {x.ndim} dimensions")
        wanted = (ctypes.c_int64 * x.ndim)(*(integer(rank, "ranks", 1) for rank in each))
        options.ranks, options.rank_count = wanted, x.ndim
    seed = seed_of(random_state)
    options.tolerance, options.sequential = real(tol, "tol"), int(bool(sequential))
    options.oversample, options.power = integer(n_oversamples, "n_oversamples"), integer(n_iter, "n_iter", 0, 100)
    options.measure, options.dtype, options.seed = int(bool(measure)), _dtype_code(dtype), seed
    descriptor = _descriptor(kind, seed, parameters)
    if descriptor is not None:
        options.descriptor = descriptor
    found = _abi.gnomon_hosvd(struct_size=ctypes.sizeof(_abi.gnomon_hosvd))
    with lease(_NAMES, n_jobs, device, progress) as ctx:
        ctx.call(lib.gnomon_hosvd_dense, ctypes.byref(tensor), ctypes.byref(options), ctypes.byref(found))
        return Tucker(found, Result(ctx.context, lib.gnomon_hosvd_free, found))


class LeastSquares:
    """Solutions of a least squares problem, with bounds on their errors.

    Attributes
    ----------
    x : ndarray of shape (n_features,) or (n_features, n_targets)
    residual : ndarray of the shape of b, or None
        b - A x, with ``keep_residual``.
    targets : list of dict
        For each right-hand side: ``norm_b``, ``norm_x``, ``residual``, ``gradient``, ``backward_bound``,
        ``backward_error``, ``fit_bound``, ``suboptimality``, ``forward_bound``, ``sensitivity``, ``converged``.
    converged : bool
        Whether all are.
    rank : int
        How many singular values count.
    condition : float
        An estimate of A's condition.
    n_iter, passes : int
        Steps of conjugate gradients, and how often all rows were gone through.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> solved = gnomon.lstsq(A, [1.0, 2.0, 6.0])
    >>> np.round(solved.x, 6).tolist(), solved.rank, round(solved.targets[0]["residual"], 6)
    ([2.0, 3.0], 2, 1.732051)
    """

    def __init__(self, found: Any, result: Result, flat: bool):
        x = result.matrix(found.x)
        self.x = x.reshape(-1) if flat else x
        residual = result.matrix(found.residual) if found.residual.data else None
        self.residual = residual.reshape(-1) if flat and residual is not None else residual
        names = [field[0] for field in _abi.gnomon_lstsq_target._fields_]
        self.targets = [{name: getattr(found.target[i], name) for name in names} for i in range(found.targets)]
        for target in self.targets:
            target["converged"] = bool(target["converged"])
        self.converged = bool(found.converged)
        self.rank: int = found.rank
        self.norm: float = found.norm
        self.condition: float = found.condition
        self.n_iter: int = found.iterations
        self.passes: int = found.passes
        self.failure: float = found.failure

    def __repr__(self) -> str:
        return f"<gnomon.LeastSquares of x {self.x.shape}, {'' if self.converged else 'not '}converged>"


def lstsq(A: Any, b: ArrayLike, *, damp: float = 0.0, tol: float = 1e-15, max_iter: int = 200, rcond: float = 0.0,
          sketch_size: int = 0, kind: Optional[str] = None, random_state: Any = 0, n_test_vectors: int = 2,
          dtype: Any = None, keep_residual: bool = False, n_jobs: Optional[int] = None, progress: Progress = None,
          **parameters: Any) -> LeastSquares:
    """Linear least squares, preconditioned by a random sketch: the x that minimises |A x - b|^2 + damp^2 |x|^2.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (n_samples, n_features), or a callable that returns pieces of rows
    b : array-like of shape (n_samples,) or (n_samples, n_targets)
    damp : float
        Regularisation, at least 0.
    tol : float
        The backward error to be reached, relative to the Frobenius norm of A.
    max_iter : int
        Steps of conjugate gradients, at most.
    rcond : float
        Singular values up to this times the largest count as 0; 0: max(n_features, 16) * 2**-52.
    sketch_size : int
        Rows of the sketch; 0: chosen.
    kind : str, optional
        Of operator, default sjlt with 8 nonzeros; ``**parameters`` are its.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
    n_test_vectors : int
        By which the sketch's quality is measured; 0: no bounds.
    dtype : {float32, float64}, optional
        Of the solution, default float64. All arithmetic is in float64.
    keep_residual : bool
    n_jobs, progress
        As for `set_config`.

    Returns
    -------
    LeastSquares

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> solved = gnomon.lstsq(A, [1.0, 2.0, 3.0])
    >>> np.round(solved.x, 6).tolist(), solved.converged
    ([1.0, 2.0], True)
    """
    right = as_array(b, "b")
    flat = right.ndim == 1
    y = Dense(right[:, None] if flat else right, "b")
    options = _abi.gnomon_lstsq_options()
    lib.gnomon_lstsq_options_init(ctypes.byref(options), ctypes.sizeof(options))
    seed = seed_of(random_state)
    options.damp, options.tolerance, options.rcond = real(damp, "damp"), real(tol, "tol"), real(rcond, "rcond")
    options.iterations, options.sketch_size = integer(max_iter, "max_iter"), integer(sketch_size, "sketch_size")
    options.seed, options.dtype = seed, _dtype_code(dtype)
    options.test_vectors = integer(n_test_vectors, "n_test_vectors", 0, 100)
    options.keep_residual = int(bool(keep_residual))
    descriptor = _descriptor(kind, seed, parameters)
    if descriptor is not None:
        options.descriptor = descriptor
    found = _abi.gnomon_lstsq(struct_size=ctypes.sizeof(_abi.gnomon_lstsq))
    with lease({"a": "A", "options.tolerance": "tol", "options.iterations": "max_iter", "rows": "A"}, n_jobs, None,
               progress) as ctx:
        if _comes_in_pieces(A):
            if isinstance(A, AnyIterator):
                raise ValueError("A is an iterator, which can't be gone through again: give a callable that returns "
                                 "pieces")
            rows = Rows(A, ctx.context, y.shape[0])
            ctx.call(lib.gnomon_lstsq_stream, ctypes.byref(rows.struct), ctypes.byref(y.view), ctypes.byref(options),
                     ctypes.byref(found))
        else:
            a = points(A, "A")
            ctx.call(lib.gnomon_lstsq_csr if a.sparse else lib.gnomon_lstsq_dense, ctypes.byref(a.view),
                     ctypes.byref(y.view), ctypes.byref(options), ctypes.byref(found))
        return LeastSquares(found, Result(ctx.context, lib.gnomon_lstsq_free, found), flat)


def matmul(A: Any, B: Any, *, alpha: float = 1.0, beta: float = 0.0, out: Any = None,
           n_jobs: Optional[int] = None, device: Optional[str] = None, progress: Progress = None) -> Any:
    """A product of matrices in mixed precision, at single-precision accuracy, or with an operator as one factor.

    Parameters
    ----------
    A, B : array-like of float32 or float16, of shapes (m, k) and (k, n); or one of them an Operator or its ``T``
        In any combination of the two types, and of any strides. The other factor of an operator may be of any type.
        Arrays in a GPU's memory stay there, as for `sketch`; the call then returns once the work is enqueued.
    alpha, beta : float
        The result is alpha * A @ B + beta * out.
    out : ndarray of shape (m, n), float32 or float64, optional
    n_jobs, device, progress
        As for `set_config`.

    Returns
    -------
    ndarray of shape (m, n)
        float32, unless out is given. The same bits for any number of threads, layout and instruction set.

    Examples
    --------
    >>> import gnomon, numpy as np
    >>> A = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> gnomon.matmul(A, np.ones((3, 1), np.float16))
    array([[ 3.],
           [12.]], dtype=float32)
    """
    options = _abi.gnomon_gemm_options()
    lib.gnomon_gemm_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.alpha, options.beta = real(alpha, "alpha"), real(beta, "beta")
    if beta != 0 and out is None:
        raise ValueError("beta is given, but out is not")
    with_operator = [isinstance(x, (Operator, TransposedOperator)) for x in (A, B)]
    if all(with_operator):
        raise TypeError("A and B are both operators; one of them must be an array")
    if any(with_operator):
        left = with_operator[0]
        factor, x = (A, matrix(B, "B")) if left else (B, matrix(A, "A"))
        transposed = isinstance(factor, TransposedOperator)
        op = factor.T if isinstance(factor, TransposedOperator) else factor
        side = {(True, False): _abi.GNOMON_GEMM_S_LEFT, (True, True): _abi.GNOMON_GEMM_ST_LEFT,
                (False, False): _abi.GNOMON_GEMM_S_RIGHT, (False, True): _abi.GNOMON_GEMM_ST_RIGHT}[left, transposed]
        shape = (factor.shape[0], x.shape[1]) if left else (x.shape[0], factor.shape[1])
        if factor.shape[1 if left else 0] != x.shape[0 if left else 1]:
            raise ValueError(f"A and B have shapes {A.shape} and {B.shape}, which don't fit each other")
        c = output_beside(out, shape, float_dtype(None, x.double), (x,))
        device, options.device_stream = place(device, configured_device(), x, c)
        with lease({"c": "out"}, n_jobs, device, progress) as ctx:
            ctx.call(lib.gnomon_gemm_operator, op.handle, side, ctypes.byref(x.view), ctypes.byref(c.view),
                     ctypes.byref(options))
        return c.array if out is None else out
    a, b = matrix(A, "A"), matrix(B, "B")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"A and B have shapes {a.shape} and {b.shape}, which don't fit each other")
    c = output_beside(out, (a.shape[0], b.shape[1]), np.float32, (a, b))
    device, options.device_stream = place(device, configured_device(), a, b, c)
    with lease({"a": "A", "b": "B", "c": "out"}, n_jobs, device, progress) as ctx:
        ctx.call(lib.gnomon_gemm, ctypes.byref(a.view), ctypes.byref(b.view), ctypes.byref(c.view),
                 ctypes.byref(options))
    return c.array if out is None else out
