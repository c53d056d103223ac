/* Ranks for a tolerance. The square of what may be left is shared out between the modes, what one
 * does not use going to those after it. A mode is projected of what the modes before it have left,
 * to twice as many columns each time, until what they leave, measured, is little enough: so sums
 * are made of squares and never of differences. A short mode, or one of which half of all columns
 * would be needed, is not projected.
 *
 * The same in either precision: Cube is the tensor at work in one, with gcu_hosvd's names for its
 * job, modes, place, length, width, v, now and own. */
#ifndef GNOMON_CUDA_HOSVD_RANKS_CUH
#define GNOMON_CUDA_HOSVD_RANKS_CUH

#include "cuda/hosvd/hosvd.h"

#include <math.h>

template <typename Cube> struct gcu_hosvd_steps {
    double roundoff; /* of a number */
    int64_t (*numbers)(const Cube *h);
    /* The mode's range of as many columns as the job has for it. */
    gnomon_status (*find_range)(Cube *h, int mode);
    /* now, and what it is once the mode has shrunk to h->width[mode] columns, beside each other:
     * the square of what it loses. The mode lies last afterwards, and what was now is kept. */
    gnomon_status (*shrink_beside)(Cube *h, int mode, double *rest);
    /* Cuts the first or last mode to the fewest columns, at most 'most', that leave no more than a
     * budget; *spent grows by what they do leave. It is last then. */
    gnomon_status (*cut_to_budget)(Cube *h, int mode, int64_t most, double budget, double *spent);
};

/* The mode by a projection to so many columns, unless that leaves too much: *done. */
template <typename Cube>
static gnomon_status gcu_hosvd_try_columns(Cube *h, const gcu_hosvd_steps<Cube> &steps, int mode,
                                           int64_t columns, double budget, bool last,
                                           double *before, double *rest, bool *done)
{
    const double u = steps.roundoff * h->job->norm;
    gnomon_status status = h->job->calls->draw(h->job->calls->user, mode, h->length, columns);
    if (status != GNOMON_OK) return status;
    h->job->columns[mode] = columns;
    status = steps.find_range(h, mode);
    const Cube as_it_was = *h;
    if (status == GNOMON_OK) status = steps.shrink_beside(h, mode, rest);
    const double now = sqrt(*rest);
    /* Rounding is all that is left, and more columns would only follow it. */
    const bool floor = now <= 2 * u || (now > 0.7 * *before && now < 4096 * u);
    *before = now;
    *done = status == GNOMON_OK && (*rest <= budget || floor || last);
    if (*done) {
        if (as_it_was.own) gcu_free(as_it_was.now, h->v.stream);
        return GNOMON_OK;
    }
    if (h->own) gcu_free(h->now, h->v.stream);
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
template <typename Cube>
static gnomon_status gcu_hosvd_shrink_mode(Cube *h, const gcu_hosvd_steps<Cube> &steps, int mode,
                                           int64_t most, double budget, double *spent)
{
    enum { COLUMNS = 64, SHORT = 160 };
    const int64_t size = h->job->size[mode], lines = steps.numbers(h) / size;
    const int64_t enough = size < lines ? size : lines, over = h->job->oversample;
    const int64_t limit = over < enough - most ? most + over : enough;
    double before = INFINITY, rest = 0;
    bool done = false;
    gnomon_status status = GNOMON_OK;
    h->job->columns[mode] = 0;
    for (int64_t columns = COLUMNS; size > SHORT && !done && status == GNOMON_OK; columns *= 2) {
        if (columns > limit) columns = limit;
        if (2 * columns > size && size <= GCU_HOSVD_SMALL_MOST) break;
        status = gcu_hosvd_try_columns(h, steps, mode, columns, budget, columns == limit, &before,
                                       &rest, &done);
    }
    if (status != GNOMON_OK) return status;
    if (!done) h->job->columns[mode] = 0;
    *spent += rest * done;
    /* Where it can't be reached, a hundredth more of the error buys a small core. */
    const double left = !done ? budget : rest < budget ? budget - rest : 0.02 * rest;
    return steps.cut_to_budget(h, mode, most, left, spent);
}

/* Finds ranks for the job's tolerance, and shrinks the tensor to them; X has been scanned. */
template <typename Cube>
static gnomon_status gcu_hosvd_find_ranks(Cube *h, const gcu_hosvd_steps<Cube> &steps)
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
        status = gcu_hosvd_shrink_mode(h, steps, mode, most[mode],
                                       fmax(wanted - spent, 0) / (h->modes - i), &spent);
    }
    /* What the modes after it have left may need fewer columns of a mode, or allow for it. */
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++)
        status = steps.cut_to_budget(h, h->place[0], most[h->place[0]],
                                     fmax(wanted - spent, 0) / (h->modes - i), &spent);
    for (int n = 0; n < h->modes; n++)
        job->rank[n] = h->length[n];
    return status == GNOMON_OK ? gcu_svd_lap(&h->v, GCU_SMALL) : status;
}

#endif
