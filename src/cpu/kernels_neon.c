/* cpu/kernels_neon.c: the kernels of the NEON level; AArch64 always has it. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#if defined(__aarch64__)

#define LEVEL_ISA   "neon"
#define LEVEL_TABLE gnomon_kernels_neon
/* the product's block, rows and tiles: 24 sums of 32 registers */
#define GEMM_ROWS_f32  6
#define GEMM_TILES_f32 1
#define GEMM_ROWS_f64  3
#define GEMM_TILES_f64 1
#define SIFT_ROWS      6
#define SIFT_TILES     1
#include "cpu/simd_neon.h"

#include "cpu/level.inc"

#endif
