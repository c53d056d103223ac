/* Products of points with gaussian directions in the CPU's own order of additions
 * (src/cpu/gemm/gemm.inc, gaussian.inc): for each 256 columns a chain of fused multiply-adds from
 * zero, and the chains' sum. So they are the CPU's, bit for bit. */
#include "cuda/lsh/lsh.h"

namespace
{

enum { CHAIN = 256, POINTS = 64, ROWS = 64, STEPS = 16, THREADS = 256 };

/* A thread makes four entries of a column, which one call gives. */
__global__ void __launch_bounds__(THREADS)
    directions(const __grid_constant__ gcu_matrix a, int64_t rows, int64_t col, int64_t cols,
               float *to)
{
    const int64_t groups = (rows + 3) / 4, all = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < groups * cols; at += all) {
        const int64_t g = at / cols, j = at % cols;
        float v[4];
        gcu_entries(a, (uint32_t)g, (uint64_t)(col + j), v);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (4 * g + i < rows) to[(4 * g + i) * cols + j] = v[i];
    }
}

__device__ __forceinline__ float multiply_add(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ double multiply_add(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}
__device__ __forceinline__ float add(float a, float b)
{
    return __fadd_rn(a, b);
}
__device__ __forceinline__ double add(double a, double b)
{
    return __dadd_rn(a, b);
}

/* A block of threads: 64 points by 64 rows; a thread 4 by 4 of them. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    chain(const __grid_constant__ gnomon_matrix x, const float *directions, int64_t rows,
          bool begins, T *sums)
{
    __shared__ T points[STEPS][POINTS + 4];
    __shared__ float values[STEPS][ROWS + 4];
    const int across = (int)threadIdx.x % 16, down = (int)threadIdx.x / 16;
    const int64_t groups = (x.rows + POINTS - 1) / POINTS;
    const int64_t items = groups * ((rows + ROWS - 1) / ROWS);
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t i0 = item % groups * POINTS, f0 = item / groups * ROWS;
        T total[4][4], sum[4][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int f = 0; f < 4; f++) {
                const int64_t at = i0 + 4 * down + i, row = f0 + 4 * across + f;
                total[i][f] = begins || at >= x.rows || row >= rows ? (T)0 : sums[at * rows + row];
                sum[i][f] = (T)0;
            }
        for (int64_t col = 0; col < x.cols; col += STEPS) {
            /* along the coordinates where they lie together, else along the points */
            const bool along = x.col_stride == 1 || x.row_stride != 1;
            for (int at = (int)threadIdx.x; at < POINTS * STEPS; at += THREADS) {
                const int i = along ? at / STEPS : at % POINTS,
                          j = along ? at % STEPS : at / POINTS;
                points[j][i] =
                    i0 + i < x.rows && col + j < x.cols
                        ? gcu_element<T>(x.data, x.dtype,
                                         (i0 + i) * x.row_stride + (col + j) * x.col_stride)
                        : (T)0;
            }
            for (int at = (int)threadIdx.x; at < ROWS * STEPS; at += THREADS) {
                const int f = at / STEPS, j = at % STEPS;
                values[j][f] = f0 + f < rows && col + j < x.cols
                                   ? directions[(f0 + f) * x.cols + col + j]
                                   : 0.0f;
            }
            __syncthreads();
            /* beyond the last column the products are zeros, and change no sum but a zero's sign */
#pragma unroll
            for (int j = 0; j < STEPS; j++)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int f = 0; f < 4; f++)
                        sum[i][f] = multiply_add((T)values[j][4 * across + f],
                                                 points[j][4 * down + i], sum[i][f]);
            __syncthreads();
            if ((col + STEPS) % CHAIN == 0 || col + STEPS >= x.cols)
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int f = 0; f < 4; f++) {
                        total[i][f] = add(total[i][f], sum[i][f]);
                        sum[i][f] = (T)0;
                    }
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int f = 0; f < 4; f++) {
                const int64_t at = i0 + 4 * down + i, row = f0 + 4 * across + f;
                if (at < x.rows && row < rows) sums[at * rows + row] = add(total[i][f], (T)0);
            }
    }
}

__global__ void __launch_bounds__(THREADS) to_f32(const double *sums, int64_t count, float *to)
{
    const int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < count; at += all)
        to[at] = (float)sums[at];
}

unsigned grid_of(int64_t items)
{
    const int64_t most = 1 << 16;
    return (unsigned)(items < most ? items : most);
}

} // namespace

cudaError_t gcu_lsh_directions(const gnomon_simple *a, const gcu_gpu *gpu, int64_t rows,
                               int64_t col, int64_t cols, float *to, cudaStream_t stream)
{
    if (rows == 0 || cols == 0) return cudaSuccess;
    const int64_t items = (rows + 3) / 4 * cols;
    directions<<<grid_of((items + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        gcu_matrix_of(a, gpu), rows, col, cols, to);
    return cudaGetLastError();
}

cudaError_t gcu_lsh_chain(const gnomon_matrix *x, const float *directions, int64_t rows, bool f64,
                          bool begins, void *sums, cudaStream_t stream)
{
    if (x->rows == 0 || rows == 0) return cudaSuccess;
    const unsigned grid = grid_of((x->rows + POINTS - 1) / POINTS * ((rows + ROWS - 1) / ROWS));
    if (f64)
        chain<double><<<grid, THREADS, 0, stream>>>(*x, directions, rows, begins,
                                                    static_cast<double *>(sums));
    else
        chain<float><<<grid, THREADS, 0, stream>>>(*x, directions, rows, begins,
                                                   static_cast<float *>(sums));
    return cudaGetLastError();
}

cudaError_t gcu_lsh_to_f32(const double *sums, int64_t count, float *to, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    to_f32<<<grid_of((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(sums, count, to);
    return cudaGetLastError();
}
