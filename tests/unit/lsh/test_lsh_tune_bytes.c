/* What tuning says an index of sets would take beside the points is what the one it hands out
 * takes. */
#include <gnomon/lsh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 1500, MEMBERS = 12, COLS = 4000 };

static void bytes_of_sets(void **state)
{
    (void)state;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 2;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    int64_t *offsets = malloc(sizeof *offsets * (N + 1));
    int64_t *members = malloc(sizeof *members * N * MEMBERS);
    float *ones = malloc(sizeof *ones * N * MEMBERS);
    uint32_t word = 5;
    offsets[0] = 0;
    for (int i = 0; i < N; i++) {
        offsets[i + 1] = offsets[i] + MEMBERS;
        for (int j = 0; j < MEMBERS; j++) {
            word = word * 1664525 + 1013904223;
            /* fives of near sets */
            members[i * MEMBERS + j] =
                j < 10 ? ((i / 5) * 37 + j * 301) % COLS : (int64_t)(word >> 8) % COLS;
            ones[i * MEMBERS + j] = 1;
        }
    }
    const gnomon_csr points = {N, COLS, offsets, members, ones, GNOMON_F32};
    gnomon_lsh_guarantee guarantee = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning tuning = {.struct_size = sizeof tuning};
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh *index = NULL;
    int kept = 0;
    guarantee.metric = GNOMON_JACCARD;
    guarantee.k = 3;
    guarantee.recall = 0.8;
    guarantee.memory = (int64_t)1 << 30;
    guarantee.slower = 1;
    if (gnomon_lsh_tune_csr(ctx, &guarantee, &points, NULL, &index, &tuning) != GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    assert_non_null(index);
    gnomon_lsh_describe(index, &info);
    const double takes = (double)(info.table_bytes + info.code_bytes + info.other_bytes);
    for (int64_t i = 0; i < tuning.trial_count; i++) {
        /* the copied sets alone, and their offsets */
        assert_true(tuning.trials[i].bytes > 8 * (int64_t)N * (MEMBERS - 2));
        if (tuning.trials[i].chosen != 2) continue;
        kept++;
        print_message("said %lld, takes %.0f\n", (long long)tuning.trials[i].bytes, takes);
        assert_true((double)tuning.trials[i].bytes < 1.25 * takes);
        assert_true((double)tuning.trials[i].bytes > 0.8 * takes);
    }
    assert_int_equal(kept, 1);
    gnomon_lsh_destroy(index);
    gnomon_lsh_tuning_free(ctx, &tuning);
    free(offsets);
    free(members);
    free(ones);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_of_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
