/* csv and tsv: what is read, what is refused and how, what is written. */
#include "io_text.h"

static gnomon_read_options defaults(void)
{
    return (gnomon_read_options)GNOMON_READ_OPTIONS_INIT;
}

static void plain(void **unused)
{
    (void)unused;
    make_text("a.csv", "1,2.5,-3e2\n4,5,6\n");
    expect_points(NULL, 2, 3, (double[]){1, 2.5, -300, 4, 5, 6});
    gnomon_data_info info;
    free(read_whole(NULL, 4, NULL, &info));
    assert_string_equal(info.format, "csv");
    assert_int_equal(info.rows, -1);
    assert_int_equal(info.nonzeros, -1);
    assert_int_equal(info.dtype, GNOMON_F32);
    assert_int_equal(info.access, GNOMON_ACCESS_SEEK);
    unlink(path);
    gnomon_read_options options = defaults();
    options.text_dtype = GNOMON_F64;
    make_text("a.csv", "1,2\n");
    free(read_whole(&options, 4, NULL, &info));
    assert_int_equal(info.dtype, GNOMON_F64);
    unlink(path);
}

static void line_ends_and_blanks(void **unused)
{
    (void)unused;
    make_text("a.csv", "\xEF\xBB\xBF# a comment\r\n\r\n 1 , 2\r\n\n  # another\n\t\n3,\t4");
    expect_points(NULL, 2, 2, (double[]){1, 2, 3, 4});
    unlink(path);
}

static void delimiters(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"1,2\n3,4\n", "1;2\n3;4\n",           "1\t2\n3\t4\n",
                                        "1 2\n3 4\n", "  1   2 \n 3 \t 4 \n", "1, 2\n3, 4\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (i == 4) continue; /* a tab, so a table of tabs */
        make_text("a.csv", texts[i]);
        expect_points(NULL, 2, 2, (double[]){1, 2, 3, 4});
        unlink(path);
        make_text("unnamed", texts[i]);
        expect_points(NULL, 2, 2, (double[]){1, 2, 3, 4});
        unlink(path);
    }
    gnomon_read_options options = defaults();
    options.csv_delimiter = ' ';
    make_text("a.csv", texts[4]);
    expect_points(&options, 2, 2, (double[]){1, 2, 3, 4});
    unlink(path);
    options.csv_delimiter = '|';
    make_text("a.csv", "1|2\n3|4\n");
    expect_points(&options, 2, 2, (double[]){1, 2, 3, 4});
    options.csv_delimiter = '5';
    expect_error(&options, GNOMON_ERROR_ARGUMENT, "csv_delimiter");
    unlink(path);
    make_text("a.tsv", "1\t2\n3\t4\n");
    expect_points(NULL, 2, 2, (double[]){1, 2, 3, 4});
    unlink(path);
    make_text("a.tsv", "1,2\n3,4\n");
    expect_error(NULL, GNOMON_ERROR_DATA, "line 2, column 1: '3,4' is not a number");
    unlink(path);
}

static void headers(void **unused)
{
    (void)unused;
    make_text("a.csv", "x,\"the y, \"\"so called\"\"\",2\n1,2,3\n");
    expect_points(NULL, 1, 3, (double[]){1, 2, 3});
    unlink(path);
    make_text("a.csv", ",a,b\n0,1,2\n"); /* an index without a name */
    expect_points(NULL, 1, 3, (double[]){0, 1, 2});
    unlink(path);
    make_text("a.csv", "height in metres\n1.8\n1.9\n");
    expect_points(NULL, 2, 1, (double[]){1.8, 1.9});
    unlink(path);
    make_text("a.csv", "x y\n1 2\n");
    expect_points(NULL, 1, 2, (double[]){1, 2});
    unlink(path);
    make_text("a.csv", "x,y\n");
    expect_points(NULL, 0, 2, NULL);
    unlink(path);
    gnomon_read_options options = defaults();
    options.csv_header = 1;
    make_text("a.csv", "1,2\n3,4\n");
    expect_points(&options, 1, 2, (double[]){3, 4});
    unlink(path);
    options.csv_header = 0;
    make_text("a.csv", "x,y\n3,4\n");
    expect_error(&options, GNOMON_ERROR_DATA, "line 1, column 1: 'x' is not a number");
    unlink(path);
    make_text("a.csv", "x,y\n1,2,3\n");
    expect_error(NULL, GNOMON_ERROR_DATA, "line 2 has 3 fields where line 1 has 2");
    unlink(path);
}

static void quotes_and_names(void **unused)
{
    (void)unused;
    make_text("a.csv", "\"1\",\" 2 \",3\n4, \"5\" ,6\nnan,-inf,\"Infinity\"\n");
    expect_points(NULL, 3, 3, (double[]){1, 2, 3, 4, 5, 6, (double)NAN, -HUGE_VAL, HUGE_VAL});
    unlink(path);
}

static void every_digit(void **unused)
{
    (void)unused;
    make_text("a.csv", "0.1,1e38,-0,4.9406564584124654e-324\n");
    expect_points(NULL, 1, 4, (double[]){0.1, 1e38, -0.0, 0x1p-1074});
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    float single[4];
    gnomon_matrix dst = gnomon_matrix_rowmajor(single, GNOMON_F32, 1, 4);
    int64_t got;
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, 1);
    assert_true(single[0] == 0.1f);
    gnomon_reader_close(reader);
    unlink(path);
}

static void bad_fields(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"1,,3\n4,5,6\n", "line 1, column 2: the field is empty"},
        {"a,\"b\nc\"\n1,2\n", "line 1: a quote is not closed"},
        {"1,2\n3,abc\n", "line 2, column 2: 'abc' is not a number"},
        {"1,2\n3,\n", "line 2, column 2: the field is empty"},
        {"1,2\n3,\"\"\n", "line 2, column 2: the field is empty"},
        {"1,2\n,3\n", "line 2, column 1: the field is empty"},
        {"1,2\n3\n", "line 2 has 1 fields where line 1 has 2"},
        {"1,2\n3,4,5,6\n", "line 2 has 4 fields where line 1 has 2"},
        {"1,2\n# c\n\n3,4,5\n", "line 4 has 3 fields where line 1 has 2"},
        {"1,2\n3,1.2.3\n", "line 2, column 2: '1.2.3' is not a number"},
        {"1,2\n3,0x10\n", "column 2: '0x10' is not a number"},
        {"1,2\n3,\"4\n5\",6\n", "line 2, column 2: the quote is never closed: '\"4'"},
        {"1,2\n3,\"4\"5\n", "'\"4\"5' is not a number"},
        {"1;2\n1,5;3\n", "line 2, column 1: '1,5' is not a number"},
        {"", "no line holds numbers"},
        {"\n# nothing\n\n", "no line holds numbers"},
        {"1,2\n3,\x80\xff\n", "column 2: '\\x80\\xff' is not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_text("a.csv", cases[i].text);
        expect_error(NULL, GNOMON_ERROR_DATA, cases[i].error);
        unlink(path);
    }
    make_file("a.csv", "1,2\n3,4\0\n", 10);
    expect_error(NULL, GNOMON_ERROR_DATA, "line 2, column 2: '4\\x00' is not a number");
    unlink(path);
}

static void megabyte_fields(void **unused)
{
    (void)unused;
    enum { SIZE = 3 << 20 };
    char *text = malloc(SIZE + 16);
    assert_non_null(text);
    memset(text, 'x', SIZE);
    memcpy(text, "1,2\n3,", 6);
    text[SIZE] = '\n';
    make_file("a.csv", text, SIZE + 1);
    expect_error(NULL, GNOMON_ERROR_DATA, "line 2, column 2: 'xxxxxxxxxxxxxxxxxxxx");
    assert_true(strlen(gnomon_last_error(ctx)) < 300);
    unlink(path);
    /* a long number is a number */
    memset(text + 6, '0', SIZE - 6);
    text[6] = '7';
    text[7] = '.';
    make_file("a.csv", text, SIZE + 1);
    expect_points(NULL, 2, 2, (double[]){1, 2, 3, 7});
    unlink(path);
    /* a million and a half columns in one line */
    for (int i = 0; i < SIZE; i += 2)
        memcpy(text + i, "1,", 2);
    text[SIZE - 1] = '\n';
    make_file("a.csv", text, SIZE);
    gnomon_data_info info;
    free(read_whole(NULL, 1, NULL, &info));
    assert_int_equal(info.cols, SIZE / 2);
    unlink(path);
    free(text);
}

static void seeking(void **unused)
{
    (void)unused;
    make_text("a.csv", "v,w\n0,0\n1,1\n\n2,4\n# c\n3,9\n4,16");
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    double point[2];
    gnomon_matrix dst = gnomon_matrix_rowmajor(point, GNOMON_F64, 1, 2);
    static const int order[] = {3, 0, 4, 4, 1, 2, 5, 9, 0};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int64_t got;
        expect_ok(gnomon_reader_seek(reader, order[i]));
        expect_ok(gnomon_reader_next(reader, &dst, &got));
        assert_int_equal(got, order[i] < 5);
        if (got == 1) assert_true(point[0] == order[i] && point[1] == order[i] * order[i]);
    }
    gnomon_reader_close(reader);
    unlink(path);
}

static void strided(void **unused)
{
    (void)unused;
    make_text("a.csv", "1,2\n3,4\n5,6\n");
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    float data[12];
    for (int i = 0; i < 12; i++)
        data[i] = -1;
    /* from the last column back, columns four apart */
    gnomon_matrix dst = {data + 5, GNOMON_F32, GNOMON_HOST, 3, 2, 1, -4};
    int64_t got;
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, 3);
    static const float expected[12] = {-1, 2, 4, 6, -1, 1, 3, 5, -1, -1, -1, -1};
    assert_memory_equal(data, expected, sizeof data);
    gnomon_reader_close(reader);
    unlink(path);
}

static void check_streamed(void)
{
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    expect_ok(gnomon_reader_info(reader, &info));
    assert_string_equal(info.format, "csv");
    assert_int_equal(info.access, 0);
    double data[6];
    gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, 3, 2);
    int64_t got;
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, 2);
    assert_memory_equal(data, ((double[]){1, 2, 3, 4}), 4 * sizeof(double));
    assert_int_equal(gnomon_reader_seek(reader, 0), GNOMON_ERROR_UNSUPPORTED);
    gnomon_reader_close(reader);
}

static void from_a_pipe(void **unused)
{
    (void)unused;
    make_text("a", "a,b\n1,2\n3,4\n");
    through_pipe(check_streamed);
    unlink(path);
}

static void written(void **unused)
{
    (void)unused;
    static const double data[] = {0.1, -0.0, 1e300, 2.0 / 3, 5e-324, HUGE_VAL};
    static const struct {
        const char *name, *expected;
        gnomon_dtype dtype;
        int digits;
    } cases[] = {
        {"a.csv", "0.1,-0,1e+300\n0.6666666666666666,5e-324,inf\n", GNOMON_F64, 0},
        {"a.tsv", "0.1\t-0\tinf\n0.6666667\t0\tinf\n", GNOMON_F32, 0},
        {"a.csv", "0.1,-0,1e+300\n0.667,4.94e-324,inf\n", GNOMON_F64, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
        options.csv_digits = cases[i].digits;
        gnomon_writer *writer;
        expect_ok(gnomon_writer_open(ctx, path, -1, 3, cases[i].dtype, &options, &writer));
        gnomon_matrix src = gnomon_matrix_rowmajor((void *)data, GNOMON_F64, 1, 3);
        expect_ok(gnomon_writer_rows(writer, &src));
        src.data = (void *)(data + 3);
        expect_ok(gnomon_writer_rows(writer, &src));
        expect_ok(gnomon_writer_finish(writer));
        char *text = file_text();
        assert_string_equal(text, cases[i].expected);
        free(text);
        unlink(path);
    }
}

static void written_integers(void **unused)
{
    (void)unused;
    static const int64_t data[] = {INT64_MAX, INT64_MIN, 0, 9007199254740993};
    snprintf(path, sizeof path, "%s/a.csv", folder);
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, 2, 2, GNOMON_I64, NULL, &writer));
    gnomon_matrix src = gnomon_matrix_colmajor((void *)data, GNOMON_I64, 2, 2);
    expect_ok(gnomon_writer_rows(writer, &src));
    expect_ok(gnomon_writer_finish(writer));
    char *text = file_text();
    assert_string_equal(text, "9223372036854775807,0\n-9223372036854775808,9007199254740993\n");
    free(text);
    unlink(path);
    static const double big[] = {1, 300};
    expect_ok(gnomon_writer_open(ctx, path, 1, 2, GNOMON_U8, NULL, &writer));
    src = gnomon_matrix_rowmajor((void *)big, GNOMON_F64, 1, 2);
    assert_int_equal(gnomon_writer_rows(writer, &src), GNOMON_ERROR_DATA);
    gnomon_writer_abort(writer);
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(line_ends_and_blanks),
        cmocka_unit_test(delimiters),
        cmocka_unit_test(headers),
        cmocka_unit_test(quotes_and_names),
        cmocka_unit_test(every_digit),
        cmocka_unit_test(bad_fields),
        cmocka_unit_test(megabyte_fields),
        cmocka_unit_test(seeking),
        cmocka_unit_test(strided),
        cmocka_unit_test(from_a_pipe),
        cmocka_unit_test(written),
        cmocka_unit_test(written_integers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
