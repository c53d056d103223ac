/* A band against a piece, in the sketch's coordinates: candidates are verified in fp64.
 *
 * A task takes a chunk of the band's points and a range of the piece's, by blocks small enough for
 * the second cache. What passes both filters waits until a point has many, whose coordinates are
 * then made ready once for all of them. Pairs go to slabs of one array, which tasks take as they
 * need them, so that what they find is bounded together. */
#include "base/arithmetic.h"
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
    CHUNK = 1536,        /* the band's points of a task at most */
    LEAST_CHUNK = 384,   /* and at least; a multiple of 48, as kernels take queries */
    CHUNKS = 32,         /* of a band, where there are points for as many */
    RANGE = 16384,       /* the piece's at most */
    LEAST_RANGE = 4096,  /* and at least */
    TASKS = 8,           /* a thread: they end together */
    BLOCK_WORDS = 16384, /* of tiles: 64 KiB */
    ROOM = 32,           /* survivors of the filter that wait of a point */
    WAITING = 128        /* candidates for fp64 */
};

/* A worker's. */
typedef struct scratch {
    gnomon_filter filters[CHUNK];
    gnomon_survivor survivors[CHUNK * ROOM];
    uint32_t candidates[CHUNK * WAITING]; /* numbers in the piece */
    int32_t counts[CHUNK];                /* of them */
    float least[CHUNK];                   /* scores that points ask for */
} scratch;

typedef struct pairing {
    gnomon_join_sketch *sketch;
    gnomon_join_state *join;
    gnomon_search search; /* with the band as its queries */
    const gnomon_matrix *piece;
    const gnomon_sketch_block *p, *q;
    int64_t row, count; /* of the band, in numbers of P */
    int64_t chunk, chunks, range;
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
    double *f64;          /* a point's coordinates */
    int64_t first, count; /* the chunk's points, in numbers of the band's block */
    int64_t slab;         /* -1: none */
    int64_t verified;
} worker;

/* A candidate's row, which comes from far away. */
static void fetch(const gnomon_matrix *m, int64_t i)
{
    enum { MOST = 1024 };
    const char *at = gnomon_row_at(m, i);
    const int64_t size = m->cols * m->col_stride * (int64_t)gnomon_dtype_size(m->dtype);
    for (int64_t line = 0; line < size && line < MOST; line += 64)
        __builtin_prefetch(at + line);
}

/* Distances of a point's candidates. */
static void verify(worker *w, int64_t q)
{
    enum { AHEAD = 3 };
    pairing *m = w->m;
    const uint32_t *candidates = w->own->candidates + q * WAITING;
    const int32_t count = w->own->counts[q];
    const int64_t at = w->first + q, row = m->p->first + at;
    w->own->counts[q] = 0;
    if (count == 0 || atomic_load_explicit(&m->slabs.full, memory_order_relaxed)) return;
    for (int32_t i = 0; i < AHEAD && i < count; i++)
        fetch(m->piece, candidates[i]);
    const gnomon_query query = gnomon_query_for(&m->search, at, m->piece, w->f64);
    w->verified += count;
    for (int32_t i = 0; i < count; i++) {
        if (i + AHEAD < count) fetch(m->piece, candidates[i + AHEAD]);
        const double key = gnomon_exact_key(&m->search, query, m->piece, candidates[i]);
        if (!(key <= m->key)) continue;
        gnomon_pair *pair = gnomon_pair_slabs_place(&m->slabs, &w->slab);
        if (pair == NULL) return;
        *pair = (gnomon_pair){row, m->q->first + candidates[i],
                              gnomon_metric_turn(m->search.options.metric, key)};
    }
}

/* What passed the filter goes through the second one. */
static void filter_again(worker *w, int64_t q)
{
    enum { AHEAD = 4 };
    const pairing *m = w->m;
    const gnomon_join_sketch *s = m->sketch;
    gnomon_filter *filter = &w->own->filters[q];
    uint32_t *candidates = w->own->candidates + q * WAITING;
    const int32_t count = filter->count;
    const int64_t at = w->first + q, row = m->p->first + at;
    filter->count = 0;
    if (count == 0) return;
    const double least = (double)w->own->least[q];
    for (int32_t i = 0; i < count; i++) {
        const int64_t other = filter->kept[i].row;
        if (m->join->self && m->q->first + other <= row) continue;
        if (s->twice) {
            if (i + AHEAD < count) {
                const int64_t later = filter->kept[i + AHEAD].row;
                for (int64_t k = 0; k < s->bytes_ld; k += 64)
                    __builtin_prefetch(m->q->bytes + later * s->bytes_ld + k);
                __builtin_prefetch(&m->q->points[later].squares);
            }
            if (!gnomon_sketch_may(s, m->p, at, m->q, other, least)) continue;
        }
        if (w->own->counts[q] == WAITING) verify(w, q);
        candidates[w->own->counts[q]++] = (uint32_t)other;
    }
}

static void full(void *arg, int64_t q)
{
    filter_again(arg, q);
}

static void prepare(worker *w)
{
    const pairing *m = w->m;
    for (int64_t q = 0; q < w->count; q++) {
        const gnomon_sketched *point = &m->p->points[w->first + q];
        gnomon_filter *filter = &w->own->filters[q];
        gnomon_sketch_ask(m->sketch, point, m->key, filter);
        w->own->least[q] = gnomon_filter_least(&m->search, &point->facts, m->key, false);
        w->own->counts[q] = 0;
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
    const gnomon_search_kernels *kernels = s->search.kernels;
    const int64_t words = s->words;
    const int64_t chunk = task % m->chunks, range = task / m->chunks;
    worker w = {.m = m, .own = &m->scratch[number], .slab = -1};
    w.f64 = m->f64 + number * m->f64_size;
    w.first = m->row - m->p->first + chunk * m->chunk;
    const int64_t left = m->row + m->count - m->p->first - w.first;
    w.count = left < m->chunk ? left : m->chunk;
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
        (s->bits == 8    ? kernels->sift_quarters
         : s->bits == 16 ? kernels->sift_halves
                         : kernels->sift)(&sift);
        for (int64_t q = 0; q < w.count; q++)
            filter_again(&w, q);
    }
    for (int64_t q = 0; q < w.count; q++)
        verify(&w, q);
    atomic_fetch_add(&m->verified, w.verified);
    atomic_fetch_add(&m->compared, w.count * (end - begin));
}

/* Chunks by the band alone, since the pairs that are counted as compared follow from them; ranges
 * by the threads. */
static void cut(pairing *m, int64_t threads)
{
    m->chunk = gnomon_round_up((m->count + CHUNKS - 1) / CHUNKS, 48);
    m->chunk = gnomon_max(LEAST_CHUNK, gnomon_min(m->chunk, CHUNK));
    m->chunks = (m->count + m->chunk - 1) / m->chunk;
    const int64_t ranges = (TASKS * threads - 1) / m->chunks + 1;
    m->range = gnomon_round_up((m->q->count + ranges - 1) / ranges, LANES);
    if (m->chunks < 4 * threads)
        m->range = gnomon_max(LEAST_RANGE, gnomon_min(m->range, RANGE));
    else
        m->range = gnomon_round_up(m->q->count, LANES);
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
    m.f64_size = gnomon_times(2, sketch->search.cols);
    m.key = gnomon_metric_turn(join->options.metric, threshold);
    cut(&m, threads);
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
