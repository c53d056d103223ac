/* Exact joins of dense points against every pair in fp64: sets, order, bits. */
#include "join_points.h"

static int sketched; /* joins that went through a sketch */

static void check_case(kind like, gnomon_metric metric, gnomon_dtype dtype, int64_t n, int64_t m,
                       int64_t d, int threads, int64_t memory)
{
    points p = make(like, dtype, n, d, (uint64_t)(like * 100 + metric)), q;
    if (m > 0) q = make(like, dtype, m, d, (uint64_t)(like * 100 + metric) + 7);
    gathered all = brute(metric, &p, m > 0 ? &q : NULL);
    const int64_t ranks[] = {n / 3, all.count / 50, n > 500 ? 2 * n : all.count / 2};
    gnomon_context *ctx = context_of(threads, memory);
    for (int r = 0; r < 3; r++) {
        char what[200];
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gnomon_join_result result;
        o.metric = metric;
        o.threshold = rank_of(metric, &all, ranks[r]);
        gathered want = within(metric, &all, o.threshold);
        gathered got = joined(ctx, &p, m > 0 ? &q : NULL, o, &result);
        snprintf(what, sizeof what, "%s %s %s %lld x %lld x %lld, threshold %g", kind_names[like],
                 gnomon_metric_name(metric), gnomon_dtype_name(dtype), (long long)n, (long long)m,
                 (long long)d, o.threshold);
        same_pairs(&got, &want, what);
        sketched += strstr(result.why, "sketch") != NULL;
        free(got.pairs);
        free(want.pairs);
    }
    gnomon_context_destroy(ctx);
    free(all.pairs);
    drop(&p);
    if (m > 0) drop(&q);
}

static void kinds(void **state)
{
    (void)state;
    const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP, GNOMON_L1};
    const gnomon_dtype dtypes[] = {GNOMON_F32, GNOMON_F64, GNOMON_U8};
    for (kind like = 0; like < KINDS; like++) {
        for (int m = 0; m < 4; m++) {
            const int64_t d[] = {1, 3, 20, 47, 130};
            const gnomon_dtype dtype = dtypes[(like + m) % (like < HUGE_ONES ? 3 : 2)];
            check_case(like, metrics[m], dtype, 83, 0, d[(like + 2 * m) % 5], 1 + m, 0);
            check_case(like, metrics[m], dtypes[(like + m) % 2], 40, 71, d[(like + m) % 5], 2, 0);
        }
    }
}

/* Memory limits that cut rows and pieces everywhere, and threads. */
static void cuts(void **state)
{
    (void)state;
    check_case(BELL, GNOMON_L2, GNOMON_F32, 301, 0, 40, 3, 1);
    check_case(TERNARY, GNOMON_L2, GNOMON_U8, 301, 0, 20, 2, 100000);
    check_case(LOW, GNOMON_COSINE, GNOMON_F32, 211, 97, 60, 2, 1);
    check_case(LOW, GNOMON_IP, GNOMON_F64, 211, 0, 60, 1, 200000);
    check_case(LOW, GNOMON_L1, GNOMON_F32, 211, 97, 60, 2, 1);
    check_case(BELL, GNOMON_L1, GNOMON_F64, 660, 0, 100, 2, 3000000); /* no sketch */
}

/* Enough points, in enough dimensions, for a sketch. */
static void through_sketches(void **state)
{
    (void)state;
    int joins = 0;
    for (kind like = LOW; like < ALL_KINDS; like++) {
        for (int m = like == LOW ? 0 : like % 3; m < 3; m += like == LOW ? 1 : 3) {
            const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};
            const gnomon_dtype dtype = (like + m) % 2 == 0 ? GNOMON_F32 : GNOMON_F64;
            const bool two = (like + m) % 3 == 2;
            const int before = sketched;
            check_case(like, metrics[m], dtype, two ? 210 : 660, two ? 650 : 0, 100 + 7 * m, 1 + m,
                       like % 2 == 0 ? 0 : 3000000);
            joins++;
            printf("%s %s: %d of 3 through a sketch\n", kind_names[like],
                   gnomon_metric_name(metrics[m]), sketched - before);
        }
    }
    assert_true(sketched > joins);
}

/* Many dimensions and no structure: no sketch keeps pairs apart there, and the filter on all
 * coordinates must be what is taken, for it lets few pairs through to fp64. */
static void without_structure(void **state)
{
    (void)state;
    enum { N = 650, D = 1200 };
    static float x[N * D];
    uint64_t drawn = 77;
    for (int64_t i = 0; i < N * D; i++)
        x[i] = (float)draw(&drawn);
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result r = {.struct_size = sizeof r};
    o.threshold = 13.4; /* 14.1 is usual */
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, &r), GNOMON_OK);
    assert_true(r.pairs > 100);
    assert_true(r.verified < N * (N - 1) / 8);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(cuts),
        cmocka_unit_test(through_sketches),
        cmocka_unit_test(without_structure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
