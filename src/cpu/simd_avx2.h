/* cpu/simd_avx2.h: the vector layer (see simd_portable.h) on AVX2 and FMA. */
#ifndef GNOMON_CPU_SIMD_H
#define GNOMON_CPU_SIMD_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { VW = 8, VD = 4 };

#define KEEP_VECTOR(a) __asm__("" : "+x"(a))

typedef __m256 vf;
typedef __m256d vd;
typedef __m256i vu;

/* floats */
static inline vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline vf vf_load_half(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline vf vf_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}
static inline vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf vf_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
static inline uint32_t vf_not_below(vf a, vf b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ));
}
static inline vu vf_bits(vf a)
{
    return _mm256_castps_si256(a);
}

static inline void vf_transpose(vf r[VW])
{
    vf pair[VW], four[VW];
    for (int i = 0; i < VW; i += 2) {
        pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < VW; i += 4) {
        for (int c = 0; c < 2; c++) {
            const vd a = _mm256_castps_pd(pair[i + c]), b = _mm256_castps_pd(pair[i + c + 2]);
            four[i + 2 * c] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            four[i + 2 * c + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    }
    for (int c = 0; c < 4; c++) {
        r[c] = _mm256_permute2f128_ps(four[c], four[4 + c], 0x20);
        r[4 + c] = _mm256_permute2f128_ps(four[c], four[4 + c], 0x31);
    }
}

/* words */
static inline vu vu_load(const uint32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline void vu_store(uint32_t *p, vu v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}
static inline vu vu_set1(uint32_t x)
{
    return _mm256_set1_epi32((int32_t)x);
}
static inline vu vu_iota(void)
{
    return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}
static inline vu vu_add(vu a, vu b)
{
    return _mm256_add_epi32(a, b);
}
static inline vu vu_sub(vu a, vu b)
{
    return _mm256_sub_epi32(a, b);
}
static inline vu vu_mul(vu a, vu b)
{
    return _mm256_mullo_epi32(a, b);
}
static inline vu vu_mul_pairs(vu a, vu b)
{
    return _mm256_madd_epi16(a, b);
}
static inline vu vu_mul_quads(vu a, vu b)
{
    return _mm256_maddubs_epi16(a, b);
}
static inline vu vu_add_pairs(vu a, vu b)
{
    return _mm256_add_epi16(a, b);
}
static inline void vu_mul_wide(vu a, vu m, vu *high, vu *low)
{
    const __m256i even = _mm256_mul_epu32(a, m);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), m);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
static inline vu vu_and(vu a, vu b)
{
    return _mm256_and_si256(a, b);
}
static inline vu vu_or(vu a, vu b)
{
    return _mm256_or_si256(a, b);
}
static inline vu vu_xor(vu a, vu b)
{
    return _mm256_xor_si256(a, b);
}
/* whether a bit is set */
static inline bool vu_any(vu a)
{
    return !_mm256_testz_si256(a, a);
}
/* the odd lanes of one for the even lanes before them of the other */
static inline void vu_trade(vu *even, vu *odd)
{
    const vu e = *even, o = *odd;
    *even = _mm256_blend_epi32(e, _mm256_slli_epi64(o, 32), 0xaa);
    *odd = _mm256_blend_epi32(_mm256_srli_epi64(e, 32), o, 0xaa);
}
static inline vu vu_shl(vu a, int n)
{
    return _mm256_slli_epi32(a, n);
}
static inline vu vu_shr(vu a, int n)
{
    return _mm256_srli_epi32(a, n);
}
static inline vu vu_sar(vu a, int n)
{
    return _mm256_srai_epi32(a, n);
}
static inline vu vu_eq(vu a, vu b)
{
    return _mm256_cmpeq_epi32(a, b);
}
static inline vu vu_gt_signed(vu a, vu b)
{
    return _mm256_cmpgt_epi32(a, b);
}
static inline vu vu_select(vu mask, vu a, vu b)
{
    return _mm256_blendv_epi8(b, a, mask);
}
static inline vf vu_as_float(vu a)
{
    return _mm256_castsi256_ps(a);
}
static inline vf vf_select(vu mask, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(mask));
}
static inline vf vu_to_float_signed(vu a)
{
    return _mm256_cvtepi32_ps(a);
}
static inline vu vf_truncate(vf a)
{
    return _mm256_cvttps_epi32(a);
}

/* doubles */
static inline vd vd_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
static inline void vd_store(double *p, vd v)
{
    _mm256_storeu_pd(p, v);
}
static inline vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}
static inline vd vd_zero(void)
{
    return _mm256_setzero_pd();
}
static inline vd vd_add(vd a, vd b)
{
    return _mm256_add_pd(a, b);
}
static inline vd vd_sub(vd a, vd b)
{
    return _mm256_sub_pd(a, b);
}
static inline vd vd_mul(vd a, vd b)
{
    return _mm256_mul_pd(a, b);
}
static inline vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}
static inline vd vd_load_float(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}
static inline void vd_store_float(float *p, vd a)
{
    _mm_storeu_ps(p, _mm256_cvtpd_ps(a));
}
static inline void vf_to_f64(vf a, vd f64[2])
{
    f64[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    f64[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
}

#endif
