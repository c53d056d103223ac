"""Jobs on one GPU and on all of one host: times, their ratio, how long each GPU was at work, and whether the bytes agree.

usage: several.py RECORD.json [--rounds 7] [--scale 1] [--only links|join|search|project|gemm|svd|sparse|fp64|hosvd]

Needs NumPy, PyTorch and two GPUs. GNOMON_LIBRARY and GNOMON_PLUGIN_DIR say where library and plugin are. First the links
are measured, each alone and all at once: page-locked memory to each GPU and back, and GPU 0 to the others. Then each case
runs on cuda:0, cuda:all and cuda:0 again, in turns, by the host's clock from call to return. 'spread' is device memory
that is one range of addresses, the first half on GPU 0, the second on GPU 1 (cuMemMap). A case's share of a GPU is the
mean of what NVML gives as its utilization while the case is repeated for 0.6 s. Of 'spread' points the one GPU has all in
its own memory."""
import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "bindings", "python"))
import numpy as np
import torch

import gnomon
from gnomon import _abi
from gnomon._context import owned_context
from gnomon._library import lib

PHASES = ("project", "power", "orthonormalise", "small", "certify")
phases = [0.0] * len(PHASES)  # of the last factorisation, in seconds, by the device's events
FLOATS = {4: _abi.GNOMON_F32, 8: _abi.GNOMON_F64}


def view(address, shape, size, there):
    return _abi.gnomon_matrix(data=address, dtype=FLOATS[size], memory=_abi.GNOMON_DEVICE_MEMORY if there else _abi.GNOMON_HOST,
                              rows=shape[0], cols=shape[1], row_stride=shape[1], col_stride=1)


def view_of(x):
    if isinstance(x, Spread):
        return view(x.address, x.shape, 4, True)
    if isinstance(x, np.ndarray):
        return view(x.ctypes.data, x.shape, x.itemsize, False)
    return view(x.data_ptr(), x.shape, x.element_size(), x.is_cuda)


class Spread:
    """Rows of fp32 in one range of addresses, spread evenly over the GPUs' memories."""

    def __init__(self, shape):
        cuda = ctypes.CDLL("libcuda.so.1")

        class Location(ctypes.Structure):
            _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]

        class Properties(ctypes.Structure):
            _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("meta", ctypes.c_void_p),
                        ("flags", ctypes.c_ubyte * 8)]

        class Access(ctypes.Structure):
            _fields_ = [("location", Location), ("flags", ctypes.c_int)]

        def call(name, *arguments):
            error = getattr(cuda, name)(*arguments)
            if error:
                raise RuntimeError(f"{name}: error {error}")

        count, self.shape = torch.cuda.device_count(), shape
        for i in range(count):
            torch.zeros(1, device=f"cuda:{i}")
        unit = 2 << 20
        part = shape[0] // count // 32 * 32 * shape[1] * 4
        if part % unit or shape[0] % (32 * count):
            raise ValueError("a GPU's rows must be a multiple of 2 MiB")
        address = ctypes.c_uint64()
        call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(part * count), ctypes.c_size_t(0), ctypes.c_uint64(0),
             ctypes.c_uint64(0))
        for i in range(count):
            handle, properties = ctypes.c_uint64(), Properties(type=1, location=Location(1, i))
            call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(part), ctypes.byref(properties), ctypes.c_uint64(0))
            call("cuMemMap", ctypes.c_uint64(address.value + i * part), ctypes.c_size_t(part), ctypes.c_size_t(0), handle,
                 ctypes.c_uint64(0))
        access = (Access * count)(*(Access(Location(1, i), 3) for i in range(count)))
        call("cuMemSetAccess", address, ctypes.c_size_t(part * count), access, ctypes.c_size_t(count))
        self.address, self.cuda = address.value, cuda

    def _copy(self, name, *arguments):
        torch.cuda.synchronize()
        error = getattr(self.cuda, name)(*arguments)
        if error:
            raise RuntimeError(f"{name}: error {error}")

    def fill(self, x):
        x = x.contiguous()
        self._copy("cuMemcpy", ctypes.c_uint64(self.address), ctypes.c_uint64(x.data_ptr()), ctypes.c_size_t(x.numel() * 4))
        return self

    def numpy(self):
        out = np.empty(self.shape, np.float32)
        self._copy("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), ctypes.c_uint64(self.address), ctypes.c_size_t(out.nbytes))
        return out


def arrays_of(x):
    """Copies, on the host."""
    if isinstance(x, tuple):
        return [part for one in x for part in arrays_of(one)]
    if isinstance(x, torch.Tensor):
        torch.cuda.synchronize()
        x = x.cpu()
    return [x.copy() if isinstance(x, np.ndarray) else x.numpy().copy()]


def clear(y):
    if isinstance(y, Spread):
        y._copy("cuMemsetD8_v2", ctypes.c_uint64(y.address), ctypes.c_ubyte(255), ctypes.c_size_t(y.shape[0] * y.shape[1] * 4))
    elif isinstance(y, tuple):
        for one in y:
            clear(one)
    elif y is not None:
        y.fill(np.nan) if isinstance(y, np.ndarray) else y.fill_(float("nan"))
    torch.cuda.synchronize()


def same(a, b):
    return len(a) == len(b) and all(x.nbytes == y.nbytes and np.array_equal(x.reshape(-1).view(np.uint8), y.reshape(-1).view(np.uint8))
                                    for x, y in zip(a, b))


# ---- jobs: what they return brings the result out of the library's memory, which is not within the time ----


def check(context, status):
    if status:
        raise RuntimeError(lib.gnomon_last_error(context.handle).decode())


def sketcher(op, x, y, allow):
    options = _abi.gnomon_sketch_options()
    lib.gnomon_sketch_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.allow_nonfinite = allow
    a, b = view_of(x), view_of(y)

    def run(context, kept=(x, y)):
        check(context, lib.gnomon_sketch(context.handle, op.handle, ctypes.byref(a), ctypes.byref(b), ctypes.byref(options)))
        return lambda: y
    return run


def multiplier(x, w, y):
    a, b, c = view_of(x), view_of(w), view_of(y)

    def run(context, kept=(x, w, y)):
        check(context, lib.gnomon_gemm(context.handle, ctypes.byref(a), ctypes.byref(b), ctypes.byref(c), None))
        return lambda: y
    return run


class Csr:
    """Sparse rows whose columns are drawn by a power law, as words are; rows of very different lengths."""

    def __init__(self, rows, cols, each, draw, dtype=torch.float32, locked=False):
        counts = (-torch.rand(rows, device="cuda:0", generator=draw).clamp(min=1e-6).log() * each).long() + 1
        offsets = torch.zeros(rows + 1, dtype=torch.int64)
        offsets[1:] = counts.cumsum(0).cpu()
        self.count, self.shape = int(offsets[-1]), (rows, cols)

        def host(x):
            return x.cpu().pin_memory() if locked else x.cpu()

        drawn = [(torch.rand(min(1 << 26, self.count - at), device="cuda:0", generator=draw), min(1 << 26, self.count - at))
                 for at in range(0, self.count, 1 << 26)]
        self.indices = host(torch.cat([(u ** 3 * cols).long().clamp(max=cols - 1).cpu() for u, _ in drawn]))
        self.values = host(torch.cat([torch.randn(n, device="cuda:0", generator=draw).to(dtype).cpu() for _, n in drawn]))
        self.offsets = host(offsets)

    def view(self):
        return _abi.gnomon_csr(rows=self.shape[0], cols=self.shape[1], offsets=ctypes.cast(self.offsets.data_ptr(), ctypes.POINTER(ctypes.c_int64)),
                               indices=ctypes.cast(self.indices.data_ptr(), ctypes.POINTER(ctypes.c_int64)), values=self.values.data_ptr(),
                               dtype=FLOATS[self.values.element_size()])


def factoriser(x, rank, power, u, vt, dtype=None, **members):
    options = _abi.gnomon_svd_options()
    lib.gnomon_svd_options_init(ctypes.byref(options), ctypes.sizeof(options))
    sparse = isinstance(x, Csr)
    a, left, right = x.view() if sparse else view_of(x), view_of(u), view_of(vt)
    factor = lib.gnomon_svd_csr if sparse else lib.gnomon_svd_dense
    options.rank, options.power = rank, power
    options.u, options.vt = ctypes.pointer(left), ctypes.pointer(right)
    if dtype is not None:
        options.dtype = dtype
    for name, value in members.items():
        setattr(options, name, value)

    def run(context, kept=(x, u, vt)):
        found = _abi.gnomon_svd(struct_size=ctypes.sizeof(_abi.gnomon_svd))
        check(context, factor(context.handle, ctypes.byref(a), ctypes.byref(options), ctypes.byref(found)))

        def take():
            s = np.ctypeslib.as_array(found.s, (rank,)).copy()
            bounds = np.array([found.norm, found.residual_bound, found.spectral_bound])
            phases[:] = [getattr(found, name + "_seconds") for name in PHASES]
            lib.gnomon_svd_free(context.handle, ctypes.byref(found))
            return u, vt, s, bounds
        return take
    return run


def tensor_factoriser(x, rank, device_of, **options):
    """Through the package, whose contexts are its own: device_of says which."""
    def run(context):
        found = gnomon.hosvd(x, rank, device=device_of[context.handle.value if hasattr(context.handle, "value") else context.handle], **options)
        return lambda: (np.ascontiguousarray(found.core), *(np.ascontiguousarray(f) for f in found.factors), np.array([found.norm, found.residual]))
    return run


def searcher(base, queries, k):
    options = _abi.gnomon_search_options()
    lib.gnomon_search_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.metric, options.k = _abi.GNOMON_L2, k
    a, b = view_of(base), view_of(queries)

    def run(context, kept=(base, queries)):
        found = _abi.gnomon_neighbors(struct_size=ctypes.sizeof(_abi.gnomon_neighbors))
        check(context, lib.gnomon_neighbors_exact(context.handle, ctypes.byref(a), ctypes.byref(b), ctypes.byref(options),
                                                  ctypes.byref(found)))

        def take():
            count = queries.shape[0] * k
            result = (np.ctypeslib.as_array(found.ids, (count,)).copy(), np.ctypeslib.as_array(found.distances, (count,)).copy())
            lib.gnomon_neighbors_free(context.handle, ctypes.byref(found))
            return result
        return take
    return run


def join_options(threshold):
    options = _abi.gnomon_join_options()
    lib.gnomon_join_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.metric, options.threshold = _abi.GNOMON_L2, threshold
    return options


def joiner(p, threshold):
    options, a = join_options(threshold), view_of(p)

    def run(context, kept=p):
        pairs = _abi.gnomon_pairs(struct_size=ctypes.sizeof(_abi.gnomon_pairs))
        side = _abi.gnomon_join_side(dense=ctypes.pointer(a))
        check(context, lib.gnomon_join_collect_sides(context.handle, ctypes.byref(side), None, ctypes.byref(options), 0,
                                                     ctypes.byref(pairs), None))

        def take():
            result = (np.ctypeslib.as_array(pairs.columns, (pairs.count,)).copy(),
                      np.ctypeslib.as_array(pairs.distances, (pairs.count,)).copy(),
                      np.ctypeslib.as_array(pairs.offsets, (pairs.rows + 1,)).copy())
            lib.gnomon_pairs_free(context.handle, ctypes.byref(pairs))
            return result
        return take
    return run


def counter(p, threshold):
    """Pairs are counted alone: neither brought nor kept."""
    options, a = join_options(threshold), view_of(p)

    def run(context, kept=p):
        told = _abi.gnomon_join_result(struct_size=ctypes.sizeof(_abi.gnomon_join_result))
        check(context, lib.gnomon_join(context.handle, ctypes.byref(a), None, ctypes.byref(options), ctypes.byref(told)))
        return lambda: np.array([told.pairs])
    return run


# ---- measuring ----


class Load(threading.Thread):
    """The GPUs' utilization, sampled."""

    def __init__(self):
        super().__init__(daemon=True)
        self.samples, self.stopped = [], threading.Event()

    def run(self):
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        nvml.nvmlInit_v2()
        handles = []
        for i in range(torch.cuda.device_count()):
            handle = ctypes.c_void_p()
            nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle))
            handles.append(handle)
        rates = (ctypes.c_uint * 2)()
        while not self.stopped.wait(0.05):
            row = []
            for handle in handles:
                nvml.nvmlDeviceGetUtilizationRates(handle, rates)
                row.append(rates[0])
            self.samples.append(row)

    def end(self):
        self.stopped.set()
        self.join()
        kept = self.samples[len(self.samples) // 4:]
        return [sum(column) / len(column) / 100 for column in zip(*kept)] if kept else None


def timed(run, context):
    begin = time.perf_counter()
    take = run(context)
    elapsed = time.perf_counter() - begin
    return elapsed, take()


def case(name, run, contexts, rounds, y=None, alone=None, **facts):
    """alone: what one GPU runs, where that is another call with the same result; y: the output."""
    one, all_, begin, alone = [], [], time.perf_counter(), alone or run
    clear(y)
    first = arrays_of(timed(alone, contexts[0])[1])
    clear(y)
    agree = same(arrays_of(timed(run, contexts[1])[1]), first)
    del first
    inside = []
    for _ in range(rounds):
        one.append(timed(alone, contexts[0])[0])
        inside = [list(phases)]
        all_.append(timed(run, contexts[1])[0])
        inside.append(list(phases))
        if time.perf_counter() - begin > 1.2:
            break
    load = Load()
    load.start()
    until = time.perf_counter() + 0.6
    while time.perf_counter() < until:
        run(contexts[1])()
    shares = load.end()
    result = {"name": name, **facts, "one": one, "all": all_, "ratio": float(np.median(one) / np.median(all_)), "same_bytes": agree,
              "shares": shares}
    if name in ("svd", "sparse", "fp64"):
        result["phases"] = inside
    print(name, f"{np.median(one) * 1e3:.2f} ms, {np.median(all_) * 1e3:.2f} ms, ratio {result['ratio']:.3f}, same {agree}, shares",
          shares, flush=True)
    return result


def links(count):
    """GB/s of copies of 512 MiB."""
    size, repeats = 1 << 29, 4
    pinned = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(count)]
    there = [torch.empty(size, dtype=torch.uint8, device=f"cuda:{i}") for i in range(count)]
    away = [torch.empty(size, dtype=torch.uint8, device=f"cuda:{i}") for i in range(count)]
    streams = [torch.cuda.Stream(device=f"cuda:{i}") for i in range(count)]

    def rate(copies):
        def go(n):
            for _ in range(n):
                for to, source, i in copies:
                    with torch.cuda.stream(streams[i]):
                        to.copy_(source, non_blocking=True)
            for i in range(count):
                torch.cuda.synchronize(i)
        go(1)
        begin = time.perf_counter()
        go(repeats)
        return size * repeats * len(copies) / (time.perf_counter() - begin) / 1e9

    up, down = [(there[i], pinned[i], i) for i in range(count)], [(pinned[i], there[i], i) for i in range(count)]
    found = {"up_alone": [rate([c]) for c in up], "up_together": rate(up), "down_alone": [rate([c]) for c in down],
             "down_together": rate(down), "peer": [rate([(there[i], away[0], i)]) for i in range(1, count)]}
    print("links, GB/s", found, flush=True)
    return found


def segments():
    """What eight products of doubles of cuBLAS cost beside one of the same rows, and whether their bits are the same: as PyTorch calls it."""
    found = []
    for n, k in ((16384, 522), (32768, 138), (8192, 1034)):
        a, w = (torch.randn(n, cols, device="cuda", dtype=torch.float64) for cols in (n, k))
        out = torch.empty(n, k, device="cuda", dtype=torch.float64)
        for name, x in (("A w", a), ("A^T w", a.T)):
            def whole():
                torch.mm(x, w, out=out)

            def parts():
                for i in range(8):
                    torch.mm(x[n * i // 8:n * (i + 1) // 8], w, out=out[n * i // 8:n * (i + 1) // 8])
            times = {whole: [], parts: []}
            for _ in range(6):
                for f in times:
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    for _ in range(3):
                        f()
                    torch.cuda.synchronize()
                    times[f].append((time.perf_counter() - begin) / 3)
            whole()
            y = out.clone()
            parts()
            found.append({"n": n, "columns": k, "product": name, "whole": sorted(times[whole])[3], "parts": sorted(times[parts])[3],
                          "same_bits": torch.equal(y, out)})
        del a, w, out
    torch.cuda.empty_cache()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("record")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=int, default=1, help="divides every number of points")
    parser.add_argument("--only", help="these cases alone, added to those that the record has")
    a = parser.parse_args()
    count = torch.cuda.device_count()
    record = {"benchmark": "several", "gpu": torch.cuda.get_device_name(0), "gpus": count, "commit": os.environ.get("GNOMON_COMMIT", ""),
              "processor": platform.processor(), "cores": len(os.sched_getaffinity(0)), "torch": torch.__version__,
              "driver": subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                                       text=True).stdout.split("\n")[0], "results": []}

    def keep(**members):
        record.update(members)
        with open(a.record, "w") as file:
            json.dump(record, file, indent=1)

    if a.only and os.path.exists(a.record):
        with open(a.record) as file:
            record = json.load(file)

    contexts = [owned_context(device="cuda:0"), owned_context(device="cuda:all")]
    if a.only in (None, "links") or "links" not in record:
        keep(links=links(count))
        torch.cuda.empty_cache()
    results = record["results"]

    def add(*words, **facts):
        try:
            results.append(case(*words, contexts, a.rounds, **facts))
        except Exception as error:
            print(words[0], "failed:", error, flush=True)
            results.append({"name": words[0], **facts, "failed": str(error)})
        keep()

    draw = torch.Generator(device="cuda:0").manual_seed(1)
    # joins: points of clusters of four, so that each has three partners
    for n in (200000 // a.scale, 1000000 // a.scale) if a.only in (None, "join") else ():
        d = 128
        centres = torch.randn(n // 4, d, device="cuda:0", generator=draw).repeat(4, 1)
        points = (centres + 0.05 * torch.randn(n, d, device="cuda:0", generator=draw)).contiguous()
        add("join", joiner(points.cpu().numpy(), 1.2), n=n, d=d, place="host")
        add("join", joiner(points, 1.2), n=n, d=d, place="GPU 0")
        add("join", counter(points, 1.2), n=n, d=d, place="GPU 0", counted=True)
        del centres, points
    # searches
    for n in ((1 << 20) // a.scale, (1 << 22) // a.scale) if a.only in (None, "search") else ():
        base, locked = torch.randn(n, 128, device="cuda:0", generator=draw), torch.empty(n, 128, pin_memory=True)
        locked.copy_(base)
        queries = torch.randn(10000, 128, device="cuda:0", generator=draw)
        there, asked = base.cpu().numpy(), queries.cpu().numpy()
        spread, on_first = Spread((n, 128)).fill(base), searcher(base, queries, 10)
        add("search", on_first, n=n, d=128, queries=10000, k=10, place="GPU 0")
        add("search", searcher(spread, queries, 10), alone=on_first, n=n, d=128, queries=10000, k=10, place="spread")
        add("search", searcher(there, asked, 10), n=n, d=128, queries=10000, k=10, place="host")
        add("search", searcher(locked, asked, 10), n=n, d=128, queries=10000, k=10, place="page-locked")
        add("search", searcher(locked, asked[:100].copy(), 10), n=n, d=128, queries=100, k=10, place="page-locked")
        del base, queries, there, asked, locked
    # products
    if a.only in (None, "gemm"):
        m, k, n = 131072 // a.scale, 4096, 1024
        x, w = torch.randn(m, k, device="cuda:0", generator=draw), torch.randn(k, n, device="cuda:0", generator=draw)
        pinned, host, w_host = torch.empty(m, k, pin_memory=True), x.cpu().numpy(), w.cpu().numpy()
        pinned.copy_(x)
        spread, spread_y, y = Spread((m, k)).fill(x), Spread((m, n)), torch.empty(m, n, device="cuda:0")
        y_host, y_pinned = np.empty((m, n), np.float32), torch.empty(m, n, pin_memory=True)
        on_first = multiplier(x, w, y)
        add("gemm", multiplier(spread, w, spread_y), y=spread_y, alone=on_first, m=m, k=k, n=n, place="spread")
        add("gemm", multiplier(pinned, w, y_pinned), y=y_pinned, m=m, k=k, n=n, place="page-locked")
        add("gemm", multiplier(host, w_host, y_host), y=y_host, m=m, k=k, n=n, place="host")
        del x, w, pinned, host, w_host, spread, spread_y, y, y_host, y_pinned, on_first
        torch.cuda.empty_cache()
    # factorisations
    if a.only in (None, "svd"):
        n, rank = 32768 // a.scale, 512 // a.scale
        left, right = (torch.randn(n, 2 * rank, device="cuda:0", generator=draw) for _ in range(2))
        x = (left * (1 + torch.arange(2 * rank, device="cuda:0")) ** -1.0) @ right.T
        x += 0.01 * torch.randn(n, n, device="cuda:0", generator=draw)
        x = x.contiguous()
        u, vt = torch.empty(n, rank, device="cuda:0"), torch.empty(rank, n, device="cuda:0")
        spread, pinned, host = Spread((n, n)).fill(x), torch.empty(n, n, pin_memory=True), x.cpu().numpy()
        pinned.copy_(x)
        u_host, vt_host = np.empty((n, rank), np.float32), np.empty((rank, n), np.float32)
        for power in (6, 2):
            on_first = factoriser(x, rank, power, u, vt)
            add("svd", factoriser(spread, rank, power, u, vt), y=(u, vt), alone=on_first, n=n, rank=rank, power=power, place="spread")
            add("svd", on_first, y=(u, vt), n=n, rank=rank, power=power, place="GPU 0")
            add("svd", factoriser(pinned, rank, power, u_host, vt_host), y=(u_host, vt_host), n=n, rank=rank, power=power,
                place="page-locked")
            add("svd", factoriser(host, rank, power, u_host, vt_host), y=(u_host, vt_host), n=n, rank=rank, power=power, place="host")
        del left, right, x, u, vt, spread, pinned, host, u_host, vt_host, on_first
        torch.cuda.empty_cache()
    # sparse rows, in pageable and in page-locked memory
    for m, n, each, rank in ((2000000 // a.scale, 500000 // a.scale, 50, 128), (200000 // a.scale, 100000 // a.scale, 100, 100)) \
            if a.only in (None, "sparse") else ():
        u_host, vt_host = np.empty((m, rank), np.float32), np.empty((rank, n), np.float32)
        for locked in (False, True):
            x = Csr(m, n, each, draw, locked=locked)
            for power in (6, 2):
                add("sparse", factoriser(x, rank, power, u_host, vt_host), y=(u_host, vt_host), m=m, n=n, nonzeros=x.count, rank=rank,
                    power=power, place="page-locked" if locked else "host")
            del x
        del u_host, vt_host
    # in double precision
    if a.only in (None, "fp64"):
        keep(segments=segments())
        n, rank = 16384 // a.scale, 512 // a.scale
        x = torch.randn(n, n, device="cuda:0", generator=draw, dtype=torch.float64)
        pinned, host = torch.empty(n, n, dtype=torch.float64, pin_memory=True), x.cpu().numpy()
        pinned.copy_(x)
        u, vt = torch.empty(n, rank, device="cuda:0", dtype=torch.float64), torch.empty(rank, n, device="cuda:0", dtype=torch.float64)
        u_host, vt_host = np.empty((n, rank)), np.empty((rank, n))
        for power in (6, 2):
            for place, there, left, right in (("GPU 0", x, u, vt), ("page-locked", pinned, u_host, vt_host), ("host", host, u_host, vt_host)):
                add("fp64", factoriser(there, rank, power, left, right, _abi.GNOMON_F64), y=(left, right), n=n, rank=rank, power=power,
                    place=place)
        del x, pinned, host, u, vt, u_host, vt_host
        torch.cuda.empty_cache()
    # tensors
    if a.only in (None, "hosvd"):
        size, rank = 1024 // a.scale, 32
        x = torch.randn(size, size, size, device="cuda:0", generator=draw)
        pinned, host = torch.empty(size, size, size, pin_memory=True), x.cpu().numpy()
        pinned.copy_(x)
        del x
        torch.cuda.empty_cache()
        device_of = {c.handle.value if hasattr(c.handle, "value") else c.handle: name for c, name in zip(contexts, ("cuda:0", "cuda:all"))}
        for power in (0, 1):
            for place, there in (("page-locked", pinned.numpy()), ("host", host)):
                add("hosvd", tensor_factoriser(there, rank, device_of, n_iter=power), size=size, rank=rank, power=power, place=place)
        del pinned, host
    # projections
    if a.only not in (None, "project"):
        keep(finished=True)
        return
    n, d, k = 131072 // a.scale, 4096, 1024
    x = torch.randn(n, d, device="cuda:0", generator=draw)
    host, pinned = x.cpu().numpy(), torch.empty(n, d, pin_memory=True)
    pinned.copy_(x)
    spread, spread_y = Spread((n, d)).fill(x), Spread((n, k))
    y, y_host, y_pinned = torch.empty(n, k, device="cuda:0"), np.empty((n, k), np.float32), torch.empty(n, k, pin_memory=True)
    for kind in ("gaussian", "rademacher", "sjlt", "srht"):
        op = gnomon.operator(k, d, kind=kind, random_state=1)
        on_first = sketcher(op, x, y, 0)
        add("project", sketcher(op, spread, spread_y, 0), y=spread_y, alone=on_first, n=n, d=d, k=k, kind=kind, place="spread")
        add("project", on_first, y=y, n=n, d=d, k=k, kind=kind, place="GPU 0")
        if kind in ("gaussian", "sjlt"):
            add("project", sketcher(op, pinned, y_pinned, 0), y=y_pinned, n=n, d=d, k=k, kind=kind, place="page-locked")
            add("project", sketcher(op, host, y_host, 0), y=y_host, n=n, d=d, k=k, kind=kind, place="host")
    keep(finished=True)


if __name__ == "__main__":
    main()
