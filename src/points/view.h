/* points/view.h: checking the views that callers hand in, and views of their parts. */
#ifndef GNOMON_BASE_VIEW_H
#define GNOMON_BASE_VIEW_H

#include <gnomon/matrix.h>

/* Fails with ARGUMENT unless m is a host view whose type is known, whose sizes are not
 * negative, whose data is there and aligned to its type, and whose extent in bytes fits 63 bits.
 * 'name' is the argument's name in the text. */
gnomon_status gnomon_check_view(gnomon_context *ctx, const gnomon_matrix *m, const char *name);

/* The same of sparse rows: ARGUMENT for what a view must have, DATA for offsets that are negative
 * or decrease, so that their differences fit 63 bits from then on. Indices are not read. */
gnomon_status gnomon_check_csr(gnomon_context *ctx, const gnomon_csr *m, const char *name);
/* The same where indices and values need not be there. */
gnomon_status gnomon_check_offsets(gnomon_context *ctx, const gnomon_csr *m, const char *name);

/* Fails with ARGUMENT unless 'data' is aligned to 'size', a power of two; 'name' as above, with the
 * member. NULL passes. */
gnomon_status gnomon_check_aligned(gnomon_context *ctx, const void *data, size_t size,
                                   const char *name, const char *member);

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
