/* Sparse points through a cascade: only blocks that hold a nonzero, or stand above one that does,
 * are ever made; the others are zeros. */
#include "base/error.h"
#include "base/memory.h"
#include "project/cascade/cascade.h"
#include "project/sparse/scatter.h"

#include <string.h>

static const gnomon_finish as_it_is = {.alpha = 1, .beta = 0, .scale = 1};

/* Blocks of level 1 with nonzeros, point by point, ascending. */
typedef struct touched {
    int64_t count;
    int64_t *start, *stop;  /* their entries */
    int64_t *point, *block; /* whose they are */
    int64_t *cursor, *end;  /* a point's blocks that are still to be taken */
    /* those of a granule */
    int64_t some;
    int64_t *some_start, *some_stop, *some_point, *some_block, *to;
} touched;

static gnomon_status open_touched(gnomon_context *ctx, touched *t, const gnomon_nonzeros *z,
                                  int64_t width)
{
    *t = (touched){0};
    for (int64_t i = 0; i < z->points; i++)
        for (int64_t e = z->start[i]; e < z->start[i + 1]; e++)
            t->count += e == z->start[i] || z->col[e] / width != z->col[e - 1] / width;
    int64_t **const arrays[] = {&t->start,     &t->stop,       &t->point,
                                &t->block,     &t->to,         &t->some_start,
                                &t->some_stop, &t->some_point, &t->some_block};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        GNOMON_TRY(gnomon_alloc(ctx, t->count, sizeof **arrays[a], "touched blocks", arrays[a]));
    GNOMON_TRY(gnomon_alloc(ctx, z->points, sizeof *t->cursor, "touched blocks", &t->cursor));
    return gnomon_alloc(ctx, z->points, sizeof *t->end, "touched blocks", &t->end);
}

static void close_touched(gnomon_context *ctx, touched *t)
{
    int64_t *const arrays[] = {t->start,      t->stop,       t->point,     t->block,
                               t->to,         t->some_start, t->some_stop, t->some_point,
                               t->some_block, t->cursor,     t->end};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        gnomon_free(ctx, arrays[a]);
}

/* Finds the blocks, and counts columns from their block's first. */
static void find_touched(touched *t, gnomon_nonzeros *z, int64_t width)
{
    int64_t n = 0;
    for (int64_t i = 0; i < z->points; i++) {
        t->cursor[i] = n;
        for (int64_t e = z->start[i]; e < z->start[i + 1]; e++) {
            const int64_t block = z->col[e] / width;
            if (e == z->start[i] || block != t->block[n - 1]) {
                t->start[n] = e;
                t->point[n] = i;
                t->block[n++] = block;
            }
            t->stop[n - 1] = e + 1;
            z->col[e] -= block * width;
        }
        t->end[i] = n;
    }
}

/* The next granule of which some point has a block; false when there is none. */
static bool next_granule(touched *t, int64_t points, int64_t span, int64_t *granule)
{
    *granule = INT64_MAX;
    for (int64_t i = 0; i < points; i++) {
        if (t->cursor[i] == t->end[i]) continue;
        const int64_t g = t->block[t->cursor[i]] / span;
        if (g < *granule) *granule = g;
    }
    if (*granule == INT64_MAX) return false;
    t->some = 0;
    for (int64_t i = 0; i < points; i++) {
        for (; t->cursor[i] < t->end[i]; t->cursor[i]++) {
            const int64_t v = t->cursor[i];
            if (t->block[v] / span != *granule) break;
            t->some_start[t->some] = t->start[v];
            t->some_stop[t->some] = t->stop[v];
            t->some_point[t->some] = i;
            t->some_block[t->some++] = t->block[v];
        }
    }
    return true;
}

/* Makes the list of blocks that of the blocks above them, and 'to' where the old ones' k numbers
 * go in an array of the new ones' zeta * k numbers. */
static void rise(touched *t, int64_t zeta, int64_t k)
{
    int64_t parents = 0;
    for (int64_t i = 0; i < t->some; i++) {
        const int64_t point = t->some_point[i], block = t->some_block[i];
        if (parents == 0 || t->some_point[parents - 1] != point ||
            t->some_block[parents - 1] != block / zeta) {
            t->some_point[parents] = point;
            t->some_block[parents++] = block / zeta;
        }
        t->to[i] = ((parents - 1) * zeta + block % zeta) * k;
    }
    t->some = parents;
}

/* 'to' for blocks that leave the granule: a row per point. */
static void leave(touched *t, int64_t row_stride)
{
    for (int64_t i = 0; i < t->some; i++)
        t->to[i] = t->some_point[i] * row_stride;
}

static gnomon_status run_granule(gnomon_cascade *c, touched *t, const gnomon_nonzeros *z,
                                 int64_t granule, int64_t scatter_memory)
{
    const int64_t zeta = c->op->descriptor.zeta;
    gnomon_fold last;
    GNOMON_TRY(gnomon_cascade_place(c, c->depth, granule, &last));
    int64_t count = t->some; /* of the level's blocks; some: of those above */
    for (int level = 1;; level++, count = t->some) {
        const bool leaves = level == c->depth;
        const int64_t k = gnomon_cascade_k(c, level);
        gnomon_fold out = last;
        if (leaves) {
            leave(t, last.row_stride);
        } else {
            rise(t, zeta, k);
            out.data = c->between[(level - 1) % 2];
            out.col = 0;
            out.cols = k;
            out.col_stride = 1;
            memset(out.data, 0, (size_t)(t->some * zeta * k * c->size));
        }
        out.offset = t->to;
        out.end = count;
        if (level == 1) {
            const gnomon_scatter scatter = {.ctx = c->ctx,
                                            .kernels = c->kernels,
                                            .a = &c->op->factor[0],
                                            .f64 = c->f64,
                                            .points = count,
                                            .start = t->some_start,
                                            .stop = t->some_stop,
                                            .col = z->col,
                                            .value = z->value,
                                            .sums = out.data,
                                            .to = t->to,
                                            .rows = k,
                                            .memory = scatter_memory,
                                            .report_at = c->report_at,
                                            .report_of = c->report_of};
            GNOMON_TRY(gnomon_scatter_run(&scatter));
        } else {
            const int64_t width = gnomon_cascade_c(c, level);
            const gnomon_matrix m = {.data = c->between[level % 2],
                                     .dtype = c->f64 ? GNOMON_F64 : GNOMON_F32,
                                     .rows = count,
                                     .cols = width,
                                     .row_stride = width,
                                     .col_stride = 1};
            const gnomon_fold in = gnomon_fold_view(&m, 0);
            GNOMON_TRY(gnomon_cascade_level(c, level, false, 0, width, &in, &out, &as_it_is));
        }
        if (leaves) return gnomon_cascade_placed(c, c->depth, granule);
    }
}

gnomon_status gnomon_cascade_add_sparse(gnomon_cascade *c, gnomon_nonzeros *z,
                                        int64_t scatter_memory)
{
    const int64_t width = gnomon_cascade_c(c, 1);
    touched t;
    gnomon_status status = open_touched(c->ctx, &t, z, width);
    if (status == GNOMON_OK) {
        find_touched(&t, z, width);
        int64_t granule;
        while (status == GNOMON_OK && next_granule(&t, z->points, c->span[c->depth], &granule))
            status = run_granule(c, &t, z, granule, scatter_memory);
    }
    close_touched(c->ctx, &t);
    return status;
}
