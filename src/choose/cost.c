/* Predicted seconds of a sketch: counts of work, times the model's seconds for each. */
#include "choose/choose.h"

#include <math.h>
#include <stddef.h>

/* Columns that the kernels of srht take at a time. */
#define SRHT_COLS 4096.0

static const gnomon_cost *find_cost(const gnomon_model *model, const gnomon_simple *a,
                                    gnomon_form form)
{
    for (int i = 0; i < model->count; i++) {
        const gnomon_cost *c = &model->cost[i];
        if (c->kind == a->kind && c->form == form &&
            (a->kind != GNOMON_GAUSSIAN || c->precision == a->precision))
            return c;
    }
    return NULL;
}

static double up_to(double x, int tile)
{
    return ceil(x / tile) * tile;
}

/* Share of 'places' that so many random picks touch. */
static double touched(double picks, double places)
{
    return -expm1(-picks / places);
}

/* What the counts of a sketch of n points are made of: n and k as multiples of the cost's tiles. */
typedef struct sizes {
    const gnomon_simple *a;
    double k, d, points, rows;
    double nonzeros, columns, chunks; /* sparse points: stored entries, columns that have any */
} sizes;

static void dense_count(const sizes *s, bool sparse, gnomon_work *w)
{
    w->made = sparse ? s->columns * s->k : s->k * s->d;
    w->multiplied = sparse ? s->nonzeros * s->k : s->points * s->rows * s->d;
}

static void very_sparse_count(const sizes *s, bool sparse, gnomon_work *w)
{
    const double density = s->a->density;
    if (sparse) { /* whole chunks are walked */
        w->made = s->d * touched(s->nonzeros, s->chunks) * s->k * density;
        w->multiplied = s->nonzeros * s->k * density;
        return;
    }
    w->made = s->k * s->d * density;
    w->multiplied = s->points * w->made;
    w->steps = s->k * s->chunks;
}

static void sjlt_count(const sizes *s, bool sparse, gnomon_work *w)
{
    const double entries = (double)s->a->column_entries;
    w->made = (sparse ? s->columns : s->d) * entries;
    w->multiplied = sparse ? s->nonzeros * entries : s->points * w->made;
    if (!sparse) w->steps = s->points * s->k * s->chunks;
}

static void srht_count(const sizes *s, bool sparse, gnomon_work *w)
{
    if (sparse) {
        dense_count(s, sparse, w);
        return;
    }
    w->made = s->d;
    w->multiplied = s->points * exp2(s->a->order_log2) * fmax(1, s->a->order_log2);
    w->steps = s->points * s->k * ceil(s->d / SRHT_COLS);
}

/* A kind that is not here has no cost. */
static const struct {
    gnomon_kind kind;
    void (*count)(const sizes *s, bool sparse, gnomon_work *w);
} counts[] = {
    {GNOMON_GAUSSIAN, dense_count},   {GNOMON_RADEMACHER, dense_count},
    {GNOMON_ACHLIOPTAS, dense_count}, {GNOMON_VERY_SPARSE, very_sparse_count},
    {GNOMON_SJLT, sjlt_count},        {GNOMON_SRHT, srht_count},
};

gnomon_work gnomon_count(const gnomon_cost *cost, const gnomon_simple *a, double n, double nonzeros)
{
    const bool sparse = cost->form == GNOMON_FORM_SPARSE;
    const double k = (double)a->rows, d = (double)a->cols;
    gnomon_work w = {.read = sparse ? nonzeros : n * d, .written = n * k};
    const sizes s = {.a = a,
                     .k = k,
                     .d = d,
                     .points = up_to(n, cost->point_tile),
                     .rows = up_to(k, cost->row_tile),
                     .nonzeros = nonzeros,
                     .columns = sparse ? d * touched(nonzeros, d) : d,
                     .chunks = ceil(d / (double)(a->chunk > 0 ? a->chunk : 1))};
    w.made = NAN;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].kind == a->kind) counts[i].count(&s, sparse, &w);
    return w;
}

/* One simple matrix on n points. */
static double simple_seconds(const gnomon_model *model, const gnomon_load *load, gnomon_form form,
                             const gnomon_simple *a, double n, double nonzeros)
{
    const gnomon_cost *c = find_cost(model, a, form);
    if (c == NULL) return NAN;
    const gnomon_work w = gnomon_count(c, a, n, nonzeros);
    double seconds = c->make * w.made + c->multiply * w.multiplied + c->read * w.read +
                     c->write * w.written + c->step * w.steps;
    if (load->f64)
        seconds *= c->f64;
    else if (load->element_size < 4)
        seconds *= c->half;
    if (model->device == GNOMON_DEVICE_CPU) seconds *= (double)model->threads / load->threads;
    return c->start + seconds;
}

double gnomon_predict(const gnomon_model *model, const gnomon_operator *op, const gnomon_load *load)
{
    const gnomon_descriptor *d = &op->descriptor;
    const double points = (double)d->d;
    double seconds = 0, blocks = 1, nonzeros = load->nonzeros;
    gnomon_form form = load->form;
    if (d->kind == GNOMON_BLOCK)
        blocks = fmin((double)op->blocks, ceil(points / (double)op->block_cols));
    if (op->levels > 1) blocks = ceil(points / (double)op->factor[0].cols);
    for (int t = 0; t < op->levels; t++) {
        const double folded = load->n * blocks;
        seconds +=
            simple_seconds(model, load, form, &op->factor[t],
                           form == GNOMON_FORM_SPARSE ? fmin(folded, nonzeros) : folded, nonzeros);
        if (op->levels > 1) {
            /* What goes on is dense, block by block. */
            if (form == GNOMON_FORM_SPARSE) form = GNOMON_FORM_POINTS;
            blocks = ceil(blocks / (double)d->zeta);
        }
    }
    if (load->host) {
        const double size = load->form == GNOMON_FORM_SPARSE ? 0 : load->n * points;
        seconds += model->upload * size * load->element_size;
        seconds += model->download * load->n * (double)d->k * (load->f64 ? 8 : 4);
    }
    return seconds;
}
