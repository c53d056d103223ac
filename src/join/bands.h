/* join/bands.h: joins of dense points. */
#ifndef GNOMON_JOIN_BANDS_H
#define GNOMON_JOIN_BANDS_H

#include "join/state.h"

/* Refuses what no join takes among the points in the host's memory. */
gnomon_status gnomon_join_check(gnomon_join_state *join);
/* Points that have been checked, or are read. */
gnomon_status gnomon_join_dense(gnomon_join_state *join);

#endif
