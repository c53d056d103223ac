/* Hashing and tables on the GPU.
 *
 * hash    values and keys of points in the GPU's memory, beside one read of them, the same product
 *         written and not hashed (gemm.h, fp32 by fp32), and the sketch by the operator (the family
 *         of kernels that gnomon_sketch takes)
 * tables  one after the other: keys, sorting, buckets and directory, all in the GPU's memory;
 * beside a read of the points build   gnomon_lsh_add of points on the host, tables on the host;
 * beside the transfers of what goes up and comes down, page-locked
 *
 *   lsh [--json FILE] [--points N] */
#include "bench.cuh"

#include "cuda/gemm/gemm.h"
#include "cuda/lsh/lsh.h"
#include "kernels.cuh"

#include <gnomon.h>

#include <chrono>

struct shape {
    const char *name;
    gnomon_lsh_family family;
    int64_t n, dim, tables, coarse, fine;
    double width;
};

static gcu_gpu gpu;

static void must(gnomon_status status, gnomon_context *ctx)
{
    if (status == GNOMON_OK) return;
    fprintf(stderr, "lsh: %s\n", gnomon_last_error(ctx));
    exit(1);
}

template <typename T> static T *device_memory(size_t count)
{
    T *p;
    BENCH_CHECK(cudaMalloc(&p, count * sizeof(T)));
    return p;
}

static gnomon_hasher *make_hasher(gnomon_context *ctx, const shape &s)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_hasher *h = nullptr;
    f.family = s.family;
    f.dim = s.dim;
    f.count = s.tables * (s.coarse + s.fine);
    f.width = s.width;
    f.seed = 7;
    must(gnomon_hasher_create(ctx, &f, &h), ctx);
    return h;
}

/* Time of the operator's own family of kernels on so many of the points, for all of them. */
static double sketch_ms(const gnomon_hasher *h, const float *x, int64_t n, float *y)
{
    gcu_task t = {};
    char why[256];
    t.a = &h->op->factor[0];
    t.rows = h->products;
    t.gpu = &gpu;
    t.x = {x, GNOMON_F32, h->f.dim, 1, 0, n, 1, h->f.dim, 0, h->f.dim};
    t.out = bench_sums(y, h->products, h->products, 1);
    const gcu_family *family = gcu_choose(&t, why, sizeof why);
    if (!family) return NAN;
    t.work_bytes = std::max(family->best_work(&t), family->least_work(&t));
    if (t.work_bytes) BENCH_CHECK(cudaMalloc(&t.work, t.work_bytes));
    const bench_time time = bench_run([&](int) { BENCH_CHECK(family->run(&t)); }, 5, 1.0);
    BENCH_CHECK(cudaFree(t.work));
    return time.median_ms;
}

static double product_ms(const gnomon_hasher *h, const float *x, int64_t n, const float *directions,
                         float *y)
{
    gcu_gemm g = {};
    g.form = GCU_GEMM_SCALED;
    g.m = n;
    g.n = h->products;
    g.k = h->f.dim;
    g.a = {x, GNOMON_F32, h->f.dim, 1};
    g.b = {directions, GNOMON_F32, 1, h->f.dim};
    g.c = y;
    g.c_row_stride = h->products;
    g.c_col_stride = 1;
    g.alpha = 1;
    g.gpu = &gpu;
    const size_t bytes = gcu_gemm_work(&g);
    void *work = device_memory<char>(bytes);
    const bench_time t =
        bench_run([&](int) { BENCH_CHECK(gcu_gemm_run(&g, work, bytes, 0)); }, 25, 1.0);
    BENCH_CHECK(cudaFree(work));
    return t.median_ms;
}

static void measure(gnomon_context *ctx, const shape &s, bench_json *json)
{
    gnomon_hasher *h = make_hasher(ctx, s);
    const int64_t count = h->f.count, depth = s.coarse + s.fine;
    const size_t all = (size_t)(s.n * s.dim);
    float *x = device_memory<float>(all);
    bench_fill(x, all, 11);
    float *y = device_memory<float>((size_t)(s.n * count));
    float *directions = device_memory<float>((size_t)(count * s.dim));
    float *offset = device_memory<float>((size_t)count), *reach = device_memory<float>((size_t)s.n);
    uint64_t *keys = device_memory<uint64_t>((size_t)(s.tables * s.n));
    uint64_t *multipliers = device_memory<uint64_t>((size_t)depth);
    double *longest = device_memory<double>(1);
    unsigned long long *bad = device_memory<unsigned long long>(1);
    std::vector<uint64_t> m;
    for (int64_t p = 0; p < depth; p++)
        m.push_back(gnomon_key_multiplier(p));
    BENCH_CHECK(cudaMemcpy(multipliers, m.data(), (size_t)depth * 8, cudaMemcpyHostToDevice));
    if (h->offset)
        BENCH_CHECK(cudaMemcpy(offset, h->offset, (size_t)count * 4, cudaMemcpyHostToDevice));

    const double read = bench_read_ms(x, all * 4);
    const bench_time parameters = bench_run([&](int) {
        BENCH_CHECK(gcu_lsh_directions(&h->op->factor[0], &gpu, count, 0, s.dim, directions, 0));
        BENCH_CHECK(gcu_lsh_longest(directions, count, s.dim, longest, 0));
    });
    const double product = product_ms(h, x, s.n, directions, y);
    const int64_t some = std::min(s.n, (int64_t)1 << 18);
    const double sketch = sketch_ms(h, x, some, y) * (double)s.n / (double)some;

    const gnomon_matrix points = {x, GNOMON_F32, GNOMON_DEVICE_MEMORY, s.n, s.dim, s.dim, 1};
    gcu_lsh_fused c = {};
    c.gpu = &gpu;
    c.f = {h->f.family, count, h->f.sides, h->products, h->f.width, h->offset ? offset : nullptr,
           nullptr};
    c.directions = directions;
    c.dim = s.dim;
    c.most = c.n = s.n;
    c.x = x;
    c.x_stride = s.dim;
    c.reach = reach;
    const auto run = [&] {
        c.work = device_memory<char>(gcu_lsh_fused_work(&c));
        BENCH_CHECK(gcu_lsh_fused_prepare(&c, 0));
        const bench_time t = bench_run(
            [&](int) {
                BENCH_CHECK(gcu_lsh_load_points(&points, 0, longest, reach, nullptr, 0, bad, 0));
                BENCH_CHECK(gcu_lsh_fused_run(&c, 0));
            },
            25, 1.0);
        BENCH_CHECK(cudaFree(c.work));
        c.work = nullptr;
        return t.median_ms;
    };
    c.values = gnomon_matrix{y, GNOMON_I32, GNOMON_DEVICE_MEMORY, s.n, count, count, 1};
    const double values = run();
    c.keys = {keys, s.n, 0, 0, s.tables, depth, s.coarse, multipliers};
    const double hashed = run();
    const double scanned =
        bench_run([&](int) {
            BENCH_CHECK(gcu_lsh_load_points(&points, 0, longest, reach, nullptr, 0, bad, 0));
        }).median_ms;
    BENCH_CHECK(cudaFree(y));

    gcu_lsh_sorter sorter;
    void *room = device_memory<char>(gcu_lsh_sorter_bytes(s.n));
    gcu_lsh_sorter_place(&sorter, s.n, s.fine == 0, room);
    int64_t buckets = 0, sum = 0;
    const double sorting =
        bench_run(
            [&](int) {
                sum = 0;
                for (int64_t t = 0; t < s.tables; t++) {
                    BENCH_CHECK(gcu_lsh_sort(&sorter, keys + t * s.n, 0, 0));
                    BENCH_CHECK(cudaMemcpy(&buckets, sorter.buckets, 8, cudaMemcpyDeviceToHost));
                    BENCH_CHECK(gcu_lsh_index(&sorter, buckets, gnomon_table_bits(buckets), 0));
                    sum += buckets;
                }
            },
            5, 1.0)
            .median_ms;
    printf("%-24s %9lld %4lld %3lld x %-3lld %8.2f %8.3f %9.2f %9.2f %8.2f %8.2f %8.2f %6.2f %9.2f "
           "%7.1f\n",
           s.name, (long long)s.n, (long long)s.dim, (long long)s.tables, (long long)depth, read,
           parameters.median_ms, product, sketch, scanned, values, hashed, hashed / product,
           sorting, (hashed + sorting) / read);
    bench_record(
        json,
        "\"what\": \"hash\", \"name\": \"%s\", \"n\": %lld, \"d\": %lld, \"tables\": %lld, "
        "\"broad\": %lld, \"fine\": %lld, \"read_ms\": %.4f, \"parameters_ms\": %.4f, "
        "\"product_ms\": %.4f, \"sketch_ms\": %.4f, \"look_ms\": %.4f, \"values_ms\": %.4f, "
        "\"keys_ms\": %.4f, \"tables_ms\": %.4f, \"buckets\": %lld",
        s.name, (long long)s.n, (long long)s.dim, (long long)s.tables, (long long)s.coarse,
        (long long)s.fine, read, parameters.median_ms, product, sketch, scanned, values, hashed,
        sorting, (long long)sum);
    void *const all_memory[] = {x,           directions, offset, reach, keys,
                                multipliers, longest,    bad,    room};
    for (void *one : all_memory)
        BENCH_CHECK(cudaFree(one));
    gnomon_hasher_destroy(h);
}

static double now(void)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* gnomon_lsh_add, twice: the first call also takes the memory it will work in. */
static void build(gnomon_context *ctx, const shape &s, bench_json *json)
{
    const size_t all = (size_t)(s.n * s.dim), bytes = all * 4;
    float *x = device_memory<float>(all), *host = nullptr;
    bench_fill(x, all, 12);
    BENCH_CHECK(cudaMallocHost(&host, bytes));
    const double up =
        bench_run(
            [&](int) { BENCH_CHECK(cudaMemcpyAsync(host, x, bytes, cudaMemcpyDeviceToHost, 0)); },
            3, 1.0)
            .median_ms;
    BENCH_CHECK(cudaFree(x));
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = s.family == GNOMON_LSH_PSTABLE ? GNOMON_L2 : GNOMON_COSINE;
    o.functions.family = s.family;
    o.functions.dim = s.dim;
    o.functions.width = s.width;
    o.tables = s.tables;
    o.coarse = s.coarse;
    o.fine = s.fine;
    const gnomon_matrix points = gnomon_matrix_rowmajor(host, GNOMON_F32, s.n, s.dim);
    double seconds = 0;
    gnomon_lsh_info info = {};
    info.struct_size = sizeof info;
    for (int i = 0; i < 2; i++) {
        gnomon_lsh *index = nullptr;
        must(gnomon_lsh_create(ctx, &o, &index), ctx);
        const double from = now();
        must(gnomon_lsh_add(index, &points), ctx);
        seconds = now() - from;
        gnomon_lsh_describe(index, &info);
        gnomon_lsh_destroy(index);
    }
    const double down = up * (double)info.table_bytes / (double)bytes;
    printf("%-24s %9lld %4lld %3lld x %-3lld add %.1f ms; transfers of %.2f GB %.1f ms and of %.2f "
           "GB %.1f ms\n",
           s.name, (long long)s.n, (long long)s.dim, (long long)s.tables,
           (long long)(s.coarse + s.fine), 1e3 * seconds, 1e-9 * (double)bytes, up,
           1e-9 * (double)info.table_bytes, down);
    bench_record(
        json,
        "\"what\": \"build\", \"name\": \"%s\", \"n\": %lld, \"d\": %lld, \"tables\": %lld, "
        "\"broad\": %lld, \"fine\": %lld, \"add_ms\": %.3f, \"bytes_up\": %lld, \"up_ms\": %.3f, "
        "\"bytes_down\": %lld, \"down_ms\": %.3f",
        s.name, (long long)s.n, (long long)s.dim, (long long)s.tables, (long long)s.coarse,
        (long long)s.fine, 1e3 * seconds, (long long)bytes, up, (long long)info.table_bytes, down);
    BENCH_CHECK(cudaFreeHost(host));
}

int main(int argc, char **argv)
{
    int64_t n = 10000000;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--points") == 0) n = atoll(argv[i + 1]);
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK) {
        fprintf(stderr, "lsh: %s\n", why);
        return 1;
    }
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    o.device = "cuda";
    must(gnomon_context_create(&o, &ctx), nullptr);
    bench_json json = bench_open("lsh", argc, argv);
    printf("milliseconds; look: of NaN, infinity and lengths, which values and keys are with\n"
           "%-24s %9s %4s %9s %8s %8s %9s %9s %8s %8s %8s %6s %9s %7s\n",
           "", "n", "d", "L x K", "read", "params", "product", "sketch", "look", "values", "keys",
           "ratio", "tables", "reads");
    const shape shapes[] = {
        {"p-stable", GNOMON_LSH_PSTABLE, n, 128, 32, 16, 0, 20},
        {"p-stable, two levels", GNOMON_LSH_PSTABLE, n / 4, 128, 32, 8, 8, 20},
        {"p-stable, d 784", GNOMON_LSH_PSTABLE, n / 10, 784, 16, 9, 0, 40},
        {"simhash", GNOMON_LSH_SIMHASH, n / 4, 128, 16, 32, 0, 0},
        {"p-stable, d 960", GNOMON_LSH_PSTABLE, n / 10, 960, 32, 16, 0, 60},
    };
    for (const shape &s : shapes)
        measure(ctx, s, &json);
    build(ctx, shapes[0], &json);
    bench_close(&json);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return 0;
}
