/* Tuning by a recall guarantee: ways are tried on some points with some queries, the cheapest that
 * seems to do is built and tested with others. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "lsh/families/family.h"
#include "lsh/tune/tuning.h"
#include "search/form.h"
#include "search/jaccard.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_lsh_guarantee, GNOMON_LSH_GUARANTEE_INIT)

/* Whether the metric's hash functions take points of this form and dimension. */
static bool hashes_form(const gnomon_tuning *t)
{
    const gnomon_lsh_family family =
        t->p.family != 0 ? t->p.family : gnomon_metric_family(t->p.metric, 0);
    const gnomon_family_row *row = gnomon_family_row_of(family);
    return !t->points->sparse || ((row->points & GNOMON_POINTS_SPARSE) != 0 &&
                                  (row->any_dim || t->sizes.dim <= (int64_t)1 << 56));
}

static gnomon_status read_guarantee(gnomon_context *ctx, const gnomon_lsh_guarantee *given,
                                    const gnomon_points *points, gnomon_lsh_guarantee *p,
                                    gnomon_descriptor *descriptor)
{
    *p = (gnomon_lsh_guarantee)GNOMON_LSH_GUARANTEE_INIT;
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "guarantee", gnomon_lsh_guarantee, given, p));
    if (p->descriptor) {
        *descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "guarantee.descriptor", gnomon_descriptor,
                                       p->descriptor, descriptor));
        p->descriptor = descriptor;
    }
    GNOMON_FAIL_IF(gnomon_metric_row_of(p->metric) != NULL &&
                       gnomon_metric_family(p->metric, 0) == 0,
                   ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("guarantee.metric") " is %s, for which there are no hash functions",
                   gnomon_metric_name(p->metric));
    GNOMON_FAIL_IF(gnomon_metric_row_of(p->metric) == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.metric") " is %d; it must be one of gnomon_metric",
                   (int)p->metric);
    GNOMON_FAIL_IF(p->family != 0 && !gnomon_lsh_of_metric(p->metric, p->family), ctx,
                   GNOMON_ERROR_ARGUMENT, GNOMON_ARG("guarantee.family") " is %s; the metric is %s",
                   gnomon_lsh_family_name(p->family), gnomon_metric_name(p->metric));
    const gnomon_metric_row *row = gnomon_metric_row_of(p->metric);
    const bool can = points->sparse ? row->sets != NULL || row->sparse != NULL : row->sets == NULL;
    GNOMON_FAIL_IF(!can, ctx, GNOMON_ERROR_UNSUPPORTED, "%s takes %s points",
                   gnomon_metric_name(p->metric), points->sparse ? "dense" : "sparse");
    GNOMON_FAIL_IF(!(p->recall > 0 && p->recall < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.recall") " is %g; it must be above 0 and below 1",
                   p->recall);
    GNOMON_FAIL_IF(!(p->confidence > 0.5 && p->confidence < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.confidence") " is %g; it must be above 0.5 and below 1",
                   p->confidence);
    GNOMON_FAIL_IF(p->k < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.k") " is %" PRId64
                                             "; it must be at least 1, or 0 for a radius",
                   p->k);
    GNOMON_FAIL_IF(
        p->k == 0 && !(p->radius >= 0 && isfinite(p->radius)), ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("guarantee.radius") " is %g; it must be finite and not negative", p->radius);
    GNOMON_FAIL_IF(p->memory < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.memory") " is %" PRId64 "; it must not be negative",
                   p->memory);
    GNOMON_FAIL_IF(p->queries < 100 || p->queries > 100000, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("guarantee.queries") " is %" PRId64 "; it must be 100 to 100000",
                   p->queries);
    GNOMON_FAIL_IF(
        p->uses < 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("guarantee.uses") " is %" PRId64
                                     "; it must be at least 1, or 0 when it is not known",
        p->uses);
    return GNOMON_OK;
}

/* Named as in exact search. */
static gnomon_status check_points(gnomon_context *ctx, gnomon_metric metric, const gnomon_points *p,
                                  const char *name)
{
    GNOMON_TRY(gnomon_points_check(ctx, p, name));
    if (p->sparse && gnomon_metric_is(metric, GNOMON_METRIC_WEIGHTS))
        GNOMON_TRY(gnomon_weights_check(ctx, p->sparse, name));
    return gnomon_hasher_check_finite(ctx, p, name);
}

static gnomon_status measure_points(gnomon_tuning *t)
{
    const gnomon_points *p = t->points;
    t->sizes = (gnomon_lsh_sizes){.metric = t->p.metric,
                                  .dim = gnomon_points_cols(p),
                                  .points = gnomon_points_rows(p),
                                  .k = t->p.k};
    int64_t bytes;
    if (p->dense) {
        t->sizes.point = (double)(p->dense->cols * (int64_t)gnomon_dtype_size(p->dense->dtype));
        bytes = p->dense->rows * p->dense->cols * (int64_t)gnomon_dtype_size(p->dense->dtype);
    } else {
        const int64_t entries =
            p->sparse->rows > 0 ? p->sparse->offsets[p->sparse->rows] - p->sparse->offsets[0] : 0;
        t->sizes.point = p->sparse->rows > 0 ? (double)entries / (double)p->sparse->rows : 0;
        /* they are copied into the index, eight bytes a member and eight a weight; that much again
         * is its own */
        t->sizes.sparse = !gnomon_metric_of_sets(t->p.metric);
        t->sizes.entry =
            t->sizes.sparse || gnomon_metric_is(t->p.metric, GNOMON_METRIC_WEIGHTS) ? 16 : 8;
        t->sizes.row = t->sizes.sparse ? 16 : 8; /* a factor, and an offset */
        bytes = 2 * (t->sizes.entry * entries + t->sizes.row * p->sparse->rows);
        t->sizes.work = t->p.k > 0 ? GNOMON_FORM_NEAREST : GNOMON_FORM_THRESHOLD;
        if (t->sizes.sparse)
            GNOMON_TRY(gnomon_sparse_shared(t->ctx, t->queries->sparse, p->sparse, &t->sizes.shared,
                                            &t->sizes.heavy));
    }
    if (t->p.memory == 0) t->p.memory = bytes;
    const bool may = gnomon_metric_is(t->p.metric, GNOMON_METRIC_CODES);
    t->has_codes = t->p.k > 0 && may && p->dense && t->sizes.point > 2 * GNOMON_TUNING_CODES &&
                   GNOMON_TUNING_CODES * t->sizes.points <= t->p.memory;
    return GNOMON_OK;
}

/* How many queries it takes at least to tell: when all their neighbours are found. 0 when so many
 * can't tell at all. */
static int64_t least_to_tell(const gnomon_tuning *t)
{
    gnomon_bet bet;
    gnomon_bet_open(&bet, t->p.recall, 0, gnomon_tuning_doubt(t->p.confidence, 0), t->tested,
                    t->population);
    for (int64_t q = 0; q < t->tested && !bet.won; q++)
        gnomon_bet_on(&bet, 1);
    return bet.won ? bet.count : 0;
}

/* Whether this is to begin, which costs so much before any index is known: the test's first parts
 * are still to come. */
static bool may_pay(const gnomon_tuning *t, double cost, int64_t told)
{
    const int64_t batch = gnomon_tuning_batch(t);
    const int64_t tested = (told + batch - 1) / batch * batch;
    return t->p.slower || gnomon_lsh_may_pay(&t->charge, cost, (double)tested * t->charge.exact);
}

/* What trying hash functions costs that do not depend on the data. */
static double functions_cost(const gnomon_tuning *t, int64_t asked)
{
    double cost = gnomon_lsh_trials_cost(&t->sizes);
    if (t->has_codes) cost += gnomon_lsh_codes_cost(&t->sizes, asked, t->p.k + t->self);
    return cost;
}

static gnomon_status try_functions(gnomon_tuning *t)
{
    if (t->p.k == 0) t->near = t->p.radius;
    GNOMON_TRY(gnomon_tuning_sample_far(t));
    /* neighbours at distance 0: a width by the others */
    if (t->near == 0) t->near = t->far[t->far_count / 2] / 8;
    if (gnomon_family_row_of(gnomon_metric_family(t->p.metric, 0))->width && !(t->near > 0))
        return gnomon_tuning_use_exact(t, "all points tried are in one place");
    t->captured[0] = 1;
    if (t->has_codes) GNOMON_TRY(gnomon_tuning_encode(t));
    return gnomon_tuning_try(t);
}

static gnomon_status use_sooner(gnomon_tuning *t)
{
    return gnomon_tuning_use_exact(
        t, "exact search of so few queries is expected to end before tuning does");
}

/* Whether hash functions that do not depend on the data may be quicker than exact search, after
 * lists that follow the points were not enough: functions meet no fewer candidates for as many
 * neighbours, unless points lie far apart in all directions. */
static bool functions_may_pay(const gnomon_tuning *t)
{
    double candidates = 0;
    for (int64_t i = 0; i < t->ways.count; i++)
        candidates = fmax(candidates, t->ways.way[i].trial.candidates);
    const int64_t codes = t->has_codes ? GNOMON_TUNING_CODES : 0;
    return t->p.slower || !t->balanced ||
           gnomon_lsh_candidates_cost(&t->sizes, candidates, codes) < t->charge.exact;
}

static gnomon_status run(gnomon_tuning *t, gnomon_lsh **out)
{
    enum { ASKED = 256 };
    const int64_t given = gnomon_points_rows(t->queries), self = t->self;
    GNOMON_TRY(measure_points(t));
    t->out->exact_cost = gnomon_lsh_exact_cost(&t->sizes);
    t->charge = (gnomon_lsh_charge){t->p.uses, t->out->exact_cost};
    if (!hashes_form(t))
        return gnomon_tuning_use_exact(t, "there are no hash functions of these sparse points");
    if (t->sizes.points < 64 || given < 64 || t->p.k + self > t->sizes.points / 2)
        return gnomon_tuning_use_exact(t,
                                       "there are too few points or queries to test an index by");
    t->tested = t->p.queries < given / 2 ? t->p.queries : given / 2;
    const int64_t asked = given - t->tested < ASKED ? given - t->tested : ASKED;
    /* how many queries have neighbours within a radius is not known */
    t->population = t->p.k > 0 ? given - asked : 0;
    const int64_t told = least_to_tell(t);
    if (told == 0)
        return gnomon_tuning_use_exact(t,
                                       "there are too few points or queries to test an index by");
    const gnomon_lsh_family lists = gnomon_tuning_lists_family(t);
    const double trials = lists ? gnomon_lsh_lists_cost(&t->sizes) : functions_cost(t, asked);
    if (!may_pay(t, (double)asked * t->charge.exact + trials, told)) return use_sooner(t);
    t->out->asked = asked;
    GNOMON_TRY(gnomon_tuning_ask(t, 0, asked, &t->asked, &t->near));
    if (t->asked.offsets[asked] == 0)
        return gnomon_tuning_use_exact(t, "no query tried has a point within the radius");
    if (lists) GNOMON_TRY(gnomon_tuning_try_lists(t));
    if (!lists || (t->p.family == 0 && !(t->balanced && gnomon_tuning_promised(t) != NULL))) {
        if (lists && !may_pay(t, functions_cost(t, asked), told)) return use_sooner(t);
        if (lists && !functions_may_pay(t))
            return gnomon_tuning_use_exact(t, "exact search is expected to be faster");
        GNOMON_TRY(try_functions(t));
    }
    return t->out->exact ? GNOMON_OK : gnomon_tuning_build(t, out);
}

/* The trials that are shown: of each shape and number of tables the cheapest that reaches the
 * recall, else the one that finds most; and whatever was tested. */
static gnomon_status report(gnomon_tuning *t)
{
    gnomon_lsh_tuning *out = t->out;
    const gnomon_way *ways = t->ways.way;
    GNOMON_TRY(gnomon_alloc(t->ctx, t->ways.count, sizeof *out->trials, "trials", &out->trials));
    for (int64_t i = 0; i < t->ways.count;) {
        const gnomon_lsh_trial *first = &ways[i].trial;
        int64_t best = i, end = i;
        for (; end < t->ways.count && first->chosen <= 0; end++) {
            const gnomon_lsh_trial *w = &ways[end].trial, *b = &ways[best].trial;
            if (w->family != first->family || w->width != first->width ||
                w->functions != first->functions || w->fine != first->fine ||
                w->centres != first->centres || w->tables != first->tables || w->chosen > 0)
                break;
            const bool does = w->recall >= t->p.recall, did = b->recall >= t->p.recall;
            if (does != did ? does : does ? w->cost < b->cost : w->recall > b->recall) best = end;
        }
        gnomon_lsh_trial *shown = &out->trials[out->trial_count++];
        *shown = ways[best].trial;
        if (shown->chosen < 0) shown->chosen = 0;
        i = end > i ? end : i + 1;
    }
    return GNOMON_OK;
}

static void close_tuning(gnomon_tuning *t)
{
    gnomon_context *ctx = t->ctx;
    gnomon_asked_free(ctx, &t->asked);
    for (int b = 0; b < GNOMON_TUNING_BATCHES; b++)
        gnomon_asked_free(ctx, &t->tests[b]);
    gnomon_some_points_free(ctx, &t->some);
    gnomon_codes_close(ctx, &t->codes);
    gnomon_free(ctx, t->shares);
    gnomon_free(ctx, t->far);
    gnomon_free(ctx, t->offsets);
    gnomon_free(ctx, t->ids);
    gnomon_free(ctx, t->ways.way);
    gnomon_assign_close(t->assign);
    gnomon_free(ctx, t->centres);
    gnomon_free(ctx, t->lists);
}

static gnomon_status tune(gnomon_context *ctx, const gnomon_lsh_guarantee *guarantee,
                          const gnomon_points *points, const gnomon_points *queries,
                          gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "tuning", gnomon_lsh_tuning, result));
    GNOMON_FAIL_IF(!points->dense && !points->sparse, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("points") " is NULL");
    gnomon_lsh_tuning told = {.struct_size = sizeof told, .reason = ""};
    gnomon_descriptor descriptor;
    gnomon_tuning t = {.ctx = ctx, .points = points, .out = &told};
    GNOMON_TRY(gnomon_lsh_check_device(ctx));
    GNOMON_TRY(read_guarantee(ctx, guarantee, points, &t.p, &descriptor));
    t.self = !queries->dense && !queries->sparse;
    t.queries = t.self ? points : queries;
    GNOMON_TRY(check_points(ctx, t.p.metric, points, "base"));
    if (!t.self) GNOMON_TRY(check_points(ctx, t.p.metric, queries, "queries"));
    gnomon_status status = run(&t, out);
    if (status == GNOMON_OK) status = report(&t);
    close_tuning(&t);
    if (status != GNOMON_OK) {
        gnomon_lsh_destroy(*out);
        *out = NULL;
    } else {
        gnomon_return_result(result, &told, sizeof told);
    }
    gnomon_lsh_tuning_free(ctx, &told);
    return status;
}

void gnomon_lsh_tuning_free(gnomon_context *ctx, gnomon_lsh_tuning *result)
{
    gnomon_lsh_tuning told;
    if (ctx == NULL || !gnomon_load_result(result, &told, sizeof told)) return;
    gnomon_free(ctx, told.trials);
    gnomon_clear_result(result);
}

gnomon_status gnomon_lsh_tune(gnomon_context *ctx, const gnomon_lsh_guarantee *guarantee,
                              const gnomon_matrix *points, const gnomon_matrix *queries,
                              gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    const gnomon_points p = {points, NULL}, q = {queries, NULL};
    return tune(ctx, guarantee, &p, &q, out, result);
}

gnomon_status gnomon_lsh_tune_csr(gnomon_context *ctx, const gnomon_lsh_guarantee *guarantee,
                                  const gnomon_csr *points, const gnomon_csr *queries,
                                  gnomon_lsh **out, gnomon_lsh_tuning *result)
{
    const gnomon_points p = {NULL, points}, q = {NULL, queries};
    return tune(ctx, guarantee, &p, &q, out, result);
}
