/* The adjoint against an FP64 reference and against the sketch; partial sketches; alpha and beta.
 */
#include "project.h"

#include "base/isa.h"

static void compare(gnomon_context *ctx, const gnomon_operator *op, const gnomon_matrix *y,
                    int64_t row, const gnomon_matrix *x, int64_t col, double u, const char *name)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &d);
    double *s = operator_block(ctx, op, row, y->cols, col, x->cols);
    for (int64_t i = 0; i < x->rows; i++) {
        double norm = 0;
        for (int64_t r = 0; r < y->cols; r++)
            norm += element(y, i, r) * element(y, i, r);
        for (int64_t j = 0; j < x->cols; j++) {
            double sum = 0, sum_abs = 0;
            for (int64_t r = 0; r < y->cols; r++) {
                const double term = s[r * x->cols + j] * element(y, i, r);
                sum += term;
                sum_abs += fabs(term);
            }
            const double most = d.kind == GNOMON_KRONECKER
                                    ? 256 * u * sqrt(norm)
                                    : (8 + 2 * sqrt((double)y->cols)) * u * sum_abs;
            if (!(fabs(element(x, i, j) - sum) <= most + 2 * u * fabs(sum)))
                fail_msg("%s, y %s: (%lld, %lld) is %.17g, not %.17g", name,
                         gnomon_dtype_name(y->dtype), (long long)i, (long long)j, element(x, i, j),
                         sum);
        }
    }
    free(s);
}

static void check_case(gnomon_context *ctx, int o, int64_t n, int64_t d, int64_t k, gnomon_dtype in,
                       gnomon_dtype out, int layout)
{
    gnomon_operator *op = make_operator(ctx, &all_operators[o], k, d);
    owned y = make_matrix(n, k, in, layout), x = make_matrix(n, d, out, (layout + 2) % LAYOUTS);
    fill_random(&y.m, 4);
    ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, &x.m, NULL));
    check_sentinels(&x);
    const bool f64 = in == GNOMON_F64 || in == GNOMON_I32 || out == GNOMON_F64;
    const double u = !f64 ? FLT_EPSILON / 2 : out == GNOMON_F32 ? FLT_EPSILON : DBL_EPSILON / 2;
    compare(ctx, op, &y.m, 0, &x.m, 0, u, all_operators[o].name);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static void test_reference(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++) {
        for (int l = 0; l < LAYOUTS; l++)
            check_case(ctx, o, 21, 333, 37, l % 2 ? GNOMON_F32 : GNOMON_F64,
                       l % 2 ? GNOMON_F32 : GNOMON_F64, l);
        check_case(ctx, o, 1, 1200, 5, GNOMON_F16, GNOMON_F32, ROW_MAJOR);
        check_case(ctx, o, 2, 70, 70, GNOMON_I32, GNOMON_F32, ROW_MAJOR);
        check_case(ctx, o, 100, 30, 9, GNOMON_U8, GNOMON_F64, COL_MAJOR);
    }
}

/* <S x, y> = <x, S^T y> */
static void test_identity(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 3, D = 4500, K = 150 };
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
        owned x = make_matrix(N, D, GNOMON_F64, 0), sx = make_matrix(N, K, GNOMON_F64, 0);
        owned y = make_matrix(N, K, GNOMON_F64, 0), sy = make_matrix(N, D, GNOMON_F64, 0);
        fill_random(&x.m, 1);
        fill_random(&y.m, 2);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &sx.m, NULL));
        ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, &sy.m, NULL));
        for (int i = 0; i < N; i++) {
            double a = 0, b = 0, size = 0;
            for (int r = 0; r < K; r++) {
                a += element(&sx.m, i, r) * element(&y.m, i, r);
                size += fabs(element(&sx.m, i, r) * element(&y.m, i, r));
            }
            for (int j = 0; j < D; j++)
                b += element(&x.m, i, j) * element(&sy.m, i, j);
            if (!(fabs(a - b) <= 1e-12 * size))
                fail_msg("%s: <Sx, y> is %.17g, <x, S'y> is %.17g", all_operators[o].name, a, b);
        }
        free_matrix(&x);
        free_matrix(&sx);
        free_matrix(&y);
        free_matrix(&sy);
        gnomon_operator_destroy(op);
    }
}

/* The same bits for any threads, memory, ISA and batch; y of many rows so that panels are cut. */
static void test_same_bits(void **state)
{
    (void)state;
    enum { N = 35, D = 4400, K = 300 };
    static const struct {
        int threads;
        int64_t limit;
        gnomon_isa isa;
    } cases[] = {{1, 0, GNOMON_ISA_COUNT},       {2, 0, GNOMON_ISA_COUNT},
                 {5, 0, GNOMON_ISA_COUNT},       {2, 20 << 20, GNOMON_ISA_COUNT},
                 {1, 7 << 20, GNOMON_ISA_COUNT}, {1, 0, GNOMON_ISA_PORTABLE},
                 {1, 0, GNOMON_ISA_AVX2},        {1, 0, GNOMON_ISA_AVX512}};
    for (int o = 0; o < OPERATORS; o++) {
        owned y = make_matrix(N, K, GNOMON_F32, 0), first = make_matrix(N, D, GNOMON_F32, 0);
        owned x = make_matrix(N, D, GNOMON_F32, 0);
        fill_random(&y.m, 6);
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            if (cases[c].isa != GNOMON_ISA_COUNT) {
                if (!gnomon_isa_available(cases[c].isa)) continue;
                setenv("GNOMON_ISA", gnomon_isa_name(cases[c].isa), 1);
            }
            gnomon_context *ctx = make_context(cases[c].threads, cases[c].limit);
            unsetenv("GNOMON_ISA");
            gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
            const gnomon_matrix *to = c == 0 ? &first.m : &x.m;
            ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, to, NULL));
            if (c > 0) assert_same_bits(&first.m, &x.m, all_operators[o].name);
            if (c == 0) {
                for (int64_t i = 0; i < N; i += 5) {
                    const gnomon_matrix some =
                        gnomon_matrix_rowmajor((float *)y.m.data + i * K, GNOMON_F32, 5, K);
                    const gnomon_matrix out =
                        gnomon_matrix_rowmajor((float *)x.m.data + i * D, GNOMON_F32, 5, D);
                    ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &some, &out, NULL));
                }
                assert_same_bits(&first.m, &x.m, all_operators[o].name);
            }
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
        }
        free_matrix(&x);
        free_matrix(&y);
        free_matrix(&first);
    }
}

/* Ranges of rows and columns, alpha and beta, both ways. */
static void test_ranges(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 18, D = 700, K = 50 };
    static const int64_t ranges[][4] = {/* row, rows, col, w */
                                        {0, 50, 0, 700},   {13, 1, 0, 700}, {0, 50, 333, 1},
                                        {17, 30, 99, 555}, {49, 1, 699, 1}, {3, 5, 350, 349},
                                        {1, 49, 250, 0}};
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
        for (size_t c = 0; c < sizeof ranges / sizeof ranges[0]; c++) {
            const int64_t row = ranges[c][0], rows = ranges[c][1], col = ranges[c][2];
            const int64_t w = ranges[c][3];
            gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
            opt.row = row;
            opt.rows = rows;
            opt.col = col;
            opt.alpha = -2.5;
            opt.beta = 0.25;
            double *s = operator_block(ctx, op, row, rows, col, w);
            owned x = make_matrix(N, w, GNOMON_F64, COL_PADDED);
            owned y = make_matrix(N, rows, GNOMON_F64, ROW_PADDED);
            owned x2 = make_matrix(N, w, GNOMON_F64, 0), y2 = make_matrix(N, rows, GNOMON_F64, 0);
            fill_random(&x.m, 1);
            fill_random(&y.m, 2);
            copy_matrix(&x.m, &x2.m);
            copy_matrix(&y.m, &y2.m);
            ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y2.m, &opt));
            ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, &x2.m, &opt));
            for (int64_t i = 0; i < N; i++) {
                for (int64_t r = 0; r < rows; r++) {
                    double sum = 0;
                    for (int64_t j = 0; j < w; j++)
                        sum += s[r * w + j] * element(&x.m, i, j);
                    sum = -2.5 * sum + 0.25 * element(&y.m, i, r);
                    if (!(fabs(sum - element(&y2.m, i, r)) < 1e-11))
                        fail_msg("%s: sketch (%lld, %lld) is %g, not %g", all_operators[o].name,
                                 (long long)i, (long long)r, element(&y2.m, i, r), sum);
                }
                for (int64_t j = 0; j < w; j++) {
                    double sum = 0;
                    for (int64_t r = 0; r < rows; r++)
                        sum += s[r * w + j] * element(&y.m, i, r);
                    sum = -2.5 * sum + 0.25 * element(&x.m, i, j);
                    if (!(fabs(sum - element(&x2.m, i, j)) < 1e-11))
                        fail_msg("%s: adjoint (%lld, %lld) is %g, not %g", all_operators[o].name,
                                 (long long)i, (long long)j, element(&x2.m, i, j), sum);
                }
            }
            check_sentinels(&y);
            free(s);
            free_matrix(&x);
            free_matrix(&y);
            free_matrix(&x2);
            free_matrix(&y2);
        }
        gnomon_operator_destroy(op);
    }
}

/* With beta 0 the output is not read. */
static void test_beta_zero(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], 12, 80);
        owned x = make_matrix(4, 80, GNOMON_F32, 0), y = make_matrix(4, 12, GNOMON_F32, 0);
        for (int way = 0; way < 2; way++) {
            const gnomon_matrix *in = way ? &y.m : &x.m, *out = way ? &x.m : &y.m;
            fill_random(in, 1);
            for (int64_t i = 0; i < out->rows; i++)
                for (int64_t j = 0; j < out->cols; j++)
                    set_element(out, i, j, j % 2 ? NAN : -INFINITY);
            ASSERT_OK(ctx, way ? gnomon_adjoint(ctx, op, in, out, NULL)
                               : gnomon_sketch(ctx, op, in, out, NULL));
            for (int64_t i = 0; i < out->rows; i++)
                for (int64_t j = 0; j < out->cols; j++)
                    assert_true(isfinite(element(out, i, j)));
        }
        free_matrix(&x);
        free_matrix(&y);
        gnomon_operator_destroy(op);
    }
}

/* The sketches of column ranges add up, and a row range is a part of the whole. */
static void test_partial_sketches(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 20, D = 3000, K = 40 };
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
        owned x = make_matrix(N, D, GNOMON_F64, 0), y = make_matrix(N, K, GNOMON_F64, 0);
        owned z = make_matrix(N, K, GNOMON_F64, 0), part = make_matrix(N, 9, GNOMON_F64, 0);
        fill_random(&x.m, 1);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL));
        gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
        for (opt.col = 0; opt.col < D; opt.col += 750) {
            gnomon_matrix columns = x.m;
            columns.data = (double *)x.m.data + opt.col;
            columns.cols = 750;
            opt.beta = opt.col ? 1 : 0;
            ASSERT_OK(ctx, gnomon_sketch(ctx, op, &columns, &z.m, &opt));
        }
        for (int i = 0; i < N; i++)
            for (int r = 0; r < K; r++)
                assert_true(fabs(element(&y.m, i, r) - element(&z.m, i, r)) < 1e-10);
        opt = (gnomon_sketch_options)GNOMON_SKETCH_OPTIONS_INIT;
        opt.row = 23;
        opt.rows = 9;
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &part.m, &opt));
        gnomon_matrix same = y.m;
        same.data = (double *)y.m.data + 23;
        same.cols = 9;
        assert_same_bits(&part.m, &same, all_operators[o].name);
        free_matrix(&x);
        free_matrix(&y);
        free_matrix(&z);
        free_matrix(&part);
        gnomon_operator_destroy(op);
    }
}

/* A block of columns at 10^12. */
static void test_far_columns(void **state)
{
    gnomon_context *ctx = *state;
    const int64_t d = INT64_C(1000000000000) + 1000;
    for (int o = 0; o < OPERATORS; o++) {
        any_operator a = all_operators[o];
        a.width = 0;
        if (a.kind == GNOMON_KRONECKER) a.zeta = 100;
        gnomon_operator *op = make_operator(ctx, &a, 12, d);
        gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
        opt.col = INT64_C(1000000000000);
        owned x = make_matrix(2, 77, GNOMON_F64, 0), y = make_matrix(2, 12, GNOMON_F64, 0);
        fill_random(&x.m, 1);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &opt));
        double *s = operator_block(ctx, op, 0, 12, opt.col, 77);
        for (int i = 0; i < 2; i++)
            for (int r = 0; r < 12; r++) {
                double sum = 0, sum_abs = 1e-3;
                for (int j = 0; j < 77; j++) {
                    sum += s[r * 77 + j] * element(&x.m, i, j);
                    sum_abs += fabs(s[r * 77 + j] * element(&x.m, i, j));
                }
                if (!(fabs(sum - element(&y.m, i, r)) <= 1e-13 * sum_abs))
                    fail_msg("%s: (%d, %d) is %g, not %g", a.name, i, r, element(&y.m, i, r), sum);
            }
        free(s);
        ASSERT_OK(ctx, gnomon_adjoint(ctx, op, &y.m, &x.m, &opt));
        compare(ctx, op, &y.m, 0, &x.m, opt.col, DBL_EPSILON / 2, a.name);
        free_matrix(&x);
        free_matrix(&y);
        gnomon_operator_destroy(op);
    }
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
        cmocka_unit_test(test_reference),   cmocka_unit_test(test_identity),
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_beta_zero),   cmocka_unit_test(test_partial_sketches),
        cmocka_unit_test(test_far_columns),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
