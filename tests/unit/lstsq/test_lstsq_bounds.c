/* The figures of a solution against plain sums, where a bound is as tight as it can be. */
#include "lstsq_testing.h"

enum { N = 700, D = 9 };

/* x rounded to float is off by far more than double rounding, and A itself factored leaves the
 * bounds no slack. */
static gnomon_lstsq solve(gnomon_context *ctx, problem *p, double lambda, int64_t k, int64_t steps,
                          gnomon_dtype dtype)
{
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out = {.struct_size = sizeof out};
    const gnomon_matrix view = gnomon_matrix_rowmajor(p->a, GNOMON_F64, N, D);
    const gnomon_matrix right = gnomon_matrix_rowmajor(p->b, GNOMON_F64, N, 1);
    options.damp = lambda;
    options.sketch_size = k;
    options.iterations = steps;
    options.dtype = dtype;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), GNOMON_OK);
    return out;
}

static void test_fit_is_tight(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    problem p = make_problem(N, D, 30, 1, 3);
    gnomon_lstsq out = solve(ctx, &p, 0, N, 200, GNOMON_F32);
    const double fit = fit_between(N, D, p.a, &out.x, 0, p.x);
    const double off = distance_of(D, &out.x, 0, p.x);
    assert_true(fit > 1e-9);
    assert_true(fit <= out.target[0].fit_bound && out.target[0].fit_bound <= 1.001 * fit);
    assert_true(off <= out.target[0].forward_bound && out.target[0].forward_bound <= 1.001 * off);
    gnomon_lstsq_free(ctx, &out);
    drop_problem(&p);
    gnomon_context_destroy(ctx);
}

/* The gradient of ridge, and the length of what it is relative to. */
static void test_ridge_figures(void **state)
{
    (void)state;
    const double lambda = 0.3;
    gnomon_context *ctx = context_of(2);
    problem p = make_problem(N, D, 30, 0.5, 4);
    gnomon_lstsq out = solve(ctx, &p, lambda, N, 200, GNOMON_F32);
    double r[N], g[D] = {0}, squares = 0, norm = 0;
    for (int i = 0; i < N; i++) {
        r[i] = p.b[i];
        for (int j = 0; j < D; j++)
            r[i] -= p.a[i * D + j] * at(&out.x, j, 0);
        squares += r[i] * r[i];
    }
    for (int j = 0; j < D; j++) {
        const double x = at(&out.x, j, 0);
        for (int i = 0; i < N; i++) {
            g[j] += p.a[i * D + j] * r[i];
            norm += p.a[i * D + j] * p.a[i * D + j];
        }
        g[j] -= lambda * lambda * x;
        squares += lambda * lambda * x * x;
        norm += lambda * lambda;
    }
    const double gradient = length_of(g, D) / sqrt(norm) / sqrt(squares);
    assert_true(gradient > 1e-10);
    assert_true(fabs(out.target[0].gradient - gradient) <= 1e-5 * gradient);
    gnomon_lstsq_free(ctx, &out);
    drop_problem(&p);
    gnomon_context_destroy(ctx);
}

/* What is far from the solution: no bound is above the one that always holds. */
static void test_trivial_bounds(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    for (uint64_t seed = 0; seed < 4; seed++) {
        problem p = make_problem(N, D, 1e3, 1e-3, 5 + seed);
        gnomon_lstsq out = solve(ctx, &p, 0, D + 1, 0, GNOMON_F64);
        const gnomon_lstsq_target *t = &out.target[0];
        assert_false(out.converged);
        assert_true(t->backward_bound <= 1 && t->gradient <= 1 && t->backward_error <= 1);
        assert_true(t->fit_bound <= t->residual * (1 + 1e-6));
        assert_true(fit_between(N, D, p.a, &out.x, 0, p.x) <= t->fit_bound);
        gnomon_lstsq_free(ctx, &out);
        drop_problem(&p);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_is_tight),
        cmocka_unit_test(test_ridge_figures),
        cmocka_unit_test(test_trivial_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
