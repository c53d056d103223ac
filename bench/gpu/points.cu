/* Dense operators with many points and few rows (src/cuda/project/dense/points.cuh): against one
 * read of the points, against cuBLAS with the operator stored, and their accuracy against FP64.
 *
 *   points [--json FILE] */
#include "bench.cuh"

#include "cuda/project/family.h"

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <gnomon.h>

#define CUBLAS_CHECK(call)                                                               \
    do {                                                                                 \
        const cublasStatus_t bench_status = (call);                                      \
        if (bench_status != CUBLAS_STATUS_SUCCESS) {                                     \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, bench_status); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

struct shape {
    gnomon_kind kind;
    gnomon_dtype dtype;
    bool across; /* coordinates contiguous */
    int64_t n, blocks, cols, rows;
};

/* block with 32, 64 and 128 blocks on a batch of 256 points of 2^20 coordinates, to 1024; ordinary
 * shapes */
static const shape shapes[] = {
    {GNOMON_RADEMACHER, GNOMON_F32, false, 256, 32, 32768, 32},
    {GNOMON_RADEMACHER, GNOMON_F32, false, 256, 64, 16384, 16},
    {GNOMON_RADEMACHER, GNOMON_F32, false, 256, 128, 8192, 8},
    {GNOMON_RADEMACHER, GNOMON_F32, true, 256, 32, 32768, 32},
    {GNOMON_RADEMACHER, GNOMON_F32, true, 256, 64, 16384, 16},
    {GNOMON_RADEMACHER, GNOMON_F32, true, 256, 128, 8192, 8},
    {GNOMON_RADEMACHER, GNOMON_F32, false, 1000000, 1, 768, 128},
    {GNOMON_RADEMACHER, GNOMON_F32, true, 1000000, 1, 768, 128},
    {GNOMON_RADEMACHER, GNOMON_F32, false, 100000, 1, 4096, 256},
    {GNOMON_RADEMACHER, GNOMON_F32, false, 100000, 1, 4096, 64},
    {GNOMON_ACHLIOPTAS, GNOMON_F32, false, 256, 32, 32768, 32},
    {GNOMON_GAUSSIAN, GNOMON_F32, false, 256, 32, 32768, 32},
    {GNOMON_ACHLIOPTAS, GNOMON_F32, false, 1000000, 1, 768, 128},
    {GNOMON_RADEMACHER, GNOMON_F16, false, 256, 32, 32768, 32},
    {GNOMON_RADEMACHER, GNOMON_F16, false, 1000000, 1, 768, 128},
};

static cublasHandle_t blas;

static __global__ void to_half(const float *from, __half *to, int64_t count)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        to[i] = __float2half_rn(from[i]);
}

/* Values as docs/reference/operators.md has them, one at a time: the operator to compare with. */
static __device__ float value(const gcu_stream s, gcu_stream tail, gcu_gaussian16 g,
                              gnomon_kind kind, int64_t row, int64_t col)
{
    const uint32_t block = (uint32_t)(row >> 2);
    const int i = row & 3;
    if (kind == GNOMON_RADEMACHER)
        return gcu_word(gcu_call(s, block, col >> 5), i) >> (col & 31) & 1 ? -1.0f : 1.0f;
    if (kind == GNOMON_ACHLIOPTAS)
        return (float)gcu_achlioptas_digit(gcu_word(gcu_call(s, block, col >> 3), i), col & 7);
    const uint32_t w = gcu_word(gcu_call(s, block, col >> 1), i);
    const uint32_t h = col & 1 ? w >> 16 : w & 0xFFFF;
    uint16_t bits = g.magnitude[h & 0x7FFF];
    if (bits == 0x7E00) bits = gcu_gaussian16_tail(g, gcu_word(gcu_call(tail, block, col), i));
    __half_raw raw;
    raw.x = (unsigned short)(bits | (h & 0x8000));
    return __half2float(__half(raw));
}

static __global__ void store_operator(gcu_stream s, gcu_stream tail, gcu_gaussian16 g,
                                      gnomon_kind kind, float *to, int64_t rows, int64_t cols)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += stride)
        to[i] = value(s, tail, g, kind, i / cols, i % cols);
}

/* One block of threads a folded point: y[v][row] in fp64. */
static __global__ void exact(gcu_points x, const float *s, int64_t rows, double *y)
{
    const int64_t v = blockIdx.x, b = v / x.n, i = v % x.n;
    __shared__ double part[256];
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0.0;
        for (int64_t q = threadIdx.x; q < x.block_cols; q += blockDim.x) {
            const int64_t at = i * x.row_stride + b * x.block_stride + q * x.col_stride;
            const double one = x.dtype == GNOMON_F16
                                   ? (double)__half2float(static_cast<const __half *>(x.data)[at])
                                   : (double)static_cast<const float *>(x.data)[at];
            sum += one * (double)s[row * x.block_cols + q];
        }
        part[threadIdx.x] = sum;
        __syncthreads();
        for (int d = 128; d > 0; d /= 2) {
            if ((int)threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
            __syncthreads();
        }
        if (threadIdx.x == 0) y[v * rows + row] = part[0];
        __syncthreads();
    }
}

/* ||y - exact|| / ||exact|| for folded points of block 0; y row i holds rows numbers a block. */
static double error_of(const float *y, const std::vector<double> &truth, int64_t points,
                       int64_t rows, int64_t stride)
{
    std::vector<float> host((size_t)(points * stride));
    BENCH_CHECK(cudaMemcpy(host.data(), y, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double wrong = 0.0, all = 0.0;
    for (int64_t i = 0; i < points; i++) {
        for (int64_t a = 0; a < rows; a++) {
            const double t = truth[(size_t)(i * rows + a)], e = host[(size_t)(i * stride + a)] - t;
            wrong += e * e;
            all += t * t;
        }
    }
    return sqrt(wrong / all);
}

template <typename T> static T *device_memory(size_t count)
{
    T *p;
    BENCH_CHECK(cudaMalloc(&p, count * sizeof(T)));
    return p;
}

static void measure(const shape &s, const gcu_gpu *gpu, bench_json *json)
{
    const int64_t d = s.cols * s.blocks, all = s.n * d, k = s.rows * s.blocks;
    float *x = device_memory<float>((size_t)all), *y = device_memory<float>((size_t)(s.n * k));
    __half *half_x = device_memory<__half>((size_t)all);
    bench_fill(x, (size_t)all, 3);
    to_half<<<1024, 256>>>(x, half_x, all);
    const bool half = s.dtype == GNOMON_F16;

    gnomon_simple a = {};
    a.kind = s.kind;
    a.precision = GNOMON_F16;
    a.key0 = 12345;
    a.rows = s.rows;
    a.cols = s.cols;
    gcu_task t = {};
    t.a = &a;
    t.rows = s.rows;
    t.x.data = half ? (void *)half_x : x;
    t.x.dtype = s.dtype;
    t.x.row_stride = s.across ? 1 : d;
    t.x.col_stride = s.across ? s.n : 1;
    t.x.block_stride = s.cols * t.x.col_stride;
    t.x.n = s.n;
    t.x.blocks = s.blocks;
    t.x.block_cols = s.cols;
    t.x.end = d;
    t.out = {y, GNOMON_F32, k, 1, k, s.blocks, 0, 0, k, 1.0, 1.0, 0.0, nullptr, true, true};
    t.gpu = gpu;
    t.work_bytes = gcu_dense_points.best_work(&t);
    t.work = device_memory<char>(t.work_bytes + 1);
    BENCH_CHECK(cudaMemset(y, 0xFF, (size_t)(s.n * k) * sizeof(float)));
    const bench_time ours = bench_run([&](int) { BENCH_CHECK(gcu_dense_points.run(&t)); });
    const double floor = bench_read_ms(t.x.data, (size_t)all * (half ? 2 : 4));

    /* the operator stored, and FP64 sums of block 0's first points */
    const gcu_stream stream =
        gcu_stream_of(&a, s.kind == GNOMON_RADEMACHER   ? GNOMON_TAG_SIGN
                          : s.kind == GNOMON_ACHLIOPTAS ? GNOMON_TAG_ACHLIOPTAS
                                                        : GNOMON_TAG_GAUSSIAN16);
    float *stored = device_memory<float>((size_t)(s.rows * s.cols));
    __half *half_stored = device_memory<__half>((size_t)(s.rows * s.cols));
    store_operator<<<1024, 256>>>(stream, gcu_stream_of(&a, GNOMON_TAG_GAUSSIAN16_TAIL),
                                  gpu->gaussian16, s.kind, stored, s.rows, s.cols);
    to_half<<<1024, 256>>>(stored, half_stored, s.rows * s.cols);
    const int64_t checked = s.n < 64 ? s.n : 64;
    double *sums = device_memory<double>((size_t)(checked * s.rows));
    exact<<<(unsigned)checked, 256>>>(t.x, stored, s.rows, sums);
    BENCH_CHECK(cudaGetLastError());
    std::vector<double> truth((size_t)(checked * s.rows));
    BENCH_CHECK(
        cudaMemcpy(truth.data(), sums, truth.size() * sizeof(double), cudaMemcpyDeviceToHost));
    const double error = error_of(y, truth, checked, s.rows, k);

    /* cuBLAS, points contiguous: all blocks of all points in one product */
    double sgemm = 0.0, hgemm = 0.0, sgemm_error = 0.0;
    if (!s.across) {
        const float one = 1.0f, zero = 0.0f;
        const int m = (int)s.rows, n = (int)(s.n * s.blocks), c = (int)s.cols;
        sgemm = bench_run([&](int) {
                    CUBLAS_CHECK(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, c, &one, stored,
                                             c, x, c, &zero, y, m));
                }).median_ms;
        /* block 0 of point i is column i blocks: rows of k numbers again */
        sgemm_error = error_of(y, truth, checked, s.rows, k);
        hgemm = bench_run([&](int) {
                    CUBLAS_CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, c, &one,
                                              half_stored, CUDA_R_16F, c, half_x, CUDA_R_16F, c,
                                              &zero, y, CUDA_R_32F, m, CUBLAS_COMPUTE_32F,
                                              CUBLAS_GEMM_DEFAULT));
                }).median_ms;
    }
    const char *kind = s.kind == GNOMON_RADEMACHER   ? "rademacher"
                       : s.kind == GNOMON_ACHLIOPTAS ? "achlioptas"
                                                     : "gaussian fp16";
    printf("%-13s %s %s n %7lld blocks %3lld cols %5lld rows %3lld: %7.4f ms, read %7.4f, ratio "
           "%5.2f; SGEMM %8.4f, FP16 %7.4f; error %.1e (SGEMM %.1e)\n",
           kind, half ? "f16" : "f32", s.across ? "coords" : "points", (long long)s.n,
           (long long)s.blocks, (long long)s.cols, (long long)s.rows, ours.median_ms, floor,
           ours.median_ms / floor, sgemm, hgemm, error, sgemm_error);
    bench_record(json,
                 "\"kind\": \"%s\", \"dtype\": \"%s\", \"contiguous\": \"%s\", \"n\": %lld, "
                 "\"blocks\": %lld, \"cols\": %lld, \"rows\": %lld, \"ms\": %.5f, \"least_ms\": "
                 "%.5f, \"read_ms\": %.5f, \"sgemm_ms\": %.5f, \"fp16_gemm_ms\": %.5f, "
                 "\"error\": %.3e, \"sgemm_error\": %.3e",
                 kind, half ? "f16" : "f32", s.across ? "coordinates" : "points", (long long)s.n,
                 (long long)s.blocks, (long long)s.cols, (long long)s.rows, ours.median_ms,
                 ours.least_ms, floor, sgemm, hgemm, error, sgemm_error);
    for (void *p : {(void *)x, (void *)y, (void *)half_x, (void *)stored, (void *)half_stored,
                    (void *)sums, t.work})
        BENCH_CHECK(cudaFree(p));
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("points", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    CUBLAS_CHECK(cublasCreate(&blas));
    for (const shape &s : shapes)
        measure(s, &gpu, &json);
    bench_close(&json);
    gcu_gpu_close(&gpu);
    return 0;
}
