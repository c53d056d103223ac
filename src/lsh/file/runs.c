/* A table's sorted runs merged into its sections: no more than a buffer of each run is in memory.
 */
#include "lsh/file/file.h"

#include "base/memory.h"

#include <string.h>

enum { LEAST = 512, MOST = 16384, FLUSH = 4096 }; /* entries of a buffer */

/* Entries of one run, ascending by (key, id). */
typedef struct run_reader {
    /* of a run in the spool */
    int64_t keys_at, ids_at, left;
    uint64_t *keys;
    uint32_t *ids;
    int64_t have, at;
    /* of the old table */
    const gnomon_table *old;
    int64_t bucket, entry;
    /* the next entry */
    uint64_t key;
    uint32_t id;
} run_reader;

typedef struct merge {
    const gnomon_merging *m;
    run_reader *readers;
    int64_t *heap; /* readers, the least (key, number) first: ids of later runs are larger */
    int64_t count, room;
    gnomon_stream_out *ids, *keys;
    uint32_t *starts; /* some that wait for the spool */
    int64_t waiting, spooled;
    int64_t entries, buckets;
    uint64_t last;
} merge;

/* Moves to the next entry; *more is false at the end. */
static gnomon_status advance(const merge *g, run_reader *r, bool *more)
{
    *more = true;
    if (r->old) {
        const gnomon_table *t = r->old;
        for (; r->entry < t->entries; r->entry++) {
            while (r->entry >= t->first[r->bucket + 1])
                r->bucket++;
            if (g->m->drop && gnomon_lsh_is_gone(g->m->from, t->ids[r->entry])) continue;
            r->key = t->keys[r->bucket];
            r->id = t->ids[r->entry++];
            return GNOMON_OK;
        }
        *more = false;
        return GNOMON_OK;
    }
    if (r->at == r->have) {
        r->have = r->left < g->room ? r->left : g->room;
        r->at = 0;
        if (r->have == 0) {
            *more = false;
            return GNOMON_OK;
        }
        GNOMON_TRY(gnomon_spool_read(g->m->spool, r->keys_at, r->keys, r->have * 8));
        GNOMON_TRY(gnomon_spool_read(g->m->spool, r->ids_at, r->ids, r->have * 4));
        r->keys_at += r->have * 8;
        r->ids_at += r->have * 4;
        r->left -= r->have;
    }
    r->key = r->keys[r->at];
    r->id = r->ids[r->at++];
    return GNOMON_OK;
}

static bool before(const merge *g, int64_t a, int64_t b)
{
    const uint64_t x = g->readers[a].key, y = g->readers[b].key;
    return x != y ? x < y : a < b;
}

static void sift_down(merge *g, int64_t at)
{
    const int64_t reader = g->heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= g->count) break;
        if (child + 1 < g->count && before(g, g->heap[child + 1], g->heap[child])) child++;
        if (!before(g, g->heap[child], reader)) break;
        g->heap[at] = g->heap[child];
        at = child;
    }
    g->heap[at] = reader;
}

static gnomon_status spool_starts(merge *g)
{
    const gnomon_status status = gnomon_spool_write(g->m->spool, g->m->spool->end + g->spooled * 4,
                                                    g->starts, g->waiting * 4);
    g->spooled += g->waiting;
    g->waiting = 0;
    return status;
}

static gnomon_status append(merge *g, uint64_t key, uint32_t id)
{
    if (g->entries == 0 || key != g->last) {
        GNOMON_TRY(gnomon_stream_out_put(g->keys, &key, 8));
        if (g->waiting == FLUSH) GNOMON_TRY(spool_starts(g));
        g->starts[g->waiting++] = (uint32_t)g->entries;
        g->last = key;
        g->buckets++;
    }
    g->entries++;
    return gnomon_stream_out_put(g->ids, &id, 4);
}

static gnomon_status open_readers(merge *g, int64_t t)
{
    const gnomon_merging *m = g->m;
    const bool old = m->from && m->from->points > 0;
    const int64_t count = m->run_count + old;
    /* beside a quarter of the memory that a call may take */
    const int64_t fit = gnomon_memory_limit(m->ctx) / 4 / (12 * (count + 1));
    g->room = fit < LEAST ? LEAST : fit > MOST ? MOST : fit;
    GNOMON_TRY(gnomon_alloc_zero(m->ctx, count, sizeof *g->readers, "runs", &g->readers));
    GNOMON_TRY(gnomon_alloc(m->ctx, count, sizeof *g->heap, "runs", &g->heap));
    if (old) g->readers[0].old = &m->from->tables[t];
    for (int64_t i = 0; i < m->run_count; i++) {
        run_reader *r = &g->readers[i + old];
        const int64_t n = m->runs[i].count;
        r->keys_at = m->runs[i].offset + t * n * 12;
        r->ids_at = r->keys_at + n * 8;
        r->left = n;
        GNOMON_TRY(gnomon_alloc(m->ctx, g->room, 8, "a run's keys", &r->keys));
        GNOMON_TRY(gnomon_alloc(m->ctx, g->room, 4, "a run's points", &r->ids));
    }
    for (int64_t i = 0; i < count; i++) {
        bool more;
        GNOMON_TRY(advance(g, &g->readers[i], &more));
        if (more) g->heap[g->count++] = i;
    }
    for (int64_t at = g->count / 2 - 1; at >= 0; at--)
        sift_down(g, at);
    return GNOMON_OK;
}

static gnomon_status merge_runs(merge *g)
{
    while (g->count > 0) {
        run_reader *r = &g->readers[g->heap[0]];
        bool more;
        GNOMON_TRY(append(g, r->key, r->id));
        GNOMON_TRY(advance(g, r, &more));
        if (!more) g->heap[0] = g->heap[--g->count];
        if (g->count > 0) sift_down(g, 0);
    }
    return g->waiting > 0 ? spool_starts(g) : GNOMON_OK;
}

/* How many entries the table will have: each live point one, of the old table's all or these. */
static int64_t entries_due(const gnomon_merging *m, int64_t t)
{
    int64_t entries = 0;
    const gnomon_table *old = m->from && m->from->points > 0 ? &m->from->tables[t] : NULL;
    for (int64_t e = 0; old && m->drop && e < old->entries; e++)
        entries += !gnomon_lsh_is_gone(m->from, old->ids[e]);
    if (old && !m->drop) entries = old->entries;
    for (int64_t i = 0; i < m->run_count; i++)
        entries += m->runs[i].count;
    return entries;
}

/* The directory is made of the keys as they stand in the file. */
static gnomon_status write_directory(merge *g, const gnomon_section *keys, gnomon_stream_out *to)
{
    uint64_t *some;
    const int bits = gnomon_table_bits(g->buckets);
    const int64_t cells = (int64_t)1 << bits;
    gnomon_status status = gnomon_alloc(g->m->ctx, MOST, sizeof *some, "keys", &some);
    int64_t cell = 0;
    for (int64_t b = 0; b < g->buckets && bits > 0 && status == GNOMON_OK; b++) {
        const int64_t here = g->buckets - b < MOST ? g->buckets - b : MOST;
        if (b % MOST == 0)
            status = gnomon_sink_read_at(g->m->sink, keys->offset + b * 8, some, (size_t)here * 8);
        const int64_t own = (int64_t)(some[b % MOST] >> (64 - bits));
        const uint32_t bucket = (uint32_t)b;
        for (; cell <= own && status == GNOMON_OK; cell++)
            status = gnomon_stream_out_put(to, &bucket, 4);
    }
    for (; cell <= cells && status == GNOMON_OK; cell++) {
        const uint32_t bucket = (uint32_t)(bits == 0 && cell == 0 ? 0 : g->buckets);
        status = gnomon_stream_out_put(to, &bucket, 4);
    }
    gnomon_free(g->m->ctx, some);
    return status;
}

static gnomon_status write_starts(merge *g, gnomon_stream_out *to)
{
    for (int64_t b = 0; b < g->buckets; b += FLUSH) {
        const int64_t here = g->buckets - b < FLUSH ? g->buckets - b : FLUSH;
        GNOMON_TRY(gnomon_spool_read(g->m->spool, g->m->spool->end + b * 4, g->starts, here * 4));
        GNOMON_TRY(gnomon_stream_out_put(to, g->starts, here * 4));
    }
    const uint32_t end = (uint32_t)g->entries;
    return gnomon_stream_out_put(to, &end, 4);
}

static gnomon_status close_section(gnomon_stream_out **stream, gnomon_section *section,
                                   int64_t *end)
{
    gnomon_stream_out *s = *stream;
    *stream = NULL;
    GNOMON_TRY(gnomon_stream_out_close(s, section));
    *end = section->offset + section->length;
    return GNOMON_OK;
}

static gnomon_status write_merged(merge *g, int64_t t, int64_t *end, gnomon_section out[4])
{
    gnomon_context *ctx = g->m->ctx;
    const int64_t ids = gnomon_section_place(*end);
    const int64_t keys = gnomon_section_place(ids + entries_due(g->m, t) * 4);
    GNOMON_TRY(open_readers(g, t));
    GNOMON_TRY(gnomon_alloc(ctx, FLUSH, sizeof *g->starts, "buckets", &g->starts));
    GNOMON_TRY(gnomon_stream_out_open(ctx, g->m->sink, ids, &g->ids));
    GNOMON_TRY(gnomon_stream_out_open(ctx, g->m->sink, keys, &g->keys));
    GNOMON_TRY(merge_runs(g));
    GNOMON_TRY(close_section(&g->ids, &out[0], end));
    GNOMON_TRY(close_section(&g->keys, &out[1], end));
    GNOMON_TRY(gnomon_stream_out_open(ctx, g->m->sink, gnomon_section_place(*end), &g->ids));
    GNOMON_TRY(write_starts(g, g->ids));
    GNOMON_TRY(close_section(&g->ids, &out[2], end));
    GNOMON_TRY(gnomon_stream_out_open(ctx, g->m->sink, gnomon_section_place(*end), &g->ids));
    GNOMON_TRY(write_directory(g, &out[1], g->ids));
    return close_section(&g->ids, &out[3], end);
}

/* A table that stays as it is. */
static gnomon_status copy_table(const gnomon_merging *m, const gnomon_table *t, int64_t *end,
                                gnomon_section out[4])
{
    const void *const data[4] = {t->ids, t->keys, t->first, t->directory};
    const int64_t sizes[4] = {t->entries * 4, t->buckets * 8, (t->buckets + 1) * 4,
                              (((int64_t)1 << t->bits) + 1) * 4};
    for (int i = 0; i < 4; i++) {
        gnomon_stream_out *s;
        GNOMON_TRY(gnomon_stream_out_open(m->ctx, m->sink, gnomon_section_place(*end), &s));
        gnomon_status status = gnomon_stream_out_put(s, data[i], sizes[i]);
        if (status != GNOMON_OK) {
            gnomon_stream_out_drop(s);
            return status;
        }
        GNOMON_TRY(close_section(&s, &out[i], end));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_write_table(const gnomon_merging *m, int64_t t, int64_t *end,
                                     gnomon_section out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = (gnomon_section){.kind = (gnomon_section_kind)(GNOMON_SECTION_IDS + i),
                                  .number = (uint32_t)t};
    if (m->run_count == 0 && !m->drop && m->from && m->from->points > 0)
        return copy_table(m, &m->from->tables[t], end, out);
    merge g = {.m = m};
    const gnomon_status status = write_merged(&g, t, end, out);
    for (int64_t i = 0; g.readers && i < m->run_count + (m->from && m->from->points > 0); i++) {
        gnomon_free(m->ctx, g.readers[i].keys);
        gnomon_free(m->ctx, g.readers[i].ids);
    }
    gnomon_free(m->ctx, g.readers);
    gnomon_free(m->ctx, g.heap);
    gnomon_free(m->ctx, g.starts);
    gnomon_stream_out_drop(g.ids);
    gnomon_stream_out_drop(g.keys);
    return status;
}
