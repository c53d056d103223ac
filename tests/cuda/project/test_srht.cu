/* The family gcu_srht against a slow product in fp64 with entries by the CPU library, and its bits
 * against themselves: fewer points, pieces, little work memory, either layout. Exits with 77 where
 * there is no GPU. GNOMON_TEST_REDUCED=1 runs a part. */
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

enum layout { ROWS, ROWS_APART, COLUMNS, STRIDED, LAYOUTS };
static const char *const layout_names[] = {"rows", "rows apart", "columns", "strided"};

struct job {
    gnomon_dtype dtype;
    int64_t k, d, n;
    int layout;
    int64_t row, rows;   /* rows 0: all */
    int64_t first, lost; /* columns missing at either end */
    bool huge;
};

/* Element (i, q) of the points: the same whatever the layout. */
static double number_of(const job &j, int64_t i, int64_t q)
{
    uint64_t h = (uint64_t)(i * 1000003 + q) * 0x9E3779B97F4A7C15ull + (uint64_t)j.d;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
    h = (h ^ h >> 27) * 0x94D049BB133111EBull;
    h ^= h >> 31;
    const double u = (double)(h >> 40) * 0x1p-24 - 0.5;
    switch (j.dtype) {
    case GNOMON_I8:
        return floor(u * 250);
    case GNOMON_U8:
        return floor((u + 0.5) * 250);
    case GNOMON_I16:
        return floor(u * 60000);
    case GNOMON_U16:
        return floor((u + 0.5) * 60000);
    case GNOMON_F16:
        return __half2float(__float2half((float)u));
    case GNOMON_BF16:
        return __bfloat162float(__float2bfloat16((float)u));
    default:
        return (double)(float)(j.huge ? ldexp(u, (int)(h & 127) - 90) : u);
    }
}

static void store(void *data, int64_t at, gnomon_dtype dtype, double x)
{
    switch (dtype) {
    case GNOMON_I8:
        static_cast<int8_t *>(data)[at] = (int8_t)x;
        break;
    case GNOMON_U8:
        static_cast<uint8_t *>(data)[at] = (uint8_t)x;
        break;
    case GNOMON_I16:
        static_cast<int16_t *>(data)[at] = (int16_t)x;
        break;
    case GNOMON_U16:
        static_cast<uint16_t *>(data)[at] = (uint16_t)x;
        break;
    case GNOMON_F16:
        static_cast<__half *>(data)[at] = __float2half((float)x);
        break;
    case GNOMON_BF16:
        static_cast<__nv_bfloat16 *>(data)[at] = __float2bfloat16((float)x);
        break;
    default:
        static_cast<float *>(data)[at] = (float)x;
    }
}

static int64_t size_of(gnomon_dtype t)
{
    return t == GNOMON_F32 ? 4 : t == GNOMON_I8 || t == GNOMON_U8 ? 1 : 2;
}

struct points {
    void *data; /* device; guarded by NaN or its like on all sides */
    int64_t row_stride, col_stride, offset;
};

static points make_points(const job &j, int layout)
{
    const int64_t cols = j.d - j.first - j.lost;
    points p = {};
    p.offset = layout == ROWS ? 0 : 5;
    p.row_stride = layout == ROWS         ? cols
                   : layout == ROWS_APART ? cols + 3
                   : layout == COLUMNS    ? 1
                                          : 2;
    p.col_stride = layout == COLUMNS ? j.n : layout == STRIDED ? 2 * j.n + 1 : 1;
    const int64_t count = p.offset + (j.n - 1) * p.row_stride + (cols - 1) * p.col_stride + 9;
    std::vector<char> host((size_t)(count * size_of(j.dtype)), (char)0x7F);
    if (j.dtype == GNOMON_F32 || j.dtype == GNOMON_F16 || j.dtype == GNOMON_BF16)
        memset(host.data(), 0xFF, host.size());
    for (int64_t i = 0; i < j.n; i++)
        for (int64_t q = 0; q < cols; q++)
            store(host.data(), p.offset + i * p.row_stride + q * p.col_stride, j.dtype,
                  number_of(j, i, j.first + q));
    MUST(cudaMalloc(&p.data, host.size()));
    MUST(cudaMemcpy(p.data, host.data(), host.size(), cudaMemcpyHostToDevice));
    return p;
}

struct way {
    int64_t from, n; /* points */
    bool little;     /* work memory */
    int64_t pieces;
    bool y_columns;
    double factor, beta;
    const std::vector<float> *old; /* y before, n x rows; NULL: NaN */
};

/* y: n x rows. Everything is poisoned first, and nothing beside y may change. */
static std::vector<float> project(const gcu_gpu &gpu, const job &j, const gnomon_simple &a,
                                  const points &p, const way &w)
{
    const int64_t rows = j.rows ? j.rows : j.k, size = size_of(j.dtype), guard = 64;
    const size_t count = (size_t)(w.n * rows + 2 * guard);
    float *out, *carry;
    MUST(cudaMalloc(&out, count * 4));
    MUST(cudaMalloc(&carry, (size_t)(rows * w.n) * 4));
    MUST(cudaMemset(carry, 0xFF, (size_t)(rows * w.n) * 4));
    std::vector<float> y(count);
    for (size_t i = 0; i < count; i++)
        y[i] = NAN;
    for (int64_t i = 0; i < w.n && w.old; i++)
        for (int64_t r = 0; r < rows; r++)
            y[(size_t)(guard + (w.y_columns ? i + r * w.n : i * rows + r))] =
                (*w.old)[(size_t)(i * rows + r)];
    MUST(cudaMemcpy(out, y.data(), count * 4, cudaMemcpyHostToDevice));
    gcu_task t = {};
    t.a = &a;
    t.row = j.row;
    t.rows = rows;
    t.gpu = &gpu;
    t.out.y = out + guard;
    t.out.dtype = GNOMON_F32;
    t.out.row_stride = w.y_columns ? 1 : rows;
    t.out.col_stride = w.y_columns ? w.n : 1;
    t.out.k = j.k;
    t.out.r = 1;
    t.out.row = j.row;
    t.out.rows = rows;
    t.out.factor_most = t.out.factor_least = w.factor;
    t.out.beta = w.beta;
    t.out.carry = carry;
    const int64_t unit = gcu_srht.granule(&a), begin = j.first / unit * unit, end = j.d - j.lost;
    const int64_t units = (end - begin + unit - 1) / unit;
    const int64_t turn = (units + w.pieces - 1) / w.pieces * unit;
    void *work = nullptr;
    for (int64_t from = begin; from < end; from += turn) {
        const int64_t to = from + turn < end ? from + turn : end;
        t.col = from;
        t.x.data = static_cast<const char *>(p.data) +
                   (p.offset + w.from * p.row_stride + (from - j.first) * p.col_stride) * size;
        t.x.dtype = j.dtype;
        t.x.row_stride = p.row_stride;
        t.x.col_stride = p.col_stride;
        t.x.n = w.n;
        t.x.blocks = 1;
        t.x.block_cols = to == end ? j.d - from : to - from;
        t.x.first = from < j.first ? j.first - from : 0;
        t.x.end = to - from;
        t.out.begins = from == begin;
        t.out.finishes = to == end;
        char why[200] = "";
        if (!gcu_srht.supports(&t, why, sizeof why)) printf("FAIL declined: %s\n", why);
        t.work_bytes = w.little ? gcu_srht.least_work(&t) : gcu_srht.best_work(&t);
        MUST(cudaDeviceSynchronize());
        MUST(cudaFree(work));
        MUST(cudaMalloc(&work, t.work_bytes));
        MUST(cudaMemset(work, 0xFF, t.work_bytes));
        t.work = work;
        MUST(gcu_srht.run(&t));
    }
    MUST(cudaDeviceSynchronize());
    std::vector<float> before = y, result((size_t)(w.n * rows));
    MUST(cudaMemcpy(y.data(), out, count * 4, cudaMemcpyDeviceToHost));
    if (memcmp(y.data(), before.data(), guard * 4) != 0 ||
        memcmp(&y[count - guard], &before[count - guard], guard * 4) != 0)
        printf("FAIL something beside y was written\n");
    for (int64_t i = 0; i < w.n; i++)
        for (int64_t r = 0; r < rows; r++)
            result[(size_t)(i * rows + r)] =
                y[(size_t)(guard + i * t.out.row_stride + r * t.out.col_stride)];
    cudaFree(out);
    cudaFree(carry);
    cudaFree(work);
    return result;
}

/* sums and sums of squares of some rows, of points 0 and n - 1 */
static int64_t check_values(const job &j, const gnomon_simple &a, const std::vector<float> &y,
                            double *worst)
{
    const int64_t rows = j.rows ? j.rows : j.k, end = j.d - j.lost;
    const int64_t every = rows * (end - j.first) > 20000000 ? rows / 8 + 1 : rows / 50 + 1;
    std::vector<float> s(65536);
    int64_t bad = 0;
    for (int64_t r = 0; r < rows; r += every)
        for (int64_t i = 0; i<j.n; i += j.n> 1 ? j.n - 1 : 1) {
            double sum = 0, size = 0;
            for (int64_t q = j.first; q < end; q += (int64_t)s.size()) {
                const int64_t count = end - q < (int64_t)s.size() ? end - q : (int64_t)s.size();
                gnomon_simple_values(&a, j.row + r, 1, q, count, s.data(), count, 1);
                for (int64_t e = 0; e < count; e++) {
                    const double x = number_of(j, i, q + e);
                    sum += s[(size_t)e] * x;
                    size += x * x;
                }
            }
            const double got = y[(size_t)(i * rows + r)], error = fabs(got - sum) / sqrt(size);
            if (error > *worst) *worst = error;
            if (!(error <= 2e-6)) bad++;
        }
    return bad;
}

static bool same(const std::vector<float> &a, const float *b)
{
    return memcmp(a.data(), b, a.size() * 4) == 0;
}

static int check(gnomon_context *ctx, const gcu_gpu &gpu, const job &j)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_SRHT;
    d.k = j.k;
    d.d = j.d;
    d.seed = 20261 + (uint64_t)j.d;
    gnomon_operator *op = nullptr;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK) {
        printf("FAIL %s\n", gnomon_last_error(ctx));
        return 1;
    }
    const gnomon_simple a = op->factor[0];
    const int64_t rows = j.rows ? j.rows : j.k;
    const points p = make_points(j, j.layout);
    const way plain = {0, j.n, false, 1, false, 1.0, 0.0, nullptr};
    const std::vector<float> y = project(gpu, j, a, p, plain);
    double worst = 0;
    const int64_t bad = check_values(j, a, y, &worst);
    char other[16] = "";
    /* fewer points */
    way w = plain;
    w.n = j.n / 3 + 1;
    w.from = j.n - w.n;
    if (!same(project(gpu, j, a, p, w), &y[(size_t)(w.from * rows)])) strcat(other, "n");
    /* little work memory, output by columns */
    w = plain;
    w.little = w.y_columns = true;
    if (!same(project(gpu, j, a, p, w), y.data())) strcat(other, "w");
    w.pieces = 3;
    if (!same(project(gpu, j, a, p, w), y.data())) strcat(other, "p");
    w.little = false;
    if (!same(project(gpu, j, a, p, w), y.data())) strcat(other, "q");
    /* the same points in other layouts */
    for (int layout = 0; layout < LAYOUTS; layout++) {
        if (layout == j.layout || j.n * j.d > 2000000) continue;
        const points q = make_points(j, layout);
        if (!same(project(gpu, j, a, q, plain), y.data())) strcat(other, "l");
        cudaFree(q.data);
    }
    /* factor and beta: what remains of products that nearly cancel shows how each was rounded */
    std::vector<float> old(y.size()), z(y.size());
    w = plain;
    w.factor = 1 / sqrt(12.0);
    w.beta = -0.3;
    w.old = &old;
    for (size_t i = 0; i < y.size(); i++) {
        old[i] = (float)(w.factor * (double)y[i] / 0.3);
        const volatile double product = w.factor * (double)y[i], rest = w.beta * (double)old[i];
        z[i] = (float)(product + rest);
    }
    if (!same(project(gpu, j, a, p, w), z.data())) strcat(other, "b");
    w.y_columns = true;
    if (!same(project(gpu, j, a, p, w), z.data())) strcat(other, "c");
    const bool ok = bad == 0 && !*other;
    if (!ok || getenv("GNOMON_TEST_VERBOSE"))
        printf("%s type %d k %lld rows %lld+%lld D %lld-%lld..%lld n %lld %s%s: worst %.1e bad "
               "%lld differ [%s]\n",
               ok ? "ok  " : "FAIL", (int)j.dtype, (long long)j.k, (long long)j.row,
               (long long)rows, (long long)j.d, (long long)j.first, (long long)j.lost,
               (long long)j.n, layout_names[j.layout], j.huge ? " huge" : "", worst, (long long)bad,
               other);
    cudaFree(p.data);
    gnomon_operator_destroy(op);
    return !ok;
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
    const gnomon_dtype F = GNOMON_F32;
    std::vector<job> jobs = {
        {F, 1, 1, 3, ROWS, 0, 0, 0, 0, false},
        {F, 2, 2, 1, COLUMNS, 0, 0, 0, 0, false},
        {F, 7, 9, 5, ROWS, 0, 0, 0, 0, false},
        {F, 100, 1000, 13, COLUMNS, 0, 0, 0, 0, false},
        {F, 256, 1024, 50, ROWS, 0, 0, 0, 0, false},
        {F, 700, 1024, 9, ROWS_APART, 3, 600, 0, 0, false},
        {F, 700, 1025, 9, STRIDED, 3, 600, 5, 9, false},
        {F, 250, 40001, 11, COLUMNS, 0, 0, 0, 0, true},
        {F, 256, 131072, 9, ROWS, 0, 0, 0, 0, false},
        {F, 300, 3000, 10, ROWS, 0, 0, 0, 0, true},
        {F, 4000, 4096, 5, COLUMNS, 0, 0, 0, 0, false},
        {GNOMON_F16, 260, 5000, 9, ROWS, 0, 0, 1000, 7, false},
        {GNOMON_I8, 60, 5000, 9, ROWS, 0, 0, 0, 0, false},
    };
    const job more[] = {
        {F, 1000, 140000, 4, ROWS, 0, 0, 0, 0, false},
        {F, 1000, 140000, 4, COLUMNS, 500, 300, 0, 0, false},
        {F, 1000, 300001, 3, ROWS_APART, 0, 0, 135000, 100000, false},
        {F, 5000, 6000, 5, ROWS, 0, 0, 0, 0, false},
        {F, 4096, 32768, 5, ROWS, 0, 0, 0, 0, false},
        {F, 4096, 300000, 3, ROWS, 0, 0, 0, 0, true},
        {F, 9000, 20000, 3, ROWS, 0, 0, 0, 0, false},
        {F, 5000, 1000000, 2, ROWS, 40, 4500, 0, 0, false},
        {F, 40000, 600000, 2, COLUMNS, 0, 0, 0, 0, false},
        {F, 64, 1000003, 2, COLUMNS, 0, 0, 33000, 0, false},
        {F, 64, 100000, 33, ROWS, 0, 0, 0, 0, false},
        {F, 64, 2000, 3000, ROWS, 0, 0, 0, 0, false},
        {F, 64, 2000, 3000, COLUMNS, 0, 0, 0, 0, false},
        {GNOMON_BF16, 256, 50000, 9, COLUMNS, 0, 0, 0, 0, false},
        {GNOMON_F16, 4096, 50000, 4, ROWS, 0, 0, 0, 0, false},
        {GNOMON_U8, 1024, 50000, 4, COLUMNS, 0, 0, 0, 0, false},
        {GNOMON_I16, 128, 50000, 4, ROWS, 0, 0, 33000, 0, false},
        {GNOMON_U16, 128, 50000, 4, STRIDED, 0, 0, 0, 0, false},
    };
    if (!reduced) jobs.insert(jobs.end(), more, more + sizeof more / sizeof *more);
    int failed = 0;
    for (const job &j : jobs)
        failed += check(ctx, gpu, j);
    printf("%d jobs, %d failed\n", (int)jobs.size(), failed);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return failed != 0;
}
