/* The n-th allocation fails, for every n: the call says MEMORY, nothing leaks, no file is left. */
#include "io/format.h"
#include "io_text.h"

#include <dirent.h>

static long countdown; /* allocations that still succeed; -1: all */
static long live;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (countdown == 0) return NULL;
    if (countdown > 0) countdown--;
    live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *pointer, size_t size)
{
    (void)user;
    (void)size;
    live--;
    free(pointer);
}

static int make_context(void **unused)
{
    static const gnomon_allocator allocator = {NULL, allocate, release};
    (void)unused;
    if (make_folder(NULL) != 0) return 1;
    gnomon_context_destroy(ctx);
    countdown = -1;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.allocator = &allocator;
    options.threads = 1;
    return gnomon_context_create(&options, &ctx) != GNOMON_OK;
}

static int files(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

static gnomon_status write_once(gnomon_dtype dtype, const gnomon_write_options *options)
{
    float data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    gnomon_matrix src = gnomon_matrix_rowmajor(data, GNOMON_F32, 3, 4);
    gnomon_writer *writer;
    int64_t rows = options->coordinates_contiguous ? 3 : -1;
    GNOMON_TRY(gnomon_writer_open(ctx, path, rows, 4, dtype, options, &writer));
    gnomon_status status = gnomon_writer_rows(writer, &src);
    if (status == GNOMON_OK) return gnomon_writer_finish(writer);
    gnomon_writer_abort(writer);
    return status;
}

static gnomon_status read_once(gnomon_dtype dtype)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.raw_cols = 4;
    options.raw_dtype = dtype;
    double data[12] = {0}, block[4];
    gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, 3, 4);
    gnomon_matrix part = gnomon_matrix_colmajor(block, GNOMON_F64, 2, 2);
    gnomon_reader *reader;
    int64_t got = 0;
    GNOMON_TRY(gnomon_reader_open(ctx, path, &options, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    gnomon_status status = gnomon_reader_info(reader, &info);
    if (status == GNOMON_OK) status = gnomon_reader_next(reader, &dst, &got);
    if (status == GNOMON_OK && (info.access & GNOMON_ACCESS_COLUMNS) != 0)
        status = gnomon_reader_block(reader, 1, 1, &part);
    gnomon_reader_close(reader);
    if (status == GNOMON_OK) {
        assert_int_equal(got, 3);
        assert_true(data[0] == 1 && data[11] == 12);
    }
    return status;
}

/* Runs until it succeeds; how many allocations that takes. */
static long every(int writing, gnomon_dtype dtype, const gnomon_write_options *options)
{
    for (long n = 0;; n++) {
        long before = live;
        countdown = n;
        gnomon_status status = writing ? write_once(dtype, options) : read_once(dtype);
        countdown = -1;
        assert_int_equal(live, before);
        if (status == GNOMON_OK) return n;
        assert_int_equal(status, GNOMON_ERROR_MEMORY);
        if (writing) assert_int_equal(files(), 0);
        assert_true(n < 1000);
    }
}

static void formats(void **unused)
{
    (void)unused;
    const gnomon_format *format;
    for (int i = 0; (format = gnomon_format_at(i)) != NULL; i++) {
        /* sparse text has a test of its own */
        if (format->writes == 0 || (format->holds & (GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_TEXT)) ==
                                       (GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_TEXT))
            continue;
        if ((!GNOMON_WITH_LIBZIP && strcmp(format->name, "npz") == 0) ||
            (!GNOMON_WITH_HDF5 && strcmp(format->name, "hdf5") == 0))
            continue;
        for (int colmajor = 0; colmajor < 2; colmajor++) {
            if (colmajor && (format->takes & GNOMON_TAKES_ORDER) == 0) continue;
            int dtype = GNOMON_F32;
            while ((format->writes & GNOMON_DTYPE_BIT(dtype)) == 0)
                dtype++;
            gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
            options.coordinates_contiguous = colmajor;
            snprintf(path, sizeof path, "%s/a.%s", folder, format->name);
            assert_true(every(1, (gnomon_dtype)dtype, &options) > 4);
            assert_int_equal(files(), 1);
            if (strcmp(format->name, "raw") != 0 || !colmajor)
                assert_true(every(0, (gnomon_dtype)dtype, NULL) > 4);
            unlink(path);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats)};
    return cmocka_run_group_tests(tests, make_context, remove_folder);
}
