/* Where the time went: each lap of the clock is charged to a part once, and to none with the wrong
 * sign. Laps are counted in place of seconds. */
#include <gnomon/hosvd.h>
#include <gnomon/lstsq.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

enum { ROWS = 120, COLS = 40, SIDE = 48 };

/* Calls of gnomon_lap go through here (the linker's --wrap). */
double __real_gnomon_lap(double *clock);
double __wrap_gnomon_lap(double *clock);

static int laps;

double __wrap_gnomon_lap(double *clock)
{
    if (*clock == 0) { /* the clock starts */
        *clock = 1;
        return 0;
    }
    laps++;
    return 1;
}

static gnomon_context *ctx;
static double values[ROWS * COLS], target[ROWS];
static int64_t offsets[ROWS + 1], indices[ROWS * COLS];

static int open_context(void **unused)
{
    (void)unused;
    uint64_t state = 1;
    for (int i = 0; i < ROWS * COLS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        values[i] = (double)(state >> 40) * 0x1p-24 - 0.5;
        indices[i] = i % COLS;
    }
    for (int i = 0; i < ROWS; i++)
        target[i] = values[i * COLS] - values[(i * 7) % (ROWS * COLS)];
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = (int64_t)i * COLS;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = GNOMON_DEVICE_CPU;
    options.threads = 1;
    return gnomon_context_create(&options, &ctx) == GNOMON_OK ? 0 : -1;
}

static int close_context(void **unused)
{
    (void)unused;
    gnomon_context_destroy(ctx);
    return 0;
}

static void of_svd(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    const gnomon_matrix dense = gnomon_matrix_rowmajor(values, GNOMON_F64, ROWS, COLS);
    const gnomon_csr sparse = {ROWS, COLS, offsets, indices, values, GNOMON_F64};
    for (int way = 0; way < 24; way++) {
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        options.power = way % 4;
        options.block = 8;
        if (way / 4 % 3 == 0)
            options.rank = 5;
        else
            options.tolerance = way / 4 % 3 == 1 ? 0.5 : 1e-3;
        laps = 0;
        assert_int_equal(way >= 12 ? gnomon_svd_csr(ctx, &sparse, &options, &svd)
                                   : gnomon_svd_dense(ctx, &dense, &options, &svd),
                         GNOMON_OK);
        const double sum = svd.project_seconds + svd.power_seconds + svd.orthonormalise_seconds +
                           svd.small_seconds + svd.certify_seconds;
        assert_true(laps > 0);
        if (sum != laps) fail_msg("way %d: %g of %d laps", way, sum, laps);
        gnomon_svd_free(ctx, &svd);
    }
}

static void of_hosvd(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    static const int64_t size[] = {SIDE, SIDE, SIDE};
    static double cube[SIDE * SIDE * SIDE];
    const int64_t ranks[] = {3, 3, 3};
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int l = 0; l < SIDE; l++)
                cube[(i * SIDE + j) * SIDE + l] = 1.0 / (1 + i + j + l);
    const gnomon_tensor x = gnomon_tensor_packed(cube, GNOMON_F64, 3, size, 0);
    for (int way = 0; way < 12; way++) {
        gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_hosvd h = {.struct_size = sizeof h};
        options.sequential = way % 2;
        options.measure = way / 2 % 2;
        options.oversample = 1;
        if (way < 4) {
            options.ranks = ranks;
            options.rank_count = 3;
        } else {
            options.tolerance = way < 8 ? 0.3 : 1e-5;
        }
        laps = 0;
        assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_OK);
        const double sum = h.look_seconds + h.project_seconds + h.power_seconds +
                           h.orthonormalise_seconds + h.shrink_seconds + h.small_seconds +
                           h.measure_seconds;
        assert_true(laps > 0);
        if (sum != laps) fail_msg("way %d: %g of %d laps", way, sum, laps);
        gnomon_hosvd_free(ctx, &h);
    }
}

static void of_least_squares(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    const gnomon_matrix a = gnomon_matrix_rowmajor(values, GNOMON_F64, ROWS, COLS);
    const gnomon_matrix b = gnomon_matrix_rowmajor(target, GNOMON_F64, ROWS, 1);
    for (int way = 0; way < 2; way++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        options.lambda = way * 0.5;
        laps = 0;
        assert_int_equal(gnomon_lstsq_dense(ctx, &a, &b, &options, &out), GNOMON_OK);
        const double sum = out.look_seconds + out.sketch_seconds + out.factor_seconds +
                           out.iterate_seconds + out.certify_seconds;
        assert_true(laps > 0);
        if (sum != laps) fail_msg("way %d: %g of %d laps", way, sum, laps);
        gnomon_lstsq_free(ctx, &out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_svd),
        cmocka_unit_test(of_hosvd),
        cmocka_unit_test(of_least_squares),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
