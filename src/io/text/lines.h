/* io/text/lines.h: the lines of a text, of any length. */
#ifndef GNOMON_IO_LINES_H
#define GNOMON_IO_LINES_H

#include "io/source.h"

typedef struct gnomon_lines {
    gnomon_source *source;
    char *buffer;
    int64_t capacity;
    int64_t begin, end; /* of the bytes not handed out yet, in buffer */
    int64_t last;       /* where the line handed out last begins, in buffer */
    int64_t number;     /* that line's, counted from 1; 0 before the first */
    bool ended;         /* the source has no more */
} gnomon_lines;

/* Begins at the source's first byte; a UTF-8 byte order mark there is passed over. */
void gnomon_lines_start(gnomon_lines *lines, gnomon_source *source);
void gnomon_lines_free(gnomon_lines *lines);

/* The next line without its end (LF or CR LF; the last may have none): *text[0, *length),
 * valid until the next call; *text is NULL at the end. Errors: IO, MEMORY. */
gnomon_status gnomon_lines_next(gnomon_lines *lines, const char **text, size_t *length);

/* Makes the next call give the same line once more. */
void gnomon_lines_again(gnomon_lines *lines);

/* The source's offset of the line that the next call gives. */
int64_t gnomon_lines_offset(const gnomon_lines *lines);

/* Goes to where a line begins: an offset that gnomon_lines_offset gave, and the number of
 * the line before it. Not for a stream. */
gnomon_status gnomon_lines_seek(gnomon_lines *lines, int64_t offset, int64_t number);

/* Where words of a line end. */
static inline bool gnomon_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* The next word from *p on, up to a blank or a character that begins a comment (an unsigned char,
 * or GNOMON_NO_COMMENT), and *p behind it; its length is 0 when there is none. */
enum { GNOMON_NO_COMMENT = -1 };
static inline const char *gnomon_word(const char **p, const char *end, size_t *length, int comment)
{
    while (*p < end && gnomon_is_blank(**p))
        ++*p;
    const char *start = *p;
    while (*p < end && !gnomon_is_blank(**p) && (unsigned char)**p != comment)
        ++*p;
    *length = (size_t)(*p - start);
    return start;
}

/* text as it can stand in an error text: quoted, cut when long, what can't be printed as
 * \xNN. Returns out. */
enum { GNOMON_QUOTED = 64 };
const char *gnomon_quote(const char *text, size_t length, char out[GNOMON_QUOTED]);

#endif
