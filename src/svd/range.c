/* A fixed number of columns: Halko, Martinsson & Tropp 2011, algorithms 4.3 and 4.4, and from two
 * power iterations on with shifts (Feng, Yu, Xie & Tang 2024), ending on the side of A's columns.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "svd/factor.h"

#include <string.h>

/* The adjoint of orthonormal columns spans about as much as they did before: where that is less
 * than this, it goes into the next product as it is, which then spans its square, and rounding in
 * single precision stays below 2^-8 of the shortest direction. */
#define TAME 0x1p-8

/* From so many columns on the product with a gaussian operator costs about as much as each of the
 * others. */
enum { MANY = 64 };

/* The shift over l, the least squared singular value of A Z, which is at most the s-th one of A.
 * All iterations together must not put a direction whose sigma^2 is x l, x < 1, before one that is
 * kept, x >= 1. The first, unshifted, and the second make it |x (3/4 - x)|, at most 9/64 below 1
 * and at least 1/4 from 1 on; what a later one makes of it, |1/2 - x|, is at most 1/2 below 1. */
static double share(int iteration)
{
    return iteration == 1 ? 0.75 : 0.5;
}

/* z = -shift z r^-1, what is to be added to A^T q; q r = A z. Zero when no shift can be had. */
static gnomon_status begin_shifted(gnomon_factor *f, const gnomon_tall *z, double part, double *r)
{
    const int64_t n = z->cols;
    double *work = NULL, most = 0;
    GNOMON_TRY(gnomon_alloc(f->ctx, n, sizeof *work, "singular vectors", &work));
    for (int64_t i = 0; i < n; i++)
        most = r[i * n + i] > most ? r[i * n + i] : most;
    const double scale = -1 / (part * gnomon_least_square(n, r, work) * most) / most;
    gnomon_free(f->ctx, work);
    if (!(-scale * most < (f->wide ? 1e290 : 1e36))) {
        memset(z->data, 0, (size_t)(z->rows * n) * gnomon_tall_size(z->wide));
        return GNOMON_OK;
    }
    for (int64_t i = 0; i < n * n; i++)
        r[i] *= scale;
    return gnomon_tall_divide(f->ctx, z, r);
}

/* z = (A^T A - shift) z, for any basis of what that spans; the shift 0 in the first iteration,
 * which has y = A S^T. r: scratch. */
static gnomon_status shifted_step(gnomon_factor *f, int iteration, const gnomon_tall *y,
                                  const gnomon_tall *z, double *r)
{
    double span;
    if (iteration > 0) {
        GNOMON_TRY(gnomon_condition(f->ctx, z, NULL, NULL, &f->orth));
        f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
        GNOMON_TRY(gnomon_feed_apply(&f->source, z, y));
        f->out->power_seconds += gnomon_lap(&f->clock);
    }
    GNOMON_TRY(gnomon_condition(f->ctx, y, &span, r, &f->orth));
    const bool shifted = iteration > 0 && span > 0;
    if (shifted) GNOMON_TRY(begin_shifted(f, z, share(iteration), r));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(shifted ? gnomon_feed_add_adjoint(&f->source, y, z)
                       : gnomon_feed_adjoint(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

/* y has A S^T. In the end z is orthonormal and y = A z. */
static gnomon_status iterate_shifted(gnomon_factor *f, const gnomon_tall *y, const gnomon_tall *z)
{
    double *r = NULL;
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(f->ctx, z->cols * z->cols, sizeof *r, "a triangle", &r));
    for (int i = 0; i < f->options.power && status == GNOMON_OK; i++)
        status = shifted_step(f, i, y, z, r);
    gnomon_free(f->ctx, r);
    GNOMON_TRY(status);
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, z, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_feed_apply_closely(&f->source, z, y));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

/* y has A S^T. In the end it is orthonormal and z = A^T y. */
static gnomon_status iterate(gnomon_factor *f, const gnomon_tall *y, const gnomon_tall *z)
{
    if (f->options.power > 0) {
        double span;
        GNOMON_TRY(gnomon_condition(f->ctx, y, &span, NULL, &f->orth));
        f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
        GNOMON_TRY(gnomon_feed_adjoint(&f->source, y, z));
        f->out->power_seconds += gnomon_lap(&f->clock);
        if (span < TAME) GNOMON_TRY(gnomon_condition(f->ctx, z, NULL, NULL, &f->orth));
        f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
        GNOMON_TRY(gnomon_feed_apply(&f->source, z, y));
        f->out->power_seconds += gnomon_lap(&f->clock);
    }
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, y, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_feed_adjoint_closely(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

gnomon_status gnomon_range_fixed(gnomon_factor *f)
{
    const int64_t columns = gnomon_factor_columns(f);
    f->turned = f->options.power > 1;
    gnomon_tall *y = f->turned ? &f->bt : &f->q, *z = f->turned ? &f->q : &f->bt;
    GNOMON_TRY(gnomon_factor_operator(f, columns, f->turned && columns >= MANY));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->wide, f->source.rows, columns, false, "the range", y));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->wide, f->source.cols, columns, false,
                                "the projected matrix", z));
    GNOMON_TRY(gnomon_feed_sketch(&f->source, f->op, 0, y));
    f->out->project_seconds += gnomon_lap(&f->clock);
    return f->turned ? iterate_shifted(f, y, z) : iterate(f, y, z);
}
