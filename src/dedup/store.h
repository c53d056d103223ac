/* dedup/store.h: bytes that are appended, then read: in memory up to a bound, beyond it in a
 * temporary file, of which no more is in memory than windows and what is written next. */
#ifndef GNOMON_DEDUP_STORE_H
#define GNOMON_DEDUP_STORE_H

#include "base/error.h"

#include <stdbool.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct gnomon_store {
    gnomon_context *ctx;
    const char *folder; /* of the temporary file; NULL: $TMPDIR, else /tmp */
    int64_t most;       /* bytes in memory; few, once there is a file */
    char *data;         /* bytes that no file holds: all, while fd is -1 */
    int64_t room, held; /* bytes of data, and in it */
    int64_t touched;    /* bytes of data whose large pages have been made ready */
    int64_t size;       /* bytes appended */
    int fd;             /* -1: no file yet */
    const char *map;    /* gnomon_store_map's */
    XXH3_state_t *sum;  /* of the bytes in the file, where a checkpoint wants it; else NULL */
} gnomon_store;

void gnomon_store_start(gnomon_store *store, gnomon_context *ctx, const char *folder, int64_t most);
/* Errors: MEMORY, IO (a full disk). */
gnomon_status gnomon_store_append(gnomon_store *store, const void *data, int64_t bytes);
/* Appends bytes that the caller writes to *to, before any other call; NULL: memory has no room for
 * them, or there are none, and nothing is appended. Errors: MEMORY, IO. */
gnomon_status gnomon_store_claim(gnomon_store *store, int64_t bytes, char **to);
/* The same as append by all of the context's threads, where there are many bytes and memory has
 * room. */
gnomon_status gnomon_store_append_shared(gnomon_store *store, const void *data, int64_t bytes);
/* What is held goes to the file. */
gnomon_status gnomon_store_flush(gnomon_store *store);
/* Nothing is appended any more: what a file holds needs no memory. Errors: MEMORY, IO. */
gnomon_status gnomon_store_seal(gnomon_store *store);
/* Reads bytes of a sealed store. Errors: IO. */
gnomon_status gnomon_store_read(const gnomon_store *store, int64_t offset, int64_t bytes,
                                void *out);
/* All bytes of a sealed store where they can be read, NULL of an empty one: in memory, or a map of
 * the file. Each further call lets go of the pages that were read. Errors: IO. */
gnomon_status gnomon_store_map(gnomon_store *store, const char **data);
void gnomon_store_free(gnomon_store *store);

/* Reads a sealed store from the front to the back, about 'room' bytes at a time. */
typedef struct gnomon_window {
    const gnomon_store *store;
    char *buffer;
    int64_t room, begin, have;
} gnomon_window;
static inline void gnomon_window_start(gnomon_window *window, const gnomon_store *store,
                                       int64_t room)
{
    *window = (gnomon_window){.store = store, .room = room};
}
/* Sets the pointer at out, of any type, to bytes [offset, offset + bytes), valid until the next
 * call. Errors: MEMORY, IO. */
gnomon_status gnomon_window_get(gnomon_window *window, int64_t offset, int64_t bytes, void *out);
void gnomon_window_end(gnomon_window *window);

#endif
