#include "io/compress/unpack.h"

#include "base/memory.h"
#include "base/threads.h"

#include <string.h>
#include <strings.h>

static const gnomon_codec *const codecs[] = {&gnomon_codec_gzip, &gnomon_codec_zstd};
enum { CODECS = sizeof codecs / sizeof codecs[0] };

typedef struct unpack_state {
    gnomon_source *inner;
    const gnomon_codec *codec;
    void *own;        /* the codec's */
    bool within;      /* a member has begun and not ended */
    bool ended;       /* past the last member */
    int64_t position; /* of the next byte that comes out */
} unpack_state;

const gnomon_codec *gnomon_codec_of(const unsigned char *head, size_t length)
{
    for (int i = 0; i < CODECS; i++)
        if (codecs[i]->recognise(head, length)) return codecs[i];
    return NULL;
}

size_t gnomon_codec_ending(const char *path, const gnomon_codec **codec)
{
    const size_t length = strlen(path);
    *codec = NULL;
    for (int i = 0; i < CODECS; i++) {
        const size_t n = strlen(codecs[i]->ending);
        if (length <= n || strcasecmp(path + length - n, codecs[i]->ending) != 0) continue;
        *codec = codecs[i];
        return length - n;
    }
    return length;
}

static void unpack_close(gnomon_context *ctx, void *data)
{
    unpack_state *state = data;
    if (state == NULL) return;
    if (state->own != NULL) state->codec->close(state->own);
    gnomon_source_close(state->inner);
    gnomon_free(ctx, state);
}

static gnomon_status restart(unpack_state *state)
{
    GNOMON_TRY(gnomon_source_seek(state->inner, 0));
    state->codec->restart(state->own);
    state->within = true;
    state->ended = false;
    state->position = 0;
    return GNOMON_OK;
}

/* After a member: another one, padding, or the end. */
static gnomon_status next_member(gnomon_source *source, unpack_state *state)
{
    const gnomon_codec *codec = state->codec;
    const unsigned char *head;
    size_t got;
    GNOMON_TRY(gnomon_source_peek(state->inner, codec->head, &head, &got));
    if (codec->recognise(head, got)) {
        codec->restart(state->own);
        state->within = true;
        return GNOMON_OK;
    }
    state->ended = true;
    while (got > 0) {
        for (size_t i = 0; i < got; i++)
            GNOMON_FAIL_IF(
                !codec->padded || head[i] != 0, gnomon_source_context(source), GNOMON_ERROR_DATA,
                GNOMON_ARG("%s") ": bytes that are no %s stream follow its end at byte %lld",
                gnomon_source_name(source), codec->name,
                (long long)(gnomon_source_tell(state->inner) + (int64_t)i));
        gnomon_source_consume(state->inner, got);
        GNOMON_TRY(gnomon_source_peek(state->inner, 1, &head, &got));
    }
    return GNOMON_OK;
}

/* Up to size bytes from the present position. */
static gnomon_status unpack_some(gnomon_source *source, unpack_state *state, void *data,
                                 size_t size, size_t *got)
{
    gnomon_context *ctx = gnomon_source_context(source);
    const char *name = gnomon_source_name(source), *kind = state->codec->name;
    *got = 0;
    if (size > ((size_t)1 << 30)) size = (size_t)1 << 30;
    while (*got == 0 && !state->ended) {
        gnomon_unpack_step step = {.out = data, .room = size};
        if (!state->within) {
            GNOMON_TRY(next_member(source, state));
            continue;
        }
        GNOMON_TRY(gnomon_source_peek(state->inner, 1, &step.in, &step.have));
        const long long at = (long long)gnomon_source_tell(state->inner);
        const gnomon_unpacked how = state->codec->step(state->own, &step);
        gnomon_source_consume(state->inner, step.taken);
        *got = step.made;
        state->position += (int64_t)step.made;
        GNOMON_FAIL_IF(how == GNOMON_UNPACK_NO_MEMORY, ctx, GNOMON_ERROR_MEMORY,
                       GNOMON_ARG("%s") ": no memory to unpack its %s stream", name, kind);
        GNOMON_FAIL_IF(how == GNOMON_UNPACK_BROKEN, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": broken %s stream near byte %lld: %s", name, kind, at,
                       step.why);
        if (how == GNOMON_UNPACK_MEMBER) {
            state->within = false;
            continue;
        }
        /* what is left inside the codec may still come out */
        GNOMON_FAIL_IF(step.have == 0 && step.made == 0, ctx, GNOMON_ERROR_TRUNCATED,
                       GNOMON_ARG("%s") ": the %s stream ends at byte %lld before it is complete",
                       name, kind, at);
    }
    return GNOMON_OK;
}

static gnomon_status unpack_pull(gnomon_source *source, void *data_state, int64_t offset,
                                 void *data, size_t size, size_t *got)
{
    unpack_state *state = data_state;
    if (offset < state->position) GNOMON_TRY(restart(state));
    unsigned char passed[4096];
    while (state->position < offset) {
        int64_t left = offset - state->position;
        size_t part = left < (int64_t)sizeof passed ? (size_t)left : sizeof passed;
        GNOMON_TRY(unpack_some(source, state, passed, part, got));
        if (*got == 0) return GNOMON_OK;
    }
    return unpack_some(source, state, data, size, got);
}

static const gnomon_source_backend unpack_backend = {unpack_pull, unpack_close, true};

static gnomon_status start(gnomon_context *ctx, unpack_state *state)
{
    const char *name = gnomon_source_name(state->inner);
    const gnomon_codec *codec = state->codec;
    GNOMON_FAIL_IF(codec->open == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": is compressed by %s; this build reads none (it was made "
                                    "without lib%s): decompress it first",
                   name, codec->name, codec->name);
    state->own = codec->open(gnomon_memory_limit(ctx) / 4);
    GNOMON_FAIL_IF(state->own == NULL, ctx, GNOMON_ERROR_MEMORY,
                   GNOMON_ARG("%s") ": no memory to unpack its %s stream", name, codec->name);
    state->within = true;
    return GNOMON_OK;
}

gnomon_status gnomon_unpack_open(gnomon_source *inner, const gnomon_codec *codec,
                                 gnomon_source **out)
{
    gnomon_context *ctx = gnomon_source_context(inner);
    unpack_state *state = NULL;
    *out = NULL;
    gnomon_status status = gnomon_alloc_zero(ctx, 1, sizeof *state, "a decompressor", &state);
    if (status != GNOMON_OK) {
        gnomon_source_close(inner);
        return status;
    }
    state->inner = inner;
    state->codec = codec;
    status = start(ctx, state);
    if (status != GNOMON_OK) {
        unpack_close(ctx, state);
        return status;
    }
    const bool random = gnomon_source_get_kind(inner) == GNOMON_SOURCE_RANDOM;
    const int64_t packed = gnomon_source_size(inner);
    int64_t limit = INT64_MAX;
    if (packed < 0 || !gnomon_mul(packed, codec->ratio, &limit)) limit = INT64_MAX;
    return gnomon_source_open_backend(ctx, gnomon_source_name(inner), &unpack_backend, state,
                                      random ? GNOMON_SOURCE_REWINDABLE : GNOMON_SOURCE_STREAM, -1,
                                      limit, out);
}
