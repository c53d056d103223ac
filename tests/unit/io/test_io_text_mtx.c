/* Matrix Market: both forms, every symmetry, hostile headers, and what is written. */
#include "io_text.h"

#define BANNER "%%MatrixMarket matrix "

static void coordinate(void **unused)
{
    (void)unused;
    make_text("a.mtx", BANNER "coordinate real general\n% a comment\n\n3 4 5\n"
                              "3 1 -1e-3\n1 2 2.5\n\n% here too\n1 1 0\r\n3 4 7\n1 2 0.5");
    expect_points(NULL, 3, 4, (double[]){0, 3, 0, 0, 0, 0, 0, 0, -1e-3, 0, 0, 7});
    gnomon_data_info info;
    free(read_whole(NULL, 4, NULL, &info));
    assert_string_equal(info.format, "mtx");
    assert_int_equal(info.rows, 3);
    assert_int_equal(info.nonzeros, 5);
    assert_int_equal(info.access,
                     GNOMON_ACCESS_SEEK | GNOMON_ACCESS_SPARSE | GNOMON_ACCESS_GATHERED);
    unlink(path);
    make_text("a.mtx", "%%matrixmarket MATRIX Coordinate Pattern General\n2 2 2\n1 2\n2 1\n");
    expect_points(NULL, 2, 2, (double[]){0, 1, 1, 0});
    unlink(path);
    make_text("a.mtx", BANNER "coordinate integer symmetric\n3 3 4\n1 1 1\n2 1 2\n3 2 -3\n3 3 4\n");
    expect_points(NULL, 3, 3, (double[]){1, 2, 0, 2, 0, -3, 0, -3, 4});
    unlink(path);
    make_text("a.mtx", BANNER "coordinate real skew-symmetric\n2 2 1\n2 1 5\n");
    expect_points(NULL, 2, 2, (double[]){0, -5, 5, 0});
    unlink(path);
    make_text("a.mtx", BANNER "coordinate real general\n0 3 0\n");
    expect_points(NULL, 0, 3, NULL);
    unlink(path);
}

static void array(void **unused)
{
    (void)unused;
    make_text("noname", BANNER "array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
    expect_points(NULL, 2, 3, (double[]){1, 3, 5, 2, 4, 6});
    gnomon_data_info info;
    free(read_whole(NULL, 4, NULL, &info));
    assert_int_equal(info.coordinates_contiguous, 1);
    assert_int_equal(info.access, GNOMON_ACCESS_SEEK | GNOMON_ACCESS_COLUMNS);
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    double block[2];
    gnomon_matrix dst = gnomon_matrix_rowmajor(block, GNOMON_F64, 1, 2);
    expect_ok(gnomon_reader_block(reader, 1, 1, &dst));
    assert_true(block[0] == 4 && block[1] == 6);
    double row[3];
    int64_t got;
    dst = gnomon_matrix_rowmajor(row, GNOMON_F64, 1, 3);
    expect_ok(gnomon_reader_seek(reader, 1));
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_true(got == 1 && row[0] == 2 && row[2] == 6);
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, 0);
    gnomon_reader_close(reader);
    unlink(path);
    make_text("a.mtx", BANNER "array integer symmetric\n3 3\n11\n21\n31\n22\n32\n33\n");
    expect_points(NULL, 3, 3, (double[]){11, 21, 31, 21, 22, 32, 31, 32, 33});
    unlink(path);
    make_text("a.mtx", BANNER "array real skew-symmetric\n3 3\n21\n31\n32\n");
    expect_points(NULL, 3, 3, (double[]){0, -21, -31, 21, 0, -32, 31, 32, 0});
    unlink(path);
}

static void far_and_wide(void **unused)
{
    (void)unused;
    /* sizes that no memory holds, in a file of three lines */
    make_text("a.mtx", BANNER "coordinate real general\n"
                              "1000000000000 1000000000000000000 2\n"
                              "999999999999 1000000000000000000 2\n5 1 1\n");
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    gnomon_csr csr;
    expect_ok(gnomon_reader_next_csr(reader, INT64_MAX, INT64_MAX, &csr));
    assert_true(csr.rows > 4 && csr.rows < 1000000);
    assert_int_equal(csr.offsets[4], 0);
    assert_int_equal(csr.offsets[5], 1);
    assert_int_equal(csr.offsets[csr.rows], 1);
    assert_int_equal(csr.indices[0], 0);
    assert_true(csr.dtype == GNOMON_F32 && ((const float *)csr.values)[0] == 1);
    expect_ok(gnomon_reader_seek(reader, 999999999997));
    expect_ok(gnomon_reader_next_csr(reader, 2, 100, &csr));
    assert_int_equal(csr.rows, 2);
    assert_int_equal(csr.offsets[2], 1);
    assert_true(csr.indices[0] == 999999999999999999);
    expect_ok(gnomon_reader_next_csr(reader, 2, 100, &csr));
    assert_int_equal(csr.rows, 1);
    expect_ok(gnomon_reader_next_csr(reader, 2, 100, &csr));
    assert_int_equal(csr.rows, 0);
    gnomon_reader_close(reader);
    unlink(path);
}

static void batches(void **unused)
{
    (void)unused;
    make_text("a.mtx", BANNER "coordinate real general\n5 9 6\n"
                              "2 3 1\n2 1 2\n1 1 3\n4 9 4\n2 2 5\n5 1 6\n");
    gnomon_reader *reader;
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.text_dtype = GNOMON_F64;
    expect_ok(gnomon_reader_open(ctx, path, &options, &reader));
    static const int64_t sizes[][2] = {{1, 1}, {1, 3}, {3, 2}}; /* points, entries */
    gnomon_csr csr;
    for (int i = 0; i < 3; i++) {
        expect_ok(gnomon_reader_next_csr(reader, 10, 2, &csr));
        assert_int_equal(csr.rows, sizes[i][0]);
        assert_int_equal(csr.offsets[csr.rows] - csr.offsets[0], sizes[i][1]);
        assert_int_equal(csr.dtype, GNOMON_F64);
        if (i == 1) { /* in the order of the file */
            assert_memory_equal(csr.indices, ((int64_t[]){2, 0, 1}), 3 * sizeof(int64_t));
            assert_memory_equal(csr.values, ((double[]){1, 2, 5}), 3 * sizeof(double));
        }
    }
    expect_ok(gnomon_reader_next_csr(reader, 10, 2, &csr));
    assert_int_equal(csr.rows, 0);
    gnomon_reader_close(reader);
    unlink(path);
}

static void refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        gnomon_status status;
        const char *error;
    } cases[] = {
        {"", GNOMON_ERROR_DATA, "the file is empty"},
        {"1 1 1\n", GNOMON_ERROR_DATA, "line 1: '1' where %%MatrixMarket is due"},
        {BANNER "coordinate complex general\n1 1 0\n", GNOMON_ERROR_UNSUPPORTED, "'complex'"},
        {BANNER "coordinate real hermitian\n1 1 0\n", GNOMON_ERROR_UNSUPPORTED, "'hermitian'"},
        {BANNER "coordinate real\n1 1 0\n", GNOMON_ERROR_DATA, "line 1 ends where general"},
        {BANNER "array pattern general\n1 1\n", GNOMON_ERROR_DATA, "'pattern'"},
        {BANNER "sheaf real general\n1 1\n", GNOMON_ERROR_DATA,
         "'sheaf' where coordinate or array"},
        {BANNER "coordinate real general\n", GNOMON_ERROR_TRUNCATED, "before the line of sizes"},
        {BANNER "coordinate real general\n1 1\n", GNOMON_ERROR_DATA,
         "line 2 ends where the number of entries"},
        {BANNER "coordinate real general\n1 1 1 1\n", GNOMON_ERROR_DATA,
         "line 2: '1' where the line's end"},
        {BANNER "coordinate real general\n-1 1 1\n", GNOMON_ERROR_DATA, "'-1' where"},
        {BANNER "coordinate real general\n99999999999999999999 1 1\n", GNOMON_ERROR_DATA,
         "where the number of rows is due"},
        {BANNER "coordinate real general\n1 1.0 1\n", GNOMON_ERROR_DATA, "'1.0' where"},
        {BANNER "coordinate real general\n9 9 1000000000000\n1 1 1\n", GNOMON_ERROR_TRUNCATED,
         "line 2 tells of 1000000000000 values, more than the file's"},
        {BANNER "array real general\n10000000000 10000000000\n1\n", GNOMON_ERROR_OVERFLOW,
         "more than can be counted"},
        {BANNER "array real general\n100000 100000\n1\n", GNOMON_ERROR_TRUNCATED,
         "tells of 10000000000 values"},
        {BANNER "array real symmetric\n2 3\n1\n", GNOMON_ERROR_DATA, "symmetric matrix of 2 x 3"},
        {BANNER "coordinate real general\n2 2 2\n1 1 1\n", GNOMON_ERROR_TRUNCATED,
         "after 1 of the 2 values"},
        {BANNER "coordinate real general\n2 2 1\n1 1 1\n2 2 2\n", GNOMON_ERROR_DATA,
         "line 4: more than the 1 values"},
        {BANNER "array real general\n1 2\n1\n2\n3\n", GNOMON_ERROR_DATA,
         "line 5: more than the 2 values"},
        {BANNER "array real general\n1 2\n1\n", GNOMON_ERROR_TRUNCATED, "after 1 of the 2 values"},
        {BANNER "coordinate real general\n2 2 1\n0 1 1\n", GNOMON_ERROR_DATA,
         "line 3: row 0 is outside 1 to 2"},
        {BANNER "coordinate real general\n2 2 1\n1 3 1\n", GNOMON_ERROR_DATA,
         "line 3: column 3 is outside 1 to 2"},
        {BANNER "coordinate real general\n2 2 1\n1 -3 1\n", GNOMON_ERROR_DATA, "column -3"},
        {BANNER "coordinate real general\n2 2 1\n1 1\n", GNOMON_ERROR_DATA,
         "line 3 ends where a number is due"},
        {BANNER "coordinate real general\n2 2 1\n1 1 1 1\n", GNOMON_ERROR_DATA, "the line's end"},
        {BANNER "coordinate pattern general\n2 2 1\n1 1 1\n", GNOMON_ERROR_DATA, "the line's end"},
        {BANNER "coordinate integer general\n2 2 1\n1 1 1.5\n", GNOMON_ERROR_DATA,
         "'1.5' where an integer is due"},
        {BANNER "coordinate real general\n2 2 1\n1 1 x\n", GNOMON_ERROR_DATA, "'x' where a number"},
        {BANNER "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", GNOMON_ERROR_DATA,
         "zeros on its diagonal"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_text("a.mtx", cases[i].text);
        expect_error(NULL, cases[i].status, cases[i].error);
        unlink(path);
    }
}

static void check_piped(void)
{
    expect_points(NULL, 2, 2, (double[]){0, 3, 1, 0});
}

static void check_once(void)
{
    int64_t rows;
    double *data = read_whole(NULL, 2, &rows, NULL);
    assert_int_equal(rows, 2);
    assert_memory_equal(data, ((double[]){0, 3, 1, 0}), 4 * sizeof(double));
    free(data);
}

static void from_a_pipe(void **unused)
{
    (void)unused;
    make_text("a", BANNER "coordinate real general\n2 2 2\n2 1 1\n1 2 3\n");
    check_piped();
    through_pipe(check_once);
    unlink(path);
}

static void written_dense(void **unused)
{
    (void)unused;
    static const double data[] = {1, 2.5, -0.0, 4, 0.1, 6};
    snprintf(path, sizeof path, "%s/a.mtx", folder);
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, -1, 2, GNOMON_F32, NULL, &writer));
    for (int i = 0; i < 3; i++) {
        gnomon_matrix src = gnomon_matrix_rowmajor((void *)(data + 2 * i), GNOMON_F64, 1, 2);
        expect_ok(gnomon_writer_rows(writer, &src));
    }
    expect_ok(gnomon_writer_finish(writer));
    char *text = file_text();
    assert_string_equal(text, BANNER "array real general\n3 2\n1\n-0\n0.1\n2.5\n4\n6\n");
    free(text);
    unlink(path);
}

static void written_sparse(void **unused)
{
    (void)unused;
    /* the second half of a longer CSR, so that offsets do not begin with 0 */
    static const int64_t offsets[] = {3, 5, 5, 6};
    static const int64_t indices[] = {2, 0, 999999999999};
    static const float values[] = {0.1f, -1, 2};
    gnomon_csr csr = {3, 1000000000000, offsets, indices, values, GNOMON_F32};
    snprintf(path, sizeof path, "%s/a.mtx", folder);
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.sparse = 1;
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, 6, csr.cols, GNOMON_F32, &options, &writer));
    expect_ok(gnomon_writer_csr(writer, &csr));
    expect_ok(gnomon_writer_csr(writer, &csr));
    expect_ok(gnomon_writer_finish(writer));
    char *text = file_text();
    assert_non_null(strstr(text, BANNER "coordinate real general\n6 1000000000000 6 "));
    assert_non_null(strstr(text, "\n1 3 0.1\n1 1 -1\n3 1000000000000 2\n4 3 0.1\n"));
    free(text);
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    gnomon_csr back;
    expect_ok(gnomon_reader_next_csr(reader, 100, 100, &back));
    assert_int_equal(back.rows, 6);
    assert_int_equal(back.cols, csr.cols);
    for (int i = 0; i < 6; i++)
        assert_int_equal(back.offsets[i + 1] - back.offsets[i],
                         offsets[i % 3 + 1] - offsets[i % 3]);
    assert_memory_equal(back.indices + 3, indices, sizeof indices);
    assert_memory_equal(back.values, values, sizeof values);
    gnomon_reader_close(reader);
    unlink(path);
    assert_int_equal(gnomon_writer_open(ctx, path, 1, 1, GNOMON_I32, &options, &writer),
                     GNOMON_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinate),    cmocka_unit_test(array),
        cmocka_unit_test(far_and_wide),  cmocka_unit_test(batches),
        cmocka_unit_test(refused),       cmocka_unit_test(from_a_pipe),
        cmocka_unit_test(written_dense), cmocka_unit_test(written_sparse),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
