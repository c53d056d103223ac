/* The conformance list of operators on the CPU: near what is exact, and the same bits at every
 * level. With GNOMON_TEST_DEVICE=NAME also on the device of the plugin libgnomon_NAME.so. */
#include "conformance.h"

#include "base/isa.h"

static void every_kind_has_a_case(void **state)
{
    (void)state;
    const gnomon_kind_info *info;
    for (int i = 0; (info = gnomon_kind_at(i)) != NULL; i++) {
        bool found = false, inside = (info->flags & GNOMON_KIND_COMPOSED) != 0;
        for (int o = 0; o < OPERATORS; o++)
            found = found || all_operators[o].kind == info->kind;
        for (int o = 0; o < OPERATORS; o++)
            inside = inside || all_operators[o].inner == info->kind ||
                     (info->flags & GNOMON_KIND_INNER) == 0;
        if (!found || !inside)
            fail_msg("%s has no row in operator_cases.h%s", info->name,
                     found ? " as an inner kind" : "");
    }
}

static void every_level_conforms(void **state)
{
    (void)state;
    gnomon_context *cpu = make_context(1, 0);
    for (int o = 0; o < OPERATORS; o++) {
        uint64_t first = 0;
        for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
            if (!gnomon_isa_available((gnomon_isa)level)) continue;
            const char *name = gnomon_isa_name((gnomon_isa)level);
            assert_int_equal(setenv("GNOMON_ISA", name, 1), 0);
            conformance c = {.ctx = make_context(2, 0), .cpu = cpu, .sparse = true};
            assert_int_equal(unsetenv("GNOMON_ISA"), 0);
            conformance_run(&c, &all_operators[o]);
            gnomon_context_destroy(c.ctx);
            if (first == 0) first = c.digest;
            if (c.digest != first)
                fail_msg("%s: other bits at level %s", all_operators[o].name, name);
        }
    }
    gnomon_context_destroy(cpu);
}

/* A plugin need not do every case, but must do some, and what it does must be right. */
static void a_device_conforms(void **state)
{
    (void)state;
    const char *name = getenv("GNOMON_TEST_DEVICE");
    if (name == NULL) skip();
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = name;
    conformance c = {.cpu = make_context(1, 0), .partial = true, .product = 8};
    if (gnomon_context_create(&options, &c.ctx) != GNOMON_OK)
        fail_msg("%s: %s", name, gnomon_last_error(NULL));
    for (int o = 0; o < OPERATORS; o++)
        conformance_run(&c, &all_operators[o]);
    print_message("%s: %d cases done, %d declined\n", name, c.done, c.declined);
    if (c.done == 0) fail_msg("%s declined every case", name);
    gnomon_context_destroy(c.ctx);
    gnomon_context_destroy(c.cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_case),
        cmocka_unit_test(every_level_conforms),
        cmocka_unit_test(a_device_conforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
