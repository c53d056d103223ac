/* Checks the very-sparse family against the definition, walked one jump at a time, in fp64; and
 * that bits depend on neither points, pieces, layout nor work memory. */
#include "cuda/project/family.h"
#include "must.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

static __device__ double value(const gcu_points &x, int64_t b, int64_t i, int64_t q)
{
    switch (x.dtype) {
    case GNOMON_F16:
        return gcu_load<__half>(x, b, i, q);
    case GNOMON_BF16:
        return gcu_load<__nv_bfloat16>(x, b, i, q);
    case GNOMON_I8:
        return gcu_load<int8_t>(x, b, i, q);
    case GNOMON_U8:
        return gcu_load<uint8_t>(x, b, i, q);
    case GNOMON_I16:
        return gcu_load<int16_t>(x, b, i, q);
    case GNOMON_U16:
        return gcu_load<uint16_t>(x, b, i, q);
    default:
        return gcu_load<float>(x, b, i, q);
    }
}

/* A warp a row and 32 folded points; y and the sums' norms, [row][point]. */
static __global__ void reference(gcu_stream s, float jump_scale, int64_t chunk, int64_t row,
                                 int64_t col, gcu_points x, double *y, double *norm)
{
    const int64_t i = row + blockIdx.x, points = x.n * x.blocks;
    const int64_t v = (int64_t)blockIdx.y * 32 + threadIdx.x;
    double sum = 0, squares = 0;
    for (int64_t q = 0; q * chunk < x.block_cols; q++) {
        int64_t at = -1;
        for (uint32_t t = 0;; t++) {
            const uint4 w = gcu_call_general(s, (uint32_t)(i / 4), (uint64_t)(col / chunk + q), t);
            const uint32_t word = gcu_word(w, (int)(i % 4));
            at += gcu_advance(word, jump_scale);
            if (at >= chunk || q * chunk + at >= x.block_cols) break;
            if (v >= points) continue;
            const double e = value(x, v / x.n, v % x.n, q * chunk + at);
            sum += word & 1 ? -e : e;
            squares += e * e;
        }
    }
    if (v < points) {
        y[blockIdx.x * points + v] = sum;
        norm[blockIdx.x * points + v] = sqrt(squares);
    }
}

/* Numbers of any range in fp32, shape 3 with infinities and NaN in some columns, small ones in the
 * other types; the same for every layout. */
static __global__ void fill(void *data, gnomon_dtype dtype, int64_t n, int64_t d,
                            int64_t row_stride, int64_t col_stride, int shape)
{
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * d;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t i = at / d, j = at % d, to = i * row_stride + j * col_stride;
        const uint4 w = gcu_philox((uint32_t)j, (uint32_t)(j >> 32), (uint32_t)i, 128u << 24, 5, 6);
        const float2 g = gcu_box_muller(w.x, w.y);
        float e = shape == 0 ? g.x : shape == 1 ? g.x * expf(4.0f * g.y) : fabsf(g.x);
        if (shape == 3 && w.w < 1u << 20) e = w.w & 1 ? NAN : copysignf(INFINITY, g.x);
        switch (dtype) {
        case GNOMON_F16:
            static_cast<__half *>(data)[to] = __float2half_rn(g.x);
            break;
        case GNOMON_BF16:
            static_cast<__nv_bfloat16 *>(data)[to] = __float2bfloat16_rn(e);
            break;
        case GNOMON_I8:
            static_cast<int8_t *>(data)[to] = (int8_t)(w.z >> 24);
            break;
        case GNOMON_U8:
            static_cast<uint8_t *>(data)[to] = (uint8_t)(w.z >> 24);
            break;
        case GNOMON_I16:
            static_cast<int16_t *>(data)[to] = (int16_t)(w.z >> 16);
            break;
        case GNOMON_U16:
            static_cast<uint16_t *>(data)[to] = (uint16_t)(w.z >> 16);
            break;
        default:
            static_cast<float *>(data)[to] = e;
        }
    }
}

enum layout { COORDINATES, POINTS, BOTH_STRIDED };

struct job {
    int64_t k, n, d; /* d: columns of all blocks */
    double p;
    gnomon_dtype dtype;
    layout layout;
    int blocks;
    int64_t row, rows;
    int64_t chunk; /* of A, where the points' columns begin: a multiple of the granule's chunks */
    int shape;
};

struct input {
    void *data;
    gnomon_dtype dtype;
    int64_t row_stride, col_stride;
};

static input make_input(const job &j, layout layout)
{
    input in = {nullptr, j.dtype, 1, j.n};
    if (layout == POINTS) in.row_stride = j.d, in.col_stride = 1;
    if (layout == BOTH_STRIDED) in.row_stride = 3, in.col_stride = 3 * j.n + 1;
    const size_t size = gnomon_dtype_size(j.dtype);
    const size_t elements = (size_t)((j.n - 1) * in.row_stride + (j.d - 1) * in.col_stride + 1);
    MUST(cudaMalloc(&in.data, elements * size));
    MUST(cudaMemset(in.data, 0xFF, elements * size)); /* NaN between the points */
    fill<<<1024, 256>>>(in.data, j.dtype, j.n, j.d, in.row_stride, in.col_stride, j.shape);
    MUST(cudaGetLastError());
    return in;
}

struct cut {
    int64_t point, points; /* of the job's */
    int pieces;
    enum { BEST, LEAST, SOME } work;
};

/* Sums of the job, [point of the cut][row of all blocks]; NaN where nothing was written. */
static std::vector<float> project(const gcu_gpu &gpu, const gnomon_simple &a, const job &j,
                                  const input &in, cut c)
{
    const gcu_family &family = gcu_very_sparse;
    const int64_t cols = j.d / j.blocks, all_rows = a.rows * j.blocks;
    const size_t y_bytes = (size_t)(c.points * all_rows) * 4;
    const size_t carry_bytes = (size_t)(j.rows * c.points * j.blocks) * 4;
    float *y, *carry;
    MUST(cudaMalloc(&y, y_bytes));
    MUST(cudaMalloc(&carry, carry_bytes));
    MUST(cudaMemset(y, 0xFF, y_bytes));
    MUST(cudaMemset(carry, 0xFF, carry_bytes));
    const int64_t unit = family.granule(&a), units = (cols + unit - 1) / unit;
    const int64_t turn = (units + c.pieces - 1) / c.pieces;
    const size_t size = gnomon_dtype_size(in.dtype);
    for (int64_t u = 0; u < units; u += turn) {
        const int64_t from = u * unit, to = (u + turn) * unit < cols ? (u + turn) * unit : cols;
        gcu_task t = {};
        t.a = &a;
        t.row = j.row;
        t.rows = j.rows;
        t.col = j.chunk * a.chunk + from;
        t.gpu = &gpu;
        t.x.data = static_cast<const char *>(in.data) +
                   (size_t)(c.point * in.row_stride + from * in.col_stride) * size;
        t.x.dtype = in.dtype;
        t.x.row_stride = in.row_stride;
        t.x.col_stride = in.col_stride;
        t.x.block_stride = cols * in.col_stride;
        t.x.n = c.points;
        t.x.blocks = j.blocks;
        t.x.block_cols = to - from;
        t.x.first = 0;
        t.x.end = j.blocks * (to - from);
        t.out.y = y;
        t.out.dtype = GNOMON_F32;
        t.out.row_stride = all_rows;
        t.out.col_stride = 1;
        t.out.k = all_rows;
        t.out.r = j.blocks;
        t.out.rows = all_rows;
        t.out.factor_most = t.out.factor_least = 1.0;
        t.out.carry = carry;
        t.out.begins = u == 0;
        t.out.finishes = to == cols;
        char why[200] = "";
        if (!family.supports(&t, why, sizeof why)) {
            printf("declined: %s\n", why);
            exit(1);
        }
        const size_t least = family.least_work(&t), best = family.best_work(&t);
        t.work_bytes = c.work == cut::BEST    ? best
                       : c.work == cut::LEAST ? least
                                              : least + (best - least) / 3;
        MUST(cudaMalloc(&t.work, t.work_bytes + 16));
        MUST(cudaMemset(t.work, 0xFF, t.work_bytes + 16));
        MUST(family.run(&t));
        MUST(cudaDeviceSynchronize());
        cudaFree(t.work);
    }
    std::vector<float> out((size_t)(c.points * all_rows));
    MUST(cudaMemcpy(out.data(), y, y_bytes, cudaMemcpyDeviceToHost));
    cudaFree(y);
    cudaFree(carry);
    return out;
}

/* How many entries of z, the sums of points from 'point' on, are not y's to the bit. */
static int64_t differences(const std::vector<float> &y, const std::vector<float> &z, int64_t point,
                           int64_t all_rows)
{
    int64_t differ = 0;
    for (size_t e = 0; e < z.size(); e++)
        differ += memcmp(&z[e], &y[(size_t)(point * all_rows) + e], 4) != 0;
    return differ;
}

static int check(const gcu_gpu &gpu, const job &j)
{
    gnomon_simple a = {};
    a.kind = GNOMON_VERY_SPARSE;
    a.key0 = 0x12345678u;
    a.key1 = 0x9ABCDEF0u;
    a.rows = j.k;
    a.density = j.p;
    a.jump_scale = j.p == 1 ? 0.0f : (float)(-1.0 / log1p(-j.p));
    const double length = floor(24.0 / (256.0 * j.p) + 0.5);
    a.chunk = 256 * (int64_t)(length < 1 ? 1 : length > 16384 ? 16384 : length);
    a.cols = j.chunk * a.chunk + j.d / j.blocks;
    const int64_t cols = j.d / j.blocks, points = j.n * j.blocks, all_rows = j.k * j.blocks;
    const input in = make_input(j, j.layout);
    const gcu_points px = {
        in.data, in.dtype, in.row_stride, in.col_stride, cols * in.col_stride, j.n, j.blocks, cols,
        0,       j.d};
    double *ref, *norm;
    MUST(cudaMalloc(&ref, (size_t)(j.rows * points) * 8));
    MUST(cudaMalloc(&norm, (size_t)(j.rows * points) * 8));
    reference<<<dim3((unsigned)j.rows, (unsigned)((points + 31) / 32)), 32>>>(
        gcu_stream_of(&a, GNOMON_TAG_VERY_SPARSE), a.jump_scale, a.chunk, j.row, j.chunk * a.chunk,
        px, ref, norm);
    MUST(cudaGetLastError());
    std::vector<double> r((size_t)(j.rows * points)), s(r.size());
    MUST(cudaMemcpy(r.data(), ref, r.size() * 8, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(s.data(), norm, s.size() * 8, cudaMemcpyDeviceToHost));

    const std::vector<float> y = project(gpu, a, j, in, {0, j.n, 1, cut::BEST});
    double most = 0;
    int64_t bad = 0, written = 0;
    for (int64_t c = 0; c < j.rows; c++)
        for (int64_t v = 0; v < points; v++) {
            const double got = y[(size_t)(v % j.n * all_rows + v / j.n * j.k + j.row + c)];
            const double want = r[(size_t)(c * points + v)], size = s[(size_t)(c * points + v)];
            if (!isfinite(want)) {
                bad += !(got == want || (got != got && want != want));
                continue;
            }
            const double error = fabs(got - want) / (size > 0 ? size : 1);
            if (!(error <= 3e-6)) bad++;
            if (error > most) most = error;
        }
    for (float e : y) {
        uint32_t bits;
        memcpy(&bits, &e, 4);
        written += bits != ~0u;
    }
    if (written != j.rows * points) bad++;

    int64_t differ[4] = {0, 0, 0, 0};
    const int64_t point = j.n / 3;
    differ[0] =
        differences(y, project(gpu, a, j, in, {point, j.n - point, 1, cut::BEST}), point, all_rows);
    differ[1] = differences(y, project(gpu, a, j, in, {0, j.n, 3, cut::BEST}), 0, all_rows);
    differ[2] = differences(y, project(gpu, a, j, in, {0, j.n, 1, cut::LEAST}), 0, all_rows) +
                differences(y, project(gpu, a, j, in, {0, j.n, 1, cut::SOME}), 0, all_rows);
    const layout other = j.layout == COORDINATES ? POINTS : COORDINATES;
    const input transposed = make_input(j, other);
    differ[3] = differences(y, project(gpu, a, j, transposed, {0, j.n, 2, cut::BEST}), 0, all_rows);
    const bool ok = bad == 0 && differ[0] + differ[1] + differ[2] + differ[3] == 0;
    printf("%s k %lld rows %lld+%lld n %lld r %d D %lld p %.3g type %d layout %d: worst %.1e, bad "
           "%lld, other bits by points %lld, pieces %lld, work %lld, layout %lld\n",
           ok ? "ok  " : "FAIL", (long long)j.k, (long long)j.row, (long long)j.rows,
           (long long)j.n, j.blocks, (long long)j.d, j.p, (int)j.dtype, (int)j.layout, most,
           (long long)bad, (long long)differ[0], (long long)differ[1], (long long)differ[2],
           (long long)differ[3]);
    cudaFree(in.data);
    cudaFree(transposed.data);
    cudaFree(ref);
    cudaFree(norm);
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
    const gnomon_dtype F32 = GNOMON_F32;
    const job jobs[] = {
        {16384, 32, 2000000, 1e-4, F32, COORDINATES, 1, 0, 16384, 0, 0},
        {16384, 32, 1000000, 1e-3, F32, POINTS, 1, 0, 16384, 0, 0},
        {20000, 32, 300001, 1e-3, F32, POINTS, 1, 0, 20000, 0, 1},
        {4096, 40, 500000, 1e-3, F32, COORDINATES, 1, 0, 4096, 0, 1},
        {1000, 16, 200000, 1.0 / 447, F32, COORDINATES, 1, 101, 711, 0, 0},
        {1000, 8, 200000, 1.0 / 447, F32, COORDINATES, 1, 0, 1000, 0, 2},
        {1000, 8, 200000, 1.0 / 447, F32, POINTS, 1, 3, 994, 0, 2},
        {513, 4, 100000, 0.01, F32, COORDINATES, 1, 0, 513, 0, 0},
        {130, 7, 100003, 0.01, F32, COORDINATES, 1, 0, 130, 0, 0},
        {130, 33, 50001, 0.01, F32, BOTH_STRIDED, 1, 5, 101, 0, 1},
        /* points side by side: few and many columns, parts of tiles, infinities, chunks of many
           nonzeros */
        {16384, 32, 67584, 1e-3, F32, POINTS, 1, 0, 16384, 0, 0},
        {16384, 32, 135172, 1e-3, F32, POINTS, 1, 0, 16384, 0, 1},
        {16384, 16, 270335, 3e-4, F32, POINTS, 1, 0, 16384, 0, 0},
        {16384, 30, 1000000, 1e-4, F32, POINTS, 1, 7, 16300, 0, 3},
        {16384, 8, 300000, 5e-4, F32, POINTS, 1, 0, 16384, 0, 0},
        {17000, 33, 70001, 1e-3, F32, POINTS, 1, 0, 17000, 0, 0},
        {16384, 32, 20000, 1e-3, F32, POINTS, 1, 0, 16384, 0, 3},
        {1024, 32, 400000, 1e-3, F32, POINTS, 1, 0, 1024, 0, 1},
        {512, 32, 400000, 0.16, F32, POINTS, 1, 0, 512, 0, 0},
        {512, 13, 100000, 0.16, F32, POINTS, 1, 0, 512, 0, 0},
        {512, 20, 160000, 0.01, F32, POINTS, 4, 0, 512, 0, 1},
        {37, 1, 100000, 0.003, F32, POINTS, 1, 0, 37, 0, 0},
        /* few points */
        {16384, 1, 3000001, 1e-4, F32, POINTS, 1, 0, 16384, 0, 0},
        {16384, 2, 1000003, 1e-4, F32, COORDINATES, 1, 2, 16381, 0, 3},
        {16384, 3, 700001, 1e-4, F32, POINTS, 1, 0, 16384, 0, 3},
        {16384, 4, 500000, 1e-3, F32, COORDINATES, 1, 0, 16384, 0, 3},
        {16384, 6, 300001, 1e-3, F32, POINTS, 1, 0, 16384, 0, 1},
        {16384, 8, 1000000, 1e-4, F32, COORDINATES, 1, 1, 16380, 0, 3},
        {1001, 5, 200000, 0.01, F32, BOTH_STRIDED, 1, 3, 995, 0, 3},
        {130, 2, 100003, 0.01, F32, BOTH_STRIDED, 1, 0, 130, 0, 1},
        {16384, 1, 2000, 0.5, F32, POINTS, 1, 0, 16384, 0, 1},
        {5, 100, 20000, 0.3, F32, POINTS, 1, 0, 5, 0, 0},
        {64, 32, 5000, 1.0, F32, COORDINATES, 1, 0, 64, 0, 0},
        {64, 12, 5000, 0.9, F32, POINTS, 1, 0, 64, 0, 0},
        {16384, 12, 5000, 0.5, F32, POINTS, 1, 1, 16382, 0, 0},
        {3, 5, 10000000, 1e-6, F32, POINTS, 1, 0, 3, 0, 0},
        {16384, 9, 9000000, 1e-6, F32, POINTS, 1, 0, 16384, 0, 0},
        {512, 8, 9000000, 1e-9, F32, COORDINATES, 1, 0, 512, 0, 0},
        {64, 20, 80000, 0.01, F32, POINTS, 16, 0, 64, 0, 0},
        {64, 16, 80000, 0.01, F32, COORDINATES, 16, 0, 64, 0, 0},
        {16384, 8, 80000, 0.01, F32, POINTS, 2, 0, 16384, 0, 0},
        {300, 24, 100000, 0.01, GNOMON_F16, COORDINATES, 1, 0, 300, 0, 0},
        {16384, 32, 200000, 0.002, GNOMON_F16, POINTS, 1, 0, 16384, 0, 0},
        {300, 24, 100000, 0.01, GNOMON_BF16, POINTS, 1, 0, 300, 0, 1},
        {300, 24, 100000, 0.01, GNOMON_I8, POINTS, 1, 0, 300, 0, 0},
        {300, 24, 100000, 0.01, GNOMON_U8, POINTS, 1, 0, 300, 0, 0},
        {300, 24, 100000, 0.01, GNOMON_I16, BOTH_STRIDED, 1, 0, 300, 0, 0},
        {300, 24, 100000, 0.01, GNOMON_U16, COORDINATES, 1, 0, 300, 0, 0},
        /* beyond 2^32 columns */
        {16384, 16, 500000, 1e-3, F32, COORDINATES, 1, 0, 100, (int64_t)1 << 24, 0},
    };
    int failed = 0;
    const bool reduced = getenv("GNOMON_TEST_REDUCED") != nullptr;
    for (const job &j : jobs)
        if (!reduced || (double)j.rows * (double)j.d * j.p * (double)j.n < 4e7)
            failed += check(gpu, j);
    printf("%d failed\n", failed);
    return failed != 0;
}
