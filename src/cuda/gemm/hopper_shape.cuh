/* cuda/gemm/hopper_shape.cuh: blocks of gemm/hopper.cuh: what they hold, and which come when. */
#ifndef GNOMON_CUDA_GEMM_HOPPER_SHAPE_CUH
#define GNOMON_CUDA_GEMM_HOPPER_SHAPE_CUH

#include "cuda/gemm/launch.h"
#include "cuda/runtime/shared.cuh"

enum {
    GEMM_M = 128,
    GEMM_GROUP = 8,  /* pairs of blocks of rows that share columns of B */
    GEMM_PIECE = 64, /* columns of a round of the tensor cores */
    GEMM_PITCH = 36, /* of sums in shared memory on their way */
    GEMM_THREADS = 384
};

/* Blocks of rows and columns, and how they are walked. */
struct gemm_walk {
    int pairs, cols, items; /* of rows (or single ones), of columns; with the splits */
};

template <int N, gcu_gemm_form FORM> struct gemm_shape {
    static constexpr bool three = FORM == GCU_GEMM_THREE;
    static constexpr bool tf32 = FORM == GCU_GEMM_TF32;
    static constexpr bool apart = FORM == GCU_GEMM_FP16 || three; /* low halves times 2^11 */
    static constexpr bool scaled = FORM == GCU_GEMM_SCALED || three;
    static constexpr int depth = tf32 ? 32 : 64; /* of k, a stage's: lines of 128 bytes of B */
    static constexpr int rounds = GCU_GEMM_CHUNK / depth;
    static constexpr int a_bytes = GEMM_M * depth * 4;
    static constexpr int b_bytes = N * 128;
    static constexpr int bytes = a_bytes + (three ? 2 * b_bytes + N * 4 : b_bytes);
    static constexpr int stage = (bytes + 1023) / 1024 * 1024;
    static constexpr int room = 8 * 16 * GEMM_PITCH * 4; /* see gemm_store_any */
    static constexpr int fit = (224 * 1024 - room) / stage;
    static constexpr int stages = fit > 6 ? 6 : fit;
    static constexpr int shared = stages * stage + room + 1024;
    /* whether it takes what is left of a product of halves cut before; always in pairs of blocks */
    static constexpr bool may_be_presplit = N == 256 && FORM == GCU_GEMM_SCALED;
    /* registers of a thread; what of the fetching one's is then in memory costs little */
    static constexpr int fetching = N == 256 ? 24 : 40;
    static constexpr int multiplying = N == 256 ? 240 : 232;
};

#ifdef __CUDACC__

struct gemm_item {
    int64_t row, col;
    int split;
};

template <int N, int CLUSTER>
static __device__ __forceinline__ gemm_item gemm_item_of(const gemm_walk &w, int number,
                                                         uint32_t rank)
{
    gemm_item i;
    const int tiles = w.pairs * w.cols, tile = number % tiles;
    const int group = tile / (GEMM_GROUP * w.cols), first = group * GEMM_GROUP;
    const int height = min(w.pairs - first, (int)GEMM_GROUP), at = tile - first * w.cols;
    i.split = number / tiles;
    i.row = ((int64_t)(first + at % height) * CLUSTER + rank) * GEMM_M;
    i.col = (int64_t)(at / height) * N;
    return i;
}

/* The stages of an item's split. */
template <int ROUNDS>
static __device__ __forceinline__ int gemm_stages_of(const gcu_gemm_launch &l, const gemm_walk &w,
                                                     int number)
{
    const int64_t begin = number / (w.pairs * w.cols) * l.split_chunks;
    return (int)min(l.split_chunks, l.chunks - begin) * ROUNDS;
}

/* Whether the block of rows at 'row' is multiplied by its halves as they were cut before, or
 * (mixed) not so. */
static __device__ __forceinline__ bool gemm_is_taken(const gcu_gemm_launch &l, int64_t row,
                                                     bool mixed)
{
    return (l.mixed[row / GEMM_M] != 0) == mixed;
}

/* Whether a pair of blocks of rows has none of those that are taken. */
static __device__ __forceinline__ bool gemm_is_left(const gcu_gemm_launch &l, int64_t row,
                                                    bool mixed)
{
    const int64_t first = row / (2 * GEMM_M) * (2 * GEMM_M);
    return !gemm_is_taken(l, first, mixed) && !gemm_is_taken(l, first + GEMM_M, mixed);
}

/* Where the stages begin: the same place in all blocks of a cluster. */
static __device__ __forceinline__ uint32_t gemm_stages()
{
    extern __shared__ uint8_t gemm_raw[];
    return (gcu_shared_address(gemm_raw) + 1023) & ~1023u;
}

#endif
#endif
