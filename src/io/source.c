#include "io/source.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "io/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 2 * GNOMON_SOURCE_PEEK };

struct gnomon_source {
    gnomon_context *ctx;
    char *name;
    const gnomon_source_backend *backend;
    void *state;
    gnomon_source_kind kind;
    int64_t size, limit;
    int64_t offset; /* of the next byte to take; in [buffer_offset, buffer_offset + filled] */
    int64_t buffer_offset;
    size_t filled;
    unsigned char *buffer;
};

/* A file, a pipe, a device: anything with a descriptor. */
typedef struct file_state {
    int fd;
    bool regular;
    int64_t start; /* where the data begins: standard input may stand further on in a file */
} file_state;

/* A descriptor that somebody else made non-blocking is waited for. */
static bool wait_ready(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};
    return (errno == EAGAIN || errno == EWOULDBLOCK) && poll(&p, 1, -1) == 1;
}

static gnomon_status file_pull(gnomon_source *source, void *state, int64_t offset, void *data,
                               size_t size, size_t *got)
{
    const file_state *file = state;
    ssize_t n;
    if (size > ((size_t)1 << 30)) size = (size_t)1 << 30;
    do {
        n = file->regular ? pread(file->fd, data, size, (off_t)(file->start + offset))
                          : read(file->fd, data, size);
    } while (n < 0 && (errno == EINTR || wait_ready(file->fd)));
    if (n < 0)
        return gnomon_fail(source->ctx, GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") ": can't read at byte %lld: %s", source->name,
                           (long long)offset, strerror(errno));
    *got = (size_t)n;
    return GNOMON_OK;
}

static void file_close(gnomon_context *ctx, void *state)
{
    file_state *file = state;
    if (file == NULL) return;
    if (file->fd >= 0) close(file->fd);
    gnomon_free(ctx, file);
}

static const gnomon_source_backend file_backend = {.pull = file_pull, .close = file_close};

gnomon_status gnomon_source_open_backend(gnomon_context *ctx, const char *name,
                                         const gnomon_source_backend *backend, void *state,
                                         gnomon_source_kind kind, int64_t size, int64_t limit,
                                         gnomon_source **out)
{
    *out = NULL;
    gnomon_source *source = NULL;
    gnomon_status status = gnomon_alloc_zero(ctx, 1, sizeof *source, "a source", &source);
    if (status == GNOMON_OK) {
        source->ctx = ctx;
        status = gnomon_copy_text(ctx, name, &source->name);
    }
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, BUFFER, 1, "a read buffer", &source->buffer);
    if (status != GNOMON_OK) {
        if (source != NULL) gnomon_free(ctx, source->name);
        gnomon_free(ctx, source);
        backend->close(ctx, state);
        return status;
    }
    source->backend = backend;
    source->state = state;
    source->kind = kind;
    source->size = size;
    source->limit = limit;
    *out = source;
    return GNOMON_OK;
}

void gnomon_source_close(gnomon_source *source)
{
    if (source == NULL) return;
    gnomon_context *ctx = source->ctx;
    source->backend->close(ctx, source->state);
    gnomon_free(ctx, source->buffer);
    gnomon_free(ctx, source->name);
    gnomon_free(ctx, source);
}

static gnomon_status file_open(gnomon_context *ctx, const char *path, const char *name,
                               file_state *file, int64_t *size)
{
    bool standard = strcmp(path, "-") == 0;
    file->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                        : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file->fd < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return gnomon_fail(ctx, absent ? GNOMON_ERROR_NOT_FOUND : GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") ": can't open: %s", name, strerror(errno));
    }
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return gnomon_fail(ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": is a folder, not a file",
                           name);
    *size = -1;
    if (S_ISREG(st.st_mode)) {
        file->regular = true;
        if (standard) {
            off_t at = lseek(file->fd, 0, SEEK_CUR);
            file->start = at > 0 ? (int64_t)at : 0;
        }
        *size = (int64_t)st.st_size > file->start ? (int64_t)st.st_size - file->start : 0;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_source_open_file(gnomon_context *ctx, const char *path, gnomon_source **out)
{
    *out = NULL;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    file_state *file = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *file, "a source", &file));
    file->fd = -1;
    int64_t size = -1;
    gnomon_status status = file_open(ctx, path, name, file, &size);
    if (status != GNOMON_OK) {
        file_close(ctx, file);
        return status;
    }
    return gnomon_source_open_backend(ctx, name, &file_backend, file,
                                      file->regular ? GNOMON_SOURCE_RANDOM : GNOMON_SOURCE_STREAM,
                                      size, size >= 0 ? size : INT64_MAX, out);
}

gnomon_context *gnomon_source_context(const gnomon_source *source)
{
    return source->ctx;
}

const char *gnomon_source_name(const gnomon_source *source)
{
    return source->name;
}

gnomon_source_kind gnomon_source_get_kind(const gnomon_source *source)
{
    return source->kind;
}

bool gnomon_source_packed(const gnomon_source *source)
{
    return source->backend->unpacks;
}

int64_t gnomon_source_size(const gnomon_source *source)
{
    return source->size;
}

int64_t gnomon_source_limit(const gnomon_source *source)
{
    return source->limit;
}

int64_t gnomon_source_tell(const gnomon_source *source)
{
    return source->offset;
}

int gnomon_source_fd(const gnomon_source *source, int64_t *start)
{
    *start = 0;
    if (source->backend != &file_backend || source->kind != GNOMON_SOURCE_RANDOM) return -1;
    const file_state *file = source->state;
    *start = file->start;
    return file->fd;
}

static size_t available(const gnomon_source *source)
{
    return source->filled - (size_t)(source->offset - source->buffer_offset);
}

/* Makes the buffer hold at least want bytes from offset on, fewer only at the end. */
static gnomon_status fill(gnomon_source *source, size_t want)
{
    size_t have = available(source);
    if (have >= want) return GNOMON_OK;
    memmove(source->buffer, source->buffer + (source->filled - have), have);
    source->buffer_offset = source->offset;
    source->filled = have;
    while (source->filled < want) {
        size_t got = 0;
        GNOMON_TRY(source->backend->pull(
            source, source->state, source->buffer_offset + (int64_t)source->filled,
            source->buffer + source->filled, BUFFER - source->filled, &got));
        if (got == 0) break;
        source->filled += got;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_source_peek(gnomon_source *source, size_t want, const unsigned char **data,
                                 size_t *got)
{
    if (want > GNOMON_SOURCE_PEEK) want = GNOMON_SOURCE_PEEK;
    GNOMON_TRY(fill(source, want));
    *got = available(source);
    *data = source->buffer + (source->filled - *got);
    return GNOMON_OK;
}

void gnomon_source_consume(gnomon_source *source, size_t size)
{
    size_t have = available(source);
    source->offset += (int64_t)(size < have ? size : have);
}

/* A large part of a file goes to memory by several threads: one copies more slowly than memory
 * takes it, and pages that are new are made ready by those that write to them. */
enum { PIECE = 1 << 18, LEAST_PIECES = 4 };

typedef struct reading {
    const file_state *file;
    int64_t offset;
    char *data;
    int64_t size;
    atomic_bool failed;
} reading;

static void read_piece(void *arg, int64_t task, int worker)
{
    (void)worker;
    reading *r = arg;
    const int64_t end = gnomon_min((task + 1) * PIECE, r->size);
    for (int64_t at = task * PIECE; at < end;) {
        const ssize_t n = pread(r->file->fd, r->data + at, (size_t)(end - at),
                                (off_t)(r->file->start + r->offset + at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            atomic_store_explicit(&r->failed, true, memory_order_relaxed);
            return;
        }
        at += n;
    }
}

/* False where nothing was gained, or something failed: then the caller reads again by itself, and
 * reports what goes wrong. */
static bool read_by_threads(gnomon_source *source, int64_t offset, void *data, size_t size)
{
    if (source->backend != &file_backend || size < (size_t)LEAST_PIECES * PIECE) return false;
    if (gnomon_context_threads(source->ctx) == 1) return false;
    reading r = {.file = source->state, .offset = offset, .data = data, .size = (int64_t)size};
    if (!r.file->regular) return false;
    gnomon_parallel(source->ctx, (r.size - 1) / PIECE + 1, read_piece, &r);
    return !atomic_load(&r.failed);
}

/* Of 'size' bytes from where the source stands, those that there were when it was opened. */
static size_t known_bytes(const gnomon_source *source, size_t size)
{
    const int64_t left = source->size - source->offset;
    if (left <= 0) return 0;
    return (size_t)left < size ? (size_t)left : size;
}

gnomon_status gnomon_source_read(gnomon_source *source, void *data, size_t size, size_t *got)
{
    unsigned char *out = data;
    *got = 0;
    while (*got < size) {
        size_t have = available(source), left = size - *got;
        if (have == 0 && left >= BUFFER) { /* large: straight to where it belongs */
            size_t n = known_bytes(source, left);
            if (!read_by_threads(source, source->offset, out + *got, n))
                GNOMON_TRY(source->backend->pull(source, source->state, source->offset, out + *got,
                                                 left, &n));
            if (n == 0) break;
            source->offset += (int64_t)n;
            source->buffer_offset = source->offset;
            source->filled = 0;
            *got += n;
            continue;
        }
        if (have == 0) {
            GNOMON_TRY(fill(source, 1));
            have = available(source);
            if (have == 0) break;
        }
        size_t n = have < left ? have : left;
        memcpy(out + *got, source->buffer + (source->filled - have), n);
        source->offset += (int64_t)n;
        *got += n;
    }
    return GNOMON_OK;
}

static gnomon_status truncated(gnomon_source *source, int64_t offset, size_t size, size_t got,
                               const char *what)
{
    return gnomon_fail(
        source->ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG("%s") ": ends at byte %lld, inside %s (%lld bytes from byte %lld on)",
        source->name, (long long)(offset + (int64_t)got), what, (long long)size, (long long)offset);
}

gnomon_status gnomon_source_exact(gnomon_source *source, void *data, size_t size, const char *what)
{
    int64_t offset = source->offset;
    size_t got = 0;
    GNOMON_TRY(gnomon_source_read(source, data, size, &got));
    if (got < size) return truncated(source, offset, size, got, what);
    return GNOMON_OK;
}

gnomon_status gnomon_source_seek(gnomon_source *source, int64_t offset)
{
    if (offset >= source->buffer_offset &&
        offset <= source->buffer_offset + (int64_t)source->filled) {
        source->offset = offset;
        return GNOMON_OK;
    }
    if (source->kind != GNOMON_SOURCE_STREAM) {
        source->offset = source->buffer_offset = offset;
        source->filled = 0;
        return GNOMON_OK;
    }
    if (offset < source->offset)
        return gnomon_fail(
            source->ctx, GNOMON_ERROR_UNSUPPORTED,
            GNOMON_ARG("%s") ": is a stream at byte %lld and can't go back to byte %lld",
            source->name, (long long)source->offset, (long long)offset);
    while (source->offset < offset) {
        int64_t left = offset - source->offset;
        size_t have = available(source);
        if (have == 0) {
            GNOMON_TRY(fill(source, 1));
            have = available(source);
            if (have == 0) return truncated(source, source->offset, 0, 0, "a part to pass over");
        }
        source->offset += left < (int64_t)have ? left : (int64_t)have;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_source_read_at(gnomon_source *source, int64_t offset, void *data, size_t size,
                                    const char *what)
{
    unsigned char *out = data;
    size_t done = 0;
    if (read_by_threads(source, offset, data, size)) return GNOMON_OK;
    while (done < size) {
        size_t got = 0;
        GNOMON_TRY(source->backend->pull(source, source->state, offset + (int64_t)done, out + done,
                                         size - done, &got));
        if (got == 0) return truncated(source, offset, size, done, what);
        done += got;
    }
    return GNOMON_OK;
}

static gnomon_status copy_to(gnomon_source *source, int fd, int64_t *total)
{
    *total = 0;
    GNOMON_TRY(gnomon_source_seek(source, 0));
    for (;;) {
        const unsigned char *data;
        size_t got;
        GNOMON_TRY(gnomon_source_peek(source, 1, &data, &got));
        if (got == 0) return GNOMON_OK;
        for (size_t done = 0; done < got;) {
            ssize_t n = write(fd, data + done, got - done);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0)
                return gnomon_fail(source->ctx, GNOMON_ERROR_IO,
                                   GNOMON_ARG("%s") ": can't keep it in a temporary file: %s",
                                   source->name, strerror(errno));
            done += (size_t)n;
        }
        gnomon_source_consume(source, got);
        *total += (int64_t)got;
        GNOMON_TRY(gnomon_progress(source->ctx, "keeping the input", *total, -1));
    }
}

gnomon_status gnomon_source_make_random(gnomon_source *source)
{
    if (source->kind == GNOMON_SOURCE_RANDOM) return GNOMON_OK;
    gnomon_context *ctx = source->ctx;
    file_state *file = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *file, "a source", &file));
    file->fd = -1;
    file->regular = true;
    int64_t total = 0;
    gnomon_status status = gnomon_temporary_nameless(ctx, &file->fd);
    if (status == GNOMON_OK) status = copy_to(source, file->fd, &total);
    if (status != GNOMON_OK) {
        file_close(ctx, file);
        return status;
    }
    source->backend->close(ctx, source->state);
    source->backend = &file_backend;
    source->state = file;
    source->kind = GNOMON_SOURCE_RANDOM;
    source->size = source->limit = total;
    source->offset = source->buffer_offset = 0;
    source->filled = 0;
    return GNOMON_OK;
}
