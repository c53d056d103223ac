/* srht: a fast Hadamard transform, and dense points of sparse ones. */
#include "choose/kinds/kinds.h"

#include <math.h>

/* Columns that the kernels of srht take at a time. */
#define SRHT_COLS 4096.0

/* srht: after the signs no coordinate of any of the pairs is above sqrt(2 ln(2 D' pairs / delta1) /
 * D') (Hoeffding); a sample of k without repetition of squares in [0, B / D'] keeps the mean
 * (Chernoff). */
static double srht_rows(const gnomon_asked *a)
{
    const double order = exp2(ceil(log2((double)a->o->d))), eps = a->o->eps;
    const double log_half = a->log_delta - log(2);
    const double most = 2 * (log(2 * order) + log(a->pairs) - log_half);
    const double exponent = (1 + eps) * log1p(eps) - eps;
    return most * (log(2 * a->pairs) - log_half) / exponent;
}

static void srht_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    if (a->incoherent)
        gnomon_choose_say(c, true, exact, "chi-square law, the points taken to be incoherent");
    else
        gnomon_choose_say(c, true, srht_rows(a),
                          "Hoeffding's and Chernoff's inequalities, any points");
}

static void srht_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    if (a->incoherent)
        gnomon_choose_say(c, true, k, "the points taken to be incoherent");
    else
        gnomon_choose_say(
            c, false, k,
            "variance as of dense kinds, but not the tails: few rows may hold a coherent point's "
            "weight");
}

static void srht_count(const gnomon_work_sizes *s, bool sparse, gnomon_work *w)
{
    if (sparse) {
        gnomon_dense_count(s, sparse, w);
        return;
    }
    w->made = s->d;
    w->multiplied = s->points * exp2(s->a->order_log2) * fmax(1, s->a->order_log2);
    w->steps = s->points * s->k * ceil(s->d / SRHT_COLS);
}

const gnomon_choose_row gnomon_choose_srht = {
    .kind = GNOMON_SRHT,
    .count = 1,
    .by_eps = srht_by_eps,
    .by_rows = srht_by_rows,
    .work = srht_count,
};
