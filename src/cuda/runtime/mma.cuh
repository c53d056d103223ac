/* cuda/runtime/mma.cuh: the matrix instructions of GPUs from Ampere on, and the copies that bring
 * their operands (PTX: mma.sync, ldmatrix, cp.async). Hopper's own are in wgmma.cuh, its bulk
 * copies in bulk.cuh. Places in shared memory are 32-bit addresses (shared.cuh). */
#ifndef GNOMON_CUDA_MMA_CUH
#define GNOMON_CUDA_MMA_CUH

#include "cuda/runtime/shared.cuh"

#include <stdint.h>

/* c += a b: m16 n8 k16, halves, fp32 sums. */
static __device__ __forceinline__ void gcu_mma(float *c, const uint32_t *a, uint32_t b0,
                                               uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += a b: m16 n8 k8, tf32, fp32 sums. */
static __device__ __forceinline__ void gcu_mma_tf32(float *c, const uint32_t *a, uint32_t b0,
                                                    uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* c += a b: m16 n8 k8, all in fp64. Thread 4 g + t has of a rows g and g + 8 of column t, then of
 * column t + 4; of b rows t and t + 4 of column g; of c row g, columns 2 t and 2 t + 1, then row
 * g + 8. */
static __device__ __forceinline__ void gcu_mma_f64(double *c, double a0, double a1, double a2,
                                                   double a3, double b0, double b1)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
#else
    const double a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
                         "{%0, %1};"
                         : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
                         : "d"(a[2 * k + h]), "d"(b[k]));
#endif
}

/* Two and four 8 x 8 matrices of halves: each lane names a row of one. */
static __device__ __forceinline__ void gcu_load_2_matrices(uint32_t *r, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(at)
                 : "memory");
}

static __device__ __forceinline__ void gcu_load_4_matrices(uint32_t *r, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* Begins to copy 16 bytes to shared memory; with 'bytes' those from this number on are zeros, and
 * are not read. */
static __device__ __forceinline__ void gcu_copy16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void gcu_copy16(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* The same of four bytes. */
static __device__ __forceinline__ void gcu_copy4(uint32_t to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void gcu_copy4(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

/* Ends a group of the thread's copies; waits until at most so many groups are on their way. */
static __device__ __forceinline__ void gcu_copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> static __device__ __forceinline__ void gcu_copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

#endif
