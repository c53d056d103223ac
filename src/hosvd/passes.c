/* Products with factors, over all slabs of a tensor. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/product.h"
#include "hosvd/slab_pass.h"
#include "hosvd/work.h"

#include <inttypes.h>
#include <string.h>

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

/* ---- x times transposed factors ---- */

static bool has_outermost(const gnomon_slab_pass *p)
{
    for (int i = 0; i < p->list; i++)
        if (p->modes[i] == 0) return true;
    return false;
}

/* The sizes of the result. */
static gnomon_cube shrunk(const gnomon_slab_pass *p)
{
    gnomon_cube out = {NULL, p->x->source.f64, p->x->modes, {0}};
    memcpy(out.size, p->x->size, sizeof out.size);
    for (int i = 0; i < p->list; i++)
        out.size[p->modes[i]] = p->factor[p->modes[i]].cols;
    return out;
}

static gnomon_status shape_shrink(gnomon_slab_pass *p)
{
    const gnomon_cube out = shrunk(p);
    const int64_t count = gnomon_cube_count(&out);
    if (has_outermost(p))
        p->numbers = count;
    else
        p->row_bytes = count / out.size[0] * (int64_t)gnomon_tall_size(out.f64);
    return GNOMON_OK;
}

/* The outermost mode comes last: it adds slabs up. */
static gnomon_status add_shrunk(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    gnomon_context *ctx = p->x->source.ctx;
    const bool outermost = has_outermost(p);
    gnomon_cube at = slab->cube, out = shrunk(p);
    bool owned = false;
    int inner = p->list - outermost, done = 0;
    gnomon_status status = GNOMON_OK;
    out.data = result;
    gnomon_cube place =
        gnomon_part_of_cube(&out, outermost ? 0 : slab->row - slab->begin, slab->cube.size[0]);
    for (int i = 0; i < p->list && status == GNOMON_OK; i++) {
        const int mode = p->modes[i];
        if (mode == 0) continue;
        if (++done == inner && !outermost)
            status = gnomon_mode_product(ctx, &at, mode, &p->factor[mode], true, 0.0, &place);
        else
            status = step(ctx, &at, &owned, mode, &p->factor[mode], true);
    }
    if (status == GNOMON_OK && outermost) {
        const gnomon_tall q = gnomon_rows_of_tall(&p->factor[0], slab->row, slab->cube.size[0]);
        status = gnomon_mode_product(ctx, &at, 0, &q, true, slab->first ? 0.0 : 1.0, &out);
    }
    if (p->list == 0)
        memcpy(place.data, slab->cube.data,
               (size_t)gnomon_cube_count(&slab->cube) * gnomon_tall_size(out.f64));
    if (owned) gnomon_cube_drop(ctx, &at);
    return status;
}

const gnomon_slab_step gnomon_step_shrink = {
    .kind = GNOMON_STEP_TENSOR_SHRINK, .shape = shape_shrink, .add = add_shrunk};

gnomon_status gnomon_slabs_shrink(gnomon_slabs *x, const int *modes, int list,
                                  const gnomon_tall *factor, int64_t limit, gnomon_cube *out)
{
    gnomon_context *ctx = x->source.ctx;
    gnomon_slab_pass p = {.x = x, .kind = GNOMON_STEP_TENSOR_SHRINK, .list = list};
    for (int i = 0; i < list; i++) {
        p.modes[i] = modes[i];
        p.factor[modes[i]] = factor[modes[i]];
    }
    *out = shrunk(&p);
    /* a segment's sum beside that of all */
    int64_t bytes = (int64_t)gnomon_tall_size(x->source.f64);
    if (has_outermost(&p) && gnomon_slabs_segments(x) > 1) bytes *= 2;
    bool fits = true;
    for (int n = 0; n < x->modes; n++)
        fits = fits && gnomon_mul(bytes, out->size[n], &bytes);
    GNOMON_FAIL_IF(!fits || (limit > 0 && bytes > limit), ctx, GNOMON_ERROR_MEMORY,
                   "the shrunk tensor takes %" PRId64 " bytes, and %" PRId64
                   " are left of the memory allowed; raise it, or lower ranks and oversample",
                   fits ? bytes : INT64_MAX, limit);
    GNOMON_TRY(gnomon_cube_make(ctx, "the shrunk tensor", out));
    p.out = out->data;
    const gnomon_status status = gnomon_slab_pass_run(&p);
    if (status != GNOMON_OK) gnomon_cube_drop(ctx, out);
    return status;
}

/* ---- sums of squares ---- */

static gnomon_status shape_square(gnomon_slab_pass *p)
{
    p->numbers = 1;
    p->sums_f64 = true;
    return GNOMON_OK;
}

static gnomon_status add_rest(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    const int64_t rows = slab->cube.size[0];
    const gnomon_tall *q = &p->factor[p->mode];
    const gnomon_tall f = p->mode == 0 ? gnomon_rows_of_tall(q, slab->row, rows) : *q;
    const gnomon_cube in = p->mode == 0 ? p->cube : gnomon_part_of_cube(&p->cube, slab->at, rows);
    if (slab->first) *(double *)result = 0;
    return gnomon_mode_difference(p->x->source.ctx, &slab->cube, p->mode, &f, &in, result);
}

const gnomon_slab_step gnomon_step_rest = {
    .kind = GNOMON_STEP_TENSOR_REST, .shape = shape_square, .add = add_rest};

gnomon_status gnomon_slabs_rest(gnomon_slabs *x, int mode, const gnomon_tall *q,
                                const gnomon_cube *b, double *squares)
{
    gnomon_slab_pass p = {.x = x,
                          .kind = GNOMON_STEP_TENSOR_REST,
                          .mode = mode,
                          .list = 1,
                          .modes = {mode},
                          .cube = *b,
                          .out = squares};
    p.factor[mode] = *q;
    return gnomon_slab_pass_run(&p);
}

/* The core blown up to a slab, all but the last mode; that one while it is subtracted. */
static gnomon_status add_residual(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    gnomon_context *ctx = p->x->source.ctx;
    const int last = p->cube.modes - 1;
    gnomon_cube at = p->cube;
    bool owned = false;
    gnomon_status status = GNOMON_OK;
    const gnomon_tall outermost = gnomon_rows_of_tall(&p->factor[0], slab->row, slab->cube.size[0]);
    if (slab->first) *(double *)result = 0;
    for (int n = 0; n < last && status == GNOMON_OK; n++)
        status = step(ctx, &at, &owned, n, n == 0 ? &outermost : &p->factor[n], false);
    if (status == GNOMON_OK)
        status = gnomon_mode_difference(ctx, &slab->cube, last,
                                        last == 0 ? &outermost : &p->factor[last], &at, result);
    if (owned) gnomon_cube_drop(ctx, &at);
    return status;
}

const gnomon_slab_step gnomon_step_residual = {
    .kind = GNOMON_STEP_TENSOR_RESIDUAL, .whole = true, .shape = shape_square, .add = add_residual};

gnomon_status gnomon_slabs_residual(gnomon_slabs *x, const gnomon_cube *core,
                                    const gnomon_tall *factor, double *squares)
{
    gnomon_slab_pass p = {.x = x,
                          .kind = GNOMON_STEP_TENSOR_RESIDUAL,
                          .list = x->modes,
                          .cube = *core,
                          .out = squares};
    for (int n = 0; n < x->modes; n++) {
        p.modes[n] = n;
        p.factor[n] = factor[n];
    }
    return gnomon_slab_pass_run(&p);
}

/* ---- the unfolding times another one ---- */

/* Doubles: of the outermost mode rows of the product, else a sum. */
static gnomon_status shape_product(gnomon_slab_pass *p, int64_t cols)
{
    p->sums_f64 = true;
    if (p->mode == 0)
        p->row_bytes = gnomon_times(cols, sizeof(double));
    else
        p->numbers = gnomon_times(p->x->size[p->mode], cols);
    return GNOMON_OK;
}

static gnomon_status shape_cross(gnomon_slab_pass *p)
{
    return shape_product(p, p->cube.size[p->mode]);
}

static gnomon_status shape_shrunk_cross(gnomon_slab_pass *p)
{
    return shape_product(p, p->factor[p->mode].cols);
}

static gnomon_status add_cross(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    const int64_t rows = slab->cube.size[0];
    double *sum = result;
    if (p->mode > 0) {
        const gnomon_cube other = gnomon_part_of_cube(&p->cube, slab->at, rows);
        if (slab->first) memset(sum, 0, (size_t)p->numbers * sizeof *sum);
        return gnomon_mode_cross(p->x->source.ctx, &slab->cube, &other, p->mode, sum);
    }
    sum += (slab->row - slab->begin) * p->cube.size[0];
    memset(sum, 0, (size_t)(rows * p->row_bytes));
    return gnomon_mode_cross(p->x->source.ctx, &slab->cube, &p->cube, 0, sum);
}

static gnomon_status add_shrunk_cross(gnomon_slab_pass *p, const gnomon_slab *slab, void *result)
{
    if (slab->first) memset(result, 0, (size_t)p->numbers * sizeof(double));
    return gnomon_mode_shrunk_cross(p->x->source.ctx, &slab->cube, p->mode, &p->factor[p->mode],
                                    result);
}

const gnomon_slab_step gnomon_step_cross = {
    .kind = GNOMON_STEP_TENSOR_CROSS, .shape = shape_cross, .add = add_cross};
const gnomon_slab_step gnomon_step_shrunk_cross = {
    .kind = GNOMON_STEP_TENSOR_SHRUNK_CROSS, .shape = shape_shrunk_cross, .add = add_shrunk_cross};

/* The product, rounded to w. */
static gnomon_status round_to(gnomon_slab_pass *p, const gnomon_tall *w)
{
    gnomon_context *ctx = p->x->source.ctx;
    double *sum = NULL;
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(w->rows, w->cols), sizeof *sum, "a projection", &sum));
    p->out = sum;
    gnomon_status status = gnomon_slab_pass_run(p);
    if (status == GNOMON_OK) gnomon_f64_to_type(w->f64, w->rows * w->cols, sum, w->data);
    gnomon_free(ctx, sum);
    return status;
}

gnomon_status gnomon_slabs_cross(gnomon_slabs *x, int mode, const gnomon_cube *b,
                                 const gnomon_tall *w)
{
    gnomon_slab_pass p = {.x = x, .kind = GNOMON_STEP_TENSOR_CROSS, .mode = mode, .cube = *b};
    return round_to(&p, w);
}

gnomon_status gnomon_slabs_shrunk_cross(gnomon_slabs *x, int mode, const gnomon_tall *f,
                                        const gnomon_tall *w)
{
    gnomon_slab_pass p = {
        .x = x, .kind = GNOMON_STEP_TENSOR_SHRUNK_CROSS, .mode = mode, .list = 1, .modes = {mode}};
    p.factor[mode] = *f;
    return round_to(&p, w);
}
