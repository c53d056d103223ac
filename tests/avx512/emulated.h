/* AVX-512 in AVX2: SIMDe's portable forms of the intrinsics, and our own of those that its
 * 0.7 lacks or does not fuse. Lets the AVX-512 level run, slowly, where no processor has it. */
#ifndef GNOMON_TESTS_AVX512_EMULATED_H
#define GNOMON_TESTS_AVX512_EMULATED_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <immintrin.h>
#include <math.h>
#include <simde/x86/avx512.h>

static inline simde__m512i emulated_srai_epi32(simde__m512i a, unsigned count)
{
    __m256i h[2];
    memcpy(h, &a, sizeof h);
    h[0] = _mm256_srai_epi32(h[0], (int)count);
    h[1] = _mm256_srai_epi32(h[1], (int)count);
    memcpy(&a, h, sizeof h);
    return a;
}

/* SIMDe's overflows a signed product, which the undefined-behaviour sanitizer reports. */
static inline simde__m512i emulated_mullo_epi32(simde__m512i a, simde__m512i b)
{
    __m256i x[2], y[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    x[0] = _mm256_mullo_epi32(x[0], y[0]);
    x[1] = _mm256_mullo_epi32(x[1], y[1]);
    memcpy(&a, x, sizeof a);
    return a;
}

/* SIMDe 0.7 names a macro of four arguments so. */
static inline simde__m512i emulated_madd_epi16(simde__m512i a, simde__m512i b)
{
    __m256i x[2], y[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    x[0] = _mm256_madd_epi16(x[0], y[0]);
    x[1] = _mm256_madd_epi16(x[1], y[1]);
    memcpy(&a, x, sizeof a);
    return a;
}

static inline simde__m512 emulated_cvtepi32_ps(simde__m512i a)
{
    __m256i h[2];
    __m256 f[2];
    simde__m512 r;
    memcpy(h, &a, sizeof h);
    f[0] = _mm256_cvtepi32_ps(h[0]);
    f[1] = _mm256_cvtepi32_ps(h[1]);
    memcpy(&r, f, sizeof r);
    return r;
}

static inline simde__m512i emulated_cvtepi8_epi32(__m128i a)
{
    const __m256i h[2] = {_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8))};
    simde__m512i r;
    memcpy(&r, h, sizeof r);
    return r;
}

static inline simde__m512i emulated_cvttps_epi32(simde__m512 a)
{
    __m256 f[2];
    __m256i h[2];
    simde__m512i r;
    memcpy(f, &a, sizeof f);
    h[0] = _mm256_cvttps_epi32(f[0]);
    h[1] = _mm256_cvttps_epi32(f[1]);
    memcpy(&r, h, sizeof r);
    return r;
}

static inline simde__m512i emulated_cvtps_epi32(simde__m512 a)
{
    __m256 f[2];
    __m256i h[2];
    simde__m512i r;
    memcpy(f, &a, sizeof f);
    h[0] = _mm256_cvtps_epi32(f[0]);
    h[1] = _mm256_cvtps_epi32(f[1]);
    memcpy(&r, h, sizeof r);
    return r;
}

static inline simde__m512 emulated_maskz_loadu_ps(uint16_t there, const float *from)
{
    float x[16] = {0};
    simde__m512 r;
    for (int i = 0; i < 16; i++)
        if (there >> i & 1) x[i] = from[i];
    memcpy(&r, x, sizeof r);
    return r;
}

static inline simde__m512d emulated_cvtps_pd(__m256 a)
{
    __m256d d[2] = {_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                    _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
    simde__m512d r;
    memcpy(&r, d, sizeof r);
    return r;
}

static inline __m256 emulated_cvtpd_ps(simde__m512d a)
{
    __m256d d[2];
    memcpy(d, &a, sizeof d);
    return _mm256_set_m128(_mm256_cvtpd_ps(d[1]), _mm256_cvtpd_ps(d[0]));
}

static inline __m256 emulated_extractf32x8_ps(simde__m512 a, int half)
{
    __m256 f[2];
    memcpy(f, &a, sizeof f);
    return f[half];
}

static inline simde__m512 emulated_cvtph_ps(__m256i a)
{
    __m256 f[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
                   _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))};
    simde__m512 r;
    memcpy(&r, f, sizeof r);
    return r;
}

/* Quarters of 128 bits: two of a, then two of b. */
static inline simde__m512 emulated_shuffle_f32x4(simde__m512 a, simde__m512 b, int choice)
{
    __m128 qa[4], qb[4], q[4];
    simde__m512 r;
    memcpy(qa, &a, sizeof qa);
    memcpy(qb, &b, sizeof qb);
    q[0] = qa[choice & 3];
    q[1] = qa[choice >> 2 & 3];
    q[2] = qb[choice >> 4 & 3];
    q[3] = qb[choice >> 6 & 3];
    memcpy(&r, q, sizeof r);
    return r;
}

static inline simde__m512 emulated_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c)
{
    __m256 x[2], y[2], z[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    z[0] = _mm256_fmadd_ps(x[0], y[0], z[0]);
    z[1] = _mm256_fmadd_ps(x[1], y[1], z[1]);
    memcpy(&c, z, sizeof c);
    return c;
}

static inline simde__m512d emulated_fmadd_pd(simde__m512d a, simde__m512d b, simde__m512d c)
{
    __m256d x[2], y[2], z[2];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    z[0] = _mm256_fmadd_pd(x[0], y[0], z[0]);
    z[1] = _mm256_fmadd_pd(x[1], y[1], z[1]);
    memcpy(&c, z, sizeof c);
    return c;
}

static inline simde__m512i emulated_dpbusd_epi32(simde__m512i sum, simde__m512i a, simde__m512i b)
{
    int32_t s[16];
    uint8_t x[64];
    int8_t y[64];
    memcpy(s, &sum, sizeof s);
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 64; i++)
        s[i / 4] += x[i] * y[i];
    memcpy(&sum, s, sizeof sum);
    return sum;
}

static inline int32_t emulated_reduce_max_epi32(simde__m512i a)
{
    int32_t x[16], largest;
    memcpy(x, &a, sizeof x);
    largest = x[0];
    for (int i = 1; i < 16; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* The tiles of AMX, all of 16 rows of 64 bytes, and its product of signed bytes. */
static _Thread_local uint8_t emulated_tiles[8][16][64];

static inline void emulated_tile_load(int t, const void *from, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy(emulated_tiles[t][r], (const char *)from + r * stride, 64);
}

static inline void emulated_tile_store(int t, void *to, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy((char *)to + r * stride, emulated_tiles[t][r], 64);
}

static inline void emulated_tile_products(int sums, int a, int b)
{
    int8_t x[16][64], y[16][64];
    int32_t s[16][16];
    memcpy(x, emulated_tiles[a], sizeof x);
    memcpy(y, emulated_tiles[b], sizeof y);
    memcpy(s, emulated_tiles[sums], sizeof s);
    for (int r = 0; r < 16; r++)
        for (int i = 0; i < 64; i++)
            for (int l = 0; l < 16; l++)
                s[r][l] += x[r][i] * y[i / 4][4 * l + i % 4];
    memcpy(emulated_tiles[sums], s, sizeof s);
}

/* Numbers below the normal range are taken, and given, as zeros. */
static inline float emulated_flush(float x)
{
    return x > -0x1p-126f && x < 0x1p-126f ? 0.0f : x;
}

static inline float emulated_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return emulated_flush(x);
}

/* The product of bf16 numbers as Intel's manual defines it: the even and the odd steps of 32 are a
 * chain of fused multiply-adds each, whose sum is added to what was there. */
static inline void emulated_tile_bf16_products(int sums, int a, int b)
{
    uint16_t x[16][32], y[16][32];
    float s[16][16], right[32][16];
    memcpy(x, emulated_tiles[a], sizeof x);
    memcpy(y, emulated_tiles[b], sizeof y);
    memcpy(s, emulated_tiles[sums], sizeof s);
    for (int i = 0; i < 32; i++)
        for (int l = 0; l < 16; l++)
            right[i][l] = emulated_bf16(y[i / 2][2 * l + i % 2]);
    for (int r = 0; r < 16; r++) {
        float chain[2][16] = {{0}};
        for (int i = 0; i < 32; i++) {
            const float left = emulated_bf16(x[r][i]);
            for (int l = 0; l < 16; l++)
                chain[i % 2][l] = emulated_flush(fmaf(left, right[i][l], chain[i % 2][l]));
        }
        for (int l = 0; l < 16; l++)
            s[r][l] =
                emulated_flush(emulated_flush(s[r][l]) + emulated_flush(chain[0][l] + chain[1][l]));
    }
    memcpy(emulated_tiles[sums], s, sizeof s);
}

#define TILE_CONFIGURE(at)             (void)(at)
#define TILE_RELEASE()                 (void)0
#define TILE_ZERO(t)                   memset(emulated_tiles[t], 0, sizeof emulated_tiles[t])
#define TILE_LOAD(t, from, stride)     emulated_tile_load(t, from, stride)
#define TILE_STORE(t, to, stride)      emulated_tile_store(t, to, stride)
#define TILE_PRODUCTS(sums, a, b)      emulated_tile_products(sums, a, b)
#define TILE_BF16_PRODUCTS(sums, a, b) emulated_tile_bf16_products(sums, a, b)

#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32 emulated_dpbusd_epi32
#undef _mm512_srai_epi32
#undef _mm512_mullo_epi32
#undef _mm512_madd_epi16
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvttps_epi32
#undef _mm512_cvtps_epi32
#undef _mm512_maskz_loadu_ps
#undef _mm512_cvtps_pd
#undef _mm512_cvtpd_ps
#undef _mm512_cvtph_ps
#undef _mm512_extractf32x8_ps
#undef _mm512_shuffle_f32x4
#undef _mm512_fmadd_ps
#undef _mm512_fmadd_pd
#define _mm512_reduce_max_epi32 emulated_reduce_max_epi32
#define _mm512_srai_epi32       emulated_srai_epi32
#define _mm512_mullo_epi32      emulated_mullo_epi32
#define _mm512_madd_epi16       emulated_madd_epi16
#define _mm512_cvtepi32_ps      emulated_cvtepi32_ps
#define _mm512_cvtepi8_epi32    emulated_cvtepi8_epi32
#define _mm512_cvttps_epi32     emulated_cvttps_epi32
#define _mm512_cvtps_epi32      emulated_cvtps_epi32
#define _mm512_maskz_loadu_ps   emulated_maskz_loadu_ps
#define _mm512_cvtps_pd         emulated_cvtps_pd
#define _mm512_cvtpd_ps         emulated_cvtpd_ps
#define _mm512_cvtph_ps         emulated_cvtph_ps
#define _mm512_extractf32x8_ps  emulated_extractf32x8_ps
#define _mm512_shuffle_f32x4    emulated_shuffle_f32x4
#define _mm512_fmadd_ps         emulated_fmadd_ps
#define _mm512_fmadd_pd         emulated_fmadd_pd

#endif
