/* Ranks for a tolerance. The square of what may be left is shared out between the modes, what one
 * does not use going to those after it. A mode's columns come in blocks; what is left of a few
 * Gaussian vectors that they do not depend on tells when to measure, and then what the mode
 * leaves is measured, so that sums are made of squares and never of differences. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/work.h"

#include <math.h>
#include <string.h>

/* Modes of at most SMALL are not projected; neither are others, up to LARGE, when half of their
 * columns would be needed. */
enum { BLOCK = 32, PROBES = 10, SMALL = 64, LARGE = 8192 };

typedef struct search {
    gnomon_hosvd_work *w;
    gnomon_slabs *x; /* what is projected */
    int mode;
    double budget; /* a square */
    gnomon_operator *op, *test_vectors;
    gnomon_tall *q; /* blocks */
    int64_t blocks, room, columns, most;
    gnomon_tall left; /* of the test vectors */
    double threshold, before;
    double triangle[BLOCK * BLOCK]; /* of the block at hand */
    bool last;                      /* there are no more columns, or only rounding is left */
} search;

static gnomon_status deflate(const search *s, const gnomon_tall *y)
{
    for (int64_t i = 0; i < s->blocks; i++)
        GNOMON_TRY(gnomon_tall_deflate(s->w->ctx, &s->q[i], y));
    return GNOMON_OK;
}

static gnomon_status fill(search *s, const gnomon_tall *y)
{
    gnomon_hosvd_work *w = s->w;
    GNOMON_TRY(gnomon_slabs_sketch(s->x, &s->mode, 1, &s->op, s->columns, y));
    w->out->project_seconds += gnomon_lap(&w->clock);
    for (int i = 0; i < w->options.power; i++) {
        GNOMON_TRY(deflate(s, y));
        GNOMON_TRY(gnomon_orthonormalise(w->ctx, y, s->triangle, &w->orth));
        GNOMON_TRY(deflate(s, y));
        GNOMON_TRY(gnomon_range_power(w, s->x, s->mode, y, s->triangle));
    }
    GNOMON_TRY(gnomon_orthonormalise_against(w->ctx, s->q, s->blocks, y, &w->orth));
    return gnomon_tall_deflate(w->ctx, y, &s->left);
}

static gnomon_status add_block(search *s)
{
    gnomon_hosvd_work *w = s->w;
    const int64_t rest = s->most - s->columns, width = rest < BLOCK ? rest : BLOCK;
    gnomon_tall y = {0};
    if (s->blocks == s->room) {
        const int64_t room = s->room > 0 ? 2 * s->room : 16;
        GNOMON_TRY(gnomon_grow(w->ctx, &s->q, s->room, room, sizeof *s->q, "blocks"));
        s->room = room;
    }
    gnomon_status status =
        gnomon_tall_make(w->ctx, w->f64, w->size[s->mode], width, false, "a mode's range", &y);
    if (status == GNOMON_OK) status = fill(s, &y);
    if (status != GNOMON_OK) {
        gnomon_tall_drop(w->ctx, &y);
        return status;
    }
    s->q[s->blocks++] = y;
    s->columns += width;
    w->out->orthonormalise_seconds += gnomon_lap(&w->clock);
    return GNOMON_OK;
}

/* sqrt(mean |left|^2), whose square is that of what the columns leave of x, on average. */
static double estimate(const search *s)
{
    double norms[PROBES], sum = 0;
    gnomon_tall_norms(s->w->ctx, &s->left, norms);
    for (int64_t j = 0; j < s->left.cols; j++)
        sum += norms[j] * norms[j];
    return sqrt(sum / (double)s->left.cols);
}

/* Columns until the estimate is below the threshold, or there are no more. */
static gnomon_status extend(search *s)
{
    gnomon_hosvd_work *w = s->w;
    const double round = (w->f64 ? 0x1p-53 : 0x1p-24) * w->norm;
    for (;;) {
        GNOMON_TRY(add_block(s));
        const double now = estimate(s);
        const bool floor = now <= 2 * round || (now > 0.7 * s->before && now < 4096 * round);
        s->before = now;
        s->last = s->columns == s->most || floor;
        if (now <= s->threshold || s->last) return GNOMON_OK;
        if (s->most == w->size[s->mode] && s->most <= LARGE && 2 * s->columns > s->most)
            return GNOMON_OK;
    }
}

static gnomon_status assemble(search *s)
{
    gnomon_hosvd_work *w = s->w;
    gnomon_tall *q = &w->factor[s->mode];
    int64_t col = 0;
    gnomon_tall_drop(w->ctx, q);
    GNOMON_TRY(
        gnomon_tall_make(w->ctx, w->f64, w->size[s->mode], s->columns, false, "a mode's range", q));
    for (int64_t i = 0; i < s->blocks; i++) {
        gnomon_tall_copy(w->ctx, &s->q[i], 0, s->q[i].cols, q, col);
        col += s->q[i].cols;
    }
    return GNOMON_OK;
}

/* Shrinks the tensor by the columns found when that leaves little enough: *done. */
static gnomon_status try_columns(search *s, bool *done)
{
    gnomon_hosvd_work *w = s->w;
    gnomon_slabs *current = gnomon_hosvd_current(w);
    gnomon_cube b = {0};
    double rest = 0;
    GNOMON_TRY(assemble(s));
    GNOMON_TRY(gnomon_slabs_shrink(current, &s->mode, 1, w->factor, w->options.memory, &b));
    w->out->shrink_seconds += gnomon_lap(&w->clock);
    gnomon_status status = gnomon_slabs_rest(current, s->mode, &w->factor[s->mode], &b, &rest);
    w->out->measure_seconds += gnomon_lap(&w->clock);
    *done = rest <= s->budget || s->last;
    if (status != GNOMON_OK || !*done) {
        gnomon_cube_drop(w->ctx, &b);
        s->threshold = fmin(0.9 * s->threshold, 0.8 * s->before * sqrt(s->budget / rest));
        return status;
    }
    GNOMON_TRY(gnomon_hosvd_replace(w, &b));
    w->columns[s->mode] = s->columns;
    w->spent += rest;
    /* Where it can't be reached, a hundredth more of the error buys a small core. */
    return gnomon_hosvd_truncate(w, s->mode, w->rank[s->mode],
                                 rest < s->budget ? s->budget - rest : 0.02 * rest);
}

static gnomon_status keep_whole(gnomon_hosvd_work *w, int mode, double budget)
{
    gnomon_tall_drop(w->ctx, &w->factor[mode]);
    w->columns[mode] = 0;
    return gnomon_hosvd_truncate(w, mode, w->rank[mode], budget);
}

static gnomon_status make_test_vectors(search *s)
{
    gnomon_hosvd_work *w = s->w;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    const int64_t there = gnomon_range_columns(s->x, s->mode);
    d.kind = GNOMON_GAUSSIAN;
    d.scaling = GNOMON_UNSCALED;
    /* Other numbers than the projection's, whatever its seed. */
    d.seed = (w->descriptor.seed + (uint64_t)w->name[s->mode]) ^ UINT64_C(0x9e3779b97f4a7c15);
    d.k = there < PROBES ? there : PROBES;
    d.d = there;
    GNOMON_TRY(gnomon_operator_create(w->ctx, &d, &s->test_vectors));
    GNOMON_TRY(
        gnomon_tall_make(w->ctx, w->f64, w->size[s->mode], d.k, false, "test vectors", &s->left));
    GNOMON_TRY(gnomon_slabs_sketch(s->x, &s->mode, 1, &s->test_vectors, 0, &s->left));
    w->out->measure_seconds += gnomon_lap(&w->clock);
    return GNOMON_OK;
}

static gnomon_status find_columns(search *s)
{
    gnomon_hosvd_work *w = s->w;
    bool done = false;
    GNOMON_TRY(gnomon_range_operator(w, s->x, s->mode, s->most, &s->op));
    GNOMON_TRY(make_test_vectors(s));
    while (!done) {
        GNOMON_TRY(extend(s));
        if (s->before > s->threshold && !s->last) return keep_whole(w, s->mode, s->budget);
        GNOMON_TRY(try_columns(s, &done));
    }
    return GNOMON_OK;
}

static gnomon_status shrink_mode(gnomon_hosvd_work *w, int mode, double budget)
{
    const int64_t size = w->size[mode], rank = w->rank[mode], over = w->options.oversample;
    if (size <= SMALL) return keep_whole(w, mode, budget);
    search s = {.w = w, .mode = mode, .budget = budget};
    s.x = w->options.sequential ? gnomon_hosvd_current(w) : &w->x;
    s.most = gnomon_range_columns(s.x, mode);
    if (s.most > size) s.most = size;
    if (over < s.most - rank) s.most = rank + over;
    /* A part is left for the truncation, which finds the fewest columns. */
    s.threshold = 0.5 * sqrt(budget);
    s.before = INFINITY;
    gnomon_status status = find_columns(&s);
    gnomon_operator_destroy(s.op);
    gnomon_operator_destroy(s.test_vectors);
    for (int64_t i = 0; i < s.blocks; i++)
        gnomon_tall_drop(w->ctx, &s.q[i]);
    gnomon_free(w->ctx, s.q);
    gnomon_tall_drop(w->ctx, &s.left);
    return status;
}

gnomon_status gnomon_hosvd_tolerance(gnomon_hosvd_work *w)
{
    /* A little less than asked, for the rounding of what comes after. */
    const double wanted = 0.998 * w->options.tolerance * w->options.tolerance * w->norm * w->norm;
    for (int n = 0; n < w->modes; n++)
        w->columns[n] = w->size[n] <= SMALL ? 0 : w->size[n] / 4;
    gnomon_hosvd_order(w);
    for (int i = 0; i < w->modes; i++) {
        const double left = fmax(wanted - w->spent, 0);
        GNOMON_TRY(shrink_mode(w, w->order[i], left / (w->modes - i)));
    }
    /* What the modes after it have left may need fewer columns of a mode, or allow for it. */
    for (int i = 0; i < w->modes; i++) {
        const double left = fmax(wanted - w->spent, 0);
        GNOMON_TRY(
            gnomon_hosvd_truncate(w, w->order[i], w->rank[w->order[i]], left / (w->modes - i)));
    }
    return GNOMON_OK;
}
