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
#include "svd/row_pass.h"

#include <math.h>
#include <string.h>

enum { LANES = GNOMON_LANES, ROWS = 64, SLAB = 1024 };

/* Some columns of a product. */
typedef struct panel {
    const gnomon_tall *in, *out; /* out NULL: squares are wanted, or this rank serves */
    int64_t col, width;          /* of in, and of out */
    bool f64;                    /* the type of data */
    void *data[GNOMON_PARTS];    /* cols x LANES: the columns of W, or each part's sums of A^T Q */
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
    int part, parts; /* of A^T Q: the first part at work, and how many are; its sums are data[0] */
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

/* All pieces of the rows that are here, by tasks. */
static gnomon_status over_pieces(work *w, gnomon_task_fn fn, int64_t tasks)
{
    gnomon_row_source *source = w->source;
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &w->piece));
        if (w->piece.rows == 0) return GNOMON_OK;
        gnomon_parallel(source->ctx, tasks > 0 ? tasks : gnomon_ceil_div(w->piece.rows, ROWS), fn,
                        w);
    }
}

/* Room for so many parts of a group of panels, which one group has after the other: the panels of a
 * part lie together, one behind the other. */
typedef struct room {
    char *data;
    int64_t bytes; /* of a part of the largest group */
    int parts;
} room;

/* Bytes of a part of the panel. */
static int64_t bytes_of(const gnomon_row_source *source, const panel *p)
{
    return gnomon_times(source->cols, LANES * (int64_t)gnomon_tall_size(p->f64));
}

static gnomon_status make_room(const gnomon_row_source *source, const panel *panels, int64_t count,
                               int64_t group, int parts, room *r)
{
    int64_t bytes = 0;
    *r = (room){.parts = parts};
    for (int64_t i = 0; i < count && r->bytes >= 0; i++) {
        bytes = gnomon_plus(i % group > 0 ? bytes : 0, bytes_of(source, &panels[i]));
        r->bytes = bytes < 0 || bytes > r->bytes ? bytes : r->bytes;
    }
    bytes = gnomon_times(r->bytes, parts);
    GNOMON_TRY(gnomon_alloc(source->ctx, bytes, 1, "columns of a product", &r->data));
    if (r->data != NULL) gnomon_expect_use(source->ctx, r->data, bytes);
    return GNOMON_OK;
}

static void give_room(const room *r, const work *w)
{
    for (int part = 0; part < r->parts; part++) {
        char *at = r->data + part * r->bytes;
        for (int64_t i = 0; i < w->count; i++) {
            w->panels[i].data[part] = at;
            at += bytes_of(w->source, &w->panels[i]);
        }
    }
}

/* Panels for columns [first, end) of 'in', like 'model'. */
static int64_t cut(const panel *model, const gnomon_tall *in, int64_t first, int64_t end,
                   panel *panels)
{
    int64_t count = 0;
    for (int64_t col = first; col < end; col += LANES) {
        panel *p = &panels[count++];
        *p = *model;
        p->in = in;
        p->col = col;
        p->width = gnomon_min(LANES, end - col);
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
            load(p->in, j, p, p->f64, (char *)p->data[0] + (size_t)j * row);
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
                                       a->dtype == GNOMON_F64, LANES, p->data[0], sums);
            else
                w->kernels->gather_f32(count, known, a->indices + first, values_at(a, first),
                                       a->dtype == GNOMON_F64, LANES, p->data[0], sums);
            for (int64_t l = 0; p->correction != NULL && l < p->width; l++)
                sums[l] -= p->correction[p->col + l];
            const int64_t place = gnomon_row_in_tall(w->source, w->piece.own + row);
            gnomon_f64_to_type(p->f64, p->width, sums, at(p->out, place, p->col));
        }
    }
}

/* All panels, one at a time where the rows are in memory: one pass of the product. */
typedef struct application {
    gnomon_row_source *source;
    panel *panels;
    int64_t count;
} application;

static gnomon_status apply_all(void *user)
{
    const application *all = user;
    gnomon_row_source *source = all->source;
    work w = {.source = source, .kernels = gnomon_context_kernels(source->ctx)};
    const int64_t group = source->csr == NULL ? all->count : 1;
    const int64_t before = source->passes;
    room r = {0};
    gnomon_status status = make_room(source, all->panels, all->count, group, 1, &r);
    for (int64_t first = 0; first < all->count && status == GNOMON_OK; first += group) {
        w.panels = all->panels + first;
        w.count = gnomon_min(group, all->count - first);
        give_room(&r, &w);
        source->passes = before;
        gnomon_parallel(source->ctx, gnomon_ceil_div(source->cols, SLAB), fill_slab, &w);
        status = over_pieces(&w, apply_rows, 0);
    }
    gnomon_free(source->ctx, r.data);
    return status;
}

gnomon_status gnomon_panels_apply(gnomon_row_source *source, const gnomon_tall *w,
                                  const gnomon_tall *y)
{
    gnomon_context *ctx = source->ctx;
    application all = {.source = source};
    double *correction = NULL;
    gnomon_status status = gnomon_alloc(ctx, gnomon_ceil_div(w->cols, LANES), sizeof *all.panels,
                                        "columns of a product", &all.panels);
    if (status == GNOMON_OK && source->centered) {
        status =
            gnomon_alloc(ctx, w->cols, sizeof *correction, "a product with the mean", &correction);
        if (status == GNOMON_OK) gnomon_center_sums(ctx, w, source->center.offset, correction);
        for (int64_t j = 0; status == GNOMON_OK && j < w->cols; j++)
            correction[j] = ldexp(correction[j], -source->exponent);
    }
    const panel model = {.out = y, .f64 = source->f64, .correction = correction};
    if (status == GNOMON_OK) all.count = cut(&model, w, 0, w->cols, all.panels);
    status = gnomon_part_rows_run(source, apply_all, &all, y, status);
    gnomon_free(ctx, correction);
    gnomon_free(ctx, all.panels);
    return status;
}

/* ---- A^T Q ---- */

/* The first part's sums begin with what is there, or in fp64, or for squares, with zeros; the
 * others' with zeros. */
static void begin_sums(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const panel *p = &w->panels[task / w->parts];
    const int64_t part = task % w->parts;
    const size_t row = LANES * gnomon_tall_size(p->f64);
    if (p->out == NULL || p->correction != NULL || w->part + part > 0) {
        memset(p->data[part], 0, (size_t)w->source->cols * row);
        return;
    }
    for (int64_t j = 0; j < w->source->cols; j++)
        load(p->out, j, p, p->f64, (char *)p->data[0] + (size_t)j * row);
}

static void scatter_row(const work *w, const panel *p, int64_t row, void *sums)
{
    const gnomon_csr *a = &w->piece.csr;
    const int64_t first = a->offsets[row] - a->offsets[0];
    const int64_t count = a->offsets[row + 1] - a->offsets[row];
    const int64_t known = a->offsets[a->rows] - a->offsets[row];
    double in[LANES];
    if (count == 0) return;
    load(p->in, gnomon_row_in_tall(w->source, w->piece.own + row), p, p->f64, in);
    if (p->f64)
        w->kernels->scatter_f64(count, known, a->indices + first, values_at(a, first),
                                a->dtype == GNOMON_F64, LANES, in, sums);
    else
        w->kernels->scatter_f32(count, known, a->indices + first, values_at(a, first),
                                a->dtype == GNOMON_F64, LANES, (const float *)(const void *)in,
                                sums);
}

/* A panel has all rows of a part to itself, in their order. */
static void scatter_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const work *w = arg;
    const panel *p = &w->panels[task / w->parts];
    const int64_t part = task % w->parts;
    for (int64_t row = 0, end; row < w->piece.rows; row = end) {
        const int64_t own = w->piece.own + row;
        end = gnomon_min(row + GNOMON_CHUNK - own % GNOMON_CHUNK, w->piece.rows);
        if (gnomon_part_of(w->source, own) != w->part + part) continue;
        for (; row < end; row++)
            scatter_row(w, p, row, p->data[part]);
    }
}

/* to += from, some rows of a panel a task. */
typedef struct addition {
    const work *w;
    const char *from; /* of all panels, one behind the other; NULL: data[part] of each */
    int part;
} addition;

static void add_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const addition *x = arg;
    const int64_t cols = x->w->source->cols, slabs = gnomon_ceil_div(cols, SLAB);
    const panel *p = &x->w->panels[task / slabs];
    const int64_t row = task % slabs * SLAB, count = gnomon_min(SLAB, cols - row) * LANES;
    const char *from = p->data[x->part];
    if (x->from != NULL) {
        from = x->from;
        for (const panel *before = x->w->panels; before < p; before++)
            from += bytes_of(x->w->source, before);
    }
    if (p->f64) {
        double *to = (double *)p->data[0] + row * LANES;
        const double *add = (const double *)(const void *)from + row * LANES;
        for (int64_t i = 0; i < count; i++)
            to[i] += add[i];
    } else {
        float *to = (float *)p->data[0] + row * LANES;
        const float *add = (const float *)(const void *)from + row * LANES;
        for (int64_t i = 0; i < count; i++)
            to[i] += add[i];
    }
}

static void add_part(const work *w, const void *from, int part)
{
    addition x = {w, from, part};
    gnomon_parallel(w->source->ctx, w->count * gnomon_ceil_div(w->source->cols, SLAB), add_rows,
                    &x);
}

static double sum_at(const panel *p, int64_t i)
{
    return p->f64 ? ((const double *)p->data[0])[i] : (double)((const float *)p->data[0])[i];
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

/* The sums of parts [part, part + parts) to data[0], ... */
static gnomon_status sum_parts(work *w, int part, int parts)
{
    w->part = part;
    w->parts = parts;
    gnomon_parallel(w->source->ctx, w->count * parts, begin_sums, w);
    return over_pieces(w, scatter_rows, w->count * parts);
}

static void swap_data(const work *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        void *const sums = w->panels[i].data[0];
        w->panels[i].data[0] = w->panels[i].data[1];
        w->panels[i].data[1] = sums;
    }
}

/* Those of all parts to data[0]. 'together': at once, which takes that much more memory; else the
 * rows are gone through for each. */
static gnomon_status sum_group(work *w, bool together)
{
    const int parts = gnomon_parts_in_use(w->source);
    GNOMON_TRY(sum_parts(w, 0, together ? parts : 1));
    for (int part = 1; part < parts; part++) {
        if (together) {
            add_part(w, NULL, part);
            continue;
        }
        swap_data(w);
        GNOMON_TRY(sum_parts(w, part, 1));
        swap_data(w);
        add_part(w, NULL, 1);
    }
    return GNOMON_OK;
}

double gnomon_panels_parts(gnomon_context *ctx, double rows, double bytes)
{
    const double parts = fmin(ceil(rows / GNOMON_CHUNK), GNOMON_PARTS);
    return parts * bytes <= 0.125 * (double)gnomon_memory_limit(ctx) ? parts : fmin(parts, 2);
}

static double bytes_of_all(const gnomon_row_source *source, const panel *panels, int64_t count)
{
    double bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += (double)source->cols * LANES * (double)gnomon_tall_size(panels[i].f64);
    return bytes;
}

/* All panels in one process: some at a time where the rows are in memory, so that each thread has a
 * part of one. */
static gnomon_status adjoin_alone(gnomon_row_source *source, panel *panels, int64_t count)
{
    work w = {.source = source, .kernels = gnomon_context_kernels(source->ctx)};
    const int parts = gnomon_parts_in_use(source);
    const int64_t threads = gnomon_context_threads(source->ctx);
    const int64_t group =
        source->csr == NULL ? count : gnomon_min(count, gnomon_ceil_div(threads, parts));
    const bool together = source->csr != NULL ||
                          gnomon_panels_parts(source->ctx, (double)source->rows,
                                              bytes_of_all(source, panels, count)) >= (double)parts;
    const int64_t before = source->passes;
    room r = {0};
    gnomon_status status =
        make_room(source, panels, count, group, together || parts < 2 ? parts : 2, &r);
    for (int64_t first = 0; first < count && status == GNOMON_OK; first += group) {
        w.panels = panels + first;
        w.count = gnomon_min(group, count - first);
        give_room(&r, &w);
        source->passes = before;
        status = sum_group(&w, together);
        if (status == GNOMON_OK) gnomon_parallel(source->ctx, w.count, end_sums, &w);
    }
    gnomon_free(source->ctx, r.data);
    return status;
}

/* Those of a rank. */
typedef struct division {
    work w;
    room sums;
} division;

static gnomon_status sum_own(void *user, gnomon_status status)
{
    division *d = user;
    if (status != GNOMON_OK || d->w.source->parts == 0) return status;
    return sum_parts(&d->w, 0, d->w.source->parts);
}

static const void *own_sums(void *user, int part)
{
    const division *d = user;
    return d->sums.data + part * d->sums.bytes;
}

static gnomon_status take_sums(void *user, int part, const void *result, bool own)
{
    const division *d = user;
    (void)own;
    if (part > 0) add_part(&d->w, result, 0);
    return GNOMON_OK;
}

static gnomon_status adjoin_divided(gnomon_row_source *source, panel *panels, int64_t count,
                                    gnomon_status status)
{
    division d = {.w = {.source = source,
                        .kernels = gnomon_context_kernels(source->ctx),
                        .panels = panels,
                        .count = count}};
    if (status == GNOMON_OK)
        status =
            make_room(source, panels, count, count, source->parts > 0 ? source->parts : 1, &d.sums);
    if (status == GNOMON_OK) give_room(&d.sums, &d.w);
    const gnomon_part_pass pass = {
        .user = &d, .run = sum_own, .result = own_sums, .take = take_sums, .bytes = d.sums.bytes};
    status = gnomon_part_pass_run(source, &pass, status);
    if (status == GNOMON_OK && !gnomon_row_serves(source))
        gnomon_parallel(source->ctx, count, end_sums, &d.w);
    gnomon_free(source->ctx, d.sums.data);
    return status;
}

static gnomon_status adjoin(gnomon_row_source *source, panel *panels, int64_t count,
                            gnomon_status status)
{
    if (gnomon_row_divided(source)) return adjoin_divided(source, panels, count, status);
    return status == GNOMON_OK ? adjoin_alone(source, panels, count) : status;
}

/* sums (q's columns), in pairs of numbers, of centred rows; else it stays NULL. */
static gnomon_status sum_columns(gnomon_row_source *source, const gnomon_tall *q, double **sums)
{
    if (!source->centered) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(source->ctx, q->cols, sizeof **sums, "sums of columns", sums));
    gnomon_center_sums(source->ctx, q, NULL, *sums);
    return GNOMON_OK;
}

gnomon_status gnomon_panels_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                    const gnomon_tall *z)
{
    gnomon_context *ctx = source->ctx;
    panel *panels = NULL;
    double *sums = NULL;
    int64_t count = 0;
    gnomon_status status = gnomon_alloc(ctx, gnomon_ceil_div(q->cols, LANES), sizeof *panels,
                                        "columns of a product", &panels);
    if (status == GNOMON_OK && z != NULL) status = sum_columns(source, q, &sums);
    const panel model = {.out = z, .f64 = source->f64 || source->centered, .correction = sums};
    if (status == GNOMON_OK) count = cut(&model, q, 0, q->cols, panels);
    status = adjoin(source, panels, count, status);
    gnomon_free(ctx, sums);
    gnomon_free(ctx, panels);
    return status;
}

/* In fp64 those of a figure that is a hundredth of a singular value too. */
bool gnomon_panels_misfit_is_close(const gnomon_row_source *source)
{
    return source->f64 || gnomon_center_is_far(source);
}

gnomon_status gnomon_panels_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                   const gnomon_tall *u, int64_t first, int64_t end, bool closely,
                                   const gnomon_misfit *out)
{
    gnomon_context *ctx = source->ctx;
    panel *panels = NULL;
    double *q_sums = NULL, *u_sums = NULL;
    int64_t count = 0;
    gnomon_status status = gnomon_alloc(
        ctx, gnomon_plus(gnomon_ceil_div(q->cols, LANES), gnomon_ceil_div(end - first, LANES)),
        sizeof *panels, "columns of a product", &panels);
    if (status == GNOMON_OK && out != NULL) {
        memset(out->z->data, 0,
               (size_t)(out->z->rows * out->z->cols) * gnomon_tall_size(out->z->f64));
        status = sum_columns(source, q, &q_sums);
        if (status == GNOMON_OK) status = sum_columns(source, u, &u_sums);
    }
    panel of_q = {.f64 = source->f64 || source->centered, .correction = q_sums};
    panel of_u = {.f64 = closely, .correction = u_sums};
    if (out != NULL) {
        of_q.out = out->z;
        of_u.s = out->s;
        of_u.v = out->v;
        of_u.squares = out->squares;
    }
    if (status == GNOMON_OK) {
        count = cut(&of_q, q, 0, q->cols, panels);
        count += cut(&of_u, u, first, end, panels + count);
    }
    status = adjoin(source, panels, count, status);
    gnomon_free(ctx, q_sums);
    gnomon_free(ctx, u_sums);
    gnomon_free(ctx, panels);
    return status;
}
