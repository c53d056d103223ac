/* Inverted lists as ways of an index: centres are trained, and where the asked queries' neighbours
 * lie among the lists that each would probe tells recall and candidates for every number of probes,
 * of all points. Of two numbers of lists brief training, and the lists of some points, tell first
 * which is the cheaper one. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "lsh/families/family.h"
#include "lsh/tune/tuning.h"

#include <math.h>
#include <string.h>

enum { STEPS = 26, UNBALANCED = 4, FEW = 2, NEIGHBOURS = 4 };

/* Numbers of lists that a query probes. */
static const int64_t probed[STEPS] = {1,  2,  3,  4,  5,  6,  7,  8,  10, 12,  14,  16,  20,
                                      24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384};

/* One number of lists. */
typedef struct listing {
    gnomon_tuning *t;
    gnomon_lsh_behind behind;
    int32_t *lists; /* of all points, as far as they are known */
    gnomon_shape shape;
    gnomon_hasher *hasher;
    bool briefly;
    const int64_t *offsets, *ids; /* the asked queries' true neighbours; briefly some of each */
    int64_t *some_offsets, *some_ids;
    int32_t *near;  /* the list of each */
    int32_t *order; /* queries x ordered: their nearest lists */
    int64_t ordered;
    int64_t *size;             /* a list's points */
    int64_t *place;            /* of a list in a query's order; else behind all steps */
    float *candidates, *share; /* queries x steps, as a trace's */
    int64_t steps;
} listing;

/* Points that stand in for queries are the first of the seed's order: to be like other queries they
 * are none of those that centres are trained on, unless these would be fewer than half. */
static int64_t untrained(const gnomon_tuning *t)
{
    return t->self ? gnomon_min(t->out->asked + t->tested, t->sizes.points / 2) : 0;
}

/* Sizes as some points tell them, of those behind the ones that centres are trained on, and the
 * neighbours' lists. */
static gnomon_status sample_lists(listing *l, int64_t neighbours)
{
    gnomon_tuning *t = l->t;
    gnomon_context *ctx = t->ctx;
    const int64_t n = t->sizes.points, centres = l->shape.functions.centre_count;
    const int64_t count = gnomon_min(n, GNOMON_LSH_BRIEF_POINTS), all = neighbours + count;
    const int64_t behind = l->behind.skip + centres * GNOMON_LSH_TRAINED_BRIEFLY;
    int64_t *rows = NULL;
    int32_t *list = NULL;
    gnomon_status status = gnomon_alloc(ctx, all, sizeof *rows, "points' lists", &rows);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, all, sizeof *list, "points' lists", &list);
    if (status == GNOMON_OK) {
        if (neighbours > 0) memcpy(rows, l->ids, (size_t)neighbours * sizeof *rows);
        gnomon_some_rows_draw(n, t->p.seed, gnomon_min(behind, n - count), count,
                              rows + neighbours);
        for (int64_t i = 0; i < all; i++)
            list[i] = l->lists[rows[i]];
        status =
            gnomon_assign_nearest(t->assign, l->hasher->centres, centres, rows, all, list, NULL);
    }
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < all; i++)
            l->lists[rows[i]] = list[i];
        if (neighbours > 0) memcpy(l->near, list, (size_t)neighbours * sizeof *list);
        for (int64_t i = neighbours; i < all; i++)
            l->size[list[i]]++;
        for (int64_t c = 0; c < centres; c++)
            l->size[c] = l->size[c] * n / count;
    }
    gnomon_free(ctx, rows);
    gnomon_free(ctx, list);
    return status;
}

static gnomon_status find_lists(listing *l)
{
    gnomon_tuning *t = l->t;
    const gnomon_asked *a = &t->asked;
    const int64_t n = t->sizes.points, centres = l->shape.functions.centre_count;
    const int64_t neighbours = l->offsets[a->some.count];
    if (l->briefly) {
        GNOMON_TRY(sample_lists(l, neighbours));
    } else {
        GNOMON_TRY(
            gnomon_assign_nearest(t->assign, l->hasher->centres, centres, NULL, n, l->lists, NULL));
        for (int64_t i = 0; i < n; i++)
            l->size[l->lists[i]]++;
        for (int64_t j = 0; j < neighbours; j++)
            l->near[j] = l->lists[l->ids[j]];
    }
    return gnomon_hasher_lists(t->ctx, l->hasher, &a->some.points, 0, a->some.count, l->ordered,
                               l->order, NULL);
}

/* What query q would find after each step. */
static void follow(listing *l, int64_t q)
{
    const gnomon_tuning *t = l->t;
    const int64_t least = t->p.k + t->self;
    const int64_t begin = l->offsets[q], end = l->offsets[q + 1];
    const int32_t *order = l->order + q * l->ordered;
    int64_t candidates = 0, at = 0;
    for (int64_t c = 0; c < l->ordered; c++)
        l->place[order[c]] = c;
    for (int64_t s = 0; s < l->steps; s++) {
        for (; at < probed[s]; at++)
            candidates += l->size[order[at]];
        int64_t found = 0;
        for (int64_t j = begin; j < end; j++)
            found += l->place[l->near[j]] < probed[s];
        /* what some points tell of lists is no sum of them */
        const bool few = !l->briefly && t->p.k > 0 && candidates < least;
        l->candidates[q * l->steps + s] = few ? -1 : (float)candidates;
        l->share[q * l->steps + s] =
            few || begin == end ? 1 : (float)((double)found / (double)(end - begin));
    }
    for (int64_t c = 0; c < l->ordered; c++)
        l->place[order[c]] = probed[STEPS - 1];
}

static int64_t bytes_of(const listing *l)
{
    const gnomon_lsh_functions *f = &l->shape.functions;
    gnomon_table table = {.entries = l->t->sizes.points, .buckets = f->centre_count};
    table.bits = gnomon_table_bits(table.buckets);
    return gnomon_table_bytes(&table) + f->centre_count * f->dim * (int64_t)sizeof(float);
}

static gnomon_status measure(listing *l)
{
    gnomon_tuning *t = l->t;
    const int64_t queries = t->asked.some.count;
    GNOMON_TRY(find_lists(l));
    double nearest = 0;
    for (int64_t q = 0; q < queries; q++) {
        follow(l, q);
        nearest += (double)l->size[l->order[q * l->ordered]];
    }
    t->balanced = nearest / (double)queries * (double)l->shape.functions.centre_count <
                  UNBALANCED * (double)t->sizes.points;
    const gnomon_lsh_trace trace = {.offsets = l->offsets,
                                    .ids = l->ids,
                                    .step = probed,
                                    .steps = l->steps,
                                    .choices = 1,
                                    .candidates = l->candidates,
                                    .share = l->share};
    gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
    params.tables = 1;
    return gnomon_tuning_add_ways(t, &l->shape, l->hasher, 1, &params, bytes_of(l), queries, &trace,
                                  &t->ways);
}

/* All of a query's neighbours, or briefly some, evenly chosen, so that their rows take little
 * memory. */
static gnomon_status choose_neighbours(listing *l)
{
    const gnomon_asked *a = &l->t->asked;
    const int64_t queries = a->some.count;
    l->offsets = a->offsets;
    l->ids = a->ids;
    if (!l->briefly) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(l->t->ctx, queries + 1, sizeof *l->some_offsets, "neighbours",
                            &l->some_offsets));
    GNOMON_TRY(gnomon_alloc(l->t->ctx, gnomon_min(a->offsets[queries], queries * NEIGHBOURS),
                            sizeof *l->some_ids, "neighbours", &l->some_ids));
    int64_t at = 0;
    for (int64_t q = 0; q < queries; q++) {
        const int64_t all = a->offsets[q + 1] - a->offsets[q], some = gnomon_min(all, NEIGHBOURS);
        l->some_offsets[q] = at;
        for (int64_t i = 0; i < some; i++)
            l->some_ids[at++] = a->ids[a->offsets[q] + (2 * i + 1) * all / (2 * some)];
    }
    l->some_offsets[queries] = at;
    l->offsets = l->some_offsets;
    l->ids = l->some_ids;
    return GNOMON_OK;
}

static gnomon_status reserve(listing *l)
{
    gnomon_context *ctx = l->t->ctx;
    const int64_t queries = l->t->asked.some.count, centres = l->shape.functions.centre_count;
    GNOMON_TRY(choose_neighbours(l));
    while (l->steps < STEPS && probed[l->steps] <= centres / 2)
        l->steps++;
    l->ordered = probed[l->steps - 1];
    GNOMON_TRY(
        gnomon_alloc(ctx, l->offsets[queries], sizeof *l->near, "neighbours' lists", &l->near));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(queries, l->ordered), sizeof *l->order,
                            "lists in order", &l->order));
    GNOMON_TRY(gnomon_alloc_zero(ctx, centres, sizeof *l->size, "lists", &l->size));
    GNOMON_TRY(gnomon_alloc(ctx, centres, sizeof *l->place, "lists", &l->place));
    for (int64_t c = 0; c < centres; c++)
        l->place[c] = probed[STEPS - 1];
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(queries, l->steps), sizeof *l->candidates,
                            "candidates", &l->candidates));
    return gnomon_alloc(ctx, gnomon_times(queries, l->steps), sizeof *l->share, "shares",
                        &l->share);
}

/* A number of lists, with room for its centres and all points' lists. */
typedef struct numbered {
    int64_t count;
    float *centres;
    int32_t *lists;
} numbered;

/* Goes on with training from round 'from' on, and measures. */
static gnomon_status try_lists(gnomon_tuning *t, gnomon_lsh_family family, const numbered *of,
                               int from, int to)
{
    gnomon_context *ctx = t->ctx;
    listing l = {.t = t,
                 .behind = {t->points->dense, t->assign, t->p.seed, untrained(t)},
                 .lists = of->lists,
                 .briefly = to < GNOMON_LSH_ROUNDS,
                 .shape = {.functions = GNOMON_LSH_FUNCTIONS_INIT, .depth = 1}};
    gnomon_lsh_functions *f = &l.shape.functions;
    f->family = family;
    f->dim = t->sizes.dim;
    f->count = 1;
    f->seed = t->p.seed;
    f->centre_count = of->count;
    f->centres = of->centres;
    gnomon_status status = gnomon_lsh_train_behind(ctx, family, &l.behind, of->count, from, to,
                                                   of->centres, of->lists);
    if (status == GNOMON_OK) status = gnomon_hasher_create(ctx, f, &l.hasher);
    if (status == GNOMON_OK) status = reserve(&l);
    if (status == GNOMON_OK) status = measure(&l);
    gnomon_hasher_destroy(l.hasher);
    gnomon_free(ctx, l.some_offsets);
    gnomon_free(ctx, l.some_ids);
    gnomon_free(ctx, l.near);
    gnomon_free(ctx, l.order);
    gnomon_free(ctx, l.size);
    gnomon_free(ctx, l.place);
    gnomon_free(ctx, l.candidates);
    gnomon_free(ctx, l.share);
    return status;
}

gnomon_lsh_family gnomon_tuning_lists_family(const gnomon_tuning *t)
{
    int64_t counts[GNOMON_LSH_LIST_COUNTS];
    if (t->points->dense == NULL || gnomon_lsh_list_counts(&t->sizes, counts) == 0)
        return (gnomon_lsh_family)0;
    for (int i = 0; gnomon_metric_family(t->p.metric, i) != 0; i++) {
        const gnomon_lsh_family family = gnomon_metric_family(t->p.metric, i);
        if (t->p.family != 0 && t->p.family != family) continue;
        if (gnomon_family_row_of(family)->centres != 0) return family;
    }
    return (gnomon_lsh_family)0;
}

/* The cheaper number; but where as few as two lists of the smaller one do, each has several groups
 * of points, and 8 bits tell fewer points there: more are verified than the model knows of. */
static gnomon_status choose_lists(gnomon_tuning *t, gnomon_lsh_family family, const numbered *of,
                                  int found, int *best)
{
    double least = INFINITY;
    bool coarse = false;
    *best = 0;
    for (int i = 0; i < found; i++) {
        /* the smaller number's centres began where the first of these do */
        if (i > 0)
            memcpy(of[i].lists, of[i - 1].lists, (size_t)t->sizes.points * sizeof *of[i].lists);
        GNOMON_TRY(try_lists(t, family, &of[i], 0, GNOMON_LSH_BRIEF_ROUNDS));
        const gnomon_way *way = gnomon_tuning_promised(t);
        t->ways.count = 0; /* those of centres that are trained to the end will be told */
        /* not where building them takes more than the queries do */
        const bool built =
            way != NULL && gnomon_lsh_share(&t->charge, 0, way->build) <= way->trial.cost;
        if (way == NULL || !((coarse && built) || gnomon_tuning_price(t, way) < least)) continue;
        *best = i;
        least = gnomon_tuning_price(t, way);
        coarse = way->trial.probes < FEW;
    }
    return GNOMON_OK;
}

static gnomon_status reserve_number(const gnomon_tuning *t, numbered *of)
{
    const int64_t n = t->sizes.points;
    GNOMON_TRY(gnomon_alloc(t->ctx, gnomon_times(of->count, t->sizes.dim), sizeof *of->centres,
                            "centres", &of->centres));
    GNOMON_TRY(gnomon_alloc(t->ctx, n, sizeof *of->lists, "points' lists", &of->lists));
    for (int64_t i = 0; i < n; i++)
        of->lists[i] = -1;
    return GNOMON_OK;
}

gnomon_status gnomon_tuning_try_lists(gnomon_tuning *t)
{
    int64_t counts[GNOMON_LSH_LIST_COUNTS];
    numbered of[GNOMON_LSH_LIST_COUNTS] = {0};
    const int found = gnomon_lsh_list_counts(&t->sizes, counts);
    const gnomon_lsh_family family = gnomon_tuning_lists_family(t);
    int best = 0;
    gnomon_status status = gnomon_assign_open(t->ctx, gnomon_family_row_of(family)->centres,
                                              t->points->dense, &t->assign);
    for (int i = 0; i < found && status == GNOMON_OK; i++) {
        of[i].count = counts[i];
        status = reserve_number(t, &of[i]);
    }
    if (status == GNOMON_OK && found > 1) status = choose_lists(t, family, of, found, &best);
    const int from = found > 1 ? GNOMON_LSH_BRIEF_ROUNDS : 0;
    if (status == GNOMON_OK) status = try_lists(t, family, &of[best], from, GNOMON_LSH_ROUNDS);
    gnomon_assign_close(t->assign);
    t->assign = NULL;
    t->centres = of[best].centres; /* which ways point at */
    t->lists = of[best].lists;
    for (int i = 0; i < found; i++) {
        if (i == best) continue;
        gnomon_free(t->ctx, of[i].centres);
        gnomon_free(t->ctx, of[i].lists);
    }
    return status;
}
