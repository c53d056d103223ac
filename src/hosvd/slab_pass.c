#include "hosvd/slab_pass.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"

#include <string.h>

static const gnomon_slab_step *const steps[] = {
    &gnomon_step_project,      &gnomon_step_shrink,   &gnomon_step_rest, &gnomon_step_cross,
    &gnomon_step_shrunk_cross, &gnomon_step_residual, &gnomon_step_gram, &gnomon_step_triangle};

gnomon_tall gnomon_rows_of_tall(const gnomon_tall *f, int64_t first, int64_t count)
{
    return (gnomon_tall){gnomon_tall_row(f, first), count, f->cols, f->f64};
}

gnomon_cube gnomon_part_of_cube(const gnomon_cube *c, int64_t first, int64_t count)
{
    gnomon_cube part = *c;
    part.size[0] = 1;
    part.data =
        (char *)c->data + (size_t)(first * gnomon_cube_count(&part)) * gnomon_tall_size(c->f64);
    part.size[0] = count;
    return part;
}

/* ---- what the ranks tell each other ---- */

/* docs/reference/formats.md, "Steps of a factorisation". */
typedef struct terms {
    int64_t list, modes[GNOMON_TENSOR_MODES], cols[GNOMON_TENSOR_MODES];
    int64_t size[GNOMON_TENSOR_MODES]; /* of the cube; 0: there is none */
} terms;

static const gnomon_slab_step *step_of(gnomon_step_kind kind)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i]->kind == kind) return steps[i];
    return NULL;
}

static bool projects(const gnomon_slab_pass *p)
{
    return p->kind == GNOMON_STEP_TENSOR_PROJECT;
}

static terms terms_of(const gnomon_slab_pass *p)
{
    terms t = {.list = p->list};
    for (int i = 0; i < p->list; i++) {
        t.modes[i] = p->modes[i];
        t.cols[i] = p->factor[p->modes[i]].cols;
    }
    if (p->cube.data != NULL) memcpy(t.size, p->cube.size, sizeof t.size);
    return t;
}

/* Whether rank 0 can mean this. */
static bool can_be(const gnomon_slab_pass *p, const terms *t)
{
    bool good = p->mode >= 0 && p->mode < p->x->modes && t->list >= 0 && t->list <= p->x->modes;
    for (int64_t i = 0; good && i < t->list; i++)
        good = t->modes[i] >= 0 && t->modes[i] < p->x->modes && t->cols[i] > 0;
    for (int i = 0; good && i < p->x->modes; i++)
        good = t->size[0] == 0 || t->size[i] > 0;
    return good;
}

/* Room for what rank 0 sends. */
static gnomon_status make_room(gnomon_slab_pass *p, const terms *t)
{
    const gnomon_row_source *source = &p->x->source;
    GNOMON_FAIL_IF(!can_be(p, t), source->ctx, GNOMON_ERROR_COMM,
                   "rank 0 asks for step %d of a tensor, and says what can't be of it",
                   (int)p->kind);
    p->list = (int)t->list;
    for (int i = 0; i < p->list; i++) {
        const int mode = p->modes[i] = (int)t->modes[i];
        gnomon_tall *f = &p->factor[mode];
        *f = (gnomon_tall){NULL, p->x->size[mode], t->cols[i], source->f64};
        if (!projects(p))
            GNOMON_TRY(gnomon_tall_make(source->ctx, source->f64, f->rows, f->cols, false,
                                        "a mode's factor", f));
    }
    if (t->size[0] == 0) return GNOMON_OK;
    p->cube = (gnomon_cube){NULL, source->f64, p->x->modes, {0}};
    memcpy(p->cube.size, t->size, sizeof t->size);
    if (!p->step->whole && p->mode != 0) p->cube.size[0] = gnomon_max(source->own_rows, 1);
    return gnomon_cube_make(source->ctx, "the shrunk tensor", &p->cube);
}

/* The cube: by segments of its outermost mode, or as a whole. */
static gnomon_status share_cube(gnomon_slab_pass *p, const terms *t)
{
    gnomon_row_source *source = &p->x->source;
    const int64_t size = (int64_t)gnomon_tall_size(source->f64);
    if (t->size[0] == 0) return GNOMON_OK;
    if (p->step->whole || p->mode == 0)
        return gnomon_row_step_share(source, p->cube.data, gnomon_cube_count(&p->cube) * size);
    const gnomon_tall rows = {p->cube.data, p->cube.size[0],
                              gnomon_cube_count(&p->cube) / p->cube.size[0], source->f64};
    return gnomon_row_step_rows(source, &rows);
}

/* Rank 0 gives the others what the pass takes, once they have room for it. */
static gnomon_status meet(gnomon_slab_pass *p)
{
    gnomon_row_source *source = &p->x->source;
    const int64_t numbers[6] = {p->mode, p->row};
    const bool serves = gnomon_row_serves(source);
    if (!gnomon_row_divided(source)) return GNOMON_OK;
    GNOMON_TRY(gnomon_row_step_tell(source, p->kind, numbers));
    terms t = terms_of(p);
    GNOMON_TRY(gnomon_row_step_share(source, &t, sizeof t));
    GNOMON_TRY(gnomon_row_step_ready(source, serves ? make_room(p, &t) : GNOMON_OK));
    for (int i = 0; i < p->list; i++) {
        const gnomon_tall *f = &p->factor[p->modes[i]];
        const int64_t bytes = f->rows * f->cols * (int64_t)gnomon_tall_size(f->f64);
        GNOMON_TRY(projects(p) ? gnomon_row_step_operator(source, &p->op[i])
                               : gnomon_row_step_share(source, f->data, bytes));
    }
    return share_cube(p, &t);
}

/* ---- the pass ---- */

static int64_t end_of_segment(const gnomon_row_source *source, int64_t begin)
{
    return gnomon_min(begin + source->segment_rows, source->rows);
}

static gnomon_status add(void *user, const gnomon_piece *piece, int64_t begin, bool first,
                         void *result)
{
    gnomon_slab_pass *p = user;
    const gnomon_row_source *source = &p->x->source;
    gnomon_slab slab = {.cube = {piece->dense.data, source->f64, p->x->modes, {0}},
                        .row = piece->row,
                        .begin = begin,
                        .end = end_of_segment(source, begin),
                        .own = piece->own,
                        .at = gnomon_row_serves(source) ? piece->own : piece->row,
                        .first = first};
    memcpy(slab.cube.size, p->x->size, sizeof slab.cube.size);
    slab.cube.size[0] = piece->rows;
    return p->step->add(p, &slab, result);
}

/* Bytes of a number that is summed. */
static int64_t sum_size(const gnomon_slab_pass *p)
{
    return (int64_t)gnomon_tall_size(p->sums_f64 || p->x->source.f64);
}

static void *place(void *user, int64_t row)
{
    const gnomon_slab_pass *p = user;
    if (p->out == NULL) return NULL;
    if (p->row_bytes > 0) return (char *)p->out + row * p->row_bytes;
    return row == 0 ? p->out : NULL;
}

static gnomon_status take(void *user, int64_t row, int64_t rows, const void *result, bool own)
{
    gnomon_slab_pass *p = user;
    if (p->step->take != NULL) return p->step->take(p, row, rows, result, own);
    if (p->row_bytes > 0)
        memcpy(place(p, row), result, (size_t)(rows * p->row_bytes));
    else
        gnomon_row_pass_sum(p->x->source.ctx, p->sums_f64 || p->x->source.f64, p->numbers, result,
                            p->out);
    return GNOMON_OK;
}

static gnomon_status run(gnomon_slab_pass *p)
{
    gnomon_row_source *source = &p->x->source;
    gnomon_status status = p->step->shape(p);
    const gnomon_row_pass pass = {.user = p,
                                  .add = add,
                                  .place = place,
                                  .take = take,
                                  .bytes = gnomon_times(p->numbers, sum_size(p)),
                                  .row_bytes = p->row_bytes,
                                  .rows_in_place = p->rows_in_place};
    status = gnomon_row_pass_run(source, &pass, status);
    for (int i = 0; i < GNOMON_TENSOR_MODES; i++) {
        gnomon_stream_destroy(p->stream[i]);
        p->stream[i] = NULL;
    }
    return status;
}

gnomon_status gnomon_slab_pass_run(gnomon_slab_pass *p)
{
    p->step = step_of(p->kind);
    GNOMON_TRY(meet(p));
    return run(p);
}

gnomon_status gnomon_slab_pass_serve(gnomon_slabs *x, const gnomon_row_step *told)
{
    gnomon_context *ctx = x->source.ctx;
    gnomon_slab_pass p = {.x = x,
                          .kind = (gnomon_step_kind)told->kind,
                          .mode = (int)told->numbers[0],
                          .row = told->numbers[1]};
    if (step_of(p.kind) == NULL) return gnomon_row_source_serve(&x->source, told);
    const gnomon_status status = gnomon_slab_pass_run(&p);
    for (int i = 0; i < GNOMON_TENSOR_MODES; i++) {
        gnomon_operator_destroy(p.op[i]);
        gnomon_tall_drop(ctx, &p.factor[i]);
    }
    gnomon_cube_drop(ctx, &p.cube);
    return status;
}
