/* Dense points: bands of P's rows against pieces of Q, in the coordinates of a sketch where that
 * pays, else through a search.
 *
 * A band is as many rows as keep all threads at work. Should its pairs become more than may wait,
 * it is done again with fewer rows; how many pairs a row had so far tells how many rows the next
 * one takes. Pairs being in order, how rows are cut shows nowhere. */
#include "join/bands.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "join/sketch.h"
#include "join/state.h"
#include "points/view.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

enum {
    MOST_ROWS = 8192,
    PIECE = 65536,     /* rows of Q, and of a band whose points are sketched anew */
    LEAST_ROWS = 1024, /* so many must fit, or no sketch pays */
    WORK = 1000000
};

/* Rows of a side that is read. */
typedef struct window {
    void *data;
    int64_t room; /* rows */
    int64_t first, count;
} window;

typedef struct bands {
    gnomon_join_state *join;
    window p, q;
    int64_t rows;  /* a band's, at most */
    int64_t piece; /* rows of Q at a time */
    gnomon_join_sketch sketch;
    bool sketch_chosen; /* whether to sketch */
    gnomon_sketch_block p_block, q_block;
} bands;

/* ---- the points ---- */

/* Refuses points that no join takes; m is rows of the side from 'first' on. */
static gnomon_status check_points(gnomon_join_state *join, const gnomon_side *side,
                                  const gnomon_matrix *m, int64_t first)
{
    if (gnomon_metric_takes(join->options.metric, GNOMON_POINTS_BITS)) return GNOMON_OK;
    return gnomon_check_rows(join->ctx, m, side->name, first);
}

/* Rows [first, first + count) of a side. */
static gnomon_status rows_of(gnomon_join_state *join, const gnomon_side *side, window *w,
                             int64_t first, int64_t count, gnomon_matrix *out)
{
    if (side->dense != NULL) {
        *out = gnomon_rows(side->dense, first, count);
        return GNOMON_OK;
    }
    if (w->data == NULL)
        GNOMON_TRY(gnomon_alloc(join->ctx, gnomon_times(w->room, side->cols),
                                gnomon_dtype_size(side->dtype), "points", &w->data));
    *out = gnomon_matrix_rowmajor(w->data, side->dtype, count, side->cols);
    if (w->first == first && w->count >= count) return GNOMON_OK;
    w->count = 0;
    GNOMON_TRY(side->to->read(side->to->user, first, out));
    GNOMON_TRY(check_points(join, side, out, first));
    w->first = first;
    w->count = count;
    return GNOMON_OK;
}

/* ---- a band ---- */

/* Takes over what a search has found so far. */
static gnomon_status collect_hits(gnomon_join_state *join, gnomon_search *search, int64_t row,
                                  int64_t column)
{
    const bool ip = gnomon_metric_is(join->options.metric, GNOMON_METRIC_LARGER);
    GNOMON_TRY(gnomon_join_reserve(join, search->hit_count));
    for (int64_t at = 0; at < search->hit_count; at++) {
        const gnomon_hit *hit = &search->hits[at];
        const int64_t i = row + hit->query, j = column + hit->point.id;
        if (join->self && j <= i) continue;
        join->pairs[join->count++] = (gnomon_pair){i, j, ip ? -hit->point.key : hit->point.key};
    }
    search->hit_count = 0;
    return GNOMON_OK;
}

/* Adds the pairs of a band and a piece, through a search, as long as they may wait. Parts of the
 * piece are so small that what a part adds is bounded too. */
static gnomon_status filter_pairs(gnomon_join_state *join, const gnomon_matrix *band, int64_t row,
                                  const gnomon_matrix *piece, int64_t column, bool *fits)
{
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_search *search;
    int64_t each = join->pair_room / band->rows * 4;
    if (each < 512) each = 512;
    options.metric = join->options.metric;
    options.radius = fmax(fmin(gnomon_join_threshold(join), DBL_MAX), -DBL_MAX);
    GNOMON_TRY(gnomon_search_create(join->ctx, band, &options, &search));
    gnomon_status status = GNOMON_OK;
    for (int64_t at = 0; at < piece->rows && status == GNOMON_OK && *fits; at += each) {
        const int64_t here = piece->rows - at < each ? piece->rows - at : each;
        const gnomon_matrix part = gnomon_rows(piece, at, here);
        status = gnomon_search_add(search, &part);
        if (status == GNOMON_OK) status = collect_hits(join, search, row, column);
        *fits = join->count <= join->pair_room || band->rows == 1;
    }
    join->result->compared += search->compared;
    join->result->verified += search->verified;
    gnomon_search_destroy(search);
    return status;
}

/* Sketches m, rows of a side from 'first' on, unless the block holds them. */
static gnomon_status block_of(bands *b, gnomon_sketch_block *block, const gnomon_matrix *m,
                              int64_t first, bool queries, bool tiles)
{
    if (block->first == first && block->count >= m->rows) return GNOMON_OK;
    block->count = 0;
    GNOMON_TRY(gnomon_sketch_fill(&b->sketch, m, queries, tiles, block));
    block->first = first;
    return GNOMON_OK;
}

/* Whether all of Q is sketched at once, and kept. */
static bool is_whole(const bands *b)
{
    return b->sketch.directions > 0 && b->piece >= b->join->q.rows;
}

/* The same in the sketch's coordinates. */
static gnomon_status filter_sketched(bands *b, gnomon_matrix *band, int64_t row,
                                     gnomon_matrix *piece, int64_t column, bool *fits)
{
    gnomon_join_state *join = b->join;
    const int64_t count = band->rows;
    if (is_whole(b) && join->self) {
        GNOMON_TRY(block_of(b, &b->q_block, piece, 0, true, true));
        return gnomon_sketch_pairs(&b->sketch, join, piece, &b->q_block, row, count, piece,
                                   &b->q_block, fits);
    }
    int64_t first = row;
    if (is_whole(b) && join->p.dense != NULL) {
        *band = *join->p.dense;
        first = 0;
    }
    GNOMON_TRY(block_of(b, &b->p_block, band, first, true, false));
    GNOMON_TRY(block_of(b, &b->q_block, piece, column, false, true));
    return gnomon_sketch_pairs(&b->sketch, join, band, &b->p_block, row, count, piece, &b->q_block,
                               fits);
}

enum { TOP_SAMPLE = 1024, WORTH_SAMPLING = 2048 };

/* The farthest of the closest pairs of some points is not closer than that of all. */
static gnomon_status bound_top(gnomon_join_state *join)
{
    const int64_t least = join->p.rows < join->q.rows ? join->p.rows : join->q.rows;
    if (join->options.top == 0 || isfinite(join->options.threshold) || least < WORTH_SAMPLING ||
        join->options.first_row > 0 || join->p.dense == NULL || join->q.dense == NULL)
        return GNOMON_OK;
    gnomon_join_result result = {.struct_size = sizeof result};
    gnomon_join_state inner = {.ctx = join->ctx, .result = &result, .self = join->self};
    gnomon_matrix p = *join->p.dense, q = *join->q.dense;
    inner.options = join->options;
    inner.options.sink = NULL;
    inner.sample = true;
    p.row_stride *= p.rows / TOP_SAMPLE;
    q.row_stride *= q.rows / TOP_SAMPLE;
    p.rows = q.rows = TOP_SAMPLE;
    inner.p = join->p;
    inner.q = join->q;
    inner.p.dense = &p;
    inner.q.dense = &q;
    inner.p.rows = inner.q.rows = TOP_SAMPLE;
    gnomon_status status = gnomon_join_out_open(&inner);
    if (status == GNOMON_OK) status = gnomon_join_dense(&inner);
    if (status == GNOMON_OK) join->options.threshold = gnomon_join_threshold(&inner);
    gnomon_join_out_close(&inner);
    return status;
}

/* Whether to sketch, once there is a threshold. */
static gnomon_status choose_sketch(bands *b)
{
    gnomon_join_state *join = b->join;
    gnomon_matrix some;
    if (b->sketch_chosen || !isfinite(gnomon_join_threshold(join))) return GNOMON_OK;
    b->sketch_chosen = true;
    const int64_t count =
        join->q.dense != NULL || join->q.rows < b->piece ? join->q.rows : b->piece;
    GNOMON_TRY(rows_of(join, &join->q, &b->q, 0, count, &some));
    GNOMON_TRY(gnomon_sketch_open(&b->sketch, join, &some));
    if (b->sketch.directions == 0) return GNOMON_OK;
    const int64_t each = gnomon_sketch_bytes(&b->sketch), limit = gnomon_memory_limit(join->ctx);
    const int64_t fit = limit / 8 / each;
    const bool memory = join->p.dense != NULL && join->q.dense != NULL;
    if (fit < LEAST_ROWS && fit < join->q.rows) {
        b->sketch.directions = 0;
    } else if (memory && limit / 2 / each > join->q.rows + (join->self ? 0 : join->p.rows)) {
        b->piece = join->q.rows; /* all at once, kept */
    } else {
        const int64_t rows = fit < PIECE ? fit : PIECE;
        if (memory) {
            b->piece = b->rows = rows;
        } else {
            if (b->piece > rows) b->piece = rows;
            if (b->rows > rows) b->rows = rows;
        }
    }
    if (b->sketch.directions > 0)
        gnomon_join_say(join, "a sketch of %d coordinates in %s lets %.2g of the pairs pass",
                        (int)b->sketch.steps,
                        b->sketch.bits == 8    ? "8 bits"
                        : b->sketch.bits == 16 ? "16 bits"
                                               : "fp32",
                        b->sketch.pass);
    return GNOMON_OK;
}

/* Rows [row, row + count) with all of Q; *fits: whether their pairs may wait. */
static gnomon_status do_band(bands *b, int64_t row, int64_t count, bool *fits)
{
    gnomon_join_state *join = b->join;
    gnomon_matrix band, piece;
    join->count = 0;
    for (int64_t at = join->self && !is_whole(b) ? row : 0; at < join->q.rows; at += b->piece) {
        const int64_t some = join->q.rows - at < b->piece ? join->q.rows - at : b->piece;
        GNOMON_TRY(rows_of(join, &join->p, &b->p, row, count, &band));
        GNOMON_TRY(rows_of(join, &join->q, &b->q, at, some, &piece));
        *fits = true;
        if (b->sketch.directions > 0)
            GNOMON_TRY(filter_sketched(b, &band, row, &piece, at, fits));
        else
            GNOMON_TRY(filter_pairs(join, &band, row, &piece, at, fits));
        *fits = (*fits && join->count <= join->pair_room) || count == 1;
        if (!*fits) return GNOMON_OK;
    }
    *fits = true;
    return GNOMON_OK;
}

/* The share of all pairs that the rows before this one have, in parts of WORK. */
static int64_t work_of(const gnomon_join_state *join, int64_t row)
{
    const double n = (double)join->p.rows, left = n - (double)row;
    return (int64_t)((join->self ? 1 - left / n * (left / n) : 1 - left / n) * WORK);
}

static gnomon_status all_bands(bands *b)
{
    gnomon_join_state *join = b->join;
    int64_t rows = b->rows;
    bool more;
    for (;;) {
        GNOMON_TRY(gnomon_join_more(join, &more));
        if (!more) return GNOMON_OK;
        const int64_t row = join->next_row, total = join->end_row;
        if (join->q.rows == 0) {
            GNOMON_TRY(gnomon_join_hand_out(join, total));
            continue;
        }
        GNOMON_TRY(choose_sketch(b));
        if (rows > b->rows) rows = b->rows;
        const int64_t count = total - row < rows ? total - row : rows;
        bool fits;
        GNOMON_TRY(do_band(b, row, count, &fits));
        if (!fits) {
            rows = count / 2;
            continue;
        }
        /* rows of the next band, as far as this one tells */
        const double each = (double)join->count / (double)count + 1e-3;
        const double next = (double)join->pair_room / 2 / each;
        GNOMON_TRY(gnomon_join_hand_out(join, row + count));
        if (rows < b->rows && next > 2 * (double)rows) rows *= 2;
        if (!join->sample)
            GNOMON_TRY(gnomon_progress(join->ctx, "join", work_of(join, row + count), WORK));
    }
}

gnomon_status gnomon_join_check(gnomon_join_state *join)
{
    const gnomon_matrix *p = join->p.dense, *q = join->self ? NULL : join->q.dense;
    if (p != NULL && p->memory == GNOMON_HOST) GNOMON_TRY(check_points(join, &join->p, p, 0));
    if (q != NULL && q->memory == GNOMON_HOST) return check_points(join, &join->q, q, 0);
    return GNOMON_OK;
}

gnomon_status gnomon_join_dense(gnomon_join_state *join)
{
    bands b = {.join = join, .p_block.first = -1, .q_block.first = -1};
    const int64_t limit = gnomon_memory_limit(join->ctx) / 8;
    int64_t size;
    GNOMON_FAIL_IF(!gnomon_add(join->q.cols, 1, &size) ||
                       !gnomon_mul(size, (int64_t)gnomon_dtype_size(join->q.dtype), &size),
                   join->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("%s") " has %" PRId64
                                    " columns: a row of them is more than memory can count",
                   join->q.name, join->q.cols);
    const int64_t fit = limit / size;
    b.piece = fit < 16 ? 16 : fit > PIECE ? PIECE : fit;
    b.rows = fit < 1 ? 1 : fit > MOST_ROWS ? MOST_ROWS : fit;
    b.p = (window){.room = b.rows, .first = -1};
    b.q = (window){.room = b.piece, .first = -1};
    gnomon_status status = bound_top(join);
    if (status == GNOMON_OK) status = all_bands(&b);
    gnomon_free(join->ctx, b.p.data);
    gnomon_free(join->ctx, b.q.data);
    if (b.sketch_chosen) {
        gnomon_sketch_drop(&b.sketch, &b.p_block);
        gnomon_sketch_drop(&b.sketch, &b.q_block);
        gnomon_sketch_close(&b.sketch);
    }
    return status;
}
