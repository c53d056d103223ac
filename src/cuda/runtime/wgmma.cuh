/* cuda/runtime/wgmma.cuh: Hopper's matrix instruction with its first operand in registers, and what
 * orders it (PTX: wgmma). Only for the pass that compiles for sm_90a. */
#ifndef GNOMON_CUDA_DENSE_WGMMA_CUH
#define GNOMON_CUDA_DENSE_WGMMA_CUH

#include <stdint.h>

static __device__ __forceinline__ void gcu_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void gcu_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> static __device__ __forceinline__ void gcu_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* A warpgroup's registers per thread, given back or taken (PTX: setmaxnreg). */
template <int COUNT> static __device__ __forceinline__ void gcu_registers_dealloc()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> static __device__ __forceinline__ void gcu_registers_alloc()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* Keeps the compiler from moving reads of accumulators before the wait. */
template <int COUNT> static __device__ __forceinline__ void gcu_wgmma_fence_operands(float *c)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(c[i])::"memory");
}

/* Descriptor of an operand whose rows are 128 bytes (64 halves of K), swizzled in groups of eight
 * rows of 1024 bytes: its low word, which alone depends on the shared-memory address 'at'. */
static __device__ __forceinline__ uint32_t gcu_wgmma_descriptor(uint32_t at)
{
    return (at & 0x3FFFFu) >> 4 | 1u << 16;
}

/* c (+)= a b: m64 nN k16, halves, fp32 sums; 'add' false starts from zero. */
template <int N>
static __device__ __forceinline__ void gcu_wgmma(float *c, const uint32_t a[4], uint32_t b,
                                                 int add);

template <>
__device__ __forceinline__ void gcu_wgmma<8>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %9, 0; mov.b64 b, {%8, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {"
                 "%0, %1, %2, %3"
                 "}, {%4, %5, %6, %7}, b, p, 1, 1, 0;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<16>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %13, 0; mov.b64 b, {%12, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7"
                 "}, {%8, %9, %10, %11}, b, p, 1, 1, 0;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                   "+f"(c[6]), "+f"(c[7])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<32>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %21, 0; mov.b64 b, {%20, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
                 "}, {%16, %17, %18, %19}, b, p, 1, 1, 0;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                   "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                   "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<64>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %37, 0; mov.b64 b, {%36, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
                 "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, {%32, %33, %34, %35}, b, p, 1, 1, 0;}"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                   "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                   "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                   "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                   "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                   "+f"(c[30]), "+f"(c[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

#endif
