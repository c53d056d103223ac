/* cuda/sieve_walk.cuh: the tiles of a sieve, and what becomes of pairs that pass. */
#ifndef GNOMON_CUDA_SIEVE_WALK_CUH
#define GNOMON_CUDA_SIEVE_WALK_CUH

#include "cuda/sieve.h"

/* Blocks of rows and of columns, each 'height' and 'width' points, walked in bands of some blocks
 * of rows, a band column by column, so that what is worked on at one time lies in L2. */
struct sieve_walk {
    int64_t first, blocks; /* of rows */
    int64_t columns;       /* blocks of them */
    int height, width, band;
    bool half;
};

struct sieve_launch {
    const uint8_t *p, *q;
    int64_t p_padded, q_padded;
    int chunks;
    const float *p_limits, *q_limits;
    int64_t row, end; /* rows that count */
    gcu_sieve_sink sink;
    sieve_walk walk;
};

/* A limit that nothing reaches. Limits that let everything pass are SIEVE_ALWAYS, all others far
 * smaller than both. */
#define SIEVE_NEVER  1e38f
#define SIEVE_ALWAYS -1e34f

enum { SIEVE_BUFFER = 256 }; /* survivors that a warp collects */

#ifdef __CUDACC__

/* Where a block of threads is in the walk: it goes forwards only. */
struct sieve_place {
    int64_t base; /* number of the band's first tile */
    int64_t from; /* the band's first block of rows */
};

static __device__ __forceinline__ int64_t sieve_first_column(const sieve_walk &w, int64_t block)
{
    return w.half ? block * w.height / w.width : 0;
}

/* Tile 'number'; false when there are no more. */
static __device__ __forceinline__ bool sieve_find(const sieve_walk &w, int64_t number,
                                                  sieve_place *at, int64_t *row, int64_t *col)
{
    for (;;) {
        const int64_t left = w.first + w.blocks - at->from;
        if (left <= 0) return false;
        const int64_t height = left < w.band ? left : (int64_t)w.band;
        const int64_t column = sieve_first_column(w, at->from);
        const int64_t tiles = height * (w.columns - column), inside = number - at->base;
        if (inside < tiles) {
            /* a band of at most 2^24 tiles a row of them */
            const uint32_t n = (uint32_t)inside, by = (uint32_t)height;
            *row = (at->from + n % by) * w.height;
            *col = (column + n / by) * w.width;
            return true;
        }
        at->base += tiles;
        at->from += height;
    }
}

/* Whether the tile holds any pair of the wanted half. */
static __device__ __forceinline__ bool sieve_wanted(const sieve_walk &w, int64_t row, int64_t col)
{
    return !w.half || col + w.width - 1 > row;
}

/* What a warp has found and not handed over yet. */
struct sieve_found {
    uint64_t *kept; /* SIEVE_BUFFER, in shared memory */
    int count;
};

static __device__ __forceinline__ void sieve_hand_over(const gcu_sieve_sink &sink,
                                                       sieve_found *found)
{
    const int lane = (int)threadIdx.x % 32;
    unsigned long long at = 0;
    if (lane == 0) at = atomicAdd(sink.count, (unsigned long long)found->count);
    __syncwarp();
    at = __shfl_sync(~0u, at, 0);
    for (int i = lane; i < found->count; i += 32)
        if ((int64_t)at + i < sink.room) sink.pairs[at + i] = found->kept[i];
    __syncwarp();
    found->count = 0;
}

/* Collects pairs: bit 31 - e % 32 of below[e / 32] tells that the thread's element e did not pass.
 * Element 4 g + 2 r + x is row row + 8 r, column col + 8 g + x, row and col being the thread's own.
 */
template <int WORDS>
static __device__ __forceinline__ void sieve_collect(const sieve_launch &l, uint32_t *below,
                                                     int64_t row, int64_t col, sieve_found *found)
{
    const int lane = (int)threadIdx.x % 32;
    for (;;) {
        uint32_t word = 0;
        int e = 0;
#pragma unroll
        for (int w = WORDS - 1; w >= 0; w--)
            if (~below[w]) word = ~below[w], e = 32 * w;
        const bool more = word != 0;
        if (!__any_sync(~0u, more)) return;
        e += __clz((int)word);
#pragma unroll
        for (int w = 0; w < WORDS; w++)
            if (more && e / 32 == w) below[w] |= 0x80000000u >> e % 32;
        const int64_t i = row + e % 4 / 2 * 8, j = col + e / 4 * 8 + e % 2;
        const bool take = more && (!l.walk.half || j > i);
        const unsigned who = __ballot_sync(~0u, take);
        if (take)
            found->kept[found->count + __popc(who & ((1u << lane) - 1))] =
                (uint64_t)i << 32 | (uint64_t)j;
        found->count += __popc(who);
        if (found->count > SIEVE_BUFFER - 32) {
            __syncwarp();
            sieve_hand_over(l.sink, found);
        }
    }
}

/* The limit of a row, SIEVE_NEVER beyond those that count. */
static __device__ __forceinline__ float sieve_row_limit(const sieve_launch &l, int64_t row)
{
    return row >= l.row && row < l.end ? __ldg(l.p_limits + row) : SIEVE_NEVER;
}

#endif

/* Whether the GPU takes Hopper's own way. */
bool gcu_sieve_takes_hopper(const gcu_gpu *gpu);
cudaError_t gcu_sieve_hopper(sieve_launch launch, const gcu_gpu *gpu, cudaStream_t stream);
cudaError_t gcu_sieve_mma(sieve_launch launch, const gcu_gpu *gpu, cudaStream_t stream);

#endif
