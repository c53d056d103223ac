#include "search/sparse.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels.h"
#include "search/hits.h"
#include "search/jaccard.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PIECE = GNOMON_INVERTED_PIECE,
    ROUND = 4096,     /* queries between two reports of progress */
    ASKED = 4,        /* pieces between two looks at the clock */
    HITS = 8192,      /* of a task, before they go to the search */
    NORM_ROWS = 1024, /* of a task */
};

typedef struct norming {
    const gnomon_search_kernels *kernels;
    gnomon_sets *rows;
} norming;

static void norm_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const norming *n = arg;
    const int64_t end = gnomon_min((task + 1) * NORM_ROWS, n->rows->count);
    for (int64_t i = task * NORM_ROWS; i < end; i++) {
        n->rows->factors[i] = 1;
        const gnomon_sparse_row row = gnomon_sparse_row_at(n->rows, i);
        n->rows->factors[i] = gnomon_sparse_inverse_norm(n->kernels, &row);
    }
}

gnomon_status gnomon_sparse_make(gnomon_context *ctx, const gnomon_csr *csr, const char *name,
                                 int64_t first, gnomon_metric metric, gnomon_sets *rows)
{
    GNOMON_TRY(gnomon_sets_make(ctx, csr, name, first, metric, rows));
    if (metric != GNOMON_COSINE) return GNOMON_OK;
    const gnomon_status status =
        gnomon_alloc(ctx, rows->count, sizeof *rows->factors, "norms", &rows->factors);
    if (status != GNOMON_OK) {
        gnomon_sets_free(ctx, rows);
        return status;
    }
    norming n = {gnomon_cpu_kernels(gnomon_context_isa(ctx))->search, rows};
    gnomon_parallel(ctx, gnomon_ceil_div(rows->count, NORM_ROWS), norm_rows, &n);
    return GNOMON_OK;
}

/* ---- a query ---- */

typedef struct term {
    int64_t at, end; /* of the column's list: what is left of it */
    float by;
} term;

/* A query, its coordinates divided by 'size' after those of the base by 2^exponent. */
typedef struct query {
    gnomon_sparse_row row;
    int64_t number;
    int64_t terms;
    double norm;   /* as the base's: |q| 2^-exponent, or 1 or 0 for COSINE */
    double size;   /* what coordinates are divided by beside that */
    double slack;  /* relative error of keys in fp64 */
    double unsure; /* what scores of equal keys may differ by, in fp64 */
    float by_bias, by_heavy, by_norm;
    double floor;  /* what underflow may take from a score */
    float reached; /* what k rows so far reach for certain */
    int64_t heavy_terms;
    float code_error; /* a row's sum of codes is off by no more */
    bool coded;       /* sums of codes are made for every piece from now on */
} query;

/* The least score of any row whose key is at most 'key'. */
static float least_score(const gnomon_inverted *x, const query *q, double key)
{
    const double k = ldexp(key, -x->exponent);
    double score = 1 - key, slack = q->slack;
    switch (x->metric) {
    case GNOMON_IP:
        if (q->norm == 0) return key >= 0 ? -INFINITY : INFINITY;
        score = ldexp(-k / q->norm, -x->exponent); /* |q| is norm * 2^exponent */
        break;
    case GNOMON_L2:
        score = (q->norm - k) * (q->norm + k) / 2 / q->size;
        slack *= (q->norm * q->norm + k * k + 1) / q->size;
        break;
    case GNOMON_L1:
        score = q->norm - k;
        slack *= q->norm + k + 1;
        break;
    default: /* COSINE */
        break;
    }
    const float least = (float)(score - slack - q->floor);
    return least == least ? nextafterf(least, -INFINITY) : -INFINITY;
}

/* ---- tasks ---- */

/* A candidate of the k nearest: its score is in [low, high]. */
typedef struct candidate {
    float low, high;
    uint32_t row;
} candidate;

typedef struct scratch {
    float *scores;  /* PIECE */
    uint32_t *rows; /* PIECE */
    term *terms;
    float *by;      /* width */
    float *code_by; /* the same times the columns' steps, of the columns that the query has */
    const int8_t **code_columns;
    float *sums;   /* PIECE, of codes */
    float *values; /* k nearest: as many as of the next, which are of all pieces so far */
    candidate *kept;
    int64_t kept_count, kept_room;
    gnomon_ranked *best;
    gnomon_hit *hits;
    int64_t hit_count, verified, pieces;
} scratch;

typedef struct scan {
    gnomon_search *s;
    const gnomon_inverted *x;
    const gnomon_metric_row *metric;
    scratch *scratch; /* of each task */
    int64_t tasks;
    _Atomic int64_t next;
    int64_t end;
    pthread_mutex_t lock; /* of the search's hits */
    gnomon_status status;
    atomic_bool damaged; /* a list or row of an index in a file is */
    gnomon_asking asking;
} scan;

/* Hands a task's hits to the search. */
static void flush(scan *c, scratch *own)
{
    gnomon_search *s = c->s;
    pthread_mutex_lock(&c->lock);
    if (s->hit_most > 0 && s->hit_count + own->hit_count > s->hit_most) s->full = true;
    if (c->status == GNOMON_OK && !s->full) c->status = gnomon_hits_reserve(s, own->hit_count);
    if (c->status == GNOMON_OK && !s->full && own->hit_count > 0) {
        memcpy(s->hits + s->hit_count, own->hits, (size_t)own->hit_count * sizeof *own->hits);
        s->hit_count += own->hit_count;
    }
    pthread_mutex_unlock(&c->lock);
    own->hit_count = 0;
}

/* Splits a query into terms and the block's coordinates. */
static void prepare(scan *c, int64_t number, scratch *own, query *q)
{
    const gnomon_inverted *x = c->x;
    const bool l1 = x->metric == GNOMON_L1;
    *q = (query){.row = gnomon_sparse_row_at(&c->s->sets, number), .number = number};
    q->norm = ldexp(gnomon_sparse_norm(&q->row, l1), -x->exponent);
    q->size = l1 ? 1 : x->metric == GNOMON_L2 ? fmax(q->norm, 1) : q->norm;
    if (x->width > 0) memset(own->by, 0, (size_t)x->width * sizeof *own->by);
    double heavy = 0, steps = 0;
    int64_t common = 0;
    for (int64_t e = 0; e < q->row.count && q->norm > 0; e++) {
        const int64_t column = gnomon_numbering_find(&x->columns, q->row.cols[e]);
        if (column < 0) continue;
        double v = ldexp(q->row.values[e] * q->row.factor, -x->exponent) / q->size;
        if (l1) v = fmax(-2, fmin(2, v)); /* the base's are at most 1 */
        common++;
        if (column >= x->heavy_from) {
            const int64_t at = column - x->heavy_from;
            if (q->heavy_terms == x->width) { /* two columns of a file have one number */
                c->damaged = true;
                continue;
            }
            own->by[at] = (float)v;
            own->code_by[q->heavy_terms] = (float)v * x->steps[at];
            own->code_columns[q->heavy_terms++] =
                x->codes + at * gnomon_inverted_padded(x->rows.count);
            heavy += v * v;
            steps += fabs(v) * (double)x->steps[at];
        } else if (!gnomon_inverted_list_sound(x, column)) {
            c->damaged = true;
        } else {
            own->terms[q->terms++] = (term){x->lists[column], x->lists[column + 1], (float)v};
        }
    }
    const double terms = (double)gnomon_min(common, x->longest);
    q->reached = -INFINITY;
    q->by_bias = l1 ? 1 : (float)(1 / q->size);
    q->by_heavy = nextafterf((float)(sqrt(heavy) * (1 + 0x1p-40)), INFINITY);
    /* roundings of the two factors, of products and sums, and of what follows */
    q->by_norm = (float)(2.02 * 0x1p-24 * (terms + 40));
    q->floor = (terms + 40) * 0x1p-140;
    /* half a step of each column, and roundings of what makes up to 127 steps */
    q->code_error = (float)(steps * (0.501 + (double)(q->heavy_terms + 8) * 0x1p-16));
    q->slack = (double)(q->row.count + x->longest + 64) * 0x1p-52;
    const double far = q->norm + 1; /* no key is larger, times 2^-exponent */
    q->unsure = q->floor + 2 * q->slack *
                               (l1                       ? 2 * far
                                : x->metric == GNOMON_L2 ? 2 * far * far / q->size
                                                         : 1);
}

/* Where a list, of which the rows from 'first' on are left, ends for the rows below 'end'. It is
 * looked for near the place where it is when rows are spread evenly. */
static int64_t part_of(const gnomon_inverted *x, const term *t, int64_t first, int64_t end)
{
    int64_t low = t->at, high = t->end;
    if (end >= x->rows.count || low == high) return high;
    const double share = (double)(end - first) / (double)(x->rows.count - first);
    const int64_t guess = low + (int64_t)((double)(high - low) * share);
    int64_t step = 8;
    if ((int64_t)x->ids[guess] < end) {
        for (low = guess + 1; low + step < high && (int64_t)x->ids[low + step] < end; step *= 2)
            low += step + 1;
        high = gnomon_min(high, low + step);
    } else {
        for (high = guess; high - step > low && (int64_t)x->ids[high - step] >= end; step *= 2)
            high -= step;
        low = gnomon_max(low, high - step);
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)x->ids[middle] < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A query at one piece of the base. */
typedef struct place {
    scan *c;
    scratch *own;
    query *q;
    int64_t first, count; /* rows */
} place;

/* Scores without what the block adds. */
static gnomon_scores scores_at(const place *p)
{
    const gnomon_inverted *x = p->c->x;
    return (gnomon_scores){.scores = p->own->scores,
                           .norm = x->norm + p->first,
                           .bias = x->bias != NULL ? x->bias + p->first : NULL,
                           .by_bias = p->q->by_bias,
                           .by_norm = p->q->by_norm,
                           .least = -INFINITY};
}

/* With what the block adds by its codes. */
static gnomon_scores scores_by_codes(const place *p)
{
    gnomon_scores at = scores_at(p);
    at.heavy = p->q->coded && p->q->heavy_terms > 0 ? p->own->sums : NULL;
    at.by_heavy = 1;
    return at;
}

static void sum_codes(const place *p)
{
    query *q = p->q;
    scratch *own = p->own;
    q->coded = true;
    if (q->heavy_terms == 0) return;
    p->c->s->kernels->sum_codes(own->code_by, own->code_columns, p->first, q->heavy_terms, p->count,
                                own->sums);
}

/* Sums scores through the lists; rows that may be no answer have -infinity. */
static void add_lists(const place *p)
{
    const scan *c = p->c;
    const gnomon_inverted *x = c->x;
    const gnomon_search_options *o = &c->s->options;
    float *scores = p->own->scores;
    const int64_t end = p->first + p->count;
    memset(scores, 0, (size_t)p->count * sizeof *scores);
    for (int64_t n = 0; n < p->q->terms; n++) {
        term *t = &p->own->terms[n];
        const int64_t stop = part_of(x, t, p->first, end);
        (x->metric == GNOMON_L1 ? c->s->kernels->add_smaller : c->s->kernels->add_list)(
            t->by, x->ids + t->at, x->values + t->at, stop - t->at, (uint32_t)p->first, scores);
        t->at = stop;
    }
    const int64_t self = o->exclude + p->q->number - c->s->base - p->first;
    if (o->exclude >= 0 && self >= 0 && self < p->count) scores[self] = -INFINITY;
    for (int64_t i = 0; i < p->count && o->filter != NULL; i++)
        if (!gnomon_search_allows(o, c->s->base + p->first + i)) scores[i] = -INFINITY;
}

/* Verifies a row of the base. */
static void verify(scan *c, scratch *own, const query *q, int64_t row)
{
    gnomon_search *s = c->s;
    if (!gnomon_inverted_row_sound(c->x, row)) {
        c->damaged = true;
        return;
    }
    const gnomon_sparse_row base = gnomon_sparse_row_at(&c->x->rows, row);
    const gnomon_ranked point = {c->metric->sparse(s->kernels, &q->row, &base), s->base + row};
    own->verified++;
    if (point.key != point.key) { /* no row that was checked has NaN */
        c->damaged = true;
        return;
    }
    if (s->options.k > 0) {
        gnomon_nearest_offer(&s->nearest[q->number], point);
    } else if (point.key <= s->limit) {
        own->hits[own->hit_count++] = (gnomon_hit){q->number, point};
        if (own->hit_count == HITS) flush(c, own);
    }
}

/* A row's score at least, or at most, with what fp32 may be off. */
static float bound_of(const gnomon_scores *at, uint32_t row, float by_norm)
{
    const float bias = at->bias != NULL ? at->bias[row] * at->by_bias : 0;
    return at->scores[row] + bias + at->norm[row] * by_norm;
}

/* The rows of the k largest sums of lists and codes, into own->best; how many there are. */
static int64_t find_best(const place *p)
{
    gnomon_nearest best = {p->own->best, gnomon_min(p->c->s->options.k, p->count), 0};
    gnomon_scores at = scores_by_codes(p);
    for (int64_t from = 0, some = 64; from < p->count; from += some, some *= 2) {
        const int64_t count = gnomon_min(some, p->count - from);
        gnomon_scores part = at;
        part.scores += from;
        part.norm += from;
        if (part.bias != NULL) part.bias += from;
        if (part.heavy != NULL) part.heavy += from;
        const int64_t found = p->c->s->kernels->find_rows(&part, count, p->own->rows);
        for (int64_t i = 0; i < found; i++) {
            const int64_t row = from + p->own->rows[i];
            const float codes = at.heavy != NULL ? at.heavy[row] : 0;
            const float reach = bound_of(&at, (uint32_t)row, at.by_norm) + codes;
            if (reach > -INFINITY)
                gnomon_nearest_offer(&best, (gnomon_ranked){-(double)reach, row});
        }
        if (best.count == best.k) at.least = (float)-best.heap[0].key;
    }
    return best.count;
}

/* A score that k rows of the piece reach for certain, or -infinity. */
static float reached_by_best(const place *p)
{
    scratch *own = p->own;
    const gnomon_inverted *x = p->c->x;
    const int64_t k = p->c->s->options.k;
    if (k > p->count || find_best(p) < k) return -INFINITY;
    for (int64_t i = 0; i < k; i++) {
        own->rows[i] = (uint32_t)own->best[i].id;
        own->values[i] = own->scores[own->rows[i]];
    }
    if (x->width > 0)
        p->c->s->kernels->add_dense(own->by, x->block + p->first * x->width, x->width, own->rows, k,
                                    own->scores);
    const gnomon_scores at = scores_at(p);
    float least = INFINITY;
    for (int64_t i = 0; i < k; i++)
        least = fminf(least, bound_of(&at, own->rows[i], -at.by_norm));
    for (int64_t i = 0; i < k; i++)
        own->scores[own->rows[i]] = own->values[i];
    return nextafterf((float)(least - p->q->unsure), -INFINITY);
}

/* What a query lets pass, by the radius or the k nearest of earlier pieces. */
static float least_now(const scan *c, const query *q)
{
    const gnomon_search *s = c->s;
    if (s->options.k == 0) return least_score(c->x, q, s->limit);
    const gnomon_nearest *n = &s->nearest[q->number];
    if (n->count < n->k) return q->reached;
    return fmaxf(q->reached, least_score(c->x, q, n->heap[0].key));
}

/* Verifies what was kept, rows ascending. */
static void verify_kept(scan *c, scratch *own, const query *q)
{
    gnomon_search *s = c->s;
    gnomon_nearest *n = &s->nearest[q->number];
    const bool distance = !gnomon_metric_is(s->options.metric, GNOMON_METRIC_LARGER);
    float least = least_now(c, q);
    for (int64_t i = 0; i < own->kept_count; i++) {
        const candidate *k = &own->kept[i];
        if (k->high < least) continue;
        const gnomon_ranked last = n->count == n->k ? n->heap[0] : (gnomon_ranked){INFINITY, -1};
        /* of equal distances the smaller id counts */
        if (distance && last.key == 0 && last.id < s->base + k->row) break;
        verify(c, own, q, k->row);
        if (n->count == n->k && n->heap[0].key < last.key) least = least_now(c, q);
    }
    own->kept_count = 0;
}

/* Drops what k others surely come before. */
static void shrink_kept(const scan *c, scratch *own, query *q)
{
    const int64_t k = c->s->options.k;
    int64_t left = 0;
    if (own->kept_count <= k) return;
    for (int64_t i = 0; i < own->kept_count; i++)
        own->values[i] = own->kept[i].low;
    const double reached = (double)gnomon_rank_largest(own->values, own->kept_count, k);
    q->reached = fmaxf(q->reached, nextafterf((float)(reached - q->unsure), -INFINITY));
    for (int64_t i = 0; i < own->kept_count; i++)
        if (!(own->kept[i].high < q->reached)) own->kept[left++] = own->kept[i];
    own->kept_count = left;
}

/* The rows that may reach 'least', by the sums of lists and by what the block may add: by norms
 * first, and where these let so many pass that codes cost less, by codes. */
static int64_t find_candidates(const place *p, float least)
{
    /* nanoseconds: a row's products with the block, by which a candidate is bounded; and a term's
     * with a code */
    static const double per_row = 6, per_code = 0.06;
    scratch *own = p->own;
    const scan *c = p->c;
    const gnomon_inverted *x = c->x;
    gnomon_scores at = scores_at(p);
    if (!p->q->coded || p->q->heavy_terms == 0) {
        at.least = least;
        at.heavy = x->heavy != NULL ? x->heavy + p->first : NULL;
        at.by_heavy = p->q->by_heavy;
        const int64_t found = c->s->kernels->find_rows(&at, p->count, own->rows);
        const double codes = per_code * (double)p->q->heavy_terms * (double)p->count;
        if (p->q->heavy_terms == 0 || per_row * (double)found < codes) return found;
        sum_codes(p);
    }
    at = scores_by_codes(p);
    at.least = nextafterf(least - p->q->code_error, -INFINITY);
    return c->s->kernels->find_rows(&at, p->count, own->rows);
}

/* Rows that the bounds let pass, with the block's part: verified by radius, else kept. */
static void take_candidates(const place *p, float least)
{
    scratch *own = p->own;
    scan *c = p->c;
    const gnomon_inverted *x = c->x;
    const gnomon_scores at = scores_at(p);
    const int64_t found = find_candidates(p, least);
    if (x->width > 0)
        c->s->kernels->add_dense(own->by, x->block + p->first * x->width, x->width, own->rows,
                                 found, own->scores);
    for (int64_t i = 0; i < found; i++) {
        const uint32_t row = own->rows[i];
        const float high = bound_of(&at, row, at.by_norm), low = bound_of(&at, row, -at.by_norm);
        if (high < least || !(own->scores[row] > -INFINITY)) continue;
        if (high != high || low != low) /* no row that was checked has NaN */
            c->damaged = true;
        else if (c->s->options.k == 0)
            verify(c, own, p->q, p->first + row);
        else
            own->kept[own->kept_count++] = (candidate){low, high, (uint32_t)p->first + row};
    }
}

static void search_piece(const place *p)
{
    scan *c = p->c;
    query *q = p->q;
    add_lists(p);
    float least = least_now(c, q);
    if (q->coded) sum_codes(p);
    if (c->s->options.k > 0 && least == -INFINITY) {
        /* the best by the lists alone are poor ones where heavy columns are much of the query */
        if (!q->coded && q->by_heavy > 0.3F) sum_codes(p);
        least = q->reached = reached_by_best(p);
    }
    take_candidates(p, least);
    if (c->s->options.k == 0) return;
    shrink_kept(c, p->own, q);
    if (p->own->kept_count > p->own->kept_room - PIECE) verify_kept(c, p->own, q);
}

/* Under the lock: a flush without memory leaves an error text too. */
static bool stops(scan *c, int worker)
{
    if (worker == 0) pthread_mutex_lock(&c->lock);
    const bool stop = gnomon_asking_stops(&c->asking, worker);
    if (worker == 0) pthread_mutex_unlock(&c->lock);
    return stop;
}

static void run(void *arg, int64_t task, int worker)
{
    scan *c = arg;
    scratch *own = &c->scratch[task];
    for (;;) {
        const int64_t number = atomic_fetch_add(&c->next, 1);
        if (number >= c->end || c->s->full) return;
        query q;
        prepare(c, number, own, &q);
        int64_t first = 0;
        if (c->s->later >= 0) {
            first = gnomon_max(c->s->later + number + 1 - c->s->base, 0);
            first = gnomon_min(first, c->x->rows.count);
            for (int64_t n = 0; n < q.terms; n++)
                own->terms[n].at = part_of(c->x, &own->terms[n], 0, first);
        }
        for (; first < c->x->rows.count; first += PIECE) {
            if (++own->pieces % ASKED == 0 && stops(c, worker)) return;
            place p = {.c = c,
                       .own = own,
                       .q = &q,
                       .first = first,
                       .count = gnomon_min(PIECE, c->x->rows.count - first)};
            search_piece(&p);
        }
        if (c->s->options.k > 0) verify_kept(c, own, &q);
    }
}

/* ---- the scan ---- */

static int64_t longest_of(const gnomon_sets *rows)
{
    int64_t most = 0;
    for (int64_t i = 0; i < rows->count; i++)
        most = gnomon_max(most, rows->offsets[i + 1] - rows->offsets[i]);
    return most;
}

static gnomon_status scratch_open(scan *c, scratch *own)
{
    gnomon_context *ctx = c->s->ctx;
    const int64_t terms = longest_of(&c->s->sets);
    GNOMON_TRY(gnomon_alloc(ctx, PIECE, sizeof *own->scores, "scores", &own->scores));
    GNOMON_TRY(gnomon_alloc(ctx, PIECE, sizeof *own->rows, "scores", &own->rows));
    GNOMON_TRY(gnomon_alloc(ctx, terms, sizeof *own->terms, "columns", &own->terms));
    GNOMON_TRY(gnomon_alloc(ctx, c->x->width, sizeof *own->by, "columns", &own->by));
    if (c->x->width > 0) {
        GNOMON_TRY(gnomon_alloc(ctx, c->x->width, sizeof *own->code_by, "columns", &own->code_by));
        GNOMON_TRY(gnomon_alloc(ctx, c->x->width, sizeof *own->code_columns, "columns",
                                &own->code_columns));
        GNOMON_TRY(gnomon_alloc(ctx, PIECE, sizeof *own->sums, "scores", &own->sums));
    }
    const int64_t k = gnomon_min(c->s->options.k, c->x->rows.count);
    if (k == 0) return gnomon_alloc(ctx, HITS, sizeof *own->hits, "hits", &own->hits);
    own->kept_room = k + 3 * PIECE;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_min(k, PIECE), sizeof *own->best, "scores", &own->best));
    GNOMON_TRY(gnomon_alloc(ctx, own->kept_room, sizeof *own->values, "scores", &own->values));
    return gnomon_alloc(ctx, own->kept_room, sizeof *own->kept, "candidates", &own->kept);
}

static gnomon_status scan_rounds(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    const int64_t threads = c->tasks, base = c->x->rows.count;
    for (int64_t t = 0; t < threads; t++)
        GNOMON_TRY(scratch_open(c, &c->scratch[t]));
    while (c->end < c->s->count && !c->s->full) {
        const double before = (double)c->end / (double)c->s->count;
        c->asking = (gnomon_asking){
            .ctx = ctx, .phase = "search", .done = (int64_t)(before * (double)base), .total = base};
        atomic_store(&c->next, c->end);
        c->end = gnomon_min(c->end + ROUND, c->s->count);
        gnomon_parallel(ctx, threads, run, c);
        GNOMON_TRY(c->asking.status);
        for (int64_t t = 0; t < threads && c->s->options.k == 0; t++)
            flush(c, &c->scratch[t]);
        GNOMON_TRY(c->status);
        GNOMON_FAIL_IF(c->damaged, ctx, GNOMON_ERROR_DATA,
                       "a list or row does not fit the others: the file is damaged");
        const double share = (double)c->end / (double)c->s->count;
        GNOMON_TRY(gnomon_progress(ctx, "search", (int64_t)(share * (double)base), base));
    }
    return GNOMON_OK;
}

/* The pairs of queries and of base rows that come later. */
static int64_t count_later(const gnomon_search *s, int64_t rows)
{
    int64_t pairs = 0;
    for (int64_t q = 0; q < s->count; q++)
        pairs += rows - gnomon_min(gnomon_max(s->later + q + 1 - s->base, 0), rows);
    return pairs;
}

gnomon_status gnomon_scan_sparse(gnomon_search *s, const gnomon_inverted *base)
{
    const int64_t threads = gnomon_min(gnomon_context_threads(s->ctx), s->count);
    if (s->count == 0 || base->rows.count == 0) return GNOMON_OK;
    scan c = {
        .s = s, .x = base, .metric = gnomon_metric_row_of(s->options.metric), .tasks = threads};
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, threads, sizeof *c.scratch, "scores", &c.scratch));
    pthread_mutex_init(&c.lock, NULL);
    const gnomon_status status = scan_rounds(&c);
    pthread_mutex_destroy(&c.lock);
    for (int64_t t = 0; t < threads; t++) {
        scratch *own = &c.scratch[t];
        s->verified += own->verified;
        gnomon_free(s->ctx, own->scores);
        gnomon_free(s->ctx, own->rows);
        gnomon_free(s->ctx, own->terms);
        gnomon_free(s->ctx, own->by);
        gnomon_free(s->ctx, own->code_by);
        gnomon_free(s->ctx, own->code_columns);
        gnomon_free(s->ctx, own->sums);
        gnomon_free(s->ctx, own->best);
        gnomon_free(s->ctx, own->values);
        gnomon_free(s->ctx, own->kept);
        gnomon_free(s->ctx, own->hits);
    }
    gnomon_free(s->ctx, c.scratch);
    s->compared += s->later < 0 ? s->count * base->rows.count : count_later(s, base->rows.count);
    return status;
}
