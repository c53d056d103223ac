/* io/open.h: opens a file as a source, and reads a compressed stream in it through. */
#ifndef GNOMON_IO_OPEN_H
#define GNOMON_IO_OPEN_H

#include "io/source.h"

typedef enum gnomon_unpack {
    GNOMON_UNPACK_AUTO = 0, /* when the first bytes are a header of gzip or zstd */
    GNOMON_UNPACK_NAMED = 1 /* when they are and the name ends so: headerless formats */
} gnomon_unpack;

/* Opens a file ("-" is standard input); a gzip or zstd stream is read through. Errors: NOT_FOUND,
 * IO, DATA (a bad header), UNSUPPORTED (zstd, in a build without), MEMORY. On failure *out is NULL.
 */
gnomon_status gnomon_source_open(gnomon_context *ctx, const char *path, gnomon_unpack unpack,
                                 gnomon_source **out);

#endif
