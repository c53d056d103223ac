/* Which pairs a distortion is measured by: each pair once, in order, where all are taken, also
 * where a double can't tell one row's first pair from the next; else pairs drawn by Philox, to the
 * last bit of the number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/operator.h"
#include "quality/pairs.h"

#include <Random123/philox.h>

/* The number of pair (i, j) among n points, counted without rounding. */
static __int128 number_of(int64_t n, int64_t i, int64_t j)
{
    return (__int128)i * n - (__int128)i * (i + 1) / 2 + (j - i - 1);
}

static void assert_pair(int64_t n, int64_t t)
{
    const gnomon_pairs pairs = {.points = n, .count = n * (n - 1) / 2, .all = true};
    int64_t i = -1, j = -1;
    gnomon_pairs_get(&pairs, t, &i, &j);
    assert_true(0 <= i && i < j && j < n);
    assert_true(number_of(n, i, j) == t);
}

static void every_pair_once(void **unused)
{
    (void)unused;
    for (int64_t n = 2; n < 60; n++) {
        for (int64_t t = 0; t < n * (n - 1) / 2; t++)
            assert_pair(n, t);
    }
    uint64_t state = 1;
    for (int way = 0; way < 22 * 16; way++) {
        const int64_t n = ((int64_t)1 << (10 + way / 16)) - 1 - way % 16, count = n * (n - 1) / 2;
        for (int64_t t = 0; t < 20; t++) {
            assert_pair(n, t);
            assert_pair(n, count - 1 - t);
            /* the first and the last pair of a row */
            state = state * UINT64_C(6364136223846793005) + 1;
            const int64_t row = (int64_t)((state >> 1) % (uint64_t)(n - 2));
            assert_pair(n, (int64_t)number_of(n, row, row + 1));
            assert_pair(n, (int64_t)number_of(n, row, n - 1));
        }
    }
}

static void a_sample_is_drawn_by_whole_numbers(void **unused)
{
    (void)unused;
    const int64_t points[] = {2, 3, 1000, ((int64_t)1 << 32) + 15, ((int64_t)1 << 61) + 1};
    for (int p = 0; p < 5; p++) {
        const uint64_t n = (uint64_t)points[p], seed = UINT64_C(0x123456789abcdef);
        const gnomon_pairs pairs = {.points = points[p], .count = 1000, .seed = seed};
        for (int64_t t = 0; t < 1000; t++) {
            const philox4x32_ctr_t counter = {
                {(uint32_t)t, 0, 0, (uint32_t)GNOMON_TAG_SAMPLE << 24}};
            const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
            const philox4x32_ctr_t w = philox4x32_R(10, counter, key);
            const uint64_t x = (uint64_t)w.v[0] << 32 | w.v[1], y = (uint64_t)w.v[2] << 32 | w.v[3];
            const uint64_t a = (uint64_t)((unsigned __int128)x * n >> 64);
            uint64_t b = (uint64_t)((unsigned __int128)y * (n - 1) >> 64);
            b += b >= a;
            int64_t i = -1, j = -1;
            gnomon_pairs_get(&pairs, t, &i, &j);
            assert_int_equal(i, a < b ? a : b);
            assert_int_equal(j, a < b ? b : a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_once),
        cmocka_unit_test(a_sample_is_drawn_by_whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
