/* cuda/runtime/wgmma.cuh: Hopper's matrix instruction and what orders it (PTX: wgmma). Only for the
 * pass that compiles for sm_90a. */
#ifndef GNOMON_CUDA_WGMMA_CUH
#define GNOMON_CUDA_WGMMA_CUH

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

/* The names of an instruction's first operands, its sums, and these operands themselves. */
#define GCU_WGMMA_NAMES_4  "%0, %1, %2, %3"
#define GCU_WGMMA_NAMES_8  GCU_WGMMA_NAMES_4 ", %4, %5, %6, %7"
#define GCU_WGMMA_NAMES_16 GCU_WGMMA_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GCU_WGMMA_NAMES_32                     \
    GCU_WGMMA_NAMES_16                         \
    ", %16, %17, %18, %19, %20, %21, %22, %23" \
    ", %24, %25, %26, %27, %28, %29, %30, %31"
#define GCU_WGMMA_NAMES_64                     \
    GCU_WGMMA_NAMES_32                         \
    ", %32, %33, %34, %35, %36, %37, %38, %39" \
    ", %40, %41, %42, %43, %44, %45, %46, %47" \
    ", %48, %49, %50, %51, %52, %53, %54, %55" \
    ", %56, %57, %58, %59, %60, %61, %62, %63"
#define GCU_WGMMA_NAMES_128                            \
    GCU_WGMMA_NAMES_64                                 \
    ", %64, %65, %66, %67, %68, %69, %70, %71"         \
    ", %72, %73, %74, %75, %76, %77, %78, %79"         \
    ", %80, %81, %82, %83, %84, %85, %86, %87"         \
    ", %88, %89, %90, %91, %92, %93, %94, %95"         \
    ", %96, %97, %98, %99, %100, %101, %102, %103"     \
    ", %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119" \
    ", %120, %121, %122, %123, %124, %125, %126, %127"
#define GCU_WGMMA_SUMS_4(c)   "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define GCU_WGMMA_SUMS_8(c)   GCU_WGMMA_SUMS_4(c), GCU_WGMMA_SUMS_4((c) + 4)
#define GCU_WGMMA_SUMS_16(c)  GCU_WGMMA_SUMS_8(c), GCU_WGMMA_SUMS_8((c) + 8)
#define GCU_WGMMA_SUMS_32(c)  GCU_WGMMA_SUMS_16(c), GCU_WGMMA_SUMS_16((c) + 16)
#define GCU_WGMMA_SUMS_64(c)  GCU_WGMMA_SUMS_32(c), GCU_WGMMA_SUMS_32((c) + 32)
#define GCU_WGMMA_SUMS_128(c) GCU_WGMMA_SUMS_64(c), GCU_WGMMA_SUMS_64((c) + 64)

/* c (+)= a b: m64 nN k16, halves, fp32 sums; 'add' false starts from zero. */
template <int N>
static __device__ __forceinline__ void gcu_wgmma(float *c, const uint32_t a[4], uint32_t b,
                                                 int add);

template <>
__device__ __forceinline__ void gcu_wgmma<8>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %9, 0; mov.b64 b, {%8, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {" GCU_WGMMA_NAMES_4
                 "}, {%4, %5, %6, %7}, b, p, 1, 1, 0;}"
                 : GCU_WGMMA_SUMS_4(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<16>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %13, 0; mov.b64 b, {%12, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {" GCU_WGMMA_NAMES_8
                 "}, {%8, %9, %10, %11}, b, p, 1, 1, 0;}"
                 : GCU_WGMMA_SUMS_8(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<32>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %21, 0; mov.b64 b, {%20, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {" GCU_WGMMA_NAMES_16
                 "}, {%16, %17, %18, %19}, b, p, 1, 1, 0;}"
                 : GCU_WGMMA_SUMS_16(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<64>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %37, 0; mov.b64 b, {%36, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" GCU_WGMMA_NAMES_32
                 "}, {%32, %33, %34, %35}, b, p, 1, 1, 0;}"
                 : GCU_WGMMA_SUMS_32(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

template <>
__device__ __forceinline__ void gcu_wgmma<128>(float *c, const uint32_t a[4], uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %69, 0; mov.b64 b, {%68, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" GCU_WGMMA_NAMES_64
                 "}, {%64, %65, %66, %67}, b, p, 1, 1, 0;}"
                 : GCU_WGMMA_SUMS_64(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

/* c (+)= a b: m64 nN k32, where two of every four numbers of a row of a are left out because they
 * are zero: 'which' has, of the row and the columns that the instruction asks of this lane, the
 * places of those that are there, two bits each; a lane of a quad is asked by SELECT: the first two
 * lanes, or the last two (PTX: wgmma with .sp). */
template <int N, int SELECT>
static __device__ __forceinline__ void gcu_wgmma_sparse(float *c, const uint32_t a[4], uint32_t b,
                                                        uint32_t which, int add)
{
    static_assert(N == 16 || N == 32 || N == 64, "");
    if constexpr (N == 16)
        asm volatile(
            "{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %14, 0; mov.b64 b, {%12, 0x40000040}; "
            "wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16 {" GCU_WGMMA_NAMES_8
            "}, {%8, %9, %10, %11}, b, %13, %15, p, 1, 1, 0;}"
            : GCU_WGMMA_SUMS_8(c)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(which), "r"(add),
              "n"(SELECT));
    else if constexpr (N == 32)
        asm volatile(
            "{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %22, 0; mov.b64 b, {%20, 0x40000040}; "
            "wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.f16.f16 {" GCU_WGMMA_NAMES_16
            "}, {%16, %17, %18, %19}, b, %21, %23, p, 1, 1, 0;}"
            : GCU_WGMMA_SUMS_16(c)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(which), "r"(add),
              "n"(SELECT));
    else if constexpr (N == 64)
        asm volatile(
            "{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %38, 0; mov.b64 b, {%36, 0x40000040}; "
            "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {" GCU_WGMMA_NAMES_32
            "}, {%32, %33, %34, %35}, b, %37, %39, p, 1, 1, 0;}"
            : GCU_WGMMA_SUMS_32(c)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(which), "r"(add),
              "n"(SELECT));
}

/* c (+)= a b: m64 n64 k8; tf32; b as above, of lines of 32 numbers. */
static __device__ __forceinline__ void gcu_wgmma_tf32_64(float *c, const uint32_t a[4], uint32_t b,
                                                         int add)
{
    asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %37, 0; mov.b64 b, {%36, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" GCU_WGMMA_NAMES_32
                 "}, {%32, %33, %34, %35}, b, p, 1, 1;}"
                 : GCU_WGMMA_SUMS_32(c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
}

/* c (+)= a b: m64 n256 k16, halves, both operands in shared memory, fp32 sums. */
static __device__ __forceinline__ void gcu_wgmma_shared(float *c, uint32_t a, uint32_t b, int add)
{
    asm volatile("{.reg .pred p; .reg .b64 a, b; setp.ne.b32 p, %130, 0; "
                 "mov.b64 a, {%128, 0x40000040}; mov.b64 b, {%129, 0x40000040}; "
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" GCU_WGMMA_NAMES_128
                 "}, a, b, p, 1, 1, 0, 0;}"
                 : GCU_WGMMA_SUMS_128(c)
                 : "r"(a), "r"(b), "r"(add));
}

#endif
