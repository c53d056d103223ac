/* Sets: bands of P's rows through lists of the rarest members, or of all. */
#include "join/sets.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "join/prefix.h"
#include "join/state.h"
#include "search/jaccard.h"

#include <math.h>

enum { ROWS = 8192, PREFIX_ROWS = 65536 };

/* Rows [first, first + count) of sets; owns nothing. */
static gnomon_sets part_of(const gnomon_sets *sets, int64_t first, int64_t count)
{
    return (gnomon_sets){count, sets->offsets + first, sets->members, sets->weights};
}

/* Adds the pairs of rows [row, row + count), all of whose members meet. */
static gnomon_status count_all(gnomon_join_state *join, int64_t row, int64_t count, bool *fits)
{
    const int64_t begin = join->self ? row : 0;
    /* so much of Q that what one part adds is bounded too */
    int64_t each = join->pair_room / count * 4;
    if (each < 512) each = 512;
    gnomon_status status = GNOMON_OK;
    for (int64_t from = begin; from < join->q.rows && status == GNOMON_OK && *fits; from += each) {
        const int64_t some = join->q.rows - from < each ? join->q.rows - from : each;
        const gnomon_sets q = part_of(&join->q.sets, from, some);
        gnomon_search s = {.ctx = join->ctx, .count = count, .cols = join->p.cols};
        s.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
        s.options.metric = join->options.metric;
        s.limit = gnomon_join_threshold(join);
        s.sets = part_of(&join->p.sets, row, count);
        status = gnomon_scan_sets(&s, &q);
        if (status == GNOMON_OK) status = gnomon_join_reserve(join, s.hit_count);
        for (int64_t at = 0; at < s.hit_count && status == GNOMON_OK; at++) {
            const int64_t i = row + s.hits[at].query, j = from + s.hits[at].point.id;
            if (join->self && j <= i) continue;
            join->pairs[join->count++] = (gnomon_pair){i, j, s.hits[at].point.key};
        }
        join->result->compared += s.compared;
        gnomon_free(join->ctx, s.hits);
        *fits = join->count <= join->pair_room;
    }
    return status;
}

static gnomon_status all_bands(gnomon_join_state *join, gnomon_prefix *prefix)
{
    const int64_t most = prefix != NULL ? PREFIX_ROWS : ROWS;
    int64_t rows = most;
    while (join->next_row < join->p.rows && !join->full) {
        const int64_t row = join->next_row;
        const int64_t count = join->p.rows - row < rows ? join->p.rows - row : rows;
        bool fits = true;
        join->count = 0;
        GNOMON_TRY(prefix != NULL ? gnomon_prefix_pairs(prefix, row, count, &fits)
                                  : count_all(join, row, count, &fits));
        if (!fits && count > 1) {
            rows = (count + 1) / 2;
            continue;
        }
        if (join->count < join->pair_room / 4 && rows < most) rows *= 2;
        GNOMON_TRY(gnomon_join_hand_out(join, row + count));
        GNOMON_TRY(gnomon_progress(join->ctx, "join", row + count, join->p.rows));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_join_make_sets(gnomon_join_state *join)
{
    gnomon_side *p = &join->p, *q = &join->q;
    GNOMON_TRY(gnomon_sets_make(join->ctx, p->csr, "p", 0, join->options.metric, &p->sets));
    if (!join->self)
        return gnomon_sets_make(join->ctx, q->csr, "q", 0, join->options.metric, &q->sets);
    q->sets = p->sets;
    return GNOMON_OK;
}

void gnomon_join_drop_prefix(gnomon_join_state *join)
{
    gnomon_prefix_close(join->prefix);
    join->prefix = NULL;
}

gnomon_status gnomon_join_sets(gnomon_join_state *join)
{
    /* which members are shared must tell the distance */
    if (gnomon_metric_row_of(join->options.metric)->counts != NULL && gnomon_prefix_fits(join)) {
        if (join->prefix == NULL) GNOMON_TRY(gnomon_prefix_open(join, &join->prefix));
        gnomon_join_say(join, "sets meet in the lists of their rarest members");
    }
    const gnomon_status status = all_bands(join, join->prefix);
    gnomon_join_drop_prefix(join);
    return status;
}
