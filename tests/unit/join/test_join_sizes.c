/* Sizes that no memory has: a join refuses them before it multiplies. */
#include <gnomon/join.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static gnomon_context *context(void)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

/* Nobody gets this far. */
static gnomon_status read_none(void *user, int64_t first, const gnomon_matrix *to)
{
    (void)first;
    (void)to;
    ++*(int *)user;
    return GNOMON_ERROR_IO;
}

static void test_columns(void **unused)
{
    (void)unused;
    static const int64_t columns[] = {
        INT64_MAX,        INT64_MAX - 1,          ((int64_t)1 << 62) - 1,
        (int64_t)1 << 61, (int64_t)1 << 60,       ((int64_t)1 << 60) - 1,
        (int64_t)1 << 56, ((int64_t)1 << 56) + 1, (int64_t)1 << 50};
    static const gnomon_dtype types[] = {GNOMON_U8, GNOMON_F32, GNOMON_F64};
    gnomon_context *ctx = context();
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            int calls = 0;
            gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
            const gnomon_join_points points = {.user = &calls,
                                               .rows = 3,
                                               .cols = columns[c],
                                               .dtype = types[t],
                                               .read = read_none};
            o.threshold = 1;
            const gnomon_status status = gnomon_join_stream(ctx, &points, NULL, &o, NULL);
            assert_true(status == GNOMON_ERROR_OVERFLOW || status == GNOMON_ERROR_MEMORY);
            assert_int_equal(calls, 0);
            assert_true(strlen(gnomon_last_error(ctx)) > 0);
        }
    }
    gnomon_context_destroy(ctx);
}

static void test_counts(void **unused)
{
    (void)unused;
    gnomon_context *ctx = context();
    void *block = &ctx;
    assert_int_equal(gnomon_times(3, 5), 15);
    assert_int_equal(gnomon_plus(3, 5), 8);
    assert_int_equal(gnomon_times(0, INT64_MAX), 0);
    assert_int_equal(gnomon_times((int64_t)1 << 32, (int64_t)1 << 31), -1);
    assert_int_equal(gnomon_plus(INT64_MAX, 1), -1);
    assert_int_equal(gnomon_times(gnomon_times((int64_t)1 << 62, 2), 0), -1);
    assert_int_equal(gnomon_plus(gnomon_times((int64_t)1 << 62, 2), 1), -1);
    assert_int_equal(gnomon_alloc(ctx, gnomon_times((int64_t)1 << 62, 4), 1, "much", &block),
                     GNOMON_ERROR_OVERFLOW);
    assert_null(block);
    assert_non_null(strstr(gnomon_last_error(ctx), "much"));
    gnomon_context_destroy(ctx);
}

/* Asking for more of the closest pairs than there are takes no memory for them. */
static void test_top(void **unused)
{
    (void)unused;
    static const float x[] = {0, 1, 3};
    gnomon_context *ctx = context();
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result r = {.struct_size = sizeof r};
    const gnomon_matrix m = gnomon_matrix_rowmajor((void *)(uintptr_t)x, GNOMON_F32, 3, 1);
    o.threshold = (double)INFINITY;
    o.top = INT64_MAX;
    assert_int_equal(gnomon_join(ctx, &m, NULL, &o, &r), GNOMON_OK);
    assert_int_equal(r.pairs, 3);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_counts), cmocka_unit_test(test_top)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
