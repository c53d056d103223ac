/* Structs that begin with their size: what a shorter and a longer one come to. That every public
 * struct goes this way is tested by api.sizes. */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

typedef struct settings {
    size_t struct_size;
    int64_t first;
    double second;
    int64_t third;
} settings;

static const settings defaults = {sizeof defaults, 1, 2.5, 3};

static gnomon_status copy(gnomon_context *ctx, const void *given, settings *out)
{
    *out = defaults;
    return GNOMON_COPY_OPTIONS(ctx, "options", settings, given, out);
}

static void test_shorter_options_keep_defaults(void **state)
{
    (void)state;
    settings given = {offsetof(settings, second), 7, -1, -1}, out;
    assert_int_equal(copy(NULL, &given, &out), GNOMON_OK);
    assert_int_equal(out.struct_size, sizeof out);
    assert_int_equal(out.first, 7);
    assert_true(out.second == 2.5 && out.third == 3);
    given.struct_size = sizeof(size_t);
    assert_int_equal(copy(NULL, &given, &out), GNOMON_OK);
    assert_memory_equal(&out, &defaults, sizeof out);
}

static void test_longer_options_must_be_zero_behind(void **state)
{
    (void)state;
    struct {
        settings known;
        int64_t later[2];
    } given = {{sizeof given, 7, 8, 9}, {0, 0}};
    settings out;
    assert_int_equal(copy(NULL, &given, &out), GNOMON_OK);
    assert_int_equal(out.struct_size, sizeof out);
    assert_int_equal(out.third, 9);
    given.later[1] = 1;
    assert_int_equal(copy(NULL, &given, &out), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(NULL), "options sets a member of settings"));
    assert_string_equal(gnomon_last_error_argument(NULL), "options");
}

static void test_sizes_that_no_struct_has_are_refused(void **state)
{
    (void)state;
    const size_t bad[] = {0, 1, 7, 12, 33, 65544, SIZE_MAX, SIZE_MAX - 7};
    settings given = defaults, out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        given.struct_size = bad[i];
        assert_int_equal(copy(NULL, &given, &out), GNOMON_ERROR_ARGUMENT);
        assert_non_null(strstr(gnomon_last_error(NULL), "no size of settings"));
        assert_string_equal(gnomon_last_error_argument(NULL), "options.struct_size");
        assert_int_equal(GNOMON_OPEN_RESULT(NULL, "out", settings, &given), GNOMON_ERROR_ARGUMENT);
        assert_false(gnomon_load_result(&given, &out, sizeof out));
        gnomon_write_result(&given, &out, sizeof out);
        assert_int_equal(given.first, 1);
    }
    assert_int_equal(copy(NULL, NULL, &out), GNOMON_ERROR_ARGUMENT);
}

static void test_a_struct_inside_another_is_never_longer(void **state)
{
    (void)state;
    settings inside = {offsetof(settings, second), 7, -1, -1};
    assert_int_equal(GNOMON_COMPLETE_OPTIONS(NULL, "o.inside", settings, &inside, &defaults),
                     GNOMON_OK);
    assert_true(inside.first == 7 && inside.second == 2.5 && inside.third == 3);
    assert_int_equal(inside.struct_size, sizeof inside);
    inside.struct_size = sizeof inside + sizeof(size_t);
    assert_int_equal(GNOMON_COMPLETE_OPTIONS(NULL, "o.inside", settings, &inside, &defaults),
                     GNOMON_ERROR_ARGUMENT);
}

static void test_results_end_where_their_struct_does(void **state)
{
    (void)state;
    settings full = {sizeof full, 7, 8, 9}, room = {offsetof(settings, third), -1, -1, -1};
    gnomon_return_result(&room, &full, sizeof full);
    assert_true(room.first == 7 && room.second == 8 && room.third == -1);
    assert_int_equal(room.struct_size, offsetof(settings, third));
    assert_true(full.first == 0 && full.second == 0 && full.third == 9); /* what is left to free */
    settings read;
    assert_true(gnomon_load_result(&room, &read, sizeof read));
    assert_true(read.first == 7 && read.second == 8 && read.third == 0);
    gnomon_clear_result(&room);
    assert_true(room.first == 0 && room.second == 0 && room.third == -1);
    struct {
        settings known;
        int64_t later;
    } more = {{sizeof more, -1, -1, -1}, -1};
    gnomon_write_result(&more, &defaults, sizeof defaults);
    assert_true(more.known.third == 3 && more.later == 0 && more.known.struct_size == sizeof more);
}

/* Vectors in the caller's memory are not freed, whether the result has room for them or not. */
static void test_vectors_of_the_caller_stay(void **state)
{
    (void)state;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    float numbers[12 * 5], *u = calloc(12 * 2, sizeof *u), *vt = calloc(2 * 5, sizeof *vt);
    for (int i = 0; i < 12 * 5; i++)
        numbers[i] = (float)(i * i % 17);
    const gnomon_matrix a = gnomon_matrix_rowmajor(numbers, GNOMON_F32, 12, 5);
    const gnomon_matrix for_u = gnomon_matrix_rowmajor(u, GNOMON_F32, 12, 2);
    const gnomon_matrix for_vt = gnomon_matrix_rowmajor(vt, GNOMON_F32, 2, 5);
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    o.rank = 2;
    o.u = &for_u;
    o.vt = &for_vt;
    const size_t sizes[] = {
        sizeof(size_t),          offsetof(gnomon_svd, rank), offsetof(gnomon_svd, u),
        offsetof(gnomon_svd, s), offsetof(gnomon_svd, rows), sizeof(gnomon_svd)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gnomon_svd svd = {.struct_size = sizes[i]};
        assert_int_equal(gnomon_svd_dense(ctx, &a, &o, &svd), GNOMON_OK);
        assert_true(u[0] != 0 && vt[0] != 0);
        gnomon_svd_free(ctx, &svd);
        assert_null(svd.u.data);
        u[0] = vt[0] = 0;
    }
    free(u);
    free(vt);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorter_options_keep_defaults),
        cmocka_unit_test(test_longer_options_must_be_zero_behind),
        cmocka_unit_test(test_sizes_that_no_struct_has_are_refused),
        cmocka_unit_test(test_a_struct_inside_another_is_never_longer),
        cmocka_unit_test(test_results_end_where_their_struct_does),
        cmocka_unit_test(test_vectors_of_the_caller_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
