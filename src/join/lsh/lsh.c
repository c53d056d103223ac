/* Buckets: points of one bucket are compared, in the first table where they meet.
 *
 * Rows of P come in bands, at first all at once (or as many as the caller wants): should their
 * pairs become more than may wait, the band is done again with fewer rows. Within a band tables
 * come one after the other, a few of them sorted at a time, the band's points alone, of a self-join
 * with those after them; candidates of a table are cut into tasks of about equally many, wherever
 * buckets begin and end, so that a bucket with many of the points occupies all threads and takes no
 * memory. */
#include "join/lsh/lsh.h"
#include "join/prefix.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/lsh/keys.h"
#include "join/lsh/plan.h"
#include "join/out.h"
#include "join/sets.h"
#include "join/state.h"
#include "join/verify.h"
#include "lsh/families/family.h"
#include "lsh/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    TASK = 16384,     /* candidates */
    SLICE = 1 << 20,  /* candidates between two checks of the pairs that wait */
    MOST_SORTED = 16, /* tables at a time */
    COUNTERS = 8      /* int64_t of a worker's own, a cache line */
};

/* A side's points in the order of a table. */
typedef struct sorted {
    gnomon_table_scratch scratch; /* keys[0], ids[0] */
} sorted;

typedef struct buckets {
    sorted p, q; /* q: not of a self-join */
    /* the places in Q's order (P's) that the point at a place of P's order meets */
    uint32_t *begin, *end;
} buckets;

typedef struct cut {
    int64_t place;  /* in P's order */
    uint32_t other; /* in Q's */
    int64_t count;  /* candidates */
} cut;

typedef struct hashed {
    gnomon_join_state *join;
    const gnomon_join_plan *plan;
    int64_t tables;
    uint32_t *p_keys, *q_keys;
    gnomon_verifier verifier;
    int64_t room; /* tables sorted at a time */
    buckets *buckets;
    cut *cuts;
    int64_t cut_count;
    /* of the table at work */
    const buckets *at;
    int64_t table, band_end;
    int64_t places; /* in P's order */
    double threshold;
    atomic_llong count;
    int64_t *counters; /* a worker's: compared, verified */
} hashed;

/* ---- a table in order ---- */

static void sort_side(const uint32_t *keys, int64_t first, int64_t n, int64_t tables, int64_t table,
                      sorted *to)
{
    uint64_t *column = to->scratch.keys[0];
    for (int64_t i = 0; i < n; i++)
        column[i] = keys[(first + i) * tables + table];
    gnomon_table_sort(column, n, (uint32_t)first, &to->scratch);
}

/* Of a self-join: the places after one's own in its bucket. */
static void verify_itself(buckets *b, int64_t n)
{
    const uint64_t *keys = b->p.scratch.keys[0];
    int64_t end = n;
    for (int64_t place = n - 1; place >= 0; place--) {
        if (place + 1 < n && keys[place] != keys[place + 1]) end = place + 1;
        b->begin[place] = (uint32_t)(place + 1);
        b->end[place] = (uint32_t)end;
    }
}

static void verify_other(buckets *b, int64_t n, int64_t m)
{
    const uint64_t *keys = b->p.scratch.keys[0], *others = b->q.scratch.keys[0];
    int64_t begin = 0, end = 0;
    for (int64_t place = 0; place < n; place++) {
        if (place == 0 || keys[place] != keys[place - 1]) {
            while (begin < m && others[begin] < keys[place])
                begin++;
            end = begin;
            while (end < m && others[end] == keys[place])
                end++;
        }
        b->begin[place] = (uint32_t)begin;
        b->end[place] = (uint32_t)end;
    }
}

typedef struct sorting {
    hashed *h;
    int64_t first; /* table */
} sorting;

static void sort_table(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sorting *s = arg;
    const hashed *h = s->h;
    const gnomon_join_state *join = h->join;
    buckets *b = &h->buckets[task];
    sort_side(h->p_keys, join->next_row, h->places, h->tables, s->first + task, &b->p);
    if (join->self) {
        verify_itself(b, h->places);
    } else {
        sort_side(h->q_keys, 0, join->q.rows, h->tables, s->first + task, &b->q);
        verify_other(b, h->places, join->q.rows);
    }
}

/* ---- candidates ---- */

/* Whether two points have met in one of the first tables. */
static bool shared_before(const uint32_t *x, const uint32_t *y, int64_t tables)
{
    int64_t t = 0;
    for (; t + 8 <= tables; t += 8) {
        uint32_t same = 0;
        for (int64_t l = t; l < t + 8; l++)
            same |= (uint32_t)(x[l] == y[l]);
        if (same != 0) return true;
    }
    for (; t < tables; t++)
        if (x[t] == y[t]) return true;
    return false;
}

static bool in_band(const hashed *h, uint32_t row)
{
    return row < h->band_end;
}

/* Row i's candidates at places [from, to) of the other side's order. */
static void verify_bucket(hashed *h, int64_t i, uint32_t from, uint32_t to, int worker)
{
    const gnomon_join_state *join = h->join;
    const uint32_t *others = join->self ? h->at->p.scratch.ids[0] : h->at->q.scratch.ids[0];
    const uint32_t *keys = h->p_keys + i * h->tables;
    const uint32_t *other_keys = join->self ? h->p_keys : h->q_keys;
    gnomon_query query = {.factor = 0};
    bool ready = false;
    for (uint32_t at = from; at < to; at++) {
        const int64_t j = others[at];
        if (shared_before(keys, other_keys + j * h->tables, h->table)) continue;
        if (!ready) query = gnomon_verifier_row(&h->verifier, i, worker);
        ready = true;
        h->counters[worker * COUNTERS + 1]++;
        const double distance = gnomon_verifier_distance(&h->verifier, query, i, j);
        if (!(distance <= h->threshold)) continue;
        join->pairs[atomic_fetch_add_explicit(&h->count, 1, memory_order_relaxed)] =
            (gnomon_pair){i, j, distance};
    }
    h->counters[worker * COUNTERS] += to - from;
}

static void verify_cut(void *arg, int64_t task, int worker)
{
    hashed *h = arg;
    const cut *c = &h->cuts[task];
    const uint32_t *rows = h->at->p.scratch.ids[0];
    uint32_t from = c->other;
    int64_t left = c->count;
    for (int64_t place = c->place; left > 0; place++) {
        if (place > c->place) from = h->at->begin[place];
        if (!in_band(h, rows[place])) continue;
        uint32_t to = h->at->end[place];
        if (to - from > left) to = from + (uint32_t)left;
        verify_bucket(h, rows[place], from, to, worker);
        left -= to - from;
    }
}

/* The next tasks, from a place on, which moves on; false when there is none left. */
static bool next_slice(hashed *h, int64_t *place, uint32_t *other)
{
    const uint32_t *rows = h->at->p.scratch.ids[0];
    int64_t total = 0;
    h->cut_count = 0;
    cut c = {*place, *other, 0};
    while (*place < h->places && total < SLICE) {
        const int64_t left = in_band(h, rows[*place]) ? h->at->end[*place] - *other : 0;
        if (c.count == 0) c = (cut){*place, *other, 0};
        const int64_t room = TASK - c.count, some = left < room ? left : room;
        c.count += some;
        total += some;
        if (some == left) {
            ++*place;
            *other = *place < h->places ? h->at->begin[*place] : 0;
        } else {
            *other += (uint32_t)some;
        }
        if (c.count == TASK) {
            h->cuts[h->cut_count++] = c;
            c.count = 0;
        }
    }
    if (c.count > 0) h->cuts[h->cut_count++] = c;
    return h->cut_count > 0;
}

/* How far the band has come, in thousandths of a table. */
static gnomon_status tell(const hashed *h, int64_t tables)
{
    const double n = (double)h->join->p.rows;
    const double band = (double)(h->band_end - h->join->next_row) / n;
    const double before = (double)h->join->next_row / n;
    const double all = 1000 * (double)h->tables;
    return gnomon_progress(h->join->ctx, "join",
                           (int64_t)(all * before + 1000 * band * (double)tables), (int64_t)all);
}

/* One table's pairs; *fits: whether they may wait beside those before. */
static gnomon_status join_table(hashed *h, bool *fits)
{
    gnomon_join_state *join = h->join;
    int64_t place = 0;
    uint32_t other = h->at->begin[0];
    while (next_slice(h, &place, &other)) {
        int64_t some = 0;
        for (int64_t c = 0; c < h->cut_count; c++)
            some += h->cuts[c].count;
        GNOMON_TRY(gnomon_join_reserve(join, some));
        h->threshold = gnomon_join_threshold(join);
        atomic_store(&h->count, join->count);
        gnomon_parallel(join->ctx, h->cut_count, verify_cut, h);
        join->count = atomic_load(&h->count);
        *fits = join->count <= join->pair_room || h->band_end == join->next_row + 1;
        if (!*fits) return GNOMON_OK;
        GNOMON_TRY(tell(h, h->table));
    }
    return GNOMON_OK;
}

/* ---- bands ---- */

static gnomon_status do_band(hashed *h, bool *fits)
{
    gnomon_join_state *join = h->join;
    join->count = 0;
    *fits = true;
    h->places = (join->self ? join->p.rows : h->band_end) - join->next_row;
    for (int64_t first = 0; first < h->tables; first += h->room) {
        const int64_t some = h->tables - first < h->room ? h->tables - first : h->room;
        sorting s = {h, first};
        gnomon_parallel(join->ctx, some, sort_table, &s);
        for (int64_t t = 0; t < some; t++) {
            h->at = &h->buckets[t];
            h->table = first + t;
            GNOMON_TRY(join_table(h, fits));
            if (!*fits) return GNOMON_OK;
            GNOMON_TRY(tell(h, h->table + 1));
        }
    }
    return GNOMON_OK;
}

static gnomon_status all_bands(hashed *h)
{
    gnomon_join_state *join = h->join;
    const int64_t most = join->options.band_rows > 0 ? join->options.band_rows : INT64_MAX;
    int64_t rows = join->p.rows - join->next_row;
    bool more, fits;
    for (;;) {
        GNOMON_TRY(gnomon_join_more(join, &more));
        if (!more) return GNOMON_OK;
        const int64_t left = join->end_row - join->next_row;
        if (rows > left) rows = left;
        if (rows > most) rows = most;
        h->band_end = join->next_row + rows;
        GNOMON_TRY(do_band(h, &fits));
        if (!fits) {
            rows = rows / 4 > 0 ? rows / 4 : 1;
            continue;
        }
        const double each = (double)join->count / (double)rows + 1e-3;
        const double next = (double)join->pair_room / 2 / each;
        GNOMON_TRY(gnomon_join_hand_out(join, h->band_end));
        if (next > 2 * (double)rows) rows *= 2;
    }
}

/* ---- memory ---- */

static gnomon_status sorted_open(gnomon_context *ctx, int64_t n, sorted *s)
{
    for (int side = 0; side < 2; side++) {
        GNOMON_TRY(gnomon_alloc(ctx, n, sizeof(uint64_t), "sorted keys", &s->scratch.keys[side]));
        GNOMON_TRY(gnomon_alloc(ctx, n, sizeof(uint32_t), "sorted points", &s->scratch.ids[side]));
    }
    return GNOMON_OK;
}

static void sorted_close(gnomon_context *ctx, sorted *s)
{
    for (int side = 0; side < 2; side++) {
        gnomon_free(ctx, s->scratch.keys[side]);
        gnomon_free(ctx, s->scratch.ids[side]);
    }
}

/* Bytes of a table in order; rows are fewer than 2^32. */
static int64_t table_bytes(const gnomon_join_state *join)
{
    return gnomon_plus(gnomon_times(join->p.rows, 24 + 8),
                       join->self ? 0 : gnomon_times(join->q.rows, 24));
}

static int64_t key_bytes(const gnomon_join_state *join, int64_t tables)
{
    return gnomon_times(gnomon_plus(join->p.rows, join->self ? 0 : join->q.rows),
                        gnomon_times(4, tables));
}

static gnomon_status hashed_open(hashed *h)
{
    gnomon_join_state *join = h->join;
    gnomon_context *ctx = join->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    const int64_t fit = gnomon_memory_limit(ctx) / 4 / table_bytes(join);
    h->room = threads < MOST_SORTED ? threads : MOST_SORTED;
    if (h->room > fit) h->room = fit > 0 ? fit : 1;
    if (h->room > h->tables) h->room = h->tables;
    GNOMON_TRY(gnomon_alloc_zero(ctx, h->room, sizeof *h->buckets, "tables", &h->buckets));
    for (int64_t t = 0; t < h->room; t++) {
        buckets *b = &h->buckets[t];
        GNOMON_TRY(sorted_open(ctx, join->p.rows, &b->p));
        if (!join->self) GNOMON_TRY(sorted_open(ctx, join->q.rows, &b->q));
        GNOMON_TRY(gnomon_alloc(ctx, join->p.rows, sizeof *b->begin, "buckets", &b->begin));
        GNOMON_TRY(gnomon_alloc(ctx, join->p.rows, sizeof *b->end, "buckets", &b->end));
    }
    GNOMON_TRY(gnomon_alloc(ctx, SLICE / TASK + 2, sizeof *h->cuts, "tasks", &h->cuts));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(threads, COUNTERS), sizeof *h->counters,
                                 "counts", &h->counters));
    return gnomon_verifier_open(join, &h->verifier);
}

static void hashed_close(hashed *h)
{
    gnomon_context *ctx = h->join->ctx;
    if (h->verifier.join != NULL) gnomon_verifier_close(&h->verifier);
    for (int64_t t = 0; t < h->room && h->buckets != NULL; t++) {
        sorted_close(ctx, &h->buckets[t].p);
        sorted_close(ctx, &h->buckets[t].q);
        gnomon_free(ctx, h->buckets[t].begin);
        gnomon_free(ctx, h->buckets[t].end);
    }
    gnomon_free(ctx, h->buckets);
    gnomon_free(ctx, h->cuts);
    gnomon_free(ctx, h->counters);
    gnomon_free(ctx, h->p_keys);
    gnomon_free(ctx, h->q_keys);
}

static gnomon_status join_hashed(gnomon_join_state *join, const gnomon_join_plan *plan)
{
    hashed h = {.join = join, .plan = plan, .tables = gnomon_plan_tables(plan)};
    gnomon_status status = gnomon_join_keys(join, plan, &join->p, &h.p_keys);
    if (status == GNOMON_OK && !join->self)
        status = gnomon_join_keys(join, plan, &join->q, &h.q_keys);
    if (status == GNOMON_OK) status = hashed_open(&h);
    if (status == GNOMON_OK) status = all_bands(&h);
    for (int64_t w = 0; h.counters != NULL && w < gnomon_context_threads(join->ctx); w++) {
        join->result->compared += h.counters[w * COUNTERS];
        join->result->verified += h.counters[w * COUNTERS + 1];
    }
    hashed_close(&h);
    return status;
}

/* ---- which join ---- */

/* Whether a row of sparse points is so short that hashing could take it for the zero row. */
static bool has_short_rows(const gnomon_join_state *join)
{
    const gnomon_sets *sides[] = {&join->p.sets, &join->q.sets};
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < sides[side]->count; i++)
            if (sides[side]->factors[i] > 0x1p100) return true;
    return false;
}

/* Why there can be no LSH join of this; NULL when there can. */
static const char *unfit(const gnomon_join_state *join)
{
    const gnomon_join_options *o = &join->options;
    if (gnomon_metric_is(o->metric, GNOMON_METRIC_LARGER))
        return "inner products have no locality-sensitive hashes";
    if (gnomon_metric_family(o->metric, 0) == 0)
        return "the metric has no locality-sensitive hashes";
    const gnomon_family_row *family = gnomon_family_row_of(gnomon_metric_family(o->metric, 0));
    if (family->width && family->rounding == NULL)
        return "how rounding moves values of the metric's hash functions has no bound";
    if (join->p.csr != NULL && (family->points & GNOMON_POINTS_SPARSE) == 0)
        return "sparse points have no locality-sensitive hashes by this metric";
    if (join->p.cols > (int64_t)1 << 56 && !family->any_dim)
        return "the points have more than 2^56 columns";
    if (join->p.csr != NULL && o->metric == GNOMON_COSINE && has_short_rows(join))
        return "single precision does not hold the shortest row";
    if (!isfinite(o->threshold)) return "it needs a threshold";
    if (!(o->recall < 1)) return "a recall of 1 is asked for";
    if (join->p.cols == 0) return "the points have no coordinates";
    if (join->p.to != NULL || join->q.to != NULL) return "the points are read in pieces";
    if (join->p.rows >= UINT32_MAX || join->q.rows >= UINT32_MAX) return "it has too many points";
    return NULL;
}

bool gnomon_join_wants_hashes(const gnomon_join_state *join)
{
    const gnomon_join_options *o = &join->options;
    return (o->method == GNOMON_JOIN_LSH || (o->method == GNOMON_JOIN_AUTO && o->recall < 1)) &&
           join->p.rows > 0 && join->q.rows > 0;
}

gnomon_status gnomon_join_no_hashing(gnomon_join_state *join, const char *reason)
{
    GNOMON_FAIL_IF(join->options.method == GNOMON_JOIN_LSH, join->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ABOUT("options.method") "there is no LSH join of this: %s", reason);
    gnomon_join_say(join, "%s", reason);
    return GNOMON_OK;
}

/* Sets *exact where the join is to be that. */
static gnomon_status decide(gnomon_join_state *join, gnomon_join_plan *plan, bool *exact)
{
    const char *reason = unfit(join);
    *exact = true;
    if (reason != NULL) return gnomon_join_no_hashing(join, reason);
    GNOMON_TRY(gnomon_join_plan_make(join, NULL, plan));
    const int64_t tables = gnomon_plan_tables(plan);
    if (tables == 0) return gnomon_join_no_hashing(join, GNOMON_JOIN_NO_TABLES);
    const bool must = join->options.method == GNOMON_JOIN_LSH;
    if (!must && gnomon_metric_of_sets(join->options.metric) && gnomon_prefix_fits(join)) {
        GNOMON_TRY(gnomon_prefix_open(join, &join->prefix));
        plan->exact_cost = gnomon_prefix_cost(join->prefix);
    }
    if (!gnomon_join_plan_pays(join, plan)) return GNOMON_OK;
    gnomon_join_drop_prefix(join);
    const int64_t bytes = gnomon_plus(key_bytes(join, tables), table_bytes(join));
    const int64_t limit = gnomon_memory_limit(join->ctx);
    GNOMON_FAIL_IF(must && bytes > limit, join->ctx, GNOMON_ERROR_MEMORY,
                   "an LSH join of this takes %" PRId64 " bytes beside the pairs; the limit is "
                   "%" PRId64,
                   bytes, limit);
    *exact = bytes > limit;
    if (*exact) gnomon_join_say(join, "an LSH join would take %" PRId64 " bytes", bytes);
    return GNOMON_OK;
}

gnomon_status gnomon_join_hashing(gnomon_join_state *join, int *hashing)
{
    const char *reason = unfit(join);
    const bool must = join->options.method == GNOMON_JOIN_LSH;
    *hashing = GNOMON_JOIN_NO_HASHING;
    if (!gnomon_join_wants_hashes(join)) return GNOMON_OK;
    if (must && reason != NULL) return gnomon_join_no_hashing(join, reason);
    if (reason == NULL) *hashing = must ? GNOMON_JOIN_MUST_HASH : GNOMON_JOIN_MAY_HASH;
    return GNOMON_OK;
}

bool gnomon_join_plan_pays(gnomon_join_state *join, const gnomon_join_plan *plan)
{
    if (join->options.method == GNOMON_JOIN_LSH || plan->cost < plan->exact_cost) return true;
    gnomon_join_say(join, "an LSH join would cost %.2g times as much by the model",
                    plan->cost / plan->exact_cost);
    return false;
}

void gnomon_join_tell_plan(gnomon_join_state *join, const gnomon_join_plan *plan)
{
    char width[48] = "";
    if (plan->functions.width > 0)
        snprintf(width, sizeof width, " of width %.4g", plan->functions.width);
    gnomon_join_say(
        join,
        "%s functions%s%s: %" PRId64 " tables of %" PRId64 " and %" PRId64 " of %" PRId64
        " miss a pair with probability %.2g at most; an exact join would cost %.3g times as "
        "much by the model",
        gnomon_lsh_family_name(plan->functions.family), width,
        plan->by_device ? ", for this device" : "", plan->shallow, plan->depth, plan->deep,
        plan->depth + 1, plan->miss, plan->exact_cost / plan->cost);
}

gnomon_status gnomon_join_by_hashes(gnomon_join_state *join, bool *done)
{
    gnomon_join_plan plan;
    bool exact = false;
    *done = false;
    if (!gnomon_join_wants_hashes(join)) return GNOMON_OK;
    GNOMON_TRY(decide(join, &plan, &exact));
    if (exact) return GNOMON_OK;
    *done = true;
    join->result->method = GNOMON_JOIN_LSH;
    join->result->recall = join->options.recall;
    gnomon_join_tell_plan(join, &plan);
    return join->next_row < join->p.rows ? join_hashed(join, &plan) : GNOMON_OK;
}
