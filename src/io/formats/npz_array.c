#include "base/memory.h"
#include "io/arrays/convert.h"
#include "io/formats/npy.h"
#include "io/formats/npz_sparse.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 4096 }; /* elements of a buffer */

static bool is_integer(gnomon_dtype dtype)
{
    return gnomon_dtype_size(dtype) != 0 && dtype != GNOMON_F32 && dtype != GNOMON_F64 &&
           dtype != GNOMON_F16 && dtype != GNOMON_BF16;
}

gnomon_status gnomon_npz_array_open(gnomon_zip *zip, const char *archive, const char *name,
                                    bool integers, gnomon_npz_array *array)
{
    char member[32];
    snprintf(member, sizeof member, "%s.npy", name);
    array->name = name;
    int64_t index = gnomon_zip_find(zip, member);
    GNOMON_TRY(gnomon_zip_member(zip, index, &array->source));
    gnomon_context *ctx = gnomon_source_context(array->source);
    gnomon_npy_header header;
    GNOMON_TRY(gnomon_npy_read_header(array->source, &header));
    GNOMON_FAIL_IF(
        header.dimensions != 1 || header.text_bytes != 0, ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG(
            "%s") ": the array %s has %d dimensions or holds text; a sparse matrix has numbers "
                  "in one dimension there",
        archive, name, header.dimensions);
    GNOMON_FAIL_IF(integers && !is_integer(header.dtype), ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the array %s is of type %s, allowed are integers", archive,
                   name, gnomon_dtype_name(header.dtype));
    array->count = header.elements;
    array->dtype = header.dtype;
    array->swapped = header.swapped;
    array->offset = header.offset;
    return gnomon_alloc(ctx, PIECE, sizeof(uint64_t), "a piece of an array", &array->buffer);
}

void gnomon_npz_array_close(gnomon_context *ctx, gnomon_npz_array *array)
{
    gnomon_source_close(array->source);
    gnomon_free(ctx, array->buffer);
    *array = (gnomon_npz_array){0};
}

gnomon_status gnomon_npz_array_seek(gnomon_npz_array *array, int64_t element)
{
    if (element == array->next) return GNOMON_OK;
    array->next = element;
    return gnomon_source_seek(array->source,
                              array->offset + element * (int64_t)gnomon_dtype_size(array->dtype));
}

static gnomon_status read_piece(gnomon_npz_array *array, int64_t count)
{
    GNOMON_TRY(gnomon_source_exact(array->source, array->buffer,
                                   (size_t)count * gnomon_dtype_size(array->dtype), array->name));
    array->next += count;
    return GNOMON_OK;
}

/* Element i of the buffer; what is beyond an int64 comes out negative. */
static int64_t integer_at(const gnomon_npz_array *array, int64_t i)
{
    const void *data = array->buffer;
    switch (array->dtype) {
    case GNOMON_I8:
        return ((const int8_t *)data)[i];
    case GNOMON_U8:
        return ((const uint8_t *)data)[i];
    case GNOMON_I16:
        return ((const int16_t *)data)[i];
    case GNOMON_U16:
        return ((const uint16_t *)data)[i];
    case GNOMON_I32:
        return ((const int32_t *)data)[i];
    case GNOMON_U32:
        return ((const uint32_t *)data)[i];
    case GNOMON_I64:
        return ((const int64_t *)data)[i];
    case GNOMON_U64:
        return (int64_t)((const uint64_t *)data)[i];
    default:
        return -1;
    }
}

gnomon_status gnomon_npz_array_integers(gnomon_npz_array *array, int64_t count, int64_t *out)
{
    while (count > 0) {
        int64_t piece = count < PIECE ? count : PIECE;
        GNOMON_TRY(read_piece(array, piece));
        if (array->swapped)
            gnomon_swap_bytes(array->buffer, piece, gnomon_dtype_size(array->dtype));
        for (int64_t i = 0; i < piece; i++)
            out[i] = integer_at(array, i);
        out += piece;
        count -= piece;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_npz_array_values(gnomon_npz_array *array, int64_t count, gnomon_dtype dtype,
                                      void *out)
{
    gnomon_context *ctx = gnomon_source_context(array->source);
    unsigned char *to = out;
    while (count > 0) {
        int64_t piece = count < PIECE ? count : PIECE;
        int64_t first = array->next;
        GNOMON_TRY(read_piece(array, piece));
        if (array->swapped)
            gnomon_swap_bytes(array->buffer, piece, gnomon_dtype_size(array->dtype));
        gnomon_matrix src = gnomon_matrix_rowmajor(array->buffer, array->dtype, 1, piece);
        gnomon_matrix dst = gnomon_matrix_rowmajor(to, dtype, 1, piece);
        GNOMON_TRY(gnomon_convert(ctx, &src, &dst, 0, first, array->name));
        to += (size_t)piece * gnomon_dtype_size(dtype);
        count -= piece;
    }
    return GNOMON_OK;
}
