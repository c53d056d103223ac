/* Round trips through every writable binary format, type and order; views, places, blocks. */
#include "io/format.h"
#include "io_text.h"

enum { ROWS = 13, COLS = 7 };

static bool built(const char *format)
{
    return (GNOMON_WITH_HDF5 || strcmp(format, "hdf5") != 0) &&
           (GNOMON_WITH_LIBZIP || strcmp(format, "npz") != 0);
}

/* Which of the registry's rows the round trips are for: all that hold numbers as bytes. */
static bool tried(const gnomon_format *format)
{
    return format->writes != 0 && (format->holds & GNOMON_HOLDS_TEXT) == 0 && built(format->name);
}

/* Values that every type holds. */
static double value(int64_t i, int64_t j)
{
    return (double)((i * 31 + j * 7) % 120);
}

static gnomon_read_options options_for(gnomon_dtype dtype)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.raw_cols = COLS;
    options.raw_dtype = dtype;
    return options;
}

static void set_path(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
}

/* Points written three at a time from a view of the given type with the given strides. */
static void write_points(const char *format, gnomon_dtype stored, gnomon_dtype given, bool colmajor,
                         bool told, int flavour)
{
    char name[32];
    snprintf(name, sizeof name, "a.%s", format);
    set_path(name);
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.coordinates_contiguous = colmajor;
    options.compress = flavour & 1;
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, told ? ROWS : -1, COLS, stored, &options, &writer));
    for (int64_t first = 0; first < ROWS; first += 3) {
        int64_t rows = ROWS - first < 3 ? ROWS - first : 3;
        union {
            float f[400];
            double d[400];
        } data;
        gnomon_matrix src = {data.f, given, GNOMON_HOST, rows, COLS, 0, 0};
        int64_t origin = 0;
        switch (flavour) {
        case 0:
            src.row_stride = COLS, src.col_stride = 1;
            break;
        case 1:
            src.row_stride = 1, src.col_stride = rows;
            break;
        case 2:
            src.row_stride = 3 * COLS, src.col_stride = 3;
            break;
        default:
            src.row_stride = -2 * COLS, src.col_stride = -1, origin = 300;
            break;
        }
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < COLS; j++) {
                int64_t at = origin + i * src.row_stride + j * src.col_stride;
                if (given == GNOMON_F32)
                    data.f[at] = (float)value(first + i, j);
                else
                    data.d[at] = value(first + i, j);
            }
        }
        src.data = given == GNOMON_F32 ? (void *)(data.f + origin) : (void *)(data.d + origin);
        expect_ok(gnomon_writer_rows(writer, &src));
    }
    expect_ok(gnomon_writer_finish(writer));
}

static void expect_block(gnomon_reader *reader, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, bool as_float, bool columns)
{
    float f[ROWS * COLS];
    double d[ROWS * COLS];
    gnomon_dtype dtype = as_float ? GNOMON_F32 : GNOMON_F64;
    void *data = as_float ? (void *)f : (void *)d;
    gnomon_matrix dst = columns ? gnomon_matrix_colmajor(data, dtype, rows, cols)
                                : gnomon_matrix_rowmajor(data, dtype, rows, cols);
    expect_ok(gnomon_reader_block(reader, row, col, &dst));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            int64_t at = i * dst.row_stride + j * dst.col_stride;
            assert_true((as_float ? (double)f[at] : d[at]) == value(row + i, col + j));
        }
    }
}

static void expect_next(gnomon_reader *reader, int64_t row, int64_t ask, int64_t expected)
{
    double data[ROWS * COLS * 4];
    gnomon_matrix dst = {data + 2 * ask * COLS, GNOMON_F64, GNOMON_HOST, ask, COLS, -2 * COLS, 2};
    dst.data = data + 2 * COLS * (ask - 1);
    int64_t got = -1;
    expect_ok(gnomon_reader_next(reader, &dst, &got));
    assert_int_equal(got, expected);
    for (int64_t i = 0; i < got; i++)
        for (int64_t j = 0; j < COLS; j++)
            assert_true(((double *)dst.data)[i * dst.row_stride + j * dst.col_stride] ==
                        value(row + i, j));
}

static void read_points(gnomon_dtype stored, const char *format, bool colmajor)
{
    gnomon_read_options options = options_for(stored);
    if (colmajor && strcmp(format, "raw") == 0) return; /* raw is read as rows */
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, &options, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    expect_ok(gnomon_reader_info(reader, &info));
    assert_string_equal(info.format, format);
    assert_int_equal(info.rows, ROWS);
    assert_int_equal(info.cols, COLS);
    assert_int_equal(info.dtype, stored);
    assert_int_equal(info.coordinates_contiguous, colmajor);
    assert_int_equal(info.nonzeros, -1);

    expect_next(reader, 0, 5, 5);
    expect_next(reader, 5, 5, 5);
    expect_next(reader, 10, 5, 3);
    expect_next(reader, 13, 5, 0);
    expect_next(reader, 13, 1, 0);
    assert_true((info.access & GNOMON_ACCESS_SEEK) != 0);
    expect_ok(gnomon_reader_seek(reader, 4));
    expect_next(reader, 4, 2, 2);
    if ((info.access & GNOMON_ACCESS_COLUMNS) != 0) {
        for (int way = 0; way < 4; way++) {
            expect_block(reader, 0, ROWS, 0, COLS, way & 1, way & 2);
            expect_block(reader, 3, 5, 2, 3, way & 1, way & 2);
            expect_block(reader, ROWS - 1, 1, COLS - 1, 1, way & 1, way & 2);
            expect_block(reader, 2, 0, 1, 3, way & 1, way & 2);
        }
        double one;
        gnomon_matrix outside = gnomon_matrix_rowmajor(&one, GNOMON_F64, 1, 1);
        assert_int_equal(gnomon_reader_block(reader, ROWS, 0, &outside), GNOMON_ERROR_ARGUMENT);
        assert_int_equal(gnomon_reader_block(reader, 0, -1, &outside), GNOMON_ERROR_ARGUMENT);
        assert_int_equal(gnomon_reader_block(reader, 0, COLS, &outside), GNOMON_ERROR_ARGUMENT);
        assert_int_equal(gnomon_reader_block(reader, INT64_MAX, 0, &outside),
                         GNOMON_ERROR_ARGUMENT);
    }
    expect_next(reader, 6, 1, 1); /* blocks have not moved it */
    expect_ok(gnomon_reader_seek(reader, ROWS));
    expect_next(reader, ROWS, 1, 0);
    assert_int_equal(gnomon_reader_seek(reader, ROWS + 1), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_reader_seek(reader, -1), GNOMON_ERROR_ARGUMENT);

    /* the stored type as it is */
    expect_ok(gnomon_reader_seek(reader, 0));
    unsigned char bytes[ROWS * COLS * 8], first[8];
    gnomon_matrix as_stored = gnomon_matrix_rowmajor(bytes, stored, ROWS, COLS);
    int64_t got;
    expect_ok(gnomon_reader_next(reader, &as_stored, &got));
    assert_int_equal(got, ROWS);
    gnomon_matrix corner = gnomon_matrix_rowmajor(first, stored, 1, 1);
    if ((info.access & GNOMON_ACCESS_COLUMNS) != 0) {
        expect_ok(gnomon_reader_block(reader, 1, 1, &corner));
        size_t size = gnomon_dtype_size(stored);
        assert_memory_equal(first, bytes + (COLS + 1) * size, size);
    }
    /* any other is refused */
    as_stored.dtype = stored == GNOMON_I8 ? GNOMON_U8 : GNOMON_I8;
    assert_int_equal(gnomon_reader_next(reader, &as_stored, &got), GNOMON_ERROR_DTYPE);
    as_stored.dtype = stored;
    as_stored.cols = COLS - 1;
    assert_int_equal(gnomon_reader_next(reader, &as_stored, &got), GNOMON_ERROR_SHAPE);
    gnomon_csr csr;
    expect_ok(gnomon_reader_next_csr(reader, 1, 1, &csr)); /* nothing is left */
    assert_int_equal(csr.rows, 0);
    gnomon_reader_close(reader);
}

static void round_trips(void **unused)
{
    (void)unused;
    int trips = 0;
    const gnomon_format *format;
    for (int f = 0; (format = gnomon_format_at(f)) != NULL; f++) {
        if (!tried(format)) continue;
        for (int dtype = GNOMON_F32; dtype <= GNOMON_U64; dtype++) {
            if ((format->writes & GNOMON_DTYPE_BIT(dtype)) == 0) {
                gnomon_writer *writer;
                char name[32];
                snprintf(name, sizeof name, "b.%s", format->name);
                set_path(name);
                assert_int_equal(
                    gnomon_writer_open(ctx, path, 1, 1, (gnomon_dtype)dtype, NULL, &writer),
                    GNOMON_ERROR_ARGUMENT);
                assert_null(writer);
                continue;
            }
            for (int flavour = 0; flavour < 8; flavour++) {
                bool colmajor = (flavour & 4) != 0;
                if (colmajor && (format->takes & GNOMON_TAKES_ORDER) == 0) continue;
                bool told = colmajor || (flavour & 1) == 0;
                write_points(format->name, (gnomon_dtype)dtype,
                             (flavour & 2) != 0 ? GNOMON_F64 : GNOMON_F32, colmajor, told,
                             flavour & 3);
                read_points((gnomon_dtype)dtype, format->name, colmajor);
                unlink(path);
                trips++;
            }
        }
    }
    assert_true(trips > 200);
}

/* The same points are the same bytes, however they were handed over. */
static void same_bytes(void **unused)
{
    (void)unused;
    const gnomon_format *format;
    for (int f = 0; (format = gnomon_format_at(f)) != NULL; f++) {
        if (!tried(format)) continue;
        int dtype = GNOMON_F32;
        while ((format->writes & GNOMON_DTYPE_BIT(dtype)) == 0)
            dtype++;
        static unsigned char first[65536], again[65536];
        size_t length = 0;
        for (int flavour = 0; flavour < 4; flavour += 2) {
            write_points(format->name, (gnomon_dtype)dtype, GNOMON_F64, false, true, flavour);
            FILE *file = fopen(path, "rb");
            assert_non_null(file);
            size_t n = fread(again, 1, sizeof again, file);
            fclose(file);
            if (flavour == 0) {
                memcpy(first, again, n);
                length = n;
            }
            assert_int_equal(n, length);
            assert_memory_equal(first, again, n);
            unlink(path);
        }
    }
}

static void counts(void **unused)
{
    (void)unused;
    float data[6] = {0};
    gnomon_matrix two = gnomon_matrix_rowmajor(data, GNOMON_F32, 2, 3);
    gnomon_writer *writer;
    set_path("a.npy");
    expect_ok(gnomon_writer_open(ctx, path, 3, 3, GNOMON_F32, NULL, &writer));
    expect_ok(gnomon_writer_rows(writer, &two));
    assert_int_equal(gnomon_writer_finish(writer), GNOMON_ERROR_SHAPE);
    assert_int_equal(access(path, F_OK), -1);
    expect_ok(gnomon_writer_open(ctx, path, 3, 3, GNOMON_F32, NULL, &writer));
    expect_ok(gnomon_writer_rows(writer, &two));
    assert_int_equal(gnomon_writer_rows(writer, &two), GNOMON_ERROR_SHAPE);
    two.cols = 2;
    assert_int_equal(gnomon_writer_rows(writer, &two), GNOMON_ERROR_SHAPE);
    two.cols = 3;
    two.dtype = GNOMON_I32;
    assert_int_equal(gnomon_writer_rows(writer, &two), GNOMON_ERROR_DTYPE);
    two.dtype = GNOMON_F32;
    two.rows = 1; /* refusals leave the writer usable */
    expect_ok(gnomon_writer_rows(writer, &two));
    expect_ok(gnomon_writer_finish(writer));
    int64_t rows;
    free(read_whole(NULL, 2, &rows, NULL));
    assert_int_equal(rows, 3);
    unlink(path);
    assert_int_equal(gnomon_writer_open(ctx, path, -2, 3, GNOMON_F32, NULL, &writer),
                     GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_writer_open(ctx, path, INT64_MAX, INT64_MAX, GNOMON_F32, NULL, &writer),
                     GNOMON_ERROR_OVERFLOW);
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.format = "nonsense";
    assert_int_equal(gnomon_writer_open(ctx, path, 1, 1, GNOMON_F32, &options, &writer),
                     GNOMON_ERROR_ARGUMENT);
    gnomon_writer_abort(NULL);
}

/* A line longer than the reader's and the writer's buffers goes in pieces. */
static void long_lines(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a.npy", "a.fvecs", "a.fbin", "a.idx", "a.npz", "a.h5"};
    enum { N = 3, D = 1200001 };
    double *x = malloc(sizeof *x * N * D), *y = malloc(sizeof *y * N * D);
    assert_true(x != NULL && y != NULL);
    for (int64_t i = 0; i < (int64_t)N * D; i++)
        x[i] = (double)(i % 8191);
    for (int n = 0; n < 6; n++) {
        for (int colmajor = 0; colmajor < 2; colmajor++) {
            if (!built(n == 4 ? "npz" : n == 5 ? "hdf5" : "npy") || (colmajor && n != 0)) continue;
            set_path(names[n]);
            gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
            options.compress = 0;
            options.coordinates_contiguous = colmajor;
            gnomon_writer *writer;
            gnomon_matrix src = gnomon_matrix_rowmajor(x, GNOMON_F64, N, D);
            expect_ok(gnomon_writer_open(ctx, path, N, D, GNOMON_F32, &options, &writer));
            expect_ok(gnomon_writer_rows(writer, &src));
            expect_ok(gnomon_writer_finish(writer));
            gnomon_reader *reader;
            expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
            gnomon_matrix dst = gnomon_matrix_rowmajor(y, GNOMON_F64, N, D);
            int64_t got;
            memset(y, 0, sizeof *y * N * D);
            expect_ok(gnomon_reader_next(reader, &dst, &got));
            assert_int_equal(got, N);
            assert_memory_equal(x, y, sizeof *x * N * D);
            dst = gnomon_matrix_rowmajor(y, GNOMON_F64, 2, 700000);
            expect_ok(gnomon_reader_block(reader, 1, 500001, &dst));
            for (int64_t i = 0; i < 2; i++)
                assert_memory_equal(x + (i + 1) * D + 500001, y + i * 700000, 700000 * sizeof *x);
            gnomon_reader_close(reader);
            unlink(path);
        }
    }
    free(x);
    free(y);
}

/* Offsets beyond 32 bits, in a file that is all hole but for its corners. */
static void large_file(void **unused)
{
    (void)unused;
    const int64_t rows = 5, cols = INT64_C(1) << 28,
                  places[] = {0, cols - 1, 3 * cols, 5 * cols - 1};
    const double corners[] = {1.5, 2.5, 3.5, 4.5};
    for (int fortran = 0; fortran < 2; fortran++) {
        char header[129] = "\x93NUMPY\x01\x00v";
        snprintf(header + 10, sizeof header - 10,
                 "{'descr': '<f8', 'fortran_order': %s, 'shape': (%lld, %lld), }",
                 fortran ? "True" : "False", (long long)(fortran ? cols : rows),
                 (long long)(fortran ? rows : cols));
        memset(header + strlen(header + 10) + 10, ' ', 118 - strlen(header + 10));
        header[8] = 118;
        header[9] = 0;
        make_file("a.npy", header, 128);
        if (truncate(path, 128 + 8 * rows * cols) != 0) {
            unlink(path);
            skip(); /* no room for holes here */
        }
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(fseeko(file, (off_t)(128 + 8 * places[i]), SEEK_SET), 0);
            assert_int_equal(fwrite(&corners[i], 8, 1, file), 1);
        }
        fclose(file);
        gnomon_reader *reader;
        expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
        for (int i = 0; i < 4; i++) {
            int64_t line = places[i] / cols, at = places[i] % cols;
            double value_there = 0;
            gnomon_matrix one = gnomon_matrix_rowmajor(&value_there, GNOMON_F64, 1, 1);
            expect_ok(gnomon_reader_block(reader, fortran ? at : line, fortran ? line : at, &one));
            assert_true(value_there == corners[i]);
        }
        if (fortran) { /* the last point */
            double point[5];
            gnomon_matrix last = gnomon_matrix_rowmajor(point, GNOMON_F64, 1, 5);
            int64_t got;
            expect_ok(gnomon_reader_seek(reader, cols - 1));
            expect_ok(gnomon_reader_next(reader, &last, &got));
            assert_int_equal(got, 1);
            assert_true(point[0] == 2.5 && point[4] == 4.5);
        }
        gnomon_reader_close(reader);
        unlink(path);
    }
}

/* Pieces so large that several threads read them; and a file that was cut after it was opened. */
static void large_pieces(void **unused)
{
    (void)unused;
    enum { MANY = 9001, WIDE = 257 };
    const int64_t count = (int64_t)MANY * WIDE;
    gnomon_context *threads, *before = ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 5;
    assert_int_equal(gnomon_context_create(&options, &threads), GNOMON_OK);
    float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
    assert_true(x != NULL && y != NULL);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i * 2654435761u % 1000003);
    set_path("a.npy");
    gnomon_writer *writer;
    expect_ok(gnomon_writer_open(ctx, path, MANY, WIDE, GNOMON_F32, NULL, &writer));
    const gnomon_matrix from = gnomon_matrix_rowmajor(x, GNOMON_F32, MANY, WIDE);
    expect_ok(gnomon_writer_rows(writer, &from));
    expect_ok(gnomon_writer_finish(writer));
    ctx = threads;
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
    for (int64_t row = 0; row < MANY; row += 4500) {
        int64_t got;
        gnomon_matrix to = gnomon_matrix_rowmajor(y + row * WIDE, GNOMON_F32,
                                                  MANY - row < 4500 ? MANY - row : 4500, WIDE);
        expect_ok(gnomon_reader_next(reader, &to, &got));
        assert_int_equal(got, to.rows);
    }
    assert_memory_equal(x, y, (size_t)count * sizeof *x);
    assert_int_equal(truncate(path, 128 + 4 * (count - 1)), 0);
    int64_t got;
    gnomon_matrix all = gnomon_matrix_rowmajor(y, GNOMON_F32, MANY, WIDE);
    expect_ok(gnomon_reader_seek(reader, 0));
    const gnomon_status status = gnomon_reader_next(reader, &all, &got);
    assert_int_equal(status, GNOMON_ERROR_TRUNCATED);
    assert_non_null(strstr(gnomon_last_error(ctx), "a.npy"));
    gnomon_reader_close(reader);
    ctx = before;
    gnomon_context_destroy(threads);
    unlink(path);
    free(x);
    free(y);
}

static int64_t told_of;
static char told[200];
static void tell(void *user, const char *name)
{
    (void)user;
    told_of++;
    strncat(told, name, sizeof told - strlen(told) - 1);
    strncat(told, ";", sizeof told - strlen(told) - 1);
}

static void members(void **unused)
{
    (void)unused;
    static const char *const paths[] = {"a.npz:the:key", "a.h5:/deep/set", "a.npz", "a.hdf5"};
    static const char *const keys[] = {"the:key", "/deep/set", "data", "/data"};
    for (int i = 0; i < 4; i++) {
        if (!built(i % 2 == 0 ? "npz" : "hdf5")) continue;
        float data[2] = {1, 2};
        gnomon_matrix one = gnomon_matrix_rowmajor(data, GNOMON_F32, 1, 2);
        gnomon_writer *writer;
        set_path(paths[i]);
        expect_ok(gnomon_writer_open(ctx, path, 1, 2, GNOMON_F32, NULL, &writer));
        expect_ok(gnomon_writer_rows(writer, &one));
        expect_ok(gnomon_writer_finish(writer));
        gnomon_reader *reader;
        expect_ok(gnomon_reader_open(ctx, path, NULL, &reader));
        gnomon_data_info info = {.struct_size = sizeof info};
        expect_ok(gnomon_reader_info(reader, &info));
        assert_string_equal(info.member, keys[i]);
        gnomon_reader_close(reader);
        told_of = 0;
        told[0] = '\0';
        expect_ok(gnomon_file_members(ctx, path, tell, NULL));
        assert_int_equal(told_of, 1);
        assert_memory_equal(told, keys[i], strlen(keys[i]));
        char file[128];
        snprintf(file, sizeof file, "%s", path);
        char *colon = strchr(file, ':');
        if (colon != NULL) *colon = '\0';
        assert_int_equal(gnomon_same_file(path, file), 1);
        unlink(file);
    }
    make_text("a.csv", "1,2\n");
    char member[160];
    snprintf(member, sizeof member, "%s:key", path);
    gnomon_reader *reader;
    assert_int_equal(gnomon_reader_open(ctx, member, NULL, &reader), GNOMON_ERROR_ARGUMENT);
    told_of = 0;
    expect_ok(gnomon_file_members(ctx, path, tell, NULL));
    assert_int_equal(told_of, 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),  cmocka_unit_test(same_bytes), cmocka_unit_test(counts),
        cmocka_unit_test(long_lines),   cmocka_unit_test(large_file), cmocka_unit_test(members),
        cmocka_unit_test(large_pieces),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
