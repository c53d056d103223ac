/* The kernels of the AVX-512 level, in AVX2. */
#include <string.h>

#include "emulated.h"

#define GNOMON_EMULATED_AVX512
#include "cpu/kernels_avx512.c"
