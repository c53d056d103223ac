/* Tuning by inverted lists: which numbers of lists are tried and which is taken; the index is the
 * one that its options build; what batches keep stays within the memory that tuning was given. */
#include "lsh/tune/tune.h"
#include "meter.h"
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

static void numbers_of_lists(void **state)
{
    (void)state;
    static const struct {
        int64_t points, counts[GNOMON_LSH_LIST_COUNTS];
    } cases[] = {{100, {0, 0}},
                 {255, {0, 0}},
                 {256, {16, 0}},
                 {511, {16, 0}},
                 {512, {16, 32}},
                 {9000, {176, 368}},
                 {60000, {480, 976}},
                 {200000, {880, 1776}},
                 {(int64_t)1 << 30, {65536, 0}},
                 {(int64_t)1 << 28, {32768, 65536}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gnomon_lsh_sizes s = {.metric = GNOMON_L2, .dim = 8, .points = cases[i].points};
        int64_t counts[GNOMON_LSH_LIST_COUNTS] = {0};
        int found = 0;
        while (found < GNOMON_LSH_LIST_COUNTS && cases[i].counts[found] > 0)
            found++;
        assert_int_equal(gnomon_lsh_list_counts(&s, counts), found);
        for (int j = 0; j < found; j++)
            assert_int_equal(counts[j], cases[i].counts[j]);
    }
}

enum { N = 6000, D = 32, K = 5, ASKED = 400, FEWER = 144, MORE = 304 };

typedef struct data {
    float x[N * D], queries[ASKED * D];
    gnomon_matrix base, asked;
} data;

/* Points around so many others; 0: a swarm that is long in few directions. */
static data *make_data(int groups, uint64_t seed)
{
    data *d = malloc(sizeof *d);
    assert_non_null(d);
    for (int i = 0; i < N + ASKED; i++) {
        float *x = i < N ? d->x + i * D : d->queries + (i - N) * D;
        uint64_t centre = 77 * (next_random(&seed) % (uint64_t)(groups > 0 ? groups : 1)) + 5;
        for (int j = 0; j < D; j++)
            x[j] = groups > 0 ? (float)(next_uniform(&centre) + 0.15 * next_uniform(&seed))
                              : (float)next_uniform(&seed) / (float)(1 + j * j);
    }
    d->base = gnomon_matrix_rowmajor(d->x, GNOMON_F32, N, D);
    d->asked = gnomon_matrix_rowmajor(d->queries, GNOMON_F32, ASKED, D);
    return d;
}

static gnomon_lsh *tune_for(const data *d, int64_t memory, int64_t uses, int64_t *bytes)
{
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning t = {.struct_size = sizeof t};
    gnomon_lsh *index;
    p.metric = GNOMON_L2;
    p.k = K;
    p.recall = 0.9;
    p.memory = memory;
    p.uses = uses;
    p.slower = 1;
    ASSERT_OK(ctx, gnomon_lsh_tune(ctx, &p, &d->base, NULL, &index, &t));
    assert_non_null(index);
    assert_true(t.bound >= 0.9);
    *bytes = t.trials[0].bytes;
    for (int64_t i = 0; i < t.trial_count; i++)
        assert_int_equal(t.trials[i].centres, t.trials[0].centres);
    gnomon_lsh_tuning_free(ctx, &t);
    return index;
}

static gnomon_lsh *tune(const data *d, int64_t memory, int64_t *bytes)
{
    return tune_for(d, memory, 0, bytes);
}

static int64_t lists_of(const gnomon_lsh *index)
{
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    return info.options.functions.centre_count;
}

static void assert_built_as_told(const data *d, const gnomon_lsh *index)
{
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh *same;
    gnomon_lsh_describe(index, &info);
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &info.options, &same));
    ASSERT_OK(ctx, gnomon_lsh_add(same, &d->base));
    const gnomon_table *a = &index->tables[0], *b = &same->tables[0];
    assert_int_equal(a->buckets, b->buckets);
    assert_memory_equal(a->keys, b->keys, (size_t)a->buckets * sizeof *a->keys);
    assert_memory_equal(a->ids, b->ids, N * sizeof *a->ids);
    gnomon_lsh_destroy(same);
}

static int64_t bytes_of(const gnomon_lsh *index)
{
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    return info.table_bytes + info.code_bytes + info.other_bytes;
}

/* More groups than the fewer lists; none. */
static void the_number_follows_the_points(void **state)
{
    (void)state;
    int64_t bytes;
    data *groups = make_data(220, 3), *swarm = make_data(0, 4);
    gnomon_lsh *of_groups = tune(groups, 0, &bytes), *of_swarm = tune(swarm, 0, &bytes);
    print_message("groups %lld, swarm %lld\n", (long long)lists_of(of_groups),
                  (long long)lists_of(of_swarm));
    assert_int_equal(lists_of(of_groups), MORE);
    assert_int_equal(lists_of(of_swarm), FEWER);
    assert_built_as_told(groups, of_groups);
    assert_built_as_told(swarm, of_swarm);
    gnomon_lsh_destroy(of_groups);
    gnomon_lsh_destroy(of_swarm);
    free(groups);
    free(swarm);
}

/* Memory for the fewer lists alone; for the others, but not for what batches keep. */
static void within_memory(void **state)
{
    (void)state;
    int64_t bytes, fewer;
    data *d = make_data(220, 3);
    gnomon_lsh *index = tune(d, 0, &bytes);
    assert_int_equal(lists_of(index), MORE);
    gnomon_lsh_destroy(index);
    index = tune(d, bytes - 1, &fewer);
    assert_int_equal(lists_of(index), FEWER);
    assert_true(fewer < bytes);
    gnomon_lsh_destroy(index);
    for (int kept = 0; kept < 2; kept++) {
        const int64_t memory = kept ? 0 : bytes + 1000;
        gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
        gnomon_neighbors found = {.struct_size = sizeof found};
        index = tune(d, memory, &bytes);
        s.k = K;
        ASSERT_OK(ctx, gnomon_lsh_query(ctx, index, &d->asked, &s, NULL, &found, NULL));
        gnomon_neighbors_free(ctx, &found);
        if (!kept) assert_true(bytes_of(index) <= memory);
        assert_true(bytes_of(index) <= (int64_t)sizeof d->x); /* the default */
        gnomon_lsh_destroy(index);
    }
    free(d);
}

/* Few queries do not pay for the larger number, which more of them do. */
static void the_number_follows_the_uses(void **state)
{
    (void)state;
    int64_t bytes;
    data *d = make_data(220, 3);
    gnomon_lsh *few = tune_for(d, 0, 10, &bytes), *many = tune_for(d, 0, 10000000, &bytes);
    assert_int_equal(lists_of(few), FEWER);
    assert_int_equal(lists_of(many), MORE);
    gnomon_lsh_destroy(few);
    gnomon_lsh_destroy(many);
    free(d);
}

/* Thousands of true neighbours of each query: their rows are not copied. */
static void many_neighbours_take_little_memory(void **state)
{
    (void)state;
    meter m = {0};
    const gnomon_allocator a = {&m, meter_allocate, meter_release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning t = {.struct_size = sizeof t};
    gnomon_context *metered;
    gnomon_lsh *index;
    o.threads = 2;
    o.memory_limit = 16 << 20;
    o.allocator = &a;
    assert_int_equal(gnomon_context_create(&o, &metered), GNOMON_OK);
    data *d = make_data(220, 3);
    p.metric = GNOMON_L2;
    p.k = N / 3;
    p.recall = 0.9;
    p.slower = 1;
    ASSERT_OK(metered, gnomon_lsh_tune(metered, &p, &d->base, NULL, &index, &t));
    /* 256 queries' neighbours and their distances are 8 MB; their rows would be 65 */
    assert_true(m.peak < INT64_C(40) << 20);
    gnomon_lsh_tuning_free(metered, &t);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(metered);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_lists), cmocka_unit_test(the_number_follows_the_points),
        cmocka_unit_test(within_memory), cmocka_unit_test(the_number_follows_the_uses),
        cmocka_unit_test(many_neighbours_take_little_memory)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
