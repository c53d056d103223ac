/* dedup/store.h: bytes that are appended, then read and sorted in place: in memory up to a bound,
 * beyond it in a temporary file without a name, which is mapped. */
#ifndef GNOMON_DEDUP_STORE_H
#define GNOMON_DEDUP_STORE_H

#include "base/error.h"

#include <stdbool.h>

typedef struct gnomon_store {
    gnomon_context *ctx;
    const char *folder; /* of the temporary file; NULL: $TMPDIR, else /tmp */
    int64_t most;       /* bytes in memory */
    char *data;         /* all, once it is sealed; before, those that no file holds */
    int64_t room, held; /* bytes of data, and in it */
    int64_t size;       /* bytes appended */
    int fd;             /* -1: no file yet */
    bool mapped;
} gnomon_store;

void gnomon_store_start(gnomon_store *store, gnomon_context *ctx, const char *folder, int64_t most);
/* Errors: MEMORY, IO (a full disk). */
gnomon_status gnomon_store_append(gnomon_store *store, const void *data, int64_t bytes);
/* Nothing is appended any more; all bytes are at store->data. Errors: MEMORY, IO. */
gnomon_status gnomon_store_seal(gnomon_store *store);
void gnomon_store_free(gnomon_store *store);

#endif
