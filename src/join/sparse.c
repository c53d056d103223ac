#include "join/sparse.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "kernels.h"
#include "points/view.h"
#include "search/form.h"
#include "search/jaccard.h"
#include "search/sparse.h"

#include <inttypes.h>

/* Of the memory limit: an index of Q's rows, and a band of P's. Pairs, as they are found and in
 * order, take the rest (see gnomon_join_out_open). Below LEAST_INDEX an index takes less than the
 * scores that each thread sums up. */
enum { INDEX_SHARE = 4, BAND_SHARE = 16, LEAST_INDEX = 1 << 20, BAND_ROWS = 8192 };

static int64_t index_bytes(const gnomon_join_state *join)
{
    return gnomon_max(gnomon_memory_limit(join->ctx) / INDEX_SHARE, LEAST_INDEX);
}

static int64_t band_bytes(const gnomon_join_state *join)
{
    return index_bytes(join) / (BAND_SHARE / INDEX_SHARE);
}

/* The rows of Q from 'from' on that go into one index. */
static int64_t piece_rows(const gnomon_join_state *join, int64_t from)
{
    return gnomon_inverted_rows(join->q.csr, from, index_bytes(join));
}

/* Rows of a side that is read. */
static gnomon_status read_rows(const gnomon_join_state *join, const gnomon_side *side, int64_t from,
                               int64_t count, gnomon_csr *part)
{
    *part = (gnomon_csr){0};
    GNOMON_TRY(side->from->read(side->from->user, from, count, part));
    GNOMON_TRY(gnomon_check_csr(join->ctx, part, side->name));
    GNOMON_FAIL_IF(part->rows != count || part->cols != side->cols, join->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s.read") " gave %" PRId64 " rows of %" PRId64
                                         " columns; asked for were %" PRId64 " of %" PRId64,
                   side->name, part->rows, part->cols, count, side->cols);
    const int64_t *offsets = side->csr->offsets + from;
    for (int64_t i = 0; i <= count; i++)
        GNOMON_FAIL_IF(part->offsets[i] - part->offsets[0] != offsets[i] - offsets[0], join->ctx,
                       GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s.read") " gave rows from %" PRId64
                                             " on with other numbers of entries than the offsets",
                       side->name, from);
    return GNOMON_OK;
}

static gnomon_status make_rows(const gnomon_join_state *join, const gnomon_side *side, int64_t from,
                               int64_t count, gnomon_sets *rows)
{
    gnomon_csr part;
    if (side->from != NULL)
        GNOMON_TRY(read_rows(join, side, from, count, &part));
    else
        part = gnomon_csr_rows(side->csr, from, count);
    return gnomon_sparse_make(join->ctx, &part, side->name, from, join->options.metric, rows);
}

/* Refuses what no join takes. */
static gnomon_status check_rows(const gnomon_join_state *join, const gnomon_side *side)
{
    for (int64_t from = 0, count; from < side->rows; from += count) {
        gnomon_sets rows = {0};
        count = gnomon_inverted_rows(side->csr, from, band_bytes(join));
        GNOMON_TRY(make_rows(join, side, from, count, &rows));
        gnomon_sets_free(join->ctx, &rows);
    }
    return GNOMON_OK;
}

/* Makes the index that of rows [first, first + count) of Q, unless it is. */
static gnomon_status take_piece(gnomon_join_state *join, gnomon_join_index *x, int64_t first,
                                int64_t count)
{
    gnomon_sets rows = {0};
    if (x->first == first && x->count == count) return GNOMON_OK;
    gnomon_inverted_close(join->ctx, &x->index);
    x->count = 0;
    GNOMON_TRY(make_rows(join, &join->q, first, count, &rows));
    GNOMON_TRY(
        gnomon_inverted_open(join->ctx, join->options.metric, &rows, join->q.cols, &x->index));
    x->first = first;
    x->count = count;
    return GNOMON_OK;
}

gnomon_status gnomon_join_index_open(gnomon_join_state *join, gnomon_join_index *x)
{
    *x = (gnomon_join_index){0};
    for (int64_t from = 0; from < join->q.rows; from += piece_rows(join, from))
        x->pieces++;
    if (!join->self) GNOMON_TRY(check_rows(join, &join->p));
    return x->pieces > 1 ? check_rows(join, &join->q) : take_piece(join, x, 0, join->q.rows);
}

void gnomon_join_index_close(gnomon_join_state *join, gnomon_join_index *x)
{
    gnomon_inverted_close(join->ctx, &x->index);
}

int64_t gnomon_join_index_rows(const gnomon_join_state *join, const gnomon_join_index *x,
                               int64_t row)
{
    if (x->pieces <= 1) return BAND_ROWS;
    /* each band has every piece indexed again, so that long ones pay */
    const int64_t rows = gnomon_inverted_rows(join->p.csr, row, band_bytes(join));
    return join->options.band_rows > 0 ? gnomon_min(rows, join->options.band_rows) : rows;
}

/* Hits of a search that become pairs. */
typedef struct hits {
    const gnomon_search *search;
    gnomon_pair *pairs;
    int64_t row; /* of the first query */
} hits;

enum { HITS = 8192 }; /* of a task */

static void pair_hits(void *arg, int64_t task, int worker)
{
    (void)worker;
    const hits *h = arg;
    const gnomon_search *s = h->search;
    const int64_t end = gnomon_min((task + 1) * HITS, s->hit_count);
    for (int64_t at = task * HITS; at < end; at++)
        h->pairs[at] = (gnomon_pair){h->row + s->hits[at].query, s->hits[at].point.id,
                                     gnomon_metric_turn(s->options.metric, s->hits[at].point.key)};
}

/* Adds the pairs of rows [row, row + band->count) of P with those of the index. */
static gnomon_status pairs_with_piece(gnomon_join_state *join, const gnomon_join_index *x,
                                      const gnomon_sets *band, int64_t row, bool *fits)
{
    const gnomon_metric metric = join->options.metric;
    const int64_t room = gnomon_max(join->pair_room - join->count, 1);
    gnomon_search s = {.ctx = join->ctx,
                       .kernels = gnomon_cpu_kernels(gnomon_context_isa(join->ctx))->search,
                       .count = band->count,
                       .cols = join->p.cols,
                       .sparse = true,
                       .base = x->first,
                       .later = join->self ? row : -1,
                       .hit_most = band->count > 1 ? room : 0,
                       .sets = *band};
    s.options = (gnomon_search_options)GNOMON_SEARCH_OPTIONS_INIT;
    s.options.metric = metric;
    s.limit = gnomon_metric_turn(metric, gnomon_join_threshold(join));
    gnomon_status status = gnomon_scan_sparse(&s, &x->index);
    *fits = !s.full;
    if (status == GNOMON_OK && *fits) status = gnomon_join_reserve(join, s.hit_count);
    if (status == GNOMON_OK && *fits) {
        hits h = {&s, join->pairs + join->count, row};
        gnomon_parallel(join->ctx, gnomon_ceil_div(s.hit_count, HITS), pair_hits, &h);
        join->count += s.hit_count;
    }
    join->result->compared += *fits ? s.compared : 0;
    join->result->verified += *fits ? s.verified : 0;
    gnomon_free(join->ctx, s.hits);
    return status;
}

gnomon_status gnomon_join_index_pairs(gnomon_join_state *join, gnomon_join_index *x, int64_t row,
                                      int64_t count, bool *fits)
{
    const bool has_band = join->self && x->pieces == 1;
    gnomon_sets own = {0}, band;
    if (!has_band) GNOMON_TRY(make_rows(join, &join->p, row, count, &own));
    band = has_band ? gnomon_sets_part(&x->index.rows, row, count) : own;
    gnomon_status status = GNOMON_OK;
    for (int64_t from = 0, rows; from < join->q.rows && status == GNOMON_OK && *fits;
         from += rows) {
        rows = x->pieces == 1 ? join->q.rows : piece_rows(join, from);
        /* of a self-join a row meets later ones only */
        if (join->self && from + rows <= row + 1) continue;
        status = take_piece(join, x, from, rows);
        if (status == GNOMON_OK) status = pairs_with_piece(join, x, &band, row, fits);
    }
    gnomon_sets_free(join->ctx, &own);
    return status;
}

static gnomon_status read_copies(void *user, int64_t first, const gnomon_matrix *to)
{
    const gnomon_join_copies *c = user;
    return gnomon_form_copy(c->join->ctx, c->side.csr, c->side.name, 0, c->join->options.metric,
                            first, to);
}

gnomon_status gnomon_join_copy_side(gnomon_join_state *join, gnomon_side *side,
                                    gnomon_join_copies *copies)
{
    GNOMON_TRY(check_rows(join, side));
    *copies = (gnomon_join_copies){.join = join, .side = *side};
    copies->points = (gnomon_join_points){.user = copies,
                                          .rows = side->rows,
                                          .cols = side->cols,
                                          .dtype = GNOMON_F64,
                                          .read = read_copies};
    side->csr = NULL;
    side->to = &copies->points;
    side->dtype = GNOMON_F64;
    return GNOMON_OK;
}
