/* search/scan.h: all queries against rows of a base. */
#ifndef GNOMON_SEARCH_SCAN_H
#define GNOMON_SEARCH_SCAN_H

#include "search/state.h"

/* All queries against base's rows, the first of which is point search->base. rows: which,
 * ascending; NULL: all. */
gnomon_status gnomon_scan(gnomon_search *search, const gnomon_matrix *base, const uint32_t *rows,
                          int64_t count);

#endif
