/* Random-projection HOSVD of tensors in the GPU's memory (Ootomo & Yokota 2023, Algorithm 2 and
 * Figure 9, on the tensors of their Algorithm 3): times by phase and what is left, beside the same
 * algorithm in fp32 by libraries: cuRAND's normal numbers, cuBLAS SGEMM (and, for its accuracy,
 * TF32 products), cuSOLVER's geqrf and orgqr. The libraries' way goes through the first and the
 * last unfolding as they lie, like ours, and makes those between.
 *
 * Times are of the wall, from call to result (ours: factors and core on the host, and the look for
 * NaN is in them; the libraries': on the GPU); measuring what is left is in nobody's.
 *
 * usage: hosvd [--json FILE] [--runs N] [--seconds S] [--most COUNT]
 * S: no tensor is begun after so long; COUNT: only tensors of at most so many numbers */
#include "bench.cuh"
#include "calls.cuh"

#include <cublas_v2.h>
#include <curand.h>
#include <cusolverDn.h>

#include <gnomon.h>

#include <cmath>
#include <string>

static gnomon_context *ctx;
static cublasHandle_t blas;
static cusolverDnHandle_t solver;
static curandGenerator_t generator;

typedef std::vector<int64_t> sizes;

static int64_t count_of(const sizes &size)
{
    int64_t count = 1;
    for (int64_t s : size)
        count *= s;
    return count;
}

/* ---- small kernels ---- */

template <typename From, typename To>
static __global__ void convert(const From *from, size_t count, To *to)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = (To)from[i];
}

/* to (cols x rows) = from (rows x cols), transposed; small ones. */
template <typename From, typename To>
static __global__ void transpose(const From *from, size_t rows, size_t cols, To *to)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < rows * cols;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = (To)from[i % rows * cols + i / rows];
}

/* to (length x left x right) = from (left x length x right), float4 by float4. */
static __global__ void unfold(const float4 *from, size_t left, size_t length, size_t right,
                              float4 *to)
{
    const size_t line = left * right, count = length * line;
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < count;
         e += (size_t)gridDim.x * blockDim.x) {
        const size_t i = e / line, at = e % line, l = at / right;
        to[e] = from[(l * length + i) * right + at - l * right];
    }
}

static __global__ void centre(float *x, size_t count)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        x[i] = 2 * x[i] - 1;
}

static __global__ void add_noise(float *a, size_t count, uint64_t seed, float size)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        const float u = bench_uniform(seed, 2 * i), v = bench_uniform(seed, 2 * i + 1);
        a[i] += size * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
    }
}

/* ---- tensors ---- */

/* out (left x rows x right) = in (left x length x right) along its middle mode times f (rows x
 * length, row-major). */
static void times(const float *in, int64_t left, int64_t length, int64_t right, const float *f,
                  int64_t rows, float *out)
{
    const float one = 1, zero = 0;
    if (right == 1)
        MUST(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, (int)left, (int)length, &one, f,
                         (int)length, in, (int)length, &zero, out, (int)rows));
    else
        MUST(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)right, (int)rows,
                                       (int)length, &one, in, (int)right, length * right, f,
                                       (int)length, 0, &zero, out, (int)right, rows * right,
                                       (int)left));
}

static void times(const double *in, int64_t left, int64_t length, int64_t right, const double *f,
                  int64_t rows, double *out)
{
    const double one = 1, zero = 0;
    if (right == 1)
        MUST(cublasDgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)rows, (int)left, (int)length, &one, f,
                         (int)length, in, (int)length, &zero, out, (int)rows));
    else
        MUST(cublasDgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)right, (int)rows,
                                       (int)length, &one, in, (int)right, length * right, f,
                                       (int)length, 0, &zero, out, (int)right, rows * right,
                                       (int)left));
}

static float *uniform(int64_t count, uint64_t seed)
{
    float *x = device<float>(count);
    bench_fill(x, count, seed, BENCH_UNIFORM);
    centre<<<1024, 256>>>(x, count);
    return x;
}

/* Algorithm 3 with a padding of 2, and noise of that share of its length. */
static float *algorithm_3(const sizes &size, const sizes &rank, double noise, uint64_t seed)
{
    const int modes = (int)size.size();
    sizes at = rank;
    float *x = uniform(count_of(at), seed);
    for (int n = modes - 1; n >= 0; n--) { /* the last ones first: few large steps */
        const int64_t inner = rank[n] - 2;
        float *alpha = uniform(rank[n] * inner, seed + 2 * n + 1);
        float *beta = uniform(inner * size[n], seed + 2 * n + 2),
              *f = device<float>(rank[n] * size[n]);
        const float one = 1, zero = 0;
        /* f (size x rank) = (alpha beta)^T */
        MUST(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_T, (int)rank[n], (int)size[n], (int)inner,
                         &one, alpha, (int)inner, beta, (int)size[n], &zero, f, (int)rank[n]));
        int64_t left = 1, right = 1;
        for (int k = 0; k < n; k++)
            left *= at[k];
        for (int k = n + 1; k < modes; k++)
            right *= at[k];
        float *y = device<float>(left * size[n] * right);
        times(x, left, rank[n], right, f, size[n], y);
        at[n] = size[n];
        for (float *p : {x, alpha, beta, f})
            BENCH_CHECK(cudaFree(p));
        x = y;
    }
    if (noise > 0) {
        const int64_t count = count_of(size), piece = 1 << 26;
        double squares = 0;
        for (int64_t i = 0; i < count; i += piece) {
            float part;
            MUST(cublasSnrm2(blas, (int)std::min(piece, count - i), x + i, 1, &part));
            squares += (double)part * part;
        }
        add_noise<<<1024, 256>>>(x, count, seed + 99,
                                 (float)(noise * std::sqrt(squares / (double)count)));
    }
    BENCH_CHECK(cudaDeviceSynchronize());
    return x;
}

/* A core in C order and row-major factors, in the GPU's memory. */
struct parts {
    double *core;
    std::vector<double *> factor;
};

static void drop(parts *p)
{
    BENCH_CHECK(cudaFree(p->core));
    for (double *f : p->factor)
        BENCH_CHECK(cudaFree(f));
}

/* |X - G x_1 Q_1 ...|_F / |X|_F in double precision, by pieces of rows. */
static double residual(const float *x, const sizes &size, const sizes &rank, const parts &p)
{
    sizes at = rank;
    double *c = device<double>(count_of(at)), left = 0, all = 0;
    BENCH_CHECK(cudaMemcpy(c, p.core, count_of(at) * 8, cudaMemcpyDeviceToDevice));
    for (int n = (int)size.size() - 1; n > 0; n--) {
        int64_t before = 1, after = 1;
        for (int k = 0; k < n; k++)
            before *= at[k];
        for (size_t k = n + 1; k < size.size(); k++)
            after *= at[k];
        double *y = device<double>(before * size[n] * after);
        times(c, before, rank[n], after, p.factor[n], size[n], y);
        at[n] = size[n];
        BENCH_CHECK(cudaFree(c));
        c = y;
    }
    const int64_t rest = count_of(size) / size[0];
    const int64_t rows = std::max<int64_t>(1, std::min(size[0], ((int64_t)1 << 26) / rest));
    double *e = device<double>(rows * rest);
    const double minus = -1, one = 1;
    for (int64_t row = 0; row < size[0]; row += rows) {
        const int64_t count = std::min(rows, size[0] - row);
        double length;
        convert<<<2048, 256>>>(x + row * rest, count * rest, e);
        MUST(cublasDnrm2(blas, (int)(count * rest), e, 1, &length));
        all += length * length;
        MUST(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)rest, (int)count, (int)rank[0],
                         &minus, c, (int)rest, p.factor[0] + row * rank[0], (int)rank[0], &one, e,
                         (int)rest));
        MUST(cublasDnrm2(blas, (int)(count * rest), e, 1, &length));
        left += length * length;
    }
    BENCH_CHECK(cudaFree(c));
    BENCH_CHECK(cudaFree(e));
    return std::sqrt(left / all);
}

/* The largest |I - Q^T Q|_F over the root of the columns. */
static double off(const sizes &size, const sizes &rank, const parts &p)
{
    double worst = 0;
    for (size_t n = 0; n < size.size(); n++) {
        const int k = (int)rank[n];
        double *g = device<double>(k * k), sum = 0;
        std::vector<double> host(k * k);
        const double one = 1, zero = 0;
        MUST(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, k, k, (int)size[n], &one, p.factor[n], k,
                         p.factor[n], k, &zero, g, k));
        BENCH_CHECK(cudaMemcpy(host.data(), g, k * k * 8, cudaMemcpyDeviceToHost));
        BENCH_CHECK(cudaFree(g));
        for (int i = 0; i < k * k; i++)
            sum += std::pow(host[i] - (i % (k + 1) == 0), 2);
        worst = std::max(worst, std::sqrt(sum / k));
    }
    return worst;
}

/* ---- ours ---- */

struct phases {
    double scan, generate, project, power, orthonormalise, shrink, small, measure;
};

static parts upload(const gnomon_hosvd &h)
{
    parts p = {};
    const auto one = [](const void *from, int64_t count) {
        float *narrow = device<float>(count);
        double *f64 = device<double>(count);
        BENCH_CHECK(cudaMemcpy(narrow, from, count * 4, cudaMemcpyHostToDevice));
        convert<<<1024, 256>>>(narrow, count, f64);
        BENCH_CHECK(cudaDeviceSynchronize());
        BENCH_CHECK(cudaFree(narrow));
        return f64;
    };
    int64_t count = 1;
    for (int n = 0; n < h.modes; n++) {
        count *= h.rank[n];
        p.factor.push_back(one(h.factor[n].data, h.size[n] * h.rank[n]));
    }
    p.core = one(h.core.data, count);
    return p;
}

/* Milliseconds, without those of measuring; kept: the parts, when it is not NULL. */
static double ours(float *x, const sizes &size, const sizes &rank, int64_t over, int power,
                   int sequential, gnomon_dtype precision, uint64_t seed, phases *spent,
                   parts *kept)
{
    gnomon_tensor t = gnomon_tensor_packed(x, GNOMON_F32, (int)size.size(), size.data(), 0);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h = {};
    h.struct_size = sizeof h;
    t.memory = GNOMON_DEVICE_MEMORY;
    d.kind = GNOMON_GAUSSIAN;
    d.precision = precision;
    d.seed = seed;
    o.ranks = rank.data();
    o.rank_count = (int)rank.size();
    o.oversample = over;
    o.power = power;
    o.sequential = sequential;
    o.descriptor = &d;
    const double before = now_ms();
    if (gnomon_hosvd_dense(ctx, &t, &o, &h) != GNOMON_OK) {
        fprintf(stderr, "hosvd: %s\n", gnomon_last_error(ctx));
        exit(1);
    }
    const double ms = now_ms() - before;
    *spent = {1e3 * h.check_seconds,          0,
              1e3 * h.project_seconds,        1e3 * h.power_seconds,
              1e3 * h.orthonormalise_seconds, 1e3 * h.shrink_seconds,
              1e3 * h.small_seconds,          1e3 * h.measure_seconds};
    if (kept) *kept = upload(h);
    gnomon_hosvd_free(ctx, &h);
    return ms - spent->measure;
}

/* ---- Algorithm 2 by cuRAND, cuBLAS and cuSOLVER in fp32 ---- */

struct plain {
    float *omega, *transposed, *room[2], *tau, *work;
    std::vector<float *> q; /* column-major */
    int count, *info;
};

static plain make_plain(const sizes &size, const sizes &rank)
{
    plain p = {};
    int64_t most = 0, shrunk = 0, tallest = 1;
    const int64_t count = count_of(size);
    for (size_t n = 0; n < size.size(); n++) {
        int counts[2];
        most = std::max(most, count / size[n] * rank[n]);
        shrunk = most;
        p.q.push_back(device<float>(size[n] * rank[n]));
        tallest = std::max(tallest, rank[n]);
        MUST(cusolverDnSgeqrf_bufferSize(solver, (int)size[n], (int)rank[n], p.q[n], (int)size[n],
                                         &counts[0]));
        MUST(cusolverDnSorgqr_bufferSize(solver, (int)size[n], (int)rank[n], (int)rank[n], p.q[n],
                                         (int)size[n], p.q[n], &counts[1]));
        p.count = std::max(p.count, std::max(counts[0], counts[1]));
    }
    p.omega = device<float>(most + 1);
    p.transposed = size.size() > 2 ? device<float>(count) : nullptr;
    p.room[0] = device<float>(shrunk);
    p.room[1] = device<float>(shrunk);
    p.tau = device<float>(tallest);
    p.work = device<float>(p.count);
    p.info = device<int>(1);
    return p;
}

static void drop(plain *p)
{
    for (float *one : {p->omega, p->transposed, p->room[0], p->room[1], p->tau, p->work})
        BENCH_CHECK(cudaFree(one));
    for (float *one : p->q)
        BENCH_CHECK(cudaFree(one));
    BENCH_CHECK(cudaFree(p->info));
}

/* Its core's modes have gone round once. */
static double by_libraries(const float *x, const sizes &size, const sizes &rank, bool sequential,
                           bool tf32, plain *p, phases *spent, parts *kept)
{
    const int modes = (int)size.size();
    const float one = 1, zero = 0, *now = x;
    sizes at = size;
    MUST(cublasSetMathMode(blas, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    *spent = phases{};
    const double begin = now_ms();
    double before = begin;
    const auto lap = [&](double *to) {
        const double t = now_ms();
        *to += t - before;
        before = t;
    };
    const auto find_range = [&](const float *from, int n, int64_t left, int64_t right) {
        const int m = (int)size[n], k = (int)rank[n], rest = (int)(left * right);
        MUST(curandGenerateNormal(generator, p->omega, ((size_t)rest * k + 1) / 2 * 2, 0, 1));
        lap(&spent->generate);
        if (left > 1 && right > 1) {
            unfold<<<4096, 256>>>(reinterpret_cast<const float4 *>(from), left, m, right / 4,
                                  reinterpret_cast<float4 *>(p->transposed));
            from = p->transposed;
        }
        if (right > 1)
            MUST(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, m, k, rest, &one, from, rest, p->omega,
                             rest, &zero, p->q[n], m));
        else
            MUST(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, k, rest, &one, from, m, p->omega,
                             rest, &zero, p->q[n], m));
        lap(&spent->project);
        MUST(cusolverDnSgeqrf(solver, m, k, p->q[n], m, p->tau, p->work, p->count, p->info));
        MUST(cusolverDnSorgqr(solver, m, k, k, p->q[n], m, p->tau, p->work, p->count, p->info));
        lap(&spent->orthonormalise);
    };
    const auto shrink = [&](int n) {
        const int64_t rest = count_of(at) / at[n];
        float *to = p->room[n % 2];
        MUST(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_T, (int)rank[n], (int)rest, (int)size[n],
                         &one, p->q[n], (int)size[n], now, (int)rest, &zero, to, (int)rank[n]));
        now = to;
        at[n] = rank[n];
        lap(&spent->shrink);
    };
    for (int n = 0; n < modes; n++) {
        int64_t left = 1, right = 1;
        for (int k = 0; k < n && !sequential; k++)
            left *= size[k];
        for (int k = n + 1; k < modes; k++)
            right *= size[k];
        for (int k = 0; k < n && sequential; k++)
            right *= rank[k];
        find_range(now, n, left, right);
        if (sequential) shrink(n);
    }
    for (int n = 0; n < modes && !sequential; n++)
        shrink(n);
    const double ms = before - begin;
    MUST(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH));
    if (!kept) return ms;
    kept->core = device<double>(count_of(rank));
    convert<<<1024, 256>>>(now, count_of(rank), kept->core);
    for (int n = 0; n < modes; n++) {
        double *f = device<double>(size[n] * rank[n]);
        transpose<<<1024, 256>>>(p->q[n], rank[n], size[n], f);
        kept->factor.push_back(f);
    }
    return ms;
}

/* ---- a tensor ---- */

struct shape {
    sizes size, rank;
    double noise;
};

static std::string list(const sizes &s)
{
    std::string text;
    for (size_t i = 0; i < s.size(); i++)
        text += (i ? " x " : "") + std::to_string(s[i]);
    return text;
}

static void say(bench_json *json, const shape &s, const char *who, const bench_time &t,
                const phases &p, double left, double from_orthonormal, double read_ms)
{
    printf("%-16s rank %-14s %-34s %8.3f ms (least %.3f): look %.2f, generate %.2f, project %.2f, "
           "power %.2f, orthonormalise %.2f, core %.2f, small %.2f; left %.3e, off %.0e\n",
           list(s.size).c_str(), list(s.rank).c_str(), who, t.median_ms, t.least_ms, p.scan,
           p.generate, p.project, p.power, p.orthonormalise, p.shrink, p.small, left,
           from_orthonormal);
    fflush(stdout);
    bench_record(
        json,
        "\"size\": \"%s\", \"rank\": \"%s\", \"noise\": %g, \"who\": \"%s\", \"ms\": %.4f, "
        "\"least_ms\": %.4f, \"runs\": %d, \"look_ms\": %.4f, \"generate_ms\": %.4f, "
        "\"project_ms\": %.4f, \"power_ms\": %.4f, \"orthonormalise_ms\": %.4f, "
        "\"shrink_ms\": %.4f, \"small_ms\": %.4f, \"read_ms\": %.4f, \"residual\": %.6e, "
        "\"off\": %.3e",
        list(s.size).c_str(), list(s.rank).c_str(), s.noise, who, t.median_ms, t.least_ms, t.runs,
        p.scan, p.generate, p.project, p.power, p.orthonormalise, p.shrink, p.small, read_ms, left,
        from_orthonormal);
}

static void run(bench_json *json, const shape &s, int runs)
{
    float *x = algorithm_3(s.size, s.rank, s.noise, 17);
    const double read_ms = bench_read_ms(x, count_of(s.size) * 4);
    plain l = make_plain(s.size, s.rank);
    struct {
        const char *who;
        int sequential, tf32;
    } peers[] = {{"fp32 by libraries", 0, 0},
                 {"TF32 by libraries", 0, 1},
                 {"fp32 by libraries, sequential", 1, 0}};
    for (const auto &peer : peers) {
        std::vector<double> ms;
        phases p = {};
        parts kept = {};
        double left = 0;
        const int seeds = 2;
        for (int run = -1; run < runs; run++) {
            const double one =
                by_libraries(x, s.size, s.rank, peer.sequential, peer.tf32, &l, &p, nullptr);
            if (run >= 0) ms.push_back(one);
        }
        for (int seed = 0; seed < seeds; seed++) {
            phases none;
            by_libraries(x, s.size, s.rank, peer.sequential, peer.tf32, &l, &none, &kept);
            left += residual(x, s.size, s.rank, kept) / seeds;
            if (seed + 1 < seeds) drop(&kept);
            if (seed + 1 < seeds) kept = parts{};
        }
        say(json, s, peer.who, bench_summary(ms), p, left, off(s.size, s.rank, kept), read_ms);
        drop(&kept);
    }
    drop(&l);
    struct {
        const char *who;
        int64_t over;
        int power, sequential;
        gnomon_dtype precision;
    } ways[] = {{"gnomon, as Algorithm 2, fp16", 0, 0, 0, GNOMON_F16},
                {"gnomon, as Algorithm 2, fp32", 0, 0, 0, GNOMON_F32},
                {"gnomon, sequential, fp16", 0, 0, 1, GNOMON_F16},
                {"gnomon, 10 columns more, fp16", 10, 0, 0, GNOMON_F16},
                {"gnomon, as it is set, fp32", 10, 1, 0, GNOMON_F32}};
    for (const auto &way : ways) {
        std::vector<double> ms;
        phases p = {};
        parts kept = {};
        double left = 0;
        const int seeds = 2;
        for (int run = -2; run < runs; run++) {
            const double one = ours(x, s.size, s.rank, way.over, way.power, way.sequential,
                                    way.precision, 1, &p, nullptr);
            if (run >= 0) ms.push_back(one);
        }
        for (int seed = 0; seed < seeds; seed++) {
            phases none;
            ours(x, s.size, s.rank, way.over, way.power, way.sequential, way.precision, 5 + seed,
                 &none, &kept);
            left += residual(x, s.size, s.rank, kept) / seeds;
            if (seed + 1 < seeds) drop(&kept);
            if (seed + 1 < seeds) kept = parts{};
        }
        say(json, s, way.who, bench_summary(ms), p, left, off(s.size, s.rank, kept), read_ms);
        drop(&kept);
    }
    BENCH_CHECK(cudaFree(x));
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("hosvd", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cuda";
    int runs = 21;
    double seconds = 1e9, most = 1e18;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--runs") == 0) runs = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--seconds") == 0) seconds = atof(argv[i + 1]);
        if (strcmp(argv[i], "--most") == 0) most = atof(argv[i + 1]);
    }
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) {
        fprintf(stderr, "no GPU: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    MUST(cublasCreate(&blas));
    MUST(cusolverDnCreate(&solver));
    MUST(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    const shape shapes[] = {
        {{1024, 1024, 1024}, {64, 64, 64}, 0},       {{1024, 1024, 1024}, {128, 128, 128}, 0},
        {{512, 512, 512}, {64, 64, 64}, 0},          {{128, 128, 128, 128}, {32, 32, 32, 32}, 0},
        {{1024, 1024, 1024}, {128, 128, 128}, 0.01}, {{128, 128, 128, 128}, {16, 16, 16, 16}, 0},
        {{192, 192, 192, 192}, {64, 64, 64, 64}, 0}};
    const double begin = now_ms();
    for (const shape &s : shapes)
        if (now_ms() - begin < 1e3 * seconds && (double)count_of(s.size) <= most)
            run(&json, s, runs);
    bench_close(&json);
    gnomon_context_destroy(ctx);
    return 0;
}
