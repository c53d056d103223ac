/* What the factorisation does element by element. Sums run in an order that the shape alone
 * fixes. */
#include "cuda/linalg/sign.cuh"
#include "cuda/project/entries.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/svd/svd.h"

enum { THREADS = 256, TILE = 32, UNIT = 16384 /* elements a block scans */ };

template <typename From, typename To>
static __global__ void convert_kernel(const From *from, int64_t count, To *to)
{
    GCU_FOR_EACH(i, count) to[i] = (To)from[i];
}

cudaError_t gcu_svd_to_f64(const float *from, int64_t count, double *to, cudaStream_t stream)
{
    convert_kernel<<<gcu_grid(count, THREADS), THREADS, 0, stream>>>(from, count, to);
    return cudaGetLastError();
}

cudaError_t gcu_svd_to_f32(const double *from, int64_t count, float *to, cudaStream_t stream)
{
    convert_kernel<<<gcu_grid(count, THREADS), THREADS, 0, stream>>>(from, count, to);
    return cudaGetLastError();
}

static __global__ void halve_kernel(const double *from, int64_t count, double factor, __half *to)
{
    GCU_FOR_EACH(i, count) to[i] = __double2half(from[i] * factor);
}

cudaError_t gcu_svd_halve(const double *from, int64_t count, double factor, void *to,
                          cudaStream_t stream)
{
    halve_kernel<<<gcu_grid(count, THREADS), THREADS, 0, stream>>>(from, count, factor,
                                                                   static_cast<__half *>(to));
    return cudaGetLastError();
}

static __global__ void transpose_kernel(const double *from, int64_t rows, int64_t cols, double *to)
{
    __shared__ double tile[TILE][TILE + 1];
    const int64_t across = (cols + TILE - 1) / TILE, tiles = across * ((rows + TILE - 1) / TILE);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * TILE, col = t % across * TILE;
        for (int i = threadIdx.y; i < TILE; i += 8)
            if (row + i < rows && col + threadIdx.x < cols)
                tile[i][threadIdx.x] = from[(row + i) * cols + col + threadIdx.x];
        __syncthreads();
        for (int i = threadIdx.y; i < TILE; i += 8)
            if (col + i < cols && row + threadIdx.x < rows)
                to[(col + i) * rows + row + threadIdx.x] = tile[threadIdx.x][i];
        __syncthreads();
    }
}

cudaError_t gcu_svd_transpose(const double *from, int64_t rows, int64_t cols, double *to,
                              cudaStream_t stream)
{
    const int64_t tiles = ((rows + TILE - 1) / TILE) * ((cols + TILE - 1) / TILE);
    transpose_kernel<<<(unsigned)(tiles < 1 << 16 ? tiles : 1 << 16), dim3(TILE, 8), 0, stream>>>(
        from, rows, cols, to);
    return cudaGetLastError();
}

static __global__ void add_chunks_kernel(const double *chunks, int count, int64_t each, double *sum)
{
    GCU_FOR_EACH(i, each)
    {
        double total = 0;
        for (int c = 0; c < count; c++)
            total += chunks[c * each + i];
        sum[i] = total;
    }
}

cudaError_t gcu_svd_add_chunks(const double *chunks, int count, int64_t each, double *sum,
                               cudaStream_t stream)
{
    add_chunks_kernel<<<gcu_grid(each, THREADS), THREADS, 0, stream>>>(chunks, count, each, sum);
    return cudaGetLastError();
}

/* ---- figures ---- */

/* A block's sum in a fixed order; all threads get it. */
template <int COUNT> static __device__ double block_sum(double x)
{
    __shared__ double part[COUNT];
    __syncthreads();
    part[threadIdx.x] = x;
    for (int half = COUNT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    return part[0];
}

enum { STATS_THREADS = 1024, STATS_PARTS = GCU_SVD_STATS_PARTS };

static __global__ void gram_stats_kernel(const double *gram, int64_t n, gcu_svd_stats *stats)
{
    double off = 0, trace = 0;
    GCU_FOR_EACH(i, n * n)
    {
        const bool diagonal = i % (n + 1) == 0;
        const double x = gram[i], d = x - (diagonal ? 1.0 : 0.0);
        off += d * d;
        if (diagonal) trace += x;
    }
    off = block_sum<THREADS>(off);
    trace = block_sum<THREADS>(trace);
    if (threadIdx.x == 0) {
        stats->off_part[blockIdx.x] = off;
        stats->trace_part[blockIdx.x] = trace;
    }
}

cudaError_t gcu_svd_gram_stats(const double *gram, int64_t n, gcu_svd_stats *stats,
                               cudaStream_t stream)
{
    gram_stats_kernel<<<STATS_PARTS, THREADS, 0, stream>>>(gram, n, stats);
    return cudaGetLastError();
}

static __global__ void factor_stats_kernel(const double *factor, int64_t n, const int *info,
                                           gcu_svd_stats *stats)
{
    __shared__ double most[THREADS], fewest[THREADS];
    double high = 0, low = INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
        const double d = factor[i * (n + 1)];
        high = d > high ? d : high;
        low = d >= low ? low : d; /* NaN passes */
    }
    most[threadIdx.x] = high;
    fewest[threadIdx.x] = low;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int t = 1; t < THREADS; t++) {
        high = most[t] > high ? most[t] : high;
        low = fewest[t] >= low ? low : fewest[t];
    }
    stats->most = high;
    stats->fewest = low;
    stats->info = *info;
}

cudaError_t gcu_svd_factor_stats(const double *factor, int64_t n, const int *info,
                                 gcu_svd_stats *stats, cudaStream_t stream)
{
    factor_stats_kernel<<<1, THREADS, 0, stream>>>(factor, n, info, stats);
    return cudaGetLastError();
}

int64_t gcu_svd_units(int64_t lines, int64_t length)
{
    return lines * ((length + UNIT - 1) / UNIT);
}

static __global__ void __launch_bounds__(THREADS)
    scan_kernel(const float *data, int64_t length, int64_t pitch, int64_t each, int64_t first,
                int64_t end, gcu_svd_figures *partial)
{
    __shared__ unsigned bits;
    for (int64_t u = first + blockIdx.x; u < end; u += gridDim.x) {
        const int64_t line = u / each, from = u % each * UNIT;
        const int64_t count = length - from < UNIT ? length - from : UNIT;
        const float *p = data + line * pitch + from;
        if (threadIdx.x == 0) bits = 0;
        unsigned most = 0;
        double squares = 0;
        /* which elements a thread takes depends on the place in the line, not on the address */
        if ((uintptr_t)p % 16 == 0) {
            for (int64_t i = 4 * threadIdx.x; i + 3 < count; i += 4 * THREADS) {
                const float4 x = __ldcs(reinterpret_cast<const float4 *>(p + i));
                most = max(most, max(max(__float_as_uint(x.x) & 0x7fffffffu,
                                         __float_as_uint(x.y) & 0x7fffffffu),
                                     max(__float_as_uint(x.z) & 0x7fffffffu,
                                         __float_as_uint(x.w) & 0x7fffffffu)));
                squares = fma((double)x.x, (double)x.x, squares);
                squares = fma((double)x.y, (double)x.y, squares);
                squares = fma((double)x.z, (double)x.z, squares);
                squares = fma((double)x.w, (double)x.w, squares);
            }
        } else {
            for (int64_t i = 4 * threadIdx.x; i + 3 < count; i += 4 * THREADS)
                for (int e = 0; e < 4; e++) {
                    const float x = p[i + e];
                    most = max(most, __float_as_uint(x) & 0x7fffffffu);
                    squares = fma((double)x, (double)x, squares);
                }
        }
        for (int64_t i = count / 4 * 4 + threadIdx.x; i < count; i += THREADS) {
            most = max(most, __float_as_uint(p[i]) & 0x7fffffffu);
            squares = fma((double)p[i], (double)p[i], squares);
        }
        squares = block_sum<THREADS>(squares);
        atomicMax(&bits, most);
        __syncthreads();
        if (threadIdx.x == 0) partial[u] = {squares, bits};
    }
}

static __global__ void total_kernel(const gcu_svd_figures *partial, int64_t count,
                                    gcu_svd_figures *total)
{
    __shared__ unsigned bits;
    if (threadIdx.x == 0) bits = 0;
    double squares = 0;
    unsigned most = 0;
    for (int64_t i = threadIdx.x; i < count; i += STATS_THREADS) {
        squares += partial[i].squares;
        most = max(most, partial[i].most);
    }
    squares = block_sum<STATS_THREADS>(squares);
    atomicMax(&bits, most);
    __syncthreads();
    if (threadIdx.x == 0) *total = {squares, bits};
}

cudaError_t gcu_svd_scan_units(const float *data, int64_t length, int64_t pitch, int64_t first,
                               int64_t end, gcu_svd_figures *partial, cudaStream_t stream)
{
    const int64_t count = end - first;
    if (count == 0) return cudaSuccess;
    scan_kernel<<<(unsigned)(count < 1 << 16 ? count : 1 << 16), THREADS, 0, stream>>>(
        data, length, pitch, (length + UNIT - 1) / UNIT, first, end, partial);
    return cudaGetLastError();
}

cudaError_t gcu_svd_scan_total(const gcu_svd_figures *partial, int64_t units,
                               gcu_svd_figures *total, cudaStream_t stream)
{
    total_kernel<<<1, STATS_THREADS, 0, stream>>>(partial, units, total);
    return cudaGetLastError();
}

cudaError_t gcu_svd_scan(const float *data, int64_t lines, int64_t length, int64_t pitch,
                         gcu_svd_figures *partial, gcu_svd_figures *total, cudaStream_t stream)
{
    const int64_t units = gcu_svd_units(lines, length);
    const cudaError_t error = gcu_svd_scan_units(data, length, pitch, 0, units, partial, stream);
    return error == cudaSuccess ? gcu_svd_scan_total(partial, units, total, stream) : error;
}

/* A block a column. */
static __global__ void lengths_kernel(const float *e, int64_t rows, int64_t cols, double *lengths)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < rows; i += STATS_THREADS) {
        const double x = (double)e[i * cols + blockIdx.x];
        sum = fma(x, x, sum);
    }
    sum = block_sum<STATS_THREADS>(sum);
    if (threadIdx.x == 0) lengths[blockIdx.x] = sqrt(sum);
}

static __global__ void divide_by_longest(float *e, int64_t rows, int64_t cols,
                                         const double *lengths)
{
    double longest = 0;
    for (int64_t j = 0; j < cols; j++)
        longest = lengths[j] > longest ? lengths[j] : longest;
    if (!(longest > 0)) return;
    GCU_FOR_EACH(i, rows * cols) e[i] = (float)((double)e[i] / longest);
}

cudaError_t gcu_svd_lengths(float *e, int64_t rows, int64_t cols, double *lengths,
                            cudaStream_t stream)
{
    lengths_kernel<<<(unsigned)cols, STATS_THREADS, 0, stream>>>(e, rows, cols, lengths);
    divide_by_longest<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(e, rows, cols,
                                                                              lengths);
    return cudaGetLastError();
}

/* ---- small matrices ---- */

static __global__ void shift_kernel(const double *gram, int64_t n, double shift, double *to)
{
    GCU_FOR_EACH(i, n * n) to[i] = gram[i] + (i % (n + 1) == 0 ? shift : 0.0);
}

cudaError_t gcu_svd_shift(const double *gram, int64_t n, double shift, double *to,
                          cudaStream_t stream)
{
    shift_kernel<<<gcu_grid(n * n, THREADS), THREADS, 0, stream>>>(gram, n, shift, to);
    return cudaGetLastError();
}

static __global__ void leading_kernel(const double *vectors, const double *values, int64_t n,
                                      int64_t k, bool divide, double *to)
{
    GCU_FOR_EACH(e, n * k)
    {
        const int64_t i = e / k, from = n - 1 - e % k;
        const double value = values[from];
        const double factor = divide && value > 0 ? 1.0 / sqrt(value) : 1.0;
        to[e] = vectors[from * n + i] * factor;
    }
}

cudaError_t gcu_svd_leading(const double *vectors, const double *values, int64_t n, int64_t k,
                            bool divide, double *to, cudaStream_t stream)
{
    leading_kernel<<<gcu_grid(n * k, THREADS), THREADS, 0, stream>>>(vectors, values, n, k, divide,
                                                                     to);
    return cudaGetLastError();
}

/* ---- tall matrices ---- */

static __global__ void sign_columns_kernel(double *tall, int64_t rows, int64_t cols,
                                           const double *r)
{
    GCU_FOR_EACH(e, rows * cols) if (r[e % cols] < 0) tall[e] = -tall[e];
}

cudaError_t gcu_svd_sign_columns(double *tall, int64_t rows, int64_t cols, const double *r,
                                 cudaStream_t stream)
{
    sign_columns_kernel<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(tall, rows, cols,
                                                                                r);
    return cudaGetLastError();
}

static __global__ void sign_rows_kernel(const double *from, int64_t cols, float *to, float *sign)
{
    gcu_sign_vector<THREADS>(from + blockIdx.x * cols, cols, 1, to + blockIdx.x * cols,
                             sign + blockIdx.x);
}

cudaError_t gcu_svd_sign_rows(const double *from, int64_t rows, int64_t cols, float *to,
                              float *sign, cudaStream_t stream)
{
    sign_rows_kernel<<<(unsigned)rows, THREADS, 0, stream>>>(from, cols, to, sign);
    return cudaGetLastError();
}

static __global__ void to_f32_signed_kernel(const double *from, int64_t rows, int64_t cols,
                                            const float *sign, float *to)
{
    GCU_FOR_EACH(e, rows * cols) to[e] = sign[e % cols] * (float)from[e];
}

cudaError_t gcu_svd_to_f32_signed(const double *from, int64_t rows, int64_t cols, const float *sign,
                                  float *to, cudaStream_t stream)
{
    to_f32_signed_kernel<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(from, rows, cols,
                                                                                 sign, to);
    return cudaGetLastError();
}

static __global__ void scale_kernel(const float *from, int64_t rows, int64_t cols, const double *s,
                                    bool by_rows, float *to)
{
    GCU_FOR_EACH(e, rows * cols)
    to[e] = (float)((double)from[e] * s[by_rows ? e / cols : e % cols]);
}

cudaError_t gcu_svd_scale(const float *from, int64_t rows, int64_t cols, const double *s,
                          bool by_rows, float *to, cudaStream_t stream)
{
    scale_kernel<<<gcu_grid(rows * cols, THREADS), THREADS, 0, stream>>>(from, rows, cols, s,
                                                                         by_rows, to);
    return cudaGetLastError();
}

/* ---- the matrix, the operator ---- */

static __global__ void bring_kernel(const void *data, gnomon_dtype dtype, int64_t lines,
                                    int64_t length, int64_t line_stride, int64_t step,
                                    const double *mean, bool of_line, double factor, int64_t pitch,
                                    float *to)
{
    GCU_FOR_EACH(e, lines * length)
    {
        const int64_t line = e / length, at = e % length;
        const double x = gcu_element<double>(data, dtype, line * line_stride + at * step) * factor;
        const double less = mean ? mean[of_line ? line : at] * factor : 0.0;
        to[line * pitch + at] = (float)(x - less);
    }
}

cudaError_t gcu_svd_convert(const gnomon_matrix *from, const double *mean, int exponent,
                            bool across, int64_t pitch, float *to, cudaStream_t stream)
{
    const int64_t lines = across ? from->cols : from->rows;
    const int64_t length = across ? from->rows : from->cols;
    bring_kernel<<<gcu_grid(lines * length, THREADS), THREADS, 0, stream>>>(
        from->data, from->dtype, lines, length, across ? from->col_stride : from->row_stride,
        across ? from->row_stride : from->col_stride, mean, across, ldexp(1.0, -exponent), pitch,
        to);
    return cudaGetLastError();
}

static __device__ __forceinline__ void put_four(const float *value, float *to)
{
    *reinterpret_cast<float4 *>(to) = make_float4(value[0], value[1], value[2], value[3]);
}

static __device__ __forceinline__ void put_four(const float *value, __half *to)
{
    const __half2 low = __floats2half2_rn(value[0], value[1]);
    const __half2 high = __floats2half2_rn(value[2], value[3]);
    *reinterpret_cast<uint2 *>(to) = make_uint2(*reinterpret_cast<const unsigned *>(&low),
                                                *reinterpret_cast<const unsigned *>(&high));
}

/* A thread makes four rows of the operator in one column. Index: uint32_t where it holds all. */
template <typename T, typename Index>
static __global__ void entries_kernel(gcu_matrix a, int64_t first, int64_t count, int64_t col,
                                      int64_t cols, T *to)
{
    const int64_t group0 = first >> 2;
    const Index groups = (Index)((first + count + 3 >> 2) - group0), all = groups * (Index)cols;
    const bool whole = first % 4 == 0 && count % 4 == 0;
    for (Index e = (Index)blockIdx.x * THREADS + threadIdx.x; e < all;
         e += (Index)gridDim.x * THREADS) {
        const int64_t j = e / groups, group = group0 + e % groups;
        float value[4];
        gcu_entries(a, (uint32_t)group, (uint64_t)(col + j), value);
        if (whole) {
            put_four(value, to + j * count + 4 * group - first);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t row = 4 * group + i - first;
            if (row >= 0 && row < count) to[j * count + row] = (T)value[i];
        }
    }
}

template <typename T>
static void make_entries(const gcu_matrix &m, int64_t first, int64_t count, int64_t col,
                         int64_t cols, T *to, cudaStream_t stream)
{
    const int64_t all = (count / 4 + 2) * cols;
    if (all < (int64_t)1 << 31)
        entries_kernel<T, uint32_t>
            <<<gcu_grid(all, THREADS), THREADS, 0, stream>>>(m, first, count, col, cols, to);
    else
        entries_kernel<T, int64_t>
            <<<gcu_grid(all, THREADS), THREADS, 0, stream>>>(m, first, count, col, cols, to);
}

cudaError_t gcu_svd_entries(const gcu_gpu *gpu, const gnomon_simple *a, int64_t first,
                            int64_t count, int64_t col, int64_t cols, bool halves, void *to,
                            cudaStream_t stream)
{
    const gcu_matrix m = gcu_matrix_of(a, gpu);
    if (halves)
        make_entries(m, first, count, col, cols, static_cast<__half *>(to), stream);
    else
        make_entries(m, first, count, col, cols, static_cast<float *>(to), stream);
    return cudaGetLastError();
}
