/* The singular values of an unfolding that has few rows, and their vectors. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "hosvd/product.h"
#include "hosvd/slab_pass.h"
#include "hosvd/work.h"
#include "linalg/blas.h"

#include <inttypes.h>
#include <string.h>

enum { MOST = 30000, SLICE = 256 };

static gnomon_status shape_gram(gnomon_slab_pass *p)
{
    const int64_t n = p->x->size[p->mode];
    p->numbers = gnomon_times(n, n);
    p->sums_f64 = true;
    return GNOMON_OK;
}

static gnomon_status add_gram(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    if (slab->first) memset(result, 0, (size_t)p->numbers * sizeof(double));
    return gnomon_mode_gram(p->x->source.ctx, &slab->cube, p->mode, result);
}

const gnomon_slab_step gnomon_step_gram = {
    .kind = GNOMON_STEP_TENSOR_GRAM, .shape = shape_gram, .add = add_gram};

/* gram is 0. */
static gnomon_status add_grams(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *gram)
{
    gnomon_slab_pass p = {.x = &w->x, .kind = GNOMON_STEP_TENSOR_GRAM, .mode = mode, .out = gram};
    return c != NULL ? gnomon_mode_gram(w->ctx, c, mode, gram) : gnomon_slab_pass_run(&p);
}

static gnomon_status by_gram(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, int64_t n,
                             double *values, double *u)
{
    int64_t work_count, index_count;
    double *gram = NULL, *work = NULL, *rising = NULL;
    int *index = NULL;
    gnomon_blas_eigen_work(n, &work_count, &index_count);
    gnomon_status status =
        gnomon_alloc_zero(w->ctx, gnomon_times(n, n), sizeof *gram, "a Gram matrix", &gram);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, work_count, sizeof *work, "a small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, n, sizeof *rising, "a spectrum", &rising);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, index_count, sizeof *index, "a small problem", &index);
    if (status == GNOMON_OK) status = add_grams(w, c, mode, gram);
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

typedef struct conversion {
    gnomon_strips strips;
    const gnomon_cube *cube;
    int mode;
    double *out;
} conversion;

static void slice_to_f64(void *arg, int64_t task, int worker)
{
    (void)worker;
    const conversion *g = arg;
    const int64_t col = task * SLICE, rest = g->strips.columns - col;
    gnomon_strip_to_f64(&g->strips, g->cube, g->mode, col, rest < SLICE ? rest : SLICE,
                        g->out + col * g->cube->size[g->mode]);
}

/* r = the R of r with the unfolding's transpose below it. */
static gnomon_status add_triangle(gnomon_context *ctx, const gnomon_cube *c, int mode, double *r,
                                  gnomon_orth_count *count)
{
    const int64_t n = c->size[mode];
    conversion g = {gnomon_strips_cut(c, mode, SLICE, 0), c, mode, NULL};
    gnomon_tall t = {0};
    GNOMON_TRY(
        gnomon_tall_make(ctx, true, n + g.strips.columns, n, false, "a mode's unfolding", &t));
    memcpy(t.data, r, (size_t)(n * n) * sizeof *r);
    g.out = (double *)t.data + n * n;
    gnomon_parallel(ctx, (g.strips.columns + SLICE - 1) / SLICE, slice_to_f64, &g);
    gnomon_status status = gnomon_orthonormalise(ctx, &t, r, count);
    gnomon_tall_drop(ctx, &t);
    return status;
}

/* Of a segment: the triangle, and then how it was orthonormalised, which is told of all. */
static gnomon_status shape_triangle(gnomon_slab_pass *p)
{
    const int64_t n = p->x->size[p->mode];
    p->numbers = gnomon_plus(gnomon_times(n, n), sizeof(gnomon_orth_count) / sizeof(double));
    p->sums_f64 = true;
    return GNOMON_OK;
}

static gnomon_orth_count *count_behind(int64_t n, void *triangle)
{
    return (gnomon_orth_count *)(void *)((double *)triangle + n * n);
}

static gnomon_status add_to_triangle(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    const int64_t n = p->x->size[p->mode];
    if (slab->first) memset(result, 0, (size_t)p->numbers * sizeof(double));
    return add_triangle(p->x->source.ctx, &slab->cube, p->mode, result, count_behind(n, result));
}

/* r = the R of r with that of the segment below it. */
static gnomon_status join_triangle(gnomon_slab_pass *p, int64_t row, int64_t rows,
                                   const void *result, bool own)
{
    gnomon_context *ctx = p->x->source.ctx;
    const int64_t n = p->x->size[p->mode];
    double *r = p->out;
    gnomon_orth_count *const count = count_behind(n, r), theirs;
    gnomon_tall t = {0};
    (void)row;
    (void)rows;
    (void)own;
    memcpy(&theirs, (const double *)result + n * n, sizeof theirs);
    count->cholesky += theirs.cholesky;
    count->householder += theirs.householder;
    GNOMON_TRY(gnomon_tall_make(ctx, true, 2 * n, n, false, "two triangles", &t));
    memcpy(t.data, r, (size_t)(n * n) * sizeof *r);
    memcpy(gnomon_tall_row(&t, n), result, (size_t)(n * n) * sizeof *r);
    gnomon_status status = gnomon_orthonormalise(ctx, &t, r, count);
    gnomon_tall_drop(ctx, &t);
    return status;
}

const gnomon_slab_step gnomon_step_triangle = {.kind = GNOMON_STEP_TENSOR_TRIANGLE,
                                               .shape = shape_triangle,
                                               .add = add_to_triangle,
                                               .take = join_triangle};

/* r: n x n zeros, and room for the count. */
static gnomon_status add_triangles(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *r)
{
    gnomon_slab_pass p = {.x = &w->x, .kind = GNOMON_STEP_TENSOR_TRIANGLE, .mode = mode, .out = r};
    if (c != NULL) return add_triangle(w->ctx, c, mode, r, &w->orth);
    GNOMON_TRY(gnomon_slab_pass_run(&p));
    const gnomon_orth_count *count = count_behind(w->x.size[mode], r);
    w->orth.cholesky += count->cholesky;
    w->orth.householder += count->householder;
    return GNOMON_OK;
}

static gnomon_status by_qr(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, int64_t n,
                           double *values, double *u)
{
    const int64_t count = gnomon_blas_svd_work(n);
    double *r = NULL, *r_transposed = NULL, *vt = NULL, *work = NULL;
    int *index = NULL;
    const int64_t room = gnomon_plus(gnomon_times(n, n), sizeof(gnomon_orth_count) / sizeof *r);
    gnomon_status status = gnomon_alloc_zero(w->ctx, room, sizeof *r, "a small problem", &r);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, gnomon_times(n, n), sizeof *r_transposed, "a small problem",
                              &r_transposed);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, gnomon_times(n, n), sizeof *vt, "a small problem", &vt);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, count, sizeof *work, "a small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, gnomon_times(8, n), sizeof *index, "a small problem", &index);
    if (status == GNOMON_OK) status = add_triangles(w, c, mode, r);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n * n; i++)
            r_transposed[i] = r[i % n * n + i / n];
        if (!gnomon_blas_svd(n, r, r_transposed, values, u, vt, work, count, index))
            status = gnomon_fail(w->ctx, GNOMON_ERROR_INTERNAL,
                                 "the singular values of mode %d did not converge", w->name[mode]);
    }
    for (int64_t j = 0; j < n && status == GNOMON_OK; j++)
        values[j] *= values[j];
    gnomon_free(w->ctx, r);
    gnomon_free(w->ctx, r_transposed);
    gnomon_free(w->ctx, vt);
    gnomon_free(w->ctx, work);
    gnomon_free(w->ctx, index);
    return status;
}

gnomon_status gnomon_mode_spectrum(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, bool exact,
                                   double *values, double *u)
{
    const int64_t n = c != NULL ? c->size[mode] : w->x.size[mode];
    GNOMON_FAIL_IF(n > MOST, w->ctx, GNOMON_ERROR_UNSUPPORTED,
                   "mode %d has %" PRId64 " columns in its small problem; at most %d are taken",
                   w->name[mode], n, (int)MOST);
    return exact ? by_qr(w, c, mode, n, values, u) : by_gram(w, c, mode, n, values, u);
}
