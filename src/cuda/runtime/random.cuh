/* cuda/runtime/random.cuh: docs/reference/operators.md for device code: the generator and each
 * kind's entries, to the last bit. Every rounding is written out (__fmaf_rn, __fmul_rn ...), so the
 * compiler's own contraction of sums elsewhere changes nothing here. */
#ifndef GNOMON_CUDA_RANDOM_CUH
#define GNOMON_CUDA_RANDOM_CUH

#include <stdint.h>

extern "C" {
#include "operator/operator.h"
}

/* What device code needs of a gnomon_simple; passed by value to kernels. */
struct gcu_stream {
    uint32_t key0, key1;
    uint32_t c3; /* tag << 24 | level << 16 */
};

static inline gcu_stream gcu_stream_of(const gnomon_simple *a, uint32_t tag)
{
    gcu_stream s = {a->key0, a->key1, tag << 24 | a->level << 16};
    return s;
}

/* Philox4x32 (Salmon, Moraes, Dror and Shaw 2011), 10 rounds. */
__device__ __forceinline__ uint4 gcu_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                                            uint32_t key0, uint32_t key1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        const uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* Section 2: the column form and the general form. */
__device__ __forceinline__ uint4 gcu_call(gcu_stream s, uint32_t block, uint64_t q)
{
    return gcu_philox((uint32_t)q, (uint32_t)(q >> 32), block, s.c3, s.key0, s.key1);
}

__device__ __forceinline__ uint4 gcu_call_general(gcu_stream s, uint32_t block, uint64_t index48,
                                                  uint32_t b)
{
    return gcu_philox(b, (uint32_t)index48, block, s.c3 | (uint32_t)(index48 >> 32), s.key0,
                      s.key1);
}

__device__ __forceinline__ uint32_t gcu_word(uint4 w, int i)
{
    return i == 0 ? w.x : i == 1 ? w.y : i == 2 ? w.z : w.w;
}

/* Section 3.1 */
__device__ __forceinline__ float gcu_neglog(uint32_t h)
{
    /* both steps 1 and 2, for a branch would part the lanes; one conversion, and E - 31 without one
     */
    const bool high = h >= 0x60000000u;
    const float x = __int2float_rn((int32_t)(high ? h ^ 0x7FFFFFFFu : h));
    const int32_t b = __float_as_int(__fadd_rn(x, 0.5f)) - 0x3F400000;
    float f = __fadd_rn(__int_as_float((b & 0x007FFFFF) + 0x3F400000), -1.0f);
    float e = __fadd_rn(__int_as_float((b >> 23) + 0x4B400000), -12582943.0f);
    f = high ? __fmaf_rn(x, -0x1p-31f, -0x1p-32f) : f;
    e = high ? 0.0f : e;
    float p = 0.042871978133916855f;
    p = __fmaf_rn(p, f, -0.09561339765787125f);
    p = __fmaf_rn(p, f, 0.11680682003498077f);
    p = __fmaf_rn(p, f, -0.12639310956001282f);
    p = __fmaf_rn(p, f, 0.14268305897712708f);
    p = __fmaf_rn(p, f, -0.16660816967487335f);
    p = __fmaf_rn(p, f, 0.20000140368938446f);
    p = __fmaf_rn(p, f, -0.25000056624412537f);
    p = __fmaf_rn(p, f, 0.3333333432674408f);
    const float l = __fmaf_rn(__fmul_rn(f, f), __fmaf_rn(p, f, -0.5f), f);
    return -__fmaf_rn(e, 0.6931471824645996f, l);
}

/* Section 3.2 and its inverse, 0 <= bits <= 56. */
__device__ __forceinline__ uint32_t gcu_feistel(uint32_t v, uint32_t key, int width)
{
    if (width == 0) return 0;
    uint32_t t = (v + key) * 0x9E3779B1u;
    t ^= t >> 15;
    return (t * 0x85EBCA77u) >> (32 - width);
}

__device__ __forceinline__ uint64_t gcu_perm(uint64_t x, int bits, const uint32_t *key)
{
    const int right_bits = bits / 2, left_bits = bits - right_bits;
    uint32_t right = (uint32_t)(x & ((1ull << right_bits) - 1));
    uint32_t left = (uint32_t)(x >> right_bits);
#pragma unroll
    for (int i = 0; i < 6; i += 2) {
        left ^= gcu_feistel(right, key[i], left_bits);
        right ^= gcu_feistel(left, key[i + 1], right_bits);
    }
    return (uint64_t)left << right_bits | right;
}

__device__ __forceinline__ uint64_t gcu_perm_inverse(uint64_t x, int bits, const uint32_t *key)
{
    const int right_bits = bits / 2, left_bits = bits - right_bits;
    uint32_t right = (uint32_t)(x & ((1ull << right_bits) - 1));
    uint32_t left = (uint32_t)(x >> right_bits);
#pragma unroll
    for (int i = 4; i >= 0; i -= 2) {
        right ^= gcu_feistel(left, key[i + 1], right_bits);
        left ^= gcu_feistel(right, key[i], left_bits);
    }
    return (uint64_t)left << right_bits | right;
}

/* 2 nl(word >> 1). As gcu_neglog has it, but for powers of two that leave every rounding as it is:
 * f is here -2 f, so that the factor of two and the sign cost nothing, P's coefficients take the
 * factors' powers, and e comes as e 2^23 straight from the exponent's bits. What the two ranges of
 * the argument have apart is predicated, for a branch would part the lanes and a selection is one
 * instruction more. tests/cuda/project/test_dense.cu compares all h. */
__device__ __forceinline__ float gcu_two_neglog(uint32_t word)
{
    uint32_t m;
    asm("{.reg .pred high; setp.hs.u32 high, %1, 0xC0000000;\n"
        "shr.u32 %0, %1, 1;\n"
        "@high xor.b32 %0, %0, 0x7FFFFFFF;}"
        : "=&r"(m)
        : "r"(word));
    const float x = __int2float_rn((int32_t)m);
    const float half_on = __fadd_rn(x, 0.5f); /* the fma of step 1 rounds so too */
    const int32_t b = __float_as_int(half_on);
    const int32_t e = (b - (0x3F400000 + (31 << 23))) & (int32_t)0xFF800000; /* E - 31 */
    float f = __fmaf_rn(__int_as_float(b - e - (31 << 23)), -2.0f, 2.0f);
    asm("{.reg .pred high; setp.hs.u32 high, %1, 0xC0000000;\n"
        "@high mul.rn.f32 %0, %2, 0f30800000;}"
        : "+f"(f)
        : "r"(word), "f"(half_on));
    float p = 0x1p-10f * 0.042871978133916855f;
    p = __fmaf_rn(p, f, -0x1p-9f * -0.09561339765787125f);
    p = __fmaf_rn(p, f, 0x1p-8f * 0.11680682003498077f);
    p = __fmaf_rn(p, f, -0x1p-7f * -0.12639310956001282f);
    p = __fmaf_rn(p, f, 0x1p-6f * 0.14268305897712708f);
    p = __fmaf_rn(p, f, -0x1p-5f * -0.16660816967487335f);
    p = __fmaf_rn(p, f, 0x1p-4f * 0.20000140368938446f);
    p = __fmaf_rn(p, f, -0x1p-3f * -0.25000056624412537f);
    p = __fmaf_rn(p, f, 0x1p-2f * 0.3333333432674408f);
    float l = __fmaf_rn(__fmul_rn(f, f), __fmaf_rn(p, f, 0.25f), f); /* -2 l */
    asm("{.reg .pred high; setp.hs.u32 high, %1, 0xC0000000;\n"
        "@!high fma.rn.f32 %0, %2, %3, %0;}"
        : "+f"(l)
        : "r"(word), "f"(__int2float_rn(e)), "f"(-0x1p-22f * 0.6931471824645996f));
    return l;
}

/* The square root, correctly rounded, of 2 nl(word >> 1): as __fsqrt_rn has it for normal numbers,
 * without the branch for others, which would keep the compiler from working on several at once.
 * tests/cuda/project/test_dense.cu compares all h. */
__device__ __forceinline__ float gcu_radius(uint32_t word)
{
    const float x = gcu_two_neglog(word);
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    const float root = __fmul_rn(x, y);
    return __fmaf_rn(__fmaf_rn(-root, root, x), __fmul_rn(0.5f, y), root);
}

/* Section 4.1: rows 4a and 4a + 1 from (p, q) = (w0, w1), 4a + 2 and 4a + 3 from (w2, w3). */
__device__ __forceinline__ float2 gcu_box_muller(uint32_t p, uint32_t q)
{
    float r = gcu_radius(p);
    const float z = __fmul_rn(__int2float_rn((int32_t)(q << 2)), 0x1p-31f);
    const float y = __fmul_rn(z, z);
    float c = 3.5297971407999285e-06f;
    c = __fmaf_rn(c, y, -0.0003259385994169861f);
    c = __fmaf_rn(c, y, 0.015854325145483017f);
    c = __fmaf_rn(c, y, -0.3084251284599304f);
    c = __fmaf_rn(c, y, 1.0f);
    float s = -3.595429006963968e-05f;
    s = __fmaf_rn(s, y, 0.0024900068528950214f);
    s = __fmaf_rn(s, y, -0.08074543625116348f);
    s = __fmaf_rn(s, y, 0.7853981852531433f);
    s = __fmul_rn(s, z);
    /* quadrants 0 and 1; 2 and 3 negated */
    r = __int_as_float(__float_as_int(r) ^ (int32_t)(q & 0x80000000u));
    float2 rows;
    asm("{.reg .pred odd; .reg .b32 bit; and.b32 bit, %5, 0x40000000; setp.ne.b32 odd, bit, 0;\n"
        "mul.rn.f32 %0, %2, %3;\n"
        "@odd mul.rn.f32 %0, %2, %6;\n"
        "mul.rn.f32 %1, %2, %4;\n"
        "@odd mul.rn.f32 %1, %2, %3;}"
        : "=&f"(rows.x), "=&f"(rows.y)
        : "f"(r), "f"(c), "f"(s), "r"(q), "f"(-s));
    return rows;
}

/* Section 4.2: magnitudes of v = 0 ... 2^15 - 2 as fp16 bits, the last entry 0x7E00 (NaN: the tail
 * is asked), and of the tail: tail_value[m] is the magnitude for t <= tail_last[m], m the smallest
 * such; tail_last ascends and ends with 2^32 - 1. In device memory, made by gcu_gpu_open. */
enum { GCU_TAILS_MOST = 1024 };

struct gcu_gaussian16 {
    const uint16_t *magnitude; /* 2^15 */
    const uint32_t *tail_last; /* tails */
    const uint16_t *tail_value;
    int tails; /* at most GCU_TAILS_MOST */
};

/* The magnitude, fp16 bits, of a tail word t: ten loads, each of which waits for the one before. */
static __device__ __forceinline__ uint16_t gcu_gaussian16_search(const gcu_gaussian16 &g,
                                                                 uint32_t t)
{
    int low = 0, high = g.tails - 1; /* the answer lies in [low, high] */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t <= g.tail_last[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return g.tail_value[low];
}

/* The same as a call, where it would lengthen a loop. */
static __device__ __noinline__ uint16_t gcu_gaussian16_tail(gcu_gaussian16 g, uint32_t t)
{
    return gcu_gaussian16_search(g, t);
}

/* Section 4.4: the value, as +1, -1 or 0, of digit u (0 ... 7) of a word. */
__device__ __forceinline__ int gcu_achlioptas_digit(uint32_t w, int u)
{
    for (int i = 0; i < u; i++)
        w *= 6u;
    const uint32_t d = __umulhi(w, 6u);
    return d == 0 ? 1 : d == 1 ? -1 : 0;
}

/* Section 4.5: how far the walk of very-sparse goes on for this word (1 + J). */
__device__ __forceinline__ uint32_t gcu_advance(uint32_t word, float jump_scale)
{
    /* nl(0) c < 22.2 * 2^30 passes 2^32: saturating conversion, and every length is below 2^22 */
    return 1u + min(__float2uint_rz(__fmul_rn(gcu_neglog(word >> 1), jump_scale)), 0x7FFFFFFFu);
}

#endif
