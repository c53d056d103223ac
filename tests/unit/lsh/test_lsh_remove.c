/* Removing: nothing, one point, and what is not there. */
#include <gnomon/lsh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void removed_points(void **state)
{
    (void)state;
    enum { N = 9, D = 3 };
    float x[N * D];
    for (int i = 0; i < N * D; i++)
        x[i] = (float)(i % 7);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 1;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = D;
    o.functions.width = 4;
    o.tables = o.coarse = 2;
    gnomon_lsh *index;
    gnomon_lsh_info info = {.struct_size = sizeof info};
    const gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    assert_int_equal(gnomon_lsh_create(ctx, &o, &index), GNOMON_OK);
    assert_int_equal(gnomon_lsh_add(index, &points), GNOMON_OK);
    const int64_t ids[] = {8, 0, 8}, beyond = N, below = -1;
    assert_int_equal(gnomon_lsh_remove(index, NULL, 0), GNOMON_OK);
    assert_int_equal(gnomon_lsh_remove(index, ids, 0), GNOMON_OK);
    assert_int_equal(gnomon_lsh_remove(index, NULL, 1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_lsh_remove(index, ids, -1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_lsh_remove(index, &beyond, 1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_lsh_remove(index, &below, 1), GNOMON_ERROR_ARGUMENT);
    gnomon_lsh_describe(index, &info);
    assert_int_equal(info.removed, 0);
    assert_int_equal(gnomon_lsh_remove(index, ids, 1), GNOMON_OK);
    gnomon_lsh_describe(index, &info);
    assert_int_equal(info.removed, 1);
    assert_int_equal(gnomon_lsh_remove(index, ids, 3), GNOMON_OK);
    gnomon_lsh_describe(index, &info);
    assert_int_equal(info.removed, 2);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(removed_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
