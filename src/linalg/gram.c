/* Gram matrices in double precision, by kernels of our own. Columns are packed a tile of
 * GNOMON_LANES at a time, some rows at once, and of the tiles' products those on the diagonal and
 * above it are summed, squares (i, j) with i <= j, by j. */
#include "linalg/gram.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "kernels.h"
#include "linalg/tall.h"

#include <math.h>
#include <stdatomic.h>

enum {
    LANES = GNOMON_LANES,
    SQUARE = LANES * LANES, /* sums of two tiles */
    SLICE = 128,            /* rows that are packed at once */
    TILE = SLICE * LANES,   /* numbers of a tile then */
    RANGES = 32,
    LARGEST = 1 << 22, /* numbers of all places together, where there are more than two */
    STRIP = 4,         /* tiles of a strip at least */
    ADDED = 1 << 11    /* numbers that a task adds up */
};

static int64_t tiles_of(int64_t cols)
{
    return gnomon_ceil_div(cols, LANES);
}

static int64_t square_of(int64_t i, int64_t j)
{
    return (j * (j + 1) / 2 + i) * SQUARE;
}

/* A row's numbers to the first tiles, each SLICE rows after the last. */
#define DEFINE_PACK(name, type)                                                         \
    static void name(const type *from, int64_t cols, int64_t tiles, double *to)         \
    {                                                                                   \
        for (int64_t t = 0; t < tiles; t++, from += LANES, cols -= LANES, to += TILE) { \
            if (cols >= LANES) {                                                        \
                for (int l = 0; l < LANES; l++)                                         \
                    to[l] = (double)from[l];                                            \
            } else {                                                                    \
                for (int l = 0; l < LANES; l++)                                         \
                    to[l] = l < cols ? (double)from[l] : 0;                             \
            }                                                                           \
        }                                                                               \
    }

DEFINE_PACK(pack_f32, float)
DEFINE_PACK(pack_f64, double)

/* Rows of A, and tiles [first, last) of the sums' columns. */
typedef struct part {
    const void *a;
    int64_t ld, rows, cols, first, last;
    bool f64, floats; /* floats: so all numbers are */
    bool onto;        /* onto: the rows' sums are added to what is there */
} part;

static void add_slice(const gnomon_kernels *kernels, const part *p, double *packed, double *sums)
{
    for (int64_t i = 0; i < p->rows; i++) {
        if (p->f64)
            pack_f64((const double *)p->a + i * p->ld, p->cols, p->last, packed + i * LANES);
        else
            pack_f32((const float *)p->a + i * p->ld, p->cols, p->last, packed + i * LANES);
    }
    for (int64_t j = p->first; j < p->last; j++)
        for (int64_t i = 0; i <= j; i++)
            kernels->gram(p->rows, packed + i * TILE, packed + j * TILE, p->floats, p->onto,
                          sums + square_of(i, j));
}

int64_t gnomon_gram_numbers(int64_t cols)
{
    return gnomon_times(gnomon_times(tiles_of(cols), tiles_of(cols) + 1), SQUARE / 2);
}

int64_t gnomon_gram_room(int64_t cols)
{
    return gnomon_times(tiles_of(cols), TILE);
}

void gnomon_gram_add(const gnomon_context *ctx, bool floats, int64_t rows, int64_t cols,
                     const double *a, int64_t ld, double *room, double *sums)
{
    for (int64_t row = 0; row < rows; row += SLICE) {
        const part p = {.a = a + row * ld,
                        .ld = ld,
                        .rows = gnomon_min(SLICE, rows - row),
                        .cols = cols,
                        .last = tiles_of(cols),
                        .f64 = true,
                        .floats = floats,
                        .onto = true};
        add_slice(gnomon_context_kernels(ctx), &p, room, sums);
    }
}

void gnomon_gram_row(int64_t cols, const double *sums, int64_t row, double *to)
{
    const int64_t own = row / LANES, lane = row % LANES;
    for (int64_t tile = 0; tile < tiles_of(cols); tile++, to += LANES) {
        const bool below = tile < own;
        const double *from =
            sums + (below ? square_of(tile, own) + lane : square_of(own, tile) + lane * LANES);
        for (int64_t l = 0; l < gnomon_min(LANES, cols - tile * LANES); l++)
            to[l] = from[below ? l * LANES : l];
    }
}

/* ---- a tall matrix ---- */

/* The rows are cut into a few ranges, each task sums one into a place of its own, and the places
 * are added in their order. Where the places would be large there are fewer, and tasks take strips
 * of the tiles' columns. How all is cut depends on the shape alone. */
typedef struct gram {
    const gnomon_kernels *kernels;
    const gnomon_tall *t;
    int64_t numbers, tiles; /* numbers: of a place */
    int64_t ranges, units;  /* units of SLICE rows in all */
    int64_t strips;
    double *places, *packed; /* packed: one a worker */
    double *out;
    atomic_bool infinite;
} gram;

/* The first tile of a strip, so that all have about as many squares. */
static int64_t strip_begin(const gram *g, int64_t strip)
{
    const double share = (double)strip / (double)g->strips;
    return gnomon_min((int64_t)ceil((double)g->tiles * sqrt(share)), g->tiles);
}

static int64_t range_begin(const gram *g, int64_t range)
{
    return gnomon_min(range * g->units / g->ranges * SLICE, g->t->rows);
}

static void sum_range(void *arg, int64_t task, int worker)
{
    const gram *g = arg;
    const int64_t range = task % g->ranges, strip = g->strips - 1 - task / g->ranges;
    int64_t row = range_begin(g, range);
    const int64_t end = range_begin(g, range + 1);
    part p = {.ld = g->t->cols,
              .cols = g->t->cols,
              .first = strip_begin(g, strip),
              .last = strip_begin(g, strip + 1),
              .f64 = g->t->f64,
              .floats = !g->t->f64};
    do { /* of no rows too the sums are 0 */
        p.a = gnomon_tall_row(g->t, row);
        p.rows = gnomon_min(SLICE, end - row);
        add_slice(g->kernels, &p, g->packed + worker * g->tiles * TILE,
                  g->places + range * g->numbers);
        p.onto = true;
        row += SLICE;
    } while (row < end);
}

/* The first place += the others, some numbers of it. */
static void add_places(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gram *g = arg;
    const int64_t count = gnomon_min(ADDED, g->numbers - task * ADDED);
    double *to = g->places + task * ADDED;
    for (int64_t r = 1; r < g->ranges; r++) {
        const double *from = to + r * g->numbers;
        for (int64_t i = 0; i < count; i++)
            to[i] += from[i];
    }
}

static void write_row(void *arg, int64_t row, int worker)
{
    (void)worker;
    gram *g = arg;
    const int64_t n = g->t->cols;
    double *to = g->out + row * n;
    bool finite = true;
    gnomon_gram_row(n, g->places, row, to);
    for (int64_t j = 0; j < n; j++)
        finite = finite && isfinite(to[j]);
    if (!finite) atomic_store_explicit(&g->infinite, true, memory_order_relaxed);
}

static void cut(gram *g)
{
    g->units = gnomon_max(gnomon_ceil_div(g->t->rows, SLICE), 1);
    g->ranges = gnomon_max(gnomon_min(LARGEST / gnomon_max(g->numbers, 1), RANGES), 2);
    g->ranges = gnomon_min(g->ranges, g->units);
    g->strips = gnomon_max(gnomon_min(RANGES / g->ranges, g->tiles / STRIP), 1);
}

gnomon_status gnomon_tall_gram(gnomon_context *ctx, const gnomon_tall *t, double *out, bool *finite)
{
    gram g = {.kernels = gnomon_context_kernels(ctx),
              .t = t,
              .numbers = gnomon_gram_numbers(t->cols),
              .tiles = tiles_of(t->cols),
              .out = out};
    atomic_init(&g.infinite, false);
    GNOMON_FAIL_IF(g.numbers < 0, ctx, GNOMON_ERROR_OVERFLOW,
                   "the columns' product does not fit 63 bits");
    cut(&g);
    gnomon_status status = gnomon_alloc(ctx, gnomon_times(g.ranges, g.numbers), sizeof *g.places,
                                        "sums over rows", &g.places);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, gnomon_times(gnomon_gram_room(t->cols), gnomon_context_threads(ctx)),
                         sizeof *g.packed, "a block of rows", &g.packed);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, g.ranges * g.strips, sum_range, &g);
        gnomon_parallel(ctx, gnomon_ceil_div(g.numbers, ADDED), add_places, &g);
        gnomon_parallel(ctx, t->cols, write_row, &g);
    }
    gnomon_free(ctx, g.packed);
    gnomon_free(ctx, g.places);
    *finite = !atomic_load(&g.infinite);
    return status;
}
