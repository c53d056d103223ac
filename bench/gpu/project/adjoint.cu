/* bench/gpu/project/adjoint.cu: adjoints, X = Y S, against writing X once and beside the product's
 * flops; of the dense kinds also to fewer points. */
#include "bench.cuh"
#include "cuda/project/family.h"
#include "kernels.cuh"

#include <gnomon.h>

int main(int argc, char **argv)
{
    gcu_gpu gpu;
    bench_open_gpu(&gpu);
    bench_json json = bench_open("adjoint", argc, argv);
    gnomon_context *ctx = bench_open_context();
    const int64_t most = 256, d = 1 << 18;
    float *y, *x;
    BENCH_CHECK(cudaMalloc(&y, (size_t)(most * 4096) * 4));
    BENCH_CHECK(cudaMalloc(&x, (size_t)(most * d) * 4));
    bench_fill(y, (size_t)(most * 4096), 1);
    bench_fill(x, (size_t)(most * d), 2);
    printf("D %lld\n%-13s %5s %4s %8s %10s %8s %9s\n", (long long)d, "kind", "k", "n", "layout",
           "ms", "X once", "Tflop/s");
    static const struct {
        const char *name;
        gnomon_kind kind;
        gnomon_dtype precision;
        bool dense;
    } kinds[] = {
        {"rademacher", GNOMON_RADEMACHER, (gnomon_dtype)0, true},
        {"achlioptas", GNOMON_ACHLIOPTAS, (gnomon_dtype)0, true},
        {"gaussian", GNOMON_GAUSSIAN, (gnomon_dtype)0, true},
        {"gaussian fp16", GNOMON_GAUSSIAN, GNOMON_F16, true},
        {"srht", GNOMON_SRHT, (gnomon_dtype)0, false},
        {"very-sparse", GNOMON_VERY_SPARSE, (gnomon_dtype)0, false},
        {"sjlt", GNOMON_SJLT, (gnomon_dtype)0, false},
    };
    for (const auto &kind : kinds)
        for (int64_t k : {(int64_t)256, (int64_t)4096})
            for (int64_t n : {most, (int64_t)64, (int64_t)8, (int64_t)1})
                for (int columns = 0; columns < 2; columns++) {
                    if (n < most && (columns || !kind.dense)) continue;
                    const double floor_ms = bench_read_ms(x, (size_t)(n * d) * 4);
                    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
                    descriptor.kind = kind.kind;
                    descriptor.precision = kind.precision;
                    descriptor.k = k;
                    descriptor.d = d;
                    descriptor.seed = 1;
                    gnomon_operator *op = nullptr;
                    if (gnomon_operator_create(ctx, &descriptor, &op) != GNOMON_OK) return 1;
                    gcu_adjoint_task t = {};
                    t.op = op;
                    t.y = gnomon_matrix_rowmajor(y, GNOMON_F32, n, k);
                    t.x = gnomon_matrix_rowmajor(x, GNOMON_F32, n, d);
                    if (columns) {
                        t.y.row_stride = t.x.row_stride = 1;
                        t.y.col_stride = t.x.col_stride = n;
                    }
                    t.y.memory = t.x.memory = GNOMON_DEVICE_MEMORY;
                    t.alpha = 1.0;
                    t.rows = k;
                    t.gpu = &gpu;
                    t.work_bytes = gcu_adjoint_best_work(&t);
                    BENCH_CHECK(cudaMalloc(&t.work, t.work_bytes + 1));
                    const bench_time ms =
                        bench_run([&](int) { BENCH_CHECK(gcu_adjoint(&t)); }, 11, 0.2);
                    BENCH_CHECK(cudaFree(t.work));
                    const double rate = 2.0 * (double)(n * d) * (double)k / ms.median_ms * 1e-9;
                    printf("%-13s %5lld %4lld %8s %10.4f %8.2f %9.2f\n", kind.name, (long long)k,
                           (long long)n, columns ? "columns" : "rows", ms.median_ms,
                           ms.median_ms / floor_ms, rate);
                    bench_record(
                        &json,
                        "\"kind\": \"%s\", \"k\": %lld, \"n\": %lld, \"d\": %lld, "
                        "\"layout\": \"%s\", \"ms\": %.5f, \"runs\": %d, \"read_ms\": %.5f",
                        kind.name, (long long)k, (long long)n, (long long)d,
                        columns ? "columns" : "rows", ms.median_ms, ms.runs, floor_ms);
                    gnomon_operator_destroy(op);
                }
    bench_close(&json);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return 0;
}
