/* Tuning by promise: ways are tried on the points themselves with some queries, the cheapest that
 * seems to do is built and tested with others. */
#include "lsh/tune.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "operator/philox.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TABLES = 16,
    MOST_FUNCTIONS = 40, /* of a table */
    CODES = 64,
    CHOICES = 8, /* of how many candidates are verified, all included */
    ATTEMPTS = 4,
    FAR_POINTS = 256,
    FAR_QUERIES = 32
};

/* One index that ways are measured on: its first tables are the tables of smaller ones. */
typedef struct shape {
    gnomon_lsh_functions functions;
    int64_t depth;
} shape;

/* A trial and what it takes to build it. */
typedef struct way {
    gnomon_lsh_trial trial;
    shape from;
} way;

typedef struct tuning {
    gnomon_context *ctx;
    gnomon_lsh_promise p;
    gnomon_lsh_sizes sizes;
    const gnomon_points *points, *queries;
    bool self;
    gnomon_some_points asked, tested;
    gnomon_lsh_truth truth, test_truth;
    double near, *far; /* a typical neighbour's distance; ascending distances of random pairs */
    int64_t far_count;
    double captured[CHOICES]; /* share of neighbours among so many nearest codes */
    bool has_codes;
    way *ways;
    int64_t way_count, way_room;
    gnomon_lsh_tuning *out;
} tuning;

/* ---- what is known of the points ---- */

static gnomon_status exact(const tuning *t, const gnomon_points *base, const gnomon_points *queries,
                           int64_t k, double radius, gnomon_neighbors *out)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    *out = (gnomon_neighbors){.struct_size = sizeof *out};
    o.metric = t->p.metric;
    o.k = k;
    o.radius = radius;
    return base->dense ? gnomon_neighbors_exact(t->ctx, base->dense, queries->dense, &o, out)
                       : gnomon_neighbors_exact_csr(t->ctx, base->sparse, queries->sparse, &o, out);
}

/* The queries' true neighbours, without the queries themselves. */
static gnomon_status find_truth(tuning *t, const gnomon_some_points *of, gnomon_lsh_truth *truth,
                                double *typical)
{
    gnomon_neighbors found;
    const int64_t self = t->self, k = t->p.k;
    GNOMON_TRY(exact(t, t->points, &of->points, k > 0 ? k + self : 0, t->p.radius, &found));
    truth->least = k > 0 ? k + self : 0;
    gnomon_status status = gnomon_alloc_zero(t->ctx, of->count + 1, sizeof *truth->offsets,
                                             "true neighbours", &truth->offsets);
    if (status == GNOMON_OK)
        status = gnomon_alloc(t->ctx, found.offsets[of->count], sizeof *truth->ids,
                              "true neighbours", &truth->ids);
    int64_t at = 0, with = 0;
    double sum = 0;
    for (int64_t q = 0; q < of->count && status == GNOMON_OK; q++) {
        for (int64_t i = found.offsets[q]; i < found.offsets[q + 1]; i++) {
            if (self && found.ids[i] == of->rows[q]) continue;
            if (k > 0 && at - truth->offsets[q] == k) break;
            truth->ids[at++] = found.ids[i];
        }
        truth->offsets[q + 1] = at;
        if (found.offsets[q + 1] > found.offsets[q]) {
            sum += found.distances[found.offsets[q + 1] - 1];
            with++;
        }
    }
    if (typical) *typical = with > 0 ? sum / (double)with : 0;
    gnomon_neighbors_free(t->ctx, &found);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static gnomon_status look_far(tuning *t)
{
    gnomon_some_points base = {0}, queries = {0};
    gnomon_neighbors found = {.struct_size = sizeof found};
    const int64_t n = t->sizes.points, m = t->asked.count;
    const int64_t count = n < FAR_POINTS ? n : FAR_POINTS;
    gnomon_status status =
        gnomon_some_points_take(t->ctx, t->points, t->p.seed + 1, 0, count, &base);
    if (status == GNOMON_OK)
        status = gnomon_some_points_take(t->ctx, &t->asked.points, t->p.seed, 0,
                                         m < FAR_QUERIES ? m : FAR_QUERIES, &queries);
    if (status == GNOMON_OK) status = exact(t, &base.points, &queries.points, count, 0, &found);
    if (status == GNOMON_OK) {
        t->far = found.distances;
        t->far_count = found.offsets[found.queries];
        found.distances = NULL;
        qsort(t->far, (size_t)t->far_count, sizeof *t->far, ascending);
    }
    gnomon_neighbors_free(t->ctx, &found);
    gnomon_some_points_free(t->ctx, &base);
    gnomon_some_points_free(t->ctx, &queries);
    return status;
}

/* How many functions a table takes so that a random point shares a bucket with 'wanted' others. */
static gnomon_status choose_depth(tuning *t, const gnomon_lsh_functions *f, double wanted,
                                  int64_t *depth)
{
    enum { QUANTILES = 24 };
    double p[QUANTILES];
    for (int i = 0; i < QUANTILES; i++)
        GNOMON_TRY(gnomon_lsh_collision(
            t->ctx, f, t->far[(2 * i + 1) * t->far_count / (2 * QUANTILES)], &p[i]));
    for (*depth = 1; *depth < MOST_FUNCTIONS; ++*depth) {
        double mean = 0;
        for (int i = 0; i < QUANTILES; i++)
            mean += pow(p[i], (double)*depth) / QUANTILES;
        if (mean * (double)t->sizes.points <= wanted) break;
    }
    return GNOMON_OK;
}

/* ---- ways ---- */

static int64_t choice(const tuning *t, int c)
{
    const int64_t k = t->p.k > 0 ? t->p.k : 1;
    return c == 0 ? 0 : (k + t->self) << c;
}

/* Where the queries' true neighbours stand among all points in the order of codes. */
static gnomon_status measure_codes(tuning *t, const gnomon_lsh *index)
{
    const gnomon_codes *c = &index->codes;
    int64_t inside[CHOICES] = {0};
    int8_t *codes = NULL;
    uint64_t *ranked = NULL;
    uint32_t *ids = NULL;
    const int64_t n = t->sizes.points, m = t->asked.count;
    const gnomon_kernels *kernels = gnomon_cpu_kernels(gnomon_context_isa(t->ctx));
    gnomon_status status = gnomon_alloc(t->ctx, m * c->count, 1, "codes", &codes);
    if (status == GNOMON_OK)
        status = gnomon_alloc(t->ctx, n, sizeof *ranked, "ranked codes", &ranked);
    if (status == GNOMON_OK) status = gnomon_alloc(t->ctx, n, sizeof *ids, "ids", &ids);
    if (status == GNOMON_OK)
        status = gnomon_codes_make(t->ctx, c, t->p.metric, &t->asked.dense, 0, m, codes);
    for (int64_t i = 0; i < n && status == GNOMON_OK; i++)
        ids[i] = (uint32_t)i;
    for (int64_t q = 0; q < m && status == GNOMON_OK; q++) {
        const int64_t begin = t->truth.offsets[q], end = t->truth.offsets[q + 1];
        kernels->rank_codes(codes + q * c->count, c->code, c->count, ids, n, ranked);
        for (int64_t i = begin; i < end; i++) {
            int64_t before = 0;
            for (int64_t j = 0; j < n; j++)
                before += ranked[j] < ranked[t->truth.ids[i]];
            for (int v = 1; v < CHOICES; v++)
                inside[v] += before < choice(t, v);
        }
    }
    t->captured[0] = 1;
    for (int v = 1; v < CHOICES; v++)
        t->captured[v] = (double)inside[v] / (double)t->truth.offsets[m];
    gnomon_free(t->ctx, codes);
    gnomon_free(t->ctx, ranked);
    gnomon_free(t->ctx, ids);
    return status;
}

static gnomon_status add_way(tuning *t, const shape *from, gnomon_lsh_trial trial)
{
    if (t->way_count == t->way_room) {
        const int64_t room = t->way_room > 0 ? 2 * t->way_room : 256;
        GNOMON_TRY(gnomon_grow(t->ctx, &t->ways, t->way_room, room, sizeof *t->ways, "trials"));
        t->way_room = room;
    }
    t->ways[t->way_count++] = (way){trial, *from};
    return GNOMON_OK;
}

static int64_t memory_of(const gnomon_lsh *index, int64_t tables)
{
    int64_t bytes = index->sets.offsets
                        ? (index->sets.count + 1 + index->sets.offsets[index->sets.count]) * 8
                        : 0;
    for (int64_t i = 0; i < tables; i++)
        bytes += gnomon_table_bytes(&index->tables[i]);
    return bytes;
}

/* Every effort with the first 'tables' of an index. */
static gnomon_status try_tables(tuning *t, const shape *from, const gnomon_lsh *index,
                                int64_t tables)
{
    gnomon_lsh_effort effort = GNOMON_LSH_EFFORT_INIT;
    gnomon_lsh_curve curve = {{0}, {0}, {0}};
    const double m = (double)t->asked.count, all = (double)t->truth.offsets[t->asked.count];
    /* more buckets than half the points are no search */
    t->truth.steps = 0;
    for (int s = 0; s < 8 && (s == 0 || tables << s <= t->sizes.points / 2); s++)
        t->truth.step[t->truth.steps++] = tables << s;
    effort.tables = tables;
    effort.probes = t->truth.step[t->truth.steps - 1] - tables;
    GNOMON_TRY(gnomon_lsh_trace(t->ctx, index, &t->asked.points, &effort, &t->truth, &curve));
    const gnomon_hasher *h = index->hasher;
    gnomon_hasher part = *h; /* that makes these tables' values alone */
    part.f.count = tables * index->depth;
    part.products = h->products / h->f.count * part.f.count;
    for (int s = 0; s < t->truth.steps; s++) {
        for (int v = 0; v < (t->has_codes ? CHOICES : 1); v++) {
            const double candidates = (double)curve.candidates[s] / m;
            const double few = (double)curve.few[s] / m;
            const double verified =
                v > 0 && (double)choice(t, v) < candidates ? (double)choice(t, v) : candidates;
            const int64_t bytes = memory_of(index, tables) + (v > 0 ? CODES * t->sizes.points : 0);
            if (bytes > t->p.memory) continue;
            const double cost = gnomon_lsh_query_cost(&t->sizes, &part, (double)t->truth.step[s],
                                                      candidates, v > 0 ? CODES : 0, verified) +
                                few * (double)t->sizes.points * gnomon_lsh_verify_cost(&t->sizes);
            GNOMON_TRY(
                add_way(t, from,
                        (gnomon_lsh_trial){.family = from->functions.family,
                                           .width = from->functions.width,
                                           .sides = h->f.sides,
                                           .tables = tables,
                                           .functions = from->depth,
                                           .probes = t->truth.step[s] - tables,
                                           .verified = choice(t, v),
                                           .recall = (double)curve.hits[s] / all * t->captured[v],
                                           .candidates = candidates,
                                           .cost = cost,
                                           .bytes = bytes}));
        }
    }
    return GNOMON_OK;
}

static gnomon_status build(const tuning *t, const shape *from, int64_t tables, int64_t codes,
                           gnomon_lsh **out)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = t->p.metric;
    o.functions = from->functions;
    o.tables = tables;
    o.broad = from->depth;
    o.codes = codes;
    GNOMON_TRY(gnomon_lsh_create(t->ctx, &o, out));
    const gnomon_status status = t->points->dense ? gnomon_lsh_add(*out, t->points->dense)
                                                  : gnomon_lsh_add_csr(*out, t->points->sparse);
    if (status == GNOMON_OK) return GNOMON_OK;
    gnomon_lsh_destroy(*out);
    *out = NULL;
    return status;
}

static gnomon_status try_shape(tuning *t, const shape *from)
{
    gnomon_lsh *index = NULL;
    /* what tables take at least, of the memory promised */
    const int64_t fit = t->p.memory / (4 * t->sizes.points + 1);
    const int64_t most = fit < MOST_TABLES ? fit : MOST_TABLES;
    if (most < 1) return GNOMON_OK;
    const bool first = t->way_count == 0 && t->has_codes;
    GNOMON_TRY(build(t, from, most, first ? CODES : 0, &index));
    gnomon_status status = first ? measure_codes(t, index) : GNOMON_OK;
    for (int64_t tables = most; tables >= 1 && status == GNOMON_OK; tables /= 2) {
        status = try_tables(t, from, index, tables);
        if (tables <= 4) break;
    }
    gnomon_lsh_destroy(index);
    return status;
}

/* Shapes of one family: with p-stable's width some typical distances, and few or many points in a
 * bucket. */
static gnomon_status try_family(tuning *t, gnomon_lsh_family family)
{
    static const double widths[] = {2, 4, 8};
    static const double crowds[] = {8, 64, 512};
    const int width_count = family == GNOMON_LSH_PSTABLE ? 3 : 1;
    for (int w = 0; w < width_count; w++) {
        int64_t before = 0;
        for (int c = 2; c >= 0; c--) {
            shape s = {.functions = GNOMON_LSH_FUNCTIONS_INIT};
            s.functions.family = family;
            s.functions.dim = t->sizes.dim;
            s.functions.seed = t->p.seed;
            if (family == GNOMON_LSH_PSTABLE) s.functions.width = widths[w] * t->near;
            if (family == GNOMON_LSH_CROSS_POLYTOPE) s.functions.sides = 16;
            if (family <= GNOMON_LSH_CROSS_POLYTOPE) s.functions.descriptor = t->p.descriptor;
            if (crowds[c] > (double)t->sizes.points / 8) continue;
            GNOMON_TRY(choose_depth(t, &s.functions, crowds[c], &s.depth));
            if (s.depth == before) continue;
            before = s.depth;
            GNOMON_TRY(try_shape(t, &s));
        }
    }
    return GNOMON_OK;
}

static gnomon_status try_all(tuning *t)
{
    switch (t->p.metric) {
    case GNOMON_L2:
        return try_family(t, GNOMON_LSH_PSTABLE);
    case GNOMON_COSINE:
        GNOMON_TRY(try_family(t, GNOMON_LSH_SIMHASH));
        return try_family(t, GNOMON_LSH_CROSS_POLYTOPE);
    case GNOMON_HAMMING:
        return try_family(t, GNOMON_LSH_BIT_SAMPLING);
    default:
        return try_family(t, GNOMON_LSH_MINHASH);
    }
}

/* ---- the test ---- */

/* Which of the query's true neighbours stands for it. */
static int64_t drawn(const tuning *t, int64_t q)
{
    const gnomon_simple key = {.key0 = (uint32_t)t->p.seed, .key1 = (uint32_t)(t->p.seed >> 32)};
    const gnomon_words w = gnomon_call(&key, GNOMON_TAG_LSH_KEY, 1, (uint64_t)q);
    const int64_t begin = t->test_truth.offsets[q];
    const uint64_t count = (uint64_t)(t->test_truth.offsets[q + 1] - begin);
    return t->test_truth.ids[begin + (int64_t)(w.w[0] * count >> 32)];
}

static gnomon_status test(tuning *t, const gnomon_lsh *index, const gnomon_lsh_effort *effort)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    const gnomon_points *q = &t->tested.points;
    o.metric = t->p.metric;
    o.k = t->p.k > 0 ? t->p.k + t->self : 0;
    o.radius = t->p.radius;
    GNOMON_TRY(q->dense ? gnomon_lsh_query(t->ctx, index, q->dense, &o, effort, &found, NULL)
                        : gnomon_lsh_query_csr(t->ctx, index, q->sparse, &o, effort, &found, NULL));
    int64_t hits = 0, trials = 0;
    double sum = 0;
    for (int64_t i = 0; i < t->tested.count; i++) {
        const int64_t begin = t->test_truth.offsets[i], end = t->test_truth.offsets[i + 1];
        if (begin == end) continue;
        const int64_t one = drawn(t, i);
        int64_t same = 0;
        for (int64_t f = found.offsets[i]; f < found.offsets[i + 1]; f++) {
            hits += found.ids[f] == one;
            for (int64_t j = begin; j < end; j++)
                same += found.ids[f] == t->test_truth.ids[j];
        }
        sum += (double)same / (double)(end - begin);
        trials++;
    }
    gnomon_neighbors_free(t->ctx, &found);
    t->out->tested = trials;
    t->out->recall = trials > 0 ? sum / (double)trials : 0;
    t->out->bound = gnomon_binomial_bound(hits, trials, (1 - t->p.confidence) / ATTEMPTS);
    return GNOMON_OK;
}

/* The cheapest way that is expected to reach this recall, -1 when there is none. */
static int64_t cheapest(const tuning *t, double recall)
{
    int64_t best = -1;
    for (int64_t i = 0; i < t->way_count; i++) {
        if (t->ways[i].trial.recall < recall || t->ways[i].trial.chosen) continue;
        if (best < 0 || t->ways[i].trial.cost < t->ways[best].trial.cost) best = i;
    }
    return best;
}

static gnomon_status give_up(tuning *t, const char *reason)
{
    t->out->exact = 1;
    t->out->reason = reason;
    return GNOMON_OK;
}

static gnomon_status choose_way(tuning *t, gnomon_lsh **out)
{
    /* standard deviations of the test by which a way must be expected to do better */
    static const double ahead[ATTEMPTS] = {3.2, 4, 5, 6.5};
    const double r = t->p.recall, spread = sqrt(r * (1 - r) / (double)t->tested.count);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const double wanted = r + ahead[attempt] * spread;
        const int64_t best = cheapest(t, wanted < 1 ? wanted : 1);
        if (best < 0) return give_up(t, "no index tried is expected to keep the promise");
        way *w = &t->ways[best];
        if (w->trial.cost >= t->out->exact_cost && !t->p.slower)
            return give_up(t, "exact search is expected to be quicker");
        gnomon_lsh *index = NULL;
        gnomon_lsh_effort effort = GNOMON_LSH_EFFORT_INIT;
        effort.probes = w->trial.probes;
        effort.verified = w->trial.verified;
        GNOMON_TRY(build(t, &w->from, w->trial.tables, w->trial.verified > 0 ? CODES : 0, &index));
        const gnomon_status status = test(t, index, &effort);
        w->trial.chosen = 1;
        if (status == GNOMON_OK && t->out->bound >= r) {
            w->trial.chosen = 2;
            index->options.effort = effort;
            *out = index;
            return GNOMON_OK;
        }
        gnomon_lsh_destroy(index);
        GNOMON_TRY(status);
    }
    return give_up(t, "the indexes tested did not keep the promise");
}

/* ---- the calls ---- */

static gnomon_status take_promise(gnomon_context *ctx, const gnomon_lsh_promise *given,
                                  const gnomon_points *points, gnomon_lsh_promise *p)
{
    GNOMON_FAIL_IF(!given, ctx, GNOMON_ERROR_ARGUMENT, "promise is NULL");
    GNOMON_FAIL_IF(given->struct_size != sizeof *p, ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.struct_size is %zu; start from GNOMON_LSH_PROMISE_INIT",
                   given->struct_size);
    *p = *given;
    GNOMON_FAIL_IF(p->metric == GNOMON_IP, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "promise.metric is ip, for which there are no hash functions");
    GNOMON_FAIL_IF(p->metric < GNOMON_L2 || p->metric > GNOMON_JACCARD, ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.metric is %d; it must be one of gnomon_metric", (int)p->metric);
    GNOMON_FAIL_IF((p->metric == GNOMON_JACCARD) != (points->sparse != NULL), ctx,
                   GNOMON_ERROR_UNSUPPORTED, "%s takes %s points", gnomon_metric_name(p->metric),
                   points->sparse ? "dense" : "sparse");
    GNOMON_FAIL_IF(!(p->recall > 0 && p->recall < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.recall is %g; it must be above 0 and below 1", p->recall);
    GNOMON_FAIL_IF(!(p->confidence > 0.5 && p->confidence < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.confidence is %g; it must be above 0.5 and below 1", p->confidence);
    GNOMON_FAIL_IF(p->k < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.k is %" PRId64 "; it must be at least 1, or 0 for a radius", p->k);
    GNOMON_FAIL_IF(p->k == 0 && !(p->radius >= 0 && isfinite(p->radius)), ctx,
                   GNOMON_ERROR_ARGUMENT,
                   "promise.radius is %g; it must be finite and not negative", p->radius);
    GNOMON_FAIL_IF(p->memory < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.memory is %" PRId64 "; it must not be negative", p->memory);
    GNOMON_FAIL_IF(p->queries < 100 || p->queries > 100000, ctx, GNOMON_ERROR_ARGUMENT,
                   "promise.queries is %" PRId64 "; it must be 100 to 100000", p->queries);
    return GNOMON_OK;
}

/* Named as in exact search. */
static gnomon_status check_points(gnomon_context *ctx, const gnomon_points *p, const char *name)
{
    GNOMON_TRY(gnomon_points_check(ctx, p, name));
    return gnomon_hasher_check_finite(ctx, p, name);
}

static void measure_points(tuning *t)
{
    const gnomon_points *p = t->points;
    t->sizes = (gnomon_lsh_sizes){t->p.metric, gnomon_points_cols(p), 0, gnomon_points_rows(p)};
    int64_t bytes;
    if (p->dense) {
        t->sizes.point = (double)(p->dense->cols * (int64_t)gnomon_dtype_size(p->dense->dtype));
        bytes = p->dense->rows * p->dense->cols * (int64_t)gnomon_dtype_size(p->dense->dtype);
    } else {
        const int64_t entries =
            p->sparse->rows > 0 ? p->sparse->offsets[p->sparse->rows] - p->sparse->offsets[0] : 0;
        t->sizes.point = p->sparse->rows > 0 ? (double)entries / (double)p->sparse->rows : 0;
        /* sets are copied into the index, eight bytes a member; that much again is its own */
        bytes = 2 * 8 * (entries + p->sparse->rows);
    }
    if (t->p.memory == 0) t->p.memory = bytes;
    t->has_codes =
        t->p.k > 0 && p->dense && t->p.metric != GNOMON_HAMMING && t->sizes.point > 2 * CODES;
}

static gnomon_status run(tuning *t, gnomon_lsh **out)
{
    gnomon_context *ctx = t->ctx;
    const int64_t given = gnomon_points_rows(t->queries), self = t->self;
    measure_points(t);
    t->out->exact_cost = gnomon_lsh_exact_cost(&t->sizes);
    if (t->sizes.points < 64 || given < 64 || t->p.k + self > t->sizes.points / 2)
        return give_up(t, "there are too few points or queries to test an index by");
    const int64_t tested = t->p.queries < given / 2 ? t->p.queries : given / 2;
    const int64_t asked = given - tested < 200 ? given - tested : 200;
    t->out->asked = asked;
    GNOMON_TRY(gnomon_some_points_take(ctx, t->queries, t->p.seed, 0, asked, &t->asked));
    GNOMON_TRY(gnomon_some_points_take(ctx, t->queries, t->p.seed, asked, tested, &t->tested));
    GNOMON_TRY(find_truth(t, &t->asked, &t->truth, &t->near));
    if (t->truth.offsets[asked] == 0)
        return give_up(t, "no query tried has a point within the radius");
    if (t->p.k == 0) t->near = t->p.radius;
    t->captured[0] = 1;
    GNOMON_TRY(look_far(t));
    /* neighbours at distance 0: a width by the others */
    if (t->near == 0) t->near = t->far[t->far_count / 2] / 8;
    if (t->p.metric == GNOMON_L2 && !(t->near > 0))
        return give_up(t, "all points tried are in one place");
    GNOMON_TRY(try_all(t));
    GNOMON_TRY(find_truth(t, &t->tested, &t->test_truth, NULL));
    return choose_way(t, out);
}

/* The trials that are shown: of each shape and number of tables the cheapest that would do, else
 * the one that finds most; and whatever was tested. */
static gnomon_status report(tuning *t)
{
    gnomon_lsh_tuning *out = t->out;
    GNOMON_TRY(gnomon_alloc(t->ctx, t->way_count, sizeof *out->trials, "trials", &out->trials));
    for (int64_t i = 0; i < t->way_count;) {
        const gnomon_lsh_trial *first = &t->ways[i].trial;
        int64_t best = i, end = i;
        for (; end < t->way_count; end++) {
            const gnomon_lsh_trial *w = &t->ways[end].trial, *b = &t->ways[best].trial;
            if (w->family != first->family || w->width != first->width ||
                w->functions != first->functions || w->tables != first->tables)
                break;
            const bool does = w->recall >= t->p.recall, did = b->recall >= t->p.recall;
            if (w->chosen) out->trials[out->trial_count++] = *w;
            if (does != did ? does : does ? w->cost < b->cost : w->recall > b->recall) best = end;
        }
        if (!t->ways[best].trial.chosen) out->trials[out->trial_count++] = t->ways[best].trial;
        i = end;
    }
    return GNOMON_OK;
}

static gnomon_status tune(gnomon_context *ctx, const gnomon_lsh_promise *promise,
                          const gnomon_points *points, const gnomon_points *queries,
                          gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_ARGUMENT, "ctx is NULL");
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, "out is NULL");
    *out = NULL;
    GNOMON_FAIL_IF(!result || result->struct_size != sizeof *result, ctx, GNOMON_ERROR_ARGUMENT,
                   "tuning is NULL or its struct_size is not set");
    GNOMON_FAIL_IF(!points->dense && !points->sparse, ctx, GNOMON_ERROR_ARGUMENT, "points is NULL");
    *result = (gnomon_lsh_tuning){.struct_size = sizeof *result, .reason = ""};
    tuning t = {.ctx = ctx, .points = points, .out = result};
    GNOMON_TRY(gnomon_lsh_check_device(ctx));
    GNOMON_TRY(take_promise(ctx, promise, points, &t.p));
    t.self = !queries->dense && !queries->sparse;
    t.queries = t.self ? points : queries;
    GNOMON_TRY(check_points(ctx, points, "base"));
    if (!t.self) GNOMON_TRY(check_points(ctx, queries, "queries"));
    gnomon_status status = run(&t, out);
    if (status == GNOMON_OK) status = report(&t);
    gnomon_some_points_free(ctx, &t.asked);
    gnomon_some_points_free(ctx, &t.tested);
    gnomon_free(ctx, t.truth.offsets);
    gnomon_free(ctx, t.truth.ids);
    gnomon_free(ctx, t.test_truth.offsets);
    gnomon_free(ctx, t.test_truth.ids);
    gnomon_free(ctx, t.far);
    gnomon_free(ctx, t.ways);
    if (status != GNOMON_OK) {
        gnomon_lsh_destroy(*out);
        *out = NULL;
        gnomon_lsh_tuning_free(ctx, result);
    }
    return status;
}

void gnomon_lsh_tuning_free(gnomon_context *ctx, gnomon_lsh_tuning *result)
{
    if (!result) return;
    gnomon_free(ctx, result->trials);
    *result = (gnomon_lsh_tuning){.struct_size = result->struct_size, .reason = ""};
}

gnomon_status gnomon_lsh_tune(gnomon_context *ctx, const gnomon_lsh_promise *promise,
                              const gnomon_matrix *points, const gnomon_matrix *queries,
                              gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    const gnomon_points p = {points, NULL}, q = {queries, NULL};
    return tune(ctx, promise, &p, &q, out, result);
}

gnomon_status gnomon_lsh_tune_csr(gnomon_context *ctx, const gnomon_lsh_promise *promise,
                                  const gnomon_csr *points, const gnomon_csr *queries,
                                  gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    const gnomon_points p = {NULL, points}, q = {NULL, queries};
    return tune(ctx, promise, &p, &q, out, result);
}
