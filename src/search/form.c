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

/* Nanoseconds of one thread, by bench/cpu/sparse_form.py: a pair's score, a product through a list,
 * and a pair where all of the base's entries are in the block of heavy columns. That block bounds
 * little: of the k nearest most rows need its products, of a threshold few. Those of thresholds,
 * and of joins, are estimates that no benchmark has fitted. */
typedef struct sparse_cost {
    double score, product, heavy;
} sparse_cost;
static const sparse_cost by_k = {3, 2.5, 30}, by_threshold = {0.5, 2, 4};
/* An entry that goes into an index, or that a single query is compared with. */
static const double per_entry = 60, per_scanned = 6;
/* An element of a dense product; of a copy of a sparse row, of a dense row that becomes a sparse
 * one, and of a dense base row that is made ready for its products. */
static const double per_dense = 0.075, per_copied = 1, per_converted = 1.5, per_prepared = 10;
/* A pair of dense rows of few nonzeros, which tie, so that many are verified: this, divided by one
 * and the square of their number. */
static const double per_tie = 60;

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
    double pairs, rest; /* of the sparse form: pairs, and all but the products */
    bool block;         /* its index keeps heavy columns in a block */
    bool nearest;
    bool bound; /* 'sparse' is not more than it was found to be, which is enough */
    double sparse, dense;
} costs;

static void add_sparse(costs *c, double shared, double heavy)
{
    const sparse_cost *each = c->nearest ? &by_k : &by_threshold;
    c->sparse = c->rest + c->pairs * (each->score + each->product * shared +
                                      (c->block ? each->heavy * heavy : 0));
}

/* How many columns two rows share: where that decides nothing a bound of it. */
static gnomon_status find_shared(gnomon_context *ctx, gnomon_form_side p, gnomon_form_side q,
                                 const shape *a, const shape *b, costs *c)
{
    static const double little = 2e7; /* of work, beside which counting is much */
    double shared = 0, heavy = 0;
    add_sparse(c, 0, 0);
    if (c->sparse >= c->dense && c->dense < little) return GNOMON_OK;
    add_sparse(c, fmin(a->nonzeros, b->nonzeros), 1);
    c->bound = c->sparse <= c->dense && (c->sparse < little || a->rows < SOME);
    if (c->bound) return GNOMON_OK;
    if (p.sparse == NULL || q.sparse == NULL) {
        heavy = fmin(GNOMON_HEAVY_MOST / fmax(a->cols, 1), 1);
        shared = a->nonzeros * b->nonzeros / fmax(a->cols, 1) * (1 - heavy);
    } else {
        if (is_broken(p.sparse) || is_broken(q.sparse)) return GNOMON_OK;
        GNOMON_TRY(gnomon_sparse_shared(ctx, p.sparse, q.sparse, &shared, &heavy));
    }
    add_sparse(c, shared, heavy);
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
    costs c = {.pairs = a.rows * b.rows / (self ? 2 : 1),
               .block = metric != GNOMON_L1,
               .nearest = work == GNOMON_FORM_NEAREST};
    const double tie = filtered ? per_tie / (1 + b.nonzeros * b.nonzeros) : 0;
    const double pair = each.start + tie + (filtered ? per_dense : each.dim) * b.cols;
    c.dense = c.pairs * pair + b.rows * b.cols * per_prepared;
    if (p.sparse != NULL && !p.copied && !self) c.dense += a.rows * a.cols * per_copied;
    if (q.sparse != NULL && !q.copied) c.dense += b.rows * b.cols * per_copied;
    c.rest = b.rows * b.nonzeros * (a.rows == 1 && !self && filtered ? per_scanned : per_entry);
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

/* One thread of an AMD Zen 3, fitted to batches of queries on text and on Zipf columns: a product
 * through an inverted list, and a row's score. */
static const double a_product = 1.5, a_score = 0.12;

double gnomon_sparse_exact_cost(double shared)
{
    return a_score + a_product * shared;
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
                                   double *shared, double *heavy)
{
    gnomon_numbering columns;
    double *counts = NULL;
    double in_block = 0, in_all = 0;
    *shared = 0;
    if (heavy != NULL) *heavy = 0;
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
            if (!is_heavy) *shared += counts[c] * others[c];
            if (is_heavy) in_block += others[c];
            in_all += others[c];
        }
        if (heavy != NULL && in_all > 0) *heavy = in_block / in_all;
    }
    gnomon_free(ctx, counts);
    gnomon_numbering_free(ctx, &columns);
    return status;
}
