"""The Python package on a GPU: arrays that stay there.

usage: python_gpu.py [RESULTS.json]      GNOMON_LIBRARY and GNOMON_PLUGIN_DIR say where library and plugin are; needs
NumPy and PyTorch; CuPy's arrays are tested where it is. Checks that what a call makes of a tensor on the GPU has the bytes of what it makes of its copy on the
host, that nothing passes between host and GPU meanwhile, that the work is in its place on the caller's stream, and what a
call costs beside the same call made by ctypes alone. Exits with 77 where there is no GPU.
"""
import ctypes
import json
import os
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))
try:
    import torch
except ImportError:
    print("no PyTorch: left out")
    sys.exit(77)
if not torch.cuda.is_available():
    print("no GPU: left out")
    sys.exit(77)

import numpy as np

import gnomon
from gnomon import _abi
from gnomon._context import lease
from gnomon._library import lib

KINDS = ["rademacher", "gaussian", "achlioptas", "very-sparse", "sjlt", "srht", "block", "kronecker"]
passed, failed, measured = 0, [], {}


def check(good, *words):
    global passed
    if good:
        passed += 1
    else:
        failed.append(" ".join(map(str, words)))
        print("WRONG:", failed[-1])


def raises(kind, function, *words):
    try:
        function()
    except kind as error:
        check(True)
        return str(error)
    except BaseException as error:
        check(False, *words, "raised", repr(error))
        return ""
    check(False, *words, "raised nothing")
    return ""


def close(a, b, limit=2e-3):
    a, b = a.double(), b.double()
    return bool((a - b).norm() <= limit * b.norm())


def same_bytes():
    X = torch.randn(37, 5000, device="cuda")
    for kind in KINDS:
        S = gnomon.operator(64, 5000, kind=kind, random_state=3)
        there = gnomon.sketch(X, S)
        check(there.is_cuda and there.dtype == torch.float32 and tuple(there.shape) == (37, 64), kind, "sketch stays")
        here = gnomon.sketch(X.cpu().numpy(), S, device="cuda")
        check(there.cpu().numpy().tobytes() == here.tobytes(), kind, "bytes of the same sketch from the host")
        cpu = torch.from_numpy(gnomon.sketch(X.cpu().numpy(), S, device="cpu"))
        check(close(there.cpu(), cpu, 1e-5), kind, "beside the CPU")
        out = torch.empty(37, 64, device="cuda")
        check(gnomon.sketch(X, S, out=out) is out and torch.equal(out, there), kind, "out")
        back = gnomon.adjoint(there, S)
        check(close(back.cpu(), torch.from_numpy(gnomon.adjoint(there.cpu().numpy(), S, device="cpu")), 1e-5), kind, "adjoint")
    S = gnomon.operator(64, 5000, kind="rademacher")
    strided = torch.randn(5000, 80, device="cuda").t()[::2]
    check(torch.equal(gnomon.sketch(strided, S), gnomon.sketch(strided.contiguous(), S)), "strides")
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        there = gnomon.sketch(X.to(dtype), S)
        check(close(there, X.to(dtype).double() @ torch.from_numpy(S.toarray(np.float64)).cuda().T, 1e-5), dtype)
        check(there.dtype == (torch.float64 if dtype == torch.float64 else torch.float32), dtype, "type of the sketch")
    check(gnomon.sketch(X[:0], S).shape == (0, 64), "no points")
    A, B = torch.randn(50, 300, device="cuda"), torch.randn(300, 70, device="cuda").half()
    check(close(gnomon.matmul(A, B), A.double() @ B.double(), 1e-5), "matmul")
    check(close(gnomon.matmul(X, S.T), gnomon.sketch(X, S), 1e-5), "matmul by an operator")


def sparse_rows():
    g = torch.Generator(device="cuda").manual_seed(5)
    X = torch.randn(60, 3000, device="cuda", generator=g)
    X[torch.rand(60, 3000, device="cuda", generator=g) > 0.02] = 0
    X[7] = 0
    rows = X.to_sparse_csr()
    narrow = torch.sparse_csr_tensor(rows.crow_indices().int(), rows.col_indices().int(), rows.values(), size=X.shape)
    for kind in KINDS:
        S = gnomon.operator(64, 3000, kind=kind, random_state=3, **({"blocks": 4} if kind == "block" else {}))
        host = gnomon.sketch(X.cpu().numpy(), S, device="cpu")
        if kind in ("block", "kronecker"):
            said = raises(gnomon.DeviceError, lambda: gnomon.sketch(rows, S), kind, "sparse rows there")
            check("CPU" in said, kind, said)
            continue
        there = gnomon.sketch(rows, S)
        check(there.is_cuda and there.dtype == torch.float32 and tuple(there.shape) == (60, 64), kind, "sparse rows stay")
        check(close(there.cpu(), torch.from_numpy(host), 1e-5), kind, "sparse rows beside dense ones")
        check(torch.equal(gnomon.sketch(narrow, S), there), kind, "sparse rows with 32-bit indices")
        out = torch.empty(60, 64, device="cuda")
        check(gnomon.sketch(rows, S, out=out, allow_nonfinite=True) is out and torch.equal(out, there), kind, "out, sparse rows")
    raises(TypeError, lambda: gnomon.neighbors(rows, 3), "neighbours of sparse rows there")
    bad = torch.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values() * float("nan"), size=X.shape)
    said = raises(ValueError, lambda: gnomon.sketch(bad, 8), "NaN in sparse rows")
    check("NaN" in said, "NaN in sparse rows:", said)
    try:
        import scipy.sparse
    except ImportError:
        return
    host = scipy.sparse.csr_matrix(X.cpu().numpy())
    for kind in ("sjlt", "very-sparse", "gaussian"):
        S = gnomon.operator(64, 3000, kind=kind, random_state=3)
        cpu = gnomon.sketch(host, S, device="cpu")
        check(gnomon.sketch(host, S, device="cuda").tobytes() == cpu.tobytes(), kind, "sparse rows from the host")
        check(gnomon.sketch(rows, S).cpu().numpy().tobytes() == cpu.tobytes(), kind, "sparse rows: the CPU's bits")
        out = torch.empty(60, 64, device="cuda")
        gnomon.sketch(host, S, out=out)
        check(out.cpu().numpy().tobytes() == cpu.tobytes(), kind, "sparse rows from the host to a tensor")


class Interface:
    """Shows an array by __cuda_array_interface__ alone."""

    def __init__(self, tensor, **changed):
        self.kept = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, **changed}


class DLPack:
    """Shows an array by DLPack alone."""

    def __init__(self, tensor):
        self.kept = tensor

    def __dlpack_device__(self):
        return self.kept.__dlpack_device__()

    def __dlpack__(self, **how):
        return self.kept.__dlpack__(**how)


def other_libraries():
    X, S = torch.randn(20, 3000, device="cuda"), gnomon.operator(32, 3000)
    expected = gnomon.sketch(X, S)
    for shown in (Interface(X), Interface(X, stream=1), DLPack(X)):
        out = torch.zeros(20, 32, device="cuda")
        gnomon.sketch(shown, S, out=out)
        check(torch.equal(out, expected), type(shown).__name__)
        text = raises(TypeError, lambda: gnomon.sketch(shown, S), type(shown).__name__, "without out")
        check("out must be given" in text, text)
    host = np.zeros((20, 32), np.float32)
    gnomon.sketch(X, S, out=host)
    check((host == expected.cpu().numpy()).all(), "to the host")
    readonly = Interface(torch.zeros(20, 32, device="cuda"))
    readonly.__cuda_array_interface__["data"] = (readonly.__cuda_array_interface__["data"][0], True)
    raises(ValueError, lambda: gnomon.sketch(X, S, out=readonly), "a read-only output")


def cupy_arrays():
    """CuPy's arrays go in and come out, on CuPy's current stream, and none passes through the host."""
    try:
        import cupy
    except ImportError:
        print("no CuPy: left out")
        return
    measured["cupy"] = cupy.__version__
    X, S = torch.randn(20, 3000, device="cuda"), gnomon.operator(32, 3000)
    x, expected = cupy.asarray(X), gnomon.sketch(X, S)

    def equal(a, b):
        return isinstance(a, cupy.ndarray) and torch.equal(torch.as_tensor(a, device="cuda"), b)

    check(x.data.ptr == X.data_ptr(), "CuPy's array is the tensor's memory")
    for kind in KINDS:
        T = gnomon.operator(64, 3000, kind=kind, random_state=3)
        there = gnomon.sketch(x, T)
        check(equal(there, gnomon.sketch(X, T)) and there.dtype == np.float32 and there.shape == (20, 64), kind, "CuPy")
        check(equal(gnomon.adjoint(there, T), gnomon.adjoint(torch.as_tensor(there, device="cuda"), T)), kind, "CuPy, adjoint")
    out = cupy.zeros((20, 32), np.float32)
    check(gnomon.sketch(x, S, out=out) is out and equal(out, expected), "CuPy's output")
    columns = cupy.zeros((32, 20), np.float32).T
    gnomon.sketch(x, S, out=columns)
    check(equal(columns, expected), "CuPy's output by columns")
    target = torch.zeros(20, 32, device="cuda")
    check(gnomon.sketch(x, S, out=target) is target and torch.equal(target, expected), "from CuPy to PyTorch")
    host = np.zeros((20, 32), np.float32)
    gnomon.sketch(x, S, out=host)
    check((host == cupy.asnumpy(out)).all(), "from CuPy to the host")
    wide = cupy.asarray(torch.randn(3000, 40, device="cuda"))
    check(equal(gnomon.sketch(wide.T[::2], S), gnomon.sketch(torch.as_tensor(wide, device="cuda").t()[::2].contiguous(), S)),
          "CuPy's strides")
    for dtype, theirs in ((np.float16, torch.float16), (np.float64, torch.float64), (np.int8, torch.int8), (np.int32, torch.int32)):
        check(equal(gnomon.sketch((4 * x).astype(dtype), S), gnomon.sketch((4 * X).to(theirs), S)), "CuPy's", dtype)
    check(gnomon.sketch(x[:0], S).shape == (0, 32), "CuPy's empty array")
    A, B = torch.randn(50, 300, device="cuda"), torch.randn(300, 70, device="cuda").half()
    check(equal(gnomon.matmul(cupy.asarray(A), cupy.asarray(B)), gnomon.matmul(A, B)), "CuPy, matmul")
    P = torch.randn(700, 33, device="cuda")
    near, pairs = gnomon.neighbors(P, n_neighbors=5), gnomon.join(P, radius=6.0)
    check((gnomon.neighbors(cupy.asarray(P), n_neighbors=5).indices == near.indices).all(), "CuPy, neighbours")
    check((gnomon.neighbors(P, cupy.asarray(P), 5).indices == gnomon.neighbors(P, P, 5).indices).all(), "CuPy's queries")
    check(abs(gnomon.join(cupy.asarray(P), radius=6.0) - pairs).nnz == 0, "CuPy, a join")
    U, s, Vt = gnomon.svd(cupy.asarray(P), 5, random_state=1)
    V = gnomon.svd(P, 5, random_state=1)
    check(equal(U, V.U) and equal(Vt, V.Vt) and (s == V.s).all(), "CuPy, svd")
    for shown in (cupy.from_dlpack(X), DLPack(x)):
        target = torch.zeros(20, 32, device="cuda")
        gnomon.sketch(shown, S, out=target)
        check(torch.equal(target, expected), "CuPy by DLPack", type(shown).__name__)

    text = raises(ValueError, lambda: gnomon.sketch(x[0], S), "CuPy, one dimension")
    check("X" in text, text)
    raises(ValueError, lambda: gnomon.sketch(x.astype(np.complex64), S), "CuPy, complex")
    raises(ValueError, lambda: gnomon.sketch(x, S, out=cupy.zeros((20, 31), np.float32)), "CuPy, the output's shape")
    raises(gnomon.DeviceError, lambda: gnomon.sketch(x, S, device="cpu"), "CuPy, device cpu")
    raises(gnomon.DeviceError, lambda: gnomon.lstsq(x, host[:, 0]), "CuPy, a call of the CPU's arrays")
    bad = x.copy()
    bad[3, 17] = np.nan
    text = raises(ValueError, lambda: gnomon.sketch(bad, S), "CuPy, NaN")
    check("3" in text and "17" in text, text)

    zero, one = cupy.zeros_like(x), expected.clone()
    cupy.cuda.get_current_stream().synchronize()
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()):
        theirs = torch.cuda.ExternalStream(stream.ptr)
        with stream:
            late = zero.copy()
            stream.synchronize()
            with torch.cuda.stream(theirs):
                torch.cuda._sleep(200_000_000)
            cupy.copyto(late, x)
            begun = time.perf_counter()
            found = gnomon.sketch(late, S, allow_nonfinite=True)
            after = found.copy()
            took = time.perf_counter() - begun
            late.fill(0)
            busy = not stream.done
            stream.synchronize()
            check(torch.equal(torch.as_tensor(after, device="cuda"), one), "order on CuPy's stream")
            check(busy and took < 0.05, "the call waits for the GPU on CuPy's stream", took)
            with torch.cuda.stream(theirs):
                torch.cuda._sleep(200_000_000)
            cupy.copyto(late, x)
            check((gnomon.neighbors(late, n_neighbors=3).indices == gnomon.neighbors(X, n_neighbors=3).indices).all(),
                  "neighbours in order on CuPy's stream")

    from torch.profiler import ProfilerActivity, profile
    large, T = cupy.asarray(torch.randn(512, 200000, device="cuda")), gnomon.operator(512, 200000)
    gnomon.sketch(large, T)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    torch.cuda.synchronize()
    before = pool.used_bytes()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        found = gnomon.sketch(large, T, allow_nonfinite=True)
        torch.cuda.synchronize()
    names = [event.name for event in seen.events() if str(event.device_type).endswith("CUDA")]
    check(bool(names) and not any("HtoD" in name or "DtoH" in name for name in names), "CuPy: copies", names)
    check(pool.used_bytes() - before <= found.nbytes + 512, "CuPy's memory beyond the output", pool.used_bytes() - before)

    try:
        import cupyx.scipy.sparse
    except ImportError as error:
        print("no sparse matrices of CuPy's:", error)
        return
    X[torch.rand(20, 3000, device="cuda") > 0.02] = 0
    X[7] = 0
    for index in (torch.int32, torch.int64):
        rows = X.to_sparse_csr()
        given = cupyx.scipy.sparse.csr_matrix((cupy.asarray(rows.values()), cupy.asarray(rows.col_indices().to(index)),
                                               cupy.asarray(rows.crow_indices().to(index))), shape=(20, 3000))
        check(equal(gnomon.sketch(given, S), gnomon.sketch(rows, S)), "CuPy's sparse rows", index)
    check(equal(gnomon.sketch(given.astype(np.float64), S), gnomon.sketch(rows.double(), S)), "CuPy's sparse rows of float64")
    text = raises(TypeError, lambda: gnomon.sketch(given.tocsc(), S), "CuPy's CSC")
    check("tocsr" in text, text)
    raises((TypeError, ValueError), lambda: gnomon.neighbors(given, 3), "neighbours of CuPy's sparse rows")


def bad_input():
    X, S = torch.randn(20, 3000, device="cuda"), gnomon.operator(32, 3000)
    text = raises(ValueError, lambda: gnomon.sketch(X.clone().requires_grad_(), S), "a gradient")
    check("detach" in text, text)
    raises(gnomon.DeviceError, lambda: gnomon.sketch(X, S, device="cpu"), "device cpu")
    raises(gnomon.DeviceError, lambda: gnomon.sketch(X, S, device="cuda:7"), "device cuda:7")
    raises(gnomon.DeviceError, lambda: gnomon.lstsq(X, X[:, 0]), "a call of the CPU's arrays")
    raises(gnomon.DeviceError, lambda: gnomon.neighbors(X, n_neighbors=3, metric="l1"), "a metric of the CPU's")
    raises(gnomon.DeviceError, lambda: gnomon.join(X, radius=3, metric="l1"), "a join by a metric of the CPU's")
    raises(gnomon.DeviceError, lambda: gnomon.join(X, radius=3, device="cpu"), "a join on the CPU")
    raises(gnomon.DeviceError, lambda: gnomon.svd(X, 3, device="cpu"), "a factorisation on the CPU")
    raises(ValueError, lambda: gnomon.svd(X, 21), "a rank above the rows'")
    raises(ValueError, lambda: gnomon.svd(X.clone().requires_grad_(), 3), "svd of a gradient")
    raises(TypeError, lambda: gnomon.neighbors(X, n_neighbors=3, metric="jaccard"), "dense sets")
    raises(ValueError, lambda: gnomon.sketch(X[0], S), "one dimension")
    raises(ValueError, lambda: gnomon.sketch(X, S, out=torch.empty(20, 31, device="cuda")), "the output's shape")
    raises(ValueError, lambda: gnomon.sketch(X, S, out=torch.empty(20, 32, device="cuda", dtype=torch.float16)), "its type")
    raises(ValueError, lambda: gnomon.sketch(X.to(torch.complex64), S), "complex")
    bad = X.clone()
    bad[3, 17] = float("nan")
    for call in (lambda: gnomon.sketch(bad, S), lambda: gnomon.svd(bad, 3), lambda: gnomon.neighbors(bad, n_neighbors=3),
                 lambda: gnomon.neighbors(X, bad, 3), lambda: gnomon.join(bad, radius=3)):
        text = raises(ValueError, call, "NaN")
        check("3" in text and "17" in text, text)
    check(gnomon.sketch(bad, S, allow_nonfinite=True)[3].isnan().all().item(), "NaN passes")
    if torch.cuda.device_count() > 1:
        other = X.to("cuda:1")
        check(gnomon.sketch(other, S).device == other.device, "the second GPU")
        raises(gnomon.DeviceError, lambda: gnomon.sketch(X, S, out=torch.empty(20, 32, device="cuda:1")), "two GPUs")


def searches():
    """Neighbours and pairs of points on the GPU: those of their copies on the host, which NumPy finds too."""
    X, Q = torch.randn(700, 33, device="cuda"), torch.randn(90, 33, device="cuda")
    for dtype in (torch.float32, torch.float64, torch.float16):
        x, q = X.to(dtype), Q.to(dtype)
        for metric in ("l2", "cosine", "ip"):
            for some in (x, None, x[:3], q.cpu().numpy()):
                queries = None if some is None else some
                there = gnomon.neighbors(x, queries, 5, metric=metric)
                here = gnomon.neighbors(x.cpu().numpy(), some.cpu().numpy() if some is x or torch.is_tensor(some) else some,
                                        5, metric=metric, device="cpu")
                check((there.indices == here.indices).all() and (there.distances == here.distances).all(), "neighbours by",
                      metric, dtype, None if some is None else len(some))
    x, q = X.double().cpu().numpy(), Q.double().cpu().numpy()
    slow = np.sqrt(((q[:, None] - x[None]) ** 2).sum(2))
    found = gnomon.neighbors(X.t().contiguous().t(), Q, 5)
    check((found.indices == np.argsort(slow, axis=1, kind="stable")[:, :5]).all(), "neighbours beside NumPy")
    for radius in (6.0, 7.0):
        within = gnomon.neighbors(X, Q, radius=radius)
        check((np.diff(within.indptr) == (slow <= radius).sum(1)).all(), "within", radius)
        graph = gnomon.join(X, Q, radius=radius)
        dense = np.zeros((700, 90), bool)
        dense[graph.nonzero()] = True
        check((dense == (slow <= radius).T).all(), "a join beside NumPy", radius)
        alone, host = gnomon.join(X, radius=radius), gnomon.join(X.cpu().numpy(), radius=radius, device="cpu")
        check(abs(alone - host).nnz == 0 and alone.nnz == host.nnz, "a join with itself", radius)
        check(abs(gnomon.join(X.cpu().numpy(), Q, radius=radius) - graph).nnz == 0, "one side on the host")
    bits = torch.randint(0, 256, (300, 16), device="cuda", dtype=torch.uint8)
    check((gnomon.neighbors(bits, n_neighbors=4, metric="hamming").distances
           == gnomon.neighbors(bits.cpu().numpy(), n_neighbors=4, metric="hamming", device="cpu").distances).all(), "bits")
    near = gnomon.join(X, radius=6.0, recall=0.9, method="lsh", random_state=3)
    check(near.nnz >= 0.9 * gnomon.join(X, radius=6.0).nnz, "a join by hashing")
    for shown in (Interface(X), Interface(X, stream=1), DLPack(X)):
        check((gnomon.neighbors(shown, Q, 5).indices == found.indices).all(), "neighbours of", type(shown).__name__)
    allowed = np.arange(700) % 3 == 0
    check((gnomon.neighbors(X, Q, 5, allowed=allowed).indices % 3 == 0).all(), "allowed points")


def factors():
    """U and Vt are on the GPU, with the bytes of the factors of a copy on the host."""
    X = torch.randn(500, 6, device="cuda") @ torch.randn(6, 200, device="cuda") + 1e-3 * torch.randn(500, 200, device="cuda")
    for dtype in (torch.float32, torch.float64):
        for how in ({}, {"center": True}, {"tol": 0.01}, {"single_pass": True}, {"n_iter": 1, "kind": "sjlt"}):
            x, rank = X.to(dtype), 8 if "tol" not in how else 20
            there = gnomon.svd(x, rank, random_state=1, **how)
            here = gnomon.svd(x.cpu().numpy(), rank, random_state=1, device="cuda", **how)
            U, s, Vt = there
            check(U.is_cuda and Vt.is_cuda and U.dtype == dtype and isinstance(s, np.ndarray), dtype, how, "factors stay")
            if "center" in how:  # a matrix there is centred as it lies, one of the host's as its blocks come
                limit = 1e-5 if dtype == torch.float32 else 1e-12
                check(np.allclose(s, here.s, rtol=0, atol=limit * s[0]), dtype, how, "the same values from the host", s - here.s)
            else:
                check(U.cpu().numpy().tobytes() == here.U.tobytes() and Vt.cpu().numpy().tobytes() == here.Vt.tobytes()
                      and (s == here.s).all(), dtype, how, "bytes of the same factors from the host")
            less = x.double() - (x.double().mean(0) if "center" in how else 0)
            rest = (less - (U.double() * torch.from_numpy(s).cuda()) @ Vt.double()).norm().item()
            check(rest <= there.certificate.residual_bound * 1.001, dtype, how, "the bound", rest)
    exact = torch.linalg.svdvals(X.double())[:6].cpu().numpy()
    check(np.allclose(gnomon.svd(X.double(), 6).s, exact, rtol=1e-6), "singular values beside PyTorch's")
    U, s, Vt = gnomon.svd(X, tol=0.01)
    check(U.is_cuda and U.shape[1] == len(s) == Vt.shape[0] < 20, "a tolerance alone")
    for shown in (Interface(X), DLPack(X)):
        one = gnomon.svd(shown, 6)
        check(isinstance(one.U, np.ndarray) and np.allclose(one.s, gnomon.svd(X, 6).s), "svd of", type(shown).__name__)


def order():
    """Searches, joins and factorisations read what the caller's stream is still to write."""
    X = torch.randn(3000, 64, device="cuda")
    expected = gnomon.neighbors(X, n_neighbors=3), gnomon.join(X, radius=7.5), gnomon.svd(X, 5)
    small = gnomon.neighbors(X, X[:4], 3)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()

    def late():
        x = torch.zeros_like(X)
        stream.synchronize()
        torch.cuda._sleep(200_000_000)
        x.copy_(X)
        return x

    with torch.cuda.stream(stream):
        check((gnomon.neighbors(late(), n_neighbors=3).indices == expected[0].indices).all(), "neighbours in order")
        x = late()
        check((gnomon.neighbors(x, x[:4], 3).indices == small.indices).all(), "a few queries in order")
        x = late()
        check((gnomon.neighbors(x.cpu().numpy(), x, 3).indices == gnomon.neighbors(X.cpu().numpy(), X, 3).indices).all(),
              "queries alone in order")
        check(abs(gnomon.join(late(), radius=7.5) - expected[1]).nnz == 0, "a join in order")
        check(torch.equal(gnomon.svd(late(), 5).U, expected[2].U), "a factorisation in order")
        shown = Interface(late(), stream=stream.cuda_stream)
        check((gnomon.neighbors(shown, n_neighbors=3).indices == expected[0].indices).all(), "an interface's stream")
        check((gnomon.neighbors(DLPack(late()), n_neighbors=3).indices == expected[0].indices).all(), "DLPack's stream")
        check((gnomon.svd(DLPack(late()), 5).s == expected[2].s).all(), "DLPack's stream, svd")


def streams():
    """The work stands behind what the caller's stream has to do, and before what comes after; nothing waits for it."""
    S = gnomon.operator(256, 100000, kind="rademacher")
    X, zero = torch.randn(64, 100000, device="cuda"), torch.zeros(64, 100000, device="cuda")
    expected = gnomon.sketch(X, S, allow_nonfinite=True)
    torch.cuda.synchronize()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for _ in range(3):
                late, out = zero.clone(), torch.empty(64, 256, device="cuda")
                stream.synchronize()
                torch.cuda._sleep(200_000_000)  # a tenth of a second of the GPU
                late.copy_(X)
                begun = time.perf_counter()
                gnomon.sketch(late, S, out=out, allow_nonfinite=True)
                after = out.clone()
                took = time.perf_counter() - begun
                late.zero_()
                busy = not stream.query()
            stream.synchronize()
            check(torch.equal(after, expected), "order on", stream)
            check(busy and took < 0.05, "the call waits for the GPU on", stream, took)


def copied_bytes(profile):
    """How much passed between host and GPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    return sum(int(event["args"]["bytes"]) for event in events if event.get("cat") == "gpu_memcpy"
               and ("HtoD" in event["name"] or "DtoH" in event["name"]))


def no_host_copy():
    """The profiler sees no copy between host and GPU, and PyTorch's memory is the output's alone."""
    from torch.profiler import ProfilerActivity, profile
    X, S = torch.randn(512, 200000, device="cuda"), gnomon.operator(512, 200000, kind="rademacher")
    gnomon.sketch(X, S)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        Y = gnomon.sketch(X, S, allow_nonfinite=True)
        torch.cuda.synchronize()
    kept = Y.numel() * 4
    check(torch.cuda.max_memory_allocated() - before <= kept + 512, "memory of PyTorch's beyond the output")
    names = [event.name for event in seen.events() if str(event.device_type).endswith("CUDA")]
    for name, call in (("neighbors", lambda: gnomon.neighbors(X, X[:64], 10)), ("svd", lambda: gnomon.svd(X[:, :9999], 10)),
                       ("join", lambda: gnomon.join(X, radius=600.0))):
        with profile(activities=[ProfilerActivity.CUDA]) as called:
            call()
            torch.cuda.synchronize()
        measured[name + "_copied_bytes"] = copied = copied_bytes(called)
        check(copied < 4 << 20, name, "copies between host and GPU", copied)  # answers, and a small problem's numbers
    with profile(activities=[ProfilerActivity.CUDA]) as called:
        gnomon.neighbors(X[:, :9999].cpu().numpy(), X[:64, :9999], 10)
        torch.cuda.synchronize()
    copied = copied_bytes(called)
    check(copied >= 4 * 512 * 9999, "the profiler sees the bytes of a copy", copied)
    check(bool(names), "the profiler sees the kernels")
    copies = [name for name in names if "HtoD" in name or "DtoH" in name or "Pageable" in name or "Pinned" in name]
    measured["copies"], measured["kernels"] = copies, sorted(set(names))
    check(not copies, "copies", copies)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:  # that it would see one
        X[:1].cpu()
        torch.cuda.synchronize()
    check(any("DtoH" in event.name for event in seen.events()), "the profiler sees a copy to the host")


def median(function, count=400):
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
        if len(times) % 50 == 0:
            torch.cuda.synchronize()
    return sorted(times)[count // 2] * 1e6


def overhead():
    """Of a small sketch: by the package, and by the C function with everything prepared, all only enqueued; with an output
    that is there, and with a new one of PyTorch's or CuPy's. The least of several medians, in turns. Before the profiler is
    used, which makes each launch dearer."""
    try:
        import cupy
    except ImportError:
        cupy = None
    X, S = torch.randn(8, 1024, device="cuda"), gnomon.operator(64, 1024, kind="rademacher")
    out = torch.empty(8, 64, device="cuda")
    options = _abi.gnomon_sketch_options()
    lib.gnomon_sketch_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.allow_nonfinite, options.device_stream = 1, torch.cuda.current_stream().cuda_stream or 1
    x = _abi.gnomon_matrix(X.data_ptr(), _abi.GNOMON_F32, _abi.GNOMON_DEVICE_MEMORY, 8, 1024, 1024, 1)
    y = _abi.gnomon_matrix(out.data_ptr(), _abi.GNOMON_F32, _abi.GNOMON_DEVICE_MEMORY, 8, 64, 64, 1)
    with lease(device="cuda:0") as ctx:
        call, arguments = lib.gnomon_sketch, (ctx.handle, S.handle, ctypes.byref(x), ctypes.byref(y), ctypes.byref(options))
        check(call(*arguments) == 0, "the C call")

        def made_for_c():
            y.data = torch.empty((8, 64), dtype=torch.float32, device=X.device).data_ptr()
            call(*arguments)

        calls = {"c": lambda: call(*arguments), "c_made": made_for_c}
        arrays = {"torch": (X, out)}
        if cupy is not None:
            arrays["cupy"] = cupy.asarray(X), cupy.asarray(out)
        for name, (a, b) in arrays.items():
            calls[name] = lambda a=a, b=b: gnomon.sketch(a, S, out=b, allow_nonfinite=True)
            calls[name + "_made"] = lambda a=a: gnomon.sketch(a, S, allow_nonfinite=True)
        turns = [{name: median(one) for name, one in calls.items()} for _ in range(9)]
    best = {name: min(turn[name] for turn in turns) for name in calls}
    measured["call_us"] = best
    print("a call in us:", ", ".join(f"{name} {figure:.1f}" for name, figure in best.items()))


def projector():
    try:
        from gnomon.torch import LinearProjector, Projector
    except ImportError:
        print("gnomon.torch is not there: left out")
        return
    pieces = {"a": torch.randn(8, 40, 30, device="cuda"), "b": torch.randn(8, 300, device="cuda").half()}
    p = Projector(1500, 128, 5, "rademacher")
    whole = torch.cat([piece.flatten(1).float() for piece in pieces.values()], 1)
    check(close(p.project(pieces, 0), p.project(whole, 0), 1e-5) and p.project(pieces, 0).is_cuda, "pieces")
    check(close(p.project(whole, 0).cpu(), p.project(whole.cpu(), 0), 1e-5), "the operator beside the CPU's")
    check(torch.equal(p.project(whole, 0)[:3], p.project(whole[:3], 0)), "the same whatever the batch")
    a, b = torch.randn(8, 5, 40, device="cuda"), torch.randn(8, 5, 30, device="cuda")
    layer = LinearProjector(40, 30, 8, 6, 3, kind_in="sjlt", kind_out="gaussian")
    check(close(layer.project(a, b), layer.project(a.cpu(), b.cpu()).cuda(), 1e-4), "a linear layer")


def main():
    begun = time.perf_counter()
    for part in (overhead, same_bytes, sparse_rows, other_libraries, cupy_arrays, bad_input, searches, factors, order, streams,
                 no_host_copy, projector):
        try:
            part()
        except Exception:
            traceback.print_exc()
            check(False, part.__name__, "ended early")
    measured.update(device=torch.cuda.get_device_name(), torch=torch.__version__, seconds=time.perf_counter() - begun,
                    passed=passed, failed=failed)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            json.dump(measured, file, indent=1)
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
