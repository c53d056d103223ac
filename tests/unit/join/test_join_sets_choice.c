/* Sets with the frequencies of words: exact lists are short, and a guaranteed recall takes them,
 * with the pairs of an exact join, since the model counts what the lists hold. */
#include "project.h"

#include <stdlib.h>

enum { N = 8000, WORDS = 20 };

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void words(void **unused)
{
    (void)unused;
    static int64_t offsets[N + 1], members[N * WORDS];
    static float ones[N * WORDS];
    uint64_t x = 4;
    int64_t at = 0;
    for (int64_t i = 0; i < N; i++) {
        int64_t *row = members + at;
        for (int w = 0; w < WORDS; w++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            row[w] = (int64_t)pow(50000, (double)(x >> 11) * 0x1p-53);
        }
        qsort(row, WORDS, sizeof *row, by_value);
        for (int w = 0; w < WORDS; w++)
            if (w == 0 || row[w] != members[at - 1]) members[at++] = row[w];
        offsets[i + 1] = at;
    }
    for (int64_t e = 0; e < at; e++)
        ones[e] = 1;
    const gnomon_csr sets = {N, 50001, offsets, members, ones, GNOMON_F32};
    gnomon_context *ctx;
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result exact = {.struct_size = sizeof exact}, chosen = exact;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    o.metric = GNOMON_JACCARD;
    o.threshold = 0.4;
    assert_int_equal(gnomon_join_csr(ctx, &sets, NULL, &o, &exact), GNOMON_OK);
    o.recall = 0.9;
    assert_int_equal(gnomon_join_csr(ctx, &sets, NULL, &o, &chosen), GNOMON_OK);
    assert_int_equal(chosen.method, GNOMON_JOIN_EXACT);
    assert_non_null(strstr(chosen.why, "an LSH join would cost"));
    assert_int_equal(chosen.pairs, exact.pairs);
    assert_int_equal(chosen.compared, exact.compared);
    o.method = GNOMON_JOIN_LSH; /* lists are not made for it, and none stay behind */
    assert_int_equal(gnomon_join_csr(ctx, &sets, NULL, &o, &chosen), GNOMON_OK);
    assert_int_equal(chosen.method, GNOMON_JOIN_LSH);
    assert_true(chosen.pairs <= exact.pairs && (double)chosen.pairs >= 0.9 * (double)exact.pairs);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
