/* Signature files: documents' names and sets in an order that is theirs alone, so that any number
 * of files, merged in any order, make the same documents. docs/reference/formats.md has the
 * layout. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"
#include "io/sink.h"
#include "io/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { VERSION = 1 };
/* What n-grams are of. */
enum {
    CHARACTERS = 1,
    LOWER = 2,
    KEEP = 4,
    FOLD = 8,
    DROP_ALL = 16,
    NFC = 32,
    NFKC = 64,
    WEIGHTED = 128
};
static const char MAGIC[8] = {'\x89', 'G', 'N', 'M', 'D', 'D', 'S', '\n'};

typedef struct header {
    char magic[8];
    uint32_t version, flags;
    int64_t ngram, documents;
} header;

typedef struct record {
    int64_t name_bytes, text_bytes, members;
} record;

_Static_assert(sizeof(header) == 32 && sizeof(record) == 24, "no padding in the file");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "signature files are little-endian, and are read and written as they are in memory"
#endif

static uint32_t flags_of(const gnomon_dedup_options *o)
{
    static const uint32_t lower[] = {0, LOWER, FOLD}, punctuation[] = {0, KEEP, DROP_ALL},
                          form[] = {0, NFC, NFKC};
    return (o->characters ? CHARACTERS : 0u) | lower[o->lower] | punctuation[o->punctuation] |
           form[o->normalize] | (o->weighted ? WEIGHTED : 0u);
}

static void set_flags(gnomon_dedup_options *o, uint32_t flags)
{
    o->characters = (flags & CHARACTERS) != 0;
    o->weighted = (flags & WEIGHTED) != 0;
    o->lower = flags & FOLD    ? GNOMON_LOWER_FOLD
               : flags & LOWER ? GNOMON_LOWER_ASCII
                               : GNOMON_LOWER_NONE;
    o->punctuation = flags & DROP_ALL ? GNOMON_PUNCTUATION_DROP_ALL
                     : flags & KEEP   ? GNOMON_PUNCTUATION_KEEP
                                      : GNOMON_PUNCTUATION_DROP;
    o->normalize = flags & NFKC  ? GNOMON_NORMAL_NFKC
                   : flags & NFC ? GNOMON_NORMAL_NFC
                                 : GNOMON_NORMAL_NONE;
}

/* Whether flags say what options can. */
static bool sound_flags(uint32_t flags)
{
    gnomon_dedup_options o = {0};
    set_flags(&o, flags);
    return flags_of(&o) == flags;
}

enum { DESCRIBED = 128 };
static const char *describe(char text[DESCRIBED], int64_t ngram, uint32_t flags)
{
    snprintf(text, DESCRIBED, "%" PRId64 " %s%s%s%s%s", ngram,
             flags & CHARACTERS ? "characters" : "words",
             flags & FOLD    ? ", case folded"
             : flags & LOWER ? " in lower case"
                             : "",
             flags & DROP_ALL ? " without any punctuation"
             : flags & KEEP   ? " with punctuation"
                              : "",
             flags & NFKC  ? " in NFKC"
             : flags & NFC ? " in NFC"
                           : "",
             flags & WEIGHTED ? ", counted" : "");
    return text;
}

/* A document as the order sees it. */
typedef struct one {
    const char *name;
    int64_t name_bytes, text_bytes;
    gnomon_set set;
} one;

/* By name, as bytes; of equal names by the text's length, then by the set. What is equal in all of
 * these can't be told apart in any result. */
static int compare(const one *a, const one *b)
{
    const int names = memcmp(a->name, b->name, (size_t)gnomon_min(a->name_bytes, b->name_bytes));
    if (names != 0) return names;
    if (a->name_bytes != b->name_bytes) return a->name_bytes < b->name_bytes ? -1 : 1;
    if (a->text_bytes != b->text_bytes) return a->text_bytes < b->text_bytes ? -1 : 1;
    if (gnomon_set_count(a->set) != gnomon_set_count(b->set))
        return gnomon_set_count(a->set) < gnomon_set_count(b->set) ? -1 : 1;
    for (int64_t m = 0; m < gnomon_set_count(a->set); m++)
        if (a->set.members[m] != b->set.members[m])
            return a->set.members[m] < b->set.members[m] ? -1 : 1;
    return 0;
}

/* ---- writing ---- */

typedef struct signing {
    gnomon_dedup *d;
    const char *const *names; /* of those behind the d->named first ones */
    gnomon_sink *sink;
    const gnomon_document *documents; /* maps of the stores */
    const char *sets, *own_names;
    XXH3_state_t hash;
} signing;

static one document_of(const signing *s, int64_t i)
{
    const gnomon_document *two = s->documents + i;
    const char *name = i < s->d->named ? s->own_names + two[0].name_end : s->names[i - s->d->named];
    const int64_t begin = two[0].set_end, bytes = two[1].set_end - begin;
    const uint64_t *members = NULL;
    if (bytes > 0) members = (const uint64_t *)(const void *)(s->sets + begin);
    return (one){name, (int64_t)strlen(name), two[1].bytes, {members, bytes}};
}

static int by_order(const void *a, const void *b, void *user)
{
    const one x = document_of(user, *(const int64_t *)a),
              y = document_of(user, *(const int64_t *)b);
    return compare(&x, &y);
}

static gnomon_status put(signing *s, const void *data, int64_t bytes)
{
    if (bytes == 0) return GNOMON_OK;
    XXH3_64bits_update(&s->hash, data, (size_t)bytes);
    return gnomon_sink_write(s->sink, data, (size_t)bytes);
}

static gnomon_status put_all(signing *s, const int64_t *order)
{
    const gnomon_dedup *d = s->d;
    header h = {.version = VERSION,
                .flags = flags_of(&d->options),
                .ngram = d->options.ngram,
                .documents = d->fresh};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    XXH3_64bits_reset(&s->hash);
    GNOMON_TRY(put(s, &h, sizeof h));
    for (int64_t at = 0; at < d->fresh; at++) {
        const one x = document_of(s, order[at]);
        const record r = {x.name_bytes, x.text_bytes, gnomon_set_count(x.set)};
        GNOMON_TRY(put(s, &r, sizeof r));
        GNOMON_TRY(put(s, x.name, x.name_bytes));
        GNOMON_TRY(put(s, x.set.members, gnomon_set_count(x.set) * (int64_t)sizeof *x.set.members));
        if (at % 4096 == 0) GNOMON_TRY(gnomon_progress(d->ctx, "writing", at, d->fresh));
    }
    const uint64_t checksum = XXH3_64bits_digest(&s->hash);
    return gnomon_sink_write(s->sink, &checksum, sizeof checksum);
}

static gnomon_status find_stores(signing *s)
{
    const char *documents;
    GNOMON_TRY(gnomon_store_map(&s->d->documents, &documents));
    s->documents = (const gnomon_document *)(const void *)documents;
    GNOMON_TRY(gnomon_store_map(&s->d->sets, &s->sets));
    return gnomon_store_map(&s->d->names, &s->own_names);
}

typedef struct signature {
    const char *const *names;
    const char *path;
} signature;

static gnomon_status sign(gnomon_dedup *d, void *arg)
{
    const signature *w = arg;
    int64_t *order = NULL;
    signing s = {.d = d, .names = w->names};
    const gnomon_status ended = gnomon_dedup_end_on_device(d);
    d->broken = ended != GNOMON_OK;
    GNOMON_TRY(ended);
    GNOMON_TRY(gnomon_dedup_seal(d));
    GNOMON_TRY(find_stores(&s));
    GNOMON_TRY(gnomon_alloc(d->ctx, d->fresh, sizeof *order, "documents", &order));
    for (int64_t i = 0; i < d->fresh; i++)
        order[i] = i;
    if (d->fresh > 0) qsort_r(order, (size_t)d->fresh, sizeof *order, by_order, &s);
    gnomon_status status =
        gnomon_sink_open(d->ctx, w->path, &(gnomon_sink_options){.overwrite_ok = true}, &s.sink);
    if (status == GNOMON_OK) {
        status = put_all(&s, order);
        if (status == GNOMON_OK)
            status = gnomon_sink_finish(s.sink);
        else
            gnomon_sink_abort(s.sink);
    }
    gnomon_free(d->ctx, order);
    return status;
}

gnomon_status gnomon_dedup_sign(gnomon_dedup *d, const char *const *names, const char *path)
{
    GNOMON_NEED(NULL, d, "dedup");
    GNOMON_NEED(d->ctx, path, "path");
    GNOMON_FAIL_IF(d->broken, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " is of no use after a failure");
    GNOMON_FAIL_IF(
        d->options.exact, d->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("dedup") " was created with options.exact: there are no sets to sign");
    GNOMON_FAIL_IF(d->options.ngram == 0, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " has no documents from which options.ngram would follow");
    GNOMON_FAIL_IF(names == NULL && d->fresh > d->named, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("names") " is NULL");
    for (int64_t i = 0; i < d->fresh - d->named; i++)
        GNOMON_TRY(gnomon_dedup_check_name(d, names[i], d->named + i));
    if (d->ranks.comm.rank > 0) d->sealed = true; /* as on rank 0, which has the sets */
    signature w = {names, path};
    return gnomon_dedup_ranks_alone(d, sign, &w);
}

const char *gnomon_dedup_name(gnomon_dedup *d, int64_t document)
{
    /* the kernel maps so many bytes around one that is read */
    enum { AROUND = 1 << 16, PART = 16, LEAST = 16 };
    gnomon_document two[2];
    const char *names = d != NULL ? d->names.map : NULL;
    if (d == NULL || document < 0 || document >= d->count || !d->sealed) return NULL;
    if (d->ranks.comm.rank > 0) return NULL;
    if (gnomon_store_read(&d->documents, document * (int64_t)sizeof *two, sizeof two, two) !=
            GNOMON_OK ||
        two[0].name_end == two[1].name_end)
        return NULL;
    const int64_t most = gnomon_max(LEAST, gnomon_memory_limit(d->ctx) / PART / AROUND);
    if (names == NULL || d->name_calls++ % most == 0)
        if (gnomon_store_map(&d->names, &names) != GNOMON_OK) return NULL;
    return names + two[0].name_end;
}

/* ---- reading ---- */

/* A file and its next document. */
typedef struct input {
    gnomon_source *source;
    header head;
    int64_t taken; /* documents, with this one */
    record r;
    char *name, *last_name; /* room for any */
    uint64_t *members, *last_members;
    int64_t room, last_room;
    one now, last;
    XXH3_state_t hash;
} input;

static gnomon_status broken(const input *in, const char *what)
{
    return gnomon_fail(gnomon_source_context(in->source), GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": document %" PRId64 ": %s",
                       gnomon_source_name(in->source), in->taken, what);
}

static gnomon_status get(input *in, void *data, int64_t bytes, const char *what)
{
    if (bytes == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_source_exact(in->source, data, (size_t)bytes, what));
    XXH3_64bits_update(&in->hash, data, (size_t)bytes);
    return GNOMON_OK;
}

static gnomon_status get_header(gnomon_context *ctx, const char *path, input *in)
{
    GNOMON_TRY(gnomon_source_open_file(ctx, path, &in->source));
    XXH3_64bits_reset(&in->hash);
    GNOMON_TRY(get(in, &in->head, sizeof in->head, "the header"));
    const header *h = &in->head;
    const char *name = gnomon_source_name(in->source);
    GNOMON_FAIL_IF(memcmp(h->magic, MAGIC, sizeof h->magic) != 0, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": not a signature file", name);
    GNOMON_FAIL_IF(h->version != VERSION, ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") ": version %" PRIu32 "; this library reads version %d", name,
                   h->version, VERSION);
    GNOMON_FAIL_IF(!sound_flags(h->flags) || h->ngram < 1 || h->ngram > GNOMON_NGRAM_MOST ||
                       h->documents < 0 || h->documents >= UINT32_MAX,
                   ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the header holds what no writer of it writes", name);
    return GNOMON_OK;
}

/* Room grows with what has been read: a file that lies of a size costs no more than its own. */
static gnomon_status get_members(gnomon_context *ctx, input *in)
{
    enum { PIECE = 1 << 16 };
    for (int64_t have = 0; have < in->r.members;) {
        const int64_t some = gnomon_min(PIECE, in->r.members - have);
        if (have + some > in->room) {
            const int64_t room = gnomon_max(have + some, 2 * in->room);
            GNOMON_TRY(
                gnomon_grow(ctx, &in->members, have, room, sizeof *in->members, "a document"));
            in->room = room;
        }
        GNOMON_TRY(get(in, in->members + have, some * (int64_t)sizeof *in->members, "a set"));
        for (int64_t m = gnomon_max(have, 1); m < have + some; m++)
            if (in->members[m] <= in->members[m - 1]) return broken(in, "its set is not ascending");
        have += some;
    }
    return GNOMON_OK;
}

static gnomon_status check_end(gnomon_context *ctx, input *in)
{
    const uint64_t wanted = XXH3_64bits_digest(&in->hash);
    uint64_t checksum;
    const unsigned char *more;
    size_t got;
    GNOMON_TRY(gnomon_source_exact(in->source, &checksum, sizeof checksum, "the checksum"));
    GNOMON_FAIL_IF(checksum != wanted, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the checksum is wrong: the file is damaged",
                   gnomon_source_name(in->source));
    GNOMON_TRY(gnomon_source_peek(in->source, 1, &more, &got));
    GNOMON_FAIL_IF(got > 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": bytes follow the last document",
                   gnomon_source_name(in->source));
    return GNOMON_OK;
}

/* The next document of a file; *end: there is none, and the checksum is right. */
static gnomon_status next(gnomon_context *ctx, input *in, bool *end)
{
    *end = in->taken == in->head.documents;
    if (*end) return check_end(ctx, in);
    char *const name = in->last_name;
    uint64_t *const members = in->last_members;
    const int64_t room = in->last_room;
    in->last = in->now;
    in->last_name = in->name;
    in->last_members = in->members;
    in->last_room = in->room;
    in->name = name;
    in->members = members;
    in->room = room;
    GNOMON_TRY(get(in, &in->r, sizeof in->r, "a document"));
    if (in->r.name_bytes < 0 || in->r.name_bytes > GNOMON_NAME_MOST || in->r.text_bytes < 0 ||
        in->r.members < 0)
        return broken(in, "a size is out of range");
    if (in->name == NULL)
        GNOMON_TRY(gnomon_alloc(ctx, GNOMON_NAME_MOST + 1, 1, "a name", &in->name));
    GNOMON_TRY(get(in, in->name, in->r.name_bytes, "a name"));
    in->name[in->r.name_bytes] = '\0';
    if (memchr(in->name, 0, (size_t)in->r.name_bytes) != NULL)
        return broken(in, "its name has a NUL byte");
    GNOMON_TRY(get_members(ctx, in));
    in->now = (one){in->name,
                    in->r.name_bytes,
                    in->r.text_bytes,
                    {in->members, in->r.members * (int64_t)sizeof *in->members}};
    if (in->taken++ > 0 && compare(&in->last, &in->now) > 0)
        return broken(in, "documents are not in order");
    return GNOMON_OK;
}

static void close_input(gnomon_context *ctx, input *in)
{
    gnomon_source_close(in->source);
    gnomon_free(ctx, in->name);
    gnomon_free(ctx, in->last_name);
    gnomon_free(ctx, in->members);
    gnomon_free(ctx, in->last_members);
}

static gnomon_status add_one(gnomon_dedup *d, const one *x)
{
    GNOMON_FAIL_IF(
        !d->against && x->text_bytes > INT64_MAX - d->result.text_bytes, d->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("paths") ": the texts of the documents have more than 2^63 - 1 bytes");
    if (d->count < d->checkpoint.restored) {
        GNOMON_TRY(gnomon_checkpoint_pass(d, x->text_bytes));
        if (!d->against) d->named = d->count;
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_dedup_check_room(d, 1));
    GNOMON_TRY(gnomon_store_append(&d->names, x->name, x->name_bytes + 1));
    if (x->set.bytes > 0) GNOMON_TRY(gnomon_store_append(&d->sets, x->set.members, x->set.bytes));
    GNOMON_TRY(gnomon_dedup_append(d, x->text_bytes,
                                   gnomon_set_hash(x->set.members, gnomon_set_count(x->set))));
    if (!d->against) d->named = d->count;
    if (d->count % 4096 != 0) return GNOMON_OK;
    if (gnomon_checkpoint_due(d)) GNOMON_TRY(gnomon_checkpoint_save(d));
    return gnomon_progress(d->ctx, "reading", d->count, -1);
}

/* A heap of the files by their next documents. */
static void sift(input **heap, int64_t count, int64_t at)
{
    input *const x = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && compare(&heap[child + 1]->now, &heap[child]->now) < 0) child++;
        if (compare(&heap[child]->now, &x->now) >= 0) break;
        heap[at] = heap[child];
    }
    heap[at] = x;
}

/* The n-grams that were asked for; those of the first file where none were. */
static gnomon_status check_same(gnomon_dedup *d, const input *in)
{
    char its[DESCRIBED], asked[DESCRIBED];
    if (d->options.ngram == 0) {
        d->options.ngram = in->head.ngram;
        set_flags(&d->options, in->head.flags);
    }
    GNOMON_FAIL_IF(in->head.flags != flags_of(&d->options) || in->head.ngram != d->options.ngram,
                   d->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": its n-grams are of %s, and those asked for of %s",
                   gnomon_source_name(in->source), describe(its, in->head.ngram, in->head.flags),
                   describe(asked, d->options.ngram, flags_of(&d->options)));
    return GNOMON_OK;
}

static gnomon_status merge(gnomon_dedup *d, const char *const *paths, int64_t count, input *inputs,
                           input **heap)
{
    int64_t left = 0;
    bool end;
    for (int64_t f = 0; f < count; f++) {
        GNOMON_TRY(get_header(d->ctx, paths[f], &inputs[f]));
        GNOMON_TRY(check_same(d, &inputs[f]));
        GNOMON_TRY(next(d->ctx, &inputs[f], &end));
        if (!end) heap[left++] = &inputs[f];
    }
    for (int64_t at = left / 2 - 1; at >= 0; at--)
        sift(heap, left, at);
    while (left > 0) {
        GNOMON_TRY(add_one(d, &heap[0]->now));
        GNOMON_TRY(next(d->ctx, heap[0], &end));
        if (end) heap[0] = heap[--left];
        if (left > 0) sift(heap, left, 0);
    }
    return GNOMON_OK;
}

typedef struct files {
    const char *const *paths;
    int64_t count;
} files;

static gnomon_status read_files(gnomon_dedup *d, void *arg)
{
    const files *given = arg;
    const char *const *paths = given->paths;
    const int64_t count = given->count;
    input *inputs = NULL;
    input **heap = NULL;
    gnomon_status status =
        gnomon_alloc_zero(d->ctx, count, sizeof *inputs, "signature files", &inputs);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(d->ctx, count, sizeof *heap, "signature files", &heap);
    if (status == GNOMON_OK) status = merge(d, paths, count, inputs, heap);
    for (int64_t f = 0; inputs != NULL && f < count; f++)
        close_input(d->ctx, &inputs[f]);
    gnomon_free(d->ctx, inputs);
    gnomon_free(d->ctx, (void *)heap);
    d->broken = status != GNOMON_OK;
    return status;
}

/* The documents of the files, behind those that are there. */
static gnomon_status add_files(gnomon_dedup *d, const char *const *paths, int64_t count)
{
    GNOMON_FAIL_IF(count < 0, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("count") " is %" PRId64 "; it must not be negative", count);
    for (int64_t f = 0; f < count; f++)
        GNOMON_FAIL_IF(paths == NULL || paths[f] == NULL, d->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("paths") ": number %" PRId64 " is NULL", f);
    files given = {paths, count};
    return gnomon_dedup_ranks_alone(d, read_files, &given);
}

gnomon_status gnomon_dedup_add_signed(gnomon_dedup *d, const char *const *paths, int64_t count)
{
    GNOMON_NEED(NULL, d, "dedup");
    GNOMON_FAIL_IF(d->count > 0 || d->against || d->sealed || d->broken, d->ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("dedup") " %s",
                   d->broken ? "is of no use after a failure" : "has documents already");
    GNOMON_FAIL_IF(
        d->options.exact || d->options.keep_raw, d->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("dedup") " was created with options.%s: signature files have no texts",
        d->options.exact ? "exact" : "keep_raw");
    return add_files(d, paths, count);
}

gnomon_status gnomon_dedup_add_old(gnomon_dedup *d, const char *const *paths, int64_t count)
{
    GNOMON_NEED(NULL, d, "dedup");
    GNOMON_FAIL_IF(d->against || d->sealed || d->broken, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " %s",
                   d->broken    ? "is of no use after a failure"
                   : d->against ? "has an old corpus already"
                                : "takes no documents after gnomon_dedup_run or gnomon_dedup_sign");
    GNOMON_FAIL_IF(d->options.exact, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " was created with options.exact: signature files have no "
                                       "texts");
    const gnomon_status status = gnomon_dedup_end_on_device(d);
    d->broken = status != GNOMON_OK;
    GNOMON_TRY(status);
    d->against = true;
    return add_files(d, paths, count);
}
