/* cpu/kernels_portable.c: the kernels for any machine. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#define LEVEL_ISA   "portable"
#define LEVEL_TABLE gnomon_kernels_portable
/* the product's block, rows and tiles: 8 sums of 16 registers */
#define GEMM_ROWS_f32  2
#define GEMM_TILES_f32 1
#define GEMM_ROWS_f64  1
#define GEMM_TILES_f64 1
#define SIFT_ROWS      2
#define SIFT_TILES     1
/* a fused multiply-add may be a call, and many instructions */
#define SLOW_FMA 1
#include "cpu/simd_portable.h"

#include "cpu/level.inc"
