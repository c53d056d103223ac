/* The cost model: what the parts of a query take, in nanoseconds on one thread of a Zen 3 at 3 GHz,
 * as bench/cpu/lsh_cost.py fits them. Choices follow from it and never from a clock, so that they
 * are the same every time. */
#include "lsh/families/family.h"
#include "lsh/tune/tune.h"
#include "metric/metric.h"
#include "search/form.h"

#include <math.h>

static const double per_product = 0.013;       /* a coordinate and function, among many queries */
static const double per_cauchy_product = 0.12; /* with making the entries */
static const double per_value = 10;            /* a function's value and what it could be instead */
static const double per_member_hash = 11;
static const double per_bucket = 220; /* with choosing it */
static const double per_candidate = 3;
static const double per_code = 6, per_code_byte = 0.1; /* with choosing the nearest */
/* Of lists: a query's coordinate, made ready for the filter; a list; and how many points pass. */
static const double per_asked = 5, per_list = 200, passed_per_neighbour = 4, passed = 20;

/* What comes before queries, from processor times of the steps of tuning on clusters and images. */
static const double per_built_product = 0.035, per_built_value = 8;
static const double per_place = 80; /* a point's in a table, with sorting */
static const double per_made_code = 100, per_coded_coordinate = 1.5;
static const double per_ranked_code = 5, per_code_before = 0.2;    /* a true neighbour of a query */
static const double per_trials = 4e8, per_trials_coordinate = 8e5; /* all shapes, some points */

static double cost_of(const gnomon_metric_cost *c, const gnomon_lsh_sizes *s)
{
    return c->start + c->point * s->point + c->dim * (double)s->dim;
}

/* Of sparse rows: two that lie anywhere, merged by their columns. */
static const double sparse_start = 40;

double gnomon_lsh_verify_cost(const gnomon_lsh_sizes *s)
{
    if (s->sparse) return sparse_start + GNOMON_SPARSE_MERGE_COST * s->point;
    return cost_of(&gnomon_metric_row_of(s->metric)->verify_cost, s);
}

/* A pair of those that the filter of exact search compares. */
static double pair_cost(const gnomon_lsh_sizes *s)
{
    return cost_of(&gnomon_metric_row_of(s->metric)->exact_cost, s);
}

double gnomon_lsh_exact_cost(const gnomon_lsh_sizes *s)
{
    if (s->sparse)
        return (double)s->points * gnomon_sparse_exact_cost(s->work, s->shared, s->heavy);
    return (double)s->points * pair_cost(s);
}

static double hash_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double product)
{
    if (h->f.family == GNOMON_LSH_PSTABLE_L1)
        return per_cauchy_product * (double)s->dim * (double)h->products;
    const double members = gnomon_family_row_of(h->f.family)->members;
    if (members > 0) return members * per_member_hash * s->point * (double)h->f.count;
    if (s->sparse) return GNOMON_SPARSE_PRODUCT_COST * s->point * (double)h->products;
    return h->op ? product * (double)s->dim * (double)h->products : 0;
}

int gnomon_lsh_list_counts(const gnomon_lsh_sizes *s, int64_t counts[GNOMON_LSH_LIST_COUNTS])
{
    enum { LEAST = 32, UNIT = 16 }; /* points of the first number's lists, on average */
    int found = 0;
    for (int i = 1; i <= GNOMON_LSH_LIST_COUNTS; i++) {
        const double most = fmin((double)(i * s->points) / LEAST, GNOMON_LSH_MOST_CENTRES);
        const double count = fmin(2 * i * sqrt((double)s->points), most);
        counts[found] = (int64_t)count / UNIT * UNIT;
        if (counts[found] >= UNIT && (found == 0 || counts[found] > counts[found - 1])) found++;
    }
    return found;
}

/* So many points' lists, and rounds of training on 'trained' a centre. */
static double lists_cost(const gnomon_lsh_sizes *s, double centres, double points, double trained,
                         double rounds)
{
    const double compared = rounds * fmin((double)s->points, trained * centres) + points;
    return compared * (centres * pair_cost(s) + per_asked * (double)s->dim);
}

/* Training, and each point's list. */
static double lists_build_cost(const gnomon_lsh_sizes *s, double centres)
{
    return lists_cost(s, centres, (double)s->points, GNOMON_LSH_TRAINED, GNOMON_LSH_ROUNDS);
}

/* Centres and the lists' points are compared as by exact search; of few points, as of many, some
 * pass the filter. */
static double lists_query_cost(const gnomon_lsh_sizes *s, double centres, double lists,
                               double candidates)
{
    const double pass = fmin(candidates, passed_per_neighbour * (double)s->k + passed);
    const double compared = centres + (s->k > 0 ? candidates : 0);
    return compared * pair_cost(s) + 2 * per_asked * (double)s->dim + per_list * lists +
           gnomon_lsh_verify_cost(s) * (s->k > 0 ? pass : candidates);
}

double gnomon_lsh_lists_cost(const gnomon_lsh_sizes *s)
{
    int64_t counts[GNOMON_LSH_LIST_COUNTS];
    const int found = gnomon_lsh_list_counts(s, counts);
    /* the first rounds of the number that is chosen are those that chose it */
    const int first = found > 1 ? GNOMON_LSH_BRIEF_ROUNDS : 0;
    double cost = found > 0 ? lists_cost(s, (double)counts[0], (double)s->points,
                                         GNOMON_LSH_TRAINED, GNOMON_LSH_ROUNDS - first)
                            : 0;
    for (int i = 0; i < found && found > 1; i++)
        cost += lists_cost(s, (double)counts[i], GNOMON_LSH_BRIEF_POINTS,
                           GNOMON_LSH_TRAINED_BRIEFLY, GNOMON_LSH_BRIEF_ROUNDS);
    return cost;
}

double gnomon_lsh_build_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, int64_t tables)
{
    if (h->centres != NULL) return lists_build_cost(s, (double)h->f.centre_count);
    return (double)s->points * (hash_cost(s, h, per_built_product) +
                                per_built_value * (double)h->f.count + per_place * (double)tables);
}

double gnomon_lsh_codes_cost(const gnomon_lsh_sizes *s, int64_t queries, int64_t k)
{
    const double make = per_made_code + per_coded_coordinate * (double)s->dim;
    const double rank = per_ranked_code + per_code_before * (double)k;
    return (double)s->points * (make + (double)queries * rank);
}

double gnomon_lsh_trials_cost(const gnomon_lsh_sizes *s)
{
    if (gnomon_metric_of_sets(s->metric) || gnomon_metric_takes(s->metric, GNOMON_POINTS_BITS))
        return per_trials / 8;
    return per_trials + per_trials_coordinate * (s->sparse ? 10 * s->point : (double)s->dim);
}

double gnomon_lsh_candidates_cost(const gnomon_lsh_sizes *s, double candidates, int64_t codes)
{
    const double looked_at =
        codes > 0 ? per_code + per_code_byte * (double)codes : gnomon_lsh_verify_cost(s);
    return candidates * (per_candidate + looked_at);
}

double gnomon_lsh_query_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double buckets,
                             double candidates, int64_t codes, double verified)
{
    if (h->centres != NULL)
        return lists_query_cost(s, (double)h->f.centre_count, buckets, candidates);
    double cost = hash_cost(s, h, per_product) + per_value * (double)h->f.count +
                  per_bucket * buckets + per_candidate * candidates +
                  gnomon_lsh_verify_cost(s) * verified;
    if (codes > 0) cost += (per_code + per_code_byte * (double)codes) * candidates;
    return cost;
}
