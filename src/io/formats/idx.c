/* IDX, the format of MNIST and its kin: big-endian sizes and elements. */
#include "io/arrays/array.h"
#include "io/arrays/convert.h"

enum { LEAD = 4, HEADER = 12 };

static const struct {
    unsigned char code;
    gnomon_dtype dtype;
} types[] = {{0x08, GNOMON_U8},  {0x09, GNOMON_I8},  {0x0b, GNOMON_I16},
             {0x0c, GNOMON_I32}, {0x0d, GNOMON_F32}, {0x0e, GNOMON_F64}};
enum { TYPES = sizeof types / sizeof types[0] };

static gnomon_dtype dtype_of(unsigned char code)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].code == code) return types[i].dtype;
    return (gnomon_dtype)0;
}

static int64_t big_endian(const unsigned char *p)
{
    return (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static int idx_sniff(const unsigned char *head, size_t length, int64_t size)
{
    if (length < LEAD || head[0] != 0 || head[1] != 0 || dtype_of(head[2]) == (gnomon_dtype)0 ||
        head[3] == 0 || length < LEAD + 4 * (size_t)head[3])
        return GNOMON_SNIFF_NO;
    /* four bytes are a weak mark: the size must agree to beat an extension */
    int64_t bytes = (int64_t)gnomon_dtype_size(dtype_of(head[2]));
    for (int i = 0; i < head[3]; i++)
        if (!gnomon_mul(bytes, big_endian(head + LEAD + 4 * i), &bytes)) return GNOMON_SNIFF_NO;
    return size == bytes + LEAD + 4 * head[3] ? GNOMON_SNIFF_YES : GNOMON_SNIFF_MAYBE;
}

static gnomon_status idx_open(gnomon_reader *reader)
{
    gnomon_context *ctx = reader->ctx;
    const char *name = gnomon_source_name(reader->source);
    unsigned char lead[LEAD];
    GNOMON_TRY(gnomon_source_exact(reader->source, lead, sizeof lead, "the IDX magic"));
    gnomon_dtype dtype = dtype_of(lead[2]);
    GNOMON_FAIL_IF(
        lead[0] != 0 || lead[1] != 0 || dtype == (gnomon_dtype)0 || lead[3] == 0, ctx,
        GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": begins with %02x %02x %02x %02x; an IDX file begins with 00 00, a type (08, "
                  "09, 0b, 0c, 0d or 0e) and the number of dimensions",
        name, lead[0], lead[1], lead[2], lead[3]);
    int64_t rows = 0, cols = 1, shape[UINT8_MAX];
    for (int i = 0; i < lead[3]; i++) {
        unsigned char size[4];
        GNOMON_TRY(gnomon_source_exact(reader->source, size, sizeof size, "the IDX sizes"));
        shape[i] = big_endian(size);
        if (i == 0) rows = shape[0];
        GNOMON_FAIL_IF(i > 0 && !gnomon_mul(cols, shape[i], &cols), ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": the IDX sizes are more than any file holds", name);
    }
    GNOMON_TRY(gnomon_reader_shape(reader, lead[3], shape, false));
    const gnomon_array header = {.source = reader->source,
                                 .offset = LEAD + 4 * lead[3],
                                 .rows = rows,
                                 .cols = cols,
                                 .dtype = dtype,
                                 .swapped = gnomon_dtype_size(dtype) > 1 && !gnomon_big_endian(),
                                 .whole = true};
    return gnomon_array_open(reader, &header);
}

static bool idx_revisits(const gnomon_writer *writer)
{
    return writer->rows < 0;
}

static gnomon_status make_header(const gnomon_writer *writer, int64_t rows, unsigned char h[HEADER])
{
    GNOMON_FAIL_IF(rows > UINT32_MAX || writer->cols > UINT32_MAX, writer->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": idx can't hold %lld x %lld; both are 32-bit numbers",
                   writer->path, (long long)rows, (long long)writer->cols);
    h[0] = h[1] = 0;
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == writer->dtype) h[2] = types[i].code;
    h[3] = 2;
    for (int i = 0; i < 4; i++) {
        h[LEAD + i] = (unsigned char)(rows >> (24 - 8 * i));
        h[LEAD + 4 + i] = (unsigned char)(writer->cols >> (24 - 8 * i));
    }
    return GNOMON_OK;
}

static gnomon_status idx_create(gnomon_writer *writer)
{
    unsigned char h[HEADER];
    GNOMON_TRY(make_header(writer, writer->rows < 0 ? 0 : writer->rows, h));
    GNOMON_TRY(gnomon_sink_write(writer->sink, h, sizeof h));
    return gnomon_array_create(writer, gnomon_dtype_size(writer->dtype) > 1 && !gnomon_big_endian(),
                               false);
}

static gnomon_status idx_complete(gnomon_writer *writer)
{
    if (writer->rows >= 0) return GNOMON_OK;
    unsigned char h[HEADER];
    GNOMON_TRY(make_header(writer, writer->written, h));
    return gnomon_sink_write_at(writer->sink, 0, h, sizeof h);
}

const gnomon_format gnomon_format_idx = {
    .name = "idx",
    .about = "the format of MNIST",
    .endings = ".idx -ubyte",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TENSOR,
    .writes = GNOMON_DTYPE_BIT(GNOMON_U8) | GNOMON_DTYPE_BIT(GNOMON_I8) |
              GNOMON_DTYPE_BIT(GNOMON_I16) | GNOMON_DTYPE_BIT(GNOMON_I32) |
              GNOMON_DTYPE_BIT(GNOMON_F32) | GNOMON_DTYPE_BIT(GNOMON_F64),
    .sniff = idx_sniff,
    .open = idx_open,
    .next = gnomon_array_next,
    .seek = gnomon_array_seek,
    .block = gnomon_array_block,
    .close = gnomon_array_close,
    .revisits = idx_revisits,
    .create = idx_create,
    .put = gnomon_array_put,
    .complete = idx_complete,
    .discard = gnomon_array_discard,
};
