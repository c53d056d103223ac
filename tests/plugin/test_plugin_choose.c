/* Choosing an operator when a device plugin is open whose device nobody has measured. */
#include "choose/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

static gnomon_choice choose(const char *device, int64_t nonzeros)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
    gnomon_context *ctx;
    gnomon_choice choice;
    options.device = device;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    choice.struct_size = sizeof choice;
    o.n = 1000;
    o.d = 20000;
    o.k = 64;
    o.nonzeros = nonzeros;
    if (gnomon_operator_choose(ctx, &o, &choice) != GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    gnomon_context_destroy(ctx);
    return choice;
}

static void test_unknown_gpu(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        const gnomon_choice c = choose(named ? "cuda" : "auto", -1);
        char expected[sizeof c.note];
        assert_int_equal(c.device, GNOMON_DEVICE_PLUGIN);
        assert_true(c.chosen >= 0 && c.candidate[c.chosen].seconds > 0);
        snprintf(expected, sizeof expected,
                 "no costs were measured on test device -1: those of %s are taken", c.model);
        assert_string_equal(c.note, expected);
    }
}

/* The CPU has its own costs, plugin or not; sparse points stay there. */
static void test_cpu(void **state)
{
    (void)state;
    const gnomon_choice dense = choose("cpu", -1);
    const gnomon_choice sparse = choose("auto", 5000);
    assert_int_equal(dense.device, GNOMON_DEVICE_CPU);
    assert_int_equal(sparse.device, GNOMON_DEVICE_CPU);
    assert_string_equal(dense.note, "");
    assert_string_equal(sparse.note, "");
}

int main(void)
{
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unknown_gpu),
                                       cmocka_unit_test(test_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
