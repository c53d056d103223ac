#include "io/formats/npy.h"

#include "io/formats/npy_points.h"

#include <string.h>

gnomon_status gnomon_npy_points(gnomon_reader *reader, gnomon_source *source, gnomon_array *array)
{
    gnomon_context *ctx = gnomon_source_context(source);
    const char *name = gnomon_source_name(source);
    gnomon_npy_header header;
    GNOMON_TRY(gnomon_npy_read_header(source, &header));
    GNOMON_FAIL_IF(header.text_bytes > 0, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": holds texts (dtype 'S%d'), not numbers", name,
                   header.text_bytes);
    GNOMON_FAIL_IF(
        header.dimensions == 0, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": holds a single number without dimensions; points have one or two",
        name);
    const bool transposed = reader->options.tensor != 0 && header.fortran;
    GNOMON_FAIL_IF(
        header.fortran && header.dimensions > 2 && !transposed, ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG(
            "%s") ": holds %d dimensions in Fortran order; points are read from two in that order",
        name, header.dimensions);
    const int last = header.dimensions - 1, outermost = transposed ? last : 0;
    int64_t cols = 1;
    for (int i = 0; i <= last; i++)
        GNOMON_FAIL_IF((i != outermost || last == 0) && !gnomon_mul(cols, header.shape[i], &cols),
                       ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": the npy header's shape is more than any file holds",
                       name);
    GNOMON_TRY(gnomon_reader_shape(reader, header.dimensions, header.shape, header.fortran));
    *array = (gnomon_array){.source = source,
                            .offset = header.offset,
                            .rows = last == 0 ? 1 : header.shape[outermost],
                            .cols = cols,
                            .dtype = header.dtype,
                            .boolean = header.boolean,
                            .swapped = header.swapped,
                            .fortran = header.fortran && !transposed};
    return GNOMON_OK;
}

static int npy_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    return length >= 6 && memcmp(head, "\x93NUMPY", 6) == 0 ? GNOMON_SNIFF_YES : GNOMON_SNIFF_NO;
}

static gnomon_status npy_open(gnomon_reader *reader)
{
    gnomon_array header;
    GNOMON_TRY(gnomon_npy_points(reader, reader->source, &header));
    return gnomon_array_open(reader, &header);
}

static bool npy_revisits(const gnomon_writer *writer)
{
    return writer->rows < 0 || writer->options.coordinates_contiguous;
}

static void make_header(const gnomon_writer *writer, int64_t rows,
                        unsigned char header[GNOMON_NPY_HEADER])
{
    gnomon_npy_make_header(header, writer->dtype, 2, rows, writer->cols,
                           writer->options.coordinates_contiguous != 0);
}

static gnomon_status npy_create(gnomon_writer *writer)
{
    unsigned char header[GNOMON_NPY_HEADER];
    make_header(writer, writer->rows < 0 ? 0 : writer->rows, header);
    GNOMON_TRY(gnomon_sink_write(writer->sink, header, sizeof header));
    return gnomon_array_create(writer, false, false);
}

static gnomon_status npy_complete(gnomon_writer *writer)
{
    if (writer->rows >= 0) return GNOMON_OK;
    unsigned char header[GNOMON_NPY_HEADER];
    make_header(writer, writer->written, header);
    return gnomon_sink_write_at(writer->sink, 0, header, sizeof header);
}

const gnomon_format gnomon_format_npy = {
    .name = "npy",
    .about = "NumPy array",
    .endings = ".npy",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TENSOR,
    .takes = GNOMON_TAKES_ORDER,
    .writes = GNOMON_NPY_WRITES,
    .sniff = npy_sniff,
    .open = npy_open,
    .next = gnomon_array_next,
    .seek = gnomon_array_seek,
    .block = gnomon_array_block,
    .close = gnomon_array_close,
    .revisits = npy_revisits,
    .create = npy_create,
    .put = gnomon_array_put,
    .complete = npy_complete,
    .discard = gnomon_array_discard,
};
