/* cuda/gemm/hopper.cuh: products on Hopper, by wgmma with A cut into halves in its register
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
 * reaches. TF32 takes 32 of k at a time, at the same figures but for A's, which are half.
 *
 * Measured on an H200 with N = 256: TF32 2110 to 2350 cycles a chunk, halves 2700, halves with
 * scales 2900, at clocks of 1400 to 1700 MHz, since all of them, cuBLAS too, draw the 700 W there
 * are: what saves instructions gains more than what fills gaps. */
#ifndef GNOMON_CUDA_GEMM_HOPPER_CUH
#define GNOMON_CUDA_GEMM_HOPPER_CUH

#include "cuda/gemm/hopper_store.cuh"
#include "cuda/gemm/split.cuh"
#include "cuda/gemm/tf32.cuh"
#include "cuda/runtime/bulk.cuh"
#include "cuda/runtime/wgmma.cuh"

#include <cuda.h>

/* A as a tensor to copy from; false when it can't be one (gemm/encode.cu). */
bool gemm_encode(const gcu_gemm_launch &l, CUtensorMap *map, int depth = GCU_GEMM_CHUNK);
/* B, of fp16, likewise: boxes of 64 of k and 64 columns, whose lines are as B's. */
bool gemm_encode_b(const gcu_gemm_launch &l, CUtensorMap *map);

#ifdef __CUDACC__

/* 16 bytes of shared memory. */
static __device__ __forceinline__ void gemm_load(uint32_t *x, uint32_t at)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
}

static __device__ __forceinline__ void gemm_load_global(uint32_t *x, const void *from)
{
    const uint4 all = *static_cast<const uint4 *>(from);
    x[0] = all.x;
    x[1] = all.y;
    x[2] = all.z;
    x[3] = all.w;
}

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

/* The two warpgroups that multiply take turns: while one's products are in the tensor cores the
 * other adds up its last sums, and reads and cuts its next numbers. Left alone they do all that at
 * the same time. */
static __device__ __forceinline__ void gemm_order_wait(int group)
{
    asm volatile("bar.sync %0, 256;" ::"r"(group + 4) : "memory");
}

static __device__ __forceinline__ void gemm_order_signal(int group)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(group + 4) : "memory");
}

/* Where a thread's numbers lie in A's part of a stage: x[8 s + 4 h + 2 r + e] is row 8 r + its own,
 * and k 16 s + 4 q + 2 h + e (A along k) or 16 s + 8 h + 2 q + e (along m). */
template <int DEPTH, bool ALONG_M> struct gemm_reader {
    uint32_t at[ALONG_M ? 4 : 2];
    __device__ __forceinline__ gemm_reader(int row, int q)
    {
        if (ALONG_M) { /* [row / 32][k][row % 32], 16-byte parts exchanged by k */
#pragma unroll
            for (int i = 0; i < 4; i++) { /* 2 r + e */
                const int m = row + i / 2 * 8, k = 2 * q + i % 2;
                at[i] = m / 32 * (DEPTH * 128) + k * 128 + ((m % 32 / 4) ^ k) * 16 + m % 4 * 4;
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
            for (int i = 0; i < DEPTH / 2; i++)
                x[i] = gcu_load_shared(stage + at[i % 4] + i / 4 * 1024);
        } else {
#pragma unroll
            for (int i = 0; i < DEPTH / 8; i++) { /* 2 s + r */
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
            for (int i = 0; i < DEPTH / 2; i++)
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(stage + at[i % 4] + i / 4 * 1024),
                             "f"(x[i])
                             : "memory");
        } else {
#pragma unroll
            for (int i = 0; i < DEPTH / 8; i++) {
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
        if (shape::may_be_presplit && l.presplit && gemm_is_left(l, i.row, true)) continue;
        const int64_t begin = i.split * l.split_chunks;
        const int row = (int)i.row;
        int k = (int)(begin * GCU_GEMM_CHUNK), left = gemm_stages_of<shape::rounds>(l, w, number);
        int64_t column = begin * shape::rounds * l.cols + i.col + rank * PART; /* of all stages' */
        for (; left > 0; left--, k += shape::depth, column += l.cols) {
            const uint32_t to = stages + stage * shape::stage, barrier = full + 8 * stage;
            gcu_barrier_wait(empty + 8 * stage, phase);
            gcu_barrier_expect(barrier, shape::bytes);
            constexpr int PARTS = ALONG_M ? 4 : shape::depth / 32;
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const uint32_t there = to + part * (shape::a_bytes / PARTS);
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
            const int64_t from = column * 128;
            const uint32_t b = to + shape::a_bytes + rank * (PART * 128);
            gcu_fetch_for_all<CLUSTER>(b, l.packed + from, PART * 128, barrier);
            if (shape::three) {
                gcu_fetch_for_all<CLUSTER>(b + shape::b_bytes, l.packed_low + from, PART * 128,
                                           barrier);
                gcu_fetch_for_all<CLUSTER>(to + shape::a_bytes + 2 * shape::b_bytes +
                                               rank * (PART * 4),
                                           l.scales + column, PART * 4, barrier);
            }
            if (++stage == shape::stages) stage = 0, phase ^= 1;
        }
    }
}

/* 64 columns, and 32 bytes of their lines. */
template <gcu_gemm_form FORM>
static __device__ __forceinline__ void gemm_multiply(float *sum, const uint32_t *a, uint32_t b,
                                                     int add)
{
    if (FORM == GCU_GEMM_TF32)
        gcu_wgmma_tf32_64(sum, a, b, add);
    else
        gcu_wgmma<64>(sum, a, b, add);
}

/* Sums of 64 columns into the total. */
template <gcu_gemm_form FORM, bool BESIDE>
static __device__ __forceinline__ void gemm_promote(float *total, float *sum, float *beside,
                                                    const float *down, uint32_t scales)
{
    using shape = gemm_shape<GEMM_PIECE, FORM>;
    gcu_wgmma_fence_operands<32>(sum);
    if (BESIDE) gcu_wgmma_fence_operands<32>(beside);
#pragma unroll
    for (int j = 0; j < 8; j++) {
        float2 column = {1.0f, 1.0f};
        if (FORM == GCU_GEMM_THREE) column = gcu_load_shared_pair(scales + 32 * j);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int i = 4 * j + r;
            float value = BESIDE ? fmaf(beside[i], 0x1p-11f, sum[i]) : sum[i];
            if (FORM == GCU_GEMM_THREE) value *= r % 2 ? column.y : column.x;
            total[i] = shape::scaled ? fmaf(value, down[r / 2], total[i]) : total[i] + value;
        }
    }
}

/* Whether the thread has a number that is too small for its row's scale. */
template <bool APART, typename Reader>
static __device__ __forceinline__ bool gemm_too_small(const uint32_t (*high)[4],
                                                      const Reader &reader, uint32_t stage,
                                                      const gcu_gemm_scale *scale)
{
    if (gcu_gemm_all_large<APART>(high)) return false;
    float x[32];
    reader.load(x, stage);
    return gcu_gemm_any_small<APART>(x, scale);
}

/* A block of rows is scanned by the warps that multiply the first columns with it. */
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
template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE, bool SQUARES>
static __device__ __forceinline__ void
gemm_multiply_all(const gcu_gemm_launch &l, const gemm_walk &w, const STORE &store, uint32_t stages,
                  uint32_t full, uint32_t empty)
{
    using shape = gemm_shape<N, FORM>;
    constexpr int PIECES = N / GEMM_PIECE, LAST = PIECES - 1;
    constexpr bool AHEAD = N < 256;
    constexpr bool BESIDE = shape::apart && PIECES == 1; /* sums of low parts by themselves */
    constexpr int EACH = shape::depth / 2;               /* numbers of a thread */
    const int warp = (int)threadIdx.x / 32 - 4, lane = (int)threadIdx.x % 32;
    /* Along k neighbours take rows 4 apart, whose parts lie in other banks. */
    const int g = ALONG_M ? lane / 4 : lane / 8 + lane / 4 % 2 * 4, q = lane % 4;
    const gemm_reader<shape::depth, ALONG_M> reader(warp * 16 + g, q);
    /* shuffled so that the compiler knows it to be the warp's */
    const int group = __shfl_sync(~0u, warp / 4, 0);
    int stage = 0;
    uint32_t phase = 0;
    if (group == 1) gemm_order_signal(0);
    for (int number = blockIdx.x / CLUSTER; number < w.items; number += gridDim.x / CLUSTER) {
        if (shape::may_be_presplit && l.presplit) {
            const gemm_item i = gemm_item_of<N, CLUSTER>(w, number, gcu_cluster_rank());
            if (gemm_is_left(l, i.row, true)) continue;
        }
        bool first = true; /* of its chunk's products, not of what those have left */
        float total[PIECES][32], x[EACH];
        gcu_gemm_scale scale[2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
        double squares = 0;
        static_assert(!SQUARES || AHEAD, "a chunk would be scanned twice");
        store.template begin<N>(
            gemm_item_of<N, CLUSTER>(w, number, CLUSTER == 1 ? 0 : gcu_cluster_rank()), total, q);
        const auto begin = [&] {
            gcu_barrier_wait(full + 8 * stage, phase);
            reader.load(x, stages + stage * shape::stage);
            if constexpr (shape::scaled) gcu_gemm_scales<AHEAD ? 4 : 1>(x, scale);
            if (SQUARES) {
                float some[4] = {};
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    some[e % 4] = fmaf(x[e], x[e], some[e % 4]);
                squares += (double)((some[0] + some[1]) + (some[2] + some[3]));
            }
        };
        if (AHEAD) begin();
#pragma unroll 1
        for (int left = gemm_stages_of<shape::rounds>(l, w, number); left > 0;) {
            const uint32_t a = stages + stage * shape::stage, b = a + shape::a_bytes;
            const uint32_t columns = gcu_wgmma_descriptor(b);
            const uint32_t scales = b + 2 * shape::b_bytes + 8 * q;
            const uint32_t release = empty + 8 * stage;
            uint32_t high[4][4], low[4][4];
            if (!AHEAD) begin();
            if (shape::tf32) {
#pragma unroll
                for (int e = 0; e < 16; e++) /* 4 s + 2 e + r */
                    gcu_gemm_split_tf32(x[e / 4 * 4 + e % 2 * 2 + e / 2 % 2], &high[e / 4][e % 4],
                                        &low[e / 4][e % 4]);
            } else {
                gcu_gemm_split_all<shape::apart>(x, scale, high, low);
            }
            const float down[2] = {scale[0].down, scale[1].down};
            float sum[2][32];
            bool more = false;
            /* small products first, so that they are not cut off */
            const auto multiply_low = [&](int p) {
                const uint32_t from = columns + p * (GEMM_PIECE * 128 / 16);
                float *to = sum[BESIDE ? 1 : p % 2];
                gcu_wgmma_fence();
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    gemm_multiply<FORM>(to, low[s], from + 2 * s, s > 0);
                    if (shape::three)
                        gemm_multiply<FORM>(to, high[s], from + shape::b_bytes / 16 + 2 * s, 1);
                }
            };
            const auto multiply_high = [&](int p) {
                const uint32_t from = columns + p * (GEMM_PIECE * 128 / 16);
#pragma unroll
                for (int s = 0; s < 4; s++)
                    gemm_multiply<FORM>(sum[p % 2], high[s], from + 2 * s, !BESIDE || s > 0);
                gcu_wgmma_commit();
            };
            const auto promote = [&](int p) {
                gemm_promote<FORM, BESIDE>(total[p], sum[p % 2], sum[1], down,
                                           scales + p * (GEMM_PIECE * 4));
                gcu_wgmma_fence_operands<32>(total[p]); /* before what is waited for next */
            };
            const auto square =
                [&] { /* while they are at work */
                      if constexpr (shape::scaled)
                          more = gemm_any((int)threadIdx.x / 128,
                                          gemm_too_small<shape::apart>(high, reader, a, scale));
                };
            if (first) gemm_order_wait(group);
            if (shape::apart && !BESIDE) {
#pragma unroll
                for (int p = 0; p < PIECES; p += 2) {
#pragma unroll
                    for (int i = p; i < p + 2; i++) {
                        if (i >= 2) {
                            gcu_wgmma_wait<1>();
                            promote(i - 2);
                        }
                        multiply_low(i);
                        gcu_wgmma_commit();
                    }
                    if (p == 0) square();
#pragma unroll
                    for (int i = p; i < p + 2; i++) {
                        gcu_wgmma_wait<1>();
                        gcu_wgmma_fence_operands<32>(sum[i % 2]);
#pragma unroll
                        for (int e = 0; e < 32; e++)
                            sum[i % 2][e] *= 0x1p-11f;
                        gcu_wgmma_fence();
                        multiply_high(i);
                    }
                }
            } else {
#pragma unroll
                for (int p = 0; p < PIECES; p++) {
                    if (p >= 2) {
                        gcu_wgmma_wait<1>();
                        promote(p - 2);
                    }
                    multiply_low(p);
                    if (AHEAD && p == LAST) gcu_wgmma_commit();
                    multiply_high(p);
                    if (p == PIECES / 2) square();
                }
            }
            if (first) gemm_order_signal(1 - group);
            if (PIECES > 1) {
                gcu_wgmma_wait<AHEAD && !shape::apart ? 2 : 1>();
                promote(LAST - 1);
            }
            const auto end = [&] {
                gcu_wgmma_wait<0>();
                promote(LAST);
            };
            if (!AHEAD) end();
            if (AHEAD && (!shape::apart || BESIDE))
                gcu_wgmma_wait<1>(); /* the registers of the low halves are free */
            first = !more;
            if (more) { /* what is left takes its numbers' place, and its turn */
                if constexpr (shape::scaled) {
                    reader.load(x, a);
#pragma unroll
                    for (int e = 0; e < EACH; e++)
                        x[e] = gcu_gemm_rest<shape::apart>(x[e], scale[e / 2 % 2]);
                    reader.store(x, a);
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    if (AHEAD) gcu_gemm_scales<AHEAD ? 4 : 1>(x, scale);
                }
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
        if (!shape::may_be_presplit || !l.presplit || gemm_is_taken(l, i.row, true))
            store.template put<N, FORM>(l, i, total, i.row + warp * 16 + g, q);
        if (SQUARES) gemm_put_squares<CLUSTER>(l, squares, number, i.col == 0, warp);
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
        using shape = gemm_shape<N, FORM>;
        gemm_store<N>(l, i, total, row, q, shape::stages * shape::stage);
    }
};

template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE, bool SQUARES>
static __global__ void __launch_bounds__(GEMM_THREADS, 1)
    gemm_hopper(const __grid_constant__ gcu_gemm_launch l, const __grid_constant__ gemm_walk w,
                const __grid_constant__ CUtensorMap map, const __grid_constant__ STORE store)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using shape = gemm_shape<N, FORM>;
    if (shape::may_be_presplit && l.presplit && !l.mixed[l.presplit_blocks]) return;
    __shared__ __align__(8) uint64_t barriers[2 * shape::stages];
    const uint32_t full = gcu_shared_address(barriers);
    const uint32_t empty = full + 8 * shape::stages;
    const uint32_t stages = gemm_stages();
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, shape::stages, 1, 8 * CLUSTER);
    store.prepare();
    if (CLUSTER == 1)
        __syncthreads();
    else
        gcu_cluster_sync();
    if (threadIdx.x < 128) {
        gcu_registers_dealloc<shape::fetching>();
        if (threadIdx.x == 0)
            gemm_fetch_all<N, FORM, ALONG_M, CLUSTER>(l, w, &map, stages, full, empty);
    } else {
        gcu_registers_alloc<shape::multiplying>();
        gemm_multiply_all<N, FORM, ALONG_M, CLUSTER, STORE, SQUARES>(l, w, store, stages, full,
                                                                     empty);
    }
    /* no block leaves while its neighbour may still write or arrive here */
    if (CLUSTER > 1) {
        __syncwarp();
        gcu_cluster_sync();
    }
#endif
}

/* As many blocks of threads as there are multiprocessors for, which take turns at the items. */
template <int N, int CLUSTER, typename KERNEL, typename... REST>
static cudaError_t gemm_launch_on(KERNEL kernel, int shared, const gcu_gemm_launch &l,
                                  const CUtensorMap &map, const gcu_gpu *gpu, cudaStream_t stream,
                                  const REST &...rest)
{
    const cudaError_t error =
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
    return cudaLaunchKernelEx(&config, kernel, l, w, map, rest...);
}

template <int N, gcu_gemm_form FORM, bool ALONG_M, int CLUSTER, typename STORE,
          bool SQUARES = false>
static cudaError_t gemm_launch(const gcu_gemm_launch &l, const CUtensorMap &map, const STORE &store,
                               const gcu_gpu *gpu, cudaStream_t stream)
{
    const auto kernel = gemm_hopper<N, FORM, ALONG_M, CLUSTER, STORE, SQUARES>;
    return gemm_launch_on<N, CLUSTER>(kernel, gemm_shape<N, FORM>::shared, l, map, gpu, stream,
                                      store);
}

#endif
#endif
