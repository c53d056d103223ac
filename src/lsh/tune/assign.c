/* The nearest centres of points. As in any search integers of few bits are compared first, and what
 * they can't tell apart is in fp64. But points are made integers once for all rounds of training,
 * and a centre that is known to be near leaves little to tell. */
#include "lsh/tune/assign.h"
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "search/centre.h"
#include "search/exact.h"
#include "search/filter.h"

#include <math.h>
#include <string.h>

enum {
    LANES = GNOMON_LANES,
    PREPARED = 64,         /* points of a task */
    CHUNK = 192,           /* the same, that meet the centres together */
    ROOM = 48,             /* survivors of a point, before they are looked through */
    BLOCK_WORDS = 1 << 16, /* of centres, which stay in the second cache */
    FETCHED = 4096,        /* bytes of a point */
    LEAST_COLS = 16,
    MOST_COLS = 4096
};

/* What a point is to the filter. */
typedef struct told {
    double norm, squares;
    float slack, length, floor, scale;
    int32_t start;
} told;

/* A worker's. */
typedef struct scratch {
    double *f64;
    float *x, *tile;
    uint32_t *words; /* CHUNK points, and zeros */
    gnomon_survivor *kept;
} scratch;

struct gnomon_assign {
    gnomon_search s; /* whose queries are the points */
    bool filtered;   /* else every search begins anew */
    int bits, most;
    int64_t steps, stride, ld; /* words of a point, of a point of a chunk */
    uint32_t *words;
    told *told;
    scratch *own;
};

/* ---- points ---- */

static void prepare_points(void *arg, int64_t task, int worker)
{
    gnomon_assign *a = arg;
    const gnomon_search *s = &a->s;
    scratch *own = &a->own[worker];
    const int64_t end = gnomon_min((task + 1) * PREPARED, s->count);
    for (int64_t i = task * PREPARED; i < end; i++) {
        gnomon_filter_query facts;
        gnomon_filter f = {0};
        gnomon_filter_prepare(s, i, a->steps, 0, own->f64, own->x, &facts, &f);
        gnomon_filter_round(own->x, a->steps, a->bits, a->most, s->kernels, &facts, &f,
                            a->words + i * a->stride);
        a->told[i] = (told){facts.norm, facts.squares, f.slack, f.norm, f.floor, f.scale, f.start};
    }
}

static gnomon_status reserve(gnomon_assign *a)
{
    const gnomon_search *s = &a->s;
    gnomon_context *ctx = s->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *a->own, "scratch", &a->own));
    for (int64_t t = 0; t < threads; t++) {
        scratch *own = &a->own[t];
        GNOMON_TRY(
            gnomon_alloc(ctx, gnomon_times(2, s->cols), sizeof *own->f64, "a point", &own->f64));
        GNOMON_TRY(gnomon_alloc(ctx, a->steps, sizeof *own->x, "a point", &own->x));
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(a->steps, LANES), sizeof *own->tile, "centres",
                                &own->tile));
        GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(CHUNK + GNOMON_SIFT_QUERIES, a->ld),
                                     sizeof *own->words, "points", &own->words));
        GNOMON_TRY(gnomon_alloc(ctx, CHUNK * ROOM, sizeof *own->kept, "candidates", &own->kept));
    }
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(s->count, a->stride), sizeof *a->words, "points",
                            &a->words));
    return gnomon_alloc(ctx, s->count, sizeof *a->told, "points", &a->told);
}

/* Eight bits where they are more than a few. */
static gnomon_status set_up(gnomon_assign *a)
{
    gnomon_search *s = &a->s;
    const gnomon_quads *quads = &s->kernels->quads;
    if (s->cols < LEAST_COLS || s->cols > MOST_COLS || s->count == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_centre_estimate(s, &s->queries));
    if (!(s->centre.scale > 0x1p-100 && s->centre.scale < 0x1p100)) return GNOMON_OK;
    a->bits = quads->most > 64 ? 8 : 16;
    a->most = a->bits == 8 ? quads->most : gnomon_filter_most(s->cols);
    a->steps = s->cols + (s->options.metric == GNOMON_COSINE ? 2 : 0);
    a->stride = gnomon_filter_words(quads, a->steps, a->bits);
    a->ld = gnomon_filter_ld(a->stride);
    const int64_t each = a->stride * (int64_t)sizeof *a->words + (int64_t)sizeof *a->told;
    if (s->count > gnomon_memory_limit(s->ctx) / 4 / each) return GNOMON_OK;
    GNOMON_TRY(reserve(a));
    a->filtered = true;
    gnomon_parallel(s->ctx, gnomon_ceil_div(s->count, PREPARED), prepare_points, a);
    return GNOMON_OK;
}

gnomon_status gnomon_assign_open(gnomon_context *ctx, gnomon_metric metric,
                                 const gnomon_matrix *points, gnomon_assign **out)
{
    gnomon_assign *a;
    *out = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *a, "an assignment", &a));
    a->s = (gnomon_search){.ctx = ctx,
                           .kernels = gnomon_cpu_kernels(gnomon_context_isa(ctx))->search,
                           .options = GNOMON_SEARCH_OPTIONS_INIT,
                           .queries = *points,
                           .dense = true,
                           .count = points->rows,
                           .cols = points->cols};
    a->s.options.metric = metric;
    a->s.options.k = 1;
    const gnomon_status status = set_up(a);
    if (status == GNOMON_OK)
        *out = a;
    else
        gnomon_assign_close(a);
    return status;
}

void gnomon_assign_close(gnomon_assign *a)
{
    if (a == NULL) return;
    gnomon_context *ctx = a->s.ctx;
    for (int64_t t = 0; a->own != NULL && t < gnomon_context_threads(ctx); t++) {
        gnomon_free(ctx, a->own[t].f64);
        gnomon_free(ctx, a->own[t].x);
        gnomon_free(ctx, a->own[t].tile);
        gnomon_free(ctx, a->own[t].words);
        gnomon_free(ctx, a->own[t].kept);
    }
    gnomon_free(ctx, a->own);
    gnomon_free(ctx, a->words);
    gnomon_free(ctx, a->told);
    gnomon_free(ctx, a->s.centre.mean);
    gnomon_free(ctx, a->s.centre.mean64);
    gnomon_free(ctx, a);
}

/* ---- centres ---- */

/* A call under way. */
typedef struct assigning {
    gnomon_assign *a;
    gnomon_matrix base;
    const int64_t *rows;
    int64_t points;
    int32_t *nearest;
    double *keys;
    uint32_t *words; /* the centres', by tiles */
    float *bias;
    gnomon_blur *blurs;
    gnomon_asking asking;
} assigning;

static void pack_tile(void *arg, int64_t t, int worker)
{
    const assigning *g = arg;
    const gnomon_assign *a = g->a;
    const gnomon_search *s = &a->s;
    const bool cosine = s->options.metric == GNOMON_COSINE;
    const int64_t first = t * LANES, count = gnomon_min(LANES, g->base.rows - first);
    float *tile = a->own[worker].tile;
    const void *lane[LANES];
    double factor[LANES], squares[LANES] = {0}, dots[LANES];
    for (int64_t l = 0; l < LANES; l++) {
        const int64_t row = first + gnomon_min(l, count - 1);
        lane[l] = gnomon_row_at(&g->base, row);
        factor[l] = cosine ? gnomon_inverse_norm(s->kernels, &g->base, row) : 1;
    }
    if (cosine)
        s->kernels->centre_f64(lane, GNOMON_F32, 1, s->cols, factor, s->centre.mean64, tile);
    else
        s->kernels->centre_f32(lane, GNOMON_F32, 1, s->cols, (float)s->centre.scale, s->centre.mean,
                               tile);
    for (int64_t j = s->cols; j < a->steps; j++)
        for (int l = 0; l < LANES; l++)
            tile[j * LANES + l] = j == s->cols && factor[l] == 0 ? 1 : 0;
    s->kernels->tile_sums(tile, a->steps, NULL, squares, dots);
    for (int l = 0; l < LANES; l++)
        g->bias[first + l] = (float)(-squares[l] / 2);
    float lost[LANES] = {0};
    uint32_t *to = g->words + first * a->stride;
    gnomon_blur blur = gnomon_filter_blur(s, a->steps, 0, squares, (int)count, false);
    const float scale = (a->bits == 8 ? s->kernels->quarter : s->kernels->halve)(
        tile, a->steps, a->most, false, to, lost);
    gnomon_blur_halve(a->steps, scale, lost, LANES, &blur);
    g->blurs[t] = blur;
}

/* ---- a chunk ---- */

typedef struct chunk {
    const assigning *g;
    scratch *own;
    int64_t first;
    gnomon_filter filters[CHUNK];
    gnomon_ranked best[CHUNK];
} chunk;

static int64_t row_of(const chunk *c, int64_t q)
{
    return c->g->rows != NULL ? c->g->rows[c->first + q] : c->first + q;
}

/* Drops candidates that another surely comes before. */
static void shrink(gnomon_filter *f)
{
    float least = f->least;
    for (int32_t i = 0; i < f->count; i++)
        least = f->kept[i].low > least ? f->kept[i].low : least;
    int32_t count = 0;
    for (int32_t i = 0; i < f->count; i++) {
        const gnomon_survivor x = f->kept[i];
        f->kept[count] = x;
        count += !(x.high < least);
    }
    f->count = count;
    f->least = least;
}

/* Points lie apart: a later one is fetched meanwhile. */
static void fetch_point(const chunk *c, int64_t q)
{
    const gnomon_matrix *m = &c->g->a->s.queries;
    const int64_t bytes = m->cols * (int64_t)gnomon_dtype_size(m->dtype);
    gnomon_prefetch(gnomon_row_at(m, row_of(c, q)), gnomon_min(bytes, FETCHED));
}

static float least_of(const chunk *c, int64_t q)
{
    const told *t = &c->g->a->told[row_of(c, q)];
    const gnomon_filter_query facts = {.norm = t->norm, .squares = t->squares};
    return gnomon_filter_least(&c->g->a->s, &facts, c->best[q].key, false);
}

static void verify(chunk *c, int64_t q)
{
    const assigning *g = c->g;
    gnomon_filter *f = &c->filters[q];
    if (f->count == 0) return;
    const gnomon_search *s = &g->a->s;
    const gnomon_query query = gnomon_query_for(s, row_of(c, q), &g->base, c->own->f64);
    int64_t rows[ROOM];
    double keys[ROOM];
    for (int32_t i = 0; i < f->count; i++)
        rows[i] = (int64_t)f->kept[i].row;
    gnomon_exact_keys(s, query, &g->base, rows, f->count, keys);
    for (int32_t i = 0; i < f->count; i++) {
        const gnomon_ranked x = {keys[i], rows[i]};
        if (gnomon_ranked_before(x, c->best[q])) c->best[q] = x;
    }
    f->count = 0;
}

static void full(void *arg, int64_t q)
{
    chunk *c = arg;
    gnomon_filter *f = &c->filters[q];
    shrink(f);
    if (f->count <= ROOM - ROOM / 8) return;
    verify(c, q);
    const float least = least_of(c, q);
    if (least > f->least) f->least = least;
}

/* What a point lets pass: what may be as near as its guess. */
static void begin(chunk *c, int64_t q)
{
    const assigning *g = c->g;
    const gnomon_assign *a = g->a;
    const int64_t row = row_of(c, q);
    const int32_t guess = g->nearest[c->first + q];
    const told *t = &a->told[row];
    memcpy(c->own->words + q * a->ld, a->words + row * a->stride,
           (size_t)a->stride * sizeof *a->words);
    c->best[q] = (gnomon_ranked){INFINITY, INT64_MAX};
    c->filters[q] = (gnomon_filter){.least = -INFINITY,
                                    .slack = t->slack,
                                    .norm = t->length,
                                    .floor = t->floor,
                                    .scale = t->scale,
                                    .start = t->start,
                                    .whole = INFINITY,
                                    .self = UINT32_MAX,
                                    .room = ROOM,
                                    .kept = c->own->kept + q * ROOM};
    if (guess < 0) return;
    const gnomon_query query = gnomon_query_for(&a->s, row, &g->base, c->own->f64);
    c->best[q] = (gnomon_ranked){gnomon_exact_key(&a->s, query, &g->base, guess), guess};
    c->filters[q].least = least_of(c, q);
    c->filters[q].self = (uint32_t)guess;
}

static void assign_chunk(void *arg, int64_t task, int worker)
{
    assigning *g = arg;
    const gnomon_assign *a = g->a;
    const gnomon_search *s = &a->s;
    const int64_t tiles = gnomon_ceil_div(g->base.rows, LANES);
    const int64_t block = gnomon_max(BLOCK_WORDS / (a->stride * LANES) / 2 * 2, 2);
    chunk c = {.g = g, .own = &a->own[worker], .first = task * CHUNK};
    const int64_t count = gnomon_min(CHUNK, g->points - c.first);
    if (gnomon_asking_stops(&g->asking, worker)) return;
    for (int64_t q = 0; q < count; q++) {
        if (q + 1 < count && g->nearest[c.first + q + 1] >= 0) fetch_point(&c, q + 1);
        begin(&c, q);
    }
    gnomon_sift sift = {.queries = c.own->words,
                        .ld = a->ld,
                        .count = count,
                        .filters = c.filters,
                        .steps = a->stride,
                        .first = true,
                        .last = true,
                        .full = full,
                        .arg = &c};
    for (int64_t t = 0; t < tiles; t += block) {
        sift.tiles = g->words + t * LANES * a->stride;
        sift.tile_count = gnomon_min(block, tiles - t);
        sift.bias = g->bias + t * LANES;
        sift.blurs = g->blurs + t;
        sift.row = (uint32_t)(t * LANES);
        sift.rows = (uint32_t)gnomon_min(block * LANES, g->base.rows - t * LANES);
        (a->bits == 8 ? s->kernels->sift_quarters : s->kernels->sift_halves)(&sift);
    }
    for (int64_t q = 0; q < count; q++)
        shrink(&c.filters[q]);
    for (int64_t q = 0; q < count; q++) {
        if (q + 1 < count && c.filters[q + 1].count > 0) fetch_point(&c, q + 1);
        verify(&c, q);
        g->nearest[c.first + q] = (int32_t)c.best[q].id;
        if (g->keys != NULL) g->keys[c.first + q] = c.best[q].key;
    }
}

static gnomon_status assign_filtered(assigning *g)
{
    gnomon_assign *a = g->a;
    gnomon_context *ctx = a->s.ctx;
    const int64_t tiles = gnomon_ceil_div(g->base.rows, LANES), places = tiles * LANES;
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(places, a->stride), sizeof *g->words, "centres", &g->words);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, places, sizeof *g->bias, "centres", &g->bias);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, tiles, sizeof *g->blurs, "centres", &g->blurs);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, tiles, pack_tile, g);
        gnomon_parallel(ctx, gnomon_ceil_div(g->points, CHUNK), assign_chunk, g);
        status = g->asking.status;
    }
    gnomon_free(ctx, g->words);
    gnomon_free(ctx, g->bias);
    gnomon_free(ctx, g->blurs);
    return status;
}

/* ---- without a filter of its own ---- */

static gnomon_status search_some(const assigning *g, const gnomon_matrix *some, int64_t first)
{
    gnomon_context *ctx = g->a->s.ctx;
    gnomon_neighbors found = {.struct_size = sizeof found};
    GNOMON_TRY(gnomon_neighbors_exact(ctx, &g->base, some, &g->a->s.options, &found));
    for (int64_t i = 0; i < some->rows; i++) {
        g->nearest[first + i] = (int32_t)found.ids[i];
        if (g->keys != NULL) g->keys[first + i] = found.distances[i];
    }
    gnomon_neighbors_free(ctx, &found);
    return GNOMON_OK;
}

/* Some points at a time, copied where they don't follow each other. */
static gnomon_status assign_by_search(assigning *g)
{
    enum { MOST = 65536 };
    const gnomon_matrix *all = &g->a->s.queries;
    gnomon_context *ctx = g->a->s.ctx;
    const int64_t bytes = all->cols * (int64_t)gnomon_dtype_size(all->dtype);
    const int64_t fit = gnomon_memory_limit(ctx) / 4 / gnomon_max(bytes, 1);
    const int64_t batch = gnomon_min(g->points, gnomon_max(gnomon_min(MOST, fit), 1));
    char *copies = NULL;
    gnomon_status status = GNOMON_OK;
    if (g->rows != NULL)
        status = gnomon_alloc(ctx, gnomon_times(batch, bytes), 1, "points", &copies);
    for (int64_t at = 0; at < g->points && status == GNOMON_OK; at += batch) {
        const int64_t here = gnomon_min(batch, g->points - at);
        gnomon_matrix some = gnomon_rows(all, at, here);
        if (g->rows != NULL) {
            for (int64_t i = 0; i < here; i++)
                gnomon_row_copy(all, g->rows[at + i], copies + i * bytes);
            some = gnomon_matrix_rowmajor(copies, all->dtype, here, all->cols);
        }
        status = search_some(g, &some, at);
    }
    gnomon_free(ctx, copies);
    return status;
}

gnomon_status gnomon_assign_nearest(gnomon_assign *a, float *centres, int64_t count,
                                    const int64_t *rows, int64_t points, int32_t *nearest,
                                    double *keys)
{
    assigning g = {.a = a,
                   .base = gnomon_matrix_rowmajor(centres, GNOMON_F32, count, a->s.cols),
                   .rows = rows,
                   .points = points,
                   .nearest = nearest,
                   .keys = keys,
                   .asking = {.ctx = a->s.ctx, .phase = "search", .total = points}};
    return a->filtered ? assign_filtered(&g) : assign_by_search(&g);
}
