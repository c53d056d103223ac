/* What a join by hashing tells of its work: sums that fit each other and the pairs. */
#include <gnomon/join.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000, D = 16 };

static void counts_of_the_work(void **state)
{
    (void)state;
    float *x = malloc(sizeof *x * N * D);
    uint32_t word = 1;
    assert_non_null(x);
    for (int i = 0; i < N * D; i++) {
        word = word * 1664525 + 1013904223;
        x[i] = (float)(word >> 8) * 0x1p-24f;
    }
    for (int i = 0; i < 300; i++) /* pairs that are near */
        memcpy(x + (1000 + i) * D, x + i * D, D * sizeof *x);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    for (int threads = 1; threads < 4; threads += 2) {
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gnomon_join_result r = {.struct_size = sizeof r};
        gnomon_context *ctx;
        options.device = "cpu";
        options.threads = threads;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        o.method = GNOMON_JOIN_LSH;
        o.recall = 0.9;
        o.threshold = 0.1;
        assert_int_equal(gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_OK);
        assert_true(r.pairs >= 270);
        assert_true(r.verified >= r.pairs && r.verified <= r.compared);
        assert_true(r.compared < INT64_C(1000) * N * N);
        /* the exact join's cost beside this one's, by the model */
        const char *times = strstr(r.why, "would cost ");
        assert_non_null(times);
        const double ratio = strtod(times + strlen("would cost "), NULL);
        assert_true(ratio > 1e-3 && ratio < 1e3);
        gnomon_context_destroy(ctx);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_of_the_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
