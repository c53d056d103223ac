#include "io/format.h"

#if GNOMON_WITH_HDF5

#include "base/error.h"
#include "io/formats/hdf5/heap.h"

#include <string.h>

enum { NO_MORE = 1 }; /* in place of the next free block */

/* What the superblock tells: where addresses count from, and bytes of an address and of a length.
 */
typedef struct sizes {
    int64_t base;
    size_t address, length;
} sizes;

static uint64_t number(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = size; i > 0; i--)
        value = i > sizeof value ? value : value << 8 | bytes[i - 1];
    return value;
}

static bool read_at(const gnomon_hdf5_io *io, int64_t at, unsigned char *bytes, size_t size)
{
    return at >= 0 && at <= gnomon_source_size(io->source) - (int64_t)size &&
           gnomon_source_read_at(io->source, at, bytes, size, "HDF5's data") == GNOMON_OK;
}

/* The superblock is at 0, 512, 1024, 2048, ...: what precedes it is the user's. */
static bool read_sizes(const gnomon_hdf5_io *io, sizes *s)
{
    unsigned char b[16];
    for (int64_t at = 0; read_at(io, at, b, sizeof b); at = at == 0 ? 512 : 2 * at) {
        if (memcmp(b, "\211HDF\r\n\032\n", 8) != 0) continue;
        const bool early = b[8] < 2; /* of its versions 0 and 1 */
        *s = (sizes){at, b[early ? 13 : 9], b[early ? 14 : 10]};
        return s->address >= 1 && s->address <= 8 && s->length >= 1 && s->length <= 8;
    }
    return false;
}

bool gnomon_hdf5_is_heap(const unsigned char *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "HEAP", 4) == 0;
}

gnomon_status gnomon_hdf5_check_heap(const gnomon_hdf5_io *io, const unsigned char *bytes,
                                     size_t size, int64_t at)
{
    sizes s;
    unsigned char b[8];
    if (!read_sizes(io, &s) || size < 8 + 2 * s.length + s.address) return GNOMON_OK;
    const uint64_t room = number(bytes + 8, s.length);
    const uint64_t data = number(bytes + 8 + 2 * s.length, s.address);
    uint64_t block = number(bytes + 8 + s.length, s.length), mark = NO_MORE;
    const uint64_t there = (uint64_t)(gnomon_source_size(io->source) - s.base);
    GNOMON_FAIL_IF(room > 0 && (room > there || data > there - room), io->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the HDF5 heap at byte %lld is damaged: its data are said to "
                                    "be %llu bytes at %llu, of %llu",
                   gnomon_source_name(io->source), (long long)at, (unsigned long long)room,
                   (unsigned long long)data, (unsigned long long)there);
    /* Brent 1980: the mark moves on after 1, 2, 4, ... steps, and a circle comes back to it. */
    for (uint64_t steps = 1, limit = 1; block != NO_MORE && block < room; steps++) {
        GNOMON_FAIL_IF(block == mark, io->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": the HDF5 heap at byte %lld is damaged: its free blocks "
                                        "go in a circle",
                       gnomon_source_name(io->source), (long long)at);
        if (steps == limit) {
            mark = block;
            limit *= 2;
            steps = 0;
        }
        if (!read_at(io, s.base + (int64_t)(data + block), b, s.length)) break;
        block = number(b, s.length);
    }
    return GNOMON_OK;
}

#endif
