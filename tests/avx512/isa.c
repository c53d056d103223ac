/* The choice of a level, with AVX-512 always to be had. */
#define GNOMON_EMULATED_AVX512
#include "base/isa.c"
