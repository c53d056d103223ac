#include "io/temporaries.h"

#include "base/memory.h"

#include <gnomon/io.h>

#include <errno.h>
#include <fcntl.h>
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

static gnomon_status open_in(gnomon_context *ctx, const char *folder, gnomon_temporary *temporary)
{
    size_t length = strlen(folder) + GNOMON_TEMPORARY_UNIQUE + 16;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length, 1, "a file name", &temporary->path));
    temporary->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int attempt = 0; attempt < 16 && temporary->folder_fd >= 0; attempt++) {
        char unique[GNOMON_TEMPORARY_UNIQUE];
        gnomon_temporary_unique(unique);
        snprintf(temporary->path, length, "%s/gnomon-%s.tmp", folder, unique);
        const char *name = temporary->path + strlen(folder) + 1;
        /* noted before it exists: a signal between the two must find it */
        temporary->ticket = gnomon_temporary_note(temporary->folder_fd, name);
        temporary->fd =
            openat(temporary->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (temporary->fd >= 0) return GNOMON_OK;
        int error = errno;
        gnomon_temporary_forget(temporary->ticket);
        errno = error;
        if (errno != EEXIST) break;
    }
    gnomon_status status = gnomon_fail(ctx, GNOMON_ERROR_IO, "%s: can't make a temporary file: %s",
                                       folder, strerror(errno));
    if (temporary->folder_fd >= 0) close(temporary->folder_fd);
    gnomon_free(ctx, temporary->path);
    return status;
}

gnomon_status gnomon_temporary_open(gnomon_context *ctx, gnomon_temporary *temporary)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    gnomon_temporary made = {-1, -1, -1, NULL};
    temporary->fd = -1;
    GNOMON_TRY(open_in(ctx, folder, &made));
    *temporary = made;
    return GNOMON_OK;
}

void gnomon_temporary_close(gnomon_context *ctx, gnomon_temporary *temporary)
{
    if (temporary->fd < 0) return;
    unlinkat(temporary->folder_fd, strrchr(temporary->path, '/') + 1, 0);
    gnomon_temporary_forget(temporary->ticket);
    close(temporary->folder_fd);
    close(temporary->fd);
    gnomon_free(ctx, temporary->path);
    temporary->fd = -1;
}

gnomon_status gnomon_temporary_nameless(gnomon_context *ctx, int *fd)
{
    gnomon_temporary temporary;
    *fd = -1;
    GNOMON_TRY(gnomon_temporary_open(ctx, &temporary));
    int copy = fcntl(temporary.fd, F_DUPFD_CLOEXEC, 0);
    int error = errno;
    gnomon_temporary_close(ctx, &temporary);
    GNOMON_FAIL_IF(copy < 0, ctx, GNOMON_ERROR_IO, "can't keep a temporary file open: %s",
                   strerror(error));
    *fd = copy;
    return GNOMON_OK;
}
