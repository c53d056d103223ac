/* Sets of the base, piece by piece, against all queries: see search/sets.h. */
#include "cuda/search/sets.h"

#include "base/arithmetic.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST = 1024 /* rows that are taken first, at least */ };

static const int64_t most_queries = 1 << 14; /* at a time */

/* Base rows on the GPU, with the queries behind them. */
struct batch {
    gcu_sets sets;
    int64_t rows, first; /* id of row 0 */
    uint8_t *filter;
    int64_t shift, most;
    int64_t at_once; /* rows, so that what is found has room */
};

static gnomon_csr rows_of(const gnomon_csr *m, int64_t from, int64_t count)
{
    gnomon_csr part = *m;
    const int64_t skipped = m->offsets[from] - m->offsets[0];
    part.rows = count;
    part.offsets += from;
    part.indices += skipped;
    part.values =
        static_cast<const char *>(m->values) + skipped * (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

/* ---- rows and queries ---- */

/* Places [0, places), place p being row from + p * step, against some queries. */
static gnomon_status intersect(gcu_search *v, batch *b, const gcu_sets_call *c, int64_t from,
                               int64_t step, int64_t places)
{
    for (int64_t at = 0; at < places;) {
        const int64_t some = gnomon_min(b->at_once, places - at), row = from + at * step;
        gcu_search_pairs pairs = {};
        pairs.metric = GNOMON_JACCARD;
        pairs.first = b->first + row;
        pairs.step = step;
        pairs.exclude = c->exclude;
        TRY(gcu_search_begin_found(v));
        GCU_TRY(v->why,
                cudaMemsetAsync(c->counts, 0, (size_t)c->queries * sizeof *c->counts, v->stream));
        GCU_TRY(v->why, gcu_sets_intersect(c, row, step, some, v->s->gpu.sms, v->stream));
        TRY(gcu_search_read_words(v));
        const int64_t found = (int64_t)v->seen->pairs;
        if (found > v->found.room) {
            const double fit = 0.7 * (double)v->found.room / (double)found;
            b->at_once = (int64_t)((double)some * fit);
            if (b->at_once < 1) b->at_once = 1;
            continue;
        }
        at += some;
        if (b->at_once < b->rows && found < v->found.room / 4) b->at_once *= 2;
        if (found == 0) continue;
        if (v->k == 0) {
            TRY(gcu_search_hand_hits(v, &pairs, found));
            continue;
        }
        TRY(gcu_search_choose(v, &pairs, c->query, c->queries, found, false));
        /* other queries' lists stay where they are */
        GCU_TRY(v->why, cudaMemcpyAsync(v->lists[v->now] + c->query * v->k,
                                        v->lists[1 - v->now] + c->query * v->k,
                                        (size_t)(c->queries * v->k) * sizeof *v->lists[0],
                                        cudaMemcpyDeviceToDevice, v->stream));
        const gcu_search_lists lists = {v->lists[v->now] + c->query * v->k,
                                        v->list_counts + c->query, v->k};
        GCU_TRY(v->why, gcu_sets_last(&lists, c->queries, v->limits + c->query, v->last + c->query,
                                      v->stream));
    }
    return GNOMON_OK;
}

/* At most so many members do some queries have. */
static int64_t distinct_of(const gcu_search *v, const batch *b, int64_t query, int64_t queries)
{
    const int64_t *offsets = v->job->sets->offsets;
    return gnomon_min(b->sets.numbers, offsets[query + queries] - offsets[query]);
}

/* All rows of a batch against some queries. */
static gnomon_status intersect_all(gcu_search *v, batch *b, int64_t query, int64_t queries)
{
    gcu_sets_call c = {};
    const int held = v->held;
    c.members = b->sets.members;
    c.offsets = b->sets.offsets;
    c.query_offsets = b->sets.offsets + b->rows + query;
    c.query = query;
    c.queries = queries;
    c.possible = b->sets.numbers;
    c.distinct = distinct_of(v, b, query, queries);
    c.first = b->first;
    c.exclude = v->job->options->exclude;
    c.filter = b->filter;
    c.shift = b->shift;
    c.most = b->most;
    c.all = v->k == 0 && v->job->limit >= 1;
    c.limits = v->limits + query;
    c.last = v->last + query;
    c.counts = v->counts + query;
    c.found = v->found;
    TRY(gcu_search_room(v, c.possible / 32 + 1, &c.asked));
    TRY(gcu_search_room(v, c.possible, &c.numbers));
    TRY(gcu_search_room(v, 1, &c.count));
    TRY(gcu_search_room(v, (int64_t)gcu_sets_table_bytes(queries, c.distinct) / 4, &c.tables));
    GCU_TRY(v->why, gcu_sets_tables(&c, v->stream));
    int64_t step = 1;
    while (v->k > 0 && b->rows / step >= 2 * FIRST)
        step *= 2;
    b->at_once = v->found.room / queries;
    if (v->k > 0 && b->at_once < FIRST) b->at_once = FIRST;
    if (!c.all && v->k == 0) b->at_once = b->rows; /* few, perhaps */
    TRY(intersect(v, b, &c, 0, step, (b->rows - 1) / step + 1));
    for (; step > 1; step /= 2)
        if (step / 2 < b->rows)
            TRY(intersect(v, b, &c, step / 2, step, (b->rows - 1 - step / 2) / step + 1));
    gcu_search_free(v, held);
    v->compared += b->rows * queries;
    return gcu_search_tell(v, b->rows * queries);
}

/* The bits of a batch's rows. */
static gnomon_status bring_allowed(gcu_search *v, batch *b)
{
    const gnomon_search_options *o = v->job->options;
    if (!o->filter) return GNOMON_OK;
    b->shift = b->first % 8;
    b->most = gnomon_min(o->filter_bits - b->first, b->rows);
    const int64_t bytes = b->most > 0 ? (b->shift + b->most + 7) / 8 : 0;
    TRY(gcu_search_room(v, bytes + 1, &b->filter));
    if (bytes > 0) {
        GCU_TRY(v->why, cudaMemcpyAsync(b->filter, o->filter + b->first / 8, (size_t)bytes,
                                        cudaMemcpyHostToDevice, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    }
    return GNOMON_OK;
}

/* Queries from 'query' on at a time: their tables take a quarter of what is free. */
static int64_t queries_at_once(gcu_search *v, const batch *b, int64_t query)
{
    int64_t queries = gnomon_min(gnomon_min(v->count - query, most_queries), v->found.room);
    while (queries > 32 && gcu_sets_table_bytes(queries, distinct_of(v, b, query, queries)) >
                               gcu_free_memory(v->s) / 4)
        queries /= 2;
    return queries > 32 ? queries / 32 * 32 : queries;
}

static gnomon_status search_batch(gcu_search *v, batch *b)
{
    const int held = v->held;
    TRY(bring_allowed(v, b));
    for (int64_t query = 0; query < v->count;) {
        const int64_t some = queries_at_once(v, b, query);
        TRY(intersect_all(v, b, query, some));
        query += some;
    }
    gcu_search_free(v, held);
    return GNOMON_OK;
}

/* ---- the base ---- */

/* Rows from 'from' on that go to the GPU at once: none when a single one is too many. */
static int64_t rows_at_once(gcu_search *v, const gnomon_csr *base, int64_t from)
{
    const gnomon_csr *queries = v->job->sets;
    const double bytes = (double)(gcu_free_memory(v->s) / 3);
    const int64_t most = INT32_MAX - 1;
    int64_t rows = base->rows - from;
    while (rows > 0) {
        const gnomon_csr part = rows_of(base, from, rows);
        if (rows + queries->rows <= most &&
            gcu_set_entries(&part) + gcu_set_entries(queries) <= most &&
            gcu_sets_bytes(&part, queries) <= bytes)
            return rows;
        rows /= 2;
    }
    return 0;
}

gnomon_status gcu_search_sets_add(gcu_search *v, gnomon_search_piece *piece)
{
    const gnomon_csr *base = piece->sets;
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    v->done = 0;
    v->total = base->rows * v->count;
    if (v->total == 0) return GNOMON_OK;
    for (int64_t from = 0; from < base->rows;) {
        const int64_t rows = rows_at_once(v, base, from);
        if (rows == 0)
            return gcu_fail(v->why, GNOMON_ERROR_MEMORY,
                            "the queries' %" PRId64 " members and those of base point %" PRId64
                            " do not fit into the GPU's memory together",
                            gcu_set_entries(v->job->sets), piece->first + from);
        const gnomon_csr part = rows_of(base, from, rows);
        gcu_set_memory memory = {};
        memory.s = v->s;
        memory.stream = v->stream;
        memory.why = v->why;
        batch b = {};
        b.rows = rows;
        b.first = piece->first + from;
        gnomon_status status =
            gcu_sets_bring(&memory, transfer, &part, v->job->sets, &b.sets, &piece->faulty);
        if (status == GNOMON_OK && !piece->faulty) status = search_batch(v, &b);
        gcu_set_free(&memory, 0);
        if (status != GNOMON_OK || piece->faulty) return status;
        from += rows;
    }
    return GNOMON_OK;
}

gnomon_status gcu_search_sets_open(gcu_search *v)
{
    TRY(gcu_search_room(v, v->count, &v->counts));
    TRY(gcu_search_room(v, v->count + 1, &v->offsets));
    TRY(gcu_search_room(v, v->count, &v->last));
    TRY(gcu_search_alloc_found(v));
    TRY(gcu_search_begin(v));
    GCU_TRY(v->why, cudaMemsetAsync(v->last, 0x7f, (size_t)v->count * sizeof *v->last, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}
