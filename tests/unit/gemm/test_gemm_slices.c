/* gnomon_gemm in the form BF16: at the level amx, whose matrix units' products are emulated where
 * there are none (tests/avx512), by slices; elsewhere the plain product, by the same bound. */
#include "products.h"

#include "gemm/coarse.h"

static bool by_slices(void)
{
    return strcmp(gnomon_context_isa(ctx), "amx") == 0;
}

static gnomon_gemm_options bf16(double alpha, double beta)
{
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    o.alpha = alpha;
    o.beta = beta;
    o.form = GNOMON_GEMM_BF16;
    return o;
}

static void check(const gnomon_matrix *a, const gnomon_matrix *b, const gnomon_matrix *c,
                  double alpha, double beta, const double *before, const char *what)
{
    if (by_slices() && a->cols >= 32)
        check_within(a, b, c, alpha, beta, before, 68, 0x1p-96, what);
    else
        check_product(a, b, c, alpha, beta, before, what);
}

static void types_and_layouts(void **state)
{
    (void)state;
    static const int64_t inner[2] = {43, 150};
    const gnomon_gemm_options o = bf16(-1.5, 0.75);
    check_layouts(&o, inner, check);
}

static void sizes(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 1, 1},      {1, 1, 31},    {1, 1, 32},    {1, 1, 1000},  {1, 50, 70},   {50, 1, 300},
        {16, 16, 128},  {17, 15, 129}, {15, 17, 257}, {3, 200, 400}, {32, 32, 160}, {33, 49, 97},
        {64, 64, 513},  {31, 33, 640}, {5, 5, 20000}, {130, 4, 255}, {1, 600, 40},  {48, 16, 4096},
        {16, 48, 4097}, {1040, 3, 64}, {3, 1040, 64}};
    const gnomon_gemm_options o = bf16(1, 0);
    check_sizes(&o, shapes, sizeof shapes / sizeof shapes[0], GNOMON_F32, check);
}

/* Numbers that slices hold wholly have exact products. */
static void integers_are_exact(void **state)
{
    (void)state;
    enum { M = 20, N = 21, K = 200 };
    const gnomon_gemm_options o = bf16(1, 0);
    owned a = make_matrix(M, K, GNOMON_F32, ROW_MAJOR);
    owned b = make_matrix(K, N, GNOMON_F32, ROW_MAJOR);
    owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
    uint64_t random = 5;
    for (int64_t i = 0; i < M * K; i++)
        ((float *)a.m.data)[i] = (float)(next_random(&random) % 201) - 100;
    for (int64_t i = 0; i < N * K; i++)
        ((float *)b.m.data)[i] = (float)(next_random(&random) % 401) - 200;
    ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t p = 0; p < K; p++)
                sum += element(&a.m, i, p) * element(&b.m, p, j);
            assert_true(element(&c.m, i, j) == sum);
        }
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

typedef struct setting {
    int threads;
    int64_t limit;
} setting;

/* The product that steps of the SVD take where less than single precision is enough: within its
 * bound, of either layout of A, the same bits with any threads and memory. */
static void coarse(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{70, 200, 300}, {300, 45, 70}, {33, 17, 97},
                                        {64, 64, 4100}, {1, 1, 1},     {257, 32, 8200},
                                        {95, 130, 33}};
    static const setting settings[] = {{1, INT64_C(1) << 30}, {3, INT64_C(1) << 30}, {2, 600000}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t *shape = shapes[i / 2], m = shape[0], n = shape[1], k = shape[2];
        const bool onto = i % 4 > 1;
        owned a = make_matrix(m, k, GNOMON_F32, i % 2 ? COL_MAJOR : ROW_MAJOR),
              b = make_matrix(k, n, GNOMON_F32, ROW_MAJOR),
              before = make_matrix(m, n, GNOMON_F32, ROW_MAJOR);
        owned c[3];
        fill(&a.m, 0, i);
        fill(&b.m, 0, i + 100);
        fill(&before.m, 0, i + 200);
        for (int way = 0; way < 3; way++) {
            gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *other = NULL;
            o.threads = settings[way].threads;
            assert_int_equal(gnomon_context_create(&o, &other), GNOMON_OK);
            c[way] = make_matrix(m, n, GNOMON_F32, ROW_MAJOR);
            if (onto)
                for (int64_t r = 0; r < m; r++)
                    for (int64_t j = 0; j < n; j++)
                        ((float *)c[way].m.data)[r * c[way].m.row_stride + j] =
                            (float)element(&before.m, r, j);
            if (gnomon_gemm_has_coarse(other))
                ASSERT_OK(other, gnomon_gemm_coarse(other, &a.m, &b.m, onto, &c[way].m,
                                                    settings[way].limit));
            gnomon_context_destroy(other);
        }
        double most = 0;
        for (int64_t r = 0; by_slices() && r < m; r++) {
            for (int64_t j = 0; j < n; j++) {
                double sum = onto ? element(&before.m, r, j) : 0, size = fabs(sum);
                for (int64_t p = 0; p < k; p++) {
                    sum += element(&a.m, r, p) * element(&b.m, p, j);
                    size += fabs(element(&a.m, r, p) * element(&b.m, p, j));
                }
                const double got = element(&c[0].m, r, j);
                most = fmax(most, fabs(got - sum) / size);
                assert_true(got == element(&c[1].m, r, j));
                assert_true(got == element(&c[2].m, r, j));
            }
        }
        assert_true(most < 0x1.1p-8);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&before);
        for (int way = 0; way < 3; way++)
            free_matrix(&c[way]);
    }
}

/* A's numbers have two slices, those of the columns one: what fits in these has exact products. */
static void coarse_exactly(void **state)
{
    (void)state;
    enum { M = 65, N = 40, K = 300 };
    uint64_t random = 5;
    owned a = make_matrix(M, K, GNOMON_F32, ROW_MAJOR),
          b = make_matrix(K, N, GNOMON_F32, ROW_MAJOR),
          c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
    for (int64_t i = 0; i < M * K; i++)
        ((float *)a.m.data)[i] = (float)(next_random(&random) % 32001) - 16000;
    for (int64_t i = 0; i < N * K; i++)
        ((float *)b.m.data)[i] = (float)(next_random(&random) % 3) - 1;
    if (by_slices())
        ASSERT_OK(ctx, gnomon_gemm_coarse(ctx, &a.m, &b.m, false, &c.m, INT64_C(1) << 30));
    for (int64_t i = 0; by_slices() && i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t p = 0; p < K; p++)
                sum += element(&a.m, i, p) * element(&b.m, p, j);
            assert_true(element(&c.m, i, j) == sum);
        }
    }
    /* Infinity comes out as it is, or as NaN. */
    ((float *)b.m.data)[7] = INFINITY;
    if (by_slices()) {
        ASSERT_OK(ctx, gnomon_gemm_coarse(ctx, &a.m, &b.m, false, &c.m, INT64_C(1) << 30));
        assert_false(isfinite(element(&c.m, 3, 7)));
        assert_true(isfinite(element(&c.m, 3, 8)));
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

/* Equal numbers, as in a column that is constant, whose sums are all rounded to the same side. */
static void coarse_of_many(void **state)
{
    (void)state;
    enum { M = 7, K = 1 << 17 };
    owned a = make_matrix(M, K, GNOMON_F32, COL_MAJOR),
          b = make_matrix(K, 1, GNOMON_F32, ROW_MAJOR),
          c = make_matrix(M, 1, GNOMON_F32, ROW_MAJOR);
    for (int64_t p = 0; p < K; p++) {
        ((float *)b.m.data)[p * b.m.row_stride] = 1.0F / 256;
        for (int64_t i = 0; i < M; i++)
            ((float *)a.m.data)[p * a.m.col_stride + i] = (float)(32771 + 2222 * i) / 32768;
    }
    if (by_slices())
        ASSERT_OK(ctx, gnomon_gemm_coarse(ctx, &a.m, &b.m, false, &c.m, INT64_C(1) << 30));
    for (int64_t i = 0; by_slices() && i < M; i++) {
        const double sum = (double)K / 256 * element(&a.m, i, 0);
        assert_true(fabs(element(&c.m, i, 0) - sum) < 0x1p-18 * sum);
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

/* Lines of all magnitudes: each is scaled for itself. Numbers below the normal range too. */
static void whole_range(void **state)
{
    (void)state;
    enum { M = 34, N = 19, K = 300 };
    const gnomon_gemm_options o = bf16(1, 0);
    static const int exponents[] = {-148, -140, -127, -126, -100, -3, 0, 60, 100, 127};
    enum { COUNT = sizeof exponents / sizeof exponents[0] };
    for (int which = 0; which < COUNT; which++) {
        owned a = make_matrix(M, K, GNOMON_F32, which % 2 ? ROW_MAJOR : COL_MAJOR);
        owned b = make_matrix(K, N, which % 3 ? GNOMON_F32 : GNOMON_F16, ROW_MAJOR);
        owned c = make_matrix(M, N, GNOMON_F64, ROW_MAJOR);
        fill(&a.m, 0, 10);
        fill(&b.m, 0, 11);
        for (int64_t i = 0; i < M; i++)
            for (int64_t p = 0; p < K; p++)
                set_element(&a.m, i, p, ldexp(element(&a.m, i, p), exponents[(which + i) % COUNT]));
        for (int64_t j = 0; b.m.dtype == GNOMON_F32 && j < N; j++)
            for (int64_t p = 0; p < K; p++)
                set_element(&b.m, p, j, ldexp(element(&b.m, p, j), exponents[j % COUNT]));
        if (by_slices()) { /* the plain product would overflow */
            ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
            check(&a.m, &b.m, &c.m, 1, 0, NULL, "range");
        }
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&c);
    }
}

/* Numbers far below the largest of their line keep their digits where they alone count. */
static void range_within_a_line(void **state)
{
    (void)state;
    enum { M = 18, N = 20, K = 128 };
    const gnomon_gemm_options o = bf16(1, 0);
    owned a = make_matrix(M, K, GNOMON_F32, ROW_MAJOR);
    owned b = make_matrix(K, N, GNOMON_F32, ROW_MAJOR);
    owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
    fill(&a.m, 0, 21);
    fill(&b.m, 0, 22);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t p = 0; p < K; p++)
            set_element(&a.m, i, p, ldexp(element(&a.m, i, p), p % 2 ? 30 : -30));
    }
    for (int64_t p = 1; p < K; p += 2)
        for (int64_t j = 0; j < N; j++)
            set_element(&b.m, p, j, 0); /* only the small ones meet anything */
    ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
    check(&a.m, &b.m, &c.m, 1, 0, NULL, "a line's range");
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

/* As the sum of products in fp64 has them, NaN, infinities of both signs, and 0 times infinity. */
static void nonfinite_values_pass(void **state)
{
    (void)state;
    enum { M = 40, N = 37, K = 200 };
    const gnomon_gemm_options o = bf16(1, 0);
    for (int layout = 0; layout < 4; layout++) {
        owned a = make_matrix(M, K, GNOMON_F32, layout % 2 ? COL_MAJOR : ROW_MAJOR);
        owned b = make_matrix(K, N, layout % 3 ? GNOMON_F32 : GNOMON_F16,
                              layout / 2 ? COL_MAJOR : ROW_MAJOR);
        owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
        fill(&a.m, 1, 12);
        fill(&b.m, 1, 13);
        set_element(&a.m, 3, 150, (double)NAN);
        set_element(&a.m, 30, 10, -(double)INFINITY);
        set_element(&a.m, 31, 11, (double)INFINITY);
        set_element(&a.m, 31, 190, -(double)INFINITY);
        set_element(&a.m, 12, 61, 0);
        set_element(&a.m, 0, 0, (double)INFINITY);
        set_element(&b.m, 61, 34, (double)INFINITY);
        set_element(&b.m, 0, 5, 0);
        set_element(&b.m, 0, 36, -(double)INFINITY);
        set_element(&b.m, 199, 20, (double)NAN);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = 0; j < N; j++) {
                const double x = element(&c.m, i, j);
                double sum = 0;
                for (int64_t p = 0; p < K; p++)
                    sum += element(&a.m, i, p) * element(&b.m, p, j);
                if (isnan(sum))
                    assert_true(isnan(x));
                else if (isinf(sum))
                    assert_true(x == sum);
                else
                    assert_true(fabs(x - sum) <= 65 * 0x1p-24 * sum);
            }
        }
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&c);
    }
}

/* Errors beside a chain of fp32 fused multiply-adds. */
static void accurate_at_every_length(void **state)
{
    (void)state;
    enum { M = 16, N = 16 };
    const gnomon_gemm_options o = bf16(1, 0);
    for (int kind = 0; kind < 2; kind++) {
        for (int64_t k = 32; k <= 1 << 15; k *= 4) {
            owned a = make_matrix(M, k, GNOMON_F32, ROW_MAJOR);
            owned b = make_matrix(k, N, GNOMON_F32, COL_MAJOR);
            owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
            double ours = 0, plain = 0;
            fill(&a.m, kind, 8);
            fill(&b.m, kind, 9);
            ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
            for (int64_t i = 0; i < M; i++) {
                for (int64_t j = 0; j < N; j++) {
                    float chain = 0;
                    double sum = 0;
                    for (int64_t p = 0; p < k; p++) {
                        const double x = element(&a.m, i, p), y = element(&b.m, p, j);
                        chain = fmaf((float)x, (float)y, chain);
                        sum += x * y;
                    }
                    ours += (element(&c.m, i, j) - sum) * (element(&c.m, i, j) - sum);
                    plain += ((double)chain - sum) * ((double)chain - sum);
                }
            }
            assert_true(sqrt(ours) <= (by_slices() ? 0.95 : 1) * sqrt(plain));
            free_matrix(&a);
            free_matrix(&b);
            free_matrix(&c);
        }
    }
}

/* Threads, memory limits, layouts and other rows and columns leave no trace. */
static void same_bits(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {70, 45, 700}, {3, 90, 1000}, {90, 3, 1000}, {33, 33, 9000}, {1100, 520, 70}};
    static const int64_t limits[] = {0, 300000, 1000000};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        owned a = make_matrix(m, k, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(k, n, s % 2 ? GNOMON_F16 : GNOMON_F32, ROW_MAJOR);
        owned first = make_matrix(m, n, GNOMON_F64, ROW_MAJOR);
        const gnomon_gemm_options o = bf16(1, 0);
        fill(&a.m, 2, 14);
        fill(&b.m, 2, 15);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &first.m, &o));
        check(&a.m, &b.m, &first.m, 1, 0, NULL, "same bits");
        for (int threads = 1; threads <= 4; threads++) {
            for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++) {
                gnomon_context *other = make_context(threads, limits[l]);
                owned c = make_matrix(m, n, GNOMON_F64, COL_MAJOR);
                ASSERT_OK(other, gnomon_gemm(other, &a.m, &b.m, &c.m, &o));
                assert_same_bits(&c.m, &first.m, "threads and limits");
                free_matrix(&c);
                gnomon_context_destroy(other);
            }
        }
        /* some rows and columns alone, in other layouts */
        const int64_t rows = m / 2 + 1, cols = n / 3 + 1;
        owned at = make_matrix(k, rows, GNOMON_F32, s % 2 ? COL_PADDED : ROW_MAJOR);
        owned bt = make_matrix(cols, k, b.m.dtype, s % 3 ? SPREAD : COL_MAJOR);
        owned ct = make_matrix(rows, cols, GNOMON_F64, ROW_MAJOR);
        for (int64_t p = 0; p < k; p++) {
            for (int64_t i = 0; i < rows; i++)
                set_element(&at.m, p, i, element(&a.m, m - rows + i, p));
            for (int64_t j = 0; j < cols; j++)
                set_element(&bt.m, j, p, element(&b.m, p, j));
        }
        const gnomon_matrix some = gnomon_matrix_transposed(&at.m),
                            others = gnomon_matrix_transposed(&bt.m);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &some, &others, &ct.m, &o));
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++)
                assert_true(element(&ct.m, i, j) == element(&first.m, m - rows + i, j));
        free_matrix(&at);
        free_matrix(&bt);
        free_matrix(&ct);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&first);
    }
}

/* It is another arithmetic, and only where the level has it. */
static void only_where_the_level_has_it(void **state)
{
    (void)state;
    const gnomon_gemm_options o = bf16(1, 0);
    for (int64_t k = 31; k <= 500; k += 469) {
        owned a = make_matrix(30, k, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(k, 30, GNOMON_F32, ROW_MAJOR);
        owned plain = make_matrix(30, 30, GNOMON_F64, ROW_MAJOR);
        owned c = make_matrix(30, 30, GNOMON_F64, ROW_MAJOR);
        int64_t others = 0;
        fill(&a.m, 0, 16);
        fill(&b.m, 0, 17);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &plain.m, NULL));
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
        for (int64_t i = 0; i < 30; i++)
            for (int64_t j = 0; j < 30; j++)
                others += element(&c.m, i, j) != element(&plain.m, i, j);
        assert_true(by_slices() && k >= 32 ? others > 500 : others == 0);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&plain);
        free_matrix(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_layouts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(coarse),
        cmocka_unit_test(coarse_exactly),
        cmocka_unit_test(coarse_of_many),
        cmocka_unit_test(whole_range),
        cmocka_unit_test(range_within_a_line),
        cmocka_unit_test(nonfinite_values_pass),
        cmocka_unit_test(accurate_at_every_length),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(only_where_the_level_has_it),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
