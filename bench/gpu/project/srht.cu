/* bench/gpu/project/srht.cu: srht against reading the points once, from few coordinates to many,
 * both layouts. --layout rows|columns, --k K, --d D restrict it. */
#include "bench.cuh"
#include "cuda/project/family.h"
#include "kernels.cuh"

static gnomon_simple make_operator(int64_t k, int64_t d)
{
    gnomon_simple a = {};
    a.kind = GNOMON_SRHT;
    a.key0 = 0x12345678u;
    a.key1 = 0x9ABCDEF0u;
    a.rows = k;
    a.cols = d;
    while ((int64_t)1 << a.order_log2 < d)
        a.order_log2++;
    for (int i = 0; i < 6; i++)
        a.srht_key[i] = (uint32_t)bench_mix((uint64_t)(i + 1));
    return a;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0) return argv[i + 1];
    return otherwise;
}

int main(int argc, char **argv)
{
    gcu_gpu gpu;
    bench_open_gpu(&gpu);
    bench_json json = bench_open("srht", argc, argv);
    const int64_t only_k = atoll(option(argc, argv, "--k", "0"));
    const int64_t only_d = atoll(option(argc, argv, "--d", "0"));
    const char *only_layout = option(argc, argv, "--layout", "");
    const int64_t elements = (int64_t)1 << 28; /* 1 GiB */
    float *x, *y;
    BENCH_CHECK(cudaMalloc(&x, (size_t)elements * 4));
    BENCH_CHECK(cudaMalloc(&y, (size_t)elements * 4));
    bench_fill(x, (size_t)elements, 1);
    const double floor_ms = bench_read_ms(x, (size_t)elements * 4);
    printf("floor: one read of %.2f GB, %.4f ms, %.2f TB/s\n", (double)elements * 4e-9, floor_ms,
           (double)elements * 4e-9 / floor_ms);
    static const int64_t all_k[] = {256, 1024, 4096};
    static const int64_t all_d[] = {1024, 4096, 32768, 1 << 17, 1 << 20, 1 << 23};
    printf("%8s %8s %5s %8s %10s %7s %7s %9s\n", "D", "n", "k", "layout", "ms", "reads", "+write",
           "work MiB");
    for (int64_t d : all_d)
        for (int64_t k : all_k)
            for (int columns = 0; columns < 2; columns++) {
                if (k > d || (only_k && k != only_k) || (only_d && d != only_d) ||
                    (*only_layout && strcmp(only_layout, columns ? "columns" : "rows") != 0))
                    continue;
                const gnomon_simple a = make_operator(k, d);
                const int64_t n = elements / d;
                gcu_task t = {};
                t.a = &a;
                t.rows = k;
                t.gpu = &gpu;
                t.x.data = x;
                t.x.dtype = GNOMON_F32;
                t.x.row_stride = columns ? 1 : d;
                t.x.col_stride = columns ? n : 1;
                t.x.n = n;
                t.x.blocks = 1;
                t.x.block_cols = t.x.end = d;
                t.out = bench_sums(y, k, columns ? 1 : k, columns ? n : 1);
                t.work_bytes = gcu_srht.best_work(&t);
                BENCH_CHECK(cudaMalloc(&t.work, t.work_bytes));
                const bench_time ms =
                    bench_run([&](int) { BENCH_CHECK(gcu_srht.run(&t)); }, 21, 0.3);
                BENCH_CHECK(cudaFree(t.work));
                const double reads = ms.median_ms / floor_ms;
                printf("%8lld %8lld %5lld %8s %10.4f %7.2f %7.2f %9.1f\n", (long long)d,
                       (long long)n, (long long)k, columns ? "columns" : "rows", ms.median_ms,
                       reads, reads / (1.0 + (double)k / (double)d),
                       (double)t.work_bytes / 1048576.0);
                bench_record(&json,
                             "\"d\": %lld, \"n\": %lld, \"k\": %lld, \"layout\": \"%s\", "
                             "\"ms\": %.5f, \"least_ms\": %.5f, \"runs\": %d, "
                             "\"read_ms\": %.5f, \"reads\": %.4f",
                             (long long)d, (long long)n, (long long)k, columns ? "columns" : "rows",
                             ms.median_ms, ms.least_ms, ms.runs, floor_ms, reads);
            }
    bench_close(&json);
    gcu_gpu_close(&gpu);
    return 0;
}
