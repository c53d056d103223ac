/* New rows in the space of a factorisation, and rows over their standard deviations: beside sums in
 * long double. */
#include "svd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROWS = 90, COLS = 37, RANK = 5 };

static gnomon_context *make_context(int threads)
{
    gnomon_context *ctx = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

static void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

static void close_to(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("%.17g, want %.17g +- %g", got, want, within);
}

/* Numbers in [-1, 1), some of them 0, of columns as far apart as 'spread' and with means. */
static void fill(double *a, int64_t rows, int64_t cols, uint64_t seed, double spread, double mean)
{
    uint64_t state = seed;
    for (int64_t i = 0; i < rows * cols; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        const double x = (double)((state >> 33) % 4096) / 2048 - 1;
        a[i] = x < -0.5 ? 0 : (x + mean) * pow(spread, (double)(i % cols));
    }
}

typedef struct sparse {
    gnomon_csr csr;
    int64_t offsets[ROWS + 1], indices[ROWS * COLS];
    double values[ROWS * COLS];
} sparse;

static void sparse_of(const double *a, int64_t rows, int64_t cols, sparse *s)
{
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        s->offsets[i] = count;
        for (int64_t j = 0; j < cols; j++) {
            if (a[i * cols + j] == 0) continue;
            s->indices[count] = j;
            s->values[count++] = a[i * cols + j];
        }
    }
    s->offsets[rows] = count;
    s->csr = (gnomon_csr){rows, cols, s->offsets, s->indices, s->values, GNOMON_F64};
}

/* The space of some numbers: vt is no more than full. */
typedef struct space {
    double vt[RANK * COLS], s[RANK], mean[COLS], scale[COLS];
    gnomon_matrix view;
    gnomon_svd_transform_options options;
} space;

static void make_space(space *f)
{
    fill(f->vt, RANK, COLS, 3, 1, 0);
    fill(f->mean, 1, COLS, 4, 1, 0);
    for (int64_t j = 0; j < COLS; j++)
        f->scale[j] = pow(3, (double)(j % 11) - 5);
    for (int64_t i = 0; i < RANK; i++)
        f->s[i] = pow(2, (double)-i);
    f->view = gnomon_matrix_rowmajor(f->vt, GNOMON_F64, RANK, COLS);
    f->options = (gnomon_svd_transform_options)GNOMON_SVD_TRANSFORM_OPTIONS_INIT;
    f->options.vt = &f->view;
    f->options.s = f->s;
    f->options.rows = ROWS;
}

static long double score(const space *f, const double *x, int64_t i)
{
    long double sum = 0;
    for (int64_t j = 0; j < COLS; j++) {
        const long double less =
            (long double)x[j] - (long double)(f->options.mean ? f->mean[j] : 0);
        sum += less / (long double)(f->options.scale ? f->scale[j] : 1) *
               (long double)f->vt[i * COLS + j];
    }
    if (f->options.whiten) sum /= (long double)f->s[i] / sqrtl(ROWS - 1);
    return sum;
}

static void test_scores(void **state)
{
    (void)state;
    static double x[ROWS * COLS], y[ROWS * RANK], z[ROWS * RANK], back[ROWS * COLS];
    static space f;
    static sparse s;
    gnomon_context *ctx = make_context(3);
    fill(x, ROWS, COLS, 5, 1, 0);
    sparse_of(x, ROWS, COLS, &s);
    const gnomon_matrix vx = gnomon_matrix_rowmajor(x, GNOMON_F64, ROWS, COLS);
    const gnomon_matrix vy = gnomon_matrix_colmajor(y, GNOMON_F64, ROWS, RANK);
    const gnomon_matrix vz = gnomon_matrix_rowmajor(z, GNOMON_F64, ROWS, RANK);
    const gnomon_matrix vback = gnomon_matrix_rowmajor(back, GNOMON_F64, ROWS, COLS);
    make_space(&f);
    for (int how = 0; how < 8; how++) {
        f.options.mean = how & 1 ? f.mean : NULL;
        f.options.scale = how & 2 ? f.scale : NULL;
        f.options.whiten = (how & 4) != 0;
        f.options.inverse = 0;
        expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_OK);
        expect(ctx, gnomon_svd_transform_csr(ctx, &s.csr, &f.options, &vz), GNOMON_OK);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < RANK; j++) {
                const double want = (double)score(&f, x + i * COLS, j);
                const double unit = 1e-8; /* of terms up to some 1e6 */
                close_to(y[j * ROWS + i], want, unit);
                close_to(z[i * RANK + j], want, unit);
            }
        f.options.inverse = 1;
        expect(ctx, gnomon_svd_transform(ctx, &vy, &f.options, &vback), GNOMON_OK);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < COLS; j++) {
                long double want = 0;
                for (int64_t l = 0; l < RANK; l++)
                    want += (long double)y[l * ROWS + i] * (long double)f.vt[l * COLS + j] *
                            (f.options.whiten ? (long double)f.s[l] / sqrtl(ROWS - 1) : 1.0L);
                want = want * (how & 2 ? (long double)f.scale[j] : 1.0L) +
                       (how & 1 ? (long double)f.mean[j] : 0.0L);
                assert_true(fabsl(want - (long double)back[i * COLS + j]) <=
                            1e-9L * (1 + fabsl(want)));
            }
    }
    gnomon_context_destroy(ctx);
}

/* Neither threads, nor the rows beside a row, nor how they lie show in its bits; tiles of columns
 * and blocks of coordinates are more than one. */
static void test_bits(void **state)
{
    (void)state;
    enum { N = 700, WIDE = 1100, MANY = 40 };
    double *vt = malloc((size_t)(WIDE * N) * sizeof *vt),
           *x = malloc((size_t)(MANY * N) * sizeof *x);
    double *y = malloc((size_t)(MANY * WIDE) * sizeof *y), *z = malloc(WIDE * sizeof *z);
    double *scratch = malloc((size_t)(MANY * WIDE) * sizeof *scratch);
    gnomon_svd_transform_options o = GNOMON_SVD_TRANSFORM_OPTIONS_INIT;
    fill(vt, WIDE, N, 8, 1, 0);
    fill(x, MANY, N, 9, 1, 0);
    const gnomon_matrix view = gnomon_matrix_rowmajor(vt, GNOMON_F64, WIDE, N);
    const gnomon_matrix vx = gnomon_matrix_rowmajor(x, GNOMON_F64, MANY, N);
    o.vt = &view;
    for (int threads = 1; threads <= 3; threads++) {
        gnomon_context *ctx = make_context(threads);
        double *out = threads == 1 ? y : scratch;
        const gnomon_matrix vy = gnomon_matrix_rowmajor(out, GNOMON_F64, MANY, WIDE);
        expect(ctx, gnomon_svd_transform(ctx, &vx, &o, &vy), GNOMON_OK);
        assert_memory_equal(out, y, (size_t)(MANY * WIDE) * sizeof *y);
        for (int64_t i = 0; i < MANY; i += 13) {
            const gnomon_matrix one = gnomon_matrix_rowmajor(x + i * N, GNOMON_F64, 1, N);
            const gnomon_matrix to = gnomon_matrix_rowmajor(z, GNOMON_F64, 1, WIDE);
            expect(ctx, gnomon_svd_transform(ctx, &one, &o, &to), GNOMON_OK);
            assert_memory_equal(z, y + i * WIDE, WIDE * sizeof *z);
        }
        gnomon_context_destroy(ctx);
    }
    for (int64_t i = 0; i < MANY; i += 7)
        for (int64_t j = 0; j < WIDE; j += 11) {
            long double want = 0;
            for (int64_t d = 0; d < N; d++)
                want += (long double)x[i * N + d] * (long double)vt[j * N + d];
            close_to(y[i * WIDE + j], (double)want, 1e-11);
        }
    free(vt), free(x), free(y), free(z), free(scratch);
}

static void test_types(void **state)
{
    (void)state;
    static space f;
    int16_t x[3 * COLS];
    float y[3 * RANK], v[RANK * COLS];
    gnomon_context *ctx = make_context(1);
    make_space(&f);
    for (int64_t i = 0; i < 3 * COLS; i++)
        x[i] = (int16_t)(i * 37 % 201 - 100);
    for (int64_t i = 0; i < RANK * COLS; i++)
        v[i] = (float)f.vt[i], f.vt[i] = (double)v[i];
    f.view = gnomon_matrix_rowmajor(v, GNOMON_F32, RANK, COLS);
    const gnomon_matrix vx = gnomon_matrix_rowmajor(x, GNOMON_I16, 3, COLS);
    const gnomon_matrix vy = gnomon_matrix_rowmajor(y, GNOMON_F32, 3, RANK);
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_OK);
    for (int64_t i = 0; i < 3; i++) {
        double row[COLS];
        for (int64_t j = 0; j < COLS; j++)
            row[j] = x[i * COLS + j];
        for (int64_t j = 0; j < RANK; j++)
            assert_true(y[i * RANK + j] == (float)score(&f, row, j));
    }
    gnomon_context_destroy(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    static space f;
    static double x[2 * COLS], y[2 * COLS];
    gnomon_context *ctx = make_context(1);
    gnomon_matrix vx = gnomon_matrix_rowmajor(x, GNOMON_F64, 2, COLS);
    gnomon_matrix vy = gnomon_matrix_rowmajor(y, GNOMON_F64, 2, RANK);
    float narrow[2 * RANK];
    const gnomon_matrix vn = gnomon_matrix_rowmajor(narrow, GNOMON_F32, 2, RANK);
    int64_t row = -1, col = -1;
    make_space(&f);
    fill(x, 2, COLS, 5, 1, 0);
    x[COLS + 3] = (double)NAN;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_NONFINITE);
    gnomon_last_error_place(ctx, &row, &col);
    assert_true(row == 1 && col == 3);
    x[COLS + 3] = 1e300;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vn), GNOMON_ERROR_OVERFLOW);
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_OK);
    vx.cols--;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_SHAPE);
    vx.cols++;
    vy.cols--;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_SHAPE);
    vy.cols++;
    const gnomon_matrix over = gnomon_matrix_rowmajor(x, GNOMON_F64, 2, RANK);
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &over), GNOMON_ERROR_ARGUMENT);
    f.vt[COLS + 2] = (double)INFINITY;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "options.vt"));
    make_space(&f);
    f.options.whiten = 1;
    f.s[RANK - 1] = 1e-15;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_ARGUMENT);
    f.s[RANK - 1] = 1e-3;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_OK);
    f.options.rows = 1;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_ARGUMENT);
    f.options.whiten = 0;
    f.scale[4] = -1;
    f.options.scale = f.scale;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_ERROR_ARGUMENT);
    f.options.scale = NULL;
    f.options.inverse = 1;
    const int64_t offsets[2] = {0, 1}, index = COLS;
    const double value = 1;
    const gnomon_csr beyond = {1, COLS, offsets, &index, &value, GNOMON_F64};
    vy.rows = 1;
    expect(ctx, gnomon_svd_transform_csr(ctx, &beyond, &f.options, &vy), GNOMON_ERROR_ARGUMENT);
    f.options.inverse = 0;
    expect(ctx, gnomon_svd_transform_csr(ctx, &beyond, &f.options, &vy), GNOMON_ERROR_DATA);
    vx.rows = vy.rows = 0;
    expect(ctx, gnomon_svd_transform(ctx, &vx, &f.options, &vy), GNOMON_OK);
    gnomon_context_destroy(ctx);
}

/* ---- standardized ---- */

/* a less its columns' means over their deviations; columns of equal numbers are 0. */
static void standardize(const double *a, int64_t rows, int64_t cols, double *out, double *scale)
{
    for (int64_t j = 0; j < cols; j++) {
        long double sum = 0, squares = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += (long double)a[i * cols + j];
        for (int64_t i = 0; i < rows; i++) {
            const long double d = (long double)a[i * cols + j] - sum / (long double)rows;
            squares += d * d;
        }
        bool equal = true;
        for (int64_t i = 1; i < rows; i++)
            equal = equal && a[i * cols + j] == a[j];
        const long double deviation =
            equal ? 1 : sqrtl(squares / (long double)(rows > 1 ? rows - 1 : 1));
        scale[j] = (double)deviation;
        for (int64_t i = 0; i < rows; i++)
            out[i * cols + j] =
                equal ? 0
                      : (double)(((long double)a[i * cols + j] - sum / (long double)rows) /
                                 deviation);
    }
}

static void check_standardized(gnomon_context *ctx, const double *a, int64_t rows, int64_t cols)
{
    static double z[ROWS * COLS], scale[COLS];
    static sparse s;
    standardize(a, rows, cols, z, scale);
    double norm = 0;
    for (int64_t i = 0; i < rows * cols; i++)
        norm += z[i] * z[i];
    norm = sqrt(norm);
    sparse_of(a, rows, cols, &s);
    for (int how = 0; how < 4; how++) {
        const gnomon_matrix view =
            gnomon_matrix_rowmajor((void *)(uintptr_t)a, GNOMON_F64, rows, cols);
        gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        o.rank = rows < cols ? rows : cols;
        o.standardize = 1;
        o.dtype = how & 1 ? GNOMON_F32 : GNOMON_F64;
        expect(ctx,
               how & 2 ? gnomon_svd_csr(ctx, &s.csr, &o, &svd)
                       : gnomon_svd_dense(ctx, &view, &o, &svd),
               GNOMON_OK);
        const double u = (how & 1 ? 4e-6 : 1e-11) * (norm + 1);
        assert_true(svd.centered && svd.standardized && svd.mean != NULL);
        close_to(svd.norm, norm, u);
        double explained = 0;
        for (int64_t i = 0; i < svd.rank; i++)
            explained += norm > 0 ? svd.explained_ratio[i] : 0;
        if (norm > 0) close_to(explained, 1, 1e-5);
        if (rows > 1)
            close_to(svd.total_variance, norm * norm / (double)(rows - 1), u * norm);
        else
            assert_true(isnan(svd.total_variance) && isnan(svd.explained_variance[0]));
        for (int64_t j = 0; j < cols; j++) {
            assert_true(fabs(svd.scale[j] - scale[j]) <= 1e-13 * scale[j]);
            for (int64_t i = 0; i < rows; i++) {
                double got = 0;
                for (int64_t l = 0; l < svd.rank; l++) {
                    const double us = how & 1 ? (double)((float *)svd.u.data)[i * svd.rank + l]
                                              : ((double *)svd.u.data)[i * svd.rank + l];
                    const double vt = how & 1 ? (double)((float *)svd.vt.data)[l * cols + j]
                                              : ((double *)svd.vt.data)[l * cols + j];
                    got += us * svd.s[l] * vt;
                }
                close_to(got, z[i * cols + j], u);
            }
        }
        gnomon_svd_free(ctx, &svd);
    }
}

static void test_standardized(void **state)
{
    (void)state;
    static double a[ROWS * COLS];
    gnomon_context *ctx = make_context(2);
    if (gnomon_svd_missing() != NULL) skip();
    fill(a, ROWS, COLS, 11, 1, 0);
    check_standardized(ctx, a, ROWS, COLS);
    fill(a, ROWS, COLS, 12, 10, 0); /* up to 1e36 beside 1 */
    check_standardized(ctx, a, ROWS, COLS);
    fill(a, ROWS, COLS, 13, 1, 0);
    for (int64_t i = 0; i < ROWS; i++)
        a[i * COLS + 4] = 0.1, a[i * COLS + 5] = 0; /* constant, one of them empty */
    check_standardized(ctx, a, ROWS, COLS);
    for (int64_t i = 0; i < ROWS * COLS; i++)
        a[i] = (double)(i % COLS) / 3; /* equal rows */
    check_standardized(ctx, a, ROWS, COLS);
    check_standardized(ctx, a, 1, COLS);
    gnomon_context_destroy(ctx);
}

/* Entries of one place add up, and those that are stored zeros count as others that are not. */
static void test_duplicates(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 3, 4, 5, 7}, indices[] = {0, 1, 0, 1, 0, 1, 0};
    const double values[] = {2, 5, 1, 3, 1, -2, 0};
    double dense[] = {3, 5, 0, 3, 1, 0, 0, -2}, z[8], scale[2];
    const gnomon_csr csr = {4, 2, offsets, indices, values, GNOMON_F64};
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_context *ctx = make_context(1);
    if (gnomon_svd_missing() != NULL) skip();
    standardize(dense, 4, 2, z, scale);
    o.rank = 2;
    o.standardize = 1;
    expect(ctx, gnomon_svd_csr(ctx, &csr, &o, &svd), GNOMON_OK);
    close_to(svd.scale[0], scale[0], 1e-15);
    close_to(svd.scale[1], scale[1], 1e-15);
    close_to(svd.total_variance, 2, 1e-14);
    gnomon_svd_free(ctx, &svd);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),       cmocka_unit_test(test_bits),
        cmocka_unit_test(test_types),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_standardized), cmocka_unit_test(test_duplicates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
