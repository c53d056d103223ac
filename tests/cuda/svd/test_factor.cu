/* What factorisations on the GPU are made of: products with an operator that is made where it is
 * packed, to the bit those with its stored entries, or where it is used, beside sums in double
 * precision; the sum of squares that such a product leaves; eigenvectors of small matrices. */
#include "cuda/gemm/gemm.h"
#include "cuda/svd/svd.h"
#include "draw.cuh"
#include "must.cuh"

#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static int failures;

static void failed(const char *what, double got, double due)
{
    printf("FAILED %s: %g, %g was due\n", what, got, due);
    failures++;
}

/* ---- products ---- */

struct product_case {
    const char *name;
    gnomon_kind kind;
    gnomon_dtype precision;
    int64_t m, n, k;
    bool along_m; /* A's rows are neighbours */
    int64_t run;  /* A's columns come in runs; 0: no */
    double range; /* of the logarithms of A's numbers; 0: 4 */
};

/* The largest error over the sum of magnitudes, of some rows; b of halves, k x n. */
static double error_of(const product_case *c, const std::vector<float> &a, const void *b,
                       const std::vector<float> &got)
{
    std::vector<__half> halves((size_t)(c->k * c->n));
    MUST(cudaMemcpy(halves.data(), b, halves.size() * 2, cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int64_t i = (int64_t)(uniform() * 8); i < c->m; i += 1 + c->m / 12)
        for (int64_t j = 0; j < c->n; j++) {
            double sum = 0, all = 0;
            for (int64_t k = 0; k < c->k; k++) {
                const int64_t at = c->along_m ? k * c->m + i
                                   : c->run   ? (k / c->run * c->m + i) * c->run + k % c->run
                                              : i * c->k + k;
                const double term = (double)a[at] * (double)__half2float(halves[k * c->n + j]);
                sum += term;
                all += std::fabs(term);
            }
            const double error = std::fabs(got[i * c->n + j] - sum) / all;
            worst = std::fmax(worst, std::isfinite(error) || all == 0 ? error : INFINITY);
        }
    return worst;
}

static std::vector<float> product(const gcu_gemm *g, float *c, int64_t count)
{
    std::vector<float> out((size_t)count);
    void *work;
    const size_t bytes = gcu_gemm_work(g);
    MUST(cudaMalloc(&work, bytes));
    MUST(cudaMemset(work, 0xff, bytes));
    MUST(cudaMemset(c, 0xff, out.size() * 4));
    MUST(gcu_gemm_run(g, work, bytes, nullptr));
    MUST(cudaMemcpy(out.data(), c, out.size() * 4, cudaMemcpyDeviceToHost));
    MUST(cudaFree(work));
    return out;
}

static void check_product(const gcu_gpu *gpu, const product_case *c)
{
    gnomon_simple op = {};
    op.kind = c->kind;
    op.precision = c->precision;
    op.key0 = (uint32_t)(uniform() * 0x1p32);
    op.key1 = (uint32_t)(uniform() * 0x1p32);
    op.rows = c->n + 5;
    op.cols = c->k;
    const bool halves = c->kind != GNOMON_GAUSSIAN || c->precision == GNOMON_F16;
    std::vector<float> a((size_t)(c->m * c->k));
    double squares = 0, seen = 0;
    for (float &x : a) {
        x = (float)((uniform() - 0.5) * std::exp((c->range > 0 ? c->range : 4) * uniform()));
        squares += (double)x * x;
    }
    float *at, *out;
    double *sum;
    void *b;
    MUST(cudaMalloc(&at, a.size() * 4));
    MUST(cudaMalloc(&out, (size_t)(c->m * c->n) * 4));
    MUST(cudaMalloc(&b, (size_t)(c->k * c->n) * 4));
    MUST(cudaMalloc(&sum, sizeof *sum));
    MUST(cudaMemset(sum, 0xff, sizeof *sum));
    MUST(cudaMemcpy(at, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    MUST(gcu_svd_entries(gpu, &op, 0, c->n, 0, c->k, halves, b, nullptr));
    gcu_gemm g = {};
    g.form = halves ? GCU_GEMM_SCALED : GCU_GEMM_THREE;
    g.m = c->m;
    g.n = c->n;
    g.k = c->k;
    g.a = {at, GNOMON_F32, c->along_m ? 1 : c->k, c->along_m ? c->m : 1};
    if (c->run) { /* one after the other, each m x run */
        g.a.row_stride = g.a_run = c->run;
        g.a_run_stride = c->m * c->run;
    }
    g.b = {b, halves ? GNOMON_F16 : GNOMON_F32, c->n, 1};
    g.c = out;
    g.c_row_stride = c->n;
    g.c_col_stride = 1;
    g.alpha = 1;
    g.gpu = gpu;
    if (gcu_gemm_work(&g) == 0) {
        printf("%-28s not taken here\n", c->name);
    } else {
        const std::vector<float> stored = product(&g, out, c->m * c->n);
        g.b.data = nullptr;
        g.b_made = &op;
        const bool scans = gcu_gemm_sums_squares(&g);
        if (scans) g.a_squares = sum;
        const std::vector<float> made = product(&g, out, c->m * c->n);
        size_t differ = 0;
        for (size_t i = 0; i < made.size(); i++)
            differ += !(made[i] == stored[i]);
        const bool few = halves && c->n <= 32 && gpu->major == 9 &&
                         c->kind != GNOMON_ACHLIOPTAS; /* products of their own */
        const double worst = few ? error_of(c, a, b, made) : 0;
        if (few && !(worst < 0x1p-20)) failed(c->name, worst, 0x1p-20);
        if (few && made != product(&g, out, c->m * c->n)) failed("the bits of a second run", 1, 0);
        if (!few && differ) failed(c->name, (double)differ, 0);
        MUST(cudaMemcpy(&seen, sum, sizeof seen, cudaMemcpyDeviceToHost));
        if (scans && !(std::fabs(seen / squares - 1) < 1e-6)) failed(c->name, seen, squares);
        if (!scans && gpu->major == 9 && !c->along_m && c->n <= 128 && c->k % 4 == 0)
            failed("looking", 0, 1);
        if (scans) {
            const float bad = uniform() < 0.5 ? NAN : -INFINITY;
            const size_t place = (size_t)(uniform() * (double)a.size());
            MUST(cudaMemcpy(at + place, &bad, 4, cudaMemcpyHostToDevice));
            (void)product(&g, out, c->m * c->n);
            MUST(cudaMemcpy(&seen, sum, sizeof seen, cudaMemcpyDeviceToHost));
            if (std::isfinite(seen)) failed("a sum that is not finite", seen, NAN);
        }
        printf("%-28s %s, %zu differ, off %.1e\n", c->name, scans ? "looked at" : "not looked at",
               differ, worst);
    }
    MUST(cudaFree(at));
    MUST(cudaFree(out));
    MUST(cudaFree(b));
    MUST(cudaFree(sum));
}

/* ---- eigenvectors ---- */

/* Several matrices of up to n rows at once. */
static void check_eigen(int n, int count)
{
    gcu_svd_problem problem[GCU_SVD_JACOBI_COUNT];
    std::vector<std::vector<double>> gram;
    for (int p = 0; p < count; p++) {
        const int size = p == 0 ? n : 1 + (int)(uniform() * n), depth = size / (p % 3 + 1) + 1;
        std::vector<double> b((size_t)(size * depth)), g((size_t)(size * size));
        const double fall = 20 * uniform(), scale = std::ldexp(1.0, (int)(200 * uniform()) - 100);
        for (int i = 0; i < size * depth; i++)
            b[i] = scale * (uniform() - 0.5) * std::exp(-fall * (i / depth) / size);
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                for (int k = 0; k < depth; k++)
                    g[i * size + j] += b[i * depth + k] * b[j * depth + k];
        problem[p].n = size;
        MUST(cudaMalloc(&problem[p].gram, g.size() * 8));
        MUST(cudaMalloc(&problem[p].vectors, g.size() * 8));
        MUST(cudaMalloc(&problem[p].values, (size_t)size * 8));
        MUST(cudaMemset(problem[p].vectors, 0xff, g.size() * 8));
        MUST(cudaMemcpy(problem[p].gram, g.data(), g.size() * 8, cudaMemcpyHostToDevice));
        gram.push_back(g);
    }
    cudaEvent_t begin, end;
    float ms = 0;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    MUST(gcu_svd_jacobi(problem, count, nullptr));
    MUST(cudaEventRecord(begin, nullptr));
    MUST(gcu_svd_jacobi(problem, count, nullptr));
    MUST(cudaEventRecord(end, nullptr));
    MUST(cudaEventSynchronize(end));
    MUST(cudaEventElapsedTime(&ms, begin, end));
    double off = 0, left = 0;
    for (int p = 0; p < count; p++) {
        const int size = problem[p].n;
        const std::vector<double> &g = gram[p];
        std::vector<double> v(g.size()), s((size_t)size);
        MUST(cudaMemcpy(v.data(), problem[p].vectors, v.size() * 8, cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(s.data(), problem[p].values, s.size() * 8, cudaMemcpyDeviceToHost));
        double trace = 0;
        for (int i = 0; i < size; i++)
            trace += g[i * (size + 1)];
        for (int i = 0; i < size; i++) {
            if (i > 0 && s[i] < s[i - 1]) failed("the order of eigenvalues", s[i], s[i - 1]);
            double squares = 0;
            for (int j = 0; j < size; j++) {
                double dot = i == j ? -1 : 0, rest = -s[i] * v[i * size + j];
                for (int k = 0; k < size; k++) {
                    dot += v[i * size + k] * v[j * size + k];
                    rest += g[j * size + k] * v[i * size + k];
                }
                off = std::fmax(off, std::isfinite(dot) ? std::fabs(dot) : INFINITY);
                squares += rest * rest;
            }
            left = std::fmax(left, std::isfinite(squares) ? std::sqrt(squares) / trace : INFINITY);
        }
        MUST(cudaFree(problem[p].gram));
        MUST(cudaFree(problem[p].vectors));
        MUST(cudaFree(problem[p].values));
    }
    printf("eigenvectors of %3d rows, %2d at once: off %.1e, left %.1e; %.3f ms\n", n, count, off,
           left, ms);
    if (!(off < 1e-13)) failed("eigenvectors off orthonormal", off, 1e-13);
    if (!(left < 1e-13)) failed("G v - s v", left, 1e-13);
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
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
    seed();
    const gnomon_kind G = GNOMON_GAUSSIAN, R = GNOMON_RADEMACHER, A = GNOMON_ACHLIOPTAS;
    const gnomon_dtype S = GNOMON_F32, H = GNOMON_F16, N = (gnomon_dtype)0;
    const product_case cases[] = {
        {"gaussian fp16", G, H, 300, 64, 70000, false, 0},
        {"gaussian fp16, odd", G, H, 131, 37, 5003, false, 0},
        {"gaussian fp16, along m", G, H, 300, 64, 9001, true, 0},
        {"gaussian fp16, runs", G, H, 200, 70, 64 * 37, false, 64},
        {"gaussian fp16, 200 columns", G, H, 700, 200, 4096, false, 0},
        {"gaussian fp16, few columns", G, H, 200, 3, 3000, false, 0},
        {"gaussian fp16, 16 columns", G, H, 128, 16, 70000, false, 0},
        {"gaussian fp16, 16 in runs", G, H, 130, 16, 64 * 200, false, 64},
        {"gaussian fp16, 32 along m", G, H, 132, 32, 6401, true, 0},
        {"gaussian fp16, wide range", G, H, 70, 30, 4096, false, 0, 40},
        {"gaussian fp16, wide, along m", G, H, 72, 9, 4000, true, 0, 40},
        {"rademacher, few columns", R, N, 100, 21, 9000, false, 0},
        {"achlioptas, few columns", A, N, 100, 5, 1000, true, 0},
        {"gaussian", G, S, 300, 64, 20000, false, 0},
        {"gaussian, odd", G, S, 131, 37, 5003, false, 0},
        {"gaussian, along m", G, S, 300, 127, 9000, true, 0},
        {"gaussian, runs", G, S, 200, 70, 128 * 9, false, 128},
        {"gaussian, 200 columns", G, S, 700, 200, 1000, false, 0},
        {"rademacher", R, N, 300, 64, 20000, false, 0},
        {"rademacher, along m", R, N, 129, 33, 1001, true, 0},
        {"rademacher, odd", R, N, 131, 37, 5003, false, 0},
        {"achlioptas", A, N, 300, 100, 20000, false, 0},
        {"achlioptas, along m", A, N, 129, 33, 1001, true, 0},
        {"one of each", G, H, 1, 1, 1, false, 0},
    };
    for (const product_case &c : cases)
        check_product(&gpu, &c);
    const int most = gcu_svd_jacobi_most(&gpu), sizes[] = {1, 2, 3, 16, 31, 64, 74, 100, 128, most};
    for (int n : sizes)
        if (n <= most) check_eigen(n, n == 64 ? GCU_SVD_JACOBI_COUNT : 3);
    gcu_gpu_close(&gpu);
    printf("%d failed\n", failures);
    return failures != 0;
}
