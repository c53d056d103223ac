/* The public calls for sparse points. */
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "project/cascade/cascade.h"
#include "project/rows.h"
#include "project/sparse/scatter.h"

#include <inttypes.h>
#include <string.h>

/* Bytes beside a nonzero's own: the list of touched columns and, in composed operators, that of
 * touched blocks. */
enum { LIST_BYTES = 16, BLOCK_BYTES = 80 };

typedef struct sparse_run {
    gnomon_context *ctx;
    const gnomon_sketch_job *job;
    const gnomon_sparse_points *points;
    int64_t batch, room; /* points and nonzeros at once, at most */
    gnomon_overflow overflow;
    gnomon_nonzeros z;
    int64_t *counts;
    /* simple and block operators */
    char *sums;
    int64_t *to, *start, *stop, *uneven; /* as in gnomon_scatter; a block operator's last three */
    /* kronecker operators */
    gnomon_cascade cascade;
} sparse_run;

static int64_t rows_of(const gnomon_sparse_points *p)
{
    return p->csr ? p->csr->rows : p->coo->rows;
}

static int64_t cols_of(const gnomon_sparse_points *p)
{
    return p->csr ? p->csr->cols : p->coo->cols;
}

static int64_t nonzeros_of(const gnomon_sparse_points *p)
{
    if (p->coo) return p->coo->nonzeros;
    return p->csr->rows ? p->csr->offsets[p->csr->rows] - p->csr->offsets[0] : 0;
}

/* The batch's blocks that hold nonzeros, as points of A; returns how many. Their columns are
 * counted from their block's first from here on. */
static int64_t find_blocks(sparse_run *r)
{
    const gnomon_sketch_job *job = r->job;
    const gnomon_operator *op = job->op;
    const gnomon_nonzeros *z = &r->z;
    const int64_t c = op->block_cols;
    int64_t n = 0;
    for (int64_t i = 0; i < z->points; i++) {
        for (int64_t e = z->start[i]; e < z->start[i + 1];) {
            const int64_t a = z->col[e] / c;
            const int64_t top = gnomon_block_first_row(op, a);
            const int64_t bottom =
                gnomon_min(gnomon_block_first_row(op, a + 1), job->row + job->rows);
            const int64_t first = top > job->row ? top : job->row;
            r->start[n] = e;
            for (; e < z->start[i + 1] && z->col[e] < (a + 1) * c; e++)
                z->col[e] -= a * c;
            r->stop[n] = e;
            r->uneven[2 * n] = first - top;
            r->uneven[2 * n + 1] = bottom - first;
            r->to[n] = i * job->rows + first - job->row;
            n += bottom > first;
        }
    }
    return n;
}

static gnomon_status scatter_batch(sparse_run *r, int64_t report_at)
{
    const gnomon_sketch_job *job = r->job;
    const gnomon_operator *op = job->op;
    const gnomon_nonzeros *z = &r->z;
    gnomon_scatter s = {.ctx = r->ctx,
                        .kernels = gnomon_context_kernels(r->ctx),
                        .a = &op->factor[0],
                        .f64 = job->f64,
                        .points = z->points,
                        .start = z->start,
                        .stop = z->start + 1,
                        .col = z->col,
                        .value = z->value,
                        .sums = r->sums,
                        .to = r->to,
                        .row = job->row,
                        .rows = job->rows,
                        .memory = job->memory_limit / 4,
                        .report_at = report_at,
                        .report_of = rows_of(r->points)};
    if (op->blocks > 1) {
        s.points = find_blocks(r);
        s.start = r->start;
        s.stop = r->stop;
        s.uneven = r->uneven;
        s.row = 0;
        s.rows = op->factor[0].rows;
    } else {
        for (int64_t i = 0; i < z->points; i++)
            r->to[i] = i * job->rows;
    }
    memset(r->sums, 0, (size_t)(z->points * job->rows * (job->f64 ? 8 : 4)));
    return gnomon_scatter_run(&s);
}

static gnomon_status run_batch(sparse_run *r, int64_t point, int64_t points)
{
    const gnomon_sketch_job *job = r->job;
    const gnomon_matrix y = gnomon_rows(job->y, point, points);
    gnomon_overflow *const overflow = job->check ? &r->overflow : NULL;
    r->overflow.base = point;
    if (job->op->levels == 1) {
        GNOMON_TRY(scatter_batch(r, point));
        gnomon_store_rows(r->ctx, job, r->sums, &y, overflow);
        return GNOMON_OK;
    }
    gnomon_cascade *c = &r->cascade;
    int64_t first, end;
    gnomon_cascade_blocks(job->op, job->col, cols_of(r->points), &first, &end);
    c->report_at = point;
    gnomon_cascade_begin(c, points, first, end);
    GNOMON_TRY(gnomon_cascade_add_sparse(c, &r->z, job->memory_limit / 8));
    GNOMON_TRY(gnomon_cascade_end(c));
    gnomon_store_rows(r->ctx, job, c->root, &y, overflow);
    return GNOMON_OK;
}

static gnomon_status open_run(sparse_run *r)
{
    gnomon_context *ctx = r->ctx;
    const gnomon_sketch_job *job = r->job;
    const gnomon_operator *op = job->op;
    const int64_t n = rows_of(r->points), quarter = job->memory_limit / 4;
    const bool composed = op->levels > 1 || op->blocks > 1;
    r->batch = n;
    if (op->levels > 1) {
        gnomon_sketch_job half = *job;
        half.memory_limit /= 2;
        GNOMON_TRY(gnomon_cascade_open(&r->cascade, ctx, &half, n, false));
        r->batch = r->cascade.points;
    }
    const int64_t sums = op->levels > 1 ? 0 : job->rows * (job->f64 ? 8 : 4);
    const int64_t each = sums + GNOMON_POINT_BYTES + 2 * (int64_t)sizeof(int64_t);
    GNOMON_FAIL_IF(each > quarter, ctx, GNOMON_ERROR_MEMORY,
                   GNOMON_ARG("memory_limit") " is too low for this operator: it is %" PRId64
                                              " bytes and must be at least %" PRId64,
                   job->memory_limit, 4 * each);
    r->batch = gnomon_min(r->batch, quarter / each);
    r->room = gnomon_min(nonzeros_of(r->points), quarter / (GNOMON_NONZERO_BYTES + LIST_BYTES +
                                                            (composed ? BLOCK_BYTES : 0)));
    GNOMON_TRY(gnomon_nonzeros_open(ctx, &r->z, r->batch, r->room, job->f64));
    GNOMON_TRY(gnomon_alloc(ctx, r->batch, sizeof *r->counts, "the points' counts", &r->counts));
    if (op->levels > 1) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, r->batch, (size_t)sums, "the sums", &r->sums));
    const int64_t blocks = op->blocks > 1 ? r->room + 1 : 0;
    GNOMON_TRY(gnomon_alloc(ctx, blocks ? blocks : r->batch, sizeof *r->to, "places", &r->to));
    GNOMON_TRY(gnomon_alloc(ctx, blocks, sizeof *r->start, "touched blocks", &r->start));
    GNOMON_TRY(gnomon_alloc(ctx, blocks, sizeof *r->stop, "touched blocks", &r->stop));
    return gnomon_alloc(ctx, gnomon_times(2, blocks), sizeof *r->uneven, "touched blocks",
                        &r->uneven);
}

static gnomon_status run_all(sparse_run *r)
{
    GNOMON_TRY(open_run(r));
    const int64_t n = rows_of(r->points);
    for (int64_t i = 0; i < n;) {
        int64_t count;
        const int64_t points = gnomon_sparse_batch(r->points, i, gnomon_min(r->batch, n - i),
                                                   r->room, r->counts, &count);
        GNOMON_FAIL_IF(points == 0, r->ctx, GNOMON_ERROR_MEMORY,
                       GNOMON_ARG("memory_limit") " is too low for this point: row %" PRId64
                                                  " of x has %" PRId64
                                                  " nonzeros, and there is memory for %" PRId64,
                       i, count, r->room);
        gnomon_nonzeros_gather(r->ctx, gnomon_context_kernels(r->ctx), &r->z, r->points, i, points,
                               r->counts, count);
        GNOMON_TRY(run_batch(r, i, points));
        i += points;
    }
    GNOMON_TRY(gnomon_overflow_check(r->ctx, &r->overflow, "y", r->job->f64));
    return gnomon_progress(r->ctx, "project", n, n);
}

static gnomon_status sketch_points(gnomon_context *ctx, const gnomon_sketch_job *job,
                                   const gnomon_sparse_points *p)
{
    sparse_run r = {.ctx = ctx, .job = job, .points = p};
    gnomon_overflow_none(&r.overflow);
    const gnomon_status status = run_all(&r);
    gnomon_nonzeros_close(ctx, &r.z);
    gnomon_free(ctx, r.counts);
    gnomon_free(ctx, r.sums);
    gnomon_free(ctx, r.to);
    gnomon_free(ctx, r.start);
    gnomon_free(ctx, r.stop);
    gnomon_free(ctx, r.uneven);
    if (r.cascade.ctx) gnomon_cascade_close(&r.cascade);
    return status;
}

static bool overlaps(const gnomon_matrix *y, const void *data, int64_t count, gnomon_dtype dtype)
{
    const gnomon_matrix m = {.data = (void *)(uintptr_t)data,
                             .dtype = dtype,
                             .rows = 1,
                             .cols = data ? count : 0,
                             .row_stride = count,
                             .col_stride = 1};
    return gnomon_views_overlap(y, &m);
}

/* Rows in a device's memory, whose arrays that device checks. */
static gnomon_status sketch_there(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job)
{
    const gnomon_csr *x = job->csr;
    bool done;
    GNOMON_FAIL_IF(x->rows > 0 && !x->offsets, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.offsets") " is NULL; %" PRId64 " + 1 numbers are due", x->rows);
    GNOMON_TRY(gnomon_check_aligned(ctx, x->offsets, sizeof *x->offsets, "x", "offsets"));
    GNOMON_TRY(gnomon_check_aligned(ctx, x->indices, sizeof *x->indices, "x", "indices"));
    GNOMON_TRY(gnomon_check_aligned(ctx, x->values, gnomon_dtype_size(x->dtype), "x", "values"));
    return gnomon_csr_on_device(ctx, where, job, &done);
}

/* All that csr and coo have in common. */
static gnomon_status sketch(gnomon_context *ctx, gnomon_where where, const gnomon_operator *op,
                            gnomon_sparse_points *p, gnomon_dtype dtype, const gnomon_matrix *y,
                            const gnomon_sketch_options *options)
{
    gnomon_sketch_job job;
    const int64_t rows = rows_of(p), cols = cols_of(p);
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(rows < 0 || cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   rows, cols);
    GNOMON_FAIL_IF(gnomon_dtype_size(dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.dtype") " is %d; it must be one of gnomon_dtype", (int)dtype);
    GNOMON_TRY(gnomon_job_options(ctx, op, options, "x", cols, &job));
    GNOMON_TRY(gnomon_check_anywhere(ctx, y, "y", true));
    GNOMON_FAIL_IF(rows != y->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("x") " has %" PRId64 " rows and y has %" PRId64
                                   "; both must have one per point",
                   rows, y->rows);
    GNOMON_FAIL_IF(y->cols != job.rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("y") " has %" PRId64 " columns; the operator has %" PRId64 " rows%s",
                   y->cols, job.rows,
                   job.rows == op->descriptor.k ? "" : " in the range asked for");
    job.y = y;
    job.csr = p->csr;
    job.f64 = gnomon_dtype_needs_f64(dtype) || y->dtype == GNOMON_F64;
    p->col = job.col;
    if (p->csr && job.csr_memory != GNOMON_HOST) return sketch_there(ctx, where, &job);
    GNOMON_TRY(gnomon_sparse_check(ctx, p));
    const int64_t count = nonzeros_of(p);
    const void *const values = p->csr ? p->csr->values : p->coo->values;
    const int64_t *const indices = p->csr ? p->csr->indices : p->coo->col_indices;
    const int64_t *const other = p->csr ? p->csr->offsets : p->coo->row_indices;
    GNOMON_FAIL_IF(overlaps(y, values, count, dtype) || overlaps(y, indices, count, GNOMON_I64) ||
                       overlaps(y, other, p->csr ? rows + 1 : count, GNOMON_I64),
                   ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x") " and y share memory; the output must lie apart from the input");
    if (job.check) GNOMON_TRY(gnomon_sparse_check_finite(ctx, p));
    bool done = false;
    job.sorted = p->sorted;
    if (p->csr) {
        GNOMON_TRY(gnomon_csr_on_device(ctx, where, &job, &done));
    } else {
        GNOMON_TRY(gnomon_check_output(ctx, y, "y"));
        GNOMON_FAIL_IF(
            job.csr_memory != GNOMON_HOST, ctx, GNOMON_ERROR_ARGUMENT,
            GNOMON_ARG("options.csr_memory") " is 1; coordinate triplets lie on the host");
        GNOMON_TRY(
            gnomon_device_refuse(ctx, where, "coordinate triplets are projected on the CPU"));
        if (where == GNOMON_BY_CONTEXT) gnomon_context_set_worked(ctx, NULL);
    }
    return done || rows == 0 ? GNOMON_OK : sketch_points(ctx, &job, p);
}

gnomon_status gnomon_sketch_csr_at(gnomon_context *ctx, gnomon_where where,
                                   const gnomon_operator *op, const gnomon_csr *x,
                                   const gnomon_matrix *y, const gnomon_sketch_options *options)
{
    GNOMON_FAIL_IF(!x, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("x") " is NULL");
    gnomon_sparse_points p = {.csr = x};
    return sketch(ctx, where, op, &p, x->dtype, y, options);
}

gnomon_status gnomon_sketch_csr(gnomon_context *ctx, const gnomon_operator *op, const gnomon_csr *x,
                                const gnomon_matrix *y, const gnomon_sketch_options *options)
{
    return gnomon_sketch_csr_at(ctx, GNOMON_BY_CONTEXT, op, x, y, options);
}

gnomon_status gnomon_sketch_coo(gnomon_context *ctx, const gnomon_operator *op, const gnomon_coo *x,
                                const gnomon_matrix *y, const gnomon_sketch_options *options)
{
    GNOMON_FAIL_IF(!x, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("x") " is NULL");
    GNOMON_FAIL_IF(x->nonzeros < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.nonzeros") " is %" PRId64 "; it must not be negative",
                   x->nonzeros);
    gnomon_sparse_points p = {.coo = x};
    return sketch(ctx, GNOMON_BY_CONTEXT, op, &p, x->dtype, y, options);
}
