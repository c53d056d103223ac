/* Speed of the trial arithmetic for sketches of signs on a CPU, beside the library's sketches of
 * today and SGEMM with the operator stored, each on one thread: X is n x d fp32, row-major, and
 * each time holds all of the work, the making of signs too (SGEMM's doesn't). The trial's results
 * are compared with those of signs.h, bit for bit.
 *
 * SGEMM: OpenBLAS, of the library that GNOMON_BLAS names, its functions prefixed by
 * GNOMON_BLAS_PREFIX.
 *
 * usage: bench_signs_speed [--json FILE] [--n N] [--d D] [--rounds R] */
#include "job.h"

#include <dlfcn.h>
#include <gnomon.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void sgemm_function(int, int, int, int, int, int, float, const float *, int, const float *,
                            int, float, float *, int);

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, MOST_ROUNDS = 31 };

static void stop(const char *what)
{
    fprintf(stderr, "bench_signs_speed: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *s, int count)
{
    qsort(s, (size_t)count, sizeof *s, by_size);
    return count % 2 ? s[count / 2] : (s[count / 2] + s[count / 2 - 1]) / 2;
}

/* The line of /proc/cpuinfo that begins so. */
static bool info_line(const char *begin, char *line, size_t size)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    bool there = false;
    while (info && !there && fgets(line, (int)size, info))
        there = strncmp(line, begin, strlen(begin)) == 0;
    if (info) fclose(info);
    return there;
}

static void processor(char *name, size_t size)
{
    char line[256];
    if (!info_line("model name", line, sizeof line)) return;
    const char *colon = strchr(line, ':');
    if (!colon) return;
    snprintf(name, size, "%s", colon + 2);
    name[strcspn(name, "\n")] = 0;
}

static bool tiles_permitted(void)
{
#if defined(SIGNS_EMULATED_TILES)
    return true;
#else
    char line[8192];
    return info_line("flags", line, sizeof line) && strstr(line, " amx_int8") &&
           syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18) == 0;
#endif
}

static sgemm_function *open_sgemm(void)
{
    const char *name = getenv("GNOMON_BLAS"), *prefix = getenv("GNOMON_BLAS_PREFIX");
    char symbol[64];
    void *library = dlopen(name ? name : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    sgemm_function *f = NULL;
    if (!library) return NULL;
    snprintf(symbol, sizeof symbol, "%scblas_sgemm", prefix ? prefix : "");
    void *found = dlsym(library, symbol);
    memcpy(&f, &found, sizeof f);
    return f;
}

/* Rows of one point that differ from the definition's bits. */
static int64_t wrong_of(const signs_job *job, int64_t i)
{
    const gnomon_simple *a = job->a;
    const float *x = job->x + i * a->cols;
    double *t = calloc((size_t)a->rows, sizeof *t);
    int32_t *q = malloc(SIGNS_BLOCK * sizeof *q);
    int64_t wrong = 0;
    if (!t || !q) stop("no memory");
    for (int64_t from = 0; from < a->cols; from += SIGNS_BLOCK) {
        const int64_t left = a->cols - from, count = left < SIGNS_BLOCK ? left : SIGNS_BLOCK;
        const signs_cut cut = signs_cut_of(x + from, count, 1, SIGNS_REFINED);
        for (int64_t j = 0; j < count; j++)
            q[j] = j == cut.out ? 0 : signs_round(x[from + j], cut.exponent);
        for (int64_t r = 0; r < a->rows; r++) {
            int64_t sum = 0;
            float out = 0;
            for (int64_t j = 0; j < count; j++) {
                const int64_t c = from + j;
                int value;
                if (a->kind == GNOMON_RADEMACHER) {
                    static uint32_t word;
                    if (j == 0 || c % 32 == 0)
                        word = gnomon_sign_word(a, GNOMON_TAG_SIGN, r, c / 32);
                    value = word >> (c % 32) & 1 ? -1 : 1;
                } else {
                    static const uint32_t power[8] = {1, 6, 36, 216, 1296, 7776, 46656, 279936};
                    static uint32_t word;
                    if (j == 0 || c % 8 == 0)
                        word = gnomon_sign_word(a, GNOMON_TAG_ACHLIOPTAS, r, c / 8);
                    const uint32_t d = (uint32_t)((uint64_t)(word * power[c % 8]) * 6 >> 32);
                    value = (d == 0) - (d == 1);
                }
                sum += value * q[j];
                if (j == cut.out) out = (float)value * x[c];
            }
            t[r] += (double)sum * signs_unit(cut.exponent);
            t[r] += (double)out;
        }
    }
    for (int64_t r = 0; r < a->rows; r++) {
        const float want = (float)(t[r] * job->factor);
        wrong += memcmp(&want, job->y + i * a->rows + r, sizeof want) != 0;
    }
    free(t);
    free(q);
    return wrong;
}

typedef struct way {
    const char *name, *isa; /* isa: the library's sketch at this level */
    int (*trial)(const signs_job *job);
    bool signs_only;
} way;

static const way ways[] = {
    {"today avx2", "avx2", NULL, false},         {"trial avx2", NULL, signs_sketch_avx2, false},
    {"today avx512", "avx512", NULL, false},     {"trial avx512", NULL, signs_sketch_avx512, false},
    {"trial amx", NULL, signs_sketch_amx, true},
};
enum { WAYS = sizeof ways / sizeof *ways };

static gnomon_context *context_of(const char *isa)
{
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.device = "cpu";
    setenv("GNOMON_ISA", isa, 1);
    return gnomon_context_create(&options, &ctx) == GNOMON_OK ? ctx : NULL;
}

int main(int argc, char **argv)
{
    int64_t n = 2000, d = 20000;
    int rounds = 5;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && strcmp(argv[i], "--json") == 0)
            path = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--n") == 0)
            n = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--d") == 0)
            d = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[++i]);
        else
            stop("usage: bench_signs_speed [--json FILE] [--n N] [--d D] [--rounds R]");
    }
    if (n < 1 || d < 1024 || rounds < 1 || rounds > MOST_ROUNDS) stop("a number is out of range");
    static const int64_t ks[] = {256, 1024};
    sgemm_function *sgemm = open_sgemm();
    const bool amx = tiles_permitted();
    __builtin_cpu_init();
    const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    gnomon_context *ctx[WAYS] = {NULL};
    for (int w = 0; w < WAYS; w++)
        if (ways[w].isa) ctx[w] = context_of(ways[w].isa);
    if (!ctx[0]) stop("no context of AVX2");
    float *x = malloc(sizeof *x * (size_t)(n * d)), *y = malloc(sizeof *y * (size_t)(n * 1024));
    float *s = malloc(sizeof *s * (size_t)(1024 * d));
    if (!x || !y || !s) stop("no memory");
    uint64_t state = 1;
    for (int64_t e = 0; e < n * d; e++) {
        uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        x[e] = (float)((z ^ (z >> 31)) >> 40) / 8388608.0f - 1;
    }
    x[5] = 0x1p30f; /* points with a coordinate left out, of very small numbers and of zeros */
    for (int64_t j = 0; j < d; j++) {
        x[2 * d + j] *= 0x1p-128f;
        x[3 * d + j] = 0;
    }
    json_t *results = json_array();
    for (int kind = 0; kind < 2; kind++) {
        for (int at = 0; at < 2; at++) {
            const int64_t k = ks[at];
            const char *name = kind ? "achlioptas" : "rademacher";
            gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
            descriptor.kind = kind ? GNOMON_ACHLIOPTAS : GNOMON_RADEMACHER;
            descriptor.k = k;
            descriptor.d = d;
            descriptor.seed = 42;
            descriptor.scaling = GNOMON_UNSCALED;
            gnomon_operator *op[WAYS] = {NULL};
            double seconds[WAYS + 1][MOST_ROUNDS];
            int64_t wrong[WAYS] = {0};
            for (int w = 0; w < WAYS; w++)
                if (ctx[w] && gnomon_operator_create(ctx[w], &descriptor, &op[w]) != GNOMON_OK)
                    stop(gnomon_last_error(ctx[w]));
            const gnomon_matrix stored = gnomon_matrix_rowmajor(s, GNOMON_F32, k, d);
            if (gnomon_operator_block(ctx[0], op[0], 0, 0, &stored) != GNOMON_OK) stop("stored");
            const gnomon_matrix from = gnomon_matrix_rowmajor(x, GNOMON_F32, n, d);
            const gnomon_matrix to = gnomon_matrix_rowmajor(y, GNOMON_F32, n, k);
            const signs_job job = {&op[0]->factor[0], x, n, y, op[0]->factor[0].scale};
            bool runs[WAYS];
            for (int w = 0; w < WAYS; w++)
                runs[w] = ways[w].isa ? ctx[w] != NULL
                                      : !(kind && ways[w].signs_only) &&
                                            (ways[w].trial == signs_sketch_avx2 ||
                                             (avx512 && (amx || !ways[w].signs_only)));
            for (int round = 0; round < rounds; round++) {
                double start = now();
                if (sgemm)
                    sgemm(ROW_MAJOR, NO_TRANS, TRANS, (int)n, (int)k, (int)d, 1, x, (int)d, s,
                          (int)d, 0, y, (int)k);
                seconds[WAYS][round] = now() - start;
                for (int w = 0; w < WAYS; w++) {
                    if (!runs[w]) continue;
                    start = now();
                    if (ways[w].isa) {
                        if (gnomon_sketch(ctx[w], op[w], &from, &to, NULL) != GNOMON_OK)
                            stop(gnomon_last_error(ctx[w]));
                    } else if (!ways[w].trial(&job)) {
                        stop("no memory");
                    }
                    seconds[w][round] = now() - start;
                    if (ways[w].isa || round > 0) continue;
                    for (int64_t i = 0; i < 4; i++)
                        wrong[w] += wrong_of(&job, i);
                    wrong[w] += wrong_of(&job, n - 1);
                }
            }
            const double blas = sgemm ? median(seconds[WAYS], rounds) : NAN;
            printf("%s k %lld: SGEMM %.1f ms\n", name, (long long)k, 1e3 * blas);
            json_t *row = json_pack("{s:s, s:I, s:I, s:I}", "kind", name, "k", (json_int_t)k, "n",
                                    (json_int_t)n, "d", (json_int_t)d);
            if (sgemm) json_object_set_new(row, "sgemm_ms", json_real(1e3 * blas));
            json_t *times = json_object();
            for (int w = 0; w < WAYS; w++) {
                if (!runs[w]) continue;
                const double one = median(seconds[w], rounds);
                printf("  %-13s %8.1f ms, least %8.1f, SGEMM over it %.2f", ways[w].name, 1e3 * one,
                       1e3 * seconds[w][0], blas / one);
                if (!ways[w].isa) printf(", wrong bits %lld", (long long)wrong[w]);
                printf("\n");
                json_object_set_new(times, ways[w].name,
                                    json_pack("{s:f, s:f, s:I}", "ms", 1e3 * one, "least_ms",
                                              1e3 * seconds[w][0], "wrong", (json_int_t)wrong[w]));
            }
            fflush(stdout);
            json_object_set_new(row, "times", times);
            json_array_append_new(results, row);
            for (int w = 0; w < WAYS; w++)
                if (op[w]) gnomon_operator_destroy(op[w]);
        }
    }
    const char *commit = getenv("GNOMON_COMMIT");
    char cpu[256] = "";
    processor(cpu, sizeof cpu);
    json_t *all = json_pack("{s:s, s:s, s:s, s:i, s:o}", "bench", "signs speed", "cpu", cpu,
                            "commit", commit ? commit : "", "rounds", rounds, "results", results);
    if (path && json_dump_file(all, path, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
        stop("the file can't be written");
    json_decref(all);
    free(x);
    free(y);
    free(s);
    for (int w = 0; w < WAYS; w++)
        gnomon_context_destroy(ctx[w]);
    return 0;
}
