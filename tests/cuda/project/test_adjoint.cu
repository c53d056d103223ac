/* Adjoints on the GPU against Y S in fp64 with S by the CPU library, every kind of operator; and
 * their bits against themselves: fewer points, columns cut, little work memory. Exits with 77 where
 * there is no GPU. GNOMON_TEST_REDUCED=1 runs a part. */
#include "../../unit/project/operator_cases.h"
#include "cuda/project/family.h"
#include "must.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <gnomon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

using kind = any_operator; /* the list of every kind */

struct job {
    int64_t k, d, n;
    int64_t row, rows, col, cols; /* rows, cols 0: all */
    gnomon_dtype y_type;
    bool f64, y_columns, x_columns;
    double alpha, beta;
};

static double uniform(uint64_t h)
{
    h *= 0x9E3779B97F4A7C15ull;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
    h = (h ^ h >> 27) * 0x94D049BB133111EBull;
    return (double)((h ^ h >> 31) >> 40) * 0x1p-24 - 0.5;
}

static size_t size_of(gnomon_dtype t)
{
    return t == GNOMON_F64 || t == GNOMON_I64   ? 8
           : t == GNOMON_F32 || t == GNOMON_I32 ? 4
           : t == GNOMON_I8                     ? 1
                                                : 2;
}

static double store(void *data, int64_t at, gnomon_dtype dtype, double x)
{
    switch (dtype) {
    case GNOMON_F64:
        return static_cast<double *>(data)[at] = x;
    case GNOMON_F16:
        return __half2float(static_cast<__half *>(data)[at] = __float2half((float)x));
    case GNOMON_BF16:
        return __bfloat162float(static_cast<__nv_bfloat16 *>(data)[at] =
                                    __float2bfloat16((float)x));
    case GNOMON_I8:
        return static_cast<int8_t *>(data)[at] = (int8_t)(x * 250);
    case GNOMON_I64:
        return (double)(static_cast<int64_t *>(data)[at] = (int64_t)(x * 1e9));
    default:
        return static_cast<float *>(data)[at] = (float)x;
    }
}

struct way {
    int64_t point, points, col, cols;
    bool little;
};

/* The output's elements, guarded; those not reached must stay as they were. */
static std::vector<double> run(const gcu_gpu &gpu, const gnomon_operator *op, const job &j,
                               const void *y, const std::vector<way> &ways)
{
    const int64_t guard = 32, rows = j.rows ? j.rows : j.k, cols = j.cols ? j.cols : j.d;
    const gnomon_dtype type = j.f64 ? GNOMON_F64 : GNOMON_F32;
    const size_t size = size_of(type), count = (size_t)(j.n * cols + 2 * guard);
    std::vector<char> before(count * size, (char)0xFF), after(count * size);
    if (j.beta != 0)
        for (int64_t i = 0; i < j.n; i++)
            for (int64_t q = 0; q < cols; q++)
                store(before.data(), guard + (j.x_columns ? q * j.n + i : i * cols + q), type,
                      uniform((uint64_t)(i * cols + q) + 77));
    char *x;
    MUST(cudaMalloc(&x, before.size()));
    MUST(cudaMemcpy(x, before.data(), before.size(), cudaMemcpyHostToDevice));
    const size_t y_size = size_of(j.y_type);
    for (const way &w : ways) {
        gcu_adjoint_task t = {};
        t.op = op;
        const int64_t y_row = j.y_columns ? 1 : rows, y_col = j.y_columns ? j.n : 1;
        const int64_t x_row = j.x_columns ? 1 : cols, x_col = j.x_columns ? j.n : 1;
        t.y.data = static_cast<char *>(const_cast<void *>(y)) + (size_t)(w.point * y_row) * y_size;
        t.y.dtype = j.y_type;
        t.y.memory = t.x.memory = GNOMON_DEVICE_MEMORY;
        t.y.rows = t.x.rows = w.points;
        t.y.cols = rows;
        t.y.row_stride = y_row;
        t.y.col_stride = y_col;
        t.x.data = x + (size_t)(guard + w.point * x_row + w.col * x_col) * size;
        t.x.dtype = type;
        t.x.cols = w.cols;
        t.x.row_stride = x_row;
        t.x.col_stride = x_col;
        t.alpha = j.alpha;
        t.beta = j.beta;
        t.row = j.row;
        t.rows = rows;
        t.col = j.col + w.col;
        t.f64 = j.f64;
        t.gpu = &gpu;
        char why[200] = "";
        if (!gcu_adjoint_supports(&t, why, sizeof why)) printf("FAIL declined: %s\n", why);
        t.work_bytes = w.little ? gcu_adjoint_least_work(&t) : gcu_adjoint_best_work(&t);
        MUST(cudaMalloc(&t.work, t.work_bytes + 1));
        MUST(cudaMemset(t.work, 0xFF, t.work_bytes + 1));
        MUST(gcu_adjoint(&t));
        MUST(cudaDeviceSynchronize());
        cudaFree(t.work);
    }
    MUST(cudaMemcpy(after.data(), x, after.size(), cudaMemcpyDeviceToHost));
    cudaFree(x);
    const size_t side = (size_t)guard * size;
    if (memcmp(after.data(), before.data(), side) != 0 ||
        memcmp(after.data() + after.size() - side, before.data() + before.size() - side, side) != 0)
        printf("FAIL something beside x was written\n");
    std::vector<double> result((size_t)(j.n * cols));
    for (int64_t i = 0; i < j.n; i++)
        for (int64_t q = 0; q < cols; q++) {
            const size_t at = (size_t)(guard + (j.x_columns ? q * j.n + i : i * cols + q));
            result[(size_t)(i * cols + q)] =
                j.f64 ? reinterpret_cast<const double *>(after.data())[at]
                      : (double)reinterpret_cast<const float *>(after.data())[at];
        }
    return result;
}

static bool same(const std::vector<double> &a, const std::vector<double> &b)
{
    return memcmp(a.data(), b.data(), a.size() * 8) == 0;
}

static gnomon_operator *operator_of(gnomon_context *ctx, const kind &which, int64_t k, int64_t d_)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = which.kind;
    d.inner = which.inner;
    d.precision = which.precision;
    d.density = which.density;
    d.nonzeros = which.nonzeros;
    d.blocks = which.blocks;
    d.zeta = which.zeta;
    d.width = which.width && which.width < k ? k + 5 : which.width;
    d.k = k;
    d.d = d_;
    d.seed = 4711;
    gnomon_operator *op = nullptr;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK)
        printf("FAIL %s: %s\n", which.name, gnomon_last_error(ctx));
    return op;
}

static int check(gnomon_context *ctx, const gcu_gpu &gpu, const kind &which, const job &j)
{
    gnomon_operator *op = operator_of(ctx, which, j.k, j.d);
    if (!op) return 1;
    const int64_t rows = j.rows ? j.rows : j.k, cols = j.cols ? j.cols : j.d;
    std::vector<char> host((size_t)(j.n * rows) * size_of(j.y_type));
    std::vector<double> y((size_t)(j.n * rows));
    for (int64_t i = 0; i < j.n; i++)
        for (int64_t a = 0; a < rows; a++)
            y[(size_t)(i * rows + a)] = store(host.data(), j.y_columns ? a * j.n + i : i * rows + a,
                                              j.y_type, uniform((uint64_t)(i * rows + a)));
    void *device;
    MUST(cudaMalloc(&device, host.size()));
    MUST(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice));
    const std::vector<double> x = run(gpu, op, j, device, {{0, j.n, 0, cols, false}});
    int failed = 0;
    double worst = 0;
    /* some columns, against fp64 */
    const int64_t width = 97, step = cols > 4 * width ? cols / 4 : width;
    for (int64_t from = 0; from < cols; from += step) {
        const int64_t count = cols - from < width ? cols - from : width;
        std::vector<double> s((size_t)(rows * count));
        const gnomon_matrix block = gnomon_matrix_rowmajor(s.data(), GNOMON_F64, rows, count);
        if (gnomon_operator_block(ctx, op, j.row, j.col + from, &block) != GNOMON_OK) {
            printf("FAIL %s: %s\n", which.name, gnomon_last_error(ctx));
            return 1;
        }
        for (int64_t i = 0; i < j.n; i++)
            for (int64_t q = 0; q < count; q++) {
                double sum = 0, size = 1e-300;
                for (int64_t a = 0; a < rows; a++) {
                    const double term = y[(size_t)(i * rows + a)] * s[(size_t)(a * count + q)];
                    sum += term;
                    size += term * term;
                }
                size = sqrt(size);
                if (which.kind == GNOMON_KRONECKER) { /* sums of the levels between */
                    double norm = 0;
                    for (int64_t a = 0; a < rows; a++)
                        norm += y[(size_t)(i * rows + a)] * y[(size_t)(i * rows + a)];
                    size += 4 * sqrt(norm);
                }
                double old = j.beta != 0 ? uniform((uint64_t)(i * cols + from + q) + 77) : 0;
                if (!j.f64) old = (double)(float)old;
                const double want = j.alpha * sum + j.beta * old;
                const double scale = fabs(j.alpha) * size + fabs(j.beta * old);
                const double error = fabs(x[(size_t)(i * cols + from + q)] - want) / scale;
                if (error > worst) worst = error;
                const double u = j.f64 ? 0x1p-53 : 0x1p-24;
                if (!(error <= u * (16 + 3 * sqrt((double)rows)))) failed++;
            }
    }
    /* the bits must not depend on how the work is cut */
    char other[16] = "";
    std::vector<way> cut;
    for (int64_t point = 0; point < j.n && j.n <= 70; point += 3)
        cut.push_back({point, j.n - point < 3 ? j.n - point : 3, 0, cols, true});
    if (j.n <= 70 && !same(run(gpu, op, j, device, cut), x)) strcat(other, "n");
    cut.clear();
    for (int64_t point = 0, some = 2; point < j.n; point += some, some *= 5) {
        if (some > j.n - point) some = j.n - point;
        cut.push_back({point, some, 0, cols, false});
    }
    if (!same(run(gpu, op, j, device, cut), x)) strcat(other, "p");
    cut.clear();
    for (int64_t q = 0; q < cols; q += cols / 3 + 1)
        cut.push_back({0, j.n, q, cols - q < cols / 3 + 1 ? cols - q : cols / 3 + 1, true});
    if (!same(run(gpu, op, j, device, cut), x)) strcat(other, "c");
    /* nor on the layout */
    job turned = j;
    turned.x_columns = !j.x_columns;
    if (j.beta == 0 && !same(run(gpu, op, turned, device, {{0, j.n, 0, cols, false}}), x))
        strcat(other, "l");
    const bool ok = !failed && !*other;
    if (!ok || getenv("GNOMON_TEST_VERBOSE"))
        printf("%s %s k %lld D %lld n %lld rows %lld+%lld cols %lld+%lld type %d wide %d "
               "layouts %d %d: worst %.1e bad %d differ [%s]\n",
               ok ? "ok  " : "FAIL", which.name, (long long)j.k, (long long)j.d, (long long)j.n,
               (long long)j.row, (long long)rows, (long long)j.col, (long long)cols, (int)j.y_type,
               j.f64, j.y_columns, j.x_columns, worst, failed, other);
    cudaFree(device);
    gnomon_operator_destroy(op);
    return !ok;
}

/* ---- the bound of docs/reference/accuracy.md, on hard numbers ---- */

enum { ORDINARY, RANGE, CANCELLING, OUTLIERS, TINY, LARGE, HARD };

static float hard(int what, int64_t i, int64_t a)
{
    const uint64_t h = (uint64_t)(i * 100003 + a);
    const double x = uniform(h) + (uniform(h) < 0 ? -0.5 : 0.5);
    const int e = (int)((uniform(h + 7) + 0.5) * 200) - 100;
    switch (what) {
    case RANGE:
        return (float)ldexp(x, e);
    case CANCELLING: /* pairs nearly opposite */
        return a % 2 ? -hard(ORDINARY, i, a - 1) * 0x1.00001p0f : hard(ORDINARY, i, a);
    case OUTLIERS:
        return (float)(a % 97 == 5 ? ldexp(x, 30) : x);
    case TINY:
        return (float)ldexp(x, -126 - (int)(h % 24));
    case LARGE:
        return (float)ldexp(x, 110);
    default:
        return (float)x;
    }
}

static int check_bound(gnomon_context *ctx, const gcu_gpu &gpu, const kind &which, int what,
                       int64_t k, int64_t d, int64_t n, int64_t row)
{
    gnomon_operator *op = operator_of(ctx, which, k, d);
    if (!op) return 1;
    const int64_t rows = k - row;
    std::vector<float> y((size_t)(n * rows));
    for (int64_t i = 0; i < n; i++)
        for (int64_t a = 0; a < rows; a++)
            y[(size_t)(i * rows + a)] = hard(what, i, a);
    std::vector<double> s((size_t)(rows * d));
    const gnomon_matrix block = gnomon_matrix_rowmajor(s.data(), GNOMON_F64, rows, d);
    if (gnomon_operator_block(ctx, op, row, 0, &block) != GNOMON_OK) return 1;
    float *device;
    MUST(cudaMalloc(&device, y.size() * 4));
    MUST(cudaMemcpy(device, y.data(), y.size() * 4, cudaMemcpyHostToDevice));
    const job j = {k, d, n, row, rows, 0, d, GNOMON_F32, false, false, false, 1, 0};
    const std::vector<double> x = run(gpu, op, j, device, {{0, n, 0, d, false}});
    const double u = 0x1p-24, c = (double)rows + (gpu.major == 9 ? 30 : 0);
    const double e = c * u + 0x1p-24 + 0x1p-49;
    double worst = 0;
    int failed = 0;
    for (int64_t i = 0; i < n; i++) {
        std::vector<double> most((size_t)(rows / 128 + 2));
        double magnitudes = 0;
        for (int64_t a = 0; a < rows; a++) {
            double &m = most[(size_t)((a + row % 4) / 128)];
            m = fmax(m, fabs((double)y[(size_t)(i * rows + a)]));
            magnitudes += fabs((double)y[(size_t)(i * rows + a)]);
        }
        for (int64_t q = 0; q < d; q++) {
            long double sum = 0;
            double size = 0, lost = 0;
            for (int64_t a = 0; a < rows; a++) {
                const double v = s[(size_t)(a * d + q)], z = y[(size_t)(i * rows + a)];
                sum += (long double)v * z;
                size += fabs(v * z);
                lost += fabs(v) * most[(size_t)((a + row % 4) / 128)];
            }
            double bound = e / (1 - e) * size + (2 + c) * 0x1p-149;
            if (gpu.major == 9)
                bound +=
                    0x1p-39 * lost +
                    (which.kind == GNOMON_GAUSSIAN ? 0x1p-36 / sqrt((double)k) * magnitudes : 0);
            const double error = (double)fabsl((long double)x[(size_t)(i * d + q)] - sum);
            if (!(error <= bound)) failed++;
            if (error / bound > worst) worst = error / bound;
        }
    }
    /* what is not finite stays in its point */
    for (const float bad : {NAN, INFINITY}) {
        MUST(cudaMemcpy(device + (n - 1) * rows + rows / 2, &bad, 4, cudaMemcpyHostToDevice));
        const std::vector<double> other = run(gpu, op, j, device, {{0, n, 0, d, false}});
        if (memcmp(other.data(), x.data(), (size_t)((n - 1) * d) * 8) != 0) failed++;
        for (int64_t q = 0; q < d; q++)
            if (isfinite(other[(size_t)((n - 1) * d + q)]) &&
                (isnan(bad) || s[(size_t)(rows / 2 * d + q)] != 0))
                failed++;
    }
    if (failed || getenv("GNOMON_TEST_VERBOSE"))
        printf(
            "%s bound: %s, numbers %d, k %lld D %lld n %lld row %lld: worst %.3f of it, bad %d\n",
            failed ? "FAIL" : "ok  ", which.name, what, (long long)k, (long long)d, (long long)n,
            (long long)row, worst, failed);
    cudaFree(device);
    gnomon_operator_destroy(op);
    return failed != 0;
}

int main(void)
{
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why)) {
        printf("%s\n", why);
        return 77; /* no GPU */
    }
    printf("%s\n", why);
    gnomon_context *ctx = nullptr;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "cpu";
    if (gnomon_context_create(&o, &ctx) != GNOMON_OK) {
        printf("%s\n", gnomon_last_error(nullptr));
        return 1;
    }
    const char *part = getenv("GNOMON_TEST_REDUCED");
    const bool reduced = part && *part == '1';
    const job jobs[] = {
        {60, 1000, 7, 0, 0, 0, 0, GNOMON_F32, false, false, false, 1, 0},
        {101, 3001, 70, 0, 0, 0, 0, GNOMON_F32, false, true, true, -1.5, 0.5},
        {101, 3001, 5, 33, 40, 777, 1500, GNOMON_F32, false, false, true, 1, 0.25},
        {64, 20000, 9, 0, 0, 0, 0, GNOMON_F16, false, false, false, 1, 0},
        {33, 5000, 9, 1, 0, 70, 4000, GNOMON_F64, true, true, false, 2, 1},
        {64, 2000, 3, 0, 0, 0, 0, GNOMON_I64, true, false, false, 1, 0},
        {64, 2000, 3, 0, 0, 0, 0, GNOMON_I8, false, true, false, 1, 0},
        {500, 40000, 33, 0, 0, 0, 0, GNOMON_BF16, false, false, true, 1, 0},
        {7, 8, 1, 0, 0, 0, 0, GNOMON_F32, false, false, false, 1, 0},
        {300, 1000, 300, 0, 0, 0, 0, GNOMON_F32, false, true, false, 1, 0},
        {700, 20001, 261, 2, 690, 129, 19000, GNOMON_F32, false, false, true, -0.5, 0.25},
    };
    /* srht: transforms of 2^10 to 2^12 elements of lone and of adjacent points, few rows, the
     * most that shared memory holds on Hopper, and more, up to all */
    const job transforms[] = {
        {2000, 2047, 21, 0, 0, 0, 0, GNOMON_F32, false, true, false, 1, 0},
        {2047, 2047, 5, 0, 0, 0, 0, GNOMON_F32, false, false, true, 1, 0},
        {4000, 4096, 11, 0, 0, 0, 0, GNOMON_F32, false, false, true, 0.3, 0},
        {1, 1, 3, 0, 0, 0, 0, GNOMON_F32, false, false, true, 1, 0},
        {900, 70001, 37, 0, 0, 0, 0, GNOMON_F32, false, false, true, 1, 0},
        {900, 20000, 7, 100, 700, 9000, 10001, GNOMON_F16, false, true, false, 1, 0},
        {256, 300000, 40, 0, 0, 0, 0, GNOMON_F32, false, true, true, -1, 0.5},
        {4096, 20000, 70, 0, 0, 0, 0, GNOMON_F32, false, false, true, 1, 0},
        {4096, 50000, 9, 0, 0, 0, 0, GNOMON_F32, false, false, true, -1, 0.5},
        {5000, 20000, 7, 0, 0, 9000, 10001, GNOMON_F16, false, true, true, 1, 0},
        {9000, 20000, 5, 100, 8000, 0, 0, GNOMON_F32, false, false, false, 1, 0},
        {24240, 32768, 9, 0, 0, 9000, 4200, GNOMON_F32, false, false, true, 1, 0},
        {25260, 32768, 9, 0, 0, 9000, 4200, GNOMON_F32, false, false, false, 1, 0},
        {30001, 32768, 9, 0, 0, 0, 0, GNOMON_F32, false, false, true, 1, 0},
        {70000, 70000, 3, 0, 0, 0, 0, GNOMON_F32, false, false, false, 1, 0},
        /* some of more rows than have room in a GPU's memory */
        {1ll << 31, 1ll << 31, 7, 1ll << 30, 200, 999999999, 5000, GNOMON_F32, false, false, true,
         1, 0},
    };
    int failed = 0, count = 0;
    for (const job &j : transforms) {
        if (reduced && j.d > 5000) continue;
        for (const kind &which : all_operators)
            if (which.kind == GNOMON_SRHT) failed += check(ctx, gpu, which, j);
    }
    for (const kind &which : all_operators)
        for (const job &j : jobs) {
            if (reduced && count++ % 3 != 0) continue;
            job one = j;
            if (which.kind == GNOMON_BLOCK && one.k < 8) continue;
            if (one.row && !one.rows) one.rows = one.k - one.row;
            failed += check(ctx, gpu, which, one);
        }
    for (const kind &which : all_operators)
        for (int what = 0; what < HARD; what++) {
            if (which.kind != GNOMON_GAUSSIAN && which.kind != GNOMON_RADEMACHER &&
                which.kind != GNOMON_ACHLIOPTAS)
                continue;
            failed += check_bound(ctx, gpu, which, what, 203, 301, 5, 0);
            if (!reduced) failed += check_bound(ctx, gpu, which, what, 900, 1000, 40, 7);
        }
    printf("%d failed\n", failed);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return failed != 0;
}
