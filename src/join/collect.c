/* A join whose pairs are kept, in compressed rows. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "join/order/places.h"

#include <gnomon/join.h>

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Pairs stay where they are put: a chunk is never moved. */
typedef struct chunk {
    gnomon_pair *pairs;
    int64_t count, room;
    int64_t before; /* pairs of the chunks before */
} chunk;

typedef struct collector {
    gnomon_context *ctx;
    chunk *chunks;
    int64_t chunk_count, chunk_room;
    int64_t count; /* of all pairs */
    gnomon_status status;
} collector;

/* Pairs of a task: copied and taken apart by all threads, as are the pages that the system clears
 * for them. */
enum { EACH = 8192, LEAST_ROOM = 1 << 13, MOST_ROOM = 1 << 20 };

static int64_t tasks_of(int64_t count)
{
    return gnomon_ceil_div(count, EACH);
}

/* Makes room for a batch in one chunk. */
static gnomon_status open_chunk(collector *c, int64_t batch)
{
    if (c->chunk_count == c->chunk_room) {
        const int64_t room = 2 * c->chunk_room + 16;
        GNOMON_TRY(
            gnomon_grow(c->ctx, &c->chunks, c->chunk_count, room, sizeof *c->chunks, "pairs"));
        c->chunk_room = room;
    }
    const int64_t share = gnomon_min(gnomon_max(c->count / 2, LEAST_ROOM), MOST_ROOM);
    chunk *now = &c->chunks[c->chunk_count];
    *now = (chunk){.room = gnomon_max(share, batch), .before = c->count};
    GNOMON_TRY(gnomon_alloc(c->ctx, now->room, sizeof *now->pairs, "pairs", &now->pairs));
    c->chunk_count++;
    return GNOMON_OK;
}

typedef struct copying {
    gnomon_pair *to;
    const gnomon_pair *from;
    int64_t count;
} copying;

static void copy_some(void *arg, int64_t task, int worker)
{
    const copying *k = arg;
    const int64_t first = task * EACH, some = gnomon_min(EACH, k->count - first);
    (void)worker;
    memcpy(k->to + first, k->from + first, (size_t)some * sizeof *k->to);
}

static int keep(void *user, const gnomon_join_batch *batch)
{
    collector *c = user;
    if (batch->count == 0) return 0;
    const chunk *last = c->chunk_count > 0 ? &c->chunks[c->chunk_count - 1] : NULL;
    if (last == NULL || batch->count > last->room - last->count) {
        c->status = open_chunk(c, batch->count);
        if (c->status != GNOMON_OK) return 1;
    }
    chunk *now = &c->chunks[c->chunk_count - 1];
    copying k = {now->pairs + now->count, batch->pairs, batch->count};
    gnomon_parallel(c->ctx, tasks_of(k.count), copy_some, &k);
    now->count += batch->count;
    c->count += batch->count;
    return 0;
}

static void free_chunks(collector *c)
{
    for (int64_t i = 0; i < c->chunk_count; i++)
        gnomon_free(c->ctx, c->chunks[i].pairs);
    gnomon_free(c->ctx, c->chunks);
}

void gnomon_pairs_free(gnomon_context *ctx, gnomon_pairs *pairs)
{
    gnomon_pairs kept;
    if (ctx == NULL || !gnomon_load_result(pairs, &kept, sizeof kept)) return;
    gnomon_free(ctx, kept.offsets);
    gnomon_free(ctx, kept.columns);
    gnomon_free(ctx, kept.distances);
    gnomon_clear_result(pairs);
}

typedef struct taking_apart {
    const chunk *chunk;
    int64_t row; /* of the pair before the chunk; -1: there is none */
    gnomon_pairs *out;
} taking_apart;

/* Pairs come by (i, j), so that a row begins with the first pair of a higher one. */
static void begin_rows(void *arg, int64_t task, int worker)
{
    const taking_apart *t = arg;
    const gnomon_pair *pairs = t->chunk->pairs;
    const int64_t first = task * EACH, end = gnomon_min(first + EACH, t->chunk->count);
    int64_t row = first > 0 ? pairs[first - 1].i : t->row;
    (void)worker;
    for (int64_t at = first; at < end; at++)
        for (; row < pairs[at].i; row++)
            t->out->offsets[row + 1] = t->chunk->before + at;
}

static void take_apart(void *arg, int64_t task, int worker)
{
    const taking_apart *t = arg;
    const gnomon_pair *pairs = t->chunk->pairs;
    const int64_t first = task * EACH, end = gnomon_min(first + EACH, t->chunk->count);
    begin_rows(arg, task, worker);
    for (int64_t at = first; at < end; at++) {
        t->out->columns[t->chunk->before + at] = pairs[at].j;
        t->out->distances[t->chunk->before + at] = pairs[at].distance;
    }
}

/* Where rows begin when each pair is there once, and with take_apart the pairs. */
static void compress_once(const collector *c, gnomon_task_fn fn, gnomon_pairs *out)
{
    int64_t row = -1;
    for (int64_t i = 0; i < c->chunk_count; i++) {
        const chunk *now = &c->chunks[i];
        taking_apart t = {now, row, out};
        gnomon_parallel(c->ctx, tasks_of(now->count), fn, &t);
        row = now->pairs[now->count - 1].i;
    }
    for (; row < out->rows; row++)
        out->offsets[row + 1] = c->count;
}

/* Each pair twice: out->offsets are those of pairs that are there once, until mirrored ones, of
 * which mirrored[row] are in the rows before a row, have been added. */
typedef struct mirroring {
    const collector *c;
    gnomon_row_places places;
    int64_t *mirrored;
    gnomon_pairs *out;
} mirroring;

/* Pairs from 'at' to 'end' that lie in one chunk. */
static const gnomon_pair *stretch(const collector *c, int64_t at, int64_t end, int64_t *count)
{
    const chunk *now = c->chunks;
    while (at - now->before >= now->count)
        now++;
    *count = gnomon_min(end, now->before + now->count) - at;
    return now->pairs + (at - now->before);
}

static void count_part(void *arg, int64_t part, int worker)
{
    const mirroring *m = arg;
    int64_t *counts = gnomon_row_places_of(&m->places, part);
    const int64_t end = gnomon_row_places_begin(&m->places, part + 1);
    (void)worker;
    for (int64_t at = gnomon_row_places_begin(&m->places, part), some; at < end; at += some) {
        const gnomon_pair *pairs = stretch(m->c, at, end, &some);
        for (int64_t p = 0; p < some; p++)
            counts[pairs[p].j]++;
    }
}

/* The mirrored ones of a row, columns below it, come before its own, in the order of their columns
 * as the pairs are. */
static void place_part(void *arg, int64_t part, int worker)
{
    const mirroring *m = arg;
    const gnomon_pairs *out = m->out;
    int64_t *places = gnomon_row_places_of(&m->places, part);
    const int64_t end = gnomon_row_places_begin(&m->places, part + 1);
    (void)worker;
    for (int64_t at = gnomon_row_places_begin(&m->places, part), some; at < end; at += some) {
        const gnomon_pair *pairs = stretch(m->c, at, end, &some);
        for (int64_t p = 0; p < some; p++) {
            const int64_t i = pairs[p].i, j = pairs[p].j;
            const int64_t own = at + p + m->mirrored[i + 1];
            const int64_t mirror = out->offsets[j] + m->mirrored[j] + places[j]++;
            out->columns[own] = j;
            out->distances[own] = pairs[p].distance;
            out->columns[mirror] = i;
            out->distances[mirror] = pairs[p].distance;
        }
    }
}

static gnomon_status compress_both(const collector *c, gnomon_pairs *out)
{
    mirroring m = {.c = c, .out = out};
    gnomon_status status = gnomon_row_places_open(c->ctx, out->rows, c->count, &m.places);
    if (status == GNOMON_OK)
        status = gnomon_alloc(c->ctx, out->rows + 1, sizeof *m.mirrored, "rows", &m.mirrored);
    if (status == GNOMON_OK) {
        compress_once(c, begin_rows, out);
        gnomon_parallel(c->ctx, m.places.parts, count_part, &m);
        gnomon_row_places_set(c->ctx, &m.places, m.mirrored);
        gnomon_parallel(c->ctx, m.places.parts, place_part, &m);
        for (int64_t row = 0; row <= out->rows; row++)
            out->offsets[row] += m.mirrored[row];
    }
    gnomon_row_places_free(c->ctx, &m.places);
    gnomon_free(c->ctx, m.mirrored);
    return status;
}

static gnomon_status compress(const collector *c, bool both, gnomon_pairs *out)
{
    out->count = both ? 2 * c->count : c->count;
    GNOMON_TRY(gnomon_alloc(c->ctx, out->rows + 1, sizeof *out->offsets, "rows", &out->offsets));
    GNOMON_TRY(gnomon_alloc(c->ctx, out->count, sizeof *out->columns, "pairs", &out->columns));
    GNOMON_TRY(gnomon_alloc(c->ctx, out->count, sizeof *out->distances, "pairs", &out->distances));
    if (both) return compress_both(c, out);
    compress_once(c, take_apart, out);
    return GNOMON_OK;
}

static gnomon_status prepare(gnomon_context *ctx, const gnomon_join_options *options, int both,
                             bool self, gnomon_pairs *out, gnomon_join_options *o)
{
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_pairs, out));
    GNOMON_FAIL_IF(
        both && !self, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("both") " is %d and q not NULL; only a self-join's pairs can be there twice",
        both);
    *o = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    if (options == NULL) return GNOMON_OK;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_join_options, options, o));
    GNOMON_FAIL_IF(o->sink != NULL || o->top != 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.sink") " or top is set; collecting takes neither");
    return GNOMON_OK;
}

static gnomon_status finish(collector *c, gnomon_status status, bool both, int64_t rows,
                            int64_t cols, gnomon_pairs *out)
{
    gnomon_pairs kept = {.struct_size = sizeof kept, .rows = rows, .cols = cols};
    if (c->status != GNOMON_OK) status = c->status;
    if (status == GNOMON_OK) status = compress(c, both, &kept);
    free_chunks(c);
    if (status == GNOMON_OK) gnomon_return_result(out, &kept, sizeof kept);
    gnomon_pairs_free(c->ctx, &kept);
    return status;
}

static int64_t rows_of(const gnomon_join_side *side)
{
    return side->dense != NULL ? side->dense->rows : side->sparse->rows;
}

gnomon_status gnomon_join_collect_sides(gnomon_context *ctx, const gnomon_join_side *p,
                                        const gnomon_join_side *q,
                                        const gnomon_join_options *options, int both,
                                        gnomon_pairs *out, gnomon_join_result *result)
{
    collector c = {.ctx = ctx};
    gnomon_join_options o;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(prepare(ctx, options, both, q == NULL, out, &o));
    o.sink = keep;
    o.user = &c;
    const gnomon_status status = gnomon_join_sides(ctx, p, q, options == NULL ? NULL : &o, result);
    if (status != GNOMON_OK) return finish(&c, status, both != 0, 0, 0, out);
    return finish(&c, status, both != 0, rows_of(p), rows_of(q == NULL ? p : q), out);
}

gnomon_status gnomon_join_collect(gnomon_context *ctx, const gnomon_matrix *p,
                                  const gnomon_matrix *q, const gnomon_join_options *options,
                                  int both, gnomon_pairs *out, gnomon_join_result *result)
{
    const gnomon_join_side first = {.dense = p}, second = {.dense = q};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    return gnomon_join_collect_sides(ctx, &first, q == NULL ? NULL : &second, options, both, out,
                                     result);
}

gnomon_status gnomon_join_collect_csr(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                                      const gnomon_join_options *options, int both,
                                      gnomon_pairs *out, gnomon_join_result *result)
{
    const gnomon_join_side first = {.sparse = p}, second = {.sparse = q};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(p == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("p") " is NULL");
    return gnomon_join_collect_sides(ctx, &first, q == NULL ? NULL : &second, options, both, out,
                                     result);
}
