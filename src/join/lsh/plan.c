/* Which functions, how many a table, and how many tables.
 *
 * A pair at distance r or less is in one bucket of a table of K functions with probability p(r)^K
 * at least, for families are monotone, and missed by all tables with
 *     (1 - p^K)^low (1 - p^(K+1))^high,
 * 'low' tables having K functions and 'high' ones K + 1, as in Ahle & Silvestri 2020, section 4:
 * the K that balances the work in buckets with the work on points is not an integer in general.
 * Tables are added until that is a twentieth of 1 - recall. The missed pairs' share has then at
 * most that expectation, so by Markov's inequality it exceeds 1 - recall in at most one run of
 * twenty, whatever the pairs have to do with each other.
 *
 * What rounding may do to a hash value counts as part of the miss (the families' rows tell). */
#include "join/lsh/plan.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/verify.h"
#include "lsh/families/family.h"
#include "lsh/table.h"
#include "search/form.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    SAMPLE = GNOMON_JOIN_SOME,
    BINS = 256,
    MEASURED = 1024, /* points of a task */
    MIXTURES = 16    /* numbers of shallow tables tried beside deep ones, for each depth */
};

/* One thread of an AMD Zen 3. */
static const gnomon_join_costs cpu_costs = {.product_term = 0.05,
                                            .member = 1.0,
                                            .function = 2.0,
                                            .placing = 60.0,
                                            .key_lookup = 0.3,
                                            .verifying = 15.0,
                                            .verifying_coordinate = 0.12,
                                            .filtering = 0.6,
                                            .filtering_coordinate = 0.003,
                                            .filter_coordinates = 128,
                                            .shared_member = 3.0};

/* Distances of some pairs, as bins of equally many. */
typedef struct distances_seen {
    double distance[BINS];          /* a bin's least */
    bool sparse;                    /* rows for a metric that also takes dense ones */
    double members;                 /* of a set or a sparse row, on average */
    double shared;                  /* members that two of them share */
    double heavy;                   /* of sparse points: see gnomon_sparse_shared */
    double length;                  /* of the longest point */
    double error;                   /* of a point's fp32 product, as a share of its length */
    const gnomon_join_costs *costs; /* by which tables are chosen */
} distances_seen;

/* The sample's s-th row of so many: scattered, always the same. */
static int64_t scattered(int64_t s, int64_t rows)
{
    return (int64_t)((uint64_t)(s + 1) * UINT64_C(0x9e3779b97f4a7c15) % (uint64_t)rows);
}

int64_t gnomon_join_some(int64_t rows, bool second, uint32_t *some)
{
    const int64_t count = rows < SAMPLE ? rows : SAMPLE;
    for (int64_t s = 0; s < count; s++)
        some[s] = (uint32_t)scattered(second ? s + SAMPLE : s, rows);
    return count;
}

/* Lengths of points, a task some of them. */
typedef struct measuring {
    const gnomon_search_kernels *kernels;
    const gnomon_matrix *m;
    double *most; /* a worker's largest square */
} measuring;

static void measure_some(void *arg, int64_t task, int worker)
{
    const measuring *s = arg;
    const gnomon_matrix *m = s->m;
    const int64_t end = (task + 1) * MEASURED < m->rows ? (task + 1) * MEASURED : m->rows;
    double most = s->most[worker];
    for (int64_t i = task * MEASURED; i < end; i++)
        most = fmax(most,
                    s->kernels->squares(gnomon_row_at(m, i), m->dtype, m->col_stride, m->cols, 1));
    s->most[worker] = most;
}

/* Raises *length to that of the side's longest point, whose square a device may know. */
static gnomon_status measure(const gnomon_join_state *join, const gnomon_side *side, double squares,
                             double *length)
{
    gnomon_context *ctx = join->ctx;
    const int64_t threads = gnomon_context_threads(ctx);
    measuring s = {gnomon_cpu_kernels(gnomon_context_isa(ctx))->search, side->dense, NULL};
    if (squares < 0) {
        GNOMON_TRY(gnomon_alloc_zero(ctx, threads, sizeof *s.most, "lengths", &s.most));
        gnomon_parallel(ctx, (side->rows + MEASURED - 1) / MEASURED, measure_some, &s);
        for (int64_t w = 0; w < threads; w++)
            squares = fmax(squares, s.most[w]);
        gnomon_free(ctx, s.most);
    }
    *length = fmax(*length, sqrt(squares));
    return GNOMON_OK;
}

static double mean_members(const gnomon_sets *sets)
{
    return sets->count > 0 ? (double)sets->offsets[sets->count] / (double)sets->count : 0;
}

/* Distances between the rows of a sample, a task per row; those of a point and itself are farther
 * than all. */
typedef struct sampling {
    const gnomon_join_state *join;
    const gnomon_verifier *verifier;
    bool sampled; /* the sides hold the sample alone */
    int64_t m;
    uint32_t p_some[SAMPLE], q_some[SAMPLE];
    uint64_t *bits; /* of distances, in the order of these numbers: none is negative */
} sampling;

static void sample_row(void *arg, int64_t s, int worker)
{
    const sampling *l = arg;
    const int64_t i = l->sampled ? s : l->p_some[s];
    const gnomon_query query = gnomon_verifier_row(l->verifier, i, worker);
    for (int64_t u = 0; u < l->m; u++) {
        const bool same = l->join->self && l->p_some[s] == l->q_some[u];
        const int64_t j = l->sampled ? u : l->q_some[u];
        const double distance =
            same ? (double)INFINITY : gnomon_verifier_distance(l->verifier, query, i, j);
        memcpy(&l->bits[s * l->m + u], &distance, sizeof distance);
    }
}

static gnomon_status scratch_open(gnomon_context *ctx, int64_t n, gnomon_table_scratch *scratch)
{
    for (int side = 0; side < 2; side++) {
        GNOMON_TRY(gnomon_alloc(ctx, n, sizeof(uint64_t), "distances", &scratch->keys[side]));
        GNOMON_TRY(gnomon_alloc(ctx, n, sizeof(uint32_t), "distances", &scratch->ids[side]));
    }
    return GNOMON_OK;
}

/* Fills bins with those of the numbers in scratch->keys[0], bits of distances, that are finite. Of
 * cells from the least to the largest only those that a bin begins in are put in order. */
static void fill_bins(int64_t n, gnomon_table_scratch *scratch, distances_seen *out)
{
    enum { CELLS = 1 << 14 };
    const double infinity = INFINITY;
    uint64_t *bits = scratch->keys[0], *wanted = scratch->keys[1];
    uint64_t none, least = UINT64_MAX, most = 0;
    uint32_t counts[CELLS] = {0};
    bool begins[CELLS] = {false};
    int64_t place[BINS], count = 0, some = 0, before = 0, passed = 0, cell = 0;
    int shift = 0;
    memcpy(&none, &infinity, sizeof none);
    for (int64_t i = 0; i < n; i++) {
        if (bits[i] >= none) continue;
        least = bits[i] < least ? bits[i] : least;
        most = bits[i] > most ? bits[i] : most;
        bits[count++] = bits[i];
    }
    memset(out->distance, 0, sizeof out->distance);
    if (count == 0) return;
    while ((most - least) >> shift >= CELLS)
        shift++;
    for (int64_t i = 0; i < count; i++)
        counts[(bits[i] - least) >> shift]++;
    for (int64_t b = 0; b < BINS; b++) {
        const int64_t rank = b * count / BINS;
        for (; rank >= before + counts[cell]; cell++) {
            before += counts[cell];
            passed += begins[cell] ? 0 : counts[cell];
        }
        begins[cell] = true;
        place[b] = rank - passed;
    }
    for (int64_t i = 0; i < count; i++)
        if (begins[(bits[i] - least) >> shift]) wanted[some++] = bits[i];
    gnomon_table_sort(wanted, some, 0, scratch);
    for (int64_t b = 0; b < BINS; b++)
        memcpy(&out->distance[b], &scratch->keys[0][place[b]], sizeof(double));
}

/* Fills bins with the distances of the sample, which the sides of 'some' may be. */
static gnomon_status sample_distances(gnomon_join_state *some, bool sampled, distances_seen *out)
{
    gnomon_context *ctx = some->ctx;
    gnomon_table_scratch scratch = {{NULL, NULL}, {NULL, NULL}};
    gnomon_verifier verifier;
    sampling l = {.join = some, .verifier = &verifier, .sampled = sampled};
    const int64_t n = gnomon_join_some(some->p.rows, false, l.p_some);
    l.m = gnomon_join_some(some->q.rows, true, l.q_some);
    gnomon_status status = scratch_open(ctx, n * l.m, &scratch);
    if (status == GNOMON_OK) status = gnomon_verifier_open(some, &verifier);
    if (status == GNOMON_OK) {
        l.bits = scratch.keys[0];
        gnomon_parallel(ctx, n, sample_row, &l);
        gnomon_verifier_close(&verifier);
        fill_bins(n * l.m, &scratch, out);
    }
    for (int side = 0; side < 2; side++) {
        gnomon_free(ctx, scratch.keys[side]);
        gnomon_free(ctx, scratch.ids[side]);
    }
    return status;
}

/* Whether what rounding takes from the family's values depends on how long points are: it does
 * where values are steps of some width. */
static bool measures_lengths(gnomon_metric metric)
{
    const gnomon_family_row *row = gnomon_family_row_of(gnomon_metric_family(metric, 0));
    return row != NULL && row->width && row->rounding != NULL;
}

/* How far fp32 sums of a point with a normal direction may be off, as a share of its length. */
static double product_error(int64_t d)
{
    return (32 + (double)d / 16) * 0x1p-24 * sqrt((double)d);
}

/* Of sparse rows: the longest, and what sums of the one with most entries may be off: an entry
 * after the other is added, in fp64 where rows are. */
static void measure_sparse(const gnomon_join_state *join, distances_seen *out)
{
    const gnomon_search_kernels *kernels =
        gnomon_cpu_kernels(gnomon_context_isa(join->ctx))->search;
    const gnomon_side *sides[] = {&join->p, &join->q};
    const bool lengths = measures_lengths(join->options.metric);
    for (int side = 0; side < 2; side++) {
        const gnomon_sets *rows = &sides[side]->sets;
        int64_t most = 0;
        for (int64_t i = 0; i < rows->count; i++) {
            const gnomon_sparse_row row = gnomon_sparse_row_at(rows, i);
            most = row.count > most ? row.count : most;
            if (lengths)
                out->length = fmax(out->length, sqrt(kernels->sparse_products(&row, &row)));
        }
        const bool f64 = sides[side]->csr->dtype == GNOMON_F64;
        const double roundings = f64 ? 4 : (double)most + 4;
        out->error = fmax(out->error, roundings * 0x1p-24 * sqrt((double)most));
    }
}

static gnomon_status read_pair(gnomon_join_state *join, const gnomon_join_sample *sample,
                               distances_seen *out)
{
    gnomon_join_state some = *join;
    if (sample != NULL) {
        some.p.dense = &sample->p;
        some.q.dense = &sample->q;
    }
    GNOMON_TRY(sample_distances(&some, sample != NULL, out));
    if (join->p.csr == NULL) out->error = product_error(join->p.cols);
    if (gnomon_metric_of_sets(join->options.metric)) {
        out->members = (mean_members(&join->p.sets) + mean_members(&join->q.sets)) / 2;
        double sum = 0;
        for (int64_t b = 0; b < BINS; b++) /* |A n B| = (1 - d) (|A| + |B|) / (2 - d) */
            sum += (1 - out->distance[b]) / (2 - out->distance[b]);
        out->shared = sum / BINS * 2 * out->members;
    } else if (join->p.csr != NULL) {
        out->sparse = true;
        out->members = (mean_members(&join->p.sets) + mean_members(&join->q.sets)) / 2;
        GNOMON_TRY(
            gnomon_sparse_shared(join->ctx, join->p.csr, join->q.csr, &out->shared, &out->heavy));
        measure_sparse(join, out);
    } else if (measures_lengths(join->options.metric)) {
        GNOMON_TRY(measure(join, &join->p, sample != NULL ? sample->squares[0] : -1, &out->length));
        if (!join->self)
            GNOMON_TRY(
                measure(join, &join->q, sample != NULL ? sample->squares[1] : -1, &out->length));
    }
    return GNOMON_OK;
}

/* The probability that a function joins two points at this distance. */
static gnomon_status collision(gnomon_join_state *join, const gnomon_lsh_functions *f,
                               double distance, double *p)
{
    const double most = gnomon_family_most(gnomon_family_row_of(f->family), f->dim);
    return gnomon_lsh_collision(join->ctx, f, fmin(distance, most), p);
}

static double rounding_loss(const gnomon_lsh_functions *f, const distances_seen *l)
{
    const gnomon_family_row *row = gnomon_family_row_of(f->family);
    return row->rounding ? row->rounding(f, l->error, l->length) : 0;
}

/* ---- costs ---- */

static double function_cost(const gnomon_join_costs *c, const gnomon_lsh_functions *f,
                            const distances_seen *l)
{
    const gnomon_family_row *row = gnomon_family_row_of(f->family);
    if (row->members > 0) return row->members * c->member * l->members + c->function;
    if (row->points == GNOMON_POINTS_BITS) return c->bit + c->function;
    if (l->sparse) return GNOMON_SPARSE_PRODUCT_COST * l->members + c->function;
    return c->product_term * (double)f->dim + c->function;
}

static double all_pairs(const gnomon_join_state *join)
{
    const double pairs = (double)join->p.rows * (double)join->q.rows;
    return join->self ? pairs / 2 : pairs;
}

static double coordinates_of(const gnomon_join_state *join, const distances_seen *l)
{
    return join->p.csr != NULL ? l->members : (double)join->p.cols;
}

/* What a plan costs by these figures. */
static double plan_cost(const gnomon_join_state *join, const distances_seen *l,
                        const gnomon_join_costs *c, const gnomon_join_plan *plan)
{
    const double tables = (double)gnomon_plan_tables(plan), d = coordinates_of(join, l);
    const double points = (double)join->p.rows + (join->self ? 0 : (double)join->q.rows);
    const double functions = (double)plan->functions.count;
    return c->start + tables * c->table +
           points * (functions * function_cost(c, &plan->functions, l) +
                     tables * (c->placing + c->placing_coordinate * d)) +
           plan->candidates *
               (c->key_lookup * tables / 2 + c->verifying +
                (l->sparse ? GNOMON_SPARSE_MERGE_COST : c->verifying_coordinate) * d);
}

static double exact_cost(const gnomon_join_state *join, const distances_seen *l,
                         const gnomon_join_costs *c)
{
    if (gnomon_metric_of_sets(join->options.metric))
        return all_pairs(join) * c->shared_member * l->shared *
                   fmin(1, 2 * join->options.threshold) +
               (double)(join->p.rows + join->q.rows) * l->members * 20;
    if (l->sparse)
        return all_pairs(join) *
               gnomon_sparse_exact_cost(join->self ? GNOMON_FORM_SELF_JOIN : GNOMON_FORM_THRESHOLD,
                                        l->shared, l->heavy);
    const double coordinates = fmin((double)join->p.cols, c->filter_coordinates);
    return all_pairs(join) * (c->filtering + c->filtering_coordinate * coordinates);
}

/* ---- tables ---- */

/* Tables of 'depth' functions that bring what has been missed down to 'miss'. */
static int64_t tables_for(double near, int64_t depth, double missed, double miss)
{
    const double hit = pow(near, (double)depth);
    if (!(missed > miss)) return 0;
    if (hit >= 1) return 1;
    const double tables = ceil(log(miss / missed) / log1p(-hit));
    return tables <= GNOMON_JOIN_TABLES ? (int64_t)tables : GNOMON_JOIN_TABLES + 1;
}

/* Takes low tables of 'depth' functions and as many of one more as it needs, where that costs less
 * than the plan so far. met[k]: share of the pairs that a table of k functions compares. */
static void consider(const gnomon_join_state *join, const distances_seen *l,
                     const gnomon_lsh_functions *f, double near, int64_t depth, int64_t low,
                     const double *same_bucket, double miss, gnomon_join_plan *plan)
{
    gnomon_join_plan next = *plan;
    const double hit = pow(near, (double)depth);
    const double missed = hit >= 1 && low > 0 ? 0 : exp((double)low * log1p(-fmin(hit, 1)));
    const int64_t high =
        low > 0 && !(missed > miss) ? 0 : tables_for(near, depth + 1, missed, miss);
    if (low + high > GNOMON_JOIN_TABLES) return;
    const double deep_hit = pow(near, (double)depth + 1);
    next.functions = *f;
    next.functions.count = low * depth + high * (depth + 1);
    next.depth = depth;
    next.shallow = low;
    next.deep = high;
    next.near = near;
    next.miss = high == 0       ? missed
                : deep_hit >= 1 ? 0
                                : missed * exp((double)high * log1p(-deep_hit));
    next.candidates = all_pairs(join) *
                      ((double)low * same_bucket[depth] + (double)high * same_bucket[depth + 1]);
    next.cost = plan_cost(join, l, l->costs, &next);
    if (gnomon_plan_tables(plan) == 0 || next.cost < plan->cost) *plan = next;
}

/* All depths and tables of functions of one kind. */
static gnomon_status try_functions(gnomon_join_state *join, const distances_seen *l,
                                   const gnomon_lsh_functions *f, double miss,
                                   gnomon_join_plan *plan)
{
    double near, p[BINS], same_bucket[GNOMON_JOIN_DEPTHS + 2] = {0};
    GNOMON_TRY(collision(join, f, join->options.threshold, &near));
    near -= rounding_loss(f, l);
    if (!(near > 0.05)) return GNOMON_OK;
    for (int64_t b = 0; b < BINS; b++) {
        GNOMON_TRY(collision(join, f, l->distance[b], &p[b]));
        double power = 1;
        for (int64_t k = 0; k < GNOMON_JOIN_DEPTHS + 2; k++, power *= p[b])
            same_bucket[k] += power / BINS;
    }
    for (int64_t depth = 1; depth <= GNOMON_JOIN_DEPTHS; depth++) {
        const int64_t most = tables_for(near, depth, 1, miss);
        if (most > GNOMON_JOIN_TABLES) break;
        /* what a mixture costs bends little between its ends */
        const int64_t step = most / MIXTURES + 1;
        for (int64_t low = 0; low < most; low += step)
            consider(join, l, f, near, depth, low, same_bucket, miss, plan);
        consider(join, l, f, near, depth, most, same_bucket, miss, plan);
    }
    return GNOMON_OK;
}

/* The functions of the metric, of all widths where they have one. */
static gnomon_status try_all(gnomon_join_state *join, distances_seen *l, gnomon_join_plan *plan)
{
    static const double widths[] = {0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 16, 32, 64};
    enum { WIDTHS = sizeof widths / sizeof widths[0] };
    const double r = join->options.threshold, miss = (1 - join->options.recall) / 20;
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    f.dim = join->p.cols;
    f.seed = join->options.seed;
    f.family = gnomon_metric_family(join->options.metric, 0);
    const gnomon_family_row *row = gnomon_family_row_of(f.family);
    if (row->width) {
        /* duplicates have the same values whatever the width */
        const double unit = r > 0 ? r : fmax(l->distance[0], FLT_MIN);
        if (r == 0) l->length = 0;
        for (int i = 0; i < WIDTHS; i++) {
            f.width = unit * widths[i];
            if (isfinite(f.width)) GNOMON_TRY(try_functions(join, l, &f, miss, plan));
        }
        return GNOMON_OK;
    }
    if (r > gnomon_family_most(row, f.dim)) return GNOMON_OK;
    return try_functions(join, l, &f, miss, plan);
}

gnomon_status gnomon_join_plan_make(gnomon_join_state *join, const gnomon_join_sample *sample,
                                    gnomon_join_plan *plan)
{
    const gnomon_join_costs *costs = sample != NULL ? &sample->costs : &cpu_costs;
    distances_seen l = {.costs = join->options.method == GNOMON_JOIN_LSH ? &cpu_costs : costs};
    *plan = (gnomon_join_plan){.by_device = l.costs != &cpu_costs};
    GNOMON_TRY(read_pair(join, sample, &l));
    GNOMON_TRY(try_all(join, &l, plan));
    plan->exact_cost = exact_cost(join, &l, costs);
    if (gnomon_plan_tables(plan) > 0) plan->cost = plan_cost(join, &l, costs, plan);
    return GNOMON_OK;
}
