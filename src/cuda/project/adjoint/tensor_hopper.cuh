/* cuda/project/adjoint/tensor_hopper.cuh: the kernel of tensor.cuh. Two warpgroups multiply, 64
 * columns each, and one more fetches. Sums begin anew with each fragment unit (64 rows, or 32 of
 * gaussian in fp32) and are added in fp32, since the matrix unit truncates. */
#ifndef GNOMON_CUDA_ADJOINT_TENSOR_HOPPER_CUH
#define GNOMON_CUDA_ADJOINT_TENSOR_HOPPER_CUH

#include "cuda/project/adjoint/tensor.cuh"

enum { TENSOR_GROUPS = 2, TENSOR_THREADS = (TENSOR_GROUPS + 1) * 128 };

/* From one stage in shared memory to the next: the swizzle goes by address. */
static __host__ __device__ constexpr int tensor_stride(int points)
{
    return (gcu_stage_bytes(points) + 1023) / 1024 * 1024;
}

static __host__ __device__ constexpr int tensor_depth(gcu_dense_kind kind)
{
    return kind == GCU_DENSE_GAUSSIAN16 ? 4 : 6;
}

template <int POINTS, int DEPTH>
static __device__ __forceinline__ void tensor_fetch(const gcu_tensor_launch &l, int items,
                                                    uint32_t stages, uint32_t full, uint32_t empty)
{
    uint32_t phase = 1; /* a stage never used is empty */
    int stage = 0;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const uint8_t *from =
            l.tiles + item / (int)l.col_tiles * l.stages * gcu_stage_bytes(POINTS);
        for (int64_t s = 0; s < l.stages; s++, from += gcu_stage_bytes(POINTS)) {
            gcu_barrier_wait(empty + 8 * stage, phase);
            gcu_barrier_expect(full + 8 * stage, gcu_stage_bytes(POINTS));
            gcu_fetch(stages + stage * tensor_stride(POINTS), from, gcu_stage_bytes(POINTS),
                      full + 8 * stage);
            if (++stage == DEPTH) stage = 0, phase ^= 1;
        }
    }
}

/* What a whole tile's sum becomes: gcu_finished's bits, in fp32 too where the factor is such a
 * number, for then the product rounds once in either. */
static __device__ __forceinline__ float tensor_finished(const gcu_tensor_launch &l, float sum)
{
    return l.fp32 ? __fmul_rn((float)l.factor, __fadd_rn(sum, 0.0f))
                  : gcu_finished(l.factor, (double)sum, 0.0, static_cast<const float *>(nullptr));
}

/* Writes the sums of a tile that is whole in pairs of neighbours; false when it is not, or has
 * none. v: the lane's first point of the launch, c: its first column. */
template <int POINTS>
static __device__ __forceinline__ bool tensor_put_whole(const gcu_tensor_launch &l, int64_t v,
                                                        int64_t c, int lane,
                                                        const float total[POINTS / 2])
{
    const int64_t v0 = v - 2 * (lane % 4), c0 = c & -(int64_t)GCU_TENSOR_COLS;
    if (l.pairs == GCU_TENSOR_NO_PAIRS || v0 + POINTS > l.points || c0 < l.low ||
        c0 + GCU_TENSOR_COLS > l.high)
        return false;
    float *x = static_cast<float *>(l.x) + l.to + v * l.x_row_stride + c * l.x_col_stride;
    if (l.pairs == GCU_TENSOR_POINTS_LIE) {
#pragma unroll
        for (int i = 0; i < 2; i++, x += l.x_col_stride)
#pragma unroll
            for (int j = 0; j < POINTS / 8; j++)
                *reinterpret_cast<float2 *>(x + 8 * j) =
                    make_float2(tensor_finished(l, total[4 * j + 2 * i]),
                                tensor_finished(l, total[4 * j + 2 * i + 1]));
        return true;
    }
#pragma unroll
    for (int j = 0; j < POINTS / 8; j++, x += 8 * l.x_row_stride) {
        asm volatile("" : "+l"(x)); /* one address at a time: registers are full */
#pragma unroll
        for (int i = 0; i < 2; i++)
            *reinterpret_cast<float2 *>(x + i * l.x_row_stride) = make_float2(
                tensor_finished(l, total[4 * j + i]), tensor_finished(l, total[4 * j + 2 + i]));
    }
    return true;
}

/* Sums of a point's columns c and c + 1. */
static __device__ __forceinline__ void tensor_put(const gcu_tensor_launch &l,
                                                  const gcu_tensor_exit &exit, int64_t c,
                                                  float first, float second)
{
    const int64_t to = exit.to + c * l.x_col_stride;
    const bool low = c >= exit.low && c < exit.high;
    const bool high = c + 1 >= exit.low && c + 1 < exit.high;
    if (l.x_dtype == GNOMON_F64) {
        double *x = static_cast<double *>(l.x) + to;
        if (low) *x = gcu_finished(exit.factor, (double)first, l.beta, x);
        x += l.x_col_stride;
        if (high) *x = gcu_finished(exit.factor, (double)second, l.beta, x);
        return;
    }
    float *x = static_cast<float *>(l.x) + to;
    if (low && high && l.beta == 0.0 && l.x_col_stride == 1 &&
        reinterpret_cast<uintptr_t>(x) % 8 == 0) {
        *reinterpret_cast<float2 *>(x) =
            make_float2(gcu_finished(exit.factor, (double)first, 0.0, x),
                        gcu_finished(exit.factor, (double)second, 0.0, x));
        return;
    }
    if (low) *x = gcu_finished(exit.factor, (double)first, l.beta, x);
    x += l.x_col_stride;
    if (high) *x = gcu_finished(exit.factor, (double)second, l.beta, x);
}

/* Sums of two points' columns c and c + 1, in the order of the accumulators: points fastest. */
static __device__ __forceinline__ void tensor_put_two(const gcu_tensor_launch &l,
                                                      const gcu_tensor_exit *exits, int64_t c,
                                                      const float sum[4])
{
    const gcu_tensor_exit a = exits[0], b = exits[1];
    float *x = static_cast<float *>(l.x) + a.to + c * l.x_col_stride;
    if (l.x_dtype == GNOMON_F32 && l.beta == 0.0 && b.to == a.to + 1 && c >= a.low && c >= b.low &&
        c + 1 < a.high && c + 1 < b.high && l.x_col_stride % 2 == 0 &&
        reinterpret_cast<uintptr_t>(x) % 8 == 0) {
#pragma unroll
        for (int i = 0; i < 2; i++, x += l.x_col_stride)
            *reinterpret_cast<float2 *>(x) =
                make_float2(gcu_finished(a.factor, (double)sum[2 * i], 0.0, x),
                            gcu_finished(b.factor, (double)sum[2 * i + 1], 0.0, x));
        return;
    }
    tensor_put(l, a, c, sum[0], sum[2]);
    tensor_put(l, b, c, sum[1], sum[3]);
}

/* N: of one instruction; POINTS: one or two of these. */
template <gcu_dense_kind KIND, int N, int POINTS>
static __device__ __forceinline__ void tensor_multiply(const gcu_tensor_launch &l, int items,
                                                       const void *table, uint32_t stages,
                                                       uint32_t full, uint32_t empty)
{
    using made = gcu_column_fragments<KIND>;
    constexpr int STEPS = made::STEPS, DEPTH = tensor_depth(KIND), STAGES = STEPS / 2;
    static_assert(DEPTH % STAGES == 0, "a unit's stages lie together");
    constexpr bool LOW = KIND == GCU_DENSE_GAUSSIAN32;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, q = lane % 4;
    const int units = (int)(l.stages / STAGES);
    made fragments;
    int stage = 0;
    uint32_t phase = 0;
    for (int item = (int)blockIdx.x; item < items; item += (int)gridDim.x) {
        const uint64_t col = l.col + (uint64_t)(item % (int)l.col_tiles) * GCU_TENSOR_COLS +
                             (uint64_t)(warp * 16 + lane / 4 * 2);
        fragments.start(l.entries, table, col, l.block, lane);
        float total[POINTS / 2];
#pragma unroll
        for (int i = 0; i < POINTS / 2; i++)
            total[i] = 0.0f;
#pragma unroll 1
        for (int unit = 0; unit < units; unit++) {
            uint32_t a[STEPS][4], low[LOW ? STEPS : 1][4];
            fragments.make(l.entries, unit, a, low, lane);
            /* made before the fence, not between the products */
#pragma unroll
            for (int i = 0; i < 4 * STEPS; i++) {
                asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
                if (LOW) asm volatile("" : "+r"(low[i / 4][i % 4])::"memory");
            }
            const uint32_t at = stages + stage * tensor_stride(POINTS);
#pragma unroll
            for (int i = 0; i < STAGES; i++)
                gcu_barrier_wait(full + 8 * (stage + i), phase);
#pragma unroll
            for (int h = 0; h < POINTS / N; h++) {
                float sum[N / 2];
                gcu_wgmma_fence();
#pragma unroll
                for (int u = 0; u < STEPS; u++) {
                    const uint32_t b =
                        gcu_wgmma_descriptor(at) +
                        (u / 2 * tensor_stride(POINTS) + h * N * 128 + u % 2 * 32) / 16;
                    gcu_wgmma<N>(sum, a[u], b, u > 0);
                    gcu_wgmma<N>(sum, a[u], b + 64 / 16, 1);
                    if constexpr (LOW) gcu_wgmma<N>(sum, low[u], b, 1);
                }
                gcu_wgmma_commit();
                gcu_wgmma_wait<0>();
                gcu_wgmma_fence_operands<N / 2>(sum);
                const uint32_t scales = at + POINTS * 128 + (h * N + 2 * q) * 4;
#pragma unroll
                for (int j = 0; j < N / 8; j++) {
                    const float2 scale = gcu_load_shared_pair(scales + 32 * j);
#pragma unroll
                    for (int r = 0; r < 4; r++) {
                        const int i = h * (N / 2) + 4 * j + r;
                        total[i] = fmaf(sum[4 * j + r], r % 2 ? scale.y : scale.x, total[i]);
                    }
                }
            }
            __syncwarp();
            if (lane == 0)
#pragma unroll
                for (int i = 0; i < STAGES; i++)
                    gcu_barrier_arrive(empty + 8 * (stage + i));
            stage += STAGES;
            if (stage == DEPTH) stage = 0, phase ^= 1;
        }
        const int64_t v = (int64_t)(item / (int)l.col_tiles) * POINTS + 2 * q;
        if (tensor_put_whole<POINTS>(l, v, (int64_t)col, lane, total)) continue;
        const gcu_tensor_exit *exits = l.exits + v;
#pragma unroll
        for (int j = 0; j < POINTS / 8; j++)
            tensor_put_two(l, exits + 8 * j, (int64_t)col, total + 4 * j);
    }
}

template <gcu_dense_kind KIND, int N, int POINTS>
static __global__ void __launch_bounds__(TENSOR_THREADS, 1)
    tensor_kernel(const __grid_constant__ gcu_tensor_launch l)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr int DEPTH = tensor_depth(KIND);
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * DEPTH];
    const uint32_t stages = (gcu_shared_address(raw) + 1023) / 1024 * 1024;
    uint8_t *table = raw + (stages - gcu_shared_address(raw)) + DEPTH * tensor_stride(POINTS);
    const uint32_t full = gcu_shared_address(barriers), empty = full + 8 * DEPTH;
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, DEPTH, 1, TENSOR_GROUPS * 4);
    gcu_entries_table<KIND, false>(l.entries, table, (int)threadIdx.x, TENSOR_THREADS);
    __syncthreads();
    const int items = (int)(l.col_tiles * l.point_tiles);
    if (threadIdx.x / 128 == TENSOR_GROUPS) {
        gcu_registers_dealloc<24>();
        if (threadIdx.x == TENSOR_GROUPS * 128)
            tensor_fetch<POINTS, DEPTH>(l, items, stages, full, empty);
    } else {
        gcu_registers_alloc<240>();
        tensor_multiply<KIND, N, POINTS>(l, items, table, stages, full, empty);
    }
#else
    (void)l;
#endif
}

template <gcu_dense_kind KIND, int N, int POINTS>
static cudaError_t tensor_launch(const gcu_tensor_launch &l, const gcu_gpu *gpu,
                                 cudaStream_t stream)
{
    constexpr int shared =
        1024 + tensor_depth(KIND) * tensor_stride(POINTS) + gcu_entries_table_bytes(KIND, false);
    const auto kernel = tensor_kernel<KIND, N, POINTS>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    const int64_t items = l.col_tiles * l.point_tiles;
    kernel<<<(unsigned)(items < gpu->sms ? items : gpu->sms), TENSOR_THREADS, shared, stream>>>(l);
    return cudaGetLastError();
}

template <gcu_dense_kind KIND>
static cudaError_t tensor_launch(const gcu_tensor_launch &l, int points, const gcu_gpu *gpu,
                                 cudaStream_t stream)
{
    return points == 8     ? tensor_launch<KIND, 8, 8>(l, gpu, stream)
           : points == 32  ? tensor_launch<KIND, 32, 32>(l, gpu, stream)
           : points == 128 ? tensor_launch<KIND, 128, 128>(l, gpu, stream)
                           : tensor_launch<KIND, 128, 256>(l, gpu, stream);
}

#endif
