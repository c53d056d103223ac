/* Checks a family of kernels against the CPU library's entries, summed in fp64 on the host.
 *
 * A job passes when every number is within rounding of the exact one, when the error is no worse
 * than that of one chain of fp32 additions (what SGEMM does), when nothing else is written, and
 * when the bits depend neither on the number of points, nor on pieces of the columns, nor on the
 * work memory, nor on chance. Memory is filled with NaN before each run. */
#ifndef GNOMON_TEST_FAMILY_CHECK_H
#define GNOMON_TEST_FAMILY_CHECK_H

#include "cuda/project/family.h"
#include "must.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <gnomon/base.h>

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vector>

/* Where element (point, coordinate) lies. */
enum check_layout {
    POINTS_ADJACENT,
    COORDINATES_ADJACENT,
    POINTS_GAPS,
    COORDINATES_GAPS,
    BACKWARDS
};

struct check_job {
    gnomon_kind kind;
    gnomon_dtype precision;
    int64_t k, d, nonzeros;
    double density;
    int64_t blocks;
    gnomon_dtype dtype;
    int64_t n;
    check_layout layout;
    int64_t row, rows; /* of A; rows 0: all */
    int64_t col;       /* of A, where the task begins, about: rounded down to a granule */
    int64_t first;     /* coordinates that are not there at the beginning */
    bool f64, huge;
    double beta;
};

static uint64_t check_seed;

static double check_uniform(uint64_t *state)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15ull; /* Steele, Lea and Flood 2014 */
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* Stores x in this type, gives back what was stored. */
static double check_store(void *data, gnomon_dtype dtype, int64_t at, double x)
{
#define STORE(TYPE, VALUE)                                     \
    do {                                                       \
        const TYPE y_ = (TYPE)(VALUE);                         \
        memcpy((char *)data + at * sizeof y_, &y_, sizeof y_); \
        return (double)y_;                                     \
    } while (0)
    switch (dtype) {
    case GNOMON_F64:
        STORE(double, x);
    case GNOMON_F32:
        STORE(float, x);
    case GNOMON_I8:
        STORE(int8_t, fmod(x, 1.0) * 100);
    case GNOMON_U8:
        STORE(uint8_t, fabs(fmod(x, 1.0)) * 200);
    case GNOMON_I16:
        STORE(int16_t, fmod(x, 1.0) * 30000);
    case GNOMON_U16:
        STORE(uint16_t, fabs(fmod(x, 1.0)) * 60000);
    case GNOMON_I32:
        STORE(int32_t, fmod(x, 1.0) * 2e9);
    case GNOMON_U32:
        STORE(uint32_t, fabs(fmod(x, 1.0)) * 4e9);
    case GNOMON_I64:
        STORE(int64_t, fmod(x, 1.0) * 9e15);
    case GNOMON_U64:
        STORE(uint64_t, fabs(fmod(x, 1.0)) * 9e15);
    case GNOMON_F16: {
        const __half h = __float2half_rn((float)x);
        memcpy((char *)data + at * 2, &h, 2);
        return (double)__half2float(h);
    }
    default: {
        const __nv_bfloat16 h = __float2bfloat16_rn((float)x);
        memcpy((char *)data + at * 2, &h, 2);
        return (double)__bfloat162float(h);
    }
    }
#undef STORE
}

/* A job's points, on both sides, and what their sketch is. */
struct check_case {
    check_job j;
    const gnomon_operator *op;
    const gnomon_simple *a;
    int64_t all_rows, cols, cols_last; /* of S; of a block; of the last block */
    std::vector<double> x;             /* [point][coordinate] */
    void *data;                        /* device */
    size_t size;
    int64_t row_stride, col_stride, origin; /* elements */
    std::vector<double> exact, chain, scale, before;
    int64_t terms;
};

static void check_make_points(check_case *c)
{
    const check_job &j = c->j;
    const int64_t n = j.n, d = j.d;
    c->size = gnomon_dtype_size(j.dtype);
    switch (j.layout) {
    case POINTS_ADJACENT:
        c->row_stride = 1, c->col_stride = n;
        break;
    case COORDINATES_ADJACENT:
        c->row_stride = d, c->col_stride = 1;
        break;
    case POINTS_GAPS:
        c->row_stride = 1, c->col_stride = n + 5;
        break;
    case COORDINATES_GAPS:
        c->row_stride = d + 3, c->col_stride = 1;
        break;
    case BACKWARDS:
        c->row_stride = -1, c->col_stride = -(n + 1);
        break;
    }
    const int64_t elements = (n - 1) * llabs(c->row_stride) + (d - 1) * llabs(c->col_stride) + 1;
    c->origin = c->row_stride < 0 ? elements - 1 : 0;
    std::vector<char> host((size_t)elements * c->size, (char)0xFF);
    c->x.resize((size_t)(n * d));
    uint64_t state = check_seed ^ (uint64_t)(d * 31 + n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t q = 0; q < d; q++) {
            double x = check_uniform(&state) * 2 - 1;
            if (j.huge) x = ldexp(x, (int)(check_uniform(&state) * 150) - 100);
            /* what is not there stays NaN */
            c->x[(size_t)(i * d + q)] =
                q < j.first ? 0
                            : check_store(host.data(), j.dtype,
                                          c->origin + i * c->row_stride + q * c->col_stride, x);
        }
    MUST(cudaMalloc(&c->data, host.size()));
    MUST(cudaMemcpy(c->data, host.data(), host.size(), cudaMemcpyHostToDevice));
}

static int64_t check_first_row(const check_case &c, int64_t block)
{
    return (int64_t)((__int128)block * c.all_rows / c.j.blocks);
}

enum { CHECK_STRIP = 64 };

/* Adds column j of block b, an entry of A at a time, in ascending columns. */
static void check_add(check_case *c, int64_t b, int64_t a, int64_t q, double s)
{
    const check_job &j = c->j;
    const int64_t row = check_first_row(*c, b) + a;
    if (row >= check_first_row(*c, b + 1)) return;
    for (int64_t i = 0; i < j.n; i++) {
        const double x = c->x[(size_t)(i * j.d + b * c->cols + q)];
        const size_t at = (size_t)(i * c->all_rows + row);
        c->exact[at] += s * x;
        c->scale[at] += fabs(s * x);
        c->chain[at] = fmaf((float)s, (float)x, (float)c->chain[at]);
    }
}

static void check_make_exact(check_case *c)
{
    const check_job &j = c->j;
    const size_t size = (size_t)(j.n * c->all_rows);
    c->exact.assign(size, 0);
    c->chain.assign(size, 0);
    c->scale.assign(size, 0);
    c->terms = j.kind == GNOMON_SJLT ? c->cols * j.nonzeros / c->a->rows + 1 : c->cols;
    for (int64_t b = 0; b < j.blocks; b++) {
        const int64_t cols = b + 1 < j.blocks ? c->cols : c->cols_last;
        if (j.kind == GNOMON_SJLT) {
            for (int64_t q = 0; q < cols; q++)
                for (int64_t band = 0; band < c->a->nonzeros; band++) {
                    const int64_t row = gnomon_sjlt_row(c->a, j.col + q, band);
                    const uint32_t signs =
                        gnomon_sign_word(c->a, GNOMON_TAG_SJLT_SIGNS, band, (j.col + q) / 32);
                    if (row >= j.row && row < j.row + j.rows)
                        check_add(c, b, row, q, signs >> (j.col + q) % 32 & 1 ? -1.0 : 1.0);
                }
            continue;
        }
        std::vector<float> s((size_t)(j.rows * CHECK_STRIP));
        for (int64_t q0 = 0; q0 < cols; q0 += CHECK_STRIP) {
            const int64_t strip = std::min<int64_t>(CHECK_STRIP, cols - q0);
            gnomon_simple_values(c->a, j.row, j.rows, j.col + q0, strip, s.data(), CHECK_STRIP, 1);
            for (int64_t a = 0; a < j.rows; a++)
                for (int64_t q = 0; q < strip; q++) {
                    const float v = s[(size_t)(a * CHECK_STRIP + q)];
                    if (v != 0) check_add(c, b, j.row + a, q0 + q, v);
                }
        }
    }
}

/* The sketch of points [point, point + n) by the family, as fp64 numbers: n x all_rows. */
static std::vector<double> check_project(const gcu_gpu &gpu, const gcu_family &family,
                                         const check_case &c, int64_t point, int64_t n,
                                         int64_t pieces, double work)
{
    const check_job &j = c.j;
    const size_t size = j.f64 ? 8 : 4, numbers = (size_t)(n * c.all_rows);
    void *y, *carry, *room;
    std::vector<double> doubles(numbers);
    std::vector<float> floats(numbers);
    for (size_t t = 0; t < numbers; t++)
        floats[t] = (float)(doubles[t] = c.before[(size_t)(point * c.all_rows) + t]);
    MUST(cudaMalloc(&y, numbers * size));
    MUST(cudaMemcpy(y, j.f64 ? (void *)doubles.data() : (void *)floats.data(), numbers * size,
                    cudaMemcpyHostToDevice));
    const size_t carried = (size_t)(j.rows * n * j.blocks) * size;
    MUST(cudaMalloc(&carry, carried));
    MUST(cudaMemset(carry, 0xFF, carried));

    const int64_t unit = family.granule(c.a), units = (c.cols + unit - 1) / unit;
    const int64_t turn = (units + pieces - 1) / pieces;
    for (int64_t u = 0; u < units; u += turn) {
        const int64_t from = u * unit, to = std::min((u + turn) * unit, c.cols);
        const int64_t last = std::max<int64_t>(0, std::min(c.cols_last, to) - from);
        gcu_task t;
        memset(&t, 0, sizeof t);
        t.a = c.a;
        t.row = j.row;
        t.rows = j.rows;
        t.col = j.col + from;
        t.f64 = j.f64;
        t.gpu = &gpu;
        t.x.data = (const char *)c.data +
                   (c.origin + point * c.row_stride + from * c.col_stride) * (int64_t)c.size;
        t.x.dtype = j.dtype;
        t.x.row_stride = c.row_stride;
        t.x.col_stride = c.col_stride;
        t.x.block_stride = c.cols * c.col_stride;
        t.x.n = n;
        t.x.blocks = j.blocks;
        t.x.block_cols = to - from;
        t.x.first = std::max<int64_t>(0, j.first - from);
        t.x.end = (j.blocks - 1) * (to - from) + last;
        t.out.y = y;
        t.out.dtype = j.f64 ? GNOMON_F64 : GNOMON_F32;
        t.out.row_stride = c.all_rows;
        t.out.col_stride = 1;
        t.out.k = c.all_rows;
        t.out.r = j.blocks;
        t.out.rows = c.all_rows;
        t.out.factor_most = 0.75;
        t.out.factor_least = 0.5;
        t.out.beta = j.beta;
        t.out.carry = carry;
        t.out.begins = from == 0;
        t.out.finishes = to == c.cols;
        char why[200] = "";
        if (!family.supports(&t, why, sizeof why)) {
            printf("declined: %s\n", why);
            exit(1);
        }
        const size_t least = family.least_work(&t), best = family.best_work(&t);
        t.work_bytes = least + (size_t)((double)(best > least ? best - least : 0) * work);
        MUST(cudaMalloc(&room, t.work_bytes + 1));
        MUST(cudaMemset(room, 0xFF, t.work_bytes + 1));
        t.work = room;
        MUST(family.run(&t));
        MUST(cudaDeviceSynchronize());
        cudaFree(room);
    }
    MUST(cudaMemcpy(j.f64 ? (void *)doubles.data() : (void *)floats.data(), y, numbers * size,
                    cudaMemcpyDeviceToHost));
    if (!j.f64) doubles.assign(floats.begin(), floats.end());
    cudaFree(y);
    cudaFree(carry);
    return doubles;
}

static int64_t check_differ(const std::vector<double> &a, const std::vector<double> &b)
{
    int64_t differ = 0;
    for (size_t t = 0; t < a.size(); t++)
        differ += memcmp(&a[t], &b[t], 8) != 0;
    return differ;
}

/* Whether the job fails. */
static bool check_one(gnomon_context *ctx, const gcu_gpu &gpu, const gcu_family &family,
                      check_job j)
{
    if (j.blocks == 0) j.blocks = 1;
    check_case c = {};
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    const bool composed = j.blocks > 1;
    descriptor.kind = composed ? GNOMON_BLOCK : j.kind;
    descriptor.inner = composed ? j.kind : (gnomon_kind)0;
    descriptor.precision = j.precision;
    descriptor.seed = check_seed;
    descriptor.k = j.k;
    descriptor.d = j.d + j.col;
    descriptor.density = j.density;
    descriptor.nonzeros = j.nonzeros;
    descriptor.blocks = composed ? j.blocks : 0;
    gnomon_operator *op;
    if (gnomon_operator_create(ctx, &descriptor, &op) != GNOMON_OK) {
        printf("FAIL no operator: %s\n", gnomon_last_error(ctx));
        return true;
    }
    c.op = op;
    c.a = &op->factor[0];
    j.col -= j.col % family.granule(c.a);
    if (j.rows == 0) j.rows = c.a->rows - j.row;
    c.j = j;
    c.all_rows = j.k;
    c.cols = composed ? op->block_cols : j.d;
    c.cols_last = j.d - (j.blocks - 1) * c.cols;
    check_make_points(&c);
    check_make_exact(&c);
    const size_t size = (size_t)(j.n * c.all_rows);
    c.before.resize(size);
    uint64_t state = check_seed + 5;
    for (double &b : c.before)
        b = j.beta != 0 ? (double)(float)(check_uniform(&state) - 0.5) : (double)NAN;

    const std::vector<double> y = check_project(gpu, family, c, 0, j.n, 1, 1.0);
    const double u = j.f64 ? 0x1p-53 : 0x1p-24;
    const double allowed = (4 + 0.5 * sqrt((double)c.terms)) * u;
    double worst = 0, error2 = 0, chain2 = 0;
    int64_t bad = 0, unwritten = 0, stray = 0;
    for (int64_t i = 0; i < j.n; i++)
        for (int64_t b = 0; b < j.blocks; b++) {
            const int64_t first = check_first_row(c, b), last = check_first_row(c, b + 1);
            const double factor = last - first == (j.k + j.blocks - 1) / j.blocks ? 0.75 : 0.5;
            for (int64_t row = first; row < last; row++) {
                const size_t at = (size_t)(i * c.all_rows + row);
                if (row - first < j.row || row - first >= j.row + j.rows) {
                    stray += j.beta != 0 ? y[at] != c.before[at] : !isnan(y[at]);
                    continue;
                }
                const double before = j.beta != 0 ? j.beta * c.before[at] : 0;
                const double error = fabs(y[at] - (factor * c.exact[at] + before));
                const double bound =
                    allowed * (factor * c.scale[at] + fabs(before)) + (j.f64 ? 0 : 0x1p-148);
                unwritten += isnan(y[at]);
                bad += !(error <= bound);
                if (bound > 0 && error / bound > worst) worst = error / bound;
                const double by = factor * c.scale[at] + fabs(before);
                if (by > 0) {
                    const double chained = factor * (c.chain[at] - c.exact[at]);
                    error2 += error * error / (by * by);
                    chain2 += chained * chained / (by * by);
                }
            }
        }
    const double rms = sqrt(error2 / (double)size), sgemm = sqrt(chain2 / (double)size);
    /* rounding the result itself costs a little, and random errors scatter */
    const bool accurate = j.f64 || rms <= 1.2 * sgemm + 0.5 * 0x1p-24;

    int64_t other[4] = {0, 0, 0, 0};
    other[0] = check_differ(check_project(gpu, family, c, 0, j.n, 1, 1.0), y);
    other[1] = check_differ(check_project(gpu, family, c, 0, j.n, 3, 0.0), y);
    other[2] = check_differ(check_project(gpu, family, c, 0, j.n, 2, 0.3), y);
    if (j.n > 1) {
        const int64_t some = j.n / 3 + 1, from = j.n - some;
        const std::vector<double> z = check_project(gpu, family, c, from, some, 1, 1.0);
        other[3] =
            check_differ(z, std::vector<double>(y.begin() + (long)(from * c.all_rows), y.end()));
    }
    const bool failed =
        bad || unwritten || stray || !accurate || other[0] || other[1] || other[2] || other[3];
    printf("%s %s%s %s k %lld+%lld/%lld s %lld n %lld r %d D %lld+%lld layout %d%s: error %.2f of "
           "bound, rms %.1e (chain %.1e); bad %lld nan %lld stray %lld other bits %lld %lld %lld "
           "%lld\n",
           failed ? "FAIL" : "ok  ", gnomon_kind_name(j.kind), j.f64 ? " wide" : "",
           gnomon_dtype_name(j.dtype), (long long)j.row, (long long)j.rows, (long long)j.k,
           (long long)j.nonzeros, (long long)j.n, (int)j.blocks, (long long)j.col, (long long)j.d,
           (int)j.layout, j.huge ? " huge" : "", worst, rms, sgemm, (long long)bad,
           (long long)unwritten, (long long)stray, (long long)other[0], (long long)other[1],
           (long long)other[2], (long long)other[3]);
    fflush(stdout);
    cudaFree(c.data);
    gnomon_operator_destroy(op);
    return failed;
}

/* Runs the jobs, or the first 'few' under GNOMON_TEST_REDUCED=1; gives the exit status. */
static int check_all(const gcu_family &family, const std::vector<check_job> &jobs, size_t few)
{
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK) {
        printf("%s\n", why);
        return 77; /* no GPU */
    }
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return 1;
    check_seed = (uint64_t)time(NULL);
    printf("%s, family %s, seed %llu\n", why, family.name, (unsigned long long)check_seed);
    const char *reduced = getenv("GNOMON_TEST_REDUCED");
    const size_t count = reduced && strcmp(reduced, "1") == 0 ? few : jobs.size();
    int failed = 0;
    for (size_t t = 0; t < count; t++)
        failed += check_one(ctx, gpu, family, jobs[t]);
    printf("%d of %d failed\n", failed, (int)count);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return failed != 0;
}

#endif
