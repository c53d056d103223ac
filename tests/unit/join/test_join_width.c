/* Bits of the widest points that are taken, and of points that are wider by eight. */
#include <gnomon/join.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void widest_bits(void **state)
{
    (void)state;
    enum { MOST = 1 << 21 };
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 1;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    uint8_t *x = calloc(2, MOST + 1);
    assert_non_null(x);
    x[MOST - 1] = 1; /* the last bits of the first point; the second's are 0 */
    for (int64_t over = 0; over < 2; over++) {
        const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_U8, 2, MOST + over);
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gnomon_join_result r = {.struct_size = sizeof r};
        o.metric = GNOMON_HAMMING;
        o.threshold = 1;
        const gnomon_status status = gnomon_join(ctx, &p, NULL, &o, &r);
        assert_int_equal(status, over ? GNOMON_ERROR_UNSUPPORTED : GNOMON_OK);
        if (over == 0) assert_int_equal(r.pairs, 1);
    }
    free(x);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(widest_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
