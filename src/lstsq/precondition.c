/* What makes A well conditioned: the singular values of the sketch and its right vectors. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "linalg/spectrum.h"
#include "lstsq/lstsq.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The least singular value beside the largest down to which R^T R tells all to 2^-33 of themselves.
 */
#define SPAN 0x1p-10

typedef struct workspace {
    double *r, *u, *qb, *y;
    double lambda; /* what the triangle does not hold of it */
} workspace;

static gnomon_status allocate(gnomon_solver *s, workspace *w)
{
    const int64_t d = s->d;
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(d, d), sizeof(double), "the sketch's triangle", &w->r));
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(d, d), sizeof(double), "the sketch's vectors", &w->u));
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(d, s->m), sizeof(double), "the sketch of b", &w->qb));
    return gnomon_alloc(s->ctx, gnomon_times(d, s->m), sizeof(double), "the sketch of b", &w->y);
}

static void release(gnomon_solver *s, workspace *w)
{
    gnomon_free(s->ctx, w->r);
    gnomon_free(s->ctx, w->u);
    gnomon_free(s->ctx, w->qb);
    gnomon_free(s->ctx, w->y);
}

/* In place; d x d. */
static void transpose(int64_t d, double *a)
{
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j < i; j++) {
            const double x = a[i * d + j];
            a[i * d + j] = a[j * d + i];
            a[j * d + i] = x;
        }
    }
}

/* sigma and v of the triangle, and how many singular values count. */
static gnomon_status decompose(gnomon_solver *s, workspace *w)
{
    const int64_t d = s->d;
    bool converged;
    const double tolerance =
        s->options.rcond > 0 ? s->options.rcond : (double)(d > 16 ? d : 16) * 0x1p-52;
    GNOMON_TRY(gnomon_triangle_svd(s->ctx, d, w->r, SPAN, s->sigma, w->u, s->v, &converged));
    GNOMON_FAIL_IF(!converged, s->ctx, GNOMON_ERROR_INTERNAL,
                   "the singular values of the sketch did not converge");
    transpose(d, s->v);
    s->rank = 0;
    for (int64_t i = 0; i < d; i++)
        if (hypot(s->sigma[i], w->lambda) > tolerance * hypot(s->sigma[0], w->lambda)) s->rank++;
    return GNOMON_OK;
}

/* The sketch's solution, and sigma with lambda. */
static void start(gnomon_solver *s, workspace *w)
{
    const int64_t d = s->d, m = s->m;
    gnomon_blas_gemm(true, true, false, d, m, d, 1.0, w->u, d, w->qb, m, 0.0, w->y, m);
    for (int64_t i = 0; i < d; i++) {
        const double sigma = s->sigma[i], above = hypot(sigma, w->lambda);
        for (int64_t j = 0; j < m; j++)
            w->y[i * m + j] = i < s->rank ? w->y[i * m + j] * (sigma / above) / above : 0;
        s->sigma[i] = above;
    }
    gnomon_blas_gemm(true, false, false, d, m, d, 1.0, s->v, d, w->y, m, 0.0, s->x, m);
    gnomon_solver_scale(s, s->x, m);
}

/* r and qb, of sa and sb; lambda is in the triangle or left to sigma. */
static gnomon_status triangle(gnomon_solver *s, workspace *w, int64_t *nonzero)
{
    gnomon_orth_count ways = {0, 0};
    GNOMON_TRY(gnomon_columns_level(s, nonzero));
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->source.passes, -1));
    GNOMON_TRY(gnomon_orthonormalise(s->ctx, &s->sa, w->r, &ways));
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->source.passes, -1));
    GNOMON_TRY(gnomon_tall_cross(s->ctx, &s->sa, &s->sb, w->qb));
    gnomon_tall_drop(s->ctx, &s->sa);
    gnomon_tall_drop(s->ctx, &s->sb);
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->source.passes, -1));
    if (s->columns != NULL && s->lambda > 0)
        GNOMON_TRY(gnomon_columns_lambda(s, w->r, w->qb));
    else
        w->lambda = s->lambda;
    return GNOMON_OK;
}

static gnomon_status factor(gnomon_solver *s, workspace *w)
{
    int64_t nonzero = s->d;
    GNOMON_TRY(allocate(s, w));
    if (s->r != NULL) {
        memcpy(w->r, s->r, (size_t)(s->d * s->d) * sizeof *w->r);
        memcpy(w->qb, s->qb, (size_t)(s->d * s->m) * sizeof *w->qb);
    } else {
        GNOMON_TRY(triangle(s, w, &nonzero));
    }
    GNOMON_TRY(decompose(s, w));
    if (s->columns != NULL && s->rank < nonzero) {
        gnomon_columns_back(s, w->r);
        GNOMON_TRY(decompose(s, w));
    }
    start(s, w);
    s->norm_of_columns = s->norm;
    if (s->columns != NULL) {
        s->norm_of_columns = 0;
        for (int64_t i = 0; i < s->d; i++)
            s->norm_of_columns = hypot(s->norm_of_columns, s->sigma[i]);
        return gnomon_columns_figures(s, w->r);
    }
    if (s->rank > 0) {
        s->largest = s->sigma[0];
        s->least = s->sigma[s->rank - 1];
    }
    return GNOMON_OK;
}

gnomon_status gnomon_solver_precondition(gnomon_solver *s)
{
    workspace w = {0};
    const int64_t count = gnomon_blas_svd_work(s->d);
    GNOMON_FAIL_IF(count > GNOMON_BLAS_MAX, s->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("a") " has %" PRId64
                                   " columns, more than LAPACK counts the workspace for",
                   s->d);
    gnomon_status status = factor(s, &w);
    release(s, &w);
    return status;
}
