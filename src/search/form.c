#include "search/form.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "metric/metric.h"
#include "points/rows.h"
#include "points/view.h"
#include "search/inverted.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Nanoseconds of one thread of an AMD Zen 4, fitted to bench/cpu/sparse_form.py
 * (docs/results/sparse.md has what the choices cost): a pair's score, a product through a list, and
 * a heavy column of a query's row. Of a threshold's pairs few need the heavy columns, and of a join
 * fewer. */
typedef struct sparse_cost {
    double score, product, heavy;
} sparse_cost;
static const sparse_cost sparse_costs[] = {[GNOMON_FORM_NEAREST] = {2.3, 0.45, 0.06},
                                           [GNOMON_FORM_THRESHOLD] = {1, 0.4, 0.2},
                                           [GNOMON_FORM_SELF_JOIN] = {0.5, 0.4, 0.03}};
/* A pair of dense rows that a filter compares: itself; where rows have few nonzeros they tie, so
 * that many are verified: this, divided by one and the square of their number; an element. */
typedef struct dense_cost {
    double pair, tie, element;
} dense_cost;
static const dense_cost dense_costs[] = {[GNOMON_FORM_NEAREST] = {1.3, 25, 0.045},
                                         [GNOMON_FORM_THRESHOLD] = {0.4, 5, 0.045},
                                         [GNOMON_FORM_SELF_JOIN] = {2, 5, 0.12}};
/* An entry that goes into an index, or that a single query is compared with; a query's lists. */
static const double per_entry = 40, per_scanned = 4, per_query = 1000;
/* An element of a copy of a sparse row, of a dense row that becomes a sparse one, of a dense base
 * row that is made ready for a filter, and of one that a single query is compared with. */
static const double per_copied = 1, per_converted = 1.5, per_prepared = 6, per_compared = 0.8;

enum { SOME = 64, TASK_ROWS = 64 };

typedef struct shape {
    double rows, cols, nonzeros; /* of a row */
} shape;

static shape shape_of(gnomon_context *ctx, gnomon_form_side side)
{
    if (side.sparse != NULL) {
        const gnomon_csr *m = side.sparse;
        const double all = m->rows > 0 ? (double)(m->offsets[m->rows] - m->offsets[0]) : 0;
        return (shape){(double)m->rows, (double)m->cols, all / fmax((double)m->rows, 1)};
    }
    const gnomon_matrix *m = side.dense;
    double buffer[256];
    int64_t nonzero = 0, seen = 0;
    const gnomon_search_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search;
    const int64_t some = gnomon_min(m->rows, SOME), cols = gnomon_min(m->cols, 256);
    for (int64_t n = 0; n < some; n++) {
        const gnomon_matrix row = gnomon_rows(m, n * m->rows / some, 1);
        const int64_t from = n * (m->cols - cols) / some;
        const gnomon_matrix part = gnomon_columns(&row, from, cols);
        kernels->to_f64(part.data, part.dtype, part.col_stride, cols, buffer);
        for (int64_t j = 0; j < cols; j++)
            nonzero += buffer[j] != 0;
        seen += cols;
    }
    const double share = seen > 0 ? (double)nonzero / (double)seen : 0;
    return (shape){(double)m->rows, (double)m->cols, share * (double)m->cols};
}

/* What an index is asked about: checked here, since a sample of broken rows can't be counted. */
static bool is_broken(const gnomon_csr *m)
{
    const int64_t entries = m->rows > 0 ? m->offsets[m->rows] - m->offsets[0] : 0;
    for (int64_t e = 0; e < entries; e++)
        if (m->indices[e] < 0 || m->indices[e] >= m->cols) return true;
    return false;
}

typedef struct costs {
    gnomon_form_work work;
    double pairs, rest; /* of the sparse form: pairs, and all but these */
    bool block;         /* its index keeps heavy columns in a block */
    bool scanned;       /* it has no index: there is one query */
    bool bound;         /* 'sparse' is not more than it was found to be, which is enough */
    double sparse, dense;
} costs;

static void add_sparse(costs *c, double listed, double heavy)
{
    /* without a block the heavy columns have lists, which as many products go through */
    if (!c->block) listed += heavy;
    c->sparse = c->rest;
    if (!c->scanned)
        c->sparse += c->pairs * gnomon_sparse_exact_cost(c->work, listed, c->block ? heavy : 0);
}

/* How many columns two rows share: where that decides nothing a bound of it. */
static gnomon_status find_shared(gnomon_context *ctx, gnomon_form_side p, gnomon_form_side q,
                                 const shape *a, const shape *b, costs *c)
{
    static const double little = 2e7; /* of work, beside which counting is much */
    double listed = 0, heavy = 0;
    add_sparse(c, 0, 0);
    if (c->scanned) return GNOMON_OK;
    if (c->sparse >= c->dense && c->dense < little) return GNOMON_OK;
    add_sparse(c, fmin(a->nonzeros, b->nonzeros), fmin(a->nonzeros, GNOMON_HEAVY_MOST));
    c->bound = c->sparse <= c->dense && (c->sparse < little || a->rows < SOME);
    if (c->bound) return GNOMON_OK;
    if (p.sparse == NULL || q.sparse == NULL) {
        const double share = fmin(GNOMON_HEAVY_MOST / fmax(a->cols, 1), 1);
        heavy = share * a->nonzeros;
        listed = a->nonzeros * b->nonzeros / fmax(a->cols, 1) * (1 - share);
    } else {
        if (is_broken(p.sparse) || is_broken(q.sparse)) return GNOMON_OK;
        GNOMON_TRY(gnomon_sparse_shared(ctx, p.sparse, q.sparse, &listed, &heavy));
    }
    add_sparse(c, listed, heavy);
    return GNOMON_OK;
}

gnomon_status gnomon_form_choose(gnomon_context *ctx, gnomon_metric metric, gnomon_form_side p,
                                 gnomon_form_side q, gnomon_form_work work, gnomon_form *form)
{
    const bool self = work == GNOMON_FORM_SELF_JOIN;
    const shape a = shape_of(ctx, p), b = self ? a : shape_of(ctx, q);
    const gnomon_metric_cost each = gnomon_metric_row_of(metric)->exact_cost;
    const double threads = gnomon_context_threads(ctx);
    const bool filtered = gnomon_metric_row_of(metric)->filtered;
    costs c = {.work = work,
               .pairs = a.rows * b.rows / (self ? 2 : 1),
               .block = metric != GNOMON_L1,
               .scanned = a.rows == 1 && !self && filtered};
    const dense_cost *dense = &dense_costs[work];
    double pair = each.start + each.dim * b.cols, prepared = 0;
    if (c.scanned) {
        pair = per_compared * b.cols;
    } else if (filtered) {
        pair = dense->pair + dense->tie / (1 + b.nonzeros * b.nonzeros) + dense->element * b.cols;
        prepared = per_prepared;
    }
    c.dense = c.pairs * pair + b.rows * b.cols * prepared;
    if (p.sparse != NULL && !p.copied && !self) c.dense += a.rows * a.cols * per_copied;
    if (q.sparse != NULL && !q.copied) c.dense += b.rows * b.cols * per_copied;
    c.rest = per_query * a.rows + b.rows * b.nonzeros * (c.scanned ? per_scanned : per_entry);
    if (p.sparse == NULL) c.rest += a.rows * a.cols * per_converted;
    if (q.sparse == NULL) c.rest += b.rows * b.cols * per_converted;
    *form = (gnomon_form){0};
    if (b.cols > (double)gnomon_memory_limit(ctx) / 8 / 64) {
        snprintf(form->why, sizeof form->why, "dense copies of %.0f columns take too much memory",
                 b.cols);
        return GNOMON_OK;
    }
    GNOMON_TRY(find_shared(ctx, p, q, &a, &b, &c));
    form->dense = c.dense < c.sparse;
    snprintf(form->why, sizeof form->why,
             "by the model %s%.2g s through an inverted index, %.2g s as dense rows",
             c.bound ? "at most " : "", c.sparse * 1e-9 / threads, c.dense * 1e-9 / threads);
    return GNOMON_OK;
}

/* ---- copies ---- */

typedef struct copying {
    const gnomon_sets *rows;
    const gnomon_matrix *to;
} copying;

static void copy_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const copying *c = arg;
    const int64_t end = gnomon_min((task + 1) * TASK_ROWS, c->rows->count);
    for (int64_t i = task * TASK_ROWS; i < end; i++) {
        double *row = (double *)c->to->data + i * c->to->row_stride;
        memset(row, 0, (size_t)c->to->cols * sizeof *row);
        for (int64_t e = c->rows->offsets[i]; e < c->rows->offsets[i + 1]; e++)
            row[c->rows->members[e]] = c->rows->weights[e];
    }
}

void gnomon_form_fill(gnomon_context *ctx, const gnomon_sets *rows, const gnomon_matrix *to)
{
    copying c = {rows, to};
    gnomon_parallel(ctx, gnomon_ceil_div(rows->count, TASK_ROWS), copy_rows, &c);
}

gnomon_status gnomon_form_copy(gnomon_context *ctx, const gnomon_csr *rows, const char *name,
                               int64_t before, gnomon_metric metric, int64_t first,
                               const gnomon_matrix *to)
{
    const gnomon_csr part = gnomon_csr_rows(rows, first, to->rows);
    gnomon_sets sets = {0};
    GNOMON_TRY(gnomon_sets_make(ctx, &part, name, before + first, metric, &sets));
    gnomon_form_fill(ctx, &sets, to);
    gnomon_sets_free(ctx, &sets);
    return GNOMON_OK;
}

int64_t gnomon_form_rows(gnomon_context *ctx, int64_t cols)
{
    const int64_t row = gnomon_max(gnomon_times(cols, sizeof(double)), 1);
    return gnomon_max(gnomon_memory_limit(ctx) / 8 / row, 1);
}

/* ---- what work on sparse rows costs ---- */

enum { ROWS = 4096 };

double gnomon_sparse_exact_cost(gnomon_form_work work, double listed, double heavy)
{
    const sparse_cost *c = &sparse_costs[work];
    return c->score + c->product * listed + c->heavy * heavy;
}

static int64_t step_of(const gnomon_csr *m)
{
    return gnomon_max(gnomon_ceil_div(m->rows, ROWS), 1);
}

static gnomon_status count_columns(gnomon_context *ctx, const gnomon_csr *m, gnomon_numbering *n)
{
    for (int64_t i = 0; i < m->rows; i += step_of(m)) {
        int64_t offsets[2] = {m->offsets[i] - m->offsets[0], m->offsets[i + 1] - m->offsets[0]};
        const gnomon_sets row = {.count = 1, .offsets = offsets, .members = (int64_t *)m->indices};
        GNOMON_TRY(gnomon_numbering_count(ctx, n, &row));
    }
    return GNOMON_OK;
}

/* Adds 'by' for each entry to its column's count. */
static void add_counts(const gnomon_csr *m, const gnomon_numbering *n, double by, double *counts)
{
    for (int64_t i = 0; i < m->rows; i += step_of(m))
        for (int64_t e = m->offsets[i]; e < m->offsets[i + 1]; e++) {
            const int64_t column = gnomon_numbering_find(n, m->indices[e - m->offsets[0]]);
            if (column >= 0) counts[column] += by;
        }
}

gnomon_status gnomon_sparse_shared(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                                   double *listed, double *heavy)
{
    gnomon_numbering columns;
    double *counts = NULL;
    *listed = *heavy = 0;
    if (p->rows == 0 || q->rows == 0) return GNOMON_OK;
    const int64_t entries = p->offsets[p->rows] - p->offsets[0];
    const double p_rows = (double)gnomon_ceil_div(p->rows, step_of(p));
    const double q_rows = (double)gnomon_ceil_div(q->rows, step_of(q));
    gnomon_status status =
        gnomon_numbering_open(ctx, p->cols, gnomon_min(entries, (int64_t)ROWS * 64), &columns);
    if (status == GNOMON_OK) status = count_columns(ctx, p, &columns);
    if (status == GNOMON_OK) status = gnomon_numbering_close(ctx, &columns);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, gnomon_times(2, columns.used), sizeof *counts, "columns",
                                   &counts);
    if (status == GNOMON_OK) {
        double *others = counts + columns.used;
        add_counts(p, &columns, 1 / p_rows, counts);
        add_counts(q, &columns, 1 / q_rows, others);
        for (int64_t c = 0; c < columns.used; c++) {
            const bool is_heavy = c + GNOMON_HEAVY_MOST >= columns.used &&
                                  others[c] * GNOMON_HEAVY_SHARE > 1; /* rarest first */
            if (is_heavy)
                *heavy += counts[c];
            else
                *listed += counts[c] * others[c];
        }
    }
    gnomon_free(ctx, counts);
    gnomon_numbering_free(ctx, &columns);
    return status;
}
