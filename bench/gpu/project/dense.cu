/* bench/gpu/project/dense.cu: dense operators made on the fly against what the flops cost at
 * cuBLAS's FP16 rate, on the points of 'Fast Random Projections in CUDA' (D x b, coordinates
 * contiguous). */
#include "bench.cuh"
#include "cuda/project/family.h"
#include "kernels.cuh"

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <dlfcn.h>
#include <string>

static __global__ void to_half(const float *x, __half *y, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        y[i] = __float2half_rn(x[i]);
}

/* The library is opened by name, so that the program builds and runs without it. */
struct blas {
    cublasHandle_t handle;
    decltype(&cublasCreate_v2) create;
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                           const void *, const void *, cudaDataType, int, const void *,
                           cudaDataType, int, const void *, void *, cudaDataType, int,
                           cublasComputeType_t, cublasGemmAlgo_t);
};

static bool open_blas(blas *b)
{
    void *library = dlopen("libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
    if (!library) return false;
    b->create = (decltype(b->create))dlsym(library, "cublasCreate_v2");
    b->gemm = (decltype(b->gemm))dlsym(library, "cublasGemmEx");
    return b->create && b->gemm && b->create(&b->handle) == CUBLAS_STATUS_SUCCESS;
}

/* flop/s of m x n x k: halves with fp32 sums, or all in fp32 */
static double gemm_rate(const blas &b, int m, int n, int k, bool half)
{
    const size_t size = half ? 2 : 4;
    void *x, *y, *z;
    float *f;
    const size_t most = std::max((size_t)m * k, (size_t)n * k);
    BENCH_CHECK(cudaMalloc(&x, (size_t)m * k * size));
    BENCH_CHECK(cudaMalloc(&y, (size_t)n * k * size));
    BENCH_CHECK(cudaMalloc(&z, (size_t)m * n * 4));
    BENCH_CHECK(cudaMalloc(&f, most * 4));
    bench_fill(f, most, 1);
    if (half) {
        to_half<<<1024, 256>>>(f, (__half *)x, (size_t)m * k);
        bench_fill(f, most, 2);
        to_half<<<1024, 256>>>(f, (__half *)y, (size_t)n * k);
    } else {
        BENCH_CHECK(cudaMemcpy(x, f, (size_t)m * k * 4, cudaMemcpyDeviceToDevice));
        bench_fill(f, most, 2);
        BENCH_CHECK(cudaMemcpy(y, f, (size_t)n * k * 4, cudaMemcpyDeviceToDevice));
    }
    const float one = 1.0f, zero = 0.0f;
    const cudaDataType type = half ? CUDA_R_16F : CUDA_R_32F;
    const bench_time t = bench_run(
        [&](int) {
            b.gemm(b.handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &one, x, type, k, y, type, k, &zero,
                   z, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        },
        20, 0.5);
    cudaFree(x);
    cudaFree(y);
    cudaFree(z);
    cudaFree(f);
    return 2.0 * m * n * k / (t.median_ms * 1e-3);
}

struct sizes {
    int64_t d, k;
    int b;
};

static gnomon_simple make_operator(gnomon_kind kind, gnomon_dtype precision, sizes s)
{
    gnomon_simple a;
    memset(&a, 0, sizeof a);
    a.kind = kind;
    a.precision = precision;
    a.key0 = 12345;
    a.rows = s.k;
    a.cols = s.d;
    return a;
}

static gcu_task make_task(const gcu_gpu &gpu, const gnomon_simple *a, sizes s, const void *x,
                          gnomon_dtype dtype, bool points_first, float *y)
{
    gcu_task t;
    memset(&t, 0, sizeof t);
    t.a = a;
    t.rows = s.k;
    t.x = {x, dtype, points_first ? 1 : s.d, points_first ? s.b : 1, 0, s.b, 1, s.d, 0, s.d};
    t.out = bench_sums(y, s.k, s.k, 1);
    t.gpu = &gpu;
    return t;
}

static double rate; /* cuBLAS's FP16 */

static void time_one(bench_json *json, const gcu_gpu &gpu, gnomon_kind kind, gnomon_dtype precision,
                     gnomon_dtype dtype, sizes s, bool points_first, int runs)
{
    const size_t count = (size_t)s.d * s.b;
    float *f, *y;
    void *x, *work;
    BENCH_CHECK(cudaMalloc(&f, count * 4));
    BENCH_CHECK(cudaMalloc(&y, (size_t)s.k * s.b * 4));
    bench_fill(f, count, 3);
    x = f;
    if (dtype == GNOMON_F16) {
        BENCH_CHECK(cudaMalloc(&x, count * 2));
        to_half<<<1024, 256>>>(f, (__half *)x, count);
    }
    const gnomon_simple a = make_operator(kind, precision, s);
    gcu_task t = make_task(gpu, &a, s, x, dtype, points_first, y);
    t.work_bytes = gcu_dense_rows.best_work(&t);
    BENCH_CHECK(cudaMalloc(&work, t.work_bytes));
    t.work = work;
    const bench_time time = bench_run([&](int) { BENCH_CHECK(gcu_dense_rows.run(&t)); }, runs, 1.0);
    const char *name = kind == GNOMON_RADEMACHER   ? "rademacher"
                       : kind == GNOMON_ACHLIOPTAS ? "achlioptas"
                       : precision == GNOMON_F16   ? "gaussian fp16"
                                                   : "gaussian fp32";
    const double split = dtype == GNOMON_F16 ? 1.0 : 2.0;
    const double floor_ms = 2.0 * s.k * s.d * s.b * split / rate * 1e3;
    printf("%-14s %s %s D %-9lld k %-6lld b %-4d %9.2f ms  (%.2f-%.2f, %d)  flops at FP16 rate "
           "%8.2f  ratio %.2f  work %.0f MB\n",
           name, dtype == GNOMON_F16 ? "f16" : "f32", points_first ? "Dxb" : "nxD", (long long)s.d,
           (long long)s.k, s.b, time.median_ms, time.least_ms, time.most_ms, time.runs, floor_ms,
           time.median_ms / floor_ms, (double)t.work_bytes * 1e-6);
    bench_record(json,
                 "\"what\": \"time\", \"kind\": \"%s\", \"input\": \"%s\", \"layout\": \"%s\", "
                 "\"d\": %lld, \"k\": %lld, \"b\": %d, \"ms\": %.4f, \"floor_ms\": %.4f",
                 name, dtype == GNOMON_F16 ? "f16" : "f32", points_first ? "Dxb" : "nxD",
                 (long long)s.d, (long long)s.k, s.b, time.median_ms, floor_ms);
    cudaFree(work);
    if (x != f) cudaFree(x);
    cudaFree(f);
    cudaFree(y);
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("dense", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        printf("%s\n", why);
        return 1;
    }
    blas b;
    if (open_blas(&b)) {
        rate = gemm_rate(b, 8192, 8192, 8192, true);
        const double sgemm = gemm_rate(b, 8192, 8192, 8192, false);
        printf("cuBLAS 8192^3: FP16 %.0f TFLOP/s, SGEMM %.1f\n", rate * 1e-12, sgemm * 1e-12);
        bench_record(&json, "\"what\": \"rate\", \"fp16\": %.4g, \"sgemm\": %.4g", rate, sgemm);
    } else {
        rate = 753e12;
        printf("cuBLAS isn't there; 753 TFLOP/s taken\n");
    }
    const gnomon_dtype P32 = GNOMON_F32, P16 = GNOMON_F16;
    const int64_t D = 10000000, K = 16384;
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {D, K, 32}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F16, {D, K, 32}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {D, K, 16}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {D, K, 8}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F16, {D, K, 8}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {D, K, 32}, false, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {D, 1024, 32}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F32, {1000000, K, 256}, true, 20);
    time_one(&json, gpu, GNOMON_RADEMACHER, P32, GNOMON_F16, {1000000, K, 256}, true, 20);
    time_one(&json, gpu, GNOMON_ACHLIOPTAS, P32, GNOMON_F32, {D, K, 32}, true, 10);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P16, GNOMON_F32, {D, K, 32}, true, 10);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P16, GNOMON_F16, {D, K, 32}, true, 10);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P16, GNOMON_F32, {D, K, 8}, true, 10);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P16, GNOMON_F32, {1000000, K, 256}, true, 10);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P32, GNOMON_F32, {D, K, 32}, true, 5);
    time_one(&json, gpu, GNOMON_GAUSSIAN, P32, GNOMON_F32, {1000000, K, 256}, true, 5);
    bench_close(&json);
    gcu_gpu_close(&gpu);
    return 0;
}
