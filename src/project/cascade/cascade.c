#include "project/cascade/cascade.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

#include <inttypes.h>
#include <string.h>

enum { PANELS_NOTED = 1024 }; /* bytes of kept panels beside the panels, at most */

static const gnomon_fold no_points = {0};

void gnomon_cascade_blocks(const gnomon_operator *op, int64_t col, int64_t cols, int64_t *first,
                           int64_t *end)
{
    const int64_t c = op->factor[0].cols;
    *first = col / c;
    *end = cols == 0 ? *first : (col + cols - 1) / c + 1;
}

/* Numbers a point that the outputs of the levels below u take, odd and even ones. */
static int64_t between_numbers(const gnomon_cascade *c, int u, int parity)
{
    int64_t numbers = 0;
    for (int t = 1 + parity; t < u; t += 2) {
        const int64_t out = c->span[u] / c->span[t] * gnomon_cascade_k(c, t);
        if (out > numbers) numbers = out;
    }
    return numbers;
}

/* Numbers a point of the slots above granules of depth u. */
static int64_t slot_numbers(const gnomon_cascade *c, int u)
{
    int64_t numbers = 0;
    for (int t = u + 1; t <= c->op->levels; t++)
        numbers += gnomon_cascade_c(c, t);
    return numbers;
}

/* Sets points and depth; three eighths of the memory are for buffers, one for panels that are
 * kept, half for the engine. */
static gnomon_status choose(gnomon_cascade *c, int64_t memory, int64_t points)
{
    const int64_t share = memory / 8 * 3 / c->size; /* numbers */
    const int levels = c->op->levels;
    c->engine_memory = memory / 2;
    c->cache_left = memory / 8;
    c->depth = levels;
    c->points = points;
    const int64_t whole = c->rows + between_numbers(c, levels, 0) + between_numbers(c, levels, 1);
    if (!c->pieces && whole <= share / points) return GNOMON_OK;
    int64_t room = share;
    if (!c->pieces) {
        const int64_t each = c->rows + slot_numbers(c, 1);
        GNOMON_FAIL_IF(each > share, c->ctx, GNOMON_ERROR_MEMORY,
                       GNOMON_ARG("memory_limit") " is too low for this operator: it is %" PRId64
                                                  " bytes and must be at least %" PRId64,
                       memory, (each * c->size + 64) * 8 / 3 + 8);
        c->points = gnomon_min(points, share / 2 > each ? share / 2 / each : 1);
        if (c->points > GNOMON_LANES && c->points < points)
            c->points = c->points / GNOMON_LANES * GNOMON_LANES;
        room = share - c->points * each;
    }
    while (c->depth > 1 &&
           between_numbers(c, c->depth, 0) + between_numbers(c, c->depth, 1) > room / c->points)
        c->depth--;
    return GNOMON_OK;
}

static gnomon_status set_up(gnomon_cascade *c, gnomon_context *ctx, const gnomon_sketch_job *job,
                            int64_t points, bool pieces)
{
    *c = (gnomon_cascade){.ctx = ctx,
                          .kernels = gnomon_context_kernels(ctx),
                          .op = job->op,
                          .f64 = job->f64,
                          .size = job->f64 ? 8 : 4,
                          .row = job->row,
                          .rows = job->rows,
                          .pieces = pieces,
                          .report_of = points};
    c->span[1] = 1;
    for (int t = 2; t <= c->op->levels; t++)
        c->span[t] = c->span[t - 1] * c->op->descriptor.zeta;
    return choose(c, job->memory_limit, points);
}

gnomon_status gnomon_cascade_open(gnomon_cascade *c, gnomon_context *ctx,
                                  const gnomon_sketch_job *job, int64_t points, bool pieces)
{
    GNOMON_TRY(set_up(c, ctx, job, points, pieces));
    gnomon_status status = GNOMON_OK;
    for (int parity = 0; parity < 2 && status == GNOMON_OK; parity++) {
        int64_t bytes;
        status = gnomon_mul(between_numbers(c, c->depth, parity) * c->size, c->points, &bytes)
                     ? gnomon_alloc(ctx, bytes, 1, "a cascade's buffer", &c->between[parity])
                     : gnomon_fail(ctx, GNOMON_ERROR_OVERFLOW, "a cascade's buffer is too large");
    }
    const int lowest = pieces ? 2 : c->depth + 1;
    for (int t = lowest; t <= c->op->levels && status == GNOMON_OK; t++)
        status = gnomon_alloc(ctx, c->points, (size_t)(gnomon_cascade_c(c, t) * c->size),
                              "a cascade's slot", &c->slot[t]);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, c->points, (size_t)(c->rows * c->size), "the sums", &c->root);
    if (status != GNOMON_OK) gnomon_cascade_close(c);
    return status;
}

void gnomon_cascade_close(gnomon_cascade *c)
{
    for (int t = 0; t <= GNOMON_MAX_LEVELS; t++) {
        gnomon_panels_close(c->ctx, &c->whole[t]);
        gnomon_free(c->ctx, c->slot[t]);
        c->slot[t] = NULL;
    }
    gnomon_free(c->ctx, c->between[0]);
    gnomon_free(c->ctx, c->between[1]);
    gnomon_free(c->ctx, c->root);
    c->between[0] = c->between[1] = c->root = NULL;
}

/* How a level runs columns [col, col + cols) of in. */
static gnomon_engine level_engine(gnomon_cascade *c, int level, int64_t col, int64_t cols,
                                  const gnomon_fold *in)
{
    const gnomon_simple *a = &c->op->factor[level - 1];
    const bool last = level == c->op->levels;
    gnomon_engine e = {.ctx = c->ctx,
                       .kernels = c->kernels,
                       .a = a,
                       .f64 = c->f64,
                       .row = last ? c->row : 0,
                       .rows = last ? c->rows : a->rows,
                       .col = col,
                       .cols = cols,
                       .in = *in,
                       .memory = c->engine_memory,
                       .phase = "project",
                       .from = c->report_at,
                       .to = c->report_at,
                       .of = c->report_of};
    gnomon_engine_align(c->kernels, a, &e.row, &e.rows);
    return e;
}

/* Bytes of all the level's panels, cut to p; 0 when there is no room to keep them. */
static int64_t kept_bytes(const gnomon_cascade *c, const gnomon_engine *e, gnomon_panels *p)
{
    gnomon_panels_cut(p, gnomon_kernels_for(c->kernels, e->a), e->a, e->row, e->rows, 0, e->a->cols,
                      false);
    const int64_t bytes = gnomon_panels_bytes(p, c->cache_left - PANELS_NOTED);
    return bytes == INT64_MAX ? 0 : bytes;
}

/* The level's panels if they are, or can be, kept; NULL when there is no room. */
static gnomon_status kept_panels(gnomon_cascade *c, int level, const gnomon_engine *e,
                                 gnomon_panels **kept)
{
    gnomon_panels *p = &c->whole[level];
    *kept = p;
    if (p->panel) return GNOMON_OK;
    const int64_t bytes = kept_bytes(c, e, p);
    if (bytes == 0) {
        *kept = NULL;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_panels_open(c->ctx, p, bytes));
    c->cache_left -= bytes + PANELS_NOTED;
    gnomon_panels_load(c->ctx, p, 0);
    return GNOMON_OK;
}

gnomon_status gnomon_cascade_level(gnomon_cascade *c, int level, bool adjoint, int64_t col,
                                   int64_t cols, const gnomon_fold *in, const gnomon_fold *out,
                                   const gnomon_finish *finish)
{
    gnomon_engine e = level_engine(c, level, col, cols, in);
    e.out = *out;
    e.finish = *finish;
    if (cols == e.a->cols) GNOMON_TRY(kept_panels(c, level, &e, &e.whole));
    GNOMON_TRY(adjoint ? gnomon_engine_adjoint(&e) : gnomon_engine_sketch(&e));
    if (level == 1 && atomic_load(&e.bad)) c->bad = true; /* above, it would be an overflow */
    return GNOMON_OK;
}

/* Raises *most to what a level's engine takes for so many blocks of points points, a number of
 * which is row_stride from that of the next point. */
static gnomon_status level_bytes(gnomon_cascade *c, int level, gnomon_panels *whole, int64_t blocks,
                                 int64_t points, int64_t row_stride, int64_t *most)
{
    const int64_t cols = gnomon_cascade_c(c, level);
    const gnomon_fold in = {.row_stride = row_stride, .end = blocks * points};
    gnomon_engine e = level_engine(c, level, 0, cols, &in);
    gnomon_plan plan;
    if (in.end == 0) return GNOMON_OK;
    e.whole = whole;
    GNOMON_TRY(gnomon_engine_plan(&e, false, &plan));
    *most = gnomon_max(*most, plan.bytes);
    return GNOMON_OK;
}

/* The same over all that gnomon_cascade_push and gnomon_cascade_end run of a level: whole granules
 * and the last one, or single blocks above them; whole batches and the last one. */
static gnomon_status runs_of_level(gnomon_cascade *c, int level, gnomon_panels *whole,
                                   int64_t points, int64_t row_stride, int64_t *most)
{
    const int64_t all = (c->op->descriptor.d - 1) / gnomon_cascade_c(c, 1) + 1;
    const int64_t granule = c->span[c->depth], span = c->span[level];
    int64_t blocks[2] = {1, 0}; /* in a run */
    if (level <= c->depth) {
        blocks[0] = all >= granule ? granule / span : 0;
        blocks[1] = (all % granule + span - 1) / span;
    }
    if (level > 1 && level <= c->depth)
        row_stride = granule / c->span[level - 1] * gnomon_cascade_k(c, level - 1);
    else if (level > 1)
        row_stride = gnomon_cascade_c(c, level);
    for (int i = 0; i < 2; i++) {
        GNOMON_TRY(level_bytes(c, level, whole, blocks[i], c->points, row_stride, most));
        GNOMON_TRY(level_bytes(c, level, whole, blocks[i], points % c->points, row_stride, most));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_cascade_memory(gnomon_context *ctx, const gnomon_sketch_job *job,
                                    int64_t points, int64_t row_stride, int64_t *bytes)
{
    enum { HEAD = 128 }; /* of an allocation */
    gnomon_cascade c;
    GNOMON_TRY(set_up(&c, ctx, job, points, false));
    int64_t numbers = c.rows + between_numbers(&c, c.depth, 0) + between_numbers(&c, c.depth, 1) +
                      slot_numbers(&c, c.depth);
    int64_t held = numbers * c.points * c.size + (c.op->levels + 3) * HEAD, most = 0;
    for (int level = 1; level <= c.op->levels; level++) {
        gnomon_panels panels;
        const gnomon_engine e = level_engine(&c, level, 0, gnomon_cascade_c(&c, level), &no_points);
        const int64_t kept = kept_bytes(&c, &e, &panels);
        if (kept > 0) {
            held += kept + PANELS_NOTED;
            c.cache_left -= kept + PANELS_NOTED;
        }
        GNOMON_TRY(runs_of_level(&c, level, kept > 0 ? &panels : NULL, points, row_stride, &most));
    }
    *bytes = gnomon_min(held + most, job->memory_limit);
    return GNOMON_OK;
}
