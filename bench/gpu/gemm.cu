/* bench/gpu/gemm.cu: products of an fp32 and an fp16 matrix at single-precision accuracy, beside
 * cuBLAS in single precision, TF32 and FP16: speed, and error against FP64. */
#include "bench.cuh"
#include "cuda/gemm/gemm.h"

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cmath>
#include <dlfcn.h>
#include <string>

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

static __global__ void round_kernel(float *x, __half *y, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        y[i] = __float2half_rn(x[i]);
        x[i] = __half2float(y[i]);
    }
}

/* 1 / (i - j + u): entries from about 1 / k to far above fp16's largest. */
static __global__ void cauchy_kernel(float *x, int64_t m, int64_t k, uint64_t seed)
{
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < m * k;
         at += (int64_t)gridDim.x * blockDim.x)
        x[at] = 1.0f / ((float)(at / k - at % k) + 1e-6f * bench_uniform(seed, (uint64_t)at));
}

/* Squares of errors, and of the products, of some rows of C. */
static __global__ void error_kernel(const float *a, const float *b, const float *c, int64_t m,
                                    int64_t n, int64_t k, int rows, double *sums)
{
    const int64_t i = (int64_t)blockIdx.y * m / rows;
    const int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double error = 0.0, size = 0.0;
    if (j < n) {
        double sum = 0.0;
        for (int64_t q = 0; q < k; q++)
            sum += (double)a[i * k + q] * (double)b[q * n + j];
        error = ((double)c[i * n + j] - sum) * ((double)c[i * n + j] - sum);
        size = sum * sum;
    }
    atomicAdd(sums, error);
    atomicAdd(sums + 1, size);
}

enum law { POSITIVE, UNIFORM, NORMAL, WIDE1, WIDE2, WIDE4, CAUCHY, LAWS };
/* of A; B is normal, but with 'positive' uniform as A is */
static const char *const laws[] = {"positive", "uniform", "normal", "exp(N)",
                                   "exp(2N)",  "exp(4N)", "Cauchy"};

struct problem {
    int64_t m, n, k;
    float *a, *b, *c;
    __half *a16, *b16;
    double *sums;
};

static void fill(problem *p, law how)
{
    const size_t a = (size_t)(p->m * p->k), b = (size_t)(p->k * p->n);
    const float phi[] = {0, 0, 0, 1, 2, 4, 0};
    if (how == CAUCHY)
        cauchy_kernel<<<1024, 256>>>(p->a, p->m, p->k, 1);
    else
        bench_fill(p->a, a, 1,
                   how == NORMAL    ? BENCH_NORMAL
                   : how <= UNIFORM ? BENCH_UNIFORM
                                    : BENCH_HUGE_RANGE,
                   phi[how]);
    bench_fill(p->b, b, 2, how == POSITIVE ? BENCH_UNIFORM : BENCH_NORMAL);
    round_kernel<<<1024, 256>>>(p->b, p->b16, b);
    BENCH_CHECK(cudaDeviceSynchronize());
}

static problem make(int64_t m, int64_t n, int64_t k)
{
    problem p = {m, n, k, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    BENCH_CHECK(cudaMalloc(&p.a, (size_t)(m * k) * 4));
    BENCH_CHECK(cudaMalloc(&p.b, (size_t)(k * n) * 4));
    BENCH_CHECK(cudaMalloc(&p.c, (size_t)(m * n) * 4));
    BENCH_CHECK(cudaMalloc(&p.b16, (size_t)(k * n) * 2));
    BENCH_CHECK(cudaMalloc(&p.sums, 16));
    return p;
}

static void release(problem *p)
{
    cudaFree(p->a);
    cudaFree(p->b);
    cudaFree(p->c);
    cudaFree(p->a16);
    cudaFree(p->b16);
    cudaFree(p->sums);
}

static double error_of(const problem &p)
{
    const int rows = (int)std::min<int64_t>(p.m, 48);
    BENCH_CHECK(cudaMemset(p.sums, 0, 16));
    error_kernel<<<dim3((unsigned)((p.n + 127) / 128), rows), 128>>>(p.a, p.b, p.c, p.m, p.n, p.k,
                                                                     rows, p.sums);
    double sums[2];
    BENCH_CHECK(cudaMemcpy(sums, p.sums, 16, cudaMemcpyDeviceToHost));
    return std::sqrt(sums[0] / sums[1]);
}

enum way { SCALED, FP16, TF32, THREE, BLAS_SGEMM, BLAS_TF32, BLAS_FP16, WAYS };
static const char *const ways[] = {"scaled", "fp16",        "tf32",       "three",
                                   "SGEMM",  "cuBLAS TF32", "cuBLAS FP16"};

struct runner {
    const gcu_gpu *gpu;
    const blas *cublas;
    void *work;
    size_t bytes;
};

static bool can(const runner &r, way w)
{
    return w < BLAS_SGEMM || r.cublas->there;
}

static gcu_gemm call_of(const runner &r, const problem &p, way w)
{
    gcu_gemm g = {};
    g.form = w == FP16    ? GCU_GEMM_FP16
             : w == TF32  ? GCU_GEMM_TF32
             : w == THREE ? GCU_GEMM_THREE
                          : GCU_GEMM_SCALED;
    g.m = p.m;
    g.n = p.n;
    g.k = p.k;
    g.a = {p.a, GNOMON_F32, p.k, 1};
    g.b = {w == THREE ? (const void *)p.b : p.b16, w == THREE ? GNOMON_F32 : GNOMON_F16, p.n, 1};
    g.c = p.c;
    g.c_row_stride = p.n;
    g.c_col_stride = 1;
    g.alpha = 1.0f;
    g.gpu = r.gpu;
    return g;
}

static void once(runner *r, problem *p, way w)
{
    if (w < BLAS_SGEMM) {
        const gcu_gemm g = call_of(*r, *p, w);
        const size_t bytes = gcu_gemm_work(&g);
        if (bytes > r->bytes) {
            cudaFree(r->work);
            BENCH_CHECK(cudaMalloc(&r->work, bytes));
            r->bytes = bytes;
        }
        BENCH_CHECK(gcu_gemm_run(&g, r->work, bytes, nullptr));
        return;
    }
    const float one = 1.0f, zero = 0.0f;
    const bool half = w == BLAS_FP16;
    if (half && !p->a16) {
        BENCH_CHECK(cudaMalloc(&p->a16, (size_t)(p->m * p->k) * 2));
        float *copy;
        BENCH_CHECK(cudaMalloc(&copy, (size_t)(p->m * p->k) * 4));
        BENCH_CHECK(cudaMemcpy(copy, p->a, (size_t)(p->m * p->k) * 4, cudaMemcpyDeviceToDevice));
        round_kernel<<<1024, 256>>>(copy, p->a16, (size_t)(p->m * p->k));
        BENCH_CHECK(cudaDeviceSynchronize());
        cudaFree(copy);
    }
    const cudaDataType type = half ? CUDA_R_16F : CUDA_R_32F;
    r->cublas->gemm(r->cublas->handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)p->n, (int)p->m, (int)p->k,
                    &one, half ? (const void *)p->b16 : p->b, type, (int)p->n,
                    half ? (const void *)p->a16 : p->a, type, (int)p->k, &zero, p->c, CUDA_R_32F,
                    (int)p->n,
                    w == BLAS_TF32    ? CUBLAS_COMPUTE_32F_FAST_TF32
                    : w == BLAS_SGEMM ? CUBLAS_COMPUTE_32F
                                      : CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT);
}

static void time_shape(bench_json *json, runner *r, int64_t m, int64_t n, int64_t k, double seconds)
{
    problem p = make(m, n, k);
    fill(&p, NORMAL);
    const double read_ms = bench_read_ms(p.a, (size_t)(m * k) * 4), flops = 2.0 * m * n * k;
    double sgemm_ms = 0.0;
    printf("%lld x %lld x %lld (m n k), one read of A %.3f ms\n", (long long)m, (long long)n,
           (long long)k, read_ms);
    const way order[] = {BLAS_SGEMM, SCALED, FP16, THREE, TF32, BLAS_TF32, BLAS_FP16};
    for (way w : order) {
        if (!can(*r, w)) continue;
        BENCH_CHECK(cudaMemset(p.c, 0xFF, (size_t)(m * n) * 4));
        once(r, &p, w);
        const double error = error_of(p);
        const bench_time t = bench_run([&](int) { once(r, &p, w); }, 25, seconds);
        if (w == BLAS_SGEMM) sgemm_ms = t.median_ms;
        printf("  %-12s %8.3f ms  %6.1f TFLOP/s  %5.2f x SGEMM  %4.0f %% of a read  error %.2e\n",
               ways[w], t.median_ms, flops / t.median_ms * 1e-9, sgemm_ms / t.median_ms,
               100.0 * read_ms / t.median_ms, error);
        bench_record(json,
                     "\"what\": \"speed\", \"way\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, "
                     "\"ms\": %.5f, \"least_ms\": %.5f, \"runs\": %d, \"tflops\": %.2f, "
                     "\"read_ms\": %.5f, \"error\": %.4e",
                     ways[w], (long long)m, (long long)n, (long long)k, t.median_ms, t.least_ms,
                     t.runs, flops / t.median_ms * 1e-9, read_ms, error);
    }
    release(&p);
}

static void errors_of(bench_json *json, runner *r, int64_t m, int64_t n, int64_t k, law how)
{
    problem p = make(m, n, k);
    fill(&p, how);
    printf("  %-8s %lld x %lld x %-8lld", laws[how], (long long)m, (long long)n, (long long)k);
    const way order[] = {BLAS_SGEMM, SCALED, THREE, TF32, FP16, BLAS_TF32};
    for (way w : order) {
        if (!can(*r, w) || (w == FP16 && how > NORMAL)) continue;
        BENCH_CHECK(cudaMemset(p.c, 0xFF, (size_t)(m * n) * 4));
        once(r, &p, w);
        const double error = error_of(p);
        printf("  %s %.2e", ways[w], error);
        bench_record(json,
                     "\"what\": \"error\", \"way\": \"%s\", \"law\": \"%s\", \"m\": %lld, "
                     "\"n\": %lld, \"k\": %lld, \"error\": %.4e",
                     ways[w], laws[how], (long long)m, (long long)n, (long long)k, error);
    }
    printf("\n");
    release(&p);
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("gemm", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    const blas cublas = open_blas();
    runner r = {&gpu, &cublas, nullptr, 0};
    const int64_t shapes[][3] = {{8192, 8192, 8192},  {8192, 512, 8192},   {16384, 512, 16384},
                                 {32768, 512, 32768}, {16384, 128, 16384}, {16384, 64, 16384},
                                 {1048576, 64, 1024}, {1048576, 128, 1024}};
    const double seconds = getenv("BENCH_SECONDS") ? atof(getenv("BENCH_SECONDS")) : 0.3;
    for (const auto &s : shapes)
        time_shape(&json, &r, s[0], s[1], s[2], seconds);
    printf("errors against FP64\n");
    for (int k = 6; k <= 20; k++)
        for (law how : {UNIFORM, NORMAL, POSITIVE})
            errors_of(&json, &r, 256, 64, (int64_t)1 << k, how);
    for (law how : {WIDE1, WIDE2, WIDE4, CAUCHY})
        for (int64_t k : {256, 4096, 16384})
            errors_of(&json, &r, 1024, 256, k, how);
    bench_close(&json);
    gcu_gpu_close(&gpu);
    return 0;
}
