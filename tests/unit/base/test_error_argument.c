/* What a failure is about: the argument or file, the row and column, beside the text. */
#include "base/context.h"
#include "base/error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

static gnomon_context *open_cpu(void)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static void about(const gnomon_context *ctx, const char *text, const char *argument, int64_t row,
                  int64_t col)
{
    int64_t r = 7, c = 7;
    if (text != NULL) assert_string_equal(gnomon_last_error(ctx), text);
    assert_string_equal(gnomon_last_error_argument(ctx), argument);
    gnomon_last_error_place(ctx, &r, &c);
    gnomon_last_error_place(ctx, NULL, NULL);
    if (r != row || c != col)
        fail_msg("row %lld, column %lld of \"%s\"", (long long)r, (long long)c,
                 gnomon_last_error(ctx));
}

/* The marks of a format reach no text, and say where argument, row and column are. */
static void formats_mark(void **state)
{
    (void)state;
    gnomon_context *ctx = open_cpu();
    about(ctx, "", "", -1, -1);
    gnomon_fail(ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("options.k") " is %d; it must be %s", 3,
                "even");
    about(ctx, "options.k is 3; it must be even", "options.k", -1, -1);
    gnomon_fail(ctx, GNOMON_ERROR_DATA,
                GNOMON_ARG("%s") " has %g in row " GNOMON_AT_ROW "%d, column " GNOMON_AT_COL "%lld",
                "the file", 0.5, 12, 34LL);
    about(ctx, "the file has 0.5 in row 12, column 34", "the file", 12, 34);
    gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s.%s") "[%d] is 0, row " GNOMON_AT_ROW "%d",
                "x", "offsets", 5, 6);
    about(ctx, "x.offsets[5] is 0, row 6", "x.offsets", 6, -1);
    gnomon_fail(ctx, GNOMON_ERROR_UNSUPPORTED, GNOMON_ABOUT("method") "there is none of %s", "it");
    about(ctx, "there is none of it", "method", -1, -1);
    /* what is about nothing forgets what the one before was about */
    gnomon_fail(ctx, GNOMON_ERROR_INTERNAL, "%s", "out of order");
    about(ctx, "out of order", "", -1, -1);

    /* bytes of a name are not the format's marks */
    gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": row " GNOMON_AT_ROW "%d",
                "a\x01\x04 2\x05", 9);
    about(ctx, "a\x01\x04 2\x05: row 9", "a\x01\x04 2\x05", 9, -1);

    /* a prefix keeps what the text is about, or marks another */
    gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("k") " is 0 in row " GNOMON_AT_ROW "%d", 4);
    gnomon_fail_prefix(ctx, GNOMON_ERROR_DATA, "step %d", 2);
    about(ctx, "step 2: k is 0 in row 4", "k", 4, -1);
    gnomon_fail_prefix(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s"), "/a/file");
    about(ctx, "/a/file: step 2: k is 0 in row 4", "/a/file", 4, -1);
    gnomon_fail_about(ctx, "q", 1, 2);
    about(ctx, "/a/file: step 2: k is 0 in row 4", "q", 1, 2);
    gnomon_context_destroy(ctx);
}

/* A text longer than there is room for: no row that was cut off. */
static void long_texts(void **state)
{
    (void)state;
    static char name[3000];
    gnomon_context *ctx = open_cpu();
    memset(name, 'n', sizeof name - 1);
    gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") " fails in row " GNOMON_AT_ROW "%d", name,
                9);
    about(ctx, NULL, gnomon_last_error_argument(ctx), -1, -1);
    assert_int_equal(strlen(gnomon_last_error(ctx)), GNOMON_ERROR_TEXT - 1);
    assert_int_equal(strlen(gnomon_last_error_argument(ctx)), GNOMON_ERROR_ARGUMENT_TEXT - 1);
    gnomon_fail_prefix(ctx, GNOMON_ERROR_DATA, "%s", name);
    assert_int_equal(strlen(gnomon_last_error(ctx)), GNOMON_ERROR_TEXT - 1);
    gnomon_context_destroy(ctx);
}

/* What callers read of public calls, the command among them. */
static void calls_tell(void **state)
{
    (void)state;
    gnomon_context *ctx = open_cpu();
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *other;
    o.threads = -1;
    assert_int_equal(gnomon_context_create(&o, &other), GNOMON_ERROR_ARGUMENT);
    about(NULL, NULL, "options.threads", -1, -1);

    float base[6 * 4] = {0}, queries[2 * 4] = {0};
    gnomon_matrix b = gnomon_matrix_rowmajor(base, GNOMON_F32, 6, 4);
    gnomon_matrix q = gnomon_matrix_rowmajor(queries, GNOMON_F32, 2, 4);
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    s.k = 1;
    queries[1 * 4 + 3] = NAN;
    assert_int_equal(gnomon_neighbors_exact(ctx, &b, &q, &s, &found), GNOMON_ERROR_NONFINITE);
    about(ctx, NULL, "queries", 1, 3);
    queries[1 * 4 + 3] = 0;
    base[5 * 4 + 2] = INFINITY;
    assert_int_equal(gnomon_neighbors_exact(ctx, &b, &q, &s, &found), GNOMON_ERROR_NONFINITE);
    about(ctx, NULL, "base", 5, 2);
    s.metric = (gnomon_metric)99;
    assert_int_equal(gnomon_neighbors_exact(ctx, &b, &q, &s, &found), GNOMON_ERROR_ARGUMENT);
    about(ctx, NULL, "metric", -1, -1);
    assert_int_equal(gnomon_neighbors_exact(ctx, &b, NULL, &s, &found), GNOMON_ERROR_ARGUMENT);
    about(ctx, "queries is NULL", "queries", -1, -1);

    gnomon_join_options j = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result r = {.struct_size = sizeof r};
    assert_int_equal(gnomon_join(ctx, &q, &b, &j, &r), GNOMON_ERROR_NONFINITE);
    about(ctx, NULL, "q", 5, 2);
    j.method = GNOMON_JOIN_LSH;
    j.metric = GNOMON_IP;
    j.threshold = -1;
    base[5 * 4 + 2] = 0;
    const gnomon_status none = gnomon_join(ctx, &q, &b, &j, &r);
    assert_int_not_equal(none, GNOMON_OK);
    about(ctx, NULL, "options.method", -1, -1);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats_mark), cmocka_unit_test(long_texts),
                                       cmocka_unit_test(calls_tell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
