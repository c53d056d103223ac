/* Rows of a stream, as they are handed over. */
#include "base/error.h"
#include "svd/row_source.h"

#include <inttypes.h>

gnomon_status gnomon_row_source_read(gnomon_row_source *s, int64_t row, int64_t rows,
                                     gnomon_dtype dtype, void *data, int64_t *got)
{
    const gnomon_svd_rows *stream = s->stream;
    *got = 0;
    while (*got < rows) {
        gnomon_matrix dst = gnomon_matrix_rowmajor((char *)data + (size_t)(*got * s->cols) *
                                                                      gnomon_dtype_size(dtype),
                                                   dtype, rows - *got, s->cols);
        int64_t some = 0;
        GNOMON_TRY(stream->next(stream->user, &dst, &some));
        GNOMON_FAIL_IF(some < 0 || some > dst.rows, s->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("rows.next") " gave %" PRId64 " rows; at most %" PRId64
                                               " were asked for",
                       some, dst.rows);
        if (some == 0) break;
        *got += some;
    }
    if (*got == rows) return GNOMON_OK;
    const int64_t have = row + *got;
    GNOMON_FAIL_IF(s->rows >= 0 && have != s->rows, s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("rows.next") " gave %" PRId64 " rows in all; %" PRId64 " were due",
                   have, s->rows);
    s->rows = have;
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_rewind(gnomon_row_source *source)
{
    const int64_t behind = source->ranks != NULL ? source->own : source->row;
    if (source->stream != NULL && behind > 0) {
        GNOMON_FAIL_IF(
            source->stream->rewind == NULL, source->ctx, GNOMON_ERROR_ARGUMENT,
            GNOMON_ARG("rows.rewind") " is NULL: rows that can be read once need single_pass");
        GNOMON_TRY(source->stream->rewind(source->stream->user));
    }
    if (source->sparse_stream != NULL && source->row > 0)
        GNOMON_TRY(source->sparse_stream->rewind(source->sparse_stream->user));
    source->row = 0;
    source->own = 0;
    return GNOMON_OK;
}
