/* cuda/runtime/bulk.cuh: barriers in shared memory, and the bulk copies that complete on them
 * (sm_90). Places in shared memory are 32-bit addresses (shared.cuh); a barrier takes 8 bytes. */
#ifndef GNOMON_CUDA_BULK_CUH
#define GNOMON_CUDA_BULK_CUH

#include "cuda/runtime/shared.cuh"

#include <cstdint>

static __device__ __forceinline__ void gcu_barrier_init(uint32_t at, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

/* What one thread has initialised, copies and other blocks of the cluster will see. */
static __device__ __forceinline__ void gcu_barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* A ring's barriers, by one thread: so many arrivals fill a stage, and so many empty it. */
static __device__ __forceinline__ void gcu_barriers_init(uint32_t full, uint32_t empty, int stages,
                                                         int filling, int emptying)
{
    for (int i = 0; i < stages; i++) {
        gcu_barrier_init(full + 8 * i, filling);
        gcu_barrier_init(empty + 8 * i, emptying);
    }
    gcu_barrier_init_fence();
}

/* Arrives, and announces bytes that are to come. */
static __device__ __forceinline__ void gcu_barrier_expect(uint32_t at, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void gcu_barrier_wait(uint32_t at, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni over;\n"
                 "bra.uni again;\n"
                 "over:\n"
                 "}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

static __device__ __forceinline__ void gcu_barrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

/* At the same place in block 'block' of the cluster. */
template <int CLUSTER>
static __device__ __forceinline__ void gcu_barrier_arrive(uint32_t at, uint32_t block)
{
    if (CLUSTER == 1)
        gcu_barrier_arrive(at);
    else
        asm volatile("{\n"
                     ".reg .b32 there;\n"
                     "mapa.shared::cluster.u32 there, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                     "}" ::"r"(at),
                     "r"(block)
                     : "memory");
}

static __device__ __forceinline__ void gcu_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

static __device__ __forceinline__ uint32_t gcu_cluster_rank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void gcu_fetch(uint32_t to, const void *from, uint32_t bytes,
                                                 uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* To the same place in all blocks of the cluster. */
template <int CLUSTER>
static __device__ __forceinline__ void gcu_fetch_for_all(uint32_t to, const void *from,
                                                         uint32_t bytes, uint32_t barrier)
{
    if (CLUSTER == 1)
        gcu_fetch(to, from, bytes, barrier);
    else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                     "l"(from), "r"(bytes), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                     : "memory");
}

#endif
