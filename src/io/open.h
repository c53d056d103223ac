/* io/open.h: opens a file as a source, and reads a gzip stream in it through. */
#ifndef GNOMON_IO_OPEN_H
#define GNOMON_IO_OPEN_H

#include "io/source.h"

typedef enum gnomon_gunzip {
    GNOMON_GUNZIP_AUTO = 0, /* when the first bytes are a gzip header */
    GNOMON_GUNZIP_NAMED = 1 /* when they are and the name ends in .gz: headerless formats */
} gnomon_gunzip;

/* Opens a file ("-" is standard input); a gzip stream is read through. Errors: NOT_FOUND,
 * IO, DATA (bad gzip header), MEMORY. On failure *out is NULL. */
gnomon_status gnomon_source_open(gnomon_context *ctx, const char *path, gnomon_gunzip gunzip,
                                 gnomon_source **out);

#endif
