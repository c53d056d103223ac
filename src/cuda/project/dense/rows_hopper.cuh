/* cuda/project/dense/rows_hopper.cuh: dense operators on Hopper: S made in the register operand of
 * wgmma, points brought to shared memory by bulk copies. Each kind is compiled by itself
 * (rows_<kind>.cu). */
#ifndef GNOMON_CUDA_DENSE_ROWS_HOPPER_CUH
#define GNOMON_CUDA_DENSE_ROWS_HOPPER_CUH

#include "cuda/project/dense/rows.cuh"
#include "cuda/runtime/bulk.cuh"
#include "cuda/runtime/wgmma.cuh"

/* Announces the bytes and fetches them; the barrier completes when they are there. */
static __device__ __forceinline__ void fetch(uint32_t to, const void *from, uint32_t bytes,
                                             uint32_t barrier)
{
    gcu_barrier_expect(barrier, bytes);
    gcu_fetch(to, from, bytes, barrier);
}

static __host__ __device__ constexpr int stage_bytes(int points, bool split)
{
    return (gcu_tile_bytes(points, split) + 1023) / 1024 * 1024;
}

static __host__ __device__ constexpr int stages_of(gcu_dense_kind kind, int points, bool split)
{
    const int room =
        (224 * 1024 - gcu_entries_table_bytes(kind, true)) / stage_bytes(points, split);
    return room > 6 ? 6 : room;
}

/* Registers of a thread of the warpgroups that multiply; those of the one that fetches. */
static __host__ __device__ constexpr int registers_of(int groups)
{
    return groups == 3 ? 160 : 112;
}

enum { FETCH_REGISTERS = 24 };

/* Brings the tiles in the order in which they are met; one thread does it. */
template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static __device__ __forceinline__ void fetch_tiles(const gcu_rows_launch &l, int items,
                                                   uint32_t stages, uint32_t full, uint32_t empty)
{
    constexpr int STAGES = stages_of(KIND, POINTS, SPLIT);
    gcu_tile_walk<gcu_tile_stride(POINTS, SPLIT)> walk = {nullptr, 0, (int)blockIdx.x};
    uint32_t phase = 1; /* a stage never used is empty */
    for (int stage = 0; walk.next(l, items);) {
        gcu_barrier_wait(empty + 8 * stage, phase);
        fetch(stages + stage * stage_bytes(POINTS, SPLIT), walk.at, gcu_tile_bytes(POINTS, SPLIT),
              full + 8 * stage);
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
}

/* A unit of a block's fragments, and its products with the tile's columns. */
template <gcu_dense_kind KIND, int POINTS, bool SPLIT> struct unit {
    static constexpr bool LOW = KIND == GCU_DENSE_GAUSSIAN32;
    static constexpr int STEPS = gcu_fragments<KIND, true>::STEPS, COUNT = 8 / STEPS;
    static constexpr int N = gcu_tile_rows(POINTS, SPLIT);
    static constexpr int MAIN = POINTS / 2; /* accumulators of the high (or only) halves */
    static constexpr int SUMS = SPLIT || LOW ? 2 * MAIN : MAIN;
    uint32_t a[STEPS][2][4], low[LOW ? STEPS : 1][2][4];

    __device__ __forceinline__ void make(gcu_fragments<KIND, true> &fragments, const gcu_entries &e,
                                         const void *table, int number)
    {
        fragments.make(e, table, number, a, low);
    }
    __device__ __forceinline__ void multiply(uint32_t tile, int number, float sum[2][SUMS]) const
    {
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            const int step = number * STEPS + u, add = step > 0;
            const uint32_t at = tile + (step / 4 * (N * 128) + step % 4 * 32) / 16;
#pragma unroll
            for (int t = 0; t < 2; t++) {
                if constexpr (LOW) { /* high high, high low and low high */
                    gcu_wgmma<POINTS>(sum[t], a[u][t], at, add);
                    if (SPLIT)
                        gcu_wgmma<POINTS>(sum[t] + SUMS - MAIN, a[u][t], at + POINTS * 128 / 16,
                                          add);
                    gcu_wgmma<POINTS>(sum[t] + SUMS - MAIN, low[u][t], at, SPLIT ? 1 : add);
                } else {
                    gcu_wgmma<N>(sum[t], a[u][t], at, add);
                }
            }
        }
    }
};

template <int POINTS> struct unit<GCU_DENSE_SIGN_PAIRS, POINTS, true> {
    static constexpr int COUNT = 4, N = 2 * POINTS, MAIN = POINTS / 2, SUMS = POINTS;
    uint32_t a[2][4], which[2];

    __device__ __forceinline__ void make(gcu_fragments<GCU_DENSE_SIGN_PAIRS, true> &fragments,
                                         const gcu_entries &e, const void *, int number)
    {
        fragments.make(e, number, a, which);
    }
    __device__ __forceinline__ void multiply(uint32_t tile, int number, float sum[2][SUMS]) const
    {
        const uint32_t at = tile + (number / 2 * (N * 128) + number % 2 * 64) / 16;
#pragma unroll
        for (int t = 0; t < 2; t++)
            if (number < 2)
                gcu_wgmma_sparse<N, 0>(sum[t], a[t], at, which[t], number > 0);
            else
                gcu_wgmma_sparse<N, 1>(sum[t], a[t], at, which[t], 1);
    }
};

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static __device__ __forceinline__ void multiply_tiles(const gcu_rows_launch &l, int items,
                                                      const uint8_t *table, uint32_t stages,
                                                      uint32_t full, uint32_t empty)
{
    constexpr int GROUPS = gcu_rows_groups(KIND, POINTS, SPLIT);
    using part_of = unit<KIND, POINTS, SPLIT>;
    constexpr int N = part_of::N, MAIN = part_of::MAIN, SUMS = part_of::SUMS;
    constexpr int UNITS = part_of::COUNT;
    constexpr int STAGES = stages_of(KIND, POINTS, SPLIT);
    /* long ones are a loop, or the compiler would make many units first */
    constexpr int UNROLL = KIND == GCU_DENSE_SIGNS || KIND == GCU_DENSE_SIGN_PAIRS ? 2 : 1;

    /* one is made while the matrix unit works on the other; of gaussian, fp16, whose look-ups take
     * longest, both are made while it finishes the first */
    constexpr bool AHEAD = KIND != GCU_DENSE_GAUSSIAN16;

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int g = lane / 4, q = lane % 4;
    const void *lane_table = KIND == GCU_DENSE_TERNARY ? table + 4 * lane : table;
    gcu_fragments<KIND, true> fragments;
    part_of units[2];
    int stage = 0;
    uint32_t phase = 0;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int part = item / (int)l.row_tiles, group = part % (int)l.groups;
        const int segment = part / (int)l.groups;
        const int64_t first = segment * l.segment_blocks;
        const int count = (int)min(l.segment_blocks, l.blocks - first);
        const uint32_t row_block =
            (uint32_t)(l.row / 4) +
            (uint32_t)(item % (int)l.row_tiles * (GROUPS * 32) + warp * 8 + g);
        fragments.start(l.entries, row_block, l.block128 + (uint64_t)first, q);
        if (AHEAD) units[0].make(fragments, l.entries, lane_table, 0);
        float total[2][MAIN];
#pragma unroll
        for (int i = 0; i < MAIN; i++)
            total[0][i] = total[1][i] = 0.0f;
#pragma unroll 1
        for (int b = 0; b < count; b++) {
            const uint32_t tile = stages + stage * stage_bytes(POINTS, SPLIT);
            const uint32_t scales = tile + N * 2 * GCU_KBLOCK;
            gcu_barrier_wait(full + 8 * stage, phase);
            if (gcu_load_shared_word(scales + 4 * POINTS)) {
                const uint32_t descriptor = gcu_wgmma_descriptor(tile);
                float sum[2][SUMS];
#pragma unroll(UNROLL)
                for (int two = 0; two < UNITS; two += 2) {
#pragma unroll
                    for (int side = 0; side < 2; side++) {
                        if (!AHEAD) units[side].make(fragments, l.entries, lane_table, two + side);
                        gcu_wgmma_fence();
                        units[side].multiply(descriptor, two + side, sum);
                        gcu_wgmma_commit();
                        if (AHEAD) {
                            gcu_wgmma_wait<1>();
                            units[1 - side].make(fragments, l.entries, lane_table,
                                                 (two + side + 1) % UNITS);
                        }
                    }
                    if (!AHEAD) gcu_wgmma_wait<0>();
                }
                gcu_wgmma_wait<0>();
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    gcu_wgmma_fence_operands<SUMS>(sum[t]);
#pragma unroll
                    for (int j = 0; j < POINTS / 8; j++) {
                        const float2 scale = gcu_load_shared_pair(scales + 32 * j + 8 * q);
#pragma unroll
                        for (int r = 0; r < 4; r++) {
                            const int i = 4 * j + r;
                            const float value =
                                SUMS > MAIN ? fmaf(sum[t][(MAIN + i) % SUMS], 0x1p-11f, sum[t][i])
                                            : sum[t][i];
                            total[t][i] = fmaf(value, r % 2 ? scale.y : scale.x, total[t][i]);
                        }
                    }
                }
            } else {
                fragments.start(l.entries, row_block, l.block128 + (uint64_t)(first + b + 1), q);
                if (AHEAD) units[0].make(fragments, l.entries, lane_table, 0);
            }
            __syncwarp();
            if (lane == 0) gcu_barrier_arrive(empty + 8 * stage);
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < MAIN; i++)
                gcu_rows_store(l, segment, 4 * (int64_t)row_block + 2 * t + i % 4 / 2,
                               (int64_t)group * POINTS + 8 * (i / 4) + 2 * q + i % 2, total[t][i]);
    }
}

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static __global__ void __launch_bounds__((gcu_rows_groups(KIND, POINTS, SPLIT) + 1) * 128, 1)
    rows_hopper(const __grid_constant__ gcu_rows_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr int GROUPS = gcu_rows_groups(KIND, POINTS, SPLIT);
    constexpr int STAGES = stages_of(KIND, POINTS, SPLIT);
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES];
    /* the swizzle goes by address: stages begin at multiples of 1024 */
    const uint32_t stages = (gcu_shared_address(raw) + 1023) / 1024 * 1024;
    uint8_t *table = raw + (stages - gcu_shared_address(raw)) + STAGES * stage_bytes(POINTS, SPLIT);
    const uint32_t full = gcu_shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, STAGES, 1, GROUPS * 4);
    gcu_entries_table<KIND, true>(l.entries, table, (int)threadIdx.x, (int)blockDim.x);
    __syncthreads();

    const int items = (int)(l.segments * l.groups * l.row_tiles);
    if (threadIdx.x / 128 == GROUPS) {
        gcu_registers_dealloc<FETCH_REGISTERS>();
        if (threadIdx.x == GROUPS * 128)
            fetch_tiles<KIND, POINTS, SPLIT>(l, items, stages, full, empty);
    } else {
        gcu_registers_alloc<registers_of(GROUPS)>();
        multiply_tiles<KIND, POINTS, SPLIT>(l, items, table, stages, full, empty);
    }
#else
    (void)l;
#endif
}

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static cudaError_t launch_hopper(const gcu_rows_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    constexpr int shared = stages_of(KIND, POINTS, SPLIT) * stage_bytes(POINTS, SPLIT) +
                           gcu_entries_table_bytes(KIND, true) + 1024;
    const auto kernel = rows_hopper<KIND, POINTS, SPLIT>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    const int64_t items = l.segments * l.groups * l.row_tiles;
    const unsigned grid = (unsigned)(items < gpu->sms ? items : gpu->sms);
    kernel<<<grid, (gcu_rows_groups(KIND, POINTS, SPLIT) + 1) * 128, shared, stream>>>(l);
    return cudaGetLastError();
}

#endif
