#include "project/blocks.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/threads.h"
#include "operator/kinds/kinds.h"

gnomon_reach gnomon_reach_of(const gnomon_operator *op, int64_t row, int64_t rows, int64_t col,
                             int64_t cols)
{
    const gnomon_simple *a = &op->factor[0];
    if (rows == 0 || cols == 0) return (gnomon_reach){.first = 0, .last = -1};
    if (op->blocks == 1) return (gnomon_reach){0, 0, row, rows, col, cols};
    const int64_t c = op->block_cols;
    gnomon_reach r = {.first = gnomon_max(col / c, gnomon_block_of_row(op, row)),
                      .last =
                          gnomon_min((col + cols - 1) / c, gnomon_block_of_row(op, row + rows - 1)),
                      .rows = a->rows,
                      .cols = c};
    if (r.first != r.last) return r;
    const int64_t top = gnomon_block_first_row(op, r.first);
    const int64_t bottom = gnomon_min(gnomon_block_first_row(op, r.first + 1), row + rows);
    const int64_t left = r.first * c, right = gnomon_min(left + c, col + cols);
    r.row = gnomon_max(row - top, 0);
    r.rows = bottom - top - r.row;
    r.col = gnomon_max(col - left, 0);
    r.cols = right - left - r.col;
    return r;
}

void gnomon_blocks_engine(gnomon_context *ctx, const gnomon_sketch_job *job, bool adjoint,
                          const gnomon_reach *reach, gnomon_engine *e)
{
    const gnomon_operator *op = job->op;
    *e = (gnomon_engine){.ctx = ctx,
                         .kernels = gnomon_context_kernels(ctx),
                         .a = &op->factor[0],
                         .f64 = job->f64,
                         .row = reach->row,
                         .rows = reach->rows,
                         .col = reach->col,
                         .cols = reach->cols,
                         .memory = job->memory_limit,
                         .phase = "project",
                         .to = job->x->rows,
                         .of = job->x->rows};
    gnomon_engine_align(e->kernels, e->a, &e->row, &e->rows);
    e->finish = (gnomon_finish){.alpha = job->alpha, .beta = job->beta, .scale = op->scale};
    if (op->blocks > 1 && op->descriptor.k % op->blocks != 0) e->finish.op = op;

    gnomon_fold coordinates = gnomon_fold_view(job->x, job->col);
    coordinates.block = op->blocks == 1 ? op->descriptor.d : op->block_cols;
    gnomon_fold rows = gnomon_fold_view(job->y, job->row);
    rows.block = 0;
    rows.k = op->descriptor.k;
    rows.r = op->blocks;
    coordinates.first = rows.first = reach->first;
    coordinates.end = rows.end = (reach->last - reach->first + 1) * job->x->rows;
    e->in = adjoint ? rows : coordinates;
    e->out = adjoint ? coordinates : rows;
}

/* beta * out for the columns of the output that no block writes: all but [begin, end), in the
 * coordinates of an output that begins at 'base'. */
static void scale_rest(gnomon_context *ctx, const gnomon_matrix *out, int64_t base, int64_t begin,
                       int64_t end, double beta, gnomon_overflow *overflow)
{
    const int64_t from = gnomon_max(begin - base, 0), to = gnomon_min(end - base, out->cols);
    if (from >= to) {
        gnomon_scale_view(ctx, out, beta, overflow);
        return;
    }
    const gnomon_matrix left = gnomon_columns(out, 0, from);
    const gnomon_matrix right = gnomon_columns(out, to, out->cols - to);
    gnomon_scale_view(ctx, &left, beta, overflow);
    gnomon_scale_view(ctx, &right, beta, overflow);
}

/* Where the job's writers report overflows; NULL: they don't. */
static gnomon_overflow *asked(const gnomon_sketch_job *job, gnomon_overflow *o)
{
    gnomon_overflow_none(o);
    return job->check ? o : NULL;
}

gnomon_status gnomon_blocks_store(gnomon_context *ctx, const gnomon_sketch_job *job,
                                  const gnomon_reach *reach, const gnomon_engine *e,
                                  const gnomon_matrix *y)
{
    gnomon_overflow o;
    gnomon_overflow *const overflow = asked(job, &o);
    if (reach->first > reach->last) {
        gnomon_scale_view(ctx, y, job->beta, overflow);
        return gnomon_overflow_check(ctx, &o, "y", job->f64);
    }
    gnomon_engine done = *e;
    done.finish.overflow = overflow;
    const gnomon_fold view = gnomon_fold_view(y, job->row);
    done.out.data = view.data;
    done.out.dtype = view.dtype;
    done.out.size = view.size;
    done.out.row_stride = view.row_stride;
    done.out.col_stride = view.col_stride;
    gnomon_engine_store(&done);
    scale_rest(ctx, y, job->row, gnomon_block_first_row(job->op, reach->first),
               gnomon_block_first_row(job->op, reach->last + 1), job->beta, overflow);
    return gnomon_overflow_check(ctx, &o, "y", job->f64);
}

/* Runs the sketch so that nothing is written when the points hold NaN or infinity. They are looked
 * at while they are packed, if the sums can be held until all have been; else beforehand. */
static gnomon_status sketch_checked(gnomon_context *ctx, const gnomon_sketch_job *job,
                                    gnomon_engine *e, bool all_columns)
{
    gnomon_plan plan;
    e->keep = all_columns;
    GNOMON_TRY(gnomon_engine_plan(e, false, &plan));
    e->keep = all_columns && !plan.direct && plan.batch >= gnomon_tiles_of(e->in.end);
    if (!e->keep) GNOMON_TRY(gnomon_check_points(ctx, job->x, "x"));
    GNOMON_TRY(gnomon_engine_sketch(e));
    if (!e->keep || !atomic_load(&e->bad)) return GNOMON_OK;
    GNOMON_TRY(gnomon_check_points(ctx, job->x, "x"));
    e->keep = false; /* somebody else has changed the points meanwhile */
    return gnomon_engine_sketch(e);
}

gnomon_status gnomon_blocks_sketch(gnomon_context *ctx, const gnomon_sketch_job *job)
{
    const gnomon_operator *op = job->op;
    const gnomon_matrix *x = job->x;
    const gnomon_reach reach = gnomon_reach_of(op, job->row, job->rows, job->col, x->cols);
    const bool any = reach.first <= reach.last;
    const bool all_columns =
        op->blocks == 1 || (any && reach.first <= job->col / op->block_cols &&
                            reach.last >= (job->col + x->cols - 1) / op->block_cols);
    gnomon_engine e;
    gnomon_overflow o;
    gnomon_overflow *const overflow = asked(job, &o);
    if (any) {
        gnomon_blocks_engine(ctx, job, false, &reach, &e);
        e.finish.overflow = overflow;
        if (job->check)
            GNOMON_TRY(sketch_checked(ctx, job, &e, all_columns));
        else
            GNOMON_TRY(gnomon_engine_sketch(&e));
    } else if (job->check) {
        GNOMON_TRY(gnomon_check_points(ctx, x, "x"));
    }
    if (any)
        scale_rest(ctx, job->y, job->row, gnomon_block_first_row(op, reach.first),
                   gnomon_block_first_row(op, reach.last + 1), job->beta, overflow);
    else
        gnomon_scale_view(ctx, job->y, job->beta, overflow);
    return gnomon_overflow_check(ctx, &o, "y", job->f64);
}

gnomon_status gnomon_blocks_adjoint(gnomon_context *ctx, const gnomon_sketch_job *job)
{
    const gnomon_operator *op = job->op;
    const gnomon_reach reach = gnomon_reach_of(op, job->row, job->rows, job->col, job->x->cols);
    if (job->check) GNOMON_TRY(gnomon_check_points(ctx, job->y, "y"));
    gnomon_overflow o;
    gnomon_overflow *const overflow = asked(job, &o);
    if (reach.first > reach.last) {
        gnomon_scale_view(ctx, job->x, job->beta, overflow);
        return gnomon_overflow_check(ctx, &o, "x", job->f64);
    }
    gnomon_engine e;
    gnomon_blocks_engine(ctx, job, true, &reach, &e);
    e.finish.overflow = overflow;
    GNOMON_TRY(gnomon_engine_adjoint(&e));
    if (op->blocks > 1)
        scale_rest(ctx, job->x, job->col, reach.first * op->block_cols,
                   (reach.last + 1) * op->block_cols, job->beta, overflow);
    return gnomon_overflow_check(ctx, &o, "x", job->f64);
}
