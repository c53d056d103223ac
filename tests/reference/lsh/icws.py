"""Consistent weighted sampling by docs/reference/lsh.md, "Weighted samples", in plain Python.
usage: icws.py DUMP_ICWS LSH_MD"""

import math
import random
import subprocess
import sys

M32, M64 = 2**32 - 1, 2**64 - 1


def philox(c, key):
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ key[0], q & M32, (p >> 32) ^ c[3] ^ key[1], p & M32]
        key = [(key[0] + 0x9E3779B9) & M32, (key[1] + 0xBB67AE85) & M32]
    return c


def call(seed, tag, block, q):
    """Column form at level 0 (operators.md, section 2)."""
    return philox([q & M32, q >> 32, block, tag << 24], [seed & M32, seed >> 32])


def ln(x):
    m, e = math.frexp(x)
    if m < float.fromhex("0x1.6a09e667f3bcdp-1"):
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    z = s * s
    p = 1 / 21
    for k in range(9, -1, -1):
        p = p * z + 1 / (2 * k + 1)
    return e * float.fromhex("0x1.62e42fefa39efp-1") + 2 * s * p


def splitmix(p):
    z = (p + 1) * 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return (z ^ z >> 31) | 1


def half(s):
    s &= M64
    for _ in range(2):
        s = (s ^ s >> 32) * 0xD6E8FEB86659FD93 & M64
    return s >> 32


def value(seed, i, row):
    def u(word):
        return (word + 0.5) * 2.0**-32

    best, sample = math.inf, M32
    for j in sorted(row):
        if row[j] == 0:
            continue
        w = call(seed, 134, i, j)
        r, c = -ln(u(w[0]) * u(w[1])), -ln(u(w[2]) * u(w[3]))
        beta = u(call(seed, 135, i // 4, j)[i % 4])
        t = math.floor(ln(row[j]) / r + beta)
        a = ln(c) - r * (t - beta) - r
        if a < best:
            best, sample = a, half(splitmix(0) * j + splitmix(1) * t)
    return sample


def main(dump, page):
    draw = random.Random(5)
    rows = [{2: 1.5, 5: 2.0, 9: 0.25}, {}, {7: 1e-30}, {2**60 + 3: 1e30, 1: 5e-324, 2: 2.0**500}]
    rows += [{draw.randrange(1000): draw.paretovariate(0.5) for _ in range(20)} for _ in range(4)]
    rows += [{j: 10 ** draw.uniform(-30, 30) for j in range(12)}]
    for seed in (11, 2**63 + 12345):
        for row in rows:
            words = [str(w) for j in row for w in (j, row[j].hex())]
            run = [dump, str(seed), "70", *words]
            told = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
            due = [value(seed, i, row) for i in range(70)]
            assert [int(v) for v in told] == due, (seed, row, told[:4], due[:4])
    vectors = ", ".join(str(value(11, i, rows[0])) for i in range(4))
    text = " ".join(open(page, encoding="utf-8").read().split())
    assert vectors in text, f"the page's test vectors must be {vectors}"


main(*sys.argv[1:])
