/* A zip archive written in one pass, which libzip can't do: it pulls whole members when the
 * archive is closed, while ours come piece by piece and may be larger than memory. */
#include "base/memory.h"
#include "io/compress/zip.h"

#include <string.h>
#define ZLIB_CONST /* next_in is not written through */
#include <zlib.h>

enum { CHUNK = 64 * 1024, LOCAL = 30, ZIP64 = 20, CENTRAL = 46 };
#define MARK32 0xffffffffu /* look in the zip64 field */

struct gnomon_zip_writer {
    gnomon_context *ctx;
    gnomon_sink *sink;
    bool compress;
    z_stream z;
    bool ready; /* z is initialised */
    /* the member that is being written */
    int64_t local;    /* where its header is */
    int64_t contents; /* where its first byte is */
    size_t name_size, head_size;
    uint32_t head_crc, body_crc;
    uint64_t body_size;
    /* the directory so far */
    unsigned char *directory;
    int64_t directory_size, directory_capacity, members;
    unsigned char chunk[CHUNK];
};

static void put(unsigned char **p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*p)++ = (unsigned char)(value >> (8 * i));
}

gnomon_status gnomon_zip_writer_open(gnomon_context *ctx, gnomon_sink *sink, bool compress,
                                     gnomon_zip_writer **out)
{
    gnomon_zip_writer *zip = NULL;
    *out = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *zip, "an archive", &zip));
    zip->ctx = ctx;
    zip->sink = sink;
    zip->compress = compress;
    if (compress && deflateInit2(&zip->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8,
                                 Z_DEFAULT_STRATEGY) != Z_OK) {
        gnomon_free(ctx, zip);
        return gnomon_fail(ctx, GNOMON_ERROR_MEMORY, GNOMON_ARG("%s") ": no memory to compress it",
                           gnomon_sink_name(sink));
    }
    zip->ready = compress;
    *out = zip;
    return GNOMON_OK;
}

void gnomon_zip_writer_close(gnomon_zip_writer *zip)
{
    if (zip == NULL) return;
    if (zip->ready) deflateEnd(&zip->z);
    gnomon_free(zip->ctx, zip->directory);
    gnomon_free(zip->ctx, zip);
}

static gnomon_status directory_put(gnomon_zip_writer *zip, const void *data, size_t size)
{
    int64_t due = zip->directory_size + (int64_t)size;
    if (due > zip->directory_capacity) {
        int64_t capacity = due * 2;
        GNOMON_TRY(gnomon_grow(zip->ctx, &zip->directory, zip->directory_size, capacity, 1,
                               "an archive's directory"));
        zip->directory_capacity = capacity;
    }
    memcpy(zip->directory + zip->directory_size, data, size);
    zip->directory_size = due;
    return GNOMON_OK;
}

/* Names beyond ASCII are marked as UTF-8. */
static unsigned name_flags(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] >= 0x80) return 0x800;
    return 0;
}

gnomon_status gnomon_zip_writer_begin(gnomon_zip_writer *zip, const char *name, const void *head,
                                      size_t head_size)
{
    size_t name_size = strlen(name);
    GNOMON_FAIL_IF(name_size == 0 || name_size > 60000, zip->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s") ": a member's name has %zu bytes; allowed are 1 to 60000",
                   gnomon_sink_name(zip->sink), name_size);
    unsigned char fixed[LOCAL + ZIP64], *p = fixed;
    zip->local = gnomon_sink_tell(zip->sink);
    zip->name_size = name_size;
    zip->head_size = head_size;
    zip->head_crc = (uint32_t)crc32(0, head, (uInt)head_size);
    zip->body_crc = (uint32_t)crc32(0, NULL, 0);
    zip->body_size = 0;
    put(&p, 0x04034b50, 4);
    put(&p, 45, 2);
    put(&p, name_flags(name, name_size), 2);
    put(&p, zip->compress ? 8 : 0, 2);
    put(&p, 0, 2);    /* midnight, */
    put(&p, 0x21, 2); /* 1 January 1980: the same data is the same file */
    put(&p, 0, 4);    /* the sum and the sizes come in _end */
    put(&p, MARK32, 4);
    put(&p, MARK32, 4);
    put(&p, name_size, 2);
    put(&p, ZIP64, 2);
    GNOMON_TRY(gnomon_sink_write(zip->sink, fixed, LOCAL));
    GNOMON_TRY(gnomon_sink_write(zip->sink, name, name_size));
    p = fixed;
    put(&p, 1, 2);
    put(&p, 16, 2);
    put(&p, 0, 8);
    put(&p, 0, 8);
    GNOMON_TRY(gnomon_sink_write(zip->sink, fixed, ZIP64));
    zip->contents = gnomon_sink_tell(zip->sink);
    if (zip->compress) {
        deflateReset(&zip->z);
        /* The head goes into a block of its own that is stored, so that it can be changed. */
        unsigned char block[5], *b = block;
        put(&b, 0, 1);
        put(&b, head_size, 2);
        put(&b, ~(uint64_t)head_size, 2);
        if (head_size > 0) GNOMON_TRY(gnomon_sink_write(zip->sink, block, sizeof block));
    }
    GNOMON_TRY(gnomon_sink_write(zip->sink, head, head_size));
    /* kept in the directory until _end completes its entry */
    unsigned char entry[CENTRAL] = {0};
    GNOMON_TRY(directory_put(zip, entry, sizeof entry));
    return directory_put(zip, name, name_size);
}

static gnomon_status deflate_some(gnomon_zip_writer *zip, const unsigned char *data, size_t size,
                                  int flush)
{
    zip->z.next_in = data;
    zip->z.avail_in = (uInt)size;
    int rc;
    do {
        zip->z.next_out = zip->chunk;
        zip->z.avail_out = CHUNK;
        rc = deflate(&zip->z, flush);
        GNOMON_TRY(gnomon_sink_write(zip->sink, zip->chunk, CHUNK - zip->z.avail_out));
    } while (flush == Z_FINISH ? rc == Z_OK : zip->z.avail_out == 0);
    return GNOMON_OK;
}

gnomon_status gnomon_zip_writer_write(gnomon_zip_writer *zip, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        size_t n = size < ((size_t)1 << 30) ? size : (size_t)1 << 30;
        zip->body_crc = (uint32_t)crc32(zip->body_crc, bytes, (uInt)n);
        zip->body_size += n;
        if (zip->compress)
            GNOMON_TRY(deflate_some(zip, bytes, n, Z_NO_FLUSH));
        else
            GNOMON_TRY(gnomon_sink_write(zip->sink, bytes, n));
        bytes += n;
        size -= n;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_zip_writer_end(gnomon_zip_writer *zip, const void *head)
{
    if (zip->compress) GNOMON_TRY(deflate_some(zip, NULL, 0, Z_FINISH));
    int64_t end = gnomon_sink_tell(zip->sink);
    uint64_t stored = (uint64_t)(end - zip->contents), size = zip->body_size + zip->head_size;
    if (head != NULL && zip->head_size > 0) {
        int64_t place = zip->contents + (zip->compress ? 5 : 0);
        zip->head_crc = (uint32_t)crc32(0, head, (uInt)zip->head_size);
        GNOMON_TRY(gnomon_sink_write_at(zip->sink, place, head, zip->head_size));
    }
    uint32_t crc = (uint32_t)crc32_combine(zip->head_crc, zip->body_crc, (z_off_t)zip->body_size);
    unsigned char sum[4], sizes[16], *p = sum;
    put(&p, crc, 4);
    GNOMON_TRY(gnomon_sink_write_at(zip->sink, zip->local + 14, sum, sizeof sum));
    p = sizes;
    put(&p, size, 8);
    put(&p, stored, 8);
    GNOMON_TRY(gnomon_sink_write_at(zip->sink, zip->local + LOCAL + (int64_t)zip->name_size + 4,
                                    sizes, sizeof sizes));

    bool large = size >= MARK32 || stored >= MARK32 || (uint64_t)zip->local >= MARK32;
    unsigned char extra[28], *e = extra;
    put(&e, 1, 2);
    put(&e, 24, 2);
    put(&e, size, 8);
    put(&e, stored, 8);
    put(&e, (uint64_t)zip->local, 8);
    int64_t at = zip->directory_size - (int64_t)zip->name_size;
    unsigned flags = name_flags((char *)zip->directory + at, zip->name_size);
    p = zip->directory + at - CENTRAL;
    put(&p, 0x02014b50, 4);
    put(&p, 3 << 8 | 45, 2);
    put(&p, 45, 2);
    put(&p, flags, 2);
    put(&p, zip->compress ? 8 : 0, 2);
    put(&p, 0, 2);
    put(&p, 0x21, 2);
    put(&p, crc, 4);
    put(&p, large ? MARK32 : stored, 4);
    put(&p, large ? MARK32 : size, 4);
    put(&p, zip->name_size, 2);
    put(&p, large ? sizeof extra : 0, 2);
    put(&p, 0, 6); /* no comment, disk 0, no attributes inside */
    put(&p, 0100644u << 16, 4);
    put(&p, large ? MARK32 : (uint64_t)zip->local, 4);
    zip->members++;
    return large ? directory_put(zip, extra, sizeof extra) : GNOMON_OK;
}

gnomon_status gnomon_zip_writer_complete(gnomon_zip_writer *zip)
{
    uint64_t place = (uint64_t)gnomon_sink_tell(zip->sink), size = (uint64_t)zip->directory_size;
    uint64_t members = (uint64_t)zip->members;
    GNOMON_TRY(gnomon_sink_write(zip->sink, zip->directory, (size_t)size));
    unsigned char end[56 + 20 + 22], *p = end;
    if (place >= MARK32 || size >= MARK32 || members >= 0xffff) {
        put(&p, 0x06064b50, 4);
        put(&p, 44, 8);
        put(&p, 3 << 8 | 45, 2);
        put(&p, 45, 2);
        put(&p, 0, 8);
        put(&p, members, 8);
        put(&p, members, 8);
        put(&p, size, 8);
        put(&p, place, 8);
        put(&p, 0x07064b50, 4);
        put(&p, 0, 4);
        put(&p, place + size, 8);
        put(&p, 1, 4);
    }
    put(&p, 0x06054b50, 4);
    put(&p, 0, 4);
    put(&p, members < 0xffff ? members : 0xffff, 2);
    put(&p, members < 0xffff ? members : 0xffff, 2);
    put(&p, size < MARK32 ? size : MARK32, 4);
    put(&p, place < MARK32 ? place : MARK32, 4);
    put(&p, 0, 2);
    return gnomon_sink_write(zip->sink, end, (size_t)(p - end));
}
