/* Columns of very different lengths: a short one beside a long one would be lost in its rounding.
 * Least squares do not depend on the columns' scale, so the sketch's are brought to like lengths by
 * powers of two, which no longer costs more than the best scaling of columns (van der Sluis 1969).
 * The shortest of several solutions does depend on it; the caller goes back where there are some.
 */
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"

#include <math.h>
#include <string.h>

/* Lengths within 2^LIKE of each other are left as they are, and none is multiplied by more than
 * 2^MOST. */
enum { LIKE = 10, MOST = 300 };

gnomon_status gnomon_columns_scale(gnomon_solver *s, const double *norms)
{
    int longest = 0, shortest = 0, exponent;
    bool any = false;
    for (int64_t j = 0; j < s->d; j++) {
        if (norms[j] == 0) continue;
        frexp(norms[j], &exponent);
        longest = any && longest > exponent ? longest : exponent;
        shortest = any && shortest < exponent ? shortest : exponent;
        any = true;
    }
    if (longest - shortest <= LIKE) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->d, sizeof *s->columns, "lengths of columns", &s->columns));
    for (int64_t j = 0; j < s->d; j++) {
        exponent = longest;
        if (norms[j] > 0) frexp(norms[j], &exponent);
        s->columns[j] = ldexp(1.0, longest - exponent < MOST ? longest - exponent : MOST);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_columns_level(gnomon_solver *s, int64_t *nonzero)
{
    double *norms = NULL;
    *nonzero = 0;
    /* rcond names singular values of A itself; of a transpose, columns are equations. */
    if (s->options.rcond > 0 || s->underdetermined != NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->d, sizeof *norms, "lengths of columns", &norms));
    gnomon_tall_norms(s->ctx, &s->sa, norms);
    for (int64_t j = 0; j < s->d; j++) {
        norms[j] = hypot(norms[j], s->lambda);
        *nonzero += norms[j] > 0;
    }
    const gnomon_status status = gnomon_columns_scale(s, norms);
    gnomon_free(s->ctx, norms);
    if (status != GNOMON_OK || s->columns == NULL) return status;
    for (int64_t i = 0; i < s->sa.rows; i++) {
        double *row = gnomon_tall_row(&s->sa, i);
        for (int64_t j = 0; j < s->d; j++)
            row[j] *= s->columns[j];
    }
    return GNOMON_OK;
}

gnomon_status gnomon_columns_lambda(gnomon_solver *s, double *r, double *qb)
{
    const int64_t d = s->d, m = s->m;
    gnomon_orth_count ways = {0, 0};
    gnomon_tall above = {0}, right = {0};
    gnomon_status status =
        gnomon_tall_make(s->ctx, true, 2 * d, d, true, "the sketch above lambda", &above);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(s->ctx, true, 2 * d, m, true, "the sketch of b", &right);
    if (status == GNOMON_OK) {
        memcpy(above.data, r, (size_t)(d * d) * sizeof *r);
        memcpy(right.data, qb, (size_t)(d * m) * sizeof *qb);
        for (int64_t j = 0; j < d; j++)
            ((double *)gnomon_tall_row(&above, d + j))[j] = s->lambda * s->columns[j];
        status = gnomon_orthonormalise(s->ctx, &above, r, &ways);
    }
    if (status == GNOMON_OK) status = gnomon_tall_cross(s->ctx, &above, &right, qb);
    gnomon_tall_drop(s->ctx, &above);
    gnomon_tall_drop(s->ctx, &right);
    return status;
}

void gnomon_columns_back(gnomon_solver *s, double *r)
{
    for (int64_t i = 0; i < s->d * s->d; i++)
        r[i] /= s->columns[i % s->d];
    gnomon_free(s->ctx, s->columns);
    s->columns = NULL;
}

typedef struct workspace {
    double *copy, *u, *vt, *values, *work;
    int *index;
} workspace;

/* *largest = the largest singular value of a (d x d), which is exact to rounding however small the
 * others are. */
static gnomon_status largest_of(gnomon_solver *s, const double *a, const workspace *w,
                                double *largest)
{
    GNOMON_FAIL_IF(!gnomon_blas_svd(s->d, w->copy, a, w->values, w->u, w->vt, w->work,
                                    gnomon_blas_svd_work(s->d), w->index),
                   s->ctx, GNOMON_ERROR_INTERNAL,
                   "the singular values of the sketch did not converge");
    *largest = w->values[0];
    return GNOMON_OK;
}

static gnomon_status figures(gnomon_solver *s, double *r, const workspace *w)
{
    const int64_t d = s->d;
    double inverse = 0;
    for (int64_t i = 0; i < d * d; i++)
        r[i] /= s->columns[i % d];
    GNOMON_TRY(largest_of(s, r, w, &s->largest));
    for (int64_t i = 0; i < d * d; i++)
        r[i] = i % d < s->rank ? s->v[i] / s->sigma[i % d] * s->columns[i / d] : 0;
    GNOMON_TRY(largest_of(s, r, w, &inverse));
    s->least = 1 / inverse;
    return GNOMON_OK;
}

gnomon_status gnomon_columns_figures(gnomon_solver *s, double *r)
{
    const char *what = "singular values";
    const int64_t d = s->d, squared = gnomon_times(d, d);
    workspace w = {0};
    gnomon_status status =
        gnomon_alloc(s->ctx, gnomon_times(3, squared), sizeof(double), what, &w.copy);
    if (status == GNOMON_OK) status = gnomon_alloc(s->ctx, d, sizeof(double), what, &w.values);
    if (status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, gnomon_blas_svd_work(d), sizeof(double), what, &w.work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, gnomon_times(8, d), sizeof(int), what, &w.index);
    if (status == GNOMON_OK) {
        w.u = w.copy + squared;
        w.vt = w.u + squared;
        status = figures(s, r, &w);
    }
    gnomon_free(s->ctx, w.copy);
    gnomon_free(s->ctx, w.values);
    gnomon_free(s->ctx, w.work);
    gnomon_free(s->ctx, w.index);
    return status;
}
