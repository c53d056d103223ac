/* The (m, tau) model of Ahle and Silvestri 2020 held against this machine: their Theorem 2 counts
 * the cascade's cost (Lemma 3) in products of two sqrt(m) x sqrt(m) matrices, tau seconds each.
 *
 * 1. tau for several sqrt(m): one product alone, by OpenBLAS SGEMM and by gnomon's random signs
 *    (a sketch of sqrt(m) points from sqrt(m) to sqrt(m) dimensions, its making included).
 * 2. Cascades over a range of d, k and zeta: the paper's algorithm with stored factors, every level
 *    one SGEMM on reshaped points; and gnomon's own. For each the shapes of its products, from
 * which scripts/results/make.py predicts the cost.
 * 3. For the same points: the dense product with the matrix stored, and gnomon's rademacher, srht
 * and very-sparse, for the crossovers.
 *
 * usage: bench_model FILE.json [THREADS] */
#include <gnomon.h>

#include <cblas.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { POINTS = 32, LEAST_RUNS = 5, MOST_RUNS = 2000, LARGEST = 20, MOST_LEVELS = 60 };

static gnomon_context *ctx;
static float *points, *stored, *sums, *other;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_model: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(int64_t count)
{
    uint64_t seed = (uint64_t)count;
    float *x = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    if (!x) stop("memory", "too little");
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

/* Median seconds of a job, after one run that warms up. */
static double timed(void (*job)(const void *), const void *arg)
{
    static double run[MOST_RUNS];
    double total = 0;
    int runs = 0;
    job(arg);
    while (runs < LEAST_RUNS || (runs < MOST_RUNS && total < 0.1)) {
        const double start = now();
        job(arg);
        run[runs] = now() - start;
        total += run[runs++];
    }
    qsort(run, (size_t)runs, sizeof *run, ascending);
    return run[runs / 2];
}

/* ---- jobs ---- */

static void multiply(int64_t n, int64_t k, int64_t c, const float *x, float *y)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)k, (int)c, 1, x, (int)c,
                stored, (int)c, 0, y, (int)k);
}

typedef struct product {
    int64_t n, k, c;
} product;

static void do_product(const void *arg)
{
    const product *p = arg;
    multiply(p->n, p->k, p->c, points, sums);
}

typedef struct cascade {
    int levels;
    product level[MOST_LEVELS]; /* n: points times blocks */
} cascade;

/* Level by level; what one level leaves is the next one's points, without a copy. */
static void do_cascade(const void *arg)
{
    const cascade *c = arg;
    const float *x = points;
    float *y = sums, *free_space = other;
    for (int t = 0; t < c->levels; t++) {
        multiply(c->level[t].n, c->level[t].k, c->level[t].c, x, y);
        x = y;
        y = free_space;
        free_space = (float *)(uintptr_t)x;
    }
}

typedef struct sketch {
    gnomon_descriptor descriptor;
    int64_t n;
} sketch;

static void do_sketch(const void *arg)
{
    const sketch *s = arg;
    gnomon_operator *op;
    const gnomon_matrix x = gnomon_matrix_rowmajor(points, GNOMON_F32, s->n, s->descriptor.d);
    const gnomon_matrix y = gnomon_matrix_rowmajor(sums, GNOMON_F32, s->n, s->descriptor.k);
    if (gnomon_operator_create(ctx, &s->descriptor, &op) != GNOMON_OK ||
        gnomon_sketch(ctx, op, &x, &y, NULL) != GNOMON_OK)
        stop("sketch", gnomon_last_error(ctx));
    gnomon_operator_destroy(op);
}

static sketch sketch_of(gnomon_kind kind, int64_t n, int64_t k, int64_t d, int64_t zeta)
{
    sketch s = {GNOMON_DESCRIPTOR_INIT, n};
    s.descriptor.kind = kind;
    s.descriptor.k = k;
    s.descriptor.d = d;
    s.descriptor.zeta = zeta;
    s.descriptor.seed = 1;
    return s;
}

/* Lemma 3, d a multiple k zeta^levels. */
static cascade levels_of(int64_t k, int64_t d, int64_t zeta)
{
    cascade c = {0};
    int64_t blocks = d / k, before = k;
    for (int t = 1; blocks > 1; t++) {
        blocks /= zeta;
        const int64_t rows = blocks > 1 ? t * k : k;
        c.level[c.levels++] = (product){POINTS * blocks, rows, zeta * before};
        before = rows;
    }
    return c;
}

/* ---- the tables ---- */

static json_t *measure_tau(void)
{
    json_t *list = json_array();
    for (int64_t side = 8; side <= 2048; side *= 2) {
        const product p = {side, side, side};
        const sketch s = sketch_of(GNOMON_RADEMACHER, side, side, side, 0);
        const double blas = timed(do_product, &p), signs = timed(do_sketch, &s);
        printf("side %-5lld SGEMM %10.3f us (%6.1f GFLOP/s)   rademacher %10.3f us\n",
               (long long)side, 1e6 * blas, 2e-9 * (double)(side * side * side) / blas,
               1e6 * signs);
        json_array_append_new(list, json_pack("{s:I, s:f, s:f}", "side", (json_int_t)side, "sgemm",
                                              blas, "rademacher", signs));
    }
    return list;
}

static json_t *measure_cascades(void)
{
    json_t *list = json_array();
    for (int64_t k = 64; k <= 256; k *= 4)
        for (int log2 = 12; log2 <= LARGEST; log2 += 2) {
            const int64_t d = INT64_C(1) << log2;
            const product dense = {POINTS, k, d};
            const gnomon_kind kinds[] = {GNOMON_RADEMACHER, GNOMON_SRHT, GNOMON_VERY_SPARSE};
            double peer[3];
            for (int i = 0; i < 3; i++) {
                const sketch s = sketch_of(kinds[i], POINTS, k, d, 0);
                peer[i] = timed(do_sketch, &s);
            }
            json_t *cascades = json_array();
            for (int64_t zeta = 2; zeta <= 16; zeta *= zeta) {
                const cascade c = levels_of(k, d, zeta);
                int64_t reach = k;
                for (int t = 0; t < c.levels; t++)
                    reach *= zeta;
                if (reach != d) continue; /* d / k is no power of this zeta */
                json_t *products = json_array();
                for (int t = 0; t < c.levels; t++)
                    json_array_append_new(products, json_pack("[I, I, I]", (json_int_t)c.level[t].k,
                                                              (json_int_t)c.level[t].c,
                                                              (json_int_t)c.level[t].n));
                const sketch s = sketch_of(GNOMON_KRONECKER, POINTS, k, d, zeta);
                const double blas = timed(do_cascade, &c), ours = timed(do_sketch, &s);
                printf("k %-4lld d %-8lld zeta %-3lld levels %-3d SGEMMs %9.3f ms  kronecker %9.3f "
                       "ms\n",
                       (long long)k, (long long)d, (long long)zeta, c.levels, 1e3 * blas,
                       1e3 * ours);
                fflush(stdout);
                json_array_append_new(cascades, json_pack("{s:I, s:o, s:f, s:f}", "zeta",
                                                          (json_int_t)zeta, "products", products,
                                                          "sgemm", blas, "kronecker", ours));
            }
            json_array_append_new(
                list, json_pack("{s:I, s:I, s:i, s:f, s:f, s:f, s:f, s:o}", "k", (json_int_t)k, "d",
                                (json_int_t)d, "points", (int)POINTS, "dense_sgemm",
                                timed(do_product, &dense), "rademacher", peer[0], "srht", peer[1],
                                "very_sparse", peer[2], "cascades", cascades));
        }
    return list;
}

int main(int argc, char **argv)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    if (argc < 2 || argc > 3) stop("usage", "bench_model FILE.json [THREADS]");
    options.device = "cpu";
    options.threads = argc > 2 ? atoi(argv[2]) : 0;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    openblas_set_num_threads(gnomon_context_threads(ctx));
    points = numbers((int64_t)POINTS << LARGEST);
    stored = numbers(INT64_C(256) << LARGEST);
    sums = numbers((int64_t)POINTS << LARGEST);
    other = numbers((int64_t)POINTS << LARGEST);
    json_t *tau = measure_tau(), *sizes = measure_cascades();
    json_t *out =
        json_pack("{s:s, s:s, s:s, s:i, s:s, s:o, s:o}", "version", gnomon_version(), "device",
                  "cpu", "isa", gnomon_context_isa(ctx), "threads", gnomon_context_threads(ctx),
                  "openblas", openblas_get_config(), "tau", tau, "sizes", sizes);
    if (!out || json_dump_file(out, argv[1], JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
        stop(argv[1], "could not be written");
    json_decref(out);
    free(points);
    free(stored);
    free(sums);
    free(other);
    gnomon_context_destroy(ctx);
    return 0;
}
