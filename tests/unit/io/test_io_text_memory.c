/* Every allocation of every text and sparse reader and writer fails once: the call says so,
 * nothing leaks, nothing is left behind. */
#include "io_text.h"

static int64_t allowed, held;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (allowed-- <= 0) return NULL;
    held++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *pointer, size_t size)
{
    (void)user;
    (void)size;
    held--;
    free(pointer);
}

static gnomon_context *short_context(void)
{
    static const gnomon_allocator allocator = {NULL, allocate, release};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.allocator = &allocator;
    options.threads = 1;
    gnomon_context *context = NULL;
    allowed = INT64_MAX;
    assert_int_equal(gnomon_context_create(&options, &context), GNOMON_OK);
    held = 0;
    return context;
}

static gnomon_status read_all(gnomon_context *context)
{
    gnomon_reader *reader;
    gnomon_status status = gnomon_reader_open(context, path, NULL, &reader);
    if (status != GNOMON_OK) {
        assert_null(reader);
        return status;
    }
    gnomon_data_info info = {.struct_size = sizeof info};
    expect_ok(gnomon_reader_info(reader, &info));
    double data[64];
    gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, 4, info.cols);
    int64_t got = 1;
    gnomon_csr csr = {.rows = 1};
    if (info.access & GNOMON_ACCESS_SPARSE)
        while (csr.rows > 0 && status == GNOMON_OK)
            status = gnomon_reader_next_csr(reader, 2, 3, &csr);
    else
        while (got > 0 && status == GNOMON_OK)
            status = gnomon_reader_next(reader, &dst, &got);
    if (status == GNOMON_OK && (info.access & GNOMON_ACCESS_SEEK))
        status = gnomon_reader_seek(reader, 1);
    gnomon_reader_close(reader);
    return status;
}

static gnomon_status write_all(gnomon_context *context, int sparse)
{
    static const double data[] = {1, 0, 2.5, -3};
    static const int64_t offsets[] = {0, 1, 3}, indices[] = {0, 0, 1};
    const gnomon_csr csr = {2, 2, offsets, indices, data, GNOMON_F64};
    const gnomon_matrix src = gnomon_matrix_rowmajor((void *)data, GNOMON_F64, 2, 2);
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.sparse = sparse;
    gnomon_writer *writer;
    gnomon_status status = gnomon_writer_open(context, path, -1, 2, GNOMON_F64, &options, &writer);
    if (status != GNOMON_OK) return status;
    for (int i = 0; i < 3 && status == GNOMON_OK; i++)
        status = sparse ? gnomon_writer_csr(writer, &csr) : gnomon_writer_rows(writer, &src);
    if (status == GNOMON_OK) return gnomon_writer_finish(writer);
    gnomon_writer_abort(writer);
    return status;
}

/* Runs with 0, 1, 2, ... allocations allowed, until all goes well. */
static void starve(int writing, int sparse)
{
    gnomon_context *context = short_context();
    gnomon_status status = GNOMON_ERROR_MEMORY;
    int64_t most = 0;
    for (; status != GNOMON_OK; most++) {
        allowed = most;
        status = writing ? write_all(context, sparse) : read_all(context);
        if (status != GNOMON_OK && status != GNOMON_ERROR_MEMORY)
            fail_msg("%s: %s", gnomon_status_name(status), gnomon_last_error(context));
        assert_int_equal(held, 0);
        if (writing) assert_int_equal(access(path, F_OK) == 0, status == GNOMON_OK);
        assert_true(most < 500);
    }
    assert_true(most > 3);
    allowed = INT64_MAX;
    gnomon_context_destroy(context);
}

static void reading(void **unused)
{
    (void)unused;
    static const char *const files[][2] = {
        {"a.csv", "a,b\n1,2\n3,4\n"},
        {"a.tsv", "1\t2\n3\t4\n"},
        {"a.svm", "1 1:1\n1 2:2 3:1\n1 2:4 1:1\n"},
        {"a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n3 1 1\n2 2 2\n1 1 3\n"},
        {"b.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        make_text(files[i][0], files[i][1]);
        starve(0, 0);
        unlink(path);
    }
}

static void writing(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a.csv", "a.tsv", "a.svm", "a.mtx", "a.npz"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!GNOMON_WITH_LIBZIP && strcmp(names[i], "a.npz") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (i < 4) {
            starve(1, 0);
            unlink(path);
        }
        if (i >= 2) {
            starve(1, 1);
            starve(0, 0); /* and what came out is read */
            unlink(path);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading), cmocka_unit_test(writing)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
