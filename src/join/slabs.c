#include "join/slabs.h"

#include "base/error.h"
#include "base/memory.h"
#include "join/out.h"

#include <string.h>

gnomon_status gnomon_pair_slabs_open(gnomon_pair_slabs *slabs, gnomon_join_state *join,
                                     int64_t room, int64_t tasks)
{
    *slabs = (gnomon_pair_slabs){0};
    /* each task leaves a slab that is not full */
    slabs->count = gnomon_plus(room / GNOMON_SLAB + 1, tasks);
    GNOMON_TRY(gnomon_join_reserve(join, gnomon_times(slabs->count, GNOMON_SLAB)));
    slabs->pairs = join->pairs + join->count;
    return gnomon_alloc(join->ctx, slabs->count, sizeof *slabs->filled, "pairs", &slabs->filled);
}

void gnomon_pair_slabs_close(gnomon_pair_slabs *slabs, gnomon_join_state *join)
{
    const int64_t next_slab = slabs->next_slab < slabs->count ? slabs->next_slab : slabs->count;
    int64_t count = 0;
    for (int64_t s = 0; s < next_slab; s++) {
        memmove(slabs->pairs + count, slabs->pairs + s * GNOMON_SLAB,
                (size_t)slabs->filled[s] * sizeof *slabs->pairs);
        count += slabs->filled[s];
    }
    join->count += count;
    gnomon_free(join->ctx, slabs->filled);
    slabs->filled = NULL;
}
