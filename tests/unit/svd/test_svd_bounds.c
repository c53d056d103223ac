/* The bound of a Frobenius norm from products with normal vectors: how often it fails where the
 * norm is known, beside what it promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "svd/factor.h"

enum { DRAWS = 4000, MOST_WEIGHTS = 200 };

static uint64_t state = 0x9e3779b97f4a7c15u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * acos(-1.0) * uniform());
}

/* sqrt of the mean of |E g|^2 over r vectors g, E's singular values being those. */
static double draw(const double *values, int count, int r)
{
    double sum = 0;
    for (int j = 0; j < r; j++) {
        for (int i = 0; i < count; i++) {
            const double x = values[i] * normal();
            sum += x * x;
        }
    }
    return sqrt(sum / r);
}

static double norm_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i] * values[i];
    return sqrt(sum);
}

/* The spectra: one value; alike; one of half the sum and many small; falling. */
static int spectrum(int which, double *values)
{
    const int count = which == 0 ? 1 : which == 1 ? 30 : MOST_WEIGHTS;
    for (int i = 0; i < count; i++)
        values[i] = which == 2 && i > 0 ? sqrt(1.0 / MOST_WEIGHTS) : which == 3 ? pow(0.9, i) : 1;
    return count;
}

static void fails_no_more_often_than_promised(void **unused)
{
    static const double failures[] = {0.3, 0.05};
    (void)unused;
    for (int which = 0; which < 4; which++) {
        double values[MOST_WEIGHTS];
        const int count = spectrum(which, values);
        const double norm = norm_of(values, count);
        for (int r = 1; r <= 10; r += 9) {
            for (int f = 0; f < 2; f++) {
                int failed = 0;
                for (int d = 0; d < DRAWS / r; d++)
                    failed +=
                        gnomon_frobenius_bound(draw(values, count, r), 1, r, failures[f]) < norm;
                assert_true(failed <= failures[f] * (DRAWS / r));
                if (which == 0 && r == 1 && f == 0) assert_true(failed > 0);
            }
        }
    }
}

/* With a small largest value the bound comes near the norm; without knowledge of it, it is the one
 * for any E. */
static void knows_many_values_from_one(void **unused)
{
    const double norms[] = {3, 4, 5, 3, 4, 5, 3, 4, 5, 4};
    double estimate, bound;
    (void)unused;
    gnomon_frobenius_of(norms, 10, 0, &estimate, &bound);
    const double blind = gnomon_frobenius_bound(estimate, 2 * bound, 10, GNOMON_FAILURE);
    assert_true(fabs(blind - bound) <= 1e-12 * bound);
    assert_true(bound > 6 * estimate);
    double before = blind;
    for (double spectral = bound; spectral > 1e-3; spectral /= 2) {
        const double now = gnomon_frobenius_bound(estimate, spectral, 10, GNOMON_FAILURE);
        assert_true(now <= before && now >= estimate);
        before = now;
    }
    assert_true(before < 1.001 * estimate);
    assert_true(gnomon_frobenius_bound(estimate, 0, 10, GNOMON_FAILURE) == blind);
    assert_true(gnomon_frobenius_bound(0, 0, 10, GNOMON_FAILURE) == 0);
    assert_true(isnan(gnomon_frobenius_bound((double)NAN, 1, 10, GNOMON_FAILURE)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_no_more_often_than_promised),
        cmocka_unit_test(knows_many_values_from_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
