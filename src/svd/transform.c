/* Rows to their scores in the space of a factorisation, and back.
 *
 * Each row is a sum of its own, over its coordinates in ascending order, in fp64: neither the rows
 * beside it nor how the work is cut show in it. */
#include "base/arithmetic.h"
#include "base/device.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/rows.h"
#include "points/view.h"
#include "project/job.h"
#include "svd/center.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_svd_transform_options, GNOMON_SVD_TRANSFORM_OPTIONS_INIT)

enum {
    ROWS = 32,   /* of a task */
    DEPTH = 256, /* coordinates that are added at a time */
    PANEL = 16,  /* columns of the result that a row's sums are taken of at a time */
    TILE = 1024, /* and of a task */
    ROUND = 4096 /* rows between two reports of progress */
};

/* What a worker has to itself. */
typedef struct scratch {
    double x[ROWS * DEPTH], w[DEPTH * PANEL], sums[ROWS * TILE];
} scratch;

/* y = ((x - mean) / scale * before) w, times or over 'after', times 'unscale' plus 'shift'; what is
 * NULL is left out. */
typedef struct transform {
    gnomon_context *ctx;
    gnomon_svd_transform_options o;
    const gnomon_matrix *x; /* or sparse */
    const gnomon_csr *csr;
    const gnomon_matrix *y;
    gnomon_matrix w; /* in x cols */
    const double *mean, *scale, *before, *after, *unscale, *shift;
    const double *correction; /* of sparse rows: what each is less */
    const double *v;          /* of sparse rows: w, row-major */
    int64_t row, rows, each;  /* those at work; of a task */
    int64_t tiles;
    scratch *room; /* one a worker */
    int64_t *bad_in,
        *bad_out; /* of each task: the first row that has no finite number; rows if none */
} transform;

static double at(const gnomon_matrix *m, int64_t i, int64_t j)
{
    const int64_t place = i * m->row_stride + j * m->col_stride;
    return m->dtype == GNOMON_F64 ? ((const double *)m->data)[place]
                                  : (double)((const float *)m->data)[place];
}

/* sums += x w for one row, PANEL columns. */
static void add_panel(const double *x, const double *w, int64_t depth, double *sums)
{
    double s[PANEL];
    memcpy(s, sums, sizeof s);
    for (int64_t d = 0; d < depth; d++)
        for (int j = 0; j < PANEL; j++)
            s[j] += x[d] * w[d * PANEL + j];
    memcpy(sums, s, sizeof s);
}

/* The coordinates [d, d + depth) of a row of x, as they are multiplied. False: not finite. */
static bool read_part(const transform *t, int64_t row, int64_t d, int64_t depth, double *x)
{
    bool finite = true;
    gnomon_row_as_f64(t->x, row, d, depth, x);
    for (int64_t i = 0; i < depth; i++) {
        finite = finite && isfinite(x[i]);
        if (t->mean != NULL) x[i] -= t->mean[d + i];
        if (t->scale != NULL) x[i] /= t->scale[d + i];
        if (t->before != NULL) x[i] *= t->before[d + i];
    }
    return finite;
}

/* False: not finite in y's type. */
static bool store(const transform *t, int64_t row, int64_t col, int64_t count, const double *sums)
{
    bool finite = true;
    for (int64_t j = 0; j < count; j++) {
        const int64_t place = row * t->y->row_stride + (col + j) * t->y->col_stride;
        double value = sums[j];
        if (t->correction != NULL) value -= t->correction[col + j];
        if (t->after != NULL) value /= t->after[col + j];
        if (t->unscale != NULL) value *= t->unscale[col + j];
        if (t->shift != NULL) value += t->shift[col + j];
        if (t->y->dtype == GNOMON_F64) {
            ((double *)t->y->data)[place] = value;
            finite = finite && isfinite(value);
        } else {
            ((float *)t->y->data)[place] = (float)value;
            finite = finite && isfinite((float)value);
        }
    }
    return finite;
}

static void note(int64_t *bad, int64_t task, int64_t row)
{
    if (row < bad[task]) bad[task] = row;
}

static void dense_task(void *arg, int64_t task, int worker)
{
    const transform *t = arg;
    scratch *s = &t->room[worker];
    const int64_t first = t->row + task / t->tiles * t->each, col = task % t->tiles * TILE;
    const int64_t rows = gnomon_min(t->each, t->row + t->rows - first);
    const int64_t cols = gnomon_min(TILE, t->w.cols - col);
    memset(s->sums, 0, sizeof s->sums);
    for (int64_t d = 0; d < t->w.rows; d += DEPTH) {
        const int64_t depth = gnomon_min(DEPTH, t->w.rows - d);
        for (int64_t i = 0; i < rows; i++)
            if (!read_part(t, first + i, d, depth, s->x + i * DEPTH))
                note(t->bad_in, task, first + i);
        for (int64_t j = 0; j < cols; j += PANEL) {
            const int64_t width = gnomon_min(PANEL, cols - j);
            memset(s->w, 0, sizeof s->w);
            for (int64_t i = 0; i < depth; i++)
                for (int64_t l = 0; l < width; l++)
                    s->w[i * PANEL + l] = at(&t->w, d + i, col + j + l);
            for (int64_t i = 0; i < rows; i++)
                add_panel(s->x + i * DEPTH, s->w, depth, s->sums + i * TILE + j);
        }
    }
    for (int64_t i = 0; i < rows; i++)
        if (!store(t, first + i, col, cols, s->sums + i * TILE)) note(t->bad_out, task, first + i);
}

static void sparse_task(void *arg, int64_t task, int worker)
{
    const transform *t = arg;
    const gnomon_csr *a = t->csr;
    double *const sums = t->room[worker].sums;
    const int64_t first = t->row + task / t->tiles * t->each, col = task % t->tiles * TILE;
    const int64_t end = gnomon_min(first + t->each, t->row + t->rows);
    const int64_t cols = gnomon_min(TILE, t->w.cols - col);
    for (int64_t row = first; row < end; row++) {
        memset(sums, 0, (size_t)cols * sizeof *sums);
        for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
             i++) {
            double x = gnomon_value_as_f64(a->values, a->dtype, i);
            const double *w = t->v + a->indices[i] * t->w.cols + col;
            if (!isfinite(x)) note(t->bad_in, task, row);
            if (t->scale != NULL) x /= t->scale[a->indices[i]];
            for (int64_t j = 0; j < cols; j++)
                sums[j] += x * w[j];
        }
        if (!store(t, row, col, cols, sums)) note(t->bad_out, task, row);
    }
}

/* ---- what is asked for ---- */

/* Fails unless all of 'count' numbers are finite and, with positive, above 0. */
static gnomon_status check_numbers(gnomon_context *ctx, const double *x, int64_t count,
                                   const char *name, bool positive)
{
    for (int64_t i = 0; x != NULL && i < count; i++)
        GNOMON_FAIL_IF(!isfinite(x[i]) || (positive && !(x[i] > 0)), ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("options.%s") "[%" PRId64 "] is %g; it must be finite%s", name, i,
                       x[i], positive ? " and positive" : "");
    return GNOMON_OK;
}

static gnomon_status check_whiten(gnomon_context *ctx, const gnomon_svd_transform_options *o)
{
    const double u = o->vt->dtype == GNOMON_F64 ? 0x1p-53 : 0x1p-24;
    if (!o->whiten) return GNOMON_OK;
    GNOMON_FAIL_IF(o->s == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.s") " is NULL; whiten divides by singular values");
    GNOMON_FAIL_IF(o->rows < 2, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.rows") " is %" PRId64
                                              "; whiten needs the number of rows that "
                                              "were factored, at least 2",
                   o->rows);
    const double least = u * (double)gnomon_max(o->rows, o->vt->cols) * o->s[0];
    for (int64_t i = 0; i < o->vt->rows; i++)
        GNOMON_FAIL_IF(!isfinite(o->s[i]) || !(o->s[i] > least), ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("options.s") "[%" PRId64
                                               "] is %g; whiten divides by it, and beside "
                                               "s[0], %g, that is rounding",
                       i, o->s[i], o->s[0]);
    return GNOMON_OK;
}

static gnomon_status read_options(gnomon_context *ctx, const gnomon_svd_transform_options *given,
                                  gnomon_svd_transform_options *o)
{
    GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT, "transforms of rows run on the CPU"));
    *o = (gnomon_svd_transform_options)GNOMON_SVD_TRANSFORM_OPTIONS_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_svd_transform_options, given, o));
    GNOMON_FAIL_IF(o->vt == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.vt") " is NULL; it must be the factorisation's");
    GNOMON_TRY(gnomon_check_view(ctx, o->vt, "options.vt"));
    GNOMON_FAIL_IF(o->vt->dtype != GNOMON_F32 && o->vt->dtype != GNOMON_F64, ctx,
                   GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("options.vt.dtype") " is %s; allowed are f32, f64",
                   gnomon_dtype_name(o->vt->dtype));
    GNOMON_FAIL_IF(o->vt->rows == 0 || o->vt->cols == 0, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("options.vt") " is %" PRId64 " x %" PRId64
                                            "; it must have rows and columns",
                   o->vt->rows, o->vt->cols);
    GNOMON_FAIL_IF(o->whiten != 0 && o->whiten != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.whiten") " is %d; allowed are 0 and 1", o->whiten);
    GNOMON_FAIL_IF(o->inverse != 0 && o->inverse != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.inverse") " is %d; allowed are 0 and 1", o->inverse);
    GNOMON_TRY(check_numbers(ctx, o->mean, o->vt->cols, "mean", false));
    GNOMON_TRY(check_numbers(ctx, o->scale, o->vt->cols, "scale", true));
    return check_whiten(ctx, o);
}

static gnomon_status check_shapes(const transform *t, int64_t rows, int64_t cols)
{
    const gnomon_matrix *vt = t->o.vt, *y = t->y;
    GNOMON_FAIL_IF(cols != t->w.rows, t->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("x") " has %" PRId64 " columns; vt is %" PRId64 " x %" PRId64
                                   ", so it must have %" PRId64,
                   cols, vt->rows, vt->cols, t->w.rows);
    GNOMON_TRY(gnomon_check_output(t->ctx, y, "y"));
    GNOMON_FAIL_IF(y->rows != rows || y->cols != t->w.cols, t->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("y") " is %" PRId64 " x %" PRId64 "; it must be %" PRId64
                                   " x %" PRId64,
                   y->rows, y->cols, rows, t->w.cols);
    GNOMON_FAIL_IF(gnomon_views_overlap(y, vt) || (t->x != NULL && gnomon_views_overlap(y, t->x)),
                   t->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("y") " overlaps what is read; it must lie apart");
    return GNOMON_OK;
}

/* ---- the work ---- */

/* Why numbers of row 'row' are not finite: the input's, Vt's, or sums that are too large. */
static gnomon_status refuse(const transform *t, bool input, int64_t row)
{
    int64_t i = 0, j = 0;
    if (input && t->csr != NULL) {
        i = t->csr->offsets[row] - t->csr->offsets[0];
        while (isfinite(gnomon_value_as_f64(t->csr->values, t->csr->dtype, i)))
            i++;
        j = t->csr->indices[i];
    } else if (input) {
        const gnomon_matrix one = gnomon_rows(t->x, row, 1);
        (void)gnomon_matrix_check_finite(t->ctx, &one, &i, &j);
    }
    GNOMON_FAIL_IF(input, t->ctx, GNOMON_ERROR_NONFINITE,
                   GNOMON_ARG("x") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                   ", column " GNOMON_AT_COL "%" PRId64 " (both counted from 0)",
                   row, j);
    if (gnomon_matrix_check_finite(t->ctx, t->o.vt, &i, &j) == GNOMON_ERROR_NONFINITE)
        return gnomon_fail(t->ctx, GNOMON_ERROR_NONFINITE,
                           GNOMON_ARG("options.vt") " has NaN or infinity in row %" PRId64
                                                    ", column %" PRId64 " (both counted from 0)",
                           i, j);
    return gnomon_fail(t->ctx, GNOMON_ERROR_OVERFLOW,
                       GNOMON_ARG("x") ": what row " GNOMON_AT_ROW "%" PRId64
                                       " (counted from 0) becomes is beyond what %s holds",
                       row, gnomon_dtype_name(t->y->dtype));
}

static gnomon_status run_rounds(transform *t, int64_t rows, int64_t tasks)
{
    const char *const phase = "transforming";
    for (t->row = 0; t->row < rows; t->row += ROUND) {
        GNOMON_TRY(gnomon_progress(t->ctx, phase, t->row, rows));
        t->rows = gnomon_min(ROUND, rows - t->row);
        const int64_t now = gnomon_ceil_div(t->rows, t->each) * t->tiles;
        int64_t bad_in = rows, bad_out = rows;
        for (int64_t i = 0; i < tasks; i++)
            t->bad_in[i] = t->bad_out[i] = rows;
        gnomon_parallel(t->ctx, now, t->csr != NULL ? sparse_task : dense_task, t);
        for (int64_t i = 0; i < now; i++) {
            bad_in = gnomon_min(bad_in, t->bad_in[i]);
            bad_out = gnomon_min(bad_out, t->bad_out[i]);
        }
        if (bad_in < rows) return refuse(t, true, bad_in);
        if (bad_out < rows) return refuse(t, false, bad_out);
    }
    return gnomon_progress(t->ctx, phase, rows, rows);
}

/* Sparse rows: w as it is read, and what the mean takes off each. */
static gnomon_status prepare_sparse(transform *t, double **v, double **correction)
{
    const int64_t in = t->w.rows, cols = t->w.cols;
    double *offset = NULL;
    GNOMON_TRY(gnomon_alloc(t->ctx, gnomon_times(in, cols), sizeof **v, "the factors", v));
    for (int64_t j = 0; j < cols; j++)
        for (int64_t d = 0; d < in; d++)
            (*v)[d * cols + j] = at(&t->w, d, j);
    t->v = *v;
    if (t->mean == NULL) return GNOMON_OK;
    GNOMON_TRY(
        gnomon_alloc(t->ctx, cols, sizeof **correction, "a product with the mean", correction));
    t->correction = *correction;
    GNOMON_TRY(gnomon_alloc(t->ctx, in, sizeof *offset, "means of columns", &offset));
    for (int64_t d = 0; d < in; d++)
        offset[d] = t->scale != NULL ? t->mean[d] / t->scale[d] : t->mean[d];
    const gnomon_tall tall = {*v, in, cols, true};
    gnomon_center_sums(t->ctx, &tall, offset, *correction);
    gnomon_free(t->ctx, offset);
    return GNOMON_OK;
}

static gnomon_status run(transform *t, int64_t rows, double *deviations)
{
    const gnomon_svd_transform_options *o = &t->o;
    const int64_t threads = gnomon_context_threads(t->ctx);
    double *v = NULL, *correction = NULL;
    for (int64_t i = 0; o->whiten && i < o->vt->rows; i++)
        deviations[i] = o->s[i] / sqrt((double)(o->rows - 1));
    *(o->inverse ? &t->before : &t->after) = o->whiten ? deviations : NULL;
    *(o->inverse ? &t->shift : &t->mean) = o->mean;
    *(o->inverse ? &t->unscale : &t->scale) = o->scale;
    t->each = gnomon_max(1, gnomon_min(ROWS, rows / threads));
    t->tiles = gnomon_ceil_div(t->w.cols, TILE);
    const int64_t tasks = gnomon_ceil_div(gnomon_min(rows, ROUND), t->each) * t->tiles;
    gnomon_status status =
        gnomon_alloc(t->ctx, threads, sizeof *t->room, "parts of rows", &t->room);
    if (status == GNOMON_OK)
        status = gnomon_alloc(t->ctx, gnomon_times(2, tasks), sizeof *t->bad_in,
                              "the check of numbers", &t->bad_in);
    if (status == GNOMON_OK) {
        t->bad_out = t->bad_in + tasks;
        if (t->csr != NULL) status = prepare_sparse(t, &v, &correction);
    }
    if (status == GNOMON_OK) status = run_rounds(t, rows, tasks);
    gnomon_free(t->ctx, v);
    gnomon_free(t->ctx, correction);
    gnomon_free(t->ctx, t->bad_in);
    gnomon_free(t->ctx, t->room);
    return status;
}

static gnomon_status work(transform *t, int64_t rows, int64_t cols)
{
    const gnomon_matrix vt = *t->o.vt;
    double *deviations = NULL;
    t->w = t->o.inverse ? vt : gnomon_matrix_transposed(&vt);
    GNOMON_TRY(check_shapes(t, rows, cols));
    if (rows == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(t->ctx, vt.rows, sizeof *deviations, "deviations", &deviations));
    const gnomon_status status = run(t, rows, deviations);
    gnomon_free(t->ctx, deviations);
    return status;
}

gnomon_status gnomon_svd_transform(gnomon_context *ctx, const gnomon_matrix *x,
                                   const gnomon_svd_transform_options *options,
                                   const gnomon_matrix *y)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    transform t = {.ctx = ctx, .x = x, .y = y};
    GNOMON_TRY(gnomon_check_view(ctx, x, "x"));
    GNOMON_TRY(read_options(ctx, options, &t.o));
    return work(&t, x->rows, x->cols);
}

gnomon_status gnomon_svd_transform_csr(gnomon_context *ctx, const gnomon_csr *x,
                                       const gnomon_svd_transform_options *options,
                                       const gnomon_matrix *y)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    transform t = {.ctx = ctx, .csr = x, .y = y};
    GNOMON_NEED(ctx, x, "x");
    GNOMON_TRY(read_options(ctx, options, &t.o));
    GNOMON_FAIL_IF(t.o.inverse, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.inverse") " is 1; scores are dense, which "
                                                 "gnomon_svd_transform takes");
    GNOMON_TRY(gnomon_row_source_check_csr(ctx, x, "x"));
    return work(&t, x->rows, x->cols);
}
