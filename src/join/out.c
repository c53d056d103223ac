/* Pairs on their way out: a band's rows are put in order, counted and handed out. */
#include "join/out.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 65536 };

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

/* ---- the closest ---- */

/* Whether x comes before y among the closest. */
static bool closer(const gnomon_join_state *join, const gnomon_pair *x, const gnomon_pair *y)
{
    if (x->distance != y->distance)
        return (x->distance < y->distance) ==
               (!gnomon_metric_is(join->options.metric, GNOMON_METRIC_LARGER));
    return x->i < y->i || (x->i == y->i && x->j < y->j);
}

static void sift_down(gnomon_join_state *join, int64_t count, int64_t at)
{
    gnomon_pair *heap = join->heap;
    const gnomon_pair pair = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && closer(join, &heap[child], &heap[child + 1])) child++;
        if (!closer(join, &pair, &heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = pair;
}

static void offer(gnomon_join_state *join, const gnomon_pair *pair)
{
    gnomon_pair *heap = join->heap;
    if (join->heap_count == join->options.top) {
        if (!closer(join, pair, &heap[0])) return;
        heap[0] = *pair;
        sift_down(join, join->heap_count, 0);
        return;
    }
    int64_t at = join->heap_count++;
    while (at > 0 && closer(join, &heap[(at - 1) / 2], pair)) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = *pair;
}

double gnomon_join_threshold(const gnomon_join_state *join)
{
    const double given = join->options.threshold;
    if (join->heap == NULL || join->heap_count < join->options.top) return given;
    const double farthest = join->heap[0].distance;
    return gnomon_metric_is(join->options.metric, GNOMON_METRIC_LARGER) ? fmax(given, farthest)
                                                                        : fmin(given, farthest);
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

/* Into the order of (i, j): by row first, then each row by column. */
static gnomon_status sort_band(gnomon_join_state *join, int64_t rows)
{
    gnomon_context *ctx = join->ctx;
    if (join->starts_room < rows + 1) {
        gnomon_free(ctx, join->starts);
        join->starts = NULL;
        join->starts_room = 0;
        GNOMON_TRY(gnomon_alloc(ctx, rows + 1, sizeof *join->starts, "rows", &join->starts));
        join->starts_room = rows + 1;
    }
    if (join->sorted_room < join->count) {
        gnomon_free(ctx, join->sorted);
        join->sorted = NULL;
        join->sorted_room = 0;
        GNOMON_TRY(gnomon_alloc(ctx, join->room, sizeof *join->sorted, "pairs", &join->sorted));
        join->sorted_room = join->room;
    }
    int64_t *starts = join->starts;
    memset(starts, 0, (size_t)(rows + 1) * sizeof *starts);
    for (int64_t at = 0; at < join->count; at++)
        starts[join->pairs[at].i - join->next_row + 1]++;
    for (int64_t row = 0; row < rows; row++)
        starts[row + 1] += starts[row];
    /* the starts serve as the places to fill and are turned back */
    for (int64_t at = 0; at < join->count; at++)
        join->sorted[starts[join->pairs[at].i - join->next_row]++] = join->pairs[at];
    for (int64_t row = rows; row > 0; row--)
        starts[row] = starts[row - 1];
    starts[0] = 0;
    gnomon_parallel(ctx, rows, sort_row, join);
    return GNOMON_OK;
}

static void count_points(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count)
{
    int64_t *p = join->options.p_counts, *q = join->options.q_counts;
    if (join->self) q = p;
    for (int64_t at = 0; at < count; at++) {
        if (p != NULL) p[pairs[at].i]++;
        if (q != NULL) q[pairs[at].j]++;
    }
}

static gnomon_status hand_batches(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count,
                                  int64_t end)
{
    const gnomon_join_options *o = &join->options;
    for (int64_t from = 0; from == 0 || from < count; from += BATCH) {
        const int64_t some = count - from < BATCH ? count - from : BATCH;
        const bool last = from + some == count;
        gnomon_join_batch batch = {pairs + from, some, end};
        if (!last) batch.rows_done = pairs[from + some].i;
        join->result->pairs += some;
        join->result->rows_done = batch.rows_done;
        gnomon_join_tell_result(join);
        GNOMON_FAIL_IF(o->sink != NULL && o->sink(o->user, &batch) != 0, join->ctx,
                       GNOMON_ERROR_CANCELLED, "the taker of pairs ended the join");
    }
    return GNOMON_OK;
}

gnomon_status gnomon_join_hand_ordered(gnomon_join_state *join, const gnomon_pair *pairs,
                                       int64_t count, int64_t end)
{
    join->next_row = end;
    if (join->heap != NULL) {
        for (int64_t at = 0; at < count; at++)
            offer(join, &pairs[at]);
        return GNOMON_OK;
    }
    const int64_t left = join->options.max_pairs - join->result->pairs;
    int64_t done = end;
    if (join->options.max_pairs > 0 && count >= left) {
        /* complete are the rows before the first pair that is left */
        if (count > left) done = pairs[left].i;
        count = left;
        join->full = true;
    }
    count_points(join, pairs, count);
    return hand_batches(join, pairs, count, done);
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

gnomon_status gnomon_join_finish(gnomon_join_state *join)
{
    if (join->heap == NULL) return GNOMON_OK;
    for (int64_t last = join->heap_count - 1; last > 0; last--) {
        const gnomon_pair farthest = join->heap[0];
        join->heap[0] = join->heap[last];
        join->heap[last] = farthest;
        sift_down(join, last, 0);
    }
    const gnomon_join_batch batch = {join->heap, join->heap_count, join->next_row};
    const gnomon_join_options *o = &join->options;
    join->result->pairs = join->heap_count;
    join->result->rows_done = join->next_row;
    gnomon_join_tell_result(join);
    GNOMON_FAIL_IF(o->sink != NULL && o->sink(o->user, &batch) != 0, join->ctx,
                   GNOMON_ERROR_CANCELLED, "the taker of pairs ended the join");
    return GNOMON_OK;
}
