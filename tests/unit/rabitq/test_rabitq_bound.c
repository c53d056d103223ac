/* Estimates against distances in fp64: their mean, and how often their bounds fail. */
#include "rabitq_testing.h"

static double squared(gnomon_metric metric, const gnomon_matrix *a, int64_t i,
                      const gnomon_matrix *b, int64_t j)
{
    double na = 0, nb = 0, sum = 0;
    for (int64_t c = 0; c < a->cols; c++) {
        na += at(a, i, c) * at(a, i, c);
        nb += at(b, j, c) * at(b, j, c);
    }
    const double fa = metric == GNOMON_COSINE && na > 0 ? 1 / sqrt(na) : 1;
    const double fb = metric == GNOMON_COSINE && nb > 0 ? 1 / sqrt(nb) : 1;
    for (int64_t c = 0; c < a->cols; c++) {
        const double d = at(a, i, c) * fa - at(b, j, c) * fb;
        sum += d * d;
    }
    return sum;
}

typedef struct rates {
    double pairs, beyond, surely_beyond; /* of a failure, of none */
    double pull, far; /* mean error by the mean bound: over all, and of the pair farthest from 0 */
} rates;

/* Over so many rotations. */
static rates measure(gnomon_context *ctx, gnomon_metric metric, kind like, int64_t dim,
                     int64_t bits, double failure, int seeds)
{
    enum { POINTS = 48, QUERIES = 12 };
    const gnomon_matrix base = make_points(like, GNOMON_F64, POINTS, dim, 7);
    const gnomon_matrix queries = make_points(like, GNOMON_F64, QUERIES, dim, 11);
    double *estimates = malloc(POINTS * QUERIES * 8), *bounds = malloc(POINTS * QUERIES * 8);
    double *sure = malloc(POINTS * QUERIES * 8), *sum = calloc(POINTS * QUERIES, 8);
    double *by = calloc(POINTS * QUERIES, 8);
    const gnomon_matrix e = gnomon_matrix_rowmajor(estimates, GNOMON_F64, QUERIES, POINTS);
    const gnomon_matrix b = gnomon_matrix_rowmajor(bounds, GNOMON_F64, QUERIES, POINTS);
    const gnomon_matrix s = gnomon_matrix_rowmajor(sure, GNOMON_F64, QUERIES, POINTS);
    rates r = {0};
    for (int seed = 0; seed < seeds; seed++) {
        gnomon_rabitq *index = index_of(ctx, metric, bits, (uint64_t)seed, &base);
        expect(ctx, gnomon_rabitq_estimate(ctx, index, &queries, failure, &e, &b), GNOMON_OK);
        expect(ctx, gnomon_rabitq_estimate(ctx, index, &queries, 0, &e, &s), GNOMON_OK);
        for (int64_t q = 0; q < QUERIES; q++) {
            for (int64_t i = 0; i < POINTS; i++) {
                const double error =
                    estimates[q * POINTS + i] - squared(metric, &queries, q, &base, i);
                r.pairs++;
                r.beyond += !(fabs(error) <= bounds[q * POINTS + i]);
                r.surely_beyond += !(fabs(error) <= sure[q * POINTS + i]);
                sum[q * POINTS + i] += error;
                by[q * POINTS + i] += bounds[q * POINTS + i];
            }
        }
        gnomon_rabitq_destroy(index);
    }
    for (int64_t i = 0; i < POINTS * QUERIES; i++) {
        r.pull += sum[i] / by[i] / (POINTS * QUERIES);
        r.far = fmax(r.far, fabs(sum[i]) / by[i]);
    }
    free(base.data);
    free(queries.data);
    free(estimates);
    free(bounds);
    free(sure);
    free(sum);
    free(by);
    return r;
}

static void bounds_hold(void **state)
{
    (void)state;
    static const int64_t dims[] = {3, 20, 64, 100, 200};
    gnomon_context *ctx = context_of(2, 0);
    for (int like = 0; like < KINDS; like++) {
        for (int d = 0; d < 5; d++) {
            for (int64_t bits = 1; bits <= 8; bits += bits == 1 ? 1 : 2) {
                const gnomon_metric metric = (like + d) % 3 == 2 ? GNOMON_COSINE : GNOMON_L2;
                const double failure = bits % 4 == 0 ? 0.02 : 0.1;
                const rates r = measure(ctx, metric, (kind)like, dims[d], bits, failure, 12);
                if (r.surely_beyond > 0)
                    fail_msg("%s, %d dimensions, %d bits: %g pairs beyond the bound",
                             kind_names[like], (int)dims[d], (int)bits, r.surely_beyond);
                /* pairs of one rotation go together: room for that */
                if (r.beyond > r.pairs * failure * 1.6)
                    fail_msg("%s, %d dimensions, %d bits: %g of pairs beyond the bound of %g",
                             kind_names[like], (int)dims[d], (int)bits, r.beyond / r.pairs,
                             failure);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

/* The mean error of a pair over rotations, by the bound that two thirds keep, is below 6 of its
 * standard deviations, and that of all pairs far below. */
static void estimates_are_unbiased(void **state)
{
    (void)state;
    enum { SEEDS = 200 };
    static const kind some[] = {BELL, CLUSTERS, TAILS, PAIRS, WILD};
    gnomon_context *ctx = context_of(2, 0);
    for (int like = 0; like < 5; like++) {
        for (int64_t bits = 1; bits <= 4; bits += 3) {
            const rates r =
                measure(ctx, GNOMON_L2, some[like], like % 2 == 0 ? 100 : 64, bits, 0.32, SEEDS);
            if (r.far > 6 / sqrt(SEEDS) || fabs(r.pull) > 0.02)
                fail_msg("%s, %d bits: mean error %g of the bound, at most %g of one pair's",
                         kind_names[some[like]], (int)bits, r.pull, r.far);
        }
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(estimates_are_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
