/* cuda/project/dense/rows_mma.cuh: dense operators by mma.sync, for GPUs from Ampere on that have
 * no path of their own: S made in the register operand, points brought to shared memory by
 * cp.async. */
#ifndef GNOMON_CUDA_DENSE_ROWS_MMA_CUH
#define GNOMON_CUDA_DENSE_ROWS_MMA_CUH

#include "cuda/project/dense/rows.cuh"
#include "cuda/runtime/mma.cuh"

static __host__ __device__ constexpr int mma_stages(gcu_dense_kind kind)
{
    return kind == GCU_DENSE_GAUSSIAN16 ? 2 : 3; /* with its table, within the 99 KB of 8.6 */
}

/* Blocks that a multiprocessor is to hold at once: two where 128 registers a thread are enough. */
static __host__ __device__ constexpr int mma_together(gcu_dense_kind kind, int points, bool split)
{
    return points == 32 && (split || kind == GCU_DENSE_GAUSSIAN32) ? 1 : 2;
}

enum { MMA_THREADS = GCU_ROWS_MMA_TILE };

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static __global__ void __launch_bounds__(MMA_THREADS, mma_together(KIND, POINTS, SPLIT))
    rows_mma(const __grid_constant__ gcu_rows_launch l)
{
    constexpr int N = gcu_tile_rows(POINTS, SPLIT);
    constexpr bool LOW = KIND == GCU_DENSE_GAUSSIAN32;
    constexpr int MAIN = POINTS / 2; /* accumulators of the high (or only) halves */
    constexpr int SUMS = SPLIT || LOW ? 2 * MAIN : MAIN;
    constexpr int STAGES = mma_stages(KIND);
    constexpr int STAGE = gcu_tile_stride(POINTS, SPLIT);
    constexpr int BYTES = gcu_tile_bytes(POINTS, SPLIT);
    constexpr int STEPS = gcu_fragments<KIND, false>::STEPS;

    extern __shared__ __align__(128) uint8_t raw[];
    uint8_t *table = raw + STAGES * STAGE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int g = lane / 4, q = lane % 4;
    gcu_entries_table<KIND, false>(l.entries, table, (int)threadIdx.x, MMA_THREADS);

    const int items = (int)(l.segments * l.groups * l.row_tiles);
    gcu_tile_walk<STAGE> ahead = {nullptr, 0, (int)blockIdx.x};
    const auto fetch = [&](int slot) {
        if (ahead.next(l, items)) {
            const uint32_t to = gcu_shared_address(raw + slot * STAGE);
            for (int i = (int)threadIdx.x * 16; i < BYTES; i += MMA_THREADS * 16)
                gcu_copy16(to + i, ahead.at + i);
        }
        gcu_copies_commit();
    };
    for (int i = 0; i < STAGES - 1; i++)
        fetch(i);

    /* what this lane names to ldmatrix: row of eight, half of 16 columns, group of eight of two */
    const int row = lane % 8, half = lane / 8 % 2, pair = lane / 16;
    const void *lane_table = KIND == GCU_DENSE_TERNARY ? table + 4 * lane : table;
    gcu_fragments<KIND, false> fragments;
    int stage = 0;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int part = item / (int)l.row_tiles, group = part % (int)l.groups;
        const int segment = part / (int)l.groups;
        const int64_t first = segment * l.segment_blocks;
        const int count = (int)min(l.segment_blocks, l.blocks - first);
        const uint32_t row_block =
            (uint32_t)(l.row / 4) +
            (uint32_t)(item % (int)l.row_tiles * (GCU_ROWS_MMA_TILE / 4) + warp * 8 + g);
        fragments.start(l.entries, row_block, l.block128 + (uint64_t)first, q);
        float total[2][MAIN];
#pragma unroll
        for (int i = 0; i < MAIN; i++)
            total[0][i] = total[1][i] = 0.0f;
        for (int b = 0; b < count; b++) {
            gcu_copies_wait<STAGES - 2>();
            __syncthreads();
            fetch(stage == 0 ? STAGES - 1 : stage - 1);
            const uint8_t *tile = raw + stage * STAGE;
            const float *scales = reinterpret_cast<const float *>(tile + N * 2 * GCU_KBLOCK);
            if (++stage == STAGES) stage = 0;
            if (!reinterpret_cast<const int *>(scales)[POINTS]) {
                fragments.skip(l.entries);
                continue;
            }
            const uint32_t rows = gcu_shared_address(tile) + row * 128;
            float sum[2][SUMS];
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                sum[0][i] = sum[1][i] = 0.0f;
#pragma unroll(KIND == GCU_DENSE_SIGNS ? 8 : 1)
            for (int round = 0; round < 8 / STEPS; round++) {
                uint32_t a[STEPS][2][4], low[STEPS][2][4], p[4];
                fragments.make(l.entries, lane_table, round, a, low);
#pragma unroll
                for (int u = 0; u < STEPS; u++) {
                    const int chunk = 2 * (round * STEPS + u) + half;
                    const uint32_t at = rows + chunk / 8 * (N * 128) + ((chunk % 8) ^ row) * 16;
#pragma unroll
                    for (int j = 0; j < N / 8; j++) {
                        if (N == 8)
                            gcu_load_2_matrices(p, at);
                        else if (j % 2 == 0)
                            gcu_load_4_matrices(p, at + (j + pair) * 1024);
                        const uint32_t b0 = p[j % 2 * 2], b1 = p[j % 2 * 2 + 1];
#pragma unroll
                        for (int t = 0; t < 2; t++) {
                            gcu_mma(sum[t] + 4 * j, a[u][t], b0, b1);
                            if (LOW && j < POINTS / 8)
                                gcu_mma(sum[t] + SUMS - MAIN + 4 * j, low[u][t], b0, b1);
                        }
                    }
                }
            }
#pragma unroll
            for (int j = 0; j < POINTS / 8; j++) {
                const float2 scale = *reinterpret_cast<const float2 *>(scales + 8 * j + 2 * q);
#pragma unroll
                for (int i = 4 * j; i < 4 * j + 4; i++)
#pragma unroll
                    for (int t = 0; t < 2; t++) {
                        const float value = SUMS > MAIN
                                                ? fmaf(sum[t][SUMS - MAIN + i], 0x1p-11f, sum[t][i])
                                                : sum[t][i];
                        total[t][i] = fmaf(value, i % 2 ? scale.y : scale.x, total[t][i]);
                    }
            }
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
static cudaError_t launch_mma(const gcu_rows_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    constexpr int shared =
        mma_stages(KIND) * gcu_tile_stride(POINTS, SPLIT) + gcu_entries_table_bytes(KIND, false);
    const auto kernel = rows_mma<KIND, POINTS, SPLIT>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    int together = 1;
    if (error == cudaSuccess)
        error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&together, kernel, MMA_THREADS, shared);
    if (error != cudaSuccess) return error;
    const int64_t items = l.segments * l.groups * l.row_tiles;
    const int64_t most = (int64_t)gpu->sms * (together > 1 ? together : 1);
    kernel<<<(unsigned)(items < most ? items : most), MMA_THREADS, shared, stream>>>(l);
    return cudaGetLastError();
}

#endif
