/* cuda/runtime/wgmma_rows.cuh: Hopper's matrix instruction of an operand whose rows of 128 bytes
 * have 64 columns and follow each other along k (runtime/wgmma.cuh: columns, of 64 of k). */
#ifndef GNOMON_CUDA_WGMMA_ROWS_CUH
#define GNOMON_CUDA_WGMMA_ROWS_CUH

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
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                 "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, {%32, %33, %34, %35}, b, p, 1, 1, 1;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                   "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                   "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                   "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                   "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                   "+f"(c[30]), "+f"(c[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

#endif
