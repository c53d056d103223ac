/* What tuning and building cost is charged to the queries that an index is for: with given costs
 * exact search is taken when it ends sooner, an index when that does, and tuning isn't begun for
 * queries that end before it. No clock takes part. */
#include "lsh/tune/tune.h"
#include "project.h"

#include <stdlib.h>
#include <string.h>

/* Exact search of 1,000 queries takes 100,000. */
static const gnomon_lsh_charge thousand = {1000, 100}, unknown = {0, 100};

static void looking(void **state)
{
    (void)state;
    assert_false(gnomon_lsh_may_pay(&thousand, 60000, 50000)); /* tuning alone takes longer */
    assert_false(gnomon_lsh_may_pay(&thousand, 50001, 0));
    assert_false(gnomon_lsh_may_pay(&thousand, 0, 50001));
    assert_true(gnomon_lsh_may_pay(&thousand, 30000, 20000));
    const gnomon_lsh_charge twice = {2000, 100};
    assert_true(gnomon_lsh_may_pay(&twice, 50001, 0));
    assert_true(gnomon_lsh_may_pay(&unknown, 1e30, 1e30)); /* an index that stays */
}

static void paying(void **state)
{
    (void)state;
    assert_true(gnomon_lsh_pays(&thousand, 10, 89999));
    assert_false(gnomon_lsh_pays(&thousand, 10, 90000));
    assert_false(gnomon_lsh_pays(&thousand, 100, 0));
    assert_true(gnomon_lsh_pays(&thousand, 99, 0)); /* all else is done */
    assert_true(gnomon_lsh_pays(&unknown, 99, 1e30));
    assert_false(gnomon_lsh_pays(&unknown, 100, 0));
    /* of two ways the one that is dearer to build is the cheaper for many queries */
    const gnomon_lsh_charge few = {10, 100}, many = {100000, 100};
    assert_true(gnomon_lsh_share(&few, 20, 1000) < gnomon_lsh_share(&few, 10, 10000));
    assert_true(gnomon_lsh_share(&many, 20, 1000) > gnomon_lsh_share(&many, 10, 10000));
    assert_true(gnomon_lsh_share(&unknown, 20, 1000) == 20);
}

/* ---- the same through gnomon_lsh_tune: 16,384 points in tight groups of 16 ---- */

enum { N = 16384, D = 256, GROUP = 16, K = 4 };

static float *make_points(void)
{
    uint64_t x = 9;
    float *points = malloc(sizeof *points * (size_t)N * D);
    assert_non_null(points);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = 0; j < D; j++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const float noise = (float)((double)(x >> 40) * 0x1p-24 - 0.5);
            points[i * D + j] =
                i % GROUP == 0 ? noise : points[(i - i % GROUP) * D + j] + noise * 0x1p-10f;
        }
    }
    return points;
}

static gnomon_lsh *tuned(gnomon_context *ctx, const gnomon_matrix *m, int64_t uses, int slower,
                         gnomon_lsh_tuning *t)
{
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh *index;
    p.k = K;
    p.uses = uses;
    p.slower = slower;
    *t = (gnomon_lsh_tuning){.struct_size = sizeof *t};
    assert_int_equal(gnomon_lsh_tune(ctx, &p, m, NULL, &index, t), GNOMON_OK);
    assert_int_equal(t->exact, index == NULL);
    return index;
}

static void tuning(void **state)
{
    (void)state;
    gnomon_context *ctx;
    gnomon_lsh_tuning t;
    float *points = make_points();
    const gnomon_matrix m = {.data = points,
                             .dtype = GNOMON_F32,
                             .rows = N,
                             .cols = D,
                             .row_stride = D,
                             .col_stride = 1};
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    /* tuning would take 256 exact queries to begin with: nothing is asked */
    static const int64_t few[] = {1, 256, 1000};
    for (int i = 0; i < 3; i++) {
        assert_null(tuned(ctx, &m, few[i], 0, &t));
        assert_true(t.asked == 0 && t.tested == 0 && t.trial_count == 0);
        assert_true((double)few[i] * t.exact_cost < 2 * (256 * t.exact_cost + 5e8));
        assert_non_null(strstr(t.reason, "before tuning does"));
        gnomon_lsh_tuning_free(ctx, &t);
    }
    /* what is asked for at any price is built */
    gnomon_lsh *index = tuned(ctx, &m, 1, 1, &t);
    assert_non_null(index);
    gnomon_lsh_destroy(index);
    gnomon_lsh_tuning_free(ctx, &t);
    /* a million queries pay for it, and so does an index that stays */
    static const int64_t many[] = {1000000, 0};
    for (int i = 0; i < 2; i++) {
        index = tuned(ctx, &m, many[i], 0, &t);
        assert_non_null(index);
        assert_true(t.asked > 0 && t.bound >= 0.9);
        for (int64_t w = 0; w < t.trial_count; w++)
            if (t.trials[w].chosen == 2) assert_true(t.trials[w].cost < t.exact_cost);
        gnomon_lsh_destroy(index);
        gnomon_lsh_tuning_free(ctx, &t);
    }
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    t = (gnomon_lsh_tuning){.struct_size = sizeof t};
    p.k = K;
    p.uses = -1;
    assert_int_equal(gnomon_lsh_tune(ctx, &p, &m, NULL, &index, &t), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(ctx), "guarantee.uses is -1"));
    gnomon_context_destroy(ctx);
    free(points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(looking), cmocka_unit_test(paying),
                                       cmocka_unit_test(tuning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
