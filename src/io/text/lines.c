#include "io/text/lines.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 * 1024 };

void gnomon_lines_start(gnomon_lines *lines, gnomon_source *source)
{
    *lines = (gnomon_lines){.source = source};
}

void gnomon_lines_free(gnomon_lines *lines)
{
    if (lines->source != NULL) gnomon_free(gnomon_source_context(lines->source), lines->buffer);
    lines->buffer = NULL;
}

/* Moves what is left to the buffer's front and reads on behind it. */
static gnomon_status fill(gnomon_lines *lines)
{
    gnomon_context *ctx = gnomon_source_context(lines->source);
    int64_t left = lines->end - lines->begin;
    if (lines->begin > 0) memmove(lines->buffer, lines->buffer + lines->begin, (size_t)left);
    lines->begin = 0;
    lines->end = left;
    if (left == lines->capacity) {
        int64_t wider = FIRST_CAPACITY;
        if (left > 0 && !gnomon_mul(left, 2, &wider))
            return gnomon_fail(ctx, GNOMON_ERROR_OVERFLOW,
                               GNOMON_ARG("%s") ": line %lld is too long",
                               gnomon_source_name(lines->source), (long long)lines->number + 1);
        GNOMON_TRY(gnomon_grow(ctx, &lines->buffer, lines->capacity, wider, 1, "a line of text"));
        lines->capacity = wider;
    }
    size_t got = 0;
    GNOMON_TRY(gnomon_source_read(lines->source, lines->buffer + left,
                                  (size_t)(lines->capacity - left), &got));
    lines->end += (int64_t)got;
    lines->ended = (int64_t)got < lines->capacity - left;
    return GNOMON_OK;
}

gnomon_status gnomon_lines_next(gnomon_lines *lines, const char **text, size_t *length)
{
    int64_t searched = 0;
    const char *newline = NULL;
    *text = NULL;
    *length = 0;
    for (;;) {
        int64_t from = lines->begin + searched;
        if (from < lines->end)
            newline = memchr(lines->buffer + from, '\n', (size_t)(lines->end - from));
        if (newline != NULL || lines->ended) break;
        searched = lines->end - lines->begin;
        GNOMON_TRY(fill(lines));
    }
    if (lines->begin == lines->end) return GNOMON_OK;
    if (lines->number == 0 && lines->end - lines->begin >= 3 &&
        memcmp(lines->buffer + lines->begin, "\xEF\xBB\xBF", 3) == 0)
        lines->begin += 3;
    const char *start = lines->buffer + lines->begin;
    const char *stop = newline != NULL ? newline : lines->buffer + lines->end;
    lines->last = lines->begin;
    lines->begin = newline != NULL ? newline + 1 - lines->buffer : lines->end;
    lines->number++;
    if (stop > start && stop[-1] == '\r') stop--;
    *text = start;
    *length = (size_t)(stop - start);
    return GNOMON_OK;
}

void gnomon_lines_again(gnomon_lines *lines)
{
    lines->begin = lines->last;
    lines->number--;
}

int64_t gnomon_lines_offset(const gnomon_lines *lines)
{
    return gnomon_source_tell(lines->source) - (lines->end - lines->begin);
}

gnomon_status gnomon_lines_seek(gnomon_lines *lines, int64_t offset, int64_t number)
{
    GNOMON_TRY(gnomon_source_seek(lines->source, offset));
    lines->begin = lines->end = lines->last = 0;
    lines->number = number;
    lines->ended = false;
    return GNOMON_OK;
}

const char *gnomon_quote(const char *text, size_t length, char out[GNOMON_QUOTED])
{
    enum { ROOM = GNOMON_QUOTED - 8 }; /* for one \xNN, the dots, the quote and the NUL */
    int at = 0;
    out[at++] = '\'';
    size_t i = 0;
    for (; i < length && at < ROOM; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c >= 0x7F)
            at += snprintf(out + at, (size_t)(GNOMON_QUOTED - at), "\\x%02x", c);
        else
            out[at++] = (char)c;
    }
    memcpy(out + at, i < length ? "...'" : "'", i < length ? 5 : 2);
    return out;
}
