/* gzip streams, by zlib. */
#include "base/memory.h"
#include "io/compress/unpack.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST /* next_in is not written through */
#include <zlib.h>

/* Magic, deflate, no reserved flag. */
static bool recognise(const unsigned char *head, size_t length)
{
    return length >= GNOMON_CODEC_HEAD && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 &&
           (head[3] & 0xe0) == 0;
}

static void *open_stream(int64_t most_bytes)
{
    (void)most_bytes; /* always 40 KiB or so */
    z_stream *z = calloc(1, sizeof *z);
    if (z != NULL && inflateInit2(z, 15 + 16) == Z_OK) return z;
    free(z);
    return NULL;
}

static void restart(void *state)
{
    inflateReset(state);
}

static gnomon_unpacked step(void *state, gnomon_unpack_step *s)
{
    z_stream *z = state;
    z->next_in = s->in;
    z->avail_in = s->have < UINT_MAX ? (uInt)s->have : UINT_MAX;
    z->next_out = s->out;
    z->avail_out = (uInt)s->room;
    const int rc = inflate(z, Z_NO_FLUSH);
    s->taken = (size_t)(z->next_in - s->in);
    s->made = s->room - z->avail_out;
    s->why = z->msg != NULL ? z->msg : "bad data";
    return rc == Z_STREAM_END                ? GNOMON_UNPACK_MEMBER
           : rc == Z_OK || rc == Z_BUF_ERROR ? GNOMON_UNPACK_MORE
           : rc == Z_MEM_ERROR               ? GNOMON_UNPACK_NO_MEMORY
                                             : GNOMON_UNPACK_BROKEN;
}

static void close_stream(void *state)
{
    inflateEnd(state);
    free(state);
}

int64_t gnomon_deflate_limit(int64_t deflated)
{
    int64_t limit;
    return deflated >= 0 && gnomon_mul(deflated, gnomon_codec_gzip.ratio, &limit) ? limit
                                                                                  : INT64_MAX;
}

const gnomon_codec gnomon_codec_gzip = {
    "gzip",  ".gz", GNOMON_CODEC_HEAD, true, recognise, open_stream,
    restart, step,  close_stream,      1032,
};
