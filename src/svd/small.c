/* From A ~ Q B to singular values and vectors: B B^T or, of B^T = P R, the s x s matrix R^T by
 * LAPACK in fp64, and its vectors multiplied back. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "linalg/spectrum.h"
#include "svd/factor.h"

#include <math.h>
#include <string.h>

int64_t gnomon_choose_rank(gnomon_factor *f, int64_t columns)
{
    const gnomon_svd_options *o = &f->options;
    if (o->tolerance == 0) return o->rank < columns ? o->rank : columns;
    const int64_t most = o->rank < columns ? o->rank : columns;
    const double wanted = o->tolerance * f->source.norm;
    double tail = 0;
    for (int64_t i = most; i < columns; i++)
        tail += f->s[i] * f->s[i];
    /* Sums of squares, no differences: what Q leaves and what is cut are orthogonal. */
    double reached = sqrt(f->rest * f->rest + tail);
    f->out->converged = reached <= wanted;
    /* What can't be reached is left as small as it can be: only values that are rounding go. */
    const double u = f->f64 ? 0x1p-53 : 0x1p-24;
    const int64_t longer = f->source.rows > f->source.cols ? f->source.rows : f->source.cols;
    const double least = f->out->converged ? INFINITY : u * (double)longer * f->s[0];
    const double limit = f->out->converged ? wanted : 1.01 * reached;
    int64_t rank = most;
    while (rank > 0) {
        tail += f->s[rank - 1] * f->s[rank - 1];
        if (f->s[rank - 1] > least || sqrt(f->rest * f->rest + tail) > limit) break;
        rank--;
    }
    rank = rank > 0 ? rank : 1;
    if (!f->source.sparse || f->rounding > 0) {
        tail = 0;
        for (int64_t i = rank; i < columns; i++)
            tail += f->s[i] * f->s[i];
        const double left = fmax(f->rest * f->rest - f->rounding, 0) + tail;
        /* Nearer to rounding the difference of squares tells nothing. */
        if (left >= 64 * f->rounding) f->out->residual = sqrt(left);
    }
    return rank;
}

/* The smallest singular value beside the largest of a B in single precision whose Gram matrix,
 * summed in fp64, still tells more than B's own rounding leaves. */
#define SPAN 0x1p-14

typedef struct workspace {
    double *r, *m, *u, *vt;
} workspace;

/* How P's rows are to be had for vt's: P is in B^T's place, or P = B^T r^-1, or vt has been divided
 * by r already. */
typedef enum basis { HELD, IMPLIED, DIVIDED } basis;

static gnomon_status allocate(gnomon_context *ctx, int64_t n, workspace *w)
{
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(n, n), sizeof(double), "the small problem", &w->r));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(n, n), sizeof(double), "the small problem", &w->m));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(n, n), sizeof(double), "the small problem", &w->u));
    return gnomon_alloc(ctx, gnomon_times(n, n), sizeof(double), "the small problem", &w->vt);
}

static void release(gnomon_context *ctx, workspace *w)
{
    gnomon_free(ctx, w->r);
    gnomon_free(ctx, w->m);
    gnomon_free(ctx, w->u);
    gnomon_free(ctx, w->vt);
}

/* m (n x rank) = the first columns of x, or of its transpose, those with the other sign that 'down'
 * (may be NULL) names. */
static void gather(int64_t n, int64_t rank, bool transposed, const double *x, const bool *down,
                   double *m)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < rank; j++) {
            const double value = transposed ? x[j * n + i] : x[i * n + j];
            m[i * rank + j] = down != NULL && down[j] ? -value : value;
        }
    }
}

/* v = P (vt's first rows)^T, u = Q (u's first columns), or the other way round when the
 * transpose is factored, with the signs fixed. */
static gnomon_status multiply_back(gnomon_factor *f, int64_t n, int64_t rank, basis p, workspace *w)
{
    gnomon_context *ctx = f->ctx;
    gnomon_tall *right = f->of_transpose ? &f->q : &f->bt, *left = f->of_transpose ? &f->bt : &f->q;
    double *gathered = w->m; /* its numbers are read by now */
    bool *down = NULL;
    /* B^T r^-1 vt^T without making P: the rows of vt are divided instead. */
    if (p == IMPLIED) gnomon_blas_divide_rows(n, rank, w->r, w->vt);
    gather(n, rank, !f->of_transpose, f->of_transpose ? w->u : w->vt, NULL, gathered);
    GNOMON_TRY(gnomon_tall_make(ctx, f->f64, f->source.cols, rank, false, "right vectors", &f->v));
    GNOMON_TRY(gnomon_tall_multiply_f64(ctx, right, gathered, &f->v));
    gnomon_tall_drop(ctx, right);
    GNOMON_TRY(gnomon_alloc(ctx, rank, sizeof *down, "signs", &down));
    gnomon_status status = gnomon_tall_fix_signs(ctx, &f->v, down);
    if (status == GNOMON_OK)
        gather(n, rank, f->of_transpose, f->of_transpose ? w->vt : w->u, down, gathered);
    gnomon_free(ctx, down);
    GNOMON_TRY(status);
    GNOMON_TRY(gnomon_tall_make(ctx, f->f64, f->source.rows, rank, false, "left vectors", &f->u));
    GNOMON_TRY(gnomon_tall_multiply_f64(ctx, left, gathered, &f->u));
    gnomon_tall_drop(ctx, left);
    return GNOMON_OK;
}

/* B^T = P R in double precision: the rounding of single precision would show where the singular
 * values fall below it. Of single-precision B^T only R is made, from its Gram matrix, which goes to
 * w->m too, and that is as good while its condition is moderate; else P is in bt's place. */
static gnomon_status factor_bt(gnomon_factor *f, workspace *w, basis *p)
{
    gnomon_tall wide;
    bool implied = false;
    *p = HELD;
    if (f->bt.f64) return gnomon_orthonormalise(f->ctx, &f->bt, w->r, &f->orth);
    GNOMON_TRY(gnomon_triangle(f->ctx, &f->bt, SPAN, w->r, w->m, &implied));
    if (implied) {
        *p = IMPLIED;
        f->orth.cholesky++;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_tall_make(f->ctx, true, f->bt.rows, f->bt.cols, false, "the projected matrix",
                                &wide));
    gnomon_tall_convert(f->ctx, &f->bt, &wide);
    gnomon_tall_drop(f->ctx, &f->bt);
    f->bt = wide;
    return gnomon_orthonormalise(f->ctx, &f->bt, w->r, &f->orth);
}

/* B B^T, in w->m, is U S^2 U^T: R, which comes of it, would tell no more in twice the time. The
 * right vectors are B^T U / S. */
static gnomon_status by_gram(gnomon_factor *f, int64_t n, workspace *w, basis *p)
{
    bool told;
    GNOMON_TRY(gnomon_gram_spectrum(f->ctx, n, SPAN, w->m, f->s, &told));
    if (!told) return GNOMON_OK;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            w->u[j * n + i] = w->m[i * n + j];
            w->vt[i * n + j] = w->m[i * n + j] / f->s[i];
        }
    }
    *p = DIVIDED;
    return GNOMON_OK;
}

/* R^T, by its own decomposition. */
static gnomon_status by_triangle(gnomon_factor *f, int64_t n, workspace *w)
{
    bool converged;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            w->m[i * n + j] = w->r[j * n + i];
    }
    GNOMON_TRY(gnomon_square_svd(f->ctx, n, w->m, f->s, w->u, w->vt, &converged));
    GNOMON_FAIL_IF(!converged, f->ctx, GNOMON_ERROR_INTERNAL,
                   "the singular values of the %lld x %lld problem did not converge", (long long)n,
                   (long long)n);
    return GNOMON_OK;
}

static gnomon_status solve(gnomon_factor *f, int64_t n, workspace *w)
{
    basis p;
    GNOMON_TRY(factor_bt(f, w, &p));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    if (p == IMPLIED) GNOMON_TRY(by_gram(f, n, w, &p));
    if (p != DIVIDED) GNOMON_TRY(by_triangle(f, n, w));
    f->out->rank = gnomon_choose_rank(f, n);
    gnomon_status status = multiply_back(f, n, f->out->rank, p, w);
    f->out->small_seconds += gnomon_lap(&f->clock);
    return status;
}

gnomon_status gnomon_small_svd(gnomon_factor *f)
{
    const int64_t n = f->q.cols;
    workspace w;
    memset(&w, 0, sizeof w);
    gnomon_status status = gnomon_alloc(f->ctx, n, sizeof *f->s, "singular values", &f->s);
    if (status == GNOMON_OK) status = allocate(f->ctx, n, &w);
    if (status == GNOMON_OK) status = solve(f, n, &w);
    release(f->ctx, &w);
    return status;
}
