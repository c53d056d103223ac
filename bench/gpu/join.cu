/* bench/gpu/join.cu: exact self-joins in L2 on the GPU: all pairs of n points within a radius that
 * gives each point about 64 neighbours. The library's call, from points to pairs in the host's
 * memory; then its parts: the filter's rate, what packing and verification take beside it, and
 * cuBLAS's rate for a product of fp16 matrices of the same inner size, in the same run. Rates count
 * 2 n^2 d operations, as is the custom; half of them are needed, since pairs are symmetric.
 */
#include "bench.cuh"
#include "cuda/filter/filter.h"

#include <gnomon/join.h>

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <dlfcn.h>
#include <time.h>

/* The library is opened by name, so that the program builds and runs without it. */
struct blas {
    cublasHandle_t handle;
    cublasStatus_t (*create)(cublasHandle_t *);
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                           const void *, const void *, cudaDataType, int, const void *,
                           cudaDataType, int, const void *, void *, cudaDataType, int,
                           cublasComputeType_t, cublasGemmAlgo_t);
    bool there;
};

static blas open_blas()
{
    blas b = {};
    void *library = dlopen("libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
    if (!library) return b;
    b.create = (decltype(b.create))dlsym(library, "cublasCreate_v2");
    b.gemm = (decltype(b.gemm))dlsym(library, "cublasGemmEx");
    b.there = b.create && b.gemm && b.create(&b.handle) == CUBLAS_STATUS_SUCCESS;
    return b;
}

static __global__ void halves_kernel(const float *x, __half *y, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        y[i] = __float2half_rn(x[i]);
}

/* TFLOP/s of a product of 8192 x d and d x 16384, as a piece of the whole would be. */
static double blas_rate(const blas &b, int64_t d, double seconds)
{
    if (!b.there) return 0;
    const int m = 8192, n = 16384;
    __half *x, *c;
    float *f32;
    const size_t count = (size_t)(m + n) * (size_t)d;
    BENCH_CHECK(cudaMalloc(&f32, count * 4));
    BENCH_CHECK(cudaMalloc(&x, count * 2));
    BENCH_CHECK(cudaMalloc(&c, (size_t)m * n * 2));
    bench_fill(f32, count, 77);
    halves_kernel<<<1024, 256>>>(f32, x, count);
    const float one = 1, zero = 0;
    const bench_time t = bench_run(
        [&](int) {
            b.gemm(b.handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, (int)d, &one, x + (size_t)m * d,
                   CUDA_R_16F, (int)d, x, CUDA_R_16F, (int)d, &zero, c, CUDA_R_16F, n,
                   CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        },
        25, seconds);
    cudaFree(f32);
    cudaFree(x);
    cudaFree(c);
    return 2.0 * m * n * (double)d / t.median_ms * 1e-9;
}

template <typename T> static T *device_array(size_t count)
{
    void *data;
    BENCH_CHECK(cudaMalloc(&data, count * sizeof(T) + 256));
    BENCH_CHECK(cudaMemset(data, 0xff, count * sizeof(T) + 256));
    return static_cast<T *>(data);
}

/* All pairs of the first 'rows' points with all points. */
static __global__ void all_pairs(uint64_t *pairs, int64_t rows, int64_t n)
{
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < rows * n;
         at += (int64_t)gridDim.x * blockDim.x)
        pairs[at] = (uint64_t)(at / n) << 32 | (uint64_t)(at % n);
}

enum { SAMPLE = 128 };

/* Where a call's pairs go. */
struct pair_array {
    gnomon_pair *pairs;
    int64_t count, room;
};

static int keep(void *user, const gnomon_join_batch *batch)
{
    pair_array *a = static_cast<pair_array *>(user);
    if (a->count + batch->count > a->room) return 1;
    memcpy(a->pairs + a->count, batch->pairs, (size_t)batch->count * sizeof *a->pairs);
    a->count += batch->count;
    return 0;
}

static double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Median of calls after two that are not counted. */
static bench_time time_call(gnomon_context *ctx, const gnomon_matrix *points, double radius,
                            pair_array *array, int64_t expected, double seconds)
{
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {};
    std::vector<double> ms;
    double spent = 0;
    result.struct_size = sizeof result;
    options.threshold = radius;
    options.sink = array ? keep : nullptr;
    options.user = array;
    for (int run = -2; run < 15 && (run < 5 || spent < seconds); run++) {
        if (array) array->count = 0;
        const double begin = now_ms();
        const gnomon_status status = gnomon_join(ctx, points, nullptr, &options, &result);
        const double one = now_ms() - begin;
        if (run >= 0) {
            ms.push_back(one);
            spent += one * 1e-3;
        }
        if (status != GNOMON_OK || result.pairs != expected ||
            (array && array->count != expected)) {
            printf("the call: %lld pairs, %lld expected: %s\n", (long long)result.pairs,
                   (long long)expected, gnomon_last_error(ctx));
            break;
        }
    }
    return ms.empty() ? bench_time{} : bench_summary(ms);
}

static void time_calls(bench_json *json, gnomon_context *ctx, const float *x, int64_t n, int64_t d,
                       double radius, int64_t expected, double seconds)
{
    const size_t bytes = (size_t)(n * d) * 4;
    std::vector<float> pageable((size_t)(n * d));
    float *pinned;
    BENCH_CHECK(cudaMemcpy(pageable.data(), x, bytes, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMallocHost(&pinned, bytes));
    memcpy(pinned, pageable.data(), bytes);
    std::vector<gnomon_pair> room((size_t)expected + 1);
    pair_array array = {room.data(), 0, expected};
    const gnomon_matrix from = {pageable.data(), GNOMON_F32, GNOMON_HOST, n, d, d, 1};
    gnomon_matrix from_pinned = from;
    from_pinned.data = pinned;
    const bench_time plain = time_call(ctx, &from, radius, &array, expected, seconds);
    const bench_time locked = time_call(ctx, &from_pinned, radius, &array, expected, seconds);
    const bench_time count = time_call(ctx, &from_pinned, radius, nullptr, expected, seconds);
    const double flops = 2.0 * (double)n * (double)n * (double)d;
    printf("         the call %8.2f ms %7.1f TFLOP/s   page-locked %8.2f ms   counting %8.2f ms\n",
           plain.median_ms, flops / plain.median_ms * 1e-9, locked.median_ms, count.median_ms);
    bench_record(
        json,
        "\"what\": \"call\", \"n\": %lld, \"d\": %lld, \"radius\": %.17g, \"pairs\": %lld, "
        "\"ms\": %.4f, \"least_ms\": %.4f, \"runs\": %d, \"pinned_ms\": %.4f, "
        "\"count_ms\": %.4f",
        (long long)n, (long long)d, radius, (long long)expected, plain.median_ms, plain.least_ms,
        plain.runs, locked.median_ms, count.median_ms);
    BENCH_CHECK(cudaFreeHost(pinned));
}

static void time_join(bench_json *json, gnomon_context *ctx, const gcu_gpu *gpu, const blas &b,
                      int64_t n, int64_t d, double neighbours, double seconds)
{
    float *x = device_array<float>((size_t)(n * d));
    bench_fill(x, (size_t)(n * d), (uint64_t)d);
    const gnomon_matrix points = {x, GNOMON_F32, GNOMON_DEVICE_MEMORY, n, d, d, 1};
    uint8_t *centre_memory = device_array<uint8_t>(gcu_filter_centre_bytes(d));
    uint8_t *pack_memory = device_array<uint8_t>(gcu_filter_pack_bytes(GNOMON_L2, n, d));
    unsigned long long *numbers = device_array<unsigned long long>(4), count = 0, kept = 0;
    /* the radius, from the true distances of a few points */
    gcu_verify verify = {GNOMON_L2, &points, &points, nullptr, nullptr, nullptr, 0, INT64_MIN};
    uint64_t *some = device_array<uint64_t>((size_t)(SAMPLE * n));
    double *some_distances = device_array<double>((size_t)(SAMPLE * n));
    all_pairs<<<1024, 256>>>(some, SAMPLE, n);
    BENCH_CHECK(gcu_verify_distances(&verify, some, SAMPLE * n, some_distances, gpu, 0));
    std::vector<double> all((size_t)(SAMPLE * n));
    BENCH_CHECK(cudaMemcpy(all.data(), some_distances, all.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<double> sorted = all;
    const size_t rank = (size_t)(SAMPLE * (neighbours + 1));
    std::nth_element(sorted.begin(), sorted.begin() + (int64_t)rank, sorted.end());
    verify.radius = sorted[rank];
    cudaFree(some);
    cudaFree(some_distances);

    gcu_filter_centre centre;
    gcu_filter_points packed;
    const bench_time pack = bench_run(
        [&](int) {
            BENCH_CHECK(
                gcu_filter_estimate_centre(GNOMON_L2, &points, centre_memory, &centre, gpu, 0));
            BENCH_CHECK(
                gcu_filter_pack(&centre, &points, pack_memory, &packed, numbers + 2, gpu, 0));
        },
        25, seconds);
    float *left = device_array<float>((size_t)packed.padded),
          *right = device_array<float>((size_t)packed.padded);
    uint8_t *limits_work = device_array<uint8_t>(gcu_filter_limits_work());
    BENCH_CHECK(gcu_filter_limits(&centre, &packed, &packed, nullptr, verify.radius, left, right,
                                  limits_work, 0));
    const int64_t room = (int64_t)(2 * neighbours * (double)n);
    uint64_t *pairs = device_array<uint64_t>((size_t)room),
             *again = device_array<uint64_t>((size_t)room);
    double *distances = device_array<double>((size_t)room);
    const size_t work_bytes = gcu_verify_work(room);
    uint8_t *work = device_array<uint8_t>(work_bytes);
    const gcu_filter_call call = {&packed, &packed, left, right, 0, n, true};
    const double flops = 2.0 * (double)n * (double)n * (double)d, rate = blas_rate(b, d, seconds);
    const bench_time filter_seconds = bench_run(
        [&](int) {
            BENCH_CHECK(cudaMemsetAsync(numbers, 0, 8, 0));
            BENCH_CHECK(gcu_filter(&call, {pairs, room, numbers}, gpu, 0));
        },
        25, seconds);
    BENCH_CHECK(cudaMemcpy(&count, numbers, 8, cudaMemcpyDeviceToHost));
    if ((int64_t)count > room) {
        printf("d %lld: %llu survivors are too many\n", (long long)d, count);
        exit(1);
    }
    const bench_time last = bench_run(
        [&](int) {
            BENCH_CHECK(cudaMemcpyAsync(again, pairs, count * 8, cudaMemcpyDeviceToDevice, 0));
            BENCH_CHECK(gcu_verify_pairs(&verify, again, (int64_t)count, distances, numbers + 1,
                                         work, work_bytes, gpu, 0));
        },
        25, seconds);
    BENCH_CHECK(cudaMemcpy(&kept, numbers + 1, 8, cudaMemcpyDeviceToHost));
    /* the rows whose distances are all known */
    std::vector<uint64_t> found(kept);
    std::vector<double> found_distances(kept);
    BENCH_CHECK(cudaMemcpy(found.data(), again, kept * 8, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemcpy(found_distances.data(), distances, kept * 8, cudaMemcpyDeviceToHost));
    int64_t wrong = 0;
    size_t at = 0;
    for (int64_t i = 0; i < SAMPLE; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            const double distance = all[(size_t)(i * n + j)];
            if (!(distance <= verify.radius)) continue;
            if (at >= kept || found[at] != ((uint64_t)i << 32 | (uint64_t)j) ||
                found_distances[at] != distance)
                wrong++;
            else
                at++;
        }
    }
    if (at < kept && found[at] >> 32 < SAMPLE) wrong++;
    const double whole = pack.median_ms + filter_seconds.median_ms + last.median_ms;
    printf(
        "d %5lld  sieve %8.3f ms %7.1f TFLOP/s (cuBLAS %5.1f)  pack %6.3f  settle %6.3f  all %7.1f "
        "TFLOP/s  %llu of %llu pairs%s\n",
        (long long)d, filter_seconds.median_ms, flops / filter_seconds.median_ms * 1e-9, rate,
        pack.median_ms, last.median_ms, flops / whole * 1e-9, kept, count, wrong ? "  WRONG" : "");
    bench_record(json,
                 "\"what\": \"kernel\", \"n\": %lld, \"d\": %lld, \"radius\": %.17g, "
                 "\"survivors\": %llu, \"pairs\": %llu, \"wrong\": %lld, \"ms\": %.5f, "
                 "\"sieve_ms\": %.5f, "
                 "\"least_ms\": %.5f, \"pack_ms\": %.5f, \"settle_ms\": %.5f, "
                 "\"sieve_tflops\": %.2f, \"tflops\": %.2f, \"cublas_tflops\": %.2f",
                 (long long)n, (long long)d, verify.radius, count, kept, (long long)wrong, whole,
                 filter_seconds.median_ms, filter_seconds.least_ms, pack.median_ms, last.median_ms,
                 flops / filter_seconds.median_ms * 1e-9, flops / whole * 1e-9, rate);
    if (ctx) time_calls(json, ctx, x, n, d, verify.radius, (int64_t)kept, seconds);
    void *const memory[] = {x,     centre_memory, pack_memory, numbers,     left, right,
                            pairs, again,         distances,   limits_work, work};
    for (void *data : memory)
        cudaFree(data);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    bench_json json = bench_open("join", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    options.device = "cuda";
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        printf("no calls: %s\n", gnomon_last_error(nullptr));
    const blas b = getenv("BENCH_NO_PEER") ? blas{} : open_blas();
    const double seconds = getenv("BENCH_SECONDS") ? atof(getenv("BENCH_SECONDS")) : 0.5;
    const int64_t n = getenv("BENCH_N") ? atoll(getenv("BENCH_N")) : 100000;
    std::vector<int64_t> all = {64, 128, 256, 512, 1024, 2048, 4096};
    if (getenv("BENCH_D")) all = {atoll(getenv("BENCH_D"))};
    for (int64_t d : all)
        time_join(&json, ctx, &gpu, b, n, d, 64, seconds);
    bench_close(&json);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return 0;
}
