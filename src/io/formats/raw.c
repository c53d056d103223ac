#include "io/arrays/array.h"
#include "io/arrays/convert.h"

static gnomon_status raw_open(gnomon_reader *reader)
{
    gnomon_context *ctx = reader->ctx;
    const gnomon_read_options *options = &reader->options;
    GNOMON_FAIL_IF(
        options->raw_cols < 1 || options->raw_rows < -1, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG(
            "%s") ": raw data needs its shape: options.raw_rows is %lld (allowed are -1, for all "
                  "there are, and more) and options.raw_cols %lld (at least 1)",
        reader->path, (long long)options->raw_rows, (long long)options->raw_cols);
    GNOMON_FAIL_IF(gnomon_dtype_size(options->raw_dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": raw data needs its element type: options.raw_dtype is %d",
                   reader->path, (int)options->raw_dtype);
    const gnomon_array header = {.source = reader->source,
                                 .rows = options->raw_rows,
                                 .cols = options->raw_cols,
                                 .dtype = options->raw_dtype,
                                 .swapped = gnomon_big_endian(),
                                 .whole = true};
    return gnomon_array_open(reader, &header);
}

static bool raw_revisits(const gnomon_writer *writer)
{
    return writer->options.coordinates_contiguous != 0;
}

static gnomon_status raw_create(gnomon_writer *writer)
{
    return gnomon_array_create(writer, gnomon_big_endian(), false);
}

const gnomon_format gnomon_format_raw = {
    .name = "raw",
    .about = "numbers alone",
    .endings = ".raw",
    .headless = true,
    .holds = GNOMON_HOLDS_DENSE,
    .takes = GNOMON_TAKES_SHAPE | GNOMON_TAKES_ORDER,
    .writes = (2u << GNOMON_U64) - 2u, /* every type */
    .open = raw_open,
    .next = gnomon_array_next,
    .seek = gnomon_array_seek,
    .block = gnomon_array_block,
    .close = gnomon_array_close,
    .revisits = raw_revisits,
    .create = raw_create,
    .put = gnomon_array_put,
    .discard = gnomon_array_discard,
};
