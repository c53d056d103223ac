#include "dedup/checkpoint.h"

#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text_json.h"
#include "base/threads.h"
#include "dedup/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, STORES = 5, NAME = 4096, LIMIT = 1 << 24 };
static const char *const endings[STORES] = {".documents", ".sets", ".texts", ".names", ".pairs"};

static void stores_of(gnomon_dedup *d, gnomon_store *stores[STORES])
{
    stores[0] = &d->documents;
    stores[1] = &d->sets;
    stores[2] = &d->raw;
    stores[3] = &d->names;
    stores[4] = &d->edges.file;
}

/* FILE's name with an ending. */
static void name_of(const gnomon_dedup *d, const char *ending, char name[NAME])
{
    snprintf(name, NAME, "%s%s", d->checkpoint.path, ending); /* its length has been checked */
}

static gnomon_status fail_file(const gnomon_dedup *d, const char *ending, int number)
{
    return gnomon_fail(d->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s%s") ": %s", d->checkpoint.path,
                       ending, strerror(number));
}

static gnomon_status damaged(const gnomon_dedup *d)
{
    return gnomon_fail(d->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") " and the files named as it with .documents, .sets, "
                                        ".texts, .names and .pairs behind are damaged or were "
                                        "changed: remove all, or use another file",
                       d->checkpoint.path);
}

static gnomon_status no_memory(const gnomon_dedup *d)
{
    return gnomon_fail(d->ctx, GNOMON_ERROR_MEMORY, "out of memory for a checkpoint");
}

/* What must be the same to go on. Reals as text, so that they are compared by their bits. */
static gnomon_status set_identity(gnomon_dedup *d)
{
    const gnomon_dedup_options *o = &d->options;
    char similarity[40], recall[40], seed[40];
    snprintf(similarity, sizeof similarity, "%.17g", o->similarity);
    snprintf(recall, sizeof recall, "%.17g", o->recall);
    snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
    json_t *all = json_pack(
        "{s:s, s:I, s:b, s:i, s:i, s:i, s:s, s:s, s:I, s:I, s:s, s:b, s:b, s:I, s:i, s:b, s:b, "
        "s:s}",
        "version", gnomon_version(), "ngram", (json_int_t)o->ngram, "characters", o->characters,
        "lower", o->lower, "punctuation", o->punctuation, "normalize", o->normalize, "similarity",
        similarity, "recall", recall, "bands", (json_int_t)o->bands, "rows", (json_int_t)o->rows,
        "seed", seed, "exact", o->exact, "unverified", o->unverified, "bucket",
        (json_int_t)o->bucket, "texts", o->keep_raw, "weighted", o->weighted, "containment",
        o->containment, "input", o->identity != NULL ? o->identity : "");
    char *text = gnomon_json_text(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    if (text == NULL)
        return gnomon_fail(d->ctx, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("options.identity") " is not UTF-8, or memory is out");
    const gnomon_status status = gnomon_copy_text(d->ctx, text, &d->checkpoint.identity);
    free(text);
    return status;
}

/* ---- writing ---- */

static void sync_folder(const gnomon_dedup *d)
{
    const int fd = open(d->checkpoint.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd); /* a file system that can't sync a folder is no failure */
    close(fd);
}

/* FILE as text, through FILE.new: an errno, or 0. */
static int replace_state(const gnomon_dedup *d, const char *text)
{
    char name[NAME];
    int number = 0;
    name_of(d, ".new", name);
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return errno;
    for (size_t done = 0, size = strlen(text); done < size && number == 0;) {
        const ssize_t n = write(fd, text + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            number = n == 0 ? EIO : errno;
    }
    if (number == 0 && fsync(fd) != 0) number = errno;
    if (close(fd) != 0 && errno != EINTR && number == 0) number = errno;
    if (number == 0 && rename(name, d->checkpoint.path) != 0) number = errno;
    if (number != 0) unlink(name);
    if (number == 0) sync_folder(d);
    return number;
}

/* Of a store's file, as JSON: its size and the checksum of its bytes. */
static json_t *describe(const gnomon_store *s)
{
    char sum[17];
    snprintf(sum, sizeof sum, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(s->sum));
    return json_pack("[I, s]", (json_int_t)s->size, sum);
}

static gnomon_status write_state(gnomon_dedup *d, bool finished)
{
    const gnomon_checkpoint *c = &d->checkpoint;
    gnomon_store *stores[STORES];
    json_t *files = json_object(), *runs = json_array();
    stores_of(d, stores);
    for (int s = 0; s < STORES && !finished; s++)
        json_object_set_new(files, endings[s], describe(stores[s]));
    for (int64_t r = 0; r < d->edges.runs; r++)
        json_array_append_new(runs, json_integer((json_int_t)d->edges.ends[r]));
    json_t *state = json_pack(
        "{s:i, s:b, s:s, s:I, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I}", "gnomon dedup", VERSION,
        "finished", finished, "identity", c->identity, "documents", (json_int_t)d->count, "files",
        files, "runs", runs, "grouped", c->grouped, "paired", c->paired, "bands",
        (json_int_t)c->bands, "large", (json_int_t)d->result.large, "uncompared",
        (json_int_t)d->result.uncompared, "candidates", (json_int_t)d->result.candidates);
    char *text = gnomon_json_text(state, JSON_COMPACT);
    json_decref(state);
    if (text == NULL) return no_memory(d);
    const int number = replace_state(d, text);
    free(text);
    return number == 0 ? GNOMON_OK : fail_file(d, "", number);
}

bool gnomon_checkpoint_due(const gnomon_dedup *d)
{
    const gnomon_checkpoint *c = &d->checkpoint;
    static const double share = 0.1;
    double wait = c->interval;
    if (wait > 0 && wait < c->cost / share) wait = c->cost / share;
    return c->path != NULL && d->count >= c->restored && gnomon_seconds() - c->saved >= wait;
}

gnomon_status gnomon_checkpoint_save(gnomon_dedup *d)
{
    gnomon_store *stores[STORES];
    if (d->checkpoint.path == NULL) return GNOMON_OK;
    const double begin = gnomon_seconds();
    stores_of(d, stores);
    GNOMON_TRY(gnomon_sorter_flush(&d->edges));
    for (int s = 0; s < STORES; s++) {
        GNOMON_TRY(gnomon_store_flush(stores[s]));
        if (fdatasync(stores[s]->fd) != 0) return fail_file(d, endings[s], errno);
    }
    GNOMON_TRY(write_state(d, false));
    d->checkpoint.saved = gnomon_seconds();
    d->checkpoint.cost = d->checkpoint.saved - begin;
    return GNOMON_OK;
}

int64_t gnomon_dedup_restored(const gnomon_dedup *d)
{
    return d != NULL ? d->checkpoint.restored : 0;
}

void gnomon_dedup_forget(gnomon_dedup *d)
{
    char name[NAME];
    if (d == NULL || d->checkpoint.path == NULL) return;
    /* FILE without its data is begun anew if it says so; if it can't, data without FILE must go by
     * hand should this be interrupted */
    if (write_state(d, true) != GNOMON_OK) unlink(d->checkpoint.path);
    for (int s = STORES - 1; s >= 0; s--) {
        name_of(d, endings[s], name);
        unlink(name);
    }
    unlink(d->checkpoint.path);
}

/* ---- reading ---- */

/* Opens what is a file and no link; *fd is -1 when nothing is there. */
static gnomon_status open_plain(const gnomon_dedup *d, const char *ending, int flags, int *fd)
{
    char name[NAME];
    struct stat file;
    name_of(d, ending, name);
    *fd = open(name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
    if (*fd < 0 && errno == ENOENT && (flags & O_CREAT) == 0) return GNOMON_OK;
    if (*fd < 0 && errno == ELOOP)
        return gnomon_fail(d->ctx, GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") " is a link, which a checkpoint must not be", name);
    if (*fd < 0) return fail_file(d, ending, errno);
    if (fstat(*fd, &file) == 0 && S_ISREG(file.st_mode)) return GNOMON_OK;
    close(*fd);
    *fd = -1;
    return gnomon_fail(d->ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s") " is no plain file, which a checkpoint must be", name);
}

/* FILE.documents with its lock; again when the run that had it has just removed it. */
static gnomon_status lock(gnomon_dedup *d)
{
    char name[NAME];
    name_of(d, endings[0], name);
    for (;;) {
        struct stat held, named;
        int *fd = &d->documents.fd;
        GNOMON_TRY(open_plain(d, endings[0], O_RDWR | O_CREAT, fd));
        if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
            GNOMON_FAIL_IF(errno == EWOULDBLOCK, d->ctx, GNOMON_ERROR_IO,
                           GNOMON_ARG("%s") ": another run is using this checkpoint",
                           d->checkpoint.path);
            return fail_file(d, endings[0], errno);
        }
        if (fstat(*fd, &held) != 0) return fail_file(d, endings[0], errno);
        if (lstat(name, &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino)
            return GNOMON_OK;
        close(*fd);
        *fd = -1;
    }
}

/* FILE's JSON; NULL: there is no FILE. */
static gnomon_status read_state(gnomon_dedup *d, json_t **state)
{
    int fd;
    char *text = NULL;
    int64_t size = 0;
    json_error_t error;
    bool memory = false;
    *state = NULL;
    GNOMON_TRY(open_plain(d, "", O_RDONLY, &fd));
    if (fd < 0) return GNOMON_OK;
    gnomon_status status = gnomon_alloc(d->ctx, LIMIT, 1, "a checkpoint", &text);
    while (status == GNOMON_OK && size < LIMIT) {
        const ssize_t n = read(fd, text + size, (size_t)(LIMIT - size));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = fail_file(d, "", errno);
        if (n <= 0) break;
        size += n;
    }
    close(fd);
    if (status == GNOMON_OK) {
        *state = gnomon_json_read(text, (size_t)size, JSON_REJECT_DUPLICATES, &error, &memory);
        if (memory)
            status = no_memory(d);
        else if (!json_is_object(*state) || json_object_get(*state, "gnomon dedup") == NULL)
            status = gnomon_fail(d->ctx, GNOMON_ERROR_DATA,
                                 GNOMON_ARG("%s") " is no checkpoint of a deduplication",
                                 d->checkpoint.path);
    }
    gnomon_free(d->ctx, text);
    if (status != GNOMON_OK) json_decref(*state);
    return status;
}

/* Says in what the deduplication of FILE is another. */
static gnomon_status another(const gnomon_dedup *d, const char *theirs)
{
    json_error_t error;
    bool memory, memory_there;
    const char *identity = d->checkpoint.identity;
    json_t *mine = gnomon_json_read(identity, strlen(identity), 0, &error, &memory);
    json_t *kept = gnomon_json_read(theirs, strlen(theirs), 0, &error, &memory_there);
    const char *key, *differs = NULL;
    json_t *value;
    json_object_foreach(mine, key, value)
    {
        if (!json_equal(value, json_object_get(kept, key))) {
            differs = key;
            break;
        }
    }
    const int flags = JSON_ENCODE_ANY | JSON_COMPACT;
    char *here = differs != NULL ? gnomon_json_text(json_object_get(mine, differs), flags) : NULL;
    char *there = differs != NULL ? gnomon_json_text(json_object_get(kept, differs), flags) : NULL;
    const gnomon_status status =
        memory || memory_there ? no_memory(d)
        : differs == NULL
            ? damaged(d)
            : gnomon_fail(d->ctx, GNOMON_ERROR_DATA,
                          GNOMON_ARG("%s") " is the checkpoint of another deduplication: there %s "
                                           "is %.200s, here %.200s; use another file, or remove it",
                          d->checkpoint.path, differs, there != NULL ? there : "not given",
                          here != NULL ? here : "another");
    free(here);
    free(there);
    json_decref(mine);
    json_decref(kept);
    return status;
}

/* A store's file, as FILE describes it: what is behind is cut off. */
static gnomon_status restore(gnomon_dedup *d, gnomon_store *s, const char *ending, json_t *files)
{
    enum { PIECE = 1 << 20 };
    json_int_t size = -1;
    const char *sum = "";
    char own[17], *piece = NULL;
    struct stat file;
    if (json_unpack(json_object_get(files, ending), "[I, s]", &size, &sum) != 0) return damaged(d);
    if (fstat(s->fd, &file) != 0) return fail_file(d, ending, errno);
    if (size < 0 || size > file.st_size) return damaged(d);
    if (ftruncate(s->fd, (off_t)size) != 0) return fail_file(d, ending, errno);
    s->size = size;
    GNOMON_TRY(gnomon_alloc(d->ctx, PIECE, 1, "a checkpoint", &piece));
    gnomon_status status = GNOMON_OK;
    for (int64_t at = 0; at < size && status == GNOMON_OK; at += PIECE) {
        const int64_t some = gnomon_min(PIECE, size - at);
        status = gnomon_store_read(s, at, some, piece);
        if (status == GNOMON_OK) XXH3_64bits_update(s->sum, piece, (size_t)some);
        if (status == GNOMON_OK) status = gnomon_progress(d->ctx, "resuming", at, size);
    }
    gnomon_free(d->ctx, piece);
    GNOMON_TRY(status);
    snprintf(own, sizeof own, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(s->sum));
    return strcmp(own, sum) == 0 ? GNOMON_OK : damaged(d);
}

static bool follows(const gnomon_dedup *d, const gnomon_document *two)
{
    const int64_t set = two[1].set_end - two[0].set_end;
    return two[0].set_end >= 0 && set >= 0 && (d->options.exact || set % 8 == 0) &&
           two[1].raw_end >= two[0].raw_end && two[1].name_end >= two[0].name_end &&
           two[1].bytes >= 0;
}

static gnomon_status check_documents(gnomon_dedup *d)
{
    gnomon_window documents, names;
    gnomon_status status = GNOMON_OK;
    const int64_t each = sizeof(gnomon_document);
    gnomon_document first, last;
    if (d->documents.size != (d->checkpoint.restored + 1) * each) return damaged(d);
    GNOMON_TRY(gnomon_store_read(&d->documents, 0, each, &first));
    GNOMON_TRY(gnomon_store_read(&d->documents, d->documents.size - each, each, &last));
    if (first.set_end != 0 || first.raw_end != 0 || first.name_end != 0 ||
        last.set_end != d->sets.size || last.raw_end != d->raw.size ||
        last.name_end != d->names.size)
        return damaged(d);
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&names, &d->names, GNOMON_DOCUMENT_WINDOW);
    for (int64_t i = 0; i < d->checkpoint.restored && status == GNOMON_OK; i++) {
        const gnomon_document *two = NULL;
        const char *end;
        status = gnomon_dedup_document(&documents, i, &two);
        if (status != GNOMON_OK) break;
        if (!follows(d, two) || two[1].name_end > d->names.size) status = damaged(d);
        if (status != GNOMON_OK || two[1].name_end == two[0].name_end) continue;
        status = gnomon_window_get(&names, two[1].name_end - 1, 1, &end);
        if (status == GNOMON_OK && *end != '\0') status = damaged(d);
    }
    gnomon_window_end(&documents);
    gnomon_window_end(&names);
    return status;
}

static gnomon_status check_pairs(gnomon_dedup *d, json_t *runs)
{
    gnomon_window pairs;
    gnomon_status status = GNOMON_OK;
    const gnomon_record *r;
    const int64_t size = d->edges.file.size;
    int64_t end = 0;
    size_t at;
    json_t *value;
    json_array_foreach(runs, at, value)
    {
        if (json_integer_value(value) <= end || json_integer_value(value) > size ||
            json_integer_value(value) % (json_int_t)sizeof *r != 0)
            return damaged(d);
        end = json_integer_value(value);
        GNOMON_TRY(gnomon_sorter_note_run(&d->edges, end));
    }
    if (end != size) return damaged(d);
    gnomon_window_start(&pairs, &d->edges.file, GNOMON_DOCUMENT_WINDOW);
    for (end = 0; end < size && status == GNOMON_OK; end += (int64_t)sizeof *r) {
        double similarity;
        status = gnomon_window_get(&pairs, end, sizeof *r, &r);
        if (status != GNOMON_OK) break;
        memcpy(&similarity, &r->value, sizeof similarity);
        if (r->key >> 32 >= (uint32_t)r->key ||
            (int64_t)(uint32_t)r->key >= d->checkpoint.restored ||
            !(similarity > 0 && similarity <= 1))
            status = damaged(d);
    }
    gnomon_window_end(&pairs);
    return status;
}

static gnomon_status go_on(gnomon_dedup *d, json_t *state)
{
    gnomon_checkpoint *c = &d->checkpoint;
    gnomon_store *stores[STORES];
    json_int_t version = 0, documents = -1, bands = -1, large = -1, uncompared = -1,
               candidates = -1;
    const char *identity = "";
    int grouped = 0, paired = 0;
    json_t *files = NULL, *runs = NULL;
    if (json_unpack(state, "{s:I}", "gnomon dedup", &version) != 0 || version != VERSION)
        return gnomon_fail(d->ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("%s") " is a checkpoint of another version: remove it, or "
                                            "use another file",
                           c->path);
    if (json_unpack(state, "{s:s, s:I, s:o, s:o, s:b, s:b, s:I, s:I, s:I, s:I}", "identity",
                    &identity, "documents", &documents, "files", &files, "runs", &runs, "grouped",
                    &grouped, "paired", &paired, "bands", &bands, "large", &large, "uncompared",
                    &uncompared, "candidates", &candidates) != 0)
        return damaged(d);
    if (strcmp(identity, c->identity) != 0) return another(d, identity);
    if (documents < 0 || documents >= UINT32_MAX || bands < 0 || bands > 1024 || large < 0 ||
        uncompared < 0 || candidates < 0)
        return damaged(d);
    c->restored = documents;
    c->bands = bands;
    c->grouped = grouped != 0;
    c->paired = paired != 0;
    d->result.large = large;
    d->result.uncompared = uncompared;
    d->result.candidates = candidates;
    stores_of(d, stores);
    for (int s = 0; s < STORES; s++)
        GNOMON_TRY(restore(d, stores[s], endings[s], files));
    GNOMON_TRY(check_documents(d));
    GNOMON_TRY(check_pairs(d, runs));
    gnomon_window_start(&c->passing, &d->documents, GNOMON_DOCUMENT_WINDOW);
    c->saved = gnomon_seconds();
    return GNOMON_OK;
}

/* Files that are left from one that is finished are emptied; others are not a checkpoint's. */
static gnomon_status begin(gnomon_dedup *d, bool finished)
{
    const gnomon_document none = {0};
    gnomon_store *stores[STORES];
    stores_of(d, stores);
    for (int s = 0; s < STORES; s++) {
        struct stat file;
        if (fstat(stores[s]->fd, &file) != 0) return fail_file(d, endings[s], errno);
        GNOMON_FAIL_IF(file.st_size > 0 && !finished, d->ctx, GNOMON_ERROR_IO,
                       GNOMON_ARG("%s%s") " exists and is not of a checkpoint: remove it, or use "
                                          "another file",
                       d->checkpoint.path, endings[s]);
        if (file.st_size > 0 && ftruncate(stores[s]->fd, 0) != 0)
            return fail_file(d, endings[s], errno);
    }
    GNOMON_TRY(gnomon_store_append(&d->documents, &none, sizeof none));
    /* FILE before any data, so that these are known to be its */
    GNOMON_TRY(write_state(d, true));
    return gnomon_checkpoint_save(d);
}

static gnomon_status open_stores(gnomon_dedup *d)
{
    gnomon_store *stores[STORES];
    GNOMON_TRY(lock(d));
    stores_of(d, stores);
    for (int s = 0; s < STORES; s++) {
        if (s > 0) GNOMON_TRY(open_plain(d, endings[s], O_RDWR | O_CREAT, &stores[s]->fd));
        stores[s]->folder = d->checkpoint.folder;
        GNOMON_TRY(
            gnomon_alloc(d->ctx, 1, sizeof *stores[s]->sum, "a checkpoint", &stores[s]->sum));
        XXH3_64bits_reset(stores[s]->sum);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_checkpoint_open(gnomon_dedup *d)
{
    gnomon_checkpoint *c = &d->checkpoint;
    const char *path = d->options.checkpoint, *slash = strrchr(path, '/');
    json_t *state = NULL;
    c->interval = 2;
    GNOMON_FAIL_IF(path[0] == '\0' || strlen(path) > NAME - 16, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.checkpoint") " is '%.40s': it must be a file's name of at "
                                                    "most %d bytes",
                   path, NAME - 16);
    GNOMON_TRY(gnomon_copy_text(d->ctx, path, &c->path));
    GNOMON_TRY(gnomon_copy_text(d->ctx, slash != NULL ? path : ".", &c->folder));
    if (slash != NULL) c->folder[slash == path ? 1 : slash - path] = '\0';
    GNOMON_TRY(set_identity(d));
    GNOMON_TRY(open_stores(d));
    GNOMON_TRY(read_state(d, &state));
    int finished = 0;
    if (state != NULL) (void)json_unpack(state, "{s:b}", "finished", &finished);
    const gnomon_status status =
        state != NULL && !finished ? go_on(d, state) : begin(d, finished != 0);
    json_decref(state);
    return status;
}

gnomon_status gnomon_checkpoint_pass(gnomon_dedup *d, int64_t bytes)
{
    const gnomon_document *two = NULL;
    GNOMON_TRY(gnomon_dedup_document(&d->checkpoint.passing, d->count, &two));
    GNOMON_FAIL_IF(two[1].bytes != bytes, d->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": document %" PRId64 " has %" PRId64
                                    " bytes there and %" PRId64
                                    " here: it is the checkpoint of another corpus",
                   d->checkpoint.path, d->count, two[1].bytes, bytes);
    gnomon_dedup_count(d, bytes);
    return GNOMON_OK;
}

void gnomon_checkpoint_close(gnomon_dedup *d)
{
    gnomon_window_end(&d->checkpoint.passing);
    gnomon_free(d->ctx, d->checkpoint.path);
    gnomon_free(d->ctx, d->checkpoint.folder);
    gnomon_free(d->ctx, d->checkpoint.identity);
}
