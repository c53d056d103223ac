/* One factorisation at work: the tensor as far as it has shrunk, and its columns and elements. */
#include "hosvd/work.h"

#include "base/clock.h"
#include "base/error.h"
#include "svd/row_pass.h"

#include <inttypes.h>
#include <stdio.h>

gnomon_slabs *gnomon_hosvd_current(gnomon_hosvd_work *w)
{
    return w->core.data != NULL ? &w->shrunk : &w->x;
}

gnomon_status gnomon_hosvd_replace(gnomon_hosvd_work *w, const gnomon_cube *cube)
{
    gnomon_slabs_close(&w->shrunk);
    if (w->owned) gnomon_cube_drop(w->ctx, &w->core);
    w->core = *cube;
    w->owned = true;
    return gnomon_slabs_of_cube(w->ctx, &w->core, &w->shrunk);
}

gnomon_status gnomon_hosvd_materialise(gnomon_hosvd_work *w)
{
    if (w->core.data != NULL) return GNOMON_OK;
    gnomon_cube cube = gnomon_slabs_in_place(&w->x);
    const bool copied = cube.data == NULL || gnomon_row_divided(&w->x.source);
    if (copied) GNOMON_TRY(gnomon_slabs_shrink(&w->x, NULL, 0, NULL, w->options.memory, &cube));
    gnomon_status status = gnomon_hosvd_replace(w, &cube);
    w->owned = copied;
    w->out->shrink_seconds += gnomon_lap(&w->clock);
    return status;
}

void gnomon_hosvd_columns(gnomon_hosvd_work *w)
{
    for (int n = 0; n < w->modes; n++) {
        const int64_t over = w->options.oversample, room = w->size[n] - w->rank[n];
        w->columns[n] = over < room ? w->rank[n] + over : 0;
    }
}

gnomon_status gnomon_hosvd_name_element(gnomon_hosvd_work *w, int64_t row, int64_t col,
                                        int64_t cols)
{
    char text[GNOMON_TENSOR_MODES * 24] = "";
    int64_t index[GNOMON_TENSOR_MODES] = {0}, rest = row * cols + col;
    size_t used = 0;
    for (int i = w->modes - 1; i >= 0; i--) { /* counted in the caller's modes */
        index[w->name[i]] = rest % w->size[i];
        rest /= w->size[i];
    }
    for (int n = 0; n < w->modes; n++) {
        const int wrote =
            snprintf(text + used, sizeof text - used, "%s%" PRId64, n > 0 ? ", " : "", index[n]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return gnomon_fail(
        w->ctx, GNOMON_ERROR_NONFINITE,
        GNOMON_ABOUT("x") "the tensor has NaN or infinity in element (%s) (counted from 0)", text);
}
