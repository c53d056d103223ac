/* faults.c: a library to preload (LD_PRELOAD) that counts a program's calls of one kind and fails
 * the n-th of them.
 *
 *   FAULT_KIND   malloc, write, read, fsync, rename, close, open, mmap, truncate
 *   FAULT_AT     which call fails, from 1; 0: none, the calls are counted
 *   FAULT_EVER   1: that call and all later ones
 *   FAULT_ERRNO  the error's number; 0: write and read do a part of what is asked and succeed
 *   FAULT_COUNT  a file that gets the number of calls at the end
 *
 * Allocations that HDF5, OpenBLAS, its Fortran library and the CUDA plugin make for themselves are
 * neither counted nor failed: these end by a signal in their own code when memory is out, which no
 * caller can mend. Nor are those of the dynamic linker, which ends the process when there is none
 * for a library's thread-local data (the plugin's C++ library asks for its own at exit).
 *
 * Counting begins when the program's libraries have been initialised. Standard streams use the
 * C library's own write, which can't be replaced: fwrite, fflush and fclose count as writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#undef read /* macros of fortified headers */
#undef pread

/* glibc's own allocator, under the names that it keeps for such libraries */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

typedef enum kind { NONE, MALLOC, WRITE, READ, FSYNC, RENAME, CLOSE, OPEN, MMAP, TRUNCATE } kind;

static kind wanted;
static long at;
static int ever, number;
static atomic_long calls;
static char count_path[1024];

static void report(void)
{
    const kind was = wanted;
    wanted = NONE;
    if (was != NONE && count_path[0] != '\0') {
        FILE *file = fopen(count_path, "w");
        if (file != NULL) {
            fprintf(file, "%ld\n", atomic_load(&calls));
            fclose(file);
        }
    }
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"",       "malloc", "write", "read", "fsync",
                                        "rename", "close",  "open",  "mmap", "truncate"};
    const char *name = getenv("FAULT_KIND"), *place = getenv("FAULT_AT");
    const char *error = getenv("FAULT_ERRNO"), *all = getenv("FAULT_EVER");
    const char *path = getenv("FAULT_COUNT");
    if (name == NULL) return;
    if (path != NULL) snprintf(count_path, sizeof count_path, "%s", path);
    at = place != NULL ? atol(place) : 0;
    number = error != NULL ? atoi(error) : EIO;
    ever = all != NULL && all[0] == '1';
    atexit(report);
    for (int i = 1; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(name, names[i]) == 0) wanted = (kind)i;
    }
}

static int fails(kind what)
{
    if (wanted != what) return 0;
    const long call = atomic_fetch_add(&calls, 1) + 1;
    return at > 0 && (ever ? call >= at : call == at);
}

/* The function of that name that this library stands before. */
#define NEXT(type, name)                      \
    static type (*next)();                    \
    if (next == NULL) {                       \
        void *found = dlsym(RTLD_NEXT, name); \
        memcpy(&next, &found, sizeof next);   \
    }

static size_t part(size_t size)
{
    return size > 1 ? size / 2 : size;
}

/* ---- memory ---- */

static int allocation_fails(const void *caller)
{
    static const char *const spared[] = {"libhdf5",     "libopenblas",    "libgfortran",
                                         "libquadmath", "libgnomon_cuda", "ld-linux"};
    Dl_info info;
    if (wanted != MALLOC) return 0;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL) {
        for (size_t i = 0; i < sizeof spared / sizeof spared[0]; i++)
            if (strstr(info.dli_fname, spared[i]) != NULL) return 0;
    }
    return fails(MALLOC);
}

void *malloc(size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return errno = ENOMEM, NULL;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return errno = ENOMEM, NULL;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return errno = ENOMEM, NULL;
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return errno = ENOMEM, NULL;
    return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return errno = ENOMEM, NULL;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (allocation_fails(__builtin_return_address(0))) return ENOMEM;
    void *block = __libc_memalign(alignment, size);
    if (block == NULL) return ENOMEM;
    *out = block;
    return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    NEXT(void *, "mmap")
    if (fails(MMAP)) return errno = ENOMEM, MAP_FAILED;
    return next(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
    NEXT(void *, "mmap64")
    if (fails(MMAP)) return errno = ENOMEM, MAP_FAILED;
    return next(address, length, protection, flags, fd, offset);
}

/* ---- files ---- */

ssize_t write(int fd, const void *data, size_t size)
{
    NEXT(ssize_t, "write")
    if (fd != STDERR_FILENO && fails(WRITE)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    NEXT(ssize_t, "pwrite")
    if (fails(WRITE)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    NEXT(ssize_t, "pwrite64")
    if (fails(WRITE)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    NEXT(ssize_t, "writev")
    if (fd == STDERR_FILENO || !fails(WRITE)) return next(fd, parts, count);
    if (number != 0) return errno = number, -1;
    const struct iovec some = {parts[0].iov_base, part(parts[0].iov_len)};
    return next(fd, &some, 1);
}

size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    NEXT(size_t, "fwrite")
    if (file != stderr && fails(WRITE) && number != 0) return errno = number, (size_t)0;
    return next(data, size, count, file);
}

int fflush(FILE *file)
{
    NEXT(int, "fflush")
    if (file != stderr && fails(WRITE) && number != 0) return errno = number, EOF;
    return next(file);
}

int fclose(FILE *file)
{
    NEXT(int, "fclose")
    const int fail = fails(CLOSE);
    const int result = next(file);
    if (fail && number != 0) return errno = number, EOF;
    return result;
}

ssize_t read(int fd, void *data, size_t size)
{
    NEXT(ssize_t, "read")
    if (fails(READ)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
    NEXT(ssize_t, "pread")
    if (fails(READ)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size, offset);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
    NEXT(ssize_t, "pread64")
    if (fails(READ)) {
        if (number != 0) return errno = number, -1;
        size = part(size);
    }
    return next(fd, data, size, offset);
}

int fsync(int fd)
{
    NEXT(int, "fsync")
    if (fails(FSYNC)) return errno = number, -1;
    return next(fd);
}

int fdatasync(int fd)
{
    NEXT(int, "fdatasync")
    if (fails(FSYNC)) return errno = number, -1;
    return next(fd);
}

int rename(const char *from, const char *to)
{
    NEXT(int, "rename")
    if (fails(RENAME)) return errno = number, -1;
    return next(from, to);
}

int ftruncate(int fd, off_t size)
{
    NEXT(int, "ftruncate")
    if (fails(TRUNCATE)) return errno = number, -1;
    return next(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    NEXT(int, "ftruncate64")
    if (fails(TRUNCATE)) return errno = number, -1;
    return next(fd, size);
}

/* As the system does: the descriptor is closed, whatever is returned. */
int close(int fd)
{
    NEXT(int, "close")
    const int fail = fails(CLOSE);
    const int result = next(fd);
    if (fail && number != 0) return errno = number, -1;
    return result;
}

#define OPENS(name)                                                                    \
    int name(const char *path, int flags, ...)                                         \
    {                                                                                  \
        NEXT(int, #name)                                                               \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0; \
        va_end(rest);                                                                  \
        if (fails(OPEN)) return errno = number, -1;                                    \
        return next(path, flags, mode);                                                \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                 \
    int name(int folder, const char *path, int flags, ...)                             \
    {                                                                                  \
        NEXT(int, #name)                                                               \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0; \
        va_end(rest);                                                                  \
        if (fails(OPEN)) return errno = number, -1;                                    \
        return next(folder, path, flags, mode);                                        \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

FILE *fopen(const char *path, const char *mode)
{
    NEXT(FILE *, "fopen")
    if (fails(OPEN)) return errno = number, NULL;
    return next(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    NEXT(FILE *, "fopen64")
    if (fails(OPEN)) return errno = number, NULL;
    return next(path, mode);
}
