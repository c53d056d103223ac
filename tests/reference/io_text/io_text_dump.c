/* What the library makes of a file of text or of a sparse matrix.
 *
 *   io_text_dump dense PATH [key=value ...]    the points, as doubles on standard output
 *   io_text_dump csr PATH [key=value ...]      the entries, each as three doubles: row, column,
 *                                              value; batches of the sizes given
 *   io_text_dump copy PATH TARGET [key=value ...]
 *
 * One line of facts goes to standard error. Keys: format, text=f64, header, cols, zero (based),
 * seek (the first point), points, entries (of a batch); of copy: to (the type), digits,
 * sparse, rows (told to the writer). */
#include <gnomon/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gnomon_context *ctx;
static char **keys;

static const char *option(const char *key)
{
    size_t length = strlen(key);
    for (char **k = keys; *k != NULL; k++)
        if (strncmp(*k, key, length) == 0 && (*k)[length] == '=') return *k + length + 1;
    return NULL;
}

static long long number(const char *key, long long otherwise)
{
    const char *text = option(key);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static gnomon_dtype type_named(const char *name)
{
    for (int d = GNOMON_F32; name != NULL && d <= GNOMON_U64; d++)
        if (strcmp(gnomon_dtype_name((gnomon_dtype)d), name) == 0) return (gnomon_dtype)d;
    return (gnomon_dtype)0;
}

static void need(gnomon_status status)
{
    if (status == GNOMON_OK) return;
    fprintf(stderr, "%s: %s\n", gnomon_status_name(status), gnomon_last_error(ctx));
    exit(1);
}

static void put_double(double value)
{
    fwrite(&value, sizeof value, 1, stdout);
}

static void dump_csr(const gnomon_csr *csr, int64_t row)
{
    for (int64_t i = 0; i < csr->rows; i++)
        for (int64_t e = csr->offsets[i] - csr->offsets[0];
             e < csr->offsets[i + 1] - csr->offsets[0]; e++) {
            put_double((double)(row + i));
            put_double((double)csr->indices[e]);
            put_double(csr->dtype == GNOMON_F64 ? ((const double *)csr->values)[e]
                                                : (double)((const float *)csr->values)[e]);
        }
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    int copy = strcmp(argv[1], "copy") == 0;
    int sparse = strcmp(argv[1], "csr") == 0;
    if (copy && argc < 4) return 2;
    keys = argv + 3 + copy;
    if (copy) sparse = (int)number("sparse", 0);
    need(gnomon_context_create(NULL, &ctx));

    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    options.format = option("format");
    options.text_dtype = type_named(option("text"));
    options.csv_header = (int)number("header", -1);
    options.svmlight_cols = number("cols", 0);
    options.svmlight_zero_based = (int)number("zero", -1);
    gnomon_reader *reader;
    need(gnomon_reader_open(ctx, argv[2], &options, &reader));
    gnomon_data_info info = {.struct_size = sizeof info};
    need(gnomon_reader_info(reader, &info));
    fprintf(stderr, "%s %lld %lld %s %lld\n", info.format, (long long)info.rows,
            (long long)info.cols, gnomon_dtype_name(info.dtype), (long long)info.nonzeros);
    int64_t row = number("seek", 0), points = number("points", 64);
    if (row > 0) need(gnomon_reader_seek(reader, row));

    gnomon_writer *writer = NULL;
    if (copy) {
        gnomon_write_options w = GNOMON_WRITE_OPTIONS_INIT;
        w.sparse = sparse;
        w.csv_digits = (int)number("digits", 0);
        gnomon_dtype to = option("to") != NULL ? type_named(option("to")) : info.dtype;
        need(gnomon_writer_open(ctx, argv[3], number("rows", -1), info.cols, to, &w, &writer));
    }
    if (sparse) {
        for (;;) {
            gnomon_csr csr;
            need(gnomon_reader_next_csr(reader, points, number("entries", INT64_MAX), &csr));
            if (csr.rows == 0) break;
            if (copy)
                need(gnomon_writer_csr(writer, &csr));
            else
                dump_csr(&csr, row);
            row += csr.rows;
        }
        fprintf(stderr, "%lld points\n", (long long)row);
    } else {
        double *data = calloc((size_t)(points * info.cols) + 1, sizeof *data);
        if (data == NULL) return 3;
        for (;;) {
            gnomon_matrix dst = gnomon_matrix_rowmajor(data, GNOMON_F64, points, info.cols);
            int64_t got;
            need(gnomon_reader_next(reader, &dst, &got));
            if (got == 0) break;
            dst.rows = got;
            if (copy)
                need(gnomon_writer_rows(writer, &dst));
            else
                fwrite(data, sizeof *data, (size_t)(got * info.cols), stdout);
        }
        free(data);
    }
    if (copy) need(gnomon_writer_finish(writer));
    gnomon_reader_close(reader);
    gnomon_context_destroy(ctx);
    return fflush(stdout) == 0 ? 0 : 4;
}
