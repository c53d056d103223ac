#include "dedup/store.h"

#include "base/memory.h"
#include "io/temporaries.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST = 1 << 16 };

/* Large pages for large blocks: filling them costs fewer faults. It is advice, which may fail. */
static void advise(char *data, int64_t bytes)
{
    enum { LARGE = 1 << 21 };
    const uintptr_t begin = ((uintptr_t)data + LARGE - 1) / LARGE * LARGE;
    const uintptr_t end = ((uintptr_t)data + (uintptr_t)bytes) / LARGE * LARGE;
    if (end > begin) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
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
            int64_t room = s->room == 0 ? FIRST : 2 * s->room;
            if (room > s->most) room = s->most;
            char *wider;
            GNOMON_TRY(gnomon_alloc(s->ctx, room, 1, "documents", &wider));
            advise(wider, room);
            if (s->held > 0) memcpy(wider, s->data, (size_t)s->held);
            gnomon_free(s->ctx, s->data);
            s->data = wider;
            s->room = room;
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
    gnomon_free(s->ctx, s->data);
    s->data = NULL;
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
        gnomon_free(s->ctx, s->data);
    if (s->fd >= 0) close(s->fd);
    *s = (gnomon_store){.fd = -1};
}
