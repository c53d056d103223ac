/* Several named arrays in one .npz. */
#include "io/compress/zip.h"
#include "io/format.h"
#include "io/formats/npy.h"
#include "points/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static gnomon_status begin_member(gnomon_context *ctx, gnomon_zip_writer *zip, const char *name,
                                  const unsigned char *header, size_t size)
{
    char *member = NULL;
    const size_t length = strlen(name) + 5;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length, 1, "a name", &member));
    snprintf(member, length, "%s.npy", name);
    gnomon_status status = gnomon_zip_writer_begin(zip, member, header, size);
    gnomon_free(ctx, member);
    return status;
}

static gnomon_status put_array(gnomon_context *ctx, gnomon_zip_writer *zip, const void *items,
                               int i)
{
    const gnomon_named_array *a = (const gnomon_named_array *)items + i;
    const gnomon_matrix *m = &a->matrix;
    const size_t size = gnomon_dtype_size(m->dtype), row_bytes = (size_t)m->cols * size;
    unsigned char header[GNOMON_NPY_HEADER];
    gnomon_npy_make_header(header, m->dtype, a->vector ? 1 : 2, a->vector ? m->cols : m->rows,
                           m->cols, false);
    gnomon_status status = begin_member(ctx, zip, a->name, header, sizeof header);
    for (int64_t row = 0; row < m->rows && status == GNOMON_OK; row++)
        status = gnomon_zip_writer_write(
            zip, (const char *)m->data + row * m->row_stride * (int64_t)size, row_bytes);
    return status == GNOMON_OK ? gnomon_zip_writer_end(zip, NULL) : status;
}

static gnomon_status check_array(gnomon_context *ctx, const gnomon_named_array *a)
{
    GNOMON_FAIL_IF(a->name == NULL || a->name[0] == '\0', ctx, GNOMON_ERROR_ARGUMENT,
                   "an array has no name");
    GNOMON_TRY(gnomon_check_view(ctx, &a->matrix, a->name));
    GNOMON_FAIL_IF(a->matrix.dtype == GNOMON_BF16, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("%s") ": .npz can't hold bf16", a->name);
    GNOMON_FAIL_IF(a->matrix.col_stride != 1 && a->matrix.cols > 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.col_stride") " is %" PRId64 "; rows must be contiguous", a->name,
                   a->matrix.col_stride);
    GNOMON_FAIL_IF(a->vector && a->matrix.rows != 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " has %" PRId64 " rows; a vector has 1", a->name,
                   a->matrix.rows);
    return GNOMON_OK;
}

/* One archive of 'count' members, each put by 'put' from items. */
typedef gnomon_status (*put_fn)(gnomon_context *ctx, gnomon_zip_writer *zip, const void *items,
                                int i);

static gnomon_status write_archive(gnomon_context *ctx, const char *path, const void *items,
                                   int count, put_fn put)
{
    const gnomon_sink_options options = {.overwrite_ok = true, .revisit = true};
    gnomon_sink *sink = NULL;
    gnomon_zip_writer *zip = NULL;
    GNOMON_TRY(gnomon_sink_open(ctx, path, &options, &sink));
    gnomon_status status = gnomon_zip_writer_open(ctx, sink, true, &zip);
    for (int i = 0; i < count && status == GNOMON_OK; i++)
        status = put(ctx, zip, items, i);
    if (status == GNOMON_OK) status = gnomon_zip_writer_complete(zip);
    gnomon_zip_writer_close(zip);
    if (status == GNOMON_OK) return gnomon_sink_finish(sink);
    gnomon_sink_abort(sink);
    return status;
}

static gnomon_status check_call(gnomon_context *ctx, const char *path, const void *items,
                                const char *name, int count)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(path == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("path") " is NULL");
    GNOMON_FAIL_IF(count < 0 || (count > 0 && items == NULL), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " is NULL or count, %d, negative", name, count);
    return GNOMON_OK;
}

gnomon_status gnomon_write_npz(gnomon_context *ctx, const char *path,
                               const gnomon_named_array *arrays, int count)
{
    GNOMON_TRY(check_call(ctx, path, arrays, "arrays", count));
    for (int i = 0; i < count; i++)
        GNOMON_TRY(check_array(ctx, &arrays[i]));
    return write_archive(ctx, path, arrays, count, put_array);
}

static gnomon_status check_tensor(gnomon_context *ctx, const gnomon_named_tensor *t, int64_t *bytes)
{
    const gnomon_tensor *x = &t->tensor;
    int64_t step = 1;
    GNOMON_FAIL_IF(t->name == NULL || t->name[0] == '\0', ctx, GNOMON_ERROR_ARGUMENT,
                   "an array has no name");
    GNOMON_FAIL_IF(x->modes < 1 || x->modes > GNOMON_TENSOR_MODES, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") " has %d modes; allowed are 1 to %d", t->name, x->modes,
                   GNOMON_TENSOR_MODES);
    GNOMON_FAIL_IF(gnomon_dtype_size(x->dtype) == 0 || x->dtype == GNOMON_BF16, ctx,
                   GNOMON_ERROR_DTYPE, GNOMON_ARG("%s") ": .npz can't hold %s", t->name,
                   gnomon_dtype_name(x->dtype));
    for (int n = x->modes - 1; n >= 0; n--) {
        GNOMON_FAIL_IF(x->size[n] < 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("%s.size") "[%d] is %" PRId64 "; sizes must not be negative",
                       t->name, n, x->size[n]);
        GNOMON_FAIL_IF(x->size[n] > 1 && x->stride[n] != step, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("%s.stride") "[%d] is %" PRId64
                                               "; C order without gaps has %" PRId64,
                       t->name, n, x->stride[n], step);
        GNOMON_FAIL_IF(!gnomon_mul(step, x->size[n], &step), ctx, GNOMON_ERROR_OVERFLOW,
                       GNOMON_ARG("%s") ": the product of its sizes does not fit 63 bits", t->name);
    }
    GNOMON_FAIL_IF(!gnomon_mul(step, (int64_t)gnomon_dtype_size(x->dtype), bytes), ctx,
                   GNOMON_ERROR_OVERFLOW, GNOMON_ARG("%s") ": its bytes do not fit 63 bits",
                   t->name);
    GNOMON_FAIL_IF(*bytes > 0 && (x->data == NULL || x->memory != GNOMON_HOST), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": its data is NULL or not in host memory", t->name);
    return gnomon_check_aligned(ctx, x->data, gnomon_dtype_size(x->dtype), t->name, "data");
}

static gnomon_status put_tensor(gnomon_context *ctx, gnomon_zip_writer *zip, const void *items,
                                int i)
{
    const gnomon_named_tensor *t = (const gnomon_named_tensor *)items + i;
    unsigned char header[GNOMON_NPY_LONGEST];
    int64_t bytes;
    GNOMON_TRY(check_tensor(ctx, t, &bytes));
    const size_t size =
        gnomon_npy_make_shape(header, t->tensor.dtype, t->tensor.modes, t->tensor.size, false);
    GNOMON_TRY(begin_member(ctx, zip, t->name, header, size));
    if (bytes > 0) GNOMON_TRY(gnomon_zip_writer_write(zip, t->tensor.data, (size_t)bytes));
    return gnomon_zip_writer_end(zip, NULL);
}

gnomon_status gnomon_write_npz_tensors(gnomon_context *ctx, const char *path,
                                       const gnomon_named_tensor *tensors, int count)
{
    int64_t unused;
    GNOMON_TRY(check_call(ctx, path, tensors, "tensors", count));
    for (int i = 0; i < count; i++)
        GNOMON_TRY(check_tensor(ctx, &tensors[i], &unused));
    return write_archive(ctx, path, tensors, count, put_tensor);
}
