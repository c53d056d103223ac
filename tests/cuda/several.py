"""Factorisations and products that several GPUs divide: the bytes of one GPU, wherever the matrix lies and however.

usage: several.py [--device cuda:all] [--only dense|sparse|fp64|hosvd]

Needs NumPy, PyTorch and two GPUs; exits with 77 where they are not there. GNOMON_LIBRARY and GNOMON_PLUGIN_DIR say where library
and plugin are."""
import argparse
import ctypes
import importlib.util
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
try:
    import numpy as np
    import torch
except ImportError as error:
    print(error)
    sys.exit(77)
if torch.cuda.device_count() < 2:
    print("fewer than two GPUs")
    sys.exit(77)
spec = importlib.util.spec_from_file_location("several", os.path.join(ROOT, "bench", "gpu", "several", "several.py"))
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
import gnomon
from gnomon import _abi
from gnomon._context import owned_context
from gnomon._library import lib

TYPES = {torch.float32: _abi.GNOMON_F32, torch.float64: _abi.GNOMON_F64, torch.float16: _abi.GNOMON_F16}


def view(x):
    if isinstance(x, bench.Spread):
        return bench.view_of(x)
    return _abi.gnomon_matrix(data=x.data_ptr(), dtype=TYPES[x.dtype],
                              memory=_abi.GNOMON_DEVICE_MEMORY if x.is_cuda else _abi.GNOMON_HOST, rows=x.shape[0], cols=x.shape[1],
                              row_stride=x.stride(0), col_stride=x.stride(1))


def svd(context, x, rank, **members):
    options = _abi.gnomon_svd_options()
    lib.gnomon_svd_options_init(ctypes.byref(options), ctypes.sizeof(options))
    sparse = isinstance(x, bench.Csr)
    options.rank, a = rank, x.view() if sparse else view(x)
    options.dtype = _abi.GNOMON_F32
    factor = lib.gnomon_svd_csr if sparse else lib.gnomon_svd_dense
    for name, value in members.items():
        setattr(options, name, value)
    found = _abi.gnomon_svd(struct_size=ctypes.sizeof(_abi.gnomon_svd))
    bench.check(context, factor(context.handle, ctypes.byref(a), ctypes.byref(options), ctypes.byref(found)))
    size = 8 if options.dtype == _abi.GNOMON_F64 else 4
    numbers = [ctypes.string_at(found.u.data, found.rows * found.rank * size), ctypes.string_at(found.vt.data, found.rank * found.cols * size),
               ctypes.string_at(found.s, found.rank * 8), np.array([found.norm, found.residual_bound, found.spectral_bound, found.residual]).tobytes()]
    values = np.frombuffer(numbers[2])
    lib.gnomon_svd_free(context.handle, ctypes.byref(found))
    return numbers, values


def gemm(context, x, w, y, alpha, beta):
    options = _abi.gnomon_gemm_options()
    lib.gnomon_gemm_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.alpha, options.beta = alpha, beta
    a, b, c = view(x), view(w), view(y)
    bench.check(context, lib.gnomon_gemm(context.handle, ctypes.byref(a), ctypes.byref(b), ctypes.byref(c), ctypes.byref(options)))
    torch.cuda.synchronize()
    return bench.arrays_of(y)


def places(x):
    """The matrix where it may lie; spread where its halves fill pages of 2 MiB."""
    yield "host", x.cpu()
    yield "page-locked", x.cpu().pin_memory()
    yield "GPU 0", x
    yield "GPU 1", x.to("cuda:1")
    half = x.shape[0] // 2 * x.shape[1] * 4
    if x.dtype == torch.float32 and x.is_contiguous() and x.shape[0] % 64 == 0 and half % (2 << 20) == 0:
        yield "spread", bench.Spread(tuple(x.shape)).fill(x)


def there_alone(place, x, there):
    """What GPU 0 alone can read, and reads in the same way."""
    return x if place == "spread" else there.to("cuda:0") if place == "GPU 1" else there


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:all")
    parser.add_argument("--only", choices=("dense", "sparse", "fp64", "hosvd"))
    a = parser.parse_args()
    one, several = owned_context(device="cuda:0"), owned_context(device=a.device)
    draw = torch.Generator(device="cuda:0").manual_seed(3)
    wrong = cases = 0

    def tell(name, same):
        nonlocal wrong, cases
        cases += 1
        wrong += not same
        print(("" if same else "OTHER BYTES ") + name, flush=True)

    def low_rank(m, n):
        left, right = (torch.randn(size, 64, device="cuda:0", generator=draw) for size in (m, n))
        return (left @ right.T + 0.1 * torch.randn(m, n, device="cuda:0", generator=draw)).contiguous()

    if a.only in (None, "dense"):
        square = low_rank(4096, 8192)
        odd = low_rank(5001, 4357)
        matrices = [("4096 x 8192", square, {}), ("5001 x 4357", odd, {}), ("by columns", low_rank(4357, 5001).T, {}),
                    ("by columns, aligned", low_rank(4352, 5120).T, {}), ("fp16", odd.to(torch.float16), {}),
                    ("fp64", odd.to(torch.float64), {}), ("1e25 times as large", square * 1e25, {}), ("with gaps", low_rank(4500, 6000)[:, 7:5000], {}),
                    ("long lines", low_rank(4096, 16385), {}), ("long lines, 1e25 times as large", low_rank(4096, 16385) * 1e25, {}),
                    ("centred", odd, {"center": 1}), ("measured", square, {"measure": 1}), ("tolerance", square, {"tolerance": 0.05, "block": 512}),
                    ("single pass", square, {"single_pass": 1}), ("fp64 work", odd.to(torch.float64), {"dtype": _abi.GNOMON_F64, "power": 1})]
        # tall and wide, and columns that depend on each other
        tall = low_rank(32768, 4096)
        matrices += [("32768 x 4096", tall, {}), ("4096 x 32768", tall.T.contiguous(), {}), ("by columns, tall", tall.T.contiguous().T, {}),
                     ("of rank 3", tall[:, :3].contiguous() @ tall[:3], {})]
        for name, x, members in matrices:
            options = {"power": 2, **members}
            rank = 512 if options.get("dtype") is None else 64
            for place, there in places(x):
                before = there_alone(place, x, there)
                wanted, values = svd(one, before, rank, **options)
                got, _ = svd(several, there, rank, **options)
                again, _ = svd(several, there, rank, **options)
                tell(f"svd {name}, {place}: s {values[0]:.6g} ... {values[-1]:.6g}", wanted == got == again)
        # what is not finite is named alike
        bad = square.clone()
        bad[3000, 77] = float("nan")
        for place, there in places(bad):
            texts = []
            for context, x in ((one, there_alone(place, bad, there)), (several, there)):
                try:
                    svd(context, x, 512)
                    texts.append(None)
                except RuntimeError as error:
                    texts.append(str(error))
            tell(f"svd NaN, {place}: {texts[1]}", texts[0] is not None and texts[0] == texts[1])
        for m, k, n in ((8192, 4096, 1024), (5003, 2999, 2001), (700, 3000, 30001)):
            for second in (torch.float32, torch.float16):
                x, w = torch.randn(m, k, device="cuda:0", generator=draw), torch.randn(k, n, device="cuda:0", generator=draw).to(second)
                y = torch.randn(m, n, device="cuda:0", generator=draw)
                for place, there in places(x):
                    w_there = w.cpu() if place in ("host", "page-locked") else w
                    first = there_alone(place, x, there)
                    out = y.cpu() if place in ("host", "page-locked") else y
                    wanted = gemm(one, first, w_there, out.clone(), 0.5, 2.0)
                    if place == "spread":
                        mine = bench.Spread((m, n)).fill(y) if m // 2 * n * 4 % (2 << 20) == 0 else y.clone()
                    else:
                        mine = out.clone()
                    tell(f"gemm {m} x {k} x {n}, {second}, {place}", bench.same(gemm(several, there, w_there, mine, 0.5, 2.0), wanted))
    if a.only in (None, "sparse"):
        # sparse rows: both lists of every GPU, with columns of very many entries, less their mean, in both types
        for name, dtype, members in (("", torch.float32, {}), ("centred", torch.float32, {"center": 1}), ("one pass", torch.float32, {"single_pass": 1}),
                                     ("tolerance", torch.float32, {"tolerance": 0.5}), ("fp64 work", torch.float64, {"dtype": _abi.GNOMON_F64}),
                                     ("fp64 work, centred", torch.float64, {"dtype": _abi.GNOMON_F64, "center": 1}),
                                     ("1e25 times as large", torch.float32, {})):
            for locked in (False, True):
                x = bench.Csr(100001, 30011, 60, draw, dtype, locked)
                if name.startswith("1e25"):
                    x.values *= 1e25
                wanted, values = svd(one, x, 60, **{"power": 2, **members})
                got, _ = svd(several, x, 60, **{"power": 2, **members})
                again, _ = svd(several, x, 60, **{"power": 2, **members})
                tell(f"svd of sparse rows, {name}, {'page-locked' if locked else 'host'}: s {values[0]:.6g} ... {values[-1]:.6g}",
                     wanted == got == again)
    if a.only in (None, "fp64"):
        # long products in double precision, that several GPUs divide
        for name, x, members in (("6001 x 8193", torch.randn(6001, 8193, device="cuda:0", generator=draw, dtype=torch.float64), {}),
                                 ("by columns", torch.randn(8193, 6002, device="cuda:0", generator=draw, dtype=torch.float64).T, {}),
                                 ("1e305 times as large", torch.randn(6001, 8192, device="cuda:0", generator=draw, dtype=torch.float64) * 1e305, {}),
                                 ("odd, 1e305 times as large", torch.randn(6001, 8193, device="cuda:0", generator=draw, dtype=torch.float64) * 1e305, {}),
                                 ("fp32 numbers, centred", torch.randn(6001, 8193, device="cuda:0", generator=draw), {"center": 1})):
            options = {"power": 1, "dtype": _abi.GNOMON_F64, **members}
            for place, there in places(x):
                before = there_alone(place, x, there)
                wanted, values = svd(one, before, 800, **options)
                got, _ = svd(several, there, 800, **options)
                tell(f"svd in double precision, {name}, {place}: s {values[0]:.6g} ... {values[-1]:.6g}", wanted == got)
            del x
    if a.only in (None, "hosvd"):
        # tensors, which come over both links
        for dtype in (np.float32, np.float64):
            x = np.random.default_rng(5).normal(size=(401, 211, 331)).astype(dtype)
            for members in ({}, {"sequential": True}, {"tol": 0.9}):
                answers = []
                for device in ("cuda:0", a.device):
                    t = gnomon.hosvd(x, 20, device=device, **members)
                    answers.append([t.core.tobytes(), *(f.tobytes() for f in t.factors), t.norm, t.residual])
                tell(f"hosvd {np.dtype(dtype).name} {members}: norm {answers[0][-2]:.6g}", answers[0] == answers[1])
    print(f"{cases} cases, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
