"""torch.svd_lowrank beside bench/gpu/svd.cu: the same sizes, and matrices of the same law, in single precision.

usage: svd_torch.py [--json FILE] [--n N ...] [--runs R]      needs PyTorch and a GPU
"""
import argparse
import json
import os
import statistics
import time

import torch

RANK, OVER, TERMS = 512, 10, 1024


def matrix(n):
    """Singular values that fall by e over every 150, above noise."""
    g = torch.Generator(device="cuda").manual_seed(n)
    weight = torch.exp(-torch.arange(TERMS, device="cuda") / 150) / n
    left = torch.randn(n, TERMS, device="cuda", generator=g)
    right = torch.randn(TERMS, n, device="cuda", generator=g)
    a = left @ (weight[:, None] * right)
    return a.add_(torch.randn(n, n, device="cuda", generator=g), alpha=1e-5)


def measure(a, power, runs):
    ms = []
    for run in range(-1, runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        u, s, v = torch.svd_lowrank(a, q=RANK + OVER, niter=power)
        torch.cuda.synchronize()
        if run >= 0:
            ms.append(1e3 * (time.perf_counter() - begin))
    u, s, v = u[:, :RANK], s[:RANK], v[:, :RANK]
    left = sum((torch.linalg.norm(x.double() - (y.double() * s) @ v.double().T) ** 2).item()
               for x, y in zip(a.split(1024), u.split(1024)))
    all_of_it = sum((torch.linalg.norm(x.double()) ** 2).item() for x in a.split(1024))
    return ms, (left / all_of_it) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--n", type=int, nargs="*", default=[8192, 16384])
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    results = []
    for n in given.n:
        a = matrix(n)
        for power in (0, 2):
            ms, left = measure(a, power, given.runs)
            results.append({"part": "times", "who": "torch.svd_lowrank", "n": n, "rank": RANK, "power": power,
                            "ms": statistics.median(ms), "least_ms": min(ms), "runs": len(ms), "residual": left})
            print(f"torch.svd_lowrank      n {n:6}, power {power}: {statistics.median(ms):8.2f} ms (least {min(ms):.2f}); "
                  f"residual {left:.6e}", flush=True)
        del a
    if given.json:
        record = {"program": "svd_torch", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "commit": os.environ.get("GNOMON_COMMIT", ""), "results": results}
        with open(given.json, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
