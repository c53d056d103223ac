/* B packed for products: see gemm_launch.h.
 *
 * Order of k within each 16 halves: as it is, or (quads) with k = 4 q + 2 h + e at half 8 h + 2 q +
 * e, so that the thread that holds halves 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of the other operand
 * reads four neighbours. */
#include "cuda/gemm_launch.h"
#include "cuda/gemm_split.cuh"

enum { THREADS = 256, COLS = 32 };

static __device__ __forceinline__ float element(const gcu_gemm_launch &l, int64_t k, int64_t j)
{
    if (k >= l.k || j >= l.n) return 0.0f;
    const int64_t at = k * l.b_row + j * l.b_col;
    return l.b_dtype == GNOMON_F16 ? __half2float(static_cast<const __half *>(l.b)[at])
                                   : static_cast<const float *>(l.b)[at];
}

/* Halves from part 'part' of a column of 64 fp32 numbers. */
template <bool THREE>
static __device__ __forceinline__ void pack_part(const gcu_gemm_launch &l, const float *column,
                                                 int part, int64_t chunk, int64_t j)
{
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int s = part % 2 * 8 + i; /* half of 16 */
        const int k = l.quads ? s % 8 / 2 * 4 + s / 8 * 2 + s % 2 : s;
        x[i] = column[part / 2 * 16 + k];
    }
    const int64_t to = (chunk * l.cols + j) * (2 * GCU_GEMM_CHUNK) + ((part ^ (int)(j & 7)) << 4);
    uint32_t high[4], low[4];
    if (THREE) {
        float largest = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            largest = fmaxf(largest, fabsf(x[i]));
#pragma unroll
        for (int step = 1; step < 8; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
        const gcu_gemm_scale s = gcu_gemm_scale_of(largest);
#pragma unroll
        for (int i = 0; i < 4; i++)
            gcu_gemm_split<true>(x[2 * i] * s.up, x[2 * i + 1] * s.up, high + i, low + i);
        *reinterpret_cast<uint4 *>(l.packed_low + to) = make_uint4(low[0], low[1], low[2], low[3]);
        if (part == 0) l.scales[chunk * l.cols + j] = s.down;
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            high[i] = gcu_gemm_bits(__floats2half2_rn(x[2 * i], x[2 * i + 1]));
    }
    *reinterpret_cast<uint4 *>(l.packed + to) = make_uint4(high[0], high[1], high[2], high[3]);
}

/* A block takes a chunk of 32 columns at a time; it reads along the smaller stride. */
template <bool THREE>
static __global__ void __launch_bounds__(THREADS) pack(const __grid_constant__ gcu_gemm_launch l)
{
    __shared__ float tile[COLS][GCU_GEMM_CHUNK + 1];
    const int t = (int)threadIdx.x;
    const int64_t groups = l.cols / COLS, items = groups * l.chunks;
    const bool along_k = llabs(l.b_row) < llabs(l.b_col);
    const int64_t marks = l.mark_rows * l.mark_cols, all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + t; i < marks; i += all)
        l.marks[i] = 0;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t k = item / groups * GCU_GEMM_CHUNK, j = item % groups * COLS;
#pragma unroll
        for (int i = 0; i < COLS * GCU_GEMM_CHUNK / THREADS; i++) {
            const int at = i * THREADS + t;
            const int row = along_k ? at % GCU_GEMM_CHUNK : at / COLS;
            const int col = along_k ? at / GCU_GEMM_CHUNK : at % COLS;
            tile[col][row] = element(l, k + row, j + col);
        }
        __syncthreads();
        pack_part<THREE>(l, tile[t / 8], t % 8, item / groups, j + t / 8);
        __syncthreads();
    }
}

cudaError_t gcu_gemm_pack(const gcu_gemm_launch &l, bool three, cudaStream_t stream)
{
    const int64_t items = l.cols / COLS * l.chunks, most = 1 << 14;
    const unsigned grid = (unsigned)(items < most ? items : most);
    if (three)
        pack<true><<<grid, THREADS, 0, stream>>>(l);
    else
        pack<false><<<grid, THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}
