/* What the tests of joins share: pairs as they come, and every pair in fp64 beside them. */
#ifndef JOIN_TESTING_H
#define JOIN_TESTING_H

#include "search_testing.h"

#include <gnomon/join.h>

/* Gathers batches, and looks at their order. */
typedef struct gathered {
    gnomon_pair *pairs;
    int64_t count, room, rows_done, batches;
    int64_t stop_after; /* batches; 0: never */
} gathered;

static inline int gather(void *user, const gnomon_join_batch *batch)
{
    gathered *g = user;
    assert_true(batch->rows_done >= g->rows_done);
    for (int64_t at = 0; at < batch->count; at++) {
        if (g->count == g->room) {
            g->room = g->room * 2 + 64;
            g->pairs = realloc(g->pairs, (size_t)g->room * sizeof *g->pairs);
            assert_non_null(g->pairs);
        }
        g->pairs[g->count++] = batch->pairs[at];
        assert_true(batch->pairs[at].i >= 0);
    }
    g->rows_done = batch->rows_done;
    g->batches++;
    return g->batches == g->stop_after;
}

static inline int by_row(const void *x, const void *y)
{
    const gnomon_pair *a = x, *b = y;
    if (a->i != b->i) return a->i < b->i ? -1 : 1;
    return (a->j > b->j) - (a->j < b->j);
}

static inline void same_pairs(const gathered *got, const gathered *want, const char *what)
{
    for (int64_t at = 0; at < got->count && at < want->count; at++) {
        const gnomon_pair *g = &got->pairs[at], *w = &want->pairs[at];
        if (memcmp(g, w, sizeof *g) != 0)
            fail_msg("%s: pair %lld is (%lld, %lld) at %.17g, want (%lld, %lld) at %.17g", what,
                     (long long)at, (long long)g->i, (long long)g->j, g->distance, (long long)w->i,
                     (long long)w->j, w->distance);
    }
    if (got->count != want->count)
        fail_msg("%s: %lld pairs, want %lld", what, (long long)got->count, (long long)want->count);
}

#endif
