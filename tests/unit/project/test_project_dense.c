/* Dense points: every kind, type and layout against an FP64 reference. */
#include "project.h"

/* Errors: a sum of N terms in precision u differs from the exact one by no more than N u sum|s x|;
 * rounding makes it about sqrt(N) u in practice. For kronecker every level adds its own, and the
 * intermediate values bound the sums, not |S||x|; hence norms there. */
static double allowed(const gnomon_operator *op, double u, double sum_abs, double norm_x)
{
    gnomon_descriptor s = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &s);
    const double d = (double)s.d;
    if (s.kind == GNOMON_KRONECKER) return 64 * u * sqrt(d) * norm_x;
    return (8 + 2 * sqrt(d)) * u * sum_abs;
}

static void compare(gnomon_context *ctx, const gnomon_operator *op, const gnomon_matrix *x,
                    const gnomon_matrix *y, double u, const char *name)
{
    double *s = operator_block(ctx, op, 0, y->cols, 0, x->cols);
    for (int64_t i = 0; i < x->rows; i++) {
        double norm = 0;
        for (int64_t j = 0; j < x->cols; j++)
            norm += element(x, i, j) * element(x, i, j);
        for (int64_t r = 0; r < y->cols; r++) {
            double sum = 0, sum_abs = 0;
            for (int64_t j = 0; j < x->cols; j++) {
                const double term = s[r * x->cols + j] * element(x, i, j);
                sum += term;
                sum_abs += fabs(term);
            }
            const double error = fabs(element(y, i, r) - sum);
            const double most = allowed(op, u, sum_abs, sqrt(norm)) +
                                (y->dtype == GNOMON_F32 ? FLT_EPSILON : DBL_EPSILON) * fabs(sum);
            if (!(error <= most))
                fail_msg("%s, %s points %lld x %lld: (%lld, %lld) is %.17g, not %.17g, off by %g; "
                         "%g is allowed",
                         name, gnomon_dtype_name(x->dtype), (long long)x->rows, (long long)x->cols,
                         (long long)i, (long long)r, element(y, i, r), sum, error, most);
        }
    }
    free(s);
}

static bool is_f64(gnomon_dtype x, gnomon_dtype y)
{
    return x == GNOMON_F64 || x == GNOMON_I32 || x == GNOMON_U32 || x == GNOMON_I64 ||
           x == GNOMON_U64 || y == GNOMON_F64;
}

static void check_case(gnomon_context *ctx, const any_operator *a, int64_t n, int64_t d, int64_t k,
                       gnomon_dtype dtype, gnomon_dtype out, int layout, int out_layout)
{
    gnomon_operator *op = make_operator(ctx, a, k, d);
    owned x = make_matrix(n, d, dtype, layout), y = make_matrix(n, k, out, out_layout);
    fill_random(&x.m, 7);
    ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL));
    check_sentinels(&x);
    check_sentinels(&y);
    compare(ctx, op, &x.m, &y.m, is_f64(dtype, out) ? DBL_EPSILON / 2 : FLT_EPSILON / 2, a->name);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
}

static void test_types(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++)
        for (int t = GNOMON_F32; t <= GNOMON_U64; t++)
            check_case(ctx, &all_operators[o], 19, 203, 21, (gnomon_dtype)t,
                       t % 2 ? GNOMON_F32 : GNOMON_F64, t % 2 ? ROW_MAJOR : COL_MAJOR, ROW_MAJOR);
}

static void test_layouts(void **state)
{
    gnomon_context *ctx = *state;
    for (int o = 0; o < OPERATORS; o++)
        for (int l = 0; l < LAYOUTS; l++) {
            check_case(ctx, &all_operators[o], 35, 130, 9, GNOMON_F32, GNOMON_F32, l,
                       (l + 3) % LAYOUTS);
            check_case(ctx, &all_operators[o], 3, 97, 5, GNOMON_F64, GNOMON_F64, l,
                       (l + 5) % LAYOUTS);
        }
}

static void test_sizes(void **state)
{
    gnomon_context *ctx = *state;
    static const int64_t sizes[][3] = {/* n, d, k */
                                       {1, 4, 4},    {1, 31, 7},   {16, 64, 16},  {17, 65, 17},
                                       {5, 1025, 6}, {2, 5000, 4}, {1, 300, 130}, {150, 40, 33}};
    for (int o = 0; o < OPERATORS; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int f64 = 0; f64 < 2; f64++)
                check_case(ctx, &all_operators[o], sizes[s][0], sizes[s][1], sizes[s][2],
                           f64 ? GNOMON_F64 : GNOMON_F32, f64 ? GNOMON_F64 : GNOMON_F32, ROW_MAJOR,
                           ROW_MAJOR);
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
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
