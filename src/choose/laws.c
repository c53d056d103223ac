/* What each kind's law gives (docs/reference/choosing.md): how many rows keep all distances
 * within 1 +- eps, or whether a given number of rows does as well as those of dense kinds.
 *
 * Where a law speaks of all pairs, it is a tail bound for one vector and a union bound over the
 * pairs. Variances are those of |Sx|^2 / |x|^2, times k. */
#include "base/error.h"
#include "choose/choose.h"

#include <gnomon/quality.h>

#include <math.h>
#include <stdio.h>

/* At most this many rows are ever asked for; beyond any operator's. */
#define MOST_ROWS 0x1p40
/* |x|_4^4 / |x|_2^4 of normal coordinates, times their number */
#define SPREAD 3.0
/* How much more than that of dense kinds the variance of an admitted kind may be. */
#define SLACK 1.1

typedef struct asked {
    const gnomon_choose_options *o;
    double pairs, log_delta;
    bool spread;
    double weight; /* spread: at most |x|_4^4 / |x|_2^4; else 1 */
} asked;

static asked read_options(const gnomon_choose_options *o)
{
    asked a = {.o = o, .spread = o->assume == GNOMON_ASSUME_INCOHERENT, .weight = 1};
    const double n = o->n < 2 ? 2 : (double)o->n;
    a.pairs = n * (n - 1) / 2;
    a.log_delta = o->beta > 0 ? -o->beta * log(n) : log(o->delta > 0 ? o->delta : 0.05);
    if (a.spread) {
        double carriers = (double)o->d;
        if (o->nonzeros >= 0 && o->nonzeros < o->n * carriers)
            carriers = fmax(1, (double)o->nonzeros / (double)o->n);
        a.weight = fmin(1, SPREAD / carriers);
    }
    return a;
}

__attribute__((format(printf, 4, 5))) static void say(gnomon_candidate *c, bool admitted,
                                                      double rows, const char *format, ...)
{
    __builtin_va_list list;
    __builtin_va_start(list, format);
    vsnprintf(c->reason, sizeof c->reason, format, list);
    __builtin_va_end(list);
    c->admitted = admitted;
    c->descriptor.k = rows > 0 && rows <= MOST_ROWS ? (int64_t)ceil(rows) : 0;
}

static gnomon_status bound(gnomon_context *ctx, const asked *a, gnomon_bound which, double *rows)
{
    int64_t k;
    const int64_t n = a->o->n < 2 ? 2 : a->o->n;
    GNOMON_TRY(gnomon_dim(ctx, which, n, a->o->eps, a->o->beta, a->o->delta, NULL, &k));
    *rows = (double)k;
    return GNOMON_OK;
}

/* k with pairs * variance / (k eps^2) = delta */
static double chebyshev(const asked *a, double variance)
{
    return a->pairs * variance / (exp(a->log_delta) * a->o->eps * a->o->eps);
}

/* very-sparse: 2 + (1/p - 3) |x|_4^4 / |x|_2^4 (Li, Hastie and Church 2006) */
static double very_sparse_variance(const asked *a, double density)
{
    return fmax(2, 2 + (1 / density - 3) * a->weight);
}

/* sjlt: two columns meet in a band of m rows with probability at most (1 + 1/64) / m: chunks are
 * at least 4 m long, so that a row has at most (1/m)(1 + m^2 / 4 C^2) of a chunk's slots. */
static const double sjlt_variance = 2 * (1 + 1.0 / 64);

/* srht: after the signs no coordinate of any of the pairs is above sqrt(2 ln(2 D' pairs / delta1) /
 * D') (Hoeffding); a sample of k without repetition of squares in [0, B / D'] keeps the mean
 * (Chernoff). */
static double srht_rows(const asked *a)
{
    const double order = exp2(ceil(log2((double)a->o->d))), eps = a->o->eps;
    const double log_half = a->log_delta - log(2);
    const double most = 2 * (log(2 * order) + log(a->pairs) - log_half);
    const double exponent = (1 + eps) * log1p(eps) - eps;
    return most * (log(2 * a->pairs) - log_half) / exponent;
}

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
static bool cascade_keeps(const asked *a, double k, double zeta)
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

static double cascade_rows(const asked *a, double zeta)
{
    double high = 1;
    while (!cascade_keeps(a, high, zeta)) {
        high *= 2;
        if (high > MOST_ROWS) return 0;
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

/* The laws of a kind. by_eps finds k for eps: exact and signs are what the chi-square law and
 * Achlioptas 2003 ask for. by_rows says whether a given k does as well as with dense kinds. */
typedef void by_eps(const asked *a, double exact, double signs, gnomon_candidate *c);
typedef void by_rows(const asked *a, double k, gnomon_candidate *c);

static void gaussian_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    const bool half = c->descriptor.precision == GNOMON_F16;
    if (half && !a->spread)
        say(c, false, exact,
            "the exact law is that of normal entries, not of ones rounded to fp16");
    else
        say(c, true, exact, "exact chi-square law%s",
            half ? ", the points taken to be incoherent" : ", any points");
}

static void gaussian_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    say(c, true, k, "a dense kind: %s",
        c->descriptor.precision == GNOMON_F16 ? "moments within 1e-5 of the normal law's"
                                              : "the normal law, any points");
}

static void signs_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    if (a->spread)
        say(c, true, exact, "chi-square law, the points taken to be incoherent");
    else
        say(c, true, signs, "Achlioptas 2003, any points");
}

static void signs_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    say(c, true, k, "a dense kind: no moment above the normal law's, any points");
}

static void very_sparse_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    const double density = c->descriptor.density;
    if (a->spread)
        say(c, true, exact * very_sparse_variance(a, density) / 2,
            "chi-square law of its variance, the points taken to be incoherent");
    else if (density >= 1.0 / 3)
        say(c, true, signs, "a density of 1/3 or more: Achlioptas 2003, any points");
    else
        say(c, true, chebyshev(a, 1 / density - 1), "Chebyshev's inequality, any points");
}

static void very_sparse_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    const double density = c->descriptor.density;
    const double ratio = very_sparse_variance(a, density) / 2;
    if (density >= 1.0 / 3)
        say(c, true, k, "a density of 1/3 or more: no moment above the normal law's");
    else if (ratio <= SLACK)
        say(c, true, k, "the points taken to be incoherent: variance at most %.3g times dense",
            ratio);
    else
        say(c, false, k, "its variance is up to %.3g times that of dense kinds, on %s", ratio,
            a->spread ? "points of so few nonzeros" : "coherent points");
}

static void sjlt_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    const double s = (double)c->descriptor.nonzeros;
    const double rows = a->spread ? exact * sjlt_variance / 2 : chebyshev(a, sjlt_variance);
    say(c, true, s * ceil(rows / s), "%s",
        a->spread ? "chi-square law of its variance, the points taken to be incoherent"
                  : "Chebyshev's inequality, any points");
}

static void sjlt_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    if (a->spread)
        say(c, true, k, "the points taken to be incoherent");
    else
        say(c, false, k,
            "variance as of dense kinds, but not the tails: coherent points meet in one of the "
            "%lld nonzeros per column",
            (long long)c->descriptor.nonzeros);
}

static void srht_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)signs;
    if (a->spread)
        say(c, true, exact, "chi-square law, the points taken to be incoherent");
    else
        say(c, true, srht_rows(a), "Hoeffding's and Chernoff's inequalities, any points");
}

static void srht_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    if (a->spread)
        say(c, true, k, "the points taken to be incoherent");
    else
        say(c, false, k,
            "variance as of dense kinds, but not the tails: few rows may hold a coherent point's "
            "weight");
}

static void block_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)a;
    (void)exact;
    say(c, true, signs * (double)c->descriptor.blocks,
        "Achlioptas 2003 for the rows of one block, any points");
}

static void block_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    say(c, false, k, "points with their weight in one block see only 1/%lld of the rows",
        (long long)c->descriptor.blocks);
}

static void kronecker_by_eps(const asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)exact;
    (void)signs;
    say(c, true, cascade_rows(a, (double)c->descriptor.zeta),
        "Achlioptas 2003 for every level, any points");
}

static void kronecker_by_rows(const asked *a, double k, gnomon_candidate *c)
{
    const double ratio = cascade_variance(a->o, (double)c->descriptor.zeta);
    say(c, ratio <= SLACK, k, "levels add up: variance %.3g times that of dense kinds", ratio);
}

/* A kind that is not here is no candidate. */
static const struct {
    gnomon_kind kind;
    by_eps *by_eps;
    by_rows *by_rows;
} laws[] = {
    {GNOMON_GAUSSIAN, gaussian_by_eps, gaussian_by_rows},
    {GNOMON_RADEMACHER, signs_by_eps, signs_by_rows},
    {GNOMON_ACHLIOPTAS, signs_by_eps, signs_by_rows},
    {GNOMON_VERY_SPARSE, very_sparse_by_eps, very_sparse_by_rows},
    {GNOMON_SJLT, sjlt_by_eps, sjlt_by_rows},
    {GNOMON_SRHT, srht_by_eps, srht_by_rows},
    {GNOMON_BLOCK, block_by_eps, block_by_rows},
    {GNOMON_KRONECKER, kronecker_by_eps, kronecker_by_rows},
};

gnomon_status gnomon_law(gnomon_context *ctx, const gnomon_choose_options *o,
                         gnomon_candidate *candidate)
{
    const asked a = read_options(o);
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        if (laws[i].kind != candidate->descriptor.kind) continue;
        if (o->k > 0) {
            laws[i].by_rows(&a, (double)o->k, candidate);
            return GNOMON_OK;
        }
        double exact, signs;
        GNOMON_TRY(bound(ctx, &a, GNOMON_BOUND_GAUSSIAN_EXACT, &exact));
        GNOMON_TRY(bound(ctx, &a, GNOMON_BOUND_ACHLIOPTAS, &signs));
        laws[i].by_eps(&a, exact, signs, candidate);
        return GNOMON_OK;
    }
    say(candidate, false, (double)o->k, "there is no law for this kind");
    return GNOMON_OK;
}
