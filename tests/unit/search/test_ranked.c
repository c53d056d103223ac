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
    static gnomon_ranked points[MOST], sorted[MOST], first[MOST];
    static uint64_t spare[2 * MOST];
    uint64_t drawn = 5;
    for (int round = 0; round < 700; round++) {
        const int64_t count = (int64_t)(draw_bits(&drawn) % MOST);
        const int64_t most = 1 + (int64_t)(draw_bits(&drawn) % (MOST + 20));
        for (int64_t i = 0; i < count; i++)
            sorted[i] = points[i] = (gnomon_ranked){key_of(round % 7, &drawn), (i * 37) % count};
        if (count > 0) qsort(sorted, (size_t)count, sizeof *sorted, in_order);
        const int64_t got = gnomon_ranked_first(points, count, most, spare, first);
        assert_int_equal(got, count < most ? count : most);
        for (int64_t i = 0; i < got; i++)
            if (first[i].key != sorted[i].key || first[i].id != sorted[i].id)
                fail_msg("round %d: place %lld of %lld has (%g, %lld), not (%g, %lld)", round,
                         (long long)i, (long long)count, first[i].key, (long long)first[i].id,
                         sorted[i].key, (long long)sorted[i].id);
    }
}

/* Rows with NaN have such keys until they are refused: no order, but each point once. */
static void keys_that_are_no_numbers(void **state)
{
    (void)state;
    static gnomon_ranked points[MOST], first[MOST];
    static uint64_t spare[2 * MOST];
    uint64_t drawn = 7;
    for (int round = 0; round < 100; round++) {
        bool seen[MOST] = {false};
        for (int64_t i = 0; i < MOST; i++)
            points[i] = (gnomon_ranked){i % 90 == round % 90 ? NAN : draw(&drawn), i};
        assert_int_equal(gnomon_ranked_first(points, MOST, MOST, spare, first), MOST);
        for (int64_t i = 0; i < MOST; i++) {
            assert_in_range(first[i].id, 0, MOST - 1);
            assert_false(seen[first[i].id]);
            seen[first[i].id] = true;
        }
    }
}

static float number_of(int like, uint64_t *state)
{
    const double x = draw(state);
    switch (like) {
    case 0:
        return (float)x;
    case 1: /* ties */
        return (float)floor(x * 4);
    case 2:
        return -3;
    case 3: /* far from zero: steps of the numbers are wider than buckets */
        return (float)(1e6 + x);
    case 4:
        return draw_bits(state) % 40 == 0 ? -INFINITY : (float)x;
    case 5: /* one far away: all others in one bucket */
        return draw_bits(state) % 300 == 0 ? 1e30F : (float)x;
    default:
        return (float)ldexp(x, (int)(draw_bits(state) % 250) - 125);
    }
}

/* The number of a rank, and one near it that as many reach. */
static void numbers_of_a_rank(void **state)
{
    (void)state;
    static float values[MOST], same[MOST];
    uint64_t drawn = 11;
    for (int round = 0; round < 700; round++) {
        const int64_t count = 1 + (int64_t)(draw_bits(&drawn) % (MOST - 1));
        const int64_t rank = 1 + (int64_t)(draw_bits(&drawn) % (uint64_t)count);
        for (int64_t i = 0; i < count; i++)
            values[i] = same[i] = number_of(round % 7, &drawn);
        const float about = gnomon_rank_about(same, count, rank);
        for (int64_t i = 0; i < count; i++)
            same[i] = values[i];
        const float exactly = gnomon_rank_largest(same, count, rank);
        int64_t above = 0, reach = 0, about_reach = 0;
        for (int64_t i = 0; i < count; i++) {
            above += values[i] > exactly;
            reach += values[i] >= exactly;
            about_reach += values[i] >= about;
        }
        assert_true(above < rank && rank <= reach);
        assert_true(about <= exactly);
        if (round % 7 != 3 && about_reach > reach + count / 16)
            fail_msg("round %d: %lld of %lld reach what %lld are to", round, (long long)about_reach,
                     (long long)count, (long long)rank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_of_many),
                                       cmocka_unit_test(keys_that_are_no_numbers),
                                       cmocka_unit_test(numbers_of_a_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
