/* cuda/runtime/wgmma_rows.cuh: Hopper's matrix instruction of an operand whose rows of 128 bytes
 * have 64 columns and follow each other along k (runtime/wgmma.cuh: columns, of 64 of k). */
#ifndef GNOMON_CUDA_WGMMA_ROWS_CUH
#define GNOMON_CUDA_WGMMA_ROWS_CUH

#include "cuda/runtime/wgmma.cuh"

#include <stdint.h>

/* Its descriptor, likewise: the low word. */
static __device__ __forceinline__ uint32_t gcu_wgmma_descriptor_rows(uint32_t at)
{
    return (at & 0x3FFFFu) >> 4 | 64u << 16;
}

/* c (+)= a b: m64 n64 k16, halves, fp32 sums. */
static __device__ __forceinline__ void gcu_wgmma_rows_64(float *c, const uint32_t a[4], uint32_t b,
                                                         int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %37, 0; mov.b64 b, {%36, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" GCU_WGMMA_NAMES_32
                 "}, {%32, %33, %34, %35}, b, p, 1, 1, 1;}"
                 : GCU_WGMMA_SUMS_32(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

#endif
