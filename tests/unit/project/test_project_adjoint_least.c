/* The adjoint with less and less memory: a refusal that says so, or the same bits within the limit.
 */
#include "meter.h"
#include "project.h"

/* dimensions such that a chunk of columns has several panels, and few fit */
static void refused_or_within(void **state)
{
    (void)state;
    enum { N = 40, D = 700, K = 400 };
    owned y = make_matrix(N, K, GNOMON_F32, 0), x = make_matrix(N, D, GNOMON_F32, 0);
    owned wanted = make_matrix(N, D, GNOMON_F32, 0);
    fill_random(&y.m, 3);
    for (int o = 0; o < OPERATORS; o++) {
        int refused = 0, ran = 0;
        gnomon_context *rich = make_context(1, 0);
        gnomon_operator *op = make_operator(rich, &all_operators[o], K, D);
        assert_int_equal(gnomon_adjoint(rich, op, &y.m, &wanted.m, NULL), GNOMON_OK);
        gnomon_context_destroy(rich);
        for (int64_t limit = 1 << 10; limit <= 1 << 23; limit += limit / 4) {
            meter m = {0};
            const gnomon_allocator allocator = {&m, meter_allocate, meter_release};
            gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx;
            options.device = "cpu";
            options.threads = 2;
            options.memory_limit = limit;
            options.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
            const int64_t before = m.held;
            m.peak = before;
            const gnomon_status status = gnomon_adjoint(ctx, op, &y.m, &x.m, NULL);
            if (status == GNOMON_OK) {
                ran++;
                assert_in_range(m.peak - before, 0, limit);
                assert_same_bits(&x.m, &wanted.m, all_operators[o].name);
            } else {
                refused++;
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_non_null(strstr(gnomon_last_error(ctx), "memory_limit is too low"));
                assert_int_equal(ran, 0); /* what is enough stays enough */
            }
            gnomon_context_destroy(ctx);
        }
        assert_true(refused > 0 && ran > 0);
        gnomon_operator_destroy(op);
    }
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_or_within)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
