/* The public calls that hash points. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/job.h"
#include "project/job.h"

#include <inttypes.h>

/* As an output of the library's, but of 32-bit integers. */
static gnomon_status check_values(gnomon_context *ctx, const gnomon_hasher *h, int64_t n,
                                  const gnomon_matrix *values)
{
    GNOMON_FAIL_IF(!values, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("values") " is NULL");
    GNOMON_FAIL_IF(values->dtype != GNOMON_I32, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("values.dtype") " is %s; it must be i32",
                   gnomon_dtype_name(values->dtype));
    gnomon_matrix same = *values;
    same.dtype = GNOMON_F32;
    GNOMON_TRY(gnomon_check_anywhere(ctx, &same, "values", true));
    GNOMON_FAIL_IF(values->rows != n || values->cols != h->f.count, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("values") " is %" PRId64 " x %" PRId64 "; %" PRId64
                                        " points and %" PRId64 " functions are due",
                   values->rows, values->cols, n, h->f.count);
    return GNOMON_OK;
}

gnomon_status gnomon_hasher_check_finite(gnomon_context *ctx, const gnomon_points *points,
                                         const char *name)
{
    int64_t row = 0, col = 0;
    if (points->dense) {
        const gnomon_status status = gnomon_matrix_check_finite(ctx, points->dense, &row, &col);
        if (status != GNOMON_ERROR_NONFINITE) return status;
        return gnomon_fail(ctx, status,
                           GNOMON_ARG("%s") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                            ", column " GNOMON_AT_COL "%" PRId64,
                           name, row, col);
    }
    const gnomon_csr *m = points->sparse;
    if (m->rows == 0) return GNOMON_OK;
    const int64_t entries = m->offsets[m->rows] - m->offsets[0];
    const gnomon_matrix values = gnomon_matrix_rowmajor((void *)m->values, m->dtype, 1, entries);
    const gnomon_status status = gnomon_matrix_check_finite(ctx, &values, &row, &col);
    if (status != GNOMON_ERROR_NONFINITE) return status;
    return gnomon_fail(ctx, status, GNOMON_ARG("%s") " has NaN or infinity in entry %" PRId64, name,
                       col);
}

static void write_values(void *arg, const int32_t *from, int64_t first, int64_t n)
{
    const gnomon_matrix *values = arg;
    int32_t *to = values->data;
    for (int64_t i = first; i < first + n; i++)
        for (int64_t j = 0; j < values->cols; j++)
            to[i * values->row_stride + j * values->col_stride] = *from++;
}

static gnomon_status apply(gnomon_context *ctx, const gnomon_hasher *h, const gnomon_points *points,
                           const gnomon_matrix *values)
{
    bool done;
    gnomon_points seen = *points;
    gnomon_matrix dense;
    if (points->dense) { /* a device's memory is for the device to judge */
        dense = *points->dense;
        if (dense.memory == GNOMON_DEVICE_MEMORY) dense.memory = GNOMON_HOST;
        seen.dense = &dense;
    }
    GNOMON_TRY(gnomon_hasher_check(ctx, h, &seen, "points"));
    const int64_t n = gnomon_points_rows(points);
    GNOMON_TRY(check_values(ctx, h, n, values));
    const gnomon_lsh_job job = {.hasher = h,
                                .points = points->dense,
                                .sets = points->sparse,
                                .values = values,
                                .memory_limit = gnomon_memory_limit(ctx)};
    GNOMON_TRY(gnomon_lsh_on_device(ctx, &job, &done));
    if (done) return GNOMON_OK;
    GNOMON_TRY(gnomon_hasher_check_finite(ctx, points, "points"));
    if (n == 0) return GNOMON_OK;
    return gnomon_hasher_all(ctx, h, points, write_values, (void *)values);
}

gnomon_status gnomon_hasher_apply(gnomon_context *ctx, const gnomon_hasher *hasher,
                                  const gnomon_matrix *points, const gnomon_matrix *values)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!hasher, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("hasher") " is NULL");
    GNOMON_FAIL_IF(!points, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {points, NULL};
    return apply(ctx, hasher, &p, values);
}

gnomon_status gnomon_hasher_apply_csr(gnomon_context *ctx, const gnomon_hasher *hasher,
                                      const gnomon_csr *points, const gnomon_matrix *values)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!hasher, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("hasher") " is NULL");
    GNOMON_FAIL_IF(!points, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {NULL, points};
    return apply(ctx, hasher, &p, values);
}
