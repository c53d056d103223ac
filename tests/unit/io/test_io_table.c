/* Tables of text: column names, quoting and escaping, fields that are missing, all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <gnomon/io.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gnomon-table-XXXXXX", path[64];
static const char *const columns[] = {"id", "value", "a, \"name\""};

static int make(void **state)
{
    gnomon_context *ctx = NULL;
    if (gnomon_context_create(NULL, &ctx) != GNOMON_OK || mkdtemp(folder) == NULL) return -1;
    *state = ctx;
    return 0;
}

static int drop(void **state)
{
    gnomon_context_destroy(*state);
    return rmdir(folder);
}

static void assert_holds(const char *expected)
{
    char text[1024];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    assert_string_equal(text, expected);
    unlink(path);
}

static void fill(gnomon_context *ctx, const char *name)
{
    static const char *const names[] = {
        "plain", "a,b", "say \"it\"", "tab\tline\nend\r\\", "", "\x1b[0m\xc2\x9b\xff\xc3\xa9"};
    gnomon_table *table = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, columns, 3, &table), GNOMON_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(gnomon_table_integer(table, i == 5 ? INT64_MIN : i), GNOMON_OK);
        assert_int_equal(gnomon_table_real(table, i == 4 ? (double)NAN : 0.1 * i), GNOMON_OK);
        assert_int_equal(gnomon_table_text(table, names[i]), GNOMON_OK);
    }
    assert_int_not_equal(access(path, F_OK), 0); /* complete at the end alone */
    assert_int_equal(gnomon_table_finish(table), GNOMON_OK);
}

static void csv_quotes(void **state)
{
    fill(*state, "a.csv");
    assert_holds(
        "id,value,\"a, \"\"name\"\"\"\n0,0,plain\n1,0.1,\"a,b\"\n2,0.2,\"say \"\"it\"\"\"\n"
        "3,0.30000000000000004,\"tab\tline\nend\r\\\"\n4,nan,\n-9223372036854775808,0.5,\x1b["
        "0m\xc2\x9b\xff\xc3\xa9\n");
}

static void tsv_escapes(void **state)
{
    fill(*state, "a.tsv");
    assert_holds("id\tvalue\ta, \"name\"\n0\t0\tplain\n1\t0.1\ta,b\n2\t0.2\tsay \"it\"\n"
                 "3\t0.30000000000000004\ttab\\tline\\nend\\r\\\\\n4\tnan\t\n"
                 "-9223372036854775808\t0.5\t\\x1b[0m\\xc2\\x9b\\xff\xc3\xa9\n");
}

static void what_is_not_whole_leaves_nothing(void **state)
{
    gnomon_context *ctx = *state;
    gnomon_table *table = NULL;
    snprintf(path, sizeof path, "%s/b.csv", folder);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, columns, 3, &table), GNOMON_OK);
    assert_int_equal(gnomon_table_integer(table, 1), GNOMON_OK);
    assert_int_equal(gnomon_table_finish(table), GNOMON_ERROR_SHAPE);
    assert_string_equal(gnomon_last_error(ctx), "the last line has 1 fields; it must have 3");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, columns, 3, &table), GNOMON_OK);
    gnomon_table_abort(table);
    assert_int_not_equal(access(path, F_OK), 0);
    gnomon_table_abort(NULL);
}

static void bad_arguments(void **state)
{
    gnomon_context *ctx = *state;
    gnomon_table *table = NULL;
    const char *const gap[] = {"id", NULL};
    snprintf(path, sizeof path, "%s/c.csv", folder);
    assert_int_equal(gnomon_table_open(ctx, path, "npy", columns, 3, &table),
                     GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, columns, 0, &table), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, gap, 2, &table), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_table_open(ctx, NULL, "csv", columns, 3, &table),
                     GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_table_open(ctx, "/nowhere/a.csv", NULL, columns, 3, &table),
                     GNOMON_ERROR_NOT_FOUND);
    assert_null(table);
    assert_int_equal(gnomon_table_open(ctx, path, NULL, columns, 3, &table), GNOMON_OK);
    assert_int_equal(gnomon_table_text(table, NULL), GNOMON_ERROR_ARGUMENT);
    gnomon_table_abort(table);
    assert_int_equal(gnomon_table_integer(NULL, 1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_table_finish(NULL), GNOMON_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_quotes),
        cmocka_unit_test(tsv_escapes),
        cmocka_unit_test(what_is_not_whole_leaves_nothing),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
