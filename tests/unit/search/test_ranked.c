/* The first of many points in order: ties, equal keys, infinite and huge ones, every number asked.
 */
#include "search_testing.h"

#include "search/ranked.h"

enum { MOST = 700 };

static int in_order(const void *x, const void *y)
{
    const gnomon_ranked *a = x, *b = y;
    return gnomon_ranked_before(*a, *b) ? -1 : gnomon_ranked_before(*b, *a);
}

static double key_of(int like, uint64_t *state)
{
    const double x = draw(state);
    switch (like) {
    case 0:
        return x;
    case 1: /* ties */
        return floor(x * 4);
    case 2:
        return 3;
    case 3:
        return ldexp(x, (int)(draw_bits(state) % 2000) - 1000);
    case 4:
        return draw_bits(state) % 40 == 0 ? INFINITY : x;
    case 5: /* one far away: all others in one bucket */
        return draw_bits(state) % 300 == 0 ? 1e300 : x;
    default:
        return draw_bits(state) % 2 == 0 ? -1.7e308 * fabs(x) : 1.7e308 * fabs(x);
    }
}

static void first_of_many(void **state)
{
    (void)state;
    static gnomon_ranked points[MOST], sorted[MOST], spare[MOST];
    static uint32_t counts[GNOMON_RANKED_BUCKETS * MOST];
    uint64_t drawn = 5;
    for (int round = 0; round < 700; round++) {
        const int64_t count = (int64_t)(draw_bits(&drawn) % MOST);
        const int64_t most = 1 + (int64_t)(draw_bits(&drawn) % (MOST + 20));
        for (int64_t i = 0; i < count; i++)
            sorted[i] = points[i] = (gnomon_ranked){key_of(round % 7, &drawn), (i * 37) % count};
        if (count > 0) qsort(sorted, (size_t)count, sizeof *sorted, in_order);
        const int64_t got = gnomon_ranked_first(points, count, most, spare, counts);
        assert_int_equal(got, count < most ? count : most);
        for (int64_t i = 0; i < got; i++)
            if (points[i].key != sorted[i].key || points[i].id != sorted[i].id)
                fail_msg("round %d: place %lld of %lld has (%g, %lld), not (%g, %lld)", round,
                         (long long)i, (long long)count, points[i].key, (long long)points[i].id,
                         sorted[i].key, (long long)sorted[i].id);
    }
}

/* Rows with NaN have such keys until they are refused: no order, but each point once. */
static void keys_that_are_no_numbers(void **state)
{
    (void)state;
    static gnomon_ranked points[MOST], spare[MOST];
    static uint32_t counts[GNOMON_RANKED_BUCKETS * MOST];
    uint64_t drawn = 7;
    for (int round = 0; round < 100; round++) {
        bool seen[MOST] = {false};
        for (int64_t i = 0; i < MOST; i++)
            points[i] = (gnomon_ranked){i % 90 == round % 90 ? NAN : draw(&drawn), i};
        assert_int_equal(gnomon_ranked_first(points, MOST, MOST, spare, counts), MOST);
        for (int64_t i = 0; i < MOST; i++) {
            assert_in_range(points[i].id, 0, MOST - 1);
            assert_false(seen[points[i].id]);
            seen[points[i].id] = true;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_of_many),
                                       cmocka_unit_test(keys_that_are_no_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
