#include "quality/lengths.h"

#include "base/error.h"
#include "base/memory.h"
#include "points/rows.h"
#include "points/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Sums outside of this range are taken again with a scale: their squares may have been
 * lost below or overflowed above. */
static bool is_safe(double sum)
{
    return sum > 1e-270 && sum < 1e300;
}

static double sum_squares(const double *a, const double *b, int64_t count, double by)
{
    double s[4] = {0, 0, 0, 0};
    int64_t c = 0;
    for (; c + 4 <= count; c += 4) {
        for (int l = 0; l < 4; l++) {
            const double v = (b ? a[c + l] - b[c + l] : a[c + l]) * by;
            s[l] += v * v;
        }
    }
    for (; c < count; c++) {
        const double v = (b ? a[c] - b[c] : a[c]) * by;
        s[0] += v * v;
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static double largest(const double *a, const double *b, int64_t count)
{
    double m = 0;
    for (int64_t c = 0; c < count; c++)
        m = fmax(m, fabs(b ? a[c] - b[c] : a[c]));
    return m;
}

/* The power of two just above m, at most 2^1023 and at least 2^-1021, so that its inverse is
 * normal too; differences may reach 2^1024 and are then infinite, which no finite data of one
 * sign gives. */
static double scale_for(double m)
{
    int exponent;
    frexp(m, &exponent);
    if (exponent > 1022) exponent = 1022;
    if (exponent < -1021) exponent = -1021;
    return ldexp(1, exponent);
}

gnomon_length gnomon_length_dense(const gnomon_matrix *m, int64_t i, int64_t j, double *scratch)
{
    double *a = scratch, *b = j < 0 ? NULL : scratch + GNOMON_LENGTH_PIECE;
    gnomon_length length = {0, 1};
    double top = 0;
    enum { PLAIN, SCALE_PASS, SCALED };
    for (int pass = PLAIN; pass <= SCALED; pass++) {
        double sum = 0;
        for (int64_t c = 0; c < m->cols; c += GNOMON_LENGTH_PIECE) {
            const int64_t count =
                m->cols - c < GNOMON_LENGTH_PIECE ? m->cols - c : GNOMON_LENGTH_PIECE;
            gnomon_row_as_f64(m, i, c, count, a);
            if (b) gnomon_row_as_f64(m, j, c, count, b);
            if (pass == SCALE_PASS)
                top = fmax(top, largest(a, b, count));
            else
                sum += sum_squares(a, b, count, 1 / length.scale);
        }
        if (pass == PLAIN && is_safe(sum)) return (gnomon_length){sum, 1};
        if (pass == SCALE_PASS) {
            if (top == 0) return (gnomon_length){0, 1};
            length.scale = scale_for(top);
        }
        length.sum = sum;
    }
    return length;
}

/* The next difference of two sorted rows (b may be empty). */
typedef struct merge {
    const gnomon_sorted_rows *m;
    int64_t a, a_end, b, b_end;
} merge;

static merge merge_begin(const gnomon_sorted_rows *m, int64_t i, int64_t j)
{
    merge g = {m, m->offsets[i], m->offsets[i + 1], 0, 0};
    if (j >= 0) {
        g.b = m->offsets[j];
        g.b_end = m->offsets[j + 1];
    }
    return g;
}

static bool merge_next(merge *g, double *difference)
{
    const gnomon_sorted_rows *m = g->m;
    const int64_t none = INT64_MAX;
    const int64_t ca = g->a < g->a_end ? m->columns[g->a] : none;
    const int64_t cb = g->b < g->b_end ? m->columns[g->b] : none;
    if (ca == none && cb == none) return false;
    *difference = 0;
    if (ca <= cb) *difference += m->values[g->a++];
    if (cb <= ca) *difference -= m->values[g->b++];
    return true;
}

gnomon_length gnomon_length_sparse(const gnomon_sorted_rows *m, int64_t i, int64_t j)
{
    double sum = 0, top = 0, v;
    for (merge g = merge_begin(m, i, j); merge_next(&g, &v);) {
        sum += v * v;
        top = fmax(top, fabs(v));
    }
    if (is_safe(sum) || top == 0) return (gnomon_length){sum, 1};
    const double scale = scale_for(top);
    sum = 0;
    for (merge g = merge_begin(m, i, j); merge_next(&g, &v);)
        sum += (v / scale) * (v / scale);
    return (gnomon_length){sum, scale};
}

/* The largest magnitude comes first, so that no fourth power is lost that counts. */
double gnomon_coherence_dense(const gnomon_matrix *m, int64_t i, int64_t j, double *scratch)
{
    double *a = scratch, *b = j < 0 ? NULL : scratch + GNOMON_LENGTH_PIECE;
    double top = 0, squares = 0, fourths = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < m->cols; c += GNOMON_LENGTH_PIECE) {
            const int64_t count =
                m->cols - c < GNOMON_LENGTH_PIECE ? m->cols - c : GNOMON_LENGTH_PIECE;
            gnomon_row_as_f64(m, i, c, count, a);
            if (b) gnomon_row_as_f64(m, j, c, count, b);
            if (pass == 0) {
                top = fmax(top, largest(a, b, count));
                continue;
            }
            for (int64_t t = 0; t < count; t++) {
                const double v = (b ? a[t] - b[t] : a[t]) / top;
                squares += v * v;
                fourths += v * v * (v * v);
            }
        }
        if (top == 0) return NAN;
    }
    return fourths / (squares * squares);
}

double gnomon_coherence_sparse(const gnomon_sorted_rows *m, int64_t i, int64_t j)
{
    double top = 0, squares = 0, fourths = 0, v;
    for (merge g = merge_begin(m, i, j); merge_next(&g, &v);)
        top = fmax(top, fabs(v));
    if (top == 0) return NAN;
    for (merge g = merge_begin(m, i, j); merge_next(&g, &v);) {
        v /= top;
        squares += v * v;
        fourths += v * v * (v * v);
    }
    return fourths / (squares * squares);
}

double gnomon_length_distortion(gnomon_length a, gnomon_length b)
{
    if (b.sum == 0) return (double)NAN;
    const double scale = a.scale / b.scale;
    const double ratio = a.sum / b.sum * scale * scale;
    return fmin(ratio, 1e300) - 1; /* a sketch of other points altogether */
}

typedef struct entry {
    int64_t column, place;
    double value;
} entry;

static int by_column(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->column != b->column) return a->column < b->column ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Fills row i of out from the entries of csr, sorted and added up. */
static gnomon_status add_row(gnomon_context *ctx, const gnomon_csr *csr, int64_t i, entry *entries,
                             gnomon_sorted_rows *out)
{
    const int64_t first = csr->offsets[i] - csr->offsets[0];
    const int64_t count = csr->offsets[i + 1] - csr->offsets[i];
    for (int64_t e = 0; e < count; e++) {
        const int64_t column = csr->indices[first + e];
        const double value = gnomon_value_as_f64(csr->values, csr->dtype, first + e);
        GNOMON_FAIL_IF(column < 0 || column >= csr->cols, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("original") " has the column index %" PRId64
                                              " in row " GNOMON_AT_ROW "%" PRId64
                                              "; it must be in [0, %" PRId64 ")",
                       column, i, csr->cols);
        GNOMON_FAIL_IF(!isfinite(value), ctx, GNOMON_ERROR_NONFINITE,
                       GNOMON_ARG("original") " has %g at row " GNOMON_AT_ROW "%" PRId64
                                              ", column " GNOMON_AT_COL "%" PRId64,
                       value, i, column);
        entries[e] = (entry){column, e, value};
    }
    qsort(entries, (size_t)count, sizeof *entries, by_column);
    int64_t at = out->offsets[i];
    for (int64_t e = 0; e < count; e++) {
        if (at > out->offsets[i] && out->columns[at - 1] == entries[e].column) {
            out->values[at - 1] += entries[e].value;
        } else {
            out->columns[at] = entries[e].column;
            out->values[at++] = entries[e].value;
        }
    }
    out->offsets[i + 1] = at;
    return GNOMON_OK;
}

static gnomon_status fill_rows(gnomon_context *ctx, const gnomon_csr *csr, int64_t total,
                               int64_t longest, gnomon_sorted_rows *out)
{
    entry *entries = NULL;
    gnomon_status status =
        gnomon_alloc(ctx, longest, sizeof *entries, "a sparse row's entries", &entries);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, csr->rows + 1, sizeof *out->offsets, "sparse offsets",
                                   &out->offsets);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, total, sizeof *out->columns, "sparse columns", &out->columns);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, total, sizeof *out->values, "sparse values", &out->values);
    for (int64_t i = 0; i < csr->rows && status == GNOMON_OK; i++)
        if (csr->offsets[i + 1] > csr->offsets[i])
            status = add_row(ctx, csr, i, entries, out);
        else
            out->offsets[i + 1] = out->offsets[i];
    gnomon_free(ctx, entries);
    return status;
}

gnomon_status gnomon_sorted_rows_make(gnomon_context *ctx, const gnomon_csr *csr,
                                      gnomon_sorted_rows *out)
{
    memset(out, 0, sizeof *out);
    GNOMON_TRY(gnomon_check_csr(ctx, csr, "original"));
    out->rows = csr->rows;
    int64_t longest = 0;
    for (int64_t i = 0; i < csr->rows; i++)
        if (csr->offsets[i + 1] - csr->offsets[i] > longest)
            longest = csr->offsets[i + 1] - csr->offsets[i];
    const int64_t total = csr->rows > 0 ? csr->offsets[csr->rows] - csr->offsets[0] : 0;
    const gnomon_status status = fill_rows(ctx, csr, total, longest, out);
    if (status != GNOMON_OK) gnomon_sorted_rows_free(ctx, out);
    return status;
}

void gnomon_sorted_rows_free(gnomon_context *ctx, gnomon_sorted_rows *rows)
{
    gnomon_free(ctx, rows->offsets);
    gnomon_free(ctx, rows->columns);
    gnomon_free(ctx, rows->values);
    memset(rows, 0, sizeof *rows);
}
