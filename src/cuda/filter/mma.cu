/* The filter by mma.sync, for GPUs from Ampere on: tiles of 128 x 128 pairs, a warp 64 x 32, chunks
 * of 64 coordinates by cp.async, three deep. */
#include "cuda/filter/walk.cuh"
#include "cuda/runtime/mma.cuh"

enum {
    SIDE = 128,
    STAGES = 3,
    OPERAND = SIDE * 128,
    STAGE = 2 * OPERAND,
    THREADS = 256,
    FOUND = THREADS / 32 * (int)sizeof(filter_found),
    SHARED = STAGES * STAGE + FOUND,
    BAND_ROWS = 2048
};

static __device__ __forceinline__ void fetch(const filter_launch &l, uint32_t stages, int chunk,
                                             int64_t row, int64_t col)
{
    if (chunk < l.chunks) {
        const uint8_t *p = l.p + ((int64_t)chunk * l.p_padded + row) * 128;
        const uint8_t *q = l.q + ((int64_t)chunk * l.q_padded + col) * 128;
        const uint32_t to = stages + chunk % STAGES * STAGE;
#pragma unroll
        for (int i = 0; i < OPERAND / 16 / THREADS; i++) {
            const int at = (i * THREADS + (int)threadIdx.x) * 16;
            gcu_copy16(to + at, p + at);
            gcu_copy16(to + OPERAND + at, q + at);
        }
    }
    gcu_copies_commit();
}

static __global__ void __launch_bounds__(THREADS)
    filter_mma_kernel(const __grid_constant__ filter_launch l)
{
    extern __shared__ __align__(128) uint8_t shared[];
    const uint32_t stages = gcu_shared_address(shared);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int rows = warp / 4 * 64, cols = warp % 4 * 32;
    filter_found *found = reinterpret_cast<filter_found *>(shared + STAGES * STAGE) + warp;
    if (lane == 0) found->count = 0;
    __syncwarp();
    filter_place at = {0, l.walk.first};
    int64_t row, col;
    for (int64_t number = blockIdx.x; filter_find(l.walk, number, &at, &row, &col);
         number += gridDim.x) {
        if (!filter_wanted(l.walk, row, col)) continue;
        float sum[4][16] = {}; /* [16 rows][4 g + 2 r + x] */
#pragma unroll
        for (int chunk = 0; chunk < STAGES - 1; chunk++)
            fetch(l, stages, chunk, row, col);
#pragma unroll 1
        for (int chunk = 0; chunk < l.chunks; chunk++) {
            gcu_copies_wait<STAGES - 2>();
            __syncthreads();
            fetch(l, stages, chunk + STAGES - 1, row, col);
            const uint32_t p = stages + chunk % STAGES * STAGE, q = p + OPERAND;
#pragma unroll
            for (int s = 0; s < 4; s++) {
                uint32_t b[2]
                          [4]; /* [16 columns]: k 0-7 and 8-15 of the first eight, of the others */
#pragma unroll
                for (int n = 0; n < 2; n++)
                    gcu_load_4_matrices(b[n],
                                        gcu_filter_part(q, cols + n * 16 + lane / 16 * 8 + lane % 8,
                                                        2 * s + lane / 8 % 2));
#pragma unroll
                for (int m = 0; m < 4; m++) {
                    uint32_t a[4];
                    gcu_load_4_matrices(
                        a, gcu_filter_part(p, rows + m * 16 + lane % 16, 2 * s + lane / 16));
#pragma unroll
                    for (int g = 0; g < 4; g++)
                        gcu_mma(sum[m] + 4 * g, a, b[g / 2][g % 2 * 2], b[g / 2][g % 2 * 2 + 1]);
                }
            }
        }
        gcu_copies_wait<0>();
        __syncthreads(); /* the stages are free */
        const bool above = l.walk.half && col < row + SIDE;
        col += cols + lane % 4 * 2;
        row += rows + lane / 4;
#pragma unroll
        for (int m = 0; m < 4; m++) {
            const float limit[2] = {filter_row_limit(l, row + m * 16),
                                    filter_row_limit(l, row + m * 16 + 8)};
            uint32_t below[1] = {0};
#pragma unroll
            for (int e = 0; e < 16; e++) {
                const float least = limit[e / 2 % 2] + __ldg(l.q_limits + col + e / 4 * 8 + e % 2);
                below[0] = __funnelshift_l(__float_as_uint(sum[m][e] - least), below[0], 1);
            }
            below[0] = below[0] << 16 | 0xffffu;
            filter_collect<1>(l, below, (uint32_t)row + m * 16, (uint32_t)col, above, found);
        }
    }
    if (found->count > 0) filter_flush(l.sink, found);
}

cudaError_t gcu_filter_mma(filter_launch l, const gcu_gpu *gpu, cudaStream_t stream)
{
    cudaError_t error = cudaFuncSetAttribute(filter_mma_kernel,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    if (error != cudaSuccess) return error;
    filter_walk *w = &l.walk;
    w->height = w->width = SIDE;
    w->band = BAND_ROWS / SIDE;
    w->first = l.row / SIDE;
    w->blocks = (l.end + SIDE - 1) / SIDE - w->first;
    w->columns = l.q_padded / SIDE;
    const int64_t tiles = w->blocks * w->columns;
    filter_mma_kernel<<<(unsigned)(tiles < gpu->sms ? tiles : gpu->sms), THREADS, SHARED, stream>>>(
        l);
    return cudaGetLastError();
}
