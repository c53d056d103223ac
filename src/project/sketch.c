/* The public calls for dense points. */
#include "base/context.h"
#include "base/error.h"
#include "base/threads.h"
#include "project/blocks.h"
#include "project/cascade/cascade.h"

gnomon_status gnomon_sketch_at(gnomon_context *ctx, gnomon_where where, const gnomon_operator *op,
                               const gnomon_matrix *x, const gnomon_matrix *y,
                               const gnomon_sketch_options *options)
{
    gnomon_sketch_job job;
    bool done;
    GNOMON_TRY(gnomon_job_options(ctx, op, options, "x", x ? x->cols : -1, &job));
    GNOMON_TRY(gnomon_job_views(ctx, x, y, false, &job));
    GNOMON_TRY(gnomon_job_on_device(ctx, where, &job, false, &done));
    if (done || x->rows == 0) return GNOMON_OK;
    GNOMON_TRY(op->levels > 1 ? gnomon_cascade_sketch(ctx, &job) : gnomon_blocks_sketch(ctx, &job));
    return gnomon_progress(ctx, "project", x->rows, x->rows);
}

gnomon_status gnomon_sketch(gnomon_context *ctx, const gnomon_operator *op, const gnomon_matrix *x,
                            const gnomon_matrix *y, const gnomon_sketch_options *options)
{
    return gnomon_sketch_at(ctx, GNOMON_BY_CONTEXT, op, x, y, options);
}

gnomon_status gnomon_adjoint(gnomon_context *ctx, const gnomon_operator *op, const gnomon_matrix *y,
                             const gnomon_matrix *x, const gnomon_sketch_options *options)
{
    gnomon_sketch_job job;
    bool done;
    GNOMON_TRY(gnomon_job_options(ctx, op, options, "x", x ? x->cols : -1, &job));
    GNOMON_TRY(gnomon_job_views(ctx, x, y, true, &job));
    GNOMON_TRY(gnomon_job_on_device(ctx, GNOMON_BY_CONTEXT, &job, true, &done));
    if (done || x->rows == 0 || x->cols == 0) return GNOMON_OK;
    GNOMON_TRY(op->levels > 1 ? gnomon_cascade_adjoint(ctx, &job)
                              : gnomon_blocks_adjoint(ctx, &job));
    return gnomon_progress(ctx, "project", x->rows, x->rows);
}
