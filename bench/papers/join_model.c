/* The (m, tau) model of Ahle and Silvestri 2020, section 4, held against joins on this machine: a
 * join by products costs n^2 d m^(-3/2) tau, one by hashes L times what its buckets' products and
 * the handling of n points cost.
 *
 * tau      seconds of a product of two sqrt(m) x sqrt(m) matrices, by OpenBLAS SGEMM
 * exact    joins of points without structure, by tiles of SGEMM and a threshold, step by step, and
 *          by gnomon, over n, d and selectivity
 * buckets  a pair in a bucket of b points, by one product of the bucket, by dot products of vector
 *          units, and by one addition after the other
 * hashed   the paper's join by hashes over K, the functions a table, for several c, buckets joined
 *          by products and pair by pair; and gnomon's
 * Seconds are the processor's, of one thread: what else runs on the machine counts little.
 * scripts/results/join.py predicts from the first what the others cost. A part's figures replace
 * those of the same part in FILE.
 *
 * usage: bench_join_model FILE.json [tau|exact|buckets|hashed]      without a part: all, 4 minutes
 */
#include "join_model.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 16, SAMPLE = 256, MOST_RUNS = 500 };

gnomon_context *ctx;

_Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_join_model: %s: %s\n", what, why);
    exit(1);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void *room_for(int64_t count, size_t size)
{
    void *room = aligned_alloc(64, ((size_t)count * size + 64) / 64 * 64);
    if (room == NULL) stop("memory", "too little");
    return room;
}

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*state >> 32) + 0.5) * 0x1p-32;
}

void random_normal(float *x, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(sqrt(-2 * log(uniform(&seed))) * cos(6.283185307179586 * uniform(&seed)));
}

float square(const float *x, int64_t d)
{
    return cblas_sdot((int)d, x, 1, x, 1);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- a tile ---- */

static void keep(pair_list *out, int64_t i, int64_t j, double distance)
{
    if (out->count == out->room) {
        out->room = 2 * out->room + 4096;
        out->pairs = realloc(out->pairs, (size_t)out->room * sizeof *out->pairs);
        if (out->pairs == NULL) stop("memory", "too little");
    }
    out->pairs[out->count++] = (gnomon_pair){i, j, distance};
}

void join_tile(const float *x, const float *xx, const int32_t *p_ids, int64_t p, const float *y,
               const float *yy, const int32_t *q_ids, int64_t q, int64_t d, float limit, int upper,
               float *tile, pair_list *out, steps *t)
{
    static unsigned char found[TILE * TILE / BLOCK];
    const int64_t blocks = (q + BLOCK - 1) / BLOCK;
    const double start = t != NULL ? now() : 0;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)p, (int)q, (int)d, -2, x, (int)d, y,
                (int)d, 0, tile, TILE);
    const double made = t != NULL ? now() : 0;
    /* which blocks hold a pair: no branch a number */
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t from = b * BLOCK, to = from + BLOCK < q ? from + BLOCK : q;
            const float *row = tile + a * TILE, rest = limit - xx[a];
            int some = 0;
            for (int64_t at = from; at < to; at++)
                some |= row[at] + yy[at] <= rest;
            found[a * blocks + b] = (unsigned char)some;
        }
    const double looked = t != NULL ? now() : 0;
    for (int64_t a = 0; a < p; a++)
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t at = b * BLOCK; found[a * blocks + b] && at < (b + 1) * BLOCK && at < q;
                 at++) {
                const float squared = tile[a * TILE + at] + yy[at] + xx[a];
                if (squared <= limit && (!upper || at > a))
                    keep(out, p_ids[a], q_ids[at], sqrt(fmax(0, (double)squared)));
            }
    if (t == NULL) return;
    t->product += made - start;
    t->look += looked - made;
    t->write += now() - looked;
}

double gnomon_seconds(const float *x, int64_t n, int64_t d, double threshold, double recall,
                      gnomon_join_result *result)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    const gnomon_matrix points = gnomon_matrix_rowmajor((void *)(uintptr_t)x, GNOMON_F32, n, d);
    gnomon_pairs pairs = {.struct_size = sizeof pairs};
    o.threshold = threshold;
    o.recall = recall;
    *result = (gnomon_join_result){.struct_size = sizeof *result};
    const double start = now();
    if (gnomon_join_collect(ctx, &points, NULL, &o, 0, &pairs, result) != GNOMON_OK)
        stop("join", gnomon_last_error(ctx));
    const double seconds = now() - start;
    gnomon_pairs_free(ctx, &pairs);
    return seconds;
}

/* ---- tau ---- */

static json_t *measure_tau(void)
{
    enum { LARGEST = 2048 };
    json_t *list = json_array();
    float *x = room_for(3 * LARGEST * LARGEST, sizeof *x), *sums = x + 2 * LARGEST * LARGEST;
    random_normal(x, 2 * LARGEST * LARGEST, 1);
    for (int side = 8; side <= LARGEST; side *= 2) {
        double run[MOST_RUNS], total = 0;
        int runs = 0;
        while (runs < 3 || (runs < MOST_RUNS && total < 0.1)) {
            /* a run of small products is many, or the clock is what is measured */
            const int many = side < 128 ? 128 / side * 8 : 1;
            const double start = now();
            for (int i = 0; i < many; i++)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, side, side, side, 1, x, side,
                            x + LARGEST * LARGEST, side, 0, sums, side);
            run[runs] = (now() - start) / many;
            total += run[runs++] * many;
        }
        qsort(run, (size_t)runs, sizeof *run, ascending);
        printf("side %-5d %10.3f us\n", side, 1e6 * run[runs / 2]);
        json_array_append_new(list,
                              json_pack("{s:i, s:f}", "side", side, "seconds", run[runs / 2]));
    }
    free(x);
    return list;
}

/* ---- exact joins ---- */

/* The distance that so large a share of the pairs is within, from some of them. */
static double threshold_for(const float *x, int64_t n, int64_t d, double share)
{
    const int64_t others = n < 4096 ? n : 4096, count = SAMPLE * (others - SAMPLE);
    double *squares = room_for(count, sizeof *squares);
    int64_t at = 0;
    for (int64_t i = 0; i < SAMPLE; i++)
        for (int64_t j = SAMPLE; j < others; j++, at++) {
            double sum = 0;
            for (int64_t k = 0; k < d; k++) {
                const double step = (double)x[i * d + k] - (double)x[j * d + k];
                sum += step * step;
            }
            squares[at] = sum;
        }
    qsort(squares, (size_t)count, sizeof *squares, ascending);
    const double squared = squares[(int64_t)(share * (double)count)];
    free(squares);
    return sqrt(squared);
}

static json_t *exact_join(int64_t n, int64_t d, double pairs_a_point)
{
    float *x = room_for(n * d, sizeof *x), *squares = room_for(n, sizeof *squares);
    float *tile = room_for(TILE * TILE, sizeof *tile);
    int32_t *ids = room_for(n, sizeof *ids);
    pair_list found = {0, 0, NULL};
    steps t = {0, 0, 0};
    gnomon_join_result r;
    random_normal(x, n * d, (uint64_t)(n + d));
    const double threshold = threshold_for(x, n, d, pairs_a_point / (double)n);
    const double start = now();
    for (int64_t i = 0; i < n; i++) {
        squares[i] = square(x + i * d, d);
        ids[i] = (int32_t)i;
    }
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = i; j < n; j += TILE) {
            const int64_t p = n - i < TILE ? n - i : TILE, q = n - j < TILE ? n - j : TILE;
            join_tile(x + i * d, squares + i, ids + i, p, x + j * d, squares + j, ids + j, q, d,
                      (float)(threshold * threshold), i == j, tile, &found, &t);
        }
    const double tiles = now() - start;
    const double ours = gnomon_seconds(x, n, d, threshold, 1, &r);
    printf("n %-6lld d %-5lld pairs %-9lld tiles %8.4f s (products %.4f, look %.4f, pairs %.4f), "
           "gnomon %8.4f s, %lld pairs\n",
           (long long)n, (long long)d, (long long)found.count, tiles, t.product, t.look, t.write,
           ours, (long long)r.pairs);
    fflush(stdout);
    json_t *out = json_pack("{s:I, s:I, s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:s}", "n",
                            (json_int_t)n, "d", (json_int_t)d, "threshold", threshold, "pairs",
                            (json_int_t)found.count, "tiles", tiles, "product", t.product, "look",
                            t.look, "write", t.write, "gnomon", ours, "gnomon_pairs",
                            (json_int_t)r.pairs, "verified", (json_int_t)r.verified, "why", r.why);
    free(x);
    free(squares);
    free(tile);
    free(ids);
    free(found.pairs);
    return out;
}

static json_t *measure_exact(void)
{
    static const struct {
        int64_t n, d;
        double pairs_a_point;
    } jobs[] = {{8192, 16, 10},    {8192, 32, 10},    {8192, 64, 10},   {8192, 128, 10},
                {8192, 256, 10},   {8192, 512, 10},   {8192, 1024, 10}, {2048, 128, 10},
                {4096, 128, 10},   {16384, 128, 10},  {8192, 128, 0.1}, {8192, 128, 100},
                {8192, 128, 1000}, {8192, 128, 4000}, {8192, 16, 1000}, {8192, 1024, 1000}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        json_array_append_new(list, exact_join(jobs[i].n, jobs[i].d, jobs[i].pairs_a_point));
    return list;
}

/* ---- */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        json_t *(*measure)(void);
    } parts[] = {{"tau", measure_tau},
                 {"exact", measure_exact},
                 {"buckets", measure_buckets},
                 {"hashed", measure_hashed}};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    if (argc < 2 || argc > 3) stop("usage", "bench_join_model FILE.json [PART]");
    options.device = "cpu";
    options.threads = 1;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    openblas_set_num_threads(1);
    json_t *all = json_load_file(argv[1], 0, NULL);
    if (all == NULL) all = json_object();
    json_object_set_new(all, "bench", json_string("join_model"));
    json_object_set_new(all, "version", json_string(gnomon_version()));
    json_object_set_new(all, "isa", json_string(gnomon_context_isa(ctx)));
    json_object_set_new(all, "openblas", json_string(openblas_get_config()));
    int done = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (argc > 2 && strcmp(argv[2], parts[i].name) != 0) continue;
        json_object_set_new(all, parts[i].name, parts[i].measure());
        done++;
    }
    if (done == 0) stop(argv[2], "no such part");
    if (json_dump_file(all, argv[1], JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
        stop(argv[1], "could not be written");
    json_decref(all);
    gnomon_context_destroy(ctx);
    return 0;
}
