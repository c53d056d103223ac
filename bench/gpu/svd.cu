/* Randomized SVD of matrices in the GPU's memory: times by phase beside the same algorithm with
 * cuBLAS SGEMM, cuSOLVER's geqrf, orgqr and gesvdj (Ootomo & Yokota 2023, Figure 8) and beside
 * cuSOLVER's gesvdr; accuracy on their matrices (Figure 7) beside that algorithm in fp32 and with
 * TF32 products.
 *
 * usage: svd [--json FILE] [--times-only | --accuracy-only] [--n N] [--seeds N] */
#include "bench.cuh"
#include "calls.cuh"

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <gnomon.h>

#include <cmath>

static gnomon_context *ctx;
static cublasHandle_t blas;
static cusolverDnHandle_t solver;
static cusolverDnParams_t params;

/* ---- small kernels ---- */

template <typename From, typename To>
static __global__ void convert(const From *from, size_t count, To *to)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = (To)from[i];
}

/* Row i of a row-major matrix times s[i]. */
template <typename T>
static __global__ void scale_rows(T *a, size_t rows, size_t cols, const double *s)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < rows * cols;
         i += (size_t)gridDim.x * blockDim.x)
        a[i] = (T)((double)a[i] * s[i / cols]);
}

static __global__ void cauchy(float *a, int n, uint64_t seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)n * n;
         i += (size_t)gridDim.x * blockDim.x) {
        const float x = 2e-3f * bench_uniform(seed, i / n) - 1e-3f;
        const float y = 2e-3f * bench_uniform(seed + 1, i % n) - 1e-3f;
        a[i] = 1.0f / (fabsf(x - y) + 1e-3f);
    }
}

static __global__ void add_noise(float *a, size_t count, uint64_t seed, float size)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        const float u = bench_uniform(seed, 2 * i), v = bench_uniform(seed, 2 * i + 1);
        a[i] += size * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
    }
}

/* ---- factors, and what they leave ---- */

/* U n x k and Vt k x n, row-major, in device memory. */
struct factors {
    float *u, *vt;
    double *s; /* host */
    int64_t n, k;
};

static factors make_factors(int64_t n, int64_t k)
{
    return {device<float>(n * k), device<float>(k * n), new double[k + 16], n, k};
}

static void drop(factors *f)
{
    BENCH_CHECK(cudaFree(f->u));
    BENCH_CHECK(cudaFree(f->vt));
    delete[] f->s;
}

/* |A - U S Vt|_F / |A|_F in double precision, by pieces of rows. */
static double residual(const float *a, const factors *f)
{
    const int64_t n = f->n, k = f->k, rows = 1024;
    double *u = device<double>(rows * k), *vt = device<double>(k * n),
           *e = device<double>(rows * n);
    double *s = device<double>(k), left = 0, all = 0;
    const double minus = -1, one = 1;
    BENCH_CHECK(cudaMemcpy(s, f->s, k * sizeof *s, cudaMemcpyHostToDevice));
    convert<<<1024, 256>>>(f->vt, k * n, vt);
    scale_rows<<<1024, 256>>>(vt, k, n, s);
    for (int64_t row = 0; row < n; row += rows) {
        double length;
        convert<<<1024, 256>>>(f->u + row * k, rows * k, u);
        convert<<<1024, 256>>>(a + row * n, rows * n, e);
        MUST(cublasDnrm2(blas, (int)(rows * n), e, 1, &length));
        all += length * length;
        MUST(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)rows, (int)k, &minus, vt,
                         (int)n, u, (int)k, &one, e, (int)n));
        MUST(cublasDnrm2(blas, (int)(rows * n), e, 1, &length));
        left += length * length;
    }
    for (double *p : {u, vt, e, s})
        BENCH_CHECK(cudaFree(p));
    return std::sqrt(left / all);
}

/* |I - X X^T|_F over the root of k, X: k x n, row-major (transposed: n x k). */
static double off(const float *x, int64_t n, int64_t k, bool transposed)
{
    double *f64 = device<double>(n * k), *g = device<double>(k * k);
    std::vector<double> host(k * k);
    const double one = 1, zero = 0;
    convert<<<1024, 256>>>(x, n * k, f64);
    const int lead = (int)(transposed ? k : n);
    MUST(cublasDgemm(blas, transposed ? CUBLAS_OP_N : CUBLAS_OP_T,
                     transposed ? CUBLAS_OP_T : CUBLAS_OP_N, (int)k, (int)k, (int)n, &one, f64,
                     lead, f64, lead, &zero, g, (int)k));
    BENCH_CHECK(cudaMemcpy(host.data(), g, k * k * sizeof *g, cudaMemcpyDeviceToHost));
    double sum = 0;
    for (int64_t i = 0; i < k * k; i++)
        sum += std::pow(host[i] - (i % (k + 1) == 0), 2);
    BENCH_CHECK(cudaFree(f64));
    BENCH_CHECK(cudaFree(g));
    return std::sqrt(sum / (double)k);
}

/* ---- ours ---- */

struct phases {
    double project, power, orthonormalise, small, certify;
};

static void ours(const float *a, factors *f, int64_t over, int power, gnomon_dtype precision,
                 int64_t test_vectors, uint64_t seed, phases *spent)
{
    gnomon_matrix m = gnomon_matrix_rowmajor(const_cast<float *>(a), GNOMON_F32, f->n, f->n);
    gnomon_matrix u = gnomon_matrix_rowmajor(f->u, GNOMON_F32, f->n, f->k);
    gnomon_matrix vt = gnomon_matrix_rowmajor(f->vt, GNOMON_F32, f->k, f->n);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {};
    svd.struct_size = sizeof svd;
    m.memory = u.memory = vt.memory = GNOMON_DEVICE_MEMORY;
    d.kind = GNOMON_GAUSSIAN;
    d.precision = precision;
    d.seed = seed;
    o.rank = f->k;
    o.oversample = over;
    o.power = power;
    o.test_vectors = test_vectors;
    o.descriptor = &d;
    o.u = &u;
    o.vt = &vt;
    if (gnomon_svd_dense(ctx, &m, &o, &svd) != GNOMON_OK) {
        fprintf(stderr, "svd: %s\n", gnomon_last_error(ctx));
        exit(1);
    }
    for (int64_t i = 0; i < f->k; i++)
        f->s[i] = svd.s[i];
    *spent = {1e3 * svd.project_seconds, 1e3 * svd.power_seconds, 1e3 * svd.orthonormalise_seconds,
              1e3 * svd.small_seconds, 1e3 * svd.certify_seconds};
    gnomon_svd_free(ctx, &svd);
}

/* ---- the same algorithm by cuBLAS and cuSOLVER in fp32; column-major ---- */

struct plain {
    int n, s;
    float *y, *z, *b, *u, *v, *sigma, *tau, *work;
    int count, *info;
    gesvdjInfo_t how;
};

static plain make_plain(int n, int s)
{
    plain p = {n,
               s,
               device<float>((size_t)n * s),
               device<float>((size_t)n * s),
               device<float>((size_t)n * s),
               device<float>((size_t)n * s),
               device<float>((size_t)s * s),
               device<float>(s),
               device<float>(s),
               nullptr,
               0,
               device<int>(1),
               nullptr};
    int count[3];
    MUST(cusolverDnCreateGesvdjInfo(&p.how));
    MUST(cusolverDnSgeqrf_bufferSize(solver, n, s, p.y, n, &count[0]));
    MUST(cusolverDnSorgqr_bufferSize(solver, n, s, s, p.y, n, p.tau, &count[1]));
    MUST(cusolverDnSgesvdj_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, 1, n, s, p.b, n, p.sigma,
                                      p.u, n, p.v, s, &count[2], p.how));
    p.count = std::max(count[0], std::max(count[1], count[2]));
    p.work = device<float>(p.count);
    return p;
}

static void drop(plain *p)
{
    for (float *one : {p->y, p->z, p->b, p->u, p->v, p->sigma, p->tau, p->work})
        BENCH_CHECK(cudaFree(one));
    BENCH_CHECK(cudaFree(p->info));
    MUST(cusolverDnDestroyGesvdjInfo(p->how));
}

static void orthonormalise(plain *p, float *y)
{
    MUST(cusolverDnSgeqrf(solver, p->n, p->s, y, p->n, p->tau, p->work, p->count, p->info));
    MUST(cusolverDnSorgqr(solver, p->n, p->s, p->s, y, p->n, p->tau, p->work, p->count, p->info));
}

static __global__ void transpose(const float *from, size_t rows, size_t cols, size_t pitch,
                                 float *to)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < rows * cols;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i % cols * pitch + i / cols]; /* to row-major rows x cols */
}

/* a is row-major n x n, which column-major readers see transposed; omega n x s row-major. */
static void by_libraries(const float *a, const float *omega, plain *p, int power, bool tf32,
                         factors *f, phases *spent)
{
    const int n = p->n, s = p->s;
    const float one = 1, zero = 0;
    MUST(cublasSetMathMode(blas, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    double before = now_ms();
    const auto lap = [&](double *to) {
        const double t = now_ms();
        *to += t - before;
        before = t;
    };
    *spent = phases{};
    MUST(
        cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_T, n, s, n, &one, a, n, omega, s, &zero, p->y, n));
    lap(&spent->project);
    for (int i = 0; i < power; i++) {
        orthonormalise(p, p->y);
        lap(&spent->orthonormalise);
        MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, s, n, &one, a, n, p->y, n, &zero, p->z,
                         n));
        lap(&spent->power);
        orthonormalise(p, p->z);
        lap(&spent->orthonormalise);
        MUST(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, s, n, &one, a, n, p->z, n, &zero, p->y,
                         n));
        lap(&spent->power);
    }
    orthonormalise(p, p->y);
    lap(&spent->orthonormalise);
    MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, s, n, &one, a, n, p->y, n, &zero, p->b, n));
    lap(&spent->power);
    /* B^T = U S V^T, so A is nearly Q V S U^T */
    MUST(cusolverDnSgesvdj(solver, CUSOLVER_EIG_MODE_VECTOR, 1, n, s, p->b, n, p->sigma, p->u, n,
                           p->v, s, p->work, p->count, p->info, p->how));
    MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, s, s, &one, p->y, n, p->v, s, &zero, p->z,
                     n));
    lap(&spent->small);
    if (!f) return;
    std::vector<float> sigma(s);
    BENCH_CHECK(cudaMemcpy(sigma.data(), p->sigma, s * 4, cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < f->k; i++)
        f->s[i] = sigma[i];
    transpose<<<1024, 256>>>(p->z, n, f->k, n, f->u);
    BENCH_CHECK(cudaMemcpy(f->vt, p->u, f->k * n * 4, cudaMemcpyDeviceToDevice));
    MUST(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH));
}

/* ---- cuSOLVER's own ---- */

struct gesvdr {
    float *a, *u, *v, *s;
    void *device_work, *host_work;
    size_t device_bytes, host_bytes;
    int *info;
};

static void by_gesvdr(const float *transposed, int64_t n, int64_t k, int64_t over, int power,
                      factors *f, std::vector<double> *ms, int runs)
{
    gesvdr g = {};
    g.a = device<float>(n * n);
    g.u = device<float>(n * n); /* it asks for square ones */
    g.v = device<float>(n * n);
    g.s = device<float>(n);
    g.info = device<int>(1);
    MUST(cusolverDnXgesvdr_bufferSize(solver, params, 'S', 'S', n, n, k, over, power, CUDA_R_32F,
                                      g.a, n, CUDA_R_32F, g.s, CUDA_R_32F, g.u, n, CUDA_R_32F, g.v,
                                      n, CUDA_R_32F, &g.device_bytes, &g.host_bytes));
    g.device_work = device<char>(g.device_bytes + 8);
    g.host_work = malloc(g.host_bytes + 8);
    for (int run = -1; run < runs; run++) {
        BENCH_CHECK(cudaMemcpy(g.a, transposed, n * n * 4, cudaMemcpyDeviceToDevice));
        const double before = now_ms();
        MUST(cusolverDnXgesvdr(solver, params, 'S', 'S', n, n, k, over, power, CUDA_R_32F, g.a, n,
                               CUDA_R_32F, g.s, CUDA_R_32F, g.u, n, CUDA_R_32F, g.v, n, CUDA_R_32F,
                               g.device_work, g.device_bytes, g.host_work, g.host_bytes, g.info));
        const double t = now_ms() - before;
        if (run >= 0) ms->push_back(t);
    }
    /* 'transposed' is A^T to it: its U is our V */
    std::vector<float> sigma(k);
    BENCH_CHECK(cudaMemcpy(sigma.data(), g.s, k * 4, cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < k; i++)
        f->s[i] = sigma[i];
    BENCH_CHECK(cudaMemcpy(f->vt, g.u, k * n * 4, cudaMemcpyDeviceToDevice));
    transpose<<<1024, 256>>>(g.v, n, k, n, f->u);
    for (void *p :
         {(void *)g.a, (void *)g.u, (void *)g.v, (void *)g.s, (void *)g.info, g.device_work})
        BENCH_CHECK(cudaFree(p));
    free(g.host_work);
}

/* ---- times ---- */

/* A dense matrix whose singular values fall by e over every 150, above noise. */
static float *falling(int64_t n, uint64_t seed)
{
    const int64_t r = 1024;
    float *a = device<float>(n * n), *l = device<float>(n * r), *x = device<float>(r * n);
    double *weight = device<double>(r);
    std::vector<double> w(r);
    for (int64_t i = 0; i < r; i++)
        w[i] = std::exp(-(double)i / 150) / (double)n;
    BENCH_CHECK(cudaMemcpy(weight, w.data(), r * 8, cudaMemcpyHostToDevice));
    bench_fill(l, n * r, seed);
    bench_fill(x, r * n, seed + 1);
    scale_rows<<<1024, 256>>>(x, r, n, weight);
    const float one = 1, zero = 0;
    MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)n, (int)r, &one, x, (int)n, l,
                     (int)r, &zero, a, (int)n));
    add_noise<<<1024, 256>>>(a, n * n, seed + 2, 1e-5f);
    BENCH_CHECK(cudaDeviceSynchronize());
    BENCH_CHECK(cudaFree(l));
    BENCH_CHECK(cudaFree(x));
    BENCH_CHECK(cudaFree(weight));
    return a;
}

static double middle(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static void say(bench_json *json, const char *who, int64_t n, int64_t k, int power,
                int64_t test_vectors, double ms, double least, const phases &p, double left,
                int runs)
{
    printf("%-22s n %6lld, power %d%s: %8.2f ms (least %.2f): project %.2f, products %.2f, "
           "orthonormalise %.2f, small %.2f, certify %.2f; residual %.6e\n",
           who, (long long)n, power, test_vectors ? ", certificate" : "", ms, least, p.project,
           p.power, p.orthonormalise, p.small, p.certify, left);
    fflush(stdout);
    bench_record(json,
                 "\"part\": \"times\", \"who\": \"%s\", \"n\": %lld, \"rank\": %lld, \"power\": "
                 "%d, \"probes\": %lld, \"ms\": %.4f, \"least_ms\": %.4f, \"runs\": %d, "
                 "\"project_ms\": %.4f, \"power_ms\": %.4f, \"orthonormalise_ms\": %.4f, "
                 "\"small_ms\": %.4f, \"certify_ms\": %.4f, \"residual\": %.6e",
                 who, (long long)n, (long long)k, power, (long long)test_vectors, ms, least, runs,
                 p.project, p.power, p.orthonormalise, p.small, p.certify, left);
}

static void times(bench_json *json, int64_t n)
{
    const int64_t k = 512, over = 10, s = k + over;
    float *a = falling(n, 17 + (uint64_t)n), *omega = device<float>(n * s);
    factors f = make_factors(n, k);
    bench_fill(omega, n * s, 5);
    for (int power = 0; power <= 2; power += 2) {
        phases p = {}, none = {};
        struct {
            const char *who;
            gnomon_dtype precision;
            int64_t test_vectors;
        } ways[] = {{"gnomon, fp16 entries", GNOMON_F16, 0},
                    {"gnomon, fp32 entries", GNOMON_F32, 0},
                    {"gnomon, fp16 entries", GNOMON_F16, 10}};
        for (const auto &way : ways) {
            std::vector<double> ms;
            for (int run = -3; run < 21; run++) {
                const double before = now_ms();
                ours(a, &f, over, power, way.precision, way.test_vectors, 1, &p);
                if (run >= 0) ms.push_back(now_ms() - before);
            }
            say(json, way.who, n, k, power, way.test_vectors, middle(ms),
                *std::min_element(ms.begin(), ms.end()), p, residual(a, &f), (int)ms.size());
        }
        plain l = make_plain((int)n, (int)s);
        std::vector<double> ms;
        for (int run = -1; run < 5; run++) {
            const double before = now_ms();
            by_libraries(a, omega, &l, power, false, run == 4 ? &f : nullptr, &p);
            if (run >= 0) ms.push_back(now_ms() - before);
        }
        say(json, "fp32 by libraries", n, k, power, 0, middle(ms),
            *std::min_element(ms.begin(), ms.end()), p, residual(a, &f), (int)ms.size());
        drop(&l);
        ms.clear();
        by_gesvdr(a, n, k, over, power, &f, &ms, 5);
        say(json, "cuSOLVER gesvdr", n, k, power, 0, middle(ms),
            *std::min_element(ms.begin(), ms.end()), none, residual(a, &f), (int)ms.size());
    }
    drop(&f);
    BENCH_CHECK(cudaFree(a));
    BENCH_CHECK(cudaFree(omega));
}

/* ---- accuracy ---- */

/* An orthogonal matrix with the law of Haar, but for signs. */
static double *rotation(int n, uint64_t seed)
{
    float *normal = device<float>((size_t)n * n);
    double *q = device<double>((size_t)n * n), *tau = device<double>(n);
    int count[2], *info = device<int>(1);
    bench_fill(normal, (size_t)n * n, seed);
    convert<<<1024, 256>>>(normal, (size_t)n * n, q);
    MUST(cusolverDnDgeqrf_bufferSize(solver, n, n, q, n, &count[0]));
    MUST(cusolverDnDorgqr_bufferSize(solver, n, n, n, q, n, tau, &count[1]));
    double *work = device<double>(std::max(count[0], count[1]));
    MUST(cusolverDnDgeqrf(solver, n, n, q, n, tau, work, count[0], info));
    MUST(cusolverDnDorgqr(solver, n, n, n, q, n, tau, work, count[1], info));
    BENCH_CHECK(cudaDeviceSynchronize());
    for (void *p : {(void *)normal, (void *)tau, (void *)info, (void *)work})
        BENCH_CHECK(cudaFree(p));
    return q;
}

static double value_of(int matrix, int i, int rank)
{
    const double sp = matrix < 2 ? 1e-2 : 1e-4;
    if (matrix == 4) return i < 20 ? 1e6 : std::pow(std::max(i - 18.0, 1.0), -3);
    return matrix % 2 == 0 ? std::max(1 - (1 - sp) / rank * i, sp) : std::pow(sp, (double)i / rank);
}

static void matrix_of(int matrix, int n, int rank, uint64_t seed, const double *u, const double *v,
                      double *scratch, double *f64, float *a)
{
    if (matrix == 5) {
        cauchy<<<1024, 256>>>(a, n, seed);
        return;
    }
    std::vector<double> s(n);
    double *there = device<double>(n);
    const double one = 1, zero = 0;
    for (int i = 0; i < n; i++)
        s[i] = value_of(matrix, i, rank);
    BENCH_CHECK(cudaMemcpy(there, s.data(), n * 8, cudaMemcpyHostToDevice));
    BENCH_CHECK(cudaMemcpy(scratch, u, (size_t)n * n * 8, cudaMemcpyDeviceToDevice));
    scale_rows<<<1024, 256>>>(scratch, n, n, there); /* columns of the column-major U */
    MUST(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, scratch, n, v, n, &zero, f64,
                     n));
    convert<<<1024, 256>>>(f64, (size_t)n * n, a);
    BENCH_CHECK(cudaDeviceSynchronize());
    BENCH_CHECK(cudaFree(there));
}

/* The operator's entries as n x s, row-major, in device memory. */
static void entries(gnomon_dtype precision, uint64_t seed, int64_t n, int64_t s, float *to)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op = nullptr;
    std::vector<float> host(n * s);
    gnomon_matrix block = gnomon_matrix_rowmajor(host.data(), GNOMON_F32, s, n);
    block.row_stride = 1;
    block.col_stride = s;
    d.kind = GNOMON_GAUSSIAN;
    d.precision = precision;
    d.seed = seed;
    d.k = s;
    d.d = n;
    MUST(gnomon_operator_create(ctx, &d, &op));
    MUST(gnomon_operator_block(ctx, op, 0, 0, &block));
    gnomon_operator_destroy(op);
    BENCH_CHECK(cudaMemcpy(to, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
}

static void accuracy(bench_json *json, int seeds)
{
    static const char *const names[] = {"linear, s_p = 0.01",   "exponential, s_p = 0.01",
                                        "linear, s_p = 0.0001", "exponential, s_p = 0.0001",
                                        "polynomial",           "Cauchy"};
    const int n = 4096, k = 256, over = 10, s = k + over;
    float *a = device<float>((size_t)n * n), *omega = device<float>((size_t)n * s),
          *rounded = device<float>((size_t)n * s);
    double *scratch = device<double>((size_t)n * n), *f64 = device<double>((size_t)n * n);
    factors f = make_factors(n, k);
    plain l = make_plain(n, s);
    enum { OURS16, OURS32, PLAIN16, PLAIN32, TF32, WAYS };
    double sum[6][WAYS] = {}, worst[6] = {}, over16[6] = {}, over32[6] = {};
    for (int seed = 0; seed < seeds; seed++) {
        double *u = rotation(n, 1000 + 2 * seed), *v = rotation(n, 1001 + 2 * seed);
        entries(GNOMON_F32, (uint64_t)seed, n, s, omega);
        entries(GNOMON_F16, (uint64_t)seed, n, s, rounded);
        for (int m = 0; m < 6; m++) {
            const int power = m == 5 ? 1 : 0;
            double left[WAYS];
            phases p;
            matrix_of(m, n, k, 77 + (uint64_t)seed, u, v, scratch, f64, a);
            ours(a, &f, over, power, GNOMON_F16, 0, (uint64_t)seed, &p);
            left[OURS16] = residual(a, &f);
            worst[m] = std::max(worst[m], std::max(off(f.u, n, k, true), off(f.vt, n, k, false)));
            ours(a, &f, over, power, GNOMON_F32, 0, (uint64_t)seed, &p);
            left[OURS32] = residual(a, &f);
            by_libraries(a, rounded, &l, power, false, &f, &p);
            left[PLAIN16] = residual(a, &f);
            by_libraries(a, omega, &l, power, false, &f, &p);
            left[PLAIN32] = residual(a, &f);
            by_libraries(a, omega, &l, power, true, &f, &p);
            left[TF32] = residual(a, &f);
            for (int w = 0; w < WAYS; w++)
                sum[m][w] += left[w] / seeds;
            over16[m] = std::max(over16[m], left[OURS16] / left[PLAIN16] - 1);
            over32[m] = std::max(over32[m], left[OURS32] / left[PLAIN32] - 1);
        }
        BENCH_CHECK(cudaFree(u));
        BENCH_CHECK(cudaFree(v));
    }
    for (int m = 0; m < 6; m++) {
        const double *x = sum[m];
        printf("%-26s fp16 entries %.4e (plain %+.4f %%, worst %+.4f %%), fp32 %.4e (plain %+.4f "
               "%%, worst %+.4f %%), TF32 %+.2f %%; off orthonormal %.1e\n",
               names[m], x[OURS16], 100 * (x[OURS16] / x[PLAIN16] - 1), 100 * over16[m], x[OURS32],
               100 * (x[OURS32] / x[PLAIN32] - 1), 100 * over32[m],
               100 * (x[TF32] / x[PLAIN32] - 1), worst[m]);
        bench_record(json,
                     "\"part\": \"accuracy\", \"matrix\": \"%s\", \"n\": %d, \"rank\": %d, "
                     "\"seeds\": %d, \"fp16\": %.6e, \"plain16\": %.6e, \"fp32\": %.6e, "
                     "\"plain32\": %.6e, \"tf32\": %.6e, \"worst_over_plain16\": %.3e, "
                     "\"worst_over_plain32\": %.3e, \"off\": %.3e",
                     names[m], n, k, seeds, x[OURS16], x[PLAIN16], x[OURS32], x[PLAIN32], x[TF32],
                     over16[m], over32[m], worst[m]);
    }
    drop(&f);
    drop(&l);
    for (void *p : {(void *)a, (void *)omega, (void *)rounded, (void *)scratch, (void *)f64})
        BENCH_CHECK(cudaFree(p));
}

int main(int argc, char **argv)
{
    bool with_times = true, with_accuracy = true;
    int64_t only = 0;
    int seeds = 10;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--times-only") == 0) with_accuracy = false;
        if (strcmp(argv[i], "--accuracy-only") == 0) with_times = false;
        if (strcmp(argv[i], "--n") == 0 && i + 1 < argc) only = atoll(argv[i + 1]);
        if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) seeds = atoi(argv[i + 1]);
    }
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cuda";
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) {
        fprintf(stderr, "svd: %s\n", gnomon_last_error(nullptr));
        return 1;
    }
    MUST(cublasCreate(&blas));
    MUST(cusolverDnCreate(&solver));
    MUST(cusolverDnCreateParams(&params));
    bench_json json = bench_open("svd", argc, argv);
    if (with_times)
        for (int64_t n : {8192, 16384})
            if (only == 0 || only == n) times(&json, n);
    if (with_accuracy) accuracy(&json, seeds);
    bench_close(&json);
    gnomon_context_destroy(ctx);
    return 0;
}
