/* B packed for products (gemm/pack.cu) where it is an operator: its entries are made where they are
 * to lie, and never read.
 *
 * A thread makes four columns' (an operator's group of rows) part of 8 halves; the 128 threads that
 * follow each other have 64 columns of a chunk, and each line of 128 bytes is written by 8
 * neighbours. */
#include "cuda/gemm/launch.h"
#include "cuda/gemm/made.cuh"
#include "cuda/gemm/split.cuh"

namespace
{

enum { THREADS = 512, COLS = 64, ITEM = 128 };

struct made {
    gcu_matrix m;
    gcu_gemm_launch l;
};

/* k of half i of part 'part' of a chunk; i even: the next half has the next k. */
__device__ __forceinline__ int place(bool quads, int part, int i)
{
    return quads ? part / 2 * 16 + i / 2 * 4 + part % 2 * 2 : part * 8 + i;
}

template <gcu_gemm_kind KIND>
__device__ __forceinline__ void make_halves(const made &a, const uint16_t *table, int64_t chunk,
                                            int64_t j, int part)
{
    const gcu_gemm_launch &l = a.l;
    const int64_t begin = chunk * GCU_GEMM_CHUNK;
    uint32_t out[4][4] = {};
    if (j < l.n) {
        const uint32_t group = (uint32_t)(j / 4);
        uint4 signs = {};
        if (KIND == GCU_GEMM_SIGNS)
            signs = gcu_call(a.m.stream, group, (uint64_t)(begin + part * 8) >> 5);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t pair[1][4];
            const uint64_t k = (uint64_t)(begin + place(l.quads, part, 2 * i));
            gcu_gemm_halves<KIND, 1>(a.m, table, &group, &k, &signs, pair);
            const uint32_t there = (int64_t)k + 1 < l.k ? ~0u : (int64_t)k < l.k ? 0xFFFFu : 0u;
#pragma unroll
            for (int r = 0; r < 4; r++)
                out[r][i] = j + r < l.n ? pair[0][r] & there : 0u;
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int64_t to =
            (chunk * l.cols + j + r) * (2 * GCU_GEMM_CHUNK) + ((part ^ (int)(j + r & 7)) << 4);
        *reinterpret_cast<uint4 *>(l.packed + to) =
            make_uint4(out[r][0], out[r][1], out[r][2], out[r][3]);
    }
}

/* fp32 as two halves, scaled by the largest of a column's 64, which 8 neighbours hold. */
__device__ __forceinline__ void make_both(const made &a, int64_t chunk, int64_t j, int part)
{
    const gcu_gemm_launch &l = a.l;
    float x[4][8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int64_t k = chunk * GCU_GEMM_CHUNK + place(l.quads, part, i & ~1) + (i & 1);
        float v[4] = {};
        if (j < l.n && k < l.k) gcu_entries(a.m, (uint32_t)(j / 4), (uint64_t)k, v);
#pragma unroll
        for (int r = 0; r < 4; r++)
            x[r][i] = j + r < l.n ? v[r] : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float largest = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            largest = fmaxf(largest, fabsf(x[r][i]));
#pragma unroll
        for (int step = 1; step < 8; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
        const gcu_gemm_scale s = gcu_gemm_scale_of(largest);
        uint32_t high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            gcu_gemm_split<true>(x[r][2 * i] * s.up, x[r][2 * i + 1] * s.up, high + i, low + i);
        const int64_t column = chunk * l.cols + j + r;
        const int64_t to = column * (2 * GCU_GEMM_CHUNK) + ((part ^ (int)(j + r & 7)) << 4);
        *reinterpret_cast<uint4 *>(l.packed + to) = make_uint4(high[0], high[1], high[2], high[3]);
        *reinterpret_cast<uint4 *>(l.packed_low + to) = make_uint4(low[0], low[1], low[2], low[3]);
        if (part == 0) l.scales[column] = s.down;
    }
}

template <gcu_gemm_kind KIND>
__global__ void __launch_bounds__(THREADS) make(const __grid_constant__ made a)
{
    extern __shared__ __align__(16) uint16_t table[];
    const gcu_gemm_launch &l = a.l;
    const int t = (int)threadIdx.x;
    const int64_t groups = l.cols / COLS, items = groups * l.chunks;
    const int64_t marks = l.mark_rows * l.mark_cols, all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + t; i < marks; i += all)
        l.marks[i] = 0;
    if (KIND == GCU_GEMM_HALF_NORMAL) {
        for (int i = t; i < 1 << 12; i += THREADS)
            reinterpret_cast<uint4 *>(table)[i] =
                reinterpret_cast<const uint4 *>(a.m.gaussian16.magnitude)[i];
        __syncthreads();
    }
    for (int64_t item = (int64_t)blockIdx.x * (THREADS / ITEM) + t / ITEM; item < items;
         item += (int64_t)gridDim.x * (THREADS / ITEM)) {
        const int64_t chunk = item / groups, j = item % groups * COLS + t % ITEM / 8 * 4;
        if (KIND == GCU_GEMM_NORMAL)
            make_both(a, chunk, j, t % 8);
        else
            make_halves<KIND>(a, table, chunk, j, t % 8);
    }
}

template <gcu_gemm_kind KIND>
cudaError_t launch(const made &a, const gcu_gpu *gpu, cudaStream_t stream)
{
    const int bytes = KIND == GCU_GEMM_HALF_NORMAL ? 1 << 16 : 0;
    const cudaError_t error =
        cudaFuncSetAttribute(make<KIND>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    const int64_t each = THREADS / ITEM, items = a.l.cols / COLS * a.l.chunks;
    const int64_t blocks = (items + each - 1) / each;
    const int64_t most = KIND == GCU_GEMM_HALF_NORMAL ? 2 * (int64_t)gpu->sms : 1 << 14;
    make<KIND><<<(unsigned)(blocks < most ? blocks : most), THREADS, bytes, stream>>>(a);
    return cudaGetLastError();
}

} // namespace

cudaError_t gcu_gemm_make(const gcu_gemm_launch &l, const gnomon_simple *of, const gcu_gpu *gpu,
                          cudaStream_t stream)
{
    const made a = {gcu_matrix_of(of, gpu), l};
    if (l.b_dtype == GNOMON_F32) return launch<GCU_GEMM_NORMAL>(a, gpu, stream);
    if (of->kind == GNOMON_RADEMACHER) return launch<GCU_GEMM_SIGNS>(a, gpu, stream);
    const bool table = of->kind == GNOMON_GAUSSIAN && of->precision == GNOMON_F16;
    return table ? launch<GCU_GEMM_HALF_NORMAL>(a, gpu, stream)
                 : launch<GCU_GEMM_ANY_HALF>(a, gpu, stream);
}
