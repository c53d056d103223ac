/* scipy's sparse npz: what is read in which batches, hostile archives, and what is written. */
#include "io_text.h"

#include "io/compress/zip.h"
#include "io/formats/npy.h"

typedef struct member {
    const char *name;
    gnomon_dtype dtype;
    int64_t count; /* as its header tells */
    const void *data;
    size_t size; /* of data */
} member;

static void put_array(gnomon_zip_writer *zip, const member *m)
{
    unsigned char header[GNOMON_NPY_HEADER];
    char name[40];
    snprintf(name, sizeof name, "%s.npy", m->name);
    gnomon_npy_make_header(header, m->dtype, 1, m->count, 0, false);
    expect_ok(gnomon_zip_writer_begin(zip, name, header, sizeof header));
    if (m->size > 0) expect_ok(gnomon_zip_writer_write(zip, m->data, m->size));
    expect_ok(gnomon_zip_writer_end(zip, NULL));
}

static void put_format(gnomon_zip_writer *zip, const char *format)
{
    char text[128 + 16];
    int length =
        snprintf(text + 10, sizeof text - 10,
                 "{'descr': '|S%d', 'fortran_order': False, 'shape': (), }", (int)strlen(format));
    memset(text + 10 + length, ' ', (size_t)(118 - length));
    memcpy(text, "\x93NUMPY\1\0\x76\0", 10);
    text[127] = '\n';
    memcpy(text + 128, format, strlen(format));
    expect_ok(gnomon_zip_writer_begin(zip, "format.npy", NULL, 0));
    expect_ok(gnomon_zip_writer_write(zip, text, 128 + strlen(format)));
    expect_ok(gnomon_zip_writer_end(zip, NULL));
}

/* Makes an archive at path of the arrays up to one without a name. */
static void make_archive(const char *format, const member *members)
{
    snprintf(path, sizeof path, "%s/a.npz", folder);
    gnomon_sink *sink;
    const gnomon_sink_options options = {true, true};
    gnomon_zip_writer *zip;
    expect_ok(gnomon_sink_open(ctx, path, &options, &sink));
    expect_ok(gnomon_zip_writer_open(ctx, sink, true, &zip));
    if (format != NULL) put_format(zip, format);
    for (; members->name != NULL; members++)
        put_array(zip, members);
    expect_ok(gnomon_zip_writer_complete(zip));
    gnomon_zip_writer_close(zip);
    expect_ok(gnomon_sink_finish(sink));
}

#define I64(name, ...)                                                        \
    {                                                                         \
        name, GNOMON_I64, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
            (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__})        \
    }
#define I32(name, ...)                                                        \
    {                                                                         \
        name, GNOMON_I32, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), \
            (int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__})        \
    }
#define F32(name, ...)                                                                            \
    {                                                                                             \
        name, GNOMON_F32, sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__}, \
            sizeof((float[]){__VA_ARGS__})                                                        \
    }

static const double points[] = {1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 4};

static void layouts(void **unused)
{
    (void)unused;
    make_archive("csr", (member[]){I64("shape", 3, 4),
                                   F32("data", 1, 2, 4, 3),
                                   I32("indices", 0, 0, 3, 2),
                                   I32("indptr", 0, 1, 2, 4),
                                   {0}});
    expect_points(NULL, 3, 4, points);
    gnomon_data_info info;
    free(read_whole(NULL, 4, NULL, &info));
    assert_string_equal(info.format, "npz");
    assert_int_equal(info.nonzeros, 4);
    assert_int_equal(info.dtype, GNOMON_F32);
    assert_int_equal(info.access, GNOMON_ACCESS_SEEK | GNOMON_ACCESS_SPARSE);
    unlink(path);
    make_archive("csc", (member[]){I64("shape", 3, 4),
                                   F32("data", 1, 2, 3, 4),
                                   I64("indices", 0, 1, 2, 2),
                                   I64("indptr", 0, 2, 2, 3, 4),
                                   {0}});
    expect_points(NULL, 3, 4, points);
    unlink(path);
    make_archive("coo", (member[]){I64("shape", 3, 4),
                                   F32("data", 4, 1, 2.5f, 3, -0.5f),
                                   I32("row", 2, 0, 1, 2, 1),
                                   I32("col", 3, 0, 0, 2, 0),
                                   {0}});
    expect_points(NULL, 3, 4, points);
    /* one array of it, as any array of an npz */
    strcat(path, ":data");
    expect_points(NULL, 1, 5, (double[]){4, 1, 2.5, 3, -0.5});
    path[strlen(path) - 5] = '\0';
    unlink(path);
    make_archive("coo", (member[]){I64("shape", 2, 2),
                                   I64("data", (int64_t)1 << 50, 1),
                                   I32("row", 0, 1),
                                   I32("col", 0, 1),
                                   {0}});
    free(read_whole(NULL, 4, NULL, &info));
    assert_int_equal(info.dtype, GNOMON_F64); /* F32 would not hold its integers */
    unlink(path);
}

static void batches_and_seeking(void **unused)
{
    (void)unused;
    make_archive("csr", (member[]){I64("shape", 5, 9),
                                   F32("data", 1, 2, 3, 4, 5, 6),
                                   I32("indices", 0, 2, 1, 0, 8, 0),
                                   I32("indptr", 0, 1, 4, 4, 5, 6),
                                   {0}});
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    for (int round = 0; round < 2; round++) {
        static const int64_t sizes[][2] = {{1, 1}, {2, 3}, {2, 2}, {0, 0}};
        static const int64_t order[] = {0, 2, 1, 0, 8, 0};
        gnomon_csr csr;
        int64_t seen = 0;
        for (int i = 0; i < 4; i++) {
            expect_ok(gnomon_reader_next_csr(reader, 10, i == 1 ? 3 : 2, &csr));
            int64_t entries = csr.offsets[csr.rows] - csr.offsets[0];
            assert_int_equal(csr.rows, sizes[i][0]);
            assert_int_equal(entries, sizes[i][1]);
            for (int64_t e = 0; e < entries; e++, seen++) {
                assert_int_equal(csr.indices[e], order[seen]);
                assert_true(((const float *)csr.values)[e] == (float)(seen + 1));
            }
        }
        expect_ok(gnomon_reader_seek(reader, 3));
        expect_ok(gnomon_reader_next_csr(reader, 1, 10, &csr));
        assert_true(csr.rows == 1 && csr.indices[0] == 8);
        expect_ok(gnomon_reader_seek(reader, 5));
        expect_ok(gnomon_reader_next_csr(reader, 1, 10, &csr));
        assert_int_equal(csr.rows, 0);
        assert_int_equal(gnomon_reader_seek(reader, 6), GNOMON_ERROR_ARGUMENT);
        expect_ok(gnomon_reader_seek(reader, 0));
    }
    gnomon_reader_close(reader);
    unlink(path);
}

static void refused(void **unused)
{
    (void)unused;
    const member shape = I64("shape", 3, 4), data = F32("data", 1, 2, 4, 3);
    const member indices = I32("indices", 0, 0, 3, 2), indptr = I32("indptr", 0, 1, 2, 4);
    const member none = {0};
    member told = data;
    told.count = 1000000000;
    member huge = indptr;
    huge.count = (int64_t)1 << 60;
    const struct {
        const char *format;
        member members[5];
        gnomon_status status;
        const char *error;
    } cases[] = {
        {"csr",
         {shape, data, indices, I32("indptr", 0, 2, 1, 4)},
         GNOMON_ERROR_DATA,
         "indptr goes from 2 to 1 at row 1"},
        {"csr",
         {shape, data, indices, I32("indptr", 0, -1, 1, 4)},
         GNOMON_ERROR_DATA,
         "indptr goes from 0 to -1 at row 0"},
        {"csr",
         {shape, data, indices, I32("indptr", 0, 9, 1, 4)},
         GNOMON_ERROR_DATA,
         "indptr goes from 0 to 9 at row 0"},
        {"csr",
         {shape, data, indices, I32("indptr", 1, 1, 2, 4)},
         GNOMON_ERROR_DATA,
         "indptr begins with 1"},
        {"csr",
         {shape, data, indices, I32("indptr", 0, 1, 2, 5)},
         GNOMON_ERROR_DATA,
         "indptr ends with 5, with 4 indices and 4 values"},
        {"csr",
         {shape, data, indices, I32("indptr", 0, 1, 2, -4)},
         GNOMON_ERROR_DATA,
         "indptr ends with -4"},
        {"csr", {shape, data, indices, I32("indptr", 0, 1, 4)}, GNOMON_ERROR_DATA, "indptr has 3"},
        {"csr", {shape, data, indices, I32("indptr")}, GNOMON_ERROR_DATA, "indptr has 0 elements"},
        {"csr",
         {shape, data, indices, F32("indptr", 0, 1, 2, 4)},
         GNOMON_ERROR_DATA,
         "the array indptr is of type f32"},
        {"csr",
         {shape, data, I32("indices", 0, 4, 3, 2), indptr},
         GNOMON_ERROR_DATA,
         "the column 4 is outside 0 to 3"},
        {"csr",
         {shape, data, I32("indices", 0, -1, 3, 2), indptr},
         GNOMON_ERROR_DATA,
         "the column -1 is outside"},
        {"csr", {I64("shape", 3, 4, 5), data, indices, indptr}, GNOMON_ERROR_DATA, "has 3 sizes"},
        {"csr", {I64("shape", -3, 4), data, indices, indptr}, GNOMON_ERROR_DATA, "shape is -3 x 4"},
        {"csr", {shape, data, indices, none}, GNOMON_ERROR_DATA, "without its array 'indptr'"},
        {"csr", {shape, data, indptr, none}, GNOMON_ERROR_DATA, "without its array 'indices'"},
        {"csr", {shape, told, indices, indptr}, GNOMON_ERROR_TRUNCATED, "a.npz:data.npy: "},
        {"csr", {shape, data, indices, huge}, GNOMON_ERROR_TRUNCATED, "a.npz:indptr.npy: "},
        {"csc",
         {I64("shape", 4, 3), data, indices, I32("indptr", 0, 2, 1, 4)},
         GNOMON_ERROR_DATA,
         "indptr goes from 2 to 1 at column 1"},
        {"csc",
         {I64("shape", 3, 3), data, indices, indptr},
         GNOMON_ERROR_DATA,
         "the row 3 is outside 0 to 2"},
        {"coo",
         {shape, data, I32("row", 0, 1, 2), I32("col", 0, 1, 2, 3)},
         GNOMON_ERROR_DATA,
         "row, col and data have 3, 4 and 4 elements"},
        {"coo",
         {shape, data, I32("row", 0, 1, 2, 3), I32("col", 0, 1, 2, 3)},
         GNOMON_ERROR_DATA,
         "the row 3 is outside 0 to 2"},
        {"coo",
         {shape, data, I32("row", 0, 1, 2, 2), I32("col", 0, 1, 2, 4)},
         GNOMON_ERROR_DATA,
         "the column 4 is outside 0 to 3"},
        {"bsr", {shape, data, indices, indptr}, GNOMON_ERROR_UNSUPPORTED, "format 'bsr'"},
        {"much too long", {shape, data, indices, indptr}, GNOMON_ERROR_DATA, "no short text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_archive(cases[i].format, cases[i].members);
        expect_error(NULL, cases[i].status, cases[i].error);
        unlink(path);
    }
}

static void written(void **unused)
{
    (void)unused;
    static const int64_t offsets[] = {5, 6, 6, 9};
    static const int64_t indices[] = {999999999999, 2, 0, 2};
    static const double values[] = {0.1, -1, 2, 0};
    gnomon_csr csr = {3, 1000000000000, offsets, indices, values, GNOMON_F64};
    snprintf(path, sizeof path, "%s/a.npz", folder);
    for (int compress = 0; compress < 2; compress++) {
        gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
        options.sparse = 1;
        options.compress = compress;
        gnomon_writer *writer;
        expect_ok(gnomon_writer_open(ctx, path, -1, csr.cols, GNOMON_F64, &options, &writer));
        for (int i = 0; i < 40000; i++)
            expect_ok(gnomon_writer_csr(writer, &csr));
        expect_ok(gnomon_writer_finish(writer));
        gnomon_reader *reader;
        expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
        gnomon_data_info info = {.struct_size = sizeof info};
        expect_ok(gnomon_reader_info(reader, &info));
        assert_int_equal(info.rows, 120000);
        assert_int_equal(info.nonzeros, 160000);
        assert_int_equal(info.dtype, GNOMON_F64);
        int64_t rows = 0;
        gnomon_csr back;
        do {
            expect_ok(gnomon_reader_next_csr(reader, 3 * 1000, 5000, &back));
            assert_int_equal(back.rows % 3, 0);
            for (int64_t i = 0; i < back.rows; i += 3) {
                int64_t at = back.offsets[i] - back.offsets[0];
                assert_int_equal(back.offsets[i + 3] - back.offsets[i], 4);
                assert_memory_equal(back.indices + at, indices, sizeof indices);
                assert_memory_equal((const double *)back.values + at, values, sizeof values);
            }
            rows += back.rows;
        } while (back.rows > 0);
        assert_int_equal(rows, 120000);
        gnomon_reader_close(reader);
        unlink(path);
    }
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.sparse = 1;
    gnomon_writer *writer;
    strcat(path, ":key");
    assert_int_equal(gnomon_writer_open(ctx, path, 1, 1, GNOMON_F32, &options, &writer),
                     GNOMON_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(batches_and_seeking),
        cmocka_unit_test(refused),
        cmocka_unit_test(written),
    };
#if !GNOMON_WITH_LIBZIP
    print_message("built without libzip: npz can't be tested\n");
    return 0;
#endif
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
