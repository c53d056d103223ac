/* cpu/simd_neon.h: the vector layer (see simd_portable.h) on the NEON of AArch64. */
#ifndef GNOMON_CPU_SIMD_H
#define GNOMON_CPU_SIMD_H

#include <arm_neon.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { VW = 4, VD = 2 };

#define KEEP_VECTOR(a) __asm__("" : "+w"(a))

typedef float32x4_t vf;
typedef float64x2_t vd;
typedef uint32x4_t vu;

/* floats */
static inline vf vf_load(const float *p)
{
    return vld1q_f32(p);
}
static inline vf vf_load_half(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline vf vf_load_i8(const int8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(four));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
}
static inline void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
}
static inline vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}
static inline vf vf_zero(void)
{
    return vdupq_n_f32(0);
}
static inline vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}
static inline vf vf_sqrt(vf a)
{
    return vsqrtq_f32(a);
}
static inline uint32_t vf_not_below(vf a, vf b)
{
    static const uint32_t place[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vmvnq_u32(vcltq_f32(a, b)), vld1q_u32(place)));
}
static inline vu vf_bits(vf a)
{
    return vreinterpretq_u32_f32(a);
}

static inline void vf_transpose(vf r[VW])
{
    const vd a = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
    const vd b = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    const vd c = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
    const vd d = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
    r[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    r[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    r[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    r[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

/* words */
static inline vu vu_load(const uint32_t *p)
{
    return vld1q_u32(p);
}
static inline void vu_store(uint32_t *p, vu v)
{
    vst1q_u32(p, v);
}
static inline vu vu_set1(uint32_t x)
{
    return vdupq_n_u32(x);
}
static inline vu vu_iota(void)
{
    static const uint32_t iota[4] = {0, 1, 2, 3};
    return vld1q_u32(iota);
}
static inline vu vu_add(vu a, vu b)
{
    return vaddq_u32(a, b);
}
static inline vu vu_sub(vu a, vu b)
{
    return vsubq_u32(a, b);
}
static inline vu vu_mul(vu a, vu b)
{
    return vmulq_u32(a, b);
}
static inline vu vu_mul_pairs(vu a, vu b)
{
    const int16x8_t x = vreinterpretq_s16_u32(a), y = vreinterpretq_s16_u32(b);
    return vreinterpretq_u32_s32(
        vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
static inline vu vu_mul_quads(vu a, vu b)
{
    const uint8x16_t x = vreinterpretq_u8_u32(a);
    const int8x16_t y = vreinterpretq_s8_u32(b);
    const int16x8_t low =
        vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), vmovl_s8(vget_low_s8(y)));
    const int16x8_t high = vmulq_s16(vreinterpretq_s16_u16(vmovl_high_u8(x)), vmovl_high_s8(y));
    return vreinterpretq_u32_s16(vpaddq_s16(low, high));
}
static inline vu vu_add_pairs(vu a, vu b)
{
    return vreinterpretq_u32_u16(vaddq_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
}
static inline void vu_mul_wide(vu a, vu m, vu *high, vu *low)
{
    const vu lower = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vget_low_u32(m)));
    const vu upper = vreinterpretq_u32_u64(vmull_high_u32(a, m));
    *low = vuzp1q_u32(lower, upper);
    *high = vuzp2q_u32(lower, upper);
}
static inline vu vu_and(vu a, vu b)
{
    return vandq_u32(a, b);
}
static inline vu vu_or(vu a, vu b)
{
    return vorrq_u32(a, b);
}
static inline vu vu_xor(vu a, vu b)
{
    return veorq_u32(a, b);
}
/* whether a bit is set */
static inline bool vu_any(vu a)
{
    return vmaxvq_u32(a) != 0;
}
/* the odd lanes of one for the even lanes before them of the other */
static inline void vu_trade(vu *even, vu *odd)
{
    const vu e = *even, o = *odd;
    *even = vtrn1q_u32(e, o);
    *odd = vtrn2q_u32(e, o);
}
static inline vu vu_shl(vu a, int n)
{
    return vshlq_u32(a, vdupq_n_s32(n));
}
static inline vu vu_shr(vu a, int n)
{
    return vshlq_u32(a, vdupq_n_s32(-n));
}
static inline vu vu_sar(vu a, int n)
{
    return vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(a), vdupq_n_s32(-n)));
}
static inline vu vu_eq(vu a, vu b)
{
    return vceqq_u32(a, b);
}
static inline vu vu_gt_signed(vu a, vu b)
{
    return vcgtq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b));
}
static inline vu vu_select(vu mask, vu a, vu b)
{
    return vbslq_u32(mask, a, b);
}
static inline vf vu_as_float(vu a)
{
    return vreinterpretq_f32_u32(a);
}
static inline vf vf_select(vu mask, vf a, vf b)
{
    return vbslq_f32(mask, a, b);
}
static inline vf vu_to_float_signed(vu a)
{
    return vcvtq_f32_s32(vreinterpretq_s32_u32(a));
}
static inline vu vf_truncate(vf a)
{
    return vreinterpretq_u32_s32(vcvtq_s32_f32(a));
}

/* doubles */
static inline vd vd_load(const double *p)
{
    return vld1q_f64(p);
}
static inline void vd_store(double *p, vd v)
{
    vst1q_f64(p, v);
}
static inline vd vd_set1(double x)
{
    return vdupq_n_f64(x);
}
static inline vd vd_zero(void)
{
    return vdupq_n_f64(0);
}
static inline vd vd_add(vd a, vd b)
{
    return vaddq_f64(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return vsubq_f64(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return vmulq_f64(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return vfmaq_f64(c, a, b);
}
static inline vd vd_load_float(const float *p)
{
    return vcvt_f64_f32(vld1_f32(p));
}
static inline void vd_store_float(float *p, vd a)
{
    vst1_f32(p, vcvt_f32_f64(a));
}
static inline void vf_to_f64(vf a, vd f64[2])
{
    f64[0] = vcvt_f64_f32(vget_low_f32(a));
    f64[1] = vcvt_high_f64_f32(a);
}

#endif
