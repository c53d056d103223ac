/* Tuning: the recall guarantee on fresh queries over many seeds and kinds of data, exact where no
 * index can keep it; the bound behind it. */
#include "lsh/tune/tune.h"
#include "project.h"

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

/* P(X >= hits), by its terms. */
static double upper_tail(int64_t hits, int64_t trials, double p)
{
    double sum = 0;
    for (int64_t x = hits; x <= trials; x++) {
        const double n = (double)trials, i = (double)x;
        sum += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) +
                   (n - i) * log1p(-p));
    }
    return sum;
}

/* Clopper and Pearson's lower bound: the p with P(X >= hits) = doubt. */
static double binomial_bound(int64_t hits, int64_t trials, double doubt)
{
    double low = 0, high = hits > 0 ? 1 : 0;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (upper_tail(hits, trials, middle) < doubt)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Against SciPy's beta.ppf. */
static void binomial_bounds(void **state)
{
    (void)state;
    assert_true(fabs(binomial_bound(95, 100, 0.05) - 0.8977466223567255) < 1e-6);
    assert_true(fabs(binomial_bound(930, 1000, 0.0125) - 0.9097657893283273) < 1e-6);
    assert_true(fabs(binomial_bound(1, 100, 0.05) - 0.000512801416262292) < 1e-6);
    assert_true(binomial_bound(0, 10, 0.05) == 0);
}

/* Shares of ten neighbours, as unequal as they come: a query finds all of them or none more often
 * than independent neighbours would. */
static float draw_share(uint64_t *seed, double mean)
{
    const double limit = 2 * mean - 1; /* next_uniform begins at -1 */
    if (next_uniform(seed) < 0) return next_uniform(seed) < limit ? 1 : 0;
    int found = 0;
    for (int i = 0; i < 10; i++)
        found += next_uniform(seed) < limit;
    return (float)found / 10;
}

/* Shares whose mean is not above the guarantee win in no more than the doubt; shares a little above
 * it win mostly; and the bound is below the mean as often as it says. */
static void betting(void **state)
{
    (void)state;
    enum { RUNS = 2000, QUERIES = 500 };
    float shares[QUERIES];
    int lucky = 0, wins = 0, above = 0;
    uint64_t seed = 11;
    for (int r = 0; r < RUNS; r++) {
        gnomon_bet none, some;
        gnomon_bet_open(&none, 0.9, 0.23, 0.05, QUERIES, 0);
        gnomon_bet_open(&some, 0.85, 0.23, 0.05, QUERIES, 0);
        for (int q = 0; q < QUERIES; q++) {
            shares[q] = draw_share(&seed, 0.9);
            gnomon_bet_on(&none, (double)shares[q]);
            gnomon_bet_on(&some, (double)shares[q]);
        }
        lucky += none.won;
        wins += some.won;
        if (r < 200) above += gnomon_bet_bound(&some, shares, QUERIES) > 0.9;
    }
    print_message("won against the mean %d, below it %d of %d; bound above the mean %d of 200\n",
                  lucky, wins, RUNS, above);
    assert_true(binomial_bound(lucky, RUNS, 1e-4) <= 0.05);
    assert_true(binomial_bound(above, 200, 1e-4) <= 0.05);
    assert_true(wins > RUNS * 9 / 10);
}

/* All that there are, drawn in a random order without repetition: of so many the mean is known in
 * the end, and a bet against the true one is won no more often. */
static void betting_on_all(void **state)
{
    (void)state;
    enum { RUNS = 2000, ALL = 200 };
    int lucky = 0, wins = 0;
    uint64_t seed = 12;
    for (int r = 0; r < RUNS; r++) {
        float shares[ALL];
        double sum = 0;
        gnomon_bet exact, below;
        for (int q = 0; q < ALL; q++)
            sum += (double)(shares[q] = draw_share(&seed, 0.8));
        for (int q = ALL - 1; q > 0; q--) {
            const int other = (int)(next_random(&seed) % (uint64_t)(q + 1));
            const float swap = shares[q];
            shares[q] = shares[other];
            shares[other] = swap;
        }
        gnomon_bet_open(&exact, sum / ALL, 0.3, 0.05, ALL, ALL);
        gnomon_bet_open(&below, sum / ALL - 0.1, 0.3, 0.05, ALL, ALL);
        for (int q = 0; q < ALL; q++) {
            gnomon_bet_on(&exact, (double)shares[q]);
            gnomon_bet_on(&below, (double)shares[q]);
        }
        lucky += exact.won;
        wins += below.won;
    }
    print_message("all asked: won against the mean %d, below it %d of %d\n", lucky, wins, RUNS);
    assert_true(binomial_bound(lucky, RUNS, 1e-4) <= 0.05);
    assert_true(wins > RUNS * 9 / 10);
}

enum { N = 600, Q = 130, D = 12, K = 5, MEMBERS = 12 };

typedef enum shape { CLUSTERS, NOISE, PLANTED } shape;

/* Base and queries of one kind. PLANTED: noise, in which each query has K near points that are near
 * to nothing else. */
typedef struct data {
    float x[(N + Q) * D];
    uint8_t bits[(N + Q) * D];
    int64_t offsets[N + Q + 1], members[(N + Q) * MEMBERS];
    float ones[(N + Q) * MEMBERS];
} data;

static data *make_data(shape of, uint64_t seed)
{
    data *d = malloc(sizeof *d);
    assert_non_null(d);
    seed = seed * 1000 + (uint64_t)of;
    for (int i = 0; i < N + Q; i++) {
        /* the point that this one is made from: a centre's number, or a query's */
        const int from = of == CLUSTERS  ? (int)(next_random(&seed) % 40)
                         : of == PLANTED ? (i < N ? (i < K * Q ? i / K : i) : i - N)
                                         : i;
        const double own = of == NOISE ? 0 : of == CLUSTERS ? 0.2 : 0.15;
        uint64_t centre = 77 * (uint64_t)from + 1000003 * (uint64_t)of;
        d->offsets[i] = i * MEMBERS;
        for (int j = 0; j < D; j++) {
            const uint8_t noise = (uint8_t)(next_random(&seed) & next_random(&seed) &
                                            next_random(&seed) & next_random(&seed));
            d->x[i * D + j] = (float)(next_uniform(&centre) + own * next_uniform(&seed));
            d->bits[i * D + j] = (uint8_t)(next_random(&centre) ^ (own > 0 ? noise : 0));
        }
        for (int j = 0; j < MEMBERS; j++) {
            const int64_t member = (int64_t)(next_random(&centre) % 500),
                          other = (int64_t)(next_random(&seed) % 500);
            d->members[i * MEMBERS + j] = own > 0 && next_random(&seed) % 6 == 0 ? other : member;
            d->ones[i * MEMBERS + j] = 1;
        }
    }
    d->offsets[N + Q] = (N + Q) * MEMBERS;
    return d;
}

typedef struct both {
    gnomon_matrix base, asked;
    gnomon_csr sets, asked_sets;
} both;

static both views_of(data *d, gnomon_metric metric)
{
    const bool bits = metric == GNOMON_HAMMING;
    both v;
    v.base =
        gnomon_matrix_rowmajor(bits ? (void *)d->bits : d->x, bits ? GNOMON_U8 : GNOMON_F32, N, D);
    v.asked = v.base;
    v.asked.rows = Q;
    v.asked.data = bits ? (void *)(d->bits + N * D) : d->x + N * D;
    v.sets = (gnomon_csr){N, 500, d->offsets, d->members, d->ones, GNOMON_F32};
    v.asked_sets =
        (gnomon_csr){Q, 500, d->offsets + N, d->members + N * MEMBERS, d->ones, GNOMON_F32};
    return v;
}

static gnomon_lsh_guarantee guarantee_of(gnomon_metric metric, uint64_t seed)
{
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    p.metric = metric;
    p.k = K;
    p.seed = seed;
    p.memory = (int64_t)1 << 30;
    p.slower = 1; /* so few points are searched faster one by one */
    return p;
}

/* A true neighbour of each fresh query, drawn at random: how many are found. */
static int64_t found_by(const gnomon_lsh *index, const both *v, gnomon_metric metric, uint64_t seed)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors truth = {.struct_size = sizeof truth}, found = truth;
    o.metric = metric;
    o.k = K;
    if (metric == GNOMON_JACCARD) {
        ASSERT_OK(ctx, gnomon_neighbors_exact_csr(ctx, &v->sets, &v->asked_sets, &o, &truth));
        ASSERT_OK(ctx, gnomon_lsh_query_csr(ctx, index, &v->asked_sets, &o, NULL, &found, NULL));
    } else {
        ASSERT_OK(ctx, gnomon_neighbors_exact(ctx, &v->base, &v->asked, &o, &truth));
        ASSERT_OK(ctx, gnomon_lsh_query(ctx, index, &v->asked, &o, NULL, &found, NULL));
    }
    int64_t hits = 0;
    for (int64_t q = 0; q < Q; q++) {
        const int64_t one = truth.ids[q * K + (int64_t)(next_random(&seed) % K)];
        for (int64_t i = 0; i < K; i++)
            hits += found.ids[q * K + i] == one;
    }
    gnomon_neighbors_free(ctx, &truth);
    gnomon_neighbors_free(ctx, &found);
    return hits;
}

/* family 0: any. */
static void meet_guarantee(gnomon_metric metric, gnomon_lsh_family family, int seeds)
{
    int64_t hits = 0, trials = 0;
    int indexes = 0;
    for (int of = 0; of < 3; of++) {
        for (int s = 0; s < seeds; s++) {
            data *d = make_data((shape)of, (uint64_t)s);
            const both v = views_of(d, metric);
            gnomon_lsh_guarantee p = guarantee_of(metric, (uint64_t)s);
            p.family = family;
            gnomon_lsh *index;
            gnomon_lsh_tuning t = {.struct_size = sizeof t};
            /* planted queries are unlike the base: tuning is given some of their kind */
            if (metric == GNOMON_JACCARD)
                ASSERT_OK(ctx,
                          gnomon_lsh_tune_csr(ctx, &p, &v.sets,
                                              of == PLANTED ? &v.asked_sets : NULL, &index, &t));
            else
                ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, of == PLANTED ? &v.asked : NULL,
                                               &index, &t));
            assert_int_equal(t.exact, index == NULL);
            assert_true(t.exact == (t.reason[0] != 0));
            if (index) {
                assert_true(t.bound >= p.recall && t.recall >= p.recall && t.trial_count > 0);
                for (int64_t i = 0; i < t.trial_count && family != 0; i++)
                    assert_int_equal(t.trials[i].family, family);
                const int64_t found = found_by(index, &v, metric, (uint64_t)s);
                /* none is far below: 1e-4 a run */
                if (1 - binomial_bound(Q - found, Q, 1e-4) < p.recall)
                    fail_msg("data %d, seed %d: %d of %d", of, s, (int)found, Q);
                hits += found;
                trials += Q;
                indexes++;
            }
            gnomon_lsh_destroy(index);
            gnomon_lsh_tuning_free(ctx, &t);
            free(d);
        }
    }
    const double bound = binomial_bound(hits, trials, 0.05);
    print_message("%s: %d indexes of %d, recall %.4f, above %.4f\n", gnomon_metric_name(metric),
                  indexes, 3 * seeds, (double)hits / (double)trials, bound);
    assert_true(indexes >= seeds);
    assert_true(bound >= 0.9);
}

/* The doubt that the guarantee leaves is dealt out over the attempts, and a smaller one takes more
 * queries to dispel. */
static void doubt(void **state)
{
    (void)state;
    static const double confidences[] = {0.6, 0.95, 0.999999};
    for (int c = 0; c < 3; c++) {
        double sum = 0;
        for (int attempt = 0; attempt < 4; attempt++) {
            const double here = gnomon_tuning_doubt(confidences[c], attempt);
            assert_true(here > 0 && here < 1);
            sum += here;
        }
        assert_true(fabs(sum - (1 - confidences[c])) < 1e-12);
    }
}

static void guarantee_l2(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_L2, (gnomon_lsh_family)0, 7);
}

static void guarantee_pstable(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_L2, GNOMON_LSH_PSTABLE, 7);
}

static void guarantee_simhash(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_COSINE, GNOMON_LSH_SIMHASH, 7);
}

/* Of dense points inverted lists are tried first, and nothing else where they will do; the same
 * ones for any number of threads. Their centres are trained without the points that are queries, of
 * half of the points at least. */
static void lists_come_first(void **state)
{
    (void)state;
    data *d = make_data(CLUSTERS, 3);
    const both v = views_of(d, GNOMON_L2);
    const gnomon_lsh_guarantee p = guarantee_of(GNOMON_L2, 3);
    gnomon_context *one = make_context(1, 0);
    gnomon_context *const each[] = {ctx, one};
    gnomon_lsh_info info[2] = {{.struct_size = sizeof *info}, {.struct_size = sizeof *info}};
    float centres[2][N * D], trained[N * D];
    for (int i = 0; i < 2; i++) {
        gnomon_lsh *index;
        gnomon_lsh_tuning t = {.struct_size = sizeof t};
        ASSERT_OK(each[i], gnomon_lsh_tune(each[i], &p, &v.base, NULL, &index, &t));
        assert_non_null(index);
        gnomon_lsh_describe(index, &info[i]);
        const gnomon_lsh_functions *f = &info[i].options.functions;
        assert_int_equal(f->family, GNOMON_LSH_KMEANS);
        memcpy(centres[i], f->centres, (size_t)(f->centre_count * D) * sizeof(float));
        assert_true(t.trial_count >= 1);
        for (int64_t j = 0; j < t.trial_count; j++) {
            assert_int_equal(t.trials[j].family, GNOMON_LSH_KMEANS);
            assert_int_equal(t.trials[j].centres, f->centre_count);
        }
        gnomon_lsh_destroy(index);
        gnomon_lsh_tuning_free(each[i], &t);
    }
    const gnomon_lsh_options *a = &info[0].options, *b = &info[1].options;
    assert_int_equal(a->functions.centre_count, b->functions.centre_count);
    assert_int_equal(a->search_params.probes, b->search_params.probes);
    assert_memory_equal(centres[0], centres[1],
                        (size_t)(a->functions.centre_count * D) * sizeof(float));
    gnomon_lsh_behind behind = {.points = &v.base, .seed = p.seed, .skip = N / 2};
    ASSERT_OK(ctx, gnomon_assign_open(ctx, GNOMON_L2, &v.base, &behind.assign));
    ASSERT_OK(ctx,
              gnomon_lsh_train_behind(ctx, GNOMON_LSH_KMEANS, &behind, a->functions.centre_count, 0,
                                      GNOMON_LSH_ROUNDS, trained, NULL));
    gnomon_assign_close(behind.assign);
    assert_memory_equal(centres[0], trained,
                        (size_t)(a->functions.centre_count * D) * sizeof(float));
    gnomon_context_destroy(one);
    free(d);
}

static void guarantee_cosine(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_COSINE, (gnomon_lsh_family)0, 7);
}

static void guarantee_hamming(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_HAMMING, (gnomon_lsh_family)0, 7);
}

static void guarantee_jaccard(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_JACCARD, (gnomon_lsh_family)0, 7);
}

static void guarantee_l1(void **state)
{
    (void)state;
    meet_guarantee(GNOMON_L1, (gnomon_lsh_family)0, 3);
}

/* What a trace in two levels tells of limits is what queries with these limits do: candidates,
 * buckets, and neighbours found, with and without codes. */
static void limits(void **state)
{
    (void)state;
    enum { STEPS = 4, CHOICES = 2 };
    const int64_t step[STEPS] = {20, 33, 70, 200}, verified[CHOICES] = {0, 8};
    data *d = make_data(CLUSTERS, 3);
    const both v = views_of(d, GNOMON_L2);
    const gnomon_points asked = {&v.asked, NULL};
    float candidates[Q * STEPS], share[Q * STEPS * CHOICES], buckets[Q * STEPS];
    gnomon_search_options so = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors truth = {.struct_size = sizeof truth}, found = truth;
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    so.k = K;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = D;
    o.functions.width = 3;
    o.tables = 4;
    o.coarse = 1;
    o.fine = 3;
    o.codes = 16;
    o.search_params.tables = 4;
    o.search_params.probes = 3;
    o.search_params.coarse = 12;
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index));
    ASSERT_OK(ctx, gnomon_lsh_add(index, &v.base));
    ASSERT_OK(ctx, gnomon_neighbors_exact(ctx, &v.base, &v.asked, &so, &truth));
    const gnomon_lsh_trace trace = {.offsets = truth.offsets,
                                    .ids = truth.ids,
                                    .least = K,
                                    .limits = true,
                                    .step = step,
                                    .steps = STEPS,
                                    .verified = verified,
                                    .choices = CHOICES,
                                    .scale = 1,
                                    .buckets = buckets,
                                    .candidates = candidates,
                                    .share = share};
    ASSERT_OK(ctx, gnomon_lsh_trace_queries(ctx, index, &asked, &o.search_params, &trace));
    for (int s = 0; s < STEPS; s++) {
        for (int c = 0; c < CHOICES; c++) {
            gnomon_lsh_search_params e = o.search_params;
            gnomon_lsh_work work = {.struct_size = sizeof work};
            double sums[3] = {0};
            int64_t hits = 0;
            e.candidates = step[s];
            e.rerank = verified[c];
            ASSERT_OK(ctx, gnomon_lsh_query(ctx, index, &v.asked, &so, &e, &found, &work));
            for (int64_t q = 0; q < Q; q++) {
                sums[0] += (double)candidates[q * STEPS + s];
                sums[1] += (double)buckets[q * STEPS + s];
                sums[2] += (double)share[(q * STEPS + s) * CHOICES + c] * K;
                for (int64_t i = 0; i < K * K; i++)
                    hits += found.ids[q * K + i / K] == truth.ids[q * K + i % K];
            }
            assert_int_equal(work.exact, 0);
            assert_true(sums[0] == (double)work.candidates && sums[1] == (double)work.buckets);
            assert_true(fabs(sums[2] - (double)hits) < 1e-3);
            assert_true(s > 0 || hits < Q * K); /* a limit that limits */
            gnomon_neighbors_free(ctx, &found);
        }
    }
    gnomon_neighbors_free(ctx, &truth);
    gnomon_lsh_destroy(index);
    free(d);
}

static void radius_and_memory(void **state)
{
    (void)state;
    data *d = make_data(CLUSTERS, 99);
    const both v = views_of(d, GNOMON_L2);
    gnomon_lsh_guarantee p = guarantee_of(GNOMON_L2, 1);
    gnomon_lsh *index;
    gnomon_lsh_tuning t = {.struct_size = sizeof t};
    gnomon_lsh_info info = {.struct_size = sizeof info};
    p.k = 0;
    p.radius = 0.4;
    p.recall = 0.8;
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, &v.asked, &index, &t));
    assert_non_null(index);
    assert_true(t.bound >= 0.8);
    gnomon_lsh_destroy(index);
    gnomon_lsh_tuning_free(ctx, &t);
    p.memory = 60000;
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, NULL, &index, &t));
    for (int64_t i = 0; i < t.trial_count; i++)
        assert_true(t.trials[i].bytes <= p.memory);
    if (index) {
        gnomon_lsh_describe(index, &info);
        assert_true(info.table_bytes + info.code_bytes + info.other_bytes <= p.memory);
    }
    gnomon_lsh_destroy(index);
    gnomon_lsh_tuning_free(ctx, &t);
    p.memory = 10; /* not even one table */
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, NULL, &index, &t));
    assert_true(t.exact && index == NULL);
    gnomon_lsh_tuning_free(ctx, &t);
    p.memory = 0;
    p.slower = 0;
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, NULL, &index, &t));
    assert_true(t.exact && index == NULL && strstr(t.reason, "faster"));
    gnomon_lsh_tuning_free(ctx, &t);
    /* one place for all points: nothing to go by, and nothing breaks */
    for (int i = 0; i < N * D; i++)
        d->x[i] = 3;
    p.k = 3;
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &v.base, NULL, &index, &t));
    assert_true(t.exact && index == NULL);
    gnomon_lsh_tuning_free(ctx, &t);
    free(d);
}

static void bad_guarantees(void **state)
{
    (void)state;
    data *d = make_data(NOISE, 5);
    both v = views_of(d, GNOMON_L2);
    gnomon_lsh *index;
    gnomon_lsh_tuning t = {.struct_size = sizeof t};
#define REFUSED(change, status, part)                                                         \
    do {                                                                                      \
        gnomon_lsh_guarantee p = guarantee_of(GNOMON_L2, 1);                                  \
        change;                                                                               \
        ASSERT_FAILS(ctx, gnomon_lsh_tune(ctx, &p, &v.base, NULL, &index, &t), status, part); \
        assert_null(index);                                                                   \
    } while (0)
    REFUSED(p.metric = GNOMON_IP, GNOMON_ERROR_UNSUPPORTED, "ip");
    REFUSED(p.metric = GNOMON_JACCARD, GNOMON_ERROR_UNSUPPORTED, "sparse");
    REFUSED(p.recall = 1, GNOMON_ERROR_ARGUMENT, "recall");
    REFUSED(p.recall = NAN, GNOMON_ERROR_ARGUMENT, "recall");
    REFUSED(p.confidence = 0.2, GNOMON_ERROR_ARGUMENT, "confidence");
    REFUSED(p.k = -1, GNOMON_ERROR_ARGUMENT, "guarantee.k");
    REFUSED((p.k = 0, p.radius = -1), GNOMON_ERROR_ARGUMENT, "radius");
    REFUSED(p.memory = -1, GNOMON_ERROR_ARGUMENT, "memory");
    REFUSED(p.queries = 10, GNOMON_ERROR_ARGUMENT, "queries");
    REFUSED(p.family = GNOMON_LSH_SIMHASH, GNOMON_ERROR_ARGUMENT, "guarantee.family is simhash");
    REFUSED(p.struct_size = 3, GNOMON_ERROR_ARGUMENT, "struct_size");
    d->x[7] = NAN;
    REFUSED((void)p, GNOMON_ERROR_NONFINITE, "base has NaN or infinity in row 0, column 7");
#undef REFUSED
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(binomial_bounds),
                                       cmocka_unit_test(betting),
                                       cmocka_unit_test(doubt),
                                       cmocka_unit_test(betting_on_all),
                                       cmocka_unit_test(guarantee_l2),
                                       cmocka_unit_test(guarantee_pstable),
                                       cmocka_unit_test(guarantee_simhash),
                                       cmocka_unit_test(lists_come_first),
                                       cmocka_unit_test(guarantee_cosine),
                                       cmocka_unit_test(guarantee_hamming),
                                       cmocka_unit_test(guarantee_jaccard),
                                       cmocka_unit_test(guarantee_l1),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(radius_and_memory),
                                       cmocka_unit_test(bad_guarantees)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
