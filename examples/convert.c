/* convert: copies points from any format to any other, a batch at a time, so that the file
 * may be larger than memory.
 *
 *   convert IN OUT
 *   convert points.csv points.npy
 *   convert matrix.mtx matrix.npz      sparse points stay sparse where OUT can hold them
 */
#include <gnomon/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(const gnomon_context *ctx, gnomon_status status)
{
    fprintf(stderr, "convert: %s (%s)\n", gnomon_last_error(ctx), gnomon_status_name(status));
    return 1;
}

static int ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length > wanted && strcmp(text + length - wanted, end) == 0;
}

static gnomon_status copy_sparse(gnomon_reader *reader, gnomon_writer *writer)
{
    for (;;) {
        gnomon_csr points; /* in the reader's memory */
        gnomon_status status = gnomon_reader_next_csr(reader, 10000, 1000000, &points);
        if (status != GNOMON_OK || points.rows == 0) return status;
        status = gnomon_writer_csr(writer, &points);
        if (status != GNOMON_OK) return status;
    }
}

static gnomon_status copy_dense(gnomon_reader *reader, gnomon_writer *writer,
                                const gnomon_data_info *info)
{
    /* about 8 MiB of points, one at least */
    int64_t batch = info->cols > 0 && info->cols < (1 << 20) ? (1 << 20) / info->cols : 1;
    size_t size = gnomon_dtype_size(info->dtype);
    void *memory = calloc((size_t)(batch * info->cols) + 1, size);
    if (memory == NULL) return GNOMON_ERROR_MEMORY;
    gnomon_status status;
    for (;;) {
        gnomon_matrix points = gnomon_matrix_rowmajor(memory, info->dtype, batch, info->cols);
        int64_t got = 0;
        status = gnomon_reader_next(reader, &points, &got);
        if (status != GNOMON_OK || got == 0) break;
        points.rows = got;
        status = gnomon_writer_rows(writer, &points);
        if (status != GNOMON_OK) break;
    }
    free(memory);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: convert IN OUT\n");
        return 2;
    }
    gnomon_context *ctx;
    gnomon_status status = gnomon_context_create(NULL, &ctx);
    if (status != GNOMON_OK) return complain(NULL, status);

    gnomon_read_options read = GNOMON_READ_OPTIONS_INIT;
    read.text_dtype = GNOMON_F64; /* every digit of a text */
    gnomon_reader *reader;
    status = gnomon_reader_open(ctx, argv[1], &read, &reader);
    if (status != GNOMON_OK) return complain(ctx, status);
    gnomon_data_info info = {.struct_size = sizeof info};
    gnomon_reader_info(reader, &info);

    gnomon_write_options write = GNOMON_WRITE_OPTIONS_INIT;
    write.sparse =
        (info.access & GNOMON_ACCESS_SPARSE) != 0 &&
        (ends_in(argv[2], ".npz") || ends_in(argv[2], ".mtx") || ends_in(argv[2], ".svm"));
    gnomon_writer *writer;
    status = gnomon_writer_open(ctx, argv[2], info.rows, info.cols, info.dtype, &write, &writer);
    if (status == GNOMON_OK) {
        status = write.sparse ? copy_sparse(reader, writer) : copy_dense(reader, writer, &info);
        if (status == GNOMON_OK)
            status = gnomon_writer_finish(writer); /* only now is OUT there */
        else
            gnomon_writer_abort(writer); /* what was there before stays */
    }
    if (status != GNOMON_OK) complain(ctx, status);
    gnomon_reader_close(reader);
    gnomon_context_destroy(ctx);
    return status != GNOMON_OK;
}
