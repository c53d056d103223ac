#include "io/formats/hdf5/hdf5.h"

#include <string.h>

static int hdf5_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    /* at 0, or after a user block of 512, 1024, ... bytes */
    for (size_t at = 0; at + 8 <= length; at = at == 0 ? 512 : 2 * at)
        if (memcmp(head + at, signature, 8) == 0) return GNOMON_SNIFF_YES;
    return GNOMON_SNIFF_NO;
}

static const char *const hdf5_extensions[] = {".hdf5", ".h5", ".hdf", NULL};

#if GNOMON_WITH_HDF5

static bool hdf5_revisits(const gnomon_writer *writer)
{
    (void)writer;
    return true;
}

const gnomon_format gnomon_format_hdf5 = {
    .name = "hdf5",
    .extensions = hdf5_extensions,
    .flags = GNOMON_FORMAT_MEMBERS | GNOMON_FORMAT_DENSE,
    .writes =
        GNOMON_DTYPE_BIT(GNOMON_F16) | GNOMON_DTYPE_BIT(GNOMON_F32) | GNOMON_DTYPE_BIT(GNOMON_F64) |
        GNOMON_DTYPE_BIT(GNOMON_I8) | GNOMON_DTYPE_BIT(GNOMON_U8) | GNOMON_DTYPE_BIT(GNOMON_I16) |
        GNOMON_DTYPE_BIT(GNOMON_U16) | GNOMON_DTYPE_BIT(GNOMON_I32) | GNOMON_DTYPE_BIT(GNOMON_U32) |
        GNOMON_DTYPE_BIT(GNOMON_I64) | GNOMON_DTYPE_BIT(GNOMON_U64),
    .sniff = hdf5_sniff,
    .open = gnomon_hdf5_open,
    .next = gnomon_hdf5_next,
    .seek = gnomon_hdf5_seek,
    .block = gnomon_hdf5_block,
    .close = gnomon_hdf5_close,
    .members = gnomon_hdf5_members,
    .revisits = hdf5_revisits,
    .create = gnomon_hdf5_create,
    .put = gnomon_hdf5_put,
    .complete = gnomon_hdf5_complete,
    .discard = gnomon_hdf5_discard,
};

#else

static gnomon_status absent_open(gnomon_reader *reader)
{
    return gnomon_fail(reader->ctx, GNOMON_ERROR_UNSUPPORTED,
                       "%s: is HDF5, which this build does not read (it was made without the "
                       "library)",
                       gnomon_source_name(reader->source));
}

/* still recognised, so that the reason can be told */
const gnomon_format gnomon_format_hdf5 = {
    .name = "hdf5",
    .extensions = hdf5_extensions,
    .flags = GNOMON_FORMAT_MEMBERS,
    .sniff = hdf5_sniff,
    .open = absent_open,
};

#endif
