/* The trial arithmetic for sketches of signs by AVX-512 and by AMX.
 *
 * AMX: an integer is its three bytes, the highest signed. A tile register has 16 rows of 64 signs,
 * made of the generator's bits, or 16 points of one byte of 64 coordinates, or 16 x 16 sums. Two of
 * each at a time: four products of four registers. */
#include "job.h"

#include "cpu/convert.h"
#include "cpu/levels.h"

#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_FEATURES "avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-int8"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(LEVEL_FEATURES))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-int8")
#endif

#include "cpu/simd_avx512.h"

static inline vu vu_most(vu a, vu b)
{
    return _mm512_max_epu32(a, b);
}
static inline vu vu_magnitude(vu a)
{
    return _mm512_abs_epi32(a);
}
static inline bool vu_all_above(vu a, int limit)
{
    return _mm512_cmpgt_epi32_mask(a, _mm512_set1_epi32(limit)) == 0xffff;
}
static inline vu vf_nearest(vf a)
{
    return _mm512_cvtps_epi32(a);
}
static inline void vu_to_f64(vu a, vd f64[2])
{
    f64[0] = _mm512_cvtepi32_pd(_mm512_castsi512_si256(a));
    f64[1] = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(a, 1));
}

#include "cpu.inc"

int signs_sketch_avx512(const signs_job *job)
{
    return sketch_by_tables(job);
}

/* ---- AMX ---- */

#if defined(SIGNS_EMULATED_TILES) /* to try it where there is none */
static __thread uint8_t tile_of[8][16][64];
static void tile_load(int t, const void *from, int64_t stride)
{
    for (int i = 0; i < 16; i++)
        memcpy(tile_of[t][i], (const char *)from + i * stride, 64);
}
static void tile_store(int t, void *to, int64_t stride)
{
    for (int i = 0; i < 16; i++)
        memcpy((char *)to + i * stride, tile_of[t][i], 64);
}
static void tile_product(int t, int a, int b, bool is_signed)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int32_t sum;
            memcpy(&sum, &tile_of[t][i][4 * j], 4);
            for (int q = 0; q < 64; q++) {
                const uint8_t right = tile_of[b][q / 4][4 * j + q % 4];
                sum += (int8_t)tile_of[a][i][q] * (is_signed ? (int8_t)right : (int32_t)right);
            }
            memcpy(&tile_of[t][i][4 * j], &sum, 4);
        }
}
#define TILE_CONFIGURE(at)         (void)(at)
#define TILE_RELEASE()             (void)0
#define TILE_ZERO(t)               memset(tile_of[t], 0, sizeof tile_of[t])
#define TILE_LOAD(t, from, stride) tile_load(t, from, stride)
#define TILE_STORE(t, to, stride)  tile_store(t, to, stride)
#define TILE_SIGNED(t, a, b)       tile_product(t, a, b, true)
#define TILE_UNSIGNED(t, a, b)     tile_product(t, a, b, false)
#else
#define TILE_CONFIGURE(at)         _tile_loadconfig(at)
#define TILE_RELEASE()             _tile_release()
#define TILE_ZERO(t)               _tile_zero(t)
#define TILE_LOAD(t, from, stride) _tile_loadd(t, from, stride)
#define TILE_STORE(t, to, stride)  _tile_stored(t, to, stride)
#define TILE_SIGNED(t, a, b)       _tile_dpbssd(t, a, b)
#define TILE_UNSIGNED(t, a, b)     _tile_dpbsud(t, a, b)
#endif

typedef struct amx_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

static const amx_config amx_tiles = {.palette = 1,
                                     .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                     .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

enum {
    AMX_STEPS = SIGNS_BLOCK / 64, /* of 64 columns */
    AMX_CHUNK = 16,               /* steps whose signs stay in the first cache */
    AMX_TILE = 1024,              /* bytes of a register */
    AMX_GROUP = 8,                /* tiles of points whose bytes stay in the second cache */
    AMX_SLICE = AMX_STEPS * AMX_TILE,
};

/* The bytes of a tile of integers, cols a multiple of 64: to[byte][step][16 x 4 coordinates]. */
static void amx_slices(const int32_t *tile, int64_t cols, uint8_t *to)
{
    const __m512i low = _mm512_set1_epi32(0xff);
    for (int64_t j = 0; j < cols; j += 4) {
        __m512i q[4];
        for (int c = 0; c < 4; c++)
            q[c] = _mm512_loadu_si512(tile + (j + c) * GNOMON_LANES);
        for (int byte = 0; byte < 3; byte++) {
            __m512i word = _mm512_setzero_si512();
            for (int c = 3; c >= 0; c--)
                word = _mm512_or_si512(
                    _mm512_slli_epi32(word, 8),
                    _mm512_and_si512(_mm512_srli_epi32(q[c], (unsigned)(8 * byte)), low));
            _mm512_storeu_si512(to + byte * AMX_SLICE + j * GNOMON_LANES, word);
        }
    }
}

/* 32 rows of +-1: to[step][row of 32][64], two registers' a step. bits: [step][row]. */
static void amx_signs(const uint64_t *bits, int64_t steps, int64_t rows, int64_t row, int8_t *to)
{
    const __m512i one = _mm512_set1_epi8(1), minus = _mm512_set1_epi8(-1);
    for (int64_t s = 0; s < steps; s++)
        for (int r = 0; r < 32; r++)
            _mm512_storeu_si512(to + s * 2 * AMX_TILE + r * 64,
                                _mm512_mask_blend_epi8(bits[s * rows + row + r], one, minus));
}

/* sums[tile of points][32 rows][16] of one byte: begun, or added to. */
ALWAYS_INLINE void amx_quad(const bool is_signed, const bool begins, const int8_t *signs,
                            const uint8_t *x0, const uint8_t *x1, int64_t steps,
                            int32_t sums[2][32][GNOMON_LANES])
{
    if (begins) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    } else {
        TILE_LOAD(0, sums[0][0], 64);
        TILE_LOAD(1, sums[0][16], 64);
        TILE_LOAD(2, sums[1][0], 64);
        TILE_LOAD(3, sums[1][16], 64);
    }
    for (int64_t s = 0; s < steps; s++) {
        TILE_LOAD(6, x0 + s * AMX_TILE, 64);
        TILE_LOAD(4, signs + s * 2 * AMX_TILE, 64);
        TILE_LOAD(7, x1 + s * AMX_TILE, 64);
        TILE_LOAD(5, signs + s * 2 * AMX_TILE + AMX_TILE, 64);
        if (is_signed) {
            TILE_SIGNED(0, 4, 6);
            TILE_SIGNED(2, 4, 7);
            TILE_SIGNED(1, 5, 6);
            TILE_SIGNED(3, 5, 7);
        } else {
            TILE_UNSIGNED(0, 4, 6);
            TILE_UNSIGNED(2, 4, 7);
            TILE_UNSIGNED(1, 5, 6);
            TILE_UNSIGNED(3, 5, 7);
        }
    }
    TILE_STORE(0, sums[0][0], 64);
    TILE_STORE(1, sums[0][16], 64);
    TILE_STORE(2, sums[1][0], 64);
    TILE_STORE(3, sums[1][16], 64);
}

ALWAYS_INLINE void amx_quads(const bool begins, const int8_t *signs, const uint8_t *x0,
                             const uint8_t *x1, int64_t steps, int32_t sums[3][2][32][GNOMON_LANES])
{
    amx_quad(false, begins, signs, x0, x1, steps, sums[0]);
    amx_quad(false, begins, signs, x0 + AMX_SLICE, x1 + AMX_SLICE, steps, sums[1]);
    amx_quad(true, begins, signs, x0 + 2 * AMX_SLICE, x1 + 2 * AMX_SLICE, steps, sums[2]);
}

/* acc[32 rows][16] += (2^16 high + 2^8 middle + low) unit */
static void amx_join(int32_t (*high)[GNOMON_LANES], int32_t (*middle)[GNOMON_LANES],
                     int32_t (*low)[GNOMON_LANES], const double *unit, double *acc)
{
    for (int r = 0; r < 32; r++)
        for (int h = 0; h < GNOMON_LANES; h += VD) {
            const __m256i a = _mm256_add_epi32(
                _mm256_slli_epi32(_mm256_loadu_si256((const void *)(high[r] + h)), 8),
                _mm256_loadu_si256((const void *)(middle[r] + h)));
            const vd b = _mm512_cvtepi32_pd(_mm256_loadu_si256((const void *)(low[r] + h)));
            const vd sum = vd_fma(_mm512_cvtepi32_pd(a), vd_set1(256), b);
            double *to = acc + r * GNOMON_LANES + h;
            vd_store(to, vd_fma(sum, vd_load(unit + h), vd_load(to)));
        }
}

/* bits[step][row], of the columns from 'from' on. */
static void amx_bits(const gnomon_simple *a, int64_t from, int64_t steps, uint64_t *bits)
{
    uint32_t low[WORDS_ROWS], high[WORDS_ROWS];
    for (int64_t s = 0; s < steps; s++)
        for (int64_t r = 0; r < a->rows; r += WORDS_ROWS) {
            const int64_t some = a->rows - r < WORDS_ROWS ? a->rows - r : WORDS_ROWS;
            words_of_rows(a, GNOMON_TAG_SIGN, r, some, (uint64_t)(from / 32 + 2 * s), low);
            words_of_rows(a, GNOMON_TAG_SIGN, r, some, (uint64_t)(from / 32 + 2 * s + 1), high);
            for (int64_t i = 0; i < some; i++)
                bits[s * a->rows + r + i] = (uint64_t)high[i] << 32 | low[i];
        }
}

int signs_sketch_amx(const signs_job *job)
{
    const int64_t k = job->a->rows, d = job->a->cols, tiles = gnomon_tiles_of(job->n);
    const size_t lanes = (size_t)k * GNOMON_LANES;
    float *tile = aligned_alloc(64, (size_t)SIGNS_BLOCK * GNOMON_LANES * sizeof *tile);
    uint8_t *slices = aligned_alloc(64, (size_t)AMX_GROUP * 3 * AMX_SLICE);
    int8_t *signs = aligned_alloc(64, (size_t)AMX_CHUNK * 2 * AMX_TILE);
    uint64_t *bits = malloc((size_t)AMX_STEPS * (size_t)k * sizeof *bits);
    int32_t(*sums)[3][2][32][GNOMON_LANES] = aligned_alloc(64, AMX_GROUP / 2 * sizeof *sums);
    double *acc = calloc((size_t)tiles * lanes, sizeof *acc);
    const int ok = tile && slices && signs && bits && sums && acc;
    TILE_CONFIGURE(&amx_tiles);
    for (int64_t from = 0; ok && from < d; from += SIGNS_BLOCK) {
        const int64_t cols = d - from < SIGNS_BLOCK ? d - from : SIGNS_BLOCK;
        const int64_t steps = (cols + 63) / 64;
        amx_bits(job->a, from, steps, bits);
        for (int64_t first = 0; first < tiles; first += AMX_GROUP) {
            lane_cuts cuts[AMX_GROUP];
            double unit[AMX_GROUP][GNOMON_LANES];
            const int64_t count = tiles - first < AMX_GROUP ? tiles - first : AMX_GROUP;
            for (int64_t t = 0; t < count; t++) {
                memset(tile + cols * GNOMON_LANES, 0,
                       (size_t)((steps * 64 - cols) * GNOMON_LANES) * sizeof *tile);
                integers_of(job, first + t, from, cols, tile, &cuts[t]);
                amx_slices((const int32_t *)(const void *)tile, steps * 64,
                           slices + t * 3 * AMX_SLICE);
                for (int l = 0; l < GNOMON_LANES; l++)
                    unit[t][l] = signs_unit(cuts[t].exponent[l]);
            }
            for (int64_t row = 0; row < k; row += 32) {
                for (int64_t step = 0; step < steps; step += AMX_CHUNK) {
                    const int64_t some = steps - step < AMX_CHUNK ? steps - step : AMX_CHUNK;
                    amx_signs(bits + step * k, some, k, row, signs);
                    for (int64_t t = 0; t < count; t += 2) {
                        const uint8_t *x0 = slices + t * 3 * AMX_SLICE + step * AMX_TILE;
                        const uint8_t *x1 = t + 1 < count ? x0 + 3 * AMX_SLICE : x0;
                        if (step == 0)
                            amx_quads(true, signs, x0, x1, some, sums[t / 2]);
                        else
                            amx_quads(false, signs, x0, x1, some, sums[t / 2]);
                    }
                }
                for (int64_t t = 0; t < count; t++)
                    amx_join(sums[t / 2][2][t % 2], sums[t / 2][1][t % 2], sums[t / 2][0][t % 2],
                             unit[t], acc + (size_t)(first + t) * lanes + row * GNOMON_LANES);
            }
            for (int64_t t = 0; t < count; t++)
                add_left(job, from, &cuts[t], acc + (size_t)(first + t) * lanes);
        }
    }
    TILE_RELEASE();
    for (int64_t t = 0; ok && t < tiles; t++)
        put(job, t, acc + (size_t)t * lanes);
    free(tile);
    free(slices);
    free(signs);
    free(bits);
    free(sums);
    free(acc);
    return ok;
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
