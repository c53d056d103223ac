/* fbin, u8bin, i8bin, f16bin: two 32-bit counts, points and coordinates, then the points: the files
 * of the billion-scale nearest-neighbour benchmarks (Simhadri et al. 2022). */
#include "io/arrays/array.h"
#include "io/arrays/convert.h"

enum { HEADER = 8 };

static gnomon_status bin_open(gnomon_reader *reader, gnomon_dtype dtype)
{
    unsigned char h[HEADER];
    GNOMON_TRY(gnomon_source_exact(reader->source, h, sizeof h, "the header"));
    uint32_t rows =
        (uint32_t)h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 24;
    uint32_t cols =
        (uint32_t)h[4] | (uint32_t)h[5] << 8 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 24;
    GNOMON_FAIL_IF(cols == 0, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the header says that points have no coordinates",
                   gnomon_source_name(reader->source));
    const gnomon_array header = {.source = reader->source,
                                 .offset = HEADER,
                                 .rows = rows,
                                 .cols = cols,
                                 .dtype = dtype,
                                 .swapped = gnomon_big_endian(),
                                 .whole = true};
    return gnomon_array_open(reader, &header);
}

static gnomon_status fbin_open(gnomon_reader *reader)
{
    return bin_open(reader, GNOMON_F32);
}

static gnomon_status u8bin_open(gnomon_reader *reader)
{
    return bin_open(reader, GNOMON_U8);
}

static gnomon_status i8bin_open(gnomon_reader *reader)
{
    return bin_open(reader, GNOMON_I8);
}

static gnomon_status f16bin_open(gnomon_reader *reader)
{
    return bin_open(reader, GNOMON_F16);
}

static bool bin_revisits(const gnomon_writer *writer)
{
    return writer->rows < 0;
}

static gnomon_status make_header(const gnomon_writer *writer, int64_t rows, unsigned char h[HEADER])
{
    GNOMON_FAIL_IF(rows > UINT32_MAX || writer->cols < 1 || writer->cols > UINT32_MAX, writer->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": %s can't hold %lld x %lld; both are 32-bit numbers",
                   writer->path, writer->format->name, (long long)rows, (long long)writer->cols);
    for (int i = 0; i < 4; i++) {
        h[i] = (unsigned char)(rows >> (8 * i));
        h[i + 4] = (unsigned char)(writer->cols >> (8 * i));
    }
    return GNOMON_OK;
}

static gnomon_status bin_create(gnomon_writer *writer)
{
    unsigned char h[HEADER];
    GNOMON_TRY(make_header(writer, writer->rows < 0 ? 0 : writer->rows, h));
    GNOMON_TRY(gnomon_sink_write(writer->sink, h, sizeof h));
    return gnomon_array_create(writer, gnomon_big_endian(), false);
}

static gnomon_status bin_complete(gnomon_writer *writer)
{
    if (writer->rows >= 0) return GNOMON_OK;
    unsigned char h[HEADER];
    GNOMON_TRY(make_header(writer, writer->written, h));
    return gnomon_sink_write_at(writer->sink, 0, h, sizeof h);
}

#define BIN(id, what, type)                                                                 \
    {                                                                                       \
        .name = #id, .about = what, .endings = "." #id, .headless = true,                   \
        .holds = GNOMON_HOLDS_DENSE, .writes = GNOMON_DTYPE_BIT(type), .open = id##_open,   \
        .next = gnomon_array_next, .seek = gnomon_array_seek, .block = gnomon_array_block,  \
        .close = gnomon_array_close, .revisits = bin_revisits, .create = bin_create,        \
        .put = gnomon_array_put, .complete = bin_complete, .discard = gnomon_array_discard, \
    }

const gnomon_format gnomon_format_fbin = BIN(fbin, "two counts, then points, of f32", GNOMON_F32);
const gnomon_format gnomon_format_u8bin = BIN(u8bin, "two counts, then points, of u8", GNOMON_U8);
const gnomon_format gnomon_format_i8bin = BIN(i8bin, "two counts, then points, of i8", GNOMON_I8);
const gnomon_format gnomon_format_f16bin =
    BIN(f16bin, "two counts, then points, of f16", GNOMON_F16);
