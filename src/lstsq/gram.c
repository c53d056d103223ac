/* A^T A as the preconditioner: of a narrow A it costs less than a sketch and the many steps that a
 * sketch leaves. Its Cholesky factor loses directions whose squares round away, so it is used only
 * where A's columns are far from dependent; conjugate gradients make up for the rest, as they do
 * for a sketch. */
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"
#include "points/rows.h"

#include <math.h>
#include <string.h>

/* The least share of a column that the ones before it may leave: then rounding of A^T A changes its
 * factor by about 2^-53 over the square of this. */
#define INDEPENDENT 0x1p-16

/* gram becomes its triangle, with a share of lambda^2 added; false where columns are nearly
 * dependent. norms: of the columns. */
static bool factor(const gnomon_solver *s, double part, double *gram, double *norms)
{
    const int64_t d = s->d;
    for (int64_t j = 0; j < d; j++) {
        gram[j * d + j] += s->lambda * s->lambda * part;
        norms[j] = sqrt(gram[j * d + j]);
    }
    if (!gnomon_blas_cholesky(d, gram)) return false;
    for (int64_t j = 0; j < d; j++)
        if (!(gram[j * d + j] >= INDEPENDENT * norms[j] && isfinite(norms[j]))) return false;
    for (int64_t i = 0; i < d; i++)
        memset(gram + i * d, 0, (size_t)i * sizeof *gram);
    return true;
}

/* Whether the columns of some rows are far from dependent, so that a pass over all is likely to
 * succeed. They are taken from the first piece, whose size depends on d alone. */
static gnomon_status look(gnomon_solver *s, double *norms, bool *independent)
{
    enum { TIMES = 4 };
    const int64_t d = s->d, passes = s->source.passes;
    double *gram = NULL;
    gnomon_tall rows = {0};
    gnomon_piece piece;
    bool finite = true;
    GNOMON_TRY(gnomon_row_source_rewind(&s->source));
    GNOMON_TRY(gnomon_row_source_next(&s->source, &piece));
    s->source.passes = passes;
    *independent = true;
    if (piece.rows < TIMES * d) return GNOMON_OK;
    gnomon_matrix view = piece.dense;
    view.rows = TIMES * d;
    /* odd, as rows often repeat in an even rhythm */
    view.row_stride *= (piece.rows / view.rows - 1) | 1;
    gnomon_status status = gnomon_alloc(s->ctx, gnomon_times(d, d), sizeof *gram, "A^T A", &gram);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(s->ctx, true, view.rows, d, false, "some rows", &rows);
    for (int64_t i = 0; status == GNOMON_OK && i < view.rows; i++)
        gnomon_row_as_f64(&view, i, 0, d, gnomon_tall_row(&rows, i));
    if (status == GNOMON_OK) status = gnomon_tall_gram(s->ctx, &rows, gram, &finite);
    if (status == GNOMON_OK)
        *independent = finite && factor(s, (double)view.rows / (double)s->n, gram, norms);
    gnomon_free(s->ctx, gram);
    gnomon_tall_drop(s->ctx, &rows);
    return status;
}

/* qb becomes R^-T D^-1 A^T b. */
static void divide(const gnomon_solver *s, double *qb)
{
    const int64_t d = s->d, m = s->m;
    gnomon_solver_scale(s, qb, m);
    for (int64_t i = 0; i < d; i++) {
        for (int64_t l = 0; l < i; l++) {
            for (int64_t j = 0; j < m; j++)
                qb[i * m + j] -= s->r[l * d + i] * qb[l * m + j];
        }
        for (int64_t j = 0; j < m; j++)
            qb[i * m + j] /= s->r[i * d + i];
    }
}

static gnomon_status make(gnomon_solver *s, double *norms)
{
    const int64_t d = s->d;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, d), sizeof *s->r, "A^T A", &s->r));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, s->m), sizeof *s->qb, "A^T b", &s->qb));
    const gnomon_sweep sweep = {.cols = s->m, .against_b = true, .z = s->qb, .gram = s->r};
    GNOMON_TRY(gnomon_sweep_rows(s, &sweep));
    if (!factor(s, 1, s->r, norms)) {
        gnomon_free(s->ctx, s->r);
        gnomon_free(s->ctx, s->qb);
        s->r = s->qb = NULL;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_columns_scale(s, norms));
    for (int64_t i = 0; i < d * d && s->columns != NULL; i++)
        s->r[i] *= s->columns[i % d];
    divide(s, s->qb);
    return GNOMON_OK;
}

gnomon_status gnomon_gram_precondition(gnomon_solver *s)
{
    double *norms = NULL;
    bool independent = false;
    if (!gnomon_solver_gram_is_cheaper(s)) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->d, sizeof *norms, "lengths of columns", &norms));
    gnomon_status status = look(s, norms, &independent);
    if (status == GNOMON_OK && independent) status = make(s, norms);
    gnomon_free(s->ctx, norms);
    s->out->k = s->n;
    return status;
}
