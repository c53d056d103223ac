/* Low-precision Gaussian operators: section 3 of Ootomo & Yokota 2023 again.
 *
 * formats   their Table 1: what of a standard normal variable overflows, underflows or becomes
 *           subnormal in eXmY, and how many values there are; exact (law.h), and counted in entries
 *           of the library's generator
 * variance  their Figure 2: the variance of the rounded variable by mantissa length, exact and as
 *           the mean of round(g)^2 - g^2 over the same entries
 * matrices, errors
 *           their Figure 3: |A - Q Q^T A|_F, Q = orth(A S^T), S Gaussian and rounded, for their two
 *           matrix types; and their section 3.4: random signs and sparse kinds in its place. A
 *           is rounded to fp32 and S made in fp32, then all is computed in fp64, as they do
 *
 * Their type 1 is D + (xi / n) G G^T; they print an epsilon for n. Of their type 2 the first KEPT
 * singular values are taken: the rest is 1e-6 of the rounding of A to fp32. They do not say how
 * many columns they project to: here RANK + 10.
 *
 * usage: bench_low_precision [--seeds N] [--threads N] [--json FILE] */
#include "law.h"

#include <gnomon.h>

#include <cblas.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 4096, RANK = 20, COLUMNS = RANK + 10, KEPT = 512, PIECE = 256 };
enum { SAMPLE_ROWS = 1024, SAMPLE_COLS = 1 << 14, MOST_SEEDS = 100, EXACT_MANTISSA = 14 };

void dgeqrf_(const int *, const int *, double *, const int *, double *, double *, const int *,
             int *);
void dorgqr_(const int *, const int *, const int *, double *, const int *, const double *, double *,
             const int *, int *);

static gnomon_context *ctx;

static const format formats[] = {
    {"FP8 e4m3", 4, 3, false}, {"FP8 e4m3, OCP", 4, 3, true}, {"FP8 e5m2", 5, 2, false},
    {"FP16", 5, 10, false},    {"bfloat16", 8, 7, false},     {"TF32", 8, 10, false},
    {"FP32", 8, 23, false},    {"e3m4", 3, 4, false},         {"e2m3", 2, 3, false},
};

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_low_precision: %s: %s\n", what, why);
    exit(1);
}

static void *room(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    if (!memory) stop("memory", "too little");
    return memory;
}

static gnomon_descriptor describe(gnomon_kind kind, gnomon_dtype precision, double density)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = kind;
    d.precision = precision;
    d.density = density;
    d.scaling = GNOMON_UNSCALED;
    return d;
}

/* All entries of the operator of k rows, d columns, row after row. */
static void entries(gnomon_descriptor d, int64_t k, int64_t cols, uint64_t seed, void *out,
                    gnomon_dtype dtype)
{
    gnomon_operator *op;
    d.k = k;
    d.d = cols;
    d.seed = seed;
    const gnomon_matrix block = gnomon_matrix_rowmajor(out, dtype, k, cols);
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK ||
        gnomon_operator_block(ctx, op, 0, 0, &block) != GNOMON_OK)
        stop("operator", gnomon_last_error(ctx));
    gnomon_operator_destroy(op);
}

/* ---- the rounded normal law ---- */

static json_t *format_record(const format *f, const float *g, int64_t count)
{
    const law l = law_of(f);
    int64_t overflow = 0, underflow = 0, subnormal = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = fabs(law_round(f, g[i]));
        overflow += isinf(v) != 0;
        underflow += v == 0;
        subnormal += v < law_least_normal(f);
    }
    json_t *r = json_pack(
        "{s:s, s:i, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:[fff], s:{s:I, s:I, s:I, "
        "s:I}}",
        "name", f->name, "exponent", f->exponent, "mantissa", f->mantissa, "finite", f->finite,
        "largest", law_largest(f), "least_normal", law_least_normal(f), "log10_overflow",
        l.log10_overflow, "underflow", l.underflow, "subnormal", l.subnormal,
        "paper_log10_overflow", l.paper_log10_overflow, "paper_underflow", l.paper_underflow,
        "paper_not_normal", l.paper_not_normal, "values", l.values[0], l.values[1], l.values[2],
        "counted", "of", (json_int_t)count, "overflow", (json_int_t)overflow, "underflow",
        (json_int_t)underflow, "subnormal", (json_int_t)subnormal);
    if (f->mantissa <= EXACT_MANTISSA) {
        json_object_set_new(r, "variance_excess", json_real(law_variance_excess(f)));
        json_object_set_new(r, "entropy_bits", json_real(law_entropy(f)));
    }
    printf("%-14s overflow 1e%.4g  underflow %.3g  subnormal or 0 %.3g\n", f->name,
           l.log10_overflow, l.underflow, l.subnormal);
    return r;
}

static json_t *variance_record(const format *f, const float *g, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const double v = law_round(f, g[i]), difference = (v - (double)g[i]) * (v + (double)g[i]);
        sum += difference;
        squares += difference * difference;
    }
    const double mean = sum / (double)count;
    const double deviation = sqrt((squares / (double)count - mean * mean) / (double)count);
    const double excess = law_variance_excess(f);
    printf("e%dm%-2d  variance - 1: %.4g, sampled %.4g +- %.2g\n", f->exponent, f->mantissa, excess,
           mean, deviation);
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f}", "exponent", f->exponent, "mantissa",
                     f->mantissa, "excess", excess, "paper_excess", law_paper_variance_excess(f),
                     "sampled", mean, "deviation", deviation);
}

/* ---- errors of projections ---- */

/* The columns of a (rows x cols, columns contiguous) orthonormalised; signs: as for the Haar law.
 */
static void orthonormalise(int rows, int cols, double *a, bool signs)
{
    const int size = cols * 64;
    int info = 0;
    double *tau = room(cols, sizeof *tau), *work = room(size, sizeof *work);
    double *sign = room(cols, sizeof *sign);
    dgeqrf_(&rows, &cols, a, &rows, tau, work, &size, &info);
    for (int64_t j = 0; j < cols; j++)
        sign[j] = signs && a[j * rows + j] < 0 ? -1 : 1;
    if (info == 0) dorgqr_(&rows, &cols, &cols, a, &rows, tau, work, &size, &info);
    if (info != 0) stop("orthonormalisation", "refused its arguments");
    for (int64_t j = 0; j < cols; j++)
        if (sign[j] < 0) cblas_dscal(rows, -1, a + j * rows, 1);
    free(tau);
    free(work);
    free(sign);
}

/* To fp32 and back; what that changed, as a Frobenius norm. */
static double to_single(double *a)
{
    double sum = 0;
    for (int64_t i = 0; i < (int64_t)N * N; i++) {
        const double v = (double)(float)a[i];
        sum += (v - a[i]) * (v - a[i]);
        a[i] = v;
    }
    return sqrt(sum);
}

static void make_type1(double *a)
{
    const double xi = 1e-4;
    double *g = room((int64_t)N * N, sizeof *g);
    entries(describe(GNOMON_GAUSSIAN, GNOMON_F32, 0), N, N, 1001, g, GNOMON_F64);
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, N, N, xi / N, g, N, 0, a, N);
    free(g);
    for (int64_t j = 0; j < N; j++) {
        if (j < RANK) a[j * N + j] += 1;
        for (int64_t i = j + 1; i < N; i++)
            a[i * N + j] = a[j * N + i];
    }
}

static void make_type2(double *a)
{
    const gnomon_descriptor normal = describe(GNOMON_GAUSSIAN, GNOMON_F32, 0);
    double *u = room((int64_t)N * KEPT, sizeof *u), *v = room((int64_t)N * KEPT, sizeof *v);
    entries(normal, KEPT, N, 1002, u, GNOMON_F64);
    entries(normal, KEPT, N, 1003, v, GNOMON_F64);
    orthonormalise(N, KEPT, u, true);
    orthonormalise(N, KEPT, v, true);
    for (int64_t j = 0; j < KEPT; j++)
        cblas_dscal(N, j < RANK ? 1e6 : pow((double)(j - RANK + 2), -3), u + j * N, 1);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, N, N, KEPT, 1, u, N, v, N, 0, a, N);
    free(u);
    free(v);
}

/* The best error of rank RANK: the factorisation after three power iterations, which the gap behind
 * the RANK-th singular value makes exact to all digits shown. */
static double best_error(double *a)
{
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.rank = RANK;
    options.power = 3;
    options.probes = 0;
    options.measure = 1;
    const gnomon_matrix view = gnomon_matrix_colmajor(a, GNOMON_F64, N, N);
    if (gnomon_svd_dense(ctx, &view, &options, &svd) != GNOMON_OK)
        stop("factorisation", gnomon_last_error(ctx));
    const double error = svd.residual;
    gnomon_svd_free(ctx, &svd);
    return error;
}

/* |A - Q Q^T A|_F, Q = orth(A omega); omega: N x COLUMNS. No squares are subtracted. */
static double range_error(const double *a, const double *omega)
{
    static double q[(size_t)N * COLUMNS], b[(size_t)COLUMNS * PIECE], rest[(size_t)N * PIECE];
    double sum = 0;
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, N, COLUMNS, N, 1, a, N, omega, N, 0, q,
                N);
    orthonormalise(N, COLUMNS, q, false);
    for (int64_t j = 0; j < N; j += PIECE) {
        memcpy(rest, a + j * N, sizeof rest);
        cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, COLUMNS, PIECE, N, 1, q, N, rest, N, 0,
                    b, COLUMNS);
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, N, PIECE, COLUMNS, -1, q, N, b,
                    COLUMNS, 1, rest, N);
        const double norm = cblas_dnrm2(N * PIECE, rest, 1);
        sum += norm * norm;
    }
    return sqrt(sum);
}

typedef struct trial {
    const char *name;
    gnomon_descriptor descriptor;
    format rounded;
} trial;

static int make_trials(trial *t)
{
    static const int mantissas[] = {23, 10, 7, 5, 4, 3, 2, 1, 0};
    const gnomon_descriptor normal = describe(GNOMON_GAUSSIAN, GNOMON_F32, 0);
    const format whole = {"", 8, 23, false};
    int count = 0;
    for (size_t i = 0; i < sizeof mantissas / sizeof *mantissas; i++)
        t[count++] = (trial){"gaussian", normal, {"", 8, mantissas[i], false}};
    t[count++] = (trial){"gaussian", normal, formats[2]};
    t[count++] = (trial){"gaussian", normal, formats[0]};
    t[count++] = (trial){"gaussian fp16", describe(GNOMON_GAUSSIAN, GNOMON_F16, 0), whole};
    t[count++] = (trial){"rademacher", describe(GNOMON_RADEMACHER, 0, 0), whole};
    t[count++] = (trial){"achlioptas", describe(GNOMON_ACHLIOPTAS, 0, 0), whole};
    t[count++] = (trial){"very-sparse, 1/sqrt(n)", describe(GNOMON_VERY_SPARSE, 0, 0), whole};
    t[count++] =
        (trial){"very-sparse, ln(n)/n", describe(GNOMON_VERY_SPARSE, 0, log(N) / N), whole};
    t[count++] = (trial){"sjlt, 4 nonzeros", describe(GNOMON_SJLT, 0, 0), whole};
    t[count] = (trial){"sjlt, 5 nonzeros", describe(GNOMON_SJLT, 0, 0), whole};
    t[count++].descriptor.nonzeros = 5;
    t[count++] = (trial){"srht", describe(GNOMON_SRHT, 0, 0), whole};
    return count;
}

/* One trial; full: the errors with the unrounded Gaussian of the same seeds, NULL for itself. */
static json_t *error_record(int type, const double *a, const trial *t, int seeds, double *errors,
                            const double *full)
{
    static float s[(size_t)COLUMNS * N];
    static double omega[(size_t)COLUMNS * N];
    double sum = 0, squares = 0, worst = 0;
    int64_t changed = 0;
    json_t *all = json_array();
    for (int seed = 0; seed < seeds; seed++) {
        entries(t->descriptor, COLUMNS, N, (uint64_t)seed, s, GNOMON_F32);
        for (int64_t i = 0; i < (int64_t)COLUMNS * N; i++) {
            omega[i] = law_round(&t->rounded, s[i]);
            changed += omega[i] != (double)s[i];
        }
        errors[seed] = range_error(a, omega);
        json_array_append_new(all, json_real(errors[seed]));
        sum += errors[seed];
        squares += errors[seed] * errors[seed];
        if (full && fabs(errors[seed] / full[seed] - 1) > worst)
            worst = fabs(errors[seed] / full[seed] - 1);
    }
    const double mean = sum / seeds;
    printf("type %d  %-24s e%dm%-2d  %.6g\n", type, t->name, t->rounded.exponent,
           t->rounded.mantissa, mean);
    fflush(stdout);
    json_t *r = json_pack(
        "{s:i, s:s, s:i, s:i, s:f, s:f, s:f, s:o}", "type", type, "operator", t->name, "exponent",
        t->rounded.exponent, "mantissa", t->rounded.mantissa, "mean", mean, "deviation",
        seeds > 1 ? sqrt(fmax(0, squares / seeds - mean * mean) * seeds / (seeds - 1)) : 0.0,
        "changed", (double)changed / ((double)seeds * COLUMNS * N), "errors", all);
    if (full) json_object_set_new(r, "farthest_from_fp32", json_real(worst));
    return r;
}

static void project(int seeds, json_t *matrices, json_t *errors)
{
    trial trials[32];
    double full[MOST_SEEDS], other[MOST_SEEDS], *a = room((int64_t)N * N, sizeof *a);
    const int count = make_trials(trials);
    for (int type = 1; type <= 2; type++) {
        if (type == 1)
            make_type1(a);
        else
            make_type2(a);
        const double noise = to_single(a), best = best_error(a);
        printf("type %d  best error of rank %d: %.6g; of fp32: %.3g\n", type, RANK, best, noise);
        json_array_append_new(matrices, json_pack("{s:i, s:f, s:f, s:f, s:f}", "type", type, "norm",
                                                  cblas_dnrm2(N * N, a, 1), "fp32_rounding", noise,
                                                  "best", best, "bound",
                                                  best * sqrt(1 + RANK / (COLUMNS - RANK - 1.0))));
        for (int i = 0; i < count; i++)
            json_array_append_new(errors, error_record(type, a, trials + i, seeds, i ? other : full,
                                                       i ? full : NULL));
    }
    free(a);
}

int main(int argc, char **argv)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    const char *path = NULL;
    int seeds = 10, threads = 1;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--json") == 0 && *value)
            path = value;
        else if (strcmp(argv[i], "--seeds") == 0 && atoi(value) > 0 && atoi(value) <= MOST_SEEDS)
            seeds = atoi(value);
        else if (strcmp(argv[i], "--threads") == 0 && atoi(value) > 0)
            threads = atoi(value);
        else
            stop("usage", "bench_low_precision [--seeds N] [--threads N] [--json FILE]");
    }
    options.device = "cpu";
    options.threads = threads;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    openblas_set_num_threads(threads);
    const clock_t start = clock();

    const int64_t count = (int64_t)SAMPLE_ROWS * SAMPLE_COLS;
    float *g = room(count, sizeof *g);
    entries(describe(GNOMON_GAUSSIAN, GNOMON_F32, 0), SAMPLE_ROWS, SAMPLE_COLS, 1000, g,
            GNOMON_F32);
    json_t *table = json_array(), *variance = json_array();
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        json_array_append_new(table, format_record(&formats[i], g, count));
    static const int exponents[] = {8, 4, 3};
    for (int x = 0; x < 3; x++)
        for (int y = 0; y <= (x == 0 ? EXACT_MANTISSA : 7); y++) {
            const format f = {"", exponents[x], y, false};
            json_array_append_new(variance, variance_record(&f, g, count));
        }
    free(g);

    json_t *matrices = json_array(), *errors = json_array();
    project(seeds, matrices, errors);
    json_t *out =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:o, s:o, s:o, s:o}", "version",
                  gnomon_version(), "n", N, "rank", RANK, "columns", COLUMNS, "kept", KEPT, "seeds",
                  seeds, "threads", threads, "sample", (json_int_t)count, "cpu_seconds",
                  (double)(clock() - start) / CLOCKS_PER_SEC, "formats", table, "variance",
                  variance, "matrices", matrices, "errors", errors);
    if (path && (!out || json_dump_file(out, path, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0))
        stop(path, "could not be written");
    json_decref(out);
    gnomon_context_destroy(ctx);
    return 0;
}
