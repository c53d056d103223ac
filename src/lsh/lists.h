/* lsh/lists.h: the inverted lists of an index by trained centres. */
#ifndef GNOMON_LSH_LISTS_H
#define GNOMON_LSH_LISTS_H

#include "lsh/index.h"

/* Whether so many queries of 'each' lists take less time by gnomon_lists_scan than one by one. */
bool gnomon_lists_pay(const gnomon_lsh *index, int64_t queries, int64_t each);

/* The k nearest of queries [first, first + n) of a search among the points of the lists that they
 * ask for, n x each, the nearest first, into search->nearest: what verifying each of these points
 * tells. Counts candidates, and those verified. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_lists_scan(gnomon_context *ctx, const gnomon_lsh *index, gnomon_search *search,
                                int64_t first, int64_t n, const int32_t *asked, int64_t each,
                                int64_t *candidates, int64_t *verified);

#endif
