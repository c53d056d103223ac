/* Exact joins of dense points through sketches, at every level of instructions the machine has,
 * against every pair in fp64: sets, order, bits. */
#include "join_points.h"

#include "base/isa.h"

static int joins[GNOMON_ISA_COUNT], sketched[GNOMON_ISA_COUNT], eight[GNOMON_ISA_COUNT];

static void check_levels(kind like, gnomon_metric metric, gnomon_dtype dtype, int64_t n, int64_t m,
                         int64_t d, int64_t memory)
{
    points p = make(like, dtype, n, d, (uint64_t)(like * 100 + metric)), q;
    if (m > 0) q = make(like, dtype, m, d, (uint64_t)(like * 100 + metric) + 7);
    gathered all = brute(metric, &p, m > 0 ? &q : NULL);
    const int64_t ranks[] = {n / 3, all.count / 50, 2 * n};
    for (int r = 0; r < 3; r++) {
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.metric = metric;
        o.threshold = rank_of(metric, &all, ranks[r]);
        gathered want = within(metric, &all, o.threshold);
        for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
            if (!gnomon_isa_available((gnomon_isa)level)) continue;
            const char *isa = gnomon_isa_name((gnomon_isa)level);
            char what[200];
            gnomon_join_result result;
            assert_int_equal(setenv("GNOMON_ISA", isa, 1), 0);
            gnomon_context *ctx = context_of(1 + (level + r) % 3, memory);
            gathered got = joined(ctx, &p, m > 0 ? &q : NULL, o, &result);
            snprintf(what, sizeof what, "%s: %s %s %s %lld x %lld x %lld, threshold %g", isa,
                     kind_names[like], gnomon_metric_name(metric), gnomon_dtype_name(dtype),
                     (long long)n, (long long)m, (long long)d, o.threshold);
            same_pairs(&got, &want, what);
            joins[level]++;
            sketched[level] += strstr(result.why, "sketch") != NULL;
            eight[level] += strstr(result.why, "8 bits") != NULL;
            free(got.pairs);
            gnomon_context_destroy(ctx);
        }
        free(want.pairs);
    }
    free(all.pairs);
    drop(&p);
    if (m > 0) drop(&q);
}

static void every_level(void **state)
{
    (void)state;
    const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};
    const int64_t d[] = {48, 65, 131, 270};
    const kind more[] = {BELL, DUPLICATES, ZEROS, TERNARY, ALIKE};
    for (kind like = LOW; like < ALL_KINDS; like++) {
        for (int m = like == LOW ? 0 : like % 3; m < 3; m += like == LOW ? 1 : 2) {
            const bool two = (like + m) % 3 == 2;
            check_levels(like, metrics[m], (like + m) % 2 == 0 ? GNOMON_F32 : GNOMON_F64,
                         two ? 210 : 660, two ? 650 : 0, d[(like + m) % 4],
                         like % 2 == 0 ? 0 : 3000000);
        }
    }
    for (int m = 0; m < 3; m++) {
        check_levels(more[m], metrics[m], GNOMON_F32, 670, 0, d[m], 0);
        check_levels(more[m + 2], metrics[(m + 1) % 3], GNOMON_F32, 650, 0, d[m + 1], 0);
        check_levels(LOW, metrics[m], GNOMON_U8, 690, 0, 97, 0);
        check_levels(LOW_DOUBLES, metrics[m], GNOMON_U8, 200, 700, 130, 0);
    }
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (joins[level] == 0) continue;
        const char *isa = gnomon_isa_name((gnomon_isa)level);
        printf("%s: %d of %d joins through a sketch, %d of 8 bits\n", isa, sketched[level],
               joins[level], eight[level]);
        assert_true(sketched[level] > joins[level] / 2);
        if (strcmp(isa, "avx512_vnni") == 0 || strcmp(isa, "amx") == 0)
            assert_true(eight[level] > joins[level] / 2);
    }
    assert_int_equal(unsetenv("GNOMON_ISA"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_level)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
