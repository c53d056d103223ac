#include "verbs/join/join_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* LIMIT: bytes of FILE; two paths and two names of members, escaped, stay far below it */
enum { BATCH = 4096, VERSION = 2, LIMIT = 1 << 20 };
static const double save_interval = 2; /* seconds */

/* The first bytes of FILE.pairs: its version, and the byte order and size of what follows. */
typedef struct header {
    char magic[16];
    uint64_t order;
    uint64_t pair_bytes;
} header;

static const header own_header = {"gnomon pairs 2\n", UINT64_C(0x0102030405060708),
                                  sizeof(gnomon_pair)};

static int fail_file(cli_checkpoint *c, const char *path, int number)
{
    return cli_fail(c->app, CLI_EXIT_FILE, "%s: %s", path, strerror(number));
}

/* ---- the checksum ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ (hash >> 31);
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0;
    for (; *text != '\0'; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

static uint64_t hash_pairs(uint64_t hash, const gnomon_pair *pairs, int64_t count)
{
    for (int64_t at = 0; at < count; at++) {
        uint64_t distance;
        memcpy(&distance, &pairs[at].distance, sizeof distance);
        hash = mix(mix(mix(hash, (uint64_t)pairs[at].i), (uint64_t)pairs[at].j), distance);
    }
    return hash;
}

/* Of all that FILE says. */
static void checksum(const cli_checkpoint *c, char text[17])
{
    const uint64_t sum = mix(mix(c->complete_hash, (uint64_t)c->complete), (uint64_t)c->rows_done);
    snprintf(text, 17, "%016" PRIx64, sum);
}

/* ---- reading ---- */

static int damaged(cli_checkpoint *c)
{
    return cli_fail(c->app, CLI_EXIT_DATA,
                    "%s and %s are damaged or were changed: remove both, or use another file",
                    c->path, c->pairs_path);
}

/* What is open as fd, up to its end. */
static int read_whole(cli_checkpoint *c, int fd, char **text, size_t *length)
{
    *text = malloc(LIMIT);
    *length = 0;
    if (*text == NULL) return cli_fail(c->app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    while (*length < LIMIT) {
        const ssize_t got = read(fd, *text + *length, LIMIT - *length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_file(c, c->path, errno);
        if (got == 0) return -1;
        *length += (size_t)got;
    }
    return cli_fail(c->app, CLI_EXIT_DATA, "%s is no checkpoint of gnomon join", c->path);
}

/* Opens for reading, or for both, what is a file and no link; *fd is -1 when nothing is there. */
static int open_plain(cli_checkpoint *c, const char *path, int flags, int *fd)
{
    struct stat file;
    *fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (*fd < 0 && errno == ENOENT) return -1;
    if (*fd < 0 && errno == ELOOP)
        return cli_fail(c->app, CLI_EXIT_FILE, "%s: is a link, which a checkpoint must not be",
                        path);
    if (*fd < 0) return fail_file(c, path, errno);
    if (fstat(*fd, &file) == 0 && S_ISREG(file.st_mode)) return -1;
    close(*fd);
    *fd = -1;
    return cli_fail(c->app, CLI_EXIT_FILE, "%s: is no plain file, which a checkpoint must be",
                    path);
}

/* Says in what the join of FILE is another. */
static int another(cli_checkpoint *c, json_t *theirs)
{
    const char *key;
    json_t *value;
    json_object_foreach(c->identity, key, value)
    {
        json_t *other = json_object_get(theirs, key);
        if (other != NULL && json_equal(value, other)) continue;
        const int flags = JSON_ENCODE_ANY | JSON_COMPACT;
        char *mine = cli_json_text(value, flags);
        char *kept = cli_json_text(other, flags);
        const int code = cli_fail(c->app, CLI_EXIT_DATA,
                                  "%s is the checkpoint of another join: there %s is %s, here %s; "
                                  "use another file, or remove it and %s",
                                  c->path, key, kept != NULL ? kept : "not given",
                                  mine != NULL ? mine : "another", c->pairs_path);
        free(mine);
        free(kept);
        return code;
    }
    return damaged(c);
}

/* What FILE says of the same join: its rows and pairs, and their checksum. -1 or an exit code. */
static int parse_state(cli_checkpoint *c, json_t *state, char sum[17])
{
    json_int_t version = 0, rows = -1, pairs = -1;
    json_t *identity = NULL;
    const char *text = "";
    if (!json_is_object(state) || json_object_get(state, "gnomon join") == NULL)
        return cli_fail(c->app, CLI_EXIT_DATA, "%s is no checkpoint of gnomon join", c->path);
    if (json_unpack(state, "{s:I}", "gnomon join", &version) != 0 || version != VERSION)
        return cli_fail(c->app, CLI_EXIT_DATA,
                        "%s is a checkpoint of another version of gnomon join: remove it and %s, "
                        "or use another file",
                        c->path, c->pairs_path);
    if (json_unpack(state, "{s:o, s:I, s:I, s:s}", "identity", &identity, "rows_done", &rows,
                    "pairs", &pairs, "checksum", &text) != 0 ||
        !json_is_object(identity) || strlen(text) != 16)
        return damaged(c);
    if (!json_equal(identity, c->identity)) return another(c, identity);
    if (rows < 0 || rows > c->limits.rows || pairs < 0 ||
        pairs > (INT64_MAX - (int64_t)sizeof(header)) / (int64_t)sizeof(gnomon_pair))
        return damaged(c);
    c->rows_done = rows;
    c->complete = c->written = pairs;
    memcpy(sum, text, 17);
    return -1;
}

static int read_state(cli_checkpoint *c, int fd, char sum[17])
{
    char *text = NULL;
    size_t length = 0;
    int code = read_whole(c, fd, &text, &length);
    if (code < 0) {
        json_t *state = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
        code = parse_state(c, state, sum);
        json_decref(state);
    }
    free(text);
    return code;
}

/* ---- FILE.pairs ---- */

static int64_t offset_of(int64_t pairs)
{
    return (int64_t)sizeof(header) + pairs * (int64_t)sizeof(gnomon_pair);
}

/* Reads size bytes or says what kept it from it: 0, an errno, or -1 for the file's end. */
static int read_at(int fd, void *data, size_t size, int64_t offset)
{
    char *bytes = data;
    while (size > 0) {
        const ssize_t got = pread(fd, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return -1;
        bytes += got;
        size -= (size_t)got;
        offset += got;
    }
    return 0;
}

static int write_at(int fd, const void *data, size_t size, int64_t offset)
{
    const char *bytes = data;
    while (size > 0) {
        const ssize_t put = pwrite(fd, bytes, size, (off_t)offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        bytes += put;
        size -= (size_t)put;
        offset += put;
    }
    return 0;
}

/* Whether the pair can follow 'last' in the output of this join. Distances have roundings. */
static int is_pair(const cli_pair_limits *l, const gnomon_pair *last, const gnomon_pair *p)
{
    const double slack = 1e-9;
    const double limit = l->threshold + (l->at_least ? -slack : slack) * (1 + fabs(l->threshold));
    if (p->i < 0 || p->i >= l->rows || p->j < (l->self ? p->i + 1 : 0) || p->j >= l->cols) return 0;
    if (p->i < last->i || (p->i == last->i && p->j <= last->j)) return 0;
    return l->at_least ? p->distance >= limit : p->distance >= -slack && p->distance <= limit;
}

/* Reads and checks the complete pairs and hands them to sink (may be NULL); puts their hash
 * into *hash. -1 or an exit code. */
static int walk(cli_checkpoint *c, gnomon_join_sink sink, void *user, uint64_t *hash)
{
    gnomon_pair pairs[BATCH], last = {0, -1, 0};
    int64_t done = 0;
    *hash = c->seed;
    do {
        const int64_t some = c->complete - done < BATCH ? c->complete - done : BATCH;
        const int number = read_at(c->fd, pairs, (size_t)some * sizeof *pairs, offset_of(done));
        if (number > 0) return fail_file(c, c->pairs_path, number);
        if (number < 0) return damaged(c);
        for (int64_t at = 0; at < some; at++) {
            if (!is_pair(&c->limits, &last, &pairs[at]) || pairs[at].i >= c->rows_done)
                return damaged(c);
            last = pairs[at];
        }
        *hash = hash_pairs(*hash, pairs, some);
        done += some;
        const gnomon_join_batch batch = {pairs, some, done < c->complete ? last.i : c->rows_done};
        if (sink != NULL && sink(user, &batch) != 0) return CLI_EXIT_FILE;
        if (cli_interrupted()) return cli_fail(c->app, CLI_EXIT_INTERRUPTED, "interrupted");
    } while (done < c->complete);
    return -1;
}

/* Opens FILE.pairs, which is made where there is no FILE and must be there beside one. *gone: FILE
 * was there and was removed or replaced meanwhile. */
static int open_beside(cli_checkpoint *c, int *gone)
{
    struct stat file, named;
    int state;
    c->fd = -1;
    int code = open_plain(c, c->path, O_RDONLY, &state);
    if (code >= 0) return code;
    code = open_plain(c, c->pairs_path, O_RDWR | (state >= 0 ? 0 : O_CREAT), &c->fd);
    *gone =
        state >= 0 && fstat(state, &file) == 0 &&
        (lstat(c->path, &named) != 0 || file.st_dev != named.st_dev || file.st_ino != named.st_ino);
    if (state >= 0) close(state);
    return code;
}

/* FILE.pairs with its lock; again when the run that had it has just removed it. */
static int open_pairs(cli_checkpoint *c)
{
    for (;;) {
        struct stat held, named;
        int gone;
        const int code = open_beside(c, &gone);
        if (code >= 0) return code;
        if (c->fd < 0 && gone) continue;
        if (c->fd < 0) return fail_file(c, c->pairs_path, ENOENT);
        if (flock(c->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK)
                return cli_fail(c->app, CLI_EXIT_FILE,
                                "%s: another run of gnomon join is using this checkpoint", c->path);
            return cli_fail(c->app, CLI_EXIT_FILE, "%s: can't be locked: %s", c->pairs_path,
                            strerror(errno));
        }
        if (fstat(c->fd, &held) != 0) return fail_file(c, c->pairs_path, errno);
        if (lstat(c->pairs_path, &named) == 0 && held.st_dev == named.st_dev &&
            held.st_ino == named.st_ino)
            return -1;
        close(c->fd);
    }
}

/* A file that an interrupted save of a checkpoint left, or none, may be written over. */
static int check_own(cli_checkpoint *c, int fd, const char *path, const void *begin, size_t size)
{
    char head[sizeof(header)];
    struct stat file;
    if (fstat(fd, &file) != 0) return fail_file(c, path, errno);
    if (file.st_size < (off_t)size) size = (size_t)file.st_size;
    const int number = read_at(fd, head, size, 0);
    if (number > 0) return fail_file(c, path, number);
    if (number < 0 || memcmp(head, begin, size) != 0)
        return cli_fail(c->app, CLI_EXIT_FILE,
                        "%s: exists and is not of a checkpoint: remove it, or use another file",
                        path);
    return -1;
}

/* Takes away what a save left that was killed. */
static int clear_new(cli_checkpoint *c)
{
    static const char begin[] = "{\"gnomon join\"";
    int fd;
    int code = open_plain(c, c->new_path, O_RDONLY, &fd);
    if (code >= 0 || fd < 0) return code;
    code = check_own(c, fd, c->new_path, begin, sizeof begin - 1);
    close(fd);
    if (code < 0 && unlink(c->new_path) != 0) return fail_file(c, c->new_path, errno);
    return code;
}

static int begin_pairs(cli_checkpoint *c)
{
    int code = check_own(c, c->fd, c->pairs_path, &own_header, sizeof own_header);
    if (code >= 0) return code;
    int number = ftruncate(c->fd, 0) != 0 ? errno : 0;
    if (number == 0) number = write_at(c->fd, &own_header, sizeof own_header, 0);
    if (number != 0) return fail_file(c, c->pairs_path, number);
    c->hash = c->complete_hash = c->seed;
    return cli_checkpoint_save(c);
}

static int go_on(cli_checkpoint *c, int state)
{
    char sum[17] = "", own[17];
    header head;
    int code = read_state(c, state, sum);
    if (code < 0 && (read_at(c->fd, &head, sizeof head, 0) != 0 ||
                     memcmp(&head, &own_header, sizeof head) != 0))
        code = cli_fail(c->app, CLI_EXIT_DATA,
                        "%s holds no pairs of this version of gnomon join on such a machine: "
                        "remove it and %s, or use another file",
                        c->pairs_path, c->path);
    if (code < 0) code = walk(c, NULL, NULL, &c->complete_hash);
    if (code >= 0) return code;
    checksum(c, own);
    if (strcmp(sum, own) != 0) return damaged(c);
    c->hash = c->complete_hash;
    c->kept = c->complete;
    c->kept_rows = c->rows_done;
    if (ftruncate(c->fd, (off_t)offset_of(c->complete)) != 0)
        return fail_file(c, c->pairs_path, errno);
    c->saved = cli_seconds();
    cli_say(c->app, "gnomon join: goes on at row %lld, with %lld pairs\n", (long long)c->rows_done,
            (long long)c->complete);
    return -1;
}

static char *name_with(const char *path, const char *ending)
{
    char *name = malloc(strlen(path) + strlen(ending) + 1);
    return name != NULL ? strcat(strcpy(name, path), ending) : NULL;
}

int cli_checkpoint_open(cli_checkpoint *c, cli_app *app, const char *path, json_t *identity,
                        const cli_pair_limits *limits, int64_t *rows_done)
{
    c->app = app;
    c->path = path;
    c->fd = -1;
    c->identity = identity;
    c->limits = *limits;
    c->pairs_path = name_with(path, ".pairs");
    c->new_path = name_with(path, ".new");
    char *text = cli_json_text(identity, JSON_COMPACT | JSON_SORT_KEYS);
    if (text == NULL || c->pairs_path == NULL || c->new_path == NULL) {
        free(text);
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    }
    c->seed = hash_text(text);
    free(text);
    int state = -1;
    int code = open_pairs(c);
    /* FILE is read under the lock of FILE.pairs */
    if (code < 0) code = open_plain(c, path, O_RDONLY, &state);
    if (code < 0) code = clear_new(c);
    if (code < 0) code = state >= 0 ? go_on(c, state) : begin_pairs(c);
    if (state >= 0) close(state);
    *rows_done = c->rows_done;
    return code;
}

/* ---- writing ---- */

static int sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (folder == NULL) return ENOMEM;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return errno;
    (void)fsync(fd); /* a file system that can't sync a folder is no failure */
    close(fd);
    return 0;
}

/* FILE as text, through FILE.new: an errno, or 0. */
static int replace_state(cli_checkpoint *c, const char *text)
{
    const int fd = open(c->new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    int number = write_at(fd, text, strlen(text), 0);
    if (number == 0 && fsync(fd) != 0) number = errno;
    if (close(fd) != 0 && errno != EINTR && number == 0) number = errno;
    if (number == 0 && rename(c->new_path, c->path) != 0) number = errno;
    if (number != 0) {
        unlink(c->new_path);
        return number;
    }
    return sync_folder(c->path);
}

/* Says in FILE what FILE.pairs holds for good. -1 or an exit code. */
static int write_state(cli_checkpoint *c)
{
    char sum[17];
    checksum(c, sum);
    json_t *state = json_pack("{s:i, s:O, s:I, s:I, s:s}", "gnomon join", VERSION, "identity",
                              c->identity, "rows_done", (json_int_t)c->rows_done, "pairs",
                              (json_int_t)c->complete, "checksum", sum);
    char *text = cli_json_text(state, JSON_COMPACT);
    json_decref(state);
    if (text == NULL) return cli_fail(c->app, CLI_EXIT_MEMORY, "out of memory for a checkpoint");
    const int number = replace_state(c, text);
    free(text);
    if (number != 0) return fail_file(c, c->path, number);
    c->kept = c->complete;
    c->kept_rows = c->rows_done;
    return -1;
}

int cli_checkpoint_save(cli_checkpoint *c)
{
    /* should it fail, what was on disk before stands */
    int code = fsync(c->fd) != 0 ? fail_file(c, c->pairs_path, errno) : write_state(c);
    c->saved = cli_seconds();
    if (code >= 0) c->failed = code;
    return code;
}

/* A batch could not be written: those before it are kept. */
static int stop_writing(cli_checkpoint *c, int number)
{
    c->failed = fail_file(c, c->pairs_path, number);
    /* should this fail too, the state before it stands */
    if (fsync(c->fd) == 0) (void)write_state(c);
    return 1;
}

int cli_checkpoint_add(cli_checkpoint *c, const gnomon_join_batch *batch)
{
    int64_t complete = batch->count;
    while (complete > 0 && batch->pairs[complete - 1].i >= batch->rows_done)
        complete--;
    const int number = write_at(c->fd, batch->pairs, (size_t)batch->count * sizeof *batch->pairs,
                                offset_of(c->written));
    if (number != 0) return stop_writing(c, number);
    c->hash = hash_pairs(c->hash, batch->pairs, complete);
    /* a row that goes on in the next batch is not complete */
    if (batch->rows_done > c->rows_done) {
        c->complete = c->written + complete;
        c->complete_hash = c->hash;
        c->rows_done = batch->rows_done;
    }
    c->hash = hash_pairs(c->hash, batch->pairs + complete, batch->count - complete);
    c->written += batch->count;
    if (cli_seconds() - c->saved < save_interval) return 0;
    return cli_checkpoint_save(c) >= 0;
}

int cli_checkpoint_replay(cli_checkpoint *c, gnomon_join_sink sink, void *user)
{
    uint64_t hash;
    const int code = walk(c, sink, user, &hash);
    if (code >= 0) return code;
    return hash == c->complete_hash ? -1 : damaged(c);
}

void cli_checkpoint_remove(cli_checkpoint *c)
{
    if (c->path == NULL) return;
    /* in this order: pairs alone are begun anew */
    unlink(c->path);
    unlink(c->pairs_path);
}

void cli_checkpoint_drop(cli_checkpoint *c)
{
    if (c->path != NULL && c->fd >= 0) close(c->fd);
    free(c->pairs_path);
    free(c->new_path);
    json_decref(c->identity);
}
