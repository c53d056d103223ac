/* The singular values of an unfolding that has few rows, and their vectors. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "hosvd/product.h"
#include "hosvd/work.h"
#include "linalg/blas.h"

#include <inttypes.h>
#include <string.h>

enum { MOST = 30000, SLICE = 256 };

static gnomon_status add_grams(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *gram)
{
    gnomon_cube slab;
    int64_t first;
    if (c != NULL) return gnomon_mode_gram(w->ctx, c, mode, gram);
    GNOMON_TRY(gnomon_slabs_rewind(&w->x));
    for (;;) {
        GNOMON_TRY(gnomon_slabs_next(&w->x, &slab, &first));
        if (slab.size[0] == 0) return GNOMON_OK;
        GNOMON_TRY(gnomon_mode_gram(w->ctx, &slab, mode, gram));
    }
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
static gnomon_status add_triangle(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *r)
{
    const int64_t n = c->size[mode];
    conversion g = {gnomon_strips_cut(c, mode, SLICE, 0), c, mode, NULL};
    gnomon_tall t = {0};
    GNOMON_TRY(
        gnomon_tall_make(w->ctx, true, n + g.strips.columns, n, false, "a mode's unfolding", &t));
    memcpy(t.data, r, (size_t)(n * n) * sizeof *r);
    g.out = (double *)t.data + n * n;
    gnomon_parallel(w->ctx, (g.strips.columns + SLICE - 1) / SLICE, slice_to_f64, &g);
    gnomon_status status = gnomon_orthonormalise(w->ctx, &t, r, &w->orth);
    gnomon_tall_drop(w->ctx, &t);
    return status;
}

static gnomon_status add_triangles(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, double *r)
{
    gnomon_cube slab;
    int64_t first;
    if (c != NULL) return add_triangle(w, c, mode, r);
    GNOMON_TRY(gnomon_slabs_rewind(&w->x));
    for (;;) {
        GNOMON_TRY(gnomon_slabs_next(&w->x, &slab, &first));
        if (slab.size[0] == 0) return GNOMON_OK;
        GNOMON_TRY(add_triangle(w, &slab, mode, r));
    }
}

static gnomon_status by_qr(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, int64_t n,
                           double *values, double *u)
{
    const int64_t count = gnomon_blas_svd_work(n);
    double *r = NULL, *r_transposed = NULL, *vt = NULL, *work = NULL;
    int *index = NULL;
    gnomon_status status =
        gnomon_alloc_zero(w->ctx, gnomon_times(n, n), sizeof *r, "a small problem", &r);
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
