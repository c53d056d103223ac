#include "project/job.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_sketch_options, GNOMON_SKETCH_OPTIONS_INIT)

gnomon_status gnomon_job_options(gnomon_context *ctx, const gnomon_operator *op,
                                 const gnomon_sketch_options *options, const char *points,
                                 int64_t cols, gnomon_sketch_job *job)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!op, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("op") " is NULL");
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    if (options)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_sketch_options, options, &o));
    GNOMON_FAIL_IF(!isfinite(o.alpha), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.alpha") " is %g; it must be finite", o.alpha);
    GNOMON_FAIL_IF(!isfinite(o.beta), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.beta") " is %g; it must be finite", o.beta);
    const int64_t k = op->descriptor.k, d = op->descriptor.d;
    GNOMON_FAIL_IF(o.row < 0 || o.row >= k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.row") " is %" PRId64 "; the operator has rows 0 to %" PRId64,
                   o.row, k - 1);
    GNOMON_FAIL_IF(o.rows < 0 || o.rows > k - o.row, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.rows") " is %" PRId64 "; from row %" PRId64
                                              " on there are %" PRId64 " (0 takes them all)",
                   o.rows, o.row, k - o.row);
    GNOMON_FAIL_IF(o.col < -1 || o.col > d, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.col") " is %" PRId64
                                             "; it must be -1 (all columns) or 0 to %" PRId64,
                   o.col, d);
    if (o.col < 0) {
        GNOMON_FAIL_IF(cols >= 0 && cols != d, ctx, GNOMON_ERROR_SHAPE,
                       GNOMON_ARG("%s") " has %" PRId64 " columns; the operator has %" PRId64
                                        " (options.col tells where a part of them begins)",
                       points, cols, d);
        o.col = 0;
    }
    GNOMON_FAIL_IF(cols > d - o.col, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("%s") " has %" PRId64 " columns from options.col = %" PRId64
                                    " on; the operator has %" PRId64 " there",
                   points, cols, o.col, d - o.col);
    GNOMON_FAIL_IF(
        o.csr_memory != GNOMON_HOST && o.csr_memory != GNOMON_DEVICE_MEMORY, ctx,
        GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options.csr_memory") " is %d; it must be host (0) or device memory (1)",
        (int)o.csr_memory);
    *job = (gnomon_sketch_job){.op = op,
                               .alpha = o.alpha,
                               .beta = o.beta,
                               .row = o.row,
                               .rows = o.rows ? o.rows : k - o.row,
                               .col = o.col,
                               .check = !o.allow_nonfinite,
                               .memory_limit = gnomon_memory_limit(ctx),
                               .stream = o.device_stream,
                               .csr_memory = o.csr_memory};
    return GNOMON_OK;
}

gnomon_status gnomon_check_output(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    GNOMON_TRY(gnomon_check_view(ctx, m, name));
    GNOMON_FAIL_IF(m->dtype != GNOMON_F32 && m->dtype != GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s.dtype") " is %s; it must be f32 or f64", name,
                   gnomon_dtype_name(m->dtype));
    const int64_t rs = gnomon_abs(m->row_stride), cs = gnomon_abs(m->col_stride);
    bool apart = true;
    if (m->rows == 0 || m->cols == 0)
        apart = true;
    else if (m->rows > 1 && m->cols > 1)
        apart = cs <= rs ? cs > 0 && rs / cs >= m->cols : rs > 0 && cs / rs >= m->rows;
    else if (m->rows > 1)
        apart = rs > 0;
    else if (m->cols > 1)
        apart = cs > 0;
    GNOMON_FAIL_IF(
        !apart, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": %" PRId64 " x %" PRId64 " with strides %" PRId64 " and %" PRId64
                         " puts several elements in one place; an output needs one place for each",
        name, m->rows, m->cols, m->row_stride, m->col_stride);
    return GNOMON_OK;
}

/* The bytes [begin, end) between a view's first and last element. */
static void extent(const gnomon_matrix *m, uintptr_t *begin, uintptr_t *end)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const int64_t row = (m->rows - 1) * m->row_stride * size;
    const int64_t col = (m->cols - 1) * m->col_stride * size;
    const uintptr_t data = (uintptr_t)m->data;
    *begin = data + (uintptr_t)((row < 0 ? row : 0) + (col < 0 ? col : 0));
    *end = data + (uintptr_t)((row > 0 ? row : 0) + (col > 0 ? col : 0) + size);
}

/* Whether the lines of both views (rows, or columns) lie at the same distance from each other and
 * side by side, as parts of one wider matrix do. */
static bool interleaved(const gnomon_matrix *a, const gnomon_matrix *b, bool by_rows)
{
    const gnomon_matrix *m[2] = {a, b};
    int64_t pitch[2];
    uintptr_t begin[2], length[2];
    for (int i = 0; i < 2; i++) {
        const int64_t size = (int64_t)gnomon_dtype_size(m[i]->dtype);
        gnomon_matrix line = *m[i];
        if (by_rows)
            line.rows = 1;
        else
            line.cols = 1;
        uintptr_t end;
        extent(&line, &begin[i], &end);
        length[i] = end - begin[i];
        pitch[i] = gnomon_abs(by_rows ? m[i]->row_stride : m[i]->col_stride) * size;
    }
    if (pitch[0] != pitch[1] || pitch[0] == 0) return false;
    const uintptr_t p = (uintptr_t)pitch[0];
    const uintptr_t ahead =
        begin[1] > begin[0] ? (begin[1] - begin[0]) % p : (p - (begin[0] - begin[1]) % p) % p;
    return length[0] <= ahead && ahead + length[1] <= p;
}

bool gnomon_views_overlap(const gnomon_matrix *a, const gnomon_matrix *b)
{
    if (a->rows == 0 || a->cols == 0 || b->rows == 0 || b->cols == 0) return false;
    uintptr_t a_begin, a_end, b_begin, b_end;
    extent(a, &a_begin, &a_end);
    extent(b, &b_begin, &b_end);
    if (a_end <= b_begin || b_end <= a_begin) return false;
    return !interleaved(a, b, true) && !interleaved(a, b, false);
}

gnomon_status gnomon_check_anywhere(gnomon_context *ctx, const gnomon_matrix *m, const char *name,
                                    bool output)
{
    GNOMON_FAIL_IF(!m, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") " is NULL", name);
    gnomon_matrix host = *m;
    if (host.memory == GNOMON_DEVICE_MEMORY) host.memory = GNOMON_HOST;
    if (output) return gnomon_check_output(ctx, &host, name);
    return gnomon_check_view(ctx, &host, name);
}

gnomon_status gnomon_job_views(gnomon_context *ctx, const gnomon_matrix *x, const gnomon_matrix *y,
                               bool adjoint, gnomon_sketch_job *job)
{
    GNOMON_TRY(gnomon_check_anywhere(ctx, x, "x", adjoint));
    GNOMON_TRY(gnomon_check_anywhere(ctx, y, "y", !adjoint));
    GNOMON_FAIL_IF(x->rows != y->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("x") " has %" PRId64 " rows and y has %" PRId64
                                   "; both must have one per point",
                   x->rows, y->rows);
    GNOMON_FAIL_IF(y->cols != job->rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("y") " has %" PRId64 " columns; the operator has %" PRId64 " rows%s",
                   y->cols, job->rows,
                   job->rows == job->op->descriptor.k ? "" : " in the range asked for");
    GNOMON_FAIL_IF(gnomon_views_overlap(x, y), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x") " and y share memory; the output must lie apart from the input");
    job->x = x;
    job->y = y;
    job->f64 = gnomon_dtype_needs_f64(x->dtype) || gnomon_dtype_needs_f64(y->dtype);
    return GNOMON_OK;
}

gnomon_status gnomon_check_points(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    int64_t row = 0, col = 0;
    const gnomon_status status = gnomon_matrix_check_finite(ctx, m, &row, &col);
    if (status != GNOMON_ERROR_NONFINITE) return status;
    return gnomon_fail(
        ctx, GNOMON_ERROR_NONFINITE,
        GNOMON_ARG("%s") ": element (" GNOMON_AT_ROW "%" PRId64 ", " GNOMON_AT_COL "%" PRId64
                         ") is NaN or infinite; options.allow_nonfinite lets such values pass",
        name, row, col);
}
