/* The bytes of documents as they came, and those of the kept ones written: they are held, or read
 * again. */
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "dedup/state.h"
#include "io/sink.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* ---- as they come ---- */

typedef gnomon_status (*take_fn)(void *arg, const char *bytes, int64_t count);

/* Raw bytes of documents [first, first + count), or with 'kept' of those that are represented by
 * themselves, of which from's first one is 'number'; those that follow one another at once. */
static gnomon_status each_run(const gnomon_documents *from, int64_t first, int64_t count,
                              const int64_t *kept, int64_t number, take_fn take, void *arg)
{
    const int64_t *begins = from->raw_begins != NULL ? from->raw_begins : from->begins;
    const int64_t *ends = from->raw_begins != NULL ? from->raw_ends : from->ends;
    for (int64_t i = first, end; i < first + count; i = end) {
        end = i + 1;
        if (kept != NULL && kept[i] != number + i) continue;
        while (end < first + count && begins[end] == ends[end - 1] &&
               (kept == NULL || kept[end] == number + end))
            end++;
        GNOMON_TRY(take(arg, from->text + begins[i], ends[end - 1] - begins[i]));
    }
    return GNOMON_OK;
}

static gnomon_status hold(void *arg, const char *bytes, int64_t count)
{
    return gnomon_store_append_shared(arg, bytes, count);
}

static gnomon_status add_to_sum(void *arg, const char *bytes, int64_t count)
{
    XXH3_64bits_update(arg, bytes, (size_t)count);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_start_raw(gnomon_dedup *d)
{
    if (d->options.keep_raw != GNOMON_RAW_SUM) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(d->ctx, 1, sizeof *d->raw_sum, "a checksum", &d->raw_sum));
    XXH3_64bits_reset(d->raw_sum);
    return GNOMON_OK;
}

void gnomon_dedup_sum_raw(XXH3_state_t *sum, const gnomon_documents *from, int64_t first,
                          int64_t count)
{
    if (sum != NULL) (void)each_run(from, first, count, NULL, 0, add_to_sum, sum);
}

gnomon_status gnomon_dedup_append_raw(gnomon_dedup *d, const gnomon_documents *from, int64_t first,
                                      int64_t count)
{
    gnomon_dedup_sum_raw(d->raw_sum, from, first, count);
    if (d->options.keep_raw != GNOMON_RAW_HELD) return GNOMON_OK;
    return each_run(from, first, count, NULL, 0, hold, &d->raw);
}

/* ---- written ---- */

/* Writes them: a gnomon_sink, or NULL. */
typedef gnomon_status (*write_fn)(gnomon_dedup *d, void *arg, gnomon_sink *sink);

/* To path, with keep_raw as it must be. */
static gnomon_status write_to(gnomon_dedup *d, gnomon_raw raw, const char *path, write_fn write,
                              void *arg)
{
    gnomon_sink *sink;
    GNOMON_NEED(d->ctx, path, "path");
    GNOMON_FAIL_IF(!d->done || d->options.keep_raw != (int)raw, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dedup") " %s%s",
                   d->done ? "was created without options.keep_raw " : "has not run",
                   !d->done                 ? ""
                   : raw == GNOMON_RAW_HELD ? "HELD"
                                            : "SUM");
    if (d->ranks.comm.rank > 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_sink_open(d->ctx, path, &(gnomon_sink_options){.overwrite_ok = true}, &sink));
    const gnomon_status status = write(d, arg, sink);
    if (status == GNOMON_OK) return gnomon_sink_finish(sink);
    gnomon_sink_abort(sink);
    return status;
}

/* Raw bytes [begin, end) of documents that are held. Parts in memory wait until there are many. */
typedef struct writing {
    gnomon_window raw;
    gnomon_sink *sink;
    struct iovec parts[IOV_MAX];
    int count;
} writing;

static gnomon_status put_waiting(writing *w)
{
    const int count = w->count;
    w->count = 0;
    return gnomon_sink_write_parts(w->sink, w->parts, count);
}

static gnomon_status put_held(writing *w, int64_t begin, int64_t end)
{
    const gnomon_store *raw = w->raw.store;
    if (raw->fd < 0) {
        if (begin == end) return GNOMON_OK;
        w->parts[w->count++] = (struct iovec){raw->data + begin, (size_t)(end - begin)};
        return w->count == IOV_MAX ? put_waiting(w) : GNOMON_OK;
    }
    for (int64_t some; begin < end; begin += some) {
        const char *text;
        some = gnomon_min(w->raw.room, end - begin);
        GNOMON_TRY(gnomon_window_get(&w->raw, begin, some, &text));
        GNOMON_TRY(gnomon_sink_write(w->sink, text, (size_t)some));
    }
    return GNOMON_OK;
}

static gnomon_status put_all(gnomon_dedup *d, writing *w, gnomon_window *documents,
                             gnomon_window *kept)
{
    enum { BLOCK = 1024 };
    int64_t begin = 0, end = 0; /* kept bytes that follow one another, not yet written */
    for (int64_t first = 0; first < d->fresh; first += BLOCK) {
        const gnomon_document *document;
        const int64_t *best, count = gnomon_min(BLOCK, d->fresh - first);
        const int64_t each = sizeof *document, number = sizeof *best;
        GNOMON_TRY(gnomon_window_get(kept, first * number, count * number, &best));
        GNOMON_TRY(gnomon_window_get(documents, first * each, (count + 1) * each, &document));
        for (int64_t i = 0; i < count; i++) {
            if (best[i] != first + i) continue;
            if (document[i].raw_end != end) {
                GNOMON_TRY(put_held(w, begin, end));
                begin = document[i].raw_end;
            }
            end = document[i + 1].raw_end;
        }
        GNOMON_TRY(gnomon_progress(d->ctx, "writing", first, d->fresh));
    }
    GNOMON_TRY(put_held(w, begin, end));
    return put_waiting(w);
}

static gnomon_status write_held(gnomon_dedup *d, void *unused, gnomon_sink *sink)
{
    enum { WINDOW = 1 << 20 };
    gnomon_window documents, kept;
    writing *w;
    (void)unused;
    GNOMON_TRY(gnomon_alloc_zero(d->ctx, 1, sizeof *w, "what is written", &w));
    w->sink = sink;
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&kept, &d->representatives, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&w->raw, &d->raw, WINDOW);
    const gnomon_status status = put_all(d, w, &documents, &kept);
    gnomon_window_end(&documents);
    gnomon_window_end(&kept);
    gnomon_window_end(&w->raw);
    gnomon_free(d->ctx, w);
    return status;
}

gnomon_status gnomon_dedup_write(gnomon_dedup *d, const char *path)
{
    GNOMON_NEED(NULL, d, "dedup");
    return write_to(d, GNOMON_RAW_HELD, path, write_held, NULL);
}

typedef struct again {
    const char *const *inputs;
    int64_t count;
    gnomon_corpus_options options;
    gnomon_window kept;
    int64_t number; /* documents read */
    XXH3_state_t *sum;
    gnomon_sink *sink;
} again;

static gnomon_status put(void *arg, const char *bytes, int64_t count)
{
    return gnomon_sink_write(arg, bytes, (size_t)count);
}

static void pass(void *user, const char *file, int64_t line, const char *why)
{
    (void)user, (void)file, (void)line, (void)why; /* told when it was read first */
}

static gnomon_status changed(const gnomon_dedup *d, const again *a, int64_t input)
{
    const bool which = input < a->count;
    GNOMON_FAIL_IF(a->count == 0, d->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("count") " is 0, but documents were added");
    return gnomon_fail(d->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") "%s does not hold the documents that were added: a file "
                                        "must not be changed before the kept ones are written",
                       a->inputs[which ? input : 0],
                       which || a->count == 1 ? "" : " or an input after it");
}

static gnomon_status write_input(gnomon_dedup *d, again *a, int64_t input, gnomon_corpus *corpus)
{
    gnomon_documents batch = {.struct_size = sizeof batch};
    for (;;) {
        const int64_t *kept;
        const int64_t each = sizeof *kept;
        GNOMON_TRY(gnomon_corpus_next(corpus, &batch, NULL));
        if (batch.count == 0) return GNOMON_OK;
        if (batch.count > d->fresh - a->number) return changed(d, a, input);
        gnomon_dedup_sum_raw(a->sum, &batch, 0, batch.count);
        GNOMON_TRY(gnomon_window_get(&a->kept, a->number * each, batch.count * each, &kept));
        GNOMON_TRY(each_run(&batch, 0, batch.count, kept, a->number, put, a->sink));
        a->number += batch.count;
        GNOMON_TRY(gnomon_progress(d->ctx, "writing", a->number, d->fresh));
    }
}

static gnomon_status write_inputs(gnomon_dedup *d, again *a)
{
    for (int64_t i = 0; i < a->count; i++) {
        gnomon_corpus *corpus;
        GNOMON_TRY(gnomon_corpus_open(d->ctx, a->inputs[i], &a->options, &corpus));
        const gnomon_status status = write_input(d, a, i, corpus);
        gnomon_corpus_close(corpus);
        GNOMON_TRY(status);
    }
    if (a->number == d->fresh && XXH3_64bits_digest(a->sum) == XXH3_64bits_digest(d->raw_sum))
        return GNOMON_OK;
    return changed(d, a, a->count);
}

static gnomon_status write_again(gnomon_dedup *d, void *arg, gnomon_sink *sink)
{
    again *a = arg;
    a->sink = sink;
    GNOMON_TRY(gnomon_alloc(d->ctx, 1, sizeof *a->sum, "a checksum", &a->sum));
    XXH3_64bits_reset(a->sum);
    gnomon_window_start(&a->kept, &d->representatives, GNOMON_DOCUMENT_WINDOW);
    const gnomon_status status = write_inputs(d, a);
    gnomon_window_end(&a->kept);
    gnomon_free(d->ctx, a->sum);
    return status;
}

gnomon_status gnomon_dedup_write_again(gnomon_dedup *d, const char *const *inputs, int64_t count,
                                       const gnomon_corpus_options *options, const char *path)
{
    again a = {inputs, count, GNOMON_CORPUS_OPTIONS_INIT, {0}, 0, NULL, NULL};
    GNOMON_NEED(NULL, d, "dedup");
    GNOMON_FAIL_IF(count < 0, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("count") " is %" PRId64 "; it must not be negative", count);
    for (int64_t i = 0; i < count; i++)
        GNOMON_FAIL_IF(inputs == NULL || inputs[i] == NULL, d->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("inputs") ": number %" PRId64 " is NULL", i);
    if (options != NULL)
        GNOMON_TRY(
            GNOMON_COPY_OPTIONS(d->ctx, "options", gnomon_corpus_options, options, &a.options));
    if (a.options.bad != NULL) a.options.bad = pass;
    a.options.names = 0;
    return write_to(d, GNOMON_RAW_SUM, path, write_again, &a);
}
