/* Several named arrays in one .npz. */
#include "base/view.h"
#include "io/format.h"
#include "io/npy.h"
#include "io/zip.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static gnomon_status put_array(gnomon_context *ctx, gnomon_zip_writer *zip,
                               const gnomon_named_array *a)
{
    const gnomon_matrix *m = &a->matrix;
    const size_t size = gnomon_dtype_size(m->dtype), row_bytes = (size_t)m->cols * size;
    unsigned char header[GNOMON_NPY_HEADER];
    char *name = NULL;
    const size_t length = strlen(a->name) + 5;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length, 1, "a name", &name));
    snprintf(name, length, "%s.npy", a->name);
    gnomon_npy_make_header(header, m->dtype, a->vector ? 1 : 2, a->vector ? m->cols : m->rows,
                           m->cols, false);
    gnomon_status status = gnomon_zip_writer_begin(zip, name, header, sizeof header);
    gnomon_free(ctx, name);
    for (int64_t i = 0; i < m->rows && status == GNOMON_OK; i++)
        status = gnomon_zip_writer_write(
            zip, (const char *)m->data + i * m->row_stride * (int64_t)size, row_bytes);
    return status == GNOMON_OK ? gnomon_zip_writer_end(zip, NULL) : status;
}

static gnomon_status check_array(gnomon_context *ctx, const gnomon_named_array *a)
{
    GNOMON_FAIL_IF(a->name == NULL || a->name[0] == '\0', ctx, GNOMON_ERROR_ARGUMENT,
                   "an array has no name");
    GNOMON_TRY(gnomon_check_view(ctx, &a->matrix, a->name));
    GNOMON_FAIL_IF(a->matrix.dtype == GNOMON_BF16, ctx, GNOMON_ERROR_DTYPE,
                   "%s: .npz can't hold bf16", a->name);
    GNOMON_FAIL_IF(a->matrix.col_stride != 1 && a->matrix.cols > 1, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s.col_stride is %" PRId64 "; rows must be contiguous", a->name,
                   a->matrix.col_stride);
    GNOMON_FAIL_IF(a->vector && a->matrix.rows != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   "%s has %" PRId64 " rows; a vector has 1", a->name, a->matrix.rows);
    return GNOMON_OK;
}

gnomon_status gnomon_write_npz(gnomon_context *ctx, const char *path,
                               const gnomon_named_array *arrays, int count)
{
    const gnomon_sink_options options = {.overwrite_ok = true, .revisit = true};
    gnomon_sink *sink = NULL;
    gnomon_zip_writer *zip = NULL;
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, "path is NULL");
    GNOMON_FAIL_IF(count < 0 || (count > 0 && arrays == NULL), ctx, GNOMON_ERROR_ARGUMENT,
                   "arrays is NULL or count, %d, negative", count);
    for (int i = 0; i < count; i++)
        GNOMON_TRY(check_array(ctx, &arrays[i]));
    GNOMON_TRY(gnomon_sink_open(ctx, path, &options, &sink));
    gnomon_status status = gnomon_zip_writer_open(ctx, sink, true, &zip);
    for (int i = 0; i < count && status == GNOMON_OK; i++)
        status = put_array(ctx, zip, &arrays[i]);
    if (status == GNOMON_OK) status = gnomon_zip_writer_complete(zip);
    gnomon_zip_writer_close(zip);
    if (status == GNOMON_OK) return gnomon_sink_finish(sink);
    gnomon_sink_abort(sink);
    return status;
}
