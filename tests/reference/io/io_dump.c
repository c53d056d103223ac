/* io_dump: what the reader makes of a file, for comparison with other readers.
 *
 *   io_dump read PATH [key=value ...]           facts on stderr, the points as raw
 *                                               little-endian doubles on stdout
 *   io_dump copy PATH TARGET DTYPE [key=value ...]    reads PATH, writes TARGET
 *
 * Keys: format, rows, cols, dtype (raw input), chunk (points a read), block=R0,R1,C0,C1,
 * to (format of the target), order=f, unknown=1 (rows not told), compress=0 */
#include <gnomon/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gnomon_context *ctx;

static const char *option(int argc, char **argv, const char *key)
{
    size_t length = strlen(key);
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], key, length) == 0 && argv[i][length] == '=')
            return argv[i] + length + 1;
    return NULL;
}

static long long number(int argc, char **argv, const char *key, long long otherwise)
{
    const char *text = option(argc, argv, key);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static gnomon_dtype dtype_named(const char *name)
{
    for (int d = GNOMON_F32; name != NULL && d <= GNOMON_U64; d++)
        if (strcmp(gnomon_dtype_name((gnomon_dtype)d), name) == 0) return (gnomon_dtype)d;
    return (gnomon_dtype)0;
}

static void need(gnomon_status status)
{
    if (status == GNOMON_OK) return;
    /* as a command ends on a signal: nothing half-written stays */
    gnomon_io_abandon_all();
    fprintf(stderr, "%s: %s\n", gnomon_status_name(status), gnomon_last_error(ctx));
    exit(1);
}

static void *memory(int64_t rows, int64_t cols)
{
    double *data = calloc((size_t)(rows * cols) + 1, sizeof *data);
    if (data == NULL) exit(3);
    return data;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    int copy = strcmp(argv[1], "copy") == 0;
    if (copy && argc < 5) return 2;
    need(gnomon_context_create(NULL, &ctx));

    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = option(argc, argv, "format");
    options.raw_rows = number(argc, argv, "rows", -1);
    options.raw_cols = number(argc, argv, "cols", 0);
    options.raw_dtype = dtype_named(option(argc, argv, "dtype"));
    options.svmlight_cols = number(argc, argv, "svmlight_cols", 0);
    gnomon_reader *reader;
    need(gnomon_reader_open(ctx, argv[2], &options, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    need(gnomon_reader_info(reader, &info));
    fprintf(stderr, "%s %lld %lld %s access=%d fortran=%d member=%s\n", info.format,
            (long long)info.rows, (long long)info.cols, gnomon_dtype_name(info.dtype), info.access,
            info.coordinates_contiguous, info.member);

    gnomon_writer *writer = NULL;
    if (copy) {
        gnomon_write_options w = GNOMON_WRITE_OPTIONS_INIT;
        const char *order = option(argc, argv, "order");
        w.format = option(argc, argv, "to");
        w.coordinates_contiguous = order != NULL && order[0] == 'f';
        w.compress = (int)number(argc, argv, "compress", 1);
        int64_t rows = number(argc, argv, "unknown", 0) ? -1 : info.rows;
        need(gnomon_writer_open(ctx, argv[3], rows, info.cols, dtype_named(argv[4]), &w, &writer));
    }
    const char *block = option(argc, argv, "block");
    if (block != NULL) {
        long long r0, r1, c0, c1;
        if (sscanf(block, "%lld,%lld,%lld,%lld", &r0, &r1, &c0, &c1) != 4) return 2;
        gnomon_matrix dst =
            gnomon_matrix_rowmajor(memory(r1 - r0, c1 - c0), GNOMON_F64, r1 - r0, c1 - c0);
        need(gnomon_reader_block(reader, r0, c0, &dst));
        fwrite(dst.data, sizeof(double), (size_t)(dst.rows * dst.cols), stdout);
        free(dst.data);
    } else {
        int64_t chunk = number(argc, argv, "chunk", 64), got;
        gnomon_matrix dst =
            gnomon_matrix_rowmajor(memory(chunk, info.cols), GNOMON_F64, chunk, info.cols);
        for (;;) {
            dst.rows = chunk;
            need(gnomon_reader_next(reader, &dst, &got));
            if (got == 0) break;
            dst.rows = got;
            if (copy)
                need(gnomon_writer_rows(writer, &dst));
            else
                fwrite(dst.data, sizeof(double), (size_t)(got * info.cols), stdout);
        }
        free(dst.data);
    }
    if (copy) need(gnomon_writer_finish(writer));
    gnomon_reader_close(reader);
    gnomon_context_destroy(ctx);
    return fflush(stdout) == 0 ? 0 : 4;
}
