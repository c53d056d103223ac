/* zstd streams, by libzstd. */
#include "io/compress/unpack.h"
#include "io/format.h"

/* A block of 4 bytes is the least that makes anything, and 128 KiB the most that one makes. */
enum { HEAD = 4, RATIO = (128 << 10) / 4 };

/* A frame, or one to skip, which tools write around them. */
static bool recognise(const unsigned char *head, size_t length)
{
    if (length < HEAD) return false;
    const bool frame = head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd;
    const bool skip =
        (head[0] & 0xf0) == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18;
    return frame || skip;
}

#if GNOMON_WITH_ZSTD

#include <zstd.h>
#include <zstd_errors.h>

/* A frame says how much of what it unfolds to must be held, a power of two. Any decoder is to take
 * what --ultra and --long make; more where memory allows for it. */
static void *open_stream(int64_t most_bytes)
{
    enum { LEAST = 27, MOST = 31 };
    int window = LEAST;
    ZSTD_DCtx *z = ZSTD_createDCtx();
    if (z == NULL) return NULL;
    while (window < MOST && (int64_t)1 << (window + 1) <= most_bytes)
        window++;
    if (!ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, window))) return z;
    ZSTD_freeDCtx(z);
    return NULL;
}

static void restart(void *state)
{
    (void)ZSTD_DCtx_reset(state, ZSTD_reset_session_only); /* of a session alone it can't fail */
}

static gnomon_unpacked step(void *state, gnomon_unpack_step *s)
{
    ZSTD_inBuffer in = {s->in, s->have, 0};
    ZSTD_outBuffer out = {s->out, s->room, 0};
    const size_t rc = ZSTD_decompressStream(state, &out, &in);
    s->taken = in.pos;
    s->made = out.pos;
    if (rc == 0) return GNOMON_UNPACK_MEMBER;
    if (!ZSTD_isError(rc)) return GNOMON_UNPACK_MORE;
    s->why = ZSTD_getErrorName(rc);
    return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? GNOMON_UNPACK_NO_MEMORY
                                                                 : GNOMON_UNPACK_BROKEN;
}

static void close_stream(void *state)
{
    ZSTD_freeDCtx(state);
}

const gnomon_codec gnomon_codec_zstd = {
    "zstd", ".zst", HEAD, false, recognise, open_stream, restart, step, close_stream, RATIO,
};

#else

const gnomon_codec gnomon_codec_zstd = {
    .name = "zstd", .ending = ".zst", .head = HEAD, .recognise = recognise, .ratio = RATIO};

#endif
