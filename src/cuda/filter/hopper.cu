/* The filter on Hopper: wgmma with both operands in shared memory.
 *
 * A block of threads computes tiles of 128 x 256 pairs: two warpgroups multiply, each 64 rows, and
 * a third has one thread that fetches. A chunk is 64 coordinates: 16 KB of P, and 32 KB of Q, half
 * of it by each block of a pair of blocks (a cluster) that work on neighbouring rows.
 *
 * The floor, for a tile and chunk, in cycles of a multiprocessor: 2 x 128 x 256 x 64 flops take
 * 1024 at 4096 a cycle. Shared memory gives 128 bytes a cycle: each warpgroup reads Q's part and
 * its half of P's, 80 KB in all, and 48 KB are written: 1024. From L2 come 32 KB, 4.1 KB a cycle of
 * 132 multiprocessors. A tile's scan of its sums takes three instructions per pair, 768 issue slots
 * of each of the four schedulers, beside what pairs that pass take: with few coordinates that, and
 * not the products, sets the pace. Warpgroups that take turns at looking were no faster. */
#include "cuda/filter/walk.cuh"
#include "cuda/runtime/bulk.cuh"
#include "cuda/runtime/wgmma.cuh"

enum {
    CLUSTER = 2, /* blocks of threads */
    HEIGHT = 128,
    WIDTH = 256,
    STAGES = 4,
    P_BYTES = HEIGHT * 128,
    Q_BYTES = WIDTH * 128,
    LIMITS = P_BYTES + Q_BYTES, /* of Q's points, then of P's: with a tile's last chunk */
    LIMIT_BYTES = (WIDTH + HEIGHT) * 4,
    STAGE = LIMITS + 2048,
    THREADS = 384,
    FOUND = 8 * (int)sizeof(filter_found),
    SHARED = STAGES * STAGE + FOUND + 1024,
    BAND_ROWS = 2048
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

static __device__ __forceinline__ void fetch_all(const filter_launch &l, uint32_t stages,
                                                 uint32_t full, uint32_t empty)
{
    constexpr int PART = Q_BYTES / CLUSTER;
    const uint32_t rank = gcu_cluster_rank();
    filter_place at = {0, l.walk.first};
    int stage = 0;
    uint32_t phase = 1; /* a stage never used is empty */
    int64_t row, col;
    for (int64_t number = blockIdx.x / CLUSTER; filter_find(l.walk, number, &at, &row, &col);
         number += gridDim.x / CLUSTER) {
        if (!filter_wanted(l.walk, row, col)) continue;
        const uint8_t *p = l.p + (row + rank * HEIGHT) * 128;
        const uint8_t *q = l.q + col * 128 + rank * PART;
        for (int left = l.chunks; left > 0; left--) {
            const uint32_t to = stages + stage * STAGE, barrier = full + 8 * stage;
            gcu_barrier_wait(empty + 8 * stage, phase);
            gcu_barrier_expect(barrier, left == 1 ? LIMITS + LIMIT_BYTES : LIMITS);
            gcu_fetch(to, p, P_BYTES, barrier);
            gcu_fetch_for_all<CLUSTER>(to + P_BYTES + rank * PART, q, PART, barrier);
            p += l.p_padded * 128;
            q += l.q_padded * 128;
            if (left == 1) {
                gcu_fetch(to + LIMITS, l.q_limits + col, WIDTH * 4, barrier);
                gcu_fetch(to + LIMITS + WIDTH * 4, l.p_limits + row + rank * HEIGHT, HEIGHT * 4,
                          barrier);
            }
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
}

static __device__ __forceinline__ void multiply_all(const filter_launch &l, uint32_t stages,
                                                    uint32_t full, uint32_t empty,
                                                    filter_found *found)
{
    const int warp = (int)threadIdx.x / 32 - 4, lane = (int)threadIdx.x % 32, group = warp / 4;
    const uint32_t rank = gcu_cluster_rank();
    const int own_row = (int)rank * HEIGHT + warp * 16 + lane / 4, own_col = lane % 4 * 2;
    const uint32_t first = gcu_wgmma_descriptor(stages + group * (P_BYTES / 2));
    const uint32_t second = gcu_wgmma_descriptor(stages + P_BYTES);
    found += warp;
    if (lane == 0) found->count = 0;
    __syncwarp();
    filter_place at = {0, l.walk.first};
    int stage = 0;
    uint32_t phase = 0;
    int64_t row, col;
    for (int64_t number = blockIdx.x / CLUSTER; filter_find(l.walk, number, &at, &row, &col);
         number += gridDim.x / CLUSTER) {
        if (!filter_wanted(l.walk, row, col)) continue;
        float sum[128];
        int before = 0;
#pragma unroll 1
        for (int chunk = 0; chunk < l.chunks; chunk++) {
            gcu_barrier_wait(full + 8 * stage, phase);
            gcu_wgmma_fence();
#pragma unroll
            for (int s = 0; s < 4; s++)
                gcu_wgmma_shared(sum, first + stage * (STAGE / 16) + 2 * s,
                                 second + stage * (STAGE / 16) + 2 * s, chunk + s > 0);
            gcu_wgmma_commit();
            if (chunk > 0) {
                gcu_wgmma_wait<1>();
                if (lane < CLUSTER) gcu_barrier_arrive<CLUSTER>(empty + 8 * before, (uint32_t)lane);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        const uint32_t limits = stages + before * STAGE + LIMITS;
        const bool above = l.walk.half && col < row + l.walk.height;
        row += own_row;
        col += own_col;
        float limit[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            limit[r] = gcu_load_shared(limits + WIDTH * 4 + (own_row % HEIGHT + 8 * r) * 4);
            if (row + 8 * r < l.row || row + 8 * r >= l.end) limit[r] = FILTER_NEVER;
        }
        gcu_wgmma_wait<0>();
        gcu_wgmma_fence_operands<128>(sum);
        uint32_t below[4] = {};
#pragma unroll
        for (int i = 0; i < 32; i++) { /* four chains side by side */
            const int g = i / 4 + i % 4 * 8;
            const float2 column = gcu_load_shared_pair(limits + (own_col + 8 * g) * 4);
#pragma unroll
            for (int e = 4 * g; e < 4 * g + 4; e++) {
                const float least = limit[e / 2 % 2] + (e % 2 ? column.y : column.x);
                below[e / 32] = __funnelshift_l(__float_as_uint(sum[e] - least), below[e / 32], 1);
            }
        }
        __syncwarp();
        if (lane < CLUSTER) gcu_barrier_arrive<CLUSTER>(empty + 8 * before, (uint32_t)lane);
        filter_collect<4>(l, below, (uint32_t)row, (uint32_t)col, above, found);
    }
    if (found->count > 0) filter_flush(l.sink, found);
}

#endif

static __global__ void __launch_bounds__(THREADS, 1)
    filter_kernel(const __grid_constant__ filter_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES];
    const uint32_t full = gcu_shared_address(barriers);
    const uint32_t empty = full + 8 * STAGES;
    /* the same place in all blocks of a cluster */
    const uint32_t start = gcu_shared_address(raw);
    const uint32_t stages = (start + 1023) & ~1023u;
    filter_found *found = reinterpret_cast<filter_found *>(raw + (stages - start) + STAGES * STAGE);
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, STAGES, 1, 8 * CLUSTER);
    gcu_cluster_sync();
    if (threadIdx.x < 128) {
        gcu_registers_dealloc<40>();
        if (threadIdx.x == 0) fetch_all(l, stages, full, empty);
    } else {
        gcu_registers_alloc<232>();
        multiply_all(l, stages, full, empty, found);
    }
    /* no block leaves while its neighbour may still write or arrive here */
    __syncwarp();
    gcu_cluster_sync();
#endif
}

bool gcu_filter_hopper_supported(const gcu_gpu *gpu)
{
    return gpu->major == 9;
}

cudaError_t gcu_filter_hopper(filter_launch l, const gcu_gpu *gpu, cudaStream_t stream)
{
    cudaError_t error =
        cudaFuncSetAttribute(filter_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (error != cudaSuccess) return error;
    filter_walk *w = &l.walk;
    w->height = HEIGHT * CLUSTER;
    w->width = WIDTH;
    w->band = BAND_ROWS / w->height;
    w->first = l.row / w->height;
    w->blocks = (l.end + w->height - 1) / w->height - w->first;
    w->columns = l.q_padded / WIDTH;
    const int64_t tiles = w->blocks * w->columns, most = gpu->sms / CLUSTER;
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = CLUSTER;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((tiles < most ? tiles : most) * CLUSTER));
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = SHARED;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, filter_kernel, l);
}
