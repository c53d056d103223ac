/* cuda/gemm_hopper.cuh: products on Hopper, by wgmma with A cut into halves in its register
 * operand.
 *
 * A block of threads computes 128 rows and N columns of C: two warpgroups multiply, each 64 rows,
 * and a third has one thread that fetches. A chunk is 64 of k: A's part comes as a tensor copy
 * (zeros beyond m and k), B's packed part as a plain copy, half of it by each block of a pair of
 * blocks (a cluster) that work on neighbouring rows.
 *
 * The floor, for a chunk of a block with N = 256, in cycles of a multiprocessor: its 2 x 128 x 256
 * x 64 x 2 flops take 2048 at 4096 a cycle. Shared memory gives 128 bytes a cycle: B is read by
 * each of the two warpgroups for both halves of A, 128 KB, A once, 32 KB, and 64 KB are written:
 * 1792. Issue slots of each of the four schedulers, for two warps: 2 x (128 to add sums, about 250
 * to cut A, about 50 more): 860. From L2 48 KB in 2048 cycles of 132 multiprocessors, 3.1 KB a
 * cycle, with the pairs; 4.1 without. Registers of a thread that multiplies: 128 for the sums in
 * fp32, 2 x 32 for the tensor cores' sums of 64 columns, in turns, and 32 for the halves of A,
 * which leaves 16 of 240. So the matrix units set the pace, at half of what a product of halves
 * reaches. */
#ifndef GNOMON_CUDA_GEMM_HOPPER_CUH
#define GNOMON_CUDA_GEMM_HOPPER_CUH

#include "cuda/bulk.cuh"
#include "cuda/dense_wgmma.cuh"
#include "cuda/gemm_launch.h"
#include "cuda/gemm_split.cuh"

#include <cuda.h>

enum {
    GEMM_M = 128,
    GEMM_GROUP = 8,  /* pairs of blocks of rows that share columns of B */
    GEMM_PIECE = 64, /* columns of a turn of the tensor cores */
    GEMM_A_BYTES = GEMM_M * GCU_GEMM_CHUNK * 4,
    GEMM_THREADS = 384
};

/* Blocks of rows and columns, and how they are walked. */
struct gemm_walk {
    int pairs, cols, items; /* of rows (or single ones), of columns; with the splits */
};

template <int N, gcu_gemm_form FORM> struct gemm_shape {
    static constexpr bool three = FORM == GCU_GEMM_THREE;
    static constexpr bool apart = FORM != GCU_GEMM_SCALED; /* low halves times 2^11 */
    static constexpr bool scaled = FORM != GCU_GEMM_FP16;
    static constexpr int b_bytes = N * 2 * GCU_GEMM_CHUNK;
    static constexpr int bytes = GEMM_A_BYTES + (three ? 2 * b_bytes + N * 4 : b_bytes);
    static constexpr int stage = (bytes + 1023) / 1024 * 1024;
    static constexpr int fit = 224 * 1024 / stage;
    static constexpr int stages = fit > 6 ? 6 : fit;
    static constexpr int shared = stages * stage + 1024;
    /* registers of a thread; what of the fetching one's is then in memory costs little */
    static constexpr int fetching = N == 256 ? 24 : 40;
    static constexpr int multiplying = N == 256 ? 240 : 232;
};

/* A as a tensor to copy from; false when it can't be one (gemm_hopper.cu). */
bool gemm_encode(const gcu_gemm_launch &l, CUtensorMap *map);

#ifdef __CUDACC__

static __device__ __forceinline__ void gemm_fetch_tensor(uint32_t to, const CUtensorMap *map, int x,
                                                         int y, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void gemm_fetch_tensor(uint32_t to, const CUtensorMap *map, int x,
                                                         int y, int z, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}

/* Whether any thread of the warpgroup says so. */
static __device__ __forceinline__ bool gemm_any(int group, bool mine)
{
    uint32_t any;
    asm volatile("{\n"
                 ".reg .pred p, q;\n"
                 "setp.ne.u32 p, %1, 0;\n"
                 "barrier.cta.red.or.pred q, %2, 128, p;\n"
                 "selp.u32 %0, 1, 0, q;\n"
                 "}"
                 : "=r"(any)
                 : "r"((uint32_t)mine), "r"(group + 1)
                 : "memory");
    return __any_sync(~0u, any); /* so that the compiler knows it to be the warp's */
}

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

/* The chunks of a split. */
static __device__ __forceinline__ int gemm_chunks_of(const gcu_gemm_launch &l, const gemm_walk &w,
                                                     int number)
{
    const int64_t begin = number / (w.pairs * w.cols) * l.split_chunks;
    return (int)min(l.split_chunks, l.chunks - begin);
}

/* Where a thread's numbers lie in A's part of a stage: x[8 s + 4 h + 2 r + e] is row 8 r + its own,
 * and k 16 s + 4 q + 2 h + e (A along k) or 16 s + 8 h + 2 q + e (along m). */
template <bool ALONG_M> struct gemm_reader {
    uint32_t at[ALONG_M ? 4 : 2];
    __device__ __forceinline__ gemm_reader(int row, int q)
    {
        if (ALONG_M) { /* [row / 32][k][row % 32], 16-byte parts exchanged by k */
#pragma unroll
            for (int i = 0; i < 4; i++) { /* 2 r + e */
                const int m = row + i / 2 * 8, k = 2 * q + i % 2;
                at[i] = m / 32 * 8192 + k * 128 + ((m % 32 / 4) ^ k) * 16 + m % 4 * 4;
            }
        } else { /* [k / 32][row][k % 32], 16-byte parts exchanged by row */
#pragma unroll
            for (int i = 0; i < 2; i++) /* s % 2 */
                at[i] = row * 128 + ((4 * i + q) ^ (row & 7)) * 16;
        }
    }
    __device__ __forceinline__ void load(float *x, uint32_t stage) const
    {
        if (ALONG_M) {
#pragma unroll
            for (int i = 0; i < 32; i++)
                asm volatile("ld.shared.f32 %0, [%1];"
                             : "=f"(x[i])
                             : "r"(stage + at[i % 4] + i / 4 * 1024));
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) { /* 2 s + r */
                float *to = x + i / 2 * 8 + i % 2 * 2;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(to[0]), "=f"(to[1]), "=f"(to[4]), "=f"(to[5])
                             : "r"(stage + at[i / 2 % 2] + i / 4 * 16384 + i % 2 * 1024));
            }
        }
    }
    __device__ __forceinline__ void store(const float *x, uint32_t stage) const
    {
        if (ALONG_M) {
#pragma unroll
            for (int i = 0; i < 32; i++)
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(stage + at[i % 4] + i / 4 * 1024),
                             "f"(x[i])
                             : "memory");
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float *from = x + i / 2 * 8 + i % 2 * 2;
                asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                                 stage + at[i / 2 % 2] + i / 4 * 16384 + i % 2 * 1024),
                             "f"(from[0]), "f"(from[1]), "f"(from[4]), "f"(from[5])
                             : "memory");
            }
        }
    }
};

template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER>
static __device__ __forceinline__ void gemm_fetch_all(const gcu_gemm_launch &l, const gemm_walk &w,
                                                      const CUtensorMap *map, uint32_t stages,
                                                      uint32_t full, uint32_t empty)
{
    using shape = gemm_shape<N, FORM>;
    constexpr int PART = N / CLUSTER;
    const uint32_t rank = CLUSTER == 1 ? 0 : gcu_cluster_rank();
    int stage = 0;
    uint32_t phase = 1; /* a stage never used is empty */
    for (int number = blockIdx.x / CLUSTER; number < w.items; number += gridDim.x / CLUSTER) {
        const gemm_item i = gemm_item_of<N, CLUSTER>(w, number, rank);
        const int64_t begin = i.split * l.split_chunks;
        const int row = (int)i.row;
        int k = (int)(begin * GCU_GEMM_CHUNK), left = gemm_chunks_of(l, w, number);
        int64_t column = begin * l.cols + i.col + rank * PART; /* of all chunks' */
        for (; left > 0; left--, k += GCU_GEMM_CHUNK, column += l.cols) {
            const uint32_t to = stages + stage * shape::stage, barrier = full + 8 * stage;
            gcu_barrier_wait(empty + 8 * stage, phase);
            gcu_barrier_expect(barrier, shape::bytes);
            constexpr int PARTS = ALONG_M ? 4 : 2;
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const uint32_t there = to + part * (GEMM_A_BYTES / PARTS);
                const int at = row + 32 * part;
                if (ALONG_M && l.a_run)
                    gemm_fetch_tensor(there, map, at % (int)l.a_run, k, at / (int)l.a_run, barrier);
                else if (ALONG_M)
                    gemm_fetch_tensor(there, map, at, k, barrier);
                else if (l.a_run) /* a chunk never crosses from one run to the next */
                    gemm_fetch_tensor(there, map, k % (int)l.a_run + 32 * part, row,
                                      k / (int)l.a_run, barrier);
                else
                    gemm_fetch_tensor(there, map, k + 32 * part, row, barrier);
            }
            const int64_t from = column * (2 * GCU_GEMM_CHUNK);
            const uint32_t b = to + GEMM_A_BYTES + rank * (PART * 2 * GCU_GEMM_CHUNK);
            gcu_fetch_for_all<CLUSTER>(b, l.packed + from, PART * 2 * GCU_GEMM_CHUNK, barrier);
            if (shape::three) {
                gcu_fetch_for_all<CLUSTER>(b + shape::b_bytes, l.packed_low + from,
                                           PART * 2 * GCU_GEMM_CHUNK, barrier);
                gcu_fetch_for_all<CLUSTER>(to + GEMM_A_BYTES + 2 * shape::b_bytes +
                                               rank * (PART * 4),
                                           l.scales + column, PART * 4, barrier);
            }
            if (++stage == shape::stages) stage = 0, phase ^= 1;
        }
    }
}

/* Sums of 64 columns into the total. */
template <gcu_gemm_form FORM>
static __device__ __forceinline__ void gemm_promote(float *total, float *sum, float *apart,
                                                    const float *down, uint32_t scales)
{
    gcu_wgmma_settle<32>(sum);
    if (FORM != GCU_GEMM_SCALED) gcu_wgmma_settle<32>(apart);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        float2 column = {1.0f, 1.0f};
        if (FORM == GCU_GEMM_THREE)
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                         : "=f"(column.x), "=f"(column.y)
                         : "r"(scales + 32 * j));
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int i = 4 * j + r;
            float value = FORM == GCU_GEMM_SCALED ? sum[i] : fmaf(apart[i], 0x1p-11f, sum[i]);
            if (FORM == GCU_GEMM_THREE) value *= r % 2 ? column.y : column.x;
            total[i] =
                FORM == GCU_GEMM_FP16 ? total[i] + value : fmaf(value, down[r / 2], total[i]);
        }
    }
}

template <int N, gcu_gemm_form FORM>
static __device__ __forceinline__ void gemm_store(const gcu_gemm_launch &l, const gemm_item &i,
                                                  float (*total)[32], int64_t row, int q)
{
    const bool two = l.c_col == 1 && l.c_row % 2 == 0 && (uintptr_t)l.c % 8 == 0 && !l.c64 &&
                     l.alpha == 1.0 && l.beta == 0.0;
#pragma unroll
    for (int part = 0; part < N / GCU_GEMM_MARK_COLS; part++) {
        const float *sums = total[part / 2] + part % 2 * 16;
        const int64_t col = i.col + part * GCU_GEMM_MARK_COLS;
        if (l.splits > 1) {
#pragma unroll
            for (int e = 0; e < 16; e++) {
                const int64_t m = row + e % 4 / 2 * 8, n = col + e / 4 * 8 + 2 * q + e % 2;
                if (m < l.m && n < l.n) l.parts[(i.split * l.m + m) * l.n + n] = sums[e];
            }
            continue;
        }
        bool odd = false;
#pragma unroll
        for (int e = 0; e < 16; e++)
            odd |= !isfinite(sums[e]);
        if (__any_sync(~0u, odd)) {
            const int64_t mark = row / GCU_GEMM_MARK_ROWS;
            if (threadIdx.x % 32 == 0 && mark < l.mark_rows && col < l.n)
                l.marks[mark * l.mark_cols + col / GCU_GEMM_MARK_COLS] = 1;
            continue;
        }
#pragma unroll
        for (int e = 0; e < 16; e += 2) {
            const int64_t m = row + e % 4 / 2 * 8, n = col + e / 4 * 8 + 2 * q;
            if (m >= l.m || n >= l.n) continue;
            if (two && n + 1 < l.n) {
                *reinterpret_cast<float2 *>(l.c + m * l.c_row + n) =
                    make_float2(sums[e], sums[e + 1]);
            } else {
                gcu_gemm_put(l, m, n, sums[e]);
                if (n + 1 < l.n) gcu_gemm_put(l, m, n + 1, sums[e + 1]);
            }
        }
    }
}

/* The scales of the thread's two rows. WAYS: comparisons side by side, which take registers. */
template <int WAYS>
static __device__ __forceinline__ void gemm_scales(const float *x, gcu_gemm_scale *scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float some[WAYS] = {};
#pragma unroll
        for (int e = 0; e < 16; e++)
            some[e % WAYS] = fmaxf(some[e % WAYS], fabsf(x[e / 2 * 4 + 2 * r + e % 2]));
        float largest = some[0];
#pragma unroll
        for (int e = 1; e < WAYS; e++)
            largest = fmaxf(largest, some[e]);
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        scale[r] = gcu_gemm_scale_of(largest);
    }
}

/* Whether the warp has a number that is too small for its row's scale. High halves that are large
 * enough, the usual case, tell that there is none. */
template <bool APART, typename Reader>
static __device__ __forceinline__ bool gemm_too_small(const uint32_t (*high)[4],
                                                      const Reader &reader, uint32_t stage,
                                                      const gcu_gemm_scale *scale)
{
    __half2 halves = __float2half2_rn(1.0f);
#pragma unroll
    for (int e = 0; e < 16; e++)
        halves = __hmin2(halves, __habs2(*reinterpret_cast<const __half2 *>(&high[e / 4][e % 4])));
    const float2 least = __half22float2(halves);
    if (!__any_sync(~0u, fminf(least.x, least.y) < gcu_gemm_least<APART>())) return false;
    float x[32];
    reader.load(x, stage);
    bool small = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        uint32_t bits = ~0u;
#pragma unroll
        for (int e = 0; e < 16; e++)
            bits = gcu_gemm_least_of(bits, x[e / 2 * 4 + 2 * r + e % 2]);
        small |= gcu_gemm_too_small<APART>(bits, scale[r]);
    }
    return small;
}

/* A block of rows is looked at by the warps that multiply the first columns with it. */
template <int CLUSTER>
static __device__ __forceinline__ void gemm_put_squares(const gcu_gemm_launch &l, double squares,
                                                        int number, bool first, int warp)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        squares += __shfl_xor_sync(~0u, squares, step);
    const int rank = CLUSTER == 1 ? 0 : (int)gcu_cluster_rank();
    if (threadIdx.x % 32 == 0)
        l.squares[(int64_t)number * GCU_GEMM_SQUARES_EACH + rank * 8 + warp] =
            first ? squares : 0.0;
    if (CLUSTER == 1 && threadIdx.x % 32 == 0)
        l.squares[(int64_t)number * GCU_GEMM_SQUARES_EACH + 8 + warp] = 0.0;
}

/* Where there are registers for it, the next chunk's part of A is read and its scales are found
 * while the tensor cores are at work on a chunk's last columns. */
template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE, bool LOOK>
static __device__ __forceinline__ void
gemm_multiply_all(const gcu_gemm_launch &l, const gemm_walk &w, const STORE &store, uint32_t stages,
                  uint32_t full, uint32_t empty)
{
    using shape = gemm_shape<N, FORM>;
    constexpr int PIECES = N / GEMM_PIECE, LAST = PIECES - 1;
    constexpr bool AHEAD = N < 256;
    const int warp = (int)threadIdx.x / 32 - 4, lane = (int)threadIdx.x % 32;
    /* Along k neighbours take rows 4 apart, whose parts lie in other banks. */
    const int g = ALONG_M ? lane / 4 : lane / 8 + lane / 4 % 2 * 4, q = lane % 4;
    const gemm_reader<ALONG_M> reader(warp * 16 + g, q);
    int stage = 0;
    uint32_t phase = 0;
    for (int number = blockIdx.x / CLUSTER; number < w.items; number += gridDim.x / CLUSTER) {
        float total[PIECES][32], x[32];
        gcu_gemm_scale scale[2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
        double squares = 0;
        static_assert(!LOOK || AHEAD, "a chunk would be looked at twice");
        store.template begin<N>(
            gemm_item_of<N, CLUSTER>(w, number, CLUSTER == 1 ? 0 : gcu_cluster_rank()), total, q);
        const auto begin = [&] {
            gcu_barrier_wait(full + 8 * stage, phase);
            reader.load(x, stages + stage * shape::stage);
            if (shape::scaled) gemm_scales<AHEAD ? 4 : 1>(x, scale);
            if (LOOK) {
                float some[4] = {};
#pragma unroll
                for (int e = 0; e < 32; e++)
                    some[e % 4] = fmaf(x[e], x[e], some[e % 4]);
                squares += (double)((some[0] + some[1]) + (some[2] + some[3]));
            }
        };
        if (AHEAD) begin();
#pragma unroll 1
        for (int left = gemm_chunks_of(l, w, number); left > 0;) {
            const uint32_t a = stages + stage * shape::stage, b = a + GEMM_A_BYTES;
            const uint32_t columns = gcu_wgmma_descriptor(b);
            const uint32_t scales = b + 2 * shape::b_bytes + 8 * q;
            const uint32_t release = empty + 8 * stage;
            uint32_t high[4][4], low[4][4];
            if (!AHEAD) begin();
#pragma unroll
            for (int e = 0; e < 16; e++) /* 4 s + 2 h + r */
                gcu_gemm_split<shape::apart>(x[2 * e] * scale[e % 2].up,
                                             x[2 * e + 1] * scale[e % 2].up, &high[e / 4][e % 4],
                                             &low[e / 4][e % 4]);
            const float down[2] = {scale[0].down, scale[1].down};
            float sum[2][32];
            bool more = false;
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const uint32_t from = columns + p * (GEMM_PIECE * 128 / 16);
                float *high_sum = shape::apart ? sum[0] : sum[p % 2];
                float *low_sum = shape::apart ? sum[1] : sum[p % 2];
                gcu_wgmma_fence();
                /* the small products first, lest they be cut off */
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    gcu_wgmma<64>(low_sum, low[s], from + 2 * s, s > 0);
                    if (shape::three)
                        gcu_wgmma<64>(low_sum, high[s], from + shape::b_bytes / 16 + 2 * s, 1);
                }
                if (AHEAD && p == LAST) gcu_wgmma_commit();
#pragma unroll
                for (int s = 0; s < 4; s++)
                    gcu_wgmma<64>(high_sum, high[s], from + 2 * s, shape::apart ? s > 0 : 1);
                gcu_wgmma_commit();
                if (shape::scaled && p == PIECES / 2) /* while they are at work */
                    more = gemm_any((int)threadIdx.x / 128,
                                    gemm_too_small<shape::apart>(high, reader, a, scale));
                if (shape::apart && p < LAST) {
                    gcu_wgmma_wait<0>();
                    gemm_promote<FORM>(total[p], sum[0], sum[1], down,
                                       scales + p * (GEMM_PIECE * 4));
                } else if (!shape::apart && p > 0) {
                    if (AHEAD && p == LAST)
                        gcu_wgmma_wait<2>();
                    else
                        gcu_wgmma_wait<1>();
                    gemm_promote<FORM>(total[p - 1], sum[(p - 1) % 2], nullptr, down, 0);
                }
            }
            const auto end = [&] {
                gcu_wgmma_wait<0>();
                gemm_promote<FORM>(total[LAST], sum[shape::apart ? 0 : LAST % 2], sum[1], down,
                                   scales + LAST * (GEMM_PIECE * 4));
            };
            if (AHEAD)
                gcu_wgmma_wait<1>(); /* the registers of the low halves are free */
            else
                end();
            if (shape::scaled && more) { /* what is left takes its numbers' place, and its turn */
                reader.load(x, a);
#pragma unroll
                for (int e = 0; e < 32; e++)
                    x[e] = gcu_gemm_rest<shape::apart>(x[e], scale[e / 2 % 2]);
                reader.store(x, a);
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                if (AHEAD) gemm_scales<AHEAD ? 4 : 1>(x, scale);
            } else {
                if (++stage == shape::stages) stage = 0, phase ^= 1;
                if (--left > 0 && AHEAD) begin();
            }
            if (AHEAD) end();
            __syncwarp();
            if (!more && lane < CLUSTER) gcu_barrier_arrive<CLUSTER>(release, (uint32_t)lane);
        }
        /* found again: there is no register to keep it in */
        const gemm_item i =
            gemm_item_of<N, CLUSTER>(w, number, CLUSTER == 1 ? 0 : gcu_cluster_rank());
        store.template put<N, FORM>(l, i, total, i.row + warp * 16 + g, q);
        if (LOOK) gemm_put_squares<CLUSTER>(l, squares, number, i.col == 0, warp);
    }
}

/* What sums begin with and what becomes of them: of rows 'row' and row + 8, and columns 8 c + 2 q
 * and the next, total[c / 8][c % 8 * 4 + 2 r + e]. Here: zeros, and C. All threads call prepare
 * first, before a barrier. */
struct gemm_into_c {
    __device__ __forceinline__ void prepare() const
    {
    }
    template <int COLUMNS>
    __device__ __forceinline__ void begin(const gemm_item &, float (*total)[32], int) const
    {
#pragma unroll
        for (int e = 0; e < COLUMNS / 2; e++)
            total[e / 32][e % 32] = 0.0f;
    }
    template <int N, gcu_gemm_form FORM>
    __device__ __forceinline__ void put(const gcu_gemm_launch &l, const gemm_item &i,
                                        float (*total)[32], int64_t row, int q) const
    {
        gemm_store<N, FORM>(l, i, total, row, q);
    }
};

template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE, bool LOOK>
static __global__ void __launch_bounds__(GEMM_THREADS, 1)
    gemm_hopper(const __grid_constant__ gcu_gemm_launch l, const __grid_constant__ gemm_walk w,
                const __grid_constant__ CUtensorMap map, const __grid_constant__ STORE store)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using shape = gemm_shape<N, FORM>;
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * shape::stages];
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
    const uint32_t empty = full + 8 * shape::stages;
    /* the same place in all blocks of a cluster */
    const uint32_t stages = ((uint32_t)__cvta_generic_to_shared(raw) + 1023) & ~1023u;
    if (threadIdx.x == 0) {
        for (int i = 0; i < shape::stages; i++) {
            gcu_barrier_init(full + 8 * i, 1);
            gcu_barrier_init(empty + 8 * i, 8 * CLUSTER);
        }
        gcu_barrier_init_fence();
    }
    store.prepare();
    if (CLUSTER == 1)
        __syncthreads();
    else
        gcu_cluster_sync();
    if (threadIdx.x < 128) {
        gcu_registers_give<shape::fetching>();
        if (threadIdx.x == 0)
            gemm_fetch_all<N, FORM, ALONG_M, CLUSTER>(l, w, &map, stages, full, empty);
    } else {
        gcu_registers_take<shape::multiplying>();
        gemm_multiply_all<N, FORM, ALONG_M, CLUSTER, STORE, LOOK>(l, w, store, stages, full, empty);
    }
    /* nobody leaves while its neighbour may still write or arrive here */
    if (CLUSTER > 1) {
        __syncwarp();
        gcu_cluster_sync();
    }
#endif
}

template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE, bool LOOK = false>
static cudaError_t gemm_launch(const gcu_gemm_launch &l, const CUtensorMap &map, const STORE &store,
                               const gcu_gpu *gpu, cudaStream_t stream)
{
    const auto kernel = gemm_hopper<N, FORM, ALONG_M, CLUSTER, STORE, LOOK>;
    constexpr int shared = gemm_shape<N, FORM>::shared;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    gemm_walk w;
    w.pairs = (int)((l.m + GEMM_M * CLUSTER - 1) / (GEMM_M * CLUSTER));
    w.cols = (int)(l.cols / N);
    w.items = w.pairs * w.cols * (int)l.splits;
    const int most = gpu->sms / CLUSTER;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = CLUSTER;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((w.items < most ? w.items : most) * CLUSTER));
    config.blockDim = dim3(GEMM_THREADS);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, l, w, map, store);
}

#endif
#endif
