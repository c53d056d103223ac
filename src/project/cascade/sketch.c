#include "base/error.h"
#include "base/memory.h"
#include "project/cascade/cascade.h"
#include "project/rows.h"

#include <string.h>

static const gnomon_finish as_it_is = {.alpha = 1, .beta = 0, .scale = 1};

/* Numbers of the cascade's own, one row per point. */
static gnomon_fold numbers(const gnomon_cascade *c, char *data, int64_t row_stride, int64_t col,
                           int64_t cols, int64_t block)
{
    const gnomon_matrix m = {.data = data,
                             .dtype = c->f64 ? GNOMON_F64 : GNOMON_F32,
                             .rows = c->batch,
                             .cols = cols,
                             .row_stride = row_stride,
                             .col_stride = 1};
    gnomon_fold f = gnomon_fold_view(&m, col);
    f.block = block;
    return f;
}

static gnomon_status run_slot(gnomon_cascade *c, int level);

gnomon_status gnomon_cascade_place(gnomon_cascade *c, int level, int64_t block, gnomon_fold *out)
{
    const int64_t zeta = c->op->descriptor.zeta, k = gnomon_cascade_k(c, level);
    for (int t = 2; t <= level; t++) {
        if (c->slot[t] && c->current[t] >= 0) GNOMON_TRY(run_slot(c, t));
    }
    if (level == c->op->levels) {
        *out = numbers(c, c->root, c->rows, c->row, c->rows, k);
        return GNOMON_OK;
    }
    const int up = level + 1;
    const int64_t parent = block / zeta, width = gnomon_cascade_c(c, up);
    if (c->current[up] >= 0 && c->current[up] != parent) GNOMON_TRY(run_slot(c, up));
    if (c->current[up] < 0) {
        memset(c->slot[up], 0, (size_t)(c->batch * width * c->size));
        c->current[up] = parent;
    }
    *out = numbers(c, c->slot[up] + block % zeta * k * c->size, width, 0, k, k);
    return GNOMON_OK;
}

gnomon_status gnomon_cascade_placed(gnomon_cascade *c, int level, int64_t block)
{
    const int64_t zeta = c->op->descriptor.zeta;
    if (level == c->op->levels || block % zeta != zeta - 1) return GNOMON_OK;
    return run_slot(c, level + 1);
}

/* Works off a slot. */
static gnomon_status run_slot(gnomon_cascade *c, int level)
{
    const int64_t block = c->current[level], width = gnomon_cascade_c(c, level);
    c->current[level] = -1;
    gnomon_fold out;
    GNOMON_TRY(gnomon_cascade_place(c, level, block, &out));
    const gnomon_fold in = numbers(c, c->slot[level], width, 0, width, width);
    GNOMON_TRY(gnomon_cascade_level(c, level, false, 0, width, &in, &out, &as_it_is));
    return gnomon_cascade_placed(c, level, block);
}

/* Blocks [begin, end) of level 1, all of them of one granule. */
static gnomon_status run_granule(gnomon_cascade *c, int depth, gnomon_fold in, int64_t begin,
                                 int64_t end)
{
    const int64_t zeta = c->op->descriptor.zeta, granule = begin / c->span[depth];
    gnomon_fold last;
    GNOMON_TRY(gnomon_cascade_place(c, depth, granule, &last));
    in.first = begin;
    in.end = (end - begin) * c->batch;
    /* The granule's own numbers of the blocks that are not all zeros. */
    int64_t lo = begin - granule * c->span[depth], hi = end - granule * c->span[depth];
    for (int t = 1;; t++) {
        const int64_t k = gnomon_cascade_k(c, t), all = c->span[depth] / c->span[t] * k;
        char *data = c->between[(t - 1) % 2];
        gnomon_fold out = t == depth ? last : numbers(c, data, all, 0, all, k);
        out.first = lo;
        out.end = (hi - lo) * c->batch;
        GNOMON_TRY(
            gnomon_cascade_level(c, t, false, 0, gnomon_cascade_c(c, t), &in, &out, &as_it_is));
        if (t == depth) return gnomon_cascade_placed(c, depth, granule);
        in = numbers(c, data + lo * k * c->size, all, lo * k, (hi - lo) * k,
                     gnomon_cascade_c(c, t + 1));
        lo = lo / zeta;
        hi = (hi - 1) / zeta + 1;
        in.first = lo;
        in.end = (hi - lo) * c->batch;
    }
}

void gnomon_cascade_begin(gnomon_cascade *c, int64_t points, int64_t first, int64_t end)
{
    c->batch = points;
    c->first = first;
    c->end = end;
    for (int t = 0; t <= GNOMON_MAX_LEVELS; t++)
        c->current[t] = -1;
    memset(c->root, 0, (size_t)(points * c->rows * c->size));
}

gnomon_status gnomon_cascade_push(gnomon_cascade *c, const gnomon_matrix *x, int64_t col)
{
    int64_t block, end;
    gnomon_cascade_blocks(c->op, col, x->cols, &block, &end);
    gnomon_fold in = gnomon_fold_view(x, col);
    in.block = gnomon_cascade_c(c, 1);
    while (block < end) {
        /* The deepest granule of which nothing has gone before and nothing is still to come. */
        int depth = c->depth;
        int64_t last = end;
        for (; depth > 0; depth--) {
            const int64_t begin = block / c->span[depth] * c->span[depth];
            last = begin + c->span[depth];
            if (last > c->end) last = c->end;
            if ((begin < c->first ? c->first : begin) == block && last <= end) break;
        }
        GNOMON_TRY(run_granule(c, depth, in, block, last));
        block = last;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_cascade_end(gnomon_cascade *c)
{
    for (int t = 2; t <= c->op->levels; t++) {
        if (c->slot[t] && c->current[t] >= 0) GNOMON_TRY(run_slot(c, t));
    }
    return GNOMON_OK;
}

/* All points, batch by batch. With 'keep', the only batch is not written when bad is found. */
static gnomon_status sketch_batches(gnomon_cascade *c, const gnomon_sketch_job *job, bool keep)
{
    gnomon_overflow o;
    gnomon_overflow_none(&o);
    int64_t first, end;
    gnomon_cascade_blocks(c->op, job->col, job->x->cols, &first, &end);
    const int64_t points = job->x->rows;
    for (int64_t i = 0; i < points; i += c->points) {
        const int64_t count = points - i < c->points ? points - i : c->points;
        const gnomon_matrix x = gnomon_rows(job->x, i, count), y = gnomon_rows(job->y, i, count);
        c->report_at = i;
        gnomon_cascade_begin(c, count, first, end);
        GNOMON_TRY(gnomon_cascade_push(c, &x, job->col));
        GNOMON_TRY(gnomon_cascade_end(c));
        if (keep && c->bad) return GNOMON_OK;
        o.base = i;
        gnomon_store_rows(c->ctx, job, c->root, &y, job->check ? &o : NULL);
    }
    return gnomon_overflow_check(c->ctx, &o, "y", job->f64);
}

gnomon_status gnomon_cascade_sketch(gnomon_context *ctx, const gnomon_sketch_job *job)
{
    if (job->x->cols == 0) {
        gnomon_overflow o;
        gnomon_overflow_none(&o);
        gnomon_scale_view(ctx, job->y, job->beta, job->check ? &o : NULL);
        return gnomon_overflow_check(ctx, &o, "y", job->f64);
    }
    gnomon_cascade c;
    GNOMON_TRY(gnomon_cascade_open(&c, ctx, job, job->x->rows, false));
    const bool keep = job->check && c.points == job->x->rows;
    gnomon_status status = GNOMON_OK;
    if (job->check && !keep) status = gnomon_check_points(ctx, job->x, "x");
    if (status == GNOMON_OK) status = sketch_batches(&c, job, keep);
    if (status == GNOMON_OK && keep && c.bad) {
        status = gnomon_check_points(ctx, job->x, "x");
        /* else an intermediate result overflowed, or somebody has changed the points */
        if (status == GNOMON_OK) status = sketch_batches(&c, job, false);
    }
    gnomon_cascade_close(&c);
    return status;
}
