/* A tensor of more than one slab: the core is the sum of what all of them give. */
#include <gnomon/hosvd.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { A = 9, B = 1024, C = 1200 }; /* seven rows are a slab of 2^23 numbers */

static double a_of(int64_t i)
{
    return 1 + 0.25 * (double)(i * i % 7);
}

static double b_of(int64_t j)
{
    return 0.5 + (double)(j % 13) / 8;
}

static double c_of(int64_t k)
{
    return 1 - (double)(k % 5) / 4;
}

static void core_of_all_slabs(void **state)
{
    (void)state;
    gnomon_context_options settings = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    settings.device = "cpu";
    settings.threads = 2;
    assert_int_equal(gnomon_context_create(&settings, &ctx), GNOMON_OK);
    float *x = malloc(sizeof *x * A * B * C);
    assert_non_null(x);
    double squares = 0;
    for (int64_t i = 0, at = 0; i < A; i++)
        for (int64_t j = 0; j < B; j++)
            for (int64_t k = 0; k < C; k++, at++) {
                x[at] = (float)(a_of(i) * b_of(j) * c_of(k));
                squares += (double)x[at] * (double)x[at];
            }
    const int64_t sizes[] = {A, B, C}, ranks[] = {2, 2, 2};
    const gnomon_tensor t = gnomon_tensor_packed(x, GNOMON_F32, 3, sizes, 0);
    for (int sequential = 0; sequential < 2; sequential++) {
        gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_hosvd out = {.struct_size = sizeof out};
        o.ranks = ranks;
        o.rank_count = 3;
        o.oversample = 2;
        o.power = 0;
        o.sequential = sequential;
        if (gnomon_hosvd_dense(ctx, &t, &o, &out) != GNOMON_OK)
            fail_msg("%s", gnomon_last_error(ctx));
        /* one product of three vectors: the core's first number is its norm, the others are 0 */
        const float *core = out.core.data;
        double others = 0;
        for (int i = 1; i < 8; i++)
            others += fabs((double)core[i]);
        assert_true(fabs(fabs((double)core[0]) / sqrt(squares) - 1) < 1e-4);
        assert_true(others < 1e-3 * sqrt(squares));
        assert_true(fabs(out.norm / sqrt(squares) - 1) < 1e-6);
        gnomon_hosvd_free(ctx, &out);
    }
    free(x);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(core_of_all_slabs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
