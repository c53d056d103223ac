/* Fewer columns of a mode, by the singular values of its unfolding; and the last rotation of the
 * core.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/product.h"
#include "hosvd/work.h"

#include <math.h>

/* Below this share of the whole a sum of squares that a Gram matrix gives has no digits left that
 * count. */
static const double hidden = 1e-10;

static double tail_of(const double *values, int64_t from, int64_t count)
{
    double sum = 0;
    for (int64_t i = count - 1; i >= from; i--)
        sum += values[i];
    return sum;
}

/* core = the tensor as far as it has shrunk, times the transposed basis. */
static gnomon_status multiply(gnomon_hosvd_work *w, int mode, const gnomon_tall *basis,
                              gnomon_cube *core)
{
    gnomon_tall factor[GNOMON_TENSOR_MODES];
    factor[mode] = *basis;
    if (w->core.data == NULL)
        return gnomon_slabs_shrink(&w->x, &mode, 1, factor, w->options.memory, core);
    *core = w->core;
    core->size[mode] = basis->cols;
    GNOMON_TRY(gnomon_cube_make(w->ctx, "the shrunk tensor", core));
    return gnomon_mode_product(w->ctx, &w->core, mode, basis, true, 0.0, core);
}

/* The first 'count' columns of u become the mode's basis, in the basis that it had. */
static gnomon_status change_basis(gnomon_hosvd_work *w, int mode, const double *u, int64_t count)
{
    const int64_t n = gnomon_hosvd_current(w)->size[mode];
    gnomon_tall basis = {0}, product = {0};
    gnomon_cube core = {0};
    double *first = NULL;
    gnomon_status status =
        gnomon_alloc(w->ctx, gnomon_times(n, count), sizeof *first, "a basis", &first);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n * count; i++)
            first[i] = u[i / count * n + i % count];
        status = gnomon_tall_make(w->ctx, w->f64, n, count, false, "a basis", &basis);
    }
    if (status == GNOMON_OK) {
        gnomon_f64_to_type(w->f64, n * count, first, basis.data);
        status = multiply(w, mode, &basis, &core);
    }
    if (status == GNOMON_OK && w->factor[mode].data != NULL) {
        status =
            gnomon_tall_make(w->ctx, w->f64, w->size[mode], count, false, "a factor", &product);
        if (status == GNOMON_OK)
            status = gnomon_tall_multiply_f64(w->ctx, &w->factor[mode], first, &product);
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
    return gnomon_hosvd_replace(w, &core);
}

static gnomon_status cut(gnomon_hosvd_work *w, int mode, int64_t most, double budget,
                         double *values, double *u)
{
    const gnomon_cube *core = w->core.data != NULL ? &w->core : NULL;
    const int64_t n = gnomon_hosvd_current(w)->size[mode];
    const double rounding = (w->f64 ? 0x1p-51 : 0x1p-22) * w->norm; /* four roundoffs */
    bool exact = w->f64 && budget >= 0 && budget < hidden * w->norm * w->norm;
    GNOMON_TRY(gnomon_mode_spectrum(w, core, mode, exact, values, u));
    int64_t rank = most < n ? most : n;
    double tail = tail_of(values, rank, n);
    if (w->f64 && budget < 0 && tail < hidden * tail_of(values, 0, n)) {
        GNOMON_TRY(gnomon_mode_spectrum(w, core, mode, true, values, u));
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
    const int64_t n = gnomon_hosvd_current(w)->size[mode];
    *values = *u = NULL;
    GNOMON_TRY(gnomon_alloc(w->ctx, n, sizeof **values, "a spectrum", values));
    gnomon_status status =
        gnomon_alloc(w->ctx, gnomon_times(n, n), sizeof **u, "a small problem", u);
    if (status != GNOMON_OK) gnomon_free(w->ctx, *values);
    return status;
}

gnomon_status gnomon_hosvd_truncate(gnomon_hosvd_work *w, int mode, int64_t most, double budget)
{
    double *values, *u;
    if (budget < 0 && gnomon_hosvd_current(w)->size[mode] <= most) return GNOMON_OK;
    if (mode == 0) GNOMON_TRY(gnomon_hosvd_materialise(w));
    GNOMON_TRY(room(w, mode, &values, &u));
    gnomon_status status = cut(w, mode, most, budget, values, u);
    gnomon_free(w->ctx, values);
    gnomon_free(w->ctx, u);
    w->out->small_seconds += gnomon_lap(&w->clock);
    return status;
}

/* Where the entry of largest magnitude in a factor's column is negative, the column and the core's
 * slice that belongs to it change sign. */
static gnomon_status fix_signs(gnomon_hosvd_work *w, int mode)
{
    const gnomon_strips s = gnomon_strips_cut(&w->core, mode, 1, 0);
    const int64_t count = w->core.size[mode];
    bool *down = NULL;
    GNOMON_TRY(gnomon_alloc(w->ctx, count, sizeof *down, "signs", &down));
    const gnomon_status status = gnomon_tall_fix_signs(w->ctx, &w->factor[mode], down);
    for (int64_t j = 0; status == GNOMON_OK && j < count; j++) {
        if (!down[j]) continue;
        for (int64_t l = 0; l < s.left; l++) {
            const int64_t at = (l * count + j) * s.right;
            for (int64_t r = at; r < at + s.right; r++) {
                if (w->f64)
                    ((double *)w->core.data)[r] = -((double *)w->core.data)[r];
                else
                    ((float *)w->core.data)[r] = -((float *)w->core.data)[r];
            }
        }
    }
    gnomon_free(w->ctx, down);
    return status;
}

static gnomon_status orthogonalise_mode(gnomon_hosvd_work *w, int mode)
{
    const int64_t n = w->core.size[mode];
    double *values, *u;
    GNOMON_TRY(room(w, mode, &values, &u));
    gnomon_status status = gnomon_mode_spectrum(w, &w->core, mode, w->f64, values, u);
    if (status == GNOMON_OK) status = change_basis(w, mode, u, n);
    gnomon_free(w->ctx, u);
    for (int64_t j = 0; j < n && status == GNOMON_OK; j++)
        values[j] = sqrt(values[j]);
    w->out->values[w->name[mode]] = values; /* freed with the result */
    return status;
}

gnomon_status gnomon_hosvd_orthogonalise_core(gnomon_hosvd_work *w)
{
    GNOMON_TRY(gnomon_hosvd_materialise(w));
    for (int n = 0; n < w->modes; n++)
        GNOMON_TRY(orthogonalise_mode(w, n));
    for (int n = 0; n < w->modes; n++)
        GNOMON_TRY(fix_signs(w, n));
    w->out->small_seconds += gnomon_lap(&w->clock);
    return GNOMON_OK;
}
