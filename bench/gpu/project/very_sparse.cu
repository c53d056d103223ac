/* Very sparse projection, k = 16384: the three kernels of "Fast Random Projections in CUDA" beside
 * the library's, which is checked against the definition in fp64, and one read of the points.
 * 'coordinates': a coordinate's points lie side by side (D x b, what the article has); 'points':
 * a point's coordinates do (b x D, what users have). */
#include "bench.cuh"
#include "seed_kernels.cuh"

#include "cuda/project/family.h"
#include "kernels.cuh"

#include <cmath>

static const int64_t K = 16384;

/* The definition, one jump at a time; a warp a row and 32 points. */
static __global__ void definition(gcu_stream s, float jump_scale, int64_t chunk, gcu_points x,
                                  double *y, double *norm)
{
    const int64_t row = blockIdx.x, point = (int64_t)blockIdx.y * 32 + threadIdx.x;
    double sum = 0, squares = 0;
    for (int64_t q = 0; q * chunk < x.block_cols; q++) {
        int64_t at = -1;
        for (uint32_t t = 0;; t++) {
            const uint4 w = gcu_call_general(s, (uint32_t)(row / 4), (uint64_t)q, t);
            const uint32_t word = gcu_word(w, (int)(row % 4));
            at += gcu_advance(word, jump_scale);
            if (at >= chunk || q * chunk + at >= x.block_cols) break;
            const double e = gcu_load<float>(x, 0, point, q * chunk + at);
            sum += word & 1 ? -e : e;
            squares += e * e;
        }
    }
    if (point >= x.n) return;
    y[row * x.n + point] = sum;
    norm[row * x.n + point] = std::sqrt(squares);
}

struct exact {
    std::vector<double> y, norm;
};

static exact make_exact(const gnomon_simple &a, const gcu_points &x)
{
    const size_t count = (size_t)(K * x.n);
    double *y, *norm;
    BENCH_CHECK(cudaMalloc(&y, count * sizeof *y));
    BENCH_CHECK(cudaMalloc(&norm, count * sizeof *norm));
    definition<<<dim3((unsigned)K, (unsigned)((x.n + 31) / 32)), 32>>>(
        gcu_stream_of(&a, GNOMON_TAG_VERY_SPARSE), a.jump_scale, a.chunk, x, y, norm);
    BENCH_CHECK(cudaGetLastError());
    exact e = {std::vector<double>(count), std::vector<double>(count)};
    BENCH_CHECK(cudaMemcpy(e.y.data(), y, count * sizeof *y, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemcpy(e.norm.data(), norm, count * sizeof *norm, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaFree(y));
    BENCH_CHECK(cudaFree(norm));
    return e;
}

/* The largest error over the norm of the nonzeros' points. */
static double worst_error(const exact &e, const float *y)
{
    std::vector<float> got(e.y.size());
    BENCH_CHECK(cudaMemcpy(got.data(), y, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (size_t i = 0; i < got.size(); i++) {
        const double error = std::fabs(got[i] - e.y[i]) / (e.norm[i] > 0 ? e.norm[i] : 1);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

static gnomon_simple make_matrix(int64_t d, double p)
{
    gnomon_simple a = {};
    a.kind = GNOMON_VERY_SPARSE;
    a.key0 = 20060820u;
    a.key1 = 7u;
    a.rows = K;
    a.cols = d;
    a.density = p;
    a.jump_scale = (float)(-1.0 / std::log1p(-p));
    const double length = std::floor(24.0 / (256.0 * p) + 0.5);
    a.chunk = 256 * (int64_t)std::min(std::max(length, 1.0), 16384.0);
    return a;
}

struct place {
    const char *name;
    int64_t d, b;
    double p, read_ms;
};

static void record(bench_json *json, const place &c, const char *system, const char *layout,
                   bench_time t, double error)
{
    char checked[32] = "";
    if (error >= 0) snprintf(checked, sizeof checked, "%.1e", error);
    printf("%-9lld %-9s %4lld  %-8s %-12s %9.3f ms  %6.2f x one read  %s\n", (long long)c.d, c.name,
           (long long)c.b, system, layout, t.median_ms, t.median_ms / c.read_ms, checked);
    bench_record(json,
                 "\"d\": %lld, \"k\": %lld, \"b\": %lld, \"density\": %.9g, \"system\": \"%s\", "
                 "\"layout\": \"%s\", \"ms\": %.5f, \"least_ms\": %.5f, \"most_ms\": %.5f, "
                 "\"runs\": %d, \"read_ms\": %.5f, \"worst_error\": %.3g",
                 (long long)c.d, (long long)K, (long long)c.b, c.p, system, layout, t.median_ms,
                 t.least_ms, t.most_ms, t.runs, c.read_ms, error);
}

/* Times the library's kernels on one layout, after a check. Returns whether they were right. */
static bool ours(bench_json *json, const gcu_gpu &gpu, const place &c, const gnomon_simple &a,
                 float *x, float *y, bool points)
{
    gcu_task task = {};
    task.a = &a;
    task.rows = K;
    task.gpu = &gpu;
    task.x = {x, GNOMON_F32, points ? c.d : 1, points ? 1 : c.b, 0, c.b, 1, c.d, 0, c.d};
    task.out = bench_sums(y, K, 1, c.b);
    task.work_bytes = gcu_very_sparse.best_work(&task);
    BENCH_CHECK(cudaMalloc(&task.work, task.work_bytes + 1));
    BENCH_CHECK(cudaMemset(y, 0xFF, sizeof(float) * (size_t)(K * c.b)));
    BENCH_CHECK(gcu_very_sparse.run(&task));
    BENCH_CHECK(cudaDeviceSynchronize());
    const double error = worst_error(make_exact(a, task.x), y);
    record(json, c, "gnomon", points ? "points" : "coordinates",
           bench_run([&](int) { BENCH_CHECK(gcu_very_sparse.run(&task)); }), error);
    BENCH_CHECK(cudaFree(task.work));
    return error < 1e-5;
}

static bool run_case(bench_json *json, const gcu_gpu &gpu, place c, float *x, float *y)
{
    const gnomon_simple a = make_matrix(c.d, c.p);
    c.read_ms = bench_read_ms(x, sizeof(float) * (size_t)(c.d * c.b));
    const seed::job job = seed::make_job(x, y, c.d, K, (int)c.b, 42, c.p);
    if (c.d <= 10000000)
        record(json, c, "v1", "coordinates", bench_run([&](int) { seed::run_v1(job); }, 25, 0.2),
               -1);
    record(json, c, "v2", "coordinates", bench_run([&](int) { seed::run_v2(job); }, 25, 0.2), -1);
    record(json, c, "v3", "coordinates", bench_run([&](int) { seed::run_v3(job); }, 25, 0.4), -1);
    bool right = ours(json, gpu, c, a, x, y, false);
    return ours(json, gpu, c, a, x, y, true) && right;
}

int main(int argc, char **argv)
{
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        fprintf(stderr, "very_sparse: %s\n", why);
        return 1;
    }
    bench_json json = bench_open("very_sparse", argc, argv);
    const place cases[] = {
        {"1/10000", 10000000, 32, 1e-4, 0},  {"1/sqrt(D)", 10000000, 32, 1 / std::sqrt(1e7), 0},
        {"1/10000", 100000000, 32, 1e-4, 0}, {"1/10000", 10000000, 8, 1e-4, 0},
        {"1/10000", 10000000, 64, 1e-4, 0},  {"1/10000", 10000000, 256, 1e-4, 0},
        {"1/10000", 10000000, 1, 1e-4, 0},   {"1/10000", 10000000, 2, 1e-4, 0},
        {"1/10000", 10000000, 3, 1e-4, 0},   {"1/10000", 10000000, 4, 1e-4, 0},
    };
    size_t most = 0;
    for (const place &c : cases)
        most = std::max(most, (size_t)(c.d * c.b));
    float *x, *y;
    BENCH_CHECK(cudaMalloc(&x, most * sizeof *x));
    BENCH_CHECK(cudaMalloc(&y, (size_t)K * 256 * sizeof *y));
    bench_fill(x, most, 1, BENCH_NORMAL);
    printf("D         density   b     system   layout           median\n");
    bool right = true;
    for (const place &c : cases)
        right = run_case(&json, gpu, c, x, y) && right;
    bench_close(&json);
    gcu_gpu_close(&gpu);
    if (!right) fprintf(stderr, "very_sparse: a sketch is not the definition's\n");
    return !right;
}
