/* The singular values of unfoldings that have become small on one side, and the bases they give. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "hosvd/product.h"
#include "hosvd/work.h"
#include "svd/blas.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST = 30000, SLICE = 256 };

/* Below this share of the whole a sum of squares that a Gram matrix gives has no digits left that
 * count. */
static const double hidden = 1e-10;

static gnomon_status by_gram(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *values,
                             double *u)
{
    const int64_t n = c->size[mode];
    int64_t work_count, index_count;
    double *gram = NULL, *work = NULL, *rising = NULL;
    int *index = NULL;
    gnomon_blas_eigen_work(n, &work_count, &index_count);
    gnomon_status status = gnomon_alloc_zero(w->ctx, n * n, sizeof *gram, "a Gram matrix", &gram);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, work_count, sizeof *work, "a small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, n, sizeof *rising, "a spectrum", &rising);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, index_count, sizeof *index, "a small problem", &index);
    if (status == GNOMON_OK) status = gnomon_mode_gram(w->ctx, c, mode, gram);
    if (status == GNOMON_OK &&
        !gnomon_blas_eigen(n, gram, rising, work, work_count, index, index_count))
        status =
            gnomon_fail(w->ctx, GNOMON_ERROR_INTERNAL,
                        "the eigenvalues of mode %d's Gram matrix did not converge", w->name[mode]);
    for (int64_t j = 0; j < n && status == GNOMON_OK; j++) {
        values[j] = rising[n - 1 - j] > 0 ? rising[n - 1 - j] : 0;
        for (int64_t i = 0; i < n; i++)
            u[i * n + j] = gram[(n - 1 - j) * n + i];
    }
    gnomon_free(w->ctx, gram);
    gnomon_free(w->ctx, work);
    gnomon_free(w->ctx, rising);
    gnomon_free(w->ctx, index);
    return status;
}

typedef struct widening {
    gnomon_strips strips;
    const gnomon_cube *cube;
    int mode;
    double *out;
} widening;

static void widen_slice(void *arg, int64_t task, int worker)
{
    (void)worker;
    const widening *g = arg;
    const int64_t col = task * SLICE, rest = g->strips.columns - col;
    gnomon_strip_widen(&g->strips, g->cube, g->mode, col, rest < SLICE ? rest : SLICE,
                       g->out + col * g->cube->size[g->mode]);
}

/* The unfolding's transpose as a tall matrix, zeros below when it has too few rows; its R. */
static gnomon_status triangle(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *r)
{
    const int64_t n = c->size[mode];
    widening g = {gnomon_strips_cut(c, mode, SLICE, 0), c, mode, NULL};
    const int64_t rows = g.strips.columns > n ? g.strips.columns : n;
    gnomon_tall t = {0};
    GNOMON_TRY(
        gnomon_tall_make(w->ctx, true, rows, n, rows > g.strips.columns, "a mode's unfolding", &t));
    g.out = t.data;
    gnomon_parallel(w->ctx, (g.strips.columns + SLICE - 1) / SLICE, widen_slice, &g);
    gnomon_status status = gnomon_orthonormalise(w->ctx, &t, r, &w->orth);
    gnomon_tall_drop(w->ctx, &t);
    return status;
}

static gnomon_status by_qr(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *values,
                           double *u)
{
    const int64_t n = c->size[mode], count = gnomon_blas_svd_work(n);
    double *r = NULL, *turned = NULL, *vt = NULL, *work = NULL;
    int *index = NULL;
    gnomon_status status = gnomon_alloc(w->ctx, n * n, sizeof *r, "a small problem", &r);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, n * n, sizeof *turned, "a small problem", &turned);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, n * n, sizeof *vt, "a small problem", &vt);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, count, sizeof *work, "a small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, 8 * n, sizeof *index, "a small problem", &index);
    if (status == GNOMON_OK) status = triangle(w, c, mode, r);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n * n; i++)
            turned[i] = r[i % n * n + i / n];
        if (!gnomon_blas_svd(n, r, turned, values, u, vt, work, count, index))
            status = gnomon_fail(w->ctx, GNOMON_ERROR_INTERNAL,
                                 "the singular values of mode %d did not converge", w->name[mode]);
    }
    for (int64_t j = 0; j < n && status == GNOMON_OK; j++)
        values[j] *= values[j];
    gnomon_free(w->ctx, r);
    gnomon_free(w->ctx, turned);
    gnomon_free(w->ctx, vt);
    gnomon_free(w->ctx, work);
    gnomon_free(w->ctx, index);
    return status;
}

gnomon_status gnomon_mode_spectrum(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, bool exact,
                                   double *values, double *u)
{
    GNOMON_FAIL_IF(c->size[mode] > MOST, w->ctx, GNOMON_ERROR_UNSUPPORTED,
                   "mode %d has %" PRId64 " columns in its small problem; at most %d are taken",
                   w->name[mode], c->size[mode], (int)MOST);
    return exact ? by_qr(w, c, mode, values, u) : by_gram(w, c, mode, values, u);
}

static double tail_of(const double *values, int64_t from, int64_t count)
{
    double sum = 0;
    for (int64_t i = count - 1; i >= from; i--)
        sum += values[i];
    return sum;
}

/* The first 'count' columns of u become the mode's basis, in the basis that it had. */
static gnomon_status change_basis(gnomon_hosvd_work *w, int mode, const double *u, int64_t count)
{
    const int64_t n = w->core.size[mode];
    gnomon_tall basis = {0}, product = {0};
    gnomon_cube core = w->core;
    double *first = NULL;
    core.data = NULL;
    core.size[mode] = count;
    gnomon_status status = gnomon_alloc(w->ctx, n * count, sizeof *first, "a basis", &first);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n * count; i++)
            first[i] = u[i / count * n + i % count];
        status = gnomon_tall_make(w->ctx, w->wide, n, count, false, "a basis", &basis);
    }
    if (status == GNOMON_OK) {
        gnomon_narrow(w->wide, n * count, first, basis.data);
        status = gnomon_cube_make(w->ctx, "the shrunk tensor", &core);
    }
    if (status == GNOMON_OK)
        status = gnomon_mode_product(w->ctx, &w->core, mode, &basis, true, 0.0, &core);
    if (status == GNOMON_OK && w->factor[mode].data != NULL) {
        status =
            gnomon_tall_make(w->ctx, w->wide, w->size[mode], count, false, "a factor", &product);
        if (status == GNOMON_OK)
            status = gnomon_tall_multiply_wide(w->ctx, &w->factor[mode], first, &product);
        gnomon_tall_drop(w->ctx, &basis);
        basis = product;
    }
    gnomon_free(w->ctx, first);
    if (status != GNOMON_OK) {
        gnomon_tall_drop(w->ctx, &basis);
        gnomon_cube_drop(w->ctx, &core);
        return status;
    }
    gnomon_tall_drop(w->ctx, &w->factor[mode]);
    w->factor[mode] = basis;
    return gnomon_hosvd_take(w, &core);
}

static gnomon_status cut(gnomon_hosvd_work *w, int mode, int64_t most, double budget,
                         double *values, double *u)
{
    const int64_t n = w->core.size[mode];
    const double rounding = (w->wide ? 0x1p-51 : 0x1p-22) * w->norm; /* four roundoffs */
    bool exact = w->wide && budget >= 0 && budget < hidden * w->norm * w->norm;
    GNOMON_TRY(gnomon_mode_spectrum(w, &w->core, mode, exact, values, u));
    int64_t rank = most < n ? most : n;
    double tail = tail_of(values, rank, n);
    if (w->wide && budget < 0 && tail < hidden * tail_of(values, 0, n)) {
        GNOMON_TRY(gnomon_mode_spectrum(w, &w->core, mode, true, values, u));
        tail = tail_of(values, rank, n);
    }
    if (budget >= 0) {
        /* What is below rounding costs nothing. */
        const double limit = fmax(budget, rounding * rounding);
        while (rank > 1 && tail + values[rank - 1] <= limit)
            tail += values[--rank];
    }
    w->spent += tail;
    return rank < n ? change_basis(w, mode, u, rank) : GNOMON_OK;
}

static gnomon_status room(gnomon_hosvd_work *w, int mode, double **values, double **u)
{
    const int64_t n = w->core.size[mode];
    *values = *u = NULL;
    GNOMON_TRY(gnomon_alloc(w->ctx, n, sizeof **values, "a spectrum", values));
    gnomon_status status = gnomon_alloc(w->ctx, n * n, sizeof **u, "a small problem", u);
    if (status != GNOMON_OK) gnomon_free(w->ctx, *values);
    return status;
}

gnomon_status gnomon_hosvd_truncate(gnomon_hosvd_work *w, int mode, int64_t most, double budget)
{
    double *values, *u;
    if (budget < 0 && w->core.size[mode] <= most) return GNOMON_OK;
    GNOMON_TRY(room(w, mode, &values, &u));
    gnomon_status status = cut(w, mode, most, budget, values, u);
    gnomon_free(w->ctx, values);
    gnomon_free(w->ctx, u);
    w->out->small_seconds += gnomon_hosvd_lap(w);
    return status;
}

/* Where the entry of largest magnitude in a factor's column is negative, the column and the core's
 * slice that belongs to it turn round. */
static void settle_signs(gnomon_hosvd_work *w, int mode)
{
    const gnomon_strips s = gnomon_strips_cut(&w->core, mode, SLICE, 0);
    const int64_t count = w->core.size[mode];
    for (int64_t j = 0; j < count; j++) {
        if (!gnomon_tall_settle_sign(&w->factor[mode], j)) continue;
        for (int64_t l = 0; l < s.left; l++) {
            const int64_t at = (l * count + j) * s.right;
            for (int64_t r = at; r < at + s.right; r++) {
                if (w->wide)
                    ((double *)w->core.data)[r] = -((double *)w->core.data)[r];
                else
                    ((float *)w->core.data)[r] = -((float *)w->core.data)[r];
            }
        }
    }
}

static gnomon_status turn_mode(gnomon_hosvd_work *w, int mode)
{
    const int64_t n = w->core.size[mode];
    double *values, *u;
    GNOMON_TRY(room(w, mode, &values, &u));
    gnomon_status status = gnomon_mode_spectrum(w, &w->core, mode, w->wide, values, u);
    if (status == GNOMON_OK) status = change_basis(w, mode, u, n);
    gnomon_free(w->ctx, u);
    for (int64_t j = 0; j < n && status == GNOMON_OK; j++)
        values[j] = sqrt(values[j]);
    w->out->values[w->name[mode]] = values; /* freed with the result */
    return status;
}

gnomon_status gnomon_hosvd_turn(gnomon_hosvd_work *w)
{
    for (int n = 0; n < w->modes; n++)
        GNOMON_TRY(turn_mode(w, n));
    for (int n = 0; n < w->modes; n++)
        settle_signs(w, n);
    w->out->small_seconds += gnomon_hosvd_lap(w);
    return GNOMON_OK;
}
