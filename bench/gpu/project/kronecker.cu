/* bench/gpu/project/kronecker.cu: kronecker operators (Ahle and Silvestri 2020) of 256 points,
 * against reading the points once and beside the products' flops, each fp32 number being two of
 * fp16. */
#include "bench.cuh"
#include "cuda/project/cascade.h"
#include "kernels.cuh"

#include <gnomon.h>

int main(int argc, char **argv)
{
    gcu_gpu gpu;
    bench_open_gpu(&gpu);
    bench_json json = bench_open("kronecker", argc, argv);
    gnomon_context *ctx = bench_open_context();
    const int64_t n = 256, d = 1 << 20;
    float *x, *y;
    BENCH_CHECK(cudaMalloc(&x, (size_t)(n * d) * 4));
    BENCH_CHECK(cudaMalloc(&y, (size_t)n * 1024 * 4));
    bench_fill(x, (size_t)(n * d), 1);
    const double read_ms = bench_read_ms(x, (size_t)(n * d) * 4);
    printf("n %lld, D %lld; one read %.4f ms\n", (long long)n, (long long)d, read_ms);
    printf("%-12s %5s %5s %7s %8s %10s %8s %9s\n", "inner", "k", "zeta", "levels", "layout", "ms",
           "reads", "Tflop/s");
    static const struct {
        gnomon_kind inner;
        int64_t k, zeta;
    } cases[] = {{GNOMON_RADEMACHER, 64, 4},
                 {GNOMON_RADEMACHER, 64, 2},
                 {GNOMON_ACHLIOPTAS, 64, 4},
                 {GNOMON_RADEMACHER, 256, 4},
                 {GNOMON_RADEMACHER, 256, 16}};
    for (const auto &c : cases)
        for (int columns = 0; columns < 2; columns++) {
            gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
            descriptor.kind = GNOMON_KRONECKER;
            descriptor.inner = c.inner;
            descriptor.k = c.k;
            descriptor.d = d;
            descriptor.zeta = c.zeta;
            descriptor.seed = 1;
            gnomon_operator *op = nullptr;
            if (gnomon_operator_create(ctx, &descriptor, &op) != GNOMON_OK) return 1;
            gcu_cascade_task t = {};
            t.op = op;
            t.gpu = &gpu;
            t.x = {x, GNOMON_F32, columns ? 1 : d, columns ? n : 1, 0, n, 1, d, 0, d};
            t.out = bench_sums(y, c.k, c.k, 1, op->scale);
            t.work_bytes = gcu_cascade_best_work(&t);
            BENCH_CHECK(cudaMalloc(&t.work, t.work_bytes + 1));
            const bench_time ms = bench_run([&](int) { BENCH_CHECK(gcu_cascade(&t)); }, 11, 0.2);
            BENCH_CHECK(cudaFree(t.work));
            double flops = 0;
            for (int level = 0; level < op->levels; level++)
                flops += 2.0 * (double)(n * op->repeat[level]) *
                         (double)(op->factor[level].rows * op->factor[level].cols);
            printf("%-12s %5lld %5lld %7d %8s %10.4f %8.2f %9.2f\n", gnomon_kind_name(c.inner),
                   (long long)c.k, (long long)c.zeta, op->levels, columns ? "columns" : "rows",
                   ms.median_ms, ms.median_ms / read_ms, flops / ms.median_ms * 1e-9);
            bench_record(&json,
                         "\"inner\": \"%s\", \"k\": %lld, \"n\": %lld, \"d\": %lld, "
                         "\"zeta\": %lld, \"layout\": \"%s\", \"ms\": %.5f, \"runs\": %d, "
                         "\"read_ms\": %.5f, \"flops\": %.0f",
                         gnomon_kind_name(c.inner), (long long)c.k, (long long)n, (long long)d,
                         (long long)c.zeta, columns ? "columns" : "rows", ms.median_ms, ms.runs,
                         read_ms, flops);
            gnomon_operator_destroy(op);
        }
    bench_close(&json);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return 0;
}
