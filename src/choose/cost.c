/* Predicted seconds of a sketch: counts of work, times the model's seconds for each. */
#include "choose/kinds/kinds.h"

#include <math.h>
#include <stddef.h>

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

double gnomon_share_touched(double picks, double places)
{
    return -expm1(-picks / places);
}

gnomon_work gnomon_count(const gnomon_cost *cost, const gnomon_simple *a, double n, double nonzeros)
{
    const bool sparse = cost->form == GNOMON_FORM_SPARSE;
    const double k = (double)a->rows, d = (double)a->cols;
    gnomon_work w = {.read = sparse ? nonzeros : n * d, .written = n * k};
    const gnomon_work_sizes s = {.a = a,
                                 .k = k,
                                 .d = d,
                                 .points = up_to(n, cost->point_tile),
                                 .rows = up_to(k, cost->row_tile),
                                 .nonzeros = nonzeros,
                                 .columns = sparse ? d * gnomon_share_touched(nonzeros, d) : d,
                                 .chunks = ceil(d / (double)(a->chunk > 0 ? a->chunk : 1))};
    const gnomon_choose_row *row = gnomon_choose_row_of(a->kind);
    w.made = NAN; /* of a kind without a cost */
    if (row != NULL && row->work != NULL) row->work(&s, sparse, &w);
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
    double seconds = 0, nonzeros = load->nonzeros;
    double blocks = fmin((double)op->blocks, ceil(points / (double)op->block_cols));
    gnomon_form form = load->form;
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
