/* bench/gpu/project/sjlt.cu: sjlt of k = 4096 rows against one read of the points: 1, 2 and 4
 * nonzeros a column, few and many points, both layouts. */
#include "bench.cuh"
#include "cuda/project/family.h"
#include "kernels.cuh"

static gnomon_simple make_operator(int64_t k, int64_t d, int64_t s)
{
    gnomon_simple a = {};
    a.kind = GNOMON_SJLT;
    a.key0 = 0x2545F491u;
    a.key1 = 0x4F6CDD1Du;
    a.rows = k;
    a.cols = d;
    a.nonzeros = a.bands = s;
    a.chunk = 4096;
    a.chunk_log2 = 12;
    while (a.chunk < 4 * ((k + s - 1) / s))
        a.chunk *= 2, a.chunk_log2++;
    return a;
}

static gcu_task make_task(const gnomon_simple *a, const gcu_gpu *gpu, const float *x, float *y,
                          int64_t n, bool points_adjacent)
{
    gcu_task t = {};
    t.a = a;
    t.gpu = gpu;
    t.rows = a->rows;
    t.x.data = x;
    t.x.dtype = GNOMON_F32;
    t.x.row_stride = points_adjacent ? 1 : a->cols;
    t.x.col_stride = points_adjacent ? n : 1;
    t.x.n = n;
    t.x.blocks = 1;
    t.x.block_cols = t.x.end = a->cols;
    t.out = bench_sums(y, a->rows, points_adjacent ? 1 : a->rows, points_adjacent ? n : 1);
    return t;
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("sjlt", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    const int64_t k = 4096, d = (int64_t)1 << 23;
    for (int64_t n : {32, 256, 1}) {
        float *x, *y;
        void *work;
        BENCH_CHECK(cudaMalloc(&x, (size_t)(d * n) * sizeof *x));
        BENCH_CHECK(cudaMalloc(&y, (size_t)(k * n) * sizeof *y));
        bench_fill(x, (size_t)(d * n), 1);
        const double floor_ms = bench_read_ms(x, (size_t)(d * n) * sizeof *x);
        printf("n %lld, D %lld, k %lld: one read %.4f ms\n", (long long)n, (long long)d,
               (long long)k, floor_ms);
        for (int64_t s : {1, 2, 4})
            for (bool points_adjacent : {true, false}) {
                if (n == 1 && !points_adjacent) continue; /* the same memory */
                const gnomon_simple a = make_operator(k, d, s);
                gcu_task t = make_task(&a, &gpu, x, y, n, points_adjacent);
                t.work_bytes = gcu_sjlt.best_work(&t);
                BENCH_CHECK(cudaMalloc(&work, t.work_bytes));
                t.work = work;
                const bench_time time =
                    bench_run([&](int) { BENCH_CHECK(gcu_sjlt.run(&t)); }, 25, 0.5);
                const char *layout =
                    points_adjacent ? "coordinates contiguous" : "points contiguous";
                printf("  s %lld, %-22s: %.4f ms, %.2f reads, work %.0f MB\n", (long long)s, layout,
                       time.median_ms, time.median_ms / floor_ms, (double)t.work_bytes * 1e-6);
                bench_record(&json,
                             "\"n\": %lld, \"d\": %lld, \"k\": %lld, \"s\": %lld, "
                             "\"layout\": \"%s\", \"ms\": %.4f, \"floor_ms\": %.4f, "
                             "\"ratio\": %.3f, \"work_bytes\": %zu, \"runs\": %d",
                             (long long)n, (long long)d, (long long)k, (long long)s, layout,
                             time.median_ms, floor_ms, time.median_ms / floor_ms, t.work_bytes,
                             time.runs);
                BENCH_CHECK(cudaFree(work));
            }
        BENCH_CHECK(cudaFree(x));
        BENCH_CHECK(cudaFree(y));
    }
    bench_close(&json);
    return 0;
}
