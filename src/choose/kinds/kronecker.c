/* kronecker: the errors of the levels of a cascade add up. */
#include "choose/kinds/kinds.h"

#include <math.h>

/* ln of the probability that one level of k rows leaves 1 +- eps (Achlioptas 2003) */
static double level_failure(double k, double eps)
{
    return log(2) - k / 2 * (eps * eps / 2 - eps * eps * eps / 3);
}

/* Rows of level t of a cascade of width k with so many levels. */
static double level_rows(double k, int t, int levels)
{
    return t < levels ? t * k : k;
}

/* Whether a cascade of width k keeps eps: every level t its own eps_t, proportional to 1 / sqrt of
 * its rows, with the product of 1 + eps_t at 1 + eps (that of 1 - eps_t is then above 1 - eps). */
static bool cascade_keeps(const gnomon_asked *a, double k, double zeta)
{
    int levels = 1;
    while (k * pow(zeta, levels) < (double)a->o->d)
        levels++;
    double low = 0, high = a->o->eps * sqrt(k) * levels;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        double sum = 0;
        for (int t = 1; t <= levels; t++)
            sum += log1p(middle / sqrt(level_rows(k, t, levels)));
        if (sum <= log1p(a->o->eps))
            low = middle;
        else
            high = middle;
    }
    double failure = 0;
    for (int t = 1; t <= levels; t++) {
        const double rows = level_rows(k, t, levels);
        failure += exp(level_failure(rows, low / sqrt(rows)) + log(a->pairs));
    }
    return failure <= exp(a->log_delta);
}

static double cascade_rows(const gnomon_asked *a, double zeta)
{
    double high = 1;
    while (!cascade_keeps(a, high, zeta)) {
        high *= 2;
        if (high > GNOMON_MOST_ROWS) return 0;
    }
    double low = floor(high / 2);
    while (high - low > 1) {
        const double middle = floor((low + high) / 2);
        if (cascade_keeps(a, middle, zeta))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* What a cascade's variance is to that of one dense level, at most. */
static double cascade_variance(const gnomon_choose_options *o, double zeta)
{
    const double k = (double)o->k;
    double product = 1;
    int levels = 1;
    while (k * pow(zeta, levels) < (double)o->d)
        levels++;
    for (int t = 1; t <= levels; t++)
        product *= 1 + 2 / level_rows(k, t, levels);
    return (product - 1) * k / 2;
}

static void kronecker_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)exact;
    (void)signs;
    gnomon_choose_say(c, true, cascade_rows(a, (double)c->descriptor.zeta),
                      "Achlioptas 2003 for every level, any points");
}

static void kronecker_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    const double ratio = cascade_variance(a->o, (double)c->descriptor.zeta);
    gnomon_choose_say(c, ratio <= GNOMON_VARIANCE_SLACK, k,
                      "levels add up: variance %.3g times that of dense kinds", ratio);
}

const gnomon_choose_row gnomon_choose_kronecker = {
    .kind = GNOMON_KRONECKER,
    .candidates = {{.zeta = 2}, {.zeta = 4}, {.zeta = 16}},
    .count = 3,
    .by_eps = kronecker_by_eps,
    .by_rows = kronecker_by_rows,
};
