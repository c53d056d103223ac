/* cpu/kernels_avx2.c: the kernels of the AVX2 level. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

/* What follows is compiled for the level; the headers above are not. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif

#define LEVEL_ISA   "avx2"
#define LEVEL_TABLE gnomon_kernels_avx2
/* the product's block, rows and tiles: 12 sums of 16 registers */
#define GEMM_ROWS_f32  6
#define GEMM_TILES_f32 1
#define GEMM_ROWS_f64  3
#define GEMM_TILES_f64 1
#define SIFT_ROWS      6
#define SIFT_TILES     1
#include "cpu/simd_avx2.h"

#include "cpu/level.inc"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
