/* cuda/gemm/presplit.cuh: how A lies when it is cut into halves beforehand.
 *
 * A block of 128 rows and a chunk of k is 8 warps' high halves, 2 KB each, in the order in which
 * the warp's lanes hold them as the matrix instructions' operand; likewise the low ones; the scales
 * of the rows; and for each warp the number, from 1, of the rest to be multiplied after it, or 0. A
 * rest is the same of the 64 rows of a warpgroup. */
#ifndef GNOMON_CUDA_GEMM_PRESPLIT_CUH
#define GNOMON_CUDA_GEMM_PRESPLIT_CUH

#include "cuda/gemm/hopper.cuh"

enum {
    PRESPLIT_HALVES = 16 * GCU_GEMM_CHUNK * 2, /* of a warp's 16 rows: bytes */
    PRESPLIT_WARP = 2 * PRESPLIT_HALVES + 16 * 4 + 4,
    PRESPLIT_BYTES = 8 * PRESPLIT_WARP,
    PRESPLIT_REST_BYTES = 4 * PRESPLIT_WARP
};

#ifdef __CUDACC__

/* A warp's share. */
struct presplit_place {
    uint8_t *high, *low;
    float *scales;
    unsigned *next;
};

static __device__ __forceinline__ presplit_place presplit_place_of(uint8_t *at, int warps, int warp)
{
    uint8_t *const behind = at + 2 * warps * PRESPLIT_HALVES;
    return {at + warp * PRESPLIT_HALVES, at + (warps + warp) * PRESPLIT_HALVES,
            reinterpret_cast<float *>(behind) + warp * 16,
            reinterpret_cast<unsigned *>(behind + warps * 64) + warp};
}

static __device__ __forceinline__ presplit_place presplit_block(uint8_t *block, int warp)
{
    return presplit_place_of(block, 8, warp);
}

static __device__ __forceinline__ presplit_place presplit_rest(uint8_t *rests, unsigned number,
                                                               int warp)
{
    return presplit_place_of(rests + (int64_t)(number - 1) * PRESPLIT_REST_BYTES, 4, warp);
}

#endif
#endif
