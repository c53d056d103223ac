/* search/sparse.h: searches of sparse rows by L2, COSINE, IP and L1.
 *
 * Scores of all rows of a piece of the base are summed in fp32 through the inverted lists of a
 * query's columns (term at a time), but for the columns that most rows have: what those can add is
 * bounded by the norms of both sides' parts there (Cauchy-Schwarz; as the suffix bounds of
 * Anastasiu and Karypis 2014), and summed only for rows that the bound lets through. A bound on the
 * error of fp32 is part of each comparison; rows that pass are verified in fp64. */
#ifndef GNOMON_SEARCH_SPARSE_H
#define GNOMON_SEARCH_SPARSE_H

#include "search/inverted.h"
#include "search/state.h"

/* Sparse rows of a view, for a metric that has 'sparse' in its row: columns ascend, a column's
 * values are added up in the order in which they stand. name and first: as for gnomon_sets_make.
 * Errors: DATA, NONFINITE, UNSUPPORTED (a magnitude above 2^500), MEMORY. */
gnomon_status gnomon_sparse_make(gnomon_context *ctx, const gnomon_csr *csr, const char *name,
                                 int64_t first, gnomon_metric metric, gnomon_sets *rows);
/* A single query, not by L1, against the first *done rows of a base, whose ids begin with
 * search->base: none, where an index is as good, and fewer than all, where the others are better
 * searched by one or an entry is refused. Errors: those of gnomon_sparse_make. */
gnomon_status gnomon_scan_sparse_one(gnomon_search *search, const gnomon_csr *base, int64_t *done);
/* The queries, in search->sets, against the rows of an index, whose first has the id search->base.
 * Errors: MEMORY, CANCELLED; DATA of an index in a damaged file. */
gnomon_status gnomon_scan_sparse(gnomon_search *search, const gnomon_inverted *base);
/* The same as the next base points of a search whose queries may be dense, as gnomon_search_add is
 * for a view. The metric is the search's. Errors: SHAPE, DATA, those above. */
gnomon_status gnomon_search_add_inverted(gnomon_search *search, const gnomon_inverted *base);

#endif
