#include "dedup/store.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/memory.h"
#include "io/temporaries.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST = 1 << 16 };

/* Memory for 'room' bytes, with what is held. The C library's allocator would copy it, and the
 * kernel clear twice as many pages: a map moves by its pages. Large pages cost fewer faults; that
 * is advice, which may fail. */
static gnomon_status enlarge(gnomon_store *s, int64_t room)
{
    if (s->ctx->custom_allocator)
        GNOMON_TRY(gnomon_grow(s->ctx, &s->data, s->held, room, 1, "documents"));
    else {
        void *map = s->room == 0 ? mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                 : mremap(s->data, (size_t)s->room, (size_t)room, MREMAP_MAYMOVE);
        GNOMON_FAIL_IF(map == MAP_FAILED, s->ctx, GNOMON_ERROR_MEMORY,
                       "documents: no memory for %lld bytes", (long long)room);
        (void)madvise(map, (size_t)room, MADV_HUGEPAGE);
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
    s->room = 0;
}

void gnomon_store_start(gnomon_store *s, gnomon_context *ctx, const char *folder, int64_t most)
{
    *s = (gnomon_store){.ctx = ctx, .folder = folder, .most = most, .fd = -1};
}

static gnomon_status fail(const gnomon_store *s, const char *what)
{
    return gnomon_fail(s->ctx, GNOMON_ERROR_IO,
                       GNOMON_ABOUT("options.work") "a temporary file of %lld bytes: %s: %s",
                       (long long)s->size, what, strerror(errno));
}

static gnomon_status flush(gnomon_store *s)
{
    if (s->fd < 0) GNOMON_TRY(gnomon_temporary_nameless_in(s->ctx, s->folder, &s->fd));
    for (int64_t done = 0; done < s->held;) {
        const ssize_t n = write(s->fd, s->data + done, (size_t)(s->held - done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(s, "it can't be written");
        done += n;
    }
    s->held = 0;
    return GNOMON_OK;
}

gnomon_status gnomon_store_append(gnomon_store *s, const void *data, int64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        if (s->held == s->room && s->room < s->most) {
            const int64_t room = s->room == 0 ? FIRST : 2 * s->room;
            GNOMON_TRY(enlarge(s, gnomon_min(room, s->most)));
        }
        if (s->held == s->room) GNOMON_TRY(flush(s));
        const int64_t some = bytes < s->room - s->held ? bytes : s->room - s->held;
        memcpy(s->data + s->held, from, (size_t)some);
        s->held += some;
        s->size += some;
        from += some;
        bytes -= some;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_store_seal(gnomon_store *s)
{
    if (s->fd < 0 || s->mapped) return GNOMON_OK;
    GNOMON_TRY(flush(s));
    drop(s);
    void *map = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (map == MAP_FAILED) return fail(s, "it can't be mapped");
    s->data = map;
    s->mapped = true;
    return GNOMON_OK;
}

void gnomon_store_free(gnomon_store *s)
{
    if (s->mapped)
        munmap(s->data, (size_t)s->size);
    else
        drop(s);
    if (s->fd >= 0) close(s->fd);
    *s = (gnomon_store){.fd = -1};
}
