/* One query against sparse rows as their view has them. An index would be made of all rows to be
 * used once: instead a row's product with the query and its norm are summed as it is read, in any
 * order of its columns, and only rows that their bound does not rule out are put in order and
 * compared in full. */
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "points/rows.h"
#include "points/view.h"
#include "search/hits.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <math.h>

/* A column: the query's coordinate, and the last row that had it, counted from 1. */
typedef struct column {
    double by;
    uint32_t row;
} column;

typedef struct scan {
    gnomon_search *s;
    const gnomon_csr *base;
    const gnomon_metric_row *metric;
    gnomon_sparse_row query;
    double norm; /* the query's */
    column *columns;
} scan;

/* What a row's entries sum up to. */
typedef struct sums {
    double dot, squares;
    int64_t count;
    bool broken; /* an entry is refused */
    bool twice;  /* a column stands several times: the sums are not the row's */
} sums;

static sums sum_up(const scan *c, int64_t i)
{
    const gnomon_csr *base = c->base;
    const int64_t begin = base->offsets[i] - base->offsets[0];
    const int64_t end = base->offsets[i + 1] - base->offsets[0];
    const uint32_t stamp = (uint32_t)i + 1;
    sums x = {.count = end - begin};
    for (int64_t e = begin; e < end; e++) {
        const int64_t member = base->indices[e];
        const double value = gnomon_value_as_f64(base->values, base->dtype, e);
        if (member < 0 || member >= base->cols || !(fabs(value) <= 0x1p500)) {
            x.broken = true;
            return x;
        }
        column *at = &c->columns[member];
        x.twice |= at->row == stamp;
        at->row = stamp;
        x.dot += value * at->by;
        x.squares += value * value;
    }
    return x;
}

/* Whether least_key is that of the metric. Another one is left to the index, which refuses what it
 * doesn't know. */
static bool is_known(gnomon_metric metric)
{
    return metric == GNOMON_L2 || metric == GNOMON_COSINE || metric == GNOMON_IP;
}

/* The least key that a row of these sums may have. Sums of n terms in fp64, here and in the key,
 * are off by less than n 2^-53 times the norms' products; 2^-50 leaves room for their roots and
 * factors. */
static double least_key(const scan *c, const sums *x)
{
    const double slack = (double)(x->count + c->query.count + 64) * 0x1p-50;
    const double norm = sqrt(x->squares), squares = c->norm * c->norm + x->squares;
    switch (c->s->options.metric) {
    case GNOMON_IP:
        return -x->dot - slack * c->norm * norm;
    case GNOMON_L2:
        return sqrt(fmax(squares - 2 * x->dot - slack * squares, 0)) * (1 - 0x1p-50);
    default: /* COSINE */
        return 1 - x->dot / (c->norm * norm) - slack;
    }
}

/* The key beyond which nothing is looked for. */
static double farthest(const gnomon_search *s)
{
    if (s->options.k == 0) return s->limit;
    const gnomon_nearest *n = &s->nearest[0];
    return n->count < n->k ? INFINITY : n->heap[0].key;
}

static bool may_answer(const scan *c, int64_t i, const sums *x)
{
    const gnomon_search *s = c->s;
    const int64_t id = s->base + i;
    if (id == s->options.exclude || !gnomon_search_allows(&s->options, id)) return false;
    /* sums of smaller squares may have lost digits to underflow */
    const bool sure = !x->twice && x->squares > 0x1p-900 && isfinite(x->squares);
    return !sure || !(least_key(c, x) > farthest(s));
}

static gnomon_status compare(scan *c, int64_t i)
{
    gnomon_search *s = c->s;
    gnomon_sets sets = {0};
    const gnomon_csr one = gnomon_csr_rows(c->base, i, 1);
    GNOMON_TRY(gnomon_sparse_make(s->ctx, &one, "base", s->base + i, s->options.metric, &sets));
    const gnomon_sparse_row row = gnomon_sparse_row_at(&sets, 0);
    const gnomon_ranked point = {c->metric->sparse(s->kernels, &c->query, &row), s->base + i};
    gnomon_sets_free(s->ctx, &sets);
    s->verified++;
    if (s->options.k > 0) {
        gnomon_nearest_offer(&s->nearest[0], point);
    } else if (point.key <= s->limit) {
        GNOMON_TRY(gnomon_hits_reserve(s, 1));
        s->hits[s->hit_count++] = (gnomon_hit){0, point};
    }
    return GNOMON_OK;
}

static gnomon_status scan_rows(scan *c, int64_t *done)
{
    /* where more than a few rows must be compared in full an index is quicker for the others */
    const int64_t most = 64 + 16 * c->s->options.k + c->base->rows / 64;
    int64_t compared = 0;
    for (int64_t i = 0; i < c->base->rows && compared < most; i++) {
        const sums x = sum_up(c, i);
        if (x.broken) break;
        if (may_answer(c, i, &x)) {
            GNOMON_TRY(compare(c, i));
            compared++;
        }
        *done = i + 1;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_scan_sparse_one(gnomon_search *s, const gnomon_csr *base, int64_t *done)
{
    const int64_t cols = base->cols;
    *done = 0;
    if (s->count != 1 || !is_known(s->options.metric) || base->rows == 0) return GNOMON_OK;
    scan c = {.s = s,
              .base = base,
              .metric = gnomon_metric_row_of(s->options.metric),
              .query = gnomon_sparse_row_at(&s->sets, 0)};
    c.norm = gnomon_sparse_norm(&c.query, false);
    /* a table by columns must not cost more than the rows */
    if (!(c.norm > 0x1p-400) || base->rows >= UINT32_MAX ||
        cols > base->offsets[base->rows] - base->offsets[0] ||
        cols > gnomon_memory_limit(s->ctx) / 4 / (int64_t)sizeof *c.columns)
        return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, cols, sizeof *c.columns, "columns", &c.columns));
    for (int64_t e = 0; e < c.query.count; e++)
        c.columns[c.query.cols[e]].by = c.query.values[e] * c.query.factor;
    const gnomon_status status = scan_rows(&c, done);
    gnomon_free(s->ctx, c.columns);
    s->compared += *done;
    return status;
}
