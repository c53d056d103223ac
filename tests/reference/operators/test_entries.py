"""The library's entries against the independent implementation, bit for bit.

usage: test_entries.py DUMP_BLOCK"""

import random
import sys

import numpy as np
from library import Library
from operators import block

BIG = 10**12

# What is checked whatever the random choices below come to.
FIXED = [
    (dict(kind="gaussian", k=70, d=3000, seed=0), 0, 70, 0, 130),
    (dict(kind="gaussian", k=70, d=3000, seed=2**64 - 1, scaling="none"), 3, 9, 2900, 100),
    (dict(kind="gaussian", k=2**32, d=2**56, seed=5), 2**32 - 6, 6, 2**56 - 9, 9),
    (dict(kind="gaussian", k=9, d=9, seed=1, precision="fp16"), 0, 9, 0, 9),
    (dict(kind="gaussian", k=600, d=BIG + 999, seed=1, precision="fp16"), 0, 600, BIG, 901),
    (dict(kind="rademacher", k=37, d=BIG * 2, seed=7), 1, 36, BIG - 3, 200),
    (dict(kind="achlioptas", k=37, d=BIG * 2, seed=7), 1, 36, BIG - 3, 200),
    (dict(kind="achlioptas", k=37, d=99, seed=7, scaling="none"), 0, 37, 0, 99),
    (dict(kind="very-sparse", k=40, d=5000, seed=9), 0, 40, 0, 5000),
    (dict(kind="very-sparse", k=40, d=600, seed=9, density=1), 5, 30, 200, 400),
    (dict(kind="very-sparse", k=40, d=9000, seed=9, density=1 / 3), 5, 30, 200, 900),
    (dict(kind="very-sparse", k=12, d=10**8, seed=9, density=1e-4), 0, 12, 240000, 600),
    (dict(kind="very-sparse", k=12, d=10**13, seed=9, density=2.0**-30), 0, 12, 4194200, 900),
    (dict(kind="very-sparse", k=64, d=2 * BIG, seed=3, density=0.01), 0, 64, BIG, 3000),
    (dict(kind="sjlt", k=64, d=9000, seed=4), 0, 64, 4000, 300),
    (dict(kind="sjlt", k=64, d=9000, seed=4, nonzeros=1), 0, 64, 4000, 300),
    (dict(kind="sjlt", k=61, d=2 * BIG, seed=4, nonzeros=7), 3, 50, BIG, 200),
    (dict(kind="sjlt", k=5000, d=9000, seed=4, nonzeros=1), 0, 5000, 8100, 60),
    (dict(kind="sjlt", k=8, d=100, seed=4, nonzeros=8), 0, 8, 0, 100),
    (dict(kind="srht", k=64, d=784, seed=11), 0, 64, 0, 784),
    (dict(kind="blockperm-sjlt", k=64, d=784, seed=12), 0, 64, 0, 784),
    (dict(kind="blockperm-sjlt", k=61, d=2 * BIG, seed=12, blocks=8, nonzeros=3, wiring=5), 3, 50, BIG, 200),
    (dict(kind="blockperm-sjlt", k=5000, d=99000, seed=12, blocks=4, nonzeros=1), 0, 5000, 24700, 60),
    (dict(kind="blockperm-sjlt", k=16, d=19, seed=12, blocks=16, nonzeros=1, wiring=16), 0, 16, 0, 19),
    (dict(kind="blockperm-sjlt", k=1, d=1, seed=12), 0, 1, 0, 1),
    (dict(kind="blockperm-sjlt", k=2**32, d=2**56, seed=12, blocks=2**28, nonzeros=16, wiring=3), 2**31, 40, 2**56 - 9, 9),
    (dict(kind="srht", k=1, d=1, seed=11), 0, 1, 0, 1),
    (dict(kind="srht", k=1024, d=1024, seed=11), 500, 100, 0, 200),
    (dict(kind="srht", k=10, d=2**56, seed=11), 0, 10, BIG, 100),
    (dict(kind="block", k=64, d=1000, seed=2, blocks=7), 0, 64, 0, 1000),
    (dict(kind="block", k=5, d=11, seed=2, blocks=5, inner="gaussian"), 0, 5, 0, 11),
    (dict(kind="block", k=6, d=7, seed=2, blocks=6), 0, 6, 0, 7),
    (dict(kind="block", k=64, d=1000, seed=2, blocks=8, inner="sjlt"), 0, 64, 0, 1000),
    (dict(kind="block", k=30, d=50000, seed=2, blocks=4, inner="very-sparse"), 0, 30, 12000, 2000),
    (dict(kind="kronecker", k=16, d=784, seed=6), 0, 16, 0, 60),
    (dict(kind="kronecker", k=16, d=784, seed=6, zeta=3, inner="gaussian"), 0, 16, 700, 30),
    (dict(kind="kronecker", k=5, d=77, seed=6, width=8, inner="achlioptas"), 0, 5, 0, 77),
    (dict(kind="kronecker", k=12, d=900, seed=6, inner="very-sparse", density=0.2), 0, 12, 40, 5),
    (dict(kind="kronecker", k=12, d=900, seed=6, inner="very-sparse"), 0, 12, 0, 6),
    (dict(kind="kronecker", k=12, d=900, seed=6, inner="sjlt", nonzeros=3), 0, 12, 0, 90),
    (dict(kind="kronecker", k=4, d=2 * BIG, seed=6, zeta=4), 0, 4, BIG, 3),
]


def random_case(rng):
    kind = rng.choice(
        "gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker".split()
    )
    k = rng.randint(1, 90)
    d = rng.randint(k, 10 ** rng.randint(2, 5))
    x = dict(kind=kind, k=k, d=d, seed=rng.getrandbits(rng.choice([8, 53, 64])))
    if x["seed"] >= 2**53:
        x["seed"] = str(x["seed"])
    x["scaling"] = rng.choice(["isometric", "none"])
    simple = kind
    if kind in ("block", "kronecker"):
        simple = x["inner"] = rng.choice("gaussian rademacher achlioptas very-sparse sjlt".split())
    if kind == "block":
        x["blocks"] = rng.randint(1, k)
        if simple == "sjlt":
            x["blocks"] = rng.choice([r for r in range(1, k + 1) if k % r == 0])
    if kind == "kronecker":
        x["zeta"] = rng.randint(2, 5)
        x["width"] = k + rng.randint(0, 5)
        x["k"] = k = min(k, 20)
        x["width"] = max(k, min(x["width"], 24))
        x["d"] = d = min(d, 20000)
    if simple == "gaussian":
        x["precision"] = rng.choice(["fp32", "fp16"])
    if simple == "very-sparse" and rng.random() < 0.7:
        x["density"] = rng.choice([1.0, rng.random(), 10 ** -rng.uniform(0, 5)])
    if kind == "blockperm-sjlt" and rng.random() < 0.7:
        x["blocks"] = 2 ** rng.randint(0, k.bit_length() - 1)
        x["nonzeros"] = rng.randint(1, k // x["blocks"])
        x["wiring"] = rng.randint(1, x["blocks"])
    rows = rng.randint(1, k)
    cols = rng.randint(1, min(d, 12 if kind == "kronecker" else 300))
    return x, rng.randint(0, k - rows), rows, rng.randint(0, d - cols), cols


def check(library, case):
    x, row, rows, col, cols = case
    if int(x["seed"]) >= 2**53:
        x = {**x, "seed": str(x["seed"])}
    want = block(x, row, rows, col, cols) + 0.0  # no minus zero
    wrong = []
    for dtype in ("f64", "f32", "csr"):
        got = library.block(x, row, rows, col, cols, dtype) + 0
        expected = want.astype(got.dtype)
        if not np.array_equal(got, expected):
            at = np.argwhere(~(got == expected))
            i, j = at[0]
            wrong.append(
                f"{dtype}: {len(at)} of {got.size} differ, first at ({row + i}, {col + j}):"
                f" {got[i, j]!r}, not {expected[i, j]!r}"
            )
    return wrong


def main():
    library = Library(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    cases = FIXED + [random_case(rng) for _ in range(60)]
    failed = 0
    for case in cases:
        wrong = check(library, case)
        if wrong:
            failed += 1
            print(case, *wrong, sep="\n  ")
    library.close()
    print(f"{len(cases)} operators, {failed} differ (random cases from seed {seed})")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
