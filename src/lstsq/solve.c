/* The calls: checking what is asked for, the order of the steps. */
#include "base/clock.h"
#include "base/context.h"
#include "base/device.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"
#include "lstsq/underdetermined.h"
#include "points/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_lstsq_options, GNOMON_LSTSQ_OPTIONS_INIT)

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_lstsq_options *given,
                                  gnomon_lstsq_options *o)
{
    *o = (gnomon_lstsq_options)GNOMON_LSTSQ_OPTIONS_INIT;
    if (given == NULL) return GNOMON_OK;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_lstsq_options, given, o));
    GNOMON_FAIL_IF(!(o->damp >= 0 && isfinite(o->damp)), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("damp") " is %g; it must be finite and not negative", o->damp);
    GNOMON_FAIL_IF(!(o->tolerance > 0 && o->tolerance < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("tolerance") " is %g; it must be in (0, 1)", o->tolerance);
    GNOMON_FAIL_IF(!(o->rcond >= 0 && o->rcond < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rcond") " is %g; it must be in [0, 1)", o->rcond);
    GNOMON_FAIL_IF(o->iterations < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("iterations") " is %" PRId64 "; it must not be negative",
                   o->iterations);
    GNOMON_FAIL_IF(o->sketch_size < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("sketch_size") " is %" PRId64 "; it must not be negative",
                   o->sketch_size);
    GNOMON_FAIL_IF(o->test_vectors < 0 || o->test_vectors > 100, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("test_vectors") " is %" PRId64 "; allowed are 0 to 100",
                   o->test_vectors);
    GNOMON_FAIL_IF(o->dtype != 0 && o->dtype != GNOMON_F32 && o->dtype != GNOMON_F64, ctx,
                   GNOMON_ERROR_DTYPE, GNOMON_ARG("dtype") " is %d; allowed are F32, F64 and 0",
                   (int)o->dtype);
    return GNOMON_OK;
}

/* Against the shape, once it is known. */
static gnomon_status check_shape(const gnomon_solver *s)
{
    const bool underdetermined = s->underdetermined != NULL;
    const int64_t rows = underdetermined ? s->d : s->n;
    GNOMON_FAIL_IF(s->b->rows != rows, s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("b") " has %" PRId64 " rows and a has %" PRId64
                                   "; they must have as many",
                   s->b->rows, rows);
    GNOMON_FAIL_IF(
        s->n < s->d, s->ctx, GNOMON_ERROR_SHAPE,
        GNOMON_ARG(
            "a") " is %" PRId64 " x %" PRId64
                 "; rows that come piece by piece must be at least as many as columns: what has "
                 "fewer must be in memory",
        s->n, s->d);
    GNOMON_FAIL_IF(s->d > GNOMON_BLAS_MAX, s->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("a") " has %" PRId64 " %s; at most %" PRId64 " are taken", s->d,
                   underdetermined ? "rows" : "columns", GNOMON_BLAS_MAX);
    GNOMON_FAIL_IF(s->options.sketch_size > 0 && s->options.sketch_size < s->d, s->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("sketch_size") " is %" PRId64 "; it must be 0 or at least %" PRId64
                                             ", the smaller side of the matrix",
                   s->options.sketch_size, s->d);
    return GNOMON_OK;
}

/* What is found in the transpose is told by A's rows and columns. */
static gnomon_status refuse(void *user, int64_t row, int64_t col)
{
    const gnomon_solver *s = user;
    return gnomon_fail(s->ctx, GNOMON_ERROR_NONFINITE,
                       GNOMON_ARG("a") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                       ", column " GNOMON_AT_COL "%" PRId64
                                       " (both counted from 0)",
                       col, row);
}

static gnomon_status scan(gnomon_solver *s)
{
    if (s->underdetermined != NULL) {
        s->source.refuse = refuse;
        s->source.refuse_user = s;
    }
    return gnomon_row_source_scan(&s->source);
}

/* Where lambda is far above A, it is what the scaling must tame. */
static void scale_lambda(gnomon_solver *s)
{
    s->lambda = ldexp(s->options.damp, -s->source.exponent);
    if (s->lambda >= 0x1p300) {
        int more = 0;
        frexp(s->lambda, &more);
        gnomon_row_source_close(&s->source);
        s->source.exponent += more;
        s->source.norm = ldexp(s->source.norm, -more);
        s->lambda = ldexp(s->lambda, -more);
    }
    s->norm = hypot(s->source.norm, s->lambda * sqrt((double)s->d));
}

static gnomon_status allocate(gnomon_solver *s, gnomon_state *state)
{
    const int64_t d = s->d, m = s->m;
    int64_t squared, numbers;
    GNOMON_FAIL_IF(!gnomon_mul(d, 8 * d, &squared) ||
                       !gnomon_mul(64 * d, m + s->options.test_vectors + 1, &numbers),
                   s->ctx, GNOMON_ERROR_OVERFLOW,
                   "products of d and the columns of b do not fit 63 "
                   "bits");
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, m, sizeof(int), "exponents", &s->exponent));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &s->norm_b));
    GNOMON_TRY(gnomon_alloc(s->ctx, d, sizeof(double), "singular values", &s->sigma));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, d), sizeof(double), "right vectors", &s->v));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof(double), "the solution", &s->x));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &state->plain));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &state->squares));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &state->norm_x));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &state->norm_dx));
    GNOMON_TRY(gnomon_alloc(s->ctx, m, sizeof(double), "norms", &state->error));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof(double), "a gradient", &state->g));
    return gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof(double), "the solution",
                        &state->transposed);
}

static gnomon_status run(gnomon_solver *s, gnomon_state *state)
{
    const gnomon_svd_rows *stream = s->source.stream;
    GNOMON_FAIL_IF(stream != NULL && stream->rewind == NULL, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows.rewind") " is NULL: the rows must be read again and again");
    s->n = s->source.rows;
    if (s->n >= 0) GNOMON_TRY(check_shape(s));
    GNOMON_TRY(scan(s));
    s->source.passes = 0;
    s->n = s->source.rows;
    GNOMON_FAIL_IF(s->n == 0, s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is 0 x %" PRId64 "; it must have rows and columns", s->d);
    GNOMON_TRY(check_shape(s));
    GNOMON_TRY(allocate(s, state));
    scale_lambda(s);
    GNOMON_TRY(s->underdetermined != NULL ? gnomon_underdetermined_begin(s)
                                          : gnomon_solver_scan_b(s));
    s->out->check_seconds = gnomon_lap(&s->clock);
    GNOMON_TRY(gnomon_gram_precondition(s));
    if (s->r == NULL) GNOMON_TRY(gnomon_solver_sketch(s));
    s->out->sketch_seconds = gnomon_lap(&s->clock);
    GNOMON_TRY(gnomon_solver_precondition(s));
    GNOMON_TRY(gnomon_test_vectors_draw(s));
    s->out->factor_seconds = gnomon_lap(&s->clock);
    GNOMON_TRY(gnomon_solver_iterate(s, state));
    GNOMON_TRY(gnomon_solver_finish(s, state));
    s->out->rows = s->underdetermined != NULL ? s->d : s->n;
    s->out->cols = s->underdetermined != NULL ? s->n : s->d;
    s->out->targets = s->m;
    s->out->passes = s->source.passes + 1;
    s->out->certify_seconds += gnomon_lap(&s->clock);
    return GNOMON_OK;
}

static void release(gnomon_solver *s, gnomon_state *state)
{
    gnomon_context *ctx = s->ctx;
    gnomon_tall_drop(ctx, &s->sa);
    gnomon_tall_drop(ctx, &s->sb);
    gnomon_free(ctx, s->exponent);
    gnomon_free(ctx, s->norm_b);
    gnomon_free(ctx, s->r);
    gnomon_free(ctx, s->qb);
    gnomon_free(ctx, s->columns);
    gnomon_free(ctx, s->sigma);
    gnomon_free(ctx, s->v);
    gnomon_free(ctx, s->x);
    gnomon_free(ctx, state->plain);
    gnomon_free(ctx, state->squares);
    gnomon_free(ctx, state->norm_x);
    gnomon_free(ctx, state->norm_dx);
    gnomon_free(ctx, state->error);
    gnomon_free(ctx, state->g);
    gnomon_free(ctx, state->transposed);
    gnomon_test_vectors_drop(s);
    gnomon_underdetermined_drop(s);
    gnomon_operator_destroy(s->op);
    gnomon_row_source_close(&s->source);
}

/* ---- rows that are divided among ranks ---- */

static gnomon_status serve(void *user, const gnomon_row_step *step)
{
    gnomon_solver *s = user;
    switch (step->kind) {
    case GNOMON_STEP_SWEEP:
        return gnomon_sweep_serve(s, step);
    case GNOMON_STEP_SKETCH_COLUMNS:
    case GNOMON_STEP_COPY:
        return gnomon_solver_sketch_serve(s, step);
    default:
        return gnomon_row_source_serve(&s->source, step);
    }
}

/* What a rank that serves knows of b. */
static gnomon_status prepare_b(gnomon_solver *s)
{
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->m, sizeof(int), "exponents", &s->exponent));
    GNOMON_TRY(gnomon_alloc(s->ctx, s->m, sizeof(double), "norms", &s->norm_b));
    return gnomon_solver_scan_b(s);
}

/* Begins on all ranks, and does the part of those that rank 0 tells what to do. */
static gnomon_status begin_divided(gnomon_solver *s, gnomon_row_ranks *ranks,
                                   const gnomon_matrix *matrix, const gnomon_csr *csr,
                                   const gnomon_svd_rows *stream, bool f64, gnomon_status status)
{
    if (status == GNOMON_OK)
        status = gnomon_row_source_open_part(s->ctx, matrix, csr, stream, f64, &s->source);
    s->source.ctx = s->ctx;
    s->d = s->source.cols;
    GNOMON_TRY(gnomon_row_ranks_begin(&s->source, ranks, status));
    s->n = s->source.rows;
    status = check_shape(s);
    if (status == GNOMON_OK && ranks->comm.rank > 0) status = prepare_b(s);
    if (status == GNOMON_ERROR_NONFINITE) status = GNOMON_OK; /* as rank 0 will tell */
    GNOMON_TRY(gnomon_row_step_ready(&s->source, status));
    return gnomon_row_ranks_serve(&s->source, serve, s);
}

static gnomon_status check_machine(const gnomon_solver *s)
{
    GNOMON_TRY(gnomon_blas_prepare(s->ctx));
    GNOMON_TRY(gnomon_device_refuse(s->ctx, GNOMON_BY_CONTEXT, "least squares run on the CPU"));
    gnomon_context_set_worked(s->ctx, NULL);
    GNOMON_FAIL_IF(s->m > GNOMON_BLAS_MAX, s->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("b") " has %" PRId64 " columns; at most %" PRId64 " are taken", s->m,
                   GNOMON_BLAS_MAX);
    return GNOMON_OK;
}

static gnomon_status solve(gnomon_context *ctx, const gnomon_matrix *matrix, const gnomon_csr *csr,
                           const gnomon_svd_rows *stream, gnomon_dtype dtype, bool few_rows,
                           const gnomon_matrix *b, const gnomon_lstsq_options *options,
                           gnomon_lstsq *out)
{
    gnomon_underdetermined underdetermined = {0};
    gnomon_solver s;
    gnomon_state state;
    memset(&s, 0, sizeof s);
    memset(&state, 0, sizeof state);
    gnomon_lstsq full = {.struct_size = sizeof full,
                         .descriptor = {.struct_size = sizeof full.descriptor},
                         .failure = GNOMON_LSTSQ_FAILURE};
    s.ctx = ctx;
    s.out = &full;
    s.options = *options;
    s.b = b;
    s.m = b->cols;
    s.underdetermined = few_rows ? &underdetermined : NULL;
    s.wanted = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    s.wanted.kind = GNOMON_SJLT;
    s.wanted.nonzeros = 8;
    s.wanted.seed = options->seed;
    if (options->descriptor != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options.descriptor", gnomon_descriptor,
                                       options->descriptor, &s.wanted));
    (void)gnomon_lap(&s.clock);
    const bool f64 = gnomon_dtype_needs_f64(dtype);
    gnomon_row_ranks ranks;
    GNOMON_TRY(gnomon_row_ranks_open(ctx, options->comm, &ranks));
    gnomon_status status = check_machine(&s);
    if (ranks.comm.size > 1)
        status = begin_divided(&s, &ranks, matrix, csr, stream, f64, status);
    else if (status == GNOMON_OK)
        status = gnomon_row_source_open(ctx, matrix, csr, stream, f64, &s.source);
    s.source.ctx = ctx;
    s.d = s.source.cols;
    if (status == GNOMON_OK && ranks.comm.rank == 0) {
        gnomon_blas_enter();
        status = run(&s, &state);
        gnomon_blas_leave();
    }
    if (ranks.comm.rank == 0) status = gnomon_row_ranks_end(&s.source, status);
    release(&s, &state);
    if (status == GNOMON_OK) gnomon_return_result(out, &full, sizeof full);
    gnomon_lstsq_free(ctx, &full);
    return status;
}

static gnomon_status check(gnomon_context *ctx, const gnomon_matrix *b,
                           const gnomon_lstsq_options *given, gnomon_lstsq_options *options,
                           gnomon_lstsq *out)
{
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_lstsq, out));
    GNOMON_TRY(copy_options(ctx, given, options));
    GNOMON_TRY(gnomon_check_view(ctx, b, "b"));
    GNOMON_FAIL_IF(b->cols == 0, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("b") " is %" PRId64 " x 0; it must have columns", b->rows);
    return GNOMON_OK;
}

gnomon_status gnomon_lstsq_dense(gnomon_context *ctx, const gnomon_matrix *a,
                                 const gnomon_matrix *b, const gnomon_lstsq_options *given,
                                 gnomon_lstsq *out)
{
    gnomon_lstsq_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(check(ctx, b, given, &options, out));
    GNOMON_TRY(gnomon_check_view(ctx, a, "a"));
    gnomon_row_ranks ranks;
    GNOMON_TRY(gnomon_row_ranks_open(ctx, options.comm, &ranks));
    /* a rank's share of the rows may be short */
    if (ranks.comm.size > 1 || a->rows >= a->cols || a->rows == 0)
        return solve(ctx, a, NULL, NULL, a->dtype, false, b, &options, out);
    const gnomon_matrix transposed = gnomon_matrix_transposed(a);
    return solve(ctx, &transposed, NULL, NULL, a->dtype, true, b, &options, out);
}

gnomon_status gnomon_lstsq_csr(gnomon_context *ctx, const gnomon_csr *a, const gnomon_matrix *b,
                               const gnomon_lstsq_options *given, gnomon_lstsq *out)
{
    gnomon_lstsq_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(check(ctx, b, given, &options, out));
    GNOMON_FAIL_IF(a == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("a") " is NULL");
    gnomon_row_ranks ranks;
    GNOMON_TRY(gnomon_row_ranks_open(ctx, options.comm, &ranks));
    if (ranks.comm.size > 1 || a->rows >= a->cols || a->rows <= 0)
        return solve(ctx, NULL, a, NULL, a->dtype, false, b, &options, out);
    gnomon_row_source whole;
    gnomon_csr transposed = {0};
    gnomon_status status =
        gnomon_row_source_open(ctx, NULL, a, NULL, false, &whole); /* checks it */
    if (status == GNOMON_OK) status = gnomon_underdetermined_transpose(ctx, a, &transposed);
    if (status == GNOMON_OK)
        status = solve(ctx, NULL, &transposed, NULL, a->dtype, true, b, &options, out);
    gnomon_csr_free(ctx, &transposed);
    return status;
}

gnomon_status gnomon_lstsq_stream(gnomon_context *ctx, const gnomon_svd_rows *rows,
                                  const gnomon_matrix *b, const gnomon_lstsq_options *given,
                                  gnomon_lstsq *out)
{
    gnomon_lstsq_options options;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(check(ctx, b, given, &options, out));
    GNOMON_FAIL_IF(rows == NULL || rows->next == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " or rows.next is NULL");
    GNOMON_FAIL_IF(rows->rows < -1 || rows->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   rows->rows, rows->cols);
    return solve(ctx, NULL, NULL, rows, rows->dtype, false, b, &options, out);
}

void gnomon_lstsq_free(gnomon_context *ctx, gnomon_lstsq *result)
{
    gnomon_lstsq full;
    if (ctx == NULL || !gnomon_load_result(result, &full, sizeof full)) return;
    gnomon_free(ctx, full.x.data);
    gnomon_free(ctx, full.residual.data);
    gnomon_free(ctx, full.target);
    gnomon_clear_result(result);
}
