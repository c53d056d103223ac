/* Safe output: what becomes of targets, links, modes, pipes and full disks, and what is left. */
#include "io/format.h"
#include "io/sink.h"
#include "io/temporaries.h"
#include "io_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char target[128];

static void set_paths(const char *name, const char *of_target)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(target, sizeof target, "%s/%s", folder, of_target);
}

static void expect_text(const char *file, const char *text)
{
    char read_back[256] = "";
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    size_t n = fread(read_back, 1, sizeof read_back - 1, f);
    fclose(f);
    assert_int_equal(n, strlen(text));
    assert_string_equal(read_back, text);
}

static int files(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

static mode_t mode_of(const char *file)
{
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    return st.st_mode & 0777;
}

static gnomon_status write_text(const char *file, const char *text)
{
    return gnomon_write_text(ctx, file, text, strlen(text));
}

static void replacing(void **unused)
{
    (void)unused;
    set_paths("a", "a");
    mode_t old = umask(027);
    expect_ok(write_text(path, "one"));
    assert_int_equal(mode_of(path), 0640);
    umask(old);
    assert_int_equal(chmod(path, 0600), 0);
    expect_ok(write_text(path, "two")); /* a private file stays private */
    assert_int_equal(mode_of(path), 0600);
    expect_text(path, "two");
    assert_int_equal(files(), 1);
    unlink(path);
}

/* Called in place of the C library's: what could be read of the temporary file until then? */
static mode_t before_chmod;

int fchmod(int fd, mode_t mode)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    before_chmod = st.st_mode & 0777;
    return (int)syscall(SYS_fchmod, fd, mode);
}

static void never_wider_than_the_target(void **unused)
{
    (void)unused;
    static const mode_t modes[] = {0600, 0640, 0604, 0666};
    set_paths("a", "a");
    const mode_t old = umask(0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        expect_ok(write_text(path, "one"));
        assert_int_equal(chmod(path, modes[i]), 0);
        before_chmod = 07777;
        expect_ok(write_text(path, "two"));
        assert_int_equal(before_chmod & ~modes[i], 0);
        assert_int_equal(mode_of(path), modes[i]);
    }
    umask(old);
    unlink(path);
}

static void until_finished(void **unused)
{
    (void)unused;
    set_paths("a", "a");
    expect_ok(write_text(path, "before"));
    const gnomon_sink_options options = {.overwrite_ok = true};
    gnomon_sink *sink;
    for (int finish = 0; finish < 2; finish++) {
        expect_ok(gnomon_sink_open(ctx, path, &options, &sink));
        expect_ok(gnomon_sink_write(sink, "after", 5));
        assert_int_equal(gnomon_sink_tell(sink), 5);
        expect_text(path, "before");
        assert_int_equal(files(), 2);
        if (finish)
            expect_ok(gnomon_sink_finish(sink));
        else
            gnomon_sink_abort(sink);
        expect_text(path, finish ? "after" : "before");
        assert_int_equal(files(), 1);
    }
    unlink(path);
}

static void no_overwriting(void **unused)
{
    (void)unused;
    set_paths("a", "a");
    const gnomon_sink_options options = {.overwrite_ok = false};
    gnomon_sink *sink;
    expect_ok(gnomon_sink_open(ctx, path, &options, &sink));
    expect_ok(gnomon_sink_write(sink, "mine", 4));
    expect_ok(write_text(path, "theirs")); /* meanwhile */
    assert_int_equal(gnomon_sink_finish(sink), GNOMON_ERROR_IO);
    expect_text(path, "theirs");
    assert_int_equal(gnomon_sink_open(ctx, path, &options, &sink), GNOMON_ERROR_IO);
    assert_null(sink);
    unlink(path);
    expect_ok(gnomon_sink_open(ctx, path, &options, &sink));
    expect_ok(gnomon_sink_write(sink, "mine", 4));
    expect_ok(gnomon_sink_finish(sink));
    expect_text(path, "mine");
    assert_int_equal(files(), 1);
    unlink(path);
}

/* Files that are not there yet, and what would be written by a member's name. */
static void same_file_before_it_is(void **unused)
{
    (void)unused;
    static const struct {
        const char *a, *b;
        int same;
    } cases[] = {{"x", "x", 1},
                 {"x", "./x", 1},
                 {"x", "sub/../x", 1},
                 {"x", "y", 0},
                 {"x", "sub/x", 0},
                 {"sub/x", "sub//x", 1},
                 {"to_sub/x", "sub/x", 1},
                 {"x.npz:a", "x.npz:b", 1},
                 {"x.npz:a", "./x.npz", 1},
                 {"x:a", "x:b", 0},
                 {"nowhere/x", "nowhere/x", 0}};
    char a[PATH_MAX], b[PATH_MAX];
    set_paths("sub", "to_sub");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(symlink("sub", target), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(a, sizeof a, "%s/%s", folder, cases[i].a);
        snprintf(b, sizeof b, "%s/%s", folder, cases[i].b);
        if (gnomon_same_file(a, b) != cases[i].same || gnomon_same_file(b, a) != cases[i].same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
    unlink(target);
    rmdir(path);
}

static void links(void **unused)
{
    (void)unused;
    set_paths("link", "real");
    assert_int_equal(symlink("real", path), 0); /* to nothing yet */
    expect_ok(write_text(path, "one"));
    expect_text(target, "one");
    expect_ok(write_text(path, "two"));
    expect_text(target, "two");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(gnomon_same_file(path, target), 1);
    assert_int_equal(gnomon_same_file(path, "-"), 0);
    assert_int_equal(gnomon_same_file("-", "-"), 0);
    unlink(target);
    assert_int_equal(gnomon_same_file(path, target), 1); /* yet to be made, by a link to nothing */
    unlink(path);
    assert_int_equal(symlink("link", path), 0); /* to itself */
    assert_int_equal(write_text(path, "x"), GNOMON_ERROR_IO);
    unlink(path);
}

static void refused_targets(void **unused)
{
    (void)unused;
    assert_int_equal(write_text(folder, "x"), GNOMON_ERROR_IO);
    set_paths("none/a", "");
    assert_int_equal(write_text(path, "x"), GNOMON_ERROR_NOT_FOUND);
    assert_non_null(strstr(gnomon_last_error(ctx), path));
    make_text("a", "file");
    char below[160];
    snprintf(below, sizeof below, "%s/b", path);
    assert_int_equal(write_text(below, "x"), GNOMON_ERROR_NOT_FOUND);
    unlink(path);
    make_text("protected", "file");
    assert_int_equal(chmod(path, 0400), 0);
    if (access(path, W_OK) != 0) assert_int_equal(write_text(path, "x"), GNOMON_ERROR_IO);
    unlink(path);
    char longest[300];
    memset(longest, 'n', sizeof longest);
    longest[299] = '\0';
    char *name = malloc(strlen(folder) + 302);
    assert_non_null(name);
    sprintf(name, "%s/%s", folder, longest);
    assert_int_equal(write_text(name, "x"), GNOMON_ERROR_IO);
    name[strlen(folder) + 1 + 255] = '\0'; /* the longest that file systems take */
    expect_ok(write_text(name, "x"));
    unlink(name);
    free(name);
    assert_int_equal(files(), 0);
}

static void devices(void **unused)
{
    (void)unused;
    expect_ok(write_text("/dev/null", "x"));
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(write_text("/dev/full", "x"), GNOMON_ERROR_IO);
        assert_non_null(strstr(gnomon_last_error(ctx), strerror(ENOSPC)));
    }
}

static void *drain(void *data)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, data, 15);
    ((char *)data)[n > 0 ? n : 0] = '\0';
    close(fd);
    return NULL;
}

static void pipes(void **unused)
{
    (void)unused;
    set_paths("fifo", "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    char text[16] = "";
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, drain, text), 0);
    expect_ok(write_text(path, "through"));
    pthread_join(thread, NULL);
    assert_string_equal(text, "through");
    unlink(path);
    /* nobody reads any more */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    assert_int_equal(write_text(path, "x"), GNOMON_ERROR_IO);
    assert_non_null(strstr(gnomon_last_error(ctx), strerror(EPIPE)));
    signal(SIGPIPE, before);
    close(ends[1]);
}

enum { PARTS = 3000, PART = 500 };

typedef struct reading {
    int fd;
    int64_t count;
    char bytes[PARTS * PART];
} reading;

static void *read_all(void *arg)
{
    reading *r = arg;
    ssize_t n;
    while ((n = read(r->fd, r->bytes + r->count, sizeof r->bytes - (size_t)r->count)) > 0)
        r->count += n;
    return NULL;
}

/* More than one call takes, to a pipe that takes a part of what it is given. */
static void many_parts(void **unused)
{
    (void)unused;
    static char bytes[PARTS * PART];
    static struct iovec parts[PARTS];
    static reading r;
    int ends[2];
    char name[64];
    gnomon_sink *sink;
    pthread_t thread;
    size_t at = 6;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (struct iovec){bytes + at, i * 7 % PART};
        at += parts[i].iov_len;
    }
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    r.fd = ends[0];
    assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    expect_ok(gnomon_sink_open(ctx, name, &(gnomon_sink_options){0}, &sink));
    expect_ok(gnomon_sink_write(sink, bytes, 6)); /* held, and written first */
    expect_ok(gnomon_sink_write_parts(sink, parts, PARTS));
    expect_ok(gnomon_sink_write_parts(sink, NULL, 0));
    assert_int_equal(gnomon_sink_tell(sink), at);
    expect_ok(gnomon_sink_finish(sink));
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    assert_int_equal(r.count, at);
    assert_memory_equal(r.bytes, bytes, at);
}

/* A redirected file is written where it stands, not replaced. */
static void descriptors(void **unused)
{
    (void)unused;
    set_paths("a", "a");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "first ", 6), 6);
    char name[64];
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    expect_ok(write_text(name, "second "));
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    expect_ok(write_text(name, "third"));
    expect_text(path, "first second third");
    close(fd);
    assert_int_equal(files(), 1);
    unlink(path);
}

static void revisited(void **unused)
{
    (void)unused;
    set_paths("a", "a");
    const gnomon_sink_options options = {.overwrite_ok = true, .revisit = true};
    for (int direct = 0; direct < 2; direct++) {
        char name[128];
        int fd = -1;
        snprintf(name, sizeof name, "%s", path);
        if (direct) {
            fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            snprintf(name, sizeof name, "/dev/fd/%d", fd);
        }
        gnomon_sink *sink;
        expect_ok(gnomon_sink_open(ctx, name, &options, &sink));
        char back[12];
        expect_ok(gnomon_sink_write(sink, "??cde", 5));
        expect_ok(gnomon_sink_write_at(sink, 0, "ab", 2));
        assert_int_equal(gnomon_sink_tell(sink), 5);
        expect_ok(gnomon_sink_write(sink, "fg", 2));
        expect_ok(gnomon_sink_write_at(sink, 8, "i", 1));
        expect_ok(gnomon_sink_write_at(sink, 7, "h", 1));
        assert_int_equal(gnomon_sink_tell(sink), 9);
        expect_ok(gnomon_sink_read_at(sink, 1, back, 12));
        assert_memory_equal(back, "bcdefghi\0\0\0", 12);
        expect_ok(gnomon_sink_finish(sink));
        expect_text(path, "abcdefghi");
        if (fd >= 0) close(fd);
        unlink(path);
        assert_int_equal(files(), 0);
    }
}

/* Writes points until the file system says no. */
static void until_full(const char *format)
{
    static double data[100 * 100];
    for (int i = 0; i < 100 * 100; i++)
        data[i] = (i * 7919 % 1000) * 1.37e-3;
    char name[32];
    snprintf(name, sizeof name, "a.%s", format);
    set_paths(name, name);
    expect_ok(write_text(path, "before"));
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    options.compress = 0;
    gnomon_writer *writer;
    gnomon_matrix src = gnomon_matrix_rowmajor(data, GNOMON_F64, 100, 100);
    gnomon_dtype dtype = strcmp(format, "bvecs") == 0 ? GNOMON_U8 : GNOMON_F32;
    expect_ok(gnomon_writer_open(ctx, path, 2000, 100, dtype, &options, &writer));
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < 20 && status == GNOMON_OK; i++)
        status = gnomon_writer_rows(writer, &src);
    if (status != GNOMON_OK) assert_int_equal(status, GNOMON_ERROR_IO);
    assert_int_equal(gnomon_writer_finish(writer), GNOMON_ERROR_IO);
    expect_text(path, "before");
    assert_int_equal(files(), 1);
    unlink(path);
}

/* In a process of its own, because the limit stays. */
static void full_disk(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"npy", "fvecs", "bvecs", "fbin", "idx", "raw",
                                          "npz", "csv",   "tsv",   "mtx",  "h5"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!GNOMON_WITH_HDF5 && strcmp(formats[i], "h5") == 0) continue;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct rlimit limit = {100000, 100000};
            signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(0);
            until_full(formats[i]);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("%s: status %d", formats[i], status);
        assert_int_equal(files(), 0);
    }
}

/* What a signal handler does: the unfinished files go, the targets stay. */
static void abandoning(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a.npy", "b.csv", "c.npz", "d.tsv"};
    gnomon_writer *writers[4];
    set_paths("a.npy", "");
    expect_ok(write_text(path, "before"));
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        expect_ok(gnomon_writer_open(ctx, path, -1, 2, GNOMON_F32, NULL, &writers[i]));
    }
    assert_int_equal(files(), 5);
    errno = 77;
    gnomon_io_abandon_all();
    assert_int_equal(errno, 77);
    assert_int_equal(files(), 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gnomon_writer_finish(writers[i]), GNOMON_ERROR_IO);
    set_paths("a.npy", "");
    expect_text(path, "before");
    unlink(path);
}

/* More unfinished files than are noted for the handler: they still end as they should. */
static void many(void **unused)
{
    (void)unused;
    enum { COUNT = 100 };
    gnomon_sink *sinks[COUNT];
    const gnomon_sink_options options = {.overwrite_ok = true};
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        expect_ok(gnomon_sink_open(ctx, path, &options, &sinks[i]));
    }
    for (int i = 0; i < COUNT; i += 2)
        gnomon_sink_abort(sinks[i]);
    for (int i = 1; i < COUNT; i += 2)
        expect_ok(gnomon_sink_finish(sinks[i]));
    assert_int_equal(files(), COUNT / 2);
    for (int i = 1; i < COUNT; i += 2) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        unlink(path);
    }
}

static void compressed_names(void **unused)
{
    (void)unused;
    static const char *const names[][2] = {{"a.csv.gz", "gzip"}, {"a.csv.zst", "zstd"}};
    gnomon_writer *writer;
    for (int i = 0; i < 2; i++) {
        set_paths(names[i][0], "");
        assert_int_equal(gnomon_writer_open(ctx, path, 1, 1, GNOMON_F32, NULL, &writer),
                         GNOMON_ERROR_ARGUMENT);
        assert_non_null(strstr(gnomon_last_error(ctx), names[i][1]));
    }
}

/* A file that had a name for a moment would be left by a process that is killed in that moment. */
static void nameless(void **unused)
{
    (void)unused;
    const int plain = open(folder, O_TMPFILE | O_RDWR, 0600);
    if (plain < 0) skip(); /* a file system without such files */
    close(plain);
    const char *was = getenv("TMPDIR");
    char *kept = was == NULL ? NULL : strdup(was), event[4096];
    int fd = -1;
    const int names = inotify_init1(IN_NONBLOCK);
    assert_true(names >= 0 && inotify_add_watch(names, folder, IN_CREATE) >= 0);
    setenv("TMPDIR", folder, 1);
    expect_ok(gnomon_temporary_nameless(ctx, &fd));
    assert_int_equal(write(fd, "abc", 3), 3);
    assert_int_equal(read(names, event, sizeof event), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(files(), 0);
    close(fd);
    set_paths("not-there", "");
    setenv("TMPDIR", path, 1);
    assert_int_equal(gnomon_temporary_nameless(ctx, &fd), GNOMON_ERROR_IO);
    assert_non_null(strstr(gnomon_last_error(ctx), "not-there"));
    if (kept == NULL)
        unsetenv("TMPDIR");
    else
        setenv("TMPDIR", kept, 1);
    free(kept);
    close(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replacing),
        cmocka_unit_test(never_wider_than_the_target),
        cmocka_unit_test(until_finished),
        cmocka_unit_test(no_overwriting),
        cmocka_unit_test(same_file_before_it_is),
        cmocka_unit_test(links),
        cmocka_unit_test(refused_targets),
        cmocka_unit_test(devices),
        cmocka_unit_test(pipes),
        cmocka_unit_test(many_parts),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(revisited),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(abandoning),
        cmocka_unit_test(many),
        cmocka_unit_test(compressed_names),
        cmocka_unit_test(nameless),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
