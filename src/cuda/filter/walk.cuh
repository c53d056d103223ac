/* cuda/filter/walk.cuh: the tiles of a filter, and what becomes of pairs that pass. */
#ifndef GNOMON_CUDA_FILTER_WALK_CUH
#define GNOMON_CUDA_FILTER_WALK_CUH

#include "cuda/filter/filter.h"

/* Blocks of rows and of columns, each 'height' and 'width' points, walked in bands of some blocks
 * of rows, a band column by column, so that what is worked on at one time lies in L2. */
struct filter_walk {
    int64_t first, blocks;   /* of rows */
    int64_t columns;         /* blocks of them */
    int height, width, band; /* all powers of two */
    bool half;
};

struct filter_launch {
    const uint8_t *p, *q;
    int64_t p_padded, q_padded;
    int chunks;
    const float *p_limits, *q_limits;
    int64_t row, end; /* rows that count */
    gcu_filter_sink sink;
    filter_walk walk;
};

/* A limit that nothing reaches. Limits that let everything pass are FILTER_ALWAYS, all others far
 * smaller than both. */
#define FILTER_NEVER  1e38f
#define FILTER_ALWAYS -1e34f

enum { FILTER_BUFFER = 256 }; /* survivors that a warp collects */

#ifdef __CUDACC__

/* Where a block of threads is in the walk: it goes forwards only. */
struct filter_place {
    int64_t base; /* number of the band's first tile */
    int64_t from; /* the band's first block of rows */
};

static __device__ __forceinline__ int64_t filter_first_column(const filter_walk &w, int64_t block)
{
    return w.half ? block * w.height >> __popc(w.width - 1) : 0;
}

/* Tile 'number'; false when there are no more. */
static __device__ __forceinline__ bool filter_find(const filter_walk &w, int64_t number,
                                                   filter_place *at, int64_t *row, int64_t *col)
{
    for (;;) {
        const int64_t left = w.first + w.blocks - at->from;
        if (left <= 0) return false;
        const int64_t height = left < w.band ? left : (int64_t)w.band;
        const int64_t column = filter_first_column(w, at->from);
        const int64_t tiles = height * (w.columns - column), inside = number - at->base;
        if (inside < tiles) {
            /* a band of at most 2^24 tiles a row of them */
            const uint32_t n = (uint32_t)inside, by = (uint32_t)height;
            const bool whole = height == w.band;
            const uint32_t across = whole ? n >> __popc(w.band - 1) : n / by;
            *row = (at->from + (n - across * by)) * w.height;
            *col = (column + across) * w.width;
            return true;
        }
        at->base += tiles;
        at->from += height;
    }
}

/* Whether the tile holds any pair of the wanted half. */
static __device__ __forceinline__ bool filter_wanted(const filter_walk &w, int64_t row, int64_t col)
{
    return !w.half || col + w.width - 1 > row;
}

/* What a warp has found and not handed over yet, in shared memory. */
struct filter_found {
    uint64_t kept[FILTER_BUFFER];
    int count; /* goes on past FILTER_BUFFER */
};

static __device__ __forceinline__ void filter_flush(const gcu_filter_sink &sink,
                                                    filter_found *found)
{
    const int lane = (int)threadIdx.x % 32;
    const int count = min(found->count, (int)FILTER_BUFFER);
    unsigned long long at = 0;
    if (lane == 0) at = atomicAdd(sink.count, (unsigned long long)count);
    at = __shfl_sync(~0u, at, 0);
    for (int i = lane; i < count; i += 32)
        if ((int64_t)at + i < sink.room) sink.pairs[at + i] = found->kept[i];
    __syncwarp();
    if (lane == 0) found->count = 0;
    __syncwarp();
}

/* A pair that there was no place for. */
static __device__ __forceinline__ void filter_flush_one(const gcu_filter_sink &sink, uint64_t pair)
{
    const unsigned long long at = atomicAdd(sink.count, 1ull);
    if ((int64_t)at < sink.room) sink.pairs[at] = pair;
}

/* Collects pairs: bit 31 - e % 32 of below[e / 32] tells that the thread's element e did not pass.
 * Element 4 g + 2 r + x is row row + 8 r, column col + 8 g + x, row and col being the thread's own.
 * above: only pairs with j > i count. */
template <int WORDS>
static __device__ __forceinline__ void filter_collect(const filter_launch &l, uint32_t *below,
                                                      uint32_t row, uint32_t col, bool above,
                                                      filter_found *found)
{
    if (above) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            for (uint32_t word = ~below[w]; word;) {
                const int bit = __clz((int)word), e = 32 * w + bit;
                const uint32_t mask = 0x80000000u >> bit;
                word &= ~mask;
                if (col + e / 4 * 8 + e % 2 <= row + e % 4 / 2 * 8) below[w] |= mask;
            }
        }
    }
    int mine = 0;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        mine += __popc(~below[w]);
    if (!__any_sync(~0u, mine > 0)) return;
    if (mine > 0) {
        int at = atomicAdd(&found->count, mine);
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            for (uint32_t word = ~below[w]; word;) {
                const int bit = __clz((int)word), e = 32 * w + bit;
                word &= ~(0x80000000u >> bit);
                const uint32_t i = row + e % 4 / 2 * 8, j = col + e / 4 * 8 + e % 2;
                const uint64_t pair = (uint64_t)i << 32 | (uint64_t)j;
                if (at < FILTER_BUFFER)
                    found->kept[at] = pair;
                else
                    filter_flush_one(l.sink, pair);
                at++;
            }
        }
    }
    __syncwarp();
    if (found->count > FILTER_BUFFER / 2) filter_flush(l.sink, found);
}

/* The limit of a row, FILTER_NEVER beyond those that count. */
static __device__ __forceinline__ float filter_row_limit(const filter_launch &l, int64_t row)
{
    return row >= l.row && row < l.end ? __ldg(l.p_limits + row) : FILTER_NEVER;
}

#endif

/* Whether the GPU takes Hopper's own way. */
bool gcu_filter_hopper_supported(const gcu_gpu *gpu);
cudaError_t gcu_filter_hopper(filter_launch launch, const gcu_gpu *gpu, cudaStream_t stream);
cudaError_t gcu_filter_mma(filter_launch launch, const gcu_gpu *gpu, cudaStream_t stream);

#endif
