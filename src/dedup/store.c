#include "dedup/store.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/threads.h"
#include "io/temporaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* FILED: of a store with a file, what is held before it is written. It stays in a processor's
 * cache, and memory is left to others. */
enum { FIRST = 1 << 16, FILED = 1 << 22, LARGE = 1 << 23, PAGE = 1 << 21 };

/* Memory for 'room' bytes, with what is held. The C library's allocator would copy it, and the
 * kernel clear twice as many pages: a map moves by its pages. Large pages cost fewer faults; that
 * is advice, which may fail. */
static gnomon_status enlarge(gnomon_store *s, int64_t room)
{
    /* a map of whole large pages moves by these */
    if (room >= LARGE && room <= s->most - PAGE) room = gnomon_round_up(room, PAGE);
    if (s->ctx->custom_allocator)
        GNOMON_TRY(gnomon_grow(s->ctx, &s->data, s->held, room, 1, "documents"));
    else {
        void *map = s->room == 0 ? mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : mremap(s->data, (size_t)s->room, (size_t)room, MREMAP_MAYMOVE);
        GNOMON_FAIL_IF(map == MAP_FAILED, s->ctx, GNOMON_ERROR_MEMORY,
                       "documents: no memory for %lld bytes", (long long)room);
        if (room >= LARGE) (void)madvise(map, (size_t)room, MADV_HUGEPAGE);
        s->data = map;
    }
    s->room = room;
    return GNOMON_OK;
}

static void drop(gnomon_store *s)
{
    if (s->ctx != NULL && s->ctx->custom_allocator)
        gnomon_free(s->ctx, s->data);
    else if (s->data != NULL)
        munmap(s->data, (size_t)s->room);
    s->data = NULL;
    s->room = s->touched = 0;
}

void gnomon_store_start(gnomon_store *s, gnomon_context *ctx, const char *folder, int64_t most)
{
    *s = (gnomon_store){.ctx = ctx, .folder = folder, .most = most, .fd = -1};
}

static gnomon_status fail(const gnomon_store *s, const char *what)
{
    const char *folder = s->folder != NULL ? s->folder : getenv("TMPDIR");
    const int number = errno;
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    if (number == ENOSPC || number == EFBIG || number == EDQUOT)
        return gnomon_fail(
            s->ctx, GNOMON_ERROR_IO,
            GNOMON_ABOUT("options.work") "%s has no room: a temporary file can't grow "
                                         "beyond %lld bytes: %s; such files take 8 "
                                         "bytes for each n-gram, and the size of "
                                         "the texts where they are held",
            folder, (long long)s->size, strerror(number));
    return gnomon_fail(s->ctx, GNOMON_ERROR_IO,
                       GNOMON_ABOUT("options.work") "%s: a temporary file of %lld bytes: %s: %s",
                       folder, (long long)s->size, what, strerror(number));
}

gnomon_status gnomon_store_flush(gnomon_store *s)
{
    if (s->held == 0) return GNOMON_OK;
    if (s->fd < 0) GNOMON_TRY(gnomon_temporary_nameless_in(s->ctx, s->folder, &s->fd));
    int64_t at = s->size - s->held;
    for (int64_t done = 0; done < s->held;) {
        const ssize_t n = pwrite(s->fd, s->data + done, (size_t)(s->held - done), (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(s, "it can't be written");
        done += n;
        at += n;
    }
    if (s->sum != NULL) XXH3_64bits_update(s->sum, s->data, (size_t)s->held);
    s->held = 0;
    s->most = gnomon_min(s->most, FILED);
    if (s->room > s->most) drop(s);
    return GNOMON_OK;
}

gnomon_status gnomon_store_append(gnomon_store *s, const void *data, int64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        if (s->held == s->room && s->room >= s->most) GNOMON_TRY(gnomon_store_flush(s));
        if (s->held == s->room) { /* after a flush, too, which may give the memory back */
            const int64_t room = s->room == 0 ? FIRST : 2 * s->room;
            GNOMON_TRY(enlarge(s, gnomon_min(room, s->most)));
        }
        const int64_t some = bytes < s->room - s->held ? bytes : s->room - s->held;
        memcpy(s->data + s->held, from, (size_t)some);
        s->held += some;
        s->size += some;
        from += some;
        bytes -= some;
    }
    return GNOMON_OK;
}

typedef struct copying {
    char *to;
    const char *from;
    int64_t bytes;
} copying;

enum { COPIED = 1 << 16 };

static void copy_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const copying *c = arg;
    const int64_t begin = task * COPIED;
    memcpy(c->to + begin, c->from + begin, (size_t)gnomon_min(COPIED, c->bytes - begin));
}

static void touch_page(void *arg, int64_t task, int worker)
{
    (void)worker;
    ((char *)arg)[task * PAGE] = 0;
}

/* Large pages behind what is held are made ready by as many threads, some ahead: of threads that
 * come to one at the same time each would clear all of it, and one of these would be used. */
static void touch_ahead(gnomon_store *s, int64_t bytes)
{
    const int64_t threads = gnomon_context_threads(s->ctx), end = s->held + bytes;
    if (s->room < LARGE || threads == 1 || s->ctx->custom_allocator || end <= s->touched) return;
    const int64_t ahead = gnomon_min(s->room, end + gnomon_min(end, threads * PAGE));
    const int64_t begin = gnomon_max(s->touched, s->held);
    char *const first = s->data + begin + (-((uintptr_t)s->data + (uintptr_t)begin) & (PAGE - 1));
    const int64_t left = s->data + ahead - first;
    if (left > 0) gnomon_parallel(s->ctx, gnomon_ceil_div(left, PAGE), touch_page, first);
    s->touched = ahead;
}

gnomon_status gnomon_store_claim(gnomon_store *s, int64_t bytes, char **to)
{
    *to = NULL;
    if (s->fd >= 0 && bytes <= s->most && bytes > s->most - s->held)
        GNOMON_TRY(gnomon_store_flush(s));
    if (bytes == 0 || bytes > s->most - s->held) return GNOMON_OK;
    if (s->held + bytes > s->room)
        GNOMON_TRY(enlarge(s, gnomon_min(gnomon_max(2 * s->room, s->held + bytes), s->most)));
    touch_ahead(s, bytes);
    *to = s->data + s->held;
    s->held += bytes;
    s->size += bytes;
    return GNOMON_OK;
}

gnomon_status gnomon_store_append_shared(gnomon_store *s, const void *data, int64_t bytes)
{
    copying c = {NULL, data, bytes};
    if (bytes >= 2 * COPIED) GNOMON_TRY(gnomon_store_claim(s, bytes, &c.to));
    if (c.to == NULL) return gnomon_store_append(s, data, bytes);
    gnomon_parallel(s->ctx, gnomon_ceil_div(bytes, COPIED), copy_some, &c);
    return GNOMON_OK;
}

gnomon_status gnomon_store_seal(gnomon_store *s)
{
    if (s->fd < 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_store_flush(s));
    drop(s);
    return GNOMON_OK;
}

gnomon_status gnomon_store_read(const gnomon_store *s, int64_t offset, int64_t bytes, void *out)
{
    char *to = out;
    if (s->fd < 0) {
        if (bytes > 0) memcpy(to, s->data + offset, (size_t)bytes);
        return GNOMON_OK;
    }
    while (bytes > 0) {
        const ssize_t n = pread(s->fd, to, (size_t)bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return fail(s, "it can't be read");
        to += n;
        offset += n;
        bytes -= n;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_store_map(gnomon_store *s, const char **data)
{
    *data = s->data;
    if (s->fd < 0 || s->size == 0) return GNOMON_OK;
    if (s->map == NULL) {
        const void *map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_SHARED, s->fd, 0);
        if (map == MAP_FAILED) return fail(s, "it can't be mapped");
        s->map = map;
    } else {
        (void)madvise((void *)(uintptr_t)s->map, (size_t)s->size, MADV_DONTNEED);
    }
    *data = s->map;
    return GNOMON_OK;
}

void gnomon_store_free(gnomon_store *s)
{
    if (s->map != NULL) munmap((void *)(uintptr_t)s->map, (size_t)s->size);
    drop(s);
    if (s->ctx != NULL && s->fd >= 0) close(s->fd);
    if (s->ctx != NULL) gnomon_free(s->ctx, s->sum);
    *s = (gnomon_store){.fd = -1};
}

/* ---- windows ---- */

gnomon_status gnomon_window_get(gnomon_window *w, int64_t offset, int64_t bytes, void *out)
{
    const gnomon_store *s = w->store;
    const char *at;
    if (s->fd < 0) {
        at = s->data + offset;
        memcpy(out, &at, sizeof at);
        return GNOMON_OK;
    }
    if (offset < w->begin || offset + bytes > w->begin + w->have || w->buffer == NULL) {
        if (bytes > w->room || w->buffer == NULL) {
            const int64_t room = gnomon_max(bytes, w->room);
            gnomon_free(s->ctx, w->buffer);
            w->buffer = NULL;
            GNOMON_TRY(gnomon_alloc(s->ctx, room, 1, "a window", &w->buffer));
            w->room = room;
        }
        w->have = 0;
        const int64_t some = gnomon_min(w->room, s->size - offset);
        GNOMON_TRY(gnomon_store_read(s, offset, some, w->buffer));
        w->begin = offset;
        w->have = some;
    }
    at = w->buffer + (offset - w->begin);
    memcpy(out, &at, sizeof at);
    return GNOMON_OK;
}

void gnomon_window_end(gnomon_window *w)
{
    if (w->store != NULL && w->store->ctx != NULL) gnomon_free(w->store->ctx, w->buffer);
    *w = (gnomon_window){0};
}
