/* cpu/kernels_neon.c: the kernels of the NEON level; AArch64 always has it. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#if defined(__aarch64__)

#define LEVEL_ISA   "neon"
#define LEVEL_TABLE gnomon_kernels_neon
#include "cpu/simd_neon.h"

#include "cpu/level.inc"

#endif
