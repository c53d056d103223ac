#include "io/compress/gunzip.h"

#include "base/memory.h"

#define ZLIB_CONST /* next_in is not written through */
#include <zlib.h>

typedef struct gunzip_state {
    gnomon_source *inner;
    z_stream z;
    bool ready;       /* z is initialised */
    bool ended;       /* past the last member */
    int64_t position; /* of the next byte that comes out */
} gunzip_state;

bool gnomon_gzip_header(const unsigned char *head, size_t length)
{
    /* magic, deflate, no reserved flag */
    return length >= GNOMON_GZIP_HEADER && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8 &&
           (head[3] & 0xe0) == 0;
}

int64_t gnomon_deflate_limit(int64_t deflated)
{
    int64_t limit;
    return deflated >= 0 && gnomon_mul(deflated, 1032, &limit) ? limit : INT64_MAX;
}

static void gunzip_close(gnomon_context *ctx, void *data)
{
    gunzip_state *state = data;
    if (state == NULL) return;
    if (state->ready) inflateEnd(&state->z);
    gnomon_source_close(state->inner);
    gnomon_free(ctx, state);
}

static gnomon_status restart(gunzip_state *state)
{
    GNOMON_TRY(gnomon_source_seek(state->inner, 0));
    inflateReset(&state->z);
    state->ended = false;
    state->position = 0;
    return GNOMON_OK;
}

/* After a member: another one, padding, or the end. */
static gnomon_status next_member(gnomon_source *source, gunzip_state *state)
{
    gnomon_context *ctx = gnomon_source_context(source);
    const unsigned char *head;
    size_t got;
    GNOMON_TRY(gnomon_source_peek(state->inner, GNOMON_GZIP_HEADER, &head, &got));
    if (gnomon_gzip_header(head, got)) {
        inflateReset(&state->z);
        return GNOMON_OK;
    }
    state->ended = true;
    while (got > 0) {
        for (size_t i = 0; i < got; i++)
            GNOMON_FAIL_IF(
                head[i] != 0, ctx, GNOMON_ERROR_DATA,
                GNOMON_ARG("%s") ": bytes that are no gzip stream follow its end at byte %lld",
                gnomon_source_name(source),
                (long long)(gnomon_source_tell(state->inner) + (int64_t)i));
        gnomon_source_consume(state->inner, got);
        GNOMON_TRY(gnomon_source_peek(state->inner, 1, &head, &got));
    }
    return GNOMON_OK;
}

/* Up to size bytes from the present position. */
static gnomon_status inflate_some(gnomon_source *source, gunzip_state *state, void *data,
                                  size_t size, size_t *got)
{
    gnomon_context *ctx = gnomon_source_context(source);
    const char *name = gnomon_source_name(source);
    *got = 0;
    if (size > ((size_t)1 << 30)) size = (size_t)1 << 30;
    while (*got == 0 && !state->ended) {
        const unsigned char *in;
        size_t have;
        GNOMON_TRY(gnomon_source_peek(state->inner, 1, &in, &have));
        long long at = (long long)gnomon_source_tell(state->inner);
        GNOMON_FAIL_IF(have == 0, ctx, GNOMON_ERROR_TRUNCATED,
                       GNOMON_ARG("%s") ": the gzip stream ends at byte %lld before it is complete",
                       name, at);
        state->z.next_in = in;
        state->z.avail_in = (uInt)have;
        state->z.next_out = data;
        state->z.avail_out = (uInt)size;
        int rc = inflate(&state->z, Z_NO_FLUSH);
        gnomon_source_consume(state->inner, have - state->z.avail_in);
        *got = size - state->z.avail_out;
        state->position += (int64_t)*got;
        GNOMON_FAIL_IF(rc == Z_MEM_ERROR, ctx, GNOMON_ERROR_MEMORY,
                       GNOMON_ARG("%s") ": no memory to gunzip it", name);
        GNOMON_FAIL_IF(rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR, ctx,
                       GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": broken gzip stream near byte %lld: %s", name, at,
                       state->z.msg != NULL ? state->z.msg : "bad data");
        if (rc == Z_STREAM_END) GNOMON_TRY(next_member(source, state));
    }
    return GNOMON_OK;
}

static gnomon_status gunzip_pull(gnomon_source *source, void *data_state, int64_t offset,
                                 void *data, size_t size, size_t *got)
{
    gunzip_state *state = data_state;
    if (offset < state->position) GNOMON_TRY(restart(state));
    unsigned char passed[4096];
    while (state->position < offset) {
        int64_t left = offset - state->position;
        size_t part = left < (int64_t)sizeof passed ? (size_t)left : sizeof passed;
        GNOMON_TRY(inflate_some(source, state, passed, part, got));
        if (*got == 0) return GNOMON_OK;
    }
    return inflate_some(source, state, data, size, got);
}

static const gnomon_source_backend gunzip_backend = {gunzip_pull, gunzip_close, true};

gnomon_status gnomon_gunzip_open(gnomon_source *inner, gnomon_source **out)
{
    gnomon_context *ctx = gnomon_source_context(inner);
    gunzip_state *state = NULL;
    *out = NULL;
    gnomon_status status = gnomon_alloc_zero(ctx, 1, sizeof *state, "a gunzip state", &state);
    if (status != GNOMON_OK) {
        gnomon_source_close(inner);
        return status;
    }
    state->inner = inner;
    if (inflateInit2(&state->z, 15 + 16) != Z_OK) {
        status = gnomon_fail(ctx, GNOMON_ERROR_MEMORY, GNOMON_ARG("%s") ": no memory to gunzip it",
                             gnomon_source_name(inner));
        gunzip_close(ctx, state);
        return status;
    }
    state->ready = true;
    bool random = gnomon_source_get_kind(inner) == GNOMON_SOURCE_RANDOM;
    return gnomon_source_open_backend(ctx, gnomon_source_name(inner), &gunzip_backend, state,
                                      random ? GNOMON_SOURCE_REWINDABLE : GNOMON_SOURCE_STREAM, -1,
                                      gnomon_deflate_limit(gnomon_source_size(inner)), out);
}
