/* Ranks that are given: Ootomo & Yokota 2023, algorithm 2, all modes of X; or one mode after the
 * other of what is left. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/work.h"

#include <string.h>

static gnomon_status iterate(gnomon_hosvd_work *w, gnomon_slabs *x, int mode, const gnomon_tall *y)
{
    double *r = NULL;
    GNOMON_TRY(gnomon_alloc(w->ctx, gnomon_times(y->cols, y->cols), sizeof *r, "a triangle", &r));
    gnomon_status status = gnomon_condition(w->ctx, y, NULL, r, &w->orth);
    if (status == GNOMON_OK) status = gnomon_range_power(w, x, mode, y, r);
    gnomon_free(w->ctx, r);
    return status;
}

/* The factors of the modes in the list, from x. */
static gnomon_status draw(gnomon_hosvd_work *w, gnomon_slabs *x, const int *modes, int list,
                          gnomon_operator **op, gnomon_tall *y)
{
    for (int i = 0; i < list; i++) {
        /* Modes before this one may have left fewer columns. */
        const int64_t there = gnomon_range_columns(x, modes[i]), wanted = w->columns[modes[i]];
        const int64_t columns = wanted < there ? wanted : there;
        GNOMON_TRY(gnomon_range_operator(w, x, modes[i], columns, &op[i]));
        GNOMON_TRY(gnomon_tall_make(w->ctx, w->f64, w->size[modes[i]], columns, false,
                                    "a mode's range", &y[i]));
    }
    GNOMON_TRY(gnomon_slabs_sketch(x, modes, list, op, 0, y));
    w->out->project_seconds += gnomon_lap(&w->clock);
    for (int i = 0; i < list; i++) {
        const int mode = modes[i];
        gnomon_tall *q = &w->factor[mode];
        for (int k = 0; k < w->options.power; k++)
            GNOMON_TRY(iterate(w, x, mode, &y[i]));
        /* Columns that there are none for are zeros, and orthonormalisation completes them. */
        GNOMON_TRY(gnomon_tall_make(w->ctx, w->f64, w->size[mode], w->columns[mode], true,
                                    "a mode's range", q));
        gnomon_tall_copy(w->ctx, &y[i], 0, y[i].cols, q, 0);
        GNOMON_TRY(gnomon_orthonormalise(w->ctx, q, NULL, &w->orth));
        w->out->orthonormalise_seconds += gnomon_lap(&w->clock);
    }
    return GNOMON_OK;
}

static gnomon_status project(gnomon_hosvd_work *w, gnomon_slabs *x, const int *modes, int list)
{
    gnomon_operator *op[GNOMON_TENSOR_MODES] = {NULL};
    gnomon_tall y[GNOMON_TENSOR_MODES];
    memset(y, 0, sizeof y);
    gnomon_status status = draw(w, x, modes, list, op, y);
    for (int i = 0; i < list; i++) {
        gnomon_operator_destroy(op[i]);
        gnomon_tall_drop(w->ctx, &y[i]);
    }
    return status;
}

static gnomon_status shrink(gnomon_hosvd_work *w, const int *modes, int list)
{
    gnomon_cube core;
    if (list == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_slabs_shrink(gnomon_hosvd_current(w), modes, list, w->factor,
                                   w->options.memory, &core));
    GNOMON_TRY(gnomon_hosvd_replace(w, &core));
    w->out->shrink_seconds += gnomon_lap(&w->clock);
    return GNOMON_OK;
}

static gnomon_status one_by_one(gnomon_hosvd_work *w)
{
    for (int i = 0; i < w->modes; i++) {
        const int mode = w->order[i], list = w->columns[mode] > 0;
        if (list > 0) GNOMON_TRY(project(w, gnomon_hosvd_current(w), &mode, list));
        GNOMON_TRY(shrink(w, &mode, list));
        GNOMON_TRY(gnomon_hosvd_truncate(w, mode, w->rank[mode], -1));
    }
    return GNOMON_OK;
}

static gnomon_status all_at_once(gnomon_hosvd_work *w)
{
    int modes[GNOMON_TENSOR_MODES], list = 0;
    for (int i = 0; i < w->modes; i++)
        if (w->columns[w->order[i]] > 0) modes[list++] = w->order[i];
    if (list > 0) GNOMON_TRY(project(w, &w->x, modes, list));
    GNOMON_TRY(shrink(w, modes, list));
    for (int i = 0; i < w->modes; i++)
        GNOMON_TRY(gnomon_hosvd_truncate(w, w->order[i], w->rank[w->order[i]], -1));
    return GNOMON_OK;
}

gnomon_status gnomon_hosvd_fixed(gnomon_hosvd_work *w)
{
    gnomon_hosvd_columns(w);
    gnomon_hosvd_order(w);
    return w->options.sequential ? one_by_one(w) : all_at_once(w);
}
