/* search/hits.h: the points found so far by radius. */
#ifndef GNOMON_SEARCH_HITS_H
#define GNOMON_SEARCH_HITS_H

#include "search/state.h"

/* Makes room for so many more hits. */
gnomon_status gnomon_hits_reserve(gnomon_search *search, int64_t more);

#endif
