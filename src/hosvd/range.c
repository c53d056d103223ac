/* What the projections of a mode share. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/product.h"
#include "hosvd/work.h"

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

/* b's rows along the mode brought to be orthogonal and of one length, but for those beyond
 * rounding, which stay short. */
static gnomon_status even_out(gnomon_hosvd_work *w, gnomon_cube *b, int mode)
{
    const int64_t n = b->size[mode];
    double *values = NULL, *u = NULL;
    gnomon_tall t = {0};
    gnomon_cube even = *b;
    even.data = NULL;
    gnomon_status status = gnomon_alloc(w->ctx, n, sizeof *values, "a spectrum", &values);
    if (status == GNOMON_OK) status = gnomon_alloc(w->ctx, n * n, sizeof *u, "a small problem", &u);
    if (status == GNOMON_OK) status = gnomon_mode_spectrum(w, b, mode, false, values, u);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(w->ctx, w->wide, n, n, false, "a small problem", &t);
    if (status == GNOMON_OK) {
        const double floor = sqrt(values[0]) * (w->wide ? 0x1p-24 : 0x1p-20);
        for (int64_t j = 0; j < n; j++) {
            const double length = fmax(sqrt(values[j]), floor);
            for (int64_t i = 0; i < n; i++)
                u[i * n + j] /= length > 0 ? length : 1;
        }
        gnomon_narrow(w->wide, n * n, u, t.data);
        status = gnomon_cube_make(w->ctx, "the shrunk tensor", &even);
    }
    if (status == GNOMON_OK) status = gnomon_mode_product(w->ctx, b, mode, &t, true, 0.0, &even);
    gnomon_free(w->ctx, values);
    gnomon_free(w->ctx, u);
    gnomon_tall_drop(w->ctx, &t);
    gnomon_cube_drop(w->ctx, b);
    *b = even;
    return status;
}

gnomon_status gnomon_range_power(gnomon_hosvd_work *w, gnomon_slabs *x, int mode,
                                 const gnomon_tall *y)
{
    gnomon_tall factor[GNOMON_TENSOR_MODES];
    gnomon_cube b = {0};
    GNOMON_TRY(gnomon_condition(w->ctx, y, NULL, NULL, &w->orth));
    w->out->orthonormalise_seconds += gnomon_lap(&w->clock);
    factor[mode] = *y;
    GNOMON_TRY(gnomon_slabs_shrink(x, &mode, 1, factor, w->options.memory, &b));
    gnomon_status status = even_out(w, &b, mode);
    if (status == GNOMON_OK) status = gnomon_slabs_cross(x, mode, &b, y);
    gnomon_cube_drop(w->ctx, &b);
    w->out->power_seconds += gnomon_lap(&w->clock);
    return status;
}
