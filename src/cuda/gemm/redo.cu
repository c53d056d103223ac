/* Sums over rounds of k added in order; and what held sums that are not finite, done again. */
#include "cuda/gemm/launch.h"

#include <cuda_fp16.h>

enum { THREADS = 256, EACH = GCU_GEMM_MARK_ROWS * GCU_GEMM_MARK_COLS / THREADS };

/* Element 'at' of a region of 16 rows and 32 columns, neighbours along C's smaller stride. */
static __device__ __forceinline__ int2 place_of(const gcu_gemm_launch &l, int at)
{
    return llabs(l.c_col) <= llabs(l.c_row)
               ? make_int2(at / GCU_GEMM_MARK_COLS, at % GCU_GEMM_MARK_COLS)
               : make_int2(at % GCU_GEMM_MARK_ROWS, at / GCU_GEMM_MARK_ROWS);
}

static __global__ void __launch_bounds__(THREADS) add(const __grid_constant__ gcu_gemm_launch l)
{
    const int64_t regions = l.mark_rows * l.mark_cols;
    for (int64_t region = blockIdx.x; region < regions; region += gridDim.x) {
        const int64_t row = region / l.mark_cols * GCU_GEMM_MARK_ROWS;
        const int64_t col = region % l.mark_cols * GCU_GEMM_MARK_COLS;
        float sums[EACH];
        int odd = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            /* the parts' rows are contiguous */
            const int at = e * THREADS + (int)threadIdx.x;
            const int64_t i = row + at / GCU_GEMM_MARK_COLS, j = col + at % GCU_GEMM_MARK_COLS;
            sums[e] = 0.0f;
            if (i >= l.m || j >= l.n) continue;
            for (int64_t s = 0; s < l.splits; s++)
                sums[e] += l.parts[(s * l.m + i) * l.n + j];
            odd |= !isfinite(sums[e]);
        }
        if (__syncthreads_or(odd)) {
            if (threadIdx.x == 0) l.marks[region] = 1;
            continue;
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int at = e * THREADS + (int)threadIdx.x;
            const int64_t i = row + at / GCU_GEMM_MARK_COLS, j = col + at % GCU_GEMM_MARK_COLS;
            if (i < l.m && j < l.n) gcu_gemm_put(l, i, j, sums[e]);
        }
    }
}

template <typename B>
static __device__ __forceinline__ float chain(const gcu_gemm_launch &l, int64_t i, int64_t j)
{
    const B *b = static_cast<const B *>(l.b) + j * l.b_col;
    float sum = 0.0f;
    if (!l.b) return __int_as_float(0x7fc00000);
#pragma unroll 8
    for (int64_t k = 0; k < l.k; k++)
        sum = fmaf(l.a[gcu_gemm_place(l, i, k)], (float)b[k * l.b_row], sum);
    return sum;
}

/* A block reads 256 marks at a time, and does those that are set; neighbours go to different
 * blocks. */
static __global__ void __launch_bounds__(THREADS) redo(const __grid_constant__ gcu_gemm_launch l)
{
    const int64_t regions = l.mark_rows * l.mark_cols, blocks = gridDim.x;
    for (int64_t first = blockIdx.x; first < regions; first += blocks * THREADS) {
        const int64_t mine = first + threadIdx.x * blocks;
        if (!__syncthreads_or(mine < regions && l.marks[mine])) continue;
        for (int t = 0; t < THREADS; t++) {
            const int64_t region = first + t * blocks;
            if (region >= regions || !l.marks[region]) continue;
            const int64_t row = region / l.mark_cols * GCU_GEMM_MARK_ROWS;
            const int64_t col = region % l.mark_cols * GCU_GEMM_MARK_COLS;
            for (int e = 0; e < EACH; e++) {
                const int2 at = place_of(l, e * THREADS + (int)threadIdx.x);
                const int64_t i = row + at.x, j = col + at.y;
                if (i < l.m && j < l.n)
                    gcu_gemm_put(l, i, j,
                                 l.b_dtype == GNOMON_F16 ? chain<__half>(l, i, j)
                                                         : chain<float>(l, i, j));
            }
        }
    }
}

static __global__ void __launch_bounds__(THREADS)
    add_squares(const double *part, int64_t count, double *to)
{
    __shared__ double sums[THREADS];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        sum += part[i];
    sums[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *to = sums[0];
}

cudaError_t gcu_gemm_add_squares(const gcu_gemm_launch &l, double *to, cudaStream_t stream)
{
    add_squares<<<1, THREADS, 0, stream>>>(l.squares, l.squares_count, to);
    return cudaGetLastError();
}

cudaError_t gcu_gemm_add(const gcu_gemm_launch &l, cudaStream_t stream)
{
    const int64_t regions = l.mark_rows * l.mark_cols, most = 1 << 20;
    add<<<(unsigned)(regions < most ? regions : most), THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}

cudaError_t gcu_gemm_redo(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    const int64_t regions = l.mark_rows * l.mark_cols, most = 4 * gpu->sms;
    redo<<<(unsigned)(regions < most ? regions : most), THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}
