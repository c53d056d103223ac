/* The mean of the columns, which rows are to be less: that of a matrix in the GPU's memory, with
 * the bits that the CPU finds (src/svd/center.c), and products with it. */
#include "cuda/project/entries.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/svd/f64.h"

#include <cuda_fp16.h>
#include <math.h>

enum {
    THREADS = 256,
    PART = 1024,     /* lines of a part of a sum */
    PARTS = 1 << 22, /* numbers of partial sums at a time */
    OVERFLOWING = 64 /* bits that sums beyond the range are taken down by */
};

/* (*high, *low) += x, with no multiplication joined to an addition. */
static __device__ __forceinline__ void add(double x, double *high, double *low)
{
    const double sum = __dadd_rn(*high, x), rest = __dsub_rn(sum, *high);
    const double lost = __dadd_rn(__dsub_rn(*high, __dsub_rn(sum, rest)), __dsub_rn(x, rest));
    *low = __dadd_rn(*low, lost);
    *high = sum;
}

/* part: for each of 'groups' of 'each' rows from 'first' on, two lines of cols numbers. */
static __global__ void sum_kernel(gnomon_matrix a, int64_t first, int64_t groups, int64_t each,
                                  double factor, double *part)
{
    GCU_FOR_EACH(t, groups * a.cols)
    {
        const int64_t group = t / a.cols, j = t % a.cols, begin = first + group * each;
        const int64_t end = begin + each < a.rows ? begin + each : a.rows;
        double high = 0, low = 0;
        for (int64_t i = begin; i < end; i++)
            add(__dmul_rn(factor, gcu_element<double>(a.data, a.dtype,
                                                      i * a.row_stride + j * a.col_stride)),
                &high, &low);
        part[2 * group * a.cols + j] = high;
        part[(2 * group + 1) * a.cols + j] = low;
    }
}

/* sums (two lines) += the groups', in their order. */
static __global__ void add_kernel(const double *part, int64_t groups, int64_t cols, double *sums)
{
    GCU_FOR_EACH(j, cols)
    {
        double high = sums[j], low = sums[cols + j];
        for (int64_t group = 0; group < groups; group++) {
            add(part[2 * group * cols + j], &high, &low);
            low = __dadd_rn(low, part[(2 * group + 1) * cols + j]);
        }
        sums[j] = high;
        sums[cols + j] = low;
    }
}

static __global__ void quotient_kernel(const double *sums, int64_t cols, double count, int shift,
                                       double *mean)
{
    GCU_FOR_EACH(j, cols)
    {
        const double high = sums[j], low = sums[cols + j], sum = __dadd_rn(high, low);
        const double rest = __dsub_rn(low, __dsub_rn(sum, high)), q = __ddiv_rn(sum, count);
        const double more = __ddiv_rn(__dadd_rn(__fma_rn(-q, count, sum), rest), count);
        mean[j] = scalbn(__dadd_rn(q, more), shift);
    }
}

static __global__ void scale_kernel(double *mean, int64_t cols, int exponent)
{
    GCU_FOR_EACH(j, cols) mean[j] = scalbn(mean[j], -exponent);
}

/* v->mean, and the job's, of the numbers times 2^-shift. */
static gnomon_status find(gcu_svd *v, int shift)
{
    const gnomon_matrix a = *v->job->a;
    const int64_t each = v->job->sum_rows, all = (v->m + each - 1) / each;
    const int64_t fit = PARTS / (2 * v->n), band = fit < 1 ? 1 : fit < all ? fit : all;
    const int held = v->bag.count;
    double *part = nullptr, *sums = nullptr;
    gnomon_status status = gcu_svd_room(v, 2 * band * v->n, &part);
    if (status == GNOMON_OK) status = gcu_svd_room(v, 2 * v->n, &sums);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemsetAsync(sums, 0, (size_t)(2 * v->n) * sizeof *sums, v->stream));
    for (int64_t group = 0; group < all; group += band) {
        const int64_t groups = band < all - group ? band : all - group;
        sum_kernel<<<gcu_grid(groups * v->n, THREADS), THREADS, 0, v->stream>>>(
            a, group * each, groups, each, ldexp(1.0, -shift), part);
        add_kernel<<<gcu_grid(v->n, THREADS), THREADS, 0, v->stream>>>(part, groups, v->n, sums);
    }
    quotient_kernel<<<gcu_grid(v->n, THREADS), THREADS, 0, v->stream>>>(sums, v->n, (double)v->m,
                                                                        shift, v->mean);
    GCU_TRY(v->why, cudaGetLastError());
    GCU_TRY(v->why, cudaMemcpyAsync(v->job->mean, v->mean, (size_t)v->n * sizeof *v->mean,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

static bool is_finite(const gcu_svd *v)
{
    for (int64_t j = 0; j < v->n; j++)
        if (!isfinite(v->job->mean[j])) return false;
    return true;
}

gnomon_status gcu_svd_bring_mean(gcu_svd *v)
{
    const gnomon_status status = gcu_svd_room(v, v->n, &v->mean);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(v->mean, v->job->mean, (size_t)v->n * sizeof *v->mean,
                                    cudaMemcpyHostToDevice, v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_find_mean(gcu_svd *v)
{
    gnomon_status status = gcu_svd_room(v, v->n, &v->mean);
    if (status == GNOMON_OK) status = find(v, 0);
    return status == GNOMON_OK && !is_finite(v) ? find(v, OVERFLOWING) : status;
}

gnomon_status gcu_svd_scale_mean(gcu_svd *v)
{
    scale_kernel<<<gcu_grid(v->n, THREADS), THREADS, 0, v->stream>>>(v->mean, v->n,
                                                                     v->job->exponent);
    GCU_TRY(v->why, cudaGetLastError());
    return GNOMON_OK;
}

/* ---- products with it ---- */

static __device__ __forceinline__ double as_f64(double x)
{
    return x;
}
static __device__ __forceinline__ double as_f64(float x)
{
    return (double)x;
}
static __device__ __forceinline__ double as_f64(__half x)
{
    return (double)__half2float(x);
}

template <typename T>
static __global__ void parts_kernel(const double *x, const T *w, int64_t lines, int64_t columns,
                                    int64_t parts, double *part)
{
    GCU_FOR_EACH(t, parts * columns)
    {
        const int64_t begin = t / columns * PART, column = t % columns;
        const int64_t end = begin + PART < lines ? begin + PART : lines;
        double sum = 0;
        for (int64_t i = begin; i < end; i++)
            sum = fma(x ? x[i] : 1.0, as_f64(w[i * columns + column]), sum);
        part[t] = sum;
    }
}

static __global__ void add_parts_kernel(const double *part, int64_t parts, int64_t columns,
                                        double *sums)
{
    GCU_FOR_EACH(column, columns)
    {
        double sum = 0;
        for (int64_t p = 0; p < parts; p++)
            sum += part[p * columns + column];
        sums[column] = sum;
    }
}

gnomon_status gcu_svd_column_sums(gcu_svd *v, const double *x, const void *w, gnomon_dtype dtype,
                                  int64_t lines, int64_t columns, double *sums)
{
    const int64_t parts = (lines + PART - 1) / PART;
    const unsigned grid = gcu_grid(parts * columns, THREADS);
    const int held = v->bag.count;
    double *part = nullptr;
    const gnomon_status status = gcu_svd_room(v, parts * columns, &part);
    if (status != GNOMON_OK) return status;
    if (dtype == GNOMON_F64)
        parts_kernel<<<grid, THREADS, 0, v->stream>>>(x, static_cast<const double *>(w), lines,
                                                      columns, parts, part);
    else if (dtype == GNOMON_F16)
        parts_kernel<<<grid, THREADS, 0, v->stream>>>(x, static_cast<const __half *>(w), lines,
                                                      columns, parts, part);
    else
        parts_kernel<<<grid, THREADS, 0, v->stream>>>(x, static_cast<const float *>(w), lines,
                                                      columns, parts, part);
    add_parts_kernel<<<gcu_grid(columns, THREADS), THREADS, 0, v->stream>>>(part, parts, columns,
                                                                            sums);
    GCU_TRY(v->why, cudaGetLastError());
    gcu_svd_free(v, held);
    return GNOMON_OK;
}
