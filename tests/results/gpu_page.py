"""The pages of GPUs, made from small records in the form of each program of bench/gpu/.

usage: gpu_page.py SCRIPTS
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import pages
import gpu
import peers
import model

HEAD = {"gpu": "NVIDIA Test 80GB", "multiprocessors": 100, "cuda_runtime": 13000, "cuda_driver": 13000, "commit": "abcdef0123456789"}
RESULTS = {
    "dense": [{"what": "rate", "fp16": 7e14, "sgemm": 5e13},
              {"what": "time", "kind": "rademacher", "input": "f32", "layout": "Dxb", "d": 10 ** 7, "k": 16384, "b": 32, "ms": 40,
               "floor_ms": 28},
              {"what": "time", "kind": "gaussian fp16", "input": "f32", "layout": "Dxb", "d": 10 ** 7, "k": 16384, "b": 32, "ms": 120,
               "floor_ms": 28}],
    "very_sparse": [{"d": 10 ** 7, "k": 16384, "b": 32, "density": 1e-4, "system": system, "layout": layout, "ms": ms, "read_ms": 0.3}
                    for system, layout, ms in (("v1", "coordinates", 9), ("v3", "coordinates", 1.8), ("gnomon", "coordinates", 0.41),
                                               ("gnomon", "points", 0.6))],
    "points": [{"kind": "rademacher", "dtype": "f32", "contiguous": "points", "n": 256, "blocks": 32, "cols": 32768, "rows": 32, "ms": 0.3,
                "read_ms": 0.25, "sgemm_ms": 1.5, "fp16_gemm_ms": 0.2, "error": 1e-7, "sgemm_error": 2e-7}],
    "sjlt": [{"s": 2, "n": 32, "d": 1 << 23, "k": 4096, "layout": "points contiguous", "ms": 0.3, "floor_ms": 0.24}],
    "srht": [{"d": 1024, "n": 262144, "k": 256, "layout": "rows", "ms": 0.5, "least_ms": 0.5, "runs": 20, "read_ms": 0.24, "reads": 2.1}],
    "transfer": [{"what": "plain copy", "pinned_GBps": 55, "pageable_GBps": 11},
                 {"what": "sjlt s=1", "n": 65536, "d": 16384, "k": 256, "pinned_ms": 80, "pinned_of_link": 0.95, "pageable_ms": 100,
                  "pageable_of_link": 0.8}],
    "unheard_of": [{"hue": "green", "ms": 1.0, "read_ms": 0.5}, {"without": "time"}],
    "thesis": [{"algorithm": name, "M": 1024, "N": n, "r": r, "batch": batch, "transfers": transfers, "mean_ms": 1e-6 * n,
                "variance_ms2": 1e-5, "median_ms": 1e-6 * n, "runs": 100}
               for name, r, batch in (("matrix-vector", 1, 1), ("batch-block", 32, 256)) for n in (1024, 1 << 20)
               for transfers in (False, True)],
    "model": [{"table": "read", "bytes": 1 << 30, "ms": 0.25}] +
             [{"table": "tau", "system": s, "side": side, "alone_us": 5.0 + side ** 3 * 1e-6, "among_us": side ** 3 * 1e-6}
              for s in ("sgemm", "fp16", "gnomon") for side in (16, 64)] +
             [{"table": "rival", "system": s, "points": 256, "k": 64, "d": d, "zeta": 0, "ms": d * 1e-5}
              for s in ("sgemm", "rademacher", "sjlt") for d in (4096, 16384)] +
             [{"table": "cascade", "system": s, "points": 256, "k": 64, "d": d, "zeta": 4, "ms": d * 2e-6}
              for s in ("sgemm", "gnomon") for d in (4096, 16384, 1 << 20)],
}


def expect(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in\n{text}"


def line(text, part):
    found = [row for row in text.splitlines() if part in row]
    assert len(found) == 1, (part, found)
    return found[0]


with tempfile.TemporaryDirectory() as work:
    records = pathlib.Path(work) / "results"
    (records / "gpu").mkdir(parents=True)
    for program, results in RESULTS.items():
        (records / "gpu" / f"{program}.json").write_text(json.dumps({"program": program, **HEAD, "results": results}))
    (records / "not_a_gpu.json").write_text("[1, 2]")
    pages.RECORDS = model.RECORDS = records
    gpu.make()
    model.make()
    times = gpu.thesis_times({1024: (1, 2, 3, 4)})
    page, model_page = pages.pages["gpu.md"], pages.pages["model.md"]

    expect(page, "## NVIDIA Test 80GB", "FP16 700 TFLOP/s, SGEMM 50.0", "55.0 GB/s pinned", "commit abcdef012345", "hue green")
    assert "without time" not in page
    # figures, bounds, limits and whether the times are within them
    expect(line(page, "`rademacher` of 32 f32"), "| 40 | 28 |", "| 1.43 | ≤ 1.6× the bound | yes |")
    expect(line(page, "`gaussian fp16` of 32"), "| ≤ 110 ms | no |")
    assert "fast_jl" not in page  # that was taken on another GPU
    expect(line(page, "`very-sparse`, density 0.0001, of 32 points, D = 10,000,000, k = 16,384, coordinates"),
           "| 4.5× as fast as 'warp a row, all lanes draw' | no |", "thread a row: 9; warp a row, all lanes draw: 1.8")
    expect(line(page, "k = 16,384, points contiguous |"), "| ≤ 2.2× the bound | yes |")
    expect(line(page, "`block` of 32, rademacher,"), "D = 2^20, k = 1,024", "≤ 1.5× the bound | yes", "SGEMM, stored: 1.5")
    expect(line(page, "`sjlt`, s = 2"), "≤ 1.5× the bound | yes")
    expect(line(page, "`srht` of 262,144"), "| 2.08 | ≤ 2× the bound | no |")
    expect(line(page, "sjlt s=1, host to host"), "| 76 |", "yes")
    # level t's flops, twice, at 2e12 a second
    products = 256 * (64 * 256 * 4 ** 6 + sum(t * 64 * 4 * (t - 1) * 64 * 4 ** (7 - t) for t in range(2, 7)) + 64 * 4 * 6 * 64)
    expect(line(page, "`kronecker`, ζ = 4"), f"| 2.1 | {4e3 * products / 2e12:.3g} | flops, fp32 as two fp16 |", "by SGEMMs: 2.1")
    expect(page, "\n5 of 8 times are within their limits.\n")

    expect(model_page, "## NVIDIA Test 80GB, 256 points", "SGEMMs, one unit", "`kronecker`, with a start",
           "| SGEMMs | the dense product by SGEMM, matrix stored | always |")
    # level t: t k x 4 (t - 1) k; at 64 = sqrt(m): 4096 = 64 * 4^3 needs 1*4*64 + 2*4*16 + 1*8*4 blocks
    assert model.levels(64, 4096, 4, 256) == [(64, 256, 4096), (128, 256, 1024), (64, 512, 256)]
    assert model.blocks_of(model.levels(64, 4096, 4, 256), 64) == 4 * 64 + 2 * 4 * 16 + 8 * 4
    expect(times, "### NVIDIA Test 80GB, M = 2^10, without transfers", "| batch-block | 32 | 256 | 0.00102 (1e-05) | 1.05 (1e-05) |",
           "### In the thesis, on a V100")
    names = {name for name, *_ in pages.plots}
    assert names == {"model-nvidia-test-80gb", "crossover-nvidia-test-80gb-64", "thesis-times-nvidia-test-80gb"}, names

# No GPU: no page, and the README stays as it is.
with tempfile.TemporaryDirectory() as work:
    pages.RECORDS = model.RECORDS = pathlib.Path(work)
    pages.pages.clear()
    gpu.make()
    assert not pages.pages
    assert peers.readme("as it is") == "as it is"
print("good")
