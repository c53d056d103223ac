/* What the tests of an index are charged: each attempt its part of the doubt, in turn, and all of
 * them no more than the guarantee leaves. */
#include <gnomon/lsh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "lsh/tune/tune.h"

enum { N = 1500, MEMBERS = 12, COLS = 4000, MOST = 8 };

/* Calls of gnomon_bet_open and gnomon_bet_on go through here (the linker's --wrap). */
void __real_gnomon_bet_open(gnomon_bet *bet, double mean, double spread, double doubt,
                            int64_t expected, int64_t population);
void __wrap_gnomon_bet_open(gnomon_bet *bet, double mean, double spread, double doubt,
                            int64_t expected, int64_t population);
bool __real_gnomon_bet_on(gnomon_bet *bet, double share);
bool __wrap_gnomon_bet_on(gnomon_bet *bet, double share);

static bool losing; /* every bet that tests an index is lost */
static double charged[MOST];
static int opened;

void __wrap_gnomon_bet_open(gnomon_bet *bet, double mean, double spread, double doubt,
                            int64_t expected, int64_t population)
{
    if (spread > 0) { /* else it is asked how many queries a perfect index takes */
        assert_true(opened < MOST);
        charged[opened++] = doubt;
    }
    __real_gnomon_bet_open(bet, mean, spread, doubt, expected, population);
}

bool __wrap_gnomon_bet_on(gnomon_bet *bet, double share)
{
    __real_gnomon_bet_on(bet, share);
    if (losing && opened > 0) bet->won = false;
    return bet->won;
}

static void tune(double confidence)
{
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
            members[i * MEMBERS + j] =
                j < 10 ? ((i / 5) * 37 + j * 301) % COLS : (int64_t)(word >> 8) % COLS;
            ones[i * MEMBERS + j] = 1;
        }
    }
    const gnomon_csr points = {N, COLS, offsets, members, ones, GNOMON_F32};
    gnomon_lsh_guarantee guarantee = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning tuning = {.struct_size = sizeof tuning};
    gnomon_lsh *index = NULL;
    guarantee.metric = GNOMON_JACCARD;
    guarantee.k = 3;
    guarantee.recall = 0.5;
    guarantee.confidence = confidence;
    guarantee.memory = (int64_t)1 << 30;
    guarantee.slower = 1;
    opened = 0;
    if (gnomon_lsh_tune_csr(ctx, &guarantee, &points, NULL, &index, &tuning) != GNOMON_OK)
        fail_msg("%s", gnomon_last_error(ctx));
    assert_true(losing || index != NULL);
    gnomon_lsh_destroy(index);
    gnomon_lsh_tuning_free(ctx, &tuning);
    free(offsets);
    free(members);
    free(ones);
    gnomon_context_destroy(ctx);
}

static void each_attempt_is_charged_its_part(void **state)
{
    (void)state;
    static const double confidences[] = {0.8, 0.95};
    for (int c = 0; c < 2; c++) {
        for (int lost = 0; lost < 2; lost++) {
            double sum = 0;
            losing = lost;
            tune(confidences[c]);
            print_message("%d tests\n", opened);
            assert_true(opened > (lost ? 1 : 0));
            for (int i = 0; i < opened; i++) {
                assert_true(charged[i] == gnomon_tuning_doubt(confidences[c], i));
                sum += charged[i];
            }
            assert_true(sum <= (1 - confidences[c]) * (1 + 1e-12));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_attempt_is_charged_its_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
