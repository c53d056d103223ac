/* Dimensionality reduction as in a thesis on tensor cores (2020), on today's GPU: its four
 * algorithms with a stored matrix, beside ours for the same job, with and without transfers.
 *
 *   matrix-vector   the M x N matrix times one vector, cublasSgemv
 *   batch           the M x N matrix times 256 vectors, on tensor cores
 *   block           (I_r (x) A) times one vector: A, k x c, times the vector's r parts
 *   batch-block     the same for 256 vectors, all parts of all vectors in one product
 *
 * The matrices are fp32 in memory and go through the tensor cores in fp16 with fp32 sums, as the
 * thesis's cublasGemmEx with CUBLAS_TENSOR_OP_MATH had it. batch-fp16 and batch-block-fp16 are the
 * same, without transfers, with operands already stored in fp16. Transfers are those of the
 * operands and the result, from and to pinned memory (--pageable: pageable, as in the thesis); ours
 * has no matrix to move.
 *
 * A case is run 100 times, or as often as its time allows (but 5 times): 'runs' says how often.
 *
 *   thesis [--part n|m] [--runs 100] [--seconds 0.6] [--pageable] [--json FILE]
 *
 * --seconds: for a case, at most. */
#include "bench.cuh"

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

static int runs = 100;
static double seconds = 0.6;
static bench_json json;
static cublasHandle_t blas;
static gnomon_context *ctx;
static cudaStream_t stream;

/* Memory for the largest case; sizes in fp32 numbers. */
static const int64_t N_MOST = 1 << 20, BATCH = 256, A_MOST = (int64_t)1 << 30;
static float *a, *x, *y;                /* on the GPU */
static __half *half_a, *half_x;         /* the same operands */
static float *host_a, *host_x, *host_y; /* on the host */

static void report(const char *algorithm, int64_t m, int64_t n, int64_t r, int64_t batch,
                   bool transfers, const bench_time &t)
{
    printf("%-18s M %7lld N %7lld r %3lld batch %3lld %s %10.4f ms, variance %.3g, median %.4f, "
           "%d runs\n",
           algorithm, (long long)m, (long long)n, (long long)r, (long long)batch,
           transfers ? "with   " : "without", t.mean_ms, t.variance_ms2, t.median_ms, t.runs);
    bench_record(&json,
                 "\"algorithm\": \"%s\", \"M\": %lld, \"N\": %lld, \"r\": %lld, \"batch\": %lld, "
                 "\"transfers\": %s, \"mean_ms\": %.6f, \"variance_ms2\": %.6g, \"median_ms\": "
                 "%.6f, \"runs\": %d",
                 algorithm, (long long)m, (long long)n, (long long)r, (long long)batch,
                 transfers ? "true" : "false", t.mean_ms, t.variance_ms2, t.median_ms, t.runs);
}

static void upload(float *to, const float *from, int64_t count)
{
    BENCH_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyHostToDevice, stream));
}

static void download(float *to, const float *from, int64_t count)
{
    BENCH_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

/* y (rows x columns) = a (rows x depth) times x (depth x columns), column-major as in cuBLAS. */
static void product(int64_t rows, int64_t columns, int64_t depth, bool half)
{
    const float one = 1.0f, zero = 0.0f;
    const cudaDataType in = half ? CUDA_R_16F : CUDA_R_32F;
    const void *left = half ? (const void *)half_a : a, *right = half ? (const void *)half_x : x;
    CUBLAS_CHECK(cublasGemmEx(
        blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)rows, (int)columns, (int)depth, &one, left, in,
        (int)rows, right, in, (int)depth, &zero, y, CUDA_R_32F, (int)rows,
        half ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
}

static void matrix_vector(int64_t m, int64_t n)
{
    for (int transfers = 0; transfers < 2; transfers++)
        report("matrix-vector", m, n, 1, 1, transfers,
               bench_run(
                   [&](int) {
                       const float one = 1.0f, zero = 0.0f;
                       if (transfers) {
                           upload(a, host_a, m * n);
                           upload(x, host_x, n);
                       }
                       CUBLAS_CHECK(cublasSgemv(blas, CUBLAS_OP_N, (int)m, (int)n, &one, a, (int)m,
                                                x, 1, &zero, y, 1));
                       if (transfers) download(host_y, y, m);
                   },
                   runs, seconds, stream));
}

/* batch vectors cut into r parts each; r = 1: the whole matrix. Without transfers only when the
 * operands are stored in fp16. */
static void products(const char *name, int64_t m, int64_t n, int64_t r, int64_t batch, bool half)
{
    const int64_t k = m / r, c = n / r;
    for (int transfers = 0; transfers < (half ? 1 : 2); transfers++)
        report(name, m, n, r, batch, transfers,
               bench_run(
                   [&](int) {
                       if (transfers) {
                           upload(a, host_a, k * c);
                           upload(x, host_x, n * batch);
                       }
                       product(k, r * batch, c, half);
                       if (transfers) download(host_y, y, m * batch);
                   },
                   runs, seconds, stream));
}

static void ours(const char *name, gnomon_kind kind, int64_t m, int64_t n, int64_t r, int64_t batch)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = kind;
    d.k = m;
    d.d = n;
    d.seed = 7;
    if (kind == GNOMON_BLOCK) d.blocks = r;
    gnomon_operator *op = nullptr;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK) {
        printf("%s: %s\n", name, gnomon_last_error(ctx));
        return;
    }
    for (int transfers = 0; transfers < 2; transfers++) {
        gnomon_matrix points = gnomon_matrix_rowmajor(transfers ? host_x : x, GNOMON_F32, batch, n);
        gnomon_matrix sketch = gnomon_matrix_rowmajor(transfers ? host_y : y, GNOMON_F32, batch, m);
        points.memory = sketch.memory = transfers ? GNOMON_HOST : GNOMON_DEVICE_MEMORY;
        gnomon_status status = GNOMON_OK;
        gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
        options.allow_nonfinite = 1; /* the others do not look either */
        options.device_stream = stream;
        const bench_time t = bench_run(
            [&](int) {
                if (status == GNOMON_OK)
                    status = gnomon_sketch(ctx, op, &points, &sketch, &options);
            },
            runs, seconds, stream);
        if (status == GNOMON_OK)
            report(name, m, n, r, batch, transfers, t);
        else
            printf("%s: %s\n", name, gnomon_last_error(ctx));
    }
    gnomon_operator_destroy(op);
}

static const int64_t blocks[] = {32, 64, 128};

static void n_sweep()
{
    const int64_t m = 1024;
    for (int64_t n = m; n <= N_MOST; n *= 4) {
        matrix_vector(m, n);
        products("batch", m, n, 1, BATCH, false);
        products("batch-fp16", m, n, 1, BATCH, true);
        for (int64_t r : blocks) {
            products("block", m, n, r, 1, false);
            products("batch-block", m, n, r, BATCH, false);
            products("batch-block-fp16", m, n, r, BATCH, true);
        }
        for (int64_t batch : {(int64_t)1, BATCH}) {
            ours("ours-rademacher", GNOMON_RADEMACHER, m, n, 1, batch);
            ours("ours-very-sparse", GNOMON_VERY_SPARSE, m, n, 1, batch);
            for (int64_t r : blocks)
                ours("ours-block", GNOMON_BLOCK, m, n, r, batch);
            ours("ours-kronecker", GNOMON_KRONECKER, m, n, 1, batch);
        }
    }
}

static void m_sweep()
{
    for (int64_t m = 1024; m <= N_MOST; m *= 4) {
        for (int64_t r : blocks) {
            products("batch-block", m, N_MOST, r, BATCH, false);
            ours("ours-block", GNOMON_BLOCK, m, N_MOST, r, BATCH);
        }
    }
}

static __global__ void to_half(const float *from, __half *to, int64_t count)
{
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        to[i] = __float2half_rn(from[i]);
}

static float *host_memory(int64_t count, bool pageable)
{
    float *p = nullptr;
    if (!pageable)
        BENCH_CHECK(cudaMallocHost(&p, count * sizeof(float)));
    else
        p = static_cast<float *>(malloc(count * sizeof(float)));
    if (!p) exit(1);
    return p;
}

int main(int argc, char **argv)
{
    const char *part = "";
    bool pageable = false;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--part") == 0) part = argv[i + 1];
        if (i + 1 < argc && strcmp(argv[i], "--runs") == 0) runs = atoi(argv[i + 1]);
        if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) seconds = atof(argv[i + 1]);
        if (strcmp(argv[i], "--pageable") == 0) pageable = true;
    }
    json = bench_open("thesis", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cuda";
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) {
        fprintf(stderr, "%s\n", gnomon_last_error(nullptr));
        return 1;
    }
    CUBLAS_CHECK(cublasCreate(&blas));
    BENCH_CHECK(cudaStreamCreate(&stream));
    CUBLAS_CHECK(cublasSetStream(blas, stream));
    BENCH_CHECK(cudaMalloc(&a, A_MOST * sizeof(float)));
    BENCH_CHECK(cudaMalloc(&x, N_MOST * BATCH * sizeof(float)));
    BENCH_CHECK(cudaMalloc(&y, N_MOST * BATCH * sizeof(float)));
    BENCH_CHECK(cudaMalloc(&half_a, A_MOST * sizeof(__half)));
    BENCH_CHECK(cudaMalloc(&half_x, N_MOST * BATCH * sizeof(__half)));
    host_a = host_memory(A_MOST, pageable);
    host_x = host_memory(N_MOST * BATCH, pageable);
    host_y = host_memory(N_MOST * BATCH, pageable);
    bench_fill(a, A_MOST, 1);
    bench_fill(x, N_MOST * BATCH, 2);
    to_half<<<1024, 256>>>(a, half_a, A_MOST);
    to_half<<<1024, 256>>>(x, half_x, N_MOST * BATCH);
    BENCH_CHECK(cudaMemcpy(host_a, a, A_MOST * sizeof(float), cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemcpy(host_x, x, N_MOST * BATCH * sizeof(float), cudaMemcpyDeviceToHost));
    memset(host_y, 1, N_MOST * BATCH * sizeof(float));
    printf("reading the batch at N = 2^20 once: %.4f ms\n",
           bench_read_ms(x, N_MOST * BATCH * sizeof(float)));
    if (strcmp(part, "m") != 0) n_sweep();
    if (strcmp(part, "n") != 0) m_sweep();
    bench_close(&json);
    gnomon_context_destroy(ctx);
    return 0;
}
