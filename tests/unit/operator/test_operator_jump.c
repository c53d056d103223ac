/* c of section 4.5 is the fp32 number nearest to the exact -1/ln(1 - p). */
#include "operator_testing.h"

#include "operator/operator.h"

#include <stdint.h>

/* Densities whose -1/ln(1 - p) lies within 2^-65 to 2^-69.5 (relative) of the middle between two
 * fp32 numbers, with the nearer one, both found in 60 digits; then the ends of the range. */
static const struct {
    double p;
    float c;
} cases[] = {
    {0x1.4ad91daa6474bp-4, 0x1.7bf1f60000000p+3f},
    {0x1.2e8616eb2eeb5p-12, 0x1.b133040000000p+11f},
    {0x1.d61d088f5ed54p-25, 0x1.16cf300000000p+24f},
    {0x1.29c017fb3615fp-23, 0x1.b8352a0000000p+22f},
    {0x1.b99dce46f2745p-18, 0x1.28ccb20000000p+17f},
    {0x1.58ab840beaa84p-5, 0x1.7439ac0000000p+4f},
    {0x1.1cb96c6545a2ep-27, 0x1.cc58da0000000p+26f},
    {0x1.25a1db25461cbp-29, 0x1.be61aa0000000p+28f},
    {0x1.b77ba26434694p-5, 0x1.222af80000000p+4f},
    {0x1.30d4802064ac6p-4, 0x1.9dc7120000000p+3f},
    {0x1.368ff0a9a20fep-28, 0x1.a60c240000000p+27f},
    {0x1.6cacd0e6aed1cp-21, 0x1.676bd40000000p+20f},
    {0x1.c38704dd869eap-8, 0x1.2148de0000000p+7f},
    {0x1.d7fe34d50d185p-6, 0x1.11adf60000000p+5f},
    {0x1.30715e0d9cee3p-5, 0x1.a67af00000000p+4f},
    {0x1.3777610b66e05p-25, 0x1.a4d2880000000p+24f},
    {0x1.4864fe932f65ap-6, 0x1.8b1dc00000000p+5f},
    {0x1.03dd90a0a85e6p-26, 0x1.f862500000000p+25f},
    {0x1.be21169176c2bp-27, 0x1.25cc5a0000000p+26f},
    {0x1.437b5f1068b4dp-20, 0x1.9530dc0000000p+19f},
    {0x1.32505129d6143p-6, 0x1.a7e3780000000p+5f},
    {0x1.06d2cf5d9b0e4p-20, 0x1.f2b5060000000p+19f},
    {0x1.3778f4cd5f90ep-9, 0x1.a450580000000p+8f},
    {0x1.b3dca2dc7fa4bp-22, 0x1.2cb8160000000p+21f},
    {0x1p-30, 0x1p30f},
    {0.5, 0x1.715476p+0f},
    {0x1.fffffffffffffp-1, 0x1.bdfbbap-6f},
    {1, 0},
};

static void c_is_the_nearest_number(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        d.kind = GNOMON_VERY_SPARSE;
        d.k = 1;
        d.d = 1000;
        d.density = cases[i].p;
        gnomon_operator *op = new_operator(ctx, &d);
        if (op->factor[0].jump_scale != cases[i].c)
            fail_msg("p = %a: c is %a, not %a", cases[i].p, (double)op->factor[0].jump_scale,
                     (double)cases[i].c);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(c_is_the_nearest_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
