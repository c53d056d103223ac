/* io/compress/gunzip.h: a source that unfolds another one's gzip stream. */
#ifndef GNOMON_IO_GUNZIP_H
#define GNOMON_IO_GUNZIP_H

#include "io/source.h"

/* Bytes that gnomon_gzip_header wants to see. */
enum { GNOMON_GZIP_HEADER = 10 };
bool gnomon_gzip_header(const unsigned char *head, size_t length);

/* Owns inner from the call on, also when it fails. Members that follow one another read as
 * one; zeros after the last are passed over, anything else is DATA. */
gnomon_status gnomon_gunzip_open(gnomon_source *inner, gnomon_source **out);

/* The most bytes that this many deflated ones can unfold to: 1032 for 1, by the format. */
int64_t gnomon_deflate_limit(int64_t deflated);

#endif
