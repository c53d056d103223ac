/* The columns are taken GNOMON_LANES at a time, in a panel without gaps: what a nonzero names is
 * then a line or two of the cache, and the panels that are at work nearly fit it. Rows in memory
 * are gone through for every few panels; of rows that come piece by piece all panels are made at
 * once, so that they come once. */
#include "svd/panels.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "project/blocks.h"
#include "svd/center.h"

#include <math.h>
#include <string.h>

enum { LANES = GNOMON_LANES, ROWS = 64, SLAB = 1024 };

/* Some columns of a product. */
typedef struct panel {
    const gnomon_tall *in, *out; /* out NULL: squares are wanted */
    int64_t col, width;          /* of in, and of out */
    bool f64;                    /* the type of data */
    void *data;                  /* cols x LANES: the columns of W, or the sums of A^T Q */
    const double *correction;    /* of A W: what is taken off each row; of A^T Q: the sums of Q's
                                    columns. NULL: none */
    const double *s;             /* of what squares are of: A^T u - s v */
    const gnomon_tall *v;
    double *squares;
} panel;

typedef struct work {
    gnomon_row_source *source;
    const gnomon_kernels *kernels;
    panel *panels; /* those at work */
    int64_t count;
    gnomon_piece piece;
} work;

static void *at(const gnomon_tall *t, int64_t row, int64_t col)
{
    return (char *)gnomon_tall_row(t, row) + (size_t)col * gnomon_tall_size(t->f64);
}

/* out (LANES) = t's numbers in a panel's columns, in type f64 or t's, and zeros. */
static void load(const gnomon_tall *t, int64_t row, const panel *p, bool f64, void *out)
{
    const void *from = at(t, row, p->col);
    if (f64 == t->f64) {
        const size_t size = gnomon_tall_size(f64);
        memcpy(out, from, (size_t)p->width * size);
        memset((char *)out + (size_t)p->width * size, 0, (size_t)(LANES - p->width) * size);
    } else {
        for (int64_t l = 0; l < LANES; l++)
            ((double *)out)[l] = l < p->width ? (double)((const float *)from)[l] : 0;
    }
}

static const void *values_at(const gnomon_csr *a, int64_t i)
{
    return (const char *)a->values + (size_t)i * gnomon_tall_size(a->dtype == GNOMON_F64);
}

/* ---- all panels of a product ---- */

/* What a product does: before the passes, for a piece (tasks of some rows, or of a panel each), and
 * after. */
typedef struct steps {
    gnomon_task_fn begin, piece, end;
    bool by_rows;
} steps;

/* One pass for the panels that are at work. */
static gnomon_status pass(work *w, const steps *s)
{
    gnomon_row_source *source = w->source;
    const int64_t slabs = gnomon_ceil_div(source->cols, SLAB);
    gnomon_parallel(source->ctx, s->by_rows ? slabs : w->count, s->begin, w);
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &w->piece));
        if (w->piece.rows == 0) break;
        gnomon_parallel(source->ctx, s->by_rows ? gnomon_ceil_div(w->piece.rows, ROWS) : w->count,
                        s->piece, w);
    }
    if (s->end != NULL) gnomon_parallel(source->ctx, w->count, s->end, w);
    return GNOMON_OK;
}

/* All panels, 'at_once' at a time where the rows are in memory: one pass of the product. */
static gnomon_status run(gnomon_row_source *source, const steps *s, panel *panels, int64_t count,
                         int64_t at_once)
{
    work w = {source, gnomon_context_kernels(source->ctx), NULL, 0, {0}};
    const int64_t group = source->csr == NULL ? count : gnomon_min(at_once, count);
    const int64_t before = source->passes;
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0; first < count && status == GNOMON_OK; first += group) {
        w.panels = panels + first;
        w.count = gnomon_min(group, count - first);
        for (int64_t i = 0; i < w.count && status == GNOMON_OK; i++)
            status = gnomon_alloc(source->ctx, gnomon_times(source->cols, LANES),
                                  gnomon_tall_size(w.panels[i].f64), "columns of a product",
                                  &w.panels[i].data);
        source->passes = before;
        if (status == GNOMON_OK) status = pass(&w, s);
        for (int64_t i = 0; i < w.count; i++) {
            gnomon_free(source->ctx, w.panels[i].data);
            w.panels[i].data = NULL;
        }
    }
    return status;
}

/* Panels for the columns of 'in', like 'model'. */
static int64_t cut(const panel *model, const gnomon_tall *in, panel *panels)
{
    int64_t count = 0;
    for (int64_t col = 0; col < in->cols; col += LANES) {
        panel *p = &panels[count++];
        *p = *model;
        p->in = in;
        p->col = col;
        p->width = gnomon_min(LANES, in->cols - col);
    }
    return count;
}

/* ---- A W ---- */

static void fill_slab(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const int64_t end = gnomon_min((task + 1) * SLAB, w->source->cols);
    for (int64_t i = 0; i < w->count; i++) {
        const panel *p = &w->panels[i];
        const size_t row = LANES * gnomon_tall_size(p->f64);
        for (int64_t j = task * SLAB; j < end; j++)
            load(p->in, j, p, p->f64, (char *)p->data + (size_t)j * row);
    }
}

static void apply_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const gnomon_csr *a = &w->piece.csr;
    const int64_t end = gnomon_min((task + 1) * ROWS, a->rows);
    for (int64_t i = 0; i < w->count; i++) {
        const panel *p = &w->panels[i];
        for (int64_t row = task * ROWS; row < end; row++) {
            const int64_t first = a->offsets[row] - a->offsets[0];
            const int64_t count = a->offsets[row + 1] - a->offsets[row];
            const int64_t known = a->offsets[a->rows] - a->offsets[row];
            double sums[LANES];
            if (p->f64)
                w->kernels->gather_f64(count, known, a->indices + first, values_at(a, first),
                                       a->dtype == GNOMON_F64, LANES, p->data, sums);
            else
                w->kernels->gather_f32(count, known, a->indices + first, values_at(a, first),
                                       a->dtype == GNOMON_F64, LANES, p->data, sums);
            for (int64_t l = 0; p->correction != NULL && l < p->width; l++)
                sums[l] -= p->correction[p->col + l];
            gnomon_f64_to_type(p->f64, p->width, sums, at(p->out, w->piece.row + row, p->col));
        }
    }
}

gnomon_status gnomon_panels_apply(gnomon_row_source *source, const gnomon_tall *w,
                                  const gnomon_tall *y)
{
    static const steps apply = {fill_slab, apply_rows, NULL, true};
    gnomon_context *ctx = source->ctx;
    panel *panels = NULL;
    double *correction = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_ceil_div(w->cols, LANES), sizeof *panels,
                            "columns of a product", &panels));
    gnomon_status status = GNOMON_OK;
    if (source->centered) {
        status =
            gnomon_alloc(ctx, w->cols, sizeof *correction, "a product with the mean", &correction);
        if (status == GNOMON_OK) gnomon_center_sums(ctx, w, source->center.offset, correction);
        for (int64_t j = 0; status == GNOMON_OK && j < w->cols; j++)
            correction[j] = ldexp(correction[j], -source->exponent);
    }
    const panel model = {.out = y, .f64 = source->f64, .correction = correction};
    const int64_t count = cut(&model, w, panels);
    if (status == GNOMON_OK) status = run(source, &apply, panels, count, 1);
    gnomon_free(ctx, correction);
    gnomon_free(ctx, panels);
    return status;
}

/* ---- A^T Q ---- */

/* The sums begin with what is there, or in fp64, or for squares, with zeros. */
static void begin_sums(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const panel *p = &w->panels[task];
    const size_t row = LANES * gnomon_tall_size(p->f64);
    if (p->out == NULL || p->correction != NULL) {
        memset(p->data, 0, (size_t)w->source->cols * row);
        return;
    }
    for (int64_t j = 0; j < w->source->cols; j++)
        load(p->out, j, p, p->f64, (char *)p->data + (size_t)j * row);
}

/* A panel has all rows of the piece to itself, in their order. */
static void scatter_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const panel *p = &w->panels[task];
    const gnomon_csr *a = &w->piece.csr;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = a->offsets[row] - a->offsets[0];
        const int64_t count = a->offsets[row + 1] - a->offsets[row];
        const int64_t known = a->offsets[a->rows] - a->offsets[row];
        double in[LANES];
        if (count == 0) continue;
        load(p->in, w->piece.row + row, p, p->f64, in);
        if (p->f64)
            w->kernels->scatter_f64(count, known, a->indices + first, values_at(a, first),
                                    a->dtype == GNOMON_F64, LANES, in, p->data);
        else
            w->kernels->scatter_f32(count, known, a->indices + first, values_at(a, first),
                                    a->dtype == GNOMON_F64, LANES, (const float *)(const void *)in,
                                    p->data);
    }
}

static double sum_at(const panel *p, int64_t i)
{
    return p->f64 ? ((const double *)p->data)[i] : (double)((const float *)p->data)[i];
}

/* Less the mean's part the sums are added to 'out', or compared. */
static void end_sums(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const panel *p = &w->panels[task];
    const double *mean = w->source->center.offset;
    const double scale = ldexp(1.0, -w->source->exponent);
    double squares[LANES] = {0};
    for (int64_t j = 0; j < w->source->cols; j++) {
        double x[LANES], before[LANES];
        for (int64_t l = 0; l < LANES; l++)
            x[l] = sum_at(p, j * LANES + l);
        for (int64_t l = 0; p->correction != NULL && l < p->width; l++)
            x[l] -= scale * mean[j] * p->correction[p->col + l];
        if (p->out == NULL) {
            load(p->v, j, p, true, before);
            for (int64_t l = 0; l < p->width; l++) {
                const double off = x[l] - p->s[p->col + l] * before[l];
                squares[l] += off * off;
            }
            continue;
        }
        if (p->correction != NULL) {
            load(p->out, j, p, true, before);
            for (int64_t l = 0; l < p->width; l++)
                x[l] += before[l];
        }
        gnomon_f64_to_type(p->out->f64, p->width, x, at(p->out, j, p->col));
    }
    for (int64_t l = 0; p->out == NULL && l < p->width; l++)
        p->squares[p->col + l] = squares[l];
}

static const steps adjoint = {begin_sums, scatter_rows, end_sums, false};

/* sums (q's columns), in pairs of numbers, of centred rows; else it stays NULL. */
static gnomon_status sum_columns(gnomon_row_source *source, const gnomon_tall *q, double **sums)
{
    if (!source->centered) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(source->ctx, q->cols, sizeof **sums, "sums of columns", sums));
    gnomon_center_sums(source->ctx, q, NULL, *sums);
    return GNOMON_OK;
}

/* A panel for each thread has them all at work. */
static int64_t at_once(const gnomon_row_source *source)
{
    return gnomon_context_threads(source->ctx);
}

gnomon_status gnomon_panels_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                    const gnomon_tall *z)
{
    gnomon_context *ctx = source->ctx;
    panel *panels = NULL;
    double *sums = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_ceil_div(q->cols, LANES), sizeof *panels,
                            "columns of a product", &panels));
    gnomon_status status = sum_columns(source, q, &sums);
    const panel model = {.out = z, .f64 = source->f64 || source->centered, .correction = sums};
    const int64_t count = cut(&model, q, panels);
    if (status == GNOMON_OK) status = run(source, &adjoint, panels, count, at_once(source));
    gnomon_free(ctx, sums);
    gnomon_free(ctx, panels);
    return status;
}

gnomon_status gnomon_panels_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                   const gnomon_tall *z, const gnomon_tall *u, const double *s,
                                   const gnomon_tall *v, double *squares)
{
    gnomon_context *ctx = source->ctx;
    panel *panels = NULL;
    double *q_sums = NULL, *u_sums = NULL;
    /* in fp64 those of a figure that is a hundredth of a singular value too */
    const bool closely = source->f64 || gnomon_center_is_far(source);
    GNOMON_TRY(gnomon_alloc(
        ctx, gnomon_plus(gnomon_ceil_div(q->cols, LANES), gnomon_ceil_div(u->cols, LANES)),
        sizeof *panels, "columns of a product", &panels));
    memset(z->data, 0, (size_t)(z->rows * z->cols) * gnomon_tall_size(z->f64));
    gnomon_status status = sum_columns(source, q, &q_sums);
    if (status == GNOMON_OK) status = sum_columns(source, u, &u_sums);
    const panel of_q = {.out = z, .f64 = source->f64 || source->centered, .correction = q_sums};
    const panel of_u = {.f64 = closely, .correction = u_sums, .s = s, .v = v, .squares = squares};
    int64_t count = cut(&of_q, q, panels);
    count += cut(&of_u, u, panels + count);
    if (status == GNOMON_OK) status = run(source, &adjoint, panels, count, at_once(source));
    gnomon_free(ctx, q_sums);
    gnomon_free(ctx, u_sums);
    gnomon_free(ctx, panels);
    return status;
}
