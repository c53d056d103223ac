/* Documents in files: lines, JSON lines, and files of folders. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text_json.h"
#include "base/threads.h"
#include "dedup/json_line.h"
#include "dedup/ngrams.h"
#include "io/compress/unpack.h"
#include "io/open.h"

#include <gnomon/dedup.h>

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

GNOMON_OPTIONS_INIT(gnomon_corpus_options, GNOMON_CORPUS_OPTIONS_INIT)

/* BATCH: bytes; MOST: documents, which take more memory than their lines where these are short;
 * CUT: bytes whose lines are found at a time, of which CUTS are looked at, and which MOST documents
 * hold.
 */
enum { BATCH = 1 << 22, BATCH_LEAST = 1 << 16, MOST = 1 << 16, CUT = 1 << 16, CUTS = 512 };
enum { TASK = 1024, WHY = 256, NUMBER = 24 };
_Static_assert(CUT <= MOST, "the lines of a cut are a batch at most");

/* What a document may be wrong by. */
typedef enum fault {
    GOOD,
    EMPTY,
    NOT_UTF8,
    LONG,
    BROKEN,
    NO_OBJECT,
    NO_FIELD,
    NO_TEXT,
    NO_ID,
    NO_MEMORY
} fault;

typedef struct document {
    int64_t begin, end;   /* of its bytes in the buffer, without the line's end */
    int64_t raw_end;      /* with it */
    int64_t text, length; /* of the text in the buffer */
    int64_t id;           /* of its name in the buffer, a text with a NUL; -1: none */
    int64_t line;
    fault wrong;
} document;

/* Lines that end in CUT bytes of the buffer. */
typedef struct cut {
    int64_t lines;
    int64_t last;         /* the newline of the last one, if there is one */
    int64_t first, begin; /* the number of the first one in the batch, and where it begins */
} cut;

struct gnomon_corpus {
    gnomon_context *ctx;
    gnomon_corpus_options options;
    char *path, *field, *id;
    gnomon_source *source;
    FTS *tree;
    char *tree_paths[2];
    /* The buffer is twice 'room': texts out of JSON are decoded to its second half, each to where
     * its line is in the first. */
    char *buffer;
    int64_t room, have, used; /* bytes in the first half, and those that were handed out */
    bool ended, skipping;     /* skipping: to the end of a line that is too long */
    int64_t line;             /* lines before the buffer's next */
    document *documents;
    int64_t count, document_room;
    atomic_bool any_bad; /* of the documents */
    cut cuts[CUTS];
    int64_t cuts_begin; /* of the first one in the buffer */
    int64_t look;       /* how many to look at */
    int64_t *offsets;   /* begins, ends, raw_begins and raw_ends, as many each as documents */
    int64_t offset_room;
    char *names; /* of a batch, one after another */
    int64_t name_bytes, name_room;
    const char **name_list;
};

static const char *name_of(const gnomon_corpus *c)
{
    return strcmp(c->path, "-") == 0 ? "standard input" : c->path;
}

/* ---- opening ---- */

static bool ends_with(const char *name, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length > n && memcmp(name + length - n, ending, n) == 0;
}

static gnomon_corpus_kind kind_for(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0) return GNOMON_CORPUS_LINES;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return GNOMON_CORPUS_FILES;
    const gnomon_codec *codec;
    const size_t length = gnomon_codec_ending(path, &codec);
    return ends_with(path, length, ".jsonl") || ends_with(path, length, ".ndjson") ||
                   ends_with(path, length, ".json")
               ? GNOMON_CORPUS_JSON
               : GNOMON_CORPUS_LINES;
}

static gnomon_status check(gnomon_context *ctx, const gnomon_corpus_options *o)
{
    GNOMON_FAIL_IF(
        o->kind < GNOMON_CORPUS_AUTO || o->kind > GNOMON_CORPUS_FILES, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options.kind") " is %d; it must be one of gnomon_corpus_kind", (int)o->kind);
    GNOMON_NEED(ctx, o->field, "options.field");
    GNOMON_FAIL_IF(o->max_bytes < 1 || o->max_bytes > (int64_t)1 << 40, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.max_bytes") " is %" PRId64 "; it must be from 1 to 2^40",
                   o->max_bytes);
    GNOMON_FAIL_IF(o->id != NULL && strcmp(o->id, o->field) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.id") " is '%s', which is the text's member too", o->id);
    return GNOMON_OK;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static gnomon_status open_input(gnomon_corpus *c)
{
    struct stat st;
    if (c->options.kind != GNOMON_CORPUS_FILES)
        return gnomon_source_open(c->ctx, c->path, GNOMON_UNPACK_AUTO, &c->source);
    GNOMON_FAIL_IF(stat(c->path, &st) != 0, c->ctx, GNOMON_ERROR_NOT_FOUND, GNOMON_ARG("%s") ": %s",
                   c->path, strerror(errno));
    c->tree_paths[0] = c->path;
    /* links are not followed: a folder may hold a link to itself */
    c->tree = fts_open(c->tree_paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    GNOMON_FAIL_IF(c->tree == NULL, c->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s", c->path,
                   strerror(errno));
    return GNOMON_OK;
}

static gnomon_status fill_in(gnomon_corpus *c, const char *path)
{
    gnomon_context *ctx = c->ctx;
    GNOMON_TRY(gnomon_copy_text(ctx, path, &c->path));
    GNOMON_TRY(gnomon_copy_text(ctx, c->options.field, &c->field));
    if (c->options.id != NULL) GNOMON_TRY(gnomon_copy_text(ctx, c->options.id, &c->id));
    if (c->options.kind == GNOMON_CORPUS_AUTO) c->options.kind = kind_for(path);
    const int64_t batches = gnomon_max(1, gnomon_min(4, gnomon_context_threads(ctx) / 4));
    c->room = gnomon_memory_limit(ctx) / 16;
    c->room = gnomon_max(BATCH_LEAST, gnomon_min(batches * BATCH, c->room));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, c->room), 1, "documents", &c->buffer));
    return open_input(c);
}

gnomon_status gnomon_corpus_open(gnomon_context *ctx, const char *path,
                                 const gnomon_corpus_options *options, gnomon_corpus **out)
{
    gnomon_corpus_options o = GNOMON_CORPUS_OPTIONS_INIT;
    gnomon_corpus *c;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, path, "path");
    if (options != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_corpus_options, options, &o));
    GNOMON_TRY(check(ctx, &o));
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *c, "documents", &c));
    c->ctx = ctx;
    c->options = o;
    c->look = CUTS;
    const gnomon_status status = fill_in(c, path);
    if (status == GNOMON_OK)
        *out = c;
    else
        gnomon_corpus_close(c);
    return status;
}

void gnomon_corpus_close(gnomon_corpus *c)
{
    if (c == NULL) return;
    gnomon_context *ctx = c->ctx;
    if (c->tree != NULL) {
        (void)fts_read(c->tree); /* glibc's fts_close leaks of a tree that was never read */
        fts_close(c->tree);
    }
    gnomon_source_close(c->source);
    gnomon_free(ctx, c->path);
    gnomon_free(ctx, c->field);
    gnomon_free(ctx, c->id);
    gnomon_free(ctx, c->buffer);
    gnomon_free(ctx, c->documents);
    gnomon_free(ctx, c->offsets);
    gnomon_free(ctx, c->names);
    gnomon_free(ctx, (void *)c->name_list);
    gnomon_free(ctx, c);
}

gnomon_corpus_kind gnomon_corpus_kind_of(const gnomon_corpus *c)
{
    return c != NULL ? c->options.kind : GNOMON_CORPUS_AUTO;
}

/* ---- what a document is wrong by ---- */

static fault check_text(const char *text, int64_t length)
{
    if (gnomon_text_blank(text, length)) return EMPTY;
    return gnomon_utf8_fault(text, length) < 0 ? GOOD : NOT_UTF8;
}

static void explain(const gnomon_corpus *c, const document *d, char why[WHY])
{
    json_error_t error;
    bool memory;
    switch (d->wrong) {
    case GOOD:
    case NO_MEMORY:
        why[0] = '\0';
        return;
    case EMPTY:
        snprintf(why, WHY, "the document is empty");
        return;
    case NOT_UTF8:
        snprintf(why, WHY, "byte %" PRId64 " is not UTF-8",
                 gnomon_utf8_fault(c->buffer + d->text, d->length));
        return;
    case LONG:
        snprintf(why, WHY, "the document has more than %" PRId64 " bytes", c->options.max_bytes);
        return;
    case BROKEN:
        json_decref(gnomon_json_read(c->buffer + d->begin, (size_t)(d->end - d->begin), 0, &error,
                                     &memory));
        snprintf(why, WHY, "broken JSON: %s", memory ? "out of memory" : error.text);
        return;
    case NO_OBJECT:
        snprintf(why, WHY, "the JSON value is not an object");
        return;
    case NO_FIELD:
        snprintf(why, WHY, "the object has no member '%.100s'", c->field);
        return;
    case NO_TEXT:
        snprintf(why, WHY, "the member '%.100s' is not a string", c->field);
        return;
    case NO_ID:
        snprintf(why, WHY, "the member '%.100s' is missing, or neither a string nor an integer",
                 c->id);
        return;
    }
}

/* Reports a bad document, or fails with it. */
static gnomon_status report(gnomon_corpus *c, const document *d, const char *file)
{
    char why[WHY];
    GNOMON_FAIL_IF(d->wrong == NO_MEMORY, c->ctx, GNOMON_ERROR_MEMORY,
                   "out of memory for the JSON of a line of %" PRId64 " bytes", d->end - d->begin);
    explain(c, d, why);
    if (c->options.bad != NULL) {
        c->options.bad(c->options.user, file, d->line, why);
        return GNOMON_OK;
    }
    if (d->line == 0)
        return gnomon_fail(c->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": %s", file, why);
    return gnomon_fail(c->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": line %" PRId64 ": %s", file,
                       d->line, why);
}

/* ---- JSON ---- */

/* What the scanner finds; false: the line is jansson's. A text without escapes stays in the line.
 */
static bool scan_members(const gnomon_corpus *c, document *d)
{
    const char *line = c->buffer + d->begin;
    char *out = c->buffer + c->room + d->begin;
    gnomon_json_member m[] = {{.key = c->field}, {.key = c->id}};
    const gnomon_json_member *text = &m[0], *id = &m[1];
    if (!gnomon_json_scan(line, d->end - d->begin, m, c->id != NULL ? 2 : 1)) return false;
    if (text->kind != GNOMON_JSON_STRING) {
        d->wrong = text->kind == GNOMON_JSON_ABSENT ? NO_FIELD : NO_TEXT;
        return true;
    }
    d->text = d->begin + text->begin;
    d->length = text->end - text->begin;
    if (text->escaped) {
        d->text = c->room + d->begin;
        d->length = gnomon_json_unescape(line + text->begin, text->end - text->begin, out);
        out += d->length;
    }
    if (c->id != NULL) {
        /* both stand in the line, with their keys: there is room */
        const int64_t bytes = id->end - id->begin;
        d->id = out - c->buffer;
        if (id->kind == GNOMON_JSON_INTEGER) {
            snprintf(out, NUMBER, "%lld", strtoll(line + id->begin, NULL, 10));
        } else if (id->kind == GNOMON_JSON_STRING) {
            out[gnomon_json_unescape(line + id->begin, bytes, out)] = '\0';
        } else {
            d->wrong = NO_ID;
            return true;
        }
    }
    if (gnomon_text_blank(c->buffer + d->text, d->length)) d->wrong = EMPTY;
    return true;
}

static fault take_members(const gnomon_corpus *c, document *d, const json_t *object)
{
    char number[NUMBER];
    if (!json_is_object(object)) return NO_OBJECT;
    const json_t *text = json_object_get(object, c->field);
    if (text == NULL) return NO_FIELD;
    if (!json_is_string(text)) return NO_TEXT;
    d->text = c->room + d->begin;
    d->length = (int64_t)json_string_length(text);
    memcpy(c->buffer + d->text, json_string_value(text), (size_t)d->length);
    if (c->id != NULL) {
        const json_t *id = json_object_get(object, c->id);
        if (!json_is_string(id) && !json_is_integer(id)) return NO_ID;
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(id));
        const char *name = json_is_string(id) ? json_string_value(id) : number;
        /* both stand in the line, with their keys: there is room */
        d->id = d->text + d->length;
        memcpy(c->buffer + d->id, name, strlen(name) + 1);
    }
    return gnomon_text_blank(c->buffer + d->text, d->length) ? EMPTY : GOOD;
}

static fault decode(const gnomon_corpus *c, document *d)
{
    json_error_t error;
    if (d->wrong != GOOD) return d->wrong;
    const char *line = c->buffer + d->begin;
    const size_t length = (size_t)(d->end - d->begin);
    if (c->options.kind == GNOMON_CORPUS_LINES) return check_text(line, d->end - d->begin);
    if (gnomon_text_blank(line, d->end - d->begin)) return EMPTY;
    if (scan_members(c, d)) return d->wrong;
    bool memory = false;
    json_t *object = json_loadb(line, length, 0, &error);
    /* whether that is the text's fault is told by this one alone */
    if (object == NULL) object = gnomon_json_read(line, length, 0, &error, &memory);
    const fault wrong = memory ? NO_MEMORY : object == NULL ? BROKEN : take_members(c, d, object);
    json_decref(object);
    return wrong;
}

/* ---- lines ---- */

static gnomon_status grow_documents(gnomon_corpus *c, int64_t count)
{
    if (count <= c->document_room) return GNOMON_OK;
    const int64_t room = gnomon_max(count, 2 * c->document_room + 256);
    GNOMON_TRY(
        gnomon_grow(c->ctx, &c->documents, c->count, room, sizeof *c->documents, "documents"));
    c->document_room = room;
    return GNOMON_OK;
}

static gnomon_status grow_buffer(gnomon_corpus *c, int64_t room)
{
    GNOMON_TRY(
        gnomon_grow(c->ctx, &c->buffer, 2 * c->room, gnomon_times(2, room), 1, "a document"));
    c->room = room;
    return GNOMON_OK;
}

/* Fills the first half behind what is left in it. One byte stays free, for a last line's end. */
static gnomon_status fill(gnomon_corpus *c)
{
    memmove(c->buffer, c->buffer + c->used, (size_t)(c->have - c->used));
    c->have -= c->used;
    c->used = 0;
    if (c->have + 1 >= c->room) {
        const int64_t most = c->options.max_bytes + 8;
        GNOMON_TRY(grow_buffer(c, gnomon_max(c->room + 8, gnomon_min(most, 2 * c->room))));
    }
    size_t got = 0;
    const size_t wanted = (size_t)(c->room - 1 - c->have);
    GNOMON_TRY(gnomon_source_read(c->source, c->buffer + c->have, wanted, &got));
    c->have += (int64_t)got;
    c->ended = got < wanted;
    if (c->ended && c->have > 0 && c->buffer[c->have - 1] != '\n') c->buffer[c->have++] = '\n';
    return GNOMON_OK;
}

static void count_lines(void *arg, int64_t task, int worker)
{
    (void)worker;
    gnomon_corpus *c = arg;
    cut *k = &c->cuts[task];
    const int64_t begin = c->cuts_begin + task * CUT;
    const char *from = c->buffer + begin;
    const char *const to = c->buffer + gnomon_min(begin + CUT, c->have);
    k->lines = 0;
    while ((from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
        k->last = from++ - c->buffer;
        k->lines++;
    }
}

static document line_of(const gnomon_corpus *c, int64_t number, int64_t begin, int64_t newline)
{
    static const char mark[] = "\xef\xbb\xbf";
    document d = {.id = -1, .line = number, .raw_end = newline + 1, .begin = begin};
    d.end = newline > begin && c->buffer[newline - 1] == '\r' ? newline - 1 : newline;
    if (number == 1 && d.end - begin >= 3 && memcmp(c->buffer + begin, mark, 3) == 0) d.begin += 3;
    d.text = d.begin;
    d.length = d.end - d.begin;
    if (d.length > c->options.max_bytes) d.wrong = LONG;
    return d;
}

static void take_lines(void *arg, int64_t task, int worker)
{
    (void)worker;
    gnomon_corpus *c = arg;
    const cut *k = &c->cuts[task];
    int64_t begin = k->begin, from = c->cuts_begin + task * CUT;
    for (int64_t i = k->first; i < k->first + k->lines; i++) {
        const char *newline = memchr(c->buffer + from, '\n', (size_t)(k->last + 1 - from));
        const int64_t at = newline - c->buffer;
        document *d = &c->documents[i];
        *d = line_of(c, c->line + i + 1, begin, at);
        d->wrong = decode(c, d);
        if (d->wrong != GOOD) atomic_store_explicit(&c->any_bad, true, memory_order_relaxed);
        begin = from = at + 1;
    }
}

/* The lines that are whole in the buffer, or as many as are a batch, with their texts. */
static gnomon_status cut_lines(gnomon_corpus *c)
{
    if (c->skipping) {
        const char *from = c->buffer + c->used;
        const char *newline = memchr(from, '\n', (size_t)(c->have - c->used));
        if (newline == NULL) return GNOMON_OK;
        c->skipping = false;
        c->used += newline + 1 - from;
    }
    int64_t begin = c->used, count = 0;
    for (c->cuts_begin = begin; c->cuts_begin < c->have && count == 0;) {
        const int64_t cuts = gnomon_min(c->look, gnomon_ceil_div(c->have - c->cuts_begin, CUT));
        int64_t taken = 0;
        gnomon_parallel(c->ctx, cuts, count_lines, c);
        for (; taken < cuts && count + c->cuts[taken].lines <= MOST; taken++) {
            cut *k = &c->cuts[taken];
            k->first = count;
            k->begin = begin;
            if (k->lines > 0) begin = k->last + 1;
            count += k->lines;
        }
        if (count > 0) {
            GNOMON_TRY(grow_documents(c, count));
            gnomon_parallel(c->ctx, taken, take_lines, c);
        }
        /* the lines of the others are looked for again */
        c->look = gnomon_min(CUTS, taken < cuts ? taken + taken / 4 + 1 : 2 * c->look);
        c->cuts_begin += taken * CUT;
    }
    c->count = count;
    c->line += count;
    c->used = begin;
    return GNOMON_OK;
}

/* A line that is longer than a document may be, and not yet read whole. */
static gnomon_status start_skipping(gnomon_corpus *c)
{
    document d = {.line = ++c->line, .wrong = LONG};
    c->skipping = true;
    c->have = c->used = 0;
    return report(c, &d, name_of(c));
}

static gnomon_status next_lines(gnomon_corpus *c)
{
    for (;;) {
        GNOMON_TRY(cut_lines(c));
        if (c->skipping) c->used = c->have;
        if (c->count > 0 || (c->ended && c->used == c->have)) break;
        if (c->have - c->used > c->options.max_bytes + 4) GNOMON_TRY(start_skipping(c));
        GNOMON_TRY(fill(c));
    }
    return GNOMON_OK;
}

/* ---- files ---- */

static gnomon_status read_whole(gnomon_corpus *c, gnomon_source *source, document *d)
{
    const int64_t begin = c->have;
    for (;;) {
        if (c->have == c->room) {
            const int64_t most = c->have - begin > c->options.max_bytes ? 0 : 2 * c->room;
            if (most == 0) break;
            GNOMON_TRY(grow_buffer(c, most));
        }
        const int64_t left = c->options.max_bytes + 1 - (c->have - begin);
        const size_t wanted = (size_t)gnomon_min(c->room - c->have, left);
        size_t got = 0;
        GNOMON_TRY(gnomon_source_read(source, c->buffer + c->have, wanted, &got));
        c->have += (int64_t)got;
        if (got < wanted || wanted == 0) break;
    }
    d->begin = d->text = begin;
    d->end = d->raw_end = c->have;
    d->length = c->have - begin;
    d->wrong = d->length > c->options.max_bytes ? LONG : check_text(c->buffer + begin, d->length);
    return GNOMON_OK;
}

static gnomon_status add_name(gnomon_corpus *c, const char *name, int64_t *at);

static gnomon_status read_file(gnomon_corpus *c, const char *path)
{
    gnomon_source *source;
    GNOMON_TRY(grow_documents(c, c->count + 1));
    document *d = &c->documents[c->count++];
    *d = (document){.id = -1};
    GNOMON_TRY(gnomon_source_open(c->ctx, path, GNOMON_UNPACK_NAMED, &source));
    const gnomon_status status = read_whole(c, source, d);
    gnomon_source_close(source);
    GNOMON_TRY(status);
    if (d->wrong != GOOD) {
        GNOMON_TRY(report(c, d, path));
        c->have = d->begin;
        c->count--;
        return GNOMON_OK;
    }
    return c->options.names ? add_name(c, path, &d->id) : GNOMON_OK;
}

static gnomon_status next_files(gnomon_corpus *c)
{
    c->have = 0;
    while (!c->ended && c->have < BATCH / 2 && c->count < MOST) {
        errno = 0;
        const FTSENT *entry = fts_read(c->tree);
        if (entry == NULL) {
            GNOMON_FAIL_IF(errno != 0, c->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s", c->path,
                           strerror(errno));
            c->ended = true;
            break;
        }
        if (entry->fts_info == FTS_F) GNOMON_TRY(read_file(c, entry->fts_path));
        GNOMON_FAIL_IF(entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR ||
                           entry->fts_info == FTS_DNR,
                       c->ctx, GNOMON_ERROR_IO, GNOMON_ARG("%s") ": %s", entry->fts_path,
                       strerror(entry->fts_errno));
    }
    return GNOMON_OK;
}

/* ---- batches ---- */

static gnomon_status add_name(gnomon_corpus *c, const char *name, int64_t *at)
{
    const int64_t bytes = (int64_t)strlen(name) + 1;
    if (c->name_room - c->name_bytes < bytes) {
        const int64_t room = 2 * c->name_room + bytes + 4096;
        GNOMON_TRY(gnomon_grow(c->ctx, &c->names, c->name_bytes, room, 1, "names"));
        c->name_room = room;
    }
    memcpy(c->names + c->name_bytes, name, (size_t)bytes);
    *at = c->name_bytes;
    c->name_bytes += bytes;
    return GNOMON_OK;
}

/* Names that are JSON's, and those of lines. */
static gnomon_status name_documents(gnomon_corpus *c)
{
    char number[NUMBER];
    for (int64_t i = 0; i < c->count && c->options.kind != GNOMON_CORPUS_FILES; i++) {
        document *d = &c->documents[i];
        if (d->id >= 0) {
            GNOMON_TRY(add_name(c, c->buffer + d->id, &d->id));
            continue;
        }
        snprintf(number, sizeof number, ":%" PRId64, d->line);
        GNOMON_TRY(add_name(c, c->path, &d->id));
        c->name_bytes--;
        int64_t behind;
        GNOMON_TRY(add_name(c, number, &behind));
    }
    for (int64_t i = 0; i < c->count; i++)
        c->name_list[i] = c->names + c->documents[i].id;
    return GNOMON_OK;
}

static gnomon_status drop_bad(gnomon_corpus *c)
{
    int64_t kept = 0;
    if (!atomic_load(&c->any_bad)) return GNOMON_OK;
    for (int64_t i = 0; i < c->count; i++) {
        if (c->documents[i].wrong == GOOD)
            c->documents[kept++] = c->documents[i];
        else
            GNOMON_TRY(report(c, &c->documents[i], name_of(c)));
    }
    c->count = kept;
    return GNOMON_OK;
}

static gnomon_status next_batch(gnomon_corpus *c)
{
    do {
        c->count = c->name_bytes = 0;
        atomic_store(&c->any_bad, false);
        GNOMON_TRY(c->tree != NULL ? next_files(c) : next_lines(c));
        if (c->tree == NULL) GNOMON_TRY(drop_bad(c));
    } while (c->count == 0 && !(c->ended && (c->tree != NULL || c->used == c->have)));
    return GNOMON_OK;
}

static void set_offsets(void *arg, int64_t task, int worker)
{
    (void)worker;
    gnomon_corpus *c = arg;
    const int64_t n = c->count;
    for (int64_t i = task * TASK; i < gnomon_min((task + 1) * TASK, n); i++) {
        const document *d = &c->documents[i];
        c->offsets[i] = d->text;
        c->offsets[n + i] = d->text + d->length;
        /* the line from its start: with a mark of UTF-8 that is before the text */
        c->offsets[2 * n + i] = c->tree == NULL && d->line == 1 && d->begin == 3 ? 0 : d->begin;
        c->offsets[3 * n + i] = d->raw_end;
    }
}

gnomon_status gnomon_corpus_next(gnomon_corpus *c, gnomon_documents *out, const char *const **names)
{
    if (names != NULL) *names = NULL;
    GNOMON_NEED(NULL, c, "corpus");
    GNOMON_TRY(GNOMON_OPEN_RESULT(c->ctx, "documents", gnomon_documents, out));
    GNOMON_TRY(next_batch(c));
    const int64_t n = c->count;
    gnomon_free(c->ctx, (void *)c->name_list);
    c->name_list = NULL;
    /* also where there are none: nothing is added to NULL */
    GNOMON_TRY(gnomon_renew(c->ctx, &c->offsets, &c->offset_room, n + 1, 4 * sizeof *c->offsets,
                            "documents"));
    if (c->options.names) {
        GNOMON_TRY(gnomon_alloc(c->ctx, n, sizeof *c->name_list, "names", &c->name_list));
        GNOMON_TRY(name_documents(c));
    }
    gnomon_parallel(c->ctx, gnomon_ceil_div(n, TASK), set_offsets, c);
    const gnomon_documents all = {
        sizeof all,         n,           c->buffer, c->offsets, c->offsets + n, c->offsets + 2 * n,
        c->offsets + 3 * n, c->name_list};
    gnomon_write_result(out, &all, sizeof all);
    if (names != NULL) *names = c->name_list;
    return GNOMON_OK;
}
