/* What a factorisation by several GPUs has kernels for, on the host; and one that is no more than
 * the products: U = A W for a W that is known, Vt the transpose of A^T U. Only a program that sets
 * SIMULATED_SVD has it, since its answer is no factorisation. */
#include "cuda/svd/shares.h"
#include "simulated.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

/* ---- of dense matrices: nothing is divided here ---- */

bool gcu_gemm_alike(const gcu_gemm *, const gcu_gemm *)
{
    return true;
}

bool gcu_gemm_packing_of(const gcu_gemm *, gcu_gemm_packing *)
{
    return false;
}

int64_t gcu_svd_units(int64_t, int64_t)
{
    return 0;
}

cudaError_t gcu_svd_scan_units(const float *, int64_t, int64_t, int64_t, int64_t, gcu_svd_figures *,
                               cudaStream_t)
{
    broken("a scan");
    return cudaSuccess;
}

cudaError_t gcu_svd_scan_total(const gcu_svd_figures *, int64_t, gcu_svd_figures *, cudaStream_t)
{
    broken("a scan");
    return cudaSuccess;
}

/* ---- lists ---- */

static void must_hold(const void *data, size_t bytes)
{
    if (bytes && !inside(data, bytes, true)) broken("a kernel outside of device memory");
}

bool gcu_svd_sparse_is_long(int64_t, int64_t, int64_t)
{
    return true;
}

gnomon_status gcu_svd_lists_begin_at_zero(gcu_svd *v, const gcu_svd_lists *l, int64_t first)
{
    int64_t *const offsets = l->offsets;
    const int64_t count = l->lines + 1;
    GCU_TRY(v->why, enqueue(v->stream, [=] {
                must_hold(offsets, (size_t)count * 8);
                for (int64_t i = 0; i < count; i++)
                    offsets[i] -= first;
            }));
    return GNOMON_OK;
}

gnomon_status gcu_svd_lists_find_long(gcu_svd *v, gcu_svd_lists *l, int64_t)
{
    l->many = gcu_svd_long{};
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_lists_cut(gcu_svd *v, const gcu_svd_lists *l, int64_t entries, int64_t more,
                                int count, int64_t *line, int64_t *entry)
{
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    for (int i = 0; i <= count; i++) {
        const int64_t before = more + (l->lines + entries - more) * i / count;
        int64_t at = 0;
        while (i > 0 && at < l->lines && l->offsets[at] + at < before)
            at++;
        line[i] = i == count ? l->lines : at;
        entry[i] = l->offsets[line[i]];
    }
    return GNOMON_OK;
}

template <typename T>
static void multiply(const gcu_svd_lists &l, const T *w, int64_t columns, gcu_svd_less less, T *out)
{
    must_hold(l.offsets, (size_t)(l.lines + 1) * 8);
    must_hold(out, (size_t)(l.lines * columns) * sizeof(T));
    if (less.of_column) must_hold(less.of_column, (size_t)columns * 8);
    if (less.of_line) must_hold(less.of_line, (size_t)l.lines * 8);
    must_hold(l.other, (size_t)l.offsets[l.lines] * 4);
    must_hold(l.value, (size_t)l.offsets[l.lines] * sizeof(T));
    for (int64_t i = 0; i < l.lines; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t e = l.offsets[i]; e < l.offsets[i + 1]; e++) {
                const T *x = w + (int64_t)l.other[e] * columns + j;
                must_hold(x, sizeof *x);
                sum += (double)static_cast<const T *>(l.value)[e] * (double)*x;
            }
            if (less.of_column)
                sum -= less.of_line ? less.of_line[i] * less.of_column[j] : less.of_column[j];
            out[i * columns + j] = (T)sum;
        }
}

gnomon_status gcu_svd_lists_multiply(gcu_svd *v, const gcu_svd_lists *lists, const void *w,
                                     gnomon_dtype dtype, int64_t columns, gcu_svd_less less,
                                     void *out)
{
    const gcu_svd_lists l = *lists;
    GCU_TRY(v->why, enqueue(v->stream, [=] {
                if (dtype == GNOMON_F64)
                    multiply(l, static_cast<const double *>(w), columns, less,
                             static_cast<double *>(out));
                else
                    multiply(l, static_cast<const float *>(w), columns, less,
                             static_cast<float *>(out));
            }));
    return GNOMON_OK;
}

/* ---- cuBLAS ---- */

gnomon_status gcu_blas_open(gcu_state *s, cudaStream_t stream, gcu_blas **out, gcu_why why)
{
    static gcu_blas of[SIMULATED_GPUS];
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    if (free < 8192) return gcu_fail(why, GNOMON_ERROR_DEVICE, "cuBLAS could not be initialised");
    *out = &of[s->gpu.device];
    (*out)->cublas = reinterpret_cast<cublasHandle_t>(stream);
    return GNOMON_OK;
}

/* As cuBLAS might: the order of a sum depends on how many rows and columns there are. */
gnomon_status gcu_gemm64(gcu_blas *b, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                         double alpha, const double *a, int64_t lda, const double *x, int64_t ldx,
                         double beta, double *c, int64_t ldc, gcu_why why)
{
    const bool falling = (m + n / 64 + lda) % 3 == 1;
    GCU_TRY(why, enqueue(reinterpret_cast<cudaStream_t>(b->cublas), [=] {
                for (int64_t j = 0; j < (tb ? k : n); j++)
                    must_hold(x + j * ldx, (size_t)(tb ? n : k) * sizeof *x);
                for (int64_t j = 0; j < (ta ? m : k); j++)
                    must_hold(a + j * lda, (size_t)(ta ? k : m) * sizeof *a);
                for (int64_t j = 0; j < n; j++) {
                    must_hold(c + j * ldc, (size_t)m * sizeof *c);
                    for (int64_t i = 0; i < m; i++) {
                        double sum = 0;
                        for (int64_t t = 0; t < k; t++) {
                            const int64_t e = falling ? k - 1 - t : t;
                            sum += (ta ? a[i * lda + e] : a[e * lda + i]) *
                                   (tb ? x[e * ldx + j] : x[j * ldx + e]);
                        }
                        c[j * ldc + i] = alpha * sum + (beta == 0 ? 0 : beta * c[j * ldc + i]);
                    }
                }
            }));
    return GNOMON_OK;
}

/* ---- a factorisation ---- */

static gnomon_status bring(gcu_svd *v, const void *from, gnomon_dtype dtype, int64_t count,
                           void *to)
{
    gnomon_matrix host = gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count);
    gnomon_matrix there = gnomon_matrix_rowmajor(to, dtype, 1, count);
    there.memory = GNOMON_DEVICE_MEMORY;
    return count == 0 ? GNOMON_OK
                      : gcu_upload_by_all(v->s, v->job->others, v->job->other_count,
                                          gcu_transfer_of(v->job), &host, GCU_PAGEABLE, &there,
                                          v->stream, v->why);
}

static void transpose(const gcu_svd_sparse &a, int64_t n, size_t size)
{
    int64_t at = 0;
    for (int64_t column = 0; column < n; column++) {
        a.by_column.offsets[column] = at;
        for (int64_t i = 0; i < a.by_row.lines; i++)
            for (int64_t e = a.by_row.offsets[i]; e < a.by_row.offsets[i + 1]; e++) {
                if (a.by_row.other[e] != (uint32_t)column) continue;
                a.by_column.other[at] = (uint32_t)i;
                memcpy(static_cast<char *>(a.by_column.value) + (size_t)at++ * size,
                       static_cast<char *>(a.by_row.value) + (size_t)e * size, size);
            }
    }
    a.by_column.offsets[n] = at;
}

static gnomon_status bring_lists(gcu_svd *v)
{
    const gnomon_csr *a = v->job->csr;
    const int64_t first = a->offsets[0], count = a->offsets[a->rows] - first;
    const size_t size = gcu_svd_size(v);
    gcu_svd_lists *rows = &v->sparse.by_row, *columns = &v->sparse.by_column;
    int64_t *indices = nullptr;
    gnomon_status status = gcu_svd_room(v, count, &indices);
    rows->lines = v->m;
    columns->lines = v->n;
    v->sparse.nonzeros = count;
    for (gcu_svd_lists *l : {rows, columns}) {
        if (status == GNOMON_OK) status = gcu_svd_room(v, l->lines + 1, &l->offsets);
        if (status == GNOMON_OK) status = gcu_svd_room(v, count, &l->other);
        if (status == GNOMON_OK) status = gcu_svd_alloc(v, (size_t)count * size, &l->value);
    }
    if (status == GNOMON_OK) status = bring(v, a->offsets, GNOMON_I64, v->m + 1, rows->offsets);
    if (status == GNOMON_OK) status = bring(v, a->indices, GNOMON_I64, count, indices);
    if (status == GNOMON_OK) status = bring(v, a->values, a->dtype, count, rows->value);
    if (status == GNOMON_OK) status = gcu_svd_lists_begin_at_zero(v, rows, first);
    if (status != GNOMON_OK) return status;
    const gcu_svd_sparse lists = v->sparse;
    const int64_t n = v->n;
    GCU_TRY(v->why, enqueue(v->stream, [=] {
                for (int64_t e = 0; e < count; e++)
                    lists.by_row.other[e] = (uint32_t)indices[e];
                transpose(lists, n, size);
            }));
    return GNOMON_OK;
}

static gnomon_status bring_matrix(gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    v->a = gcu_packed(a, a->rows, a->cols);
    gnomon_status status = gcu_svd_alloc(v, gcu_packed_bytes(&v->a), &v->a.data);
    if (status == GNOMON_OK)
        status =
            gcu_upload_by_all(v->s, v->job->others, v->job->other_count, gcu_transfer_of(v->job), a,
                              GCU_PAGEABLE, &v->a, v->stream, v->why);
    if (status == GNOMON_OK) status = gcu_blas_open(v->s, v->stream, &v->blas, v->why);
    return status == GNOMON_OK ? gcu_svd_f64_share(v) : status;
}

static double w_entry(int64_t row, int64_t column)
{
    return (double)((row * 7 + column * 3) % 11) / 8 - 0.5;
}

template <typename T>
static void sum_columns(const double *mean, const T *w, int64_t lines, int64_t columns,
                        double *sums)
{
    for (int64_t j = 0; j < columns; j++) {
        sums[j] = 0;
        for (int64_t i = 0; i < lines; i++)
            sums[j] += (mean ? mean[i] : 1.0) * (double)w[i * columns + j];
    }
}

template <typename T>
static gnomon_status product(gcu_svd *v, bool transposed, const T *w, int64_t k, T *out)
{
    const gnomon_dtype dtype = gcu_svd_type(v);
    const double *mean = transposed ? nullptr : v->mean;
    const int64_t lines = transposed ? v->m : v->n;
    const int held = v->bag.count;
    gcu_svd_less less = {};
    double *sums = nullptr;
    if (!v->job->csr) return gcu_svd_f64_multiply(v, transposed, &v->a, w, k, 0.0, out);
    gnomon_status status = gcu_svd_room(v, k, &sums);
    if (status != GNOMON_OK) return status;
    if (v->mean) {
        less = {transposed ? v->mean : nullptr, sums};
        GCU_TRY(v->why, enqueue(v->stream, [=] { sum_columns(mean, w, lines, k, sums); }));
    }
    status = v->shares.count
                 ? gcu_svd_sparse_shares_multiply(v, transposed, w, dtype, k, less, out)
                 : gcu_svd_lists_multiply(v, transposed ? &v->sparse.by_column : &v->sparse.by_row,
                                          w, dtype, k, less, out);
    gcu_svd_free(v, held);
    return status;
}

/* One of more columns than there is room for, while the lines of another are on their way. */
template <typename T> static gnomon_status product_of_more(gcu_svd *v)
{
    const int64_t k = 2 * v->job->columns, count = v->n * k;
    T *w = nullptr, *out = nullptr;
    gnomon_status status = gcu_svd_room(v, count, &w);
    if (status == GNOMON_OK) status = gcu_svd_room(v, v->m * k, &out);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, enqueue(v->stream, [=] { std::fill(w, w + count, (T)1); }));
    return product(v, false, w, k, out);
}

template <typename T> static gnomon_status work(gcu_svd *v)
{
    gnomon_svd_job *job = v->job;
    const int64_t k = job->options->rank, m = v->m, n = v->n;
    T *w = nullptr, *left = nullptr, *right = nullptr;
    gnomon_status status = job->csr ? bring_lists(v) : bring_matrix(v);
    if (status == GNOMON_OK && job->options->center) status = gcu_svd_room(v, n, &v->mean);
    if (status == GNOMON_OK && v->mean)
        GCU_TRY(v->why, cudaMemcpyAsync(v->mean, job->mean, (size_t)n * 8, cudaMemcpyHostToDevice,
                                        v->stream));
    if (status == GNOMON_OK && job->csr) status = gcu_svd_sparse_share(v);
    if (status == GNOMON_OK) status = gcu_svd_room(v, n * k, &w);
    if (status == GNOMON_OK) status = gcu_svd_room(v, m * k, &left);
    if (status == GNOMON_OK) status = gcu_svd_room(v, n * k, &right);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, enqueue(v->stream, [=] {
                for (int64_t i = 0; i < n; i++)
                    for (int64_t j = 0; j < k; j++)
                        w[i * k + j] = (T)w_entry(i, j);
            }));
    status = product(v, false, w, k, left);
    if (status == GNOMON_OK && job->csr) status = product_of_more<T>(v);
    if (status == GNOMON_OK) status = product(v, true, left, k, right);
    if (status != GNOMON_OK) return status;
    std::vector<T> u((size_t)(m * k)), z((size_t)(n * k));
    GCU_TRY(v->why, cudaMemcpyAsync(u.data(), left, u.size() * sizeof(T), cudaMemcpyDeviceToHost,
                                    v->stream));
    GCU_TRY(v->why, cudaMemcpyAsync(z.data(), right, z.size() * sizeof(T), cudaMemcpyDeviceToHost,
                                    v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gnomon_matrix to_u, to_vt;
    job->used_columns = job->columns;
    job->norm = 1;
    for (int64_t j = 0; j < job->columns; j++)
        job->s[j] = 1.0 / (double)(j + 1);
    const int64_t lengths = job->options->test_vectors * (job->options->test_power + 1);
    std::fill(job->lengths, job->lengths + lengths, 0.0);
    status = job->calls->make_room(job->calls->user, k, &to_u, &to_vt);
    if (status != GNOMON_OK) return status;
    for (int64_t j = 0; j < k; j++) {
        for (int64_t i = 0; i < m; i++)
            static_cast<T *>(to_u.data)[i * to_u.row_stride + j * to_u.col_stride] =
                u[(size_t)(i * k + j)];
        for (int64_t i = 0; i < n; i++)
            static_cast<T *>(to_vt.data)[j * to_vt.row_stride + i * to_vt.col_stride] =
                z[(size_t)(i * k + j)];
    }
    return GNOMON_OK;
}

bool gcu_svd_supported(gcu_state *, const gnomon_svd_job *job, gcu_why why)
{
    const gnomon_dtype dtype = job->options->dtype;
    if (getenv("SIMULATED_SVD") &&
        (job->csr ? job->csr->dtype == dtype : job->a->dtype == dtype && dtype == GNOMON_F64))
        return true;
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no factorisations");
    return false;
}

gnomon_status gcu_svd_job(gcu_state *s, gnomon_svd_job *job, gcu_why why)
{
    gcu_svd v = {};
    v.s = s;
    v.job = job;
    v.why = why;
    v.stream = s->stream;
    v.m = job->a->rows;
    v.n = job->a->cols;
    v.f64 = job->options->dtype == GNOMON_F64;
    job->rest = job->residual = (double)NAN;
    const gnomon_status worked = v.f64 ? work<double>(&v) : work<float>(&v);
    gnomon_status status = gcu_svd_shares_close(&v, worked);
    gcu_svd_free(&v, 0);
    const cudaError_t error = cudaStreamSynchronize(v.stream);
    return status == GNOMON_OK && error != cudaSuccess ? gcu_status(why, error, "kernels") : status;
}
