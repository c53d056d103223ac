/* A file held against everything that docs/reference/formats.md says of it. */
#include "lsh/file/file.h"

#include "base/memory.h"
#include "base/threads.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

gnomon_status gnomon_lsh_check_bytes(gnomon_context *ctx, const gnomon_lsh *index)
{
    return gnomon_file_check_bytes(ctx, &gnomon_lsh_file, (const unsigned char *)index->map,
                                   (int64_t)index->map_bytes);
}

/* ---- what the sections tell ---- */

static void check_points(gnomon_checker *c, const gnomon_lsh *index)
{
    char text[128];
    for (int64_t i = 0; i < index->block_count; i++) {
        const gnomon_matrix *m = &index->blocks[i].points;
        const gnomon_section_name name = gnomon_section_name_of(GNOMON_SECTION_POINTS, (uint32_t)i);
        for (int64_t row = 0; row < m->rows; row++) {
            int64_t col = 0;
            const gnomon_status status = gnomon_row_fault(m, row, &col);
            if (status == GNOMON_OK) continue;
            snprintf(text, sizeof text, "row %" PRId64 ", column %" PRId64 " has %s", row, col,
                     status == GNOMON_ERROR_NONFINITE ? "NaN or infinity"
                                                      : "a magnitude above 2^500");
            gnomon_tell(c, name.text, text);
            break;
        }
    }
    const gnomon_codes *codes = &index->codes;
    bool finite = !codes->code || isfinite(codes->factor);
    for (int64_t j = 0; codes->code && j < codes->count; j++)
        finite = finite && isfinite(codes->centre[j]);
    if (!finite) gnomon_tell(c, "codes' scale", "NaN or infinity");
}

/* Each point that is not removed must stand in each table, and none twice. */
static gnomon_status check_presence(gnomon_checker *c, const gnomon_lsh *index)
{
    uint8_t *seen;
    const int64_t bytes = gnomon_lsh_bitmap_bytes(index->points);
    GNOMON_TRY(gnomon_alloc(c->ctx, bytes, 1, "points seen", &seen));
    for (int64_t t = 0; t < index->options.tables && bytes > 0; t++) {
        const gnomon_table *table = &index->tables[t];
        const char *fault = NULL;
        memset(seen, 0, (size_t)bytes);
        for (int64_t e = 0; e < table->entries; e++) {
            const uint32_t id = table->ids[e];
            if (seen[id / 8] >> (id % 8) & 1) fault = "a point stands there twice";
            seen[id / 8] |= (uint8_t)(1u << (id % 8));
        }
        for (int64_t id = 0; id < index->points; id++)
            if (!(seen[id / 8] >> (id % 8) & 1) && !gnomon_lsh_is_gone(index, (uint32_t)id))
                fault = "a point is missing";
        if (fault)
            gnomon_tell(c, gnomon_section_name_of(GNOMON_SECTION_IDS, (uint32_t)t).text, fault);
    }
    gnomon_free(c->ctx, seen);
    return GNOMON_OK;
}

/* ---- hashed again ---- */

/* Points [first, first + n), whose keys these are, against the tables. */
typedef struct comparing {
    const gnomon_lsh *index;
    const uint64_t *keys;
    int64_t first, n;
    bool *wrong; /* a table */
} comparing;

static void compare_table(void *arg, int64_t t, int worker)
{
    (void)worker;
    const comparing *c = arg;
    const gnomon_table *table = &c->index->tables[t];
    const bool whole = table->entries == c->index->points;
    for (int64_t i = 0; i < c->n && !c->wrong[t]; i++) {
        const uint32_t id = (uint32_t)(c->first + i);
        /* a removed point may have left the tables */
        if (!whole && gnomon_lsh_is_gone(c->index, id)) continue;
        const int64_t b = gnomon_table_find(table, c->keys[t * c->n + i]);
        int64_t low = b < 0 ? 0 : table->first[b], high = b < 0 ? 0 : table->first[b + 1];
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (table->ids[middle] < id)
                low = middle + 1;
            else
                high = middle;
        }
        c->wrong[t] = b < 0 || low >= table->first[b + 1] || table->ids[low] != id;
    }
}

static gnomon_status compare(gnomon_checker *c, const gnomon_lsh *index,
                             const gnomon_points *points, int64_t first, bool *wrong)
{
    const int64_t n = gnomon_points_rows(points), tables = index->options.tables;
    uint64_t *keys = NULL;
    GNOMON_TRY(gnomon_alloc(c->ctx, gnomon_times(n, tables), sizeof *keys, "keys", &keys));
    const gnomon_status status = gnomon_lsh_keys(c->ctx, index, points, keys);
    if (status == GNOMON_OK) {
        comparing w = {index, keys, first, n, wrong};
        gnomon_parallel(c->ctx, tables, compare_table, &w);
    }
    gnomon_free(c->ctx, keys);
    return status;
}

static gnomon_status hash_dense(gnomon_checker *c, const gnomon_lsh *index, int64_t most,
                                bool *wrong)
{
    for (int64_t i = 0; i < index->block_count; i++) {
        const gnomon_lsh_block *b = &index->blocks[i];
        for (int64_t at = 0; at < b->points.rows; at += most) {
            gnomon_matrix part = b->points;
            part.data = (void *)gnomon_row_at(&b->points, at);
            part.rows = b->points.rows - at < most ? b->points.rows - at : most;
            const gnomon_points p = {&part, NULL};
            GNOMON_TRY(compare(c, index, &p, b->first + at, wrong));
        }
    }
    return GNOMON_OK;
}

/* Sets as sparse points, with their weights, or values that only count as zero or not. */
static gnomon_status hash_sets(gnomon_checker *c, const gnomon_lsh *index, int64_t most,
                               bool *wrong)
{
    const gnomon_sets *sets = &index->sets;
    for (int64_t at = 0; at < sets->count; at += most) {
        const int64_t rows = sets->count - at < most ? sets->count - at : most;
        const int64_t first = sets->offsets[at], entries = sets->offsets[at + rows] - first;
        uint8_t *ones;
        GNOMON_TRY(gnomon_alloc(c->ctx, entries, 1, "members", &ones));
        if (entries > 0) memset(ones, 1, (size_t)entries);
        gnomon_csr part = {
            rows,     index->options.functions.dim, sets->offsets + at, sets->members + first, ones,
            GNOMON_U8};
        if (sets->weights != NULL) {
            part.values = sets->weights + first;
            part.dtype = GNOMON_F64;
        }
        const gnomon_points p = {NULL, &part};
        const gnomon_status status = compare(c, index, &p, at, wrong);
        gnomon_free(c->ctx, ones);
        GNOMON_TRY(status);
    }
    return GNOMON_OK;
}

static gnomon_status check_keys(gnomon_checker *c, const gnomon_lsh *index)
{
    const int64_t tables = index->options.tables;
    const int64_t fit = gnomon_memory_limit(c->ctx) / 4 / (8 * tables);
    const int64_t most = fit < 64 ? 64 : fit > 65536 ? 65536 : fit;
    bool *wrong;
    GNOMON_TRY(gnomon_alloc_zero(c->ctx, tables, sizeof *wrong, "faults", &wrong));
    const gnomon_status status = gnomon_metric_of_sets(index->options.metric)
                                     ? hash_sets(c, index, most, wrong)
                                     : hash_dense(c, index, most, wrong);
    for (int64_t t = 0; t < tables && status == GNOMON_OK; t++)
        if (wrong[t])
            gnomon_tell(c, gnomon_section_name_of(GNOMON_SECTION_KEYS, (uint32_t)t).text,
                        "a point is not in the bucket that it hashes to");
    gnomon_free(c->ctx, wrong);
    return status;
}

static gnomon_status check(gnomon_checker *c, const gnomon_layout *layout)
{
    gnomon_lsh *index = NULL;
    gnomon_status status = gnomon_lsh_load(c->ctx, layout, &index);
    if (status != GNOMON_OK) return gnomon_tell_error(c, status);
    check_points(c, index);
    status = check_presence(c, index);
    if (status == GNOMON_OK && c->faults == 0) status = check_keys(c, index);
    gnomon_lsh_destroy(index);
    return status;
}

gnomon_status gnomon_lsh_check(gnomon_context *ctx, const char *path, gnomon_lsh_fault_fn fn,
                               void *user)
{
    return gnomon_file_check(ctx, &gnomon_lsh_file, path, check, fn, user);
}
