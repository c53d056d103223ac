/* Nearest neighbours: a scan of all codes, then distances in fp64 of what the bound leaves.
 *
 * Of a query, A are the 'first' nearest points by estimate. Their distances are computed, and T is
 * the k-th of them, squared. C are the points whose estimates are not above T by more than their
 * error; the answers are the nearest of A and C. Both follow from the codes alone, so that neither
 * threads nor memory change an answer.
 *
 * The scan keeps, for a limit that it guesses on its way, all that may be in A or C. Where the
 * guess turns out to be below T, or more is kept than there is room for, the query is scanned
 * again, with T for its limit. */
#include "rabitq/rabitq.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "points/view.h"
#include "search/exact.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_rabitq_params, GNOMON_RABITQ_PARAMS_INIT)

enum {
    GROUP = 256,           /* queries that one thread takes at a time */
    BLOCK_BYTES = 1 << 18, /* of tiles */
    LEAST_CHUNK = 1 << 12, /* points that a thread takes at a time where queries are few */
    LEAST_ROOM = 2048,     /* hits */
    SCAN_ASKS = 16         /* blocks */
};

/* The probability with which one estimate's error is above what the guess of T allows for. The
 * guess is too low only where that happens to most of more than k points. */
static const double GUESS = 0.1;

/* A query of a batch. */
typedef struct asked {
    double square, norm; /* of its rotated coordinates */
    double length;       /* of what rounding to integers took */
    float scale, half;
    int32_t start;
    bool lost;  /* too large for integers in fp32, or for what stands for them */
    bool again; /* to be scanned once more */
    double top; /* T */
    int64_t verified;
} asked;

/* A query in a part of the base. */
typedef struct part {
    double limit; /* squared; infinite: none yet; negative: too many were kept */
} part;

typedef struct scanning {
    gnomon_context *ctx;
    const gnomon_rabitq *index;
    const gnomon_kernels *k;
    const gnomon_rabitq_scan *scan;
    gnomon_search *search;
    int64_t first;            /* the size of A */
    bool strict;              /* A is all that is wanted */
    bool exact;               /* the bound always holds */
    bool dithers;             /* queries are rounded at random */
    double sure, guess;       /* t of the error, and of the guess */
    double rounding, roundly; /* integers' error by scale, of both */
    int64_t steps, room;
    int64_t soon; /* hits after which a limit is set for the first time */
    int64_t query_words, tile_words;
    int64_t most_parts, most_chunks; /* that memory is for */
    /* a batch */
    int64_t begin, count, groups, group, chunks, chunk;
    uint32_t *words;
    asked *asked;
    gnomon_rabitq_filter *filters; /* (chunk, query) */
    part *parts;
    gnomon_rabitq_hit *hits; /* room each */
    int64_t *list;           /* queries to scan again */
    /* a thread */
    gnomon_rabitq_room *rooms;
    uint32_t *tiles;
    uint8_t *spare;
    gnomon_rabitq_lanes *lanes;
    float *ranks;     /* ranks_of */
    double *f64;      /* 2 dim */
    uint8_t *u;       /* m */
    int8_t *integers; /* steps' coordinates */
    int64_t block;    /* tiles */
    gnomon_asking asking;
} scanning;

/* ---- queries ---- */

/* Rounds a rotated query to integers. */
static void take_integers(const scanning *w, const double *x, asked *a, int8_t *to)
{
    const int64_t m = w->index->m;
    const int levels = (1 << w->index->options.bits) - 1;
    const double limit = gnomon_rabitq_most((int)w->index->options.bits);
    double most = 0, lost = 0;
    int64_t sum = 0;
    for (int64_t j = 0; j < m; j++)
        most = fabs(x[j]) > most ? fabs(x[j]) : most;
    a->lost = !(most < 0x1p50) || most < 0x1p-50;
    a->scale = a->lost ? 0 : gnomon_rabitq_above(most / limit);
    for (int64_t j = 0; j < m; j++) {
        double integer = 0;
        if (!a->lost)
            integer = floor(x[j] / (double)a->scale + (w->dithers ? w->index->dither[j] : 0.5));
        integer = integer > limit ? limit : integer < -limit ? -limit : integer;
        const double rest = x[j] - integer * (double)a->scale;
        lost += rest * rest;
        sum += (int64_t)integer;
        to[j] = (int8_t)integer;
    }
    /* a code u stands for u - levels / 2: the sum begins with the whole part, 'half' is the rest */
    const int64_t twice = -levels * sum, down = (twice - ((twice % 2 + 2) % 2)) / 2;
    const int64_t flip = w->index->options.bits == 8 && w->scan->flip != 0 ? 128 : 0;
    a->start = (int32_t)(down + flip * sum);
    a->half = twice % 2 != 0 ? a->scale * 0.5f : 0;
    a->length = sqrt(lost) * (1 + 1e-9);
}

static void prepare_query(void *arg, int64_t q, int worker)
{
    scanning *w = arg;
    asked *a = &w->asked[q];
    gnomon_rabitq_room *room = &w->rooms[worker];
    gnomon_rabitq_turn(w->index, w->k, &w->search->queries, w->begin + q, room);
    *a = (asked){0};
    a->square = w->k->search->squares(room->x, GNOMON_F64, 1, w->index->m, 1);
    a->norm = sqrt(a->square);
    const int64_t coordinates = w->steps * w->scan->coordinates;
    int8_t *integers = w->integers + worker * coordinates;
    memset(integers, 0, (size_t)coordinates);
    take_integers(w, room->x, a, integers);
    w->scan->query(integers, w->steps, w->words + q * w->query_words);
}

/* ---- limits ---- */

/* A bound on what rounding the query took: always, or by Hoeffding's bound if that is less. */
static double lost_to(const scanning *w, const asked *a, double rounding)
{
    const double likely = rounding * (double)a->scale;
    return !w->exact && !a->lost && likely < a->length ? likely : a->length;
}

/* Sets what passes: points that may lie within 'limit', squared, of the query. */
static void set_limit(const scanning *w, const asked *a, double limit, gnomon_rabitq_filter *f)
{
    const double root = sqrt(limit), most = root < a->norm ? root : a->norm;
    /* more than what rounding takes from both squares */
    const double above = limit * (1 + 0x1p-20) - a->square * (1 - 0x1p-18) + 0x1p-100;
    f->limit = a->square < 0x1p120 ? (float)(above + fabs(above) * 0x1p-20) : NAN;
    f->slope = gnomon_rabitq_above(w->sure * most * (1 + 0x1p-20));
    f->spread = gnomon_rabitq_above(lost_to(w, a, w->rounding) * (1 + 0x1p-20));
}

/* By the order of estimates alone. */
static void set_strict(float low, gnomon_rabitq_filter *f)
{
    f->limit = low;
    f->slope = f->spread = 0;
}

/* A number that the squared distance of a point kept is likely not above. */
static float reached(const scanning *w, const asked *a, const gnomon_rabitq_hit *h)
{
    const double width = (double)h->width, error = (double)h->reach * w->guess;
    if (!isfinite(a->square)) return HUGE_VALF; /* too far for fp64, and for a rank */
    double estimate = (double)h->low + a->square + 0x1p-17 * (a->square + width * width);
    estimate += width * lost_to(w, a, w->roundly);
    if (!(estimate > 0)) estimate = 0;
    /* d^2 <= estimate + error min(norm, d) */
    const double d = (error + sqrt(error * error + 4 * estimate)) / 2;
    const double by_norm = estimate + error * a->norm;
    return gnomon_rabitq_above(d * d < by_norm ? d * d : by_norm);
}

/* Numbers of a thread: as many as all parts of a query keep. */
static int64_t ranks_of(const scanning *w)
{
    return gnomon_min(w->room * w->chunks, w->index->points);
}

static bool passes(const gnomon_rabitq_filter *f, const gnomon_rabitq_hit *h)
{
    return !(h->low > fmaf(h->reach, f->slope, fmaf(h->width, f->spread, f->limit)));
}

/* ---- the scan ---- */

/* A part's queries, for 'full'. */
typedef struct task {
    scanning *w;
    int64_t chunk, first; /* query */
    int worker;
} task;

static bool allowed(const scanning *w, uint32_t row)
{
    return gnomon_search_allows(&w->search->options, (int64_t)row);
}

static void drop_forbidden(const scanning *w, gnomon_rabitq_filter *f)
{
    int32_t kept = 0;
    if (w->search->options.filter == NULL) return;
    for (int32_t i = 0; i < f->count; i++)
        if (allowed(w, f->kept[i].row)) f->kept[kept++] = f->kept[i];
    f->count = kept;
}

/* Keeps the 'first' nearest by estimate, in order of rows. */
static void keep_first(const scanning *w, gnomon_rabitq_filter *f, float *ranks)
{
    if (f->count < w->first) return;
    for (int32_t i = 0; i < f->count; i++)
        ranks[i] = -f->kept[i].low;
    const float last = -gnomon_rank_largest(ranks, f->count, w->first);
    int64_t below = 0;
    for (int32_t i = 0; i < f->count; i++)
        below += f->kept[i].low < last;
    int64_t ties = w->first - below;
    int32_t kept = 0;
    for (int32_t i = 0; i < f->count; i++)
        if (f->kept[i].low < last || (f->kept[i].low == last && ties-- > 0))
            f->kept[kept++] = f->kept[i];
    f->count = kept;
    set_strict(last, f);
}

static void make_room(void *arg, int64_t q)
{
    const task *t = arg;
    scanning *w = t->w;
    const int64_t at = t->chunk * w->count + t->first + q;
    gnomon_rabitq_filter *f = &w->filters[at];
    part *p = &w->parts[at];
    const asked *a = &w->asked[t->first + q];
    float *ranks = w->ranks + t->worker * ranks_of(w);
    drop_forbidden(w, f);
    if (!w->strict && p->limit >= 0 && f->count >= w->first) {
        for (int32_t i = 0; i < f->count; i++)
            ranks[i] = -reached(w, a, &f->kept[i]);
        const double limit = -(double)gnomon_rank_largest(ranks, f->count, w->first);
        if (limit < p->limit) {
            p->limit = limit;
            set_limit(w, a, limit, f);
        }
        int32_t kept = 0;
        for (int32_t i = 0; i < f->count; i++)
            if (passes(f, &f->kept[i])) f->kept[kept++] = f->kept[i];
        f->count = kept;
    }
    if (f->count <= f->room - f->room / 4) return;
    if (!w->strict && f->room < w->room) {
        f->room = (int32_t)gnomon_min(w->room, 2 * (int64_t)f->room);
        return;
    }
    if (!w->strict) p->limit = -1;
    keep_first(w, f, ranks);
}

typedef struct span {
    int64_t from, to; /* rows */
    const uint32_t *words;
    int64_t count;
    gnomon_rabitq_filter *filters;
    void (*full)(void *arg, int64_t q);
    void *arg;
    int worker;
} span;

/* Some queries against some points. */
static void scan(scanning *w, const span *s)
{
    const gnomon_rabitq *index = w->index;
    const int bits = (int)index->options.bits;
    const int64_t bytes = gnomon_rabitq_bytes(index->m, bits), at_once = w->block * GNOMON_LANES;
    uint32_t *tiles = w->tiles + s->worker * w->block * w->tile_words;
    gnomon_rabitq_lanes *lanes = w->lanes + s->worker * w->block;
    uint8_t *spare = w->spare + s->worker * GNOMON_LANES * index->m;
    int asks = 0;
    for (int64_t row = s->from; row < s->to; row += at_once) {
        const int64_t rows = gnomon_min(at_once, s->to - row), count = gnomon_tiles_of(rows);
        if (asks++ % SCAN_ASKS == 0 && gnomon_asking_stops(&w->asking, s->worker)) return;
        for (int64_t t = 0; t < count; t++) {
            const int64_t here = row + t * GNOMON_LANES;
            const int64_t points = gnomon_min(GNOMON_LANES, s->to - here);
            w->scan->tile(index->codes + here * bytes, points, index->m, bits, w->scan->flip,
                          w->steps, spare, tiles + t * w->tile_words);
            gnomon_rabitq_lanes_of(index, here, points, &lanes[t]);
        }
        const gnomon_rabitq_sift sift = {.queries = s->words,
                                         .count = s->count,
                                         .filters = s->filters,
                                         .tiles = tiles,
                                         .lanes = lanes,
                                         .tile_count = count,
                                         .steps = w->steps,
                                         .bits = bits,
                                         .row = (uint32_t)row,
                                         .rows = (uint32_t)rows,
                                         .full = s->full,
                                         .arg = s->arg};
        w->scan->sift(&sift);
    }
}

static gnomon_rabitq_filter filter_of(const scanning *w, int64_t q, gnomon_rabitq_hit *kept,
                                      int64_t room)
{
    const asked *a = &w->asked[q];
    const int64_t exclude = w->search->options.exclude, self = exclude + w->begin + q;
    return (gnomon_rabitq_filter){.limit = HUGE_VALF,
                                  .scale = a->scale,
                                  .half = a->half,
                                  .start = a->start,
                                  .self = exclude >= 0 && self < UINT32_MAX ? (uint32_t)self
                                                                            : UINT32_MAX,
                                  .room = (int32_t)room,
                                  .kept = kept};
}

static void scan_part(void *arg, int64_t number, int worker)
{
    scanning *w = arg;
    const int64_t chunk = number / w->groups, first = number % w->groups * w->group;
    const int64_t count = gnomon_min(w->group, w->count - first);
    task t = {w, chunk, first, worker};
    gnomon_rabitq_filter *filters = w->filters + chunk * w->count + first;
    for (int64_t q = 0; q < count; q++) {
        const int64_t at = chunk * w->count + first + q;
        filters[q] = filter_of(w, first + q, w->hits + at * w->room, w->soon);
        w->parts[at].limit = INFINITY;
    }
    const span s = {.from = chunk * w->chunk,
                    .to = gnomon_min((chunk + 1) * w->chunk, w->index->points),
                    .words = w->words + first * w->query_words,
                    .count = count,
                    .filters = filters,
                    .full = make_room,
                    .arg = &t,
                    .worker = worker};
    scan(w, &s);
}

/* ---- distances ---- */

static double square_of(const scanning *w, double key)
{
    const double scale = w->index->scale;
    const double square = w->index->options.metric == GNOMON_COSINE ? 2 * key * scale * scale
                                                                    : key * scale * (key * scale);
    return square * (1 + 1e-9) + 1e-300;
}

static gnomon_query query_of(const scanning *w, int64_t q, int worker)
{
    return gnomon_query_for(w->search, w->begin + q, &w->index->x,
                            w->f64 + worker * 2 * w->index->dim);
}

/* Computes a distance; known: the point may be one of the nearest already. */
static void verify(scanning *w, int64_t q, gnomon_query query, uint32_t row, bool known)
{
    gnomon_nearest *to = &w->search->nearest[w->begin + q];
    const gnomon_ranked point = {gnomon_exact_key(w->search, query, &w->index->x, row), row};
    w->asked[q].verified++;
    if (known && to->count == to->k && !gnomon_ranked_before(point, to->heap[0])) return;
    for (int64_t i = 0; known && i < to->count; i++)
        if (to->heap[i].id == point.id) return;
    gnomon_nearest_offer(to, point);
}

/* The code's own number, of a query that was not rounded. */
static void offer_estimate(scanning *w, int64_t q, const double *x, uint32_t row, int worker)
{
    const gnomon_rabitq *index = w->index;
    const int bits = (int)index->options.bits;
    const float *f = index->factors + (int64_t)row * gnomon_rabitq_factors(bits);
    uint8_t *u = w->u + worker * index->m;
    w->k->rabitq->unpack(index->codes + (int64_t)row * gnomon_rabitq_bytes(index->m, bits),
                         index->m, bits, u);
    const double product = w->k->rabitq->product(u, x, index->m, bits);
    double square = (double)f[0] + w->asked[q].square - (double)f[1] * product;
    square = !isfinite(w->asked[q].square) ? INFINITY : square > 0 ? square : 0;
    const double key = index->options.metric == GNOMON_COSINE
                           ? square / index->scale / index->scale / 2
                           : sqrt(square) / index->scale;
    gnomon_nearest_offer(&w->search->nearest[w->begin + q], (gnomon_ranked){key, row});
}

/* The parts' hits of a query, in order of rows: 'ranks' gets minus their estimates. */
static int64_t gather(const scanning *w, int64_t q, float *ranks)
{
    int64_t count = 0;
    for (int64_t c = 0; c < w->chunks; c++) {
        gnomon_rabitq_filter *f = &w->filters[c * w->count + q];
        drop_forbidden(w, f);
        for (int32_t i = 0; i < f->count; i++)
            ranks[count++] = -f->kept[i].low;
    }
    return count;
}

/* Answers a query from what the scan kept. */
static void answer(void *arg, int64_t q, int worker)
{
    scanning *w = arg;
    asked *a = &w->asked[q];
    float *ranks = w->ranks + worker * ranks_of(w);
    const int64_t count = gather(w, q, ranks);
    const gnomon_nearest *nearest = &w->search->nearest[w->begin + q];
    float last = HUGE_VALF; /* of A */
    int64_t ties = count;
    if (count > w->first) {
        last = -gnomon_rank_largest(ranks, count, w->first);
        ties = w->first;
        for (int64_t c = 0; c < w->chunks; c++)
            for (int32_t i = 0; i < w->filters[c * w->count + q].count; i++)
                ties -= w->filters[c * w->count + q].kept[i].low < last;
    }
    gnomon_query query = {0};
    const double *x = w->rooms[worker].x;
    if (w->index->x.data != NULL)
        query = query_of(w, q, worker);
    else
        gnomon_rabitq_turn(w->index, w->k, &w->search->queries, w->begin + q, &w->rooms[worker]);
    int64_t left = ties;
    for (int64_t c = 0; c < w->chunks; c++) {
        gnomon_rabitq_filter *f = &w->filters[c * w->count + q];
        int32_t kept = 0;
        for (int32_t i = 0; i < f->count; i++) {
            const gnomon_rabitq_hit h = f->kept[i];
            if (h.low > last || (h.low == last && left-- <= 0))
                f->kept[kept++] = h;
            else if (w->index->x.data != NULL)
                verify(w, q, query, h.row, false);
            else
                offer_estimate(w, q, x, h.row, worker);
        }
        f->count = kept;
    }
    if (w->strict || nearest->count < nearest->k) return;
    gnomon_rabitq_filter limit = {0};
    a->top = square_of(w, nearest->heap[0].key);
    set_limit(w, a, a->top, &limit);
    for (int64_t c = 0; c < w->chunks; c++)
        if (!(w->parts[c * w->count + q].limit >= a->top)) a->again = true;
    for (int64_t c = 0; c < w->chunks && !a->again; c++) {
        const gnomon_rabitq_filter *f = &w->filters[c * w->count + q];
        for (int32_t i = 0; i < f->count; i++)
            if (passes(&limit, &f->kept[i])) verify(w, q, query, f->kept[i].row, false);
    }
}

/* ---- queries whose limit was guessed too low, or that keep too much ---- */

typedef struct again {
    scanning *w;
    int64_t first, count; /* of the list */
    gnomon_rabitq_filter *filters;
    int worker;
} again;

static void verify_kept(void *arg, int64_t i)
{
    const again *t = arg;
    const int64_t q = t->w->list[t->first + i];
    gnomon_rabitq_filter *f = &t->filters[i];
    const gnomon_query query = query_of(t->w, q, t->worker);
    for (int32_t h = 0; h < f->count; h++)
        if (allowed(t->w, f->kept[h].row)) verify(t->w, q, query, f->kept[h].row, true);
    f->count = 0;
}

/* GNOMON_RABITQ_QUERIES of the list: their words and filters take the places of the first batch's,
 * which are not needed any more, in the list's order. */
static void scan_again(void *arg, int64_t number, int worker)
{
    scanning *w = arg;
    again t = {w, number * w->group, 0, NULL, worker};
    t.count = gnomon_min(w->group, w->groups - t.first);
    t.filters = w->filters + t.first;
    const span s = {.from = 0,
                    .to = w->index->points,
                    .words = w->words + t.first * w->query_words,
                    .count = t.count,
                    .filters = t.filters,
                    .full = verify_kept,
                    .arg = &t,
                    .worker = worker};
    scan(w, &s);
    for (int64_t i = 0; i < t.count; i++)
        verify_kept(&t, i);
}

static gnomon_status search_again(scanning *w, int64_t *compared)
{
    int64_t count = 0;
    for (int64_t q = 0; q < w->count; q++) {
        if (!w->asked[q].again) continue;
        if (count != q)
            memcpy(w->words + count * w->query_words, w->words + q * w->query_words,
                   (size_t)w->query_words * 4);
        w->filters[count] = filter_of(w, q, w->hits + q * w->room, w->room);
        set_limit(w, &w->asked[q], w->asked[q].top, &w->filters[count]);
        w->list[count++] = q;
    }
    if (count == 0) return GNOMON_OK;
    const int threads = gnomon_context_threads(w->ctx);
    w->groups = count; /* of queries, one each */
    w->group = gnomon_min((count + threads - 1) / threads, GNOMON_RABITQ_QUERIES);
    gnomon_parallel(w->ctx, (count + w->group - 1) / w->group, scan_again, w);
    *compared += count * w->index->points;
    return w->asking.status;
}

/* ---- batches ---- */

/* Cuts a batch of so many queries into parts for all threads. */
static void divide(scanning *w, int64_t count)
{
    const int64_t threads = gnomon_context_threads(w->ctx), points = w->index->points;
    w->group = gnomon_min(GROUP, (count + threads - 1) / threads);
    if (w->group < GNOMON_RABITQ_QUERIES) w->group = gnomon_min(count, GNOMON_RABITQ_QUERIES);
    w->groups = (count + w->group - 1) / w->group;
    w->chunks = (threads + w->groups - 1) / w->groups;
    const int64_t most = (points + LEAST_CHUNK - 1) / LEAST_CHUNK;
    if (w->chunks > most) w->chunks = most;
    w->chunks = gnomon_min(w->chunks, gnomon_min(w->most_chunks, w->most_parts / count));
    if (w->chunks < 1) w->chunks = 1;
    w->chunk = (points + w->chunks - 1) / w->chunks;
    w->chunk = (w->chunk + 2 * GNOMON_LANES - 1) / (2 * GNOMON_LANES) * (2 * GNOMON_LANES);
    w->chunks = (points + w->chunk - 1) / w->chunk;
}

static gnomon_status search_batch(scanning *w, int64_t *compared, int64_t all)
{
    w->asking = (gnomon_asking){.ctx = w->ctx, .phase = "search", .done = w->begin, .total = all};
    gnomon_parallel(w->ctx, w->count, prepare_query, w);
    gnomon_parallel(w->ctx, w->groups * w->chunks, scan_part, w);
    GNOMON_TRY(w->asking.status);
    *compared += w->count * w->index->points;
    gnomon_parallel(w->ctx, w->count, answer, w);
    GNOMON_TRY(search_again(w, compared));
    for (int64_t q = 0; q < w->count; q++)
        w->search->verified += w->asked[q].verified;
    return gnomon_progress(w->ctx, "search", w->begin + w->count, all);
}

static gnomon_status open_threads(scanning *w, double **numbers)
{
    gnomon_context *ctx = w->ctx;
    const gnomon_rabitq *index = w->index;
    const int64_t threads = gnomon_context_threads(ctx);
    const int64_t tile = w->tile_words * (int64_t)sizeof *w->tiles;
    w->block = BLOCK_BYTES / tile / 2 * 2;
    w->block = w->block < 2 ? 2 : w->block > 64 ? 64 : w->block;
    GNOMON_TRY(gnomon_rabitq_rooms(ctx, index->m, &w->rooms, numbers));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(threads, w->block), (size_t)tile, "tiles", &w->tiles));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(threads, w->block), sizeof *w->lanes, "tiles", &w->lanes));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(threads, GNOMON_LANES), (size_t)index->m, "tiles",
                            &w->spare));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(threads, 2), sizeof *w->f64 * (size_t)index->dim,
                            "a query", &w->f64));
    GNOMON_TRY(gnomon_alloc(ctx, threads, (size_t)(w->steps * w->scan->coordinates), "a query",
                            &w->integers));
    return gnomon_alloc(ctx, threads, (size_t)index->m, "codes", &w->u);
}

/* What open_threads takes. */
static double threads_bytes(const scanning *w)
{
    const double m = (double)w->index->m, dim = (double)w->index->dim;
    const double tile = (double)w->tile_words * sizeof *w->tiles + sizeof *w->lanes;
    const double each = (double)w->block * tile + m * (2 * sizeof(double) + GNOMON_LANES + 1) +
                        2 * dim * sizeof *w->f64 + (double)(w->steps * w->scan->coordinates);
    return (double)gnomon_context_threads(w->ctx) * (each + sizeof *w->rooms);
}

static gnomon_status open_batch(scanning *w, int64_t *size)
{
    gnomon_context *ctx = w->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    const double one = (double)w->room * sizeof *w->hits + sizeof *w->filters + sizeof *w->parts;
    const double each = (double)w->query_words * 4 + sizeof *w->asked + sizeof *w->list + one;
    const double ranked = (double)threads * (double)w->room * sizeof *w->ranks;
    const double left = (double)gnomon_memory_limit(ctx) - threads_bytes(w) - ranked -
                        (double)GNOMON_RABITQ_QUERIES * (double)w->query_words * 4;
    /* half for queries in one part each; a quarter for more parts, a quarter for their ranks */
    const double most = left / 2 / each;
    *size = gnomon_min(w->search->count, 4096);
    if ((double)*size > most) *size = most < 1 ? 1 : (int64_t)most;
    w->most_parts = (int64_t)fmin(fmax(left, 0) / 4 / one, 0x1p40);
    w->most_chunks = (int64_t)(fmax(left, 0) / 4 / ranked);
    /* a smaller batch may be cut into more parts */
    int64_t parts = 1, ranks = 1;
    for (int64_t count = 1; count <= *size; count++) {
        divide(w, count);
        parts = count * w->chunks > parts ? count * w->chunks : parts;
        ranks = ranks_of(w) > ranks ? ranks_of(w) : ranks;
    }
    const int64_t words = (*size + GNOMON_RABITQ_QUERIES) * w->query_words;
    GNOMON_TRY(gnomon_alloc_zero(ctx, words, sizeof *w->words, "queries", &w->words));
    GNOMON_TRY(gnomon_alloc(ctx, *size, sizeof *w->asked, "queries", &w->asked));
    GNOMON_TRY(gnomon_alloc(ctx, *size, sizeof *w->list, "queries", &w->list));
    GNOMON_TRY(gnomon_alloc(ctx, parts, sizeof *w->filters, "queries", &w->filters));
    GNOMON_TRY(gnomon_alloc(ctx, parts, sizeof *w->parts, "queries", &w->parts));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(parts, w->room), sizeof *w->hits, "candidates", &w->hits));
    return gnomon_alloc(ctx, gnomon_times(threads, ranks), sizeof *w->ranks, "candidates",
                        &w->ranks);
}

static gnomon_status search_all(scanning *w)
{
    double *numbers = NULL;
    int64_t size, compared = 0;
    const int64_t all = w->search->count;
    gnomon_context *ctx = w->ctx;
    gnomon_status status = open_threads(w, &numbers);
    if (status == GNOMON_OK) status = open_batch(w, &size);
    for (w->begin = 0; w->begin < all && status == GNOMON_OK; w->begin += w->count) {
        w->count = gnomon_min(size, all - w->begin);
        divide(w, w->count);
        status = search_batch(w, &compared, all);
    }
    w->search->compared = compared;
    gnomon_free(ctx, w->rooms);
    gnomon_free(ctx, numbers);
    gnomon_free(ctx, w->tiles);
    gnomon_free(ctx, w->lanes);
    gnomon_free(ctx, w->spare);
    gnomon_free(ctx, w->f64);
    gnomon_free(ctx, w->integers);
    gnomon_free(ctx, w->u);
    gnomon_free(ctx, w->words);
    gnomon_free(ctx, w->asked);
    gnomon_free(ctx, w->list);
    gnomon_free(ctx, w->filters);
    gnomon_free(ctx, w->parts);
    gnomon_free(ctx, w->hits);
    gnomon_free(ctx, w->ranks);
    return status;
}

/* ---- the call ---- */

static gnomon_status check(gnomon_context *ctx, const gnomon_rabitq *index,
                           const gnomon_search_options *o, const gnomon_matrix *queries,
                           const gnomon_rabitq_params *p)
{
    GNOMON_FAIL_IF(queries->cols != index->dim, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("queries") " has %" PRId64
                                         " columns; the index's points have %" PRId64,
                   queries->cols, index->dim);
    GNOMON_FAIL_IF(o->metric != index->options.metric, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.metric") " is %s; the index is for %s",
                   gnomon_metric_name(o->metric), gnomon_metric_name(index->options.metric));
    GNOMON_FAIL_IF(o->k < 1 || o->k > index->points, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 "; it must be from 1 to the index's %" PRId64
                                   " points (there is no search by radius)",
                   o->k, index->points);
    GNOMON_FAIL_IF(p->rerank == 0 && !(p->recall > 0 && p->recall <= 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("params.recall") " is %g; it must be above 0 and at most 1",
                   p->recall);
    GNOMON_FAIL_IF(p->rerank != 0 && p->rerank < o->k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("params.rerank") " is %" PRId64
                                               "; it must be 0 or at least k, which is %" PRId64,
                   p->rerank, o->k);
    return GNOMON_OK;
}

static void plan(scanning *w, const gnomon_rabitq_params *p)
{
    const int64_t k = w->search->options.k, n = w->index->points;
    const bool estimates = w->index->x.data == NULL;
    w->strict = estimates || p->rerank > 0;
    w->exact = !w->strict && p->recall == 1;
    w->dithers = !w->strict && !w->exact;
    /* enough of them that the k-th is near the k-th of all */
    w->first = estimates   ? gnomon_plus(gnomon_times(2, k), 32)
               : w->strict ? p->rerank
                           : gnomon_plus(k, k / 2 + 8);
    if (w->first > n || w->first < 0) w->first = n;
    const double failure = 1 - p->recall;
    w->sure = w->exact ? 1 : gnomon_rabitq_quantile(w->index->m - 1, failure * 0.9);
    w->guess = gnomon_rabitq_quantile(w->index->m - 1, GUESS);
    w->rounding = sqrt(log(1 / fmax(failure * 0.1, 1e-300)) / 2);
    w->roundly = fmax(w->rounding, 2);
    const int64_t a_step = w->scan->coordinates * w->scan->multiple;
    w->steps = (w->index->m + a_step - 1) / a_step * w->scan->multiple;
    w->query_words = w->steps * w->scan->query_words;
    w->tile_words = w->steps * w->scan->tile_words;
    w->room = gnomon_times(8, w->first) > LEAST_ROOM ? 8 * w->first : LEAST_ROOM;
    w->room = gnomon_min(w->room, n);
    w->soon = gnomon_min(w->room, gnomon_plus(gnomon_times(4, w->first), 32));
}

gnomon_status gnomon_rabitq_query(gnomon_context *ctx, const gnomon_rabitq *index,
                                  const gnomon_matrix *queries,
                                  const gnomon_search_options *options,
                                  const gnomon_rabitq_params *params, gnomon_neighbors *out)
{
    gnomon_rabitq_params p = GNOMON_RABITQ_PARAMS_INIT;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, index, "index");
    GNOMON_NEED(ctx, queries, "queries");
    GNOMON_FAIL_IF(params != NULL && index->x.data == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("params") " must be NULL: the index holds no points to compute "
                                        "distances of");
    if (params != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "params", gnomon_rabitq_params, params, &p));
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_neighbors, out));
    GNOMON_FAIL_IF(gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN, ctx, GNOMON_ERROR_DEVICE,
                   "codes are searched on the CPU; use the device cpu or auto");
    gnomon_search *search;
    GNOMON_TRY(gnomon_search_create(ctx, queries, options, &search));
    gnomon_status status = check(ctx, index, &search->options, queries, &p);
    if (status == GNOMON_OK) {
        scanning w = {.ctx = ctx,
                      .index = index,
                      .k = gnomon_cpu_kernels(gnomon_context_isa(ctx)),
                      .search = search};
        search->base = index->points;
        w.scan = w.k->rabitq->scan((int)index->options.bits);
        plan(&w, &p);
        if (w.room < 0 || w.room > INT32_MAX)
            status = gnomon_fail(ctx, GNOMON_ERROR_UNSUPPORTED,
                                 "more candidates than can be counted: %" PRId64, w.first);
        if (status == GNOMON_OK && search->count > 0) status = search_all(&w);
    }
    if (status == GNOMON_OK) status = gnomon_search_finish(search, out);
    gnomon_search_destroy(search);
    return status;
}
