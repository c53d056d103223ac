"""The operators of docs/reference/operators.md in NumPy, written from that page and from the Philox
paper (Salmon, Moraes, Dror and Shaw 2011) alone. It shares no code with the library; it is
slow and plain on purpose. Names and section numbers are the page's."""

import decimal
import math
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

U32, U64, F32, F64 = np.uint32, np.uint64, np.float32, np.float64
M32 = U64(0xFFFFFFFF)


# ---- section 2: the generator ------------------------------------------------------------


def philox(c0, c1, c2, c3, key0, key1):
    """Philox4x32-10 on arrays of counters: four arrays of 32-bit words."""
    c = [np.asarray(v, dtype=U64) & M32 for v in np.broadcast_arrays(c0, c1, c2, c3)]
    k0, k1 = int(key0), int(key1)
    for r in range(10):
        p0 = c[0] * U64(0xD2511F53)
        p1 = c[2] * U64(0xCD9E8D57)
        c = [
            (p1 >> U64(32)) ^ c[1] ^ U64(k0),
            p1 & M32,
            (p0 >> U64(32)) ^ c[3] ^ U64(k1),
            p0 & M32,
        ]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [v.astype(U32) for v in c]


class Stream:
    """Calls with one seed and level."""

    def __init__(self, seed, level):
        self.key0, self.key1, self.level = seed & 0xFFFFFFFF, seed >> 32, level

    def chunkcall(self, tag, block, a, b):
        a = np.asarray(a, dtype=U64)
        c3 = U64(tag * 2**24 + self.level * 2**16) + (a >> U64(32))
        return philox(np.asarray(b, dtype=U64) & M32, a & M32, block, c3, self.key0, self.key1)

    def call(self, tag, block, q):
        q = np.asarray(q, dtype=U64)
        c3 = tag * 2**24 + self.level * 2**16
        return philox(q & M32, q >> U64(32), block, c3, self.key0, self.key1)

    def row_words(self, tag, i, q):
        """Word i mod 4 of the call of block i div 4; i and q broadcast."""
        i, q = np.broadcast_arrays(np.asarray(i, dtype=U64), np.asarray(q, dtype=U64))
        words = np.stack(self.call(tag, i // U64(4), q))
        return np.take_along_axis(words, (i % U64(4)).astype(np.int64)[None], axis=0)[0]

    def signs(self, tag, i, j):
        """Section 3.3."""
        i, j = np.broadcast_arrays(np.asarray(i, dtype=U64), np.asarray(j, dtype=U64))
        w = self.row_words(tag, i, j // U64(32))
        bit = (w >> (j % U64(32)).astype(U32)) & U32(1)
        return np.where(bit == 1, F32(-1), F32(1))


# ---- section 3: common functions ---------------------------------------------------------


def fma(a, b, c):
    """fp32 a * b + c with one rounding: the product is exact in fp64, the sum is rounded
    to odd there (Boldo and Melquiond 2008) and so rounds correctly to fp32."""
    a, b, c = np.broadcast_arrays(F32(a), F32(b), F32(c))
    p, c = a.astype(F64) * b.astype(F64), c.astype(F64)
    s = p + c
    t = s - p
    error = (p - (s - t)) + (c - t)
    bits = s.view(np.int64) if s.ndim else np.array([s]).view(np.int64)[0]
    step = np.where((error > 0) == (s > 0), 1, -1)
    odd = np.where((error != 0) & ((bits & 1) == 0), bits + step, bits)
    return np.asarray(odd, dtype=np.int64).view(F64).astype(F32)


NL = [
    0.3333333432674408, -0.25000056624412537, 0.20000140368938446, -0.16660816967487335,
    0.14268305897712708, -0.12639310956001282, 0.11680682003498077, -0.09561339765787125,
    0.042871978133916855,
]  # fmt: skip


def nl(h):
    """Section 3.1."""
    h = np.atleast_1d(np.asarray(h, dtype=np.int64))
    near_one = h >= 3 * 2**29
    m = 2**31 - 1 - h
    f1 = fma(m.astype(F32), F32(-(2.0**-31)), F32(-(2.0**-32)))
    x = h.astype(F32) + F32(0.5)
    b = x.view(np.int32).astype(np.int64) - 0x3F400000
    e2 = ((b >> 23) - 31).astype(F32)
    t = ((b & 0x007FFFFF) + 0x3F400000).astype(np.int32).view(F32)
    f = np.where(near_one, f1, t - F32(1)).astype(F32)
    e = np.where(near_one, F32(0), e2).astype(F32)
    poly = np.full(f.shape, F32(NL[8]))
    for i in range(7, -1, -1):
        poly = fma(poly, f, F32(NL[i]))
    g = f * f
    log = fma(g, fma(poly, f, F32(-0.5)), f)
    return -fma(e, F32(0.6931471824645996), log)


def feistel(v, key, width):
    if width == 0:
        return U64(0)
    t = ((v + U64(key)) * U64(0x9E3779B1)) & M32
    t ^= t >> U64(15)
    t = (t * U64(0x85EBCA77)) & M32
    return t >> U64(32 - width)


def perm(x, b, keys):
    """Section 3.2."""
    x = np.asarray(x, dtype=U64)
    rho = b // 2
    lam = b - rho
    right, left = x & U64(2**rho - 1), x >> U64(rho)
    for i in range(6):
        if i % 2 == 0:
            left = left ^ feistel(right, keys[i], lam)
        else:
            right = right ^ feistel(left, keys[i], rho)
    return (left << U64(rho)) + right


# ---- section 4: simple kinds ---------------------------------------------------------------


def gaussian32(s, i, j):
    q = np.asarray(j, dtype=U64)
    w = s.call(1, np.asarray(i, dtype=U64) // U64(4), q)
    upper = (np.asarray(i) % 4) >= 2
    upper = np.broadcast_to(upper, w[0].shape)
    p, q = np.where(upper, w[2], w[0]), np.where(upper, w[3], w[1])
    shape = p.shape
    p, q = p.ravel(), q.ravel()
    r = np.sqrt(F32(2) * nl(p >> U32(1)))
    quadrant = q >> U32(30)
    z = (q * U32(4)).view(np.int32).astype(F32) * F32(2.0**-31)
    y = z * z
    c = np.full(y.shape, F32(3.5297971407999285e-06))
    for k in (-0.0003259385994169861, 0.015854325145483017, -0.3084251284599304, 1):
        c = fma(c, y, F32(k))
    t = np.full(y.shape, F32(-3.595429006963968e-05))
    for k in (0.0024900068528950214, -0.08074543625116348, 0.7853981852531433):
        t = fma(t, y, F32(k))
    n = t * z
    x0 = np.choose(quadrant, [c, -n, -c, n])
    x1 = np.choose(quadrant, [n, c, -n, -c])
    odd = np.broadcast_to((np.asarray(i) % 2) == 1, shape).ravel()
    return (r * np.where(odd, x1, x0)).reshape(shape)


def fp16_body(v):
    return ndtri(0.5 + (np.asarray(v) + 0.5) / 2.0**16).astype(np.float16)


def fp16_tail(t):
    return (-ndtri(2.0**-16 * ((np.asarray(t, dtype=F64) + 0.5) / 2.0**32))).astype(np.float16)


def gaussian16(s, i, j):
    i, j = np.broadcast_arrays(np.asarray(i, dtype=U64), np.asarray(j, dtype=U64))
    w = s.row_words(2, i, j // U64(2))
    h = np.where(j % U64(2) == 1, w >> U32(16), w & U32(0xFFFF)).astype(np.int64)
    v = h % 2**15
    body = fp16_body(np.minimum(v, 2**15 - 2))
    far = fp16_tail(s.row_words(10, i, j))
    magnitude = np.where(v == 2**15 - 1, far, body).astype(F32)
    return np.where(h >= 2**15, -magnitude, magnitude)


def achlioptas(s, i, j):
    j = np.asarray(j, dtype=U64)
    w = s.row_words(4, i, j // U64(8)).astype(U64)
    u = np.broadcast_to(j % U64(8), w.shape)
    x = (w * (U64(6) ** u)) & M32
    d = (x * U64(6)) >> U64(32)
    return np.where(d == 0, F32(1), np.where(d == 1, F32(-1), F32(0)))


def jump(p):
    """c: the fp32 number nearest to the exact -1/ln(1 - p), from 60 digits."""
    if p == 1:
        return F32(0)
    with decimal.localcontext() as context:
        context.prec = 60
        exact = Fraction(-1 / (1 - decimal.Decimal(p)).ln())
    near = F32(float(exact))
    around = [np.nextafter(near, F32(0)), near, np.nextafter(near, F32(np.inf))]
    return min(around, key=lambda c: abs(Fraction(float(c)) - exact))


def very_sparse_chunk(p):
    return int(min(2**22, 256 * max(1, math.floor(24 / (256 * p) + 0.5))))


def very_sparse(s, rows, cols, p):
    out = np.zeros((len(rows), len(cols)), dtype=F32)
    length = very_sparse_chunk(p)
    c = jump(p)
    cols = [int(v) for v in cols]
    for q in sorted({v // length for v in cols}):
        wanted = [n for n, v in enumerate(cols) if v // length == q]
        offsets = np.array([cols[n] - q * length for n in wanted])
        for n, i in enumerate(rows):
            draws = 64  # as many as it takes to leave the chunk
            while True:
                w = s.chunkcall(5, int(i) // 4, q, np.arange(draws))[int(i) % 4]
                jumps = np.floor((nl(w >> U32(1)) * c).astype(F64))
                x = np.cumsum(1 + jumps) - 1
                if x[-1] >= length:
                    break
                draws *= 2
            sign = np.where(w & U32(1), F32(-1), F32(1))
            at = np.searchsorted(x, offsets)
            out[n, wanted] = np.where(x[at] == offsets, sign[at], F32(0))
    return out


def sjlt(s, rows, cols, k, nonzeros):
    out = np.zeros((len(rows), len(cols)), dtype=F32)
    g = 12
    while 2**g < 4 * -(-k // nonzeros):
        g += 1
    rows = np.asarray(rows).astype(np.int64)
    cols = np.asarray(cols, dtype=U64)
    for b in range(nonzeros):
        first = b * k // nonzeros
        m = (b + 1) * k // nonzeros - first
        for q in np.unique(cols >> U64(g)):
            a, z = s.chunkcall(6, b, q, 0), s.chunkcall(6, b, q, 1)
            keys = [int(v) for v in a] + [int(z[0]), int(z[1])]
            at = np.nonzero(cols >> U64(g) == q)[0]
            slot = perm(cols[at] & U64(2**g - 1), g, keys)
            row = first + ((slot * U64(m)) >> U64(g)).astype(np.int64)
            sign = s.signs(7, b, cols[at])
            out[:, at] += np.where(rows[:, None] == row, sign, F32(0))
    return out


def srht(s, rows, cols, d):
    b = max(0, (d - 1).bit_length())
    a, z = s.call(8, 0, 0), s.call(8, 0, 1)
    keys = [int(v) for v in a] + [int(z[0]), int(z[1])]
    sampled = perm(np.asarray(rows, dtype=U64), b, keys)
    parity = sampled[:, None] & np.asarray(cols, dtype=U64)
    for shift in (32, 16, 8, 4, 2, 1):
        parity = parity ^ (parity >> U64(shift))
    parity &= U64(1)
    sigma = s.signs(9, 0, np.asarray(cols, dtype=U64))
    return np.where(parity == 1, -sigma, sigma).astype(F32)


def blockperm_sjlt(s, rows, cols, k, d, blocks, nonzeros, wiring):
    """Section 4.8, column by column."""
    m, b = blocks, blocks.bit_length() - 1

    def keys(words, more):
        return [int(v) for v in words] + [int(more[0]), int(more[1])]

    across = keys(s.call(13, 0, 0), s.call(13, 0, 1))
    along = keys(s.call(13, 0, 2), s.call(13, 0, 3))
    q_of_block = -(-(-(-d // m)) // 4096)
    w = -(-d // (m * q_of_block))
    g = 0
    while 2**g < max(w, 4 * -(-k // (m * nonzeros))):
        g += 1
    out = np.zeros((len(rows), len(cols)), dtype=F32)
    at = {int(r): n for n, r in enumerate(rows)}
    for n, j in enumerate(int(v) for v in cols):
        q, y = divmod(j, w)
        h = q // q_of_block
        for l in range(wiring):
            row_block = (int(perm(h, b, across)) + int(perm(l, b, along))) % m
            for band in range(row_block * nonzeros, (row_block + 1) * nonzeros):
                first = band * k // (m * nonzeros)
                height = (band + 1) * k // (m * nonzeros) - first
                key = keys(s.chunkcall(11, band, q, 0), s.chunkcall(11, band, q, 1))
                row = first + ((int(perm(y, g, key)) * height) >> g)
                if row in at:
                    out[at[row], n] = s.signs(12, band, j)
    return out


def blockperm_defaults(k, blocks, nonzeros, wiring):
    """The table of section 4.8."""
    if blocks is None:
        blocks = 1
        while 2 * blocks <= k // 16:
            blocks *= 2
    return (
        blocks,
        min(2, k // blocks) if nonzeros is None else nonzeros,
        min(4, blocks) if wiring is None else wiring,
    )


def default_density(d):
    return 1 / math.sqrt(d)


class Simple:
    """A simple kind of k rows and d columns at a level."""

    def __init__(
        self, kind, seed, level, k, d, precision="fp32", density=None, nonzeros=None, blocks=None, wiring=None
    ):
        self.kind, self.k, self.d, self.precision = kind, k, d, precision
        self.s = Stream(seed, level)
        self.density = default_density(d) if density is None else density
        if kind == "blockperm-sjlt":
            self.blocks, self.nonzeros, self.wiring = blockperm_defaults(k, blocks, nonzeros, wiring)
        else:
            self.nonzeros = min(4, k) if nonzeros is None else nonzeros

    def values(self, rows, cols):
        """Raw values of the given rows and columns."""
        rows, cols = np.asarray(rows, dtype=U64), np.asarray(cols, dtype=U64)
        i, j = rows[:, None], cols[None, :]
        if self.kind == "gaussian":
            return (gaussian16 if self.precision == "fp16" else gaussian32)(self.s, i, j)
        if self.kind == "rademacher":
            return self.s.signs(3, i, j)
        if self.kind == "achlioptas":
            return achlioptas(self.s, i, j)
        if self.kind == "very-sparse":
            return very_sparse(self.s, rows, cols, self.density)
        if self.kind == "sjlt":
            return sjlt(self.s, rows, cols, self.k, self.nonzeros)
        if self.kind == "blockperm-sjlt":
            return blockperm_sjlt(
                self.s, rows, cols, self.k, self.d, self.blocks, self.nonzeros, self.wiring
            )
        return srht(self.s, rows, cols, self.d)

    def scale(self, isometric, k=None):
        """Section 6; k: as many rows instead of all."""
        k = self.k if k is None else k
        if not isometric:
            return math.sqrt(3.0) if self.kind == "achlioptas" else 1.0
        q = float(k)
        if self.kind == "achlioptas":
            q = k / 3.0
        elif self.kind == "very-sparse":
            q = k * self.density
        elif self.kind == "sjlt":
            q = float(self.nonzeros)
        elif self.kind == "blockperm-sjlt":
            q = float(self.wiring * self.nonzeros)
        return 1 / math.sqrt(q)


# ---- sections 5 and 6 ----------------------------------------------------------------------


def block(descriptor, row, rows, col, cols):
    """Entries [row, row + rows) x [col, col + cols) in fp64, scaled (section 8's members)."""
    x = descriptor
    kind, k, d, seed = x["kind"], x["k"], x["d"], int(x["seed"])
    isometric = x.get("scaling", "isometric") == "isometric"
    extra = {n: x[n] for n in ("precision", "density", "nonzeros") if n in x}
    i, j = np.arange(row, row + rows), np.arange(col, col + cols)
    if kind == "block":
        return block_entries(x, i, j, isometric, extra)
    if kind == "kronecker":
        return kronecker_entries(x, i, j, isometric, extra)
    if kind == "blockperm-sjlt":
        extra.update({n: x[n] for n in ("blocks", "wiring") if n in x})
    a = Simple(kind, seed, 0, k, d, **extra)
    return a.values(i, j).astype(F64) * a.scale(isometric)


def block_entries(x, i, j, isometric, extra):
    k, d, r = x["k"], x["d"], x.get("blocks", 1)
    c = -(-d // r)
    a = Simple(x.get("inner", "rademacher"), int(x["seed"]), 0, -(-k // r), c, **extra)
    out = np.zeros((len(i), len(j)))
    for n in range(r):
        first, last = n * k // r, (n + 1) * k // r
        rows = [p for p, v in enumerate(i) if first <= v < last]
        cols = [p for p, v in enumerate(j) if v // c == n]
        if rows and cols:
            v = a.values(i[rows] - first, j[cols] - n * c).astype(F64)
            out[np.ix_(rows, cols)] = v * a.scale(isometric, last - first)
    return out


def kronecker_entries(x, i, j, isometric, extra):
    k, d = x["k"], x["d"]
    zeta, width = x.get("zeta", 2), x.get("width", k)
    levels = 1
    while width * zeta**levels < d:
        levels += 1
    height = [t * width for t in range(1, levels)] + [k]
    wide = [width * zeta] + [zeta * h for h in height[:-1]]
    inner = x.get("inner", "rademacher")
    factors = [
        Simple(inner, int(x["seed"]), t + 1, height[t], wide[t], **extra) for t in range(levels)
    ]
    scale = 1.0
    for a in factors:
        scale = scale * a.scale(isometric)
    out = np.zeros((len(i), len(j)))
    for n, column in enumerate(j):
        column = int(column)
        at = column // wide[0]
        v = factors[0].values(np.arange(height[0]), [column % wide[0]])[:, 0].astype(F64)
        for t in range(1, levels):
            o = (at % zeta) * height[t - 1]
            at //= zeta
            m = factors[t].values(np.arange(height[t]), np.arange(o, o + height[t - 1])).astype(F64)
            total = np.zeros(height[t])
            for b in range(height[t - 1]):
                total = total + m[:, b] * v[b]
            v = total
        out[:, n] = v[i] * scale
    return out
