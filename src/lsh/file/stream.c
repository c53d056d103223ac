/* Sections on their way to a file, with their checksums; and temporary files. */
#include "lsh/file/file.h"

#include "base/memory.h"
#include "io/temporaries.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t gnomon_lsh_checksum(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

enum { BUFFER = 64 * 1024 };

struct gnomon_stream_out {
    XXH3_state_t hash; /* first: the block's alignment is its own */
    gnomon_context *ctx;
    gnomon_sink *sink;
    int64_t begin, at; /* of the section; of what the buffer holds */
    size_t used;
    unsigned char buffer[BUFFER];
};

gnomon_status gnomon_stream_out_open(gnomon_context *ctx, gnomon_sink *sink, int64_t offset,
                                     gnomon_stream_out **out)
{
    GNOMON_TRY(gnomon_alloc(ctx, 1, sizeof **out, "a section's buffer", out));
    gnomon_stream_out *s = *out;
    s->ctx = ctx;
    s->sink = sink;
    s->begin = s->at = offset;
    s->used = 0;
    XXH3_64bits_reset(&s->hash);
    return GNOMON_OK;
}

static gnomon_status flush(gnomon_stream_out *s)
{
    const size_t used = s->used;
    s->used = 0;
    if (used == 0) return GNOMON_OK;
    XXH3_64bits_update(&s->hash, s->buffer, used);
    GNOMON_TRY(gnomon_sink_write_at(s->sink, s->at, s->buffer, used));
    s->at += (int64_t)used;
    return GNOMON_OK;
}

gnomon_status gnomon_stream_out_put(gnomon_stream_out *s, const void *data, int64_t size)
{
    if (size <= 0) return GNOMON_OK;
    if ((size_t)size > BUFFER - s->used) GNOMON_TRY(flush(s));
    if ((size_t)size <= BUFFER) {
        memcpy(s->buffer + s->used, data, (size_t)size);
        s->used += (size_t)size;
        return GNOMON_OK;
    }
    XXH3_64bits_update(&s->hash, data, (size_t)size);
    GNOMON_TRY(gnomon_sink_write_at(s->sink, s->at, data, (size_t)size));
    s->at += size;
    return GNOMON_OK;
}

gnomon_status gnomon_stream_out_zeros(gnomon_stream_out *s, int64_t size)
{
    static const unsigned char zeros[4096];
    for (int64_t left = size; left > 0; left -= (int64_t)sizeof zeros)
        GNOMON_TRY(gnomon_stream_out_put(
            s, zeros, left < (int64_t)sizeof zeros ? left : (int64_t)sizeof zeros));
    return GNOMON_OK;
}

gnomon_status gnomon_stream_out_close(gnomon_stream_out *s, gnomon_section *section)
{
    const gnomon_status status = flush(s);
    section->offset = s->begin;
    section->length = s->at - s->begin;
    section->checksum = XXH3_64bits_digest(&s->hash);
    gnomon_stream_out_drop(s);
    return status;
}

void gnomon_stream_out_drop(gnomon_stream_out *s)
{
    if (s) gnomon_free(s->ctx, s);
}

static gnomon_status spool_error(gnomon_spool *spool, const char *doing)
{
    return gnomon_fail(spool->ctx, GNOMON_ERROR_IO, "a temporary file can't be %s: %s", doing,
                       strerror(errno));
}

gnomon_status gnomon_spool_write(gnomon_spool *spool, int64_t offset, const void *data,
                                 int64_t size)
{
    if (spool->fd < 0) GNOMON_TRY(gnomon_temporary_nameless(spool->ctx, &spool->fd));
    const char *bytes = data;
    while (size > 0) {
        const size_t step = size > 1 << 30 ? (size_t)1 << 30 : (size_t)size;
        const ssize_t n = pwrite(spool->fd, bytes, step, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return spool_error(spool, "written");
        bytes += n;
        size -= n;
        offset += n;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_spool_append(gnomon_spool *spool, const void *data, int64_t size)
{
    GNOMON_TRY(gnomon_spool_write(spool, spool->end, data, size));
    spool->end += size;
    return GNOMON_OK;
}

gnomon_status gnomon_spool_read(gnomon_spool *spool, int64_t offset, void *data, int64_t size)
{
    char *bytes = data;
    while (size > 0) {
        const size_t step = size > 1 << 30 ? (size_t)1 << 30 : (size_t)size;
        const ssize_t n = pread(spool->fd, bytes, step, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return spool_error(spool, "read");
        bytes += n;
        size -= n;
        offset += n;
    }
    return GNOMON_OK;
}

void gnomon_spool_close(gnomon_spool *spool)
{
    if (spool->fd >= 0) close(spool->fd);
    spool->fd = -1;
}
