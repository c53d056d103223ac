/* Queries: hashed in batches, each then looked up by one thread: buckets, candidates, codes,
 * distances. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "lsh/index.h"
#include "lsh/lists.h"
#include "lsh/probe.h"
#include "search/exact.h"
#include "search/hits.h"
#include "search/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_lsh_search_params, GNOMON_LSH_SEARCH_PARAMS_INIT)

/* One thread's memory. */
typedef struct finder {
    uint32_t *stamps; /* a point's: the number of the query that has seen it last */
    uint32_t stamp;
    uint32_t *candidates; /* room for 'most' */
    uint64_t *ranked;     /* with codes: a candidate's distance by code, then its id; or the hits */
    int64_t count;
    gnomon_prober prober;
    void *prober_memory;
    double *f64; /* the query, two numbers per coordinate */
    bool f32;    /* fp32 tells of some points that they are too far */
    int64_t buckets, seen, verified, exact;
    int64_t step, traced, noted, coded, sampled; /* a trace's: of this query */
} finder;

typedef struct finding {
    gnomon_context *ctx;
    const gnomon_kernels *kernels;
    const gnomon_lsh *index;
    gnomon_search *search;
    gnomon_lsh_search_params search_params;
    int64_t tables; /* that are probed */
    int64_t most;   /* candidates of a query */
    bool plain;     /* every point may be one */
    finder *finders;
    const gnomon_lsh_trace *trace; /* NULL: a query */
    /* the batch */
    int64_t first;
    gnomon_hashes hashes;
    int8_t *codes;     /* of its queries */
    int32_t *lists;    /* trained centres: the numbers of those nearest to each query, 'each', */
    double *list_keys; /* and how far away they are */
    int64_t each;
    bool scanned; /* its queries have been held against their lists */
    uint64_t multipliers[GNOMON_LSH_MOST_DEPTH];
    /* radius: hits go to the search's own list, whose count is claimed here */
    atomic_int_least64_t hits;
    int64_t hit_room;
} finding;

/* ---- traces ---- */

/* Of the neighbours among the candidates noted those that codes would let through, for each choice.
 */
static void note_choices(const finding *f, const finder *w, int64_t query, float *share)
{
    const gnomon_lsh_trace *t = f->trace;
    const gnomon_codes *c = &f->index->codes;
    const int64_t begin = t->offsets[query], end = t->offsets[query + 1];
    const float one = 1 / (float)(end - begin);
    for (int64_t j = begin; j < end; j++) {
        const uint32_t id = (uint32_t)t->ids[j];
        if (w->stamps[id] != w->stamp) continue;
        int64_t at = 0;
        /* a limit may lie before it */
        while (w->noted < w->count && at < w->noted && w->candidates[at] != id)
            at++;
        if (w->noted < w->count && at == w->noted) continue;
        share[0] += one;
        if (t->choices == 1) continue;
        uint64_t own;
        int64_t before = 0;
        f->kernels->rank_codes(f->codes + (query - f->first) * c->count, c->code, c->count, &id, 1,
                               &own);
        for (int64_t i = 0; i < w->noted; i++)
            before += w->ranked[i] < own;
        for (int64_t v = 1; v < t->choices; v++)
            share[v] += before < t->verified[v] ? one : 0;
    }
}

/* Whether the next step is reached; sees candidates until then. */
static bool reached(const finding *f, finder *w, bool over)
{
    const gnomon_lsh_trace *t = f->trace;
    const int64_t step = t->step[w->step];
    if (!t->limits && !over && step != w->traced) return false;
    while (w->noted < w->count && !(t->limits && (double)w->sampled * t->scale >= (double)step))
        w->sampled += w->candidates[w->noted++] >= t->sampled;
    return over || !t->limits || (double)w->sampled * t->scale >= (double)step;
}

/* Notes what has been found once the next steps are reached; 'over': there are no more buckets. */
static void note(const finding *f, finder *w, int64_t query, bool over)
{
    const gnomon_lsh_trace *t = f->trace;
    const gnomon_codes *c = &f->index->codes;
    for (; w->step < t->steps && reached(f, w, over); w->step++) {
        const int64_t at = query * t->steps + w->step;
        const bool none = t->offsets[query] == t->offsets[query + 1];
        float *share = t->share + at * t->choices;
        if (t->choices > 1)
            f->kernels->rank_codes(f->codes + (query - f->first) * c->count, c->code, c->count,
                                   w->candidates + w->coded, w->noted - w->coded,
                                   w->ranked + w->coded);
        w->coded = w->noted;
        if (t->limits) t->buckets[at] = (float)w->traced;
        const double candidates = (double)w->sampled * t->scale;
        memset(share, 0, (size_t)t->choices * sizeof *share);
        if (!none) note_choices(f, w, query, share);
        const double hits = (double)share[0] * (double)(t->offsets[query + 1] - t->offsets[query]);
        const bool few = (candidates > hits ? candidates : hits) + 0.5 < (double)t->least;
        t->candidates[at] = few ? -1 : (float)candidates;
        for (int64_t v = 0; v < t->choices && (few || none); v++)
            share[v] = 1;
    }
}

/* ---- candidates ---- */

static bool full(const finding *f, const finder *w)
{
    return w->count == f->most || (f->trace && w->step == f->trace->steps);
}

static void collect_entries(const finding *f, finder *w, int64_t query, const gnomon_table *t,
                            uint32_t begin, uint32_t end)
{
    const gnomon_search_options *o = &f->search->options;
    if (f->plain && w->count + (end - begin) <= f->most) {
        const uint32_t stamp = w->stamp;
        int64_t count = w->count;
        for (uint32_t e = begin; e < end; e++) {
            const uint32_t id = t->ids[e];
            w->candidates[count] = id;
            count += w->stamps[id] != stamp;
            w->stamps[id] = stamp;
        }
        w->count = count;
        return;
    }
    for (uint32_t e = begin; e < end && !full(f, w); e++) {
        const uint32_t id = t->ids[e];
        if (w->stamps[id] == w->stamp) continue;
        w->stamps[id] = w->stamp;
        if (gnomon_lsh_is_gone(f->index, id) || !gnomon_search_allows(o, id)) continue;
        if (o->exclude >= 0 && id == o->exclude + query) continue;
        w->candidates[w->count++] = id;
    }
}

/* Buckets to come, so that memory is asked for well before it is needed. */
enum { AHEAD = 16 };

typedef struct coming {
    const gnomon_table *table;
    uint64_t key;
    int64_t bucket;
} coming;

static void come(const finding *f, int64_t table, const uint64_t sums[2], coming *c)
{
    c->table = &f->index->tables[table];
    c->key = gnomon_key_of(sums[0], sums[1]);
    __builtin_prefetch(gnomon_table_cell(c->table, c->key));
}

static void collect_buckets(const finding *f, finder *w, int64_t query, coming *buckets, int count)
{
    for (int i = 0; i < count; i++) {
        const gnomon_table *t = buckets[i].table;
        const uint32_t low = *gnomon_table_cell(t, buckets[i].key);
        __builtin_prefetch(t->keys + low);
        __builtin_prefetch(t->first + low);
    }
    for (int i = 0; i < count; i++) {
        coming *c = &buckets[i];
        c->bucket = gnomon_table_find(c->table, c->key);
        if (c->bucket >= 0) __builtin_prefetch(c->table->ids + c->table->first[c->bucket]);
    }
    for (int i = 0; i < count && !full(f, w); i++) {
        const gnomon_table *t = buckets[i].table;
        const int64_t b = buckets[i].bucket;
        w->buckets++;
        if (b >= 0) collect_entries(f, w, query, t, t->first[b], t->first[b + 1]);
        w->traced++;
        if (f->trace) note(f, w, query, false);
    }
}

static void collect_coarse(const finding *f, finder *w, int64_t query, int64_t table,
                           const uint64_t sums[2])
{
    const gnomon_table *t = &f->index->tables[table];
    int64_t begin, end;
    gnomon_table_find_coarse(t, gnomon_key_half(sums[0]), &begin, &end);
    w->buckets++;
    w->traced++;
    if (begin < end) collect_entries(f, w, query, t, t->first[begin], t->first[end]);
    if (f->trace) note(f, w, query, false);
}

/* Sets the prober up for query q of the batch: its sums, and the items of the first 'functions' of
 * each table. */
static void open_probes(const finding *f, finder *w, int64_t q, int64_t functions)
{
    const gnomon_lsh *index = f->index;
    const int64_t depth = index->depth, coarse = index->options.coarse;
    const int others = index->hasher->others;
    gnomon_prober *p = &w->prober;
    for (int64_t t = 0; t < p->tables; t++) {
        const int64_t at = (q * index->options.tables + t) * depth;
        p->counts[t] = 0;
        p->sums[t][0] = p->sums[t][1] = 0;
        for (int64_t j = 0; j < depth; j++) {
            const int64_t value = f->hashes.values[at + j];
            const bool fine = j >= coarse;
            p->sums[t][fine] += (uint64_t)value * f->multipliers[j];
            for (int o = 0; f->hashes.others && j < functions && o < others; o++) {
                const int64_t place = (at + j) * others + o;
                gnomon_prober_add(p, t, f->hashes.costs[place], (uint32_t)j,
                                  (uint64_t)(f->hashes.others[place] - value) * f->multipliers[j],
                                  fine);
            }
        }
    }
}

static void collect_lists(const finding *f, finder *w, int64_t q)
{
    const int32_t *lists = f->lists + q * f->each;
    for (int64_t i = 0; i < f->each && !full(f, w);) {
        coming buckets[AHEAD];
        int count = 0;
        for (; count < AHEAD && i < f->each; count++, i++) {
            const uint64_t sums[2] = {(uint64_t)lists[i] * f->multipliers[0], 0};
            come(f, 0, sums, &buckets[count]);
        }
        collect_buckets(f, w, f->first + q, buckets, count);
    }
}

static void collect(const finding *f, finder *w, int64_t q)
{
    const int64_t query = f->first + q, tables = f->tables;
    int64_t table;
    uint64_t sums[2];
    w->count = w->step = w->traced = w->noted = w->coded = w->sampled = 0;
    if (++w->stamp == 0) {
        memset(w->stamps, 0, (size_t)f->index->points * sizeof *w->stamps);
        w->stamp = 1;
    }
    if (f->lists != NULL) {
        collect_lists(f, w, q);
        return;
    }
    open_probes(f, w, q, f->search_params.probes > 0 ? f->index->depth : 0);
    gnomon_prober_begin(&w->prober);
    for (int64_t i = 0, all = tables + f->search_params.probes; i < all && !full(f, w);) {
        coming buckets[AHEAD];
        int count = 0;
        for (; count < AHEAD && i < all; count++, i++) {
            if (i < tables) {
                come(f, i, w->prober.sums[i], &buckets[count]);
                continue;
            }
            if (!gnomon_prober_next(&w->prober, &table, sums)) break;
            come(f, table, sums, &buckets[count]);
        }
        if (count == 0) break;
        collect_buckets(f, w, query, buckets, count);
    }
    if (f->search_params.coarse == 0 || full(f, w)) return;
    open_probes(f, w, q, f->search_params.coarse > tables ? f->index->options.coarse : 0);
    int64_t left = f->search_params.coarse;
    for (int64_t t = 0; t < tables && left > 0 && !full(f, w); t++, left--)
        collect_coarse(f, w, query, t, w->prober.sums[t]);
    gnomon_prober_begin(&w->prober);
    for (; left > 0 && !full(f, w); left--) {
        if (!gnomon_prober_next(&w->prober, &table, sums)) break;
        collect_coarse(f, w, query, table, sums);
    }
}

/* ---- codes ---- */

/* Brings the 'keep' smallest of count distinct numbers to the front. */
static void partition(uint64_t *x, int64_t count, int64_t keep)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        const uint64_t a = x[low], b = x[low + (high - low) / 2], c = x[high];
        const uint64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot)
                i++;
            while (x[j] > pivot)
                j--;
            if (i > j) break;
            const uint64_t swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (keep - 1 <= j)
            high = j;
        else if (keep - 1 >= i)
            low = i;
        else
            return;
    }
}

/* The same for few of many: a sample tells below which number a few more than 'keep' of them lie,
 * which are then gathered without a branch that depends on the numbers. */
static void select_smallest(uint64_t *x, int64_t count, int64_t keep)
{
    enum { SAMPLE = 256, SPARE = 8 };
    uint64_t sample[SAMPLE], limit = 0;
    const int64_t rank = keep * SAMPLE / count * 3 / 2 + SPARE;
    if (count >= 8 * SAMPLE && rank < SAMPLE / 4) {
        for (int64_t i = 0; i < SAMPLE; i++)
            sample[i] = x[i * (count / SAMPLE)];
        partition(sample, SAMPLE, rank);
        for (int64_t i = 0; i < rank; i++)
            limit = sample[i] > limit ? sample[i] : limit;
        int64_t below = 0, front = 0;
        for (int64_t i = 0; i < count; i++)
            below += x[i] <= limit;
        for (int64_t i = 0; i < count && below >= keep; i++) {
            x[front] = x[i];
            front += x[i] <= limit;
        }
        if (below >= keep) count = below;
    }
    partition(x, count, keep);
}

/* Keeps the candidates whose codes are nearest. */
static void keep_nearest(const finding *f, finder *w, int64_t q, int64_t keep)
{
    const gnomon_codes *c = &f->index->codes;
    const int8_t *code = f->codes + q * c->count;
    f->kernels->rank_codes(code, c->code, c->count, w->candidates, w->count, w->ranked);
    select_smallest(w->ranked, w->count, keep);
    w->count = keep;
    for (int64_t i = 0; i < keep; i++)
        w->candidates[i] = (uint32_t)w->ranked[i];
}

/* ---- distances ---- */

static double key_of(const finding *f, int64_t query, gnomon_query ready, int64_t id)
{
    const gnomon_search *s = f->search;
    const gnomon_metric_row *row = gnomon_metric_row_of(s->options.metric);
    if (row->sets != NULL) return row->sets(&s->sets, query, &f->index->sets, id);
    if (s->sparse) return gnomon_sparse_key(row, s->kernels, &s->sets, query, &f->index->sets, id);
    const gnomon_lsh_block *b = gnomon_lsh_block_of(f->index, id);
    if (row->bits != NULL) return row->bits(&s->queries, query, &b->points, id - b->first);
    return row->key(s->kernels, ready, &b->points, id - b->first);
}

/* Asks for a point that will be needed. */
static void ask_for(const finding *f, int64_t id)
{
    enum { MOST_BYTES = 4096, LINE = 64 };
    const gnomon_sets *sets = &f->index->sets;
    if (sets->offsets != NULL) {
        if (!f->search->sparse) return;
        const int64_t begin = sets->offsets[id], end = sets->offsets[id + 1];
        for (int64_t e = begin; e < end && (e - begin) * 8 < MOST_BYTES; e += LINE / 8) {
            __builtin_prefetch(sets->members + e);
            __builtin_prefetch(sets->weights + e);
        }
        return;
    }
    const gnomon_lsh_block *b = gnomon_lsh_block_of(f->index, id);
    const char *row = gnomon_row_at(&b->points, id - b->first);
    const int64_t bytes = b->points.cols * (int64_t)gnomon_dtype_size(b->points.dtype);
    for (int64_t at = 0; at < bytes && at < MOST_BYTES; at += LINE)
        __builtin_prefetch(row + at);
}

/* Whether fp32 tells that a point is farther than what is found so far. */
static bool surely_farther(const finding *f, const finder *w, int64_t query, int64_t id)
{
    const gnomon_search *s = f->search;
    const double least = s->options.k == 0 ? s->limit : gnomon_nearest_farthest(&s->nearest[query]);
    if (!w->f32 || !(least < INFINITY)) return false;
    const gnomon_lsh_block *b = gnomon_lsh_block_of(f->index, id);
    if (b->points.dtype != GNOMON_F32 || b->points.col_stride != 1) return false;
    const float sum = s->kernels->differences_f32(
        gnomon_row_at(&s->queries, query), gnomon_row_at(&b->points, id - b->first), s->cols);
    return (double)sum > gnomon_least_f32(s->cols, least) && sum < INFINITY;
}

/* Verifies one point; with a radius hits gather at the front of 'hits'. */
static void verify(const finding *f, finder *w, int64_t query, gnomon_query ready, int64_t id,
                   int64_t *hits)
{
    gnomon_search *s = f->search;
    w->verified++;
    if (surely_farther(f, w, query, id)) return;
    const gnomon_ranked point = {key_of(f, query, ready, id), id};
    if (s->options.k > 0)
        gnomon_nearest_offer(&s->nearest[query], point);
    else if (point.key <= s->limit)
        w->candidates[(*hits)++] = (uint32_t)id;
}

static void verify_all(const finding *f, finder *w, int64_t query, gnomon_query ready)
{
    int64_t hits = 0;
    f->search->nearest[query].count = 0;
    w->exact++;
    for (int64_t id = 0; id < f->index->points; id++) {
        const gnomon_search_options *o = &f->search->options;
        if (gnomon_lsh_is_gone(f->index, (uint32_t)id) || !gnomon_search_allows(o, id)) continue;
        if (o->exclude >= 0 && id == o->exclude + query) continue;
        verify(f, w, query, ready, id, &hits);
    }
}

/* Hands a query's hits to the search, if there is room. */
static void hand_over(finding *f, finder *w, int64_t q, gnomon_query ready, int64_t hits)
{
    const int64_t query = f->first + q;
    const int64_t at = atomic_fetch_add(&f->hits, hits);
    for (int64_t i = 0; i < hits && at + hits <= f->hit_room; i++) {
        const int64_t id = w->candidates[i];
        f->search->hits[at + i] = (gnomon_hit){query, {key_of(f, query, ready, id), id}};
    }
}

static void find_one(finding *f, finder *w, int64_t q)
{
    gnomon_search *s = f->search;
    const int64_t query = f->first + q, k = s->options.k;
    gnomon_query ready = {.factor = 1};
    if (f->scanned && s->nearest[query].count == k) return;
    if (!f->scanned) {
        collect(f, w, q);
        w->seen += w->count;
    }
    if (f->trace) {
        note(f, w, query, true);
        return;
    }
    if (w->f64) ready = gnomon_query_to_f64(s, query, w->f64);
    if (k > 0 && (f->scanned || w->count < k)) {
        verify_all(f, w, query, ready);
        return;
    }
    int64_t keep = f->search_params.rerank > k ? f->search_params.rerank : k;
    if (k > 0 && f->search_params.rerank > 0 && keep < w->count) keep_nearest(f, w, q, keep);
    int64_t hits = 0;
    for (int64_t i = 0; i < w->count; i++) {
        if (i + 2 < w->count) ask_for(f, w->candidates[i + 2]);
        verify(f, w, query, ready, w->candidates[i], &hits);
    }
    if (k == 0) hand_over(f, w, q, ready, hits);
}

typedef struct batch {
    finding *f;
    gnomon_asking asking;
} batch;

/* A query is a task: tuning asks as few as four a thread, of which one may take many times as long
 * as another. */
static void find_query(void *arg, int64_t q, int worker)
{
    batch *b = arg;
    if (!gnomon_asking_stops(&b->asking, worker)) find_one(b->f, &b->f->finders[worker], q);
}

/* ---- memory and batches ---- */

static gnomon_status open_finder(finding *f, finder *w)
{
    gnomon_context *ctx = f->ctx;
    const gnomon_lsh *index = f->index;
    const int64_t tables = f->tables, n = index->points;
    const int64_t probes = f->search_params.probes > f->search_params.coarse
                               ? f->search_params.probes
                               : f->search_params.coarse;
    GNOMON_TRY(gnomon_alloc_zero(ctx, n, sizeof *w->stamps, "stamps", &w->stamps));
    GNOMON_TRY(gnomon_alloc(ctx, f->most, sizeof *w->candidates, "candidates", &w->candidates));
    if (index->codes.count > 0)
        GNOMON_TRY(gnomon_alloc(ctx, f->most, sizeof *w->ranked, "candidates", &w->ranked));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_prober_bytes(tables, probes), 1, "probes", &w->prober_memory));
    gnomon_prober_place(&w->prober, tables, probes, w->prober_memory);
    if (gnomon_metric_row_of(index->options.metric)->key != NULL && !gnomon_lsh_is_sparse(index))
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, f->search->cols), sizeof *w->f64, "a query",
                                &w->f64));
    const gnomon_matrix *m = &f->search->queries;
    w->f32 = index->options.metric == GNOMON_L2 && w->f64 != NULL && m->dtype == GNOMON_F32 &&
             m->col_stride == 1;
    return GNOMON_OK;
}

static void close_finder(gnomon_context *ctx, finder *w)
{
    gnomon_free(ctx, w->stamps);
    gnomon_free(ctx, w->candidates);
    gnomon_free(ctx, w->ranked);
    gnomon_free(ctx, w->prober_memory);
    gnomon_free(ctx, w->f64);
}

/* What threads did is counted batch by batch. */
static void forget_work(finding *f)
{
    for (int i = 0; i < gnomon_context_threads(f->ctx); i++) {
        finder *w = &f->finders[i];
        w->buckets = w->seen = w->verified = w->exact = 0;
    }
}

/* A batch whose hits find no room is done again with room for them all. */
static gnomon_status find_batch(finding *f, int64_t count, int64_t all)
{
    batch b = {f, {.ctx = f->ctx, .phase = "search", .done = f->first, .total = all}};
    gnomon_search *s = f->search;
    for (;; forget_work(f)) {
        atomic_store(&f->hits, s->hit_count);
        f->hit_room = s->hit_room;
        gnomon_parallel(f->ctx, count, find_query, &b);
        GNOMON_TRY(b.asking.status);
        if (s->options.k > 0) return GNOMON_OK;
        const int64_t wanted = atomic_load(&f->hits);
        if (wanted <= f->hit_room) {
            s->hit_count = wanted;
            return GNOMON_OK;
        }
        GNOMON_TRY(gnomon_hits_reserve(s, wanted - s->hit_count));
    }
}

static void count_work(finding *f, gnomon_lsh_work *work)
{
    for (int i = 0; i < gnomon_context_threads(f->ctx); i++) {
        const finder *w = &f->finders[i];
        work->buckets += w->buckets;
        work->candidates += w->seen;
        work->verified += w->verified;
        work->exact += w->exact;
    }
    forget_work(f);
}

/* The batch's queries against their lists, where that pays. */
static gnomon_status scan_batch(finding *f, int64_t count, gnomon_lsh_work *work)
{
    f->scanned = false;
    gnomon_lists_work of_lists;
    if (f->each == 0 || f->search->options.k == 0 || f->search_params.candidates > 0)
        return GNOMON_OK;
    GNOMON_TRY(gnomon_lists_scan(f->ctx, f->index, f->search, f->first, count, f->lists,
                                 f->list_keys, f->each, &of_lists));
    f->scanned = of_lists.scanned;
    if (!f->scanned) return GNOMON_OK;
    work->buckets += count * f->each;
    work->candidates += of_lists.candidates;
    work->verified += of_lists.verified;
    return GNOMON_OK;
}

static gnomon_status find_all(finding *f, const gnomon_points *queries, gnomon_lsh_work *work)
{
    const gnomon_lsh *index = f->index;
    const gnomon_hasher *h = index->hasher;
    const int64_t n = gnomon_points_rows(queries), count = h->f.count;
    const bool probing = f->search_params.probes > 0 || f->search_params.coarse > f->tables;
    const int64_t others = probing ? count * h->others : 0;
    if (h->centres != NULL) f->each = gnomon_min(1 + f->search_params.probes, h->f.centre_count);
    const int64_t size = gnomon_hasher_batch_points(
        f->ctx,
        gnomon_hasher_point_bytes(h) + 4 * count + 8 * others + index->codes.count + 12 * f->each,
        n);
    GNOMON_TRY(
        gnomon_alloc(f->ctx, gnomon_times(size, count), 4, "hash values", &f->hashes.values));
    GNOMON_TRY(
        gnomon_alloc(f->ctx, gnomon_times(size, others), 4, "hash values", &f->hashes.others));
    GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(size, others), 4, "costs", &f->hashes.costs));
    const bool codes = index->codes.count > 0 && f->search_params.rerank > 0;
    if (codes)
        GNOMON_TRY(
            gnomon_alloc(f->ctx, gnomon_times(size, index->codes.count), 1, "codes", &f->codes));
    if (f->each > 0)
        GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(size, f->each), 4, "lists", &f->lists));
    if (f->each > 0)
        GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(size, f->each), sizeof *f->list_keys, "lists",
                                &f->list_keys));
    f->first = 0;
    for (int64_t here; f->first < n; f->first += here) {
        here = gnomon_min(size, n - f->first);
        here = gnomon_hasher_batch_part(f->ctx, h, queries, f->first, here);
        const double start = gnomon_seconds();
        GNOMON_TRY(f->each > 0
                       ? gnomon_hasher_lists(f->ctx, h, queries, f->first, here, f->each, f->lists,
                                             f->list_keys)
                       : gnomon_hasher_batch(f->ctx, h, queries, f->first, here, &f->hashes));
        if (codes)
            GNOMON_TRY(gnomon_codes_make(f->ctx, &index->codes, index->options.metric,
                                         queries->dense, f->first, here, f->codes));
        const double hashed = gnomon_seconds();
        GNOMON_TRY(scan_batch(f, here, work));
        GNOMON_TRY(find_batch(f, here, n));
        count_work(f, work);
        work->hash_seconds += hashed - start;
        work->search_seconds += gnomon_seconds() - hashed;
        GNOMON_TRY(gnomon_progress(f->ctx, "search", f->first + here, n));
    }
    return GNOMON_OK;
}

static gnomon_status run(finding *f, const gnomon_points *queries, gnomon_lsh_work *work)
{
    gnomon_context *ctx = f->ctx;
    const int threads = gnomon_context_threads(ctx);
    const gnomon_search_options *o = &f->search->options;
    f->plain = f->index->gone == NULL && o->filter == NULL && o->exclude < 0;
    gnomon_key_multipliers(f->index->depth, f->multipliers);
    gnomon_status status =
        gnomon_alloc_zero(ctx, threads, sizeof *f->finders, "threads' memory", &f->finders);
    for (int i = 0; i < threads && status == GNOMON_OK; i++)
        status = open_finder(f, &f->finders[i]);
    if (status == GNOMON_OK) status = find_all(f, queries, work);
    for (int i = 0; f->finders && i < threads; i++)
        close_finder(ctx, &f->finders[i]);
    gnomon_free(ctx, f->finders);
    gnomon_free(ctx, f->hashes.values);
    gnomon_free(ctx, f->hashes.others);
    gnomon_free(ctx, f->hashes.costs);
    gnomon_free(ctx, f->codes);
    gnomon_free(ctx, f->lists);
    gnomon_free(ctx, f->list_keys);
    return status;
}

gnomon_status gnomon_lsh_trace_queries(gnomon_context *ctx, const gnomon_lsh *index,
                                       const gnomon_points *queries,
                                       const gnomon_lsh_search_params *params,
                                       const gnomon_lsh_trace *trace)
{
    const gnomon_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx));
    gnomon_lsh_work work = {0};
    gnomon_search none = {.options = GNOMON_SEARCH_OPTIONS_INIT};
    none.cols = gnomon_points_cols(queries);
    finding f = {.ctx = ctx, .kernels = kernels, .index = index, .search = &none, .trace = trace};
    f.search_params = *params;
    f.search_params.rerank = trace->choices > 1; /* codes are wanted */
    f.tables = params->tables > 0 ? params->tables : index->options.tables;
    f.most = index->points;
    none.options.metric = index->options.metric;
    none.options.k = 1; /* hits need no room */
    none.options.exclude = -1;
    return run(&f, queries, &work);
}

/* ---- the calls ---- */

static gnomon_status begin(gnomon_context *ctx, const gnomon_lsh *index,
                           const gnomon_points *queries, const gnomon_search_options *options,
                           gnomon_search **search)
{
    GNOMON_TRY(gnomon_lsh_check_device(ctx));
    GNOMON_TRY(gnomon_lsh_check_form(ctx, index, queries, "queries"));
    GNOMON_TRY(gnomon_hasher_check(ctx, index->hasher, queries, "queries"));
    GNOMON_TRY(queries->dense ? gnomon_search_create(ctx, queries->dense, options, search)
                              : gnomon_search_create_csr(ctx, queries->sparse, options, search));
    const gnomon_search_options *o = &(*search)->options;
    GNOMON_FAIL_IF(o->metric != index->options.metric, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.metric") " is %s; the index is for %s",
                   gnomon_metric_name(o->metric), gnomon_metric_name(index->options.metric));
    GNOMON_FAIL_IF(o->k > index->points - index->removed, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 " and the index has %" PRId64
                                   " points; k must not be larger",
                   o->k, index->points - index->removed);
    return GNOMON_OK;
}

static gnomon_status query(gnomon_context *ctx, const gnomon_lsh *index,
                           const gnomon_points *queries, const gnomon_search_options *options,
                           const gnomon_lsh_search_params *params, gnomon_neighbors *out,
                           gnomon_lsh_work *work)
{
    gnomon_lsh_work done = {.struct_size = sizeof done};
    finding f = {.ctx = ctx,
                 .kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx)),
                 .index = index,
                 .search_params = index->options.search_params};
    if (params) {
        f.search_params = (gnomon_lsh_search_params)GNOMON_LSH_SEARCH_PARAMS_INIT;
        GNOMON_TRY(
            GNOMON_COPY_OPTIONS(ctx, "params", gnomon_lsh_search_params, params, &f.search_params));
    }
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out));
    if (work) GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "work", gnomon_lsh_work, work));
    GNOMON_TRY(gnomon_lsh_check_search_params(ctx, &index->options, &f.search_params));
    GNOMON_FAIL_IF(!gnomon_lsh_enter(index), ctx, GNOMON_ERROR_BUSY,
                   "the index is being changed by another thread");
    gnomon_status status = begin(ctx, index, queries, options, &f.search);
    if (status == GNOMON_OK) {
        f.most = index->points;
        if (f.search_params.candidates > 0 && f.search_params.candidates < f.most)
            f.most = f.search_params.candidates;
        if (f.most < f.search->options.k) f.most = f.search->options.k;
        f.tables = f.search_params.tables > 0 ? f.search_params.tables : index->options.tables;
        f.search->base = index->points;
        if (index->points > 0 && gnomon_points_rows(queries) > 0) status = run(&f, queries, &done);
    }
    if (status == GNOMON_OK) {
        f.search->compared = done.candidates;
        f.search->verified = done.verified;
        status = gnomon_search_finish(f.search, out);
    }
    gnomon_search_destroy(f.search);
    gnomon_lsh_leave(index);
    if (status == GNOMON_OK) gnomon_write_result(work, &done, sizeof done);
    return status;
}

gnomon_status gnomon_lsh_query(gnomon_context *ctx, const gnomon_lsh *index,
                               const gnomon_matrix *queries, const gnomon_search_options *options,
                               const gnomon_lsh_search_params *params, gnomon_neighbors *out,
                               gnomon_lsh_work *work)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!index, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(!queries, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("queries") " is NULL");
    const gnomon_points p = {queries, NULL};
    return query(ctx, index, &p, options, params, out, work);
}

gnomon_status gnomon_lsh_query_csr(gnomon_context *ctx, const gnomon_lsh *index,
                                   const gnomon_csr *queries, const gnomon_search_options *options,
                                   const gnomon_lsh_search_params *params, gnomon_neighbors *out,
                                   gnomon_lsh_work *work)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("ctx") " is NULL");
    GNOMON_FAIL_IF(!index, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(!queries, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("queries") " is NULL");
    const gnomon_points p = {NULL, queries};
    return query(ctx, index, &p, options, params, out, work);
}
