/* The bounds on k: closed forms, the exact law against known tails, bad arguments. */
#include "quality/gamma.h"

#include <gnomon/quality.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void close_to(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("got %.17g, want %.17g", got, want);
}

/* ln of both tails by mpmath's regularised incomplete gamma function, 50 digits. */
static void test_chi_square_tails(void **state)
{
    (void)state;
    static const struct {
        double k, x, below, above;
    } known[] = {
        {1, 0.01, -2.530042001547239, -0.08300741217032801},
        {1, 30, -4.320463151159505e-8, -16.95731815812879},
        {2, 2, -0.4586751453870819, -1.0},
        {10, 3, -3.985888287379789, -0.01875063577992678},
        {100, 60, -7.563815824707172, -0.0005190261333113415},
        {1000, 1200, -1.225601743529776e-5, -11.30949965037668},
        {1855, 1484, -24.21189197303199, -3.054280501773464e-11},
        {1855, 2226, -4.808882627114446e-9, -19.15280108427469},
        {100000, 97000, -25.8031351077848, -6.220722192604665e-12},
        {100000, 103000, -1.528913011741923e-11, -24.90387898986877},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        close_to(gnomon_chi2_log_below(known[i].k, known[i].x), known[i].below, 1e-10);
        close_to(gnomon_chi2_log_above(known[i].k, known[i].x), known[i].above, 1e-10);
    }
    /* far below what a double probability holds */
    assert_true(gnomon_chi2_log_above(1e6, 2e6) < -1e5);
    assert_true(isfinite(gnomon_chi2_log_above(1e6, 2e6)));
    assert_true(isfinite(gnomon_chi2_log_below(1e6, 1e5)));
}

static int make(void **state)
{
    gnomon_context *ctx;
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK) return -1;
    *state = ctx;
    return 0;
}

static int drop(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

static void expect(gnomon_context *ctx, gnomon_bound bound, int64_t n, double eps, double beta,
                   double delta, double want_real, int64_t want_k)
{
    double real = -1;
    int64_t k = -1;
    assert_int_equal(gnomon_dim(ctx, bound, n, eps, beta, delta, &real, &k), GNOMON_OK);
    assert_int_equal(k, want_k);
    if (want_real > 0) close_to(real, want_real, 1e-12);
}

static void test_known(void **state)
{
    gnomon_context *ctx = *state;
    expect(ctx, GNOMON_BOUND_ACHLIOPTAS, 256, 0.2, 0.9, 0, 1855.5016833450838, 1856);
    expect(ctx, GNOMON_BOUND_ACHLIOPTAS, 256, 0.2, 0, pow(256, -0.9), 1855.5016833450838, 1856);
    expect(ctx, GNOMON_BOUND_ACHLIOPTAS, 1000000, 0.1, 1, 0, 17762.799288811202, 17763);
    expect(ctx, GNOMON_BOUND_DASGUPTA_GUPTA, 256, 0.2, 0, 0, 1279.6563333414372, 1280);
    expect(ctx, GNOMON_BOUND_DASGUPTA_GUPTA, 1000000, 0.1, 3, 0, 11841.866192540803, 11842);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 256, 0.2, 0.9, 0, 0, 1445);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 256, 0.2, 0, 0, 0, 1229);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 1000, 0.1, 0, 0.05, 0, 5806);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 60000, 0.1, 0, 0.01, 0, 9837);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 1000000, 0.3, 0, 0.05, 0, 1431);
    expect(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 2, 0.5, 0, 0.5, 0, 4);
}

/* The exact law never asks for more than the bound that is proved from it. */
static void test_order(void **state)
{
    gnomon_context *ctx = *state;
    for (int64_t n = 2; n < 2000000; n = n * 3 + 1)
        for (double eps = 0.05; eps < 0.9; eps += 0.2) {
            int64_t exact, achlioptas;
            assert_int_equal(
                gnomon_dim(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, n, eps, 1, 0, NULL, &exact), 0);
            assert_int_equal(
                gnomon_dim(ctx, GNOMON_BOUND_ACHLIOPTAS, n, eps, 1, 0, NULL, &achlioptas), 0);
            assert_true(exact <= achlioptas);
        }
}

static void refuse(gnomon_context *ctx, gnomon_bound bound, int64_t n, double eps, double beta,
                   double delta, gnomon_status want, const char *word)
{
    int64_t k = 7;
    assert_int_equal(gnomon_dim(ctx, bound, n, eps, beta, delta, NULL, &k), want);
    assert_int_equal(k, 7);
    if (!strstr(gnomon_last_error(ctx), word))
        fail_msg("'%s' does not name %s", gnomon_last_error(ctx), word);
}

static void test_refused(void **state)
{
    gnomon_context *ctx = *state;
    const gnomon_bound a = GNOMON_BOUND_ACHLIOPTAS;
    const gnomon_status bad = GNOMON_ERROR_ARGUMENT;
    refuse(ctx, a, 1, 0.1, 0, 0, bad, "points is 1");
    refuse(ctx, a, -5, 0.1, 0, 0, bad, "points is -5");
    refuse(ctx, a, 10, 0, 0, 0, bad, "eps is 0");
    refuse(ctx, a, 10, 1, 0, 0, bad, "eps is 1");
    refuse(ctx, a, 10, (double)NAN, 0, 0, bad, "eps is nan");
    refuse(ctx, a, 10, 0.1, -1, 0, bad, "beta is -1");
    refuse(ctx, a, 10, 0.1, (double)NAN, 0, bad, "beta is nan");
    refuse(ctx, a, 10, 0.1, (double)INFINITY, 0, bad, "beta is inf");
    refuse(ctx, a, 10, 0.1, 0, 1, bad, "delta is 1");
    refuse(ctx, a, 10, 0.1, 0, -0.5, bad, "delta is -0.5");
    refuse(ctx, a, 10, 0.1, 1, 0.1, bad, "beta is 1 and delta is 0.1");
    refuse(ctx, (gnomon_bound)99, 10, 0.1, 1, 0, bad, "bound is 99");
    refuse(ctx, a, 10, 1e-9, 1, 0, GNOMON_ERROR_OVERFLOW, "2^40");
    refuse(ctx, GNOMON_BOUND_GAUSSIAN_EXACT, 10, 1e-9, 1, 0, GNOMON_ERROR_OVERFLOW, "2^40");
    assert_int_equal(gnomon_dim(ctx, a, 10, 0.1, 1, 0, NULL, NULL), bad);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(gnomon_bound_name(GNOMON_BOUND_ACHLIOPTAS), "achlioptas");
    assert_string_equal(gnomon_bound_name(GNOMON_BOUND_GAUSSIAN_EXACT), "gaussian-exact");
    assert_string_equal(gnomon_bound_name(GNOMON_BOUND_DASGUPTA_GUPTA), "dasgupta-gupta");
    assert_string_equal(gnomon_bound_name((gnomon_bound)0), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chi_square_tails),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
