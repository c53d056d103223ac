/* Sets: how many members a base set shares with each query is counted through an index of the
 * queries' members, so that the work is that of the members they share. */
#include "search/jaccard.h"
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels.h"
#include "points/rows.h"
#include "points/view.h"
#include "search/hits.h"
#include "search/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of a sparse view ---- */

static int by_value(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* An entry of a row; of two parts of one column the one of the smaller rank is added first. */
typedef struct weighted {
    int64_t member;
    double weight, rank;
} weighted;

static int by_weighted_member(const void *x, const void *y)
{
    const weighted *a = x, *b = y;
    if (a->member != b->member) return a->member < b->member ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Into ascending order; what stands several times is added, in the order in which it stands or,
 * where that must not matter, the smallest weight first. 'all' has room for count. */
static int64_t sort_weighted(int64_t *members, double *weights, int64_t count, bool as_it_stands,
                             weighted *all)
{
    enum { FEW = 48 };
    int64_t distinct = 0;
    for (int64_t j = 0; j < count; j++) {
        const weighted entry = {members[j], weights[j], as_it_stands ? (double)j : weights[j]};
        int64_t at = j;
        for (; count <= FEW && at > 0 && by_weighted_member(&all[at - 1], &entry) > 0; at--)
            all[at] = all[at - 1];
        all[at] = entry;
    }
    if (count > FEW) qsort(all, (size_t)count, sizeof *all, by_weighted_member);
    for (int64_t j = 0; j < count; j++) {
        if (j > 0 && all[j].member == all[j - 1].member) {
            weights[distinct - 1] += all[j].weight;
        } else {
            members[distinct] = all[j].member;
            weights[distinct++] = all[j].weight;
        }
    }
    return distinct;
}

static gnomon_status check_weight(gnomon_context *ctx, const char *name, bool any_sign,
                                  double value, int64_t row, int64_t member)
{
    GNOMON_FAIL_IF(!isfinite(value), ctx, GNOMON_ERROR_NONFINITE,
                   GNOMON_ARG("%s") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                    ", column " GNOMON_AT_COL "%" PRId64,
                   name, row, member);
    GNOMON_FAIL_IF(value < 0 && !any_sign, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " has the weight %g in row " GNOMON_AT_ROW "%" PRId64
                                    ", column " GNOMON_AT_COL "%" PRId64
                                    "; a weight must not be negative",
                   name, value, row, member);
    GNOMON_FAIL_IF(fabs(value) > 0x1p500, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " has a magnitude above 2^500 in row " GNOMON_AT_ROW "%" PRId64
                                    ", column " GNOMON_AT_COL "%" PRId64,
                   name, row, member);
    return GNOMON_OK;
}

/* Making sets of a view's rows: by tasks, each from its own first entry on. */
typedef struct making {
    gnomon_context *ctx; /* NULL: errors are found without a text */
    const gnomon_csr *csr;
    const char *name;
    int64_t first;
    bool any_sign;
    gnomon_sets *sets;   /* offsets[i + 1]: how many members row i has, until all are done */
    weighted **sorting;  /* a worker's */
    _Atomic int64_t bad; /* the first row that is refused */
} making;

enum { TASK_ROWS = 1024 };

/* Puts row i's members from place to_place on, ascending and each once, and counts them. */
static gnomon_status make_set(const making *m, int64_t i, int64_t to_place, weighted *sorting)
{
    const gnomon_csr *csr = m->csr;
    gnomon_context *ctx = m->ctx;
    const int64_t begin = csr->offsets[i] - csr->offsets[0];
    const int64_t end = csr->offsets[i + 1] - csr->offsets[0];
    int64_t *to = m->sets->members + to_place, count = 0;
    double *weights = m->sets->weights ? m->sets->weights + to_place : NULL;
    bool ascending = true;
    for (int64_t e = begin; e < end; e++) {
        const int64_t member = csr->indices[e];
        const double value = gnomon_value_as_f64(csr->values, csr->dtype, e);
        GNOMON_FAIL_IF(member < 0 || member >= csr->cols, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") " has the column index %" PRId64 " in row " GNOMON_AT_ROW
                                        "%" PRId64 "; it must be in [0, %" PRId64 ")",
                       m->name, member, m->first + i, csr->cols);
        GNOMON_FAIL_IF(!isfinite(value), ctx, GNOMON_ERROR_NONFINITE,
                       GNOMON_ARG("%s") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                        ", column " GNOMON_AT_COL "%" PRId64,
                       m->name, m->first + i, member);
        if (weights)
            GNOMON_TRY(check_weight(ctx, m->name, m->any_sign, value, m->first + i, member));
        if (value == 0) continue;
        if (count > 0 && to[count - 1] >= member) ascending = false;
        if (weights) weights[count] = value;
        to[count++] = member;
    }
    if (!ascending && weights) {
        count = sort_weighted(to, weights, count, m->any_sign, sorting);
        for (int64_t j = 0; j < count; j++)
            GNOMON_TRY(check_weight(ctx, m->name, m->any_sign, weights[j], m->first + i, to[j]));
    } else if (!ascending) {
        qsort(to, (size_t)count, sizeof *to, by_value);
        int64_t distinct = 0;
        for (int64_t j = 0; j < count; j++)
            if (j == 0 || to[j] != to[j - 1]) to[distinct++] = to[j];
        count = distinct;
    }
    m->sets->offsets[i + 1] = count;
    return GNOMON_OK;
}

static int64_t begin_of_task(const making *m, int64_t task)
{
    return m->csr->offsets[gnomon_min(task * TASK_ROWS, m->csr->rows)] - m->csr->offsets[0];
}

static void make_some(void *arg, int64_t task, int worker)
{
    making *m = arg;
    const int64_t end = gnomon_min((task + 1) * TASK_ROWS, m->csr->rows);
    int64_t at = begin_of_task(m, task);
    for (int64_t i = task * TASK_ROWS; i < end; i++) {
        if (make_set(m, i, at, m->sorting != NULL ? m->sorting[worker] : NULL) != GNOMON_OK) {
            int64_t bad = m->bad;
            while (i < bad && !atomic_compare_exchange_weak(&m->bad, &bad, i))
                continue;
            return;
        }
        at += m->sets->offsets[i + 1];
    }
}

/* What zeros and duplicates left between tasks' members goes. */
static void close_gaps(const making *m)
{
    gnomon_sets *sets = m->sets;
    for (int64_t i = 0, from = 0, to = 0; i < sets->count; i++) {
        if (i % TASK_ROWS == 0) from = begin_of_task(m, i / TASK_ROWS);
        const int64_t count = sets->offsets[i + 1];
        if (from != to && count > 0) {
            memmove(sets->members + to, sets->members + from, (size_t)count * sizeof(int64_t));
            if (sets->weights != NULL)
                memmove(sets->weights + to, sets->weights + from, (size_t)count * sizeof(double));
        }
        from += count;
        sets->offsets[i + 1] = to += count;
    }
}

static gnomon_status make_all(gnomon_context *ctx, making *m)
{
    const int64_t threads = gnomon_context_threads(ctx), rows = m->csr->rows;
    int64_t longest = 0;
    for (int64_t i = 0; i < rows; i++)
        longest = gnomon_max(longest, m->csr->offsets[i + 1] - m->csr->offsets[i]);
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *m->sorting, "members", &m->sorting));
    for (int64_t t = 0; t < threads && m->sets->weights != NULL; t++)
        GNOMON_TRY(gnomon_alloc(ctx, longest, sizeof **m->sorting, "members", &m->sorting[t]));
    gnomon_parallel(ctx, gnomon_ceil_div(rows, TASK_ROWS), make_some, m);
    if (m->bad < rows) { /* once more, with a text */
        m->ctx = ctx;
        return make_set(m, m->bad, begin_of_task(m, m->bad / TASK_ROWS), m->sorting[0]);
    }
    close_gaps(m);
    return GNOMON_OK;
}

gnomon_status gnomon_sets_make(gnomon_context *ctx, const gnomon_csr *csr, const char *name,
                               int64_t first, gnomon_metric metric, gnomon_sets *sets)
{
    *sets = (gnomon_sets){0};
    GNOMON_TRY(gnomon_check_csr(ctx, csr, name));
    const int64_t all = csr->rows > 0 ? csr->offsets[csr->rows] - csr->offsets[0] : 0;
    GNOMON_TRY(
        gnomon_alloc_zero(ctx, csr->rows + 1, sizeof *sets->offsets, "offsets", &sets->offsets));
    gnomon_status status = gnomon_alloc(ctx, all, sizeof *sets->members, "members", &sets->members);
    const bool any_sign = !gnomon_metric_of_sets(metric);
    if (status == GNOMON_OK && (any_sign || gnomon_metric_is(metric, GNOMON_METRIC_WEIGHTS)))
        status = gnomon_alloc(ctx, all, sizeof *sets->weights, "weights", &sets->weights);
    sets->count = csr->rows;
    making m = {.csr = csr,
                .name = name,
                .first = first,
                .any_sign = any_sign,
                .sets = sets,
                .bad = csr->rows};
    if (status == GNOMON_OK && csr->rows > 0) status = make_all(ctx, &m);
    for (int64_t t = 0; t < gnomon_context_threads(ctx) && m.sorting != NULL; t++)
        gnomon_free(ctx, m.sorting[t]);
    gnomon_free(ctx, m.sorting);
    if (status != GNOMON_OK) gnomon_sets_free(ctx, sets);
    return status;
}

gnomon_status gnomon_csr_from_dense(gnomon_context *ctx, const gnomon_matrix *dense, int64_t from,
                                    int64_t rows, gnomon_csr *out)
{
    const gnomon_search_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search;
    const int64_t most = gnomon_times(rows, dense->cols);
    int64_t count = 0, *offsets = NULL, *indices = NULL;
    double *values = NULL;
    gnomon_status status = gnomon_alloc_zero(ctx, rows + 1, sizeof *offsets, "offsets", &offsets);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, most, sizeof *indices, "columns", &indices);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, most, sizeof *values, "values", &values);
    *out = (gnomon_csr){rows, dense->cols, offsets, indices, values, GNOMON_F64};
    if (status != GNOMON_OK) return status;
    for (int64_t i = 0; i < rows; i++) {
        double *row = values + count; /* no further than what is left */
        kernels->to_f64(gnomon_row_at(dense, from + i), dense->dtype, dense->col_stride,
                        dense->cols, row);
        int64_t here = 0;
        for (int64_t j = 0; j < dense->cols; j++) {
            if (row[j] == 0) continue;
            indices[count + here] = j;
            row[here++] = row[j];
        }
        offsets[i + 1] = count += here;
    }
    return GNOMON_OK;
}

void gnomon_csr_drop(gnomon_context *ctx, const gnomon_csr *csr)
{
    gnomon_free(ctx, (void *)csr->offsets);
    gnomon_free(ctx, (void *)csr->indices);
    gnomon_free(ctx, (void *)csr->values);
}

gnomon_status gnomon_weights_check(gnomon_context *ctx, const gnomon_csr *csr, const char *name)
{
    for (int64_t i = 0; i < csr->rows; i++) {
        const int64_t end = csr->offsets[i + 1] - csr->offsets[0];
        for (int64_t e = csr->offsets[i] - csr->offsets[0]; e < end; e++)
            GNOMON_TRY(check_weight(ctx, name, false,
                                    gnomon_value_as_f64(csr->values, csr->dtype, e), i,
                                    csr->indices[e]));
    }
    return GNOMON_OK;
}

gnomon_sets gnomon_sets_part(const gnomon_sets *sets, int64_t first, int64_t count)
{
    return (gnomon_sets){count, sets->offsets + first, sets->members, sets->weights,
                         sets->factors != NULL ? sets->factors + first : NULL};
}

void gnomon_sets_free(gnomon_context *ctx, gnomon_sets *sets)
{
    gnomon_free(ctx, sets->offsets);
    gnomon_free(ctx, sets->members);
    gnomon_free(ctx, sets->weights);
    gnomon_free(ctx, sets->factors);
    *sets = (gnomon_sets){0};
}

/* ---- counting ---- */

typedef struct posting {
    int64_t member;
    int32_t query; /* of the chunk */
} posting;

/* The members of a chunk of queries: a table of the distinct ones, and who has them. */
typedef struct group {
    int64_t query, count;
    posting *postings; /* by member */
    int64_t posting_count;
    int64_t *table; /* the first posting of a member, -1; size a power of two */
    int shift;      /* 64 less the logarithm of that */
    int32_t *shared, *touched;
    int32_t *empty; /* queries without members */
    int64_t empty_count;
    gnomon_hit *hits;
    int64_t hit_count, row;
} group;

typedef struct count_job {
    gnomon_search *s;
    const gnomon_metric_row *metric;
    const gnomon_sets *base;
    group *chunks;
    int64_t chunk_count, hit_room, end;
    gnomon_asking asking;
} count_job;

enum { CHUNK = 1024, ROWS = 65536, ASKED = 8 /* rows between two looks at the clock */ };

static int by_member(const void *x, const void *y)
{
    const posting *a = x, *b = y;
    if (a->member != b->member) return a->member < b->member ? -1 : 1;
    return (a->query > b->query) - (a->query < b->query);
}

static uint64_t place_of(const group *c, int64_t member)
{
    return (uint64_t)member * UINT64_C(0x9e3779b97f4a7c15) >> c->shift;
}

/* The member's first posting, or where it would be noted. */
static int64_t *find(const group *c, int64_t member)
{
    const uint64_t mask = ((uint64_t)1 << (64 - c->shift)) - 1;
    uint64_t at = place_of(c, member);
    while (c->table[at] >= 0 && c->postings[c->table[at]].member != member)
        at = (at + 1) & mask;
    return &c->table[at];
}

static gnomon_status chunk_open(count_job *job, group *c)
{
    gnomon_context *ctx = job->s->ctx;
    const gnomon_sets *sets = &job->s->sets;
    c->posting_count = sets->offsets[c->query + c->count] - sets->offsets[c->query];
    c->shift = 62; /* four places at least */
    while (((int64_t)1 << (64 - c->shift)) < 2 * c->posting_count)
        c->shift--;
    const int64_t places = (int64_t)1 << (64 - c->shift);
    GNOMON_TRY(gnomon_alloc(ctx, c->posting_count, sizeof *c->postings, "postings", &c->postings));
    GNOMON_TRY(gnomon_alloc(ctx, places, sizeof *c->table, "a table of members", &c->table));
    GNOMON_TRY(gnomon_alloc_zero(ctx, c->count, sizeof *c->shared, "counts", &c->shared));
    GNOMON_TRY(gnomon_alloc(ctx, c->count, sizeof *c->touched, "counts", &c->touched));
    GNOMON_TRY(gnomon_alloc(ctx, c->count, sizeof *c->empty, "empty sets", &c->empty));
    if (job->hit_room > 0)
        GNOMON_TRY(gnomon_alloc(ctx, job->hit_room, sizeof *c->hits, "hits", &c->hits));
    memset(c->table, 0xff, (size_t)places * sizeof *c->table);
    return GNOMON_OK;
}

static void chunk_close(gnomon_context *ctx, group *c)
{
    gnomon_free(ctx, c->postings);
    gnomon_free(ctx, c->table);
    gnomon_free(ctx, c->shared);
    gnomon_free(ctx, c->touched);
    gnomon_free(ctx, c->empty);
    gnomon_free(ctx, c->hits);
}

static void chunk_fill(void *arg, int64_t task, int worker)
{
    count_job *job = arg;
    if (gnomon_asking_stops(&job->asking, worker)) return;
    group *c = &job->chunks[task];
    const gnomon_sets *sets = &job->s->sets;
    int64_t at = 0;
    for (int32_t q = 0; q < c->count; q++) {
        const int64_t begin = sets->offsets[c->query + q], end = sets->offsets[c->query + q + 1];
        if (begin == end) c->empty[c->empty_count++] = q;
        for (int64_t e = begin; e < end; e++)
            c->postings[at++] = (posting){sets->members[e], q};
    }
    if (at > 0) qsort(c->postings, (size_t)at, sizeof *c->postings, by_member);
    for (int64_t p = 0; p < at; p++)
        if (p == 0 || c->postings[p].member != c->postings[p - 1].member)
            *find(c, c->postings[p].member) = p;
}

/* Query q of the chunk and base set 'row', which share so many members. */
static void consider(const count_job *job, group *c, int32_t q, int64_t row, int64_t shared)
{
    gnomon_search *s = job->s;
    const int64_t query = c->query + q, id = s->base + row;
    if (s->options.exclude >= 0 && id == s->options.exclude + query) return;
    const int64_t size = s->sets.offsets[query + 1] - s->sets.offsets[query] +
                         job->base->offsets[row + 1] - job->base->offsets[row];
    const gnomon_ranked point = {job->metric->counts != NULL
                                     ? job->metric->counts(size, shared)
                                     : job->metric->sets(&s->sets, query, job->base, row),
                                 id};
    /* at distance 1 are those that share nothing, too: they come by id, at the end */
    if (s->options.k > 0 && point.key < 1)
        gnomon_nearest_offer(&s->nearest[query], point);
    else if (s->options.k == 0 && point.key <= s->limit)
        c->hits[c->hit_count++] = (gnomon_hit){query, point};
}

static void count_row(const count_job *job, group *c, int64_t row)
{
    const gnomon_sets *base = job->base;
    int64_t touched = 0;
    for (int64_t e = base->offsets[row]; e < base->offsets[row + 1]; e++) {
        const int64_t member = base->members[e];
        int64_t p = *find(c, member);
        for (; p >= 0 && p < c->posting_count && c->postings[p].member == member; p++) {
            const int32_t q = c->postings[p].query;
            if (c->shared[q]++ == 0) c->touched[touched++] = q;
        }
    }
    const bool all = job->s->options.k == 0 && job->s->limit >= 1;
    if (all) {
        for (int32_t q = 0; q < c->count; q++)
            consider(job, c, q, row, c->shared[q]);
    } else if (base->offsets[row] == base->offsets[row + 1]) {
        for (int64_t i = 0; i < c->empty_count; i++)
            consider(job, c, c->empty[i], row, 0);
    }
    for (int64_t i = 0; i < touched; i++) {
        const int32_t q = c->touched[i];
        if (!all) consider(job, c, q, row, c->shared[q]);
        c->shared[q] = 0;
    }
}

static void count_task(void *arg, int64_t task, int worker)
{
    count_job *job = arg;
    const gnomon_search *s = job->s;
    group *c = &job->chunks[task];
    for (; c->row < job->end; c->row++) {
        if (c->row % ASKED == 0 && gnomon_asking_stops(&job->asking, worker)) return;
        if (s->options.k == 0 && c->hit_count + c->count > job->hit_room) return;
        if (gnomon_search_allows(&s->options, s->base + c->row)) count_row(job, c, c->row);
    }
}

static gnomon_status drain(count_job *job, bool *more)
{
    gnomon_search *s = job->s;
    *more = false;
    for (int64_t i = 0; i < job->chunk_count; i++) {
        group *c = &job->chunks[i];
        if (c->row < job->end) *more = true;
        if (c->hit_count == 0) continue;
        GNOMON_TRY(gnomon_hits_reserve(s, c->hit_count));
        memcpy(s->hits + s->hit_count, c->hits, (size_t)c->hit_count * sizeof *c->hits);
        s->hit_count += c->hit_count;
        c->hit_count = 0;
    }
    return GNOMON_OK;
}

static gnomon_status count_all(count_job *job)
{
    gnomon_context *ctx = job->s->ctx;
    for (int64_t i = 0; i < job->chunk_count; i++)
        GNOMON_TRY(chunk_open(job, &job->chunks[i]));
    job->asking = (gnomon_asking){.ctx = ctx, .phase = "search", .total = job->base->count};
    gnomon_parallel(ctx, job->chunk_count, chunk_fill, job);
    GNOMON_TRY(job->asking.status);
    for (int64_t row = 0; row < job->base->count; row = job->end) {
        job->end = job->base->count - row < ROWS ? job->base->count : row + ROWS;
        job->asking.done = row;
        for (bool more = true; more;) {
            gnomon_parallel(ctx, job->chunk_count, count_task, job);
            GNOMON_TRY(job->asking.status);
            GNOMON_TRY(drain(job, &more));
        }
        GNOMON_TRY(gnomon_progress(ctx, "search", job->end, job->base->count));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_scan_sets(gnomon_search *s, const gnomon_sets *base)
{
    if (s->count == 0 || base->count == 0) return GNOMON_OK;
    const int64_t threads = gnomon_context_threads(s->ctx);
    int64_t each = (s->count + threads - 1) / threads;
    if (each > CHUNK) each = CHUNK;
    count_job job = {.s = s,
                     .metric = gnomon_metric_row_of(s->options.metric),
                     .base = base,
                     .chunk_count = (s->count + each - 1) / each};
    if (s->options.k == 0) job.hit_room = 65536 + each;
    GNOMON_TRY(
        gnomon_alloc_zero(s->ctx, job.chunk_count, sizeof *job.chunks, "chunks", &job.chunks));
    for (int64_t i = 0; i < job.chunk_count; i++) {
        job.chunks[i].query = i * each;
        job.chunks[i].count = s->count - i * each < each ? s->count - i * each : each;
    }
    const gnomon_status status = count_all(&job);
    for (int64_t i = 0; i < job.chunk_count; i++)
        chunk_close(s->ctx, &job.chunks[i]);
    gnomon_free(s->ctx, job.chunks);
    s->compared += s->count * base->count;
    return status;
}

/* ---- those that share nothing ---- */

static int by_id(const void *x, const void *y)
{
    const gnomon_ranked *a = x, *b = y;
    return (a->id > b->id) - (a->id < b->id);
}

/* All base points that a query has not met are at distance 1: the first of them fill it up. */
static void complete(void *arg, int64_t query, int worker)
{
    (void)worker;
    gnomon_search *s = arg;
    gnomon_nearest *n = &s->nearest[query];
    if (n->count == n->k) return;
    const int64_t found_sets = n->count;
    qsort(n->heap, (size_t)found_sets, sizeof *n->heap, by_id);
    int64_t next = 0;
    for (int64_t id = s->first; id < s->base && n->count < n->k; id++) {
        if (next < found_sets && n->heap[next].id == id) {
            next++;
            continue;
        }
        if (s->options.exclude >= 0 && id == s->options.exclude + query) continue;
        if (gnomon_search_allows(&s->options, id)) n->heap[n->count++] = (gnomon_ranked){1, id};
    }
}

gnomon_status gnomon_sets_complete(gnomon_search *s)
{
    if (s->options.k > 0) gnomon_parallel(s->ctx, s->count, complete, s);
    return GNOMON_OK;
}

gnomon_status gnomon_sets_fill(gnomon_search *s, int64_t *counts, int64_t *ids, double *distances)
{
    const int64_t k = s->options.k;
    int64_t *found_sets; /* a query's, by id */
    GNOMON_TRY(gnomon_alloc(s->ctx, k, sizeof *found_sets, "ids", &found_sets));
    for (int64_t q = 0; q < s->count; q++) {
        int64_t count = counts[q], next = 0;
        if (count == k) continue;
        memcpy(found_sets, ids + q * k, (size_t)count * sizeof *found_sets);
        qsort(found_sets, (size_t)count, sizeof *found_sets, by_value);
        for (int64_t id = s->first; id < s->base && count < k; id++) {
            if (next < counts[q] && found_sets[next] == id) {
                next++;
                continue;
            }
            if (s->options.exclude >= 0 && id == s->options.exclude + q) continue;
            if (!gnomon_search_allows(&s->options, id)) continue;
            ids[q * k + count] = id;
            distances[q * k + count++] = 1;
        }
        counts[q] = count;
    }
    gnomon_free(s->ctx, found_sets);
    return GNOMON_OK;
}
