/* The cost model: what the parts of a query take, in nanoseconds on one thread of a Zen 3 at 3 GHz.
 * Choices follow from it and never from a clock, so that they are the same every time. */
#include "lsh/tune.h"

static const double per_product = 0.04; /* a coordinate and function, among many queries */
static const double per_member_hash = 5;
static const double per_bucket = 90;
static const double per_candidate = 8;
static const double per_code = 6, per_code_byte = 0.1; /* with choosing the nearest */

double gnomon_lsh_verify_cost(const gnomon_lsh_sizes *s)
{
    switch (s->metric) {
    case GNOMON_HAMMING:
        return 25 + 0.2 * s->point;
    case GNOMON_JACCARD:
        return 40 + 6 * s->point;
    case GNOMON_COSINE: /* the norm, then the difference */
        return 80 + 0.25 * s->point + 0.35 * (double)s->dim;
    default:
        return 60 + 0.25 * s->point + 0.2 * (double)s->dim;
    }
}

double gnomon_lsh_exact_cost(const gnomon_lsh_sizes *s)
{
    const double n = (double)s->points;
    switch (s->metric) {
    case GNOMON_HAMMING:
        return n * (1 + 0.1 * s->point);
    case GNOMON_JACCARD:
        return n * (2 + 0.5 * s->point);
    default:
        return n * (1 + 0.03 * (double)s->dim);
    }
}

double gnomon_lsh_query_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double buckets,
                             double candidates, int64_t codes, double verified)
{
    double hash = 0;
    if (h->op) hash = per_product * (double)s->dim * (double)h->products;
    if (h->f.family == GNOMON_LSH_MINHASH) hash = per_member_hash * s->point * (double)h->f.count;
    if (h->f.family == GNOMON_LSH_BIT_SAMPLING) hash = 2 * (double)h->f.count;
    double cost = hash + per_bucket * buckets + per_candidate * candidates +
                  gnomon_lsh_verify_cost(s) * verified;
    if (codes > 0) cost += (per_code + per_code_byte * (double)codes) * candidates;
    return cost;
}
