/* The (m, tau) model of Ahle and Silvestri 2020 held against a GPU: their Theorem 2 counts the
 * cascade's cost (Lemma 3) in products of two sqrt(m) x sqrt(m) matrices, tau seconds each.
 *
 * 1. tau for several sqrt(m), of one product alone and of one among many, on three machines: cuBLAS
 *    SGEMM; cuBLAS on the tensor cores in fp16; gnomon's random signs (a sketch of sqrt(m) points
 *    from sqrt(m) to sqrt(m) dimensions, its making included, at single precision).
 * 2. Cascades over a range of d, k and zeta on the same machines: with stored factors, every level
 *    one product on reshaped points; and gnomon's own.
 * 3. For the same points: dense products with the matrix stored, and gnomon's rademacher, srht,
 *    very-sparse and sjlt, for the crossovers.
 *
 * All points and sketches lie in the GPU's memory. scripts/results/make.py predicts and compares.
 *
 *   model [--json FILE] */
#include "bench.cuh"

#include <gnomon.h>

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <cmath>
#include <dlfcn.h>

static const int64_t POINTS = 256, D_MOST = 1 << 20, K_MOST = 1024;
static const double SECONDS = 0.1; /* a case, at most, if five runs are not longer */

/* Opened by name, so that the program runs without it. */
static struct {
    cublasHandle_t handle;
    decltype(&cublasCreate_v2) create;
    cublasStatus_t (*batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void *, const void *, cudaDataType, int, long long,
                              const void *, cudaDataType, int, long long, const void *, void *,
                              cudaDataType, int, long long, int, cublasComputeType_t,
                              cublasGemmAlgo_t); /* cublasGemmStridedBatchedEx */
} blas;

static gnomon_context *ctx, *host_ctx;
/* On the GPU: points, stored matrices, sums and other sums, in fp32 and in fp16. */
static float *points, *stored, *sums, *other;
static __half *half_points, *half_stored, *half_sums, *half_other;
static bench_json json;

static bool open_blas()
{
    void *library = dlopen("libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
    if (!library) return false;
    blas.create = (decltype(blas.create))dlsym(library, "cublasCreate_v2");
    blas.batched = (decltype(blas.batched))dlsym(library, "cublasGemmStridedBatchedEx");
    return blas.create && blas.batched && blas.create(&blas.handle) == CUBLAS_STATUS_SUCCESS;
}

/* count times y (n x k) = x (n x c) s^T, s k x c, all rows contiguous and one after another. */
static void multiply(bool half, int64_t n, int64_t k, int64_t c, const void *s, const void *x,
                     void *y, int64_t count = 1)
{
    const float one = 1.0f / sqrtf((float)c), zero = 0.0f; /* in fp16 sums must not grow */
    const cudaDataType type = half ? CUDA_R_16F : CUDA_R_32F;
    const cublasStatus_t status =
        blas.batched(blas.handle, CUBLAS_OP_T, CUBLAS_OP_N, (int)k, (int)n, (int)c, &one, s, type,
                     (int)c, k * c, x, type, (int)c, n * c, &zero, y, type, (int)k, n * k,
                     (int)count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cublasGemmStridedBatchedEx: %d\n", (int)status);
        exit(1);
    }
}

/* Median milliseconds of a sketch; NaN, with the reason printed, when it can't be had. */
static double sketch_ms(gnomon_kind kind, int64_t n, int64_t k, int64_t d, int64_t zeta = 0)
{
    gnomon_descriptor what = GNOMON_DESCRIPTOR_INIT;
    what.kind = kind;
    what.k = k;
    what.d = d;
    what.zeta = zeta;
    what.seed = 1;
    gnomon_operator *op = nullptr;
    gnomon_matrix x = gnomon_matrix_rowmajor(points, GNOMON_F32, n, d);
    gnomon_matrix y = gnomon_matrix_rowmajor(sums, GNOMON_F32, n, k);
    x.memory = y.memory = GNOMON_DEVICE_MEMORY;
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.allow_nonfinite = 1; /* the others do not look either */
    gnomon_status status = gnomon_operator_create(ctx, &what, &op);
    if (status == GNOMON_OK) status = gnomon_sketch(ctx, op, &x, &y, &options);
    double ms = NAN;
    if (status == GNOMON_OK)
        ms = bench_run([&](int) { status = gnomon_sketch(ctx, op, &x, &y, &options); }, 25, SECONDS)
                 .median_ms;
    if (status != GNOMON_OK)
        printf("%s, n %lld, k %lld, d %lld: %s\n", gnomon_kind_name(kind), (long long)n,
               (long long)k, (long long)d, gnomon_last_error(ctx));
    gnomon_operator_destroy(op);
    return status == GNOMON_OK ? ms : NAN;
}

/* The largest difference between the GPU's sketch and the CPU's, over the largest number; NaN when
 * the GPU does not take the job. */
static double check(gnomon_kind kind, int64_t k, int64_t d, int64_t zeta)
{
    const int64_t n = 19;
    gnomon_descriptor what = GNOMON_DESCRIPTOR_INIT;
    what.kind = kind;
    what.k = k;
    what.d = d;
    what.zeta = zeta;
    what.seed = 2;
    std::vector<float> in((size_t)(n * d)), on_cpu((size_t)(n * k)), on_gpu(on_cpu.size());
    BENCH_CHECK(cudaMemcpy(in.data(), points, in.size() * 4, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemset(sums, 0xFF, on_gpu.size() * 4));
    for (int gpu = 0; gpu < 2; gpu++) {
        gnomon_context *c = gpu ? ctx : host_ctx;
        gnomon_operator *op = nullptr;
        gnomon_matrix x = gnomon_matrix_rowmajor(gpu ? points : in.data(), GNOMON_F32, n, d);
        gnomon_matrix y = gnomon_matrix_rowmajor(gpu ? sums : on_cpu.data(), GNOMON_F32, n, k);
        if (gpu) x.memory = y.memory = GNOMON_DEVICE_MEMORY;
        gnomon_status status = gnomon_operator_create(c, &what, &op);
        if (status == GNOMON_OK) status = gnomon_sketch(c, op, &x, &y, nullptr);
        gnomon_operator_destroy(op);
        if (status != GNOMON_OK) return NAN;
    }
    BENCH_CHECK(cudaMemcpy(on_gpu.data(), sums, on_gpu.size() * 4, cudaMemcpyDeviceToHost));
    double largest = 0, worst = 0;
    for (size_t i = 0; i < on_cpu.size(); i++) {
        const double off = std::fabs((double)on_gpu[i] - on_cpu[i]);
        worst = off >= 0 ? std::fmax(worst, off) : INFINITY;
        largest = std::fmax(largest, std::fabs(on_cpu[i]));
    }
    return worst / largest;
}

static bool check_all()
{
    static const struct {
        gnomon_kind kind;
        int64_t zeta;
    } kinds[] = {{GNOMON_RADEMACHER, 0}, {GNOMON_SRHT, 0},      {GNOMON_VERY_SPARSE, 0},
                 {GNOMON_SJLT, 0},       {GNOMON_KRONECKER, 2}, {GNOMON_KRONECKER, 16}};
    bool right = true;
    printf("GPU beside CPU:");
    for (const auto &one : kinds) {
        const double off = check(one.kind, 64, 16384, one.zeta);
        printf(" %s %.1e", gnomon_kind_name(one.kind), off);
        if (off > 1e-5) right = false;
    }
    printf("\n");
    return right;
}

/* ---- tau ---- */

static void record_tau(const char *system, int64_t side, double alone_ms, double among_ms)
{
    printf("side %-5lld %-7s alone %10.3f us, among many %10.4f us (%6.1f TFLOP/s)\n",
           (long long)side, system, 1e3 * alone_ms, 1e3 * among_ms,
           2e-9 * (double)(side * side * side) / among_ms);
    bench_record(&json,
                 "\"table\": \"tau\", \"system\": \"%s\", \"side\": %lld, \"alone_us\": %.6g, "
                 "\"among_us\": %.6g",
                 system, (long long)side, 1e3 * alone_ms, 1e3 * among_ms);
}

static void measure_tau()
{
    const int64_t numbers = 1 << 25, in_a_row = 16;
    for (int64_t side = 16; side <= 4096; side *= 2) {
        const int64_t count = std::max(numbers / (side * side), (int64_t)1);
        for (int half = 0; half < 2 && blas.handle; half++) {
            const void *s = half ? (void *)half_stored : stored,
                       *x = half ? (void *)half_points : points;
            void *y = half ? (void *)half_sums : sums;
            const double alone = bench_run(
                                     [&](int) {
                                         for (int i = 0; i < in_a_row; i++)
                                             multiply(half, side, side, side, s, x, y);
                                     },
                                     25, SECONDS)
                                     .median_ms /
                                 in_a_row;
            const double among =
                bench_run([&](int) { multiply(half, side, side, side, s, x, y, count); }, 25,
                          SECONDS)
                    .median_ms /
                (double)count;
            record_tau(half ? "fp16" : "sgemm", side, alone, among);
        }
        const double alone = sketch_ms(GNOMON_RADEMACHER, side, side, side);
        const double among = sketch_ms(GNOMON_RADEMACHER, side * count, side, side) / (double)count;
        if (alone > 0 && among > 0) record_tau("gnomon", side, alone, among);
    }
}

/* ---- cascades and their rivals ---- */

static void record_time(const char *table, const char *system, int64_t k, int64_t d, int64_t zeta,
                        double ms)
{
    if (!(ms > 0)) return;
    printf("%s %s %.4f; ", zeta ? "cascade" : "", system, ms);
    bench_record(&json,
                 "\"table\": \"%s\", \"system\": \"%s\", \"points\": %lld, \"k\": %lld, \"d\": "
                 "%lld, \"zeta\": %lld, \"ms\": %.6g",
                 table, system, (long long)POINTS, (long long)k, (long long)d, (long long)zeta, ms);
}

/* Level by level; what one level leaves is the next one's points, without a copy. */
static void cascade(bool half, int64_t k, int64_t d, int64_t zeta)
{
    const char *x = half ? (char *)half_points : (char *)points;
    const char *s = half ? (char *)half_stored : (char *)stored;
    char *y = half ? (char *)half_sums : (char *)sums;
    char *next = half ? (char *)half_other : (char *)other;
    int64_t blocks = d / k, before = k;
    for (int64_t t = 1; blocks > 1; t++) {
        blocks /= zeta;
        const int64_t rows = blocks > 1 ? t * k : k;
        multiply(half, POINTS * blocks, rows, zeta * before, s, x, y);
        s += rows * zeta * before * (half ? 2 : 4);
        before = rows;
        x = y;
        std::swap(y, next);
    }
}

static void measure_cascades()
{
    static const struct {
        const char *name;
        gnomon_kind kind;
    } rivals[] = {{"rademacher", GNOMON_RADEMACHER},
                  {"srht", GNOMON_SRHT},
                  {"very-sparse", GNOMON_VERY_SPARSE},
                  {"sjlt", GNOMON_SJLT}};
    for (int64_t k = 64; k <= K_MOST; k *= 4)
        for (int64_t d = 4096; d <= D_MOST; d *= 4) {
            printf("k %lld d %lld, ms: ", (long long)k, (long long)d);
            for (int half = 0; half < 2 && blas.handle; half++)
                record_time("rival", half ? "fp16" : "sgemm", k, d, 0,
                            bench_run(
                                [&](int) {
                                    multiply(half, POINTS, k, d,
                                             half ? (void *)half_stored : stored,
                                             half ? (void *)half_points : points,
                                             half ? (void *)half_sums : sums);
                                },
                                25, SECONDS)
                                .median_ms);
            for (const auto &r : rivals)
                record_time("rival", r.name, k, d, 0, sketch_ms(r.kind, POINTS, k, d));
            for (int64_t zeta = 2; zeta <= 16; zeta *= zeta) {
                int64_t reach = k;
                while (reach < d)
                    reach *= zeta;
                if (reach != d) continue; /* d / k is no power of this zeta */
                printf("\n  zeta %lld: ", (long long)zeta);
                for (int half = 0; half < 2 && blas.handle; half++)
                    record_time(
                        "cascade", half ? "fp16" : "sgemm", k, d, zeta,
                        bench_run([&](int) { cascade(half, k, d, zeta); }, 25, SECONDS).median_ms);
                record_time("cascade", "gnomon", k, d, zeta,
                            sketch_ms(GNOMON_KRONECKER, POINTS, k, d, zeta));
            }
            printf("\n");
            fflush(stdout);
        }
}

static __global__ void to_half(const float *from, __half *to, int64_t count)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        to[i] = __float2half_rn(from[i]);
}

/* Normal numbers, and the same in fp16. */
static void make(float **x, __half **half, int64_t count, uint64_t seed)
{
    BENCH_CHECK(cudaMalloc(x, (size_t)count * sizeof **x));
    BENCH_CHECK(cudaMalloc(half, (size_t)count * sizeof **half));
    bench_fill(*x, (size_t)count, seed);
    to_half<<<1024, 256>>>(*x, *half, count);
    BENCH_CHECK(cudaGetLastError());
}

int main(int argc, char **argv)
{
    json = bench_open("model", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    if (gnomon_context_create(&options, &host_ctx) != GNOMON_OK) return 1;
    options.device = "cuda";
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) {
        fprintf(stderr, "model: %s\n", gnomon_last_error(nullptr));
        return 1;
    }
    if (!open_blas()) printf("cuBLAS isn't there: gnomon alone\n");
    make(&points, &half_points, POINTS * D_MOST, 1);
    make(&stored, &half_stored, K_MOST * D_MOST, 2);
    make(&sums, &half_sums, POINTS * D_MOST, 3);
    make(&other, &half_other, POINTS * D_MOST, 4);
    BENCH_CHECK(cudaDeviceSynchronize());
    const bool right = check_all();
    const double read = bench_read_ms(points, (size_t)(POINTS * D_MOST) * sizeof *points);
    printf("reading %lld points of 2^20 coordinates once: %.4f ms\n", (long long)POINTS, read);
    bench_record(&json, "\"table\": \"read\", \"bytes\": %lld, \"ms\": %.6g",
                 (long long)(POINTS * D_MOST) * 4, read);
    measure_tau();
    measure_cascades();
    bench_close(&json);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(host_ctx);
    if (!right) fprintf(stderr, "model: a sketch of the GPU's is not the CPU's\n");
    return !right;
}
