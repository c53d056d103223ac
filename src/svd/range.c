/* A fixed number of columns: Halko, Martinsson & Tropp 2011, algorithms 4.3 and 4.4. */
#include "base/clock.h"
#include "base/error.h"
#include "svd/factor.h"

/* The adjoint of orthonormal columns spans about as much as they did before: where that is less
 * than this, it goes into the next product as it is, which then spans its square, and rounding in
 * single precision stays below 2^-8 of the shortest direction. */
#define TAME 0x1p-8

static gnomon_status power_step(gnomon_factor *f, const gnomon_tall *y, const gnomon_tall *z)
{
    double span;
    GNOMON_TRY(gnomon_condition(f->ctx, y, &span, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_feed_adjoint(&f->source, y, z));
    f->out->power_seconds += gnomon_lap(&f->clock);
    if (span < TAME) GNOMON_TRY(gnomon_condition(f->ctx, z, &span, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_feed_apply(&f->source, z, y));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}

gnomon_status gnomon_range_fixed(gnomon_factor *f)
{
    const int64_t columns = gnomon_factor_columns(f);
    GNOMON_TRY(gnomon_factor_operator(f, columns));
    GNOMON_TRY(
        gnomon_tall_make(f->ctx, f->wide, f->source.rows, columns, false, "the range", &f->q));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->wide, f->source.cols, columns, false,
                                "the projected matrix", &f->bt));
    GNOMON_TRY(gnomon_feed_sketch(&f->source, f->op, 0, &f->q));
    f->out->project_seconds += gnomon_lap(&f->clock);
    for (int i = 0; i < f->options.power; i++)
        GNOMON_TRY(power_step(f, &f->q, &f->bt));
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, &f->q, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_feed_adjoint_closely(&f->source, &f->q, &f->bt));
    f->out->power_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}
