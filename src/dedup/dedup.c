/* The calls: what is asked for, documents as they come, and the order of the steps. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/device.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "dedup/state.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

GNOMON_OPTIONS_INIT(gnomon_dedup_options, GNOMON_DEDUP_OPTIONS_INIT)
GNOMON_OPTIONS_INIT(gnomon_documents, GNOMON_DOCUMENTS_INIT)

/* ---- what is asked for ---- */

static gnomon_status check_range(gnomon_context *ctx, const char *name, int64_t value, int64_t low,
                                 int64_t high)
{
    GNOMON_FAIL_IF(value < low || value > high, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.%s") " is %" PRId64 "; it must be from %" PRId64
                                            " to %" PRId64,
                   name, value, low, high);
    return GNOMON_OK;
}

static gnomon_status check(gnomon_context *ctx, const gnomon_dedup_options *o)
{
    GNOMON_TRY(check_range(ctx, "ngram", o->ngram, 0, GNOMON_NGRAM_MOST));
    GNOMON_FAIL_IF(!(o->similarity > 0 && o->similarity <= 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.similarity") " is %g; it must be above 0 and at most 1",
                   o->similarity);
    GNOMON_FAIL_IF(!(o->recall > 0 && o->recall <= 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.recall") " is %g; it must be above 0 and at most 1",
                   o->recall);
    GNOMON_FAIL_IF((o->bands == 0) != (o->rows == 0), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.bands") " is %" PRId64 " and rows %" PRId64
                                               "; both must be set, or neither",
                   o->bands, o->rows);
    GNOMON_TRY(check_range(ctx, "bands", o->bands, 0, 1024));
    GNOMON_TRY(check_range(ctx, "rows", o->rows, 0, 64));
    GNOMON_TRY(check_range(ctx, "bucket", o->bucket, 2, 1 << 20));
    GNOMON_TRY(check_range(ctx, "lower", o->lower, GNOMON_LOWER_NONE, GNOMON_LOWER_FOLD));
    GNOMON_TRY(check_range(ctx, "punctuation", o->punctuation, GNOMON_PUNCTUATION_DROP,
                           GNOMON_PUNCTUATION_DROP_ALL));
    GNOMON_TRY(check_range(ctx, "normalize", o->normalize, GNOMON_NORMAL_NONE, GNOMON_NORMAL_NFKC));
    const bool unicode = o->normalize != GNOMON_NORMAL_NONE || o->lower == GNOMON_LOWER_FOLD ||
                         o->punctuation == GNOMON_PUNCTUATION_DROP_ALL;
    GNOMON_FAIL_IF(
        unicode && gnomon_normal_unicode() == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
        GNOMON_ARG("options.%s") " needs Unicode's tables; this library was built without "
                                 "utf8proc",
        o->normalize != GNOMON_NORMAL_NONE ? "normalize"
        : o->lower == GNOMON_LOWER_FOLD    ? "lower"
                                           : "punctuation");
    GNOMON_TRY(check_range(ctx, "keep", o->keep, GNOMON_DEDUP_FIRST, GNOMON_DEDUP_LONGEST));
    GNOMON_TRY(check_range(ctx, "keep_raw", o->keep_raw, GNOMON_RAW_NONE, GNOMON_RAW_SUM));
    GNOMON_FAIL_IF(o->unverified && (o->exact || (o->recall == 1 && o->bands == 0)), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.unverified") " is %d; it needs bands: neither exact nor "
                                                    "recall 1",
                   o->unverified);
    GNOMON_FAIL_IF(
        o->containment && (o->exact || o->unverified || o->bands > 0), ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options.containment") " is %d; it needs sets, which it compares all: "
                                          "neither exact, unverified nor bands",
        o->containment);
    return GNOMON_OK;
}

/* Shares of the memory limit. What else is in memory at a time takes the rest: keys of bands a
 * quarter, candidates and the sets that they are compared by an eighth each, and so on. */
static void start_stores(gnomon_dedup *d)
{
    enum { LEAST = 1 << 16 };
    const struct {
        gnomon_store *store;
        int64_t part;
    } stores[] = {{&d->sets, 4},       {&d->raw, 8},   {&d->names, 16},
                  {&d->documents, 16}, {&d->pairs, 8}, {&d->representatives, 16}};
    const int64_t limit = gnomon_memory_limit(d->ctx);
    for (size_t s = 0; s < sizeof stores / sizeof stores[0]; s++)
        gnomon_store_start(stores[s].store, d->ctx, d->work,
                           gnomon_max(LEAST, limit / stores[s].part));
    gnomon_sorter_start(&d->edges, d->ctx, d->work, limit / 8);
}

/* Of one rank. */
static gnomon_status create(gnomon_context *ctx, gnomon_dedup_options o, const gnomon_comm *comm,
                            gnomon_dedup **out)
{
    gnomon_dedup *d;
    GNOMON_TRY(check(ctx, &o));
    if (comm->size > 1)
        GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                        "deduplication of several ranks runs on the CPU"));
    if (comm->rank > 0) o.checkpoint = NULL; /* it is rank 0's */
    if (o.exact || o.ngram == 0 || o.weighted || o.containment || (o.recall == 1 && o.bands == 0))
        GNOMON_TRY(gnomon_device_refuse(
            ctx, GNOMON_BY_CONTEXT,
            o.exact         ? "deduplication by equal bytes runs on the CPU"
            : o.ngram == 0  ? "merging signature files runs on the CPU"
            : o.weighted    ? "weighted sets are made on the CPU"
            : o.containment ? "deduplication by containment runs on the CPU"
                            : "deduplication with recall 1, by the exact join, runs on the CPU"));
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *d, "a deduplication", &d));
    d->ctx = ctx;
    d->options = o;
    if (o.work != NULL) {
        /* found now rather than when a file is needed */
        struct stat st;
        if (stat(o.work, &st) != 0 || !S_ISDIR(st.st_mode)) {
            gnomon_dedup_destroy(d);
            return gnomon_fail(ctx, GNOMON_ERROR_NOT_FOUND,
                               GNOMON_ARG("options.work") " is '%s', which is not a folder",
                               o.work);
        }
        const gnomon_status status = gnomon_copy_text(ctx, o.work, &d->work);
        if (status != GNOMON_OK) {
            gnomon_dedup_destroy(d);
            return status;
        }
    }
    start_stores(d);
    gnomon_ngrams_start(&d->ngrams, &o, gnomon_context_isa_level(ctx));
    d->result.struct_size = sizeof d->result;
    const gnomon_document none = {0};
    gnomon_status status = gnomon_dedup_start_raw(d);
    if (status == GNOMON_OK)
        status = o.checkpoint != NULL ? gnomon_checkpoint_open(d)
                                      : gnomon_store_append(&d->documents, &none, sizeof none);
    d->options.checkpoint = d->options.identity = NULL;
    d->options.comm = NULL;
    /* a device that the caller named is there, or is missed now */
    if (status == GNOMON_OK && comm->size == 1) status = gnomon_dedup_offer(d, 0);
    if (status == GNOMON_OK)
        *out = d;
    else
        gnomon_dedup_destroy(d);
    return status;
}

gnomon_status gnomon_dedup_create(gnomon_context *ctx, const gnomon_dedup_options *options,
                                  gnomon_dedup **out)
{
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    gnomon_dedup *d = NULL;
    gnomon_comm comm;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    if (options != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_dedup_options, options, &o));
    GNOMON_TRY(gnomon_dedup_ranks_take(ctx, &o, &comm));
    gnomon_status status = create(ctx, o, &comm, &d);
    if (comm.size > 1) status = gnomon_dedup_ranks_begin(ctx, &comm, d, status);
    if (status == GNOMON_OK)
        *out = d;
    else
        gnomon_dedup_destroy(d);
    return status;
}

static void drop_slice(gnomon_dedup *d)
{
    gnomon_dedup_slice *s = &d->slice;
    gnomon_free(d->ctx, s->numbers);
    gnomon_free(d->ctx, s->places);
    gnomon_free(d->ctx, s->counts);
    gnomon_free(d->ctx, s->records);
    gnomon_free(d->ctx, s->small);
    gnomon_free(d->ctx, s->faults);
    *s = (gnomon_dedup_slice){0};
}

void gnomon_dedup_destroy(gnomon_dedup *d)
{
    if (d == NULL) return;
    gnomon_context *ctx = d->ctx;
    /* an interruption between two calls; should it fail, what was on disk before stands */
    if (!d->broken && !d->sealed && d->count > d->checkpoint.restored)
        (void)gnomon_checkpoint_save(d);
    gnomon_dedup_close_on_device(d);
    gnomon_dedup_ranks_close(d);
    gnomon_checkpoint_close(d);
    gnomon_store_free(&d->sets);
    gnomon_store_free(&d->raw);
    gnomon_store_free(&d->names);
    gnomon_store_free(&d->documents);
    gnomon_store_free(&d->pairs);
    gnomon_store_free(&d->representatives);
    gnomon_sorter_end(&d->edges);
    gnomon_free(ctx, d->work);
    drop_slice(d);
    gnomon_free(ctx, d->firsts);
    gnomon_free(ctx, d->raw_sum);
    gnomon_free(ctx, d);
}

const char *gnomon_unicode_version(void)
{
    return gnomon_normal_unicode();
}

/* ---- the n-grams of one text ---- */

gnomon_status gnomon_text_ngrams(gnomon_context *ctx, const gnomon_dedup_options *options,
                                 const char *text, int64_t bytes, uint64_t *hashes, int64_t room,
                                 int64_t *count)
{
    gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
    gnomon_ngrams ngrams;
    uint64_t *made = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, count, "count");
    *count = 0;
    if (options != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_dedup_options, options, &o));
    GNOMON_TRY(check(ctx, &o));
    GNOMON_TRY(check_range(ctx, "ngram", o.ngram, 1, GNOMON_NGRAM_MOST));
    GNOMON_FAIL_IF(bytes < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("bytes") " is %" PRId64 "; it must not be negative", bytes);
    if (bytes == 0) return GNOMON_OK;
    GNOMON_NEED(ctx, text, "text");
    gnomon_ngrams_start(&ngrams, &o, gnomon_context_isa_level(ctx));
    const int64_t most = gnomon_ngrams_most(&ngrams, text, bytes);
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, most), sizeof *made, "n-grams", &made));
    *count = gnomon_ngrams_of(&ngrams, text, bytes, made, made + most);
    if (hashes != NULL && *count <= room && *count > 0)
        memcpy(hashes, made, (size_t)*count * sizeof *made);
    gnomon_free(ctx, made);
    GNOMON_FAIL_IF(hashes != NULL && *count > room, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("room") " is %" PRId64 "; the text has %" PRId64 " n-grams", room,
                   *count);
    return GNOMON_OK;
}

/* ---- documents ---- */

enum { TASK = 16, SLICE = 1 << 19, SLICE_MOST = 1 << 22, SMALL = 1 << 13 };

/* Documents [first, first + count) of a call, of which the sets are made at once. */
typedef struct slice {
    gnomon_dedup *d;
    const gnomon_documents *from;
    int64_t first, count, most; /* most: numbers of a slice, but for those of one document */
    uint64_t *sets, *scratch;   /* document i's at places[i - first] */
    int64_t *places, *counts;   /* d->slice's */
    gnomon_document *records;
    uint64_t *hashes; /* for rank 0 */
    char *to;         /* where the sets go; NULL: one after another */
    int64_t to_size;  /* of d->sets, before */
} slice;

static void make_some(void *arg, int64_t task, int worker)
{
    const slice *s = arg;
    gnomon_dedup *d = s->d;
    for (int64_t at = task * TASK; at < gnomon_min((task + 1) * TASK, s->count); at++) {
        const int64_t i = s->first + at, begin = s->from->begins[i];
        const int64_t bytes = s->from->ends[i] - begin;
        const char *text = s->from->text + begin;
        if (gnomon_utf8_fault(text, bytes) >= 0) {
            if (at < d->slice.faults[worker]) d->slice.faults[worker] = at;
            continue;
        }
        if (d->options.exact) {
            s->records[at].hash = XXH3_64bits(text, (size_t)bytes);
            continue;
        }
        const bool small = s->places[at + 1] - s->places[at] <= SMALL;
        uint64_t *set = s->sets + s->places[at];
        s->counts[at] =
            gnomon_ngrams_of(&d->ngrams, text, bytes, set,
                             small ? d->slice.small + worker * SMALL : s->scratch + s->places[at]);
        s->records[at].hash = gnomon_set_hash(set, s->counts[at]);
    }
}

static void copy_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const slice *s = arg;
    for (int64_t at = task * TASK; at < gnomon_min((task + 1) * TASK, s->count); at++) {
        const size_t bytes = (size_t)s->counts[at] * sizeof *s->sets;
        const int64_t end = s->records[at].set_end - s->to_size;
        if (bytes > 0) memcpy(s->to + end - bytes, s->sets + s->places[at], bytes);
    }
}

/* The sets, by all threads where memory has room: it is the first touch of its pages that costs. */
static gnomon_status append_sets(slice *s)
{
    gnomon_dedup *d = s->d;
    s->to_size = d->sets.size;
    int64_t end = s->to_size;
    for (int64_t at = 0; at < s->count; at++)
        s->records[at].set_end = end += s->counts[at] * (int64_t)sizeof *s->sets;
    GNOMON_TRY(gnomon_store_claim(&d->sets, end - s->to_size, &s->to));
    if (s->to != NULL) {
        gnomon_parallel(d->ctx, gnomon_ceil_div(s->count, TASK), copy_some, s);
        return GNOMON_OK;
    }
    for (int64_t at = 0; at < s->count; at++)
        GNOMON_TRY(gnomon_store_append(&d->sets, s->sets + s->places[at],
                                       s->counts[at] * (int64_t)sizeof *s->sets));
    return GNOMON_OK;
}

static gnomon_status append_texts(slice *s)
{
    gnomon_dedup *d = s->d;
    for (int64_t at = 0; at < s->count; at++) {
        const int64_t i = s->first + at, begin = s->from->begins[i];
        GNOMON_TRY(gnomon_store_append(&d->sets, s->from->text + begin, s->from->ends[i] - begin));
        s->records[at].set_end = d->sets.size;
    }
    return GNOMON_OK;
}

/* A slice's sets, of which another rank makes some; *here: whether its documents are kept here. */
static gnomon_status make_slice(slice *s, bool *here)
{
    gnomon_dedup *d = s->d;
    const int rank = d->ranks.comm.rank;
    *here = rank == 0;
    if (!gnomon_dedup_divided(&d->ranks))
        return gnomon_dedup_over_texts(d, s->count, TASK, make_some, s, d->slice.faults);
    const int owner = gnomon_dedup_ranks_owner(d);
    if (owner == rank)
        GNOMON_TRY(gnomon_dedup_over_texts(d, s->count, TASK, make_some, s, d->slice.faults));
    if (owner == rank && rank > 0) {
        GNOMON_TRY(gnomon_alloc(d->ctx, s->count, sizeof *s->hashes, "documents", &s->hashes));
        for (int64_t at = 0; at < s->count; at++)
            s->hashes[at] = s->records[at].hash;
        const gnomon_status status =
            gnomon_dedup_ranks_send(d, s->count, s->counts, s->hashes, s->sets, s->places);
        gnomon_free(d->ctx, s->hashes);
        s->hashes = NULL;
        return status;
    }
    if (owner == rank || rank > 0) return GNOMON_OK;
    gnomon_slice_sets sets;
    GNOMON_TRY(gnomon_dedup_ranks_receive(d, owner, s->count, &sets));
    const uint64_t *set = sets.sets;
    for (int64_t at = 0; at < s->count; at++) {
        s->counts[at] = sets.counts[at];
        s->records[at].hash = sets.hashes[at];
        GNOMON_FAIL_IF(sets.counts[at] > s->places[at + 1] - s->places[at], d->ctx,
                       GNOMON_ERROR_DATA,
                       "rank %d sent a set of %" PRId64 " n-grams where the text has fewer", owner,
                       sets.counts[at]);
        if (sets.counts[at] > 0)
            memcpy(s->sets + s->places[at], set, (size_t)sets.counts[at] * sizeof *set);
        set += sets.counts[at];
    }
    return GNOMON_OK;
}

static gnomon_status take_slice(slice *s)
{
    gnomon_dedup *d = s->d;
    const gnomon_documents *from = s->from;
    bool here;
    GNOMON_TRY(make_slice(s, &here));
    for (int64_t i = s->first; i < s->first + s->count && !here; i++)
        gnomon_dedup_count(d, from->ends[i] - from->begins[i]);
    if (!here && from->names != NULL) d->named = d->count;
    if (!here) return GNOMON_OK;
    GNOMON_TRY(d->options.exact ? append_texts(s) : append_sets(s));
    int64_t raw_end = d->raw.size;
    GNOMON_TRY(gnomon_dedup_append_raw(d, from, s->first, s->count));
    for (int64_t at = 0; at < s->count; at++) {
        const int64_t i = s->first + at;
        gnomon_document *record = &s->records[at];
        if (from->names != NULL)
            GNOMON_TRY(gnomon_store_append(&d->names, from->names[i],
                                           (int64_t)strlen(from->names[i]) + 1));
        raw_end += gnomon_dedup_raw_bytes(d, from, i);
        record->raw_end = raw_end;
        record->name_end = d->names.size;
        record->bytes = from->ends[i] - from->begins[i];
        gnomon_dedup_count(d, record->bytes);
    }
    GNOMON_TRY(gnomon_store_append_shared(&d->documents, s->records,
                                          s->count * (int64_t)sizeof *s->records));
    if (from->names != NULL) d->named = d->count;
    return GNOMON_OK;
}

static gnomon_status check_offsets(gnomon_dedup *d, const gnomon_documents *from, const char *what,
                                   const int64_t *begins, const int64_t *ends)
{
    for (int64_t i = 0; i < from->count; i++)
        GNOMON_FAIL_IF(begins[i] < 0 || ends[i] < begins[i], d->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("documents.%s") ": document %" PRId64 " is [%" PRId64 ", %" PRId64
                                                  "); it must be ascending offsets",
                       what, i, begins[i], ends[i]);
    return GNOMON_OK;
}

/* Documents have names up to one, and none from there on. */
static gnomon_status check_names(gnomon_dedup *d, const gnomon_documents *from)
{
    if (from->names == NULL) return GNOMON_OK;
    GNOMON_FAIL_IF(d->named < d->count, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("documents.names") ": documents before these have none");
    for (int64_t i = 0; i < from->count; i++)
        GNOMON_TRY(gnomon_dedup_check_name(d, from->names[i], d->count + i));
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_check_documents(gnomon_dedup *d, const gnomon_documents *from)
{
    GNOMON_FAIL_IF(from->count < 0, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("documents.count") " is %" PRId64 "; it must not be negative",
                   from->count);
    if (from->count == 0) return GNOMON_OK;
    GNOMON_NEED(d->ctx, from->text, "documents.text");
    GNOMON_NEED(d->ctx, from->begins, "documents.begins");
    GNOMON_NEED(d->ctx, from->ends, "documents.ends");
    GNOMON_FAIL_IF((from->raw_begins == NULL) != (from->raw_ends == NULL), d->ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("documents.raw_begins") " and raw_ends: one of them is NULL");
    GNOMON_TRY(check_offsets(d, from, "begins", from->begins, from->ends));
    GNOMON_TRY(check_names(d, from));
    if (from->raw_begins == NULL) return GNOMON_OK;
    return check_offsets(d, from, "raw_begins", from->raw_begins, from->raw_ends);
}

/* Documents from s->first on whose n-grams fit in a slice, one at least. */
static int64_t cut_slice(slice *s, int64_t *numbers)
{
    int64_t count = 0, total = 0;
    for (int64_t i = s->first; i < s->from->count && count < s->most / 8; i++) {
        const int64_t begin = s->from->begins[i], bytes = s->from->ends[i] - begin;
        const int64_t most = s->d->options.exact
                                 ? 0
                                 : gnomon_ngrams_most(&s->d->ngrams, s->from->text + begin, bytes);
        if (count > 0 && total + most > s->most) break;
        if (s->places != NULL) s->places[count] = total;
        total += most;
        count++;
    }
    if (s->places != NULL) s->places[count] = total;
    *numbers = total;
    return count;
}

/* Room for a slice of so many documents and numbers; there will be slices of 'most' numbers. */
static gnomon_status hold_slice(gnomon_dedup *d, int64_t count, int64_t numbers, int64_t most)
{
    gnomon_dedup_slice *s = &d->slice;
    const int64_t threads = gnomon_context_threads(d->ctx);
    if (s->faults == NULL)
        GNOMON_TRY(gnomon_alloc(d->ctx, threads, sizeof *s->faults, "documents", &s->faults));
    if (s->small == NULL)
        GNOMON_TRY(gnomon_alloc(d->ctx, gnomon_times(threads, SMALL), sizeof *s->small, "n-grams",
                                &s->small));
    if (numbers > s->number_room) {
        const int64_t room = gnomon_max(numbers, gnomon_min(most, 2 * numbers));
        GNOMON_TRY(gnomon_renew(d->ctx, &s->numbers, &s->number_room, room, 2 * sizeof *s->numbers,
                                "n-grams"));
    }
    if (count > s->room) {
        gnomon_free(d->ctx, s->places);
        gnomon_free(d->ctx, s->counts);
        gnomon_free(d->ctx, s->records);
        s->places = s->counts = NULL;
        s->records = NULL;
        s->room = 0;
        GNOMON_TRY(gnomon_alloc(d->ctx, count + 1, sizeof *s->places, "documents", &s->places));
        GNOMON_TRY(gnomon_alloc(d->ctx, count, sizeof *s->counts, "documents", &s->counts));
        GNOMON_TRY(gnomon_alloc(d->ctx, count, sizeof *s->records, "documents", &s->records));
        s->room = count;
    }
    return GNOMON_OK;
}

static gnomon_status add_all(gnomon_dedup *d, const gnomon_documents *from, slice *s)
{
    const int64_t threads = gnomon_context_threads(d->ctx);
    int64_t numbers, most_numbers = 1, most_count = 0; /* 1: nothing is added to NULL */
    /* enough for all threads, and a small part of the memory */
    s->most = gnomon_min(SLICE_MOST, gnomon_memory_limit(d->ctx) / 256);
    s->most = gnomon_max(SLICE, gnomon_min(s->most, threads * SLICE / 2));
    if (gnomon_dedup_divided(&d->ranks)) s->most = SLICE; /* the same on all */
    for (s->first = 0; s->first < from->count; s->first += s->count) {
        s->count = cut_slice(s, &numbers);
        most_numbers = gnomon_max(most_numbers, numbers);
        most_count = gnomon_max(most_count, s->count);
    }
    GNOMON_TRY(hold_slice(d, most_count, most_numbers, s->most));
    s->sets = d->slice.numbers;
    s->scratch = d->slice.numbers + d->slice.number_room;
    s->places = d->slice.places;
    s->counts = d->slice.counts;
    s->records = d->slice.records;
    for (s->first = 0; s->first < from->count; s->first += s->count) {
        s->count = cut_slice(s, &numbers);
        GNOMON_TRY(gnomon_dedup_check_room(d, s->count));
        GNOMON_TRY(take_slice(s));
        GNOMON_TRY(gnomon_progress(d->ctx, "reading", d->count, -1));
    }
    return GNOMON_OK;
}

static int64_t bytes_of(const gnomon_documents *from)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < from->count; i++)
        bytes += from->ends[i] - from->begins[i];
    return bytes;
}

/* What a checkpoint has already. */
static gnomon_status pass_over(gnomon_dedup *d, gnomon_documents *from)
{
    int64_t i = 0;
    for (; i < from->count && d->count < d->ranks.restored && d->ranks.comm.rank > 0; i++)
        gnomon_dedup_count(d, from->ends[i] - from->begins[i]);
    for (; i < from->count && d->count < d->checkpoint.restored; i++)
        GNOMON_TRY(gnomon_checkpoint_pass(d, from->ends[i] - from->begins[i]));
    if (i == 0) return GNOMON_OK;
    gnomon_dedup_sum_raw(d->raw_sum, from, 0, i);
    from->count -= i;
    from->begins += i;
    from->ends += i;
    if (from->raw_begins != NULL) {
        from->raw_begins += i;
        from->raw_ends += i;
    }
    if (from->names != NULL) {
        from->names += i;
        d->named = d->count;
    }
    return gnomon_progress(d->ctx, "reading", d->count, -1);
}

static gnomon_status add_documents(gnomon_dedup *d, const gnomon_documents *documents)
{
    gnomon_documents from = {.struct_size = sizeof from};
    GNOMON_FAIL_IF(d->sealed || d->against || d->broken, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " takes no documents after %s",
                   d->broken    ? "a failure"
                   : d->against ? "those of an old corpus"
                                : "gnomon_dedup_run or gnomon_dedup_sign");
    GNOMON_FAIL_IF(d->options.ngram == 0, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.ngram") " was 0, which is for signature files alone");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(d->ctx, "documents", gnomon_documents, documents, &from));
    GNOMON_TRY(gnomon_dedup_check_documents(d, &from));
    d->ranks.given += from.count;
    GNOMON_TRY(pass_over(d, &from));
    slice s = {.d = d, .from = &from};
    double clock = gnomon_seconds();
    gnomon_status status = GNOMON_OK;
    if (!gnomon_dedup_divided(&d->ranks)) status = gnomon_dedup_offer(d, bytes_of(&from));
    if (status == GNOMON_OK)
        status =
            d->device.texts != NULL ? gnomon_dedup_add_on_device(d, &from) : add_all(d, &from, &s);
    if (status == GNOMON_OK && gnomon_checkpoint_due(d)) status = gnomon_checkpoint_save(d);
    d->broken = status != GNOMON_OK;
    d->result.add_seconds += gnomon_lap(&clock);
    return status;
}

gnomon_status gnomon_dedup_add(gnomon_dedup *d, const gnomon_documents *documents)
{
    GNOMON_NEED(NULL, d, "dedup");
    gnomon_status status = add_documents(d, documents);
    if (status == GNOMON_OK) status = gnomon_dedup_ranks_wait(d);
    if (status == GNOMON_OK || !gnomon_dedup_divided(&d->ranks)) return status;
    d->broken = true; /* the others don't know which documents were taken */
    return gnomon_dedup_ranks_fail(d, status);
}

/* ---- the steps ---- */

static gnomon_status run(gnomon_dedup *d)
{
    gnomon_dedup_result *r = &d->result;
    double clock = gnomon_seconds();
    r->documents = d->fresh;
    r->old = d->count - d->fresh;
    drop_slice(d);
    GNOMON_FAIL_IF(d->count < d->checkpoint.restored ||
                       (d->count > d->checkpoint.restored && d->checkpoint.grouped),
                   d->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": it has %" PRId64 " documents, and here are %" PRId64
                                    ": it is the checkpoint of another corpus",
                   d->checkpoint.path, d->checkpoint.restored, d->count);
    GNOMON_TRY(gnomon_dedup_end_on_device(d));
    GNOMON_TRY(gnomon_dedup_seal(d));
    GNOMON_TRY(gnomon_dedup_group(d));
    if (!d->checkpoint.grouped) {
        d->checkpoint.grouped = true;
        GNOMON_TRY(gnomon_checkpoint_save(d));
    }
    r->group_seconds = gnomon_lap(&clock);
    if (d->options.exact) {
        strcpy(r->why, "equal bytes");
        r->recall_bound = 1;
    } else if (d->options.containment) {
        if (!d->checkpoint.paired) GNOMON_TRY(gnomon_dedup_contain(d));
        r->verify_seconds = gnomon_lap(&clock);
    } else if (d->options.recall == 1 && d->options.bands == 0) {
        if (!d->checkpoint.paired) GNOMON_TRY(gnomon_dedup_exact(d));
        r->verify_seconds = gnomon_lap(&clock);
    } else {
        GNOMON_TRY(gnomon_dedup_plan(d));
        r->plan_seconds = gnomon_lap(&clock);
        if (!d->checkpoint.paired) GNOMON_TRY(gnomon_dedup_bands(d));
    }
    if (!d->checkpoint.paired) {
        d->checkpoint.paired = true;
        GNOMON_TRY(gnomon_checkpoint_save(d));
    }
    gnomon_lap(&clock);
    r->spilled = d->sets.fd >= 0 || d->raw.fd >= 0 || d->edges.runs > 0;
    GNOMON_TRY(gnomon_dedup_cluster(d));
    r->cluster_seconds = gnomon_lap(&clock);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_run(gnomon_dedup *d, gnomon_dedup_result *result)
{
    GNOMON_NEED(NULL, d, "dedup");
    if (result != NULL)
        GNOMON_TRY(GNOMON_OPEN_RESULT(d->ctx, "result", gnomon_dedup_result, result));
    GNOMON_FAIL_IF(d->done || d->broken, d->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("dedup") " %s",
                   d->done ? "has run" : "is of no use after a failure");
    const bool divided = gnomon_dedup_divided(&d->ranks);
    gnomon_status status = GNOMON_OK;
    if (divided) status = gnomon_dedup_ranks_meet(d);
    if (status == GNOMON_OK && d->ranks.comm.rank == 0) status = run(d);
    if (status == GNOMON_OK && divided) status = gnomon_dedup_ranks_finish(d);
    if (status != GNOMON_OK) status = gnomon_dedup_ranks_fail(d, status);
    d->broken = status != GNOMON_OK;
    d->done = !d->broken;
    d->sealed = d->sealed || d->done; /* on all ranks */
    if (d->done) gnomon_write_result(result, &d->result, sizeof d->result);
    return status;
}

/* ---- results ---- */

const int64_t *gnomon_dedup_representatives(gnomon_dedup *d)
{
    const char *data = NULL;
    if (d == NULL || !d->done || d->ranks.comm.rank > 0) return NULL;
    if (gnomon_store_map(&d->representatives, &data) != GNOMON_OK) return NULL;
    return (const int64_t *)(const void *)data;
}

const gnomon_dedup_pair *gnomon_dedup_pairs(gnomon_dedup *d, int64_t *count)
{
    const char *data = NULL;
    if (count != NULL) *count = 0;
    if (d == NULL || !d->done || d->ranks.comm.rank > 0) return NULL;
    if (gnomon_store_map(&d->pairs, &data) != GNOMON_OK) return NULL;
    if (count != NULL && data != NULL) *count = d->result.pairs;
    return (const gnomon_dedup_pair *)(const void *)data;
}
