/* What the shipped model expects of sparse points: no less than writing the sketch costs. */
#include "project.h"

static gnomon_choice choose(gnomon_context *ctx, int64_t k)
{
    gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
    o.n = 1000000;
    o.d = 30000;
    o.k = k;
    o.nonzeros = 50 * o.n;
    gnomon_choice c = {.struct_size = sizeof c};
    ASSERT_OK(ctx, gnomon_operator_choose(ctx, &o, &c));
    return c;
}

/* A million points' sketches of 1000 numbers more are 4 GB more: no machine writes them in less
 * than 0.3 s on one thread. (Costs without the products or the output expected 0.02 s.) */
static void the_output_counts(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(1, 0);
    const gnomon_choice small = choose(ctx, 1000), large = choose(ctx, 2000);
    assert_int_equal(small.count, large.count);
    for (int i = 0; i < small.count; i++) {
        /* wider cascades have fewer levels */
        if (small.candidate[i].descriptor.kind == GNOMON_KRONECKER) continue;
        const double more = large.candidate[i].seconds - small.candidate[i].seconds;
        if (!(more >= 0.3))
            fail_msg("%s: 1000 numbers a point more cost %g s",
                     gnomon_kind_name(small.candidate[i].descriptor.kind), more);
    }
    /* dense kinds multiply each nonzero with k numbers, sparse kinds with far fewer */
    double dense = 0, sparse = 0;
    for (int i = 0; i < large.count; i++) {
        if (large.candidate[i].descriptor.kind == GNOMON_GAUSSIAN)
            dense = large.candidate[i].seconds;
        if (large.candidate[i].descriptor.kind == GNOMON_SJLT) sparse = large.candidate[i].seconds;
    }
    assert_true(dense > 2 * sparse && sparse > 0);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_output_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
