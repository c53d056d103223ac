/* gnomon_measure_coherence against its definition. */
#include "project.h"

enum { N = 23, D = 37 };

/* |x|_4^4 / |x|_2^4 of a row, or of the difference of two, in long double. */
static double naive(const gnomon_matrix *x, int64_t i, int64_t j)
{
    long double s2 = 0, s4 = 0;
    for (int64_t c = 0; c < x->cols; c++) {
        const long double v =
            (long double)element(x, i, c) - (j < 0 ? 0 : (long double)element(x, j, c));
        s2 += v * v;
        s4 += v * v * (v * v);
    }
    return (double)(s4 / (s2 * s2));
}

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%g, not %g", value, expected);
}

static void check(const gnomon_matrix *x, const gnomon_coherence *c)
{
    double mean = 0, most = 0, pair_mean = 0, pair_most = 0;
    for (int64_t i = 0; i < N; i++) {
        mean += naive(x, i, -1) / N;
        most = fmax(most, naive(x, i, -1));
        for (int64_t j = i + 1; j < N; j++) {
            pair_mean += naive(x, i, j) / (N * (N - 1) / 2);
            pair_most = fmax(pair_most, naive(x, i, j));
        }
    }
    assert_int_equal(c->points, N);
    assert_int_equal(c->pairs, N * (N - 1) / 2);
    check_near(c->point_mean, mean);
    check_near(c->point_most, most);
    check_near(c->pair_mean, pair_mean);
    check_near(c->pair_most, pair_most);
    check_near(naive(x, c->pair_most_i, c->pair_most_j), pair_most);
}

static void it_is_what_it_is_defined_as(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        gnomon_context *ctx = make_context(threads, 0);
        for (int dtype = GNOMON_F32; dtype <= GNOMON_U64; dtype++)
            for (int layout = 0; layout < LAYOUTS; layout += 3) {
                owned x = make_matrix(N, D, (gnomon_dtype)dtype, layout);
                fill_random(&x.m, 5);
                gnomon_coherence c = {.struct_size = sizeof c};
                ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &x.m, 1000, 0, &c));
                check(&x.m, &c);
                free_matrix(&x);
            }
        gnomon_context_destroy(ctx);
    }
}

static void sparse_points_have_that_of_dense_ones(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    owned x = make_matrix(N, D, GNOMON_F64, ROW_MAJOR);
    int64_t offsets[N + 1], cols[N * D], at = 3;
    double values[N * D];
    uint64_t random = 9;
    for (int64_t i = 0; i < N; i++) {
        offsets[i] = at;
        for (int64_t j = D - 1; j >= 0; j--) { /* descending, and those of 5 in two parts */
            const double v = next_random(&random) % 4 == 0 || j == i ? next_uniform(&random) : 0;
            set_element(&x.m, i, j, v);
            if (v == 0) continue;
            for (int part = 0; part < (j == 5 ? 2 : 1); part++) {
                cols[at - 3] = j;
                values[at++ - 3] = j == 5 ? v / 2 : v;
            }
        }
    }
    offsets[N] = at;
    const gnomon_csr csr = {N, D, offsets, cols, values, GNOMON_F64};
    gnomon_coherence c = {.struct_size = sizeof c};
    ASSERT_OK(ctx, gnomon_measure_coherence_csr(ctx, &csr, 1000, 0, &c));
    check(&x.m, &c);
    free_matrix(&x);
    gnomon_context_destroy(ctx);
}

static void ends_of_the_range(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(1, 0);
    gnomon_coherence c = {.struct_size = sizeof c};
    static const double sizes[] = {1, 1e308, 1e-308, DBL_TRUE_MIN};
    for (int s = 0; s < 4; s++) {
        /* a simplex: points 1, differences 1/2 */
        double x[5 * 5] = {0};
        for (int i = 0; i < 5; i++)
            x[i * 6] = sizes[s] / (s < 3 ? 2 : 1);
        const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F64, 5, 5);
        ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &m, 4, 7, &c));
        assert_int_equal(c.pairs, 4);
        assert_true(c.point_mean == 1 && c.point_most == 1);
        check_near(c.pair_mean, 0.5);
        check_near(c.pair_most, 0.5);
        /* all the same: no differences; zeros: nothing at all; NaN is left out */
        for (int i = 0; i < 25; i++)
            x[i] = sizes[s];
        ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &m, 100, 0, &c));
        assert_true(c.points == 5 && c.pairs == 0 && c.pair_most == 0 && c.pair_most_i == -1);
        check_near(c.point_most, 0.2);
        x[7] = NAN;
        ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &m, 100, 0, &c));
        assert_int_equal(c.points, 4);
        memset(x, 0, sizeof x);
        ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &m, 100, 0, &c));
        assert_true(c.points == 0 && c.pairs == 0);
    }
    const gnomon_matrix none = gnomon_matrix_rowmajor(NULL, GNOMON_F64, 0, 5);
    ASSERT_OK(ctx, gnomon_measure_coherence(ctx, &none, 100, 0, &c));
    assert_int_equal(c.points, 0);
    gnomon_coherence old = {.struct_size = 1};
    ASSERT_FAILS(ctx, gnomon_measure_coherence(ctx, &none, 1, 0, &old), GNOMON_ERROR_ARGUMENT,
                 "struct_size");
    ASSERT_FAILS(ctx, gnomon_measure_coherence(ctx, &none, 1, 0, NULL), GNOMON_ERROR_ARGUMENT,
                 "out");
    ASSERT_FAILS(ctx, gnomon_measure_coherence(ctx, &none, 0, 0, &c), GNOMON_ERROR_ARGUMENT,
                 "max_pairs is 0");
    ASSERT_FAILS(ctx, gnomon_measure_coherence(ctx, NULL, 1, 0, &c), GNOMON_ERROR_ARGUMENT, "x");
    ASSERT_FAILS(ctx, gnomon_measure_coherence_csr(ctx, NULL, 1, 0, &c), GNOMON_ERROR_ARGUMENT,
                 "x is NULL");
    assert_int_equal(gnomon_measure_coherence(NULL, &none, 1, 0, &c), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_it_is_defined_as),
        cmocka_unit_test(sparse_points_have_that_of_dense_ones),
        cmocka_unit_test(ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
