#include "points/view.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"

#include <inttypes.h>

gnomon_status gnomon_check_aligned(gnomon_context *ctx, const void *data, size_t size,
                                   const char *name, const char *member)
{
    GNOMON_FAIL_IF(
        (uintptr_t)data % size != 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s.%s") " is %p; elements of %zu bytes must lie at a multiple of %zu", name,
        member, data, size, size);
    return GNOMON_OK;
}

gnomon_status gnomon_check_view(gnomon_context *ctx, const gnomon_matrix *m, const char *name)
{
    GNOMON_FAIL_IF(!m, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") " is NULL", name);
    GNOMON_FAIL_IF(gnomon_dtype_size(m->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.dtype") " is %d; it must be one of gnomon_dtype", name,
                   (int)m->dtype);
    GNOMON_FAIL_IF(m->memory != GNOMON_HOST, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.memory") " is %d; this call takes host memory (0)", name,
                   (int)m->memory);
    GNOMON_FAIL_IF(m->rows < 0 || m->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   name, m->rows, m->cols);
    if (m->rows == 0 || m->cols == 0) return GNOMON_OK;
    GNOMON_FAIL_IF(!m->data, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.data") " is NULL; %" PRId64 " x %" PRId64 " elements are due",
                   name, m->rows, m->cols);
    GNOMON_TRY(gnomon_check_aligned(ctx, m->data, gnomon_dtype_size(m->dtype), name, "data"));
    int64_t rows, cols, extent;
    GNOMON_FAIL_IF(m->row_stride == INT64_MIN || m->col_stride == INT64_MIN ||
                       !gnomon_mul(m->rows - 1, gnomon_abs(m->row_stride), &rows) ||
                       !gnomon_mul(m->cols - 1, gnomon_abs(m->col_stride), &cols) ||
                       !gnomon_add(rows, cols, &extent) || !gnomon_add(extent, 1, &extent) ||
                       !gnomon_mul(extent, (int64_t)gnomon_dtype_size(m->dtype), &extent),
                   ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": %" PRId64 " x %" PRId64 " with strides %" PRId64
                                    " and %" PRId64 " reaches further than memory can count",
                   name, m->rows, m->cols, m->row_stride, m->col_stride);
    return GNOMON_OK;
}

gnomon_status gnomon_check_offsets(gnomon_context *ctx, const gnomon_csr *m, const char *name)
{
    GNOMON_FAIL_IF(!m, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") " is NULL", name);
    GNOMON_FAIL_IF(gnomon_dtype_size(m->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.dtype") " is %d; it must be one of gnomon_dtype", name,
                   (int)m->dtype);
    GNOMON_FAIL_IF(m->rows < 0 || m->cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " is %" PRId64 " x %" PRId64 "; sizes must not be negative",
                   name, m->rows, m->cols);
    if (m->rows == 0) return GNOMON_OK;
    GNOMON_FAIL_IF(!m->offsets, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.offsets") " is NULL; %" PRId64 " + 1 numbers are due", name,
                   m->rows);
    GNOMON_TRY(gnomon_check_aligned(ctx, m->offsets, sizeof *m->offsets, name, "offsets"));
    GNOMON_FAIL_IF(m->offsets[0] < 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s.offsets") "[0] is %" PRId64 "; it must not be negative", name,
                   m->offsets[0]);
    for (int64_t i = 0; i < m->rows; i++)
        GNOMON_FAIL_IF(m->offsets[i + 1] < m->offsets[i], ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s.offsets") "[%" PRId64 "] is %" PRId64
                                                ", less than the %" PRId64
                                                " before it; offsets must not decrease",
                       name, i + 1, m->offsets[i + 1], m->offsets[i]);
    return GNOMON_OK;
}

gnomon_status gnomon_check_csr(gnomon_context *ctx, const gnomon_csr *m, const char *name)
{
    GNOMON_TRY(gnomon_check_offsets(ctx, m, name));
    if (m->rows == 0) return GNOMON_OK;
    const int64_t entries = m->offsets[m->rows] - m->offsets[0];
    if (entries == 0) return GNOMON_OK;
    GNOMON_FAIL_IF(!m->indices || !m->values, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.%s") " is NULL; %" PRId64 " numbers are due", name,
                   m->indices ? "values" : "indices", entries);
    GNOMON_TRY(gnomon_check_aligned(ctx, m->indices, sizeof *m->indices, name, "indices"));
    return gnomon_check_aligned(ctx, m->values, gnomon_dtype_size(m->dtype), name, "values");
}
