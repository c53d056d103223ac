/* search/form.h: the form in which points are compared when a side is sparse: rows of both sides
 * through an inverted index, or dense copies of sparse rows. Answers have the same bits in either.
 *
 * Predicted is the time of one thread, by the constants of form.c: products through lists for the
 * columns that two rows share, or dense products for all columns, and what making
 * an index or copies takes. */
#ifndef GNOMON_SEARCH_FORM_H
#define GNOMON_SEARCH_FORM_H

#include "metric/metric.h"

#include <stdbool.h>

/* One of them is NULL. Entries of sparse rows may be broken: that is found out elsewhere. */
typedef struct gnomon_form_side {
    const gnomon_csr *sparse;
    const gnomon_matrix *dense;
    bool copied; /* there is a dense copy of the sparse rows already */
} gnomon_form_side;

enum { GNOMON_FORM_WHY = 160 };

typedef struct gnomon_form {
    bool dense;
    char why[GNOMON_FORM_WHY]; /* both predictions, or what rules a form out */
} gnomon_form;

/* What is asked for: the k nearest, all within a threshold, or that of p with its own later rows.
 */
typedef enum gnomon_form_work {
    GNOMON_FORM_NEAREST,
    GNOMON_FORM_THRESHOLD,
    GNOMON_FORM_SELF_JOIN
} gnomon_form_work;

/* For p compared with q under a metric with 'sparse' in its row; q has the index. Errors: MEMORY.
 */
gnomon_status gnomon_form_choose(gnomon_context *ctx, gnomon_metric metric, gnomon_form_side p,
                                 gnomon_form_side q, gnomon_form_work work, gnomon_form *form);

/* Dense copies of rows [first, first + to->rows) of sparse rows into 'to', row-major and of type
 * F64; what they refuse is told by the name and the row, 'before' rows standing before the first.
 * Errors: DATA, NONFINITE, UNSUPPORTED, MEMORY. */
gnomon_status gnomon_form_copy(gnomon_context *ctx, const gnomon_csr *rows, const char *name,
                               int64_t before, gnomon_metric metric, int64_t first,
                               const gnomon_matrix *to);
/* The same of rows that are made already. */
void gnomon_form_fill(gnomon_context *ctx, const gnomon_sets *rows, const gnomon_matrix *to);
/* Rows of so many columns of which copies may be held at a time: an eighth of the memory limit, one
 * at least. */
int64_t gnomon_form_rows(gnomon_context *ctx, int64_t cols);

/* ---- what work on sparse rows costs ---- */

/* Of some evenly spaced rows of p and q, at most 4096 of each: *listed, the mean over pairs of the
 * columns that both have, without those that an inverted index of q keeps in a block; and *heavy,
 * the mean over p's rows of the columns in that block. Entries must be checked. Errors: MEMORY. */
gnomon_status gnomon_sparse_shared(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                                   double *listed, double *heavy);
/* Nanoseconds on one thread of exact search or an exact join through an inverted index, a pair of
 * such rows; without what making the index costs. */
double gnomon_sparse_exact_cost(gnomon_form_work work, double listed, double heavy);
/* Nanoseconds on one thread: an entry's product with a hash function's direction; an entry of a row
 * that is merged with another by their columns. */
#define GNOMON_SPARSE_PRODUCT_COST 0.12
#define GNOMON_SPARSE_MERGE_COST   8.0

#endif
