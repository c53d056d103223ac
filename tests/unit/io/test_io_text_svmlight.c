/* svmlight: lines of pairs, where indices begin, batches, and what is written. */
#include "io_text.h"

static gnomon_read_options given(int64_t cols, int zero_based)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.svmlight_cols = cols;
    options.svmlight_zero_based = zero_based;
    return options;
}

static void plain(void **unused)
{
    (void)unused;
    make_text("a.svm",
              "# head\n+1 1:0.5 3:2 # tail\n\n-1 qid:3 2:1e-3\r\n0.5\n1,2 3:4#x\n 2:1 3:nan");
    expect_points(NULL, 5, 3,
                  (double[]){0.5, 0, 2, 0, 1e-3, 0, 0, 0, 0, 0, 0, 4, 0, 1, (double)NAN});
    gnomon_data_info info;
    free(read_whole(NULL, 4, NULL, &info));
    assert_string_equal(info.format, "svmlight");
    assert_int_equal(info.rows, 5);
    assert_int_equal(info.nonzeros, 6);
    assert_int_equal(info.dtype, GNOMON_F32);
    assert_int_equal(info.access, GNOMON_ACCESS_SEEK | GNOMON_ACCESS_SPARSE);
    unlink(path);
    make_text("a.txt", "1 5:1\n"); /* known by its content */
    free(read_whole(NULL, 4, NULL, &info));
    assert_string_equal(info.format, "svmlight");
    unlink(path);
}

static void where_indices_begin(void **unused)
{
    (void)unused;
    make_text("a.svm", "1 1:1 2:2\n1 0:3\n");
    expect_points(NULL, 2, 3, (double[]){0, 1, 2, 3, 0, 0});
    gnomon_read_options options = given(0, 1);
    expect_points(&options, 2, 3, (double[]){0, 1, 2, 3, 0, 0});
    options = given(0, 0);
    expect_error(&options, GNOMON_ERROR_DATA, "line 2: index 0 where indices count from 1");
    options = given(4, 1);
    expect_points(&options, 2, 4, (double[]){0, 1, 2, 0, 3, 0, 0, 0});
    options = given(2, -1);
    expect_error(&options, GNOMON_ERROR_DATA, "line 1: index 2 is outside 0 to 1, the 2 columns");
    unlink(path);
    make_text("a.svm", "1 1:1 2:2\n");
    options = given(0, 1);
    expect_points(&options, 1, 3, (double[]){0, 1, 2});
    options = given(3, 0);
    expect_points(&options, 1, 3, (double[]){1, 2, 0});
    options = given(1, 0);
    expect_error(&options, GNOMON_ERROR_DATA, "line 1: index 2 is outside 1 to 1");
    unlink(path);
}

static void order_and_duplicates(void **unused)
{
    (void)unused;
    make_text("a.svm", "1 3:1 1:2 3:4\n");
    expect_points(NULL, 1, 3, (double[]){2, 0, 5});
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    gnomon_csr csr;
    expect_ok(gnomon_reader_next_csr(reader, 1, 1, &csr));
    assert_memory_equal(csr.indices, ((int64_t[]){2, 0, 2}), 3 * sizeof(int64_t));
    gnomon_reader_close(reader);
    unlink(path);
}

static void batches(void **unused)
{
    (void)unused;
    make_text("a.svm", "0 1:1\n0 1:2 2:2 3:2\n0\n0 9:4\n0 1:5 2:5\n");
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    for (int round = 0; round < 2; round++) {
        static const int64_t sizes[][2] = {{1, 1}, {1, 3}, {2, 1}, {1, 2}, {0, 0}};
        gnomon_csr csr;
        for (int i = 0; i < 5; i++) {
            expect_ok(gnomon_reader_next_csr(reader, 10, 2, &csr));
            assert_int_equal(csr.rows, sizes[i][0]);
            assert_int_equal(csr.offsets[csr.rows] - csr.offsets[0], sizes[i][1]);
            assert_int_equal(csr.cols, 9);
        }
        expect_ok(gnomon_reader_seek(reader, 3));
        expect_ok(gnomon_reader_next_csr(reader, 1, 10, &csr));
        assert_true(csr.rows == 1 && csr.indices[0] == 8);
        expect_ok(gnomon_reader_seek(reader, 0));
        expect_ok(gnomon_reader_next_csr(reader, 2, 10, &csr));
        assert_int_equal(csr.rows, 2);
        expect_ok(gnomon_reader_seek(reader, 0));
    }
    gnomon_reader_close(reader);
    unlink(path);
}

static void huge_width(void **unused)
{
    (void)unused;
    make_text("a.svm", "1 1:1 9223372036854775807:2\n");
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    gnomon_csr csr;
    expect_ok(gnomon_reader_next_csr(reader, 10, 10, &csr));
    assert_true(csr.cols == INT64_MAX && csr.indices[1] == INT64_MAX - 1);
    gnomon_reader_close(reader);
    unlink(path);
    make_text("a.svm", "1 0:1 9223372036854775807:2\n");
    expect_error(NULL, GNOMON_ERROR_OVERFLOW, "index 9223372036854775807");
    unlink(path);
}

static void refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"1 1:1\n1 2:x\n", "line 2: '2:x' is not index:value"},
        {"1 1:1\n1 :2\n", "line 2: ':2' is not index:value"},
        {"1 1:1\n1 2:\n", "line 2: '2:' is not index:value"},
        {"1 1:1\n1 2\n", "line 2: '2' is not index:value"},
        {"1 1:1\n1 1.5:2\n", "'1.5:2' is not index:value"},
        {"1 1:1\n1 -1:2\n", "line 2: index -1 where indices count from 0"},
        {"1 1:1\n1 99999999999999999999:2\n", "is not index:value"},
        {"1 1:1\nspam 1:1\n", "line 2: 'spam' is not a label"},
        {"1 1:1\n1, 1:1\n", "line 2: '1,' is not a label"},
        {"1 1:1\n1 1:1 qid:2\n", "'qid:2' is not index:value"},
        {"1 1:1\n1 1:1:1\n", "'1:1:1' is not index:value"},
        {"\n# none\n", "no line holds a point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_text("a.svm", cases[i].text);
        expect_error(NULL, GNOMON_ERROR_DATA, cases[i].error);
        unlink(path);
    }
    make_file("a.svm", "1 1:1\n1 2:\0001\n", 13);
    expect_error(NULL, GNOMON_ERROR_DATA, "'2:\\x001' is not index:value");
    unlink(path);
    make_text("a.svm", "");
    gnomon_read_options options = given(3, 0);
    expect_points(&options, 0, 3, NULL);
    unlink(path);
}

static void check_streamed(void)
{
    gnomon_read_options options = given(3, 0);
    int64_t rows;
    gnomon_data_info info;
    double *data = read_whole(&options, 2, &rows, &info);
    assert_int_equal(rows, 2);
    assert_int_equal(info.rows, -1);
    assert_int_equal(info.access, GNOMON_ACCESS_SPARSE);
    assert_memory_equal(data, ((double[]){1, 0, 0, 0, 2, 0}), 6 * sizeof(double));
    free(data);
}

static void check_spooled(void)
{
    int64_t rows;
    gnomon_data_info info;
    double *data = read_whole(NULL, 2, &rows, &info);
    assert_int_equal(info.rows, 2);
    assert_int_equal(info.cols, 2);
    assert_memory_equal(data, ((double[]){1, 0, 0, 2}), 4 * sizeof(double));
    free(data);
}

static void from_a_pipe(void **unused)
{
    (void)unused;
    make_text("a", "1 1:1\n1 2:2\n");
    through_pipe(check_streamed);
    through_pipe(check_spooled);
    unlink(path);
}

static void written(void **unused)
{
    (void)unused;
    static const int64_t offsets[] = {0, 2, 2, 3};
    static const int64_t indices[] = {2, 0, 3};
    static const double values[] = {0.1, 0, -1e-9};
    gnomon_csr csr = {3, 4, offsets, indices, values, GNOMON_F64};
    snprintf(path, sizeof path, "%s/a.svm", folder);
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.sparse = 1;
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, -1, 4, GNOMON_F64, &options, &writer));
    expect_ok(gnomon_writer_csr(writer, &csr));
    expect_ok(gnomon_writer_finish(writer));
    char *text = file_text();
    assert_string_equal(text, "0 3:0.1 1:0\n0\n0 4:-1e-09\n");
    free(text);
    expect_points(NULL, 3, 4, (double[]){0, 0, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, -1e-9});
    unlink(path);
    /* dense points: what is not zero */
    static const double data[] = {0, 1.5, -0.0, (double)NAN, 0, 0};
    expect_ok(gnomon_writer_open(ctx, path, 2, 3, GNOMON_F32, NULL, &writer));
    gnomon_matrix src = gnomon_matrix_rowmajor((void *)data, GNOMON_F64, 2, 3);
    expect_ok(gnomon_writer_rows(writer, &src));
    expect_ok(gnomon_writer_finish(writer));
    text = file_text();
    assert_string_equal(text, "0 2:1.5\n0 1:nan\n");
    free(text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(where_indices_begin),
        cmocka_unit_test(order_and_duplicates),
        cmocka_unit_test(batches),
        cmocka_unit_test(huge_width),
        cmocka_unit_test(refused),
        cmocka_unit_test(from_a_pipe),
        cmocka_unit_test(written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
