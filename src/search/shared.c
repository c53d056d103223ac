#include "search/shared.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "search/inverted.h"

enum { ROWS = 4096 };

/* One thread of an AMD Zen 3, fitted to batches of queries on text and on Zipf columns: a product
 * through an inverted list, and a row's score. */
static const double per_product = 1.5, per_score = 0.12;

double gnomon_sparse_exact_cost(double shared)
{
    return per_score + per_product * shared;
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
                                   double *shared)
{
    gnomon_numbering columns;
    double *counts = NULL;
    *shared = 0;
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
            const bool heavy = c + GNOMON_HEAVY_MOST >= columns.used &&
                               others[c] * GNOMON_HEAVY_SHARE > 1; /* rarest first */
            if (!heavy) *shared += counts[c] * others[c];
        }
    }
    gnomon_free(ctx, counts);
    gnomon_numbering_free(ctx, &columns);
    return status;
}
