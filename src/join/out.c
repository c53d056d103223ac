/* Pairs on their way out: a band's rows are put in order. */
#include "join/out.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/order/places.h"
#include "join/state.h"

#include <inttypes.h>
#include <stdlib.h>

gnomon_status gnomon_join_reserve(gnomon_join_state *join, int64_t more)
{
    int64_t room;
    if (more >= 0 && more <= join->room - join->count) return GNOMON_OK;
    GNOMON_FAIL_IF(!gnomon_add(join->count, more, &room) || !gnomon_mul(room, 3, &room), join->ctx,
                   GNOMON_ERROR_OVERFLOW, "more pairs than can be counted");
    room /= 2;
    GNOMON_TRY(
        gnomon_grow(join->ctx, &join->pairs, join->count, room, sizeof *join->pairs, "pairs"));
    join->room = room;
    return GNOMON_OK;
}

gnomon_status gnomon_join_out_open(gnomon_join_state *join)
{
    /* A pair waits once as it was found and once in order. */
    const int64_t fit = gnomon_memory_limit(join->ctx) / 4 / (2 * (int64_t)sizeof(gnomon_pair));
    join->pair_room = fit < 1024 ? 1024 : fit;
    join->next_row = join->options.first_row;
    join->end_row = gnomon_join_divided(join->ranks) ? join->next_row : join->p.rows;
    if (join->options.top == 0) return GNOMON_OK;
    /* there are no more pairs than these */
    const int64_t all = gnomon_times(join->p.rows, join->q.rows);
    return gnomon_alloc(join->ctx, all >= 0 && all < join->options.top ? all : join->options.top,
                        sizeof *join->heap, "top: the closest pairs", &join->heap);
}

void gnomon_join_out_close(gnomon_join_state *join)
{
    gnomon_free(join->ctx, join->pairs);
    gnomon_free(join->ctx, join->sorted);
    gnomon_free(join->ctx, join->starts);
    gnomon_free(join->ctx, join->heap);
}

/* ---- a band ---- */

static int by_column(const void *x, const void *y)
{
    const gnomon_pair *a = x, *b = y;
    return (a->j > b->j) - (a->j < b->j);
}

static void sort_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_join_state *join = arg;
    gnomon_pair *pairs = join->sorted + join->starts[task];
    const int64_t count = join->starts[task + 1] - join->starts[task];
    bool ascending = true;
    for (int64_t at = 1; at < count && ascending; at++)
        ascending = pairs[at - 1].j < pairs[at].j;
    if (!ascending) qsort(pairs, (size_t)count, sizeof *pairs, by_column);
}

/* A band's pairs on their way into rows. */
typedef struct sorting {
    const gnomon_join_state *join;
    gnomon_row_places places;
} sorting;

static void count_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const sorting *s = arg;
    const gnomon_join_state *join = s->join;
    int64_t *counts = gnomon_row_places_of(&s->places, part);
    const int64_t end = gnomon_row_places_begin(&s->places, part + 1);
    for (int64_t at = gnomon_row_places_begin(&s->places, part); at < end; at++)
        counts[join->pairs[at].i - join->next_row]++;
}

static void place_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const sorting *s = arg;
    const gnomon_join_state *join = s->join;
    int64_t *places = gnomon_row_places_of(&s->places, part);
    const int64_t end = gnomon_row_places_begin(&s->places, part + 1);
    for (int64_t at = gnomon_row_places_begin(&s->places, part); at < end; at++) {
        const int64_t row = join->pairs[at].i - join->next_row;
        join->sorted[join->starts[row] + places[row]++] = join->pairs[at];
    }
}

/* Into the order of (i, j): by row first, then each row by column. */
static gnomon_status sort_band(gnomon_join_state *join, int64_t rows)
{
    gnomon_context *ctx = join->ctx;
    sorting s = {.join = join};
    GNOMON_TRY(gnomon_renew(ctx, &join->starts, &join->starts_room, rows + 1, sizeof *join->starts,
                            "rows"));
    if (join->sorted_room < join->count)
        GNOMON_TRY(gnomon_renew(ctx, &join->sorted, &join->sorted_room, join->room,
                                sizeof *join->sorted, "pairs"));
    GNOMON_TRY(gnomon_row_places_open(ctx, rows, join->count, &s.places));
    gnomon_parallel(ctx, s.places.parts, count_part, &s);
    gnomon_row_places_set(ctx, &s.places, join->starts);
    gnomon_parallel(ctx, s.places.parts, place_part, &s);
    gnomon_row_places_free(ctx, &s.places);
    gnomon_parallel(ctx, rows, sort_row, join);
    return GNOMON_OK;
}

gnomon_status gnomon_join_hand_ordered(gnomon_join_state *join, const gnomon_pair *pairs,
                                       int64_t count, int64_t end)
{
    join->next_row = end;
    if (join->heap != NULL) {
        gnomon_join_offer(join, pairs, count);
        return GNOMON_OK;
    }
    return gnomon_join_divided(join->ranks) ? gnomon_join_ranks_add(join, pairs, count, end)
                                            : gnomon_join_emit(join, pairs, count, end);
}

gnomon_status gnomon_join_hand_out(gnomon_join_state *join, int64_t end)
{
    join->result->bands++;
    if (join->heap == NULL) GNOMON_TRY(sort_band(join, end - join->next_row));
    const int64_t count = join->count;
    join->count = 0;
    return gnomon_join_hand_ordered(join, join->heap != NULL ? join->pairs : join->sorted, count,
                                    end);
}
