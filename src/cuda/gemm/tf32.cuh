/* cuda/gemm/tf32.cuh: an fp32 number as two TF32 numbers. */
#ifndef GNOMON_CUDA_GEMM_TF32_CUH
#define GNOMON_CUDA_GEMM_TF32_CUH

#include <stdint.h>

/* High and low: x to 11 bits, ties away from zero, and what that leaves, whose last bit may be cut
 * off. Infinity and NaN give a NaN, as do magnitudes that 11 bits round to infinity. */
__device__ __forceinline__ void gcu_gemm_split_tf32(float x, uint32_t *high, uint32_t *low)
{
    const uint32_t h = (__float_as_uint(x) + 0x1000u) & ~0x1FFFu;
    *high = h;
    *low = __float_as_uint(x - __uint_as_float(h)) & ~0x1FFFu;
}

#endif
