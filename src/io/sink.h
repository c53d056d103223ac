/* io/sink.h: safe output. A regular target is written to a temporary file beside it that
 * takes its place at the end, synced; standard output, pipes and devices are written
 * directly. Nothing is left behind on failure; what a killed process left is removed when the
 * same target is opened next. */
#ifndef GNOMON_IO_SINK_H
#define GNOMON_IO_SINK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

typedef struct gnomon_sink gnomon_sink;

typedef struct gnomon_sink_options {
    bool overwrite_ok; /* an existing target may be replaced */
    bool revisit;      /* the writer goes back (write_at, read_at): a target
                          that is written directly is then held in a temporary file */
} gnomon_sink_options;

/* Opens the target; "-" is standard output. A symbolic link is followed: what it points
 * to is replaced. A new file gets the mode that the umask gives, one that replaces
 * another that one's. Errors: IO (exists and overwrite_ok is false, say), NOT_FOUND (no
 * such folder), MEMORY. On failure *out is NULL. */
gnomon_status gnomon_sink_open(gnomon_context *ctx, const char *path,
                               const gnomon_sink_options *options, gnomon_sink **out);

/* For error texts: the path, or "standard output". */
const char *gnomon_sink_name(const gnomon_sink *sink);
/* Bytes written so far. */
int64_t gnomon_sink_tell(const gnomon_sink *sink);

/* Appends. Buffered; errors (IO with the system's reason) may show at a later call. */
gnomon_status gnomon_sink_write(gnomon_sink *sink, const void *data, size_t size);
/* Appends many parts, most of them large, without a copy of their own. */
gnomon_status gnomon_sink_write_parts(gnomon_sink *sink, struct iovec *parts, int count);
gnomon_status gnomon_sink_printf(gnomon_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Overwrites at offset, at or beyond the end too (the gap reads as zeros); tell becomes the
 * furthest byte written. Needs revisit. */
gnomon_status gnomon_sink_write_at(gnomon_sink *sink, int64_t offset, const void *data,
                                   size_t size);
/* Reads back what was written, zeros beyond it. Needs revisit. */
gnomon_status gnomon_sink_read_at(gnomon_sink *sink, int64_t offset, void *data, size_t size);

/* What is known of the file that is being written, which takes the target's place. Errors: IO. */
gnomon_status gnomon_sink_stat(const gnomon_sink *sink, struct stat *st);

/* Flushes, syncs, renames and frees the sink whatever it returns; on failure the target is
 * as before (a directly written one has what went out). */
gnomon_status gnomon_sink_finish(gnomon_sink *sink);
/* Drops everything and frees; NULL is allowed. */
void gnomon_sink_abort(gnomon_sink *sink);

#endif
