/* Tables made of sorted lists: the points that are there, the new ones, or both. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/index.h"

/* One worker's lists: what is sorted, and what it is merged into. */
typedef struct lists {
    gnomon_table_scratch sorted;
    uint64_t *keys;
    uint32_t *ids;
    int64_t entries, buckets;
} lists;

typedef struct merging {
    const gnomon_lsh *index;
    uint64_t *new_keys;
    int64_t n, first;
    bool drop;
    int64_t table; /* of the first worker's lists */
    lists *work;
    char *block; /* what the lists lie in */
    gnomon_table *out;
} merging;

/* Sorts the new points of a table and merges the old ones in, ascending by (key, id). */
static void gather(void *arg, int64_t task, int worker)
{
    (void)worker;
    const merging *m = arg;
    lists *w = &m->work[task];
    const gnomon_table *old = &m->index->tables[m->table + task];
    gnomon_table_sort(m->new_keys + (m->table + task) * m->n, m->n, (uint32_t)m->index->points,
                      &w->sorted);
    int64_t added = 0, at = 0;
    for (int64_t b = 0; b < old->buckets; b++) {
        const uint64_t key = old->keys[b];
        for (; added < m->n && w->sorted.keys[0][added] < key; added++, at++) {
            w->keys[at] = w->sorted.keys[0][added];
            w->ids[at] = w->sorted.ids[0][added];
        }
        for (uint32_t e = old->first[b]; e < old->first[b + 1]; e++) {
            if (m->drop && gnomon_lsh_is_gone(m->index, old->ids[e])) continue;
            w->keys[at] = key;
            w->ids[at++] = old->ids[e];
        }
    }
    for (; added < m->n; added++, at++) {
        w->keys[at] = w->sorted.keys[0][added];
        w->ids[at] = w->sorted.ids[0][added];
    }
    w->entries = at;
    w->buckets = at > 0;
    for (int64_t i = 1; i < at; i++)
        w->buckets += w->keys[i] != w->keys[i - 1];
}

static void fill(void *arg, int64_t task, int worker)
{
    (void)worker;
    const merging *m = arg;
    gnomon_table_fill(&m->out[m->table + task], m->work[task].keys, m->work[task].ids);
}

gnomon_status gnomon_table_make_room(gnomon_context *ctx, int64_t entries, int64_t buckets,
                                     gnomon_table *t)
{
    *t = (gnomon_table){.entries = entries, .buckets = buckets, .bits = gnomon_table_bits(buckets)};
    GNOMON_TRY(gnomon_alloc(ctx, t->buckets, sizeof *t->keys, "a table's keys", &t->keys));
    GNOMON_TRY(gnomon_alloc(ctx, t->buckets + 1, sizeof *t->first, "a table's buckets", &t->first));
    GNOMON_TRY(gnomon_alloc(ctx, t->entries, sizeof *t->ids, "a table's points", &t->ids));
    return gnomon_alloc(ctx, ((int64_t)1 << t->bits) + 1, sizeof *t->directory,
                        "a table's directory", &t->directory);
}

/* The lists of all workers are one block, in large pages: small ones would be made ready, and given
 * back, one after the other by one thread. */
static gnomon_status open_lists(gnomon_context *ctx, merging *m, int64_t count, int64_t n,
                                int64_t all)
{
    const int64_t long_keys = gnomon_round_up(all, 16), short_keys = gnomon_round_up(n, 16);
    const int64_t each = gnomon_times(gnomon_plus(gnomon_times(2, short_keys), long_keys), 12);
    const int64_t bytes = gnomon_times(each, count);
    GNOMON_TRY(gnomon_alloc(ctx, bytes, 1, "sorted keys and points", &m->block));
    gnomon_expect_use(ctx, m->block, bytes);
    for (int64_t i = 0; i < count; i++) {
        lists *w = &m->work[i];
        char *at = m->block + i * each;
        for (int half = 0; half < 2; half++, at += short_keys * 8)
            w->sorted.keys[half] = (uint64_t *)(void *)at;
        w->keys = (uint64_t *)(void *)at;
        at += long_keys * 8;
        for (int half = 0; half < 2; half++, at += short_keys * 4)
            w->sorted.ids[half] = (uint32_t *)(void *)at;
        w->ids = (uint32_t *)(void *)at;
    }
    return GNOMON_OK;
}

static gnomon_status run(gnomon_context *ctx, merging *m, int64_t at_once)
{
    const int64_t tables = m->index->options.tables;
    for (m->table = 0; m->table < tables; m->table += at_once) {
        const int64_t here = tables - m->table < at_once ? tables - m->table : at_once;
        gnomon_parallel(ctx, here, gather, m);
        for (int64_t i = 0; i < here; i++)
            GNOMON_TRY(gnomon_table_make_room(ctx, m->work[i].entries, m->work[i].buckets,
                                              &m->out[m->table + i]));
        gnomon_parallel(ctx, here, fill, m);
        GNOMON_TRY(gnomon_progress(ctx, "tables", m->table + here, tables));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_merge(gnomon_context *ctx, const gnomon_lsh *index, uint64_t *keys,
                               int64_t n, bool drop, gnomon_table *out)
{
    const int64_t threads = gnomon_context_threads(ctx), tables = index->options.tables;
    const int64_t at_once = threads < tables ? threads : tables;
    merging m = {index, keys, n, index->points, drop, 0, NULL, NULL, out};
    gnomon_status status = gnomon_alloc_zero(ctx, at_once, sizeof *m.work, "lists", &m.work);
    if (status == GNOMON_OK) status = open_lists(ctx, &m, at_once, n, n + index->tables[0].entries);
    if (status == GNOMON_OK) status = run(ctx, &m, at_once);
    gnomon_free(ctx, m.block);
    gnomon_free(ctx, m.work);
    if (status != GNOMON_OK) gnomon_lsh_free_tables(index, out);
    return status;
}
