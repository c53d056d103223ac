/* A search on the GPU: memory, pieces of the base, and how much of it passes at a time.
 *
 * With k nearest a piece is taken by ever larger parts: every 2^n-th row first, then those halfway
 * between, and so on, so that what a query's k-th nearest can be at most comes down quickly,
 * however the rows are ordered. Where little is wanted a sample or two, and then all rows at once,
 * are less trouble. Results are exact whatever the parts.
 *
 * A few queries of a base that lies on the GPU go another way (search/small_batch.h), and come back
 * to this one where that can't tell enough points apart. */
#include "base/arithmetic.h"
#include "cuda/search/found.h"
#include "cuda/search/sets.h"
#include "cuda/search/small_batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW = 8,         /* up to so many queries every pair is computed in fp64 at once */
    BUFFERS = 2,     /* of pieces from the host */
    FIRST = 1024,    /* rows of the first sample, at least; */
    FIRST_MANY = 256 /* for many queries, of which all pairs take longer than two parts more */
};

/* From the host: the first one is searched by ever larger parts while the next is on its way. */
static const int64_t piece_bytes = 64 << 20;
static const int64_t most_rows = 1 << 24; /* of a piece */
static const int64_t most_f64 = 1 << 25;  /* coordinates of queries in fp64 */
/* How a piece is cut: neighbours in all from which on many parts pay; pairs up to which all are
 * computed; the ratio of one sample's size to the one before. */
static const double much = 5e4, dense_pairs = 4e6, growth = 24, growth_few = 1e4;
/* The filter keeps little back when more than one in so many pairs pass. */
static const double little = 8;
/* A limit is guessed from so many neighbours on, by one row in so many. */
static const int64_t guess_from = 64, guess_step = 16;

/* Base points on the GPU. Row i of 'base' is point first + i or, with a map, first + map[i]. */
struct piece {
    gnomon_matrix base;
    int64_t first;
    const uint32_t *map; /* in the GPU's memory */
    const uint32_t *host_map;
};

static gcu_search_view view_of(const gnomon_matrix *m, const double *inverse)
{
    return {m->data, m->dtype, m->row_stride, m->col_stride, m->cols, inverse};
}

static gnomon_matrix rows_of(const gnomon_matrix *m, int64_t from, int64_t count, int64_t step)
{
    gnomon_matrix part = *m;
    part.data =
        static_cast<char *>(m->data) + from * m->row_stride * (int64_t)gnomon_dtype_size(m->dtype);
    part.rows = count;
    part.row_stride = m->row_stride * step;
    return part;
}

/* ---- faults ---- */

/* Fails as src/search does when rows of m hold what can't be searched. */
static gnomon_status refuse(gcu_search *v, const gnomon_matrix *m, const char *name, int64_t first,
                            const uint32_t *map)
{
    if (v->bits || m->rows == 0 || m->cols == 0 || !gcu_may_be_nonfinite(m->dtype))
        return GNOMON_OK;
    const gcu_search_view x = view_of(m, nullptr);
    const size_t size = gnomon_dtype_size(m->dtype);
    GCU_TRY(v->why, cudaMemsetAsync(&v->words->fault, 0xff, sizeof v->words->fault, v->stream));
    GCU_TRY(v->why, gcu_search_faults(&x, m->rows, &v->words->fault, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(v->seen, v->words, sizeof *v->seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (v->seen->fault == ~0ull) return GNOMON_OK;
    const int64_t row = (int64_t)(v->seen->fault / (unsigned long long)m->cols);
    const int64_t col = (int64_t)(v->seen->fault % (unsigned long long)m->cols);
    const int64_t id = first + (map ? (int64_t)map[row] : row);
    double value = INFINITY; /* of a type that can't be above 2^500 otherwise */
    if (m->dtype == GNOMON_F64)
        GCU_TRY(v->why, cudaMemcpy(&value,
                                   static_cast<const char *>(m->data) +
                                       (row * m->row_stride + col * m->col_stride) * (int64_t)size,
                                   size, cudaMemcpyDefault));
    gcu_about(v->job->host, name, id, col);
    if (isfinite(value))
        return gcu_fail(v->why, GNOMON_ERROR_UNSUPPORTED,
                        "%s has a magnitude above 2^500 in row %" PRId64 ", column %" PRId64, name,
                        id, col);
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "%s has NaN or infinity in row %" PRId64 ", column %" PRId64, name, id, col);
}

/* ---- one pass over some rows ---- */

/* Rows of a piece: a sample when they are every step-th. */
struct part {
    gnomon_matrix base;
    gcu_search_pairs pairs;
    bool sample;
    int64_t before; /* so many points, about, are behind the limits */
};

static part part_of(const gcu_search *v, const piece *c, int64_t from, int64_t rows, int64_t step,
                    bool sample)
{
    part t = {};
    t.base = rows_of(&c->base, from, rows, step);
    t.sample = sample;
    t.pairs.metric = v->job->options->metric;
    t.pairs.queries = view_of(&v->queries, v->query_inverse);
    t.pairs.base = view_of(&t.base, nullptr);
    t.pairs.f64 = v->queries.dtype == GNOMON_F64 || c->base.dtype == GNOMON_F64;
    t.pairs.first = c->first + (c->map ? 0 : from);
    t.pairs.step = step;
    t.pairs.map = c->map ? c->map + from : nullptr;
    t.pairs.exclude = v->job->options->exclude;
    return t;
}

static gnomon_status to_f64(gcu_search *v, int64_t query, int64_t queries)
{
    const gcu_search_view x = view_of(&v->queries, v->query_inverse);
    GCU_TRY(v->why, gcu_search_to_f64(&x, query, queries, v->f64, v->stream));
    return GNOMON_OK;
}

/* The inverse norms of a part's points, for COSINE without a filter. */
static gnomon_status norms(gcu_search *v, part *t)
{
    double *inverse;
    if (v->job->options->metric != GNOMON_COSINE) return GNOMON_OK;
    TRY(gcu_search_room(v, t->base.rows, &inverse));
    GCU_TRY(v->why, gcu_search_norms(&t->pairs.base, t->base.rows, inverse, v->stream));
    t->pairs.base.inverse = inverse;
    return GNOMON_OK;
}

/* All keys of some rows, as many queries as fit at a time. */
static gnomon_status scan_all(gcu_search *v, part t)
{
    const int held = v->held;
    TRY(norms(v, &t));
    const gcu_search_pairs *pairs = &t.pairs;
    const int64_t each = gnomon_max(gnomon_min(v->f64_queries, v->found.room / t.base.rows), 1);
    for (int64_t query = 0; query < v->count; query += each) {
        gcu_search_news news = {};
        news.query = query;
        news.queries = gnomon_min(each, v->count - query);
        news.keys = v->sorted_keys;
        news.each = news.typical = t.base.rows;
        if (v->bits) {
            GCU_TRY(v->why, gcu_search_bits(pairs, query, news.queries, news.each, v->sorted_keys,
                                            v->stream));
        } else {
            TRY(to_f64(v, query, news.queries));
            GCU_TRY(v->why, gcu_search_all(pairs, v->f64, query, news.queries, news.each,
                                           v->sorted_keys, v->stream));
        }
        if (v->k == 0) {
            TRY(gcu_search_begin_found(v));
            GCU_TRY(v->why, gcu_search_range(&news, v->job->limit, v->found, v->stream));
            TRY(gcu_search_read_words(v));
            TRY(gcu_search_hand_hits(v, pairs, (int64_t)v->seen->pairs));
            continue;
        }
        const gcu_search_lists from = {t.sample ? nullptr : v->lists[v->now], v->list_counts, v->k};
        const gcu_search_lists to = {v->lists[1 - v->now],
                                     t.sample ? v->sample_counts : v->list_counts, v->k};
        GCU_TRY(v->why, gcu_search_select(pairs, &from, &to, &news, gcu_search_limits_of(v),
                                          v->radii, v->stream));
    }
    if (!t.sample) v->now = 1 - v->now;
    if (!v->bits) v->verified += v->count * t.base.rows;
    gcu_search_free(v, held);
    return GNOMON_OK;
}

/* Few queries: every pair computed, what is within the limits kept. Returns with the words read. */
static gnomon_status scan_few(gcu_search *v, part t)
{
    const int held = v->held;
    TRY(norms(v, &t));
    TRY(gcu_search_begin_found(v));
    GCU_TRY(v->why, cudaMemsetAsync(v->counts, 0, (size_t)v->count * sizeof *v->counts, v->stream));
    GCU_TRY(v->why,
            gcu_search_few(&t.pairs, v->f64, 0, v->count, t.base.rows, gcu_search_limits_of(v),
                           v->found, v->counts, &v->words->fault, v->s->gpu.sms, v->stream));
    TRY(gcu_search_read_words(v));
    const int64_t pairs = (int64_t)v->seen->pairs;
    if (v->k == 0) {
        TRY(gcu_search_hand_hits(v, &t.pairs, pairs));
    } else {
        TRY(gcu_search_choose(v, &t.pairs, 0, v->count, pairs, t.sample));
        if (!t.sample) v->now = 1 - v->now;
    }
    v->verified += v->count * t.base.rows;
    gcu_search_free(v, held);
    return GNOMON_OK;
}

/* ---- the filter ---- */

/* The queries packed, on a centre that some base points tell of. */
static gnomon_status pack_queries(gcu_search *v, const piece *c)
{
    if (v->packed) return GNOMON_OK;
    GCU_TRY(v->why, gcu_filter_estimate_centre(v->job->options->metric, &c->base, v->centre_memory,
                                               &v->centre, &v->s->gpu, v->stream));
    GCU_TRY(v->why, gcu_filter_pack(&v->centre, &v->queries, v->pack_memory, &v->p, nullptr,
                                    &v->s->gpu, v->stream));
    v->packed = true;
    return GNOMON_OK;
}

/* Queries [query, query + queries) against a packed part. */
static gnomon_status sift(gcu_search *v, const part *t, const gcu_filter_points *q,
                          const float *q_limits, int64_t query, int64_t queries, bool *too_many)
{
    gcu_filter_call call = {};
    call.p = &v->p;
    call.q = q;
    call.p_limits = v->p_limits;
    call.q_limits = q_limits;
    call.row = query;
    call.rows = queries;
    const gcu_filter_sink sink = {v->found.pairs, v->found.room, &v->words->pairs};
    TRY(gcu_search_begin_found(v));
    GCU_TRY(v->why, gcu_filter(&call, sink, &v->s->gpu, v->stream));
    TRY(gcu_search_read_words(v));
    const int64_t pairs = (int64_t)v->seen->pairs;
    *too_many = pairs > v->found.room;
    if (*too_many) return GNOMON_OK;
    GCU_TRY(v->why,
            cudaMemsetAsync(v->counts + query, 0, (size_t)queries * sizeof *v->counts, v->stream));
    GCU_TRY(v->why, gcu_search_verify(&t->pairs, gcu_search_limits_of(v), v->found, pairs,
                                      v->counts, v->stream));
    v->verified += pairs;
    if (v->k == 0) return gcu_search_hand_hits(v, &t->pairs, pairs);
    return gcu_search_choose(v, &t->pairs, query, queries, pairs, t->sample);
}

/* The same where the filter keeps little back: every key is taken, and what is within the limits
 * goes on. Of equal points that is little, for the ids decide. */
static gnomon_status take_all(gcu_search *v, const part *t, int64_t query, int64_t queries)
{
    const int64_t end = query + queries;
    int64_t each = gnomon_max(gnomon_min(v->f64_queries, v->found.room / t->base.rows), 1);
    if (each > 32) each = each / 32 * 32; /* whole tiles of gcu_search_all */
    for (; query < end; query += each) {
        gcu_search_news news = {};
        news.query = query;
        news.queries = gnomon_min(each, end - query);
        news.keys = v->sorted_keys;
        news.each = t->base.rows;
        TRY(to_f64(v, query, news.queries));
        GCU_TRY(v->why, gcu_search_all(&t->pairs, v->f64, query, news.queries, news.each,
                                       v->sorted_keys, v->stream));
        TRY(gcu_search_begin_found(v));
        GCU_TRY(v->why, cudaMemsetAsync(v->counts + query, 0,
                                        (size_t)news.queries * sizeof *v->counts, v->stream));
        GCU_TRY(v->why, gcu_search_within(&t->pairs, &news, gcu_search_limits_of(v), v->found,
                                          v->counts, v->stream));
        TRY(gcu_search_read_words(v));
        TRY(gcu_search_choose(v, &t->pairs, query, news.queries, (int64_t)v->seen->pairs,
                              t->sample));
    }
    v->verified += queries * t->base.rows;
    return GNOMON_OK;
}

static gnomon_status scan_filtered(gcu_search *v, part t)
{
    const gnomon_metric metric = v->job->options->metric;
    const int held = v->held;
    void *memory;
    gcu_filter_points q;
    float *q_limits;
    TRY(gcu_search_alloc(v, gcu_filter_pack_bytes(metric, t.base.rows, v->cols), &memory));
    GCU_TRY(v->why, gcu_filter_pack(&v->centre, &t.base, memory, &q, &v->words->fault, &v->s->gpu,
                                    v->stream));
    TRY(gcu_search_room(v, q.padded, &q_limits));
    GCU_TRY(v->why, gcu_filter_limits(&v->centre, &v->p, &q, v->k > 0 ? v->radii : nullptr,
                                      v->job->options->radius, v->p_limits, q_limits,
                                      v->limits_work, v->stream));
    t.pairs.base.inverse = q.inverse;
    /* as many queries at a time as room for what is to be expected of them */
    int64_t queries = v->count;
    if (v->k > 0) {
        const double expected = 1.5 * (double)v->k * ((double)t.base.rows / (double)t.before + 1);
        if (expected * (double)queries > (double)v->found.room)
            queries = gnomon_max((int64_t)((double)v->found.room / expected), 1);
    }
    for (int64_t query = 0; query < v->count;) {
        const int64_t some = gnomon_min(queries, v->count - query);
        bool too_many = false;
        if (v->alike && v->k > 0 && t.base.rows <= v->found.room) {
            TRY(take_all(v, &t, query, some));
            query += some;
            continue;
        }
        TRY(sift(v, &t, &q, q_limits, query, some, &too_many));
        if (v->seen->fault != ~0ull) break;
        if (!too_many) {
            query += some;
            continue;
        }
        if (v->k > 0 && t.base.rows <= v->found.room &&
            (double)v->seen->pairs * little > (double)some * (double)t.base.rows) {
            TRY(take_all(v, &t, query, some));
            /* of all queries so in a sample: the filter will keep little back of the rest, too */
            v->alike = t.sample && some == v->count;
            query += some;
            continue;
        }
        const double fit = (double)v->found.room / (double)v->seen->pairs;
        queries = gnomon_max((int64_t)((double)some * fit * 0.7), 1);
    }
    if (!t.sample) v->now = 1 - v->now;
    gcu_search_free(v, held);
    return GNOMON_OK;
}

/* ---- a piece ---- */

static gnomon_status scan_part(gcu_search *v, const part *t, bool all)
{
    if (v->few) return scan_few(v, *t);
    if (all || v->direct) return scan_all(v, *t);
    return scan_filtered(v, *t);
}

/* Rows of a first sample, of which all pairs are computed: enough for limits, and not much work. */
static int64_t first_rows(const gcu_search *v)
{
    const int64_t cheap = gnomon_min((int64_t)(dense_pairs / (double)v->count), 1 << 16);
    const int64_t least = (double)v->count > dense_pairs / FIRST ? FIRST_MANY : FIRST;
    return gnomon_min(gnomon_max(2 * v->k + 2, v->few ? 2 * FIRST : gnomon_max(least, cheap)),
                      v->found.room);
}

/* Looks at samples of a piece, each larger by the same factor, until the next would be the piece
 * itself. *before: how many points are behind the limits then. */
static gnomon_status scan_samples(gcu_search *v, const piece *c, int64_t *before)
{
    const int64_t rows = c->base.rows;
    bool all = *before < v->k + 1; /* without limits the filter lets everything pass */
    const int64_t first = all ? first_rows(v) : *before;
    if (rows < 4 * first) return GNOMON_OK;
    const double factor = (double)rows / (double)first;
    const int steps = (int)ceil(log(factor) / log(v->few ? growth_few : growth));
    for (int i = all ? 0 : 1; i < steps; i++) {
        const double wanted = (double)first * pow(factor, (double)i / steps);
        const int64_t step = gnomon_max((int64_t)((double)rows / wanted), 1);
        part t = part_of(v, c, 0, rows / step, step, true);
        t.before = gnomon_max(*before, 1);
        if (all)
            TRY(scan_all(v, t));
        else
            TRY(scan_part(v, &t, false));
        *before = t.base.rows;
        all = false;
    }
    return GNOMON_OK;
}

/* How many rows may pass at a time: there must be room for what one query may keep of them, and
 * for them packed. */
static int64_t rows_at_once(const gcu_search *v, const piece *c)
{
    int64_t rows = v->found.room / (v->few ? v->count : 1);
    if (!v->direct) {
        const gnomon_metric metric = v->job->options->metric;
        while (rows > 1024) {
            const int64_t some = gnomon_min(rows, c->base.rows);
            if (gcu_can_have(v->s, gcu_filter_pack_bytes(metric, some, v->cols) / 7 * 8)) break;
            rows /= 2;
        }
    } else if (!v->few) {
        rows = v->found.room / gnomon_max(gnomon_min(v->count, v->f64_queries), 1);
    }
    return gnomon_max(rows, 1);
}

/* Rows from, from + step, ... of a piece. */
static gnomon_status scan_rows(gcu_search *v, const piece *c, int64_t from, int64_t step,
                               int64_t at_once, int64_t *before)
{
    const int64_t rows = from < c->base.rows ? (c->base.rows - from + step - 1) / step : 0;
    for (int64_t at = 0; at < rows;) {
        const bool all = v->k > 0 && *before < v->k + 1;
        int64_t some = gnomon_min(at_once, rows - at);
        if (all) some = gnomon_min(some, first_rows(v));
        part t = part_of(v, c, from + at * step, some, step, false);
        t.before = gnomon_max(*before, 1);
        if (all && !v->direct) /* others are checked when they are packed */
            GCU_TRY(v->why, gcu_search_faults(&t.pairs.base, some, &v->words->fault, v->stream));
        TRY(scan_part(v, &t, all));
        if (all && !v->few) TRY(gcu_search_read_words(v));
        if (v->seen->fault != ~0ull) {
            TRY(refuse(v, &c->base, "base", c->first, c->host_map));
            if (!v->direct)
                return gcu_fail(v->why, GNOMON_ERROR_INTERNAL, "a fault that is not found again");
        }
        at += some;
        v->behind += some;
        *before = gnomon_max(*before, v->behind);
        v->compared += v->count * some;
        TRY(gcu_search_tell(v, v->count * some));
    }
    return GNOMON_OK;
}

/* Of so many points that are expected, how many there are at most, all but surely. */
static int64_t at_most(double expected)
{
    return (int64_t)ceil(expected + 6 * sqrt(expected) + 3);
}

/* Looks at samples for keys that the k-th nearest of a piece will hardly pass, and then at all of
 * it once: where k points are found, they are the nearest. *done: they were, for all queries; what
 * was found is forgotten otherwise. */
static gnomon_status search_guessed(gcu_search *v, const piece *c, int64_t at_once, bool *done)
{
    const int64_t k = v->k, rows = c->base.rows, first = FIRST, second = rows / guess_step;
    *done = false;
    if (v->direct || v->behind > 0 || k < guess_from || rows / 64 < k || second < 4 * first)
        return GNOMON_OK;
    const int64_t wanted = at_most((double)k * (double)second / (double)rows);
    const int64_t compared = v->compared, told = v->done;
    part t = part_of(v, c, 0, rows / (rows / first), rows / first, true);
    v->k = at_most((double)wanted * (double)t.base.rows / (double)second);
    gnomon_status status = scan_all(v, t);
    if (status == GNOMON_OK) {
        const int64_t before = t.base.rows;
        t = part_of(v, c, 0, second, guess_step, true);
        t.before = before;
        v->k = wanted;
        status = scan_filtered(v, t);
    }
    v->k = k;
    if (status != GNOMON_OK) return status;
    int64_t before = rows; /* about twice k are to come */
    TRY(scan_rows(v, c, 0, 1, at_once, &before));
    const gcu_search_lists lists = {v->lists[v->now], v->list_counts, k};
    GCU_TRY(v->why, gcu_search_short(&lists, v->count, &v->words->hits, v->stream));
    TRY(gcu_search_read_words(v));
    *done = v->seen->hits == 0;
    if (*done) return GNOMON_OK;
    v->behind = 0;
    v->compared = compared;
    v->done = told; /* or the caller is not asked any more */
    v->begun = false;
    GCU_TRY(v->why, cudaMemsetAsync(v->last, 0x7f, (size_t)v->count * sizeof *v->last, v->stream));
    return gcu_search_begin(v);
}

static gnomon_status search_piece(gcu_search *v, const piece *c)
{
    const int64_t rows = c->base.rows, at_once = rows_at_once(v, c);
    const bool told = v->few && c->base.dtype != GNOMON_F64 &&
                      v->job->options->metric != GNOMON_COSINE; /* by sums that are not finite */
    const double wanted = (double)v->count * (double)v->k;
    int64_t before = v->behind, step = 1;
    v->alike = false;
    if (v->few ? !told : v->direct) TRY(refuse(v, &c->base, "base", c->first, c->host_map));
    if (!v->direct) TRY(pack_queries(v, c));
    GCU_TRY(v->why, cudaMemsetAsync(&v->words->fault, 0xff, sizeof v->words->fault, v->stream));
    v->seen->fault = ~0ull; /* another search's, perhaps */
    if (v->few) TRY(to_f64(v, 0, v->count));
    if (v->k > 0 && wanted < much) {
        TRY(scan_samples(v, c, &before));
    } else if (v->k > 0) {
        bool done;
        TRY(search_guessed(v, c, at_once, &done));
        if (done) return GNOMON_OK;
        const int64_t first = gnomon_max(before, first_rows(v));
        while (rows / step >= 2 * first)
            step *= 2;
    }
    TRY(scan_rows(v, c, 0, step, at_once, &before));
    for (; step > 1; step /= 2)
        TRY(scan_rows(v, c, step / 2, step, at_once, &before));
    return GNOMON_OK;
}

/* ---- what only some ways need ---- */

/* The queries checked, and memory for every way but search/small_batch.h's. */
static gnomon_status make_all(gcu_search *v)
{
    const gnomon_metric metric = v->job->options->metric;
    if (v->made) return GNOMON_OK;
    TRY(refuse(v, &v->queries, "queries", v->job->host->row, nullptr));
    if (metric == GNOMON_COSINE) {
        const gcu_search_view x = view_of(&v->queries, nullptr);
        TRY(gcu_search_room(v, v->count, &v->query_inverse));
        GCU_TRY(v->why, gcu_search_norms(&x, v->count, v->query_inverse, v->stream));
    }
    TRY(gcu_search_room(v, v->count, &v->counts));
    TRY(gcu_search_room(v, v->count + 1, &v->offsets));
    if (v->k > 0) {
        TRY(gcu_search_room(v, v->count, &v->sample_counts));
        TRY(gcu_search_room(v, v->count, &v->last));
        GCU_TRY(v->why,
                cudaMemsetAsync(v->last, 0x7f, (size_t)v->count * sizeof *v->last, v->stream));
    }
    v->f64_queries = v->bits
                         ? v->count
                         : gnomon_min(v->count, gnomon_max(most_f64 / gnomon_max(v->cols, 1), 16));
    if (!v->bits) TRY(gcu_search_room(v, v->f64_queries * v->cols, &v->f64));
    if (!v->direct) {
        TRY(gcu_search_alloc(v, gcu_filter_centre_bytes(v->cols), &v->centre_memory));
        TRY(gcu_search_alloc(v, gcu_filter_pack_bytes(metric, v->count, v->cols), &v->pack_memory));
        TRY(gcu_search_alloc(v, gcu_filter_limits_work(), &v->limits_work));
        TRY(gcu_search_room(v, (v->count + GCU_FILTER_PAD - 1) / GCU_FILTER_PAD * GCU_FILTER_PAD,
                            &v->p_limits));
    }
    TRY(gcu_search_alloc_found(v));
    TRY(gcu_search_begin(v));
    v->made = true;
    v->kept = v->held;
    return GNOMON_OK;
}

/* ---- a few queries at once ---- */

/* Answers from a base on the GPU; *done: they are all there. */
static gnomon_status search_small_batch(gcu_search *v, const gnomon_matrix *base, int64_t first,
                                        bool *done)
{
    *done = false;
    if (!v->small_batch || !gcu_small_batch_base_supported(v->job, base)) return GNOMON_OK;
    gcu_small_batch small_batch = {};
    piece c = {};
    c.base = *base;
    c.first = first;
    small_batch.pairs = part_of(v, &c, 0, base->rows, 1, false).pairs;
    small_batch.rows = base->rows;
    small_batch.queries = v->count;
    small_batch.k = v->k;
    small_batch.fresh = !v->begun;
    small_batch.list = {v->lists[v->now], v->list_counts, v->k};
    small_batch.limits = v->limits;
    small_batch.radii = v->radii;
    small_batch.work = v->batch_work;
    small_batch.notes = v->s->notes;
    small_batch.tensors = v->tensors && gcu_small_batch_by_tensors(v->count, v->cols, &v->s->gpu);
    v->begun = true;
    gcu_small_batch_notes *notes = static_cast<gcu_small_batch_notes *>(v->s->notes);
    for (;;) {
        GCU_TRY(v->why, gcu_small_batch_search(&small_batch, &v->s->gpu, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
        if (!small_batch.tensors || !notes->declined || notes->fault != ~0ull) break;
        v->tensors = small_batch.tensors = false;
    }
    const bool refused = notes->fault != ~0ull, broken = notes->base_fault != ~0ull;
    v->small_batch = !notes->declined && !refused && !broken;
    v->verified += (int64_t)notes->verified;
    if (refused) TRY(refuse(v, &v->queries, "queries", v->job->host->row, nullptr));
    if (broken) TRY(refuse(v, base, "base", first, nullptr));
    if (!v->small_batch) return GNOMON_OK;
    const int64_t places = v->count * v->k;
    memcpy(v->answers, notes->counts, (size_t)v->count * sizeof *v->answers);
    memcpy(v->answers + v->count, gcu_small_batch_ids(notes), (size_t)places * 16);
    *done = v->answered = true;
    v->compared += v->count * base->rows;
    return gcu_search_tell(v, v->count * base->rows);
}

/* ---- the base ---- */

/* The allowed rows of [0, rows) of a piece whose first id is 'first', gathered. */
static gnomon_status gather(gcu_search *v, piece *c)
{
    const gnomon_search_options *o = v->job->options;
    const int64_t rows = c->base.rows;
    if (!o->filter) return GNOMON_OK;
    uint32_t *host = static_cast<uint32_t *>(malloc((size_t)rows * sizeof *host + 1));
    if (!host) return gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for the allowed rows");
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t id = c->first + i;
        if (id < o->filter_bits && (o->filter[id / 8] >> (id % 8) & 1)) host[count++] = (uint32_t)i;
    }
    c->host_map = host;
    uint32_t *map;
    void *data;
    const size_t size = gnomon_dtype_size(c->base.dtype);
    TRY(gcu_search_room(v, count, &map));
    TRY(gcu_search_alloc(v, (size_t)(count * v->cols) * size, &data));
    if (count > 0)
        GCU_TRY(v->why, cudaMemcpyAsync(map, host, (size_t)count * sizeof *map,
                                        cudaMemcpyHostToDevice, v->stream));
    GCU_TRY(v->why, gcu_search_gather(&c->base, map, count, data, v->stream));
    c->base.data = data;
    c->base.rows = count;
    c->base.row_stride = v->cols;
    c->base.col_stride = 1;
    c->map = map;
    return GNOMON_OK;
}

/* Rows [from, from + rows) of the base, which lie on the GPU as 'there'. */
static gnomon_status one_piece(gcu_search *v, const gnomon_matrix *there, int64_t first)
{
    const int held = v->held;
    piece c = {};
    c.base = *there;
    c.first = first;
    gnomon_status status = gather(v, &c);
    const int64_t left_out = there->rows - c.base.rows;
    v->total -= left_out * v->count;
    if (status == GNOMON_OK && c.base.rows > 0) status = search_piece(v, &c);
    if (c.host_map) {
        cudaStreamSynchronize(v->stream);
        free(const_cast<uint32_t *>(c.host_map));
    }
    gcu_search_free(v, held);
    return status;
}

/* A base in the host's memory: a piece is on its way while the one before is searched. */
static gnomon_status from_host(gcu_search *v, const gnomon_matrix *base, gcu_place place,
                               int64_t first)
{
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    const int64_t line = gnomon_max(base->cols * (int64_t)gnomon_dtype_size(base->dtype), 1);
    const int64_t bytes = gcu_can_have(v->s, 16 * (size_t)piece_bytes)
                              ? piece_bytes
                              : (int64_t)(gcu_free_memory(v->s) / 16);
    const int64_t rows = gnomon_min(base->rows, gnomon_min(gnomon_max(bytes / line, 1), most_rows));
    const int64_t pieces = (base->rows + rows - 1) / rows;
    const int buffers = pieces > 1 ? BUFFERS : 1;
    gnomon_matrix there[BUFFERS];
    cudaEvent_t came[BUFFERS] = {};
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < buffers && status == GNOMON_OK; i++) {
        there[i] = gcu_packed(base, rows, base->cols);
        status = gcu_search_alloc(v, gcu_packed_bytes(&there[i]), &there[i].data);
        const cudaError_t error = cudaEventCreateWithFlags(&came[i], cudaEventDisableTiming);
        if (status == GNOMON_OK && error != cudaSuccess)
            status = gcu_status(v->why, error, "making events");
    }
    cudaError_t error = cudaStreamSynchronize(v->stream); /* memory is there for other streams */
    for (int64_t n = 0; n <= pieces && status == GNOMON_OK && error == cudaSuccess; n++) {
        if (n < pieces) { /* the kernels that read this buffer last have ended: see search_piece */
            gnomon_matrix *to = &there[n % buffers];
            const gnomon_matrix from =
                rows_of(base, n * rows, gnomon_min(rows, base->rows - n * rows), 1);
            void *data = to->data;
            *to = gcu_packed(base, from.rows, base->cols);
            to->data = data;
            status = gcu_upload(v->s, transfer, &from, place, to, v->s->in, v->why);
            if (status == GNOMON_OK) error = cudaEventRecord(came[n % buffers], v->s->in);
        }
        if (n == 0 && pieces > 1) continue;
        const int64_t at = pieces > 1 ? n - 1 : 0;
        if (pieces == 1 && n == 1) break;
        if (status == GNOMON_OK && error == cudaSuccess)
            error = cudaStreamWaitEvent(v->stream, came[at % buffers], 0);
        if (status == GNOMON_OK && error == cudaSuccess)
            status = one_piece(v, &there[at % buffers], first + at * rows);
        /* before its buffer is filled again */
        if (error == cudaSuccess) error = cudaStreamSynchronize(v->stream);
    }
    cudaStreamSynchronize(v->s->in);
    for (cudaEvent_t event : came)
        if (event) cudaEventDestroy(event);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(v->why, error, "search");
    return status;
}

static gnomon_status add(gcu_search *v, gnomon_search_piece *p)
{
    gcu_place place;
    const gnomon_matrix *base = p->base;
    TRY(gcu_place_of(v->s, base, "base", &place, v->why));
    if (base->rows == 0 || v->count == 0) return GNOMON_OK;
    v->done = 0;
    v->total = base->rows * v->count;
    bool done = false;
    if (place == GCU_DEVICE) TRY(search_small_batch(v, base, p->first, &done));
    if (done) {
        v->behind += base->rows;
        return GNOMON_OK;
    }
    v->answered = false;
    TRY(make_all(v));
    if (place != GCU_DEVICE) return from_host(v, base, place, p->first);
    const int64_t line = gcu_filter_pack_bytes(v->job->options->metric, 256, v->cols) / 256 + 8;
    int64_t rows = gnomon_min(most_rows, base->rows);
    if (!gcu_can_have(v->s, 4 * (size_t)line * (size_t)rows))
        rows = gnomon_max((int64_t)(gcu_free_memory(v->s) / 4) / gnomon_max(line, 1), 1024);
    for (int64_t from = 0; from < base->rows; from += rows) {
        const gnomon_matrix some = rows_of(base, from, gnomon_min(rows, base->rows - from), 1);
        TRY(one_piece(v, &some, p->first + from));
    }
    return GNOMON_OK;
}

gnomon_status gcu_search_add(gcu_state *s, gcu_search *v, gnomon_search_piece *piece, gcu_why why)
{
    v->why = why;
    v->compared = v->verified = 0;
    gnomon_status status = gcu_wait_for(s, v->job->options->device_stream, why);
    if (status == GNOMON_OK) status = v->job->sets ? gcu_search_sets_add(v, piece) : add(v, piece);
    gcu_search_free(v, v->kept);
    const cudaError_t error = v->answered ? cudaSuccess : cudaStreamSynchronize(s->stream);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "search");
    piece->compared = v->compared;
    piece->verified = v->verified;
    return status;
}

/* ---- beginning and end ---- */

static int64_t queries_of(const gnomon_search_job *job)
{
    return job->sets ? job->sets->rows : job->queries->rows;
}

bool gcu_search_supported(const gcu_state *, const gnomon_search_job *job, gcu_why why)
{
    if (queries_of(job) <= 1 << 28) return true;
    gcu_fail(why, GNOMON_ERROR_UNSUPPORTED, "%" PRId64 " queries; 2^28 at most", queries_of(job));
    return false;
}

/* The queries on the GPU. */
static gnomon_status bring_queries(gcu_search *v)
{
    const gnomon_matrix *from = v->job->queries;
    gcu_place place;
    TRY(gcu_place_of(v->s, from, "queries", &place, v->why));
    v->queries = *from;
    if (place != GCU_DEVICE) {
        const gcu_transfer transfer = gcu_transfer_of(v->job);
        v->queries = gcu_packed(from, from->rows, from->cols);
        TRY(gcu_search_alloc(v, gcu_packed_bytes(&v->queries), &v->queries.data));
        TRY(gcu_upload(v->s, transfer, from, place, &v->queries, v->stream, v->why));
    }
    return GNOMON_OK;
}

/* What every way needs, in one piece of memory. */
static gnomon_status alloc_lists(gcu_search *v)
{
    static_assert(sizeof(gcu_search_words) <= 32, "lists lie behind them");
    const size_t list = (size_t)(v->count * v->k) * sizeof(gnomon_ranked);
    const size_t numbers = (size_t)v->count * sizeof(double);
    const size_t lists = (32 + 2 * list + 3 * numbers + 255) / 256 * 256;
    void *memory;
    TRY(gcu_search_alloc(v, lists + (v->small_batch ? gcu_small_batch_work(v->count, v->cols) : 0),
                         &memory));
    char *at = static_cast<char *>(memory);
    v->words = reinterpret_cast<gcu_search_words *>(at);
    v->lists[0] = reinterpret_cast<gnomon_ranked *>(at + 32);
    v->lists[1] = reinterpret_cast<gnomon_ranked *>(at + 32 + list);
    at += 32 + 2 * list;
    v->limits = reinterpret_cast<double *>(at);
    v->radii = reinterpret_cast<double *>(at + numbers);
    v->list_counts = reinterpret_cast<int64_t *>(at + 2 * numbers);
    v->batch_work = static_cast<char *>(memory) + lists;
    return GNOMON_OK;
}

static gnomon_status open_search(gcu_search *v)
{
    const gnomon_search_options *o = v->job->options;
    const gnomon_matrix *queries = v->job->queries;
    v->stream = v->s->stream;
    TRY(gcu_wait_for(v->s, o->device_stream, v->why));
    v->count = queries_of(v->job);
    v->cols = queries->cols;
    v->k = o->k;
    v->bits = o->metric == GNOMON_HAMMING;
    v->few = v->count <= FEW && !v->bits && v->cols > 0;
    v->direct = v->few || v->bits || v->cols == 0;
    v->small_batch = v->tensors = gcu_small_batch_supported(v->job);
    static_assert(sizeof(gcu_search_words) <= sizeof(gcu_small_batch_notes),
                  "the notes hold either");
    if (!v->s->notes)
        GCU_TRY(v->why,
                cudaHostAlloc(&v->s->notes, gcu_small_batch_notes_bytes(), cudaHostAllocDefault));
    v->seen = static_cast<gcu_search_words *>(v->s->notes);
    v->seen->fault = ~0ull;
    TRY(alloc_lists(v));
    if (v->job->sets) {
        TRY(gcu_search_sets_open(v));
        v->kept = v->held;
        return GNOMON_OK;
    }
    TRY(bring_queries(v));
    if (v->small_batch) { /* queries on the GPU are checked with the first base points */
        const size_t bytes = (size_t)(v->count + 2 * v->count * v->k) * sizeof *v->answers;
        v->answers = static_cast<int64_t *>(malloc(bytes));
        if (!v->answers) return gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for the answers");
    } else {
        TRY(make_all(v));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    }
    v->kept = v->held;
    return GNOMON_OK;
}

gnomon_status gcu_search_open(gcu_state *s, const gnomon_search_job *job, gcu_search **out,
                              gcu_why why)
{
    gcu_search *v = static_cast<gcu_search *>(calloc(1, sizeof *v));
    if (!v) return gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for a search");
    v->s = s;
    v->job = job;
    v->why = why;
    const gnomon_status status = queries_of(job) > 0 ? open_search(v) : GNOMON_OK;
    if (status == GNOMON_OK)
        *out = v;
    else
        gcu_search_close(s, v);
    return status;
}

gnomon_status gcu_search_finish(gcu_state *s, gcu_search *v, int64_t *counts, int64_t *ids,
                                double *distances, gcu_why why)
{
    if (v->count == 0) return GNOMON_OK;
    v->why = why;
    const int64_t places = v->count * v->k;
    if (v->answered) {
        memcpy(counts, v->answers, (size_t)v->count * sizeof *counts);
        memcpy(ids, v->answers + v->count, (size_t)places * sizeof *ids);
        memcpy(distances, v->answers + v->count + places, (size_t)places * sizeof *distances);
        return GNOMON_OK;
    }
    TRY(gcu_search_begin(v));
    const gcu_search_lists lists = {v->lists[v->now], v->list_counts, v->k};
    int64_t *some = reinterpret_cast<int64_t *>(v->lists[1 - v->now]); /* both fit there */
    double *others = reinterpret_cast<double *>(some + places);
    const bool products = v->job->options->metric == GNOMON_IP;
    GCU_TRY(why, gcu_search_sort(&lists, v->count, v->stream));
    GCU_TRY(why, gcu_search_split(lists.points, places, products, some, others, v->stream));
    GCU_TRY(why, cudaMemcpyAsync(counts, v->list_counts, (size_t)v->count * sizeof *counts,
                                 cudaMemcpyDeviceToHost, v->stream));
    void *const from[] = {some, others}, *const to[] = {ids, distances};
    gnomon_status status = gcu_search_bring(v, from, to, 2, places * (int64_t)sizeof *ids);
    const cudaError_t error = cudaStreamSynchronize(s->stream);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "search");
    return status;
}

void gcu_search_close(gcu_state *s, gcu_search *v)
{
    const cudaStream_t stream = s->stream;
    v->stream = stream;
    gcu_search_free(v, 0);
    if (!v->answered) cudaStreamSynchronize(stream);
    free(v->answers);
    free(v);
}
