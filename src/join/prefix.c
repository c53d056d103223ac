#include "join/prefix.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "join/slabs.h"
#include "join/weights.h"
#include "search/numbering.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; /* of a task */

/* Sets of numbered members, ascending. */
typedef struct numbered {
    int64_t count;
    const int64_t *offsets; /* the sets' own */
    int64_t first;          /* offsets[0] */
    uint32_t *members;
} numbered;

typedef struct posting {
    uint32_t set, place, size;
} posting;

struct gnomon_prefix {
    gnomon_join_state *join;
    gnomon_weights *weights; /* of rows of weights all else is there */
    double limit;
    numbered p, q; /* of a self-join q is p */
    int64_t numbers;
    int64_t *lists; /* numbers + 1: where each member's postings begin */
    posting *postings;
    int64_t *empty; /* Q's sets without members */
    int64_t empty_count;
    /* a worker's: how many members a set shares so far, and which sets those are */
    uint32_t **shared, **candidates;
};

/* ---- numbers ---- */

typedef struct translation {
    const gnomon_numbering *numbering;
    const gnomon_sets *sets;
    numbered *out;
} translation;

static int by_number(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

static void sort_numbers(uint32_t *members, int64_t count)
{
    if (count > 64) {
        qsort(members, (size_t)count, sizeof *members, by_number);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        const uint32_t member = members[i];
        int64_t at = i;
        for (; at > 0 && members[at - 1] > member; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
}

static void translate_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const translation *t = arg;
    const gnomon_sets *sets = t->sets;
    const int64_t end = (task + 1) * ROWS < sets->count ? (task + 1) * ROWS : sets->count;
    for (int64_t i = task * ROWS; i < end; i++) {
        uint32_t *to = t->out->members + (sets->offsets[i] - t->out->first);
        const int64_t count = sets->offsets[i + 1] - sets->offsets[i];
        for (int64_t e = 0; e < count; e++)
            to[e] =
                (uint32_t)gnomon_numbering_find(t->numbering, sets->members[sets->offsets[i] + e]);
        sort_numbers(to, count);
    }
}

static gnomon_status translate(gnomon_context *ctx, const gnomon_numbering *n,
                               const gnomon_sets *sets, numbered *out)
{
    *out = (numbered){.count = sets->count, .offsets = sets->offsets, .first = sets->offsets[0]};
    GNOMON_TRY(gnomon_alloc(ctx, sets->offsets[sets->count] - out->first, sizeof *out->members,
                            "members", &out->members));
    translation t = {n, sets, out};
    gnomon_parallel(ctx, (sets->count + ROWS - 1) / ROWS, translate_rows, &t);
    return GNOMON_OK;
}

static int64_t size_of(const numbered *sets, int64_t i)
{
    return sets->offsets[i + 1] - sets->offsets[i];
}

static const uint32_t *members_of(const numbered *sets, int64_t i)
{
    return sets->members + (sets->offsets[i] - sets->first);
}

/* How many of a set's first members are in the lists. */
static int64_t prefix_of(double limit, int64_t size)
{
    return size - gnomon_jaccard_size(limit, size) + 1;
}

/* ---- the lists ---- */

/* Q's sets by size, smallest first: order[0 .. count). */
static gnomon_status order_by_size(gnomon_prefix *x, int64_t **out)
{
    gnomon_context *ctx = x->join->ctx;
    int64_t most = 0, *starts;
    for (int64_t i = 0; i < x->q.count; i++)
        if (size_of(&x->q, i) > most) most = size_of(&x->q, i);
    GNOMON_TRY(gnomon_alloc(ctx, x->q.count, sizeof **out, "sets", out));
    GNOMON_TRY(gnomon_alloc_zero(ctx, most + 2, sizeof *starts, "sizes", &starts));
    for (int64_t i = 0; i < x->q.count; i++)
        starts[size_of(&x->q, i) + 1]++;
    for (int64_t size = 0; size <= most; size++)
        starts[size + 1] += starts[size];
    for (int64_t i = 0; i < x->q.count; i++)
        (*out)[starts[size_of(&x->q, i)]++] = i;
    gnomon_free(ctx, starts);
    return GNOMON_OK;
}

static gnomon_status make_lists(gnomon_prefix *x)
{
    gnomon_context *ctx = x->join->ctx;
    int64_t *order = NULL, *lists;
    GNOMON_TRY(gnomon_alloc_zero(ctx, x->numbers + 2, sizeof *x->lists, "lists", &x->lists));
    GNOMON_TRY(gnomon_alloc(ctx, x->q.count, sizeof *x->empty, "empty sets", &x->empty));
    lists = x->lists;
    for (int64_t i = 0; i < x->q.count; i++) {
        const int64_t size = size_of(&x->q, i);
        if (size == 0) {
            x->empty[x->empty_count++] = i;
            continue;
        }
        const int64_t prefix = prefix_of(x->limit, size);
        for (int64_t at = 0; at < prefix; at++)
            lists[members_of(&x->q, i)[at] + 2]++;
    }
    for (int64_t number = 0; number <= x->numbers; number++)
        lists[number + 1] += lists[number];
    GNOMON_TRY(
        gnomon_alloc(ctx, lists[x->numbers + 1], sizeof *x->postings, "lists", &x->postings));
    gnomon_status status = order_by_size(x, &order);
    /* the next list's start is where this one is filled */
    for (int64_t n = 0; n < x->q.count && status == GNOMON_OK; n++) {
        const int64_t i = order[n], size = size_of(&x->q, i);
        const int64_t prefix = size == 0 ? 0 : prefix_of(x->limit, size);
        for (int64_t at = 0; at < prefix; at++)
            x->postings[lists[members_of(&x->q, i)[at] + 1]++] =
                (posting){(uint32_t)i, (uint32_t)at, (uint32_t)size};
    }
    gnomon_free(ctx, order);
    return status;
}

/* ---- open and close ---- */

bool gnomon_prefix_fits(const gnomon_join_state *join)
{
    const gnomon_sets *p = &join->p.sets, *q = &join->q.sets;
    const gnomon_metric_row *metric = gnomon_metric_row_of(join->options.metric);
    const double limit = gnomon_join_threshold(join);
    if (metric->by_sums) return gnomon_weights_fit(join);
    if (metric->counts == NULL) return false;
    /* beyond it prefixes are nearly whole sets, and counting them is as good */
    if (!(limit < 0.95)) return false;
    for (int64_t i = 0; i < p->count; i++)
        if (p->offsets[i + 1] - p->offsets[i] >= INT32_MAX) return false;
    for (int64_t i = 0; i < q->count; i++)
        if (q->offsets[i + 1] - q->offsets[i] >= INT32_MAX) return false;
    return p->count < UINT32_MAX && q->count < UINT32_MAX &&
           p->offsets[p->count] + q->offsets[q->count] < (int64_t)1 << 31;
}

static gnomon_status open_workers(gnomon_prefix *x)
{
    gnomon_context *ctx = x->join->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *x->shared, "counts", &x->shared));
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *x->candidates, "counts", &x->candidates));
    for (int64_t t = 0; t < threads; t++) {
        GNOMON_TRY(gnomon_alloc_zero(ctx, x->q.count, sizeof **x->shared, "counts", &x->shared[t]));
        GNOMON_TRY(
            gnomon_alloc(ctx, x->q.count, sizeof **x->candidates, "counts", &x->candidates[t]));
    }
    return GNOMON_OK;
}

static gnomon_status fill(gnomon_prefix *x, gnomon_numbering *n)
{
    gnomon_join_state *join = x->join;
    gnomon_context *ctx = join->ctx;
    const int64_t cols = join->p.cols;
    const gnomon_sets *p = &join->p.sets, *q = &join->q.sets;
    const int64_t members =
        p->offsets[p->count] - p->offsets[0] + q->offsets[q->count] - q->offsets[0];
    GNOMON_TRY(gnomon_numbering_open(ctx, cols, members, n));
    GNOMON_TRY(gnomon_numbering_count(ctx, n, &join->p.sets));
    if (!join->self) GNOMON_TRY(gnomon_numbering_count(ctx, n, &join->q.sets));
    GNOMON_TRY(gnomon_numbering_close(ctx, n));
    if (gnomon_metric_row_of(join->options.metric)->by_sums)
        return gnomon_weights_open(join, n, &x->weights);
    x->numbers = n->used;
    GNOMON_TRY(translate(ctx, n, &join->p.sets, &x->p));
    if (join->self)
        x->q = x->p;
    else
        GNOMON_TRY(translate(ctx, n, &join->q.sets, &x->q));
    GNOMON_TRY(make_lists(x));
    return open_workers(x);
}

gnomon_status gnomon_prefix_open(gnomon_join_state *join, gnomon_prefix **out)
{
    gnomon_prefix *x;
    gnomon_numbering n = {0};
    *out = NULL;
    GNOMON_TRY(gnomon_alloc_zero(join->ctx, 1, sizeof *x, "an index of sets", &x));
    x->join = join;
    x->limit = gnomon_join_threshold(join);
    const gnomon_status status = fill(x, &n);
    gnomon_numbering_free(join->ctx, &n);
    if (status != GNOMON_OK)
        gnomon_prefix_close(x);
    else
        *out = x;
    return status;
}

void gnomon_prefix_close(gnomon_prefix *x)
{
    if (x == NULL) return;
    gnomon_context *ctx = x->join->ctx;
    gnomon_weights_close(x->weights);
    for (int64_t t = 0; t < gnomon_context_threads(ctx); t++) {
        if (x->shared != NULL) gnomon_free(ctx, x->shared[t]);
        if (x->candidates != NULL) gnomon_free(ctx, x->candidates[t]);
    }
    gnomon_free(ctx, x->shared);
    gnomon_free(ctx, x->candidates);
    gnomon_free(ctx, x->lists);
    gnomon_free(ctx, x->postings);
    gnomon_free(ctx, x->empty);
    if (!x->join->self) gnomon_free(ctx, x->q.members);
    gnomon_free(ctx, x->p.members);
    gnomon_free(ctx, x);
}

/* ---- meeting ---- */

typedef struct pairing {
    gnomon_asking asking;
    gnomon_prefix *x;
    gnomon_pair_slabs slabs;
    int64_t row, count;
    _Atomic int64_t compared;
} pairing;

/* How many members two sets share, given that it is 'least' or more; less than it otherwise. */
static int64_t count_shared(const uint32_t *a, int64_t a_size, const uint32_t *b, int64_t b_size,
                            int64_t least)
{
    int64_t i = 0, j = 0, shared = 0;
    while (i < a_size && j < b_size) {
        const int64_t left = a_size - i < b_size - j ? a_size - i : b_size - j;
        if (shared + left < least) return 0;
        const uint32_t x = a[i], y = b[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

/* The first of a member's postings whose set is not smaller. */
static int64_t first_of_size(const gnomon_prefix *x, int64_t begin, int64_t end, int64_t size)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if ((int64_t)x->postings[middle].size < size)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* The first of a member's postings whose set is too large to share enough. */
static int64_t first_too_large(const gnomon_prefix *x, int64_t begin, int64_t end, int64_t size)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (gnomon_jaccard_shared(x->limit, size + (int64_t)x->postings[middle].size) <= size)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

double gnomon_prefix_cost(const gnomon_prefix *x)
{
    /* one thread of an AMD Zen 3 */
    static const double per_set = 50, per_list = 40, per_posting = 6;
    enum { SOME = 2048 };
    if (x->weights != NULL) return gnomon_weights_cost(x->weights);
    const int64_t rows = x->p.count, some = rows < SOME ? rows : SOME;
    double lists = 0, postings = 0;
    for (int64_t s = 0; s < some; s++) {
        const int64_t i = s * rows / some, size = size_of(&x->p, i);
        if (size == 0) continue;
        const int64_t smallest = gnomon_jaccard_size(x->limit, size);
        for (int64_t at = 0; at <= size - smallest; at++) {
            const int64_t member = members_of(&x->p, i)[at], end = x->lists[member + 1];
            const int64_t begin = first_of_size(x, x->lists[member], end, smallest);
            postings += (double)(first_too_large(x, begin, end, size) - begin);
            lists++;
        }
    }
    if (some == 0) return 0;
    /* postings of earlier rows of a self-join are passed over, at nearly the same cost */
    return (double)rows * (per_set + (per_list * lists + per_posting * postings) / (double)some);
}

static const uint32_t NO_MORE = UINT32_MAX; /* of a set that is too far already */

static void pairs_of_row(pairing *m, int64_t i, uint32_t *shared, uint32_t *candidates,
                         int64_t *slab, int64_t *compared)
{
    gnomon_prefix *x = m->x;
    const bool self = x->join->self;
    const int64_t size = size_of(&x->p, i);
    int64_t candidate_count = 0;
    if (size == 0) {
        for (int64_t e = 0; e < x->empty_count; e++) {
            if (self && x->empty[e] <= i) continue;
            gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, slab);
            if (pair == NULL) return;
            *pair = (gnomon_pair){i, x->empty[e], 0};
        }
        return;
    }
    const uint32_t *members = members_of(&x->p, i);
    const int64_t smallest = gnomon_jaccard_size(x->limit, size), prefix = size - smallest + 1;
    int64_t last_size = -1, least = 0;
    for (int64_t at = 0; at < prefix; at++) {
        const int64_t end = x->lists[members[at] + 1];
        int64_t e = first_of_size(x, x->lists[members[at]], end, smallest);
        for (; e < end; e++) {
            const posting *p = &x->postings[e];
            const int64_t other = p->size;
            if (self && (int64_t)p->set <= i) continue;
            if (other != last_size) {
                last_size = other;
                least = gnomon_jaccard_shared(x->limit, size + other);
                /* larger sets are farther still */
                if (least > size) break;
            }
            uint32_t *count = &shared[p->set];
            if (*count == NO_MORE) continue;
            if (*count == 0) candidates[candidate_count++] = p->set;
            const int64_t left = (size - at < other - p->place ? size - at : other - p->place);
            if ((int64_t)*count + left < least)
                *count = NO_MORE;
            else
                ++*count;
        }
    }
    *compared += candidate_count;
    for (int64_t n = 0; n < candidate_count; n++) {
        const int64_t j = candidates[n], other = size_of(&x->q, j);
        const bool may = shared[j] != NO_MORE;
        shared[j] = 0;
        if (!may) continue;
        const int64_t both = count_shared(members, size, members_of(&x->q, j), other,
                                          gnomon_jaccard_shared(x->limit, size + other));
        const double distance = gnomon_jaccard(size + other, both);
        if (both == 0 || !(distance <= x->limit)) continue;
        gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, slab);
        if (pair != NULL) *pair = (gnomon_pair){i, j, distance};
    }
}

static void pairs_of_rows(void *arg, int64_t task, int worker)
{
    pairing *m = arg;
    int64_t slab = -1, compared = 0;
    const int64_t first = m->row + task * ROWS, last = m->row + m->count;
    for (int64_t i = first; i < first + ROWS && i < last; i++) {
        if (atomic_load_explicit(&m->slabs.full, memory_order_relaxed) ||
            gnomon_asking_stops(&m->asking, worker))
            break;
        pairs_of_row(m, i, m->x->shared[worker], m->x->candidates[worker], &slab, &compared);
    }
    atomic_fetch_add(&m->compared, compared);
}

gnomon_status gnomon_prefix_pairs(gnomon_prefix *x, int64_t row, int64_t count, bool *fits)
{
    gnomon_join_state *join = x->join;
    if (x->weights != NULL) return gnomon_weights_pairs(x->weights, row, count, fits);
    pairing m = {.asking = {.ctx = join->ctx, .phase = "join", .done = row, .total = join->p.rows},
                 .x = x,
                 .row = row,
                 .count = count};
    const int64_t tasks = (count + ROWS - 1) / ROWS;
    int64_t room = join->pair_room - join->count;
    if (room < x->q.count) room = x->q.count;
    const int64_t all = gnomon_times(count, x->q.count);
    if (all >= 0 && all < room) room = all;
    x->limit = fmin(x->limit, gnomon_join_threshold(join));
    GNOMON_TRY(gnomon_pair_slabs_open(&m.slabs, join, room, tasks));
    gnomon_parallel(join->ctx, tasks, pairs_of_rows, &m);
    gnomon_pair_slabs_close(&m.slabs, join);
    join->result->compared += m.compared;
    *fits = !m.slabs.full;
    return m.asking.status;
}
