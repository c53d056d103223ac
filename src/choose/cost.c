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

gnomon_work gnomon_count(const gnomon_cost *cost, const gnomon_simple *a, double n, double nonzeros)
{
    const double k = (double)a->rows, d = (double)a->cols;
    const double points = up_to(n, cost->point_tile), rows = up_to(k, cost->row_tile);
    gnomon_work w = {.read = n * d, .written = n * k};
    if (cost->form == GNOMON_FORM_SPARSE) {
        const double columns = d * touched(nonzeros, d);
        const double chunks = ceil(d / (double)(a->chunk > 0 ? a->chunk : 1));
        w.read = nonzeros;
        switch (a->kind) {
        case GNOMON_VERY_SPARSE: /* whole chunks are walked */
            w.made = d * touched(nonzeros, chunks) * k * a->density;
            w.multiplied = nonzeros * k * a->density;
            break;
        case GNOMON_SJLT:
            w.made = columns * (double)a->nonzeros;
            w.multiplied = nonzeros * (double)a->nonzeros;
            break;
        default:
            w.made = columns * k;
            w.multiplied = nonzeros * k;
        }
        return w;
    }
    switch (a->kind) {
    case GNOMON_VERY_SPARSE:
        w.made = k * d * a->density;
        w.multiplied = points * w.made;
        w.steps = k * ceil(d / (double)a->chunk);
        break;
    case GNOMON_SJLT:
        w.made = d * (double)a->nonzeros;
        w.multiplied = points * w.made;
        w.steps = points * k * ceil(d / (double)a->chunk);
        break;
    case GNOMON_SRHT:
        w.made = d;
        w.multiplied = points * exp2(a->order_log2) * fmax(1, a->order_log2);
        w.steps = points * k * ceil(d / SRHT_COLS);
        break;
    default:
        w.made = k * d;
        w.multiplied = points * rows * d;
    }
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
    if (load->wide)
        seconds *= c->wide;
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
        seconds += model->download * load->n * (double)d->k * (load->wide ? 8 : 4);
    }
    return seconds;
}
