/* Decimals beyond the range of the type they are read into are refused, by what the file holds and
 * where; infinity written as such is read. */
#include "io_text.h"

#define BANNER "%%MatrixMarket matrix "

/* Reads the file at path whole as dtype; the last status, and the error's text. */
static gnomon_status read_as(gnomon_dtype dtype, bool sparse)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.text_dtype = sparse ? dtype : (gnomon_dtype)0;
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, &options, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    expect_ok(gnomon_reader_info(reader, &info));
    assert_true(info.cols <= 3);
    gnomon_status status;
    double data[3];
    gnomon_matrix dst = gnomon_matrix_rowmajor(data, dtype, 1, info.cols);
    gnomon_csr csr;
    int64_t got;
    do {
        if (sparse) {
            status = gnomon_reader_next_csr(reader, 1, 10, &csr);
            got = csr.rows;
        } else {
            status = gnomon_reader_next(reader, &dst, &got);
        }
    } while (status == GNOMON_OK && got > 0);
    gnomon_reader_close(reader);
    return status;
}

static const struct {
    const char *name, *text, *single, *wide; /* the error as F32 and as F64; NULL: none */
} cases[] = {
    {"a.csv", "1,2\n3,1e300\n", "line 2, column 2: '1e300' is beyond what f32 holds", NULL},
    {"a.csv", "1,2\n\" -1E300 \",3\n", "line 2, column 1: '-1E300' is beyond what f32 holds", NULL},
    {"a.csv", "1,2\n3,1e400\n", "line 2, column 2: '1e400' is beyond what f64 holds",
     "line 2, column 2: '1e400' is beyond what f64 holds"},
    {"a.tsv", "1\t2\n3.4028236e38\t3\n",
     "line 2, column 1: '3.4028236e38' is beyond what f32 holds", NULL},
    {"a.tsv", "3.4028235e38\tinf\n-Infinity\t-3.4028235677973362e+38\n", NULL, NULL},
    {"a.svm", "1 1:2\n0 1:1 3:1e39\n", "line 2: '1e39' is beyond what f32 holds", NULL},
    {"a.svm", "1 1:2\n0 1:1 3:-1e309\n", "line 2: '-1e309' is beyond what f64 holds",
     "line 2: '-1e309' is beyond what f64 holds"},
    {"a.svm", "1e300 1:2 2:inf 3:-INFINITY\n", NULL, NULL},
    {"a.mtx", BANNER "coordinate real general\n2 3 2\n1 1 1\n2 2 1e200\n",
     "line 4: '1e200' is beyond what f32 holds", NULL},
    {"a.mtx", BANNER "coordinate real general\n2 3 3\n1 1 1\n2 2 1e200\n1 2 1e400\n",
     "line 5: '1e400' is beyond what f64 holds", "line 5: '1e400' is beyond what f64 holds"},
    {"a.mtx", BANNER "coordinate real general\n2 3 2\n1 1 inf\n2 2 -inf\n", NULL, NULL},
    {"a.mtx", BANNER "array real general\n2 1\n1\n-1e39\n",
     "line 4: '-1e39' is beyond what f32 holds", NULL},
    {"a.mtx", BANNER "array integer general\n1 1\n1000000000000000000000000000000000000000\n",
     "line 3: '1000000000000000000000000000000000000000' is beyond what f32 holds", NULL},
    {"a.mtx", BANNER "array real general\n2 1\n-inf\n3e38\n", NULL, NULL},
};

static void expect(size_t i, gnomon_dtype dtype, bool sparse, const char *error)
{
    const gnomon_status status = read_as(dtype, sparse);
    if (error == NULL
            ? status != GNOMON_OK
            : status != GNOMON_ERROR_DATA || strstr(gnomon_last_error(ctx), error) == NULL)
        fail_msg("case %d: %s: '%s', expected '%s'", (int)i, gnomon_status_name(status),
                 gnomon_last_error(ctx), error != NULL ? error : "no error");
}

static void beyond_the_range(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_text(cases[i].name, cases[i].text);
        expect(i, GNOMON_F32, false, cases[i].single);
        expect(i, GNOMON_F64, false, cases[i].wide);
        if (strcmp(cases[i].name, "a.svm") == 0 || strstr(cases[i].text, "coordinate") != NULL) {
            expect(i, GNOMON_F32, true, cases[i].single);
            expect(i, GNOMON_F64, true, cases[i].wide);
        }
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(beyond_the_range)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
