/* search/shared.h: what work on sparse rows costs, and how many columns two of them share,
 * which the cost of an exact search depends on. */
#ifndef GNOMON_SEARCH_SHARED_H
#define GNOMON_SEARCH_SHARED_H

#include <gnomon/base.h>
#include <gnomon/matrix.h>

/* The mean over the pairs of some evenly spaced rows of p and q, at most 4096 of each: the sum over
 * columns of the share of p's rows that have it times the share of q's. Without the columns that an
 * inverted index keeps no lists of. Entries must be checked.
 * Errors: MEMORY. */
gnomon_status gnomon_sparse_shared(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                                   double *shared);
/* Nanoseconds on one thread of an exact search, a query and base row. */
double gnomon_sparse_exact_cost(double shared);
/* Nanoseconds on one thread: an entry's product with a hash function's direction; an entry of a row
 * that is merged with another by their columns. */
#define GNOMON_SPARSE_PRODUCT_COST 0.12
#define GNOMON_SPARSE_MERGE_COST   8.0

#endif
