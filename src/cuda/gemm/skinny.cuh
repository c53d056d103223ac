/* cuda/gemm/skinny.cuh: what products of few columns have in common: A's chunks of 128 rows, of
 * which a warp multiplies 16, by mma.sync with both operands in registers. */
#ifndef GNOMON_CUDA_GEMM_SKINNY_CUH
#define GNOMON_CUDA_GEMM_SKINNY_CUH

#include "cuda/gemm/hopper.cuh"
#include "cuda/gemm/skinny.h"
#include "cuda/project/entries.cuh"

enum {
    GEMM_SKINNY_WARPS = 8,                          /* that multiply */
    GEMM_SKINNY_BYTES = GEMM_M * GCU_GEMM_CHUNK * 4 /* of a chunk of A */
};

template <bool ALONG_M>
static __device__ __forceinline__ void gemm_skinny_fetch(const gcu_gemm_launch &l,
                                                         const CUtensorMap *map, int row, int k,
                                                         uint32_t to, uint32_t barrier)
{
    constexpr int PARTS = ALONG_M ? 4 : 2;
    gcu_barrier_expect(barrier, GEMM_SKINNY_BYTES);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        const uint32_t there = to + part * (GEMM_SKINNY_BYTES / PARTS);
        const int at = row + 32 * part;
        if (ALONG_M && l.a_run)
            gemm_fetch_tensor(there, map, at % (int)l.a_run, k, at / (int)l.a_run, barrier);
        else if (ALONG_M)
            gemm_fetch_tensor(there, map, at, k, barrier);
        else if (l.a_run) /* a chunk never crosses from one run to the next */
            gemm_fetch_tensor(there, map, k % (int)l.a_run + 32 * part, row, k / (int)l.a_run,
                              barrier);
        else
            gemm_fetch_tensor(there, map, k + 32 * part, row, barrier);
    }
}

/* Halves k and k + 1 of column n of a chunk lie where the lane that multiplies with them reads 16
 * bytes: [16 of k][two tiles of 8 columns][lane][tile][half of k]. */
template <int N, bool ALONG_M>
static __device__ __forceinline__ int gemm_skinny_place(int pair, int column)
{
    const int k = 2 * pair % 16, tile = column / 8;
    const int q = ALONG_M ? k % 8 / 2 : k / 4, half = ALONG_M ? k / 8 : k % 4 / 2;
    return (((pair / 8 * (N / 16) + tile / 2) * 32 + column % 8 * 4 + q) * 2 + tile % 2) * 2 + half;
}

/* Whether the warp has a number that is too small for its row's scale. */
template <bool APART>
static __device__ __forceinline__ bool gemm_skinny_small(const uint32_t (*high)[4], const float *x,
                                                         const gcu_gemm_scale *scale)
{
    if (gcu_gemm_all_large<APART>(high)) return false;
    return __any_sync(~0u, gcu_gemm_any_small<APART>(x, scale));
}

/* One sum as a plain fp32 chain. */
static __device__ __noinline__ float gemm_skinny_chain(const gcu_gemm_launch &l, int64_t i,
                                                       int64_t j)
{
    const float *b = static_cast<const float *>(l.b) + j * l.b_col;
    float sum = 0.0f;
    for (int64_t k = 0; k < l.k; k++)
        sum = fmaf(l.a[i * l.a_row + k * l.a_col], b[k * l.b_row], sum);
    return sum;
}

/* With an operator: */
struct gemm_skinny_made {
    gcu_matrix m;
    gcu_gemm_launch l;
    int rows, items; /* blocks of rows; with the splits */
};

/* The chunks of an item: from 'begin' on. */
struct gemm_skinny_walk {
    int64_t row;
    int begin, chunks, split;
};

static __device__ __forceinline__ gemm_skinny_walk gemm_skinny_walk_of(const gemm_skinny_made &a,
                                                                       int number)
{
    gemm_skinny_walk w;
    w.split = number / a.rows;
    w.row = (int64_t)(number % a.rows) * GEMM_M;
    w.begin = w.split * (int)a.l.split_chunks;
    w.chunks = (int)min(a.l.split_chunks, a.l.chunks - w.begin);
    return w;
}

#endif
