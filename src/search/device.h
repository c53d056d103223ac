/* search/device.h: handing a search to a device. */
#ifndef GNOMON_SEARCH_DEVICE_H
#define GNOMON_SEARCH_DEVICE_H

#include "search/state.h"

/* Opens the search on the context's device: search->device.part tells whether it took it, which
 * 'must' demands. name: of the view that lies there, under AUTO. */
gnomon_status gnomon_search_to_device(gnomon_search *search, const char *name, bool must);
/* Whether to ask, under AUTO and with points in host memory. */
bool gnomon_search_worth_device(const gnomon_search *search, const gnomon_matrix *base);
bool gnomon_sets_worth_device(const gnomon_search *search, const gnomon_csr *base);
/* One of base and sets is NULL. */
gnomon_status gnomon_search_add_on_device(gnomon_search *search, const gnomon_matrix *base,
                                          const gnomon_csr *sets);
/* The k nearest in the order of answers, k places per query, and how many each query has. */
gnomon_status gnomon_search_finish_on_device(gnomon_search *search, int64_t *counts, int64_t *ids,
                                             double *distances);
void gnomon_search_close_on_device(gnomon_search *search);

#endif
