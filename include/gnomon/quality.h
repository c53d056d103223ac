/* gnomon/quality.h: how many dimensions a bound requires, how a sketch changed norms and distances,
 * and how coherent points are.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/quality.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         gnomon_context *ctx;
 *         int64_t k = 0;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK)
 *             status = gnomon_dim(ctx, GNOMON_BOUND_DASGUPTA_GUPTA, 1000, 0.1, 0, 0, NULL, &k);
 *         printf("%d\n", (int)k); // 5921
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     } */
#ifndef GNOMON_QUALITY_H
#define GNOMON_QUALITY_H

#include <gnomon/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds on k for n points, every pair's squared distance kept within 1 +- eps. */
typedef enum gnomon_bound {
    /* k0 = (4 + 2 beta) / (eps^2/2 - eps^3/3) * ln n, failure at most n^-beta
     * (Achlioptas 2003, Theorem 1.1) */
    GNOMON_BOUND_ACHLIOPTAS = 1,
    /* the smallest k at which the exact law of |Sx|^2 (chi-square with k degrees over k,
     * for Gaussian S) leaves 1 +- eps with probability at most delta over all n(n-1)/2 pairs */
    GNOMON_BOUND_GAUSSIAN_EXACT = 2,
    /* 4 ln n / (eps^2/2 - eps^3/3): scikit-learn's johnson_lindenstrauss_min_dim
     * (Dasgupta and Gupta 2003), failure at most about 1/n */
    GNOMON_BOUND_DASGUPTA_GUPTA = 3
} gnomon_bound;

GNOMON_API const char *gnomon_bound_name(gnomon_bound bound);

/* *real is the bound as a real number, *k is *real rounded up. points >= 2, 0 < eps < 1. beta > 0
 * or 0 < delta < 1 gives the probability of failure, delta = points^-beta; the other is 0. If both
 * are 0, delta is 0.05. DASGUPTA_GUPTA uses neither. real may be NULL.
 * Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_dim(gnomon_context *ctx, gnomon_bound bound, int64_t points,
                                    double eps, double beta, double delta, double *real,
                                    int64_t *k);

/* A sample's summary. Distortion is |Sx|^2/|x|^2 - 1. */
typedef struct gnomon_distortion {
    int64_t count;   /* how many norms or pairs were measured */
    int64_t skipped; /* zero norms or distances, for which the ratio has no meaning */
    double mean, variance, min, max, worst; /* worst: the largest |distortion| */
    double mean_abs;
    double quantile[9];       /* at 0.1, 1, 5, 25, 50, 75, 95, 99, 99.9 percent */
    double outside;           /* share with |distortion| > eps */
    int64_t worst_i, worst_j; /* where; j is -1 for norms */
    int64_t histogram[64];    /* over [histogram_low, histogram_high], the ends closed */
    double histogram_low, histogram_high;
} gnomon_distortion;

typedef struct gnomon_distortion_options {
    size_t struct_size; /* see gnomon/base.h */
    double eps;         /* default 0.1 */
    int64_t max_pairs;  /* all pairs if there are at most this many, else a random sample of this
                           many pairs i < j, with replacement; default 1000000 */
    uint64_t seed;      /* of the sample */
} gnomon_distortion_options;

#define GNOMON_DISTORTION_OPTIONS_INIT                     \
    {                                                      \
        sizeof(gnomon_distortion_options), 0.1, 1000000, 0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_distortion_options_init(gnomon_distortion_options *options,
                                                        size_t size);

/* Compares original (n x D) with sketch (n x k), dense, any dtype; sums in fp64. norms and pairs
 * may be NULL; *all_pairs (may be NULL) is set to 1 if all pairs were measured. Distances are
 * computed from differences, so there is no cancellation.
 * Errors: SHAPE, DTYPE, NONFINITE, ARGUMENT. */
GNOMON_API gnomon_status gnomon_measure_distortion(gnomon_context *ctx,
                                                   const gnomon_matrix *original,
                                                   const gnomon_matrix *sketch,
                                                   const gnomon_distortion_options *options,
                                                   gnomon_distortion *norms,
                                                   gnomon_distortion *pairs, int *all_pairs);
/* The same with sparse originals. */
GNOMON_API gnomon_status gnomon_measure_distortion_csr(gnomon_context *ctx,
                                                       const gnomon_csr *original,
                                                       const gnomon_matrix *sketch,
                                                       const gnomon_distortion_options *options,
                                                       gnomon_distortion *norms,
                                                       gnomon_distortion *pairs, int *all_pairs);

/* The coherence |x|_4^4 / |x|_2^4 of points and of differences of two points: 1 if only one
 * coordinate is nonzero, 1/D if all have the same magnitude, about 3/D for normal coordinates. Very
 * sparse operators preserve |x| with a variance that grows with it (docs/reference/choosing.md).
 */
typedef struct gnomon_coherence {
    size_t struct_size;               /* set by the caller; see gnomon/base.h */
    int64_t points, pairs;            /* the number measured, without zeros and NaN */
    double point_mean, point_most;    /* of points; 0 without any */
    double pair_mean, pair_most;      /* of differences */
    int64_t pair_most_i, pair_most_j; /* where pair_most is; -1 without any */
} gnomon_coherence;

/* Measures all points of x (n x D, dense, any dtype) and all pairs of them, or max_pairs if there
 * are more, a random sample with replacement. Sums in fp64.
 * Errors: ARGUMENT, MEMORY, CANCELLED; for sparse points also DATA. */
GNOMON_API gnomon_status gnomon_measure_coherence(gnomon_context *ctx, const gnomon_matrix *x,
                                                  int64_t max_pairs, uint64_t seed,
                                                  gnomon_coherence *out);
/* The same of sparse points, of which it makes a sorted copy in fp64. */
GNOMON_API gnomon_status gnomon_measure_coherence_csr(gnomon_context *ctx, const gnomon_csr *x,
                                                      int64_t max_pairs, uint64_t seed,
                                                      gnomon_coherence *out);

#ifdef __cplusplus
}
#endif
#endif
