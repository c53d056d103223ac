#include "dedup/device/texts.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"

#include <inttypes.h>
#include <string.h>

/* Texts of more bytes are the CPU's: one warp hashes a word, and one block sorts a set. */
enum { LONGEST = 1 << 16, TASK = 64 };

/* ---- whether a device makes the sets ---- */

/* Seconds a byte of text: on one thread of the CPU, of words with AVX-512 and without, and of
 * characters (bench/records/dedup-cpu.json); with a device, its host's share included (H100 and 16
 * threads; bench/records/gpu/dedup.json has an H200's, much the same). And until a device has been
 * found and taken into use: a machine with one GPU; each further one makes it longer. */
static const double wide_word = 1.5e-9, word = 4e-9, character = 1e-8;
static const double device_word = 4.2e-10, device_character = 8.9e-10, first_look = 0.36;

/* n-grams of a byte, and seconds of one of them and one hash function of given bands, on one thread
 * and (of all functions) with a device; as in keys.c. */
static const double of_words = 0.15, of_characters = 0.95, one_hash = 3e-10, device_hashes = 1.6e-9;

/* Whether a device would have saved more than its start takes, had it made the sets so far and,
 * where bands are given, were to make their keys: then it is taken, on the guess that as much text
 * is still to come. */
static bool worth(const gnomon_dedup *d)
{
    const gnomon_ngrams *n = &d->ngrams;
    const double functions = (double)(d->options.bands * d->options.rows);
    const double members = n->characters ? of_characters : of_words;
    double here = n->characters ? character : n->wide ? wide_word : word;
    double there = n->characters ? device_character : device_word;
    if (functions > 0) {
        here += members * functions * one_hash;
        there += members * device_hashes;
    }
    here /= (double)gnomon_context_threads(d->ctx);
    return d->device.offered * (here - there) > first_look;
}

static bool takes(gnomon_device_call *call, void *arg)
{
    const gnomon_dedup *d = arg;
    if (call->table->dedup_open == NULL)
        return gnomon_device_unable(call, "it makes no sets of texts");
    return call->table->dedup_supports(call->state, &d->device.job, call->why, sizeof call->why);
}

static gnomon_status run(gnomon_device_call *call, void *arg)
{
    gnomon_dedup *d = arg;
    gnomon_dedup_device *v = &d->device;
    v->job.host = &call->host;
    GNOMON_TRY(
        call->table->dedup_open(call->state, &v->job, &v->texts, call->why, sizeof call->why));
    call->table->dedup_slot(call->state, v->texts, &v->slot);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_offer(gnomon_dedup *d, int64_t bytes)
{
    gnomon_dedup_device *v = &d->device;
    const bool must = gnomon_context_device(d->ctx) == GNOMON_DEVICE_PLUGIN;
    if (v->asked || d->options.exact || d->options.ngram == 0 || d->options.weighted)
        return GNOMON_OK;
    v->offered += (double)bytes;
    if (!must && !worth(d)) return GNOMON_OK;
    v->asked = true;
    v->job = (gnomon_dedup_job){.length = d->ngrams.length,
                                .characters = d->ngrams.characters,
                                .map = d->ngrams.map,
                                .longest = LONGEST,
                                .memory_limit = gnomon_memory_limit(d->ctx)};
    const gnomon_device_step step = {.phase = "reading", .takes = takes, .run = run};
    bool done;
    const gnomon_status status =
        gnomon_device_run(&v->call, d->ctx, GNOMON_BY_CONTEXT, &step, d, &done);
    v->used = done && status == GNOMON_OK;
    for (int p = 0; p < GNOMON_DEDUP_SLOTS && v->used; p++)
        GNOMON_TRY(gnomon_alloc(d->ctx, v->slot.room, sizeof *v->parts[p].documents, "documents",
                                &v->parts[p].documents));
    /* a device that has no room is no reason to fail where the CPU has */
    return must ? status : GNOMON_OK;
}

/* ---- what comes back ---- */

/* Sets of documents [first, end), which follow one another in the device's. */
static gnomon_status append_run(gnomon_dedup *d, const gnomon_dedup_sets *sets, int64_t first,
                                int64_t end)
{
    const int64_t begin = first > 0 ? sets->ends[first - 1] : 0;
    const int64_t members = first < end ? sets->ends[end - 1] - begin : 0;
    return gnomon_store_append_shared(&d->sets, sets->members + begin,
                                      members * (int64_t)sizeof *sets->members);
}

static gnomon_status take(gnomon_dedup *d)
{
    gnomon_dedup_device *v = &d->device;
    const gnomon_dedup_part *part = &v->parts[v->taken % GNOMON_DEDUP_SLOTS];
    gnomon_dedup_sets sets;
    gnomon_device_again(&v->call);
    GNOMON_TRY(
        gnomon_device_result(&v->call, v->call.table->dedup_take(v->call.state, v->texts, &sets,
                                                                 v->call.why, sizeof v->call.why)));
    v->taken++;
    int64_t set_end = d->sets.size, first = 0;
    for (int64_t i = 0; i < part->count; i++) {
        const gnomon_waiting *w = &part->documents[i];
        const bool own = w->place >= 0;
        const int64_t members = own ? w->count : sets.ends[i] - (i > 0 ? sets.ends[i - 1] : 0);
        if (own) {
            GNOMON_TRY(append_run(d, &sets, first, i));
            GNOMON_TRY(gnomon_store_append(&d->sets, part->numbers + w->place,
                                           members * (int64_t)sizeof *part->numbers));
            first = i + 1;
        }
        set_end += members * (int64_t)sizeof *sets.members;
        const gnomon_document one = {set_end, w->raw_end, w->name_end, w->bytes,
                                     own ? w->hash : sets.hashes[i]};
        GNOMON_TRY(gnomon_store_append(&d->documents, &one, sizeof one));
    }
    return append_run(d, &sets, first, part->count);
}

static gnomon_status drain(gnomon_dedup *d)
{
    while (d->device.taken < d->device.pushed)
        GNOMON_TRY(take(d));
    return GNOMON_OK;
}

void gnomon_dedup_close_on_device(gnomon_dedup *d)
{
    gnomon_dedup_device *v = &d->device;
    if (v->texts != NULL) v->call.table->dedup_close(v->call.state, v->texts);
    v->texts = NULL;
    for (int p = 0; p < GNOMON_DEDUP_SLOTS; p++) {
        gnomon_free(d->ctx, v->parts[p].documents);
        gnomon_free(d->ctx, v->parts[p].numbers);
        v->parts[p] = (gnomon_dedup_part){0};
    }
}

gnomon_status gnomon_dedup_end_on_device(gnomon_dedup *d)
{
    GNOMON_TRY(drain(d));
    gnomon_dedup_close_on_device(d);
    return GNOMON_OK;
}

/* ---- what goes there ---- */

/* Documents [first, first + count) of a call. */
typedef struct sending {
    gnomon_dedup *d;
    const gnomon_documents *from;
    int64_t first, count;
    gnomon_dedup_part *part;
    gnomon_dedup_slot slot;
    int64_t *faults; /* of a worker: the first document that is no UTF-8, or count */
    int64_t *own;    /* documents whose sets are made here */
    int64_t own_count;
} sending;

static void send_some(void *arg, int64_t task, int worker)
{
    const sending *s = arg;
    const gnomon_ngrams *n = &s->d->ngrams;
    for (int64_t at = task * TASK; at < gnomon_min((task + 1) * TASK, s->count); at++) {
        const int64_t i = s->first + at, begin = s->from->begins[i];
        const int64_t bytes = s->from->ends[i] - begin;
        const char *text = s->from->text + begin;
        const int64_t ascii = gnomon_normal_ascii(text, bytes);
        if (ascii < bytes && gnomon_utf8_fault(text + ascii, bytes - ascii) >= 0 &&
            at < s->faults[worker])
            s->faults[worker] = at;
        const bool own = bytes > LONGEST || (n->normalizes && ascii < bytes);
        char *to = s->slot.text + s->slot.begins[at];
        if (!own && bytes > 0) memcpy(to, text, (size_t)bytes);
        s->slot.lengths[at] = own ? 0 : (uint32_t)bytes;
        to[own ? 0 : bytes] = '\0';
        s->part->documents[at].place = own ? 0 : -1;
    }
}

static void make_one(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sending *s = arg;
    gnomon_waiting *w = &s->part->documents[s->own[task]];
    const int64_t i = s->first + s->own[task], begin = s->from->begins[i];
    uint64_t *set = s->part->numbers + w->place;
    w->count = gnomon_ngrams_of(&s->d->ngrams, s->from->text + begin, s->from->ends[i] - begin, set,
                                set + s->part->number_room);
    w->hash = gnomon_set_hash(set, w->count);
}

/* The sets that the device does not make. */
static gnomon_status make_own(sending *s)
{
    gnomon_dedup *d = s->d;
    gnomon_dedup_part *p = s->part;
    int64_t room = 0;
    s->own_count = 0;
    for (int64_t at = 0; at < s->count; at++) {
        gnomon_waiting *w = &p->documents[at];
        if (w->place < 0) continue;
        const int64_t i = s->first + at, begin = s->from->begins[i];
        w->place = room;
        room += gnomon_ngrams_most(&d->ngrams, s->from->text + begin, s->from->ends[i] - begin);
        s->own[s->own_count++] = at;
    }
    GNOMON_TRY(gnomon_renew(d->ctx, &p->numbers, &p->number_room, room, 2 * sizeof *p->numbers,
                            "n-grams"));
    gnomon_parallel(d->ctx, s->own_count, make_one, s);
    return GNOMON_OK;
}

/* What of the documents is not their sets. */
static gnomon_status keep_others(sending *s)
{
    gnomon_dedup *d = s->d;
    const gnomon_documents *from = s->from;
    int64_t raw_end = d->raw.size;
    GNOMON_TRY(gnomon_dedup_append_raw(d, from, s->first, s->count));
    for (int64_t at = 0; at < s->count; at++) {
        const int64_t i = s->first + at;
        gnomon_waiting *w = &s->part->documents[at];
        if (from->names != NULL)
            GNOMON_TRY(gnomon_store_append(&d->names, from->names[i],
                                           (int64_t)strlen(from->names[i]) + 1));
        raw_end += gnomon_dedup_raw_bytes(d, from, i);
        w->bytes = from->ends[i] - from->begins[i];
        w->raw_end = raw_end;
        w->name_end = d->names.size;
        gnomon_dedup_count(d, w->bytes);
    }
    s->part->count = s->count;
    if (from->names != NULL) d->named = d->count;
    return GNOMON_OK;
}

/* Documents from s->first on that a slot has room for; *bytes of it. Long ones, which take none,
 * end it when they are many bytes: what is made of them is in memory at once. */
static int64_t cut_part(sending *s, int64_t *bytes)
{
    int64_t at = 0, count = 0, others = 0;
    for (; s->first + count < s->from->count && count < s->slot.room; count++) {
        const int64_t i = s->first + count, size = s->from->ends[i] - s->from->begins[i];
        const bool is_long = size > LONGEST;
        const int64_t taken = is_long ? 1 : size + 1;
        if (count > 0 &&
            (at + taken > s->slot.text_room || (is_long && others + size > s->slot.text_room)))
            break;
        s->slot.begins[count] = (uint32_t)at;
        at += taken;
        if (is_long) others += size;
    }
    *bytes = at;
    return count;
}

static gnomon_status send_part(sending *s)
{
    gnomon_dedup *d = s->d;
    gnomon_dedup_device *v = &d->device;
    int64_t bytes;
    /* the slot's texts before have been read, and their sets must have been taken */
    if (v->pushed - v->taken == GNOMON_DEDUP_SLOTS) GNOMON_TRY(take(d));
    v->call.table->dedup_slot(v->call.state, v->texts, &s->slot);
    s->part = &v->parts[v->pushed % GNOMON_DEDUP_SLOTS];
    s->count = cut_part(s, &bytes);
    GNOMON_TRY(gnomon_dedup_check_room(d, s->count));
    GNOMON_TRY(gnomon_dedup_over_texts(d, s->count, TASK, send_some, s, s->faults));
    gnomon_device_again(&v->call);
    GNOMON_TRY(gnomon_device_result(
        &v->call, v->call.table->dedup_push(v->call.state, v->texts, s->count, bytes, v->call.why,
                                            sizeof v->call.why)));
    v->pushed++;
    GNOMON_TRY(make_own(s));
    GNOMON_TRY(keep_others(s));
    /* the part before, while this one is at work */
    if (v->pushed - v->taken == GNOMON_DEDUP_SLOTS) GNOMON_TRY(take(d));
    return gnomon_progress(d->ctx, "reading", d->count, -1);
}

gnomon_status gnomon_dedup_add_on_device(gnomon_dedup *d, const gnomon_documents *from)
{
    sending s = {.d = d, .from = from};
    gnomon_status status = gnomon_alloc(d->ctx, gnomon_context_threads(d->ctx), sizeof *s.faults,
                                        "documents", &s.faults);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->device.slot.room, sizeof *s.own, "documents", &s.own);
    gnomon_context_set_worked(d->ctx, d->device.call.plugin);
    for (; s.first < from->count && status == GNOMON_OK; s.first += s.count)
        status = send_part(&s);
    gnomon_free(d->ctx, s.faults);
    gnomon_free(d->ctx, s.own);
    /* a checkpoint has all documents that were added */
    if (status == GNOMON_OK && d->checkpoint.path != NULL) status = drain(d);
    return status;
}
