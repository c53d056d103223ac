/* Times gnomon_sketch for every kind of operator, its generation included, beside OpenBLAS's SGEMM
 * with a stored matrix and beside one read of the points, with the same number of threads.
 *
 * Every round times the peers and all kinds in turn, so that a slow moment of the machine
 * strikes all of them; the figures are medians over the rounds, and the ratios are medians of the
 * rounds' own ratios. */
#include <gnomon.h>

#include <cblas.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 99, MOST_SIZES = 8, MOST_THREADS = 256 };

typedef struct kind {
    const char *name;
    gnomon_kind kind;
    gnomon_dtype precision;
    int64_t blocks;
} kind;

static const kind kinds[] = {
    {"gaussian", GNOMON_GAUSSIAN, GNOMON_F32, 0},
    {"gaussian fp16", GNOMON_GAUSSIAN, GNOMON_F16, 0},
    {"rademacher", GNOMON_RADEMACHER, (gnomon_dtype)0, 0},
    {"achlioptas", GNOMON_ACHLIOPTAS, (gnomon_dtype)0, 0},
    {"very-sparse", GNOMON_VERY_SPARSE, (gnomon_dtype)0, 0},
    {"sjlt", GNOMON_SJLT, (gnomon_dtype)0, 0},
    {"srht", GNOMON_SRHT, (gnomon_dtype)0, 0},
    {"block, 16 blocks", GNOMON_BLOCK, (gnomon_dtype)0, 16},
    {"kronecker", GNOMON_KRONECKER, (gnomon_dtype)0, 0},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct settings {
    int64_t n, d;
    int64_t k[MOST_SIZES];
    int sizes, threads, rounds;
    const char *json;
    const char *only; /* this kind alone; NULL: all */
} settings;

static bool wanted(const settings *s, const kind *of)
{
    return !s->only || strcmp(s->only, of->name) == 0;
}

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_project: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(int64_t count, uint64_t seed)
{
    float *x = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    if (!x) stop("memory", strerror(ENOMEM));
    for (int64_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *of, int count)
{
    double sorted[MOST_ROUNDS];
    memcpy(sorted, of, (size_t)count * sizeof *of);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* ---- one read of the points by all threads ---- */

typedef struct reader {
    const float *x;
    int64_t count;
    uint64_t sum;
} reader;

/* The part's words, xored: no arithmetic to wait for, and four streams at once with fetches
 * ahead of them, which is about as fast as this memory can be read. */
static void *read_part(void *arg)
{
    reader *r = arg;
    enum { STREAMS = 4, LINE = 16, AHEAD = 32 };
    const int64_t lines = r->count / LINE / STREAMS;
    uint64_t sums[8] = {0}, words[8];
    for (int64_t i = 0; i < lines; i++)
        for (int stream = 0; stream < STREAMS; stream++) {
            const float *p = r->x + (stream * lines + i) * LINE;
            __builtin_prefetch(p + AHEAD * LINE);
            memcpy(words, p, sizeof words);
            for (int l = 0; l < 8; l++)
                sums[l] ^= words[l];
        }
    for (int l = 0; l < 8; l++)
        r->sum ^= sums[l];
    return NULL;
}

static double time_read(const settings *s, const float *x)
{
    static volatile uint64_t sink;
    reader part[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    const int64_t count = s->n * s->d;
    const double start = now();
    for (int t = 0; t < s->threads; t++) {
        const int64_t begin = count / s->threads * t;
        const int64_t end = t + 1 == s->threads ? count : count / s->threads * (t + 1);
        part[t] = (reader){x + begin, end - begin, 0};
        if (t > 0 && pthread_create(&thread[t], NULL, read_part, &part[t]) != 0)
            stop("a thread", "could not be started");
    }
    read_part(&part[0]);
    for (int t = 1; t < s->threads; t++)
        pthread_join(thread[t], NULL);
    const double seconds = now() - start;
    for (int t = 0; t < s->threads; t++)
        sink = sink ^ part[t].sum;
    return seconds;
}

/* ---- the sketches ---- */

static double time_sgemm(const settings *s, int64_t k, const float *x, const float *matrix,
                         float *y)
{
    const double start = now();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)s->n, (int)k, (int)s->d, 1, x,
                (int)s->d, matrix, (int)s->d, 0, y, (int)k);
    return now() - start;
}

static gnomon_operator *create(gnomon_context *ctx, const settings *s, int64_t k, const kind *of)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = of->kind;
    d.precision = of->precision;
    d.blocks = of->blocks;
    d.seed = 1;
    d.k = k;
    d.d = s->d;
    gnomon_operator *op;
    if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK) stop(of->name, gnomon_last_error(ctx));
    return op;
}

/* From the descriptor to the finished sketch. */
static double time_sketch(gnomon_context *ctx, const settings *s, int64_t k, const kind *of,
                          float *x, float *y)
{
    const gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, s->n, s->d);
    const gnomon_matrix sketch = gnomon_matrix_rowmajor(y, GNOMON_F32, s->n, k);
    const double start = now();
    gnomon_operator *op = create(ctx, s, k, of);
    if (gnomon_sketch(ctx, op, &points, &sketch, NULL) != GNOMON_OK)
        stop(of->name, gnomon_last_error(ctx));
    gnomon_operator_destroy(op);
    return now() - start;
}

static json_t *run(gnomon_context *ctx, const settings *s, int64_t k, float *x)
{
    static double sgemm[MOST_ROUNDS], read[MOST_ROUNDS], sketch[KINDS][MOST_ROUNDS];
    static double faster[KINDS][MOST_ROUNDS], reads[KINDS][MOST_ROUNDS];
    float *matrix = numbers(k * s->d, 2), *y = numbers(s->n * k, 3);
    for (int r = -1; r < s->rounds; r++) { /* round -1 warms up */
        const int at = r < 0 ? 0 : r;
        sgemm[at] = time_sgemm(s, k, x, matrix, y);
        read[at] = time_read(s, x);
        for (int i = 0; i < KINDS; i++) {
            if (!wanted(s, &kinds[i])) continue;
            sketch[i][at] = time_sketch(ctx, s, k, &kinds[i], x, y);
            faster[i][at] = sgemm[at] / sketch[i][at];
            reads[i][at] = sketch[i][at] / read[at];
        }
    }
    const double work = 2e-9 * (double)s->n * (double)s->d * (double)k;
    const double gemm = median(sgemm, s->rounds), pass = median(read, s->rounds);
    printf("\nk = %lld: SGEMM with the matrix stored %.1f ms (%.0f GFLOP/s), one read %.1f ms "
           "(%.1f GB/s)\n",
           (long long)k, 1e3 * gemm, work / gemm, 1e3 * pass,
           4e-9 * (double)s->n * (double)s->d / pass);
    printf("  %-18s %10s %14s %12s\n", "operator", "ms", "SGEMM / this", "this / read");
    json_t *list = json_array();
    for (int i = 0; i < KINDS; i++) {
        if (!wanted(s, &kinds[i])) continue;
        const double ms = 1e3 * median(sketch[i], s->rounds);
        const double ratio = median(faster[i], s->rounds);
        const double in_reads = median(reads[i], s->rounds);
        printf("  %-18s %10.1f %14.2f %12.2f\n", kinds[i].name, ms, ratio, in_reads);
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:f, s:f}", "operator", kinds[i].name, "ms", ms,
                                        "sgemm_over_this", ratio, "this_over_read", in_reads));
    }
    free(matrix);
    free(y);
    return json_pack("{s:I, s:f, s:f, s:o}", "k", (json_int_t)k, "sgemm_ms", 1e3 * gemm, "read_ms",
                     1e3 * pass, "sketches", list);
}

/* ---- the command ---- */

static int64_t number(const char *option, const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most) stop(option, text);
    return value;
}

static settings parse(int argc, char **argv)
{
    settings s = {.n = 2000, .d = 20000, .k = {256, 1024}, .sizes = 2, .threads = 0, .rounds = 7};
    bool sizes_given = false;
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(option, "--points") == 0) {
            s.n = number(option, value, 1, 1 << 24);
        } else if (strcmp(option, "--dims") == 0) {
            s.d = number(option, value, 1, 1 << 24);
        } else if (strcmp(option, "-k") == 0) {
            if (!sizes_given) s.sizes = 0;
            sizes_given = true;
            if (s.sizes == MOST_SIZES) stop(option, "too many");
            s.k[s.sizes++] = number(option, value, 1, 1 << 20);
        } else if (strcmp(option, "--threads") == 0) {
            s.threads = (int)number(option, value, 1, MOST_THREADS);
        } else if (strcmp(option, "--rounds") == 0) {
            s.rounds = (int)number(option, value, 1, MOST_ROUNDS);
        } else if (strcmp(option, "--operator") == 0 && *value) {
            s.only = value;
        } else if (strcmp(option, "--json") == 0 && *value) {
            s.json = value;
        } else {
            fputs("usage: bench_project [--points N] [--dims D] [-k K]... [--threads N] "
                  "[--rounds N] [--operator NAME] [--json FILE]\n",
                  stderr);
            exit(2);
        }
    }
    return s;
}

int main(int argc, char **argv)
{
    settings s = parse(argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = s.threads;
    gnomon_context *ctx;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    s.threads = gnomon_context_threads(ctx);
    openblas_set_num_threads(s.threads);
    float *x = numbers(s.n * s.d, 1);

    printf("%lld points of %lld coordinates, fp32; %d threads, %s; medians of %d rounds; OpenBLAS "
           "%s\n",
           (long long)s.n, (long long)s.d, s.threads, gnomon_context_isa(ctx), s.rounds,
           openblas_get_config());
    json_t *results = json_array();
    for (int i = 0; i < s.sizes; i++)
        json_array_append_new(results, run(ctx, &s, s.k[i], x));
    if (s.json) {
        json_t *out =
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:s, s:o}", "version", gnomon_version(),
                      "device", "cpu", "isa", gnomon_context_isa(ctx), "threads", s.threads,
                      "rounds", s.rounds, "points", (json_int_t)s.n, "dims", (json_int_t)s.d,
                      "openblas", openblas_get_config(), "results", results);
        if (!out || json_dump_file(out, s.json, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
            stop(s.json, "could not be written");
        json_decref(out);
    } else {
        json_decref(results);
    }
    free(x);
    gnomon_context_destroy(ctx);
    return 0;
}
