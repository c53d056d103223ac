#include "base/view.h"

#include "base/error.h"
#include "base/memory.h"

#include <inttypes.h>

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

gnomon_status gnomon_check_view(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    GNOMON_FAIL_IF(!m, ctx, GNOMON_ERROR_ARGUMENT, "%s is NULL", name);
    GNOMON_FAIL_IF(gnomon_dtype_size(m->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s.dtype is %d; it must be one of gnomon_dtype", name, (int)m->dtype);
    GNOMON_FAIL_IF(m->memory != GNOMON_HOST, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s.memory is %d; this call takes host memory (0)", name, (int)m->memory);
    GNOMON_FAIL_IF(m->rows < 0 || m->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s is %" PRId64 " x %" PRId64 "; sizes must not be negative", name, m->rows,
                   m->cols);
    if (m->rows == 0 || m->cols == 0) return GNOMON_OK;
    GNOMON_FAIL_IF(!m->data, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s.data is NULL; %" PRId64 " x %" PRId64 " elements are due", name, m->rows,
                   m->cols);
    int64_t rows, cols, extent;
    GNOMON_FAIL_IF(m->row_stride == INT64_MIN || m->col_stride == INT64_MIN ||
                       !gnomon_mul(m->rows - 1, magnitude(m->row_stride), &rows) ||
                       !gnomon_mul(m->cols - 1, magnitude(m->col_stride), &cols) ||
                       !gnomon_add(rows, cols, &extent) || !gnomon_add(extent, 1, &extent) ||
                       !gnomon_mul(extent, (int64_t)gnomon_dtype_size(m->dtype), &extent),
                   ctx, GNOMON_ERROR_ARGUMENT,
                   "%s: %" PRId64 " x %" PRId64 " with strides %" PRId64 " and %" PRId64
                   " reaches further than memory can count",
                   name, m->rows, m->cols, m->row_stride, m->col_stride);
    return GNOMON_OK;
}
