/* Sets: bands of P's rows through an index of their members. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/join.h"

enum { ROWS = 8192 };

/* Rows [first, first + count) of sets; owns nothing. */
static gnomon_sets part_of(const gnomon_sets *sets, int64_t first, int64_t count)
{
    return (gnomon_sets){count, sets->offsets + first, sets->members};
}

static gnomon_status do_band(gnomon_join_state *join, int64_t row, int64_t count)
{
    const int64_t from = join->self ? row : 0;
    gnomon_search s = {.ctx = join->ctx, .count = count, .cols = join->p.cols};
    const gnomon_sets q = part_of(&join->q.sets, from, join->q.rows - from);
    s.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    s.options.metric = GNOMON_JACCARD;
    s.limit = gnomon_join_threshold(join);
    s.sets = part_of(&join->p.sets, row, count);
    gnomon_status status = gnomon_scan_sets(&s, &q);
    join->count = 0;
    if (status == GNOMON_OK) status = gnomon_join_reserve(join, s.hit_count);
    for (int64_t at = 0; at < s.hit_count && status == GNOMON_OK; at++) {
        const int64_t i = row + s.hits[at].query, j = from + s.hits[at].point.id;
        if (join->self && j <= i) continue;
        join->pairs[join->count++] = (gnomon_pair){i, j, s.hits[at].point.key};
    }
    join->result->compared += s.compared;
    gnomon_free(join->ctx, s.hits);
    return status;
}

gnomon_status gnomon_join_sets(gnomon_join_state *join)
{
    while (join->next_row < join->p.rows && !join->full) {
        const int64_t row = join->next_row;
        const int64_t count = join->p.rows - row < ROWS ? join->p.rows - row : ROWS;
        GNOMON_TRY(do_band(join, row, count));
        GNOMON_TRY(gnomon_join_hand_out(join, row + count));
        GNOMON_TRY(gnomon_progress(join->ctx, "join", row + count, join->p.rows));
    }
    return GNOMON_OK;
}
