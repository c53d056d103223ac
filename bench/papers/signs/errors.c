/* Errors of the trial arithmetic for sketches of signs (signs.h), beside those of the library's
 * fp32 sums of today and of SGEMM with the stored matrix. Operators are unscaled.
 *
 * The error of a sketch is |y - exact| / |exact| (Euclidean, a point's k numbers), the largest of
 * the points. The ratio is the largest |y - exact| of a single number over its bound of
 * docs/reference/accuracy.md, c = N - 1, N the number of the sum's nonzero terms.
 *
 * plain:   24-bit integers under a block's one exponent, blocks added in fp64
 * narrow:  with the largest coordinate left out where it is to be, blocks added in fp32
 * wide:    the same, blocks added in fp64
 *
 * usage: bench_signs_errors [--json FILE] [--long]   --long: single points of up to 10^8
 * coordinates */
#include "signs.h"

#include <cblas.h>
#include <float.h>
#include <gnomon.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 8, K = 32, LARGEST = 1 << 20, WAYS = 5 };
enum { TODAY, SGEMM, PLAIN, NARROW, WIDE };

static const char *const way_names[WAYS] = {"today", "sgemm", "plain", "narrow", "wide"};

/* Points' laws. 'one', 'two': so many coordinates are 2^30 times the others. 'alone': one nonzero;
 * 'pair': two, equal but for their signs, whose last bit is set. 'adverse': the largest is 1, and
 * what is rounded off of the others has the same sign in the operator's first row; 'adverse 2': two
 * are 1. */
enum {
    CENTRED,
    POSITIVE,
    NORMAL,
    MEAN,
    LOGNORMAL,
    CAUCHY,
    SPARSE,
    ONE,
    TWO,
    ALONE,
    PAIR,
    ADVERSE,
    ADVERSE_2,
    SUBNORMAL,
    LARGE,
    LAWS
};
static const char *const laws[LAWS] = {
    "centred", "positive",         "normal",       "mean 1000", "log-normal, sigma 3",
    "Cauchy",  "1 of 256 nonzero", "one 2^30",     "two 2^30",  "one nonzero",
    "pair",    "adverse, one",     "adverse, two", "subnormal", "near FLT_MAX"};

static void stop(const char *what)
{
    fprintf(stderr, "bench_signs_errors: %s\n", what);
    exit(1);
}

static uint64_t state;

static double uniform(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 40) / 16777216.0;
}

static double normal(void)
{
    const double u = uniform() + 0x1p-25, v = uniform();
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Coordinate j of a point; sign: the first row's value in the column. */
static float draw(int law, int64_t d, int64_t j, int64_t special, float sign)
{
    const double u = uniform();
    const double s = sign < 0 ? -1 : 1;
    switch (law) {
    case CENTRED:
        return (float)(2 * u - 1);
    case POSITIVE:
        return (float)u;
    case NORMAL:
        return (float)normal();
    case MEAN:
        return (float)(1000 + normal());
    case LOGNORMAL:
        return (float)((u < 0.5 ? -1 : 1) * exp(3 * normal()));
    case CAUCHY:
        return (float)tan(3.141592653589793 * (u - 0.5 + 0x1p-26));
    case SPARSE:
        return u < 1.0 / 256 ? (float)normal() : 0;
    case ONE:
        return (float)((2 * u - 1) * (j == special ? 0x1p30 : 1));
    case TWO:
        return (float)((2 * u - 1) * (j == special || j == special / 2 ? 0x1p30 : 1));
    case ALONE:
        return j == special ? (float)(1 + u / 2 + 0x1p-23) : 0;
    case PAIR:
        return j == special || j == special / 2 ? (float)(s * (1 + 0x1p-23)) : 0;
    case ADVERSE:
        return (float)(s * (j == special ? 1 : 0x1p-23 * 0.999));
    case ADVERSE_2:
        return (float)(s * (j == special || j == special / 2 ? 1 : 0x1p-23 * 0.999));
    case SUBNORMAL:
        return (float)((2 * u - 1) * 0x1p-130);
    default:
        return (float)((2 * u - 1) * (FLT_MAX / 8 / sqrt((double)d)));
    }
}

typedef struct space {
    gnomon_context *ctx;
    float *x, *stored; /* POINTS x d; K x the columns that SGEMM has, or one block's */
    double *f64;
} space;

/* The sum of so many values 1, 0, -1 times integers: 256 of them fit 32 bits. */
static int64_t sum_of(const float *v, const int32_t *q, int64_t count)
{
    int64_t sum = 0;
    for (int64_t from = 0; from < count; from += 256) {
        const int64_t end = from + 256 < count ? from + 256 : count;
        int32_t part = 0;
        for (int64_t j = from; j < end; j++)
            part += (int32_t)v[j] * q[j];
        sum += part;
    }
    return sum;
}

/* One point's block: plain, t (wide) and n (narrow), K numbers each, go on. v: K x ld. */
static void add_block(const float *x, const float *v, int64_t ld, int64_t count, double *t,
                      float *n, double *plain)
{
    const signs_cut cuts[2] = {signs_cut_of(x, count, 1, SIGNS_PLAIN),
                               signs_cut_of(x, count, 1, SIGNS_REFINED)};
    static int32_t q[2][SIGNS_BLOCK];
    static int64_t left[SIGNS_BLOCK];
    int64_t left_count = 0;
    for (int64_t j = 0; j < count; j++) {
        const bool finite = isfinite(x[j]);
        q[0][j] = finite ? signs_round(x[j], cuts[0].exponent) : 0;
        q[1][j] = finite && j != cuts[1].out ? signs_round(x[j], cuts[1].exponent) : 0;
        if (!finite || j == cuts[1].out) left[left_count++] = j;
    }
    for (int r = 0; r < K; r++) {
        const float *value = v + r * ld;
        const double scaled = (double)sum_of(value, q[1], count) * signs_unit(cuts[1].exponent);
        plain[r] += (double)sum_of(value, q[0], count) * signs_unit(cuts[0].exponent);
        t[r] += scaled;
        n[r] += (float)scaled;
        for (int64_t i = 0; i < left_count; i++) {
            const int64_t j = left[i];
            if (value[j] == 0) continue;
            t[r] += (double)value[j] * (double)x[j];
            n[r] += value[j] * x[j];
            if (!isfinite(x[j])) plain[r] += (double)value[j] * (double)x[j];
        }
    }
}

static double error_of(const float *y, const double *exact)
{
    double error = 0, norm = 0;
    for (int r = 0; r < K; r++) {
        const double d = (double)y[r] - exact[r];
        error += d * d;
        norm += exact[r] * exact[r];
    }
    return norm > 0 ? sqrt(error / norm) : error > 0 ? INFINITY : 0;
}

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static void measure(space *s, int kind, int law, int64_t d, int points, json_t *results)
{
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op = NULL;
    static float y[WAYS][POINTS * K];
    static double exact[POINTS * K], t[POINTS * K], plain[POINTS * K], sums[POINTS * K];
    static int64_t terms[POINTS * K];
    static float block[K * SIGNS_BLOCK];
    descriptor.kind = kind ? GNOMON_ACHLIOPTAS : GNOMON_RADEMACHER;
    descriptor.scaling = GNOMON_UNSCALED;
    descriptor.seed = 42;
    descriptor.k = K;
    descriptor.d = d;
    if (gnomon_operator_create(s->ctx, &descriptor, &op) != GNOMON_OK)
        stop(gnomon_last_error(s->ctx));
    const double scale = kind ? sqrt(3.0) : 1; /* taken off again: of achlioptas' entries */
    memset(t, 0, sizeof t);
    memset(plain, 0, sizeof plain);
    memset(sums, 0, sizeof sums);
    memset(terms, 0, sizeof terms);
    memset(y, 0, sizeof y);
    state = (uint64_t)law * 1000003 + 1;
    const gnomon_matrix to_block = gnomon_matrix_rowmajor(block, GNOMON_F32, K, SIGNS_BLOCK);
    int64_t special[POINTS];
    for (int i = 0; i < points; i++)
        special[i] = (int64_t)(uniform() * (double)d);
    for (int64_t from = 0; from < d; from += SIGNS_BLOCK) {
        const int64_t count = d - from < SIGNS_BLOCK ? d - from : SIGNS_BLOCK;
        gnomon_matrix to = to_block;
        to.cols = count;
        if (gnomon_operator_block(s->ctx, op, 0, from, &to) != GNOMON_OK)
            stop(gnomon_last_error(s->ctx));
        for (int64_t e = 0; e < K * SIGNS_BLOCK; e++)
            block[e] = block[e] > 0 ? 1.0f : block[e] < 0 ? -1.0f : 0.0f;
        for (int i = 0; i < points; i++) {
            float *x = s->x + i * d + from;
            for (int64_t j = 0; j < count; j++) {
                x[j] = draw(law, d, from + j, special[i], block[j]);
                s->f64[i * d + from + j] = (double)x[j];
            }
            add_block(x, block, SIGNS_BLOCK, count, t + i * K, y[NARROW] + i * K, plain + i * K);
            for (int r = 0; r < K && d <= LARGEST; r++)
                for (int64_t j = 0; j < count; j++) {
                    const float v = block[r * SIGNS_BLOCK + j];
                    sums[i * K + r] += fabs((double)v * (double)x[j]);
                    terms[i * K + r] += v != 0 && x[j] != 0;
                }
        }
        if (s->stored && d <= LARGEST)
            for (int r = 0; r < K; r++)
                memcpy(s->stored + r * d + from, block + r * SIGNS_BLOCK,
                       (size_t)count * sizeof(float));
    }
    const gnomon_matrix x = gnomon_matrix_rowmajor(s->x, GNOMON_F32, points, d);
    const gnomon_matrix f64 = gnomon_matrix_rowmajor(s->f64, GNOMON_F64, points, d);
    const gnomon_matrix to = gnomon_matrix_rowmajor(y[TODAY], GNOMON_F32, points, K);
    const gnomon_matrix exactly = gnomon_matrix_rowmajor(exact, GNOMON_F64, points, K);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.alpha = 1 / scale;
    const bool summed = gnomon_sketch(s->ctx, op, &x, &to, &options) == GNOMON_OK;
    if (gnomon_sketch(s->ctx, op, &f64, &exactly, &options) != GNOMON_OK)
        stop(gnomon_last_error(s->ctx));
    if (d <= LARGEST)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, points, K, (int)d, 1, s->x, (int)d,
                    s->stored, (int)d, 0, y[SGEMM], K);
    for (int e = 0; e < points * K; e++) {
        y[PLAIN][e] = (float)plain[e];
        y[WIDE][e] = (float)t[e];
    }
    gnomon_operator_destroy(op);
    json_t *row = json_pack("{s:s, s:s, s:I}", "kind", kind ? "achlioptas" : "rademacher", "law",
                            laws[law], "d", (json_int_t)d);
    printf("| %s | %s | %lld |", kind ? "achlioptas" : "rademacher", laws[law], (long long)d);
    json_t *errors = json_object(), *ratios = json_object();
    for (int w = 0; w < WAYS; w++) {
        double most = 0, ratio = 0;
        if ((w == TODAY && !summed) || (w == SGEMM && d > LARGEST)) {
            printf(" - |");
            continue;
        }
        for (int i = 0; i < points; i++) {
            const double one = error_of(y[w] + i * K, exact + i * K);
            if (!(one <= most)) most = one;
            for (int r = 0; r < K; r++) {
                const int e = i * K + r;
                const double c = terms[e] > 0 ? (double)(terms[e] - 1) : 0;
                const double u = c * 0x1p-24 + 0x1p-24 + 0x1p-50;
                if (d > LARGEST) continue;
                const double bound = u / (1 - u) * sums[e] + 0x1p-148;
                const double off = fabs((double)y[w][e] - exact[e]) / bound;
                if (!(off <= ratio)) ratio = off;
            }
        }
        printf(" %.2e (%.3f) |", most, ratio);
        json_object_set_new(errors, way_names[w], number(most));
        json_object_set_new(ratios, way_names[w], number(ratio));
    }
    printf("\n");
    fflush(stdout);
    json_object_set_new(row, "errors", errors);
    json_object_set_new(row, "ratios", ratios);
    json_array_append_new(results, row);
}

/* Of points with infinities and NaN: numbers that are infinite, or NaN, in one arithmetic and not
 * in the other. */
static int64_t nonfinite(space *s, int kind)
{
    enum { D = 5000 };
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op = NULL;
    static float y[POINTS * K], narrow[POINTS * K], block[K * SIGNS_BLOCK];
    static double t[POINTS * K], plain[POINTS * K];
    descriptor.kind = kind ? GNOMON_ACHLIOPTAS : GNOMON_RADEMACHER;
    descriptor.scaling = GNOMON_UNSCALED;
    descriptor.seed = 42;
    descriptor.k = K;
    descriptor.d = D;
    memset(t, 0, sizeof t);
    memset(narrow, 0, sizeof narrow);
    if (gnomon_operator_create(s->ctx, &descriptor, &op) != GNOMON_OK)
        stop(gnomon_last_error(s->ctx));
    for (int64_t e = 0; e < (int64_t)POINTS * D; e++)
        s->x[e] = (float)normal();
    for (int i = 0; i < POINTS; i++) { /* one, two of a block, two of two blocks, NaN */
        float *x = s->x + (int64_t)i * D;
        x[17 * i] = i % 4 == 3 ? NAN : INFINITY;
        if (i % 4 == 1) x[17 * i + 1] = -INFINITY;
        if (i % 4 == 2) x[D - 1 - i] = INFINITY;
    }
    const gnomon_matrix x = gnomon_matrix_rowmajor(s->x, GNOMON_F32, POINTS, D);
    const gnomon_matrix to = gnomon_matrix_rowmajor(y, GNOMON_F32, POINTS, K);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.allow_nonfinite = 1;
    if (gnomon_sketch(s->ctx, op, &x, &to, &options) != GNOMON_OK) stop(gnomon_last_error(s->ctx));
    for (int64_t from = 0; from < D; from += SIGNS_BLOCK) {
        const int64_t count = D - from < SIGNS_BLOCK ? D - from : SIGNS_BLOCK;
        gnomon_matrix part = gnomon_matrix_rowmajor(block, GNOMON_F32, K, SIGNS_BLOCK);
        part.cols = count;
        if (gnomon_operator_block(s->ctx, op, 0, from, &part) != GNOMON_OK)
            stop(gnomon_last_error(s->ctx));
        for (int64_t e = 0; e < K * SIGNS_BLOCK; e++)
            block[e] = block[e] > 0 ? 1.0f : block[e] < 0 ? -1.0f : 0.0f;
        for (int i = 0; i < POINTS; i++)
            add_block(s->x + (int64_t)i * D + from, block, SIGNS_BLOCK, count, t + i * K,
                      narrow + i * K, plain + i * K);
    }
    int64_t differ = 0;
    for (int e = 0; e < POINTS * K; e++)
        differ += isnan(y[e]) != isnan(t[e]) || isinf(y[e]) != isinf(t[e]) ||
                  (isinf(y[e]) && (y[e] > 0) != (t[e] > 0)) || isnan(narrow[e]) != isnan(t[e]);
    gnomon_operator_destroy(op);
    return differ;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    bool longest = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            path = argv[++i];
        else if (strcmp(argv[i], "--long") == 0)
            longest = true;
        else
            stop("usage: bench_signs_errors [--json FILE] [--long]");
    }
    static const int64_t sizes[] = {64, 512, 4096, 32768, 262144, LARGEST, 10000000, 100000000};
    const int64_t largest = longest ? 100000000 : (int64_t)POINTS * LARGEST;
    space s = {NULL, malloc(sizeof(float) * (size_t)largest), malloc(sizeof(float) * K * LARGEST),
               malloc(sizeof(double) * (size_t)largest)};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    if (!s.x || !s.stored || !s.f64 || gnomon_context_create(&options, &s.ctx) != GNOMON_OK)
        stop("no memory");
    json_t *results = json_array();
    printf("| kind | points | D | today | SGEMM | plain | narrow | wide "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (int kind = 0; kind < 2; kind++)
        for (int law = 0; law < LAWS; law++)
            for (int at = 0; at < 8; at++) {
                if ((sizes[at] > LARGEST) != longest) continue;
                if (longest && (kind == 1 || (law != POSITIVE && law != ONE))) continue;
                measure(&s, kind, law, sizes[at], longest ? 1 : POINTS, results);
            }
    const int64_t differ[2] = {nonfinite(&s, 0), nonfinite(&s, 1)};
    printf("infinite or NaN in one arithmetic alone: %lld, %lld\n", (long long)differ[0],
           (long long)differ[1]);
    const char *commit = getenv("GNOMON_COMMIT");
    json_t *all = json_pack("{s:s, s:s, s:i, s:i, s:[II], s:o}", "bench", "signs errors", "commit",
                            commit ? commit : "", "k", K, "points", POINTS, "nonfinite_differ",
                            (json_int_t)differ[0], (json_int_t)differ[1], "results", results);
    if (path && json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(4)) != 0)
        stop("the file can't be written");
    json_decref(all);
    free(s.x);
    free(s.stored);
    free(s.f64);
    gnomon_context_destroy(s.ctx);
    return 0;
}
