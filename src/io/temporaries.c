#include "io/temporaries.h"

#include <gnomon/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A fixed table: a signal handler may look at it at any moment, so nothing in it is ever
 * freed and a slot is complete before it is marked live. */
enum { SLOTS = 64, FREE = 0, TAKEN = 1, LIVE = 2 };

typedef struct slot {
    atomic_int use;
    int folder_fd;
    char name[256];
} slot;

static slot slots[SLOTS];

int gnomon_temporary_note(int folder_fd, const char *name)
{
    size_t length = strlen(name);
    if (length >= sizeof slots[0].name) return -1;
    for (int i = 0; i < SLOTS; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&slots[i].use, &expected, TAKEN)) continue;
        slots[i].folder_fd = folder_fd;
        memcpy(slots[i].name, name, length + 1);
        atomic_store(&slots[i].use, LIVE);
        return i;
    }
    return -1;
}

void gnomon_temporary_forget(int ticket)
{
    if (ticket >= 0) atomic_store(&slots[ticket].use, FREE);
}

void gnomon_io_abandon_all(void)
{
    int saved = errno;
    for (int i = 0; i < SLOTS; i++)
        if (atomic_load(&slots[i].use) == LIVE) unlinkat(slots[i].folder_fd, slots[i].name, 0);
    errno = saved;
}

void gnomon_temporary_unique(char text[GNOMON_TEMPORARY_UNIQUE])
{
    static atomic_uint counter;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(text, GNOMON_TEMPORARY_UNIQUE, "%lx-%x-%lx", (unsigned long)getpid(),
             atomic_fetch_add(&counter, 1u), (unsigned long)now.tv_nsec);
}

gnomon_status gnomon_temporary_nameless(gnomon_context *ctx, int *fd)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    for (int attempt = 0; attempt < 16; attempt++) {
        char unique[GNOMON_TEMPORARY_UNIQUE], path[PATH_MAX];
        gnomon_temporary_unique(unique);
        int n = snprintf(path, sizeof path, "%s/gnomon-%s.tmp", folder, unique);
        GNOMON_FAIL_IF(n < 0 || n >= (int)sizeof path, ctx, GNOMON_ERROR_IO,
                       "TMPDIR: '%s' is too long a name", folder);
        *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (*fd >= 0) {
            unlink(path);
            return GNOMON_OK;
        }
        if (errno != EEXIST) break;
    }
    return gnomon_fail(ctx, GNOMON_ERROR_IO, "%s: can't make a temporary file: %s", folder,
                       strerror(errno));
}
