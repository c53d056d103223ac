/* Least squares that may take only so many steps: no step more, and no refinement without one. */
#include "lstsq_testing.h"

static void no_more_than_allowed(void **state)
{
    (void)state;
    enum { N = 2000, D = 15 };
    gnomon_context *ctx = context_of(2);
    problem p = make_problem(N, D, 1e4, 1, 10);
    const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
    const gnomon_matrix b = gnomon_matrix_rowmajor(p.b, GNOMON_F64, N, 1);
    for (int64_t most = 0; most < 4; most++) {
        gnomon_lstsq_options o = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        o.iterations = most;
        o.sketch_size = 4 * D;
        expect(ctx, gnomon_lstsq_dense(ctx, &a, &b, &o, &out), GNOMON_OK);
        assert_int_equal(out.iterations, most);
        assert_int_equal(out.refinements, most > 0);
        assert_false(out.converged);
        gnomon_lstsq_free(ctx, &out);
    }
    drop_problem(&p);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_more_than_allowed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
