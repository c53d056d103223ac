/* io_text.h: what the tests of text and sparse formats share: a file made of a text, read
 * whole, or the error that reading it gives. */
#ifndef IO_TEXT_H
#define IO_TEXT_H

#include <gnomon/io.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static gnomon_context *ctx;
static char folder[64];
static char path[128];

static inline int make_folder(void **unused)
{
    (void)unused;
    strcpy(folder, "/tmp/gnomon_test_XXXXXX");
    if (mkdtemp(folder) == NULL) return 1;
    return gnomon_context_create(NULL, &ctx) != GNOMON_OK;
}

static inline int remove_folder(void **unused)
{
    (void)unused;
    gnomon_context_destroy(ctx);
    return rmdir(folder);
}

/* Makes the file 'name' of bytes and puts its name in path. */
static inline void make_file(const char *name, const void *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void make_text(const char *name, const char *text)
{
    make_file(name, text, strlen(text));
}

static inline void expect_ok(gnomon_status status)
{
    if (status != GNOMON_OK) fail_msg("%s: %s", gnomon_status_name(status), gnomon_last_error(ctx));
}

/* All points of the file at path, chunk at a time; *rows may be NULL. To be freed. */
static inline double *read_whole(const gnomon_read_options *options, int64_t chunk, int64_t *rows,
                                 gnomon_data_info *info)
{
    gnomon_reader *reader;
    expect_ok(gnomon_reader_open(ctx, path, options, &reader));
    gnomon_data_info local;
    if (info == NULL) info = &local;
    info->struct_size = sizeof *info;
    expect_ok(gnomon_reader_info(reader, info));
    int64_t count = 0, got;
    double *data = NULL;
    do {
        data = realloc(data, (size_t)((count + chunk) * info->cols + 1) * sizeof *data);
        assert_non_null(data);
        gnomon_matrix dst =
            gnomon_matrix_rowmajor(data + count * info->cols, GNOMON_F64, chunk, info->cols);
        expect_ok(gnomon_reader_next(reader, &dst, &got));
        assert_true(got >= 0 && got <= chunk);
        count += got;
    } while (got > 0);
    if (info->rows >= 0) assert_int_equal(info->rows, count);
    if (rows != NULL) *rows = count;
    gnomon_reader_close(reader);
    return data;
}

/* Checks that the file at path holds rows x cols points of these values. */
static inline void expect_points(const gnomon_read_options *options, int64_t rows, int64_t cols,
                                 const double *expected)
{
    for (int64_t chunk = 1; chunk <= 5; chunk += 2) {
        gnomon_data_info info;
        int64_t found;
        double *data = read_whole(options, chunk, &found, &info);
        assert_int_equal(found, rows);
        assert_int_equal(info.cols, cols);
        for (int64_t i = 0; i < rows * cols; i++)
            if (memcmp(&data[i], &expected[i], sizeof data[i]) != 0 &&
                !(isnan(data[i]) && isnan(expected[i])))
                fail_msg("value %d is %.17g, expected %.17g", (int)i, data[i], expected[i]);
        free(data);
    }
}

/* Checks that opening or reading the file at path fails so, with a text that has part in it. */
static inline void expect_error(const gnomon_read_options *options, gnomon_status expected,
                                const char *part)
{
    gnomon_reader *reader = NULL;
    gnomon_status status = gnomon_reader_open(ctx, path, options, &reader);
    if (status == GNOMON_OK) {
        gnomon_data_info info = {.struct_size = sizeof info};
        expect_ok(gnomon_reader_info(reader, &info));
        if (info.access & GNOMON_ACCESS_SPARSE) {
            gnomon_csr csr;
            while ((status = gnomon_reader_next_csr(reader, 7, 100, &csr)) == GNOMON_OK)
                if (csr.rows == 0) break;
        } else {
            assert_true(info.cols < 1000000);
            double *data = calloc((size_t)info.cols + 1, sizeof *data);
            assert_non_null(data);
            gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, 1, info.cols);
            int64_t got;
            while ((status = gnomon_reader_next(reader, &dst, &got)) == GNOMON_OK)
                if (got == 0) break;
            free(data);
        }
    } else {
        assert_null(reader);
    }
    if (status != expected || strstr(gnomon_last_error(ctx), part) == NULL)
        fail_msg("%s: '%s', expected %s: '... %s ...'", gnomon_status_name(status),
                 gnomon_last_error(ctx), gnomon_status_name(expected), part);
    gnomon_reader_close(reader);
}

/* Runs check with the file's content coming through a pipe as standard input, path being "-". */
static inline void through_pipe(void (*check)(void))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char bytes[32768]; /* less than a pipe holds */
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(write(ends[1], bytes, size), size);
    close(ends[1]);
    int input = dup(0);
    dup2(ends[0], 0);
    close(ends[0]);
    char kept[sizeof path];
    strcpy(kept, path);
    strcpy(path, "-");
    check();
    strcpy(path, kept);
    if (input >= 0) {
        dup2(input, 0);
        close(input);
    }
}

/* The whole file at path; to be freed. */
static inline char *file_text(void)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    assert_true(size < (1 << 20) - 1);
    fclose(file);
    return text;
}

#endif
