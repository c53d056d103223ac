/* The sketch side of the engine. A window of panels is filled; then tasks, each a few tiles,
 * pack their points chunk by chunk and run the kernels over all rows; so points are read
 * once a window. With few tiles the points are packed first, for tasks that cut the rows; with one
 * tile each task makes its rows, or chunks, of a dense operator itself and there is no window. */
#include "project/engine.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/slots.h"

#include <math.h>
#include <string.h>

enum {
    PACK_COLS = 1024, /* of one packing task */
    STRIP = 512,      /* columns that a group's tiles take turns at */
    MOST_GROUP = 8,   /* tiles of a task that cuts the rows */
    JOINED = 256      /* sums of a task that joins them */
};

typedef struct run {
    gnomon_engine *e;
    gnomon_plan plan;
    const gnomon_kind_kernels *kind;
    gnomon_panels own, *panels;
    int64_t size;       /* bytes of a number */
    int64_t chunk;      /* columns of a tile at most */
    char *slots;        /* plan.slots times slot_bytes */
    int64_t slot_bytes; /* tiles, sums when direct, scratch */
    char *sums;         /* tile sums_first's and those after it */
    int64_t sums_first;
    char *packed;              /* shared tiles: chunk by chunk, plan.shared_chunks of them */
    int64_t tile, tiles;       /* the phase's */
    int64_t group;             /* tiles a task of the phase */
    int64_t panel, panels_end; /* shared: the phase's, counted in the window */
    int64_t cuts, steps;       /* shared: row cuts of a group, steps of a panel at most */
    int64_t col, cols;         /* own_rows: the stretch of columns */
    char *parts;               /* own_chunks: sums of chunks */
    int64_t first, count;      /* own_chunks: the round's */
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

static void pack(run *r, int64_t tile, int64_t col, int64_t cols, char *out)
{
    gnomon_engine *e = r->e;
    if (!gnomon_fold_pack(&e->in, e->kernels, e->f64, tile, col, cols, out))
        atomic_store_explicit(&e->bad, true, memory_order_relaxed);
}

/* Strip by strip, so that what tiles have in common (lines of the cache, pages of memory) is still
 * at hand when the next tile comes to it. */
static void pack_group(run *r, int64_t tile, int64_t count, int64_t col, int64_t cols, char *out)
{
    const int64_t strip = count > 1 ? STRIP : cols;
    for (int64_t j = 0; j < cols; j += strip)
        for (int64_t t = 0; t < count; t++)
            pack(r, tile + t, col + j, gnomon_min(strip, cols - j),
                 out + (t * r->chunk + j) * GNOMON_LANES * r->size);
}

static void apply(const run *r, const gnomon_panel *panel, int64_t first, int64_t count,
                  const gnomon_tiles *tiles)
{
    if (r->e->f64)
        r->kind->sketch_f64(panel, first, count, tiles);
    else
        r->kind->sketch_f32(panel, first, count, tiles);
}

static void store(run *r, int64_t tile, const char *sums)
{
    const gnomon_engine *e = r->e;
    gnomon_fold_store(&e->out, e->f64, tile, e->row, e->rows, sums, &e->finish);
}

/* A group of tiles through the whole window. */
static void group_task(void *arg, int64_t task, int64_t number)
{
    run *r = arg;
    char *slot = slot_at(r, number);
    const int64_t tile = r->tile + task * r->group;
    const int64_t count = gnomon_min(r->group, r->tile + r->tiles - tile);
    const int64_t stride = r->chunk * GNOMON_LANES;
    char *sums = slot + r->plan.group * r->plan.tile_bytes;
    char *scratch = slot + r->slot_bytes - r->plan.scratch;
    if (r->plan.direct)
        memset(sums, 0, (size_t)(count * r->plan.acc_bytes));
    else
        sums = sums_of(r, tile);
    int64_t col = -1;
    for (int64_t i = 0; i < r->panels->count; i++) {
        const gnomon_panel *panel = &r->panels->panel[i];
        if (panel->col != col) {
            col = panel->col;
            pack_group(r, tile, count, col, panel->cols, slot);
        }
        const gnomon_tiles tiles = {count,
                                    slot,
                                    stride,
                                    sums + (panel->row - r->e->row) * GNOMON_LANES * r->size,
                                    r->plan.acc_bytes / r->size,
                                    scratch};
        apply(r, panel, 0, panel->rows, &tiles);
    }
    if (!r->plan.direct) return;
    for (int64_t t = 0; t < count; t++)
        store(r, tile + t, sums + t * r->plan.acc_bytes);
}

static char *packed_at(const run *r, int64_t chunk, int64_t tile)
{
    return r->packed + (chunk * r->tiles + tile) * r->plan.tile_bytes;
}

/* Bytes before the panel's first column in a packed tile. */
static int64_t lead_of(const run *r, const gnomon_panel *panel)
{
    return r->kind->steps ? panel->col % r->panels->chunk * GNOMON_LANES * r->size : 0;
}

/* A kind's rows that are cut apart. */
static int64_t unit_of(const run *r)
{
    if (r->kind->steps) return GNOMON_GATHERED;
    return r->kind->rows_multiple ? r->kind->rows_multiple : r->e->rows;
}

static int64_t units_of(const run *r)
{
    return gnomon_ceil_div(r->e->rows, unit_of(r));
}

/* Where the rows of one of so many cuts begin; those of the last end at cut_at(r, cuts, cuts). */
static int64_t cut_at(const run *r, int64_t cut, int64_t cuts)
{
    return gnomon_min(units_of(r) * cut / cuts * unit_of(r), r->e->rows);
}

/* Number of the panel's chunk among those packed. */
static int64_t packed_chunk(const run *r, const gnomon_panel *panel)
{
    return panel->col / r->panels->chunk - r->panels->panel[r->panel].col / r->panels->chunk;
}

static void pack_task(void *arg, int64_t task, int64_t slot)
{
    (void)slot;
    run *r = arg;
    const int64_t pieces = (r->chunk + PACK_COLS - 1) / PACK_COLS;
    const int64_t from = task % pieces * PACK_COLS, tile = task / pieces % r->tiles;
    const int64_t chunk = task / pieces / r->tiles;
    const gnomon_panel *panel = &r->panels->panel[r->panel + chunk * r->panels->per_chunk];
    if (from >= panel->cols) return;
    pack(r, r->tile + tile, panel->col + from, gnomon_min(PACK_COLS, panel->cols - from),
         packed_at(r, chunk, tile) + lead_of(r, panel) + from * GNOMON_LANES * r->size);
}

static void prepare_task(void *arg, int64_t task, int64_t slot)
{
    (void)slot;
    run *r = arg;
    const int64_t step = task % r->steps, tile = task / r->steps % r->tiles;
    const int64_t chunk = task / r->steps / r->tiles;
    const gnomon_panel *panel = &r->panels->panel[r->panel + chunk * r->panels->per_chunk];
    if (step >= r->kind->steps(panel)) return;
    (r->e->f64 ? r->kind->prepare_f64 : r->kind->prepare_f32)(panel, step,
                                                              packed_at(r, chunk, tile));
}

static void cut_task(void *arg, int64_t task, int64_t number)
{
    run *r = arg;
    char *slot = slot_at(r, number);
    const gnomon_engine *e = r->e;
    const int64_t cut = task % r->cuts;
    const int64_t begin = cut_at(r, cut, r->cuts), end = cut_at(r, cut + 1, r->cuts);
    const int64_t tile = task / r->cuts * r->group, count = gnomon_min(r->group, r->tiles - tile);
    for (int64_t i = r->panel; i < r->panels_end; i++) {
        const gnomon_panel *panel = &r->panels->panel[i];
        const int64_t row = panel->row - e->row;
        const int64_t first = begin > row ? begin - row : 0;
        const int64_t last = gnomon_min(panel->rows, end - row);
        if (first >= last) continue;
        const gnomon_tiles tiles = {count,
                                    packed_at(r, packed_chunk(r, panel), tile),
                                    r->plan.tile_bytes / r->size,
                                    sums_of(r, r->tile + tile) + row * GNOMON_LANES * r->size,
                                    r->plan.acc_bytes / r->size,
                                    slot + r->slot_bytes - r->plan.scratch};
        if (r->kind->steps)
            (e->f64 ? r->kind->gather_f64 : r->kind->gather_f32)(panel, first, last - first,
                                                                 &tiles);
        else
            apply(r, panel, first, last - first, &tiles);
    }
}

/* Panels [begin, end) of p, whole chunks, made in the slot and applied to the only tile. */
static void own_panels(run *r, const gnomon_panels *p, int64_t begin, int64_t end, char *slot,
                       char *sums)
{
    for (int64_t i = begin; i < end; i++) {
        gnomon_panel panel = gnomon_panels_at(p, i);
        panel.data = slot + r->plan.tile_bytes;
        gnomon_panel_fill(r->kind, &panel);
        if (i % p->per_chunk == 0) pack(r, r->tile, panel.col, panel.cols, slot);
        const gnomon_tiles tiles = {1,
                                    slot,
                                    r->chunk * GNOMON_LANES,
                                    sums + (panel.row - r->e->row) * GNOMON_LANES * r->size,
                                    r->plan.acc_bytes / r->size,
                                    slot + r->slot_bytes - r->plan.scratch};
        apply(r, &panel, 0, panel.rows, &tiles);
    }
}

/* Some rows of the only tile, through a stretch of columns. */
static void own_task(void *arg, int64_t task, int64_t number)
{
    run *r = arg;
    const gnomon_engine *e = r->e;
    const int64_t begin = cut_at(r, task, r->plan.cuts), end = cut_at(r, task + 1, r->plan.cuts);
    gnomon_panels cut;
    gnomon_panels_cut(&cut, r->kind, e->a, e->row + begin, end - begin, r->col, r->cols, false);
    own_panels(r, &cut, 0, cut.total, slot_at(r, number), sums_of(r, r->tile));
}

/* The sums of a chunk of the only tile. */
static void chunk_task(void *arg, int64_t task, int64_t number)
{
    run *r = arg;
    const int64_t begin = (r->first + task) * r->own.per_chunk;
    char *part = r->parts + task * r->plan.acc_bytes;
    memset(part, 0, (size_t)r->plan.acc_bytes);
    own_panels(r, &r->own, begin, begin + r->own.per_chunk, slot_at(r, number), part);
}

/* The round's sums of some rows join the others, in the chunks' order. */
static void join_task(void *arg, int64_t task, int64_t number)
{
    (void)number;
    run *r = arg;
    const int64_t begin = task * JOINED;
    const int64_t count = gnomon_min(JOINED, r->e->rows * GNOMON_LANES - begin);
    char *sums = sums_of(r, r->tile) + begin * r->size;
    for (int64_t c = 0; c < r->count; c++) {
        const char *part = r->parts + c * r->plan.acc_bytes + begin * r->size;
        if (r->e->f64)
            for (int64_t i = 0; i < count; i++)
                ((double *)(void *)sums)[i] += ((const double *)(const void *)part)[i];
        else
            for (int64_t i = 0; i < count; i++)
                ((float *)(void *)sums)[i] += ((const float *)(const void *)part)[i];
    }
}

/* Tiles a task and row cuts of a phase: those by which the threads read the least of the operator
 * and of the tiles, among those that keep them at work. What a tile's task does for all of its rows
 * is done once a cut, so that there are few of these. */
static void cut_phase(run *r)
{
    const int64_t threads = r->plan.slots, tiles = r->tiles, units = units_of(r);
    const int64_t most = gnomon_min(units, (4 * threads - 1) / tiles + 1) * tiles;
    const double panel = (double)gnomon_panels_largest(r->panels);
    const double all_rows = panel / (double)r->panels->panel_rows * (double)r->e->rows;
    double least = INFINITY;
    r->group = 1;
    r->cuts = gnomon_min(units, (4 * threads - 1) / tiles + 1);
    for (int64_t group = 1; group <= gnomon_min(tiles, MOST_GROUP); group++) {
        const int64_t groups = (tiles - 1) / group + 1;
        for (int64_t cuts = 1; cuts <= gnomon_min(units, most / groups); cuts++) {
            const int64_t rounds = (groups * cuts - 1) / threads + 1;
            if (10 * tiles * cuts < 9 * threads * rounds * group) continue;
            const double read =
                (all_rows / (double)cuts + (double)(group * r->plan.tile_bytes)) * (double)rounds;
            if (read >= least) continue;
            least = read;
            r->group = group;
            r->cuts = cuts;
        }
    }
}

/* The window, its points packed first: a few chunks at a time. */
static void shared_phases(run *r)
{
    const gnomon_panels *p = r->panels;
    cut_phase(r);
    /* A window that cuts a chunk holds panels of that one only. */
    const int64_t step = r->plan.shared_chunks * p->per_chunk;
    for (int64_t i = 0; i < p->count; i += step) {
        r->panel = i;
        r->panels_end = gnomon_min(p->count, i + step);
        const int64_t chunks = (r->panels_end - i - 1) / p->per_chunk + 1;
        in_slots(r, chunks * r->tiles * ((r->chunk + PACK_COLS - 1) / PACK_COLS), pack_task);
        r->steps = 0;
        for (int64_t c = i; r->kind->steps && c < r->panels_end; c += p->per_chunk)
            r->steps = gnomon_max(r->steps, r->kind->steps(&p->panel[c]));
        if (r->steps > 0) in_slots(r, chunks * r->tiles * r->steps, prepare_task);
        in_slots(r, ((r->tiles - 1) / r->group + 1) * r->cuts, cut_task);
    }
}

static void clear_task(void *arg, int64_t task, int64_t slot)
{
    (void)slot;
    run *r = arg;
    memset(sums_of(r, r->tile + task), 0, (size_t)r->plan.acc_bytes);
}

static void store_task(void *arg, int64_t task, int64_t slot)
{
    (void)slot;
    run *r = arg;
    store(r, r->tile + task, sums_of(r, r->tile + task));
}

/* Rows by what they cost: one of a Gaussian operator as much as eight of another. */
static double rows_by_cost(const gnomon_engine *e)
{
    return (double)e->rows / (e->a->kind == GNOMON_GAUSSIAN ? 1 : 8);
}

/* Tiles that go between two reports of progress: about a tenth of a second's work. Without a
 * listener there is nothing to stop for. */
static int64_t wave_tiles(const run *r)
{
    const gnomon_engine *e = r->e;
    if (!e->ctx->progress) return INT64_MAX;
    const double cols = (double)gnomon_min(e->cols, r->panels->room * r->chunk);
    const double tiles = 1e9 / (GNOMON_LANES * cols * (rows_by_cost(e) + 16));
    return tiles < (double)(4 * r->plan.slots) ? 4 * r->plan.slots : (int64_t)tiles;
}

/* Columns between two reports of progress, a multiple of the chunk. */
static int64_t stretch(const run *r)
{
    const gnomon_engine *e = r->e;
    if (!e->ctx->progress) return INT64_MAX;
    const double chunks = 1e9 / (GNOMON_LANES * (rows_by_cost(e) + 16)) / (double)r->panels->chunk;
    return chunks < 1 ? r->panels->chunk : (int64_t)chunks * r->panels->chunk;
}

/* The only tile, with sums of its own where the caller has none. */
static void begin_only(run *r, int64_t tile)
{
    r->tile = tile;
    r->tiles = 1;
    if (r->e->sums) return;
    r->sums_first = tile;
    clear_task(r, 0, 0);
}

/* The only tile through all columns. */
static gnomon_status run_own_rows(run *r, int64_t tile, int64_t total)
{
    gnomon_engine *e = r->e;
    const int64_t step = stretch(r), last = e->col + e->cols;
    begin_only(r, tile);
    for (r->col = e->col; r->col < last; r->col += r->cols) {
        /* chunks begin at multiples: only the last column may end within one */
        r->cols = gnomon_min(step - r->col % r->panels->chunk, last - r->col);
        const double share = (double)(r->col - e->col) / (double)e->cols;
        GNOMON_TRY(gnomon_engine_report(e, (int64_t)(share * (double)total), total));
        in_slots(r, r->plan.cuts, own_task);
        if (e->keep && atomic_load(&e->bad)) return GNOMON_OK;
    }
    if (!e->sums) store_task(r, 0, 0);
    return GNOMON_OK;
}

/* The same, chunks apart. */
static gnomon_status run_own_chunks(run *r, int64_t tile, int64_t total)
{
    gnomon_engine *e = r->e;
    const int64_t chunks = r->own.chunks;
    const int64_t round = gnomon_min(r->plan.own_chunks, stretch(r) / r->own.chunk);
    GNOMON_TRY(gnomon_alloc(e->ctx, r->plan.own_chunks, (size_t)r->plan.acc_bytes,
                            "the sums of chunks", &r->parts));
    begin_only(r, tile);
    for (r->first = 0; r->first < chunks; r->first += r->count) {
        const double share = (double)r->first / (double)chunks;
        GNOMON_TRY(gnomon_engine_report(e, (int64_t)(share * (double)total), total));
        r->count = gnomon_min(round, chunks - r->first);
        in_slots(r, r->count, chunk_task);
        if (e->keep && atomic_load(&e->bad)) return GNOMON_OK;
        in_slots(r, gnomon_ceil_div(e->rows * GNOMON_LANES, JOINED), join_task);
    }
    if (!e->sums) store_task(r, 0, 0);
    return GNOMON_OK;
}

/* Tiles [begin, end) through all panels. */
static gnomon_status run_batch(run *r, int64_t begin, int64_t end, int64_t *done, int64_t total)
{
    gnomon_engine *e = r->e;
    const bool own_sums = !e->sums && !r->plan.direct;
    r->tile = begin;
    r->tiles = end - begin;
    if (own_sums) {
        r->sums_first = begin;
        in_slots(r, end - begin, clear_task);
    }
    const int64_t wave = r->plan.shared ? INT64_MAX : wave_tiles(r);
    for (int64_t first = 0; first < r->panels->total; first += r->panels->count) {
        gnomon_panels_load(e->ctx, r->panels, first);
        for (int64_t tile = begin; tile < end; tile += r->tiles) {
            r->tile = tile;
            r->tiles = gnomon_min(wave, end - tile);
            r->group = r->plan.group;
            GNOMON_TRY(gnomon_engine_report(e, *done, total));
            if (r->plan.shared)
                shared_phases(r);
            else
                in_slots(r, (r->tiles + r->group - 1) / r->group, group_task);
            *done += r->tiles * r->panels->count;
            if (e->keep && atomic_load(&e->bad)) return GNOMON_OK;
        }
    }
    r->tile = begin;
    if (own_sums) in_slots(r, end - begin, store_task);
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
        if (!plan->own_rows && plan->own_chunks == 0)
            GNOMON_TRY(gnomon_panels_open(e->ctx, &r->own, plan->window));
    }
    const int64_t begin = e->in.begin / GNOMON_LANES, end = gnomon_tiles_of(e->in.end);
    const int64_t batch = plan->batch ? plan->batch : end - begin;
    r->chunk = gnomon_min(r->panels->chunk, e->cols);
    r->slot_bytes = plan->scratch;
    if (plan->own_rows || plan->own_chunks > 0)
        r->slot_bytes += plan->tile_bytes + plan->panel_bytes;
    else if (!plan->shared)
        r->slot_bytes += plan->group * (plan->tile_bytes + (plan->direct ? plan->acc_bytes : 0));
    GNOMON_TRY(
        gnomon_alloc(e->ctx, plan->slots, (size_t)r->slot_bytes, "tiles of points", &r->slots));
    if (plan->shared)
        GNOMON_TRY(gnomon_alloc(e->ctx, gnomon_times(end - begin, plan->shared_chunks),
                                (size_t)plan->tile_bytes, "tiles of points", &r->packed));
    if (e->sums) {
        r->sums = e->sums;
    } else if (!plan->direct) {
        GNOMON_TRY(
            gnomon_alloc(e->ctx, plan->batch, (size_t)plan->acc_bytes, "the sums", &r->sums));
    }
    int64_t done = 0;
    const int64_t total = (end - begin) * r->panels->total;
    if (plan->own_rows) return run_own_rows(r, begin, total);
    if (plan->own_chunks > 0) return run_own_chunks(r, begin, total);
    for (int64_t tile = begin; tile < end; tile += batch)
        GNOMON_TRY(run_batch(r, tile, gnomon_min(end, tile + batch), &done, total));
    return GNOMON_OK;
}

gnomon_status gnomon_engine_sketch(gnomon_engine *e)
{
    run r = {.e = e, .kind = gnomon_kernels_for(e->kernels, e->a), .size = e->f64 ? 8 : 4};
    atomic_init(&e->bad, false);
    if (e->in.begin >= e->in.end) return GNOMON_OK;
    GNOMON_TRY(gnomon_engine_plan(e, false, &r.plan));
    const gnomon_status status = run_all(&r);
    if (!e->whole) gnomon_panels_close(e->ctx, &r.own);
    gnomon_free(e->ctx, r.slots);
    gnomon_free(e->ctx, r.packed);
    gnomon_free(e->ctx, r.parts);
    if (!e->sums) gnomon_free(e->ctx, r.sums);
    return status;
}

gnomon_status gnomon_engine_report(const gnomon_engine *e, int64_t done, int64_t total)
{
    const double part = (double)done / (double)total;
    return gnomon_progress(e->ctx, e->phase, e->from + (int64_t)(part * (double)(e->to - e->from)),
                           e->of);
}

typedef struct store_job {
    const gnomon_engine *e;
    int64_t bytes;
    int64_t begin;
} store_job;

static void store_kept(void *arg, int64_t task, int worker)
{
    (void)worker;
    const store_job *job = arg;
    const gnomon_engine *e = job->e;
    const int64_t tile = job->begin + task;
    gnomon_fold_store(&e->out, e->f64, tile, e->row, e->rows, (char *)e->sums + tile * job->bytes,
                      &e->finish);
}

void gnomon_engine_store(gnomon_engine *e)
{
    if (e->out.begin >= e->out.end) return;
    store_job job = {e, e->rows * GNOMON_LANES * (e->f64 ? 8 : 4), e->out.begin / GNOMON_LANES};
    gnomon_parallel(e->ctx, gnomon_tiles_of(e->out.end) - job.begin, store_kept, &job);
}
