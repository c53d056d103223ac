/* The trial arithmetic for sketches of signs by AVX2. */
#include "job.h"

#include "cpu/convert.h"
#include "cpu/levels.h"

#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif

#include "cpu/simd_avx2.h"

static inline vu vu_most(vu a, vu b)
{
    return _mm256_max_epu32(a, b);
}
static inline vu vu_magnitude(vu a)
{
    return _mm256_abs_epi32(a);
}
static inline bool vu_all_above(vu a, int limit)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(a, _mm256_set1_epi32(limit))) == -1;
}
static inline vu vf_nearest(vf a)
{
    return _mm256_cvtps_epi32(a);
}
static inline void vu_to_f64(vu a, vd f64[2])
{
    f64[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(a));
    f64[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1));
}

#include "cpu.inc"

int signs_sketch_avx2(const signs_job *job)
{
    return sketch_by_tables(job);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
