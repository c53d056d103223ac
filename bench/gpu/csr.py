"""Projection of sparse rows on a GPU beside the CPU and cuSPARSE's product with a materialised operator.

usage: csr.py [--json FILE] [--tfidf FILE.npz] [--small] [--runs R]      needs PyTorch, SciPy and a GPU

Rows: a file of SciPy's (TF-IDF of Debian's package descriptions), or, without --tfidf, rows of its size drawn by the
law of the second set; and 1,000,000 x 2,000,000 with 200 nonzeros a row, whose columns are floor(D^u) - 1 with u
uniform: Zipf's law. Times are medians of whole calls from Python, checks of the rows included:
  there   rows and sketch in the GPU's memory
  moved   both in pageable host memory, to the GPU and back
  cpu     the same on the CPU, on all cores
  spmm    torch.sparse.mm (cuSPARSE) of the rows and the dense operator, which is made beforehand
  spgemm  the same with the operator as sparse rows (kinds with few nonzeros a column); its result is sparse
The floor is one read of the nonzeros (12 bytes each) and row pointers and one write of the sketch, at the rate of a
copy in the same run.
"""
import argparse
import json
import os
import statistics
import time

import numpy as np
import scipy.sparse
import torch

import gnomon

KINDS = [("sjlt", {}), ("sjlt", {"nonzeros": 1}), ("very-sparse", {}), ("blockperm-sjlt", {}), ("rademacher", {}),
         ("srht", {}), ("achlioptas", {}), ("gaussian", {}), ("gaussian", {"precision": "fp16"})]
SPARSE = ("sjlt", "very-sparse", "blockperm-sjlt")
MOST_DENSE = 16 << 30  # bytes of a materialised operator


def measure(call, runs, seconds=1.5):
    """Milliseconds of calls, the first left out."""
    ms, began = [], time.perf_counter()
    for run in range(-1, runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        if run >= 0:
            ms.append(1e3 * (time.perf_counter() - begin))
        del result
        if run >= 2 and time.perf_counter() - began > seconds:
            break
    return statistics.median(ms)


def copy_rate():
    """Bytes a second that a copy reads and writes."""
    a = torch.empty(1 << 29, device="cuda", dtype=torch.float32)
    b = torch.empty_like(a)
    return 2 * a.numel() * 4 / (measure(lambda: b.copy_(a), 20) * 1e-3)


def zipf(n, d, each, seed):
    """n rows of 'each' nonzeros of d columns, sorted, without repetition."""
    g = torch.Generator(device="cuda").manual_seed(seed)
    parts, counts = [], []
    for begin in range(0, n, 1 << 18):
        rows = min(1 << 18, n - begin)
        u = torch.rand(rows, each, device="cuda", generator=g, dtype=torch.float64)
        cols = (d ** u).long().sub_(1).clamp_(0, d - 1).sort(dim=1).values
        keep = torch.ones_like(cols, dtype=torch.bool)
        keep[:, 1:] = cols[:, 1:] != cols[:, :-1]
        parts.append(cols[keep])
        counts.append(keep.sum(1))
    cols = torch.cat(parts)
    crow = torch.zeros(n + 1, dtype=torch.int64, device="cuda")
    torch.cumsum(torch.cat(counts), 0, out=crow[1:])
    values = torch.rand(len(cols), device="cuda", generator=g)
    return torch.sparse_csr_tensor(crow, cols, values, size=(n, d))


class Rows:
    """Sparse rows with 64-bit indices, as the library takes them; SciPy's are of 32 bits where those do, and are converted
    at every call."""

    format = "csr"

    def __init__(self, x):
        self.shape = tuple(x.shape)
        self.data, self.indices = x.values().cpu().numpy(), x.col_indices().cpu().numpy()
        self.indptr = x.crow_indices().cpu().numpy()


def dense(operator):
    """S^T, d x k, in the GPU's memory."""
    k, d = operator.shape
    if k * d * 4 > MOST_DENSE:
        return None
    return gnomon.adjoint(torch.eye(k, device="cuda"), operator).T.contiguous()


def try_to(call, runs):
    try:
        return measure(call, runs)
    except RuntimeError as error:  # cuSPARSE: not enough memory, or a size beyond 32 bits
        print("   ", str(error).splitlines()[0][:100])
        return None


def one(x, host, name, kind, parameters, k, runs, rate, peers):
    n, d = x.shape
    nonzeros = len(x.values())
    operator = gnomon.Operator(k, d, kind=kind, random_state=7, **parameters)
    floor = 1e3 * (nonzeros * 12 + (n + 1) * 8 + n * k * 4) / rate
    record = {"rows": name, "n": n, "d": d, "stored": nonzeros, "kind": kind, **parameters, "k": k, "floor_ms": floor}
    out = torch.empty(n, k, device="cuda")
    record["there_ms"] = measure(lambda: gnomon.sketch(x, operator, out=out), runs)
    record["there_unchecked_ms"] = measure(lambda: gnomon.sketch(x, operator, out=out, allow_nonfinite=True), runs)
    if peers:
        y = np.empty((n, k), np.float32)
        record["moved_ms"] = measure(lambda: gnomon.sketch(host, operator, out=y, device="cuda"), 5)
        z = np.empty((n, k), np.float32)
        record["cpu_ms"] = measure(lambda: gnomon.sketch(host, operator, out=z, device="cpu"), 5, 3)
        record["same_bits"] = bool(np.array_equal(y, z) and np.array_equal(out.cpu().numpy(), z))
        del y, z
        s = dense(operator)
        if s is not None:
            record["spmm_ms"] = try_to(lambda: torch.sparse.mm(x, s), runs)
            got = torch.sparse.mm(x, s)[:1000]
            record["off"] = float((got - out[:1000]).norm() / out[:1000].norm())
            del got
            if kind in SPARSE:
                rows = s.to_sparse_csr()
                record["spgemm_ms"] = try_to(lambda: torch.sparse.mm(x, rows), 5)
                del rows
        del s
    record["ratio"] = record["there_ms"] / floor
    shown = {key: f"{value:.3f}" if isinstance(value, float) and key != "off" else value for key, value in record.items()}
    print(" ".join(f"{key} {value}" for key, value in shown.items()), flush=True)
    return record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--tfidf")
    parser.add_argument("--small", action="store_true", help="the first rows alone, without peers")
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}, copies at {rate * 1e-9:.0f} GB/s, {os.cpu_count()} cores", flush=True)
    results = []
    if given.tfidf:
        loaded = scipy.sparse.load_npz(given.tfidf).tocsr().astype(np.float32)
        loaded.sort_indices()
        x = torch.sparse_csr_tensor(torch.from_numpy(loaded.indptr.astype(np.int64)),
                                    torch.from_numpy(loaded.indices.astype(np.int64)),
                                    torch.from_numpy(loaded.data), size=loaded.shape).cuda()
    else:
        x = zipf(63905, 28331, 62, 3)
    host = Rows(x)
    for kind, parameters in KINDS:
        for k in (256, 1024, 4096):
            results.append(one(x, host, "tfidf" if given.tfidf else "zipf 64k", kind, parameters, k, given.runs, rate,
                               not given.small and k == 1024))
    if not given.small:
        x = zipf(1000000, 2000000, 200, 5)
        host = Rows(x)
        for kind, parameters in KINDS:
            results.append(one(x, host, "zipf 1M", kind, parameters, 256, given.runs, rate, True))
    if given.json:
        record = {"program": "csr", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count, "cores": os.cpu_count(), "copy_bytes_per_second": rate,
                  "commit": os.environ.get("GNOMON_COMMIT", ""), "results": results}
        with open(given.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
