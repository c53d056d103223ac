/* When conjugate gradients end: at the first step that foresees the share of the tolerance which is
 * wanted, and not before. What is foreseen depends on the length that x will have. Then matrices of
 * rank 0. */
#include "lstsq_testing.h"

enum { N = 900, D = 30 };

static gnomon_lstsq solve(gnomon_context *ctx, const problem *p, double tolerance)
{
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out = {.struct_size = sizeof out};
    const gnomon_matrix a = gnomon_matrix_rowmajor(p->a, GNOMON_F64, p->n, p->d);
    const gnomon_matrix b = gnomon_matrix_rowmajor(p->b, GNOMON_F64, p->n, 1);
    options.sketch_size = 4 * D;
    options.tolerance = tolerance;
    expect(ctx, gnomon_lstsq_dense(ctx, &a, &b, &options, &out), GNOMON_OK);
    assert_true(out.converged && out.sketched);
    return out;
}

/* Problems whose x is long beside b: then the backward error depends on |x|. */
static void ends_at_a_fiftieth_of_the_tolerance(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1);
    int64_t near = 0, most = 0;
    for (uint64_t seed = 1; seed < 4; seed++) {
        problem p = make_problem(N, D, 3, 0.5, seed);
        for (double tolerance = 1e-4; tolerance > 1e-9; tolerance *= 0.93) {
            gnomon_lstsq out = solve(ctx, &p, tolerance);
            const double error = out.target[0].backward_error;
            if (out.refinements == 1) {
                if (!(error <= 0.0201 * tolerance))
                    fail_msg("tolerance %g: %g after %d steps", tolerance, error,
                             (int)out.iterations);
                near += error > 0.016 * tolerance;
            }
            if (tolerance > 0.9e-4 && out.iterations > most) most = out.iterations;
            gnomon_lstsq_free(ctx, &out);
        }
        gnomon_lstsq out = solve(ctx, &p, 1e-9);
        assert_true(most < out.iterations); /* no more steps than are asked for */
        gnomon_lstsq_free(ctx, &out);
        drop_problem(&p);
    }
    assert_true(near > 0);
    gnomon_context_destroy(ctx);
}

static void a_matrix_of_rank_0(void **state)
{
    (void)state;
    static double a[5 * 40], b[] = {3, -4, 0, 1, 2};
    gnomon_context *ctx = context_of(1);
    for (int tall = 0; tall < 2; tall++) {
        const gnomon_matrix x = gnomon_matrix_rowmajor(a, GNOMON_F64, 5, tall ? 3 : 40);
        const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, 5, 1);
        gnomon_lstsq out = {.struct_size = sizeof out};
        expect(ctx, gnomon_lstsq_dense(ctx, &x, &right, NULL, &out), GNOMON_OK);
        const gnomon_lstsq_target *t = &out.target[0];
        assert_true(out.rank == 0 && out.converged);
        for (int64_t j = 0; j < out.x.rows; j++)
            assert_true(at(&out.x, j, 0) == 0);
        assert_true(fabs(t->residual - sqrt(30)) <= 1e-14);
        assert_true(t->fit_bound == 0 && t->forward_bound == 0);
        assert_true(t->norm_x == 0);
        gnomon_lstsq_free(ctx, &out);
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
        cmocka_unit_test(ends_at_a_fiftieth_of_the_tolerance),
        cmocka_unit_test(a_matrix_of_rank_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
