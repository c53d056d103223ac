/* cpu/simd_portable.h: the vector layer on the compiler's own vectors, for any machine.
 *
 * All four layers (portable, avx2, avx512, neon) define the same names:
 *   vf  VW floats    vu  VW 32-bit words    vd  VD = VW / 2 doubles
 * Every operation is lane by lane and rounds as IEEE 754 says; loads and stores need no
 * alignment. Masks are words of all ones or all zeros. Shift counts are 0 ... 31. */
#ifndef GNOMON_CPU_SIMD_H
#define GNOMON_CPU_SIMD_H

#include "cpu/convert.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { VW = 4, VD = 2 };

/* The compiler must have the vector in a register at this place; keeps loads in the order in which
 * they are written where that matters for speed. */
#define KEEP_VECTOR(a) ((void)0)

typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));

/* floats */
static inline vf vf_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
/* VW halves as floats */
static inline vf vf_load_half(const uint16_t *p)
{
    return (vf){half_to_float(p[0]), half_to_float(p[1]), half_to_float(p[2]), half_to_float(p[3])};
}
static inline vf vf_load_i8(const int8_t *p)
{
    return (vf){p[0], p[1], p[2], p[3]};
}
static inline void vf_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}
static inline vf vf_set1(float x)
{
    return (vf){x, x, x, x};
}
static inline vf vf_zero(void)
{
    return (vf){0, 0, 0, 0};
}
static inline vf vf_add(vf a, vf b)
{
    return a + b;
}
static inline vf vf_sub(vf a, vf b)
{
    return a - b;
}
static inline vf vf_mul(vf a, vf b)
{
    return a * b;
}
/* a * b + c, rounded once */
static inline vf vf_fma(vf a, vf b, vf c)
{
    return (vf){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
                fmaf(a[3], b[3], c[3])};
}
static inline vf vf_sqrt(vf a)
{
    return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}
/* bit l: lane l of a is not below b's; so it is where one is NaN */
static inline uint32_t vf_not_below(vf a, vf b)
{
    uint32_t bits = 0;
    for (int l = 0; l < VW; l++)
        bits |= (uint32_t) !(a[l] < b[l]) << l;
    return bits;
}
static inline vu vf_bits(vf a)
{
    return (vu)a;
}

/* r[i]'s lane l and r[l]'s lane i change places */
static inline void vf_transpose(vf r[VW])
{
    const vf t[VW] = {r[0], r[1], r[2], r[3]};
    for (int i = 0; i < VW; i++)
        r[i] = (vf){t[0][i], t[1][i], t[2][i], t[3][i]};
}

/* words */
static inline vu vu_load(const uint32_t *p)
{
    vu v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void vu_store(uint32_t *p, vu v)
{
    memcpy(p, &v, sizeof v);
}
static inline vu vu_set1(uint32_t x)
{
    return (vu){x, x, x, x};
}
/* 0, 1, 2, ... */
static inline vu vu_iota(void)
{
    return (vu){0, 1, 2, 3};
}
static inline vu vu_add(vu a, vu b)
{
    return a + b;
}
static inline vu vu_sub(vu a, vu b)
{
    return a - b;
}
/* low half of the product */
static inline vu vu_mul(vu a, vu b)
{
    return a * b;
}
/* each word holds two signed 16-bit numbers: the sum of the products of the low and the high ones
 */
static inline vu vu_mul_pairs(vu a, vu b)
{
    vu r;
    for (int l = 0; l < VW; l++)
        r[l] = (uint32_t)((int16_t)a[l] * (int16_t)b[l]) +
               (uint32_t)((int16_t)(a[l] >> 16) * (int16_t)(b[l] >> 16));
    return r;
}
/* each word holds four numbers of 8 bits, of a without sign and of b signed: the sums of the
 * products of the lower and of the upper two, 16 bits each, which must fit */
static inline vu vu_mul_quads(vu a, vu b)
{
    vu r;
    for (int l = 0; l < VW; l++) {
        uint32_t half[2];
        for (int h = 0; h < 2; h++) {
            const uint32_t x = a[l] >> (16 * h), y = b[l] >> (16 * h);
            half[h] = (uint32_t)((int32_t)(x & 0xffu) * (int8_t)y +
                                 (int32_t)(x >> 8 & 0xffu) * (int8_t)(y >> 8));
        }
        r[l] = (half[0] & 0xffffu) | half[1] << 16;
    }
    return r;
}
/* of the two 16-bit numbers in each word */
static inline vu vu_add_pairs(vu a, vu b)
{
    return ((a + b) & 0xffffu) | ((a & 0xffff0000u) + (b & 0xffff0000u));
}
/* both halves of the products with one number, the same in all lanes of m */
static inline void vu_mul_wide(vu a, vu m, vu *high, vu *low)
{
    *low = a * m;
    for (int l = 0; l < VW; l++)
        (*high)[l] = (uint32_t)((uint64_t)a[l] * m[l] >> 32);
}
static inline vu vu_and(vu a, vu b)
{
    return a & b;
}
static inline vu vu_or(vu a, vu b)
{
    return a | b;
}
static inline vu vu_xor(vu a, vu b)
{
    return a ^ b;
}
/* whether a bit is set */
static inline bool vu_any(vu a)
{
    return (a[0] | a[1] | a[2] | a[3]) != 0;
}
/* the odd lanes of one for the even lanes before them of the other */
static inline void vu_trade(vu *even, vu *odd)
{
    const vu e = *even, o = *odd;
    *even = (vu){e[0], o[0], e[2], o[2]};
    *odd = (vu){e[1], o[1], e[3], o[3]};
}
static inline vu vu_shl(vu a, int n)
{
    return a << (uint32_t)n;
}
static inline vu vu_shr(vu a, int n)
{
    return a >> (uint32_t)n;
}
/* arithmetic, of signed words */
static inline vu vu_sar(vu a, int n)
{
    return (vu)((vi)a >> n);
}
static inline vu vu_eq(vu a, vu b)
{
    return (vu)(a == b);
}
/* a > b, as signed words */
static inline vu vu_gt_signed(vu a, vu b)
{
    return (vu)((vi)a > (vi)b);
}
/* a where the mask is set, else b */
static inline vu vu_select(vu mask, vu a, vu b)
{
    return (mask & a) | (~mask & b);
}
static inline vf vu_as_float(vu a)
{
    return (vf)a;
}
static inline vf vf_select(vu mask, vf a, vf b)
{
    return (vf)vu_select(mask, (vu)a, (vu)b);
}
/* signed words to floats, to nearest even */
static inline vf vu_to_float_signed(vu a)
{
    return __builtin_convertvector((vi)a, vf);
}
/* floats to signed words, towards zero; the floats must lie inside the range */
static inline vu vf_truncate(vf a)
{
    return (vu) __builtin_convertvector(a, vi);
}

/* doubles */
static inline vd vd_load(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void vd_store(double *p, vd v)
{
    memcpy(p, &v, sizeof v);
}
static inline vd vd_set1(double x)
{
    return (vd){x, x};
}
static inline vd vd_zero(void)
{
    return (vd){0, 0};
}
static inline vd vd_add(vd a, vd b)
{
    return a + b;
}
static inline vd vd_sub(vd a, vd b)
{
    return a - b;
}
static inline vd vd_mul(vd a, vd b)
{
    return a * b;
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return (vd){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
}
/* VD floats as doubles */
static inline vd vd_load_float(const float *p)
{
    return (vd){p[0], p[1]};
}
static inline void vd_store_float(float *p, vd a)
{
    p[0] = (float)a[0];
    p[1] = (float)a[1];
}
/* VW floats, the first half of them and the other */
static inline void vf_to_f64(vf a, vd f64[2])
{
    f64[0] = (vd){a[0], a[1]};
    f64[1] = (vd){a[2], a[3]};
}

#endif
