/* The same bits whatever the threads, instruction set, memory limit, batch, layout and pieces. */
#include "project.h"

#include "base/isa.h"

enum { N = 45, D = 5300, K = 70 };

static gnomon_operator *op_of(gnomon_context *ctx, int o)
{
    return make_operator(ctx, &all_operators[o], K, D);
}

static void sketch_all(gnomon_context *ctx, int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    gnomon_operator *op = op_of(ctx, o);
    memset(y->data, 0x7f, (size_t)(y->rows * y->cols) * gnomon_dtype_size(y->dtype));
    ASSERT_OK(ctx, gnomon_sketch(ctx, op, x, y, NULL));
    gnomon_operator_destroy(op);
}

/* Runs 'check' for every operator and both precisions; y is the sketch by one thread. */
static void for_all(void (*check)(int o, const gnomon_matrix *x, const gnomon_matrix *y))
{
    for (int f64 = 0; f64 < 2; f64++) {
        const gnomon_dtype dtype = f64 ? GNOMON_F64 : GNOMON_F32;
        owned x = make_matrix(N, D, dtype, ROW_MAJOR), y = make_matrix(N, K, dtype, ROW_MAJOR);
        fill_random(&x.m, 5);
        for (int o = 0; o < OPERATORS; o++) {
            gnomon_context *ctx = make_context(1, 0);
            sketch_all(ctx, o, &x.m, &y.m);
            check(o, &x.m, &y.m);
            gnomon_context_destroy(ctx);
        }
        free_matrix(&x);
        free_matrix(&y);
    }
}

static void compare_with(gnomon_context *ctx, int o, const gnomon_matrix *x, const gnomon_matrix *y,
                         const char *what)
{
    owned z = make_matrix(x->rows, K, y->dtype, ROW_MAJOR);
    char text[200];
    sketch_all(ctx, o, x, &z.m);
    snprintf(text, sizeof text, "%s, %s", all_operators[o].name, what);
    assert_same_bits(y, &z.m, text);
    free_matrix(&z);
}

static void check_threads_and_memory(int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    static const int threads[] = {2, 5, 1, 2, 5};
    static const int64_t limits[] = {0, 0, 6 << 20, 12 << 20, 40 << 20};
    for (int c = 0; c < 5; c++) {
        gnomon_context *ctx = make_context(threads[c], limits[c]);
        char text[100];
        snprintf(text, sizeof text, "%d threads, limit %lld", threads[c], (long long)limits[c]);
        compare_with(ctx, o, x, y, text);
        gnomon_context_destroy(ctx);
    }
}

static void test_threads_and_memory(void **state)
{
    (void)state;
    for_all(check_threads_and_memory);
}

/* The least memory that a sketch takes, found from what the error says. */
static void check_least_memory(int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    int64_t limit = 1000;
    for (int tries = 0;; tries++) {
        gnomon_context *ctx = make_context(2, limit);
        gnomon_operator *op = op_of(ctx, o);
        owned z = make_matrix(N, K, y->dtype, ROW_MAJOR);
        const gnomon_status status = gnomon_sketch(ctx, op, x, &z.m, NULL);
        if (status == GNOMON_OK) assert_same_bits(y, &z.m, all_operators[o].name);
        if (status != GNOMON_OK) {
            assert_int_equal(status, GNOMON_ERROR_MEMORY);
            assert_non_null(strstr(gnomon_last_error(ctx), "memory_limit is too low"));
        }
        free_matrix(&z);
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
        if (status == GNOMON_OK) break;
        limit += limit / 2;
        assert_true(tries < 25); /* 25 MB would do for all of them */
    }
}

static void test_least_memory(void **state)
{
    (void)state;
    for_all(check_least_memory);
}

static void check_isa(int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    for (int isa = 0; isa < GNOMON_ISA_COUNT; isa++) {
        if (!gnomon_isa_available((gnomon_isa)isa)) continue;
        setenv("GNOMON_ISA", gnomon_isa_name((gnomon_isa)isa), 1);
        gnomon_context *ctx = make_context(2, 0);
        unsetenv("GNOMON_ISA");
        assert_string_equal(gnomon_context_isa(ctx), gnomon_isa_name((gnomon_isa)isa));
        compare_with(ctx, o, x, y, gnomon_isa_name((gnomon_isa)isa));
        gnomon_context_destroy(ctx);
    }
}

static void test_isa(void **state)
{
    (void)state;
    for_all(check_isa);
}

static void check_batches_and_layouts(int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    gnomon_context *ctx = make_context(2, 0);
    gnomon_operator *op = op_of(ctx, o);
    const size_t size = gnomon_dtype_size(x->dtype);
    owned z = make_matrix(N, K, y->dtype, ROW_MAJOR);
    for (int64_t i = 0, step = 1; i < N; i += step, step++) { /* 1, 2, 3, ... points */
        if (step > N - i) step = N - i;
        const gnomon_matrix part =
            gnomon_matrix_rowmajor((char *)x->data + (size_t)(i * D) * size, x->dtype, step, D);
        const gnomon_matrix to =
            gnomon_matrix_rowmajor((char *)z.m.data + (size_t)(i * K) * size, y->dtype, step, K);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &part, &to, NULL));
    }
    assert_same_bits(y, &z.m, all_operators[o].name);
    for (int layout = COL_MAJOR; layout <= SPREAD; layout += layout == COL_MAJOR ? 5 : 1) {
        owned copy = make_matrix(N, D, x->dtype, layout);
        owned out = make_matrix(N, K, y->dtype, layout);
        copy_matrix(x, &copy.m);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &copy.m, &out.m, NULL));
        assert_same_bits(y, &out.m, all_operators[o].name);
        free_matrix(&copy);
        free_matrix(&out);
    }
    free_matrix(&z);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

static void test_batches_and_layouts(void **state)
{
    (void)state;
    for_all(check_batches_and_layouts);
}

static void check_streams(int o, const gnomon_matrix *x, const gnomon_matrix *y)
{
    uint64_t random = 17;
    for (int round = 0; round < 4; round++) {
        gnomon_context *ctx = make_context(1 + round % 2, round == 3 ? 16 << 20 : 0);
        gnomon_operator *op = op_of(ctx, o);
        gnomon_stream *s = NULL;
        ASSERT_OK(ctx, gnomon_stream_create(ctx, op, N, x->dtype, NULL, &s));
        const int64_t granule = gnomon_operator_granule(op);
        assert_true(granule >= 1);
        static const int64_t widths[] = {700, 3000, 0, 100};
        for (int64_t col = 0; col < D;) {
            int64_t w =
                round == 2 ? granule : (int64_t)(next_random(&random) % (uint64_t)widths[round]);
            if (w > D - col) w = D - col;
            owned piece = make_matrix(N, w, x->dtype, round % 2 ? COL_PADDED : ROW_PADDED);
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < w; j++)
                    set_element(&piece.m, i, j, element(x, i, col + j));
            ASSERT_OK(ctx, gnomon_stream_push(s, &piece.m));
            free_matrix(&piece);
            col += w;
        }
        owned z = make_matrix(N, K, y->dtype, ROW_PADDED);
        ASSERT_OK(ctx, gnomon_stream_finish(s, &z.m));
        char text[100];
        snprintf(text, sizeof text, "%s, stream %d", all_operators[o].name, round);
        assert_same_bits(y, &z.m, text);
        free_matrix(&z);
        gnomon_stream_destroy(s);
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
    }
}

static void test_streams(void **state)
{
    (void)state;
    for_all(check_streams);
}

/* A stream that begins at a column, and takes a range of rows, is the partial sketch. */
static void test_partial_streams(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = op_of(ctx, o);
        gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
        opt.col = 2222;
        opt.row = 30;
        opt.rows = 33;
        opt.alpha = 0.75;
        opt.beta = 2;
        owned x = make_matrix(7, D - opt.col, GNOMON_F32, COL_MAJOR);
        owned y = make_matrix(7, opt.rows, GNOMON_F32, ROW_MAJOR);
        owned z = make_matrix(7, opt.rows, GNOMON_F32, ROW_MAJOR);
        fill_random(&x.m, 8);
        fill_random(&y.m, 9);
        copy_matrix(&y.m, &z.m);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &opt));
        gnomon_stream *s = NULL;
        ASSERT_OK(ctx, gnomon_stream_create(ctx, op, 7, GNOMON_F32, &opt, &s));
        for (int64_t at = 0; at < x.m.cols; at += 619) {
            gnomon_matrix piece = x.m;
            piece.data = (float *)x.m.data + at * 7;
            piece.cols = x.m.cols - at < 619 ? x.m.cols - at : 619;
            ASSERT_OK(ctx, gnomon_stream_push(s, &piece));
        }
        ASSERT_OK(ctx, gnomon_stream_finish(s, &z.m));
        assert_same_bits(&y.m, &z.m, all_operators[o].name);
        gnomon_stream_destroy(s);
        free_matrix(&x);
        free_matrix(&y);
        free_matrix(&z);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

/* Points of one tile, whose chunks or rows go to threads: the sums of a chunk of signs are made
 * apart, and added in order. */
static void check_few_points(gnomon_dtype dtype, int o, int64_t k, int64_t n, double beta)
{
    static const struct {
        int threads;
        int64_t limit;
    } with[] = {{1, 0}, {2, 0}, {3, 8 << 20}, {5, 0}, {16, 24 << 20}, {16, 0}};
    gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
    opt.col = 333;
    opt.beta = beta;
    owned x = make_matrix(n, D - opt.col, dtype, o % 2 ? COL_MAJOR : ROW_PADDED);
    owned first = make_matrix(n, k, dtype, ROW_MAJOR), y = make_matrix(n, k, dtype, ROW_MAJOR);
    fill_random(&x.m, 5);
    for (size_t w = 0; w < sizeof with / sizeof with[0]; w++) {
        gnomon_context *ctx = make_context(with[w].threads, with[w].limit);
        gnomon_operator *op = make_operator(ctx, &all_operators[o], k, D);
        char text[100];
        fill_random(&y.m, 6);
        ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &opt));
        snprintf(text, sizeof text, "%s, %lld rows, %d threads, limit %lld", all_operators[o].name,
                 (long long)k, with[w].threads, (long long)with[w].limit);
        if (w == 0)
            copy_matrix(&y.m, &first.m);
        else
            assert_same_bits(&first.m, &y.m, text);
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
    }
    free_matrix(&x);
    free_matrix(&y);
    free_matrix(&first);
}

static void test_few_points(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        const int kind = all_operators[o].kind;
        check_few_points(GNOMON_F32, o, K, 5, 0);
        check_few_points(GNOMON_F64, o, K, 16, 0.5);
        if (kind != GNOMON_RADEMACHER && kind != GNOMON_ACHLIOPTAS) continue;
        check_few_points(GNOMON_F32, o, 1, 1, 0);
        check_few_points(GNOMON_F32, o, 301, 3, 2);
        check_few_points(GNOMON_F64, o, 2100, 2, 0); /* more than a panel's rows */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_memory),
        cmocka_unit_test(test_least_memory),
        cmocka_unit_test(test_isa),
        cmocka_unit_test(test_batches_and_layouts),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_partial_streams),
        cmocka_unit_test(test_few_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
