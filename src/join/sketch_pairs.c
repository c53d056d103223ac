/* A band against a piece, in the sketch's coordinates: candidates are verified in fp64.
 *
 * A task takes a chunk of the band's points and a range of the piece's, by blocks small enough for
 * the second cache. Pairs go to slabs of one array, which tasks take as they need them, so that
 * what they find is bounded together. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/out.h"
#include "join/sketch.h"
#include "join/slabs.h"
#include "search/exact.h"
#include "search/filter.h"

enum {
    LANES = GNOMON_LANES,
    CHUNK = 384,         /* the band's points of a task */
    RANGE = 16384,       /* the piece's */
    BLOCK_WORDS = 32768, /* of tiles: 128 KiB */
    ROOM = 96            /* survivors that wait of a point */
};

/* A worker's. */
typedef struct scratch {
    gnomon_filter filters[CHUNK];
    gnomon_survivor survivors[CHUNK * ROOM];
} scratch;

typedef struct pairing {
    gnomon_join_sketch *sketch;
    gnomon_join_state *join;
    gnomon_search search; /* with the band as its queries */
    const gnomon_matrix *piece;
    const gnomon_sketch_block *p, *q;
    int64_t row, count; /* of the band, in numbers of P */
    int64_t chunks, range;
    double key;
    scratch *scratch;
    double *f64; /* a worker's */
    int64_t f64_size;
    gnomon_pair_slabs slabs;
    _Atomic int64_t verified, compared;
} pairing;

typedef struct worker {
    pairing *m;
    scratch *own;
    double *f64, *row;    /* a point's coordinates in fp64, and in the sketch */
    int64_t first, count; /* the chunk's points, in numbers of the band's block */
    int64_t slab;         /* -1: none */
    int64_t verified;
} worker;

static void verify(worker *w, int64_t q)
{
    pairing *m = w->m;
    gnomon_filter *filter = &w->own->filters[q];
    if (filter->count == 0) return;
    const int32_t count = filter->count;
    const int64_t at = w->first + q, row = m->p->first + at;
    filter->count = 0;
    if (atomic_load_explicit(&m->slabs.full, memory_order_relaxed)) return;
    const gnomon_join_sketch *s = m->sketch;
    const gnomon_sketched *point = &m->p->points[at];
    const bool twice = s->second > s->directions;
    gnomon_query query = {.factor = 0};
    for (int64_t k = 0; k <= s->second && twice; k++)
        w->row[k] = (double)m->p->rows[at * (s->second + 1) + k];
    for (int32_t i = 0; i < count; i++) {
        const int64_t other = filter->kept[i].row, column = m->q->first + other;
        if (m->join->self && column <= row) continue;
        if (twice && i + 4 < count) {
            const float *ahead = m->q->rows + (s->second + 1) * filter->kept[i + 4].row;
            for (int64_t k = 0; k <= s->second; k += 16)
                __builtin_prefetch(ahead + k);
            __builtin_prefetch(&m->q->points[filter->kept[i + 4].row].bias);
        }
        if (twice && !gnomon_sketch_may(s, w->row, point, filter->least, m->q, other)) continue;
        if (query.f64 == NULL) query = gnomon_query_to_f64(&m->search, at, w->f64);
        const double key = gnomon_exact_key(&m->search, query, m->piece, other);
        w->verified++;
        if (!(key <= m->key)) continue;
        gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, &w->slab);
        if (pair == NULL) return;
        *pair = (gnomon_pair){row, column, gnomon_metric_turn(m->search.options.metric, key)};
    }
}

static void full(void *arg, int64_t q)
{
    verify(arg, q);
}

static void prepare(worker *w)
{
    const pairing *m = w->m;
    for (int64_t q = 0; q < w->count; q++) {
        const gnomon_sketched *point = &m->p->points[w->first + q];
        gnomon_filter *filter = &w->own->filters[q];
        *filter = point->filter;
        filter->least = gnomon_filter_least(&m->search, &point->facts, m->key, false);
        filter->self = UINT32_MAX;
        filter->count = 0;
        filter->room = ROOM;
        filter->kept = w->own->survivors + q * ROOM;
    }
}

static void pairs_task(void *arg, int64_t task, int number)
{
    pairing *m = arg;
    const gnomon_join_sketch *s = m->sketch;
    const int64_t words = s->most > 0 ? (s->steps + 1) / 2 : s->steps;
    const int64_t chunk = task % m->chunks, range = task / m->chunks;
    worker w = {.m = m, .own = &m->scratch[number], .slab = -1};
    w.f64 = m->f64 + number * m->f64_size;
    w.row = w.f64 + 2 * s->search.cols;
    w.first = m->row - m->p->first + chunk * CHUNK;
    const int64_t left = m->row + m->count - m->p->first - w.first;
    w.count = left < CHUNK ? left : CHUNK;
    int64_t begin = range * m->range, end = begin + m->range;
    if (end > m->q->count) end = m->q->count;
    if (m->join->self) {
        /* later points alone */
        const int64_t later = m->p->first + w.first + 1 - m->q->first;
        if (later > begin) begin = later / LANES * LANES;
    }
    if (begin >= end || atomic_load(&m->slabs.full)) return;
    prepare(&w);
    int64_t block = BLOCK_WORDS / words / LANES * LANES;
    if (block < LANES) block = LANES;
    for (int64_t from = begin; from < end; from += block) {
        const int64_t to = from + block < end ? from + block : end;
        const gnomon_sift sift = {
            .queries = m->p->queries + w.first * s->ld,
            .ld = s->ld,
            .count = w.count,
            .filters = w.own->filters,
            .tiles = (const uint32_t *)m->q->tiles + from * words,
            .tile_count = (to - from + LANES - 1) / LANES,
            .steps = words,
            .bias = m->q->bias + from,
            .blurs = m->q->blurs + from / LANES,
            .first = true,
            .last = true,
            .row = (uint32_t)from,
            .rows = (uint32_t)(to - from),
            .full = full,
            .arg = &w,
        };
        if (s->most > 0)
            s->search.kernels->sift_halves(&sift);
        else
            s->search.kernels->sift(&sift);
        for (int64_t q = 0; q < w.count; q++)
            verify(&w, q);
    }
    atomic_fetch_add(&m->verified, w.verified);
    atomic_fetch_add(&m->compared, w.count * (end - begin));
}

gnomon_status gnomon_sketch_pairs(gnomon_join_sketch *sketch, gnomon_join_state *join,
                                  const gnomon_matrix *band, const gnomon_sketch_block *p,
                                  int64_t row, int64_t count, const gnomon_matrix *piece,
                                  const gnomon_sketch_block *q, bool *fits)
{
    gnomon_context *ctx = join->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    const double threshold = gnomon_join_threshold(join);
    pairing m = {.sketch = sketch,
                 .join = join,
                 .search = sketch->search,
                 .piece = piece,
                 .p = p,
                 .q = q,
                 .row = row,
                 .count = count};
    m.search.queries = *band;
    m.f64_size = gnomon_plus(gnomon_times(2, sketch->search.cols), sketch->second + 1);
    m.key = gnomon_metric_turn(join->options.metric, threshold);
    m.chunks = (count + CHUNK - 1) / CHUNK;
    m.range = m.chunks >= 4 * threads ? (q->count + LANES - 1) / LANES * LANES : RANGE;
    const int64_t ranges = (q->count + m.range - 1) / m.range;
    /* a single point's pairs always fit */
    int64_t room = join->pair_room - join->count;
    if (room < q->count) room = q->count;
    const int64_t all = gnomon_times(count, q->count);
    if (all >= 0 && all < room) room = all;
    gnomon_status status = gnomon_pair_slabs_open(&m.slabs, join, room, m.chunks * ranges);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, threads, sizeof *m.scratch, "survivors", &m.scratch);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, gnomon_times(threads, m.f64_size), sizeof *m.f64, "points", &m.f64);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, m.chunks * ranges, pairs_task, &m);
        join->result->verified += m.verified;
        join->result->compared += m.compared;
        if (m.slabs.full) *fits = false;
    }
    gnomon_pair_slabs_close(&m.slabs, join);
    gnomon_free(ctx, m.scratch);
    gnomon_free(ctx, m.f64);
    return status;
}
