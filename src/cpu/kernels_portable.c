/* cpu/kernels_portable.c: the kernels for any machine. */
#include "cpu/convert.h"
#include "cpu/levels.h"

#define LEVEL_ISA   "portable"
#define LEVEL_TABLE gnomon_kernels_portable
#include "cpu/simd_portable.h"

#include "cpu/level.inc"
