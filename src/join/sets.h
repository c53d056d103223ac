/* join/sets.h: joins of sets and of sparse points. */
#ifndef GNOMON_JOIN_SETS_H
#define GNOMON_JOIN_SETS_H

#include "join/state.h"

/* Refuses sets that no join takes; makes those of both sides. Errors: DATA, NONFINITE, MEMORY. */
gnomon_status gnomon_join_make_sets(gnomon_join_state *join);
gnomon_status gnomon_join_sets(gnomon_join_state *join);
/* Sparse rows under a metric that also takes dense ones. */
gnomon_status gnomon_join_sparse(gnomon_join_state *join);
void gnomon_join_drop_prefix(gnomon_join_state *join);

#endif
