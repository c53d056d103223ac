/* The cascade backwards: from the root of each point down to its columns. Slots hold the
 * numbers of one block of each upper level; below, a granule's levels are made one by one. */
#include "base/error.h"
#include "project/cascade/cascade.h"

static const gnomon_finish as_it_is = {.alpha = 1, .beta = 0, .scale = 1};

typedef struct descent {
    gnomon_cascade *c;
    gnomon_fold x; /* where level 1 writes */
    gnomon_finish finish;
} descent;

static gnomon_fold numbers(const gnomon_cascade *c, char *data, int64_t row_stride, int64_t cols,
                           int64_t block)
{
    const gnomon_matrix m = {.data = data,
                             .dtype = c->f64 ? GNOMON_F64 : GNOMON_F32,
                             .rows = c->batch,
                             .cols = cols,
                             .row_stride = row_stride,
                             .col_stride = 1};
    gnomon_fold f = gnomon_fold_view(&m, 0);
    f.block = block;
    return f;
}

/* The blocks [*lo, *hi) of a level that are wanted of those in [begin, end). */
static void wanted(const gnomon_cascade *c, int level, int64_t begin, int64_t end, int64_t *lo,
                   int64_t *hi)
{
    const int64_t first = c->first / c->span[level], last = (c->end - 1) / c->span[level] + 1;
    *lo = begin > first ? begin : first;
    *hi = end < last ? end : last;
}

/* Block 'block' of level 'level' with all below it, level after level. */
static gnomon_status granule(const descent *d, int level, int64_t block, gnomon_fold in)
{
    gnomon_cascade *c = d->c;
    int64_t lo = block, hi = block + 1;
    in.first = 0;
    in.end = c->batch;
    for (int t = level;; t--) {
        const int64_t base = block * (c->span[level] / c->span[t]); /* the granule's first */
        const int64_t width = gnomon_cascade_c(c, t);
        const int64_t all = c->span[level] / c->span[t] * width;
        char *data = c->between[t % 2]; /* as the inputs' levels t - 1 have it */
        gnomon_fold out = t == 1 ? d->x : numbers(c, data, all, all, width);
        out.first = t == 1 ? lo : lo - base;
        out.end = (hi - lo) * c->batch;
        GNOMON_TRY(
            gnomon_cascade_level(c, t, true, 0, width, &in, &out, t == 1 ? &d->finish : &as_it_is));
        if (t == 1) return GNOMON_OK;
        const int64_t zeta = c->op->descriptor.zeta;
        in = numbers(c, data, all, all, gnomon_cascade_k(c, t - 1));
        wanted(c, t - 1, lo * zeta, hi * zeta, &lo, &hi);
        in.first = lo - base * zeta;
        in.end = (hi - lo) * c->batch;
    }
}

static gnomon_status descend(const descent *d, int level, int64_t block, gnomon_fold in)
{
    gnomon_cascade *c = d->c;
    if (level <= c->depth) return granule(d, level, block, in);
    const int64_t zeta = c->op->descriptor.zeta, width = gnomon_cascade_c(c, level);
    const int64_t k = gnomon_cascade_k(c, level - 1);
    int64_t lo, hi;
    wanted(c, level - 1, block * zeta, (block + 1) * zeta, &lo, &hi);
    in.first = 0;
    in.end = c->batch;
    const gnomon_fold out = numbers(c, c->slot[level], width, width, width);
    GNOMON_TRY(gnomon_cascade_level(c, level, true, (lo - block * zeta) * k, (hi - lo) * k, &in,
                                    &out, &as_it_is));
    for (int64_t b = lo; b < hi; b++) {
        char *data = c->slot[level] + b % zeta * k * c->size;
        GNOMON_TRY(descend(d, level - 1, b, numbers(c, data, width, k, k)));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_cascade_adjoint(gnomon_context *ctx, const gnomon_sketch_job *job)
{
    if (job->check) GNOMON_TRY(gnomon_check_points(ctx, job->y, "y"));
    gnomon_cascade c;
    const int64_t points = job->x->rows;
    GNOMON_TRY(gnomon_cascade_open(&c, ctx, job, points, false));
    const gnomon_operator *op = job->op;
    gnomon_cascade_blocks(op, job->col, job->x->cols, &c.first, &c.end);
    gnomon_overflow o;
    gnomon_overflow_none(&o);
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < points && status == GNOMON_OK; i += c.points) {
        const int64_t count = points - i < c.points ? points - i : c.points;
        const gnomon_matrix x = gnomon_rows(job->x, i, count), y = gnomon_rows(job->y, i, count);
        descent d = {&c,
                     gnomon_fold_view(&x, job->col),
                     {job->alpha, job->beta, op->scale, NULL, job->check ? &o : NULL}};
        o.base = i;
        d.x.block = gnomon_cascade_c(&c, 1);
        gnomon_fold in = gnomon_fold_view(&y, job->row);
        in.block = op->descriptor.k;
        c.batch = count;
        c.report_at = i;
        status = descend(&d, op->levels, 0, in);
    }
    gnomon_cascade_close(&c);
    GNOMON_TRY(status);
    return gnomon_overflow_check(ctx, &o, "x", job->f64);
}
