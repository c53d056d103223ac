/* What a factorisation in double precision does number by number. Sums run in an order that the
 * shape alone fixes. */
#include "cuda/project/entries.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/svd/f64.h"

enum { THREADS = 256 };

static __global__ void convert_kernel(const void *data, gnomon_dtype dtype, int64_t lines,
                                      int64_t length, int64_t line_stride, int64_t step,
                                      const double *mean, bool of_line, int exponent, int64_t pitch,
                                      double *to)
{
    GCU_FOR_EACH(e, lines * length)
    {
        const int64_t line = e / length, at = e % length;
        const double x =
            scalbn(gcu_element<double>(data, dtype, line * line_stride + at * step), -exponent);
        to[line * pitch + at] = mean ? x - scalbn(mean[of_line ? line : at], -exponent) : x;
    }
}

cudaError_t gcu_svd_f64_convert(const gnomon_matrix *from, const double *mean, int exponent,
                                bool across, int64_t pitch, double *to, cudaStream_t stream)
{
    const int64_t lines = across ? from->cols : from->rows;
    const int64_t length = across ? from->rows : from->cols;
    convert_kernel<<<gcu_grid(lines * length, THREADS), THREADS, 0, stream>>>(
        from->data, from->dtype, lines, length, across ? from->col_stride : from->row_stride,
        across ? from->row_stride : from->col_stride, mean, across, exponent, pitch, to);
    return cudaGetLastError();
}

/* NaN passes. */
static __device__ __forceinline__ double larger(double a, double b)
{
    return b <= a ? a : b;
}

/* A block's figures, in all threads. */
static __device__ gcu_svd_f64_figures block_figures(double most, double squares)
{
    __shared__ gcu_svd_f64_figures part[THREADS];
    __syncthreads();
    part[threadIdx.x] = {most, squares};
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            gcu_svd_f64_figures *const a = part + threadIdx.x, *const b = a + half;
            a->most = isnan(a->most) ? a->most : larger(a->most, b->most);
            a->squares += b->squares;
        }
    }
    __syncthreads();
    return part[0];
}

static __global__ void __launch_bounds__(THREADS)
    scan_kernel(const double *data, int64_t lines, int64_t length, int64_t pitch,
                gcu_svd_f64_figures *part)
{
    double most = 0, squares = 0;
    GCU_FOR_EACH(e, lines * length)
    {
        const double x = data[e / length * pitch + e % length];
        most = isnan(most) ? most : larger(most, fabs(x));
        squares = fma(x, x, squares);
    }
    const gcu_svd_f64_figures all = block_figures(most, squares);
    if (threadIdx.x == 0) part[blockIdx.x] = all;
}

static __global__ void __launch_bounds__(THREADS) total_kernel(gcu_svd_f64_figures *figures)
{
    double most = 0, squares = 0;
    for (int i = threadIdx.x; i < GCU_SVD_F64_PARTS; i += THREADS) {
        const gcu_svd_f64_figures one = figures[1 + i];
        most = isnan(most) ? most : larger(most, one.most);
        squares += one.squares;
    }
    const gcu_svd_f64_figures all = block_figures(most, squares);
    if (threadIdx.x == 0) figures[0] = all;
}

cudaError_t gcu_svd_f64_scan(const double *data, int64_t lines, int64_t length, int64_t pitch,
                             gcu_svd_f64_figures *figures, cudaStream_t stream)
{
    scan_kernel<<<GCU_SVD_F64_PARTS, THREADS, 0, stream>>>(data, lines, length, pitch, figures + 1);
    total_kernel<<<1, THREADS, 0, stream>>>(figures);
    return cudaGetLastError();
}

static __global__ void triangle_kernel(const double *from, int64_t rows, int64_t s, double *to)
{
    GCU_FOR_EACH(e, s * s)
    {
        const int64_t i = e % s, j = e / s;
        to[e] = i <= j ? from[j * rows + i] : 0.0;
    }
}

cudaError_t gcu_svd_f64_triangle(const double *from, int64_t rows, int64_t s, double *to,
                                 cudaStream_t stream)
{
    triangle_kernel<<<gcu_grid(s * s, THREADS), THREADS, 0, stream>>>(from, rows, s, to);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(THREADS)
    signs_kernel(double *data, int64_t cols, double *sign)
{
    __shared__ double size[THREADS];
    __shared__ int64_t place[THREADS];
    double *const row = data + blockIdx.x * cols, most = -1;
    int64_t at = INT64_MAX;
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        if (fabs(row[i]) > most) {
            most = fabs(row[i]);
            at = i;
        }
    size[threadIdx.x] = most;
    place[threadIdx.x] = at;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        const int t = threadIdx.x, o = t + half;
        if (t < half && (size[o] > size[t] || (size[o] == size[t] && place[o] < place[t]))) {
            size[t] = size[o];
            place[t] = place[o];
        }
    }
    __syncthreads();
    const double factor = place[0] < cols && row[place[0]] < 0 ? -1.0 : 1.0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        row[i] *= factor;
    if (threadIdx.x == 0) sign[blockIdx.x] = factor;
}

cudaError_t gcu_svd_f64_signs(double *data, int64_t rows, int64_t cols, double *sign,
                              cudaStream_t stream)
{
    signs_kernel<<<(unsigned)rows, THREADS, 0, stream>>>(data, cols, sign);
    return cudaGetLastError();
}

static __global__ void scale_kernel(const double *from, int64_t rows, int64_t cols, const double *s,
                                    bool by_rows, double *to)
{
    GCU_FOR_EACH(e, rows * cols) to[e] = from[e] * s[by_rows ? e / cols : e % cols];
}

cudaError_t gcu_svd_f64_scale(const double *from, int64_t rows, int64_t cols, const double *s,
                              bool by_rows, double *to, cudaStream_t stream)
{
    scale_kernel<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(from, rows, cols, s,
                                                                         by_rows, to);
    return cudaGetLastError();
}

/* A block a column. */
static __global__ void __launch_bounds__(THREADS)
    lengths_kernel(const double *e, int64_t rows, int64_t cols, double *lengths)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
        const double x = e[i * cols + blockIdx.x];
        sum = fma(x, x, sum);
    }
    const gcu_svd_f64_figures all = block_figures(0, sum);
    if (threadIdx.x == 0) lengths[blockIdx.x] = sqrt(all.squares);
}

static __global__ void divide_by_longest(double *e, int64_t rows, int64_t cols,
                                         const double *lengths)
{
    double longest = 0;
    for (int64_t j = 0; j < cols; j++)
        longest = lengths[j] > longest ? lengths[j] : longest;
    if (!(longest > 0)) return;
    GCU_FOR_EACH(i, rows * cols) e[i] /= longest;
}

cudaError_t gcu_svd_f64_lengths(double *e, int64_t rows, int64_t cols, double *lengths,
                                cudaStream_t stream)
{
    lengths_kernel<<<(unsigned)cols, THREADS, 0, stream>>>(e, rows, cols, lengths);
    divide_by_longest<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(e, rows, cols,
                                                                              lengths);
    return cudaGetLastError();
}
