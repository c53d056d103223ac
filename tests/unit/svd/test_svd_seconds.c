/* The seconds that a factorisation reports: each lap of its clock belongs to one phase. Here a lap
 * takes a second, so the phases' seconds are counts and must add up to the laps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "linalg/blas.h"

#include <gnomon/hosvd.h>
#include <gnomon/lstsq.h>
#include <gnomon/svd.h>

/* Calls of gnomon_lap go through here (the linker's --wrap). */
double __wrap_gnomon_lap(double *clock);

static int64_t laps;

double __wrap_gnomon_lap(double *clock)
{
    laps++;
    *clock += 1;
    return 1;
}

enum { ROWS = 96, COLS = 64 };

/* Falling singular values and a little noise. */
static void fill(double *a, int64_t rows, int64_t cols)
{
    uint64_t state = 7;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            state = state * UINT64_C(6364136223846793005) + 1;
            const double noise = (double)(state >> 11) * 0x1p-53 - 0.5;
            a[i * cols + j] = 1.0 / (double)(1 + i + j) + 1e-3 * noise + (i == j ? 0.1 : 0.0);
        }
    }
}

/* The first lap starts the clock. */
static void assert_all_told(const double *seconds, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        assert_true(seconds[i] >= 0);
        sum += seconds[i];
    }
    assert_true(laps > 1);
    assert_true(sum == (double)(laps - 1));
}

/* Of the rows, or of the same as sparse ones. */
static void one_svd(gnomon_context *ctx, const gnomon_matrix *a, bool sparse,
                    const gnomon_svd_options *options)
{
    static int64_t offsets[ROWS + 1], indices[ROWS * COLS];
    gnomon_svd out = {.struct_size = sizeof out};
    for (int64_t i = 0; i <= ROWS; i++)
        offsets[i] = i * COLS;
    for (int64_t e = 0; e < ROWS * COLS; e++)
        indices[e] = e % COLS;
    const gnomon_csr rows = {ROWS, COLS, offsets, indices, a->data, GNOMON_F64};
    laps = 0;
    assert_int_equal(sparse ? gnomon_svd_csr(ctx, &rows, options, &out)
                            : gnomon_svd_dense(ctx, a, options, &out),
                     GNOMON_OK);
    const double seconds[] = {out.project_seconds, out.power_seconds, out.orthonormalise_seconds,
                              out.small_seconds, out.certify_seconds};
    assert_all_told(seconds, 5);
    assert_true(out.project_seconds > 0 && out.small_seconds > 0);
    assert_true(out.power_seconds > 0 || out.power == 0 || options->single_pass);
    gnomon_svd_free(ctx, &out);
}

static void svd_tells_all_its_seconds(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    static double data[ROWS * COLS];
    fill(data, ROWS, COLS);
    const gnomon_matrix a = gnomon_matrix_rowmajor(data, GNOMON_F64, ROWS, COLS);
    for (int way = 0; way < 7; way++) {
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        if (way < 3) {
            options.rank = 8;
            options.power = way;
        } else if (way == 3) {
            options.rank = 8;
            options.single_pass = 1;
        } else {
            /* the last one is out of reach of |A|^2 less the squares of singular values */
            options.tolerance = way == 4 ? 0.3 : way == 5 ? 0.02 : 1e-10;
        }
        one_svd(ctx, &a, false, &options);
        if (!options.single_pass) one_svd(ctx, &a, true, &options);
    }
    gnomon_context_destroy(ctx);
}

static void hosvd_tells_all_its_seconds(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    enum { SIDE = 160, THIRD = 8 };
    static double data[SIDE * SIDE * THIRD];
    fill(data, SIDE, SIDE * THIRD);
    const int64_t sizes[] = {SIDE, SIDE, THIRD}, ranks[] = {5, 4, 3};
    const gnomon_tensor x = gnomon_tensor_packed(data, GNOMON_F64, 3, sizes, 0);
    for (int way = 0; way < 16; way++) {
        gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
        options.sequential = way / 4 % 2;
        options.measure = way / 8;
        if (way % 4 < 3) {
            options.ranks = ranks;
            options.rank_count = 3;
            options.power = way % 4;
        } else {
            options.tolerance = 0.05;
        }
        gnomon_hosvd out = {.struct_size = sizeof out};
        laps = 0;
        assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &out), GNOMON_OK);
        const double seconds[] = {
            out.check_seconds,  out.project_seconds, out.power_seconds,  out.orthonormalise_seconds,
            out.shrink_seconds, out.small_seconds,   out.measure_seconds};
        assert_all_told(seconds, 7);
        gnomon_hosvd_free(ctx, &out);
    }
    gnomon_context_destroy(ctx);
}

static void lstsq_tells_all_its_seconds(void **unused)
{
    (void)unused;
    if (gnomon_svd_missing() != NULL) skip();
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    enum { LONG = 600, SHORT = 12 };
    static double data[LONG * SHORT], right[LONG];
    fill(data, LONG, SHORT);
    fill(right, LONG, 1);
    for (int way = 0; way < 4; way++) {
        const int64_t n = way % 2 ? SHORT : LONG, d = way % 2 ? LONG : SHORT;
        const gnomon_matrix a = gnomon_matrix_rowmajor(data, GNOMON_F64, n, d);
        const gnomon_matrix b = gnomon_matrix_rowmajor(right, GNOMON_F64, n, 1);
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        options.damp = way / 2 * 0.5;
        laps = 0;
        assert_int_equal(gnomon_lstsq_dense(ctx, &a, &b, &options, &out), GNOMON_OK);
        const double seconds[] = {out.check_seconds, out.sketch_seconds, out.factor_seconds,
                                  out.iterate_seconds, out.certify_seconds};
        assert_all_told(seconds, 5);
        gnomon_lstsq_free(ctx, &out);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(svd_tells_all_its_seconds),
        cmocka_unit_test(hosvd_tells_all_its_seconds),
        cmocka_unit_test(lstsq_tells_all_its_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
