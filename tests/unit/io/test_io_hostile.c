/* Files that lie: each is refused with the right status, and nothing large is ever allocated for
 * what a header claims. */
#include "io/format.h"
#include "io_text.h"

#include <sys/stat.h>
#include <zlib.h>
#if GNOMON_WITH_ZSTD
#include <zstd.h>
#endif

/* An allocator that refuses more than a reader needs whatever the file says. */
enum { MOST = 8 * 1024 * 1024 };
static size_t held;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (size > MOST || held + size > 2 * MOST) return NULL;
    held += size;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *pointer, size_t size)
{
    (void)user;
    held -= size;
    free(pointer);
}

static int make_context(void **unused)
{
    static const gnomon_allocator allocator = {NULL, allocate, release};
    (void)unused;
    if (make_folder(NULL) != 0) return 1;
    gnomon_context_destroy(ctx);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.allocator = &allocator;
    options.threads = 1;
    return gnomon_context_create(&options, &ctx) != GNOMON_OK;
}

static int drop_context(void **unused)
{
    int failed = remove_folder(unused);
    return failed != 0 || held != 0;
}

/* Opens, and reads to the end when that goes well; the status of what failed. */
static gnomon_status outcome(const char *format)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = format;
    options.raw_cols = 4;
    options.raw_dtype = GNOMON_F32;
    gnomon_reader *reader;
    gnomon_status status = gnomon_reader_open(ctx, path, &options, &reader);
    if (status != GNOMON_OK) {
        assert_null(reader);
        assert_non_null(strstr(gnomon_last_error(ctx), path)); /* the text names the file */
        return status;
    }
    gnomon_data_info info = {.struct_size = sizeof info};
    expect_ok(gnomon_reader_info(reader, &info));
    double *row = malloc((size_t)(info.cols + 1) * sizeof *row);
    assert_non_null(row);
    gnomon_matrix dst = gnomon_matrix_rowmajor(row, GNOMON_F64, 1, info.cols);
    int64_t got = 1;
    while (status == GNOMON_OK && got > 0)
        status = gnomon_reader_next(reader, &dst, &got);
    if (status != GNOMON_OK) /* spent */
        assert_int_equal(gnomon_reader_next(reader, &dst, &got), status);
    free(row);
    gnomon_reader_close(reader);
    return status;
}

static void refused(const char *format, const void *bytes, size_t size, gnomon_status status)
{
    make_file("hostile", bytes, size);
    gnomon_status was = outcome(format);
    if (was != status)
        fail_msg("%s: %s where %s is due: %s", format, gnomon_status_name(was),
                 gnomon_status_name(status), gnomon_last_error(ctx));
    /* and through gzip, where the size is not known beforehand */
    if (strcmp(format, "raw") != 0 && strstr(format, "vecs") == NULL &&
        strstr(format, "bin") == NULL) {
        gzFile gz = gzopen(path, "wb");
        assert_non_null(gz);
        if (size > 0) assert_int_equal(gzwrite(gz, bytes, (unsigned)size), (int)size);
        assert_int_equal(gzclose(gz), Z_OK);
        assert_int_not_equal(outcome(format), GNOMON_OK);
#if GNOMON_WITH_ZSTD
        static unsigned char packed[1 << 16];
        const size_t length = ZSTD_compress(packed, sizeof packed, bytes, size, 3);
        assert_false(ZSTD_isError(length));
        make_file("hostile", packed, length);
        assert_int_not_equal(outcome(format), GNOMON_OK);
#endif
    }
    unlink(path);
}

static size_t npy_header(char *bytes, const char *dictionary, size_t data)
{
    size_t length = strlen(dictionary);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (char)(length & 255);
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + 10, dictionary, length);
    memset(bytes + 10 + length, 0, data);
    return 10 + length + data;
}

static void npy(void **unused)
{
    (void)unused;
    static const struct {
        const char *dictionary;
        gnomon_status status;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", GNOMON_OK},
        {"{\"shape\":(3L,4L),\"fortran_order\":True,\"descr\":\"<f4\"}", GNOMON_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }", GNOMON_ERROR_TRUNCATED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0, 4), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
         GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808, 0), }",
         GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9), }",
         GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3037000500, 3037000500), }",
         GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (100000, 100000), }",
         GNOMON_ERROR_TRUNCATED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3, }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } x", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'shape': (3, 4), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
         GNOMON_ERROR_DATA},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 'more': 1}", GNOMON_ERROR_DATA},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (3, 4), }", GNOMON_ERROR_DATA},
        {"{'descr': '<f4", GNOMON_ERROR_DATA},
        {"", GNOMON_ERROR_DATA},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4), }", GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }",
         GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (3,), }", GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (3,), }", GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': 'S4', 'fortran_order': False, 'shape': (3,), }", GNOMON_ERROR_UNSUPPORTED},
        {"{'descr': exec('x'), 'fortran_order': False, 'shape': (3,), }", GNOMON_ERROR_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[400];
        size_t size = npy_header(bytes, cases[i].dictionary, 48);
        if (cases[i].status != GNOMON_OK) {
            refused("npy", bytes, size, cases[i].status);
            continue;
        }
        make_file("hostile", bytes, size);
        assert_int_equal(outcome(NULL), GNOMON_OK);
        for (size_t cut = 0; cut < size; cut++) { /* anywhere */
            make_file("hostile", bytes, cut);
            assert_int_equal(outcome("npy"), GNOMON_ERROR_TRUNCATED);
        }
        unlink(path);
    }
    refused("npy", "\x93NUMPY\x04\x00", 8, GNOMON_ERROR_UNSUPPORTED);
    refused("npy", "\x93NUMPZ\x01\x00", 8, GNOMON_ERROR_DATA);
    refused("npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, GNOMON_ERROR_DATA);
    refused("npy", "\x93NUMPY\x02\x00\xff\xff\x00\x00", 12, GNOMON_ERROR_TRUNCATED);
}

static void counted(void **unused)
{
    (void)unused;
    refused("fbin", "\1\0\0\0\1\0\0\0abc", 11, GNOMON_ERROR_TRUNCATED);
    refused("fbin", "\1\0\0\0\1\0\0\0abcde", 13, GNOMON_ERROR_DATA);
    refused("fbin", "\1\0\0\0\0\0\0\0", 8, GNOMON_ERROR_DATA);
    refused("fbin", "\xff\xff\xff\xff\xff\xff\xff\xff", 8, GNOMON_ERROR_DATA);
    refused("u8bin", "\xff\xff\xff\xff\xff\xff\xff\x7f", 8, GNOMON_ERROR_TRUNCATED);
    refused("f16bin", "\1\0\0", 3, GNOMON_ERROR_TRUNCATED);
    refused("fvecs", "\1\0\0\0abcd\2\0\0\0abcd", 16, GNOMON_ERROR_DATA);
    refused("fvecs", "\1\0\0\0abcd\1\0\0\0abc", 15, GNOMON_ERROR_TRUNCATED);
    refused("fvecs", "\0\0\0\0", 4, GNOMON_ERROR_DATA);
    refused("fvecs", "\xff\xff\xff\xff", 4, GNOMON_ERROR_DATA);
    refused("ivecs",
            "\xff\xff\xff\x7f"
            "abcd",
            8, GNOMON_ERROR_TRUNCATED);
    refused("bvecs", "\1\0", 2, GNOMON_ERROR_TRUNCATED);
    refused("bvecs", "", 0, GNOMON_ERROR_DATA);
    refused("raw", "abc", 3, GNOMON_ERROR_TRUNCATED);
    refused("idx", "\0\0\x08\1\0\0\0\2a", 9, GNOMON_ERROR_TRUNCATED);
    refused("idx", "\0\0\x08\1\0\0\0\2abc", 11, GNOMON_ERROR_DATA);
    refused("idx", "\0\0\x0a\1\0\0\0\0", 8, GNOMON_ERROR_DATA);
    refused("idx", "\0\1\x08\1\0\0\0\0", 8, GNOMON_ERROR_DATA);
    refused("idx", "\0\0\x08\0", 4, GNOMON_ERROR_DATA);
    refused("idx", "\0\0\x08\2\0\0\0\1", 8, GNOMON_ERROR_TRUNCATED);
    refused("idx", "\0\0\x0e\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
            GNOMON_ERROR_DATA);
    refused("npz", "PK\3\4 no archive", 15,
            GNOMON_WITH_LIBZIP ? GNOMON_ERROR_DATA : GNOMON_ERROR_UNSUPPORTED);
    refused("hdf5", "\x89HDF\r\n\x1a\n no file", 16,
            GNOMON_WITH_HDF5 ? GNOMON_ERROR_DATA : GNOMON_ERROR_UNSUPPORTED);
}

static void unknown(void **unused)
{
    (void)unused;
    make_file("unnamed", "\1\2\3\4", 4);
    assert_int_equal(outcome(NULL), GNOMON_ERROR_FORMAT);
    make_file("unnamed", "", 0);
    assert_int_equal(outcome(NULL), GNOMON_ERROR_FORMAT);
    unlink(path);
    assert_int_equal(outcome(NULL), GNOMON_ERROR_NOT_FOUND);
    snprintf(path, sizeof path, "%s", folder);
    assert_int_equal(outcome(NULL), GNOMON_ERROR_IO);
    gnomon_reader *reader;
    assert_int_equal(gnomon_reader_open(ctx, NULL, NULL, &reader), GNOMON_ERROR_ARGUMENT);
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = "nonsense";
    assert_int_equal(gnomon_reader_open(ctx, path, &options, &reader), GNOMON_ERROR_ARGUMENT);
    options.struct_size = 0;
    assert_int_equal(gnomon_reader_open(ctx, path, &options, &reader), GNOMON_ERROR_ARGUMENT);
    gnomon_reader_close(NULL);
}

/* A file that shrinks while it is read is cut short, not a crash. */
static void shrinking(void **unused)
{
    (void)unused;
    static char bytes[8 + 4 * 100 * 100];
    memcpy(bytes, "\x64\0\0\0\x64\0\0\0", 8);
    make_file("a.fbin", bytes, sizeof bytes);
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    float row[100];
    int64_t got;
    gnomon_matrix dst = gnomon_matrix_rowmajor(row, GNOMON_F32, 1, 100);
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(truncate(path, 1000), 0);
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < 99 && status == GNOMON_OK; i++)
        status = gnomon_reader_next(reader, &dst, &got);
    assert_int_equal(status, GNOMON_ERROR_TRUNCATED);
    gnomon_reader_close(reader);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy),
        cmocka_unit_test(counted),
        cmocka_unit_test(unknown),
        cmocka_unit_test(shrinking),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
