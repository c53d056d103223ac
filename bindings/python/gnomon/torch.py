"""Projections of gradients for data attribution: the projectors of TRAK and dattri, and factored ones for linear layers.

`Projector` has their interface, ``project(grads, model_id)``; `BasicProjector` and `CudaProjector` also take their
constructors' arguments, `random_project` and `make_random_projector` those of dattri's functions. `LinearProjector`
projects a linear layer's gradients from its inputs and output gradients.
"""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np
import torch

from ._arrays import dense, integer, matrix
from ._context import config_context, configured_device, lease
from ._device import Placed, place
from ._errors import DeviceError
from ._library import lib
from ._operator import Operator
from ._sketch import Sketcher, _options, apply

__all__ = ["BasicProjector", "CudaProjector", "LinearProjector", "Projector", "make_random_projector", "random_project"]

Gradients = Union[torch.Tensor, Mapping[Any, torch.Tensor], Sequence[torch.Tensor]]
_ALIASES = {"normal": "gaussian"}
_WORD = (1 << 64) - 1


def _mixed(x: np.ndarray) -> np.ndarray:
    """Sixty-four bits of SplitMix64's finalizer for each: the same on every machine and in every version of NumPy."""
    mixed: np.ndarray = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _drawn(count: int, size: int, seed: int) -> np.ndarray:
    """So many different coordinates below size, ascending."""
    if 2 * count > size:
        left_out = np.ones(size, bool)
        left_out[_drawn(size - count, size, seed)] = False
        return np.flatnonzero(left_out)
    found, at = np.zeros(0, np.int64), 0
    start = _mixed(np.array([seed & _WORD], np.uint64))
    while len(found) < count:
        number = np.arange(at, at + 2 * (count - len(found)) + 16, dtype=np.uint64)
        at += len(number)
        more = (_mixed(start + (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) % np.uint64(size)).astype(np.int64)
        both = np.concatenate([found, more])
        found = both[np.sort(np.unique(both, return_index=True)[1])][:count]  # the first, in the order of drawing
    return np.sort(found)


def _coordinates(mask: Any, grad_dim: int, seed: int) -> Optional[np.ndarray]:
    if mask is None:
        return None
    if not isinstance(mask, (np.ndarray, torch.Tensor, list, tuple)):
        return _drawn(integer(mask, "mask", 1, grad_dim), grad_dim, seed)
    found = np.asarray(mask.detach().cpu() if isinstance(mask, torch.Tensor) else mask)
    if found.ndim != 1:
        raise ValueError(f"mask has {found.ndim} dimensions; it must have one")
    if found.dtype == np.bool_:
        if len(found) != grad_dim:
            raise ValueError(f"mask has {len(found)} elements; with {grad_dim} coordinates it must have as many")
        found = np.flatnonzero(found)
    elif found.dtype.kind not in "iu":
        raise ValueError(f"mask has dtype {found.dtype}; it must be of bool or integers")
    else:
        found = np.unique(found.astype(np.int64))
        if len(found) != len(mask):
            raise ValueError("mask names a coordinate twice")
    if not len(found) or found[0] < 0 or found[-1] >= grad_dim:
        raise ValueError(f"mask must name coordinates from 0 to {grad_dim - 1}, one at least")
    return found


class Projector:
    """Projects gradients, one a sample, by a random operator that is never stored.

    The operator is a function of the arguments alone: it is the same for any batch, device, machine and version.

    Parameters
    ----------
    grad_dim : int
        Coordinates of a gradient: the model's parameters.
    proj_dim : int
        Coordinates after projection, at most those that are projected.
    seed : int
        Each ``model_id`` gets an operator of its own: that of seed + model_id * 2**32.
    proj_type : str
        One of `gnomon.kinds`; also ``"normal"``, which is ``"gaussian"``.
    device : str or torch.device, optional
        Where gradients must lie. Default: the work is done where they lie.
    scaling : {"none", "isometric"}
        ``"none"`` (default) has TRAK's scale: signs are -1 and 1, normal entries have variance 1. ``"isometric"`` keeps
        squared lengths on average.
    mask : int, or array-like of bool or int, optional
        Project these coordinates alone: a number of them, drawn by the seed; or which. Isometric projections of drawn
        coordinates are scaled up by the square root of grad_dim over their number.
    dtype : torch.dtype, optional
        Of the result, any floating type. Default: float64 for float64, else float32. The arithmetic is in float32 at least.
    allow_nonfinite : bool
        True (default): NaN and infinity pass, and a call on a GPU returns once the work is enqueued. False: they are an
        error.
    **parameters
        Of the operator: see `gnomon.Operator`.

    Examples
    --------
    >>> import torch
    >>> from gnomon.torch import Projector
    >>> grads = {"weight": torch.ones(3, 20, 10), "bias": torch.ones(3, 20, dtype=torch.bfloat16)}
    >>> projector = Projector(220, 16, seed=1, proj_type="rademacher")
    >>> projector.project(grads, model_id=0).shape
    torch.Size([3, 16])
    """

    def __init__(self, grad_dim: int, proj_dim: int, seed: int = 0, proj_type: str = "rademacher", device: Any = None, *,
                 scaling: str = "none", mask: Any = None, dtype: Optional[torch.dtype] = None,
                 allow_nonfinite: bool = True, **parameters: Any):
        self.grad_dim, self.proj_dim = integer(grad_dim, "grad_dim", 1), integer(proj_dim, "proj_dim", 1)
        self.seed = integer(seed, "seed", 0, _WORD)
        name = getattr(proj_type, "value", proj_type)
        self.proj_type = proj_type
        self.device = None if device is None else torch.device(device)
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise ValueError(f"dtype is {dtype}; it must be a floating type of PyTorch's")
        self.dtype = dtype
        self.allow_nonfinite = bool(allow_nonfinite)
        self._kind = _ALIASES.get(name, name) if isinstance(name, str) else name
        self._parameters = {"scaling": scaling, **parameters}
        self._mask = _coordinates(mask, self.grad_dim, self.seed)
        drawn = self._mask is not None and not isinstance(mask, (np.ndarray, torch.Tensor, list, tuple))
        self._scale = (self.grad_dim / integer(mask, "mask")) ** 0.5 if drawn and scaling == "isometric" else 1.0
        self._operator: tuple[int, Optional[Operator]] = (-1, None)
        self._inside: dict[tuple[int, int, Any], torch.Tensor] = {}
        self.operator(0)  # what can't be made is refused now

    def operator(self, model_id: int = 0) -> Operator:
        """The operator of a model.

        Parameters
        ----------
        model_id : int

        Returns
        -------
        gnomon.Operator
            Of shape (proj_dim, grad_dim), or with a mask (proj_dim, as many as it chooses).
        """
        number = integer(model_id, "model_id")
        known, op = self._operator
        if op is None or known != number:
            width = self.grad_dim if self._mask is None else len(self._mask)
            op = Operator(self.proj_dim, width, kind=self._kind, random_state=(self.seed + (number << 32)) & _WORD,
                          **self._parameters)
            self._operator = (number, op)
        return op

    def _choose(self, piece: torch.Tensor, start: int) -> torch.Tensor:
        """The masked coordinates of a piece that begins at a coordinate."""
        if self._mask is None:
            return piece
        key = (start, piece.shape[1], piece.device)
        inside = self._inside.get(key)
        if inside is None:
            low, high = np.searchsorted(self._mask, (start, start + piece.shape[1]))
            inside = self._inside[key] = torch.from_numpy(self._mask[low:high] - start).to(piece.device)
        return piece.index_select(1, inside)

    def _pieces(self, grads: Gradients) -> list[torch.Tensor]:
        if isinstance(grads, torch.Tensor):
            given, names = [grads], ["grads"]
        elif isinstance(grads, Mapping):
            given, names = list(grads.values()), [f"grads[{key!r}]" for key in grads]
        elif isinstance(grads, (list, tuple)):
            given, names = list(grads), [f"grads[{i}]" for i in range(len(grads))]
        else:
            raise TypeError(f"grads must be a tensor, or a dict or list of them, not {type(grads).__name__}")
        pieces: list[torch.Tensor] = []
        start = 0
        for piece, name in zip(given, names):
            if not isinstance(piece, torch.Tensor):
                raise TypeError(f"{name} must be a tensor, not {type(piece).__name__}")
            if piece.requires_grad:
                raise ValueError(f"{name} requires a gradient, which projecting does not pass on: give it detached")
            if not piece.is_floating_point():
                raise ValueError(f"{name} has dtype {piece.dtype}; it must be of a floating type")
            if piece.ndim == 0 or (pieces and len(piece) != len(pieces[0])):
                raise ValueError(f"{name} has shape {tuple(piece.shape)}; the first dimension must be the samples")
            if piece.device != given[0].device:
                raise DeviceError(f"{name} lies on {piece.device}, others on {given[0].device}; they must lie on one")
            flat = piece.reshape(len(piece), piece[0].numel() if len(piece) else int(np.prod(piece.shape[1:])))
            pieces.append(self._choose(flat, start))
            start += flat.shape[1]
        if start != self.grad_dim:
            raise ValueError(f"grads have {start} coordinates; the projector is for {self.grad_dim}")
        device = given[0].device
        if device.type not in ("cpu", "cuda"):
            raise DeviceError(f"grads lie on {device}; they must lie on the CPU or a CUDA GPU")
        if self.device is not None and (device.type != self.device.type
                                        or (self.device.index is not None and device.index not in (None, self.device.index))):
            raise DeviceError(f"grads lie on {device}; the projector is for {self.device}")
        return [piece for piece in pieces if piece.shape[1]]

    def project(self, grads: Gradients, model_id: int = 0, *, ensemble_id: Optional[int] = None) -> torch.Tensor:
        """Projects a batch of gradients.

        Parameters
        ----------
        grads : tensor of shape (n, grad_dim), or dict or list of tensors of shapes (n, ...)
            Of a dict or list the coordinates follow each other, as if all were flattened and concatenated; no
            concatenation is made. Of float16, bfloat16, float32 or float64.
        model_id : int
        ensemble_id : int, optional
            dattri's name of model_id: where it is given, it counts.

        Returns
        -------
        torch.Tensor of shape (n, proj_dim)
            Where the gradients lie.
        """
        pieces = self._pieces(grads)
        op = self.operator(model_id if ensemble_id is None else ensemble_id)
        wide = torch.float64 if any(piece.dtype == torch.float64 for piece in pieces) else torch.float32
        if self.dtype == torch.float64:
            wide = torch.float64
        with torch.no_grad():
            y = self._on_cpu(pieces, op, wide) if pieces[0].device.type == "cpu" else self._on_gpu(pieces, op, wide)
            if self._scale != 1.0:
                y.mul_(self._scale)
            return y if self.dtype is None else y.to(self.dtype)

    __call__ = project

    def _on_cpu(self, pieces: list[torch.Tensor], op: Operator, wide: torch.dtype) -> torch.Tensor:
        """One call for one piece; else the pieces as columns of a stream, which has the bits of one call on the whole."""
        dtype = np.dtype(np.float64 if wide == torch.float64 else np.float32)
        if len(pieces) == 1:
            x = dense(pieces[0], "grads")
            return torch.from_numpy(apply(op, x, None, dtype, self.allow_nonfinite, device="cpu"))
        with config_context(device="cpu"):
            sketcher = Sketcher(op, dtype=dtype, allow_nonfinite=self.allow_nonfinite)
            for piece in pieces:
                sketcher.push(piece)
            return torch.from_numpy(sketcher.finish())

    def _on_gpu(self, pieces: list[torch.Tensor], op: Operator, wide: torch.dtype) -> torch.Tensor:
        """Partial sketches add up in the output. All is enqueued on the current stream."""
        y = torch.empty((len(pieces[0]), self.proj_dim), dtype=wide, device=pieces[0].device)
        target = matrix(y, "the result")
        device, stream = place(None, configured_device(), target)
        column = 0
        with lease({"x": "grads", "op": "operator"}, device=device) as ctx:
            for piece in pieces:
                x = matrix(piece, "grads")
                assert isinstance(x, Placed)
                options = _options(allow_nonfinite=int(self.allow_nonfinite), device_stream=stream,
                                   beta=1.0 if column else 0.0, col=column if len(pieces) > 1 else -1)
                ctx.call(lib.gnomon_sketch, op.handle, ctypes.byref(x.view), ctypes.byref(target.view),
                         ctypes.byref(options))
                column += piece.shape[1]
        return y

    def free_memory(self) -> None:
        """For the interface's sake: there is nothing to free but the mask's indices."""
        self._inside.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inside": {}}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.grad_dim}, {self.proj_dim}, seed={self.seed}, proj_type={self._kind!r})"


class BasicProjector(Projector):
    """`Projector` with the constructor of TRAK's and dattri's ``BasicProjector``.

    Parameters
    ----------
    grad_dim, proj_dim, seed, proj_type, device
        As for `Projector`. dattri's name ``feature_dim`` is taken for grad_dim.
    block_size, max_batch_size, model_id
        Accepted and not needed: no matrix is made.
    dtype : torch.dtype
        Of the result, default float32.
    **options
        Of `Projector`.

    Examples
    --------
    >>> import torch
    >>> from gnomon.torch import BasicProjector
    >>> BasicProjector(1000, 64, 0, "normal", "cpu").project(torch.ones(2, 1000), 0).dtype
    torch.float32
    """

    def __init__(self, grad_dim: Optional[int] = None, proj_dim: int = 512, seed: int = 0, proj_type: str = "rademacher",
                 device: Any = "cpu", block_size: int = 200, dtype: torch.dtype = torch.float32, model_id: int = 0, *,
                 feature_dim: Optional[int] = None, max_batch_size: int = 32, **options: Any):
        if (grad_dim is None) == (feature_dim is None):
            raise TypeError("grad_dim or feature_dim must be given, one of them")
        super().__init__(feature_dim if grad_dim is None else grad_dim, proj_dim, seed, proj_type, device,  # type: ignore
                         dtype=dtype, **options)


class CudaProjector(BasicProjector):
    """The same with that of their ``CudaProjector``: gradients must lie on a GPU.

    Parameters
    ----------
    grad_dim, proj_dim, seed, proj_type, device
        As for `Projector`.
    max_batch_size
        Accepted and not needed: any batch is taken.
    **options
        As for `BasicProjector`.

    Examples
    --------
    >>> from gnomon.torch import CudaProjector
    >>> CudaProjector(1000, 64, 0, "normal", "cuda:0", 32)
    CudaProjector(1000, 64, seed=0, proj_type='gaussian')
    """

    def __init__(self, grad_dim: Optional[int] = None, proj_dim: int = 512, seed: int = 0, proj_type: str = "rademacher",
                 device: Any = "cuda", max_batch_size: int = 32, *unused: Any, **options: Any):
        if torch.device(device).type != "cuda":
            raise ValueError(f"device is {device}; a CudaProjector's must be a CUDA GPU: BasicProjector is for others")
        super().__init__(grad_dim, proj_dim, seed, proj_type, device, **options)


def make_random_projector(param_shape_list: Sequence[int], feature_batch_size: int, proj_dim: int,
                          proj_max_batch_size: int = 32, device: Any = "cpu", proj_seed: int = 0, proj_type: str = "sjlt", *,
                          use_half_precision: bool = True, **options: Any) -> Projector:
    """A projector by the arguments of dattri's function of this name.

    Parameters
    ----------
    param_shape_list : sequence of int
        Coordinates of each parameter; the projector is for their sum.
    feature_batch_size, proj_max_batch_size
        Accepted and not needed: any batch is taken, and nothing is cut into chunks.
    proj_dim : int
        Coordinates after projection, at most the sum.
    device : str or torch.device
        Where gradients must lie.
    proj_seed : int
    proj_type : str
        As for `Projector`, on the CPU too.
    use_half_precision : bool
        The result is of bfloat16 (default), else float32. The arithmetic is in float32 in either case.
    **options
        Of `Projector`. The scaling is ``"isometric"`` by default, as that of dattri's projector on a GPU.

    Returns
    -------
    Projector

    Examples
    --------
    >>> import torch
    >>> from gnomon.torch import make_random_projector
    >>> projector = make_random_projector([200, 20], 3, 16, use_half_precision=False)
    >>> projector.project({"weight": torch.ones(3, 20, 10), "bias": torch.ones(3, 20)}, ensemble_id=0).shape
    torch.Size([3, 16])
    """
    options.setdefault("scaling", "isometric")
    options.setdefault("dtype", torch.bfloat16 if use_half_precision else torch.float32)
    total = sum(integer(size, f"param_shape_list[{i}]", 0) for i, size in enumerate(param_shape_list))
    return Projector(total, proj_dim, proj_seed, proj_type, device, **options)


def random_project(feature: Gradients, feature_batch_size: int, proj_dim: int, proj_max_batch_size: int = 32,
                   device: Any = "cpu", proj_seed: int = 0, proj_type: str = "sjlt", *, use_half_precision: bool = True,
                   **options: Any) -> Callable[..., torch.Tensor]:
    """A function that projects, by the arguments of dattri's function of this name.

    Parameters
    ----------
    feature : tensor of shape (feature_batch_size, ...), or dict or list of them
        What will be projected: its sizes alone are looked at.
    feature_batch_size : int
        Rows of the given feature. Later batches may have any.
    proj_dim, proj_max_batch_size, device, proj_seed, proj_type, use_half_precision, **options
        As for `make_random_projector`.

    Returns
    -------
    callable
        ``project(feature, ensemble_id=0)``, a tensor of shape (n, proj_dim).

    Examples
    --------
    >>> import torch
    >>> from gnomon.torch import random_project
    >>> grads = {"weight": torch.ones(3, 20, 10), "bias": torch.ones(3, 20)}
    >>> random_project(grads, 3, proj_dim=16, device="cpu")(grads, ensemble_id=1).dtype
    torch.bfloat16
    """
    rows = integer(feature_batch_size, "feature_batch_size", 1)
    if isinstance(feature, torch.Tensor):
        given = [feature]
    else:
        given = list(feature.values()) if isinstance(feature, Mapping) else list(feature)
    for piece in given:
        if piece.ndim == 0 or len(piece) != rows:
            raise ValueError(f"feature_batch_size is {rows}; a tensor of feature has shape {tuple(piece.shape)}")
    projector = make_random_projector([piece.numel() // rows for piece in given], rows, proj_dim, proj_max_batch_size, device,
                                      proj_seed, proj_type, use_half_precision=use_half_precision, **options)

    def project(feature: Gradients, ensemble_id: int = 0) -> torch.Tensor:
        return projector.project(feature, ensemble_id)

    return project


class LinearProjector:
    """Projects a linear layer's gradients from their factors, without forming them.

    A sample's gradient of the weight is the sum over its positions of output gradient times input, G = sum_t b_t a_t^T. It is
    projected by the Kronecker product of an operator for outputs and one for inputs, to S_out G S_in^T = sum_t (S_out b_t)
    (S_in a_t)^T, a matrix of k_out x k_in numbers, as LoGra and FactGraSS do.

    Parameters
    ----------
    in_features, out_features : int
        The layer's.
    k_in, k_out : int
        Rows of the two operators.
    seed : int
    kind_in, kind_out : str
        Of the operators, any of `gnomon.kinds`.
    bias : bool
        The gradient of the bias is one more column of G: the inputs get a coordinate that is 1.
    mask_in, mask_out : int, or array-like of bool or int, optional
        Coordinates that are projected: see `Projector`. Of the inputs with the bias, if there is one.
    proj_dim : int, optional
        Project the k_out * k_in numbers once more, to so many, by an operator of ``kind`` (default sjlt).
    scaling : {"isometric", "none"}
        Of every operator.
    **parameters
        ``parameters_in``, ``parameters_out`` and ``parameters``: dicts of the operators' parameters.

    Examples
    --------
    >>> import torch
    >>> from gnomon.torch import LinearProjector
    >>> inputs, grads = torch.ones(4, 7, 100), torch.ones(4, 7, 50)    # 4 samples of 7 positions
    >>> LinearProjector(100, 50, 8, 4, seed=1, kind_in="sjlt").project(inputs, grads).shape
    torch.Size([4, 32])
    """

    def __init__(self, in_features: int, out_features: int, k_in: int, k_out: int, seed: int = 0, *,
                 kind_in: str = "rademacher", kind_out: str = "rademacher", bias: bool = False, mask_in: Any = None,
                 mask_out: Any = None, proj_dim: Optional[int] = None, kind: str = "sjlt", scaling: str = "isometric",
                 parameters_in: Optional[Mapping[str, Any]] = None, parameters_out: Optional[Mapping[str, Any]] = None,
                 parameters: Optional[Mapping[str, Any]] = None):
        self.in_features, self.out_features = integer(in_features, "in_features", 1), integer(out_features, "out_features", 1)
        self.bias = bool(bias)
        seed = integer(seed, "seed", 0, _WORD)

        def part(number: int) -> int:  # seeds that meet neither each other nor those of other models
            return (seed + (number << 56)) & _WORD

        self.inputs = Projector(self.in_features + self.bias, k_in, part(1), kind_in, scaling=scaling, mask=mask_in,
                                **dict(parameters_in or {}))
        self.outputs = Projector(self.out_features, k_out, part(2), kind_out, scaling=scaling, mask=mask_out,
                                 **dict(parameters_out or {}))
        self.last = None if proj_dim is None else Projector(
            self.inputs.proj_dim * self.outputs.proj_dim, proj_dim, part(3), kind, scaling=scaling, **dict(parameters or {}))

    def project(self, activations: torch.Tensor, output_grads: torch.Tensor, model_id: int = 0) -> torch.Tensor:
        """Projects a batch of factored gradients.

        Parameters
        ----------
        activations : tensor of shape (n, in_features), or (n, ..., in_features)
            The layer's inputs, of a sample at all its positions.
        output_grads : tensor of shape (n, out_features), or (n, ..., out_features)
            Gradients of each sample's loss with respect to the layer's outputs.
        model_id : int

        Returns
        -------
        torch.Tensor of shape (n, k_out * k_in), or (n, proj_dim)
            The first as the projected matrices row by row: what ``kron(S_out, S_in)`` makes of ``weight.grad.flatten()``.
        """
        for x, name, width in ((activations, "activations", self.in_features),
                               (output_grads, "output_grads", self.out_features)):
            if not isinstance(x, torch.Tensor):
                raise TypeError(f"{name} must be a tensor, not {type(x).__name__}")
            if x.ndim < 2 or x.shape[-1] != width:
                raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (n, ..., {width})")
        if activations.shape[:-1] != output_grads.shape[:-1]:
            raise ValueError(f"activations and output_grads have shapes {tuple(activations.shape)} and "
                             f"{tuple(output_grads.shape)}, which differ before the last dimension")
        n = len(activations)
        rows = int(np.prod(activations.shape[:-1]))
        a = [activations.reshape(rows, self.in_features)]
        if self.bias:
            a.append(activations.new_ones((rows, 1)))
        left = self.outputs.project(output_grads.reshape(rows, self.out_features), model_id)
        right = self.inputs.project(a, model_id)
        positions = rows // n if n else 0
        with torch.no_grad():
            wide = torch.promote_types(left.dtype, right.dtype)
            k_out, k_in = self.outputs.proj_dim, self.inputs.proj_dim
            both = torch.bmm(left.to(wide).reshape(n, positions, k_out).transpose(1, 2),
                             right.to(wide).reshape(n, positions, k_in)).reshape(n, k_out * k_in)
            return both if self.last is None else self.last.project(both, model_id)

    __call__ = project
