/* Choosing the instruction set level, and forcing it down. */
#include "base/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

static int clear(void **state)
{
    (void)state;
    return unsetenv("GNOMON_ISA");
}

static void the_best_is_chosen(void **state)
{
    (void)state;
    int best = 0;
    for (int level = 0; level < GNOMON_ISA_COUNT; level++)
        if (gnomon_isa_available((gnomon_isa)level)) best = level;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_string_equal(gnomon_context_isa(ctx), gnomon_isa_name((gnomon_isa)best));
    assert_int_equal(gnomon_context_isa_level(ctx), best);
    gnomon_context_destroy(ctx);
#if defined(__x86_64__)
    /* the compiler's own look at the machine agrees */
    __builtin_cpu_init();
    assert_int_equal(gnomon_isa_available(GNOMON_ISA_AVX2),
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(gnomon_isa_available(GNOMON_ISA_AVX512),
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
    assert_false(gnomon_isa_available(GNOMON_ISA_NEON));
#endif
}

static void each_available_level_can_be_forced(void **state)
{
    (void)state;
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        const char *name = gnomon_isa_name((gnomon_isa)level);
        assert_int_equal(setenv("GNOMON_ISA", name, 1), 0);
        gnomon_context *ctx;
        const gnomon_status status = gnomon_context_create(NULL, &ctx);
        if (gnomon_isa_available((gnomon_isa)level)) {
            assert_int_equal(status, GNOMON_OK);
            assert_string_equal(gnomon_context_isa(ctx), name);
            gnomon_context_destroy(ctx);
        } else {
            assert_int_equal(status, GNOMON_ERROR_ARGUMENT);
            assert_non_null(strstr(gnomon_last_error(NULL), name));
        }
    }
}

static void unknown_names_fail(void **state)
{
    (void)state;
    static const char *const names[] = {"sse9", "AVX2", "avx2 ", "portable,avx2", "avx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("GNOMON_ISA", names[i], 1);
        gnomon_context *ctx;
        assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_ERROR_ARGUMENT);
        assert_null(ctx);
        const char *text = gnomon_last_error(NULL);
        assert_non_null(strstr(text, "GNOMON_ISA"));
        assert_non_null(strstr(text, names[i]));
        assert_non_null(strstr(text, "available here: portable"));
    }
    setenv("GNOMON_ISA", "", 1); /* empty is as good as unset */
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_is_chosen, clear, clear),
        cmocka_unit_test_setup_teardown(each_available_level_can_be_forced, clear, clear),
        cmocka_unit_test_setup_teardown(unknown_names_fail, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
