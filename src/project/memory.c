/* What a sketch would take, whatever the layout of the points. */
#include "base/error.h"
#include "project/cascade/cascade.h"

#include <inttypes.h>

/* Of points whose numbers of a column are row_stride from one another. */
static gnomon_status layout_bytes(gnomon_context *ctx, gnomon_sketch_job job, int64_t n,
                                  gnomon_dtype dtype, int64_t row_stride, int64_t *bytes)
{
    const gnomon_operator *op = job.op;
    if (op->levels > 1) return gnomon_cascade_memory(ctx, &job, n, row_stride, bytes);
    /* Views without data, whose shapes and strides are all that a plan reads. */
    const gnomon_matrix x = {
        .dtype = dtype, .rows = n, .cols = op->descriptor.d, .row_stride = row_stride};
    const gnomon_matrix y = {.dtype = GNOMON_F32, .rows = n, .cols = op->descriptor.k};
    job.x = &x;
    job.y = &y;
    const gnomon_reach reach = gnomon_reach_of(op, 0, y.cols, 0, x.cols);
    gnomon_engine e;
    gnomon_plan plan;
    gnomon_blocks_engine(ctx, &job, false, &reach, &e);
    e.keep = true;
    GNOMON_TRY(gnomon_engine_plan(&e, false, &plan));
    if (plan.direct || plan.batch < gnomon_tiles_of(e.in.end)) { /* as a checked sketch would do */
        e.keep = false;
        GNOMON_TRY(gnomon_engine_plan(&e, false, &plan));
    }
    *bytes = plan.bytes;
    return GNOMON_OK;
}

static gnomon_status plan_bytes(gnomon_context *ctx, const gnomon_operator *op, int64_t n,
                                gnomon_dtype dtype, int64_t *bytes)
{
    gnomon_sketch_job job;
    GNOMON_TRY(gnomon_job_options(ctx, op, NULL, "x", -1, &job));
    GNOMON_FAIL_IF(n < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("n") " is %" PRId64 "; it must not be negative", n);
    GNOMON_FAIL_IF(gnomon_dtype_size(dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %d; it must be one of gnomon_dtype", (int)dtype);
    *bytes = 0;
    if (n == 0) return GNOMON_OK;
    job.f64 = gnomon_dtype_needs_f64(dtype);
    int64_t by_rows = 0, by_columns = 0;
    GNOMON_TRY(layout_bytes(ctx, job, n, dtype, op->descriptor.d, &by_rows));
    GNOMON_TRY(layout_bytes(ctx, job, n, dtype, 1, &by_columns));
    *bytes = by_rows > by_columns ? by_rows : by_columns;
    return GNOMON_OK;
}

int64_t gnomon_sketch_memory(gnomon_context *ctx, const gnomon_operator *op, int64_t n,
                             gnomon_dtype dtype)
{
    int64_t bytes = 0;
    return plan_bytes(ctx, op, n, dtype, &bytes) == GNOMON_OK ? bytes : -1;
}
