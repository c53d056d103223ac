/* io/source.h: bytes to read, wherever they come from: a file, a pipe, standard input,
 * a compressed stream around any of these, or a member of an archive. */
#ifndef GNOMON_IO_SOURCE_H
#define GNOMON_IO_SOURCE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gnomon_source gnomon_source;

/* How freely a source can be read. */
typedef enum gnomon_source_kind {
    GNOMON_SOURCE_STREAM = 0,     /* forward, once */
    GNOMON_SOURCE_REWINDABLE = 1, /* any offset, but going back starts over (a compressed file) */
    GNOMON_SOURCE_RANDOM = 2      /* any offset at its own cost only */
} gnomon_source_kind;

/* Opens a file ("-" is standard input) as it lies. Errors: NOT_FOUND, IO, MEMORY. On failure *out
 * is NULL. */
gnomon_status gnomon_source_open_file(gnomon_context *ctx, const char *path, gnomon_source **out);

/* A source over other code's bytes. pull reads up to size (> 0) bytes at offset and sets
 * *got, 0 at the end; for a STREAM the offsets always follow on. It reports its own
 * errors through gnomon_fail. close frees state, also when open itself fails. */
typedef struct gnomon_source_backend {
    gnomon_status (*pull)(gnomon_source *source, void *state, int64_t offset, void *data,
                          size_t size, size_t *got);
    void (*close)(gnomon_context *ctx, void *state);
    bool unpacks; /* what it pulls was compressed */
} gnomon_source_backend;

/* name is what error texts call it; size is -1 when unknown; limit is the most bytes that
 * can ever come (INT64_MAX: no bound known). */
gnomon_status gnomon_source_open_backend(gnomon_context *ctx, const char *name,
                                         const gnomon_source_backend *backend, void *state,
                                         gnomon_source_kind kind, int64_t size, int64_t limit,
                                         gnomon_source **out);

/* NULL is allowed. */
void gnomon_source_close(gnomon_source *source);

gnomon_context *gnomon_source_context(const gnomon_source *source);
/* For error texts: the path, or "standard input". */
const char *gnomon_source_name(const gnomon_source *source);
gnomon_source_kind gnomon_source_get_kind(const gnomon_source *source);
/* Whether the bytes come out of a compressed stream. */
bool gnomon_source_packed(const gnomon_source *source);
/* Bytes in all, -1 when unknown. */
int64_t gnomon_source_size(const gnomon_source *source);
/* The most bytes there can be: the size, or what the compressed file can unfold to, or
 * INT64_MAX. A header that speaks of more than this lies. */
int64_t gnomon_source_limit(const gnomon_source *source);
/* Offset of the next byte. */
int64_t gnomon_source_tell(const gnomon_source *source);
/* The file descriptor of a plain regular file (its bytes start at *start), else -1. */
int gnomon_source_fd(const gnomon_source *source, int64_t *start);

/* Shows the next bytes without taking them: at least want (at most GNOMON_SOURCE_PEEK)
 * but at the end of the data, and more when they are at hand. Valid until the next call. */
enum { GNOMON_SOURCE_PEEK = 64 * 1024 };
gnomon_status gnomon_source_peek(gnomon_source *source, size_t want, const unsigned char **data,
                                 size_t *got);
/* Takes size bytes that a peek has shown. */
void gnomon_source_consume(gnomon_source *source, size_t size);

/* Reads up to size bytes; *got < size only at the end. */
gnomon_status gnomon_source_read(gnomon_source *source, void *data, size_t size, size_t *got);
/* Reads exactly size bytes; TRUNCATED, naming 'what' and the offset, when there are fewer. */
gnomon_status gnomon_source_exact(gnomon_source *source, void *data, size_t size, const char *what);
/* Goes to an offset; not for a STREAM except to where it stands or beyond. */
gnomon_status gnomon_source_seek(gnomon_source *source, int64_t offset);
/* Reads exactly size bytes at offset and does not move; RANDOM sources only. */
gnomon_status gnomon_source_read_at(gnomon_source *source, int64_t offset, void *data, size_t size,
                                    const char *what);

/* Makes any source RANDOM: one that is not is copied, from its first byte, to a nameless
 * temporary file (in TMPDIR, else /tmp). Nothing may have been taken yet from a STREAM
 * (peeking is fine). The name stays. */
gnomon_status gnomon_source_make_random(gnomon_source *source);

#endif
