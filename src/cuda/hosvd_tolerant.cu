/* Ranks for a tolerance. The square of what may be left is shared out between the modes, what one
 * does not use going to those after it. A mode is projected of what the modes before it have left,
 * to twice as many columns each time, until what they leave, measured, is little enough: so sums
 * are made of squares and never of differences. A short mode, or one of which half of all columns
 * would be needed, is taken whole. */
#include "cuda/hosvd.h"

#include <math.h>

enum { COLUMNS = 64, SHORT = 160 };

/* x, and what it is once the mode has shrunk to h->width[mode] columns, beside each other: the
 * square of what x loses. The mode lies last afterwards. */
static gnomon_status shrink_beside(gcu_hosvd *h, int mode, double *rest)
{
    gcu_svd *v = &h->v;
    const int64_t size = h->job->size[mode], width = h->width[mode];
    const bool first = h->place[0] == mode;
    const float *x = h->now;
    const int64_t lines = gcu_hosvd_numbers(h) / size;
    double length = 0;
    GCU_TRY(v->why, gcu_svd_narrow(h->q[mode], size * width, h->narrow, v->stream));
    h->own = false; /* x stays */
    gnomon_status status = gcu_hosvd_multiply(h, mode, gcu_svd_rows(h->narrow, width), width);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SHRINK);
    if (status != GNOMON_OK) return status;
    v->m = first ? size : lines;
    v->n = first ? lines : size;
    v->run = 0;
    v->a = gnomon_matrix_rowmajor(const_cast<float *>(x), GNOMON_F32, v->m, v->n);
    status = first ? gcu_svd_residual(v, h->narrow, h->now, true, width, &length)
                   : gcu_svd_residual(v, h->now, h->narrow, true, width, &length);
    if (x == h->x) h->job->passes++;
    *rest = length * length;
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

/* The mode by a projection to so many columns, unless that leaves too much: *done. */
static gnomon_status try_columns(gcu_hosvd *h, int mode, int64_t columns, double budget, bool last,
                                 double *before, double *rest, bool *done)
{
    gcu_hosvd as_it_was;
    const double u = 0x1p-24 * h->job->norm;
    gnomon_status status = h->job->calls->draw(h->job->calls->user, mode, h->length, columns);
    if (status != GNOMON_OK) return status;
    h->job->columns[mode] = columns;
    status = gcu_hosvd_find_range(h, mode);
    as_it_was = *h;
    if (status == GNOMON_OK) status = shrink_beside(h, mode, rest);
    const double now = sqrt(*rest);
    /* Rounding is all that is left, and more columns would only follow it. */
    const bool floor = now <= 2 * u || (now > 0.7 * *before && now < 4096 * u);
    *before = now;
    *done = status == GNOMON_OK && (*rest <= budget || floor || last);
    if (*done) {
        if (as_it_was.own) gcu_give(as_it_was.now, h->v.stream);
        return GNOMON_OK;
    }
    if (h->own) gcu_give(h->now, h->v.stream);
    h->now = as_it_was.now;
    h->own = as_it_was.own;
    h->width[mode] = 0;
    for (int n = 0; n < h->modes; n++) {
        h->place[n] = as_it_was.place[n];
        h->length[n] = as_it_was.length[n];
    }
    return status;
}

/* Shrinks a mode that is first or last; most: the largest rank. */
static gnomon_status shrink_mode(gcu_hosvd *h, int mode, int64_t most, double budget, double *spent)
{
    const int64_t size = h->job->size[mode], lines = gcu_hosvd_numbers(h) / size;
    const int64_t enough = size < lines ? size : lines;
    const int64_t over = h->job->oversample;
    const int64_t limit = over < enough - most ? most + over : enough;
    double before = INFINITY, rest = 0;
    bool done = false;
    gnomon_status status = GNOMON_OK;
    h->job->columns[mode] = 0;
    for (int64_t columns = COLUMNS; size > SHORT && !done && status == GNOMON_OK; columns *= 2) {
        if (columns > limit) columns = limit;
        if (2 * columns > size && size <= GCU_HOSVD_SMALL_MOST) break;
        status = try_columns(h, mode, columns, budget, columns == limit, &before, &rest, &done);
    }
    if (status != GNOMON_OK) return status;
    if (!done) h->job->columns[mode] = 0;
    *spent += rest * done;
    /* Where it can't be reached, a hundredth more of the error buys a small core. */
    const double left = !done ? budget : rest < budget ? budget - rest : 0.02 * rest;
    return gcu_hosvd_cut_within(h, mode, most, left, spent);
}

gnomon_status gcu_hosvd_tolerant(gcu_hosvd *h)
{
    gnomon_hosvd_job *job = h->job;
    int64_t most[GNOMON_TENSOR_MODES];
    double spent = 0;
    /* a little less than asked, for the rounding of what comes after */
    const double wanted = 0.998 * job->tolerance * job->tolerance * job->norm * job->norm;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = job->order[i];
        most[mode] = job->rank[mode];
        status = shrink_mode(h, mode, most[mode], fmax(wanted - spent, 0) / (h->modes - i), &spent);
    }
    /* What the modes after it have left may need fewer columns of a mode, or allow for it. */
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++)
        status = gcu_hosvd_cut_within(h, h->place[0], most[h->place[0]],
                                      fmax(wanted - spent, 0) / (h->modes - i), &spent);
    for (int n = 0; n < h->modes; n++)
        job->rank[n] = h->length[n];
    return status == GNOMON_OK ? gcu_svd_lap(&h->v, GCU_SMALL) : status;
}
