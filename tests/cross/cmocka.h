/* A small stand-in for cmocka, so that unit tests run where that library is not to be
 * had: the core's tests on another processor. Only what those tests use. The first
 * failing check ends its test and is printed with its place. */
#ifndef GNOMON_TESTS_CROSS_CMOCKA_H
#define GNOMON_TESTS_CROSS_CMOCKA_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
    int (*setup)(void **state);
    int (*teardown)(void **state);
} CMUnitTest;

static jmp_buf cross_end;
static bool cross_skipped;

__attribute__((noreturn, unused)) static void cross_fail(const char *file, int line)
{
    fprintf(stderr, "  %s:%d\n", file, line);
    longjmp(cross_end, 1);
}

__attribute__((unused)) static bool cross_in_range(uintmax_t v, uintmax_t low, uintmax_t high)
{
    return v >= low && v <= high;
}

#define cross_check(holds, ...)                \
    do {                                       \
        if (!(holds)) {                        \
            fprintf(stderr, "  " __VA_ARGS__); \
            fprintf(stderr, "\n");             \
            cross_fail(__FILE__, __LINE__);    \
        }                                      \
    } while (0)

#define assert_true(c)  cross_check((c), "%s does not hold", #c)
#define assert_false(c) cross_check(!(c), "%s holds", #c)
#define assert_int_equal(a, b)                                                       \
    do {                                                                             \
        const intmax_t cross_a = (intmax_t)(a), cross_b = (intmax_t)(b);             \
        cross_check(cross_a == cross_b, "%s is %jd, not %jd", #a, cross_a, cross_b); \
    } while (0)
#define assert_int_not_equal(a, b) cross_check((intmax_t)(a) != (intmax_t)(b), "%s is %s", #a, #b)
#define assert_ptr_equal(a, b) \
    cross_check((const void *)(a) == (const void *)(b), "%s is not %s", #a, #b)
#define assert_non_null(p) cross_check((p) != NULL, "%s is NULL", #p)
#define assert_null(p)     cross_check((p) == NULL, "%s is not NULL", #p)
#define assert_string_equal(a, b)                                                             \
    do {                                                                                      \
        const char *cross_a = (a), *cross_b = (b);                                            \
        cross_check(strcmp(cross_a, cross_b) == 0, "\"%s\" is not \"%s\"", cross_a, cross_b); \
    } while (0)
#define assert_string_not_equal(a, b) cross_check(strcmp((a), (b)) != 0, "%s equals %s", #a, #b)
#define assert_memory_equal(a, b, n) \
    cross_check(memcmp((a), (b), (n)) == 0, "%s differs from %s", #a, #b)
#define assert_memory_not_equal(a, b, n) \
    cross_check(memcmp((a), (b), (n)) != 0, "%s equals %s", #a, #b)
#define assert_in_range(v, low, high)                                                \
    cross_check(cross_in_range((uintmax_t)(v), (uintmax_t)(low), (uintmax_t)(high)), \
                "%s is %jd, outside %s to %s", #v, (intmax_t)(v), #low, #high)
#define assert_float_equal(a, b, eps)                                       \
    cross_check(__builtin_fabs((double)(a) - (double)(b)) <= (double)(eps), \
                "%s is %.9g, not %.9g", #a, (double)(a), (double)(b))
#define assert_double_equal(a, b, eps) assert_float_equal(a, b, eps)
#define fail_msg(...)                  cross_check(false, __VA_ARGS__)
#define fail()                         cross_fail(__FILE__, __LINE__)
#define print_message(...)             printf(__VA_ARGS__)
#define print_error(...)               fprintf(stderr, __VA_ARGS__)
#define skip()                 \
    do {                       \
        cross_skipped = true;  \
        longjmp(cross_end, 1); \
    } while (0)

#define cmocka_unit_test(f) \
    {                       \
#f, f, NULL, NULL   \
    }
#define cmocka_unit_test_setup(f, setup) \
    {                                    \
#f, f, setup, NULL               \
    }
#define cmocka_unit_test_teardown(f, teardown) \
    {                                          \
#f, f, NULL, teardown                  \
    }
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    {                                                       \
#f, f, setup, teardown                              \
    }

typedef enum cross_outcome { CROSS_PASSED, CROSS_FAILED, CROSS_SKIPPED } cross_outcome;

static cross_outcome cross_run_one(const CMUnitTest *t, void **state)
{
    cross_skipped = false;
    if (t->setup && t->setup(state) != 0) return CROSS_FAILED;
    cross_outcome outcome = CROSS_PASSED;
    if (setjmp(cross_end) == 0)
        t->test(state);
    else
        outcome = cross_skipped ? CROSS_SKIPPED : CROSS_FAILED;
    if (t->teardown && t->teardown(state) != 0) return CROSS_FAILED;
    return outcome;
}

static int cross_run(const CMUnitTest *tests, size_t count, int (*setup)(void **),
                     int (*teardown)(void **))
{
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    int failed = 0;
    void *state = NULL;
    if (setup && setup(&state) != 0) {
        fprintf(stderr, "the group's setup failed\n");
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        const cross_outcome outcome = cross_run_one(&tests[i], &state);
        printf("%s: %s\n", tests[i].name, words[outcome]);
        failed += outcome == CROSS_FAILED;
    }
    if (teardown && teardown(&state) != 0) failed++;
    return failed;
}

#define cmocka_run_group_tests(tests, setup, teardown) \
    cross_run(tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#endif
