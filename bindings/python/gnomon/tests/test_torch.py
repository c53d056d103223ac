"""gnomon.torch beside the same by explicit concatenation and explicit outer products."""
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import gnomon
from gnomon.torch import (BasicProjector, CudaProjector, LinearProjector, Projector, _drawn, make_random_projector,
                          random_project)

N = 5
SHAPES = {"w": (12, 9), "b": (12,), "conv": (3, 4, 5), "scalar": ()}
D = sum(int(np.prod(shape)) for shape in SHAPES.values())


def gradients(dtype=torch.float32, n=N, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn((n, *shape), generator=generator).to(dtype) for name, shape in SHAPES.items()}


def joined(grads):
    return torch.cat([piece.reshape(len(piece), -1) for piece in grads.values()], 1)


def by_hand(projector, whole, model_id=0):
    return whole.double() @ torch.from_numpy(projector.operator(model_id).toarray(np.float64)).T


@pytest.mark.parametrize("kind", [*gnomon.kinds(), "normal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_pieces_are_the_whole(kind, dtype):
    p, grads = Projector(D, 16, 3, kind), gradients(dtype)
    found = p.project(grads, 1)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32) and found.shape == (N, 16)
    expected = by_hand(p, joined(grads), 1)  # kronecker's roundings are those of its levels, whose terms cancel
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))
    assert torch.equal(found, p.project(joined(grads), 1))                 # the same bits
    assert torch.equal(found, p.project(list(grads.values()), 1))
    assert torch.equal(found[1:3], p.project({k: g[1:3] for k, g in grads.items()}, 1))  # whatever the batch


def test_pieces_of_several_types():
    p, grads = Projector(D, 16, 3), gradients()
    grads["b"], grads["conv"] = grads["b"].bfloat16(), grads["conv"].half()
    torch.testing.assert_close(p.project(grads).double(), by_hand(p, joined(grads)), rtol=1e-5, atol=1e-4)
    grads["w"] = grads["w"].double()
    assert p.project(grads).dtype == torch.float64


def test_models_and_seeds_have_their_own_operators():
    whole = joined(gradients())
    found = [Projector(D, 16, seed).project(whole, model) for seed in (0, 1) for model in (0, 1)]
    assert not any(torch.equal(found[i], found[j]) for i in range(4) for j in range(i))
    p = Projector(D, 16, 7)
    first = p.project(whole, 0)
    p.project(whole, 1)
    assert torch.equal(p.project(whole, 0), first)
    assert torch.equal(pickle.loads(pickle.dumps(p)).project(whole, 0), first)
    assert first.numpy().tobytes() == gnomon.sketch(whole.numpy(), 16, random_state=7, scaling="none", device="cpu").tobytes()


def test_scales():
    whole = torch.randn(200, D)
    plain, isometric = Projector(D, 16, 1), Projector(D, 16, 1, scaling="isometric")
    torch.testing.assert_close(plain.project(whole) / 4, isometric.project(whole))
    assert set(np.unique(plain.operator().toarray())) == {-1.0, 1.0}  # as TRAK's
    ratio = lambda p: (p.project(whole).square().sum() / whole.square().sum()).item()
    assert abs(ratio(isometric) - 1) < 0.1
    assert abs(ratio(Projector(D, 16, 1, scaling="isometric", mask=60)) - 1) < 0.2


@pytest.mark.parametrize("mask", [50, 150, "bool", "index", "tensor"])
def test_masks(mask):
    if mask in ("bool", "tensor"):
        mask = np.random.default_rng(0).random(D) < 0.4
        mask = torch.from_numpy(mask) if mask is None else mask
    elif mask == "index":
        mask = torch.tensor([180, 3, 5, 100, 140, 0, 119, 120, 60, 61, 62, 63, 64, 65, 66, 67, 68])
    p, grads = Projector(D, 16, 3, mask=mask), gradients(torch.bfloat16)
    chosen = p._mask
    if isinstance(mask, int):
        assert len(np.unique(chosen)) == len(chosen) == mask and 0 <= chosen.min() and chosen.max() < D
    else:
        given = np.asarray(mask)
        assert chosen.tolist() == (np.flatnonzero(given) if given.dtype == bool else np.sort(given)).tolist()
    torch.testing.assert_close(p.project(grads).double(), by_hand(p, joined(grads)[:, torch.from_numpy(chosen)]),
                               rtol=1e-5, atol=1e-4)
    assert torch.equal(p.project(grads), p.project(joined(grads)))


def test_drawn_coordinates_are_pinned_and_even():
    assert _drawn(5, 1000, 1).tolist() == [4, 515, 527, 695, 970]
    counts = np.bincount(np.concatenate([_drawn(30, 100, seed) for seed in range(400)]), minlength=100)
    assert abs(counts.mean() - 120) < 1e-9 and counts.min() > 70 and counts.max() < 170
    assert _drawn(7, 7, 3).tolist() == list(range(7))


@pytest.mark.parametrize("kind_in", gnomon.kinds())
@pytest.mark.parametrize("kind_out", ["rademacher", "sjlt", "srht"])
def test_factored_is_the_outer_product(kind_in, kind_out):
    a, b = torch.randn(N, 6, 40), torch.randn(N, 6, 30)
    p = LinearProjector(40, 30, 8, 6, 2, kind_in=kind_in, kind_out=kind_out)
    G = torch.einsum("nto,nti->noi", b.double(), a.double())
    S_in = torch.from_numpy(p.inputs.operator(4).toarray(np.float64))
    S_out = torch.from_numpy(p.outputs.operator(4).toarray(np.float64))
    expected = G.reshape(N, -1) @ torch.kron(S_out, S_in).T
    torch.testing.assert_close(p.project(a, b, 4).double(), expected, rtol=1e-4, atol=1e-4)


def test_factored_of_a_layer():
    """Against the gradients that autograd gives, one sample at a time, with the bias."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(20, 10)
    x = torch.randn(N, 3, 20)
    G = []
    for one in x:
        layer.zero_grad()
        layer(one).tanh().sum().backward()
        G.append(torch.cat([layer.weight.grad, layer.bias.grad[:, None]], 1))
    out = layer(x)
    grads, = torch.autograd.grad(out.tanh().sum(), out)
    p = LinearProjector(20, 10, 6, 5, 1, bias=True, kind_in="gaussian", mask_out=8)
    S_in, S_out = p.inputs.operator().toarray(np.float64), p.outputs.operator().toarray(np.float64)
    expected = torch.stack([torch.from_numpy(S_out) @ g.double()[p.outputs._mask] @ torch.from_numpy(S_in).T for g in G])
    expected *= p.outputs._scale
    torch.testing.assert_close(p.project(x, grads).double(), expected.reshape(N, -1), rtol=1e-4, atol=1e-4)
    last = LinearProjector(20, 10, 6, 5, 1, bias=True, kind_in="gaussian", mask_out=8, proj_dim=12)
    torch.testing.assert_close(last.project(x, grads), last.last.project(p.project(x, grads)))
    assert p.project(x[:0], grads[:0]).shape == (0, 30)
    assert p.project(x[:, 0], grads[:, 0]).shape == (N, 30)


def test_constructors_of_trak_and_dattri():
    class Type(str):  # an enumeration's member has its name in .value
        value = "normal"

    whole = joined(gradients(torch.float16))
    trak = BasicProjector(D, 16, 3, Type("x"), "cpu", 100, torch.float16, 2)
    assert trak.project(whole, 2).dtype == torch.float16
    dattri = BasicProjector(feature_dim=D, proj_dim=16, seed=3, proj_type="normal", device="cpu", dtype=torch.float16)
    assert torch.equal(dattri.project(whole, 2), trak.project(whole, 2))
    dattri.free_memory()
    with pytest.raises(ValueError, match="must be a CUDA GPU"):
        CudaProjector(D, 16, 3, "normal", "cpu")
    with pytest.raises(TypeError, match="grad_dim or feature_dim"):
        BasicProjector(proj_dim=3)


@pytest.mark.parametrize("kind", ["sjlt", "rademacher", "normal"])
def test_functions_of_dattri(kind):
    grads = gradients()
    project = random_project(grads, N, 16, 8, "cpu", 3, kind, use_half_precision=False)
    same = Projector(D, 16, 3, kind, scaling="isometric")
    for model in (0, 2):
        assert torch.equal(project(grads, ensemble_id=model), same.project(grads, model))
    assert torch.equal(project(joined(grads)), same.project(grads))
    assert project({k: g[:2] for k, g in grads.items()}).shape == (2, 16)  # a last batch is smaller
    sizes = [g[0].numel() for g in grads.values()]
    half = make_random_projector(sizes, N, 16, 8, torch.device("cpu"), 3, kind)
    assert torch.equal(half.project(grads, ensemble_id=2), same.project(grads, 2).bfloat16())
    assert random_project(joined(grads), N, 16)(joined(grads)).dtype == torch.bfloat16
    with pytest.raises(ValueError, match="feature_batch_size is 4"):
        random_project(grads, 4, 16)
    with pytest.raises(ValueError, match=r"param_shape_list\[1\]"):
        make_random_projector([3, -1], 1, 2)


def test_bad_input():
    p, whole = Projector(D, 16), joined(gradients())
    with pytest.raises(ValueError, match="grads requires a gradient"):
        p.project(whole.clone().requires_grad_())
    with pytest.raises(ValueError, match="grads have 100 coordinates; the projector is for 181"):
        p.project(whole[:, :100])
    with pytest.raises(ValueError, match=r"grads\['b'\] has shape \(4, 12\)"):
        p.project({**gradients(), "b": torch.ones(4, 12)})
    with pytest.raises(ValueError, match="int64"):
        p.project(whole.long())
    with pytest.raises(TypeError, match="not ndarray"):
        p.project(whole.numpy())
    with pytest.raises(TypeError, match=r"grads\[1\] must be a tensor"):
        p.project([whole, 3])
    with pytest.raises(gnomon.DeviceError, match="lie on meta"):
        p.project(whole.to("meta"))
    with pytest.raises(gnomon.DeviceError, match="the projector is for cuda"):
        Projector(D, 16, device="cuda").project(whole)
    with pytest.raises(ValueError, match="n_components"):
        Projector(10, 11)
    for mask, message in (([1, 1], "twice"), ([D], "from 0 to"), ([True], "must have as many"), ([0.5], "dtype"), (0, "mask is 0")):
        with pytest.raises(ValueError, match=message):
            Projector(D, 1, mask=mask)
    whole[2, 5] = float("nan")
    assert p.project(whole)[2].isnan().all() and not p.project(whole)[1].isnan().any()
    with pytest.raises(ValueError, match="NaN|finite"):
        Projector(D, 16, allow_nonfinite=False).project(whole)
    assert p.project(whole[:0]).shape == (0, 16)
    with pytest.raises(ValueError, match="differ before the last"):
        LinearProjector(4, 3, 2, 2).project(torch.ones(2, 5, 4), torch.ones(2, 4, 3))


def test_tensors_in_functions():
    x = torch.randn(20, 50)
    S = gnomon.operator(8, 50)
    expected = gnomon.sketch(x.numpy(), S)
    assert (gnomon.sketch(x, S) == expected).all()
    rounded = x.bfloat16()
    assert (gnomon.sketch(rounded, S) == gnomon.sketch(rounded.float(), S)).all()
    assert (gnomon.sketch(rounded.t().contiguous().t(), S) == gnomon.sketch(rounded.float(), S)).all()
    with pytest.raises(ValueError, match="X requires a gradient"):
        gnomon.sketch(rounded.clone().requires_grad_(), S)
    with pytest.raises(ValueError, match="X"):
        gnomon.sketch(x.clone().requires_grad_(), S)
