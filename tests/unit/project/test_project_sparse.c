/* Sparse points against the dense call, and against the rules of their views. */
#include "project.h"

#include "base/memory.h"

typedef struct sparse {
    int64_t rows, cols, nonzeros;
    int64_t *offsets, *row, *col;
    void *values;
    gnomon_dtype dtype;
} sparse;

/* About 'each' nonzeros a point, some points empty, some columns twice. */
static sparse make_sparse(int64_t rows, int64_t cols, int each, gnomon_dtype dtype, bool sorted)
{
    sparse s = {rows, cols, 0, NULL, NULL, NULL, NULL, dtype};
    const int64_t room = rows * (each + 1) + 1;
    s.offsets = calloc((size_t)rows + 1, sizeof *s.offsets);
    s.row = calloc((size_t)room, sizeof *s.row);
    s.col = calloc((size_t)room, sizeof *s.col);
    s.values = calloc((size_t)room, gnomon_dtype_size(dtype));
    uint64_t state = 99;
    for (int64_t i = 0; i < rows; i++) {
        const int count = i % 5 == 3 ? 0 : each;
        const int64_t first = s.nonzeros;
        for (int e = 0; e < count; e++) {
            int64_t c = (int64_t)(next_random(&state) % (uint64_t)cols);
            if (e % 7 == 6) c = s.col[s.nonzeros - 1];
            int64_t to = s.nonzeros++;
            while (sorted && to > first && s.col[to - 1] > c) {
                s.col[to] = s.col[to - 1];
                to--;
            }
            s.col[to] = c;
            s.row[s.nonzeros - 1] = i;
        }
        for (int64_t e = first; e < s.nonzeros; e++)
            put(s.values, dtype, e, next_uniform(&state));
        s.offsets[i + 1] = s.nonzeros;
    }
    return s;
}

static void free_sparse(sparse *s)
{
    free(s->offsets);
    free(s->row);
    free(s->col);
    free(s->values);
}

static gnomon_csr as_csr(const sparse *s)
{
    return (gnomon_csr){s->rows, s->cols, s->offsets, s->col, s->values, s->dtype};
}

static gnomon_coo as_coo(const sparse *s)
{
    return (gnomon_coo){s->rows, s->cols, s->nonzeros, s->row, s->col, s->values, s->dtype};
}

/* The points as doubles: exact, so the reference knows no order. */
static owned densify(const sparse *s)
{
    owned x = make_matrix(s->rows, s->cols, GNOMON_F64, ROW_MAJOR);
    memset(x.m.data, 0, (size_t)(s->rows * s->cols) * 8);
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t e = s->offsets[i]; e < s->offsets[i + 1]; e++)
            set_element(&x.m, i, s->col[e],
                        element(&x.m, i, s->col[e]) + get(s->values, s->dtype, e));
    return x;
}

static double largest(const gnomon_matrix *m)
{
    double most = 0;
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            if (fabs(element(m, i, j)) > most) most = fabs(element(m, i, j));
    return most;
}

static void check_against_dense(gnomon_context *ctx, const gnomon_operator *op, const sparse *s,
                                int64_t k, gnomon_dtype out, const char *name)
{
    owned x = densify(s), exact = make_matrix(s->rows, k, GNOMON_F64, ROW_MAJOR);
    owned y = make_matrix(s->rows, k, out, ROW_PADDED), z = make_matrix(s->rows, k, out, COL_MAJOR);
    ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &exact.m, NULL));
    const gnomon_csr csr = as_csr(s);
    const gnomon_coo coo = as_coo(s);
    ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &csr, &y.m, NULL));
    ASSERT_OK(ctx, gnomon_sketch_coo(ctx, op, &coo, &z.m, NULL));
    check_sentinels(&y);
    check_sentinels(&z);
    assert_same_bits(&y.m, &z.m, name);
    const bool f64 = out == GNOMON_F64 || s->dtype == GNOMON_F64;
    const double u = f64 ? 1e-14 : 2e-6, store = out == GNOMON_F32 ? 1e-7 : 0;
    const double most = (u + store) * largest(&exact.m);
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t r = 0; r < k; r++)
            if (!(fabs(element(&y.m, i, r) - element(&exact.m, i, r)) <= most))
                fail_msg("%s %s: (%lld, %lld) is %.17g, not %.17g", name,
                         gnomon_dtype_name(s->dtype), (long long)i, (long long)r,
                         element(&y.m, i, r), element(&exact.m, i, r));
    free_matrix(&x);
    free_matrix(&exact);
    free_matrix(&y);
    free_matrix(&z);
}

static void test_against_dense(void **state)
{
    gnomon_context *ctx = *state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_I8, GNOMON_I32};
    for (int o = 0; o < OPERATORS; o++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            gnomon_operator *op = make_operator(ctx, &all_operators[o], 22, 900);
            sparse s = make_sparse(41, 900, t == 0 ? 80 : 11, types[t], t % 2);
            check_against_dense(ctx, op, &s, 22, types[t] == GNOMON_F32 ? GNOMON_F32 : GNOMON_F64,
                                all_operators[o].name);
            free_sparse(&s);
            gnomon_operator_destroy(op);
        }
}

/* The same bits for any threads, memory and batches, sorted or not. */
static void test_same_bits(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_context *ctx = make_context(1, 0);
        gnomon_operator *op = make_operator(ctx, &all_operators[o], 70, 3000);
        sparse s = make_sparse(90, 3000, 30, GNOMON_F32, false);
        const gnomon_csr all = as_csr(&s);
        owned y = make_matrix(90, 70, GNOMON_F32, ROW_MAJOR);
        owned z = make_matrix(90, 70, GNOMON_F32, ROW_MAJOR);
        ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &all, &y.m, NULL));
        for (int64_t i = 0; i < s.rows; i++) { /* point by point */
            const gnomon_csr one = {1,
                                    s.cols,
                                    s.offsets + i,
                                    s.col + s.offsets[i],
                                    (float *)s.values + s.offsets[i],
                                    GNOMON_F32};
            const gnomon_matrix to =
                gnomon_matrix_rowmajor((float *)z.m.data + i * 70, GNOMON_F32, 1, 70);
            ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &one, &to, NULL));
        }
        assert_same_bits(&y.m, &z.m, all_operators[o].name);
        gnomon_context_destroy(ctx);
        static const int threads[] = {2, 5, 2, 1};
        static const int64_t limits[] = {0, 0, 3 << 20, 2500000};
        for (int c = 0; c < 4; c++) {
            ctx = make_context(threads[c], limits[c]);
            memset(z.m.data, 1, 90 * 70 * 4);
            ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &all, &z.m, NULL));
            assert_same_bits(&y.m, &z.m, all_operators[o].name);
            const gnomon_coo coo = as_coo(&s);
            memset(z.m.data, 1, 90 * 70 * 4);
            ASSERT_OK(ctx, gnomon_sketch_coo(ctx, op, &coo, &z.m, NULL));
            assert_same_bits(&y.m, &z.m, all_operators[o].name);
            gnomon_context_destroy(ctx);
        }
        ctx = make_context(1, 0);
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
        free_sparse(&s);
        free_matrix(&y);
        free_matrix(&z);
    }
}

/* Duplicates add up where they stand: (1e8 - 1e8) + 1 is 1 in fp32, 1e8 + 1 - 1e8 is 0. */
static void test_duplicates(void **state)
{
    gnomon_context *ctx = *state;
    gnomon_operator *op = make_operator(ctx, &all_operators[2], 4, 50);
    const int64_t offsets[] = {10, 13, 16}, indices[] = {9, 9, 9, 9, 9, 9};
    const float values[] = {1e8f, -1e8f, 1, 1e8f, 1, -1e8f};
    const gnomon_csr x = {2, 50, offsets, indices, values, GNOMON_F32};
    float y[8];
    const gnomon_matrix m = gnomon_matrix_rowmajor(y, GNOMON_F32, 2, 4);
    ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &x, &m, NULL));
    for (int r = 0; r < 4; r++) {
        assert_true(fabsf(y[r]) == 0.5f);
        assert_true(y[4 + r] == 0);
    }
    gnomon_operator_destroy(op);
}

static void test_far_columns(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++) {
        any_operator a = all_operators[o];
        if (a.kind == GNOMON_KRONECKER) a.zeta = 100, a.width = 0; /* six levels */
        const int64_t d = INT64_C(1000000000000);
        gnomon_operator *op = make_operator(ctx, &a, 10, d);
        const int64_t offsets[] = {0, 3}, indices[] = {d - 1, 5, d / 2};
        const double values[] = {1.5, -2, 0.25};
        const gnomon_csr x = {1, d, offsets, indices, values, GNOMON_F64};
        double y[10], s[3][10];
        const gnomon_matrix m = gnomon_matrix_rowmajor(y, GNOMON_F64, 1, 10);
        ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &x, &m, NULL));
        for (int e = 0; e < 3; e++) {
            const gnomon_matrix b = gnomon_matrix_colmajor(s[e], GNOMON_F64, 10, 1);
            ASSERT_OK(ctx, gnomon_operator_block(ctx, op, 0, indices[e], &b));
        }
        for (int r = 0; r < 10; r++) {
            double sum = 0, sum_abs = 0;
            for (int e = 0; e < 3; e++) {
                sum += s[e][r] * values[e];
                sum_abs += fabs(s[e][r] * values[e]);
            }
            if (!(fabs(y[r] - sum) <= 1e-12 * (sum_abs + 1)))
                fail_msg("%s: row %d is %.17g, not %.17g", a.name, r, y[r], sum);
        }
        gnomon_operator_destroy(op);
    }
}

static void test_options(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], 24, 500);
        sparse s = make_sparse(9, 120, 20, GNOMON_F64, false);
        owned x = densify(&s), y = make_matrix(9, 7, GNOMON_F64, ROW_MAJOR);
        owned z = make_matrix(9, 7, GNOMON_F64, ROW_MAJOR);
        fill_random(&y.m, 3);
        copy_matrix(&y.m, &z.m);
        gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
        opt.alpha = -3;
        opt.beta = 0.5;
        opt.row = 11;
        opt.rows = 7;
        opt.col = 333;
        const gnomon_csr csr = as_csr(&s);
        ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &csr, &y.m, &opt));
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &z.m, &opt));
        for (int64_t i = 0; i < 9; i++)
            for (int64_t r = 0; r < 7; r++)
                if (!(fabs(element(&y.m, i, r) - element(&z.m, i, r)) < 1e-12))
                    fail_msg("%s: (%lld, %lld) is %g and %g", all_operators[o].name, (long long)i,
                             (long long)r, element(&y.m, i, r), element(&z.m, i, r));
        free_sparse(&s);
        free_matrix(&x);
        free_matrix(&y);
        free_matrix(&z);
        gnomon_operator_destroy(op);
    }
}

static void test_bad_points(void **state)
{
    gnomon_context *ctx = *state;
    gnomon_operator *op = make_operator(ctx, &all_operators[2], 3, 6);
    int64_t offsets[] = {0, 2, 3}, indices[] = {0, 5, 2}, rows[] = {0, 1, 1};
    float values[] = {1, 2, 3};
    gnomon_csr x = {2, 6, offsets, indices, values, GNOMON_F32};
    gnomon_coo c = {2, 6, 3, rows, indices, values, GNOMON_F32};
    owned y = make_matrix(2, 3, GNOMON_F32, ROW_MAJOR), before = make_matrix(2, 3, GNOMON_F32, 0);
    fill_random(&y.m, 1);
    copy_matrix(&y.m, &before.m);
#define CSR(status, text) \
    ASSERT_FAILS(ctx, gnomon_sketch_csr(ctx, op, &x, &y.m, NULL), status, text)
#define COO(status, text) \
    ASSERT_FAILS(ctx, gnomon_sketch_coo(ctx, op, &c, &y.m, NULL), status, text)
    indices[1] = 6;
    CSR(GNOMON_ERROR_DATA, "x.indices[1] is 6; x has 6 columns");
    COO(GNOMON_ERROR_DATA, "x.col_indices[1] is 6; x has 6 columns");
    indices[1] = INT64_MIN;
    CSR(GNOMON_ERROR_DATA, "x.indices[1] is -9223372036854775808");
    indices[1] = 5;
    rows[2] = 2;
    COO(GNOMON_ERROR_DATA, "x.row_indices[2] is 2; x has 2 rows");
    rows[2] = -1;
    COO(GNOMON_ERROR_DATA, "x.row_indices[2] is -1");
    rows[2] = 1;
    offsets[1] = 4;
    CSR(GNOMON_ERROR_DATA, "x.offsets[2] is 3, less than the 4 before it");
    offsets[1] = 2;
    offsets[0] = -1;
    CSR(GNOMON_ERROR_DATA, "x.offsets[0] is -1");
    offsets[0] = 0;
    values[1] = NAN;
    CSR(GNOMON_ERROR_NONFINITE, "element (0, 5)");
    COO(GNOMON_ERROR_NONFINITE, "element (1, 5)");
    values[1] = 2;
    x.cols = c.cols = 5;
    CSR(GNOMON_ERROR_SHAPE, "x has 5 columns; the operator has 6");
    COO(GNOMON_ERROR_SHAPE, "x has 5 columns; the operator has 6");
    x.cols = c.cols = -5;
    CSR(GNOMON_ERROR_ARGUMENT, "must not be negative");
    x.cols = c.cols = 6;
    x.rows = 1;
    CSR(GNOMON_ERROR_SHAPE, "x has 1 rows and y has 2");
    x.rows = 2;
    x.dtype = (gnomon_dtype)0;
    CSR(GNOMON_ERROR_ARGUMENT, "x.dtype is 0");
    x.dtype = GNOMON_F32;
    x.offsets = NULL;
    CSR(GNOMON_ERROR_ARGUMENT, "x.offsets is NULL");
    x.offsets = offsets;
    x.indices = NULL;
    CSR(GNOMON_ERROR_ARGUMENT, "x.indices is NULL");
    x.indices = indices;
    x.values = NULL;
    CSR(GNOMON_ERROR_ARGUMENT, "x.values is NULL");
    c.row_indices = NULL;
    COO(GNOMON_ERROR_ARGUMENT, "x.row_indices is NULL");
    c.row_indices = rows;
    c.nonzeros = -1;
    COO(GNOMON_ERROR_ARGUMENT, "x.nonzeros is -1");
    c.nonzeros = 3;
    x.values = y.m.data;
    CSR(GNOMON_ERROR_ARGUMENT, "share memory");
    ASSERT_FAILS(ctx, gnomon_sketch_csr(ctx, op, NULL, &y.m, NULL), GNOMON_ERROR_ARGUMENT,
                 "x is NULL");
    ASSERT_FAILS(ctx, gnomon_sketch_coo(ctx, op, NULL, &y.m, NULL), GNOMON_ERROR_ARGUMENT,
                 "x is NULL");
    assert_same_bits(&y.m, &before.m, "untouched");
    x.values = values;
    values[2] = INFINITY;
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.allow_nonfinite = 1;
    ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &x, &y.m, &o));
    assert_true(isfinite(element(&y.m, 0, 0)) && !isfinite(element(&y.m, 1, 0)));
    /* nothing at all */
    memset(offsets, 0, sizeof offsets);
    x.indices = NULL;
    x.values = NULL;
    ASSERT_OK(ctx, gnomon_sketch_csr(ctx, op, &x, &y.m, NULL));
    for (int r = 0; r < 3; r++)
        assert_true(element(&y.m, 0, r) == 0 && element(&y.m, 1, r) == 0);
    free_matrix(&y);
    free_matrix(&before);
    gnomon_operator_destroy(op);
}

static int set_up(void **state)
{
    *state = make_context(2, 0);
    return 0;
}

static int tear_down(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_dense), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_duplicates),    cmocka_unit_test(test_far_columns),
        cmocka_unit_test(test_options),       cmocka_unit_test(test_bad_points),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
