/* cpu/kernels_avx512.c: the kernels of the AVX-512 level, and of those above it, which have other
 * kernels for 8-bit coordinates and, by AMX, for products. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

/* What follows is compiled for the level; the headers above are not. Tests compile it for
 * AVX2, against emulated intrinsics. */
#if defined(GNOMON_EMULATED_AVX512)
#elif defined(__clang__)
#pragma clang attribute push(                                                           \
    __attribute__((target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl")
#endif

#define LEVEL_ISA   "avx512"
#define LEVEL_TABLE gnomon_kernels_avx512
/* the product's block, rows and tiles: 24 sums of 32 registers */
#define GEMM_ROWS_f32  12
#define GEMM_TILES_f32 2
#define GEMM_ROWS_f64  12
#define GEMM_TILES_f64 1
/* the rows of a search, and the tiles; gcc keeps the sums of more than 16 rows in memory */
#define SIFT_ROWS  12
#define SIFT_TILES 2
#include "cpu/simd_avx512.h"

#include "cpu/level.inc"

#if defined(GNOMON_EMULATED_AVX512)
#elif defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni," \
                          "avx512vbmi"))),                                                      \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512vnni,avx512vbmi")
#endif

#include "cpu/rabitq/tables.inc"

#if defined(GNOMON_EMULATED_AVX512)
#elif defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni," \
                          "amx-tile,amx-int8,amx-bf16"))),                                      \
    apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC target("avx512vnni,amx-tile,amx-int8,amx-bf16")
#endif

#include "cpu/search/limits.inc"

#include "cpu/search/rows.inc"

#include "cpu/search/vnni.inc"

#include "cpu/search/amx.inc"

#include "cpu/rabitq/matrix.inc"

#include "cpu/gemm/slices.inc"

#include "cpu/gemm/coarse.inc"

const gnomon_kernels gnomon_kernels_avx512_vnni =
    LEVEL_KERNELS("avx512_vnni", vnni_search_kernels, vnni_rabitq_kernels, NULL);
const gnomon_kernels gnomon_kernels_amx =
    LEVEL_KERNELS("amx", amx_search_kernels, amx_rabitq_kernels, &amx_slices);

#if defined(GNOMON_EMULATED_AVX512)
#elif defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
