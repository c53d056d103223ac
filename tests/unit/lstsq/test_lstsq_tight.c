/* Least squares whose bounds and steps are as few as they should be: bounds that hold and are no
 * use would pass the other tests. */
#include "lstsq_testing.h"

static void bounds_that_are_near(void **state)
{
    (void)state;
    enum { N = 2500, D = 20 };
    static const double conditions[] = {1, 1e2, 1e4};
    gnomon_context *ctx = context_of(2);
    for (int c = 0; c < 3; c++) {
        problem p = make_problem(N, D, conditions[c], 1e-3, 3);
        const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
        const gnomon_matrix b = gnomon_matrix_rowmajor(p.b, GNOMON_F64, N, 1);
        gnomon_lstsq_options o = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        o.sketch_size = 8 * D;
        expect(ctx, gnomon_lstsq_dense(ctx, &a, &b, &o, &out), GNOMON_OK);
        const gnomon_lstsq_target *t = &out.target[0];
        print_message("condition %g: %lld steps, %lld refinements, fit %.2g, forward %.2g\n",
                      conditions[c], (long long)out.iterations, (long long)out.refinements,
                      t->fit_bound / t->norm_b, t->forward_bound / t->norm_x);
        assert_true(out.converged);
        assert_true(out.iterations <= 60);
        assert_true(t->fit_bound <= 1e-9 * t->norm_b);
        assert_true(t->forward_bound <= 1e-9 * conditions[c] * t->norm_x);
        assert_true(t->suboptimality <= 1e-6);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_that_are_near)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
