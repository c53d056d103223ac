/* cpu/simd_avx512.h: the vector layer (see simd_portable.h) on AVX-512 F, BW, DQ and VL. */
#ifndef GNOMON_CPU_SIMD_H
#define GNOMON_CPU_SIMD_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { VW = 16, VD = 8 };

#if defined(GNOMON_EMULATED_AVX512)
#define KEEP_VECTOR(a) __asm__("" : "+m"(a))
#else
#define KEEP_VECTOR(a) __asm__("" : "+v"(a))
#endif

typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vu;

/* floats */
static inline vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline vf vf_load_half(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
static inline vf vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
static inline void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}
static inline vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}
static inline vf vf_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
static inline uint32_t vf_not_below(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
static inline vu vf_bits(vf a)
{
    return _mm512_castps_si512(a);
}

static inline void vf_transpose(vf r[VW])
{
    vf pair[VW], four[VW];
    for (int i = 0; i < VW; i += 2) {
        pair[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    /* four[4 g + c]'s 128-bit part p: column 4 p + c of rows 4 g ... 4 g + 3 */
    for (int i = 0; i < VW; i += 4) {
        for (int c = 0; c < 2; c++) {
            const vd a = _mm512_castps_pd(pair[i + c]), b = _mm512_castps_pd(pair[i + c + 2]);
            four[i + 2 * c] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            four[i + 2 * c + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    for (int c = 0; c < 4; c++) {
        const vf a = _mm512_shuffle_f32x4(four[c], four[4 + c], 0x44);
        const vf b = _mm512_shuffle_f32x4(four[8 + c], four[12 + c], 0x44);
        const vf d = _mm512_shuffle_f32x4(four[c], four[4 + c], 0xee);
        const vf e = _mm512_shuffle_f32x4(four[8 + c], four[12 + c], 0xee);
        r[c] = _mm512_shuffle_f32x4(a, b, 0x88);
        r[4 + c] = _mm512_shuffle_f32x4(a, b, 0xdd);
        r[8 + c] = _mm512_shuffle_f32x4(d, e, 0x88);
        r[12 + c] = _mm512_shuffle_f32x4(d, e, 0xdd);
    }
}

/* words */
static inline vu vu_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}
static inline void vu_store(uint32_t *p, vu v)
{
    _mm512_storeu_si512(p, v);
}
static inline vu vu_set1(uint32_t x)
{
    return _mm512_set1_epi32((int32_t)x);
}
static inline vu vu_iota(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline vu vu_add(vu a, vu b)
{
    return _mm512_add_epi32(a, b);
}
static inline vu vu_sub(vu a, vu b)
{
    return _mm512_sub_epi32(a, b);
}
static inline vu vu_mul(vu a, vu b)
{
    return _mm512_mullo_epi32(a, b);
}
static inline vu vu_mul_pairs(vu a, vu b)
{
    return _mm512_madd_epi16(a, b);
}
static inline vu vu_mul_quads(vu a, vu b)
{
    return _mm512_maddubs_epi16(a, b);
}
static inline vu vu_add_pairs(vu a, vu b)
{
    return _mm512_add_epi16(a, b);
}
static inline void vu_mul_wide(vu a, vu m, vu *high, vu *low)
{
    const __m512i even = _mm512_mul_epu32(a, m);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), m);
    *low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
    *high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
}
static inline vu vu_and(vu a, vu b)
{
    return _mm512_and_si512(a, b);
}
static inline vu vu_or(vu a, vu b)
{
    return _mm512_or_si512(a, b);
}
static inline vu vu_xor(vu a, vu b)
{
    return _mm512_xor_si512(a, b);
}
/* cpu/search/planes.inc has these in other levels' operations */
#define HAS_FULL_ADD
/* sum + a + b, bit by bit: leaves the lower bit of two, returns the upper one */
static inline vu vu_full_add(vu *sum, vu a, vu b)
{
    const vu s = *sum;
    *sum = _mm512_ternarylogic_epi32(s, a, b, 0x96);
    return _mm512_ternarylogic_epi32(s, a, b, 0xe8);
}
/* each bit as two at least of the three have it */
static inline vu vu_majority(vu a, vu b, vu c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0xe8);
}
/* whether a bit is set */
static inline bool vu_any(vu a)
{
    return _mm512_test_epi32_mask(a, a) != 0;
}
/* the odd lanes of one for the even lanes before them of the other */
static inline void vu_trade(vu *even, vu *odd)
{
    const vu e = *even, o = *odd;
    *even = _mm512_mask_blend_epi32(0xaaaa, e, _mm512_slli_epi64(o, 32));
    *odd = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(e, 32), o);
}
static inline vu vu_shl(vu a, int n)
{
    return _mm512_slli_epi32(a, (unsigned)n);
}
static inline vu vu_shr(vu a, int n)
{
    return _mm512_srli_epi32(a, (unsigned)n);
}
static inline vu vu_sar(vu a, int n)
{
    return _mm512_srai_epi32(a, (unsigned)n);
}
static inline vu vu_eq(vu a, vu b)
{
    return _mm512_movm_epi32(_mm512_cmpeq_epi32_mask(a, b));
}
static inline vu vu_gt_signed(vu a, vu b)
{
    return _mm512_movm_epi32(_mm512_cmpgt_epi32_mask(a, b));
}
static inline vu vu_select(vu mask, vu a, vu b)
{
    return _mm512_mask_mov_epi32(b, _mm512_movepi32_mask(mask), a);
}
static inline vf vu_as_float(vu a)
{
    return _mm512_castsi512_ps(a);
}
static inline vf vf_select(vu mask, vf a, vf b)
{
    return _mm512_mask_mov_ps(b, _mm512_movepi32_mask(mask), a);
}
static inline vf vu_to_float_signed(vu a)
{
    return _mm512_cvtepi32_ps(a);
}
static inline vu vf_truncate(vf a)
{
    return _mm512_cvttps_epi32(a);
}

/* doubles */
static inline vd vd_load(const double *p)
{
    return _mm512_loadu_pd(p);
}
static inline void vd_store(double *p, vd v)
{
    _mm512_storeu_pd(p, v);
}
static inline vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}
static inline vd vd_zero(void)
{
    return _mm512_setzero_pd();
}
static inline vd vd_add(vd a, vd b)
{
    return _mm512_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm512_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm512_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}
static inline vd vd_load_float(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}
static inline void vd_store_float(float *p, vd a)
{
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(a));
}
static inline void vf_to_f64(vf a, vd f64[2])
{
    f64[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    f64[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
}

#endif
