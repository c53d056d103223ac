/* The points found so far, before they are ranked. */
#include "search/hits.h"

#include "base/error.h"
#include "base/memory.h"

gnomon_status gnomon_hits_reserve(gnomon_search *s, int64_t more)
{
    int64_t room = s->hit_room;
    if (more <= room - s->hit_count) return GNOMON_OK;
    GNOMON_FAIL_IF(!gnomon_add(s->hit_count, more, &room) || !gnomon_mul(room, 3, &room), s->ctx,
                   GNOMON_ERROR_OVERFLOW, "more hits than can be counted");
    room /= 2;
    GNOMON_TRY(gnomon_grow(s->ctx, &s->hits, s->hit_room, room, sizeof *s->hits, "hits"));
    s->hit_room = room;
    return GNOMON_OK;
}
