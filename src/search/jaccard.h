/* search/jaccard.h: searches of sets. */
#ifndef GNOMON_SEARCH_JACCARD_H
#define GNOMON_SEARCH_JACCARD_H

#include "search/state.h"

/* Refuses a broken view; its entries are not checked. Errors: ARGUMENT, DATA. */
gnomon_status gnomon_csr_check(gnomon_context *ctx, const gnomon_csr *csr, const char *name);
gnomon_status gnomon_sets_make(gnomon_context *ctx, const gnomon_csr *csr, const char *name,
                               int64_t first, gnomon_metric metric, gnomon_sets *sets);
/* Refuses weights that are NaN or infinite, negative or above 2^500. */
gnomon_status gnomon_weights_check(gnomon_context *ctx, const gnomon_csr *csr, const char *name);
/* Rows [from, from + rows) of dense points on the host as sparse ones, in fp64, for gnomon_csr_drop
 * whether it fails or not. NaN is an entry. Errors: MEMORY. */
gnomon_status gnomon_csr_from_dense(gnomon_context *ctx, const gnomon_matrix *dense, int64_t from,
                                    int64_t rows, gnomon_csr *out);
void gnomon_csr_drop(gnomon_context *ctx, const gnomon_csr *csr);
/* Rows [first, first + count) of sets; owns nothing. */
gnomon_sets gnomon_sets_part(const gnomon_sets *sets, int64_t first, int64_t count);
void gnomon_sets_free(gnomon_context *ctx, gnomon_sets *sets);
gnomon_status gnomon_scan_sets(gnomon_search *search, const gnomon_sets *base);
/* Answers of sets that share nothing with a query. */
gnomon_status gnomon_sets_complete(gnomon_search *search);
/* The same where a device has found counts[q] of a query's k, which lie in their order, k places a
 * query. Errors: MEMORY. */
gnomon_status gnomon_sets_fill(gnomon_search *search, int64_t *counts, int64_t *ids,
                               double *distances);

#endif
