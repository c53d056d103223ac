"""Makes the test vectors of docs/reference/operators.md, section 9, from the independent implementation.

usage: make_vectors.py > docs/reference/operators-vectors.json
"""

import json
import math
import random

import numpy as np
from operators import Stream, block, fp16_body, fp16_tail, jump, nl, perm, philox

BIG = 2**40
# Densities whose -1/ln(1 - p) lies within 2^-68 (relative) of the middle between two fp32 numbers,
# then ordinary ones.
DENSITIES = """0x1.4ad91daa6474bp-4 0x1.2e8616eb2eeb5p-12 0x1.d61d088f5ed54p-25 0x1.29c017fb3615fp-23
0x1.b99dce46f2745p-18 0x1.58ab840beaa84p-5 0x1.1cb96c6545a2ep-27 0x1p-30 0x1p-20 0x1.5555555555555p-2
0x1p-1 0x1.fffffffffffffp-1 0x1p0""".split()
# Where the exact quantiles come nearest to the middle between two fp16 numbers.
BODY = [0, 1, 16, 3419, 18874, 18875, 18876, 24971, 26579, 28061, 32765, 32766]
TAIL = [0, 1, 1201939687, 2592692011, 3427541842, 3802121848, 4073128159, 4073128160, 4073128161,
        2**32 - 2, 2**32 - 1]  # fmt: skip


def descriptors():
    """Descriptors and the corner of a block."""
    yield dict(kind="gaussian", k=9, d=2**56, seed=1), 2, 2**56 - 5
    yield dict(kind="gaussian", k=2**32, d=2**56, seed=str(2**64 - 1)), 2**32 - 6, BIG
    yield dict(kind="gaussian", k=9, d=2**56, seed=1, precision="fp16"), 2, 2**56 - 5
    yield dict(kind="gaussian", k=600, d=BIG + 999, seed=1, precision="fp16"), 0, BIG
    yield dict(kind="rademacher", k=37, d=2 * BIG, seed=7), 1, BIG - 3
    yield dict(kind="achlioptas", k=37, d=2 * BIG, seed=7), 1, BIG - 3
    yield dict(kind="very-sparse", k=40, d=50, seed=9), 0, 0
    yield dict(kind="very-sparse", k=40, d=600, seed=9, density=1), 5, 200
    yield dict(kind="very-sparse", k=40, d=9000, seed=9, density=1 / 3), 5, 252
    yield dict(kind="very-sparse", k=40, d=9000, seed=9, density=float.fromhex(DENSITIES[0])), 0, 0
    yield dict(kind="sjlt", k=8, d=9000, seed=4), 0, 4092
    yield dict(kind="sjlt", k=61, d=2 * BIG, seed=4, nonzeros=7), 3, BIG
    yield dict(kind="sjlt", k=900, d=99000, seed=4, nonzeros=100), 0, 8190
    yield dict(kind="srht", k=64, d=784, seed=11), 30, 779
    yield dict(kind="srht", k=1, d=1, seed=11), 0, 0
    yield dict(kind="srht", k=10, d=2**56, seed=11), 2, 2**56 - 7
    yield dict(kind="blockperm-sjlt", k=64, d=784, seed=12), 30, 190
    yield dict(kind="blockperm-sjlt", k=61, d=2 * BIG, seed=12, blocks=8, nonzeros=3, wiring=5), 3, BIG
    yield dict(kind="blockperm-sjlt", k=900, d=99000, seed=12, blocks=4, nonzeros=7, wiring=4), 0, 24745
    yield dict(kind="blockperm-sjlt", k=16, d=19, seed=12, blocks=16, nonzeros=1, wiring=16), 0, 11
    yield dict(kind="blockperm-sjlt", k=1, d=1, seed=12), 0, 0
    yield dict(kind="blockperm-sjlt", k=2**32, d=2**56, seed=12, blocks=2**28, nonzeros=16, wiring=3), 0, 2**56 - 6
    for inner in "gaussian rademacher achlioptas very-sparse sjlt".split():
        more = dict(density=0.4) if inner == "very-sparse" else {}
        yield dict(kind="block", k=6, d=11, seed=2, blocks=3, inner=inner, **more), 0, 0
        yield dict(kind="kronecker", k=6, d=45, seed=6, inner=inner, **more), 0, 40
    yield dict(kind="block", k=7, d=11, seed=2, blocks=3), 0, 0  # rows of unequal scales
    yield dict(kind="block", k=6, d=7, seed=2, blocks=6), 0, 0  # blocks without columns
    yield dict(kind="block", k=60, d=500, seed=2, blocks=3, inner="very-sparse"), 16, 164
    yield dict(kind="block", k=8, d=11, seed=2, blocks=2, inner="sjlt", nonzeros=1), 0, 2
    yield dict(kind="kronecker", k=5, d=77, seed=6, width=8, zeta=3), 0, 69
    yield dict(kind="kronecker", k=8, d=30, seed=6, inner="very-sparse"), 0, 22
    yield dict(kind="kronecker", k=12, d=900, seed=6, inner="sjlt", nonzeros=3), 4, 700
    yield dict(kind="kronecker", k=4, d=2 * BIG, seed=6, zeta=4), 0, BIG
    # density from a D that fp64 does not hold
    yield first_entry(dict(kind="very-sparse", k=2**20, d=2**55 + 2**25 + 1, seed=3))


def first_entry(x):
    """very-sparse with chunks of 2^22 columns: the first row with an entry in the first chunk, three
    columns before that."""
    for row in range(0, x["k"], 4):
        word = Stream(x["seed"], 0).chunkcall(5, row // 4, 0, 0)[0]
        step = int(nl(word >> np.uint32(1))[0] * jump(1 / math.sqrt(x["d"])))
        if step < 2**22:
            return x, row, step - 3


def blocks():
    for x, row, col in descriptors():
        rows, cols = min(8, x["k"] - row), min(8, x["d"] - col)
        for scaling in ("isometric", "none"):
            y = {**x, "scaling": scaling}
            entries = block(y, row, rows, col, cols) + 0.0
            yield {
                "descriptor": {"gnomon": "operator", "version": 1, **y},
                "row": row, "rows": rows, "col": col, "cols": cols,
                "entries": ["%016x" % int(v) for v in entries.ravel().view(np.uint64)],
            }  # fmt: skip


def philox_vectors():
    for counter, key in (
        ((0, 0, 0, 0), (0, 0)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
    ):
        words = [int(w) for w in philox(*counter, *key)]
        yield {"counter": counter, "key": key, "words": words}


def nl_vectors(rng):
    ends = [0, 1, 2, 3, 2**29, 3 * 2**29 - 1, 3 * 2**29, 2**31 - 2, 2**31 - 1]
    for h in ends + [rng.getrandbits(rng.randint(2, 31)) for _ in range(23)]:
        yield {"h": h, "bits": int(nl(h)[:1].view(np.uint32)[0])}


def perm_vectors(rng):
    for b in (0, 1, 2, 3, 7, 12, 13, 31, 32, 33, 55, 56):
        for x in sorted({0, 2**b - 1, rng.randrange(2**b)}):
            keys = [rng.getrandbits(32) for _ in range(6)]
            yield {"x": x, "b": b, "keys": keys, "result": int(perm(x, b, keys))}


def fp16_vectors():
    for name, values, magnitude in (("v", BODY, fp16_body), ("t", TAIL, fp16_tail)):
        for v in values:
            yield {name: v, "bits": int(magnitude([v]).view(np.uint16)[0])}


def jump_vectors():
    for p in DENSITIES:
        yield {"p": p, "bits": int(np.array([jump(float.fromhex(p))]).view(np.uint32)[0])}


def vectors():
    rng = random.Random(1)
    return {
        "philox": list(philox_vectors()),
        "nl": list(nl_vectors(rng)),
        "perm": list(perm_vectors(rng)),
        "fp16": list(fp16_vectors()),
        "jump": list(jump_vectors()),
        "blocks": list(blocks()),
    }


def text():
    """One vector a line."""
    parts = []
    for name, list_ in vectors().items():
        lines = ",\n".join("    " + json.dumps(v) for v in list_)
        parts.append(f'  "{name}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    print(text(), end="")
