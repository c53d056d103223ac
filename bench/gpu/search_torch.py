"""Brute force by PyTorch beside bench/gpu/search.cu: a matrix of products in half precision, the norms added, topk; by pieces
of the base whose distances fit. Points are normal, the sizes the same.

usage: search_torch.py [--json FILE] [--runs R]      needs PyTorch and a GPU
"""
import argparse
import json
import os
import statistics
import time

import torch

JOBS = [(1, 128, 10), (100, 128, 10), (1000, 128, 10), (10000, 128, 10), (1000, 128, 1000), (10000, 128, 1000),
        (1000, 960, 10), (10000, 960, 10)]
BASE = 1000000
ROOM = 1 << 34  # bytes of distances at a time


def search(base, halves, queries, k):
    """Squared distances and ids of the k nearest, as far as fp16 tells."""
    found = []
    step = max(1, ROOM // (2 * base.shape[0]))
    for some in queries.split(step):
        score = torch.addmm(halves, some, base.T, alpha=-2)
        found.append(torch.topk(score, k, dim=1, largest=False))
    return found


def measure(queries, cols, k, runs):
    g = torch.Generator(device="cuda").manual_seed(1)
    base = torch.randn(BASE, cols, device="cuda", generator=g).half()
    asked = torch.randn(queries, cols, device="cuda", generator=g).half()
    halves = (base.float() ** 2).sum(1).half()[None, :]
    ms = []
    for run in range(-2, runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        search(base, halves, asked, k)
        torch.cuda.synchronize()
        if run >= 0:
            ms.append(1e3 * (time.perf_counter() - begin))
    return ms


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--json")
    p.add_argument("--runs", type=int, default=9)
    options = p.parse_args()
    results = []
    for queries, cols, k in JOBS:
        ms = measure(queries, cols, k, options.runs)
        print(f"torch {torch.__version__}: {queries} x {BASE} x {cols}, k {k}: {statistics.median(ms):.3f} ms", flush=True)
        results.append({"queries": queries, "base": BASE, "cols": cols, "k": k, "ms": statistics.median(ms), "least_ms": min(ms),
                        "runs": len(ms)})
    if options.json:
        record = {"program": "search_torch", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "commit": os.environ.get("GNOMON_COMMIT", ""), "results": results}
        with open(options.json, "w") as f:
            json.dump(record, f, indent=1)


if __name__ == "__main__":
    main()
