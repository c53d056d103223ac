#include "join/weights.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "join/slabs.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, /* of a task */ MOST_MEMBERS = 1 << 20 /* of a row */ };

/* What sums of up to MOST_MEMBERS roundings may be off, as a share, and some more. */
static const double slack = 0x1p-28;

/* Weights are at most 2^500: times this they are no subnormal numbers, and sums stay finite. */
static const double scale = 0x1p450;

typedef struct member {
    uint32_t number;
    double weight; /* scaled */
} member;

/* Rows of numbered members, ascending. */
typedef struct numbered {
    int64_t count;
    const int64_t *offsets; /* the sets' own */
    int64_t first;          /* offsets[0] */
    member *members;
    double *totals;
} numbered;

typedef struct posting {
    uint32_t row;
    float
        left; /* this member's weight and those that follow, as a share of the row's; rounded up */
    double weight;
} posting;

/* What a row shares so far with the one at work, by a worker. */
typedef struct scratch {
    double *shared;
    uint32_t *candidates;
    double *left; /* of the row at work: from a place on */
} scratch;

/* A row's prefix: the number of its last member, and the weights of what follows. */
typedef struct prefix {
    double left;
    int64_t last;
} prefix;

struct gnomon_weights {
    gnomon_join_state *join;
    double limit;
    numbered p, q; /* of a self-join q is p */
    int64_t longest;
    int64_t *lists; /* as many as numbers, and one: where each member's postings begin */
    posting *postings;
    prefix *prefixes; /* of Q's rows */
    int64_t *empty;   /* Q's rows without members */
    int64_t empty_count;
    scratch *scratch;
};

/* ---- bounds ---- */

/* T: of two rows within the limit, each shares so much of its own weight. */
static double least_share(double limit)
{
    return 1 - limit * (1 + slack);
}

/* What rows of weights that sum up to 'both' share at least, less what sums may be off. */
static double least_shared(double share, double both)
{
    return share / (1 + share) * both * (1 - slack);
}

/* ---- rows ---- */

static int64_t size_of(const numbered *rows, int64_t i)
{
    return rows->offsets[i + 1] - rows->offsets[i];
}

static const member *members_of(const numbered *rows, int64_t i)
{
    return rows->members + (rows->offsets[i] - rows->first);
}

typedef struct translation {
    const gnomon_numbering *numbering;
    const gnomon_sets *sets;
    numbered *out;
} translation;

static int by_number(const void *x, const void *y)
{
    const member *a = x, *b = y;
    return (a->number > b->number) - (a->number < b->number);
}

static void translate_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const translation *t = arg;
    const gnomon_sets *sets = t->sets;
    const int64_t end = gnomon_min((task + 1) * ROWS, sets->count);
    for (int64_t i = task * ROWS; i < end; i++) {
        const int64_t begin = sets->offsets[i], count = sets->offsets[i + 1] - begin;
        member *to = t->out->members + (begin - t->out->first);
        double total = 0;
        for (int64_t e = 0; e < count; e++) {
            to[e].number = (uint32_t)gnomon_numbering_find(t->numbering, sets->members[begin + e]);
            to[e].weight = sets->weights[begin + e] * scale;
            total += to[e].weight;
        }
        if (count > 0) qsort(to, (size_t)count, sizeof *to, by_number);
        t->out->totals[i] = total;
    }
}

static gnomon_status translate(gnomon_context *ctx, const gnomon_numbering *n,
                               const gnomon_sets *sets, numbered *out)
{
    *out = (numbered){.count = sets->count, .offsets = sets->offsets, .first = sets->offsets[0]};
    GNOMON_TRY(gnomon_alloc(ctx, sets->offsets[sets->count] - out->first, sizeof *out->members,
                            "members", &out->members));
    GNOMON_TRY(gnomon_alloc(ctx, sets->count, sizeof *out->totals, "sums", &out->totals));
    translation t = {n, sets, out};
    gnomon_parallel(ctx, gnomon_ceil_div(sets->count, ROWS), translate_rows, &t);
    return GNOMON_OK;
}

/* left[e]: the weights from place e on; how many places the prefix has. */
static int64_t measure(const numbered *rows, int64_t i, double share, double *left)
{
    const member *members = members_of(rows, i);
    const double least = share * rows->totals[i] * (1 - slack);
    double sum = 0;
    int64_t places = 0;
    for (int64_t e = size_of(rows, i) - 1; e >= 0; e--) {
        left[e] = sum += members[e].weight;
        if (places == 0 && sum >= least) places = e + 1;
    }
    return places;
}

/* ---- the lists ---- */

/* Rows of a list ascend. */
static gnomon_status make_lists(gnomon_weights *x, int64_t numbers)
{
    gnomon_context *ctx = x->join->ctx;
    const double share = least_share(x->limit);
    double *left = x->scratch[0].left;
    GNOMON_TRY(gnomon_alloc_zero(ctx, numbers + 2, sizeof *x->lists, "lists", &x->lists));
    GNOMON_TRY(gnomon_alloc(ctx, x->q.count, sizeof *x->prefixes, "prefixes", &x->prefixes));
    GNOMON_TRY(gnomon_alloc(ctx, x->q.count, sizeof *x->empty, "empty rows", &x->empty));
    for (int64_t i = 0; i < x->q.count; i++) {
        const member *members = members_of(&x->q, i);
        const int64_t places = measure(&x->q, i, share, left);
        x->prefixes[i] = (prefix){0, -1};
        if (places == 0) {
            x->empty[x->empty_count++] = i;
            continue;
        }
        x->prefixes[i].last = members[places - 1].number;
        if (places < size_of(&x->q, i)) x->prefixes[i].left = left[places];
        for (int64_t e = 0; e < places; e++)
            x->lists[members[e].number + 2]++;
    }
    for (int64_t n = 0; n <= numbers; n++)
        x->lists[n + 1] += x->lists[n];
    GNOMON_TRY(
        gnomon_alloc(ctx, x->lists[numbers + 1], sizeof *x->postings, "lists", &x->postings));
    for (int64_t i = 0; i < x->q.count; i++) {
        const member *members = members_of(&x->q, i);
        const int64_t places = measure(&x->q, i, share, left);
        /* the next list's start is where this one is filled */
        for (int64_t e = 0; e < places; e++)
            x->postings[x->lists[members[e].number + 1]++] =
                (posting){(uint32_t)i, nextafterf((float)(left[e] / x->q.totals[i]), INFINITY),
                          members[e].weight};
    }
    return GNOMON_OK;
}

/* ---- open and close ---- */

static int64_t longest_of(const gnomon_sets *sets)
{
    int64_t most = 0;
    for (int64_t i = 0; i < sets->count; i++)
        most = gnomon_max(most, sets->offsets[i + 1] - sets->offsets[i]);
    return most;
}

bool gnomon_weights_fit(const gnomon_join_state *join)
{
    const gnomon_sets *p = &join->p.sets, *q = &join->q.sets;
    const int64_t threads = gnomon_context_threads(join->ctx);
    if (!(least_share(gnomon_join_threshold(join)) > 1e-3)) return false;
    if (p->count >= UINT32_MAX || q->count >= UINT32_MAX) return false;
    if (longest_of(p) > MOST_MEMBERS || longest_of(q) > MOST_MEMBERS) return false;
    int64_t members = q->offsets[q->count];
    if (!join->self) members += p->offsets[p->count];
    const int64_t bytes =
        gnomon_plus(gnomon_times(members, sizeof(member) + sizeof(posting)),
                    gnomon_times(gnomon_plus(p->count, q->count), 40 + 12 * threads));
    return members < UINT32_MAX && bytes >= 0 && bytes <= gnomon_memory_limit(join->ctx) / 2;
}

static gnomon_status open_workers(gnomon_weights *x)
{
    gnomon_context *ctx = x->join->ctx;
    const int64_t threads = gnomon_context_threads(ctx), rows = x->join->q.sets.count;
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *x->scratch, "sums", &x->scratch));
    for (int64_t t = 0; t < threads; t++) {
        scratch *own = &x->scratch[t];
        GNOMON_TRY(gnomon_alloc_zero(ctx, rows, sizeof *own->shared, "sums", &own->shared));
        GNOMON_TRY(gnomon_alloc(ctx, rows, sizeof *own->candidates, "sums", &own->candidates));
        GNOMON_TRY(gnomon_alloc(ctx, x->longest, sizeof *own->left, "sums", &own->left));
    }
    return GNOMON_OK;
}

static gnomon_status fill(gnomon_weights *x, const gnomon_numbering *numbering)
{
    gnomon_join_state *join = x->join;
    x->limit = gnomon_join_threshold(join);
    x->longest = gnomon_max(longest_of(&join->p.sets), longest_of(&join->q.sets));
    GNOMON_TRY(open_workers(x));
    GNOMON_TRY(translate(join->ctx, numbering, &join->p.sets, &x->p));
    if (join->self)
        x->q = x->p;
    else
        GNOMON_TRY(translate(join->ctx, numbering, &join->q.sets, &x->q));
    return make_lists(x, numbering->used);
}

gnomon_status gnomon_weights_open(gnomon_join_state *join, const gnomon_numbering *numbering,
                                  gnomon_weights **out)
{
    gnomon_weights *x;
    *out = NULL;
    GNOMON_TRY(gnomon_alloc_zero(join->ctx, 1, sizeof *x, "an index of weights", &x));
    x->join = join;
    const gnomon_status status = fill(x, numbering);
    if (status != GNOMON_OK)
        gnomon_weights_close(x);
    else
        *out = x;
    return status;
}

static void free_rows(gnomon_context *ctx, const numbered *rows)
{
    gnomon_free(ctx, rows->members);
    gnomon_free(ctx, rows->totals);
}

void gnomon_weights_close(gnomon_weights *x)
{
    if (x == NULL) return;
    gnomon_context *ctx = x->join->ctx;
    for (int64_t t = 0; x->scratch != NULL && t < gnomon_context_threads(ctx); t++) {
        gnomon_free(ctx, x->scratch[t].shared);
        gnomon_free(ctx, x->scratch[t].candidates);
        gnomon_free(ctx, x->scratch[t].left);
    }
    gnomon_free(ctx, x->scratch);
    gnomon_free(ctx, x->lists);
    gnomon_free(ctx, x->postings);
    gnomon_free(ctx, x->prefixes);
    gnomon_free(ctx, x->empty);
    if (!x->join->self) free_rows(ctx, &x->q);
    free_rows(ctx, &x->p);
    gnomon_free(ctx, x);
}

/* ---- meeting ---- */

typedef struct pairing {
    gnomon_asking asking;
    gnomon_weights *x;
    const gnomon_metric_row *metric;
    double share;
    gnomon_pair_slabs slabs;
    int64_t row, count;
    _Atomic int64_t compared, verified;
} pairing;

/* The first of a member's postings whose row is not below 'row'. */
static int64_t first_from(const gnomon_weights *x, int64_t begin, int64_t end, int64_t row)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if ((int64_t)x->postings[middle].row < row)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Sums up what row i shares with others, within both prefixes; how many others may be near. */
static int64_t add_shared(const gnomon_weights *x, int64_t i, double share, int64_t places,
                          const scratch *own)
{
    const member *members = members_of(&x->p, i);
    const double total = x->p.totals[i];
    int64_t count = 0;
    for (int64_t at = 0; at < places; at++) {
        const double weight = members[at].weight, left = own->left[at];
        const int64_t end = x->lists[members[at].number + 1];
        int64_t e = x->lists[members[at].number];
        if (x->join->self) e = first_from(x, e, end, i + 1);
        for (; e < end; e++) {
            const posting *p = &x->postings[e];
            double *shared = &own->shared[p->row];
            if (*shared == 0) {
                const double other = x->q.totals[p->row];
                if (fmin(left, (double)p->left * other) < least_shared(share, total + other))
                    continue;
                own->candidates[count++] = p->row;
            }
            *shared += fmin(weight, p->weight);
        }
    }
    return count;
}

typedef struct counts {
    int64_t compared, verified;
} counts;

static void pairs_of_row(pairing *m, int64_t i, const scratch *own, int64_t *slab, counts *counted)
{
    gnomon_weights *x = m->x;
    const gnomon_join_state *join = x->join;
    const int64_t places = measure(&x->p, i, m->share, own->left), size = size_of(&x->p, i);
    for (int64_t e = 0; size == 0 && e < x->empty_count; e++) {
        if (join->self && x->empty[e] <= i) continue;
        gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, slab);
        if (pair == NULL) return;
        *pair = (gnomon_pair){i, x->empty[e], 0};
    }
    const int64_t count = add_shared(x, i, m->share, places, own);
    const int64_t last = places > 0 ? (int64_t)members_of(&x->p, i)[places - 1].number : -1;
    const double left = places < size ? own->left[places] : 0;
    counted->compared += count;
    for (int64_t n = 0; n < count; n++) {
        const int64_t j = own->candidates[n];
        const double shared = own->shared[j];
        own->shared[j] = 0;
        /* all that they share up to the end of the shorter prefix is summed up */
        const double more = last <= x->prefixes[j].last ? left : x->prefixes[j].left;
        if (shared + more < least_shared(m->share, x->p.totals[i] + x->q.totals[j])) continue;
        const double distance = m->metric->sets(&join->p.sets, i, &join->q.sets, j);
        counted->verified++;
        if (!(distance <= x->limit)) continue;
        gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, slab);
        if (pair != NULL) *pair = (gnomon_pair){i, j, distance};
    }
}

static void pairs_of_rows(void *arg, int64_t task, int worker)
{
    pairing *m = arg;
    int64_t slab = -1;
    counts counted = {0, 0};
    const int64_t first = m->row + task * ROWS, last = m->row + m->count;
    for (int64_t i = first; i < first + ROWS && i < last; i++) {
        if (atomic_load_explicit(&m->slabs.full, memory_order_relaxed) ||
            gnomon_asking_stops(&m->asking, worker))
            break;
        pairs_of_row(m, i, &m->x->scratch[worker], &slab, &counted);
    }
    atomic_fetch_add(&m->compared, counted.compared);
    atomic_fetch_add(&m->verified, counted.verified);
}

gnomon_status gnomon_weights_pairs(gnomon_weights *x, int64_t row, int64_t count, bool *fits)
{
    gnomon_join_state *join = x->join;
    const int64_t tasks = gnomon_ceil_div(count, ROWS);
    /* of one row any number may wait */
    int64_t room = gnomon_max(join->pair_room - join->count, x->q.count);
    const int64_t all = gnomon_times(count, x->q.count);
    if (all >= 0) room = gnomon_min(room, all);
    x->limit = fmin(x->limit, gnomon_join_threshold(join));
    pairing m = {.asking = {.ctx = join->ctx, .phase = "join", .done = row, .total = join->p.rows},
                 .x = x,
                 .metric = gnomon_metric_row_of(join->options.metric),
                 .share = least_share(x->limit),
                 .row = row,
                 .count = count};
    GNOMON_TRY(gnomon_pair_slabs_open(&m.slabs, join, room, tasks));
    gnomon_parallel(join->ctx, tasks, pairs_of_rows, &m);
    gnomon_pair_slabs_close(&m.slabs, join);
    join->result->compared += m.compared;
    join->result->verified += m.verified;
    *fits = !m.slabs.full;
    return m.asking.status;
}

double gnomon_weights_cost(const gnomon_weights *x)
{
    /* one thread of an AMD Zen 3 */
    static const double per_row = 50, per_list = 40, per_posting = 6;
    enum { SOME = 2048 };
    const int64_t rows = x->p.count, some = gnomon_min(rows, SOME);
    const double share = least_share(x->limit);
    double *left = x->scratch[0].left, lists = 0, postings = 0;
    for (int64_t s = 0; s < some; s++) {
        const int64_t i = s * rows / some, places = measure(&x->p, i, share, left);
        const member *members = members_of(&x->p, i);
        for (int64_t at = 0; at < places; at++)
            postings += (double)(x->lists[members[at].number + 1] - x->lists[members[at].number]);
        lists += (double)places;
    }
    if (some == 0) return 0;
    if (x->join->self) postings /= 2;
    return (double)rows * (per_row + (per_list * lists + per_posting * postings) / (double)some);
}
