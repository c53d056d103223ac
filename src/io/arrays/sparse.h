/* io/arrays/sparse.h: points on their way to a caller's CSR. */
#ifndef GNOMON_IO_SPARSE_H
#define GNOMON_IO_SPARSE_H

#include "io/format.h"

/* A batch of points, grown as they come, in memory of its own. */
typedef struct gnomon_batch {
    gnomon_context *ctx;
    gnomon_dtype dtype; /* of values, F32 or F64 */
    int64_t rows, nonzeros;
    int64_t row_capacity, capacity;
    int64_t *offsets; /* room for row_capacity + 1 */
    int64_t *indices;
    void *values; /* room for capacity doubles */
} gnomon_batch;

void gnomon_batch_start(gnomon_batch *batch, gnomon_context *ctx);
void gnomon_batch_free(gnomon_batch *batch);
/* Empties it for values of dtype (F64, else F32); its memory is kept. */
void gnomon_batch_clear(gnomon_batch *batch, gnomon_dtype dtype);
/* Appends an entry to the point that is being made. */
gnomon_status gnomon_batch_entry(gnomon_batch *batch, int64_t col, double value);
/* Room for count entries more, to be written at indices + nonzeros and values + nonzeros. */
gnomon_status gnomon_batch_reserve(gnomon_batch *batch, int64_t count);
/* Ends the point that is being made. */
gnomon_status gnomon_batch_end_row(gnomon_batch *batch);
/* Drops the entries of the point that is being made. */
void gnomon_batch_drop_row(gnomon_batch *batch);
gnomon_csr gnomon_batch_csr(const gnomon_batch *batch, int64_t cols);

/* Entries in any order, to be had row by row. Memory follows the entries given, never the
 * shape: a matrix may have far more rows than entries. */
typedef struct gnomon_entry {
    int64_t row, col;
    double value;
} gnomon_entry;

typedef struct gnomon_gather {
    gnomon_context *ctx;
    gnomon_entry *entries;
    int64_t count, capacity;
    bool sorted;        /* rows have come in order so far */
    int64_t row, at;    /* the next point, and its first entry */
    gnomon_batch batch; /* what the last call gave */
} gnomon_gather;

void gnomon_gather_start(gnomon_gather *gather, gnomon_context *ctx);
void gnomon_gather_free(gnomon_gather *gather);
gnomon_status gnomon_gather_add(gnomon_gather *gather, int64_t row, int64_t col, double value);
/* When all have come: sorts by row, entries of a row staying in the order in which they came. */
gnomon_status gnomon_gather_finish(gnomon_gather *gather);
/* As a format's next_csr and seek, for a matrix of the reader's rows and cols. */
gnomon_status gnomon_gather_next(gnomon_gather *gather, const gnomon_reader *reader,
                                 int64_t max_rows, int64_t max_nonzeros, gnomon_csr *csr);
void gnomon_gather_seek(gnomon_gather *gather, int64_t row);

#endif
