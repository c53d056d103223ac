/* join/slabs.h: pairs that tasks find, in slabs of one array, so that they are bounded together. */
#ifndef GNOMON_JOIN_SLABS_H
#define GNOMON_JOIN_SLABS_H

#include "join/state.h"

#include <stdatomic.h>

enum { GNOMON_SLAB = 512 };

typedef struct gnomon_pair_slabs {
    gnomon_pair *pairs;
    int32_t *filled; /* of each slab */
    int64_t count;
    _Atomic int64_t next_slab;
    _Atomic bool full; /* more were found than there is room for */
} gnomon_pair_slabs;

/* Room for so many pairs, after those that the join holds, found by so many tasks. Errors: MEMORY,
 * OVERFLOW. */
gnomon_status gnomon_pair_slabs_open(gnomon_pair_slabs *slabs, gnomon_join_state *join,
                                     int64_t room, int64_t tasks);
/* Closes the gaps; the pairs are the join's then. */
void gnomon_pair_slabs_close(gnomon_pair_slabs *slabs, gnomon_join_state *join);

/* A place for a task's next pair, NULL when there is none; *slab is the task's, -1 at first. */
static inline gnomon_pair *gnomon_pair_slabs_place(gnomon_pair_slabs *slabs, int64_t *slab)
{
    if (*slab < 0 || slabs->filled[*slab] == GNOMON_SLAB) {
        const int64_t next = atomic_fetch_add(&slabs->next_slab, 1);
        if (next >= slabs->count) {
            atomic_store(&slabs->full, true);
            return NULL;
        }
        slabs->filled[next] = 0;
        *slab = next;
    }
    return &slabs->pairs[*slab * GNOMON_SLAB + slabs->filled[*slab]++];
}

#endif
