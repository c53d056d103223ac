/* The SVD on matrices whose singular values are known: accuracy, the certificate, tolerances,
 * ranks, scales, layouts. */
#include "svd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N = 160, K = 16 };

static int make(void **state)
{
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = 2;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return -1;
    *state = ctx;
    return 0;
}

static int drop(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

static void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

/* The kinds of Ootomo & Yokota 2023 and others; s: N values, or the matrix itself for Cauchy. */
typedef enum spectrum { LINEAR, EXPONENTIAL, POLYNOMIAL, CAUCHY, DEFICIENT, SPECTRA } spectrum;

static const char *const spectrum_names[] = {"linear", "exponential", "polynomial", "Cauchy",
                                             "deficient"};

static double *make_matrix(spectrum kind)
{
    double s[N], *a;
    const double sp = 1e-3;
    uint64_t state = 77;
    for (int i = 0; i < N; i++) {
        if (kind == LINEAR) s[i] = fmax(1 - (1 - sp) / K * i, sp);
        if (kind == EXPONENTIAL) s[i] = exp2(-log2(1 / sp) / K * i);
        if (kind == POLYNOMIAL) s[i] = i < 5 ? 1e6 : pow(i - 3, -3);
        if (kind == DEFICIENT) s[i] = i < 9 ? 2.0 + i % 3 : 0;
    }
    if (kind != CAUCHY) return matrix_with(N, N, s, 5);
    a = malloc(sizeof *a * N * N);
    double x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (2 * draw_uniform(&state) - 1) * 1e-3;
        y[i] = (2 * draw_uniform(&state) - 1) * 1e-3;
    }
    for (int i = 0; i < N * N; i++)
        a[i] = 1 / (fabs(x[i / N] - y[i % N]) + 1e-3);
    return a;
}

/* All that must hold of a factorisation of a at rank k. */
static void check_factors(const gnomon_svd *svd, const double *a, const double *exact, int f64,
                          double slack)
{
    const double u = f64 ? 0x1p-53 : 0x1p-24;
    const double norm = tail_of(exact, 0, N), best = tail_of(exact, svd->rank, N);
    const double residual = residual_of(svd, a);
    assert_true(off_orthonormal(svd) <= 64 * u);
    assert_true(residual <= 1.01 * best + slack * u * norm);
    assert_true(fabs(svd->norm - norm) <= 4 * N * u * norm);
    for (int64_t i = 0; i < svd->rank; i++) {
        assert_true(svd->s[i] <= exact[i] * (1 + 64 * u) + slack * u * exact[0]);
        if (i > 0) assert_true(svd->s[i] <= svd->s[i - 1]);
        double most = 0, value = 0;
        for (int64_t j = 0; j < N; j++) {
            const double x = at(&svd->vt, i, j);
            if (fabs(x) > most) {
                most = fabs(x);
                value = x;
            }
        }
        assert_true(value > 0);
    }
    /* the certificate */
    assert_true(svd->residual_bound >= residual - slack * u * norm);
    assert_true(svd->spectral_bound >= exact[svd->rank] - slack * u * norm);
    assert_true(svd->residual_estimate <= 2 * residual + slack * u * norm);
    assert_true(svd->residual_estimate >= 0.4 * residual - slack * u * norm);
    assert_true(fabs(svd->residual - residual) <= 1e-3 * residual + slack * u * norm);
}

static void test_spectra(void **state)
{
    gnomon_context *ctx = *state;
    for (int kind = 0; kind < SPECTRA; kind++) {
        double *a = make_matrix((spectrum)kind), *exact;
        float *f = as_floats(a, N * N);
        for (int f64 = 0; f64 < 2; f64++) {
            for (int i = 0; i < N * N && !f64; i++)
                a[i] = (double)f[i];
            double *truth = f64 ? make_matrix((spectrum)kind) : a;
            exact = exact_values(N, truth);
            gnomon_matrix view = f64 ? gnomon_matrix_rowmajor(truth, GNOMON_F64, N, N)
                                     : gnomon_matrix_rowmajor(f, GNOMON_F32, N, N);
            gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
            gnomon_svd svd = {.struct_size = sizeof svd};
            options.rank = K;
            options.measure = 1;
            options.seed = (uint64_t)kind;
            print_message("%s, %s\n", spectrum_names[kind], f64 ? "double" : "single");
            expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
            assert_int_equal(svd.rank, K);
            assert_int_equal(svd.columns, K + 10);
            check_factors(&svd, truth, exact, f64, 64);
            if (kind == DEFICIENT) assert_int_equal(svd.numerical_rank, 9);
            if (kind == LINEAR) assert_int_equal(svd.numerical_rank, K);
            gnomon_svd_free(ctx, &svd);
            assert_null(svd.u.data);
            free(exact);
            if (f64) free(truth);
        }
        free(a);
        free(f);
    }
}

static void test_tolerance(void **state)
{
    gnomon_context *ctx = *state;
    double *a = make_matrix(EXPONENTIAL), *exact = exact_values(N, a);
    const double norm = tail_of(exact, 0, N);
    gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, N, N);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.block = 8;
    options.measure = 1;
    /* Down to where squared norms, subtracted, have long lost every digit. */
    for (double tolerance = 1e-1; tolerance > 1e-13; tolerance *= 1e-2) {
        int64_t least = 0;
        while (tail_of(exact, least, N) > tolerance * norm)
            least++;
        options.tolerance = tolerance;
        expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
        assert_true(svd.converged);
        assert_true(residual_of(&svd, a) <= tolerance * norm * 1.0001);
        assert_true(svd.residual <= tolerance * norm * 1.0001);
        assert_true(svd.rank >= least && svd.rank <= least + 1);
        gnomon_svd_free(ctx, &svd);
    }
    /* Out of reach of the type, and of the ranks allowed: the best, and said so. */
    options.tolerance = 1e-17;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    assert_false(svd.converged);
    assert_true(residual_of(&svd, a) <= 1e-14 * norm);
    gnomon_svd_free(ctx, &svd);
    options.tolerance = 1e-6;
    options.rank = 10;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    assert_false(svd.converged);
    assert_int_equal(svd.rank, 10);
    assert_true(residual_of(&svd, a) <= 1.01 * tail_of(exact, 10, N));
    gnomon_svd_free(ctx, &svd);
    free(a);
    free(exact);
}

static void test_tolerance_of_floats(void **state)
{
    gnomon_context *ctx = *state;
    double *a = make_matrix(EXPONENTIAL);
    float *f = as_floats(a, N * N);
    gnomon_matrix view = gnomon_matrix_rowmajor(f, GNOMON_F32, N, N);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.tolerance = 1e-5; /* below the square root of 2^-24 */
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    assert_true(svd.converged);
    assert_true(residual_of(&svd, a) <= 1.01e-5 * svd.norm);
    assert_true(svd.rank < 40);
    gnomon_svd_free(ctx, &svd);
    options.tolerance = 1e-9;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    assert_false(svd.converged);
    assert_true(residual_of(&svd, a) <= 1e-6 * svd.norm);
    assert_true(svd.columns < N || svd.rank < N);
    gnomon_svd_free(ctx, &svd);
    free(a);
    free(f);
}

static void test_zero(void **state)
{
    gnomon_context *ctx = *state;
    float zero[30 * 20] = {0};
    gnomon_matrix view = gnomon_matrix_rowmajor(zero, GNOMON_F32, 30, 20);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.rank = 5;
    for (int way = 0; way < 3; way++) {
        options.single_pass = way == 1;
        options.tolerance = way == 2 ? 0.1 : 0;
        expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
        for (int64_t i = 0; i < svd.rank; i++)
            assert_true(svd.s[i] == 0);
        assert_true(off_orthonormal(&svd) <= 1e-6);
        assert_true(svd.norm == 0 && svd.residual_bound == 0 && svd.spectral_bound == 0);
        assert_int_equal(svd.numerical_rank, 0);
        assert_int_equal(svd.converged, 1);
        gnomon_svd_free(ctx, &svd);
    }
}

static void test_scales(void **state)
{
    gnomon_context *ctx = *state;
    double *a = make_matrix(EXPONENTIAL);
    const double single[] = {1e-44, 1e-37, 1e-30, 1, 1e30, 1e37};
    const double f64[] = {1e-300, 1e-150, 1, 1e150, 1e300};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.rank = 8;
    options.measure = 1;
    for (int w = 0; w < 2; w++) {
        for (size_t i = 0; i < (w ? sizeof f64 : sizeof single) / sizeof *f64; i++) {
            const double scale = w ? f64[i] : single[i];
            double *b = malloc(sizeof *b * N * N);
            for (int j = 0; j < N * N; j++)
                b[j] = a[j] * scale * (scale == 1e-44 ? 1e3 : 1);
            float *f = as_floats(b, N * N);
            gnomon_matrix view = w ? gnomon_matrix_rowmajor(b, GNOMON_F64, N, N)
                                   : gnomon_matrix_rowmajor(f, GNOMON_F32, N, N);
            for (int one_pass = 0; one_pass < 2; one_pass++) {
                options.single_pass = one_pass;
                options.measure = !one_pass;
                expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
                const double unit = svd.norm / scale;
                assert_true(isfinite(svd.norm) && isfinite(svd.residual_bound));
                if (scale != 1e-44) {
                    /* |A|_F of the spectrum is known: sum of 2^(-2 i c) */
                    const double q = exp2(-2 * log2(1e3) / K);
                    assert_true(fabs(unit - sqrt(1 / (1 - q))) <= 1e-4);
                    assert_true(fabs(svd.s[0] / scale - 1) <= (one_pass ? 0.02 : 1e-4));
                }
                assert_true(off_orthonormal(&svd) <= 2e-6);
                gnomon_svd_free(ctx, &svd);
            }
            free(b);
            free(f);
        }
    }
    free(a);
}

static void test_refusals(void **state)
{
    gnomon_context *ctx = *state;
    float x[12 * 7];
    for (int i = 0; i < 12 * 7; i++)
        x[i] = (float)(i % 5);
    gnomon_matrix view = gnomon_matrix_rowmajor(x, GNOMON_F32, 12, 7);
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT); /* rank 0 */
    options.rank = 8;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(ctx), "rank is 8"));
    assert_non_null(strstr(gnomon_last_error(ctx), "7"));
    options.rank = 7;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    gnomon_svd_free(ctx, &svd);
    for (int i = 0; i < 3; i++) {
        const float bad[] = {NAN, INFINITY, -INFINITY};
        x[3 * 7 + 5] = bad[i];
        for (int one_pass = 0; one_pass < 2; one_pass++) {
            options.single_pass = one_pass;
            expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_NONFINITE);
            assert_non_null(strstr(gnomon_last_error(ctx), "row 3, column 5"));
        }
    }
    x[3 * 7 + 5] = 0;
    options.single_pass = 0;
    view.rows = 0;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_SHAPE);
    view.rows = 12;
    options.tolerance = 1;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT);
    options.tolerance = (double)NAN;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT);
    options.tolerance = 0.1;
    options.single_pass = 1;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT);
    options.tolerance = 0;
    options.measure = 1;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_ARGUMENT);
    assert_null(svd.u.data);
}

/* Odd sizes, every layout and type: the same factors but for rounding. */
static void test_views(void **state)
{
    gnomon_context *ctx = *state;
    enum { ROWS = 83, COLS = 57, RANK = 6 };
    uint64_t draws = 9;
    signed char bytes[ROWS * COLS];
    static float f[ROWS * COLS], columns[ROWS * COLS], gaps[ROWS * 3 * COLS * 2];
    static double d[ROWS * COLS];
    static int64_t f64[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        bytes[i] = (signed char)(draw_uniform(&draws) * 200 - 100);
        f[i] = (float)bytes[i];
        d[i] = f64[i] = bytes[i];
        columns[i % COLS * ROWS + i / COLS] = f[i];
        gaps[(ROWS - 1 - i / COLS) * 3 * COLS * 2 + i % COLS * 2] = f[i];
    }
    gnomon_matrix views[] = {
        gnomon_matrix_rowmajor(d, GNOMON_F64, ROWS, COLS),
        gnomon_matrix_rowmajor(f, GNOMON_F32, ROWS, COLS),
        gnomon_matrix_colmajor(columns, GNOMON_F32, ROWS, COLS),
        gnomon_matrix_rowmajor(bytes, GNOMON_I8, ROWS, COLS),
        gnomon_matrix_rowmajor(f64, GNOMON_I64, ROWS, COLS),
        {gaps + (ROWS - 1) * 3 * COLS * 2, GNOMON_F32, GNOMON_HOST, ROWS, COLS, -3 * COLS * 2, 2},
    };
    gnomon_svd first = {.struct_size = sizeof first}, svd = {.struct_size = sizeof svd};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    options.rank = RANK;
    options.power = 4;
    expect(ctx, gnomon_svd_dense(ctx, &views[0], &options, &first), GNOMON_OK);
    for (size_t v = 1; v < sizeof views / sizeof *views; v++) {
        expect(ctx, gnomon_svd_dense(ctx, &views[v], &options, &svd), GNOMON_OK);
        const int doubles = views[v].dtype == GNOMON_I64;
        assert_int_equal(svd.u.dtype, doubles ? GNOMON_F64 : GNOMON_F32);
        for (int64_t l = 0; l < RANK; l++) {
            assert_true(fabs(svd.s[l] - first.s[l]) <= (doubles ? 1e-13 : 1e-5) * first.s[0]);
            for (int64_t i = 0; i < ROWS; i++)
                assert_true(fabs(at(&svd.u, i, l) - at(&first.u, i, l)) <= (doubles ? 1e-9 : 2e-3));
        }
        gnomon_svd_free(ctx, &svd);
    }
    gnomon_svd_free(ctx, &first);
}

/* U and Vt where the caller wants them, and nothing beside them. */
static void test_given(void **state)
{
    gnomon_context *ctx = *state;
    enum { ROWS = 40, COLS = 30, RANK = 4 };
    uint64_t draws = 4;
    static double a[ROWS * COLS], left[2 * ROWS * (RANK + 1)], right[COLS * (RANK + 2)];
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = draw_normal(&draws);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    gnomon_matrix u = gnomon_matrix_colmajor(left, GNOMON_F64, ROWS, RANK + 1);
    gnomon_matrix vt = gnomon_matrix_colmajor(right, GNOMON_F64, RANK + 2, COLS);
    u.row_stride = 2;
    u.col_stride = 2 * ROWS;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        left[i] = 77;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        right[i] = 77;
    gnomon_svd own = {.struct_size = sizeof own}, svd = {.struct_size = sizeof svd};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    options.rank = RANK;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &own), GNOMON_OK);
    options.u = &u;
    options.vt = &vt;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_OK);
    assert_ptr_equal(svd.u.data, left);
    assert_ptr_equal(svd.vt.data, right);
    assert_true(svd.u.cols == RANK && svd.vt.rows == RANK);
    for (int64_t l = 0; l < RANK; l++) {
        for (int64_t i = 0; i < ROWS; i++)
            assert_true(at(&svd.u, i, l) == at(&own.u, i, l));
        for (int64_t j = 0; j < COLS; j++)
            assert_true(at(&svd.vt, l, j) == at(&own.vt, l, j));
    }
    assert_true(left[1] == 77 && left[2 * ROWS * RANK] == 77);
    assert_true(right[RANK] == 77 && right[RANK + 1] == 77);
    gnomon_svd_free(ctx, &svd);
    assert_null(svd.u.data);
    vt.rows = RANK - 1;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_SHAPE);
    vt.rows = RANK;
    options.dtype = GNOMON_F32;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_DTYPE);
    options.dtype = GNOMON_F64;
    u.memory = GNOMON_DEVICE_MEMORY;
    expect(ctx, gnomon_svd_dense(ctx, &view, &options, &svd), GNOMON_ERROR_DEVICE);
    gnomon_svd_free(ctx, &own);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spectra, make, drop),
        cmocka_unit_test_setup_teardown(test_tolerance, make, drop),
        cmocka_unit_test_setup_teardown(test_tolerance_of_floats, make, drop),
        cmocka_unit_test_setup_teardown(test_zero, make, drop),
        cmocka_unit_test_setup_teardown(test_scales, make, drop),
        cmocka_unit_test_setup_teardown(test_refusals, make, drop),
        cmocka_unit_test_setup_teardown(test_views, make, drop),
        cmocka_unit_test_setup_teardown(test_given, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
