/* A fixed number of columns: Halko, Martinsson & Tropp 2011, algorithms 4.3 and 4.4, and from two
 * power iterations on with shifts (Feng, Yu, Xie & Tang 2024), ending on the side of A's columns.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "svd/factor.h"

#include <math.h>
#include <string.h>

/* The adjoint of orthonormal columns spans about as much as they did before: where that is less
 * than this, it goes into the next product as it is, which then spans its square, and rounding in
 * single precision stays below 2^-8 of the shortest direction. Products of columns that span no
 * more may be coarse (gemm/coarse.h): what they lose of the matrix, 2^-17, stays below that too. Of
 * the columns they take other ones, at most 2^-8 of their length away: as far as that lies in the
 * span of the wanted directions nothing is lost, and the rest the product makes as short as all
 * that is not wanted. */
#define TAME 0x1p-8

/* The same of products before the last one with A^T, the last iteration's with A among them: it is
 * enough that no direction is lost, since that one makes what is off by rounding as much shorter as
 * all that is not wanted. */
#define TAME_EARLY 0x1p-15

/* From so many columns on the product with a gaussian operator costs about as much as each of the
 * others. */
enum { MANY = 64 };

/* p(x) = x (x - t_1) ... is what q iterations multiply a direction by, x = sigma^2 / l, where l is
 * the least squared singular value of A Z, at most the s-th one of A. Its zeros are those of the
 * Chebyshev polynomial of degree q over [a, 1], with a such that the first zero is 0, which is what
 * the first iteration, unshifted, has; each is lowered by the same share, so that p grows well
 * before 1: p(1) is 1/4 and at most 9/64 below for q = 2. So no direction with x < 1 comes
 * before one with x >= 1. l grows from iteration to iteration, so the zeros in the middle come
 * first and the ones at the ends, where it matters what l is, last. */
double gnomon_shift_share(int power, int iteration)
{
    const double pi = acos(-1.0), c = cos(0.5 * pi / power);
    const double lowered = 0.75 * (1 + cos(0.25 * pi)) / (2 * cos(0.25 * pi));
    /* Nodes 1 ... q - 1, falling, from the middle one outwards by turns. */
    const int step = iteration / 2;
    const int node = power / 2 + (((iteration ^ power) & 1) != 0 ? step : -step);
    return lowered * (c + cos((2 * node - 1) * 0.5 * pi / power)) / (1 + c);
}

gnomon_status gnomon_shift_begin(gnomon_factor *f, const gnomon_tall *z, double shift, double *r)
{
    const int64_t n = z->cols;
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = r[i * n + i] > most ? r[i * n + i] : most;
    if (!(most < (f->f64 ? 1e290 : 1e36) * shift)) {
        memset(z->data, 0, (size_t)(z->rows * n) * gnomon_tall_size(z->f64));
        return GNOMON_OK;
    }
    for (int64_t i = 0; i < n * n; i++)
        r[i] /= -shift;
    return gnomon_tall_divide(f->ctx, z, r);
}

/* The least squared singular value of the triangle. */
static gnomon_status least_value(gnomon_factor *f, int64_t n, const double *r, double *value)
{
    double *work = NULL, most = 0;
    GNOMON_TRY(gnomon_alloc(f->ctx, n, sizeof *work, "singular vectors", &work));
    for (int64_t i = 0; i < n; i++)
        most = r[i * n + i] > most ? r[i * n + i] : most;
    *value = gnomon_least_square(n, r, work) * most * most;
    gnomon_free(f->ctx, work);
    return GNOMON_OK;
}

/* z = (A^T A - shift) z, for any basis of what that spans; the shift 0 in the first iteration,
 * which has y = A S^T. r: scratch. */
static gnomon_status shifted_step(gnomon_factor *f, int iteration, const gnomon_tall *y,
                                  const gnomon_tall *z, double *r)
{
    double span = 0;
    if (iteration > 0) {
        GNOMON_TRY(gnomon_condition(f->ctx, z, NULL, NULL, &f->orth));
        f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
        GNOMON_TRY(gnomon_row_source_apply(&f->source, z, y));
        f->out->power_seconds += gnomon_lap(&f->clock);
    }
    GNOMON_TRY(gnomon_condition(f->ctx, y, &span, r, &f->orth));
    f->source.coarse = span >= (iteration + 1 < f->options.power ? TAME_EARLY : TAME);
    const bool shifted = iteration > 0 && span > 0;
    if (shifted) {
        double least;
        GNOMON_TRY(least_value(f, z->cols, r, &least));
        GNOMON_TRY(
            gnomon_shift_begin(f, z, gnomon_shift_share(f->options.power, iteration) * least, r));
    }
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(shifted ? gnomon_row_source_add_adjoint(&f->source, y, z)
                       : gnomon_row_source_adjoint(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

/* y has A S^T. In the end z is orthonormal and y = A z. */
static gnomon_status iterate_shifted(gnomon_factor *f, const gnomon_tall *y, const gnomon_tall *z)
{
    double *r = NULL;
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(z->cols, z->cols), sizeof *r, "a triangle", &r));
    for (int i = 0; i < f->options.power && status == GNOMON_OK; i++)
        status = shifted_step(f, i, y, z, r);
    f->source.coarse = false;
    gnomon_free(f->ctx, r);
    GNOMON_TRY(status);
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, z, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_row_source_apply_f64(&f->source, z, y));
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
        f->source.coarse = span >= TAME;
        GNOMON_TRY(gnomon_row_source_adjoint(&f->source, y, z));
        f->source.coarse = false;
        f->out->power_seconds += gnomon_lap(&f->clock);
        if (span < TAME) GNOMON_TRY(gnomon_condition(f->ctx, z, NULL, NULL, &f->orth));
        f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
        GNOMON_TRY(gnomon_row_source_apply(&f->source, z, y));
        f->out->power_seconds += gnomon_lap(&f->clock);
    }
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, y, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_row_source_adjoint_f64(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

gnomon_status gnomon_range_fixed(gnomon_factor *f)
{
    const int64_t columns = gnomon_factor_columns(f);
    f->of_transpose = f->options.power > 1;
    gnomon_tall *y = f->of_transpose ? &f->bt : &f->q, *z = f->of_transpose ? &f->q : &f->bt;
    GNOMON_TRY(gnomon_factor_operator(f, columns, f->of_transpose && columns >= MANY));
    bool done = false;
    if (f->of_transpose) GNOMON_TRY(gnomon_range_krylov(f, columns, z, &done));
    if (!done) GNOMON_TRY(gnomon_factor_check_memory(f, true));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.rows, columns, false, "the range", y));
    if (done) {
        GNOMON_TRY(gnomon_row_source_apply_f64(&f->source, z, y));
        f->out->power_seconds += gnomon_lap(&f->clock);
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_row_source_sketch(&f->source, f->op, 0, y));
    f->out->project_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.cols, columns, false,
                                "the projected matrix", z));
    return f->of_transpose ? iterate_shifted(f, y, z) : iterate(f, y, z);
}
