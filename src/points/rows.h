/* points/rows.h: reading points as fp64, whatever they are stored as. */
#ifndef GNOMON_POINTS_ROWS_H
#define GNOMON_POINTS_ROWS_H

#include <gnomon/matrix.h>

#include <string.h>

/* Copies count elements of row i of m, from column col on, to out. F16 and BF16 convert exactly;
 * 64-bit integers beyond 2^53 are rounded. */
void gnomon_row_as_f64(const gnomon_matrix *m, int64_t i, int64_t col, int64_t count, double *out);

/* Where row i begins. */
static inline const void *gnomon_row_at(const gnomon_matrix *m, int64_t i)
{
    return (const char *)m->data + i * m->row_stride * (int64_t)gnomon_dtype_size(m->dtype);
}

/* Copies row i's elements, which follow each other there. */
static inline void gnomon_row_copy(const gnomon_matrix *m, int64_t i, void *to)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const int64_t run = m->col_stride == 1 ? m->cols : 1; /* elements that follow each other */
    const char *from = (const char *)gnomon_row_at(m, i);
    for (int64_t j = 0; j < m->cols; j += run)
        memcpy((char *)to + j * size, from + j * m->col_stride * size, (size_t)(run * size));
}

/* Memory that will be read soon, into the second cache: the first one has no room for much. */
static inline void gnomon_prefetch(const void *from, int64_t bytes)
{
    enum { LINE = 64, READ = 0, SECOND = 2 };
    for (int64_t line = 0; line < bytes; line += LINE)
        __builtin_prefetch((const char *)from + line, READ, SECOND);
}

/* The value at an index of a typed array, as fp64. */
double gnomon_value_as_f64(const void *values, gnomon_dtype dtype, int64_t index);

#endif
