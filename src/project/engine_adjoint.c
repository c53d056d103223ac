/* The adjoint side of the engine. The points' k-vectors are packed once per batch; a window of
 * panels is filled, whole chunks of columns if memory allows; each task makes one chunk of a few
 * tiles' coordinates and writes it out. */
#include "project/engine.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/slots.h"

#include <string.h>

typedef struct run {
    gnomon_engine *e;
    gnomon_plan plan;
    const gnomon_kind_kernels *kind;
    gnomon_panels own, *panels;
    int64_t size, chunk;
    char *slots;
    int64_t slot_bytes; /* tiles, scratch */
    char *sums;         /* the batch's packed vectors, T[rows][GNOMON_LANES] a tile */
    int64_t sums_first;
    char *split;         /* the batch's coordinates of one chunk, when it takes several windows */
    int64_t tile, tiles; /* the phase's */
    int64_t groups;
} run;

static void in_slots(run *r, int64_t tasks, gnomon_slot_fn fn)
{
    gnomon_in_slots(r->e->ctx, r->plan.slots, tasks, fn, r);
}

static char *slot_at(const run *r, int64_t slot)
{
    return r->slots + slot * r->slot_bytes;
}

static char *sums_of(const run *r, int64_t tile)
{
    return r->sums + (tile - r->sums_first) * r->plan.acc_bytes;
}

static void pack_task(void *arg, int64_t task, int64_t slot)
{
    (void)slot;
    run *r = arg;
    gnomon_engine *e = r->e;
    const int64_t tile = r->tile + task;
    if (!gnomon_fold_pack(&e->in, e->kernels, e->f64, tile, e->row, e->rows, sums_of(r, tile)))
        atomic_store_explicit(&e->bad, true, memory_order_relaxed);
}

/* One group of tiles, one chunk of the window. */
static void group_task(void *arg, int64_t task, int64_t number)
{
    run *r = arg;
    char *slot = slot_at(r, number);
    const gnomon_engine *e = r->e;
    const gnomon_panels *p = r->panels;
    const int64_t tile = r->tile + task % r->groups * r->plan.group;
    const int64_t count = gnomon_min(r->plan.group, r->tile + r->tiles - tile);
    const int64_t begin = task / r->groups * p->per_chunk;
    const int64_t end = gnomon_min(begin + p->per_chunk, p->count);
    const gnomon_panel *panel = &p->panel[begin];
    char *out = r->plan.split ? r->split + (tile - r->sums_first) * r->plan.tile_bytes : slot;
    const bool starts = panel->row == e->row;
    const bool ends = p->panel[end - 1].row + p->panel[end - 1].rows == e->row + e->rows;
    if (starts) memset(out, 0, (size_t)(count * r->plan.tile_bytes));
    for (int64_t i = begin; i < end; i++) {
        const gnomon_panel *q = &p->panel[i];
        const gnomon_tiles tiles = {count,
                                    out,
                                    r->chunk * GNOMON_LANES,
                                    sums_of(r, tile) + (q->row - e->row) * GNOMON_LANES * r->size,
                                    r->plan.acc_bytes / r->size,
                                    slot + r->slot_bytes - r->plan.scratch};
        if (e->f64)
            r->kind->adjoint_f64(q, &tiles);
        else
            r->kind->adjoint_f32(q, &tiles);
    }
    if (!ends) return;
    for (int64_t t = 0; t < count; t++)
        gnomon_fold_store(&e->out, e->f64, tile + t, panel->col, panel->cols,
                          out + t * r->plan.tile_bytes, &e->finish);
}

/* Tiles that go between two reports of progress. */
static int64_t wave_tiles(const run *r)
{
    const gnomon_engine *e = r->e;
    if (!e->ctx->progress) return INT64_MAX;
    const double rows = (double)e->rows / (e->a->kind == GNOMON_GAUSSIAN ? 1 : 2);
    const double cols = (double)gnomon_min(e->cols, r->panels->room * r->chunk);
    const double tiles = 1e9 / (GNOMON_LANES * cols * (rows + 16));
    return tiles < (double)(4 * r->plan.slots) ? 4 * r->plan.slots : (int64_t)tiles;
}

static gnomon_status run_batch(run *r, int64_t begin, int64_t end, int64_t *done, int64_t total)
{
    gnomon_engine *e = r->e;
    r->sums_first = begin;
    r->tile = begin;
    r->tiles = end - begin;
    in_slots(r, r->tiles, pack_task);
    const int64_t wave = wave_tiles(r);
    for (int64_t first = 0; first < r->panels->total; first += r->panels->count) {
        gnomon_panels_load(e->ctx, r->panels, first);
        const int64_t chunks = (r->panels->count - 1) / r->panels->per_chunk + 1;
        for (int64_t tile = begin; tile < end; tile += r->tiles) {
            r->tile = tile;
            r->tiles = gnomon_min(wave, end - tile);
            r->groups = (r->tiles - 1) / r->plan.group + 1;
            GNOMON_TRY(gnomon_engine_report(e, *done, total));
            in_slots(r, r->groups * chunks, group_task);
            *done += r->tiles * r->panels->count;
        }
    }
    return GNOMON_OK;
}

static gnomon_status run_all(run *r)
{
    gnomon_engine *e = r->e;
    const gnomon_plan *plan = &r->plan;
    r->panels = e->whole;
    if (!e->whole) {
        gnomon_panels_cut(&r->own, r->kind, e->a, e->row, e->rows, e->col, e->cols, plan->smallest);
        r->panels = &r->own;
        GNOMON_TRY(gnomon_panels_open(e->ctx, &r->own, plan->window));
    }
    r->chunk = gnomon_min(r->panels->chunk, e->cols);
    r->slot_bytes = plan->group * plan->tile_bytes + plan->scratch;
    GNOMON_TRY(gnomon_alloc(e->ctx, plan->slots, (size_t)r->slot_bytes, "tiles of coordinates",
                            &r->slots));
    GNOMON_TRY(
        gnomon_alloc(e->ctx, plan->batch, (size_t)plan->acc_bytes, "tiles of points", &r->sums));
    if (plan->split)
        GNOMON_TRY(gnomon_alloc(e->ctx, plan->batch, (size_t)plan->tile_bytes,
                                "tiles of coordinates", &r->split));
    const int64_t begin = e->in.begin / GNOMON_LANES, end = gnomon_tiles_of(e->in.end);
    int64_t done = 0;
    const int64_t total = (end - begin) * r->panels->total;
    for (int64_t tile = begin; tile < end; tile += plan->batch)
        GNOMON_TRY(run_batch(r, tile, gnomon_min(end, tile + plan->batch), &done, total));
    return GNOMON_OK;
}

gnomon_status gnomon_engine_adjoint(gnomon_engine *e)
{
    run r = {.e = e, .kind = gnomon_kernels_for(e->kernels, e->a), .size = e->f64 ? 8 : 4};
    atomic_init(&e->bad, false);
    if (e->in.begin >= e->in.end) return GNOMON_OK;
    GNOMON_TRY(gnomon_engine_plan(e, true, &r.plan));
    const gnomon_status status = run_all(&r);
    if (!e->whole) gnomon_panels_close(e->ctx, &r.own);
    gnomon_free(e->ctx, r.slots);
    gnomon_free(e->ctx, r.sums);
    gnomon_free(e->ctx, r.split);
    return status;
}
