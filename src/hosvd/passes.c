/* Products with factors, over all slabs of a tensor. */
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/product.h"
#include "hosvd/work.h"

#include <inttypes.h>
#include <string.h>

/* Rows [first, first + count) of f. */
static gnomon_tall rows_of(const gnomon_tall *f, int64_t first, int64_t count)
{
    return (gnomon_tall){gnomon_tall_row(f, first), count, f->cols, f->f64};
}

/* Indices [first, first + count) of c's outermost mode. */
static gnomon_cube part_of(const gnomon_cube *c, int64_t first, int64_t count)
{
    gnomon_cube part = *c;
    part.size[0] = 1;
    part.data =
        (char *)c->data + (size_t)(first * gnomon_cube_count(&part)) * gnomon_tall_size(c->f64);
    part.size[0] = count;
    return part;
}

/* to = from x_mode f^T in memory of its own, and drops what 'from' had of that. */
static gnomon_status step(gnomon_context *ctx, gnomon_cube *from, bool *owned, int mode,
                          const gnomon_tall *f, bool transposed)
{
    gnomon_cube to = *from;
    to.size[mode] = transposed ? f->cols : f->rows;
    GNOMON_TRY(gnomon_cube_make(ctx, "a piece of the shrunk tensor", &to));
    gnomon_status status = gnomon_mode_product(ctx, from, mode, f, transposed, 0.0, &to);
    if (*owned) gnomon_cube_drop(ctx, from);
    *from = to;
    *owned = true;
    return status;
}

typedef struct shrinking {
    gnomon_context *ctx;
    const int *modes;
    int list;
    const gnomon_tall *factor;
    gnomon_cube *out;
} shrinking;

/* The outermost mode comes last: it adds slabs up. */
static gnomon_status shrink_slab(const shrinking *s, const gnomon_cube *slab, int64_t first)
{
    gnomon_cube at = *slab;
    bool owned = false, outermost = false;
    int inner = 0, done = 0;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < s->list; i++) {
        inner += s->modes[i] > 0;
        outermost = outermost || s->modes[i] == 0;
    }
    gnomon_cube place = part_of(s->out, outermost ? 0 : first, slab->size[0]);
    for (int i = 0; i < s->list && status == GNOMON_OK; i++) {
        const int mode = s->modes[i];
        if (mode == 0) continue;
        if (++done == inner && !outermost)
            status = gnomon_mode_product(s->ctx, &at, mode, &s->factor[mode], true, 0.0, &place);
        else
            status = step(s->ctx, &at, &owned, mode, &s->factor[mode], true);
    }
    if (status == GNOMON_OK && outermost) {
        const gnomon_tall q = rows_of(&s->factor[0], first, slab->size[0]);
        status = gnomon_mode_product(s->ctx, &at, 0, &q, true, first > 0 ? 1.0 : 0.0, s->out);
    }
    if (s->list == 0)
        memcpy(place.data, slab->data,
               (size_t)gnomon_cube_count(slab) * gnomon_tall_size(slab->f64));
    if (owned) gnomon_cube_drop(s->ctx, &at);
    return status;
}

gnomon_status gnomon_slabs_shrink(gnomon_slabs *x, const int *modes, int list,
                                  const gnomon_tall *factor, int64_t limit, gnomon_cube *out)
{
    gnomon_context *ctx = x->source.ctx;
    gnomon_cube slab;
    int64_t first, bytes = (int64_t)gnomon_tall_size(x->source.f64);
    *out = (gnomon_cube){NULL, x->source.f64, x->modes, {0}};
    memcpy(out->size, x->size, sizeof out->size);
    for (int i = 0; i < list; i++)
        out->size[modes[i]] = factor[modes[i]].cols;
    bool fits = true;
    for (int n = 0; n < x->modes; n++)
        fits = fits && gnomon_mul(bytes, out->size[n], &bytes);
    GNOMON_FAIL_IF(!fits || (limit > 0 && bytes > limit), ctx, GNOMON_ERROR_MEMORY,
                   "the shrunk tensor takes %" PRId64 " bytes, and %" PRId64
                   " are left of the memory allowed; raise it, or lower ranks and oversample",
                   fits ? bytes : INT64_MAX, limit);
    GNOMON_TRY(gnomon_cube_make(ctx, "the shrunk tensor", out));
    const shrinking s = {ctx, modes, list, factor, out};
    gnomon_status status = gnomon_slabs_rewind(x);
    while (status == GNOMON_OK) {
        status = gnomon_slabs_next(x, &slab, &first);
        if (status != GNOMON_OK || slab.size[0] == 0) break;
        status = shrink_slab(&s, &slab, first);
    }
    if (status != GNOMON_OK) gnomon_cube_drop(ctx, out);
    return status;
}

gnomon_status gnomon_slabs_rest(gnomon_slabs *x, int mode, const gnomon_tall *q,
                                const gnomon_cube *b, double *squares)
{
    gnomon_context *ctx = x->source.ctx;
    gnomon_cube slab;
    int64_t first;
    *squares = 0;
    GNOMON_TRY(gnomon_slabs_rewind(x));
    for (;;) {
        GNOMON_TRY(gnomon_slabs_next(x, &slab, &first));
        if (slab.size[0] == 0) return GNOMON_OK;
        const gnomon_tall f = mode == 0 ? rows_of(q, first, slab.size[0]) : *q;
        const gnomon_cube in = mode == 0 ? *b : part_of(b, first, slab.size[0]);
        GNOMON_TRY(gnomon_mode_difference(ctx, &slab, mode, &f, &in, squares));
    }
}

/* sum += the slabs' products: with b or, where that is NULL, with f^T x. */
static gnomon_status cross(gnomon_slabs *x, int mode, const gnomon_cube *b, const gnomon_tall *f,
                           double *sum)
{
    gnomon_cube slab;
    int64_t first;
    GNOMON_TRY(gnomon_slabs_rewind(x));
    for (;;) {
        GNOMON_TRY(gnomon_slabs_next(x, &slab, &first));
        if (slab.size[0] == 0) return GNOMON_OK;
        if (b == NULL) {
            GNOMON_TRY(gnomon_mode_shrunk_cross(x->source.ctx, &slab, mode, f, sum));
            continue;
        }
        const gnomon_cube other = mode == 0 ? *b : part_of(b, first, slab.size[0]);
        GNOMON_TRY(gnomon_mode_cross(x->source.ctx, &slab, &other, mode,
                                     mode == 0 ? sum + first * b->size[0] : sum));
    }
}

/* The same, rounded to w. */
static gnomon_status cross_to(gnomon_slabs *x, int mode, const gnomon_cube *b, const gnomon_tall *f,
                              const gnomon_tall *w)
{
    double *sum = NULL;
    GNOMON_TRY(gnomon_alloc_zero(x->source.ctx, gnomon_times(w->rows, w->cols), sizeof *sum,
                                 "a projection", &sum));
    gnomon_status status = cross(x, mode, b, f, sum);
    if (status == GNOMON_OK) gnomon_f64_to_type(w->f64, w->rows * w->cols, sum, w->data);
    gnomon_free(x->source.ctx, sum);
    return status;
}

gnomon_status gnomon_slabs_cross(gnomon_slabs *x, int mode, const gnomon_cube *b,
                                 const gnomon_tall *w)
{
    return cross_to(x, mode, b, NULL, w);
}

gnomon_status gnomon_slabs_shrunk_cross(gnomon_slabs *x, int mode, const gnomon_tall *f,
                                        const gnomon_tall *w)
{
    return cross_to(x, mode, NULL, f, w);
}

/* The core blown up to a slab, all but the last mode; that one while it is subtracted. */
static gnomon_status residual_of_slab(gnomon_context *ctx, const gnomon_cube *slab, int64_t first,
                                      const gnomon_cube *core, const gnomon_tall *factor,
                                      double *squares)
{
    const int last = core->modes - 1;
    gnomon_cube at = *core;
    bool owned = false;
    gnomon_status status = GNOMON_OK;
    const gnomon_tall outermost = rows_of(&factor[0], first, slab->size[0]);
    for (int n = 0; n < last && status == GNOMON_OK; n++)
        status = step(ctx, &at, &owned, n, n == 0 ? &outermost : &factor[n], false);
    if (status == GNOMON_OK)
        status = gnomon_mode_difference(ctx, slab, last, last == 0 ? &outermost : &factor[last],
                                        &at, squares);
    if (owned) gnomon_cube_drop(ctx, &at);
    return status;
}

gnomon_status gnomon_slabs_residual(gnomon_slabs *x, const gnomon_cube *core,
                                    const gnomon_tall *factor, double *squares)
{
    gnomon_cube slab;
    int64_t first;
    *squares = 0;
    GNOMON_TRY(gnomon_slabs_rewind(x));
    for (;;) {
        GNOMON_TRY(gnomon_slabs_next(x, &slab, &first));
        if (slab.size[0] == 0) return GNOMON_OK;
        GNOMON_TRY(residual_of_slab(x->source.ctx, &slab, first, core, factor, squares));
    }
}
