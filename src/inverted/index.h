/* inverted/index.h: an index of sparse points as the files of this room share it. */
#ifndef GNOMON_INVERTED_INDEX_H
#define GNOMON_INVERTED_INDEX_H

#include "search/inverted.h"

#include <gnomon/sparse_index.h>

struct gnomon_origin;

struct gnomon_sparse_index {
    gnomon_context *ctx; /* whose allocator */
    gnomon_inverted inverted;
    int64_t removed;
    uint8_t *allowed; /* a bit a point, 0 of a removed one; NULL: none is removed */
    /* an opened file, in which the arrays lie */
    const unsigned char *map;
    int64_t map_bytes;
    struct gnomon_origin *origin; /* NULL: of no file */
};

/* Errors: ARGUMENT. */
gnomon_status gnomon_sparse_index_check_metric(gnomon_context *ctx, gnomon_metric metric);

#endif
