/* The cost model: what the parts of a query take, in nanoseconds on one thread of a Zen 3 at 3 GHz,
 * as bench/cpu/lsh_cost.py fits them. Choices follow from it and never from a clock, so that they
 * are the same every time. */
#include "lsh/tune/tune.h"

static const double per_product = 0.013;       /* a coordinate and function, among many queries */
static const double per_cauchy_product = 0.12; /* with making the entries */
static const double per_value = 10;            /* a function's value and what it could be instead */
static const double per_member_hash = 11;
static const double per_bucket = 220; /* with choosing it */
static const double per_candidate = 3;
static const double per_code = 6, per_code_byte = 0.1; /* with choosing the nearest */

double gnomon_lsh_verify_cost(const gnomon_lsh_sizes *s)
{
    switch (s->metric) {
    case GNOMON_HAMMING:
        return 15 + 0.5 * s->point;
    case GNOMON_JACCARD:
        return 40 + 6 * s->point;
    case GNOMON_COSINE: /* the norm, then the difference */
        return 80 + 0.1 * s->point + 0.4 * (double)s->dim;
    case GNOMON_L1:
        return 60 + 0.1 * s->point + 0.67 * (double)s->dim;
    default:
        return 60 + 0.1 * s->point + 0.3 * (double)s->dim;
    }
}

double gnomon_lsh_exact_cost(const gnomon_lsh_sizes *s)
{
    const double n = (double)s->points;
    switch (s->metric) {
    case GNOMON_HAMMING:
        return n * (0.5 + 0.08 * s->point);
    case GNOMON_JACCARD:
        return n * (0.1 + 0.06 * s->point);
    case GNOMON_COSINE:
        return n * (1 + 0.02 * (double)s->dim);
    case GNOMON_L1: /* no filter */
        return n * (50 + 0.5 * (double)s->dim);
    default:
        return n * (0.8 + 0.0145 * (double)s->dim);
    }
}

double gnomon_lsh_query_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double buckets,
                             double candidates, int64_t codes, double verified)
{
    double hash = 0;
    if (h->op) hash = per_product * (double)s->dim * (double)h->products;
    if (h->f.family == GNOMON_LSH_PSTABLE_L1)
        hash = per_cauchy_product * (double)s->dim * (double)h->products;
    if (h->f.family == GNOMON_LSH_MINHASH) hash = per_member_hash * s->point * (double)h->f.count;
    double cost = hash + per_value * (double)h->f.count + per_bucket * buckets +
                  per_candidate * candidates + gnomon_lsh_verify_cost(s) * verified;
    if (codes > 0) cost += (per_code + per_code_byte * (double)codes) * candidates;
    return cost;
}
