/* gnomon_sketch_memory against what a sketch takes, counted by the allocator: for every kind, type
 * and layout of the points, numbers of points, threads and limits. What is told is enough for the
 * layout that takes most and little more, and nothing is told of a sketch that is refused. */
#include "meter.h"
#include "project.h"

enum { D = 1500, K = 48 };

/* What the sketch of points of that layout takes, -1 when it is refused; *told of it before. */
static int64_t taken(const any_operator *a, gnomon_dtype dtype, int layout, int64_t n, int threads,
                     int64_t limit, int64_t *told)
{
    meter m = {0};
    const gnomon_allocator allocator = {&m, meter_allocate, meter_release};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    options.memory_limit = limit;
    options.allocator = &allocator;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    gnomon_operator *op = make_operator(ctx, a, K, D);
    owned x = make_matrix(n, D, dtype, layout), y = make_matrix(n, K, GNOMON_F32, ROW_MAJOR);
    fill_random(&x.m, 1);
    *told = gnomon_sketch_memory(ctx, op, n, dtype);
    const int64_t before = m.held;
    m.peak = before;
    const gnomon_status status = gnomon_sketch(ctx, op, &x.m, &y.m, NULL);
    if (status != GNOMON_OK) assert_int_equal(status, GNOMON_ERROR_MEMORY);
    free_matrix(&x);
    free_matrix(&y);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
    return status == GNOMON_OK ? m.peak - before : -1;
}

static void compare(const any_operator *a, gnomon_dtype dtype, int64_t n, int threads,
                    int64_t limit)
{
    int64_t told, again;
    const int64_t rows = taken(a, dtype, ROW_MAJOR, n, threads, limit, &told);
    const int64_t cols = taken(a, dtype, COL_MAJOR, n, threads, limit, &again);
    const int64_t most = rows > cols ? rows : cols;
    assert_int_equal(told, again);
    const bool good = told == -1 ? rows == -1 && cols == -1
                                 : rows > 0 && cols > 0 && told >= most && told <= most + most / 4;
    if (!good)
        fail_msg("%s, %s, %d points, %d threads, limit %lld: told %lld, taken %lld and %lld",
                 a->name, gnomon_dtype_name(dtype), (int)n, threads, (long long)limit,
                 (long long)told, (long long)rows, (long long)cols);
}

static void told_is_taken(void **state)
{
    (void)state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_I32};
    static const int64_t points[] = {1, 17, 300}, limits[] = {0, 1 << 20, 200000};
    for (int o = 0; o < OPERATORS; o++)
        for (int t = 0; t < 4; t++)
            for (int p = 0; p < 3; p++)
                compare(&all_operators[o], types[t], points[p], (o + t + p) % 2 ? 4 : 1,
                        limits[(o + p) % 3]);
    for (int o = 0; o < OPERATORS; o++)
        for (int l = 0; l < 3; l++)
            compare(&all_operators[o], l % 2 ? GNOMON_F64 : GNOMON_F32, 200, 1 + 3 * (l / 2),
                    limits[l]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(told_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
