/* cuda/project/sparse/walk.cuh: the kernel in which each warp walks its rows and gathers straight
 * from X, in one of three ways (lines, few points, scattered). */
#ifndef GNOMON_CUDA_VERY_SPARSE_WALK_H
#define GNOMON_CUDA_VERY_SPARSE_WALK_H

#include "cuda/project/sparse/very_sparse.cuh"

#include <limits.h>

/* A warp's part of shared memory: the block of nonzeros being gathered, and what would be kept in
 * registers, were there enough. */
struct __align__(16) vs_warp
{
    uint32_t list[4][VS_ROW];
    uint32_t quad;
    int end;              /* chunk after the last */
    int64_t low, high;    /* columns of the task that are there */
    int whole, whole_end; /* chunks all of whose columns are */
    int64_t tile, segment;
};

/* Warps stay near each other, so that what one has gathered from still lies in L2 when the next one
 * comes: none begins a chunk before all are through with the VS_AHEAD-th before it. */
enum { VS_AHEAD = 4, VS_PACE_RING = 32 }; /* beyond what lies between a block's warps */

struct vs_pace {
    unsigned done[VS_PACE_RING]; /* warps that are through with a chunk */
    int known;                   /* chunks that all blocks are through with */
};

/* Nothing but time depends on it, so it ends after a while in any case, should not all blocks be
 * resident. */
__device__ __forceinline__ void vs_wait(const vs_task &t, vs_pace &pace, int chunk, int lane)
{
    const int must = chunk - VS_AHEAD;
    if (lane == 0 && must >= atomicAdd(&pace.known, 0)) {
        const volatile unsigned *blocks = t.pace + must;
        int spins = 0;
        while (spins < 200 && *blocks < gridDim.x && must >= atomicAdd(&pace.known, 0)) {
            spins++;
            __nanosleep(100);
        }
        atomicMax(&pace.known, spins < 200 ? must + 1 : INT_MAX);
    }
    __syncwarp();
}

__device__ __forceinline__ void vs_passed(const vs_task &t, vs_pace &pace, int chunk, int64_t items,
                                          int lane)
{
    if (lane != 0) return;
    const int64_t mine = items - (int64_t)blockIdx.x * VS_WARPS;
    unsigned *done = &pace.done[chunk % VS_PACE_RING];
    if (atomicAdd(done, 1u) + 1 < (mine < VS_WARPS ? (unsigned)mine : (unsigned)VS_WARPS)) return;
    atomicExch(done, 0u);
    atomicAdd(t.pace + chunk, 1u);
}

/* Gather: how a warp gathers some nonzeros of each of its rows, and holds their sums. */
template <typename Gather>
__global__ void __launch_bounds__(32 * VS_WARPS, Gather::BLOCKS)
    vs_walk_kernel(const __grid_constant__ vs_task t)
{
    __shared__ vs_warp warps[VS_WARPS];
    __shared__ float totals[32 * VS_WARPS][Gather::TOTALS];
    __shared__ typename Gather::stage stages[VS_WARPS];
    __shared__ vs_pace pace;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t item = (int64_t)blockIdx.x * VS_WARPS + warp;
    const int64_t items = t.quads * t.walked * t.tiles;
    if (t.pace) {
        if (threadIdx.x < VS_PACE_RING) pace.done[threadIdx.x] = 0;
        if (threadIdx.x == 0) pace.known = 0;
        __syncthreads();
    }
    if (item >= items) return;
    volatile vs_warp &my = warps[warp];
    uint32_t(*list)[VS_ROW] = warps[warp].list;
    float *total = totals[threadIdx.x];
    int chunk;
    {
        const int64_t rest = item / t.quads;
        const int64_t segment =
            rest % t.walked + (t.segment_chunks ? t.begin / t.segment_chunks : 0);
        chunk = t.segment_chunks ? (int)segment * t.segment_chunks : t.begin;
        if (lane == 0) {
            my.quad = (uint32_t)(t.quad + item % t.quads);
            my.segment = segment;
            my.tile = t.tile + rest / t.walked;
            my.end = t.segment_chunks ? min(chunk + t.segment_chunks, t.chunks) : t.end;
        }
        __syncwarp();
    }
    Gather gather(t, my, chunk, lane, stages[warp]);
    if (lane == 0) {
        my.whole = (int)((my.low + t.chunk - 1) / t.chunk);
        my.whole_end = (int)(my.high / t.chunk);
    }
    __syncwarp();
    const bool starts = t.segment_chunks || t.begin == 0;
#pragma unroll 1
    for (int c = 0; c < Gather::TOTALS; c++) {
        const int64_t row = 4 * (int64_t)my.quad + Gather::row(lane, c);
        const int p = Gather::point(lane, c);
        int64_t b, i;
        total[c] = 0.0f;
        if (t.segment_chunks || (starts && t.out.begins)) continue;
        if (row < t.row || row >= t.row + t.rows || !vs_locate<Gather::P>(t, my.tile, p, &b, &i))
            continue;
        total[c] = starts
                       ? gcu_carried<float>(t.out, row - t.row, t.x.n * t.x.blocks, b * t.x.n + i)
                       : t.partial[vs_partial<Gather::P>(t, 0, row, my.tile, p)];
    }

    for (uint32_t first = 0;;) { /* number of the block's first nonzero */
        if (t.pace && first == 0) vs_wait(t, pace, chunk - t.begin, lane);
        const vs_drawn drawn =
            vs_draw(t, my.quad, (uint64_t)(t.first_chunk + chunk), first, lane, list);
        uint32_t from = 0, to = (uint32_t)t.chunk;
        if (chunk < my.whole || chunk >= my.whole_end) {
            const int64_t origin = (int64_t)chunk * t.chunk, all = t.chunk;
            from = (uint32_t)min(max(my.low - origin, (int64_t)0), all);
            to = (uint32_t)min(max(my.high - origin, (int64_t)0), all);
        }
        const bool whole = gather.begin(t, chunk, to) && from == 0 && to == (uint32_t)t.chunk;
        const int full = whole ? drawn.least : 0, most = from < to ? drawn.most : 0;
        int j = 0;
#pragma unroll 1
        for (; j + Gather::BATCH <= full; j += Gather::BATCH)
            gather.template batch<VS_ALL>(t, list, j, lane, 0, 0);
        if (whole && Gather::OWN) {
#pragma unroll 1
            for (; j < most; j += Gather::BATCH)
                gather.template batch<VS_FIRST>(t, list, j, lane, 0, drawn.own - j);
        } else {
#pragma unroll 1
            for (; j < most; j += Gather::BATCH)
                gather.template batch<VS_RANGE>(t, list, j, lane, from, (int)(to - from));
        }
        if (drawn.more) {
            first += 32;
            continue;
        }
        if (t.pace) vs_passed(t, pace, chunk - t.begin, items, lane);
        first = 0;
        chunk++;
        gather.next_chunk(t);
        if ((t.first_chunk + chunk) % VS_CHUNKS == 0 || chunk == my.end) gather.reduce(total);
        if (chunk == my.end) break;
    }
    if (!Gather::owns(lane)) return;
#pragma unroll 1
    for (int c = 0; c < Gather::TOTALS; c++) {
        const int64_t row = 4 * (int64_t)my.quad + Gather::row(lane, c);
        const int p = Gather::point(lane, c);
        int64_t b, i;
        const bool there = vs_locate<Gather::P>(t, my.tile, p, &b, &i);
        if (!there || row < t.row || row >= t.row + t.rows) continue;
        if (t.segment_chunks || t.end < t.chunks)
            t.partial[vs_partial<Gather::P>(t, my.segment, row, my.tile, p)] = total[c];
        else
            gcu_emit<float>(t.out, t.row, row, b, i, t.x.n, t.x.blocks, total[c]);
    }
}

/* Lines: 4 * LANES points of a coordinate lie side by side, aligned to 16 bytes. */
template <int LANES> struct vs_lines {
    static constexpr int P = 4 * LANES, BATCH = VS_BATCH, TOTALS = 4, BLOCKS = 2;
    static constexpr bool OWN = true; /* a lane gathers for one row */
    struct stage {
    };

    const char *lines;
    vs_sums<LANES> sums;

    static __device__ __forceinline__ int row(int lane, int)
    {
        return lane / 8;
    }
    static __device__ __forceinline__ int point(int lane, int c)
    {
        return lane % LANES * 4 + c;
    }
    static __device__ __forceinline__ bool owns(int lane)
    {
        return vs_sums<LANES>::owns(lane);
    }

    __device__ __forceinline__ vs_lines(const vs_task &t, volatile vs_warp &my, int chunk, int lane,
                                        stage &)
    {
        int64_t b, i;
        int p = point(lane, 0);
        if (!vs_locate<P>(t, my.tile, p, &b, &i)) { /* reads the points of the tile's first lane */
            p = 0;
            vs_locate<P>(t, my.tile, p, &b, &i);
        }
        if (lane == 0) { /* the whole tile is of block b */
            my.low = max((int64_t)0, t.x.first - b * t.x.block_cols);
            my.high = min(t.x.block_cols, t.x.end - b * t.x.block_cols);
        }
        const float *first = t.transposed
                                 ? t.transposed + (my.tile - t.tile) * t.line + p
                                 : static_cast<const float *>(t.x.data) + b * t.x.block_stride + i;
        lines = reinterpret_cast<const char *>(first) +
                (chunk - (t.transposed ? t.begin : 0)) * (int64_t)t.chunk * t.stride_bytes;
        sums.clear();
    }

    __device__ __forceinline__ bool begin(const vs_task &, int, uint32_t)
    {
        return true;
    }

    __device__ __forceinline__ void next_chunk(const vs_task &t)
    {
        lines += (int64_t)t.chunk * t.stride_bytes;
    }

    __device__ __forceinline__ void reduce(float *total)
    {
        sums.reduce(total);
    }

    template <vs_which WHICH>
    __device__ __forceinline__ void batch(const vs_task &t, const uint32_t (*list)[VS_ROW], int j,
                                          int lane, uint32_t from, int span)
    {
        sums.template batch<WHICH>(list[lane / 8] + j, lane, from, span, lines, t.stride_bytes);
    }
};

/* Few points, at most P of one block, in fp32: a lane a point would leave most lanes idle. A lane
 * loads the values of one nonzero of each row, so that all loads of a draw are under way at once.
 * They go through shared memory to lanes that add up one partial sum of one row and point each, in
 * the nonzeros' order. */
template <int POINTS> struct vs_few {
    static constexpr int P = POINTS, BATCH = 32;
    static constexpr bool OWN = false;
    static constexpr int ROWS = P == 8 ? 2 : 4;                  /* summed at a time */
    static constexpr int TOTALS = 4 / ROWS, SUMS = 2 * ROWS * P; /* lanes that sum */
    static constexpr int BLOCKS = P <= 2 ? 3 : 2;

    /* [row, point, partial sum]: 16 nonzeros, fours of them exchanged so that neither writing nor
     * reading has bank conflicts. */
    struct __align__(16) stage
    {
        float values[SUMS][16];
    };

    stage &staged;
    const float *at;
    float acc[TOTALS];

    static __device__ __forceinline__ int row(int lane, int c)
    {
        return lane / (2 * P) + c * ROWS;
    }
    static __device__ __forceinline__ int point(int lane, int)
    {
        return lane / 2 % P;
    }
    static __device__ __forceinline__ bool owns(int lane)
    {
        return lane < SUMS && lane % 2 == 0;
    }

    __device__ __forceinline__ vs_few(const vs_task &t, volatile vs_warp &my, int chunk, int lane,
                                      stage &shared)
        : staged(shared)
    {
        if (lane == 0) {
            my.low = max((int64_t)0, t.x.first);
            my.high = min(t.x.block_cols, t.x.end);
        }
        at = static_cast<const float *>(t.x.data) + chunk * (int64_t)t.chunk * t.x.col_stride;
#pragma unroll
        for (int c = 0; c < TOTALS; c++)
            acc[c] = 0.0f;
    }

    __device__ __forceinline__ bool begin(const vs_task &, int, uint32_t)
    {
        return true;
    }

    __device__ __forceinline__ void next_chunk(const vs_task &t)
    {
        at += (int64_t)t.chunk * t.x.col_stride;
    }

    __device__ __forceinline__ void reduce(float *total)
    {
#pragma unroll
        for (int c = 0; c < TOTALS; c++) {
            total[c] += acc[c] + __shfl_xor_sync(~0u, acc[c], 1);
            acc[c] = 0.0f;
        }
    }

    /* All 32 of each row: j is 0. What is left out adds 0, which changes no sum: none is -0. */
    template <vs_which WHICH>
    __device__ __forceinline__ void batch(const vs_task &t, const uint32_t (*list)[VS_ROW], int,
                                          int lane, uint32_t from, int span)
    {
        float v[4][P];
        uint32_t sign[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const uint32_t word = list[r][lane], column = word & VS_COLUMN;
            const bool wanted = WHICH == VS_ALL || column - from < (uint32_t)span;
            const float *value = at + (int64_t)column * t.x.col_stride;
            sign[r] = word & ~VS_COLUMN;
#pragma unroll
            for (int p = 0; p < P; p++) {
                v[r][p] = 0.0f;
                if (wanted && p < (int)t.x.n) v[r][p] = __ldg(value);
                value += t.x.row_stride;
            }
        }
#pragma unroll
        for (int c = 0; c < TOTALS; c++) {
            if (c > 0) __syncwarp(); /* all have read the rows before */
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int p = 0; p < P; p++) {
                    const int sum = (r * P + p) * 2 + lane % 2;
                    const uint32_t bits = __float_as_uint(v[c * ROWS + r][p]) ^ sign[c * ROWS + r];
                    staged.values[sum][(lane / 8 ^ sum / 2 % 4) * 4 + lane / 2 % 4] =
                        __uint_as_float(bits);
                }
            __syncwarp();
            if (lane < SUMS) {
#pragma unroll
                for (int four = 0; four < 4; four++) {
                    const float4 x = *reinterpret_cast<const float4 *>(
                        &staged.values[lane][(four ^ lane / 2 % 4) * 4]);
                    acc[c] = (((acc[c] + x.x) + x.y) + x.z) + x.w;
                }
            }
        }
        /* the next draw begins with a barrier */
    }
};

/* Scattered: any element type and strides; a lane a (folded) point. */
template <typename T> struct vs_scattered {
    static constexpr int P = 32, BATCH = 4, TOTALS = 4, BLOCKS = 2;
    static constexpr bool OWN = false;
    struct stage {
    };

    const T *at;
    int64_t low, high;     /* columns of the lane's point that are there */
    uint32_t begins, ends; /* of the chunk */
    float acc[4][2];       /* [row][partial sum] */

    static __device__ __forceinline__ int row(int, int c)
    {
        return c;
    }
    static __device__ __forceinline__ int point(int lane, int)
    {
        return lane;
    }
    static __device__ __forceinline__ bool owns(int)
    {
        return true;
    }

    __device__ __forceinline__ vs_scattered(const vs_task &t, volatile vs_warp &my, int chunk,
                                            int lane, stage &)
    {
        int64_t b, i;
        if (!vs_locate<P>(t, my.tile, lane, &b, &i)) vs_locate<P>(t, my.tile, 0, &b, &i);
        low = max((int64_t)0, t.x.first - b * t.x.block_cols);
        high = min(t.x.block_cols, t.x.end - b * t.x.block_cols);
        if (lane == 0) {
            my.low = 0;
            my.high = t.x.block_cols;
        }
        at = static_cast<const T *>(t.x.data) + b * t.x.block_stride + i * t.x.row_stride +
             chunk * (int64_t)t.chunk * t.x.col_stride;
#pragma unroll
        for (int r = 0; r < 4; r++)
            acc[r][0] = acc[r][1] = 0.0f;
    }

    __device__ __forceinline__ bool begin(const vs_task &t, int chunk, uint32_t to)
    {
        const int64_t origin = (int64_t)chunk * t.chunk, all = to;
        begins = (uint32_t)min(max(low - origin, (int64_t)0), all);
        ends = (uint32_t)min(max(high - origin, (int64_t)0), all);
        return __all_sync(~0u, begins == 0 && ends == to);
    }

    __device__ __forceinline__ void next_chunk(const vs_task &t)
    {
        at += (int64_t)t.chunk * t.x.col_stride;
    }

    __device__ __forceinline__ void reduce(float *total)
    {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            total[r] += acc[r][0] + acc[r][1];
            acc[r][0] = acc[r][1] = 0.0f;
        }
    }

    template <vs_which WHICH>
    __device__ __forceinline__ void batch(const vs_task &t, const uint32_t (*list)[VS_ROW], int j,
                                          int, uint32_t, int)
    {
        float v[BATCH][4];
#pragma unroll
        for (int s = 0; s < BATCH; s++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const uint32_t column = list[r][j + s] & VS_COLUMN;
                v[s][r] = 0.0f;
                if (WHICH == VS_ALL || (column >= begins && column < ends))
                    v[s][r] = (float)at[(int64_t)column * t.x.col_stride];
            }
#pragma unroll
        for (int s = 0; s < BATCH; s++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                acc[r][s % 2] = fmaf(vs_sign(list[r][j + s]), v[s][r], acc[r][s % 2]);
    }
};

#endif
