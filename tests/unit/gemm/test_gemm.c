/* gnomon_gemm and gnomon_gemm_operator on the CPU: against sums in fp64, every layout, every size,
 * hard values, the same bits on any number of threads and at every level. */
#include "base/isa.h"
#include "gemm/alone.h"
#include "products.h"
#include "project/blocks.h"

static gnomon_gemm_options scaling(double alpha, double beta)
{
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    o.alpha = alpha;
    o.beta = beta;
    return o;
}

static void types_and_layouts(void **state)
{
    (void)state;
    static const int64_t inner[2] = {43, 43};
    const gnomon_gemm_options o = scaling(-1.5, 0.75);
    check_layouts(&o, inner, check_product);
}

static void sizes(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},     {1, 1, 1000},  {1, 50, 7},    {50, 1, 300},
                                        {16, 16, 128}, {17, 15, 129}, {15, 17, 257}, {3, 200, 400},
                                        {200, 3, 400}, {100, 90, 1},  {64, 64, 513}, {31, 33, 640},
                                        {5, 5, 20000}, {130, 4, 255}, {1, 1500, 20}};
    check_sizes(NULL, shapes, sizeof shapes / sizeof shapes[0], GNOMON_F16, check_product);
}

/* Several blocks of the output and several packed steps, some entries checked. */
static void blocks(void **state)
{
    (void)state;
    enum { M = 1100, N = 1050, K = 700 };
    owned a = make_matrix(M, K, GNOMON_F32, COL_MAJOR);
    owned b = make_matrix(K, N, GNOMON_F32, COL_MAJOR);
    owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
    fill(&a.m, 0, 5);
    fill(&b.m, 0, 6);
    ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, NULL));
    uint64_t random = 7;
    for (int i = 0; i < 400; i++) {
        gnomon_matrix row = a.m, col = b.m, at = c.m;
        const int64_t r = i == 0 ? M - 1 : (int64_t)(next_random(&random) % M);
        const int64_t q = i == 0 ? N - 1 : (int64_t)(next_random(&random) % N);
        row.rows = col.cols = at.rows = at.cols = 1;
        row.data = (float *)a.m.data + r * a.m.row_stride;
        col.data = (float *)b.m.data + q * b.m.col_stride;
        at.data = (float *)c.m.data + r * c.m.row_stride + q * c.m.col_stride;
        check_product(&row, &col, &at, 1, 0, NULL, "blocks");
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

/* The root of the sum of squared errors over that of squares, against fp64. */
static double error_of(const float *c, const double *exact, int64_t count)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        error += ((double)c[i] - exact[i]) * ((double)c[i] - exact[i]);
        size += exact[i] * exact[i];
    }
    return sqrt(error / size);
}

/* Positive numbers are what a long fp32 sum is worst at: one chain loses sqrt(k) digits. */
static void long_sums_stay_accurate(void **state)
{
    (void)state;
    enum { M = 7, N = 9 };
    for (int64_t k = 64; k <= 1 << 18; k *= 8) {
        owned a = make_matrix(M, k, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(k, N, GNOMON_F16, COL_MAJOR);
        float c[M * N], plain[M * N];
        double exact[M * N];
        fill(&a.m, 1, 8);
        fill(&b.m, 1, 9);
        const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, M, N);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &cs, NULL));
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = 0; j < N; j++) {
                float chain = 0;
                double sum = 0;
                for (int64_t p = 0; p < k; p++) {
                    const double x = element(&a.m, i, p), y = element(&b.m, p, j);
                    chain = fmaf((float)x, (float)y, chain);
                    sum += x * y;
                }
                plain[i * N + j] = chain;
                exact[i * N + j] = sum;
            }
        }
        const double error = error_of(c, exact, M * N), chain = error_of(plain, exact, M * N);
        assert_true(error <= 3e-7);
        assert_true(error <= 0.9 * chain);
        free_matrix(&a);
        free_matrix(&b);
    }
}

/* Numbers near both ends of fp32's range: what SGEMM can, this can. */
static void whole_range(void **state)
{
    (void)state;
    enum { M = 5, N = 6, K = 300 };
    static const int exponents[] = {-148, -130, -100, 0, 100, 118};
    for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
        owned a = make_matrix(M, K, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(K, N, GNOMON_F16, ROW_MAJOR);
        owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
        fill(&a.m, 0, 10);
        fill(&b.m, 0, 11);
        for (int64_t i = 0; i < M; i++)
            for (int64_t p = 0; p < K; p++)
                set_element(&a.m, i, p, ldexp(element(&a.m, i, p), exponents[e]));
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, NULL));
        check_product(&a.m, &b.m, &c.m, 1, 0, NULL, "range");
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&c);
    }
    /* subnormal halves, and the largest */
    uint16_t half[3] = {0x0001, 0x83ff, 0x7bff};
    float x[3] = {0x1p100f, 0x1p30f, 1.0f}, y[9];
    const gnomon_matrix xs = gnomon_matrix_rowmajor(x, GNOMON_F32, 3, 1);
    const gnomon_matrix hs = gnomon_matrix_rowmajor(half, GNOMON_F16, 1, 3);
    const gnomon_matrix ys = gnomon_matrix_rowmajor(y, GNOMON_F32, 3, 3);
    ASSERT_OK(ctx, gnomon_gemm(ctx, &xs, &hs, &ys, NULL));
    for (int i = 0; i < 9; i++)
        assert_true((double)y[i] == (double)x[i / 3] * half_value(half[i % 3]));
}

static void empty_and_scaling(void **state)
{
    (void)state;
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4];
    const gnomon_matrix none = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 2, 0);
    const gnomon_matrix none_too = gnomon_matrix_rowmajor(NULL, GNOMON_F16, 0, 2);
    const gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 2, 3);
    const gnomon_matrix bs = gnomon_matrix_rowmajor(b, GNOMON_F32, 3, 2);
    const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, 2, 2);
    gnomon_gemm_options o = scaling(1, 0.5);
    for (int i = 0; i < 4; i++)
        c[i] = (float)(i + 1);
    ASSERT_OK(ctx, gnomon_gemm(ctx, &none, &none_too, &cs, &o)); /* k = 0 */
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == 0.5f * (float)(i + 1));
    o = scaling(0, 2);
    a[0] = NAN; /* not read */
    ASSERT_OK(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o));
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == (float)(i + 1));
    a[0] = 1;
    for (int i = 0; i < 4; i++)
        c[i] = NAN; /* not read either */
    ASSERT_OK(ctx, gnomon_gemm(ctx, &as, &bs, &cs, NULL));
    assert_true(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
    for (int i = 0; i < 4; i++)
        c[i] = NAN;
    o = scaling(1, 0);
    ASSERT_OK(ctx, gnomon_gemm(ctx, &none, &none_too, &cs, &o));
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == 0);
    o = scaling(1, 1);
    c[0] = NAN;
    ASSERT_OK(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o));
    assert_true(isnan(c[0]) && c[1] == 5);

    /* m or n = 0: nothing to do, nothing touched */
    const gnomon_matrix flat = gnomon_matrix_rowmajor(a, GNOMON_F32, 0, 3);
    const gnomon_matrix flat_c = gnomon_matrix_rowmajor(c, GNOMON_F32, 0, 2);
    const gnomon_matrix thin = gnomon_matrix_rowmajor(b, GNOMON_F32, 3, 0);
    const gnomon_matrix thin_c = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 2, 0);
    c[0] = 42;
    ASSERT_OK(ctx, gnomon_gemm(ctx, &flat, &bs, &flat_c, NULL));
    ASSERT_OK(ctx, gnomon_gemm(ctx, &as, &thin, &thin_c, NULL));
    assert_true(c[0] == 42 && c[1] == 5);

    /* strides of 0: one row for all rows of a */
    gnomon_matrix same = as;
    same.row_stride = 0;
    ASSERT_OK(ctx, gnomon_gemm(ctx, &same, &bs, &cs, NULL));
    assert_true(c[0] == 4 && c[1] == 5 && c[2] == 4 && c[3] == 5);
    /* no output at all, of more rows than memory has */
    const gnomon_matrix endless = {a, GNOMON_F32, GNOMON_HOST, INT64_MAX, 3, 0, 0};
    const gnomon_matrix endless_c = {NULL, GNOMON_F32, GNOMON_HOST, INT64_MAX, 0, 0, 1};
    ASSERT_OK(ctx, gnomon_gemm(ctx, &endless, &thin, &endless_c, NULL));
}

/* NaN and infinity come out in their row or column, and nowhere else. */
static void nonfinite_values_pass(void **state)
{
    (void)state;
    enum { M = 40, N = 35, K = 200 };
    owned a = make_matrix(M, K, GNOMON_F32, ROW_MAJOR);
    owned b = make_matrix(K, N, GNOMON_F16, ROW_MAJOR);
    owned c = make_matrix(M, N, GNOMON_F32, ROW_MAJOR);
    fill(&a.m, 1, 12);
    fill(&b.m, 1, 13);
    ((float *)a.m.data)[3 * K + 150] = NAN;
    ((float *)a.m.data)[30 * K + 10] = -INFINITY;
    ((uint16_t *)b.m.data)[60 * N + 20] = 0x7e00; /* NaN */
    ((uint16_t *)b.m.data)[61 * N + 34] = 0x7c00; /* infinity */
    ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, NULL));
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            const float x = ((const float *)c.m.data)[i * N + j];
            if (i == 3 || j == 20)
                assert_true(isnan(x));
            else if (i == 30 && j == 34)
                assert_false(isfinite(x)); /* of either kind */
            else if (i == 30)
                assert_true(isinf(x) && x < 0);
            else if (j == 34)
                assert_true(isinf(x) && x > 0);
            else
                assert_true(isfinite(x));
        }
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

/* Threads, levels, memory limits, layouts and the sides' roles leave no trace. */
static void same_bits(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {70, 45, 700}, {3, 90, 1000}, {90, 3, 1000}, {33, 33, 5000}, {600, 20, 300}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        owned a = make_matrix(m, k, GNOMON_F32, ROW_MAJOR);
        owned b = make_matrix(k, n, GNOMON_F16, ROW_MAJOR);
        owned first = make_matrix(m, n, GNOMON_F32, ROW_MAJOR);
        fill(&a.m, 2, 14);
        fill(&b.m, 2, 15);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &first.m, NULL));
        for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
            if (!gnomon_isa_available((gnomon_isa)level)) continue;
            assert_int_equal(setenv("GNOMON_ISA", gnomon_isa_name((gnomon_isa)level), 1), 0);
            for (int threads = 1; threads <= 4; threads *= 2) {
                gnomon_context *other = make_context(threads, threads == 2 ? 60000 : 0);
                owned c = make_matrix(m, n, GNOMON_F32, level % 2 ? COL_MAJOR : ROW_REVERSED);
                ASSERT_OK(other, gnomon_gemm(other, &a.m, &b.m, &c.m, NULL));
                assert_same_bits(&c.m, &first.m, "threads and levels");
                free_matrix(&c);
                gnomon_context_destroy(other);
            }
            assert_int_equal(unsetenv("GNOMON_ISA"), 0);
        }
        /* some rows and columns alone, in other layouts, as the transposed product */
        const int64_t rows = m / 2 + 1, cols = n / 3 + 1;
        owned at = make_matrix(k, rows, GNOMON_F32, COL_PADDED);
        owned bt = make_matrix(cols, k, GNOMON_F16, SPREAD);
        owned ct = make_matrix(cols, rows, GNOMON_F32, ROW_MAJOR);
        for (int64_t p = 0; p < k; p++) {
            for (int64_t i = 0; i < rows; i++)
                set_element(&at.m, p, i, element(&a.m, m - rows + i, p));
            for (int64_t j = 0; j < cols; j++)
                ((uint16_t *)bt.m.data)[j * bt.m.row_stride + p * bt.m.col_stride] =
                    ((const uint16_t *)b.m.data)[p * n + j];
        }
        ASSERT_OK(ctx, gnomon_gemm(ctx, &bt.m, &at.m, &ct.m, NULL));
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++)
                assert_true(element(&ct.m, j, i) == element(&first.m, m - rows + i, j));
        free_matrix(&at);
        free_matrix(&bt);
        free_matrix(&ct);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&first);
    }
}

/* On the calling thread: the same bits, and the same bound where the inner size takes pieces. */
static void alone_is_the_same(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {
        {22, 300, 72}, {72, 22, 1000}, {1, 1, 1}, {600, 280, 300}, {9, 20, 9000}};
    void *scratch = aligned_alloc(64, (size_t)(gnomon_gemm_alone_bytes() + 63) / 64 * 64);
    assert_non_null(scratch);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        owned a = make_matrix(m, k, GNOMON_F32, s % 2 ? COL_MAJOR : ROW_MAJOR);
        owned b = make_matrix(k, n, GNOMON_F32, s % 3 ? ROW_PADDED : COL_MAJOR);
        owned c = make_matrix(m, n, s % 2 ? GNOMON_F64 : GNOMON_F32, ROW_PADDED);
        owned other = make_matrix(m, n, c.m.dtype, ROW_PADDED);
        fill(&a.m, 2, 30);
        fill(&b.m, 2, 31);
        fill(&c.m, 0, 32);
        fill(&other.m, 0, 32);
        double *before = copy_values(&c.m);
        const gnomon_gemm_options o = scaling(-2, 0.5);
        const gnomon_gemm_job job = {
            .a = &a.m, .b = &b.m, .c = &c.m, .alpha = o.alpha, .beta = o.beta};
        gnomon_gemm_alone(gnomon_context_kernels(ctx), &job, scratch);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &other.m, &o));
        check_sentinels(&c);
        if (k <= 4096)
            assert_same_bits(&c.m, &other.m, "alone");
        else
            check_product(&a.m, &b.m, &c.m, o.alpha, o.beta, before, "alone");
        free(before);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&c);
        free_matrix(&other);
    }
    free(scratch);
}

/* All forms are one arithmetic here. */
static void forms_agree(void **state)
{
    (void)state;
    owned a = make_matrix(20, 300, GNOMON_F32, ROW_MAJOR);
    owned b = make_matrix(300, 21, GNOMON_F16, ROW_MAJOR);
    owned first = make_matrix(20, 21, GNOMON_F32, ROW_MAJOR);
    owned c = make_matrix(20, 21, GNOMON_F32, ROW_MAJOR);
    fill(&a.m, 2, 16);
    fill(&b.m, 2, 17);
    ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &first.m, NULL));
    for (int form = GNOMON_GEMM_AUTO; form <= GNOMON_GEMM_SCALED; form++) {
        gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
        o.form = (gnomon_gemm_form)form;
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, &o));
        assert_same_bits(&c.m, &first.m, "forms");
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
    free_matrix(&first);
}

static void bad_arguments(void **state)
{
    (void)state;
    float a[6] = {0}, b[6] = {0}, c[4] = {7, 7, 7, 7};
    gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 2, 3);
    gnomon_matrix bs = gnomon_matrix_rowmajor(b, GNOMON_F32, 3, 2);
    gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, 2, 2);
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    assert_int_equal(gnomon_gemm(NULL, &as, &bs, &cs, NULL), GNOMON_ERROR_ARGUMENT);
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, NULL, &bs, &cs, NULL), GNOMON_ERROR_ARGUMENT, "a is NULL");
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, NULL, &cs, NULL), GNOMON_ERROR_ARGUMENT, "b is NULL");
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, NULL, NULL), GNOMON_ERROR_ARGUMENT, "c is NULL");
    o.struct_size = 4;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o), GNOMON_ERROR_ARGUMENT, "struct_size");
    o = scaling((double)INFINITY, 0);
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o), GNOMON_ERROR_ARGUMENT, "alpha is inf");
    o = scaling(1, (double)NAN);
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o), GNOMON_ERROR_ARGUMENT, "beta is");
    o = scaling(1, 0);
    o.form = (gnomon_gemm_form)5;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &cs, &o), GNOMON_ERROR_ARGUMENT, "form is 5");

    gnomon_matrix m = as;
    m.dtype = GNOMON_F64;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_DTYPE, "a.dtype is f64");
    m.dtype = GNOMON_I8;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &m, &cs, NULL), GNOMON_ERROR_DTYPE, "b.dtype is i8");
    m = cs;
    m.dtype = GNOMON_F16;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &m, NULL), GNOMON_ERROR_DTYPE, "c.dtype is f16");
    m = as;
    m.cols = 2;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_SHAPE,
                 "a has 2 columns and b has 3 rows");
    m = cs;
    m.rows = 1;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &m, NULL), GNOMON_ERROR_SHAPE,
                 "c is 1 x 2; the product is 2 x 2");
    m = as;
    m.rows = -1;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_ARGUMENT,
                 "sizes must not be negative");
    m = as;
    m.data = NULL;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_ARGUMENT, "a.data is");
    m = as;
    m.row_stride = INT64_MAX / 2;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_ARGUMENT,
                 "further than memory can count");
    m = cs;
    m.row_stride = 0;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &m, NULL), GNOMON_ERROR_ARGUMENT,
                 "several elements in one place");
    m = cs;
    m.data = a;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &m, NULL), GNOMON_ERROR_ARGUMENT,
                 "c shares memory with a");
    m.data = b;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &as, &bs, &m, NULL), GNOMON_ERROR_ARGUMENT,
                 "c shares memory with b");
    m = as;
    m.memory = GNOMON_DEVICE_MEMORY;
    ASSERT_FAILS(ctx, gnomon_gemm(ctx, &m, &bs, &cs, NULL), GNOMON_ERROR_DEVICE,
                 "a lies in a device's memory");
    gnomon_context *tight = make_context(1, 7000);
    ASSERT_OK(tight, gnomon_gemm(tight, &as, &bs, &cs, NULL));
    float *tall = calloc(3000, sizeof *tall);
    assert_non_null(tall);
    const gnomon_matrix t = gnomon_matrix_rowmajor(tall, GNOMON_F32, 1, 3000);
    const gnomon_matrix w = gnomon_matrix_rowmajor(tall, GNOMON_F32, 3000, 1);
    const gnomon_matrix one = gnomon_matrix_rowmajor(c, GNOMON_F32, 1, 1);
    ASSERT_FAILS(tight, gnomon_gemm(tight, &t, &w, &one, NULL), GNOMON_ERROR_MEMORY,
                 "memory_limit is too low");
    free(tall);
    gnomon_context_destroy(tight);
    assert_true(c[3] == 0);
}

/* An allocator that refuses the call of number fail_at and knows how much is held. */
typedef struct meter {
    int64_t held, peak, calls, fail_at;
} meter;

static void *meter_allocate(void *user, size_t size, size_t alignment)
{
    meter *m = user;
    if (++m->calls == m->fail_at) return NULL;
    m->held += (int64_t)size;
    if (m->held > m->peak) m->peak = m->held;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void meter_release(void *user, void *pointer, size_t size)
{
    ((meter *)user)->held -= (int64_t)size;
    free(pointer);
}

static void memory_is_refused_and_limited(void **state)
{
    (void)state;
    static const int64_t limits[] = {0, 40000, 200000, 3000000};
    owned a = make_matrix(300, 3000, GNOMON_F32, ROW_MAJOR);
    owned b = make_matrix(3000, 250, GNOMON_F16, ROW_MAJOR);
    owned c = make_matrix(300, 250, GNOMON_F32, ROW_MAJOR);
    fill(&a.m, 0, 20);
    fill(&b.m, 0, 21);
    for (int l = 0; l < 4; l++) {
        meter m = {0};
        const gnomon_allocator allocator = {&m, meter_allocate, meter_release};
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        o.device = "cpu";
        o.threads = 2;
        o.memory_limit = limits[l];
        o.allocator = &allocator;
        gnomon_context *other;
        assert_int_equal(gnomon_context_create(&o, &other), GNOMON_OK);
        const int64_t held = m.held;
        int64_t refused = 0;
        for (m.peak = 0;; refused++) {
            m.fail_at = m.calls + refused + 1;
            set_element(&c.m, 299, 249, 77);
            if (gnomon_gemm(other, &a.m, &b.m, &c.m, NULL) == GNOMON_OK) break;
            assert_true(strstr(gnomon_last_error(other), "no memory") != NULL);
            assert_true(element(&c.m, 299, 249) == 77);
            assert_int_equal(m.held, held);
        }
        assert_int_equal(refused, 3);
        assert_int_equal(m.held, held);
        assert_true(m.peak - held <= (limits[l] ? limits[l] : 12 << 20));
        gnomon_context_destroy(other);
    }
    free_matrix(&a);
    free_matrix(&b);
    free_matrix(&c);
}

static int stop(void *user, const char *phase, int64_t done, int64_t total)
{
    assert_string_equal(phase, "multiply");
    assert_true(done >= 0 && done <= total);
    return ++*(int *)user > 0;
}

static void can_be_cancelled(void **state)
{
    (void)state;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int calls = 0;
    o.device = "cpu";
    o.progress = stop;
    o.progress_user = &calls;
    gnomon_context *other;
    assert_int_equal(gnomon_context_create(&o, &other), GNOMON_OK);
    float a = 1, c = 5;
    const gnomon_matrix as = gnomon_matrix_rowmajor(&a, GNOMON_F32, 1, 1);
    const gnomon_matrix cs = gnomon_matrix_rowmajor(&c, GNOMON_F32, 1, 1);
    assert_int_equal(gnomon_gemm(other, &as, &as, &cs, NULL), GNOMON_ERROR_CANCELLED);
    assert_true(calls > 0);
    gnomon_context_destroy(other);
}

/* Both factors of a product with an operator, materialised and made on the fly. */
static void operators(void **state)
{
    (void)state;
    enum { K = 24, D = 210, M = 19 };
    for (int kind = 0; kind < OPERATORS; kind++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[kind], K, D);
        double *s = operator_block(ctx, op, 0, K, 0, D);
        for (int side = GNOMON_GEMM_ST_RIGHT; side <= GNOMON_GEMM_ST_LEFT; side++) {
            const bool left = side >= GNOMON_GEMM_S_LEFT;
            const bool sketch = side == GNOMON_GEMM_ST_RIGHT || side == GNOMON_GEMM_S_LEFT;
            const int64_t in = sketch ? D : K, out = sketch ? K : D;
            owned a = make_matrix(left ? in : M, left ? M : in, GNOMON_F32, kind % LAYOUTS);
            owned c = make_matrix(left ? out : M, left ? M : out, GNOMON_F32, side);
            fill(&a.m, 0, 18);
            fill(&c.m, 0, 19);
            double *before = copy_values(&c.m);
            const gnomon_gemm_options o = scaling(2, -0.5);
            ASSERT_OK(ctx, gnomon_gemm_operator(ctx, op, (gnomon_gemm_side)side, &a.m, &c.m, &o));
            for (int64_t i = 0; i < M; i++) {
                for (int64_t j = 0; j < out; j++) {
                    double sum = 0, size = 1;
                    for (int64_t p = 0; p < in; p++) {
                        const double x = left ? element(&a.m, p, i) : element(&a.m, i, p);
                        const double y = sketch ? s[j * D + p] : s[p * D + j];
                        sum += x * y;
                        size += fabs(x * y);
                    }
                    const int64_t row = left ? j : i, col = left ? i : j;
                    const double exact = 2 * sum - 0.5 * before[row * c.m.cols + col];
                    const double error = fabs(element(&c.m, row, col) - exact);
                    if (!(error <= 2e-5 * size))
                        fail_msg("%s, side %d: (%d, %d) is off by %g", all_operators[kind].name,
                                 side, (int)row, (int)col, error);
                }
            }
            check_sentinels(&c);
            free(before);
            free_matrix(&a);
            free_matrix(&c);
        }
        free(s);
        gnomon_operator_destroy(op);
    }
}

static void operator_arguments(void **state)
{
    (void)state;
    gnomon_operator *op = make_operator(ctx, &all_operators[0], 4, 6);
    float a[12] = {0}, c[8] = {0};
    gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 2, 6);
    gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, 2, 4);
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    ASSERT_OK(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_ST_RIGHT, &as, &cs, &o));
    assert_int_equal(gnomon_gemm_operator(NULL, op, GNOMON_GEMM_ST_RIGHT, &as, &cs, NULL),
                     GNOMON_ERROR_ARGUMENT);
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, NULL, GNOMON_GEMM_ST_RIGHT, &as, &cs, NULL),
                 GNOMON_ERROR_ARGUMENT, "s is NULL");
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, op, (gnomon_gemm_side)4, &as, &cs, NULL),
                 GNOMON_ERROR_ARGUMENT, "side is 4");
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_S_RIGHT, &as, &cs, NULL),
                 GNOMON_ERROR_SHAPE, "a is 2 x 6, s (as it is) 4 x 6 and c 2 x 4; they do not fit");
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_ST_LEFT, &as, &cs, NULL),
                 GNOMON_ERROR_SHAPE, "s (transposed) 6 x 4");
    o.form = GNOMON_GEMM_FP16;
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_ST_RIGHT, &as, &cs, &o),
                 GNOMON_ERROR_ARGUMENT, "options.form is 1");
    gnomon_matrix m = cs;
    m.data = a;
    ASSERT_FAILS(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_ST_RIGHT, &as, &m, NULL),
                 GNOMON_ERROR_ARGUMENT, "c shares memory with a");
    a[7] = NAN; /* passes */
    ASSERT_OK(ctx, gnomon_gemm_operator(ctx, op, GNOMON_GEMM_ST_RIGHT, &as, &cs, NULL));
    assert_true(isfinite(c[0]) && isnan(c[4]) && isnan(c[7]));
    gnomon_operator_destroy(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_layouts),
        cmocka_unit_test(sizes),
        cmocka_unit_test(blocks),
        cmocka_unit_test(long_sums_stay_accurate),
        cmocka_unit_test(whole_range),
        cmocka_unit_test(empty_and_scaling),
        cmocka_unit_test(nonfinite_values_pass),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(alone_is_the_same),
        cmocka_unit_test(forms_agree),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(memory_is_refused_and_limited),
        cmocka_unit_test(can_be_cancelled),
        cmocka_unit_test(operators),
        cmocka_unit_test(operator_arguments),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
