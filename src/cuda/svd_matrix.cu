/* The matrix that is factored: how it comes to the GPU, and its products. */
#include "cuda/svd.h"
#include "cuda/transfer.h"

#include <math.h>

static const int64_t tile_elements = 1 << 26; /* of A at a time, where a residual is measured */

gnomon_status gcu_svd_product(gcu_svd *v, int64_t m, int64_t n, int64_t k, float alpha,
                              gcu_gemm_view a, gcu_gemm_view b, float beta, float *c)
{
    gcu_gemm g = {};
    g.form = b.dtype == GNOMON_F16 ? GCU_GEMM_SCALED : GCU_GEMM_THREE;
    g.m = m;
    g.n = n;
    g.k = k;
    g.a = a;
    g.b = b;
    g.c = c;
    g.c_row_stride = n;
    g.c_col_stride = 1;
    g.alpha = alpha;
    g.beta = beta;
    g.gpu = &v->s->gpu;
    const size_t bytes = gcu_gemm_work(&g);
    if (bytes > v->product_bytes) {
        gcu_give(v->product_work, v->stream);
        v->product_bytes = 0;
        GCU_TRY(v->why, gcu_take(v->s, &v->product_work, bytes, v->stream));
        v->product_bytes = bytes;
    }
    GCU_TRY(v->why, gcu_gemm_run(&g, v->product_work, v->product_bytes, v->stream));
    return GNOMON_OK;
}

static gcu_gemm_view operand(const gnomon_matrix *a, bool transposed)
{
    return {a->data, GNOMON_F32, transposed ? a->col_stride : a->row_stride,
            transposed ? a->row_stride : a->col_stride};
}

gnomon_status gcu_svd_multiply(gcu_svd *v, bool transposed, const void *w, gnomon_dtype dtype,
                               int64_t columns, float *out)
{
    const gcu_gemm_view b = {w, dtype, columns, 1};
    v->job->passes++;
    return gcu_svd_product(v, transposed ? v->n : v->m, columns, transposed ? v->m : v->n, 1.0f,
                           operand(&v->a, transposed), b, 0.0f, out);
}

/* ---- to the GPU ---- */

static bool lies_well(const gnomon_matrix *a)
{
    return a->dtype == GNOMON_F32 && ((a->col_stride == 1 && a->row_stride >= a->cols) ||
                                      (a->row_stride == 1 && a->col_stride >= a->rows));
}

static bool is_across(const gnomon_matrix *a)
{
    return a->row_stride == 1 && a->col_stride != 1;
}

/* A packed fp32 matrix of the same orientation, in memory of its own. */
static gnomon_status own(gcu_svd *v, const gnomon_matrix *like, gnomon_matrix *to)
{
    gnomon_matrix m = *like;
    m.dtype = GNOMON_F32;
    *to = gcu_packed(&m, m.rows, m.cols);
    return gcu_svd_take(v, gcu_packed_bytes(to), &to->data);
}

static gnomon_status convert(gcu_svd *v, const gnomon_matrix *from, int exponent,
                             const gnomon_matrix *to)
{
    const bool across = is_across(to);
    GCU_TRY(v->why,
            gcu_svd_convert(from, exponent, across, across ? to->col_stride : to->row_stride,
                            static_cast<float *>(to->data), v->stream));
    return GNOMON_OK;
}

static gnomon_status fetch(gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    gcu_place place;
    gnomon_status status = gcu_place_of(v->s, a, "a", &place, v->why);
    if (status != GNOMON_OK) return status;
    if (place == GCU_DEVICE) {
        v->a = *a;
        if (lies_well(a)) return GNOMON_OK;
        status = own(v, a, &v->a);
        return status == GNOMON_OK ? convert(v, a, 0, &v->a) : status;
    }
    gnomon_matrix there = gcu_packed(a, a->rows, a->cols);
    status = gcu_svd_take(v, gcu_packed_bytes(&there), &there.data);
    if (status != GNOMON_OK) return status;
    gnomon_sketch_job job = {};
    job.memory_limit = v->job->memory_limit;
    job.host = v->job->host;
    status = gcu_upload(v->s, &job, a, place, &there, v->stream, v->why);
    v->a = there;
    if (status != GNOMON_OK || a->dtype == GNOMON_F32) return status;
    status = own(v, &there, &v->a);
    return status == GNOMON_OK ? convert(v, &there, 0, &v->a) : status;
}

static gnomon_status name_nonfinite(gcu_svd *v)
{
    unsigned long long first = ~0ull, *there = nullptr;
    const gnomon_status status = gcu_svd_room(v, 1, &there);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemsetAsync(there, 0xff, sizeof first, v->stream));
    GCU_TRY(v->why, gcu_find_nonfinite(&v->a, 0, 0, v->n, there, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&first, there, sizeof first, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "a has NaN or infinity in row %llu, column %llu (both counted from 0)",
                    first / (unsigned long long)v->n, first % (unsigned long long)v->n);
}

static gnomon_status figures_of(gcu_svd *v, const gnomon_matrix *a, gcu_svd_figures *partial,
                                gcu_svd_figures *total)
{
    const bool across = is_across(a);
    int64_t lines = across ? a->cols : a->rows, length = across ? a->rows : a->cols;
    const int64_t pitch = across ? a->col_stride : a->row_stride;
    if (pitch == length) { /* no gaps: one line */
        length *= lines;
        lines = 1;
    }
    GCU_TRY(v->why, gcu_svd_scan(static_cast<const float *>(a->data), lines, length, pitch, partial,
                                 total, v->stream));
    return GNOMON_OK;
}

/* Places for the figures of any view of so many rows and columns, and one for their total. */
static int64_t figures_most(int64_t rows, int64_t cols)
{
    return gcu_svd_units(rows, cols) + gcu_svd_units(cols, rows) + gcu_svd_units(1, rows * cols) +
           1;
}

gnomon_status gcu_svd_bring(gcu_svd *v)
{
    gcu_svd_figures seen, *figures = nullptr;
    gnomon_status status = fetch(v);
    if (status == GNOMON_OK) status = gcu_svd_room(v, figures_most(v->m, v->n), &figures);
    if (status == GNOMON_OK) status = figures_of(v, &v->a, figures + 1, figures);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why,
            cudaMemcpyAsync(&seen, figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (seen.most >= 0x7f800000u) return name_nonfinite(v);
    float largest;
    memcpy(&largest, &seen.most, sizeof largest);
    v->job->norm = sqrt(seen.squares);
    if (largest == 0 || (largest < 0x1p60f && largest > 0x1p-60f)) return GNOMON_OK;
    frexp((double)largest, &v->job->exponent);
    v->job->norm = ldexp(v->job->norm, -v->job->exponent);
    const gnomon_matrix as_it_is = v->a;
    if (v->a.data == v->job->a->data) status = own(v, &as_it_is, &v->a); /* the caller's */
    return status == GNOMON_OK ? convert(v, &as_it_is, v->job->exponent, &v->a) : status;
}

/* ---- products ---- */

/* Points are not what progress is told in here. */
static int say_nothing(void *, int64_t, int64_t)
{
    return 0;
}

gnomon_status gcu_svd_project(gcu_svd *v, int64_t columns)
{
    const gnomon_operator *op = v->job->op;
    const gnomon_simple *simple = &op->factor[0];
    const gnomon_kind kind = op->descriptor.kind;
    const bool signs = kind == GNOMON_RADEMACHER || kind == GNOMON_ACHLIOPTAS;
    if (signs || kind == GNOMON_GAUSSIAN) {
        /* Made once, where fp16 holds the entries in fp16; their common factor changes nothing in
         * the columns' span. */
        const bool halves = signs || simple->precision == GNOMON_FP16;
        void *s = halves ? v->half : v->z;
        GCU_TRY(v->why,
                gcu_svd_entries(&v->s->gpu, simple, 0, columns, v->n, halves, s, v->stream));
        return gcu_svd_multiply(v, false, s, halves ? GNOMON_F16 : GNOMON_F32, columns, v->y);
    }
    gnomon_matrix y = gnomon_matrix_rowmajor(v->y, GNOMON_F32, v->m, columns);
    y.memory = GNOMON_CUDA;
    gnomon_matrix x = v->a;
    x.memory = GNOMON_CUDA;
    gnomon_sketch_job job = {};
    job.op = op;
    job.x = &x;
    job.y = &y;
    job.alpha = 1.0;
    job.rows = columns;
    job.memory_limit = v->job->memory_limit;
    gnomon_device_host host = *v->job->host;
    host.progress = say_nothing;
    job.host = &host;
    job.stream = v->stream;
    v->job->passes++;
    return gcu_sketch_job(v->s, &job, v->why);
}

gnomon_status gcu_svd_probes(gcu_svd *v, int64_t count, float *g)
{
    GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &v->job->probes->factor[0], 0, count, v->n, false,
                                    g, v->stream));
    return GNOMON_OK;
}

/* Rows [row, row + rows) of the matrix. */
static gnomon_matrix rows_of(const gnomon_matrix *a, int64_t row, int64_t rows)
{
    gnomon_matrix part = *a;
    part.data = static_cast<float *>(a->data) + row * a->row_stride;
    part.rows = rows;
    return part;
}

gnomon_status gcu_svd_residual(gcu_svd *v, const float *b, gcu_gemm_view c, int64_t k,
                               double *residual)
{
    int64_t rows = tile_elements / v->n;
    rows = rows < 64 ? 64 : rows;
    rows = rows < v->m ? rows : v->m;
    gcu_svd_figures *figures = nullptr, seen;
    float *tile = nullptr;
    const int held = v->bag.count;
    gnomon_status status = gcu_svd_room(v, rows * v->n, &tile);
    if (status == GNOMON_OK) status = gcu_svd_room(v, figures_most(rows, v->n), &figures);
    double squares = 0;
    for (int64_t row = 0; row < v->m && status == GNOMON_OK; row += rows) {
        const int64_t count = rows < v->m - row ? rows : v->m - row;
        const gnomon_matrix from = rows_of(&v->a, row, count);
        gnomon_matrix to = gnomon_matrix_rowmajor(tile, GNOMON_F32, count, v->n);
        GCU_TRY(v->why, gcu_copy(&from, &to, v->stream));
        status =
            gcu_svd_product(v, count, v->n, k, -1.0f, gcu_svd_rows(b + row * k, k), c, 1.0f, tile);
        if (status == GNOMON_OK) status = figures_of(v, &to, figures + 1, figures);
        if (status != GNOMON_OK) break;
        GCU_TRY(v->why,
                cudaMemcpyAsync(&seen, figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
        squares += seen.squares;
    }
    gcu_svd_give(v, held);
    v->job->passes++;
    *residual = sqrt(squares);
    return status;
}
