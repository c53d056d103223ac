/* A factorisation from beginning to end: the order of the steps, the result, what it takes. */
#include "cuda/svd/condition.h"
#include "cuda/svd/f64.h"

#include <limits.h>
#include <math.h>

/* What the steps take for so many columns, and nearly what the products do. */
static double bytes_of(const gcu_svd *v, int64_t columns)
{
    const double tall = (double)(v->m > v->n ? v->m : v->n) * (double)columns;
    return 8.0 * 3 * tall + 2.0 * tall + 4.0 * (double)(v->m + v->n) * (double)columns +
           8.0 * (GCU_SVD_CHUNKS + 12) * (double)columns * (double)columns + 8.0 * tall;
}

/* ---- the steps ---- */

/* Columns that one round of a few launches takes. */
static gnomon_status condition_few(gcu_svd *v, gcu_svd_condition *c)
{
    const int64_t n = v->columns, parts = gcu_svd_condition_parts(c->rows, n);
    const int held = v->bag.count;
    const gnomon_status status = gcu_svd_room(v, parts + 2 * n * n, &c->parts);
    if (status != GNOMON_OK) return status;
    c->cols = (int)n;
    c->gram = c->parts + parts;
    c->inverse = c->gram + n * n;
    GCU_TRY(v->why, gcu_svd_condition_columns(c, &v->s->gpu, v->stream));
    gcu_svd_free(v, held);
    v->job->cholesky++;
    return GNOMON_OK;
}

static gnomon_status condition_many(gcu_svd *v, gcu_svd_condition *c)
{
    const int64_t count = c->rows * v->columns;
    double *tall = v->tall[0];
    GCU_TRY(v->why, gcu_svd_to_f64(c->from, count, tall, v->stream));
    const gnomon_status status = gcu_svd_orthonormalise(v, &tall, c->rows, v->columns, true);
    if (status != GNOMON_OK) return status;
    c->half = v->half;
    GCU_TRY(v->why, gcu_svd_halve(tall, count, c->factor, v->half, v->stream));
    return GNOMON_OK;
}

/* to = A or A^T times the columns of from made fit for it, as halves: their rounding moves the span
 * by 2^-12, which the product with the matrix then damps as it does all else outside of the leading
 * vectors. A power of two keeps short entries out of the subnormal range. */
static gnomon_status multiply_conditioned(gcu_svd *v, bool transposed, const float *from, float *to)
{
    const int held = v->bag.count;
    gcu_svd_condition c = {};
    c.rows = transposed ? v->m : v->n;
    c.from = from;
    c.factor = 1;
    for (int64_t four = 4; four <= c.rows && c.factor < 0x1p13; four *= 4)
        c.factor *= 2;
    const bool few = v->columns <= gcu_svd_condition_most(&v->s->gpu);
    const bool packed = few && gcu_svd_packing(v, transposed, v->columns, &c.packing);
    const int64_t halves =
        packed ? c.packing.chunks * c.packing.cols * GCU_GEMM_PACKED_LINE : c.rows * v->columns;
    gnomon_status status = GNOMON_OK;
    if (few) status = gcu_svd_alloc(v, (size_t)halves * 2, &c.half);
    if (status == GNOMON_OK) status = few ? condition_few(v, &c) : condition_many(v, &c);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_ORTHONORMALISE);
    if (status == GNOMON_OK)
        status = packed ? gcu_svd_multiply_packed(v, transposed, c.half, v->columns, to)
                        : gcu_svd_multiply(v, transposed, c.half, GNOMON_F16, v->columns, to);
    gcu_svd_free(v, held);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_POWER) : status;
}

gnomon_status gcu_svd_begin_span(gcu_svd *v)
{
    gnomon_status status = gcu_svd_project(v, v->columns);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_PROJECT);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

gnomon_status gcu_svd_iterate(gcu_svd *v)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < v->job->options->power && status == GNOMON_OK; i++) {
        status = multiply_conditioned(v, true, v->y, v->z);
        if (status == GNOMON_OK) status = multiply_conditioned(v, false, v->z, v->y);
        if (status == GNOMON_OK) status = gcu_svd_tell(v);
    }
    return status;
}

gnomon_status gcu_svd_end_span(gcu_svd *v)
{
    const gnomon_status status = gcu_svd_iterate(v);
    return status == GNOMON_OK ? gcu_svd_orthonormal_range(v) : status;
}

/* v->q, and in fp32 v->y, spans nearly A's range; v->z = A^T Q. */
static gnomon_status find_range(gcu_svd *v, int64_t columns)
{
    gnomon_status status = gcu_svd_alloc_columns(v, columns, true);
    if (status == GNOMON_OK) status = gcu_svd_begin_span(v);
    if (status == GNOMON_OK) status = gcu_svd_end_span(v);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_to_f32(v->q, v->m * columns, v->y, v->stream));
    if (status == GNOMON_OK) status = gcu_svd_multiply(v, true, v->y, GNOMON_F32, columns, v->z);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_POWER) : status;
}

/* One try of a tolerance: so many columns, and what they leave. */
typedef gnomon_status (*try_fn)(gcu_svd *v, int64_t columns, double *about);

static gnomon_status try_columns(gcu_svd *v, int64_t columns, double *about)
{
    gnomon_status status = find_range(v, columns);
    if (status == GNOMON_OK) status = gcu_svd_measure_rest(v, about);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_CERTIFY);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

static gnomon_status try_f64(gcu_svd *v, int64_t columns, double *about)
{
    gnomon_status status = gcu_svd_f64_range(v, columns);
    if (status == GNOMON_OK) status = gcu_svd_measure_rest(v, about);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

/* Twice as many columns until what they leave, measured, is little enough: all of them anew, which
 * at most doubles the work and keeps the columns of one projection. */
static gnomon_status find_range_by_tolerance(gcu_svd *v, try_fn with)
{
    gnomon_svd_job *job = v->job;
    const double u = v->f64 ? 0x1p-53 : 0x1p-24, wanted = job->options->tolerance * job->norm;
    int64_t columns = job->options->block;
    double before = INFINITY;
    const int held = v->bag.count;
    for (;;) {
        double about = 0;
        columns = columns < job->columns ? columns : job->columns;
        const gnomon_status status = with(v, columns, &about);
        if (status != GNOMON_OK) return status;
        /* Rounding is all that is left, and more columns would only follow it. */
        const bool floor =
            about <= 2 * u * job->norm || (about > 0.7 * before && about < 4096 * u * job->norm);
        if (job->rest <= wanted || floor || columns == job->columns) return GNOMON_OK;
        before = about;
        columns *= 2;
        gcu_svd_free(v, held);
    }
}

gnomon_status gcu_svd_hand_out(gcu_svd *v, const gnomon_matrix *to, void *data)
{
    gnomon_matrix from = gnomon_matrix_rowmajor(data, to->dtype, to->rows, to->cols);
    from.memory = GNOMON_DEVICE_MEMORY;
    gcu_place place;
    gnomon_status status = gcu_place_of(v->s, to, "the result", &place, v->why);
    if (status != GNOMON_OK) return status;
    if (place == GCU_DEVICE) {
        GCU_TRY(v->why, gcu_copy(&from, to, v->stream));
        return GNOMON_OK;
    }
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    return gcu_download(v->s, transfer, &from, to, place, v->stream, v->why);
}

static bool is_f64(const gnomon_svd_job *job)
{
    return job->options->dtype == GNOMON_F64;
}

/* Bytes that the matrix itself takes on the GPU. */
static double matrix_bytes(const gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    const double count = (double)a->rows * (double)a->cols;
    if (v->job->csr) return gcu_svd_sparse_bytes(v->job);
    const bool usable = a->dtype == gcu_svd_type(v);
    return a->memory == GNOMON_DEVICE_MEMORY && usable
               ? 0.0
               : count * (double)(gcu_svd_size(v) + (usable ? 0 : gnomon_dtype_size(a->dtype)));
}

/* Bytes for blocks of a matrix that does not come to the GPU as a whole. */
static double block_bytes(const gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    const double each = (double)gcu_svd_block_rows(a->rows, a->cols) * ((double)a->cols + 16);
    const bool converted = a->dtype != gcu_svd_type(v) || v->job->options->center;
    const double raw = a->memory == GNOMON_DEVICE_MEMORY ? 0.0 : 2.0;
    return each * (raw * (double)gnomon_dtype_size(a->dtype) +
                   (converted ? (double)gcu_svd_size(v) : 0.0));
}

/* What the steps take, nearly, beside the matrix; 'rows' of it, at most, are worked with at once.
 */
static double work_bytes(const gcu_svd *v, int64_t columns, int64_t rows)
{
    const gnomon_svd_options *o = v->job->options;
    const bool measures = !v->job->csr && (o->measure || o->tolerance > 0);
    return (v->f64 ? gcu_svd_f64_bytes(v, columns) : bytes_of(v, columns)) +
           (o->single_pass ? gcu_svd_single_pass_bytes(v, columns) : 0.0) +
           (measures ? (double)(gcu_svd_tile_rows(v, rows) * v->n) * (double)gcu_svd_size(v) : 0.0);
}

/* Whether it does not, because there is no room for it or because it lies nowhere. needed: what
 * the work takes then, so or so. */
static bool stays_apart(gcu_state *s, const gnomon_svd_job *job, double *needed, double *free)
{
    const gnomon_matrix *a = job->a;
    gcu_svd v = {};
    v.job = const_cast<gnomon_svd_job *>(job); /* which is only read here */
    v.f64 = is_f64(job);
    v.m = a->rows;
    v.n = a->cols;
    const int64_t first = job->options->tolerance > 0 && job->options->block < job->columns
                              ? job->options->block
                              : job->columns;
    /* The caller's on the GPU is not copied to be less its mean. */
    const bool as_it_lies = a->memory == GNOMON_DEVICE_MEMORY && job->options->center;
    const bool can_come = !job->rows && !as_it_lies;
    const double whole = matrix_bytes(&v) + work_bytes(&v, first, v.m);
    *needed = whole;
    *free = INFINITY;
    /* of what the pool holds unused the driver need not be asked */
    if (can_come && !s->memory_most && whole <= (double)gcu_kept_memory(s)) return false;
    *free = (double)gcu_free_memory(s);
    if (job->csr || (can_come && (whole <= *free || a->memory == GNOMON_DEVICE_MEMORY)))
        return false;
    const int64_t rows = gcu_svd_block_rows(v.m, v.n);
    *needed = block_bytes(&v) + work_bytes(&v, first, rows < v.m ? rows : v.m);
    return true;
}

static gnomon_status work(gcu_svd *v)
{
    gnomon_svd_job *job = v->job;
    const bool single_step = job->options->single_pass;
    gnomon_status status = gcu_blas_open(v->s, v->stream, &v->blas, v->why);
    if (status != GNOMON_OK) return status;
    v->seen = static_cast<gcu_svd_stats *>(v->blas->page);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_PROJECT);
    double needed, free;
    if (status == GNOMON_OK) status = gcu_svd_bring(v, stays_apart(v->s, job, &needed, &free));
    if (status == GNOMON_OK && !(single_step && v->blocks.rows)) status = gcu_svd_check(v);
    if (status == GNOMON_OK) {
        if (single_step)
            status = gcu_svd_single_pass(v);
        else if (job->options->tolerance > 0)
            status = find_range_by_tolerance(v, v->f64 ? try_f64 : try_columns);
        else
            status = v->f64 ? gcu_svd_f64_range(v, job->columns) : find_range(v, job->columns);
    }
    int64_t rank = 0;
    if (status == GNOMON_OK)
        status = v->f64 ? gcu_svd_f64_small(v, &rank) : gcu_svd_small(v, &rank);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SMALL);
    if (status == GNOMON_OK) status = gcu_svd_certify(v, rank);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_CERTIFY);
    gnomon_matrix u, vt;
    job->used_columns = v->columns;
    if (status == GNOMON_OK) status = job->calls->make_room(job->calls->user, rank, &u, &vt);
    if (status == GNOMON_OK) status = gcu_svd_hand_out(v, &u, gcu_svd_left(v));
    if (status == GNOMON_OK) status = gcu_svd_hand_out(v, &vt, gcu_svd_right(v));
    return status;
}

bool gcu_svd_supported(gcu_state *s, const gnomon_svd_job *job, gcu_why why)
{
    const gnomon_matrix *a = job->a;
    const char *reason = gcu_blas_missing();
    if (!reason && job->csr) reason = gcu_svd_sparse_reason(job);
    if (!reason && (a->rows > INT_MAX - GCU_SVD_CHUNKS || a->cols > INT_MAX - GCU_SVD_CHUNKS))
        reason = "the matrix has more than 2^31 rows or columns";
    if (reason) {
        gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", reason);
        return false;
    }
    double needed, free;
    stays_apart(s, job, &needed, &free);
    if (needed > free) {
        gcu_fail(why, GNOMON_ERROR_DEVICE,
                 "the factors and blocks of the matrix need %.1f GiB of the GPU's memory, %.1f are "
                 "free; the CPU takes data of any size",
                 needed / 0x1p30, free / 0x1p30);
        return false;
    }
    return true;
}

gnomon_status gcu_svd_job(gcu_state *s, gnomon_svd_job *job, gcu_why why)
{
    gcu_svd v = {};
    v.s = s;
    v.job = job;
    v.f64 = is_f64(job);
    v.why = why;
    v.stream = s->stream;
    v.m = job->a->rows;
    v.n = job->a->cols;
    job->rest = job->residual = (double)NAN;
    double seconds[GCU_PHASES];
    const gnomon_status worked = work(&v);
    if (v.blocks.rows) gcu_svd_blocks_close(&v);
    const gnomon_status status = gcu_svd_close(&v, seconds, gcu_svd_shares_close(&v, worked));
    job->project_seconds = seconds[GCU_PROJECT];
    job->power_seconds = seconds[GCU_POWER];
    job->orthonormalise_seconds = seconds[GCU_ORTHONORMALISE];
    job->small_seconds = seconds[GCU_SMALL];
    job->certify_seconds = seconds[GCU_CERTIFY];
    return status;
}
