/* The index itself: the cheapest shape is built, its search parameters chosen on it, and the
 * guarantee tested with queries that nothing was chosen by. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "lsh/tune/tuning.h"

#include <math.h>
#include <string.h>

/* A pass that measures search parameters goes up to four times as far as a query, and ranks what it
 * meets. */
enum { STEPS = 9, SHAPES = 3, MEASURING = 6 };

/* Each attempt has its part of the doubt, and is expected to win by so many standard errors. */
static const double doubts[GNOMON_TUNING_ATTEMPTS] = {0.5, 0.25, 0.125, 0.125},
                    ahead[GNOMON_TUNING_ATTEMPTS] = {1.5, 3, 5, 9};

double gnomon_tuning_doubt(double confidence, int attempt)
{
    return (1 - confidence) * doubts[attempt];
}

typedef struct building {
    gnomon_tuning *t;
    gnomon_lsh *index;
    gnomon_ways ways; /* with this index */
    int attempt;
} building;

/* ---- choosing ---- */

/* The cheapest way that is expected to pass the test, of one level alone or of any; -1 when there
 * is none. What building takes counts, unless these ways are an index's that is there. */
static int64_t cheapest(const gnomon_tuning *t, const gnomon_ways *ways, int attempt, bool one)
{
    const bool built = ways != &t->ways;
    double least = INFINITY;
    const double doubt = gnomon_tuning_doubt(t->p.confidence, attempt);
    const double errors = sqrt(2 * log(1 / doubt)) + ahead[attempt];
    int64_t best = -1;
    for (int64_t i = 0; i < ways->count; i++) {
        const gnomon_way *w = &ways->way[i];
        double wanted = t->p.recall + errors * w->spread / sqrt((double)t->tested);
        if (wanted > 1) wanted = 1;
        if (w->trial.recall < wanted - 1e-6 || w->trial.chosen) continue;
        if (one && w->trial.fine > 0) continue;
        const double cost = gnomon_lsh_share(&t->charge, w->trial.cost, built ? 0 : w->build);
        if (cost >= least) continue;
        least = cost;
        best = i;
    }
    return best;
}

double gnomon_tuning_price(const gnomon_tuning *t, const gnomon_way *way)
{
    return gnomon_lsh_share(&t->charge, way->trial.cost, way->build);
}

const gnomon_way *gnomon_tuning_promised(const gnomon_tuning *t)
{
    const int64_t best = cheapest(t, &t->ways, 0, false);
    return best >= 0 ? &t->ways.way[best] : NULL;
}

/* What the test takes with true neighbours that are not known yet. */
static double test_cost(const gnomon_tuning *t, const gnomon_way *w)
{
    int64_t known = 0;
    for (int b = 0; b < GNOMON_TUNING_BATCHES; b++)
        known += t->tests[b].offsets ? t->tests[b].some.count : 0;
    return (double)(t->tested - known) * t->charge.exact + (double)t->tested * w->trial.cost;
}

/* What it takes until a shape that was tried on some points answers. A second one is built beside
 * one of two levels, and one of them again. */
static double index_cost(const gnomon_tuning *t, const gnomon_way *w)
{
    const double builds = w->from.fine > 0 ? 3 : 1;
    const double measured = MEASURING * (double)t->asked.some.count * w->trial.cost;
    return builds * (w->build + measured) + test_cost(t, w);
}

static gnomon_status use_quicker(gnomon_tuning *t)
{
    return gnomon_tuning_use_exact(t, "exact search is expected to be faster");
}

static bool same_shape(const gnomon_lsh_trial *a, const gnomon_lsh_trial *b)
{
    return a->family == b->family && a->width == b->width && a->functions == b->functions &&
           a->fine == b->fine && a->tables == b->tables && a->centres == b->centres;
}

/* ---- building ---- */

static gnomon_status build(const gnomon_tuning *t, const gnomon_way *w, gnomon_lsh **out)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = t->p.metric;
    o.functions = w->from.functions;
    o.tables = w->trial.tables;
    o.coarse = w->from.depth;
    o.fine = w->from.fine;
    GNOMON_TRY(gnomon_lsh_create(t->ctx, &o, out));
    (*out)->memory = t->p.memory;
    if ((*out)->hasher->centres != NULL) (*out)->hasher->known = t->lists;
    const gnomon_status status = t->points->dense ? gnomon_lsh_add(*out, t->points->dense)
                                                  : gnomon_lsh_add_csr(*out, t->points->sparse);
    (*out)->hasher->known = NULL;
    if (status == GNOMON_OK) return GNOMON_OK;
    gnomon_lsh_destroy(*out);
    *out = NULL;
    return status;
}

/* The codes of all points change between tuning and index, which is as if made with them. */
static void lend_codes(gnomon_tuning *t, gnomon_lsh *index)
{
    const gnomon_codes codes = t->codes;
    t->codes = index->codes;
    index->codes = codes;
    index->options.codes = codes.count;
}

/* Efforts around one that was chosen on some points, on all of them with all of the asked. */
static gnomon_status measure(building *s, const gnomon_way *w)
{
    static const int64_t eighths[STEPS] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
    gnomon_tuning *t = s->t;
    const int64_t tables = w->trial.tables, buckets = tables + w->trial.probes;
    const int64_t queries = t->asked.some.count;
    const bool codes = t->has_codes;
    gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
    gnomon_lsh_info info = {.struct_size = sizeof info};
    int64_t step[STEPS];
    gnomon_lsh_trace trace = {.offsets = t->asked.offsets,
                              .ids = t->asked.ids,
                              .least = t->p.k > 0 ? t->p.k + t->self : 0,
                              .step = step,
                              .verified = t->verified,
                              .choices = codes ? GNOMON_TUNING_CHOICES : 1,
                              .limits = w->trial.limit > 0,
                              .scale = 1};
    const int64_t around = trace.limits ? w->trial.limit : buckets;
    const int64_t least = trace.limits ? trace.least + 1 : tables;
    for (int i = 0; i < STEPS; i++) {
        int64_t at = around * eighths[i] / 8;
        if (at < least) at = least;
        if (trace.steps == 0 || at > step[trace.steps - 1]) step[trace.steps++] = at;
    }
    params.tables = tables;
    params.probes = trace.limits ? w->trial.probes : step[trace.steps - 1] - tables;
    params.coarse = w->trial.coarse;
    gnomon_status status = gnomon_alloc(t->ctx, gnomon_times(queries, trace.steps),
                                        sizeof *trace.candidates, "candidates", &trace.candidates);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(t->ctx, gnomon_times(gnomon_times(queries, trace.steps), trace.choices),
                         sizeof *trace.share, "shares", &trace.share);
    if (status == GNOMON_OK && trace.limits)
        status = gnomon_alloc(t->ctx, gnomon_times(queries, trace.steps), sizeof *trace.buckets,
                              "buckets", &trace.buckets);
    gnomon_lsh_describe(s->index, &info);
    if (codes) lend_codes(t, s->index);
    if (status == GNOMON_OK)
        status = gnomon_lsh_trace_queries(t->ctx, s->index, &t->asked.some.points, &params, &trace);
    if (codes) lend_codes(t, s->index);
    if (status == GNOMON_OK)
        status =
            gnomon_tuning_add_ways(t, &w->from, s->index->hasher, s->index->depth, &params,
                                   info.table_bytes + info.other_bytes, queries, &trace, &s->ways);
    gnomon_free(t->ctx, trace.candidates);
    gnomon_free(t->ctx, trace.share);
    gnomon_free(t->ctx, trace.buckets);
    return status;
}

/* ---- the test ---- */

static gnomon_status ask_batch(gnomon_tuning *t, int64_t batch, int64_t first, int64_t count)
{
    if (t->tests[batch].offsets) return GNOMON_OK;
    return gnomon_tuning_ask(t, t->asked.some.count + first, count, &t->tests[batch], NULL);
}

/* A query's share of its neighbours that was found. */
static double share_of(const gnomon_asked *asked, const gnomon_neighbors *found, int64_t q)
{
    const int64_t begin = asked->offsets[q], end = asked->offsets[q + 1];
    int64_t same = 0;
    for (int64_t f = found->offsets[q]; f < found->offsets[q + 1]; f++)
        for (int64_t j = begin; j < end; j++)
            same += found->ids[f] == asked->ids[j];
    return (double)same / (double)(end - begin);
}

static gnomon_status test_batch(gnomon_tuning *t, const gnomon_lsh *index,
                                const gnomon_lsh_search_params *params, const gnomon_asked *asked,
                                gnomon_bet *bet)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    const gnomon_points *q = &asked->some.points;
    o.metric = t->p.metric;
    o.k = t->p.k > 0 ? t->p.k + t->self : 0;
    o.radius = t->p.radius;
    GNOMON_TRY(q->dense ? gnomon_lsh_query(t->ctx, index, q->dense, &o, params, &found, NULL)
                        : gnomon_lsh_query_csr(t->ctx, index, q->sparse, &o, params, &found, NULL));
    for (int64_t i = 0; i < asked->some.count; i++) {
        if (asked->offsets[i] == asked->offsets[i + 1]) continue;
        t->shares[bet->count] = (float)share_of(asked, &found, i);
        gnomon_bet_on(bet, (double)t->shares[bet->count]);
    }
    gnomon_neighbors_free(t->ctx, &found);
    return GNOMON_OK;
}

/* Parts of the test that it takes to win where each query finds the share expected: together their
 * true neighbours are found sooner, and of few neighbours take little memory. */
static int64_t first_batch(const gnomon_tuning *t, gnomon_bet bet, double share)
{
    enum { FEW = 128 };
    const int64_t batch = gnomon_tuning_batch(t);
    int64_t count = 1;
    if (t->p.k == 0 || t->p.k > FEW) return gnomon_min(batch, t->tested);
    while (count < t->tested && !gnomon_bet_on(&bet, share))
        count++;
    return gnomon_min(gnomon_round_up(count, batch), t->tested);
}

static gnomon_status test(building *s, const gnomon_lsh_search_params *params, const gnomon_way *w,
                          bool *kept)
{
    gnomon_tuning *t = s->t;
    gnomon_bet bet;
    gnomon_bet_open(&bet, t->p.recall, w->spread, gnomon_tuning_doubt(t->p.confidence, s->attempt),
                    t->tested, t->population);
    if (t->first_batch == 0) t->first_batch = first_batch(t, bet, w->trial.recall);
    int64_t here = t->first_batch;
    for (int64_t b = 0, first = 0; first < t->tested && !bet.won; b++, first += here) {
        if (b > 0) here = gnomon_min(gnomon_tuning_batch(t), t->tested - first);
        GNOMON_TRY(ask_batch(t, b, first, here));
        GNOMON_TRY(test_batch(t, s->index, params, &t->tests[b], &bet));
    }
    t->out->tested = bet.count;
    t->out->recall = bet.count > 0 ? bet.sum / (double)bet.count : 0;
    t->out->bound = gnomon_bet_bound(&bet, t->shares, bet.count);
    if (bet.won && t->out->bound < t->p.recall) t->out->bound = t->p.recall; /* but for rounding */
    *kept = bet.won;
    return GNOMON_OK;
}

/* Ways of this index, until one meets the guarantee, or none is left that is expected to. */
static gnomon_status attempt(building *s, bool *kept)
{
    gnomon_tuning *t = s->t;
    while (s->attempt < GNOMON_TUNING_ATTEMPTS && !*kept && !t->out->exact) {
        const int64_t best = cheapest(t, &s->ways, s->attempt, false);
        if (best < 0) return GNOMON_OK;
        gnomon_way *w = &s->ways.way[best];
        if (!t->p.slower && !gnomon_lsh_pays(&t->charge, w->trial.cost, test_cost(t, w)))
            return use_quicker(t);
        gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
        params.probes = w->trial.probes;
        params.coarse = w->trial.coarse;
        params.candidates = w->trial.limit;
        params.rerank = w->trial.rerank;
        const bool codes = params.rerank > 0;
        if (codes) lend_codes(t, s->index);
        const gnomon_status status = test(s, &params, w, kept);
        if (codes && !*kept) lend_codes(t, s->index);
        GNOMON_TRY(status);
        w->trial.chosen = *kept ? 2 : 1;
        if (*kept) s->index->options.search_params = params;
        s->attempt++;
    }
    return GNOMON_OK;
}

/* The ways tested join those tried. */
static gnomon_status tell(building *s)
{
    gnomon_ways *all = &s->t->ways;
    for (int64_t i = 0; i < s->ways.count; i++) {
        if (!s->ways.way[i].trial.chosen) continue;
        if (all->count == all->room) {
            GNOMON_TRY(gnomon_grow(s->t->ctx, &all->way, all->room, all->room + 8, sizeof *all->way,
                                   "trials"));
            all->room += 8;
        }
        all->way[all->count++] = s->ways.way[i];
    }
    return GNOMON_OK;
}

/* Those of lists were measured on all points. */
static gnomon_status take_ways(building *s, const gnomon_way *w)
{
    const gnomon_ways *tried = &s->t->ways;
    for (int64_t i = 0; i < tried->count; i++)
        if (same_shape(&tried->way[i].trial, &w->trial))
            GNOMON_TRY(gnomon_tuning_add_way(s->t->ctx, &s->ways, &tried->way[i]));
    return GNOMON_OK;
}

/* Builds a shape in the place of another, and measures its ways. */
static gnomon_status measure_way(building *s, const gnomon_way *w)
{
    gnomon_lsh_destroy(s->index);
    s->index = NULL;
    s->ways.count = 0;
    GNOMON_TRY(build(s->t, w, &s->index));
    return s->index->hasher->centres != NULL ? take_ways(s, w) : measure(s, w);
}

/* Two levels are taken only where they measure better than the best of one on all points. */
static gnomon_status measure_both(building *s, gnomon_way *w)
{
    const gnomon_tuning *t = s->t;
    const int64_t other = w->from.fine > 0 ? cheapest(t, &t->ways, s->attempt, true) : -1;
    GNOMON_TRY(measure_way(s, w));
    if (other < 0) return GNOMON_OK;
    const gnomon_way two = *w, one = t->ways.way[other];
    int64_t best = cheapest(t, &s->ways, s->attempt, false);
    const double cost = best < 0 ? INFINITY : s->ways.way[best].trial.cost;
    *w = one;
    GNOMON_TRY(measure_way(s, w));
    best = cheapest(t, &s->ways, s->attempt, false);
    if (cost == INFINITY || (best >= 0 && s->ways.way[best].trial.cost <= cost)) return GNOMON_OK;
    *w = two;
    return measure_way(s, w);
}

/* Builds one shape; its settings need no second measurement. */
static gnomon_status build_shape(building *s, int64_t way, bool *kept)
{
    gnomon_tuning *t = s->t;
    gnomon_way w = t->ways.way[way];
    gnomon_status status = measure_both(s, &w);
    if (status == GNOMON_OK) status = attempt(s, kept);
    for (int64_t i = 0; i < t->ways.count; i++)
        if (same_shape(&t->ways.way[i].trial, &w.trial)) t->ways.way[i].trial.chosen = -1;
    if (status == GNOMON_OK) status = tell(s);
    return status;
}

gnomon_status gnomon_tuning_build(gnomon_tuning *t, gnomon_lsh **out)
{
    building s = {.t = t};
    bool kept = false;
    gnomon_status status = gnomon_alloc(t->ctx, t->tested, sizeof *t->shares, "shares", &t->shares);
    for (int shape = 0; shape < SHAPES && status == GNOMON_OK && !kept && !t->out->exact; shape++) {
        const int64_t best =
            s.attempt < GNOMON_TUNING_ATTEMPTS ? cheapest(t, &t->ways, s.attempt, false) : -1;
        if (best < 0) break;
        const gnomon_way *w = &t->ways.way[best];
        if (!t->p.slower && !gnomon_lsh_pays(&t->charge, w->trial.cost, index_cost(t, w))) {
            status = use_quicker(t);
            break;
        }
        status = build_shape(&s, best, &kept);
        if (kept && status == GNOMON_OK) break;
        gnomon_lsh_destroy(s.index);
        s.index = NULL;
    }
    gnomon_free(t->ctx, s.ways.way);
    *out = s.index;
    if (status == GNOMON_OK && !kept && !t->out->exact)
        return gnomon_tuning_use_exact(t, s.attempt > 0
                                              ? "the indexes tested did not meet the guarantee"
                                              : "no index tried is expected to meet the guarantee");
    return status;
}
