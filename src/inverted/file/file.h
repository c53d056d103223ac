/* inverted/file/file.h: indexes of sparse points in files, as docs/reference/formats.md specifies
 * them. Header, section table, checksums and locks are those of lsh/file. */
#ifndef GNOMON_INVERTED_FILE_H
#define GNOMON_INVERTED_FILE_H

#include "inverted/index.h"
#include "lsh/file/file.h"

/* The settings' numbers, i64 each. */
enum {
    GNOMON_SPARSE_METRIC,
    GNOMON_SPARSE_DIM,
    GNOMON_SPARSE_EXPONENT,
    GNOMON_SPARSE_COLUMNS,
    GNOMON_SPARSE_HEAVY_FROM,
    GNOMON_SPARSE_LONGEST,
    GNOMON_SPARSE_NUMBERS
};

/* The index of a mapped file, which becomes its own; on failure too. Errors: DATA, MEMORY. */
gnomon_status gnomon_sparse_load(gnomon_context *ctx, const gnomon_layout *layout,
                                 gnomon_sparse_index **out);
/* Whether the file that an index was opened from fits its checksums. Errors: DATA, CANCELLED. */
gnomon_status gnomon_sparse_check_bytes(gnomon_context *ctx, const gnomon_sparse_index *index);

#endif
