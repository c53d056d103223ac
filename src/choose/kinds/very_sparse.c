/* very-sparse: a variance that depends on the density, and work for the nonzeros alone. */
#include "choose/kinds/kinds.h"

#include <math.h>

/* very-sparse: 2 + (1/p - 3) |x|_4^4 / |x|_2^4 (Li, Hastie and Church 2006) */
static double very_sparse_variance(const gnomon_asked *a, double density)
{
    return fmax(2, 2 + (1 / density - 3) * a->weight);
}

static void very_sparse_by_eps(const gnomon_asked *a, double exact, double signs,
                               gnomon_candidate *c)
{
    const double density = c->descriptor.density;
    if (a->incoherent)
        gnomon_choose_say(c, true, exact * very_sparse_variance(a, density) / 2,
                          "chi-square law of its variance, the points taken to be incoherent");
    else if (density >= 1.0 / 3)
        gnomon_choose_say(c, true, signs, "a density of 1/3 or more: Achlioptas 2003, any points");
    else
        gnomon_choose_say(c, true, gnomon_chebyshev(a, 1 / density - 1),
                          "Chebyshev's inequality, any points");
}

static void very_sparse_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    const double density = c->descriptor.density;
    const double ratio = very_sparse_variance(a, density) / 2;
    if (density >= 1.0 / 3)
        gnomon_choose_say(c, true, k, "a density of 1/3 or more: no moment above the normal law's");
    else if (ratio <= GNOMON_VARIANCE_SLACK)
        gnomon_choose_say(c, true, k,
                          "the points taken to be incoherent: variance at most %.3g times dense",
                          ratio);
    else
        gnomon_choose_say(c, false, k,
                          "its variance is up to %.3g times that of dense kinds, on %s", ratio,
                          a->incoherent ? "points of so few nonzeros" : "coherent points");
}

static void very_sparse_count(const gnomon_work_sizes *s, bool sparse, gnomon_work *w)
{
    const double density = s->a->density;
    if (sparse) { /* whole chunks are walked */
        w->made = s->d * gnomon_share_touched(s->nonzeros, s->chunks) * s->k * density;
        w->multiplied = s->nonzeros * s->k * density;
        return;
    }
    w->made = s->k * s->d * density;
    w->multiplied = s->points * w->made;
    w->steps = s->k * s->chunks;
}

static void complete(const gnomon_choose_options *o, gnomon_descriptor *d)
{
    d->density = 1 / sqrt((double)o->d);
}

const gnomon_choose_row gnomon_choose_very_sparse = {
    .kind = GNOMON_VERY_SPARSE,
    .count = 1,
    .complete = complete,
    .by_eps = very_sparse_by_eps,
    .by_rows = very_sparse_by_rows,
    .work = very_sparse_count,
};
