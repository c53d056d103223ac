/* Checks the cascade of kronecker operators against the CPU's entries, in fp64.
 * GNOMON_TEST_REDUCED=1 runs a part, for slow checkers. */
#include "cuda/project/cascade.h"
#include "must.cuh"

#include <gnomon.h>

#include <cuda_fp16.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

struct job {
    gnomon_kind inner;
    gnomon_dtype precision;
    gnomon_dtype dtype;
    int64_t n, k, d, zeta, width;
    bool points_first, huge;
    int64_t row, rows; /* rows 0: all */
    int64_t col, cols; /* of the view; cols 0: all */
};

static uint64_t state = 88172645463325252ull;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

struct points {
    std::vector<double> exact; /* n x cols */
    void *device;              /* of element (0, 0) of the view */
    int64_t n, cols, row_stride, col_stride;
};

static points make_points(const job &j)
{
    points p;
    p.n = j.n;
    p.cols = j.cols ? j.cols : j.d;
    p.row_stride = j.points_first ? 1 : p.cols;
    p.col_stride = j.points_first ? j.n : 1;
    p.exact.resize((size_t)(j.n * p.cols));
    const bool half = j.dtype == GNOMON_F16;
    std::vector<float> memory(p.exact.size());
    std::vector<__half> halves(p.exact.size());
    for (int64_t i = 0; i < j.n; i++) {
        for (int64_t q = 0; q < p.cols; q++) {
            const int64_t at = i * p.row_stride + q * p.col_stride;
            float x = (float)uniform();
            if (j.huge) x = ldexpf(x, (int)(uniform() * 100.0));
            halves[at] = __float2half_rn(x);
            if (half) x = __half2float(halves[at]);
            memory[at] = x;
            p.exact[i * p.cols + q] = x;
        }
    }
    const size_t bytes = p.exact.size() * (half ? 2 : 4);
    MUST(cudaMalloc(&p.device, bytes));
    MUST(cudaMemcpy(p.device, half ? (void *)halves.data() : memory.data(), bytes,
                    cudaMemcpyHostToDevice));
    return p;
}

/* y: n x rows of the points from 'point' on. */
static void project(const gcu_gpu &gpu, const job &j, const gnomon_operator *op, const points &p,
                    int64_t point, int64_t n, bool least, std::vector<float> &y)
{
    const int64_t rows = j.rows ? j.rows : j.k - j.row;
    const int64_t size = j.dtype == GNOMON_F16 ? 2 : 4;
    gcu_cascade_task t = {};
    t.op = op;
    t.gpu = &gpu;
    t.x.data =
        static_cast<const char *>(p.device) + (point * p.row_stride - j.col * p.col_stride) * size;
    t.x.dtype = j.dtype;
    t.x.row_stride = p.row_stride;
    t.x.col_stride = p.col_stride;
    t.x.block_stride = j.d * p.col_stride;
    t.x.n = n;
    t.x.blocks = 1;
    t.x.block_cols = j.d;
    t.x.first = j.col;
    t.x.end = j.col + p.cols;
    float *out;
    MUST(cudaMalloc(&out, (size_t)(n * rows) * sizeof *out));
    MUST(cudaMemset(out, 0xFF, (size_t)(n * rows) * sizeof *out));
    t.out.y = out;
    t.out.dtype = GNOMON_F32;
    t.out.row_stride = rows;
    t.out.col_stride = 1;
    t.out.k = j.k;
    t.out.r = 1;
    t.out.row = j.row;
    t.out.rows = rows;
    t.out.factor_most = t.out.factor_least = op->scale;
    t.out.begins = t.out.finishes = true;
    char why[256];
    if (!gcu_cascade_supports(&t, why, sizeof why)) {
        printf("declined: %s\n", why);
        exit(1);
    }
    t.work_bytes = least ? gcu_cascade_least_work(&t) : gcu_cascade_best_work(&t);
    MUST(cudaMalloc(&t.work, t.work_bytes + 1));
    MUST(cudaMemset(t.work, 0xFF, t.work_bytes));
    MUST(gcu_cascade(&t));
    y.resize((size_t)(n * rows));
    MUST(cudaMemcpy(y.data(), out, y.size() * sizeof *out, cudaMemcpyDeviceToHost));
    MUST(cudaFree(out));
    MUST(cudaFree(t.work));
}

static int check(const gcu_gpu &gpu, gnomon_context *ctx, const job &j)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_KRONECKER;
    d.inner = j.inner;
    d.precision = j.inner == GNOMON_GAUSSIAN ? j.precision : (gnomon_dtype)0;
    d.seed = 0x123456789ABCDEFull;
    d.k = j.k;
    d.d = j.d;
    d.zeta = j.zeta;
    d.width = j.width;
    gnomon_operator *op;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK) {
        printf("%s\n", gnomon_last_error(ctx));
        return 1;
    }
    const int64_t rows = j.rows ? j.rows : j.k - j.row;
    const uint64_t before = state;
    const points p = make_points(j);
    std::vector<double> s((size_t)(rows * p.cols));
    const gnomon_matrix block = gnomon_matrix_rowmajor(s.data(), GNOMON_F64, rows, p.cols);
    if (gnomon_operator_block(ctx, op, j.row, j.col, &block) != GNOMON_OK) {
        printf("%s\n", gnomon_last_error(ctx));
        return 1;
    }
    std::vector<float> y, z;
    project(gpu, j, op, p, 0, j.n, false, y);
    /* every level's rounding errors, measured by the point's length: S keeps lengths, nearly */
    double most = 0, sum = 0, size = 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < j.n; i++) {
        double length = 0;
        for (int64_t q = 0; q < p.cols; q++)
            length += p.exact[i * p.cols + q] * p.exact[i * p.cols + q];
        length = sqrt(length / (double)j.k);
        for (int64_t a = 0; a < rows; a++) {
            double want = 0;
            for (int64_t q = 0; q < p.cols; q++)
                want += s[a * p.cols + q] * p.exact[i * p.cols + q];
            const double e = fabs(y[(size_t)(i * rows + a)] - want);
            if (e / length > most) most = e / length;
            bad += !(e <= 3e-6 * sqrt((double)op->levels) * length);
            sum += e * e;
            size += want * want;
        }
    }
    /* the bits must depend neither on the points beside a point nor on work memory */
    project(gpu, j, op, p, 0, j.n, true, z);
    const bool other = memcmp(y.data(), z.data(), y.size() * sizeof y[0]) != 0;
    const int64_t from = j.n / 3;
    project(gpu, j, op, p, from, j.n - from, false, z);
    const bool part = memcmp(y.data() + from * rows, z.data(), z.size() * sizeof z[0]) != 0;
    /* nor on the layout, which decides whether two levels are one kernel */
    job across = j;
    across.points_first = !j.points_first;
    const uint64_t after = state;
    state = before;
    const points turned = make_points(across);
    state = after;
    project(gpu, across, op, turned, 0, j.n, false, z);
    const bool layout = memcmp(y.data(), z.data(), y.size() * sizeof y[0]) != 0;
    MUST(cudaFree(turned.device));
    const bool ok = bad == 0 && !other && !part && !layout;
    printf("%s %s type %d n %lld k %lld D %lld zeta %lld width %lld levels %d rows %lld+%lld cols "
           "%lld+%lld %s: rms %.1e max %.1e bad %lld other bits %d %d %d\n",
           ok ? "ok  " : "FAIL", gnomon_kind_name(j.inner), (int)j.dtype, (long long)j.n,
           (long long)j.k, (long long)j.d, (long long)j.zeta, (long long)op->descriptor.width,
           op->levels, (long long)j.row, (long long)rows, (long long)j.col, (long long)p.cols,
           j.points_first ? "col" : "row", sqrt(sum / size), most, (long long)bad, other, part,
           layout);
    MUST(cudaFree(p.device));
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
    printf("%s, path %d\n", why, gpu.major);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    gnomon_context *ctx;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return 1;
    const gnomon_kind S = GNOMON_RADEMACHER, T = GNOMON_ACHLIOPTAS, G = GNOMON_GAUSSIAN;
    const gnomon_dtype P0 = (gnomon_dtype)0, P16 = GNOMON_F16, P32 = GNOMON_F32;
    const gnomon_dtype F = GNOMON_F32, H = GNOMON_F16;
    const job jobs[] = {
        {S, P0, F, 5, 64, 5003, 2, 0, false, true, 0, 0, 0, 0},
        {S, P0, F, 37, 64, 70000, 4, 0, false, false, 0, 0, 0, 0},
        {S, P0, F, 11, 40, 40001, 3, 64, false, false, 3, 20, 1001, 30000},
        {T, P0, F, 150, 64, 4097, 4, 0, false, false, 0, 0, 0, 0},
        {S, P0, F, 37, 32, 4096, 2, 0, false, false, 0, 0, 0, 0},
        {S, P0, F, 33, 61, 5001, 2, 0, true, false, 0, 0, 0, 0},
        {S, P0, F, 5, 8, 10000, 8, 0, false, true, 0, 0, 0, 0},
        {S, P0, H, 40, 64, 4096, 4, 0, true, false, 0, 0, 0, 0},
        {S, P0, F, 19, 24, 7000, 3, 40, false, false, 0, 0, 0, 0},
        {S, P0, F, 21, 30, 9000, 5, 0, true, false, 7, 11, 1234, 4321},
        {S, P0, F, 3, 16, 3000, 2, 0, false, false, 0, 0, 2999, 1},
        {S, P0, F, 9, 200, 6000, 2, 0, true, true, 0, 0, 0, 0},
        {S, P0, F, 1, 300, 1301, 4, 301, false, false, 100, 3, 17, 1000},
        {T, P0, F, 25, 20, 5000, 2, 0, true, false, 0, 0, 0, 0},
        {T, P0, F, 12, 150, 4000, 6, 0, false, false, 0, 0, 0, 0},
        {G, P16, F, 30, 17, 5000, 4, 0, false, false, 0, 0, 0, 0},
        {G, P32, F, 20, 40, 3000, 2, 0, true, false, 0, 0, 100, 2000},
        {G, P32, H, 7, 40, 3000, 16, 0, false, false, 0, 0, 0, 0},
        {GNOMON_SJLT, P0, F, 30, 64, 9000, 4, 0, false, false, 0, 0, 0, 0},
        {GNOMON_SJLT, P0, F, 41, 33, 5001, 2, 0, true, false, 5, 20, 300, 4000},
        {GNOMON_VERY_SPARSE, P0, F, 12, 96, 6000, 3, 0, true, false, 0, 0, 0, 0},
    };
    const char *word = getenv("GNOMON_TEST_REDUCED");
    const int every = word && *word && *word != '0' ? 4 : 1;
    int failed = 0, at = 0;
    for (const job &j : jobs)
        failed += at++ % every == 0 ? check(gpu, ctx, j) : 0;
    printf("%d failed\n", failed);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return failed != 0;
}
