"""Factorisation of sparse rows on a GPU beside the same algorithm by cuSPARSE and cuSOLVER (PyTorch).

usage: svd_sparse.py [--json FILE] [--rows N] [--cols D] [--each E] [--gib M]      needs PyTorch, SciPy and a GPU

N rows (1,000,000) of D columns (2,000,000) with about E (200) nonzeros each, drawn by the law of csr.py; rank 100,
10 more columns, two iterations, centred and not. The library may take M (16) GiB of the GPU's memory
(GNOMON_CUDA_MEMORY), its rows lie on the host, and its time is that of the whole call. PyTorch's rows and their transpose
lie in the GPU's memory beforehand. The residuals are those of the library's test vectors: estimates of the Frobenius
norm of what is left, by 10 normal vectors.
"""
import argparse
import json
import os
import statistics
import threading
import time

import torch

from csr import Rows, zipf

RANK, OVER, ITERATIONS = 100, 10, 2


class Peak(threading.Thread):
    """The most memory in use on the GPU, beyond what was in use before, looked at every few milliseconds."""

    def __init__(self, before):
        super().__init__(daemon=True)
        self.before, self.most, self.ended = before, 0, threading.Event()
        self.start()

    @staticmethod
    def used():
        free, total = torch.cuda.mem_get_info()
        return total - free

    def run(self):
        while not self.ended.wait(0.005):
            self.most = max(self.most, self.used() - self.before)

    def end(self):
        self.ended.set()
        self.join()
        return self.most


def peer(x, xt, mean):
    """Randomized subspace iteration, every product by cuSPARSE, every factorisation by cuSOLVER."""
    def times(w):
        y = torch.sparse.mm(x, w)
        return y if mean is None else y - mean @ w

    def back(w):
        y = torch.sparse.mm(xt, w)
        return y if mean is None else y - mean[:, None] * w.sum(0)
    q = torch.linalg.qr(times(torch.randn(x.shape[1], RANK + OVER, device="cuda")))[0]
    for _ in range(ITERATIONS):
        z = torch.linalg.qr(back(q))[0]
        q = torch.linalg.qr(times(z))[0]
    right, small = torch.linalg.qr(back(q))
    u, s, vt = torch.linalg.svd(small.T, full_matrices=False)
    return (q @ u)[:, :RANK], s[:RANK], (vt @ right.T)[:RANK]


def left_over(x, mean, u, s, vt):
    """Estimate of the Frobenius norm of what is left."""
    g = torch.Generator(device="cuda").manual_seed(99)
    w = torch.randn(x.shape[1], 10, device="cuda", generator=g)
    y = torch.sparse.mm(x, w)
    if mean is not None:
        y -= mean @ w
    y -= u @ (s[:, None] * (vt @ w))
    return float(y.double().norm() / 10 ** 0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--cols", type=int, default=2000000)
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--gib", type=int, default=16)
    given = parser.parse_args()
    os.environ["GNOMON_CUDA_MEMORY"] = str(given.gib << 10)  # read when the plugin opens the GPU
    import gnomon
    torch.backends.cuda.matmul.allow_tf32 = False
    x = zipf(given.rows, given.cols, given.each, 5)
    host = Rows(x)
    del x
    gnomon.sketch(torch.zeros(4, 64, device="cuda"), 16)  # opens the GPU
    torch.cuda.empty_cache()
    before, results, found = Peak.used(), [], {}  # the library keeps memory between its calls
    for center in (False, True):
        ms = []
        watch = Peak(before)
        for run in range(2):
            begin = time.perf_counter()
            found[center] = gnomon.svd(host, RANK, n_oversamples=OVER, n_iter=ITERATIONS, center=center, device="cuda")
            ms.append(1e3 * (time.perf_counter() - begin))
        results.append({"who": "gnomon", "center": center, "ms": min(ms), "first_ms": ms[0], "peak_bytes": watch.end(),
                        "limit_bytes": given.gib << 30})
        print(results[-1], flush=True)
    x = zipf(given.rows, given.cols, given.each, 5)
    count = len(x.values())
    # The transpose by a stable sort of the columns.
    order = x.col_indices().argsort(stable=True)
    counts = torch.bincount(x.col_indices(), minlength=given.cols)
    crow = torch.zeros(given.cols + 1, dtype=torch.int64, device="cuda")
    torch.cumsum(counts, 0, out=crow[1:])
    of = torch.repeat_interleave(torch.arange(given.rows, device="cuda"), x.crow_indices().diff())
    xt = torch.sparse_csr_tensor(crow, of[order], x.values()[order], size=(given.cols, given.rows))
    sums = torch.zeros(given.cols, device="cuda", dtype=torch.float64).index_add_(0, x.col_indices(), x.values().double())
    del order, of, counts, crow
    for center in (False, True):
        mean = (sums / given.rows).float() if center else None
        ms = []
        try:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            for run in range(3):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                u, s, vt = peer(x, xt, mean)
                torch.cuda.synchronize()
                ms.append(1e3 * (time.perf_counter() - begin))
            record = {"who": "cuSPARSE and cuSOLVER", "center": center, "ms": statistics.median(ms), "first_ms": ms[0],
                      "peak_bytes": torch.cuda.max_memory_allocated(), "left": left_over(x, mean, u, s, vt)}
            del u, s, vt
        except RuntimeError as error:
            record = {"who": "cuSPARSE and cuSOLVER", "center": center, "failed": str(error).splitlines()[0][:200]}
        results.append(record)
        print(record, flush=True)
        ours = found[center]
        parts = [torch.from_numpy(part).float().cuda() for part in (ours.U, ours.s, ours.Vt)]
        results[int(center)]["left"] = left_over(x, mean, *parts)
        print("gnomon leaves", results[int(center)]["left"], flush=True)
        del parts
    if given.json:
        record = {"program": "svd_sparse", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count, "rows": given.rows,
                  "cols": given.cols, "nonzeros": count, "rank": RANK, "iterations": ITERATIONS,
                  "commit": os.environ.get("GNOMON_COMMIT", ""), "results": results}
        with open(given.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
