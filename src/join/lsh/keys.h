/* join/lsh/keys.h: points' keys in every table of a join by hashing. */
#ifndef GNOMON_JOIN_LSH_KEYS_H
#define GNOMON_JOIN_LSH_KEYS_H

#include "join/lsh/plan.h"

/* keys[i * tables + t] of a side's point i in table t. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_join_keys(gnomon_join_state *join, const gnomon_join_plan *plan,
                               const gnomon_side *side, uint32_t **keys);

#endif
