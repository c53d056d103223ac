/* Sets: bands of P's rows through lists of the rarest members, or of all. */
#include "join/sets.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/bands.h"
#include "join/out.h"
#include "join/prefix.h"
#include "join/sparse.h"
#include "join/state.h"
#include "kernels.h"
#include "search/form.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <inttypes.h>
#include <math.h>

enum { ROWS = 8192, PREFIX_ROWS = 65536, FIRST_ROWS = 512 };

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
        const gnomon_sets q = gnomon_sets_part(&join->q.sets, from, some);
        gnomon_search s = {.ctx = join->ctx, .count = count, .cols = join->p.cols};
        s.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
        s.options.metric = join->options.metric;
        s.limit = gnomon_join_threshold(join);
        s.sets = gnomon_sets_part(&join->p.sets, row, count);
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

/* How the pairs of some rows are found. */
typedef struct method {
    gnomon_prefix *prefix;
    gnomon_join_index *index;
} method;

static gnomon_status all_bands(gnomon_join_state *join, method by)
{
    int64_t most = by.prefix != NULL ? PREFIX_ROWS : ROWS;
    int64_t rows = by.index != NULL && by.index->pieces == 1 ? FIRST_ROWS : INT64_MAX / 2;
    bool more;
    for (;;) {
        GNOMON_TRY(gnomon_join_more(join, &more));
        if (!more) return GNOMON_OK;
        const int64_t row = join->next_row, left = join->end_row - row;
        if (by.index != NULL) most = gnomon_join_index_rows(join, by.index, row);
        rows = gnomon_min(rows, most);
        const int64_t count = gnomon_min(left, rows);
        bool fits = true;
        join->count = 0;
        GNOMON_TRY(by.prefix != NULL  ? gnomon_prefix_pairs(by.prefix, row, count, &fits)
                   : by.index != NULL ? gnomon_join_index_pairs(join, by.index, row, count, &fits)
                                      : count_all(join, row, count, &fits));
        if (!fits && count > 1) {
            rows = (count + 1) / 2;
            continue;
        }
        if (join->count < join->pair_room / 4 && rows < most) rows *= 2;
        GNOMON_TRY(gnomon_join_hand_out(join, row + count));
        GNOMON_TRY(gnomon_progress(join->ctx, "join", row + count, join->p.rows));
    }
}

static gnomon_status make(gnomon_join_state *join, const gnomon_side *side, gnomon_sets *sets)
{
    const gnomon_metric metric = join->options.metric;
    return (gnomon_metric_of_sets(metric) ? gnomon_sets_make : gnomon_sparse_make)(
        join->ctx, side->csr, side->name, 0, metric, sets);
}

gnomon_status gnomon_join_make_sets(gnomon_join_state *join)
{
    gnomon_side *p = &join->p, *q = &join->q;
    GNOMON_TRY(make(join, p, &p->sets));
    if (!join->self) return make(join, q, &q->sets);
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
    if (gnomon_prefix_fits(join)) {
        if (join->prefix == NULL) GNOMON_TRY(gnomon_prefix_open(join, &join->prefix));
        gnomon_join_say(join, "sets meet in the lists of their rarest members");
    }
    const gnomon_status status = all_bands(join, (method){.prefix = join->prefix});
    gnomon_join_drop_prefix(join);
    return status;
}

static gnomon_status join_by_index(gnomon_join_state *join, const char *why)
{
    gnomon_join_index index;
    gnomon_status status = gnomon_join_index_open(join, &index);
    if (index.pieces > 1)
        gnomon_join_say(join,
                        "sparse rows through inverted indexes of %" PRId64 " pieces of %s: %s",
                        index.pieces, join->q.name, why);
    else
        gnomon_join_say(join, "sparse rows through an inverted index: %s", why);
    if (status == GNOMON_OK) status = all_bands(join, (method){.index = &index});
    gnomon_join_index_close(join, &index);
    return status;
}

static gnomon_status join_copies(gnomon_join_state *join, const char *why)
{
    gnomon_join_copies p, q;
    GNOMON_TRY(gnomon_join_copy_side(join, &join->p, &p));
    if (join->self)
        join->q = join->p;
    else
        GNOMON_TRY(gnomon_join_copy_side(join, &join->q, &q));
    gnomon_join_say(join, "dense copies of sparse rows: %s", why);
    return gnomon_join_dense(join);
}

gnomon_status gnomon_join_sparse(gnomon_join_state *join)
{
    const gnomon_form_side p = {.sparse = join->p.csr}, q = {.sparse = join->q.csr};
    gnomon_form form;
    if (join->p.from != NULL) return join_by_index(join, "the points are read in pieces");
    /* what hashing was thought of for */
    gnomon_sets_free(join->ctx, &join->p.sets);
    if (!join->self) gnomon_sets_free(join->ctx, &join->q.sets);
    join->q.sets = (gnomon_sets){0};
    GNOMON_TRY(gnomon_form_choose(join->ctx, join->options.metric, p, q,
                                  join->self ? GNOMON_FORM_SELF_JOIN : GNOMON_FORM_THRESHOLD,
                                  &form));
    return form.dense ? join_copies(join, form.why) : join_by_index(join, form.why);
}
