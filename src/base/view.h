/* base/view.h: checking the views that callers hand in, and views of their parts. */
#ifndef GNOMON_BASE_VIEW_H
#define GNOMON_BASE_VIEW_H

#include <gnomon/matrix.h>

/* Fails with ARGUMENT unless m is a host view whose type is known, whose sizes are not
 * negative, whose data is there and whose extent in bytes fits 63 bits. 'name' is the
 * argument's name in the text. */
gnomon_status gnomon_check_view(gnomon_context *ctx, const gnomon_matrix *m, const char *name);

/* Columns [col, col + cols) of a view. */
static inline gnomon_matrix gnomon_columns(const gnomon_matrix *m, int64_t col, int64_t cols)
{
    gnomon_matrix part = *m;
    part.cols = cols;
    if (m->data)
        part.data = (char *)m->data + col * m->col_stride * (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

/* Rows [row, row + rows) of a view. */
static inline gnomon_matrix gnomon_rows(const gnomon_matrix *m, int64_t row, int64_t rows)
{
    gnomon_matrix part = *m;
    part.rows = rows;
    if (m->data)
        part.data = (char *)m->data + row * m->row_stride * (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

/* Rows [row, row + rows) of sparse points. */
static inline gnomon_csr gnomon_csr_rows(const gnomon_csr *m, int64_t row, int64_t rows)
{
    gnomon_csr part = *m;
    const int64_t before = m->offsets[row] - m->offsets[0];
    part.rows = rows;
    part.offsets += row;
    if (before > 0) { /* else both may be NULL */
        part.indices += before;
        part.values = (const char *)m->values + before * (int64_t)gnomon_dtype_size(m->dtype);
    }
    return part;
}

#endif
