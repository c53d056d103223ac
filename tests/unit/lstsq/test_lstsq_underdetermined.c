/* Least squares of matrices with more columns than rows: the shortest solution, beside LAPACK's. */
#include "lstsq_testing.h"

enum { ROWS = 23, COLS = 900, RIGHTS = 3 };

static double a[ROWS * COLS], b[ROWS * RIGHTS], column[ROWS], shortest[COLS];

static void make_data(double condition, uint64_t seed)
{
    double s[ROWS];
    uint64_t state = seed;
    for (int i = 0; i < ROWS; i++)
        s[i] = pow(condition, -(double)i / (ROWS - 1));
    double *made = matrix_with(ROWS, COLS, s, seed);
    memcpy(a, made, sizeof a);
    free(made);
    for (int i = 0; i < ROWS * RIGHTS; i++)
        b[i] = draw_normal(&state);
}

/* The shortest solution for column j of b. */
static void solve_by_lapack(int j)
{
    for (int i = 0; i < ROWS; i++)
        column[i] = b[i * RIGHTS + j];
    lapack_solve(ROWS, COLS, a, column, 1e-13, shortest);
}

static gnomon_lstsq solve(gnomon_context *ctx, const gnomon_lstsq_options *options)
{
    gnomon_lstsq out = {.struct_size = sizeof out};
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, RIGHTS);
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, options, &out), GNOMON_OK);
    assert_true(out.rows == ROWS && out.cols == COLS && out.targets == RIGHTS);
    assert_true(out.x.rows == COLS && out.x.cols == RIGHTS);
    return out;
}

static void test_shortest(void **state)
{
    static const double conditions[] = {1, 100, 1e6, 1e10};
    (void)state;
    gnomon_context *ctx = context_of(2);
    for (int c = 0; c < 4; c++) {
        for (int64_t k = 150; k <= COLS; k += COLS - 150) { /* sketched, and itself */
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            options.sketch_size = k;
            options.tolerance = 1e-14;
            options.keep_residual = 1;
            make_data(conditions[c], 3 + (uint64_t)c);
            gnomon_lstsq out = solve(ctx, &options);
            assert_true(out.converged && out.rank == ROWS && out.sketched == (k < COLS));
            assert_true(out.low > 0.3 && out.low <= 1.0001 && out.high >= 0.9999 && out.high < 3);
            for (int j = 0; j < RIGHTS; j++) {
                const gnomon_lstsq_target *t = &out.target[j];
                solve_by_lapack(j);
                const double norm = length_of(shortest, COLS);
                const double away = distance_of(COLS, &out.x, j, shortest);
                const double rounding = 0x1p-53 * t->sensitivity * norm;
                assert_true(away <= t->forward_bound + 8 * rounding);
                assert_true(t->forward_bound <= 200 * rounding);
                assert_true(fabs(t->norm_x - norm) <= 100 * rounding);
                assert_true(t->backward_bound < 2.5e-14 && t->backward_error < 1.5e-14);
                assert_true(isnan(t->gradient) && isnan(t->suboptimality));
                double left = 0;
                for (int i = 0; i < ROWS; i++)
                    left = hypot(left, at(&out.residual, i, j));
                assert_true(fabs(left - t->residual) <= 1e-12 * left);
                assert_true(t->residual <= 1e-14 * (out.norm * norm + t->norm_b));
                assert_true(fit_between(ROWS, COLS, a, &out.x, j, shortest) <=
                            t->fit_bound + 1e-14 * out.norm * norm);
            }
            gnomon_lstsq_free(ctx, &out);
        }
    }
    gnomon_context_destroy(ctx);
}

/* Rows that depend on each other: the shortest of what leaves the least. */
static void test_deficient(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    options.sketch_size = 150;
    make_data(10, 8);
    for (int l = 0; l < COLS; l++)
        a[5 * COLS + l] = a[l] - 2 * a[COLS + l];
    gnomon_lstsq out = solve(ctx, &options);
    assert_true(out.converged && out.rank == ROWS - 1);
    for (int j = 0; j < RIGHTS; j++) {
        const gnomon_lstsq_target *t = &out.target[j];
        solve_by_lapack(j);
        const double norm = length_of(shortest, COLS);
        assert_true(distance_of(COLS, &out.x, j, shortest) <= t->forward_bound + 1e-13 * norm);
        assert_true(t->forward_bound < 1e-11 * norm && t->residual > 0.01 * t->norm_b);
        assert_true(t->gradient < 1e-14 && t->backward_bound < 1e-11);
    }
    gnomon_lstsq_free(ctx, &out);
    memset(a, 0, sizeof a);
    out = solve(ctx, NULL);
    assert_true(out.converged && out.rank == 0 && length_of(out.x.data, COLS * RIGHTS) == 0);
    assert_true(out.target[0].residual == out.target[0].norm_b);
    gnomon_lstsq_free(ctx, &out);
    gnomon_context_destroy(ctx);
}

/* Ridge: LAPACK's shortest solution of [A, lambda I] [x; lambda y] = b. */
static void test_lambda(void **state)
{
    (void)state;
    const double lambda = 0.3;
    gnomon_context *ctx = context_of(2);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    options.sketch_size = 150;
    options.damp = lambda;
    make_data(1e5, 9);
    gnomon_lstsq out = solve(ctx, &options);
    double *all = calloc((size_t)ROWS * (COLS + ROWS), sizeof *all), longer[COLS + ROWS];
    for (int i = 0; i < ROWS; i++) {
        memcpy(all + i * (COLS + ROWS), a + i * COLS, COLS * sizeof *a);
        all[i * (COLS + ROWS) + COLS + i] = lambda;
    }
    for (int j = 0; j < RIGHTS; j++) {
        for (int i = 0; i < ROWS; i++)
            column[i] = b[i * RIGHTS + j];
        lapack_solve(ROWS, COLS + ROWS, all, column, 1e-13, longer);
        const double norm = length_of(longer, COLS);
        assert_true(distance_of(COLS, &out.x, j, longer) <=
                    out.target[j].forward_bound + 1e-14 * norm);
        assert_true(out.target[j].forward_bound < 1e-11 * norm && out.target[j].converged);
        assert_true(fabs(left_by(ROWS, COLS, a, column, &out.x, j) - out.target[j].residual) <
                    1e-13);
    }
    free(all);
    gnomon_lstsq_free(ctx, &out);
    gnomon_context_destroy(ctx);
}

/* Threads, layouts, sparse rows, other types and scales. */
static void test_same(void **state)
{
    (void)state;
    static double transposed[COLS * ROWS];
    static float f32[ROWS * COLS];
    static int64_t offsets[ROWS + 1], indices[ROWS * COLS];
    gnomon_context *ctx = context_of(3), *one = context_of(1);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    options.sketch_size = 150;
    make_data(50, 10);
    for (int i = 0; i < ROWS * COLS; i++) {
        f32[i] = (float)a[i];
        a[i] = (double)f32[i];
        transposed[i % COLS * ROWS + i / COLS] = a[i];
        offsets[i / COLS + 1] = i + 1;
        indices[i] = i % COLS;
    }
    gnomon_lstsq first = solve(one, &options);
    for (int way = 0; way < 5; way++) {
        gnomon_lstsq out = {.struct_size = sizeof out};
        gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
        const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, RIGHTS);
        const gnomon_csr sparse = {ROWS,
                                   COLS,
                                   offsets,
                                   indices,
                                   way == 3 ? (void *)f32 : a,
                                   way == 3 ? GNOMON_F32 : GNOMON_F64};
        if (way == 1)
            view = (gnomon_matrix){transposed, GNOMON_F64, GNOMON_HOST, ROWS, COLS, 1, ROWS};
        if (way == 2) view = gnomon_matrix_rowmajor(f32, GNOMON_F32, ROWS, COLS);
        if (way >= 3)
            expect(ctx, gnomon_lstsq_csr(ctx, &sparse, &right, &options, &out), GNOMON_OK);
        else
            expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), GNOMON_OK);
        if (way == 0) assert_memory_equal(first.x.data, out.x.data, COLS * RIGHTS * sizeof(double));
        for (int64_t i = 0; i < COLS * RIGHTS; i++)
            assert_true(fabs(((double *)out.x.data)[i] - ((double *)first.x.data)[i]) <
                        1e-12 * first.target[0].norm_x);
        gnomon_lstsq_free(ctx, &out);
    }
    /* a scale beyond what squares hold, and a float solution */
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] *= 0x1p600;
    gnomon_lstsq out = solve(ctx, &options);
    for (int64_t i = 0; i < COLS * RIGHTS; i++)
        assert_true(((double *)out.x.data)[i] == 0x1p-600 * ((double *)first.x.data)[i]);
    gnomon_lstsq_free(ctx, &out);
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] *= 0x1p-600;
    options.dtype = GNOMON_F32;
    out = solve(ctx, &options);
    for (int64_t i = 0; i < COLS * RIGHTS; i++)
        assert_true(((float *)out.x.data)[i] == (float)((double *)first.x.data)[i]);
    assert_true(out.converged && out.target[0].backward_bound > 1e-10);
    assert_true(out.target[0].forward_bound < 1e-6 * out.target[0].norm_x);
    gnomon_lstsq_free(ctx, &out);
    gnomon_lstsq_free(ctx, &first);
    gnomon_context_destroy(one);
    gnomon_context_destroy(ctx);
}

static gnomon_status give_rows(void *user, const gnomon_matrix *dst, int64_t *got)
{
    int64_t *given = user;
    *got = *given < ROWS ? ROWS : 0;
    if (*got > dst->rows) return GNOMON_ERROR_INTERNAL;
    if (*got > 0) memcpy(dst->data, a, sizeof a);
    *given = ROWS;
    return GNOMON_OK;
}

static gnomon_status begin_again(void *user)
{
    *(int64_t *)user = 0;
    return GNOMON_OK;
}

static void test_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2);
    gnomon_lstsq out = {.struct_size = sizeof out};
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    make_data(10, 11);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, ROWS, RIGHTS);
    options.sketch_size = ROWS - 1;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, &options, &out), GNOMON_ERROR_ARGUMENT);
    assert_non_null(
        strstr(gnomon_last_error(ctx), "sketch_size is 22; it must be 0 or at least 23"));
    right.rows--;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    assert_non_null(strstr(gnomon_last_error(ctx), "b has 22 rows and a has 23"));
    right.rows++;
    int64_t given = 0, offsets[] = {0, 1, 2}, indices[] = {4, 9};
    double values[] = {1, INFINITY};
    const gnomon_svd_rows rows = {&given, ROWS, COLS, GNOMON_F64, give_rows, begin_again};
    expect(ctx, gnomon_lstsq_stream(ctx, &rows, &right, NULL, &out), GNOMON_ERROR_SHAPE);
    a[7 * COLS + 31] = NAN;
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "row 7, column 31"));
    gnomon_csr sparse = {2, 10, offsets, indices, values, GNOMON_F64};
    right.rows = 2;
    expect(ctx, gnomon_lstsq_csr(ctx, &sparse, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "row 1, column 9"));
    indices[1] = 10;
    expect(ctx, gnomon_lstsq_csr(ctx, &sparse, &right, NULL, &out), GNOMON_ERROR_DATA);
    b[1] = NAN;
    indices[1] = 9;
    values[1] = 2;
    expect(ctx, gnomon_lstsq_csr(ctx, &sparse, &right, NULL, &out), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "b has NaN or infinity in row 0, column 1"));
    assert_null(out.x.data);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest), cmocka_unit_test(test_deficient),
        cmocka_unit_test(test_lambda),   cmocka_unit_test(test_same),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
