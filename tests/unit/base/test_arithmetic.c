/* Functions of integers against 128-bit arithmetic, up to where an int64_t ends. */
#include "base/arithmetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t values[] = {INT64_MIN + 1,
                                 -((int64_t)1 << 53) - 1,
                                 -65537,
                                 -8,
                                 -7,
                                 -1,
                                 0,
                                 1,
                                 2,
                                 7,
                                 8,
                                 63,
                                 64,
                                 65,
                                 65536,
                                 (int64_t)1 << 53,
                                 1 << 30,
                                 INT64_MAX - 1,
                                 INT64_MAX};
enum { COUNT = sizeof values / sizeof values[0] };

static void lesser_and_greater(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            const int64_t a = values[i], b = values[j];
            assert_true(gnomon_min(a, b) == (i < j ? gnomon_min(b, a) : gnomon_min(a, b)));
            assert_true(gnomon_min(a, b) <= a && gnomon_min(a, b) <= b);
            assert_true(gnomon_max(a, b) >= a && gnomon_max(a, b) >= b);
            assert_true((__int128)gnomon_min(a, b) + gnomon_max(a, b) == (__int128)a + b);
        }
        assert_true(gnomon_abs(values[i]) == (values[i] < 0 ? -values[i] : values[i]));
    }
}

/* The only number q with (q - 1) b < a <= q b. */
static void quotients_rounded_up(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            const __int128 a = values[i], b = values[j];
            if (b <= 0) continue;
            const __int128 q = gnomon_ceil_div(values[i], values[j]);
            assert_true((q - 1) * b < a && a <= q * b);
            if (q * b <= INT64_MAX) assert_true(gnomon_round_up(values[i], values[j]) == q * b);
        }
    }
}

/* They follow one another, and none has more than one more than another. */
static void equal_shares(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        const int64_t count = values[i];
        if (count < 0) continue;
        for (int64_t shares = 1; shares < 10; shares++) {
            assert_true(gnomon_part_begin(count, 0, shares) == 0);
            assert_true(gnomon_part_begin(count, shares, shares) == count);
            for (int64_t s = 0; s < shares; s++) {
                const int64_t own =
                    gnomon_part_begin(count, s + 1, shares) - gnomon_part_begin(count, s, shares);
                assert_true(own == count / shares || own == gnomon_ceil_div(count, shares));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lesser_and_greater),
                                       cmocka_unit_test(quotients_rounded_up),
                                       cmocka_unit_test(equal_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
