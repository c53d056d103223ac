#include "io/arrays/array.h"
#include "io/arrays/convert.h"

enum { SCRATCH = 512 * 1024, PREFIX = 4 };

static gnomon_status sink_append(void *to, const void *data, size_t size)
{
    return gnomon_sink_write(to, data, size);
}

static gnomon_status sink_place(void *to, int64_t offset, const void *data, size_t size)
{
    return gnomon_sink_write_at(to, offset, data, size);
}

gnomon_status gnomon_array_out_start(gnomon_writer *writer, gnomon_array_out *out)
{
    out->to = writer->sink;
    out->append = sink_append;
    out->place = sink_place;
    out->offset = gnomon_sink_tell(writer->sink);
    return gnomon_alloc(writer->ctx, SCRATCH, 1, "a write buffer", &out->scratch);
}

void gnomon_array_out_stop(gnomon_context *ctx, gnomon_array_out *out)
{
    gnomon_free(ctx, out->scratch);
    out->scratch = NULL;
}

/* src's part as it is stored, to 'at'. */
static gnomon_status store(gnomon_writer *writer, const gnomon_array_out *out,
                           const gnomon_matrix *src, int64_t row, int64_t rows, int64_t col,
                           int64_t cols, unsigned char *at, int64_t row_stride, int64_t col_stride)
{
    size_t from = gnomon_dtype_size(src->dtype);
    gnomon_matrix part = *src;
    part.rows = rows;
    part.cols = cols;
    part.data = (char *)src->data + (row * src->row_stride + col * src->col_stride) * (int64_t)from;
    gnomon_matrix dst = {at, writer->dtype, GNOMON_HOST, rows, cols, row_stride, col_stride};
    GNOMON_TRY(gnomon_convert(writer->ctx, &part, &dst, writer->written + row, col, writer->path));
    /* only prefixed rows have something between them */
    size_t size = gnomon_dtype_size(writer->dtype);
    for (int64_t i = 0; i < rows && out->swap && out->prefixed; i++)
        gnomon_swap_bytes(at + i * row_stride * (int64_t)size, cols, size);
    if (out->swap && !out->prefixed) gnomon_swap_bytes(at, rows * cols, size);
    return GNOMON_OK;
}

static void put_prefix(unsigned char *at, int64_t cols)
{
    for (int i = 0; i < PREFIX; i++)
        at[i] = (unsigned char)((uint64_t)cols >> (8 * i));
}

static gnomon_status put_rows(gnomon_writer *writer, gnomon_array_out *out,
                              const gnomon_matrix *src)
{
    int64_t size = (int64_t)gnomon_dtype_size(writer->dtype);
    int64_t prefix = out->prefixed ? PREFIX : 0, step = src->cols * size + prefix;
    if (step == 0) return GNOMON_OK;
    if (src->dtype == writer->dtype && !out->swap && prefix == 0 && src->col_stride == 1 &&
        (src->row_stride == src->cols || src->rows == 1))
        return out->append(out->to, src->data, (size_t)(src->rows * step));
    int64_t together = SCRATCH / step;
    for (int64_t i = 0; i < src->rows && together > 0;) {
        int64_t n = src->rows - i < together ? src->rows - i : together;
        for (int64_t r = 0; r < n && prefix > 0; r++)
            put_prefix(out->scratch + r * step, src->cols);
        GNOMON_TRY(
            store(writer, out, src, i, n, 0, src->cols, out->scratch + prefix, step / size, 1));
        GNOMON_TRY(out->append(out->to, out->scratch, (size_t)(n * step)));
        i += n;
    }
    for (int64_t i = 0; i < src->rows && together == 0; i++) { /* rows in pieces */
        put_prefix(out->scratch, src->cols);
        GNOMON_TRY(out->append(out->to, out->scratch, (size_t)prefix));
        for (int64_t j = 0; j < src->cols;) {
            int64_t n = src->cols - j < SCRATCH / size ? src->cols - j : SCRATCH / size;
            GNOMON_TRY(store(writer, out, src, i, 1, j, n, out->scratch, n, 1));
            GNOMON_TRY(out->append(out->to, out->scratch, (size_t)(n * size)));
            j += n;
        }
    }
    return GNOMON_OK;
}

/* Each column's new piece goes to its place; columns that are whole go out together. */
static gnomon_status put_columns(gnomon_writer *writer, gnomon_array_out *out,
                                 const gnomon_matrix *src)
{
    int64_t size = (int64_t)gnomon_dtype_size(writer->dtype), total = writer->rows;
    int64_t most = SCRATCH / size;
    int64_t together = src->rows == total && total <= most ? most / total : 1;
    for (int64_t j = 0; j < src->cols;) {
        int64_t cols = src->cols - j < together ? src->cols - j : together;
        for (int64_t i = 0; i < src->rows;) {
            int64_t rows = src->rows - i < most ? src->rows - i : most;
            int64_t place = out->offset + (j * total + writer->written + i) * size;
            GNOMON_TRY(store(writer, out, src, i, rows, j, cols, out->scratch, 1, rows));
            GNOMON_TRY(out->place(out->to, place, out->scratch, (size_t)(rows * cols * size)));
            i += rows;
        }
        j += cols;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_array_out_put(gnomon_writer *writer, gnomon_array_out *out,
                                   const gnomon_matrix *src)
{
    return writer->options.coordinates_contiguous ? put_columns(writer, out, src)
                                                  : put_rows(writer, out, src);
}

gnomon_status gnomon_array_create(gnomon_writer *writer, bool swap, bool prefixed)
{
    gnomon_array_out *out = NULL;
    GNOMON_TRY(gnomon_alloc_zero(writer->ctx, 1, sizeof *out, "a writer", &out));
    out->swap = swap;
    out->prefixed = prefixed;
    writer->state = out;
    return gnomon_array_out_start(writer, out);
}

gnomon_status gnomon_array_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    return gnomon_array_out_put(writer, writer->state, src);
}

void gnomon_array_discard(gnomon_writer *writer)
{
    if (writer->state == NULL) return;
    gnomon_array_out_stop(writer->ctx, writer->state);
    gnomon_free(writer->ctx, writer->state);
    writer->state = NULL;
}
