/* Repeated parts of documents: each part is a document of an exact deduplication, and so is what
 * lies between parts, with an empty text, which is equal to none. What is kept of them, one after
 * another, is what is left. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text_json.h"
#include "base/threads.h"
#include "dedup/json_line.h"
#include "dedup/state.h"
#include "io/sink.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_parts_options, GNOMON_PARTS_OPTIONS_INIT)

/* Of a document, behind a record of zeros. */
typedef struct record {
    int64_t pieces; /* the end of its pieces */
    int64_t loose;  /* bytes of its text that are not blank, in parts that aren't compared */
} record;

/* Pieces on their way to the deduplication. */
enum { BATCH = 1 << 14, BEGIN = 0, END, RAW_BEGIN, RAW_END, OFFSETS };

struct gnomon_parts {
    gnomon_context *ctx;
    gnomon_parts_options options;
    char *field;
    gnomon_dedup *dedup;
    gnomon_store documents;
    gnomon_window of_documents, of_pieces, of_raw, of_kept; /* after a run */
    int64_t count, pieces;
    int64_t *offsets[OFFSETS];
    int64_t batch;
    char *left; /* of a document */
    int64_t left_bytes, left_room;
    bool broken, done;
    gnomon_parts_result result;
};

/* ---- cutting ---- */

/* A part of a text, or what is between two: [begin, end) is compared, empty where nothing is;
 * 'until' is where the next piece begins. */
typedef struct cut {
    int64_t begin, end, until;
} cut;

/* The line at 'at': the end of what counts, and where the next begins. */
static int64_t line_end(const char *text, int64_t at, int64_t length, int64_t *next)
{
    const char *newline = memchr(text + at, '\n', (size_t)(length - at));
    int64_t end = newline != NULL ? newline - text : length;
    *next = newline != NULL ? end + 1 : length;
    if (newline != NULL && end > at && text[end - 1] == '\r') end--;
    return end;
}

/* The part at 'at' and the blank lines behind it; those at the beginning are a piece of their own.
 */
static cut next_cut(const gnomon_parts *p, const char *text, int64_t at, int64_t length)
{
    int64_t next, end = line_end(text, at, length, &next);
    cut c = {at, end, next};
    bool blank = gnomon_text_blank(text + at, end - at);
    if (blank) c.end = at;
    if (p->options.part == GNOMON_PART_LINE) return c;
    for (bool within = !blank; next < length; within = within && !blank) {
        const int64_t from = next;
        end = line_end(text, from, length, &next);
        blank = gnomon_text_blank(text + from, end - from);
        if (!blank && !within) return c;
        if (!blank) c.end = end;
        c.until = next;
    }
    return c;
}

/* ---- adding ---- */

static gnomon_status give(gnomon_parts *p, const char *text)
{
    const gnomon_documents some = {.struct_size = sizeof some,
                                   .count = p->batch,
                                   .text = text,
                                   .begins = p->offsets[BEGIN],
                                   .ends = p->offsets[END],
                                   .raw_begins = p->offsets[RAW_BEGIN],
                                   .raw_ends = p->offsets[RAW_END]};
    if (p->batch == 0) return GNOMON_OK;
    p->batch = 0;
    return gnomon_dedup_add(p->dedup, &some);
}

static gnomon_status add_piece(gnomon_parts *p, const char *text, int64_t begin, int64_t end,
                               int64_t raw_begin, int64_t raw_end)
{
    if (p->batch == BATCH) GNOMON_TRY(give(p, text));
    p->offsets[BEGIN][p->batch] = begin;
    p->offsets[END][p->batch] = end;
    p->offsets[RAW_BEGIN][p->batch] = raw_begin;
    p->offsets[RAW_END][p->batch] = raw_end;
    p->batch++;
    p->pieces++;
    return GNOMON_OK;
}

/* Where a document's text stands in its raw bytes: at [begin, end) as it is, or as JSON has it. */
typedef struct place {
    int64_t begin, end;
    bool json;
} place;

static gnomon_status find_text(gnomon_parts *p, const gnomon_documents *from, int64_t i, place *at)
{
    const int64_t begin = from->begins[i], end = from->ends[i];
    *at = (place){begin, end, false};
    if (from->raw_begins == NULL) return GNOMON_OK;
    const int64_t raw = from->raw_begins[i], raw_end = from->raw_ends[i];
    if (p->field == NULL) {
        GNOMON_FAIL_IF(
            raw > begin || raw_end < end, p->ctx, GNOMON_ERROR_ARGUMENT,
            GNOMON_ARG(
                "documents.raw_begins") ": the text of document %" PRId64
                                        " is not among its raw bytes, and options.field is NULL",
            i);
        return GNOMON_OK;
    }
    const char *line = from->text + raw;
    const bool found =
        gnomon_json_find(line, raw_end - raw, p->field, &at->begin, &at->end) &&
        gnomon_json_same(line + at->begin, at->end - at->begin, from->text + begin, end - begin);
    GNOMON_FAIL_IF(
        !found, p->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG(
            "documents.raw_begins") ": the raw bytes of document %" PRId64
                                    " are no JSON object with its text in the member '%.100s'",
        i, p->field);
    at->begin += raw;
    at->end += raw;
    at->json = true;
    return GNOMON_OK;
}

static gnomon_status add_document(gnomon_parts *p, const gnomon_documents *from, int64_t i)
{
    const char *base = from->text, *text = base + from->begins[i];
    const int64_t begin = from->begins[i], length = from->ends[i] - begin;
    place at;
    record r = {0};
    GNOMON_FAIL_IF(gnomon_utf8_fault(text, length) >= 0, p->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("documents") ": document %" PRId64 " is not UTF-8", p->count);
    GNOMON_TRY(find_text(p, from, i, &at));
    int64_t glue = from->raw_begins != NULL ? from->raw_begins[i] : begin; /* not yet a piece */
    int64_t raw = at.begin;
    for (int64_t done = 0; done < length;) {
        const cut c = next_cut(p, text, done, length);
        const int64_t raw_end =
            raw +
            (at.json ? gnomon_json_skip(base + raw, at.end - raw, c.until - done) : c.until - done);
        if (c.end - c.begin >= p->options.min_bytes) {
            if (glue < raw) GNOMON_TRY(add_piece(p, base, begin, begin, glue, raw));
            GNOMON_TRY(add_piece(p, base, begin + c.begin, begin + c.end, raw, raw_end));
            glue = raw_end;
        } else {
            r.loose += c.end - c.begin;
        }
        raw = raw_end;
        done = c.until;
    }
    const int64_t end = from->raw_begins != NULL ? from->raw_ends[i] : begin + length;
    if (glue < end) GNOMON_TRY(add_piece(p, base, begin, begin, glue, end));
    p->count++;
    p->result.text_bytes += length;
    r.pieces = p->pieces;
    return gnomon_store_append(&p->documents, &r, sizeof r);
}

gnomon_status gnomon_parts_add(gnomon_parts *p, const gnomon_documents *documents)
{
    gnomon_documents from = {.struct_size = sizeof from};
    GNOMON_NEED(NULL, p, "parts");
    GNOMON_FAIL_IF(p->done || p->broken, p->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("parts") " takes no documents after %s",
                   p->broken ? "a failure" : "gnomon_parts_run");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(p->ctx, "documents", gnomon_documents, documents, &from));
    from.names = NULL;
    GNOMON_TRY(gnomon_dedup_check_documents(p->dedup, &from));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < from.count && status == GNOMON_OK; i++)
        status = add_document(p, &from, i);
    if (status == GNOMON_OK) status = give(p, from.text);
    p->broken = status != GNOMON_OK;
    return status;
}

/* ---- creating ---- */

static gnomon_status check(gnomon_context *ctx, const gnomon_parts_options *o)
{
    GNOMON_FAIL_IF(o->part != GNOMON_PART_LINE && o->part != GNOMON_PART_PARAGRAPH, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.part") " is %d; it must be one of gnomon_part", o->part);
    GNOMON_FAIL_IF(o->min_bytes < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.min_bytes") " is %" PRId64 "; it must be 1 or more",
                   o->min_bytes);
    return GNOMON_OK;
}

/* What a checkpoint must have been made with, beside the caller's own text; free()'s. */
static char *identity_of(const gnomon_parts_options *o)
{
    json_t *all = json_pack("{s:i, s:I, s:s*, s:s*}", "part", o->part, "min_bytes",
                            (json_int_t)o->min_bytes, "field", o->field, "input", o->identity);
    char *text = gnomon_json_text(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static gnomon_status start(gnomon_parts *p)
{
    const gnomon_parts_options *o = &p->options;
    gnomon_dedup_options exact = GNOMON_DEDUP_OPTIONS_INIT;
    const record none = {0};
    char *identity = identity_of(o);
    GNOMON_FAIL_IF(identity == NULL, p->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.identity") " or field is not UTF-8, or memory is out");
    exact.exact = 1;
    exact.keep_raw = GNOMON_RAW_HELD;
    exact.work = o->work;
    exact.checkpoint = o->checkpoint;
    exact.identity = identity;
    const gnomon_status status = gnomon_dedup_create(p->ctx, &exact, &p->dedup);
    free(identity);
    GNOMON_TRY(status);
    p->dedup->parts = true;
    if (o->field != NULL) GNOMON_TRY(gnomon_copy_text(p->ctx, o->field, &p->field));
    gnomon_store_start(&p->documents, p->ctx, p->dedup->work,
                       gnomon_max(1 << 16, gnomon_memory_limit(p->ctx) / 32));
    for (int f = 0; f < OFFSETS; f++)
        GNOMON_TRY(gnomon_alloc(p->ctx, BATCH, sizeof *p->offsets[f], "parts", &p->offsets[f]));
    return gnomon_store_append(&p->documents, &none, sizeof none);
}

gnomon_status gnomon_parts_create(gnomon_context *ctx, const gnomon_parts_options *options,
                                  gnomon_parts **out)
{
    gnomon_parts_options o = GNOMON_PARTS_OPTIONS_INIT;
    gnomon_parts *p;
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    if (options != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_parts_options, options, &o));
    GNOMON_TRY(check(ctx, &o));
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *p, "parts of documents", &p));
    p->ctx = ctx;
    p->options = o;
    p->result.struct_size = sizeof p->result;
    const gnomon_status status = start(p);
    if (status == GNOMON_OK)
        *out = p;
    else
        gnomon_parts_destroy(p);
    return status;
}

void gnomon_parts_destroy(gnomon_parts *p)
{
    if (p == NULL) return;
    gnomon_window *windows[] = {&p->of_documents, &p->of_pieces, &p->of_raw, &p->of_kept};
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++)
        gnomon_window_end(windows[w]);
    for (int f = 0; f < OFFSETS; f++)
        gnomon_free(p->ctx, p->offsets[f]);
    gnomon_free(p->ctx, p->left);
    gnomon_free(p->ctx, p->field);
    gnomon_store_free(&p->documents);
    gnomon_dedup_destroy(p->dedup);
    gnomon_free(p->ctx, p);
}

int64_t gnomon_parts_restored(const gnomon_parts *p)
{
    return p != NULL ? gnomon_dedup_restored(p->dedup) : 0;
}

void gnomon_parts_forget(gnomon_parts *p)
{
    if (p != NULL) gnomon_dedup_forget(p->dedup);
}

/* ---- what is left ---- */

typedef enum fate { WHOLE, CHANGED, REMOVED } fate;

static gnomon_status append_left(gnomon_parts *p, int64_t begin, int64_t bytes)
{
    const char *raw;
    if (bytes > p->left_room - p->left_bytes) {
        const int64_t room = 2 * p->left_room + bytes + 4096;
        GNOMON_TRY(gnomon_grow(p->ctx, &p->left, p->left_bytes, room, 1, "a document"));
        p->left_room = room;
    }
    GNOMON_TRY(gnomon_window_get(&p->of_raw, begin, bytes, &raw));
    memcpy(p->left + p->left_bytes, raw, (size_t)bytes);
    p->left_bytes += bytes;
    return GNOMON_OK;
}

/* What becomes of a document; with 'take', what is left of its raw bytes in p->left. */
static gnomon_status judge(gnomon_parts *p, int64_t i, bool take, fate *out)
{
    const record *two;
    int64_t left = 0, removed = 0;
    GNOMON_TRY(
        gnomon_window_get(&p->of_documents, i * (int64_t)sizeof *two, 2 * sizeof *two, &two));
    p->left_bytes = 0;
    for (int64_t k = two[0].pieces; k < two[1].pieces; k++) {
        const gnomon_document *piece;
        const int64_t *best;
        GNOMON_TRY(gnomon_dedup_document(&p->of_pieces, k, &piece));
        GNOMON_TRY(gnomon_window_get(&p->of_kept, k * (int64_t)sizeof *best, sizeof *best, &best));
        if (*best != k) {
            removed++;
            continue;
        }
        left += piece[1].bytes > 0;
        if (take && piece[1].raw_end > piece[0].raw_end)
            GNOMON_TRY(append_left(p, piece[0].raw_end, piece[1].raw_end - piece[0].raw_end));
    }
    *out = removed == 0 ? WHOLE : left > 0 || two[1].loose > 0 ? CHANGED : REMOVED;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_parts *p)
{
    enum { WINDOW = 1 << 20 };
    gnomon_dedup_result found = {.struct_size = sizeof found};
    gnomon_parts_result *r = &p->result;
    GNOMON_TRY(gnomon_store_seal(&p->documents));
    GNOMON_TRY(gnomon_dedup_run(p->dedup, &found));
    r->documents = p->count;
    r->parts = found.documents - found.empty;
    r->distinct = found.distinct;
    r->removed = r->parts - found.distinct;
    r->removed_bytes = found.text_bytes - found.kept_bytes;
    memcpy(r->largest, found.largest, sizeof r->largest);
    r->spilled = found.spilled || p->documents.fd >= 0;
    gnomon_window_start(&p->of_documents, &p->documents, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&p->of_pieces, &p->dedup->documents, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&p->of_kept, &p->dedup->representatives, GNOMON_DOCUMENT_WINDOW);
    gnomon_window_start(&p->of_raw, &p->dedup->raw, WINDOW);
    for (int64_t i = 0; i < p->count; i++) {
        fate of;
        GNOMON_TRY(judge(p, i, false, &of));
        r->kept += of != REMOVED;
        r->changed += of == CHANGED;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_parts_run(gnomon_parts *p, gnomon_parts_result *result)
{
    GNOMON_NEED(NULL, p, "parts");
    if (result != NULL)
        GNOMON_TRY(GNOMON_OPEN_RESULT(p->ctx, "result", gnomon_parts_result, result));
    GNOMON_FAIL_IF(p->done || p->broken, p->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("parts") " %s",
                   p->done ? "has run" : "is of no use after a failure");
    const gnomon_status status = run(p);
    p->broken = status != GNOMON_OK;
    p->done = !p->broken;
    if (p->done) gnomon_write_result(result, &p->result, sizeof p->result);
    return status;
}

gnomon_status gnomon_parts_left(gnomon_parts *p, int64_t document, const char **out, int64_t *bytes)
{
    fate of;
    if (out != NULL) *out = NULL;
    GNOMON_NEED(NULL, p, "parts");
    GNOMON_NEED(p->ctx, out, "out");
    GNOMON_NEED(p->ctx, bytes, "bytes");
    *bytes = 0;
    GNOMON_FAIL_IF(!p->done, p->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("parts") " has not run");
    GNOMON_FAIL_IF(document < 0 || document >= p->count, p->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("document") " is %" PRId64 "; there are %" PRId64, document,
                   p->count);
    GNOMON_TRY(judge(p, document, true, &of));
    if (of == REMOVED) return GNOMON_OK;
    *out = p->left_bytes > 0 ? p->left : "";
    *bytes = p->left_bytes;
    return GNOMON_OK;
}

gnomon_status gnomon_parts_write(gnomon_parts *p, const char *path)
{
    gnomon_sink *sink;
    gnomon_status status = GNOMON_OK;
    GNOMON_NEED(NULL, p, "parts");
    GNOMON_NEED(p->ctx, path, "path");
    GNOMON_FAIL_IF(!p->done, p->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("parts") " has not run");
    GNOMON_TRY(gnomon_sink_open(p->ctx, path, &(gnomon_sink_options){.overwrite_ok = true}, &sink));
    for (int64_t i = 0; i < p->count && status == GNOMON_OK; i++) {
        const char *text;
        int64_t bytes;
        status = gnomon_parts_left(p, i, &text, &bytes);
        if (status == GNOMON_OK && text != NULL)
            status = gnomon_sink_write(sink, text, (size_t)bytes);
        if (status == GNOMON_OK && i % 4096 == 0)
            status = gnomon_progress(p->ctx, "writing", i, p->count);
    }
    if (status == GNOMON_OK) return gnomon_sink_finish(sink);
    gnomon_sink_abort(sink);
    return status;
}
