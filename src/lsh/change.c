/* An index's life: made, filled, thinned, freed. */
#include "lsh/index.h"
#include "lsh/job.h"
#include "lsh/lists.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

GNOMON_OPTIONS_INIT(gnomon_lsh_options, GNOMON_LSH_OPTIONS_INIT)

gnomon_status gnomon_lsh_create(gnomon_context *ctx, const gnomon_lsh_options *options,
                                gnomon_lsh **out)
{
    gnomon_lsh_options o;
    gnomon_lsh *index;
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(gnomon_lsh_check_options(ctx, options, &o));
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *index, "an index", &index));
    index->ctx = ctx;
    index->options = o;
    index->depth = o.coarse + o.fine;
    index->memory = o.memory;
    gnomon_status status = gnomon_hasher_create(ctx, &o.functions, &index->hasher);
    if (status == GNOMON_OK) {
        index->options.functions = index->hasher->f;
        status = gnomon_codes_open(ctx, &index->options, &index->codes);
    }
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, o.tables, sizeof *index->tables, "tables", &index->tables);
    if (status != GNOMON_OK) {
        gnomon_lsh_destroy(index);
        return status;
    }
    *out = index;
    return GNOMON_OK;
}

static void drop_sets(const gnomon_lsh *index, gnomon_sets *sets)
{
    gnomon_lsh_drop(index, sets->offsets);
    gnomon_lsh_drop(index, sets->members);
    gnomon_lsh_drop(index, sets->weights);
    gnomon_lsh_drop(index, sets->factors);
    *sets = (gnomon_sets){0};
}

void gnomon_lsh_destroy(gnomon_lsh *index)
{
    if (!index) return;
    gnomon_context *ctx = index->ctx;
    gnomon_lists_drop(index);
    gnomon_lsh_free_tables(index, index->tables);
    gnomon_free(ctx, index->tables);
    gnomon_free(ctx, index->gone);
    gnomon_free(ctx, index->blocks);
    drop_sets(index, &index->sets);
    gnomon_lsh_drop(index, index->codes.code);
    index->codes.code = NULL;
    gnomon_codes_close(ctx, &index->codes);
    gnomon_hasher_destroy(index->hasher);
    if (index->map) munmap((void *)index->map, index->map_bytes);
    if (index->origin) gnomon_free(ctx, index->origin->path);
    gnomon_free(ctx, index->origin);
    gnomon_free(ctx, index);
}

void gnomon_lsh_describe(const gnomon_lsh *index, gnomon_lsh_info *info)
{
    if (index == NULL) return;
    gnomon_lsh_info all = {.struct_size = sizeof all,
                           .options = index->options,
                           .points = index->points,
                           .removed = index->removed,
                           .code_bytes = gnomon_lsh_code_bytes(index),
                           .other_bytes =
                               gnomon_lsh_other_bytes(index) + gnomon_lists_bytes(index)};
    for (int64_t t = 0; t < index->options.tables && index->tables[t].first; t++) {
        const gnomon_table *table = &index->tables[t];
        all.buckets += table->buckets;
        all.table_bytes += gnomon_table_bytes(table);
        for (int64_t b = 0; b < table->buckets; b++) {
            const int64_t size = table->first[b + 1] - table->first[b];
            if (size > all.largest) all.largest = size;
        }
    }
    gnomon_write_result(info, &all, sizeof all);
}

/* ---- changes: one at a time, and none beside queries ---- */

static gnomon_status begin_change(gnomon_lsh *index)
{
    int users = 0;
    if (atomic_compare_exchange_strong(&index->users, &users, -1)) return GNOMON_OK;
    /* the index's context is at work for the other change: its text is left alone */
    return gnomon_fail(users > 0 ? index->ctx : NULL, GNOMON_ERROR_BUSY,
                       "the index is being %s by another thread; nothing was changed",
                       users > 0 ? "queried" : "changed");
}

static gnomon_status end_change(gnomon_lsh *index, gnomon_status status)
{
    atomic_store(&index->users, 0);
    return status;
}

/* ---- adding ---- */

/* What an addition makes before anything of the index changes. */
typedef struct addition {
    gnomon_context *ctx;
    gnomon_table *tables;
    uint64_t *keys;
    uint8_t *gone;
    int8_t *code;
    gnomon_lsh_block *blocks;
    gnomon_sets sets;
} addition;

gnomon_status gnomon_lsh_check_form(gnomon_context *ctx, const gnomon_lsh *index,
                                    const gnomon_points *points, const char *name)
{
    if (gnomon_metric_of_sets(index->options.metric)) return GNOMON_OK;
    GNOMON_FAIL_IF(index->points > 0 && (points->sparse != NULL) != (index->sets.offsets != NULL),
                   ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("%s") " is %s; the index holds %s points", name,
                   points->sparse ? "sparse" : "dense", points->sparse ? "dense" : "sparse");
    return GNOMON_OK;
}

static gnomon_status check_sparse(gnomon_lsh *index)
{
    const gnomon_metric metric = index->options.metric;
    GNOMON_FAIL_IF(gnomon_metric_row_of(metric)->sparse == NULL, index->ctx,
                   GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " is sparse; an index for %s takes dense points",
                   gnomon_metric_name(metric));
    GNOMON_FAIL_IF(index->codes.count > 0, index->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " is sparse; an index with codes takes dense points");
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_check_count(gnomon_lsh *index, int64_t n)
{
    const int64_t most = UINT32_MAX - 1;
    GNOMON_FAIL_IF(n > most - index->points, index->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("points") " has %" PRId64 " rows and the index %" PRId64
                                        " points; an index holds at most 2^32 - 2",
                   n, index->points);
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_check_points(gnomon_lsh *index, const gnomon_points *points)
{
    gnomon_context *ctx = index->ctx;
    const gnomon_metric metric = index->options.metric;
    if (points->sparse && !gnomon_metric_of_sets(metric)) GNOMON_TRY(check_sparse(index));
    GNOMON_TRY(gnomon_lsh_check_form(ctx, index, points, "points"));
    GNOMON_TRY(gnomon_hasher_check(ctx, index->hasher, points, "points"));
    /* only fp64 holds numbers that are too large */
    if (points->dense && points->dense->dtype == GNOMON_F64)
        GNOMON_TRY(gnomon_check_rows(ctx, points->dense, "points", 0));
    if (points->sparse && gnomon_metric_is(metric, GNOMON_METRIC_WEIGHTS))
        GNOMON_TRY(gnomon_weights_check(ctx, points->sparse, "points"));
    return gnomon_lsh_check_count(index, gnomon_points_rows(points));
}

static gnomon_status append_sets(gnomon_lsh *index, const gnomon_csr *points, gnomon_sets *out)
{
    gnomon_context *ctx = index->ctx;
    const gnomon_metric metric = index->options.metric;
    gnomon_sets added;
    if (gnomon_metric_of_sets(metric))
        GNOMON_TRY(gnomon_sets_make(ctx, points, "points", 0, metric, &added));
    else
        GNOMON_TRY(gnomon_sparse_make(ctx, points, "points", 0, metric, &added));
    const gnomon_sets *old = &index->sets;
    const int64_t before = old->offsets ? old->offsets[old->count] : 0;
    const int64_t more = added.offsets[added.count];
    *out = (gnomon_sets){.count = old->count + added.count};
    gnomon_status status =
        gnomon_alloc(ctx, out->count + 1, sizeof *out->offsets, "sets' offsets", &out->offsets);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_plus(before, more), sizeof *out->members, "sets' members",
                              &out->members);
    if (status == GNOMON_OK && added.weights != NULL)
        status = gnomon_alloc(ctx, gnomon_plus(before, more), sizeof *out->weights, "weights",
                              &out->weights);
    if (status == GNOMON_OK && added.factors != NULL)
        status = gnomon_alloc(ctx, out->count, sizeof *out->factors, "norms", &out->factors);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < out->count && out->factors != NULL; i++)
            out->factors[i] = i < old->count ? old->factors[i] : added.factors[i - old->count];
        for (int64_t i = 0; i < old->count; i++)
            out->offsets[i] = old->offsets[i];
        for (int64_t i = 0; i <= added.count; i++)
            out->offsets[old->count + i] = before + added.offsets[i];
        if (before > 0) memcpy(out->members, old->members, (size_t)before * sizeof *out->members);
        if (more > 0)
            memcpy(out->members + before, added.members, (size_t)more * sizeof *out->members);
        if (before > 0 && out->weights != NULL)
            memcpy(out->weights, old->weights, (size_t)before * sizeof *out->weights);
        if (more > 0 && out->weights != NULL)
            memcpy(out->weights + before, added.weights, (size_t)more * sizeof *out->weights);
    }
    gnomon_sets_free(ctx, &added);
    return status;
}

static gnomon_status append_dense(gnomon_lsh *index, const gnomon_matrix *points, addition *a)
{
    gnomon_context *ctx = index->ctx;
    const int64_t count = index->codes.count, all = index->points + points->rows;
    GNOMON_TRY(gnomon_alloc(ctx, index->block_count + 1, sizeof *a->blocks, "blocks", &a->blocks));
    if (index->block_count > 0)
        memcpy(a->blocks, index->blocks, (size_t)index->block_count * sizeof *a->blocks);
    a->blocks[index->block_count] = (gnomon_lsh_block){index->points, *points};
    if (count == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_codes_train(ctx, &index->codes, index->options.metric, points));
    GNOMON_TRY(gnomon_alloc(ctx, all, (size_t)count, "codes", &a->code));
    if (index->points > 0) memcpy(a->code, index->codes.code, (size_t)(index->points * count));
    return gnomon_codes_make(ctx, &index->codes, index->options.metric, points, 0, points->rows,
                             a->code + index->points * count);
}

static gnomon_status check_memory(gnomon_lsh *index, const addition *a, int64_t all)
{
    int64_t bytes = index->codes.count * all + (a->gone ? gnomon_lsh_bitmap_bytes(all) : 0);
    bytes += gnomon_lsh_sets_bytes(&a->sets) + gnomon_hasher_centre_bytes(index->hasher);
    for (int64_t t = 0; t < index->options.tables; t++)
        bytes += gnomon_table_bytes(&a->tables[t]);
    GNOMON_FAIL_IF(index->options.memory > 0 && bytes > index->options.memory, index->ctx,
                   GNOMON_ERROR_MEMORY,
                   "the index takes %" PRId64 " bytes beside the points; options.memory is %" PRId64
                   ": take fewer tables",
                   bytes, index->options.memory);
    return GNOMON_OK;
}

/* ---- tables of an addition ---- */

static gnomon_status make_room(void *user, int64_t table, int64_t entries, int64_t buckets,
                               gnomon_table *out)
{
    addition *a = user;
    const gnomon_status status =
        gnomon_table_make_room(a->ctx, entries, buckets, &a->tables[table]);
    *out = a->tables[table];
    return status;
}

/* The first points' tables are the device's, when it hashes; later ones are merged here. */
static gnomon_status make_tables(gnomon_lsh *index, const gnomon_points *points, addition *a)
{
    gnomon_context *ctx = index->ctx;
    const int64_t n = gnomon_points_rows(points), tables = index->options.tables;
    const gnomon_lsh_rooms rooms = {a, make_room};
    uint64_t multipliers[GNOMON_LSH_MOST_DEPTH];
    int64_t keys;
    GNOMON_FAIL_IF(!gnomon_mul(n, tables, &keys), ctx, GNOMON_ERROR_OVERFLOW,
                   "%" PRId64 " points in %" PRId64 " tables are more than can be counted", n,
                   tables);
    GNOMON_TRY(gnomon_alloc_zero(ctx, tables, sizeof *a->tables, "tables", &a->tables));
    if (index->points == 0) {
        gnomon_lsh_job job = gnomon_lsh_job_of(ctx, index, points, multipliers);
        bool done;
        job.rooms = &rooms;
        GNOMON_TRY(gnomon_lsh_on_device(ctx, &job, &done));
        if (done) return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_hasher_check_finite(ctx, points, "points"));
    GNOMON_TRY(gnomon_alloc(ctx, keys, sizeof *a->keys, "keys", &a->keys));
    gnomon_expect_use(ctx, a->keys, gnomon_times(keys, sizeof *a->keys));
    GNOMON_TRY(gnomon_lsh_keys(ctx, index, points, a->keys));
    return gnomon_lsh_merge(ctx, index, a->keys, n, false, a->tables);
}

static gnomon_status prepare(gnomon_lsh *index, const gnomon_points *points, addition *a)
{
    gnomon_context *ctx = index->ctx;
    const int64_t n = gnomon_points_rows(points);
    GNOMON_TRY(make_tables(index, points, a));
    GNOMON_TRY(points->dense ? append_dense(index, points->dense, a)
                             : append_sets(index, points->sparse, &a->sets));
    if (index->gone) {
        GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_lsh_bitmap_bytes(index->points + n), 1,
                                     "removed points", &a->gone));
        memcpy(a->gone, index->gone, (size_t)gnomon_lsh_bitmap_bytes(index->points));
    }
    return check_memory(index, a, index->points + n);
}

/* The index's old parts and the addition's change places. */
static void exchange(gnomon_lsh *index, addition *a)
{
    gnomon_table *tables = index->tables;
    index->tables = a->tables;
    a->tables = tables;
    uint8_t *gone = index->gone;
    index->gone = a->gone;
    a->gone = gone;
    if (a->blocks) {
        gnomon_lsh_block *blocks = index->blocks;
        index->blocks = a->blocks;
        a->blocks = blocks;
        index->block_count++;
    }
    if (a->code) {
        int8_t *code = index->codes.code;
        index->codes.code = a->code;
        a->code = code;
    }
    if (a->sets.offsets) {
        const gnomon_sets sets = index->sets;
        index->sets = a->sets;
        a->sets = sets;
    }
}

static gnomon_status add(gnomon_lsh *index, const gnomon_points *points)
{
    gnomon_context *ctx = index->ctx;
    addition a = {.ctx = ctx};
    GNOMON_TRY(gnomon_lsh_check_points(index, points));
    const int64_t n = gnomon_points_rows(points);
    if (n == 0) return GNOMON_OK;
    const bool trained = index->codes.trained;
    const gnomon_status status = prepare(index, points, &a);
    if (status == GNOMON_OK) {
        gnomon_lists_drop(index);
        exchange(index, &a);
        index->points += n;
    } else {
        index->codes.trained = trained;
    }
    gnomon_lsh_free_tables(index, a.tables);
    gnomon_free(ctx, a.tables);
    gnomon_free(ctx, a.keys);
    gnomon_free(ctx, a.gone);
    gnomon_lsh_drop(index, a.code);
    gnomon_free(ctx, a.blocks);
    drop_sets(index, &a.sets);
    return status;
}

gnomon_status gnomon_lsh_add(gnomon_lsh *index, const gnomon_matrix *points)
{
    GNOMON_FAIL_IF(!index, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(!points, index->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {points, NULL};
    GNOMON_TRY(begin_change(index));
    return end_change(index, add(index, &p));
}

gnomon_status gnomon_lsh_add_csr(gnomon_lsh *index, const gnomon_csr *points)
{
    GNOMON_FAIL_IF(!index, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_FAIL_IF(!points, index->ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("points") " is NULL");
    const gnomon_points p = {NULL, points};
    GNOMON_TRY(begin_change(index));
    return end_change(index, add(index, &p));
}

/* ---- removing ---- */

static gnomon_status remove_points(gnomon_lsh *index, const int64_t *ids, int64_t count)
{
    gnomon_context *ctx = index->ctx;
    GNOMON_FAIL_IF(count < 0 || (count > 0 && !ids), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("count") " is %" PRId64 " and ids %s", count,
                   ids ? "not NULL" : "NULL");
    GNOMON_FAIL_IF((uintptr_t)ids % sizeof *ids != 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("ids") " is %p; elements of 8 bytes must lie at a multiple of 8",
                   (const void *)ids);
    for (int64_t i = 0; i < count; i++)
        GNOMON_FAIL_IF(ids[i] < 0 || ids[i] >= index->points, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("ids") "[%" PRId64 "] is %" PRId64 "; the index has %" PRId64
                                         " points",
                       i, ids[i], index->points);
    if (count > 0 && !index->gone)
        GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_lsh_bitmap_bytes(index->points), 1,
                                     "removed points", &index->gone));
    if (count > 0) gnomon_lists_drop(index);
    for (int64_t i = 0; i < count; i++) {
        if (gnomon_lsh_is_gone(index, (uint32_t)ids[i])) continue;
        index->gone[ids[i] / 8] |= (uint8_t)(1u << (ids[i] % 8));
        index->removed++;
    }
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_remove(gnomon_lsh *index, const int64_t *ids, int64_t count)
{
    GNOMON_FAIL_IF(!index, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_TRY(begin_change(index));
    return end_change(index, remove_points(index, ids, count));
}

static gnomon_status compact(gnomon_lsh *index)
{
    if (index->removed == 0 || index->points == 0) return GNOMON_OK;
    gnomon_context *ctx = index->ctx;
    const int64_t count = index->options.tables;
    gnomon_table *tables = NULL;
    gnomon_status status = gnomon_alloc_zero(ctx, count, sizeof *tables, "tables", &tables);
    if (status == GNOMON_OK) status = gnomon_lsh_merge(ctx, index, NULL, 0, true, tables);
    if (status == GNOMON_OK) {
        gnomon_table *old = index->tables;
        index->tables = tables;
        tables = old;
    }
    gnomon_lsh_free_tables(index, tables);
    gnomon_free(ctx, tables);
    return status;
}

gnomon_status gnomon_lsh_compact(gnomon_lsh *index)
{
    GNOMON_FAIL_IF(!index, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("index") " is NULL");
    GNOMON_TRY(begin_change(index));
    return end_change(index, compact(index));
}
