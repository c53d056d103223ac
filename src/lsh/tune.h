/* lsh/tune.h: what the files of tuning share. */
#ifndef GNOMON_LSH_TUNE_H
#define GNOMON_LSH_TUNE_H

#include "lsh/index.h"

/* Some rows of points, copied. */
typedef struct gnomon_some_points {
    int64_t count;
    int64_t *rows; /* which */
    gnomon_matrix dense;
    gnomon_csr sparse;
    gnomon_points points; /* a view of one of them */
    void *memory[3];
} gnomon_some_points;

/* 'skip' and on of a random order of [0, n), which the seed settles: 'count' distinct ones. */
gnomon_status gnomon_some_points_take(gnomon_context *ctx, const gnomon_points *all, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out);
void gnomon_some_points_free(gnomon_context *ctx, gnomon_some_points *some);

/* The p with P(X >= hits) = doubt for X binomial with 'trials' and p: Clopper and Pearson's lower
 * bound. */
double gnomon_binomial_bound(int64_t hits, int64_t trials, double doubt);

/* ---- cost.c: nanoseconds on one thread ---- */
typedef struct gnomon_lsh_sizes {
    gnomon_metric metric;
    int64_t dim;
    double point; /* bytes of a point; sets: mean members */
    int64_t points;
} gnomon_lsh_sizes;

double gnomon_lsh_verify_cost(const gnomon_lsh_sizes *s);
double gnomon_lsh_exact_cost(const gnomon_lsh_sizes *s);
/* Of looking into so many buckets with so many candidates, 'verified' of them. */
double gnomon_lsh_query_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double buckets,
                             double candidates, int64_t codes, double verified);

#endif
