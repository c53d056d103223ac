/* What power iterations on the GPU are made of, beside sums in double precision on the host:
 * columns made fit for a product, Y R^-1 as halves; and products with the transpose of a matrix
 * whose columns come in runs, to the bit those with a copy without runs. */
#include "cuda/svd/condition.h"
#include "draw.cuh"
#include "must.cuh"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

static int failures;

static void failed(const char *what, double got, double due)
{
    printf("FAILED %s: %g, at most %g was due\n", what, got, due);
    failures++;
}

template <typename T> static T *device(size_t count)
{
    T *data;
    MUST(cudaMalloc(&data, count * sizeof *data));
    MUST(cudaMemset(data, 0xff, count * sizeof *data));
    return data;
}

template <typename T> static std::vector<T> host(const T *data, size_t count)
{
    std::vector<T> to(count);
    MUST(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
}

/* The rows of q (n x n), normal numbers, made orthonormal one after the other, twice. */
static void make_orthogonal(std::vector<double> &q, int n)
{
    for (int i = 0; i < n; i++)
        for (int step = 0; step < 3; step++) {
            for (int j = 0; j < i && step < 2; j++) {
                double dot = 0;
                for (int c = 0; c < n; c++)
                    dot += q[i * n + c] * q[j * n + c];
                for (int c = 0; c < n; c++)
                    q[i * n + c] -= dot * q[j * n + c];
            }
            double sum = 0;
            for (int c = 0; c < n; c++)
                sum += q[i * n + c] * q[i * n + c];
            for (int c = 0; c < n; c++)
                q[i * n + c] /= std::sqrt(sum);
        }
}

/* rows x cols whose columns mix directions that fall by so many powers of ten, orthogonally: none
 * is nearer to the others' span than the last direction is long. The last 'zeros' lie in that span.
 */
static std::vector<float> columns_of(int64_t rows, int cols, double fall, int zeros, double scale)
{
    const int rank = cols - zeros;
    std::vector<double> mix((size_t)(rank * cols)), q((size_t)(rank * rank));
    for (double &x : q)
        x = normal();
    make_orthogonal(q, rank);
    for (int k = 0; k < rank; k++)
        for (int c = 0; c < cols; c++)
            mix[k * cols + c] = scale * std::pow(10, -fall * k / cols) *
                                (c < rank ? q[k * rank + c] : normal() / std::sqrt(rank));
    std::vector<float> y((size_t)(rows * cols));
    std::vector<double> line((size_t)cols);
    for (int64_t i = 0; i < rows; i++) {
        for (double &x : line)
            x = normal();
        for (int c = 0; c < cols; c++) {
            double sum = 0;
            for (int k = 0; k < rank; k++)
                sum += line[k] * mix[k * cols + c];
            y[i * cols + c] = (float)sum;
        }
    }
    return y;
}

/* P^T P of halves times 1 / factor. */
static std::vector<double> gram_of(const std::vector<__half> &p, int64_t rows, int cols,
                                   double factor)
{
    std::vector<double> g((size_t)(cols * cols)), line((size_t)cols);
    for (int64_t i = 0; i < rows; i++) {
        for (int c = 0; c < cols; c++)
            line[c] = (double)__half2float(p[i * cols + c]) / factor;
        for (int c = 0; c < cols; c++)
            for (int d = 0; d <= c; d++)
                g[c * cols + d] += line[c] * line[d];
    }
    return g;
}

/* What is left of y's columns beside the span of p's, whose Gram matrix g is nearly I: two steps of
 * y - P P^T y. */
static double beside(std::vector<float> y, const std::vector<__half> &p, int64_t rows, int cols,
                     double factor)
{
    std::vector<double> left(y.begin(), y.end()), dot((size_t)(cols * cols));
    double all = 0, rest = 0;
    for (double x : left)
        all += x * x;
    for (int step = 0; step < 2; step++) {
        std::fill(dot.begin(), dot.end(), 0.0);
        for (int64_t i = 0; i < rows; i++)
            for (int c = 0; c < cols; c++)
                for (int d = 0; d < cols; d++)
                    dot[c * cols + d] +=
                        (double)__half2float(p[i * cols + c]) / factor * left[i * cols + d];
        for (int64_t i = 0; i < rows; i++)
            for (int c = 0; c < cols; c++)
                for (int d = 0; d < cols; d++)
                    left[i * cols + d] -=
                        (double)__half2float(p[i * cols + c]) / factor * dot[c * cols + d];
    }
    for (double x : left)
        rest += x * x;
    return all > 0 ? std::sqrt(rest / all) : 0;
}

/* Packed for a product: the same halves, each in its place, and zeros. */
static void check_packed(const gcu_gpu *gpu, gcu_svd_condition c, const std::vector<__half> &due,
                         bool quads)
{
    c.packing = {(c.rows + 63) / 64, (c.cols + 63) / 64 * 64, quads};
    const size_t count = (size_t)(64 * c.packing.chunks * c.packing.cols);
    __half *packed = device<__half>(count);
    c.half = packed;
    MUST(gcu_svd_condition_columns(&c, gpu, nullptr));
    const std::vector<__half> got = host(packed, count);
    size_t differ = 0;
    for (int64_t k = 0; k < 64 * c.packing.chunks; k++)
        for (int64_t j = 0; j < c.packing.cols; j++) {
            const int64_t low = k % 16;
            const int64_t at = quads ? low / 2 % 2 * 8 + low / 4 * 2 + low % 2 : low;
            const int64_t part = k % 64 / 16 * 2 + at / 8;
            const __half &x =
                got[((k / 64 * c.packing.cols + j) * 8 + (part ^ (j & 7))) * 8 + at % 8];
            const __half y = k < c.rows && j < c.cols ? due[k * c.cols + j] : __float2half(0);
            differ +=
                memcmp(&x, &y, sizeof x) != 0 && !(__half2float(x) == 0 && __half2float(y) == 0);
        }
    if (differ) failed("halves that are packed otherwise", (double)differ, 0);
    MUST(cudaFree(packed));
}

static void check_condition(const gcu_gpu *gpu, int64_t rows, int cols, double fall, int zeros,
                            double scale)
{
    const std::vector<float> y = columns_of(rows, cols, fall, zeros, scale);
    const int64_t parts = gcu_svd_condition_parts(rows, cols), small = cols * cols;
    const size_t count = (size_t)(rows * cols);
    gcu_svd_condition c = {};
    if (cols > gcu_svd_condition_most(gpu)) return;
    c.rows = rows;
    c.cols = cols;
    c.factor = 1;
    double *room = device<double>((size_t)(parts + 2 * small));
    float *from = device<float>(count);
    __half *half = device<__half>(count);
    MUST(cudaMemcpy(from, y.data(), count * 4, cudaMemcpyHostToDevice));
    c.from = from;
    c.parts = room;
    c.gram = room + parts;
    c.inverse = c.gram + small;
    c.half = half;
    while (4 * c.factor * c.factor <= (double)rows)
        c.factor *= 2;
    MUST(gcu_svd_condition_columns(&c, gpu, nullptr));
    MUST(cudaDeviceSynchronize());
    const std::vector<__half> p = host(half, count);
    const std::vector<double> gram = host(c.gram, (size_t)small);
    double wrong = 0, off = 0, longest = 0;
    std::vector<double> due((size_t)small);
    for (int64_t i = 0; i < rows; i++)
        for (int a = 0; a < cols; a++)
            for (int b = 0; b <= a; b++)
                due[a * cols + b] += (double)y[i * cols + a] * (double)y[i * cols + b];
    for (int a = 0; a < cols; a++)
        for (int b = 0; b <= a; b++)
            wrong = std::max(wrong, std::fabs(gram[a * cols + b] - due[a * cols + b]) /
                                        std::sqrt(due[a * (cols + 1)] * due[b * (cols + 1)]));
    const std::vector<double> g = gram_of(p, rows, cols, c.factor);
    for (int a = 0; a < cols; a++) {
        longest = std::max(longest, g[a * (cols + 1)]);
        for (int b = 0; b <= a && a < cols - zeros; b++)
            off = std::max(off, std::fabs(g[a * cols + b] - (a == b ? 1 : 0)));
    }
    const double rest = rows > cols ? beside(y, p, rows, cols, c.factor) : 0;
    printf("%7lld x %3d, falling by 10^%g, %d zeros, scale %g: Gram matrix off %.1e, columns %.1e, "
           "longest %.2f, beside their span %.1e\n",
           (long long)rows, cols, fall, zeros, scale, wrong, off, longest, rest);
    if (!(wrong < 0x1p-40)) failed("the Gram matrix", wrong, 0x1p-40);
    if (rows > cols && !(off < 0x1p-9)) failed("columns off orthonormal", off, 0x1p-9);
    if (!(longest < 2)) failed("a column's square", longest, 2);
    if (!(rest < 0x1p-9)) failed("what is beside their span", rest, 0x1p-9);
    MUST(cudaMemset(half, 0xff, count * 2));
    MUST(cudaMemset(room, 0xff, (size_t)(parts + 2 * small) * 8));
    MUST(gcu_svd_condition_columns(&c, gpu, nullptr));
    const std::vector<__half> again = host(half, count);
    if (memcmp(again.data(), p.data(), count * 2) != 0)
        failed("bits of a second run that differ", 1, 0);
    check_packed(gpu, c, p, false);
    check_packed(gpu, c, p, true);
    MUST(cudaFree(room));
    MUST(cudaFree(from));
    MUST(cudaFree(half));
}

static std::vector<float> product(const gcu_gemm *g, float *c)
{
    const size_t bytes = gcu_gemm_work(g), count = (size_t)(g->m * g->n);
    uint8_t *work = device<uint8_t>(bytes);
    MUST(cudaMemset(c, 0xff, count * 4));
    MUST(gcu_gemm_run(g, work, bytes, nullptr));
    const std::vector<float> out = host(c, count);
    MUST(cudaFree(work));
    return out;
}

/* X is left x length x run; (left run) x n = X's unfolding along the middle, transposed, times b.
 */
static void check_runs(const gcu_gpu *gpu, int64_t left, int64_t length, int64_t run, int64_t n,
                       bool odd)
{
    std::vector<float> x((size_t)(left * length * run)), unfolded(x.size());
    std::vector<__half> b((size_t)(length * n));
    for (float &v : x)
        v = (float)(normal() * std::exp(4 * uniform()));
    if (odd) x[x.size() / 3] = NAN;
    for (__half &v : b)
        v = __float2half((float)normal());
    for (int64_t l = 0; l < left; l++)
        for (int64_t i = 0; i < length; i++)
            for (int64_t r = 0; r < run; r++)
                unfolded[(i * left + l) * run + r] = x[(l * length + i) * run + r];
    float *at = device<float>(x.size()), *c = device<float>((size_t)(left * run * n));
    __half *of = device<__half>(b.size());
    MUST(cudaMemcpy(at, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(of, b.data(), b.size() * 2, cudaMemcpyHostToDevice));
    gcu_gemm g = {};
    g.form = GCU_GEMM_SCALED;
    g.m = left * run;
    g.n = n;
    g.k = length;
    g.a = {at, GNOMON_F32, 1, run};
    g.a_run = run;
    g.a_run_stride = length * run;
    g.b = {of, GNOMON_F16, n, 1};
    g.c = c;
    g.c_row_stride = n;
    g.c_col_stride = 1;
    g.alpha = 1;
    g.gpu = gpu;
    char name[96];
    snprintf(name, sizeof name, "%lld x %lld x %lld times %lld columns%s", (long long)left,
             (long long)length, (long long)run, (long long)n, odd ? ", a NaN" : "");
    const bool supported = gcu_gemm_work(&g) > 0;
    if (supported != (gpu->major == 9 && run % 32 == 0)) failed(name, supported, !supported);
    if (supported) {
        const std::vector<float> got = product(&g, c);
        MUST(cudaMemcpy(at, unfolded.data(), x.size() * 4, cudaMemcpyHostToDevice));
        g.a.col_stride = left * run;
        g.a_run = g.a_run_stride = 0;
        const std::vector<float> due = product(&g, c);
        size_t differ = 0, missing = 0;
        for (size_t i = 0; i < got.size(); i++) {
            differ += !(got[i] == due[i]) && !(std::isnan(got[i]) && std::isnan(due[i]));
            missing += std::isnan(got[i]);
        }
        if (differ) failed(name, (double)differ, 0);
        if (missing != (odd ? (size_t)n : 0)) failed("numbers that are NaN", (double)missing, n);
    }
    printf("%s: %s\n", name, supported ? "taken" : "not taken here");
    MUST(cudaFree(at));
    MUST(cudaFree(c));
    MUST(cudaFree(of));
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
    check_condition(&gpu, 1, 1, 0, 0, 1);
    check_condition(&gpu, 40, 60, 0, 0, 1);
    check_condition(&gpu, 37, 3, 1, 0, 1);
    check_condition(&gpu, 1000, 5, 2, 0, 0x1p50);
    check_condition(&gpu, 30000, 26, 4, 0, 1);
    check_condition(&gpu, 30000, 26, 3, 9, 0x1p-50);
    check_condition(&gpu, 9001, 27, 5, 4, 1);
    check_condition(&gpu, 5000, 32, 5, 0, 1);
    check_condition(&gpu, 5003, 33, 3, 0, 1);
    check_condition(&gpu, 4002, 61, 4, 10, 1);
    check_condition(&gpu, 3000, 74, 2, 0, 1);
    check_condition(&gpu, 2011, 81, 4, 3, 1);
    check_condition(&gpu, 1500, 110, 4, 0, 1);
    check_condition(&gpu, 1031, 138, 3, 10, 1);
    check_condition(&gpu, 700, 159, 3, 0, 1);
    check_condition(&gpu, 999, 160, 3, 0, 1);
    check_runs(&gpu, 37, 41, 64, 18, false);
    check_runs(&gpu, 5, 130, 96, 74, false);
    check_runs(&gpu, 3, 33, 288, 200, false);
    check_runs(&gpu, 9, 70, 32, 1, true);
    check_runs(&gpu, 4, 9, 52, 3, false);
    gcu_gpu_close(&gpu);
    printf("%d failed\n", failures);
    return failures != 0;
}
