/* What the projections of a mode share. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/work.h"
#include "linalg/spectrum.h"

#include <math.h>

int64_t gnomon_range_columns(const gnomon_slabs *x, int mode)
{
    int64_t columns = 1;
    for (int n = 0; n < x->modes; n++)
        if (n != mode) columns *= x->size[n];
    return columns;
}

gnomon_status gnomon_range_operator(gnomon_hosvd_work *w, const gnomon_slabs *x, int mode,
                                    int64_t columns, gnomon_operator **op)
{
    gnomon_descriptor d = w->descriptor;
    d.k = columns;
    d.d = gnomon_range_columns(x, mode);
    d.seed += (uint64_t)w->name[mode];
    gnomon_status status = gnomon_operator_create(w->ctx, &d, op);
    return status == GNOMON_OK
               ? status
               : gnomon_fail_prefix(w->ctx, status, "the projection of mode %d", w->name[mode]);
}

/* Whether the lengths of q^T A in the basis that a sketch's singular values s tell will do. The
 * sketch is A's rows in that basis times a random matrix, so what it tells is wrong by up to the
 * random matrix's condition; sums in the work's type then hide what is shorter than so many
 * roundoffs. Values that are roundoff themselves do not count. */
static bool tells_enough(const gnomon_hosvd_work *w, int64_t n, const double *s)
{
    const double round = w->f64 ? 0x1p-51 : 0x1p-22;
    int64_t count = 1;
    while (count < n && s[count] > 4 * round * s[0])
        count++;
    const double all = sqrt((double)n), some = sqrt((double)count);
    const double condition = count < n ? (all + some) / (all - some) : 10.0 * (double)n;
    return condition * round * s[0] <= 0x1p-5 * s[count - 1];
}

/* r = U S V^T: s and u (n x n). */
static gnomon_status spectrum_of(gnomon_hosvd_work *w, int mode, int64_t n, const double *r,
                                 double *s, double *u)
{
    bool converged = false;
    double *vt = NULL;
    gnomon_status status =
        gnomon_alloc(w->ctx, gnomon_times(n, n), sizeof *vt, "a small problem", &vt);
    if (status == GNOMON_OK) status = gnomon_square_svd(w->ctx, n, r, s, u, vt, &converged);
    if (status == GNOMON_OK && !converged)
        status =
            gnomon_fail(w->ctx, GNOMON_ERROR_INTERNAL,
                        "the singular values of mode %d's range did not converge", w->name[mode]);
    gnomon_free(w->ctx, vt);
    return status;
}

/* The same of q^T A itself, by one more pass. */
static gnomon_status spectrum_of_product(gnomon_hosvd_work *w, gnomon_slabs *x, int mode,
                                         const gnomon_tall *q, double *s, double *u)
{
    gnomon_tall factor[GNOMON_TENSOR_MODES];
    gnomon_cube b = {0};
    factor[mode] = *q;
    GNOMON_TRY(gnomon_slabs_shrink(x, &mode, 1, factor, w->options.memory, &b));
    const gnomon_status status = gnomon_mode_spectrum(w, &b, mode, false, s, u);
    for (int64_t j = 0; j < q->cols && status == GNOMON_OK; j++)
        s[j] = sqrt(s[j]);
    gnomon_cube_drop(w->ctx, &b);
    return status;
}

/* f = q U / S, for which the rows of f^T A are of nearly equal lengths. Those beyond rounding stay
 * short. s and u: room for n and n x n. */
static gnomon_status even_out(gnomon_hosvd_work *w, gnomon_slabs *x, int mode, const gnomon_tall *q,
                              const double *r, double *s, double *u, const gnomon_tall *f)
{
    const int64_t n = q->cols;
    GNOMON_TRY(spectrum_of(w, mode, n, r, s, u));
    if (!tells_enough(w, n, s)) GNOMON_TRY(spectrum_of_product(w, x, mode, q, s, u));
    const double least = w->f64 ? 0x1p-24 : 0x1p-20;
    for (int64_t j = 0; j < n && s[0] > 0; j++) {
        const double length = fmax(s[j] / s[0], least);
        for (int64_t i = 0; i < n; i++)
            u[i * n + j] /= length;
    }
    return gnomon_tall_multiply_f64(w->ctx, q, u, f);
}

/* w = A A^T f. Of the outermost mode a slab has a part, so A^T f is stored. */
static gnomon_status multiply(gnomon_hosvd_work *w, gnomon_slabs *x, int mode, const gnomon_tall *f,
                              const gnomon_tall *y)
{
    if (mode > 0) return gnomon_slabs_shrunk_cross(x, mode, f, y);
    gnomon_tall factor[GNOMON_TENSOR_MODES];
    gnomon_cube b = {0};
    factor[mode] = *f;
    GNOMON_TRY(gnomon_slabs_shrink(x, &mode, 1, factor, w->options.memory, &b));
    const gnomon_status status = gnomon_slabs_cross(x, mode, &b, y);
    gnomon_cube_drop(w->ctx, &b);
    return status;
}

gnomon_status gnomon_range_power(gnomon_hosvd_work *w, gnomon_slabs *x, int mode,
                                 const gnomon_tall *y, const double *r)
{
    const int64_t n = y->cols;
    gnomon_tall f = {0};
    double *s = NULL, *u = NULL;
    w->out->orthonormalise_seconds += gnomon_lap(&w->clock);
    gnomon_status status = gnomon_alloc(w->ctx, n, sizeof *s, "a spectrum", &s);
    if (status == GNOMON_OK)
        status = gnomon_alloc(w->ctx, gnomon_times(n, n), sizeof *u, "a small problem", &u);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(w->ctx, w->f64, y->rows, n, false, "a mode's range", &f);
    if (status == GNOMON_OK) status = even_out(w, x, mode, y, r, s, u, &f);
    if (status == GNOMON_OK) status = multiply(w, x, mode, &f, y);
    gnomon_tall_drop(w->ctx, &f);
    gnomon_free(w->ctx, s);
    gnomon_free(w->ctx, u);
    w->out->power_seconds += gnomon_lap(&w->clock);
    return status;
}
