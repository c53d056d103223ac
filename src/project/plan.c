/* How a run of the engine shares out its memory. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "project/engine.h"

#include <inttypes.h>

enum {
    WHOLE = 32 << 20,  /* an operator of no more than this is kept, memory permitting */
    WINDOW = 8 << 20,  /* else panels are made so many bytes at a time */
    GROUP = 256 << 10, /* tiles of a task should stay in the second cache */
    MOST_GROUP = 8,
    ACROSS = 4,       /* tiles at least when points are contiguous: they share pages of memory */
    SHARED = 8 << 20, /* packed tiles that several tasks read */
    SLACK = 4096      /* heads of allocations */
};

void gnomon_engine_align(const gnomon_kernels *kernels, const gnomon_simple *a, int64_t *row,
                         int64_t *rows)
{
    const int64_t multiple = gnomon_kernels_for(kernels, a)->rows_multiple;
    if (multiple == 0) return;
    *rows += *row % multiple;
    *row -= *row % multiple;
}

/* Bytes of a slot, for so many tiles a task. */
static int64_t slot_bytes(const gnomon_plan *p, int64_t group)
{
    return group * (p->tile_bytes + (p->direct ? p->acc_bytes : 0)) + p->scratch;
}

/* Chooses slots and tiles a task so that they take no more than 'bytes' if that can be. */
static void choose_slots(gnomon_plan *p, int64_t threads, int64_t tiles, bool across, int64_t bytes)
{
    p->group = gnomon_min(MOST_GROUP, GROUP / p->tile_bytes);
    if (across) p->group = gnomon_max(p->group, ACROSS);
    p->group = gnomon_max(1, gnomon_min(p->group, tiles / (6 * threads)));
    p->slots = threads;
    if (p->slots * slot_bytes(p, p->group) > bytes) p->group = 1;
    if (p->slots * slot_bytes(p, 1) > bytes) p->slots = gnomon_max(1, bytes / slot_bytes(p, 1));
}

/* One tile, of up to 16 points: each thread takes some of the rows, makes those of the operator for
 * itself and packs the points for itself, so that no thread waits for another or reads what another
 * has just written. Not for kinds of few nonzeros: there the packing would take longer than the
 * rows' sums, and to cut the rows by their multiple of 64 leaves most threads without any, while
 * all of them can fill panels. False when the memory does not suffice. */
static bool plan_own_rows(const gnomon_engine *e, const gnomon_kind_kernels *kind, int64_t threads,
                          gnomon_plan *p)
{
    const int64_t unit = kind->rows_multiple, units = (e->rows - 1) / unit + 1;
    const int64_t cuts = gnomon_min(units, threads);
    gnomon_panels cut;
    gnomon_panels_cut(&cut, kind, e->a, e->row, gnomon_min((units - 1) / cuts + 1, units) * unit,
                      e->col, e->cols, false);
    const int64_t panel = gnomon_round_up(gnomon_panels_largest(&cut), GNOMON_ALIGN);
    const int64_t slot = p->tile_bytes + panel + p->scratch;
    if (cuts < 2 || slot > e->memory / 2 / cuts || p->acc_bytes > e->memory / 4) return false;
    p->own_rows = true;
    p->cuts = p->slots = cuts;
    p->panel_bytes = panel;
    p->batch = e->sums ? 0 : 1;
    p->bytes = SLACK + cuts * slot + p->batch * p->acc_bytes;
    return true;
}

/* One tile of a kind whose chunks' sums can be made apart: a task makes those of all rows, and they
 * are added in the chunks' order. So tables of a chunk's sums, and random words, which come for 64
 * rows at a time, serve all rows; but sums go through memory, which gains nothing where each thread
 * has many rows. False also when the memory does not suffice. */
static bool plan_own_chunks(const gnomon_engine *e, const gnomon_kind_kernels *kind,
                            const gnomon_panels *cut, int64_t threads, gnomon_plan *p)
{
    enum { MANY = 256, A_SLOT = 8, ROUND = 8 << 20 };
    const int64_t panel = gnomon_round_up(gnomon_panels_largest(cut), GNOMON_ALIGN);
    const int64_t slot = p->tile_bytes + panel + p->scratch;
    const int64_t slots = gnomon_min(threads, cut->chunks);
    if (!kind->adds_sums || slots < 2 || e->rows / threads >= MANY) return false;
    const int64_t room = gnomon_min(e->memory / 4, gnomon_max(ROUND, slots * p->acc_bytes));
    const int64_t round = gnomon_min(cut->chunks, gnomon_min(room / p->acc_bytes, A_SLOT * slots));
    if (round < slots || slot > e->memory / 4 / slots || p->acc_bytes > e->memory / 4) return false;
    p->own_chunks = round;
    p->slots = slots;
    p->panel_bytes = panel;
    p->batch = e->sums ? 0 : 1;
    p->bytes = SLACK + slots * slot + (round + p->batch) * p->acc_bytes;
    return true;
}

gnomon_status gnomon_engine_plan(const gnomon_engine *e, bool adjoint, gnomon_plan *p)
{
    const gnomon_kind_kernels *kind = gnomon_kernels_for(e->kernels, e->a);
    const int64_t threads = gnomon_context_threads(e->ctx);
    const int64_t size = e->f64 ? 8 : 4;
    const int64_t tiles =
        gnomon_tiles_of(e->in.end) - e->in.begin / GNOMON_LANES; /* that have a point */
    const bool own_sums = !e->sums;
    gnomon_panels cut, fine;
    gnomon_panels_cut(&cut, kind, e->a, e->row, e->rows, e->col, e->cols, false);
    gnomon_panels_cut(&fine, kind, e->a, e->row, e->rows, e->col, e->cols, true);

    *p = (gnomon_plan){.slots = 1, .group = 1, .batch = 1, .shared_chunks = 1};
    p->tile_bytes = gnomon_min(cut.chunk, e->cols) * GNOMON_LANES * size;
    p->acc_bytes = e->rows * GNOMON_LANES * size;
    p->scratch = (kind->scratch_bytes(e->a) + GNOMON_ALIGN - 1) / GNOMON_ALIGN * GNOMON_ALIGN;

    const int64_t smallest_window = e->whole ? 0 : gnomon_panels_largest(&fine);
    const int64_t each_sums = own_sums ? p->acc_bytes : 0;
    const int64_t needed = smallest_window + slot_bytes(p, 1) + each_sums + SLACK;
    GNOMON_FAIL_IF(
        needed > e->memory, e->ctx, GNOMON_ERROR_MEMORY,
        GNOMON_ARG("memory_limit") " is too low for this operator: %" PRId64
                                   " bytes of it are left for a task that needs at least %" PRId64,
        e->memory, needed);

    if (!adjoint && !e->whole && threads > 1 && tiles == 1 &&
        (plan_own_chunks(e, kind, &cut, threads, p) ||
         (kind->rows_multiple > 0 && !kind->make && plan_own_rows(e, kind, threads, p))))
        return GNOMON_OK;

    /* The panels: all of them if they are few, else a window. */
    const int64_t quarter = e->memory / 4;
    if (e->whole) {
        p->whole = true;
    } else if (gnomon_panels_bytes(&cut, gnomon_min(WHOLE, quarter)) < INT64_MAX) {
        p->whole = true;
        p->window = gnomon_panels_bytes(&cut, WHOLE);
    } else {
        p->smallest = gnomon_panels_largest(&cut) > quarter;
        const gnomon_panels *chosen = p->smallest ? &fine : &cut;
        const int64_t chunk_bytes = gnomon_panels_chunk_bytes(chosen);
        p->window = gnomon_max(gnomon_min(gnomon_max(WINDOW, adjoint ? chunk_bytes : 0), quarter),
                               gnomon_panels_largest(chosen));
        p->split = adjoint && chunk_bytes > p->window;
    }
    int64_t rest = e->memory - SLACK - p->window;
    const int64_t all_sums = own_sums && tiles <= rest / p->acc_bytes ? tiles * p->acc_bytes
                                                                      : (own_sums ? INT64_MAX : 0);

    /* Few tiles: the rows must be cut to keep all threads busy. */
    const int64_t chunk_bytes = cut.chunk * GNOMON_LANES * size;
    const int64_t shared_bytes = kind->steps ? chunk_bytes : p->tile_bytes;
    if (!adjoint && threads > 1 && tiles < 4 * threads && all_sums <= rest / 4 &&
        tiles <= rest / 4 / shared_bytes && threads * p->scratch <= rest / 4) {
        p->shared = true;
        p->tile_bytes = shared_bytes;
        p->slots = threads;
        p->batch = own_sums ? tiles : 0;
        p->shared_chunks = gnomon_min(
            cut.chunks, gnomon_max(1, gnomon_min(SHARED, rest / 4) / (tiles * p->tile_bytes)));
        p->bytes = SLACK + p->window + threads * p->scratch + (own_sums ? all_sums : 0) +
                   p->shared_chunks * tiles * p->tile_bytes;
        return GNOMON_OK;
    }

    const bool kept = e->keep && all_sums <= rest / 2;
    p->direct = !adjoint && own_sums && p->whole && !kept;
    if (p->direct && p->window + slot_bytes(p, 1) + SLACK > e->memory) p->direct = false;
    choose_slots(p, threads, tiles, !adjoint && e->in.row_stride == 1, rest / 2);
    rest -= p->slots * slot_bytes(p, p->group);
    const int64_t each = p->acc_bytes + (p->split ? p->tile_bytes : 0);
    if (p->direct || !own_sums)
        p->batch = 0;
    else
        p->batch = gnomon_min(tiles, rest / each);
    if (rest < 0 || (p->batch == 0 && !p->direct && own_sums)) {
        /* The least that works. */
        p->whole = e->whole;
        p->smallest = true;
        p->direct = false;
        p->split = false; /* one tile at a time: its slot keeps the coordinates between windows */
        p->window = smallest_window;
        p->slots = p->group = p->batch = 1;
        if (!own_sums) p->batch = 0;
    }
    p->bytes = SLACK + p->window + p->slots * slot_bytes(p, p->group) +
               p->batch * (p->acc_bytes + (p->split ? p->tile_bytes : 0));
    return GNOMON_OK;
}
