/* Products of an fp32 with an fp16 matrix, beside OpenBLAS SGEMM with the fp16 one converted.
 *
 * accuracy  after Figure 5 of Ootomo & Yokota 2023: |C - exact|_F / |exact|_F, and the largest
 *           |C - exact| / (|A||B|) of an entry in units of u = 2^-24, against sums in fp64, for A
 *           of several laws and inner sizes from 2^6 to 2^20; B is normal, rounded to fp16. The
 * means (of the entrywise error: the largest) of SEEDS runs. speed     medians of interleaved runs;
 * SGEMM's time is without the conversion of B, which 'convert' is At the level amx both also with
 * the form BF16, and accuracy with B in fp32 too.
 *
 * usage: bench_gemm [--threads N] [--rounds N] [--only speed|accuracy] [--json FILE]
 * with --only, the other part is kept as FILE has it */
#include <gnomon.h>

#include <cblas.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { M = 16, N = 16, SEEDS = 3, LONGEST = 20, PIECE = 4096, MOST_ROUNDS = 99 };

static gnomon_context *ctx;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_gemm: %s: %s\n", what, why);
    exit(1);
}

static void *room(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);
    if (!memory) stop("memory", "too little");
    return memory;
}

/* ---- numbers ---- */

static double uniform(uint64_t *state) /* in (0, 1) */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    const double r = sqrt(-2 * log(uniform(state)));
    return r * cos(2 * 3.14159265358979323846 * uniform(state));
}

typedef enum law { UNIFORM, NORMAL, SPREAD, CAUCHY } law;

typedef struct data_row {
    const char *name;
    law law;
    double phi;    /* of SPREAD: (u - 1/2) exp(phi N) */
    bool positive; /* B too: all terms have one sign */
} data_row;

static const data_row data[] = {
    {"uniform(0, 1)", UNIFORM, 0, false},
    {"normal", NORMAL, 0, false},
    {"uniform(0, 1), B not negative", UNIFORM, 0, true},
    {"(u - 1/2) exp(0 N)", SPREAD, 0, false},
    {"(u - 1/2) exp(1 N)", SPREAD, 1, false},
    {"(u - 1/2) exp(2 N)", SPREAD, 2, false},
    {"(u - 1/2) exp(3 N)", SPREAD, 3, false},
    {"(u - 1/2) exp(4 N)", SPREAD, 4, false},
    {"1 / (x_i - y_j + 0.001)", CAUCHY, 0, false},
};
enum { LAWS = sizeof data / sizeof data[0] };

static void fill(const data_row *row, int64_t rows, int64_t cols, uint64_t seed, float *a)
{
    uint64_t state = seed;
    double *y = room(cols, sizeof *y);
    for (int64_t j = 0; j < cols; j++)
        y[j] = 1e-3 * (2 * uniform(&state) - 1);
    for (int64_t i = 0; i < rows; i++) {
        const double x = 1e-3 * (2 * uniform(&state) - 1);
        for (int64_t j = 0; j < cols; j++) {
            double v = 0;
            switch (row->law) {
            case UNIFORM:
                v = uniform(&state);
                break;
            case NORMAL:
                v = normal(&state);
                break;
            case SPREAD:
                v = (uniform(&state) - 0.5) * exp(row->phi * normal(&state));
                break;
            case CAUCHY:
                v = 1 / (x - y[j] + 1e-3);
                break;
            }
            a[i * cols + j] = (float)v;
        }
    }
    free(y);
}

/* Normal numbers rounded to fp16, as halves and as floats: the library's own generator. */
static void fill_half(int64_t rows, int64_t cols, uint64_t seed, bool positive, uint16_t *half,
                      float *same)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op;
    d.kind = GNOMON_GAUSSIAN;
    d.precision = GNOMON_F16;
    d.scaling = GNOMON_UNSCALED;
    d.k = rows < cols ? rows : cols; /* an operator has no more rows than columns */
    d.d = rows < cols ? cols : rows;
    d.seed = seed;
    const gnomon_matrix block = rows < cols ? gnomon_matrix_rowmajor(same, GNOMON_F32, rows, cols)
                                            : gnomon_matrix_colmajor(same, GNOMON_F32, cols, rows);
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK ||
        gnomon_operator_block(ctx, op, 0, 0, &block) != GNOMON_OK)
        stop("operator", gnomon_last_error(ctx));
    gnomon_operator_destroy(op);
    for (int64_t i = 0; i < rows * cols; i++) {
        if (positive) same[i] = fabsf(same[i]);
        /* exact: the value has fp16's 11 bits, or is a multiple of 2^-24 */
        const float x = fabsf(same[i]);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint32_t h =
            x < 0x1p-14f ? (uint32_t)(x * 0x1p24f) : (bits >> 13) - (uint32_t)(112 << 10);
        half[i] = (uint16_t)(h | (same[i] < 0 ? 0x8000u : 0));
    }
}

/* ---- accuracy ---- */

/* a b and |a||b| in fp64, a piece of the inner size at a time. */
static void exactly(int64_t k, const float *a, const float *b, double *c, double *size)
{
    double *x = room(M * PIECE, sizeof *x), *y = room(PIECE * N, sizeof *y);
    memset(c, 0, M * N * sizeof *c);
    memset(size, 0, M * N * sizeof *size);
    for (int64_t from = 0; from < k; from += PIECE) {
        const int64_t some = k - from < PIECE ? k - from : PIECE;
        for (int absolute = 0; absolute < 2; absolute++) {
            for (int64_t i = 0; i < M; i++)
                for (int64_t p = 0; p < some; p++)
                    x[i * some + p] =
                        absolute ? fabs((double)a[i * k + from + p]) : (double)a[i * k + from + p];
            for (int64_t p = 0; p < some * N; p++)
                y[p] = absolute ? fabs((double)b[from * N + p]) : (double)b[from * N + p];
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, (int)some, 1, x, (int)some,
                        y, N, 1, absolute ? size : c, N);
        }
    }
    free(x);
    free(y);
}

static bool has_bf16(void)
{
    return strcmp(gnomon_context_isa(ctx), "amx") == 0;
}

static void multiply(const gnomon_matrix *a, const gnomon_matrix *b, const gnomon_matrix *c,
                     gnomon_gemm_form form)
{
    gnomon_gemm_options o = GNOMON_GEMM_OPTIONS_INIT;
    o.form = form;
    if (gnomon_gemm(ctx, a, b, c, &o) != GNOMON_OK) stop("gnomon_gemm", gnomon_last_error(ctx));
}

typedef struct error {
    double relative, entry;
} error;

static void add_error(const float *c, const double *exact, const double *size, error *e)
{
    double sum = 0, all = 0;
    for (int i = 0; i < M * N; i++) {
        const double d = fabs((double)c[i] - exact[i]);
        sum += d * d;
        all += exact[i] * exact[i];
        if (!(d / size[i] * 0x1p24 <= e->entry)) e->entry = d / size[i] * 0x1p24;
    }
    e->relative += sqrt(sum / all) / SEEDS;
}

/* The law's A with a B of fp32 numbers, by the form BF16 and by SGEMM. */
static void single_accuracy(const data_row *row, int64_t k, uint64_t seed, const float *a, float *b,
                            error *ours, error *blas)
{
    uint64_t state = seed * 77;
    double exact[M * N], size[M * N];
    float c[M * N];
    for (int64_t i = 0; i < k * N; i++) {
        const double x = normal(&state);
        b[i] = (float)(row->positive ? fabs(x) : x);
    }
    exactly(k, a, b, exact, size);
    const gnomon_matrix as = gnomon_matrix_rowmajor((float *)(uintptr_t)a, GNOMON_F32, M, k);
    const gnomon_matrix bs = gnomon_matrix_rowmajor(b, GNOMON_F32, k, N);
    const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, M, N);
    multiply(&as, &bs, &cs, GNOMON_GEMM_BF16);
    add_error(c, exact, size, ours);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, (int)k, 1, a, (int)k, b, N, 0, c,
                N);
    add_error(c, exact, size, blas);
}

static json_t *accuracy(void)
{
    const int64_t longest = INT64_C(1) << LONGEST;
    float *a = room(M * longest, sizeof *a), *b = room(N * longest, sizeof *b), c[M * N];
    uint16_t *half = room(N * longest, sizeof *half);
    double exact[M * N], size[M * N];
    json_t *results = json_array();
    printf("| A | k | gnomon | SGEMM | ratio | gnomon, entries | SGEMM |\n|---|---|---|---|---|---|"
           "---|\n");
    for (int row = 0; row < LAWS; row++) {
        for (int log2 = 6; log2 <= LONGEST; log2 += 2) {
            const int64_t k = INT64_C(1) << log2;
            error ours = {0, 0}, blas = {0, 0}, bf16 = {0, 0}, both = {0, 0}, sgemm = {0, 0};
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                fill(&data[row], M, k, seed * 1000 + (uint64_t)log2, a);
                fill_half(k, N, seed, data[row].positive, half, b);
                exactly(k, a, b, exact, size);
                const gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, M, k);
                const gnomon_matrix bs = gnomon_matrix_rowmajor(half, GNOMON_F16, k, N);
                const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, M, N);
                multiply(&as, &bs, &cs, GNOMON_GEMM_AUTO);
                add_error(c, exact, size, &ours);
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, (int)k, 1, a, (int)k,
                            b, N, 0, c, N);
                add_error(c, exact, size, &blas);
                if (!has_bf16()) continue;
                multiply(&as, &bs, &cs, GNOMON_GEMM_BF16);
                add_error(c, exact, size, &bf16);
                single_accuracy(&data[row], k, seed, a, b, &both, &sgemm);
            }
            printf("| %s | 2^%d | %.2e | %.2e | %.2f | %.2f | %.2f |\n", data[row].name, log2,
                   ours.relative, blas.relative, ours.relative / blas.relative, ours.entry,
                   blas.entry);
            fflush(stdout);
            json_t *result =
                json_pack("{s:s, s:I, s:f, s:f, s:f, s:f}", "data", data[row].name, "k",
                          (json_int_t)k, "error", ours.relative, "sgemm_error", blas.relative,
                          "entry_u", ours.entry, "sgemm_entry_u", blas.entry);
            json_array_append_new(results, result);
            if (!has_bf16()) continue;
            printf("  bf16: %.2f (%.2f u) of SGEMM's, with fp32 %.2f (%.2f u) of %.2e (%.2f u)\n",
                   bf16.relative / blas.relative, bf16.entry, both.relative / sgemm.relative,
                   both.entry, sgemm.relative, sgemm.entry);
            json_object_update_new(
                result, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "bf16_error", bf16.relative,
                                  "bf16_entry_u", bf16.entry, "single_bf16_error", both.relative,
                                  "single_bf16_entry_u", both.entry, "single_sgemm_error",
                                  sgemm.relative, "single_sgemm_entry_u", sgemm.entry));
        }
    }
    free(a);
    free(b);
    free(half);
    return results;
}

/* ---- speed ---- */

static int threads;

static double now(void)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* OpenBLAS's threads look for more work for a while after a call, on processors that ours need. */
static void let_sleep(void)
{
    const struct timespec pause = {0, 50000000};
    if (threads > 1) nanosleep(&pause, NULL);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, ascending);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

typedef struct shape {
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 512, 4096}, {4096, 128, 4096},  {4096, 32, 4096},
    {4096, 512, 256},   {64, 64, 262144},   {4096, 266, 4096}, {4096, 4096, 4096},
};

static json_t *speed_of(const shape *s, int rounds)
{
    const int64_t m = s->m, n = s->n, k = s->k;
    float *a = room(m * k, sizeof *a), *b = room(k * n, sizeof *b), *c = room(m * n, sizeof *c);
    float *again = room(k * n, sizeof *again);
    uint16_t *half = room(k * n, sizeof *half);
    double mixed[MOST_ROUNDS], single[MOST_ROUNDS], blas[MOST_ROUNDS], convert[MOST_ROUNDS];
    double mixed_bf16[MOST_ROUNDS], single_bf16[MOST_ROUNDS];
    fill(&data[NORMAL], m, k, 7, a);
    fill_half(k, n, 8, false, half, b);
    const gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, m, k);
    const gnomon_matrix hs = gnomon_matrix_rowmajor(half, GNOMON_F16, k, n);
    const gnomon_matrix bs = gnomon_matrix_rowmajor(b, GNOMON_F32, k, n);
    const gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, m, n);
    for (int r = -1; r < rounds; r++) { /* one to warm up */
        const int at = r < 0 ? 0 : r;
        double start = now();
        multiply(&as, &hs, &cs, GNOMON_GEMM_AUTO);
        mixed[at] = now() - start;
        start = now();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k,
                    b, (int)n, 0, c, (int)n);
        blas[at] = now() - start;
        let_sleep();
        start = now();
        multiply(&as, &bs, &cs, GNOMON_GEMM_AUTO);
        single[at] = now() - start;
        if (has_bf16()) {
            start = now();
            multiply(&as, &hs, &cs, GNOMON_GEMM_BF16);
            mixed_bf16[at] = now() - start;
            start = now();
            multiply(&as, &bs, &cs, GNOMON_GEMM_BF16);
            single_bf16[at] = now() - start;
        }
        start = now();
        for (int64_t i = 0; i < k * n; i++) { /* normal halves; what a caller would write */
            const uint32_t bits = (uint32_t)(half[i] & 0x8000u) << 16 |
                                  (((uint32_t)(half[i] & 0x7fffu) << 13) + 0x38000000u);
            memcpy(&again[i], &bits, sizeof bits);
        }
        convert[at] = now() - start;
    }
    const double flops = 2e-9 * (double)m * (double)n * (double)k;
    const double x = median(mixed, rounds), y = median(single, rounds), z = median(blas, rounds);
    const double w = median(convert, rounds);
    /* sorted by now: the least times are the first */
    printf("%5lld x %4lld x %6lld: fp32 x fp16 %.1f, fp32 x fp32 %.1f, SGEMM %.1f GFLOP/s; SGEMM's "
           "time %.2f, %.2f of ours, least times %.2f, %.2f; converting B %.2f of SGEMM's\n",
           (long long)m, (long long)n, (long long)k, flops / x, flops / y, flops / z, z / x, z / y,
           blas[0] / mixed[0], blas[0] / single[0], w / z);
    json_t *result = json_pack("{s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "threads",
                               threads, "m", (json_int_t)m, "n", (json_int_t)n, "k", (json_int_t)k,
                               "mixed_ms", 1e3 * x, "single_ms", 1e3 * y, "sgemm_ms", 1e3 * z,
                               "convert_ms", 1e3 * w, "mixed_least_ms", 1e3 * mixed[0],
                               "single_least_ms", 1e3 * single[0], "sgemm_least_ms", 1e3 * blas[0]);
    if (has_bf16()) {
        const double p = median(mixed_bf16, rounds), q = median(single_bf16, rounds);
        printf("  bf16: fp32 x fp16 %.1f, fp32 x fp32 %.1f GFLOP/s; SGEMM's time %.2f, %.2f of "
               "ours, least times %.2f, %.2f\n",
               flops / p, flops / q, z / p, z / q, blas[0] / mixed_bf16[0],
               blas[0] / single_bf16[0]);
        json_object_update_new(result, json_pack("{s:f, s:f, s:f, s:f}", "mixed_bf16_ms", 1e3 * p,
                                                 "single_bf16_ms", 1e3 * q, "mixed_bf16_least_ms",
                                                 1e3 * mixed_bf16[0], "single_bf16_least_ms",
                                                 1e3 * single_bf16[0]));
    }
    fflush(stdout);
    free(a);
    free(b);
    free(c);
    free(again);
    free(half);
    return result;
}

/* ---- the command ---- */

static int number(const char *option, const char *text, int most)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > most) stop(option, text);
    return (int)value;
}

static double load_average(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : NAN;
}

static json_t *measure_speed(const gnomon_context_options *options, int rounds)
{
    json_t *speed = json_array();
    for (int all = 0; all < 2; all++) {
        gnomon_context_options some = *options;
        if (!all) some.threads = 1;
        if (gnomon_context_create(&some, &ctx) != GNOMON_OK)
            stop("context", gnomon_last_error(NULL));
        threads = gnomon_context_threads(ctx);
        openblas_set_num_threads(threads);
        printf("%d threads, %s, medians of %d rounds; OpenBLAS %s\n", threads,
               gnomon_context_isa(ctx), rounds, openblas_get_config());
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0] && (!all || threads > 1); s++)
            json_array_append_new(speed, speed_of(&shapes[s], rounds));
        gnomon_context_destroy(ctx);
    }
    return speed;
}

int main(int argc, char **argv)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    const char *file = NULL, *only = "";
    int rounds = 7;
    options.device = "cpu";
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(option, "--threads") == 0)
            options.threads = number(option, value, 1024);
        else if (strcmp(option, "--rounds") == 0)
            rounds = number(option, value, MOST_ROUNDS);
        else if (strcmp(option, "--json") == 0 && *value)
            file = value;
        else if (strcmp(option, "--only") == 0 &&
                 (strcmp(value, "speed") == 0 || strcmp(value, "accuracy") == 0))
            only = value;
        else
            stop(option, "usage: bench_gemm [--threads N] [--rounds N] [--only speed|accuracy] "
                         "[--json FILE]");
    }
    json_t *out = *only && file ? json_load_file(file, 0, NULL) : json_object();
    if (!out) stop(file, "--only: it has no record to be kept");
    if (strcmp(only, "accuracy") != 0) {
        const double load = load_average();
        json_t *speed = measure_speed(&options, rounds);
        json_object_update_new(out, json_pack("{s:s, s:s, s:i, s:i, s:f, s:s, s:o}", "program",
                                              "gemm", "version", gnomon_version(), "threads",
                                              threads, "rounds", rounds, "load", load, "openblas",
                                              openblas_get_config(), "speed", speed));
    }
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    if (strcmp(only, "speed") != 0)
        json_object_update_new(out, json_pack("{s:i, s:i, s:i, s:o}", "seeds", (int)SEEDS, "rows",
                                              (int)M, "cols", (int)N, "accuracy", accuracy()));
    json_object_set_new(out, "isa", json_string(gnomon_context_isa(ctx)));
    if (file && json_dump_file(out, file, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
        stop(file, "could not be written");
    json_decref(out);
    gnomon_context_destroy(ctx);
    return 0;
}
