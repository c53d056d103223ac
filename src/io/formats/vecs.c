/* fvecs, bvecs, ivecs: each point after its dimension (Jegou, Douze & Schmid 2011). */
#include "io/arrays/array.h"
#include "io/arrays/convert.h"

static gnomon_status vecs_open(gnomon_reader *reader, gnomon_dtype dtype)
{
    gnomon_context *ctx = reader->ctx;
    const char *name = gnomon_source_name(reader->source);
    const unsigned char *head;
    size_t got;
    GNOMON_TRY(gnomon_source_peek(reader->source, 4, &head, &got));
    GNOMON_FAIL_IF(got == 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": is empty, so not even the points' dimension is known", name);
    GNOMON_FAIL_IF(got < 4, ctx, GNOMON_ERROR_TRUNCATED,
                   GNOMON_ARG("%s") ": ends at byte %zu, inside the first point's dimension", name,
                   got);
    int64_t dimension = (int32_t)((uint32_t)head[0] | (uint32_t)head[1] << 8 |
                                  (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24);
    GNOMON_FAIL_IF(
        dimension < 1, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": the first point says it has %lld coordinates; at least 1 is due", name,
        (long long)dimension);
    const gnomon_array header = {.source = reader->source,
                                 .rows = -1,
                                 .cols = dimension,
                                 .dtype = dtype,
                                 .swapped = gnomon_big_endian(),
                                 .prefixed = true,
                                 .whole = true};
    return gnomon_array_open(reader, &header);
}

static gnomon_status fvecs_open(gnomon_reader *reader)
{
    return vecs_open(reader, GNOMON_F32);
}

static gnomon_status bvecs_open(gnomon_reader *reader)
{
    return vecs_open(reader, GNOMON_U8);
}

static gnomon_status ivecs_open(gnomon_reader *reader)
{
    return vecs_open(reader, GNOMON_I32);
}

static gnomon_status vecs_create(gnomon_writer *writer)
{
    GNOMON_FAIL_IF(
        writer->cols < 1 || writer->cols > INT32_MAX, writer->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") ": %s can't hold points of %lld coordinates; allowed are 1 to %ld",
        writer->path, writer->format->name, (long long)writer->cols, (long)INT32_MAX);
    return gnomon_array_create(writer, gnomon_big_endian(), true);
}

#define VECS(id, what, type)                                                               \
    {                                                                                      \
        .name = #id, .about = what, .endings = "." #id, .headless = true,                  \
        .holds = GNOMON_HOLDS_DENSE, .writes = GNOMON_DTYPE_BIT(type), .open = id##_open,  \
        .next = gnomon_array_next, .seek = gnomon_array_seek, .block = gnomon_array_block, \
        .close = gnomon_array_close, .create = vecs_create, .put = gnomon_array_put,       \
        .discard = gnomon_array_discard,                                                   \
    }

const gnomon_format gnomon_format_fvecs =
    VECS(fvecs, "a length before each point, of f32", GNOMON_F32);
const gnomon_format gnomon_format_bvecs =
    VECS(bvecs, "a length before each point, of u8", GNOMON_U8);
const gnomon_format gnomon_format_ivecs =
    VECS(ivecs, "a length before each point, of i32", GNOMON_I32);
