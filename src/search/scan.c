/* All queries against a piece of the base.
 *
 * A task takes a chunk of queries and a range of base rows, and goes through the range by blocks
 * small enough for the second cache: packed once, held against all queries of the chunk. What
 * passes a query's filter waits in a small buffer; a full buffer loses what k others surely come
 * before, and what is left in the end is verified in fp64. How the work is cut depends on the
 * number of threads, but the answers, being exact, do not. Where few neighbours are asked for,
 * packing takes a good part of the time: threads then take ranges, each with all queries, and tell
 * each other of scores that k points of a range reach. */
#include "search/scan.h"
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "search/centre.h"
#include "search/exact.h"
#include "search/filter.h"
#include "search/hits.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    LANES = GNOMON_LANES,
    MOST_STEPS = 256,     /* coordinates of one chain of fused multiply-adds */
    BLOCK_FLOATS = 32768, /* of packed base points: 128 KiB */
    QUERY_FLOATS = 49152, /* of queries that meet a block at a time: 192 KiB */
    CHUNK = 512,          /* queries of a task at most */
    FEW = 1,              /* up to so many queries fp64 alone is faster */
    ROOM = 64,            /* survivors kept beyond 2 k */
    MOST_ROOM = 256,      /* where rounding lets many pass */
    CROWD_ROOM = 4096,    /* at most, where it lets more pass than that */
    LEAST_ROWS = 2048,    /* of a range */
    QUERIES = GNOMON_SIFT_QUERIES,
    RANGED_CHUNK = 2048,   /* queries of a task, where packed points are to serve many */
    NEAR_CHUNK = 256,      /* the same where the second cache has all of them */
    RANGED_K = 64,         /* the most neighbours for that: each range finds as many */
    RANGED_EXPECTED = 256, /* the same with expected limits */
    SAMPLED = 16,          /* of so many points one is in the sample */
    LEAST_SAMPLE = 1024,   /* points */
    CACHED_BYTES = 1 << 19,
    AHEAD_BYTES = 8192,
    PLANE_ROWS = 128, /* bits are compared by planes where there are so many points */
    PLANE_BYTES = GNOMON_PLANE_POINTS / 8,
    PLANE_QUERIES = 8, /* and queries of a task, who pay for the points' turn */
    DIRECT_ROWS = 256, /* base rows between checks of the buffers, without a filter */
};

/* multiply-adds of a thread between two reports of progress; in 8 bits, which take less time */
static const double piece_work = 1e10, quads_work = 4e10;

/* The scan of a piece for a group of queries. */
typedef struct scan {
    gnomon_search *s;
    const gnomon_matrix *base;
    const uint32_t *rows; /* NULL: all */
    int64_t count;        /* points of the piece */
    int64_t first_id;
    int64_t query, queries; /* the group */
    bool from_f32;          /* base points become fp32 without fp64 between */
    bool from_rows;         /* and 8 bits straight from their rows */
    bool bits, direct;
    bool planes; /* bits are compared by planes */
    bool ranged; /* threads take ranges of points rather than chunks of queries */
    bool last;   /* no piece comes after it */
    int width;   /* bits of a coordinate: 32 (fp32), 16 or 8 */
    /* the cut */
    int64_t steps, part, parts; /* coordinates in all, and at a time */
    int64_t block;              /* points */
    int64_t chunk, chunks;      /* queries */
    int64_t range, ranges;      /* points */
    int64_t room;
    bool in_task; /* survivors are verified in their task: workers have the memory */
    /* memory */
    float *centred;   /* queries x ld */
    uint32_t *packed; /* the same, in integer coordinates */
    int64_t ld;       /* words of a query */
    uint64_t *words;  /* queries x steps, for bits */
    uint32_t *picks;  /* queries x pick_words, by planes */
    int64_t pick_words;
    /* the piece's points, where they are packed once for all chunks; else NULL */
    gnomon_scan_packed made;
    void *made_here; /* their memory, unless they are the caller's */
    gnomon_filter_query *facts;
    gnomon_filter *filters;     /* ranges x queries */
    gnomon_survivor *survivors; /* room each; NULL: 'in_task' */
    /* A score for each query that k points of some range surely reach; NULL: there is one range. */
    _Atomic float *reached;
    gnomon_nearest *nearest; /* of ranges after the first, which has the search's own */
    gnomon_ranked *heaps;
    gnomon_hit *hits; /* by radius: hit_room a task */
    int64_t hit_room;
    struct progress *places; /* a task */
    struct scratch *scratch;
    /* the first base point, by id, that is refused */
    pthread_mutex_t lock;
    int64_t bad;
    int64_t bad_col;
    gnomon_status bad_status;
    bool was_whole; /* all points packed before the tasks begin have integer coordinates: those of
                       earlier pieces, and these if they are packed once for all chunks */
    bool whole;     /* and so have these */
    int64_t verified;
    gnomon_asking asking;
    int64_t whole_base;             /* points, also where this is of a sample of them */
    const gnomon_scan_lists *lists; /* NULL: all points; else places are those in its rows */
} scan;

/* How far a task has come: by radius it stops when its hits might not fit. */
typedef struct progress {
    int64_t row, hits;
} progress;

/* A worker's. */
typedef struct scratch {
    float *tiles, *sums, *bias, *values;
    gnomon_ranked *found, *sorted; /* k nearest: room for a query's candidates and k */
    uint64_t *spare;               /* twice that */
    gnomon_blur *blurs;
    double *squares, *dots, *f64;
    int32_t *at;    /* a chunk's queries: the next candidate */
    int32_t *later; /* and how many stand behind the first ones, of these or of a query's ranges */
    gnomon_survivor *aside, *survivors; /* with 'in_task', of a chunk */
    uint64_t *words;
    gnomon_bit_planes *planes;
    uint32_t *bit_sums;
    uint32_t *packed;
    /* of a list: the queries of the chunk that ask for it, in a row */
    gnomon_filter *listed;
    void *queries;
    int32_t *members; /* by list: the chunk's queries, of 'heads', */
    double *keys;     /* and their distances from its centre */
    int64_t *heads;
    struct stay *stays; /* of 'listed' */
    float *mean, *with; /* a list's frame */
    double *mean64;
} scratch;

/* A query's stay at a list: what its scores there lack, give or take, and how many of its survivors
 * are no longer of there. */
typedef struct stay {
    gnomon_filter_shift shift;
    int32_t turned;
} stay;

/* What points are taken less before they are packed: the search's mean, or another vector. */
typedef struct frame {
    const float *mean;
    const double *mean64;
    const float *with; /* whose products with points their biases have; NULL: none */
    bool other;        /* not the search's mean: 'with' is how much more, this long */
    double length;
} frame;

/* A task at work, or a list of it. */
typedef struct worker {
    scan *c;
    scratch *own;
    gnomon_filter *filters;  /* the chunk's */
    gnomon_nearest *nearest; /* the chunk's, k nearest */
    gnomon_hit *hits;        /* the task's */
    progress *at;
    int64_t query, count; /* the chunk's, in the group */
    bool whole;           /* all tiles so far are */
    int64_t verified;
    const void *queries;  /* the chunk's, as a sift takes them */
    frame frame;          /* of the points that are packed */
    struct worker *chunk; /* not NULL: these are those of the chunk that ask for a list, by number:
                           */
    const int32_t *members;
} worker;

/* Words of so many of a point's coordinates. */
static int64_t words_of(const scan *c, int64_t steps)
{
    return gnomon_filter_words(&c->s->kernels->quads, steps, c->width);
}

static int64_t row_of(const scan *c, int64_t place)
{
    return c->rows != NULL ? (int64_t)c->rows[place] : place;
}

/* ---- what passed ---- */

static void collect(worker *w, int64_t q, gnomon_ranked point)
{
    const gnomon_search *s = w->c->s;
    if (s->options.k > 0)
        gnomon_nearest_offer(&w->nearest[q], point);
    else if (point.key <= s->limit)
        w->hits[w->at->hits++] = (gnomon_hit){w->c->query + w->query + q, point};
}

/* Tells other ranges of a score that k points reach. Theirs may be equal and have smaller ids. */
static void tell_reached(worker *w, int64_t q, float score)
{
    if (w->c->reached == NULL) return;
    _Atomic float *to = &w->c->reached[w->query + q];
    float before = atomic_load_explicit(to, memory_order_relaxed);
    while (before < score && !atomic_compare_exchange_weak_explicit(
                                 to, &before, score, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Raises what a query lets pass to what other ranges ask for, which it returns. */
static float heed_reached(worker *w, int64_t q)
{
    if (w->c->reached == NULL) return -INFINITY;
    const float score = atomic_load_explicit(&w->c->reached[w->query + q], memory_order_relaxed);
    if (score > w->filters[q].least) w->filters[q].least = score;
    return score;
}

/* A limit below the scores of all points as near as the k-th nearest so far. */
static float score_of_nearest(const worker *w, int64_t q)
{
    const scan *c = w->c;
    const gnomon_nearest *n = &w->nearest[q];
    if (n->count < n->k) return -INFINITY;
    const double key = n->heap[0].key;
    return c->bits ? nextafterf((float)-key, INFINITY)
                   : gnomon_filter_least(c->s, &c->facts[w->query + q], key, w->whole);
}

/* Raises what a query lets pass to what its k-th nearest so far asks for. */
static void raise_least(worker *w, int64_t q)
{
    const scan *c = w->c;
    const gnomon_nearest *n = &w->nearest[q];
    if (c->s->options.k == 0 || n->count < n->k) return;
    gnomon_filter *filter = &w->filters[q];
    const float least = score_of_nearest(w, q);
    if (least > filter->least) filter->least = least;
    if (c->reached == NULL) return;
    const double key = n->heap[0].key;
    tell_reached(w, q,
                 c->bits ? (float)-key
                         : gnomon_filter_least(c->s, &c->facts[w->query + q], key, false));
}

/* Whether what was let pass by an expected limit has the k nearest: marks those where it has not.
 */
static void confirm(worker *w, int64_t q)
{
    const scan *c = w->c;
    if (c->s->expected == NULL || !c->last) return;
    float *expected = &c->s->expected[c->query + w->query + q];
    if (*expected > -INFINITY && !(score_of_nearest(w, q) > *expected)) *expected = NAN;
}

/* Drops candidates that k others surely come before. */
static void shrink(worker *w, int64_t q, bool exactly)
{
    gnomon_filter *filter = &w->filters[q];
    if (w->c->s->options.k == 0) return;
    const float reached = heed_reached(w, q), before = filter->least;
    gnomon_filter_shrink(filter, w->c->s->options.k, reached, exactly, w->own->values);
    /* of other lists' points that are exactly at the limit some have smaller ids */
    if (w->c->lists != NULL && filter->least > before)
        filter->least = nextafterf(filter->least, -INFINITY);
    /* of those that are exactly at the limit this range has k with smaller ids */
    if (filter->least > before) tell_reached(w, q, nextafterf(filter->least, -INFINITY));
}

/* A query in fp64, of which bits have no need. */
static gnomon_query asked(const worker *w, int64_t q)
{
    const scan *c = w->c;
    if (c->bits) return (gnomon_query){.factor = 0};
    return gnomon_query_for(c->s, c->query + w->query + q, c->base, w->own->f64);
}

/* The keys of count of a query's candidates. */
static void keys_of(worker *w, gnomon_query query, const gnomon_survivor *kept, int64_t count,
                    gnomon_ranked *found)
{
    enum { MOST = 4096 }; /* bytes of a row */
    const scan *c = w->c;
    const int64_t size = (int64_t)gnomon_dtype_size(c->base->dtype);
    const int64_t ahead = c->bits ? 0 : gnomon_min(c->s->cols * size, MOST);
    for (int64_t from = 0; from < count; from += GNOMON_KEYS) {
        const int64_t some = gnomon_min(count - from, GNOMON_KEYS);
        int64_t rows[GNOMON_KEYS];
        double keys[GNOMON_KEYS];
        for (int64_t i = 0; i < some; i++)
            rows[i] = row_of(c, kept[from + i].row);
        /* rows lie apart: later ones are fetched meanwhile */
        const int64_t first = from == 0 ? 0 : from + GNOMON_KEYS;
        for (int64_t i = first; i < gnomon_min(from + 2 * GNOMON_KEYS, count); i++)
            gnomon_prefetch(gnomon_row_at(c->base, row_of(c, kept[i].row)), ahead);
        if (!c->bits) gnomon_exact_keys(c->s, query, c->base, rows, some, keys);
        for (int64_t i = 0; i < some; i++)
            found[from + i] = (gnomon_ranked){c->bits ? -(double)kept[from + i].low : keys[i],
                                              c->first_id + rows[i]};
    }
    if (!c->bits) w->verified += count;
}

/* Verifies a query's candidates. */
static void verify(worker *w, int64_t q)
{
    gnomon_filter *filter = &w->filters[q];
    if (filter->count == 0) return;
    const gnomon_query query = asked(w, q);
    gnomon_ranked found[GNOMON_KEYS];
    for (int64_t i = 0; i < filter->count; i += GNOMON_KEYS) {
        const int64_t some = gnomon_min(filter->count - i, GNOMON_KEYS);
        keys_of(w, query, filter->kept + i, some, found);
        for (int64_t j = 0; j < some; j++)
            collect(w, q, found[j]);
    }
    filter->count = 0;
    raise_least(w, q);
}

/* The k nearest of those so far and of count more in 'found', which are the query's last. */
static void join_found(worker *w, int64_t q, gnomon_ranked *found, int64_t count)
{
    gnomon_nearest *n = &w->nearest[q];
    memcpy(found + count, n->heap, (size_t)n->count * sizeof *found);
    count += n->count;
    gnomon_ranked *sorted = w->own->sorted;
    n->count = gnomon_ranked_first(found, count, n->k, w->own->spare, sorted);
    for (int64_t i = 0; i < n->count; i++) /* the farthest first: a heap too */
        n->heap[i] = sorted[n->count - 1 - i];
}

/* ---- the candidates left in the end ---- */

/* Scores of the candidates: of the bounds' width so much above the lower one. Appends them to the
 * worker's values behind 'count'; how many there are then. */
static int64_t scores_of(worker *w, int64_t q, float share, int64_t count)
{
    const gnomon_filter *filter = &w->filters[q];
    float *values = w->own->values;
    for (int32_t i = 0; i < filter->count; i++) {
        const float low = filter->kept[i].low, width = filter->kept[i].high - low;
        values[count++] = width < INFINITY ? low + share * width : low;
    }
    return count;
}

/* A share of the bounds' width. Scores err by much less than their bounds tell, most of them, and
 * as often up as down: the k-th largest score less a small part of its bound is a limit that the k
 * nearest hardly ever miss. It is confirmed afterwards, by the k-th key. */
static const float likely_share = 0.4375F;

/* Whether scores are those of the keys, without an error. */
static bool tells_all(const worker *w, int64_t q)
{
    return w->c->bits || (w->whole && w->c->facts[w->query + q].whole);
}

/* Brings the candidates that may reach a guessed limit to the front, without a change of their
 * order. The number of the others, which stand behind them. */
static int32_t set_aside(worker *w, int64_t q, float guess)
{
    gnomon_filter *filter = &w->filters[q];
    gnomon_survivor *kept = filter->kept, *aside = w->own->aside;
    int32_t first = 0, others = 0;
    filter->least = guess; /* what it lets pass has passed */
    if (!(guess > -INFINITY)) return 0;
    for (int32_t i = 0; i < filter->count; i++) {
        const gnomon_survivor x = kept[i];
        kept[first] = aside[others] = x; /* no branches: there is no order */
        const bool in = !(x.high < guess);
        first += in;
        others += !in;
    }
    if (others > 0) memcpy(kept + first, aside, (size_t)others * sizeof *kept);
    filter->count = first;
    return others;
}

/* Verifies the candidates that stand behind the first ones, if those don't have the k nearest. */
static void verify_others(worker *w, int64_t q, int32_t others)
{
    gnomon_filter *filter = &w->filters[q];
    if (others == 0) return; /* as without a filter, where queries have no facts */
    const float least = score_of_nearest(w, q);
    if (least > filter->least) return;
    gnomon_survivor *kept = filter->kept + filter->count;
    int32_t count = 0;
    for (int32_t i = 0; i < others; i++) {
        kept[count] = kept[i];
        count += !(kept[i].high < least);
    }
    gnomon_ranked *found = w->own->found;
    keys_of(w, asked(w, q), kept, count, found);
    join_found(w, q, found, count);
}

static void full(void *arg, int64_t q)
{
    worker *w = arg;
    gnomon_filter *filter = &w->filters[q];
    shrink(w, q, false);
    if (filter->count <= filter->room - filter->room / 8) return;
    if (filter->room < w->c->room)
        filter->room = (int32_t)gnomon_min(2 * filter->room, w->c->room);
    else
        verify(w, q);
}

/* The survivors that a list's query has found there become those of all lists. */
static void turn_scores(worker *w, int64_t q)
{
    gnomon_filter *filter = &w->filters[q];
    stay *at = &w->own->stays[filter - w->own->listed];
    if (!w->frame.other) return;
    for (; at->turned < filter->count; at->turned++)
        gnomon_filter_leave_list(&filter->kept[at->turned], at->shift);
}

/* The same of a list's query, which has a filter of its own meanwhile. */
static void full_of_list(void *arg, int64_t q)
{
    worker *w = arg;
    gnomon_filter *here = &w->filters[q], *all = &w->chunk->filters[w->members[q]];
    stay *at = &w->own->stays[here - w->own->listed];
    turn_scores(w, q);
    all->count = here->count;
    full(w->chunk, w->members[q]);
    here->count = at->turned = all->count;
    here->room = all->room;
    here->least = gnomon_filter_least_in_list(all->least, at->shift);
}

/* ---- blocks ---- */

static void refuse(scan *c, int64_t row)
{
    int64_t col = 0;
    const gnomon_status status = gnomon_row_fault(c->base, row, &col);
    if (status == GNOMON_OK) return;
    pthread_mutex_lock(&c->lock);
    if (row < c->bad) {
        c->bad = row;
        c->bad_col = col;
        c->bad_status = status;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Packs coordinates [from, from + w) of a tile's points, and the two that COSINE has in addition.
 * Returns whether they are integers. */
static bool pack(const worker *of, int64_t place, int64_t end, int64_t from, int64_t w,
                 const double *factor, float *tile)
{
    const scan *c = of->c;
    const gnomon_search *s = c->s;
    const gnomon_matrix *base = c->base;
    const void *lane[LANES];
    const int64_t cols = from > s->cols ? 0 : gnomon_min(s->cols - from, w);
    for (int l = 0; l < LANES; l++) {
        const int64_t row = row_of(c, place + l < end ? place + l : end - 1);
        lane[l] = (const char *)gnomon_row_at(base, row) +
                  from * base->col_stride * (int64_t)gnomon_dtype_size(base->dtype);
    }
    for (int64_t j = cols; j < w; j++) {
        for (int l = 0; l < LANES; l++)
            tile[j * LANES + l] = from + j == s->cols && factor[l] == 0 ? 1 : 0;
    }
    if (c->from_f32)
        return s->kernels->centre_f32(lane, base->dtype, base->col_stride, cols,
                                      (float)s->centre.scale, of->frame.mean + from, tile);
    return s->kernels->centre_f64(lane, base->dtype, base->col_stride, cols, factor,
                                  of->frame.mean64 + from, tile);
}

/* What 'last' of a sift needs of a tile, once all its squares and dots are there. */
static void finish_tile(worker *w, int64_t place, int64_t end, int64_t tile, gnomon_packing *rows,
                        bool whole)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    const double *squares = w->own->squares + tile * LANES, *dots = w->own->dots + tile * LANES;
    const int lanes = (int)gnomon_min(LANES, end - place);
    for (int l = 0; l < lanes; l++)
        if (!(squares[l] < 0x1p120)) refuse(w->c, row_of(c, place + l));
    for (int l = 0; l < LANES; l++)
        w->own->bias[tile * LANES + l] =
            (float)(s->options.metric == GNOMON_IP
                        ? dots[l]
                        : -squares[l] / 2 - (w->frame.other ? dots[l] : 0));
    const int64_t most_steps = c->width < 32 ? 0 : MOST_STEPS;
    gnomon_blur blur =
        w->frame.other
            ? gnomon_filter_blur_of_list(s, c->steps, most_steps, squares, lanes, w->frame.length)
            : gnomon_filter_blur(s, c->steps, most_steps, squares, lanes, whole);
    if (c->width < 32) {
        float lost[LANES] = {0};
        const int most = s->centre.most;
        uint32_t *packed = w->own->packed + tile * words_of(c, c->steps) * LANES;
        float scale;
        if (rows != NULL)
            scale = s->kernels->quarter_rows(rows, blur.whole >= 0, packed);
        else
            scale = (c->width == 16 ? s->kernels->halve : s->kernels->quarter)(
                w->own->tiles, c->steps, most, blur.whole >= 0, packed, lost);
        gnomon_blur_halve(c->steps, scale, rows != NULL ? rows->lost : lost, lanes, &blur);
    }
    if (blur.whole < 0) w->whole = false;
    w->own->blurs[tile] = blur;
}

/* Packs a tile of points from 'place' on straight from their rows. */
static void pack_rows(worker *w, int64_t place, int64_t end, int64_t tile, gnomon_packing *rows)
{
    const scan *c = w->c;
    for (int l = 0; l < LANES; l++)
        rows->lane[l] = gnomon_row_at(c->base, row_of(c, place + l < end ? place + l : end - 1));
    c->s->kernels->survey_rows(rows);
    memcpy(w->own->squares + tile * LANES, rows->squares, sizeof rows->squares);
    memcpy(w->own->dots + tile * LANES, rows->dots, sizeof rows->dots);
    finish_tile(w, place, end, tile, rows, rows->whole);
}

/* Packs coordinates [from, from + steps) of tiles of points [place, end), at most a block. whole:
 * of each tile, whether those before are integers. */
static void pack_tiles(worker *w, int64_t place, int64_t end, int64_t from, int64_t steps,
                       bool *whole)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    scratch *own = w->own;
    const int64_t tiles = (end - place + LANES - 1) / LANES;
    double factor[LANES] = {0};
    gnomon_packing rows = {.d = c->steps,
                           .mean = w->frame.mean,
                           .with = w->frame.with,
                           .factor = (float)s->centre.scale,
                           .most = s->centre.most,
                           .integers = s->centre.whole,
                           .bytes = (int8_t *)own->tiles};
    if (from == 0) {
        for (int64_t t = 0; t < tiles; t++)
            whole[t] = true;
        memset(own->squares, 0, (size_t)(tiles * LANES) * sizeof *own->squares);
        memset(own->dots, 0, (size_t)(tiles * LANES) * sizeof *own->dots);
    }
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t first = place + t * LANES;
        if (c->from_rows) {
            pack_rows(w, first, end, t, &rows);
            continue;
        }
        float *tile = c->width < 32 ? own->tiles : own->tiles + t * steps * LANES;
        for (int l = 0; l < LANES && !c->from_f32; l++) {
            factor[l] = s->centre.scale;
            if (s->options.metric == GNOMON_COSINE)
                factor[l] = gnomon_inverse_norm(s->kernels, c->base,
                                                row_of(c, first + l < end ? first + l : end - 1));
        }
        whole[t] &= pack(w, first, end, from, steps, factor, tile);
        s->kernels->tile_sums(tile, steps, w->frame.with != NULL ? w->frame.with + from : NULL,
                              own->squares + t * LANES, own->dots + t * LANES);
        if (from + steps == c->steps) finish_tile(w, first, end, t, NULL, whole[t]);
    }
}

enum { BLOCK_TILES = BLOCK_FLOATS / LANES / 4 }; /* at most: blocks have at least four steps */

/* Where the packed points from 'place' on are, if they are for all chunks. */
static scratch packed_at(const scan *c, scratch own, int64_t place)
{
    own.packed = c->made.words + place * words_of(c, c->steps);
    own.bias = c->made.bias + place;
    own.blurs = c->made.blurs + place / LANES;
    return own;
}

/* What all points are taken less: the search's mean. */
static frame frame_of_all(const gnomon_search *s)
{
    return (frame){.mean = s->centre.mean,
                   .mean64 = s->centre.mean64,
                   .with = s->options.metric == GNOMON_IP ? s->centre.mean : NULL};
}

/* A list's: its centre, of COSINE that divided by its norm, which is nearer to its points, so that
 * 8 bits tell more of them. */
static frame frame_of_list(const scan *c, scratch *own, int64_t list)
{
    const gnomon_search *s = c->s;
    const float *centre = c->lists->centres + list * s->cols;
    double factor = 1, squares = 0;
    for (int64_t j = 0; j < s->cols && s->options.metric == GNOMON_COSINE; j++)
        squares += (double)centre[j] * (double)centre[j];
    if (s->options.metric == GNOMON_COSINE) factor = 1 / sqrt(squares);
    if (s->centre.scale != 1 || !(factor < 0x1p120)) return frame_of_all(s);
    squares = 0;
    for (int64_t j = 0; j < c->steps; j++) {
        const bool there = j < s->cols;
        own->mean[j] = there ? (float)((double)centre[j] * factor) : 0;
        own->mean64[j] = (double)own->mean[j];
        const double with = there ? own->mean64[j] - s->centre.mean64[j] : 0;
        own->with[j] = (float)with;
        squares += with * with;
    }
    if (!(squares < 0x1p120)) return frame_of_all(s);
    return (frame){.mean = own->mean,
                   .mean64 = own->mean64,
                   .with = own->with,
                   .other = true,
                   .length = sqrt(squares)};
}

static void pack_task(void *arg, int64_t task, int number)
{
    scan *c = arg;
    const int64_t begin = c->lists != NULL ? c->lists->first[task] : task * c->block;
    const int64_t end =
        c->lists != NULL ? begin + c->lists->rows_of[task] : gnomon_min(begin + c->block, c->count);
    bool whole[BLOCK_TILES];
    worker w = {.c = c, .whole = true};
    w.frame = c->lists != NULL ? frame_of_list(c, &c->scratch[number], task) : frame_of_all(c->s);
    for (int64_t place = begin; place < end; place += c->block) {
        scratch own = packed_at(c, c->scratch[number], place);
        w.own = &own;
        pack_tiles(&w, place, gnomon_min(place + c->block, end), 0, c->steps, whole);
    }
    if (w.whole) return;
    pthread_mutex_lock(&c->lock);
    c->whole = false;
    pthread_mutex_unlock(&c->lock);
}

/* Points [place, end) of the piece, at most a block. */
static void scan_block(worker *w, int64_t place, int64_t end)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    const bool shared = c->made.words != NULL;
    const scratch own = shared ? packed_at(c, *w->own, place) : *w->own;
    bool whole[BLOCK_TILES];
    gnomon_sift sift = {.ld = c->ld,
                        .tiles = c->width < 32 ? (const void *)own.packed : own.tiles,
                        .tile_count = (end - place + LANES - 1) / LANES,
                        .bias = own.bias,
                        .blurs = own.blurs,
                        .row = (uint32_t)place,
                        .rows = (uint32_t)(end - place),
                        .sums_ld = w->count,
                        .full = w->chunk != NULL ? full_of_list : full};
    const int64_t words = words_of(c, c->part);
    /* what all kernels take at a time divides them */
    const int64_t queries = gnomon_min(w->count, QUERY_FLOATS / words / 96 * 96 + 96);
    worker part = *w; /* of the chunk's queries, those that meet the block at a time */
    sift.arg = &part;
    for (int64_t from = 0; from < c->steps; from += c->part) {
        const int64_t steps = gnomon_min(c->part, c->steps - from);
        sift.first = from == 0;
        sift.last = from + steps == c->steps;
        sift.steps = c->width < 32 ? words : steps;
        if (!shared) pack_tiles(w, place, end, from, steps, whole);
        for (int64_t q = 0; q < w->count; q += queries) {
            sift.queries = c->width < 32 ? (const void *)((const uint32_t *)w->queries + q * c->ld)
                                         : (const float *)w->queries + q * c->ld + from;
            sift.count = gnomon_min(queries, w->count - q);
            sift.filters = w->filters + q;
            sift.sums = c->parts > 1 ? own.sums + q * LANES : NULL;
            /* 'full' counts from the chunk's first query */
            part = *w;
            part.filters += q;
            part.nearest += w->nearest != NULL ? q : 0;
            part.members += w->members != NULL ? q : 0;
            part.query += q;
            (c->width == 32   ? s->kernels->sift
             : c->width == 16 ? s->kernels->sift_halves
                              : s->kernels->sift_quarters)(&sift);
            w->verified = part.verified;
        }
    }
}

static void scan_bits(worker *w, int64_t place, int64_t end)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    const gnomon_matrix *base = c->base;
    uint64_t *to = w->own->words;
    for (int64_t p = place; p < end; p++, to += c->steps) {
        const uint8_t *x = gnomon_row_at(base, row_of(c, p));
        to[c->steps - 1] = 0;
        if (base->col_stride == 1 && s->cols > 0) {
            memcpy(to, x, (size_t)s->cols);
        } else {
            for (int64_t j = 0; j < s->cols; j++)
                ((uint8_t *)to)[j] = x[j * base->col_stride];
        }
    }
    const gnomon_sift_bits sift = {.queries = c->words + w->query * c->steps,
                                   .points = w->own->words,
                                   .words = c->steps,
                                   .count = w->count,
                                   .filters = w->filters,
                                   .row = (uint32_t)place,
                                   .rows = (uint32_t)(end - place),
                                   .full = full,
                                   .arg = w};
    s->kernels->sift_bits(&sift);
}

/* The same by planes. */
static void scan_planes(worker *w, int64_t place, int64_t end)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    const uint8_t *rows[GNOMON_PLANE_POINTS];
    for (int64_t p = place; p < end; p++)
        rows[p - place] = (const uint8_t *)c->base->data + row_of(c, p) * c->base->row_stride;
    gnomon_sift_planes sift = {.picks = c->picks + w->query * c->pick_words,
                               .ld = c->pick_words,
                               .count = w->count,
                               .filters = w->filters,
                               .planes = w->own->planes,
                               .bits = 8 * s->cols,
                               .k = s->options.k,
                               .sums = w->own->bit_sums,
                               .row = (uint32_t)place,
                               .rows = (uint32_t)(end - place),
                               .full = full,
                               .arg = w};
    for (; sift.part * GNOMON_PLANES < sift.bits; sift.part++) {
        s->kernels->turn_bits(rows, end - place, c->base->col_stride, sift.bits, sift.part,
                              w->own->planes);
        s->kernels->sift_planes(&sift);
    }
}

/* The key beyond which a point is no answer of a query. */
static double farthest(const worker *w, int64_t q)
{
    const gnomon_search *s = w->c->s;
    return s->options.k == 0 ? s->limit : gnomon_nearest_farthest(&w->nearest[q]);
}

/* Few queries, or l1: every pair in fp64, or those that fp32 can't tell to be too far. */
static void scan_direct(worker *w, int64_t place, int64_t end, int number)
{
    const scan *c = w->c;
    const gnomon_search *s = c->s;
    const gnomon_matrix *asked = &s->queries, *base = c->base;
    const bool scan_base = s->options.metric == GNOMON_L2 && asked->dtype == GNOMON_F32 &&
                           asked->col_stride == 1 && base->dtype == GNOMON_F32 &&
                           base->col_stride == 1;
    const int64_t row_bytes = gnomon_min(s->cols * (int64_t)sizeof(float), AHEAD_BYTES);
    for (int64_t q = 0; q < w->count && !gnomon_asking_stops(&w->c->asking, number); q++) {
        const gnomon_query query = gnomon_query_for(s, c->query + w->query + q, base, w->own->f64);
        const float *from_f32 = gnomon_row_at(asked, c->query + w->query + q);
        const uint32_t self = w->filters[q].self;
        double least = scan_base ? gnomon_least_f32(s->cols, farthest(w, q)) : INFINITY;
        for (int64_t p = place; p < end; p++) {
            const int64_t row = row_of(c, p);
            if (scan_base) {
                /* far enough ahead for memory, where the processor's own prefetching is not */
                gnomon_prefetch((const char *)gnomon_row_at(base, row) + AHEAD_BYTES, row_bytes);
                /* infinite where fp32 is too small: then nothing is known */
                const float sum =
                    s->kernels->differences_f32(from_f32, gnomon_row_at(base, row), s->cols);
                if ((double)sum > least && sum < INFINITY) continue;
            }
            const double key = gnomon_exact_key(s, query, base, row);
            w->verified++;
            if (!(fabs(key) < 0x1p490)) refuse(w->c, row);
            if ((uint32_t)p == self) continue;
            collect(w, q, (gnomon_ranked){key, c->first_id + row});
            if (scan_base) least = gnomon_least_f32(s->cols, farthest(w, q));
        }
    }
}

/* Candidates of all queries by blocks of rows that stay in the second cache: each query has some in
 * every block. */
static void verify_by_rows(worker *w, int64_t rows)
{
    enum { AHEAD = 2, BYTES = 256 };
    const scan *c = w->c;
    for (int64_t q = 0; q < w->count; q++)
        w->own->at[q] = 0;
    /* rows that follow each other: else what lies between them would be fetched too */
    const int64_t stride = c->base->row_stride, cols = c->s->cols;
    const bool follow =
        c->rows == NULL && c->base->col_stride == 1 && stride >= cols && stride / 2 <= cols;
    const int64_t apart = follow ? stride * (int64_t)gnomon_dtype_size(c->base->dtype) : 0;
    for (int64_t end = rows; end - rows < c->count; end += rows) {
        /* of the next block each query's turn fetches a share */
        const int64_t share = gnomon_min(rows, c->count - end) * apart / w->count;
        for (int64_t q = 0; q < w->count; q++) {
            if (share > 0)
                gnomon_prefetch((const char *)c->base->data + end * apart + q * share, share);
            const gnomon_filter *filter = &w->filters[q];
            gnomon_survivor *kept = filter->kept + w->own->at[q];
            const int32_t left = filter->count - w->own->at[q];
            if (q + AHEAD < w->count)
                gnomon_prefetch(w->filters[q + AHEAD].kept + w->own->at[q + AHEAD], BYTES);
            int32_t count = 0;
            while (count < left && kept[count].row < end)
                count++;
            if (count == 0) continue;
            const gnomon_query query = asked(w, q);
            w->own->at[q] += count;
            while (count > 0) {
                const int32_t some = count < GNOMON_KEYS ? count : GNOMON_KEYS;
                int64_t at[GNOMON_KEYS];
                double keys[GNOMON_KEYS];
                for (int32_t i = 0; i < some; i++)
                    at[i] = row_of(c, kept[i].row);
                gnomon_exact_keys(c->s, query, c->base, at, some, keys);
                /* the number takes the place of the bounds, which have served */
                for (int32_t i = 0; i < some; i++)
                    memcpy(&kept[i].low, &keys[i], sizeof keys[i]);
                kept += some;
                count -= some;
            }
        }
    }
    for (int64_t q = 0; q < w->count; q++)
        w->verified += w->own->at[q];
}

/* The answers of a range that is all: what is left of the candidates is verified. */
static void verify_all(worker *w)
{
    const scan *c = w->c;
    const int64_t k = c->s->options.k;
    const int64_t bytes = c->s->cols * (int64_t)gnomon_dtype_size(c->base->dtype) + 1;
    const int64_t rows = gnomon_max(1, CACHED_BYTES / bytes);
    int64_t all = 0;
    for (int64_t q = 0; q < w->count; q++) {
        w->own->later[q] = 0;
        if (w->filters[q].count > k && tells_all(w, q)) {
            shrink(w, q, true);
        } else if (w->filters[q].count > k) {
            const int64_t count = scores_of(w, q, likely_share, 0);
            w->own->later[q] = set_aside(w, q, gnomon_rank_about(w->own->values, count, k));
        }
        all += w->filters[q].count;
    }
    const bool by_rows = !c->bits && c->lists == NULL && all / w->count * rows / c->count >= 2;
    if (by_rows) verify_by_rows(w, rows);
    for (int64_t q = 0; q < w->count; q++) {
        gnomon_filter *filter = &w->filters[q];
        gnomon_ranked *found = w->own->found;
        if (!by_rows) {
            keys_of(w, asked(w, q), filter->kept, filter->count, found);
        } else {
            for (int32_t i = 0; i < filter->count; i++) {
                found[i].id = c->first_id + row_of(c, filter->kept[i].row);
                memcpy(&found[i].key, &filter->kept[i].low, sizeof found[i].key);
            }
        }
        join_found(w, q, found, filter->count);
        verify_others(w, q, w->own->later[q]);
        filter->count = 0;
        confirm(w, q);
    }
}

/* ---- lists ---- */

/* The chunk's queries by the lists among their first 'begin' to 'end' that they ask for. */
static void sort_by_list(const worker *w, int64_t begin, int64_t end)
{
    const gnomon_scan_lists *lists = w->c->lists;
    const int32_t *asked = lists->asked + (w->c->query + w->query) * lists->each;
    int64_t *heads = w->own->heads;
    memset(heads, 0, (size_t)(lists->count + 1) * sizeof *heads);
    for (int64_t q = 0; q < w->count; q++)
        for (int64_t i = begin; i < end; i++)
            heads[asked[q * lists->each + i]]++;
    for (int64_t l = 0, before = 0; l <= lists->count; l++) {
        before += heads[l];
        heads[l] = before; /* where it ends, and in the end where it begins */
    }
    const double *keys = lists->keys + (w->c->query + w->query) * lists->each;
    for (int64_t q = w->count - 1; q >= 0; q--)
        for (int64_t i = begin; i < end; i++) {
            const int64_t at = --heads[asked[q * lists->each + i]];
            w->own->members[at] = (int32_t)q;
            w->own->keys[at] = keys[q * lists->each + i];
        }
}

/* A list against those of the chunk's queries that ask for it: 'of' tells which, with these keys.
 */
static void scan_list(worker *w, worker *of, int64_t list, const double *keys)
{
    const scan *c = w->c;
    uint32_t *to = w->own->queries;
    of->frame = frame_of_list(c, w->own, list);
    for (int64_t i = 0; i < of->count; i++, to += c->ld) {
        const int64_t q = of->members[i];
        stay *at = &w->own->stays[i];
        *at = (stay){.turned = w->filters[q].count};
        if (of->frame.other)
            at->shift = gnomon_filter_shift_of(c->s, &c->facts[w->query + q], keys[i]);
        of->filters[i] = w->filters[q];
        of->filters[i].least = gnomon_filter_least_in_list(w->filters[q].least, at->shift);
        memcpy(to, (const uint32_t *)w->queries + q * c->ld, (size_t)c->ld * sizeof *to);
    }
    const int64_t begin = c->lists->first[list], end = begin + c->lists->rows_of[list];
    for (int64_t place = begin; place < end; place += c->block)
        scan_block(of, place, gnomon_min(place + c->block, end));
    for (int64_t i = 0; i < of->count; i++) {
        turn_scores(of, i);
        w->filters[of->members[i]].count = of->filters[i].count;
    }
}

/* The chunk's queries against their nearest lists, which tell them a limit, and then against the
 * others. */
static void scan_lists(worker *w, int number)
{
    scan *c = w->c;
    const gnomon_scan_lists *lists = c->lists;
    for (int64_t begin = 0; begin < lists->each; begin = begin == 0 ? 1 : lists->each) {
        sort_by_list(w, begin, begin == 0 ? 1 : lists->each);
        for (int64_t l = 0; l < lists->count; l++) {
            const int64_t *head = w->own->heads + l;
            worker of = {.c = c,
                         .own = w->own,
                         .filters = w->own->listed,
                         .queries = w->own->queries,
                         .count = head[1] - head[0],
                         .chunk = w,
                         .members = w->own->members + head[0]};
            if (of.count > 0) scan_list(w, &of, l, w->own->keys + head[0]);
            if (gnomon_asking_stops(&c->asking, number)) return;
        }
        for (int64_t q = 0; q < w->count; q++)
            shrink(w, q, true);
    }
}

/* What k of a sample's count scores are expected to reach. */
static float expected_of(worker *w, int64_t count)
{
    const int64_t k = w->c->s->options.k;
    return count < k ? -INFINITY : gnomon_rank_about(w->own->values, count, k);
}

static void scan_task(void *arg, int64_t task, int number)
{
    scan *c = arg;
    const gnomon_search *s = c->s;
    const int64_t chunk = task % c->chunks, range = task / c->chunks;
    worker w = {.c = c, .own = &c->scratch[number], .at = &c->places[task], .whole = c->was_whole};
    w.query = chunk * c->chunk;
    w.count = gnomon_min(c->chunk, c->queries - w.query);
    w.filters = c->filters + range * c->queries + w.query;
    if (s->options.k > 0)
        w.nearest = range == 0 ? s->nearest + c->query + w.query
                               : c->nearest + (range - 1) * c->queries + w.query;
    else
        w.hits = c->hits + task * c->hit_room;
    for (int64_t q = 0; q < w.count && c->in_task; q++)
        w.filters[q].kept = w.own->survivors + q * c->room;
    w.frame = frame_of_all(s);
    w.queries =
        c->width < 32 ? (const void *)(c->packed + w.query * c->ld) : c->centred + w.query * c->ld;
    if (c->lists != NULL) {
        scan_lists(&w, number);
        w.at->row = c->count;
    }
    const int64_t end = gnomon_min((range + 1) * c->range, c->count);
    while (w.at->row < end) {
        if (gnomon_asking_stops(&c->asking, number)) return;
        const int64_t to = gnomon_min(w.at->row + c->block, end);
        for (int64_t q = 0; q < w.count; q++)
            heed_reached(&w, q);
        if (s->options.k == 0 && w.at->hits + w.count * c->block > c->hit_room) break;
        if (c->direct)
            scan_direct(&w, w.at->row, to, number);
        else if (c->planes)
            scan_planes(&w, w.at->row, to);
        else if (c->bits)
            scan_bits(&w, w.at->row, to);
        else
            scan_block(&w, w.at->row, to);
        w.at->row = to;
        for (int64_t q = 0; q < w.count && s->options.k == 0; q++)
            verify(&w, q);
    }
    for (int64_t q = 0; q < w.count && s->options.k > 0; q++) {
        if (c->ranges > 1) /* join_ranges goes on once all ranges' are known */
            shrink(&w, q, true);
        else if (s->reach != NULL)
            s->reach[c->query + w.query + q] =
                fmaxf(nextafterf(w.filters[q].least, -INFINITY),
                      expected_of(&w, scores_of(&w, q, likely_share, 0)));
    }
    if (s->options.k > 0 && c->ranges == 1 && s->reach == NULL) verify_all(&w);
    pthread_mutex_lock(&c->lock);
    c->verified += w.verified;
    if (!w.whole) c->whole = false;
    pthread_mutex_unlock(&c->lock);
}

/* ---- the cut ---- */

static int64_t steps_of(const gnomon_search *s)
{
    return s->cols + (s->options.metric == GNOMON_COSINE ? 2 : 0);
}

static int64_t packed_words(const gnomon_search *s)
{
    return gnomon_filter_words(&s->kernels->quads, steps_of(s), s->centre.bits);
}

int64_t gnomon_scan_packed_bytes(const gnomon_search *s, int64_t places)
{
    if (s->centre.bits == 32) return 0;
    const int64_t tiles = gnomon_ceil_div(places, LANES);
    const int64_t words = (packed_words(s) + 1) * (int64_t)sizeof(uint32_t); /* and the bias */
    return gnomon_round_up(tiles * (words * LANES + (int64_t)sizeof(gnomon_blur)), GNOMON_ALIGN);
}

gnomon_scan_packed gnomon_scan_packed_in(const gnomon_search *s, int64_t places, void *memory)
{
    const int64_t points = gnomon_round_up(places, LANES);
    gnomon_scan_packed p = {.words = memory};
    p.bias = (float *)(p.words + points * packed_words(s));
    p.blurs = (gnomon_blur *)(p.bias + points);
    return p;
}

/* How many points can be packed once for all chunks, which takes memory: a part of the limit. */
static double rows_once(const scan *c)
{
    if (c->bits || c->direct || c->width == 32 || c->lists != NULL) return INFINITY;
    const double each = (double)gnomon_scan_packed_bytes(c->s, LANES) / LANES;
    return (double)gnomon_memory_limit(c->s->ctx) / 8 / each;
}

static bool packs_once(const scan *c)
{
    const double most = rows_once(c);
    return most < INFINITY && c->chunks > 1 && (double)c->count <= most;
}

/* The rank in the sample, of every SAMPLED-th point, that hardly ever is one of the k nearest of
 * all: of these the sample has k / SAMPLED, give or take the root of that; of a hundred
 * thousand queries one has more than this. */
static int64_t rank_in_sample(int64_t k)
{
    const double mean = (double)k / SAMPLED;
    return (int64_t)ceil(mean + 4 * sqrt(mean) + 3);
}

/* Survivors of a query that are kept before they are verified: of few neighbours all that may be
 * among the nearest, and as many before the limit is near them. */
static int64_t most_room(const gnomon_search *s, int64_t k)
{
    const double crowd = 2 * s->centre.possible * (double)k;
    return gnomon_max(MOST_ROOM + 2 * k, ROOM + (int64_t)fmin(crowd, CROWD_ROOM));
}

/* The same with expected limits, of which so many are expected to pass: rounding lets others pass.
 */
static int64_t expected_room(const gnomon_search *s, int64_t k, int64_t ranges)
{
    const double passing = (double)(rank_in_sample(k) * SAMPLED);
    const double most = 6, share = fmin(fmax(1.5, 1.25 * s->centre.likely), most);
    const double each =
        ranges == 1 ? passing : fmin((double)(2 * k), 2 * passing / (double)ranges) / 1.5;
    return ROOM + (int64_t)(share * each);
}

static int64_t room_of(const gnomon_search *s, int64_t k, int64_t ranges)
{
    return s->expected != NULL ? expected_room(s, k, ranges) : most_room(s, k);
}

typedef struct division {
    int64_t chunk, chunks; /* queries */
    int64_t ranges;        /* of points, at most */
    bool in_task;
} division;

/* Chunks of so many queries and ranges of count points that keep all threads at work. */
static division divide(const scan *c, int64_t queries, int64_t count)
{
    const int64_t threads = gnomon_context_threads(c->s->ctx);
    /* a task turns its bits to planes: more queries are to pay for that */
    const int64_t enough = 192, few = 48, least = c->bits ? 64 : 16;
    const int64_t most_ranges = gnomon_max(count / LEAST_ROWS, 1);
    const int64_t most_queries = c->width == 8 ? 2 * CHUNK : CHUNK;
    division d;
    int64_t chunks = gnomon_ceil_div(queries, most_queries);
    if (c->lists != NULL) /* so that many of a chunk ask for a list */
        chunks = gnomon_min(threads, gnomon_ceil_div(queries, few));
    else if (c->ranged)
        chunks = gnomon_ceil_div(queries, most_ranges == 1 ? NEAR_CHUNK : RANGED_CHUNK);
    else if (queries >= enough * threads)
        chunks = gnomon_round_up(chunks, threads);
    else
        chunks = gnomon_ceil_div(queries, enough);
    if (c->bits) chunks = gnomon_min(chunks, gnomon_ceil_div(queries, NEAR_CHUNK));
    if (c->lists == NULL && threads > 1) /* few points have few ranges */
        chunks = gnomon_max(chunks,
                            gnomon_min(3 * threads / most_ranges, gnomon_ceil_div(queries, least)));
    d.chunk = gnomon_ceil_div(queries, chunks);
    if (d.chunk > few) d.chunk = gnomon_round_up(d.chunk, 24);
    d.chunks = gnomon_ceil_div(queries, d.chunk);
    d.ranges = threads == 1 ? 1 : gnomon_ceil_div(2 * threads, d.chunks);
    if (d.chunks >= (c->ranged ? 4 : 1) * threads || c->lists != NULL) d.ranges = 1;
    d.ranges = gnomon_min(d.ranges, most_ranges);
    d.in_task = d.ranges == 1 && d.chunks > threads;
    return d;
}

static void cut(scan *c)
{
    const int64_t k = gnomon_min(c->s->options.k, c->count);
    division d = divide(c, c->queries, c->count);
    /* the last queries of a large group, divided into ranges, take no more memory than the group */
    const double room = (double)room_of(c->s, k, d.ranges) * sizeof(gnomon_survivor);
    const double most = (double)gnomon_memory_limit(c->s->ctx) / 2 / ((double)c->queries * room);
    if ((double)d.ranges > most) {
        d.ranges = gnomon_max((int64_t)most, 1);
        d.in_task = d.ranges == 1 && d.chunks > gnomon_context_threads(c->s->ctx);
    }
    c->chunk = d.chunk;
    c->chunks = d.chunks;
    c->in_task = d.in_task;
    c->range = gnomon_round_up(gnomon_ceil_div(c->count, d.ranges), LANES);
    c->ranges = gnomon_ceil_div(c->count, c->range);
    c->planes = c->bits && c->s->cols > 0 && c->chunk >= PLANE_QUERIES && c->range >= PLANE_ROWS;
    if (c->planes) {
        c->block = GNOMON_PLANE_POINTS;
        c->range = gnomon_round_up(c->range, c->block);
        c->ranges = gnomon_ceil_div(c->count, c->range);
    } else if (c->bits) {
        c->block = BLOCK_FLOATS / 2 / c->steps;
    } else if (c->direct) {
        c->block = DIRECT_ROWS;
    } else {
        c->parts = c->width < 32 ? 1 : (c->steps + MOST_STEPS - 1) / MOST_STEPS;
        c->part = gnomon_min(c->steps, gnomon_round_up((c->steps + c->parts - 1) / c->parts, 4));
        const int64_t words = words_of(c, c->part);
        c->block = BLOCK_FLOATS / (words < 16 ? 16 : words) / LANES * LANES;
    }
    if (c->block < LANES) c->block = LANES;
    c->room = room_of(c->s, k, c->ranges);
    if (c->direct) c->room = 0;
}

/* What packing a list takes beside its place. */
static gnomon_status reserve_packing(const scan *c, scratch *own)
{
    gnomon_context *ctx = c->s->ctx;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->width < 32 ? LANES : c->block, c->part),
                            sizeof *own->tiles, "base tiles", &own->tiles));
    GNOMON_TRY(gnomon_alloc(ctx, c->block, sizeof *own->squares, "norms", &own->squares));
    GNOMON_TRY(gnomon_alloc(ctx, c->block, sizeof *own->dots, "products", &own->dots));
    if (c->lists == NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, c->steps, sizeof *own->mean, "a centre", &own->mean));
    GNOMON_TRY(gnomon_alloc(ctx, c->steps, sizeof *own->with, "a centre", &own->with));
    return gnomon_alloc(ctx, c->steps, sizeof *own->mean64, "a centre", &own->mean64);
}

static gnomon_status reserve_lists(const scan *c, scratch *own)
{
    gnomon_context *ctx = c->s->ctx;
    GNOMON_TRY(gnomon_alloc(ctx, c->chunk, sizeof *own->listed, "filters", &own->listed));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(gnomon_plus(c->chunk, QUERIES), c->ld),
                                 sizeof(uint32_t), "centred queries", &own->queries));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->chunk, c->lists->each), sizeof *own->members,
                            "queries of lists", &own->members));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->chunk, c->lists->each), sizeof *own->keys,
                            "distances of lists", &own->keys));
    GNOMON_TRY(gnomon_alloc(ctx, c->chunk, sizeof *own->stays, "queries of lists", &own->stays));
    return gnomon_alloc(ctx, c->lists->count + 1, sizeof *own->heads, "lists", &own->heads);
}

/* Sums are carried from one part of the bits to the next. */
static gnomon_status reserve_planes(const scan *c, scratch *own)
{
    gnomon_context *ctx = c->s->ctx;
    const int64_t bits = 8 * c->s->cols;
    GNOMON_TRY(gnomon_alloc(ctx, 1, sizeof *own->planes, "base planes", &own->planes));
    if (bits <= GNOMON_PLANES) return GNOMON_OK;
    const int64_t bytes = gnomon_plane_levels(bits) * PLANE_BYTES;
    return gnomon_alloc(ctx, c->chunk, (size_t)bytes, "sums of bits", &own->bit_sums);
}

static gnomon_status reserve_workers(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    const int64_t threads = gnomon_context_threads(ctx), tiles = c->block / LANES;
    const bool dense = !c->bits && !c->direct;
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *c->scratch, "scratch", &c->scratch));
    for (int64_t t = 0; t < threads; t++) {
        scratch *own = &c->scratch[t];
        if (c->room > 0)
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->ranges, c->room), sizeof *own->values,
                                    "scores", &own->values));
        if (c->in_task)
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->chunk, c->room), sizeof *own->survivors,
                                    "survivors", &own->survivors));
        if (c->s->options.k > 0) {
            const int64_t found = gnomon_plus(gnomon_times(c->ranges, c->room), c->s->options.k);
            GNOMON_TRY(gnomon_alloc(ctx, found, sizeof *own->found, "candidates", &own->found));
            GNOMON_TRY(gnomon_alloc(ctx, found, sizeof *own->sorted, "candidates", &own->sorted));
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, found), sizeof *own->spare, "candidates",
                                    &own->spare));
            GNOMON_TRY(gnomon_alloc(ctx, c->chunk, sizeof *own->at, "places", &own->at));
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_max(c->chunk, c->ranges), sizeof *own->later,
                                    "places", &own->later));
            GNOMON_TRY(gnomon_alloc(ctx, c->room, sizeof *own->aside, "candidates", &own->aside));
        }
        if (c->planes)
            GNOMON_TRY(reserve_planes(c, own));
        else if (c->bits)
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->block, c->steps), sizeof *own->words,
                                    "base words", &own->words));
        else
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(2, c->s->cols), sizeof *own->f64, "a query",
                                    &own->f64));
        if (!dense) continue;
        GNOMON_TRY(reserve_packing(c, own));
        if (c->width < 32)
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->block, words_of(c, c->part)),
                                    sizeof *own->packed, "base tiles", &own->packed));
        if (c->lists != NULL) GNOMON_TRY(reserve_lists(c, own));
        GNOMON_TRY(gnomon_alloc(ctx, c->block, sizeof *own->bias, "biases", &own->bias));
        GNOMON_TRY(gnomon_alloc(ctx, tiles, sizeof *own->blurs, "error bounds", &own->blurs));
        if (c->parts > 1)
            GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->block, c->chunk), sizeof *own->sums,
                                    "sums", &own->sums));
    }
    return GNOMON_OK;
}

/* Threads write the queries; behind the last are zeros, which kernels may read. */
static gnomon_status reserve_packed(scan *c)
{
    const int64_t queries = gnomon_plus(c->queries, QUERIES);
    GNOMON_TRY(gnomon_alloc(c->s->ctx, gnomon_times(queries, c->ld), sizeof *c->packed,
                            "centred queries", &c->packed));
    memset(c->packed + c->queries * c->ld, 0, (size_t)(QUERIES * c->ld) * sizeof *c->packed);
    return GNOMON_OK;
}

static gnomon_status reserve_bits(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(c->queries, c->steps), sizeof *c->words,
                                 "query words", &c->words));
    if (!c->planes) return GNOMON_OK;
    return gnomon_alloc(ctx, gnomon_times(c->queries, c->pick_words), sizeof *c->picks,
                        "query planes", &c->picks);
}

static gnomon_status reserve(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    const int64_t filters = c->ranges * c->queries, tasks = c->ranges * c->chunks;
    const int64_t k = c->s->options.k;
    int64_t places;
    GNOMON_FAIL_IF(!gnomon_mul(filters, c->room, &places), ctx, GNOMON_ERROR_OVERFLOW,
                   "%" PRId64 " queries with k %" PRId64 " are more than can be counted",
                   c->queries, k);
    GNOMON_TRY(reserve_workers(c));
    if (c->lists != NULL && c->lists->packed != NULL) {
        c->made = *c->lists->packed;
    } else if (packs_once(c)) {
        const int64_t bytes = gnomon_scan_packed_bytes(c->s, c->count);
        GNOMON_TRY(gnomon_alloc(ctx, bytes, 1, "base tiles", &c->made_here));
        c->made = gnomon_scan_packed_in(c->s, c->count, c->made_here);
    }
    GNOMON_TRY(gnomon_alloc(ctx, c->queries, sizeof *c->facts, "facts of queries", &c->facts));
    GNOMON_TRY(gnomon_alloc(ctx, filters, sizeof *c->filters, "filters", &c->filters));
    if (!c->in_task) {
        GNOMON_TRY(gnomon_alloc(ctx, places, sizeof *c->survivors, "survivors", &c->survivors));
        gnomon_expect_use(ctx, c->survivors, gnomon_times(places, (int64_t)sizeof *c->survivors));
    }
    GNOMON_TRY(gnomon_alloc_zero(ctx, tasks, sizeof *c->places, "tasks", &c->places));
    if (c->bits)
        GNOMON_TRY(reserve_bits(c));
    else if (c->width < 32)
        GNOMON_TRY(reserve_packed(c));
    else if (!c->direct)
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(c->queries, c->ld), sizeof *c->centred,
                                "centred queries", &c->centred));
    if (k == 0) {
        c->hit_room = 2 * c->chunk * c->block;
        return gnomon_alloc(ctx, gnomon_times(tasks, c->hit_room), sizeof *c->hits, "hits",
                            &c->hits);
    }
    if (c->ranges > 1) {
        GNOMON_TRY(gnomon_alloc(ctx, c->queries, sizeof *c->reached, "limits", &c->reached));
        for (int64_t q = 0; q < c->queries; q++)
            atomic_init(&c->reached[q], -INFINITY);
    }
    const int64_t others = (c->ranges - 1) * c->queries;
    GNOMON_TRY(gnomon_alloc(ctx, others, sizeof *c->nearest, "neighbours", &c->nearest));
    int64_t heaps;
    GNOMON_FAIL_IF(!gnomon_mul(others, k, &heaps), ctx, GNOMON_ERROR_OVERFLOW,
                   "%" PRId64 " queries with k %" PRId64 " are more than can be counted",
                   c->queries, k);
    GNOMON_TRY(gnomon_alloc(ctx, heaps, sizeof *c->heaps, "neighbours", &c->heaps));
    for (int64_t i = 0; i < others; i++)
        c->nearest[i] = (gnomon_nearest){c->heaps + i * k, k, 0};
    return GNOMON_OK;
}

static void release(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    for (int64_t t = 0; t < gnomon_context_threads(ctx) && c->scratch != NULL; t++) {
        scratch *own = &c->scratch[t];
        gnomon_free(ctx, own->values);
        gnomon_free(ctx, own->found);
        gnomon_free(ctx, own->sorted);
        gnomon_free(ctx, own->spare);
        gnomon_free(ctx, own->at);
        gnomon_free(ctx, own->later);
        gnomon_free(ctx, own->aside);
        gnomon_free(ctx, own->survivors);
        gnomon_free(ctx, own->words);
        gnomon_free(ctx, own->planes);
        gnomon_free(ctx, own->bit_sums);
        gnomon_free(ctx, own->packed);
        gnomon_free(ctx, own->f64);
        gnomon_free(ctx, own->tiles);
        gnomon_free(ctx, own->bias);
        gnomon_free(ctx, own->squares);
        gnomon_free(ctx, own->dots);
        gnomon_free(ctx, own->blurs);
        gnomon_free(ctx, own->sums);
        gnomon_free(ctx, own->listed);
        gnomon_free(ctx, own->queries);
        gnomon_free(ctx, own->members);
        gnomon_free(ctx, own->keys);
        gnomon_free(ctx, own->stays);
        gnomon_free(ctx, own->mean);
        gnomon_free(ctx, own->with);
        gnomon_free(ctx, own->mean64);
        gnomon_free(ctx, own->heads);
    }
    gnomon_free(ctx, c->scratch);
    gnomon_free(ctx, c->facts);
    gnomon_free(ctx, c->filters);
    gnomon_free(ctx, c->survivors);
    gnomon_free(ctx, c->places);
    gnomon_free(ctx, c->words);
    gnomon_free(ctx, c->picks);
    gnomon_free(ctx, c->centred);
    gnomon_free(ctx, c->packed);
    gnomon_free(ctx, c->made_here);
    gnomon_free(ctx, c->hits);
    gnomon_free(ctx, (void *)c->reached);
    gnomon_free(ctx, c->nearest);
    gnomon_free(ctx, c->heaps);
}

/* ---- a group of queries ---- */

/* The place of the query's own point in the piece, or UINT32_MAX. */
static uint32_t place_of_self(const scan *c, int64_t query)
{
    if (c->lists != NULL) return c->lists->self != NULL ? c->lists->self[query] : UINT32_MAX;
    if (c->s->options.exclude < 0) return UINT32_MAX;
    const int64_t row = c->s->options.exclude + query - c->first_id;
    if (c->rows == NULL) return row >= 0 && row < c->count ? (uint32_t)row : UINT32_MAX;
    int64_t low = 0, high = c->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)c->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->count && (int64_t)c->rows[low] == row ? (uint32_t)low : UINT32_MAX;
}

static void prepare(void *arg, int64_t task, int number)
{
    scan *c = arg;
    const gnomon_search *s = c->s;
    const int64_t query = c->query + task;
    gnomon_filter first = {.least = -INFINITY, .self = place_of_self(c, query)};
    if (c->bits) {
        const gnomon_matrix *m = &s->queries;
        const uint8_t *x = gnomon_row_at(m, query);
        uint8_t *to = (uint8_t *)(c->words + task * c->steps);
        for (int64_t j = 0; j < m->cols; j++)
            to[j] = x[j * m->col_stride];
        if (c->planes)
            s->kernels->pick_bits(c->words + task * c->steps, 8 * m->cols,
                                  c->picks + task * c->pick_words);
    } else if (c->width < 32) {
        scratch *own = &c->scratch[number];
        gnomon_filter_prepare(s, query, c->steps, 0, own->f64, own->tiles, &c->facts[task], &first);
        gnomon_filter_round(own->tiles, c->steps, c->width, s->centre.most, s->kernels,
                            &c->facts[task], &first, c->packed + task * c->ld);
    } else if (!c->direct) {
        gnomon_filter_prepare(s, query, c->steps, MOST_STEPS, c->scratch[number].f64,
                              c->centred + task * c->ld, &c->facts[task], &first);
    }
    if (c->lists != NULL) { /* points do not come in the order of their ids */
        c->facts[task].whole = false;
        first.whole = INFINITY;
    }
    first.room = (int32_t)c->room;
    if (s->expected == NULL) first.room = (int32_t)gnomon_min(c->room, ROOM + 2 * s->options.k);
    if (s->options.k == 0)
        first.least = c->bits     ? (float)-s->limit
                      : c->direct ? 0
                                  : gnomon_filter_least(s, &c->facts[task], s->limit, false);
    else if (s->expected != NULL && !c->direct)
        first.least = s->expected[query];
    for (int64_t r = 0; r < c->ranges; r++) {
        gnomon_filter *filter = &c->filters[r * c->queries + task];
        *filter = first;
        if (!c->in_task) filter->kept = c->survivors + (r * c->queries + task) * c->room;
    }
    if (s->options.k == 0 || c->direct) return;
    worker w = {.c = c, .query = task, .nearest = s->nearest + query, .whole = c->was_whole};
    for (int64_t r = 0; r < c->ranges; r++) {
        w.filters = &c->filters[r * c->queries + task];
        raise_least(&w, 0);
    }
}

/* The scores of a query's candidates in all ranges; how many. */
static int64_t join_scores(worker *w, float share)
{
    const scan *c = w->c;
    int64_t count = 0;
    for (int64_t r = 0; r < c->ranges; r++) {
        w->filters = &c->filters[r * c->queries + w->query];
        count = scores_of(w, 0, share, count);
    }
    return count;
}

/* Verifies what is left of a query's candidates in all ranges, and joins the answers. */
static void join_ranges(void *arg, int64_t task, int number)
{
    scan *c = arg;
    const int64_t k = c->s->options.k;
    worker w = {.c = c,
                .own = &c->scratch[number],
                .query = task,
                .nearest = &c->s->nearest[c->query + task],
                .whole = c->whole};
    for (int64_t r = 1; r < c->ranges; r++) {
        const gnomon_nearest *from = &c->nearest[(r - 1) * c->queries + task];
        for (int64_t i = 0; i < from->count; i++)
            gnomon_nearest_offer(w.nearest, from->heap[i]);
    }
    int64_t count = join_scores(&w, 0);
    if (count >= k) tell_reached(&w, 0, gnomon_rank_largest(w.own->values, count, k));
    if (c->s->reach != NULL) {
        count = join_scores(&w, likely_share);
        c->s->reach[c->query + task] =
            fmaxf(atomic_load(&c->reached[task]), expected_of(&w, count));
        return;
    }
    count = 0;
    for (int64_t r = 0; r < c->ranges; r++) {
        w.filters = &c->filters[r * c->queries + task];
        shrink(&w, 0, true);
        count += w.filters->count;
    }
    float guess = -INFINITY;
    if (count > k && !tells_all(&w, 0))
        guess = gnomon_rank_about(w.own->values, join_scores(&w, likely_share), k);
    gnomon_filter *first = &c->filters[task];
    const gnomon_query query = asked(&w, 0);
    int64_t verified = 0;
    for (int64_t r = 0; r < c->ranges; r++) {
        w.filters = first + r * c->queries;
        w.own->later[r] = set_aside(&w, 0, guess);
        keys_of(&w, query, w.filters->kept, w.filters->count, w.own->found + verified);
        verified += w.filters->count;
    }
    join_found(&w, 0, w.own->found, verified);
    for (int64_t r = 0; r < c->ranges; r++) {
        w.filters = first + r * c->queries;
        verify_others(&w, 0, w.own->later[r]);
    }
    confirm(&w, 0);
    pthread_mutex_lock(&c->lock);
    c->verified += w.verified;
    pthread_mutex_unlock(&c->lock);
}

/* Hands the tasks' hits over; whether there is more to come. */
static gnomon_status drain(scan *c, bool *more)
{
    const int64_t tasks = c->ranges * c->chunks;
    int64_t count = 0;
    *more = false;
    for (int64_t t = 0; t < tasks; t++)
        count += c->places[t].hits;
    GNOMON_TRY(gnomon_hits_reserve(c->s, count));
    for (int64_t t = 0; t < tasks; t++) {
        progress *at = &c->places[t];
        if (at->hits > 0)
            memcpy(c->s->hits + c->s->hit_count, c->hits + t * c->hit_room,
                   (size_t)at->hits * sizeof *c->hits);
        c->s->hit_count += at->hits;
        at->hits = 0;
        if (at->row < gnomon_min((t / c->chunks + 1) * c->range, c->count)) *more = true;
    }
    return GNOMON_OK;
}

static void check_row(void *arg, int64_t task, int number)
{
    (void)number;
    scan *c = arg;
    refuse(c, row_of(c, task));
}

/* Of other types what can't be taken shows in the sums. */
static void check_rows(scan *c)
{
    if (c->base->dtype == GNOMON_F64) gnomon_parallel(c->s->ctx, c->count, check_row, c);
}

/* Fails where a row was refused. */
static gnomon_status tell_refused(const scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    if (c->bad == INT64_MAX) return GNOMON_OK;
    const int64_t id = c->first_id + c->bad;
    GNOMON_FAIL_IF(c->bad_status == GNOMON_ERROR_NONFINITE, ctx, GNOMON_ERROR_NONFINITE,
                   GNOMON_ARG("base") " has NaN or infinity in row " GNOMON_AT_ROW "%" PRId64
                                      ", column " GNOMON_AT_COL "%" PRId64,
                   id, c->bad_col);
    return gnomon_fail(ctx, GNOMON_ERROR_UNSUPPORTED,
                       GNOMON_ARG("base") " has a magnitude above 2^500 in row " GNOMON_AT_ROW
                                          "%" PRId64 ", column " GNOMON_AT_COL "%" PRId64,
                       id, c->bad_col);
}

static gnomon_status run(scan *c)
{
    gnomon_context *ctx = c->s->ctx;
    GNOMON_TRY(reserve(c));
    if (c->s->reach == NULL && (c->lists == NULL || c->lists->packed == NULL)) check_rows(c);
    gnomon_parallel(ctx, c->queries, prepare, c);
    if (c->made_here != NULL)
        gnomon_parallel(ctx, gnomon_ceil_div(c->count, c->block), pack_task, c);
    c->was_whole = c->whole;
    for (int64_t t = 0; t < c->ranges * c->chunks; t++)
        c->places[t].row = t / c->chunks * c->range;
    for (bool more = true; more;) {
        more = false;
        gnomon_parallel(ctx, c->ranges * c->chunks, scan_task, c);
        GNOMON_TRY(c->asking.status);
        if (c->s->options.k == 0) GNOMON_TRY(drain(c, &more));
    }
    if (c->ranges > 1 && c->s->options.k > 0) gnomon_parallel(ctx, c->queries, join_ranges, c);
    /* of a sample it may not be the first */
    return c->s->reach == NULL ? tell_refused(c) : GNOMON_OK;
}

/* What a query of bits takes: its words, the list of its planes, and its sums in all threads. */
static int64_t bits_bytes(const scan *c)
{
    const int64_t bits = 8 * c->s->cols, words = 2 * c->steps + c->pick_words;
    const int64_t sums = bits > GNOMON_PLANES ? gnomon_plane_levels(bits) * PLANE_BYTES : 0;
    return words * (int64_t)sizeof(uint32_t) + sums * gnomon_context_threads(c->s->ctx);
}

/* How many queries may be held at a time: fewer are divided into more ranges. */
static int64_t group_of(const gnomon_search *s, const scan *like)
{
    enum { LEAST = 6 };
    const int64_t k = gnomon_min(s->options.k, like->count);
    const double limit = (double)gnomon_memory_limit(s->ctx) / 2;
    int64_t group = s->count;
    while (group > LEAST) {
        const division d = divide(like, group, like->count);
        const double ranges = (double)d.ranges;
        const double survivors = (double)room_of(s, k, d.ranges) * sizeof(gnomon_survivor);
        const int64_t working = d.chunk * gnomon_context_threads(s->ctx);
        double each = (double)like->ld * 4 + sizeof(gnomon_filter_query);
        if (like->bits) each += (double)bits_bytes(like);
        each += ranges * sizeof(gnomon_filter);
        if (d.ranges > 1) each += ranges * (double)s->options.k * sizeof(gnomon_ranked);
        const double held = d.in_task ? (double)working : ranges * (double)group;
        if ((double)group * each + held * survivors <= limit) break;
        double fit = limit / (each + ranges * survivors);
        if (d.in_task) fit = fmax(fit, (limit - held * survivors) / each);
        group = gnomon_min(group - 1, gnomon_max((int64_t)fit, LEAST));
    }
    return group;
}

/* All pieces, for the queries from 'query' on. */
static gnomon_status scan_pieces(scan like, int64_t query, int64_t queries, int64_t piece)
{
    gnomon_search *s = like.s;
    const gnomon_matrix *base = like.base;
    const uint32_t *rows = like.rows;
    const int64_t count = like.count;
    for (int64_t from = 0; from < count; from += piece) {
        gnomon_matrix part = *base;
        scan c = like;
        c.base = &part;
        c.count = gnomon_min(piece, count - from);
        c.last = from + c.count == count;
        c.first_id = s->base;
        if (rows != NULL) {
            c.rows = rows + from;
        } else {
            part = gnomon_rows(base, from, c.count);
            c.first_id += from;
        }
        c.query = query;
        c.queries = queries;
        c.asking = (gnomon_asking){.ctx = s->ctx,
                                   .phase = "search",
                                   .done = s->reach == NULL ? query * count + queries * from : 0,
                                   .total = s->count * c.whole_base};
        c.whole = c.was_whole = s->whole;
        cut(&c);
        pthread_mutex_init(&c.lock, NULL);
        const gnomon_status status = run(&c);
        pthread_mutex_destroy(&c.lock);
        release(&c);
        GNOMON_TRY(status);
        s->whole = c.whole;
        s->verified += c.verified;
        const int64_t done = query * count + queries * (from + c.count);
        if (s->reach == NULL) GNOMON_TRY(gnomon_progress(s->ctx, "search", done, s->count * count));
    }
    return GNOMON_OK;
}

/* Searches again for queries whose expected limits were too high, without a limit. */
static gnomon_status scan_again(const scan *like, int64_t query, int64_t queries, int64_t piece)
{
    gnomon_search *s = like->s;
    int64_t first = query, end = query + queries;
    while (first < end && !isnan(s->expected[first]))
        first++;
    while (end > first && !isnan(s->expected[end - 1]))
        end--;
    if (first == end) return GNOMON_OK;
    for (int64_t q = first; q < end; q++) {
        s->nearest[q].count = 0;
        s->expected[q] = -INFINITY;
    }
    return scan_pieces(*like, first, end - first, piece);
}

static gnomon_status scan_groups(const scan *like)
{
    gnomon_search *s = like->s;
    const int64_t group = group_of(s, like);
    const double threads = gnomon_context_threads(s->ctx);
    const double work = threads * (like->width == 8 ? quads_work : piece_work);
    double some = work / ((double)group * (double)(like->steps + 8));
    if (divide(like, group, like->count).chunks > 1) some = fmin(some, rows_once(like));
    int64_t piece = some < 8192 ? 8192 : some > 0x1p30 ? (int64_t)1 << 30 : (int64_t)some;
    if (s->rows > 0) piece = s->rows;
    if (like->lists != NULL) piece = like->count;
    const bool whole = s->whole;
    for (int64_t query = 0; query < s->count; query += group) {
        const int64_t queries = gnomon_min(group, s->count - query);
        s->whole = whole;
        GNOMON_TRY(scan_pieces(*like, query, queries, piece));
        if (s->expected == NULL) continue;
        s->whole = whole;
        GNOMON_TRY(scan_again(like, query, queries, piece));
    }
    return GNOMON_OK;
}

/* ---- expected limits ---- */

/* How many of count points come to be among a query's k nearest so far, if they come in no order:
 * in ranges that are at work together each has a limit of its own, later ones have theirs. Of few
 * queries that takes less time than a sample does, which is packed first. */
static double come_near(const scan *c, int64_t count, double k)
{
    enum { MANY = 512 };
    const division d = divide(c, c->s->count, count);
    const double ranges = c->s->count < MANY ? 1 : (double)d.ranges;
    const double threads = gnomon_context_threads(c->s->ctx);
    const double together = fmin(ranges, fmax(threads / (double)d.chunks, 1));
    const double rows = (double)count / ranges;
    return k * (together * (1 + fmax(log(rows / k), 0)) + ranges - together);
}

/* Whether a sample first leaves less to be looked at. */
static bool pays_to_sample(const scan *like)
{
    const gnomon_search *s = like->s;
    const int64_t k = s->options.k, sampled = like->count / SAMPLED;
    if (like->direct || k == 0 || sampled < LEAST_SAMPLE) return false;
    for (int64_t q = 0; q < s->count; q++)
        if (s->nearest[q].count > 0) return false;
    const double rank = (double)rank_in_sample(k);
    if (rank * 4 > (double)sampled) return false;
    const double first = come_near(like, sampled, rank) + rank * SAMPLED;
    return first < 0.75 * come_near(like, like->count, (double)k);
}

/* A score for each query that its k nearest are expected to reach: that of the k'-th nearest of a
 * sample. Where they don't the query is searched again: the answers don't depend on it. */
static gnomon_status expect(const scan *like, float *expected)
{
    gnomon_search *s = like->s;
    gnomon_context *ctx = s->ctx;
    const int64_t k = rank_in_sample(s->options.k), sampled = like->count / SAMPLED;
    gnomon_search of_sample = *s;
    of_sample.options.k = k;
    of_sample.reach = expected;
    of_sample.expected = NULL;
    of_sample.rows = sampled;
    of_sample.whole = true;
    of_sample.heaps = NULL;
    of_sample.nearest = NULL;
    uint32_t *rows = NULL;
    gnomon_status status = gnomon_alloc(ctx, sampled, sizeof *rows, "a sample", &rows);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(s->count, k), sizeof *of_sample.heaps,
                              "neighbours in a sample", &of_sample.heaps);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, s->count, sizeof *of_sample.nearest, "neighbours in a sample",
                              &of_sample.nearest);
    if (status == GNOMON_OK) {
        for (int64_t q = 0; q < s->count; q++)
            of_sample.nearest[q] = (gnomon_nearest){of_sample.heaps + q * k, k, 0};
        /* from each run of as many points one at random: no period of the data meets it */
        for (int64_t i = 0; i < sampled; i++)
            rows[i] = (uint32_t)row_of(like, i * SAMPLED +
                                                 (int64_t)(gnomon_mix64((uint64_t)i) % SAMPLED));
        scan sample = *like;
        sample.s = &of_sample;
        sample.rows = rows;
        sample.count = sampled;
        status = scan_groups(&sample);
    }
    gnomon_free(ctx, rows);
    gnomon_free(ctx, of_sample.heaps);
    gnomon_free(ctx, of_sample.nearest);
    return status;
}

/* What a scan of base begins with; its points are to be told. */
static gnomon_status begin(gnomon_search *s, const gnomon_matrix *base, scan *c)
{
    *c = (scan){.s = s, .base = base, .bad = INT64_MAX};
    c->bits = gnomon_metric_takes(s->options.metric, GNOMON_POINTS_BITS);
    c->direct = !c->bits && (s->count <= FEW || s->cols == 0 ||
                             !gnomon_metric_row_of(s->options.metric)->filtered);
    if (!c->bits && !c->direct) GNOMON_TRY(gnomon_centre_estimate(s, base));
    c->steps = c->bits ? (s->cols > 0 ? (s->cols + 7) / 8 : 1) : steps_of(s);
    if (c->bits) c->pick_words = gnomon_picks_words(8 * s->cols);
    c->width = c->bits || c->direct ? 32 : s->centre.bits;
    c->ld = gnomon_filter_ld(words_of(c, c->steps));
    c->from_f32 = s->options.metric != GNOMON_COSINE && !gnomon_dtype_needs_f64(base->dtype) &&
                  s->centre.scale > 0x1p-100 && s->centre.scale < 0x1p100;
    c->from_rows = c->width == 8 && c->from_f32 && base->dtype == GNOMON_F32 &&
                   base->col_stride == 1 && s->kernels->survey_rows != NULL;
    return GNOMON_OK;
}

gnomon_status gnomon_scan(gnomon_search *s, const gnomon_matrix *base, const uint32_t *rows,
                          int64_t count)
{
    scan like;
    if (count == 0 || s->count == 0) return GNOMON_OK;
    GNOMON_TRY(begin(s, base, &like));
    like.rows = rows;
    like.count = like.whole_base = count;
    like.ranged = like.width < 32 && s->options.k > 0 && s->options.k <= RANGED_K;
    gnomon_status status = GNOMON_OK;
    if (pays_to_sample(&like)) {
        /* each range then finds few */
        if (like.width < 32 && s->options.k <= RANGED_EXPECTED) like.ranged = true;
        GNOMON_TRY(gnomon_alloc(s->ctx, s->count, sizeof *s->expected, "limits", &s->expected));
        status = expect(&like, s->expected);
    }
    if (status == GNOMON_OK) status = scan_groups(&like);
    gnomon_free(s->ctx, s->expected);
    s->expected = NULL;
    s->compared += s->count * count;
    return status;
}

/* ---- lists ---- */

static gnomon_status begin_lists(gnomon_search *s, const gnomon_matrix *base,
                                 const gnomon_scan_lists *lists, scan *c)
{
    GNOMON_TRY(begin(s, base, c));
    c->lists = lists;
    c->rows = lists->rows;
    c->count = c->whole_base = lists->first[lists->count];
    return GNOMON_OK;
}

gnomon_status gnomon_scan_pack(gnomon_search *s, const gnomon_matrix *base,
                               const gnomon_scan_lists *lists, const gnomon_scan_packed *to)
{
    gnomon_context *ctx = s->ctx;
    scan c;
    GNOMON_TRY(begin_lists(s, base, lists, &c));
    if (c.count == 0) return GNOMON_OK;
    c.first_id = s->base;
    c.queries = s->count;
    cut(&c);
    c.made = *to;
    gnomon_status status = gnomon_alloc_zero(ctx, gnomon_context_threads(ctx), sizeof *c.scratch,
                                             "scratch", &c.scratch);
    for (int t = 0; status == GNOMON_OK && t < gnomon_context_threads(ctx); t++)
        status = reserve_packing(&c, &c.scratch[t]);
    if (status == GNOMON_OK) {
        pthread_mutex_init(&c.lock, NULL);
        check_rows(&c);
        gnomon_parallel(ctx, lists->count, pack_task, &c);
        pthread_mutex_destroy(&c.lock);
        status = tell_refused(&c);
    }
    release(&c);
    return status;
}

gnomon_status gnomon_scan_lists_of(gnomon_search *s, const gnomon_matrix *base,
                                   const gnomon_scan_lists *lists)
{
    scan like;
    GNOMON_TRY(begin_lists(s, base, lists, &like));
    if (like.count == 0) return GNOMON_OK;
    s->whole = false;
    for (int64_t i = 0; i < s->count * lists->each; i++)
        s->compared += lists->rows_of[lists->asked[i]];
    return scan_groups(&like);
}
