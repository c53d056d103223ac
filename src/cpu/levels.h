/* cpu/levels.h: the tables of the levels that this build may hold. */
#ifndef GNOMON_CPU_LEVELS_H
#define GNOMON_CPU_LEVELS_H

#include "base/memory.h"
#include "kernels.h"

extern const gnomon_kernels gnomon_kernels_portable;
#if defined(__x86_64__)
extern const gnomon_kernels gnomon_kernels_avx2;
extern const gnomon_kernels gnomon_kernels_avx512;
extern const gnomon_kernels gnomon_kernels_avx512_vnni;
extern const gnomon_kernels gnomon_kernels_amx;
#elif defined(__aarch64__)
extern const gnomon_kernels gnomon_kernels_neon;
#endif

#endif
