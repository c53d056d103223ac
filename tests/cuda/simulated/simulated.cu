/* What of the plugin has kernels, on the host: views, the search for NaN, and one family. */
#include "cuda/dedup/dedup.h"
#include "cuda/gemm/gemm.h"
#include "cuda/hosvd/hosvd.h"
#include "cuda/join/sets.h"
#include "cuda/lsh/lsh.h"
#include "cuda/project/dense/levels.h"
#include "cuda/project/family.h"
#include "cuda/project/job.h"
#include "cuda/runtime/state.h"
#include "cuda/search/search.h"
#include "simulated.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

gnomon_status gcu_gpu_open(int device, gcu_gpu *gpu, char *why, size_t why_size)
{
    if (device >= SIMULATED_GPUS) {
        snprintf(why, why_size, "the device index is %d; the visible GPUs are 0 to %d", device,
                 SIMULATED_GPUS - 1);
        return GNOMON_ERROR_ARGUMENT;
    }
    *gpu = gcu_gpu{};
    gpu->device = device;
    cudaSetDevice(device);
    snprintf(why, why_size, "simulated GPU");
    return GNOMON_OK;
}

int gcu_gpu_count(void)
{
    return SIMULATED_GPUS;
}

void gcu_gpu_close(gcu_gpu *)
{
}

static char *element(const gnomon_matrix *m, int64_t i, int64_t j)
{
    return static_cast<char *>(m->data) +
           (i * m->row_stride + j * m->col_stride) * (int64_t)gnomon_dtype_size(m->dtype);
}

static double value_at(const char *p, gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_F64:
        return *reinterpret_cast<const double *>(p);
    case GNOMON_F16:
        return __half2float(*reinterpret_cast<const __half *>(p));
    case GNOMON_I8:
        return *reinterpret_cast<const int8_t *>(p);
    case GNOMON_I32:
        return *reinterpret_cast<const int32_t *>(p);
    default:
        return *reinterpret_cast<const float *>(p);
    }
}

static double value(const gnomon_matrix *m, int64_t i, int64_t j)
{
    return value_at(element(m, i, j), m->dtype);
}

static void set(const gnomon_matrix *m, int64_t i, int64_t j, double v)
{
    if (!inside(element(m, i, j), gnomon_dtype_size(m->dtype), true))
        broken("a kernel outside of device memory");
    if (m->dtype == GNOMON_F64)
        *reinterpret_cast<double *>(element(m, i, j)) = v;
    else
        *reinterpret_cast<float *>(element(m, i, j)) = (float)v;
}

static void check_reads(const gnomon_matrix *m)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            if (!inside(element(m, i, j), gnomon_dtype_size(m->dtype), true))
                broken("a kernel reads outside of device memory");
}

cudaError_t gcu_scale(const gnomon_matrix *view, double beta, cudaStream_t s)
{
    const gnomon_matrix m = *view;
    return enqueue(s, [=] {
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < m.cols; j++)
                set(&m, i, j, beta == 0 ? 0 : beta * value(&m, i, j));
    });
}

cudaError_t gcu_copy(const gnomon_matrix *from, const gnomon_matrix *to, cudaStream_t s)
{
    const gnomon_matrix a = *from, b = *to;
    return enqueue(s, [=] {
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < a.cols; j++)
                set(&b, i, j, value(&a, i, j));
    });
}

bool gcu_may_be_nonfinite(gnomon_dtype dtype)
{
    return dtype <= GNOMON_BF16;
}

cudaError_t gcu_find_nonfinite(const gnomon_matrix *view, int64_t row, int64_t col, int64_t cols,
                               unsigned long long *first, cudaStream_t s)
{
    const gnomon_matrix m = *view;
    return enqueue(s, [=] {
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < m.cols; j++) {
                if (std::isfinite(value(&m, i, j))) continue;
                const unsigned long long at = (unsigned long long)((row + i) * cols + col + j);
                if (at < *first) *first = at;
            }
    });
}

/* ---- a family on the host: fp32 sums of segments of 48 columns ---- */

enum { SEGMENT = 48 };

static int64_t granule(const gnomon_simple *a)
{
    return a->kind == GNOMON_SRHT ? a->cols : 2 * SEGMENT;
}

static bool supports(const gcu_task *t, char *why, size_t why_size)
{
    snprintf(why, why_size, "the simulation takes f32, f64, i8 and i32");
    return t->x.dtype == GNOMON_F32 || t->x.dtype == GNOMON_F64 || t->x.dtype == GNOMON_I8 ||
           t->x.dtype == GNOMON_I32;
}

static size_t best_work(const gcu_task *t)
{
    if (t->a->kind == GNOMON_GAUSSIAN) return 64; /* less than the least, as a family may say */
    return (size_t)(t->x.n * t->x.blocks) * 64 + 4096;
}

static size_t least_work(const gcu_task *t)
{
    return (size_t)(t->x.n * t->x.blocks) * 16 + 64;
}

static double input(const gcu_points &x, int64_t b, int64_t i, int64_t q)
{
    const int64_t at = b * x.block_cols + q;
    if (at < x.first || at >= x.end) return 0;
    const size_t size = gnomon_dtype_size(x.dtype);
    const char *p = static_cast<const char *>(x.data) +
                    (i * x.row_stride + b * x.block_stride + q * x.col_stride) * (int64_t)size;
    if (!inside(p, size, true)) broken("a kernel reads outside of device memory");
    return value_at(p, x.dtype);
}

template <typename T> static void emit(const gcu_task &t, int64_t a, int64_t b, int64_t i, T total)
{
    const gcu_out &out = t.out;
    const int64_t v = b * t.x.n + i, points = t.x.n * t.x.blocks;
    if (!out.finishes) {
        static_cast<T *>(out.carry)[(a - t.row) * points + v] = total;
        return;
    }
    const int64_t first = (out.block + b) * out.k / out.r,
                  last = (out.block + b + 1) * out.k / out.r;
    const int64_t to = first + a - out.row;
    if (first + a >= last || to < 0 || to >= out.rows) return;
    const double factor =
        last - first == (out.k + out.r - 1) / out.r ? out.factor_most : out.factor_least;
    gnomon_matrix y = {out.y,    out.dtype,      GNOMON_DEVICE_MEMORY, t.x.n,
                       out.rows, out.row_stride, out.col_stride};
    const double sum = factor * ((double)total + 0.0);
    set(&y, i, to, out.beta == 0 ? sum : sum + out.beta * value(&y, i, to));
}

template <typename T> static void sums(const gcu_task &t, const gnomon_simple &a)
{
    const int64_t cols = std::min(t.x.block_cols, a.cols - t.col);
    const int64_t points = t.x.n * t.x.blocks;
    std::vector<float> s((size_t)cols + 1);
    for (int64_t row = t.row; row < t.row + t.rows; row++) {
        gnomon_simple_values(&a, row, 1, t.col, cols, s.data(), cols, 1);
        for (int64_t b = 0; b < t.x.blocks; b++)
            for (int64_t i = 0; i < t.x.n; i++) {
                T total =
                    t.out.begins
                        ? 0
                        : static_cast<T *>(t.out.carry)[(row - t.row) * points + b * t.x.n + i];
                for (int64_t q = 0; q < cols; q += SEGMENT) {
                    T part = 0;
                    for (int64_t e = q; e < std::min(cols, q + SEGMENT); e++)
                        part += (T)s[(size_t)e] * (T)input(t.x, b, i, e);
                    total += part;
                }
                emit<T>(t, row, b, i, total);
            }
    }
}

static cudaError_t run(const gcu_task *task)
{
    const gcu_task t = *task;
    const gnomon_simple a = *task->a;
    if (t.work_bytes < least_work(task) || !inside(t.work, t.work_bytes, true))
        broken("a family without its work memory");
    if (t.col % granule(&a) != 0 ||
        (t.x.block_cols % granule(&a) != 0 && t.col + t.x.block_cols != a.cols))
        broken("columns cut inside a granule");
    return enqueue(t.stream, [=] {
        memset(t.work, 0xff, t.work_bytes);
        if (t.f64)
            sums<double>(t, a);
        else
            sums<float>(t, a);
    });
}

const gcu_family gcu_generic = {"simulated", supports, granule, best_work, least_work, run};

const gcu_family *gcu_choose(const gcu_task *task, char *why, size_t why_size)
{
    return supports(task, why, why_size) ? &gcu_generic : nullptr;
}

/* ---- adjoints of simple operators ---- */

/* A cascade goes level by level here. */
bool gcu_two_levels_supports(const gcu_two_levels *)
{
    return false;
}

cudaError_t gcu_two_levels_run(const gcu_two_levels *)
{
    return cudaErrorNotSupported;
}

bool gcu_adjoint_supports(const gcu_adjoint_task *t, char *why, size_t why_size)
{
    snprintf(why, why_size, "the simulation's adjoint takes simple operators");
    return t->op->levels == 1 && t->op->blocks == 1;
}

size_t gcu_adjoint_best_work(const gcu_adjoint_task *t)
{
    return (size_t)t->x.rows * 64 + 4096;
}

size_t gcu_adjoint_least_work(const gcu_adjoint_task *t)
{
    return (size_t)t->x.rows * 16 + 64;
}

template <typename T> static void backwards(const gcu_adjoint_task &t, const gnomon_simple &a)
{
    std::vector<float> s((size_t)t.rows);
    check_reads(&t.y);
    for (int64_t q = 0; q < t.x.cols; q++) {
        gnomon_simple_values(&a, t.row, t.rows, t.col + q, 1, s.data(), 1, 1);
        for (int64_t i = 0; i < t.x.rows; i++) {
            T total = 0;
            for (int64_t r = 0; r < t.rows; r++)
                total += (T)s[(size_t)r] * (T)value(&t.y, i, r);
            const double sum = t.alpha * a.scale * ((double)total + 0.0);
            set(&t.x, i, q, t.beta == 0 ? sum : sum + t.beta * value(&t.x, i, q));
        }
    }
}

cudaError_t gcu_adjoint(const gcu_adjoint_task *task)
{
    const gcu_adjoint_task t = *task;
    const gnomon_simple a = task->op->factor[0];
    if (t.work_bytes < gcu_adjoint_least_work(task) || !inside(t.work, t.work_bytes, true))
        broken("an adjoint without its work memory");
    return enqueue(t.stream, [=] {
        memset(t.work, 0xff, t.work_bytes);
        if (t.f64)
            backwards<double>(t, a);
        else
            backwards<float>(t, a);
    });
}

/* ---- no factorisations ---- */

void gcu_blas_close(gcu_state *)
{
}

/* ---- products of matrices ---- */

size_t gcu_gemm_work(const gcu_gemm *g)
{
    return g->k && g->alpha != 0 ? (size_t)(g->m + g->n) * 16 + 64 : 0;
}

cudaError_t gcu_gemm_run(const gcu_gemm *call, void *work, size_t work_bytes, cudaStream_t stream)
{
    const gcu_gemm g = *call;
    const bool read = g.k > 0 && g.alpha != 0;
    if (work_bytes < gcu_gemm_work(&g) || (read && !inside(work, work_bytes, true)))
        broken("a product without its work memory");
    return enqueue(stream, [=] {
        const gnomon_matrix a = {const_cast<void *>(g.a.data),
                                 g.a.dtype,
                                 GNOMON_DEVICE_MEMORY,
                                 g.m,
                                 g.k,
                                 g.a.row_stride,
                                 g.a.col_stride};
        const gnomon_matrix b = {const_cast<void *>(g.b.data),
                                 g.b.dtype,
                                 GNOMON_DEVICE_MEMORY,
                                 g.k,
                                 g.n,
                                 g.b.row_stride,
                                 g.b.col_stride};
        const gnomon_matrix c = {g.c64 ? static_cast<void *>(g.c64) : g.c,
                                 g.c64 ? GNOMON_F64 : GNOMON_F32,
                                 GNOMON_DEVICE_MEMORY,
                                 g.m,
                                 g.n,
                                 g.c_row_stride,
                                 g.c_col_stride};
        if (work) memset(work, 0xff, work_bytes);
        if (read) {
            check_reads(&a);
            check_reads(&b);
        }
        for (int64_t i = 0; i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < g.k && read; k++)
                    sum += value(&a, i, k) * value(&b, k, j);
                set(&c, i, j,
                    g.beta == 0 ? g.alpha * sum : g.alpha * sum + g.beta * value(&c, i, j));
            }
    });
}

bool gcu_search_supported(const gcu_state *, const gnomon_search_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no searches");
    return false;
}

gnomon_status gcu_search_open(gcu_state *, const gnomon_search_job *, gcu_search **, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no searches");
}

gnomon_status gcu_search_add(gcu_state *, gcu_search *, gnomon_search_piece *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no searches");
}

gnomon_status gcu_search_finish(gcu_state *, gcu_search *, int64_t *, int64_t *, double *,
                                gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no searches");
}

void gcu_search_close(gcu_state *, gcu_search *)
{
}

bool gcu_join_sets_supported(gcu_state *, const gnomon_join_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no joins");
    return false;
}

gnomon_status gcu_join_sets(gcu_state *, gnomon_join_job *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no joins");
}

bool gcu_csr_supported(gcu_state *, const gnomon_sketch_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not project sparse points");
    return false;
}

gnomon_status gcu_csr_job(gcu_state *, const gnomon_sketch_job *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not project sparse points");
}

bool gcu_dedup_supported(gcu_state *, const gnomon_dedup_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not read texts");
    return false;
}

gnomon_status gcu_dedup_open(gcu_state *, const gnomon_dedup_job *, gcu_texts **out, gcu_why why)
{
    *out = nullptr;
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not read texts");
}

void gcu_dedup_slot(gcu_texts *, gnomon_dedup_slot *)
{
}

gnomon_status gcu_dedup_push(gcu_texts *, int64_t, int64_t, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not read texts");
}

gnomon_status gcu_dedup_take(gcu_texts *, gnomon_dedup_sets *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not read texts");
}

void gcu_dedup_close(gcu_texts *)
{
}

gnomon_status gcu_dedup_keys(gcu_state *, const gnomon_keys_job *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU makes no keys");
}

bool gcu_hosvd_supported(gcu_state *, const gnomon_hosvd_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no factorisations");
    return false;
}

gnomon_status gcu_hosvd_job(gcu_state *, gnomon_hosvd_job *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU has no factorisations");
}

bool gcu_lsh_supported(const gcu_state *, const gnomon_lsh_job *, gcu_why why)
{
    gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not hash");
    return false;
}

gnomon_status gcu_lsh_job(gcu_state *, const gnomon_lsh_job *, gcu_why why)
{
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "the simulated GPU does not hash");
}
