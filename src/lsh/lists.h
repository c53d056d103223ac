/* lsh/lists.h: the inverted lists of an index by trained centres. */
#ifndef GNOMON_LSH_LISTS_H
#define GNOMON_LSH_LISTS_H

#include "lsh/index.h"

typedef struct gnomon_lists_work {
    bool scanned; /* false: nothing has been done, as one by one the queries take less time */
    int64_t candidates, verified;
} gnomon_lists_work;

/* The k nearest of queries [first, first + n) of a search among the points of the lists that they
 * ask for, n x each, the nearest first, at these distances, into search->nearest: what verifying
 * each of these points tells. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_lists_scan(gnomon_context *ctx, const gnomon_lsh *index, gnomon_search *search,
                                int64_t first, int64_t n, const int32_t *asked,
                                const double *distances, int64_t each, gnomon_lists_work *work);

/* Frees what such scans have kept in the index, of which 'bytes' tells: no query may be under way.
 */
void gnomon_lists_drop(gnomon_lsh *index);
int64_t gnomon_lists_bytes(const gnomon_lsh *index);

#endif
