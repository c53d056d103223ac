/* io/compress/zip.h: the members of a zip archive as sources, and an archive written in one pass.
 */
#ifndef GNOMON_IO_ZIP_H
#define GNOMON_IO_ZIP_H

#include "io/sink.h"
#include "io/source.h"

typedef struct gnomon_zip gnomon_zip;

/* Opens the archive in source, which is made RANDOM and must outlive it. Errors: DATA,
 * UNSUPPORTED (built without libzip), MEMORY, IO. */
gnomon_status gnomon_zip_open(gnomon_source *source, gnomon_zip **out);
void gnomon_zip_close(gnomon_zip *zip); /* NULL is allowed */

int64_t gnomon_zip_count(const gnomon_zip *zip);
/* The name of member index, "" for one that has none; the archive's. */
const char *gnomon_zip_name(const gnomon_zip *zip, int64_t index);
/* The index of a member, -1 when there is none of that name. */
int64_t gnomon_zip_find(const gnomon_zip *zip, const char *name);
/* A member's bytes: RANDOM when it is stored, else REWINDABLE. To be closed before the archive. */
gnomon_status gnomon_zip_member(gnomon_zip *zip, int64_t index, gnomon_source **out);

/* Writing: members one after another into a sink that was opened with revisit. */
typedef struct gnomon_zip_writer gnomon_zip_writer;
gnomon_status gnomon_zip_writer_open(gnomon_context *ctx, gnomon_sink *sink, bool compress,
                                     gnomon_zip_writer **out);
void gnomon_zip_writer_close(gnomon_zip_writer *zip); /* frees; NULL is allowed */
/* Begins a member whose first head_size bytes can be changed by _end, because they hold counts
 * that are known only then (0: none; at most 65535). */
gnomon_status gnomon_zip_writer_begin(gnomon_zip_writer *zip, const char *name, const void *head,
                                      size_t head_size);
gnomon_status gnomon_zip_writer_write(gnomon_zip_writer *zip, const void *data, size_t size);
/* Ends the member; head (NULL: as it was) replaces what _begin was given, of the same size. */
gnomon_status gnomon_zip_writer_end(gnomon_zip_writer *zip, const void *head);
/* Writes the directory that ends the archive. */
gnomon_status gnomon_zip_writer_complete(gnomon_zip_writer *zip);

#endif
