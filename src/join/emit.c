/* Pairs in their order, of one process or at rank 0, are counted and given to the sink; the closest
 * of all are kept. */
#include "join/out.h"

#include "base/error.h"
#include "join/state.h"

#include <math.h>

enum { BATCH = 65536 };

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

void gnomon_join_offer(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count)
{
    for (int64_t at = 0; at < count; at++)
        offer(join, &pairs[at]);
}

double gnomon_join_threshold(const gnomon_join_state *join)
{
    const double given = join->options.threshold;
    if (join->heap == NULL || join->heap_count < join->options.top) return given;
    const double farthest = join->heap[0].distance;
    return gnomon_metric_is(join->options.metric, GNOMON_METRIC_LARGER) ? fmax(given, farthest)
                                                                        : fmin(given, farthest);
}

/* ---- batches ---- */

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

gnomon_status gnomon_join_emit(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count,
                               int64_t end)
{
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
