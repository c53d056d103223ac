/* Ways that an index could take: each shape is built with a few points and probed by a few
 * queries.
 *
 * Whether a query meets a true neighbour depends on the two alone, so that recall is measured on
 * the neighbours themselves; how many other points it meets is estimated by a sample of them. */
#include "base/error.h"
#include "base/memory.h"
#include "lsh/families/family.h"
#include "lsh/tune/tuning.h"

#include <math.h>
#include <string.h>

enum {
    MOST_FUNCTIONS = 40, /* of a table */
    WHOLE = 8192,        /* no sample of so few points */
    SAMPLE = 4096,
    NEIGHBOURS = 10, /* of a query, that are counted */
    QUERIES = 64,
    STEPS = 8,
    MOST_BUCKETS = 1024,
    MOST_HASHES = 256 /* of a set */
};

/* ---- some points ---- */

/* Evenly chosen ones of a query's neighbours; how many. */
static int64_t choose_neighbours(const gnomon_asked *a, int64_t q, int64_t *ids)
{
    const int64_t begin = a->offsets[q], all = a->offsets[q + 1] - begin;
    const int64_t count = all < NEIGHBOURS ? all : NEIGHBOURS;
    for (int64_t i = 0; i < count; i++)
        ids[i] = a->ids[begin + (2 * i + 1) * all / (2 * count)];
    return count;
}

static gnomon_status choose_points(gnomon_tuning *t, int64_t queries)
{
    gnomon_context *ctx = t->ctx;
    int64_t *rows = NULL;
    GNOMON_TRY(gnomon_alloc_zero(ctx, queries + 1, sizeof *t->offsets, "neighbours", &t->offsets));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(queries, NEIGHBOURS), sizeof *t->ids, "neighbours",
                            &t->ids));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(queries, NEIGHBOURS), sizeof *rows, "neighbours", &rows));
    int64_t at = 0;
    for (int64_t q = 0; q < queries; q++) {
        at += choose_neighbours(&t->asked, q, rows + at);
        t->offsets[q + 1] = at;
    }
    gnomon_status status = GNOMON_OK;
    const bool whole = t->sizes.points <= WHOLE;
    t->sampled = whole ? 0 : at;
    t->scale = whole ? 1 : (double)t->sizes.points / SAMPLE;
    t->tried = t->points;
    for (int64_t i = 0; i < at; i++)
        t->ids[i] = whole ? rows[i] : i;
    if (!whole) {
        status =
            gnomon_some_points_with(ctx, t->points, rows, at, t->p.seed + 2, 0, SAMPLE, &t->some);
        t->tried = &t->some.points;
    }
    gnomon_free(ctx, rows);
    return status;
}

/* ---- ways ---- */

gnomon_status gnomon_tuning_add_way(gnomon_context *ctx, gnomon_ways *ways, const gnomon_way *way)
{
    if (ways->count == ways->room) {
        const int64_t room = ways->room > 0 ? 2 * ways->room : 256;
        GNOMON_TRY(gnomon_grow(ctx, &ways->way, ways->room, room, sizeof *ways->way, "trials"));
        ways->room = room;
    }
    ways->way[ways->count++] = *way;
    return GNOMON_OK;
}

/* What queries met after a step: candidates per query, and how many were too few. */
static void mean_candidates(const gnomon_lsh_trace *trace, int64_t queries, int64_t step,
                            double *mean, double *few)
{
    *mean = *few = 0;
    for (int64_t q = 0; q < queries; q++) {
        const float candidates = trace->candidates[q * trace->steps + step];
        if (candidates < 0)
            *few += 1 / (double)queries;
        else
            *mean += (double)candidates / (double)queries;
    }
}

static void mean_share(const gnomon_lsh_trace *trace, int64_t queries, int64_t step, int64_t choice,
                       double *mean, double *spread)
{
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t q = 0; q < queries; q++) {
        if (trace->offsets[q] == trace->offsets[q + 1]) continue;
        const double share =
            (double)trace->share[(q * trace->steps + step) * trace->choices + choice];
        sum += share;
        squares += share * share;
        count++;
    }
    *mean = count > 0 ? sum / (double)count : 0;
    const double variance = count > 0 ? squares / (double)count - *mean * *mean : 0;
    *spread = variance > 0 ? sqrt(variance) : 0;
}

/* Buckets a query until a step. */
static double mean_buckets(const gnomon_lsh_trace *trace, int64_t queries, int64_t step)
{
    double sum = 0;
    if (!trace->limits) return (double)trace->step[step];
    for (int64_t q = 0; q < queries; q++)
        sum += (double)trace->buckets[q * trace->steps + step];
    return sum / (double)queries;
}

gnomon_status gnomon_tuning_add_ways(gnomon_tuning *t, const gnomon_shape *from,
                                     const gnomon_hasher *h, int64_t depth,
                                     const gnomon_lsh_search_params *params, int64_t bytes,
                                     int64_t queries, const gnomon_lsh_trace *trace,
                                     gnomon_ways *ways)
{
    const int64_t tables = params->tables;
    gnomon_hasher part = *h; /* that makes these tables' values alone */
    part.f.count = tables * depth;
    part.products = h->products / h->f.count * part.f.count;
    const double build = gnomon_lsh_build_cost(&t->sizes, &part, tables);
    for (int64_t s = 0; s < trace->steps; s++) {
        double candidates, few;
        mean_candidates(trace, queries, s, &candidates, &few);
        for (int v = 0; v < (t->has_codes && !h->centres ? GNOMON_TUNING_CHOICES : 1); v++) {
            const bool ranked = v < trace->choices;
            gnomon_way w = {.from = *from, .build = build};
            mean_share(trace, queries, s, ranked ? v : 0, &w.trial.recall, &w.spread);
            if (!ranked) w.trial.recall *= t->captured[v];
            const int64_t code_bytes = v > 0 ? GNOMON_TUNING_CODES : 0;
            const double limit = (double)t->verified[v];
            const double verified = v > 0 && limit < candidates ? limit : candidates;
            w.trial.bytes = bytes + code_bytes * t->sizes.points;
            if (w.trial.bytes > t->p.memory) continue;
            w.trial.cost = gnomon_lsh_query_cost(&t->sizes, &part, mean_buckets(trace, queries, s),
                                                 candidates, code_bytes, verified) +
                           few * (double)t->sizes.points * gnomon_lsh_verify_cost(&t->sizes);
            w.trial.family = from->functions.family;
            w.trial.width = from->functions.width;
            w.trial.sides = h->f.sides;
            w.trial.centres = h->f.centre_count;
            w.trial.tables = tables;
            w.trial.functions = from->depth;
            w.trial.fine = from->fine;
            w.trial.probes = trace->limits ? params->probes : trace->step[s] - tables;
            w.trial.coarse = trace->limits ? params->coarse : 0;
            w.trial.limit = trace->limits ? trace->step[s] : 0;
            w.trial.rerank = t->verified[v];
            w.trial.candidates = candidates;
            GNOMON_TRY(gnomon_tuning_add_way(t->ctx, ways, &w));
        }
    }
    return GNOMON_OK;
}

/* ---- shapes ---- */

/* What the first 'tables' take once all points are in them. A bucket is at most as rare among all
 * as it is in the sample. */
static int64_t memory_of(const gnomon_tuning *t, const gnomon_lsh *index, int64_t tables)
{
    const int64_t n = t->sizes.points;
    /* sparse rows are copied, as many entries of each as point says */
    int64_t bytes =
        t->points->sparse ? (int64_t)(t->sizes.point * t->sizes.entry + t->sizes.row) * n : 0;
    for (int64_t i = 0; i < tables; i++) {
        gnomon_table table = index->tables[i];
        const double buckets = (double)table.buckets * t->scale;
        table.entries = n;
        table.buckets = t->scale > 1 && buckets > (double)n ? n : (int64_t)buckets;
        table.bits = gnomon_table_bits(table.buckets);
        bytes += gnomon_table_bytes(&table);
    }
    return bytes;
}

typedef struct trying {
    gnomon_tuning *t;
    int64_t count; /* queries */
    gnomon_matrix dense;
    gnomon_csr sparse;
    gnomon_points queries;
    float *candidates, *share, *buckets;
} trying;

/* A trace without its steps. */
static gnomon_lsh_trace trace_of(const trying *y, const int64_t *step)
{
    static const int64_t all = 0;
    const gnomon_tuning *t = y->t;
    return (gnomon_lsh_trace){.offsets = t->offsets,
                              .ids = t->ids,
                              .least = t->p.k > 0 ? t->p.k + t->self : 0,
                              .step = step,
                              .verified = &all,
                              .choices = 1,
                              .sampled = t->sampled,
                              .scale = t->scale,
                              .buckets = y->buckets,
                              .candidates = y->candidates,
                              .share = y->share};
}

static gnomon_status try_trace(trying *y, const gnomon_shape *from, const gnomon_lsh *index,
                               const gnomon_lsh_search_params *params,
                               const gnomon_lsh_trace *trace)
{
    gnomon_tuning *t = y->t;
    GNOMON_TRY(gnomon_lsh_trace_queries(t->ctx, index, &y->queries, params, trace));
    return gnomon_tuning_add_ways(t, from, index->hasher, index->depth, params,
                                  memory_of(t, index, params->tables), y->count, trace, &t->ways);
}

/* The first 'tables' of an index in two levels: fine buckets, then coarse ones, until a limit of
 * candidates, so that a query goes as far as it has to. */
static gnomon_status try_levels(trying *y, const gnomon_shape *from, const gnomon_lsh *index,
                                int64_t tables)
{
    static const int64_t more[] = {0, 3}; /* fine buckets per table */
    enum { BROAD = 16 };                  /* coarse ones at most */
    const int64_t n = y->t->sizes.points;
    int64_t step[STEPS];
    gnomon_lsh_trace trace = trace_of(y, step);
    gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
    trace.limits = true;
    for (int i = 0; i < STEPS; i++) {
        const int64_t least = 2 * trace.least, at = n >> (STEPS + 1 - i);
        if (at >= least && at > 0) step[trace.steps++] = at;
    }
    if (trace.steps == 0) return GNOMON_OK;
    params.tables = tables;
    params.coarse = BROAD * tables;
    for (int i = 0; i < 2; i++) {
        params.probes = more[i] * tables;
        GNOMON_TRY(try_trace(y, from, index, &params, &trace));
    }
    return GNOMON_OK;
}

/* Every number of probes with the first 'tables' of an index. */
static gnomon_status try_tables(trying *y, const gnomon_shape *from, const gnomon_lsh *index,
                                int64_t tables)
{
    const gnomon_tuning *t = y->t;
    int64_t step[STEPS];
    gnomon_lsh_trace trace = trace_of(y, step);
    gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
    if (from->fine > 0) return try_levels(y, from, index, tables);
    /* more buckets than half the points are no search */
    const int64_t half = t->sizes.points / 2;
    const int64_t most = half < MOST_BUCKETS ? half : MOST_BUCKETS;
    for (; trace.steps < STEPS && (trace.steps == 0 || tables << trace.steps <= most);
         trace.steps++)
        step[trace.steps] = tables << trace.steps;
    params.tables = tables;
    params.probes = step[trace.steps - 1] - tables;
    return try_trace(y, from, index, &params, &trace);
}

static int64_t most_tables(gnomon_metric metric)
{
    /* functions that tell little, and cost little */
    return gnomon_metric_of_sets(metric) || gnomon_metric_takes(metric, GNOMON_POINTS_BITS) ? 64
                                                                                            : 16;
}

static gnomon_status try_shape(trying *y, const gnomon_shape *from)
{
    gnomon_tuning *t = y->t;
    gnomon_lsh *index = NULL;
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = t->p.metric;
    o.functions = from->functions;
    o.coarse = from->depth;
    o.fine = from->fine;
    /* what tables take at least, of the memory guaranteed */
    const int64_t fit = t->p.memory / (4 * t->sizes.points + 1);
    o.tables = most_tables(t->p.metric);
    while (o.tables > fit || (gnomon_metric_of_sets(t->p.metric) && o.tables > 4 &&
                              o.tables * (o.coarse + o.fine) > MOST_HASHES))
        o.tables /= 2;
    if (o.tables < 1) return GNOMON_OK;
    GNOMON_TRY(gnomon_lsh_create(t->ctx, &o, &index));
    gnomon_status status = t->tried->dense ? gnomon_lsh_add(index, t->tried->dense)
                                           : gnomon_lsh_add_csr(index, t->tried->sparse);
    for (int64_t tables = o.tables; tables >= 1 && status == GNOMON_OK; tables /= 2) {
        status = try_tables(y, from, index, tables);
        if (tables <= 4) break;
    }
    gnomon_lsh_destroy(index);
    return status;
}

enum { QUANTILES = 24 };

/* How many functions a table takes so that a random point shares a bucket with 'wanted' others.
 * p: how often one function brings random pairs together, by their distances' quantiles. */
static int64_t choose_depth(const gnomon_tuning *t, const double p[QUANTILES], double wanted)
{
    int64_t depth = 1;
    for (; depth < MOST_FUNCTIONS; depth++) {
        double mean = 0;
        for (int i = 0; i < QUANTILES; i++)
            mean += pow(p[i], (double)depth) / QUANTILES;
        if (mean * (double)t->sizes.points <= wanted) break;
    }
    return depth;
}

/* Shapes of one family: with p-stable's width some typical distances, and few or many points in a
 * bucket. */
static gnomon_status try_family(trying *y, gnomon_lsh_family family)
{
    static const double widths[] = {2, 4, 8};
    static const double crowds[] = {8, 64, 512};
    gnomon_tuning *t = y->t;
    const gnomon_family_row *row = gnomon_family_row_of(family);
    const int width_count = row->width ? 3 : 1;
    for (int w = 0; w < width_count; w++) {
        gnomon_shape s = {.functions = GNOMON_LSH_FUNCTIONS_INIT};
        double p[QUANTILES];
        s.functions.family = family;
        s.functions.dim = t->sizes.dim;
        s.functions.seed = t->p.seed;
        if (row->width) s.functions.width = widths[w] * t->near;
        if (row->sides) s.functions.sides = 16;
        if (row->directions) s.functions.descriptor = t->p.descriptor;
        for (int i = 0; i < QUANTILES; i++)
            GNOMON_TRY(gnomon_lsh_collision(
                t->ctx, &s.functions, t->far[(2 * i + 1) * t->far_count / (2 * QUANTILES)], &p[i]));
        int64_t before = 0, coarse = 0;
        for (int c = 2; c >= 0; c--) {
            if (crowds[c] > (double)t->sizes.points / 8) continue;
            s.depth = choose_depth(t, p, crowds[c]);
            if (s.depth != before) GNOMON_TRY(try_shape(y, &s));
            before = s.depth;
            if (coarse == 0) coarse = s.depth;
        }
        /* two levels: the coarsest of these, cut down to the finest */
        if (coarse == 0 || s.depth == coarse) continue;
        s.fine = s.depth - coarse;
        s.depth = coarse;
        GNOMON_TRY(try_shape(y, &s));
    }
    return GNOMON_OK;
}

static gnomon_status try_families(trying *y)
{
    const gnomon_lsh_guarantee *p = &y->t->p;
    for (int i = 0; gnomon_metric_family(p->metric, i) != 0; i++) {
        const gnomon_lsh_family family = gnomon_metric_family(p->metric, i);
        if (p->family != 0 && p->family != family) continue;
        if (gnomon_family_row_of(family)->centres == 0) GNOMON_TRY(try_family(y, family));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_tuning_try(gnomon_tuning *t)
{
    trying y = {.t = t};
    const gnomon_some_points *asked = &t->asked.some;
    y.count = asked->count < QUERIES ? asked->count : QUERIES;
    if (asked->points.dense) {
        y.dense = asked->dense;
        y.dense.rows = y.count;
        y.queries.dense = &y.dense;
    } else {
        y.sparse = asked->sparse;
        y.sparse.rows = y.count;
        y.queries.sparse = &y.sparse;
    }
    GNOMON_TRY(choose_points(t, y.count));
    gnomon_status status = gnomon_alloc(t->ctx, gnomon_times(y.count, STEPS), sizeof *y.candidates,
                                        "candidates", &y.candidates);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(t->ctx, gnomon_times(y.count, STEPS), sizeof *y.share, "shares", &y.share);
    if (status == GNOMON_OK)
        status = gnomon_alloc(t->ctx, gnomon_times(y.count, STEPS), sizeof *y.buckets, "buckets",
                              &y.buckets);
    if (status == GNOMON_OK) status = try_families(&y);
    gnomon_free(t->ctx, y.candidates);
    gnomon_free(t->ctx, y.share);
    gnomon_free(t->ctx, y.buckets);
    return status;
}
