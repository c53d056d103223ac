/* Sparse rows on the GPU: the matrix as lists of its rows and, made from those once, of its
 * columns; products with either (lists.cu) gather lines of the other operand. */
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/others.h"
#include "cuda/svd/f64.h"

#include <cub/device/device_radix_sort.cuh>

#include <limits.h>
#include <math.h>

enum { THREADS = 256 };

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20); /* lines differ in length: many short blocks */
}

/* ---- lists ---- */

static __global__ void to_u32_kernel(const int64_t *from, int64_t count, uint32_t *to)
{
    GCU_FOR_EACH(i, count) to[i] = (uint32_t)from[i];
}

static __global__ void count_kernel(uint32_t *to, int64_t count)
{
    GCU_FOR_EACH(i, count) to[i] = (uint32_t)i;
}

/* offsets[j] = how many of the rising keys are below j. */
static __global__ void offsets_kernel(const uint32_t *key, int64_t count, int64_t lines,
                                      int64_t *offsets)
{
    GCU_FOR_EACH(j, lines + 1)
    {
        int64_t low = 0, high = count;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if ((int64_t)key[middle] < j)
                low = middle + 1;
            else
                high = middle;
        }
        offsets[j] = low;
    }
}

/* Entry e of the columns is entry from[e] of the rows. */
template <typename V>
static __global__ void transpose_kernel(const int64_t *offsets, int64_t rows, const V *value,
                                        const uint32_t *from, int64_t count, uint32_t *row, V *to)
{
    GCU_FOR_EACH(e, count)
    {
        const int64_t at = from[e];
        int64_t low = 0, high = rows; /* the row whose list begins last at or before 'at' */
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (offsets[middle] <= at)
                low = middle;
            else
                high = middle;
        }
        row[e] = (uint32_t)low;
        to[e] = value[at];
    }
}

/* One of the host's arrays on the GPU. */
static gnomon_status bring_array(gcu_svd *v, const void *from, gnomon_dtype dtype, int64_t count,
                                 const char *name, void *to)
{
    gnomon_matrix host =
        gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count ? count : 1);
    gnomon_matrix there = gnomon_matrix_rowmajor(to, dtype, 1, host.cols);
    gcu_place place;
    if (count == 0) return GNOMON_OK;
    there.memory = GNOMON_DEVICE_MEMORY;
    const gnomon_status status = gcu_place_of(v->s, &host, name, &place, v->why);
    if (status != GNOMON_OK) return status;
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    return gcu_upload_by_all(v->s, v->job->others, v->job->other_count, transfer, &host, place,
                             &there, v->stream, v->why);
}

static int64_t nonzeros_of(const gnomon_csr *a)
{
    return a->offsets[a->rows] - a->offsets[0];
}

/* All values, as one row. */
static gnomon_matrix values_of(const gcu_svd *v)
{
    return gnomon_matrix_rowmajor(v->sparse.by_row.value, gcu_svd_type(v), 1, v->sparse.nonzeros);
}

gnomon_status gcu_svd_sparse_bring(gcu_svd *v)
{
    const gnomon_csr *a = v->job->csr;
    const int64_t count = nonzeros_of(a);
    gcu_svd_lists *rows = &v->sparse.by_row;
    int64_t *indices = nullptr;
    void *raw = nullptr;
    rows->lines = v->m;
    v->sparse.nonzeros = count;
    gnomon_status status = gcu_svd_room(v, v->m + 1, &rows->offsets);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &rows->other);
    if (status == GNOMON_OK)
        status = gcu_svd_alloc(v, (size_t)count * gcu_svd_size(v), &rows->value);
    const int held = v->bag.count;
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &indices);
    if (status == GNOMON_OK)
        status = gcu_svd_alloc(v, (size_t)count * gnomon_dtype_size(a->dtype), &raw);
    if (status == GNOMON_OK)
        status = bring_array(v, a->offsets, GNOMON_I64, v->m + 1, "a.offsets", rows->offsets);
    if (status == GNOMON_OK)
        status = bring_array(v, a->indices, GNOMON_I64, count, "a.indices", indices);
    if (status == GNOMON_OK) status = bring_array(v, a->values, a->dtype, count, "a.values", raw);
    if (status != GNOMON_OK) return status;
    status = gcu_svd_lists_begin_at_zero(v, rows, a->offsets[0]);
    if (status != GNOMON_OK) return status;
    if (count > 0) {
        const gnomon_matrix values = gnomon_matrix_rowmajor(raw, a->dtype, 1, count);
        const gnomon_matrix there = values_of(v);
        to_u32_kernel<<<grid_of(count), THREADS, 0, v->stream>>>(indices, count, rows->other);
        status = gcu_svd_scaled_copy(v, &values, 0, &there);
        if (status != GNOMON_OK) return status;
    }
    GCU_TRY(v->why, cudaGetLastError());
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

template <typename V> static void transpose_values(gcu_svd *v, const uint32_t *from)
{
    const gcu_svd_lists *rows = &v->sparse.by_row, *columns = &v->sparse.by_column;
    transpose_kernel<<<grid_of(v->sparse.nonzeros), THREADS, 0, v->stream>>>(
        rows->offsets, v->m, static_cast<const V *>(rows->value), from, v->sparse.nonzeros,
        columns->other, static_cast<V *>(columns->value));
}

/* The columns' lists: a stable sort by column keeps the rows in order. */
static gnomon_status transpose(gcu_svd *v)
{
    const int64_t count = v->sparse.nonzeros;
    const gcu_svd_lists *rows = &v->sparse.by_row;
    gcu_svd_lists *columns = &v->sparse.by_column;
    uint32_t *key = nullptr, *at = nullptr, *from = nullptr;
    void *work = nullptr;
    size_t bytes = 0;
    int bits = 1;
    while (bits < 32 && v->n > (int64_t)1 << bits)
        bits++;
    columns->lines = v->n;
    gnomon_status status = gcu_svd_room(v, v->n + 1, &columns->offsets);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &columns->other);
    if (status == GNOMON_OK)
        status = gcu_svd_alloc(v, (size_t)count * gcu_svd_size(v), &columns->value);
    const int held = v->bag.count;
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &key);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &at);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &from);
    if (status != GNOMON_OK) return status;
    if (count > 0) {
        GCU_TRY(v->why, cub::DeviceRadixSort::SortPairs(nullptr, bytes, rows->other, key, at, from,
                                                        (int)count, 0, bits, v->stream));
        status = gcu_svd_alloc(v, bytes, &work);
        if (status != GNOMON_OK) return status;
        count_kernel<<<grid_of(count), THREADS, 0, v->stream>>>(at, count);
        GCU_TRY(v->why, cub::DeviceRadixSort::SortPairs(work, bytes, rows->other, key, at, from,
                                                        (int)count, 0, bits, v->stream));
        if (v->f64)
            transpose_values<double>(v, from);
        else
            transpose_values<float>(v, from);
    }
    offsets_kernel<<<grid_of(v->n + 1), THREADS, 0, v->stream>>>(key, count, v->n,
                                                                 columns->offsets);
    GCU_TRY(v->why, cudaGetLastError());
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

/* The first value that is not finite, as the CPU names it. */
static gnomon_status name_nonfinite(gcu_svd *v)
{
    const gnomon_csr *a = v->job->csr;
    const int64_t count = v->sparse.nonzeros;
    unsigned long long first = ~0ull, *there = nullptr;
    const gnomon_status status = gcu_svd_room(v, 1, &there);
    if (status != GNOMON_OK) return status;
    const gnomon_matrix values = values_of(v);
    GCU_TRY(v->why, cudaMemsetAsync(there, 0xff, sizeof first, v->stream));
    GCU_TRY(v->why, gcu_find_nonfinite(&values, 0, 0, count, there, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&first, there, sizeof first, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    int64_t row = 0;
    while (row + 1 < a->rows && a->offsets[row + 1] - a->offsets[0] <= (int64_t)first)
        row++;
    v->bad_row = row;
    v->bad_col = a->indices[first];
    gcu_about(v->job->host, "a", v->bad_row, v->bad_col);
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "a has NaN or infinity in row %lld, column %lld (both counted from 0)",
                    (long long)row, (long long)v->bad_col);
}

gnomon_status gcu_svd_sparse_check(gcu_svd *v)
{
    const int64_t count = v->sparse.nonzeros;
    const gnomon_matrix values = values_of(v);
    gcu_svd_scan_state l = {};
    gnomon_status status = GNOMON_OK;
    if (count > 0) status = gcu_svd_figures_of(v, values.data, count, &l);
    if (status != GNOMON_OK) return status;
    if (!(l.largest < (double)INFINITY)) return name_nonfinite(v);
    gcu_svd_set_scale(v, sqrt(l.squares), l.largest);
    if (v->job->exponent != 0) {
        status = gcu_svd_scaled_copy(v, &values, v->job->exponent, &values);
        if (status == GNOMON_OK && v->f64) status = gcu_svd_figures_of(v, values.data, count, &l);
        if (v->f64) v->job->norm = sqrt(l.squares);
    }
    if (status == GNOMON_OK && v->mean) {
        v->job->norm = ldexp(v->job->centered_norm, v->job->centered_exponent - v->job->exponent);
        status = gcu_svd_scale_mean(v);
    }
    if (status == GNOMON_OK) status = transpose(v);
    if (status == GNOMON_OK) status = gcu_svd_sparse_share(v);
    if (status != GNOMON_OK || v->shares.count) return status;
    status = gcu_svd_lists_find_long(v, &v->sparse.by_row, count);
    return status == GNOMON_OK ? gcu_svd_lists_find_long(v, &v->sparse.by_column, count) : status;
}

double gcu_svd_sparse_bytes(const gnomon_svd_job *job)
{
    const gnomon_csr *a = job->csr;
    const double count = (double)nonzeros_of(a);
    const double parts = count / GCU_SVD_LIST_PART + 2 * (count / GCU_SVD_LIST_LONG + 1);
    const bool f64 = job->options->dtype == GNOMON_F64;
    return count * (f64 ? 56 : 48) + 16.0 * ((double)a->rows + (double)a->cols) +
           (parts + ((double)a->rows + (double)a->cols) / 1024 + 2) *
               (8.0 * (double)job->columns + 16);
}

const char *gcu_svd_sparse_reason(const gnomon_svd_job *job)
{
    if (nonzeros_of(job->csr) > INT_MAX - 4096) return "sparse rows have more than 2^31 nonzeros";
    return nullptr;
}

/* ---- products ---- */

gnomon_status gcu_svd_sparse_multiply(gcu_svd *v, bool transposed, const void *w,
                                      gnomon_dtype dtype, int64_t columns, void *out)
{
    const gcu_svd_lists *l = transposed ? &v->sparse.by_column : &v->sparse.by_row;
    const int held = v->bag.count;
    gcu_svd_less less = {};
    gnomon_status status = GNOMON_OK;
    if (v->mean) { /* A w - 1 (mean^T w), A^T w - mean (1^T w) */
        double *sums = nullptr;
        status = gcu_svd_room(v, columns, &sums);
        if (status == GNOMON_OK)
            status = gcu_svd_column_sums(v, transposed ? nullptr : v->mean, w, dtype,
                                         transposed ? v->m : v->n, columns, sums);
        less = {transposed ? v->mean : nullptr, sums};
    }
    if (status != GNOMON_OK) return status;
    status = v->shares.count
                 ? gcu_svd_sparse_shares_multiply(v, transposed, w, dtype, columns, less, out)
                 : gcu_svd_lists_multiply(v, l, w, dtype, columns, less, out);
    if (status == GNOMON_OK) gcu_svd_free(v, held);
    return status;
}
