/* What a search has found: hits by radius, the answers, and those of two parts of one base. */
#include "search/hits.h"
#include "search/device.h"
#include "search/jaccard.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"

#include <inttypes.h>
#include <string.h>

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

static double distance_of(const gnomon_search *s, double key)
{
    return gnomon_metric_turn(s->options.metric, key);
}

typedef struct answer {
    gnomon_search *s;
    gnomon_neighbors *out;
    gnomon_ranked *sorted; /* by radius: the hits, query by query */
} answer;

static void hand_out(void *arg, int64_t q, int number)
{
    (void)number;
    const answer *a = arg;
    const int64_t first = a->out->offsets[q], count = a->out->offsets[q + 1] - first;
    gnomon_ranked *points = a->s->options.k > 0 ? a->s->nearest[q].heap : a->sorted + first;
    gnomon_ranked_sort(points, count);
    for (int64_t i = 0; i < count; i++) {
        a->out->ids[first + i] = points[i].id;
        a->out->distances[first + i] = distance_of(a->s, points[i].key);
    }
}

static gnomon_status check_count(const gnomon_search *s, int64_t q, int64_t count, int64_t base)
{
    GNOMON_FAIL_IF(count < s->options.k, s->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 ", and %" PRId64 " of base's %" PRId64
                                   " points may be neighbours of query %" PRId64,
                   s->options.k, count, base, q);
    return GNOMON_OK;
}

static gnomon_status make_room(gnomon_search *s, gnomon_neighbors *out, int64_t answers)
{
    GNOMON_TRY(gnomon_alloc(s->ctx, answers, sizeof *out->ids, "ids", &out->ids));
    return gnomon_alloc(s->ctx, answers, sizeof *out->distances, "distances", &out->distances);
}

/* The k nearest that a device found. */
static gnomon_status bring(gnomon_search *s, gnomon_neighbors *out)
{
    const int64_t k = s->options.k;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    GNOMON_TRY(make_room(s, out, s->count * k));
    int64_t *counts = out->offsets;
    GNOMON_TRY(gnomon_search_finish_on_device(s, counts, out->ids, out->distances));
    if (gnomon_metric_of_sets(s->options.metric))
        GNOMON_TRY(gnomon_sets_fill(s, counts, out->ids, out->distances));
    int64_t next = 0;
    for (int64_t q = 0; q < s->count; q++) {
        const int64_t count = counts[q];
        memmove(out->ids + next, out->ids + q * k, (size_t)count * sizeof *out->ids);
        memmove(out->distances + next, out->distances + q * k,
                (size_t)count * sizeof *out->distances);
        out->offsets[q] = next;
        next += count;
    }
    out->offsets[s->count] = next;
    return GNOMON_OK;
}

static gnomon_status collect(answer *a)
{
    gnomon_search *s = a->s;
    gnomon_neighbors *out = a->out;
    GNOMON_TRY(
        gnomon_alloc_zero(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    for (int64_t q = 0; q < s->count && s->options.k > 0; q++)
        out->offsets[q + 1] = out->offsets[q] + s->nearest[q].count;
    if (s->options.k == 0) {
        for (int64_t i = 0; i < s->hit_count; i++)
            out->offsets[s->hits[i].query + 1]++;
        for (int64_t q = 0; q < s->count; q++)
            out->offsets[q + 1] += out->offsets[q];
        GNOMON_TRY(
            gnomon_alloc(s->ctx, s->hit_count, sizeof *a->sorted, "sorted hits", &a->sorted));
        /* offsets serve as the places to fill and are turned back */
        for (int64_t i = 0; i < s->hit_count; i++)
            a->sorted[out->offsets[s->hits[i].query]++] = s->hits[i].point;
        for (int64_t q = s->count; q > 0; q--)
            out->offsets[q] = out->offsets[q - 1];
        out->offsets[0] = 0;
        gnomon_free(s->ctx, s->hits);
        s->hits = NULL;
    }
    GNOMON_TRY(make_room(s, out, out->offsets[s->count]));
    gnomon_parallel(s->ctx, s->count, hand_out, a);
    return GNOMON_OK;
}

gnomon_status gnomon_neighbors_check(gnomon_search *s, const gnomon_neighbors *found)
{
    for (int64_t q = 0; q < s->count && s->options.k > 0; q++)
        GNOMON_TRY(check_count(s, q, found->offsets[q + 1] - found->offsets[q], found->base));
    return GNOMON_OK;
}

/* The answers as they are; what could be allocated of them is freed on failure. */
static gnomon_status find(gnomon_search *s, gnomon_neighbors *found)
{
    const bool there = s->device.part != NULL && s->options.k > 0;
    if (gnomon_metric_of_sets(s->options.metric) && !there) GNOMON_TRY(gnomon_sets_complete(s));
    answer a = {s, found, NULL};
    const gnomon_status status = there ? bring(s, found) : collect(&a);
    gnomon_free(s->ctx, a.sorted);
    found->queries = s->count;
    found->k = s->options.k;
    found->base = s->base - s->first;
    found->compared = s->compared;
    found->verified = s->verified;
    memcpy(found->why, s->why, sizeof found->why);
    if (status != GNOMON_OK) gnomon_neighbors_free(s->ctx, found);
    return status;
}

gnomon_status gnomon_search_finish_partial(gnomon_search *s, gnomon_neighbors *out)
{
    GNOMON_FAIL_IF(s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "the search has handed out its answers");
    s->finished = true;
    return find(s, out);
}

/* Refuses, before any work on answers, that of k nearest some are missing. */
static gnomon_status check_found(gnomon_search *s)
{
    if (s->options.k == 0 || s->device.part != NULL) return GNOMON_OK;
    if (gnomon_metric_of_sets(s->options.metric)) GNOMON_TRY(gnomon_sets_complete(s));
    for (int64_t q = 0; q < s->count; q++)
        GNOMON_TRY(check_count(s, q, s->nearest[q].count, s->base - s->first));
    return GNOMON_OK;
}

gnomon_status gnomon_search_finish(gnomon_search *s, gnomon_neighbors *out)
{
    GNOMON_NEED(NULL, s, "search");
    gnomon_neighbors found = {.struct_size = sizeof found};
    GNOMON_TRY(GNOMON_OPEN_RESULT(s->ctx, "out", gnomon_neighbors, out));
    GNOMON_FAIL_IF(s->finished, s->ctx, GNOMON_ERROR_ARGUMENT,
                   "the search has handed out its answers");
    GNOMON_TRY(check_found(s));
    s->finished = true;
    gnomon_status status = find(s, &found);
    if (status == GNOMON_OK) status = gnomon_neighbors_check(s, &found);
    if (status == GNOMON_OK) gnomon_return_result(out, &found, sizeof found);
    gnomon_neighbors_free(s->ctx, &found);
    return status;
}

/* ---- the answers of two parts ---- */

typedef struct both {
    const gnomon_search *s;
    const gnomon_neighbors *a, *b;
    gnomon_neighbors *out;
} both;

static gnomon_ranked ranked_at(const both *m, const gnomon_neighbors *n, int64_t at)
{
    return (gnomon_ranked){gnomon_metric_turn(m->s->options.metric, n->distances[at]), n->ids[at]};
}

static void merge_query(void *arg, int64_t q, int worker)
{
    (void)worker;
    const both *m = arg;
    int64_t a = m->a->offsets[q], b = m->b->offsets[q];
    for (int64_t at = m->out->offsets[q]; at < m->out->offsets[q + 1]; at++) {
        const bool first = b == m->b->offsets[q + 1] ||
                           (a < m->a->offsets[q + 1] &&
                            gnomon_ranked_before(ranked_at(m, m->a, a), ranked_at(m, m->b, b)));
        const gnomon_neighbors *from = first ? m->a : m->b;
        const int64_t next = first ? a++ : b++;
        m->out->ids[at] = from->ids[next];
        m->out->distances[at] = from->distances[next];
    }
}

gnomon_status gnomon_neighbors_merge(gnomon_search *s, const gnomon_neighbors *a,
                                     const gnomon_neighbors *b, gnomon_neighbors *out)
{
    *out = (gnomon_neighbors){.struct_size = sizeof *out, .queries = s->count, .k = s->options.k};
    GNOMON_TRY(gnomon_alloc(s->ctx, s->count + 1, sizeof *out->offsets, "offsets", &out->offsets));
    out->offsets[0] = 0;
    for (int64_t q = 0; q < s->count; q++) {
        int64_t count = a->offsets[q + 1] - a->offsets[q] + b->offsets[q + 1] - b->offsets[q];
        if (s->options.k > 0) count = gnomon_min(count, s->options.k);
        out->offsets[q + 1] = out->offsets[q] + count;
    }
    const gnomon_status status = make_room(s, out, out->offsets[s->count]);
    if (status != GNOMON_OK) {
        gnomon_neighbors_free(s->ctx, out);
        return status;
    }
    both m = {s, a, b, out};
    gnomon_parallel(s->ctx, s->count, merge_query, &m);
    out->base = a->base + b->base;
    out->compared = a->compared + b->compared;
    out->verified = a->verified + b->verified;
    memcpy(out->why, a->base > 0 ? a->why : b->why, sizeof out->why);
    return GNOMON_OK;
}

void gnomon_neighbors_free(gnomon_context *ctx, gnomon_neighbors *neighbors)
{
    gnomon_neighbors found;
    if (ctx == NULL || !gnomon_load_result(neighbors, &found, sizeof found)) return;
    gnomon_free(ctx, found.offsets);
    gnomon_free(ctx, found.ids);
    gnomon_free(ctx, found.distances);
    gnomon_clear_result(neighbors);
}
