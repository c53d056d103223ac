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

#if GNOMON_WITH_HDF5

static bool hdf5_revisits(const gnomon_writer *writer)
{
    (void)writer;
    return true;
}

#else

static const char absent[] = "this build is without HDF5";

/* still recognised, so that the reason can be told */
static gnomon_status absent_open(gnomon_reader *reader)
{
    return gnomon_fail(reader->ctx, GNOMON_ERROR_UNSUPPORTED, GNOMON_ARG("%s") ": is HDF5, and %s",
                       gnomon_source_name(reader->source), absent);
}

static gnomon_status absent_create(gnomon_writer *writer)
{
    return gnomon_fail(writer->ctx, GNOMON_ERROR_UNSUPPORTED, GNOMON_ARG("%s") ": %s", writer->path,
                       absent);
}

static const char *absent_missing(void)
{
    return absent;
}

#endif

const gnomon_format gnomon_format_hdf5 = {
    .name = "hdf5",
    .about = "HDF5 datasets, as of ann-benchmarks",
    .endings = ".h5 .hdf5 .hdf",
    .member = "/DATASET",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TENSOR,
    .takes = GNOMON_TAKES_COMPRESS,
    .writes =
        GNOMON_DTYPE_BIT(GNOMON_F16) | GNOMON_DTYPE_BIT(GNOMON_F32) | GNOMON_DTYPE_BIT(GNOMON_F64) |
        GNOMON_DTYPE_BIT(GNOMON_I8) | GNOMON_DTYPE_BIT(GNOMON_U8) | GNOMON_DTYPE_BIT(GNOMON_I16) |
        GNOMON_DTYPE_BIT(GNOMON_U16) | GNOMON_DTYPE_BIT(GNOMON_I32) | GNOMON_DTYPE_BIT(GNOMON_U32) |
        GNOMON_DTYPE_BIT(GNOMON_I64) | GNOMON_DTYPE_BIT(GNOMON_U64),
    .sniff = hdf5_sniff,
#if GNOMON_WITH_HDF5
    .missing = gnomon_hdf5_missing,
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
#else
    .missing = absent_missing,
    .open = absent_open,
    .create = absent_create,
#endif
};
