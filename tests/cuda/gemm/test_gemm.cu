/* Checks products of fp32 and fp16 matrices against fp64 and beside a plain fp32 chain.
 * GNOMON_TEST_REDUCED=1 runs a fifth, for slow checkers; GNOMON_TEST_REDUCED=N one in N. */
#include "cuda/gemm/gemm.h"
#include "must.cuh"

#include <cuda_fp16.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

/* How an operand lies: its lines along the rows or the columns; with lines that begin at multiples
 * of 16 bytes or not; backwards; with gaps between neighbours. */
enum layout { ROWS, COLS, ROWS_ODD, COLS_ODD, BACKWARDS, GAPS };

enum law {
    UNIFORM,
    NORMAL,
    WIDE,     /* (u - 1/2) exp(4 N) */
    TINY,     /* subnormal */
    LARGE,    /* up to 2^127 in A, small in B */
    SCALES,   /* rows of very different size */
    BALANCED, /* columns of A and rows of B that make up for each other */
    HIDDEN,   /* columns of A that are huge, and zeros in B for them */
    SPARSE,
    NAN_A,
    INF_A,
    NAN_B,
    INF_B,
    OVERFLOW_SUM,
    CAUCHY
};

struct job {
    gcu_gemm_form form;
    int64_t m, n, k;
    bool transposed; /* A is the fp16 side */
    layout a, b, c;
    law how;
    float alpha, beta;
    int types = 0;     /* 0: by 'transposed'; 1: both fp16; 2: both fp32, as the form THREE */
    bool f64 = false;  /* C in fp64 */
    int64_t whole = 0; /* a part of a product of so many rows and columns, when not 0 */
};

struct operand {
    std::vector<float> values; /* rows x cols, as they are multiplied */
    void *data;                /* on the GPU, the whole allocation */
    gcu_gemm_view view;
    int64_t rows, cols;
    size_t bytes;
};

static uint64_t state = 1;

static float draw()
{
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return ((float)((z ^ z >> 31) >> 40) + 0.5f) * 0x1p-24f;
}

static float normal()
{
    const float r = sqrtf(-2.0f * logf(draw()));
    return r * cosf(6.2831853f * draw());
}

static float value(law how, int64_t line, int64_t k, int64_t depth, bool single)
{
    const float n = normal();
    switch (how) {
    case UNIFORM:
        return draw();
    case WIDE:
        return single ? (draw() - 0.5f) * expf(4.0f * n) : n;
    case TINY:
        return single ? n * 0x1p-140f : n;
    case LARGE:
        return single ? (draw() < 0.5f ? -1.0f : 1.0f) * (0.5f + 0.4999f * draw()) * 0x1p127f *
                            2.0f * 0.99999f
                      : n * 0x1p-12f;
    case SCALES:
        return single ? ldexpf(n, (int)(line * 29 % 200) - 100) : n;
    case BALANCED:
        return ldexpf(n, (single ? 1 : -1) * ((int)(k * 13 % 23) - 11));
    case HIDDEN:
        return k % 7 == 3 ? single ? n * 1e30f : 0.0f : n;
    case SPARSE:
        return draw() < 0.05f ? n : 0.0f;
    case NAN_A:
        return single && line == 5 && k == depth / 2 ? NAN : n;
    case INF_A:
        return single && line % 9 == 5 && k % 37 == 2 ? (k % 2 ? -INFINITY : INFINITY) : n;
    case NAN_B:
        return !single && line == 3 && k == depth / 3 ? NAN : n;
    case INF_B:
        return !single && line % 11 == 3 && k == depth / 3 ? INFINITY
               : single && line == 2                       ? 0.0f
                                                           : n;
    case OVERFLOW_SUM:
        return single ? (line == 4 ? 3e38f : line == 6 && k % 2 ? -3e38f : n) : n * n + 1.0f;
    case CAUCHY:
        return single ? 1.0f / ((float)(line - k) + 0.5f * draw() + 1e-7f) : n;
    default:
        return n;
    }
}

static operand make(int64_t rows, int64_t cols, layout how)
{
    operand o;
    o.rows = rows;
    o.cols = cols;
    const int64_t gap = how == GAPS ? 3 : 1, odd = how == ROWS_ODD || how == COLS_ODD ? 1 : 0;
    const bool by_rows = how == ROWS || how == ROWS_ODD || how == GAPS;
    const int64_t length = (by_rows ? cols : rows) * gap;
    const int64_t line = odd ? length + 1 + length % 2 : (length + 7) / 8 * 8;
    o.view.row_stride = by_rows ? line : gap;
    o.view.col_stride = by_rows ? gap : line;
    o.bytes = (size_t)(line * (by_rows ? rows : cols) + 8);
    if (how == BACKWARDS) o.view.row_stride = -o.view.row_stride, o.view.col_stride *= -1;
    o.data = nullptr;
    return o;
}

/* Where element (0, 0) lies in the allocation. */
static int64_t origin(const operand &o, layout how)
{
    int64_t at = how == ROWS_ODD || how == COLS_ODD ? 1 : 0;
    if (o.view.row_stride < 0) at -= (o.rows - 1) * o.view.row_stride;
    if (o.view.col_stride < 0) at -= (o.cols - 1) * o.view.col_stride;
    return at;
}

/* Fills an operand; along: of k. What lies between its elements is NaN. */
/* big: the side that a law makes huge or tiny. */
static operand fill(int64_t rows, int64_t cols, bool along_cols, layout lies, law how, bool single,
                    bool big)
{
    operand o = make(rows, cols, lies);
    o.view.dtype = single ? GNOMON_F32 : GNOMON_F16;
    o.values.resize((size_t)(rows * cols));
    std::vector<float> floats(o.bytes, NAN);
    std::vector<uint16_t> halves(o.bytes, 0x7E00);
    const int64_t first = origin(o, lies);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float x = along_cols ? value(how, i, j, cols, big) : value(how, j, i, rows, big);
            const int64_t at = first + i * o.view.row_stride + j * o.view.col_stride;
            if (!single) {
                const __half h = __float2half_rn(x);
                halves[(size_t)at] = __half_as_ushort(h);
                x = __half2float(h);
            }
            floats[(size_t)at] = x;
            o.values[(size_t)(i * cols + j)] = x;
        }
    const size_t size = single ? 4 : 2;
    MUST(cudaMalloc(&o.data, o.bytes * size));
    MUST(cudaMemcpy(o.data, single ? (const void *)floats.data() : (const void *)halves.data(),
                    o.bytes * size, cudaMemcpyHostToDevice));
    o.view.data = static_cast<const char *>(o.data) + (size_t)first * size;
    return o;
}

static const char *const forms[] = {"scaled", "fp16", "tf32", "three"};
static const char *const laws[] = {"uniform", "normal",   "wide",   "tiny",     "large",
                                   "scales",  "balanced", "hidden", "sparse",   "nan a",
                                   "inf a",   "nan b",    "inf b",  "overflow", "cauchy"};

static int check(const gcu_gpu &gpu, const job &j)
{
    const bool three = j.form == GCU_GEMM_THREE || j.types == 2;
    const bool a32 = j.types != 1 && (three || !j.transposed),
               b32 = j.types != 1 && (three || j.transposed);
    const size_t size_c = j.f64 ? 8 : 4;
    operand a = fill(j.m, j.k, true, j.a, j.how, a32, a32);
    operand b = fill(j.k, j.n, false, j.b, j.how, b32, three ? j.how == WIDE : b32);
    operand c = make(j.m, j.n, j.c);
    const int64_t first = origin(c, j.c);
    std::vector<double> before(c.bytes), after(c.bytes), again(c.bytes);
    for (double &x : before)
        x = j.beta == 0.0f ? NAN : normal();
    std::vector<float> f32(before.begin(), before.end());
    char *device;
    void *work;
    MUST(cudaMalloc(&device, c.bytes * size_c));
    gcu_gemm g;
    memset(&g, 0, sizeof g);
    g.form = j.form;
    g.m = j.m;
    g.n = j.n;
    g.k = j.k;
    g.a = a.view;
    g.b = b.view;
    void *at_c = device + (size_t)first * size_c;
    if (j.f64)
        g.c64 = static_cast<double *>(at_c);
    else
        g.c = static_cast<float *>(at_c);
    g.c_row_stride = c.view.row_stride;
    g.c_col_stride = c.view.col_stride;
    g.alpha = j.alpha;
    g.beta = j.beta;
    g.gpu = &gpu;
    g.whole_m = g.whole_n = j.whole;
    const size_t bytes = gcu_gemm_work(&g), guard = 4096;
    MUST(cudaMalloc(&work, bytes + guard));
    bool ok = true;
    for (int run = 0; run < 2; run++) {
        MUST(cudaMemset(work, run ? 0x00 : 0xFF, bytes + guard));
        MUST(cudaMemcpy(device, j.f64 ? (const void *)before.data() : f32.data(), c.bytes * size_c,
                        cudaMemcpyHostToDevice));
        MUST(gcu_gemm_run(&g, work, bytes, nullptr));
        MUST(cudaDeviceSynchronize());
        std::vector<double> &to = run ? again : after;
        std::vector<float> single(c.bytes);
        MUST(cudaMemcpy(j.f64 ? (void *)to.data() : single.data(), device, c.bytes * size_c,
                        cudaMemcpyDeviceToHost));
        if (!j.f64) to.assign(single.begin(), single.end());
        std::vector<uint8_t> behind(guard);
        MUST(cudaMemcpy(behind.data(), static_cast<char *>(work) + bytes, guard,
                        cudaMemcpyDeviceToHost));
        for (uint8_t x : behind)
            ok &= x == (run ? 0x00 : 0xFF);
    }
    const bool work_kept = ok;
    const bool same = memcmp(after.data(), again.data(), c.bytes * 8) == 0;

    double error = 0.0, plain_error = 0.0, size = 0.0, worst = 0.0;
    int64_t classes = 0;
    std::vector<bool> inside(c.bytes, false);
    std::vector<float> columns((size_t)(j.n * j.k));
    for (int64_t q = 0; q < j.k; q++)
        for (int64_t n = 0; n < j.n; n++)
            columns[(size_t)(n * j.k + q)] = b.values[(size_t)(q * j.n + n)];
    for (int64_t i = 0; i < j.m; i++)
        for (int64_t n = 0; n < j.n; n++) {
            const int64_t at = first + i * c.view.row_stride + n * c.view.col_stride;
            inside[(size_t)at] = true;
            const float *x = a.values.data() + i * j.k, *y = columns.data() + n * j.k;
            double sum = 0.0, all = 0.0;
            float chain = 0.0f;
            for (int64_t q = 0; q < j.k; q++) {
                sum += (double)x[q] * y[q];
                all += fabs((double)x[q] * y[q]);
                chain = fmaf(x[q], y[q], chain);
            }
            const double old = before[(size_t)at], got = after[(size_t)at];
            const bool none = j.k == 0 || j.alpha == 0.0f;
            double plain = none ? 0.0 : (double)j.alpha * chain;
            if (j.beta != 0.0f) plain += (double)j.beta * old;
            if (!j.f64) plain = (double)(float)plain;
            if (!isfinite(plain)) { /* the same NaN or infinity */
                classes += isnan(plain) ? !isnan(got) : got != plain;
                continue;
            }
            if (!isfinite(got)) {
                classes++;
                continue;
            }
            const double beside = j.beta == 0.0f ? 0.0 : (double)j.beta * old;
            const double want = none ? beside : (double)j.alpha * sum + beside;
            error += ((double)got - want) * ((double)got - want);
            plain_error += ((double)plain - want) * ((double)plain - want);
            size += want * want;
            /* subnormal results have no relative accuracy */
            const double scale = none ? fabs(beside) : fabs(j.alpha) * all + fabs(beside);
            const double off = fabs((double)got - want) - 0x1p-147 * fmax(1.0, fabs(j.alpha));
            if (off > worst * scale) worst = scale > 0.0 ? off / scale : INFINITY;
        }
    int64_t spoiled = 0;
    for (size_t at = 0; at < c.bytes; at++)
        spoiled +=
            !inside[at] && !(after[at] == before[at] || (isnan(after[at]) && isnan(before[at])));
    const double relative = size > 0.0 ? sqrt(error / size) : sqrt(error);
    const double beside = size > 0.0 ? sqrt(plain_error / size) : 0.0;
    /* A fp32 chain's own error, or two roundings; four where all terms have one sign, since what
     * the tensor cores cut off has it too, and where single terms matter, whose factors are
     * rounded. Each sum within a few roundings of its terms. */
    const bool four = j.how == UNIFORM || j.how == WIDE || three;
    const double most = fmax(beside, j.form == GCU_GEMM_TF32 ? 0x1p-21 : four ? 0x1p-22 : 0x1p-23);
    const double most_worst = 0x1p-20 + (double)(j.k / 64) * 0x1p-25;
    ok &= same && classes == 0 && spoiled == 0 && relative <= most && worst <= most_worst;
    if (!ok || getenv("GNOMON_TEST_VERBOSE"))
        printf("%s %-6s %-8s m %lld n %lld k %lld%s%s%s%s layouts %d %d %d alpha %g beta %g: error "
               "%.2e "
               "(plain %.2e), of terms %.2e (%.2e), %lld other NaN or inf, %lld spoiled%s%s\n",
               ok ? "ok    " : "FAILED", forms[j.form], laws[j.how], (long long)j.m, (long long)j.n,
               (long long)j.k, j.transposed ? " turned" : "",
               j.types == 1   ? " fp16 fp16"
               : j.types == 2 ? " fp32 fp32"
                              : "",
               j.f64 ? " in fp64" : "", j.whole ? " of a large one" : "", j.a, j.b, j.c, j.alpha,
               j.beta, relative, beside, worst, most_worst, (long long)classes, (long long)spoiled,
               same ? "" : ", not the same bits again", work_kept ? "" : ", wrote behind its work");
    cudaFree(a.data);
    cudaFree(b.data);
    cudaFree(device);
    cudaFree(work);
    return !ok;
}

static int check_refusals(const gcu_gpu &gpu)
{
    gcu_gemm g;
    memset(&g, 0, sizeof g);
    g.m = g.n = g.k = 64;
    g.a.dtype = g.b.dtype = GNOMON_F32;
    g.alpha = 1.0;
    g.gpu = &gpu;
    int failed = 0;
    failed += gcu_gemm_work(&g) == 0;
    failed += gcu_gemm_run(&g, nullptr, 0, nullptr) != cudaErrorInvalidValue; /* work */
    g.form = GCU_GEMM_THREE;
    g.b.dtype = GNOMON_F16;
    failed += gcu_gemm_run(&g, nullptr, 0, nullptr) != cudaErrorInvalidValue; /* types */
    g.form = GCU_GEMM_SCALED;
    g.b.dtype = GNOMON_F64;
    failed += gcu_gemm_run(&g, nullptr, 0, nullptr) != cudaErrorInvalidValue;
    g.b.dtype = GNOMON_F16;
    g.m = -1;
    failed += gcu_gemm_run(&g, nullptr, 0, nullptr) != cudaErrorInvalidValue;
    if (failed) printf("FAILED: %d calls that should be refused\n", failed);
    return failed;
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
    const gcu_gemm_form S = GCU_GEMM_SCALED, F = GCU_GEMM_FP16, T = GCU_GEMM_TF32,
                        H = GCU_GEMM_THREE;
    std::vector<job> jobs = {
        {S, 256, 256, 256, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 128, 64, 64, false, ROWS, COLS, ROWS, UNIFORM, 1, 0},
        {S, 300, 130, 1000, false, ROWS, ROWS, COLS, NORMAL, 1, 0},
        {S, 300, 130, 1000, false, COLS, COLS, ROWS, NORMAL, -1.5f, 0.5f},
        {S, 131, 77, 333, false, ROWS_ODD, COLS_ODD, ROWS_ODD, NORMAL, 1, 1},
        {S, 131, 77, 333, false, COLS_ODD, ROWS_ODD, COLS_ODD, UNIFORM, 2, 0},
        {S, 65, 200, 130, false, BACKWARDS, GAPS, GAPS, NORMAL, 1, -1},
        {S, 65, 200, 130, false, GAPS, BACKWARDS, BACKWARDS, NORMAL, 1, 0},
        {S, 200, 300, 500, true, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 200, 300, 500, true, COLS, COLS, COLS, WIDE, 1, 0.25f},
        {S, 33, 50, 4100, true, COLS_ODD, ROWS_ODD, ROWS, UNIFORM, 1, 0},
        {S, 1, 1, 1, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 1, 300, 7, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 300, 1, 5000, false, ROWS, COLS, ROWS, NORMAL, 1, 0},
        {S, 17, 9, 65536, false, ROWS, COLS, ROWS, UNIFORM, 1, 0},
        {S, 40, 20, 30000, false, COLS, COLS, ROWS, NORMAL, 1, 2},
        {S, 300, 260, 640, false, ROWS, ROWS, ROWS, WIDE, 1, 0},
        {S, 300, 260, 640, false, COLS, ROWS, ROWS, WIDE, 1, 0},
        {S, 140, 70, 320, false, ROWS, ROWS, ROWS, TINY, 0x1p100f, 0},
        {S, 140, 70, 320, false, ROWS, ROWS, ROWS, TINY, 1, 0},
        {S, 140, 70, 320, false, ROWS, ROWS, ROWS, LARGE, 1, 0},
        {S, 140, 70, 320, false, COLS, ROWS, ROWS, SCALES, 0x1p-10f, 0},
        {S, 140, 300, 320, false, ROWS, ROWS, ROWS, BALANCED, 1, 0},
        {S, 140, 300, 320, false, COLS, ROWS, ROWS, BALANCED, 1, 0},
        {S, 140, 70, 320, false, ROWS, ROWS, ROWS, HIDDEN, 1, 0},
        {S, 140, 300, 700, false, COLS, COLS, ROWS, HIDDEN, 1, 1},
        {S, 140, 70, 320, false, ROWS, ROWS, ROWS, SPARSE, 1, 0},
        {S, 300, 300, 1030, false, ROWS, ROWS, ROWS, CAUCHY, 1, 0},
        {S, 140, 270, 320, false, ROWS, ROWS, ROWS, NAN_A, 1, 0},
        {S, 140, 270, 320, false, COLS, ROWS, ROWS, INF_A, 1, 0.5f},
        {S, 140, 270, 320, false, ROWS, COLS, COLS, NAN_B, 1, 0},
        {S, 140, 270, 320, false, ROWS, ROWS, ROWS, INF_B, 1, 1},
        {S, 20, 30, 5000, false, ROWS, ROWS, ROWS, INF_B, 1, 1},
        {S, 140, 270, 320, false, ROWS, ROWS, ROWS, OVERFLOW_SUM, 1, 0},
        {S, 50, 60, 0, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 50, 60, 0, false, ROWS, ROWS, ROWS_ODD, NORMAL, 1, 3},
        {S, 50, 60, 70, false, ROWS, ROWS, ROWS, NAN_A, 0, 0.5f},
        {S, 0, 60, 70, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 50, 0, 70, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {S, 200, 130, 700, false, ROWS, COLS, ROWS, NORMAL, 1.25f, 0.5f, 0, true},
        {S, 20, 30, 5000, false, ROWS, ROWS, GAPS, NAN_B, 1, 1, 0, true},
        {S, 50, 60, 0, false, ROWS, ROWS, ROWS_ODD, NORMAL, 1, 3, 0, true},
        /* A cut beforehand: with few rests, with too many, and with none */
        {S, 300, 260, 640, false, ROWS, ROWS, ROWS, NORMAL, 1, 0, 0, false, 4096},
        {S, 256, 512, 1000, false, COLS, COLS, COLS, NORMAL, -1.5f, 0.5f, 0, false, 4096},
        {S, 130, 264, 130, false, ROWS, COLS, ROWS, WIDE, 1, 0, 0, false, 4096},
        {S, 300, 260, 1003, false, COLS, ROWS, ROWS, WIDE, 1, 0, 0, false, 4096},
        {S, 700, 100, 640, false, ROWS, ROWS, ROWS, CAUCHY, 1, 0, 0, false, 4096},
        {S, 300, 270, 333, false, ROWS, ROWS, GAPS, HIDDEN, 1, 1, 0, true, 4096},
        {S, 260, 300, 320, true, COLS, ROWS, ROWS, SCALES, 1, 0, 0, false, 4096},
        {S, 140, 270, 320, false, ROWS, ROWS, ROWS, TINY, 1, 0, 0, false, 4096},
        {S, 140, 270, 320, false, ROWS, ROWS, ROWS, NAN_A, 1, 0, 0, false, 4096},
        {S, 300, 270, 320, false, ROWS, COLS, ROWS, INF_A, 1, 0, 0, false, 4096},
        {S, 300, 270, 320, false, ROWS, ROWS, ROWS, INF_B, 1, 1, 0, false, 4096},
        {S, 1, 8, 7, false, ROWS, ROWS, ROWS, NORMAL, 1, 0, 0, false, 4096},
        {S, 200, 130, 700, false, ROWS, COLS, ROWS, NORMAL, 1, 0, 1},
        {S, 70, 330, 131, false, COLS_ODD, GAPS, COLS, UNIFORM, 1, 1, 1},
        {S, 40, 30, 300, false, ROWS, ROWS, ROWS, INF_B, 1, 0, 1},
        {S, 200, 130, 700, false, ROWS, COLS, ROWS, WIDE, 1, 0, 2},
        {F, 200, 130, 700, false, COLS, ROWS, ROWS, NORMAL, 1, 1, 2, true},
        {F, 300, 130, 1000, false, ROWS, ROWS, COLS, NORMAL, 1, 0},
        {F, 131, 77, 333, true, COLS_ODD, ROWS_ODD, ROWS, UNIFORM, 1, 1},
        {F, 300, 260, 640, false, COLS, ROWS, ROWS, NORMAL, 1, 0},
        {F, 140, 270, 320, false, ROWS, ROWS, ROWS, INF_A, 1, 0},
        {F, 140, 270, 320, false, ROWS, ROWS, ROWS, NAN_B, 1, 0},
        {T, 300, 130, 1000, false, ROWS, ROWS, COLS, NORMAL, 1, 0},
        {T, 131, 77, 333, true, COLS_ODD, ROWS_ODD, ROWS, UNIFORM, 1, 1},
        {T, 300, 260, 640, false, COLS, ROWS, ROWS, WIDE, 1, 0},
        {T, 140, 70, 320, false, ROWS, ROWS, ROWS, BALANCED, 1, 0},
        {T, 140, 70, 320, false, ROWS, ROWS, ROWS, HIDDEN, 1, 0},
        {T, 140, 270, 320, false, ROWS, ROWS, ROWS, INF_A, 1, 0},
        {T, 256, 256, 256, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {T, 300, 520, 1000, false, ROWS, COLS, ROWS, UNIFORM, 1, 0},
        {T, 300, 260, 1030, false, COLS, COLS, ROWS_ODD, NORMAL, -1.5f, 0.5f},
        {T, 200, 300, 500, true, COLS, ROWS, COLS, NORMAL, 1, 0},
        {T, 17, 9, 65536, false, ROWS, COLS, ROWS, UNIFORM, 1, 0},
        {T, 140, 40, 5000, false, COLS, ROWS, ROWS, NORMAL, 1, 2},
        {T, 140, 70, 320, false, ROWS, ROWS, ROWS, LARGE, 1, 0},
        {T, 140, 300, 320, false, COLS, ROWS, ROWS, SCALES, 0x1p-10f, 0},
        {T, 300, 100, 1030, false, ROWS, GAPS, GAPS, CAUCHY, 1, 0, 0, true},
        {T, 140, 270, 320, false, COLS, ROWS, ROWS, NAN_A, 1, 0},
        {T, 140, 270, 320, false, ROWS, ROWS, ROWS, NAN_B, 1, 0},
        {T, 140, 270, 320, false, ROWS, ROWS, ROWS, OVERFLOW_SUM, 1, 0},
        {T, 200, 130, 700, false, ROWS, COLS, ROWS, NORMAL, 1, 0, 2},
        {T, 130, 300, 333, false, COLS, GAPS, ROWS_ODD, UNIFORM, 1, 1, 2, true},
        {T, 64, 64, 200, false, ROWS, ROWS, ROWS, NORMAL, 1, 0, 1},
        {H, 256, 256, 256, false, ROWS, ROWS, ROWS, NORMAL, 1, 0},
        {H, 300, 130, 1000, false, ROWS, COLS, COLS, UNIFORM, 1, 0},
        {H, 130, 300, 1000, false, COLS, ROWS, ROWS, NORMAL, -2, 0.5f},
        {H, 131, 77, 333, false, ROWS_ODD, COLS_ODD, GAPS, NORMAL, 1, 1},
        {H, 77, 131, 333, false, BACKWARDS, GAPS, ROWS, WIDE, 1, 0},
        {H, 260, 300, 640, false, ROWS, ROWS, ROWS, WIDE, 1, 0},
        {H, 140, 70, 320, false, ROWS, ROWS, ROWS, LARGE, 0x1p-20f, 0},
        {H, 140, 70, 320, false, ROWS, ROWS, ROWS, TINY, 1, 0},
        {H, 140, 300, 320, false, ROWS, ROWS, ROWS, BALANCED, 1, 0},
        {H, 17, 9, 65536, false, ROWS, COLS, ROWS, UNIFORM, 1, 0},
        {H, 140, 270, 320, false, ROWS, ROWS, ROWS, INF_A, 1, 0},
        {H, 140, 270, 320, false, COLS, ROWS, ROWS, NAN_B, 1, 0.5f},
        {H, 16500, 17, 130, false, COLS, ROWS, ROWS, NORMAL, 1, 0}, /* few columns */
        {H, 16384, 32, 100, false, ROWS, COLS, ROWS, WIDE, 1, 0},
        {H, 12, 16400, 64, false, ROWS, ROWS, COLS, BALANCED, 1, 0},
        {H, 16400, 16, 512, false, COLS, GAPS, GAPS, INF_A, -2, 0.5f},
        {H, 16400, 5, 68, false, ROWS, ROWS, ROWS, NAN_B, 1, 1, 0, true},
        {H, 16400, 9, 72, false, ROWS, ROWS, ROWS, TINY, 1, 0},
    };
    const char *word = getenv("GNOMON_TEST_REDUCED");
    const int number = word ? atoi(word) : 0, every = number > 1 ? number : number == 1 ? 5 : 1;
    int failed = check_refusals(gpu);
    for (size_t at = 0; at < jobs.size(); at += every)
        failed += check(gpu, jobs[at]);
    printf("%d failed\n", failed);
    return failed != 0;
}
