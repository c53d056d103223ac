/* The file that an index was opened from, and who may replace it: one writer at a time, and only
 * while the file is still the one that was opened. The lock is flock's on the file itself; a writer
 * that takes it on a file which was replaced meanwhile finds that out by device and inode, so that
 * no addition is lost. An index that is written over another file locks that file too: otherwise an
 * addition to it that ends at the same moment could replace the new index by the old one. */
#include "lsh/file/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

gnomon_status gnomon_origin_open(gnomon_context *ctx, const char *path, const gnomon_layout *layout,
                                 gnomon_origin **out)
{
    *out = NULL;
    char *resolved = realpath(path, NULL);
    if (!resolved) return GNOMON_OK; /* removed meanwhile: nobody can replace it */
    gnomon_status status = gnomon_alloc_zero(ctx, 1, sizeof **out, "an index's file", out);
    if (status == GNOMON_OK) {
        (*out)->device = layout->device;
        (*out)->inode = layout->inode;
        status = gnomon_copy_text(ctx, resolved, &(*out)->path);
    }
    free(resolved);
    return status;
}

static gnomon_status busy(gnomon_context *ctx, const char *path)
{
    return gnomon_fail(ctx, GNOMON_ERROR_BUSY,
                       GNOMON_ARG("%s") ": is being changed by another process or thread", path);
}

static gnomon_status changed(gnomon_context *ctx, const char *path)
{
    return gnomon_fail(
        ctx, GNOMON_ERROR_BUSY,
        GNOMON_ARG(
            "%s") ": was changed by another process or thread since it was opened; open it again",
        path);
}

gnomon_status gnomon_origin_still(gnomon_context *ctx, const gnomon_origin *origin)
{
    struct stat st;
    const bool there = stat(origin->path, &st) == 0;
    if (there && st.st_dev == origin->device && st.st_ino == origin->inode) return GNOMON_OK;
    return changed(ctx, origin->path);
}

gnomon_status gnomon_origin_lock(gnomon_context *ctx, const gnomon_origin *origin, const char *path,
                                 int *lock)
{
    *lock = -1;
    if (!origin) return GNOMON_OK;
    char *resolved = realpath(path, NULL);
    const bool same = resolved && strcmp(resolved, origin->path) == 0;
    free(resolved);
    if (!same) return GNOMON_OK;
    const int fd = open(origin->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return changed(ctx, path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int why = errno;
        close(fd);
        if (why == EWOULDBLOCK) return busy(ctx, path);
        return gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": can't lock it: %s", path,
                           strerror(why));
    }
    struct stat st;
    gnomon_status status = gnomon_origin_still(ctx, origin);
    if (status == GNOMON_OK &&
        (fstat(fd, &st) != 0 || st.st_dev != origin->device || st.st_ino != origin->inode))
        status = changed(ctx, path);
    if (status != GNOMON_OK) {
        close(fd);
        return status;
    }
    *lock = fd;
    return GNOMON_OK;
}

gnomon_status gnomon_target_lock(gnomon_context *ctx, const char *path, int *lock)
{
    *lock = -1;
    if (strcmp(path, "-") == 0) return GNOMON_OK; /* standard output */
    for (;;) {
        /* A named pipe must not wait for its other end. */
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) return GNOMON_OK; /* writing tells what is wrong, if anything is */
        struct stat locked, there;
        if (fstat(fd, &locked) != 0 || !S_ISREG(locked.st_mode)) {
            close(fd);
            return GNOMON_OK;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            /* Where files can't be locked, no other writer has locked it either. */
            const bool held = errno == EWOULDBLOCK;
            close(fd);
            return held ? busy(ctx, path) : GNOMON_OK;
        }
        if (stat(path, &there) == 0 && there.st_dev == locked.st_dev &&
            there.st_ino == locked.st_ino) {
            *lock = fd;
            return GNOMON_OK;
        }
        close(fd); /* replaced between the two calls */
    }
}
