/* search/hits.h: what a search has found: hits by radius, and the answers of a part of the base, to
 * be merged with other parts. */
#ifndef GNOMON_SEARCH_HITS_H
#define GNOMON_SEARCH_HITS_H

#include "search/state.h"

/* Makes room for so many more hits. */
gnomon_status gnomon_hits_reserve(gnomon_search *search, int64_t more);

/* gnomon_search_finish, but a query may have fewer than k answers: offsets tell how many. */
gnomon_status gnomon_search_finish_partial(gnomon_search *search, gnomon_neighbors *out);

/* The answers of two parts of the base, a's ids before b's, as those of both: for each query the k
 * nearest of what there is, or all. *out is new; a and b stay. Errors: MEMORY, OVERFLOW. */
gnomon_status gnomon_neighbors_merge(gnomon_search *search, const gnomon_neighbors *a,
                                     const gnomon_neighbors *b, gnomon_neighbors *out);

/* Refuses answers of which a query has fewer than k. Errors: ARGUMENT. */
gnomon_status gnomon_neighbors_check(gnomon_search *search, const gnomon_neighbors *found);

#endif
