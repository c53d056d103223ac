/* cuda/gemm/tf32.cuh: an fp32 number as two TF32 numbers, and Hopper's matrix instruction for them
 * (only for the pass that compiles for sm_90a). */
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

/* c (+)= a b: m64 n64 k8; b as gcu_wgmma's (runtime/wgmma.cuh), of lines of 32 numbers. */
static __device__ __forceinline__ void gcu_wgmma_tf32_64(float *c, const uint32_t a[4], uint32_t b,
                                                         int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %37, 0; mov.b64 b, {%36, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                 "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, {%32, %33, %34, %35}, b, p, 1, 1;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                   "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                   "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                   "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                   "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                   "+f"(c[30]), "+f"(c[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

#endif
