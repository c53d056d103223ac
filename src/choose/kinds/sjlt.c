/* sjlt: the variance of dense kinds without their tails, and a few nonzeros a column. */
#include "choose/kinds/kinds.h"

#include <math.h>

/* sjlt: two columns meet in a band of m rows with probability at most (1 + 1/64) / m: chunks are
 * at least 4 m long, so that a row has at most (1/m)(1 + m^2 / 4 C^2) of a chunk's slots. */
static const double sjlt_variance = 2 * (1 + 1.0 / 64);

static void sjlt_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    const double s = (double)c->descriptor.nonzeros;
    const double rows =
        a->incoherent ? exact * sjlt_variance / 2 : gnomon_chebyshev(a, sjlt_variance);
    gnomon_choose_say(c, true, s * ceil(rows / s), "%s",
                      a->incoherent
                          ? "chi-square law of its variance, the points taken to be incoherent"
                          : "Chebyshev's inequality, any points");
}

static void sjlt_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    if (a->incoherent)
        gnomon_choose_say(c, true, k, "the points taken to be incoherent");
    else
        gnomon_choose_say(
            c, false, k,
            "variance as of dense kinds, but not the tails: coherent points meet in one of the "
            "%lld nonzeros per column",
            (long long)c->descriptor.nonzeros);
}

static void sjlt_count(const gnomon_work_sizes *s, bool sparse, gnomon_work *w)
{
    const double entries = (double)s->a->column_entries;
    w->made = (sparse ? s->columns : s->d) * entries;
    w->multiplied = sparse ? s->nonzeros * entries : s->points * w->made;
    if (!sparse) w->steps = s->points * s->k * s->chunks;
}

static void complete(const gnomon_choose_options *o, gnomon_descriptor *d)
{
    d->nonzeros = o->k > 0 && o->k < 4 ? o->k : 4;
}

const gnomon_choose_row gnomon_choose_sjlt = {
    .kind = GNOMON_SJLT,
    .count = 1,
    .complete = complete,
    .by_eps = sjlt_by_eps,
    .by_rows = sjlt_by_rows,
    .work = sjlt_count,
};
