/* cuda/project/sjlt/sum.cuh: what a sum of sjlt's is made of. */
#ifndef GNOMON_CUDA_SJLT_SUM_CUH
#define GNOMON_CUDA_SJLT_SUM_CUH

#include <stdint.h>

/* sum += x, or -x with minus 1: one fused multiply-add, so that both round alike. */
static __device__ __forceinline__ void sjlt_add(float4 &sum, uint32_t minus, float4 x)
{
    const float s = __uint_as_float(minus << 31 | 0x3F800000u);
    sum.x = fmaf(s, x.x, sum.x);
    sum.y = fmaf(s, x.y, sum.y);
    sum.z = fmaf(s, x.z, sum.z);
    sum.w = fmaf(s, x.w, sum.w);
}

#endif
