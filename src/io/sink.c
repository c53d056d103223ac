#include "io/sink.h"

#include "base/memory.h"
#include "io/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 256 * 1024, LINKS = 40 };

struct gnomon_sink {
    gnomon_context *ctx;
    char *name; /* the path as given, for texts */
    gnomon_sink_options options;
    int fd;               /* what is written: the temporary file, or the target itself */
    int direct_fd;        /* where a held file goes at the end, else -1 */
    int folder_fd;        /* of the target, when a temporary file will replace it, else -1 */
    int ticket;           /* of the temporary file's name */
    bool created;         /* the temporary file is there */
    char *target;         /* name in folder_fd */
    char *temporary;      /* name in folder_fd, NULL once renamed or removed */
    gnomon_status failed; /* of an earlier call */
    int64_t flushed;      /* bytes that reached fd in order */
    int64_t end;          /* the furthest byte written */
    size_t pending;
    unsigned char *buffer;
};

static gnomon_status io_error(gnomon_sink *sink, const char *doing)
{
    int error = errno;
    return gnomon_fail(sink->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": can't %s: %s", sink->name,
                       doing, strerror(error));
}

/* "/dev/stdout", "/dev/fd/3", "/proc/self/fd/3": the descriptor, else -1. Opening these anew
 * would lose the place and the append mode of a redirected file. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0) continue;
        char *end;
        errno = 0;
        long fd = strtol(path + length, &end, 10);
        if (end != path + length && *end == '\0' && errno == 0 && fd >= 0 && fd <= INT_MAX)
            return (int)fd;
    }
    return -1;
}

/* Follows symbolic links from path on, also to a file that is not there yet. *descriptor is
 * set when they lead to one of this process. */
static gnomon_status follow_links(gnomon_sink *sink, const char *path, char target[PATH_MAX],
                                  int *descriptor)
{
    gnomon_context *ctx = sink->ctx;
    GNOMON_FAIL_IF(strlen(path) >= PATH_MAX, ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s",
                   sink->name, strerror(ENAMETOOLONG));
    strcpy(target, path);
    for (int i = 0; i < LINKS; i++) {
        char link[PATH_MAX];
        *descriptor = named_descriptor(target);
        if (*descriptor >= 0) return GNOMON_OK;
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0) return GNOMON_OK; /* no link, or nothing there */
        link[n] = '\0';
        const char *slash = strrchr(target, '/');
        size_t folder = link[0] == '/' || slash == NULL ? 0 : (size_t)(slash - target) + 1;
        GNOMON_FAIL_IF(folder + (size_t)n >= PATH_MAX, ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s") ": %s", sink->name, strerror(ENAMETOOLONG));
        memcpy(target + folder, link, (size_t)n + 1);
    }
    return gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s", sink->name, strerror(ELOOP));
}

/* The target is written itself; when the writer goes back, a held file is between. */
static gnomon_status open_direct(gnomon_sink *sink, int fd)
{
    if (fd < 0) return io_error(sink, "open");
    sink->fd = fd;
    if (!sink->options.revisit) return GNOMON_OK;
    sink->direct_fd = fd;
    sink->fd = -1;
    return gnomon_temporary_nameless(sink->ctx, &sink->fd);
}

/* The old file's group and mode; not ours to fail on when the system refuses. A group that it can't
 * have gets no more than everybody. */
static void parse_mode(int fd, const struct stat *old)
{
    struct stat st;
    mode_t mode = old->st_mode & 0777;
    const bool other_group = fstat(fd, &st) != 0 || st.st_gid != old->st_gid;
    if (other_group && fchown(fd, (uid_t)-1, old->st_gid) != 0) mode &= 0707 | (mode & 07) << 3;
    if (fchmod(fd, mode) != 0) errno = 0;
}

static gnomon_status open_temporary(gnomon_sink *sink, const char *target, const struct stat *old)
{
    gnomon_context *ctx = sink->ctx;
    const char *slash = strrchr(target, '/');
    const char *base = slash != NULL ? slash + 1 : target;
    GNOMON_FAIL_IF(base[0] == '\0', ctx, GNOMON_ERROR_IO,
                   GNOMON_ARG("%s") ": is a folder, not a file", sink->name);
    size_t folder_length = slash != NULL ? (size_t)(slash - target) + 1 : 2;
    char folder[PATH_MAX];
    memcpy(folder, slash != NULL ? target : "./", folder_length);
    folder[folder_length] = '\0';

    GNOMON_TRY(gnomon_copy_text(ctx, base, &sink->target));
    sink->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sink->folder_fd < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return gnomon_fail(ctx, absent ? GNOMON_ERROR_NOT_FOUND : GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") ": can't open the folder '%s': %s", sink->name, folder,
                           strerror(errno));
    }
    GNOMON_TRY(gnomon_alloc(ctx, GNOMON_TEMPORARY_NAME, 1, "a file name", &sink->temporary));
    /* a private file stays private at every moment */
    const mode_t mode = old != NULL ? old->st_mode & 0600 : 0666;
    const int error = gnomon_temporary_beside(sink->folder_fd, base, mode, sink->temporary,
                                              &sink->ticket, &sink->fd);
    errno = error;
    if (error != 0) return io_error(sink, "make a temporary file beside it");
    sink->created = true;
    if (old != NULL) parse_mode(sink->fd, old);
    return GNOMON_OK;
}

static gnomon_status open_target(gnomon_sink *sink, const char *path)
{
    if (strcmp(path, "-") == 0) return open_direct(sink, fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    char target[PATH_MAX];
    int descriptor = -1;
    GNOMON_TRY(follow_links(sink, path, target, &descriptor));
    if (descriptor >= 0) return open_direct(sink, fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    struct stat st;
    if (stat(target, &st) != 0) {
        if (errno != ENOENT) {
            gnomon_status status = errno == ENOTDIR ? GNOMON_ERROR_NOT_FOUND : GNOMON_ERROR_IO;
            return gnomon_fail(sink->ctx, status, GNOMON_ARG("%s") ": can't open: %s", sink->name,
                               strerror(errno));
        }
        return open_temporary(sink, target, NULL);
    }
    GNOMON_FAIL_IF(S_ISDIR(st.st_mode), sink->ctx, GNOMON_ERROR_IO,
                   GNOMON_ARG("%s") ": is a folder, not a file", sink->name);
    if (!S_ISREG(st.st_mode))
        return open_direct(sink, open(target, O_WRONLY | O_CLOEXEC | O_NOCTTY));
    GNOMON_FAIL_IF(!sink->options.overwrite_ok, sink->ctx, GNOMON_ERROR_IO,
                   GNOMON_ARG("%s") ": exists and is not to be overwritten", sink->name);
    /* a rename would pass over the protection of a file that may not be written */
    if (access(target, W_OK) != 0) return io_error(sink, "write to it");
    return open_temporary(sink, target, &st);
}

gnomon_status gnomon_sink_open(gnomon_context *ctx, const char *path,
                               const gnomon_sink_options *options, gnomon_sink **out)
{
    *out = NULL;
    gnomon_sink *sink = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *sink, "a sink", &sink));
    sink->ctx = ctx;
    sink->options = *options;
    sink->fd = sink->direct_fd = sink->folder_fd = sink->ticket = -1;
    gnomon_status status =
        gnomon_copy_text(ctx, strcmp(path, "-") == 0 ? "standard output" : path, &sink->name);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, BUFFER, 1, "a write buffer", &sink->buffer);
    if (status == GNOMON_OK) status = open_target(sink, path);
    if (status != GNOMON_OK) {
        gnomon_sink_abort(sink);
        return status;
    }
    *out = sink;
    return GNOMON_OK;
}

const char *gnomon_sink_name(const gnomon_sink *sink)
{
    return sink->name;
}

int64_t gnomon_sink_tell(const gnomon_sink *sink)
{
    int64_t at = sink->flushed + (int64_t)sink->pending;
    return at > sink->end ? at : sink->end;
}

/* A descriptor that somebody else made non-blocking is waited for. */
static bool wait_ready(int fd)
{
    struct pollfd p = {fd, POLLOUT, 0};
    return (errno == EAGAIN || errno == EWOULDBLOCK) && poll(&p, 1, -1) == 1;
}

static gnomon_status put(gnomon_sink *sink, int fd, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    while (size > 0) {
        ssize_t n = write(fd, bytes, size > ((size_t)1 << 30) ? (size_t)1 << 30 : size);
        if (n < 0 && (errno == EINTR || wait_ready(fd))) continue;
        if (n < 0) return sink->failed = io_error(sink, "write");
        bytes += n;
        size -= (size_t)n;
    }
    return GNOMON_OK;
}

static gnomon_status flush(gnomon_sink *sink)
{
    if (sink->failed != GNOMON_OK)
        return gnomon_fail(sink->ctx, sink->failed,
                           GNOMON_ARG("%s") ": an earlier write to it failed", sink->name);
    if (sink->pending == 0) return GNOMON_OK;
    GNOMON_TRY(put(sink, sink->fd, sink->buffer, sink->pending));
    sink->flushed += (int64_t)sink->pending;
    sink->pending = 0;
    return GNOMON_OK;
}

gnomon_status gnomon_sink_write(gnomon_sink *sink, const void *data, size_t size)
{
    if (sink->failed == GNOMON_OK && size < BUFFER - sink->pending) {
        if (size > 0) memcpy(sink->buffer + sink->pending, data, size);
        sink->pending += size;
        return GNOMON_OK;
    }
    GNOMON_TRY(flush(sink));
    if (size < BUFFER) {
        memcpy(sink->buffer, data, size);
        sink->pending = size;
        return GNOMON_OK;
    }
    GNOMON_TRY(put(sink, sink->fd, data, size));
    sink->flushed += (int64_t)size;
    return GNOMON_OK;
}

gnomon_status gnomon_sink_write_parts(gnomon_sink *sink, struct iovec *parts, int count)
{
    GNOMON_TRY(flush(sink));
    while (count > 0) {
        ssize_t n = writev(sink->fd, parts, count < IOV_MAX ? count : IOV_MAX);
        if (n < 0 && (errno == EINTR || wait_ready(sink->fd))) continue;
        if (n < 0) return sink->failed = io_error(sink, "write");
        sink->flushed += (int64_t)n;
        for (; count > 0 && (size_t)n >= parts->iov_len; parts++, count--)
            n -= (ssize_t)parts->iov_len;
        if (count == 0) break;
        parts->iov_base = (char *)parts->iov_base + n;
        parts->iov_len -= (size_t)n;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_sink_printf(gnomon_sink *sink, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    GNOMON_FAIL_IF(n < 0 || n >= (int)sizeof text, sink->ctx, GNOMON_ERROR_INTERNAL,
                   GNOMON_ARG("%s") ": a line to write is too long", sink->name);
    return gnomon_sink_write(sink, text, (size_t)n);
}

gnomon_status gnomon_sink_write_at(gnomon_sink *sink, int64_t offset, const void *data, size_t size)
{
    GNOMON_TRY(flush(sink));
    const unsigned char *bytes = data;
    while (size > 0) {
        ssize_t n = pwrite(sink->fd, bytes, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sink->failed = io_error(sink, "write");
        bytes += n;
        size -= (size_t)n;
        offset += (int64_t)n;
        if (offset > sink->end) sink->end = offset;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_sink_read_at(gnomon_sink *sink, int64_t offset, void *data, size_t size)
{
    if (sink->failed == GNOMON_OK) GNOMON_TRY(flush(sink));
    unsigned char *bytes = data;
    while (size > 0) {
        ssize_t n = pread(sink->fd, bytes, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sink->failed = io_error(sink, "read back what was written");
        if (n == 0) { /* a gap at the end */
            memset(bytes, 0, size);
            return GNOMON_OK;
        }
        bytes += n;
        size -= (size_t)n;
        offset += n;
    }
    return GNOMON_OK;
}

/* Sends the held file on to where it belongs. */
static gnomon_status release_held(gnomon_sink *sink)
{
    for (off_t offset = 0;;) {
        ssize_t n = pread(sink->fd, sink->buffer, BUFFER, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return io_error(sink, "read back its temporary file");
        if (n == 0) return GNOMON_OK;
        GNOMON_TRY(put(sink, sink->direct_fd, sink->buffer, (size_t)n));
        offset += n;
    }
}

static gnomon_status close_checked(gnomon_sink *sink, int *fd)
{
    int closing = *fd;
    *fd = -1;
    /* EINTR: the descriptor is closed all the same */
    if (closing >= 0 && close(closing) != 0 && errno != EINTR) return io_error(sink, "close");
    return GNOMON_OK;
}

/* The temporary file takes the target's place. */
static gnomon_status rename_temporary(gnomon_sink *sink)
{
    /* with overwrite_ok false something may have come into being meanwhile */
    const int folder = sink->folder_fd;
    if ((sink->options.overwrite_ok
             ? renameat(folder, sink->temporary, folder, sink->target)
             : renameat2(folder, sink->temporary, folder, sink->target, RENAME_NOREPLACE)) != 0)
        return io_error(sink, "put the finished file in its place");
    gnomon_temporary_forget(sink->ticket);
    sink->ticket = -1;
    sink->created = false;
    return GNOMON_OK;
}

static gnomon_status replace_target(gnomon_sink *sink)
{
    if (fsync(sink->fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        return io_error(sink, "sync");
    /* closing can still fail; the lock is kept until the name is gone, since an unlocked
     * file would count as one that a dead process left */
    int lock = fcntl(sink->fd, F_DUPFD_CLOEXEC, 0);
    gnomon_status status = lock < 0 ? io_error(sink, "sync") : close_checked(sink, &sink->fd);
    if (status == GNOMON_OK) status = rename_temporary(sink);
    if (lock >= 0) close(lock);
    /* The data is safe and in place: a file system that can't sync a folder is no failure. */
    if (status == GNOMON_OK && fsync(sink->folder_fd) != 0) errno = 0;
    return status;
}

gnomon_status gnomon_sink_finish(gnomon_sink *sink)
{
    gnomon_status status = flush(sink);
    if (status == GNOMON_OK) {
        if (sink->created) {
            status = replace_target(sink);
        } else if (sink->direct_fd >= 0) {
            status = release_held(sink);
            if (status == GNOMON_OK) status = close_checked(sink, &sink->direct_fd);
        } else {
            status = close_checked(sink, &sink->fd);
        }
    }
    gnomon_sink_abort(sink); /* what is left: nothing but memory when all went well */
    return status;
}

void gnomon_sink_abort(gnomon_sink *sink)
{
    if (sink == NULL) return;
    gnomon_context *ctx = sink->ctx;
    /* removed while its lock is held: without it the name may be another's */
    if (sink->created) unlinkat(sink->folder_fd, sink->temporary, 0);
    if (sink->fd >= 0) close(sink->fd);
    if (sink->direct_fd >= 0) close(sink->direct_fd);
    gnomon_temporary_forget(sink->ticket);
    if (sink->folder_fd >= 0) close(sink->folder_fd);
    gnomon_free(ctx, sink->temporary);
    gnomon_free(ctx, sink->target);
    gnomon_free(ctx, sink->buffer);
    gnomon_free(ctx, sink->name);
    gnomon_free(ctx, sink);
}

gnomon_status gnomon_sink_stat(const gnomon_sink *sink, struct stat *st)
{
    GNOMON_FAIL_IF(fstat(sink->fd, st) != 0, sink->ctx, GNOMON_ERROR_IO,
                   GNOMON_ARG("%s") ": its status can't be read: %s", sink->name, strerror(errno));
    return GNOMON_OK;
}
