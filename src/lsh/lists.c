/* Queries of an index by trained centres, many at a time: each list's points are held against all
 * queries that ask for it, by the filter of exact search. The first batch keeps what it packs in
 * the index, for the next ones: a change of the index drops it. */
#include "lsh/lists.h"
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernels.h"
#include "points/view.h"
#include "search/centre.h"
#include "search/scan.h"

#include <math.h>
#include <string.h>

/* A block's points as they lie in lists, packed. */
typedef struct listed {
    int64_t *first, *rows_of;
    uint32_t *rows;
    gnomon_scan_packed packed;
    void *memory; /* of them all */
} listed;

/* Those of all blocks, as the kernels of some level take them. */
struct gnomon_packed_lists {
    const gnomon_search_kernels *kernels;
    gnomon_centre centre; /* whose means stand behind the blocks */
    int64_t k, queries;   /* the neighbours and queries that it was estimated for */
    int64_t bytes, blocks;
    listed block[];
};

/* Where the lists' points of a block lie. */
typedef struct placing {
    const gnomon_lsh *index;
    gnomon_search *search;
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
            p->rows[at++] = (uint32_t)(ids[*e] - b->first);
        }
        p->rows_of[l] = at - p->first[l];
        for (; at % GNOMON_LANES != 0; at++)
            p->rows[at] = p->rows[at - 1];
    }
    p->first[lists] = at;
}

/* ---- kept ---- */

static void free_lists(gnomon_context *ctx, gnomon_packed_lists *kept)
{
    for (int64_t i = 0; kept != NULL && i < kept->blocks; i++)
        gnomon_free(ctx, kept->block[i].memory);
    gnomon_free(ctx, kept);
}

/* Queries of an index that nobody may change keep them there. */
static gnomon_packed_lists *_Atomic *kept_at(const gnomon_lsh *index, int width)
{
    return &((gnomon_lsh *)index)->packed[width];
}

void gnomon_lists_drop(gnomon_lsh *index)
{
    for (int w = 0; w < GNOMON_LISTS_WIDTHS; w++)
        free_lists(index->ctx, atomic_exchange(kept_at(index, w), NULL));
}

int64_t gnomon_lists_bytes(const gnomon_lsh *index)
{
    int64_t bytes = 0;
    for (int w = 0; w < GNOMON_LISTS_WIDTHS; w++) {
        const gnomon_packed_lists *kept = atomic_load(kept_at(index, w));
        bytes += kept != NULL ? kept->bytes : 0;
    }
    return bytes;
}

/* The lists that are kept as this search, which is estimated, takes them; or NULL. */
static const gnomon_packed_lists *kept_by(const gnomon_lsh *index, const gnomon_search *s)
{
    const gnomon_packed_lists *kept = NULL;
    if (s->centre.bits < 32) kept = atomic_load(kept_at(index, s->centre.bits == 8));
    return kept != NULL && kept->kernels == s->kernels ? kept : NULL;
}

/* Bytes of a block's arrays, with so many places. */
static int64_t listed_bytes(const placing *p, int64_t places)
{
    const int64_t lists = p->index->hasher->f.centre_count;
    return gnomon_scan_packed_bytes(p->search, places) + places * (int64_t)sizeof(uint32_t) +
           (2 * lists + 1) * (int64_t)sizeof(int64_t);
}

/* The arrays of the block that has just been placed, as copies in the index's memory. */
static bool copy_block(const placing *p, listed *to)
{
    const int64_t lists = p->index->hasher->f.centre_count, places = p->first[lists];
    to->memory = gnomon_alloc_quietly(p->index->ctx, listed_bytes(p, places));
    if (to->memory == NULL) return false;
    to->packed = gnomon_scan_packed_in(p->search, places, to->memory);
    to->first = (int64_t *)((char *)to->memory + gnomon_scan_packed_bytes(p->search, places));
    to->rows_of = to->first + lists + 1;
    to->rows = (uint32_t *)(to->rows_of + lists);
    memcpy(to->first, p->first, (size_t)(lists + 1) * sizeof *to->first);
    memcpy(to->rows_of, p->rows_of, (size_t)lists * sizeof *to->rows_of);
    if (places > 0) memcpy(to->rows, p->rows, (size_t)places * sizeof *to->rows);
    return true;
}

static gnomon_scan_lists lists_in(gnomon_scan_lists lists, const listed *block)
{
    lists.first = block->first;
    lists.rows_of = block->rows_of;
    lists.rows = block->rows;
    lists.packed = &block->packed;
    return lists;
}

static gnomon_status pack_all(placing *p, gnomon_search *part, gnomon_scan_lists lists,
                              gnomon_packed_lists *kept, bool *packed)
{
    find_lists(p);
    for (int64_t i = 0; i < p->index->block_count; i++) {
        const gnomon_lsh_block *b = &p->index->blocks[i];
        place_block(p, b);
        if (!copy_block(p, &kept->block[i])) return GNOMON_OK;
        kept->blocks++;
        lists = lists_in(lists, &kept->block[i]);
        part->base = b->first;
        GNOMON_TRY(gnomon_scan_pack(part, &b->points, &lists, &kept->block[i].packed));
    }
    *packed = true;
    return GNOMON_OK;
}

/* The lists as they are kept, or will be from now on; NULL: this batch packs its own, as it leaves
 * points out, or as memory does not allow it. Of two batches that pack at once one's are kept. */
static gnomon_status keep_lists(gnomon_context *ctx, placing *p, gnomon_search *part,
                                const gnomon_scan_lists *lists, const gnomon_packed_lists **out)
{
    const gnomon_lsh *index = p->index;
    gnomon_packed_lists *_Atomic *place = kept_at(index, part->centre.bits == 8);
    gnomon_packed_lists *kept = NULL, *none = NULL;
    *out = NULL;
    if (part->centre.bits == 32 || part->options.filter != NULL) return GNOMON_OK;
    *out = kept_by(index, part);
    if (atomic_load(place) != NULL) return GNOMON_OK;
    const int64_t cols = part->cols;
    int64_t bytes = (int64_t)sizeof *kept + index->block_count * (int64_t)sizeof *kept->block +
                    cols * (int64_t)(sizeof *kept->centre.mean64 + sizeof *kept->centre.mean);
    const int64_t fixed = bytes, live = index->points - index->removed;
    int64_t room = gnomon_memory_limit(ctx) / 8;
    if (index->memory > 0)
        room =
            gnomon_min(room, index->memory - gnomon_lsh_bytes(index) - gnomon_lists_bytes(index));
    /* at least, without a look at each point */
    if (fixed + listed_bytes(p, live) > room) return GNOMON_OK;
    for (int64_t i = 0; i < index->block_count; i++) {
        place_block(p, &index->blocks[i]);
        bytes += listed_bytes(p, p->first[index->hasher->f.centre_count]);
    }
    if (bytes <= room) kept = gnomon_alloc_quietly(index->ctx, fixed);
    if (kept == NULL) {
        find_lists(p);
        return GNOMON_OK;
    }
    *kept = (gnomon_packed_lists){.kernels = part->kernels,
                                  .centre = part->centre,
                                  .k = part->options.k,
                                  .queries = p->search->count,
                                  .bytes = bytes};
    kept->centre.mean64 = (double *)(kept->block + index->block_count);
    kept->centre.mean = (float *)(kept->centre.mean64 + cols);
    memcpy(kept->centre.mean64, part->centre.mean64, (size_t)cols * sizeof *part->centre.mean64);
    memcpy(kept->centre.mean, part->centre.mean, (size_t)cols * sizeof *part->centre.mean);
    bool packed = false;
    const gnomon_status status = pack_all(p, part, *lists, kept, &packed);
    if (packed && atomic_compare_exchange_strong(place, &none, kept)) {
        *out = kept;
        return GNOMON_OK;
    }
    free_lists(index->ctx, kept);
    *out = kept_by(index, part);
    find_lists(p);
    return status;
}

/* Candidates in whose time all points are packed, if they are so many times as many, and in whose
 * time a scan of lists that are kept begins. */
enum { PACKED = 3, BEGUN = 8192 };

/* Estimates the search's centre, or takes that of lists that are kept for about as many neighbours.
 * More queries may find that 8 bits pay where those that 16 were kept for did not ask. */
static gnomon_status estimate(const gnomon_lsh *index, gnomon_search *s)
{
    const int64_t k = s->options.k;
    for (int w = GNOMON_LISTS_WIDTHS - 1; w >= 0 && !s->centre.estimated; w--) {
        const gnomon_packed_lists *kept = atomic_load(kept_at(index, w));
        if (w == 0 && kept != NULL && kept->queries < s->count) continue;
        if (kept != NULL && kept->kernels == s->kernels && k <= 2 * kept->k && kept->k <= 2 * k)
            return gnomon_centre_take(s, &kept->centre);
    }
    return gnomon_centre_estimate(s, &index->blocks[0].points);
}

/* Whether so many queries take less time here than one by one. */
static gnomon_status pays(const placing *p, int64_t queries, const int32_t *asked, int64_t each,
                          bool *yes)
{
    const double packed = PACKED * (double)p->index->points;
    double candidates = 0;
    *yes = false;
    for (int64_t i = 0; i < queries * each; i++)
        candidates += (double)(p->end[asked[i]] - p->entry[asked[i]]);
    const bool kept = gnomon_lists_bytes(p->index) > 0 && p->search->options.filter == NULL;
    if (queries == 1 || candidates < (kept ? fmin(packed, BEGUN) : packed)) return GNOMON_OK;
    GNOMON_TRY(estimate(p->index, p->search));
    *yes = candidates >= packed || kept_by(p->index, p->search) != NULL;
    return GNOMON_OK;
}

/* ---- the scan ---- */

/* The places of the queries' own points; -1 stands for none. */
static void place_selves(const placing *p, const gnomon_lsh_block *b,
                         const gnomon_scan_lists *lists, int64_t first, int64_t n, uint32_t *self)
{
    memset(p->places, 0xFF, (size_t)b->points.rows * sizeof *p->places);
    for (int64_t l = 0; l < lists->count; l++)
        for (int64_t at = lists->first[l]; at < lists->first[l] + lists->rows_of[l]; at++)
            p->places[lists->rows[at]] = (uint32_t)at;
    for (int64_t q = 0; q < n; q++) {
        const int64_t row = p->search->options.exclude + first + q - b->first;
        self[q] = row >= 0 && row < b->points.rows ? p->places[row] : UINT32_MAX;
    }
}

/* Packs a block for this batch alone, if it may take the memory. */
static gnomon_status pack_block(gnomon_context *ctx, gnomon_search *part, const gnomon_matrix *base,
                                gnomon_scan_lists *lists, gnomon_scan_packed *packed, void **memory)
{
    const int64_t places = lists->first[lists->count];
    const int64_t bytes = gnomon_scan_packed_bytes(part, places);
    if (bytes >= gnomon_memory_limit(ctx) / 8) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, bytes, 1, "base tiles", memory));
    if (*memory == NULL) return GNOMON_OK;
    *packed = gnomon_scan_packed_in(part, places, *memory);
    GNOMON_TRY(gnomon_scan_pack(part, base, lists, packed));
    lists->packed = packed;
    return GNOMON_OK;
}

static gnomon_status scan_block(gnomon_context *ctx, placing *p, gnomon_search *part, int64_t first,
                                uint32_t *self, gnomon_scan_lists lists, const listed *kept,
                                const gnomon_lsh_block *b)
{
    void *memory = NULL;
    gnomon_scan_packed packed;
    gnomon_status status = GNOMON_OK;
    part->base = b->first;
    if (kept != NULL) {
        lists = lists_in(lists, kept);
    } else {
        place_block(p, b);
        status = pack_block(ctx, part, &b->points, &lists, &packed, &memory);
    }
    if (self != NULL) place_selves(p, b, &lists, first, part->count, self);
    if (status == GNOMON_OK) status = gnomon_scan_lists_of(part, &b->points, &lists);
    gnomon_free(ctx, memory);
    return status;
}

/* The scan itself; 'search' is estimated. */
static gnomon_status scan_all(gnomon_context *ctx, placing *p, gnomon_search *search, int64_t first,
                              int64_t n, gnomon_scan_lists lists, gnomon_lists_work *work)
{
    const gnomon_lsh *index = p->index;
    const int64_t points = index->points, room = points + lists.count * GNOMON_LANES;
    const bool selves = search->options.exclude >= 0;
    const gnomon_packed_lists *kept = NULL;
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
    if (status == GNOMON_OK) status = keep_lists(ctx, p, &part, &lists, &kept);
    for (int64_t i = 0; i < index->block_count && status == GNOMON_OK; i++)
        status = scan_block(ctx, p, &part, first, self, lists,
                            kept != NULL ? &kept->block[i] : NULL, &index->blocks[i]);
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
    bool scans = false;
    gnomon_status status = pays(&p, n, asked, each, &scans);
    if (status == GNOMON_OK && scans) {
        const gnomon_scan_lists all = {.count = lists,
                                       .first = p.first,
                                       .rows_of = p.rows_of,
                                       .asked = asked,
                                       .each = each,
                                       .centres = index->hasher->centres,
                                       .keys = distances};
        status = scan_all(ctx, &p, search, first, n, all, work);
    }
    gnomon_free(ctx, p.first);
    return status;
}
