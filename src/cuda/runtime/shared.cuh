/* cuda/runtime/shared.cuh: places in shared memory as 32-bit addresses, which the matrix
 * instructions and asynchronous copies ask for, and loads from them. */
#ifndef GNOMON_CUDA_SHARED_CUH
#define GNOMON_CUDA_SHARED_CUH

#include <stdint.h>

static __device__ __forceinline__ uint32_t gcu_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ uint32_t gcu_load_shared_word(uint32_t at)
{
    uint32_t w;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w) : "r"(at) : "memory");
    return w;
}

static __device__ __forceinline__ float gcu_load_shared(uint32_t at)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at) : "memory");
    return x;
}

static __device__ __forceinline__ float2 gcu_load_shared_pair(uint32_t at)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at) : "memory");
    return x;
}

#endif
