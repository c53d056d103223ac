/* A sketch of points that come column by column, by every operator: the bits of one call. */
#include "project.h"

static void one_column_at_a_time(void **state)
{
    (void)state;
    enum { N = 5, D = 75, K = 16 };
    gnomon_context *ctx = make_context(2, 0);
    owned x = make_matrix(N, D, GNOMON_F32, 0), y = make_matrix(N, K, GNOMON_F32, 0);
    owned sum = make_matrix(N, K, GNOMON_F64, 0);
    owned wanted = make_matrix(N, K, GNOMON_F32, 0);
    fill_random(&x.m, 9);
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
        gnomon_stream *s;
        assert_int_equal(gnomon_sketch(ctx, op, &x.m, &wanted.m, NULL), GNOMON_OK);
        assert_int_equal(gnomon_stream_create(ctx, op, N, GNOMON_F32, NULL, &s), GNOMON_OK);
        gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
        for (int64_t j = 0; j < D; j++) {
            gnomon_matrix column = x.m;
            column.data = (float *)x.m.data + j;
            column.cols = 1;
            assert_int_equal(gnomon_stream_push(s, &column), GNOMON_OK);
            /* partial sketches add up to the whole */
            options.col = j;
            options.beta = j > 0;
            assert_int_equal(gnomon_sketch(ctx, op, &column, &sum.m, &options), GNOMON_OK);
        }
        assert_int_equal(gnomon_stream_finish(s, &y.m), GNOMON_OK);
        gnomon_stream_destroy(s);
        assert_same_bits(&y.m, &wanted.m, all_operators[o].name);
        for (int64_t i = 0; i < N; i++)
            for (int64_t c = 0; c < K; c++)
                if (fabs(element(&sum.m, i, c) - element(&wanted.m, i, c)) > 1e-4)
                    fail_msg("%s: the parts give %g, the whole %g", all_operators[o].name,
                             element(&sum.m, i, c), element(&wanted.m, i, c));
        gnomon_operator_destroy(op);
    }
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&sum);
    free_matrix(&wanted);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_column_at_a_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
