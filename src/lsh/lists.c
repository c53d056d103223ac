/* Queries of an index by trained centres, many at a time: each list's points are held against all
 * queries that ask for it, by the filter of exact search. */
#include "lsh/lists.h"
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels.h"
#include "points/view.h"
#include "search/centre.h"
#include "search/scan.h"

#include <string.h>

/* Where the lists' points of a block lie. */
typedef struct placing {
    const gnomon_lsh *index;
    const gnomon_search *search;
    int64_t *first, *rows_of, *entry; /* a list: its first place, its rows here, its next entry */
    int64_t *end;                     /* of its entries */
    uint32_t *rows;
    uint32_t *places; /* a row's; NULL: not wanted */
} placing;

static void find_lists(placing *p)
{
    const gnomon_table *t = &p->index->tables[0];
    const uint64_t multiplier = gnomon_key_multiplier(0);
    for (int64_t l = 0; l < p->index->hasher->f.centre_count; l++) {
        const int64_t b = gnomon_table_find(t, gnomon_key_of((uint64_t)l * multiplier, 0));
        p->entry[l] = b < 0 ? 0 : t->first[b];
        p->end[l] = b < 0 ? 0 : t->first[b + 1];
    }
}

/* Whether so many queries take less time here than one by one: all points are packed for the
 * filter, which takes a few distances' time each. */
static bool pays(const placing *p, int64_t queries, const int32_t *asked, int64_t each)
{
    enum { PACKED = 3 };
    double candidates = 0;
    for (int64_t i = 0; i < queries * each; i++)
        candidates += (double)(p->end[asked[i]] - p->entry[asked[i]]);
    return queries > 1 && candidates >= PACKED * (double)p->index->points;
}

/* Ids ascend in a list, as blocks do. */
static void place_block(placing *p, const gnomon_lsh_block *b)
{
    const uint32_t *ids = p->index->tables[0].ids;
    const int64_t lists = p->index->hasher->f.centre_count, end = b->first + b->points.rows;
    int64_t at = 0;
    for (int64_t l = 0; l < lists; l++) {
        int64_t *e = &p->entry[l];
        p->first[l] = at;
        for (; *e < p->end[l] && ids[*e] < end; ++*e) {
            if (gnomon_lsh_is_gone(p->index, ids[*e]) ||
                !gnomon_search_allows(&p->search->options, ids[*e]))
                continue;
            const uint32_t row = (uint32_t)(ids[*e] - b->first);
            if (p->places != NULL) p->places[row] = (uint32_t)at;
            p->rows[at++] = row;
        }
        p->rows_of[l] = at - p->first[l];
        for (; at % GNOMON_LANES != 0; at++)
            p->rows[at] = p->rows[at - 1];
    }
    p->first[lists] = at;
}

/* The places of the queries' own points; -1 stands for none. */
static void place_selves(const placing *p, const gnomon_lsh_block *b, int64_t first, int64_t n,
                         uint32_t *self)
{
    for (int64_t q = 0; q < n; q++) {
        const int64_t row = p->search->options.exclude + first + q - b->first;
        self[q] = row >= 0 && row < b->points.rows ? p->places[row] : UINT32_MAX;
    }
}

static gnomon_status scan_blocks(placing *p, gnomon_search *part, int64_t first, uint32_t *self,
                                 const gnomon_scan_lists *lists)
{
    const gnomon_lsh *index = p->index;
    for (int64_t i = 0; i < index->block_count; i++) {
        const gnomon_lsh_block *b = &index->blocks[i];
        if (p->places != NULL) memset(p->places, 0xFF, (size_t)b->points.rows * sizeof *p->places);
        place_block(p, b);
        if (self != NULL) place_selves(p, b, first, part->count, self);
        part->base = b->first;
        GNOMON_TRY(gnomon_scan_lists_of(part, &b->points, lists));
    }
    return GNOMON_OK;
}

/* The scan itself; 'search' is estimated. */
static gnomon_status scan_all(gnomon_context *ctx, placing *p, gnomon_search *search, int64_t first,
                              int64_t n, gnomon_scan_lists lists, gnomon_lists_work *work)
{
    const int64_t points = p->index->points, room = points + lists.count * GNOMON_LANES;
    const bool selves = search->options.exclude >= 0;
    uint32_t *self = NULL;
    gnomon_search part = *search;
    part.queries = gnomon_rows(&search->queries, first, n);
    part.nearest = search->nearest + first;
    part.count = n;
    part.compared = part.verified = 0;
    gnomon_status status = gnomon_alloc(ctx, room, sizeof *p->rows, "points of lists", &p->rows);
    if (status == GNOMON_OK && selves)
        status = gnomon_alloc(ctx, points, sizeof *p->places, "points of lists", &p->places);
    if (status == GNOMON_OK && selves)
        status = gnomon_alloc(ctx, n, sizeof *self, "points of lists", &self);
    lists.rows = p->rows;
    lists.self = self;
    if (status == GNOMON_OK) status = scan_blocks(p, &part, first, self, &lists);
    *work = (gnomon_lists_work){true, part.compared, part.verified};
    gnomon_free(ctx, p->rows);
    gnomon_free(ctx, p->places);
    gnomon_free(ctx, self);
    return status;
}

gnomon_status gnomon_lists_scan(gnomon_context *ctx, const gnomon_lsh *index, gnomon_search *search,
                                int64_t first, int64_t n, const int32_t *asked,
                                const double *distances, int64_t each, gnomon_lists_work *work)
{
    const int64_t lists = index->hasher->f.centre_count;
    placing p = {.index = index, .search = search};
    *work = (gnomon_lists_work){0};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_plus(gnomon_times(4, lists), 1), sizeof *p.first, "lists",
                            &p.first));
    p.rows_of = p.first + lists + 1;
    p.entry = p.rows_of + lists;
    p.end = p.entry + lists;
    find_lists(&p);
    gnomon_status status = GNOMON_OK;
    if (pays(&p, n, asked, each)) {
        const gnomon_scan_lists all = {.count = lists,
                                       .first = p.first,
                                       .rows_of = p.rows_of,
                                       .asked = asked,
                                       .each = each,
                                       .centres = index->hasher->centres,
                                       .keys = distances};
        status = gnomon_centre_estimate(search, &index->blocks[0].points);
        if (status == GNOMON_OK) status = scan_all(ctx, &p, search, first, n, all, work);
    }
    gnomon_free(ctx, p.first);
    return status;
}
