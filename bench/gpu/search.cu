/* Exact k-nearest search on the GPU: times of whole calls, points in the GPU's memory or on the
 * host, beside their floors (one read of the base; the products at cuBLAS's FP16 rate) and a plain
 * cuBLAS FP16 product whose matrix of scores is written and never looked at. Each job's answers to
 * some queries are held to the CPU's, bit for bit.
 *
 * usage: search [--json FILE] [--quick] [--job N]...   quick: wide points are not held to the CPU's
 */
#include "bench.cuh"

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <gnomon.h>

#include <chrono>
#include <string>

struct job {
    int64_t queries, base, cols, k;
    gnomon_metric metric;
    const char *from; /* device, pinned, pageable */
    const char *data; /* normal, clustered, equal */
};

static gnomon_context *cpu, *gpu;

static double now_ms(void)
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Clusters of 1000 neighbouring rows, or all rows the same. */
static __global__ void shape(float *x, int64_t rows, int64_t cols, int64_t all, int how)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < rows * cols; e += stride) {
        const int64_t i = e / cols, j = e % cols;
        const uint64_t cluster = (uint64_t)(how == 2 ? 0 : i * (all / 1000) / rows);
        const float centre =
            4.0f * (bench_uniform(77, cluster * (uint64_t)cols + (uint64_t)j) - 0.5f);
        x[e] = how == 2 ? centre : centre + 0.05f * x[e];
    }
}

static __global__ void to_half(const float *from, size_t count, __half *to)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = __float2half(from[i]);
}

static gnomon_matrix matrix(void *data, int64_t rows, int64_t cols, bool device)
{
    gnomon_matrix m = gnomon_matrix_rowmajor(data, GNOMON_F32, rows, cols);
    if (device) m.memory = GNOMON_DEVICE_MEMORY;
    return m;
}

static void search(gnomon_context *ctx, const gnomon_matrix *base, const gnomon_matrix *queries,
                   const job *j, gnomon_neighbors *out)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = j->metric;
    o.k = j->k;
    *out = {};
    out->struct_size = sizeof *out;
    if (gnomon_neighbors_exact(ctx, base, queries, &o, out) == GNOMON_OK) return;
    fprintf(stderr, "search: %s\n", gnomon_last_error(ctx));
    exit(1);
}

/* Milliseconds of Q X^T in FP16, by pieces of the base whose scores fit. */
static double product_ms(const float *base, const float *queries, const job *j)
{
    static cublasHandle_t blas;
    if (!blas) MUST(cublasCreate(&blas));
    __half *x, *q, *scores;
    const int64_t piece = j->base < 131072 ? j->base : 131072;
    BENCH_CHECK(cudaMalloc(&x, (size_t)(j->base * j->cols) * sizeof *x));
    BENCH_CHECK(cudaMalloc(&q, (size_t)(j->queries * j->cols) * sizeof *q));
    BENCH_CHECK(cudaMalloc(&scores, (size_t)(j->queries * piece) * sizeof *scores));
    to_half<<<4096, 256>>>(base, (size_t)(j->base * j->cols), x);
    to_half<<<1024, 256>>>(queries, (size_t)(j->queries * j->cols), q);
    const float one = 1, zero = 0;
    const bench_time t = bench_run(
        [&](int) {
            for (int64_t from = 0; from < j->base; from += piece) {
                const int64_t some = j->base - from < piece ? j->base - from : piece;
                MUST(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)some, (int)j->queries,
                                  (int)j->cols, &one, x + from * j->cols, CUDA_R_16F, (int)j->cols,
                                  q, CUDA_R_16F, (int)j->cols, &zero, scores, CUDA_R_16F, (int)some,
                                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
            }
        },
        15, 0.5);
    for (void *p : {(void *)x, (void *)q, (void *)scores})
        BENCH_CHECK(cudaFree(p));
    return t.median_ms;
}

/* FLOP/s of a large FP16 product. */
static double half_rate(void)
{
    job j = {16384, 16384, 8192, 0, GNOMON_L2, "", ""};
    float *a;
    BENCH_CHECK(cudaMalloc(&a, (size_t)(j.base * j.cols) * sizeof *a));
    bench_fill(a, (size_t)(j.base * j.cols), 1);
    const double ms = product_ms(a, a, &j);
    BENCH_CHECK(cudaFree(a));
    return 2.0 * (double)j.base * (double)j.queries * (double)j.cols / ms * 1e3;
}

/* Queries whose answers differ from the CPU's. */
static int64_t check(const job *j, const float *base, const float *queries,
                     const gnomon_neighbors *got)
{
    int64_t some = (int64_t)(6e9 / (double)(j->base * j->cols));
    some = some < 1 ? 1 : some > j->queries ? j->queries : some;
    std::vector<float> x((size_t)(j->base * j->cols)), q((size_t)(some * j->cols));
    BENCH_CHECK(cudaMemcpy(x.data(), base, x.size() * sizeof(float), cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemcpy(q.data(), queries, q.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const gnomon_matrix b = matrix(x.data(), j->base, j->cols, false);
    const gnomon_matrix a = matrix(q.data(), some, j->cols, false);
    gnomon_neighbors want;
    search(cpu, &b, &a, j, &want);
    int64_t wrong = 0;
    for (int64_t i = 0; i < some; i++)
        wrong +=
            memcmp(want.ids + i * j->k, got->ids + i * j->k, (size_t)j->k * 8) != 0 ||
            memcmp(want.distances + i * j->k, got->distances + i * j->k, (size_t)j->k * 8) != 0;
    gnomon_neighbors_free(cpu, &want);
    return wrong;
}

static void measure(const job *j, double rate, bool check_it, bench_json *json)
{
    const size_t base_count = (size_t)(j->base * j->cols), count = (size_t)(j->queries * j->cols);
    const std::string from = j->from, data = j->data;
    float *base, *queries, *host = nullptr;
    BENCH_CHECK(cudaMalloc(&base, base_count * sizeof *base));
    BENCH_CHECK(cudaMalloc(&queries, count * sizeof *queries));
    bench_fill(base, base_count, 1);
    bench_fill(queries, count, 2);
    const int how = data == "clustered" ? 1 : data == "equal" ? 2 : 0;
    if (how) shape<<<4096, 256>>>(base, j->base, j->cols, j->base, how);
    if (how) shape<<<1024, 256>>>(queries, j->queries, j->cols, j->base, how);
    gnomon_matrix b = matrix(base, j->base, j->cols, true);
    const gnomon_matrix q = matrix(queries, j->queries, j->cols, true);
    if (from != "device") {
        if (from == "pinned")
            BENCH_CHECK(cudaMallocHost(&host, base_count * sizeof *host));
        else
            host = static_cast<float *>(malloc(base_count * sizeof *host));
        BENCH_CHECK(cudaMemcpy(host, base, base_count * sizeof *host, cudaMemcpyDeviceToHost));
        b = matrix(host, j->base, j->cols, false);
    }
    std::vector<double> ms;
    gnomon_neighbors out = {};
    double spent = 0;
    for (int run = -2; run < 25 && (run < 5 || spent < 1500); run++) {
        gnomon_neighbors_free(gpu, &out);
        BENCH_CHECK(cudaDeviceSynchronize());
        const double begin = now_ms();
        search(gpu, &b, &q, j, &out);
        const double one = now_ms() - begin;
        spent += one;
        if (run >= 0) ms.push_back(one);
    }
    const bench_time t = bench_summary(ms);
    const int64_t wrong = check_it ? check(j, base, queries, &out) : 0;
    const double read = bench_read_ms(base, base_count * sizeof *base);
    const double flops = 2.0 * (double)j->base * (double)count / rate * 1e3;
    const double product = j->queries >= 1000 ? product_ms(base, queries, j) : 0;
    const double floor = read > flops ? read : flops;
    printf("%6lld x %8lld x %4lld k %5lld %-6s %-8s %-9s %9.3f ms %9.3f %6.2fx %9.3f %8.1f%s\n",
           (long long)j->queries, (long long)j->base, (long long)j->cols, (long long)j->k,
           gnomon_metric_name(j->metric), j->from, j->data, t.median_ms, floor, t.median_ms / floor,
           product, (double)out.verified / (double)j->queries, wrong ? "  WRONG" : "");
    fflush(stdout);
    bench_record(
        json,
        "\"queries\": %lld, \"base\": %lld, \"cols\": %lld, \"k\": %lld, \"metric\": \"%s\", "
        "\"from\": \"%s\", \"data\": \"%s\", \"ms\": %.4f, \"least_ms\": %.4f, \"runs\": %d, "
        "\"read_ms\": %.4f, \"flops_ms\": %.4f, \"fp16_gemm_ms\": %.4f, "
        "\"verified\": %lld, \"checked\": %s, \"wrong\": %lld",
        (long long)j->queries, (long long)j->base, (long long)j->cols, (long long)j->k,
        gnomon_metric_name(j->metric), j->from, j->data, t.median_ms, t.least_ms, t.runs, read,
        flops, product, (long long)out.verified, check_it ? "true" : "false", (long long)wrong);
    gnomon_neighbors_free(gpu, &out);
    BENCH_CHECK(cudaFree(base));
    BENCH_CHECK(cudaFree(queries));
    if (from == "pinned")
        BENCH_CHECK(cudaFreeHost(host));
    else
        free(host);
}

int main(int argc, char **argv)
{
    const int64_t million = 1000000;
    bool quick = false;
    uint64_t only = 0; /* a bit a job; none: all */
    for (int i = 1; i < argc; i++) {
        quick = quick || strcmp(argv[i], "--quick") == 0;
        if (i + 1 < argc && strcmp(argv[i], "--job") == 0) only |= 1ull << atoi(argv[i + 1]);
    }
    bench_json json = bench_open("search", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    MUST(gnomon_context_create(&options, &cpu));
    options.device = "cuda";
    MUST(gnomon_context_create(&options, &gpu));
    const double rate = half_rate();
    printf("cuBLAS FP16: %.0f TFLOP/s\n", rate * 1e-12);
    printf("queries x base x dimensions, metric, base from, data: ms, floor, times the floor, FP16 "
           "product alone, fp64 pairs a query\n");
    const job jobs[] = {
        {1, million, 128, 10, GNOMON_L2, "device", "normal"},
        {4, million, 128, 10, GNOMON_L2, "device", "normal"},
        {8, million, 128, 10, GNOMON_L2, "device", "normal"},
        {16, million, 128, 10, GNOMON_L2, "device", "normal"},
        {1, million, 128, 10, GNOMON_COSINE, "device", "normal"},
        {16, million, 128, 10, GNOMON_COSINE, "device", "normal"},
        {1, million, 128, 10, GNOMON_L2, "device", "clustered"},
        {1, million, 128, 100, GNOMON_L2, "device", "normal"},
        {1, million, 960, 10, GNOMON_L2, "device", "normal"},
        {32, million, 128, 10, GNOMON_L2, "device", "normal"},
        {64, million, 128, 10, GNOMON_L2, "device", "normal"},
        {100, million, 128, 10, GNOMON_L2, "device", "normal"},
        {1000, million, 128, 10, GNOMON_L2, "device", "normal"},
        {10000, million, 128, 10, GNOMON_L2, "device", "normal"},
        {10000, million, 128, 10, GNOMON_COSINE, "device", "normal"},
        {10000, million, 128, 10, GNOMON_IP, "device", "normal"},
        {10000, million, 128, 10, GNOMON_L2, "device", "clustered"},
        {1000, million, 128, 1000, GNOMON_L2, "device", "normal"},
        {10000, million, 128, 1000, GNOMON_L2, "device", "normal"},
        {1000, million, 960, 10, GNOMON_L2, "device", "normal"},
        {10000, million, 960, 10, GNOMON_L2, "device", "normal"},
        {10000, million, 128, 10, GNOMON_L2, "pinned", "normal"},
        {10000, million, 128, 10, GNOMON_L2, "pageable", "normal"},
        {1000, 100000, 128, 10, GNOMON_L2, "device", "equal"},
        {1, million, 128, 1000, GNOMON_L2, "device", "normal"},
        {16, million, 128, 100, GNOMON_L2, "device", "normal"},
        {16, million, 128, 1000, GNOMON_L2, "device", "normal"},
        {100, million, 128, 100, GNOMON_L2, "device", "normal"},
        {100, million, 128, 1000, GNOMON_L2, "device", "normal"},
        {1000, million, 128, 100, GNOMON_L2, "device", "normal"},
        {10000, million, 128, 100, GNOMON_L2, "device", "normal"},
        {100, million, 128, 10, GNOMON_L2, "device", "clustered"},
        {1000, million, 128, 1000, GNOMON_L2, "device", "clustered"},
        {1, 100000, 128, 10, GNOMON_L2, "device", "equal"},
        {100, 100000, 128, 10, GNOMON_L2, "device", "equal"},
    };
    for (const job &j : jobs)
        if (only == 0 || (only >> (&j - jobs) & 1))
            measure(&j, rate, !quick || j.cols < 200, &json);
    bench_close(&json);
    gnomon_context_destroy(cpu);
    gnomon_context_destroy(gpu);
    return 0;
}
