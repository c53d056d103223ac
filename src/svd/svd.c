/* The calls: checking what is asked for, the order of the steps, the result. */
#include "base/clock.h"
#include "base/context.h"
#include "base/device.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "project/job.h"
#include "svd/factor.h"
#include "svd/row_pass.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_svd_options, GNOMON_SVD_OPTIONS_INIT)

const char *gnomon_svd_missing(void)
{
    return gnomon_blas_missing();
}

const char *gnomon_svd_blas(void)
{
    return gnomon_blas_about();
}

static gnomon_status make_test_vectors(gnomon_factor *f)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_GAUSSIAN;
    d.scaling = GNOMON_UNSCALED;
    /* Other numbers than the projection's, whatever its seed. */
    d.seed = f->options.seed ^ UINT64_C(0x9e3779b97f4a7c15);
    if (f->options.descriptor != NULL) d.seed ^= f->options.descriptor->seed;
    d.k = (int64_t)1 << 32;
    d.d = (int64_t)1 << 56;
    return gnomon_operator_create(f->ctx, &d, &f->test_vectors);
}

/* Power iterations by default. */
enum { RANK_POWER = 6, TOLERANCE_POWER = 2 };

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_svd_options *given,
                                  gnomon_svd_options *o)
{
    *o = (gnomon_svd_options)GNOMON_SVD_OPTIONS_INIT;
    GNOMON_FAIL_IF(given == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options") " is NULL; options.rank or options.tolerance must be set");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_svd_options, given, o));
    GNOMON_FAIL_IF(!(o->tolerance >= 0 && o->tolerance < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("tolerance") " is %g; it must be 0 (fixed rank) or in (0, 1)",
                   o->tolerance);
    GNOMON_FAIL_IF(o->rank < 0 || (o->rank == 0 && o->tolerance == 0), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rank") " is %" PRId64
                                      "; it must be at least 1, or 0 with a tolerance",
                   o->rank);
    GNOMON_FAIL_IF(o->oversample < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("oversample") " is %" PRId64 "; it must not be negative",
                   o->oversample);
    GNOMON_FAIL_IF(o->power < -1 || o->power > 100, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("power") " is %d; allowed are 0 to 100, and -1 for the default",
                   o->power);
    if (o->power < 0) o->power = o->tolerance > 0 ? TOLERANCE_POWER : RANK_POWER;
    GNOMON_FAIL_IF(o->block < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("block") " is %" PRId64 "; it must not be negative", o->block);
    GNOMON_FAIL_IF(o->test_vectors < 0 || o->test_vectors > 1000, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("test_vectors") " is %" PRId64 "; allowed are 0 to 1000",
                   o->test_vectors);
    GNOMON_FAIL_IF(o->test_power < 0 || o->test_power > 100, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("test_power") " is %d; allowed are 0 to 100", o->test_power);
    GNOMON_FAIL_IF(o->center != 0 && o->center != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("center") " is %d; allowed are 0 and 1", o->center);
    GNOMON_FAIL_IF(o->standardize != 0 && o->standardize != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("standardize") " is %d; allowed are 0 and 1", o->standardize);
    GNOMON_FAIL_IF(o->standardize && o->single_pass, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("standardize") " reads the rows before they are projected, which "
                                             "single_pass rules out");
    if (o->standardize) o->center = 1;
    GNOMON_FAIL_IF(o->dtype != 0 && o->dtype != GNOMON_F32 && o->dtype != GNOMON_F64, ctx,
                   GNOMON_ERROR_DTYPE, GNOMON_ARG("dtype") " is %d; allowed are F32, F64 and 0",
                   (int)o->dtype);
    GNOMON_FAIL_IF(
        o->single_pass && o->tolerance > 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG(
            "tolerance") " is %g with single_pass; rows that are read once need a fixed rank",
        o->tolerance);
    GNOMON_FAIL_IF(o->single_pass && o->measure, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("measure") " reads the rows again, which single_pass rules out");
    return GNOMON_OK;
}

/* A view for U or Vt that options name. */
static gnomon_status check_given(gnomon_factor *f, const gnomon_matrix *given, const char *name,
                                 int64_t rows, int64_t cols)
{
    const gnomon_dtype dtype = f->f64 ? GNOMON_F64 : GNOMON_F32;
    if (given == NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_check_anywhere(f->ctx, given, name, true));
    GNOMON_FAIL_IF(given->dtype != dtype, f->ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s.dtype") " is %s; it is %s", name, gnomon_dtype_name(given->dtype),
                   gnomon_dtype_name(dtype));
    GNOMON_FAIL_IF(given->rows < rows || given->cols < cols, f->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") " is %" PRId64 " x %" PRId64 "; %" PRId64 " x %" PRId64
                                    " may be needed",
                   name, given->rows, given->cols, rows, cols);
    return GNOMON_OK;
}

/* Against the shape, once it is known. */
static gnomon_status check_rank(gnomon_factor *f)
{
    const gnomon_row_source *s = &f->source;
    const int64_t least = s->rows >= 0 && s->rows < s->cols ? s->rows : s->cols;
    GNOMON_FAIL_IF(s->rows == 0, f->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is 0 x %" PRId64 "; it must have rows and columns", s->cols);
    GNOMON_FAIL_IF(f->options.rank > least, f->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rank") " is %" PRId64 "; it must be at most %" PRId64
                                      ", the smaller side of the matrix",
                   f->options.rank, least);
    if (f->options.rank == 0) f->options.rank = least;
    GNOMON_TRY(
        check_given(f, f->options.u, "options.u", s->rows < 0 ? 0 : s->rows, f->options.rank));
    return check_given(f, f->options.vt, "options.vt", f->options.rank, s->cols);
}

/* to (of_transpose: its transpose) = from, some rows a task: a line of 'to' gets as many neighbours
 * at a time. */
enum { PUT_ROWS = 32 };

typedef struct transfer {
    const gnomon_tall *from;
    const gnomon_matrix *to;
    int64_t row_step, col_step; /* in 'to', for a row and a column of 'from' */
} transfer;

static void put_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const transfer *t = arg;
    const int64_t first = task * PUT_ROWS, cols = t->from->cols;
    const int64_t end = first + PUT_ROWS < t->from->rows ? first + PUT_ROWS : t->from->rows;
    for (int64_t j = 0; j < cols; j++) {
        for (int64_t i = first; i < end; i++) {
            const int64_t at = i * t->row_step + j * t->col_step;
            if (t->from->f64)
                ((double *)t->to->data)[at] = ((const double *)t->from->data)[i * cols + j];
            else
                ((float *)t->to->data)[at] = ((const float *)t->from->data)[i * cols + j];
        }
    }
}

static void put(gnomon_context *ctx, const gnomon_tall *from, bool of_transpose,
                const gnomon_matrix *to)
{
    transfer t = {from, to, of_transpose ? to->col_stride : to->row_stride,
                  of_transpose ? to->row_stride : to->col_stride};
    gnomon_parallel(ctx, (from->rows + PUT_ROWS - 1) / PUT_ROWS, put_rows, &t);
}

/* The vectors, out of the tall matrices. */
static gnomon_status hand_out(gnomon_factor *f)
{
    gnomon_svd *out = f->out;
    const int64_t n = f->v.rows, k = out->rank;
    GNOMON_TRY(gnomon_factor_room(f, f->options.vt, k, n, "right vectors", &out->vt));
    put(f->ctx, &f->v, true, &out->vt);
    if (f->options.u != NULL) {
        GNOMON_TRY(gnomon_factor_room(f, f->options.u, f->u.rows, k, "left vectors", &out->u));
        put(f->ctx, &f->u, false, &out->u);
    } else {
        out->u = gnomon_matrix_rowmajor(f->u.data, f->f64 ? GNOMON_F64 : GNOMON_F32, f->u.rows, k);
        f->u.data = NULL;
    }
    return GNOMON_OK;
}

/* The figures, scaled back. */
static void fill_in(gnomon_factor *f)
{
    gnomon_svd *out = f->out;
    const int exponent = f->source.exponent; /* 2^exponent may be beyond the range */
    out->rows = f->source.rows;
    out->cols = f->source.cols;
    out->s = f->s;
    f->s = NULL;
    const double u = f->f64 ? 0x1p-53 : 0x1p-24;
    const double least =
        fmax(u * (double)(out->rows > out->cols ? out->rows : out->cols) * out->s[0],
             f->source.center.rounding);
    for (int64_t i = 0; i < out->rank; i++) {
        if (out->s[i] > least) out->numerical_rank++;
        out->s[i] = ldexp(out->s[i], exponent);
    }
    out->norm = ldexp(f->source.norm, exponent);
    out->residual = ldexp(out->residual, exponent);
    out->residual_estimate = ldexp(out->residual_estimate, exponent);
    out->residual_bound = ldexp(out->residual_bound, exponent);
    out->spectral_estimate = ldexp(out->spectral_estimate, exponent);
    out->spectral_bound = ldexp(out->spectral_bound, exponent);
    out->passes = f->source.passes;
    out->cholesky = f->orth.cholesky;
    out->householder = f->orth.householder;
    out->power = f->options.single_pass ? 0 : f->options.power;
    out->single_pass = f->options.single_pass;
    out->centered = f->source.centered;
    out->standardized = f->source.standardized;
    gnomon_centering *const c = &f->source.center;
    if (c->offset == c->mean) c->offset = NULL;
    out->mean = c->mean;
    out->scale = c->scale;
    c->mean = c->scale = NULL;
    for (int64_t j = 0; out->scale != NULL && j < out->cols; j++)
        if (out->scale[j] == 0) out->scale[j] = 1;
}

/* What each singular value explains of the whole. */
static gnomon_status explain(gnomon_context *ctx, gnomon_svd *out)
{
    const double free_rows = (double)(out->rows - 1);
    GNOMON_TRY(gnomon_alloc(ctx, out->rank, sizeof *out->explained_ratio, "shares of the norm",
                            &out->explained_ratio));
    for (int64_t i = 0; i < out->rank; i++) {
        const double share = out->s[i] / out->norm;
        out->explained_ratio[i] = out->norm > 0 ? fmin(share * share, 1) : (double)NAN;
    }
    if (!out->centered) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, out->rank, sizeof *out->explained_variance, "variances",
                            &out->explained_variance));
    if (out->rows > 1) out->total_variance = out->norm * (out->norm / free_rows);
    for (int64_t i = 0; i < out->rank; i++)
        out->explained_variance[i] =
            out->rows > 1 ? out->s[i] * (out->s[i] / free_rows) : (double)NAN;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_factor *f)
{
    const bool stream = gnomon_row_source_streams(&f->source);
    const bool one_pass = f->options.single_pass;
    GNOMON_FAIL_IF(
        f->source.stream != NULL && !one_pass && f->source.stream->rewind == NULL, f->ctx,
        GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("rows.rewind") " is NULL: rows that can be read once need single_pass");
    f->source.center.once = f->source.centered && one_pass && !f->source.sparse;
    if (!((stream || f->source.center.once) && one_pass))
        GNOMON_TRY(gnomon_row_source_scan(&f->source));
    f->source.passes = 0;
    f->out->project_seconds += gnomon_lap(&f->clock);
    if (stream) GNOMON_TRY(check_rank(f)); /* the rows are known by now */
    GNOMON_TRY(gnomon_factor_check_memory(f, false));
    if (one_pass)
        GNOMON_TRY(gnomon_range_single(f));
    else if (f->options.tolerance > 0)
        GNOMON_TRY(gnomon_range_adaptive(f));
    else
        GNOMON_TRY(gnomon_range_fixed(f));
    GNOMON_TRY(gnomon_small_svd(f));
    GNOMON_TRY(gnomon_certify(f));
    return hand_out(f);
}

static void release(gnomon_factor *f)
{
    gnomon_tall_drop(f->ctx, &f->q);
    gnomon_tall_drop(f->ctx, &f->bt);
    gnomon_tall_drop(f->ctx, &f->u);
    gnomon_tall_drop(f->ctx, &f->v);
    gnomon_tall_drop(f->ctx, &f->seen);
    gnomon_free(f->ctx, f->s);
    gnomon_operator_destroy(f->op);
    gnomon_operator_destroy(f->test_vectors);
    gnomon_row_source_close(&f->source);
}

/* What can be checked before any number is read. */
static gnomon_status prepare(gnomon_factor *f)
{
    GNOMON_FAIL_IF(
        f->options.measure && f->source.sparse, f->ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("measure") " would fill a sparse matrix out; its residual_bound tells as much");
    GNOMON_TRY(make_test_vectors(f));
    return f->source.rows >= 0 ? check_rank(f) : GNOMON_OK;
}

static gnomon_status run_on_cpu(gnomon_factor *f)
{
    gnomon_context *ctx = f->ctx;
    const gnomon_matrix *given[] = {f->options.u, f->options.vt};
    GNOMON_TRY(gnomon_blas_prepare(ctx));
    GNOMON_FAIL_IF(f->source.cols > GNOMON_BLAS_MAX, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("a") " has %" PRId64 " columns; at most %" PRId64 " are taken",
                   f->source.cols, GNOMON_BLAS_MAX);
    for (int i = 0; i < 2; i++)
        GNOMON_FAIL_IF(
            given[i] != NULL && given[i]->memory != GNOMON_HOST, ctx, GNOMON_ERROR_DEVICE,
            GNOMON_ARG("options.%s") " lies in a device's memory, and the work runs on the CPU",
            i == 0 ? "u" : "vt");
    if (f->options.block == 0) f->options.block = 32;
    gnomon_blas_enter();
    const gnomon_status status = run(f);
    gnomon_blas_leave();
    return status;
}

static void return_result(gnomon_context *ctx, gnomon_svd *full, gnomon_svd *out)
{
    const bool given_u = full->given_u, given_vt = full->given_vt;
    gnomon_return_result(out, full, sizeof *full);
    /* what did not fit is freed, but for what is the caller's */
    if (given_u) full->u.data = NULL;
    if (given_vt) full->vt.data = NULL;
    gnomon_svd_free(ctx, full);
}

/* ---- rows that are divided among ranks ---- */

/* What one process does alone. */
static gnomon_status check_divided(gnomon_factor *f, const gnomon_matrix *matrix,
                                   const gnomon_svd_sparse_rows *sparse)
{
    GNOMON_FAIL_IF(matrix != NULL && matrix->memory != GNOMON_HOST, f->ctx, GNOMON_ERROR_DEVICE,
                   GNOMON_ARG("a") " lies in a device's memory, and ranks factor on the CPU");
    GNOMON_FAIL_IF(sparse != NULL, f->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("options.comm") " has several ranks; each holds its sparse rows in "
                                              "memory: gnomon_svd_csr takes them");
    GNOMON_FAIL_IF(f->options.single_pass, f->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("options.comm") " has several ranks; they read rows several times, "
                                              "which single_pass rules out");
    GNOMON_TRY(gnomon_device_refuse(f->ctx, GNOMON_BY_CONTEXT, "ranks factor on the CPU"));
    gnomon_context_set_worked(f->ctx, NULL);
    return gnomon_blas_prepare(f->ctx);
}

/* Begins on all ranks, and does the part of those that rank 0 tells what to do. */
static gnomon_status begin_divided(gnomon_factor *f, gnomon_row_ranks *ranks, gnomon_status status)
{
    GNOMON_TRY(gnomon_row_ranks_begin(&f->source, ranks, status));
    return gnomon_row_ranks_serve(&f->source, gnomon_row_source_serve, &f->source);
}

static gnomon_status open_source(gnomon_factor *f, const gnomon_matrix *matrix,
                                 const gnomon_csr *csr, const gnomon_svd_rows *stream,
                                 const gnomon_svd_sparse_rows *sparse, gnomon_row_ranks *ranks)
{
    const bool divided = ranks->comm.size > 1;
    gnomon_status status;
    if (divided) {
        status = check_divided(f, matrix, sparse);
        if (status == GNOMON_OK)
            status = gnomon_row_source_open_part(f->ctx, matrix, csr, stream, f->f64, &f->source);
        f->source.ctx = f->ctx;
    } else if (sparse != NULL) {
        status = gnomon_row_source_open_sparse(f->ctx, sparse, f->f64, &f->source);
    } else {
        status = gnomon_row_source_open(f->ctx, matrix, csr, stream, f->f64, &f->source);
    }
    f->source.centered = f->options.center;
    f->source.standardized = f->options.standardize;
    return divided ? begin_divided(f, ranks, status) : status;
}

static gnomon_status run_all(gnomon_factor *f)
{
    bool done = false;
    GNOMON_TRY(prepare(f));
    if (!gnomon_row_divided(&f->source)) GNOMON_TRY(gnomon_factor_on_device(f, &done));
    if (!done) GNOMON_TRY(run_on_cpu(f));
    fill_in(f);
    return explain(f->ctx, f->out);
}

static gnomon_status factor(gnomon_context *ctx, const gnomon_matrix *matrix, const gnomon_csr *csr,
                            const gnomon_svd_rows *stream, const gnomon_svd_sparse_rows *sparse,
                            gnomon_dtype dtype, const gnomon_svd_options *options, gnomon_svd *out)
{
    gnomon_factor f;
    memset(&f, 0, sizeof f);
    gnomon_svd full = {.struct_size = sizeof full,
                       .descriptor = {.struct_size = sizeof full.descriptor},
                       .converged = 1,
                       .residual = (double)NAN,
                       .residual_estimate = (double)NAN,
                       .residual_bound = (double)NAN,
                       .spectral_estimate = (double)NAN,
                       .spectral_bound = (double)NAN,
                       .failure = GNOMON_FAILURE,
                       .converged_values = -1,
                       .total_variance = (double)NAN,
                       .given_u = options->u != NULL,
                       .given_vt = options->vt != NULL};
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    f.ctx = ctx;
    f.out = &full;
    f.options = *options;
    if (options->descriptor != NULL) {
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options.descriptor", gnomon_descriptor,
                                       options->descriptor, &descriptor));
        f.options.descriptor = &descriptor;
    }
    f.f64 = gnomon_dtype_needs_f64(options->dtype != 0 ? options->dtype : dtype);
    f.rest = (double)NAN;
    (void)gnomon_lap(&f.clock);
    gnomon_row_ranks ranks;
    GNOMON_TRY(gnomon_row_ranks_open(ctx, options->comm, &ranks));
    gnomon_status status = open_source(&f, matrix, csr, stream, sparse, &ranks);
    if (ranks.comm.rank == 0) {
        if (status == GNOMON_OK) status = run_all(&f);
        status = gnomon_row_ranks_end(&f.source, status);
    }
    release(&f);
    if (status == GNOMON_OK) return_result(ctx, &full, out);
    gnomon_svd_free(ctx, &full);
    return status;
}

gnomon_status gnomon_svd_dense(gnomon_context *ctx, const gnomon_matrix *a,
                               const gnomon_svd_options *given, gnomon_svd *out)
{
    gnomon_svd_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_svd, out));
    GNOMON_TRY(copy_options(ctx, given, &options));
    GNOMON_TRY(gnomon_check_anywhere(ctx, a, "a", false));
    return factor(ctx, a, NULL, NULL, NULL, a->dtype, &options, out);
}

gnomon_status gnomon_svd_csr(gnomon_context *ctx, const gnomon_csr *a,
                             const gnomon_svd_options *given, gnomon_svd *out)
{
    gnomon_svd_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_svd, out));
    GNOMON_TRY(copy_options(ctx, given, &options));
    GNOMON_FAIL_IF(a == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("a") " is NULL");
    return factor(ctx, NULL, a, NULL, NULL, a->dtype, &options, out);
}

gnomon_status gnomon_svd_stream(gnomon_context *ctx, const gnomon_svd_rows *rows,
                                const gnomon_svd_options *given, gnomon_svd *out)
{
    gnomon_svd_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_svd, out));
    GNOMON_TRY(copy_options(ctx, given, &options));
    GNOMON_FAIL_IF(rows == NULL || rows->next == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " or rows.next is NULL");
    GNOMON_FAIL_IF(rows->rows < -1 || rows->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   rows->rows, rows->cols);
    return factor(ctx, NULL, NULL, rows, NULL, rows->dtype, &options, out);
}

gnomon_status gnomon_svd_csr_stream(gnomon_context *ctx, const gnomon_svd_sparse_rows *rows,
                                    const gnomon_svd_options *given, gnomon_svd *out)
{
    gnomon_svd_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_svd, out));
    GNOMON_TRY(copy_options(ctx, given, &options));
    GNOMON_FAIL_IF(rows == NULL || rows->next == NULL || rows->rewind == NULL, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") ", rows.next or rows.rewind is NULL; sparse rows are read "
                                      "several times");
    GNOMON_FAIL_IF(rows->rows < -1 || rows->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   rows->rows, rows->cols);
    GNOMON_FAIL_IF(rows->dtype != GNOMON_F32 && rows->dtype != GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("rows.dtype") " is %d; allowed are F32 and F64", (int)rows->dtype);
    GNOMON_FAIL_IF(
        options.single_pass, ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("single_pass") " is not done for sparse rows that come piece by piece; "
                                  "they are read several times");
    return factor(ctx, NULL, NULL, NULL, rows, rows->dtype, &options, out);
}

int64_t gnomon_svd_memory(gnomon_context *ctx, int64_t rows, int64_t cols, gnomon_dtype dtype,
                          const gnomon_svd_options *options)
{
    gnomon_svd_options o;
    if (ctx == NULL || rows < 1 || cols < 1 || copy_options(ctx, options, &o) != GNOMON_OK)
        return -1;
    const bool f64 = gnomon_dtype_needs_f64(o.dtype != 0 ? o.dtype : dtype);
    return gnomon_factor_memory(ctx, rows, cols, f64, &o);
}

void gnomon_svd_free(gnomon_context *ctx, gnomon_svd *svd)
{
    gnomon_svd full;
    if (ctx == NULL || !gnomon_load_result(svd, &full, sizeof full)) return;
    if (!full.given_u) gnomon_free(ctx, full.u.data);
    gnomon_free(ctx, full.s);
    gnomon_free(ctx, full.mean);
    gnomon_free(ctx, full.scale);
    gnomon_free(ctx, full.explained_variance);
    gnomon_free(ctx, full.explained_ratio);
    if (!full.given_vt) gnomon_free(ctx, full.vt.data);
    gnomon_clear_result(svd);
}
