/* The memory that a join by hashing asks for: keys of every table for both sides, and a table in
 * order; refused when they pass the limit. */
#include "join_testing.h"

enum { N = 4000, M = 1500, D = 16 };

/* The figure after some words of a text. */
static int64_t figure(const char *text, const char *before)
{
    const char *at = strstr(text, before);
    if (at == NULL) fail_msg("no '%s' in '%s'", before, text);
    return strtoll(at + strlen(before), NULL, 10);
}

static void refused_by_what_it_takes(void **state)
{
    (void)state;
    float *x = malloc(sizeof *x * N * D);
    uint64_t seed = 5;
    assert_non_null(x);
    for (int i = 0; i < N * D; i++)
        x[i] = (float)(draw_bits(&seed) >> 40) * 0x1p-24f;
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, N, D);
    const gnomon_matrix q = gnomon_matrix_rowmajor(x, GNOMON_F32, M, D);
    for (int self = 0; self < 2; self++) {
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.method = GNOMON_JOIN_LSH;
        o.recall = 0.99;
        o.threshold = 0.5;
        gnomon_join_result r = {.struct_size = sizeof r};
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        options.device = "cpu";
        options.threads = 1;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        assert_int_equal(gnomon_join(ctx, &p, self ? NULL : &q, &o, &r), GNOMON_OK);
        gnomon_context_destroy(ctx);
        const int64_t tables = figure(r.why, ": ") + figure(r.why, " and ");
        const int64_t keys = (N + (self ? 0 : M)) * 4 * tables;
        const int64_t table = N * 32 + (self ? 0 : M * 24);
        assert_true(tables > 4);
        options.memory_limit = keys / 2 + table;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        assert_int_equal(gnomon_join(ctx, &p, self ? NULL : &q, &o, &r), GNOMON_ERROR_MEMORY);
        assert_int_equal(figure(gnomon_last_error(ctx), "an LSH join of this takes "),
                         keys + table);
        o.method = GNOMON_JOIN_AUTO; /* then an exact one */
        assert_int_equal(gnomon_join(ctx, &p, self ? NULL : &q, &o, &r), GNOMON_OK);
        assert_int_equal(r.method, GNOMON_JOIN_EXACT);
        gnomon_context_destroy(ctx);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_by_what_it_takes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
