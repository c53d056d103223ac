#include "io/temporaries.h"

#include <gnomon/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A fixed table: a signal handler may read it at any moment, so nothing in it is ever
 * freed and a slot is complete before it is marked live. */
enum { SLOTS = 64, FREE = 0, CLAIMED = 1, LIVE = 2 };

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
        if (!atomic_compare_exchange_strong(&slots[i].use, &expected, CLAIMED)) continue;
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

/* ---- beside a target ---- */

/* With so many runs at once for one target, further ones use names that no run cleans up. */
enum { NAMES = 16 };

/* 0, or an errno: EAGAIN when somebody else has the lock. Locks of open file descriptions: they end
 * with the process, however it ends, and tell two calls of one process apart. */
static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(fd, F_OFD_SETLK, &whole) != 0)
        if (errno != EINTR) return errno == EACCES ? EAGAIN : errno;
    return 0;
}

/* Whether 'name' still is the file that is open. */
static bool is_still(int folder_fd, const char *name, int fd)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && fstatat(folder_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Removes a file that a dead process left. Whoever has the lock alone removes or renames it, so
 * that the name can't come to mean another file between the look and the removal. */
static void remove_stale(int folder_fd, const char *name)
{
    struct stat st;
    const int fd = openat(folder_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && lock(fd) == 0 &&
        is_still(folder_fd, name, fd))
        unlinkat(folder_fd, name, 0);
    close(fd);
}

/* 0, EEXIST for a name that is taken, or another errno. */
static int make_locked(int folder_fd, const char *name, mode_t mode, int *ticket, int *fd)
{
    /* noted before it exists: a signal between the two must find it */
    *ticket = gnomon_temporary_note(folder_fd, name);
    *fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    int error = *fd < 0 ? errno : 0;
    /* somebody may have taken it for stale before it was locked */
    if (error == 0 && (lock(*fd) == EAGAIN || !is_still(folder_fd, name, *fd))) {
        close(*fd);
        *fd = -1;
        error = EEXIST;
    }
    if (error != 0) {
        gnomon_temporary_forget(*ticket);
        *ticket = -1;
    }
    return error;
}

int gnomon_temporary_beside(int folder_fd, const char *base, mode_t mode,
                            char name[GNOMON_TEMPORARY_NAME], int *ticket, int *fd)
{
    int error = EEXIST;
    *fd = *ticket = -1;
    /* hidden, and short enough beside any base */
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, GNOMON_TEMPORARY_NAME, ".%.200s.gnomon-%d.tmp", base, i);
        remove_stale(folder_fd, name);
    }
    for (int i = 0; i < 2 * NAMES && error == EEXIST; i++) {
        char unique[GNOMON_TEMPORARY_UNIQUE];
        gnomon_temporary_unique(unique);
        if (i < NAMES)
            snprintf(name, GNOMON_TEMPORARY_NAME, ".%.200s.gnomon-%d.tmp", base, i);
        else
            snprintf(name, GNOMON_TEMPORARY_NAME, ".%.200s.%s.tmp", base, unique);
        error = make_locked(folder_fd, name, mode, ticket, fd);
    }
    return error;
}

gnomon_status gnomon_temporary_nameless(gnomon_context *ctx, int *fd)
{
    return gnomon_temporary_nameless_in(ctx, NULL, fd);
}

gnomon_status gnomon_temporary_nameless_in(gnomon_context *ctx, const char *folder, int *fd)
{
    const char *which = folder != NULL ? "work folder" : "TMPDIR";
    if (folder == NULL) folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    /* one that never has a name is never left behind; not every file system has such files */
    *fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*fd >= 0) return GNOMON_OK;
    for (int attempt = 0;
         attempt < 16 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EEXIST); attempt++) {
        char unique[GNOMON_TEMPORARY_UNIQUE], path[PATH_MAX];
        gnomon_temporary_unique(unique);
        int n = snprintf(path, sizeof path, "%s/gnomon-%s.tmp", folder, unique);
        GNOMON_FAIL_IF(n < 0 || n >= (int)sizeof path, ctx, GNOMON_ERROR_IO,
                       "%s: '%s' is too long a name", which, folder);
        *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (*fd >= 0) {
            unlink(path);
            return GNOMON_OK;
        }
    }
    return gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": can't make a temporary file: %s",
                       folder, strerror(errno));
}
