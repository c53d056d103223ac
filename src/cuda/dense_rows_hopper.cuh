/* cuda/dense_rows_hopper.cuh: dense operators on Hopper: S made in the register operand of wgmma,
 * points brought to shared memory by bulk copies. Each kind is compiled by itself
 * (dense_rows_<kind>.cu). */
#ifndef GNOMON_CUDA_DENSE_ROWS_HOPPER_CUH
#define GNOMON_CUDA_DENSE_ROWS_HOPPER_CUH

#include "cuda/dense_rows.cuh"
#include "cuda/dense_wgmma.cuh"

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ uint32_t load_word(uint32_t at)
{
    uint32_t w;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(w) : "r"(at) : "memory");
    return w;
}

static __device__ __forceinline__ float2 load_pair(uint32_t at)
{
    float2 p;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(p.x), "=f"(p.y) : "r"(at) : "memory");
    return p;
}

static __device__ __forceinline__ void barrier_init(uint32_t at, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t at, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni over;\n"
                 "bra.uni again;\n"
                 "over:\n"
                 "}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

/* Announces the bytes and fetches them; the barrier completes when they are there. */
static __device__ __forceinline__ void fetch(uint32_t to, const void *from, uint32_t bytes,
                                             uint32_t barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

static __host__ __device__ constexpr int stage_bytes(int points, bool split)
{
    return (gcu_tile_bytes(points, split) + 1023) / 1024 * 1024;
}

static __host__ __device__ constexpr int stages_of(gcu_dense_kind kind, int points, bool split)
{
    const int room = (200 * 1024 - gcu_entries_table_bytes(kind)) / stage_bytes(points, split);
    return room > 6 ? 6 : room;
}

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static __global__ void __launch_bounds__(gcu_rows_groups(KIND) * 128, 1)
    rows_hopper(const __grid_constant__ gcu_rows_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr int GROUPS = gcu_rows_groups(KIND);
    constexpr int N = gcu_tile_rows(POINTS, SPLIT);
    constexpr bool LOW = KIND == GCU_DENSE_GAUSSIAN32;
    constexpr int MAIN = POINTS / 2; /* accumulators of the high (or only) halves */
    constexpr int SUMS = SPLIT || LOW ? 2 * MAIN : MAIN;
    constexpr int STAGES = stages_of(KIND, POINTS, SPLIT);
    constexpr int STAGE = stage_bytes(POINTS, SPLIT);
    constexpr int BYTES = gcu_tile_bytes(POINTS, SPLIT);
    constexpr int STEPS = gcu_fragments<KIND>::STEPS;
    constexpr int AHEAD = STAGES - 2; /* tiles fetched before their turn */

    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES];
    /* the swizzle goes by address: stages begin at multiples of 1024 */
    const uint32_t stages = (shared_address(raw) + 1023) / 1024 * 1024;
    uint8_t *table = raw + (stages - shared_address(raw)) + STAGES * STAGE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, GROUPS * 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    gcu_entries_table<KIND>(l.entries, table, (int)threadIdx.x, (int)blockDim.x);
    __syncthreads();

    const int items = (int)(l.segments * l.groups * l.row_tiles);
    int stage = 0;
    uint32_t phase = 0;
    /* thread 0 fetches, so no warp and its registers are spent on that */
    gcu_tile_walk<gcu_tile_stride(POINTS, SPLIT)> ahead = {nullptr, 0, (int)blockIdx.x};
    if (threadIdx.x == 0)
        for (int i = 0; i < AHEAD && ahead.next(l, items); i++)
            fetch(stages + i * STAGE, ahead.at, BYTES, full + 8 * i);

    const int g = lane / 4, q = lane % 4;
    const void *lane_table = KIND == GCU_DENSE_TERNARY ? table + 4 * lane : table;
    gcu_fragments<KIND> fragments;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const int part = item / (int)l.row_tiles, group = part % (int)l.groups;
        const int segment = part / (int)l.groups;
        const int64_t first = segment * l.segment_blocks;
        const int count = (int)min(l.segment_blocks, l.blocks - first);
        const uint32_t row_block =
            (uint32_t)(l.row / 4) +
            (uint32_t)(item % (int)l.row_tiles * (GROUPS * 32) + warp * 8 + g);
        const uint64_t block128 = l.block128 + (uint64_t)first;
        float total[2][MAIN];
#pragma unroll
        for (int i = 0; i < MAIN; i++)
            total[0][i] = total[1][i] = 0.0f;
        for (int b = 0; b < count; b++) {
            if (threadIdx.x == 0 && ahead.next(l, items)) {
                /* the slot of the tile before the last, which every warp has left by now or soon */
                const int slot = stage + AHEAD < STAGES ? stage + AHEAD : stage + AHEAD - STAGES;
                barrier_wait(empty + 8 * slot, stage + AHEAD < STAGES ? phase ^ 1 : phase);
                fetch(stages + slot * STAGE, ahead.at, BYTES, full + 8 * slot);
            }
            __syncwarp();
            fragments.start(l.entries, lane_table, row_block, block128 + (uint64_t)b, q);
            barrier_wait(full + 8 * stage, phase);
            const uint32_t tile = stages + stage * STAGE, scales = tile + N * 2 * GCU_KBLOCK;
            if (load_word(scales + 4 * POINTS)) {
                const uint32_t descriptor = gcu_wgmma_descriptor(tile);
                float sum[2][SUMS];
#pragma unroll 1
                for (int turn = 0; turn < 8 / STEPS; turn++) {
                    uint32_t a[STEPS][2][4], low[STEPS][2][4];
                    const uint32_t from =
                        descriptor + (turn * STEPS / 4 * (N * 128) + turn * STEPS % 4 * 32) / 16;
#pragma unroll
                    for (int u = 0; u < STEPS; u++) {
                        fragments.step(l.entries, lane_table, u, a[u], low[u]);
                        gcu_wgmma_fence();
#pragma unroll
                        for (int t = 0; t < 2; t++) {
                            const int add = turn > 0 || u > 0;
                            const uint32_t at = from + 2 * u;
                            if (LOW) { /* high high, high low and low high */
                                gcu_wgmma<POINTS>(sum[t], a[u][t], at, add);
                                if (SPLIT)
                                    gcu_wgmma<POINTS>(sum[t] + SUMS - MAIN, a[u][t],
                                                      at + POINTS * 128 / 16, add);
                                gcu_wgmma<POINTS>(sum[t] + SUMS - MAIN, low[u][t], at,
                                                  SPLIT ? 1 : add);
                            } else {
                                gcu_wgmma<N>(sum[t], a[u][t], at, add);
                            }
                        }
                        gcu_wgmma_commit();
                    }
                    fragments.turn();
                    gcu_wgmma_wait<0>();
                }
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    gcu_wgmma_settle<SUMS>(sum[t]);
#pragma unroll
                    for (int j = 0; j < POINTS / 8; j++) {
                        const float2 scale = load_pair(scales + 32 * j + 8 * q);
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
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + 8 * stage);
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < MAIN; i++)
                gcu_rows_store(l, segment, 4 * (int64_t)row_block + 2 * t + i % 4 / 2,
                               (int64_t)group * POINTS + 8 * (i / 4) + 2 * q + i % 2, total[t][i]);
    }
#else
    (void)l;
#endif
}

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static cudaError_t launch_hopper(const gcu_rows_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    constexpr int shared = stages_of(KIND, POINTS, SPLIT) * stage_bytes(POINTS, SPLIT) +
                           gcu_entries_table_bytes(KIND) + 1024;
    const auto kernel = rows_hopper<KIND, POINTS, SPLIT>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    const int64_t items = l.segments * l.groups * l.row_tiles;
    const unsigned grid = (unsigned)(items < gpu->sms ? items : gpu->sms);
    kernel<<<grid, gcu_rows_groups(KIND) * 128, shared, stream>>>(l);
    return cudaGetLastError();
}

#endif
